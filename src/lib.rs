//! Steelyard weighs and keeps records.
//!
//! The rooms, in reading order; all but the last two are crates that can be used alone:
//!
//! - [`error`]: the one error type.
//! - [`record`]: the data model: values, documents, and seeded datasets.
//! - [`marc`]: MARC records: ISO 2709, MARC-8, MARCXML, MARC-in-JSON.
//! - [`format`](mod@format): records to bytes and back.
//! - [`file`](mod@file): places that are files: opened by name and content, packed, split, written whole.
//! - [`link`]: links of other users, which are not followed.
//! - [`memcache`]: a client of memcached, and a model of its memory.
//! - [`store`]: databases, caches and folders behind one interface; [`copy`]: from any place to any place.
//! - [`server`]: private servers for tests and measurements; [`durability`]: what a write has survived.
//! - `serve` (with the feature of this name): a gateway before any store, with a database for each tenant.
//! - [`bench`](mod@bench): what it costs; [`report`]: results as people read them.

pub use steelyard_base::{Error, ErrorKind, Result, error};
pub use steelyard_bench as bench;
pub use steelyard_format::{format, record};
pub use steelyard_marc as marc;
pub use steelyard_memcache as memcache;
pub use steelyard_report as report;
#[cfg(feature = "serve")]
pub use steelyard_serve as serve;
pub use steelyard_store::{copy, durability, file, link, server, store};
pub use store::open;

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;

#[doc = include_str!("../docs/parts.md")]
#[cfg(doctest)]
struct Parts;
