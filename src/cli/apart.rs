//! Checks that a file which a command writes is not also one that it reads, or another one that it writes.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use steelyard::{Error, Result, store};

/// A file of the command line, and what it is there: `the source`, `--rejects`.
pub struct Named(&'static str, PathBuf);

impl Named {
    pub fn new(what: &'static str, path: impl Into<PathBuf>) -> Named {
        Named(what, path.into())
    }

    /// What is read or written by a name that may be that of a file, `-`, or the URL of a store; none where that is
    /// no file. `standard` is what `-` stands for.
    pub fn of(what: &'static str, name: &str, standard: &str) -> Option<Named> {
        let path = match store::Url::parse(name) {
            Ok(url) if ["sqlite", "dir"].contains(&&*url.scheme) => url.file_path(),
            Ok(_) if store::is_url(name) => return None,
            _ if name == "-" => standard.to_owned(),
            _ => name.to_owned(),
        };
        Some(Named(what, path.into()))
    }

    /// The same file has the same, whatever it is called.
    fn identity(&self) -> Option<(u64, u64, PathBuf)> {
        if let Ok(there) = fs::metadata(&self.1) {
            return Some((there.dev(), there.ino(), PathBuf::new()));
        }
        let folder = match self.1.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let folder = fs::metadata(folder).ok()?;
        Some((folder.dev(), folder.ino(), self.1.file_name()?.into()))
    }
}

/// Files that are `written` must be none of the others, nor one another.
///
/// # Errors
/// [`Invalid`](steelyard::ErrorKind::Invalid), naming both.
pub fn apart(written: &[Named], others: &[Named]) -> Result<()> {
    for (i, one) in written.iter().enumerate() {
        let Some(identity) = one.identity() else { continue };
        // What is no ordinary file (a terminal, a pipe, /dev/null) may be several things.
        if fs::metadata(&one.1).is_ok_and(|there| !there.is_file()) {
            continue;
        }
        let same = |other: &&Named| other.identity().as_ref() == Some(&identity);
        if let Some(other) = written[..i].iter().chain(others).find(same) {
            let what = format!(
                "{} and {} are the same file, which would be overwritten; name another one",
                one.0, other.0
            );
            return Err(Error::invalid(what).in_place(one.1.display().to_string()));
        }
    }
    Ok(())
}
