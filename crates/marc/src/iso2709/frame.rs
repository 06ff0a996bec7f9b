//! Finds the end of a record without parsing it: for splitting a file, and as the reader's first step.

use super::{SHORTEST, number, start::next_start};
use crate::{Frame, RECORD_END};

/// What may stand between records without being worth a word: line ends, the end mark of old systems.
/// No zeros: they may be a block of the file that was never written (see `zeros`).
pub const BETWEEN: &[u8] = b"\n\r\x1a";

/// No record has so many zeros in a row: what stands before them is cut off there.
const TORN: [u8; 64] = [0; 64];

/// How many bytes at the front of `buf` belong to no record and need not be spoken of.
pub(super) fn between(buf: &[u8]) -> usize {
    buf.iter().take_while(|b| BETWEEN.contains(b)).count()
}

/// What stands at the front of `buf`; `eof` says that nothing comes after it. Line ends and the
/// like before a record belong to none.
///
/// The leader's length is believed if a record terminator stands where it says. Otherwise the
/// stretch reaches to the next terminator, which also serves records over 99,999 bytes. What the
/// end of the file cuts off is a stretch without terminator, and so is what 64 zeros or more cut off in a
/// record that contradicts itself. Never [`Frame::Bad`].
///
/// Where all is well the stretch is one record. Where it is not, there may be junk in it, or several
/// records: [`Records::framed`](super::Records::framed) looks.
pub fn frame(buf: &[u8], eof: bool) -> Frame {
    let start = between(buf);
    let rest = &buf[start..];
    match (rest.len(), eof) {
        (0, true) => return Frame::End,
        (0..5, false) => return Frame::More(start),
        _ => (),
    }
    let said = rest.get(..5).and_then(number).filter(|&n| n >= SHORTEST);
    let length = match said.map(|n| (n, rest.get(n - 1))) {
        Some((n, Some(&RECORD_END))) => Some(n),
        // It may yet come: do not search what is only the first half of a record.
        Some((_, None)) if !eof => None,
        _ => search(rest, eof),
    };
    match length {
        Some(length) => Frame::Record(start..start + length),
        None if eof => Frame::Record(start..buf.len()),
        None => Frame::More(start),
    }
}

/// The stretch up to the next terminator; none if that is not there yet.
#[cold]
fn search(rest: &[u8], eof: bool) -> Option<usize> {
    let first = memchr::memchr(RECORD_END, rest).map(|last| last + 1);
    let torn = memchr::memmem::find(&rest[..first.unwrap_or(rest.len())], &TORN);
    // Zeros at the very front are no part of a record that was cut off.
    if let Some(torn) = torn.filter(|torn| *torn > 0) {
        return Some(torn);
    }
    let first = first?;
    // Behind junk a record may begin that has a terminator inside, and says so by its length.
    let mut from = 0;
    while let Some(at) = next_start(&rest[..first], from) {
        let said = number(&rest[at..at + 5]).filter(|&n| n >= SHORTEST && at + n > first);
        match said.map(|n| (at + n, rest.get(at + n - 1))) {
            Some((end, Some(&RECORD_END))) => return Some(end),
            Some((_, None)) if !eof => return None,
            _ => from = at + 24,
        }
    }
    Some(first)
}
