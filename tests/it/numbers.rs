//! Numbers of any length through every format: kept, refused, or spelled out as declared, and never
//! another number. `stores/contract/numbers.rs` does the same with stores.

use proptest::prelude::*;
use steelyard::{
    format::{Format, Takes},
    record::{
        Document, Kind, Value,
        number::{self, Exact},
    },
    store::difference,
};

/// Numbers as JSON spells them, at the edges of what readers and stores are known to round.
pub const EDGES: &[&str] = &[
    "0",
    "-0.0",
    "1",
    "-1",
    "0.1",
    "1.50",
    "100.00",
    "1e22",
    "9007199254740991",
    "9007199254740992",
    "9007199254740993",
    "9007199254740993.0",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "9223372036854775809",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "12345678901234567890123",
    "123456789012345678901234567890",
    "-123456789012345678901234567890",
    "100000000000000000000",
    "1e20",
    "0.30000000000000004",
    "0.10000000000000001",
    "0.10000000000000000001",
    "-0.10000000000000000001",
    "123456789.012345678",
    "1234567890.1234567890123456789",
    "12345678901234567890.12345678901234567890",
    "0.1234567890123456789012345678901234567890",
    "1.7976931348623157e308",
    "5e-324",
    "4.9e-324",
    "1e400",
    "-1e400",
    "1e-400",
];

/// The formats of JSON.
const JSON: [Format; 2] = [Format::Json, Format::Sonic];

fn read(format: Format, json: &str) -> Value {
    format.decode(json.as_bytes()).unwrap_or_else(|e| panic!("{}: {json}: {e:?}", format.name()))
}

fn written(format: Format, value: &Value) -> String {
    let mut bytes = Vec::new();
    format.encode(value, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// The same number, and written alike, but for zeros at the end and how an exponent is spelled.
#[track_caller]
fn same(a: &str, b: &str) {
    let exact = |text| Exact::read(text).unwrap_or_else(|| panic!("{text:?} is no number"));
    assert!(exact(a) == exact(b), "{a} became {b}");
}

#[test]
fn json_gives_back_every_digit_wherever_the_number_stands() {
    for format in JSON {
        // sonic-rs has one zero, as its format says.
        let minus = |edge: &&&str| !(**edge == "-0.0" && format == Format::Sonic);
        for edge in EDGES.iter().filter(minus) {
            for (before, after) in [
                ("", ""),
                (" ", "\n"),
                ("[", "]"),
                ("[0.0, ", ",\"é\\n\"]"),
                ("{\"a\":{\"b\":[", "]}}"),
            ] {
                let json = format!("{before}{edge}{after}");
                let value = read(format, &json);
                let back = written(format, &value);
                assert_eq!(read(format, &back), value, "{}: {json}", format.name());
                let mut number = &value;
                loop {
                    number = match number {
                        Value::List(list) => list.iter().rfind(|v| number::is_number(v)).unwrap(),
                        Value::Map(map) => map.iter().next().unwrap().1,
                        _ => break,
                    };
                }
                match number {
                    Value::Float(_) => same(edge, &written(format, number)),
                    number => assert_eq!(written(format, number), *edge, "{json}"),
                }
                assert_eq!(
                    Some(number),
                    number::of_json(edge).as_ref(),
                    "{}: {json}",
                    format.name()
                );
            }
        }
    }
}

#[test]
fn types_of_the_caller_are_read_as_before() {
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Order {
        price: f64,
        count: u8,
        some: Option<i128>,
        unit: Unit,
        rest: Document,
        #[serde(default)]
        names: std::collections::BTreeMap<u16, Value>,
    }
    #[derive(Debug, PartialEq, serde::Deserialize)]
    enum Unit {
        Piece,
        Box(u32),
    }
    for format in JSON {
        let json = r#"{"price": 0.12345678901234567890123, "count": 3, "some": -170141183460469231731,
            "unit": {"Box": 12}, "rest": {"n": 123456789012345678901234567890, "t": "a\"b"},
            "names": {"7": [1e400, null, true]}}"#;
        let order: Order = format.decode(json.as_bytes()).unwrap();
        assert_eq!(Ok(order.price), "0.12345678901234567890123".parse());
        assert_eq!((order.count, order.some), (3, Some(-170_141_183_460_469_231_731)));
        assert_eq!(order.unit, Unit::Box(12));
        let big = Value::BigInt("123456789012345678901234567890".into());
        assert_eq!(order.rest, Document::from_iter([("n", big), ("t", "a\"b".into())]));
        let names = Value::List(vec![Value::Decimal("1e400".into()), Value::Null, true.into()]);
        assert_eq!(order.names, [(7, names)].into());
        let piece = json.replace("{\"Box\": 12}", "\"Piece\"");
        assert_eq!(format.decode::<Order>(piece.as_bytes()).unwrap().unit, Unit::Piece);
        // What a type cannot hold is an error as ever.
        for wrong in [
            json.replace("\"count\": 3", "\"count\": 300"),
            json.replace("0.123", "1e400, \"x\": 0.1"),
        ] {
            format.decode::<Order>(wrong.as_bytes()).unwrap_err();
        }
    }
}

#[test]
fn what_is_no_json_is_refused_with_long_numbers_too() {
    for format in JSON {
        for json in [
            "[1e400",
            "[1e400,]",
            "{\"a\":1e400,}",
            "{1:1e400}",
            "[1e400 2]",
            "1e400 x",
            "[1e400, nul]",
            "[1e400, \"a]",
            "[1e400, \"\\x\"]",
            "[1e99999999999]",
            "[01e400]",
            "[1e400, .5]",
            "-",
            "[-]",
            "[1e400, \"\u{1}\"]",
        ] {
            let error = format.decode::<Value>(json.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), steelyard::ErrorKind::Malformed, "{json}");
        }
    }
    let deep = format!("[1e400, {}{}]", "[".repeat(200), "]".repeat(200));
    Format::Json.decode::<Value>(deep.as_bytes()).unwrap_err();
}

#[test]
fn no_format_makes_another_number_of_a_number() {
    for &format in Format::ALL.iter().filter(|f| f.info().takes != Takes::Marc) {
        let info = format.info();
        for edge in EDGES {
            let number = number::of_json(edge).unwrap();
            let nested = Value::List(vec![Document::from_iter([("a", number.clone())]).into()]);
            for value in [number.clone(), nested] {
                let record = Document::from_iter([("before", "x".into()), ("v", value)]);
                let mut bytes = Vec::new();
                match format.encode(&record, &mut bytes) {
                    Ok(()) => {
                        let read: Document = format.decode(&bytes).unwrap();
                        let minus = *edge == "-0.0" && info.loses.contains("minus zero");
                        // The same number in other digits is none of the kinds that are kept.
                        let spelled = info.loses.contains("spelled differently");
                        let other = |kind: &Kind| !(spelled && *kind == Kind::Decimal);
                        let keeps: Vec<Kind> = info.keeps.iter().copied().filter(other).collect();
                        let found = difference(&record, &read, &keeps);
                        assert!(minus || found.is_none(), "{}: {found:?}", info.name);
                    }
                    Err(e) => assert_eq!(e.kind(), steelyard::ErrorKind::Unsupported, "{e:?}"),
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn any_number_comes_back_from_json(
        sign in "-?",
        whole in "0|[1-9][0-9]{0,39}",
        fraction in "(\\.[0-9]{1,40})?",
        exponent in "([eE][+-]?[0-9]{1,3})?",
        before in "[a-z0-9.]{0,20}",
    ) {
        let text = format!("{sign}{whole}{fraction}{exponent}");
        // sonic-rs has one zero.
        prop_assume!(sign.is_empty() || Exact::read(&text) != Exact::read("0"));
        let json = format!("{{\"{before}\":[0.0,{text}]}}");
        let values = JSON.map(|format| read(format, &json));
        prop_assert_eq!(&values[0], &values[1]);
        for (format, value) in JSON.iter().zip(&values) {
            let back = written(*format, value);
            let digits = back.rsplit(',').next().unwrap().trim_end_matches("]}");
            prop_assert!(Exact::read(digits) == Exact::read(&text), "{} became {}", text, digits);
        }
    }

    #[test]
    fn floats_come_back_as_floats(bits: u64) {
        let v = f64::from_bits(bits);
        prop_assume!(v.is_finite());
        for format in JSON {
            let value = Value::List(vec![Value::Float(v)]);
            let want = match format {
                Format::Sonic if v == 0.0 => continue,
                _ => value.clone(),
            };
            prop_assert_eq!(read(format, &written(format, &value)), want);
        }
    }
}
