//! One batch from bytes to bytes: read, choose, recode, write.

use super::{
    Care, Options, Recode,
    batch::{Batch, Spare},
};
use crate::{
    Error, Result,
    format::{Coder, Format, Takes, framing::Glue},
    marc::{
        Record, RecordRef, Severity, Trouble,
        encoding::{self, Encoding},
        iso2709, xml,
    },
    record::{Document, Value},
};

/// What came of a batch.
#[derive(Default)]
pub(super) struct Converted {
    pub out: Vec<u8>,
    /// How far the file was read.
    pub until: u64,
    pub read: u64,
    pub written: u64,
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
    /// Its byte offset in the source.
    pub offset: u64,
    /// Why.
    pub reason: String,
    /// Its bytes, as they stood there.
    pub bytes: Vec<u8>,
}

/// Converts batches, one after another, in memory it keeps.
pub(super) struct Converter<'o> {
    options: &'o Options,
    from: Coder,
    to: Coder,
    glue: Glue,
    read: Record,
    recoded: Record,
    kept: Record,
}

/// What became of one record.
enum Fate {
    Written,
    LeftOut,
}

impl<'o> Converter<'o> {
    pub fn new(options: &'o Options) -> Result<Self> {
        Ok(Converter {
            options,
            from: Coder::new(options.from.clone())?,
            to: Coder::new(options.to.clone())?,
            glue: Glue::new(&options.to).inside(),
            read: Record::new(),
            recoded: Record::new(),
            kept: Record::new(),
        })
    }

    pub fn convert(&mut self, batch: Batch, spare: &Spare) -> Converted {
        let out = spare.take();
        let mut done = Converted { out, until: batch.until, ..Converted::default() };
        let from = &self.options.from;
        let marc21 = from.format == Format::Marc21 && from.wraps.is_empty();
        if marc21 && batch.frames.iter().all(|f| f.bad.is_none()) {
            self.convert_marc21(&batch, &mut done);
        } else {
            self.convert_each(&batch, &mut done);
        }
        spare.give(batch.bytes);
        done
    }

    fn convert_each(&mut self, batch: &Batch, done: &mut Converted) {
        for framed in &batch.frames {
            let bytes = &batch.bytes[framed.range.clone()];
            let mut troubles = Vec::new();
            let fate = match &framed.bad {
                Some(error) => Err(Error::malformed(error.context())),
                None => self.one(bytes, &mut troubles, &mut done.out),
            };
            done.settle(fate, troubles, framed.offset, bytes);
        }
    }

    /// ISO 2709 is read in one go, without a copy, which also keeps sound records as they stood.
    fn convert_marc21(&mut self, batch: &Batch, done: &mut Converted) {
        let mut records = iso2709::Records::new(&batch.bytes);
        let mut frames = batch.frames.iter().peekable();
        while let Some(item) = records.next() {
            let at = item.offset as usize;
            // A damaged length may have made one frame of two records.
            let framed = loop {
                match frames.peek() {
                    Some(framed) if framed.range.end <= at => drop(frames.next()),
                    Some(framed) => break *framed,
                    None => unreachable!("a record lies in a frame"),
                }
            };
            let offset = framed.offset + (at - framed.range.start) as u64;
            let mut troubles = item.troubles.to_vec();
            // Their offsets count from the batch; they are to count from the record.
            troubles.iter_mut().for_each(|t| t.offset = t.offset.saturating_sub(item.offset));
            let fate = match item.record {
                Some(record) => self.marc(record, &mut troubles, &mut done.out),
                None => Err(Error::malformed(why(&troubles))),
            };
            done.settle(fate, troubles, offset, item.raw);
        }
    }

    /// One record of any format but ISO 2709.
    fn one(
        &mut self,
        bytes: &[u8],
        troubles: &mut Vec<Trouble>,
        out: &mut Vec<u8>,
    ) -> Result<Fate> {
        let options = self.options;
        if options.is_marc() {
            let mut read = std::mem::take(&mut self.read);
            let done = options.from.format.read_marc(self.from.unwrap(bytes)?, &mut read, troubles);
            let fate = done.and_then(|()| self.marc(read.as_ref(), troubles, out));
            self.read = read;
            return fate;
        }
        if options.as_it_is() {
            let value: Value = self.from.decode(bytes)?;
            self.glue.put(out, |out| self.to.encode(&value, out))?;
            return Ok(Fate::Written);
        }
        let mut document: Document = self.from.decode(bytes)?;
        if !options.conditions.iter().all(|c| c.fits_document(&document)) {
            return Ok(Fate::LeftOut);
        }
        if let Some(fields) = &options.fields {
            document = fields.keep(&document);
        }
        self.glue.put(out, |out| self.to.encode(&document, out))?;
        Ok(Fate::Written)
    }

    fn marc(
        &mut self,
        record: RecordRef<'_>,
        troubles: &mut Vec<Trouble>,
        out: &mut Vec<u8>,
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
        if let (Some(fields), Takes::Rows) = (&options.fields, options.to.format.info().takes) {
            let row = fields.row(record)?;
            self.glue.put(out, |out| self.to.encode(&row, out))?;
            return Ok(Fate::Written);
        }
        let record = match &options.fields {
            None => record,
            Some(fields) => {
                fields.keep_marc(record, &mut self.kept)?;
                self.kept.as_ref()
            }
        };
        if options.care == Care::Strict && options.to.format == Format::Marc21 {
            iso2709::fits(record)?;
        }
        let written = self.glue.put(out, |out| self.to.encode_marc(record, out));
        match written {
            Err(_) if options.care == Care::Tolerant => {
                force(record, &mut self.to, &mut self.glue, troubles, out)?;
            }
            written => written?,
        }
        Ok(Fate::Written)
    }
}

/// Writes a record that the format cannot hold with what it cannot hold replaced.
fn force(
    record: RecordRef<'_>,
    to: &mut Coder,
    glue: &mut Glue,
    troubles: &mut Vec<Trouble>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut valid = Record::new();
    encoding::replace_invalid(record, &mut valid, troubles)?;
    glue.put(out, |out| {
        if to.wrapped().format == Format::Marcxml && to.wrapped().wraps.is_empty() {
            xml::write_tolerant(valid.as_ref(), out, troubles);
            return Ok(());
        }
        to.encode_marc(valid.as_ref(), out)
    })
}

impl Converted {
    /// Counts the record `bytes` at `offset` of the file in, whatever became of it; offsets of
    /// troubles count from the record.
    fn settle(&mut self, fate: Result<Fate>, troubles: Vec<Trouble>, offset: u64, bytes: &[u8]) {
        self.read += 1;
        match fate {
            Ok(Fate::Written) => {
                self.written += 1;
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
