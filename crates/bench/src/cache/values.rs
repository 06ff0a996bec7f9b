//! The values: three, one for each key that is stored, as bytes and as the object these are of.
//!
//! The published test stored one constant of 4 bytes, the Marshal dump of an empty list. Here sizes
//! are chosen, or values are the user's own records.

use std::path::Path;

use super::rows::STORED;
use crate::{
    Error, Result,
    format::{Coder, Format, Wrapped},
    random::Random,
    record::{Document, Value},
};

/// A value of a run: one of a size, or records.
#[derive(Debug, Clone)]
pub enum Wish {
    /// About so many bytes.
    Size(u64),
    /// The record at a quarter, at half and at three quarters of the sizes.
    Records(Vec<Document>),
}

/// No value of a size is larger: memcached's usual limit.
const LARGEST: u64 = 1 << 20;

impl std::str::FromStr for Wish {
    type Err = Error;

    /// `4b`, `100`, `1kb`, `64kb`.
    fn from_str(text: &str) -> Result<Wish> {
        let lower = text.to_ascii_lowercase();
        let (digits, by) = match (lower.strip_suffix("kb"), lower.strip_suffix('b')) {
            (Some(digits), _) => (digits, 1024),
            (_, Some(digits)) => (digits, 1),
            _ => (&lower[..], 1),
        };
        let size = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(by));
        match size.filter(|n| (1..LARGEST).contains(n)) {
            Some(size) => Ok(Wish::Size(size)),
            None => Err(Error::invalid(format!(
                "{text:?} is no size of a value: like 4b, 100b or 1kb, below 1024kb"
            ))),
        }
    }
}

/// Values that are ready.
#[derive(Debug, Clone)]
pub(super) struct Values {
    /// In a word.
    pub label: String,
    /// As bytes.
    pub bytes: Vec<Vec<u8>>,
    /// As JSON.
    pub json: Vec<Vec<u8>>,
}

impl Wish {
    /// In a word: `4b`, `1kb`, `records`.
    pub fn label(&self) -> String {
        match self {
            Wish::Size(n) if n % 1024 == 0 => format!("{}kb", n / 1024),
            Wish::Size(n) => format!("{n}b"),
            Wish::Records(_) => "records".into(),
        }
    }

    /// Makes them.
    ///
    /// # Errors
    /// Where the format cannot hold such a value.
    pub(super) fn make(&self, format: &Wrapped, seed: u64) -> Result<Values> {
        let mut coder = Coder::new(format.clone())?;
        let mut encode = |value: &Value| -> Result<Vec<u8>> {
            let mut out = Vec::new();
            coder.encode(value, &mut out)?;
            Ok(out)
        };
        let objects = match self {
            Wish::Size(size) => of_size(*size, seed, &mut encode).map_err(|e| {
                let what = format!("{format} makes no value of {}: {}", self.label(), e.context());
                Error::new(e.kind(), what)
            })?,
            Wish::Records(records) => quarters(records, &mut encode)?,
        };
        let bytes = objects.iter().map(&mut encode).collect::<Result<Vec<_>>>()?;
        for (object, bytes) in objects.iter().zip(&bytes) {
            if bytes.len() as u64 >= LARGEST {
                return Err(Error::unsupported(format!(
                    "a record of {} bytes: memcached's limit is 1 MB",
                    bytes.len()
                )));
            }
            if coder.decode::<Value>(bytes)? != *object {
                let what = format!("{format} does not give these values back as they were");
                return Err(Error::unsupported(what).with_hint("try another format with --as"));
            }
        }
        let json = |object: &Value| {
            let mut out = Vec::new();
            Format::Json.encode(object, &mut out).map(|()| out)
        };
        let json = objects.iter().map(json).collect::<Result<_>>()?;
        Ok(Values { label: self.label(), bytes, json })
    }
}

/// Texts, each of as many bytes in the format as it goes; empty lists where these have that size.
fn of_size(
    size: u64,
    seed: u64,
    encode: &mut impl FnMut(&Value) -> Result<Vec<u8>>,
) -> Result<Vec<Value>> {
    let empty = Value::List(Vec::new());
    if encode(&empty)?.len() as u64 == size {
        return Ok(vec![empty; STORED]);
    }
    let mut random = Random::new(seed);
    let mut text = |length: u64| -> String {
        (0..length).map(|_| char::from(b'a' + random.below(26) as u8)).collect()
    };
    let mut fits = |length: u64| {
        let value = Value::Text("x".repeat(length as usize));
        Ok::<bool, Error>(encode(&value)?.len() as u64 <= size)
    };
    // What is around a text is some bytes; nothing is looked for beyond them.
    for length in (size.saturating_sub(64)..=size).rev() {
        if fits(length)? {
            return Ok((0..STORED).map(|_| Value::Text(text(length))).collect());
        }
    }
    Err(Error::invalid("too small for anything"))
}

/// Records by their size: at a quarter, at half, at three quarters.
fn quarters(
    records: &[Document],
    encode: &mut impl FnMut(&Value) -> Result<Vec<u8>>,
) -> Result<Vec<Value>> {
    let mut sized = Vec::with_capacity(records.len());
    for record in records {
        let value = Value::Map(record.clone());
        sized.push((encode(&value)?.len(), value));
    }
    sized.sort_by_key(|(size, _)| *size);
    let Some(last) = sized.len().checked_sub(1) else {
        return Err(Error::invalid("no records to take values from"));
    };
    Ok((1..=STORED).map(|q| sized[last * q / (STORED + 1)].1.clone()).collect())
}

/// Files that hold them, for adapters.
#[derive(Debug, Clone, Default)]
pub(super) struct Files {
    /// Of bytes.
    pub values: Vec<String>,
    /// Of JSON.
    pub objects: Vec<String>,
}

impl Values {
    /// Writes them into a folder.
    pub(super) fn write(&self, folder: &Path, number: usize) -> Result<Files> {
        let put = |kind: &str, all: &[Vec<u8>]| -> Result<Vec<String>> {
            let one = |(k, bytes): (usize, &Vec<u8>)| {
                let path = folder.join(format!("{kind}-{number}-{}", k + 1));
                std::fs::write(&path, bytes)
                    .map_err(|e| Error::from(e).in_place(path.display().to_string()))?;
                Ok(path.display().to_string())
            };
            all.iter().enumerate().map(one).collect()
        };
        Ok(Files { values: put("value", &self.bytes)?, objects: put("object", &self.json)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_exact_and_the_smallest_is_the_published_value() {
        let marshal: Wrapped = "marshal".parse().unwrap();
        let made = |text: &str| text.parse::<Wish>().unwrap().make(&marshal, 1).unwrap();
        let four = made("4b");
        assert_eq!((&four.bytes[0][..], &four.json[0][..]), (&b"\x04\x08[\0"[..], &b"[]"[..]));
        for (text, size) in [("1kb", 1024), ("100b", 100), ("64KB", 65536)] {
            let values = made(text);
            assert!(values.bytes.iter().all(|b| b.len() == size), "{text}");
            assert_ne!(values.bytes[0], values.bytes[1], "another value for each key");
        }
        for wrong in ["", "x", "0b", "2mb", "1024kb", "-1"] {
            assert!(wrong.parse::<Wish>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn records_are_taken_by_their_size() {
        let record = |n: usize| -> Document {
            let mut document = Document::new();
            document.insert("text", Value::Text("x".repeat(n)));
            document
        };
        let records: Vec<Document> = (0..=100).rev().map(record).collect();
        let values = Wish::Records(records).make(&"json".parse().unwrap(), 1).unwrap();
        let sizes: Vec<usize> = values.bytes.iter().map(|b| b.len() - 11).collect();
        assert_eq!(sizes, [25, 50, 75]);
        assert!(Wish::Records(Vec::new()).make(&"json".parse().unwrap(), 1).is_err());
    }
}
