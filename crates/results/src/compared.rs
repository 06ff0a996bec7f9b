//! What a run says beside an earlier one.

use serde::{Deserialize, Serialize};

use super::{Figure, Plan, Verdict, Versus};
use crate::stats::FEWEST;

/// A run against an earlier one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Comparison {
    /// Which bench both are of.
    pub bench: String,
    /// The newer run, whose plan and rules hold.
    pub new: Run,
    /// The older one.
    pub old: Run,
    /// How the comparison was made: resamples, level and effect are those of the newer run, and so is
    /// the basis, unless the two were interleaved on a noisy machine: then it is processor time.
    pub plan: Plan,
    /// True where two programs took turns in one run, so that their rounds are pairs.
    #[serde(default)]
    pub interleaved: bool,
    /// What is the same in both runs whatever was measured; none where they were interleaved.
    #[serde(default)]
    pub controls: Vec<Control>,
    /// What the controls of the processor took now over what they took then; every ratio has been
    /// divided by it. `None` without controls.
    #[serde(default)]
    pub drift: Option<f64>,
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

/// What a control measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Controlled {
    /// The null competitor in a phase.
    Null,
    /// A loop of arithmetic, timed before each round.
    Spin,
    /// A small synced write, timed before each round.
    Sync,
}

/// A control, in both runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Control {
    /// What it is.
    pub what: Controlled,
    /// The phase, of the null competitor.
    pub phase: Option<String>,
    /// Its time now over its time then.
    pub ratio: Figure,
    /// True where it was shown to differ: what depends on it is then not compared.
    pub differs: bool,
}

/// Why a pair is not compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bar<'a> {
    /// The runs, or the competitor in them, differ in this.
    Difference(&'a Difference),
    /// A control differs.
    Control(&'a Control),
    /// Something else used the machine during one of the runs, or both.
    Noise,
    /// They have no control in common.
    Uncontrolled,
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
    /// True where its time depends on how fast the disk syncs.
    #[serde(default)]
    pub syncs: bool,
}

impl Comparison {
    /// What keeps the two runs from being compared at all.
    pub fn barred(&self) -> Option<Bar<'_>> {
        if let Some(other) = self.differences.iter().find(|d| d.bars && d.competitor.is_none()) {
            return Some(Bar::Difference(other));
        }
        if self.interleaved {
            return None;
        }
        if self.new.noisy || self.old.noisy {
            return Some(Bar::Noise);
        }
        if self.controls.is_empty() {
            return Some(Bar::Uncontrolled);
        }
        let spin = self.controls.iter().find(|c| c.differs && c.what == Controlled::Spin);
        spin.map(Bar::Control)
    }

    /// What keeps the two figures of a pair from being compared.
    pub fn bar(&self, pair: &Pair) -> Option<Bar<'_>> {
        self.barred().or_else(|| {
            let its = |d: &&Difference| d.bars && d.competitor.as_ref() == Some(&pair.competitor);
            let depends = |c: &&Control| match c.what {
                Controlled::Null => c.phase.as_ref() == Some(&pair.phase),
                Controlled::Sync => pair.syncs,
                Controlled::Spin => true,
            };
            let mut controls = self.controls.iter().filter(|c| c.differs);
            (self.differences.iter().find(its).map(Bar::Difference))
                .or_else(|| controls.find(depends).map(Bar::Control))
        })
    }

    /// True where the two figures of a pair can be compared.
    pub fn holds(&self, pair: &Pair) -> bool {
        self.bar(pair).is_none()
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

impl Pair {
    /// How many starts the run has that has fewer, where that is too few for an interval.
    pub fn few(&self) -> Option<u32> {
        let fewest = self.starts.0.min(self.starts.1);
        (self.versus.ratio.low.is_none() || (fewest as usize) < FEWEST).then_some(fewest)
    }

    /// The smallest slowdown that would have been shown to be beyond `by`: 0.12 for 12 %. `None`
    /// where there are too few rounds for an interval.
    pub fn visible(&self, by: f64) -> Option<f64> {
        let ratio = self.versus.ratio;
        Some((1.0 + by) * ratio.middle / ratio.low? - 1.0)
    }
}
