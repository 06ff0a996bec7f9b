//! What a folder lies on: its file system, and whether anything in it outlives a crash of the machine.
//!
//! A database that syncs every write is durable only as far as the file system under it is. On tmpfs
//! and ramfs there is no disk: fsync(2) returns at once and a crash loses everything. The same holds
//! for an overlay whose upper layer lies on one of them, for an overlay mounted `volatile` (it ignores
//! syncs), and for a file system on a RAM disk.

use std::{
    fs,
    path::{Path, PathBuf},
};

use nix::sys::statfs::{FsType, OVERLAYFS_SUPER_MAGIC, TMPFS_MAGIC, statfs};

use super::Tier;

/// RAMFS_MAGIC of linux/magic.h.
const RAMFS_MAGIC: FsType = FsType(0x8584_58f6);
/// How many overlays on overlays are followed.
const DEEPEST: usize = 8;

/// What a folder lies on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Medium {
    /// The file system: `ext4`, `tmpfs`, `overlay on ext4`.
    pub filesystem: String,
    /// Why nothing in it outlives a crash of the machine, as the end of a sentence: `which is memory`;
    /// `None` where it may.
    pub volatile: Option<String>,
}

impl Medium {
    /// What this file or folder lies on, as this process sees it; `None` where the system does not
    /// say.
    pub fn of(path: &Path) -> Option<Medium> {
        Medium::seen_by(path, "self")
    }

    /// The same of a file that may be gone by now: then that of the folder it was in.
    pub fn of_name(path: &Path) -> Option<Medium> {
        path.ancestors().take(2).find_map(Medium::of)
    }

    /// The same of a file that another process has open: its folders may be mounted elsewhere.
    pub fn of_descriptor(process: u32, descriptor: u32) -> Option<Medium> {
        let path = PathBuf::from(format!("/proc/{process}/fd/{descriptor}"));
        Medium::seen_by(&path, &process.to_string())
    }

    fn seen_by(path: &Path, process: &str) -> Option<Medium> {
        let mounts = fs::read_to_string(format!("/proc/{process}/mountinfo")).unwrap_or_default();
        let kind = statfs(path).ok()?.filesystem_type();
        // Of a link in /proc the file it stands for is looked at, also where its name means nothing
        // here, or where it has none any more.
        let real = fs::canonicalize(path).or_else(|_| fs::read_link(path)).ok()?;
        Some(look(kind, &real, &Mount::all(&mounts), DEEPEST))
    }

    /// The most that a store whose data lie here can promise.
    pub fn most(&self) -> Tier {
        if self.volatile.is_some() { Tier::T1 } else { Tier::T3 }
    }
}

fn look(kind: FsType, real: &Path, mounts: &[Mount], depth: usize) -> Medium {
    let mount = Mount::around(mounts, real);
    if kind == OVERLAYFS_SUPER_MAGIC {
        return overlay(mount, mounts, depth);
    }
    let memory = kind == TMPFS_MAGIC || kind == RAMFS_MAGIC;
    let volatile = match mount.filter(|mount| mount.is_ram_disk()) {
        _ if memory => Some("which is memory".to_owned()),
        Some(disk) => Some(format!("on a RAM disk ({})", disk.source)),
        None => None,
    };
    // What mounts are called decides the name only where statfs(2) agrees: ext2 to ext4 have one number.
    let filesystem = match (kind, mount) {
        (TMPFS_MAGIC, _) => "tmpfs".to_owned(),
        (RAMFS_MAGIC, _) => "ramfs".to_owned(),
        (_, Some(mount)) => mount.kind.clone(),
        (kind, None) => format!("a file system of type {:#x}", kind.0),
    };
    Medium { filesystem, volatile }
}

/// An overlay keeps what is written in its upper layer.
fn overlay(mount: Option<&Mount>, mounts: &[Mount], depth: usize) -> Medium {
    let upper = mount.and_then(|mount| mount.option("upperdir")).filter(|_| depth > 0);
    let under = upper.and_then(|upper| {
        let kind = statfs(Path::new(&upper)).ok()?.filesystem_type();
        Some(look(kind, &fs::canonicalize(&upper).ok()?, mounts, depth - 1))
    });
    let filesystem = match &under {
        Some(under) => format!("overlay on {}", under.filesystem),
        None => "overlay, whose upper layer cannot be seen from here".into(),
    };
    let volatile = match mount.is_some_and(|mount| mount.has("volatile")) {
        true => Some("mounted volatile, which ignores syncs".to_owned()),
        false => under.and_then(|under| under.volatile),
    };
    Medium { filesystem, volatile }
}

/// A line of mountinfo: proc_pid_mountinfo(5).
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    point: PathBuf,
    kind: String,
    source: String,
    /// Options of the mount and of its file system.
    options: String,
}

impl Mount {
    /// Every mount, in the order in which they were made.
    fn all(mountinfo: &str) -> Vec<Mount> {
        mountinfo.lines().filter_map(Mount::parse).collect()
    }

    /// `36 35 98:0 /root /point rw,noatime master:1 - ext4 /dev/sda1 rw,errors=continue`
    fn parse(line: &str) -> Option<Mount> {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(4);
        let (point, own) = (before.next()?, before.next()?);
        let mut after = after.split(' ');
        let (kind, source) = (after.next()?, after.next()?);
        let options = format!("{own},{}", after.next().unwrap_or_default());
        let point = PathBuf::from(unescaped(point));
        Some(Mount { point, kind: kind.to_owned(), source: unescaped(source), options })
    }

    /// The mount that a path lies in: the one with the longest name, and of those the last.
    fn around<'m>(mounts: &'m [Mount], path: &Path) -> Option<&'m Mount> {
        let around = mounts.iter().filter(|mount| path.starts_with(&mount.point));
        around.max_by_key(|mount| mount.point.components().count())
    }

    /// The value of an option.
    fn option(&self, name: &str) -> Option<String> {
        let value = |option: &str| option.strip_prefix(name)?.strip_prefix('=').map(unescaped);
        self.options.split(',').find_map(value)
    }

    fn has(&self, name: &str) -> bool {
        self.options.split(',').any(|option| option == name)
    }

    fn is_ram_disk(&self) -> bool {
        let name = self.source.strip_prefix("/dev/").unwrap_or_default();
        let number = name.strip_prefix("ram").or_else(|| name.strip_prefix("zram"));
        number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    }
}

/// Text in which the kernel wrote spaces, commas and the like in octal (`\040`).
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let code = match (first, after) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..]) => {
                Some(((a - b'0') << 6) | ((b - b'0') << 3) | (c - b'0'))
            }
            _ => None,
        };
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    const MOUNTS: &str = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
30 27 0:27 / /dev/shm rw,relatime - tmpfs tmpfs rw,size=24684092k
31 27 0:28 / /with\\040space rw master:2 propagate_from:1 - xfs /dev/mapper/a rw
32 27 0:29 / /run/c/merged rw - overlay overlay rw,lowerdir=/l1:/l2,upperdir=/dev/shm/up\\054per,workdir=/w
33 27 0:30 / /run/v rw - overlay overlay rw,lowerdir=/l,upperdir=/var/up,workdir=/w,volatile
34 27 1:0 / /ram rw - ext4 /dev/ram0 rw
35 27 1:0 / /ramble rw - ext4 /dev/ramble0 rw
36 27 0:31 / /dev/shm rw - ext4 /dev/vdb rw
nonsense";

    fn at(path: &str) -> Option<Mount> {
        let mounts = Mount::all(MOUNTS);
        let found = Mount::around(&mounts, Path::new(path))?;
        Mount::all(MOUNTS).into_iter().find(|mount| mount == found)
    }

    #[test]
    fn the_mount_of_a_path_is_the_nearest_and_the_last() {
        assert_eq!(Mount::all(MOUNTS).len(), 9);
        let kind = |path: &str| at(path).map(|mount| (mount.kind.clone(), mount.source.clone()));
        let pair = |a: &str, b: &str| Some((a.to_owned(), b.to_owned()));
        assert_eq!(kind("/tmp/x"), pair("ext4", "/dev/vda"));
        assert_eq!(kind("/dev/shm/x"), pair("ext4", "/dev/vdb"), "mounted over the other");
        assert_eq!(kind("/dev/shmup"), pair("ext4", "/dev/vda"), "a name that only begins alike");
        assert_eq!(kind("/with space/x"), pair("xfs", "/dev/mapper/a"));
        assert_eq!(Mount::around(&[], Path::new("/")), None);
    }

    #[test]
    fn overlays_say_where_their_upper_layer_is() {
        let overlay = at("/run/c/merged/data").unwrap();
        assert_eq!(overlay.option("upperdir").as_deref(), Some("/dev/shm/up,per"));
        assert_eq!((overlay.option("upper"), overlay.has("volatile")), (None, false));
        assert!(at("/run/v").unwrap().has("volatile"));
    }

    #[test]
    fn a_ram_disk_is_told_by_its_device() {
        assert!(at("/ram/x").unwrap().is_ram_disk());
        assert!(!at("/ramble/x").unwrap().is_ram_disk() && !at("/").unwrap().is_ram_disk());
    }

    #[test]
    fn what_is_written_in_octal_is_read() {
        assert_eq!(unescaped("a\\040b\\134c\\0"), "a b\\c\\0");
        assert_eq!(unescaped("\\303\\244"), "ä");
    }

    #[test]
    fn every_file_system_has_a_name() {
        let mounts = Mount::all(MOUNTS);
        let at = |kind, path: &str, mounts: &[Mount]| look(kind, Path::new(path), mounts, 1);
        let unknown = FsType(0x1234_5678);
        assert_eq!(at(unknown, "/with space/x", &mounts).filesystem, "xfs");
        let nowhere = at(unknown, "/x", &[]);
        assert_eq!(nowhere.filesystem, "a file system of type 0x12345678");
        assert_eq!((nowhere.most(), at(RAMFS_MAGIC, "/x", &[]).most()), (Tier::T3, Tier::T1));
        assert!(at(OVERLAYFS_SUPER_MAGIC, "/x", &[]).filesystem.starts_with("overlay, "));
        assert_eq!(at(unknown, "/ram/x", &mounts).volatile.unwrap(), "on a RAM disk (/dev/ram0)");
    }

    #[test]
    fn a_file_that_is_gone_lay_where_its_folder_lies() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gone");
        let file = fs::File::create(&path).unwrap();
        let there = Medium::of(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!((Medium::of(&path), Medium::of_name(&path)), (None, Some(there.clone())));
        let open = Medium::of_descriptor(std::process::id(), file.as_raw_fd() as u32);
        assert_eq!(open, Some(there));
    }

    #[test]
    fn memory_is_known_for_what_it_is() {
        let Some(memory) = Medium::of(Path::new("/dev/shm")) else { return };
        assert_eq!((memory.filesystem.as_str(), memory.most()), ("tmpfs", Tier::T1), "{memory:?}");
        let here = Medium::of(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        assert!(!here.filesystem.is_empty());
        assert_eq!(Medium::of(Path::new("/nonexistent")), None);
    }
}
