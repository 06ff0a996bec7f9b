//! The `sonic` format: the same JSON as `json`, read and written by sonic-rs.

use std::io;

use serde::{Serialize, de::DeserializeSeed};
use sonic_rs::{
    format::{CompactFormatter, Formatter},
    writer::WriteExt,
};

use super::{Again, By, Code, Framing, Info, Takes, framing::check_depth, json};
use crate::{Error, Result, record::native};

pub(super) const INFO: Info = Info {
    name: "sonic",
    extensions: &[],
    framing: Framing::Lines,
    takes: Takes::Anything,
    keeps: json::KEEPS,
    loses: "bytes become lists of numbers; times become text; decimals become floats or whole \
            numbers of the same value, and text where JSON has no such spelling; NaN and \
            infinities become null; minus zero becomes zero",
    marc: Code::of(By::Crate("sonic-rs")),
    values: Code::of(By::Crate("sonic-rs")),
};

pub(super) fn encode<T: Serialize>(record: &T, out: &mut Vec<u8>) -> Result<()> {
    let mut serializer = sonic_rs::Serializer::with_formatter(out, Numbers);
    record
        .serialize(&mut serializer)
        .map_err(|e| Error::unsupported(format!("JSON cannot hold this record: {}", said(&e))))
}

/// The compact form, with numbers of any length as numbers.
#[derive(Clone)]
struct Numbers;

impl Formatter for Numbers {
    #[inline]
    fn write_string_fast<W: ?Sized + WriteExt>(
        &mut self,
        out: &mut W,
        text: &str,
        quoted: bool,
    ) -> io::Result<()> {
        match native::is_number() {
            true => out.write_all(text.as_bytes()),
            false => CompactFormatter.write_string_fast(out, text, quoted),
        }
    }
}

pub(super) fn decode<'de, S: Again<'de>>(bytes: &'de [u8], mut seed: S) -> Result<S::Value> {
    // It skips over what nobody asked for without counting levels.
    check_depth(bytes)?;
    let text = simdutf8::basic::from_utf8(bytes)
        .map_err(|e| Error::malformed("JSON that is not UTF-8").with_source(e))?;
    native::floats();
    let read = |seed| {
        let mut deserializer = sonic_rs::Deserializer::from_str(text);
        let record = DeserializeSeed::deserialize(seed, &mut deserializer);
        record.and_then(|record| deserializer.end().map(|()| record))
    };
    let record = read(seed.again());
    match record {
        Ok(record) => json::exactly(bytes, seed, record),
        Err(e) if e.to_string().contains("must be finite") => json::decode_exactly(bytes, seed),
        Err(e) => {
            Err(Error::malformed(format!("unexpected JSON: {}", said(&e))).at(e.offset() as u64))
        }
    }
}

/// What is wrong and where, without the lines that draw it.
fn said(error: &sonic_rs::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}
