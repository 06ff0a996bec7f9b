//! The result of framing, the same for all readers: where one record ends and the next begins.

use std::ops::Range;

use super::Trouble;

/// What stands at the front of a buffer. Ranges and offsets count from the buffer's first byte;
/// what lies before a range belongs to no record.
///
/// Whoever asks goes on behind what it was told: the next buffer begins at the range's end, or at
/// the offset in [`More`](Frame::More).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// These bytes are one record.
    Record(Range<usize>),
    /// These bytes should be a record, or several, and are none. Never the end of the file.
    Bad(Range<usize>, Trouble),
    /// No whole record yet. What lies before this offset can go; ask again with more after it.
    /// Never said where the buffer is known to reach to the end of the file.
    More(usize),
    /// No record follows.
    End,
}
