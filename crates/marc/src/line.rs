//! Records as lines, for people: the mnemonic format of MARCMaker and MarcEdit (`.mrk`).
//!
//! ```text
//! =LDR  00714cam a2200205 a 4500
//! =001  12883376
//! =008  020805s2002\\\\nyu\\\\\\j\\\\\\000\1\eng\\
//! =245  10$aWeights and measures /$cA. Steelyard ; ill. for {dollar}5.
//! ```
//!
//! A line is `=`, the tag, two blanks and the field; an empty line parts records. `$` begins a
//! subfield. A blank is `\` where it counts: as an indicator, and in the fields `00X`.
//!
//! What would be mistaken has a name in braces: `{dollar}` `$`, `{lcub}` `{`, `{rcub}` `}`, `{bsol}`
//! `\` (where a `\` is a blank). These are MARCMaker's; beyond them, `{U+000A}` is any character by
//! its number (written for control characters) and `{xE9}` a byte that is not UTF-8. So every record
//! comes back byte for byte.
//!
//! Source: MARCMaker and MARCBreaker User's Manual, Library of Congress; the names in braces from its
//! table of mnemonics.

use super::{
    FIELD_END, FieldRef, Leader, RECORD_END, Record, RecordRef, SUBFIELD, Trouble, TroubleKind,
    tally::Tally,
};
use crate::{Error, Result};

/// Appends the record's lines. An empty line parts them from those of the next record.
pub fn write(record: RecordRef<'_>, out: &mut Vec<u8>) {
    write_leader(record.leader(), out);
    for field in record.fields() {
        write_field(field, out);
    }
}

/// Appends the line of a leader.
pub fn write_leader(leader: Leader, out: &mut Vec<u8>) {
    out.extend_from_slice(b"=LDR  ");
    escape(&leader.0, out, |_, byte| (byte == b'\\').then_some("{bsol}"));
    out.push(b'\n');
}

/// Appends the line of a field.
pub fn write_field(field: FieldRef<'_>, out: &mut Vec<u8>) {
    out.push(b'=');
    escape(&field.tag(), out, |_, _| None);
    out.extend_from_slice(b"  ");
    let control = field.is_control();
    escape(field.bytes(), out, |at, byte| match byte {
        SUBFIELD if !control => Some("$"),
        b' ' if control || at < 2 => Some("\\"),
        b'\\' if control || at < 2 => Some("{bsol}"),
        _ => None,
    });
    out.push(b'\n');
}

/// Appends `bytes`; those for which `special`, given their place, has another spelling, by that.
fn escape(bytes: &[u8], out: &mut Vec<u8>, special: impl Fn(usize, u8) -> Option<&'static str>) {
    let mut at = 0;
    for chunk in bytes.utf8_chunks() {
        let text = chunk.valid().as_bytes();
        let mut plain = 0;
        for (n, &byte) in text.iter().enumerate() {
            // All that could be special, so that the rest costs one look.
            if byte > b'$' && !matches!(byte, b'\\' | b'{' | b'}') {
                continue;
            }
            let spelled = match (special(at + n, byte), byte) {
                (Some(spelled), _) => spelled,
                (_, b'$') => "{dollar}",
                (_, b'{') => "{lcub}",
                (_, b'}') => "{rcub}",
                (_, ..b' ') => "",
                _ => continue,
            };
            out.extend_from_slice(&text[plain..n]);
            plain = n + 1;
            match spelled {
                "" => out.extend_from_slice(format!("{{U+{byte:04X}}}").as_bytes()),
                _ => out.extend_from_slice(spelled.as_bytes()),
            }
        }
        out.extend_from_slice(&text[plain..]);
        for byte in chunk.invalid() {
            out.extend_from_slice(format!("{{x{byte:02X}}}").as_bytes());
        }
        at += text.len() + chunk.invalid().len();
    }
}

/// Reads the lines of one record into `record`, whose memory is used again. What is odd goes to
/// `troubles`, with offsets into `bytes`.
///
/// # Errors
/// [`Malformed`](crate::ErrorKind::Malformed) where there is neither a leader nor a field.
pub fn read(bytes: &[u8], record: &mut Record, troubles: &mut Vec<Trouble>) -> Result<()> {
    record.clear();
    let mut troubles = Tally::new(troubles);
    let (mut has_leader, mut from, mut text) = (false, 0, Vec::new());
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        let at = from;
        from += line.len();
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Some(rest) = line.strip_prefix(b"=") else {
            if !line.is_empty() {
                let detail = format!("the line {:?}", show(line));
                troubles.push(TroubleKind::Skipped, at, detail);
            }
            continue;
        };
        let mut line = Line { rest, end: at + 1 + rest.len(), troubles: &mut troubles };
        let tag = line.tag();
        let first_leader = tag == *b"LDR" && !has_leader;
        let kind = match tag {
            _ if first_leader => Kind::Leader,
            [b'0', b'0', _] => Kind::Control,
            _ => Kind::Data,
        };
        text.clear();
        line.decode(kind, &mut text);
        if first_leader {
            has_leader = true;
            let (leader, mended) = Leader::mended(&text);
            record.set_leader(leader);
            if let Some(detail) = mended {
                troubles.push(TroubleKind::Leader, at, detail);
            }
            continue;
        }
        if tag == *b"LDR" {
            let detail = "a second leader line; kept as a field";
            troubles.push(TroubleKind::Leader, at, detail);
        }
        if memchr::memchr2(FIELD_END, RECORD_END, &text).is_some() {
            let detail = format!("a terminator inside field {}", show(&tag));
            troubles.push(TroubleKind::Replaced, at, detail);
            let ends = |b: &u8| *b == FIELD_END || *b == RECORD_END;
            text = text.split(ends).collect::<Vec<_>>().join("\u{fffd}".as_bytes());
        }
        record.push_bytes(tag, &text)?;
    }
    if !has_leader && record.is_empty() {
        return Err(Error::malformed("no line that begins with = and a tag"));
    }
    if !has_leader {
        let detail = format!("no leader; {} is used", Leader::NEW);
        troubles.push(TroubleKind::Leader, 0, detail);
    }
    troubles.end(bytes.len());
    Ok(())
}

/// What `$` and `\` mean depends on where they stand.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Tag,
    Leader,
    Control,
    Data,
}

/// A line being read, behind its `=`.
struct Line<'a, 't> {
    rest: &'a [u8],
    /// Where the line ends, so that troubles can be placed.
    end: usize,
    troubles: &'a mut Tally<'t>,
}

impl Line<'_, '_> {
    fn trouble(&mut self, kind: TroubleKind, detail: String) {
        self.troubles.push(kind, self.end - self.rest.len(), detail);
    }

    /// The tag, and the two blanks behind it.
    fn tag(&mut self) -> [u8; 3] {
        let mut text = Vec::with_capacity(8);
        self.decode(Kind::Tag, &mut text);
        if text.len() != 3 {
            self.trouble(TroubleKind::Tag, format!("{:?}", show(&text)));
        }
        for _ in 0..2 {
            self.rest = self.rest.strip_prefix(b" ").unwrap_or(self.rest);
        }
        text.resize(3, b' ');
        let delimiter = |b: u8| (RECORD_END..=SUBFIELD).contains(&b);
        let tag = [text[0], text[1], text[2]];
        if tag.into_iter().any(delimiter) {
            self.trouble(TroubleKind::Tag, format!("{:?}: a delimiter in it", show(&tag)));
        }
        tag.map(|b| if delimiter(b) { b'?' } else { b })
    }

    /// Appends what the rest of the line stands for; of a tag, no more than it takes.
    fn decode(&mut self, kind: Kind, out: &mut Vec<u8>) {
        while let Some(&byte) = self.rest.first() {
            let mut n = 1;
            match byte {
                _ if kind == Kind::Tag && out.len() >= 3 => return,
                b'{' => match named(self.rest) {
                    Some((what, length)) => {
                        match what {
                            Named::Char(char) => {
                                out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
                            }
                            Named::Byte(byte) => out.push(byte),
                        }
                        n = length;
                    }
                    None => {
                        let detail = format!("{:?}", show(&self.rest[..self.rest.len().min(12)]));
                        self.trouble(TroubleKind::Markup, detail);
                        out.push(byte);
                    }
                },
                b'$' if kind == Kind::Data => out.push(SUBFIELD),
                b'\\' if kind == Kind::Leader || kind == Kind::Control => out.push(b' '),
                b'\\' if kind == Kind::Data && out.len() < 2 => out.push(b' '),
                _ if kind == Kind::Tag || out.len() < 2 => out.push(byte),
                _ => {
                    let run = &self.rest[1..];
                    n += memchr::memchr3(b'{', b'$', b'\\', run).unwrap_or(run.len());
                    out.extend_from_slice(&self.rest[..n]);
                }
            }
            self.rest = &self.rest[n..];
        }
    }
}

enum Named {
    Char(char),
    Byte(u8),
}

/// What a name in braces at the front of `text` stands for, and its length.
fn named(text: &[u8]) -> Option<(Named, usize)> {
    let end = memchr::memchr(b'}', &text[..text.len().min(12)])?;
    let hex = |digits: &[u8]| {
        let digits = std::str::from_utf8(digits).ok().filter(|d| !d.starts_with('+'))?;
        u32::from_str_radix(digits, 16).ok()
    };
    let what = match &text[1..end] {
        b"dollar" => Named::Char('$'),
        b"lcub" => Named::Char('{'),
        b"rcub" => Named::Char('}'),
        b"bsol" => Named::Char('\\'),
        [b'U', b'+', digits @ ..] => Named::Char(char::from_u32(hex(digits)?)?),
        [b'x', digits @ ..] if digits.len() == 2 => Named::Byte(hex(digits)? as u8),
        _ => return None,
    };
    Some((what, end + 1))
}

/// Bytes as text for a message, cut short.
fn show(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(40)]).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn round_trip(record: &Record) -> String {
        let mut out = Vec::new();
        write(record.as_ref(), &mut out);
        assert!(!out.starts_with(b"\n") && memchr::memmem::find(&out, b"\n\n").is_none());
        let (mut back, mut troubles) = (Record::new(), Vec::new());
        read(&out, &mut back, &mut troubles).unwrap();
        assert_eq!(&back, record);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn is_what_people_know() {
        let mut r = Record::new();
        r.push_plain(*b"001", b"a b\\{").unwrap();
        r.push_data(*b"245", *b"1 ", &[(b'a', b"$5 \\ {x}"), (b'b', "ü\n".as_bytes())]).unwrap();
        let want = "=LDR  00000nam a2200000 i 4500\n=001  a\\b{bsol}{lcub}\n\
                    =245  1\\$a{dollar}5 \\ {lcub}x{rcub}$bü{U+000A}\n";
        assert_eq!(round_trip(&r), want);
    }

    #[test]
    fn every_byte_comes_back_everywhere() {
        for tag in [*b"001", *b"245", *b"LDR", *b"2 \\", *b"{$\n", [0xe9, 0x1c, 0x0d]] {
            for byte in 0..=255u8 {
                if byte == FIELD_END || byte == RECORD_END {
                    continue;
                }
                let mut r = Record::new();
                let mut leader = [byte; 24];
                leader[3] = b' ';
                r.set_leader(Leader(leader));
                for text in [&[byte][..], &[b'1', byte], &[byte, byte, 0x1f, byte, byte], b""] {
                    r.push_bytes(tag, text).unwrap();
                }
                round_trip(&r);
            }
        }
    }

    #[test]
    fn mends_and_says_so() {
        let text =
            b"\r\n=001  x\r\nlost\r\n=245  \\\\$a{eacute}{\r\n=24  10$ab\n=9\n=500  a{U+001E}b\n";
        let (mut r, mut troubles) = (Record::new(), Vec::new());
        read(text, &mut r, &mut troubles).unwrap();
        let fields: Vec<_> = r.as_ref().fields().map(|f| (f.tag(), f.bytes().to_vec())).collect();
        let want: [([u8; 3], &[u8]); 5] = [
            (*b"001", b"x"),
            (*b"245", b"  \x1fa{eacute}{"),
            (*b"24 ", b"10\x1fab"),
            (*b"9  ", b""),
            (*b"500", "a\u{fffd}b".as_bytes()),
        ];
        assert_eq!(fields, want.map(|(tag, text)| (tag, text.to_vec())));
        let kinds: Vec<_> = troubles.iter().map(|t| t.kind).collect();
        use TroubleKind::*;
        assert_eq!(kinds, [Skipped, Markup, Markup, Tag, Replaced, Leader]);
        assert_eq!(troubles[1].offset, 22 + 5);
        assert!(read(b"nothing\n", &mut r, &mut troubles).is_err());
    }

    #[test]
    fn many_faults_are_counted_not_listed() {
        let text = format!("=LDR  {}\n=500  {}", Leader::NEW, "{".repeat(1000));
        let (mut r, mut troubles) = (Record::new(), Vec::new());
        read(text.as_bytes(), &mut r, &mut troubles).unwrap();
        assert_eq!(r.as_ref().field(*b"500").unwrap().bytes().len(), 1000);
        assert_eq!(troubles.len(), 101);
    }

    proptest! {
        #[test]
        fn any_record_comes_back(leader: [u8; 24], fields: Vec<([u8; 3], Vec<u8>)>) {
            let mut r = Record::new();
            r.set_leader(Leader(leader));
            for (tag, bytes) in fields {
                // Those with a terminator are no fields.
                let _ = r.push_bytes(tag, &bytes);
            }
            round_trip(&r);
        }

        #[test]
        fn any_text_is_read(text in "(=(LDR|[0-9]{3})  (\\PC|[${}\\\\]|\\{[a-zU+0-9]*\\}){0,20}\r?\n){0,5}") {
            let (mut r, mut troubles) = (Record::new(), Vec::new());
            if read(text.as_bytes(), &mut r, &mut troubles).is_ok() {
                round_trip(&r);
            }
        }
    }
}
