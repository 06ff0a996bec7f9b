//! What a store is sent for an operation, and how it says it will answer: for the pages of benches,
//! and for the test that every query uses the index it was given.

use std::fmt;

use super::{Filter, Join, Key, KeyRange, Query, Row};
use crate::record::Value;

/// An operation of a store, to be explained and not to be done.
#[derive(Debug, Clone, Copy)]
pub enum Request<'a> {
    /// [`Store::get`](super::Store::get).
    Get(&'a [Key]),
    /// [`Store::find`](super::Store::find).
    Find(&'a Query),
    /// [`Store::join`](super::Store::join).
    Join(&'a Join),
    /// [`Store::put`](super::Store::put).
    Put(&'a [Row]),
    /// [`Store::load`](super::Store::load).
    Load(&'a [Row]),
    /// [`Store::delete`](super::Store::delete).
    Delete(&'a Filter),
    /// [`Store::scan`](super::Store::scan); its first page.
    Scan(&'a KeyRange),
}

/// The statement that a store is sent for an operation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Explained {
    /// The statement, with places for its values; the command, where the store has no language.
    pub statement: String,
    /// The values in these places, in order, each on one line and cut where it is long. Those of
    /// written records are left out.
    pub values: Vec<String>,
    /// The database's own explanation of how it will answer; none where it has none, and for
    /// statements that it does not explain.
    pub plan: Option<String>,
    /// The statement after it, preceded by when it is sent, where the operation takes several.
    pub then: Option<String>,
}

impl Explained {
    /// A statement without values.
    pub fn new(statement: impl Into<String>) -> Explained {
        Explained { statement: statement.into(), ..Explained::default() }
    }

    /// The same with these values.
    #[must_use]
    pub fn with_values<'v>(mut self, values: impl IntoIterator<Item = &'v Value>) -> Explained {
        self.values = values.into_iter().map(shown).collect();
        self
    }

    /// The same, followed by another statement.
    #[must_use]
    pub fn followed_by(self, then: impl Into<String>) -> Explained {
        Explained { then: Some(then.into()), ..self }
    }

    /// The same with these keys as values.
    #[must_use]
    pub fn with_keys<'k>(mut self, keys: impl IntoIterator<Item = &'k Key>) -> Explained {
        self.values = keys.into_iter().map(Key::shown).collect();
        self
    }
}

/// The statement, its values, and what follows it.
impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 5;
        f.write_str(&self.statement)?;
        let shown = self.values.len().min(SHOWN);
        if shown > 0 {
            write!(f, "\nvalues: {}", self.values[..shown].join(", "))?;
        }
        match self.values.len() - shown {
            0 => {}
            more => write!(f, " and {more} more")?,
        }
        self.then.as_ref().map_or(Ok(()), |then| write!(f, "\n{then}"))
    }
}

/// A value as a message shows it.
fn shown(value: &Value) -> String {
    const LONGEST: usize = 60;
    match value {
        Value::Null => "null".into(),
        Value::Bool(v) => v.to_string(),
        Value::Int(v) => v.to_string(),
        Value::Float(v) => format!("{v:?}"),
        Value::BigInt(v) | Value::Decimal(v) => v.to_string(),
        Value::Time(v) => v.to_string(),
        Value::Text(text) => match text.char_indices().nth(LONGEST) {
            None => format!("{text:?}"),
            Some((end, _)) => format!("{:?}…", &text[..end]),
        },
        Value::Bytes(bytes) => format!("{} bytes", bytes.len()),
        Value::List(_) | Value::Map(_) => value.kind().name().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_follow_the_statement() {
        let long = Value::Text("ü".repeat(100));
        let values = [Value::Int(90), Value::Float(1.0), Value::from("a\"b"), long];
        let explained = Explained::new("SELECT 1").with_values(&values);
        let text = explained.to_string();
        assert!(text.starts_with("SELECT 1\nvalues: 90, 1.0, \"a\\\"b\", \"üü"), "{text}");
        assert!(text.ends_with("ü\"…"), "{text}");
        let many = vec![Value::Int(1); 9];
        let text = Explained::new("x").with_values(&many).to_string();
        assert_eq!(text, "x\nvalues: 1, 1, 1, 1, 1 and 4 more");
        assert_eq!(Explained::new("GET a").to_string(), "GET a");
        let both = Explained::new("x").with_values(&[Value::Int(1)]).followed_by("then y");
        assert_eq!(both.to_string(), "x\nvalues: 1\nthen y");
    }
}
