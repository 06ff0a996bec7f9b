//! Which records, in which order, how many, which of their fields.
//!
//! A [`Query`] means the same in every store; what a store cannot do in that meaning it declares
//! ([`Need`]). [`Query::matches`] is the meaning, and what the stores are tested
//! against:
//!
//! - A path goes through maps. It does not reach into lists: a list is a value that no comparison
//!   fits.
//! - Numbers compare by value, whatever their kind: 1 = 1.0. Whole numbers have 64 bits.
//! - `<`, `<=`, `>`, `>=` hold only between two numbers, two texts (by their UTF-8 bytes) or two
//!   times. `=` holds also between equal booleans and equal bytes.
//! - `= null` holds for null and for what is not there; `exists` tells the two apart.
//! - `!=` and `not` are true exactly where what they negate is false, so also where the field is
//!   not there.
//! - Sorting is ascending or descending by value, what is null or not there first when ascending;
//!   between values of different kinds the order is the store's own. Records that are equal so far
//!   are ordered by their keys, in the direction of the last path: so one index on value and key
//!   answers both directions.

mod matches;
mod parse;
mod shown;

use std::{fmt, str::FromStr};

pub use matches::compare;
pub(super) use shown::shown;

use super::Need;
use crate::{
    Error, Result,
    record::{Kind, Value},
};

/// Names that lead from a record to a value inside it: `address.city`. `_key` is the record's key.
/// A dot in a name is written `\.`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Path(Vec<String>);

impl Path {
    /// The path to the record's key.
    pub const KEY: &str = "_key";

    /// The path of these names.
    pub fn new(names: impl IntoIterator<Item = impl Into<String>>) -> Path {
        Path(names.into_iter().map(Into::into).collect())
    }

    /// The names, from the outermost; at least one.
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// Whether this is the record's key.
    pub fn is_key(&self) -> bool {
        matches!(&*self.0, [name] if name == Self::KEY)
    }
}

impl FromStr for Path {
    type Err = Error;
    fn from_str(text: &str) -> Result<Path> {
        let mut names = vec![String::new()];
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match c {
                '.' => names.push(String::new()),
                '\\' => names.last_mut().expect("never empty").extend(chars.next()),
                c => names.last_mut().expect("never empty").push(c),
            }
        }
        match names.iter().any(String::is_empty) {
            true => Err(Error::invalid(format!("{text:?} is no path: a name in it is empty"))),
            false => Ok(Path(names)),
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, name) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(".")?;
            }
            f.write_str(&name.replace('\\', "\\\\").replace('.', "\\."))?;
        }
        Ok(())
    }
}

/// What a value is compared for.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// Equal.
    Eq(Value),
    /// Not equal, or not there.
    Ne(Value),
    /// Less.
    Lt(Value),
    /// Less or equal.
    Le(Value),
    /// Greater.
    Gt(Value),
    /// Greater or equal.
    Ge(Value),
    /// Equal to one of these.
    In(Vec<Value>),
    /// There, be it null (true), or not there (false).
    Exists(bool),
    /// A text that begins so.
    Prefix(String),
}

/// Which records.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Filter {
    /// Every one.
    #[default]
    All,
    /// Those that fit all of these.
    And(Vec<Filter>),
    /// Those that fit one of these at least.
    Or(Vec<Filter>),
    /// Those that do not fit this.
    Not(Box<Filter>),
    /// Those with such a value under the path.
    Field(Path, Test),
}

impl Filter {
    /// A test of a field.
    pub fn field(path: &str, test: Test) -> Result<Filter> {
        Ok(Filter::Field(path.parse()?, test))
    }

    /// This and another.
    pub fn and(self, other: Filter) -> Filter {
        match (self, other) {
            (Filter::All, one) | (one, Filter::All) => one,
            (Filter::And(mut all), other) => {
                all.push(other);
                Filter::And(all)
            }
            (one, other) => Filter::And(vec![one, other]),
        }
    }

    /// Calls `each` with every test in it.
    pub(crate) fn tests<'a>(&'a self, each: &mut dyn FnMut(&'a Path, &'a Test)) {
        match self {
            Filter::All => {}
            Filter::And(all) | Filter::Or(all) => all.iter().for_each(|f| f.tests(each)),
            Filter::Not(one) => one.tests(each),
            Filter::Field(path, test) => each(path, test),
        }
    }

    fn has_not(&self) -> bool {
        match self {
            Filter::All => false,
            Filter::And(all) | Filter::Or(all) => all.iter().any(Filter::has_not),
            Filter::Not(_) => true,
            Filter::Field(_, test) => matches!(test, Test::Ne(_)),
        }
    }

    /// How deep it nests.
    fn depth(&self) -> usize {
        match self {
            Filter::All | Filter::Field(..) => 1,
            Filter::Not(one) => 1 + one.depth(),
            Filter::And(all) | Filter::Or(all) => {
                1 + all.iter().map(Filter::depth).max().unwrap_or(0)
            }
        }
    }
}

/// Up or down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// From the least on.
    Ascending,
    /// From the greatest on.
    Descending,
}

/// Which records, in which order, how many, which of their fields.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Query {
    /// Which.
    pub filter: Filter,
    /// In which order; in any where empty.
    pub sort: Vec<(Path, Order)>,
    /// How many at most.
    pub limit: Option<u64>,
    /// Only these fields, named at the top; all where none.
    pub fields: Option<Vec<String>>,
}

/// How deep filters may nest.
const DEPTH: usize = 64;

impl Query {
    /// The query for the records that fit.
    pub fn new(filter: Filter) -> Query {
        Query { filter, ..Query::default() }
    }

    /// The same, sorted by one path more.
    pub fn sorted(mut self, path: Path, order: Order) -> Query {
        self.sort.push((path, order));
        self
    }

    /// The same, of so many records at most.
    pub fn limited(mut self, limit: u64) -> Query {
        self.limit = Some(limit);
        self
    }

    /// Whether its comparisons make sense.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for a comparison with a list or map, an order among
    /// booleans and the like, a number that is none.
    pub fn check(&self) -> Result<()> {
        if self.filter.depth() > DEPTH {
            return Err(Error::invalid(format!("a query that nests deeper than {DEPTH}")));
        }
        let mut found = Ok(());
        self.filter.tests(&mut |path, test| {
            if found.is_ok() {
                found = check_test(path, test);
            }
        });
        found
    }

    /// What the query needs of a store.
    pub fn needs(&self) -> Vec<Need> {
        let mut needs = Vec::new();
        let mut need = |need| {
            if !needs.contains(&need) {
                needs.push(need);
            }
        };
        self.filter.tests(&mut |path, test| {
            if !path.is_key() {
                need(Need::Find);
            }
            if path.names().len() > 1 {
                need(Need::Nested);
            }
            match test {
                Test::Exists(_) => need(Need::Missing),
                Test::Prefix(_) => need(Need::TextOrder),
                Test::Lt(v) | Test::Le(v) | Test::Gt(v) | Test::Ge(v) if v.kind() == Kind::Text => {
                    need(Need::TextOrder)
                }
                _ => {}
            }
        });
        if self.filter.has_not() {
            need(Need::Not);
        }
        if !self.sort.is_empty() {
            need(Need::Sort);
        }
        needs
    }
}

fn check_test(path: &Path, test: &Test) -> Result<()> {
    let refuse = |value: &Value, what: &str| {
        let kind = value.kind().name();
        Err(Error::invalid(format!("{:?} is compared with a {kind}, {what}", path.to_string())))
    };
    let equal = |value: &Value| match value {
        Value::List(_) | Value::Map(_) => refuse(value, "which no query can"),
        Value::BigInt(_) | Value::Decimal(_) => {
            refuse(value, "where queries know whole numbers of 64 bits and floats")
        }
        Value::Float(v) if v.is_nan() => refuse(value, "which is no number"),
        _ => Ok(()),
    };
    match test {
        Test::Eq(value) | Test::Ne(value) => equal(value),
        Test::In(values) => values.iter().try_for_each(equal),
        Test::Lt(value) | Test::Le(value) | Test::Gt(value) | Test::Ge(value) => {
            equal(value)?;
            match value.kind() {
                Kind::Int | Kind::Float | Kind::Text | Kind::Time => Ok(()),
                _ => refuse(value, "of which none is less than another"),
            }
        }
        Test::Exists(_) | Test::Prefix(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_come_back_dots_and_all() {
        for text in ["a", "a.b.c", r"a\.b.c", r"x\\y", "is_admin?"] {
            assert_eq!(text.parse::<Path>().unwrap().to_string(), text);
        }
        assert_eq!(r"a\.b.c".parse::<Path>().unwrap().names(), ["a.b", "c"]);
        for text in ["", "a.", ".a", "a..b"] {
            assert!(text.parse::<Path>().is_err(), "{text}");
        }
    }

    #[test]
    fn senseless_comparisons_are_refused() {
        for (test, want) in [
            (Test::Lt(Value::Bool(true)), "none is less"),
            (Test::Eq(Value::List(vec![])), "no query can"),
            (Test::Eq(Value::Float(f64::NAN)), "no number"),
            (Test::In(vec![Value::Decimal("1.5".into())]), "64 bits"),
        ] {
            let error = Query::new(Filter::field("a", test).unwrap()).check().unwrap_err();
            assert!(error.to_string().contains(want), "{error}");
        }
    }
}
