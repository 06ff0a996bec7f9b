//! Reads a MARC record directly from Marshal's bytes, where it has the usual encoding.
//!
//! Ruby's programs and our own write `{"leader" => text, "fields" => [{tag => text}, {tag => {"ind1"
//! => text, "ind2" => text, "subfields" => [{code => text}]}}]}`, in this order; texts are strings,
//! symbols or links to them. This walks just that, without heads and visitors between the bytes and
//! the record. It decides nothing: for anything else, wrong or only rare, it answers that it has not
//! read it, and the [general way](super::de) does, with what it has to say. What is read here is
//! read equal there; tests hold it to that.

#[cfg(test)]
mod tests;

use super::HEADER;
use crate::{
    format::objects::limits::Budget,
    marc::{FieldBuilder, Leader, Record},
};

/// Reads `bytes` into `record`, whose memory is used again; false where they have not the usual
/// shape, and then the record is empty.
pub(super) fn read(bytes: &[u8], record: &mut Record) -> bool {
    if !bytes.starts_with(&HEADER) || u32::try_from(bytes.len()).is_err() {
        return false;
    }
    record.clear();
    let mut direct = Direct {
        input: bytes,
        pos: HEADER.len(),
        // A guess that spares most records growing the table.
        objects: Vec::with_capacity((bytes.len() / 8 + 8).min(4096)),
        symbols: Vec::new(),
        utf8_end: None,
        names: [NOWHERE; 3],
        budget: Budget::new(bytes.len()),
    };
    if direct.record(record).is_some() && direct.pos == bytes.len() {
        return true;
    }
    record.clear();
    false
}

/// Where a text begins and ends.
type Range = (u32, u32);

/// The place of an object that is no text.
const NOWHERE: Range = (0, 0);

/// What a link costs, over the bytes linked to: no less than the general way takes for it, however
/// the text is spelled.
const LINK: usize = 16;

/// Names in a field, by their places in [`Direct::names`].
const NAMES: [&[u8]; 3] = [b"ind1", b"ind2", b"subfields"];

/// Stands in the bytes of one record. None of its answers is an error: only something else.
struct Direct<'a> {
    input: &'a [u8],
    pos: usize,
    /// The texts among the objects that may be linked to.
    objects: Vec<Range>,
    symbols: Vec<Range>,
    /// What ends a UTF-8 string, but for the first: one variable, the symbol `E` by its number, true.
    /// None until that number is known.
    utf8_end: Option<u32>,
    /// Where the names of [`NAMES`] were seen last: links to them lead there.
    names: [Range; 3],
    budget: Budget,
}

impl Direct<'_> {
    fn record(&mut self, record: &mut Record) -> Option<()> {
        self.hash(2)?;
        self.name(b"leader")?;
        let leader = self.text()?;
        record.set_leader(Leader(self.bytes(leader).try_into().ok()?));
        self.name(b"fields")?;
        for _ in 0..self.list()? {
            self.hash(1)?;
            let tag = self.text()?;
            let tag = self.bytes(tag).try_into().ok()?;
            match self.input.get(self.pos)? {
                b'{' => self.data(record, tag)?,
                _ => {
                    let text = self.text()?;
                    let mut field = record.begin(tag, None);
                    field.value_text(self.bytes(text));
                    field.finish_text().ok()?;
                }
            }
        }
        // Delimiters where none can be, in whatever part, are found here.
        record.check_fields().ok()
    }

    /// A field's indicators and subfields.
    #[inline]
    fn data(&mut self, record: &mut Record, tag: [u8; 3]) -> Option<()> {
        self.hash(3)?;
        self.field_name(0)?;
        let first = self.character()?;
        self.field_name(1)?;
        let second = self.character()?;
        self.field_name(2)?;
        let mut field = record.begin(tag, Some([first, second]));
        for _ in 0..self.list()? {
            if !self.usual_subfield(&mut field) {
                self.hash(1)?;
                let code = self.character()?;
                let (from, to) = self.text()?;
                field.usual_from(code, self.input, from as usize, to as usize);
            }
        }
        field.finish_text().ok()
    }

    /// A subfield whose code was seen before and whose text is a short string in UTF-8, in one go;
    /// nothing is taken if it is not.
    #[inline(always)]
    fn usual_subfield(&mut self, field: &mut FieldBuilder<'_>) -> bool {
        const SHAPE: u64 = u64::from_le_bytes(*b"{\x06@\0I\"\0\0");
        const FIXED: u64 = 0x0000_ffff_00ff_ffff;
        let Some(&head) = self.input.get(self.pos..).and_then(|rest| rest.first_chunk::<8>())
        else {
            return false;
        };
        let [.., object, _, _, len, _] = head;
        if u64::from_le_bytes(head) & FIXED != SHAPE
            || !(6..128).contains(&object)
            || !(6..128).contains(&len)
        {
            return false;
        }
        let from = self.pos + 7;
        let to = from + usize::from(len) - 5;
        let code = match self.objects.get(usize::from(object) - 5) {
            Some(&(at, end)) if end - at == 1 => self.input[at as usize],
            _ => return false,
        };
        if !self.ends_utf8(to) || self.budget.spend(LINK + 1).is_err() {
            return false;
        }
        self.pos = to + 4;
        self.objects.extend_from_slice(&[NOWHERE, (from as u32, to as u32)]);
        field.usual_from(code, self.input, from, to);
        true
    }

    /// The beginning of a hash of so many pairs, up to 122.
    #[inline(always)]
    fn hash(&mut self, len: u8) -> Option<()> {
        let [tag, n] = *self.input.get(self.pos..)?.first_chunk()?;
        if tag != b'{' || n != len + 5 {
            return None;
        }
        self.pos += 2;
        self.objects.push(NOWHERE);
        Some(())
    }

    /// How many parts the list here has.
    #[inline(always)]
    fn list(&mut self) -> Option<usize> {
        if self.input.get(self.pos) != Some(&b'[') {
            return None;
        }
        self.pos += 1;
        self.objects.push(NOWHERE);
        self.long()
    }

    fn name(&mut self, name: &[u8]) -> Option<()> {
        let text = self.text()?;
        (self.bytes(text) == name).then_some(())
    }

    /// A name within a field.
    #[inline(always)]
    fn field_name(&mut self, which: usize) -> Option<()> {
        let text = self.text()?;
        if text != self.names[which] {
            if self.bytes(text) != NAMES[which] {
                return None;
            }
            self.names[which] = text;
        }
        Some(())
    }

    /// Text that is a code or indicator: one byte.
    #[inline(always)]
    fn character(&mut self) -> Option<u8> {
        let text = self.text()?;
        match *self.bytes(text) {
            [character] => Some(character),
            _ => None,
        }
    }

    #[inline(always)]
    fn bytes(&self, (from, to): Range) -> &[u8] {
        &self.input[from as usize..to as usize]
    }

    /// The text here: a string, a symbol, or a link to one.
    #[inline(always)]
    fn text(&mut self) -> Option<Range> {
        match self.input.get(self.pos..).and_then(|rest| rest.first_chunk()) {
            Some(&[b'@', n @ 5..128, _]) => {
                self.pos += 2;
                self.linked(usize::from(n) - 5)
            }
            Some(&[b'I', b'"', n @ 5..128]) => {
                let from = self.pos + 3;
                let to = from + usize::from(n) - 5;
                if !self.ends_utf8(to) {
                    return self.other_text();
                }
                self.pos = to + 4;
                self.objects.push((from as u32, to as u32));
                Some((from as u32, to as u32))
            }
            _ => self.other_text(),
        }
    }

    #[inline(always)]
    fn linked(&mut self, n: usize) -> Option<Range> {
        let text = *self.objects.get(n)?;
        self.budget.spend(LINK + (text.1 - text.0) as usize).ok()?;
        (text != NOWHERE).then_some(text)
    }

    /// True if what ends most UTF-8 strings stands here.
    #[inline(always)]
    fn ends_utf8(&self, at: usize) -> bool {
        let end = self.input.get(at..).and_then(|rest| rest.first_chunk());
        end.is_some_and(|end| Some(u32::from_le_bytes(*end)) == self.utf8_end)
    }

    /// A text spelled in one of the rarer ways.
    #[inline(never)]
    fn other_text(&mut self) -> Option<Range> {
        let tag = self.byte()?;
        match tag {
            b'@' => {
                let n = self.long()?;
                self.linked(n)
            }
            b';' => {
                let n = self.long()?;
                let name = *self.symbols.get(n)?;
                self.budget.spend(LINK + (name.1 - name.0) as usize).ok()?;
                Some(name)
            }
            b':' => self.new_symbol(),
            b'"' => self.string(),
            b'I' if self.byte()? == b'"' => {
                let text = self.string()?;
                self.encoding()?;
                Some(text)
            }
            _ => None,
        }
    }

    /// A string after its tag.
    fn string(&mut self) -> Option<Range> {
        let text = self.counted()?;
        self.objects.push(text);
        Some(text)
    }

    /// One variable, the symbol `E`: UTF-8 or US-ASCII, which is all the same to bytes.
    fn encoding(&mut self) -> Option<()> {
        if self.byte()? != 6 {
            return None;
        }
        let symbol = match self.byte()? {
            b':' => self.new_symbol()?,
            b';' => {
                let n = self.long()?;
                *self.symbols.get(n)?
            }
            _ => return None,
        };
        (self.bytes(symbol) == b"E" && matches!(self.byte()?, b'T' | b'F')).then_some(())
    }

    /// A symbol after its tag.
    fn new_symbol(&mut self) -> Option<Range> {
        let name = self.counted()?;
        let n = self.symbols.len();
        self.symbols.push(name);
        if self.bytes(name) == b"E" && n < 123 {
            let n = if n == 0 { 0 } else { n as u8 + 5 };
            self.utf8_end = Some(u32::from_le_bytes([6, b';', n, b'T']));
        }
        Some(name)
    }

    /// Bytes after their count.
    fn counted(&mut self) -> Option<Range> {
        let len = self.long()?;
        let from = self.pos;
        self.pos = from.checked_add(len).filter(|to| *to <= self.input.len())?;
        Some((from as u32, self.pos as u32))
    }

    #[inline(always)]
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.input.get(self.pos)?;
        self.pos += 1;
        Some(byte)
    }

    /// A number that is not negative.
    #[inline(always)]
    fn long(&mut self) -> Option<usize> {
        match self.byte()? {
            0 => Some(0),
            n @ 5..128 => Some(usize::from(n) - 5),
            n @ 1..5 => {
                let bytes = self.input.get(self.pos..)?.get(..usize::from(n))?;
                self.pos += bytes.len();
                Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
            }
            _ => None,
        }
    }
}
