//! JSON again, by sonic-rs: the same bytes, another library.

use serde::{Serialize, de::DeserializeOwned};

use super::{Framing, Info, Takes, json};
use crate::{Error, Result};

pub(super) const INFO: Info = Info {
    name: "sonic",
    extensions: &[],
    framing: Framing::Lines,
    takes: Takes::Anything,
    keeps: json::KEEPS,
    loses: json::LOSES,
};

pub(super) fn encode<T: Serialize>(record: &T, out: &mut Vec<u8>) -> Result<()> {
    sonic_rs::to_writer(out, record)
        .map_err(|e| Error::unsupported("JSON cannot hold this record").with_source(e))
}

pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    sonic_rs::from_slice(bytes).map_err(|e| {
        Error::malformed("not the JSON expected").at(e.offset() as u64).with_source(e)
    })
}
