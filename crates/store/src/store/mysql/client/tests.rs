//! Tests of parsing MySQL's answers: where they end, what they mean, and which are invalid.

use proptest::prelude::*;

use super::*;
use crate::{
    ErrorKind,
    store::nonsense::{near, shown},
};

fn answer(packets: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    packets.iter().for_each(|body| packet(&mut bytes, 1, |out| out.extend(*body)));
    bytes
}

/// A column of bytes.
const COLUMN: &[u8] = b"\x03def\0\0\0\x01v\x01v\x0c\x3f\0\xff\xff\0\0\xfc\0\0\0\0\0";
const END: &[u8] = &[0xfe, 0, 0, 2, 0, 0, 0];

fn read(statement: &mut Statement, answer: &[u8]) -> Result<Done> {
    statement.read::<RowDeserializer<ServerSide, Binary>>(answer)
}

#[test]
fn ends_are_found_wherever_an_answer_is_cut() {
    let refusal = b"\xff\x15\x04#28000no";
    for (kind, packets) in [
        (Kind::One, &[&[0, 0, 0, 2, 0, 0, 0][..]][..]),
        (Kind::One, &[&refusal[..]]),
        (Kind::Prepared, &[&[0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0], COLUMN, COLUMN]),
        (Kind::Prepared, &[&[0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]),
        (Kind::Rows, &[&[0, 3, 0, 2, 0, 0, 0]]),
        (Kind::Rows, &[&[1], COLUMN, b"\0\0\x01a", b"\0\0\x01b", END]),
        (Kind::Rows, &[&[1], COLUMN, &refusal[..]]),
    ] {
        let bytes = answer(packets);
        let mut end = End::new(kind);
        for cut in 0..bytes.len() {
            assert_eq!(end.find(&bytes[..cut]).unwrap(), None, "{kind:?} {cut}");
        }
        assert_eq!(end.find(&bytes).unwrap(), Some(bytes.len()), "{kind:?}");
    }
}

#[test]
fn rows_are_read_and_long_ones_are_joined() {
    let mut statement = Statement::default();
    let done = read(&mut statement, &answer(&[&[0, 3, 0, 2, 0, 0, 0]])).unwrap();
    assert_eq!((done.touched, done.rows.len()), (3, 0));
    let mut row = b"\0\0\xfe\0\0\0\x01\0\0\0\0".to_vec();
    row.resize(row.len() + (1 << 24), b'x');
    let bytes = [answer(&[&[1], COLUMN, b"\0\0\x01a", &row]), answer(&[b"\0\x04", END])].concat();
    for _ in 0..2 {
        assert_eq!(End::new(Kind::Rows).find(&bytes).unwrap(), Some(bytes.len()));
        let done = read(&mut statement, &bytes).unwrap();
        let length = |row: &Row| match row.as_ref(0) {
            Some(Value::Bytes(bytes)) => bytes.len(),
            _ => 0,
        };
        let lengths: Vec<_> = done.rows.iter().map(length).collect();
        assert_eq!(lengths, [1, 1 << 24, 0]);
    }
}

#[test]
fn long_packets_are_cut_and_joined_again() {
    for length in [LONG - 1, LONG, LONG + 1, 2 * LONG] {
        let body = vec![7; length];
        let mut bytes = b"before".to_vec();
        packet(&mut bytes, 3, |out| out.extend(&body));
        let (whole, rest) = match long(&bytes[6..]) {
            Some(joined) => joined,
            None => {
                let (one, rest) = first(&bytes[6..]).unwrap();
                (one.to_vec(), rest)
            }
        };
        assert!(whole == body && rest.is_empty(), "{length}");
        assert_eq!(bytes[9], 3);
    }
}

#[test]
fn rows_of_text_are_read() {
    let warnings = [1, 0xfe, 0, 0, 2, 0, 9, 0];
    let answer = answer(&[&[1], COLUMN, b"\x01a", b"\x00", b"\xfb", &warnings[1..]]);
    let done = Statement::default().read::<RowDeserializer<ServerSide, Text>>(&answer);
    let rows: Vec<_> = done.unwrap().rows.into_iter().map(Row::unwrap).collect();
    let bytes = |bytes: &[u8]| vec![Value::Bytes(bytes.to_vec())];
    assert_eq!(rows, [bytes(b"a"), bytes(b""), vec![Value::NULL]]);
}

#[test]
fn refusals_are_errors_of_the_server() {
    let refused = |bytes: &[u8]| refused(bytes).unwrap_err();
    let taken = refused(b"\xff\x26\x04#23000Duplicate entry");
    assert_eq!(taken.kind(), ErrorKind::Conflict, "{taken}");
    let full = refused(b"\xff\x10\x04Too many connections");
    assert_eq!(full.kind(), ErrorKind::Unavailable, "{full}");
    let error = read(&mut Statement::default(), &answer(&[&[1], COLUMN, b"\xff\x15\x04#28000no"]));
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Denied);
}

#[test]
fn what_is_no_answer_is_malformed() {
    for (kind, packets) in [
        (Kind::Rows, &[&b""[..]][..]),
        (Kind::Rows, &[b"\xfbfile"]),
        (Kind::Prepared, &[&[0, 1]]),
        (Kind::Prepared, &[&[3]]),
    ] {
        let error = End::new(kind).find(&answer(packets)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed);
    }
    for packets in [&[&[1][..], b"\x03def"][..], &[&[1], COLUMN, b"\0\0\x09a"], &[&[1]]] {
        let error = read(&mut Statement::default(), &answer(packets)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed);
    }
}

fn answers() -> Vec<Vec<u8>> {
    vec![
        answer(&[&[0, 3, 0, 2, 0, 0, 0]]),
        answer(&[&[0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0], COLUMN, COLUMN]),
        answer(&[&[1], COLUMN, b"\0\0\x01a", b"\0\x04", END]),
        answer(&[&[1], COLUMN, b"\xff\x15\x04#28000no"]),
    ]
}

proptest! {
    #[test]
    fn nonsense_is_refused_or_read(bytes in near(answers()), cut: prop::sample::Index) {
        for kind in [Kind::One, Kind::Prepared, Kind::Rows] {
            let mut end = End::new(kind);
            let read = |all: &[u8]| match kind {
                Kind::Rows => drop(read(&mut Statement::default(), all)),
                _ => drop(refused(Packets(all).next().unwrap_or_default())),
            };
            shown(&bytes, cut, |bytes| end.find(bytes), read)?;
        }
    }
}
