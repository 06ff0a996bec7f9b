//! Measuring. (doc below)
pub mod histogram;
pub mod random;
pub mod schedule;
pub mod stats;
