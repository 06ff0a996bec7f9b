//! Classifies the files that traced processes write and sync: on a disk, in memory, or no regular files.

use std::{
    collections::HashMap,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::durability::Medium;

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A file on a disk.
    Disk,
    /// A file that no crash of the machine leaves anything of.
    Memory,
    /// A folder, a device, a pipe.
    Other,
}

/// What is known of the files of other processes, by thread, descriptor and name.
pub(super) trait Files {
    /// With which flags a thread's descriptor of this file was opened.
    fn flags(&mut self, thread: u32, descriptor: u32, path: &str) -> Option<u32>;
    /// What the file is.
    fn kind(&mut self, thread: u32, descriptor: u32, path: &str) -> Kind;
    /// Whether the file lies in this folder, whatever the folder is called where the thread is.
    fn is_in(&mut self, thread: u32, path: &str, folder: &Path) -> bool;
    /// The file whose shared mapping has this address.
    fn mapped_at(&mut self, thread: u32, address: u64) -> Option<String>;
    /// Whether the file is mapped to be written: then writes to it are no calls.
    fn maps(&mut self, thread: u32, path: &str) -> bool;
    /// The folder that names that are not whole begin from.
    fn folder(&mut self, thread: u32) -> Option<PathBuf>;
}

/// As `/proc` tells it, if it is asked in time.
#[derive(Debug, Default)]
pub(super) struct Proc {
    kinds: HashMap<String, Kind>,
    /// Folders that lie in the one that was asked for, or do not.
    inside: HashMap<PathBuf, bool>,
}

impl Files for Proc {
    fn flags(&mut self, thread: u32, descriptor: u32, path: &str) -> Option<u32> {
        flags(thread, descriptor, path)
    }

    fn kind(&mut self, thread: u32, descriptor: u32, path: &str) -> Kind {
        if let Some(kind) = self.kinds.get(path) {
            return *kind;
        }
        let kind = kind(thread, descriptor, path);
        self.kinds.insert(path.to_owned(), kind);
        kind
    }

    fn is_in(&mut self, thread: u32, path: &str, folder: &Path) -> bool {
        let Some(parent) = Path::new(path).parent() else { return false };
        if let Some(known) = self.inside.get(parent) {
            return *known;
        }
        let inside = parent.starts_with(folder) || is_under(thread, parent, folder);
        self.inside.insert(parent.to_owned(), inside);
        inside
    }

    fn mapped_at(&mut self, thread: u32, address: u64) -> Option<String> {
        let maps = fs::read_to_string(format!("/proc/{thread}/maps")).ok()?;
        maps.lines().find_map(|line| mapped(line).filter(|m| m.holds(address))?.shared_file())
    }

    fn maps(&mut self, thread: u32, path: &str) -> bool {
        let maps = fs::read_to_string(format!("/proc/{thread}/maps")).unwrap_or_default();
        let is_it = |line| mapped(line).is_some_and(|m| m.rights == "rw-s" && m.name == path);
        maps.lines().any(is_it)
    }

    fn folder(&mut self, thread: u32) -> Option<PathBuf> {
        fs::read_link(format!("/proc/{thread}/cwd")).ok()
    }
}

/// A line of proc_pid_maps(5): `7f00-7f10 rw-s 00000000 fe:00 8 /a/b`.
struct Mapped<'a> {
    from: u64,
    to: u64,
    rights: &'a str,
    name: &'a str,
}

impl Mapped<'_> {
    fn holds(&self, address: u64) -> bool {
        (self.from..self.to).contains(&address)
    }

    fn shared_file(&self) -> Option<String> {
        let shared = self.rights.ends_with('s') && self.name.starts_with('/');
        shared.then(|| self.name.to_owned())
    }
}

fn mapped(line: &str) -> Option<Mapped<'_>> {
    let (range, rest) = line.split_once(' ')?;
    let (from, to) = range.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let rights = rest.split(' ').next()?;
    let name = rest.find('/').map_or("", |at| &rest[at..]);
    Some(Mapped { from: number(from)?, to: number(to)?, rights, name })
}

/// What cannot be told is taken for a disk, as most are.
fn kind(thread: u32, descriptor: u32, path: &str) -> Kind {
    if path.starts_with("/memfd:") || path.starts_with("/SYSV") {
        return Kind::Memory;
    }
    if path.starts_with("/dev/") && !path.starts_with("/dev/shm/") {
        return Kind::Other;
    }
    let is_it = is_of(thread, descriptor, path);
    let seen = match is_it {
        true => PathBuf::from(format!("/proc/{thread}/fd/{descriptor}")),
        false => PathBuf::from(path),
    };
    if fs::metadata(&seen).is_ok_and(|data| !data.is_file()) {
        return Kind::Other;
    }
    let medium = is_it.then(|| Medium::of_descriptor(thread, descriptor)).flatten();
    let medium = medium.or_else(|| Medium::of_name(Path::new(path)));
    match medium.and_then(|medium| medium.volatile) {
        Some(_) => Kind::Memory,
        None => Kind::Disk,
    }
}

/// Whether names of files mean the same to a process as to this one: it has the same root and the same
/// mounts. One that has ended names nothing.
pub(super) fn names_files_as_we_do(process: u32) -> bool {
    let link = |of: &str, name: &str| fs::read_link(format!("/proc/{of}/{name}")).ok();
    let process = process.to_string();
    ["root", "ns/mnt"].iter().all(|name| {
        let theirs = link(&process, name);
        theirs.is_none() || theirs == link("self", name)
    })
}

/// Whether a folder, as a thread names it, is or lies in one as this process names it.
fn is_under(thread: u32, inner: &Path, folder: &Path) -> bool {
    let Ok(wanted) = fs::metadata(folder) else { return false };
    let root = PathBuf::from(format!("/proc/{thread}/root"));
    inner.ancestors().any(|at| {
        let at = root.join(at.strip_prefix("/").unwrap_or(at));
        let same = |at: fs::Metadata| (at.dev(), at.ino()) == (wanted.dev(), wanted.ino());
        fs::metadata(at).is_ok_and(same)
    })
}

/// Whether a thread's descriptor is that file's, still.
fn is_of(thread: u32, descriptor: u32, path: &str) -> bool {
    let link = fs::read_link(format!("/proc/{thread}/fd/{descriptor}"));
    link.is_ok_and(|link| link == Path::new(path))
}

/// The flags with which a thread's descriptor was opened, if it still is that file's.
fn flags(thread: u32, descriptor: u32, path: &str) -> Option<u32> {
    let info = fs::read_to_string(format!("/proc/{thread}/fdinfo/{descriptor}")).ok()?;
    is_of(thread, descriptor, path).then(|| flags_in(&info))?
}

/// `flags:` of proc_pid_fdinfo(5), which is octal.
fn flags_in(info: &str) -> Option<u32> {
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
    u32::from_str_radix(flags.trim(), 8).ok()
}

#[cfg(test)]
mod tests {
    use std::os::{fd::AsRawFd, unix::fs::OpenOptionsExt};

    use super::*;

    #[test]
    fn flags_of_open_files_are_read() {
        const O_DSYNC: u32 = 0o10000;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let plain = fs::File::create(&path).unwrap();
        let synced =
            fs::File::options().append(true).custom_flags(O_DSYNC as i32).open(&path).unwrap();
        let of = |file: &fs::File| {
            let path = path.canonicalize().unwrap();
            flags(std::process::id(), file.as_raw_fd() as u32, path.to_str().unwrap())
        };
        assert_eq!(of(&plain).unwrap() & O_DSYNC, 0);
        assert_eq!(of(&synced).unwrap() & O_DSYNC, O_DSYNC);
        assert_eq!(flags(std::process::id(), plain.as_raw_fd() as u32, "/another"), None);
        assert_eq!(flags_in("pos:\t0\nflags:\t02110001\nmnt_id:\t27\n"), Some(0o2_110_001));
    }

    #[test]
    fn mappings_are_read() {
        let line = "7f8a5c000000-7f8a5c021000 rw-s 00000000 fe:00 1234     /d/a file";
        let found = mapped(line).unwrap();
        assert!(found.holds(0x7f8a_5c00_0000) && !found.holds(0x7f8a_5c02_1000));
        assert_eq!(found.shared_file().as_deref(), Some("/d/a file"));
        let own = mapped("7f8a5c000000-7f8a5c021000 rw-p 00000000 fe:00 1234 /d/a").unwrap();
        assert_eq!(own.shared_file(), None);
        assert_eq!(mapped("7f00-7f10 rw-s 0 0:1 0").unwrap().shared_file(), None);
        assert!(mapped("").is_none());
    }

    #[test]
    fn what_has_ended_names_no_files() {
        assert!(names_files_as_we_do(std::process::id()) && names_files_as_we_do(u32::MAX));
    }

    #[test]
    fn a_folder_is_the_same_under_another_name() {
        let around = tempfile::tempdir().unwrap();
        let (folder, other) = (around.path().join("data"), around.path().join("other"));
        fs::create_dir_all(folder.join("log")).unwrap();
        std::os::unix::fs::symlink(&folder, &other).unwrap();
        let (own, mut files) = (std::process::id(), Proc::default());
        let mut is_in = |path: PathBuf| files.is_in(own, path.to_str().unwrap(), &folder);
        assert!(
            is_in(folder.join("log/1")) && is_in(other.join("log/1")) && is_in(other.join("1"))
        );
        assert!(!is_in(around.path().join("1")) && !is_in("/etc/passwd".into()));
    }

    #[test]
    fn files_are_told_from_memory_and_from_what_is_none() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        fs::write(at("file"), "x").unwrap();
        let kind = |path: &str| kind(std::process::id(), u32::MAX, path);
        assert_eq!(kind(&at("file")), kind(&at("that is gone")));
        assert_eq!(kind(folder.path().to_str().unwrap()), Kind::Other);
        assert_eq!((kind("/memfd:x"), kind("/dev/null")), (Kind::Memory, Kind::Other));
        if Path::new("/dev/shm").is_dir() {
            assert_eq!(kind("/dev/shm/that is gone"), Kind::Memory);
        }
    }
}
