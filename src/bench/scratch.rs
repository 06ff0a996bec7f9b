//! A folder for the files of a run, gone with it.

use std::{
    fs,
    path::{Path, PathBuf},
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
        let failed = |e: std::io::Error| Error::from(e).in_place(parent.display().to_string());
        fs::create_dir_all(&parent).map_err(failed)?;
        // Nobody else may look into it, and its name cannot be guessed and taken beforehand.
        let folder = tempfile::Builder::new().prefix("steelyard-bench-").tempdir_in(&parent);
        Ok(Scratch(folder.map_err(failed)?.keep()))
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
