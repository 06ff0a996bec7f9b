//! Errors of the client as ours.

use crate::{
    Error, ErrorKind, Result,
    store::{Key, blobs::named, limits::unreached},
};

use super::listening::{TOO_LONG, WRONG};

/// An error of a key's object; the server's troubles are not the key's.
pub(super) fn of(key: &Key, error: Error) -> Error {
    match error.is_outage() {
        true => error,
        false => named(error, key),
    }
}

/// None where there is no such object.
pub(super) fn found<T>(answer: object_store::Result<T>) -> Result<Option<T>> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(object_store::Error::NotFound { ref source, .. })
            // Both are "not found" to the client.
            if !chain(&**source).contains("NoSuchBucket") =>
        {
            Ok(None)
        }
        Err(e) => Err(failed(e)),
    }
}

/// What an error and its sources say.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut error = error;
    while let Some(source) = error.source() {
        let said = source.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        error = source;
    }
    text
}

/// Whether a limit of the client passed, somewhere below.
fn timed_out(error: &(dyn std::error::Error + 'static)) -> bool {
    use object_store::client::{HttpError, HttpErrorKind};
    let mut next = Some(error);
    while let Some(cause) = next {
        let http = cause.downcast_ref::<HttpError>().map(HttpError::kind);
        let io = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        if http == Some(HttpErrorKind::Timeout) || io == Some(std::io::ErrorKind::TimedOut) {
            return true;
        }
        next = cause.source();
    }
    false
}

pub(super) fn failed(error: object_store::Error) -> Error {
    use object_store::Error as Of;
    let text = chain(&error);
    // Most answers come as text with XML in it.
    let said = |tag: &str| {
        let (_, rest) = text.split_once(&format!("<{tag}>"))?;
        Some(rest.split_once('<')?.0)
    };
    let code = said("Code").unwrap_or_default();
    let kind = match (&error, code) {
        (_, "NoSuchBucket") | (Of::NotFound { .. }, _) => ErrorKind::NotFound,
        (Of::PermissionDenied { .. } | Of::Unauthenticated { .. }, _)
        | (_, "AccessDenied" | "InvalidAccessKeyId" | "SignatureDoesNotMatch") => ErrorKind::Denied,
        (Of::AlreadyExists { .. } | Of::Precondition { .. }, _) => ErrorKind::Conflict,
        (Of::NotSupported { .. } | Of::NotImplemented { .. }, _) => ErrorKind::Unsupported,
        (_, "KeyTooLongError" | "EntityTooLarge") => ErrorKind::TooLarge,
        (Of::InvalidPath { .. } | Of::UnknownConfigurationKey { .. }, _) => ErrorKind::Invalid,
        _ if text.contains(TOO_LONG) || text.contains(WRONG) => ErrorKind::Malformed,
        _ if text.contains("status code: 4") => ErrorKind::Invalid,
        _ if timed_out(&error) => ErrorKind::Timeout,
        _ => ErrorKind::Unavailable,
    };
    let what = match said("Message") {
        Some(message) => format!("the server says {code}, {message:?}"),
        None if text.contains("(Connect)") && kind == ErrorKind::Timeout => CONNECTING.into(),
        None if text.contains("(Connect)") => return unreached(deepest(&error)).with_source(error),
        None => text,
    };
    Error::new(kind, what).with_source(error)
}

/// What stands for a connection that took too long, until its limit is known.
pub(super) const CONNECTING: &str = "connecting";

/// What an error comes from in the end.
fn deepest(error: &(dyn std::error::Error + 'static)) -> String {
    error.source().map_or_else(|| error.to_string(), deepest)
}
