//! One batch from bytes to bytes: read, choose, recode, write.

use super::{Care, Options, Recode, batch::Batch};
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
    framed: Vec<u8>,
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
            framed: Vec::new(),
        })
    }

    pub fn convert(&mut self, batch: Batch) -> Converted {
        let mut done = Converted::default();
        let options = self.options;
        // ISO 2709 is read in one go, without a copy, which also keeps sound records as they stood.
        if options.from.format == Format::Marc21 && options.from.wraps.is_empty() {
            let mut records = iso2709::Records::new(&batch.bytes);
            while let Some(item) = records.next() {
                let mut troubles = item.troubles.to_vec();
                let fate = match item.record {
                    Some(record) => self.marc(record, &mut troubles, &mut done.out),
                    None => Err(Error::malformed(why(&troubles))),
                };
                let at = item.offset as usize;
                done.settle(fate, troubles, &batch, at..at + item.raw.len());
            }
            return done;
        }
        for (range, bad) in &batch.frames {
            let bytes = &batch.bytes[range.clone()];
            let mut troubles = Vec::new();
            let fate = match bad {
                Some(error) => Err(Error::malformed(error.context())),
                None => self.one(&batch.head, bytes, &mut troubles, &mut done.out),
            };
            for trouble in &mut troubles {
                trouble.offset += range.start as u64;
            }
            done.settle(fate, troubles, &batch, range.clone());
        }
        done
    }

    /// One record of any format but ISO 2709.
    fn one(
        &mut self,
        head: &[u8],
        bytes: &[u8],
        troubles: &mut Vec<Trouble>,
        out: &mut Vec<u8>,
    ) -> Result<Fate> {
        let framed = match head {
            [] => bytes,
            head => {
                self.framed.clear();
                self.framed.extend_from_slice(head);
                self.framed.extend_from_slice(bytes);
                &self.framed
            }
        };
        let options = self.options;
        if options.is_marc() {
            let mut read = std::mem::take(&mut self.read);
            let done =
                options.from.format.read_marc(self.from.unwrap(framed)?, &mut read, troubles);
            let fate = done.and_then(|()| self.marc(read.as_ref(), troubles, out));
            self.read = read;
            return fate;
        }
        if options.as_it_is() {
            let value: Value = self.from.decode(framed)?;
            self.glue.put(out, |out| self.to.encode(&value, out))?;
            return Ok(Fate::Written);
        }
        let mut document: Document = self.from.decode(framed)?;
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
            Recode::Utf8 if encoding::encoding(record) != Encoding::Marc8 && says_so(record) => {
                record
            }
            Recode::Utf8 => {
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
    /// Counts a record in, whatever became of it. Offsets of troubles count from the batch.
    fn settle(
        &mut self,
        fate: Result<Fate>,
        troubles: Vec<Trouble>,
        batch: &Batch,
        range: std::ops::Range<usize>,
    ) {
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
                    offset: batch.offset + range.start as u64,
                    reason,
                    bytes: batch.bytes[range].to_vec(),
                });
            }
        }
        for mut trouble in troubles {
            trouble.record = self.read;
            trouble.offset += batch.offset;
            self.troubles.push(trouble);
        }
    }
}

fn worst(troubles: &[Trouble]) -> Option<Severity> {
    troubles.iter().map(|t| t.kind.severity()).max()
}

/// The worst trouble, in words.
fn why(troubles: &[Trouble]) -> String {
    let worst = troubles.iter().max_by_key(|t| t.kind.severity());
    worst.map_or_else(
        || "unreadable".into(),
        |t| match t.detail.as_str() {
            "" => t.kind.name().into(),
            detail => format!("{}: {detail}", t.kind.name()),
        },
    )
}

/// The leader says UTF-8 already, or does not matter.
fn says_so(record: RecordRef<'_>) -> bool {
    record.leader().says_utf8()
}
