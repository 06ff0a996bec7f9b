//! Who runs when, how much, how fast, and until when: values, not actions.
//!
//! - [`Orders`]: balanced, randomised, seeded orders of the competitors (rule 6)
//! - [`Limit`] x [`Pace`]: how much load, and at which moments (rule 9)
//! - [`StopRule`]: fixed before the run (rule 8)

use serde::{Deserialize, Serialize};

use super::random::Random;

/// An endless supply of orders of `n` competitors, in blocks that are balanced: over a block each
/// competitor stands in each position equally often and follows each other one equally often, so
/// that neither its place nor what the one before left in the caches favours anybody.
///
/// A block is a Latin square after Williams with its names and rows shuffled: `n` orders where n is
/// even, `2 n` where it is odd (the square and its mirror).
/// Source: E. J. Williams, "Experimental Designs Balanced for the Estimation of Residual Effects of
/// Treatments" (1949).
#[derive(Debug, Clone)]
pub struct Orders {
    n: usize,
    random: Random,
    block: Vec<Vec<usize>>,
}

impl Orders {
    /// Orders of `0..n` that follow from the seed.
    pub fn new(n: usize, seed: u64) -> Self {
        Orders { n, random: Random::new(seed), block: Vec::new() }
    }

    /// How many orders make a balanced block.
    pub fn block_len(&self) -> usize {
        if self.n.is_multiple_of(2) || self.n == 1 { self.n } else { 2 * self.n }
    }

    /// The next order.
    pub fn next_order(&mut self) -> Vec<usize> {
        if self.block.is_empty() {
            self.block = self.new_block();
        }
        self.block.pop().unwrap_or_default()
    }

    fn new_block(&mut self) -> Vec<Vec<usize>> {
        let n = self.n;
        // 0, 1, n-1, 2, n-2 ...: the steps between neighbours are all different.
        let zigzag = |i: usize| if i % 2 == 1 { i.div_ceil(2) } else { (n - i / 2) % n };
        let mut names: Vec<usize> = (0..n).collect();
        self.random.shuffle(&mut names);
        let mut rows: Vec<Vec<usize>> =
            (0..n).map(|row| (0..n).map(|i| names[(zigzag(i) + row) % n]).collect()).collect();
        if self.block_len() == 2 * n {
            let mirrored: Vec<Vec<usize>> =
                rows.iter().map(|r| r.iter().rev().copied().collect()).collect();
            rows.extend(mirrored);
        }
        self.random.shuffle(&mut rows);
        rows
    }
}

/// How much load a phase gets.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    /// This many operations.
    Count(u64),
    /// As many as fit in this many seconds.
    Seconds(f64),
}

/// At which moments operations are sent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pace {
    /// Closed loop: each one as soon as the one before is answered. Measures capacity.
    Free,
    /// Open loop at even gaps: operations a second.
    Fixed(f64),
    /// Open loop with exponential gaps, as independent callers make them: operations a second.
    Poisson(f64),
    /// Open loop with exponential gaps at this share (0 to 1) of the capacity measured before.
    Share(f64),
}

impl Pace {
    /// The planned moments in nanoseconds from the start, without end; none for [`Pace::Free`].
    /// They do not wait for replies: latency counts from them.
    pub fn moments(self, seed: u64, capacity: f64) -> Option<Moments> {
        let (rate, poisson) = match self {
            Pace::Free => return None,
            Pace::Fixed(rate) => (rate, false),
            Pace::Poisson(rate) => (rate, true),
            Pace::Share(share) => (share * capacity, true),
        };
        (rate > 0.0 && rate.is_finite()).then(|| Moments {
            gap: 1e9 / rate,
            at: 0.0,
            random: poisson.then(|| Random::new(seed)),
        })
    }
}

/// The planned moments of an open loop.
#[derive(Debug, Clone)]
pub struct Moments {
    gap: f64,
    at: f64,
    random: Option<Random>,
}

impl Iterator for Moments {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        let now = self.at;
        self.at += self.gap * self.random.as_mut().map_or(1.0, Random::exponential);
        Some(now as u64)
    }
}

/// When a run ends, fixed beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StopRule {
    /// Enough: half the width of the 95 % interval of every paired log-ratio is at most this
    /// (and then a quarter more, see [`Stopping`]).
    pub precision: f64,
    /// No sooner than after this many starts (fresh data).
    pub min_starts: u32,
    /// Rounds on each start: 1 where fresh data are cheap, for starts are what intervals are made of.
    pub rounds_per_start: u32,
    /// No later than after this many rounds.
    pub max_rounds: u32,
    /// No round begins after this many seconds.
    pub budget: f64,
}

impl Default for StopRule {
    fn default() -> Self {
        StopRule {
            precision: 0.02,
            min_starts: 12,
            rounds_per_start: 1,
            max_rounds: 60,
            budget: 120.0,
        }
    }
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stopped {
    /// Every interval is as narrow as was asked.
    Precise,
    /// The seconds were up.
    Budget,
    /// The rounds were up.
    Rounds,
    /// The caller asked for it.
    Interrupted,
}

impl StopRule {
    /// Begins to watch a run.
    pub fn watch(self) -> Stopping {
        Stopping { rule: self, narrow_at: None }
    }
}

/// The stop rule at work.
///
/// To stop the moment every interval happens to be narrow would favour the runs that look calmer
/// than they are: simulated, 7 to 8 % of the 95 % intervals then miss the truth. So the run goes on
/// for a quarter more starts, which brings that back to 5 to 6 %.
#[derive(Debug, Clone)]
pub struct Stopping {
    rule: StopRule,
    /// After how many starts every interval was narrow for the first time.
    narrow_at: Option<u32>,
}

impl Stopping {
    /// Whether to end after `rounds` rounds and `seconds`; `starts` says after how many starts if
    /// one has just been finished. `narrow` says whether every interval is as narrow as was asked,
    /// and is looked at only when it matters.
    pub fn ends(
        &mut self,
        rounds: u32,
        starts: Option<u32>,
        seconds: f64,
        narrow: impl FnOnce() -> bool,
    ) -> Option<Stopped> {
        if rounds >= self.rule.max_rounds {
            return Some(Stopped::Rounds);
        }
        if seconds >= self.rule.budget {
            return Some(Stopped::Budget);
        }
        let starts = starts.filter(|&s| s >= self.rule.min_starts)?;
        if self.narrow_at.is_none() && narrow() {
            self.narrow_at = Some(starts);
        }
        let enough = self.narrow_at?.div_ceil(4).checked_add(self.narrow_at?)?;
        (starts >= enough).then_some(Stopped::Precise)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_balanced_in_place_and_in_neighbours() {
        for n in 1..=12 {
            let mut orders = Orders::new(n, 3);
            let len = orders.block_len();
            let (mut place, mut after) = (vec![vec![0; n]; n], vec![vec![0; n]; n]);
            for _ in 0..len {
                let order = orders.next_order();
                for (i, &who) in order.iter().enumerate() {
                    place[who][i] += 1;
                    if i > 0 {
                        after[order[i - 1]][who] += 1;
                    }
                }
            }
            assert!(place.iter().flatten().all(|&c| c == len / n), "places of {n}: {place:?}");
            for (a, row) in after.iter().enumerate() {
                for (b, &count) in row.iter().enumerate() {
                    let wanted = if a == b { 0 } else { len / n };
                    assert_eq!(count, wanted, "{b} after {a} of {n}");
                }
            }
        }
    }

    #[test]
    fn orders_follow_from_the_seed_and_differ_between_blocks() {
        let run = |seed| {
            let mut o = Orders::new(6, seed);
            (0..12).map(|_| o.next_order()).collect::<Vec<_>>()
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
        assert_ne!(run(1)[..6], run(1)[6..]);
        assert!(Orders::new(0, 1).next_order().is_empty());
    }

    #[test]
    fn moments_keep_their_rate_and_do_not_wait() {
        let fixed: Vec<u64> = Pace::Fixed(200.0).moments(1, 0.0).unwrap().take(4).collect();
        assert_eq!(fixed, [0, 5_000_000, 10_000_000, 15_000_000]);
        let last = Pace::Poisson(1000.0).moments(1, 0.0).unwrap().nth(50_000).unwrap();
        assert!((last as f64 / 5e10 - 1.0).abs() < 0.02, "{last}");
        let half = Pace::Share(0.5).moments(1, 2000.0).unwrap().nth(50_000).unwrap();
        assert_eq!(half, last);
        assert!(Pace::Free.moments(1, 0.0).is_none() && Pace::Fixed(0.0).moments(1, 0.0).is_none());
    }

    #[test]
    fn the_stop_rule_asks_for_precision_last_and_goes_on_a_quarter() {
        let mut stopping =
            StopRule { min_starts: 8, rounds_per_start: 2, ..StopRule::default() }.watch();
        assert_eq!(stopping.ends(60, None, 0.0, || unreachable!()), Some(Stopped::Rounds));
        assert_eq!(stopping.ends(6, None, 121.0, || unreachable!()), Some(Stopped::Budget));
        assert_eq!(stopping.ends(6, Some(3), 1.0, || unreachable!()), None);
        assert_eq!(stopping.ends(16, Some(8), 1.0, || false), None);
        assert_eq!(stopping.ends(18, Some(9), 1.0, || true), None);
        assert_eq!(stopping.ends(19, None, 1.0, || unreachable!()), None);
        assert_eq!(stopping.ends(22, Some(11), 1.0, || unreachable!()), None);
        assert_eq!(stopping.ends(24, Some(12), 1.0, || unreachable!()), Some(Stopped::Precise));
    }
}
