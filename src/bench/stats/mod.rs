//! The arithmetic of measuring: pure, seeded, without I/O or clock.
//!
//! - [`figures`](self): median, quantiles with order-statistic intervals, outlier flags by MAD
//! - [`bootstrap`](self): intervals by resampling server starts
//! - [`compare`](self): paired ratios, Holm, verdicts, rank groups
//! - [`steady`](self): has a run of windows settled?
//! - `normal.rs`: the two distributions the others look things up in
//!
//! Nothing here knows what was measured. The rules that each function follows are numbered as in
//! `docs/measuring.md`.

mod bootstrap;
mod compare;
mod figures;
mod normal;
mod steady;

pub use bootstrap::{Bootstrap, Estimate, Sample};
pub use compare::{Ratio, Rule, Verdict, groups, holm, paired};
pub use figures::{Quantile, median, outliers, quantile, quantile_ranks};
pub use steady::{LAST, Steady, WINDOWS};
