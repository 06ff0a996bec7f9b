//! Reads one record element into a record.

use super::{
    Framer,
    fast::{self, Sink},
    local, show,
    token::{Token, Tokens},
};
use crate::{Error, ErrorKind, Frame, Leader, Record, Result, Trouble, TroubleKind, tally::Tally};

/// A record element being read.
pub(super) struct Reader<'a> {
    pub tokens: Tokens<'a>,
    pub record: &'a mut Record,
    /// How much of `record.data`, which is kept longer, is filled.
    pub at: usize,
    pub has_leader: bool,
    troubles: Tally<'a>,
}

/// Reads one `<record>` element, all of `bytes`, into `record`, whose memory is used again. A whole
/// document is read too if it holds just one record.
///
/// What is odd about it goes to `troubles`, with offsets into `bytes`; what was read is then what
/// the trouble's kind says. After an error `record` holds the fields before it.
///
/// # Errors
/// [`Malformed`](ErrorKind::Malformed), at its offset, where tags do not match or `bytes` is no
/// record element; [`TooLarge`](ErrorKind::TooLarge) over 4 GiB.
pub fn read(bytes: &[u8], record: &mut Record, troubles: &mut Vec<Trouble>) -> Result<()> {
    record.clear();
    if !Tokens::new(bytes).at_record() {
        return document(bytes, record, troubles);
    }
    if u32::try_from(bytes.len().saturating_mul(2)).is_err() {
        return Err(Error::new(ErrorKind::TooLarge, "a record of more than 2 GiB of XML"));
    }
    // Markup takes more than text, so this does as a rule; `general` asks for more if not.
    record.data.resize(bytes.len() / 2 + 64, 0);
    let tokens = Tokens::new(bytes);
    let troubles = Tally::new(troubles);
    let mut reader = Reader { tokens, record, at: 0, has_leader: false, troubles };
    let read = reader.element();
    reader.end();
    read
}

/// Reads the one record of a document.
#[cold]
fn document(bytes: &[u8], record: &mut Record, troubles: &mut Vec<Trouble>) -> Result<()> {
    let mut framer = Framer::new();
    let range = match framer.next(bytes, true) {
        Frame::Record(range) => range,
        Frame::Bad(_, trouble) => {
            return Err(Error::malformed(trouble.detail).at(trouble.offset));
        }
        Frame::More(_) | Frame::End => return Err(Error::malformed("no <record> element")),
    };
    if let Frame::Record(second) = framer.next(&bytes[range.end..], true) {
        let offset = (range.end + second.start) as u64;
        return Err(Error::malformed("a second record where one was expected").at(offset));
    }
    let first = troubles.len();
    let done = read(&bytes[range.clone()], record, troubles);
    for trouble in &mut troubles[first..] {
        trouble.offset += range.start as u64;
    }
    done.map_err(|e| e.at(range.start as u64))
}

impl Reader<'_> {
    pub(super) fn trouble(&mut self, kind: TroubleKind, at: usize, detail: impl Into<String>) {
        self.troubles.push(kind, at, detail);
    }

    pub(super) fn malformed<T>(&self, at: usize, what: impl Into<String>) -> Result<T> {
        Err(Error::malformed(what).at(at as u64))
    }

    fn element(&mut self) -> Result<()> {
        let name = match self.tokens.markup()? {
            Some(Token::Start(name)) if local(name) == b"record" => name,
            _ => return self.malformed(0, "not a <record> element"),
        };
        let prefix = &name[..name.len() - b"record".len()];
        if !self.tokens.attributes(|_, _, _| Ok(()))? {
            self.fields(name, prefix)?;
        }
        if !self.has_leader {
            self.trouble(TroubleKind::Leader, 0, format!("no leader; {} is used", Leader::NEW));
        }
        match self.tokens.markup()? {
            None => Ok(()),
            Some(_) => self.malformed(self.tokens.from, "unexpected content after the record"),
        }
    }

    fn fields(&mut self, name: &[u8], prefix: &[u8]) -> Result<()> {
        loop {
            self.usual(prefix);
            let token = self.tokens.markup()?;
            let at = self.tokens.from;
            match token {
                Some(Token::End(end)) if end == name => return Ok(()),
                Some(Token::End(end)) => return self.mismatch(at, end, name),
                Some(Token::Start(child)) => match local(child) {
                    b"controlfield" => self.control_field(child)?,
                    b"datafield" => self.data_field(child)?,
                    b"leader" => self.leader(child)?,
                    _ => self.skip(child)?,
                },
                Some(_) => self.stray(),
                None => return self.malformed(at, "the record has no end"),
            }
        }
    }

    pub(super) fn mismatch<T>(&self, at: usize, end: &[u8], name: &[u8]) -> Result<T> {
        self.malformed(at, format!("</{}> instead of </{}>", show(end), show(name)))
    }

    /// Reads the usual fields that follow.
    fn usual(&mut self, prefix: &[u8]) {
        let mut sink = Sink {
            data: &mut self.record.data,
            at: self.at,
            spans: &mut self.record.spans,
            marks: &mut self.record.marks,
            leader: &mut self.record.leader,
            has_leader: &mut self.has_leader,
        };
        self.tokens.pos = fast::fields(self.tokens.bytes, self.tokens.pos, prefix, &mut sink);
        self.at = sink.at;
    }

    /// The leader, of 24 bytes or mended.
    fn leader(&mut self, name: &[u8]) -> Result<()> {
        let (from, at) = (self.tokens.from, self.at);
        let empty = self.tokens.attributes(|_, _, _| Ok(()))?;
        if !empty {
            self.text(name, false)?;
        }
        let (leader, mended) = Leader::mended(&self.record.data[at..self.at]);
        self.at = at;
        if let Some(detail) = mended {
            self.trouble(TroubleKind::Leader, from, detail);
        }
        if self.has_leader {
            self.trouble(TroubleKind::Leader, from, "a second leader; the last is kept");
        }
        self.record.leader = leader.0;
        self.has_leader = true;
        Ok(())
    }

    /// Leaves the record as it should be, however reading ended.
    fn end(mut self) {
        // A field begun and not finished leaves no trace.
        self.at = self.record.spans.last().map_or(0, |s| s.end as usize + 1);
        self.record.marks.truncate(self.record.spans.last().map_or(0, |s| s.marks.1 as usize));
        self.record.data.truncate(self.at);
        self.record.utf8 = simdutf8::basic::from_utf8(&self.record.data).is_ok();
        if !self.record.utf8 {
            self.not_text();
        }
        self.troubles.end(self.tokens.pos);
    }

    /// Says where the bytes stop being UTF-8, and in which field.
    fn not_text(&mut self) {
        let valid = |bytes| match std::str::from_utf8(bytes) {
            Ok(_) => bytes.len(),
            Err(e) => e.valid_up_to(),
        };
        let stop = valid(&self.record.data) as u32;
        let tag = self.record.spans.iter().find(|s| stop <= s.end).map_or(*b"???", |s| s.tag);
        let byte = self.record.data.get(stop as usize).copied().unwrap_or(0);
        let detail = format!("field {}: 0x{byte:02X} is not UTF-8 there", show(&tag));
        self.trouble(TroubleKind::BadText, valid(self.tokens.bytes), detail);
    }

    /// Steps over text where only elements should be.
    pub(super) fn stray(&mut self) {
        let at = self.tokens.from;
        let rest = &self.tokens.bytes[at..];
        let end = memchr::memchr(b'<', &rest[1..]).map_or(rest.len(), |n| n + 1);
        self.tokens.pos = self.tokens.pos.max(at + end);
        let text = show(rest[..end].trim_ascii());
        self.trouble(TroubleKind::Skipped, at, format!("the text {text:?}"));
    }

    /// Steps over an element that has no place here, with all that is in it.
    pub(super) fn skip(&mut self, name: &[u8]) -> Result<()> {
        self.trouble(
            TroubleKind::Skipped,
            self.tokens.from,
            format!("the element <{}>", show(name)),
        );
        if self.tokens.attributes(|_, _, _| Ok(()))? {
            return Ok(());
        }
        let mut depth = 0u64;
        loop {
            let token = self.tokens.next()?;
            let here = self.tokens.from;
            match token {
                Some(Token::Start(_)) => {
                    depth += u64::from(!self.tokens.attributes(|_, _, _| Ok(()))?);
                }
                Some(Token::End(end)) if depth == 0 && end == name => return Ok(()),
                Some(Token::End(end)) if depth == 0 => return self.mismatch(here, end, name),
                Some(Token::End(_)) => depth -= 1,
                Some(Token::Text) => {
                    let rest = self.tokens.rest();
                    self.tokens.pos += memchr::memchr(b'<', rest).unwrap_or(rest.len());
                }
                Some(Token::Cdata(_) | Token::Bare) => {}
                None => return self.malformed(here, "the record has no end"),
            }
        }
    }
}
