//! Comparisons with numbers of many digits, for stores that hold none of those.

use std::cmp::Ordering;

use super::{Test, compare};
use crate::record::{
    Value,
    number::{self, Exact},
};

/// The test, for values that are whole numbers of 64 bits or floats: the same ones fit, and it compares
/// with such a number, too. None where no value fits. Tests of lists of values do not come here.
pub(crate) fn narrowed(test: &Test) -> Option<Test> {
    let with = match test {
        Test::Eq(value) | Test::Ne(value) => value,
        Test::Lt(value) | Test::Le(value) | Test::Gt(value) | Test::Ge(value) => value,
        Test::In(_) | Test::Exists(_) | Test::Prefix(_) => return Some(test.clone()),
    };
    let exact = match with {
        Value::BigInt(text) | Value::Decimal(text) => Exact::read(text)?,
        _ => return Some(test.clone()),
    };
    let whole =
        (exact.whole() <= 19).then(|| exact.floor(0).parse().ok()).flatten().map(Value::Int);
    let below = [whole, float_below(with)].into_iter().flatten().max_by(|a, b| {
        // Both are numbers.
        compare(a, b).unwrap_or(Ordering::Equal)
    });
    match (below, test) {
        (Some(below), test) if compare(&below, with) == Some(Ordering::Equal) => {
            Some(number_test(test, below))
        }
        (_, Test::Eq(_) | Test::Ne(_)) => None,
        (Some(below), Test::Lt(_) | Test::Le(_)) => Some(Test::Le(below)),
        (Some(below), _) => Some(Test::Gt(below)),
        // Less than every finite float.
        (None, Test::Lt(_) | Test::Le(_)) => Some(Test::Lt(Value::Float(f64::MIN))),
        (None, _) => Some(Test::Ge(Value::Float(f64::MIN))),
    }
}

/// The greatest finite float that is not greater.
fn float_below(with: &Value) -> Option<Value> {
    let near: f64 = number::digits(with)?.parse().ok()?;
    let near = near.clamp(f64::MIN, f64::MAX);
    let below = match compare(&Value::Float(near), with)? {
        Ordering::Greater => near.next_down(),
        _ => near,
    };
    below.is_finite().then_some(Value::Float(below))
}

fn number_test(test: &Test, value: Value) -> Test {
    match test {
        Test::Lt(_) => Test::Lt(value),
        Test::Le(_) => Test::Le(value),
        Test::Gt(_) => Test::Gt(value),
        Test::Ge(_) => Test::Ge(value),
        Test::Ne(_) => Test::Ne(value),
        _ => Test::Eq(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        record::Document,
        store::{Filter, Key, Query},
    };

    #[test]
    fn the_same_ints_and_floats_fit() {
        let ints = [0, 1, -1, (1 << 53) - 1, 1 << 53, (1 << 53) + 1, i64::MAX, i64::MIN, 1 << 62];
        let floats = [0.0, 0.1, -0.1, 1.5, 1e22, 1e23, 5e-324, f64::MAX, f64::MIN, f64::INFINITY];
        let mut values: Vec<Value> = ints.map(Value::Int).into();
        values.extend(ints.map(|n| Value::Float(n as f64)));
        values.extend(floats.map(Value::Float));
        values.extend([f64::NEG_INFINITY, 18_446_744_073_709_551_616.0].map(Value::Float));
        values.push("text".into());
        let with = [
            "9223372036854775807",
            "9223372036854775808",
            "9223372036854775809",
            "-9223372036854775809",
            "18446744073709551616",
            "18446744073709552000",
            "100000000000000000000000",
            "12345678901234567890123",
            "0.1",
            "0.10",
            "0.10000000000000000001",
            "0.09999999999999999999",
            "-0.10000000000000000001",
            "9007199254740993.0",
            "9007199254740992.5",
            "1e400",
            "-1e400",
            "1e-400",
            "-1e-400",
            "0.000",
        ];
        let key = Key::new("k").unwrap();
        for with in with.map(|text| Value::Decimal(text.into())) {
            for make in [Test::Eq, Test::Ne, Test::Lt, Test::Le, Test::Gt, Test::Ge] {
                let test = make(with.clone());
                let narrow = match narrowed(&test) {
                    Some(narrow) => Filter::field("v", narrow),
                    None if matches!(test, Test::Ne(_)) => Ok(Filter::All),
                    None => Ok(Filter::Or(Vec::new())),
                };
                let asked = Query::new(Filter::field("v", test).unwrap());
                let told = Query::new(narrow.unwrap());
                assert!(!format!("{told:?}").contains("Decimal"), "{told:?}");
                for value in &values {
                    let record = Document::from_iter([("v", value.clone())]);
                    let want = asked.matches(&key, &record);
                    assert_eq!(told.matches(&key, &record), want, "{value:?} {asked:?} {told:?}");
                }
            }
        }
    }
}
