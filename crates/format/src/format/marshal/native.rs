//! Floats, times and decimals between Ruby's own bytes and ours.

use std::io::Write;

use crate::{
    format::objects::calendar::{date, days},
    record::Time,
};

/// The number of a Float's digits, as Ruby writes them.
pub(super) fn float(digits: &[u8]) -> Option<f64> {
    match digits {
        b"nan" => Some(f64::NAN),
        b"inf" => Some(f64::INFINITY),
        b"-inf" => Some(f64::NEG_INFINITY),
        // Small whole numbers are most of what there is.
        [d] if d.is_ascii_digit() => Some(f64::from(d - b'0')),
        _ => {
            let numeric =
                digits.iter().all(|b| matches!(b, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e'));
            std::str::from_utf8(digits).ok().filter(|_| numeric)?.parse().ok()
        }
    }
}

/// A Float's digits: the fewest that tell it from all others, laid out as Ruby does.
pub(super) fn write_float(v: f64, out: &mut Vec<u8>) {
    if v.is_nan() {
        return out.extend_from_slice(b"nan");
    }
    if v.is_sign_negative() {
        out.push(b'-');
    }
    if v.is_infinite() {
        return out.extend_from_slice(b"inf");
    }
    if v == 0.0 {
        return out.push(b'0');
    }
    // `{:e}` writes the fewest digits too, as d.ddde-N: at most 24 bytes.
    let mut room = [0; 32];
    let mut rest = &mut room[..];
    write!(rest, "{:e}", v.abs()).expect("a float of at most 24 bytes");
    let left = rest.len();
    let shortest = &room[..room.len() - left];
    let e = shortest.iter().position(|&b| b == b'e').unwrap_or(shortest.len());
    let exponent = std::str::from_utf8(&shortest[e..]).unwrap_or_default();
    let exponent: i32 = exponent.trim_start_matches('e').parse().unwrap_or(0);
    let mut digits = [0; 24];
    let mut len = 0;
    for &digit in shortest[..e].iter().filter(|b| **b != b'.') {
        digits[len] = digit;
        len += 1;
    }
    let digits = &digits[..len];
    // Where the point stands, counted from before the first digit.
    let point = exponent + 1;
    if point < -3 || point > digits.len() as i32 {
        out.push(digits[0]);
        if digits.len() > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        out.extend_from_slice(&shortest[e..]);
    } else if point > 0 {
        let (whole, fraction) = digits.split_at(point as usize);
        out.extend_from_slice(whole);
        if !fraction.is_empty() {
            out.push(b'.');
            out.extend_from_slice(fraction);
        }
    } else {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', point.unsigned_abs() as usize));
        out.extend_from_slice(digits);
    }
}

/// What a Time dumps itself to: 8 bytes, then, for a year before 1900 or after 67435, how many
/// years away. `nanos` are the nanoseconds after the microseconds, as a fraction.
pub(super) fn read_time(dump: &[u8], nanos: (Option<i128>, Option<i128>)) -> Option<Time> {
    let (fields, far) = dump.split_first_chunk::<8>()?;
    let fields = u64::from_le_bytes(*fields);
    let (date, clock) = (fields as u32, (fields >> 32) as u32);
    if date >> 31 == 0 {
        // As Ruby 1.8 wrote it: seconds and microseconds.
        return Time::from_unix(i64::from(date as i32), clock.checked_mul(1000)?).ok();
    }
    let mut year = i64::from(date >> 14 & 0xffff) + 1900;
    if let [size, rest @ ..] = far {
        let size = usize::from(size.checked_sub(5)?);
        let mut wide = [0; 8];
        wide.get_mut(..size)?.copy_from_slice(rest.get(..size)?);
        let away = i64::try_from(u64::from_le_bytes(wide)).ok()?;
        year = if year == 1900 { year.checked_sub(away)? } else { year.checked_add(away)? };
    }
    let month = i64::from(date >> 10 & 15) + 1;
    let (day, hour) = (i64::from(date >> 5 & 31), i64::from(date & 31));
    let (minute, second) = (i64::from(clock >> 26), i64::from(clock >> 20 & 63));
    let micros = clock & 0xf_ffff;
    if !(-9999..=9999).contains(&year) || month > 12 || day == 0 || micros > 999_999 {
        return None;
    }
    let seconds = ((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    let (over, under) = (nanos.0?, nanos.1?);
    let nanos = over.checked_div(under).filter(|n| (0..1000).contains(n))?;
    Time::from_unix(seconds, micros * 1000 + nanos as u32).ok()
}

/// What a Time in UTC dumps itself to, and the nanoseconds that go beside it.
pub(super) fn write_time(time: Time) -> (Vec<u8>, u32) {
    let (seconds, nanos) = time.to_unix();
    let (year, month, day) = date(seconds.div_euclid(86_400));
    let of_day = seconds.rem_euclid(86_400) as u32;
    // All times of ours are before the year 67436, so only the past can be far.
    let (near, away) = if year < 1900 { (1900, 1900 - year) } else { (year, 0) };
    let first = 1 << 31
        | 1 << 30
        | ((near - 1900) as u32) << 14
        | (month as u32 - 1) << 10
        | (day as u32) << 5
        | (of_day / 3600);
    let second = (of_day / 60 % 60) << 26 | (of_day % 60) << 20 | (nanos / 1000);
    let mut dump = Vec::with_capacity(12);
    dump.extend_from_slice(&first.to_le_bytes());
    dump.extend_from_slice(&second.to_le_bytes());
    if away > 0 {
        let size = if away > 255 { 2 } else { 1 };
        dump.push(size + 5);
        dump.extend_from_slice(&(away as u16).to_le_bytes()[..usize::from(size)]);
    }
    (dump, nanos % 1000)
}

/// What a BigDecimal dumps itself to, as a decimal.
///
/// It is a precision, `:`, and digits. Ruby writes digits as `0.ddde±N`; they are laid out as
/// people write them. After the precision 0, which only we write, they are kept as they are.
pub(super) fn read_decimal(class: &[u8], dump: &[u8]) -> Option<String> {
    if class != b"BigDecimal" {
        return None;
    }
    let (precision, digits) = std::str::from_utf8(dump).ok()?.split_once(':')?;
    if !is_decimal(digits) || !precision.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    if precision == "0" {
        return Some(digits.to_owned());
    }
    Some(laid_out(digits).unwrap_or_else(|| digits.to_owned()))
}

/// Digits written `0.ddde±N` with their point in its place, or with one digit before it where
/// that would take many zeros; none for other digits.
fn laid_out(digits: &str) -> Option<String> {
    let (sign, plain) = match digits.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", digits),
    };
    let (digits, exponent) = plain.strip_prefix("0.")?.split_once('e')?;
    let point: i64 = exponent.parse().ok()?;
    if digits.is_empty() {
        return None;
    }
    let len = digits.len() as i64;
    Some(match point {
        _ if point > len + 20 || point < -6 => {
            let (first, rest) = digits.split_at(1);
            let dot = if rest.is_empty() { "" } else { "." };
            format!("{sign}{first}{dot}{rest}e{}", point.checked_sub(1)?)
        }
        _ if point >= len => format!("{sign}{digits}{}", "0".repeat((point - len) as usize)),
        1.. => {
            let (whole, fraction) = digits.split_at(point as usize);
            format!("{sign}{whole}.{fraction}")
        }
        _ => format!("{sign}0.{}{digits}", "0".repeat(point.unsigned_abs() as usize)),
    })
}

/// True for what Ruby's BigDecimal takes for a number: digits with an optional sign, point and
/// exponent.
pub(super) fn is_decimal(text: &str) -> bool {
    if matches!(text, "NaN" | "Infinity" | "-Infinity") {
        return true;
    }
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (digits, exponent) = match text.split_once(['e', 'E']) {
        Some((digits, exponent)) => (digits, Some(exponent)),
        None => (text, None),
    };
    let all_digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let sound = match digits.split_once('.') {
        Some((whole, fraction)) => all_digits(whole) && all_digits(fraction),
        None => all_digits(digits),
    };
    sound && exponent.is_none_or(|e| all_digits(e.strip_prefix(['-', '+']).unwrap_or(e)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_agree() {
        assert_eq!(days(1970, 1, 1), 0);
        assert_eq!(days(2000, 3, 1), 11_017);
        assert_eq!(date(-1), (1969, 12, 31));
        for day in (-4_400_000..3_000_000).step_by(97) {
            let (y, m, d) = date(day);
            assert_eq!(days(y, m, d), day, "{y}-{m}-{d}");
            assert!((1..=12).contains(&m) && (1..=31).contains(&d));
        }
    }

    #[test]
    fn times_there_and_back() {
        for text in [
            "2020-02-29T23:59:59.123456789Z",
            "1899-12-31T00:00:00Z",
            "-009999-01-03T01:02:03Z",
            "9999-12-30T22:00:00.999999999Z",
            "1644-01-01T00:00:00Z",
            "1645-01-01T00:00:00Z",
        ] {
            let time: Time = text.parse().unwrap();
            let (dump, nanos) = write_time(time);
            assert_eq!(read_time(&dump, (Some(nanos.into()), Some(1))), Some(time), "{text}");
        }
    }

    #[test]
    fn odd_times_are_none() {
        let sound = [0x20, 0x80, 0x11, 0xc0, 0, 0, 0, 0];
        assert!(read_time(&sound, (Some(0), Some(1))).is_some());
        assert_eq!(read_time(&sound, (Some(0), Some(0))), None);
        assert_eq!(read_time(&sound, (Some(i128::MAX), Some(1))), None);
        assert_eq!(read_time(&sound[..7], (Some(0), Some(1))), None);
        for far in [
            &[0][..],
            &[7, 1],
            &[14, 1, 1, 1, 1, 1, 1, 1, 1, 1],
            &[13, 255, 255, 255, 255, 255, 255, 255, 255],
        ] {
            assert_eq!(read_time(&[&sound[..], far].concat(), (Some(0), Some(1))), None, "{far:?}");
        }
    }

    #[test]
    fn floats_as_ruby_lays_them_out() {
        for (v, want) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (100.0, "1e2"),
            (123.0, "123"),
            (1234.5, "1234.5"),
            (0.1, "0.1"),
            (0.0001, "0.0001"),
            (0.00001, "1e-5"),
            (1.5e300, "1.5e300"),
            (f64::MAX, "1.7976931348623157e308"),
            (5e-324, "5e-324"),
            (f64::NAN, "nan"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            let mut out = Vec::new();
            write_float(v, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), want);
            assert_eq!(float(&out).unwrap().to_bits(), v.to_bits());
        }
        for text in ["", "1.5x", "infinity", "NaN", " 1", "1\n", "e"] {
            assert_eq!(float(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn decimals_are_laid_out_for_people() {
        for (ruby, ours) in [
            ("18:0.15e1", "1.5"),
            ("18:-0.123e33", "-1.23e32"),
            ("9:0.1e-2", "0.001"),
            ("9:0.5e0", "0.5"),
            ("9:0.1e1", "1"),
            ("9:0.12e4", "1200"),
            ("9:0.1e-400", "1e-401"),
            ("9:0.12e100", "1.2e99"),
            ("9:NaN", "NaN"),
            ("18:-0.0", "-0.0"),
            ("0:0.15e1", "0.15e1"),
            ("0:1.50", "1.50"),
        ] {
            assert_eq!(
                read_decimal(b"BigDecimal", ruby.as_bytes()).as_deref(),
                Some(ours),
                "{ruby}"
            );
        }
        for dump in ["1.5", "9:", "9:x", "a:1", "9:1.", "9:.5"] {
            assert_eq!(read_decimal(b"BigDecimal", dump.as_bytes()), None, "{dump}");
        }
    }
}
