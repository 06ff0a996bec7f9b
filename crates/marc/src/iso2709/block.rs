//! Reads the records in a block of memory: the fast path, for records whose counts and terminators agree.

use super::{
    frame::between,
    repair::{Repaired, repair},
    simd,
    stretch::{Piece, first_piece},
};
use crate::{
    FIELD_END, Frame, RECORD_END, RecordRef, SUBFIELD, Severity, Span, Trouble, TroubleKind,
};

/// A record as it was met: its place, its bytes, and what could be made of them.
#[derive(Clone, Copy)]
pub struct Item<'a> {
    /// Number in the file, from 1.
    pub number: u64,
    /// Byte offset in the file.
    pub offset: u64,
    /// The bytes, as they stood in the file.
    pub raw: &'a [u8],
    /// The record; none where it could not be read at all.
    pub record: Option<RecordRef<'a>>,
    /// What is wrong with it, and with the bytes right before it; mostly nothing.
    pub troubles: &'a [Trouble],
}

impl Item<'_> {
    /// The worst of the troubles.
    pub fn severity(&self) -> Option<Severity> {
        self.troubles.iter().map(|t| t.kind.severity()).max()
    }
}

/// Walks a block of whole records. All memory is reused from block to block.
#[derive(Default)]
pub(super) struct Block {
    /// Positions of all delimiters in the block.
    tape: Vec<u32>,
    /// How far the tape is used up.
    mark: usize,
    /// How far the block is.
    at: usize,
    /// Where the stretch ends that is looked into, as its beginning is no sound record.
    until: usize,
    /// All complete records of the block are UTF-8.
    utf8: bool,
    current: Current,
    scratch: Scratch,
}

/// What a record that is not sound is made in; a sound one needs only the spans.
#[derive(Default)]
pub(super) struct Scratch {
    pub spans: Vec<Span>,
    /// Marks of a repaired record (a sound one has its marks in the tape).
    pub marks: Vec<u32>,
    pub troubles: Vec<Trouble>,
}

/// What comes next in a block.
pub(super) enum Step {
    /// A record: see [`Block::current`].
    Record,
    /// The rest of the block is the beginning of a record.
    More,
    /// Nothing is left.
    End,
}

/// The record a block stands on.
#[derive(Default, Clone, Copy)]
struct Current {
    at: usize,
    length: usize,
    /// Its data area; none where it could not be read.
    area: Option<(u32, u32)>,
    utf8: bool,
    /// Leader, directory and data agree.
    sound: bool,
    /// It was read by the slow way: spans and marks count from the record, not from the block.
    apart: bool,
}

impl Block {
    /// Begins a block: finds all delimiters and looks whether all is UTF-8.
    pub(super) fn begin(&mut self, block: &[u8]) {
        self.tape.clear();
        simd::best()(block, &mut self.tape);
        (self.mark, self.at, self.until) = (0, 0, 0);
        // Only as far as records are complete: the last one may be cut inside a character.
        let last = self.tape.iter().rev().find(|&&m| block[m as usize] == RECORD_END);
        let complete = last.map_or(0, |&m| m as usize + 1);
        self.utf8 = simdutf8::basic::from_utf8(&block[..complete]).is_ok();
    }

    /// How many bytes of the block are done.
    pub(super) fn done(&self) -> usize {
        self.at
    }

    /// Steps to the next record of `block`, which must be the one begun with. `stretch` gives where
    /// the stretch at a position ends, as [`frame`](super::frame()) says it.
    #[inline]
    pub(super) fn step(
        &mut self,
        block: &[u8],
        stretch: impl FnMut(&[u8], usize) -> Frame,
    ) -> Step {
        self.scratch.troubles.clear();
        let mut stretch = stretch;
        loop {
            let at = self.at;
            if let Some((length, base)) = self.sound(block) {
                let raw = &block[at..at + length];
                let utf8 = self.utf8 || simdutf8::basic::from_utf8(raw).is_ok();
                if !utf8 && raw[9] == b'a' {
                    // Says UTF-8 and is not: that wants a trouble that names the field.
                    self.unsound(block, length);
                } else {
                    let area = Some(((at + base) as u32, (at + length - 1) as u32));
                    self.at = at + length;
                    self.current = Current { at, length, area, utf8, sound: true, apart: false };
                }
                return Step::Record;
            }
            if let Some(step) = self.look_into(block, &mut stretch) {
                return step;
            }
        }
    }

    /// Steps to the next record of a stretch whose beginning is no sound record. None where a sound
    /// one may follow now.
    #[cold]
    fn look_into(
        &mut self,
        block: &[u8],
        stretch: &mut dyn FnMut(&[u8], usize) -> Frame,
    ) -> Option<Step> {
        if self.at >= self.until {
            match stretch(block, self.at) {
                Frame::Record(range) => {
                    self.until = self.at + range.end;
                    if range.start > 0 {
                        self.at += range.start;
                        return None;
                    }
                }
                Frame::More(n) => {
                    self.at += n;
                    return Some(Step::More);
                }
                Frame::Bad(range, trouble) => {
                    let at = self.at + range.start;
                    let offset = trouble.offset + self.at as u64;
                    self.scratch.troubles.push(Trouble { offset, ..trouble });
                    self.go_to(self.at + range.end);
                    self.current = Current { at, length: range.len(), ..Current::default() };
                    return Some(Step::Record);
                }
                Frame::End => return Some(Step::End),
            }
        }
        let rest = &block[self.at..self.until];
        let blank = between(rest);
        if blank > 0 {
            self.at += blank;
            return None;
        }
        match first_piece(rest) {
            Piece::Record(length) => {
                self.unsound(block, length);
                Some(Step::Record)
            }
            Piece::Junk(n) => {
                self.skip(n);
                None
            }
        }
    }

    /// The record stepped to: where it stands in `block`, its bytes, and what could be read.
    #[inline]
    pub(super) fn current<'a>(
        &'a self,
        block: &'a [u8],
    ) -> (usize, &'a [u8], Option<RecordRef<'a>>) {
        let Current { at, length, area, utf8, sound, apart } = self.current;
        let raw = &block[at..at + length];
        let record = area.map(|area| RecordRef {
            leader: raw.first_chunk().expect("what was read has a leader"),
            data: if apart { raw } else { block },
            spans: &self.scratch.spans,
            marks: if apart { &self.scratch.marks } else { &self.tape },
            utf8,
            area,
            raw: sound.then_some(raw),
        });
        (at, raw, record)
    }

    /// What is wrong with the record stepped to; offsets count from the block.
    pub(super) fn troubles(&self) -> &[Trouble] {
        &self.scratch.troubles
    }

    /// The same, to be told where the block begins.
    pub(super) fn troubles_mut(&mut self) -> &mut [Trouble] {
        &mut self.scratch.troubles
    }

    /// Passes over bytes before a record that belong to none; that record says so.
    fn skip(&mut self, n: usize) {
        let detail = format!("{n} byte{} skipped", if n == 1 { "" } else { "s" });
        self.scratch.troubles.push(Trouble::new(TroubleKind::Junk, self.at, detail));
        self.go_to(self.at + n);
    }

    /// Steps to a record that contradicts itself, of `length` bytes.
    #[cold]
    fn unsound(&mut self, block: &[u8], length: usize) {
        let at = self.at;
        let raw = &block[at..at + length];
        let before = self.scratch.troubles.len();
        let Repaired { area, sound } = repair(raw, &mut self.scratch);
        self.go_to(at + length);
        for trouble in &mut self.scratch.troubles[before..] {
            trouble.offset += at as u64;
        }
        let utf8 = simdutf8::basic::from_utf8(raw).is_ok();
        self.current = Current { at, length, area, utf8, sound, apart: true };
    }

    /// Goes on at a position that was not walked to.
    fn go_to(&mut self, at: usize) {
        self.at = at;
        while self.tape.get(self.mark).is_some_and(|&m| (m as usize) < at) {
            self.mark += 1;
        }
    }

    #[inline]
    fn sound(&mut self, block: &[u8]) -> Option<(usize, usize)> {
        let Walked { length, base, mark } =
            walk(block, self.at, &self.tape, self.mark, &mut self.scratch.spans)?;
        self.mark = mark;
        Some((length, base))
    }
}

/// A sound record that was walked.
pub(super) struct Walked {
    pub length: usize,
    /// Where its data begins, from its first byte.
    pub base: usize,
    /// How far the tape is used up.
    pub mark: usize,
}

/// Walks the record at `at` of `block`, whose delimiters are in `tape` from `mark` on, if
/// everything agrees: counts with terminators, directory with data, indicators and subfields in
/// place; and if it has fields. `spans` are its fields, in positions of `block` and of the tape.
#[inline]
pub(super) fn walk(
    block: &[u8],
    at: usize,
    tape: &[u32],
    mark: usize,
    spans: &mut Vec<Span>,
) -> Option<Walked> {
    let leader: &[u8; 24] = block.get(at..)?.first_chunk()?;
    let length = five(leader, 0)?;
    let base = five(leader, 12)?;
    // Leader, one entry at least, and a terminator.
    if base < 37 || length <= base || block.len() - at < length {
        return None;
    }
    let directory = &block[at + 24..at + base - 1];
    let mut tape = tape[mark..].iter();
    let mut mark = mark as u32;
    if *tape.next()? as usize != at + base - 1 || block[at + base - 1] != FIELD_END {
        return None;
    }
    mark += 1;
    spans.clear();
    let mut start = at + base;
    let entries = directory.chunks_exact(12);
    if !entries.remainder().is_empty() {
        return None;
    }
    // Gathered over the record and looked at once: a branch less for each check.
    let mut wrong = 0;
    for entry in entries {
        let entry: &[u8; 12] = entry.try_into().expect("twelve bytes");
        let (field_length, bad_length) = four(entry, 3);
        let (offset, bad_offset) = four(entry, 8);
        let high = u32::from(entry[7].wrapping_sub(b'0'));
        let offset = offset + high * 10_000;
        wrong |= bad_length | bad_offset | (offset as usize ^ (start - at - base)) as u32;
        let first = mark;
        // The field's marks, then its terminator.
        let first_mark = *tape.next()?;
        let mut end = first_mark;
        while block[end as usize] == SUBFIELD {
            mark += 1;
            end = *tape.next()?;
        }
        let control = (entry[0] == b'0') & (entry[1] == b'0');
        // A data field's first mark comes after two indicators; a control field has none (and
        // then its first mark is its end).
        let expected = if control { end } else { start as u32 + 2 };
        wrong |= first_mark ^ expected;
        wrong |= u32::from(block[end as usize] ^ FIELD_END);
        wrong |= (end + 1).wrapping_sub(start as u32) ^ field_length;
        let tag = [entry[0], entry[1], entry[2]];
        spans.push(Span { tag, start: start as u32, end, marks: (first, mark) });
        mark += 1;
        start = end as usize + 1;
    }
    let last = *tape.next()? as usize;
    if wrong != 0 || last != at + length - 1 || block[last] != RECORD_END || start != last {
        return None;
    }
    Some(Walked { length, base, mark: mark as usize + 1 })
}

/// Five digits at `at`; the first of them may be anything that makes the sum wrong if not a digit.
#[inline]
fn five(leader: &[u8; 24], at: usize) -> Option<usize> {
    let (low, bad) = four(leader, at + 1);
    let high = leader[at].wrapping_sub(b'0');
    (bad == 0 && high <= 9).then(|| high as usize * 10_000 + low as usize)
}

/// Four digits at `at` of `bytes`, all at once, and whether any is none (not 0).
#[inline]
fn four<const N: usize>(bytes: &[u8; N], at: usize) -> (u32, u32) {
    let word = u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let digits = word.wrapping_sub(0x3030_3030);
    // Over 9: adding 0x76 sets the high bit; under 0: it is set already.
    let bad = (digits | digits.wrapping_add(0x7676_7676)) & 0x8080_8080;
    let pairs = (digits & 0x0f0f_0f0f).wrapping_mul(10).wrapping_add(digits >> 8);
    ((pairs & 0xff) * 100 + ((pairs >> 16) & 0xff), bad)
}
