//! Measuring. (doc below)
#[cfg(test)]
mod acceptance;
pub mod accounting;
pub mod allocations;
pub mod clock;
pub mod derive;
pub mod histogram;
pub mod instruments;
pub mod machine;
pub mod quiet;
pub mod random;
pub mod results;
pub mod run;
pub mod schedule;
pub mod stats;
