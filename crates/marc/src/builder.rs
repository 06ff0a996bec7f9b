//! A field being put together at the end of a record.

use super::{FIELD_END, RECORD_END, Record, SUBFIELD, Span, field::first_character};
use crate::{Error, Result};

/// A field being appended to a [`Record`]. Dropped unfinished, it leaves no trace.
pub struct FieldBuilder<'a> {
    record: &'a mut Record,
    tag: [u8; 3],
    start: usize,
    first_mark: usize,
    bad: Option<&'static str>,
    finished: bool,
}

impl<'a> FieldBuilder<'a> {
    /// A field at the end of `record`, which counts once it is finished.
    #[inline]
    pub(super) fn new(record: &'a mut Record, tag: [u8; 3], indicators: Option<[u8; 2]>) -> Self {
        let start = record.data.len();
        let first_mark = record.marks.len();
        let mut field = FieldBuilder { record, tag, start, first_mark, bad: None, finished: false };
        if tag.iter().any(|b| (RECORD_END..=SUBFIELD).contains(b)) {
            field.bad = Some("a delimiter in the tag");
        }
        if let Some(indicators) = indicators {
            if indicators.contains(&SUBFIELD) {
                field.bad = Some("a delimiter as indicator");
            }
            field.record.data.extend_from_slice(&indicators);
        }
        field
    }

    /// Appends a subfield. An empty code stands for a delimiter with nothing after it.
    pub fn subfield(&mut self, code: &[u8], text: &[u8]) {
        self.code(code);
        self.value(text);
    }

    /// Appends a subfield whose code is a letter or digit and whose text is known to be UTF-8
    /// without control characters.
    #[inline]
    pub fn usual(&mut self, code: u8, text: &[u8]) {
        let data = &mut self.record.data;
        self.record.marks.push(data.len() as u32);
        data.extend_from_slice(&[SUBFIELD, code]);
        data.extend_from_slice(text);
    }

    /// Appends a subfield as [`usual`](Self::usual) does, or one to be checked by
    /// [`check_fields`](Record::check_fields), whose text is `source[from..to]`.
    #[inline(always)]
    pub fn usual_from(&mut self, code: u8, source: &[u8], from: usize, to: usize) {
        // Most texts are short: a copy of fixed size, cut to theirs, costs less than one of any size.
        const SHORT: usize = 32;
        let data = &mut self.record.data;
        self.record.marks.push(data.len() as u32);
        data.extend_from_slice(&[SUBFIELD, code]);
        match source.get(from..).and_then(|rest| rest.first_chunk::<SHORT>()) {
            Some(chunk) if to - from <= SHORT => {
                let end = data.len() + (to - from);
                data.extend_from_slice(chunk);
                data.truncate(end);
            }
            _ => data.extend_from_slice(&source[from..to]),
        }
    }

    /// Begins a subfield.
    #[inline]
    pub fn code(&mut self, code: &[u8]) {
        let one = code.len() < 2 || first_character(code).len() == code.len();
        if !one || code.iter().any(|c| (RECORD_END..=SUBFIELD).contains(c)) {
            self.bad = Some("a subfield code that is not one character");
        }
        self.record.marks.push(self.record.data.len() as u32);
        self.record.data.push(SUBFIELD);
        self.record.data.extend_from_slice(code);
    }

    /// The text of the subfield begun last, known to be UTF-8 without control characters, or to be
    /// checked by [`check_fields`](Record::check_fields).
    #[inline]
    pub fn value_text(&mut self, text: &[u8]) {
        if self.record.data.last() == Some(&SUBFIELD) && !text.is_empty() {
            self.bad = Some("a subfield with text but no code");
        }
        self.record.data.extend_from_slice(text);
    }

    /// The text of the subfield begun last.
    pub fn value(&mut self, text: &[u8]) {
        if memchr::memchr(SUBFIELD, text).is_some() {
            self.bad = Some("a subfield delimiter inside a subfield");
        } else if self.record.data.last() == Some(&SUBFIELD) && !text.is_empty() {
            self.bad = Some("a subfield with text but no code");
        }
        self.record.data.extend_from_slice(text);
    }

    /// Sets indicator 0 or 1 of a field begun with indicators.
    pub fn indicator(&mut self, which: usize, indicator: &[u8]) {
        match indicator {
            [i] if *i != SUBFIELD => self.record.data[self.start + which] = *i,
            _ => self.bad = Some("an indicator that is not one character"),
        }
    }

    /// Appends bytes, with whatever delimiters stand in them.
    pub fn text(&mut self, bytes: &[u8]) {
        let at = self.record.data.len();
        self.record.data.extend_from_slice(bytes);
        self.record.marks.extend(memchr::memchr_iter(SUBFIELD, bytes).map(|i| (at + i) as u32));
    }

    /// Counts the field in.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) where something pushed cannot stand in a field.
    pub fn finish(mut self) -> Result<()> {
        let bytes = &self.record.data[self.start..];
        if memchr::memchr2(FIELD_END, RECORD_END, bytes).is_some() {
            self.bad = Some("a field or record terminator inside a field");
        }
        self.record.utf8 &= simdutf8::basic::from_utf8(bytes).is_ok();
        self.finish_text()
    }

    /// Counts the field in, all of whose text is known to be UTF-8 without control characters, or
    /// to be checked by [`check_fields`](Record::check_fields).
    ///
    /// # Errors
    /// As [`finish`](Self::finish).
    pub fn finish_text(mut self) -> Result<()> {
        if let Some(bad) = self.bad {
            let tag = String::from_utf8_lossy(&self.tag).into_owned();
            return Err(Error::invalid(format!("field {tag}: {bad}")));
        }
        let Ok(end) = u32::try_from(self.record.data.len()) else {
            return Err(Error::invalid("a record over 4 GiB"));
        };
        self.record.data.push(FIELD_END);
        self.record.spans.push(Span {
            tag: self.tag,
            start: self.start as u32,
            end,
            marks: (self.first_mark as u32, self.record.marks.len() as u32),
        });
        self.finished = true;
        Ok(())
    }
}

impl Drop for FieldBuilder<'_> {
    fn drop(&mut self) {
        if !self.finished {
            self.record.data.truncate(self.start);
            self.record.marks.truncate(self.first_mark);
        }
    }
}
