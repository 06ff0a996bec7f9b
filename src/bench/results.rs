//! What a run measured, as JSON: the one thing every report is made from.
//!
//! Raw rounds are kept, so that every derived figure can be derived again (`derive.rs`). A file
//! carries what is needed to judge it: plan, seeds, versions, machine, settings (rule 21).
//! `docs/results-schema.md` describes each field for other tools; it changes with [`SCHEMA`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

mod cache;
mod compared;
mod stores;

pub use cache::{CacheClient, CacheRow, Published};
pub use compared::{Comparison, Difference, Pair, Run};
pub use stores::{Disk, Durability, Kept, Latency, ServerUse, Tally};

use super::schedule::StopRule;
pub use super::{
    histogram::Histogram,
    schedule::{Pace, Stopped},
};

/// The version of the shape below. A reader refuses a higher one.
pub const SCHEMA: u32 = 1;

/// A run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Results {
    /// [`SCHEMA`] of the writer.
    pub schema: u32,
    /// Which bench: `formats`, `objects`, `stores`, `cache`.
    pub bench: String,
    /// The workload that ran on stores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<Workload>,
    /// When it began, RFC 3339.
    pub started: String,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Why it ended; `None` while it runs, and after it was killed.
    pub stopped: Option<Stopped>,
    /// What was planned.
    pub plan: Plan,
    /// Name to version: steelyard, the compiler, each library measured.
    pub software: BTreeMap<String, String>,
    /// Where it ran.
    pub machine: Machine,
    /// The clock that took the times.
    pub clock: Clock,
    /// What else has to be known to judge the figures: levels, page cache, durability.
    pub settings: BTreeMap<String, String>,
    /// What was measured on.
    pub dataset: Dataset,
    /// The name of the competitor that the others are compared with.
    pub baseline: String,
    /// Who ran.
    pub competitors: Vec<Contender>,
    /// What they did.
    pub phases: Vec<Phase>,
    /// One for each competitor and phase.
    pub cells: Vec<Cell>,
    /// Comparisons beside those with the baseline.
    pub contrasts: Vec<Contrast>,
    /// How quiet the machine was, before each round.
    pub probes: Vec<Probe>,
}

/// Which time figures and verdicts are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Elapsed time: what a user waits for.
    #[default]
    Elapsed,
    /// Processor time, user and system, of all threads: hardly touched by others on the machine,
    /// and blind to waiting for disks and networks.
    Processor,
}

/// How the run was to go: all that the figures follow from, beside the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Orders, data and resamples follow from it.
    pub seed: u64,
    /// Which time figures and verdicts are made of.
    pub basis: Basis,
    /// When to end.
    pub stop: StopRule,
    /// A timed window is at least this long (small passes are repeated).
    pub window_ns: u64,
    /// A warm-up window is about this long.
    pub warm_up_ns: u64,
    /// Resamples for each interval.
    pub resamples: u32,
    /// How often an interval is to enclose the truth.
    pub level: f64,
    /// The smallest ratio called a difference: 1.03.
    pub effect: f64,
}

impl Default for Plan {
    fn default() -> Self {
        Plan {
            seed: 1,
            basis: Basis::Elapsed,
            stop: StopRule::default(),
            window_ns: 5_000_000,
            warm_up_ns: 2_000_000,
            resamples: 10_000,
            level: 0.95,
            effect: 1.03,
        }
    }
}

/// The machine.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// Logical processors this process may use.
    pub cores: usize,
    /// Bytes of memory.
    pub memory: u64,
    /// Kernel name and release.
    pub kernel: String,
    /// The distribution's name.
    pub os: String,
    /// The frequency governor, where there is one.
    pub governor: Option<String>,
    /// True where the processor says it runs under a hypervisor.
    pub virtual_machine: Option<bool>,
    /// Vector extensions that the codecs can use.
    pub features: Vec<String>,
    /// Load average of the minute before the run.
    pub load: Option<f64>,
}

/// The clock (rule 17).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Clock {
    /// What a reading costs.
    pub read_ns: f64,
    /// The smallest step seen between two readings.
    pub step_ns: f64,
}

/// The records.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Dataset {
    /// A file name, or the generator and its seed.
    pub name: String,
    /// How many records were measured.
    pub records: u64,
    /// Of how many.
    pub of: u64,
    /// What records they are, in a word or two: `MARC records`, `documents`, `objects`.
    pub kind: String,
    /// What was found wrong with them or left out, in sentences; empty where nothing was.
    pub remarks: Vec<String>,
    /// Bytes of all records as JSON lines, by wrap: `""` as they are, `gzip`, `zstd`; empty where
    /// that was not weighed. A sample is multiplied.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sizes: BTreeMap<String, u64>,
}

/// The workload that ran on stores.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// What it does, in a sentence.
    pub about: String,
    /// Where it was published, if it was.
    pub source: Option<String>,
    /// True where it ran with the counts that were published.
    pub as_published: bool,
    /// The workload itself, as it stood in its file.
    pub text: String,
}

/// Who ran.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Contender {
    /// The one word it goes by.
    pub name: String,
    /// True for the null competitor, which does nothing and shows what the harness costs.
    pub null: bool,
    /// Why it could not take part at all; `None` where it did.
    pub refused: Option<String>,
    /// What came back from it before anything was timed (rule 1).
    pub proof: Option<Proof>,
    /// Bytes of all records, by wrap: `""` as they are, `gzip`, `zstd` of the whole.
    pub sizes: BTreeMap<String, u64>,
    /// The store, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<Kept>,
    /// The client, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<CacheClient>,
}

/// The round trip that comes before timing (rule 1).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Proof {
    /// How many records were written, read back and compared by value.
    pub records: u64,
    /// How many came back equal.
    pub equal: u64,
    /// How many could not be written.
    pub refused: u64,
    /// The first difference, or the first refusal, for a reader.
    pub first: Option<String>,
    /// What the format says it loses.
    pub declared: String,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Phase {
    /// Unique: the name, and `@size` where there is a size.
    pub id: String,
    /// The one word for it: `decode`.
    pub name: String,
    /// The table it belongs to; verdicts hold for a whole table (Holm).
    pub table: String,
    /// What is inside the timed window, in a phrase.
    pub about: String,
    /// Operations in one pass.
    pub units: u64,
    /// The place on the curve's axis, where the phase is a point of a curve.
    pub size: Option<u64>,
    /// The phases it is the sum of, within each round; empty where it was itself timed.
    pub sum_of: Vec<String>,
    /// What an operation is, in the plural: `records`, `queries`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// At which moments operations were sent, where they were sent one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
    /// How many operations were on their way at once, at most; 0 where that says nothing.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub concurrency: u32,
    /// The row of the cache bench that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheRow>,
}

/// One competitor in one phase.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Cell {
    /// Name of the competitor.
    pub competitor: String,
    /// Id of the phase.
    pub phase: String,
    /// Why it was not timed; `None` where it was.
    pub refused: Option<String>,
    /// Operations in each timed window.
    pub units: u64,
    /// Bytes read or written in each timed window, in the format.
    pub bytes: u64,
    /// Parts met in each timed window (fields of records): the same for every competitor.
    pub items: u64,
    /// Nanoseconds an operation took in each warm-up window.
    pub warm_up: Vec<f64>,
    /// Whether those settled (rule 7).
    pub settled: bool,
    /// Memory, from a separate untimed pass.
    pub memory: Option<Memory>,
    /// How long single operations took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    /// What happened to the operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tally: Option<Tally>,
    /// Operations a second that were planned, where the pace is a share of capacity: the median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered: Option<f64>,
    /// System calls of the competitor for each operation, counted in a pass that was not timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_calls: Option<f64>,
    /// Every timed window.
    pub rounds: Vec<Round>,
    /// What follows from the rounds.
    pub summary: Option<Summary>,
}

/// One timed window.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Round {
    /// Which start (fresh data), from 0.
    pub start: u32,
    /// Which round of the run, from 0.
    pub round: u32,
    /// Its place in the order of that round and phase, from 0.
    pub place: u32,
    /// Elapsed nanoseconds.
    pub ns: u64,
    /// Processor time in user mode, nanoseconds, all threads.
    pub user_ns: u64,
    /// Processor time in the kernel.
    pub system_ns: u64,
    /// Context switches because it waited.
    pub waits: u64,
    /// Context switches because something else was let in.
    pub preemptions: u64,
    /// Operations done in this window, where that is not the cell's number (it ended by the clock).
    #[serde(default, skip_serializing_if = "is_none")]
    pub units: u64,
    /// What the private server used, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerUse>,
}

/// Memory an operation takes.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Memory {
    /// Allocations for each operation; `None` where the counting allocator is not installed.
    pub allocations: Option<f64>,
    /// Bytes asked for, for each operation.
    pub allocated: Option<f64>,
    /// Bytes at the peak of the whole pass above what was there before.
    pub peak: Option<u64>,
}

/// A figure and its interval; `None` where there are too few rounds for one.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Figure {
    /// The median.
    pub middle: f64,
    /// The ends of the interval.
    pub low: Option<f64>,
    #[allow(missing_docs)]
    pub high: Option<f64>,
}

/// What follows from a cell's rounds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Summary {
    /// Rounds.
    pub n: u32,
    /// Starts.
    pub starts: u32,
    /// Nanoseconds for each operation: the median of the rounds' means (rule 12).
    pub ns: Figure,
    /// Processor time for each operation, mean over all rounds.
    pub user_ns: f64,
    #[allow(missing_docs)]
    pub system_ns: f64,
    /// Rounds (indexes) that lie far off. Flagged, never dropped (rule 15).
    pub outliers: Vec<u32>,
    /// What the harness takes of it, from 0 to 1 (rule 11).
    pub harness: Option<f64>,
    /// Compared with the baseline.
    pub versus: Option<Versus>,
    /// Its rank group in the phase, from 1 (rule 14).
    pub group: u32,
}

/// A comparison of two cells: the time of one over the time of the other.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Versus {
    /// The ratio and its interval; above 1 means slower.
    pub ratio: Figure,
    /// p by itself.
    pub p: f64,
    /// p as adjusted over its table.
    pub adjusted: f64,
    /// What it comes to.
    pub verdict: Verdict,
}

/// What a comparison comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Less time: the interval excludes 1 and the effect is worth a word.
    Faster,
    /// More time, likewise.
    Slower,
    /// No difference shown.
    NoDifference,
}

/// A comparison that somebody asked for beside those with the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contrast {
    /// What it shows, in a phrase.
    pub about: String,
    /// Competitor and phase id whose time is divided …
    pub of: (String, String),
    /// … by the time of this one.
    pub to: (String, String),
    /// The answer.
    pub versus: Option<Versus>,
}

/// How quiet the machine was before a round (rule 10).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Probe {
    /// Which round follows.
    pub round: u32,
    /// A fixed loop of arithmetic, run for some milliseconds: nanoseconds a loop, on average …
    pub spin_ns: u64,
    /// … and the shortest. Where they differ, something else ran in between.
    pub spin_least_ns: u64,
    /// A small synced write, nanoseconds; `None` where no file could be written.
    pub sync_ns: Option<u64>,
    /// Load average of the last minute.
    pub load: Option<f64>,
    /// Share of processor time that the hypervisor gave to others since the last probe.
    pub steal: Option<f64>,
    /// Share of the machine's processor time that other processes used since the last probe.
    #[serde(default)]
    pub others: Option<f64>,
    /// Share of the time of the round's windows that waited for nothing in which they did not run
    /// all the same, because another did; derived.
    #[serde(default)]
    pub held: Option<f64>,
    /// Times a second that something else, or another thread of its own, was let in during the
    /// round's timed windows; derived.
    pub preemptions: f64,
    /// Whether this round's surroundings were noisy; derived.
    pub noisy: bool,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

fn is_none(n: &u64) -> bool {
    *n == 0
}

impl Results {
    /// The competitor of this name.
    pub fn competitor(&self, name: &str) -> Option<&Contender> {
        self.competitors.iter().find(|c| c.name == name)
    }

    /// The phase with this id.
    pub fn phase(&self, id: &str) -> Option<&Phase> {
        self.phases.iter().find(|p| p.id == id)
    }

    /// The cell of a competitor in a phase.
    pub fn cell(&self, competitor: &str, phase: &str) -> Option<&Cell> {
        self.cells.iter().find(|c| c.competitor == competitor && c.phase == phase)
    }

    /// The share of rounds with noisy surroundings, and whether that marks the run.
    pub fn noise(&self) -> (f64, bool) {
        let noisy = self.probes.iter().filter(|p| p.noisy).count() as f64;
        let share = noisy / self.probes.len().max(1) as f64;
        (share, share > 0.2)
    }
}

impl Phase {
    /// A phase that is timed.
    pub fn new(name: &str, table: &str, units: u64, about: &str) -> Phase {
        Phase {
            id: name.into(),
            name: name.into(),
            table: table.into(),
            about: about.into(),
            units,
            ..Phase::default()
        }
    }

    /// The same phase as a point of a curve.
    pub fn at(mut self, size: u64) -> Phase {
        self.id = format!("{}@{size}", self.name);
        self.size = Some(size);
        self
    }
}

impl Figure {
    /// The largest distance of an end from the middle: what stands after `±`.
    pub fn reach(&self) -> Option<f64> {
        Some((self.high? - self.middle).max(self.middle - self.low?))
    }

    /// The same figure in another unit.
    pub fn scaled(&self, by: f64) -> Figure {
        Figure {
            middle: self.middle * by,
            low: self.low.map(|v| v * by),
            high: self.high.map(|v| v * by),
        }
    }

    /// `by` divided by it, as times become rates; the ends change places.
    pub fn inverse(&self, by: f64) -> Figure {
        Figure {
            middle: by / self.middle,
            low: self.high.map(|v| by / v),
            high: self.low.map(|v| by / v),
        }
    }
}

impl Cell {
    /// Operations done in one of its windows.
    pub fn units_of(&self, round: &Round) -> u64 {
        if round.units > 0 { round.units } else { self.units }
    }

    /// Nanoseconds an operation took in each round, with start and round.
    pub fn means(&self, basis: Basis) -> Vec<(u32, u32, f64)> {
        let time = |r: &Round| match basis {
            Basis::Elapsed => r.ns,
            Basis::Processor => r.user_ns + r.system_ns,
        };
        let units = |r: &Round| self.units_of(r).max(1) as f64;
        self.rounds.iter().map(|r| (r.start, r.round, time(r) as f64 / units(r))).collect()
    }
}
