//! Marshal and pickle against real Ruby and real Python, MessagePack and CBOR against the libraries
//! of both: they read what we write as what it is, and we read what they write, thousands of made
//! objects each; and against ourselves, for any value.

use std::{fmt::Write as _, io::Write as _, process::Stdio};

use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use steelyard::{
    format::Format,
    marc::Record,
    record::{Document, Time, Value, dataset::catalogue::Catalogue},
};

use crate::{
    children::Command,
    programs::{self, Missing, Need, need},
};

/// Any value; in maps, no name twice.
fn values() -> impl Strategy<Value = Value> {
    let digits = "[1-9][0-9]{19,80}";
    let single = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        (any::<i64>(), 0..63).prop_map(|(v, bits)| Value::Int(v >> bits)),
        (any::<bool>(), digits).prop_map(|(minus, digits)| {
            Value::BigInt(format!("{}{digits}", if minus { "-" } else { "" }).into())
        }),
        any::<f64>().prop_map(|v| Value::Float(if v.is_nan() { f64::NAN } else { v })),
        (-1000i32..1000).prop_map(|v| Value::Float(f64::from(v) / 8.0)),
        "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,20})?(e-?[1-9][0-9]?)?"
            .prop_map(|digits| Value::Decimal(digits.into())),
        any::<String>().prop_map(Value::Text),
        "[a-z]{0,300}".prop_map(Value::Text),
        proptest::collection::vec(any::<u8>(), 0..300).prop_map(Value::Bytes),
        (-377_000_000_000i64..253_000_000_000, 0u32..1_000_000_000)
            .prop_map(|(s, n)| Value::Time(Time::from_unix(s, n).expect("in range"))),
    ];
    let name = prop_oneof!["ind[12]", "[a-z]{0,3}", any::<String>()];
    single.prop_recursive(5, 64, 8, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..8).prop_map(Value::List),
            proptest::collection::vec((name.clone(), inner), 0..8).prop_map(|entries| {
                let mut map = Document::new();
                entries.into_iter().for_each(|(name, value)| drop(map.insert(name, value)));
                Value::Map(map)
            }),
        ]
    })
}

fn encoded(format: Format, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    format.encode(value, &mut out).expect("encodes");
    out
}

/// A value, each single one in it changed.
fn changed(value: Value, one: &impl Fn(Value) -> Value) -> Value {
    match value {
        Value::List(items) => Value::List(items.into_iter().map(|v| changed(v, one)).collect()),
        Value::Map(map) => {
            Value::Map(map.into_iter().map(|(name, v)| (name, changed(v, one))).collect())
        }
        single => one(single),
    }
}

/// Seconds from 1970 to the year 1, before which Python has no times.
const YEAR_1: i64 = -62_135_596_800;

/// What is left of a value where times have microseconds and begin with the year 1.
fn by_python(value: Value) -> Value {
    changed(value, &|value| match value {
        Value::Time(time) => match time.to_unix() {
            (seconds, _) if seconds < YEAR_1 => Value::Text(time.to_string()),
            (seconds, nanos) => {
                Value::Time(Time::from_unix(seconds, nanos / 1000 * 1000).expect("as it was"))
            }
        },
        other => other,
    })
}

/// What is left of a value after MessagePack: decimals and big numbers are text.
fn by_msgpack(value: Value) -> Value {
    changed(value, &|value| match value {
        Value::Decimal(digits) => Value::Text(digits.into()),
        Value::BigInt(digits) if digits.parse::<u64>().is_err() => Value::Text(digits.into()),
        other => other,
    })
}

/// A value whose times are all within the years of RFC 3339.
fn in_our_years(value: Value) -> Value {
    changed(value, &|value| match value {
        Value::Time(time) if time.to_unix().0 < YEAR_1 => {
            let (seconds, nanos) = time.to_unix();
            Value::Time(Time::from_unix(seconds.rem_euclid(1 << 37), nanos).expect("in range"))
        }
        other => other,
    })
}

/// The value, its decimals in one spelling.
fn normalised(value: Value) -> Value {
    changed(value, &|value| match value {
        Value::Decimal(digits) => Value::Decimal(normal(&digits).into()),
        other => other,
    })
}

proptest! {
    #[test]
    fn marshal_keeps_any_value(value in values()) {
        prop_assert_eq!(Format::Marshal.decode::<Value>(&encoded(Format::Marshal, &value))?, value);
    }

    #[test]
    fn pickle_keeps_any_value_but_nanoseconds(value in values()) {
        let bytes = encoded(Format::Pickle, &value);
        prop_assert_eq!(Format::Pickle.decode::<Value>(&bytes)?, by_python(value));
    }

    #[test]
    fn msgpack_keeps_any_value_but_decimals_and_big_numbers(value in values()) {
        let bytes = encoded(Format::Msgpack, &value);
        prop_assert_eq!(Format::Msgpack.decode::<Value>(&bytes)?, by_msgpack(value));
    }

    #[test]
    fn cbor_keeps_any_value_but_the_spelling_of_decimals(value in values()) {
        let back: Value = Format::Cbor.decode(&encoded(Format::Cbor, &value))?;
        // There is no minus zero among decimals.
        let plus = |value| changed(normalised(value), &|value| match value {
            Value::Decimal(digits) if *digits == *"D-0e0" => Value::Decimal("D0e0".into()),
            other => other,
        });
        prop_assert_eq!(plus(back), plus(value));
    }
}

fn hex(out: &mut String, bytes: &[u8]) {
    bytes.iter().for_each(|b| write!(out, "{b:02x}").expect("a string"));
}

fn unhex(digits: &str) -> Vec<u8> {
    let digit = |b: u8| char::from(b).to_digit(16).expect("hex") as u8;
    digits.as_bytes().chunks(2).map(|b| digit(b[0]) * 16 + digit(b[1])).collect()
}

/// The line a value is in the notation of the peers.
fn show(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push('n'),
        Value::Bool(v) => out.push(if *v { 't' } else { 'f' }),
        Value::Int(v) => write!(out, "i{v}").expect("a string"),
        Value::BigInt(digits) => write!(out, "i{digits}").expect("a string"),
        Value::Float(v) if v.is_nan() => out.push_str("dnan"),
        Value::Float(v) => write!(out, "d{:016x}", v.to_bits()).expect("a string"),
        Value::Decimal(digits) => out.push_str(&normal(digits)),
        Value::Text(text) => {
            out.push('s');
            hex(out, text.as_bytes());
        }
        Value::Bytes(bytes) => {
            out.push('b');
            hex(out, bytes);
        }
        Value::Time(time) => {
            let (seconds, nanos) = time.to_unix();
            write!(out, "T{seconds}.{nanos}").expect("a string");
        }
        Value::List(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { "," });
                show(item, out);
            }
            out.push(']');
        }
        Value::Map(map) => {
            out.push('{');
            for (i, (name, value)) in map.iter().enumerate() {
                out.push_str(if i == 0 { "s" } else { ",s" });
                hex(out, name.as_bytes());
                out.push(':');
                show(value, out);
            }
            out.push('}');
        }
    }
}

/// A decimal as `D`, sign, digits without zeros around them, and where the point stands.
fn normal(decimal: &str) -> String {
    if decimal.ends_with(|c: char| c.is_ascii_alphabetic()) {
        return format!("D{decimal}");
    }
    let (sign, plain) = match decimal.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", decimal),
    };
    let (plain, exponent) = plain.split_once(['e', 'E']).unwrap_or((plain, "0"));
    let (whole, fraction) = plain.split_once('.').unwrap_or((plain, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0');
    let leading = (digits.len() - significant.len()) as i64;
    let point = whole.len() as i64 - leading + exponent.parse::<i64>().expect("a number");
    match significant.trim_end_matches('0') {
        "" => format!("D{sign}0e0"),
        significant => format!("D{sign}{significant}e{point}"),
    }
}

/// What a peer prints, line by line; none where the program is not there.
fn peer(program: &str, arguments: &[&str], input: Vec<u8>) -> Need<Vec<String>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/ruby_python/");
    let script = format!("{folder}peer.{}", if program == "ruby" { "rb" } else { "py" });
    let mut command = Command::new(program);
    command.arg(script).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    programs::found(program)?;
    let mut child = command.spawn().expect("it is there");
    let mut stdin = child.stdin.take().expect("piped");
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().expect("an end");
    writer.join().expect("no panic").expect("all read");
    assert!(output.status.success(), "{program} failed");
    let text = String::from_utf8(output.stdout).expect("text");
    Ok(text.lines().map(str::to_owned).collect())
}

/// The same for a library of the program, to which values go in hex, one a line; none where the
/// program has no such library.
fn library(program: &str, arguments: &[&str], values: &[Vec<u8>]) -> Need<Vec<String>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/ruby_python/");
    let script = format!("{folder}peer.{}", if program == "ruby" { "rb" } else { "py" });
    programs::found(program)?;
    let name = arguments[arguments.len() - 1];
    let check = Command::new(program).args([&script, "check", name]).stdin(Stdio::null()).status();
    if check.expect("it is there").code() == Some(3) {
        let why = format!("{program} has no library for {name} (see scripts/test)");
        return Err(Missing::new(why));
    }
    let mut input = String::new();
    for value in values {
        hex(&mut input, value);
        input.push('\n');
    }
    peer(program, arguments, input.into_bytes())
}

/// What `program`'s library shows of what we write: what `want` makes of the values.
fn library_reads_ours(program: &str, format: Format, want: impl Fn(Value) -> Value) {
    let values: Vec<Value> = made().into_iter().map(in_our_years).collect();
    let bytes: Vec<_> = values.iter().map(|v| encoded(format, v)).collect();
    let lines = need!(library(program, &["show", format.name()], &bytes));
    assert_eq!(lines.len(), values.len());
    for (line, value) in lines.iter().zip(values) {
        let mut expected = String::new();
        show(&want(value), &mut expected);
        // Of zero, no decimal of CBOR tells the sign.
        let plus = |line: &str| line.replace("D-0e0", "D0e0");
        assert!(plus(line) == plus(&expected), "{expected}\nis to {program} {line}");
    }
}

/// Some hundreds of values, the same every time.
fn made() -> Vec<Value> {
    let mut runner = TestRunner::deterministic();
    let strategy = values();
    (0..800).map(|_| strategy.new_tree(&mut runner).expect("a value").current()).collect()
}

/// The single values in a value.
fn singles(value: Value, out: &mut Vec<Value>) {
    match value {
        Value::List(items) => items.into_iter().for_each(|v| singles(v, out)),
        Value::Map(map) => map.into_iter().for_each(|(_, v)| singles(v, out)),
        single => out.push(single),
    }
}

fn reads_ours(program: &str, format: Format, values: &[Value]) {
    let input = values.iter().flat_map(|v| encoded(format, v)).collect();
    let lines = need!(peer(program, &["show"], input));
    assert_eq!(lines.len(), values.len());
    for (line, value) in lines.iter().zip(values) {
        let mut want = String::new();
        show(value, &mut want);
        assert!(*line == want, "{value:?}\nis to {program} {line}");
    }
}

fn we_read(program: &str, format: Format, arguments: &[&str]) -> usize {
    let lines = need!(peer(program, arguments, Vec::new()), return 0);
    for line in &lines {
        let (bytes, want) = line.split_once('\t').expect("a tab");
        let bytes = unhex(bytes);
        let mut got = String::new();
        match format.decode::<Value>(&bytes) {
            Ok(value) => show(&value, &mut got),
            Err(e) => panic!("{e:?}\n{}\n{want}", bytes.escape_ascii()),
        }
        assert!(got == want, "{}\nis {want}\nread {got}", bytes.escape_ascii());
    }
    lines.len()
}

#[test]
fn ruby_reads_what_we_write() {
    let mut values = made();
    // NaN, objects and structs, which are not among them.
    let map = |entries: Vec<(&str, Value)>| Value::Map(entries.into_iter().collect());
    let object = map(vec![("^class", "Plain".into()), ("a", 1.into()), ("b_c", "x".into())]);
    let of_struct = map(vec![("^struct", "Point".into()), ("x", 1.5.into()), ("y", Value::Null)]);
    let range = map(vec![
        ("^class", "Range".into()),
        ("excl", true.into()),
        ("begin", 1.into()),
        ("end", 9.into()),
    ]);
    let inert = map(vec![("^class", "Gem::Requirement".into()), ("^data", Value::List(vec![]))]);
    values.push(Value::List(vec![
        f64::NAN.into(),
        object.clone(),
        of_struct,
        object,
        range,
        inert,
    ]));
    reads_ours("ruby", Format::Marshal, &values);
}

#[test]
fn ruby_writes_what_we_write() {
    // Single values: in lists and maps we link only keys, Ruby whatever is the same object. Not
    // decimals, for which Ruby notes a precision.
    let mut values = Vec::new();
    made().into_iter().for_each(|v| singles(v, &mut values));
    values.retain(|v| !matches!(v, Value::Decimal(_)));
    let input = values.iter().flat_map(|v| encoded(Format::Marshal, v)).collect();
    let lines = need!(peer("ruby", &["again"], input));
    assert!(lines.len() == values.len() && lines.len() > 1000, "{}", lines.len());
    for (line, value) in lines.iter().zip(&values) {
        let mut ours = String::new();
        hex(&mut ours, &encoded(Format::Marshal, value));
        assert_eq!(*line, ours, "{value:?}");
    }
}

#[test]
fn we_read_what_ruby_writes() {
    for seed in 1..=6 {
        we_read("ruby", Format::Marshal, &["make", &seed.to_string(), "400"]);
    }
}

#[test]
fn marc_records_come_back_from_ruby() {
    let catalogue = Catalogue::new(5);
    let records: Vec<Record> = (0..200).map(|n| catalogue.record(n)).collect();
    let mut input = Vec::new();
    for record in &records {
        Format::Marshal.encode_marc(record.as_ref(), &mut input).expect("encodes");
    }
    let lines = need!(peer("ruby", &["again"], input));
    assert_eq!(lines.len(), records.len());
    let mut back = Record::new();
    for (line, record) in lines.iter().zip(&records) {
        Format::Marshal.decode_marc(&unhex(line), &mut back).expect("what Ruby wrote");
        assert_eq!(back, *record);
    }
}

#[test]
fn python_reads_what_we_write() {
    let values: Vec<Value> = made().into_iter().map(by_python).collect();
    reads_ours("python3", Format::Pickle, &values);
}

#[test]
fn python_and_ruby_read_our_msgpack() {
    library_reads_ours("python3", Format::Msgpack, by_msgpack);
    library_reads_ours("ruby", Format::Msgpack, by_msgpack);
}

#[test]
fn python_and_ruby_read_our_cbor() {
    library_reads_ours("python3", Format::Cbor, by_python);
    library_reads_ours("ruby", Format::Cbor, |value| value);
}

#[test]
fn we_read_what_python_writes_as_msgpack_and_cbor() {
    for format in [Format::Msgpack, Format::Cbor] {
        for seed in ["1", "2"] {
            if library("python3", &["check", format.name()], &[]).is_ok() {
                we_read("python3", format, &["make", seed, "400", format.name()]);
            }
        }
    }
}

#[test]
fn we_read_what_ruby_writes_as_msgpack_and_cbor() {
    for format in [Format::Msgpack, Format::Cbor] {
        // Ruby has nothing for decimals here, and its CBOR hands times in text over as tags.
        let plain = |value| match (by_msgpack(in_our_years(value)), format) {
            (value, Format::Cbor) => changed(value, &|value| match value {
                Value::Time(time) => Value::Text(time.to_string()),
                other => other,
            }),
            (value, _) => value,
        };
        let values: Vec<Value> = made().into_iter().map(plain).collect();
        let bytes: Vec<_> = values.iter().map(|v| encoded(format, v)).collect();
        let lines = need!(library("ruby", &["again", format.name()], &bytes));
        assert_eq!(lines.len(), values.len());
        for (line, value) in lines.iter().zip(values) {
            assert_eq!(format.decode::<Value>(&unhex(line)).expect("what Ruby wrote"), value);
        }
    }
}

#[test]
fn we_read_what_python_writes() {
    for protocol in 0..=5 {
        for seed in 1..=2 {
            let (seed, protocol) = (seed.to_string(), protocol.to_string());
            we_read("python3", Format::Pickle, &["make", &seed, "400", &protocol]);
        }
    }
}

#[test]
fn decimals_have_one_normal_form() {
    for (decimal, want) in [
        ("1.50", "D15e1"),
        ("-0.0010", "D-1e-2"),
        ("120e3", "D12e6"),
        ("0.00", "D0e0"),
        ("-0", "D-0e0"),
        ("1.2E+4", "D12e5"),
        ("Infinity", "DInfinity"),
    ] {
        assert_eq!(normal(decimal), want);
    }
}
