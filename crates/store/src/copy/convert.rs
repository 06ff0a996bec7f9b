//! Converts one batch from bytes to bytes: read, select, recode, write.

use std::ops::Range;

use super::{
    Care, KeyRule, Options, Recode,
    batch::{Batch, Records, Spare},
    chosen::{Chosen, LeftOut},
    duplicates::Prints,
    journal::Mark,
    key::take_key,
    output::{Made, Origin, Output},
    sought::Sought,
};
use crate::{
    Error, Result,
    format::{self, As, Coder, Content, Format, Found, Framed, MarcContent, has_marc_shape, noted},
    marc::{
        Record, RecordRef, Severity, Trouble, TroubleKind,
        encoding::{self, Look},
        iso2709, worst,
    },
    record::{self, Document, Value},
    store::{Blob, Key, Row, query},
};

/// What came of a batch.
pub(super) struct Converted {
    pub made: Made,
    /// How many bytes of the source were read.
    pub bytes: u64,
    /// Where the batch ends.
    pub until: Mark,
    /// An earlier run may have written some of it.
    pub tried: bool,
    /// An earlier run has written it: only its keys are of use.
    pub past: bool,
    pub read: u64,
    pub written: u64,
    /// Gave way to others with the same keys.
    pub duplicates: u64,
    /// Read back from the store and found the same.
    pub verified: u64,
    /// Left out by a condition.
    pub left_out: u64,
    /// Written after a repair.
    pub repaired: u64,
    /// Written, though something is wrong.
    pub faulty: u64,
    /// What is wrong; record numbers count from the batch's first.
    pub troubles: Vec<Trouble>,
    pub rejects: Vec<Reject>,
}

/// A record that was not written.
#[derive(Debug)]
pub struct Reject {
    /// Its number in the source, from 1.
    pub record: u64,
    /// Its byte offset in a source that is a file.
    pub offset: u64,
    /// Its key, where a store is the source or the target.
    pub key: Option<Key>,
    /// Why.
    pub reason: String,
    /// What to do about it, where there is more to say: the [hint](Error::hint) of the error.
    pub hint: Option<String>,
    /// Its bytes, as they stood there.
    pub bytes: Vec<u8>,
}

/// Converts batches, one after another, in memory it keeps.
pub(super) struct Converter<'o> {
    options: &'o Options,
    chosen: Chosen,
    sought: &'o Sought,
    left_out: &'o LeftOut,
    from: Option<Coder>,
    /// Reads MARC records, where there are to be some.
    reader: Option<format::Reader>,
    look: Look,
    output: Output,
    prints: Option<Prints>,
    recoded: Record,
    kept: Record,
}

/// What became of one record.
enum Fate {
    Written,
    LeftOut,
}

/// Where a record is from: its offset in a file, or its key in a store.
struct At<'k> {
    offset: u64,
    key: Option<&'k Key>,
}

impl<'o> Converter<'o> {
    pub(super) fn new(
        options: &'o Options,
        sought: &'o Sought,
        left_out: &'o LeftOut,
        prints: Option<Prints>,
    ) -> Result<Self> {
        let from = options.from.wrapped();
        let reader = from.filter(|_| options.is_marc());
        let reader = reader.map(|from| format::Reader::new(from.clone(), As::Marc, options.nfc));
        Ok(Converter {
            options,
            chosen: Chosen::new(options)?,
            sought,
            left_out,
            from: from.cloned().map(Coder::new).transpose()?,
            reader: reader.transpose()?,
            look: Look::new(options.nfc),
            output: Output::new(&options.to)?,
            prints,
            recoded: Record::new(),
            kept: Record::new(),
        })
    }

    pub(super) fn convert(&mut self, batch: Batch, spare: &Spare) -> Converted {
        let made = Made { bytes: spare.take(), ..Made::default() };
        let Batch { records, read, until, tried, past } = batch;
        let mut done = Converted {
            made,
            bytes: read,
            until,
            tried,
            past,
            read: 0,
            written: 0,
            duplicates: 0,
            verified: 0,
            left_out: 0,
            repaired: 0,
            faulty: 0,
            troubles: Vec::new(),
            rejects: Vec::new(),
        };
        match records {
            Records::Framed(batch) => {
                self.convert_frames(&batch.bytes, &batch.frames, None, &mut done);
                match self.output.is_keyed() {
                    // What a store refuses is rejected as it stood.
                    true => done.made.source = batch.bytes,
                    false => spare.give(batch.bytes),
                }
            }
            Records::Rows(rows) => {
                for Row { key, record } in rows {
                    let at = At { offset: 0, key: Some(&key) };
                    let mut troubles = Vec::new();
                    let fate = self.document(record, &at, &mut troubles, &mut done.made);
                    done.settle(fate, troubles, &at, &[], 0..0);
                }
            }
            Records::Blobs(blobs) => {
                for Blob { key, bytes } in blobs {
                    let frame = Framed { range: 0..bytes.len(), offset: 0, bad: None };
                    self.convert_frames(&bytes, &[frame], Some(&key), &mut done);
                }
            }
        }
        if let Some(prints) = &self.prints {
            done.made.print(prints);
        }
        done
    }

    /// Records as their file has them, or one as a store of bytes has it under `key`.
    fn convert_frames(
        &mut self,
        bytes: &[u8],
        frames: &[Framed],
        key: Option<&Key>,
        done: &mut Converted,
    ) {
        let Some(mut reader) = self.reader.take() else {
            return frames.iter().for_each(|frame| self.convert_one(bytes, frame, key, done));
        };
        if self.may_name_keys(key) {
            for frame in frames {
                match frame.bad.is_none() && self.may_name_key(&bytes[frame.range.clone()]) {
                    true => self.convert_one(bytes, frame, key, done),
                    false => self.convert_marc(
                        &mut reader,
                        bytes,
                        std::slice::from_ref(frame),
                        key,
                        done,
                    ),
                }
            }
        } else {
            self.convert_marc(&mut reader, bytes, frames, key, done);
        }
        self.reader = Some(reader);
    }

    /// One record that is not read as MARC.
    fn convert_one(
        &mut self,
        bytes: &[u8],
        frame: &Framed,
        key: Option<&Key>,
        done: &mut Converted,
    ) {
        let at = At { offset: frame.offset, key };
        let mut troubles = Vec::new();
        let fate = self.one(bytes, frame, &at, &mut troubles, &mut done.made);
        let range = frame.range.clone();
        done.settle(fate, troubles, &at, &bytes[range.clone()], in_batch(key, range));
    }

    fn convert_marc(
        &mut self,
        reader: &mut format::Reader,
        bytes: &[u8],
        frames: &[Framed],
        key: Option<&Key>,
        done: &mut Converted,
    ) {
        let mut each = |found: Found<'_>| {
            let at = At { offset: found.offset, key };
            let mut troubles = std::mem::take(found.troubles);
            let fate = found.content.and_then(|content| match content {
                Content::Marc(marc) => self.marc(marc, &at, &mut troubles, &mut done.made),
                Content::Value(_) => unreachable!("MARC records were asked for"),
            });
            let raw = &bytes[found.range.clone()];
            done.settle(fate, troubles, &at, raw, in_batch(key, found.range));
        };
        match key {
            None => reader.read(bytes, frames, &mut each),
            Some(_) => reader.read_one(bytes, &mut each),
        }
    }

    fn one(
        &mut self,
        bytes: &[u8],
        frame: &Framed,
        at: &At,
        troubles: &mut Vec<Trouble>,
        made: &mut Made,
    ) -> Result<Fate> {
        let bytes = &bytes[frame.range.clone()];
        let format = self.options.from.wrapped().expect("bytes have a format");
        let from = self.from.as_mut().expect("bytes have a format");
        let options = self.options;
        let key = options.keys && at.key.is_some();
        if options.as_it_is() && !key {
            let value: Value = noted(frame, format, troubles, || from.decode(bytes))?;
            self.output.value(&value, made)?;
            return Ok(Fate::Written);
        }
        let document = match noted(frame, format, troubles, || from.decode(bytes))? {
            Value::Map(document) => document,
            value if key && options.as_it_is() => {
                let kind = value.kind().name();
                let what = format!("a value of kind {kind} has no field for its key");
                return Err(Error::unsupported(what).with_hint("--no-keys leaves keys out"));
            }
            value => {
                let kind = value.kind().name();
                return Err(Error::malformed(format!("no fields in a value of kind {kind}")));
            }
        };
        self.document(document, at, troubles, made)
    }

    /// Whether MARC records of a file may say by which keys they go into a store: formats for any
    /// record may have a field for that.
    fn may_name_keys(&self, key: Option<&Key>) -> bool {
        self.output.is_keyed() && key.is_none() && !self.options.from.is_marc()
    }

    fn may_name_key(&mut self, bytes: &[u8]) -> bool {
        let from = self.from.as_mut().expect("bytes have a format");
        let named =
            |bytes: &[u8]| memchr::memmem::find(bytes, query::Path::KEY.as_bytes()).is_some();
        from.unwrap(bytes).is_ok_and(named)
    }

    /// A document, be it of a file or of a store.
    fn document(
        &mut self,
        mut document: Document,
        at: &At,
        troubles: &mut Vec<Trouble>,
        made: &mut Made,
    ) -> Result<Fate> {
        let options = self.options;
        let keyed = self.output.is_keyed();
        if options.is_marc() {
            let own = self.own_key(&mut document, at)?;
            let read = marc_record(document)?;
            let at = At { offset: at.offset, key: at.key.or(own.as_ref()) };
            let mut look = std::mem::take(&mut self.look);
            let decoded = look.read(read.as_ref(), troubles);
            let content = MarcContent { record: read.as_ref(), decoded };
            let fate = self.marc(content, &at, troubles, made);
            self.look = look;
            return fate;
        }
        // A MARC record is one in whatever format or store it lies.
        let marc =
            match has_marc_shape(&document) && (keyed || at.key.is_some() || options.chooses()) {
                false => None,
                true if options.chooses() => Some(marc_record(document.clone())?),
                true => marc_record(document.clone()).ok(),
            };
        if !self.chosen.document(at.key, &document, marc.as_ref().map(Record::as_ref))? {
            self.left_out.see(at.key, &document);
            return Ok(Fate::LeftOut);
        }
        let own = self.own_key(&mut document, at)?;
        let key = match at.key.or(own.as_ref()) {
            _ if !keyed => None,
            Some(key) if options.key.is_own() => Some(key.clone()),
            _ => {
                let marc = marc.as_ref().map(Record::as_ref);
                Some(options.key.of_document(&document, marc, at.offset)?)
            }
        };
        let Some(fields) = &options.fields else {
            let key = match key {
                Some(key) => Some(key),
                None => self.key_beside(at, || {
                    options.key.given_by(&document, marc.as_ref().map(Record::as_ref))
                })?,
            };
            self.output.document(key, document, made)?;
            return Ok(Fate::Written);
        };
        if let Some(record) = &marc
            && fields.check_marc().is_ok()
        {
            let before = troubles.len();
            let fate = self.marc_fields(record.as_ref(), key, at, troubles, made);
            troubles[before..].iter_mut().for_each(|t| t.offset += at.offset);
            return fate;
        }
        let has_key = at.key.is_some() || own.is_some();
        let mut kept = fields.keep(&document);
        self.sought.in_document(&kept, has_key);
        if options.to.is_rows() {
            // Every row has the same columns.
            let columns = self.sought.names().filter_map(|name| {
                let value = kept.get(name).cloned();
                let is_key = has_key && name == query::Path::KEY;
                (value.is_some() || !is_key)
                    .then(|| (name.to_owned(), value.unwrap_or(Value::Null)))
            });
            kept = columns.collect();
        }
        let key = match key {
            Some(key) => Some(key),
            None => self.key_beside(at, || options.key.given_by(&kept, None))?,
        };
        self.output.document(key, kept, made)?;
        Ok(Fate::Written)
    }

    /// The key that a document of a file has as its field `_key`, which is taken out where the
    /// document goes into a store.
    fn own_key(&self, document: &mut Document, at: &At) -> Result<Option<Key>> {
        if !self.output.is_keyed() || at.key.is_some() {
            return Ok(None);
        }
        match (take_key(document), self.options.key.is_own()) {
            (None, _) => Ok(None),
            (Some(key), true) => key.map(Some),
            // Another key was asked for.
            (Some(key), _) => Ok(key.ok()),
        }
    }

    /// The key that is written beside the fields of a record that goes into a file: that of a
    /// store's record, unless it is `given` by those fields.
    fn key_beside(
        &self,
        at: &At,
        given: impl FnOnce() -> Option<Result<Key>>,
    ) -> Result<Option<Key>> {
        let Some(key) = at.key.filter(|_| self.options.keys && !self.output.is_keyed()) else {
            return Ok(None);
        };
        match (&self.options.key, given()) {
            (KeyRule::Fresh, _) => Ok(Some(Key::fresh())),
            (_, Some(Ok(given))) if given == *key => Ok(None),
            (KeyRule::Usual, _) => Ok(Some(key.clone())),
            (KeyRule::Field(path), _) => {
                let what = format!("key {} differs from field {path}", key.shown());
                let hint = "without --key it is written as _key; --no-keys leaves it out";
                Err(Error::invalid(what).with_hint(hint))
            }
        }
    }

    /// A MARC record, with what is wrong with it.
    fn marc(
        &mut self,
        content: MarcContent<'_>,
        at: &At,
        troubles: &mut Vec<Trouble>,
        made: &mut Made,
    ) -> Result<Fate> {
        let before = troubles.len();
        let fate = self.marc_to_output(content, at, troubles, made);
        // What was found on the way out counts from the record.
        troubles[before..].iter_mut().for_each(|t| t.offset += at.offset);
        fate
    }

    fn marc_to_output(
        &mut self,
        content: MarcContent<'_>,
        at: &At,
        troubles: &mut Vec<Trouble>,
        made: &mut Made,
    ) -> Result<Fate> {
        let options = self.options;
        let MarcContent { record, decoded } = content;
        // Junk before a record says nothing against the record.
        let contradicts =
            |t: &&Trouble| t.kind != TroubleKind::Junk && t.kind.severity() > Severity::Note;
        if options.care == Care::Strict && troubles.iter().any(|t| contradicts(&t)) {
            return Err(Error::malformed(why(troubles)));
        }
        if !self.chosen.marc(at.key, record) {
            return Ok(Fate::LeftOut);
        }
        let key = match at.key {
            _ if !self.output.is_keyed() => None,
            Some(key) if options.key == KeyRule::Usual => Some(key.clone()),
            _ => Some(options.key.of_marc(record)?),
        };
        let mut recoded = std::mem::take(&mut self.recoded);
        let record = match (options.recode, decoded) {
            (Recode::Keep, _) | (Recode::Needed, None) => Ok(record),
            // Here wrong bytes are replaced for good.
            (Recode::Needed | Recode::Utf8, Some(_)) if is_wrong_utf8(record) => {
                encoding::to_utf8(record, options.nfc, &mut recoded, troubles)
                    .map(|()| recoded.as_ref())
            }
            (Recode::Needed | Recode::Utf8, Some(decoded)) => decoded,
            (Recode::Utf8, None) => encoding::to_utf8(record, options.nfc, &mut recoded, troubles)
                .map(|()| recoded.as_ref()),
            (Recode::Marc8, _) => {
                encoding::to_marc8(record, &mut recoded, troubles).map(|()| recoded.as_ref())
            }
        };
        let fate = record.and_then(|record| self.marc_fields(record, key, at, troubles, made));
        self.recoded = recoded;
        fate
    }

    /// What was asked for of a MARC record, in the encoding of the target.
    fn marc_fields(
        &mut self,
        record: RecordRef<'_>,
        key: Option<Key>,
        at: &At,
        troubles: &mut Vec<Trouble>,
        made: &mut Made,
    ) -> Result<Fate> {
        let options = self.options;
        if options.fields.is_some() {
            self.sought.in_marc(record)?;
        }
        if let (Some(fields), true) = (&options.fields, options.to.is_rows()) {
            let row = fields.row(record)?;
            let key = match key {
                Some(key) => Some(key),
                None => self.key_beside(at, || options.key.given_by(&row, None))?,
            };
            self.output.document(key, row, made)?;
            return Ok(Fate::Written);
        }
        let mut kept = std::mem::take(&mut self.kept);
        let chosen = match &options.fields {
            None => Ok(record),
            Some(fields) => fields.keep_marc(record, &mut kept).map(|()| kept.as_ref()),
        };
        let fate = chosen.and_then(|chosen| {
            // Who does not ask for 001 in a MARC file does not ask for the key.
            let holder = if options.to.is_marc() { record } else { chosen };
            let key = match key {
                Some(key) => Some(key),
                None => self.key_beside(at, || Some(options.key.of_marc(holder)))?,
            };
            let marc21 = options.to.wrapped().is_some_and(|to| to.format == Format::Marc21);
            if marc21 && let Err(e) = iso2709::fits(chosen) {
                match options.care {
                    Care::Strict => return Err(e),
                    _ if troubles.iter().any(|t| t.kind == TroubleKind::Oversized) => {}
                    _ => troubles.push(Trouble::new(TroubleKind::TooLong, 0, e.context())),
                }
            }
            let tolerant = options.care == Care::Tolerant;
            self.output.marc(key, chosen, tolerant, troubles, made)?;
            Ok(Fate::Written)
        });
        self.kept = kept;
        fate
    }
}

pub(super) fn marc_record(document: Document) -> Result<Record> {
    record::from_value(Value::Map(document)).map_err(|e| Error::malformed(e.context()))
}

/// Where a record lies in its batch; what lies in a store has no place there.
fn in_batch(key: Option<&Key>, range: Range<usize>) -> Range<usize> {
    if key.is_some() { 0..0 } else { range }
}

impl Converted {
    /// Counts the record `bytes` in, whatever became of it; offsets of troubles count from the
    /// source's first byte. `range` is where it lies in its batch.
    fn settle(
        &mut self,
        fate: Result<Fate>,
        troubles: Vec<Trouble>,
        at: &At,
        bytes: &[u8],
        range: Range<usize>,
    ) {
        self.read += 1;
        let offset = at.offset;
        match fate {
            Ok(Fate::Written) => {
                self.written += 1;
                self.made.origins.push(Origin { number: self.read, offset, range });
                let worst = worst(&troubles).map(|t| t.kind.severity());
                self.repaired += u64::from(worst == Some(Severity::Repaired));
                self.faulty += u64::from(worst > Some(Severity::Repaired));
            }
            Ok(Fate::LeftOut) => self.left_out += 1,
            Err(error) => {
                let reason = error.reason();
                self.rejects.push(Reject {
                    record: self.read,
                    offset,
                    key: at.key.cloned(),
                    reason,
                    hint: error.hint().map(str::to_owned),
                    bytes: bytes.to_vec(),
                });
            }
        }
        for mut trouble in troubles {
            trouble.record = self.read;
            self.troubles.push(trouble);
        }
    }
}

/// Whether the text of a record is UTF-8, but for some bytes.
fn is_wrong_utf8(record: RecordRef<'_>) -> bool {
    !record.is_utf8() && encoding::encoding(record) == encoding::Encoding::Utf8
}

/// The worst trouble, in words.
fn why(troubles: &[Trouble]) -> String {
    worst(troubles).map_or_else(|| "unreadable".into(), Trouble::told)
}
