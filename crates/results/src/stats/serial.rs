//! Serial correlation: rounds of one run are not independent.
//!
//! A machine that is slow for a minute is slow for several rounds. Ratios within a round cancel most
//! of that, not all of it. Means of `n` rounds with lag-1 autocorrelation `r` are as uncertain as
//! those of `n (1 - r) / (1 + r)` independent ones.
//!
//! With 5 to 20 rounds the estimate from one series is useless, and biased towards no correlation by
//! about `(1 + 4 r) / n`. So the estimate is pooled over every comparison of the page, which ran on
//! the same machine at the same time, and corrected for its bias. Below 12 rounds even that swings from
//! run to run by more than there is to find, so it is drawn towards what is usual. Values that lie far off (spikes)
//! are left out of this estimate, and only of this one: they would hide the correlation of the rest.
//!
//! Sources: G. Bayley, J. Hammersley, "The Effective Number of Independent Observations in an
//! Autocorrelated Time Series" (1946); M. Kendall, "Note on Bias in the Estimation of
//! Autocorrelation" (1954).

use super::figures::median;

/// The estimate has an error itself, which is added: at most so much over the number of rounds.
const MARGIN: f64 = 1.5;
/// The correction of the bias divides by `n - 4`, or by this share of `n` where that is more: with 5
/// rounds it would multiply the error of the estimate so often that no interval said anything.
const LEAST: f64 = 1.0 / 3.0;
/// Below so many rounds the estimate counts the less, the fewer they are above 4 …
const ENOUGH: f64 = 12.0;
/// … and this in its place: more than most runs have (0 to 0.3 in 24 runs of 12 rounds on a shared machine).
const USUAL: f64 = 0.3;
/// A phase has an autocorrelation of its own where its estimate is so many standard errors above that of all.
const CLEARLY: f64 = 1.5;
/// No more is corrected for; beyond it the rounds say next to nothing.
const MOST: f64 = 0.9;
/// Values more than so many robust standard deviations off are left out.
const FAR: f64 = 3.0;

/// The lag-1 autocorrelation of several series in the order of time, pooled: from 0 to 0.9. Series of
/// fewer than 5 values are not looked at.
pub fn autocorrelation<'a>(series: impl IntoIterator<Item = &'a [f64]>) -> f64 {
    Pooled::of(series).map_or(0.0, |pooled| pooled.drawn())
}

/// The same for each of several series of which some belong together, as those of a phase do: what all have, or
/// what a group has, where that is clearly more. (A phase whose rounds are alike would be hidden by the
/// others.)
pub fn by_group(series: &[Vec<f64>], groups: &[usize]) -> Vec<f64> {
    let all = Pooled::of(series.iter().map(Vec::as_slice));
    let Some(all) = all else { return vec![0.0; series.len()] };
    let of = |group: usize| {
        let own = series.iter().zip(groups).filter(|(_, g)| **g == group);
        let own = Pooled::of(own.map(|(series, _)| series.as_slice()));
        let more = own.filter(|own| own.estimate - all.estimate.max(0.0) > CLEARLY * own.error());
        more.map_or(all.drawn(), |own| all.drawn().max(own.estimate.min(MOST)))
    };
    groups.iter().map(|group| of(*group)).collect()
}

/// What several series have in common.
struct Pooled {
    /// The mean estimate, corrected for its bias.
    estimate: f64,
    /// How many series, and of how many values on average.
    series: f64,
    n: f64,
}

impl Pooled {
    fn of<'a>(series: impl IntoIterator<Item = &'a [f64]>) -> Option<Pooled> {
        let found: Vec<(f64, f64)> =
            series.into_iter().filter_map(|s| Some((raw(s)?, s.len() as f64))).collect();
        let count = found.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| found.iter().map(of).sum::<f64>() / count;
        let (r, n) = (mean(|f| f.0), mean(|f| f.1));
        let pooled = Pooled { estimate: 0.0, series: count, n };
        (!found.is_empty()).then(|| Pooled { estimate: (n * r + 1.0) / pooled.divisor(), ..pooled })
    }

    fn divisor(&self) -> f64 {
        (self.n - 4.0).max(LEAST * self.n)
    }

    /// A standard error for series that compare some competitors pair by pair: `k (k - 1) / 2` of them tell as
    /// much as `k - 1` that are independent.
    fn error(&self) -> f64 {
        let independent = ((8.0 * self.series + 1.0).sqrt() - 1.0) / 2.0;
        self.n / self.divisor() / (self.n * independent).sqrt()
    }

    /// The estimate with a margin, drawn towards what is usual where rounds are few.
    fn drawn(&self) -> f64 {
        let error = self.n / self.divisor() / (self.n * self.series).sqrt();
        let found = (self.estimate + error.min(MARGIN / self.n)).clamp(0.0, MOST);
        let weight = ((self.n - 4.0) / (ENOUGH - 4.0)).clamp(0.0, 1.0);
        weight * found + (1.0 - weight) * USUAL
    }
}

/// The estimate of one series, neither corrected nor clipped.
fn raw(series: &[f64]) -> Option<f64> {
    let centre = median(series).filter(|_| series.len() >= 5)?;
    let away: Vec<f64> = series.iter().map(|v| (v - centre).abs()).collect();
    let reach = FAR * 1.4826 * median(&away)?;
    let near: Vec<f64> = series.iter().copied().filter(|v| (v - centre).abs() <= reach).collect();
    let count = near.len() as f64;
    let mean = near.iter().sum::<f64>() / count;
    let spread = near.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count;
    let neighbours: Vec<f64> = series
        .windows(2)
        .filter(|w| w.iter().all(|v| (v - centre).abs() <= reach))
        .map(|w| (w[0] - mean) * (w[1] - mean))
        .collect();
    let together = neighbours.iter().sum::<f64>() / neighbours.len() as f64;
    // A sum of n - 1 products over one of n squares, as the correction of the bias supposes.
    let r = together / spread * (count - 1.0) / count;
    (spread > 0.0 && !neighbours.is_empty()).then_some(r)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Series of `n` values whose neighbours correlate by `r`, one value in twenty far off.
    fn series(random: &mut Random, count: usize, n: usize, r: f64) -> Vec<Vec<f64>> {
        let mut one = || {
            let mut last = random.normal();
            let mut next = || {
                let now = last;
                last = r * last + (1.0 - r * r).sqrt() * random.normal();
                now + if random.unit() < 0.05 { 10.0 } else { 0.0 }
            };
            (0..n).map(|_| next()).collect::<Vec<f64>>()
        };
        (0..count).map(|_| one()).collect()
    }

    #[test]
    fn finds_what_there_is_on_average() {
        for (n, r, within) in [(6, 0.0, 0.35), (12, 0.0, 0.15), (12, 0.6, 0.15), (24, 0.3, 0.1)] {
            let mut random = Random::new(4);
            let runs = 50;
            let found = (0..runs)
                .map(|_| {
                    let all = series(&mut random, 40, n, r);
                    autocorrelation(all.iter().map(Vec::as_slice))
                })
                .sum::<f64>()
                / f64::from(runs);
            assert!((found - r).abs() < within, "{n} values, {r}: {found}");
        }
    }

    #[test]
    fn a_phase_that_correlates_by_itself_is_found() {
        let (mut own, mut others, runs) = (0.0, 0.0, 40);
        for seed in 0..runs {
            let mut random = Random::new(100 + seed);
            let mut all = series(&mut random, 21, 24, 0.0);
            all.extend(series(&mut random, 3, 24, 0.8));
            let groups: Vec<usize> = (0..24).map(|i| i / 3).collect();
            let found = by_group(&all, &groups);
            own += found[23] / runs as f64;
            others += found[..21].iter().sum::<f64>() / 21.0 / runs as f64;
        }
        assert!(own > 0.6 && others < 0.3, "{own}, {others}");
        assert_eq!(by_group(&[vec![1.0]], &[0]), [0.0]);
    }

    #[test]
    fn nothing_to_look_at_is_no_correlation() {
        assert_eq!(autocorrelation([]), 0.0);
        assert_eq!(autocorrelation([&[1.0, 2.0, 3.0][..]]), 0.0);
        assert_eq!(autocorrelation([&[1.0; 9][..]]), 0.0);
        let climb: Vec<f64> = (0..12).map(f64::from).collect();
        assert_eq!(autocorrelation([&climb[..]]), 0.9);
    }
}
