//! Finds the end of a JSON value by strings and nesting depth alone, without the rest of the grammar.

use crate::{Error, Result, format::DEPTH};

/// A search for the end of one JSON value, which goes on where it stopped when more bytes come.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// How far the bytes were looked at.
    at: usize,
    depth: u32,
    /// For each open bracket, the innermost lowest, whether it is that of an object.
    objects: u128,
    in_string: bool,
    /// The byte before, blanks left out.
    last: u8,
    /// The end was found, at `at`.
    done: bool,
    /// A line break inside a string is taken for the end of a damaged line.
    strict: bool,
}

/// What a byte means outside of strings.
#[derive(Clone, Copy, PartialEq)]
#[repr(u8)]
enum Class {
    Other,
    Blank,
    Open,
    Close,
    Quote,
}

const CLASSES: [Class; 256] = {
    let mut classes = [Class::Other; 256];
    classes[b' ' as usize] = Class::Blank;
    classes[b'\t' as usize] = Class::Blank;
    classes[b'\n' as usize] = Class::Blank;
    classes[b'\r' as usize] = Class::Blank;
    classes[b'[' as usize] = Class::Open;
    classes[b'{' as usize] = Class::Open;
    classes[b']' as usize] = Class::Close;
    classes[b'}' as usize] = Class::Close;
    classes[b'"' as usize] = Class::Quote;
    classes
};

impl Scan {
    /// For values that may be one on a line.
    pub(super) fn strict() -> Self {
        Scan { strict: true, ..Self::default() }
    }

    /// The end of the value that begins with the first of `bytes` (a bracket or a quote); `None`
    /// where it goes on beyond them. Call again with the same bytes and more.
    ///
    /// # Errors
    /// Where no JSON goes on so: brackets that do not match or nest too deep, a value right after
    /// another, and if strict a line break inside a string. The error says at which byte.
    pub(super) fn end(&mut self, bytes: &[u8]) -> Result<Option<usize>> {
        if self.done {
            return Ok(Some(self.at));
        }
        while let Some(&byte) = bytes.get(self.at) {
            if self.in_string {
                match memchr::memchr3(b'"', b'\\', b'\n', &bytes[self.at..]) {
                    Some(i) if bytes[self.at + i] == b'"' => {
                        self.at += i + 1;
                        self.in_string = false;
                        if self.depth == 0 {
                            self.done = true;
                            return Ok(Some(self.at));
                        }
                    }
                    // The byte after a backslash is never the end; it may not be there yet.
                    Some(i) if bytes[self.at + i] == b'\\' => {
                        self.at += i;
                        match bytes.get(self.at + 1) {
                            Some(_) => self.at += 2,
                            None => return Ok(None),
                        }
                    }
                    Some(i) if self.strict => {
                        return self.fault(i, "a line break inside a JSON string");
                    }
                    Some(i) => self.at += i + 1,
                    None => self.at = bytes.len(),
                }
                continue;
            }
            match CLASSES[byte as usize] {
                Class::Other => self.last = byte,
                Class::Blank => {}
                Class::Quote => {
                    self.begins_value()?;
                    self.in_string = true;
                    self.last = byte;
                }
                Class::Open => {
                    self.begins_value()?;
                    if self.depth as usize == DEPTH {
                        return Err(Error::malformed(format!(
                            "JSON nested deeper than {DEPTH} levels"
                        ))
                        .at(self.at as u64));
                    }
                    self.depth += 1;
                    self.objects = self.objects << 1 | u128::from(byte == b'{');
                    self.last = byte;
                }
                Class::Close => {
                    if self.depth == 0 || (self.objects & 1 == 1) != (byte == b'}') {
                        return self.fault(0, "an unmatched closing bracket in JSON");
                    }
                    self.depth -= 1;
                    self.objects >>= 1;
                    self.last = byte;
                    if self.depth == 0 {
                        self.at += 1;
                        self.done = true;
                        return Ok(Some(self.at));
                    }
                }
            }
            self.at += 1;
        }
        Ok(None)
    }

    /// A value may begin after a bracket, a comma or a colon.
    #[inline]
    fn begins_value(&self) -> Result<()> {
        match self.last {
            0 | b'[' | b'{' | b',' | b':' => Ok(()),
            _ => Err(Error::malformed("a JSON value right after another").at(self.at as u64)),
        }
    }

    #[cold]
    fn fault(&self, further: usize, what: &str) -> Result<Option<usize>> {
        Err(Error::malformed(what).at((self.at + further) as u64))
    }
}

/// Refuses JSON that nests too deep, for parsers that do not.
pub(crate) fn check_depth(json: &[u8]) -> Result<()> {
    // No value is deeper than it has opening brackets, and those are counted many at a time:
    // `[` and `{` differ in one bit; sums that fit in bytes are made of sixteen bytes at once.
    let few = |part: &[u8]| part.iter().fold(0u8, |n, &b| n + u8::from(b | 0x20 == b'{'));
    let open: usize = json.chunks(255).map(|part| usize::from(few(part))).sum();
    if open <= 512 {
        return Ok(());
    }
    let start = json.iter().take_while(|&&b| CLASSES[b as usize] == Class::Blank).count();
    match json.get(start).map(|&b| CLASSES[b as usize]) {
        Some(Class::Open) => {
            Scan::default().end(&json[start..]).map(drop).map_err(|e| e.at(start as u64))
        }
        // Anything else has no depth.
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_where_the_value_ends_however_it_comes() {
        let json = br#"{"a":["}\"]\\",{"b":[]}],"c":"x"}"#;
        for tail in [&b""[..], b"{", b"\n\"", b"]]"] {
            let bytes = [&json[..], tail].concat();
            let mut scan = Scan::default();
            for seen in 1..json.len() {
                assert_eq!(scan.end(&bytes[..seen]).unwrap(), None, "{seen}");
            }
            assert_eq!(scan.end(&bytes).unwrap(), Some(json.len()));
            assert_eq!(scan.end(&bytes).unwrap(), Some(json.len()), "asked again");
        }
    }

    #[test]
    fn says_where_it_is_no_json() {
        for (json, at) in [
            (&b"{]"[..], 1),
            (b"[}", 1),
            (b"{\"a\n", 3),
            (b"{\"a\":1\n{\"b\":2}", 7),
            (b"[\"a\" \"b\"]", 5),
        ] {
            let error = Scan::strict().end(json).unwrap_err();
            assert_eq!(error.place().offset, Some(at), "{}: {error}", json.escape_ascii());
        }
        assert!(Scan::default().end(&b"[".repeat(DEPTH + 1)).is_err());
        assert_eq!(Scan::default().end(&b"[".repeat(DEPTH)).unwrap(), None);
    }

    #[test]
    fn depth_is_that_of_brackets_outside_of_strings() {
        check_depth(format!("[\"{}\"]", "[".repeat(1000)).as_bytes()).unwrap();
        check_depth(format!("[{}0]", "[],".repeat(1000)).as_bytes()).unwrap();
        check_depth(&b"[".repeat(1000)).unwrap_err();
        check_depth(&[&b" \n{\"a\":"[..], &b"[".repeat(1000)].concat()).unwrap_err();
    }
}
