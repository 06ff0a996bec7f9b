//! Framing: how records follow one another in a file. Pure: it finds the boundaries between records in bytes.
//!
//! A [`Framer`] is handed the bytes that begin where it last stopped, and says what comes
//! [`Next`]: a record, bytes that are none, a bad stretch after which reading goes on, or that it
//! must see more. A [`Glue`] is the way back: what a writer puts before, between and after
//! records.
//!
//! JSON is read in all the ways it is met: a record a line, records that span lines, and a whole
//! file as one array. A file that begins with `[` and then `{` is such an array, unless its first
//! line is a whole list and the next begins another; any other file is taken for lines if its first
//! record ends with its line.
//!
//! To add a framing: a variant of [`Framing`], its `Rule` and, for the writer, its arm in
//! `glue.rs`. To add a format whose records say where they end: its `length` in `length_of`.

mod glue;
mod json;
mod scan;

pub use glue::Glue;
pub(super) use scan::check_depth;

use std::ops::Range;

use super::{Format, Framing, Wrapped, bson, cbor, csv, marshal, msgpack, pickle};
use crate::{
    Error, ErrorKind, Result,
    marc::{
        Frame, RECORD_END,
        iso2709::{self, Run, Zeros},
        xml,
    },
};

/// How large a record may be, in bytes, where nothing else is asked for.
pub const MAX_RECORD: usize = 64 << 20;

/// Tells how many bytes the record at the start of some bytes has, or `None` where they end too
/// early to tell.
type Length = fn(&[u8]) -> Result<Option<usize>>;

/// How to tell where a record of this format ends.
fn length_of(format: Format) -> Option<Length> {
    match format {
        Format::Msgpack => Some(msgpack::length),
        Format::Cbor => Some(cbor::length),
        Format::Bson => Some(bson::length),
        Format::Marshal => Some(marshal::length),
        Format::Pickle => Some(pickle::length),
        _ => None,
    }
}

/// What comes next.
#[derive(Debug)]
pub enum Next {
    /// A record at `range`; what follows begins at `next`.
    Record {
        /// Where the record lies.
        range: Range<usize>,
        /// How many bytes are done with.
        next: usize,
    },
    /// This many bytes are no record: blank lines, brackets and commas around records.
    Skip(usize),
    /// This many bytes are not what they should be; what follows can be read again, or
    /// [`Next::End`] comes.
    Bad {
        /// How many bytes are done with.
        len: usize,
        /// How many bytes of the stretch stand before these: they were passed over already.
        before: u64,
        /// What is wrong with them.
        error: Error,
    },
    /// More bytes must be seen; those that were there must stay.
    More,
    /// There is nothing more to come.
    End,
}

/// Finds records one after another.
#[derive(Debug)]
pub struct Framer {
    rule: Rule,
    limit: usize,
    /// At the very start, where a byte order mark may stand.
    fresh: bool,
    /// How far a record that has not ended yet was searched for its end.
    seen: usize,
    lost: Lost,
    zeros: Zeros,
    /// How many bytes at the end of the file are padding.
    padding: Option<u64>,
}

#[derive(Debug)]
enum Rule {
    Json(json::State),
    Lines,
    Paragraphs,
    Prefixed,
    Delimited(Length),
    Marc,
    Elements(Box<xml::Framer>),
    /// The header line, once it was seen.
    Header(Vec<u8>),
}

/// How to find the way after a bad stretch.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Lost {
    /// Not lost.
    No,
    /// The rest of this many bytes belongs to it.
    Bytes(u64),
    /// It ends with this byte.
    Until(u8),
    /// Nothing tells where the next record begins.
    Forever,
}

impl Framer {
    /// A framer for files of this format that refuses records of over [`MAX_RECORD`] bytes.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) where records of the format cannot be told apart.
    pub fn new(wrapped: &Wrapped) -> Result<Self> {
        let rule = match wrapped.framing() {
            Framing::Lines if wrapped.wraps.is_empty() => Rule::Json(json::State::default()),
            Framing::Lines => Rule::Lines,
            Framing::Paragraphs => Rule::Paragraphs,
            Framing::Prefixed => Rule::Prefixed,
            Framing::Header => Rule::Header(Vec::new()),
            Framing::Marc => Rule::Marc,
            Framing::Elements => {
                let framer = xml::Framer::new().expecting_marcxml();
                Rule::Elements(Box::new(framer.with_limit(MAX_RECORD)))
            }
            Framing::Delimited => match length_of(wrapped.format) {
                Some(length) => Rule::Delimited(length),
                None => {
                    let name = wrapped.format.name();
                    return Err(Error::unsupported(format!(
                        "{name} marks no boundaries between the records of a file; try \
                         {name}+base64"
                    )));
                }
            },
        };
        let (zeros, padding) = (Zeros::default(), None);
        Ok(Framer { rule, limit: MAX_RECORD, fresh: true, seen: 0, lost: Lost::No, zeros, padding })
    }

    /// A framer for a part of such a file that begins with a record: of lines, of MARC records,
    /// or of elements.
    ///
    /// # Errors
    /// As [`new`](Framer::new).
    pub fn within(wrapped: &Wrapped) -> Result<Self> {
        let mut framer = Self::new(wrapped)?;
        framer.fresh = false;
        match &mut framer.rule {
            Rule::Json(json) => *json = json::State::lines(),
            Rule::Marc => framer.zeros = Zeros::within(),
            Rule::Elements(elements) => {
                **elements = xml::Framer::within().with_limit(MAX_RECORD);
            }
            _ => {}
        }
        Ok(framer)
    }

    /// The same framer with another limit, in bytes.
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        if let Rule::Elements(framer) = self.rule {
            self.rule = Rule::Elements(Box::new(framer.with_limit(limit)));
        }
        self
    }

    /// What stands before each record to make it whole: the header line of CSV, else nothing.
    pub fn head(&self) -> &[u8] {
        match &self.rule {
            Rule::Header(head) => head,
            _ => &[],
        }
    }

    /// True where each record is known to be one line, so that a file can be cut at line breaks.
    /// For JSON this is known once a record was seen.
    pub fn is_lines(&self) -> bool {
        match &self.rule {
            Rule::Lines => true,
            Rule::Json(json) => json.is_lines(),
            _ => false,
        }
    }

    /// How many bytes at the end of the file are zeros that pad it: known once [`Next::End`] came.
    pub fn padding(&self) -> Option<u64> {
        self.padding
    }

    /// What comes next in `bytes`, which begin where the last answer said; `eof` says that
    /// nothing follows them.
    pub fn next(&mut self, bytes: &[u8], eof: bool) -> Next {
        if self.lost != Lost::No
            && let Some(next) = self.find_way(bytes, eof)
        {
            return next;
        }
        if self.fresh {
            match self.skip_mark(bytes, eof) {
                Some(next) => return next,
                None => self.fresh = false,
            }
        }
        let next = match &mut self.rule {
            Rule::Json(json) => json.next(bytes, eof, self.limit),
            Rule::Lines => line(bytes, eof, &mut self.seen),
            Rule::Paragraphs => paragraph(bytes, eof, &mut self.seen),
            Rule::Prefixed => prefixed(bytes, eof),
            Rule::Delimited(length) => delimited(*length, bytes, eof),
            Rule::Header(head) => row(head, bytes, eof),
            Rule::Marc => match self.zeros.look(bytes, eof) {
                Run::None => marc(iso2709::frame(bytes, eof)),
                Run::On(0) => Next::More,
                Run::On(len) => Next::Skip(len),
                Run::Padding(len, run) => {
                    self.padding = Some(run);
                    if len > 0 { Next::Skip(len) } else { Next::End }
                }
                Run::Bad { start, .. } if start > 0 => Next::Skip(start),
                Run::Bad { end, before, .. } => {
                    let error = Error::malformed(iso2709::told_zeros(before + end as u64));
                    Next::Bad { len: end, before, error }
                }
            },
            Rule::Elements(framer) => marc(framer.next(bytes, eof)),
        };
        self.limited(next, bytes, eof)
    }

    /// Refuses what is over the limit, and notes how to go on after it.
    fn limited(&mut self, next: Next, bytes: &[u8], eof: bool) -> Next {
        let limit = self.limit;
        let too_large =
            || Error::new(ErrorKind::TooLarge, format!("a record of over {limit} bytes"));
        match next {
            Next::Record { range, next } if range.len() > limit => {
                self.seen = 0;
                Next::Bad { len: next, before: 0, error: too_large() }
            }
            Next::Record { .. } | Next::Skip(_) => {
                self.seen = 0;
                next
            }
            Next::Bad { len, before, error } => {
                self.seen = 0;
                match &self.rule {
                    Rule::Delimited(_) => self.give_up(len, error),
                    _ => Next::Bad { len, before, error },
                }
            }
            // A record that says its length says so before it is all there.
            Next::More if matches!(self.rule, Rule::Prefixed | Rule::Delimited(_)) => {
                let (head, record) = match &self.rule {
                    Rule::Delimited(length) => (0, length(bytes).ok().flatten()),
                    _ => (4, bytes.first_chunk().map(|n| u32::from_be_bytes(*n) as usize)),
                };
                match record {
                    Some(record) if record > limit => {
                        let len = bytes.len().min(head + record);
                        self.lost = Lost::Bytes((head + record - len) as u64);
                        Next::Bad { len, before: 0, error: too_large() }
                    }
                    None if bytes.len() > limit => self.give_up(bytes.len(), too_large()),
                    _ if eof && !bytes.is_empty() => {
                        let error = Error::malformed("the file ends inside a record");
                        Next::Bad { len: bytes.len(), before: 0, error }
                    }
                    _ => Next::More,
                }
            }
            Next::More if bytes.len() > limit => {
                self.seen = 0;
                self.lost = match &mut self.rule {
                    Rule::Marc => Lost::Until(RECORD_END),
                    Rule::Json(json) => {
                        json.give_up();
                        Lost::Until(b'\n')
                    }
                    _ => Lost::Until(b'\n'),
                };
                Next::Bad { len: bytes.len(), before: 0, error: too_large() }
            }
            other => other,
        }
    }

    /// A bad stretch after which nothing tells where the next record begins.
    fn give_up(&mut self, len: usize, error: Error) -> Next {
        self.lost = Lost::Forever;
        let what = format!("{}; the records after it cannot be found", error.context());
        let at = error.place().offset.unwrap_or(0);
        Next::Bad { len, before: 0, error: Error::new(error.kind(), what).at(at) }
    }

    /// Goes to where reading can begin again; `None` once it is there.
    fn find_way(&mut self, bytes: &[u8], eof: bool) -> Option<Next> {
        let (len, lost) = match self.lost {
            Lost::No => return None,
            Lost::Forever => return Some(Next::End),
            _ if bytes.is_empty() => return Some(if eof { Next::End } else { Next::More }),
            Lost::Bytes(rest) => {
                let len = rest.min(bytes.len() as u64);
                let lost = if rest == len { Lost::No } else { Lost::Bytes(rest - len) };
                (len as usize, lost)
            }
            Lost::Until(end) => match memchr::memchr(end, bytes) {
                Some(i) => (i + 1, Lost::No),
                None => (bytes.len(), self.lost),
            },
        };
        self.lost = lost;
        Some(Next::Skip(len))
    }

    /// The mark that some editors put before UTF-8.
    fn skip_mark(&mut self, bytes: &[u8], eof: bool) -> Option<Next> {
        const MARK: &[u8] = b"\xef\xbb\xbf";
        if !matches!(self.rule, Rule::Json(_) | Rule::Lines | Rule::Paragraphs | Rule::Header(_)) {
            return None;
        }
        if bytes.starts_with(MARK) {
            self.fresh = false;
            return Some(Next::Skip(MARK.len()));
        }
        (!eof && MARK.starts_with(bytes)).then_some(Next::More)
    }
}

/// How many of the bytes at the start are white space, or the separators of RFC 7464.
fn blanks(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|&&b| b.is_ascii_whitespace() || b == 0x1e).count()
}

/// Where `bytes` end without the white space at their end.
fn trimmed(bytes: &[u8]) -> usize {
    bytes.trim_ascii_end().len()
}

fn line(bytes: &[u8], eof: bool, seen: &mut usize) -> Next {
    // Only where nothing was searched yet: what was searched does not begin with blanks.
    if *seen == 0 {
        match blanks(bytes) {
            0 => {}
            n => return Next::Skip(n),
        }
    }
    match memchr::memchr(b'\n', &bytes[*seen..]) {
        Some(i) => {
            let end = *seen + i;
            Next::Record { range: 0..trimmed(&bytes[..end]), next: end + 1 }
        }
        None if !eof => {
            *seen = bytes.len();
            Next::More
        }
        None if bytes.is_empty() => Next::End,
        None => Next::Record { range: 0..trimmed(bytes), next: bytes.len() },
    }
}

/// A MARC record, wherever the MARC room finds it.
fn marc(frame: Frame) -> Next {
    match frame {
        Frame::Record(range) => Next::Record { next: range.end, range },
        Frame::Bad(range, trouble) => {
            let context = match trouble.kind.meaning() {
                meaning if trouble.detail.is_empty() || trouble.detail == meaning => meaning.into(),
                meaning => format!("{meaning}: {}", trouble.detail),
            };
            let error = Error::malformed(context).at(trouble.offset);
            Next::Bad { len: range.end, before: 0, error }
        }
        Frame::More(0) => Next::More,
        Frame::More(n) => Next::Skip(n),
        Frame::End => Next::End,
    }
}

/// Lines up to an empty one.
fn paragraph(bytes: &[u8], eof: bool, seen: &mut usize) -> Next {
    if *seen == 0 {
        match blanks(bytes) {
            0 => {}
            n => return Next::Skip(n),
        }
    }
    for i in memchr::memchr_iter(b'\n', &bytes[*seen..]) {
        let after = *seen + i + 1;
        // An empty line may hold a carriage return.
        let empty = match bytes.get(after) {
            Some(b'\n') => 1,
            Some(b'\r') if bytes.get(after + 1) == Some(&b'\n') => 2,
            _ => continue,
        };
        return Next::Record { range: 0..last_line_end(&bytes[..after]), next: after + empty };
    }
    match (eof, bytes.is_empty()) {
        (false, _) => {
            // The empty line may have begun.
            *seen = bytes.len().saturating_sub(2);
            Next::More
        }
        (true, true) => Next::End,
        (true, false) => Next::Record { range: 0..last_line_end(bytes), next: bytes.len() },
    }
}

/// Where `bytes` end without line ends at their end. Other blanks may be text.
fn last_line_end(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|b| !matches!(b, b'\n' | b'\r')).map_or(0, |n| n + 1)
}

fn prefixed(bytes: &[u8], eof: bool) -> Next {
    if bytes.is_empty() && eof {
        return Next::End;
    }
    let Some((length, rest)) = bytes.split_first_chunk() else { return Next::More };
    let length = u32::from_be_bytes(*length) as usize;
    match rest.len() >= length {
        true => Next::Record { range: 4..4 + length, next: 4 + length },
        false => Next::More,
    }
}

fn delimited(length: Length, bytes: &[u8], eof: bool) -> Next {
    if bytes.is_empty() {
        return if eof { Next::End } else { Next::More };
    }
    match length(bytes) {
        Ok(Some(length)) if length <= bytes.len() => {
            Next::Record { range: 0..length, next: length }
        }
        Ok(_) => Next::More,
        Err(error) => Next::Bad { len: bytes.len(), before: 0, error },
    }
}

/// Whether a line without a line feed has carriage returns, outside of quotes, for the ends of lines.
fn ends_with_returns(line: &[u8]) -> bool {
    let mut quoted = false;
    !line.ends_with(b"\n")
        && line.trim_ascii_end().iter().any(|byte| {
            quoted ^= *byte == b'"';
            *byte == b'\r' && !quoted
        })
}

fn row(head: &mut Vec<u8>, bytes: &[u8], eof: bool) -> Next {
    // Empty lines are no rows.
    match bytes.iter().take_while(|&&b| b == b'\n' || b == b'\r').count() {
        0 => {}
        n => return Next::Skip(n),
    }
    match csv::line_end(bytes, eof) {
        None if eof => Next::End,
        None => Next::More,
        // Of a file without any line feed all lines would be the header.
        Some(end) if head.is_empty() && ends_with_returns(&bytes[..end]) => {
            let error =
                Error::malformed("its lines end with CR alone; CSV lines end with LF or CR LF");
            Next::Bad { len: end, before: 0, error }
        }
        Some(end) if head.is_empty() => {
            head.extend_from_slice(&bytes[..end]);
            if !head.ends_with(b"\n") {
                head.push(b'\n');
            }
            Next::Skip(end)
        }
        Some(end) => Next::Record { range: 0..end, next: end },
    }
}
