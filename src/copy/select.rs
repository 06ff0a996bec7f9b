//! Which records go along (`--where`) and which of their fields (`--fields`).
//!
//! A path names a part of a record. In MARC records: `245` a field, `245a` a subfield, `650ax`
//! several, `6XX` any tag that begins with 6, `008/35-37` positions (from 0), `LDR/06` of the
//! leader. In documents: a name, or names with dots (`address.city`).

use std::{borrow::Cow, fmt, str::FromStr};

use crate::{
    Error, Result,
    marc::{Content, FieldRef, Record, RecordRef},
    record::{Document, Value},
};

/// A part of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    text: String,
    /// The same read as a MARC path; none where it cannot be one.
    marc: Option<MarcPath>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct MarcPath {
    /// `X` stands for any character; `LDR` is the leader.
    tag: [u8; 3],
    /// Subfield codes; none means the whole field.
    codes: Vec<u8>,
    /// Positions of the text, both included.
    positions: Option<(usize, usize)>,
}

impl MarcPath {
    fn parse(text: &str) -> Option<MarcPath> {
        let (field, positions) = match text.split_once('/') {
            None => (text, None),
            Some((field, positions)) => {
                let (from, to) = positions.split_once('-').unwrap_or((positions, positions));
                let range = (from.parse().ok()?, to.parse().ok()?);
                (field, Some(range).filter(|(from, to)| from <= to))
            }
        };
        if text.contains('/') && positions.is_none() {
            return None;
        }
        let (tag, codes) = field.as_bytes().split_first_chunk::<3>()?;
        let tag = tag.map(|b| if b == b'x' { b'X' } else { b });
        // Tags in small letters could be, and are not met; `title` is what somebody hopes for.
        let plain = |b: &u8| b.is_ascii_digit() || b.is_ascii_uppercase();
        (tag.iter().all(plain) && codes.iter().all(u8::is_ascii_graphic)).then(|| MarcPath {
            tag,
            codes: codes.to_vec(),
            positions,
        })
    }

    fn is_leader(&self) -> bool {
        self.tag == *b"LDR"
    }

    fn matches(&self, tag: [u8; 3]) -> bool {
        self.tag.iter().zip(tag).all(|(want, is)| *want == b'X' || *want == is)
    }

    /// Calls `each` with every text of `record` that the path names, until it says enough.
    fn texts(&self, record: RecordRef<'_>, mut each: impl FnMut(Cow<'_, str>) -> bool) -> bool {
        let mut give = |bytes: &[u8]| {
            let bytes = match self.positions {
                None => bytes,
                Some((from, to)) => {
                    bytes.get(from..=to.min(bytes.len().saturating_sub(1))).unwrap_or(&[])
                }
            };
            each(String::from_utf8_lossy(bytes))
        };
        if self.is_leader() {
            return give(&record.leader().0);
        }
        record.fields().filter(|f| self.matches(f.tag())).any(|field| match field.content() {
            Content::Plain(text) => self.codes.is_empty() && give(text),
            Content::Data(_, _) if self.codes.is_empty() => give(field.to_string().as_bytes()),
            Content::Data(_, mut subfields) => {
                subfields.any(|s| matches!(s.code, [c] if self.codes.contains(c)) && give(s.value))
            }
        })
    }
}

impl Path {
    fn marc(&self) -> Result<&MarcPath> {
        self.marc.as_ref().ok_or_else(|| {
            let text = &self.text;
            Error::invalid(format!(
                "{text:?} names no part of a MARC record; write 245, 245a, 6XX, 008/35-37 or LDR/06"
            ))
        })
    }

    /// The first text of a MARC record that the path names.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) where the path names no part of a MARC record.
    pub(super) fn first_text(&self, record: RecordRef<'_>) -> Result<Option<String>> {
        let mut first = None;
        self.marc()?.texts(record, |text| {
            first = Some(text.into_owned());
            true
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
            text => Ok(Path { text: text.to_owned(), marc: MarcPath::parse(text) }),
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Test {
    Exists,
    Absent,
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
    Contains,
    Begins,
}

/// The signs, the longer ones first.
const SIGNS: &[(&str, Test)] = &[
    ("!=", Test::NotEqual),
    ("<=", Test::AtMost),
    (">=", Test::AtLeast),
    ("^=", Test::Begins),
    ("=", Test::Equal),
    ("<", Test::Less),
    (">", Test::Greater),
    ("~", Test::Contains),
];

/// A condition on a record: `age>=90`, `650a~Scales`, `008/35-37=eng`, `880` (is there), `!880`.
///
/// Signs: `=` `!=` `<` `<=` `>` `>=`, `~` contains, `^=` begins with. Numbers compare as numbers if
/// both sides are, else text compares by its characters. A part that is there several times fits
/// if any of them does; `!=` fits if none is equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    path: Path,
    test: Test,
    value: String,
}

impl FromStr for Condition {
    type Err = Error;
    fn from_str(text: &str) -> Result<Condition> {
        let found = SIGNS
            .iter()
            .filter_map(|(sign, test)| text.find(sign).map(|at| (at, sign.len(), *test)))
            .min_by_key(|(at, length, _)| (*at, usize::MAX - length));
        let (path, test, value) = match found {
            Some((at, length, test)) => (&text[..at], test, text[at + length..].trim()),
            None => match text.strip_prefix('!') {
                Some(path) => (path, Test::Absent, ""),
                None => (text, Test::Exists, ""),
            },
        };
        let path = path.parse().map_err(|_| {
            Error::invalid(format!("the condition {text:?} names no field; write for example 245a~Scales, age>=90 or !880"))
        })?;
        Ok(Condition { path, test, value: value.to_owned() })
    }
}

impl Condition {
    /// Sees that it can be asked of MARC records.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) where the path names no part of a MARC record.
    pub fn check_marc(&self) -> Result<()> {
        self.path.marc().map(drop)
    }

    /// Looks whether the MARC record fits.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) where the path names no part of a MARC record.
    pub fn fits_marc(&self, record: RecordRef<'_>) -> Result<bool> {
        let path = self.path.marc()?;
        Ok(self.fits(|each| path.texts(record, |text| each(&text))))
    }

    /// Looks whether the document fits.
    pub fn fits_document(&self, document: &Document) -> bool {
        self.fits(|each| self.path.values(document, &mut |value| each(&text_of(value))))
    }

    fn fits(&self, any: impl FnOnce(&mut dyn FnMut(&str) -> bool) -> bool) -> bool {
        let wanted = self.value.as_str();
        match self.test {
            Test::Exists => any(&mut |_| true),
            Test::Absent => !any(&mut |_| true),
            Test::NotEqual => !any(&mut |text| compare(text, wanted).is_eq()),
            Test::Contains => any(&mut |text| text.contains(wanted)),
            Test::Begins => any(&mut |text| text.starts_with(wanted)),
            Test::Equal => any(&mut |text| compare(text, wanted).is_eq()),
            Test::Less => any(&mut |text| compare(text, wanted).is_lt()),
            Test::AtMost => any(&mut |text| compare(text, wanted).is_le()),
            Test::Greater => any(&mut |text| compare(text, wanted).is_gt()),
            Test::AtLeast => any(&mut |text| compare(text, wanted).is_ge()),
        }
    }
}

fn compare(a: &str, b: &str) -> std::cmp::Ordering {
    match (a.trim().parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => a.total_cmp(&b),
        _ => a.cmp(b),
    }
}

/// A value as text, for comparing and for cells of a table.
fn text_of(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Null => Cow::Borrowed(""),
        Value::Text(text) => Cow::Borrowed(text),
        Value::Bool(v) => Cow::Owned(v.to_string()),
        Value::Int(v) => Cow::Owned(v.to_string()),
        Value::Float(v) => Cow::Owned(v.to_string()),
        Value::BigInt(v) | Value::Decimal(v) => Cow::Borrowed(v),
        Value::Time(v) => Cow::Owned(v.to_string()),
        Value::Bytes(v) => Cow::Owned(String::from_utf8_lossy(v).into_owned()),
        // Lists and maps have no text of their own.
        Value::List(_) | Value::Map(_) => Cow::Borrowed("…"),
    }
}

/// The parts of a record that are kept, in the order given: `245a,100,6XX`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fields(Vec<Path>);

impl FromStr for Fields {
    type Err = Error;
    fn from_str(text: &str) -> Result<Fields> {
        text.split(',').map(str::parse).collect::<Result<_>>().map(Fields)
    }
}

impl Fields {
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
        let paths: Vec<&MarcPath> = self.0.iter().map(Path::marc).collect::<Result<_>>()?;
        kept.clear();
        kept.set_leader(record.leader());
        let mut bytes = Vec::new();
        for field in record.fields() {
            let of_field = || paths.iter().filter(|p| p.matches(field.tag()));
            if of_field().any(|p| p.codes.is_empty()) {
                kept.push_bytes(field.tag(), field.bytes())?;
            } else if of_field().next().is_some() {
                let wanted =
                    |code: &[u8]| matches!(code, [c] if of_field().any(|p| p.codes.contains(c)));
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
            path.marc()?.texts(record, |text| {
                cell += if cell.is_empty() { "" } else { " | " };
                cell += &text;
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
    fn conditions_on_marc() {
        for (condition, fits) in [
            ("001=42", true),
            ("001=42.0", true),
            ("001<9", false),
            ("650a=Hanse", true),
            ("650a!=Hanse", false),
            ("6XX~History", true),
            ("650x", true),
            ("650z", false),
            ("!880", true),
            ("008/35-37=eng", true),
            ("008/7-10>=1986", false),
            ("LDR/06=a", true),
            ("245a^=Wei", true),
            ("008/99=x", false),
        ] {
            let parsed: Condition = condition.parse().unwrap();
            assert_eq!(parsed.fits_marc(record().as_ref()).unwrap(), fits, "{condition}");
        }
        for name in ["a.b", "age", "title"] {
            let condition: Condition = format!("{name}=1").parse().unwrap();
            let error = condition.check_marc().unwrap_err();
            assert!(error.to_string().contains(name), "{error}");
            assert!(condition.fits_marc(record().as_ref()).is_err());
        }
    }

    #[test]
    fn conditions_on_documents() {
        let inner: Document = [("city", "Lübeck")].into_iter().collect();
        let mut d = Document::new();
        d.insert("age", 95);
        d.insert("address", inner);
        d.insert("tags", vec![Value::from("a"), Value::from("b")]);
        for (condition, fits) in [
            ("age>=90", true),
            ("age>=100", false),
            ("address.city=Lübeck", true),
            ("tags=b", true),
            ("tags!=b", false),
            ("none", false),
            ("!none", true),
        ] {
            assert_eq!(
                condition.parse::<Condition>().unwrap().fits_document(&d),
                fits,
                "{condition}"
            );
        }
        assert!("=5".parse::<Condition>().is_err());
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
        let row = "001,650a".parse::<Fields>().unwrap().row(record().as_ref()).unwrap();
        assert_eq!(row.get("650a").unwrap().as_str(), Some("Scales | Hanse"));
    }
}
