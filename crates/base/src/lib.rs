//! What every crate of steelyard shares: the [error type](error), and [time limits](timer) that
//! cost nothing until they pass.

pub mod error;
#[cfg(feature = "timer")]
pub mod timer;

pub use error::{Error, ErrorKind, Result};

// The example of the README is compiled and run.
#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;
