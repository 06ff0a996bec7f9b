//! Framing of JSON records: one on each line, across lines, or in one array.

use super::{Next, scan::Scan};
use crate::{Error, ErrorKind};

/// How records lie in this file.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
enum Mode {
    /// No record was seen yet.
    #[default]
    Undecided,
    /// One a line: only line breaks are looked for.
    Lines,
    /// They may span lines, and several may stand on one.
    Spans,
    /// The same, within the brackets of one array.
    Array,
}

#[derive(Debug, Default)]
pub(super) struct State {
    mode: Mode,
    /// The search for the end of the record at the start of the bytes.
    scan: Option<Scan>,
    /// How far a line was searched for its end.
    seen: usize,
    /// How far the next byte stands from the start of its line, where only blanks are before it.
    column: Column,
    /// The same for the first record: by this the next one is found after a bad one.
    indent: Option<Column>,
    /// What is wrong with the record at the start of the bytes, until its end is found.
    bad: Option<Error>,
    /// The end of a bad record is still to be found, its beginning is done with.
    searching: bool,
}

/// How long a first line may be of which it is asked whether it is a list among others: an array
/// on one line can be as long as the file.
const LONGEST_LIST: usize = 64 << 10;

/// Whether the first line is a list and the second begins another, so that they are records on
/// lines and not one array of records; `None` where that cannot be seen yet.
fn lists_on_lines(bytes: &[u8], eof: bool) -> Option<bool> {
    let Some(end) = memchr::memchr(b'\n', &bytes[..bytes.len().min(LONGEST_LIST)]) else {
        return (eof || bytes.len() >= LONGEST_LIST).then_some(false);
    };
    let (line, after) = (bytes[..end].trim_ascii_end(), &bytes[end..]);
    if Scan::strict().end(line).ok().flatten() != Some(line.len()) {
        return Some(false);
    }
    match after.iter().find(|b| !b.is_ascii_whitespace()) {
        None if !eof && bytes.len() < LONGEST_LIST => None,
        next => Some(next == Some(&b'[')),
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Column {
    At(usize),
    AfterText,
}

impl Default for Column {
    fn default() -> Self {
        Column::At(0)
    }
}

impl State {
    /// For a file that is known to have one record a line.
    pub(super) fn lines() -> Self {
        State { mode: Mode::Lines, ..Self::default() }
    }

    pub(super) fn is_lines(&self) -> bool {
        self.mode == Mode::Lines
    }

    /// The line at the start of the bytes was given up.
    pub(super) fn give_up(&mut self) {
        self.seen = 0;
    }

    pub(super) fn next(&mut self, bytes: &[u8], eof: bool, limit: usize) -> Next {
        if self.bad.is_some() || self.searching {
            return self.resume(bytes, eof, limit);
        }
        if self.mode == Mode::Lines {
            let next = super::line(bytes, eof, &mut self.seen);
            if !matches!(next, Next::More) {
                self.seen = 0;
            }
            return next;
        }
        if self.scan.is_none() {
            match self.skip(bytes) {
                0 => {}
                n => return Next::Skip(n),
            }
        }
        let Some(&first) = bytes.first() else {
            return match (eof, self.mode) {
                (false, _) => Next::More,
                (true, Mode::Array) => {
                    self.mode = Mode::Spans;
                    let error = Error::malformed("the file ends before the list of records does");
                    Next::Bad { len: 0, before: 0, error }
                }
                (true, _) => Next::End,
            };
        };
        if self.mode == Mode::Undecided {
            match (first, bytes[1..].iter().find(|b| !b.is_ascii_whitespace())) {
                (b'[', None) if !eof => return Next::More,
                (b'[', Some(b'{')) => match lists_on_lines(bytes, eof) {
                    None => return Next::More,
                    Some(true) => {
                        self.mode = Mode::Lines;
                        return self.next(bytes, eof, limit);
                    }
                    Some(false) => {
                        self.mode = Mode::Array;
                        self.column = Column::AfterText;
                        return Next::Skip(1);
                    }
                },
                (b'[' | b'{', _) => {}
                // A single value on a line of its own.
                _ => {
                    self.mode = Mode::Lines;
                    return self.next(bytes, eof, limit);
                }
            }
        }
        self.indent.get_or_insert(self.column);
        if !matches!(first, b'{' | b'[' | b'"') {
            return self.scalar(bytes, eof);
        }
        // While this may be a file of lines a damaged line must not run into the next. Where
        // records span lines, line breaks inside strings (which are met) harm only their record.
        let undecided = self.mode == Mode::Undecided;
        let scan = || if undecided { Scan::strict() } else { Scan::default() };
        let end = match self.scan.get_or_insert_with(scan).end(bytes) {
            Ok(Some(end)) => end,
            Ok(None) if eof => {
                return self.broken(
                    Error::malformed("the file ends inside a record"),
                    bytes,
                    eof,
                    limit,
                );
            }
            Ok(None) if bytes.len() > limit => {
                let error = format!("a record of over {limit} bytes");
                return self.broken(Error::new(ErrorKind::TooLarge, error), bytes, eof, limit);
            }
            Ok(None) => return Next::More,
            Err(error) => return self.broken(error, bytes, eof, limit),
        };
        if self.mode == Mode::Undecided {
            let after = &bytes[end..];
            // A whole file of `[]` is an array without records.
            if first == b'['
                && bytes[1..end - 1].trim_ascii().is_empty()
                && after.trim_ascii().is_empty()
            {
                return if eof { Next::Skip(bytes.len()) } else { Next::More };
            }
            let blank = after.iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\r')).count();
            self.mode = match after.get(blank) {
                None if !eof => return Next::More,
                None | Some(b'\n') if memchr::memchr(b'\n', &bytes[..end]).is_none() => Mode::Lines,
                _ => Mode::Spans,
            };
        }
        self.scan = None;
        self.column = Column::AfterText;
        Next::Record { range: 0..end, next: end }
    }

    /// A record that is no map, list or text, or is no JSON: up to where it can end.
    fn scalar(&mut self, bytes: &[u8], eof: bool) -> Next {
        match bytes[1..].iter().position(|b| matches!(b, b',' | b']' | b'\n')) {
            None if !eof => Next::More,
            end => {
                let end = end.map_or(bytes.len(), |i| i + 1);
                self.column = Column::AfterText;
                Next::Record { range: 0..super::trimmed(&bytes[..end]), next: end }
            }
        }
    }

    /// How many bytes at the start stand between records.
    fn skip(&mut self, bytes: &[u8]) -> usize {
        for (i, &byte) in bytes.iter().enumerate() {
            match (byte, self.column) {
                (b'\n', _) => self.column = Column::At(0),
                // The record separator of RFC 7464 stands where a line begins.
                (b' ' | b'\t' | b'\r' | 0x1e, Column::At(n)) => self.column = Column::At(n + 1),
                (b' ' | b'\t' | b'\r' | 0x1e, _) => {}
                (b',', _) if self.mode != Mode::Undecided => self.column = Column::AfterText,
                (b']', _) if self.mode == Mode::Array => {
                    self.mode = Mode::Spans;
                    self.column = Column::AfterText;
                }
                _ => return i,
            }
        }
        bytes.len()
    }

    fn broken(&mut self, error: Error, bytes: &[u8], eof: bool, limit: usize) -> Next {
        self.scan = None;
        self.bad = Some(error);
        self.resume(bytes, eof, limit)
    }

    /// Looks for the next record after a bad one: a line that begins with a brace no further in
    /// than the first record did.
    fn resume(&mut self, bytes: &[u8], eof: bool, limit: usize) -> Next {
        let indent = match self.indent {
            Some(Column::At(n)) => n,
            _ => 0,
        };
        let mut keep = bytes.len();
        let mut found = None;
        for i in memchr::memchr_iter(b'\n', bytes) {
            let line = &bytes[i + 1..];
            let blank = line.iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
            match line.get(blank) {
                Some(b'{') if blank <= indent => {
                    found = Some(i + 1);
                    break;
                }
                // Not to be seen yet what this line begins with.
                None if !eof => keep = i,
                _ => {}
            }
        }
        let len = match found {
            Some(at) => at,
            None if eof => bytes.len(),
            None if self.searching || bytes.len() > limit => keep,
            None => return Next::More,
        };
        if found.is_some() {
            self.column = Column::At(0);
        }
        self.searching = found.is_none() && !eof;
        match self.bad.take() {
            Some(error) => Next::Bad { len, before: 0, error },
            None if len > 0 => Next::Skip(len),
            None if eof => Next::End,
            None => Next::More,
        }
    }
}
