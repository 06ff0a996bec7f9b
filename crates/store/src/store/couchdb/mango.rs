//! Filters as CouchDB's selectors (Mango).
//!
//! Mango means some things differently: it orders texts by the rules of languages (ICU), orders
//! values of all kinds together, reaches into lists, and its `$ne` and `$not` want the field to be
//! there. So a selector here finds what fits and perhaps more, and each record is matched again
//! ([`Query::matches`](crate::store::Query::matches)). What has no such selector (what is not so, an
//! order of texts) is answered by going through all, or all with a text there.
//!
//! PouchDB merges conditions on its own, and gets those with alternatives and patterns wrong: it is
//! given one condition for each field, and no more.

use serde_json::{Map, Value as Json, json};

use crate::{
    record::{Kind, Value},
    store::{
        Filter, Key, KeyRange,
        query::{Path, Test, narrowed},
    },
};

/// How the records that may fit are found.
#[derive(Debug, PartialEq)]
pub(super) enum Plan {
    /// None fits.
    Nothing,
    /// Only these may.
    Keys(Vec<Key>),
    /// Only those in this range may.
    Range(KeyRange),
    /// Only those may that this selector finds.
    Find(Json),
}

/// How the records that fit a filter are found, by a server in JavaScript or not.
pub(super) fn plan(filter: &Filter, script: bool) -> Plan {
    if let Some(keys) = keys(filter) {
        return Plan::Keys(keys);
    }
    match selector(filter) {
        Selector::Nothing => Plan::Nothing,
        Selector::Is(_) if script => {
            let mut fields = Map::new();
            flat(filter, &mut fields);
            match fields.is_empty() {
                true => Plan::Range(range(filter)),
                false => Plan::Find(fields.into()),
            }
        }
        Selector::Is(selector) => Plan::Find(selector),
        Selector::All => Plan::Range(range(filter)),
    }
}

/// One condition for each field, of those that all have to hold.
fn flat(filter: &Filter, fields: &mut Map<String, Json>) {
    match filter {
        Filter::And(all) => all.iter().for_each(|filter| flat(filter, fields)),
        Filter::Field(path, test) => {
            if let (Some(field), Condition::Is(mut is)) = (field(path), condition(test)) {
                if let Some(is) = is.as_object_mut() {
                    is.remove("$regex");
                }
                fields.entry(field).or_insert(is);
            }
        }
        Filter::All | Filter::Or(_) | Filter::Not(_) | Filter::Look(_) => {}
    }
}

/// The keys that alone can fit, where it says so.
fn keys(filter: &Filter) -> Option<Vec<Key>> {
    let key = |value: &Value| value.as_str().and_then(|text| Key::new(text).ok());
    match filter {
        Filter::Field(path, Test::Eq(value)) if path.is_key() => {
            Some(key(value).into_iter().collect())
        }
        Filter::Field(path, Test::In(values)) if path.is_key() => {
            let mut keys: Vec<_> = values.iter().filter_map(key).collect();
            keys.sort_unstable();
            keys.dedup();
            Some(keys)
        }
        Filter::And(all) => all.iter().find_map(keys),
        _ => None,
    }
}

/// The range of keys that alone can fit.
fn range(filter: &Filter) -> KeyRange {
    let bound = |value: &Value| value.as_str().and_then(|text| Key::new(text).ok());
    match filter {
        Filter::Field(path, test) if path.is_key() => match test {
            Test::Ge(value) | Test::Gt(value) => KeyRange { from: bound(value), until: None },
            Test::Lt(value) => KeyRange { from: None, until: bound(value) },
            Test::Prefix(start) => {
                let from = Key::new(start.as_str()).ok();
                KeyRange { until: from.as_ref().and_then(after), from }
            }
            _ => KeyRange::all(),
        },
        // The first that says anything: all are matched again.
        Filter::And(all) => all.iter().map(range).find(|r| !r.is_all()).unwrap_or_default(),
        _ => KeyRange::all(),
    }
}

/// The least key after all that begin with this one, if there is one.
fn after(start: &Key) -> Option<Key> {
    let mut chars: Vec<char> = start.chars().collect();
    while let Some(last) = chars.pop() {
        let next = match last {
            '\u{d7ff}' => Some('\u{e000}'),
            last => char::from_u32(last as u32 + 1),
        };
        if let Some(next) = next {
            chars.push(next);
            return Key::new(chars.into_iter().collect::<String>()).ok();
        }
    }
    None
}

/// A selector, or that there is none.
enum Selector {
    All,
    Nothing,
    Is(Json),
}

fn selector(filter: &Filter) -> Selector {
    match filter {
        Filter::All | Filter::Not(_) | Filter::Look(_) => Selector::All,
        Filter::And(filters) => {
            let mut all = Vec::new();
            for filter in filters {
                match selector(filter) {
                    Selector::All => {}
                    Selector::Nothing => return Selector::Nothing,
                    Selector::Is(one) => all.push(one),
                }
            }
            match all.len() {
                0 => Selector::All,
                1 => Selector::Is(all.remove(0)),
                _ => Selector::Is(json!({ "$and": all })),
            }
        }
        Filter::Or(filters) => {
            let mut any = Vec::new();
            for filter in filters {
                match selector(filter) {
                    Selector::All => return Selector::All,
                    Selector::Nothing => {}
                    Selector::Is(one) => any.push(one),
                }
            }
            match any.len() {
                0 => Selector::Nothing,
                1 => Selector::Is(any.remove(0)),
                _ => Selector::Is(json!({ "$or": any })),
            }
        }
        Filter::Field(path, test) => match (field(path), condition(test)) {
            (_, Condition::Never) => Selector::Nothing,
            (Some(field), Condition::Is(condition)) => Selector::Is(json!({ field: condition })),
            _ => Selector::All,
        },
    }
}

/// Names that everything has in JavaScript.
const JAVASCRIPT: [&str; 8] = [
    "constructor",
    "hasOwnProperty",
    "isPrototypeOf",
    "length",
    "propertyIsEnumerable",
    "toLocaleString",
    "toString",
    "valueOf",
];

/// A path in Mango's words; none for names that it might read otherwise.
pub(super) fn field(path: &Path) -> Option<String> {
    let plain = |name: &String| {
        !name.is_empty()
            && !name.starts_with(['$', '_'])
            && !name.contains(['.', '\\', '[', ']'])
            && !name.chars().any(char::is_control)
            && !JAVASCRIPT.contains(&name.as_str())
    };
    path.names().iter().all(plain).then(|| path.names().join("."))
}

/// What a test says in Mango.
enum Condition {
    /// No record fits.
    Never,
    /// Only records with this fit.
    Is(Json),
    /// Mango cannot say.
    Unsaid,
}

fn condition(test: &Test) -> Condition {
    match narrowed(test) {
        // No number in JavaScript has more digits.
        Some(test) => of_narrow(&test),
        None if matches!(test, Test::Ne(_)) => Condition::Unsaid,
        None => Condition::Never,
    }
}

fn of_narrow(test: &Test) -> Condition {
    // The order of kinds is: null, booleans, numbers, texts, lists, maps.
    let numbers = || Condition::Is(json!({"$gt": true, "$lt": ""}));
    let texts = || Condition::Is(json!({"$gte": ""}));
    let number = |value: &Value| match value {
        Value::Int(v) => Some(json!(v)),
        Value::Float(v) if v.is_finite() => Some(json!(v)),
        _ => None,
    };
    match test {
        Test::Eq(value) => match value {
            // Also those that have no such field, which an index does not.
            Value::Null => Condition::Unsaid,
            Value::Bool(v) => Condition::Is(json!({ "$eq": v })),
            Value::Text(v) => Condition::Is(json!({ "$eq": v })),
            value => match number(value) {
                Some(v) => Condition::Is(json!({ "$eq": v })),
                None => Condition::Never,
            },
        },
        Test::In(values) => {
            let mut any = Vec::new();
            for value in values {
                match condition(&Test::Eq(value.clone())) {
                    Condition::Never => {}
                    Condition::Is(mut is) if is.get("$eq").is_some() => any.push(is["$eq"].take()),
                    _ => return Condition::Unsaid,
                }
            }
            match any.is_empty() {
                true => Condition::Never,
                false => Condition::Is(json!({ "$in": any })),
            }
        }
        // Equal ones are let through: a server may round the number it compares with.
        Test::Lt(value) | Test::Le(value) => match (value.kind(), number(value)) {
            (Kind::Text, _) => texts(),
            (_, Some(v)) => Condition::Is(json!({"$gt": true, "$lte": v})),
            _ => numbers(),
        },
        Test::Gt(value) | Test::Ge(value) => match (value.kind(), number(value)) {
            (Kind::Text, _) => texts(),
            (_, Some(v)) => Condition::Is(json!({"$gte": v, "$lt": ""})),
            _ => numbers(),
        },
        Test::Prefix(start) => match pattern(start) {
            Some(pattern) => Condition::Is(json!({"$gte": "", "$regex": pattern})),
            None => texts(),
        },
        Test::Exists(true) => Condition::Is(json!({"$exists": true})),
        Test::Exists(false) | Test::Ne(_) => Condition::Unsaid,
    }
}

/// A regular expression for texts that begin so, which all libraries read alike.
fn pattern(start: &str) -> Option<String> {
    let mut pattern = String::from("^");
    for c in start.chars() {
        match c {
            c if c.is_ascii_alphanumeric() => pattern.push(c),
            ' '..='~' => pattern.extend(['\\', c]),
            c if c.is_alphabetic() && (c as u32) < 0x1_0000 => pattern.push(c),
            _ => return None,
        }
    }
    Some(pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(filter: &str) -> Plan {
        plan(&filter.parse().unwrap(), false)
    }

    fn found(selector: Json) -> Plan {
        Plan::Find(selector)
    }

    #[test]
    fn what_an_index_can_find_is_said() {
        for (filter, want) in [
            ("age>=90", json!({"age": {"$gte": 90, "$lt": ""}})),
            ("age<9.5", json!({"age": {"$gt": true, "$lte": 9.5}})),
            ("name=Bob", json!({"name": {"$eq": "Bob"}})),
            ("name^=B.", json!({"name": {"$gte": "", "$regex": "^B\\."}})),
            ("name>Bob", json!({"name": {"$gte": ""}})),
            ("a.b=true", json!({"a.b": {"$eq": true}})),
            (
                r#"{"$and": [{"a": 1}, {"$not": {"b": 1}}, {"c": {"$in": [1, "x"]}}]}"#,
                json!({"$and": [{"a": {"$eq": 1}}, {"c": {"$in": [1, "x"]}}]}),
            ),
            (
                r#"{"$or": [{"a": 1}, {"b": 2}]}"#,
                json!({"$or": [{"a": {"$eq": 1}}, {"b": {"$eq": 2}}]}),
            ),
        ] {
            assert_eq!(of(filter), found(want), "{filter}");
        }
    }

    #[test]
    fn servers_in_javascript_are_given_one_condition_a_field() {
        for (filter, want) in [
            ("name^=B", json!({"name": {"$gte": ""}})),
            (
                r#"{"$and": [{"a": {"$gte": 1, "$lt": 5}}, {"$or": [{"b": 1}, {"b": 2}]}, {"c": 1}]}"#,
                json!({"a": {"$gte": 1, "$lt": ""}, "c": {"$eq": 1}}),
            ),
        ] {
            assert_eq!(plan(&filter.parse().unwrap(), true), found(want), "{filter}");
        }
        let either = r#"{"$or": [{"a": 1}, {"b": 2}]}"#.parse().unwrap();
        assert_eq!(plan(&either, true), Plan::Range(KeyRange::all()));
    }

    #[test]
    fn what_mango_reads_otherwise_is_asked_of_all() {
        for filter in [
            "{}",
            "age!=3",
            "age=null",
            "!age",
            r#"{"$or": [{"a": 1}, {"b": null}]}"#,
            r#"{"a": {"$in": [1, null]}}"#,
            r#"{"$gt\\.x": 1}"#,
            r#"{"_id": "x"}"#,
        ] {
            let filter = match filter.parse::<Filter>() {
                Ok(filter) => filter,
                // A name that begins with $ cannot be written so.
                Err(_) => Filter::Field(Path::new(["$gt"]), Test::Eq(Value::Int(1))),
            };
            assert_eq!(plan(&filter, false), Plan::Range(KeyRange::all()), "{filter:?}");
        }
    }

    #[test]
    fn keys_and_ranges_of_keys_are_found_out() {
        let key = |text: &str| Key::new(text).unwrap();
        assert_eq!(of("_key=a"), Plan::Keys(vec![key("a")]));
        assert_eq!(
            of(r#"{"x": 1, "_key": {"$in": ["b", 3, "a", "b"]}}"#),
            Plan::Keys(vec![key("a"), key("b")])
        );
        assert_eq!(of("_key=7"), Plan::Keys(vec![key("7")]));
        assert_eq!(of(r#"{"_key": 7}"#), Plan::Keys(vec![]));
        let range = |from, until| Plan::Range(KeyRange { from, until });
        assert_eq!(of("_key^=ab"), range(Some(key("ab")), Some(key("ac"))));
        assert_eq!(of("_key^=a\u{10ffff}"), range(Some(key("a\u{10ffff}")), Some(key("b"))));
        assert_eq!(of("_key<m"), range(None, Some(key("m"))));
        assert_eq!(of("_key>=m"), range(Some(key("m")), None));
    }

    #[test]
    fn what_no_record_can_be_is_not_asked() {
        let filter = Filter::Field(Path::new(["a"]), Test::Eq(Value::Bytes(vec![1])));
        assert_eq!(plan(&filter, false), Plan::Nothing);
        let filter = Filter::Field(Path::new(["a"]), Test::Eq(Value::Float(f64::INFINITY)));
        assert_eq!(plan(&Filter::And(vec![filter, Filter::All]), false), Plan::Nothing);
        let all = Filter::Field(Path::new(["a"]), Test::Lt(Value::Float(f64::INFINITY)));
        assert_eq!(plan(&all, false), found(json!({"a": {"$gt": true, "$lt": ""}})));
    }
}
