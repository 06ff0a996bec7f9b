//! The contract of every format: it keeps what it declares, says what it loses, and meets bytes
//! that are none of its own with an error. Walks `Format::ALL`: a new format is held to it unasked.

use std::collections::HashSet;

use proptest::prelude::*;
use serde::{Serialize, Serializer, ser::SerializeMap};
use steelyard::{
    ErrorKind,
    format::{Format, Takes},
    marc,
    record::{Document, Kind, Time, Value},
};

/// Telling values of each kind: limits, and what formats are known to stumble over.
fn samples(kind: Kind) -> Vec<Value> {
    let text = |s: &str| Value::Text(s.to_owned());
    match kind {
        Kind::Null => vec![Value::Null],
        Kind::Bool => vec![true.into(), false.into()],
        Kind::Int => [0, 1, -1, 127, 128, 255, 256, 1 << 30, -(1 << 31), i64::MAX, i64::MIN]
            .map(Value::Int)
            .into(),
        Kind::BigInt => ["9223372036854775808", "18446744073709551615", "-9223372036854775809"]
            .into_iter()
            .chain(["18446744073709551616", "-340282366920938463463374607431768211457"])
            .map(|s| Value::BigInt(s.into()))
            .collect(),
        Kind::Float => {
            [0.0, -1.0, 0.1, 1e300, f64::MIN_POSITIVE, f64::MAX, 5e-324].map(Value::Float).into()
        }
        Kind::Decimal => ["0", "1.50", "-0.001", "1234567890123456789012345678901234567890.1234"]
            .map(|s| Value::Decimal(s.into()))
            .into(),
        Kind::Text => vec![text(""), text("a,\"b\"\r\n\tü€😀\u{1}"), text(&"x".repeat(70_000))],
        Kind::Bytes => vec![Value::Bytes(vec![]), Value::Bytes((0..=255).collect())],
        Kind::Time => [(0, 0), (-1, 999_999_999), (4_102_444_800, 123_456_789)]
            .map(|(s, n)| Value::Time(Time::from_unix(s, n).unwrap()))
            .into(),
        Kind::List => vec![
            Value::List(vec![]),
            Value::List(vec![Value::List(vec![]), text("x")]),
            Value::List(vec![text("y"); 70_000]),
        ],
        Kind::Map => vec![
            Document::new().into(),
            Document::from_iter([("b", text("1")), ("a", text("2")), ("", text("3"))]).into(),
        ],
    }
}

/// Floats that some formats have no word for, under the words by which they say so.
const ODD_FLOATS: [(&str, f64); 4] = [
    ("NaN", f64::NAN),
    ("infinities", f64::INFINITY),
    ("infinities", f64::NEG_INFINITY),
    ("minus zero", -0.0),
];

fn loses_float(format: Format, float: f64) -> bool {
    ODD_FLOATS
        .iter()
        .any(|(word, f)| f.to_bits() == float.to_bits() && format.info().loses.contains(word))
}

fn holding(value: Value) -> Document {
    Document::from_iter([("before", Value::from("x")), ("v", value), ("after", "y".into())])
}

fn encoded<T: Serialize>(format: Format, record: &T) -> steelyard::Result<Vec<u8>> {
    let mut out = Vec::new();
    format.encode(record, &mut out).map(|()| out)
}

fn back(format: Format, record: &Document) -> steelyard::Result<Document> {
    format.decode(&encoded(format, record)?)
}

fn marc_record() -> marc::Record {
    let mut record = marc::Record::new();
    record.set_leader(marc::Leader(*b"00000cam a2200000 a 4500"));
    record.push_plain(*b"001", b"ocm 42").unwrap();
    record.push_data(*b"245", *b"10", &[(b'a', "Wägen & <messen> /".as_bytes())]).unwrap();
    record.push_data(*b"650", *b" 0", &[(b'a', b"x"), (b'a', b"\"y\""), (b'0', b"")]).unwrap();
    record
}

#[test]
fn names_and_extensions_are_unique() {
    let (mut names, mut extensions) = (HashSet::new(), HashSet::new());
    for format in Format::ALL {
        assert!(names.insert(format.name()), "two formats named {}", format.name());
        assert_eq!(Format::named(format.name()).unwrap(), *format);
        assert!(format.name().bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()));
        for extension in format.info().extensions {
            assert!(extensions.insert(extension), "two formats with the extension {extension}");
        }
    }
}

#[test]
fn an_unknown_name_is_answered_with_the_known() {
    let error = Format::named("yaml").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    for format in Format::ALL {
        assert!(error.to_string().contains(format.name()), "{error}");
    }
}

#[test]
fn keeps_what_it_declares_and_says_what_it_loses() {
    for &format in Format::ALL {
        let info = format.info();
        let all = Kind::ALL.iter().all(|kind| info.keeps.contains(kind));
        if info.takes != Takes::Marc {
            assert!(all || !info.loses.is_empty(), "{}: keeps all, or says what not", info.name);
        }
        for kind in Kind::ALL {
            if info.takes == Takes::Marc {
                continue;
            }
            let mut changed = Vec::new();
            for value in samples(kind) {
                let document = holding(value.clone());
                match back(format, &document) {
                    Ok(read) if read == document => {}
                    other => changed.push(format!("{value:?} comes back as {other:?}")),
                }
            }
            match info.keeps.contains(&kind) {
                true => assert!(changed.is_empty(), "{}: {changed:#?}", info.name),
                false => assert!(
                    !changed.is_empty(),
                    "{} does keep {}: let it say so",
                    info.name,
                    kind.name()
                ),
            }
        }
        if info.takes == Takes::Anything {
            for (word, float) in ODD_FLOATS {
                let document = holding(Value::Float(float));
                let kept = back(format, &document).unwrap() == document;
                assert_eq!(kept, !loses_float(format, float), "{}: {word}", info.name);
            }
            // There are many that are not a number; which one it was is kept, or said to be lost.
            for bits in [0x7ff8_0000_0000_00ff, 0xfff8_0000_0000_0000] {
                let document = holding(Value::Float(f64::from_bits(bits)));
                let kept = back(format, &document).unwrap() == document;
                let said = info.loses.contains("payload") || loses_float(format, f64::NAN);
                assert_eq!(kept, !said, "{}: {bits:x}", info.name);
            }
            for kind in info.keeps {
                for value in samples(*kind) {
                    let bytes = encoded(format, &value).unwrap();
                    assert_eq!(format.decode::<Value>(&bytes).unwrap(), value, "{}", info.name);
                }
            }
        }
    }
}

#[test]
fn marc_records_come_back_equal() {
    let record = marc_record();
    for &format in Format::ALL.iter().filter(|f| f.info().takes != Takes::Rows) {
        let mut bytes = vec![1, 2, 3];
        format.encode_marc(record.as_ref(), &mut bytes).unwrap();
        assert_eq!(bytes[..3], [1, 2, 3]);
        let mut read = marc::Record::new();
        read.push_plain(*b"999", b"from before").unwrap();
        format.decode_marc(&bytes[3..], &mut read).unwrap();
        // Lengths in the leader are the format's business.
        if format.info().takes == Takes::Marc {
            read.set_leader(record.leader());
        }
        assert_eq!(read, record, "{}", format.name());
    }
}

#[test]
fn marc_keeps_bytes_that_are_no_text_through_values() {
    let mut record = marc::Record::new();
    record.push_data(*b"245", *b"10", &[(b'a', b"caf\xe2e")]).unwrap();
    let value = steelyard::record::to_value(&record).unwrap();
    assert_eq!(steelyard::record::from_value::<marc::Record>(value).unwrap(), record);
}

/// Serializes half a map, then refuses.
struct Refuses;

impl Serialize for Refuses {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("fine", "text")?;
        map.serialize_entry("bad", &Fails)?;
        map.end()
    }
}

struct Fails;

impl Serialize for Fails {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("refused on purpose"))
    }
}

#[test]
fn a_failed_encode_leaves_nothing_behind() {
    for &format in Format::ALL {
        let mut out = b"what was there".to_vec();
        let error = format.encode(&Refuses, &mut out).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{}: {error:?}", format.name());
        assert_eq!(out, b"what was there", "{}", format.name());
    }
}

/// A record as big in kinds as the format takes.
fn specimen(format: Format) -> Vec<u8> {
    let mut out = Vec::new();
    if format.info().takes == Takes::Marc {
        format.encode_marc(marc_record().as_ref(), &mut out).unwrap();
        return out;
    }
    let mut document = Document::new();
    for kind in format.info().keeps {
        for (i, value) in samples(*kind).into_iter().enumerate() {
            let small = match &value {
                Value::Text(s) => s.len() < 1000,
                Value::List(l) => l.len() < 1000,
                _ => true,
            };
            if small {
                document.push(format!("{}{i}", kind.name()), value);
            }
        }
    }
    format.encode(&document, &mut out).unwrap();
    out
}

/// Whatever comes of it, it is no panic.
fn try_all_ways(format: Format, bytes: &[u8]) {
    let _ = format.decode::<Value>(bytes);
    let _ = format.decode::<Document>(bytes);
    let _ = format.decode::<serde::de::IgnoredAny>(bytes);
    let _ = format.decode_marc(bytes, &mut marc::Record::new());
}

#[test]
fn a_record_cut_short_is_no_record() {
    for &format in Format::ALL {
        let bytes = specimen(format);
        for end in 0..bytes.len() {
            try_all_ways(format, &bytes[..end]);
        }
        // Lines have no mark that they are all there.
        if format == Format::Line {
            continue;
        }
        // CSV may end without its last line break, and text formats within a number.
        // Of lines nobody knows how long they were.
        if format == Format::Line {
            continue;
        }
        let cut = &bytes[..bytes.len() - 2];
        assert!(format.decode::<Value>(cut).is_err(), "{}", format.name());
    }
}

#[test]
fn bytes_after_a_record_are_an_error() {
    for &format in Format::ALL {
        let mut bytes = specimen(format);
        bytes.extend_from_slice(b"x\n");
        let error = format.decode::<Value>(&bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed, "{}: {error:?}", format.name());
    }
}

/// Bytes that nest 100,000 deep, or claim lengths they have not.
fn bombs(format: Format) -> Vec<Vec<u8>> {
    let deep = |open: &[u8]| open.repeat(100_000);
    match format.name() {
        "json" | "sonic" => {
            let ignored = |bomb: Vec<u8>| [&b"{\"ignored\":"[..], &bomb].concat();
            vec![
                deep(b"["),
                deep(b"{\"a\":"),
                deep(b"[{\"fields\":"),
                ignored(deep(b"[")),
                ignored(deep(b"{\"a\":")),
            ]
        }
        "msgpack" => vec![
            deep(&[0x91]),
            deep(&[0x81, 0xa1, b'a']),
            vec![0xdd, 0xff, 0xff, 0xff, 0xff],
            vec![0xdf, 0xff, 0xff, 0xff, 0xff],
            vec![0xdb, 0xff, 0xff, 0xff, 0xff],
            vec![0xc6, 0xff, 0xff, 0xff, 0xff],
            vec![0xc9, 0xff, 0xff, 0xff, 0xff, 1],
        ],
        "cbor" => vec![
            deep(&[0x81]),
            deep(&[0x9f]),
            deep(&[0xbf, 0x61, b'a']),
            deep(&[0xc0]),
            vec![0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            vec![0xbb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            vec![0x7b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            vec![0x5b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        ],
        "bson" => {
            let mut nested = b"\x05\0\0\0\0".to_vec();
            for _ in 0..20_000 {
                let mut outer = ((nested.len() + 8) as i32).to_le_bytes().to_vec();
                outer.extend_from_slice(b"\x03a\0");
                outer.extend_from_slice(&nested);
                outer.push(0);
                nested = outer;
            }
            vec![nested, b"\x0e\0\0\0\x02a\0\xff\xff\xff\x7fx\0\0".to_vec()]
        }
        _ => vec![],
    }
}

#[test]
fn bombs_are_clean_errors() {
    // The frames of an unoptimised build are many times as large as those that ship.
    let roomy = std::thread::Builder::new().stack_size(16 << 20);
    roomy.spawn(defuse).unwrap().join().unwrap();
}

fn defuse() {
    for &format in Format::ALL {
        for bomb in bombs(format) {
            for bytes in [&bomb[..], &[&bomb[..], b"]]]"].concat()] {
                try_all_ways(format, bytes);
                let error = format.decode::<Value>(bytes).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Malformed, "{}: {error:?}", format.name());
            }
        }
    }
}

/// Values of these kinds, some levels deep.
fn value_of(format: Format) -> BoxedStrategy<Value> {
    let kinds = format.info().keeps;
    let mut leaves: Vec<BoxedStrategy<Value>> = vec![];
    for kind in kinds {
        leaves.push(match kind {
            Kind::Null => Just(Value::Null).boxed(),
            Kind::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
            Kind::Int => any::<i64>().prop_map(Value::Int).boxed(),
            Kind::BigInt => any::<i128>()
                .prop_map(|n| match Value::from_integer(n) {
                    Value::Int(_) => {
                        Value::BigInt("99999999999999999999999999999999999999999".into())
                    }
                    big => big,
                })
                .boxed(),
            Kind::Float => any::<f64>()
                .prop_map(move |f| match loses_float(format, f) || f.is_nan() {
                    true => Value::Float(0.5),
                    false => Value::Float(f),
                })
                .boxed(),
            Kind::Decimal => (any::<i64>(), 1u32..9)
                .prop_map(|(n, scale)| {
                    Value::Decimal(format!("{}.{:0w$}", n, 7, w = scale as usize).into())
                })
                .boxed(),
            Kind::Text => any::<String>().prop_map(Value::Text).boxed(),
            Kind::Bytes => any::<Vec<u8>>().prop_map(Value::Bytes).boxed(),
            Kind::Time => (-377_000_000_000i64..253_000_000_000, 0u32..1_000_000_000)
                .prop_map(|(s, n)| Value::Time(Time::from_unix(s, n).unwrap()))
                .boxed(),
            Kind::List | Kind::Map => continue,
        });
    }
    let leaf = proptest::strategy::Union::new(leaves);
    let (lists, maps) = (kinds.contains(&Kind::List), kinds.contains(&Kind::Map));
    if !lists && !maps {
        return leaf.boxed();
    }
    leaf.prop_recursive(4, 32, 6, move |inner| {
        let list = prop::collection::vec(inner.clone(), 0..6).prop_map(Value::List);
        let map = document_of(inner).prop_map(Value::Map);
        match (lists, maps) {
            (true, true) => prop_oneof![list, map].boxed(),
            (true, false) => list.boxed(),
            _ => map.boxed(),
        }
    })
    .boxed()
}

/// Documents with distinct names, in any order.
fn document_of(value: impl Strategy<Value = Value> + 'static) -> BoxedStrategy<Document> {
    prop::collection::hash_map("[^\0]{0,8}", value, 0..6)
        .prop_map(|entries| entries.into_iter().collect())
        .boxed()
}

/// A record such as the format takes, of the kinds it keeps.
pub fn record_of(format: Format) -> BoxedStrategy<Document> {
    let info = format.info();
    let documents = document_of(value_of(format));
    match info.takes {
        Takes::Rows => documents.prop_filter("a row has a cell", |d| !d.is_empty()).boxed(),
        _ => documents,
    }
}

fn any_format() -> impl Strategy<Value = Format> {
    let formats: Vec<_> =
        Format::ALL.iter().copied().filter(|f| f.info().takes != Takes::Marc).collect();
    prop::sample::select(formats)
}

proptest! {
    #[test]
    fn records_of_kept_kinds_come_back_equal(
        (format, record) in any_format().prop_flat_map(|f| (Just(f), record_of(f)))
    ) {
        prop_assert_eq!(back(format, &record).unwrap(), record, "{}", format.name());
    }

    #[test]
    fn no_bytes_make_it_panic(
        format in prop::sample::select(Format::ALL),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
        noise in any::<Vec<u8>>(),
    ) {
        let mut bytes = specimen(format);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        try_all_ways(format, &bytes);
        bytes.splice(cut.index(bytes.len()).., noise.iter().copied());
        try_all_ways(format, &bytes);
        try_all_ways(format, &noise);
    }
}
