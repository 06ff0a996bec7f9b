//! Pools the estimates of noise over the comparisons of one run (moderated t).
//!
//! The spread of 6 rounds is itself estimated so poorly that an interval from it alone is several times as wide as
//! necessary or, by chance, far too narrow. All comparisons of a run were made on one machine at one time, so the
//! distribution of their spreads is known much better: each spread is shrunk towards the usual value, more strongly the
//! more alike the spreads are, and gains degrees of freedom to match. Where some phases are truly noisier than others,
//! the spreads differ by more than chance, and little is shrunk.
//!
//! Source: G. K. Smyth, "Linear Models and Empirical Bayes Methods for Assessing Differential Expression in Microarray
//! Experiments" (2004): the moderated t.

use super::Paired;

/// What the others' spreads count for at most, in degrees of freedom: comparisons share competitors, so that
/// their spreads agree better than independent ones would.
const MOST: f64 = 8.0;
/// Of fewer comparisons nothing usual can be said.
const FEWEST: usize = 3;

/// The usual spread of comparisons, and what it counts for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usual {
    /// A variance of a mean.
    variance: f64,
    /// Degrees of freedom.
    freedom: f64,
}

impl Usual {
    /// Of these comparisons; `None` where they are too few.
    pub fn of(pairs: &[Paired]) -> Option<Usual> {
        let spread = |pair: &Paired| {
            let (_, error, freedom) = pair.parts();
            (pair.is_known() && error > 0.0).then_some((error * error, freedom))
        };
        let known: Vec<(f64, f64)> = pairs.iter().filter_map(spread).collect();
        let n = known.len() as f64;
        if known.len() < FEWEST {
            return None;
        }
        let mean = |of: &dyn Fn(&(f64, f64)) -> f64| known.iter().map(of).sum::<f64>() / n;
        // The logarithm of a variance estimate lies off the true one by digamma(d / 2) - ln(d / 2) on
        // average, and varies by trigamma(d / 2); what they vary beyond that is their own.
        let log = |&(variance, d): &(f64, f64)| variance.ln() - digamma(d / 2.0) + (d / 2.0).ln();
        let middle = mean(&log);
        let varies = mean(&|pair| (log(pair) - middle).powi(2)) * n / (n - 1.0);
        let own = varies - mean(&|pair| trigamma(pair.1 / 2.0));
        let freedom = if own > 0.0 { (2.0 * trigamma_inverse(own)).min(MOST) } else { MOST };
        let variance = (middle + digamma(freedom / 2.0) - (freedom / 2.0).ln()).exp();
        Some(Usual { variance, freedom })
    }
}

impl Paired {
    /// The comparison with its spread drawn towards the usual one.
    pub fn moderated(&self, usual: Option<Usual>) -> Paired {
        let Some(usual) = usual.filter(|_| self.is_known()) else { return *self };
        let (_, error, own) = self.parts();
        let freedom = own + usual.freedom;
        let variance = (own * error * error + usual.freedom * usual.variance) / freedom;
        self.with_error(variance.sqrt(), freedom)
    }
}

/// The derivative of ln Γ (Abramowitz & Stegun 6.3.5 and 6.3.18).
fn digamma(mut x: f64) -> f64 {
    let mut below = 0.0;
    while x < 10.0 {
        below += 1.0 / x;
        x += 1.0;
    }
    let f = 1.0 / (x * x);
    x.ln() - 0.5 / x - f * (1.0 / 12.0 - f * (1.0 / 120.0 - f * (1.0 / 252.0 - f / 240.0))) - below
}

/// Its derivative (6.4.6 and 6.4.12).
fn trigamma(mut x: f64) -> f64 {
    let mut below = 0.0;
    while x < 10.0 {
        below += 1.0 / (x * x);
        x += 1.0;
    }
    let f = 1.0 / (x * x);
    below + (1.0 + f * (1.0 / 6.0 - f * (1.0 / 30.0 - f * (1.0 / 42.0 - f / 30.0)))) / x + f / 2.0
}

/// The x above 0 whose trigamma is `y`: it falls, so that halving finds it.
fn trigamma_inverse(y: f64) -> f64 {
    let (mut low, mut high): (f64, f64) = (1e-6, 1e6);
    for _ in 0..100 {
        let middle = (low * high).sqrt();
        if trigamma(middle) > y { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Comparisons of `n` rounds that differ in nothing, with noise of these sizes.
    fn pairs(seed: u64, n: usize, noise: &[f64]) -> Vec<Paired> {
        let mut random = Random::new(seed);
        let mut one = |noise: &f64| {
            let logs: Vec<f64> = (0..n).map(|_| noise * random.normal()).collect();
            Paired::of(&logs, 0.0).unwrap()
        };
        noise.iter().map(&mut one).collect()
    }

    #[test]
    fn functions_agree_with_their_tables() {
        let euler = 0.577_215_664_901_532_9;
        assert!((digamma(1.0) + euler).abs() < 1e-12);
        assert!((digamma(0.5) + euler + 2.0 * 2f64.ln()).abs() < 1e-12);
        let square = std::f64::consts::PI.powi(2);
        assert!((trigamma(1.0) - square / 6.0).abs() < 1e-12);
        assert!((trigamma(0.5) - square / 2.0).abs() < 1e-12);
        for x in [0.3, 1.0, 4.0, 50.0] {
            assert!((trigamma_inverse(trigamma(x)) / x - 1.0).abs() < 1e-9, "{x}");
        }
    }

    #[test]
    fn what_varies_by_chance_only_is_drawn_together() {
        let all = pairs(1, 6, &[0.1; 40]);
        let usual = Usual::of(&all).unwrap();
        assert_eq!(usual.freedom, MOST);
        assert!((usual.variance.sqrt() / (0.1 / 6f64.sqrt()) - 1.0).abs() < 0.2, "{usual:?}");
        let width = |pair: &Paired| pair.half_width(0.001).unwrap();
        let widest = |all: &[Paired]| all.iter().map(width).fold(0.0, f64::max);
        let moderated: Vec<Paired> = all.iter().map(|p| p.moderated(Some(usual))).collect();
        assert!(widest(&moderated) < 0.6 * widest(&all));
        let same = |(a, b): (&Paired, &Paired)| a.ratio() == b.ratio() && a.starts == b.starts;
        assert!(all.iter().zip(&moderated).all(same));
    }

    #[test]
    fn what_differs_is_left_as_it_is() {
        let noise: Vec<f64> = (0..40).map(|i| if i % 2 == 0 { 0.002 } else { 0.5 }).collect();
        let usual = Usual::of(&pairs(2, 12, &noise)).unwrap();
        assert!(usual.freedom < 2.0, "{usual:?}");
    }

    #[test]
    fn the_interval_encloses_the_truth() {
        for (n, spread) in [(5, 0.0), (6, 0.5), (6, 1.0), (12, 0.5)] {
            let (mut inside, mut asked) = (0, 0);
            for seed in 0..200 {
                let mut random = Random::new(1000 + seed);
                let noise: Vec<f64> =
                    (0..20).map(|_| 0.1 * (spread * random.normal()).exp()).collect();
                let all = pairs(seed, n, &noise);
                let usual = Usual::of(&all);
                for pair in &all {
                    let (low, high) = pair.moderated(usual).interval(0.01).unwrap();
                    inside += u32::from(low <= 1.0 && high >= 1.0);
                    asked += 1;
                }
            }
            let share = f64::from(inside) / f64::from(asked);
            assert!(share > 0.98, "{n} rounds, noise that varies by {spread}: {share}");
        }
    }

    #[test]
    fn few_comparisons_and_few_starts_stay_as_they_are() {
        let two = pairs(3, 6, &[0.1, 0.1]);
        assert_eq!(Usual::of(&two), None);
        assert_eq!(two[0].moderated(None), two[0]);
        let short = pairs(4, 3, &[0.1; 9]);
        assert_eq!(Usual::of(&short), None);
        assert_eq!(short[0].moderated(Usual::of(&pairs(5, 6, &[0.1; 9]))), short[0]);
    }
}
