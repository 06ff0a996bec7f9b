//! A folder for the files of a run, gone with it.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use crate::{Error, Result};

/// A folder of the run's own; dropping it removes it with all that is in it.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new folder in `parent`, or in the system's place for temporary files.
    ///
    /// # Errors
    /// Where none can be made there.
    pub fn new(parent: Option<&Path>) -> Result<Scratch> {
        let parent = parent.map_or_else(std::env::temp_dir, Path::to_path_buf);
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let (process, run) = (std::process::id(), NEXT.fetch_add(1, Relaxed));
        let path = parent.join(format!("steelyard-bench-{process}-{run}"));
        // Of a run that was killed and had our numbers.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path)
            .map_err(|e| Error::from(e).in_place(path.display().to_string()))?;
        Ok(Scratch(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
