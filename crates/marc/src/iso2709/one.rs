//! Reads one record into a [`Record`] that is reused.

use super::{
    Records,
    block::{Walked, walk},
    simd,
};
use crate::{Error, Record, Result, Trouble, TroubleKind, worst};

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
    search(raw, record, troubles)
}

/// The one record in `raw`, slowly.
#[cold]
fn search(raw: &[u8], record: &mut Record, troubles: &mut Vec<Trouble>) -> Result<()> {
    record.clear();
    let before = troubles.len();
    let ends = [raw.len()];
    let mut records = Records::framed(raw, &ends);
    let mut found = false;
    while let Some(item) = records.next() {
        if found && item.record.is_some() {
            let detail = format!("{} bytes after the record", item.raw.len());
            troubles.push(Trouble::new(TroubleKind::Skipped, item.offset as usize, detail));
            continue;
        }
        if let Some(read) = item.record {
            record.assign(read);
            found = true;
        }
        troubles.extend(item.troubles.iter().cloned().map(|t| Trouble { record: 0, ..t }));
    }
    if found {
        return Ok(());
    }
    if troubles.len() == before {
        troubles.push(Trouble::new(TroubleKind::Unreadable, 0, "only line ends"));
    }
    let worst = worst(&troubles[before..]).expect("there is one");
    Err(Error::malformed(worst.told()).at(worst.offset))
}
