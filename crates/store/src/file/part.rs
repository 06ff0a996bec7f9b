//! One of several parts of a file, which together contain each record once.
//!
//! Where records can be found from the middle of a file (lines, MARC, elements) a part is a range
//! of bytes; elsewhere, and in packed files, it is every n-th record.

use std::{
    fmt,
    fs::File,
    io::{Read, Seek, SeekFrom},
    ops::Range,
    str::FromStr,
};

use crate::{
    Error, Result,
    format::{Framing, Wrapped},
    marc::{RECORD_END, iso2709},
};

/// Part `index` of `of`, counted from 1; written `2/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    index: u64,
    of: u64,
}

impl Part {
    /// Part `index` of `of`, counted from 1.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) where there is no such part.
    pub fn new(index: u64, of: u64) -> Result<Part> {
        match (1..=of).contains(&index) {
            true => Ok(Part { index, of }),
            false if of == 0 => Err(Error::invalid("at least one part is needed; try 1/4")),
            false => Err(Error::invalid(format!("there is no part {index} of {of}; try 1/{of}"))),
        }
    }

    /// Which part, counted from 1, and of how many.
    pub fn numbers(&self) -> (u64, u64) {
        (self.index, self.of)
    }

    /// True for the records of this part where every n-th is taken. Numbers count from 1.
    pub(super) fn has(&self, number: u64) -> bool {
        number % self.of == self.index % self.of
    }

    /// The bytes of this part, from the start of a record to the start of another.
    pub(super) fn range(&self, file: &mut File, size: u64, border: Border) -> Result<Range<u64>> {
        let at = |n: u64| (u128::from(size) * u128::from(n) / u128::from(self.of)) as u64;
        let start = border.find(file, at(self.index - 1), size)?;
        Ok(start..border.find(file, at(self.index), size)?)
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

impl FromStr for Part {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self> {
        let parsed = s.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        let (index, of) = parsed.ok_or_else(|| {
            Error::invalid(format!("{s:?} is not a part of a file; expected one such as 2/8"))
        })?;
        Part::new(index, of)
    }
}

/// What stands between records, so that they are found from the middle of a file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Border {
    Line,
    Marc,
    Element,
}

/// More than the mark of an element or of a line has.
const MARK: usize = 128;
/// How many line ends are looked behind before a MARC record.
const BETWEEN: usize = 128;
/// How far back it is looked whether an element stands in a comment or a CDATA section.
const BACK: usize = 1 << 20;

impl Border {
    /// What there is to look for in a file of this format. Of JSON `lines` says whether it is one
    /// record a line.
    pub(super) fn of(wrapped: &Wrapped, lines: bool) -> Option<Border> {
        match wrapped.framing() {
            Framing::Lines if lines => Some(Border::Line),
            Framing::Marc => Some(Border::Marc),
            Framing::Elements => Some(Border::Element),
            _ => None,
        }
    }

    /// Where the first record begins that does so at `at` or after.
    fn find(self, file: &mut File, at: u64, size: u64) -> Result<u64> {
        if at == 0 || at >= size {
            return Ok(at.min(size));
        }
        // What stands before tells whether a record begins right here.
        let back = match self {
            Border::Element => at.min(BACK as u64) as usize,
            _ => 1,
        };
        let (mut base, mut from) = (at - back as u64, back);
        file.seek(SeekFrom::Start(base))?;
        let mut bytes = Vec::new();
        loop {
            let read = file.by_ref().take(2 * BACK as u64).read_to_end(&mut bytes)?;
            if let Some(found) = self.first(&bytes, from, read == 0) {
                return Ok(base + found as u64);
            }
            if read == 0 {
                return Ok(size);
            }
            // A mark may have begun.
            from = from.max(bytes.len().saturating_sub(self.mark()));
            let done = from.saturating_sub(BACK);
            bytes.drain(..done);
            (base, from) = (base + done as u64, from - done);
        }
    }

    /// How many bytes it takes to see that a record begins.
    fn mark(self) -> usize {
        match self {
            Border::Marc => iso2709::START + BETWEEN,
            _ => MARK,
        }
    }

    /// Where the first record begins, at `from` or after; only where all of its mark can be seen.
    fn first(self, bytes: &[u8], from: usize, eof: bool) -> Option<usize> {
        let seen = |at: &usize| eof || at + self.mark() <= bytes.len();
        match self {
            Border::Line => memchr::memchr(b'\n', &bytes[from - 1..]).map(|i| from + i),
            // A terminator may stand inside a damaged record, or before junk: then no record follows.
            Border::Marc => memchr::memchr_iter(RECORD_END, &bytes[from - 1..])
                .map(|i| from + i)
                .take_while(seen)
                .find(|&at| {
                    let rest = &bytes[at..];
                    let blank = rest.iter().take(BETWEEN);
                    let blank = blank.take_while(|b| iso2709::BETWEEN.contains(b)).count();
                    iso2709::begins(&rest[blank..])
                }),
            // A prefix may stand before the name.
            Border::Element => memchr::memchr_iter(b'<', &bytes[from..])
                .map(|i| from + i)
                .take_while(seen)
                .find(|&at| {
                    let name = bytes[at + 1..].split(|b| b" \t\r\n/>".contains(b)).next();
                    let name = name.unwrap_or_default();
                    (name == b"record" || name.ends_with(b":record")) && !hidden(&bytes[..at])
                }),
        }
    }
}

/// True for an element that stands in a comment or a CDATA section, by what stands before it.
fn hidden(before: &[u8]) -> bool {
    let last = |mark: &[u8]| memchr::memmem::rfind(before, mark);
    let open = |begin: &[u8], end: &[u8]| match (last(begin), last(end)) {
        (Some(begin), Some(end)) => begin > end,
        (begin, _) => begin.is_some(),
    };
    open(b"<!--", b"-->") || open(b"<![CDATA[", b"]]>")
}
