//! Tests with fixed bytes that Python wrote and reads, and with malformed bytes.

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

/// What Python wrote. The machine has to agree with the direct way, where that reads it.
fn python(bytes: &[u8]) -> Value {
    assert_eq!(length(bytes).unwrap(), Some(bytes.len()));
    let read: Value = de::decode::<&str, _>(PhantomData, bytes).unwrap();
    if let Ok(direct) = direct::decode::<&str, _>(PhantomData::<Value>, bytes) {
        assert_eq!(direct, read);
    }
    assert_eq!(load(bytes).unwrap(), read);
    read
}

fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    Value::Map(entries.into_iter().collect())
}

fn list<const N: usize>(items: [Value; N]) -> Value {
    Value::List(items.into())
}

#[test]
fn writes_one_frame_and_links_keys() {
    let item = || map([("ind1", "1".into())]);
    let bytes = dump(&list([item(), item()]));
    let body = b"](}\x8c\x04ind1\x94\x8c\x011s}h\0\x8c\x011se.";
    let head = [&b"\x80\x04\x95"[..], &(body.len() as u64).to_le_bytes()].concat();
    assert_eq!(bytes, [&head[..], body].concat());
    assert_eq!(python(&bytes), list([item(), item()]));
}

#[test]
fn integers_of_all_sizes() {
    for (text, bytes) in [
        ("0", &b"K\0"[..]),
        ("255", b"K\xff"),
        ("256", b"M\0\x01"),
        ("65535", b"M\xff\xff"),
        ("65536", b"J\0\0\x01\0"),
        ("-1", b"J\xff\xff\xff\xff"),
        ("-2147483648", b"J\0\0\0\x80"),
        ("2147483648", b"\x8a\x05\0\0\0\x80\0"),
        ("-2147483649", b"\x8a\x05\xff\xff\xff\x7f\xff"),
        ("9223372036854775807", b"\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f"),
        ("9223372036854775808", b"\x8a\x09\0\0\0\0\0\0\0\x80\0"),
        ("18446744073709551615", b"\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\0"),
        ("-170141183460469231731687303715884105728", b"\x8a\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x80"),
        (
            "340282366920938463463374607431768211456",
            b"\x8a\x11\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01",
        ),
    ] {
        let value = text.parse().map_or_else(|_| Value::BigInt(text.into()), Value::Int);
        let written = dump(&value);
        assert_eq!(written[11..written.len() - 1], *bytes, "{text}");
        assert_eq!(python(&written), value);
        if let Ok(v) = text.parse::<i128>() {
            assert_eq!(dump(&v), written, "{text}");
            assert_eq!(decode::<i128>(&written).unwrap(), v);
        }
        let old = format!("L{text}L\n.");
        assert_eq!(python(old.as_bytes()), value);
    }
    let written = dump(&u128::MAX);
    assert_eq!(decode::<u128>(&written).unwrap(), u128::MAX);
    assert_eq!(python(&written), Value::BigInt(u128::MAX.to_string().into()));
    let long = Value::BigInt("7".repeat(5000).into());
    assert_eq!(python(&dump(&long)), long);
    assert_eq!(python(b"\x80\x02\x8a\0."), 0.into());
}

#[test]
fn reads_what_python_writes() {
    // pickle.dumps({'a': (1, [2, {3}], frozenset({4})), 'b': None, 'c': b'x', 'd': 1.5}, 4)
    assert_eq!(
        python(
            b"\x80\x04\x95\x35\0\0\0\0\0\0\0}\x94(\x8c\x01a\x94K\x01]\x94(K\x02\x8f\x94(K\x03\x90e(K\x04\
            \x91\x94\x87\x94\x8c\x01b\x94N\x8c\x01c\x94C\x01x\x94\x8c\x01d\x94G?\xf8\0\0\0\0\0\0u."
        ),
        map([
            (
                "a",
                list([1.into(), list([2.into(), list([3.into()])]), list([4.into()])])
            ),
            ("b", Value::Null),
            ("c", vec![b'x'].into()),
            ("d", 1.5.into()),
        ])
    );
    // Protocol 0 of Python 2: {'k': [u'\xe9', 'it\'s', 1L, True, 2.5, ()]} and links.
    assert_eq!(
        python(
            b"(dp0\nS'k'\np1\n(lp2\nV\\u00e9\np3\naS\"it's\"\np4\naL1L\naI01\naF2.5\na(tag1\nas."
        ),
        map([(
            "k",
            list([
                "é".into(),
                "it's".into(),
                1.into(),
                true.into(),
                2.5.into(),
                list([]),
                "k".into()
            ])
        )])
    );
    // Protocol 2: the same list twice, bytes of Python 2 that are no text.
    assert_eq!(
        python(b"\x80\x02]q\0(]q\x01K\x01ah\x01U\x01\xffU\x01aT\x01\0\0\0be."),
        list([list([1.into()]), list([1.into()]), vec![255].into(), "a".into(), "b".into()])
    );
    // Lists added to later, popped, and doubled.
    assert_eq!(python(b"]q\0K\x01a]h\0K\x02a000h\0."), list([1.into(), 2.into()]));
    assert_eq!(python(b"(K\x012t."), list([1.into(), 1.into()]));
    assert_eq!(python(b"](K\x01K\x0210K\x07."), 7.into());
    // Lone surrogates, which are no Unicode text.
    assert_eq!(python(b"\x8c\x03\xed\xa0\x80."), vec![0xed, 0xa0, 0x80].into());
    assert_eq!(
        python(b"}(NK\x01\x88K\x02G?\xf8\0\0\0\0\0\0K\x03C\x01bK\x04u."),
        map([("null", 1.into()), ("true", 2.into()), ("1.5", 3.into()), ("b", 4.into()),])
    );
}

#[test]
fn empty_and_single_lists_and_maps_are_told_apart() {
    let (empty, single) = (list([]), list([1.into()]));
    for value in [
        list([empty.clone(), empty.clone(), 1.into()]),
        list([single.clone(), empty.clone(), single.clone()]),
        map([("a", map([])), ("b", map([("c", map([]))])), ("d", empty.clone())]),
        list([list([list([]), 2.into()]), map([("x", list([map([])]))])]),
        empty,
        map([]),
        single,
    ] {
        assert_eq!(python(&dump(&value)), value);
    }
    // [{}, (1, 2, 3, 4)] and [[], (1,)]: the mark and the value are not those of what is empty.
    assert_eq!(
        python(b"](}(K\x01K\x02K\x03K\x04te."),
        list([map([]), list([1.into(), 2.into(), 3.into(), 4.into()])])
    );
    assert_eq!(python(b"](]K\x01\x85e."), list([list([]), list([1.into()])]));
    // Batches, as Python makes them.
    let many: Vec<Value> = (0..3001).map(|i| (i % 7).into()).collect();
    let mut bytes = b"\x80\x04]\x94".to_vec();
    for batch in many.chunks(1000) {
        let items = |out: &mut Vec<u8>| {
            batch.iter().for_each(|v| {
                let written = dump(v);
                out.extend_from_slice(&written[11..written.len() - 1]);
            })
        };
        if batch.len() == 1 {
            items(&mut bytes);
            bytes.push(b'a');
        } else {
            bytes.push(b'(');
            items(&mut bytes);
            bytes.push(b'e');
        }
    }
    bytes.push(b'.');
    assert_eq!(python(&bytes), Value::List(many));
}

#[test]
fn refuses_by_name_and_offset() {
    for (bytes, name, at) in [
        (&b"cos\nsystem\n(S'true'\ntR."[..], "GLOBAL", 0),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", "STACK_GLOBAL", 14),
        (b"(S'x'\nios\nsystem\n.", "INST", 6),
        (b"](K\x01R.", "REDUCE", 4),
        (b"]b.", "BUILD", 1),
        (b"(o.", "OBJ", 1),
        (b"))\x81.", "NEWOBJ", 2),
        (b")\x92.", "NEWOBJ_EX", 1),
        (b"\x82\x01.", "EXT1", 0),
        (b"\x83\x01\x01.", "EXT2", 0),
        (b"\x84\x01\x01\x01\x01.", "EXT4", 0),
        (b"Pid\n.", "PERSID", 0),
        (b"NQ.", "BINPERSID", 1),
        (b"\x97.", "NEXT_BUFFER", 0),
        (b"N\x98.", "READONLY_BUFFER", 1),
    ] {
        let error = load(bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.context().contains(&format!("opcode {name} ")), "{error}");
        assert_eq!(error.place().offset, Some(at));
        assert_eq!(length(bytes).unwrap(), Some(bytes.len()), "{name}");
    }
    for (bytes, want) in [
        (&b"]\x94h\0a."[..], "inside itself"),
        (b"}\x94\x8c\x01ah\0s.", "inside itself"),
        (b"]\x94(h\0t.", "2 values"),
        (b"h\0.", "BINGET: nothing"),
        (b"e.", "APPENDS: no mark"),
        (b"(K\x01u.", "SETITEMS: nothing to put"),
        (b"](K\x01u.", "SETITEMS: what is below"),
        (b"}(K\x01u.", "SETITEMS: a key without"),
        (b"\x85.", "TUPLE1: too few"),
        (b"(\x85.", "TUPLE1: too few"),
        (b".", "STOP: 0 values"),
        (b"NN.", "STOP: 2 values"),
        (b"N", "the end: the bytes end"),
        (b"N.N", "1 bytes after"),
        (b"\xff", "0xff is not a pickle opcode"),
        (b"\x80\x06N.", "protocol 6"),
        (b"r\xff\xff\xff\xff.", "LONG_BINPUT: too few"),
        (b"Nr\xff\xff\xff\xff.", "larger than the pickle"),
        (b"Iabc\n.", "INT: not a whole"),
        (b"Sabc\n.", "not in quotes"),
        (b"V\\u12\n.", "an escape"),
    ] {
        let error = load(bytes).unwrap_err();
        assert!(error.to_string().contains(want), "{bytes:?}: {error}");
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
fn typed_records_there_and_back() {
    for kind in [
        None,
        Some(Kind::Plain),
        Some(Kind::Named("x".into())),
        Some(Kind::Pair(-1, 1)),
        Some(Kind::Full { since: 2026, of: [(-5, 'ü'), (300, 'x')].into() }),
    ] {
        let user = User { id: u32::MAX, name: "Ada".into(), kind };
        assert_eq!(decode::<User>(&dump(&user)).unwrap(), user);
        let twice = dump(&[&user, &user]);
        assert_eq!(decode::<[User; 2]>(&twice).unwrap()[1], user);
        assert!(decode::<[User; 1]>(&twice).is_err());
    }
    // The same pair by way of links, tuples for lists, bytes for text.
    let bytes = b"\x80\x04](}\x94(\x8c\x02id\x94K\x07\x8c\x04nameC\x03Adauh\0e.";
    let users: Vec<User> = decode(bytes).unwrap();
    assert_eq!(users[1], User { id: 7, name: "Ada".into(), kind: None });
    let error = decode::<User>(b"}\x8c\x02id\x8c\x01xs.").unwrap_err();
    assert!(error.to_string().contains("expected u32"), "{error}");
}

fn sample() -> Vec<u8> {
    let item = map([
        ("name", "Grüße".into()),
        ("long", "x".repeat(300).into()),
        ("n", list([1.into(), 70_000.into(), (-(1i64 << 50)).into(), 1.5.into(), list([])])),
        ("big", Value::BigInt("123456789012345678901234567890".into())),
        ("raw", vec![0u8, 200].into()),
        ("object", map([("x", Value::Null)])),
    ]);
    let mut bytes = dump(&list([item.clone(), item, true.into()]));
    // What we do not write ourselves, put into the outer list.
    bytes.truncate(bytes.len() - 2);
    bytes.extend_from_slice(
        b"]\x94(K\x01K\x02e\x94(h\x06h\x07t\x86S'a\\n'\np300\nVx\n\x8f(Ng300\n\x90e.",
    );
    bytes
}

#[test]
fn cut_anywhere_is_an_error_and_has_no_length() {
    let mut bytes = sample();
    // Without the frame, whose length is no longer right.
    bytes.drain(2..11);
    let read = load(&bytes);
    assert!(read.is_ok(), "{read:?}");
    for n in 0..bytes.len() {
        assert!(load(&bytes[..n]).is_err(), "cut at {n}");
        assert_eq!(length(&bytes[..n]).unwrap(), None, "cut at {n}");
    }
    let mut two = bytes.clone();
    two.extend_from_slice(&bytes);
    assert_eq!(length(&two).unwrap(), Some(bytes.len()));
    assert_eq!(load(&two).unwrap_err().place().offset, Some(bytes.len() as u64));
}

#[test]
fn any_mutation_is_read_or_refused_the_same_both_ways() {
    let mut bytes = sample();
    bytes.drain(2..11);
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
                _ => bytes.insert(at, b"(})]2019eausNt\x85\x86\x94h\x95\x8c.K\x88\0"[random(24)]),
            }
        }
        let _ = length(&bytes);
        let _ = decode::<User>(&bytes);
        let machine = de::decode::<&str, _>(PhantomData::<Value>, &bytes);
        if let Ok(value) = direct::decode::<&str, _>(PhantomData::<Value>, &bytes) {
            assert_eq!(Some(&value), machine.as_ref().ok());
        }
        match machine {
            Ok(_) => read += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(read > 100 && refused > 100, "{read} read, {refused} refused");
}

#[test]
fn lengths_are_checked_against_what_is_left() {
    for bytes in [
        &b"X\xff\xff\xff\x7f0123456789."[..],
        b"B\xff\xff\xff\xff0123456789.",
        b"T\xff\xff\xff\x7f0123456789.",
        b"\x8b\xff\xff\xff\x7f0123456789.",
        b"\x8d\xff\xff\xff\xff\xff\xff\xff\xff0123456789.",
        b"\x8e\xff\xff\xff\xff\xff\xff\xff\x7f0123456789.",
        b"\x96\xff\xff\xff\xff\0\0\0\x000123456789.",
        b"\x8c\xff0123456789.",
    ] {
        let error = load(bytes).unwrap_err();
        assert!(error.to_string().contains("the bytes end"), "{error}");
        assert_eq!(length(bytes).unwrap(), None);
    }
    let error = load(b"\x95\xff\xff\xff\xff\0\0\0\0N.").unwrap_err();
    assert!(error.to_string().contains("FRAME: the bytes end"), "{error}");
}

#[test]
fn depth_has_a_limit_both_ways() {
    let nested = |n: usize, open: &[u8], close: &[u8]| {
        [open.repeat(n), b"N".to_vec(), close.repeat(n), b".".to_vec()].concat()
    };
    for (open, close) in [
        (&b"]"[..], &b"a"[..]),
        (b"](", b"e"),
        (b"}K\0", b"s"),
        (b"", b"\x85"),
        (b"(", b"t"),
        (b"(K\0", b"d"),
    ] {
        assert!(load(&nested(DEPTH, open, close)).is_ok());
        for n in [DEPTH + 1, 100_000] {
            let error = load(&nested(n, open, close)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TooLarge, "{open:?}");
        }
        let deep = nested(100_000, open, close);
        assert_eq!(length(&deep).unwrap(), Some(deep.len()));
    }
    let value = |n| (0..n).fold(Value::Null, |v, _| Value::List(vec![v]));
    assert_eq!(load(&dump(&value(DEPTH))).unwrap(), value(DEPTH));
    let error = encode(&value(DEPTH + 1), &mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
}

#[test]
fn links_cannot_blow_up() {
    // Each list holds the one before ten times.
    let mut bomb = b"](]\x94\x8c\x04lolo\x94a".to_vec();
    for n in 0..29u8 {
        bomb.extend_from_slice(b"](");
        // Number 1 is the text.
        bomb.extend_from_slice(&[b'h', if n == 0 { 0 } else { n + 1 }].repeat(10));
        bomb.extend_from_slice(b"e\x94");
    }
    bomb.extend_from_slice(b"e.");
    let start = std::time::Instant::now();
    let error = load(&bomb).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    assert!(start.elapsed().as_secs() < 5);
    // A link to a long text, again and again; written out.
    let text = [&b"](X\x10\x27\0\0"[..], &b"x".repeat(10_000), b"\x94"].concat();
    let bomb = [&text[..], &b"h\0".repeat(1000), b"e."].concat();
    assert_eq!(load(&bomb).unwrap_err().kind(), ErrorKind::TooLarge);
    // The same, but the text in a dict of its own.
    let bomb = [
        &text[..6 + 10_000],
        b"}\x94\x8c\x01a",
        &text[2..10_006],
        b"s",
        &b"h\0".repeat(1000),
        b"e.",
    ]
    .concat();
    assert!(load(&bomb).is_err());
}

#[test]
fn documents_keep_their_order() {
    let document: Document =
        [("z", 1), ("a", 2), ("m", 3)].into_iter().map(|(n, v)| (n, Value::from(v))).collect();
    let value = Value::Map(document);
    assert_eq!(python(&dump(&value)), value);
}
