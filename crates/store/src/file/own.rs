//! Opening a file that is written to where it stands: a journal, rejected records of a copy that goes on.
//!
//! In a folder where others may make files, as `/tmp`, they may have put something under a name that can be
//! guessed. What is no file of this user is not written to.

use std::{
    fs::File,
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
};

use nix::{errno::Errno, fcntl::OFlag, unistd::geteuid};

use crate::{Error, ErrorKind, Result, link};

/// Opens the file at `path` to read it and to append to it, and makes it with the permissions `mode` where there is
/// none. Errors call it `what`; what to do about them is `advice`.
///
/// # Errors
/// [`Denied`](ErrorKind::Denied) where it is a link, a pipe, a device or another user's file.
pub fn open_own(path: &Path, mode: u32, what: &str, advice: &str) -> Result<File> {
    let open = || -> Result<File> {
        let refused = |is: &str| {
            let what = format!("{what} {is}, perhaps made by another user");
            Error::new(ErrorKind::Denied, what).with_hint(advice)
        };
        link::followed(path)?;
        // A pipe is not waited for.
        let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
        let mut options = File::options();
        options.create(true).read(true).append(true).mode(mode).custom_flags(flags.bits());
        let file = match options.open(path) {
            Ok(file) => file,
            Err(e) if is(&e, Errno::ELOOP) => return Err(refused("is a link")),
            Err(e) if is(&e, Errno::ENXIO) => return Err(refused("is not a file")),
            Err(e) => return Err(e.into()),
        };
        let data = file.metadata()?;
        match data.is_file() {
            false => Err(refused("is not a file")),
            true if data.uid() != geteuid().as_raw() => Err(refused("belongs to another user")),
            true => Ok(file),
        }
    };
    open().map_err(|e| e.in_place(path.display().to_string()))
}

fn is(error: &io::Error, number: Errno) -> bool {
    error.raw_os_error() == Some(number as i32)
}
