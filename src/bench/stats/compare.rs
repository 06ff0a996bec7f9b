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
/// Holm's step-down: where `m` comparisons have a p, and `r` of them turn out as differences, each is
/// decided at `level = 5 % / (m - r)`. One level, and so one interval, decides everything that is
/// said of a pair: different where the interval excludes 1, alike where it lies within 3 %. A pair is
/// either truly equal or truly 3 % apart, so one of the two errors can be made of it, and the bound
/// of 5 % holds for both together.
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
    /// A family of comparisons with these p, in which no error is made in `1 - error` of the cases.
    pub fn of(p: &[f64], error: f64) -> Family {
        let mut sorted = p.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let m = sorted.len();
        let shown = (0..m).take_while(|&k| sorted[k] * (m - k) as f64 <= error).count();
        Family { level: error / (m - shown).max(1) as f64, adjusted: holm(p) }
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

/// Holm's step-down adjustment: the p-values of a family, each made to hold for the whole family.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut adjusted = vec![1.0; p.len()];
    let mut largest: f64 = 0.0;
    for (k, &i) in order.iter().enumerate() {
        largest = largest.max((p[i] * (p.len() - k) as f64).min(1.0));
        adjusted[i] = largest;
    }
    adjusted
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
        let p = [0.01, 0.04, 0.03, 0.005];
        let adjusted = holm(&p);
        for (a, b) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((a - b).abs() < 1e-12, "{adjusted:?}");
        }
        assert!(holm(&[]).is_empty());
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
    }

    #[test]
    fn one_level_decides_what_holm_decides() {
        let mut random = crate::bench::random::Random::new(3);
        for n in 1..40 {
            let p: Vec<f64> = (0..n).map(|_| random.unit().powi(4)).collect();
            let family = Family::of(&p, 0.05);
            for (p, adjusted) in p.iter().zip(&family.adjusted) {
                assert_eq!(*p <= family.level, *adjusted <= 0.05, "{p} in {family:?}");
            }
        }
        assert_eq!(Family::of(&[], 0.05).level, 0.05);
        assert_eq!(Family::of(&[0.001, 0.04], 0.05).level, 0.05, "all are differences");
        assert_eq!(Family::of(&[0.5; 10], 0.05).level, 0.005);
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
