//! A tokenizer for XML (tags, attributes, text, references), used by `general`.

use super::{local, show};
use crate::{Error, Result};

/// A piece of a document. Comments and processing instructions are stepped over unsaid.
#[derive(Debug, Clone, Copy)]
pub(super) enum Token<'a> {
    /// `<name`; the attributes are still to be read.
    Start(&'a [u8]),
    /// `</name>`.
    End(&'a [u8]),
    /// What stands between `<![CDATA[` and `]]>`.
    Cdata(&'a [u8]),
    /// A byte of text: anything but the beginning of a tag.
    Text,
    /// A `<` that begins nothing; stepped over.
    Bare,
}

/// A place in a document.
#[derive(Clone, Copy)]
pub(super) struct Tokens<'a> {
    pub bytes: &'a [u8],
    pub pos: usize,
    /// Where the last token began.
    pub from: usize,
}

/// What a reference stands for, and how many bytes it takes.
#[derive(Debug, PartialEq)]
pub(super) enum Reference {
    Char(char, usize),
    /// It stands for nothing. The length is that of what should be kept as written.
    Bad(usize),
}

pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t' | b'\r')
}

/// True for a byte that a name can begin with (any non-ASCII one is let through).
pub(super) fn begins_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte == b':' || byte >= 0x80
}

pub(super) fn in_name(byte: u8) -> bool {
    begins_name(byte) || byte.is_ascii_digit() || byte == b'-' || byte == b'.'
}

fn malformed(at: usize, what: impl Into<String>) -> Error {
    Error::malformed(what).at(at as u64)
}

impl<'a> Tokens<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Tokens { bytes, pos: 0, from: 0 }
    }

    /// True where a tag stands that is a record's by its name.
    pub(super) fn at_record(mut self) -> bool {
        self.skip_space();
        if self.peek() != Some(b'<') {
            return false;
        }
        self.pos += 1;
        local(self.name()) == b"record"
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.pos).copied()
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.pos..]
    }

    pub(super) fn skip_space(&mut self) {
        while self.peek().is_some_and(is_space) {
            self.pos += 1;
        }
    }

    fn name(&mut self) -> &'a [u8] {
        let from = self.pos;
        while self.peek().is_some_and(in_name) {
            self.pos += 1;
        }
        &self.bytes[from..self.pos]
    }

    /// Steps behind `end`, which closes what began at `from`.
    fn close(&mut self, from: usize, begin: &[u8], end: &[u8]) -> Result<&'a [u8]> {
        self.pos += begin.len();
        match memchr::memmem::find(self.rest(), end) {
            Some(n) => {
                let inside = &self.rest()[..n];
                self.pos += n + end.len();
                Ok(inside)
            }
            None => Err(malformed(from, format!("{} is never closed", show(begin)))),
        }
    }

    /// The next piece; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<Token<'a>>> {
        loop {
            let rest = self.rest();
            let from = self.pos;
            self.from = from;
            let Some(&byte) = rest.first() else { return Ok(None) };
            if byte != b'<' {
                return Ok(Some(Token::Text));
            }
            match rest.get(1).copied() {
                Some(b'/') if rest.get(2).is_some_and(|&b| begins_name(b)) => {
                    self.pos += 2;
                    let name = self.name();
                    self.skip_space();
                    if self.peek() != Some(b'>') {
                        let what = format!("</{} has no > after it", show(name));
                        return Err(malformed(from, what));
                    }
                    self.pos += 1;
                    return Ok(Some(Token::End(name)));
                }
                Some(b'?') => _ = self.close(from, b"<?", b"?>")?,
                Some(b'!') if rest.starts_with(b"<!--") => {
                    _ = self.close(from, b"<!--", b"-->")?;
                }
                Some(b'!') if rest.starts_with(b"<![CDATA[") => {
                    return self.close(from, b"<![CDATA[", b"]]>").map(|t| Some(Token::Cdata(t)));
                }
                Some(b) if begins_name(b) => {
                    self.pos += 1;
                    return Ok(Some(Token::Start(self.name())));
                }
                _ => {
                    self.pos += 1;
                    return Ok(Some(Token::Bare));
                }
            }
        }
    }

    /// The next piece, where text is blanks between elements: those are stepped over.
    pub(super) fn markup(&mut self) -> Result<Option<Token<'a>>> {
        loop {
            self.skip_space();
            match self.next()? {
                // A comment may have stood between the blanks.
                Some(Token::Text) if self.peek().is_some_and(is_space) => {}
                token => return Ok(token),
            }
        }
    }

    /// Reads the attributes of the tag begun last, to behind its `>`. Gives each one's name, its
    /// value as written and where that stands; returns whether the element is empty (`/>`).
    pub(super) fn attributes(
        &mut self,
        mut each: impl FnMut(&'a [u8], &'a [u8], usize) -> Result<()>,
    ) -> Result<bool> {
        loop {
            let before = self.pos;
            self.skip_space();
            match self.peek() {
                Some(b'>') => {
                    self.pos += 1;
                    return Ok(false);
                }
                Some(b'/') if self.rest().get(1) == Some(&b'>') => {
                    self.pos += 2;
                    return Ok(true);
                }
                Some(b) if begins_name(b) && self.pos > before => {}
                Some(_) => return Err(malformed(self.pos, "a malformed tag")),
                None => return Err(malformed(self.pos, "an incomplete tag")),
            }
            let name = self.name();
            self.skip_space();
            let equals = self.peek() == Some(b'=');
            self.pos += usize::from(equals);
            self.skip_space();
            let (true, Some(quote @ (b'"' | b'\''))) = (equals, self.peek()) else {
                let what = format!("the attribute {} has no value in quotes", show(name));
                return Err(malformed(self.pos, what));
            };
            self.pos += 1;
            let at = self.pos;
            match memchr::memchr2(quote, b'<', self.rest()) {
                Some(n) if self.rest()[n] == quote => {
                    each(name, &self.rest()[..n], at)?;
                    self.pos += n + 1;
                }
                _ => {
                    let what = format!("the value of the attribute {} does not end", show(name));
                    return Err(malformed(at, what));
                }
            }
        }
    }
}

/// What the reference at the front of `bytes`, a `&`, stands for.
pub(super) fn reference(bytes: &[u8]) -> Reference {
    // No reference with a meaning is longer, but for leading zeros.
    let Some(end) = memchr::memchr(b';', &bytes[..bytes.len().min(32)]) else {
        return Reference::Bad(1);
    };
    let name = &bytes[1..end];
    let char = match name {
        b"amp" => Some('&'),
        b"lt" => Some('<'),
        b"gt" => Some('>'),
        b"quot" => Some('"'),
        b"apos" => Some('\''),
        [b'#', b'x' | b'X', digits @ ..] => number(digits, 16),
        [b'#', digits @ ..] => number(digits, 10),
        _ => None,
    };
    match char {
        Some(char) => Reference::Char(char, end + 1),
        None if name.first().is_some_and(|&b| b == b'#' || begins_name(b))
            && name[1..].iter().all(|&b| in_name(b)) =>
        {
            Reference::Bad(end + 1)
        }
        None => Reference::Bad(1),
    }
}

fn number(digits: &[u8], base: u32) -> Option<char> {
    let mut n = 0u32;
    for &digit in digits {
        n = n.checked_mul(base)?.checked_add(char::from(digit).to_digit(base)?)?;
    }
    // U+0000 stands for nothing even where control characters are let through.
    char::from_u32(n).filter(|&c| c != '\0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_what_references_stand_for() {
        for (text, want) in [
            ("&amp;x", Reference::Char('&', 5)),
            ("&#65;", Reference::Char('A', 5)),
            ("&#x1F600;", Reference::Char('\u{1f600}', 9)),
            ("&#x0000000041;", Reference::Char('A', 14)),
            ("&nbsp;", Reference::Bad(6)),
            ("&#xD800;", Reference::Bad(8)),
            ("&#x110000;", Reference::Bad(10)),
            ("&#0;", Reference::Bad(4)),
            ("&#;", Reference::Bad(3)),
            ("&#99999999999999999999;", Reference::Bad(23)),
            ("& b;", Reference::Bad(1)),
            ("&;", Reference::Bad(1)),
            ("&", Reference::Bad(1)),
            ("&amp", Reference::Bad(1)),
        ] {
            assert_eq!(reference(text.as_bytes()), want, "{text}");
        }
    }
}
