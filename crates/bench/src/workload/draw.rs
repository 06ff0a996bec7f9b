//! Which keys operations touch: drawn before the clock runs, from a seed.

use std::{path::PathBuf, sync::Arc};

use crate::random::Random;

/// How operations spread over the records.
#[derive(Debug, Clone, PartialEq)]
pub enum Spread {
    /// One after another, in the order in which they were written.
    File,
    /// Each as likely as any other.
    Random,
    /// Few of them often, most of them seldom, and those anywhere: Zipf's law with exponent 0.99.
    Zipfian,
    /// The same law, the newest most often.
    Latest,
    /// A share of the operations on a share of the records.
    Hot {
        /// The share of the records, above 0.
        records: f64,
        /// The share of the operations.
        operations: f64,
    },
    /// The keys of this file, in their order ([`Trace`](super::Trace)).
    Trace(PathBuf),
}

/// Draws numbers of records.
#[derive(Debug, Clone)]
pub struct Draw {
    spread: Spread,
    random: Random,
    zipf: Option<Zipf>,
    next: u64,
    /// How many records there are.
    records: u64,
    /// The numbers of a trace.
    trace: Arc<[u64]>,
}

impl Draw {
    /// Draws from `records` records, of which there is one at least.
    pub fn new(spread: Spread, records: u64, seed: u64) -> Draw {
        let records = records.max(1);
        let zipf = matches!(spread, Spread::Zipfian | Spread::Latest).then(|| Zipf::new(records));
        let trace = Arc::default();
        Draw { spread, random: Random::new(seed), zipf, next: 0, records, trace }
    }

    /// Draws the numbers of a trace, one after another, again from the first where they end. `spread`
    /// is of no matter then.
    pub fn of_trace(trace: Arc<[u64]>, records: u64, seed: u64) -> Draw {
        Draw { trace, ..Draw::new(Spread::File, records, seed) }
    }

    /// One record more.
    pub fn grow(&mut self) {
        self.records += 1;
        if let Some(zipf) = &mut self.zipf {
            zipf.grow();
        }
    }

    /// The number of the next record, from 0.
    pub fn draw(&mut self) -> u64 {
        let n = self.records;
        if !self.trace.is_empty() {
            let at = self.next as usize;
            self.next = (self.next + 1) % self.trace.len() as u64;
            return self.trace[at];
        }
        match self.spread {
            Spread::File | Spread::Trace(_) => {
                let at = self.next;
                self.next = (self.next + 1) % n;
                at
            }
            Spread::Random => self.random.below(n),
            // The ranks are scattered, so that what is often read does not lie side by side.
            Spread::Zipfian => scatter(self.rank()) % n,
            Spread::Latest => n - 1 - self.rank(),
            Spread::Hot { records, operations } => {
                let hot = ((n as f64 * records) as u64).clamp(1, n);
                match self.random.unit() < operations || hot == n {
                    true => scatter(self.random.below(hot)) % n,
                    false => self.random.below(n),
                }
            }
        }
    }

    fn rank(&mut self) -> u64 {
        let unit = self.random.unit();
        self.zipf.as_ref().map_or(0, |zipf| zipf.rank(unit)).min(self.records - 1)
    }

    /// A number below `n`, for other choices.
    pub fn below(&mut self, n: u64) -> u64 {
        self.random.below(n.max(1))
    }

    /// A number from 0 to 1, for other choices.
    pub fn unit(&mut self) -> f64 {
        self.random.unit()
    }
}

fn scatter(n: u64) -> u64 {
    crate::record::dataset::random::mix(n)
}

/// Zipf's law over ranks from 0.
///
/// Source: J. Gray et al., "Quickly Generating Billion-Record Synthetic Databases", SIGMOD 1994; the
/// exponent is that of B. F. Cooper et al., "Benchmarking Cloud Serving Systems with YCSB", SoCC 2010.
#[derive(Debug, Clone)]
struct Zipf {
    n: u64,
    zeta: f64,
}

/// The exponent.
const THETA: f64 = 0.99;

impl Zipf {
    fn new(n: u64) -> Zipf {
        Zipf { n, zeta: (1..=n).map(|i| (i as f64).powf(-THETA)).sum() }
    }

    fn grow(&mut self) {
        self.n += 1;
        self.zeta += (self.n as f64).powf(-THETA);
    }

    fn rank(&self, unit: f64) -> u64 {
        let second = 0.5f64.powf(THETA);
        let at = unit * self.zeta;
        if at < 1.0 {
            return 0;
        }
        if at < 1.0 + second {
            return 1;
        }
        let n = self.n as f64;
        let eta = (1.0 - (2.0 / n).powf(1.0 - THETA)) / (1.0 - (1.0 + second) / self.zeta);
        (n * (eta * unit - eta + 1.0).powf(1.0 / (1.0 - THETA))) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(spread: Spread, n: u64) -> Vec<u64> {
        let mut draw = Draw::new(spread, n, 7);
        let mut counts = vec![0; n as usize];
        (0..200_000).for_each(|_| counts[draw.draw() as usize] += 1);
        counts
    }

    #[test]
    fn in_the_order_of_the_file_and_round_again() {
        let mut draw = Draw::new(Spread::File, 3, 1);
        assert_eq!((0..7).map(|_| draw.draw()).collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(Draw::new(Spread::Random, 0, 1).draw(), 0, "of nothing the first");
    }

    #[test]
    fn random_is_even() {
        let counts = counts(Spread::Random, 100);
        assert!(counts.iter().all(|c| (1_700..2_300).contains(c)), "{counts:?}");
    }

    /// The first of 1,000 ranks has 1/zeta of all draws: zeta(1000, 0.99) = 7.7289.
    #[test]
    fn zipf_has_the_shares_of_its_law() {
        let mut counts = counts(Spread::Zipfian, 1_000);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let share = counts[0] as f64 / 200_000.0;
        assert!((share - 1.0 / 7.7289).abs() < 0.01, "{share}");
        let tenth: u64 = counts[..100].iter().sum();
        assert!((0.60..0.75).contains(&(tenth as f64 / 200_000.0)), "{tenth}");
    }

    #[test]
    fn the_latest_is_the_last_also_when_there_are_more() {
        let mut draw = Draw::new(Spread::Latest, 1_000, 3);
        let last = (0..1_000).filter(|_| draw.draw() == 999).count();
        assert!((90..180).contains(&last), "{last}");
        (0..1_000).for_each(|_| draw.grow());
        let last = (0..1_000).filter(|_| draw.draw() == 1_999).count();
        assert!((80..180).contains(&last), "{last}");
    }

    #[test]
    fn a_hot_fifth_takes_its_share() {
        let mut counts = counts(Spread::Hot { records: 0.2, operations: 0.8 }, 1_000);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let hot: u64 = counts[..200].iter().sum();
        assert!((0.78..0.90).contains(&(hot as f64 / 200_000.0)), "{hot}");
    }
}
