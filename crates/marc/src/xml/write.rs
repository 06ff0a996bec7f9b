//! Writes a record as one record element.

use super::{
    MAX_ATTRIBUTE,
    scan::{block, first_to_write},
    show,
};
use crate::{Error, FieldRef, RecordRef, Result, Trouble, TroubleKind, field::first_character};

/// Appends the record as one `<record>` element, without line ends: it stands in a collection, whose
/// namespace it takes.
///
/// # Errors
/// [`Unsupported`](crate::ErrorKind::Unsupported), naming the field, for what XML 1.0 cannot hold:
/// control characters other than tab and line ends, and bytes that are not UTF-8. `out` is then as
/// long as it was.
pub fn write(record: RecordRef<'_>, out: &mut Vec<u8>) -> Result<()> {
    emit(record, out, None)
}

/// The same, but what XML cannot hold is written as U+FFFD and reported.
pub fn write_tolerant(record: RecordRef<'_>, out: &mut Vec<u8>, troubles: &mut Vec<Trouble>) {
    // Nothing else can go wrong in memory.
    let done = emit(record, out, Some(troubles));
    debug_assert!(done.is_ok());
}

fn emit(
    record: RecordRef<'_>,
    out: &mut Vec<u8>,
    troubles: Option<&mut Vec<Trouble>>,
) -> Result<()> {
    let start = out.len();
    // What markup takes; references may ask for more. A borrowed record has the marks of its whole
    // block, so its own are counted.
    let marks = match record.spans {
        [first, .., last] => last.marks.1.saturating_sub(first.marks.0) as usize,
        _ => 8,
    };
    let room = record.area().len() + 64 * record.len() + 32 * marks + 128;
    out.resize(start + room, 0);
    let careful = !record.is_utf8() || has_noncharacter(record.area());
    let mut writer = Writer { out, at: start, troubles, careful, tag: *b"LDR" };
    let done = writer.record(record);
    let end = if done.is_ok() { writer.at } else { start };
    out.truncate(end);
    done
}

/// True where U+FFFE or U+FFFF may be among the characters: the two that are not control characters
/// and yet not allowed.
fn has_noncharacter(bytes: &[u8]) -> bool {
    memchr::memchr_iter(0xef, bytes)
        .any(|n| matches!(bytes.get(n + 1..n + 3), Some([0xbf, 0xbe | 0xbf])))
}

/// True for bytes that stand in quotes as they are.
fn is_plain(bytes: &[u8]) -> bool {
    bytes.iter().all(|b| matches!(b, b' '..=b'~') && !matches!(b, b'"' | b'&' | b'<' | b'>'))
}

struct Writer<'a> {
    /// Longer than what is written, which ends at `at`.
    out: &'a mut Vec<u8>,
    at: usize,
    troubles: Option<&'a mut Vec<Trouble>>,
    /// Look at every character, for some are not as they should be.
    careful: bool,
    /// The field being written, to be named when something is wrong.
    tag: [u8; 3],
}

impl Writer<'_> {
    fn record(&mut self, record: RecordRef<'_>) -> Result<()> {
        self.put(b"<record><leader>");
        self.text(&record.leader().0, 0, 24, self.careful || !record.leader.is_ascii())?;
        self.put(b"</leader>");
        for field in record.fields() {
            self.tag = field.tag;
            // Two signs without a delimiter are indicators of a data field without subfields.
            let bare = field.bytes().len() == 2 && field.bytes().is_ascii() && !field.is_control();
            match field.marks.is_empty() && !bare {
                true => self.control_field(field)?,
                false => self.data_field(field)?,
            }
        }
        self.put(b"</record>");
        Ok(())
    }

    #[inline(always)]
    fn put<const N: usize>(&mut self, word: &[u8; N]) {
        self.room(N).copy_from_slice(word);
        self.at += N;
    }

    /// The next `n` bytes of room.
    #[inline(always)]
    fn room(&mut self, n: usize) -> &mut [u8] {
        if self.out.len() < self.at + n {
            self.grow(n);
        }
        &mut self.out[self.at..self.at + n]
    }

    #[cold]
    fn grow(&mut self, n: usize) {
        let by = (self.out.len() / 8).max(1024) + n;
        self.out.resize(self.out.len() + by, 0);
    }

    fn control_field(&mut self, field: FieldRef<'_>) -> Result<()> {
        let tag = field.tag;
        if is_plain(&tag) {
            let mut head = *b"<controlfield tag=\"...\">";
            head[19..22].copy_from_slice(&tag);
            self.put(&head);
        } else {
            self.put(b"<controlfield tag=\"");
            self.attribute(&tag)?;
            self.put(b"\">");
        }
        self.text(field.data, field.start as usize, field.end as usize, self.careful)?;
        self.put(b"</controlfield>");
        Ok(())
    }

    #[inline(always)]
    fn data_field(&mut self, field: FieldRef<'_>) -> Result<()> {
        let data = &field.data[field.start as usize..];
        let head = field.marks.first().map_or(field.end, |m| *m) - field.start;
        match *data {
            [first, second, ..]
                if head == 2 && is_plain(&[first, second]) && is_plain(&field.tag) =>
            {
                let mut head = *b"<datafield tag=\"...\" ind1=\".\" ind2=\".\">";
                head[16..19].copy_from_slice(&field.tag);
                head[27] = first;
                head[36] = second;
                self.put(&head);
            }
            _ => self.odd_head(&data[..head as usize])?,
        }
        for (i, &mark) in field.marks.iter().enumerate() {
            let end = field.marks.get(i + 1).map_or(field.end, |m| *m) as usize;
            self.subfield(field.data, mark as usize + 1, end)?;
        }
        self.put(b"</datafield>");
        Ok(())
    }

    /// The start tag of a data field whose indicators are not two usual ones: more than two
    /// characters are a first one and the rest, which put together are what they were.
    #[cold]
    fn odd_head(&mut self, head: &[u8]) -> Result<()> {
        let first = first_character(head);
        let (mut first, mut second) = (first, &head[first.len()..]);
        if second.is_empty() || second.len() > MAX_ATTRIBUTE {
            let detail = format!("field {}: not two indicators but {head:02X?}", show(&self.tag));
            let Some(troubles) = &mut self.troubles else {
                return Err(Error::unsupported(format!("{detail}: not possible in MARCXML")));
            };
            troubles.push(Trouble::new(TroubleKind::Replaced, 0, detail + ", blank or cut"));
            first = if first.is_empty() { b" " } else { first };
            second = if second.is_empty() { b" " } else { &second[..MAX_ATTRIBUTE] };
        }
        self.put(b"<datafield tag=\"");
        self.attribute(&{ self.tag })?;
        self.put(b"\" ind1=\"");
        self.attribute(first)?;
        self.put(b"\" ind2=\"");
        self.attribute(second)?;
        self.put(b"\">");
        Ok(())
    }

    #[inline(always)]
    fn subfield(&mut self, data: &[u8], from: usize, end: usize) -> Result<()> {
        match data[from..end] {
            [code, ..] if is_plain(&[code]) => {
                let mut head = *b"<subfield code=\".\">";
                head[16] = code;
                self.put(&head);
                self.text(data, from + 1, end, self.careful)?;
            }
            _ => {
                // A delimiter with nothing after it has no code; a code that is not ASCII is a
                // character, lest the text begin in the middle of one.
                let code = first_character(&data[from..end]);
                self.put(b"<subfield code=\"");
                self.attribute(code)?;
                self.put(b"\">");
                self.text(data, from + code.len(), end, self.careful)?;
            }
        }
        self.put(b"</subfield>");
        Ok(())
    }

    /// Writes `data[from..end]` as text.
    #[inline(always)]
    fn text(&mut self, data: &[u8], mut from: usize, end: usize, careful: bool) -> Result<()> {
        if careful {
            return self.careful_text(&data[from..end]);
        }
        while from < end {
            // A block may reach into what follows in the record; only what is text counts.
            let n = match block(data, from) {
                Some(bytes) => {
                    let n = first_to_write(bytes);
                    self.room(16).copy_from_slice(bytes);
                    n.min(end - from)
                }
                None => {
                    let mut bytes = [0; 16];
                    bytes[..end - from].copy_from_slice(&data[from..end]);
                    self.room(16).copy_from_slice(&bytes);
                    first_to_write(&bytes).min(end - from)
                }
            };
            self.at += n;
            from += n;
            if n < 16 && from < end {
                self.sign(data[from], false)?;
                from += 1;
            }
        }
        Ok(())
    }

    /// Writes text of which not all may be characters that XML knows.
    #[cold]
    fn careful_text(&mut self, text: &[u8]) -> Result<()> {
        for chunk in text.utf8_chunks() {
            let valid = chunk.valid();
            let mut rest = valid;
            while let Some(n) = rest.find(['\u{fffe}', '\u{ffff}']) {
                self.text(rest.as_bytes(), 0, n, false)?;
                self.unsayable("a noncharacter")?;
                rest = &rest[n + 3..];
            }
            self.text(rest.as_bytes(), 0, rest.len(), false)?;
            for byte in chunk.invalid() {
                self.unsayable(&format!("byte 0x{byte:02X}, which is not UTF-8 there"))?;
            }
        }
        Ok(())
    }

    /// Writes the value of an attribute.
    #[cold]
    fn attribute(&mut self, value: &[u8]) -> Result<()> {
        for chunk in value.utf8_chunks() {
            for &byte in chunk.valid().as_bytes() {
                self.sign(byte, true)?;
            }
            for byte in chunk.invalid() {
                self.unsayable(&format!("byte 0x{byte:02X}, which is not UTF-8 there"))?;
            }
        }
        Ok(())
    }

    /// Writes a byte that may not stand for itself.
    fn sign(&mut self, byte: u8, quoted: bool) -> Result<()> {
        match byte {
            b'&' => self.put(b"&amp;"),
            b'<' => self.put(b"&lt;"),
            b'>' => self.put(b"&gt;"),
            b'"' if quoted => self.put(b"&quot;"),
            // Readers make these into others if they are not referred to by number.
            b'\r' => self.put(b"&#13;"),
            b'\n' if quoted => self.put(b"&#10;"),
            b'\t' if quoted => self.put(b"&#9;"),
            ..b' ' if byte != b'\n' && byte != b'\t' => {
                self.unsayable(&format!("control character 0x{byte:02X}"))?;
            }
            _ => self.put(&[byte]),
        }
        Ok(())
    }

    #[cold]
    fn unsayable(&mut self, what: &str) -> Result<()> {
        let what = format!("field {}: {what}", show(&self.tag));
        match &mut self.troubles {
            None => Err(Error::unsupported(format!(
                "{what}: MARCXML cannot hold it; convert the record, or write tolerantly"
            ))),
            Some(troubles) => {
                troubles.push(Trouble::new(TroubleKind::Replaced, 0, what));
                self.put(&[0xef, 0xbf, 0xbd]);
                Ok(())
            }
        }
    }
}
