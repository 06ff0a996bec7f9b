//! Records as rows of columns, and back: which value goes where, and what is refused.
//!
//! How a value becomes a cell, each driver says. Its errors begin with what the value does or is (`holds 3
//! bytes, where …`); here they get the names of field and key.

use super::{Described, Fields};
use crate::{
    Error, Result,
    record::{Document, Kind, Value},
    store::Key,
};

/// The error, saying which record it is about, unless it does.
pub(crate) fn about(e: Error, key: &Key) -> Error {
    match e.context().starts_with("key ") {
        true => e,
        false => Error::new(e.kind(), format!("key {}: {}", key.shown(), e.context())),
    }
}

/// What is wrong with a key.
pub(crate) fn of_key(e: Error, key: &Key) -> Error {
    Error::new(e.kind(), format!("key {}: it {}", key.shown(), e.context()))
}

/// What is wrong with a field.
pub(crate) fn of_field(e: Error, name: &str) -> Error {
    Error::new(e.kind(), format!("field {name:?} {}", e.context()))
}

/// The whole number that a key is. It has to be written as numbers are, so that no two keys are one number.
///
/// # Errors
/// [`Invalid`](crate::ErrorKind::Invalid) where it is none.
pub(crate) fn whole(key: &Key) -> Result<i128> {
    let (sign, digits) = match key.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, key.as_str()),
    };
    let plain = match digits.as_bytes() {
        [b'0'] => !sign,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    let number = if plain { key.parse().ok() } else { None };
    number.ok_or_else(|| Error::invalid("is not a whole number, but the key's column is"))
}

impl<C: Described> Fields<C> {
    /// Goes through the columns of a record's row but the key's, which is number 0: each with its number and
    /// its value, null where the record has none.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for a field that has no column, that is there twice, that is
    /// of another kind, or that is the key's and holds another; those of `cell`. They name the field.
    pub(crate) fn write(
        &self,
        key: &Key,
        record: &Document,
        mut cell: impl FnMut(usize, &C, &Value) -> Result<()>,
    ) -> Result<()> {
        let mut used = 0;
        if self.key_is_field
            && let Some(value) = record.get(self.key.name())
        {
            used += 1;
            self.same_key(key, value).map_err(|e| of_field(e, self.key.name()))?;
        }
        for (i, column) in self.body.iter().enumerate() {
            let value = record.get(column.name());
            used += usize::from(value.is_some());
            let value = value.unwrap_or(&Value::Null);
            let written = match column.holds(value.kind()) {
                true => cell(i + 1, column, value),
                false => Err(another(column, value)),
            };
            written.map_err(|e| of_field(e, column.name()))?;
        }
        match used == record.len() {
            true => Ok(()),
            false => Err(self.left(record)),
        }
    }

    /// The field of the key's column has to be what would be read back.
    fn same_key(&self, key: &Key, value: &Value) -> Result<()> {
        let same = match (value, self.key.kind()) {
            (Value::Int(n), Kind::Int | Kind::BigInt) => {
                whole(key).is_ok_and(|whole| whole == i128::from(*n))
            }
            (Value::BigInt(digits), Kind::Int | Kind::BigInt) => **digits == **key,
            (Value::Text(text), Kind::Int) if whole(key).is_err() => **text == **key,
            (_, Kind::Int | Kind::BigInt) => return Err(another(&self.key, value)),
            (Value::Text(text), _) => **text == **key,
            _ => return Err(another(&self.key, value)),
        };
        let kind = value.kind().name();
        match same {
            true => Ok(()),
            false => Err(Error::invalid(format!("is the key's column, and holds another {kind}"))),
        }
    }

    /// What is wrong with a record of more fields than went into columns.
    fn left(&self, record: &Document) -> Error {
        let is_column = |name: &str| {
            (self.key_is_field && name == self.key.name())
                || self.body.iter().any(|column| column.name() == name)
        };
        let names = || record.iter().map(|(name, _)| name);
        if let Some(name) = names().find(|name| !is_column(name)) {
            return Error::invalid(format!("the table has no column for the field {name:?}"));
        }
        let twice = names().enumerate().find(|(i, name)| names().take(*i).any(|n| n == *name));
        of_field(Error::invalid("occurs twice; keep one"), twice.map_or("", |(_, name)| name))
    }

    /// The record of a row. `key` and `cell` read what is in it: the key, and the cell of a column by
    /// its number among those of the body; none where it is null.
    ///
    /// # Errors
    /// Those of `key` and `cell`.
    pub(crate) fn read(
        &self,
        key: impl FnOnce() -> Result<Key>,
        mut cell: impl FnMut(usize, &C) -> Result<Option<Value>>,
    ) -> Result<Document> {
        let mut record = Document::with_capacity(self.body.len() + 1);
        if self.key_is_field {
            let key = key()?;
            let number = match self.key.kind() {
                Kind::Int | Kind::BigInt => key.parse().ok().map(Value::from_integer),
                _ => None,
            };
            let value = number.unwrap_or_else(|| Value::from(key.as_str()));
            record.push(self.key.name().to_owned(), value);
        }
        for (i, column) in self.body.iter().enumerate() {
            if let Some(value) = cell(i, column)? {
                record.push(column.name().to_owned(), value);
            }
        }
        Ok(record)
    }
}

/// The error for a value of another kind than its column.
fn another(column: &impl Described, value: &Value) -> Error {
    let (is, holds) = (value.kind().one(), column.kind().name());
    Error::invalid(format!("is {is}, but its column holds {holds}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::Shape;

    #[test]
    fn keys_are_whole_numbers_as_they_are_written() {
        let most = i128::from(u64::MAX);
        for (text, number) in [("0", 0), ("7", 7), ("-7", -7), ("18446744073709551615", most)] {
            assert_eq!(whole(&Key::new(text).unwrap()).unwrap(), number);
        }
        for text in ["07", "+7", "-0", "-", "7 ", " 7", "7.0", "x", "1e3", "--1", &"9".repeat(40)] {
            assert!(whole(&Key::new(text).unwrap()).is_err(), "{text}");
        }
    }

    #[test]
    fn cells_have_the_number_of_their_column() {
        let (key, body) = (("id", true), vec![("a", false), ("b", false)]);
        let fields = Fields { shape: Shape::Columns, key, key_is_field: true, body };
        let record = Document::from_iter([("b", "x"), ("id", "k")]);
        let mut seen = Vec::new();
        let key = Key::new("k").unwrap();
        let done = fields.write(&key, &record, |i, column, value| {
            seen.push((i, column.0, value.clone()));
            Ok(())
        });
        done.unwrap();
        assert_eq!(seen, [(1, "a", Value::Null), (2, "b", Value::from("x"))]);
        let back = fields.read(|| Ok(key.clone()), |i, _| Ok(Some(seen[i].2.clone()))).unwrap();
        assert_eq!(back.get("id"), Some(&Value::from("k")));
        assert_eq!(back.get("b"), Some(&Value::from("x")));
    }

    proptest! {
        #[test]
        fn a_whole_number_is_its_own_text(number: i64) {
            let key = Key::new(number.to_string()).unwrap();
            prop_assert_eq!(whole(&key).unwrap(), i128::from(number));
            let other = Key::new(format!("0{number}")).unwrap();
            prop_assert!(whole(&other).is_err());
        }
    }
}
