//! Maps the server's errors to error kinds.

use mongodb::error::ErrorKind as Theirs;

use crate::{Error, ErrorKind, store::limits::unreached};

/// The code of a key that is taken.
pub(super) const DUPLICATE: i32 = 11000;

/// An error of the client. Its text names servers and fields, never a password.
pub(super) fn ours(error: mongodb::error::Error) -> Error {
    let (kind, what) = match &*error.kind {
        Theirs::Authentication { message, .. } => (ErrorKind::Denied, message.clone()),
        // FerretDB, of the PostgreSQL behind it.
        Theirs::Command(e) if e.code == INTERNAL && is_gone(&e.message) => {
            (ErrorKind::Unavailable, said(e.code, &e.code_name, &e.message))
        }
        Theirs::Command(e) => (of_code(e.code), said(e.code, &e.code_name, &e.message)),
        Theirs::Io(e) if e.kind() == std::io::ErrorKind::TimedOut => {
            (ErrorKind::Timeout, format!("the connection: {e}"))
        }
        Theirs::Io(e) => (ErrorKind::Unavailable, format!("the connection: {e}")),
        Theirs::ServerSelection { message, .. } if message.contains("uthentication failed") => {
            (ErrorKind::Denied, message.clone())
        }
        // It has tried again and again for as long as connecting may take, and says in the middle of
        // much else why the first of its servers was of no use.
        Theirs::ServerSelection { message, .. } => match cause(message) {
            Some(cause) if cause.contains("timed out") => (ErrorKind::Timeout, cause.to_owned()),
            Some(cause) => return unreached(cause),
            // After that it prints all it knows of its servers, as Rust sees it.
            None => {
                let what = message.split_once(" Topology:").map_or(&**message, |(what, _)| what);
                (ErrorKind::Timeout, what.to_owned())
            }
        },
        Theirs::DnsResolve { message, .. } => return unreached(unresolved(message)),
        Theirs::ConnectionPoolCleared { message, .. } => (ErrorKind::Unavailable, message.clone()),
        Theirs::Shutdown => (ErrorKind::Unavailable, error.kind.to_string()),
        // What the client says of a length that is less than nothing.
        Theirs::InvalidArgument { message, .. } if message.contains("integral type conversion") => {
            (ErrorKind::Malformed, "the server's answer has an invalid length".into())
        }
        Theirs::InvalidArgument { message, .. } => (ErrorKind::Invalid, message.clone()),
        Theirs::InvalidTlsConfig { message, .. } => (ErrorKind::Invalid, message.clone()),
        Theirs::IncompatibleServer { message, .. } => (ErrorKind::Unsupported, message.clone()),
        Theirs::InvalidResponse { .. } | Theirs::Bson(_) => {
            (ErrorKind::Malformed, error.kind.to_string())
        }
        other => (ErrorKind::Io, other.to_string()),
    };
    Error::new(kind, what.clone()).with_source(Told { what, error })
}

/// An error of the client in our words: its own end in all its fields as Rust prints them.
#[derive(Debug)]
struct Told {
    what: String,
    error: mongodb::error::Error,
}

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Told {}

/// The client's error that became this one of ours.
pub(super) fn theirs(e: &Error) -> Option<&mongodb::error::Error> {
    let told: &Told = std::error::Error::source(e)?.downcast_ref()?;
    Some(&told.error)
}

/// A name that has no servers, out of the question to the DNS as Rust prints it.
fn unresolved(message: &str) -> String {
    let name = message.split_once("name: Name(\"").and_then(|(_, rest)| rest.split_once('"'));
    match name {
        Some((name, _)) => format!("no DNS record {}", name.trim_end_matches('.')),
        None => message.to_owned(),
    }
}

/// The cause of a connection that could not be made, out of what is told of all servers.
fn cause(message: &str) -> Option<&str> {
    let (_, cause) = message.split_once("I/O error: ")?;
    Some(cause.split_once(", labels:").map_or(cause, |(cause, _)| cause))
}

/// Whether an error says that no connection was made in time.
pub(super) fn never_connected(e: &Error) -> bool {
    e.is_timeout()
        && theirs(e)
            .is_some_and(|e| matches!(*e.kind, Theirs::ServerSelection { .. } | Theirs::Io(_)))
}

/// What a server says, with its code.
pub(super) fn said(code: i32, name: &str, message: &str) -> String {
    match name {
        "" => format!("{message} (code {code})"),
        name => format!("{message} ({name}, code {code})"),
    }
}

/// The kind of a code of MongoDB's (src/mongo/base/error_codes.yml of its source).
/// The code of what a server did not expect itself.
const INTERNAL: i32 = 1;

/// Whether a server says that the one behind it cannot be reached, or went away.
fn is_gone(message: &str) -> bool {
    const SIGNS: [&str; 8] = [
        "failed to connect to",
        "the database system is",
        "unexpected EOF",
        "broken pipe",
        "connection reset",
        "connection refused",
        "conn closed",
        "terminating connection",
    ];
    SIGNS.iter().any(|sign| message.contains(sign))
}

pub(super) fn of_code(code: i32) -> ErrorKind {
    match code {
        // Unauthorized, AuthenticationFailed, AtlasError, MechanismUnavailable.
        13 | 18 | 8000 | 334 => ErrorKind::Denied,
        DUPLICATE | 11001 | 12582 => ErrorKind::Conflict,
        // InvalidNamespace, BadValue, TypeMismatch, DollarPrefixedFieldName, ImmutableField.
        73 | 2 | 14 | 52 | 66 => ErrorKind::Invalid,
        // IndexOptionsConflict, IndexKeySpecsConflict, NamespaceExists, DocumentValidationFailure.
        85 | 86 | 48 | 121 => ErrorKind::Conflict,
        // BSONObjectTooLarge, and the same from before it had that name; KeyTooLong.
        10334 | 17419 | 17420 | 17280 | 261 => ErrorKind::TooLarge,
        // CommandNotFound, CommandNotSupported, NotImplemented.
        59 | 115 | 238 => ErrorKind::Unsupported,
        // OutOfDiskSpace.
        14031 => ErrorKind::Full,
        // MaxTimeMSExpired, NetworkTimeout, ExceededTimeLimit.
        50 | 89 | 262 => ErrorKind::Timeout,
        // Shutting down, no primary, the network.
        6 | 7 | 64 | 91 | 189 | 9001 | 10058 | 10107 | 11600 | 11602 | 13435 | 13436 => {
            ErrorKind::Unavailable
        }
        _ => ErrorKind::Io,
    }
}
