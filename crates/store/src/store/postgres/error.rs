//! Errors of PostgreSQL as ours, by their SQLSTATE (PostgreSQL's manual, appendix A).

use super::watch;
use crate::{Error, ErrorKind};

/// An error of the client as one of ours.
pub(super) fn error(e: tokio_postgres::Error) -> Error {
    if let Some(told) = e.as_db_error() {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let told = Told {
            code: told.code().code().to_owned(),
            fatal: false,
            message: told.message().to_owned(),
            detail: owned(told.detail()),
            hint: owned(told.hint()),
            place: owned(told.where_()),
        };
        return told.into_error();
    }
    let mut what = e.to_string();
    let mut source = std::error::Error::source(&e);
    while let Some(cause) = source {
        what += &format!(": {cause}");
        source = cause.source();
    }
    let has = |text: &str| what.contains(text);
    if has("server does not support TLS") {
        let what = "the server does not support TLS, which ?tls=true requires";
        return Error::unsupported(what).with_source(e);
    }
    let kind = match () {
        // It wants a password, or another way to log in than we know.
        () if has("authentication error") || has("invalid configuration") => ErrorKind::Denied,
        () if has(watch::TOO_LONG) => ErrorKind::Malformed,
        () if has("serializing parameter") || has("encoding message") => ErrorKind::Invalid,
        () => ErrorKind::Unavailable,
    };
    Error::new(kind, what).with_source(e)
}

fn kind(code: &str) -> ErrorKind {
    match code {
        "23505" | "42P04" | "42P07" | "42710" | "42809" => ErrorKind::Conflict,
        "42501" | "25006" => ErrorKind::Denied,
        "42P01" | "3D000" | "3F000" => ErrorKind::NotFound,
        "22001" => ErrorKind::TooLarge,
        "53100" => ErrorKind::Full,
        // The server's own limit, which is the client's (statement_timeout), or that of a lock.
        "57014" | "55P03" => ErrorKind::Timeout,
        _ => match code.get(..2).unwrap_or_default() {
            // Connections; too few resources; locks and deadlocks; an operator, or a timeout.
            "08" | "53" | "40" | "55" | "57" => ErrorKind::Unavailable,
            "28" => ErrorKind::Denied,
            "54" => ErrorKind::TooLarge,
            "0A" => ErrorKind::Unsupported,
            "22" | "23" | "42" => ErrorKind::Invalid,
            _ => ErrorKind::Io,
        },
    }
}

/// What the server said, cut where it is long.
fn text(message: &str, more: &[Option<&str>]) -> String {
    const LONG: usize = 300;
    let mut what = message.to_owned();
    for more in more.iter().flatten() {
        what += "; ";
        what += more;
    }
    match what.char_indices().nth(LONG) {
        None => what,
        Some((end, _)) => format!("{}…", &what[..end]),
    }
}

/// What a server says it will not do: the fields of
/// <https://www.postgresql.org/docs/current/protocol-error-fields.html>.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub code: String,
    /// The server hangs up.
    pub fatal: bool,
    message: String,
    detail: Option<String>,
    hint: Option<String>,
    place: Option<String>,
}

impl Told {
    /// From the body of its message.
    pub(super) fn read(body: &[u8]) -> Told {
        let mut told = Told::default();
        for field in body.split(|byte| *byte == 0) {
            let Some((kind, text)) = field.split_first() else { continue };
            let text = || String::from_utf8_lossy(text).into_owned();
            match kind {
                b'V' => told.fatal = text() != "ERROR",
                b'C' => told.code = text(),
                b'M' => told.message = text(),
                b'D' => told.detail = Some(text()),
                b'H' => told.hint = Some(text()),
                b'W' => told.place = Some(text()),
                _ => {}
            }
        }
        told
    }

    pub(super) fn into_error(self) -> Error {
        let what = text(&self.message, &[self.detail.as_deref(), self.hint.as_deref()]);
        Error::new(kind(&self.code), what).with_source(self)
    }
}

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The words are those of the error that this is the source of.
        write!(f, "SQLSTATE {}", self.code)
    }
}

impl std::error::Error for Told {}

/// The error of something of the server's: its SQLSTATE.
pub(super) fn code(e: &Error) -> Option<&str> {
    Some(told(e)?.0)
}

/// Whether it is about a value: its form or range, that it is missing, or that it breaks a rule of the table.
pub(super) fn is_of_value(e: &Error) -> bool {
    code(e).is_some_and(|code| code.starts_with("22") || matches!(code, "23502" | "23514"))
}

/// Whether it is about a record: the form or range of a value, or a rule of the table that it breaks.
pub(super) fn is_of_record(e: &Error) -> bool {
    code(e).is_some_and(|code| code.starts_with("22") || code.starts_with("23"))
}

/// Whether the server has undone what was asked, because others were in its way: a conflict of transactions, a deadlock.
pub(super) fn is_undone(e: &Error) -> bool {
    matches!(code(e), Some("40001" | "40P01"))
}

/// Which row of a `COPY` the server was at, from 1.
pub(super) fn row(e: &Error) -> Option<usize> {
    let place = told(e)?.1?;
    let (_, rest) = place.split_once(", line ")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The code, and where it happened.
fn told(e: &Error) -> Option<(&str, Option<&str>)> {
    let told: &Told = std::error::Error::source(e)?.downcast_ref()?;
    Some((&told.code, told.place.as_deref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_become_kinds() {
        for (code, want) in [
            ("08006", ErrorKind::Unavailable),
            ("57P01", ErrorKind::Unavailable),
            ("57014", ErrorKind::Timeout),
            ("53300", ErrorKind::Unavailable),
            ("53100", ErrorKind::Full),
            ("40P01", ErrorKind::Unavailable),
            ("23505", ErrorKind::Conflict),
            ("23502", ErrorKind::Invalid),
            ("28P01", ErrorKind::Denied),
            ("42501", ErrorKind::Denied),
            ("22P02", ErrorKind::Invalid),
            ("22001", ErrorKind::TooLarge),
            ("54000", ErrorKind::TooLarge),
            ("42P01", ErrorKind::NotFound),
            ("XX000", ErrorKind::Io),
            ("", ErrorKind::Io),
        ] {
            assert_eq!(kind(code), want, "{code}");
        }
    }
}
