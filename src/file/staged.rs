//! Writing a file so that there is the whole of it or nothing.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use crate::{Error, Result};

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
        let open = || -> io::Result<Staged> {
            // A link stays; what it points to is replaced.
            let target = match fs::symlink_metadata(path) {
                Ok(there) if there.is_symlink() => fs::canonicalize(path)?,
                _ => path.to_owned(),
            };
            let there = fs::metadata(&target).ok();
            if there.as_ref().is_some_and(|m| !m.is_file()) {
                let file = OpenOptions::new().write(true).open(&target)?;
                return Ok(Staged { file, target, temporary: None, sync });
            }
            let (file, temporary) = temporary(&target)?;
            let staged = Staged { file, target, temporary: Some(temporary), sync };
            if let Some(there) = there {
                staged.file.set_permissions(there.permissions())?;
            }
            Ok(staged)
        };
        open().map_err(|e| Error::from(e).in_place(path.display().to_string()))
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

/// A new file in the folder of `target`, under a name that is free.
fn temporary(target: &Path) -> io::Result<(File, PathBuf)> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!(".{name}.{}-{count}.part", std::process::id());
        let path = folder_of(target).join(name);
        let mut names = half();
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => {
                names.push(path.clone());
                return Ok((file, path));
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
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
    fn a_missing_folder_is_named() {
        let error = Staged::create(Path::new("no/such/folder/a"), false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().starts_with("no/such/folder/a: "), "{error}");
    }
}
