//! CBOR (RFC 8949), by cbor4ii.

use serde::{Serialize, de::DeserializeOwned};

use super::{Framing, Info, Takes, msgpack};
use crate::{Error, Result};

pub(super) const INFO: Info = Info {
    name: "cbor",
    extensions: &["cbor"],
    framing: Framing::Delimited,
    takes: Takes::Anything,
    keeps: msgpack::INFO.keeps,
    loses: msgpack::INFO.loses,
};

pub(super) fn encode<T: Serialize>(record: &T, out: &mut Vec<u8>) -> Result<()> {
    cbor4ii::serde::to_writer(out, record)
        .map_err(|e| Error::unsupported("CBOR cannot hold this record").with_source(e))
}

pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    cbor4ii::serde::from_slice(bytes)
        .map_err(|e| Error::malformed("not the CBOR expected").with_source(e))
}
