//! By which key a record is to be found in the store it is copied to.

use std::str::FromStr;

use super::select::Path;
use crate::{
    Error, Result,
    marc::RecordRef,
    record::{Document, Value},
    store::{Key, query},
};

/// Where keys come from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum KeyRule {
    /// From where the record has one: `001` of MARC records, `_key` of documents; else from where
    /// the record lies in its file. Copying again finds the same keys.
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

/// The control number of a MARC record.
const CONTROL_NUMBER: &str = "001";

impl KeyRule {
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
            KeyRule::Field(path) => path.to_string(),
            _ => CONTROL_NUMBER.into(),
        };
        match text.filter(|text| !text.is_empty()) {
            Some(text) => Key::new(text),
            None => Err(Error::invalid(format!(
                "no {path} to take the key from; say where it is with --key"
            ))),
        }
    }

    /// The key of a document, which came from `offset` in its file. The document has the field
    /// `_key` no longer.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) where the field has none.
    pub(super) fn of_document(&self, document: &mut Document, offset: u64) -> Result<Key> {
        match self {
            KeyRule::Fresh => Ok(Key::fresh()),
            KeyRule::Usual => match document.get(query::Path::KEY) {
                Some(_) => {
                    let key = Key::of(document, query::Path::KEY)?;
                    document.remove(query::Path::KEY);
                    Ok(key)
                }
                // As wide as offsets get, so that keys sort as the file does.
                None => Key::new(format!("@{offset:014}")),
            },
            KeyRule::Field(path) => {
                let value = path.first_value(document).cloned();
                let name = path.to_string();
                let one = Document::from_iter([(name.as_str(), value.unwrap_or(Value::Null))]);
                match one.get(&name) {
                    Some(Value::Null) => {
                        Err(Error::invalid(format!("no field {name:?} to take the key from")))
                    }
                    _ => Key::of(&one, &name),
                }
            }
        }
    }
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
        assert!(of(&"020a".parse().unwrap()).unwrap_err().to_string().contains("--key"));

        let mut document = Document::from_iter([("id", Value::Int(7)), ("_key", "k".into())]);
        let field: KeyRule = "id".parse().unwrap();
        assert_eq!(field.of_document(&mut document, 5).unwrap().as_str(), "7");
        assert_eq!(KeyRule::Usual.of_document(&mut document, 5).unwrap().as_str(), "k");
        assert_eq!(
            KeyRule::Usual.of_document(&mut document, 5).unwrap().as_str(),
            "@00000000000005"
        );
        let missing: KeyRule = "name".parse().unwrap();
        assert!(missing.of_document(&mut document, 5).is_err());
    }
}
