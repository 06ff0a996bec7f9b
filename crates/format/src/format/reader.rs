//! The records in a stretch of a file, and what is wrong with them. Whoever reads files for people
//! reads them by this (`check`, `copy`, `show`), so that all find the same records, and the same
//! troubles at the same places.

use std::ops::Range;

use super::{Coder, Format, Framing, Takes, Wrapped};
use crate::{
    Error, Result,
    marc::{
        Record, RecordRef, Severity, Trouble, TroubleKind,
        encoding::Look,
        iso2709::{self, Records},
        worst,
    },
    record::{Document, Value},
};

/// What records are taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum As {
    /// MARC records.
    Marc,
    /// MARC records where they have the shape of one, else any values.
    Content,
}

/// A stretch that a [`Framer`](super::framing::Framer) found, in some bytes.
#[derive(Debug)]
pub struct Framed {
    /// Where it lies in these bytes.
    pub range: Range<usize>,
    /// Where it lies in the file.
    pub offset: u64,
    /// Why it is no record.
    pub bad: Option<Error>,
}

/// A record as it was found.
pub struct Found<'a> {
    /// Where it lies in the bytes that were read.
    pub range: Range<usize>,
    /// Where it lies in the file.
    pub offset: u64,
    /// Offsets into the record are offsets into the file too: it was not unwrapped, copied or spelled
    /// in another way there.
    pub exact: bool,
    /// What was read; an error where nothing could be: the worst of the troubles.
    pub content: Result<Content<'a>>,
    /// What is wrong with it; offsets count from the file's first byte.
    pub troubles: &'a mut Vec<Trouble>,
}

/// What was read.
pub enum Content<'a> {
    /// A MARC record.
    Marc(MarcContent<'a>),
    /// Any other value.
    Value(Value),
}

/// A MARC record, and the same in UTF-8.
pub struct MarcContent<'a> {
    /// The record as it stands in the file.
    pub record: RecordRef<'a>,
    /// The same in UTF-8 where it is in MARC-8; an error where it cannot be made.
    pub decoded: Option<Result<RecordRef<'a>>>,
}

/// Reads stretches, one after another, in memory it keeps.
pub struct Reader {
    coder: Coder,
    taken_for: As,
    /// The last record was a MARC record.
    marc: bool,
    record: Record,
    look: Look,
    troubles: Vec<Trouble>,
}

impl Reader {
    /// A reader of this format. `nfc` composes letters and accents where MARC-8 becomes UTF-8.
    ///
    /// # Errors
    /// As [`Coder::new`].
    pub fn new(format: Wrapped, taken_for: As, nfc: bool) -> Result<Reader> {
        Ok(Reader {
            coder: Coder::new(format)?,
            taken_for,
            marc: true,
            record: Record::new(),
            look: Look::new(nfc),
            troubles: Vec::new(),
        })
    }

    /// True where a stretch may have other than one record in it.
    pub fn may_split(&self) -> bool {
        let wrapped = self.coder.wrapped();
        wrapped.format == Format::Marc21 && wrapped.wraps.is_empty()
    }

    /// Calls `each` with every record of these stretches of `bytes`, in order.
    pub fn read(&mut self, bytes: &[u8], frames: &[Framed], each: &mut dyn FnMut(Found<'_>)) {
        let in_one_go = self.may_split();
        for run in frames.chunk_by(|a, b| a.bad.is_none() && b.bad.is_none()) {
            match run[0].bad {
                None if in_one_go => self.iso2709(bytes, run, each),
                _ => run.iter().for_each(|frame| self.one(bytes, frame, each)),
            }
        }
    }

    /// Calls `each` with the one record that `bytes` are.
    pub fn read_one(&mut self, bytes: &[u8], each: &mut dyn FnMut(Found<'_>)) {
        let frame = Framed { range: 0..bytes.len(), offset: 0, bad: None };
        self.one(bytes, &frame, each);
    }

    /// ISO 2709 is read in one go, without a copy, which also keeps sound records as they stood. A
    /// stretch may have several records in it, or junk before one.
    fn iso2709(&mut self, bytes: &[u8], run: &[Framed], each: &mut dyn FnMut(Found<'_>)) {
        let (Some(first), Some(last)) = (run.first(), run.last()) else { return };
        let start = first.range.start;
        let ends: Vec<usize> = run.iter().map(|frame| frame.range.end - start).collect();
        let mut records = Records::framed(&bytes[start..last.range.end], &ends);
        let mut frame = 0;
        while let Some(item) = records.next() {
            let at = item.offset as usize;
            while ends[frame] <= at {
                frame += 1;
            }
            // From an offset in the run, which is in this frame, to one in the file.
            let begins = (run[frame].range.start - start) as u64;
            let in_file = |offset: u64| run[frame].offset + (offset - begins);
            self.troubles.clear();
            let troubles = item.troubles.iter().cloned();
            self.troubles.extend(troubles.map(|t| Trouble { offset: in_file(t.offset), ..t }));
            let offset = in_file(item.offset);
            let content = match item.record {
                Some(record) => marc(&mut self.look, record, offset, true, &mut self.troubles),
                None => Err(unreadable(&self.troubles)),
            };
            let range = start + at..start + at + item.raw.len();
            let troubles = &mut self.troubles;
            each(Found { range, offset, exact: true, content, troubles });
        }
    }

    /// One record of any other format.
    fn one(&mut self, bytes: &[u8], frame: &Framed, each: &mut dyn FnMut(Found<'_>)) {
        let Reader { coder, taken_for, marc: was_marc, record, look, troubles } = self;
        let (range, offset) = (frame.range.clone(), frame.offset);
        let format = coder.wrapped().format;
        let exact = is_exact(coder.wrapped());
        troubles.clear();
        let read = match &frame.bad {
            Some(error) => Err(relative(error, offset)),
            None => coder.unwrap(&bytes[range.clone()]).and_then(|bytes| {
                match format.info().takes == Takes::Marc || *taken_for == As::Marc {
                    true => format.read_marc(bytes, record, troubles).map(|()| None),
                    false => by_content(format, bytes, was_marc, record, troubles),
                }
            }),
        };
        let read = read.inspect_err(|error| note(error, troubles));
        for trouble in troubles.iter_mut() {
            trouble.offset = offset + if exact { trouble.offset } else { 0 };
        }
        let content = match read {
            Ok(Some(value)) => Ok(Content::Value(value)),
            Ok(None) => {
                if format != Format::Marc21 {
                    let before = troubles.len();
                    iso2709::look(record.as_ref(), troubles);
                    troubles[before..].iter_mut().for_each(|t| t.offset = offset);
                }
                marc(look, record.as_ref(), offset, false, troubles)
            }
            Err(error) => Err(error),
        };
        each(Found { range, offset, exact: false, content, troubles });
    }
}

/// Looks into the text of a MARC record, and refuses one without fields.
fn marc<'a>(
    look: &'a mut Look,
    record: RecordRef<'a>,
    offset: u64,
    exact: bool,
    troubles: &mut Vec<Trouble>,
) -> Result<Content<'a>> {
    if record.is_empty() {
        troubles.push(Trouble::new(TroubleKind::NoFields, offset as usize, ""));
        return Err(unreadable(troubles));
    }
    let before = troubles.len();
    let decoded = look.read(record, troubles);
    for trouble in &mut troubles[before..] {
        trouble.offset = if exact { offset + trouble.offset } else { offset };
    }
    Ok(Content::Marc(MarcContent { record, decoded }))
}

/// Reads a MARC record into `record`, or else any value.
fn by_content(
    format: Format,
    bytes: &[u8],
    was_marc: &mut bool,
    record: &mut Record,
    troubles: &mut Vec<Trouble>,
) -> Result<Option<Value>> {
    // Most often it is what the one before was; a value is worth a second look, in case it is MARC.
    if !*was_marc && !names_marc(bytes) {
        match format.decode::<Value>(bytes) {
            Ok(value) if !looks_like_marc(&value) => return Ok(Some(value)),
            Ok(_) => (),
            Err(e) => return Err(e),
        }
    }
    let read = format.read_marc(bytes, record, troubles);
    let Err(error) = read else {
        *was_marc = true;
        return Ok(None);
    };
    match format.decode::<Value>(bytes) {
        Ok(value) if !looks_like_marc(&value) => {
            *was_marc = false;
            troubles.clear();
            Ok(Some(value))
        }
        // It is not even a value: what that says is the one to tell, unless it was to be MARC.
        Err(_) if names_marc(bytes) => Err(error),
        Ok(_) => Err(error),
        Err(error) => {
            troubles.clear();
            Err(error)
        }
    }
}

/// True where the names of the parts of a MARC record stand.
fn names_marc(bytes: &[u8]) -> bool {
    ["leader", "fields"].iter().all(|name| memchr::memmem::find(bytes, name.as_bytes()).is_some())
}

/// True for what has the shape of MARC-in-JSON: a list of fields, each under its tag, or a leader
/// and a list.
pub fn has_marc_shape(document: &Document) -> bool {
    let tagged = |map: &Document| map.len() == 1 && map.iter().all(|(name, _)| name.len() == 3);
    let Some(Value::List(fields)) = document.get("fields") else { return false };
    let leader = document.get("leader").and_then(Value::as_str);
    leader.is_some_and(|leader| leader.len() == 24)
        || !fields.is_empty() && fields.iter().all(|f| f.as_map().is_some_and(tagged))
}

fn looks_like_marc(value: &Value) -> bool {
    value.as_map().is_some_and(has_marc_shape)
}

/// A value that is not read as MARC, or why there is none, which the troubles then say too.
pub fn noted<T>(
    frame: &Framed,
    format: &Wrapped,
    troubles: &mut Vec<Trouble>,
    read: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let read = frame.bad.as_ref().map_or_else(read, |error| Err(relative(error, frame.offset)));
    read.inspect_err(|error| {
        let before = troubles.len();
        note(error, troubles);
        for trouble in &mut troubles[before..] {
            trouble.offset = frame.offset + if is_exact(format) { trouble.offset } else { 0 };
        }
    })
}

/// True where offsets into a record's bytes are offsets into the file: they are not wrapped, and no
/// header line is put before them.
fn is_exact(format: &Wrapped) -> bool {
    format.wraps.is_empty() && format.framing() != Framing::Header
}

/// The error of a bad stretch, its offset counted from the stretch.
fn relative(error: &Error, offset: u64) -> Error {
    let at = error.place().offset.unwrap_or(offset).saturating_sub(offset);
    Error::new(error.kind(), error.context()).at(at)
}

/// Adds an error of reading to the troubles, unless they say it already. Offsets of both count from
/// the record's first byte.
fn note(error: &Error, troubles: &mut Vec<Trouble>) {
    if troubles.iter().any(|t| t.kind.severity() == Severity::Lost) {
        return;
    }
    let at = error.place().offset.unwrap_or(0) as usize;
    troubles.push(Trouble::new(TroubleKind::Syntax, at, error.reason()));
}

fn unreadable(troubles: &[Trouble]) -> Error {
    Error::malformed(worst(troubles).map_or("unreadable".into(), Trouble::told))
}
