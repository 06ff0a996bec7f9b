//! Numbers for people: as many digits as the interval leaves, thousands parted by commas.

use steelyard_results::Figure;

/// What stands where a figure does not apply.
pub(super) const NONE: &str = "-";

/// What stands in place of an interval that there is not, or that says nothing.
pub(super) const UNKNOWN: &str = "±?";

/// A whole number with its thousands parted: `18,881`.
pub(super) fn whole(n: u64) -> String {
    parted(&n.to_string())
}

fn parted(digits: &str) -> String {
    let (whole, rest) = digits.split_once('.').map_or((digits, None), |(w, r)| (w, Some(r)));
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |w| ("-", w));
    let mut text = String::from(sign);
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if let Some(rest) = rest {
        text.push('.');
        text.push_str(rest);
    }
    text
}

/// With this many decimals, and thousands parted.
pub(super) fn fixed(v: f64, decimals: usize) -> String {
    match v.is_finite() {
        true => parted(&format!("{v:.decimals$}")),
        false => NONE.into(),
    }
}

/// To three significant digits: `0.0213`, `12.3`, `886,000`.
pub(super) fn short(v: f64) -> String {
    if !v.is_finite() {
        return NONE.into();
    }
    if v == 0.0 {
        return "0".into();
    }
    let power = magnitude(v);
    match power {
        3.. => {
            let unit = 10f64.powi(power - 2);
            fixed((v / unit).round() * unit, 0)
        }
        _ => fixed(v, (2 - power).clamp(0, 9) as usize),
    }
}

/// A part beside its whole: with as many decimals as the whole has.
pub(super) fn beside(part: f64, whole: f64) -> String {
    match whole > 0.0 && part.is_finite() {
        true => fixed(part, (2 - magnitude(whole)).clamp(0, 9) as usize),
        false => NONE.into(),
    }
}

/// The power of ten of the first digit, after rounding to three digits.
fn magnitude(v: f64) -> i32 {
    let power = v.abs().log10().floor() as i32;
    let rounded = (v.abs() / 10f64.powi(power - 2)).round() * 10f64.powi(power - 2);
    power + i32::from(rounded >= 10f64.powi(power + 1) * (1.0 - 1e-12))
}

/// An interval that reaches beyond so many times its figure is not shown: it says nothing.
const WIDEST: f64 = 10.0;

/// A figure with its interval: `12.3 ±0.2`. The interval has one digit (two below 3) and the figure
/// as many decimals; no more than four digits in all, for nobody reads them. A wide interval of what
/// cannot be negative is shown by its ends, `5.0 (2.1 to 12)`, for `±` would reach below 0. `±?`
/// where there were too few rounds for an interval, or where it is wider than 10 times its figure.
pub(super) fn ranged(figure: &Figure) -> String {
    let Some(reach) = figure.reach() else { return format!("{} {UNKNOWN}", short(figure.middle)) };
    if !figure.middle.is_finite() {
        return NONE.into();
    }
    let size = figure.middle.abs();
    if size > 0.0 && reach > (WIDEST - 1.0) * size {
        return format!("{} {UNKNOWN}", short(figure.middle));
    }
    if let Some((low, high)) = figure.low.zip(figure.high)
        && low > 0.0
        && reach > 0.5 * size
    {
        return format!("{} ({} to {})", short(figure.middle), short(low), short(high));
    }
    if reach <= 0.0 {
        return format!("{} ±0", short(figure.middle));
    }
    let size = if figure.middle == 0.0 { 0 } else { magnitude(figure.middle) };
    let first = reach.log10().floor() as i32;
    let leading = reach / 10f64.powi(first);
    let last = if leading < 3.0 { first - 1 } else { first };
    let last = last.max(size - 3).min(size);
    match last {
        1.. => {
            let unit = 10f64.powi(last);
            let (middle, reach) =
                ((figure.middle / unit).round() * unit, (reach / unit).ceil() * unit);
            format!("{} ±{}", fixed(middle, 0), fixed(reach, 0))
        }
        _ => {
            let decimals = (-last).clamp(0, 9) as usize;
            // Rounded up: an interval must not be made narrower by printing it.
            let unit = 10f64.powi(-(decimals as i32));
            let reach = (reach / unit - 1e-9).ceil().max(0.0) * unit;
            format!("{} ±{}", fixed(figure.middle, decimals), fixed(reach, decimals))
        }
    }
}

/// Bytes as megabytes (10^6), to three digits.
pub(super) fn megabytes(bytes: u64) -> String {
    short(bytes as f64 / 1e6)
}

/// A share of a whole in percent, to three digits.
pub(super) fn percent(part: f64, whole: f64) -> String {
    match whole > 0.0 {
        true => short(100.0 * part / whole),
        false => NONE.into(),
    }
}

/// Bytes with a unit: `812 B`, `4.1 kB`, `31.2 MB`.
pub(super) fn bytes(n: u64) -> String {
    match n {
        0..1000 => format!("{n} B"),
        1000..1_000_000 => format!("{} kB", short(n as f64 / 1e3)),
        1_000_000..1_000_000_000 => format!("{} MB", short(n as f64 / 1e6)),
        _ => format!("{} GB", short(n as f64 / 1e9)),
    }
}

/// A time with its unit: `850 ns`, `53.1 µs`, `1.20 ms`, `2.00 s`.
pub(super) fn duration(ns: f64) -> String {
    match ns {
        ..999.5 => format!("{} ns", short(ns)),
        ..999_500.0 => format!("{} µs", short(ns / 1e3)),
        ..999_500_000.0 => format!("{} ms", short(ns / 1e6)),
        _ => format!("{} s", short(ns / 1e9)),
    }
}

/// How many times: `4.1 times`, `1.2 times`.
pub(super) fn times(ratio: f64) -> String {
    match ratio {
        ..10.0 => format!("{} times", fixed(ratio, 1)),
        _ => format!("{} times", short(ratio)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(middle: f64, low: f64, high: f64) -> Figure {
        Figure { middle, low: Some(low), high: Some(high) }
    }

    #[test]
    fn three_digits_whatever_the_size() {
        let shown: Vec<_> = [0.0, 0.02134, 0.9996, 1.0, 12.34, 99.96, 123.4, 886_412.0, 999_600.0]
            .map(short)
            .into();
        assert_eq!(
            shown,
            ["0", "0.0213", "1.00", "1.00", "12.3", "100", "123", "886,000", "1,000,000"]
        );
        assert_eq!(short(f64::NAN), "-");
        assert_eq!(
            (whole(18_881), whole(999), whole(0)),
            ("18,881".into(), "999".into(), "0".into())
        );
    }

    #[test]
    fn an_interval_decides_the_digits() {
        assert_eq!(ranged(&figure(12.34, 12.1, 12.5)), "12.34 ±0.24");
        assert_eq!(ranged(&figure(12.34, 11.9, 12.7)), "12.3 ±0.5");
        assert_eq!(ranged(&figure(0.0213, 0.0209, 0.0217)), "0.0213 ±0.0004");
        assert_eq!(ranged(&figure(100.0, 100.0, 100.0)), "100 ±0");
        assert_eq!(ranged(&figure(886_412.0, 880_000.0, 889_000.0)), "886,000 ±7,000");
        assert_eq!(ranged(&figure(5.0, 1.0, 400.0)), "5.00 ±?", "wider than 10 times");
        assert_eq!(ranged(&figure(5.0, 2.1, 12.0)), "5.00 (2.10 to 12.0)", "not below 0");
        assert_eq!(ranged(&figure(0.5, -2.0, 3.0)), "0.5 ±2.5", "what may be below 0");
        assert_eq!(ranged(&Figure { middle: 12.34, low: None, high: None }), "12.3 ±?");
    }

    #[test]
    fn units_and_shares() {
        assert_eq!((beside(0.0042, 1.234), beside(0.0, 12.0)), ("0.00".into(), "0.0".into()));
        assert_eq!(
            (bytes(812), bytes(4100), bytes(31_200_000)),
            ("812 B".into(), "4.10 kB".into(), "31.2 MB".into())
        );
        assert_eq!(
            [850.0, 53_120.0, 999_700.0, 2e9].map(duration),
            ["850 ns", "53.1 µs", "1.00 ms", "2.00 s"]
        );
        assert_eq!(percent(1.0, 3.0), "33.3");
        assert_eq!(percent(1.0, 0.0), "-");
        assert_eq!((times(4.13), times(31.24)), ("4.1 times".into(), "31.2 times".into()));
    }
}
