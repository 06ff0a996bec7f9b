//! The output of a copy: bytes for a file, rows or blobs for a store.

use std::ops::Range;

use super::{
    Form,
    duplicates::{Printed, Prints},
    key::with_key,
};
use crate::{
    Error, Result,
    format::{Coder, Format, Takes, framing::Glue},
    marc::{Record, RecordRef, Trouble, encoding, xml},
    record::{self, Document, Value},
    store::{Blob, Key, Row, digits::Digits},
};

/// What was made of a batch.
#[derive(Default)]
pub(super) struct Made {
    /// For a file: records glued together.
    pub bytes: Vec<u8>,
    /// For a store that looks into its records.
    pub rows: Vec<Row>,
    /// For a store of bytes.
    pub blobs: Vec<Blob>,
    /// The fingerprints of their keys, where keys may come twice.
    pub prints: Printed,
    /// Where each record that was made is from.
    pub origins: Vec<Origin>,
    /// The source's bytes, where a store may still refuse what was made of them.
    pub source: Vec<u8>,
}

impl Made {
    /// Makes the fingerprints of all keys.
    pub(super) fn print(&mut self, prints: &Prints) {
        let keys = self.rows.iter().map(|row| &row.key);
        let keys = keys.chain(self.blobs.iter().map(|blob| &blob.key));
        self.prints = prints.of_all(keys);
    }
}

/// Where a record is from.
pub(super) struct Origin {
    /// Its number in the batch, from 1.
    pub number: u64,
    /// Its byte offset in a file.
    pub offset: u64,
    /// Where it lies in the batch.
    pub range: Range<usize>,
}

impl Origin {
    /// Its bytes as they stood in the source.
    pub(super) fn bytes<'m>(&self, made: &'m Made) -> &'m [u8] {
        made.source.get(self.range.clone()).unwrap_or_default()
    }
}

/// Makes what the target takes.
pub(super) enum Output {
    File(Coder, Glue),
    /// With what sees that its numbers stay numbers.
    Blobs(Coder, Digits),
    Rows,
}

impl Output {
    pub(super) fn new(form: &Form) -> Result<Output> {
        Ok(match form {
            Form::Bytes(to) => Output::File(Coder::new(to.clone())?, Glue::new(to).inside()),
            Form::Blobs(to) => Output::Blobs(Coder::new(to.clone())?, Digits::of(to)),
            Form::Documents(_) | Form::Rows => Output::Rows,
        })
    }

    /// Records are found by keys there.
    pub(super) fn is_keyed(&self) -> bool {
        !matches!(self, Output::File(..))
    }

    /// A value that need not be a document; only for files.
    pub(super) fn value(&mut self, value: &Value, made: &mut Made) -> Result<()> {
        match self {
            Output::File(coder, glue) => glue.put(&mut made.bytes, |out| coder.encode(value, out)),
            _ => Err(Error::unsupported("only documents can be kept in a store")),
        }
    }

    /// A document; into a file its key goes as the field `_key`, where one is given.
    pub(super) fn document(
        &mut self,
        key: Option<Key>,
        record: Document,
        made: &mut Made,
    ) -> Result<()> {
        match (self, key) {
            (Output::File(coder, glue), key) => {
                let record = match &key {
                    Some(key) => with_key(key, record),
                    None => record,
                };
                glue.put(&mut made.bytes, |out| coder.encode_document(&record, out))
            }
            (Output::Rows, Some(key)) => {
                made.rows.push(Row { key, record });
                Ok(())
            }
            (Output::Blobs(coder, digits), Some(key)) => {
                let mut bytes = Vec::new();
                digits.check(&record)?;
                coder.encode_document(&record, &mut bytes)?;
                made.blobs.push(Blob { key, bytes });
                Ok(())
            }
            (_, None) => unreachable!("stores are given keys"),
        }
    }

    /// A MARC record; a `tolerant` writer replaces what the format cannot hold. Into a file its key
    /// goes as the field `_key`, where one is given.
    pub(super) fn marc(
        &mut self,
        key: Option<Key>,
        record: RecordRef<'_>,
        tolerant: bool,
        troubles: &mut Vec<Trouble>,
        made: &mut Made,
    ) -> Result<()> {
        match (self, key) {
            (Output::File(coder, _), Some(key))
                if coder.wrapped().format.info().takes == Takes::Marc =>
            {
                let name = coder.wrapped().format.name();
                let what = format!(
                    "key {} differs from field 001, and {name} has no other place for it",
                    key.shown()
                );
                let hint = "--key FIELD names the field with the key; --no-keys leaves keys out";
                Err(Error::unsupported(what).with_hint(hint))
            }
            (Output::File(coder, glue), Some(key)) => {
                // What cannot be held is found as without a key.
                encode_marc(coder, record, tolerant, troubles, &mut Vec::new())?;
                let record = with_key(&key, document(record, tolerant, &mut Vec::new())?);
                glue.put(&mut made.bytes, |out| coder.encode_document(&record, out))
            }
            (Output::File(coder, glue), None) => {
                glue.put(&mut made.bytes, |out| encode_marc(coder, record, tolerant, troubles, out))
            }
            (Output::Rows, Some(key)) => {
                let record = document(record, tolerant, troubles)?;
                made.rows.push(Row { key, record });
                Ok(())
            }
            (Output::Blobs(coder, _), Some(key)) => {
                let mut bytes = Vec::new();
                encode_marc(coder, record, tolerant, troubles, &mut bytes)?;
                made.blobs.push(Blob { key, bytes });
                Ok(())
            }
            (_, None) => unreachable!("stores are given keys"),
        }
    }
}

/// A MARC record as a document.
pub(super) fn document(
    record: RecordRef<'_>,
    tolerant: bool,
    troubles: &mut Vec<Trouble>,
) -> Result<Document> {
    let value = match record::to_value(&record) {
        Err(_) if tolerant => {
            let mut valid = Record::new();
            encoding::replace_invalid(record, &mut valid, troubles)?;
            record::to_value(&valid)?
        }
        value => value?,
    };
    match value {
        Value::Map(record) => Ok(record),
        _ => unreachable!("a MARC record is a map"),
    }
}

fn encode_marc(
    coder: &mut Coder,
    record: RecordRef<'_>,
    tolerant: bool,
    troubles: &mut Vec<Trouble>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let before = out.len();
    match coder.encode_marc(record, out) {
        Err(_) if tolerant => out.truncate(before),
        done => return done,
    }
    // What the format cannot hold is replaced.
    let mut valid = Record::new();
    encoding::replace_invalid(record, &mut valid, troubles)?;
    if coder.wrapped().format == Format::Marcxml && coder.wrapped().wraps.is_empty() {
        xml::write_tolerant(valid.as_ref(), out, troubles);
        return Ok(());
    }
    coder.encode_marc(valid.as_ref(), out)
}
