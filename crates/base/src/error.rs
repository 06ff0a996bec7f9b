//! The one error type of the library.
//!
//! An [`Error`] carries a [`kind`](ErrorKind) to branch on, a sentence fragment that fits after
//! "failed to …: ", the [`Place`] it happened at where one is known, and its source. It must not
//! know any other room.

use std::{borrow::Cow, fmt};

/// What [`Error`]s are returned as.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// How many bytes of a text are told; the rest is only counted.
const TOLD: usize = 2000;
/// What is longer by this much is told whole: words around a text that was cut already.
const AROUND: usize = 500;

/// What stands between the part of a text that is told and how long it was.
#[doc(hidden)]
pub const CUT: &str = "… (";

/// What errors of servers that cannot be reached begin with, before the place and the cause.
const CANNOT_CONNECT: &str = "cannot connect";

/// Whether a terminal or a browser takes a character for an order: control characters, and those that turn the
/// direction of text.
pub fn gives_orders(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2066}'..='\u{2069}')
}

/// A text as messages tell it: cut where it is long, as what it quotes (an answer, a key, a record) can have any
/// length. Every error and every trouble of a record is told by this.
pub fn cut(text: &str) -> Cow<'_, str> {
    if text.len() <= TOLD + AROUND {
        return text.into();
    }
    let end = text.floor_char_boundary(TOLD);
    format!("{}{CUT}{} bytes)", &text[..end], text.len()).into()
}

/// What went wrong, for programs that branch on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system refused or failed (a device that fails, a pipe that is closed).
    Io,
    /// Bytes read from outside are not what their format says.
    Malformed,
    /// A request the caller can mend: an unknown name, a bad option, a contradictory wish.
    Invalid,
    /// The format or store cannot do this at all.
    Unsupported,
    /// A length, count or depth is over a limit.
    TooLarge,
    /// Figures that had to agree do not (a lost record, a copy that differs).
    Mismatch,
    /// There is no such record, file or place.
    NotFound,
    /// A server could not be reached, or hung up.
    Unavailable,
    /// A time limit passed: no connection, no free connection, or no answer within it. An operation
    /// that was already sent may or may not have been done.
    Timeout,
    /// The key is taken, or somebody else changed the record meanwhile.
    Conflict,
    /// The server knows who we are, or does not, and says no.
    Denied,
    /// There is no room left: a full disk, here or at the server, a quota of the file system, a store at its size limit.
    Full,
}

/// Where something happened: a file or URL (without its password), and a byte offset in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// File name or URL; empty where the caller knows it better.
    pub name: String,
    /// Byte offset from the start, uncompressed.
    pub offset: Option<u64>,
    /// Record number, from 1.
    pub record: Option<u64>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut gap = "";
        if !self.name.is_empty() {
            f.write_str(&cut(&self.name))?;
            gap = ", ";
        }
        if let Some(record) = self.record {
            write!(f, "{gap}record {record}")?;
            gap = ", ";
        }
        if let Some(offset) = self.offset {
            write!(f, "{gap}byte {offset}")?;
        }
        Ok(())
    }
}

/// An error of steelyard. Cheap to pass (one pointer), readable as a chain of sources.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    context: String,
    place: Place,
    hint: Option<String>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// An error of `kind`, with a fragment that says what is wrong and what to do, [`cut`] where it is long.
    pub fn new(kind: ErrorKind, context: impl Into<String>) -> Self {
        let mut context = context.into();
        if let Cow::Owned(short) = cut(&context) {
            context = short;
        }
        Error(Box::new(Inner { kind, context, place: Place::default(), hint: None, source: None }))
    }

    /// Shorthand for [`ErrorKind::Malformed`].
    pub fn malformed(context: impl Into<String>) -> Self {
        Self::new(ErrorKind::Malformed, context)
    }

    /// Shorthand for [`ErrorKind::Invalid`].
    pub fn invalid(context: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, context)
    }

    /// Shorthand for [`ErrorKind::Unsupported`].
    pub fn unsupported(context: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, context)
    }

    /// Shorthand for [`ErrorKind::Unavailable`].
    pub fn unavailable(context: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, context)
    }

    /// Shorthand for [`ErrorKind::Timeout`].
    pub fn timeout(context: impl Into<String>) -> Self {
        Self::new(ErrorKind::Timeout, context)
    }

    /// A server that cannot be reached: `cannot connect to PLACE: CAUSE`, where [`in_place`](Error::in_place)
    /// names the place.
    pub fn cannot_connect(kind: ErrorKind, cause: impl fmt::Display) -> Self {
        Self::new(kind, format!("{CANNOT_CONNECT}: {}", plain(&cause.to_string())))
    }

    /// The same error with what to do about it, which the command line prints as a line of its own. Only here may an
    /// error name options of the command line: whoever calls the library has none.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// The same error with what caused it.
    pub fn with_source(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// The same error, naming the file or URL, where none is named yet.
    pub fn in_place(mut self, name: impl Into<String>) -> Self {
        if self.0.place.name.is_empty() {
            self.0.place.name = name.into();
        }
        self
    }

    /// The same error at a byte offset; an offset already there is taken as relative to it.
    pub fn at(mut self, offset: u64) -> Self {
        let inner = self.0.place.offset.unwrap_or(0);
        self.0.place.offset = Some(offset + inner);
        self
    }

    /// The same error at a record number (from 1).
    pub fn at_record(mut self, record: u64) -> Self {
        self.0.place.record.get_or_insert(record);
        self
    }

    /// What went wrong, to branch on.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Whether a time limit passed: the operation may or may not have been done.
    pub fn is_timeout(&self) -> bool {
        self.kind() == ErrorKind::Timeout
    }

    /// Whether the server is the trouble, not the request: it could not be reached, hung up, or did
    /// not answer within the time limit.
    pub fn is_outage(&self) -> bool {
        matches!(self.kind(), ErrorKind::Unavailable | ErrorKind::Timeout)
    }

    /// Where it went wrong, as far as known.
    pub fn place(&self) -> &Place {
        &self.0.place
    }

    /// What the sources say, the nearest first, each [`cut`] where it is long: the sources themselves are whole.
    pub fn causes(&self) -> impl Iterator<Item = String> {
        let first = std::error::Error::source(self);
        std::iter::successors(first, |&cause| cause.source())
            .map(|cause| cut(&cause.to_string()).into_owned())
    }

    /// What to do about it, where there is more to say than the error itself does.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// The same without a text in what it says: one that nobody who reads it knows. Its sources stay as they are.
    pub fn without(mut self, text: &str) -> Self {
        if self.0.context.contains(text) {
            self.0.context = self.0.context.replace(text, "");
        }
        self
    }

    /// What is wrong, without place and source.
    pub fn context(&self) -> &str {
        &self.0.context
    }

    /// The error and what caused it, on one line; nothing is said twice.
    pub fn chain(&self) -> String {
        self.caused(self.to_string())
    }

    /// What is wrong and what caused it, without the place.
    pub fn reason(&self) -> String {
        self.caused(self.context().to_owned())
    }

    fn caused(&self, mut text: String) -> String {
        // It names its cause already, in fewer words than the cause does.
        if self.unreached().is_some() {
            return text;
        }
        for cause in self.causes() {
            // An I/O error is its own cause, and what wraps one says the same.
            let last = text.rfind(": ").map_or(0, |at| at + 2);
            let wraps = cause.strip_suffix(&text[last..]).is_some_and(|w| w.ends_with(": "));
            if !text.ends_with(&cause) && !wraps {
                text += ": ";
                text += &cause;
            }
        }
        text
    }

    /// Why a server cannot be reached, if that is the error.
    fn unreached(&self) -> Option<&str> {
        self.0.context.strip_prefix(CANNOT_CONNECT)?.strip_prefix(": ")
    }
}

/// A system's error as a part of a sentence: "Connection refused (os error 111)" is "connection refused".
fn plain(cause: &str) -> String {
    let cause = cause.strip_prefix("failed to lookup address information: ").unwrap_or(cause);
    let cause = cause.split_once(" (os error ").map_or(cause, |(cause, _)| cause);
    let mut chars = cause.chars();
    match (chars.next(), chars.next()) {
        // Not the first letter of an abbreviation.
        (Some(first), Some(second)) if first.is_ascii_uppercase() && second.is_lowercase() => {
            format!("{}{}", first.to_ascii_lowercase(), &cause[1..])
        }
        _ => cause.to_owned(),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(cause), false) = (self.unreached(), self.0.place.name.is_empty()) {
            return write!(f, "{CANNOT_CONNECT} to {}: {cause}", self.0.place);
        }
        if self.0.place != Place::default() {
            write!(f, "{}: ", self.0.place)?;
        }
        f.write_str(&self.0.context)
    }
}

/// The kind, and all that [`chain`](Error::chain) and [`hint`](Error::hint) say: what `unwrap` shows.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.0.kind, self.chain())?;
        self.hint().map_or(Ok(()), |hint| write!(f, " ({hint})"))
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|s| s as _)
    }
}

impl From<std::io::Error> for Error {
    fn from(e: std::io::Error) -> Self {
        let kind = match e.kind() {
            std::io::ErrorKind::NotFound => ErrorKind::NotFound,
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => ErrorKind::Full,
            _ => ErrorKind::Io,
        };
        Error::new(kind, e.to_string()).with_source(e)
    }
}

impl serde::de::Error for Error {
    fn custom<T: fmt::Display>(msg: T) -> Self {
        Error::malformed(msg.to_string())
    }
}

impl serde::ser::Error for Error {
    fn custom<T: fmt::Display>(msg: T) -> Self {
        Error::unsupported(msg.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_a_kind_whatever_its_text_says() {
        let error = Error::timeout("no answer within 5 s");
        let told_again = Error::new(error.kind(), "key \"a\": late").with_source(error);
        assert!(told_again.is_timeout() && told_again.is_outage());
        let other = Error::unavailable("no answer from a server that is not there");
        assert!(!other.is_timeout() && other.is_outage());
    }

    #[test]
    fn long_texts_are_cut_and_sources_are_whole() {
        let long = "ä".repeat(150_000);
        let source = std::io::Error::other(long.clone());
        let error = Error::malformed(format!("x{long}")).in_place(&*long).with_source(source);
        assert!(error.context().ends_with("ä… (300001 bytes)"), "{}", error.context());
        assert!(error.to_string().len() < 3 * TOLD && format!("{error:?}").len() < 4 * TOLD);
        assert!(error.causes().all(|cause| cause.ends_with("… (300000 bytes)")));
        let source = std::error::Error::source(&error).unwrap();
        assert_eq!(source.to_string(), long);
        // Told again with words around it, it is not cut again.
        let again = Error::malformed(format!("key 7: {}; try less", error.context()));
        assert!(again.context().ends_with("(300001 bytes); try less"));
        assert_eq!(cut(&"x".repeat(TOLD + AROUND)).len(), TOLD + AROUND);
    }

    #[test]
    fn a_cause_is_told_once_and_every_other_one() {
        let of = |what: &str, cause: &str| {
            Error::new(ErrorKind::Io, what).with_source(std::io::Error::other(cause)).chain()
        };
        assert_eq!(of("no way: refused", "refused"), "no way: refused");
        assert_eq!(of("no way: refused", "while asking: refused"), "no way: refused");
        // What merely ends alike is another cause.
        assert_eq!(of("line 3", "byte 13"), "line 3: byte 13");
        assert_eq!(of("at: 3", "byte 13"), "at: 3: byte 13");
        assert_eq!(of("x", "refused (os error 3)"), "x: refused (os error 3)");
    }

    #[test]
    fn a_server_that_cannot_be_reached_is_told_once() {
        let refused = std::io::Error::from_raw_os_error(111);
        let error = Error::cannot_connect(ErrorKind::Unavailable, &refused).with_source(refused);
        assert_eq!(error.chain(), "cannot connect: connection refused");
        let error = error.in_place("db:5432").with_hint("start it");
        assert_eq!(error.chain(), "cannot connect to db:5432: connection refused");
        assert_eq!(error.reason(), "cannot connect: connection refused");
        assert_eq!((error.kind(), error.hint()), (ErrorKind::Unavailable, Some("start it")));
        let of = |cause: &str| Error::cannot_connect(ErrorKind::Unavailable, cause).reason();
        assert_eq!(of("TLS is needed"), "cannot connect: TLS is needed");
        assert_eq!(of(""), "cannot connect: ");
    }

    #[test]
    fn debug_says_everything_once() {
        let io = || std::io::Error::other("disk on fire");
        let error = Error::from(io()).in_place("a.json").at_record(3).with_hint("get a bucket");
        assert_eq!(format!("{error:?}"), "Io: a.json, record 3: disk on fire (get a bucket)");
        // Told again, with the first as its source.
        let inner = Error::malformed("key 7: no value").at(12).with_source(io());
        let outer = Error::malformed(format!("in t: {}", inner.context())).with_source(inner);
        assert_eq!(format!("{outer:?}"), "Malformed: in t: key 7: no value: disk on fire");
        let error = Error::cannot_connect(ErrorKind::Unavailable, "refused").in_place("db:1");
        let error = error.with_source(io());
        assert_eq!(format!("{error:?}"), "Unavailable: cannot connect to db:1: refused");
    }

    #[test]
    fn a_full_disk_is_a_kind_whoever_says_so() {
        const ENOSPC: i32 = 28;
        const EDQUOT: i32 = 122;
        for errno in [ENOSPC, EDQUOT] {
            let error = Error::from(std::io::Error::from_raw_os_error(errno));
            assert_eq!(error.kind(), ErrorKind::Full, "{error}");
        }
        assert_eq!(Error::from(std::io::Error::from_raw_os_error(5)).kind(), ErrorKind::Io);
    }

    #[test]
    fn names_the_place_before_the_trouble() {
        let e = Error::malformed("no terminator").at(7).at(100).at_record(3).in_place("a.mrc");
        assert_eq!(e.to_string(), "a.mrc, record 3, byte 107: no terminator");
    }
}
