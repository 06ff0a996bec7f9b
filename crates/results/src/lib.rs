//! What a run measured, as JSON: the one thing every report is made from.
//!
//! Raw rounds are kept, so that every derived figure can be derived again (`derive.rs`). A file
//! carries what is needed to judge it: plan, seeds, versions, machine, settings (rule 21).
//! `docs/results-schema.md` describes each field for other tools; it changes with [`SCHEMA`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

mod answers;
mod cache;
mod compared;
pub mod derive;
mod durability;
pub mod histogram;
mod json;
pub mod noise;
pub mod random;
pub mod runs;
pub mod schedule;
mod setting;
pub mod stats;
mod stores;
pub mod tenants;

pub use answers::{Family, Sensitivity, Verdict, Versus};
pub use cache::{CacheClient, CacheRow, Published};
pub use compared::{Bar, Comparison, Control, Controlled, Difference, Pair, Run};
pub use durability::{Class, Durability, Evidence, Later, Lies, Limited};
pub use setting::{Basis, Clock, Dataset, Machine, Plan, Workload};
pub use stores::{
    Bloat, Bytes, Disk, IN_PROCESS, IndexCost, Kept, Latency, Network, Recovery, Room, ServerUse,
    Statement, Tally,
};

pub use histogram::Histogram;
pub use json::Json;
pub use schedule::{Pace, Stopped};
pub use stats::FEWEST;

/// The version of the shape below. A reader refuses a higher one.
pub const SCHEMA: u32 = 1;

/// A run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Results {
    /// [`SCHEMA`] of the writer.
    pub schema: u32,
    /// Which bench: `formats`, `objects`, `stores`, `cache`, `tenants`.
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
    /// The name of the run in which this program took turns with another one, round by round; both
    /// have results under the same name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interleaved: Option<String>,
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
    /// The network between clients and servers, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
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
    /// How quiet the machine was, for each round or each competitor's turn in it.
    pub probes: Vec<Probe>,
    /// What it takes to hold tenants, where those were measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenants: Option<tenants::Tenants>,
    /// Every comparison of the run, decided together; derived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<Family>,
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
    /// Whose code reads and writes it, where it is a format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
}

/// Whose code was measured: `own`, `own, by serde`, or a crate and its version.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Code {
    /// Whose reader.
    pub reads: String,
    /// Whose writer.
    pub writes: String,
}

/// The round trip that comes before timing (rule 1).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Proof {
    /// How many records were written, read back and compared by value.
    pub records: u64,
    /// Of how many; 0 in files of before that was kept.
    #[serde(default, skip_serializing_if = "is_none")]
    pub of: u64,
    /// How many came back equal.
    pub equal: u64,
    /// How many came back with the same names and values, but names in another order.
    #[serde(default, skip_serializing_if = "is_none")]
    pub reordered: u64,
    /// How many could not be written.
    pub refused: u64,
    /// The first difference, or the first refusal, for a reader; a value that changed comes before
    /// names in another order.
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
    /// The table it belongs to.
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
    /// Which kind of phase it is: the word after `do =` of its workload; of tenants `query`, `insert` or `touch`; empty
    /// in other benches.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The phase that it belongs to: a point of a curve to the curve, a share of the capacity to the
    /// phase that measured it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// How much of the data the server's cache could hold, where that was limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<Room>,
    /// The row of the cache bench that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheRow>,
    /// The tenants that it is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenants: Option<tenants::Tenancy>,
    /// What its queries ask for, where it is of queries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<Asked>,
}

/// What the queries of a phase ask for.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Asked {
    /// Which records: `age >= 50`.
    pub condition: String,
    /// In which order: `created_at`, `-created_at` for descending; in any where empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sort: Vec<String>,
    /// How many at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// How many records an answer has by the records themselves, which every answer is checked against;
    /// of ranges, that are drawn anew each time, the mean. `None` where an earlier phase has changed
    /// records.
    pub records: Option<f64>,
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
    /// Whether the warm-ups of its rounds settled, but for a fifth of them at most (rule 7).
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
    /// What the store was sent, one statement of each kind, on the first start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<Statement>,
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
    /// True where the warm-up before this window did not settle.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unsettled: bool,
    /// What the private server used, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerUse>,
    /// Bytes that this process had written to disks.
    #[serde(default, skip_serializing_if = "is_none")]
    pub written: u64,
    /// Of a phase that rewrites: the disk before and after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bloat: Option<Bloat>,
    /// Of a phase that makes an index: what it costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<IndexCost>,
    /// Of a phase that kills the server: what was left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
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
    /// What the harness takes of it, from 0 to 1 (rule 11); `None` in an open loop, where most of the
    /// time is spent waiting for the next planned moment.
    pub harness: Option<f64>,
    /// Compared with the baseline.
    pub versus: Option<Versus>,
    /// Its rank in the phase: 1 more than there are competitors that were shown to be faster (rule
    /// 14); 0 where it was compared with nobody.
    pub group: u32,
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

/// How quiet the machine was before and during a round, or a competitor's turn in it (rule 10).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Probe {
    /// Which round follows.
    pub round: u32,
    /// Whose turn in the round follows, where competitors take longer turns; else it is the whole
    /// round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub competitor: Option<String>,
    /// A fixed loop of arithmetic, run for some milliseconds: nanoseconds a loop, on average …
    pub spin_ns: u64,
    /// … and the shortest. Where they differ, something else ran in between.
    pub spin_least_ns: u64,
    /// A loop that keeps all units of a core at work, the median of some, nanoseconds: it takes longer while
    /// another machine uses the same core, or its clock is slower. `None` where it was not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wide_ns: Option<u64>,
    /// A small synced write, nanoseconds; `None` where no file could be written.
    pub sync_ns: Option<u64>,
    /// Load average of the last minute.
    pub load: Option<f64>,
    /// Share of the machine's processor time that the hypervisor gave to others meanwhile.
    pub steal: Option<f64>,
    /// Share of the machine's processor time that processes other than this one and its private
    /// servers used meanwhile: during the round, or inside the windows of the turn. `None` where
    /// it is not known, as with a server that this program did not start.
    #[serde(default)]
    pub others: Option<f64>,
    /// Share of the time of its windows that waited for nothing in which they did not run
    /// all the same, because another did; derived.
    #[serde(default)]
    pub held: Option<f64>,
    /// Times a second that something else, or another thread of its own, was let in during its
    /// timed windows; derived.
    pub preemptions: f64,
    /// Whether the surroundings were noisy; derived.
    pub noisy: bool,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

fn is_false(value: &bool) -> bool {
    !value
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
        self.place(competitor, phase).map(|i| &self.cells[i])
    }

    /// Where among the cells that of a competitor in a phase is.
    pub fn place(&self, competitor: &str, phase: &str) -> Option<usize> {
        self.cells.iter().position(|c| c.competitor == competitor && c.phase == phase)
    }

    /// The answer of one competitor's time in a phase over another's; `None` where the two were not
    /// compared.
    pub fn answer(&self, of: &str, to: &str, phase: &str) -> Option<Versus> {
        self.family.as_ref()?.answer((of, phase), (to, phase))
    }

    /// The time that figures are made of: a store's are what its clients wait for, whatever verdicts go
    /// by (`--cpu`), as the client's processor time is only a part of what a store costs.
    pub fn figures(&self) -> Basis {
        if self.bench == "stores" { Basis::Elapsed } else { self.plan.basis }
    }

    /// The share of comparisons that something else disturbed, and whether that marks the run. Two
    /// competitors are compared within each round, and a comparison is disturbed where the turn of
    /// either was; without turns, where the round was.
    pub fn noise(&self) -> (f64, bool) {
        let mut rounds: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        let null = self.competitors.iter().find(|c| c.null).map(|c| &c.name);
        // Nobody is compared with the null competitor.
        for probe in self.probes.iter().filter(|p| null.is_none() || p.competitor.as_ref() != null)
        {
            let (turns, noisy) = rounds.entry(probe.round).or_default();
            *turns += 1;
            *noisy += u64::from(probe.noisy);
        }
        let pairs = |n: u64| n * n.saturating_sub(1);
        let disturbed = |&(turns, noisy): &(u64, u64)| match turns {
            1 => noisy as f64,
            _ => 1.0 - pairs(turns - noisy) as f64 / pairs(turns) as f64,
        };
        let share = rounds.values().map(disturbed).sum::<f64>() / rounds.len().max(1) as f64;
        (share, share > 0.2)
    }
}

impl Results {
    /// The share of probes by which the processor was over a tenth slower than at its best, though nothing else
    /// ran on this machine that could be seen, and how many times slower at most; `None` where that was not
    /// probed.
    pub fn slowed(&self) -> Option<(f64, f64)> {
        let times = || self.probes.iter().filter_map(|p| p.wide_ns);
        let (least, most) = (times().min()? as f64, times().max()? as f64);
        let slow = times().filter(|ns| *ns as f64 > 1.1 * least).count();
        Some((slow as f64 / times().count() as f64, most / least))
    }
}

impl Contender {
    /// Whether two of them may be ranked against each other: of stores, those of the same durability,
    /// known in the same way (rule 4).
    pub fn ranks_with(&self, other: &Contender) -> bool {
        match (&self.store, &other.store) {
            (Some(a), Some(b)) => a.durability.class().ranks_with(b.durability.class()),
            (a, b) => a.is_none() && b.is_none(),
        }
    }
}

impl Proof {
    /// How many came back with a value changed, missing or of another kind.
    pub fn changed(&self) -> u64 {
        self.records.saturating_sub(self.equal + self.reordered + self.refused)
    }
}

impl Phase {
    /// True where operations were sent at moments planned beforehand (an open loop): the time of a
    /// window says nothing of what anybody can do.
    pub fn is_open(&self) -> bool {
        self.pace.is_some_and(|pace| pace != Pace::Free)
    }

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

    /// Whether at most a fifth of the rounds' warm-ups did not settle.
    pub fn mostly_settled(&self) -> bool {
        5 * self.unsettled() <= self.rounds.len()
    }

    /// How many rounds' warm-ups did not settle.
    pub fn unsettled(&self) -> usize {
        self.rounds.iter().filter(|r| r.unsettled).count()
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

// The example of the README is compiled and run.
#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;
