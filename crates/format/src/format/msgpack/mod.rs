//! MessagePack (msgpack.org): its heads, and times as its own timestamps; structs as maps with
//! names.
//!
//! Numbers beyond 64 bits and decimals have no form in MessagePack that other programs know: they
//! are text. Extensions other than timestamps are refused: only the program that wrote them knows what they are.

use serde::{Serialize, de::DeserializeSeed};

use super::{
    By, Code, Framing, Info, Takes,
    heads::{self, Head, Heads, Reader, Sizes},
    objects::whole::Whole,
};
use crate::{
    Error, Result,
    marc::{Record, RecordRef, Trouble},
    record::{Kind, Time, native::TIME},
};

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
        Kind::Time,
        Kind::List,
        Kind::Map,
    ],
    loses: "decimals and whole numbers beyond 64 bits become text; times are moments in UTC",
    marc: Code::of(By::Own),
    values: Code::of(By::OwnSerde),
};

pub(super) fn encode<T: Serialize>(record: &T, out: &mut Vec<u8>) -> Result<()> {
    heads::encode::<Msgpack, T>(record, out)
}

pub(super) fn decode<'de, S: DeserializeSeed<'de>>(bytes: &'de [u8], seed: S) -> Result<S::Value> {
    heads::decode::<Msgpack, S>(bytes, seed)
}

/// Appends a MARC record, without serde between.
pub(super) fn encode_marc(record: RecordRef<'_>, out: &mut Vec<u8>) -> Result<()> {
    heads::write_marc::<Msgpack>(record, out)
}

/// Reads a MARC record into one that is there, without serde between.
pub(super) fn read_marc(
    bytes: &[u8],
    record: &mut Record,
    troubles: &mut Vec<Trouble>,
) -> Result<()> {
    heads::read_marc::<Msgpack>(bytes, record, troubles)
}

/// The type of the timestamp extension, as a signed byte.
const TIMESTAMP: i8 = -1;

/// MessagePack's heads.
struct Msgpack;

/// Heads whose count has two or four bytes, or is one of the first 16.
const fn counts(least: u8, before16: u8) -> Sizes {
    Sizes { least, below: 16, before8: None, before16 }
}

impl Heads for Msgpack {
    const NAME: &'static str = "MessagePack";
    const TEXT: Sizes = Sizes { least: 0xa0, below: 32, before8: Some(0xd9), before16: 0xda };
    const BYTES: Sizes = Sizes { least: 0, below: 0, before8: Some(0xc4), before16: 0xc5 };
    const LIST: Sizes = counts(0x90, 0xdc);
    const MAP: Sizes = counts(0x80, 0xde);
    const NULL: u8 = 0xc0;
    const FALSE: u8 = 0xc2;
    const FLOAT32: u8 = 0xca;
    const BREAK: Option<u8> = None;

    #[inline]
    fn put_int(v: i64, out: &mut Vec<u8>) {
        match v {
            0.. => Self::put_uint(v as u64, out),
            -32..0 => out.push(v as u8),
            -0x80..0 => out.extend_from_slice(&[0xd0, v as u8]),
            -0x8000..0 => {
                out.push(0xd1);
                out.extend_from_slice(&(v as i16).to_be_bytes());
            }
            -0x8000_0000..0 => {
                out.push(0xd2);
                out.extend_from_slice(&(v as i32).to_be_bytes());
            }
            _ => {
                out.push(0xd3);
                out.extend_from_slice(&v.to_be_bytes());
            }
        }
    }

    #[inline]
    fn put_uint(v: u64, out: &mut Vec<u8>) {
        match v {
            0..=0x7f => out.push(v as u8),
            0x80..=0xff => out.extend_from_slice(&[0xcc, v as u8]),
            0x100..=0xffff => {
                out.push(0xcd);
                out.extend_from_slice(&(v as u16).to_be_bytes());
            }
            0x1_0000..=0xffff_ffff => {
                out.push(0xce);
                out.extend_from_slice(&(v as u32).to_be_bytes());
            }
            _ => {
                out.push(0xcf);
                out.extend_from_slice(&v.to_be_bytes());
            }
        }
    }

    fn put_native(name: &'static str, text: &str, out: &mut Vec<u8>) -> Result<bool> {
        if name != TIME {
            return Ok(false);
        }
        let (seconds, nanos) = text.parse::<Time>()?.to_unix();
        match (u32::try_from(seconds), u64::try_from(seconds)) {
            (Ok(seconds), _) if nanos == 0 => {
                out.extend_from_slice(&[0xd6, TIMESTAMP as u8]);
                out.extend_from_slice(&seconds.to_be_bytes());
            }
            (_, Ok(seconds)) if seconds >> 34 == 0 => {
                out.extend_from_slice(&[0xd7, TIMESTAMP as u8]);
                out.extend_from_slice(&(u64::from(nanos) << 34 | seconds).to_be_bytes());
            }
            _ => {
                out.extend_from_slice(&[0xc7, 12, TIMESTAMP as u8]);
                out.extend_from_slice(&nanos.to_be_bytes());
                out.extend_from_slice(&seconds.to_be_bytes());
            }
        }
        Ok(true)
    }

    #[inline]
    fn head<'de>(reader: &mut Reader<'de, Self>) -> Result<Head<'de>> {
        let at = reader.pos();
        let marker = reader.byte()?;
        Ok(match marker {
            0xa0..=0xbf => Head::Text(reader.take(u64::from(marker & 0x1f))?),
            0x80..=0x8f => Head::Map(Some(u64::from(marker & 0xf))),
            0x90..=0x9f => Head::List(Some(u64::from(marker & 0xf))),
            0x00..=0x7f => Head::Whole(Whole::I64(marker.into())),
            0xe0..=0xff => Head::Whole(Whole::I64((marker as i8).into())),
            0xc0 => Head::Null,
            0xc2 => Head::Bool(false),
            0xc3 => Head::Bool(true),
            0xca => Head::Float(f32::from_be_bytes(reader.array()?).into()),
            0xcb => Head::Float(f64::from_be_bytes(reader.array()?)),
            0xcc => Head::Whole(Whole::I64(reader.byte()?.into())),
            0xcd => Head::Whole(Whole::I64(u16::from_be_bytes(reader.array()?).into())),
            0xce => Head::Whole(Whole::I64(u32::from_be_bytes(reader.array()?).into())),
            0xcf => {
                let v = u64::from_be_bytes(reader.array()?);
                Head::Whole(i64::try_from(v).map_or(Whole::U64(v), Whole::I64))
            }
            0xd0 => Head::Whole(Whole::I64((reader.byte()? as i8).into())),
            0xd1 => Head::Whole(Whole::I64(i16::from_be_bytes(reader.array()?).into())),
            0xd2 => Head::Whole(Whole::I64(i32::from_be_bytes(reader.array()?).into())),
            0xd3 => Head::Whole(Whole::I64(i64::from_be_bytes(reader.array()?))),
            0xd9..=0xdb => {
                let len = sized(reader, 1 << (marker - 0xd9))?;
                Head::Text(reader.take(len)?)
            }
            0xc4..=0xc6 => {
                let len = sized(reader, 1 << (marker - 0xc4))?;
                Head::Bytes(reader.take(len)?)
            }
            0xdc | 0xdd => Head::List(Some(sized(reader, if marker == 0xdc { 2 } else { 4 })?)),
            0xde | 0xdf => Head::Map(Some(sized(reader, if marker == 0xde { 2 } else { 4 })?)),
            0xd4..=0xd8 => extension(reader, 1 << (marker - 0xd4))?,
            0xc7..=0xc9 => {
                let len = sized(reader, 1 << (marker - 0xc7))?;
                extension(reader, len)?
            }
            0xc1 => {
                return Err(Error::malformed("0xC1, which MessagePack never uses").at(at as u64));
            }
        })
    }

    fn length(bytes: &[u8]) -> Result<Option<usize>> {
        length(bytes)
    }
}

/// A length in so many bytes.
#[inline]
fn sized(reader: &mut Reader<'_, Msgpack>, width: u64) -> Result<u64> {
    Ok(match width {
        1 => reader.byte()?.into(),
        2 => u16::from_be_bytes(reader.array()?).into(),
        _ => u32::from_be_bytes(reader.array()?).into(),
    })
}

/// An extension of `len` bytes, after its length: a time, if it is one that we know.
fn extension<'de>(reader: &mut Reader<'de, Msgpack>, len: u64) -> Result<Head<'de>> {
    let kind = reader.byte()? as i8;
    let bytes = reader.take(len)?;
    let time = if kind == TIMESTAMP { timestamp(bytes) } else { None };
    Ok(match time {
        Some(time) => Head::Time(time),
        None => Head::Extension(kind, bytes),
    })
}

/// The time in a timestamp of 32, 64 or 96 bits; none where it is another or its year is out of
/// range.
fn timestamp(bytes: &[u8]) -> Option<Time> {
    let (seconds, nanos) = match bytes.len() {
        4 => (u32::from_be_bytes(*bytes.first_chunk()?).into(), 0),
        8 => {
            let both = u64::from_be_bytes(*bytes.first_chunk()?);
            ((both & ((1 << 34) - 1)) as i64, (both >> 34) as u32)
        }
        12 => {
            let nanos = u32::from_be_bytes(*bytes.first_chunk()?);
            (i64::from_be_bytes(*bytes.last_chunk()?), nanos)
        }
        _ => return None,
    };
    if nanos > 999_999_999 {
        return None;
    }
    Time::from_unix(seconds, nanos).ok()
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
