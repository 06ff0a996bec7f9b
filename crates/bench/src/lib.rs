//! Measuring: who is faster, by how much, and how sure that is.
//!
//! The core knows no format and no store by name. It measures [`Competitor`](run::Competitor)s in
//! phases ([`run`]), in balanced order and until a rule fixed beforehand says so ([`schedule`]), with
//! a clock and counters whose own cost is known ([`instruments`] and the files it uses), and turns
//! raw rounds into figures with intervals and verdicts ([`derive`](mod@derive), [`stats`]). What comes
//! out is [`results::Results`]; `report` makes text of it. The rules that all this keeps are
//! written down, with their sources, in `docs/measuring.md`, the shape of the results in
//! `docs/results-schema.md`.
//!
//! [`runs`] puts one run against another; [`against`] has two builds of this program take turns.
//!
//! [`stats`], [`schedule`], [`derive`](mod@derive), [`runs`] and [`histogram`] are pure: seeded, no I/O, no
//! clock. `acceptance.rs` tries the whole method on competitors whose true cost is known.
//!
//! The benches stand beside the core, one folder each, and are all that knows what is measured:
//! [`formats`], [`objects`], [`stores`] (whose work is a [`workload`]), [`cache`], [`tenants`]. To add one: a folder with `run(&Options, progress) -> Result<Results>`, whose
//! competitors implement [`Competitor`](run::Competitor), and a page in `crates/report`.

pub mod accounting;
pub mod against;
pub mod allocations;
pub mod cache;
mod child;
pub mod cleanup;
pub mod clock;
pub mod formats;
pub mod instruments;
mod layout;
pub mod machine;
pub mod network;
pub mod objects;
pub mod processors;
pub mod quiet;
pub mod run;
pub mod save;
pub mod scratch;
pub mod stop;
pub mod stores;
mod strace;
pub mod tenants;
pub mod trial;
mod windows;
pub mod workload;

#[cfg(test)]
mod acceptance;
// What tests do without a server they need. The file is a link to that of tests/it: a package has a copy of it.
#[cfg(test)]
#[allow(dead_code, unreachable_pub, unused_imports, unused_macros)]
mod skips;

use steelyard_base::{Error, ErrorKind, Result, timer};
use steelyard_format::{format, record};
use steelyard_marc as marc;
use steelyard_memcache as memcache;
pub use steelyard_results::{self as results, derive, histogram, random, runs, schedule, stats};
use steelyard_store::{durability, file, link, server, store};

// The example of the README is compiled and run.
#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;
