//! Tests against other implementations: MessagePack against rmp-serde, CBOR against cbor4ii, and the direct path for
//! MARC records against the path through serde, for every encoding of the same values.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{super::Format, Sizes};
use crate::{
    ErrorKind,
    marc::{Leader, Record, json::RecordSeed},
    record::{Document, Time, Value},
};

const BOTH: [Format; 2] = [Format::Msgpack, Format::Cbor];

fn encoded<T: Serialize>(format: Format, record: &T) -> Vec<u8> {
    let mut out = vec![7];
    format.encode(record, &mut out).unwrap();
    out.split_off(1)
}

fn by_crate<T: Serialize>(format: Format, record: &T) -> Vec<u8> {
    match format {
        Format::Msgpack => rmp_serde::to_vec_named(record).unwrap(),
        _ => cbor4ii::serde::to_vec(Vec::new(), record).unwrap(),
    }
}

fn read_by_crate<T: DeserializeOwned>(format: Format, bytes: &[u8]) -> Option<T> {
    match format {
        Format::Msgpack => rmp_serde::from_slice(bytes).ok(),
        _ => cbor4ii::serde::from_slice(bytes).ok(),
    }
}

fn marc(format: Format, record: &Record) -> Vec<u8> {
    let mut out = vec![7];
    format.encode_marc(record.as_ref(), &mut out).unwrap();
    out.split_off(1)
}

fn through_serde(format: Format, bytes: &[u8]) -> crate::Result<Record> {
    let mut record = Record::new();
    format.decode_seed(bytes, RecordSeed(&mut record)).map(|()| record)
}

fn direct(format: Format, bytes: &[u8]) -> crate::Result<Record> {
    let mut record = Record::new();
    record.push_plain(*b"999", b"from before").unwrap();
    format.read_marc(bytes, &mut record, &mut Vec::new()).map(|()| record)
}

/// Values that both we and the crates write the same way.
fn common() -> impl Strategy<Value = Value> {
    let single = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (any::<i64>(), 0..63).prop_map(|(v, bits)| Value::Int(v >> bits)),
        (1u64 << 63..).prop_map(Value::from),
        any::<f64>().prop_map(Value::Float),
        prop_oneof!["\\PC{0,40}", "[a-z]{0,300}", "[a-z]{65530,65540}"].prop_map(Value::Text),
        prop::collection::vec(any::<u8>(), 0..300).prop_map(Value::Bytes),
    ];
    single.prop_recursive(4, 48, 20, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..20).prop_map(Value::List),
            prop::collection::vec(("[a-z]{0,40}", inner), 0..20)
                .prop_map(|entries| { Value::Map(entries.into_iter().collect::<Document>()) }),
        ]
    })
}

/// Records with everything that can stand in one, bytes that are no text too.
fn any_record() -> impl Strategy<Value = Record> {
    let text = || {
        prop_oneof![
            4 => "[ -~]{0,60}".prop_map(String::into_bytes),
            2 => "\\PC{0,20}".prop_map(String::into_bytes),
            1 => "[a-z]{250,260}".prop_map(String::into_bytes),
            1 => prop::collection::vec(prop_oneof![0u8..0x1d, 0x20u8..], 0..12),
        ]
    };
    let subfields = prop::collection::vec(("[ -~]", text()), 0..20);
    let tag = prop_oneof![6 => "[0-9]{3}", 1 => "[ -~]{3}", 1 => Just("é9".to_owned())];
    let data = (tag.clone(), "[ -~]{2}", subfields).prop_map(|(tag, indicators, subfields)| {
        let mut bytes = indicators.into_bytes();
        for (code, text) in subfields {
            bytes.push(0x1f);
            bytes.extend(code.bytes().chain(text));
        }
        (tag, bytes)
    });
    let ends = prop::sample::select(vec![&b""[..], b"\x1f", b"\x1fa", b"\x1f\xc3"]);
    let plain = (tag, text(), ends).prop_map(|(tag, mut text, end)| {
        text.extend_from_slice(end);
        (tag, text)
    });
    let fields = prop::collection::vec(prop_oneof![4 => data, 1 => plain], 0..40);
    (fields, "[ -~]{24}").prop_map(|(fields, leader)| {
        let mut record = Record::new();
        record.set_leader(Leader(leader.as_bytes().try_into().unwrap()));
        for (tag, bytes) in fields {
            record.push_bytes(tag.as_bytes().try_into().unwrap(), &bytes).unwrap();
        }
        record
    })
}

/// Writes a value in forms that nobody is bound to avoid: long heads for short things, texts as
/// bytes, CBOR's lists, maps and texts that do not say how long they are, tags. `choices` decides.
fn oddly(format: Format, value: &Value, choices: &mut impl FnMut() -> u8, out: &mut Vec<u8>) {
    let cbor = format == Format::Cbor;
    let width = 1usize << (choices() % 3);
    let long = |sizes: [u8; 3], len: usize, out: &mut Vec<u8>| {
        let width = if len >> (8 * width).min(63) == 0 { width } else { 4 };
        out.push(sizes[width.trailing_zeros() as usize]);
        out.extend_from_slice(&(len as u32).to_be_bytes()[4 - width..]);
    };
    let cbor_sizes = |major: u8| [24, 25, 26].map(|low| major << 5 | low);
    if cbor && choices() < 20 {
        out.extend_from_slice(&[0xd9, 0xd9, 0xf7]);
    }
    let unknown = cbor && choices() < 60;
    match value {
        Value::Text(text) => {
            let bytes = choices() < 40;
            if unknown {
                let major = if bytes { 0x40 } else { 0x60 };
                out.push(major | 31);
                for piece in text.chars().collect::<Vec<_>>().chunks(7) {
                    let piece: String = piece.iter().collect();
                    out.extend_from_slice(&[major | 24, piece.len() as u8]);
                    out.extend_from_slice(piece.as_bytes());
                }
                return out.push(0xff);
            }
            let sizes = match (cbor, bytes) {
                (true, _) => cbor_sizes(if bytes { 2 } else { 3 }),
                (false, true) => [0xc4, 0xc5, 0xc6],
                (false, false) => [0xd9, 0xda, 0xdb],
            };
            long(sizes, text.len(), out);
            out.extend_from_slice(text.as_bytes());
        }
        Value::List(items) => {
            match (cbor, unknown) {
                (true, true) => out.push(0x9f),
                (true, false) => long(cbor_sizes(4), items.len(), out),
                (false, _) => {
                    out.push(0xdd);
                    out.extend_from_slice(&(items.len() as u32).to_be_bytes());
                }
            }
            items.iter().for_each(|item| oddly(format, item, choices, out));
            if unknown {
                out.push(0xff);
            }
        }
        Value::Map(map) => {
            let mut entries: Vec<(&str, &Value)> = map.iter().collect();
            if choices() < 128 {
                entries.reverse();
            }
            match (cbor, unknown) {
                (true, true) => out.push(0xbf),
                (true, false) => long(cbor_sizes(5), entries.len(), out),
                (false, _) => {
                    out.push(0xde);
                    out.extend_from_slice(&(entries.len() as u16).to_be_bytes());
                }
            }
            for (name, value) in entries {
                oddly(format, &name.into(), choices, out);
                oddly(format, value, choices, out);
            }
            if unknown {
                out.push(0xff);
            }
        }
        other => out.extend(encoded(format, other)),
    }
}

proptest! {
    #[test]
    fn bytes_are_those_of_the_crates(value in common()) {
        for format in BOTH {
            let ours = encoded(format, &value);
            prop_assert_eq!(&ours, &by_crate(format, &value));
            prop_assert_eq!(format.decode::<Value>(&ours)?, value.clone());
            prop_assert_eq!(read_by_crate::<Value>(format, &ours), Some(value.clone()));
        }
    }

    #[test]
    fn marc_bytes_are_those_of_the_way_through_serde(record in any_record()) {
        for format in BOTH {
            let ours = marc(format, &record);
            prop_assert_eq!(&ours, &encoded(format, &record));
            prop_assert_eq!(&ours, &by_crate(format, &record));
            prop_assert_eq!(direct(format, &ours)?, record.clone());
            prop_assert_eq!(through_serde(format, &ours)?, record.clone());
        }
    }

    #[test]
    fn marc_is_read_in_every_form(
        record in any_record(),
        choices in prop::collection::vec(any::<u8>(), 64),
    ) {
        // What is written as bytes stays bytes: `oddly` has no odd form for them.
        let value = crate::record::to_value(&record)?;
        for format in BOTH {
            let (mut bytes, mut at) = (Vec::new(), 0);
            let mut next = || {
                at += 1;
                choices[at % choices.len()].wrapping_add((at / choices.len()) as u8)
            };
            oddly(format, &value, &mut next, &mut bytes);
            prop_assert_eq!(direct(format, &bytes)?, record.clone());
            prop_assert_eq!(through_serde(format, &bytes)?, record.clone());
        }
    }

    #[test]
    fn any_bytes_are_read_alike_or_refused(
        record in any_record(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        for format in BOTH {
            let mut bytes = marc(format, &record);
            for (at, byte) in &changes {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            for bytes in [&bytes[..], &bytes[..cut.index(bytes.len())]] {
                let mut troubles = Vec::new();
                let mut read = Record::new();
                let ours = format.read_marc(bytes, &mut read, &mut troubles);
                let theirs = through_serde(format, bytes);
                // Names that are passed over are not looked into in the same way.
                if troubles.is_empty() {
                    prop_assert_eq!(ours.is_ok(), theirs.is_ok(), "{:?} {:?}", ours, theirs);
                }
                if let (Ok(()), Ok(theirs)) = (ours, theirs) {
                    prop_assert_eq!(read, theirs);
                }
            }
        }
    }
}

#[test]
fn names_in_any_order_and_others_passed_over() {
    let json = r#"{"x":[1,{"y":2}],"fields":[{"245":{"subfields":[{"a":"t"}],"ind2":"0","ind1":"1","z":null}}],"leader":"00000nam a2200000 i 4500"}"#;
    let value: Value = serde_json::from_str(json).unwrap();
    for format in BOTH {
        let bytes = encoded(format, &value);
        let (mut record, mut troubles) = (Record::new(), Vec::new());
        format.read_marc(&bytes, &mut record, &mut troubles).unwrap();
        assert_eq!(record.as_ref().field(*b"245").unwrap().bytes(), b"10\x1fat");
        let said: Vec<_> = troubles.iter().map(|t| (t.offset, t.detail.as_str())).collect();
        assert_eq!(said[0], (3, "the name \"x\" and what it holds"));
        assert!(said[1].1.contains("\"z\""), "{said:?}");
    }
}

#[test]
fn says_what_is_missing_or_wrong_and_where() {
    for (json, want) in [
        (r#"{"fields":[]}"#, "byte 0: a MARC record without \"leader\""),
        (r#"{"leader":"short","fields":[]}"#, "byte 8: a MARC leader of 5 bytes instead of 24"),
        (r#"{"leader":5}"#, "byte 8: a number instead of the leader"),
        (r#"[]"#, "byte 0: a list instead of a MARC record"),
        (
            r#"{"leader":"00000nam a2200000 i 4500","fields":[{"24":"x"}]}"#,
            "a MARC tag of 2 bytes instead of 3",
        ),
        (
            r#"{"leader":"00000nam a2200000 i 4500","fields":[{"001":"\u001e"}]}"#,
            "terminator inside",
        ),
        (
            r#"{"leader":"00000nam a2200000 i 4500","fields":[{"245":{"ind1":"10","subfields":[]}}]}"#,
            "indicator",
        ),
    ] {
        let value: Value = serde_json::from_str(json).unwrap();
        for format in BOTH {
            let error = direct(format, &encoded(format, &value)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Malformed);
            assert!(error.to_string().contains(want), "{json}: {error}");
        }
    }
}

#[test]
fn times_numbers_and_decimals_are_of_the_formats_own_kind() {
    let time = |s, n| Value::Time(Time::from_unix(s, n).unwrap());
    let big = |digits: &str| Value::BigInt(digits.into());
    let decimal = |digits: &str| Value::Decimal(digits.into());
    for (value, want) in [
        (time(1, 0), "d6ff00000001"),
        (time(1, 5), "d7ff0000001400000001"),
        (time(1 << 34, 0), "c70cff000000000000000400000000"),
        (time(-1, 999_999_999), "c70cff3b9ac9ffffffffffffffffff"),
    ] {
        let bytes = encoded(Format::Msgpack, &value);
        assert_eq!(hex(&bytes), want);
        assert_eq!(Format::Msgpack.decode::<Value>(&bytes).unwrap(), value);
    }
    for (value, want) in [
        (time(1_363_896_240, 0), "c074323031332d30332d32315432303a30343a30305a"),
        (time(-62_167_219_201, 0), "d903e9a2013b0000000e79747c002800"),
        (big("18446744073709551616"), "c249010000000000000000"),
        (big("-18446744073709551617"), "c349010000000000000000"),
        (big("-18446744073709551616"), "3bffffffffffffffff"),
        (decimal("273.15"), "c48221196ab3"),
        (decimal("-0.5"), "c4822024"),
    ] {
        let bytes = encoded(Format::Cbor, &value);
        assert_eq!(hex(&bytes), want, "{value:?}");
        assert_eq!(Format::Cbor.decode::<Value>(&bytes).unwrap(), value);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn unhex(digits: &str) -> Vec<u8> {
    let digit = |b: u8| char::from(b).to_digit(16).unwrap() as u8;
    digits.as_bytes().chunks(2).map(|b| digit(b[0]) * 16 + digit(b[1])).collect()
}

#[test]
fn forms_that_others_write_are_read() {
    let time = |s, n| Value::Time(Time::from_unix(s, n).unwrap());
    for (bytes, want) in [
        // Appendix A of RFC 8949.
        ("c11a514b67b0", time(1_363_896_240, 0)),
        ("c1fb41d452d9ec200000", time(1_363_896_240, 500_000_000)),
        ("f90001", Value::Float(5.960_464_477_539_063e-8)),
        ("f9c400", Value::Float(-4.0)),
        ("f97bff", Value::Float(65504.0)),
        ("f90400", Value::Float(0.000_061_035_156_25)),
        ("f9fc00", Value::Float(f64::NEG_INFINITY)),
        ("fa47c35000", Value::Float(100_000.0)),
        ("f7", Value::Null),
        ("d74401020304", Value::Bytes(vec![1, 2, 3, 4])),
        ("d818456449455446", Value::Bytes(b"dIETF".to_vec())),
        ("5f42010243030405ff", Value::Bytes(vec![1, 2, 3, 4, 5])),
        ("7f657374726561646d696e67ff", "streaming".into()),
        (
            "9f018202039f0405ffff",
            vec![
                1.into(),
                Value::List(vec![2.into(), 3.into()]),
                Value::List(vec![4.into(), 5.into()]),
            ]
            .into(),
        ),
        ("c349010000000000000000", Value::BigInt("-18446744073709551617".into())),
        // A text that is no time is passed over as it is.
        ("c063616263", "abc".into()),
        // Numbers and tags longer than they need to be.
        ("1b0000000000000001", 1.into()),
        ("d90002420001", 1.into()),
    ] {
        assert_eq!(Format::Cbor.decode::<Value>(&unhex(bytes)).unwrap(), want, "{bytes}");
    }
    for (bytes, want) in [
        ("c70cff00000000ffffffffffffffff", time(-1, 0)),
        ("d7ff0000000000000001", time(1, 0)),
        ("ca3fc00000", Value::Float(1.5)),
        ("d30000000000000001", 1.into()),
        ("cf0000000000000001", 1.into()),
        ("a1ff", Value::Bytes(vec![0xff])),
    ] {
        assert_eq!(Format::Msgpack.decode::<Value>(&unhex(bytes)).unwrap(), want, "{bytes}");
    }
}

#[test]
fn what_is_no_record_is_refused_with_its_place() {
    for (format, bytes, want) in [
        (Format::Cbor, "ff", "byte 0: a break instead of an item"),
        (Format::Cbor, "82ff01", "byte 1: a break"),
        (Format::Cbor, "bf6161ff", "byte 3: a break"),
        (Format::Cbor, "1c", "CBOR never uses"),
        (Format::Cbor, "df", "CBOR never uses"),
        (Format::Cbor, "f8ff", "simple value"),
        (Format::Cbor, "7f4161ff", "a chunk of another type"),
        (Format::Cbor, "7f7f6161ffff", "CBOR never uses"),
        (Format::Cbor, "c2", "the bytes end"),
        (Format::Msgpack, "c1", "0xC1"),
        // Extensions: nanoseconds beyond a second, another length, another type, a year beyond ours.
        (Format::Msgpack, "91d7ffffffffff00000001", "byte 1: an invalid timestamp"),
        (Format::Msgpack, "d5ff0001", "byte 0: an invalid timestamp"),
        (Format::Msgpack, "92c0c70305010203", "byte 2: an extension of type 5 (3 bytes)"),
        (Format::Msgpack, "c70cff000000007fffffffffffffff", "byte 0: an invalid timestamp"),
        (Format::Msgpack, "d9ff61", "byte 3: the bytes end inside"),
        (Format::Msgpack, "0101", "1 more bytes after"),
    ] {
        let error = format.decode::<Value>(&unhex(bytes)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed);
        assert!(error.to_string().contains(want), "{bytes}: {error}");
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Shape {
    Point,
    Circle(f64),
    Line(i32, i32),
    Box { w: u8, h: u8 },
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Everything {
    yes: bool,
    small: f32,
    wide: i128,
    wider: u128,
    big: u64,
    sign: char,
    none: Option<u8>,
    some: Option<String>,
    unit: (),
    pair: (u8, String),
    shapes: Vec<Shape>,
    numbered: BTreeMap<u16, f32>,
    when: Time,
    any: Value,
    #[serde(flatten)]
    more: BTreeMap<String, i64>,
}

#[test]
fn every_shape_of_serde_comes_back() {
    let everything = Everything {
        yes: true,
        small: 0.1,
        wide: i128::MIN,
        wider: u128::MAX,
        big: u64::MAX,
        sign: 'ü',
        none: None,
        some: Some("x".into()),
        unit: (),
        pair: (7, "seven".into()),
        shapes: vec![
            Shape::Point,
            Shape::Circle(0.5),
            Shape::Line(1, -1),
            Shape::Box { w: 1, h: 2 },
        ],
        numbered: [(3, 1.5), (60_000, -2.0)].into(),
        when: Time::from_unix(1_000_000_000, 17).unwrap(),
        any: Value::List(vec![Value::Bytes(vec![0, 255]), Value::Null]),
        more: [("extra".to_owned(), -5)].into(),
    };
    // Without the part that is flattened: what comes through there has lost its own types.
    for format in BOTH {
        let shapes = encoded(format, &everything.shapes);
        assert_eq!(format.decode::<Vec<Shape>>(&shapes).unwrap(), everything.shapes);
        assert_eq!(read_by_crate::<Vec<Shape>>(format, &shapes).unwrap(), everything.shapes);
        for (wide, wider) in [(i128::MIN, u128::MAX), (-1, 1), (1 << 64, 1 << 127)] {
            let bytes = encoded(format, &(wide, wider));
            assert_eq!(format.decode::<(i128, u128)>(&bytes).unwrap(), (wide, wider));
        }
        let bytes = encoded(format, &everything);
        let back: Value = format.decode(&bytes).unwrap();
        assert_eq!(back.as_map().unwrap().get("extra"), Some(&Value::Int(-5)));
        assert_eq!(back.as_map().unwrap().len(), 15);
        assert_eq!(
            format.decode::<BTreeMap<u16, f32>>(&encoded(format, &everything.numbered)).unwrap(),
            everything.numbered
        );
        let few = encoded(format, &(1, 2, 3));
        assert!(format.decode::<(u8, u8)>(&few).unwrap_err().to_string().contains("more values"));
        assert_eq!(
            format.decode::<Time>(&encoded(format, &everything.when)).unwrap(),
            everything.when
        );
        assert_eq!(
            format.decode::<String>(&encoded(format, &everything.when)).unwrap(),
            "2001-09-09T01:46:40.000000017Z"
        );
    }
}

#[test]
fn heads_are_as_short_as_they_can_be() {
    let sizes = Sizes { least: 0x60, below: 24, before8: Some(0x78), before16: 0x79 };
    for (len, want) in [(0, 1), (23, 1), (24, 2), (255, 2), (256, 3), (65_535, 3), (65_536, 5)] {
        assert_eq!(sizes.head(len).1, want, "{len}");
    }
    assert_eq!((sizes.few(0x60), sizes.few(0x77), sizes.few(0x78)), (Some(0), Some(23), None));
}
