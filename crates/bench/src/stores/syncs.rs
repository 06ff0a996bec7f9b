//! System calls that make data durable, told from those that do not.
//!
//! A sync is fsync(2), fdatasync(2), sync(2), syncfs(2), or msync(2) with `MS_SYNC`; and a write to a
//! file that was opened with `O_DSYNC` or `O_SYNC`, as PostgreSQL does with
//! `wal_sync_method=open_datasync`. sync_file_range(2) is none: it leaves the disk's cache alone. What a
//! program hands to the kernel by io_uring or io_submit may sync as well, and cannot be seen.
//!
//! It counts where it makes written data durable: of a regular file that has a name, on a disk, that was
//! written since its last sync, among the store's data where it is known where they lie. The others are
//! counted by what is wrong with them. What is written through a mapping is no call, so a file that is
//! mapped to be written counts as written.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    path::{Path, PathBuf},
};

use super::seen_files::{Files, Kind};
use crate::strace::{Call, file};

/// The calls that are watched. Not every processor's kernel has those with a question mark.
pub(super) const CALLS: &str = "fsync,fdatasync,sync,syncfs,msync,?open,openat,?creat,write,pwrite64,\
                                writev,pwritev,pwritev2,copy_file_range,?sendfile,splice,?rename,\
                                ?renameat,renameat2,io_uring_enter,io_submit";

/// `O_DSYNC` of open(2), which is a part of `O_SYNC`.
const O_DSYNC: u32 = 0o10000;

/// What is wrong with a call that syncs and does not count.
const UNWRITTEN: &str = "of what was not written since";
const MEMORY: &str = "of memory";
const NO_FILE: &str = "of folders, sockets or devices";
const DELETED: &str = "of files without a name";
const ELSEWHERE: &str = "outside of its data";
const UNMAPPED: &str = "of mappings that are gone";

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Syncs {
    /// Where its data lie, where that is known.
    folder: Option<PathBuf>,
    /// On disks.
    pub disk: Seen,
    /// On tmpfs and the like.
    pub memory: Seen,
    /// Calls that sync and make no written data durable, by what is wrong with them.
    pub idle: BTreeMap<&'static str, u64>,
    /// Calls that hand over what cannot be seen.
    pub hidden: u64,
    /// Whether each open file is synced by every write: by descriptor and name.
    open: HashMap<(u32, String), bool>,
    /// Files that were written since their last sync.
    dirty: HashSet<String>,
}

/// What was seen on one kind of medium.
#[derive(Debug, Default, Clone)]
pub(super) struct Seen {
    /// Calls that sync, by name.
    pub calls: BTreeMap<String, u64>,
    /// Files that were written or synced, by name.
    pub files: HashMap<String, Touched>,
}

/// A file that was written or synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Touched {
    /// Who did, and by which descriptor.
    pub thread: u32,
    pub descriptor: u32,
    /// How often it was synced, and written.
    pub syncs: u64,
    pub writes: u64,
}

impl Seen {
    /// How many syncs there were.
    pub(super) fn count(&self) -> u64 {
        self.calls.values().sum()
    }

    /// The file that was synced most, or else written most.
    fn main_file(&self) -> Option<(&str, &Touched)> {
        let most = self.files.iter().max_by_key(|(_, file)| (file.syncs, file.writes));
        most.map(|(name, file)| (name.as_str(), file))
    }

    fn add(&mut self, later: Seen) {
        for (name, file) in later.files {
            let known = self.files.entry(name).or_insert(Touched { syncs: 0, writes: 0, ..file });
            known.syncs += file.syncs;
            known.writes += file.writes;
        }
    }
}

impl Syncs {
    /// Nothing yet, of a store whose data lie there, where that is known.
    pub(super) fn of(folder: Option<&Path>) -> Syncs {
        let folder = folder.map(|at| at.canonicalize().unwrap_or_else(|_| at.to_owned()));
        Syncs { folder, ..Syncs::default() }
    }

    /// What was seen where its data lie, which may be in memory.
    pub(super) fn where_data_lie(&self, in_memory: bool) -> &Seen {
        if in_memory { &self.memory } else { &self.disk }
    }

    /// The file that was synced most, or else written most, and whether it is in memory.
    pub(super) fn main_file(&self) -> Option<(&str, &Touched, bool)> {
        let both = [(&self.disk, false), (&self.memory, true)];
        let files = both
            .into_iter()
            .filter_map(|(seen, memory)| seen.main_file().map(|(name, file)| (name, file, memory)));
        files.max_by_key(|(_, file, memory)| (file.syncs, file.writes, !memory))
    }

    /// Adds the files of a later look.
    pub(super) fn add(&mut self, later: Syncs) {
        self.disk.add(later.disk);
        self.memory.add(later.memory);
    }

    /// Takes in a call; true where it was a sync that counts. `alone` is the thread of calls that name none.
    pub(super) fn take(&mut self, call: &Call, alone: u32, files: &mut impl Files) -> bool {
        if !call.succeeded() {
            return false;
        }
        let thread = call.thread.unwrap_or(alone);
        match call.name.as_str() {
            "open" | "openat" | "creat" => {
                if let Some((descriptor, path)) = file(&call.returned) {
                    let synced =
                        call.arguments.contains("O_DSYNC") || call.arguments.contains("O_SYNC");
                    self.open.insert((descriptor, path.to_owned()), synced);
                }
                false
            }
            "rename" | "renameat" | "renameat2" => {
                if let [old, new] = &renamed(call, || files.folder(thread))[..]
                    && self.dirty.remove(old)
                {
                    self.dirty.insert(new.clone());
                    let file = self.disk.files.get(old).copied();
                    self.disk.files.extend(file.map(|file| (new.clone(), file)));
                }
                false
            }
            "io_uring_enter" | "io_submit" => {
                self.hidden += 1;
                false
            }
            "sync" | "syncfs" => {
                let any = self.dirty.iter().any(|path| self.disk.files.contains_key(path));
                self.dirty.clear();
                let wrong = if any { None } else { Some(UNWRITTEN) };
                self.count(&call.name, None, wrong)
            }
            "msync" => call.arguments.contains("MS_SYNC") && self.mapping(call, thread, files),
            "fsync" | "fdatasync" => self.sync(call, thread, files),
            _ => self.write(call, thread, files),
        }
    }

    fn sync(&mut self, call: &Call, thread: u32, files: &mut impl Files) -> bool {
        let Some((descriptor, path)) = call.file().filter(|(_, path)| path.starts_with('/')) else {
            return self.count(&call.name, None, Some(NO_FILE));
        };
        let at = self.at(thread, descriptor, path, files);
        let wrong = match at.kind {
            Kind::Other => Some(NO_FILE),
            Kind::Disk if call.is_deleted() => Some(DELETED),
            _ if !self.dirty.remove(path) && !files.maps(thread, path) => Some(UNWRITTEN),
            _ => None,
        };
        self.count(&call.name, Some(at), wrong)
    }

    fn mapping(&mut self, call: &Call, thread: u32, files: &mut impl Files) -> bool {
        let at = call.arguments.split(',').next().and_then(|at| at.trim().strip_prefix("0x"));
        let at = at.and_then(|at| u64::from_str_radix(at, 16).ok());
        let Some(path) = at.and_then(|at| files.mapped_at(thread, at)) else {
            return self.count(&call.name, None, Some(UNMAPPED));
        };
        let at = self.at(thread, u32::MAX, &path, files);
        let wrong = (at.kind == Kind::Other).then_some(NO_FILE);
        self.count(&call.name, Some(at), wrong)
    }

    fn write(&mut self, call: &Call, thread: u32, files: &mut impl Files) -> bool {
        // Of calls from one file to another, the second is written: "3</a>, NULL, 4</b>, NULL, 10, 0".
        let target = match call.name.as_str() {
            "copy_file_range" | "splice" => call.files().nth(1),
            _ => call.file(),
        };
        let on_disk = target.filter(|(_, path)| path.starts_with('/') && !call.is_deleted());
        let Some((descriptor, path)) = on_disk else { return false };
        let at = self.at(thread, descriptor, path, files);
        if at.kind == Kind::Other {
            return false;
        }
        let known = self.open.entry((descriptor, path.to_owned()));
        let synced = *known.or_insert_with(|| {
            files.flags(thread, descriptor, path).is_some_and(|flags| flags & O_DSYNC != 0)
        }) || call.arguments.contains("RWF_DSYNC")
            || call.arguments.contains("RWF_SYNC");
        if let Some(file) = self.file(at) {
            file.writes += 1;
        }
        if synced {
            return self.count(&format!("{} to O_DSYNC", call.name), Some(at), None);
        }
        self.dirty.insert(path.to_owned());
        false
    }

    fn at<'p>(
        &self,
        thread: u32,
        descriptor: u32,
        path: &'p str,
        files: &mut impl Files,
    ) -> At<'p> {
        let kind = files.kind(thread, descriptor, path);
        let inside = self.folder.as_ref().is_none_or(|folder| files.is_in(thread, path, folder));
        At { thread, descriptor, path, kind, inside }
    }

    /// The file, if it is one where the data lie.
    fn file(&mut self, at: At) -> Option<&mut Touched> {
        let seen = match at.kind {
            Kind::Disk if at.inside => &mut self.disk,
            Kind::Memory if at.inside => &mut self.memory,
            _ => return None,
        };
        let new = Touched { thread: at.thread, descriptor: at.descriptor, syncs: 0, writes: 0 };
        Some(seen.files.entry(at.path.to_owned()).or_insert(new))
    }

    fn count(&mut self, name: &str, at: Option<At>, wrong: Option<&'static str>) -> bool {
        let kind = at.map_or(Kind::Disk, |at| at.kind);
        let wrong = wrong.or_else(|| match at.and_then(|at| self.file(at)) {
            Some(file) => {
                file.syncs += 1;
                (kind == Kind::Memory).then_some(MEMORY)
            }
            None => at.map(|_| ELSEWHERE),
        });
        if wrong.is_none() || wrong == Some(MEMORY) {
            let seen = if wrong.is_none() { &mut self.disk } else { &mut self.memory };
            *seen.calls.entry(name.to_owned()).or_default() += 1;
        }
        if let Some(wrong) = wrong {
            *self.idle.entry(wrong).or_default() += 1;
        }
        wrong.is_none()
    }
}

/// Who touches which file by which descriptor, what it is, and whether it lies where the data do.
#[derive(Clone, Copy)]
struct At<'a> {
    thread: u32,
    descriptor: u32,
    path: &'a str,
    kind: Kind,
    inside: bool,
}

/// The two names of a rename: `"/a", "/b"`, `AT_FDCWD</d>, "a", AT_FDCWD</d>, "b", 0`.
fn renamed(call: &Call, mut folder: impl FnMut() -> Option<PathBuf>) -> Vec<String> {
    let pieces: Vec<&str> = call.arguments.split('"').collect();
    let named = |before: usize| {
        let name = Path::new(*pieces.get(before + 1)?);
        // The name of the folder that a name that is not whole begins from stands before it.
        let from = pieces[before].rsplit_once('<').and_then(|(_, from)| from.split_once('>'));
        let from = from.map(|(from, _)| PathBuf::from(from)).or_else(&mut folder)?;
        Some(from.join(name).to_string_lossy().into_owned())
    };
    [0, 2].into_iter().filter_map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strace::Calls;

    /// Files told by their names, and descriptor 7 syncs with each write.
    struct Told;

    impl Files for Told {
        fn flags(&mut self, _: u32, descriptor: u32, _: &str) -> Option<u32> {
            Some(if descriptor == 7 { 0o2_110_001 } else { 0o2_100_001 })
        }
        fn kind(&mut self, _: u32, _: u32, path: &str) -> Kind {
            match path {
                path if path.starts_with("/dev/shm/") || path.starts_with("/memfd:") => {
                    Kind::Memory
                }
                path if path.starts_with("/dev/") || path.ends_with("folder") => Kind::Other,
                _ => Kind::Disk,
            }
        }
        fn is_in(&mut self, _: u32, path: &str, folder: &Path) -> bool {
            Path::new(path).starts_with(folder)
        }
        fn mapped_at(&mut self, _: u32, address: u64) -> Option<String> {
            match address {
                0x7f00 => Some("/d/mapped".into()),
                0x7e00 => Some("/memfd:x".into()),
                _ => None,
            }
        }
        fn maps(&mut self, _: u32, path: &str) -> bool {
            path == "/d/mapped"
        }
        fn folder(&mut self, _: u32) -> Option<PathBuf> {
            Some("/d".into())
        }
    }

    fn seen_in(folder: Option<&str>, lines: &[&str]) -> Syncs {
        let (mut syncs, mut calls) = (Syncs::of(folder.map(Path::new)), Calls::default());
        for line in lines {
            if let Some(call) = calls.ended(line) {
                syncs.take(&call, 1, &mut Told);
            }
        }
        syncs
    }

    fn seen(lines: &[&str]) -> Syncs {
        seen_in(None, lines)
    }

    fn named<T: ToString>(want: &[(T, u64)]) -> BTreeMap<String, u64> {
        want.iter().map(|(name, n)| (name.to_string(), *n)).collect()
    }

    #[test]
    fn calls_that_sync_are_counted_once() {
        let found = seen(&[
            "write(3</d/log>, \"\"..., 20)          = 20",
            "[pid     9] fdatasync(3</d/log> <unfinished ...>",
            "[pid    10] write(3</d/log>, \"\"..., 20) = 20",
            "[pid    10] pwrite64(4</d/data>, \"\"..., 20, 0) = 20",
            "[pid    10] fsync(4</d/data>)                  = 0",
            "[pid     9] <... fdatasync resumed>)  = 0",
            "write(3</d/log>, \"\"..., 20)          = 20",
            "fdatasync(3</d/log>)                  = 0",
            "fsync(5<socket:[7]>)                  = -1 EINVAL (Invalid argument)",
            "msync(0x7f00, 4096, MS_ASYNC)         = 0",
            "msync(0x7f00, 4096, MS_SYNC)          = 0",
            "pwrite64(4</d/data>, \"\"..., 512, 0)   = 512",
            "io_uring_enter(9<anon_inode:[io_uring]>, 1, 0, 0, NULL, 8) = 1",
        ]);
        let want = named(&[("fdatasync", 2), ("fsync", 1), ("msync", 1)]);
        assert_eq!((found.disk.calls.clone(), found.disk.count()), (want, 4));
        assert_eq!((found.hidden, found.idle.len()), (1, 0));
        let (path, file, memory) = found.main_file().unwrap();
        assert_eq!((path, file.descriptor, file.syncs, memory), ("/d/log", 3, 2, false));
    }

    #[test]
    fn writes_to_files_that_sync_are_syncs() {
        let found = seen(&[
            "pwrite64(7</d/wal>, \"\"..., 8192, 0) = 8192",
            "write(8<socket:[3]>, \"\"..., 20)      = 20",
            "pwrite64(6</d/data>, \"\"..., 8192, 0) = 8192",
            "openat(AT_FDCWD</d>, \"wal2\", O_RDWR|O_CLOEXEC|O_DIRECT|O_DSYNC) = 6</d/wal2>",
            "pwritev(6</d/wal2>, [{iov_base=\"\"..., iov_len=512}], 1, 0) = 512",
            "openat(AT_FDCWD</d>, \"new\", O_RDWR|O_CREAT, 0600) = 7</d/new>",
            "write(7</d/new>, \"\"..., 20)          = 20",
            "pwritev2(6</d/data>, [{}], 1, 0, RWF_DSYNC) = 512",
        ]);
        let want = named(&[
            ("pwrite64 to O_DSYNC", 1),
            ("pwritev to O_DSYNC", 1),
            ("pwritev2 to O_DSYNC", 1),
        ]);
        assert_eq!(found.disk.calls, want);
        assert_eq!(found.disk.files.len(), 4);
    }

    #[test]
    fn syncs_that_make_nothing_durable_do_not_count() {
        let found = seen_in(
            Some("/d"),
            &[
                "write(3</memfd:x>(deleted), \"\"..., 20) = 20",
                "fsync(3</memfd:x>(deleted))           = 0",
                "fsync(3</d/data>)                     = 0",
                "write(4</dev/shm/x>, \"\"..., 20)      = 20",
                "fdatasync(4</dev/shm/x>)              = 0",
                "fsync(5</d/folder>)                   = 0",
                "write(6</d/gone>(deleted), \"\"..., 20) = 20",
                "fsync(6</d/gone>(deleted))            = 0",
                "write(8</e/other>, \"\"..., 20)        = 20",
                "fsync(8</e/other>)                    = 0",
                "msync(0x7e00, 4096, MS_SYNC)          = 0",
                "msync(0x7d00, 4096, MS_SYNC)          = 0",
                "fsync(9<socket:[9]>)                  = 0",
                "write(9</dev/null>, \"\"..., 20)       = 20",
                "sync()                                = 0",
                "write(3</d/data>, \"\"..., 20)         = 20",
                "sync()                                = 0",
                "sync()                                = 0",
            ],
        );
        assert_eq!(found.disk.calls, named(&[("sync", 1)]), "{found:?}");
        let want = [(UNWRITTEN, 4), (ELSEWHERE, 3), (NO_FILE, 2), (DELETED, 1), (UNMAPPED, 1)];
        assert_eq!(
            found.idle.iter().map(|(k, n)| (*k, *n)).collect::<HashMap<_, _>>(),
            want.into()
        );
        assert_eq!(found.disk.files.keys().collect::<Vec<_>>(), ["/d/data"]);
    }

    #[test]
    fn what_was_written_under_another_name_was_written() {
        for rename in [
            "rename(\"/d/new\", \"/d/data\")        = 0",
            "renameat2(AT_FDCWD</d>, \"new\", AT_FDCWD</d>, \"data\", 0) = 0",
            "rename(\"new\", \"data\")              = 0",
        ] {
            let write = "write(3</d/new>, \"\"..., 20)          = 20";
            let found = seen(&[write, rename, "fsync(4</d/data>) = 0", "fsync(4</d/data>) = 0"]);
            assert_eq!(found.disk.calls, named(&[("fsync", 1)]), "{rename}");
        }
        let copied = "copy_file_range(3</d/a>, NULL, 4</d/b>, NULL, 10, 0) = 10";
        let found = seen(&[copied, "fsync(3</d/a>) = 0", "fsync(4</d/b>) = 0"]);
        assert_eq!((found.disk.count(), found.disk.files["/d/b"].syncs), (1, 1));
    }

    #[test]
    fn what_lies_in_memory_is_counted_for_itself() {
        let found = seen(&[
            "write(4</dev/shm/x>, \"\"..., 20)      = 20",
            "fsync(4</dev/shm/x>)                  = 0",
            "write(5</d/log>, \"\"..., 20)          = 20",
        ]);
        assert_eq!((found.disk.count(), found.memory.count(), found.idle[MEMORY]), (0, 1, 1));
        assert_eq!(
            found.main_file().map(|(name, _, memory)| (name, memory)),
            Some(("/dev/shm/x", true))
        );
        assert_eq!(found.where_data_lie(true).count(), 1);
    }
}
