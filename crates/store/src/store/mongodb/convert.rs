//! Records as BSON documents, and back.
//!
//! Every kind of value is BSON's own: whole numbers have 64 bits, bytes are generic Binary, times
//! are dates with milliseconds, decimals are Decimal128. What BSON cannot hold exactly is refused
//! before anything is written. Kinds that only MongoDB has (object ids, regular expressions ...)
//! are maps in the words of its Extended JSON (`{"$oid": "..."}`), in both directions.

use bson::{
    Bson, RawDocument, RawDocumentBuf,
    raw::{CStr, RawArrayBuf, RawBsonRef},
    spec::BinarySubtype,
};

use super::{MAX_DOCUMENT, MAX_KEY};
use crate::{
    Error, ErrorKind, Result,
    format::Format,
    record::{self, Document, Time, Value},
    store::{Key, Row},
};

/// The field that is the key.
pub(super) const ID: &str = "_id";
/// How deep documents may nest, themselves counted: MongoDB's own limit.
pub(super) const LEVELS: usize = 100;

/// What is wrong with a value, and the names that lead to it, the innermost first.
struct Trouble {
    kind: ErrorKind,
    what: String,
    names: Vec<String>,
}

impl Trouble {
    fn new(kind: ErrorKind, what: impl Into<String>) -> Trouble {
        Trouble { kind, what: what.into(), names: Vec::new() }
    }

    fn inside(mut self, name: impl Into<String>) -> Trouble {
        self.names.push(name.into());
        self
    }

    fn of(mut self, key: &Key) -> Error {
        self.names.reverse();
        let field = match self.names.is_empty() {
            true => String::new(),
            false => format!("field {:?}: ", self.names.join(".")),
        };
        Error::new(self.kind, format!("key {}: {field}{}", key.shown(), self.what))
    }
}

/// Whether a key can be an `_id`.
pub(super) fn check_key(key: &Key) -> Result<()> {
    match key.len() {
        len if len > MAX_KEY => Err(Error::invalid(format!(
            "key {}: {len} bytes; the limit of MongoDB is {MAX_KEY}",
            key.shown()
        ))),
        _ => Ok(()),
    }
}

/// A row as the document that is stored: its key as `_id`, then its fields.
pub(super) fn document(row: &Row) -> Result<RawDocumentBuf> {
    check_key(&row.key)?;
    let mut document = RawDocumentBuf::new();
    document.append(bson::raw::cstr!("_id"), row.key.as_str());
    for (name, value) in row.record.iter() {
        if name == ID {
            // It is there already.
            if value.as_str() != Some(row.key.as_str()) {
                let what = "its _id is not its key; in MongoDB they are the same";
                return Err(Trouble::new(ErrorKind::Invalid, what).of(&row.key));
            }
            continue;
        }
        field(&mut document, name, value, 1).map_err(|trouble| trouble.of(&row.key))?;
    }
    check_size(&row.key, document.as_bytes().len())?;
    Ok(document)
}

/// Whether a document of so many bytes can be stored.
pub(super) fn check_size(key: &Key, bytes: usize) -> Result<()> {
    match bytes {
        bytes if bytes > MAX_DOCUMENT => Err(Error::new(
            ErrorKind::TooLarge,
            format!(
                "key {}: {bytes} bytes as BSON; the limit of MongoDB is {MAX_DOCUMENT}",
                key.shown()
            ),
        )),
        _ => Ok(()),
    }
}

fn field(
    document: &mut RawDocumentBuf,
    name: &str,
    value: &Value,
    level: usize,
) -> Result<(), Trouble> {
    let refused = |what: &str| Trouble::new(ErrorKind::Invalid, what).inside(name);
    let own = <&CStr>::try_from(name)
        .map_err(|_| refused("a name with a NUL in it, which BSON cannot have"))?;
    if name.starts_with('$') {
        return Err(refused("a name that begins with $, which MongoDB keeps for its operators"));
    }
    append(value, level, To::Field(document, own)).map_err(|t| t.inside(name))
}

/// Where a value goes.
enum To<'a> {
    Field(&'a mut RawDocumentBuf, &'a CStr),
    List(&'a mut RawArrayBuf),
}

/// Writes a value as BSON.
fn append(value: &Value, level: usize, to: To<'_>) -> Result<(), Trouble> {
    let to = |value: RawBsonRef<'_>| match to {
        To::Field(document, name) => document.append(name, value),
        To::List(list) => list.push(value),
    };
    match value {
        Value::Null => to(RawBsonRef::Null),
        Value::Bool(v) => to(RawBsonRef::Boolean(*v)),
        Value::Int(v) => to(RawBsonRef::Int64(*v)),
        Value::Float(v) => to(RawBsonRef::Double(*v)),
        Value::Text(v) => to(RawBsonRef::String(v)),
        Value::Bytes(bytes) => to(RawBsonRef::Binary(bson::raw::RawBinaryRef {
            subtype: BinarySubtype::Generic,
            bytes,
        })),
        Value::Time(v) => to(RawBsonRef::DateTime(date(*v).ok_or_else(|| {
            let what = format!("{v} is finer than a millisecond, the precision of MongoDB's dates");
            Trouble::new(ErrorKind::Unsupported, what)
        })?)),
        // The crate refuses to round, so what it takes is exact.
        Value::Decimal(digits) => to(RawBsonRef::Decimal128(digits.parse().map_err(|_| {
            let what = "a decimal of more than MongoDB's 34 digits, or out of its range";
            Trouble::new(ErrorKind::Unsupported, what)
        })?)),
        Value::BigInt(_) => {
            let what = "a whole number beyond 64 bits, which MongoDB cannot hold";
            return Err(Trouble::new(ErrorKind::Unsupported, what));
        }
        Value::List(items) => {
            let level = deeper(level)?;
            let mut list = RawArrayBuf::new();
            for (i, item) in items.iter().enumerate() {
                append(item, level, To::List(&mut list)).map_err(|t| t.inside(i.to_string()))?;
            }
            to(RawBsonRef::Array(&list));
        }
        Value::Map(map) => {
            let level = deeper(level)?;
            if let Some(own) = extended(map) {
                let mut holder = RawDocumentBuf::new();
                let raw = bson::RawBson::try_from(own)
                    .map_err(|e| Trouble::new(ErrorKind::Invalid, e.to_string()))?;
                holder.append(bson::raw::cstr!("v"), raw);
                if let Some(Ok((_, value))) = holder.iter().next() {
                    to(value);
                }
                return Ok(());
            }
            let mut inner = RawDocumentBuf::new();
            for (name, value) in map.iter() {
                field(&mut inner, name, value, level)?;
            }
            to(RawBsonRef::Document(&inner));
        }
    }
    Ok(())
}

fn deeper(level: usize) -> Result<usize, Trouble> {
    match level < LEVELS {
        true => Ok(level + 1),
        false => {
            let what = format!("nested deeper than {LEVELS} levels, which is MongoDB's limit");
            Err(Trouble::new(ErrorKind::TooLarge, what))
        }
    }
}

/// A time as BSON has it, if it has.
fn date(time: Time) -> Option<bson::DateTime> {
    let (millis, rest) = millis(time);
    (rest == 0).then_some(millis)
}

/// The last moment that BSON has up to this time, and the nanoseconds after it.
pub(super) fn millis(time: Time) -> (bson::DateTime, u32) {
    let (seconds, nanoseconds) = time.to_unix();
    let millis = seconds * 1000 + i64::from(nanoseconds / 1_000_000);
    (bson::DateTime::from_millis(millis), nanoseconds % 1_000_000)
}

/// What a map in the words of Extended JSON stands for, where reading that gives this map again.
fn extended(map: &Document) -> Option<Bson> {
    if !map.iter().next()?.0.starts_with('$') {
        return None;
    }
    let own = record::from_value(Value::Map(map.clone())).ok()?;
    if matches!(own, Bson::Document(_)) {
        return None;
    }
    let mut holder = RawDocumentBuf::new();
    holder.append(bson::raw::cstr!("v"), bson::RawBson::try_from(own.clone()).ok()?);
    let again = own_kind(&holder).ok()?;
    (again.as_map() == Some(map)).then_some(own)
}

/// The key and the fields of a document that is stored.
pub(super) fn row(document: &RawDocument) -> Result<Row> {
    let mut key = None;
    let mut record = Document::with_capacity(16);
    for element in document.iter() {
        let (name, value) = element.map_err(malformed)?;
        match name.as_str() {
            ID => key = Some(id(value)?),
            name => record.push(name, read(value, 1)?),
        }
    }
    let key = key.ok_or_else(|| Error::malformed("a document without an _id"))?;
    Ok(Row { key, record })
}

/// The key that an `_id` is.
pub(super) fn id(value: RawBsonRef<'_>) -> Result<Key> {
    match value {
        RawBsonRef::String(text) => Key::new(text),
        other => Err(Error::unsupported(format!(
            "a document whose _id is of BSON type {:?}; keys are text",
            other.element_type()
        ))),
    }
}

/// A value of a document.
pub(super) fn read(value: RawBsonRef<'_>, level: usize) -> Result<Value> {
    if level > crate::format::DEPTH {
        return Err(Error::malformed(format!("nested deeper than {level} levels")));
    }
    Ok(match value {
        RawBsonRef::Null => Value::Null,
        RawBsonRef::Boolean(v) => Value::Bool(v),
        RawBsonRef::Int32(v) => Value::Int(v.into()),
        RawBsonRef::Int64(v) => Value::Int(v),
        RawBsonRef::Double(v) => Value::Float(v),
        RawBsonRef::String(v) => Value::from(v),
        RawBsonRef::Binary(v) if v.subtype == BinarySubtype::Generic => {
            Value::Bytes(v.bytes.to_vec())
        }
        RawBsonRef::Decimal128(v) => Value::Decimal(v.to_string().into()),
        RawBsonRef::Document(v) => {
            let mut map = Document::with_capacity(8);
            for element in v.iter() {
                let (name, value) = element.map_err(malformed)?;
                map.push(name.as_str(), read(value, level + 1)?);
            }
            Value::Map(map)
        }
        RawBsonRef::Array(v) => {
            let mut list = Vec::new();
            for item in v {
                list.push(read(item.map_err(malformed)?, level + 1)?);
            }
            Value::List(list)
        }
        other => {
            let mut holder = RawDocumentBuf::new();
            holder.append(bson::raw::cstr!("v"), other);
            own_kind(&holder)?
        }
    })
}

/// The value under `v` as the format reads it: times, and what only MongoDB has.
fn own_kind(holder: &RawDocumentBuf) -> Result<Value> {
    let mut holder: Document = Format::Bson.decode_document(holder.as_bytes())?;
    holder.remove("v").ok_or_else(|| Error::malformed("a document that lost its value"))
}

pub(super) fn malformed(e: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::malformed("the server sent invalid BSON").with_source(e)
}

/// A single value of a query.
pub(super) fn literal(value: &Value) -> Result<Bson> {
    Ok(match value {
        Value::Null => Bson::Null,
        Value::Bool(v) => Bson::Boolean(*v),
        Value::Int(v) => Bson::Int64(*v),
        Value::Float(v) => Bson::Double(*v),
        Value::Text(v) => Bson::String(v.clone()),
        Value::Bytes(v) => {
            Bson::Binary(bson::Binary { subtype: BinarySubtype::Generic, bytes: v.clone() })
        }
        Value::Time(v) => Bson::DateTime(millis(*v).0),
        other => {
            let kind = other.kind().one();
            return Err(Error::invalid(format!("a query cannot compare with {kind}")));
        }
    })
}
