//! System calls that make data durable, told from those that do not.
//!
//! A sync is fsync(2), fdatasync(2), sync(2), syncfs(2), or msync(2) with `MS_SYNC`; and a write to a
//! file that was opened with `O_DSYNC` or `O_SYNC`, as PostgreSQL does with
//! `wal_sync_method=open_datasync`. sync_file_range(2) is none: it leaves the disk's cache alone. What a
//! program hands to the kernel by io_uring or io_submit may sync as well, and cannot be seen.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::Path,
};

use crate::bench::strace::{Call, file};

/// The calls that are watched. Not every processor's kernel has those with a question mark.
pub(super) const CALLS: &str = "fsync,fdatasync,sync,syncfs,msync,?open,openat,?creat,write,pwrite64,\
                                writev,pwritev,pwritev2,io_uring_enter,io_submit";

/// `O_DSYNC` of open(2), which is a part of `O_SYNC`.
const O_DSYNC: u32 = 0o10000;

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Syncs {
    /// Calls that sync, by name.
    pub calls: BTreeMap<String, u64>,
    /// Calls that hand over what cannot be seen.
    pub hidden: u64,
    /// Files on disks that were written or synced, by name.
    pub files: HashMap<String, Touched>,
    /// Whether each open file is synced by every write: by descriptor and name.
    open: HashMap<(u32, String), bool>,
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

impl Syncs {
    /// How many there were.
    pub fn count(&self) -> u64 {
        self.calls.values().sum()
    }

    /// The file that was synced most, or else written most.
    pub fn main_file(&self) -> Option<(&str, &Touched)> {
        let most = self.files.iter().max_by_key(|(_, file)| (file.syncs, file.writes));
        most.map(|(name, file)| (name.as_str(), file))
    }

    /// Adds the files of a later look.
    pub fn add(&mut self, later: Syncs) {
        for (name, file) in later.files {
            let known = self.files.entry(name).or_insert(Touched { syncs: 0, writes: 0, ..file });
            known.syncs += file.syncs;
            known.writes += file.writes;
        }
    }

    /// Takes in a call; true where it was a sync. `alone` is the thread of calls that name none, `flags`
    /// says with which flags a thread's descriptor of this file was opened.
    pub fn take(
        &mut self,
        call: &Call,
        alone: u32,
        flags: impl FnOnce(u32, u32, &str) -> Option<u32>,
    ) -> bool {
        if !call.succeeded() {
            return false;
        }
        let thread = call.thread.unwrap_or(alone);
        let name = call.name.as_str();
        if matches!(name, "open" | "openat" | "creat") {
            if let Some((descriptor, path)) = file(&call.returned) {
                let synced =
                    call.arguments.contains("O_DSYNC") || call.arguments.contains("O_SYNC");
                self.open.insert((descriptor, path.to_owned()), synced);
            }
            return false;
        }
        let on_disk = call.file().filter(|(_, path)| path.starts_with('/'));
        let is_write = name.contains("write");
        let kind = match name {
            "io_uring_enter" | "io_submit" => {
                self.hidden += 1;
                return false;
            }
            "msync" if !call.arguments.contains("MS_SYNC") => return false,
            _ if !is_write => name.to_owned(),
            _ => {
                let Some((descriptor, path)) = on_disk else { return false };
                let known = self.open.entry((descriptor, path.to_owned()));
                let synced = *known.or_insert_with(|| {
                    flags(thread, descriptor, path).is_some_and(|flags| flags & O_DSYNC != 0)
                });
                match synced
                    || call.arguments.contains("RWF_DSYNC")
                    || call.arguments.contains("RWF_SYNC")
                {
                    true => format!("{name} to O_DSYNC"),
                    false => String::new(),
                }
            }
        };
        let is_sync = !kind.is_empty();
        if let Some((descriptor, path)) = on_disk {
            let new = Touched { thread, descriptor, syncs: 0, writes: 0 };
            let file = self.files.entry(path.to_owned()).or_insert(new);
            file.syncs += u64::from(is_sync);
            file.writes += u64::from(is_write);
        }
        if is_sync {
            *self.calls.entry(kind).or_default() += 1;
        }
        is_sync
    }
}

/// The flags with which a thread's descriptor was opened, if it still is that file's.
pub(super) fn flags(thread: u32, descriptor: u32, path: &str) -> Option<u32> {
    let link = fs::read_link(format!("/proc/{thread}/fd/{descriptor}")).ok()?;
    let info = fs::read_to_string(format!("/proc/{thread}/fdinfo/{descriptor}")).ok()?;
    (link == Path::new(path)).then(|| flags_in(&info))?
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
    use crate::bench::strace::Calls;

    fn seen(lines: &[&str], synced: u32) -> Syncs {
        let (mut syncs, mut calls) = (Syncs::default(), Calls::default());
        for line in lines {
            if let Some(call) = calls.ended(line) {
                syncs.take(&call, 1, |_, descriptor, _| {
                    Some(if descriptor == synced { 0o2_110_001 } else { 0o2_100_001 })
                });
            }
        }
        syncs
    }

    #[test]
    fn calls_that_sync_are_counted_once() {
        let found = seen(
            &[
                "[pid     9] fdatasync(3</d/log> <unfinished ...>",
                "[pid    10] fsync(4</d/data>)                  = 0",
                "[pid     9] <... fdatasync resumed>)  = 0",
                "fdatasync(3</d/log>)                  = 0",
                "fsync(5<socket:[7]>)                  = -1 EINVAL (Invalid argument)",
                "msync(0x7f00, 4096, MS_ASYNC)         = 0",
                "msync(0x7f00, 4096, MS_SYNC)          = 0",
                "pwrite64(4</d/data>, \"\"..., 512, 0)   = 512",
                "io_uring_enter(9<anon_inode:[io_uring]>, 1, 0, 0, NULL, 8) = 1",
            ],
            99,
        );
        let want = [("fdatasync", 2), ("fsync", 1), ("msync", 1)].map(|(n, k)| (n.to_owned(), k));
        assert_eq!((found.calls.clone(), found.count()), (want.into(), 4));
        assert_eq!(found.hidden, 1);
        let (path, file) = found.main_file().unwrap();
        assert_eq!((path, file.thread, file.descriptor, file.syncs), ("/d/log", 9, 3, 2));
    }

    #[test]
    fn writes_to_files_that_sync_are_syncs() {
        let found = seen(
            &[
                "pwrite64(7</d/wal>, \"\"..., 8192, 0) = 8192",
                "write(8<socket:[3]>, \"\"..., 20)      = 20",
                "pwrite64(6</d/data>, \"\"..., 8192, 0) = 8192",
                "openat(AT_FDCWD</d>, \"wal2\", O_RDWR|O_CLOEXEC|O_DIRECT|O_DSYNC) = 6</d/wal2>",
                "pwritev(6</d/wal2>, [{iov_base=\"\"..., iov_len=512}], 1, 0) = 512",
                "openat(AT_FDCWD</d>, \"new\", O_RDWR|O_CREAT, 0600) = 7</d/new>",
                "write(7</d/new>, \"\"..., 20)          = 20",
                "pwritev2(6</d/data>, [{}], 1, 0, RWF_DSYNC) = 512",
            ],
            7,
        );
        let want =
            [("pwrite64 to O_DSYNC", 1), ("pwritev to O_DSYNC", 1), ("pwritev2 to O_DSYNC", 1)];
        assert_eq!(found.calls, want.map(|(n, k)| (n.to_owned(), k)).into());
        assert_eq!(found.files.len(), 4);
    }

    #[test]
    fn flags_of_open_files_are_read() {
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
}
