//! A temporary folder for the files of a run, removed with its value or, if the process was killed, by the next run.
//!
//! Other users may write to its parent (`/tmp`), so its name is random and nobody else may enter it. A leftover folder
//! is first opened and verified to belong to this user and to be closed to others, and then removed through that handle
//! ([`PrivateFolder`]).

use std::{
    fs::{self, File},
    mem,
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    thread,
    time::Duration,
};

use super::cleanup::{self, Due};
use crate::{Error, Result, link, server::PrivateFolder};

/// What its name begins with.
const NAME: &str = "steelyard-bench-";

/// A folder of the run's own; dropping it removes it with all that is in it.
#[derive(Debug)]
pub struct Scratch {
    folder: Arc<PrivateFolder>,
    /// The system unlocks it when the process ends, however it does.
    _lock: File,
    _due: Due,
}

impl Scratch {
    /// A new folder in `parent`, or in the system's place for temporary files. Folders there that dead processes
    /// of this user have left are removed.
    ///
    /// # Errors
    /// Where none can be made there.
    pub fn new(parent: Option<&Path>) -> Result<Scratch> {
        let parent = parent.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let failed = |e: std::io::Error| Error::from(e).in_place(parent.display().to_string());
        link::followed(&parent).map_err(|e| e.in_place(parent.display().to_string()))?;
        fs::create_dir_all(&parent).map_err(failed)?;
        sweep(&parent);
        let folder = Arc::new(PrivateFolder::make(&parent, NAME).map_err(failed)?);
        let made = Arc::clone(&folder);
        let due = cleanup::due(move || {
            remove_after_the_end(made.path());
            remove(&made);
        });
        let lock = folder.lock().map_err(failed)?;
        Ok(Scratch { folder, _lock: lock, _due: due })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.folder);
    }
}

/// Removes a folder. Where the run was ended early, a thread may still make files in it for a moment.
fn remove(folder: &PrivateFolder) {
    const TRIES: u32 = 20;
    const PAUSE: Duration = Duration::from_millis(10);
    for _ in 0..TRIES {
        if folder.remove().is_ok() || !folder.path().exists() {
            return;
        }
        thread::sleep(PAUSE);
    }
}

/// Leaves the removal of a folder to a process that begins when this one ends: there may be more files than can be removed
/// before that, and threads that still make some.
fn remove_after_the_end(folder: &Path) {
    if let Ok(child) = removal(folder).spawn() {
        // Its input ends with this process. Where it was not started, the next run sweeps.
        mem::forget(child.stdin);
    }
}

/// What removes a folder when its input ends.
fn removal(folder: &Path) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg("read end; exec rm -rf -- \"$0\"").arg(folder).process_group(0);
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    shell
}

/// Removes the folders in `parent` that are this user's and that nobody has locked.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(NAME) {
            continue;
        }
        let Ok(Some(folder)) = PrivateFolder::open(&entry.path()) else { continue };
        if folder.is_abandoned() {
            let _ = folder.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::fs::{PermissionsExt, chown, symlink},
        path::PathBuf,
    };

    use super::*;

    const LOCK: &str = ".lock";

    /// A folder with data and a lock that nobody holds.
    fn left(parent: &Path, name: &str, mode: u32) -> PathBuf {
        let folder = parent.join(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("data"), "x").unwrap();
        fs::write(folder.join(LOCK), "").unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
        folder
    }

    #[test]
    fn what_a_dead_process_left_is_swept_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let alive = Scratch::new(Some(parent.path())).unwrap();
        fs::write(alive.path().join("data"), "x").unwrap();
        let mode = fs::metadata(alive.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let dead = left(parent.path(), "steelyard-bench-dead", 0o700);
        let new = left(parent.path(), "steelyard-bench-new", 0o700);
        fs::remove_file(new.join(LOCK)).unwrap();
        let other = left(parent.path(), "other", 0o700);
        let second = Scratch::new(Some(parent.path())).unwrap();
        assert!(!dead.exists() && new.exists() && other.join("data").exists());
        assert!(alive.path().join("data").exists() && second.path().exists());
        let path = alive.path().to_owned();
        drop(alive);
        assert!(!path.exists());
    }

    #[test]
    fn what_others_planted_is_not_swept_and_leads_nowhere() {
        let parent = tempfile::tempdir().unwrap();
        let victim = left(parent.path(), "victim", 0o700);
        let at = |name: &str| parent.path().join(name);
        symlink(&victim, at("steelyard-bench-link")).unwrap();
        // Others may write in it, and so have put links there.
        let open = left(parent.path(), "steelyard-bench-open", 0o777);
        // A lock that is a link: not ours to open.
        let locked = left(parent.path(), "steelyard-bench-lock", 0o700);
        fs::remove_file(locked.join(LOCK)).unwrap();
        symlink(victim.join(LOCK), locked.join(LOCK)).unwrap();
        // What is swept, with links in it.
        let dead = left(parent.path(), "steelyard-bench-dead", 0o700);
        symlink(&victim, dead.join("folder")).unwrap();
        symlink(victim.join("data"), dead.join("file")).unwrap();
        let stranger = nix::unistd::geteuid().is_root().then(|| {
            let folder = left(parent.path(), "steelyard-bench-stranger", 0o700);
            chown(&folder, Some(65_533), None).unwrap();
            folder
        });
        drop(Scratch::new(Some(parent.path())).unwrap());
        assert!(!dead.exists());
        assert!(victim.join("data").exists() && victim.join(LOCK).exists());
        assert!(open.join("data").exists() && locked.join("data").exists());
        assert!(fs::symlink_metadata(at("steelyard-bench-link")).is_ok());
        assert!(stranger.is_none_or(|folder| folder.join("data").exists()));
    }

    #[test]
    fn what_a_process_has_no_time_to_remove_is_removed_after_its_end() {
        let parent = tempfile::tempdir().unwrap();
        let folder = left(parent.path(), "it's -a \"$folder\"", 0o700);
        let mut shell = removal(&folder).spawn().unwrap();
        assert!(folder.exists());
        drop(shell.stdin.take());
        assert!(shell.wait().unwrap().success() && !folder.exists());
    }

    #[test]
    fn a_name_is_never_taken_over() {
        let parent = tempfile::tempdir().unwrap();
        // Whatever an attacker guesses from the process is not its name.
        let process = std::process::id();
        for n in 0..10 {
            symlink("/nonexistent", parent.path().join(format!("{NAME}{process}-{n}"))).unwrap();
        }
        let one = Scratch::new(Some(parent.path())).unwrap();
        let two = Scratch::new(Some(parent.path())).unwrap();
        assert_ne!(one.path(), two.path());
        for scratch in [&one, &two] {
            assert!(!scratch.path().display().to_string().contains(&format!("-{process}")));
            assert!(fs::symlink_metadata(scratch.path()).unwrap().is_dir());
        }
    }
}
