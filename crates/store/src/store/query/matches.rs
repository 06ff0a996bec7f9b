//! The meaning of a query: which records it fits, and in which order.

use std::cmp::Ordering;

use super::{Filter, Order, Path, Query, Test};
use crate::{
    format::has_marc_shape,
    marc::{
        Record, RecordRef,
        encoding::{self, Encoding},
    },
    record::{self, Document, Kind, Value, number},
    store::{Key, Row},
};

impl Query {
    /// Whether a record fits.
    pub fn matches(&self, key: &Key, record: &Document) -> bool {
        self.filter.fits_document(Some(key), record)
    }

    /// Which of two records comes first.
    pub fn order(&self, a: &Row, b: &Row) -> Ordering {
        for (path, order) in &self.sort {
            let (x, y) = (path.find(&a.key, &a.record), path.find(&b.key, &b.record));
            let ordering = sort_order(x.as_ref().map(Found::as_ref), y.as_ref().map(Found::as_ref));
            let ordering = match order {
                Order::Ascending => ordering,
                Order::Descending => ordering.reverse(),
            };
            if ordering.is_ne() {
                return ordering;
            }
        }
        let keys = a.key.cmp(&b.key);
        match self.sort.last() {
            Some((_, Order::Descending)) => keys.reverse(),
            _ => keys,
        }
    }

    /// The record with only the fields asked for.
    pub fn project(&self, record: Document) -> Document {
        match &self.fields {
            None => record,
            Some(fields) => record.into_iter().filter(|(name, _)| fields.contains(name)).collect(),
        }
    }
}

/// A value in a record, or its key.
enum Found<'a> {
    Value(&'a Value),
    Key(Value),
}

impl Found<'_> {
    fn as_ref(&self) -> &Value {
        match self {
            Found::Value(value) => value,
            Found::Key(key) => key,
        }
    }
}

impl Path {
    /// The kind of value that a record has under it, if it is one that can be compared.
    pub fn kind_in(&self, key: &Key, record: &Document) -> Option<Kind> {
        let found = self.find(key, record)?;
        let kind = found.as_ref().kind();
        (!matches!(kind, Kind::Null | Kind::List | Kind::Map)).then_some(kind)
    }

    /// The text that a record has under it, if it is one.
    pub(in crate::store) fn text_in<'a>(
        &self,
        key: &'a Key,
        record: &'a Document,
    ) -> Option<&'a str> {
        if self.is_key() {
            return Some(key.as_str());
        }
        match self.find(key, record)? {
            Found::Value(value) => value.as_str(),
            Found::Key(_) => None,
        }
    }

    fn find<'a>(&self, key: &Key, record: &'a Document) -> Option<Found<'a>> {
        match self.is_key() {
            true => Some(Found::Key(Value::from(key.as_str()))),
            false => self.value_in(record).map(Found::Value),
        }
    }

    /// The value that a record has under it, its key aside.
    pub(in crate::store) fn value_in<'a>(&self, record: &'a Document) -> Option<&'a Value> {
        let (last, outer) = self.names().split_last()?;
        let mut map = record;
        for name in outer {
            map = map.get(name)?.as_map()?;
        }
        map.get(last)
    }
}

/// A record as a filter looks at it.
struct Subject<'a> {
    key: Option<&'a Key>,
    document: Option<&'a Document>,
    marc: Option<RecordRef<'a>>,
}

impl Filter {
    /// Whether a document fits, which is a MARC record where the filter is about those. Without a key, `_key` is a
    /// field as any other.
    pub fn fits_document(&self, key: Option<&Key>, document: &Document) -> bool {
        let marc: Option<Record> = match self.is_marc() && has_marc_shape(document) {
            true => record::from_value(Value::Map(document.clone())).ok(),
            false => None,
        };
        let marc = marc.as_ref().map(Record::as_ref);
        self.fits(&Subject { key, document: Some(document), marc })
    }

    /// Whether a MARC record fits, whose key this is in its store.
    pub fn fits_marc(&self, key: Option<&Key>, record: RecordRef<'_>) -> bool {
        let mut decoded = Record::new();
        let record = match encoding::encoding(record) == Encoding::Marc8
            && encoding::to_utf8(record, true, &mut decoded, &mut Vec::new()).is_ok()
        {
            true => decoded.as_ref(),
            false => record,
        };
        self.fits(&Subject { key, document: None, marc: Some(record) })
    }

    /// Whether it is about MARC records.
    pub(super) fn is_marc(&self) -> bool {
        match self {
            Filter::All | Filter::Field(..) => false,
            Filter::And(all) | Filter::Or(all) => all.iter().any(Filter::is_marc),
            Filter::Not(one) => one.is_marc(),
            Filter::Look(look) => look.is_marc(),
        }
    }

    fn fits(&self, subject: &Subject<'_>) -> bool {
        match self {
            Filter::All => true,
            Filter::And(all) => all.iter().all(|f| f.fits(subject)),
            Filter::Or(any) => any.iter().any(|f| f.fits(subject)),
            Filter::Not(one) => !one.fits(subject),
            Filter::Field(path, test) => {
                let found = match (subject.key, subject.document) {
                    (Some(key), _) if path.is_key() => Some(Found::Key(Value::from(key.as_str()))),
                    (_, Some(document)) => path.value_in(document).map(Found::Value),
                    _ => None,
                };
                test.holds(found.as_ref().map(Found::as_ref))
            }
            Filter::Look(look) => match subject.marc {
                Some(record) if look.is_marc() => look.fits_marc(record),
                _ => look.fits_document(subject.key, subject.document),
            },
        }
    }
}

impl Test {
    pub(super) fn holds(&self, value: Option<&Value>) -> bool {
        let ordered = |with: &Value, wanted: fn(Ordering) -> bool| {
            value.and_then(|value| compare(value, with)).is_some_and(wanted)
        };
        match self {
            Test::Eq(with) => equal(value, with),
            Test::Ne(with) => !equal(value, with),
            Test::In(with) => with.iter().any(|with| equal(value, with)),
            Test::Lt(with) => ordered(with, Ordering::is_lt),
            Test::Le(with) => ordered(with, Ordering::is_le),
            Test::Gt(with) => ordered(with, Ordering::is_gt),
            Test::Ge(with) => ordered(with, Ordering::is_ge),
            Test::Exists(wanted) => value.is_some() == *wanted,
            Test::Prefix(start) => {
                value.and_then(Value::as_str).is_some_and(|text| text.starts_with(start))
            }
        }
    }
}

fn equal(value: Option<&Value>, with: &Value) -> bool {
    match (value, with) {
        (None | Some(Value::Null), Value::Null) => true,
        (None, _) => false,
        (Some(Value::Bool(a)), Value::Bool(b)) => a == b,
        (Some(Value::Bytes(a)), Value::Bytes(b)) => a == b,
        (Some(value), with) => compare(value, with) == Some(Ordering::Equal),
    }
}

/// Which of two values is less, where they are two numbers, two texts or two times. Numbers compare by
/// their value, whatever kinds they are of (see [`number`]).
pub fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b),
        (Value::Int(a), Value::Float(b)) => int_and_float(*a, *b),
        (Value::Float(a), Value::Int(b)) => int_and_float(*b, *a).map(Ordering::reverse),
        (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
        (Value::Time(a), Value::Time(b)) => Some(a.cmp(b)),
        // None where one of them is no number at all.
        (Value::BigInt(_) | Value::Decimal(_), _) | (_, Value::BigInt(_) | Value::Decimal(_)) => {
            number::compare(a, b)
        }
        _ => None,
    }
}

/// Exactly, where turning the whole number into a float would round it.
fn int_and_float(int: i64, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    // 2^63, the first float that is greater than every whole number.
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    if float >= BEYOND {
        return Some(Ordering::Less);
    }
    if float < -BEYOND {
        return Some(Ordering::Greater);
    }
    let whole = float.trunc();
    Some(
        int.cmp(&(whole as i64)).then_with(|| whole.partial_cmp(&float).unwrap_or(Ordering::Equal)),
    )
}

/// The order of values of any kinds, what is null or not there first.
fn sort_order(a: Option<&Value>, b: Option<&Value>) -> Ordering {
    fn rank(value: Option<&Value>) -> u8 {
        match value {
            None | Some(Value::Null) => 0,
            // What is not a number stands apart, as it is not compared with numbers: equal to each of
            // those, it would make an order that contradicts itself.
            Some(number @ (Value::Int(_) | Value::Float(_))) => {
                1 + u8::from(number::is_number(number))
            }
            Some(number @ (Value::BigInt(_) | Value::Decimal(_))) => {
                1 + u8::from(number::is_number(number))
            }
            Some(Value::Text(_)) => 4,
            Some(Value::Map(_)) => 5,
            Some(Value::List(_)) => 6,
            Some(Value::Bytes(_)) => 7,
            Some(Value::Bool(_)) => 8,
            Some(Value::Time(_)) => 9,
        }
    }
    rank(a).cmp(&rank(b)).then_with(|| match (a, b) {
        (Some(Value::Bool(a)), Some(Value::Bool(b))) => a.cmp(b),
        (Some(Value::Bytes(a)), Some(Value::Bytes(b))) => a.cmp(b),
        (Some(a), Some(b)) => compare(a, b).unwrap_or(Ordering::Equal),
        _ => Ordering::Equal,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_and_floating_numbers_compare_exactly() {
        let big = (1 << 53) + 1;
        for (int, float, want) in [
            (1, 1.0, Ordering::Equal),
            (1, 1.5, Ordering::Less),
            (-1, -1.5, Ordering::Greater),
            (-2, -1.5, Ordering::Less),
            (big, (1u64 << 53) as f64, Ordering::Greater),
            (i64::MAX, 9.3e18, Ordering::Less),
            (i64::MAX, 9_223_372_036_854_775_808.0, Ordering::Less),
            (i64::MIN, -9_223_372_036_854_775_808.0, Ordering::Equal),
            (0, f64::NEG_INFINITY, Ordering::Greater),
        ] {
            assert_eq!(
                compare(&Value::Int(int), &Value::Float(float)),
                Some(want),
                "{int} {float}"
            );
            let back = compare(&Value::Float(float), &Value::Int(int));
            assert_eq!(back, Some(want.reverse()), "{float} {int}");
        }
        assert_eq!(compare(&Value::Int(0), &Value::Float(f64::NAN)), None);
    }

    #[test]
    fn nulls_lists_and_what_is_missing() {
        let key = Key::new("k").unwrap();
        let record = Document::from_iter([
            ("null", Value::Null),
            ("list", Value::List(vec![Value::Int(1)])),
            ("map", Value::Map(Document::from_iter([("a", 1i64)]))),
        ]);
        for (query, want) in [
            (r#"{"null": null}"#, true),
            (r#"{"none": null}"#, true),
            (r#"{"null": {"$exists": true}}"#, true),
            (r#"{"none": {"$exists": true}}"#, false),
            (r#"{"none": {"$ne": 1}}"#, true),
            (r#"{"none": {"$lt": 1}}"#, false),
            (r#"{"$not": {"none": {"$lt": 1}}}"#, true),
            (r#"{"list": 1}"#, false),
            (r#"{"list": {"$ne": null}}"#, true),
            (r#"{"map.a": {"$gte": 1}}"#, true),
            (r#"{"list.a": null}"#, true),
            (r#"{"_key": "k"}"#, true),
            (r#"{"null": {"$in": [1, null]}}"#, true),
        ] {
            let parsed: Query = Query::new(query.parse().unwrap());
            assert_eq!(parsed.matches(&key, &record), want, "{query}");
        }
    }
}
