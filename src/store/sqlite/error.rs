//! What is said of SQLite's errors.

use rusqlite::ErrorCode;

use crate::{Error, ErrorKind};

/// An error of SQLite as one of ours.
pub fn error(e: rusqlite::Error) -> Error {
    let kind = match &e {
        rusqlite::Error::SqliteFailure(failure, _) => match failure.code {
            ErrorCode::ConstraintViolation => ErrorKind::Conflict,
            // It has waited for the lock as long as an operation may take.
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => ErrorKind::Timeout,
            ErrorCode::OperationInterrupted => ErrorKind::Unavailable,
            ErrorCode::TooBig => ErrorKind::TooLarge,
            ErrorCode::PermissionDenied | ErrorCode::ReadOnly => ErrorKind::Denied,
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => ErrorKind::Malformed,
            _ => kind_of(&e),
        },
        _ => kind_of(&e),
    };
    Error::new(kind, e.to_string())
}

/// SQLite tells of its limits in words only.
fn kind_of(e: &rusqlite::Error) -> ErrorKind {
    let text = e.to_string();
    match ["too many", "too large"].iter().any(|words| text.contains(words)) {
        true => ErrorKind::TooLarge,
        false => ErrorKind::Io,
    }
}
