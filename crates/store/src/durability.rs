//! What an acknowledged write has survived: four tiers, asked of stores and of the servers behind
//! them, and then observed.
//!
//! `docs/durability.md` and the file of each driver say which setting gives which tier; `medium.rs` says
//! what a folder lies on.

mod medium;

use std::{fmt, time::Duration};

pub use medium::Medium;
pub use steelyard_base::tier::Tier;

/// What limits the loss of a store that promises [`Tier::T2`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// It syncs at least this often.
    Time(Duration),
    /// It syncs once its log has grown by so many pages, however long that takes.
    Pages(u64),
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Time(every) => write!(f, "{} s", every.as_secs_f64()),
            Bound::Pages(pages) => write!(f, "{pages} pages of its log"),
        }
    }
}

/// Why a store promises less than its syncs would give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// The most it promises.
    pub most: Tier,
    /// The setting that limits it: `innodb_flush_method=nosync`.
    pub why: String,
}
