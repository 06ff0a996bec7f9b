//! Who is faster: paired ratios, their intervals, Holm's adjustment, verdicts, groups.

use super::{Bootstrap, Estimate, Sample};

/// What counts as a difference (rule 14).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// The smallest ratio worth a word: 1.03, so 3 %.
    pub effect: f64,
    /// The error allowed over the whole table: 0.05.
    pub level: f64,
}

impl Default for Rule {
    fn default() -> Self {
        Rule { effect: 1.03, level: 0.05 }
    }
}

/// Time of one over the time of another: of competitors from pairs taken within rounds, of runs from
/// all rounds of each.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// The median ratio; above 1 the first is the slower.
    pub ratio: f64,
    /// The 95 % interval.
    pub low: f64,
    #[allow(missing_docs)]
    pub high: f64,
    /// The probability of a ratio this far from 1 if there were no difference, two-sided.
    pub p: f64,
    /// How many pairs.
    pub n: usize,
    /// Half the width of the interval of the logarithm: 0.02 is 2 %. The stop rule looks at this.
    pub half_width: f64,
}

impl Ratio {
    /// From the logarithms of paired ratios; `None` where there is no pair.
    pub fn of(logs: &[Sample], bootstrap: &Bootstrap) -> Option<Ratio> {
        Some(Ratio::from_logs(&bootstrap.median(logs)?))
    }

    /// From the logarithms of times that come in no pairs, as those of two runs; `None` where one
    /// has none.
    pub fn between(a: &[Sample], b: &[Sample], bootstrap: &Bootstrap) -> Option<Ratio> {
        Some(Ratio::from_logs(&bootstrap.difference(a, b)?))
    }

    fn from_logs(e: &Estimate) -> Ratio {
        Ratio {
            ratio: e.middle.exp(),
            low: e.low.exp(),
            high: e.high.exp(),
            p: e.surprise(),
            n: e.n,
            half_width: e.half_width(),
        }
    }

    /// The verdict, given the p-value as adjusted over the table.
    pub fn verdict(&self, adjusted: f64, rule: &Rule) -> Verdict {
        let shown = adjusted < rule.level;
        if shown && self.low > 1.0 && self.ratio >= rule.effect {
            Verdict::Slower
        } else if shown && self.high < 1.0 && self.ratio * rule.effect <= 1.0 {
            Verdict::Faster
        } else {
            Verdict::NoDifference
        }
    }
}

/// What a comparison comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The first takes less time.
    Faster,
    /// The first takes more time.
    Slower,
    /// None was shown; there may be one.
    NoDifference,
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
/// Source: S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure" (1979).
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

/// Ranks as groups (rule 14): in the order of `middles` (times), a competitor opens a new group
/// where it is shown to be slower than the first of the group before. Returns each one's group,
/// from 1; `slower(a, b)` says whether a was shown to be slower than b.
pub fn groups(middles: &[f64], slower: impl Fn(usize, usize) -> bool) -> Vec<u32> {
    let mut order: Vec<usize> = (0..middles.len()).collect();
    order.sort_by(|&a, &b| middles[a].total_cmp(&middles[b]));
    let mut group = vec![0; middles.len()];
    let (mut first, mut number) = (None, 0);
    for i in order {
        if first.is_none_or(|f| slower(i, f)) {
            first = Some(i);
            number += 1;
        }
        group[i] = number;
    }
    group
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

    fn ratio(ratio: f64, half: f64) -> Ratio {
        let (low, high) = (ratio * (-half).exp(), ratio * half.exp());
        Ratio { ratio, low, high, p: 0.001, n: 12, half_width: half }
    }

    #[test]
    fn a_verdict_needs_size_and_certainty() {
        let rule = Rule::default();
        assert_eq!(ratio(1.05, 0.02).verdict(0.001, &rule), Verdict::Slower);
        assert_eq!(ratio(0.95, 0.02).verdict(0.001, &rule), Verdict::Faster);
        assert_eq!(ratio(1.02, 0.001).verdict(0.0, &rule), Verdict::NoDifference, "too small");
        assert_eq!(ratio(1.05, 0.10).verdict(0.001, &rule), Verdict::NoDifference, "1 inside");
        assert_eq!(ratio(1.05, 0.02).verdict(0.20, &rule), Verdict::NoDifference, "one of many");
    }

    #[test]
    fn ranks_are_groups() {
        let middles = [1.0, 1.01, 1.5, 1.02, 1.52];
        let found = groups(&middles, |a, b| middles[a] / middles[b] > 1.03);
        assert_eq!(found, [1, 1, 2, 1, 2]);
        assert!(groups(&[], |_, _| true).is_empty());
    }
}
