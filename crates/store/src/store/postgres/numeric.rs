//! PostgreSQL's `numeric` as it goes over the wire, and decimal numbers as text.
//!
//! Digits to the base of 10,000, the place of the first, a sign, and how many decimal digits follow
//! the point (`numeric_send` of PostgreSQL's `numeric.c`).

use crate::{Error, ErrorKind, Result};

/// How many digits before the point, and after it, a `numeric` can have.
pub(super) const WHOLE: usize = 131_072;
const FRACTION: usize = 16_383;

const NEGATIVE: u16 = 0x4000;

/// A decimal number, taken apart: digits before and after the point.
pub(super) struct Digits {
    negative: bool,
    whole: String,
    fraction: String,
}

impl Digits {
    /// Reads digits with an optional sign, point and exponent.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) for what is none; [`TooLarge`](ErrorKind::TooLarge) for more
    /// digits than PostgreSQL has.
    pub(super) fn read(text: &str) -> Result<Digits> {
        let none = || {
            let shown: String = text.chars().take(40).collect();
            Error::invalid(format!("{shown:?} is not a decimal number"))
        };
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().map_err(|_| none())?),
            None => (rest, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        if whole.len() + fraction.len() == 0 || !digits(whole) || !digits(fraction) {
            return Err(none());
        }
        // Limits first: an exponent says a lot in a few bytes.
        let too_many = || {
            let what =
                format!("a number of more than {WHOLE} digits, or {FRACTION} after the point");
            Error::new(ErrorKind::TooLarge, what)
        };
        if exponent.unsigned_abs() > (WHOLE + FRACTION) as u64 {
            return Err(too_many());
        }
        let point = whole.len() as i64 + exponent;
        if point > WHOLE as i64 || fraction.len() as i64 - exponent > FRACTION as i64 {
            return Err(too_many());
        }
        let all = [whole, fraction].concat();
        let (whole, fraction) = match usize::try_from(point) {
            Err(_) | Ok(0) => (String::new(), "0".repeat(point.unsigned_abs() as usize) + &all),
            Ok(point) if point >= all.len() => {
                (all.clone() + &"0".repeat(point - all.len()), "".into())
            }
            Ok(point) => (all[..point].to_owned(), all[point..].to_owned()),
        };
        Ok(Digits { negative, whole: whole.trim_start_matches('0').to_owned(), fraction })
    }

    /// How many digits there are before the point, without zeros in front.
    pub(super) fn whole(&self) -> usize {
        self.whole.len()
    }

    /// How many digits after the point make a difference.
    pub(super) fn fraction(&self) -> usize {
        self.fraction.trim_end_matches('0').len()
    }

    /// How many zeros there are before the point; of nothing else as many as there can be.
    pub(super) fn zeros(&self) -> usize {
        match self.whole.trim_end_matches('0').len() {
            0 => WHOLE,
            others => self.whole.len() - others,
        }
    }

    /// Appends it as it goes over the wire.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let pad = |n: usize| "0".repeat((4 - n % 4) % 4);
        let whole = pad(self.whole.len()) + &self.whole;
        let all = whole.clone() + &self.fraction + &pad(self.fraction.len());
        let group = |four: &[u8]| four.iter().fold(0, |n, digit| n * 10 + u16::from(digit - b'0'));
        let mut groups: Vec<u16> = all.as_bytes().chunks(4).map(group).collect();
        let mut weight = whole.len() as i32 / 4 - 1;
        while groups.last() == Some(&0) {
            groups.pop();
        }
        let zeros = groups.iter().take_while(|group| **group == 0).count();
        groups.drain(..zeros);
        weight -= zeros as i32;
        let (weight, sign) = match (groups.is_empty(), self.negative) {
            (true, _) => (0, 0),
            (false, negative) => (weight as i16, if negative { NEGATIVE } else { 0 }),
        };
        out.extend((groups.len() as u16).to_be_bytes());
        out.extend(weight.to_be_bytes());
        out.extend(sign.to_be_bytes());
        out.extend((self.fraction.len() as u16).to_be_bytes());
        groups.iter().for_each(|group| out.extend(group.to_be_bytes()));
    }
}

/// The text of a `numeric` as it came over the wire: digits, or `NaN` and the infinities; none
/// where the bytes are none.
pub(super) fn read(bytes: &[u8]) -> Option<String> {
    let at = |i: usize| Some(u16::from_be_bytes(bytes.get(2 * i..2 * i + 2)?.try_into().ok()?));
    let (count, weight, sign, scale) = (at(0)?, at(1)? as i16, at(2)?, usize::from(at(3)?));
    match sign {
        0 | NEGATIVE => {}
        0xd000 => return Some("Infinity".into()),
        0xf000 => return Some("-Infinity".into()),
        _ => return Some("NaN".into()),
    }
    if bytes.len() != 8 + 2 * usize::from(count) {
        return None;
    }
    let mut text = String::from(if sign == NEGATIVE { "-" } else { "" });
    let group = |place: i32| {
        let i = usize::try_from(i32::from(weight) - place).ok()?;
        (i < usize::from(count)).then(|| at(4 + i)).flatten()
    };
    match weight {
        ..0 => text.push('0'),
        _ => text += &group(i32::from(weight)).unwrap_or(0).to_string(),
    }
    for place in (0..i32::from(weight)).rev() {
        text += &format!("{:04}", group(place).unwrap_or(0));
    }
    if scale > 0 {
        text.push('.');
        let end = text.len() + scale;
        for place in 1..=scale.div_ceil(4) as i32 {
            text += &format!("{:04}", group(-place).unwrap_or(0));
        }
        text.truncate(end);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(text: &str) -> String {
        let mut bytes = Vec::new();
        Digits::read(text).unwrap().write(&mut bytes);
        read(&bytes).unwrap()
    }

    #[test]
    fn numbers_come_back_with_their_zeros() {
        for text in [
            "0",
            "1",
            "-1",
            "9999",
            "10000",
            "123456789",
            "0.5",
            "-0.001",
            "1.50",
            "100.00",
            "0.00",
            "0.00001",
            "12345.6789",
            "10000000000000000000000",
            "0.00000000000000000001",
        ] {
            assert_eq!(through(text), text);
        }
        let long = format!("{}.{}", "9".repeat(1001), "01".repeat(700));
        assert_eq!(through(&long), long);
    }

    #[test]
    fn other_spellings_are_the_same_number() {
        for (text, want) in [
            ("+7", "7"),
            ("007", "7"),
            (".5", "0.5"),
            ("5.", "5"),
            ("-0", "0"),
            ("-0.00", "0.00"),
            ("1e5", "100000"),
            ("1.5E+3", "1500"),
            ("1.5e-3", "0.0015"),
            ("12e-1", "1.2"),
            ("0e9", "0"),
            ("0.0012e3", "1.2"),
        ] {
            assert_eq!(through(text), want, "{text}");
        }
    }

    #[test]
    fn what_is_no_number_or_too_long_is_refused() {
        for text in ["", "-", ".", "NaN", "1e", "e5", "1_000", "0x1", "--1", "1.2.3", "1e5.0"] {
            assert_eq!(Digits::read(text).err().unwrap().kind(), ErrorKind::Invalid, "{text:?}");
        }
        for text in ["1e131072", "1e-16384", "1e9000000000000000000", "0e-9000000000000000000"] {
            assert_eq!(Digits::read(text).err().unwrap().kind(), ErrorKind::TooLarge, "{text:?}");
        }
        assert!(Digits::read("1e131071").is_ok());
    }

    #[test]
    fn bytes_that_are_none_are_none() {
        for bytes in [&b""[..], b"\0\x01\0\0\0\0\0\0", b"\0\0\0\0\0\0\0\0\0"] {
            assert_eq!(read(bytes), None);
        }
        assert_eq!(read(b"\0\0\0\0\xc0\0\0\0").as_deref(), Some("NaN"));
        // A weight beyond its digits.
        assert_eq!(read(b"\0\0\x7f\xff\0\0\0\0").unwrap().len(), 1 + 4 * 0x7fff);
    }
}
