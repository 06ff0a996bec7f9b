//! By which key a record is to be found in the store it is copied to.

use std::{fmt, str::FromStr};

use super::select::Path;
use crate::{
    Error, Result,
    format::has_marc_shape,
    marc::{Record, RecordRef},
    record::{self, Document, Value},
    store::{Key, query},
};

/// Where keys come from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum KeyRule {
    /// From a store: as they are there. From a file: the field `_key`; else `001` of MARC records,
    /// in whatever format, and of other records where they lie in their file. Copying again finds
    /// the same keys.
    #[default]
    Usual,
    /// From this part of the record: `001`, `035a`, `id`, `customer.number`.
    Field(Path),
    /// A fresh one for each record.
    Fresh,
}

impl FromStr for KeyRule {
    type Err = Error;
    fn from_str(text: &str) -> Result<KeyRule> {
        text.parse().map(KeyRule::Field)
    }
}

/// As `--key` takes it, where it does.
impl fmt::Display for KeyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyRule::Usual => f.write_str("as usual"),
            KeyRule::Field(path) => path.fmt(f),
            KeyRule::Fresh => f.write_str("fresh"),
        }
    }
}

/// The control number of a MARC record.
const CONTROL_NUMBER: &str = "001";

impl KeyRule {
    /// The key of a record on its way into a store, whose field `_key` is taken out; none where it has none.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) where the field asked for is not there, or can be no key.
    pub fn take(&self, record: &mut Document) -> Result<Option<Key>> {
        let own = take_key(record);
        if let (Some(key), true) = (own, self.is_own()) {
            return key.map(Some);
        }
        let marc = match has_marc_shape(record) {
            true => record::from_value::<Record>(Value::Map(record.clone())).ok(),
            false => None,
        };
        match (self, self.given_by(record, marc.as_ref().map(Record::as_ref))) {
            // Not every MARC record has a number.
            (KeyRule::Usual, given) => Ok(given.and_then(Result::ok)),
            (_, given) => given.transpose(),
        }
    }

    /// Whether a record that has a key keeps it.
    pub(super) fn is_own(&self) -> bool {
        match self {
            KeyRule::Usual => true,
            KeyRule::Field(path) => path.as_str() == query::Path::KEY,
            KeyRule::Fresh => false,
        }
    }

    /// The key of a MARC record.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) where it has none.
    pub(super) fn of_marc(&self, record: RecordRef<'_>) -> Result<Key> {
        let text = match self {
            KeyRule::Fresh => return Ok(Key::fresh()),
            KeyRule::Usual => {
                let field = record.field(*b"001");
                field.map(|field| String::from_utf8_lossy(field.bytes()).trim().to_owned())
            }
            KeyRule::Field(path) => path.first_text(record)?.map(|text| text.trim().to_owned()),
        };
        let path = match self {
            KeyRule::Field(path) => path.as_str(),
            _ => CONTROL_NUMBER,
        };
        match text.filter(|text| !text.is_empty()) {
            Some(text) => Key::new(text),
            None => {
                let hint = "--key FIELD names the field with the key";
                Err(Error::invalid(format!("no {path} for the key")).with_hint(hint))
            }
        }
    }

    /// The key of a document of a file, which came from `offset` in it. `marc` is the same as a
    /// MARC record, where it is one.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) where the field has none.
    pub(super) fn of_document(
        &self,
        document: &Document,
        marc: Option<RecordRef<'_>>,
        offset: u64,
    ) -> Result<Key> {
        match (self.given_by(document, marc), self) {
            (Some(key), _) => key,
            (None, KeyRule::Fresh) => Ok(Key::fresh()),
            // As wide as offsets get, so that keys sort as the file does.
            (None, _) => Key::new(format!("@{offset:014}")),
        }
    }

    /// The key that the fields of a document give, without its field `_key`; none where the rule
    /// does not look at fields.
    pub(super) fn given_by(
        &self,
        document: &Document,
        marc: Option<RecordRef<'_>>,
    ) -> Option<Result<Key>> {
        match (self, marc) {
            (KeyRule::Fresh, _) | (KeyRule::Usual, None) => None,
            (KeyRule::Usual, Some(record)) => Some(self.of_marc(record)),
            // A path such as `leader` is a document's only.
            (KeyRule::Field(path), Some(record)) if path.first_text(record).is_ok() => {
                Some(self.of_marc(record))
            }
            (KeyRule::Field(path), _) => Some(in_field(path, document)),
        }
    }
}

fn in_field(path: &Path, document: &Document) -> Result<Key> {
    let name = path.as_str();
    match path.first_value(document) {
        None | Some(Value::Null) => Err(Error::invalid(format!("no field {name:?} for the key"))),
        Some(value) => Key::of_value(value, name),
    }
}

/// Takes the field `_key` out of a document of a file, where the key of its record lies. A second
/// field of that name is the record's own.
///
/// # Errors
/// [`Invalid`](crate::ErrorKind::Invalid) where it can be no key.
pub(super) fn take_key(document: &mut Document) -> Option<Result<Key>> {
    document.remove(query::Path::KEY).map(|value| Key::of_value(&value, query::Path::KEY))
}

/// The document as files have it: its key first, under the name that [`take_key`] looks for.
pub(super) fn with_key(key: &Key, document: Document) -> Document {
    let mut keyed = Document::with_capacity(document.len() + 1);
    keyed.push(query::Path::KEY, key.as_str());
    for (name, value) in document {
        keyed.push(name, value);
    }
    keyed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marc::Record;

    #[test]
    fn keys_are_found() {
        let mut record = Record::new();
        record.push_plain(*b"001", b" 42 ").unwrap();
        record.push_data(*b"035", *b"  ", &[(b'a', b"(DE-1)7")]).unwrap();
        let of = |rule: &KeyRule| rule.of_marc(record.as_ref()).map(|key| key.to_string());
        assert_eq!(of(&KeyRule::Usual).unwrap(), "42");
        assert_eq!(of(&"035a".parse().unwrap()).unwrap(), "(DE-1)7");
        let error = of(&"020a".parse().unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "no 020a for the key");
        assert!(error.hint().is_some_and(|hint| hint.contains("--key")));

        let document = Document::from_iter([("id", Value::Int(7)), ("n", Value::Null)]);
        let of = |rule: &KeyRule| rule.of_document(&document, None, 5).map(|key| key.to_string());
        assert_eq!(of(&"id".parse().unwrap()).unwrap(), "7");
        assert_eq!(of(&KeyRule::Usual).unwrap(), "@00000000000005");
        for (field, want) in [("name", "no field"), ("n", "no field"), ("001", "no field")] {
            let error = of(&field.parse().unwrap()).unwrap_err();
            assert!(error.to_string().contains(want), "{field}: {error}");
        }
        let marc = Some(record.as_ref());
        for (rule, want) in [("id", "7"), ("035a", "(DE-1)7")] {
            let key = rule.parse::<KeyRule>().unwrap().of_document(&document, marc, 5).unwrap();
            assert_eq!(key.as_str(), want);
        }
        assert_eq!(KeyRule::Usual.of_document(&document, marc, 5).unwrap().as_str(), "42");
    }

    #[test]
    fn the_key_in_a_file_is_the_first_field_of_its_name() {
        let own = Document::from_iter([("a", Value::Int(1)), ("_key", Value::Null)]);
        let mut document = with_key(&Key::new("k").unwrap(), own.clone());
        assert_eq!(document.iter().next().unwrap().0, "_key");
        assert_eq!(take_key(&mut document).unwrap().unwrap().as_str(), "k");
        assert_eq!(document, own);
        assert!(take_key(&mut document).unwrap().is_err(), "null is no key");
        assert!(take_key(&mut document).is_none());
    }
}
