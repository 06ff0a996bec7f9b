//! CBOR (RFC 8949), by cbor4ii.

use cbor4ii::{
    core::{dec::Read, utils::SliceReader},
    serde::Deserializer,
};
use serde::{Serialize, de::DeserializeSeed};

use super::{DEPTH, Framing, Info, Takes, msgpack};
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

pub(super) fn decode<'de, S: DeserializeSeed<'de>>(bytes: &'de [u8], seed: S) -> Result<S::Value> {
    // The crate counts two steps a level and stops at 256: our limit of 128 levels.
    let mut deserializer = Deserializer::new(SliceReader::new(bytes));
    let record = seed
        .deserialize(&mut deserializer)
        .map_err(|e| Error::malformed("not the CBOR expected").with_source(e))?;
    let mut reader = deserializer.into_inner();
    match reader.fill(1) {
        Ok(rest) if rest.as_ref().is_empty() => Ok(record),
        _ => Err(Error::malformed("more bytes after the CBOR record")),
    }
}

/// How many bytes the item at the start of `bytes` has; `None` where it goes on beyond them.
///
/// Items of known size are counted, not descended into; only items of unknown size, which end at
/// a break, need a stack, and that has a limit.
pub(super) fn length(bytes: &[u8]) -> Result<Option<usize>> {
    let mut at = 0usize;
    let mut items = 1u64;
    // For each open item of unknown size: how many items are to come after its break.
    let mut open: Vec<u64> = Vec::new();
    loop {
        let may_break = items == 0;
        if may_break && open.is_empty() {
            return Ok(if at <= bytes.len() { Some(at) } else { None });
        }
        let Some(rest) = bytes.get(at..) else { return Ok(None) };
        let Some((&first, rest)) = rest.split_first() else { return Ok(None) };
        if first == 0xff {
            match (may_break, open.pop()) {
                (true, Some(after)) => items = after,
                _ => return Err(Error::malformed("a break where an item is due").at(at as u64)),
            }
            at += 1;
            continue;
        }
        let (major, low) = (first >> 5, first & 0x1f);
        let width = match low {
            24..=27 => 1usize << (low - 24),
            28..=30 => {
                return Err(
                    Error::malformed(format!("0x{first:02X}, which CBOR never uses")).at(at as u64)
                );
            }
            _ => 0,
        };
        let Some(argument) = rest.get(..width) else { return Ok(None) };
        let argument = match width {
            0 => u64::from(low),
            _ => argument.iter().fold(0, |n, &b| n << 8 | u64::from(b)),
        };
        at += 1 + width;
        items = items.saturating_sub(1);
        if low == 31 {
            if !(2..=5).contains(&major) {
                return Err(Error::malformed(format!("0x{first:02X}, which CBOR never uses"))
                    .at(at as u64 - 1));
            }
            if open.len() == DEPTH {
                return Err(Error::malformed(format!("nested deeper than {DEPTH} levels")));
            }
            open.push(items);
            items = 0;
            continue;
        }
        let (body, more) = match major {
            2 | 3 => (argument, 0),
            4 => (0, argument),
            5 => (0, argument.saturating_mul(2)),
            6 => (0, 1),
            _ => (0, 0),
        };
        at = at.saturating_add(usize::try_from(body).unwrap_or(usize::MAX));
        items = items.saturating_add(more);
    }
}
