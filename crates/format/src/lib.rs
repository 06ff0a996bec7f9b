//! Records, and the formats that turn them into bytes and back.
//!
//! - [`record`]: the data model: values, documents, and seeded datasets.
//! - [`format`](mod@format): records to bytes and back; how records follow one another in a file.
//!
//! MARC records are [`steelyard_marc`]'s, here [`marc`].

pub mod format;
pub mod record;

pub use steelyard_base::{Error, ErrorKind, Result, error};
pub use steelyard_marc as marc;

// The example of the README is compiled and run.
#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;
