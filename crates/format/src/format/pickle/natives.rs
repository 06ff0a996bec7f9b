//! Times and decimals: the only calls in a pickle that are accepted.
//!
//! Python pickles a `datetime`, a `date` and a `Decimal` as calls of their classes, by name. The
//! classes of this list, called as Python itself writes it, are data, and are made here from their
//! arguments; nothing is looked up or called. Every other name is refused.

use serde::de::Visitor;

use crate::{
    Error, Result,
    format::objects::calendar::{date, days},
    record::{
        Time,
        native::{DECIMAL, Native},
    },
};

/// What may be called.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Maker {
    DateTime,
    Date,
    TimeZone,
    TimeDelta,
    Decimal,
}

/// By module and name.
const MAKERS: [(&[u8], &[u8], Maker); 5] = [
    (b"datetime", b"datetime", Maker::DateTime),
    (b"datetime", b"date", Maker::Date),
    (b"datetime", b"timezone", Maker::TimeZone),
    (b"datetime", b"timedelta", Maker::TimeDelta),
    (b"decimal", b"Decimal", Maker::Decimal),
];

/// What is called by this name; none for every name that is not on the list.
pub(super) fn find(module: &[u8], name: &[u8]) -> Option<Maker> {
    MAKERS.iter().find(|m| m.0 == module && m.1 == name).map(|m| m.2)
}

impl Maker {
    /// Its place on the list.
    pub(super) fn number(self) -> u32 {
        self as u32
    }

    /// The one at this place.
    pub(super) fn at(number: u32) -> Option<Maker> {
        MAKERS.get(number as usize).map(|m| m.2)
    }
}

/// An argument of a call, or what comes of one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Item<'a> {
    Text(&'a [u8]),
    Bytes(&'a [u8]),
    Int(i64),
    /// Microseconds since 1970, UTC.
    Time(i64),
    /// Microseconds since 1970 on a clock nobody knows the zone of.
    Naive(i64),
    /// Days since 1970.
    Date(i64),
    /// The digits of a decimal.
    Decimal(&'a [u8]),
    /// Microseconds.
    Delta(i64),
    /// Microseconds by which it is before UTC.
    Zone(i64),
    /// Anything else.
    Other,
}

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

/// What comes of calling `maker` with these arguments; none where Python would not have written
/// that.
pub(super) fn call<'a>(maker: Maker, arguments: &[Item<'a>]) -> Option<Item<'a>> {
    Some(match (maker, arguments) {
        (Maker::DateTime, [Item::Bytes(state)]) => Item::Naive(clock(state)?),
        (Maker::DateTime, [Item::Bytes(state), Item::Zone(away)]) => {
            Item::Time(clock(state)?.checked_sub(*away)?)
        }
        (Maker::Date, [Item::Bytes(state)]) => Item::Date(day(state)?),
        (Maker::TimeDelta, [Item::Int(days), Item::Int(seconds), Item::Int(micros)]) => {
            let rest = seconds.checked_mul(SECOND)?.checked_add(*micros)?;
            Item::Delta(days.checked_mul(DAY)?.checked_add(rest)?)
        }
        (Maker::TimeZone, [Item::Delta(away)] | [Item::Delta(away), Item::Text(_)])
            if away.checked_abs().is_some_and(|away| away < DAY) =>
        {
            Item::Zone(*away)
        }
        (Maker::Decimal, [Item::Text(digits)]) if is_decimal(digits) => Item::Decimal(digits),
        _ => return None,
    })
}

/// The day in the first four bytes: year, month, day.
fn day(state: &[u8]) -> Option<i64> {
    let &[high, low, month, day, ..] = state else { return None };
    let year = i64::from(u16::from_be_bytes([high, low]));
    // The month's first bit says which of two equal times it is when clocks are put back.
    let month = i64::from(month & 0x7f);
    let count = days(year, month, day.into());
    let known = (1..=9999).contains(&year) && (1..=12).contains(&month);
    (known && date(count) == (year, month, day.into())).then_some(count)
}

/// Microseconds since 1970 of the ten bytes of a `datetime`, on its own clock.
fn clock(state: &[u8]) -> Option<i64> {
    let &[_, _, _, _, hour, minute, second, a, b, c] = state else { return None };
    let micros = i64::from(u32::from_be_bytes([0, a, b, c]));
    if hour > 23 || minute > 59 || second > 59 || micros >= SECOND {
        return None;
    }
    let seconds = (i64::from(hour) * 60 + i64::from(minute)) * 60 + i64::from(second);
    Some(day(state)? * DAY + seconds * SECOND + micros)
}

/// Whether Python's `Decimal` could have spelled this.
pub(super) fn is_decimal(text: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(text) else { return false };
    let plain = text.strip_prefix(['-', '+']).unwrap_or(text);
    if let "NaN" | "sNaN" | "Infinity" = plain {
        return true;
    }
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let (mantissa, exponent) = match plain.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => {
            (mantissa, exponent.strip_prefix(['-', '+']).unwrap_or(exponent))
        }
        None => (plain, "0"),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    digits(whole)
        && digits(fraction)
        && digits(exponent)
        && !exponent.is_empty()
        && whole.len() + fraction.len() > 0
}

/// The moment of a [`Time`](Item::Time).
pub(super) fn time(micros: i64) -> Result<Time> {
    Time::from_unix(micros.div_euclid(SECOND), micros.rem_euclid(SECOND) as u32 * 1000)
}

/// Hands over what a call made.
///
/// # Errors
/// [`Unsupported`](crate::ErrorKind::Unsupported) for what is no value by itself.
pub(super) fn visit<'de, V: Visitor<'de>>(made: Item<'_>, visitor: V) -> Result<V::Value> {
    match made {
        Item::Time(micros) => visitor.visit_enum(Native::time(time(micros)?)),
        Item::Decimal(digits) => {
            visitor.visit_enum(Native::new(DECIMAL, String::from_utf8_lossy(digits).into_owned()))
        }
        Item::Naive(_) | Item::Date(_) => visitor.visit_string(text(made)?),
        _ => Err(Error::unsupported(
            "a class, a timedelta or a timezone by itself; only data is read: turn it into a \
             number or text in Python first",
        )),
    }
}

/// What a call made, as text: times as RFC 3339 and ISO 8601 have them.
pub(super) fn text(made: Item<'_>) -> Result<String> {
    Ok(match made {
        Item::Time(micros) => time(micros)?.to_string(),
        Item::Decimal(digits) => String::from_utf8_lossy(digits).into_owned(),
        Item::Date(days) => iso(days),
        Item::Naive(micros) => {
            let (seconds, rest) = (micros.rem_euclid(DAY) / SECOND, micros.rem_euclid(SECOND));
            let (hour, minute) = (seconds / 3600, seconds / 60 % 60);
            let day = iso(micros.div_euclid(DAY));
            let mut text = format!("{day}T{hour:02}:{minute:02}:{:02}", seconds % 60);
            if rest > 0 {
                text.push_str(&format!(".{rest:06}"));
            }
            text
        }
        _ => return Err(Error::malformed("no value of its own kind")),
    })
}

fn iso(count: i64) -> String {
    let (year, month, day) = date(count);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The ten bytes of a `datetime` in UTC, cut to microseconds; none where Python has no such year.
pub(super) fn state(time: Time) -> Option<[u8; 10]> {
    let (seconds, nanos) = time.to_unix();
    let (year, month, day) = date(seconds.div_euclid(86_400));
    let [high, low] = u16::try_from(year).ok().filter(|y| (1..=9999).contains(y))?.to_be_bytes();
    let of_day = seconds.rem_euclid(86_400);
    let [_, a, b, c] = (nanos / 1000).to_be_bytes();
    let (hour, minute) = ((of_day / 3600) as u8, (of_day / 60 % 60) as u8);
    Some([high, low, month as u8, day as u8, hour, minute, (of_day % 60) as u8, a, b, c])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_told_from_other_text() {
        for text in ["0", "-1.50", "1E+5", "1e-7", ".5", "5.", "NaN", "-Infinity", "+1"] {
            assert!(is_decimal(text.as_bytes()), "{text}");
        }
        for text in ["", "-", ".", "E5", "1E", "1e+", "0x1", "nan", "1 ", "١", "1_0", "--1"] {
            assert!(!is_decimal(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn only_calls_that_python_writes_are_made() {
        let state: &[u8] = &[7, 232, 2, 29, 23, 59, 58, 1, 226, 64];
        let zone = call(Maker::TimeZone, &[Item::Delta(3_600 * SECOND)]).unwrap();
        let made = call(Maker::DateTime, &[Item::Bytes(state), zone]).unwrap();
        assert_eq!(text(made).unwrap(), "2024-02-29T22:59:58.123456Z");
        let naive = call(Maker::DateTime, &[Item::Bytes(state)]).unwrap();
        assert_eq!(text(naive).unwrap(), "2024-02-29T23:59:58.123456");
        let date = call(Maker::Date, &[Item::Bytes(&state[..4])]).unwrap();
        assert_eq!(text(date).unwrap(), "2024-02-29");
        let far = [Item::Int(i64::MAX), Item::Int(0), Item::Int(0)];
        assert_eq!(call(Maker::TimeDelta, &far), None);
        assert_eq!(call(Maker::TimeZone, &[Item::Delta(DAY)]), None);
        assert_eq!(call(Maker::DateTime, &[Item::Int(1)]), None);
        assert_eq!(call(Maker::DateTime, &[Item::Bytes(&state[..9])]), None);
        assert_eq!(call(Maker::Decimal, &[Item::Text(b"x")]), None);
        assert_eq!(find(b"os", b"system"), None);
        for (n, (module, name, maker)) in MAKERS.iter().enumerate() {
            assert_eq!(find(module, name), Some(*maker));
            assert_eq!(Maker::at(n as u32), Some(*maker));
            assert_eq!(maker.number(), n as u32);
        }
    }

    #[test]
    fn states_are_those_of_python() {
        // datetime(2024, 2, 29, 23, 59, 58, 123456, timezone.utc).__reduce__()[1][0]
        let python = [7, 232, 2, 29, 23, 59, 58, 1, 226, 64];
        let time: Time = "2024-02-29T23:59:58.123456789Z".parse().unwrap();
        assert_eq!(state(time), Some(python));
        assert_eq!(day(&python), Some(19_782));
        assert_eq!(day(&[7, 231, 2, 29]), None, "no leap year");
        assert_eq!(day(&[7, 232, 13, 1]), None);
        assert_eq!(day(&[0, 0, 1, 1]), None);
        assert_eq!(state("0000-12-31T00:00:00Z".parse().unwrap()), None);
    }
}
