//! CBOR (RFC 8949): its heads, and times, big numbers and decimals under its own tags.
//!
//! | kind | written as | read as well |
//! |---|---|---|
//! | time | tag 0, RFC 3339 text; before the year 0, tag 1001 | tag 1, seconds since 1970 |
//! | whole number beyond 64 bits | tag 2 or 3, its bytes | |
//! | decimal | tag 4, exponent and digits | tag 5, the same of a power of two; tags 264 and 265 |
//!
//! Other tags are passed over: what they stand before is read as it is. Those that make another value of it
//! (fractions, references) are refused, as are tags 2 to 5 before what is no number.

mod tags;
#[cfg(test)]
mod tests;

use serde::{Serialize, de::DeserializeSeed};

use super::{
    By, Code, DEPTH, Framing, Info, Takes,
    heads::{self, Head, Heads, Reader, Sizes},
    objects::whole::Whole,
};
use crate::{
    Error, Result,
    marc::{Record, RecordRef, Trouble},
    record::Kind,
};

pub(super) const INFO: Info = Info {
    name: "cbor",
    extensions: &["cbor"],
    framing: Framing::Delimited,
    takes: Takes::Anything,
    keeps: &Kind::ALL,
    loses: "decimals may be spelled differently; those that are not numbers, or have an exponent \
            beyond 2,147,483,647, become text",
    marc: Code::of(By::Own),
    values: Code::of(By::OwnSerde),
};

pub(super) fn encode<T: Serialize>(record: &T, out: &mut Vec<u8>) -> Result<()> {
    heads::encode::<Cbor, T>(record, out)
}

pub(super) fn decode<'de, S: DeserializeSeed<'de>>(bytes: &'de [u8], seed: S) -> Result<S::Value> {
    heads::decode::<Cbor, S>(bytes, seed)
}

/// Appends a MARC record, without serde between.
pub(super) fn encode_marc(record: RecordRef<'_>, out: &mut Vec<u8>) -> Result<()> {
    heads::write_marc::<Cbor>(record, out)
}

/// Reads a MARC record into one that is there, without serde between.
pub(super) fn read_marc(
    bytes: &[u8],
    record: &mut Record,
    troubles: &mut Vec<Trouble>,
) -> Result<()> {
    heads::read_marc::<Cbor>(bytes, record, troubles)
}

/// CBOR's heads.
struct Cbor;

/// Major types: the first three bits of a head.
const NEGATIVE: u8 = 1 << 5;
const BYTES: u8 = 2 << 5;
const TEXT: u8 = 3 << 5;
const LIST: u8 = 4 << 5;
const MAP: u8 = 5 << 5;
const TAG: u8 = 6 << 5;

/// The heads of a major type that has lengths.
const fn sizes(major: u8) -> Sizes {
    Sizes { least: major, below: 24, before8: Some(major | 24), before16: major | 25 }
}

/// Appends a head of this major type: the shortest that holds the number.
#[inline]
fn put(major: u8, n: u64, out: &mut Vec<u8>) {
    match n {
        0..24 => out.push(major | n as u8),
        24..=0xff => out.extend_from_slice(&[major | 24, n as u8]),
        0x100..=0xffff => {
            out.push(major | 25);
            out.extend_from_slice(&(n as u16).to_be_bytes());
        }
        0x1_0000..=0xffff_ffff => {
            out.push(major | 26);
            out.extend_from_slice(&(n as u32).to_be_bytes());
        }
        _ => {
            out.push(major | 27);
            out.extend_from_slice(&n.to_be_bytes());
        }
    }
}

/// The number of a head whose first byte has these five low bits; none for an unknown count.
#[inline]
fn argument(reader: &mut Reader<'_, Cbor>, low: u8) -> Result<Option<u64>> {
    Ok(Some(match low {
        0..24 => low.into(),
        24 => reader.byte()?.into(),
        25 => u16::from_be_bytes(reader.array()?).into(),
        26 => u32::from_be_bytes(reader.array()?).into(),
        27 => u64::from_be_bytes(reader.array()?),
        31 => return Ok(None),
        _ => return Err(reader.wrong("a head that CBOR never uses")),
    }))
}

impl Heads for Cbor {
    const NAME: &'static str = "CBOR";
    const TEXT: Sizes = sizes(TEXT);
    const BYTES: Sizes = sizes(BYTES);
    const LIST: Sizes = sizes(LIST);
    const MAP: Sizes = sizes(MAP);
    const NULL: u8 = 0xf6;
    const FALSE: u8 = 0xf4;
    const FLOAT32: u8 = 0xfa;
    const BREAK: Option<u8> = Some(0xff);

    #[inline]
    fn put_int(v: i64, out: &mut Vec<u8>) {
        match u64::try_from(v) {
            Ok(v) => put(0, v, out),
            // -1 - n, which are the bits of v turned over.
            Err(_) => put(NEGATIVE, !v as u64, out),
        }
    }
    #[inline]
    fn put_uint(v: u64, out: &mut Vec<u8>) {
        put(0, v, out);
    }
    fn put_native(name: &'static str, text: &str, out: &mut Vec<u8>) -> Result<bool> {
        tags::write(name, text, out)
    }

    #[inline]
    fn head<'de>(reader: &mut Reader<'de, Self>) -> Result<Head<'de>> {
        let mut at = reader.pos();
        let mut first = reader.byte()?;
        // Tags that are not known are passed over, however many stand one after another.
        while first & 0xe0 == TAG {
            let Some(tag) = argument(reader, first & 0x1f)? else { return Err(unused(first, at)) };
            if let Some(native) = tags::read(tag, at, reader)? {
                return Ok(native);
            }
            at = reader.pos();
            first = reader.byte()?;
        }
        let (major, low) = (first & 0xe0, first & 0x1f);
        if major == 0xe0 {
            return simple(reader, low, at);
        }
        let n = argument(reader, low)?;
        Ok(match (major, n) {
            (TEXT, Some(n)) => Head::Text(reader.take(n)?),
            (MAP, n) => Head::Map(n),
            (LIST, n) => Head::List(n),
            (0, Some(n)) => Head::Whole(i64::try_from(n).map_or(Whole::U64(n), Whole::I64)),
            (NEGATIVE, Some(n)) => Head::Whole(match i64::try_from(n) {
                Ok(n) => Whole::I64(!n),
                Err(_) => Whole::I128(!i128::from(n)),
            }),
            (BYTES, Some(n)) => Head::Bytes(reader.take(n)?),
            (TEXT | BYTES, None) => pieces(reader, major)?,
            _ => return Err(unused(first, at)),
        })
    }

    fn length(bytes: &[u8]) -> Result<Option<usize>> {
        length(bytes)
    }
}

#[cold]
fn unused(first: u8, at: usize) -> Error {
    let what = match first {
        0xff => "a break instead of an item".to_owned(),
        _ => format!("0x{first:02X}, which CBOR never uses"),
    };
    Error::malformed(what).at(at as u64)
}

/// Floats, truth and nothing, whose first byte ends in these bits.
#[inline]
fn simple<'de>(reader: &mut Reader<'de, Cbor>, low: u8, at: usize) -> Result<Head<'de>> {
    Ok(match low {
        20 => Head::Bool(false),
        21 => Head::Bool(true),
        // What is undefined is no value either.
        22 | 23 => Head::Null,
        25 => Head::Float(half(u16::from_be_bytes(reader.array()?))),
        26 => Head::Float(f32::from_be_bytes(reader.array()?).into()),
        27 => Head::Float(f64::from_be_bytes(reader.array()?)),
        31 => return Err(unused(0xff, at)),
        _ => {
            let what = "an unknown simple value (known: false, true, null, undefined)";
            return Err(Error::malformed(what).at(at as u64));
        }
    })
}

/// The value of a float of 16 bits.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (bits >> 10 & 0x1f, f64::from(bits & 0x3ff));
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::from_bits(0x7ff0 << 48 | u64::from(bits & 0x3ff) << 42),
        _ => (1024.0 + fraction) * 2f64.powi(i32::from(exponent) - 25),
    };
    if bits & 0x8000 == 0 { magnitude } else { -magnitude }
}

/// Text or bytes in pieces, each of a known length, up to a break.
#[cold]
fn pieces<'de>(reader: &mut Reader<'de, Cbor>, major: u8) -> Result<Head<'de>> {
    let mut bytes = Vec::new();
    loop {
        let at = reader.pos();
        match reader.byte()? {
            0xff => return Ok(Head::Joined { text: major == TEXT, bytes }),
            first if first & 0xe0 == major => match argument(reader, first & 0x1f)? {
                Some(n) => bytes.extend_from_slice(reader.take(n)?),
                None => return Err(unused(first, at)),
            },
            _ => return Err(Error::malformed("a chunk of another type").at(at as u64)),
        }
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
                _ => return Err(Error::malformed("a break instead of an item").at(at as u64)),
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
