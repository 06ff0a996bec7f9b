//! Where a record ends, without looking inside: for splitting a file, and as the reader's first step.

use super::{SHORTEST, number};
use crate::marc::RECORD_END;

/// What stands at the beginning of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// So many bytes between records (line ends and the like), to be passed over.
    Skip(usize),
    /// A record of so many bytes, by its own length or else by the next record terminator.
    Record(usize),
    /// The file ends inside a record: so many bytes are left.
    Cut(usize),
    /// The buffer ends before this can be said.
    More,
    /// Nothing is left.
    End,
}

/// What stands at the beginning of `buf`; `eof` says that nothing comes after it.
///
/// The leader's length is believed if a record terminator stands where it says. Otherwise the
/// record reaches to the next terminator, which also serves records over 99,999 bytes.
pub fn frame(buf: &[u8], eof: bool) -> Frame {
    let junk = buf.iter().take_while(|b| matches!(b, b'\n' | b'\r' | 0 | 0x1a)).count();
    if junk > 0 {
        return Frame::Skip(junk);
    }
    match (buf.len(), eof) {
        (0, true) => return Frame::End,
        (0..5, false) => return Frame::More,
        _ => (),
    }
    let said = buf.get(..5).and_then(number).filter(|&n| n >= SHORTEST);
    if let Some(length) = said {
        match buf.get(length - 1) {
            Some(&RECORD_END) => return Frame::Record(length),
            // It may yet come: do not search what is only the first half of a record.
            None if !eof => return Frame::More,
            _ => (),
        }
    }
    match memchr::memchr(RECORD_END, buf) {
        Some(end) => Frame::Record(end + 1),
        None if eof => Frame::Cut(buf.len()),
        None => Frame::More,
    }
}
