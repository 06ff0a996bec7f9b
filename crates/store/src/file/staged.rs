//! Writing a file so that there is the whole of it or nothing.
//!
//! A file that is not complete yet is locked by the process that writes it, so that what a process
//! left behind that was killed can be told from what one that lives is writing (`sweep.rs`).

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use super::sweep;
use crate::{Error, Result, link};

/// The temporary names there are.
static HALF: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn half() -> MutexGuard<'static, Vec<PathBuf>> {
    HALF.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file that takes its name only once it is complete.
///
/// It is written under another name in the same folder, and renamed by
/// [`commit`](Staged::commit). Dropped before, it is removed, and what was there under its name
/// stays as it was. What is no ordinary file (a device, a pipe) is written to as it is.
#[derive(Debug)]
pub struct Staged {
    file: File,
    target: PathBuf,
    /// The name until then; none for what is no ordinary file, or once it is committed.
    temporary: Option<PathBuf>,
    sync: bool,
}

impl Staged {
    /// Begins the file that will be called `path`. With `sync`, [`commit`](Staged::commit) waits
    /// until all of it is on the disk.
    ///
    /// # Errors
    /// Where the folder does not exist or may not be written to.
    pub fn create(path: &Path, sync: bool) -> Result<Staged> {
        // A link stays; what it points to is replaced.
        let target = match fs::symlink_metadata(path) {
            Ok(there) if there.is_symlink() => {
                let target = link::followed(path).and_then(|target| {
                    fs::metadata(&target)?;
                    Ok(target)
                });
                target.map_err(|e| e.in_place(path.display().to_string()))?
            }
            _ => path.to_owned(),
        };
        Staged::in_place_of_links(&target, sync)
    }

    /// Like [`create`](Staged::create), for a path that the user did not name: a link there may be another user's, so
    /// it is itself replaced, not followed.
    ///
    /// # Errors
    /// As [`create`](Staged::create).
    pub fn in_place_of_links(path: &Path, sync: bool) -> Result<Staged> {
        let open = || -> Result<Staged> {
            let target = path.to_owned();
            link::followed(folder_of(&target))?;
            let there = fs::symlink_metadata(&target).ok().filter(|there| !there.is_symlink());
            if there.as_ref().is_some_and(|m| !m.is_file()) {
                let file = OpenOptions::new().write(true).open(&target)?;
                return Ok(Staged { file, target, temporary: None, sync });
            }
            sweep::once(folder_of(&target), &file_name(&target)?);
            let (file, temporary) = temporary(&target)?;
            let staged = Staged { file, target, temporary: Some(temporary), sync };
            if let Some(there) = there {
                staged.file.set_permissions(there.permissions())?;
            }
            Ok(staged)
        };
        open().map_err(|e| e.in_place(path.display().to_string()))
    }

    /// Whether what was there before stays until [`commit`](Staged::commit).
    pub fn is_staged(&self) -> bool {
        self.temporary.is_some()
    }

    /// Removes every file that is not complete, for a process that is about to end. From then on
    /// no file is begun or completed: whoever tries waits for the end.
    pub fn abandon_all() {
        let names = half();
        for name in names.iter() {
            let _ = fs::remove_file(name);
        }
        std::mem::forget(names);
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// Where it cannot be renamed, or not brought to the disk.
    pub fn commit(mut self) -> Result<()> {
        let commit = |this: &mut Staged| -> io::Result<()> {
            let Some(temporary) = &this.temporary else { return Ok(()) };
            if this.sync {
                this.file.sync_all()?;
            }
            let mut names = half();
            fs::rename(temporary, &this.target)?;
            names.retain(|name| name != temporary);
            drop(names);
            this.temporary = None;
            if this.sync {
                // The name is the folder's to keep.
                File::open(folder_of(&this.target))?.sync_all()?;
            }
            Ok(())
        };
        let done = commit(&mut self);
        done.map_err(|e| Error::from(e).in_place(self.target.display().to_string()))
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // Whoever drops it has an error already, and a left-over name harms nobody.
            let mut names = half();
            let _ = fs::remove_file(temporary);
            names.retain(|name| name != temporary);
        }
    }
}

impl Write for Staged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

fn file_name(target: &Path) -> io::Result<String> {
    let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    Ok(name.to_string_lossy().into_owned())
}

/// A new file in the folder of `target`, under a name that is free, and locked.
fn temporary(target: &Path) -> io::Result<(File, PathBuf)> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = file_name(target)?;
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = folder_of(target).join(sweep::name(&name, std::process::id(), count));
        let mut names = half();
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) if is_ours(&file, &path) => {
                names.push(path.clone());
                return Ok((file, path));
            }
            // Another process took it for a left-over before it was locked: it removes it.
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
}

/// Locks a file that was just made; false where somebody was faster.
fn is_ours(file: &File, path: &Path) -> bool {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => return false,
        // Without locks nobody takes it for a left-over.
        Ok(()) | Err(TryLockError::Error(_)) => {}
    }
    // It may have been removed before it was locked.
    path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// A folder as /tmp, with a link of another user to a file of ours.
    #[test]
    fn links_that_others_planted_are_not_followed() {
        use std::os::unix::fs::{PermissionsExt, lchown, symlink};
        if !nix::unistd::geteuid().is_root() {
            return crate::skips::Missing::allowed("not root: a link of another user").say();
        }
        let folder = tempfile::tempdir().unwrap();
        let (link, victim) = (folder.path().join("o.json"), folder.path().join("victim"));
        for (mode, owner, follows) in
            [(0o1777, 65534, false), (0o1777, 0, true), (0o755, 65534, true)]
        {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
            fs::write(&victim, "precious").unwrap();
            let _ = fs::remove_file(&link);
            symlink(&victim, &link).unwrap();
            lchown(&link, Some(owner), None).unwrap();
            let made = Staged::create(&link, false).and_then(|mut staged| {
                staged.write_all(b"new")?;
                staged.commit()
            });
            assert_eq!(made.is_ok(), follows, "{mode:o} {owner}: {made:?}");
            let there = fs::read_to_string(&victim).unwrap();
            assert_eq!(there == "precious", !follows, "{mode:o} {owner}");
            if let Err(e) = made {
                assert!(e.to_string().contains("o.json is a link of another user"), "{e}");
            }
        }
    }

    #[test]
    fn there_is_all_of_it_or_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        for (text, sync) in [("first", false), ("second", true)] {
            let mut staged = Staged::create(&path, sync).unwrap();
            staged.write_all(text.as_bytes()).unwrap();
            assert_ne!(fs::read_to_string(&path).ok().as_deref(), Some(text));
            staged.commit().unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        let mut staged = Staged::create(&path, false).unwrap();
        staged.write_all(b"half").unwrap();
        drop(staged);
        assert_eq!(fs::read_to_string(&path).unwrap(), "second");
        assert_eq!(names(folder.path()), ["a.json"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_and_permissions_stay_and_devices_are_written_to() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("a"), folder.path().join("b"));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink("a", &link).unwrap();
        let mut staged = Staged::create(&link, false).unwrap();
        staged.write_all(b"new").unwrap();
        staged.commit().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let mut null = Staged::create(Path::new("/dev/null"), true).unwrap();
        null.write_all(b"gone").unwrap();
        null.commit().unwrap();
    }

    #[test]
    fn what_dead_processes_left_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        // A process that has ended, one that lives, and this one.
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let (dead, parent) = (ended.id(), std::os::unix::process::parent_id());
        let write = |name: &str| fs::write(folder.path().join(name), "half").unwrap();
        write(&sweep::name("a.json", dead, 3));
        let stay = [
            sweep::name("a.json", parent, 0),
            sweep::name("a.json", std::process::id(), 1 << 30),
            // Of another file, and what only looks like it.
            sweep::name("b.json", dead, 0),
            format!(".a.json.{dead}.part"),
            format!(".a.json.{dead}-x.part"),
            format!("a.json.{dead}-0.part"),
        ];
        stay.iter().for_each(|name| write(name));
        // A process that seems to have ended may live in another container: its file is locked.
        let locked = sweep::name("a.json", dead, 7);
        let file = File::create(folder.path().join(&locked)).unwrap();
        file.lock().unwrap();
        let mut staged = Staged::create(&path, false).unwrap();
        staged.write_all(b"whole").unwrap();
        staged.commit().unwrap();
        let mut want: Vec<String> = stay.into_iter().chain([locked, "a.json".into()]).collect();
        want.sort();
        assert_eq!(names(folder.path()), want);
        drop(file);
    }

    #[test]
    fn a_file_that_is_being_written_is_locked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        let staged = Staged::create(&path, false).unwrap();
        let part = File::open(folder.path().join(&names(folder.path())[0])).unwrap();
        assert!(matches!(part.try_lock(), Err(TryLockError::WouldBlock)));
        staged.commit().unwrap();
        part.try_lock().unwrap();
    }

    #[test]
    fn a_missing_folder_is_named() {
        let error = Staged::create(Path::new("no/such/folder/a"), false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().starts_with("no/such/folder/a: "), "{error}");
    }
}
