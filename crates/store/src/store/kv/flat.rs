//! Records as fields of text, for stores whose records are a map of names to bytes: hashes of
//! Redis, tables of Tokyo Cabinet.
//!
//! Every field of the record is a field there, spelled so that other programs can read and compare
//! it: text as it is, numbers in decimal digits, `true` and `false`, times as seconds since 1970
//! with up to nine decimals, nothing for null. What kind of value each is, and their order, is said
//! in one field more, [`KINDS`]: `{"name":"text","age":"int"}`.
//!
//! - Fields that it does not name (another program added them) are text, or bytes where they are
//!   no text; fields that it names and that are gone, are gone; what cannot be read as its kind any
//!   more is text.
//! - Bytes are there as they are, or in Base64 (kind `base64`) where the store's fields are text.
//! - Null and empty text, which Tokyo Cabinet cannot index (it aborts), are no field where fields are
//!   text; the kinds `nothing`, `empty` and `no bytes` say that they are there.
//! - Lists and maps, where the store takes any, are JSON (kind `json`). Those that hold what JSON
//!   has no word for are Ruby's Marshal (kind `marshal`), which keeps all.

use std::collections::HashSet;

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};

use crate::{
    Error, ErrorKind, Result,
    format::Format,
    record::{Document, Kind, Time, Value, number::Exact},
};

/// What an exponent begins with.
const EXPONENT: [char; 2] = ['e', 'E'];

/// The field that says what kinds the others are.
pub(crate) const KINDS: &str = "_kinds";

/// How deep a value may nest.
pub(crate) const LEVELS: usize = 100;

/// A field as a store has it: name and bytes.
pub(crate) type Field = (Vec<u8>, Vec<u8>);

/// What the fields of a store can hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flat {
    /// Any bytes, and any name; else text without NUL, and names that are not empty.
    pub binary: bool,
    /// Lists and maps.
    pub nested: bool,
}

impl Flat {
    /// The fields of a record, the kinds last.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) or [`TooLarge`](ErrorKind::TooLarge), naming the
    /// field and what to do.
    pub(crate) fn write(self, record: &Document) -> Result<Vec<Field>> {
        let mut fields = Vec::with_capacity(record.len() + 1);
        let mut kinds = Document::with_capacity(record.len());
        let mut seen = HashSet::with_capacity(record.len());
        for (name, value) in record.iter() {
            let refuse =
                |what: &str| Error::unsupported(format!("field {name:?} {what}; use ?layout=blob"));
            if name == KINDS {
                return Err(refuse("is where the kinds of the other fields are kept"));
            }
            if !seen.insert(name) {
                return Err(refuse("occurs twice, and the store keeps only one"));
            }
            if !self.binary && (name.is_empty() || name.contains('\0')) {
                return Err(refuse("has a name that is empty or has NUL in it"));
            }
            let (kind, bytes) = self.spelled(value).map_err(|e| {
                let what = format!("field {name:?} {}", e.context());
                Error::new(e.kind(), what).with_source(e)
            })?;
            if !self.binary && bytes.contains(&0) {
                return Err(refuse("is text with a NUL, which ends a column"));
            }
            if bytes.is_empty() && !self.binary {
                kinds.push(name, unwritten(kind));
                continue;
            }
            kinds.push(name, kind);
            fields.push((name.as_bytes().to_vec(), bytes));
        }
        let mut bytes = Vec::new();
        Format::Json.encode(&kinds, &mut bytes)?;
        fields.push((KINDS.into(), bytes));
        Ok(fields)
    }

    /// The word for a value's kind, and how it is spelled.
    fn spelled(self, value: &Value) -> Result<(&'static str, Vec<u8>)> {
        let bytes = match value {
            Value::Null => Vec::new(),
            Value::Bool(v) => v.to_string().into(),
            Value::Int(v) => v.to_string().into(),
            Value::BigInt(digits) | Value::Decimal(digits) => {
                if !self.binary
                    && !Exact::read(digits).is_some_and(|n| {
                        n.whole() + n.fraction() < 18 && !digits.contains(EXPONENT)
                    })
                {
                    let shown: String = digits.chars().take(50).collect();
                    let what = format!(
                        "holds {shown}: decimals of more than 17 digits or with an exponent are out of \
                         order in an index of Tokyo Cabinet; use ?layout=blob"
                    );
                    return Err(Error::unsupported(what));
                }
                digits.as_bytes().to_vec()
            }
            // The fewest digits that mean this number, and no exponent: Tokyo Cabinet reads none.
            Value::Float(v) if !self.binary && v.abs() >= 2f64.powi(63) => {
                let what = format!(
                    "holds {v:e}: numbers of more than 64 bits are out of order in an index of Tokyo \
                     Cabinet; use ?layout=blob"
                );
                return Err(Error::unsupported(what));
            }
            Value::Float(v) => v.to_string().into(),
            Value::Text(text) => text.clone().into(),
            Value::Bytes(bytes) if self.binary => bytes.clone(),
            Value::Bytes(bytes) => return Ok(("base64", BASE64.encode(bytes).into())),
            Value::Time(time) => seconds(*time).into(),
            Value::List(_) | Value::Map(_) if self.nested => {
                let format = match json_keeps(value, 1)? {
                    true => Format::Json,
                    false => Format::Marshal,
                };
                let mut bytes = Vec::new();
                format.encode(value, &mut bytes)?;
                return Ok((format.name(), bytes));
            }
            Value::List(_) | Value::Map(_) => {
                let kind = value.kind().one();
                let what = format!("is {kind}, which no column can hold; use ?layout=blob");
                return Err(Error::unsupported(what));
            }
        };
        Ok((value.kind().name(), bytes))
    }

    /// The record of these fields.
    ///
    /// # Errors
    /// [`Malformed`](ErrorKind::Malformed) where the kinds cannot be read, or a name is no text.
    pub(crate) fn read(self, fields: Vec<Field>) -> Result<Document> {
        let mut named: Vec<(String, Option<Vec<u8>>)> = Vec::with_capacity(fields.len());
        let mut kinds = Document::new();
        for (name, bytes) in fields {
            if name == KINDS.as_bytes() {
                kinds = Format::Json.decode(&bytes).map_err(|e| {
                    Error::malformed(format!("field {KINDS:?} is not a map of kinds"))
                        .with_source(e)
                })?;
                continue;
            }
            let name = String::from_utf8(name).map_err(|e| {
                let shown = String::from_utf8_lossy(e.as_bytes());
                Error::malformed(format!("field {shown:?} has a name that is not UTF-8"))
            })?;
            named.push((name, Some(bytes)));
        }
        let mut record = Document::with_capacity(named.len());
        for (i, (name, kind)) in kinds.into_iter().enumerate() {
            // Mostly in the same order.
            let at = match named.get(i) {
                Some((n, _)) if *n == name => Some(i),
                _ => named.iter().position(|(n, _)| *n == name),
            };
            let kind = kind.as_str().unwrap_or_default();
            let Some(bytes) = at.and_then(|at| named[at].1.take()) else {
                if let Some(value) = of_unwritten(kind) {
                    record.push(name, value);
                }
                continue;
            };
            let value = value_of(kind, bytes)
                .map_err(|e| Error::new(e.kind(), format!("field {name:?} {}", e.context())))?;
            record.push(name, value);
        }
        for (name, bytes) in named {
            if let Some(bytes) = bytes {
                record.push(name, text_or_bytes(bytes));
            }
        }
        Ok(record)
    }
}

/// The kind of an empty value that is no field.
fn unwritten(kind: &str) -> &'static str {
    match kind {
        "null" => "nothing",
        "text" => "empty",
        _ => "no bytes",
    }
}

/// The value that is no field.
fn of_unwritten(kind: &str) -> Option<Value> {
    match kind {
        "nothing" => Some(Value::Null),
        "empty" => Some(Value::Text(String::new())),
        "no bytes" => Some(Value::Bytes(Vec::new())),
        _ => None,
    }
}

fn text_or_bytes(bytes: Vec<u8>) -> Value {
    String::from_utf8(bytes).map_or_else(|e| Value::Bytes(e.into_bytes()), Value::Text)
}

/// The value that is spelled so.
fn value_of(kind: &str, bytes: Vec<u8>) -> Result<Value> {
    let nested = |format: Format, bytes: &[u8]| {
        format.decode::<Value>(bytes).map_err(|e| {
            Error::malformed(format!("should hold {kind} and does not")).with_source(e)
        })
    };
    match kind {
        "bytes" => return Ok(Value::Bytes(bytes)),
        "json" => return nested(Format::Json, &bytes),
        "marshal" => return nested(Format::Marshal, &bytes),
        _ => {}
    }
    let Ok(text) = std::str::from_utf8(&bytes) else { return Ok(Value::Bytes(bytes)) };
    let value = match kind {
        // Another program has written what was empty.
        "text" | "nothing" | "empty" | "no bytes" => None,
        "null" => text.is_empty().then_some(Value::Null),
        "bool" => text.parse().ok().map(Value::Bool),
        "int" => text.parse().ok().map(Value::Int),
        "float" => text.parse().ok().map(Value::Float),
        "bigint" => is_number(text, false).then(|| Value::BigInt(text.into())),
        "decimal" => is_number(text, true).then(|| Value::Decimal(text.into())),
        "time" => time_of(text).map(Value::Time),
        "base64" => BASE64.decode(text).ok().map(Value::Bytes),
        _ => return Err(Error::malformed(format!("is of a kind {kind:?} that is not known"))),
    };
    Ok(value.unwrap_or_else(|| text_or_bytes(bytes)))
}

/// The kinds of a field that is spelled so of which it is read as this text: text itself, and those of which this is no
/// value.
#[cfg_attr(not(feature = "redis"), allow(dead_code))]
pub(crate) fn kinds_of_text(text: &str) -> impl Iterator<Item = &'static str> {
    let is_text = move |kind: &&str| match value_of(kind, text.as_bytes().to_vec()) {
        Ok(Value::Text(read)) => read == text,
        _ => false,
    };
    let scalars = Kind::ALL.iter().map(|kind| kind.name());
    scalars.chain(["nothing", "empty", "no bytes", "base64"]).filter(is_text)
}

fn is_number(text: &str, decimal: bool) -> bool {
    text.contains(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || c == '-' || decimal && "+.eE".contains(c))
}

/// Whether JSON holds a value and gives it back equal.
fn json_keeps(value: &Value, level: usize) -> Result<bool> {
    if level > LEVELS {
        let what = format!("nests deeper than {LEVELS} levels; use ?layout=blob");
        return Err(Error::new(ErrorKind::TooLarge, what));
    }
    let mut all = true;
    match value {
        Value::List(list) => {
            for value in list {
                all &= json_keeps(value, level + 1)?;
            }
        }
        Value::Map(map) => {
            for (_, value) in map.iter() {
                all &= json_keeps(value, level + 1)?;
            }
        }
        Value::Float(v) => all = v.is_finite(),
        value => all = Format::Json.info().keeps.contains(&value.kind()),
    }
    Ok(all)
}

/// Seconds since 1970, in decimal.
pub(crate) fn seconds(time: Time) -> String {
    let (seconds, nanoseconds) = time.to_unix();
    let all = i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
    let sign = if all < 0 { "-" } else { "" };
    let (whole, part) = (all.abs() / 1_000_000_000, all.abs() % 1_000_000_000);
    match part {
        0 => format!("{sign}{whole}"),
        part => format!("{sign}{whole}.{}", format!("{part:09}").trim_end_matches('0')),
    }
}

fn time_of(text: &str) -> Option<Time> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !is_digits(whole) || !is_digits(part) || whole.len() > 12 || part.len() > 9 {
        return None;
    }
    let part: i64 = format!("{part:0<9}").parse().ok()?;
    let all = i128::from(sign)
        * (i128::from(whole.parse::<i64>().ok()?) * 1_000_000_000 + i128::from(part));
    let nanoseconds = u32::try_from(all.rem_euclid(1_000_000_000)).ok()?;
    Time::from_unix(i64::try_from(all.div_euclid(1_000_000_000)).ok()?, nanoseconds).ok()
}

/// The kinds that flat fields without lists and maps keep.
pub(crate) const SCALARS: &[Kind] = &[
    Kind::Null,
    Kind::Bool,
    Kind::Int,
    Kind::Float,
    Kind::Decimal,
    Kind::Text,
    Kind::Bytes,
    Kind::Time,
];

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: Flat = Flat { binary: true, nested: true };
    const TABLE: Flat = Flat { binary: false, nested: false };

    fn scalars() -> Document {
        let time = |s, n| Value::Time(Time::from_unix(s, n).unwrap());
        Document::from_iter([
            ("null", Value::Null),
            ("yes", Value::Bool(true)),
            ("least", Value::Int(i64::MIN)),
            ("one", Value::Float(1.0)),
            ("zero", Value::Float(-0.0)),
            ("tiny", Value::Float(5e-324)),
            ("nan", Value::Float(f64::NAN)),
            ("decimal", Value::Decimal("1.50".into())),
            ("text", Value::from("12")),
            ("empty", Value::from("")),
            ("emoji \r\n", Value::from("😀 \r\n")),
            ("bytes", Value::Bytes((0..=255).collect())),
            ("utf-8", Value::Bytes(b"abc".to_vec())),
            ("epoch", time(0, 0)),
            ("before", time(-1, 999_999_999)),
            ("late", time(4_102_444_800, 120_000_000)),
            ("early", time(-62_000_000_000, 5)),
        ])
    }

    fn field<'a>(fields: &'a [Field], name: &str) -> &'a str {
        let found = fields.iter().find(|(n, _)| n == name.as_bytes());
        std::str::from_utf8(&found.unwrap().1).unwrap()
    }

    #[test]
    fn every_kind_comes_back_whatever_the_order_of_fields() {
        for flat in [HASH, TABLE] {
            let mut fields = flat.write(&scalars()).unwrap();
            assert_eq!(flat.read(fields.clone()).unwrap(), scalars());
            fields.reverse();
            assert_eq!(flat.read(fields).unwrap(), scalars());
            let empty = flat.write(&Document::new()).unwrap();
            assert_eq!(flat.read(empty).unwrap(), Document::new());
        }
        let hash_only = Document::from_iter([
            ("huge", Value::Float(1e300)),
            ("big", Value::BigInt("-99999999999999999999".into())),
            ("long", Value::Decimal("0.123456789012345678901234567890".into())),
            ("inf", Value::Float(f64::NEG_INFINITY)),
        ]);
        assert_eq!(HASH.read(HASH.write(&hash_only).unwrap()).unwrap(), hash_only);
        let nested = Document::from_iter([
            ("json", Value::List(vec![Value::Int(1), Value::Float(1.0), Value::Null])),
            ("map", Value::Map(Document::from_iter([("a", vec![Value::from("b")])]))),
            ("more", Value::List(scalars().into_iter().map(|(_, v)| v).collect())),
        ]);
        let fields = HASH.write(&nested).unwrap();
        assert_eq!(field(&fields, "json"), "[1,1.0,null]");
        assert_eq!(field(&fields, KINDS), r#"{"json":"json","map":"json","more":"marshal"}"#);
        assert_eq!(HASH.read(fields).unwrap(), nested);
    }

    #[test]
    fn other_programs_read_plain_text_and_may_write() {
        let mut fields = TABLE.write(&scalars()).unwrap();
        for (name, want) in [
            ("yes", "true"),
            ("one", "1"),
            ("zero", "-0"),
            ("text", "12"),
            ("before", "-0.000000001"),
            ("late", "4102444800.12"),
        ] {
            assert_eq!(field(&fields, name), want);
        }
        assert!(fields.iter().all(|(_, bytes)| !bytes.is_empty()), "what is empty is no field");
        fields.retain(|(name, _)| name != b"big");
        fields.iter_mut().find(|(name, _)| name == b"least").unwrap().1 = b"old".to_vec();
        fields.push((b"new".to_vec(), b"\xff".to_vec()));
        let record = TABLE.read(fields).unwrap();
        assert_eq!(record.get("big"), None);
        assert_eq!(record.get("least"), Some(&Value::from("old")));
        assert_eq!(record.get("new"), Some(&Value::Bytes(vec![0xff])));
        let plain = vec![(b"a".to_vec(), b"1".to_vec())];
        assert_eq!(TABLE.read(plain).unwrap(), Document::from_iter([("a", "1")]));
    }

    /// For whom a field is bytes and a kind: what of them is read as this text is what `kinds_of_text` says.
    #[test]
    fn a_field_is_a_text_by_its_bytes_and_its_kind() {
        let words = ["nothing", "empty", "no bytes", "base64"];
        for text in ["", "7", "1.5", "true", "1e3", "YQ==", "rev", "123e4567-e89b-12d3", "12 "] {
            let kinds: Vec<_> = kinds_of_text(text).collect();
            for kind in Kind::ALL.iter().map(|kind| kind.name()).chain(words) {
                let said = format!("{{\"a\":\"{kind}\"}}");
                let fields = vec![(b"a".to_vec(), text.into()), (KINDS.into(), said.into_bytes())];
                let record = HASH.read(fields).unwrap_or_default();
                let is_text = record.get("a") == Some(&Value::from(text));
                assert_eq!(kinds.contains(&kind), is_text, "{text:?} of kind {kind}");
            }
            assert!(kinds.contains(&"text"));
        }
    }

    #[test]
    fn what_cannot_be_held_is_refused_by_name() {
        let of = |name: &str, value: Value| Document::from_iter([(name, value)]);
        let mut twice = of("a", Value::Null);
        twice.push("a", 1i64);
        let mut deep = Value::Null;
        for _ in 0..=LEVELS {
            deep = Value::List(vec![deep]);
        }
        for (flat, record, want) in [
            (HASH, of(KINDS, Value::Null), "\"_kinds\" is where"),
            (HASH, twice, "\"a\" occurs twice"),
            (HASH, of("a", deep), "\"a\" nests deeper"),
            (TABLE, of("a", Value::List(vec![])), "\"a\" is a list"),
            (TABLE, of("a", Value::Map(Document::new())), "\"a\" is a map"),
            (TABLE, of("a", Value::from("x\0y")), "\"a\" is text with a NUL"),
            (TABLE, of("a", Value::Float(-1e300)), "\"a\" holds -1e300: numbers of more"),
            (TABLE, of("a", Value::Float(f64::INFINITY)), "\"a\" holds inf: numbers of more"),
            (TABLE, of("", Value::Null), "name that is empty"),
            (TABLE, of("a\0b", Value::Null), "has NUL in it"),
        ] {
            let error = flat.write(&record).unwrap_err();
            assert!(error.to_string().contains(want), "{error}");
        }
        for kinds in ["[]", "{\"a\":\"tree\"}"] {
            let fields = vec![(KINDS.into(), kinds.into()), (b"a".to_vec(), vec![])];
            assert_eq!(HASH.read(fields).unwrap_err().kind(), ErrorKind::Malformed);
        }
    }
}
