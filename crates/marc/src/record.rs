//! A record, borrowed and owned.

use std::fmt;

use super::{Content, FIELD_END, FieldRef, Leader, RECORD_END, SUBFIELD, builder::FieldBuilder};
use crate::{Error, Result};

/// Where a field lies in a record's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub tag: [u8; 3],
    /// First byte of the field.
    pub start: u32,
    /// One past its last byte: where its terminator stands.
    pub end: u32,
    /// Its subfield marks, as a range of the record's marks.
    pub marks: (u32, u32),
}

/// A record borrowed from a buffer: cheap to copy, nothing allocated.
#[derive(Clone, Copy)]
pub struct RecordRef<'a> {
    pub(super) leader: &'a [u8; 24],
    pub(super) data: &'a [u8],
    pub(super) spans: &'a [Span],
    pub(super) marks: &'a [u32],
    /// All bytes were seen to be UTF-8.
    pub(super) utf8: bool,
    /// The data area, from the first field to before the record terminator.
    pub(super) area: (u32, u32),
    /// The record as it stood in an ISO 2709 file, where it was sound: written back as it is.
    pub(super) raw: Option<&'a [u8]>,
}

impl<'a> RecordRef<'a> {
    /// The leader, as read.
    pub fn leader(&self) -> Leader {
        Leader(*self.leader)
    }

    /// How many fields there are.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// True where the record has no fields.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The fields, in the order of the directory.
    #[inline]
    pub fn fields(&self) -> impl ExactSizeIterator<Item = FieldRef<'a>> + Clone + use<'a> {
        let (data, marks) = (self.data, self.marks);
        self.spans.iter().map(move |s| FieldRef::new(s, data, marks))
    }

    /// The fields with this tag.
    pub fn fields_tagged(&self, tag: [u8; 3]) -> impl Iterator<Item = FieldRef<'a>> + use<'a> {
        self.fields().filter(move |f| f.tag() == tag)
    }

    /// The first field with this tag.
    pub fn field(&self, tag: [u8; 3]) -> Option<FieldRef<'a>> {
        self.fields_tagged(tag).next()
    }

    /// True if all bytes of the record were found to be UTF-8 (ASCII is).
    pub fn is_utf8(&self) -> bool {
        self.utf8
    }

    /// The record as it stood in the file, if it was read from one and was sound.
    pub fn raw(&self) -> Option<&'a [u8]> {
        self.raw
    }

    /// How far into the record `field` begins, in bytes; 0 where the record was not read from bytes.
    pub(super) fn offset_of(&self, field: &FieldRef<'_>) -> usize {
        let begin = match self.raw {
            Some(raw) => self.area.1 as usize + 1 - raw.len(),
            None => 0,
        };
        (field.start as usize).saturating_sub(begin)
    }

    /// The data area: all fields with their terminators.
    pub(super) fn area(&self) -> &'a [u8] {
        &self.data[self.area.0 as usize..self.area.1 as usize]
    }

    /// A record of its own.
    pub fn to_record(&self) -> Record {
        let mut record = Record::new();
        record.assign(*self);
        record
    }
}

impl fmt::Debug for RecordRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.leader())?;
        for field in self.fields() {
            let bytes = String::from_utf8_lossy(field.bytes());
            write!(f, "\n{} {:?}", field.tag_text(), bytes.replace('\u{1f}', "$"))?;
        }
        Ok(())
    }
}

impl PartialEq for RecordRef<'_> {
    /// Same leader, same fields with the same bytes in the same order.
    fn eq(&self, other: &Self) -> bool {
        self.leader == other.leader
            && self.len() == other.len()
            && self
                .fields()
                .zip(other.fields())
                .all(|(a, b)| a.tag() == b.tag() && a.bytes() == b.bytes())
    }
}

/// A record of one's own: to build, to edit, to keep.
///
/// Three buffers however many fields it has, and all are reused by [`assign`](Record::assign) and
/// [`clear`](Record::clear).
///
/// ```
/// use steelyard_marc::Record;
/// let mut record = Record::new();
/// record.push_plain(*b"001", b"42")?;
/// record.push_data(*b"245", *b"10", &[(b'a', b"Weights and measures /"), (b'c', b"A. Steelyard.")])?;
/// assert_eq!(record.as_ref().field(*b"245").unwrap().subfield(b'c').unwrap(), b"A. Steelyard.");
/// # Ok::<(), steelyard_marc::Error>(())
/// ```
#[derive(Clone)]
pub struct Record {
    pub(super) leader: [u8; 24],
    /// Fields with their terminators; the directory need not follow its order.
    pub(super) data: Vec<u8>,
    pub(super) spans: Vec<Span>,
    pub(super) marks: Vec<u32>,
    pub(super) utf8: bool,
}

impl Default for Record {
    fn default() -> Self {
        Self::new()
    }
}

impl Record {
    /// A record without fields, with the leader [`Leader::NEW`].
    pub fn new() -> Self {
        Record {
            leader: Leader::NEW.0,
            data: Vec::new(),
            spans: Vec::new(),
            marks: Vec::new(),
            utf8: true,
        }
    }

    /// Takes all fields out and sets the leader anew; keeps the memory.
    pub fn clear(&mut self) {
        self.leader = Leader::NEW.0;
        self.data.clear();
        self.spans.clear();
        self.marks.clear();
        self.utf8 = true;
    }

    /// Makes this a copy of `other`, in the memory it has.
    pub fn assign(&mut self, other: RecordRef<'_>) {
        self.leader = *other.leader;
        self.utf8 = other.utf8;
        self.data.clear();
        self.data.extend_from_slice(other.area());
        let base = other.area.0;
        self.spans.clear();
        self.marks.clear();
        let first = other.spans.iter().map(|s| s.marks.0).min().unwrap_or(0);
        let last = other.spans.iter().map(|s| s.marks.1).max().unwrap_or(0);
        self.marks.extend_from_slice(&other.marks[first as usize..last as usize]);
        self.spans.extend_from_slice(other.spans);
        for span in &mut self.spans {
            span.marks = (span.marks.0 - first, span.marks.1 - first);
        }
        self.rebase(base);
    }

    /// Reads `raw` through `walk`, which fills in delimiters and fields by their positions in `raw`
    /// and gives where the data begins; tells whether it did.
    #[inline]
    pub(super) fn walk_in(
        &mut self,
        raw: &[u8],
        walk: impl FnOnce(&mut Vec<u32>, &mut Vec<Span>) -> Option<usize>,
    ) -> bool {
        let Some(base) = walk(&mut self.marks, &mut self.spans) else {
            self.clear();
            return false;
        };
        self.leader.copy_from_slice(&raw[..24]);
        self.data.extend_from_slice(&raw[base..raw.len() - 1]);
        // The directory's end comes first and belongs to no field: it wraps around, unused.
        self.rebase(base as u32);
        true
    }

    /// Says what was found out about the text.
    pub(super) fn set_utf8(&mut self, utf8: bool) {
        self.utf8 = utf8;
    }

    /// Counts all positions from `base` on.
    fn rebase(&mut self, base: u32) {
        for mark in &mut self.marks {
            *mark = mark.wrapping_sub(base);
        }
        for span in &mut self.spans {
            span.start -= base;
            span.end -= base;
        }
    }

    /// The record, borrowed.
    #[allow(clippy::should_implement_trait)]
    pub fn as_ref(&self) -> RecordRef<'_> {
        RecordRef {
            leader: &self.leader,
            data: &self.data,
            spans: &self.spans,
            marks: &self.marks,
            utf8: self.utf8,
            area: (0, self.data.len() as u32),
            raw: None,
        }
    }

    /// The leader.
    pub fn leader(&self) -> Leader {
        Leader(self.leader)
    }

    /// Sets the leader. Lengths in it are computed anew when the record is written.
    pub fn set_leader(&mut self, leader: Leader) {
        self.leader = leader.0;
    }

    /// How many fields there are.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// True where the record has no fields.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Appends a field of plain text.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) where the text has a field or record terminator in it,
    /// or the record grows over 4 GiB.
    pub fn push_plain(&mut self, tag: [u8; 3], text: &[u8]) -> Result<()> {
        self.push_bytes(tag, text)
    }

    /// Appends a field with two indicators and subfields, each a code and a text.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) where an indicator, code or text has a delimiter or
    /// terminator in it.
    pub fn push_data(
        &mut self,
        tag: [u8; 3],
        indicators: [u8; 2],
        subfields: &[(u8, &[u8])],
    ) -> Result<()> {
        let mut field = self.begin(tag, Some(indicators));
        for (code, text) in subfields {
            field.subfield(&[*code], text);
        }
        field.finish()
    }

    /// Appends a field from its bytes as they stand in ISO 2709, without terminator.
    ///
    /// # Errors
    /// As [`push_plain`](Record::push_plain).
    pub fn push_bytes(&mut self, tag: [u8; 3], bytes: &[u8]) -> Result<()> {
        let mut field = self.begin(tag, None);
        field.text(bytes);
        field.finish()
    }

    /// Checks all fields at once, for those that were finished as known text without being so: one
    /// pass over a record costs less than two over each of its fields.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) where something in a field cannot stand there.
    #[doc(hidden)]
    pub fn check_fields(&mut self) -> Result<()> {
        self.utf8 = simdutf8::basic::from_utf8(&self.data).is_ok();
        // So few at a time that a byte can count them: many bytes are then counted at once.
        let delimiter = |b: &u8| u8::from((RECORD_END..=SUBFIELD).contains(b));
        let some = |chunk: &[u8]| usize::from(chunk.iter().map(delimiter).sum::<u8>());
        let found: usize = self.data.chunks(128).map(some).sum();
        if found == self.marks.len() + self.spans.len() {
            return Ok(());
        }
        let wrong = self.spans.iter().find_map(|span| {
            let bytes = &self.data[span.start as usize..span.end as usize];
            let marks = (span.marks.1 - span.marks.0) as usize;
            if memchr::memchr2(FIELD_END, RECORD_END, bytes).is_some() {
                Some((span.tag, "a field or record terminator inside a field"))
            } else if memchr::memchr_iter(SUBFIELD, bytes).count() != marks {
                Some((span.tag, "a subfield delimiter inside a subfield"))
            } else {
                None
            }
        });
        let (tag, bad) = wrong.unwrap_or((*b"   ", "an unexpected delimiter"));
        let tag = String::from_utf8_lossy(&tag).into_owned();
        Err(Error::invalid(format!("field {tag}: {bad}")))
    }

    /// Begins a field at the end; what is pushed into it counts once it is finished.
    #[doc(hidden)]
    pub fn begin(&mut self, tag: [u8; 3], indicators: Option<[u8; 2]>) -> FieldBuilder<'_> {
        FieldBuilder::new(self, tag, indicators)
    }

    /// Inserts the field at `index` (in the order of fields), given as for [`push_bytes`](Self::push_bytes).
    ///
    /// # Errors
    /// As [`push_plain`](Record::push_plain).
    ///
    /// # Panics
    /// If `index` is greater than the number of fields, as `Vec::insert` does.
    pub fn insert_bytes(&mut self, index: usize, tag: [u8; 3], bytes: &[u8]) -> Result<()> {
        assert!(index <= self.len(), "field {index} of {}", self.len());
        self.push_bytes(tag, bytes)?;
        self.spans[index..].rotate_right(1);
        self.lay_in_order();
        Ok(())
    }

    /// Keeps the fields for which `keep` is true; returns how many went.
    pub fn retain(&mut self, mut keep: impl FnMut(FieldRef<'_>) -> bool) -> usize {
        let before = self.len();
        let (data, marks) = (&self.data, &self.marks);
        self.spans.retain(|s| keep(FieldRef::new(s, data, marks)));
        if self.len() < before {
            self.lay_in_order();
        }
        before - self.len()
    }

    /// Takes out all fields with this tag; returns how many went.
    pub fn remove(&mut self, tag: [u8; 3]) -> usize {
        self.retain(|f| f.tag() != tag)
    }

    /// Sorts the fields by tag; fields of one tag keep their order.
    pub fn sort(&mut self) {
        self.spans.sort_by_key(|s| s.tag);
        self.lay_in_order();
    }

    /// Lays the data in the order of the fields, and leaves out what no field refers to.
    fn lay_in_order(&mut self) {
        let (data, marks) = (std::mem::take(&mut self.data), std::mem::take(&mut self.marks));
        for span in &mut self.spans {
            let (start, first_mark) = (self.data.len() as u32, self.marks.len() as u32);
            self.data.extend_from_slice(&data[span.start as usize..span.end as usize]);
            let end = self.data.len() as u32;
            self.data.push(FIELD_END);
            let own = &marks[span.marks.0 as usize..span.marks.1 as usize];
            self.marks.extend(own.iter().map(|m| m - span.start + start));
            *span =
                Span { tag: span.tag, start, end, marks: (first_mark, self.marks.len() as u32) };
        }
    }
}

impl PartialEq for Record {
    fn eq(&self, other: &Self) -> bool {
        self.as_ref() == other.as_ref()
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}

impl<'a> From<RecordRef<'a>> for Record {
    fn from(record: RecordRef<'a>) -> Self {
        record.to_record()
    }
}

/// A field's text for the eye: plain text, or subfields with a space between them.
impl fmt::Display for FieldRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.content() {
            Content::Plain(text) => f.write_str(&String::from_utf8_lossy(text)),
            Content::Data(_, subfields) => {
                for (i, s) in subfields.enumerate() {
                    let gap = if i == 0 { "" } else { " " };
                    write!(f, "{gap}{}", String::from_utf8_lossy(s.value))?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Record {
        let mut r = Record::new();
        r.push_plain(*b"001", b"42").unwrap();
        r.push_data(*b"650", *b" 0", &[(b'a', b"Scales")]).unwrap();
        r.push_data(*b"245", *b"10", &[(b'a', b"Weights"), (b'c', b"me")]).unwrap();
        r
    }

    #[test]
    fn edits_keep_the_rest() {
        let mut r = sample();
        r.sort();
        let tags: Vec<_> = r.as_ref().fields().map(|f| f.tag()).collect();
        assert_eq!(tags, [*b"001", *b"245", *b"650"]);
        r.insert_bytes(1, *b"100", b"1 \x1faHanse").unwrap();
        assert_eq!(r.remove(*b"245"), 1);
        let texts: Vec<_> = r.as_ref().fields().map(|f| f.to_string()).collect();
        assert_eq!(texts, ["42", "Hanse", "Scales"]);
        assert_eq!(r.as_ref().to_record(), r);
    }

    #[test]
    fn a_copy_knows_its_subfields() {
        let mut raw = Vec::new();
        crate::iso2709::write(sample().as_ref(), &mut raw);
        crate::iso2709::write(sample().as_ref(), &mut raw);
        let mut records = crate::iso2709::Records::new(&raw);
        while let Some(item) = records.next() {
            let copy = item.record.unwrap().to_record();
            assert_eq!(copy.as_ref().field(*b"245").unwrap().subfield(b'c'), Some(&b"me"[..]));
            assert_eq!(copy.as_ref().field(*b"650").unwrap().subfields().len(), 1);
        }
    }

    #[test]
    fn a_refused_field_leaves_no_trace() {
        let mut r = sample();
        let before = r.clone();
        assert!(r.push_data(*b"500", *b"  ", &[(b'a', b"x\x1fby")]).is_err());
        assert!(r.push_plain(*b"500", b"x\x1e").is_err());
        assert!(r.push_data(*b"500", [0x1f, b' '], &[]).is_err());
        assert_eq!(r, before);
    }
}
