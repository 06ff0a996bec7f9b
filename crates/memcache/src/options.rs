//! The options of a client.

use std::time::Duration;

use super::{
    address::Server, compress::Compression, health::Patience, protocol::Dialect, ring::Spread,
};

/// What becomes of the keys of a server that is dead.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Failover {
    /// Calls fail at once, with [`Unavailable`](crate::ErrorKind::Unavailable).
    #[default]
    Fail,
    /// Reads find nothing, writes are dropped; the keys stay the server's. Nothing stale is ever
    /// read, but for what the server itself kept while it could not be reached.
    Miss,
    /// The other servers share them. When the server comes back it has values that were changed
    /// elsewhere meanwhile, and those are read again: for values that may be stale only.
    Eject,
    /// Other servers, which have no keys of their own, keep them for a short time.
    Gutter {
        /// Those servers.
        servers: Vec<Server>,
        /// How long they keep a value at most.
        expiry: Duration,
    },
}

/// How a client behaves. The usual ones are `Options::default()`.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long a call may take, connecting included. A batch is cut into portions, and this is the
    /// time for each of them.
    pub timeout: Duration,
    /// How long connecting may take, of that time.
    pub connect_timeout: Duration,
    /// How many connections to a server there may be at once. Who finds all in use waits.
    pub pool: usize,
    /// What every key has before it, on the wire: 150 bytes at most, without blanks.
    pub namespace: Vec<u8>,
    /// Sends a digest of keys that are too long, in place of refusing them.
    pub hash_long_keys: bool,
    /// How keys are spread over the servers.
    pub spread: Spread,
    /// What becomes of the keys of a server that is dead.
    pub failover: Failover,
    /// When a server is dead, and how often it is probed then.
    pub patience: Patience,
    /// The longest value that is read, in bytes.
    pub max_value: usize,
    /// How large values are made small.
    pub compression: Option<Compression>,
    /// The dialect of the servers, where it must not be found out by their versions.
    pub dialect: Option<Dialect>,
    /// What is trusted, and who we are, for addresses with `tls://`; the roots of the web where
    /// nothing is given.
    #[cfg(feature = "tls")]
    pub tls: Option<std::sync::Arc<rustls::ClientConfig>>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            timeout: Duration::from_secs(1),
            connect_timeout: Duration::from_millis(500),
            pool: 16,
            namespace: Vec::new(),
            hash_long_keys: false,
            spread: Spread::default(),
            failover: Failover::default(),
            patience: Patience::default(),
            max_value: 128 << 20,
            compression: None,
            dialect: None,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }
}
