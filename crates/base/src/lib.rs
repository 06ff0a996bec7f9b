//! What every crate of steelyard shares: the [error type](error), the [tiers](tier) of durability, and
//! time limits that cost nothing until they pass (`timer`, with the feature of that name).

pub mod error;
pub mod tier;
#[cfg(feature = "timer")]
pub mod timer;

pub use error::{Error, ErrorKind, Result};

// The example of the README is compiled and run.
#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;
