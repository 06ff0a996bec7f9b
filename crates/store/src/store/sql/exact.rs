//! Comparisons made exact: one with a value that no such column can hold becomes one with a value it can.
//!
//! Databases compare a whole number with a floating one as two floating ones, which rounds; they hold times
//! to the microsecond, so many digits, or no NUL. `whole > 1.5` becomes `whole >= 2`, which means the same for
//! all that the column can hold, and is answered through its index. A driver says what its columns hold
//! ([`Limits`]).

use std::ops::RangeInclusive;

use super::comparison;
use crate::{
    record::{
        Kind, Time, Value,
        number::{self, Exact},
    },
    store::{
        Column, Filter,
        query::{Path, Test, compare},
    },
};

/// What the columns of a database can hold.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    /// Whole numbers.
    pub whole: RangeInclusive<i128>,
    /// Its floats have infinities.
    pub infinite: bool,
    /// How many digits a decimal has at most, and how many of them after the point; none where any number
    /// can be compared with.
    pub digits: Option<(i64, i64)>,
    /// The first moment there is. All are in whole microseconds.
    pub first: i64,
    /// Texts may have a NUL.
    pub nul: bool,
}

/// A comparison as it is for values of one type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Bound<T> {
    /// Every value of the type fits.
    All,
    /// None does.
    None,
    /// Those that compare so.
    Is(Operator, T),
}

/// How values compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Same,
    Lt,
    Le,
    Gt,
    Ge,
}

use Operator::{Ge, Gt, Le, Lt, Same};

impl Operator {
    /// Of a test, and what it compares with.
    pub(crate) fn of(test: &Test) -> Option<(Operator, &Value)> {
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

    pub(crate) fn sql(self) -> &'static str {
        match self {
            Same => " = ",
            Lt => " < ",
            Le => " <= ",
            Gt => " > ",
            Ge => " >= ",
        }
    }

    fn test(self, value: Value) -> Test {
        match self {
            Same => Test::Eq(value),
            Lt => Test::Lt(value),
            Le => Test::Le(value),
            Gt => Test::Gt(value),
            Ge => Test::Ge(value),
        }
    }

    /// The same, or equal: what is true of values that were rounded or cut, too.
    pub(crate) fn or_equal(self) -> Operator {
        match self {
            Lt => Le,
            Gt => Ge,
            other => other,
        }
    }

    /// What becomes of a comparison with something that is less than all values.
    fn with_least<T>(self) -> Bound<T> {
        all_if(matches!(self, Gt | Ge))
    }

    /// What becomes of a comparison with something that is greater than all values.
    fn with_greatest<T>(self) -> Bound<T> {
        all_if(matches!(self, Lt | Le))
    }
}

fn all_if<T>(all: bool) -> Bound<T> {
    if all { Bound::All } else { Bound::None }
}

impl<T> Bound<T> {
    fn map(self, value: impl FnOnce(T) -> Value) -> Bound<Value> {
        match self {
            Bound::All => Bound::All,
            Bound::None => Bound::None,
            Bound::Is(operator, with) => Bound::Is(operator, value(with)),
        }
    }
}

/// A comparison with something that lies at `least`, or (where that is not `exact`) between it and
/// the next.
fn cut<T>(operator: Operator, least: T, exact: bool) -> Bound<T> {
    match (operator, exact) {
        (operator, true) => Bound::Is(operator, least),
        (Same, false) => Bound::None,
        (Lt | Le, false) => Bound::Is(Le, least),
        (Gt | Ge, false) => Bound::Is(Gt, least),
    }
}

impl Limits {
    /// A comparison with a number, for whole numbers.
    pub(crate) fn for_ints(&self, operator: Operator, value: &Value) -> Bound<i128> {
        let (least, exact) = match value {
            Value::Int(n) => (i128::from(*n), true),
            // Saturates.
            Value::Float(v) => (v.floor() as i128, v.floor() == *v),
            Value::BigInt(_) | Value::Decimal(_) => {
                let Some((exact, above)) = exact_digits(value) else { return Bound::None };
                // A number of 30 digits is beyond them all.
                let beyond = if above { i128::MAX } else { i128::MIN };
                let least = match exact.whole() {
                    ..30 => exact.floor(0).parse().unwrap_or(beyond),
                    _ => beyond,
                };
                (least, exact.fraction() == 0)
            }
            _ => return Bound::None,
        };
        match least {
            least if least > *self.whole.end() => operator.with_greatest(),
            // What lies between the number before the first and the first is less than all, too.
            least if least < *self.whole.start() => operator.with_least(),
            least => cut(operator, least, exact),
        }
    }

    /// A comparison with a number, for floats.
    pub(crate) fn for_floats(&self, operator: Operator, value: &Value) -> Bound<f64> {
        let near = match value {
            Value::Float(v) if self.infinite || v.is_finite() => return Bound::Is(operator, *v),
            Value::Float(v) if *v == f64::INFINITY => return operator.with_greatest(),
            Value::Float(v) if *v == f64::NEG_INFINITY => return operator.with_least(),
            value => match number::digits(value).and_then(|text| text.parse::<f64>().ok()) {
                Some(near) => near.clamp(f64::MIN, f64::MAX),
                None => return Bound::None,
            },
        };
        let (low, high) = match compare(&Value::Float(near), value) {
            Some(std::cmp::Ordering::Equal) => return Bound::Is(operator, near),
            Some(std::cmp::Ordering::Less) => (near, near.next_up()),
            Some(std::cmp::Ordering::Greater) => (near.next_down(), near),
            None => return Bound::None,
        };
        match operator {
            Lt | Le if self.infinite || low.is_finite() => Bound::Is(Le, low),
            Gt | Ge if self.infinite || high.is_finite() => Bound::Is(Ge, high),
            _ => Bound::None,
        }
    }

    /// A comparison with a number, for decimals.
    fn for_decimals(&self, operator: Operator, value: &Value) -> Bound<String> {
        let infinite = |above| match above {
            true => operator.with_greatest(),
            false => operator.with_least(),
        };
        if let Value::Float(v) = value
            && v.is_infinite()
        {
            return infinite(*v > 0.0);
        }
        let Some(text) = number::digits(value) else { return Bound::None };
        let Some((digits, places)) = self.digits else {
            return Bound::Is(operator, text.into_owned());
        };
        let Some(exact) = Exact::read(&text) else { return Bound::None };
        if exact.whole() > digits {
            return infinite(compare(value, &Value::Int(0)).is_some_and(std::cmp::Ordering::is_gt));
        }
        let places = exact.fraction().min(places).min(digits - exact.whole());
        cut(operator, exact.floor(places as usize), exact.fraction() <= places)
    }

    /// A comparison with a time, in microseconds since 1970.
    fn for_times(&self, operator: Operator, time: Time) -> Bound<i64> {
        let (seconds, nanos) = time.to_unix();
        match seconds * 1_000_000 + i64::from(nanos / 1000) {
            micros if micros < self.first => match operator.with_least() {
                // Not whatever there is: what is no moment is greater than none.
                Bound::All => Bound::Is(Ge, self.first),
                bound => bound,
            },
            micros => cut(operator, micros, nanos % 1000 == 0),
        }
    }

    /// The same filter; `columns` are those of the table, where it has typed ones.
    pub(crate) fn exact(&self, filter: &Filter, columns: Option<&[Column]>) -> Filter {
        let each = |filters: &[Filter]| filters.iter().map(|f| self.exact(f, columns)).collect();
        match filter {
            Filter::All | Filter::Look(_) => filter.clone(),
            Filter::And(all) => Filter::And(each(all)),
            Filter::Or(any) => Filter::Or(each(any)),
            Filter::Not(one) => Filter::Not(Box::new(self.exact(one, columns))),
            Filter::Field(path, Test::Ne(value)) => {
                Filter::Not(Box::new(self.field(path, &Test::Eq(value.clone()), columns)))
            }
            Filter::Field(path, Test::In(values)) => {
                let equal = |value: &Value| self.field(path, &Test::Eq(value.clone()), columns);
                Filter::Or(values.iter().map(equal).collect())
            }
            Filter::Field(path, test) => self.field(path, test, columns),
        }
    }

    fn field(&self, path: &Path, test: &Test, columns: Option<&[Column]>) -> Filter {
        let kind = match columns {
            Some(columns) if !path.is_key() => super::column(columns, path).map(|c| c.kind),
            _ => None,
        };
        let bound = match (Operator::of(test), test) {
            (Some((operator, value)), _) => self.value(operator, value, kind),
            (None, Test::Prefix(start)) if !self.nul && start.contains('\0') => Some(Bound::None),
            _ => None,
        };
        Filter::Field(
            path.clone(),
            match bound {
                None => test.clone(),
                Some(Bound::All) => Test::Exists(true),
                Some(Bound::None) => return Filter::Or(Vec::new()),
                Some(Bound::Is(operator, value)) => operator.test(value),
            },
        )
    }

    /// A comparison with a value, for values of a kind; none where it can stay as it is.
    fn value(&self, operator: Operator, value: &Value, kind: Option<Kind>) -> Option<Bound<Value>> {
        Some(match (kind, value) {
            (Some(Kind::Int), value) if number::is_number(value) => {
                self.for_ints(operator, value).map(Value::from_integer)
            }
            (Some(Kind::Float), value) if number::is_number(value) => {
                self.for_floats(operator, value).map(Value::Float)
            }
            (Some(Kind::Decimal | Kind::BigInt), value) if number::is_number(value) => {
                self.for_decimals(operator, value).map(|text| Value::Decimal(text.into()))
            }
            (Some(Kind::Time), Value::Time(time)) => {
                self.for_times(operator, *time).map(|micros| {
                    let nanos = micros.rem_euclid(1_000_000) as u32 * 1000;
                    let cut = Time::from_unix(micros.div_euclid(1_000_000), nanos);
                    // Only the first second there is has none before it.
                    cut.map_or(Value::Time(*time), Value::Time)
                })
            }
            // What stands before the NUL is the greatest text that is less and has none.
            (_, Value::Text(text)) if !self.nul => match text.split_once('\0') {
                Some((before, _)) => cut(operator, before, false).map(Value::from),
                None => return None,
            },
            _ => return None,
        })
    }
}

/// The digits of a finite number, and whether it is greater than zero.
fn exact_digits(value: &Value) -> Option<(Exact<'_>, bool)> {
    let (Value::BigInt(text) | Value::Decimal(text)) = value else { return None };
    Some((Exact::read(text)?, compare(value, &Value::Int(0))?.is_gt()))
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, sample::select};

    use super::*;
    use crate::{
        record::Document,
        store::{Key, Query},
    };

    const BIG: i64 = 1 << 53;

    fn ints() -> impl Strategy<Value = i64> {
        let near = select(vec![0, BIG, -BIG, i64::MAX, i64::MIN, 1 << 62, 1_000_000]);
        prop_oneof![(near, -3i64..=3).prop_map(|(n, by)| n.saturating_add(by)), any::<i64>()]
    }

    fn floats() -> impl Strategy<Value = f64> {
        let odd = vec![0.5, -0.0, 1.5, 0.1, 1e22, f64::MAX, f64::MIN, f64::MIN_POSITIVE];
        let beyond = select(vec![1e300, 9.3e18, -9.3e18, f64::INFINITY, f64::NEG_INFINITY]);
        let near = (ints(), -2i64..=2).prop_map(|(n, by)| match by {
            0 => n as f64,
            1.. => (n as f64).next_up(),
            _ => (n as f64).next_down(),
        });
        prop_oneof![
            near,
            select(odd),
            beyond,
            any::<f64>().prop_filter("a number", |v| !v.is_nan())
        ]
    }

    fn decimals() -> impl Strategy<Value = String> {
        prop_oneof![
            (ints(), "(\\.[0-9]{1,35})?").prop_map(|(n, after)| format!("{n}{after}")),
            select(vec!["1e400", "-1e400", "1e-400", "18446744073709551616", "-0.0"])
                .prop_map(str::to_owned),
            "-?[1-9][0-9]{0,70}(\\.[0-9]{1,40})?",
        ]
    }

    fn times() -> impl Strategy<Value = Time> {
        let seconds = select(vec![0, -1, 1, -62_135_596_800, -62_135_596_801, 4_000_000_000]);
        let nanos = select(vec![0, 1, 999, 1000, 1001, 500_000_000, 999_999_000, 999_999_999]);
        (seconds, nanos).prop_map(|(s, n)| Time::from_unix(s, n).unwrap())
    }

    fn values() -> impl Strategy<Value = Value> {
        prop_oneof![
            ints().prop_map(Value::Int),
            floats().prop_map(Value::Float),
            decimals().prop_map(|text| Value::Decimal(text.into())),
            times().prop_map(Value::Time),
            "[ab\0\u{1}]{0,4}".prop_map(Value::from),
            select(vec![Value::Null, Value::Bool(true), Value::Bytes(vec![0])]),
        ]
    }

    fn limits() -> impl Strategy<Value = Limits> {
        let whole = select(vec![i64::MAX as i128, u64::MAX as i128]);
        let digits = select(vec![None, Some((65, 30)), Some((20, 5))]);
        let first = select(vec![i64::MIN / 2, -62_135_596_800_000_000, 0]);
        (whole, any::<bool>(), digits, first, any::<bool>()).prop_map(
            |(most, infinite, digits, first, nul)| Limits {
                whole: i64::MIN.into()..=most,
                infinite,
                digits,
                first,
                nul,
            },
        )
    }

    const KINDS: [Kind; 8] = [
        Kind::Bool,
        Kind::Int,
        Kind::BigInt,
        Kind::Float,
        Kind::Decimal,
        Kind::Text,
        Kind::Bytes,
        Kind::Time,
    ];

    impl Limits {
        /// Whether a column of a kind can hold a value.
        fn hold(&self, kind: Kind, value: &Value) -> bool {
            match (kind, value) {
                (Kind::Int, Value::Int(_)) => true,
                (Kind::Int, Value::BigInt(digits)) => {
                    digits.parse().is_ok_and(|n: i128| self.whole.contains(&n))
                }
                (Kind::Float, Value::Float(v)) => self.infinite || v.is_finite(),
                (Kind::Decimal | Kind::BigInt, Value::Decimal(text)) => {
                    let exact = Exact::read(text).unwrap();
                    self.digits.is_none_or(|(digits, places)| {
                        exact.whole().max(0) + exact.fraction().max(0) <= digits
                            && exact.fraction() <= places
                    })
                }
                (Kind::Time, Value::Time(time)) => {
                    let (seconds, nanos) = time.to_unix();
                    let micros = seconds * 1_000_000 + i64::from(nanos / 1000);
                    nanos % 1000 == 0 && micros >= self.first
                }
                (Kind::Text, Value::Text(text)) => self.nul || !text.contains('\0'),
                (kind, value) => kind == value.kind(),
            }
        }

        /// Whether everything of the column's own sort that a filter compares with could be in it.
        fn within(&self, kind: Kind, filter: &Filter) -> bool {
            match filter {
                Filter::Not(one) => self.within(kind, one),
                Filter::Or(any) => any.iter().all(|one| self.within(kind, one)),
                Filter::Field(_, test) => Operator::of(test).is_none_or(|(_, value)| {
                    let number = [Kind::Int, Kind::BigInt, Kind::Float, Kind::Decimal];
                    let same = kind == value.kind()
                        || number.contains(&kind) && number.contains(&value.kind());
                    !same || self.hold(kind, value)
                }),
                _ => true,
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]
        #[test]
        fn a_comparison_means_the_same_for_all_that_a_column_can_hold(
            limits in limits(),
            kind in select(KINDS.to_vec()),
            with in values(),
            held in prop::collection::vec(values(), 24),
        ) {
            let columns = [Column { name: "a".into(), kind }];
            let key = Key::new("k").unwrap();
            let prefix = Test::Prefix(with.as_str().unwrap_or("a\0").to_owned());
            let tests = [Test::Eq, Test::Ne, Test::Lt, Test::Le, Test::Gt, Test::Ge];
            let tests = tests.map(|test| test(with.clone())).into_iter();
            for test in tests.chain([prefix, Test::In(vec![with.clone(), with.clone()])]) {
                let asked = Query::new(Filter::Field(Path::new(["a"]), test));
                let told = Query::new(limits.exact(&asked.filter, Some(&columns)));
                prop_assert!(limits.within(kind, &told.filter), "{:?}", told.filter);
                for value in held.iter().filter(|value| limits.hold(kind, value)) {
                    let record = Document::from_iter([("a", value.clone())]);
                    let (want, found) = (asked.matches(&key, &record), told.matches(&key, &record));
                    prop_assert_eq!(want, found, "{:?}: {:?} became {:?}", value, asked, told);
                }
                let none = Document::new();
                prop_assert_eq!(asked.matches(&key, &none), told.matches(&key, &none));
            }
        }

        #[test]
        fn without_columns_only_the_nul_goes(limits in limits(), with in values()) {
            let filter = Filter::Field(Path::new(["a"]), Test::Ge(with.clone()));
            let has_nul = with.as_str().is_some_and(|text| text.contains('\0'));
            if limits.nul || !has_nul {
                prop_assert_eq!(limits.exact(&filter, None), filter);
            }
        }
    }

    #[test]
    fn times_finer_than_the_server_knows() {
        let limits =
            Limits { whole: 0..=0, infinite: false, digits: None, first: -5_000_000, nul: true };
        let time = |nanos| Time::from_unix(-5, nanos).unwrap();
        let micros = |n: i64| -5_000_000 + n;
        assert_eq!(limits.for_times(Lt, time(1500)), Bound::Is(Le, micros(1)));
        assert_eq!(limits.for_times(Ge, time(1500)), Bound::Is(Gt, micros(1)));
        assert_eq!(limits.for_times(Same, time(1500)), Bound::None);
        assert_eq!(limits.for_times(Ge, time(2000)), Bound::Is(Ge, micros(2)));
        assert_eq!(limits.for_times(Ge, Time::from_unix(-6, 0).unwrap()), Bound::Is(Ge, micros(0)));
        assert_eq!(limits.for_times(Lt, Time::from_unix(-6, 0).unwrap()), Bound::None);
    }
}
