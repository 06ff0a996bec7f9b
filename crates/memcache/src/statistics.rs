//! Counters of a client.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident,)*) => {
        /// What a client has done since it was made.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Statistics {
            $($(#[doc = $doc])+ pub $name: u64,)*
        }

        /// The same while it is counted.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: AtomicU64,)*
        }

        impl Counters {
            /// How far they have come.
            pub(crate) fn read(&self) -> Statistics {
                Statistics { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Values that were found.
    hits,
    /// Keys that were asked for and not found.
    misses,
    /// Operations that change something, one for each key.
    writes,
    /// Operations that failed.
    errors,
    /// Of those, the ones that ran out of time.
    timeouts,
    /// Operations that did not go to a server, as that is dead.
    avoided,
    /// Connections that were opened.
    connections,
    /// Connections that were thrown away, as their answers were in doubt.
    discarded,
    /// Operations that were said again on a new connection.
    retries,
    /// Times that a server was found dead.
    deaths,
    /// Times that a server was found alive again.
    recoveries,
}

/// Adds to a counter.
#[inline]
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}
