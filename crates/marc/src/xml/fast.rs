//! The fast path: fields in the spelling that nearly all tools write.
//!
//! It never decides that something is wrong: at whatever it does not expect, it goes back to the
//! beginning of the field and leaves it to `general`.

use super::{
    scan::{copy_text, stands},
    token::{Reference, reference},
};
use crate::{FIELD_END, SUBFIELD, Span};

/// Where fields go: the buffers of a record.
pub(super) struct Sink<'a> {
    /// Room for text; what is behind `at` is free.
    pub data: &'a mut [u8],
    pub at: usize,
    pub spans: &'a mut Vec<Span>,
    pub marks: &'a mut Vec<u32>,
    pub leader: &'a mut [u8; 24],
    /// Set where a leader was read.
    pub has_leader: &'a mut bool,
}

/// What stands for itself between quotes: printable ASCII but for the quote and markup.
const PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut b = 0x20;
    while b < 0x7f {
        plain[b] = !matches!(b as u8, b'"' | b'<' | b'&');
        b += 1;
    }
    plain
};

#[inline(always)]
fn is_plain(byte: u8) -> bool {
    PLAIN[byte as usize]
}

#[inline(always)]
fn are_quotes(open: u8, close: u8) -> bool {
    open == close && (open == b'"' || open == b'\'')
}

/// The bytes being read, with the prefix that its elements are expected to have (`marc:`).
struct Text<'a, const PREFIXED: bool> {
    bytes: &'a [u8],
    prefix: &'a [u8],
}

/// Reads as many usual fields as follow; returns where it stopped, before a field.
pub(super) fn fields(bytes: &[u8], pos: usize, prefix: &[u8], sink: &mut Sink<'_>) -> usize {
    match prefix {
        [] => Text::<false> { bytes, prefix }.fields(pos, sink),
        _ => Text::<true> { bytes, prefix }.fields(pos, sink),
    }
}

impl<const PREFIXED: bool> Text<'_, PREFIXED> {
    fn fields(&self, mut pos: usize, sink: &mut Sink<'_>) -> usize {
        loop {
            let (at, mark) = (sink.at, sink.marks.len());
            match self.field(self.space(pos), sink) {
                Some(next) => pos = next,
                None => {
                    sink.at = at;
                    sink.marks.truncate(mark);
                    return pos;
                }
            }
        }
    }

    /// Behind blanks between elements.
    #[inline(always)]
    fn space(&self, mut pos: usize) -> usize {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.bytes.get(pos) {
            pos += 1;
        }
        pos
    }

    /// Behind `<` or `</` and the prefix and `word`, if they stand here.
    #[inline(always)]
    fn tag<const S: usize, const N: usize>(
        &self,
        pos: usize,
        sign: &[u8; S],
        word: &[u8; N],
    ) -> Option<usize> {
        let mut pos = stands(self.bytes, pos, sign).then_some(pos + S)?;
        if PREFIXED {
            self.bytes.get(pos..)?.starts_with(self.prefix).then_some(())?;
            pos += self.prefix.len();
        }
        stands(self.bytes, pos, word).then_some(pos + N)
    }

    #[inline(always)]
    fn field(&self, pos: usize, sink: &mut Sink<'_>) -> Option<usize> {
        if let Some(next) = self.tag(pos, b"<", b"datafield ") {
            self.data_field(next - 1, sink)
        } else if let Some(next) = self.tag(pos, b"<", b"controlfield tag=") {
            self.control_field(next, sink)
        } else {
            self.leader(self.tag(pos, b"<", b"leader>")?, sink)
        }
    }

    fn leader(&self, pos: usize, sink: &mut Sink<'_>) -> Option<usize> {
        let leader: &[u8; 24] = self.bytes.get(pos..)?.first_chunk()?;
        let end = self.tag(pos + 24, b"</", b"leader>")?;
        if *sink.has_leader || !leader.iter().all(|&b| is_plain(b)) {
            return None;
        }
        *sink.leader = *leader;
        *sink.has_leader = true;
        Some(end)
    }

    #[inline(always)]
    fn control_field(&self, pos: usize, sink: &mut Sink<'_>) -> Option<usize> {
        let &[open, a, b, c, close, b'>'] = self.bytes.get(pos..)?.first_chunk()? else {
            return None;
        };
        let numeric = a.is_ascii_digit() && b.is_ascii_digit() && c.is_ascii_digit();
        // That a field with another number is no data field deserves a remark.
        if !(are_quotes(open, close) && is_plain(a) && is_plain(b) && is_plain(c))
            || (numeric && (a, b) != (b'0', b'0'))
        {
            return None;
        }
        let start = sink.at;
        let pos = self.value(pos + 6, sink)?;
        let pos = self.tag(pos, b"</", b"controlfield>")?;
        self.finish([a, b, c], start, sink.marks.len(), sink)?;
        Some(pos)
    }

    #[inline(always)]
    fn data_field(&self, pos: usize, sink: &mut Sink<'_>) -> Option<usize> {
        let mut head: [u8; 29] = *self.bytes.get(pos..)?.first_chunk()?;
        if head[27] == b'\'' && !head.contains(&b'"') {
            head = head.map(|b| if b == b'\'' { b'"' } else { b });
        }
        let (tag, indicators) = if head.starts_with(b" tag=\"")
            && head[9..17] == *b"\" ind1=\""
            && head[18..26] == *b"\" ind2=\""
        {
            ([head[6], head[7], head[8]], [head[17], head[26]])
        } else if head.starts_with(b" ind1=\"")
            && head[8..16] == *b"\" ind2=\""
            && head[17..24] == *b"\" tag=\""
        {
            ([head[24], head[25], head[26]], [head[7], head[16]])
        } else {
            return None;
        };
        if head[27..] != *b"\">"
            || !tag.iter().all(|&b| is_plain(b))
            || !indicators.iter().all(|&b| is_plain(b))
            || tag.starts_with(b"00")
        {
            return None;
        }
        let (start, first_mark) = (sink.at, sink.marks.len());
        sink.data.get_mut(start..start + 2)?.copy_from_slice(&indicators);
        sink.at += 2;
        let mut pos = pos + 29;
        loop {
            pos = self.space(pos);
            match self.tag(pos, b"<", b"subfield code=") {
                Some(next) => pos = self.subfield(next, sink)?,
                None => {
                    let pos = self.tag(pos, b"</", b"datafield>")?;
                    self.finish(tag, start, first_mark, sink)?;
                    return Some(pos);
                }
            }
        }
    }

    #[inline(always)]
    fn subfield(&self, pos: usize, sink: &mut Sink<'_>) -> Option<usize> {
        let &[open, code, close, end] = self.bytes.get(pos..)?.first_chunk()?;
        if !are_quotes(open, close) || !is_plain(code) {
            return None;
        }
        sink.marks.push(sink.at as u32);
        sink.data.get_mut(sink.at..sink.at + 2)?.copy_from_slice(&[SUBFIELD, code]);
        sink.at += 2;
        match end {
            b'>' => self.tag(self.value(pos + 4, sink)?, b"</", b"subfield>"),
            b'/' => (self.bytes.get(pos + 4) == Some(&b'>')).then_some(pos + 5),
            _ => None,
        }
    }

    /// Text up to the next tag.
    #[inline(always)]
    fn value(&self, mut pos: usize, sink: &mut Sink<'_>) -> Option<usize> {
        loop {
            (pos, sink.at) = copy_text(self.bytes, pos, sink.data, sink.at);
            match *self.bytes.get(pos)? {
                b'<' => return Some(pos),
                b'&' => match reference(&self.bytes[pos..]) {
                    Reference::Char(char, n) if char >= ' ' => {
                        let mut utf8 = [0; 4];
                        self.put(char.encode_utf8(&mut utf8).as_bytes(), sink)?;
                        pos += n;
                    }
                    _ => return None,
                },
                byte @ (b'\n' | b'\t') => {
                    self.put(&[byte], sink)?;
                    pos += 1;
                }
                // A control character; or too near to an end to copy in blocks.
                _ => return None,
            }
        }
    }

    #[inline(always)]
    fn put(&self, bytes: &[u8], sink: &mut Sink<'_>) -> Option<()> {
        sink.data.get_mut(sink.at..sink.at + bytes.len())?.copy_from_slice(bytes);
        sink.at += bytes.len();
        Some(())
    }

    #[inline(always)]
    fn finish(
        &self,
        tag: [u8; 3],
        start: usize,
        first_mark: usize,
        sink: &mut Sink<'_>,
    ) -> Option<()> {
        *sink.data.get_mut(sink.at)? = FIELD_END;
        let marks = (first_mark as u32, sink.marks.len() as u32);
        sink.spans.push(Span { tag, start: start as u32, end: sink.at as u32, marks });
        sink.at += 1;
        Some(())
    }
}
