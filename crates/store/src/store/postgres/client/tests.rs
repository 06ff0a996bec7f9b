//! Tests of parsing PostgreSQL's answers: where they end, what they mean, and which are invalid.

use proptest::prelude::*;

use super::*;
use crate::store::nonsense::{near, shown};

fn answer(messages: &[(u8, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (tag, body) in messages {
        message(&mut bytes, *tag, |out| out.extend(*body)).unwrap();
    }
    bytes
}

#[test]
fn the_end_is_found_wherever_an_answer_is_cut() {
    let row = b"\0\x03\0\0\0\x01a\xff\xff\xff\xff\0\0\0\x02bc";
    let bytes =
        answer(&[(b'1', b""), (b'2', b""), (b'D', row), (b'C', b"SELECT 1\0"), (b'Z', b"I")]);
    let mut end = End::default();
    for cut in 0..bytes.len() {
        assert_eq!(end.find(&bytes[..cut]).unwrap(), None);
    }
    assert_eq!(end.find(&bytes).unwrap(), Some(bytes.len()));
    let mut rows = Vec::new();
    let read = Answer::read(&bytes, |row| {
        let own = |i| Ok::<_, Error>(row.cell(i)?.map(<[u8]>::to_vec));
        rows.push([own(0)?, own(2)?, own(1)?]);
        assert!(row.cell(3).is_err());
        Ok(())
    });
    assert!(read.prepared && read.count == 1 && read.refused.is_none() && read.read.is_ok());
    assert_eq!(rows, [[Some(b"a".to_vec()), Some(b"bc".to_vec()), None]]);
}

#[test]
fn refusals_are_told_and_fatal_ones_end_an_answer() {
    let refused = |severity: &str| {
        let fields = format!("S{severity}\0V{severity}\0C57P01\0Mno\0Hask later\0\0");
        answer(&[(b'E', fields.as_bytes())])
    };
    let error = refused("ERROR");
    assert_eq!(End::default().find(&error).unwrap(), None);
    let told = Answer::read(&error, |_| Ok(())).refused.unwrap().into_error();
    assert_eq!((told.kind(), told.context()), (ErrorKind::Unavailable, "no; ask later"));
    assert_eq!(error::code(&told), Some("57P01"));
    let mut end = End::default();
    assert!(end.find(&refused("FATAL")).unwrap().is_some() && end.fatal);
}

#[test]
fn what_is_no_answer_is_malformed() {
    for wrong in [&b"HTTP/1.1 400"[..], b"Z\0\0\0\x03", b"D\xff\xff\xff\xff"] {
        assert_eq!(End::default().find(wrong).unwrap_err().kind(), ErrorKind::Malformed);
    }
    for cut in [&b"\0\x01"[..], b"", b"\0\x01\0\0\0\x09a", b"\0\x01\x7f\xff\xff\xff"] {
        assert!(DataRow::new(cut).cell(0).is_err());
    }
}

fn answers() -> Vec<Vec<u8>> {
    let row = b"\0\x03\0\0\0\x01a\xff\xff\xff\xff\0\0\0\x02bc";
    let error = b"SERROR\0VERROR\0C57P01\0Mno\0Hask later\0\0";
    vec![
        answer(&[(b'2', b""), (b'D', row), (b'C', b"SELECT 1\0"), (b'Z', b"I")]),
        answer(&[(b'1', b""), (b'2', b""), (b'C', b"INSERT 0 5\0"), (b'Z', b"I")]),
        answer(&[(b'E', error), (b'Z', b"I")]),
    ]
}

proptest! {
    #[test]
    fn nonsense_is_refused_or_read(bytes in near(answers()), cut: prop::sample::Index) {
        let mut end = End::default();
        let cells = |row: &dyn Cells| (0..4).try_for_each(|i| row.cell(i).map(drop));
        shown(&bytes, cut, |bytes| end.find(bytes), |all| drop(Answer::read(all, cells)))?;
    }
}

#[test]
fn statements_are_prepared_once_and_in_bounded_number() {
    let mut prepared = Prepared::new(Arc::default());
    let values = [(Type::TEXT, Bound::One(vec![0, 0, 0, 1, b'k']))];
    let mut ask = |text: &str, values: &[(Type, Bound)]| {
        let mut out = Vec::new();
        let new = prepared.ask(&mut out, text, values, ALL).unwrap();
        if let Some(id) = new {
            let types = types(values).cloned().collect();
            let setting = prepared.setting.clone();
            prepared.known.push(Known { id, text: text.into(), types, setting, age: 0 });
        }
        (new, out[0], prepared.known.len())
    };
    assert_eq!(ask("a", &values), (Some(1), b'P', 1));
    assert_eq!(ask("a", &values), (None, b'B', 1));
    let number = [(Type::INT8, Bound::One(vec![0xff; 4]))];
    assert_eq!(ask("a", &number), (Some(2), b'P', 2), "of another type");
    for i in 2..PREPARED {
        ask(&i.to_string(), &[]);
    }
    assert_eq!(ask("last", &[]), (Some(65), b'C', 1));
    let mut out = Vec::new();
    [0, 7, 10, 123].into_iter().for_each(|id| name(&mut out, id));
    assert_eq!(out, b"s0\0s7\0s10\0s123\0");
}
