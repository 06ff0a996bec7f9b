//! The arithmetic of measuring: pure, seeded, without I/O or clock.
//!
//! - [`figures`](self): median, quantiles with order-statistic intervals, outlier flags by MAD
//! - [`bootstrap`](self): intervals of single figures by resampling server starts
//! - [`paired`](self): the ratio of two competitors in the same rounds, or of two runs, with its
//!   interval
//! - [`moderate`](self): what comparisons of one run say of each other's noise
//! - [`serial`](self): how much one round tells of the next
//! - [`compare`](self): a family of comparisons, decided together
//! - [`drift`](self): what changed between two runs beside the program
//! - [`steady`](self): has a run of windows settled?
//! - `normal.rs`: the two distributions the others look things up in
//!
//! Nothing here knows what was measured. The rules that each function follows are numbered as in
//! `docs/measuring.md`.

mod bootstrap;
mod compare;
mod drift;
mod figures;
mod moderate;
mod normal;
mod paired;
mod serial;
mod steady;

pub use bootstrap::{Bootstrap, Estimate, Sample};
pub use compare::{Family, Rule, Verdict, paired};
pub use drift::Drift;
pub use figures::{Quantile, median, outliers, quantile, quantile_ranks};
pub use moderate::Usual;
pub use paired::{FEWEST, Paired, by_start};
pub use serial::{autocorrelation, by_group};
pub use steady::{LAST, Steady, WINDOWS};
