//! Records as JSON text, for the stores whose documents are that.
//!
//! JSON has no bytes, no NaN and no infinities: [`check`] refuses those, naming the field, and a
//! name that is given twice, of which stores keep one. Times become text ([`KEEPS`], [`LOSES`]).
//! Numbers that are neither whole ones of 64 bits nor floats are refused, too ([`few_digits`]), as most
//! stores round them, or compare them as floats. What one store refuses beyond that is in its own file.

use crate::{
    Error, Result,
    format::Format,
    record::{Document, Kind, Value, number},
};

/// The kinds of value that come back equal.
pub(super) const KEEPS: &[Kind] =
    &[Kind::Null, Kind::Bool, Kind::Int, Kind::Float, Kind::Text, Kind::List, Kind::Map];
/// What is lost.
pub(super) const LOSES: &str = "times become text; decimals become floats or whole numbers of the \
                                same value; numbers with more digits, bytes, NaN and infinities \
                                are refused";

/// How deep a record may nest, itself counted: MySQL holds 100 levels, and a reader of JSON has to
/// stop somewhere.
pub(super) const LEVELS: usize = 100;

/// Whether JSON can hold a record.
///
/// # Errors
/// [`Unsupported`](crate::ErrorKind::Unsupported) or [`TooLarge`](crate::ErrorKind::TooLarge),
/// naming the field and what to do; the key is for the caller to add.
pub(super) fn check(record: &Document) -> Result<()> {
    check_with(record, few_digits)
}

/// The same for a store with numbers of its own: what says of digits whether they can be held, and what
/// to do where not.
///
/// # Errors
/// As [`check`].
pub(super) fn check_with(record: &Document, number: Number) -> Result<()> {
    // Few nest deeper.
    const USUAL: usize = 4;
    check_map(record, &mut Steps { steps: Vec::with_capacity(USUAL), number })
}

/// Whether a store holds the number of these digits.
type Number = fn(&str) -> Result<(), String>;

/// Only whole numbers of 64 bits and floats, in the digits of a number in JSON.
///
/// # Errors
/// For others.
pub(super) fn few_digits(digits: &str) -> Result<(), String> {
    match number::of_json(digits) {
        Some(Value::Int(_) | Value::Float(_)) => Ok(()),
        Some(_) => Err(format!(
            "is {}, which has more digits than the store compares; use ?layout=blob&format=json, or text",
            short(digits)
        )),
        None => {
            Err(format!("is {}, which is not a number in JSON; use ?layout=blob", short(digits)))
        }
    }
}

/// The first of many digits.
fn short(digits: &str) -> String {
    match digits.char_indices().nth(50) {
        None => digits.to_owned(),
        Some((end, _)) => format!("{}…", &digits[..end]),
    }
}

/// Where a check is, and what it asks of numbers.
struct Steps<'a> {
    steps: Vec<Step<'a>>,
    number: Number,
}

/// A way into a record: names, and places in lists.
enum Step<'a> {
    Name(&'a str),
    Place(usize),
}

fn check_map<'a>(map: &'a Document, at: &mut Steps<'a>) -> Result<()> {
    check_level(&at.steps)?;
    if let Some(name) = twice(map) {
        at.steps.push(Step::Name(name));
        return refuse(&at.steps, "occurs twice, and JSON stores keep only one");
    }
    for (name, value) in map.iter() {
        at.steps.push(Step::Name(name));
        check_value(value, at)?;
        at.steps.pop();
    }
    Ok(())
}

fn check_value<'a>(value: &'a Value, at: &mut Steps<'a>) -> Result<()> {
    match value {
        Value::Bytes(_) => refuse(
            &at.steps,
            "is bytes, which JSON cannot hold; use ?layout=blob, or text in Base64",
        ),
        Value::Float(v) if !v.is_finite() => {
            refuse(&at.steps, &format!("is {v}, which JSON cannot hold; use null or ?layout=blob"))
        }
        Value::BigInt(digits) | Value::Decimal(digits) => {
            (at.number)(digits).or_else(|what| refuse(&at.steps, &what))
        }
        Value::Map(map) => check_map(map, at),
        Value::List(list) => {
            check_level(&at.steps)?;
            for (place, value) in list.iter().enumerate() {
                at.steps.push(Step::Place(place));
                check_value(value, at)?;
                at.steps.pop();
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn check_level(steps: &[Step]) -> Result<()> {
    match steps.len() < LEVELS {
        true => Ok(()),
        // Shown by its beginning: all of it would be long.
        false => Err(Error::new(
            crate::ErrorKind::TooLarge,
            format!(
                "field {:?}… nests deeper than {LEVELS} levels; use ?layout=blob",
                shown(&steps[..3])
            ),
        )),
    }
}

/// A name that a map has more than once.
fn twice(map: &Document) -> Option<&str> {
    const FEW: usize = 24;
    if map.len() <= FEW {
        let mut names = map.iter().map(|(name, _)| name);
        while let Some(name) = names.next() {
            if names.clone().any(|other| other == name) {
                return Some(name);
            }
        }
        return None;
    }
    let mut seen = std::collections::HashSet::with_capacity(map.len());
    map.iter().map(|(name, _)| name).find(|name| !seen.insert(*name))
}

fn refuse(steps: &[Step], what: &str) -> Result<()> {
    Err(Error::unsupported(format!("field {:?} {what}", shown(steps))))
}

fn shown(steps: &[Step]) -> String {
    let mut text = String::new();
    for step in steps {
        match step {
            Step::Name(name) => {
                text += if text.is_empty() { "" } else { "." };
                text += name;
            }
            Step::Place(place) => text += &format!("[{place}]"),
        }
    }
    text
}

/// Appends a record as JSON on one line, for records that passed [`check`].
///
/// # Errors
/// None for those.
pub(super) fn write(record: &Document, out: &mut Vec<u8>) -> Result<()> {
    Format::Json.encode_document(record, out)
}

/// The record of this JSON.
///
/// # Errors
/// [`Malformed`](crate::ErrorKind::Malformed) with the byte offset, where it is none.
pub(super) fn read(bytes: &[u8]) -> Result<Document> {
    Format::Json.decode_document(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ErrorKind, record::Time};

    fn written(record: &Document) -> String {
        let mut out = Vec::new();
        write(record, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn of(value: impl Into<Value>) -> Document {
        Document::from_iter([("a", value)])
    }

    #[test]
    fn what_json_keeps_comes_back_equal() {
        let record = Document::from_iter([
            ("null", Value::Null),
            ("yes", Value::Bool(true)),
            ("least", Value::Int(i64::MIN)),
            ("most", Value::Int(i64::MAX)),
            ("one", Value::Float(1.0)),
            ("minus zero", Value::Float(-0.0)),
            ("tiny", Value::Float(f64::from_bits(1))),
            ("huge", Value::Float(f64::MAX)),
            ("", Value::from("\0 \r\n \"\\ \u{1f600} \u{2028}")),
            ("list", Value::List(vec![Value::List(vec![]), Value::Map(Document::new())])),
            ("map", Value::Map(of(Value::Null))),
        ]);
        check(&record).unwrap();
        let text = written(&record);
        assert!(!text.contains('\n'), "{text}");
        assert_eq!(read(text.as_bytes()).unwrap(), record);
    }

    #[test]
    fn what_is_no_json_is_spelled_in_it() {
        let time = Time::from_unix(1_234_567_890, 5).unwrap();
        for (value, want) in [
            (Value::Time(time), r#"{"a":"2009-02-13T23:31:30.000000005Z"}"#),
            (Value::Decimal("1.50".into()), r#"{"a":1.50}"#),
            (Value::List(vec![Value::BigInt("12".into())]), r#"{"a":[12]}"#),
        ] {
            let record = of(value);
            check(&record).unwrap();
            assert_eq!(written(&record), want);
        }
    }

    #[test]
    fn what_json_cannot_hold_is_refused_by_its_path() {
        let inside = |value| of(vec![Value::Null, Value::Map(Document::from_iter([("b", value)]))]);
        for (record, want) in [
            (of(vec![1u8]), "field \"a\" is bytes"),
            (inside(Value::Bytes(vec![])), "field \"a[1].b\" is bytes"),
            (inside(Value::Float(f64::NAN)), "field \"a[1].b\" is NaN"),
            (of(f64::NEG_INFINITY), "field \"a\" is -inf"),
            (
                inside(Value::BigInt("18446744073709551615".into())),
                "field \"a[1].b\" is 1844674407",
            ),
            (of(Value::Decimal("0.10000000000000000001".into())), "has more digits than"),
            (of(Value::Decimal("1e400".into())), "has more digits than"),
            (of(Value::Decimal(".5".into())), "not a number in JSON"),
        ] {
            let error = check(&record).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.to_string().contains(want), "{error}");
        }
        for many in [2, 200] {
            let mut map: Document = (0..many).map(|i| (format!("f{i}"), i as i64)).collect();
            check(&map).unwrap();
            map.push("f1", 9i64);
            let error = check(&of(map)).unwrap_err();
            assert!(error.to_string().contains("field \"a.f1\" occurs twice"), "{error}");
        }
    }

    #[test]
    fn what_nests_too_deep_is_refused_and_what_does_not_comes_back() {
        let nested = |levels: usize, list: bool| {
            let mut record = Document::new();
            for level in 1..levels {
                record = match list && level == 1 {
                    true => of(Value::List(vec![])),
                    false => of(record),
                };
            }
            record
        };
        for list in [true, false] {
            let deepest = nested(LEVELS, list);
            check(&deepest).unwrap();
            assert_eq!(read(written(&deepest).as_bytes()).unwrap(), deepest);
            for levels in [LEVELS + 1, 1000] {
                let error = check(&nested(levels, list)).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::TooLarge);
                assert!(error.to_string().contains("\"a.a.a\"… nests deeper than 100"), "{error}");
            }
        }
    }

    #[test]
    fn what_is_no_json_says_where() {
        for bytes in [&b"{"[..], b"[]", b"{} {}", b"\"text\"", b"{\"a\":\xff}"] {
            assert_eq!(read(bytes).unwrap_err().kind(), ErrorKind::Malformed);
        }
    }
}
