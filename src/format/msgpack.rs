//! MessagePack (msgpack.org), by rmp-serde; structs as maps with names.

use serde::{Deserialize, Serialize, de::DeserializeSeed};

use super::{DEPTH, Framing, Info, Takes};
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

pub(super) fn decode<'de, S: DeserializeSeed<'de>>(bytes: &'de [u8], seed: S) -> Result<S::Value> {
    let mut deserializer = rmp_serde::Deserializer::from_read_ref(bytes);
    // The crate's counter is at zero one level early.
    deserializer.set_max_depth(DEPTH + 1);
    let record = seed
        .deserialize(&mut deserializer)
        .map_err(|e| Error::malformed("not the MessagePack expected").with_source(e))?;
    // The crate does not say how far it read, but it says when there is nothing more to read.
    match bool::deserialize(&mut deserializer) {
        Err(rmp_serde::decode::Error::InvalidMarkerRead(_)) => Ok(record),
        _ => Err(Error::malformed("more bytes after the MessagePack record")),
    }
}

/// How many bytes the value at the start of `bytes` has; `None` where it goes on beyond them.
///
/// Counts what is still to come instead of descending, so depth costs nothing.
pub(super) fn length(bytes: &[u8]) -> Result<Option<usize>> {
    let mut at = 0usize;
    let mut values = 1u64;
    while values > 0 {
        let Some(rest) = bytes.get(at..) else { return Ok(None) };
        let Some((&marker, rest)) = rest.split_first() else { return Ok(None) };
        // A length of 1, 2 or 4 bytes, and the bytes or values it counts.
        let sized = |width: usize| -> Option<u64> {
            Some(rest.get(..width)?.iter().fold(0, |n, &b| n << 8 | u64::from(b)))
        };
        let (head, body, more) = match marker {
            0x00..=0x7f | 0xc0 | 0xc2 | 0xc3 | 0xe0..=0xff => (0, Some(0), 0),
            0x80..=0x8f => (0, Some(0), 2 * u64::from(marker & 0xf)),
            0x90..=0x9f => (0, Some(0), u64::from(marker & 0xf)),
            0xa0..=0xbf => (0, Some(u64::from(marker & 0x1f)), 0),
            0xc4 | 0xd9 => (1, sized(1), 0),
            0xc5 | 0xda => (2, sized(2), 0),
            0xc6 | 0xdb => (4, sized(4), 0),
            // Extensions have a byte for their type.
            0xc7 => (2, sized(1), 0),
            0xc8 => (3, sized(2), 0),
            0xc9 => (5, sized(4), 0),
            0xcc | 0xd0 => (0, Some(1), 0),
            0xcd | 0xd1 => (0, Some(2), 0),
            0xca | 0xce | 0xd2 => (0, Some(4), 0),
            0xcb | 0xcf | 0xd3 => (0, Some(8), 0),
            0xd4..=0xd8 => (0, Some(1 + (1 << (marker - 0xd4))), 0),
            0xdc..=0xdf => {
                let width = if marker & 1 == 0 { 2 } else { 4 };
                let Some(count) = sized(width) else { return Ok(None) };
                (width, Some(0), if marker >= 0xde { 2 * count } else { count })
            }
            0xc1 => {
                return Err(Error::malformed("0xC1, which MessagePack never uses").at(at as u64));
            }
        };
        let Some(body) = body else { return Ok(None) };
        at += 1 + head + body as usize;
        values = values - 1 + more;
    }
    Ok(if at <= bytes.len() { Some(at) } else { None })
}
