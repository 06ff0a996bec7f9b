//! The encoding of a record's text: which it is, and turning one into another.
//!
//! Leader 9 says `a` for UTF-8 and blank for MARC-8, and is wrong in one record out of fifty. So the
//! bytes are asked too, and believed; that they disagree with the leader is reported.

use super::{
    FieldRef, Record, RecordRef, Trouble, TroubleKind,
    marc8::{Decoder, Encoder},
};
use crate::{Error, Result};

/// How a record's text is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// ASCII only, and nothing in it stands for anything else: the same in all of them.
    Ascii,
    /// UTF-8.
    Utf8,
    /// MARC-8, the character set of MARC 21 before Unicode.
    Marc8,
}

/// How the text of `record` is encoded, by its bytes.
///
/// Valid UTF-8 that is not ASCII is UTF-8, since MARC-8 accents stand before ASCII letters and are
/// never valid UTF-8. ASCII with escape characters (East Asian characters are written so) or with
/// references such as `&#x4E00;` (what MARC-8 has not is written so) is MARC-8, unless the leader says
/// UTF-8. Where the leader says UTF-8 and most of what is not ASCII is, a few wrong bytes are wrong bytes.
pub fn encoding(record: RecordRef<'_>) -> Encoding {
    let area = record.area();
    let says_utf8 = record.leader().says_utf8();
    match is_valid(record) {
        true if !area.is_ascii() => Encoding::Utf8,
        true if says_utf8 || !has_signs(area) => Encoding::Ascii,
        false if says_utf8 && is_mostly_utf8(area) => Encoding::Utf8,
        _ => Encoding::Marc8,
    }
}

/// Whether the text is valid UTF-8: what is wrong with a leader or a directory says nothing of it.
fn is_valid(record: RecordRef<'_>) -> bool {
    record.is_utf8() || simdutf8::basic::from_utf8(record.area()).is_ok()
}

/// Whether more characters beyond ASCII are UTF-8 than bytes are not. Accents of MARC-8 stand before ASCII letters, which
/// is never valid UTF-8.
fn is_mostly_utf8(area: &[u8]) -> bool {
    let (mut valid, mut wrong) = (0, 0);
    for chunk in area.utf8_chunks() {
        valid += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        wrong += chunk.invalid().len();
    }
    valid > wrong
}

/// Looks into the text of records, in memory it keeps.
#[derive(Default)]
pub struct Look {
    utf8: Record,
    nfc: bool,
}

impl Look {
    /// `nfc` composes letters and accents.
    pub fn new(nfc: bool) -> Look {
        Look { utf8: Record::new(), nfc }
    }

    /// Decodes `record` if its text is MARC-8, or UTF-8 with wrong bytes. Gives the record in UTF-8; none where it is that
    /// already. What is wrong with MARC-8 is added to `troubles`, as [`to_utf8`] does. Of UTF-8 it was said when the record
    /// was read; that a byte is replaced is said by whoever keeps the record so.
    pub fn read(
        &mut self,
        record: RecordRef<'_>,
        troubles: &mut Vec<Trouble>,
    ) -> Option<Result<RecordRef<'_>>> {
        if record.is_utf8() && record.leader().says_utf8() {
            return None;
        }
        let is_marc8 = encoding(record) == Encoding::Marc8;
        if !is_marc8 && is_valid(record) {
            return None;
        }
        let before = troubles.len();
        let done = to_utf8(record, self.nfc, &mut self.utf8, troubles);
        if !is_marc8 {
            troubles.truncate(before);
        }
        Some(done.map(|()| self.utf8.as_ref()))
    }
}

/// Escape characters, or what may be a reference.
fn has_signs(ascii: &[u8]) -> bool {
    memchr::memchr2_iter(0x1b, b'&', ascii)
        .any(|at| ascii[at] == 0x1b || ascii[at..].starts_with(b"&#x"))
}

/// Makes `to` the same record in UTF-8, by MARC-8 where the bytes are not UTF-8 already, and says so
/// in its leader. Of UTF-8, wrong bytes are [replaced](replace_invalid). `nfc` composes letters and accents. What MARC-8 has no character for is kept as
/// `&#xBB;` and reported, with offsets from the record's first byte.
///
/// # Errors
/// [`Invalid`](crate::ErrorKind::Invalid) where a field cannot be built, naming it.
pub fn to_utf8(
    record: RecordRef<'_>,
    nfc: bool,
    to: &mut Record,
    troubles: &mut Vec<Trouble>,
) -> Result<()> {
    if encoding(record) != Encoding::Marc8 {
        if !is_valid(record) {
            return replace_invalid(record, to, troubles);
        }
        to.assign(record);
        to.set_leader(record.leader().with_utf8(true));
        return Ok(());
    }
    let decoder = Decoder { nfc, ..Decoder::default() };
    recode(record, true, to, |field, text| {
        decoder.decode(field.bytes(), text, &mut |at, fault| {
            let at = record.offset_of(&field) + at;
            let detail = format!("{}: {fault}", field.tag_text());
            troubles.push(Trouble::new(TroubleKind::BadText, at, detail));
        });
        Ok(field.tag())
    })
}

/// Makes `to` the same record in MARC-8, and says so in its leader. Characters that MARC-8 does not
/// have are written as `&#x4E00;`, as the Library of Congress does, and reported.
///
/// # Errors
/// [`Malformed`](crate::ErrorKind::Malformed) where the text is neither UTF-8 nor MARC-8 already.
pub fn to_marc8(record: RecordRef<'_>, to: &mut Record, troubles: &mut Vec<Trouble>) -> Result<()> {
    if encoding(record) != Encoding::Utf8 {
        to.assign(record);
        to.set_leader(record.leader().with_utf8(false));
        return Ok(());
    }
    recode(record, false, to, |field, bytes| {
        let text = std::str::from_utf8(field.bytes()).map_err(|e| {
            let at = (record.offset_of(&field) + e.valid_up_to()) as u64;
            Error::malformed(format!("field {} is not UTF-8", field.tag_text())).at(at)
        })?;
        Encoder::default().encode(text, bytes, &mut |at, c| {
            let at = record.offset_of(&field) + at;
            let detail = format!("{}: MARC-8 has no {c:?}", field.tag_text());
            troubles.push(Trouble::new(TroubleKind::Reference, at, detail));
        });
        Ok(field.tag())
    })
}

/// Makes `to` the same record with each byte that is not UTF-8 replaced by U+FFFD (in leader and
/// tags, whose length is fixed, by `?`) and reported: the last resort, for text in an encoding nobody
/// knows.
///
/// # Errors
/// [`Invalid`](crate::ErrorKind::Invalid) where a field cannot be built, naming it.
pub fn replace_invalid(
    record: RecordRef<'_>,
    to: &mut Record,
    troubles: &mut Vec<Trouble>,
) -> Result<()> {
    let ascii = |bytes: &mut [u8]| {
        bytes.iter_mut().filter(|b| !b.is_ascii()).for_each(|b| *b = b'?');
    };
    let mut leader = record.leader();
    if let Err(e) = std::str::from_utf8(&leader.0) {
        let at = e.valid_up_to();
        let detail = format!("leader: 0x{:02x}, by ?", leader.0[at]);
        troubles.push(Trouble::new(TroubleKind::Replaced, at, detail));
        ascii(&mut leader.0);
    }
    recode(record, true, to, |field, text| {
        let mut at = record.offset_of(&field);
        let mut tag = field.tag();
        if std::str::from_utf8(&tag).is_err() {
            let detail = format!("tag {:?}, by ?", field.tag_text());
            troubles.push(Trouble::new(TroubleKind::Replaced, at, detail));
            ascii(&mut tag);
        }
        for chunk in field.bytes().utf8_chunks() {
            text.extend_from_slice(chunk.valid().as_bytes());
            at += chunk.valid().len();
            if let Some(&bad) = chunk.invalid().first() {
                let detail = format!("{}: 0x{bad:02x}, by U+FFFD", field.tag_text());
                troubles.push(Trouble::new(TroubleKind::Replaced, at, detail));
                text.extend_from_slice("\u{fffd}".as_bytes());
            }
            at += chunk.invalid().len();
        }
        Ok(tag)
    })?;
    to.set_leader(leader.with_utf8(true));
    Ok(())
}

/// Makes `to` the record with each field's bytes through `each`, which gives its tag.
fn recode<'a>(
    record: RecordRef<'a>,
    utf8: bool,
    to: &mut Record,
    mut each: impl FnMut(FieldRef<'a>, &mut Vec<u8>) -> Result<[u8; 3]>,
) -> Result<()> {
    to.clear();
    to.set_leader(record.leader().with_utf8(utf8));
    let mut bytes = Vec::new();
    for field in record.fields() {
        bytes.clear();
        let tag = each(field, &mut bytes)?;
        to.push_bytes(tag, &bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Leader;

    fn record(utf8: bool, text: &[u8]) -> Record {
        let mut r = Record::new();
        r.set_leader(Leader::NEW.with_utf8(utf8));
        r.push_data(*b"100", *b"1 ", &[(b'a', text)]).unwrap();
        r
    }

    #[test]
    fn the_bytes_are_believed() {
        for (says, text, is) in [
            (true, &b"Dvorak"[..], Encoding::Ascii),
            (false, b"Dvo\xe9r\xe2ak", Encoding::Marc8),
            (true, b"Dvo\xe9r\xe2ak", Encoding::Marc8),
            (false, "Dvořák".as_bytes(), Encoding::Utf8),
            (false, b"\x1b$1!0!\x1b(B", Encoding::Marc8),
            (false, b"salt & pepper", Encoding::Ascii),
            (false, b"salt & &#x4E00;", Encoding::Marc8),
            (true, b"salt & &#x4E00;", Encoding::Ascii),
            // A wrong byte in text that is UTF-8 otherwise; not where the leader says MARC-8.
            (true, b"Dvo\xc5\x99\xc3\xa1k \xc3( here", Encoding::Utf8),
            (false, b"Dvo\xc5\x99\xc3\xa1k \xc3( here", Encoding::Marc8),
            (true, b"Dvorak \xc3( here", Encoding::Marc8),
        ] {
            assert_eq!(encoding(record(says, text).as_ref()), is, "{text:?}");
        }
    }

    #[test]
    fn a_leader_that_is_no_text_says_nothing_of_the_text() {
        let mut raw = Vec::new();
        crate::iso2709::write(record(true, "Dvořák".as_bytes()).as_ref(), &mut raw);
        raw[8] = 0xff;
        let mut records = crate::iso2709::Records::new(&raw);
        let item = records.next().unwrap();
        assert_eq!(encoding(item.record.unwrap()), Encoding::Utf8);
    }

    #[test]
    fn references_come_back_with_or_without_other_signs() {
        for text in ["smile 😀 now", "smile 😀 né"] {
            let was = record(true, text.as_bytes());
            let (mut marc8, mut again, mut troubles) = (Record::new(), Record::new(), Vec::new());
            to_marc8(was.as_ref(), &mut marc8, &mut troubles).unwrap();
            assert_eq!(troubles.len(), 1, "{troubles:?}");
            to_utf8(marc8.as_ref(), true, &mut again, &mut troubles).unwrap();
            assert_eq!(again, was);
        }
    }

    #[test]
    fn a_wrong_byte_changes_nothing_but_itself() {
        let was = record(true, b"Dvo\xc5\x99\xc3\xa1k \xc3( here");
        let mut troubles = Vec::new();
        let mut look = Look::new(true);
        let seen = look.read(was.as_ref(), &mut troubles).expect("it has a wrong byte").unwrap();
        let text = seen.field(*b"100").unwrap().subfield(b'a').unwrap();
        assert_eq!(text, "Dvořák \u{fffd}( here".as_bytes());
        // Nothing is replaced by looking.
        assert_eq!(troubles, []);
        to_utf8(was.as_ref(), true, &mut Record::new(), &mut troubles).unwrap();
        assert_eq!(troubles.len(), 1, "{troubles:?}");
        assert_eq!(troubles[0].kind, TroubleKind::Replaced);
        assert!(troubles[0].to_string().contains("0xc3"), "{troubles:?}");
    }

    #[test]
    fn there_and_back() {
        let marc8 = record(false, b"Dvo\xe9r\xe2ak");
        let (mut utf8, mut again, mut troubles) = (Record::new(), Record::new(), Vec::new());
        to_utf8(marc8.as_ref(), true, &mut utf8, &mut troubles).unwrap();
        assert_eq!(
            utf8.as_ref().field(*b"100").unwrap().subfield(b'a').unwrap(),
            "Dvořák".as_bytes()
        );
        assert!(utf8.leader().says_utf8());
        to_marc8(utf8.as_ref(), &mut again, &mut troubles).unwrap();
        assert_eq!(again, marc8);
        assert_eq!(troubles, []);
    }

    #[test]
    fn what_is_replaced_is_reported() {
        let (mut to, mut troubles) = (Record::new(), Vec::new());
        replace_invalid(record(true, b"a\xffb").as_ref(), &mut to, &mut troubles).unwrap();
        assert_eq!(
            to.as_ref().field(*b"100").unwrap().subfield(b'a').unwrap(),
            "a\u{fffd}b".as_bytes()
        );
        assert_eq!(troubles.len(), 1);
        assert_eq!(troubles[0].offset, 5);
    }

    #[test]
    fn leader_and_tags_that_are_no_text_are_replaced_too() {
        let mut r = record(true, b"a");
        let mut leader = r.leader();
        leader.0[22] = 0xff;
        r.set_leader(leader);
        r.push_plain(*b"\xffX9", b"x").unwrap();
        let (mut to, mut troubles) = (Record::new(), Vec::new());
        replace_invalid(r.as_ref(), &mut to, &mut troubles).unwrap();
        assert_eq!(&to.leader().0[20..], b"45?0");
        assert!(to.as_ref().field(*b"?X9").is_some() && to.as_ref().field(*b"100").is_some());
        let kinds: Vec<_> = troubles.iter().map(|t| t.kind).collect();
        assert_eq!(kinds, [TroubleKind::Replaced, TroubleKind::Replaced]);
    }
}
