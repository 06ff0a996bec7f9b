//! Ruby's Marshal, version 4.8, read and written without Ruby.
//!
//! Everything `Marshal.dump` writes is read as data; nothing in it is ever run, looked up or
//! called. Files: `reader` (bytes to heads of values, links, limits), `de` (heads to serde's
//! visitors), `direct` (bytes to the usual MARC records), `ser` and `object` (values to bytes),
//! `native` (times and decimals).
//!
//! | Ruby | read as |
//! |---|---|
//! | nil, true, false, Integer of any size, Float | the same |
//! | String in UTF-8 or US-ASCII, Symbol | text (bytes where it is not valid) |
//! | String in binary | bytes; text where text is asked for and it is UTF-8 |
//! | String in another encoding | text where it is ASCII (and the encoding builds on ASCII), else bytes |
//! | Array, Hash | list, map; a default value, a subclass and extra variables are left out |
//! | Time, BigDecimal | time (cut to nanoseconds, its zone left out), decimal |
//! | object (Range, exceptions, ...) | map: `"^class"`, then its variables without `@` |
//! | Struct, Data | map: `"^struct"`, then its members |
//! | what dumps itself to a string (`_dump`) | map: `"^class"`, `"^dump"` |
//! | what dumps itself to a value (`marshal_dump`; Rational, Complex, ...) | map: `"^class"`, `"^data"` |
//! | Regexp | map: `"^class"`, `"^source"`, `"^options"` |
//! | class, module | map: `"^class"` (`Class` or `Module`), `"^name"` |
//! | the same object again | a copy of it; an object inside itself is refused |
//!
//! A type that has no field of such a name never sees `"^class"` and `"^struct"`.
//!
//! Written: maps as hashes with UTF-8 strings as keys, bytes as binary strings, times and decimals
//! as Ruby's own. A map that begins with `"^class"` or `"^struct"`, if that is the name of a class
//! and the next name does not begin with `^`, becomes an object or struct of that class; anything
//! that would make Ruby call a class's own loader is written as a plain hash, never as that class.
//!
//! Source: `marshal.c` and `time.c` of Ruby 3.1, `doc/marshal.rdoc`.

mod de;
mod direct;
mod length;
mod native;
mod object;
mod reader;
mod ser;
mod skip;
#[cfg(test)]
mod tests;
mod text;

use serde::{Serialize, de::DeserializeSeed};

use super::{By, Code, Framing, Info, Takes};
use crate::{
    Result,
    marc::{Record, json::RecordSeed},
    record::Kind,
};

pub(super) const INFO: Info = Info {
    name: "marshal",
    extensions: &["marshal"],
    framing: Framing::Delimited,
    takes: Takes::Anything,
    keeps: &Kind::ALL,
    loses: "the sign and payload of values that are not a number",
    marc: Code { reads: By::Own, writes: By::OwnSerde },
    values: Code::of(By::OwnSerde),
};

/// What every record begins with: the version, 4.8.
const HEADER: [u8; 2] = [4, 8];
/// The first name of a map that stands for an object.
const CLASS: &str = "^class";
/// The first name of a map that stands for a struct.
const STRUCT: &str = "^struct";

pub(super) fn encode<T: Serialize>(record: &T, out: &mut Vec<u8>) -> Result<()> {
    ser::encode(record, out)
}

pub(super) fn decode<'de, S: DeserializeSeed<'de>>(bytes: &'de [u8], seed: S) -> Result<S::Value> {
    de::decode::<&str, _>(seed, bytes)
}

/// Reads a MARC record into one that is there, using its memory again.
pub(super) fn decode_marc(bytes: &[u8], record: &mut Record) -> Result<()> {
    if direct::read(bytes, record) {
        return Ok(());
    }
    de::decode::<&[u8], _>(RecordSeed(record), bytes)
}

/// Where the first record in `bytes` ends; none where more bytes are needed to tell.
///
/// # Errors
/// [`Malformed`](crate::ErrorKind::Malformed) where it is no Marshal.
pub(super) fn length(bytes: &[u8]) -> Result<Option<usize>> {
    length::length(bytes)
}
