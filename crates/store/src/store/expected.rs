//! What must be under a key for a conditional write to take place.

use crate::record::{Document, Value};

/// What must be under a key for a conditional write to take place
/// ([`Store::put_if`](super::Store::put_if), [`Store::remove_if`](super::Store::remove_if)).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Expected {
    /// No record has the key.
    Absent,
    /// The record's top-level field of this name is this text, byte for byte. A number, or another kind of value, is no
    /// text.
    Field {
        /// The name of the field.
        name: String,
        /// The text.
        text: String,
    },
}

impl Expected {
    /// The field of this name is this text.
    pub fn field(name: impl Into<String>, text: impl Into<String>) -> Expected {
        Expected::Field { name: name.into(), text: text.into() }
    }

    /// Whether this is what is under a key.
    pub fn fits(&self, record: Option<&Document>) -> bool {
        match (self, record) {
            (Expected::Absent, record) => record.is_none(),
            (Expected::Field { .. }, None) => false,
            (Expected::Field { name, text }, Some(record)) => {
                matches!(record.get(name), Some(Value::Text(is)) if is == text)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_text_is_expected() {
        let of = |value: Value| Document::from_iter([("rev", value)]);
        let expected = Expected::field("rev", "7");
        assert!(expected.fits(Some(&of("7".into()))));
        for other in [Value::Int(7), Value::Null, "7 ".into(), Value::Bytes(b"7".to_vec())] {
            assert!(!expected.fits(Some(&of(other))));
        }
        assert!(!expected.fits(Some(&Document::new())) && !expected.fits(None));
        assert!(Expected::Absent.fits(None) && !Expected::Absent.fits(Some(&Document::new())));
    }
}
