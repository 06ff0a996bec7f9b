//! Strings and their encodings. Most of most records is strings, so the common encodings have fast paths.

use serde::de::Visitor;

use super::reader::{Object, Reader};
use crate::Result;

/// What a string's encoding promises.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Charset {
    /// UTF-8.
    Utf8,
    /// US-ASCII, or another encoding that ASCII text looks the same in.
    Ascii,
    /// No encoding: bytes.
    Binary,
    /// An encoding in which not even ASCII looks like ASCII.
    Other,
}

/// The charset of an encoding with this name.
fn named_charset(name: &[u8]) -> Charset {
    let apart = [&b"UTF-16"[..], b"UTF-32", b"UTF-7", b"ISO-2022", b"CP50", b"IBM037"];
    match name {
        b"UTF-8" | b"UTF8-MAC" | b"UTF-8-MAC" | b"UTF8-DoCoMo" | b"UTF8-KDDI"
        | b"UTF8-SoftBank" => Charset::Utf8,
        _ if apart.iter().any(|start| name.starts_with(start)) => Charset::Other,
        _ => Charset::Ascii,
    }
}

/// How text is handed out: as text, checked; or as bytes, to types that take bytes for text.
pub trait Text<'de>: Copy + Default {
    /// The text between two offsets, if it is valid.
    fn read(reader: &mut Reader<'de, Self>, from: usize, to: usize) -> Option<Self>;
    /// The same, for offsets that may lie far back.
    fn read_again(reader: &Reader<'de, Self>, from: usize, to: usize) -> Option<Self>;
    /// Its bytes.
    fn bytes(self) -> &'de [u8];
    /// Hands it over.
    fn visit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value>;
}

impl<'de> Text<'de> for &'de [u8] {
    #[inline]
    fn read(reader: &mut Reader<'de, Self>, from: usize, to: usize) -> Option<Self> {
        reader.input.get(from..to)
    }
    #[inline]
    fn read_again(reader: &Reader<'de, Self>, from: usize, to: usize) -> Option<Self> {
        reader.input.get(from..to)
    }
    #[inline]
    fn bytes(self) -> &'de [u8] {
        self
    }
    #[inline]
    fn visit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_borrowed_bytes(self)
    }
}

/// How many bytes are checked for UTF-8 at once.
const FURTHER: usize = 1024;

impl<'de> Text<'de> for &'de str {
    #[inline]
    fn read(reader: &mut Reader<'de, Self>, from: usize, to: usize) -> Option<Self> {
        let (valid, at) = reader.valid;
        match valid.get(from.wrapping_sub(at)..to.wrapping_sub(at)) {
            Some(text) => Some(text),
            None => reader.check_further(from, to),
        }
    }
    #[inline]
    fn read_again(reader: &Reader<'de, Self>, from: usize, to: usize) -> Option<Self> {
        reader.input.get(from..to).and_then(|bytes| std::str::from_utf8(bytes).ok())
    }
    #[inline]
    fn bytes(self) -> &'de [u8] {
        self.as_bytes()
    }
    #[inline]
    fn visit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_borrowed_str(self)
    }
}

impl<'de> Reader<'de, &'de str> {
    /// Checks the bytes from one offset to another, and what comes after them too.
    #[cold]
    fn check_further(&mut self, from: usize, to: usize) -> Option<&'de str> {
        if !self.entering {
            // Links go back and forth: nothing is gained by looking ahead.
            return Text::read_again(self, from, to);
        }
        let end = self.input.len().min(to.max(from + FURTHER));
        let ahead = &self.input[from..end];
        let valid = match std::str::from_utf8(ahead) {
            Ok(valid) => valid,
            Err(e) => std::str::from_utf8(&ahead[..e.valid_up_to()]).ok()?,
        };
        self.valid = (valid, from);
        valid.get(..to - from)
    }
}

impl<'de, T: Text<'de>> Reader<'de, T> {
    /// The text here, where it is of the commonest kinds: a UTF-8 string, a link to one, or a link
    /// to a symbol. Else none, and nothing is read.
    #[inline(always)]
    pub fn common_text(&mut self) -> Result<Option<T>> {
        match self.input.get(self.pos..).and_then(|rest| rest.first_chunk()) {
            Some(&[b'I', b'"', n]) => Ok(self.utf8_string(n)),
            Some([b'@', ..]) => self.linked_text(),
            Some([b';', ..]) => {
                let start = self.pos;
                let (from, to) = self.symbol_range()?;
                let text = T::read_again(self, from, to);
                if text.is_none() {
                    self.pos = start;
                }
                Ok(text)
            }
            _ => Ok(None),
        }
    }

    /// The UTF-8 string here, after whose tag stands `n`.
    #[inline(always)]
    fn utf8_string(&mut self, n: u8) -> Option<T> {
        let start = self.pos;
        let (from, to) = match n {
            5..128 => (start + 3, start + usize::from(n) - 2),
            1..=4 => self.long_string()?,
            _ => return None,
        };
        let end = *self.input.get(to..)?.first_chunk()?;
        if Some(u32::from_le_bytes(end)) != self.utf8_end {
            return None;
        }
        let text = T::read(self, from, to)?;
        self.pos = to + 4;
        if self.entering {
            self.objects.push(Object { at: start as u32, text });
        }
        Some(text)
    }

    /// Where the string here begins and ends, whose length takes several bytes.
    fn long_string(&mut self) -> Option<(usize, usize)> {
        let start = self.pos;
        self.pos += 2;
        let len = self.count(1);
        let from = std::mem::replace(&mut self.pos, start);
        Some((from, from + len.ok()?))
    }

    /// The text linked to from here. None for anything else; nothing is read.
    #[inline(always)]
    fn linked_text(&mut self) -> Result<Option<T>> {
        let start = self.pos;
        self.pos += 1;
        let n = self.long()?;
        let object = usize::try_from(n).ok().and_then(|n| self.objects.get(n));
        if let Some(&Object { text, .. }) = object {
            let len = text.bytes().len();
            if len > 0 {
                self.budget.spend(8 + len)?;
                return Ok(Some(text));
            }
        }
        self.pos = start;
        Ok(None)
    }

    /// The variables after a string, of which only the encoding counts.
    pub fn charset(&mut self) -> Result<Charset> {
        if let Some(end) = self.input.get(self.pos..).and_then(|rest| rest.first_chunk())
            && Some(u32::from_le_bytes(*end)) == self.utf8_end
        {
            self.pos += 4;
            return Ok(Charset::Utf8);
        }
        let mut charset = Charset::Binary;
        for _ in 0..self.count(2)? {
            match (self.symbol()?, self.peek()) {
                (b"E", Some(b'T')) => charset = Charset::Utf8,
                (b"E", Some(b'F')) => charset = Charset::Ascii,
                (b"encoding", Some(b'"')) => {
                    self.enter(self.pos);
                    self.pos += 1;
                    charset = named_charset(self.bytes()?);
                    continue;
                }
                (b"encoding", Some(b'@')) => charset = self.linked_charset()?,
                _ => {}
            }
            self.skip()?;
        }
        Ok(charset)
    }

    /// The charset whose name is linked to from here; nothing is read.
    fn linked_charset(&mut self) -> Result<Charset> {
        let here = self.pos;
        let (_, target) = self.link()?;
        let mut charset = Charset::Other;
        if let Some(target) = target
            && self.input[target] == b'"'
        {
            self.pos = target + 1;
            charset = named_charset(self.bytes()?);
        }
        self.pos = here;
        Ok(charset)
    }
}
