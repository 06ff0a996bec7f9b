//! Writing ISO 2709.

use crate::{Error, ErrorKind, FIELD_END, Leader, RECORD_END, RecordRef, Result};

/// Appends `record` to `out` in ISO 2709.
///
/// A record that came from an ISO 2709 file and was sound is written as it stood. Any other gets
/// its lengths and its directory anew, in the layout `4500`; data that its directory did not
/// follow in order stays where it is. Numbers that their digits cannot hold (a record over 99,999
/// bytes, a field over 9,999) are written as zeros, by the convention that [`Reader`] and other
/// tolerant readers know; see [`fits`] to refuse them instead.
///
/// A last field that was cut off gets its terminator.
///
/// [`Reader`]: super::Reader
pub fn write(record: RecordRef<'_>, out: &mut Vec<u8>) {
    if let Some(raw) = record.raw() {
        out.extend_from_slice(raw);
        return;
    }
    let area = record.area();
    out.reserve(26 + 12 * record.len() + area.len());
    out.extend_from_slice(&leader(record).0);
    for span in record.spans {
        out.extend_from_slice(&span.tag);
        out.extend_from_slice(&digits::<4>((span.end - span.start) as usize + 1));
        out.extend_from_slice(&digits::<5>((span.start - record.area.0) as usize));
    }
    out.push(FIELD_END);
    out.extend_from_slice(area);
    if is_cut(record) {
        out.push(FIELD_END);
    }
    out.push(RECORD_END);
}

/// The leader that `record` is written with: its own, with the lengths as they are.
pub fn leader(record: RecordRef<'_>) -> Leader {
    let base = 25 + 12 * record.len();
    let length = base + record.area().len() + usize::from(is_cut(record)) + 1;
    let mut leader = record.leader().0;
    leader[..5].copy_from_slice(&digits::<5>(length));
    leader[12..17].copy_from_slice(&digits::<5>(base));
    // The layout is what is written here, whatever was read.
    if leader[20..23].iter().all(u8::is_ascii_digit) && &leader[20..23] != b"450" {
        leader[20..].copy_from_slice(b"4500");
    }
    Leader(leader)
}

/// Looks whether ISO 2709's digits can hold the record's lengths.
///
/// # Errors
/// [`TooLarge`](ErrorKind::TooLarge), naming the record's length or the field.
pub fn fits(record: RecordRef<'_>) -> Result<()> {
    let length = 26 + 12 * record.len() + record.area().len() + usize::from(is_cut(record));
    if length > 99_999 {
        let context = format!("a record of {length} bytes; the limit of ISO 2709 is 99,999");
        return Err(Error::new(ErrorKind::TooLarge, context));
    }
    if record.area().len() <= 9_998 {
        return Ok(());
    }
    match record.fields().find(|f| f.bytes().len() > 9_998) {
        None => Ok(()),
        Some(f) => {
            let context = format!(
                "field {} of {} bytes; the limit of ISO 2709 is 9,999",
                f.tag_text(),
                f.bytes().len() + 1
            );
            Err(Error::new(ErrorKind::TooLarge, context))
        }
    }
}

/// True where the data does not end with the terminator of a field.
fn is_cut(record: RecordRef<'_>) -> bool {
    record.area().last().is_some_and(|last| *last != FIELD_END)
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
