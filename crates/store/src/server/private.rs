//! Folders that only this user may enter. A folder is always newly created, an existing one is never taken over, and it
//! is removed only while it is still the one that was made. Its contents are removed through the open handle: if
//! another user has put a different folder, or a link, in its place, only that name is removed, and only if it is
//! empty.
//!
//! A folder has a file that stays locked for as long as the process that made it lives. A folder whose lock file is
//! there and unlocked was left behind by a process that was killed, and may be swept.

use std::{
    fs::{self, File, TryLockError},
    io,
    os::{
        fd::AsRawFd,
        unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    time::Duration,
};

use nix::{fcntl::OFlag, unistd::geteuid};

/// Random characters in the name of a folder. mkdir(2) fails where there is anything of that name.
const RANDOM: usize = 10;

/// The file that is locked as long as the process lives that made the folder.
const LOCK: &str = ".lock";

/// An open folder.
#[derive(Debug)]
pub struct PrivateFolder {
    path: PathBuf,
    open: File,
}

impl PrivateFolder {
    /// Makes a folder of a new name that begins so, which only this user may enter.
    ///
    /// # Errors
    /// Where none can be made; where what is there a moment later is not what was made.
    pub fn make(parent: &Path, prefix: &str) -> io::Result<PrivateFolder> {
        let made = tempfile::Builder::new()
            .prefix(prefix)
            .rand_bytes(RANDOM)
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(parent)?;
        let folder = PrivateFolder::open(made.path())?.ok_or_else(|| {
            let what = format!("{} is not the folder that was made", made.path().display());
            io::Error::new(io::ErrorKind::PermissionDenied, what)
        })?;
        // From here on it goes by `remove` only.
        let _ = made.keep();
        Ok(folder)
    }

    /// Opens a folder of this user that nobody else may enter; none where it is a link, no folder, somebody else's,
    /// or open to others.
    ///
    /// # Errors
    /// Of the system.
    pub fn open(path: &Path) -> io::Result<Option<PrivateFolder>> {
        PrivateFolder::open_of(path, |user| user == geteuid().as_raw())
    }

    /// The same of a folder of the users for whom `is_ours` holds.
    ///
    /// # Errors
    /// Of the system.
    pub fn open_of(
        path: &Path,
        is_ours: impl FnOnce(u32) -> bool,
    ) -> io::Result<Option<PrivateFolder>> {
        let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW;
        let open = match File::options().read(true).custom_flags(flags.bits()).open(path) {
            Ok(open) => open,
            Err(e)
                if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
            {
                return Ok(None);
            }
            Err(_) if fs::symlink_metadata(path).is_ok_and(|data| data.is_symlink()) => {
                return Ok(None);
            }
            Err(e) => return Err(e),
        };
        let data = open.metadata()?;
        let private = is_ours(data.uid()) && data.mode() & 0o077 == 0;
        Ok(private.then(|| PrivateFolder { path: path.to_owned(), open }))
    }

    /// Where it was made.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is in it, by way of the open folder.
    pub fn inside(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{name}", self.open.as_raw_fd()))
    }

    /// Opens a file in it, if it is one and no link. A pipe is not waited for.
    ///
    /// # Errors
    /// Of the system.
    pub fn file(&self, name: &str) -> io::Result<File> {
        let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
        File::options().read(true).custom_flags(flags.bits()).open(self.inside(name))
    }

    /// Shows that its process lives, until what is returned is dropped or the process ends, however it does.
    ///
    /// # Errors
    /// Of the system.
    pub fn lock(&self) -> io::Result<File> {
        // It has its name once it is locked: another process would sweep the folder else.
        let unnamed = self.inside(".new");
        let lock = File::create_new(&unnamed)?;
        lock.lock()?;
        fs::rename(unnamed, self.inside(LOCK))?;
        Ok(lock)
    }

    /// Whether its process has ended. False of a folder that is just being made, and of one with anything in it that
    /// nobody has ever locked.
    pub fn is_abandoned(&self) -> bool {
        const MAKING: Duration = Duration::from_secs(60);
        let Ok(lock) = self.file(LOCK) else {
            let empty = fs::read_dir(self.inside("")).is_ok_and(|mut all| all.next().is_none());
            let made = self.open.metadata().and_then(|data| data.modified());
            return empty && made.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > MAKING));
        };
        !matches!(lock.try_lock(), Err(TryLockError::WouldBlock | TryLockError::Error(_)))
    }

    /// What tells it from any other folder: `DEVICE:INODE`.
    ///
    /// # Errors
    /// Of the system.
    pub fn identity(&self) -> io::Result<String> {
        let data = self.open.metadata()?;
        Ok(format!("{}:{}", data.dev(), data.ino()))
    }

    /// Removes all that is in it, and then itself, if it still has its name.
    ///
    /// # Errors
    /// Of the system, where something stays.
    pub fn remove(&self) -> io::Result<()> {
        for entry in fs::read_dir(self.inside(""))? {
            let entry = entry?;
            // Neither follows links: a link is removed as such.
            match entry.file_type()?.is_dir() {
                true => fs::remove_dir_all(entry.path())?,
                false => fs::remove_file(entry.path())?,
            }
        }
        let (own, there) = (self.open.metadata()?, fs::symlink_metadata(&self.path)?);
        match (own.dev(), own.ino()) == (there.dev(), there.ino()) {
            true => fs::remove_dir(&self.path),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{DirBuilderExt, symlink};

    use super::*;

    fn folder(path: &Path, mode: u32) {
        fs::DirBuilder::new().mode(mode).create(path).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        fs::write(path.join("data"), "x").unwrap();
    }

    #[test]
    fn names_are_random_and_nobody_else_may_enter() {
        let parent = tempfile::tempdir().unwrap();
        let made: Vec<_> =
            (0..20).map(|_| PrivateFolder::make(parent.path(), "steelyard-").unwrap()).collect();
        let mut names: Vec<_> = made.iter().map(|one| one.path().to_owned()).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 20);
        for one in &made {
            let name = one.path().file_name().unwrap().to_str().unwrap();
            assert_eq!(name.len(), "steelyard-".len() + RANDOM);
            assert!(!name.contains(&std::process::id().to_string()), "{name}");
            assert_eq!(fs::metadata(one.path()).unwrap().mode() & 0o7777, 0o700);
        }
    }

    #[test]
    fn only_a_private_folder_of_this_user_is_opened() {
        let parent = tempfile::tempdir().unwrap();
        let at = |name: &str| parent.path().join(name);
        folder(&at("own"), 0o700);
        folder(&at("open"), 0o755);
        fs::write(at("file"), "x").unwrap();
        symlink(at("own"), at("link")).unwrap();
        symlink(at("nowhere"), at("dangling")).unwrap();
        let opened = |name: &str| PrivateFolder::open(&at(name)).unwrap().is_some();
        assert!(opened("own"));
        for name in ["open", "file", "link", "dangling", "missing"] {
            assert!(!opened(name), "{name}");
        }
        if geteuid().is_root() {
            std::os::unix::fs::chown(at("own"), Some(65_533), None).unwrap();
            assert!(!opened("own"), "somebody else's");
        }
    }

    #[test]
    fn what_links_lead_to_stays() {
        let parent = tempfile::tempdir().unwrap();
        let victim = parent.path().join("victim");
        folder(&victim, 0o700);
        let one = PrivateFolder::make(parent.path(), "steelyard-").unwrap();
        symlink(&victim, one.path().join("folder")).unwrap();
        symlink(victim.join("data"), one.path().join("file")).unwrap();
        folder(&one.path().join("inner"), 0o700);
        symlink(&victim, one.path().join("inner/deep")).unwrap();
        assert!(one.file("file").is_err(), "a link is no file of ours");
        one.remove().unwrap();
        assert!(!one.path().exists() && victim.join("data").exists());
    }

    #[test]
    fn what_stands_in_its_place_stays() {
        let parent = tempfile::tempdir().unwrap();
        let (moved, victim) = (parent.path().join("moved"), parent.path().join("victim"));
        folder(&victim, 0o700);
        for link in [false, true] {
            let one = PrivateFolder::make(parent.path(), "steelyard-").unwrap();
            fs::write(one.path().join("own"), "x").unwrap();
            fs::rename(one.path(), &moved).unwrap();
            match link {
                true => symlink(&victim, one.path()).unwrap(),
                false => folder(one.path(), 0o700),
            }
            one.remove().unwrap();
            assert!(one.path().join("data").exists() && victim.join("data").exists(), "{link}");
            assert!(!moved.join("own").exists(), "what was ours is removed where it is");
            fs::remove_dir(&moved).unwrap();
        }
    }
}
