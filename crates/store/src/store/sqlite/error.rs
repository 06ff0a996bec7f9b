//! Maps SQLite's errors to error kinds and messages.

use rusqlite::{ErrorCode, ffi};

use crate::{
    Error, ErrorKind,
    store::{Key, sql::row::about},
};

/// An error of SQLite as one of ours.
pub(super) fn error(e: rusqlite::Error) -> Error {
    let kind = match &e {
        rusqlite::Error::SqliteFailure(failure, _) => match failure.code {
            ErrorCode::ConstraintViolation => match failure.extended_code {
                ffi::SQLITE_CONSTRAINT_PRIMARYKEY
                | ffi::SQLITE_CONSTRAINT_UNIQUE
                | ffi::SQLITE_CONSTRAINT_ROWID => ErrorKind::Conflict,
                // A rule for the record itself: CHECK, NOT NULL, a foreign key.
                _ => ErrorKind::Invalid,
            },
            // It has waited for the lock as long as an operation may take.
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => ErrorKind::Timeout,
            ErrorCode::OperationInterrupted => ErrorKind::Unavailable,
            ErrorCode::TooBig => ErrorKind::TooLarge,
            ErrorCode::DiskFull => ErrorKind::Full,
            // The index of its log cannot grow.
            _ if failure.extended_code == ffi::SQLITE_IOERR_SHMSIZE => ErrorKind::Full,
            ErrorCode::PermissionDenied | ErrorCode::ReadOnly => ErrorKind::Denied,
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => ErrorKind::Malformed,
            _ => kind_of(&e),
        },
        _ => kind_of(&e),
    };
    Error::new(kind, e.to_string())
}

/// The error of a row that was written, with its key where the row is the trouble.
pub(super) fn of_row(e: rusqlite::Error, key: &Key) -> Error {
    let e = error(e);
    match e.kind() {
        ErrorKind::Conflict | ErrorKind::Invalid | ErrorKind::TooLarge => about(e, key),
        _ => e,
    }
}

/// SQLite tells of its limits in words only.
fn kind_of(e: &rusqlite::Error) -> ErrorKind {
    let text = e.to_string();
    match ["too many", "too large"].iter().any(|words| text.contains(words)) {
        true => ErrorKind::TooLarge,
        false => ErrorKind::Io,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_become_kinds() {
        for (code, want) in [
            (ffi::SQLITE_FULL, ErrorKind::Full),
            (ffi::SQLITE_IOERR_SHMSIZE, ErrorKind::Full),
            (ffi::SQLITE_IOERR_WRITE, ErrorKind::Io),
            (ffi::SQLITE_BUSY, ErrorKind::Timeout),
            (ffi::SQLITE_READONLY, ErrorKind::Denied),
            (ffi::SQLITE_CONSTRAINT_PRIMARYKEY, ErrorKind::Conflict),
            (ffi::SQLITE_CONSTRAINT_CHECK, ErrorKind::Invalid),
        ] {
            let failure = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            assert_eq!(error(failure).kind(), want, "{code}");
        }
    }
}
