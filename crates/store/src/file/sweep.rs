//! Removes the temporary files of processes that were killed while they wrote a file.
//!
//! Such a file is removed only where two signs agree: no process has the number in its name, and
//! nobody holds its lock. A process in another container may seem to have ended, but holds its lock;
//! on a file system without locks nothing is removed.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use nix::{
    errno::Errno,
    fcntl::OFlag,
    sys::signal::kill,
    unistd::{Pid, geteuid},
};

/// The name of a file until it is complete: `.NAME.PID-COUNT.part`.
pub(super) fn name(name: &str, process: u32, count: u32) -> String {
    format!(".{name}.{process}-{count}.part")
}

/// The process that made a file of such a name; none where it is no such name.
fn process_of(part: &str, name: &str) -> Option<i32> {
    let numbers = part.strip_prefix('.')?.strip_prefix(name)?.strip_prefix('.')?;
    let (process, count) = numbers.strip_suffix(".part")?.split_once('-')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(process) || !digits(count) {
        return None;
    }
    process.parse().ok().filter(|process| *process > 0)
}

/// Removes what is left in `folder` of a file called `file`. Once in a run is enough.
pub(super) fn once(folder: &Path, file: &str) {
    static SWEPT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let new = SWEPT.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.join(file));
    let Some(entries) = new.then(|| fs::read_dir(folder).ok()).flatten() else { return };
    for entry in entries.flatten() {
        let process = entry.file_name().to_str().and_then(|part| process_of(part, file));
        if process.is_some_and(has_ended) {
            remove(&entry.path());
        }
    }
}

fn has_ended(process: i32) -> bool {
    kill(Pid::from_raw(process), None) == Err(Errno::ESRCH)
}

/// Removes a file of this user that nobody holds the lock of. What is no file (a pipe, which would be waited for, a
/// link) and what is another user's stays. That something stays is no harm.
pub(super) fn remove(path: &Path) {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    if let Ok(file) = File::options().read(true).custom_flags(flags.bits()).open(path)
        && file.metadata().is_ok_and(|data| data.is_file() && data.uid() == geteuid().as_raw())
        && file.try_lock().is_ok()
    {
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use nix::{sys::stat::Mode, unistd::mkfifo};

    use super::*;

    #[test]
    fn only_files_of_this_user_are_removed_and_nothing_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["file", "locked", "linked", "others"] {
            fs::write(at(name), "half").unwrap();
        }
        let lock = File::open(at("locked")).unwrap();
        lock.lock().unwrap();
        symlink(at("linked"), at("link")).unwrap();
        mkfifo(&at("pipe"), Mode::S_IRWXU).unwrap();
        fs::create_dir(at("folder")).unwrap();
        let mut stay = vec!["locked", "linked", "link", "pipe", "folder"];
        if geteuid().is_root() {
            chown(at("others"), Some(65_533), None).unwrap();
            stay.push("others");
        }
        for name in ["file", "link", "pipe", "folder", "locked", "others"] {
            remove(&at(name));
        }
        for name in stay {
            assert!(fs::symlink_metadata(at(name)).is_ok(), "{name}");
        }
        assert!(!at("file").exists());
        drop(lock);
    }
}
