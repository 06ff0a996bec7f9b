//! Values as read, and values to store.

use std::borrow::Cow;

use super::{Expiry, protocol::reply::Marks};

/// A value that was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Value {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The number it was stored with.
    pub flags: u32,
    /// The number that changes whenever the value does; 0 where it was not asked for.
    pub cas: u64,
}

/// A value that is passed by: its bytes are those of the connection, where nothing was to unpack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View<'a> {
    /// Its bytes.
    pub bytes: Cow<'a, [u8]>,
    /// The number it was stored with.
    pub flags: u32,
}

impl View<'_> {
    /// The same, owned.
    pub fn into_value(self) -> Value {
        Value { bytes: self.bytes.into_owned(), flags: self.flags, cas: 0 }
    }
}

/// A value to store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// A number to store with it, for the caller's own use. With compression on, bits 8 to 10 are
    /// taken.
    pub flags: u32,
    /// How long it is kept.
    pub expiry: Expiry,
}

impl<'a> Item<'a> {
    /// A value without flags.
    pub fn new(bytes: &'a [u8], expiry: impl Into<Expiry>) -> Item<'a> {
        Item { bytes, flags: 0, expiry: expiry.into() }
    }
}

/// What has become of a value that was to be stored only if nobody had changed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swap {
    /// It is stored.
    Stored,
    /// Somebody else has changed it.
    Changed,
    /// There is none any more.
    Gone,
}

/// A key of a batch that failed.
#[derive(Debug)]
pub struct Failed {
    /// Its number in the batch, from 0.
    pub number: usize,
    /// The key.
    pub key: Vec<u8>,
    /// Why.
    pub error: crate::Error,
}

/// What [`fetch`](super::Client::fetch) does beside making the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fetch {
    /// How long the value is kept.
    pub expiry: Expiry,
    /// How long the winner has to make it, until another one may. Whole seconds.
    pub lease: std::time::Duration,
    /// When it has so long left, one reader makes it anew while the others still read it. Whole
    /// seconds; zero for not at all.
    pub recache: std::time::Duration,
    /// How long those who did not win wait for the value, before they make it themselves.
    pub wait: std::time::Duration,
}

impl Fetch {
    /// Keeps the value for that long; the lease is 10 seconds, the wait as well.
    pub fn new(expiry: impl Into<Expiry>) -> Fetch {
        let ten = std::time::Duration::from_secs(10);
        Fetch { expiry: expiry.into(), lease: ten, recache: std::time::Duration::ZERO, wait: ten }
    }
}

/// What a reader who wants to fetch is to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Lease {
    /// Use the value.
    Use(super::protocol::Found),
    /// Make it, and store it if the number is still that; 0 for in any case. `empty` says that
    /// there is no value yet, only what stands for it.
    Make { cas: u64, empty: bool },
    /// Wait: somebody else makes it.
    Wait,
}

impl Lease {
    /// Reads the answer to [`Op::Fetch`](super::protocol::Op::Fetch). The one who won has `W`; the
    /// others `Z`, and an empty value without flags where there was none before.
    pub(crate) fn of(found: super::protocol::Found) -> Lease {
        let Marks { won, taken, cas, flags, .. } = found.marks;
        if won {
            Lease::Make { cas, empty: found.bytes.is_empty() && flags == 0 }
        } else if taken && found.bytes.is_empty() && flags == 0 {
            Lease::Wait
        } else {
            Lease::Use(found)
        }
    }
}
