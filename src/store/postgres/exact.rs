//! Queries in words that PostgreSQL answers exactly, and through its indexes.
//!
//! A comparison of a column with a value that no such column can hold is turned into one with a
//! value it can: `whole > 1.5` into `whole >= 2`. There is no NUL in any text, so a comparison with
//! one becomes a comparison with what stands before it.

use super::wire;
use crate::{
    record::{Kind, Time, Value},
    store::{
        Column, Filter,
        query::{Path, Test},
    },
};

/// A test, or what is known of it beforehand.
enum Told {
    Test(Test),
    Never,
    /// Where there is a value at all.
    Always,
}

/// The same filter; `columns` are those of the table, where it has typed ones.
pub fn exact(filter: &Filter, columns: Option<&[Column]>) -> Filter {
    let each = |filters: &[Filter]| filters.iter().map(|f| exact(f, columns)).collect();
    match filter {
        Filter::All => Filter::All,
        Filter::And(all) => Filter::And(each(all)),
        Filter::Or(any) => Filter::Or(each(any)),
        Filter::Not(one) => Filter::Not(Box::new(exact(one, columns))),
        Filter::Field(path, Test::Ne(value)) => {
            Filter::Not(Box::new(field(path, Test::Eq(value.clone()), columns)))
        }
        Filter::Field(path, Test::In(values)) => {
            let equal = |value: &Value| field(path, Test::Eq(value.clone()), columns);
            Filter::Or(values.iter().map(equal).collect())
        }
        Filter::Field(path, test) => field(path, test.clone(), columns),
    }
}

fn field(path: &Path, test: Test, columns: Option<&[Column]>) -> Filter {
    let column = match path.names() {
        [name] if !path.is_key() => columns.and_then(|c| c.iter().find(|c| c.name == *name)),
        _ => None,
    };
    let told = match (column.map(|column| column.kind), value_of(&test)) {
        (Some(Kind::Int), Some(Value::Float(v))) => whole(&test, *v),
        (Some(Kind::Float), Some(Value::Int(n))) => floating(&test, *n),
        (Some(Kind::Time), Some(Value::Time(time))) => moment(&test, *time),
        (_, Some(Value::Text(text))) if text.contains('\0') => without_nul(&test, text),
        _ => match &test {
            Test::Prefix(start) if start.contains('\0') => Told::Never,
            _ => Told::Test(test),
        },
    };
    match told {
        Told::Test(test) => Filter::Field(path.clone(), test),
        Told::Never => Filter::Or(Vec::new()),
        Told::Always => Filter::Field(path.clone(), Test::Exists(true)),
    }
}

fn value_of(test: &Test) -> Option<&Value> {
    match test {
        Test::Eq(value)
        | Test::Ne(value)
        | Test::Lt(value)
        | Test::Le(value)
        | Test::Gt(value)
        | Test::Ge(value) => Some(value),
        Test::In(_) | Test::Exists(_) | Test::Prefix(_) => None,
    }
}

/// The test with another value.
fn with(test: &Test, value: impl Into<Value>) -> Told {
    let value = value.into();
    Told::Test(match test {
        Test::Lt(_) => Test::Lt(value),
        Test::Le(_) => Test::Le(value),
        Test::Gt(_) => Test::Gt(value),
        Test::Ge(_) => Test::Ge(value),
        _ => Test::Eq(value),
    })
}

/// A test for what is less than something that is itself not among the values: `below` is the
/// greatest value less than it.
fn around(test: &Test, below: impl Into<Value>) -> Told {
    match test {
        Test::Lt(_) | Test::Le(_) => Told::Test(Test::Le(below.into())),
        Test::Gt(_) | Test::Ge(_) => Told::Test(Test::Gt(below.into())),
        _ => Told::Never,
    }
}

/// A test for something that is greater than all values.
fn above_all(test: &Test) -> Told {
    match test {
        Test::Lt(_) | Test::Le(_) => Told::Always,
        _ => Told::Never,
    }
}

/// A test for something that is less than all values.
fn below_all(test: &Test) -> Told {
    match test {
        Test::Gt(_) | Test::Ge(_) => Told::Always,
        _ => Told::Never,
    }
}

/// Whole numbers against a float.
fn whole(test: &Test, v: f64) -> Told {
    // 2^63, the first float that is greater than every whole number.
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    match v {
        v if v >= BEYOND => above_all(test),
        v if v < -BEYOND => below_all(test),
        v if v.fract() == 0.0 => with(test, v as i64),
        // Between two whole numbers, and so far from either end.
        v => around(test, v.floor() as i64),
    }
}

/// Floats against a whole number.
fn floating(test: &Test, n: i64) -> Told {
    let near = n as f64;
    match (near as i128).cmp(&i128::from(n)) {
        std::cmp::Ordering::Equal => with(test, near),
        std::cmp::Ordering::Less => around(test, near),
        std::cmp::Ordering::Greater => around(test, near.next_down()),
    }
}

/// Times to the microsecond against one to the nanosecond.
fn moment(test: &Test, time: Time) -> Told {
    match wire::since_2000(time) {
        (micros, _) if micros < wire::FIRST => below_all(test),
        (_, true) => with(test, time),
        (micros, false) => match wire::moment(micros) {
            Ok(below) => around(test, below),
            Err(_) => Told::Never,
        },
    }
}

/// Texts without NUL against one with: what stands before the NUL is the greatest less than it.
fn without_nul(test: &Test, text: &str) -> Told {
    around(test, text.split('\0').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        record::Document,
        store::{Key, Query},
    };

    /// Both have to fit the same records.
    fn agree(kind: Kind, values: &[Value], tests: &[Value]) {
        let columns = [Column { name: "a".into(), kind }];
        let key = Key::new("k").unwrap();
        for with in tests {
            let make: [fn(Value) -> Test; 8] = [
                Test::Eq,
                Test::Ne,
                Test::Lt,
                Test::Le,
                Test::Gt,
                Test::Ge,
                |v| Test::In(vec![v]),
                |v| Test::Prefix(v.as_str().unwrap_or("x").to_owned()),
            ];
            for test in make.map(|make| make(with.clone())) {
                let asked = Query::new(Filter::field("a", test).unwrap());
                let told = Query::new(exact(&asked.filter, Some(&columns)));
                for value in values {
                    let record = Document::from_iter([("a", value.clone())]);
                    assert_eq!(
                        asked.matches(&key, &record),
                        told.matches(&key, &record),
                        "{value:?}: {asked:?} became {told:?}"
                    );
                }
                let none = Document::new();
                assert_eq!(asked.matches(&key, &none), told.matches(&key, &none), "{asked:?}");
            }
        }
    }

    const BIG: i64 = 1 << 53;

    #[test]
    fn numbers_of_two_kinds() {
        let ints = [0, 1, 2, -1, BIG, BIG + 1, BIG + 2, i64::MAX, i64::MAX - 1, i64::MIN];
        let floats = [
            0.0,
            1.0,
            1.5,
            -0.5,
            9e18,
            -9.3e18,
            9.3e18,
            BIG as f64,
            (BIG + 2) as f64,
            9_223_372_036_854_775_808.0,
            9_223_372_036_854_774_784.0,
            -9_223_372_036_854_775_808.0,
            f64::INFINITY,
            f64::NEG_INFINITY,
        ];
        let (ints, floats) = (ints.map(Value::Int), floats.map(Value::Float));
        agree(Kind::Int, &ints, &floats);
        agree(Kind::Float, &floats, &ints);
    }

    #[test]
    fn times_and_texts() {
        let time = |s: i64, n: u32| Value::Time(Time::from_unix(s, n).unwrap());
        let kept = [time(0, 0), time(0, 1000), time(-1, 999_999_000), time(250_000_000_000, 0)];
        let asked = [time(0, 1), time(0, 1000), time(-1, 999_999_999), time(-300_000_000_000, 1)];
        agree(Kind::Time, &kept, &asked);
        let kept = ["", "a", "ab", "a\u{1}", "b"].map(Value::from);
        agree(Kind::Text, &kept, &["a\0", "\0", "a\0b", "a"].map(Value::from));
    }
}
