//! The results of the last bench, kept for `steelyard report`: in the user's cache folder, which only the user can read.

use std::{
    env, fs,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use steelyard::{
    Error, ErrorKind, Result,
    bench::{results::Results, save},
};

/// Packed, as results of many rounds are large.
const NAME: &str = "last-results.json.zst";

/// `$STEELYARD_CACHE`, else `$XDG_CACHE_HOME/steelyard`, else `~/.cache/steelyard`.
fn folder() -> Option<PathBuf> {
    let absolute =
        |name: &str| env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    if let Some(own) = absolute("STEELYARD_CACHE") {
        return Some(own);
    }
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(cache.join("steelyard"))
}

/// Keeps the runs of a bench in place of those before; says whether that was possible.
pub fn keep(runs: &[Results]) -> bool {
    let put = |folder: &Path| -> Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        save::write_runs(runs, &folder.join(NAME))
    };
    folder().is_some_and(|folder| put(&folder).is_ok())
}

/// The file of the last results.
///
/// # Errors
/// [`NotFound`](ErrorKind::NotFound) where no bench has run yet.
pub fn found() -> Result<PathBuf> {
    let path = folder().map(|folder| folder.join(NAME)).filter(|path| path.is_file());
    path.ok_or_else(|| {
        Error::new(
            ErrorKind::NotFound,
            "no results are kept yet; run steelyard bench, or name a file that --out has written",
        )
    })
}
