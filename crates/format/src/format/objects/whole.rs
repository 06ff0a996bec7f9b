//! Whole numbers of any size between their bytes and the types serde has for them.

use dashu_int::{IBig, Sign, UBig};
use serde::de::Visitor;

use crate::{
    Error, Result,
    record::native::{BIGINT, Native},
};

/// A whole number in the smallest type that holds it.
#[derive(Debug, PartialEq)]
pub enum Whole {
    I64(i64),
    U64(u64),
    I128(i128),
    U128(u128),
    /// Decimal digits with an optional leading `-`.
    Digits(String),
}

impl Whole {
    /// From sign and magnitude, least significant byte first.
    pub fn from_magnitude(negative: bool, bytes: &[u8]) -> Whole {
        let len = bytes.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1);
        let bytes = &bytes[..len];
        if len > 16 {
            let sign = if negative { Sign::Negative } else { Sign::Positive };
            return Whole::Digits(IBig::from_parts(sign, UBig::from_le_bytes(bytes)).to_string());
        }
        let mut wide = [0; 16];
        wide[..len].copy_from_slice(bytes);
        let magnitude = u128::from_le_bytes(wide);
        if !negative {
            return Whole::from_u128(magnitude);
        }
        match 0i128.checked_sub_unsigned(magnitude) {
            Some(v) => Whole::from_i128(v),
            None => Whole::Digits(format!("-{magnitude}")),
        }
    }

    /// From two's complement, least significant byte first; no bytes are zero.
    pub fn from_twos_complement(bytes: &[u8]) -> Whole {
        let negative = bytes.last().is_some_and(|b| b & 0x80 != 0);
        if bytes.len() <= 16 {
            let mut wide = [if negative { 0xff } else { 0 }; 16];
            wide[..bytes.len()].copy_from_slice(bytes);
            return Whole::from_i128(i128::from_le_bytes(wide));
        }
        if !negative {
            return Whole::from_magnitude(false, bytes);
        }
        Whole::from_magnitude(true, &negated(bytes))
    }

    /// From decimal digits with an optional sign.
    ///
    /// # Errors
    /// [`Malformed`](crate::ErrorKind::Malformed) for anything else.
    pub fn from_digits(digits: &str) -> Result<Whole> {
        if let Ok(v) = digits.parse() {
            return Ok(Whole::from_i128(v));
        }
        let (negative, magnitude) = magnitude_of(digits)?;
        Ok(Whole::from_magnitude(negative, &magnitude))
    }

    fn from_i128(v: i128) -> Whole {
        match (i64::try_from(v), u64::try_from(v)) {
            (Ok(v), _) => Whole::I64(v),
            (_, Ok(v)) => Whole::U64(v),
            _ => Whole::I128(v),
        }
    }

    fn from_u128(v: u128) -> Whole {
        i128::try_from(v).map_or(Whole::U128(v), Whole::from_i128)
    }

    /// Hands the number to a visitor that takes anything.
    pub fn visit<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self {
            Whole::I64(v) => visitor.visit_i64(v),
            Whole::U64(v) => visitor.visit_u64(v),
            Whole::I128(v) => visitor.visit_i128(v),
            Whole::U128(v) => visitor.visit_enum(Native::new(BIGINT, v.to_string())),
            Whole::Digits(text) => visitor.visit_enum(Native::new(BIGINT, text)),
        }
    }

    /// Its digits.
    pub fn into_digits(self) -> String {
        match self {
            Whole::I64(v) => v.to_string(),
            Whole::U64(v) => v.to_string(),
            Whole::I128(v) => v.to_string(),
            Whole::U128(v) => v.to_string(),
            Whole::Digits(text) => text,
        }
    }
}

/// Sign and magnitude of decimal digits, least significant byte first, without leading zeros.
///
/// # Errors
/// [`Malformed`](crate::ErrorKind::Malformed) where the text is no whole number.
pub(crate) fn magnitude_of(digits: &str) -> Result<(bool, Vec<u8>)> {
    let (negative, plain) = match digits.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, digits.strip_prefix('+').unwrap_or(digits)),
    };
    let wrong = || {
        let start: String = digits.chars().take(40).collect();
        Error::malformed(format!("{start:?} is not a whole number"))
    };
    if plain.is_empty() || !plain.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong());
    }
    let number = UBig::from_str_radix(plain, 10).map_err(|e| wrong().with_source(e.to_string()))?;
    Ok((negative, number.to_le_bytes().into_vec()))
}

/// Two's complement of sign and magnitude, both least significant byte first; as short as it
/// can be, zero has no bytes.
pub(crate) fn twos_complement(negative: bool, mut magnitude: Vec<u8>) -> Vec<u8> {
    magnitude.truncate(magnitude.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1));
    if magnitude.is_empty() {
        return magnitude;
    }
    magnitude.push(0);
    let mut bytes = if negative { negated(&magnitude) } else { magnitude };
    while let [.., before, last] = bytes[..]
        && matches!((last, before & 0x80), (0, 0) | (0xff, 0x80))
    {
        bytes.pop();
    }
    bytes
}

/// The two's complement negative of bytes, least significant first.
fn negated(bytes: &[u8]) -> Vec<u8> {
    let mut carry = true;
    let negate = |&b: &u8| {
        let (byte, over) = (!b).overflowing_add(u8::from(carry));
        carry = over;
        byte
    };
    bytes.iter().map(negate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_sizes_there_and_back() {
        let mut numbers: Vec<String> = ["0", "1", "-1", "127", "128", "-128", "-129", "255", "256"]
            .map(str::to_owned)
            .to_vec();
        for bits in [31, 32, 62, 63, 64, 65, 100, 127, 128, 129, 1000, 5000] {
            let power = UBig::ONE << bits;
            for n in [power.clone() - 1u8, power.clone(), power + 1u8] {
                numbers.push(n.to_string());
                numbers.push(format!("-{n}"));
            }
        }
        for text in numbers {
            let (negative, bytes) = magnitude_of(&text).unwrap();
            assert_eq!(Whole::from_magnitude(negative, &bytes).into_digits(), text);
            let two = twos_complement(negative, bytes);
            assert_eq!(Whole::from_twos_complement(&two).into_digits(), text);
            let short = two.len() < 2 || {
                let shorter = Whole::from_twos_complement(&two[..two.len() - 1]);
                shorter.into_digits() != text
            };
            assert!(short, "{text} could be shorter");
        }
    }

    #[test]
    fn chooses_the_smallest_type() {
        assert_eq!(Whole::from_digits("9223372036854775808").unwrap(), Whole::U64(1 << 63));
        assert_eq!(Whole::from_digits("-9223372036854775808").unwrap(), Whole::I64(i64::MIN));
        assert_eq!(Whole::from_magnitude(false, &[0xff; 16]), Whole::U128(u128::MAX));
        let least = Whole::from_magnitude(true, &(1u128 << 127).to_le_bytes());
        assert_eq!(least, Whole::I128(i128::MIN));
        assert_eq!(Whole::from_magnitude(true, &[]), Whole::I64(0));
    }

    #[test]
    fn refuses_what_is_no_number() {
        for text in ["", "-", "+", "1.5", "0x10", "1 ", "--1", "1_000", "١"] {
            assert!(magnitude_of(text).is_err(), "{text:?}");
        }
    }
}
