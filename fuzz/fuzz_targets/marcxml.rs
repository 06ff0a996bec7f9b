//! MARCXML: any bytes are framed to the end, whole or in blocks; what is read comes back through
//! the writer, and through lines.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steelyard::marc::{
    Frame, Record, line,
    xml::{self, Framer},
};

/// The frames of `data` fed in blocks, with offsets from its beginning.
fn frames(data: &[u8], block: usize) -> Vec<(bool, usize, usize)> {
    let (mut framer, mut pos, mut end, mut found) = (Framer::new(), 0, 0, Vec::new());
    loop {
        let (good, range) = match framer.next(&data[pos..end], end == data.len()) {
            Frame::Record(range) => (true, range),
            Frame::Bad(range, _) => (false, range),
            Frame::More(skip) => {
                assert!(end < data.len());
                pos += skip;
                end = (end + block).min(data.len());
                continue;
            }
            Frame::End => return found,
        };
        found.push((good, pos + range.start, pos + range.end));
        pos += range.end;
    }
}

fuzz_target!(|data: &[u8]| {
    let all = frames(data, data.len().max(1));
    assert_eq!(frames(data, 5), all);
    let (mut record, mut back) = (Record::new(), Record::new());
    let (mut troubles, mut out) = (Vec::new(), Vec::new());
    for (good, start, end) in all {
        if !good || xml::read(&data[start..end], &mut record, &mut troubles).is_err() {
            continue;
        }
        out.clear();
        if xml::write(record.as_ref(), &mut out).is_ok() {
            xml::read(&out, &mut back, &mut troubles).expect("what was written is read");
            assert_eq!(back, record);
        } else {
            xml::write_tolerant(record.as_ref(), &mut out, &mut troubles);
            xml::read(&out, &mut back, &mut troubles).expect("what was written is read");
        }
        out.clear();
        line::write(record.as_ref(), &mut out);
        line::read(&out, &mut back, &mut troubles).expect("what was written is read");
        assert_eq!(back, record);
    }
    // Any bytes as one record, and as lines.
    let _ = xml::read(data, &mut record, &mut troubles);
    if line::read(data, &mut record, &mut troubles).is_ok() {
        out.clear();
        line::write(record.as_ref(), &mut out);
        line::read(&out, &mut back, &mut troubles).expect("what was written is read");
        assert_eq!(back, record);
    }
});
