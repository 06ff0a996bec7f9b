//! Self-test on the real machine (rule 22): the baseline runs a second time, and once more slowed by 5 %.
//!
//! `acceptance.rs` does this on a simulated clock. On the machine at hand it shows whether the verdicts of a run can be
//! trusted: the second baseline should show no difference, and the slowed one should be detected.

use super::{
    results::Phase,
    run::{Competitor, Counts},
};
use crate::Result;

/// The name under which the baseline runs a second time.
pub const AGAIN: &str = "again";
/// The name under which it runs slowed.
pub const SLOWED: &str = "slowed";
/// One operation more for each so many: 5 %.
const EXTRA: u64 = 20;

/// A competitor that does 5 % of its operations twice, and counts them once.
pub struct Slowed<C>(pub C);

impl<C: Competitor> Competitor for Slowed<C> {
    fn refuses(&self, phase: &Phase) -> Option<String> {
        self.0.refuses(phase)
    }

    fn prepare(&mut self, start: u32) -> Result<()> {
        self.0.prepare(start)
    }

    fn run(&mut self, phase: &Phase, units: u64) -> Result<Counts> {
        let counts = self.0.run(phase, units)?;
        // Windows of fewer than 20 operations are those that look for a size, and are not kept.
        if units >= EXTRA {
            self.0.run(phase, units / EXTRA)?;
        }
        Ok(counts)
    }

    fn tidy(&mut self, phase: &Phase) -> Result<()> {
        self.0.tidy(phase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Counting(u64);

    impl Competitor for Counting {
        fn prepare(&mut self, _: u32) -> Result<()> {
            Ok(())
        }
        fn run(&mut self, _: &Phase, units: u64) -> Result<Counts> {
            self.0 += units;
            Ok(Counts { done: units, ..Counts::default() })
        }
    }

    #[test]
    fn five_percent_more_work_for_the_same_counts() {
        let mut slowed = Slowed(Counting(0));
        let counts = slowed.run(&Phase::default(), 1000).unwrap();
        assert_eq!((counts.done, slowed.0.0), (1000, 1050));
        slowed.run(&Phase::default(), 10).unwrap();
        assert_eq!(slowed.0.0, 1060);
    }
}
