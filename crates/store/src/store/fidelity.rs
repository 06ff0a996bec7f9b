//! Whether a record that was read back is the one that was kept, where its store does not keep
//! every kind of value.
//!
//! What of a kind a store keeps must come back equal. What is of another kind may come back in one
//! of the forms below, which all say the same; anything else is a difference.
//!
//! | kind | comes back as |
//! |---|---|
//! | null | nothing: the field is not there; empty text |
//! | bool | 1 or 0; text |
//! | int, float | a number of another kind, where it is the same number exactly; text |
//! | bigint, decimal | the same number of another kind or in another spelling; text |
//! | bytes | a list of numbers; Base64 text |
//! | time | RFC 3339 text; the time cut to milli- or microseconds |
//! | map | the same names in another order |

use std::cmp::Ordering;

use base64::{Engine, prelude::BASE64_STANDARD};

use super::{
    Column,
    query::{compare, shown as shown_value},
};
use crate::record::{Document, Kind, Time, Value};

/// Whether `read` is what a store that keeps these kinds makes of `kept`.
pub fn same(kept: &Document, read: &Document, keeps: &[Kind]) -> bool {
    difference(kept, read, keeps).is_none()
}

/// The first difference between a record and what was read back of it, in a phrase that names the
/// field; none where they are the [`same`].
pub fn difference(kept: &Document, read: &Document, keeps: &[Kind]) -> Option<String> {
    maps("", kept, read, keeps)
}

/// The record as columns of these types hold it: in their order, without nulls, whole numbers as
/// floats where the column has floats.
pub fn in_columns(record: &Document, columns: &[Column]) -> Document {
    let cell = |column: &Column| {
        let value = match (record.get(&column.name)?, column.kind) {
            (Value::Null, _) => return None,
            (Value::Int(n), Kind::Float) => Value::Float(*n as f64),
            (Value::Int(n), Kind::BigInt) => Value::BigInt(n.to_string().into()),
            (value, _) => value.clone(),
        };
        Some((column.name.clone(), value))
    };
    columns.iter().filter_map(cell).collect()
}

fn maps(path: &str, kept: &Document, read: &Document, keeps: &[Kind]) -> Option<String> {
    let there = |(name, value): &(&str, &Value)| {
        !(**value == Value::Null && !keeps.contains(&Kind::Null) && read.get(name).is_none())
    };
    let ordered = keeps.contains(&Kind::Map);
    let mut left: Vec<(&str, &Value)> = read.iter().collect();
    for (name, value) in kept.iter().filter(there) {
        let path = match path {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        };
        let found = match ordered {
            true => (left.first().is_some_and(|(n, _)| *n == name)).then_some(0),
            false => left.iter().position(|(n, _)| *n == name),
        };
        let Some(at) = found else {
            return Some(match read.get(name) {
                None => format!("{path:?} is missing"),
                Some(_) => format!("{path:?} is at another place"),
            });
        };
        let (_, other) = left.remove(at);
        if let Some(found) = values(&path, value, other, keeps) {
            return Some(found);
        }
    }
    left.first().map(|(name, _)| format!("{name:?} is new"))
}

fn values(path: &str, kept: &Value, read: &Value, keeps: &[Kind]) -> Option<String> {
    match (kept, read) {
        (Value::Map(kept), Value::Map(read)) => return maps(path, kept, read, keeps),
        (Value::List(kept), Value::List(read)) if kept.len() == read.len() => {
            let mut pairs = kept.iter().zip(read).enumerate();
            return pairs.find_map(|(i, (k, r))| values(&format!("{path}[{i}]"), k, r, keeps));
        }
        _ if kept == read => return None,
        _ if !keeps.contains(&kept.kind()) && another_form(kept, read) => return None,
        _ => {}
    }
    Some(format!("{path:?} was {} and is {}", shown(kept), shown(read)))
}

/// Whether a value of a kind that is not kept came back in a form that says the same.
fn another_form(kept: &Value, read: &Value) -> bool {
    match (kept, read) {
        (Value::Null, Value::Text(text)) => text.is_empty(),
        (Value::Bool(v), Value::Int(n)) => *n == i64::from(*v),
        (Value::Bool(v), Value::Text(text)) => {
            text == if *v { "true" } else { "false" } || text == if *v { "1" } else { "0" }
        }
        (Value::Int(_), Value::Float(_)) | (Value::Float(_), Value::Int(_)) => {
            compare(kept, read) == Some(Ordering::Equal)
        }
        (Value::Float(v), Value::Text(text)) => text.parse() == Ok(*v),
        (Value::Int(n), Value::Text(text)) => *text == n.to_string(),
        (Value::Bytes(bytes), Value::List(list)) => {
            bytes.len() == list.len()
                && bytes.iter().zip(list).all(|(b, v)| *v == Value::Int(i64::from(*b)))
        }
        (Value::Int(_) | Value::Float(_), Value::BigInt(_) | Value::Decimal(_)) => {
            compare(kept, read) == Some(Ordering::Equal)
        }
        // Of a store that has one zero.
        (Value::Float(a), Value::Float(b)) => a == b,
        (Value::Bytes(bytes), Value::Text(text)) => *text == BASE64_STANDARD.encode(bytes),
        (Value::Time(time), Value::Text(text)) => text.parse::<Time>().is_ok_and(|t| t == *time),
        (Value::Time(time), Value::Time(cut)) => is_cut(*time, *cut),
        (Value::BigInt(_), Value::Text(text)) | (Value::Decimal(_), Value::Text(text)) => {
            compare(kept, &Value::Decimal(text.as_str().into())) == Some(Ordering::Equal)
        }
        (Value::BigInt(_) | Value::Decimal(_), read) => {
            compare(kept, read) == Some(Ordering::Equal)
        }
        _ => false,
    }
}

/// Whether one time is the other, to the milli- or microsecond.
fn is_cut(time: Time, cut: Time) -> bool {
    let nanos = |time: Time| {
        let (seconds, nanos) = time.to_unix();
        i128::from(seconds) * 1_000_000_000 + i128::from(nanos)
    };
    let (time, cut) = (nanos(time), nanos(cut));
    [1_000, 1_000_000].iter().any(|unit| cut % unit == 0 && (time - cut).abs() < *unit)
}

/// A value and its kind as a message shows them, cut where it is long.
fn shown(value: &Value) -> String {
    const SHOWN: usize = 80;
    let text = match value {
        Value::List(_) | Value::Map(_) => format!("{value:?}"),
        single => format!("{} {}", single.kind().name(), shown_value(single)),
    };
    match text.char_indices().nth(SHOWN) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &[Kind] =
        &[Kind::Null, Kind::Bool, Kind::Int, Kind::Float, Kind::Text, Kind::List, Kind::Map];

    fn one(value: impl Into<Value>) -> Document {
        Document::from_iter([("v", value)])
    }

    fn time(seconds: i64, nanos: u32) -> Value {
        Value::Time(Time::from_unix(seconds, nanos).unwrap())
    }

    #[test]
    fn what_is_kept_is_equal_or_different() {
        let pairs: [(Value, Value); 6] = [
            (Value::Int(1), Value::Float(1.0)),
            (Value::Float(0.0), Value::Float(-0.0)),
            ("a".into(), "a ".into()),
            (Value::Null, "".into()),
            (Value::List(vec![]), Value::Null),
            (true.into(), Value::Int(1)),
        ];
        for (a, b) in pairs {
            assert!(same(&one(a.clone()), &one(a.clone()), JSON), "{a:?}");
            let found = difference(&one(a), &one(b), JSON).unwrap();
            assert!(found.contains("\"v\" was "), "{found}");
        }
    }

    #[test]
    fn what_is_not_kept_may_come_back_in_another_form() {
        let decimal = |digits: &str| Value::Decimal(digits.into());
        let big = || Value::BigInt("18446744073709551616".into());
        let cases: [(Value, Value, bool); 22] = [
            (Value::Null, "".into(), true),
            (true.into(), Value::Int(1), true),
            (true.into(), Value::Int(0), false),
            (Value::Int(1), Value::Float(1.0), true),
            (Value::Int((1 << 53) + 1), Value::Float((1i64 << 53) as f64), false),
            (Value::Float(1.5), Value::Int(1), false),
            (Value::Float(0.1), "0.1".into(), true),
            (decimal("1.50"), decimal("1.5"), true),
            (decimal("1.50"), Value::Float(1.5), true),
            (decimal("-0.00"), decimal("0"), true),
            (decimal("1.50"), decimal("15e-1"), true),
            (decimal("0.1"), "0.11".into(), false),
            (big(), "18446744073709551616".into(), true),
            (big(), Value::Decimal("18446744073709551616.0".into()), true),
            (big(), Value::Float(18446744073709551616.0), false),
            (big(), "18446744073709551617".into(), false),
            (Value::Bytes(vec![0, 255]), Value::List(vec![0.into(), 255.into()]), true),
            (Value::Bytes(vec![0, 255]), "AP8=".into(), true),
            (Value::Bytes(vec![0, 255]), "AP8".into(), false),
            (time(-1, 999_999_999), "1969-12-31T23:59:59.999999999Z".into(), true),
            (time(-1, 999_999_999), time(-1, 999_000_000), true),
            (time(-1, 999_999_999), time(-1, 990_000_000), false),
        ];
        for (kept, read, want) in cases {
            assert_eq!(
                same(&one(kept.clone()), &one(read.clone()), &[]),
                want,
                "{kept:?} {read:?}"
            );
        }
    }

    #[test]
    fn names_are_compared_too() {
        let ab = Document::from_iter([("a", Value::Int(1)), ("b", Value::Null)]);
        let ba = Document::from_iter([("b", Value::Null), ("a", Value::Int(1))]);
        let a = Document::from_iter([("a", Value::Int(1))]);
        assert_eq!(difference(&ab, &ba, JSON).unwrap(), "\"a\" is at another place");
        assert_eq!(difference(&ab, &a, JSON).unwrap(), "\"b\" is missing");
        assert_eq!(difference(&a, &ab, JSON).unwrap(), "\"b\" is new");
        let unordered = &JSON[..JSON.len() - 1];
        assert!(same(&ab, &ba, unordered) && !same(&ab, &a, unordered));
        assert!(same(&ab, &a, &[Kind::Int]) && !same(&a, &ab, &[Kind::Int]));
        let deep = |value: Value| one(Value::List(vec![one(value).into()]));
        let found = difference(&deep(1.into()), &deep(2.into()), JSON).unwrap();
        assert_eq!(found, "\"v[0].v\" was int 1 and is int 2");
    }

    #[test]
    fn columns_hold_numbers_of_one_kind_and_no_nulls() {
        let record = Document::from_iter([("x", Value::Null), ("n", 1.into())]);
        let other = Document::from_iter([("n", Value::Float(0.5)), ("x", "t".into())]);
        let columns = Column::infer([&record, &other]).unwrap();
        assert_eq!(in_columns(&record, &columns), Document::from_iter([("n", 1.0)]));
        assert_eq!(in_columns(&other, &columns).iter().next().unwrap().0, "x");
    }
}
