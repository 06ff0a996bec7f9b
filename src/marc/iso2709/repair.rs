//! A record whose counts and terminators disagree: every contradiction named, and what can be
//! read, read.
//!
//! The order of belief: a record terminator over the length in the leader; the directory where its
//! entries end on terminators; terminators in their order where as many fields as entries are
//! found; else each entry by itself, cut at the next terminator.

use super::{block::Scratch, number};
use crate::marc::{FIELD_END, RECORD_END, SUBFIELD, Span, Trouble, TroubleKind as Kind};

/// What became of a record.
pub(super) struct Repaired {
    /// How many bytes it takes.
    pub length: usize,
    /// Its data area; none where it could not be read.
    pub area: Option<(u32, u32)>,
    /// Leader, directory and fields agree after all (the trouble is with the text): its bytes can
    /// be written as they are.
    pub sound: bool,
}

/// Reads the record in `raw` (up to a terminator, or cut off by the file's end) as well as can
/// be, into `scratch`. Offsets of troubles are relative to `raw`.
pub(super) fn repair(raw: &[u8], scratch: &mut Scratch) -> Repaired {
    let cut = raw.last() != Some(&RECORD_END);
    scratch.spans.clear();
    scratch.marks.clear();
    let mut repair = Repair { raw, scratch, sound: true };
    let length = repair.length(cut);
    repair.raw = &raw[..length];
    let area = repair.fields();
    let sound = repair.sound && !cut;
    if area.is_some() {
        repair.text();
    }
    Repaired { length, area, sound }
}

struct Repair<'a> {
    raw: &'a [u8],
    scratch: &'a mut Scratch,
    sound: bool,
}

/// A directory entry as it stands; none where it has no numbers.
type Entry = ([u8; 3], Option<(usize, usize)>);

impl Repair<'_> {
    fn say(&mut self, kind: Kind, offset: usize, detail: impl Into<String>) {
        self.scratch.troubles.push(Trouble::new(kind, offset, detail));
    }

    /// Layout trouble: the bytes cannot be written back as they are.
    fn unsound(&mut self, kind: Kind, offset: usize, detail: impl Into<String>) {
        self.sound = false;
        self.say(kind, offset, detail);
    }

    /// How long the record is. A length that spans two records is found out by the directory.
    fn length(&mut self, cut: bool) -> usize {
        let raw = self.raw;
        let said = raw.get(..5).and_then(number);
        if cut {
            let said = said.map_or("the file".into(), |n| format!("{n} bytes are said, the file"));
            self.unsound(Kind::Truncated, raw.len(), format!("{said} ends after {}", raw.len()));
            return raw.len();
        }
        let inner = memchr::memchr(RECORD_END, raw).map_or(raw.len(), |i| i + 1);
        let length =
            if inner == raw.len() || inner == self.end_by_directory() { inner } else { raw.len() };
        let shown = String::from_utf8_lossy(&raw[..raw.len().min(5)]).into_owned();
        match said {
            Some(n) if n == length => (),
            Some(0 | 99_999) if length > 99_999 => {
                // The convention for what five digits cannot say.
                self.say(Kind::Oversized, 0, format!("{length} bytes, {shown} in the leader"));
                self.sound = said == Some(0);
            }
            _ => self.unsound(
                Kind::RecordLength,
                0,
                format!("{shown:?} in the leader, {length} found"),
            ),
        }
        length
    }

    /// Where the record ends if the directory is right; 0 if that cannot be said.
    fn end_by_directory(&self) -> usize {
        let Some(base) = self.raw.get(12..17).and_then(number) else { return 0 };
        let Some(directory) = self.raw.get(24..base.saturating_sub(1)) else { return 0 };
        let ends = directory.chunks_exact(12).map(|e| {
            number(&e[3..7])
                .zip(number(&e[7..12]))
                .map_or(usize::MAX, |(n, at)| base.saturating_add(at + n))
        });
        ends.max().map_or(0, |end| end.saturating_add(1))
    }

    fn fields(&mut self) -> Option<(u32, u32)> {
        let raw = self.raw;
        if raw.len() < 24 {
            self.unsound(Kind::Unreadable, 0, format!("{} bytes, a leader has 24", raw.len()));
            return None;
        }
        let Some(first) = memchr::memchr(FIELD_END, &raw[24..]).map(|i| 25 + i) else {
            self.unsound(Kind::NoDirectory, 24, "no field terminator");
            return None;
        };
        let base = self.base(first);
        let entries = self.entries(base)?;
        let end = match raw.last() {
            Some(&RECORD_END) => raw.len() - 1,
            _ => raw.len(),
        };
        let base = base.min(end);
        self.place(&entries, base, end);
        for i in 0..self.scratch.spans.len() {
            self.shape(i);
        }
        Some((base as u32, end as u32))
    }

    /// Where the data begins: by the leader if the directory ends there, else where it does end.
    fn base(&mut self, first: usize) -> usize {
        let raw = self.raw;
        let said = number(&raw[12..17]);
        let fits = |base: usize| (25..=raw.len()).contains(&base) && raw[base - 1] == FIELD_END;
        match said {
            // Any terminator may be meant where the directory has one inside a tag.
            Some(base) if fits(base) && (base - 25).is_multiple_of(12) => base,
            Some(base) if base == first => base,
            Some(0) if first > 99_999 => {
                self.say(
                    Kind::Oversized,
                    12,
                    format!("{first} bytes before the data, 00000 in the leader"),
                );
                first
            }
            _ => {
                let shown = String::from_utf8_lossy(&raw[12..17]).into_owned();
                self.unsound(
                    Kind::BaseAddress,
                    12,
                    format!("{shown:?} in the leader, the directory ends at {first}"),
                );
                first
            }
        }
    }

    /// The entries of the directory, by the layout in which most of them are numbers.
    fn entries(&mut self, base: usize) -> Option<Vec<Entry>> {
        let raw = self.raw;
        let directory = &raw[24..base - 1];
        let read = |widths: [usize; 3]| -> Vec<Entry> {
            let [length, start, rest] = widths;
            let entries = directory.chunks_exact(3 + length + start + rest);
            let entry = |e: &[u8]| {
                let n = number(&e[3..3 + length]).zip(number(&e[3 + length..3 + length + start]));
                ([e[0], e[1], e[2]], n)
            };
            entries.map(entry).collect()
        };
        let good = |entries: &[Entry]| entries.iter().filter(|(_, n)| n.is_some()).count();
        let mut widths = [4, 5, 0];
        let mut entries = read(widths);
        let map = [raw[20], raw[21], raw[22]].map(|b| usize::from(b.wrapping_sub(b'0')));
        if map != widths && map[0] > 0 && map[1] > 0 && map.iter().all(|&w| w <= 9) {
            let other = read(map);
            let fits = directory.len().is_multiple_of(3 + map.iter().sum::<usize>());
            if fits && good(&other) * entries.len().max(1) > good(&entries) * other.len().max(1) {
                (widths, entries) = (map, other);
            }
        }
        let width = 3 + widths.iter().sum::<usize>();
        if !directory.len().is_multiple_of(width) {
            let detail = format!("{} bytes, not a multiple of {width}", directory.len());
            self.unsound(Kind::DirectoryLength, 24, detail);
        }
        if entries.is_empty() && !(directory.is_empty() && raw.len() <= base + 1) {
            self.unsound(Kind::NoDirectory, 24, "no entry");
            return None;
        }
        Some(entries)
    }

    /// Finds each entry's field between `base` and `end`.
    fn place(&mut self, entries: &[Entry], base: usize, end: usize) {
        let raw = self.raw;
        // Where a field may end: on a terminator, inside the data.
        let ends_well = |at: usize, length: usize| {
            length > 0 && base + at + length <= end && raw[base + at + length - 1] == FIELD_END
        };
        let good = |e: &Entry| e.1.is_some_and(|(length, at)| ends_well(at, length));
        let all_good = entries.iter().all(good);
        // By order: as many terminators as entries.
        let segments: Vec<usize> =
            memchr::memchr_iter(FIELD_END, &raw[base..end]).map(|i| base + i).collect();
        let by_order = !all_good && segments.len() == entries.len();
        // Zeros are how numbers too large for their digits are written.
        let silent = |e: &Entry, found: usize| {
            raw.len() > 99_999 || (found > 9_999 && matches!(e.1, Some((0, _))))
        };
        let mut expected = 0;
        let mut in_order = true;
        let mut from = base;
        // One wrong length shifts every entry behind it: the first is told, the rest counted.
        let mut more = 0;
        for (i, entry) in entries.iter().enumerate() {
            let place = 24 + 12 * i;
            let (start, stop) = if by_order {
                let range = (from, segments[i]);
                from = segments[i] + 1;
                let said = entry.1.map(|(n, at)| (base + at, (base + at + n).wrapping_sub(1)));
                if said != Some(range) {
                    let kind = if silent(entry, range.1 + 1 - range.0) {
                        Kind::Oversized
                    } else {
                        Kind::DirectoryEntry
                    };
                    match more {
                        0 => self.entry_trouble(
                            kind,
                            place,
                            entry,
                            range.0 - base,
                            range.1 + 1 - range.0,
                        ),
                        _ => self.sound = false,
                    }
                    more += 1;
                }
                range
            } else if let Some((length, at)) = entry.1.filter(|_| good(entry)) {
                (base + at, base + at + length - 1)
            } else {
                match self.alone(entry, base, end, place) {
                    Some(range) => range,
                    None => continue,
                }
            };
            in_order &= start == base + expected;
            expected = stop + 1 - base;
            let first = self.scratch.marks.len() as u32;
            let marks =
                memchr::memchr_iter(SUBFIELD, &raw[start..stop]).map(|i| (start + i) as u32);
            self.scratch.marks.extend(marks);
            let marks = (first, self.scratch.marks.len() as u32);
            let (start, end) = (start as u32, stop as u32);
            self.scratch.spans.push(Span { tag: entry.0, start, end, marks });
        }
        if more > 1 {
            let last = self
                .scratch
                .troubles
                .iter_mut()
                .rev()
                .find(|t| matches!(t.kind, Kind::DirectoryEntry | Kind::Oversized));
            if let Some(trouble) = last {
                trouble.detail += &format!("; so are {} more entries", more - 1);
            }
        }
        if all_good && !in_order {
            self.say(Kind::Sequence, 24, "");
        } else if base + expected < end {
            let kind = if all_good { Kind::FieldEnd } else { Kind::DirectoryEntry };
            let detail = format!("{} bytes after the last field", end - base - expected);
            self.say(kind, base + expected, detail);
        }
    }

    fn entry_trouble(&mut self, kind: Kind, place: usize, entry: &Entry, at: usize, length: usize) {
        let tag = String::from_utf8_lossy(&entry.0).into_owned();
        let said = match entry.1 {
            Some((n, at)) => format!("{n} bytes at {at} are said"),
            None => "no numbers".into(),
        };
        self.unsound(kind, place, format!("{tag}: {said}, {length} at {at} found"));
    }

    /// One bad entry: cut at the next terminator if its start can be believed.
    fn alone(
        &mut self,
        entry: &Entry,
        base: usize,
        end: usize,
        place: usize,
    ) -> Option<(usize, usize)> {
        let start = entry.1.map(|(_, at)| base + at).filter(|&s| s < end);
        let begins_well = |s: usize| s == base || self.raw[s - 1] == FIELD_END;
        let Some(start) = start.filter(|&s| begins_well(s)) else {
            let tag = String::from_utf8_lossy(&entry.0).into_owned();
            self.unsound(
                Kind::FieldLost,
                place,
                format!("{tag}: no field begins where the directory says"),
            );
            return None;
        };
        let stop = memchr::memchr(FIELD_END, &self.raw[start..end]).map_or(end, |i| start + i);
        self.entry_trouble(Kind::DirectoryEntry, place, entry, start - base, stop + 1 - start);
        Some((start, stop))
    }

    /// Looks at the inside of field `i`.
    fn shape(&mut self, i: usize) {
        let span = self.scratch.spans[i];
        let (start, end) = (span.start as usize, span.end as usize);
        let bytes = &self.raw[start..end];
        let tag = String::from_utf8_lossy(&span.tag).into_owned();
        let marks = span.marks.1 - span.marks.0;
        let first = (marks > 0).then(|| self.scratch.marks[span.marks.0 as usize] as usize - start);
        if let Some(inner) = memchr::memchr2(FIELD_END, RECORD_END, bytes) {
            self.say(Kind::FieldEnd, start + inner, format!("{tag}: a terminator inside"));
        }
        let control = span.tag.starts_with(b"00");
        let numeric = span.tag.iter().all(u8::is_ascii_digit);
        match first {
            Some(_) if control => self.say(Kind::ControlSubfields, start, tag),
            Some(2) => (),
            Some(n) if !control => {
                self.say(
                    Kind::Indicators,
                    start,
                    format!("{tag}: {n} bytes before the first subfield"),
                );
            }
            // Local fields with letters in the tag may be plain; with digits they are not.
            None if !control && numeric => {
                self.say(Kind::Indicators, start, format!("{tag}: no subfield"));
            }
            _ => (),
        }
    }

    /// Text that is not what the leader says.
    fn text(&mut self) {
        if self.raw[9] != b'a' {
            return;
        }
        for i in 0..self.scratch.spans.len() {
            let span = self.scratch.spans[i];
            let bytes = &self.raw[span.start as usize..span.end as usize];
            if let Err(e) = std::str::from_utf8(bytes) {
                let at = span.start as usize + e.valid_up_to();
                let tag = String::from_utf8_lossy(&span.tag).into_owned();
                self.say(Kind::BadText, at, format!("{tag}: 0x{:02x} is not UTF-8", self.raw[at]));
            }
        }
    }
}
