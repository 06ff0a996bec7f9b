//! MARC records, without serde between: `{"leader": "...", "fields": [{"001": "text"}, {"245":
//! {"ind1": "1", "ind2": "0", "subfields": [{"a": "text"}]}}]}`.
//!
//! Names are read in any order, texts and bytes of any length in any of their forms; what is fast is
//! the usual: fields written in this order, short texts. Tests hold this to what the way through
//! serde makes of the same bytes.

use std::{borrow::Cow, marker::PhantomData};

use super::{Head, Heads, Reader};
use crate::{
    Error, Result,
    marc::{
        Content, FieldBuilder, Record, RecordRef, Subfields, Trouble, TroubleKind, json::Parts,
    },
};

/// How long the beginning of a data field is, up to its list of subfields, as most programs write it.
const BEGINNING: usize = 30;

/// That beginning, for this tag and these indicators.
#[inline(always)]
fn beginning<H: Heads>(tag: [u8; 3], indicators: [u8; 2]) -> [u8; BEGINNING] {
    let mut bytes = *b"{:TAG{:ind1:1:ind2:2:subfields";
    for (at, len) in [(1, 3), (6, 4), (11, 1), (13, 4), (18, 1), (20, 9)] {
        bytes[at] = H::TEXT.least + len;
    }
    (bytes[0], bytes[5]) = (H::MAP.least + 1, H::MAP.least + 3);
    (bytes[12], bytes[19]) = (indicators[0], indicators[1]);
    bytes[2..5].copy_from_slice(&tag);
    bytes
}

/// Reads one record into `record`, whose memory is used again. Names that do not belong to the
/// shape are passed over; each is a trouble, with its offset.
///
/// # Errors
/// [`Malformed`](crate::ErrorKind::Malformed), with the byte offset, where the bytes are not the
/// format or not the shape; `record` then holds what was read so far.
pub(crate) fn read<H: Heads>(
    bytes: &[u8],
    record: &mut Record,
    troubles: &mut Vec<Trouble>,
) -> Result<()> {
    record.clear();
    let mut scan = Scan::<H> { reader: Reader::new(bytes), troubles };
    let mut parts = Parts::default();
    scan.map("a MARC record: a map with \"leader\" and \"fields\"", |scan, key| {
        match key {
            b"leader" => {
                let at = scan.reader.pos();
                let text = scan.text("the leader")?;
                parts.leader(text.as_ref(), at, record)?;
            }
            b"fields" => {
                scan.list("a list of MARC fields", |scan| field(scan, record))?;
                parts.fields();
            }
            _ => scan.leave_out(key)?,
        }
        Ok(())
    })?;
    scan.reader.end()?;
    parts.whole()?;
    // Delimiters where none can be, in whatever part, are found here.
    record.check_fields().map_err(|e| Error::malformed(e.context()))
}

/// One field: `{"001": text}` or `{"245": {"ind1": …, "ind2": …, "subfields": […]}}`.
#[inline]
fn field<H: Heads>(scan: &mut Scan<'_, '_, H>, record: &mut Record) -> Result<()> {
    if let Some((tag, indicators)) = scan.usual_field() {
        let mut field = record.begin(tag, Some(indicators));
        scan.list(SUBFIELDS, |scan| subfield(scan, &mut field))?;
        return field.finish_text().map_err(|e| scan.reader.wrong(e.context()));
    }
    // A map with several tags is several fields: some programs write them so.
    scan.map("a MARC field: a map from its tag to what it holds", |scan, tag| {
        let at = scan.reader.pos() as u64;
        let tag: [u8; 3] = tag.try_into().map_err(|_| {
            Error::malformed(format!("a MARC tag of {} bytes instead of 3", tag.len())).at(at)
        })?;
        content(scan, record, tag).map_err(|e| match e.place().offset {
            Some(_) => e,
            None => Error::malformed(e.context()).at(at),
        })
    })
}

/// What a field holds: text, or indicators and subfields in any order.
fn content<H: Heads>(scan: &mut Scan<'_, '_, H>, record: &mut Record, tag: [u8; 3]) -> Result<()> {
    let at = scan.reader.pos();
    let count = match H::head(&mut scan.reader)? {
        Head::Map(count) => count,
        other => {
            let text = as_text(other, "text or a map with indicators and subfields", at)?;
            let mut field = record.begin(tag, None);
            field.text(&text);
            return field.finish_text();
        }
    };
    let mut field = record.begin(tag, Some(*b"  "));
    scan.pairs(count, |scan, key| {
        match key {
            b"ind1" | b"ind2" => {
                let text = scan.text("an indicator")?;
                field.indicator(usize::from(key[3] - b'1'), &text);
            }
            b"subfields" => scan.list(SUBFIELDS, |scan| subfield(scan, &mut field))?,
            _ => scan.leave_out(key)?,
        }
        Ok(())
    })?;
    field.finish_text()
}

const SUBFIELDS: &str = "a list of subfields";

/// One subfield: `{"a": text}`.
#[inline(always)]
fn subfield<H: Heads>(scan: &mut Scan<'_, '_, H>, field: &mut FieldBuilder<'_>) -> Result<()> {
    if scan.usual_subfield(field) {
        return Ok(());
    }
    scan.map("a subfield: a map from its code to its text", |scan, code| {
        field.code(code);
        field.value_text(&scan.text("the text of a subfield")?);
        Ok(())
    })
}

struct Scan<'de, 't, H> {
    reader: Reader<'de, H>,
    troubles: &'t mut Vec<Trouble>,
}

impl<'de, H: Heads> Scan<'de, '_, H> {
    /// Passes over a value that has no place in a record, and says so.
    #[cold]
    fn leave_out(&mut self, name: &[u8]) -> Result<()> {
        let detail = format!("the name {:?} and what it holds", String::from_utf8_lossy(name));
        self.troubles.push(Trouble::new(TroubleKind::Skipped, self.reader.pos(), detail));
        self.reader.skip()
    }

    /// The beginning of a field spelled as most programs do, up to the list of subfields; nothing is
    /// taken if it is not.
    #[inline(always)]
    fn usual_field(&mut self) -> Option<([u8; 3], [u8; 2])> {
        let found: &[u8; BEGINNING] = self.reader.rest().first_chunk()?;
        let (tag, indicators) = ([found[2], found[3], found[4]], [found[12], found[19]]);
        if *found != beginning::<H>(tag, indicators) {
            return None;
        }
        self.reader.pos += BEGINNING;
        Some((tag, indicators))
    }

    /// A subfield spelled as most are, in one go; nothing is taken if it is not.
    #[inline(always)]
    fn usual_subfield(&mut self, field: &mut FieldBuilder<'_>) -> bool {
        let rest = self.reader.rest();
        let Some(&[map, text, code, head]) = rest.first_chunk() else { return false };
        if map != H::MAP.least + 1 || text != H::TEXT.least + 1 {
            return false;
        }
        let (start, len) = match (H::TEXT.few(head), rest.get(4)) {
            (Some(len), _) => (4, len),
            (None, Some(&len)) if Some(head) == H::TEXT.before8 => (5, usize::from(len)),
            _ => return false,
        };
        if start + len > rest.len() {
            return false;
        }
        let from = self.reader.pos + start;
        field.usual_from(code, self.reader.input, from, from + len);
        self.reader.pos = from + len;
        true
    }

    /// A map from names to values; `each` reads the value.
    #[inline]
    fn map(&mut self, what: &str, each: impl FnMut(&mut Self, &[u8]) -> Result<()>) -> Result<()> {
        let at = self.reader.pos();
        match H::head(&mut self.reader)? {
            Head::Map(count) => self.pairs(count, each),
            other => Err(unexpected(&other, what, at)),
        }
    }

    #[inline]
    fn pairs(
        &mut self,
        mut left: Option<u64>,
        mut each: impl FnMut(&mut Self, &[u8]) -> Result<()>,
    ) -> Result<()> {
        while self.reader.more(&mut left)? {
            let name = self.text("a name")?;
            each(self, &name)?;
        }
        Ok(())
    }

    /// A list; `each` reads a value.
    #[inline(always)]
    fn list(&mut self, what: &str, mut each: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        let at = self.reader.pos();
        let mut left = match self.reader.peek().and_then(|head| H::LIST.few(head)) {
            Some(few) => {
                self.reader.pos += 1;
                Some(few as u64)
            }
            None => match H::head(&mut self.reader)? {
                Head::List(count) => count,
                other => return Err(unexpected(&other, what, at)),
            },
        };
        while self.reader.more(&mut left)? {
            each(self)?;
        }
        Ok(())
    }

    /// Text, or bytes in its place.
    #[inline]
    fn text(&mut self, what: &str) -> Result<Cow<'de, [u8]>> {
        let at = self.reader.pos();
        as_text(H::head(&mut self.reader)?, what, at)
    }
}

/// Text, or bytes in its place, whose head stood at `at`.
#[inline]
fn as_text<'de>(head: Head<'de>, what: &str, at: usize) -> Result<Cow<'de, [u8]>> {
    match head {
        Head::Text(bytes) | Head::Bytes(bytes) => Ok(Cow::Borrowed(bytes)),
        Head::Joined { bytes, .. } => Ok(Cow::Owned(bytes)),
        other => Err(unexpected(&other, what, at)),
    }
}

#[cold]
fn unexpected(found: &Head<'_>, wanted: &str, at: usize) -> Error {
    Error::malformed(format!("{} instead of {wanted}", found.what())).at(at as u64)
}

/// What a copy of a short text may write beyond its end.
const SLACK: usize = 32;

/// Appends `record` to `out`.
///
/// # Errors
/// None that is known: a text is always shorter than 4 GiB, as a record is.
pub(crate) fn write<H: Heads>(record: RecordRef<'_>, out: &mut Vec<u8>) -> Result<()> {
    let (mut marks, mut texts) = (0, 0);
    for field in record.fields() {
        marks += field.subfields().len();
        texts += field.bytes().len();
    }
    // Around a field: its beginning, a tag that is no text, a count. Around a subfield: its heads.
    let room = 64 + texts + record.len() * (BEGINNING + 16) + marks * 8 + SLACK;
    let begin = out.len();
    out.resize(begin + room, 0);
    let mut to = Cursor::<H> { out, at: begin, utf8: record.is_utf8(), heads: PhantomData };
    to.put(&[H::MAP.least + 2]);
    to.name(b"leader");
    to.any(record.leader().0.as_slice());
    to.name(b"fields");
    to.count(record.len());
    for field in record.fields() {
        let tag = field.tag();
        match field.content() {
            Content::Data(indicators, subfields) if tag.is_ascii() => {
                to.put(&beginning::<H>(tag, indicators));
                to.subfields(subfields);
            }
            content => {
                to.put(&[H::MAP.least + 1]);
                to.any(&tag);
                match content {
                    Content::Plain(text) => to.any(text),
                    Content::Data(indicators, subfields) => {
                        // All of the beginning but the tag.
                        to.put(&beginning::<H>(tag, indicators)[5..]);
                        to.subfields(subfields);
                    }
                }
            }
        }
    }
    let end = to.at;
    out.truncate(end);
    Ok(())
}

/// Writes into room that is there.
struct Cursor<'a, H> {
    out: &'a mut Vec<u8>,
    at: usize,
    /// Whether all of the record's texts are UTF-8.
    utf8: bool,
    heads: PhantomData<H>,
}

impl<H: Heads> Cursor<'_, H> {
    #[inline(always)]
    fn put(&mut self, bytes: &[u8]) {
        self.out[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    /// A head of up to five bytes; what is written beyond it is overwritten by what comes next.
    #[inline(always)]
    fn head(&mut self, (bytes, len): ([u8; 5], usize)) {
        self.out[self.at..self.at + 5].copy_from_slice(&bytes);
        self.at += len;
    }

    fn name(&mut self, name: &[u8]) {
        self.put(&[H::TEXT.least + name.len() as u8]);
        self.put(name);
    }

    #[inline(always)]
    fn count(&mut self, values: usize) {
        // A record has fewer fields and subfields than bytes, whose places are of 32 bits.
        self.head(H::LIST.head(values as u32));
    }

    /// What is known to be UTF-8.
    #[inline(always)]
    fn text(&mut self, text: &[u8]) {
        self.head(H::TEXT.head(text.len() as u32));
        self.put(text);
    }

    /// Text if it is UTF-8, else bytes.
    fn any(&mut self, bytes: &[u8]) {
        match std::str::from_utf8(bytes) {
            Ok(_) => self.text(bytes),
            Err(_) => {
                self.head(H::BYTES.head(bytes.len() as u32));
                self.put(bytes);
            }
        }
    }

    /// A code of several bytes, which are one character.
    #[cold]
    fn odd_code(&mut self, code: &[u8]) {
        self.put(&[H::MAP.least + 1]);
        self.name(code);
    }

    #[inline(always)]
    fn subfields(&mut self, subfields: Subfields<'_>) {
        self.count(subfields.len());
        for subfield in subfields {
            match *subfield.code {
                [code] => self.put(&[H::MAP.least + 1, H::TEXT.least + 1, code]),
                // A delimiter with nothing after it.
                [] => self.put(&[H::MAP.least + 1, H::TEXT.least]),
                ref code => self.odd_code(code),
            }
            match self.utf8 {
                true => self.text(subfield.value),
                false => self.any(subfield.value),
            }
        }
    }
}
