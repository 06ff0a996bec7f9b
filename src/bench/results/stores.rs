//! What a results file says of stores: how each kept the records, what its server used, how long
//! single operations took, and what went wrong.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::bench::histogram::Histogram;

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
    /// How records lie in it: `document`, `columns`, `blob`.
    pub layout: String,
    /// The format of blobs, with wraps.
    pub format: Option<String>,
    /// What an acknowledged write has survived.
    pub durability: Durability,
    /// Settings that decide it, and others worth knowing, as read back.
    pub settings: BTreeMap<String, String>,
    /// Bytes on disk, for each start.
    pub disk: Vec<Disk>,
}

/// Durability asked for, set and observed (rule 4).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Durability {
    /// The tier asked for, `t0` to `t3`; `None` for the store's usual one.
    pub asked: Option<String>,
    /// The tier its settings give, as read back from it.
    pub set: Option<String>,
    /// Syncs (fsync, fdatasync and the like) for each acknowledged write, counted in a pass of its
    /// own that was not timed; `None` where they could not be counted.
    pub syncs: Option<f64>,
    /// What is wrong with it, or why nothing was observed; `None` where all is well.
    pub remark: Option<String>,
    /// True where what was set or observed is not what was asked for.
    pub broken: bool,
}

impl Durability {
    /// What decides whether two stores may be ranked against each other (rule 4): the tier they
    /// have, and whether it is what was asked for.
    pub fn class(&self) -> (&str, bool) {
        (self.set.as_deref().unwrap_or(""), self.broken)
    }
}

/// Bytes allocated in a store's folder, after it has settled (rule 20).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Disk {
    /// Which start, from 0.
    pub start: u32,
    /// Data, less what an empty one has.
    pub data: u64,
    /// Log files.
    pub logs: u64,
}

/// How long single operations took, in nanoseconds; all rounds added up (rule 12).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Latency {
    /// From the planned moment to the answer, in an open loop: what a caller waits for. In a closed
    /// loop the same as service.
    pub response: Histogram,
    /// From sending to the answer; `None` in a closed loop.
    pub service: Option<Histogram>,
    /// From the planned moment to sending: how late the plan was kept. `None` in a closed loop.
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

impl Tally {
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
