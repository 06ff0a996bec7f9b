//! Values as they go over the wire, and back: the binary formats of PostgreSQL's types.
//!
//! A field is its length in four bytes, then its bytes; a length of -1 is NULL. `COPY`, elements of
//! arrays and bound values all have that shape, so each is written by the same function.

use bytes::{BufMut, BytesMut};
use jiff::{Timestamp, tz::Offset};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type};

use super::{jsonb, numeric};
use crate::{
    Error, ErrorKind, Result,
    record::{Kind, Time, Value},
};

type BoxError = Box<dyn std::error::Error + Sync + Send>;

/// A type whose binary format is known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    Bool,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    Text,
    Bytea,
    Timestamptz,
    /// Without a time zone: taken as UTC.
    Timestamp,
    Numeric,
    Jsonb,
    Uuid,
}

impl Wire {
    /// The wire of a type that the database names so; none for types that go as text.
    pub(super) fn of(oid: u32) -> Option<Wire> {
        Some(match Type::from_oid(oid)? {
            Type::BOOL => Wire::Bool,
            Type::INT2 => Wire::Int2,
            Type::INT4 => Wire::Int4,
            Type::INT8 => Wire::Int8,
            Type::FLOAT4 => Wire::Float4,
            Type::FLOAT8 => Wire::Float8,
            Type::TEXT | Type::VARCHAR => Wire::Text,
            Type::BYTEA => Wire::Bytea,
            Type::TIMESTAMPTZ => Wire::Timestamptz,
            Type::TIMESTAMP => Wire::Timestamp,
            Type::NUMERIC => Wire::Numeric,
            Type::JSONB => Wire::Jsonb,
            Type::UUID => Wire::Uuid,
            _ => return None,
        })
    }

    /// The type of one, and of an array of them.
    pub(super) fn types(self) -> (Type, Type) {
        match self {
            Wire::Bool => (Type::BOOL, Type::BOOL_ARRAY),
            Wire::Int2 => (Type::INT2, Type::INT2_ARRAY),
            Wire::Int4 => (Type::INT4, Type::INT4_ARRAY),
            Wire::Int8 => (Type::INT8, Type::INT8_ARRAY),
            Wire::Float4 => (Type::FLOAT4, Type::FLOAT4_ARRAY),
            Wire::Float8 => (Type::FLOAT8, Type::FLOAT8_ARRAY),
            Wire::Text => (Type::TEXT, Type::TEXT_ARRAY),
            Wire::Bytea => (Type::BYTEA, Type::BYTEA_ARRAY),
            Wire::Timestamptz => (Type::TIMESTAMPTZ, Type::TIMESTAMPTZ_ARRAY),
            Wire::Timestamp => (Type::TIMESTAMP, Type::TIMESTAMP_ARRAY),
            Wire::Numeric => (Type::NUMERIC, Type::NUMERIC_ARRAY),
            Wire::Jsonb => (Type::JSONB, Type::JSONB_ARRAY),
            Wire::Uuid => (Type::UUID, Type::UUID_ARRAY),
        }
    }

    /// Appends the bytes of a value; the caller sees to its length.
    ///
    /// # Errors
    /// What is wrong with the value, in a phrase that follows the field's name.
    pub(super) fn write(self, value: &Value, out: &mut Vec<u8>) -> Result<()> {
        let cannot = || {
            let kind = value.kind().one();
            Error::invalid(format!("is {kind}, which its column cannot hold"))
        };
        match (self, value) {
            (Wire::Bool, Value::Bool(v)) => out.push(u8::from(*v)),
            (Wire::Int2, Value::Int(n)) => {
                out.extend(i16::try_from(*n).map_err(|_| beyond(n, 16))?.to_be_bytes());
            }
            (Wire::Int4, Value::Int(n)) => {
                out.extend(i32::try_from(*n).map_err(|_| beyond(n, 32))?.to_be_bytes());
            }
            (Wire::Int8, Value::Int(n)) => out.extend(n.to_be_bytes()),
            (Wire::Float4 | Wire::Float8, Value::Int(n)) => {
                let v = *n as f64;
                if v as i128 != i128::from(*n) {
                    return Err(Error::invalid(format!("is {n}, which no float equals exactly")));
                }
                return self.write(&Value::Float(v), out);
            }
            (Wire::Float4 | Wire::Float8, Value::Float(v)) if v.is_nan() => {
                return Err(Error::invalid(
                    "is NaN, which PostgreSQL takes for the greatest number",
                ));
            }
            (Wire::Float8, Value::Float(v)) => out.extend(v.to_be_bytes()),
            (Wire::Float4, Value::Float(v)) => {
                let short = *v as f32;
                if f64::from(short).to_bits() != v.to_bits() {
                    let what = format!("is {v}, which its single precision column would round");
                    return Err(Error::invalid(what));
                }
                out.extend(short.to_be_bytes());
            }
            (Wire::Text, Value::Text(text)) => {
                if memchr::memchr(0, text.as_bytes()).is_some() {
                    return Err(Error::unsupported(
                        "has a NUL, which PostgreSQL's text cannot hold; use ?layout=blob",
                    ));
                }
                out.extend(text.as_bytes());
            }
            (Wire::Bytea, Value::Bytes(bytes)) => out.extend(bytes),
            (Wire::Timestamptz | Wire::Timestamp, Value::Time(time)) => {
                out.extend(micros(*time)?.to_be_bytes());
            }
            (Wire::Numeric, Value::Decimal(text) | Value::BigInt(text)) => {
                numeric::Digits::read(text)
                    .map_err(|e| Error::new(e.kind(), format!("holds {}", e.context())))?
                    .write(out);
            }
            (Wire::Numeric, Value::Int(n)) => numeric::Digits::read(&n.to_string())?.write(out),
            (Wire::Numeric, Value::Float(v)) => {
                let digits = match v.is_finite() {
                    true => jsonb::decimal(*v),
                    // Only to compare with: the number of most digits.
                    false => {
                        let sign = if *v > 0.0 { "" } else { "-" };
                        format!("{sign}{}", "9".repeat(numeric::WHOLE))
                    }
                };
                numeric::Digits::read(&digits)?.write(out);
            }
            (Wire::Uuid, Value::Text(text)) => {
                let id = uuid::Uuid::try_parse(text).ok().filter(|id| id.to_string() == *text);
                let id = id.ok_or_else(|| {
                    Error::invalid(
                        "is not a UUID as PostgreSQL writes them, but its column holds those",
                    )
                })?;
                out.extend(id.as_bytes());
            }
            _ => return Err(cannot()),
        }
        Ok(())
    }

    /// The value of these bytes, as a column of this kind holds it.
    ///
    /// # Errors
    /// [`Malformed`](ErrorKind::Malformed) where they are none.
    pub(super) fn read(self, kind: Kind, bytes: &[u8]) -> Result<Value> {
        let wrong = || Error::malformed(format!("{} bytes are no {self:?}", bytes.len()));
        macro_rules! number {
            ($type:ty) => {
                <$type>::from_be_bytes(bytes.try_into().map_err(|_| wrong())?)
            };
        }
        Ok(match self {
            Wire::Bool => Value::Bool(bytes == [1]),
            Wire::Int2 => Value::Int(number!(i16).into()),
            Wire::Int4 => Value::Int(number!(i32).into()),
            Wire::Int8 => Value::Int(number!(i64)),
            Wire::Float4 => Value::Float(number!(f32).into()),
            Wire::Float8 => Value::Float(number!(f64)),
            Wire::Bytea => Value::Bytes(bytes.to_vec()),
            Wire::Timestamptz => moment(number!(i64), "+00")?,
            Wire::Timestamp => moment(number!(i64), "")?,
            Wire::Numeric => {
                let text = numeric::read(bytes).ok_or_else(wrong)?;
                match kind {
                    // `NaN` and the infinities, which no decimal is, and a float is.
                    _ if text.ends_with(char::is_alphabetic) => {
                        Value::Float(text.parse().map_err(|_| wrong())?)
                    }
                    Kind::BigInt => Value::BigInt(text.into()),
                    _ => Value::Decimal(text.into()),
                }
            }
            Wire::Uuid => {
                Value::Text(uuid::Uuid::from_slice(bytes).map_err(|_| wrong())?.to_string())
            }
            Wire::Text | Wire::Jsonb => {
                let text = simdutf8::basic::from_utf8(bytes).map_err(|_| wrong())?;
                Value::Text(text.to_owned())
            }
        })
    }
}

fn beyond(n: &i64, bits: u8) -> Error {
    Error::invalid(format!("is {n}, but its column holds whole numbers of {bits} bits"))
}

/// Microseconds at 2000-01-01, where PostgreSQL's time begins, since 1970.
pub(super) const EPOCH: i64 = 946_684_800_000_000;
/// The first moment of PostgreSQL, 4714-11-24 before Christ, in microseconds since 2000.
pub(super) const FIRST: i64 = -211_813_488_000_000_000;

/// The first second that is no moment of ours.
pub(super) const AFTER_ALL: &str = "9999-12-30 22:00:01";

/// Microseconds since 2000, rounded down, and whether that was exact.
pub(super) fn since_2000(time: Time) -> (i64, bool) {
    let (seconds, nanos) = time.to_unix();
    // Years -9999 to 9999: far from where this would overflow.
    (seconds * 1_000_000 + i64::from(nanos / 1000) - EPOCH, nanos % 1000 == 0)
}

fn micros(time: Time) -> Result<i64> {
    match since_2000(time) {
        (_, false) => {
            let what = format!("is {time}, but PostgreSQL keeps times to the microsecond");
            Err(Error::invalid(what))
        }
        (micros, true) if micros < FIRST => {
            Err(Error::invalid(format!("is {time}, but PostgreSQL's times begin 4713 BC")))
        }
        (micros, true) => Ok(micros),
    }
}

/// The time of so many microseconds since 2000. What lies beyond our times is the text that PostgreSQL writes, which ends
/// in `zone`.
pub(super) fn moment(micros: i64, zone: &str) -> Result<Value> {
    match micros {
        i64::MAX => return Ok("infinity".into()),
        i64::MIN => return Ok("-infinity".into()),
        _ => {}
    }
    let unix = i128::from(micros) + i128::from(EPOCH);
    let seconds = unix.div_euclid(1_000_000) as i64;
    let nanos = unix.rem_euclid(1_000_000) as u32 * 1000;
    if let Ok(time) = Time::from_unix(seconds, nanos) {
        return Ok(Value::Time(time));
    }
    // After as many years the calendar begins again, and in this many cycles of them the year is one of ours.
    const YEARS: i64 = 400;
    const SECONDS: i64 = 146_097 * 86_400;
    let cycles = seconds.div_euclid(SECONDS);
    let wrong = |e| Error::malformed("a time outside PostgreSQL's range").with_source(e);
    let at = Timestamp::from_second(seconds.rem_euclid(SECONDS)).map_err(wrong)?;
    let at = Offset::UTC.to_datetime(at);
    let mut text =
        format!("{}-{}", i64::from(at.year()) + cycles * YEARS, at.strftime("%m-%d %H:%M:%S"));
    if nanos > 0 {
        text += format!(".{:06}", nanos / 1000).trim_end_matches('0');
    }
    Ok(Value::Text(text + zone))
}

/// Appends a field, whose bytes `write` appends.
pub(super) fn field(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    let at = out.len();
    out.extend([0; 4]);
    write(out)?;
    let length = out.len() - at - 4;
    let Ok(length) = i32::try_from(length) else {
        let what = format!("{length} bytes; the limit of PostgreSQL is 1 GB");
        return Err(Error::new(ErrorKind::TooLarge, what));
    };
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// Appends a field that is NULL.
pub(super) fn null(out: &mut Vec<u8>) {
    out.extend((-1i32).to_be_bytes());
}

/// A bound value: fields as they were written.
#[derive(Debug)]
pub(super) enum Bound {
    /// One field.
    One(Vec<u8>),
    /// An array of so many, of this type.
    Many(Type, usize, Vec<u8>),
}

impl ToSql for Bound {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, BoxError> {
        self.body(out);
        match self.is_null() {
            true => Ok(IsNull::Yes),
            false => Ok(IsNull::No),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    tokio_postgres::types::to_sql_checked!();
}

impl Bound {
    fn is_null(&self) -> bool {
        matches!(self, Bound::One(field) if field[..4] == (-1i32).to_be_bytes())
    }

    /// Appends it with its length.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Bound::One(field) => out.put_slice(field),
            Bound::Many(..) => {
                let at = out.len();
                out.put_i32(0);
                self.body(out);
                let length = (out.len() - at - 4) as u32;
                out[at..at + 4].copy_from_slice(&length.to_be_bytes());
            }
        }
    }

    /// Appends it without.
    fn body(&self, out: &mut impl BufMut) {
        match self {
            Bound::One(field) => out.put_slice(&field[4..]),
            Bound::Many(_, 0, _) => {
                out.put_slice(&[0; 8]);
                out.put_u32(self.element());
            }
            Bound::Many(_, count, fields) => {
                // One dimension; there may be NULLs; so many from 1 on.
                out.put_i32(1);
                out.put_i32(1);
                out.put_u32(self.element());
                out.put_u32(*count as u32);
                out.put_i32(1);
                out.put_slice(fields);
            }
        }
    }

    fn element(&self) -> u32 {
        match self {
            Bound::Many(element, ..) => element.oid(),
            Bound::One(_) => 0,
        }
    }
}

/// The bytes of a cell of any type.
pub(super) struct Raw<'a>(pub Option<&'a [u8]>);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(_: &Type, bytes: &'a [u8]) -> Result<Self, BoxError> {
        Ok(Raw(Some(bytes)))
    }

    fn from_sql_null(_: &Type) -> Result<Self, BoxError> {
        Ok(Raw(None))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(wire: Wire, kind: Kind, value: &Value) -> Result<Value> {
        let mut bytes = Vec::new();
        wire.write(value, &mut bytes)?;
        wire.read(kind, &bytes)
    }

    #[test]
    fn values_come_back_or_are_refused() {
        let time = |s: i64, n: u32| Value::Time(Time::from_unix(s, n).unwrap());
        for (wire, value) in [
            (Wire::Bool, Value::Bool(true)),
            (Wire::Int2, Value::Int(-32768)),
            (Wire::Int4, Value::Int(1 << 30)),
            (Wire::Int8, Value::Int(i64::MIN)),
            (Wire::Float4, Value::Float(0.5)),
            (Wire::Float8, Value::Float(-0.0)),
            (Wire::Float8, Value::Float(f64::NEG_INFINITY)),
            (Wire::Text, "ü'\"\\".into()),
            (Wire::Bytea, Value::Bytes(vec![0, 255])),
            (Wire::Timestamptz, time(-1, 999_999_000)),
            (Wire::Timestamp, time(253_370_764_800, 0)),
            (Wire::Timestamptz, moment(FIRST, "").unwrap()),
            (Wire::Numeric, Value::Decimal("1.50".into())),
            (Wire::Uuid, "01234567-89ab-cdef-0123-456789abcdef".into()),
        ] {
            assert_eq!(through(wire, value.kind(), &value).unwrap(), value, "{wire:?}");
        }
        let big = Value::BigInt("-18446744073709551616".into());
        assert_eq!(through(Wire::Numeric, Kind::BigInt, &big).unwrap(), big);
        for (wire, value, want) in [
            (Wire::Int2, Value::Int(32768), "16 bits"),
            (Wire::Int4, Value::Int(1 << 31), "32 bits"),
            (Wire::Float8, Value::Float(f64::NAN), "NaN"),
            (Wire::Float8, Value::Int((1 << 53) + 1), "no float equals exactly"),
            (Wire::Float4, Value::Float(0.1), "single precision"),
            (Wire::Text, "a\0".into(), "NUL"),
            (Wire::Timestamptz, time(0, 1), "to the microsecond"),
            (Wire::Timestamptz, time(-250_000_000_000, 0), "4713 BC"),
            (Wire::Numeric, Value::Decimal("x".into()), "not a decimal number"),
            (Wire::Uuid, "01234567-89AB-cdef-0123-456789abcdef".into(), "not a UUID"),
            (Wire::Bool, Value::Int(1), "is an int"),
        ] {
            let error = through(wire, value.kind(), &value).unwrap_err();
            assert!(error.to_string().contains(want), "{error}");
        }
    }
}
