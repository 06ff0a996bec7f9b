//! The files of records: opened, read, and the errors of what is none.

use std::{
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use nix::{errno::Errno, fcntl::OFlag};

use crate::{Error, ErrorKind, store::Key};

/// Opens a file to read it: no link is followed, and no pipe waited for.
pub(super) fn opened(path: &Path) -> io::Result<File> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    File::options().read(true).custom_flags(flags.bits()).open(path)
}

/// What stands in a file of about so many bytes, with the calls that fs::read makes where it is small.
pub(super) fn content(file: &mut File, bytes: u64) -> io::Result<Vec<u8>> {
    const SMALL: u64 = 64 << 10;
    let mut content = Vec::new();
    if bytes <= SMALL {
        // One byte more, so that the second call finds the end.
        content.resize(bytes as usize + 1, 0);
        let mut filled = 0;
        while filled < content.len() {
            match file.read(&mut content[filled..]) {
                Ok(0) => {
                    content.truncate(filled);
                    return Ok(content);
                }
                Ok(n) => filled += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
    // It is large, or has grown.
    file.read_to_end(&mut content)?;
    Ok(content)
}

/// The error of something that has the name of a record.
pub(super) fn no_file(key: &Key, path: &Path) -> Error {
    let what = format!(
        "key {}: {} is a link or not a regular file, and is neither read nor replaced; remove it",
        key.shown(),
        path.display()
    );
    Error::new(ErrorKind::Denied, what)
}

/// A link, or a socket.
pub(super) fn is_no_file(error: &io::Error) -> bool {
    [Errno::ELOOP, Errno::ENXIO].iter().any(|no| error.raw_os_error() == Some(*no as i32))
}

/// As files usually have them, not those of temporary ones.
pub(super) fn permissions() -> fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    fs::Permissions::from_mode(0o666)
}

pub(super) fn taken(key: &Key) -> Error {
    Error::new(ErrorKind::Conflict, format!("key {} already exists", key.shown()))
}

/// Not there, or with a name that none can have.
pub(super) fn is_none(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidFilename)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_whole_whatever_its_size() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        for bytes in [0, 1, 100, 65_535, 65_536, 65_537, 1 << 20] {
            let want: Vec<u8> = (0..bytes).map(|n| n as u8).collect();
            fs::write(&path, &want).unwrap();
            // It may have shrunk or grown since its size was asked for.
            for told in [bytes, bytes / 2, bytes * 2] {
                let got = content(&mut opened(&path).unwrap(), told as u64).unwrap();
                assert!(got == want, "{bytes} {told}");
            }
        }
    }
}
