//! Records in databases, caches, folders and files: kept, found, moved.
//!
//! - [`store`]: places that find records by key and, where they can, by query.
//! - [`file`](mod@file): places that are files: opened by name and content, packed, split, written whole.
//! - [`copy`]: records from any place to any place.
//! - [`durability`]: what an acknowledged write has survived.
//! - [`link`]: links of other users, which are not followed.
//! - [`server`]: private servers, started for a test or a measurement and removed afterwards.

// Drivers share code: without all of them some of it has no user; with all of them, none of it may.
#![cfg_attr(
    not(all(
        feature = "couchdb",
        feature = "mongodb",
        feature = "mysql",
        feature = "postgres",
        feature = "redis",
        feature = "s3",
        feature = "shards",
        feature = "sqlite"
    )),
    allow(dead_code, unused_imports)
)]

pub mod copy;
pub mod durability;
pub mod file;
pub mod link;
pub mod server;
// What tests do without a server they need. The file is a link to that of tests/it: a package has a copy of it.
#[cfg(test)]
#[allow(dead_code, unreachable_pub, unused_imports, unused_macros)]
mod skips;
pub mod store;

pub use steelyard_base::{Error, ErrorKind, Result, error, timer};
pub use steelyard_format::{format, record};
pub use steelyard_marc as marc;
pub use steelyard_memcache as memcache;
pub use store::open;

// The example of the README is compiled and run.
#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;
