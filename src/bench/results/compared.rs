//! What a run says beside an earlier one.

use serde::{Deserialize, Serialize};

use super::{Figure, Plan, Verdict, Versus};

/// A run against an earlier one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Comparison {
    /// Which bench both are of.
    pub bench: String,
    /// The newer run, whose plan and rules hold.
    pub new: Run,
    /// The older one.
    pub old: Run,
    /// How the comparison was made: basis, resamples, level and effect are those of the newer run.
    pub plan: Plan,
    /// What else differs between them, beside what they are compared for.
    pub differences: Vec<Difference>,
    /// Every competitor and phase that both have.
    pub pairs: Vec<Pair>,
    /// What only one of them has, in words.
    pub only_new: Vec<String>,
    #[allow(missing_docs)]
    pub only_old: Vec<String>,
}

/// Which run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Run {
    /// When it began, RFC 3339.
    pub started: String,
    /// The version of steelyard that made it.
    pub version: String,
    /// How many records, of which kind …
    pub records: u64,
    #[allow(missing_docs)]
    pub kind: String,
    /// … and what they are called.
    pub dataset: String,
    /// The machine, in a line.
    pub machine: String,
    /// True where something else used the machine during too many rounds.
    pub noisy: bool,
    /// True where it was ended before its stop rule said so.
    pub incomplete: bool,
}

/// Something that differs between two runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Difference {
    /// What: `processor`, `records`, `serde_json`.
    pub what: String,
    /// What it is in the newer run …
    pub new: String,
    /// … and what it was in the older one; empty where it was not there.
    pub old: String,
    /// True where figures cannot be compared because of it.
    pub bars: bool,
    /// The only competitor that it is about; `None` where it is about all.
    pub competitor: Option<String>,
}

/// A competitor in a phase, in both runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// Name of the competitor.
    pub competitor: String,
    /// Id of the phase.
    pub phase: String,
    /// What an operation is, in the plural; empty for records.
    pub unit: String,
    /// Nanoseconds an operation, now …
    pub new: Figure,
    /// … and then.
    pub old: Figure,
    /// Time now over time then: above 1 it became slower.
    pub versus: Versus,
    /// Starts with fresh data in each run.
    pub starts: (u32, u32),
}

impl Comparison {
    /// True where the two figures of a pair can be compared at all.
    pub fn holds(&self, pair: &Pair) -> bool {
        !self
            .differences
            .iter()
            .any(|d| d.bars && d.competitor.as_ref().is_none_or(|name| *name == pair.competitor))
    }

    /// Pairs that became slower by more than `by` (0.05 for 5 %), with their whole interval.
    pub fn regressions(&self, by: f64) -> Vec<&Pair> {
        let beyond = |pair: &&Pair| {
            self.holds(pair)
                && pair.versus.verdict == Verdict::Slower
                && pair.versus.ratio.low.is_some_and(|low| low > 1.0 + by)
        };
        self.pairs.iter().filter(beyond).collect()
    }
}
