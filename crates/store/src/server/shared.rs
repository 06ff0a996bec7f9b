//! Shared memory that outlives a killed server: PostgreSQL's files in `/dev/shm`, and a System V segment of 56 bytes.
//!
//! If the server had a user id of its own, everything that belongs to that user is the server's. Otherwise it is what
//! its processes had mapped and what PostgreSQL records in its `postmaster.pid`.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use nix::fcntl::OFlag;

/// Where files in memory are.
const FILES: &str = "/dev/shm";
/// The list of segments of System V (proc(5)).
const SEGMENTS: &str = "/proc/sysvipc/shm";

/// Removes what belongs to a user whom nothing else belongs to.
pub(super) fn remove_all_of(user: u32) {
    for entry in fs::read_dir(FILES).into_iter().flatten().flatten() {
        let file = entry.metadata().is_ok_and(|data| data.is_file() && data.uid() == user);
        if file {
            let _ = fs::remove_file(entry.path());
        }
    }
    segments().iter().filter(|segment| segment.user == user).for_each(Segment::remove);
}

/// Removes the segment of a PostgreSQL that was killed and had its data here, and these files.
pub(super) fn remove(data: &Path, files: &[PathBuf]) {
    for file in files {
        let _ = fs::remove_file(file);
    }
    let Some((key, id)) = named_in(data) else { return };
    let user = fs::symlink_metadata(data).map(|data| data.uid()).ok();
    let is_it = |segment: &&Segment| {
        let same = (&segment.key, segment.id) == (&key, id) && Some(segment.user) == user;
        same && segment.used == 0
    };
    segments().iter().filter(is_it).for_each(Segment::remove);
}

/// The files in memory that a process has mapped.
pub(super) fn files_of(pid: u32) -> Vec<PathBuf> {
    let text = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    // "from-to rights offset device inode   path"
    let path = |line: &str| Some(PathBuf::from(line.get(line.find('/')?..)?));
    let mut found: Vec<PathBuf> = text.lines().filter_map(path).collect();
    found.retain(|path| path.parent() == Some(Path::new(FILES)));
    found.sort_unstable();
    found.dedup();
    found
}

/// The key and the number of the segment that `postmaster.pid` names in its seventh line.
fn named_in(data: &Path) -> Option<(String, u64)> {
    const LONGEST: u64 = 10_000;
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let mut options = File::options();
    let file = options.read(true).custom_flags(flags.bits()).open(data.join("postmaster.pid"));
    let file = file.ok().filter(|file| file.metadata().is_ok_and(|data| data.is_file()))?;
    let line = BufReader::new(file.take(LONGEST)).lines().nth(6)?.ok()?;
    let (key, id) = line.trim().split_once(' ')?;
    Some((key.to_owned(), id.trim().parse().ok()?))
}

/// A segment of System V.
#[derive(Debug, PartialEq, Eq)]
struct Segment {
    key: String,
    id: u64,
    /// How many processes have it.
    used: u64,
    user: u32,
}

impl Segment {
    /// Of a line of the list: `key shmid perms size cpid lpid nattch uid …`.
    fn of(line: &str) -> Option<Segment> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [key, id, _, _, _, _, used, user, ..] = words[..] else { return None };
        Some(Segment {
            key: key.to_owned(),
            id: id.parse().ok()?,
            used: used.parse().ok()?,
            user: user.parse().ok()?,
        })
    }

    fn remove(&self) {
        let mut ipcrm = Command::new("ipcrm");
        ipcrm.args(["-m", &self.id.to_string()]);
        // Where there is no such program, 56 bytes stay.
        let _ = ipcrm.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

fn segments() -> Vec<Segment> {
    fs::read_to_string(SEGMENTS).unwrap_or_default().lines().filter_map(Segment::of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_read() {
        let line =
            "  10996197    1376256   600    56  6553  6560      2   101   104   101   104 1 2 3";
        let segment = Segment { key: "10996197".into(), id: 1_376_256, used: 2, user: 101 };
        assert_eq!(Segment::of(line), Some(segment));
        assert_eq!(Segment::of("       key      shmid perms  size  cpid  lpid nattch   uid"), None);
    }

    #[test]
    fn the_segment_that_postgres_names_is_found_and_nothing_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("postmaster.pid");
        let text = "4711\n/data\n1795393367\n5432\n/tmp\n127.0.0.1\n  5432001     65538\nready\n";
        fs::write(&path, text).unwrap();
        assert_eq!(named_in(folder.path()), Some(("5432001".into(), 65_538)));
        fs::remove_file(&path).unwrap();
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(named_in(folder.path()), None);
    }
}
