//! Queries: which records, in which order, how many, and which of their fields.
//!
//! A [`Query`] means the same in every store; what a store cannot do in that meaning it declares
//! ([`Need`]). [`Query::matches`] is the meaning, and what the stores are tested
//! against:
//!
//! - A path goes through maps. It does not reach into lists: a list is a value that no comparison
//!   fits.
//! - Numbers compare by value, whatever their kind and however many digits they have: 1 = 1.0, and
//!   9007199254740993 < 9007199254740993.5. A float is the number it is written as: 0.1 is one tenth
//!   ([`number`]).
//! - `<`, `<=`, `>`, `>=` hold only between two numbers, two texts (by their UTF-8 bytes) or two
//!   times. `=` holds also between equal booleans and equal bytes.
//! - Where a store keeps times as texts, a comparison with a time holds for the texts of the times that it
//!   holds for (`times.rs`). Sorted, they are in the order of texts: `…:30.5Z` before `…:30Z`.
//! - `= null` holds for null and for what is not there; `exists` tells the two apart.
//! - `!=` and `not` are true exactly where what they negate is false, so also where the field is
//!   not there.
//! - Sorting is ascending or descending by value, what is null or not there first when ascending;
//!   between values of different kinds the order is the store's own. Records that are equal so far
//!   are ordered by their keys, in the direction of the last path: so one index on value and key
//!   answers both directions.

mod compile;
mod condition;
mod hints;
mod json;
mod look;
mod matches;
// Not used by every choice of features.
#[allow(dead_code)]
mod narrow;
mod shown;
mod streamed;
#[cfg(test)]
mod tests;
mod times;

use std::{fmt, str::FromStr, sync::Arc};

#[allow(unused_imports)]
use super::Need;
use crate::{
    Error, Result,
    record::{Kind, Value, number},
};
pub use condition::Condition;
pub use hints::{Hints, hints};
pub use look::Look;
pub use matches::compare;
#[allow(unused_imports)]
pub(super) use narrow::narrowed;
pub(super) use shown::shown;
pub use streamed::{Answer, delete, find, unheld};
pub use times::Matcher;

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
                // As in conditions.
                '"' if names.last().is_some_and(String::is_empty) => {
                    let end = quoted(chars.as_str()).ok_or_else(|| {
                        Error::invalid(format!(
                            "{text:?} is not a path: a quote in it is not closed"
                        ))
                    })?;
                    let name = format!("\"{}\"", &chars.as_str()[..end]);
                    let name: String = serde_json::from_str(&name).map_err(|e| {
                        Error::invalid(format!(
                            "{text:?} is not a path: {name} is not a JSON string"
                        ))
                        .with_source(e)
                    })?;
                    names.last_mut().expect("never empty").push_str(&name);
                    chars = chars.as_str()[end + 1..].chars();
                }
                '.' => names.push(String::new()),
                '\\' => names.last_mut().expect("never empty").extend(chars.next()),
                c => names.last_mut().expect("never empty").push(c),
            }
        }
        match names.iter().any(String::is_empty) {
            true => Err(Error::invalid(format!("{text:?} is not a path: a name in it is empty"))),
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
            let name = name.replace('\\', "\\\\").replace('.', "\\.");
            if name.starts_with('"') {
                f.write_str("\\")?;
            }
            f.write_str(&name)?;
        }
        Ok(())
    }
}

/// Where a text that follows a quote has the one that closes it.
fn quoted(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.find(|c| match (escaped, c) {
        (false, '"') => true,
        (was, c) => {
            escaped = !was && c == '\\';
            false
        }
    })
}

/// A test of a value.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
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

impl Test {
    /// What values are compared with.
    fn values(&self) -> &[Value] {
        match self {
            Test::Eq(value)
            | Test::Ne(value)
            | Test::Lt(value)
            | Test::Le(value)
            | Test::Gt(value)
            | Test::Ge(value) => std::slice::from_ref(value),
            Test::In(values) => values,
            Test::Exists(_) | Test::Prefix(_) => &[],
        }
    }
}

/// Whether a number has more digits than [`Need::Digits`] says.
fn many_digits(value: &Value) -> bool {
    match value {
        Value::BigInt(text) | Value::Decimal(text) => {
            number::Exact::read(text).is_some_and(|exact| exact.significant() > 34)
        }
        _ => false,
    }
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
    /// Those that a look at them shows to fit. Stores refuse it; [`find`] and [`delete`] go through the records.
    Look(Arc<Look>),
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

    /// Whether it has a test that no store answers.
    pub(crate) fn looks(&self) -> bool {
        match self {
            Filter::All | Filter::Field(..) => false,
            Filter::And(all) | Filter::Or(all) => all.iter().any(Filter::looks),
            Filter::Not(one) => one.looks(),
            Filter::Look(_) => true,
        }
    }

    /// Whether it has a regular expression in it.
    pub(super) fn has_patterns(&self) -> bool {
        match self {
            Filter::All | Filter::Field(..) => false,
            Filter::And(all) | Filter::Or(all) => all.iter().any(Filter::has_patterns),
            Filter::Not(one) => one.has_patterns(),
            Filter::Look(look) => look.is_pattern(),
        }
    }

    /// Calls `each` with every test of a field in it.
    #[doc(hidden)]
    pub fn tests<'a>(&'a self, each: &mut dyn FnMut(&'a Path, &'a Test)) {
        match self {
            Filter::All | Filter::Look(_) => {}
            Filter::And(all) | Filter::Or(all) => all.iter().for_each(|f| f.tests(each)),
            Filter::Not(one) => one.tests(each),
            Filter::Field(path, test) => each(path, test),
        }
    }

    /// The fields of documents that it asks to be other than something: it holds wherever there is no such field.
    pub fn denied(&self) -> Vec<Path> {
        let mut paths = Vec::new();
        if !self.is_marc() {
            self.denies(false, &mut paths);
        }
        paths
    }

    fn denies(&self, not: bool, paths: &mut Vec<Path>) {
        let path = match self {
            Filter::All => None,
            Filter::And(all) | Filter::Or(all) => {
                all.iter().for_each(|one| one.denies(not, paths));
                None
            }
            Filter::Not(one) => {
                one.denies(!not, paths);
                None
            }
            // That asks for just this.
            Filter::Field(_, Test::Exists(_)) => None,
            Filter::Field(path, Test::Ne(_)) if !not => Some(path.clone()),
            Filter::Field(_, Test::Ne(_)) => None,
            Filter::Field(path, _) if not => Some(path.clone()),
            Filter::Look(look) if not => look.path(),
            Filter::Field(..) | Filter::Look(_) => None,
        };
        paths.extend(path.filter(|path| !path.is_key() && !paths.contains(path)));
    }

    fn has_not(&self) -> bool {
        match self {
            Filter::All | Filter::Look(_) => false,
            Filter::And(all) | Filter::Or(all) => all.iter().any(Filter::has_not),
            Filter::Not(_) => true,
            Filter::Field(_, test) => matches!(test, Test::Ne(_)),
        }
    }

    /// How deep it nests.
    fn depth(&self) -> usize {
        match self {
            Filter::All | Filter::Field(..) | Filter::Look(_) => 1,
            Filter::Not(one) => 1 + one.depth(),
            Filter::And(all) | Filter::Or(all) => {
                1 + all.iter().map(Filter::depth).max().unwrap_or(0)
            }
        }
    }
}

/// The direction of a sort.
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
    /// Which records.
    pub filter: Filter,
    /// The order; any order where empty.
    pub sort: Vec<(Path, Order)>,
    /// How many at most.
    pub limit: Option<u64>,
    /// Only these top-level fields; all of them where `None`.
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
            if test.values().iter().any(many_digits) {
                need(Need::Digits);
            }
            if test.values().iter().any(|value| value.kind() == Kind::Time) {
                need(Need::Times);
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
        if self.filter.looks() {
            need(Need::Look);
        }
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
        let kind = value.kind().one();
        Err(Error::invalid(format!("{:?} is compared with {kind}, {what}", path.to_string())))
    };
    let equal = |value: &Value| match value {
        Value::List(_) | Value::Map(_) => refuse(value, "which queries do not support"),
        Value::Float(_) | Value::BigInt(_) | Value::Decimal(_) if !number::is_number(value) => {
            refuse(value, "which is not a number")
        }
        _ => Ok(()),
    };
    match test {
        Test::Eq(value) | Test::Ne(value) => equal(value),
        Test::In(values) => values.iter().try_for_each(equal),
        Test::Lt(value) | Test::Le(value) | Test::Gt(value) | Test::Ge(value) => {
            equal(value)?;
            match value.kind() {
                Kind::Int | Kind::BigInt | Kind::Float | Kind::Decimal => Ok(()),
                Kind::Text | Kind::Time => Ok(()),
                _ => refuse(value, "which has no order"),
            }
        }
        Test::Exists(_) | Test::Prefix(_) => Ok(()),
    }
}
