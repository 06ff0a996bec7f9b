//! JSON again, by sonic-rs: the same bytes, another library.

use serde::{Serialize, de::DeserializeOwned};

use super::{Framing, Info, Takes, framing::check_depth, json};
use crate::{Error, Result};

pub(super) const INFO: Info = Info {
    name: "sonic",
    extensions: &[],
    framing: Framing::Lines,
    takes: Takes::Anything,
    keeps: json::KEEPS,
    loses: "bytes become lists of numbers; times, decimals and whole numbers beyond 64 bits become \
            text; NaN and infinities become null; minus zero becomes zero",
};

pub(super) fn encode<T: Serialize>(record: &T, out: &mut Vec<u8>) -> Result<()> {
    sonic_rs::to_writer(out, record)
        .map_err(|e| Error::unsupported("JSON cannot hold this record").with_source(e))
}

pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    // It skips over what nobody asked for without counting levels.
    check_depth(bytes)?;
    sonic_rs::from_slice(bytes).map_err(|e| {
        Error::malformed("not the JSON expected").at(e.offset() as u64).with_source(e)
    })
}
