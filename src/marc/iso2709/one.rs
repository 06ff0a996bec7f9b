//! One record by itself, into a [`Record`] that is used again.

use super::{
    block::{Scratch, Walked, walk},
    repair::repair,
    simd,
};
use crate::{
    Error, Result,
    marc::{Record, Severity, Trouble, TroubleKind},
};

/// Reads the record that `raw` is into `record`. What is wrong with it is added to `troubles`,
/// with offsets from its first byte; it is then read as well as can be.
///
/// # Errors
/// [`Malformed`](crate::ErrorKind::Malformed) where it cannot be read at all; `troubles` then says
/// why.
pub fn read(raw: &[u8], record: &mut Record, troubles: &mut Vec<Trouble>) -> Result<()> {
    record.clear();
    let walked = record.walk_in(raw, |tape, spans| {
        simd::best()(raw, tape);
        walk(raw, 0, tape, 0, spans).filter(|w| w.length == raw.len()).map(|w: Walked| w.base)
    });
    let utf8 = simdutf8::basic::from_utf8(raw).is_ok();
    if walked && (utf8 || raw[9] != b'a') {
        record.set_utf8(utf8);
        return Ok(());
    }
    let mut scratch = Scratch::default();
    let repaired = repair(raw, &mut scratch);
    troubles.append(&mut scratch.troubles);
    if repaired.length < raw.len() {
        let detail = format!("{} bytes after the record", raw.len() - repaired.length);
        troubles.push(Trouble::new(TroubleKind::Junk, repaired.length, detail));
    }
    match repaired.area {
        Some(area) => {
            record.take_from(raw, &scratch.spans, &scratch.marks, area);
            Ok(())
        }
        None => {
            let worst = troubles.iter().rev().find(|t| t.kind.severity() == Severity::Lost);
            let (what, offset) = worst.map_or(("unreadable", 0), |t| (t.kind.meaning(), t.offset));
            Err(Error::malformed(what).at(offset))
        }
    }
}
