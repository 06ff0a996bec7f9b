//! A field of a record, borrowed.

use super::{SUBFIELD, Span};

/// A field: a tag and its bytes (without the terminator), with the subfield marks already found.
#[derive(Clone, Copy)]
pub struct FieldRef<'a> {
    pub(super) tag: [u8; 3],
    /// The buffer that the marks point into.
    pub(super) data: &'a [u8],
    pub(super) start: u32,
    pub(super) end: u32,
    /// Positions of the subfield delimiters, in `data`.
    pub(super) marks: &'a [u32],
}

/// What a field holds.
#[derive(Clone, Copy)]
pub enum Content<'a> {
    /// Text only: control fields, and whatever has not the shape of a data field.
    Plain(&'a [u8]),
    /// Two indicators and subfields.
    Data([u8; 2], Subfields<'a>),
}

impl<'a> FieldRef<'a> {
    pub(super) fn new(span: &Span, data: &'a [u8], marks: &'a [u32]) -> Self {
        FieldRef {
            tag: span.tag,
            data,
            start: span.start,
            end: span.end,
            marks: &marks[span.marks.0 as usize..span.marks.1 as usize],
        }
    }

    /// The tag: three bytes, as a rule digits.
    pub fn tag(&self) -> [u8; 3] {
        self.tag
    }

    /// The tag as text, odd bytes replaced.
    pub fn tag_text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.tag)
    }

    /// All bytes of the field: indicators, delimiters and text, without the terminator.
    pub fn bytes(&self) -> &'a [u8] {
        &self.data[self.start as usize..self.end as usize]
    }

    /// True for tags `00X`, which by rule hold plain text.
    pub fn is_control(&self) -> bool {
        self.tag[0] == b'0' && self.tag[1] == b'0'
    }

    /// What the field holds.
    ///
    /// A field has the shape of a data field if its tag is not `00X`, two ASCII indicators come
    /// first, a delimiter comes next (or nothing at all) and every subfield code is a character: of ASCII, or
    /// one of UTF-8, as stray marks of other programs have them. Anything else is plain, delimiters
    /// included, so that nothing is lost whatever the bytes are.
    pub fn content(&self) -> Content<'a> {
        let bytes = self.bytes();
        let shaped = !self.is_control()
            && bytes.len() >= 2
            && bytes[0] < 0x80
            && bytes[1] < 0x80
            && bytes[0] != SUBFIELD
            && bytes[1] != SUBFIELD
            && (bytes.len() == 2 || bytes[2] == SUBFIELD)
            && self.marks.iter().all(|&m| {
                match self.data[m as usize + 1..self.end as usize].first() {
                    // A delimiter with nothing after it has an empty code.
                    None => true,
                    Some(&code) => code < 0x80 || self.subfield_at(m).code.len() > 1,
                }
            });
        match shaped {
            true => Content::Data([bytes[0], bytes[1]], self.subfields()),
            false => Content::Plain(bytes),
        }
    }

    /// The subfield that begins at this mark, up to the end of the field.
    #[cold]
    fn subfield_at(&self, mark: u32) -> Subfield<'a> {
        Subfield::of(&self.data[mark as usize + 1..self.end as usize])
    }

    /// The subfields, whatever stands before them.
    pub fn subfields(&self) -> Subfields<'a> {
        Subfields { data: self.data, end: self.end, marks: self.marks }
    }

    /// The value of the first subfield with this code.
    pub fn subfield(&self, code: u8) -> Option<&'a [u8]> {
        self.subfields().find(|s| s.code == [code]).map(|s| s.value)
    }
}

/// A subfield: a code (one character; none if the delimiter stood alone) and its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subfield<'a> {
    /// The code, empty where the delimiter is followed by nothing.
    pub code: &'a [u8],
    /// The text, in the record's encoding.
    pub value: &'a [u8],
}

impl<'a> Subfield<'a> {
    /// The subfield of these bytes, which stand behind its delimiter.
    #[inline]
    pub(super) fn of(bytes: &'a [u8]) -> Subfield<'a> {
        let length = match bytes.first() {
            None => 0,
            Some(..0x80) => 1,
            Some(_) => first_character(bytes).len(),
        };
        let (code, value) = bytes.split_at(length);
        Subfield { code, value }
    }
}

/// The first character of a text; the first byte where that begins none.
pub(super) fn first_character(text: &[u8]) -> &[u8] {
    let start = &text[..text.len().min(4)];
    let chunk = start.utf8_chunks().next();
    let length = chunk.and_then(|c| c.valid().chars().next()).map_or(1, char::len_utf8);
    &text[..length.min(text.len())]
}

/// The subfields of a field, in order.
#[derive(Clone, Copy)]
pub struct Subfields<'a> {
    data: &'a [u8],
    end: u32,
    marks: &'a [u32],
}

impl<'a> Subfields<'a> {
    /// Where the delimiters stand in the record's buffer.
    pub(super) fn marks(&self) -> &'a [u32] {
        self.marks
    }

    /// Where the field ends in the record's buffer.
    pub(super) fn end(&self) -> usize {
        self.end as usize
    }
}

impl<'a> Iterator for Subfields<'a> {
    type Item = Subfield<'a>;

    #[inline]
    fn next(&mut self) -> Option<Subfield<'a>> {
        let (&mark, rest) = self.marks.split_first()?;
        self.marks = rest;
        let end = rest.first().copied().unwrap_or(self.end);
        Some(Subfield::of(&self.data[mark as usize + 1..end as usize]))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.marks.len(), Some(self.marks.len()))
    }
}

impl ExactSizeIterator for Subfields<'_> {}
