//! The calls of the public API, shared by both clients.

use std::{borrow::Cow, time::Duration};

use super::{
    cluster::Cluster,
    compress::EMPTY,
    expiry::Expiry,
    protocol::{Call, How, Op},
    value::{Fetch, Item},
};
use crate::Result;

/// A value as it is stored: packed, if the client packs.
pub(crate) struct Packed<'a> {
    bytes: Cow<'a, [u8]>,
    flags: u32,
    expiry: i64,
}

impl<'a> Packed<'a> {
    /// Packs a value.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for flags that mean a way of packing.
    #[inline]
    pub(crate) fn new(cluster: &Cluster, item: Item<'a>) -> Result<Packed<'a>> {
        let plain = Packed {
            bytes: Cow::Borrowed(item.bytes),
            flags: item.flags,
            expiry: item.expiry.number(),
        };
        let Some(compression) = &cluster.options.compression else { return Ok(plain) };
        if item.flags & (super::compress::ZSTD | super::compress::ZLIB) != 0 {
            let what = format!("flags {:#x}: bits 8 and 9 say how a value is packed", item.flags);
            return Err(crate::Error::invalid(what));
        }
        Ok(match compression.pack(item.bytes)? {
            None => plain,
            Some((bytes, flag)) => {
                Packed { bytes: Cow::Owned(bytes), flags: item.flags | flag, ..plain }
            }
        })
    }

    /// The call that stores it.
    #[inline]
    pub(crate) fn call<'c>(&'c self, how: How, key: &'c [u8], cas: Option<u64>) -> Call<'c> {
        let (value, flags, expiry) = (&*self.bytes, self.flags, self.expiry);
        Call { key, op: Op::Store { how, value, flags, expiry, cas } }
    }
}

/// The value of a fetch, to be stored: an empty one is marked, as one that is being made is empty too.
pub(crate) fn fetched<'a>(bytes: &'a [u8], fetch: &Fetch) -> Item<'a> {
    let flags = if bytes.is_empty() { EMPTY } else { 0 };
    Item { bytes, flags, expiry: fetch.expiry }
}

/// Whole seconds, rounded up; as many as a server takes.
fn seconds(time: Duration) -> u32 {
    let whole = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    u32::try_from(whole).unwrap_or(u32::MAX).min(60 * 60 * 24 * 30)
}

/// Asks for a value, or for the task of making it.
pub(crate) fn fetch<'a>(key: &'a [u8], fetch: &Fetch) -> Call<'a> {
    let (lease, recache) = (seconds(fetch.lease).max(1), seconds(fetch.recache));
    Call { key, op: Op::Fetch { lease, recache } }
}

pub(crate) fn get(key: &[u8]) -> Call<'_> {
    Call { key, op: Op::Get { cas: false } }
}

pub(crate) fn gets(key: &[u8]) -> Call<'_> {
    Call { key, op: Op::Get { cas: true } }
}

pub(crate) fn touch(key: &[u8], expiry: Expiry) -> Call<'_> {
    Call { key, op: Op::Touch { expiry: expiry.number() } }
}

pub(crate) fn get_and_touch(key: &[u8], expiry: Expiry) -> Call<'_> {
    Call { key, op: Op::GetAndTouch { expiry: expiry.number() } }
}

pub(crate) fn delete(key: &[u8]) -> Call<'_> {
    Call { key, op: Op::Delete { cas: None, stale: None } }
}

/// Deletes a value that is still the one with this number.
pub(crate) fn delete_if(key: &[u8], cas: u64) -> Call<'_> {
    Call { key, op: Op::Delete { cas: Some(cas), stale: None } }
}

pub(crate) fn invalidate(key: &[u8], time: Duration) -> Call<'_> {
    Call { key, op: Op::Delete { cas: None, stale: Some(seconds(time).max(1)) } }
}

pub(crate) fn count(key: &[u8], up: bool, by: u64, initial: Option<(u64, Expiry)>) -> Call<'_> {
    let initial = initial.map(|(number, expiry)| (number, expiry.number()));
    Call { key, op: Op::Count { up, by, initial } }
}
