//! Steelyard weighs and keeps records.
//!
//! The rooms, in reading order:
//!
//! - [`error`]: the one error type.
//! - [`record`]: the waist. Values, documents, and seeded datasets.
//! - [`marc`]: MARC records: ISO 2709, MARC-8, MARCXML, MARC-in-JSON.
//! - [`format`](mod@format): records to bytes and back.
//! - [`file`](mod@file): places that are files: opened by name and content, packed, split, written whole.
//! - [`memcache`]: a client of memcached, and a model of its memory.

pub mod bench;
pub mod copy;
pub mod durability;
pub mod error;
pub mod file;
pub mod format;
pub mod marc;
pub mod memcache;
pub mod record;
pub mod report;
pub mod server;
// What tests do without a server they need; that of tests/it.
#[cfg(test)]
#[path = "../tests/it/skips.rs"]
#[allow(dead_code, unused_imports, unused_macros)]
mod skips;
pub mod store;
mod timer;

pub use error::{Error, ErrorKind, Result};
pub use store::open;

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;
