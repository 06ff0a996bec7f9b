//! One batch from bytes to bytes: read, choose, recode, write.

use super::{
    Care, Options, Recode,
    batch::{Batch, Frame, Records, Spare},
    journal::Mark,
    output::{Made, Origin, Output},
};
use crate::{
    Error, Result,
    format::{Coder, Format, Wrapped},
    marc::{
        Record, RecordRef, Severity, Trouble,
        encoding::{self, Encoding},
        iso2709,
    },
    record::{self, Document, Value},
    store::{Blob, Key, Row},
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
    pub read: u64,
    pub written: u64,
    /// Read back from the store and found the same.
    pub verified: u64,
    /// Left out by a condition.
    pub left_out: u64,
    /// Written, though something had to be repaired.
    pub repaired: u64,
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
    /// Its bytes, as they stood there.
    pub bytes: Vec<u8>,
}

/// Converts batches, one after another, in memory it keeps.
pub(super) struct Converter<'o> {
    options: &'o Options,
    from: Option<Coder>,
    output: Output,
    read: Record,
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
    pub fn new(options: &'o Options) -> Result<Self> {
        Ok(Converter {
            options,
            from: options.from.wrapped().cloned().map(Coder::new).transpose()?,
            output: Output::new(&options.to)?,
            read: Record::new(),
            recoded: Record::new(),
            kept: Record::new(),
        })
    }

    pub fn convert(&mut self, batch: Batch, spare: &Spare) -> Converted {
        let made = Made { bytes: spare.take(), ..Made::default() };
        let Batch { records, read, until, tried } = batch;
        let mut done = Converted {
            made,
            bytes: read,
            until,
            tried,
            read: 0,
            written: 0,
            verified: 0,
            left_out: 0,
            repaired: 0,
            troubles: Vec::new(),
            rejects: Vec::new(),
        };
        match records {
            Records::Framed(batch) => {
                if is_plain_marc21(self.options.from.wrapped())
                    && batch.frames.iter().all(|f| f.bad.is_none())
                {
                    self.convert_marc21(&batch, &mut done);
                } else {
                    self.convert_each(&batch, &mut done);
                }
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
                    let at = At { offset: 0, key: Some(&key) };
                    let mut troubles = Vec::new();
                    let fate = self.one(&bytes, &at, &mut troubles, &mut done.made);
                    done.settle(fate, troubles, &at, &bytes, 0..0);
                }
            }
        }
        done
    }

    fn convert_each(&mut self, batch: &Frame, done: &mut Converted) {
        for framed in &batch.frames {
            let bytes = &batch.bytes[framed.range.clone()];
            let mut troubles = Vec::new();
            let at = At { offset: framed.offset, key: None };
            let fate = match &framed.bad {
                Some(error) => Err(Error::malformed(error.context())),
                None => self.one(bytes, &at, &mut troubles, &mut done.made),
            };
            done.settle(fate, troubles, &at, bytes, framed.range.clone());
        }
    }

    /// ISO 2709 is read in one go, without a copy, which also keeps sound records as they stood.
    fn convert_marc21(&mut self, batch: &Frame, done: &mut Converted) {
        let mut records = iso2709::Records::new(&batch.bytes);
        let mut frames = batch.frames.iter().peekable();
        while let Some(item) = records.next() {
            let start = item.offset as usize;
            // A damaged length may have made one frame of two records.
            let framed = loop {
                match frames.peek() {
                    Some(framed) if framed.range.end <= start => drop(frames.next()),
                    Some(framed) => break *framed,
                    None => unreachable!("a record lies in a frame"),
                }
            };
            let offset = framed.offset + (start - framed.range.start) as u64;
            let at = At { offset, key: None };
            let mut troubles = item.troubles.to_vec();
            // Their offsets count from the batch; they are to count from the record.
            troubles.iter_mut().for_each(|t| t.offset = t.offset.saturating_sub(item.offset));
            let fate = match item.record {
                Some(record) => self.marc(record, &at, &mut troubles, &mut done.made),
                None => Err(Error::malformed(why(&troubles))),
            };
            done.settle(fate, troubles, &at, item.raw, start..start + item.raw.len());
        }
    }

    /// One record of any format but ISO 2709.
    fn one(
        &mut self,
        bytes: &[u8],
        at: &At,
        troubles: &mut Vec<Trouble>,
        made: &mut Made,
    ) -> Result<Fate> {
        let options = self.options;
        let from = self.from.as_mut().expect("bytes have a format");
        if options.is_marc() {
            let mut read = std::mem::take(&mut self.read);
            let format = from.wrapped().format;
            let done =
                from.unwrap(bytes).and_then(|bytes| format.read_marc(bytes, &mut read, troubles));
            let fate = done.and_then(|()| self.marc(read.as_ref(), at, troubles, made));
            self.read = read;
            return fate;
        }
        if options.as_it_is() {
            let value: Value = from.decode(bytes)?;
            self.output.value(&value, made)?;
            return Ok(Fate::Written);
        }
        let document: Document = from.decode(bytes)?;
        self.document(document, at, troubles, made)
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
        if options.is_marc() {
            let read: Record = record::from_value(Value::Map(document))
                .map_err(|e| Error::malformed(e.context()))?;
            return self.marc(read.as_ref(), at, troubles, made);
        }
        if !options.conditions.iter().all(|c| c.fits_document(&document)) {
            return Ok(Fate::LeftOut);
        }
        let key = match at.key {
            _ if !self.output.is_keyed() => None,
            Some(key) if options.key == super::KeyRule::Usual => Some(key.clone()),
            _ => Some(options.key.of_document(&mut document, at.offset)?),
        };
        if let Some(fields) = &options.fields {
            document = fields.keep(&document);
        }
        self.output.document(key, document, made)?;
        Ok(Fate::Written)
    }

    fn marc(
        &mut self,
        record: RecordRef<'_>,
        at: &At,
        troubles: &mut Vec<Trouble>,
        made: &mut Made,
    ) -> Result<Fate> {
        let options = self.options;
        if options.care == Care::Strict && worst(troubles) > Some(Severity::Note) {
            return Err(Error::malformed(why(troubles)));
        }
        for condition in &options.conditions {
            if !condition.fits_marc(record)? {
                return Ok(Fate::LeftOut);
            }
        }
        let key = match at.key {
            _ if !self.output.is_keyed() => None,
            Some(key) if options.key == super::KeyRule::Usual => Some(key.clone()),
            _ => Some(options.key.of_marc(record)?),
        };
        let record = match options.recode {
            Recode::Keep => record,
            Recode::Needed if encoding::encoding(record) != Encoding::Marc8 => record,
            Recode::Needed | Recode::Utf8 => {
                encoding::to_utf8(record, options.nfc, &mut self.recoded, troubles)?;
                self.recoded.as_ref()
            }
            Recode::Marc8 => {
                encoding::to_marc8(record, &mut self.recoded, troubles)?;
                self.recoded.as_ref()
            }
        };
        if let (Some(fields), true) = (&options.fields, options.to.is_rows()) {
            self.output.document(key, fields.row(record)?, made)?;
            return Ok(Fate::Written);
        }
        let record = match &options.fields {
            None => record,
            Some(fields) => {
                fields.keep_marc(record, &mut self.kept)?;
                self.kept.as_ref()
            }
        };
        let marc21 = options.to.wrapped().is_some_and(|to| to.format == Format::Marc21);
        if options.care == Care::Strict && marc21 {
            iso2709::fits(record)?;
        }
        let tolerant = options.care == Care::Tolerant;
        self.output.marc(key, record, tolerant, troubles, made)?;
        Ok(Fate::Written)
    }
}

fn is_plain_marc21(from: Option<&Wrapped>) -> bool {
    from.is_some_and(|from| from.format == Format::Marc21 && from.wraps.is_empty())
}

impl Converted {
    /// Counts the record `bytes` in, whatever became of it; offsets of troubles count from the
    /// record. `range` is where it lies in its batch.
    fn settle(
        &mut self,
        fate: Result<Fate>,
        troubles: Vec<Trouble>,
        at: &At,
        bytes: &[u8],
        range: std::ops::Range<usize>,
    ) {
        self.read += 1;
        let offset = at.offset;
        match fate {
            Ok(Fate::Written) => {
                self.written += 1;
                self.made.origins.push(Origin { number: self.read, offset, range });
                self.repaired += u64::from(worst(&troubles) > Some(Severity::Note));
            }
            Ok(Fate::LeftOut) => self.left_out += 1,
            Err(error) => {
                let mut reason = error.context().to_owned();
                let mut source = std::error::Error::source(&error);
                while let Some(cause) = source {
                    reason += &format!(": {cause}");
                    source = cause.source();
                }
                self.rejects.push(Reject {
                    record: self.read,
                    offset,
                    key: at.key.cloned(),
                    reason,
                    bytes: bytes.to_vec(),
                });
            }
        }
        for mut trouble in troubles {
            trouble.record = self.read;
            trouble.offset += offset;
            self.troubles.push(trouble);
        }
    }
}

fn worst(troubles: &[Trouble]) -> Option<Severity> {
    troubles.iter().map(|t| t.kind.severity()).max()
}

/// The worst trouble, in words.
fn why(troubles: &[Trouble]) -> String {
    // The first of them: others often follow from it.
    let worst = troubles.iter().rev().max_by_key(|t| t.kind.severity());
    worst.map_or_else(
        || "unreadable".into(),
        |t| match t.detail.as_str() {
            "" => t.kind.name().into(),
            detail => format!("{}: {detail}", t.kind.name()),
        },
    )
}
