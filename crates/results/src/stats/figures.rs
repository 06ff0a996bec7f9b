//! Single figures of a set of numbers: median, quantiles and their intervals, outliers.

/// The median; `None` of nothing. NaN sorts last.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    middle(&sorted)
}

/// The median of sorted values.
pub(super) fn middle(sorted: &[f64]) -> Option<f64> {
    let n = sorted.len();
    match n {
        0 => None,
        _ if n % 2 == 1 => Some(sorted[n / 2]),
        _ => Some(0.5 * (sorted[n / 2 - 1] + sorted[n / 2])),
    }
}

/// Which values lie far from the rest: 3.5 robust standard deviations (1.4826 x the median absolute
/// deviation) from the median, of the logarithms. They are flagged, never dropped (rule 15).
///
/// Times are skewed to the right; in logarithms a slow value is as far off as a fast one.
/// Source: B. Iglewicz, D. Hoaglin, "How to Detect and Handle Outliers" (1993).
pub fn outliers(values: &[f64]) -> Vec<usize> {
    let logs: Vec<f64> = values.iter().map(|v| v.max(f64::MIN_POSITIVE).ln()).collect();
    let Some(center) = median(&logs) else { return Vec::new() };
    let away: Vec<f64> = logs.iter().map(|v| (v - center).abs()).collect();
    let spread = 1.4826 * median(&away).unwrap_or(0.0);
    match spread > 0.0 {
        true => (0..away.len()).filter(|&i| away[i] > 3.5 * spread).collect(),
        false => Vec::new(),
    }
}

/// A quantile with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantile {
    /// The value at the quantile.
    pub value: f64,
    /// The order statistics that enclose it in 95 % of samples.
    pub low: f64,
    #[allow(missing_docs)]
    pub high: f64,
}

/// The `q` quantile (0 < q < 1) of sorted values with its order-statistic interval (rule 13);
/// `None` where fewer than 10 values lie beyond it (rule 16), on the far side from the median.
pub fn quantile(sorted: &[f64], q: f64) -> Option<Quantile> {
    let (low, at, high) = quantile_ranks(sorted.len() as u64, q)?;
    let of = |rank: u64| sorted[rank as usize - 1];
    Some(Quantile { value: of(at), low: of(low), high: of(high) })
}

/// The ranks (from 1) of the quantile and of the ends of its 95 % interval among `n` values.
///
/// Exactly `Binomial(n, q)` of the values lie below the quantile, so the interval is that of the
/// binomial: summed exactly for n up to 10,000, by its normal approximation beyond.
pub fn quantile_ranks(n: u64, q: f64) -> Option<(u64, u64, u64)> {
    let beyond = n as f64 * q.min(1.0 - q);
    // A hair less than 10, so that 1,000 x (1 - 0.99) counts as the 10 it is.
    if !(q > 0.0 && q < 1.0) || beyond < 10.0 - 1e-9 {
        return None;
    }
    let at = ((n as f64 * q).ceil() as u64).clamp(1, n);
    let (low, high) = match n <= 10_000 {
        true => binomial_interval(n, q),
        false => {
            let (mean, reach) = (n as f64 * q, 1.959964 * (n as f64 * q * (1.0 - q)).sqrt());
            ((mean - reach).floor() as u64, (mean + reach).ceil() as u64 + 1)
        }
    };
    Some((low.clamp(1, n), at, high.clamp(1, n)))
}

/// The ranks l and h with P(l <= B < h) >= 95 % for a binomial B, each tail at most 2.5 %.
fn binomial_interval(n: u64, q: f64) -> (u64, u64) {
    let (mut log_p, odds) = (n as f64 * (1.0 - q).ln(), (q / (1.0 - q)).ln());
    let (mut below, mut low, mut high) = (0.0, 0, n);
    for k in 0..=n {
        below += log_p.exp();
        if below <= 0.025 {
            low = k + 1;
        }
        if below >= 0.975 {
            high = k + 1;
            break;
        }
        log_p += ((n - k) as f64 / (k + 1) as f64).ln() + odds;
    }
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn median_of_odd_even_and_nothing() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn outliers_are_the_far_ones_on_both_sides() {
        let mut values: Vec<f64> = (0..40).map(|i| 100.0 + f64::from(i % 7)).collect();
        assert!(outliers(&values).is_empty());
        values[5] = 300.0;
        values[9] = 33.0;
        assert_eq!(outliers(&values), [5, 9]);
        assert!(outliers(&[1.0, 1.0, 1.0, 9.0]).is_empty(), "no spread, no outliers");
    }

    #[test]
    fn no_quantile_without_ten_beyond() {
        assert_eq!(quantile_ranks(999, 0.99), None);
        assert!(quantile_ranks(1000, 0.99).is_some());
        assert!(quantile_ranks(1000, 0.999).is_none());
        assert!(quantile_ranks(20, 0.5).is_some());
        assert!(quantile_ranks(19, 0.5).is_none());
        assert!(quantile_ranks(19, 1.0).is_none());
    }

    #[test]
    fn ranks_agree_with_the_table() {
        // Conover, "Practical Nonparametric Statistics": n = 20, median: ranks 6 and 15.
        assert_eq!(quantile_ranks(20, 0.5), Some((6, 10, 15)));
        let (low, at, high) = quantile_ranks(1_000_000, 0.99).unwrap();
        assert_eq!(at, 990_000);
        assert!((989_804..=989_806).contains(&low) && (990_195..=990_197).contains(&high));
    }

    #[test]
    fn the_interval_covers_the_true_quantile() {
        let mut random = Random::new(7);
        let covered = (0..1000)
            .filter(|_| {
                let mut values: Vec<f64> = (0..200).map(|_| random.unit()).collect();
                values.sort_unstable_by(f64::total_cmp);
                let q = quantile(&values, 0.9).unwrap();
                (q.low..=q.high).contains(&0.9)
            })
            .count();
        assert!((940..=985).contains(&covered), "{covered} of 1000");
    }
}
