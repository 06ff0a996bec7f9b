//! Classifies the beginning of a stretch of bytes that is not one valid record.

use super::{
    block::Scratch,
    number,
    repair::repair,
    start::{next_start, start},
};
use crate::RECORD_END;

/// What a stretch begins with, and how many bytes that has.
#[derive(Debug, PartialEq)]
pub(super) enum Piece {
    /// A record, or bytes up to a record terminator in which there should be one.
    Record(usize),
    /// Bytes before a record that belong to none.
    Junk(usize),
}

/// What the stretch begins with. It is not empty, and ends with a record terminator or the file.
///
/// No piece reaches into a record that begins behind it, whatever its own leader says: so one bad
/// record costs no other.
#[cold]
pub(super) fn first_piece(stretch: &[u8]) -> Piece {
    let begins = start(stretch);
    let next = next_start(stretch, begins.as_ref().map_or(1, |start| start.base));
    let here = &stretch[..next.unwrap_or(stretch.len())];
    let ends = |n: &usize| n.checked_sub(1).and_then(|last| here.get(last)) == Some(&RECORD_END);
    let said = here.get(..5).and_then(number).filter(ends);
    let first = memchr::memchr(RECORD_END, here).map(|last| last + 1);
    Piece::Record(match (begins, first) {
        // A length that is wrong may well point to a terminator, that of another record.
        (Some(start), Some(first)) => {
            Some(start.end(stretch)).filter(ends).or(said).unwrap_or(first)
        }
        (None, Some(first)) => match said {
            Some(said) if said > first && is_readable(&here[..said]) => said,
            _ => first,
        },
        (None, None) if next.is_some() => return Piece::Junk(here.len()),
        // Cut off, by the next record or by the end of the file.
        (_, None) => here.len(),
    })
}

fn is_readable(raw: &[u8]) -> bool {
    repair(raw, &mut Scratch::default()).area.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &[u8] = b"00043nam a2200037 i 4500001000500000\x1e0042\x1e\x1d";

    #[test]
    fn a_piece_ends_where_the_next_record_begins() {
        let piece = |parts: &[&[u8]]| first_piece(&parts.concat());
        assert_eq!(piece(&[b"junk", RECORD]), Piece::Junk(4));
        assert_eq!(piece(&[b"junk\x1d", RECORD]), Piece::Record(5));
        assert_eq!(piece(&[b"junk\x1djunk", RECORD]), Piece::Record(5));
        assert_eq!(piece(&[&RECORD[..30], RECORD]), Piece::Junk(30));
        assert_eq!(piece(&[&RECORD[..40], RECORD]), Piece::Record(40));
        assert_eq!(piece(&[b"00086", &RECORD[5..], RECORD]), Piece::Record(43));
        assert_eq!(piece(&[b"junk"]), Piece::Record(4));
    }
}
