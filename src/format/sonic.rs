//! JSON again, by sonic-rs: the same bytes, another library.

use serde::{Serialize, de::DeserializeSeed};

use super::{By, Code, Framing, Info, Takes, framing::check_depth, json};
use crate::{Error, Result};

pub(super) const INFO: Info = Info {
    name: "sonic",
    extensions: &[],
    framing: Framing::Lines,
    takes: Takes::Anything,
    keeps: json::KEEPS,
    loses: "bytes become lists of numbers; times, decimals and whole numbers beyond 64 bits become \
            text; NaN and infinities become null; minus zero becomes zero",
    marc: Code::of(By::Crate("sonic-rs")),
    values: Code::of(By::Crate("sonic-rs")),
};

pub(super) fn encode<T: Serialize>(record: &T, out: &mut Vec<u8>) -> Result<()> {
    sonic_rs::to_writer(out, record)
        .map_err(|e| Error::unsupported("JSON cannot hold this record").with_source(e))
}

pub(super) fn decode<'de, S: DeserializeSeed<'de>>(bytes: &'de [u8], seed: S) -> Result<S::Value> {
    // It skips over what nobody asked for without counting levels.
    check_depth(bytes)?;
    let text = simdutf8::basic::from_utf8(bytes)
        .map_err(|e| Error::malformed("JSON that is not UTF-8").with_source(e))?;
    let mut deserializer = sonic_rs::Deserializer::from_str(text);
    let record = seed.deserialize(&mut deserializer);
    record
        .and_then(|record| deserializer.end().map(|()| record))
        .map_err(|e| Error::malformed("not the JSON expected").at(e.offset() as u64).with_source(e))
}
