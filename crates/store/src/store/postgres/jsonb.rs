//! Documents as `jsonb` keeps them.
//!
//! Numbers are decimal there: `1` and `1.0` stay apart, but `1e300` becomes 301 digits, which is
//! how a whole number is written. So floats are written without exponents and always with a point,
//! and come back as floats. Decimals and whole numbers of any length are numbers there. Minus zero becomes zero. Names lose their order, and there is no NUL.

use std::io;

use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter, Serializer};

use super::numeric;
use crate::{
    Error, Result,
    format::quote,
    record::{
        Document, Value,
        number::{self, Exact},
    },
    store::json,
};

/// Appends a document as JSON that `jsonb` takes.
///
/// # Errors
/// As [`json::check_with`]; [`Unsupported`](crate::ErrorKind::Unsupported) for a NUL in a name or text.
pub(super) fn write(record: &Document, out: &mut Vec<u8>) -> Result<()> {
    json::check_with(record, digits)?;
    let mut serializer = Serializer::with_formatter(out, Decimal);
    record.serialize(&mut serializer).map_err(|e| match nul_in(record) {
        Some(path) => Error::unsupported(format!(
            "field {path:?} has a NUL, which PostgreSQL's text cannot hold; use ?layout=blob"
        )),
        None => Error::unsupported(e.to_string()),
    })
}

/// Whether `jsonb` holds the number of these digits.
fn digits(text: &str) -> Result<(), String> {
    match number::is_json(text) {
        true => numeric::Digits::read(text).map(drop).map_err(|e| format!("is {}", e.context())),
        false => json::few_digits(text),
    }
}

/// The document of this JSON. Whole floats have all their digits in it, of which those that tell them
/// from other floats are the first.
///
/// # Errors
/// As [`json::read`].
pub(super) fn read(bytes: &[u8]) -> Result<Document> {
    let record = json::read(bytes)?;
    let changes = record.iter().any(|(_, value)| match value {
        // Most values are none of these, and are not worth a call each.
        Value::Decimal(_) | Value::List(_) | Value::Map(_) => has_decimals(value),
        _ => false,
    });
    match changes {
        true => Ok(record.into_iter().map(|(name, value)| (name, as_written(value))).collect()),
        false => Ok(record),
    }
}

fn has_decimals(value: &Value) -> bool {
    match value {
        Value::Decimal(_) => true,
        Value::List(list) => list.iter().any(has_decimals),
        Value::Map(map) => map.iter().any(|(_, value)| has_decimals(value)),
        _ => false,
    }
}

fn as_written(value: Value) -> Value {
    match value {
        Value::Decimal(text) => match text.parse::<f64>() {
            Ok(v) if v.is_finite() && Exact::read(&decimal(v)) == Exact::read(&text) => {
                Value::Float(v)
            }
            _ => Value::Decimal(text),
        },
        Value::List(list) => Value::List(list.into_iter().map(as_written).collect()),
        Value::Map(map) => {
            Value::Map(map.into_iter().map(|(name, value)| (name, as_written(value))).collect())
        }
        value => value,
    }
}

/// Where a NUL is, as a path; with names in quotes where it is in one of them.
fn nul_in(map: &Document) -> Option<String> {
    map.iter().find_map(|(name, value)| match name.contains('\0') {
        true => Some(name.to_owned()),
        false => nul_below(value).map(|below| format!("{name}{below}")),
    })
}

fn nul_below(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) => text.contains('\0').then(String::new),
        Value::Map(map) => nul_in(map).map(|path| format!(".{path}")),
        Value::List(list) => list
            .iter()
            .enumerate()
            .find_map(|(i, value)| nul_below(value).map(|below| format!("[{i}]{below}"))),
        _ => None,
    }
}

/// A finite float in decimal digits, always with a point.
pub(super) fn decimal(v: f64) -> String {
    // Up to where whole numbers of 64 bits are, which it may be compared with: all digits as they
    // are, not zeros after the shortest that tell it from others.
    const BEYOND: f64 = 18_446_744_073_709_551_616.0;
    match v.fract() == 0.0 {
        // Of two shortest spellings the one that all else here writes.
        false => {
            let value = Value::Float(v);
            let digits = number::digits(&value).unwrap_or_default();
            let exact = Exact::read(&digits);
            exact.map_or_else(|| v.to_string(), |exact| exact.floor(exact.fraction() as usize))
        }
        true if v.abs() < BEYOND => format!("{v:.1}"),
        true => format!("{v}.0"),
    }
}

struct Decimal;

impl Formatter for Decimal {
    fn begin_string<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        quote(out)
    }

    fn end_string<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        quote(out)
    }

    fn write_f64<W: ?Sized + io::Write>(&mut self, out: &mut W, v: f64) -> io::Result<()> {
        out.write_all(decimal(v).as_bytes())
    }

    fn write_char_escape<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        match escape {
            CharEscape::AsciiControl(0) => Err(io::Error::other("NUL")),
            escape => serde_json::ser::CompactFormatter.write_char_escape(out, escape),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn floats_come_back_from_their_digits() {
        for v in [
            0.0,
            1.0,
            -1.5,
            0.1,
            1e15,
            1e16,
            1e22,
            1e300,
            f64::MAX,
            f64::MIN,
            5e-324,
            1.0 / 3.0,
            9_007_199_254_740_993.0,
            732_612_069_620_161.2,
            -2.5e-300,
            f64::MIN_POSITIVE,
            18_446_744_073_709_551_616.0,
        ] {
            let text = decimal(v);
            assert!(text.contains('.') && !text.contains('e'), "{text}");
            assert_eq!(text.parse::<f64>().unwrap().to_bits(), v.to_bits(), "{text}");
            let back = read(format!(r#"{{"v":[{text}]}}"#).as_bytes()).unwrap();
            assert_eq!(back.get("v"), Some(&Value::List(vec![Value::Float(v)])), "{text}");
        }
        assert_eq!(decimal(9_223_372_036_854_774_784.0), "9223372036854774784.0");
        // Between two shortest spellings.
        assert_eq!(decimal(732_612_069_620_161.2), "732612069620161.2");
        let other = Value::Decimal("732612069620161.3".into());
        assert_eq!(read(br#"{"v":732612069620161.3}"#).unwrap().get("v"), Some(&other));
    }

    #[test]
    fn nul_is_refused_by_its_path() {
        let inner = Document::from_iter([("b", Value::List(vec![1.into(), "x\0".into()]))]);
        let name = Document::from_iter([("n\0", Value::Null)]);
        for (record, want) in [
            (Document::from_iter([("a", Value::Map(inner))]), r#"field "a.b[1]" has a NUL"#),
            (Document::from_iter([("a", Value::Map(name))]), r#"field "a.n\0" has a NUL"#),
        ] {
            let error = write(&record, &mut Vec::new()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.to_string().contains(want), "{error}");
        }
        let fine = Document::from_iter([("a", "\\u0000 \u{1} \"\\")]);
        let mut out = Vec::new();
        write(&fine, &mut out).unwrap();
        assert_eq!(json::read(&out).unwrap(), fine);
    }
}
