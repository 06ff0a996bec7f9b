//! MessagePack, by rmp-serde; structs as maps with names.

use serde::{Serialize, de::DeserializeOwned};

use super::{Framing, Info, Takes};
use crate::{Error, Result, record::Kind};

pub(super) const INFO: Info = Info {
    name: "msgpack",
    extensions: &["msgpack", "mpk"],
    framing: Framing::Delimited,
    takes: Takes::Anything,
    keeps: &[
        Kind::Null,
        Kind::Bool,
        Kind::Int,
        Kind::Float,
        Kind::Text,
        Kind::Bytes,
        Kind::List,
        Kind::Map,
    ],
    loses: "times, decimals and whole numbers beyond 64 bits become text",
};

pub(super) fn encode<T: Serialize>(record: &T, out: &mut Vec<u8>) -> Result<()> {
    let mut serializer = rmp_serde::Serializer::new(out).with_struct_map();
    record
        .serialize(&mut serializer)
        .map_err(|e| Error::unsupported("MessagePack cannot hold this record").with_source(e))
}

pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    let mut rest = bytes;
    let mut deserializer = rmp_serde::Deserializer::from_read_ref(&mut rest);
    T::deserialize(&mut deserializer)
        .map_err(|e| Error::malformed("not the MessagePack expected").with_source(e))
}
