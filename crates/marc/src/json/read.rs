//! Reading MARC-in-JSON.
//!
//! All of JSON is read, wherever it stands; what is fast is the usual: short texts without escapes,
//! which go straight from the line into the record's buffer.

use std::borrow::Cow;

use super::Parts;
use crate::{Error, Record, Result, Trouble, TroubleKind, builder::FieldBuilder};

/// How deep lists and objects may be nested in what is skipped.
const DEEPEST: usize = 128;

/// Reads one JSON object into `record`, whose memory is used again. Names that do not belong to
/// the shape are skipped; each is a trouble, with its offset.
///
/// # Errors
/// [`Malformed`](crate::ErrorKind::Malformed), with the byte offset, where `json` is not JSON or
/// not the shape; `record` then holds what was read so far.
pub fn read(json: &[u8], record: &mut Record, troubles: &mut Vec<Trouble>) -> Result<()> {
    record.clear();
    if let Err(e) = simdutf8::compat::from_utf8(json) {
        return Err(Error::malformed("not UTF-8").at(e.valid_up_to() as u64));
    }
    let mut scan = Scan { json, at: 0, troubles };
    let mut parts = Parts::default();
    scan.object("a MARC record: an object with \"leader\" and \"fields\"", |scan, key| {
        match key {
            b"leader" => {
                let at = scan.at;
                let text = scan.text("the leader")?;
                parts.leader(text.as_ref(), at, record)?;
            }
            b"fields" => {
                scan.list("the list of fields", |scan| field(scan, record))?;
                parts.fields();
            }
            _ => scan.leave_out(key)?,
        }
        Ok(())
    })?;
    scan.blank();
    if scan.at < json.len() {
        return Err(scan.unexpected("the end of the record"));
    }
    parts.whole()
}

/// One field: `{"001": "text"}` or `{"245": {"ind1": …, "ind2": …, "subfields": […]}}`.
fn field(scan: &mut Scan<'_, '_>, record: &mut Record) -> Result<()> {
    if let Some((tag, indicators)) = scan.usual_field() {
        let mut field = record.begin(tag, Some(indicators));
        let mut unescaped = true;
        scan.list(SUBFIELDS, |scan| subfield(scan, &mut field, &mut unescaped))?;
        if scan.take(b'}') && scan.take(b'}') {
            return if unescaped { field.finish_text() } else { field.finish() };
        }
        return Err(scan.unexpected("'}'"));
    }
    scan.object("a field: an object from its tag to what it holds", |scan, key| {
        let at = scan.at;
        let tag: [u8; 3] = key.try_into().map_err(|_| {
            Error::malformed(format!("a MARC tag of {} bytes instead of 3", key.len()))
                .at(at as u64)
        })?;
        scan.blank();
        if scan.peek() == Some(b'"') {
            let text = scan.text("text")?;
            let mut field = record.begin(tag, None);
            field.text(&text);
            // A control character comes only through an escape.
            let unescaped = matches!(text, Cow::Borrowed(_));
            return if unescaped { field.finish_text() } else { field.finish() }
                .map_err(|e| Error::malformed(e.context()).at(at as u64));
        }
        let mut field = record.begin(tag, Some(*b"  "));
        let mut unescaped = true;
        scan.object(
            "text, or an object with \"ind1\", \"ind2\" and \"subfields\"",
            |scan, key| {
                match key {
                    b"ind1" | b"ind2" => {
                        let text = scan.text("an indicator")?;
                        unescaped &= matches!(text, Cow::Borrowed(_));
                        field.indicator(usize::from(key[3] - b'1'), &text);
                    }
                    b"subfields" => {
                        scan.list(SUBFIELDS, |scan| subfield(scan, &mut field, &mut unescaped))?;
                    }
                    _ => scan.leave_out(key)?,
                }
                Ok(())
            },
        )?;
        if unescaped { field.finish_text() } else { field.finish() }
            .map_err(|e| Error::malformed(e.context()).at(at as u64))
    })
}

const SUBFIELDS: &str = "the list of subfields";

/// One subfield: `{"a": "text"}`.
#[inline]
fn subfield(
    scan: &mut Scan<'_, '_>,
    field: &mut FieldBuilder<'_>,
    unescaped: &mut bool,
) -> Result<()> {
    if scan.usual_subfield(field) {
        return Ok(());
    }
    scan.object("a subfield: an object from its code to its text", |scan, key| {
        field.code(key);
        match scan.text("the text of a subfield")? {
            Cow::Borrowed(text) => field.value_text(text),
            Cow::Owned(text) => {
                *unescaped = false;
                field.value(&text);
            }
        }
        Ok(())
    })
}

struct Scan<'j, 't> {
    json: &'j [u8],
    at: usize,
    troubles: &'t mut Vec<Trouble>,
}

/// A text: borrowed from the line, or unescaped.
type Text<'j> = Cow<'j, [u8]>;

impl<'j> Scan<'j, '_> {
    /// Passes over a value that has no place in a record, and says so.
    fn leave_out(&mut self, name: &[u8]) -> Result<()> {
        let name = String::from_utf8_lossy(name);
        let detail = format!("the name {name:?} and what it holds");
        self.troubles.push(Trouble::new(TroubleKind::Skipped, self.at, detail));
        self.skip(0)
    }

    fn unexpected(&self, wanted: &str) -> Error {
        let found = match self.json.get(self.at) {
            Some(b) => format!("{:?}", char::from(*b)),
            None => "the end".into(),
        };
        Error::malformed(format!("{found} instead of {wanted}")).at(self.at as u64)
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.json.get(self.at).copied()
    }

    /// Passes over white space.
    fn blank(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// Takes `byte` if it comes next, white space passed over.
    #[inline]
    fn take(&mut self, byte: u8) -> bool {
        if self.peek() != Some(byte) {
            self.blank();
        }
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// The beginning of a field spelled as most tools do, up to the list of subfields; nothing is
    /// taken if it is not.
    #[inline]
    fn usual_field(&mut self) -> Option<([u8; 3], [u8; 2])> {
        // Up to the list's bracket, which `list` takes.
        const USUAL: &[u8; 42] = br#"{"TAG":{"ind1":"1","ind2":"2","subfields":"#;
        let rest: &[u8; 42] = self.json[self.at..].first_chunk()?;
        let same = |range: std::ops::Range<usize>| rest[range.clone()] == USUAL[range];
        let usual = same(0..2) && same(5..16) && same(17..27) && same(28..42);
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b' ';
        let (tag, indicators) = ([rest[2], rest[3], rest[4]], [rest[16], rest[27]]);
        if !usual || !tag.into_iter().chain(indicators).all(plain) {
            return None;
        }
        self.at += 42;
        Some((tag, indicators))
    }

    /// A subfield spelled as most are, `{"a":"text"}`, in one go; nothing is taken if it is not.
    #[inline]
    fn usual_subfield(&mut self, field: &mut FieldBuilder<'_>) -> bool {
        let rest = &self.json[self.at..];
        let Some(&[b'{', b'"', code, b'"', b':', next]) = rest.first_chunk::<6>() else {
            return false;
        };
        let start = match (next, rest.get(6)) {
            (b'"', _) => 6,
            (b' ', Some(b'"')) => 7,
            _ => return false,
        };
        let end = start + plain_length(&rest[start..]);
        if !code.is_ascii_alphanumeric() || rest.get(end..end + 2) != Some(b"\"}") {
            return false;
        }
        field.usual(code, &rest[start..end]);
        self.at += end + 2;
        true
    }

    /// `{ name: value, … }`; `each` reads the value.
    #[inline]
    fn object(
        &mut self,
        what: &str,
        mut each: impl FnMut(&mut Self, &[u8]) -> Result<()>,
    ) -> Result<()> {
        if !self.take(b'{') {
            return Err(self.unexpected(what));
        }
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            let name = self.text("a name")?;
            if !self.take(b':') {
                return Err(self.unexpected("':'"));
            }
            each(self, &name)?;
            if !self.take(b',') {
                break;
            }
        }
        if self.take(b'}') { Ok(()) } else { Err(self.unexpected("',' or '}'")) }
    }

    /// `[ value, … ]`; `each` reads the value.
    #[inline]
    fn list(&mut self, what: &str, mut each: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        if !self.take(b'[') {
            return Err(self.unexpected(what));
        }
        if self.take(b']') {
            return Ok(());
        }
        loop {
            each(self)?;
            if !self.take(b',') {
                break;
            }
        }
        if self.take(b']') { Ok(()) } else { Err(self.unexpected("',' or ']'")) }
    }

    /// A text, without its quotes.
    #[inline]
    fn text(&mut self, what: &str) -> Result<Text<'j>> {
        if !self.take(b'"') {
            return Err(self.unexpected(what));
        }
        let start = self.at;
        self.at += plain_length(&self.json[start..]);
        match self.peek() {
            Some(b'"') => {
                self.at += 1;
                Ok(Cow::Borrowed(&self.json[start..self.at - 1]))
            }
            Some(b'\\') => self.escaped(start).map(Cow::Owned),
            _ => Err(self.unexpected("'\"'")),
        }
    }

    /// The rest of a text that began at `start` and has its first escape here.
    #[cold]
    fn escaped(&mut self, start: usize) -> Result<Vec<u8>> {
        let mut text = self.json[start..self.at].to_vec();
        loop {
            let run = plain_length(&self.json[self.at..]);
            text.extend_from_slice(&self.json[self.at..self.at + run]);
            self.at += run;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => self.at += 1,
                _ => return Err(self.unexpected("'\"'")),
            }
            let byte = match self.peek() {
                Some(b @ (b'"' | b'\\' | b'/')) => b,
                Some(b'b') => 8,
                Some(b'f') => 12,
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                Some(b't') => b'\t',
                Some(b'u') => {
                    self.at += 1;
                    let c = self.unicode()?;
                    text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                    continue;
                }
                _ => return Err(self.unexpected("an escape")),
            };
            text.push(byte);
            self.at += 1;
        }
    }

    /// The character of an escape, after `\u`.
    fn unicode(&mut self) -> Result<char> {
        let first = self.hex()?;
        let pair = (0xd800..0xdc00).contains(&first) && self.json[self.at..].starts_with(b"\\u");
        let code = if pair {
            self.at += 2;
            let second = self.hex()?;
            0x10000 + ((first - 0xd800) << 10) + (second.wrapping_sub(0xdc00) & 0x3ff)
        } else {
            first
        };
        char::from_u32(code).ok_or_else(|| self.unexpected("the second half of a surrogate pair"))
    }

    fn hex(&mut self) -> Result<u32> {
        let digits = self.json.get(self.at..self.at + 4).and_then(|d| std::str::from_utf8(d).ok());
        let digits = digits.filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        match digits.map(|d| u32::from_str_radix(d, 16)) {
            Some(Ok(code)) => {
                self.at += 4;
                Ok(code)
            }
            _ => Err(self.unexpected("four hexadecimal digits")),
        }
    }

    /// Passes over any value.
    fn skip(&mut self, depth: usize) -> Result<()> {
        if depth > DEEPEST {
            return Err(Error::malformed("lists and objects over 128 deep").at(self.at as u64));
        }
        self.blank();
        match self.peek() {
            Some(b'{') => self.object("an object", |scan, _| scan.skip(depth + 1)),
            Some(b'[') => self.list("a list", |scan| scan.skip(depth + 1)),
            Some(b'"') => self.text("text").map(drop),
            _ => {
                let rest = &self.json[self.at..];
                let word = |b: &&u8| b.is_ascii_alphanumeric() || b"+-.".contains(b);
                let n = rest.iter().take_while(word).count();
                if !is_word(&rest[..n]) && !is_number(&rest[..n]) {
                    return Err(self.unexpected("a value"));
                }
                self.at += n;
                Ok(())
            }
        }
    }
}

fn is_word(text: &[u8]) -> bool {
    matches!(text, b"true" | b"false" | b"null")
}

/// Whether a text is a number of JSON (RFC 8259, section 6), of any length.
fn is_number(text: &[u8]) -> bool {
    /// The text behind its leading digits, and how many those were.
    fn digits(text: &[u8]) -> (usize, &[u8]) {
        let count = text.iter().take_while(|b| b.is_ascii_digit()).count();
        (count, &text[count..])
    }
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let (whole, mut rest) = digits(text);
    if whole == 0 || (whole > 1 && text[0] == b'0') {
        return false;
    }
    if let Some(fraction) = rest.strip_prefix(b".") {
        let (count, after) = digits(fraction);
        if count == 0 {
            return false;
        }
        rest = after;
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let unsigned = exponent.strip_prefix(b"+").or(exponent.strip_prefix(b"-"));
        let (count, after) = digits(unsigned.unwrap_or(exponent));
        return count > 0 && after.is_empty();
    }
    rest.is_empty()
}

/// How many bytes come before the next quote, backslash or control character.
#[inline]
fn plain_length(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * ONES;
    // A byte is zero: exact up to the first one, which is all that is asked.
    let zero = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let mut at = 0;
    while let Some(word) = bytes[at..].first_chunk::<8>() {
        let word = u64::from_le_bytes(*word);
        let quote = zero(word ^ (u64::from(b'"') * ONES));
        let slash = zero(word ^ (u64::from(b'\\') * ONES));
        let control = word.wrapping_sub(0x20 * ONES) & !word & HIGH;
        let hits = quote | slash | control;
        if hits != 0 {
            return at + (hits.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let stop = |b: &u8| *b == b'"' || *b == b'\\' || *b < 0x20;
    at + bytes[at..].iter().position(stop).unwrap_or(bytes.len() - at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_where_and_what() {
        for (json, want) in [
            (r#"{"leader":"short","fields":[]}"#, "byte 10: a MARC leader of 5 bytes"),
            (r#"{"fields":[]}"#, "a MARC record without \"leader\""),
            (r#"[1]"#, "byte 0: '[' instead of a MARC record"),
            ("{\"leader\":\"a\u{1}\"}", "byte 12: '\\u{1}' instead of '\"'"),
            (r#"{"fields":[{"001":"\u001d"}]}"#, "a field or record terminator"),
            (
                r#"{"fields":[{"245":{"subfields":[{"\u001f":""}]}}]}"#,
                "a subfield code that is not",
            ),
            (r#"{"fields":[{"001":5}]}"#, "byte 18: '5' instead of text, or an object"),
            (r#"{"x":nul}"#, "byte 5: 'n' instead of a value"),
            (r#"{"x":"\ud800"}"#, "surrogate"),
        ] {
            let error =
                read(json.as_bytes(), &mut Record::new(), &mut Vec::new()).unwrap_err().to_string();
            assert!(error.contains(want), "{json}: {error}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let json = format!("{{\"x\":{}", "[".repeat(100_000));
        let error = read(json.as_bytes(), &mut Record::new(), &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("128 deep"), "{error}");
    }

    #[test]
    fn every_cut_is_an_error() {
        let json = r#"{"leader":"00000nam a2200000 i 4500","fields":[{"001":"\u00fc\ud83d\ude00"},{"245":{"ind1":"1","subfields":[{"a":"x\n"}]}}]}"#;
        let mut record = Record::new();
        read(json.as_bytes(), &mut record, &mut Vec::new()).unwrap();
        assert_eq!(record.as_ref().field(*b"001").unwrap().bytes(), "ü😀".as_bytes());
        for cut in 0..json.len() {
            assert!(read(&json.as_bytes()[..cut], &mut record, &mut Vec::new()).is_err(), "{cut}");
        }
    }

    #[test]
    fn what_has_no_place_is_told() {
        let json = r#"{"_id":7,"leader":"00000nam a2200000 i 4500","fields":[{"245":{"ind1":"1","ind3":"2","subfields":[]}}]}"#;
        let (mut record, mut troubles) = (Record::new(), Vec::new());
        read(json.as_bytes(), &mut record, &mut troubles).unwrap();
        let told: Vec<_> = troubles.iter().map(|t| (t.kind.name(), t.offset, &*t.detail)).collect();
        let rest = "and what it holds";
        let wanted =
            [("_id", 7), ("ind3", 81)].map(|(n, at)| (at, format!("the name {n:?} {rest}")));
        assert!(
            told.iter().copied().eq(wanted.iter().map(|(at, d)| ("skipped", *at, &**d))),
            "{told:?}"
        );
    }
}
