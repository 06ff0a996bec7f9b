//! What every format's target does: any bytes are read in all ways or refused; what was read is
//! written and read again equal, but for what the format says it loses.

use steelyard::{
    format::{Format, framing::{Framer, Next}},
    marc::Record,
    record::{Document, Value},
};

/// Feeds `data` to every way in of `format`.
pub fn try_all(format: Format, data: &[u8]) {
    let mut record = Record::new();
    if format.decode_marc(data, &mut record).is_ok() {
        let mut bytes = Vec::new();
        if format.encode_marc(record.as_ref(), &mut bytes).is_ok() {
            let mut again = Record::new();
            format.decode_marc(&bytes, &mut again).expect("what it wrote itself");
            assert_eq!(again, record);
        }
    }
    let _ = format.decode::<Document>(data);
    let _ = format.decode::<serde::de::IgnoredAny>(data);
    if let Ok(value) = format.decode::<Value>(data) {
        let mut bytes = Vec::new();
        if format.encode(&value, &mut bytes).is_ok() {
            let again: Value = format.decode(&bytes).expect("what it wrote itself");
            // Equal once it has been through: what the format cannot hold has changed by then.
            let mut twice = Vec::new();
            format.encode(&again, &mut twice).expect("what came from it");
            let third: Value = format.decode(&twice).expect("what it wrote itself");
            assert_eq!(third, again);
        }
    }
    frames(format, data);
}

/// Reads `data` as a MARC record the short way and through serde: both must say the same.
#[allow(dead_code)]
pub fn marc_agrees(format: Format, data: &[u8]) {
    let (mut direct, mut troubles) = (Record::new(), Vec::new());
    let read = format.read_marc(data, &mut direct, &mut troubles);
    let through_serde = format.decode::<Record>(data);
    // What is passed over may be looked into by one and not by the other.
    if troubles.is_empty() {
        assert_eq!(read.is_ok(), through_serde.is_ok());
    }
    if let (Ok(()), Ok(record)) = (read, through_serde) {
        assert_eq!(direct, record);
    }
}

/// Cuts `data` into records, in two ways that must agree: all at once, and a byte at a time.
pub fn frames(format: Format, data: &[u8]) {
    let mut framer = Framer::new(&format.into()).expect("a format of files").with_limit(4096);
    let (mut at, mut steps) = (0, 0);
    loop {
        let next = framer.next(&data[at..], true);
        steps += 1;
        assert!(steps < 4 * data.len() + 8, "it does not come to an end");
        match next {
            Next::Record { next, range } => {
                assert!(range.end <= next && at + next <= data.len());
                at += next;
            }
            Next::Skip(n) => at += n,
            Next::Bad { len, .. } => at += len,
            Next::More | Next::End => break,
        }
        assert!(at <= data.len());
    }
}
