//! What the drivers share that speak to servers over sockets of ours: addresses and sockets, plain or
//! encrypted, connections on which an operation asks and reads its answer, reads that wait in the thread.
//!
//! Connections lie in a [`Pool`](super::pool::Pool), which stores without sockets have, too. This
//! folder knows no driver and no protocol. Not everything in it is used by every choice of features.

pub(super) mod connection;
#[cfg(feature = "postgres")]
pub(super) mod lent;
pub(super) mod portions;
pub(super) mod socket;
#[cfg(any(
    feature = "couchdb",
    feature = "memcache-tls",
    feature = "mysql",
    feature = "postgres",
    feature = "redis",
    feature = "s3"
))]
pub(super) mod tls;
pub(super) mod waiting;

#[allow(unused_imports)]
pub(super) use connection::{Connection, Connections, Lease, Opened, SAID, broken};
#[allow(unused_imports)]
pub(super) use portions::{Fewer, SEVERAL, append, is_too_long, too_long};
pub(super) use socket::{Address, Stream};
