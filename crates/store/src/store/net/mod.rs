//! What the drivers share that speak to servers over sockets of ours: addresses and sockets, plain or
//! encrypted, lines on which an operation asks and reads its answer, reads that wait in the thread.
//!
//! Connections lie in a [`Pool`](super::pool::Pool), which stores without sockets have, too. This
//! folder knows no driver and no protocol. Not everything in it is used by every choice of features.

#[cfg(feature = "postgres")]
pub mod lent;
#[allow(dead_code)]
pub mod line;
#[allow(dead_code)]
pub mod portions;
pub mod socket;
#[cfg(any(
    feature = "couchdb",
    feature = "memcache-tls",
    feature = "mysql",
    feature = "postgres",
    feature = "redis",
    feature = "s3"
))]
pub mod tls;
#[allow(dead_code)]
pub mod waiting;

#[allow(unused_imports)]
pub use line::{Known, Lease, Line, Lines, SAID, broken};
#[allow(unused_imports)]
pub use portions::{Fewer, SEVERAL, append, is_too_long, too_long};
pub use socket::{Address, Stream};
