//! Writing MARC-in-JSON.
//!
//! A record is some sixty texts of fifteen bytes: what costs is not the copying but beginning to
//! copy. So the room for a record is made once, literals are stores of a fixed size, and short
//! texts are copied sixteen bytes at a time, the surplus being overwritten by what comes next.

use crate::{Content, Error, RecordRef, Result, Subfield, Subfields};

/// The longest that is written around a field: tag, indicators, brackets.
const AROUND_FIELD: usize = 64;
/// The longest that is written around a subfield.
const AROUND_SUBFIELD: usize = 12;
/// What a copy of a short text may write beyond its end.
const SLACK: usize = 32;

/// Appends `record` to `out` as one JSON object, without a line end.
///
/// # Errors
/// [`Unsupported`](crate::ErrorKind::Unsupported) where the record is not UTF-8, naming the field.
pub fn write(record: RecordRef<'_>, out: &mut Vec<u8>) -> Result<()> {
    if !record.is_utf8() {
        for field in record.fields() {
            if let Err(e) = std::str::from_utf8(field.bytes()) {
                return Err(Error::unsupported(format!(
                    "field {} is not UTF-8 from its byte {} on, which JSON cannot hold; convert the encoding first",
                    field.tag_text(),
                    e.valid_up_to()
                )));
            }
        }
    }
    let area = record.area();
    let (mut marks, mut texts, mut disjoint, mut end) = (0, 0, true, 0);
    for span in record.spans {
        marks += (span.marks.1 - span.marks.0) as usize;
        texts += (span.end - span.start) as usize;
        disjoint &= span.start >= end;
        end = span.end;
    }
    // A damaged directory may give the same bytes to several fields: then any of them may be.
    let special = if disjoint { count_special(area) } else { texts };
    let begin = out.len();
    // Leader and tags may need escapes too: six bytes for one. Delimiters inside plain text as well.
    let room = 6 * 24
        + texts
        + 5 * (special + marks + record.len())
        + record.len() * (AROUND_FIELD + 18)
        + marks * AROUND_SUBFIELD
        + SLACK;
    out.resize(begin + 64 + room, 0);
    let mut to = Cursor { out, at: begin, data: record.data, clean: special == 0 };
    to.put(br#"{"leader":""#);
    match record.leader.iter().all(|&b| matches!(b, b' '..=b'~' if !is_special(b))) {
        true => to.put(record.leader),
        false => to.odd(record.leader)?,
    }
    to.put(br#"","fields":["#);
    for (i, field) in record.fields().enumerate() {
        if i > 0 {
            to.put(b",");
        }
        to.put(br#"{""#);
        let tag = field.tag();
        match tag.iter().all(u8::is_ascii_alphanumeric) {
            true => to.put(&tag),
            false => to.odd(&tag)?,
        }
        match field.content() {
            Content::Plain(_) => {
                to.put(br#"":""#);
                to.text(field.start as usize, field.end as usize, !field.marks.is_empty());
                to.put(br#""}"#);
            }
            Content::Data(indicators, subfields) => to.data(indicators, subfields),
        }
    }
    to.put(b"]}");
    let end = to.at;
    out.truncate(end);
    Ok(())
}

/// Bytes that JSON wants escaped; the delimiters are never inside a text, or known to be.
#[inline]
fn is_special(b: u8) -> bool {
    b == b'"' || b == b'\\' || b < 0x1d
}

/// How many bytes want an escape: in chunks whose sums fit a byte, which compilers do many at once.
fn count_special(bytes: &[u8]) -> usize {
    let chunks = bytes.chunks(128);
    chunks.map(|c| usize::from(c.iter().fold(0u8, |n, &b| n + u8::from(is_special(b))))).sum()
}

struct Cursor<'a> {
    out: &'a mut Vec<u8>,
    at: usize,
    /// The record's buffer.
    data: &'a [u8],
    /// Nothing in the record needs an escape.
    clean: bool,
}

impl Cursor<'_> {
    #[inline]
    fn put<const N: usize>(&mut self, literal: &[u8; N]) {
        self.out[self.at..self.at + N].copy_from_slice(literal);
        self.at += N;
    }

    /// The text at `start..end` of the record's buffer; `marked` if delimiters stand in it.
    #[inline]
    fn text(&mut self, start: usize, end: usize, marked: bool) {
        let n = end - start;
        if !self.clean || marked {
            let data = self.data;
            if marked || data[start..end].iter().any(|&b| is_special(b)) {
                return self.escaped(&data[start..end]);
            }
        }
        if n <= 32 && start + 32 <= self.data.len() {
            let from: &[u8; 32] = self.data[start..start + 32].first_chunk().expect("32 bytes");
            self.out[self.at..self.at + 32].copy_from_slice(from);
        } else {
            self.out[self.at..self.at + n].copy_from_slice(&self.data[start..end]);
        }
        self.at += n;
    }

    /// Bytes from outside the data area, which may be anything.
    fn odd(&mut self, bytes: &[u8]) -> Result<()> {
        match std::str::from_utf8(bytes) {
            Ok(_) => self.escaped(bytes),
            Err(_) => {
                let shown = String::from_utf8_lossy(bytes);
                return Err(Error::unsupported(format!("leader or tag {shown:?} is not UTF-8")));
            }
        }
        Ok(())
    }

    #[cold]
    fn escaped(&mut self, bytes: &[u8]) {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        for &b in bytes {
            match b {
                b'"' => self.put(br#"\""#),
                b'\\' => self.put(br"\\"),
                b'\n' => self.put(br"\n"),
                b'\r' => self.put(br"\r"),
                b'\t' => self.put(br"\t"),
                8 => self.put(br"\b"),
                12 => self.put(br"\f"),
                0..0x20 => {
                    let digits = [HEX[usize::from(b >> 4)], HEX[usize::from(b & 15)]];
                    self.put(br"\u00");
                    self.put(&digits);
                }
                _ => self.put(&[b]),
            }
        }
    }

    /// A subfield whose code needs an escape or has several bytes.
    #[cold]
    fn odd_subfield(&mut self, start: usize, stop: usize) {
        let subfield = Subfield::of(&self.data[start..stop]);
        self.put(br#"{""#);
        self.escaped(subfield.code);
        self.put(br#"":""#);
        self.text(start + subfield.code.len(), stop, false);
    }

    #[inline]
    fn data(&mut self, indicators: [u8; 2], subfields: Subfields<'_>) {
        if indicators.iter().any(|&i| is_special(i)) {
            self.put(br#"":{"ind1":""#);
            self.escaped(&indicators[..1]);
            self.put(br#"","ind2":""#);
            self.escaped(&indicators[1..]);
            self.put(br#"","subfields":["#);
        } else {
            let mut head = *br#"":{"ind1":"1","ind2":"2","subfields":["#;
            head[11] = indicators[0];
            head[22] = indicators[1];
            self.put(&head);
        }
        let (marks, end) = (subfields.marks(), subfields.end());
        for (i, &mark) in marks.iter().enumerate() {
            let start = mark as usize + 1;
            let stop = marks.get(i + 1).map_or(end, |&m| m as usize);
            if start == stop {
                // A delimiter with nothing after it.
                self.put(br#"{"":"#);
                self.put(br#""""#);
            } else {
                let code = self.data[start];
                if is_special(code) || code >= 0x80 {
                    self.odd_subfield(start, stop);
                } else {
                    self.put(&[b'{', b'"', code, b'"', b':', b'"']);
                    self.text(start + 1, stop, false);
                }
                self.put(br#"""#);
            }
            self.put(br#"},"#);
        }
        // Over the last comma.
        self.at -= usize::from(!marks.is_empty());
        self.put(br#"]}}"#);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::{Leader, Record};

    /// Records with everything that can stand in one.
    pub(super) fn any_record() -> impl Strategy<Value = Record> {
        let text = || prop_oneof!["[ -~]{0,40}", "\\PC{0,20}", "[\u{0}-\u{1c}\"\\\\]{0,6}"];
        let code = prop_oneof![
            8 => prop::char::range('a', 'z'),
            1 => prop::char::range(' ', '~'),
            1 => prop::char::range('\u{80}', '\u{10ffff}'),
        ];
        let subfields = prop::collection::vec((code, text()), 0..6);
        let tag = prop_oneof![4 => "[0-9]{3}", 1 => "[ -~]{3}"];
        let data = (tag.clone(), "[ -~]{2}", subfields).prop_map(|(tag, indicators, subfields)| {
            let mut bytes = indicators.into_bytes();
            for (code, text) in subfields {
                bytes.push(0x1f);
                bytes.extend(code.to_string().bytes().chain(text.bytes()));
            }
            (tag, bytes)
        });
        let plain = (tag, "[ -~]{0,20}\u{1f}?a?").prop_map(|(tag, text)| (tag, text.into_bytes()));
        let fields = prop::collection::vec(prop_oneof![4 => data, 1 => plain], 0..12);
        (fields, "[ -~]{24}").prop_map(|(fields, leader)| {
            let mut record = Record::new();
            record.set_leader(Leader(leader.as_bytes().try_into().unwrap()));
            for (tag, bytes) in fields {
                record.push_bytes(tag.as_bytes().try_into().unwrap(), &bytes).unwrap();
            }
            record
        })
    }

    proptest! {
        #[test]
        fn writes_what_serde_json_writes(record in any_record()) {
            let mut ours = b"before".to_vec();
            super::write(record.as_ref(), &mut ours).unwrap();
            let theirs = serde_json::to_string(&record).unwrap();
            prop_assert_eq!(std::str::from_utf8(&ours[6..]).unwrap(), theirs);
        }

        #[test]
        fn reads_what_it_wrote(record in any_record()) {
            let mut json = Vec::new();
            super::write(record.as_ref(), &mut json).unwrap();
            let mut again = Record::new();
            super::super::read(&json, &mut again, &mut Vec::new()).unwrap();
            prop_assert_eq!(again, record);
        }
    }
}
