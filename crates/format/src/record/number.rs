//! Compares numbers by value, whatever their kind and spelling.
//!
//! A decimal number is the digits that it is written in. A float is the shortest decimal number that
//! is read as this float: 0.1 is one tenth. Whole floats below 2^64 have all their digits, as they
//! are compared with whole numbers of 64 bits.

use std::{borrow::Cow, cmp::Ordering};

use super::Value;

/// A finite decimal number: its digits from the first to the last that is no zero, in one piece or
/// two, and how many of them stand before the point.
#[derive(Debug, Clone, Copy)]
pub struct Exact<'a> {
    negative: bool,
    first: &'a [u8],
    second: &'a [u8],
    point: i64,
}

impl<'a> Exact<'a> {
    /// Reads digits with an optional sign, point and exponent; none for anything else, and for an
    /// exponent beyond 32 bits.
    pub fn read(text: &'a str) -> Option<Exact<'a>> {
        let bytes = text.as_bytes();
        let (negative, bytes) = match bytes.first()? {
            b'-' => (true, &bytes[1..]),
            b'+' => (false, &bytes[1..]),
            _ => (false, bytes),
        };
        let (mantissa, exponent) = match bytes.iter().position(|b| matches!(b, b'e' | b'E')) {
            None => (bytes, None),
            Some(at) => (&bytes[..at], Some(str::from_utf8(&bytes[at + 1..]).ok()?)),
        };
        let (whole, fraction) = match memchr::memchr(b'.', mantissa) {
            None => (mantissa, &[][..]),
            Some(at) => (&mantissa[..at], &mantissa[at + 1..]),
        };
        let are_digits = |digits: &[u8]| digits.iter().all(u8::is_ascii_digit);
        if whole.len() + fraction.len() == 0 || !are_digits(whole) || !are_digits(fraction) {
            return None;
        }
        let zeros = |digits: &[u8]| digits.iter().take_while(|b| **b == b'0').count();
        let (mut first, mut second) = (&whole[zeros(whole)..], fraction);
        let mut point = first.len() as i64;
        if first.is_empty() {
            let leading = zeros(fraction);
            point = -(leading as i64);
            (first, second) = (&fraction[leading..], &[]);
        }
        let trimmed = |digits: &'a [u8]| {
            let zeros = digits.iter().rev().take_while(|b| **b == b'0').count();
            &digits[..digits.len() - zeros]
        };
        second = trimmed(second);
        if second.is_empty() {
            first = trimmed(first);
        }
        let exponent = exponent.map(|exponent| {
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            let fine = !digits.is_empty() && are_digits(digits.as_bytes());
            fine.then(|| exponent.parse::<i32>().ok())
        });
        let exponent = match exponent {
            None => 0,
            // Zero has any.
            Some(Some(_)) if first.is_empty() => 0,
            Some(exponent) => i64::from(exponent.flatten()?),
        };
        let zero = first.is_empty();
        Some(Exact {
            negative: negative && !zero,
            first,
            second,
            point: if zero { 0 } else { point + exponent },
        })
    }

    fn digits(&self) -> impl Iterator<Item = u8> + 'a {
        self.first.iter().chain(self.second).copied()
    }

    fn is_zero(&self) -> bool {
        self.first.is_empty()
    }

    /// How many digits there are from the first to the last that is no zero.
    pub fn significant(&self) -> usize {
        self.first.len() + self.second.len()
    }

    /// How many digits there are before the point.
    pub fn whole(&self) -> i64 {
        self.point.max(0)
    }

    /// How many digits there are after the point.
    pub fn fraction(&self) -> i64 {
        (self.significant() as i64 - self.point).max(0)
    }

    /// The greatest number with so many digits after the point that is not greater, as digits
    /// without an exponent. For numbers of a few digits before the point.
    pub fn floor(&self, places: usize) -> String {
        let keep = usize::try_from(self.point + places as i64).unwrap_or(0);
        let mut digits: Vec<u8> = self.digits().take(keep).collect();
        digits.resize(keep, b'0');
        let cut = self.fraction() > places as i64;
        if cut && self.negative {
            // Away from zero.
            match digits.iter().rposition(|b| *b != b'9') {
                Some(at) => {
                    digits[at] += 1;
                    digits[at + 1..].fill(b'0');
                }
                None => {
                    digits.fill(b'0');
                    digits.insert(0, b'1');
                }
            }
        }
        let missing = (places + 1).saturating_sub(digits.len());
        digits.splice(..0, std::iter::repeat_n(b'0', missing));
        let mut text = String::from_utf8(digits).expect("digits");
        if places > 0 {
            text.insert(text.len() - places, '.');
        }
        if self.negative {
            text.insert(0, '-');
        }
        text
    }
}

impl PartialEq for Exact<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Exact<'_> {}

impl PartialOrd for Exact<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Exact<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |n: &Self| match (n.is_zero(), n.negative) {
            (true, _) => 0,
            (_, true) => -1,
            _ => 1,
        };
        let size = || self.point.cmp(&other.point).then_with(|| self.digits().cmp(other.digits()));
        sign(self).cmp(&sign(other)).then_with(|| match sign(self) {
            0 => Ordering::Equal,
            1 => size(),
            _ => size().reverse(),
        })
    }
}

/// Which of two numbers is less, whatever kinds they are of; none where one is no number.
pub fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    let infinite = |value: &Value| match value {
        Value::Float(v) if v.is_infinite() => Some(if *v > 0.0 { 1 } else { -1 }),
        _ => None,
    };
    match (infinite(a), infinite(b)) {
        (None, None) => {}
        (Some(_), None) | (None, Some(_)) if !is_number(a) || !is_number(b) => return None,
        (a, b) => return Some(a.unwrap_or(0).cmp(&b.unwrap_or(0))),
    }
    let (a, b) = (digits(a)?, digits(b)?);
    Some(Exact::read(&a)?.cmp(&Exact::read(&b)?))
}

/// Whether a value is a number: no NaN, of a float or of a decimal.
pub fn is_number(value: &Value) -> bool {
    match value {
        Value::Int(_) => true,
        Value::Float(v) => !v.is_nan(),
        Value::BigInt(text) | Value::Decimal(text) => Exact::read(text).is_some(),
        _ => false,
    }
}

/// The digits of a finite number, perhaps with an exponent.
pub fn digits(value: &Value) -> Option<Cow<'_, str>> {
    Some(match value {
        Value::Int(n) => Cow::Owned(n.to_string()),
        Value::Float(v) if v.is_finite() => Cow::Owned(of_float(*v)),
        Value::BigInt(text) | Value::Decimal(text) => Cow::Borrowed(text),
        _ => return None,
    })
}

/// 2^64: whole floats below are compared with whole numbers of 64 bits.
const BEYOND: f64 = 18_446_744_073_709_551_616.0;

/// The digits that a finite float stands for.
fn of_float(v: f64) -> String {
    match v.fract() == 0.0 && v.abs() < BEYOND {
        true => format!("{v:.0}"),
        false => zmij::Buffer::new().format_finite(v).to_owned(),
    }
}

/// The value of a number in JSON: a float where that says the same number, else a decimal; a whole
/// number, written without point and exponent, stays one. None for what JSON does not call a number,
/// and for an exponent beyond 32 bits.
pub fn of_json(text: &str) -> Option<Value> {
    if !is_json(text) {
        return None;
    }
    if is_whole(text) {
        return Some(match text {
            "-0" => Value::Float(-0.0),
            text => text.parse().map_or_else(|_| Value::BigInt(text.into()), Value::Int),
        });
    }
    match rounds(text) {
        false => text.parse().ok().map(Value::Float),
        true => Exact::read(text).map(|_| Value::Decimal(text.into())),
    }
}

/// Whether a number in JSON is another one as a float; or, written as a whole number, beyond 64 bits.
pub fn rounds(text: &str) -> bool {
    if is_whole(text) {
        return text.parse::<i64>().is_err() && text.parse::<u64>().is_err();
    }
    let Some(exact) = Exact::read(text) else { return true };
    match text.parse::<f64>() {
        Ok(v) if v.is_finite() => {
            let mut buffer = zmij::Buffer::new();
            Exact::read(buffer.format_finite(v)) != Some(exact)
        }
        _ => true,
    }
}

fn is_whole(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit() || b == b'-')
}

/// Whether JSON spells a number so.
pub fn is_json(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let text = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => {
            (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)))
        }
        None => (text, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Value {
        Value::Decimal(text.into())
    }

    fn big(text: &str) -> Value {
        Value::BigInt(text.into())
    }

    /// In order, those in one line being equal.
    fn ascending() -> Vec<Vec<Value>> {
        vec![
            vec![Value::Float(f64::NEG_INFINITY)],
            vec![decimal("-1e400")],
            vec![Value::Float(f64::MIN)],
            vec![big("-9223372036854775809")],
            vec![Value::Int(i64::MIN), Value::Float(i64::MIN as f64), big("-9223372036854775808")],
            vec![decimal("-0.10000000000000000001")],
            vec![Value::Float(-0.1), decimal("-1e-1")],
            vec![decimal("-1e-400")],
            vec![Value::Int(0), Value::Float(-0.0), Value::Float(0.0), decimal("-0.00"), big("-0")],
            vec![decimal("1e-400")],
            vec![Value::Float(5e-324), decimal("5e-324")],
            vec![decimal("0.09999999999999999999")],
            vec![Value::Float(0.1), decimal("0.10"), decimal(".1"), decimal("1E-1")],
            vec![decimal("0.1000000000000000055511151231257827")],
            vec![Value::Int(1), Value::Float(1.0), decimal("+1.0"), decimal("0.01e2")],
            vec![Value::Float(1.5), decimal("1.50"), decimal("15e-1")],
            vec![Value::Int(1 << 53), Value::Float((1i64 << 53) as f64)],
            vec![Value::Int((1 << 53) + 1), decimal("9007199254740993")],
            vec![decimal("9007199254740993.5")],
            vec![Value::Int(i64::MAX), decimal("9223372036854775807.0")],
            vec![big("9223372036854775808"), Value::Float(9_223_372_036_854_775_808.0)],
            vec![big("9223372036854775809")],
            vec![big("18446744073709551615")],
            vec![big("18446744073709551616")],
            vec![Value::Float(18_446_744_073_709_551_616.0), big("18446744073709552000")],
            vec![Value::Float(1e23), big("100000000000000000000000"), decimal("1e23")],
            vec![Value::Float(f64::MAX)],
            vec![decimal("1e400"), decimal("10.0e399")],
            vec![decimal("1.1e400")],
            vec![Value::Float(f64::INFINITY)],
        ]
    }

    #[test]
    fn numbers_of_all_kinds_are_in_one_order() {
        let all = ascending();
        for (i, ours) in all.iter().enumerate() {
            for (j, others) in all.iter().enumerate() {
                for a in ours {
                    for b in others {
                        assert_eq!(compare(a, b), Some(i.cmp(&j)), "{a:?} {b:?}");
                    }
                }
            }
        }
        for odd in [decimal("NaN"), decimal(""), big("-"), decimal("1e"), decimal("1e99999999999")]
        {
            assert_eq!(compare(&odd, &Value::Int(1)), None, "{odd:?}");
            assert_eq!(compare(&Value::Float(f64::INFINITY), &odd), None, "{odd:?}");
        }
        assert_eq!(compare(&Value::Float(f64::NAN), &Value::Int(1)), None);
    }

    #[test]
    fn what_json_says_is_kept_as_what_it_is() {
        for (text, want) in [
            ("0", Value::Int(0)),
            ("-0", Value::Float(-0.0)),
            ("-0.0", Value::Float(-0.0)),
            ("0e400", Value::Float(0.0)),
            ("9223372036854775807", Value::Int(i64::MAX)),
            ("-9223372036854775808", Value::Int(i64::MIN)),
            ("9223372036854775808", big("9223372036854775808")),
            ("-9223372036854775809", big("-9223372036854775809")),
            ("100000000000000000000", big("100000000000000000000")),
            ("1e20", Value::Float(1e20)),
            ("0.1", Value::Float(0.1)),
            ("1.50", Value::Float(1.5)),
            ("0.30000000000000004", Value::Float(0.1 + 0.2)),
            ("0.10000000000000001", decimal("0.10000000000000001")),
            ("9007199254740993.0", decimal("9007199254740993.0")),
            ("5e-324", Value::Float(5e-324)),
            ("4.9e-324", decimal("4.9e-324")),
            ("1e400", decimal("1e400")),
            ("-1E-400", decimal("-1E-400")),
        ] {
            assert_eq!(of_json(text), Some(want), "{text}");
        }
        for text in
            ["", "-", "+1", ".5", "5.", "01", "1e", "1e+", "NaN", "0x1", "1 ", "1e9999999999"]
        {
            assert_eq!(of_json(text), None, "{text}");
        }
    }

    #[test]
    fn floors() {
        for (text, places, want) in [
            ("1.5", 0, "1"),
            ("-1.5", 0, "-2"),
            ("-0.5", 0, "-1"),
            ("0.5", 0, "0"),
            ("-9.99", 1, "-10.0"),
            ("0.001", 2, "0.00"),
            ("-0.001", 2, "-0.01"),
            ("12e3", 0, "12000"),
            ("1.25", 2, "1.25"),
            ("-1.25", 3, "-1.250"),
            ("0", 2, "0.00"),
        ] {
            assert_eq!(Exact::read(text).unwrap().floor(places), want, "{text} {places}");
        }
    }
}
