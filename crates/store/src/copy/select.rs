//! Which fields of a record go along (`--fields`), and where its key is (`--key`).

use std::{fmt, str::FromStr};

use crate::{
    Error, Result,
    marc::{self, Content, FieldRef, Record, RecordRef},
    record::{Document, Value},
};

/// A part of a record: of MARC records a [`marc::Path`]; of documents a name, or names with dots
/// (`address.city`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    text: String,
    /// The same read as a MARC path; none where it cannot be one.
    marc: Option<marc::Path>,
}

impl Path {
    /// As it was written.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it can name a part of MARC records.
    pub(super) fn is_marc(&self) -> bool {
        self.marc.is_some()
    }

    fn marc(&self) -> Result<&marc::Path> {
        match &self.marc {
            Some(path) => Ok(path),
            // Once more, for the error.
            None => Err(self.text.parse::<marc::Path>().err().unwrap_or_else(|| {
                Error::invalid(format!("{:?} is not a path into a MARC record", self.text))
            })),
        }
    }

    /// The first text of a MARC record that the path names.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) where the path names no part of a MARC record.
    pub(super) fn first_text(&self, record: RecordRef<'_>) -> Result<Option<String>> {
        let (path, mut first) = (self.marc()?, None);
        path.parts(record, |bytes| {
            first = path.cut(&String::from_utf8_lossy(bytes)).map(str::to_owned);
            first.is_some()
        });
        Ok(first)
    }

    /// The first value of a document that the path names.
    pub(super) fn first_value<'d>(&self, document: &'d Document) -> Option<&'d Value> {
        // A name may have dots of its own.
        if let Some(value) = document.get(&self.text) {
            return Some(value);
        }
        let mut names = self.text.split('.');
        let mut value = document.get(names.next()?)?;
        for name in names {
            value = value.as_map()?.get(name)?;
        }
        Some(value)
    }

    /// Calls `each` with every value of `document` that the path names, until it says enough.
    fn values(&self, document: &Document, each: &mut dyn FnMut(&Value) -> bool) -> bool {
        fn walk(map: &Document, path: &str, each: &mut dyn FnMut(&Value) -> bool) -> bool {
            // A name may have dots of its own.
            if let Some(value) = map.get(path) {
                return match value {
                    Value::List(list) => list.iter().any(each),
                    value => each(value),
                };
            }
            let Some((head, rest)) = path.split_once('.') else { return false };
            match map.get(head) {
                Some(Value::Map(map)) => walk(map, rest, each),
                Some(Value::List(list)) => {
                    list.iter().filter_map(Value::as_map).any(|map| walk(map, rest, each))
                }
                _ => false,
            }
        }
        walk(document, &self.text, each)
    }
}

impl FromStr for Path {
    type Err = Error;
    fn from_str(text: &str) -> Result<Path> {
        match text.trim() {
            "" => Err(Error::invalid("an empty field name")),
            text => Ok(Path { text: text.to_owned(), marc: text.parse().ok() }),
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The parts of a record that are kept, in the order given: `245a,100,6XX`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fields(Vec<Path>);

impl FromStr for Fields {
    type Err = Error;
    fn from_str(text: &str) -> Result<Fields> {
        let paths: Vec<Path> = text.split(',').map(str::parse).collect::<Result<_>>()?;
        let twice = (1..paths.len()).find(|&i| paths[..i].contains(&paths[i]));
        match twice {
            Some(i) => Err(Error::invalid(format!("{:?} is named twice", paths[i].text))),
            None => Ok(Fields(paths)),
        }
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(|path| &*path.text).collect();
        f.write_str(&names.join(","))
    }
}

impl Fields {
    pub(super) fn paths(&self) -> &[Path] {
        &self.0
    }

    /// Sees that all of them can be parts of MARC records.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) where one cannot.
    pub fn check_marc(&self) -> Result<()> {
        self.0.iter().try_for_each(|path| path.marc().map(drop))
    }

    /// What is kept of a MARC record: its leader, and the fields and subfields named, in its order.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) where a path names no part of a MARC record.
    pub fn keep_marc(&self, record: RecordRef<'_>, kept: &mut Record) -> Result<()> {
        let paths: Vec<&marc::Path> = self.0.iter().map(Path::marc).collect::<Result<_>>()?;
        kept.clear();
        kept.set_leader(record.leader());
        let mut bytes = Vec::new();
        // How many fields each path has matched, and whether it means this one.
        let mut met: Vec<(usize, bool)> = vec![(0, false); paths.len()];
        for field in record.fields() {
            for (path, (count, is)) in paths.iter().zip(&mut met) {
                *is = path.matches(field.tag());
                *count += usize::from(*is);
                *is &= path.takes_nth(*count);
            }
            let of_field = || paths.iter().zip(&met).filter(|(_, (_, is))| *is).map(|(p, _)| p);
            if of_field().any(|p| p.codes().is_none()) {
                kept.push_bytes(field.tag(), field.bytes())?;
            } else if of_field().next().is_some() {
                let wanted = |code: &[u8]| matches!(code, [c] if of_field().any(|p| p.codes().is_some_and(|codes| codes.contains(c))));
                if some_subfields(field, wanted, &mut bytes) {
                    kept.push_bytes(field.tag(), &bytes)?;
                }
            }
        }
        Ok(())
    }

    /// A MARC record as a row: a column for each path, repeats joined by ` | `.
    ///
    /// # Errors
    /// As [`keep_marc`](Self::keep_marc).
    pub fn row(&self, record: RecordRef<'_>) -> Result<Document> {
        let mut row = Document::with_capacity(self.0.len());
        for path in &self.0 {
            let mut cell = String::new();
            let named = path.marc()?;
            named.parts(record, |bytes| {
                if let Some(text) = named.cut(&String::from_utf8_lossy(bytes)) {
                    cell += if cell.is_empty() { "" } else { " | " };
                    cell += text;
                }
                false
            });
            row.push(path.to_string(), cell);
        }
        Ok(row)
    }

    /// What is kept of a document, under the names asked for.
    pub fn keep(&self, document: &Document) -> Document {
        let mut kept = Document::with_capacity(self.0.len());
        for path in &self.0 {
            if let Some(value) = document.get(&path.text) {
                kept.push(path.text.clone(), value.clone());
                continue;
            }
            let mut values = Vec::new();
            path.values(document, &mut |value| {
                values.push(value.clone());
                false
            });
            match values.len() {
                0 => (),
                1 => kept.push(path.text.clone(), values.remove(0)),
                _ => kept.push(path.text.clone(), values),
            }
        }
        kept
    }
}

/// The field's bytes with only the subfields wanted; false where it has none of them.
fn some_subfields(
    field: FieldRef<'_>,
    wanted: impl Fn(&[u8]) -> bool,
    bytes: &mut Vec<u8>,
) -> bool {
    let Content::Data(indicators, subfields) = field.content() else { return false };
    bytes.clear();
    bytes.extend_from_slice(&indicators);
    for subfield in subfields.filter(|s| wanted(s.code)) {
        bytes.push(crate::marc::SUBFIELD);
        bytes.extend_from_slice(subfield.code);
        bytes.extend_from_slice(subfield.value);
    }
    bytes.len() > 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let mut r = Record::new();
        r.push_plain(*b"001", b"42").unwrap();
        r.push_plain(*b"008", b"851231s1985    xx            000 0 eng d").unwrap();
        r.push_data(*b"245", *b"10", &[(b'a', b"Weights"), (b'c', b"me")]).unwrap();
        r.push_data(*b"650", *b" 0", &[(b'a', b"Scales"), (b'x', b"History")]).unwrap();
        r.push_data(*b"650", *b" 0", &[(b'a', b"Hanse")]).unwrap();
        r
    }

    #[test]
    fn fields_of_documents() {
        let inner: Document = [("city", "Lübeck")].into_iter().collect();
        let mut d = Document::new();
        d.insert("age", 95);
        d.insert("address", inner);
        let kept = "address.city,age".parse::<Fields>().unwrap().keep(&d);
        assert_eq!(kept.iter().map(|(n, _)| n).collect::<Vec<_>>(), ["address.city", "age"]);
    }

    #[test]
    fn fields_and_rows() {
        let fields: Fields = "245a,6XX".parse().unwrap();
        let mut kept = Record::new();
        fields.keep_marc(record().as_ref(), &mut kept).unwrap();
        let texts: Vec<_> = kept.as_ref().fields().map(|f| f.to_string()).collect();
        assert_eq!(texts, ["Weights", "Scales History", "Hanse"]);
        for (fields, kept_texts) in [
            ("650[2]", &["Hanse"][..]),
            ("650[1]x,008", &["851231s1985    xx            000 0 eng d", "History"]),
        ] {
            fields.parse::<Fields>().unwrap().keep_marc(record().as_ref(), &mut kept).unwrap();
            let texts: Vec<_> = kept.as_ref().fields().map(|f| f.to_string()).collect();
            assert_eq!(texts, kept_texts, "{fields}");
        }
        let row = "001,650a".parse::<Fields>().unwrap().row(record().as_ref()).unwrap();
        assert_eq!(row.get("650a").unwrap().as_str(), Some("Scales | Hanse"));
    }
}
