//! Finds faults inside fields, the same for every format they come from.

use crate::{FIELD_END, FieldRef, RECORD_END, RecordRef, Trouble, TroubleKind as Kind};

/// Tells `say` what is wrong inside of `field`: of which kind, how far into the field, and the facts.
/// `utf8` says that its text should be UTF-8.
pub(super) fn faults(field: FieldRef<'_>, utf8: bool, say: &mut dyn FnMut(Kind, usize, String)) {
    let bytes = field.bytes();
    let name = || field.tag_text().into_owned();
    if let Some(inner) = memchr::memchr2(FIELD_END, RECORD_END, bytes) {
        say(Kind::FieldEnd, inner, format!("{}: a terminator inside", name()));
    }
    let numeric = field.tag().iter().all(u8::is_ascii_digit);
    match field.marks.first().map(|mark| mark - field.start) {
        Some(_) if field.is_control() => say(Kind::ControlSubfields, 0, name()),
        Some(2) => (),
        Some(n) if !field.is_control() => {
            say(Kind::Indicators, 0, format!("{}: {n} bytes before the first subfield", name()));
        }
        // Local fields with letters in the tag may be plain; with digits they are not.
        None if !field.is_control() && numeric => {
            say(Kind::Indicators, 0, format!("{}: no subfield", name()));
        }
        _ => (),
    }
    if utf8 && let Err(e) = std::str::from_utf8(bytes) {
        let at = e.valid_up_to();
        say(Kind::BadText, at, format!("{}: 0x{:02x} is not UTF-8", name(), bytes[at]));
    }
}

/// Adds what is wrong inside of the fields of a record that did not come from ISO 2709, whose reader
/// looks for it by itself. All of it stands at the record's first byte.
pub fn look(record: RecordRef<'_>, troubles: &mut Vec<Trouble>) {
    let utf8 = record.leader().says_utf8() && !record.is_utf8();
    for field in record.fields() {
        faults(field, utf8, &mut |kind, _, detail| troubles.push(Trouble::new(kind, 0, detail)));
    }
}
