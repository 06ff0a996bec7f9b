//! Python's pickle, read and written without Python.
//!
//! A pickle is a program for a machine with a stack. Its opcodes for data are run here. Calls are
//! read only of the five classes of `natives`, which are data; an opcode that would import, call or
//! look up anything else is refused by name and byte offset, so nothing a pickle says is ever
//! executed. Files: `ops` (the opcodes), `machine` (runs them), `natives` (times and decimals), `old`
//! (the opcodes with text arguments), `tape` (what comes out: nodes), `de` and `ser`.
//!
//! | Python | read as |
//! |---|---|
//! | None, bool, int of any size, float | the same |
//! | str | text (bytes where it has lone surrogates) |
//! | bytes, bytearray | bytes; text where text is asked for and it is UTF-8 |
//! | str of Python 2 | text where it is UTF-8, else bytes |
//! | list, tuple, set, frozenset | list |
//! | dict | map |
//! | datetime with a timezone | a time: the moment, in UTC |
//! | datetime without, date | text: `2024-02-29T23:59:58`, `2024-02-29` |
//! | Decimal | decimal |
//! | the same object again | a copy of it; an object inside itself is refused |
//!
//! Protocols 0 to 5 are read. Before protocol 4 Python itself writes sets as calls, before 3 bytes
//! too (and with them the state of a datetime); these are refused, and classes in every protocol.
//!
//! Written: protocol 4, one frame a record; a key that comes again is a link. A time is a datetime
//! in UTC.
//!
//! Source: `Lib/pickletools.py` and `Modules/_pickle.c` of Python 3.11, PEP 307, 3154, 574.

mod de;
mod direct;
mod machine;
mod natives;
mod old;
mod ops;
mod ser;
mod tape;
#[cfg(test)]
mod tests;
mod text;

use serde::Serialize;

use super::{Again, By, Code, Framing, Info, Takes};
use crate::{
    Result,
    marc::{Record, json::RecordSeed},
    record::Kind,
};

pub(super) const INFO: Info = Info {
    name: "pickle",
    extensions: &["pickle", "pkl"],
    framing: Framing::Delimited,
    takes: Takes::Anything,
    keeps: &[
        Kind::Null,
        Kind::Bool,
        Kind::Int,
        Kind::BigInt,
        Kind::Float,
        Kind::Decimal,
        Kind::Text,
        Kind::Bytes,
        Kind::List,
        Kind::Map,
    ],
    loses: "times keep their microseconds; times before the year 1 and decimals that are not \
            numbers become text",
    marc: Code::of(By::OwnSerde),
    values: Code::of(By::OwnSerde),
};

pub(super) fn encode<T: Serialize>(record: &T, out: &mut Vec<u8>) -> Result<()> {
    ser::encode(record, out)
}

pub(super) fn decode<'de, S: Again<'de>>(bytes: &'de [u8], mut seed: S) -> Result<S::Value> {
    // What is odd or wrong about it, the machine knows better.
    direct::decode::<&str, _>(seed.again(), bytes).or_else(|_| de::decode::<&str, _>(seed, bytes))
}

/// Reads a MARC record into one that is there, using its memory again.
pub(super) fn decode_marc(bytes: &[u8], record: &mut Record) -> Result<()> {
    direct::decode::<&[u8], _>(RecordSeed(record), bytes)
        .or_else(|_| de::decode::<&[u8], _>(RecordSeed(record), bytes))
}

/// Where the first record in `bytes` ends; none where more bytes are needed to tell.
///
/// # Errors
/// [`Malformed`](crate::ErrorKind::Malformed) where it is no pickle.
pub(super) fn length(bytes: &[u8]) -> Result<Option<usize>> {
    ops::length(bytes)
}
