//! What each tag of the IANA registry becomes: a value of its own kind, what it stands before, or an error at
//! the tag. Never another value than the bytes say.

use dashu_int::IBig;

use super::*;
use crate::record::{Time, Value};

/// Tags that are passed over: hints, kinds of text and bytes, lists and maps that lose nothing but their name.
const PASSED: &[u64] = &[
    16,
    17,
    18,
    19,
    21,
    22,
    23,
    24,
    26,
    27,
    28,
    31,
    32,
    33,
    34,
    35,
    36,
    37,
    38,
    39,
    40,
    41,
    42,
    43,
    44,
    45,
    46,
    47,
    48,
    49,
    50,
    51,
    52,
    54,
    61,
    63,
    64,
    65,
    66,
    67,
    68,
    69,
    70,
    71,
    72,
    73,
    74,
    75,
    77,
    78,
    79,
    80,
    81,
    82,
    83,
    84,
    85,
    86,
    87,
    96,
    97,
    98,
    100,
    101,
    103,
    104,
    110,
    111,
    112,
    114,
    120,
    121,
    122,
    123,
    124,
    125,
    126,
    127,
    128,
    256,
    257,
    258,
    259,
    260,
    261,
    262,
    263,
    266,
    267,
    271,
    272,
    273,
    274,
    275,
    276,
    277,
    278,
    279,
    280,
    500,
    501,
    1002,
    1003,
    1004,
    1010,
    1011,
    1012,
    1040,
    1048,
    1280,
    1400,
    1401,
    10_000,
    18_300,
    21_065,
    22_098,
    25_441,
    28_259,
    40_000,
    40_001,
    43_000,
    43_001,
    50_997,
    51_966,
    55_799,
    55_800,
    55_801,
    65_535,
    1_330_664_270,
    1_398_229_316,
    u64::MAX - 1,
];

fn tagged(tag: u64, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(TAG, tag, &mut bytes);
    bytes.extend_from_slice(content);
    bytes
}

fn unhex(digits: &str) -> Vec<u8> {
    let digit = |b: u8| char::from(b).to_digit(16).unwrap() as u8;
    digits.as_bytes().chunks(2).map(|b| digit(b[0]) * 16 + digit(b[1])).collect()
}

fn read(bytes: &[u8]) -> Result<Value> {
    decode(bytes, std::marker::PhantomData::<Value>)
}

fn decimal(digits: &str) -> Value {
    Value::Decimal(digits.into())
}

#[test]
fn what_a_tag_is_passed_over_for_is_the_same_value() {
    let contents = ["01", "20", "6161", "4161", "820102", "a16161f5", "f6", "fb3ff8000000000000"];
    for &tag in PASSED {
        for content in contents.map(unhex) {
            let alone = read(&content).unwrap();
            assert_eq!(read(&tagged(tag, &content)).unwrap(), alone, "{tag}");
            // Under itself, and in a list behind others.
            assert_eq!(read(&tagged(tag, &tagged(tag, &content))).unwrap(), alone, "{tag}");
        }
    }
}

#[test]
fn tags_of_own_kinds_are_read_exactly() {
    let time = |s, n| Value::Time(Time::from_unix(s, n).unwrap());
    let big = |digits: &str| Value::BigInt(digits.into());
    let long = format!("c5823903e7{}", "01");
    let two_to_1000 = IBig::from(1) << 1000;
    let five_to_1000 = IBig::from(5).pow(1000).to_string();
    let (point, lead) = (five_to_1000.len() as i64 - 1, &five_to_1000[..1]);
    let tiny = format!("{lead}.{}E{}", &five_to_1000[1..], point - 1000);
    for (bytes, want) in [
        ("c074313937302d30312d30315430303a30303a30315a", time(1, 0)),
        ("c101", time(1, 0)),
        ("c1fb3ff8000000000000", time(1, 500_000_000)),
        ("d903e9a10101", time(1, 0)),
        ("c249010000000000000000", big("18446744073709551616")),
        ("c24105", 5.into()),
        ("c25f41014100ff", 256.into()),
        ("c34105", (-6).into()),
        // RFC 8949, 3.4.4.
        ("c48221196ab3", decimal("273.15")),
        ("c5822003", decimal("1.5")),
        // Of unknown length, of big numbers, with an exponent that is one in form only.
        ("c49f21196ab3ff", decimal("273.15")),
        ("c482c24101c24102", decimal("2E+1")),
        ("c48221c249010000000000000000", decimal("184467440737095516.16")),
        ("c59f2003ff", decimal("1.5")),
        ("c5822020", decimal("-0.5")),
        ("c5822203", decimal("0.375")),
        ("c5821863 01", decimal("633825300114114700748351602688")),
        ("c582200a", decimal("5")),
        ("c5821b7fffffffffffffff00", Value::Null),
        ("c582190fff00", decimal("0")),
        ("d90109822003", decimal("1.5")),
        ("d9010882 21196ab3", decimal("273.15")),
        ("c5821903e801", decimal(&two_to_1000.to_string())),
        (&*long, decimal(&tiny)),
        // The least float of 64 bits: 2 to the power of -1074.
        ("c58239043101", decimal(&least())),
    ] {
        let bytes = unhex(&bytes.replace(' ', ""));
        match want {
            Value::Null => assert!(read(&bytes).is_err()),
            want => assert_eq!(read(&bytes).unwrap(), want, "{bytes:02x?}"),
        }
    }
}

/// All digits of the least float.
fn least() -> String {
    let digits = IBig::from(5).pow(1074).to_string();
    format!("{}.{}E{}", &digits[..1], &digits[1..], digits.len() as i64 - 1 - 1074)
}

#[test]
fn what_would_be_another_value_is_refused_at_the_tag() {
    for (bytes, want) in [
        ("c201", "byte 1: tag 2, a whole number by its bytes"),
        ("c26161", "byte 1: tag 2"),
        ("c3820102", "byte 1: tag 3"),
        ("c2d54101", "byte 1: tag 2"),
        ("c401", "byte 1: tag 4, a decimal or a bigfloat, before something else"),
        ("c48120", "byte 1: tag 4"),
        ("c482f601", "byte 1: tag 4"),
        ("c483010203", "byte 1: tag 4"),
        ("c49f010203ff", "byte 1: tag 4"),
        ("c4c4c401", "byte 1: tag 4"),
        ("c582fb3ff800000000000001", "byte 1: tag 5"),
        ("c5a10102", "byte 1: tag 5"),
        ("c482c2581001000000000000000000000000000000 01", "byte 1: tag 4, with an exponent beyond"),
        ("c4821a8000000001", "byte 1: tag 4, with an exponent beyond"),
        ("c5821a7fffffff01", "byte 1: tag 5, a power of two with too many digits"),
        ("c5823a7ffffffe01", "byte 1: tag 5, a power of two with too many digits"),
        ("d9010982c249010000000000000000 01", "byte 1: tag 265, with an exponent beyond"),
        ("d81901", "byte 1: tag 25, a reference to a text"),
        ("d81d00", "byte 1: tag 29, a reference to a value"),
        ("d81e820103", "byte 1: tag 30, a fraction"),
        ("d9010c83010203", "byte 1: tag 268"),
        ("d9010d83010203", "byte 1: tag 269"),
        ("d9010e83010203", "byte 1: tag 270"),
    ] {
        let bytes = unhex(&bytes.replace(' ', ""));
        let error = read(&[&[0x81], &bytes[..]].concat()).unwrap_err();
        assert!(error.to_string().starts_with(want), "{bytes:02x?}: {error}");
    }
}

#[test]
fn the_digits_of_a_record_are_bounded_by_its_bytes() {
    // Powers of two, each of which has a few hundred digits more than the bytes that say it.
    let mut bytes = vec![0x99, 0x03, 0xe8];
    for _ in 0..1000 {
        bytes.extend_from_slice(&[0xc5, 0x82, 0x39, 0x01, 0xff, 0x01]);
    }
    let error = read(&bytes).unwrap_err();
    assert!(error.to_string().contains("too many digits"), "{error}");
    // With bytes of their own beside them they are read.
    bytes[0] = 0x82;
    bytes.splice(1..3, [0x99, 0x03, 0xe8]);
    bytes.extend_from_slice(&[0x59, 0x80, 0x00]);
    bytes.resize(bytes.len() + 0x8000, 0);
    assert!(read(&bytes).is_ok());
}

#[test]
fn a_time_or_a_text_that_is_none_stays_what_it_is() {
    for (bytes, want) in [
        ("c063616263", Value::from("abc")),
        ("c11b7fffffffffffffff", i64::MAX.into()),
        ("c1f97e00", Value::Float(f64::NAN)),
        ("d903ec6a323031332d31302d3039", "2013-10-09".into()),
    ] {
        let (read, want) = (read(&unhex(bytes)).unwrap(), want);
        assert_eq!(format!("{read:?}"), format!("{want:?}"));
    }
}

/// The least whole number there is has no positive one: as an exponent it is an error, not a panic.
#[test]
fn the_least_exponent_is_an_error() {
    for tag in [0xc4, 0xc5] {
        let bytes = [&[0xa1, 0x61, b'a', tag, 0x82, 0x3b, 0x7f][..], &[0xff; 7], &[0x01]].concat();
        let error = crate::format::Format::Cbor.decode_document(&bytes).unwrap_err();
        assert!(error.to_string().contains("exponent"), "{error}");
    }
}
