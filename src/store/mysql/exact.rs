//! Comparisons with numbers and times, made exact: the server compares a whole number with a
//! floating one as two floating ones, which rounds, and knows no time finer than a microsecond.

use crate::{
    record::{Kind, Time, Value},
    store::{
        Column, Filter,
        query::{Path, Test},
        sql::comparison,
    },
};

/// A comparison as it is for values of one type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound<T> {
    /// Every value of the type fits.
    All,
    /// None does.
    None,
    /// Those that compare so.
    Is(Operator, T),
}

/// How values compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    Same,
    Lt,
    Le,
    Gt,
    Ge,
}

use Operator::{Ge, Gt, Le, Lt, Same};

impl Operator {
    /// Of a test, and what it compares with.
    pub fn of(test: &Test) -> Option<(Operator, &Value)> {
        let operator = match test {
            Test::Eq(_) => Same,
            Test::Lt(_) => Lt,
            Test::Le(_) => Le,
            Test::Gt(_) => Gt,
            Test::Ge(_) => Ge,
            _ => return None,
        };
        comparison(test).map(|(_, value)| (operator, value))
    }

    pub fn sql(self) -> &'static str {
        match self {
            Same => " = ",
            Lt => " < ",
            Le => " <= ",
            Gt => " > ",
            Ge => " >= ",
        }
    }

    /// The same, or equal: what is true of values that were rounded or cut, too.
    pub fn or_equal(self) -> Operator {
        match self {
            Lt => Le,
            Gt => Ge,
            other => other,
        }
    }

    /// True of all values that are less than what they are compared with, wherever it lies.
    fn below(self) -> bool {
        matches!(self, Lt | Le)
    }

    /// True of all that are greater.
    fn above(self) -> bool {
        matches!(self, Gt | Ge)
    }
}

fn all_if<T>(all: bool) -> Bound<T> {
    if all { Bound::All } else { Bound::None }
}

/// 2^63, the first float that is greater than every whole number.
const BEYOND: f64 = 9_223_372_036_854_775_808.0;

/// A comparison with a number, for whole numbers.
pub fn for_ints(operator: Operator, value: &Value) -> Bound<i64> {
    let float = match value {
        Value::Int(n) => return Bound::Is(operator, *n),
        Value::Float(float) => *float,
        _ => return Bound::None,
    };
    if float >= BEYOND {
        return all_if(operator.below());
    }
    if float < -BEYOND {
        return all_if(operator.above());
    }
    cut(operator, float.floor() as i64, float.floor() == float)
}

/// A comparison with something that lies at `least`, or (where that is not `exact`) between it and
/// the next.
fn cut(operator: Operator, least: i64, exact: bool) -> Bound<i64> {
    match (operator, exact) {
        (operator, true) => Bound::Is(operator, least),
        (Same, false) => Bound::None,
        (Lt | Le, false) => Bound::Is(Le, least),
        (Gt | Ge, false) => Bound::Is(Gt, least),
    }
}

/// A comparison with a number, for floating numbers that are finite.
pub fn for_floats(operator: Operator, value: &Value) -> Bound<f64> {
    match value {
        Value::Float(v) if *v == f64::INFINITY => all_if(operator.below()),
        Value::Float(v) if *v == f64::NEG_INFINITY => all_if(operator.above()),
        Value::Float(v) => Bound::Is(operator, *v),
        Value::Int(n) => {
            let near = *n as f64;
            let (low, high) = match (near as i128).cmp(&i128::from(*n)) {
                std::cmp::Ordering::Equal => return Bound::Is(operator, near),
                std::cmp::Ordering::Less => (near, near.next_up()),
                std::cmp::Ordering::Greater => (near.next_down(), near),
            };
            match operator {
                Same => Bound::None,
                Lt | Le => Bound::Is(Le, low),
                Gt | Ge => Bound::Is(Ge, high),
            }
        }
        _ => Bound::None,
    }
}

/// Whether comparing anything with this number as two floats is exact: all whole numbers up to here
/// are floats, and those beyond stay beyond when they are rounded.
pub fn is_small(value: &Value) -> bool {
    const SMALL: f64 = (1u64 << 53) as f64;
    match value {
        Value::Int(n) => n.unsigned_abs() < 1 << 53,
        Value::Float(v) => v.abs() < SMALL,
        _ => false,
    }
}

/// A comparison with a time, for times in whole microseconds.
fn for_times(operator: Operator, time: Time) -> Bound<i64> {
    let (seconds, nanos) = time.to_unix();
    cut(operator, seconds * 1_000_000 + i64::from(nanos / 1000), nanos % 1000 == 0)
}

/// The filter as columns of these kinds need it. It means the same.
pub fn for_columns(filter: &Filter, columns: &[Column]) -> Filter {
    let each = |filters: &[Filter]| filters.iter().map(|f| for_columns(f, columns)).collect();
    match filter {
        Filter::All => Filter::All,
        Filter::And(all) => Filter::And(each(all)),
        Filter::Or(any) => Filter::Or(each(any)),
        Filter::Not(one) => Filter::Not(Box::new(for_columns(one, columns))),
        Filter::Field(path, test) => {
            let column = match path.names() {
                [name] => columns.iter().find(|column| column.name == *name),
                _ => None,
            };
            match column {
                Some(column) => for_column(path, test, column.kind),
                None => filter.clone(),
            }
        }
    }
}

fn for_column(path: &Path, test: &Test, kind: Kind) -> Filter {
    let field = |test| Filter::Field(path.clone(), test);
    let equal = |value: &Value| for_column(path, &Test::Eq(value.clone()), kind);
    let (operator, value) = match test {
        Test::Ne(value) => return Filter::Not(Box::new(equal(value))),
        Test::In(values) => return Filter::Or(values.iter().map(equal).collect()),
        test => match Operator::of(test) {
            Some(found) => found,
            None => return field(test.clone()),
        },
    };
    let bound = match (kind, value) {
        (Kind::Int, Value::Float(_)) => map(for_ints(operator, value), Value::Int),
        (Kind::Float, Value::Int(_) | Value::Float(_)) => {
            map(for_floats(operator, value), Value::Float)
        }
        (Kind::Time, Value::Time(time)) => map(for_times(operator, *time), |micros| {
            let nanos = micros.rem_euclid(1_000_000) as u32 * 1000;
            Time::from_unix(micros.div_euclid(1_000_000), nanos).map_or(Value::Null, Value::Time)
        }),
        _ => return field(test.clone()),
    };
    match bound {
        Bound::All => field(Test::Exists(true)),
        Bound::None => Filter::Or(Vec::new()),
        Bound::Is(Same, value) => field(Test::Eq(value)),
        Bound::Is(Lt, value) => field(Test::Lt(value)),
        Bound::Is(Le, value) => field(Test::Le(value)),
        Bound::Is(Gt, value) => field(Test::Gt(value)),
        Bound::Is(Ge, value) => field(Test::Ge(value)),
    }
}

fn map<T>(bound: Bound<T>, value: impl Fn(T) -> Value) -> Bound<Value> {
    match bound {
        Bound::All => Bound::All,
        Bound::None => Bound::None,
        Bound::Is(operator, v) => Bound::Is(operator, value(v)),
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::*;
    use crate::store::query::compare;

    fn holds(operator: Operator, ordering: Option<Ordering>) -> bool {
        ordering.is_some_and(|ordering| match operator {
            Same => ordering.is_eq(),
            Lt => ordering.is_lt(),
            Le => ordering.is_le(),
            Gt => ordering.is_gt(),
            Ge => ordering.is_ge(),
        })
    }

    fn fits<T: PartialOrd>(bound: Bound<T>, value: T) -> bool {
        match bound {
            Bound::All => true,
            Bound::None => false,
            Bound::Is(operator, with) => holds(operator, value.partial_cmp(&with)),
        }
    }

    #[test]
    fn bounds_mean_what_the_comparison_means() {
        let ints = [0, 1, -1, 2, (1 << 53) - 1, 1 << 53, (1 << 53) + 1, -(1 << 53) - 1];
        let ints = [&ints[..], &[i64::MAX, i64::MAX - 1, i64::MIN, i64::MIN + 1, 1 << 62]].concat();
        let mut floats: Vec<f64> = ints.iter().map(|&n| n as f64).collect();
        floats.extend([0.5, -0.5, -0.0, 1.5, 1e300, -1e300, f64::MIN_POSITIVE, BEYOND.next_down()]);
        let mut with: Vec<Value> = ints.iter().map(|&n| Value::Int(n)).collect();
        with.extend(floats.iter().map(|&v| Value::Float(v)));
        with.extend([f64::INFINITY, f64::NEG_INFINITY].map(Value::Float));
        for operator in [Same, Lt, Le, Gt, Ge] {
            for with in &with {
                let wanted = |value| holds(operator, compare(&value, with));
                for &n in &ints {
                    let (bound, shown) =
                        (for_ints(operator, with), format!("{n}{operator:?}{with:?}"));
                    assert_eq!(fits(bound, n), wanted(Value::Int(n)), "{shown}");
                    if is_small(with) {
                        let as_floats = compare(&Value::Float(n as f64), with);
                        assert_eq!(holds(operator, as_floats), wanted(Value::Int(n)), "{shown}");
                    }
                }
                for &v in &floats {
                    let bound = for_floats(operator, with);
                    let shown = format!("{v}{operator:?}{with:?}");
                    assert_eq!(fits(bound, v), wanted(Value::Float(v)), "{shown}");
                }
            }
        }
    }

    #[test]
    fn times_finer_than_the_server_knows() {
        let time = |nanos| Time::from_unix(-5, nanos).unwrap();
        let micros = |n: i64| -5_000_000 + n;
        assert_eq!(for_times(Lt, time(1500)), Bound::Is(Le, micros(1)));
        assert_eq!(for_times(Ge, time(1500)), Bound::Is(Gt, micros(1)));
        assert_eq!(for_times(Same, time(1500)), Bound::None);
        assert_eq!(for_times(Ge, time(2000)), Bound::Is(Ge, micros(2)));
    }
}
