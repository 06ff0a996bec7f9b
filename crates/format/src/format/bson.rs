//! BSON (bsonspec.org 1.1), by the bson crate; times and decimals as BSON's own.
//!
//! `write.rs` hands records to the crate's serializer and turns native kinds into BSON's on the
//! way; `read.rs` walks the crate's raw documents. Kinds that only MongoDB knows (object ids,
//! regular expressions ...) are read as maps in the words of MongoDB's Extended JSON, `{"$oid":
//! "..."}`.

mod read;
mod write;

use serde::{Serialize, de::DeserializeSeed};

use super::{By, Code, Framing, Info, Takes, caused};
use crate::{Error, ErrorKind, Result, record::Kind};

pub(super) const INFO: Info = Info {
    name: "bson",
    extensions: &["bson"],
    framing: Framing::Delimited,
    takes: Takes::Maps,
    keeps: &[
        Kind::Null,
        Kind::Bool,
        Kind::Int,
        Kind::Float,
        Kind::Text,
        Kind::Bytes,
        Kind::List,
        Kind::Map,
    ],
    loses: "times keep their milliseconds; decimals keep 34 digits and may be spelled differently; \
            longer decimals and whole numbers beyond 64 bits become text",
    marc: Code::of(By::Crate("bson")),
    values: Code::of(By::Crate("bson")),
};

pub(super) fn encode<T: Serialize>(record: &T, out: &mut Vec<u8>) -> Result<()> {
    let before = out.len();
    bson::serialize_to_buffer(&write::Natively(record), out)
        .map_err(|e| caused(ErrorKind::Unsupported, "BSON cannot hold this record", e))?;
    // The crate writes lengths as they come; beyond 2 GiB they would have wrapped.
    match i32::try_from(out.len() - before) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::new(ErrorKind::TooLarge, "a BSON document over 2 GiB")),
    }
}

pub(super) fn decode<'de, S: DeserializeSeed<'de>>(bytes: &'de [u8], seed: S) -> Result<S::Value> {
    seed.deserialize(read::Reader::document(bytes)?)
}

/// How many bytes the document at the start of `bytes` has; `None` where the length itself is
/// not there yet.
pub(super) fn length(bytes: &[u8]) -> Result<Option<usize>> {
    let Some(length) = bytes.first_chunk() else { return Ok(None) };
    match i32::from_le_bytes(*length) {
        length @ 5.. => Ok(Some(length as usize)),
        length => Err(Error::malformed(format!("a BSON document of {length} bytes"))),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::record::{Document, Time, Value};

    fn there_and_back(document: &Document) -> Document {
        let mut bytes = vec![7];
        encode(document, &mut bytes).unwrap();
        assert_eq!(length(&bytes[1..]).unwrap(), Some(bytes.len() - 1));
        crate::format::Format::Bson.decode(&bytes[1..]).unwrap()
    }

    #[test]
    fn times_and_decimals_are_bsons_own() {
        let time = Time::from_unix(-1, 123_000_000).unwrap();
        let document = Document::from_iter([
            ("at", Value::Time(time)),
            ("price", Value::Decimal("-12.50".into())),
            ("list", Value::List(vec![Value::Time(time)])),
        ]);
        assert_eq!(there_and_back(&document), document);

        let mut bytes = Vec::new();
        encode(&document, &mut bytes).unwrap();
        let theirs: bson::Document = bson::deserialize_from_slice(&bytes).unwrap();
        assert_eq!(theirs.get_datetime("at").unwrap().timestamp_millis(), -877);
        assert_eq!(theirs.get_decimal128("price").unwrap().to_string(), "-12.50");
    }

    /// Kinds that only MongoDB knows are maps in the words of its Extended JSON; the rest is of a kind of ours.
    #[test]
    fn every_kind_of_bson_is_read_as_what_it_is() {
        use bson::{Binary, Bson, spec::BinarySubtype};
        let word = |name: &str, value: Value| Value::Map(Document::from_iter([(name, value)]));
        let map = |pairs: Vec<(&str, Value)>| Value::Map(Document::from_iter(pairs));
        let decimal = |text: &str| Bson::Decimal128(text.parse().unwrap());
        let date = |millis| Bson::DateTime(bson::DateTime::from_millis(millis));
        let far = |millis: &str| word("$date", word("$numberLong", millis.into()));
        let id = bson::oid::ObjectId::from_bytes([7; 12]);
        let code =
            bson::JavaScriptCodeWithScope { code: "f()".into(), scope: bson::doc! { "x": 1 } };
        let regex =
            bson::Regex { pattern: "^a".try_into().unwrap(), options: "i".try_into().unwrap() };
        let binary = |subtype| Bson::Binary(Binary { subtype, bytes: vec![1, 2, 3] });
        for (theirs, want) in [
            (Bson::Double(-0.5), Value::Float(-0.5)),
            (Bson::Int32(i32::MIN), Value::Int(i32::MIN.into())),
            (Bson::Int64(i64::MAX), Value::Int(i64::MAX)),
            (Bson::Null, Value::Null),
            (decimal("1.50"), Value::Decimal("1.50".into())),
            (
                decimal("9.999999999999999999999999999999999E+6144"),
                Value::Decimal("9.999999999999999999999999999999999E+6144".into()),
            ),
            (decimal("NaN"), word("$numberDecimal", "NaN".into())),
            (decimal("-Infinity"), word("$numberDecimal", "-Infinity".into())),
            (date(-1), Value::Time(Time::from_unix(-1, 999_000_000).unwrap())),
            (date(i64::MAX), far("9223372036854775807")),
            (date(i64::MIN), far("-9223372036854775808")),
            (Bson::MinKey, word("$minKey", 1.into())),
            (Bson::MaxKey, word("$maxKey", 1.into())),
            (Bson::Undefined, word("$undefined", true.into())),
            (Bson::ObjectId(id), word("$oid", id.to_hex().into())),
            (Bson::Symbol("s".into()), word("$symbol", "s".into())),
            (Bson::JavaScriptCode("f()".into()), word("$code", "f()".into())),
            (
                Bson::JavaScriptCodeWithScope(code),
                map(vec![("$code", "f()".into()), ("$scope", word("x", 1.into()))]),
            ),
            (
                Bson::RegularExpression(regex),
                word(
                    "$regularExpression",
                    map(vec![("pattern", "^a".into()), ("options", "i".into())]),
                ),
            ),
            (
                Bson::Timestamp(bson::Timestamp { time: 5, increment: 6 }),
                word("$timestamp", map(vec![("t", 5.into()), ("i", 6.into())])),
            ),
            (binary(BinarySubtype::Generic), Value::Bytes(vec![1, 2, 3])),
            (
                binary(BinarySubtype::Md5),
                word("$binary", map(vec![("base64", "AQID".into()), ("subType", "05".into())])),
            ),
            (
                binary(BinarySubtype::UserDefined(0x81)),
                word("$binary", map(vec![("base64", "AQID".into()), ("subType", "81".into())])),
            ),
        ] {
            let bytes = bson::serialize_to_vec(&bson::doc! { "v": theirs.clone() }).unwrap();
            let read: Document = crate::format::Format::Bson.decode(&bytes).unwrap();
            assert_eq!(read.get("v"), Some(&want), "{theirs:?}");
        }
    }

    #[test]
    fn what_does_not_fit_is_said_in_loses() {
        let long: &str = "0.1234567890123456789012345678901234567890";
        let document = Document::from_iter([
            ("nanoseconds", Value::Time(Time::from_unix(5, 123_456_789).unwrap())),
            ("decimal", Value::Decimal(long.into())),
            ("unsigned", Value::from(u64::MAX)),
            ("big", Value::BigInt("99999999999999999999999".into())),
        ]);
        let back = there_and_back(&document);
        let want = Document::from_iter([
            ("nanoseconds", Value::Time(Time::from_unix(5, 123_000_000).unwrap())),
            ("decimal", long.into()),
            ("unsigned", "18446744073709551615".into()),
            ("big", "99999999999999999999999".into()),
        ]);
        assert_eq!(back, want);
    }

    #[test]
    fn types_get_what_they_ask_for() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Row {
            big: u64,
            wide: i128,
            at: Time,
            kind: Kind,
            maybe: Option<String>,
        }
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        enum Kind {
            Plain,
            With { x: u8 },
        }
        for kind in [Kind::Plain, Kind::With { x: 3 }] {
            let at = Time::from_unix(1, 0).unwrap();
            let row = Row { big: u64::MAX, wide: i128::MIN, at, kind, maybe: None };
            let mut bytes = Vec::new();
            encode(&row, &mut bytes).unwrap();
            assert_eq!(crate::format::Format::Bson.decode::<Row>(&bytes).unwrap(), row);
        }
    }

    #[test]
    fn mongos_own_kinds_are_extended_json() {
        let id = bson::oid::ObjectId::parse_str("65a1b2c3d4e5f60718293a4b").unwrap();
        let theirs = bson::doc! {
            "_id": id,
            "far": bson::DateTime::MAX,
            "re": bson::Regex { pattern: "a".try_into().unwrap(), options: "i".try_into().unwrap() },
        };
        let bytes = bson::serialize_to_vec(&theirs).unwrap();
        let ours: Document = crate::format::Format::Bson.decode(&bytes).unwrap();
        let json = serde_json::to_string(&ours).unwrap();
        assert_eq!(
            json,
            concat!(
                r#"{"_id":{"$oid":"65a1b2c3d4e5f60718293a4b"},"#,
                r#""far":{"$date":{"$numberLong":"9223372036854775807"}},"#,
                r#""re":{"$regularExpression":{"pattern":"a","options":"i"}}}"#
            )
        );
    }

    #[test]
    fn refuses_what_is_no_document() {
        let mut out = Vec::new();
        assert_eq!(encode(&5, &mut out).unwrap_err().kind(), ErrorKind::Unsupported);
        let nul = Document::from_iter([("a\0b", 1i64)]);
        assert_eq!(encode(&nul, &mut out).unwrap_err().kind(), ErrorKind::Unsupported);
        for bad in [&b""[..], b"\x04\0\0\0\0", b"\x05\0\0\0\0x", b"\x05\0\0\0\x01"] {
            assert_eq!(
                crate::format::Format::Bson.decode::<Value>(bad).unwrap_err().kind(),
                ErrorKind::Malformed
            );
        }
        assert!(length(b"\xff\xff\xff\xff").is_err());
    }
}
