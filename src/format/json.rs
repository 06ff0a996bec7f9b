//! JSON (RFC 8259), one record a line; by serde_json.

use serde::{Serialize, de::DeserializeSeed};

use super::{By, Code, Framing, Info, Takes};
use crate::{Error, Result, record::Kind};

pub(super) const INFO: Info = Info {
    name: "json",
    extensions: &["json", "ndjson", "jsonl"],
    framing: Framing::Lines,
    takes: Takes::Anything,
    keeps: KEEPS,
    loses: LOSES,
    marc: Code::of(By::Own),
    values: Code::of(By::Crate("serde_json")),
};

/// What JSON keeps, whichever library writes it.
pub(super) const KEEPS: &[Kind] =
    &[Kind::Null, Kind::Bool, Kind::Int, Kind::Float, Kind::Text, Kind::List, Kind::Map];
pub(super) const LOSES: &str = "bytes become lists of numbers; times, decimals and whole numbers \
     beyond 64 bits become text; NaN and infinities become null";

pub(super) fn encode<T: Serialize>(record: &T, out: &mut Vec<u8>) -> Result<()> {
    serde_json::to_writer(out, record)
        .map_err(|e| Error::unsupported("JSON cannot hold this record").with_source(e))
}

pub(super) fn decode<'de, S: DeserializeSeed<'de>>(bytes: &'de [u8], seed: S) -> Result<S::Value> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let record = seed.deserialize(&mut deserializer);
    record.and_then(|record| deserializer.end().map(|()| record)).map_err(|e| {
        let offset = offset_of(bytes, e.line(), e.column());
        Error::malformed("not the JSON expected").at(offset).with_source(e)
    })
}

/// The byte offset of a line and column, both from 1.
fn offset_of(bytes: &[u8], line: usize, column: usize) -> u64 {
    let lines: usize =
        bytes.split_inclusive(|&b| b == b'\n').take(line.saturating_sub(1)).map(<[u8]>::len).sum();
    (lines + column.saturating_sub(1)) as u64
}
