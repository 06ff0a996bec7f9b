//! Checks a readable record for deviations from the standard.

use std::ops::RangeInclusive;

use crate::{Content, RecordRef, Trouble, TroubleKind as Kind};

/// Bytes that cannot stand in text: controls but for those MARC-8 uses for joiners and escapes.
const CONTROLS: RangeInclusive<u8> = 0..=0x1a;

/// Adds a note for each oddity of `record` to `troubles`; offsets count from the record's first
/// byte. None of them keeps a record from coming back byte for byte.
///
/// Reading does not look for these: it would cost as much again as reading.
pub fn lint(record: RecordRef<'_>, troubles: &mut Vec<Trouble>) {
    let mut say =
        |kind, offset: usize, detail: String| troubles.push(Trouble::new(kind, offset, detail));
    let leader = record.leader().0;
    let shown =
        |range: std::ops::Range<usize>| format!("{:?}", String::from_utf8_lossy(&leader[range]));
    if &leader[20..] != b"4500" {
        say(Kind::EntryMap, 20, shown(20..24));
    }
    if &leader[10..12] != b"22" {
        say(Kind::IndicatorCount, 10, shown(10..12));
    }
    let area = record.area();
    if !area.is_ascii() && record.is_utf8() != record.leader().says_utf8() && record.is_utf8() {
        say(Kind::Encoding, 9, format!("{} says MARC-8, the bytes are UTF-8", shown(9..10)));
    }
    for field in record.fields() {
        let tag = field.tag();
        let at = record.offset_of(&field);
        let name = field.tag_text().into_owned();
        if !tag.iter().all(u8::is_ascii_alphanumeric) {
            say(Kind::OddTag, at, format!("{name:?}"));
        }
        let bytes = field.bytes();
        if let Some(i) = bytes.iter().position(|b| CONTROLS.contains(b)) {
            say(Kind::Control, at + i, format!("{name}: 0x{:02x}", bytes[i]));
        }
        match field.content() {
            Content::Plain([]) => say(Kind::NoText, at, name),
            Content::Plain(_) => (),
            Content::Data(_, subfields) => {
                if subfields.len() == 0 {
                    say(Kind::NoText, at, name.clone());
                }
                for subfield in subfields {
                    let known = matches!(subfield.code, [c] if c.is_ascii_graphic());
                    if !known {
                        let code = String::from_utf8_lossy(subfield.code);
                        say(Kind::OddCode, at, format!("{name}: {code:?}"));
                    }
                }
            }
        }
    }
}
