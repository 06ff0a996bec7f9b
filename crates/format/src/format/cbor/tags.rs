//! Times, big numbers and decimals under their tags.
//!
//! A tag is passed over where what follows is the value all the same (a hint, a kind of text), or is no
//! less than what stands in the file. Where it would be another value (the parts of a number, the number of a
//! value that stands elsewhere), it is read for what it is or refused, at the tag: never passed over.

use dashu_int::{IBig, UBig};

use super::{BYTES, Cbor, LIST, MAP, NEGATIVE, TAG, TEXT, put};
use crate::{
    Error, Result,
    format::{
        heads::{Head, Heads, Reader},
        objects::whole::{Whole, magnitude_of},
    },
    record::{
        Time,
        native::{BIGINT, DECIMAL, TIME},
    },
};

/// RFC 3339 text.
const TIME_TEXT: u64 = 0;
/// Seconds since 1970, whole or not.
const TIME_SECONDS: u64 = 1;
/// A number by its bytes, big end first.
const BIG: u64 = 2;
/// A negative one: -1 less that number.
const BIG_NEGATIVE: u64 = 3;
/// A list of a power of ten and what is multiplied by it.
const DECIMAL_FRACTION: u64 = 4;
/// The same with a power of two.
const BIGFLOAT: u64 = 5;
/// The same two with exponents of any size.
const DECIMAL_FRACTION_ANY: u64 = 264;
const BIGFLOAT_ANY: u64 = 265;

/// What stands for another value, or is a number in parts that no decimal is: alone it would be read as
/// something else.
const REFUSED: [(u64, &str); 6] = [
    (25, "a reference to a text elsewhere"),
    (29, "a reference to a value elsewhere"),
    (30, "a fraction of two numbers"),
    (268, "an extended decimal fraction"),
    (269, "an extended bigfloat"),
    (270, "an extended fraction of two numbers"),
];

/// A map of seconds (1) and parts of a second (RFC 9581), for years that RFC 3339 has not.
const TIME_EXTENDED: u64 = 1001;
/// The key of nanoseconds there; of micro- and milliseconds -6 and -3.
const NANOSECONDS: i64 = -9;

/// Seconds from 1970 to the beginning of the year 0.
const YEAR_0: i64 = -62_167_219_200;

/// Digits that an exponent may stand away from its number: no more zeros are ever spelled out.
const FAR: i64 = 1 << 31;

/// A power of two has more digits than bytes that say it. In all, a record may have this many times its bytes,
/// [`FEW`] in a small one; a number by itself [`MOST`].
const DIGITS_PER_BYTE: usize = 32;
/// Enough for any float of 64 bits.
const FEW: usize = 2048;
const MOST: usize = 1 << 20;

/// Appends a value that travels under `name` with this text; false where it has no form here.
pub(super) fn write(name: &'static str, text: &str, out: &mut Vec<u8>) -> Result<bool> {
    match name {
        TIME => {
            let (seconds, nanos) = text.parse::<Time>()?.to_unix();
            if seconds < YEAR_0 {
                put(TAG, TIME_EXTENDED, out);
                put(MAP, 2, out);
                Cbor::put_int(1, out);
                Cbor::put_int(seconds, out);
                Cbor::put_int(NANOSECONDS, out);
                Cbor::put_uint(nanos.into(), out);
                return Ok(true);
            }
            put(TAG, TIME_TEXT, out);
            Cbor::TEXT.put(text.len(), out)?;
            out.extend_from_slice(text.as_bytes());
        }
        BIGINT => {
            let (negative, magnitude) = magnitude_of(text)?;
            whole(negative, magnitude, out);
        }
        DECIMAL => {
            let Some((negative, digits, exponent)) = parts(text) else { return Ok(false) };
            let (_, magnitude) = magnitude_of(&digits)?;
            put(TAG, DECIMAL_FRACTION, out);
            put(LIST, 2, out);
            Cbor::put_int(exponent, out);
            whole(negative, magnitude, out);
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// A whole number of any size, given its magnitude, least significant byte first.
fn whole(negative: bool, mut magnitude: Vec<u8>, out: &mut Vec<u8>) {
    let zero = magnitude.iter().all(|b| *b == 0);
    let negative = negative && !zero;
    if negative {
        // -1 - n: one less.
        for byte in &mut magnitude {
            let (less, borrowed) = byte.overflowing_sub(1);
            *byte = less;
            if !borrowed {
                break;
            }
        }
    }
    while magnitude.last() == Some(&0) {
        magnitude.pop();
    }
    if magnitude.len() <= 8 {
        let mut wide = [0; 8];
        wide[..magnitude.len()].copy_from_slice(&magnitude);
        return put(if negative { NEGATIVE } else { 0 }, u64::from_le_bytes(wide), out);
    }
    put(TAG, if negative { BIG_NEGATIVE } else { BIG }, out);
    put(BYTES, magnitude.len() as u64, out);
    out.extend(magnitude.iter().rev());
}

/// Sign, digits and the power of ten of a decimal; none where it is no number.
fn parts(text: &str) -> Option<(bool, String, i64)> {
    let (negative, plain) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = match plain.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (plain, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let exponent = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?;
    Some((negative, digits, exponent)).filter(|_| exponent.unsigned_abs() < FAR.unsigned_abs())
}

/// How many zeros may stand behind the point before the first digit of a decimal that is spelled
/// plainly, as databases do.
const ZEROS: i64 = 40;

/// A decimal, plainly where the point is near, else with an exponent.
fn spelled(digits: &str, exponent: i64) -> String {
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", digits),
    };
    let len = digits.len() as i64;
    // The power of ten of the first digit.
    let leading = exponent + len - 1;
    if exponent == 0 {
        return format!("{sign}{digits}");
    }
    if exponent < 0 && leading >= -ZEROS {
        let point = len + exponent;
        return match usize::try_from(point) {
            Ok(point @ 1..) => format!("{sign}{}.{}", &digits[..point], &digits[point..]),
            _ => format!("{sign}0.{}{digits}", "0".repeat(point.unsigned_abs() as usize)),
        };
    }
    let (first, more) = digits.split_at(1);
    let point = if more.is_empty() { "" } else { "." };
    format!("{sign}{first}{point}{more}E{leading:+}")
}

/// The value of its own kind that the tag at `at` and what follows it are; none where the tag is passed over, and
/// then nothing after it is taken.
pub(super) fn read<'de>(
    tag: u64,
    at: usize,
    reader: &mut Reader<'de, Cbor>,
) -> Result<Option<Head<'de>>> {
    let wrong = |what: &str| Error::malformed(format!("tag {tag}, {what}")).at(at as u64);
    match tag {
        BIG | BIG_NEGATIVE => {
            let read = match kind(reader)? {
                BYTES => big(tag, reader)?,
                _ => None,
            };
            let wrong = || wrong("a whole number by its bytes, before something else than bytes");
            return read.map(|whole| Some(Head::Whole(whole))).ok_or_else(wrong);
        }
        DECIMAL_FRACTION | BIGFLOAT | DECIMAL_FRACTION_ANY | BIGFLOAT_ANY => {
            let Some((exponent, digits)) = exponent_and_digits(reader)? else {
                let what = "a decimal or a bigfloat, before something else than a list of two whole numbers";
                return Err(wrong(what));
            };
            let exponent = match exponent {
                Whole::I64(exponent) if exponent.unsigned_abs() < FAR.unsigned_abs() => exponent,
                _ => {
                    return Err(wrong(
                        "with an exponent beyond 2,147,483,647: no number has it here",
                    ));
                }
            };
            let digits = digits.into_digits();
            let text = match tag {
                DECIMAL_FRACTION | DECIMAL_FRACTION_ANY => spelled(&digits, exponent),
                _ => bigfloat(&digits, exponent, at, reader).ok_or_else(|| {
                    wrong("a power of two with too many digits for the bytes of the record")
                })?,
            };
            return Ok(Some(Head::Native(DECIMAL, text)));
        }
        _ => (),
    }
    if let Some((_, what)) = REFUSED.iter().find(|(refused, _)| *refused == tag) {
        return Err(wrong(&format!("{what}: not supported")));
    }
    let before = reader.pos();
    let read = match (tag, reader.peek().map(|b| b & 0xe0)) {
        // Text or a number in one head, not under more tags, which could go on for ever.
        (TIME_TEXT, Some(TEXT)) => match Cbor::head(reader)? {
            Head::Text(text) => std::str::from_utf8(text)
                .ok()
                .and_then(|text| text.parse::<Time>().ok())
                .map(Head::Time),
            _ => None,
        },
        (TIME_SECONDS, Some(0 | NEGATIVE | 0xe0)) => match Cbor::head(reader)? {
            Head::Whole(Whole::I64(seconds)) => Time::from_unix(seconds, 0).ok(),
            Head::Float(seconds) => of_float(seconds),
            _ => None,
        }
        .map(Head::Time),
        (TIME_EXTENDED, Some(MAP)) => extended(reader)?.map(Head::Time),
        _ => return Ok(None),
    };
    if read.is_none() {
        reader.back_to(before);
    }
    Ok(read)
}

/// A time in seconds: what the float is exactly, to the nearest microsecond, as those who write it
/// have no more.
fn of_float(seconds: f64) -> Option<Time> {
    if seconds.abs() >= 1e12 || seconds.is_nan() {
        return None;
    }
    let whole = seconds.floor();
    let micros = ((seconds - whole) * 1e6).round() as u32;
    Time::from_unix(whole as i64 + i64::from(micros / 1_000_000), micros % 1_000_000 * 1000).ok()
}

/// The time in a map of seconds and, where there are any, parts of a second.
fn extended(reader: &mut Reader<'_, Cbor>) -> Result<Option<Time>> {
    let Head::Map(Some(pairs @ 1..=2)) = Cbor::head(reader)? else { return Ok(None) };
    let (mut seconds, mut nanos) = (None, 0);
    for _ in 0..pairs {
        let (Some(Whole::I64(key)), Some(Whole::I64(value))) = (number(reader)?, number(reader)?)
        else {
            return Ok(None);
        };
        let unit = match key {
            1 => {
                seconds = Some(value);
                continue;
            }
            -3 => 1_000_000,
            -6 => 1_000,
            NANOSECONDS => 1,
            _ => return Ok(None),
        };
        match u32::try_from(value).ok().and_then(|v| v.checked_mul(unit)) {
            Some(parts @ ..1_000_000_000) => nanos = parts,
            _ => return Ok(None),
        }
    }
    Ok(seconds.and_then(|seconds| Time::from_unix(seconds, nanos).ok()))
}

/// The number of tag 2 or 3, by its bytes.
fn big(tag: u64, reader: &mut Reader<'_, Cbor>) -> Result<Option<Whole>> {
    /// Its digits take time with the square of its bytes: 16 KiB are 39,457 digits.
    const LONGEST: usize = 16 << 10;
    let mut bytes = match Cbor::head(reader)? {
        Head::Bytes(bytes) => bytes.to_vec(),
        Head::Joined { bytes, .. } => bytes,
        _ => return Ok(None),
    };
    if bytes.len() > LONGEST {
        let what = format!("tag {tag}, a whole number of more than {LONGEST} bytes");
        return Err(Error::unsupported(what));
    }
    bytes.reverse();
    if tag == BIG_NEGATIVE {
        // -1 - n: one more.
        bytes.push(0);
        for byte in &mut bytes {
            let (more, carried) = byte.overflowing_add(1);
            *byte = more;
            if !carried {
                break;
            }
        }
    }
    Ok(Some(Whole::from_magnitude(tag == BIG_NEGATIVE, &bytes)))
}

/// The two whole numbers in a list of exponent and digits; none where that is not what is there.
fn exponent_and_digits(reader: &mut Reader<'_, Cbor>) -> Result<Option<(Whole, Whole)>> {
    // Looked at first: a head of anything else could have more tags before it, without end.
    if kind(reader)? != LIST {
        return Ok(None);
    }
    let Head::List(count @ (Some(2) | None)) = Cbor::head(reader)? else { return Ok(None) };
    let (Some(exponent), Some(digits)) = (number(reader)?, number(reader)?) else {
        return Ok(None);
    };
    if count.is_none() && reader.byte()? != 0xff {
        return Ok(None);
    }
    Ok(Some((exponent, digits)))
}

/// `digits` times so many twos, all digits of it; none where those are too many.
fn bigfloat(
    digits: &str,
    exponent: i64,
    at: usize,
    reader: &mut Reader<'_, Cbor>,
) -> Option<String> {
    let number = digits.parse::<IBig>().ok()?;
    let twos = i64::try_from(number.trailing_zeros().unwrap_or(0)).ok()?;
    // Twos that are in it already are taken out of it, so that 1 is 1 however it is written.
    let out = if exponent < 0 { twos.min(-exponent) } else { 0 };
    let (number, exponent) = (number >> out as usize, exponent + out);
    if number == IBig::ZERO {
        return Some("0".into());
    }
    let power = usize::try_from(exponent.unsigned_abs()).ok()?;
    // Digits of a power of five, no fewer than of one of two.
    let more = power.checked_mul(7)? / 10 + 1;
    let budget = (reader.size() * DIGITS_PER_BYTE).max(FEW);
    if more > MOST || !reader.spend(at, more, budget) {
        return None;
    }
    match exponent {
        0.. => Some(spelled(&(number << power).to_string(), 0)),
        _ => {
            Some(spelled(&(number * IBig::from(UBig::from(5u8).pow(power))).to_string(), exponent))
        }
    }
}

/// The major type of what comes next; an error where nothing does.
fn kind(reader: &mut Reader<'_, Cbor>) -> Result<u8> {
    match reader.peek() {
        Some(first) => Ok(first & 0xe0),
        None => reader.byte(),
    }
}

/// A whole number of any size, if one comes.
fn number(reader: &mut Reader<'_, Cbor>) -> Result<Option<Whole>> {
    match reader.peek() {
        Some(first) if first & 0xc0 == 0 => match Cbor::head(reader)? {
            Head::Whole(whole) => Ok(Some(whole)),
            _ => Ok(None),
        },
        Some(first) if first & 0xfe == TAG | 2 => {
            reader.byte()?;
            match reader.peek().map(|b| b & 0xe0) {
                Some(BYTES) => big(u64::from(first & 0x1f), reader),
                _ => Ok(None),
            }
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_spelled_plainly_where_the_point_is_near() {
        for (text, want) in [
            ("0", "0"),
            ("1.50", "1.50"),
            ("-0.001", "-0.001"),
            ("0.0000001", "0.0000001"),
            ("12e-60", "1.2E-59"),
            ("0.000001", "0.000001"),
            ("12e3", "1.2E+4"),
            ("-1E+5", "-1E+5"),
            ("+7", "7"),
            ("0.00", "0.00"),
            (".5", "0.5"),
            ("5.", "5"),
        ] {
            let (negative, digits, exponent) = parts(text).unwrap();
            let digits = digits.trim_start_matches('0');
            let digits = if digits.is_empty() { "0" } else { digits };
            let sign = if negative { "-" } else { "" };
            assert_eq!(spelled(&format!("{sign}{digits}"), exponent), want, "{text}");
        }
        for text in ["", "-", ".", "e5", "NaN", "Infinity", "1e", "1e99999999999999999999", "1 "] {
            assert_eq!(parts(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_float_of_seconds_is_a_time() {
        let at = |s: f64| of_float(s).unwrap().to_unix();
        assert_eq!(at(1.5), (1, 500_000_000));
        assert_eq!(at(-0.25), (-1, 750_000_000));
        assert_eq!(at(0.999_999_9), (1, 0));
        assert!([f64::NAN, f64::INFINITY, -1e300].iter().all(|s| of_float(*s).is_none()));
    }
}
