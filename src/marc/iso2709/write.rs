//! Writing ISO 2709.

use crate::{
    Error, ErrorKind, Result,
    marc::{RECORD_END, RecordRef},
};

/// Appends `record` to `out` in ISO 2709.
///
/// A record that came from an ISO 2709 file and was sound is written as it stood. Any other gets
/// its lengths and its directory anew, in the layout `4500`; data that its directory did not
/// follow in order stays where it is. Numbers that their digits cannot hold (a record over 99,999
/// bytes, a field over 9,999) are written as zeros, by the convention that [`Reader`] and other
/// tolerant readers know; see [`fits`] to refuse them instead.
///
/// [`Reader`]: super::Reader
pub fn write(record: RecordRef<'_>, out: &mut Vec<u8>) {
    if let Some(raw) = record.raw() {
        out.extend_from_slice(raw);
        return;
    }
    let area = record.area();
    let base = 25 + 12 * record.len();
    let length = base + area.len() + 1;
    out.reserve(length);
    let leader = record.leader().0;
    out.extend_from_slice(&digits::<5>(length));
    out.extend_from_slice(&leader[5..12]);
    out.extend_from_slice(&digits::<5>(base));
    out.extend_from_slice(&leader[17..20]);
    // The layout is what is written here, whatever was read.
    match &leader[20..23] {
        map @ [b'0'..=b'9', b'0'..=b'9', b'0'..=b'9'] if map != b"450" => {
            out.extend_from_slice(b"4500");
        }
        _ => out.extend_from_slice(&leader[20..]),
    }
    for span in record.spans {
        out.extend_from_slice(&span.tag);
        out.extend_from_slice(&digits::<4>((span.end - span.start) as usize + 1));
        out.extend_from_slice(&digits::<5>((span.start - record.area.0) as usize));
    }
    out.push(crate::marc::FIELD_END);
    out.extend_from_slice(area);
    out.push(RECORD_END);
}

/// Looks whether ISO 2709's digits can hold the record's lengths.
///
/// # Errors
/// [`TooLarge`](ErrorKind::TooLarge), naming the record's length or the field.
pub fn fits(record: RecordRef<'_>) -> Result<()> {
    let length = 26 + 12 * record.len() + record.area().len();
    if length > 99_999 {
        let context = format!("a record of {length} bytes; ISO 2709 can say 99,999");
        return Err(Error::new(ErrorKind::TooLarge, context));
    }
    match record.fields().find(|f| f.bytes().len() > 9_998) {
        None => Ok(()),
        Some(f) => {
            let context = format!(
                "field {} of {} bytes; ISO 2709 can say 9,999",
                f.tag_text(),
                f.bytes().len() + 1
            );
            Err(Error::new(ErrorKind::TooLarge, context))
        }
    }
}

/// `n` in N digits; all zeros where it has more.
fn digits<const N: usize>(n: usize) -> [u8; N] {
    let mut out = [b'0'; N];
    let mut left = n;
    for digit in out.iter_mut().rev() {
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
    }
    if left == 0 { out } else { [b'0'; N] }
}
