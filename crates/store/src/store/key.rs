//! The keys of records.

use std::{fmt, ops::Deref};

use crate::{
    Error, Result,
    record::{Document, Value},
};

/// The key of a record: text of at least one byte. How long it may be, and which characters a store
/// refuses, each store says ([`Store::check`](super::Store::check)).
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(Box<str>);

impl Key {
    /// A key of this text.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) where it is empty.
    pub fn new(text: impl Into<Box<str>>) -> Result<Key> {
        let text = text.into();
        match text.is_empty() {
            true => Err(Error::invalid("an empty key; a key has at least one character")),
            false => Ok(Key(text)),
        }
    }

    /// A key nobody else has: a UUID of version 7 (RFC 9562), so that later keys sort after earlier
    /// ones, which indexes like.
    pub fn fresh() -> Key {
        Key(uuid::Uuid::now_v7().to_string().into())
    }

    /// The key that a field of a record holds: text, or a whole number in decimal digits.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) where the field is missing or is neither.
    pub fn of(record: &Document, field: &str) -> Result<Key> {
        match record.get(field) {
            Some(value) => Key::of_value(value, field),
            None => Err(Error::invalid(format!("no field {field:?} for the key"))),
        }
    }

    /// The key that this value of a field is, as [`of`](Key::of) takes it.
    pub(crate) fn of_value(value: &Value, field: &str) -> Result<Key> {
        match value {
            Value::Text(text) => Key::new(text.as_str()),
            Value::Int(n) => Key::new(n.to_string()),
            Value::BigInt(digits) => Key::new(digits.clone()),
            other => {
                let kind = other.kind().one();
                Err(Error::invalid(format!("{field:?} is {kind}; a key is text or a whole number")))
            }
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The key as messages show it: quoted, and cut where it is long.
    pub fn shown(&self) -> String {
        const SHOWN: usize = 60;
        match self.0.char_indices().nth(SHOWN) {
            None => format!("{:?}", &*self.0),
            Some((end, _)) => format!("{:?}… ({} bytes)", &self.0[..end], self.0.len()),
        }
    }
}

impl Deref for Key {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::str::FromStr for Key {
    type Err = Error;
    fn from_str(text: &str) -> Result<Key> {
        Key::new(text)
    }
}

/// Keys from one, included, up to another, not included, in the order of their UTF-8 bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyRange {
    /// The first key; none is the least there is.
    pub from: Option<Key>,
    /// The key after the last; none is after all.
    pub until: Option<Key>,
}

impl KeyRange {
    /// All keys.
    pub fn all() -> KeyRange {
        KeyRange::default()
    }

    /// Whether this is all keys.
    pub fn is_all(&self) -> bool {
        self.from.is_none() && self.until.is_none()
    }

    /// Whether the key lies in it.
    pub fn contains(&self, key: &Key) -> bool {
        self.from.as_ref().is_none_or(|from| from <= key)
            && self.until.as_ref().is_none_or(|until| key < until)
    }

    /// The ranges between these borders, which are in order.
    pub fn between(borders: Vec<Key>) -> Vec<KeyRange> {
        let mut ranges = Vec::with_capacity(borders.len() + 1);
        let mut from = None;
        for border in borders {
            let until = Some(border.clone());
            ranges.push(KeyRange { from: from.replace(border), until });
        }
        ranges.push(KeyRange { from, until: None });
        ranges
    }
}

/// So many ranges, cut at these borders, which are in order and fewer than the ranges. Where they
/// are too few, the last range with anything in it is followed by some with next to nothing.
pub(super) fn padded(mut borders: Vec<Key>, parts: u32) -> Vec<KeyRange> {
    let last = borders.last().map_or("", Key::as_str).to_owned();
    let missing = (parts as usize).saturating_sub(borders.len() + 1);
    borders.extend((0..missing).map(|i| Key(format!("{last}\0{i:010}").into())));
    KeyRange::between(borders)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_from_fields() {
        let record = Document::from_iter([("id", Value::Int(7)), ("ok", Value::Bool(true))]);
        assert_eq!(Key::of(&record, "id").unwrap().as_str(), "7");
        for (field, want) in [("ok", "is a bool"), ("no", "no field \"no\"")] {
            let error = Key::of(&record, field).unwrap_err();
            assert!(error.to_string().contains(want), "{error}");
        }
        assert!(Key::new("").is_err());
        assert!(Key::fresh() < Key::fresh());
    }

    #[test]
    fn ranges_between_borders_hold_every_key_once() {
        let key = |text: &str| Key::new(text).unwrap();
        let ranges = KeyRange::between(vec![key("b"), key("d")]);
        for (text, at) in [("a", 0), ("b", 1), ("c\u{10ffff}", 1), ("d", 2), ("z", 2)] {
            let found: Vec<_> = (0..3).filter(|&i| ranges[i].contains(&key(text))).collect();
            assert_eq!(found, [at], "{text}");
        }
    }

    #[test]
    fn too_few_borders_make_ranges_that_hold_every_key_once_too() {
        let key = |text: &str| Key::new(text).unwrap();
        for borders in [vec![], vec![key("b")], vec![key("b"), key("c")]] {
            let ranges = padded(borders, 4);
            assert_eq!(ranges.len(), 4);
            for text in ["\0", "a", "b", "b\0", "b\u{0}0", "c", "c\0", "z"] {
                let found = ranges.iter().filter(|range| range.contains(&key(text))).count();
                assert_eq!(found, 1, "{text:?} in {ranges:?}");
            }
        }
    }

    #[test]
    fn long_keys_are_cut_in_messages() {
        let shown = Key::new("ü".repeat(1000)).unwrap().shown();
        assert!(shown.len() < 200 && shown.contains("2000 bytes"), "{shown}");
    }
}
