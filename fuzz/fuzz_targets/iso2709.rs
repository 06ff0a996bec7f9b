//! ISO 2709: any bytes are read to the end; what is sound comes back byte for byte; every byte is
//! in one record, between records, or told as junk before one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steelyard::{
    format::Format,
    marc::{
        Record, TroubleKind,
        iso2709::{self, Records},
    },
};

fuzz_target!(|data: &[u8]| {
    let mut records = Records::new(data);
    let (mut covered, mut troubles) = (0, Vec::new());
    while let Some(item) = records.next() {
        let at = item.offset as usize;
        let junk = item.troubles.iter().find(|t| t.kind == TroubleKind::Junk);
        let told = junk.map_or(at, |t| t.offset as usize);
        assert!(data[covered..told].iter().all(|b| b"\r\n\0\x1a".contains(b)));
        covered = at + item.raw.len();
        let Some(record) = item.record else {
            assert!(!item.troubles.is_empty());
            continue;
        };
        iso2709::lint(record, &mut troubles);
        let (mut out, mut own) = (Vec::new(), Record::new());
        iso2709::write(record, &mut out);
        if record.raw().is_some() {
            assert_eq!(out, item.raw);
        }
        // By itself it is the same record.
        iso2709::read(item.raw, &mut own, &mut troubles).expect("read among others");
        assert_eq!(own.as_ref(), record);
        out.clear();
        let _ = Format::Json.encode_marc(record, &mut out);
        let _ = Format::Msgpack.encode_marc(record, &mut out);
    }
    assert!(data[covered..].iter().all(|b| b"\r\n\0\x1a".contains(b)));
});
