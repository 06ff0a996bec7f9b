//! JSON (RFC 8259), one record a line; by serde_json.
//!
//! JSON's numbers have any number of digits, and none is lost: whole ones beyond 64 bits are read as
//! such, and others that no float says are decimals. serde_json and sonic-rs read either as floats, so
//! a record in which that may have happened is read again ([`exact`]).

mod digits;
mod exact;

use std::io;

use serde::{Serialize, de::DeserializeSeed};
use serde_json::ser::Formatter;

use super::{Again, By, Code, Framing, Info, Takes, caused};
use crate::{
    ErrorKind, Result,
    record::{Kind, native},
};

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
pub(super) const KEEPS: &[Kind] = &[
    Kind::Null,
    Kind::Bool,
    Kind::Int,
    Kind::BigInt,
    Kind::Float,
    Kind::Text,
    Kind::List,
    Kind::Map,
];
pub(super) const LOSES: &str = "bytes become lists of numbers; times become text; decimals become \
                                floats or whole numbers of the same value, and text where JSON \
                                has no such spelling; NaN and infinities become null";

pub(super) fn encode<T: Serialize>(record: &T, out: &mut Vec<u8>) -> Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(out, Numbers);
    record
        .serialize(&mut serializer)
        .map_err(|e| caused(ErrorKind::Unsupported, "JSON cannot hold this record", e))
}

/// serde_json's compact form, with numbers of any length as numbers.
struct Numbers;

impl Formatter for Numbers {
    #[inline]
    fn begin_string<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        quote(out)
    }
    #[inline]
    fn end_string<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        quote(out)
    }
}

/// The quote before and after a text; nothing where it is a number.
#[inline]
pub fn quote<W: ?Sized + io::Write>(out: &mut W) -> io::Result<()> {
    match native::is_number() {
        true => Ok(()),
        false => out.write_all(b"\""),
    }
}

pub(super) fn decode<'de, S: Again<'de>>(bytes: &'de [u8], mut seed: S) -> Result<S::Value> {
    let read = |seed| {
        let mut deserializer = serde_json::Deserializer::from_slice(bytes);
        let record = DeserializeSeed::deserialize(seed, &mut deserializer);
        record.and_then(|record| deserializer.end().map(|()| record))
    };
    native::floats();
    let record = read(seed.again());
    match record {
        Ok(record) if !digits::rounded(bytes, native::floats()) => Ok(record),
        Err(e) if !(e.is_syntax() && e.to_string().starts_with("number out of range")) => {
            let offset = offset_of(bytes, e.line(), e.column());
            Err(caused(ErrorKind::Malformed, "unexpected JSON", e).at(offset))
        }
        _ => exact::decode(bytes, seed),
    }
}

/// The same record by its numbers' digits, where another reader may have rounded one of them.
pub(super) fn exactly<'de, S: Again<'de>>(
    bytes: &'de [u8],
    seed: S,
    record: S::Value,
) -> Result<S::Value> {
    match digits::rounded(bytes, native::floats()) {
        false => Ok(record),
        true => exact::decode(bytes, seed),
    }
}

pub(super) use exact::decode as decode_exactly;

/// The byte offset of a line and column, both from 1.
fn offset_of(bytes: &[u8], line: usize, column: usize) -> u64 {
    let lines: usize =
        bytes.split_inclusive(|&b| b == b'\n').take(line.saturating_sub(1)).map(<[u8]>::len).sum();
    (lines + column.saturating_sub(1)) as u64
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use crate::{ErrorKind, format::Format, record::Value};

    #[derive(Debug, Deserialize)]
    struct Order {
        #[allow(dead_code)]
        price: f64,
    }

    /// What is expected, and where, is said by the error itself: who prints no sources reads it, too.
    #[test]
    fn errors_say_what_was_expected_and_where() {
        for format in [Format::Json, Format::Sonic] {
            for (bytes, says) in [
                (&b"{\"price\": }"[..], "column"),
                (b"{\"price\": \"dear\"}", "expected f64"),
                (b"{}", "missing field `price`"),
            ] {
                let error = format.decode::<Order>(bytes).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Malformed);
                let (shown, chain) = (error.to_string(), error.chain());
                assert!(shown.contains("unexpected JSON: ") && shown.contains(says), "{shown}");
                assert_eq!(shown, chain, "nothing is said twice");
                assert_eq!(shown.lines().count(), 1, "{shown}");
            }
            let error = format.decode::<Value>(b"[1, ").unwrap_err();
            assert!(error.to_string().contains("column"), "{error}");
            // A map whose keys are no texts.
            let wrong = std::collections::BTreeMap::from([(vec![1], 2)]);
            let error = format.encode(&wrong, &mut Vec::new()).unwrap_err().to_string();
            assert!(error.starts_with("JSON cannot hold this record: "), "{error}");
        }
        let error = Format::Bson.decode::<Order>(b"\x05\0\0\0\0").unwrap_err();
        assert!(error.to_string().contains("price"), "{error}");
    }
}
