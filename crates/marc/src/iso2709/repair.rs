//! A record whose counts and terminators disagree: every contradiction named, and what can be
//! read, read.
//!
//! The order of belief: a record terminator over the length in the leader; the directory where its
//! entries end on terminators; terminators in their order where as many fields as entries are
//! found; else each entry by itself, cut at the next terminator.
//!
//! A directory may name bytes twice, but not more bytes than the record has: fields beyond that are left
//! out. A few thousand entries for one long field would else be gigabytes.
//!
//! A directory is believed at all if it ends where the leader says, or if half of its entries follow
//! from one another or fit the fields. Bytes that merely look like one would else give fields that
//! never were.

use super::{
    block::Scratch,
    number,
    shape::faults,
    start::{self, USUAL, said_widths, start},
};
use crate::{FIELD_END, FieldRef, RECORD_END, SUBFIELD, Span, Trouble, TroubleKind as Kind};

/// What became of a record.
pub(super) struct Repaired {
    /// Its data area; none where it could not be read.
    pub area: Option<(u32, u32)>,
    /// Leader, directory and fields agree after all (the trouble is with the text): its bytes can
    /// be written as they are.
    pub sound: bool,
}

/// Reads the record that `raw` is (up to a terminator, or cut off) as well as can be, into `scratch`.
/// Offsets of troubles are relative to `raw`.
pub(super) fn repair(raw: &[u8], scratch: &mut Scratch) -> Repaired {
    let cut = raw.last() != Some(&RECORD_END);
    scratch.spans.clear();
    scratch.marks.clear();
    let mut repair = Repair { raw, scratch, sound: true, told: 0, rest: None };
    repair.length(cut);
    let area = repair.fields();
    let sound = repair.sound && !cut;
    if area.is_some() {
        repair.faults();
    }
    repair.end();
    Repaired { area, sound }
}

/// How many troubles of a record are told one by one; of the rest only the worst and the number. A
/// record made of nothing but faults would else take twenty times its size.
const MOST: usize = 100;

struct Repair<'a> {
    raw: &'a [u8],
    scratch: &'a mut Scratch,
    sound: bool,
    /// How many troubles there are.
    told: usize,
    /// The worst of those that are not told.
    rest: Option<(Kind, usize)>,
}

/// A directory entry as it stands; none where it has no numbers.
type Entry = ([u8; 3], Option<(usize, usize)>);

impl Repair<'_> {
    fn say(&mut self, kind: Kind, offset: usize, detail: impl Into<String>) {
        self.told += 1;
        if self.told <= MOST {
            return self.scratch.troubles.push(Trouble::new(kind, offset, detail));
        }
        if self.rest.is_none_or(|(worst, _)| worst.severity() < kind.severity()) {
            self.rest = Some((kind, offset));
        }
    }

    /// Says how many troubles were not told, and the worst of them.
    fn end(self) {
        if let Some((kind, offset)) = self.rest {
            let detail = format!("one of {} more in this record", self.told - MOST);
            self.scratch.troubles.push(Trouble::new(kind, offset, detail));
        }
    }

    /// Layout trouble: the bytes cannot be written back as they are.
    fn unsound(&mut self, kind: Kind, offset: usize, detail: impl Into<String>) {
        self.sound = false;
        self.say(kind, offset, detail);
    }

    /// Holds the length in the leader to that of the record.
    fn length(&mut self, cut: bool) {
        let length = self.raw.len();
        let shown = String::from_utf8_lossy(&self.raw[..length.min(5)]).into_owned();
        match self.raw.get(..5).and_then(number) {
            Some(n) if cut => {
                self.unsound(
                    Kind::Truncated,
                    length,
                    format!("the leader says {n} bytes, it ends after {length}"),
                );
            }
            None if cut => {
                self.unsound(Kind::Truncated, length, format!("it ends after {length} bytes"));
            }
            Some(n) if n == length => (),
            Some(0 | 99_999) if length > 99_999 => {
                // The convention for what five digits cannot say.
                self.say(Kind::Oversized, 0, format!("{length} bytes, {shown} in the leader"));
                self.sound = shown == "00000";
            }
            _ => self.unsound(
                Kind::RecordLength,
                0,
                format!("{shown:?} in the leader, found {length}"),
            ),
        }
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
        if start(raw).is_none() {
            // The rest of a record whose beginning is lost has digits of its directory there.
            let counts = &raw[10..12] == b"22" || &raw[20..22] == b"45";
            if raw[6].is_ascii_digit() || !counts {
                self.unsound(Kind::Unreadable, 0, "no leader");
                return None;
            }
            let fitting = self.fitting(&entries, base, end);
            if fitting * 2 < entries.len() {
                let detail = format!("{fitting} of {} entries fit the fields", entries.len());
                self.unsound(Kind::NoDirectory, 24, detail);
                return None;
            }
        }
        self.place(&entries, base, end);
        if self.scratch.spans.is_empty() {
            self.unsound(Kind::NoFields, 24, "no entry has a field");
            return None;
        }
        Some((base as u32, end as u32))
    }

    /// How many entries have the place that the ones before leave them, or one between terminators, or
    /// the length of the field that is theirs by its number.
    fn fitting(&self, entries: &[Entry], base: usize, end: usize) -> usize {
        let data = &self.raw[base..end];
        let mut lengths = memchr::memchr_iter(FIELD_END, data).scan(0, |from, at| {
            let length = at + 1 - *from;
            *from = at + 1;
            Some(length)
        });
        let is_end = |at: usize| at > 0 && data.get(at - 1) == Some(&FIELD_END);
        let mut next = Some(0);
        entries
            .iter()
            .filter(|(_, numbers)| {
                let found = lengths.next();
                let Some((length, at)) = *numbers else {
                    next = None;
                    return false;
                };
                let chained = next == Some(at);
                next = Some(at + length);
                length > 0
                    && (chained
                        || found == Some(length)
                        || is_end(at + length) && (at == 0 || is_end(at)))
            })
            .count()
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
        let read = |widths: start::Widths| -> Vec<Entry> {
            let [length, start, _] = widths;
            let entry = |e: &[u8]| {
                let n = number(&e[3..3 + length]).zip(number(&e[3 + length..3 + length + start]));
                ([e[0], e[1], e[2]], n)
            };
            start::entries(directory, widths).map(entry).collect()
        };
        let good = |entries: &[Entry]| entries.iter().filter(|(_, n)| n.is_some()).count();
        let mut widths = USUAL;
        let mut entries = read(widths);
        if let Some(said) = said_widths(raw).filter(|said| *said != widths) {
            let other = read(said);
            let fits = directory.len().is_multiple_of(3 + said.iter().sum::<usize>());
            if fits && good(&other) * entries.len().max(1) > good(&entries) * other.len().max(1) {
                (widths, entries) = (said, other);
            }
        }
        let width = 3 + widths.iter().sum::<usize>();
        if !directory.len().is_multiple_of(width) {
            let detail = format!("{} bytes, not a multiple of {width}", directory.len());
            self.unsound(Kind::DirectoryLength, 24, detail);
        }
        if entries.is_empty() {
            let kind = match directory.is_empty() && raw.len() <= base + 1 {
                true => Kind::NoFields,
                false => Kind::NoDirectory,
            };
            self.unsound(kind, 24, "no entry");
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
        // How many bytes the fields may still have, all together.
        let mut left = raw.len();
        // The first entry beyond that, and how many there are.
        let mut beyond: Option<(usize, String)> = None;
        let mut beyond_count = 0;
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
                match self.alone(entry, (base, end), &segments, place) {
                    Some(range) => range,
                    None => continue,
                }
            };
            let Some(rest) = left.checked_sub(stop + 1 - start) else {
                let tag = || String::from_utf8_lossy(&entry.0).into_owned();
                beyond.get_or_insert_with(|| (place, tag()));
                beyond_count += 1;
                continue;
            };
            left = rest;
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
        if let Some((place, tag)) = beyond {
            let length = raw.len();
            let mut detail =
                format!("{tag}: with it the fields have more bytes than the record's {length}");
            if beyond_count > 1 {
                detail += &format!("; {} more entries are left out", beyond_count - 1);
            }
            self.unsound(Kind::Overlap, place, detail);
        } else if all_good && !in_order {
            self.say(Kind::Sequence, 24, "");
        } else if base + expected < end {
            let detail = format!("{} bytes after the last field", end - base - expected);
            self.say(Kind::FieldEnd, base + expected, detail);
        }
    }

    fn entry_trouble(&mut self, kind: Kind, place: usize, entry: &Entry, at: usize, length: usize) {
        let tag = String::from_utf8_lossy(&entry.0).into_owned();
        let said = match entry.1 {
            Some((n, at)) => format!("the directory says {n} bytes at {at}"),
            None => "the directory has no numbers".into(),
        };
        self.unsound(kind, place, format!("{tag}: {said}, found {length} at {at}"));
    }

    /// One bad entry: cut at the next terminator if its start can be believed.
    fn alone(
        &mut self,
        entry: &Entry,
        (base, end): (usize, usize),
        terminators: &[usize],
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
        // Searched for among those that were found: many entries may begin at the same long field.
        let next = terminators.partition_point(|&at| at < start);
        let stop = terminators.get(next).copied().unwrap_or(end);
        self.entry_trouble(Kind::DirectoryEntry, place, entry, start - base, stop + 1 - start);
        Some((start, stop))
    }

    /// Looks at the inside of the fields.
    fn faults(&mut self) {
        let spans = std::mem::take(&mut self.scratch.spans);
        let marks = std::mem::take(&mut self.scratch.marks);
        for span in &spans {
            let field = FieldRef::new(span, self.raw, &marks);
            faults(field, self.raw[9] == b'a', &mut |kind, at, detail| {
                self.say(kind, span.start as usize + at, detail);
            });
        }
        (self.scratch.spans, self.scratch.marks) = (spans, marks);
    }
}
