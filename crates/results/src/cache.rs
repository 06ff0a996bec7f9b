//! What a results file says of clients of memcached.

use serde::{Deserialize, Serialize};

/// A client that took part.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CacheClient {
    /// What it is, in a phrase.
    pub about: String,
    /// Its version.
    pub version: String,
    /// What turned objects into bytes; empty where nothing did.
    pub serializer: String,
    /// How many of the keys that are stored went to each server; empty where that was not looked at.
    pub stored: Vec<u64>,
    /// How many of the keys of a multiget were asked of each server; likewise.
    pub asked: Vec<u64>,
    /// Why system calls were not counted, where they were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncounted: Option<String>,
}

/// The row of the published test that a phase is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CacheRow {
    /// Its name: `set`, `noblock`, `get`, `multiget`, `missing`, `mixed`.
    pub row: String,
    /// Whether values are objects, serialized at each call.
    pub object: bool,
    /// The values, in a word: `4b`.
    pub value: String,
    /// Connections.
    pub connections: u32,
    /// Calls in the published test.
    pub calls: u64,
    /// The published seconds for these.
    pub published: Published,
}

/// Seconds that were published.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Published {
    /// Of the binding of libmemcached: from, to.
    pub binding: (f64, f64),
    /// Of the client in Ruby alone.
    pub pure: Option<f64>,
}
