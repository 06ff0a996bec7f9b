//! Two competitors in the same rounds: the mean of the logarithms of their ratios, and its error; and
//! two runs whose rounds are no pairs, by the means of the logarithms of each.
//!
//! A ratio is taken within each start (several rounds of a start are averaged first), so what slows
//! the machine down slows both. The interval is Student's on logarithms: never negative, and as wide
//! as few starts make it. From 10 starts on an eighth of the ratios is trimmed off at each end (Yuen's
//! interval), or one spike would drown everything else. Nothing is trimmed for outliers that were
//! seen: always as many, whatever they are (rule 15).
//!
//! Sources: K. Yuen, "The Two-Sample Trimmed t for Unequal Population Variances" (1974); for rounds
//! that are not independent: `serial.rs`.

use super::{
    Sample,
    normal::{student_quantile, student_tail},
};

/// With fewer starts there is no interval, and so no answer and no rank.
pub const FEWEST: usize = 5;
/// Below this many starts nothing is trimmed: too little would be left.
const TRIM_FROM: usize = 10;
/// One in so many is trimmed off at each end.
const TRIM: usize = 8;

/// The ratio of two times, from pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Paired {
    /// The logarithm of the ratio.
    log: f64,
    /// Its standard error; infinite below [`FEWEST`] starts.
    error: f64,
    /// Degrees of freedom.
    freedom: f64,
    /// How many starts have both.
    pub starts: usize,
}

/// The logarithms of ratios, averaged over the rounds of each start, in the order of the starts.
pub fn by_start(logs: &[Sample]) -> Vec<f64> {
    let mut starts: Vec<u32> = logs.iter().map(|s| s.start).collect();
    starts.sort_unstable();
    starts.dedup();
    let mean = |start: u32| {
        let of = logs.iter().filter(|s| s.start == start).map(|s| s.value);
        let (sum, n) = of.fold((0.0, 0.0), |(sum, n), v| (sum + v, n + 1.0));
        sum / n
    };
    starts.into_iter().map(mean).collect()
}

impl Paired {
    /// From a logarithm for each start, whose neighbours correlate by `serial`; `None` of nothing.
    pub fn of(logs: &[f64], serial: f64) -> Option<Paired> {
        let n = logs.len();
        let cut = if n < TRIM_FROM { 0 } else { n / TRIM };
        let mut sorted = logs.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let kept = sorted.get(cut..n - cut).filter(|kept| !kept.is_empty())?;
        let left = kept.len() as f64;
        let log = kept.iter().sum::<f64>() / left;
        let (error, freedom) = match n >= FEWEST {
            true => error(&sorted, cut, serial),
            false => (f64::INFINITY, 1.0),
        };
        Some(Paired { log, error, freedom, starts: n })
    }

    /// Of two runs, each with a logarithm of its time for each of its starts: their means are estimated
    /// each by itself, as that of ratios is, and subtracted (Welch's interval; trimmed, Yuen's). `None`
    /// where one has nothing.
    pub fn between(new: &[f64], old: &[f64], serial: f64) -> Option<Paired> {
        let (new, old) = (Paired::of(new, serial)?, Paired::of(old, serial)?);
        Some(Paired { starts: new.starts.min(old.starts), ..new.less(&old) })
    }

    /// The ratio over another ratio that was estimated by itself. Its degrees of freedom are those of
    /// Welch and Satterthwaite: between the two, nearer to that of the larger error.
    pub(super) fn less(&self, other: &Paired) -> Paired {
        let error = self.error.hypot(other.error);
        let fourths = self.error.powi(4) / self.freedom + other.error.powi(4) / other.freedom;
        let freedom = match fourths > 0.0 && fourths.is_finite() {
            true => error.powi(4) / fourths,
            false => self.freedom.min(other.freedom),
        };
        Paired { log: self.log - other.log, error, freedom, starts: self.starts }
    }

    /// A ratio that is known to be this, with such an error.
    pub(super) fn known(log: f64, error: f64, freedom: f64) -> Paired {
        Paired { log, error, freedom, starts: FEWEST }
    }

    /// The same with another standard error, of so many degrees of freedom.
    pub(super) fn with_error(&self, error: f64, freedom: f64) -> Paired {
        Paired { error, freedom, ..*self }
    }

    /// Its logarithm, the standard error of that, and the degrees of freedom of that.
    pub(super) fn parts(&self) -> (f64, f64, f64) {
        (self.log, self.error, self.freedom)
    }

    /// The ratio.
    pub fn ratio(&self) -> f64 {
        self.log.exp()
    }

    /// True where there are starts enough for an interval.
    pub fn is_known(&self) -> bool {
        self.error.is_finite()
    }

    /// The probability of a ratio at least this far from 1 if there were no difference, two-sided.
    pub fn p(&self) -> f64 {
        match (self.is_known(), self.error > 0.0) {
            (false, _) => 1.0,
            (_, true) => 2.0 * student_tail(self.log.abs() / self.error, self.freedom),
            (_, false) => f64::from(u8::from(self.log == 0.0)),
        }
    }

    /// The interval that encloses the true ratio but for `error` of the cases: 0.05 for 95 %. It
    /// excludes 1 where [`p`](Paired::p) is below `error`. `None` below [`FEWEST`] starts.
    pub fn interval(&self, error: f64) -> Option<(f64, f64)> {
        let half = self.half_width(error)?;
        Some(((self.log - half).exp(), (self.log + half).exp()))
    }

    /// Half the width of the interval of the logarithm: 0.02 is 2 %.
    pub fn half_width(&self, error: f64) -> Option<f64> {
        self.is_known().then(|| student_quantile(error / 2.0, self.freedom) * self.error)
    }

    /// The smallest ratio above 1 whose interval would exclude 1 in four of five such runs.
    pub fn detectable(&self, error: f64) -> Option<f64> {
        let power = student_quantile(0.2, self.freedom) * self.error;
        Some((self.half_width(error)? + power).exp())
    }
}

/// The standard error of the trimmed mean of sorted values, and its degrees of freedom.
fn error(sorted: &[f64], cut: usize, serial: f64) -> (f64, f64) {
    let n = sorted.len();
    let (low, high) = (sorted[cut], sorted[n - 1 - cut]);
    let drawn_in: Vec<f64> = sorted.iter().map(|v| v.clamp(low, high)).collect();
    let mean = drawn_in.iter().sum::<f64>() / n as f64;
    let squares: f64 = drawn_in.iter().map(|v| (v - mean).powi(2)).sum();
    let left = (n - 2 * cut) as f64;
    let variance = squares / (left * (left - 1.0));
    // n rounds count as n / repeats; their spread is too small by what they have in common; and it
    // is known the less well (Bartlett 1935).
    let repeats = (1.0 + serial) / (1.0 - serial);
    let hidden = ((n as f64 - 1.0) / (n as f64 - repeats).max(1.0)).min(3.0);
    let freedom = (left * (1.0 - serial * serial) / (1.0 + serial * serial) - 1.0).max(1.0);
    ((variance * repeats * hidden).sqrt(), freedom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn logs(random: &mut Random, starts: usize, spikes: f64) -> Vec<f64> {
        let mut one = || 0.03 * random.normal() + if random.unit() < spikes { 0.4 } else { 0.0 };
        (0..starts).map(|_| one()).collect()
    }

    #[test]
    fn agrees_with_a_textbook() {
        let paired = Paired::of(&[0.01, 0.02, 0.03, 0.04, 0.05], 0.0).unwrap();
        assert!((paired.ratio().ln() - 0.03).abs() < 1e-12);
        // t = 0.03 / (0.0158 / sqrt(5)) = 4.243 with 4 degrees of freedom.
        assert!((paired.p() - 0.01324).abs() < 1e-4, "{}", paired.p());
        let (low, high) = paired.interval(0.05).unwrap();
        assert!((low.ln() - 0.010368).abs() < 1e-5 && (high.ln() - 0.049632).abs() < 1e-5);
    }

    #[test]
    fn rounds_of_a_start_count_once() {
        let sample = |start, value| Sample { start, value };
        let logs = [sample(4, 1.0), sample(2, 3.0), sample(4, 3.0)];
        assert_eq!(by_start(&logs), [3.0, 2.0]);
    }

    #[test]
    fn too_few_starts_have_no_interval() {
        assert_eq!(Paired::of(&[], 0.0), None);
        let few = Paired::of(&[0.1, 0.2, 0.3, 0.4], 0.0).unwrap();
        assert!(!few.is_known() && few.p() == 1.0 && few.interval(0.05).is_none());
        assert!((few.ratio().ln() - 0.25).abs() < 1e-12 && few.detectable(0.05).is_none());
    }

    #[test]
    fn the_interval_encloses_the_truth_and_agrees_with_p() {
        for (starts, spikes) in [(5, 0.0), (6, 0.0), (12, 0.0), (12, 0.05), (24, 0.05), (60, 0.0)] {
            let mut random = Random::new(starts as u64);
            let (mut inside, runs) = (0, 1000);
            for _ in 0..runs {
                let mut values = logs(&mut random, starts, spikes);
                // Either may be the one that is slow for a moment.
                values.iter_mut().for_each(|v| *v *= if random.unit() < 0.5 { 1.0 } else { -1.0 });
                let paired = Paired::of(&values, 0.0).unwrap();
                let (low, high) = paired.interval(0.05).unwrap();
                assert_eq!(paired.p() < 0.05, low > 1.0 || high < 1.0);
                inside += u32::from(low <= 1.0 && high >= 1.0);
            }
            let share = f64::from(inside) / f64::from(runs);
            assert!(share > 0.93, "{starts} starts, {spikes} spikes: {share}");
        }
    }

    #[test]
    fn two_runs_agree_with_a_textbook() {
        // Welch: means 20.82 and 23.20, variances 2.67 and 0.085 (n = 5 each); t = -3.212, 4.26 freedom.
        let (a, b) = ([19.8, 20.4, 19.6, 23.5, 20.8], [23.0, 23.1, 23.2, 23.0, 23.7]);
        let both = Paired::between(&a, &b, 0.0).unwrap();
        let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
        let variance =
            |v: &[f64]| v.iter().map(|x| (x - mean(v)).powi(2)).sum::<f64>() / (v.len() - 1) as f64;
        let (va, vb) = (variance(&a) / 5.0, variance(&b) / 5.0);
        let (log, error, freedom) = both.parts();
        assert!((log - (mean(&a) - mean(&b))).abs() < 1e-12);
        assert!((error - (va + vb).sqrt()).abs() < 1e-9, "{error}");
        let wanted = (va + vb).powi(2) / (va * va / 4.0 + vb * vb / 4.0);
        assert!((freedom - wanted).abs() < 1e-9 && freedom < 5.0, "{freedom}");
        // Four starts in one of them are too few for both.
        let few = Paired::between(&a[..4], &b, 0.0).unwrap();
        assert!(!few.is_known() && few.starts == 4 && few.interval(0.05).is_none());
        assert_eq!(Paired::between(&[], &b, 0.0), None);
    }

    #[test]
    fn correlated_rounds_widen_the_interval() {
        let values = logs(&mut Random::new(1), 12, 0.0);
        let width = |serial| Paired::of(&values, serial).unwrap().half_width(0.05).unwrap();
        assert!(width(0.3) > 1.3 * width(0.0) && width(0.6) > 2.0 * width(0.0));
    }

    #[test]
    fn what_could_be_shown_is_shown_in_four_of_five() {
        let mut random = Random::new(8);
        let runs = 500;
        let mut found = 0;
        for _ in 0..runs {
            // The true error of 12 values of 3 %, an eighth trimmed, is about 0.9 %.
            let smallest = Paired::of(&logs(&mut random, 12, 0.0), 0.0).unwrap();
            let by = smallest.detectable(0.05).unwrap().ln();
            let slower: Vec<f64> = logs(&mut random, 12, 0.0).into_iter().map(|v| v + by).collect();
            found += u32::from(Paired::of(&slower, 0.0).unwrap().p() < 0.05);
        }
        let share = f64::from(found) / f64::from(runs);
        assert!((0.7..0.9).contains(&share), "{share}");
    }
}
