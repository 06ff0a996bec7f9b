//! Who is faster: a family of comparisons that are decided together (rule 14).

use super::{Paired, Sample};

/// What counts as a difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// The smallest ratio that is called a difference, and the largest that is called alike: 1.03.
    pub effect: f64,
    /// The share of pages on which anything may be called wrongly: 0.05.
    pub level: f64,
}

impl Default for Rule {
    fn default() -> Self {
        Rule { effect: 1.03, level: 0.05 }
    }
}

/// What a comparison comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The first takes less time: the interval excludes 1, and the effect is large enough.
    Faster,
    /// The first takes more time, likewise.
    Slower,
    /// The whole interval lies within the smallest effect.
    Alike,
    /// None of these.
    CannotTell,
}

impl Rule {
    /// Whether a ratio is far enough from 1 to be called a difference.
    pub fn is_difference(&self, ratio: f64) -> bool {
        ratio.max(1.0 / ratio) >= self.effect
    }

    /// What a ratio comes to by its interval, which must be that of its family.
    pub fn verdict(&self, ratio: f64, (low, high): (f64, f64)) -> Verdict {
        if low > 1.0 && ratio >= self.effect {
            Verdict::Slower
        } else if high < 1.0 && ratio * self.effect <= 1.0 {
            Verdict::Faster
        } else if low * self.effect > 1.0 && high < self.effect {
            Verdict::Alike
        } else {
            Verdict::CannotTell
        }
    }
}

/// Comparisons that are decided together, so that all of them are right on 95 % of pages.
///
/// Holm's step-down: where `m` comparisons have a p, and `r` of them are called differences, each is
/// decided at `level = 5 % / (m - r)`. One level, and so one interval, decides everything that is
/// said of a pair: different where the interval excludes 1, alike where it lies within 3 %. A pair is
/// either truly equal or truly 3 % apart, so one of the two errors can be made of it, and the bound
/// of 5 % holds for both together. A pair that surely differs, but by less than 3 %, is not called a difference
/// and so makes no room for others: it may yet be called alike.
///
/// Source: S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure" (1979).
#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    /// The p below which a single comparison is a difference.
    pub level: f64,
    /// p of each as adjusted for all: below 5 % where the single p is at most [`level`](Family::level).
    pub adjusted: Vec<f64>,
}

impl Family {
    /// A family of comparisons with these p, each far enough from 1 to be called a difference or not, in which
    /// no error is made in `1 - error` of the cases.
    pub fn of(comparisons: &[(f64, bool)], error: f64) -> Family {
        let m = comparisons.len();
        let mut order: Vec<usize> = (0..m).collect();
        order.sort_by(|&a, &b| comparisons[a].0.total_cmp(&comparisons[b].0));
        let mut adjusted = vec![1.0; m];
        let (mut called, mut shown, mut largest) = (0, 0, 0.0f64);
        for i in order {
            let (p, is_difference) = comparisons[i];
            largest = largest.max((p * (m - called) as f64).min(1.0));
            adjusted[i] = largest;
            called += usize::from(is_difference);
            if largest <= error {
                shown = called;
            }
        }
        Family { level: error / (m - shown).max(1) as f64, adjusted }
    }
}

/// Pairs the values of two competitors by start and round: the logarithm of a / b for each pair.
/// Each value comes with (start, round); what has no partner is left out.
pub fn paired(a: &[(u32, u32, f64)], b: &[(u32, u32, f64)]) -> Vec<Sample> {
    a.iter()
        .filter_map(|&(start, round, x)| {
            let &(_, _, y) = b.iter().find(|t| (t.0, t.1) == (start, round))?;
            (x > 0.0 && y > 0.0).then(|| Sample { start, value: (x / y).ln() })
        })
        .collect()
}

impl Paired {
    /// What the pair comes to in its family; `None` where there are too few starts to tell.
    pub fn verdict(&self, family: &Family, rule: &Rule) -> Option<Verdict> {
        Some(rule.verdict(self.ratio(), self.interval(family.level)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_meet_within_their_round() {
        let a = [(0, 0, 2.0), (0, 1, 4.0), (1, 0, 8.0)];
        let b = [(1, 0, 4.0), (0, 0, 1.0), (2, 0, 1.0)];
        let pairs = paired(&a, &b);
        assert_eq!(pairs.len(), 2);
        assert_eq!(pairs[0], Sample { start: 0, value: 2f64.ln() });
        assert_eq!(pairs[1].start, 1);
    }

    #[test]
    fn holm_agrees_with_its_paper() {
        let family =
            |p: &[f64]| Family::of(&p.iter().map(|p| (*p, true)).collect::<Vec<_>>(), 0.05);
        let adjusted = family(&[0.01, 0.04, 0.03, 0.005]).adjusted;
        for (a, b) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((a - b).abs() < 1e-12, "{adjusted:?}");
        }
        assert!(family(&[]).adjusted.is_empty());
        assert_eq!(family(&[0.9, 0.8]).adjusted, [1.0, 1.0]);
    }

    #[test]
    fn one_level_decides_what_holm_decides() {
        let mut random = crate::random::Random::new(3);
        for n in 1..40 {
            let p: Vec<(f64, bool)> =
                (0..n).map(|_| (random.unit().powi(4), random.unit() < 0.7)).collect();
            let family = Family::of(&p, 0.05);
            for ((p, _), adjusted) in p.iter().zip(&family.adjusted) {
                assert_eq!(*p <= family.level, *adjusted <= 0.05, "{p} in {family:?}");
            }
        }
        let level = |p: &[(f64, bool)]| Family::of(p, 0.05).level;
        assert_eq!(level(&[]), 0.05);
        assert_eq!(level(&[(0.001, true), (0.04, true)]), 0.05, "all are differences");
        assert_eq!(level(&[(0.5, true); 10]), 0.005);
        // What surely differs by less than matters makes no room for others.
        assert_eq!(level(&[(1e-9, false); 10]), 0.005);
        assert_eq!(level(&[(1e-9, false), (1e-9, true)]), 0.05);
    }

    #[test]
    fn three_answers() {
        let rule = Rule::default();
        let of = |ratio: f64, half: f64| {
            rule.verdict(ratio, (ratio * (-half).exp(), ratio * half.exp()))
        };
        assert_eq!(of(1.05, 0.02), Verdict::Slower);
        assert_eq!(of(0.95, 0.02), Verdict::Faster);
        assert_eq!(of(1.02, 0.001), Verdict::Alike, "different, and by less than matters");
        assert_eq!(of(0.99, 0.015), Verdict::Alike);
        assert_eq!(of(1.02, 0.015), Verdict::CannotTell, "different, and may be worth a word");
        assert_eq!(of(1.05, 0.10), Verdict::CannotTell);
        assert_eq!(of(3.0, 2.0), Verdict::CannotTell);
    }
}
