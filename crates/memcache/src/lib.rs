//! A client of memcached, and a model of its memory.
//!
//! [`Client`] waits for its answers, `AsyncClient` does not block; both are thin layers over the
//! same core, which does no I/O: `protocol/` (what is said and what answers mean), `ring/` (which
//! server has a key), `cluster.rs` (where a key goes now), `health.rs` (who is dead), `key.rs`.
//! [`slabs`] is the model.
//!
//! What the core holds itself to:
//! - Nothing that a caller passes can become a command: see [`Keys`].
//! - A connection whose answers are in doubt (a timeout, a call that was dropped, a reply that is
//!   none) is closed, and never used again.
//! - A call ends within its time. A server that does not answer is dead: calls fail at once, and
//!   it is probed in the background.
//! - It reads while it writes, so that no batch is too large; memory is that of a portion.
//! - Lengths are held against limits before anything is reserved for them.
//!
//! Features (none is on by default): `async` is `AsyncClient`, on tokio; `compress` packs large values; `objects`
//! stores serde types as values; `tls` reaches servers through TLS.
//!
//! Only `objects.rs` and `foreign.rs` know formats.
//!
//! To add an operation: a variant of [`protocol::Op`] and its words in both dialects, a function in
//! `calls.rs`, a method in `blocking/calls.rs` and in `nonblocking/calls.rs`.

mod address;
mod admin;
mod answers;
mod blocking;
mod calls;
mod cluster;
mod compress;
mod expiry;
mod failure;
#[cfg(feature = "objects")]
mod foreign;
mod health;
mod key;
mod late;
#[cfg(feature = "async")]
mod nonblocking;
#[cfg(feature = "objects")]
mod objects;
mod options;
mod portion;
#[doc(hidden)]
pub mod protocol;
mod ring;
pub mod slabs;
mod statistics;
mod value;

pub use address::{Address, PORT, Server};
pub use admin::Stats;
pub use blocking::{Client, NoBlock};
pub use compress::{Compression, EMPTY, Method, ZLIB, ZSTD};
pub use expiry::Expiry;
#[cfg(feature = "objects")]
pub use foreign::Foreign;
pub use health::Patience;
pub use key::{Form, Keys, LONGEST, LONGEST_CODED};
#[cfg(feature = "async")]
pub use nonblocking::{AsyncClient, AsyncNoBlock};
#[cfg(all(feature = "async", feature = "objects"))]
pub use objects::AsyncObjects;
#[cfg(feature = "objects")]
pub use objects::Objects;
pub use options::{Failover, Options};
pub use protocol::{Dialect, How, Loss};
pub use ring::{Ring, Spread};
pub use statistics::Statistics;
pub use steelyard_base::{Error, ErrorKind, Result, error};
#[cfg(feature = "objects")]
pub use steelyard_format::format;
pub use value::{Failed, Fetch, Item, Swap, Value, View};

// The example of the README is compiled and run.
#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;
