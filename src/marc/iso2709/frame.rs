//! Where a record ends, without looking inside: for splitting a file, and as the reader's first step.

use super::{SHORTEST, number};
use crate::marc::{Frame, RECORD_END};

/// What stands at the front of `buf`; `eof` says that nothing comes after it. Line ends and the
/// like before a record belong to none.
///
/// The leader's length is believed if a record terminator stands where it says. Otherwise the
/// record reaches to the next terminator, which also serves records over 99,999 bytes. What the
/// end of the file cuts off is a record without terminator. Never [`Frame::Bad`].
pub fn frame(buf: &[u8], eof: bool) -> Frame {
    let start = buf.iter().take_while(|b| matches!(b, b'\n' | b'\r' | 0 | 0x1a)).count();
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
        _ => memchr::memchr(RECORD_END, rest).map(|end| end + 1),
    };
    match length {
        Some(length) => Frame::Record(start..start + length),
        None if eof => Frame::Record(start..buf.len()),
        None => Frame::More(start),
    }
}
