//! Fields in any spelling XML has: prefixes, attributes in any order and quotes, references, CDATA,
//! comments, and whatever is wrong with them.

use super::{
    MAX_ATTRIBUTE, local,
    read::Reader,
    scan::copy_text,
    show,
    token::{Reference, Token, is_space, reference},
};
use crate::{FIELD_END, RECORD_END, Result, SUBFIELD, Span, TroubleKind, field::first_character};

/// What takes the place of a character that would end a field, a subfield or a record.
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// The value of an attribute, which should be a few bytes.
#[derive(Clone, Copy, Default)]
struct Short {
    bytes: [u8; MAX_ATTRIBUTE],
    len: usize,
    /// There was more.
    over: bool,
    at: usize,
}

impl Short {
    fn push(&mut self, bytes: &[u8]) {
        match self.bytes.get_mut(self.len..self.len + bytes.len()) {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.len += bytes.len();
            }
            None => self.over = true,
        }
    }

    fn get(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl<'a> Reader<'a> {
    /// A `<controlfield>`: text as it is, whatever the tag.
    pub(super) fn control_field(&mut self, name: &[u8]) -> Result<()> {
        let from = self.tokens.from;
        let ([tag], empty) = self.known([b"tag"])?;
        let (start, first_mark) = (self.at, self.record.marks.len());
        if !empty {
            self.text(name, true)?;
        }
        let Some(tag) = self.tag(tag, name, from, start) else { return Ok(()) };
        if tag.iter().all(u8::is_ascii_digit) && !tag.starts_with(b"00") {
            let detail = format!("field {} is a control field here", show(&tag));
            self.trouble(TroubleKind::Shape, from, detail);
        }
        let text = &self.record.data[start..self.at];
        let marks = memchr::memchr_iter(SUBFIELD, text).map(|n| (start + n) as u32);
        self.record.marks.extend(marks);
        self.finish(tag, start, first_mark);
        Ok(())
    }

    /// A `<datafield>`: indicators and subfields.
    pub(super) fn data_field(&mut self, name: &[u8]) -> Result<()> {
        let from = self.tokens.from;
        let ([tag, first, second], empty) = self.known([b"tag", b"ind1", b"ind2"])?;
        let (start, first_mark) = (self.at, self.record.marks.len());
        self.indicator(first, "ind1", from);
        self.indicator(second, "ind2", from);
        if !empty {
            self.subfields(name)?;
        }
        let Some(tag) = self.tag(tag, name, from, start) else {
            self.record.marks.truncate(first_mark);
            return Ok(());
        };
        if tag.starts_with(b"00") {
            let detail = format!("field {} is a data field here", show(&tag));
            self.trouble(TroubleKind::Shape, from, detail);
        }
        self.finish(tag, start, first_mark);
        Ok(())
    }

    fn subfields(&mut self, name: &[u8]) -> Result<()> {
        loop {
            let token = self.tokens.markup()?;
            let at = self.tokens.from;
            match token {
                Some(Token::End(end)) if end == name => return Ok(()),
                Some(Token::End(end)) => return self.mismatch(at, end, name),
                Some(Token::Start(child)) if local(child) == b"subfield" => self.subfield(child)?,
                Some(Token::Start(child)) => self.skip(child)?,
                Some(_) => self.stray(),
                None => return self.malformed(at, "the field has no end"),
            }
        }
    }

    fn subfield(&mut self, name: &[u8]) -> Result<()> {
        let from = self.tokens.from;
        let ([code], empty) = self.known([b"code"])?;
        self.record.marks.push(self.at as u32);
        self.put(&[SUBFIELD]);
        let given = code.is_some();
        let code = code.unwrap_or_default();
        let one = first_character(code.get());
        self.put(if one.is_empty() { b" " } else { one });
        if code.len > one.len() {
            let detail = format!("{:?}, cut to {:?}", show(code.get()), show(one));
            self.trouble(TroubleKind::Code, from, detail);
        }
        let value = self.at;
        if !empty {
            self.text(name, false)?;
        }
        // Neither code nor text is how a delimiter at the end of a field is written.
        let nothing = code.len == 0 && self.at == value;
        self.at -= usize::from(nothing);
        if code.len == 0 && !(nothing && given) {
            self.trouble(TroubleKind::Code, from, "none; a space is used");
        }
        Ok(())
    }

    fn finish(&mut self, tag: [u8; 3], start: usize, first_mark: usize) {
        let end = self.at as u32;
        self.put(&[FIELD_END]);
        let marks = (first_mark as u32, self.record.marks.len() as u32);
        self.record.spans.push(Span { tag, start: start as u32, end, marks });
    }

    /// Appends to the field.
    fn put(&mut self, bytes: &[u8]) {
        let end = self.at + bytes.len();
        if end > self.record.data.len() {
            self.record.data.resize(end * 2 + 64, 0);
        }
        self.record.data[self.at..end].copy_from_slice(bytes);
        self.at = end;
    }

    /// Reads the attributes of the tag begun last: the values of those asked for, and whether the
    /// element is empty.
    fn known<const N: usize>(&mut self, names: [&[u8]; N]) -> Result<([Option<Short>; N], bool)> {
        let mut raw: [Option<(&'a [u8], usize)>; N] = [None; N];
        let mut twice = None;
        let empty = self.tokens.attributes(|name, value, at| {
            if let Some(i) = names.iter().position(|n| *n == name)
                && raw[i].replace((value, at)).is_some()
            {
                twice = Some((show(name), at));
            }
            Ok(())
        })?;
        if let Some((name, at)) = twice {
            return self.malformed(at, format!("duplicate attribute {name}"));
        }
        Ok((raw.map(|r| r.map(|(value, at)| self.value(value, at))), empty))
    }

    /// The value of an attribute: references read, blanks normalised.
    fn value(&mut self, raw: &[u8], at: usize) -> Short {
        let mut value = Short { at, ..Short::default() };
        let mut rest = raw;
        while let Some(&byte) = rest.first() {
            let here = at + raw.len() - rest.len();
            let n = match byte {
                b'&' => match reference(rest) {
                    Reference::Char(char, n) => {
                        match self.allowed(char, here, false) {
                            true => value.push(char.encode_utf8(&mut [0; 4]).as_bytes()),
                            false => value.push(REPLACEMENT),
                        }
                        n
                    }
                    Reference::Bad(n) => {
                        value.push(&rest[..n]);
                        self.trouble(TroubleKind::Markup, here, show(&rest[..n]));
                        n
                    }
                },
                b'\r' | b'\n' | b'\t' => {
                    value.push(b" ");
                    1 + usize::from(rest.starts_with(b"\r\n"))
                }
                ..b' ' => {
                    match self.allowed(char::from(byte), here, false) {
                        true => value.push(&[byte]),
                        false => value.push(REPLACEMENT),
                    }
                    1
                }
                _ => {
                    value.push(&[byte]);
                    1
                }
            };
            rest = &rest[n..];
        }
        value
    }

    /// The tag of the field that began at `start`, mended; none, and the field gone, if it has none.
    fn tag(
        &mut self,
        tag: Option<Short>,
        name: &[u8],
        from: usize,
        start: usize,
    ) -> Option<[u8; 3]> {
        let Some(tag) = tag else {
            let text = show(&self.record.data[start..self.at]);
            self.at = start;
            let detail = format!("<{}> has no tag; its text: {text:?}", show(name));
            self.trouble(TroubleKind::FieldLost, from, detail);
            return None;
        };
        let text = tag.get();
        let mut mended = [b' '; 3];
        if text.len() == 3 && !tag.over {
            mended.copy_from_slice(text);
            return Some(mended);
        }
        if text.len() < 3 && !text.is_empty() && text.iter().all(u8::is_ascii_digit) {
            mended = [b'0'; 3];
            mended[3 - text.len()..].copy_from_slice(text);
        } else {
            let mut end = text.len().min(3);
            while text.get(end).is_some_and(|b| b & 0xc0 == 0x80) && end > 0 {
                end -= 1;
            }
            mended[..end].copy_from_slice(&text[..end]);
        }
        let detail = format!("{:?}, read as {:?}", show(text), show(&mended));
        self.trouble(TroubleKind::Tag, tag.at, detail);
        Some(mended)
    }

    /// Appends an indicator. The second one may be more than a character: that is how the writer
    /// says what is more than two indicators.
    fn indicator(&mut self, indicator: Option<Short>, name: &str, from: usize) {
        let Some(i) = indicator.filter(|i| i.len > 0) else {
            self.put(b" ");
            self.trouble(TroubleKind::Indicator, from, format!("no {name}; a space is used"));
            return;
        };
        let one = first_character(i.get());
        let padded = i.get()[one.len()..].iter().all(|b| *b == b' ') && name == "ind1";
        self.put(if padded { one } else { i.get() });
        let detail = format!("{name} {:?}", show(i.get()));
        if i.over || (padded && i.len > one.len()) {
            self.trouble(TroubleKind::Indicator, i.at, detail + ", cut");
        } else if i.len > 1 {
            self.trouble(TroubleKind::Shape, i.at, detail);
        }
    }

    /// Appends the text up to the end of the element `name`. Tags in it are left out, their text is
    /// not. `delimiters` says whether subfield delimiters may stand in it.
    pub(super) fn text(&mut self, name: &[u8], delimiters: bool) -> Result<()> {
        let bytes = self.tokens.bytes;
        let mut depth = 0u64;
        loop {
            (self.tokens.pos, self.at) =
                copy_text(bytes, self.tokens.pos, &mut self.record.data, self.at);
            let here = self.tokens.pos;
            match self.tokens.peek() {
                Some(b'<') => match self.tokens.next()? {
                    Some(Token::End(end)) if depth == 0 && end == name => return Ok(()),
                    Some(Token::End(end)) if depth == 0 => {
                        return self.mismatch(self.tokens.from, end, name);
                    }
                    Some(Token::End(_)) => depth -= 1,
                    Some(Token::Start(tag)) => {
                        let detail =
                            format!("the tag <{}> in text; what is in it is kept", show(tag));
                        self.trouble(TroubleKind::Skipped, self.tokens.from, detail);
                        depth += u64::from(!self.tokens.attributes(|_, _, _| Ok(()))?);
                    }
                    Some(Token::Cdata(text)) => self.cdata(text, delimiters),
                    Some(Token::Bare) => {
                        self.put(b"<");
                        self.trouble(TroubleKind::Markup, self.tokens.from, "<");
                    }
                    Some(Token::Text) | None => {}
                },
                Some(b'&') => match reference(self.tokens.rest()) {
                    Reference::Char(char, n) => {
                        self.tokens.pos += n;
                        self.char(char, here, delimiters);
                    }
                    Reference::Bad(n) => {
                        let raw = &bytes[here..here + n];
                        self.put(raw);
                        self.trouble(TroubleKind::Markup, here, show(raw));
                        self.tokens.pos += n;
                    }
                },
                Some(byte) => {
                    self.tokens.pos += self.byte(byte, &bytes[here + 1..], here, delimiters);
                }
                None => {
                    return self.malformed(here, format!("<{}> has no end", show(name)));
                }
            }
        }
    }

    fn cdata(&mut self, text: &[u8], delimiters: bool) {
        let at = self.tokens.pos - text.len() - b"]]>".len();
        let mut n = 0;
        while n < text.len() {
            n += self.byte(text[n], &text[n + 1..], at + n, delimiters);
        }
    }

    /// Appends a byte as it stands; returns how many it took, for line ends are made one.
    fn byte(&mut self, byte: u8, rest: &[u8], at: usize, delimiters: bool) -> usize {
        match byte {
            b'\r' => {
                self.put(b"\n");
                return 1 + usize::from(rest.first() == Some(&b'\n'));
            }
            ..b' ' => self.char(char::from(byte), at, delimiters),
            _ => self.put(&[byte]),
        }
        1
    }

    fn char(&mut self, char: char, at: usize, delimiters: bool) {
        match self.allowed(char, at, delimiters) {
            true => self.put(char.encode_utf8(&mut [0; 4]).as_bytes()),
            false => self.put(REPLACEMENT),
        }
    }

    /// Whether a character can be kept; says so where XML or MARC does not allow it.
    fn allowed(&mut self, char: char, at: usize, delimiters: bool) -> bool {
        if char >= ' ' || (char < '\u{80}' && is_space(char as u8)) {
            return true;
        }
        let byte = char as u8;
        let kept = !(byte == FIELD_END || byte == RECORD_END || (byte == SUBFIELD && !delimiters));
        let kind = if kept { TroubleKind::Control } else { TroubleKind::Replaced };
        self.trouble(kind, at, format!("0x{byte:02X}, which XML does not allow"));
        kept
    }
}
