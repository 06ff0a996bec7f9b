//! What a results file says of the run as a whole: its plan, the machine, the clock, the records, the
//! workload.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::schedule::StopRule;

/// Which time figures and verdicts are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Elapsed time: what a user waits for.
    #[default]
    Elapsed,
    /// Processor time, user and system, of all threads: touched less by others on the machine,
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
            window_ns: 50_000_000,
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
    /// How many could not be read, and are left out.
    #[serde(default, skip_serializing_if = "super::stores::is_zero")]
    pub unreadable: u64,
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
