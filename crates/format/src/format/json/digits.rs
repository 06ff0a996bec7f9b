//! Numbers in JSON whose digits a float does not have, found without reading the record again.

use memchr::memchr_iter;

use crate::record::{native::Floats, number};

/// How many digits may stand in a row that no float rounds, as far as it is in the usual range. The
/// point counts as one of them.
const FEW: usize = 15;

/// Whether one of the numbers may be another as a float. Digits in texts count too: then the record
/// is read with all digits to no avail.
pub(super) fn rounded(bytes: &[u8], floats: Floats) -> bool {
    match floats {
        Floats::None => false,
        Floats::Usual => has_long(bytes),
        Floats::Tiny => has_long(bytes) || has_small(bytes),
    }
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit() || byte == b'.'
}

/// Whether a byte can be in a number.
pub(super) fn is_part(byte: u8) -> bool {
    is_digit(byte) || matches!(byte, b'-' | b'+' | b'e' | b'E')
}

/// Whether a number has more than a few digits in a row, and is another as a float.
fn has_long(bytes: &[u8]) -> bool {
    // Where as many stand in a row, one of them stands at such a place.
    let mut at = FEW;
    while at < bytes.len() {
        if !is_digit(bytes[at]) {
            at += FEW + 1;
            continue;
        }
        let start = at - bytes[..at].iter().rev().take_while(|b| is_digit(**b)).count();
        let end = at + bytes[at..].iter().take_while(|b| is_digit(**b)).count();
        if end - start > FEW && is_rounded(bytes, start) {
            return true;
        }
        at = end + FEW;
    }
    false
}

/// Whether a number has a negative exponent, and is another as a float: one that is as near to zero
/// as that has fewer digits than others, or none.
fn has_small(bytes: &[u8]) -> bool {
    memchr_iter(b'-', bytes).any(|at| {
        at >= 2
            && matches!(bytes[at - 1], b'e' | b'E')
            && is_digit(bytes[at - 2])
            && is_rounded(bytes, at)
    })
}

/// Whether what stands around this place, if it is a number, is another as a float.
fn is_rounded(bytes: &[u8], at: usize) -> bool {
    let start = at - bytes[..at].iter().rev().take_while(|b| is_part(**b)).count();
    let end = at + bytes[at..].iter().take_while(|b| is_part(**b)).count();
    str::from_utf8(&bytes[start..end])
        .is_ok_and(|text| number::is_json(text) && number::rounds(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_too_many_digits_are_found_wherever_they_stand() {
        for (number, want) in [
            ("12345678901234567890", false),
            ("98765432109876543210", true),
            ("-12345678901234567890123", true),
            ("9007199254740993.0", true),
            ("0.10000000000000001", true),
            ("1e-400", true),
            ("4.9e-324", true),
            ("18446744073709551615", false),
            ("0.30000000000000004", false),
            ("1.7976931348623157e308", false),
            ("5e-324", false),
            ("0.5", false),
            ("1.50000000000000000000000", false),
        ] {
            for before in 0..40 {
                let json = format!(r#"{{"{}":0.0,"n":[{number}]}}"#, "é".repeat(before));
                assert_eq!(rounded(json.as_bytes(), Floats::Tiny), want, "{json}");
            }
        }
    }

    #[test]
    fn nothing_is_looked_for_where_no_float_was() {
        assert!(!rounded(b"12345678901234567890123", Floats::None));
    }
}
