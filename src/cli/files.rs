//! Opens the files of the command line, with an error that helps where the scheme of a store's URL is mistyped.

use std::path::Path;

use steelyard::{
    Error, Result,
    file::{Frames, Reading, Sink, Writing},
    store::{is_url, misnamed},
};

/// The error of `nosql:x`, where there is no file of that name.
fn mistaken(name: &str) -> Option<Error> {
    misnamed(name).filter(|_| !Path::new(name).exists())
}

/// A file is wanted: refuses the URL of a store. Whoever reads stores too has looked before.
pub fn no_store(name: &str) -> Result<()> {
    if !is_url(name) || Path::new(name).exists() {
        return Ok(());
    }
    let what = "expected a file, not the URL of a store: `steelyard copy URL FILE` writes its \
                records to a file, `steelyard show URL` shows them";
    Err(Error::invalid(what).in_place(name))
}

/// Opens a file to read.
pub fn open(name: &str, reading: &Reading) -> Result<Frames> {
    no_store(name)?;
    match mistaken(name) {
        Some(error) => Err(error),
        None => Frames::open(name, reading),
    }
}

/// Makes a file, or replaces the one that is there.
pub fn create(name: &str, writing: &Writing) -> Result<Sink> {
    match mistaken(name) {
        Some(error) => Err(error),
        None => Sink::create(name, writing),
    }
}
