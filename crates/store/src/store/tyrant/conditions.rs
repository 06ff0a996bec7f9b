//! Query conditions for a table database: every record that fits the filter meets them.
//!
//! Other records may meet them too: columns are text, so the text `5` is found among numbers, and numbers are compared
//! with a margin. The client therefore tests what is found again. A test that has no such condition is left to the
//! client alone.
//!
//! The numbers are those of Tokyo Cabinet's `tctdb.h` (`TDBQCSTREQ` and the like).

use crate::{
    record::Value,
    store::{
        Filter,
        kv::{Namespace, seconds},
        query::{Order, Path, Test},
    },
};

const STREQ: u32 = 0;
const STRBW: u32 = 2;
const NUMGE: u32 = 10;
const NUMLE: u32 = 12;
/// What is added where the opposite is meant.
const NEGATE: u32 = 1 << 24;

/// The conditions of a table and a filter, as arguments of `search`.
pub(super) fn conditions(space: &Namespace, filter: &Filter) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    // The column without a name is the key.
    push(&mut all, "", STRBW, space.prefix());
    add(&mut all, space, filter);
    all
}

/// Whether conditions say more than which table.
pub(super) fn narrow(conditions: &[Vec<u8>]) -> bool {
    conditions.len() > 1
}

fn add(all: &mut Vec<Vec<u8>>, space: &Namespace, filter: &Filter) {
    match filter {
        Filter::And(filters) => filters.iter().for_each(|filter| add(all, space, filter)),
        Filter::Field(path, test) if path.is_key() => match test {
            Test::Eq(Value::Text(key)) => push(all, "", STREQ, &space.full(key)),
            Test::Prefix(start) => push(all, "", STRBW, &space.full(start)),
            _ => {}
        },
        Filter::Field(path, test) => {
            if let Some(name) = column(path) {
                test_of(all, name, test);
            }
        }
        Filter::All | Filter::Or(_) | Filter::Not(_) | Filter::Look(_) => {}
    }
}

/// The column a path leads to, where it is one.
fn column(path: &Path) -> Option<&str> {
    match path.names() {
        [name] if !name.is_empty() && !path.is_key() => Some(name),
        _ => None,
    }
}

fn test_of(all: &mut Vec<Vec<u8>>, name: &str, test: &Test) {
    match test {
        // What is empty is no column.
        Test::Eq(Value::Text(text)) | Test::Prefix(text) if text.is_empty() => {}
        Test::Eq(Value::Text(text)) => push(all, name, STREQ, text),
        Test::Eq(Value::Bool(v)) => push(all, name, STREQ, &v.to_string()),
        Test::Eq(value) => {
            if let Some(number) = number(value) {
                at_least(all, name, number);
                at_most(all, name, number);
            }
        }
        Test::Ge(value) | Test::Gt(value) => {
            if let Some(number) = number(value) {
                at_least(all, name, number);
            }
        }
        Test::Le(value) | Test::Lt(value) => {
            if let Some(number) = number(value) {
                at_most(all, name, number);
            }
        }
        Test::In(values) => {
            let numbers: Option<Vec<f64>> = values.iter().map(number).collect();
            if let Some(numbers) = numbers
                && !numbers.is_empty()
            {
                at_least(all, name, numbers.iter().copied().fold(f64::INFINITY, f64::min));
                at_most(all, name, numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max));
            }
        }
        Test::Prefix(start) => push(all, name, STRBW, start),
        Test::Exists(false) => push(all, name, STRBW | NEGATE, ""),
        Test::Exists(true) | Test::Ne(_) => {}
    }
}

/// The number that a value is compared as.
fn number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Int(n) => *n as f64,
        Value::Float(v) => *v,
        Value::BigInt(text) | Value::Decimal(text) => text.parse().ok()?,
        Value::Time(time) => seconds(*time).parse().ok()?,
        _ => return None,
    };
    number.is_finite().then_some(number)
}

/// Wider than all that two programs may make of the same digits.
fn margin(number: f64) -> f64 {
    (number.abs() * 1e-14).max(1e-300)
}

/// No border lies beyond it: an index of numbers reads the border as an integer of 64 bits, which
/// overflows, and then finds nothing. (Any table of the server may have made the index.)
const FARTHEST: f64 = 9.2e18;

/// The condition that a column is at least about this.
pub(super) fn at_least(all: &mut Vec<Vec<u8>>, name: &str, number: f64) {
    let least = number - margin(number);
    if least.abs() < FARTHEST {
        push(all, name, NUMGE, &least.to_string());
    }
}

/// The condition that a column is at most about this.
pub(super) fn at_most(all: &mut Vec<Vec<u8>>, name: &str, number: f64) {
    let most = number + margin(number);
    if most.abs() < FARTHEST {
        push(all, name, NUMLE, &most.to_string());
    }
}

/// NUL separates the parts of a condition; no column holds any, so it could only be left out.
fn push(all: &mut Vec<Vec<u8>>, name: &str, operation: u32, with: &str) {
    if !name.contains('\0') && !with.contains('\0') {
        all.push(format!("addcond\0{name}\0{operation}\0{with}").into());
    }
}

/// A column that holds numbers in every record that fits, where a query sorts by it first.
pub(super) fn numbers_first<'a>(
    filter: &Filter,
    sort: &'a [(Path, Order)],
) -> Option<(&'a str, Order)> {
    let (path, order) = sort.first()?;
    let name = column(path).filter(|name| !name.contains('\0'))?;
    are_numbers(filter, path).then_some((name, *order))
}

fn are_numbers(filter: &Filter, path: &Path) -> bool {
    let is = |value: &Value| matches!(value, Value::Int(_) | Value::Float(_));
    match filter {
        Filter::And(filters) => filters.iter().any(|filter| are_numbers(filter, path)),
        Filter::Field(
            tested,
            Test::Ge(v) | Test::Gt(v) | Test::Le(v) | Test::Lt(v) | Test::Eq(v),
        ) => tested == path && is(v),
        _ => false,
    }
}

/// The order of a search, by the numbers in a column, and how many of them.
pub(super) fn ordered(name: &str, order: Order, most: usize) -> [Vec<u8>; 2] {
    let order = match order {
        Order::Ascending => 2,
        Order::Descending => 3,
    };
    [format!("setorder\0{name}\0{order}").into(), limited(most)]
}

/// How many of a search.
pub(super) fn limited(most: usize) -> Vec<u8> {
    format!("setlimit\0{most}\0{}", 0).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(filter: &str) -> Vec<String> {
        let space = Namespace::new(&super::super::DOCUMENT, "pets").unwrap();
        let all = conditions(&space, &filter.parse().unwrap());
        let text = |c: Vec<u8>| String::from_utf8(c).unwrap().replace('\0', " ");
        all.into_iter().map(text).skip(1).collect()
    }

    #[test]
    fn conditions_are_wider_than_the_query() {
        for (filter, want) in [
            (r#"name=Bob"#, &["addcond name 0 Bob"][..]),
            ("name^=B", &["addcond name 2 B"]),
            ("name", &[]),
            (r#"name="""#, &[]),
            ("!name", &["addcond name 16777218 "]),
            ("ok=true", &["addcond ok 0 true"]),
            (r#"{"_key": 1}"#, &[]),
            ("_key=1", &["addcond  0 pets:1"]),
            ("_key^=1", &["addcond  2 pets:1"]),
            ("age>9", &["addcond age 10 8.99999999999991"]),
            ("age<=9", &["addcond age 12 9.00000000000009"]),
            ("age=9223372036854775807", &[]),
            ("age<-9223372036854775807", &[]),
            ("age=null", &[]),
            ("age!=9", &[]),
            ("a.b=9", &[]),
            (r#"{"$or": [{"a": 1}, {"b": 2}]}"#, &[]),
            (r#"{"$not": {"a": 1}}"#, &[]),
            (r#"{"a": "x\u0000addcond"}"#, &[]),
            (
                r#"{"a": {"$in": [3, 1]}, "b": {"$in": ["x", 1]}}"#,
                &["addcond a 10 0.99999999999999", "addcond a 12 3.00000000000003"],
            ),
        ] {
            assert_eq!(of(filter), want, "{filter}");
        }
    }

    #[test]
    fn margins_hold_the_number_at_every_size() {
        for number in [0.0, 5e-324, 1e-310, 0.1, -3.7, 9_007_199_254_740_993.0, 1e300, -1.7e308] {
            let (least, most) = (number - margin(number), number + margin(number));
            assert!(least < number && number < most, "{number}");
        }
        let mut all = Vec::new();
        at_most(&mut all, "a", f64::MAX);
        assert!(all.is_empty());
    }
}
