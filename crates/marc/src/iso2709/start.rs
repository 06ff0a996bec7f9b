//! Decides whether a record begins at an offset: tells a leader and a directory from any other bytes.
//!
//! The digits of a directory alone do not tell: read some bytes too early or too late they are digits
//! as well, of other fields. What tells is that the base address in the leader points right behind a
//! whole number of entries, each with its numbers, and that a field terminator stands there.

use super::number;
use crate::{FIELD_END, RECORD_END, SUBFIELD};

/// The widths of a directory entry's length, start, and what else there is, as leader 20-22 says them.
pub(super) type Widths = [usize; 3];

/// The usual ones.
pub(super) const USUAL: Widths = [4, 5, 0];

/// How many bytes it may take to see that a record begins.
pub const LONGEST: usize = 100_000;

/// A leader and a directory that agree.
pub(super) struct Start {
    /// Where the data begins.
    pub base: usize,
    widths: Widths,
}

impl Start {
    /// Where the record at the front of `bytes` ends if its directory is right.
    pub(super) fn end(&self, bytes: &[u8]) -> usize {
        let [length, start, _] = self.widths;
        let ends = entries(&bytes[24..self.base - 1], self.widths).filter_map(|entry| {
            let at = 3 + length;
            Some(number(&entry[3..at])? + number(&entry[at..at + start])?)
        });
        self.base + ends.max().unwrap_or(0) + 1
    }
}

/// True if `bytes` begin with the leader and the directory of a record that has fields. To be sure of
/// a no, [`LONGEST`] bytes must be seen.
pub fn begins(bytes: &[u8]) -> bool {
    start(bytes).is_some()
}

/// The leader and the directory that `bytes` begin with.
pub(super) fn start(bytes: &[u8]) -> Option<Start> {
    let leader: &[u8; 24] = bytes.first_chunk()?;
    let base = match number(&leader[12..17])? {
        // What five digits cannot say; also in records whose lengths were never filled in.
        0 => 25 + memchr::memchr(FIELD_END, &bytes[24..])?,
        base => base,
    };
    with_base(bytes, base)
}

fn with_base(bytes: &[u8], base: usize) -> Option<Start> {
    if base < 25 || bytes.get(base - 1) != Some(&FIELD_END) {
        return None;
    }
    let directory = &bytes[24..base - 1];
    let widths = [Some(USUAL), said_widths(bytes)];
    let widths = widths.into_iter().flatten().find(|widths| is_directory(directory, *widths))?;
    Some(Start { base, widths })
}

/// The widths that the leader says, where they are possible.
pub(super) fn said_widths(record: &[u8]) -> Option<Widths> {
    let said = [record[20], record[21], record[22]];
    let widths = said.map(|b| usize::from(b.wrapping_sub(b'0')));
    (widths.iter().all(|w| *w <= 9) && widths[0] > 0 && widths[1] > 0).then_some(widths)
}

/// The whole entries of a directory.
pub(super) fn entries(directory: &[u8], widths: Widths) -> std::slice::ChunksExact<'_, u8> {
    directory.chunks_exact(3 + widths.iter().sum::<usize>())
}

fn is_directory(directory: &[u8], widths: Widths) -> bool {
    let entries = entries(directory, widths);
    let numbers = 3..3 + widths[0] + widths[1];
    !directory.is_empty()
        && entries.remainder().is_empty()
        && entries.into_iter().all(|entry| {
            entry[numbers.clone()].iter().all(u8::is_ascii_digit)
                && !has_delimiter(&entry[..3])
                && !has_delimiter(&entry[numbers.end..])
        })
}

fn has_delimiter(bytes: &[u8]) -> bool {
    bytes.iter().any(|b| (RECORD_END..=SUBFIELD).contains(b))
}

/// Where the first record begins that does so at `from` or after.
pub(super) fn next_start(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    // The base address has to be digits: where one is none, no record begins up to behind it.
    while let Some(digits) = bytes.get(at + 12..at + 17) {
        if let Some(other) = digits.iter().rposition(|b| !b.is_ascii_digit()) {
            at += other + 1;
            continue;
        }
        let base = number(digits).unwrap_or(0);
        if with_base(&bytes[at..], base).is_some() {
            return Some(at);
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &[u8] = b"00043nam a2200037 i 4500001000500000\x1e0042\x1e\x1d";

    #[test]
    fn a_record_begins_where_it_does_and_nowhere_else() {
        let start = start(RECORD).unwrap();
        assert_eq!((start.base, start.end(RECORD)), (37, RECORD.len()));
        let twice = [&b"00043\x1e\x1d2200037"[..], RECORD, RECORD].concat();
        assert_eq!(next_start(&twice, 0), Some(14));
        assert_eq!(next_start(&twice, 15), Some(14 + RECORD.len()));
        for at in 1..RECORD.len() {
            assert!(!begins(&RECORD[at..]), "{at}");
            assert!(at >= 37 || !begins(&RECORD[..at]), "{at}");
        }
    }

    #[test]
    fn other_widths_are_believed_where_the_leader_says_them() {
        let record = b"00045nam a2200039 i 55000010000500000\x1e..0042\x1e\x1d";
        assert!(!begins(record));
        let record = b"00044nam a2200038 i 55000010000500000\x1e0042\x1e\x1d";
        assert!(begins(record));
    }
}
