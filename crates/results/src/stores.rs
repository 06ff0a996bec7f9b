//! What a results file says of stores: how each kept the records, what its server used, how long
//! single operations took, and what went wrong.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Durability, Figure, Round};
use crate::{
    histogram::Histogram,
    stats::{Paired, Sample, by_start},
};

/// A store that took part.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Kept {
    /// Its URL, without passwords.
    pub url: String,
    /// The product's name, as it gives it.
    pub product: String,
    /// Its version.
    pub version: String,
    /// The private server that was started for it; `None` in this process, and where it is the
    /// user's own.
    pub server: Option<String>,
    /// How it is talked to: `in this process`, `TCP`, `unix socket`.
    pub connection: String,
    /// Whose code speaks to it: `own wire client`, or a crate with its version. Empty where nothing is
    /// known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub client: String,
    /// How records lie in it: `document`, `columns`, `blob`.
    pub layout: String,
    /// The format of blobs, with wraps.
    pub format: Option<String>,
    /// What an acknowledged write has survived.
    pub durability: Durability,
    /// Settings that decide it, and others worth knowing, as read back.
    pub settings: BTreeMap<String, String>,
    /// What it takes, for each start.
    pub disk: Vec<Disk>,
}

/// A network that was put between clients and servers (`--network`), in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Network {
    /// How long a round trip was to take, beyond what it takes on loopback.
    pub round_trip_ns: u64,
    /// What the relay itself adds to a round trip without a delay: the median of many.
    pub relay_ns: u64,
    /// What it added with the delay: the median of many.
    pub measured_ns: u64,
}

/// How a store in this process is talked to, as [`Kept::connection`] says it.
pub const IN_PROCESS: &str = "in this process";

impl Kept {
    /// True where its work is done by a server that is not ours to look at.
    pub fn is_elsewhere(&self) -> bool {
        self.server.is_none() && self.connection != IN_PROCESS
    }
}

/// What a store was sent in a phase: one operation of its kind, with its own values.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Statement {
    /// The statement, and on a line of its own the values bound to it; the command, where the store
    /// has no language.
    pub text: String,
    /// The plan, as the store's `EXPLAIN` has it; only where it was asked for (`--explain`), and the
    /// store has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
}

/// Bytes allocated on disk, less what an empty store has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Bytes {
    /// Data.
    pub data: u64,
    /// Log files, which hold data too, until they are written to their places.
    pub logs: u64,
}

impl Bytes {
    /// Data and logs together.
    pub fn total(&self) -> u64 {
        self.data + self.logs
    }

    /// Less what was there before.
    pub fn less(&self, before: &Bytes) -> Bytes {
        Bytes {
            data: self.data.saturating_sub(before.data),
            logs: self.logs.saturating_sub(before.logs),
        }
    }
}

/// What a store takes at the end of a start, after it has settled (rule 20).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Disk {
    /// Which start, from 0.
    pub start: u32,
    /// Bytes of data on disk, less what an empty one has.
    pub data: u64,
    /// Bytes of log files.
    pub logs: u64,
    /// How many records are in it; 0 where that is not known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub records: u64,
    /// Bytes of memory of its server (Pss) before anything was written …
    #[serde(default, skip_serializing_if = "is_zero")]
    pub memory_empty: u64,
    /// … and at the end.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub memory: u64,
}

impl Disk {
    /// Data and logs together.
    pub fn total(&self) -> u64 {
        self.data + self.logs
    }
}

pub(super) fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// What rewriting all records did to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Bloat {
    /// Before, after the store had settled.
    pub before: Bytes,
    /// After.
    pub after: Bytes,
    /// After it had settled again; `None` where it has nothing of that kind to do.
    pub settled: Option<Bytes>,
    /// Nanoseconds that took.
    pub settle_ns: u64,
}

/// What an index costs beside the time to make it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct IndexCost {
    /// Bytes on disk, of the settled store with it less those without it; `None` where nobody could
    /// look.
    pub bytes: Option<u64>,
    /// Writes that were timed, one after another: the same without it and with it.
    pub writes: u64,
    /// Nanoseconds for all of them without it.
    pub without_ns: u64,
    /// Nanoseconds for all of them with it.
    pub with_ns: u64,
}

impl IndexCost {
    /// So many times as long writes take with it as without it, by the rounds of a cell: the same
    /// arithmetic as of two competitors, with an interval from 5 starts on. `serial` is by how much a
    /// round is like the one before, `error` the share of intervals that may miss.
    pub fn ratio(rounds: &[Round], serial: f64, error: f64) -> Option<Figure> {
        let logs = rounds.iter().filter_map(|round| {
            let index = round.index.filter(|i| i.without_ns > 0 && i.with_ns > 0)?;
            let value = (index.with_ns as f64 / index.without_ns as f64).ln();
            Some(Sample { start: round.start, value })
        });
        let pair = Paired::of(&by_start(&logs.collect::<Vec<_>>()), serial)?;
        let ends = pair.interval(error);
        Some(Figure { middle: pair.ratio(), low: ends.map(|e| e.0), high: ends.map(|e| e.1) })
    }
}

/// What was left after the server was killed in the middle of writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Recovery {
    /// Writes that were acknowledged before it was killed …
    pub acknowledged: u64,
    /// … and are not there.
    pub lost: u64,
    /// Records that were there before those writes …
    pub earlier: u64,
    /// … and are not there any more.
    pub earlier_lost: u64,
}

/// A phase with a limited cache.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Room {
    /// The size of the server's cache, as a share of what the data take on disk.
    pub share: f64,
    /// Whether the operations were sent once before; else the caches were empty.
    pub warm: bool,
}

/// How long single operations took, in nanoseconds; all rounds added up (rule 12). Operations that
/// failed or found nothing are not among them, but in the [`Tally`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Latency {
    /// From the planned moment to the answer, in an open loop: what a caller waits for. In a closed
    /// loop the same as service.
    pub response: Histogram,
    /// From sending to the answer; `None` in a closed loop.
    pub service: Option<Histogram>,
    /// From the planned moment to sending, of every operation that was sent: how late the plan was
    /// kept. `None` in a closed loop.
    pub lag: Option<Histogram>,
}

impl Latency {
    /// Of a window in a closed loop, empty, or of an open one.
    pub fn of_window(open: bool) -> Latency {
        let part = || open.then(Histogram::growing);
        Latency { response: Histogram::growing(), service: part(), lag: part() }
    }

    /// Adds another's counts.
    pub fn add(&mut self, other: &Latency) {
        let add = |to: &mut Option<Histogram>, from: &Option<Histogram>| match (to, from) {
            (Some(to), Some(from)) => to.merge(from),
            (to @ None, Some(from)) => *to = Some(from.clone()),
            (_, None) => {}
        };
        self.response.merge(&other.response);
        add(&mut self.service, &other.service);
        add(&mut self.lag, &other.lag);
    }
}

/// What happened to the operations of all rounds (rule 2). Figures are made of `done` only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Done and found good.
    pub done: u64,
    /// Ended with an error …
    pub failed: u64,
    /// … of which so many because no answer came in time.
    pub timed_out: u64,
    /// Found nothing where something had to be.
    pub missed: u64,
    /// Sent over a millisecond after their planned moment.
    pub late: u64,
    /// Planned, and never sent, because the window ended.
    pub skipped: u64,
}

/// A plan of which less than this share was done was not kept.
const KEPT: f64 = 0.99;

impl Tally {
    /// Operations that were planned, whatever became of them.
    pub fn planned(&self) -> u64 {
        self.done + self.failed + self.missed + self.skipped
    }

    /// True where over 1 % of the planned operations failed or were never sent: what is said of the
    /// others is not said of all.
    pub fn fell_behind(&self) -> bool {
        ((self.failed + self.skipped) as f64) > (1.0 - KEPT) * self.planned() as f64
    }

    /// Both together.
    pub fn plus(self, other: Tally) -> Tally {
        Tally {
            done: self.done + other.done,
            failed: self.failed + other.failed,
            timed_out: self.timed_out + other.timed_out,
            missed: self.missed + other.missed,
            late: self.late + other.late,
            skipped: self.skipped + other.skipped,
        }
    }
}

/// What a private server used during a timed window, all its processes together (rule 19).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ServerUse {
    /// Processor time in user mode, nanoseconds.
    pub user_ns: u64,
    /// Processor time in the kernel.
    pub system_ns: u64,
    /// Its memory in bytes at the end of the window, what is shared counted once (Pss).
    pub memory: u64,
    /// Bytes it had written to disks.
    pub written: u64,
}
