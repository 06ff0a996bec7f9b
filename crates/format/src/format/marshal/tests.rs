//! Tests with fixed bytes that Ruby wrote and reads, and with malformed bytes.

use std::{collections::BTreeMap, marker::PhantomData};

use serde::{Deserialize, Serialize};

use super::*;
use crate::{
    ErrorKind,
    format::DEPTH,
    record::{Document, Value},
};

fn dump<T: Serialize>(value: &T) -> Vec<u8> {
    let mut out = b"before".to_vec();
    encode(value, &mut out).unwrap();
    out.split_off(6)
}

fn load(bytes: &[u8]) -> Result<Value> {
    decode(bytes)
}

fn decode<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T> {
    super::decode(bytes, PhantomData)
}

/// What Ruby 3.1 wrote, without the version.
fn ruby(body: &[u8]) -> Value {
    let bytes = [&HEADER[..], body].concat();
    assert_eq!(length(&bytes).unwrap(), Some(bytes.len()));
    load(&bytes).unwrap()
}

fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    Value::Map(entries.into_iter().collect())
}

#[test]
fn writes_what_ruby_writes() {
    let (hundred, thousand) = ("x".repeat(100), "x".repeat(1000));
    let cases: [(Value, &[u8]); 18] = [
        (Value::Null, b"0"),
        (true.into(), b"T"),
        (0.into(), b"i\0"),
        (122.into(), b"i\x7f"),
        (123.into(), b"i\x01\x7b"),
        (256.into(), b"i\x02\0\x01"),
        ((-123).into(), b"i\x80"),
        ((-124).into(), b"i\xff\x84"),
        ((-257).into(), b"i\xfe\xff\xfe"),
        (((1 << 30) - 1).into(), b"i\x04\xff\xff\xff\x3f"),
        ((1 << 30).into(), b"l+\x07\0\0\0\x40"),
        ((-(1i64 << 30)).into(), b"i\xfc\0\0\0\xc0"),
        ((-(1i64 << 30) - 1).into(), b"l-\x07\x01\0\0\x40"),
        (1e100.into(), b"f\x0a1e100"),
        ("é".into(), b"I\"\x07\xc3\xa9\x06:\x06ET"),
        (vec![1u8, 255].into(), b"\"\x07\x01\xff"),
        (hundred.as_str().into(), &[b"I\"\x69", hundred.as_bytes(), b"\x06:\x06ET"].concat()),
        (
            thousand.as_str().into(),
            &[b"I\"\x02\xe8\x03", thousand.as_bytes(), b"\x06:\x06ET"].concat(),
        ),
    ];
    for (value, want) in cases {
        let bytes = dump(&value);
        assert_eq!(bytes[..2], HEADER);
        assert_eq!(bytes[2..], *want, "{value:?}");
        assert_eq!(ruby(want), value);
    }
}

#[test]
fn links_repeated_keys_and_symbols() {
    let item = || map([("ind1", "1".into())]);
    let bytes = dump(&Value::List(vec![item(), item()]));
    assert_eq!(
        bytes[2..],
        *b"[\x07{\x06I\"\x09ind1\x06:\x06ETI\"\x061\x06;\0T{\x06@\x07I\"\x061\x06;\0T"
    );
    assert_eq!(load(&bytes).unwrap(), Value::List(vec![item(), item()]));
}

#[test]
fn keys_find_their_object_among_all_kinds() {
    let time: Value = Value::Time("2020-01-02T03:04:05.123456789Z".parse().unwrap());
    let item = || {
        map([
            ("time", time.clone()),
            ("float", 1.5.into()),
            ("big", (1i64 << 40).into()),
            ("bytes", vec![1u8].into()),
            ("decimal", Value::Decimal("1.50".into())),
            ("object", map([("^class", "Foo::Bar".into()), ("a", time.clone()), ("b", 1.into())])),
            ("list", Value::List(vec![])),
        ])
    };
    let list = Value::List(vec![item(), item(), item()]);
    let bytes = dump(&list);
    assert_eq!(load(&bytes).unwrap(), list);
    assert_eq!(bytes.windows(7).filter(|w| w == b"decimal").count(), 1);
}

#[test]
fn reads_strings_by_their_encoding() {
    assert_eq!(ruby(b"\"\x06a"), vec![b'a'].into());
    assert_eq!(ruby(b"I\"\x06a\x06:\x06EF"), "a".into());
    assert_eq!(ruby(b"I\"\x06\xff\x06:\x06ET"), vec![255].into());
    assert_eq!(ruby(b"I\"\x06\xff\x06:\x06EF"), vec![255].into());
    assert_eq!(ruby(b"I\"\x06a\x06:\rencoding\"\x0eShift_JIS"), "a".into());
    assert_eq!(ruby(b"I\"\x07\x83\x41\x06:\rencoding\"\x0eShift_JIS"), vec![0x83, 0x41].into());
    // ASCII bytes, but not ASCII text.
    assert_eq!(ruby(b"I\"\x07a\0\x06:\rencoding\"\rUTF-16LE"), vec![b'a', 0].into());
    // More variables, in any order, and one of them a list.
    assert_eq!(ruby(b"I\"\x06a\x07:\x08@xs[\x06i\x06:\x06ET"), "a".into());
    assert_eq!(ruby(b"[\x07:\x06a;\0"), Value::List(vec!["a".into(), "a".into()]));
    assert_eq!(ruby(b"I:\x07\xc3\xa9\x06:\x06ET"), "é".into());
    // The encoding's name is an object too, and can be linked to.
    assert_eq!(
        ruby(b"[\x08I\"\x06a\x06:\rencoding\"\x0eShift_JISI\"\x06b\x06;\0@\x07@\x07"),
        Value::List(vec!["a".into(), "b".into(), b"Shift_JIS".to_vec().into()])
    );
}

#[test]
fn reads_what_is_not_plain_data_as_data() {
    assert_eq!(ruby(b"}\x06:\x06ai\x06i\x0a"), map([("a", 1.into())]));
    assert_eq!(ruby(b"C:\tHash{\x06i\x06i\x07"), map([("1", 2.into())]));
    assert_eq!(
        ruby(b"o:\nRange\x08:\texclF:\nbegini\x06:\x08endi\x0a"),
        map([
            ("^class", "Range".into()),
            ("excl", false.into()),
            ("begin", 1.into()),
            ("end", 5.into())
        ])
    );
    assert_eq!(
        ruby(b"S:\nPoint\x07:\x06xi\x06:\x06yi\x07"),
        map([("^struct", "Point".into()), ("x", 1.into()), ("y", 2.into())])
    );
    assert_eq!(
        ruby(b"U:\rRational[\x07i\x08i\x06"),
        map([("^class", "Rational".into()), ("^data", Value::List(vec![3.into(), 1.into()]))])
    );
    assert_eq!(
        ruby(b"Iu:\x08Foo\x08abc\x06:\x06ET"),
        map([("^class", "Foo".into()), ("^dump", "abc".into())])
    );
    assert_eq!(
        ruby(b"I/\x07ab\x01\x06:\x06EF"),
        map([("^class", "Regexp".into()), ("^source", "ab".into()), ("^options", 1.into())])
    );
    assert_eq!(ruby(b"c\x0bString"), map([("^class", "Class".into()), ("^name", "String".into())]));
    assert_eq!(
        ruby(b"m\x0fComparable"),
        map([("^class", "Module".into()), ("^name", "Comparable".into())])
    );
    assert_eq!(ruby(b"e:\x0fComparable[\x06i\x06"), Value::List(vec![1.into()]));
    assert_eq!(
        ruby(b"[\x08I\"\x06a\x06:\x06ET@\x06[\x06@\x06"),
        Value::List(vec!["a".into(), "a".into(), Value::List(vec!["a".into()])])
    );
    assert_eq!(ruby(b"{\x060T"), map([("null", true.into())]));
    assert_eq!(ruby(b"{\x06f\x081.5T"), map([("1.5", true.into())]));
    assert_eq!(ruby(b"u:\x0fBigDecimal\x0e18:0.15e1"), Value::Decimal("1.5".into()));
}

#[test]
fn writes_only_harmless_objects() {
    let object = map([("^class", "Foo".into()), ("a", 1.into())]);
    assert_eq!(dump(&object)[2..], *b"o:\x08Foo\x06:\x07@ai\x06");
    let of_struct = map([("^struct", "Foo".into()), ("a", 1.into())]);
    assert_eq!(dump(&of_struct)[2..], *b"S:\x08Foo\x06:\x06ai\x06");
    assert_eq!(dump(&map([("^class", "Foo".into())]))[2..], *b"o:\x08Foo\0");
    // Everything else stays a hash, and comes back the same.
    for value in [
        map([("^class", "Foo".into()), ("^data", Value::List(vec![]))]),
        map([("^class", "Foo".into()), ("^dump", "x".into())]),
        map([("^class", "foo".into()), ("a", 1.into())]),
        map([("^class", "Foo; exit".into()), ("a", 1.into())]),
        map([("^class", 5.into())]),
        map([("^class", "Foo".into()), ("", 1.into())]),
        map([("a", 1.into()), ("^class", "Foo".into())]),
    ] {
        let bytes = dump(&value);
        assert_eq!(load(&bytes).unwrap(), value);
        let is_object = bytes[2] == b'o';
        assert_eq!(is_object, value.as_map().unwrap().get("").is_some(), "{value:?}");
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct User {
    id: u32,
    name: String,
    #[serde(default)]
    kind: Option<Kind>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Kind {
    Plain,
    Named(String),
    Pair(i8, i8),
    Full { since: u16, of: BTreeMap<i32, char> },
}

#[test]
fn typed_records_from_hashes_objects_and_structs() {
    let want = User { id: 7, name: "Ada".into(), kind: None };
    for body in [
        &b"{\x07I\"\x07id\x06:\x06ETi\x0cI\"\x09name\x06;\0TI\"\x08Ada\x06;\0T"[..],
        b"{\x07:\x07idi\x0c:\x09nameI\"\x08Ada\x06:\x06ET",
        b"{\x08:\x07idi\x0c:\x09name\"\x08Ada:\x0aextra[\x07i\x06i\x07",
        b"o:\x09User\x07:\x08@idi\x0c:\x0a@nameI\"\x08Ada\x06:\x06ET",
        b"S:\x09User\x07:\x07idi\x0c:\x09name:\x08Ada",
    ] {
        let bytes = [&HEADER[..], body].concat();
        assert_eq!(decode::<User>(&bytes).unwrap(), want, "{body:?}");
    }
    for kind in [
        Kind::Plain,
        Kind::Named("x".into()),
        Kind::Pair(-1, 1),
        Kind::Full { since: 2026, of: [(-5, 'ü'), (300, 'x')].into() },
    ] {
        let user = User { id: u32::MAX, name: String::new(), kind: Some(kind) };
        assert_eq!(decode::<User>(&dump(&user)).unwrap(), user);
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Strict {
        a: u8,
    }
    #[derive(Deserialize)]
    struct Asks {
        #[serde(rename = "^class")]
        class: String,
    }
    let bytes = [&HEADER[..], b"o:\x08Foo\x06:\x07@ai\x06"].concat();
    assert_eq!(decode::<Strict>(&bytes).unwrap().a, 1);
    assert_eq!(decode::<Asks>(&bytes).unwrap().class, "Foo");
}

#[test]
fn counts_that_were_not_known_are_put_right() {
    struct Lies(Option<usize>, usize);
    impl Serialize for Lies {
        fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
            use serde::ser::SerializeMap;
            let mut map = s.serialize_map(self.0)?;
            for i in 0..self.1 {
                map.serialize_entry(&format!("k{i}"), &[Some("key"), None])?;
            }
            map.end()
        }
    }
    for told in [None, Some(0), Some(1), Some(3), Some(200)] {
        for count in [0, 1, 2, 200, 70_000] {
            let bytes = dump(&[Lies(told, count), Lies(told, count)]);
            let read: Vec<Document> = decode(&bytes).unwrap();
            assert_eq!(read.iter().map(Document::len).collect::<Vec<_>>(), [count, count]);
        }
    }
}

fn sample() -> Vec<u8> {
    let time = Value::Time("1999-12-31T23:59:59.123456789Z".parse().unwrap());
    let item = map([
        ("name", "Grüße".into()),
        ("long", "x".repeat(300).into()),
        ("n", Value::List(vec![1.into(), 70_000.into(), (-(1i64 << 50)).into(), 1.5.into()])),
        ("big", Value::BigInt("123456789012345678901234567890".into())),
        ("time", time),
        ("raw", vec![0u8, 200].into()),
        ("decimal", Value::Decimal("-1.5e-7".into())),
        ("object", map([("^class", "Foo".into()), ("x", Value::Null)])),
    ]);
    dump(&Value::List(vec![item.clone(), item, true.into()]))
}

#[test]
fn cut_anywhere_is_an_error_and_has_no_length() {
    let bytes = sample();
    assert!(load(&bytes).is_ok());
    for n in 0..bytes.len() {
        assert!(load(&bytes[..n]).is_err(), "cut at {n}");
        assert_eq!(length(&bytes[..n]).unwrap(), None, "cut at {n}");
    }
    let mut two = bytes.clone();
    two.extend_from_slice(&bytes);
    assert_eq!(length(&two).unwrap(), Some(bytes.len()));
    let error = load(&two).unwrap_err();
    assert_eq!(error.place().offset, Some(bytes.len() as u64));
}

#[test]
fn any_mutation_is_read_or_refused() {
    let bytes = sample();
    let mut state = 1u64;
    let mut random = move |n: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n
    };
    let (mut read, mut refused) = (0, 0);
    for _ in 0..20_000 {
        let mut bytes = bytes.clone();
        for _ in 0..1 + random(4) {
            let at = random(bytes.len());
            match random(3) {
                0 => bytes[at] = random(256) as u8,
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, b"@;I[{:\"CeuUoSfl/cm0TFi\x04\xff"[random(24)]),
            }
        }
        let _ = length(&bytes);
        let _ = decode::<User>(&bytes);
        let _ = decode::<serde::de::IgnoredAny>(&bytes);
        match load(&bytes) {
            Ok(_) => read += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(read > 100 && refused > 100, "{read} read, {refused} refused");
}

#[test]
fn lengths_are_checked_against_what_is_left() {
    let huge = b"\x04\xff\xff\xff\x7f";
    for tag in [&b"["[..], b"{", b"\"", b"f", b"l+", b"o:\x06A", b"S:\x06A", b"u:\x06A", b":", b"/"]
    {
        let bytes = [&HEADER[..], tag, &huge[..], b"0123456789"].concat();
        let error = load(&bytes).unwrap_err();
        assert!(error.context().contains("a length of 2147483647"), "{tag:?}: {error}");
        assert_eq!(length(&bytes).unwrap(), None);
        let negative = [&HEADER[..], tag, b"\xfa", b"0123456789"].concat();
        assert_eq!(load(&negative).unwrap_err().kind(), ErrorKind::Malformed);
        assert!(length(&negative).is_err());
    }
}

#[test]
fn depth_has_a_limit_both_ways() {
    let nested = |n: usize, open: &[u8]| [&HEADER[..], &open.repeat(n), b"0"].concat();
    for open in
        [&b"[\x06"[..], b"{\x06i\0", b"U:\x06A", b"o:\x06A\x06:\x07@a", b"S:\x06A\x06:\x06a"]
    {
        assert!(load(&nested(DEPTH, open)).is_ok());
        for n in [DEPTH + 1, 100_000] {
            let error = load(&nested(n, open)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TooLarge, "{open:?}");
        }
        let deep = nested(100_000, open);
        assert_eq!(length(&deep).unwrap(), Some(deep.len()));
        decode::<serde::de::IgnoredAny>(&deep).unwrap();
    }
    // Variables of strings and of times, inside one another: passed over, not descended into.
    for open in [
        &b"I:\x06a\x06"[..],
        b"I:\x06a\x06:\x06E",
        b"o",
        b"oI:\x06a\x06",
        b"eI:\x06a\x06",
        b"I",
        b"e:\x06A",
        b"I\"\0\x06:\x06a",
        b"I\"\0\x06:\rencoding",
        b"Iu:\tTime\0\x06:\rnano_num",
    ] {
        let _ = load(&nested(100_000, open));
    }
    let value = |n| (0..n).fold(Value::Null, |v, _| Value::List(vec![v]));
    assert_eq!(load(&dump(&value(DEPTH))).unwrap(), value(DEPTH));
    let error = encode(&value(DEPTH + 1), &mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
}

#[test]
fn links_cannot_blow_up() {
    // Each list holds the one before ten times.
    let mut bomb = [&HEADER[..], b"[\x23[\x0fI\"\x09lolo\x06:\x06ET"].concat();
    bomb.extend_from_slice(&b"@\x07".repeat(9));
    let mut previous = 6;
    for n in 0..29 {
        bomb.extend_from_slice(b"[\x0f");
        bomb.extend_from_slice(&[b'@', previous].repeat(10));
        // The lists are the objects 1, 3, 4, ...
        previous = if n == 0 { 8 } else { previous + 1 };
    }
    let start = std::time::Instant::now();
    let error = load(&bomb).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    assert!(start.elapsed().as_secs() < 5);
    // A link to a long text, again and again.
    let text = "x".repeat(10_000);
    let mut bomb =
        [&HEADER[..], b"[\x02\xe8\x03I\"\x02\x10\x27", text.as_bytes(), b"\x06:\x06ET"].concat();
    bomb.extend_from_slice(&b"@\x06".repeat(999));
    assert_eq!(load(&bomb).unwrap_err().kind(), ErrorKind::TooLarge);
    // The same with a symbol.
    let mut bomb = [&HEADER[..], b"[\x02\xe8\x03:\x02\x10\x27", text.as_bytes()].concat();
    bomb.extend_from_slice(&b";\0".repeat(999));
    assert_eq!(load(&bomb).unwrap_err().kind(), ErrorKind::TooLarge);
}

#[test]
fn refuses_what_contains_itself_and_links_to_nowhere() {
    for (body, want) in [
        (&b"[\x06@\0"[..], "inside itself"),
        (b"{\x06i\0[\x06@\0", "inside itself"),
        (b"o:\x06A\x06:\x07@a@\0", "inside itself"),
        (b"[\x06@\x07", "object 2"),
        (b"[\x06@\xfa", "object -1"),
        (b";\0", "symbol 0"),
        (b"[\x07:\x06a;\x06", "symbol 1"),
        (b"?", "'?' where a value"),
        (b"o\"\x06a\0", "'\"' where a symbol"),
        (b"l*\0", "'*' as the sign"),
        (b"f\x071x", "not a Float"),
        (b"I\"\x06a\0\0\0\0", "3 bytes after"),
    ] {
        let error = load(&[&HEADER[..], body].concat()).unwrap_err();
        assert!(error.to_string().contains(want), "{body:?}: {error}");
        assert!(error.place().offset.is_some());
    }
    assert!(load(b"\x04\x09i\0").unwrap_err().to_string().contains("not Marshal 4.8"));
    assert!(length(b"{\"a\":1}").is_err());
}
