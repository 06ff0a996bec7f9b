//! Operations on one key.

use std::time::Duration;

use super::Client;
use crate::{
    Error, Result, answers,
    calls::{self, Packed},
    expiry::Expiry,
    protocol::How,
    value::{Item, Swap, Value},
};

/// # Operations on one key
///
/// They all fail with [`Invalid`](crate::ErrorKind::Invalid) or
/// [`TooLarge`](crate::ErrorKind::TooLarge) for a key that cannot be, with
/// [`Unavailable`](crate::ErrorKind::Unavailable) where the server is away or does not answer in
/// time, with [`TooLarge`](crate::ErrorKind::TooLarge) for a value that it does not take, with
/// [`Malformed`](crate::ErrorKind::Malformed) where its answer is none. The error names the server.
impl Client {
    /// The value of a key.
    ///
    /// # Errors
    /// See above.
    #[inline]
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        let answer = self.call(&calls::get(key.as_ref()))?;
        answers::value(&self.shared.cluster, answer)
    }

    /// The same with the number for [`cas`](Client::cas).
    ///
    /// # Errors
    /// See above.
    pub fn gets(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        let answer = self.call(&calls::gets(key.as_ref()))?;
        answers::value(&self.shared.cluster, answer)
    }

    /// The value of a key, which is kept for so long from now on.
    ///
    /// # Errors
    /// See above.
    pub fn get_and_touch(
        &self,
        key: impl AsRef<[u8]>,
        expiry: impl Into<Expiry>,
    ) -> Result<Option<Value>> {
        let answer = self.call(&calls::get_and_touch(key.as_ref(), expiry.into()))?;
        answers::value(&self.shared.cluster, answer)
    }

    /// Stores a value with flags in any of the ways of [`How`]; says whether it is stored.
    ///
    /// # Errors
    /// See above.
    #[inline]
    pub fn store(&self, how: How, key: impl AsRef<[u8]>, item: Item<'_>) -> Result<bool> {
        let packed = match how {
            How::Append | How::Prepend if self.shared.cluster.options.compression.is_some() => {
                let what = "append and prepend need values that are not compressed";
                return Err(Error::unsupported(what));
            }
            _ => Packed::new(&self.shared.cluster, item)?,
        };
        answers::done(self.call(&packed.call(how, key.as_ref(), None))?)
    }

    /// Stores a value.
    ///
    /// # Errors
    /// See above.
    #[inline]
    pub fn set(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        expiry: impl Into<Expiry>,
    ) -> Result<()> {
        self.store(How::Set, key, Item::new(value.as_ref(), expiry)).map(drop)
    }

    /// Stores a value if there is none; says whether it did.
    ///
    /// # Errors
    /// See above.
    pub fn add(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        expiry: impl Into<Expiry>,
    ) -> Result<bool> {
        self.store(How::Add, key, Item::new(value.as_ref(), expiry))
    }

    /// Stores a value if there is one; says whether it did.
    ///
    /// # Errors
    /// See above.
    pub fn replace(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        expiry: impl Into<Expiry>,
    ) -> Result<bool> {
        self.store(How::Replace, key, Item::new(value.as_ref(), expiry))
    }

    /// Puts bytes behind the value; says whether there is one.
    ///
    /// # Errors
    /// See above; [`Unsupported`](crate::ErrorKind::Unsupported) for a client that compresses.
    pub fn append(&self, key: impl AsRef<[u8]>, more: impl AsRef<[u8]>) -> Result<bool> {
        self.store(How::Append, key, Item::new(more.as_ref(), Expiry::Never))
    }

    /// Puts bytes before the value; says whether there is one.
    ///
    /// # Errors
    /// As those of [`append`](Client::append).
    pub fn prepend(&self, key: impl AsRef<[u8]>, more: impl AsRef<[u8]>) -> Result<bool> {
        self.store(How::Prepend, key, Item::new(more.as_ref(), Expiry::Never))
    }

    /// Stores a value if the one that is there is still that with the number `cas`, as
    /// [`gets`](Client::gets) had it.
    ///
    /// # Errors
    /// See above.
    pub fn cas(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        expiry: impl Into<Expiry>,
        cas: u64,
    ) -> Result<Swap> {
        let packed = Packed::new(&self.shared.cluster, Item::new(value.as_ref(), expiry))?;
        answers::swap(self.call(&packed.call(How::Set, key.as_ref(), Some(cas)))?)
    }

    /// Counts up; what it counted to, none where there is no value. Around at 2^64.
    ///
    /// # Errors
    /// See above; [`Invalid`](crate::ErrorKind::Invalid) for a value that is no number.
    pub fn incr(&self, key: impl AsRef<[u8]>, by: u64) -> Result<Option<u64>> {
        answers::number(self.call(&calls::count(key.as_ref(), true, by, None))?)
    }

    /// Counts down, to 0 at least; what it counted to, none where there is no value.
    ///
    /// # Errors
    /// As those of [`incr`](Client::incr).
    pub fn decr(&self, key: impl AsRef<[u8]>, by: u64) -> Result<Option<u64>> {
        answers::number(self.call(&calls::count(key.as_ref(), false, by, None))?)
    }

    /// Counts up, and begins with `first` where there is no value.
    ///
    /// # Errors
    /// As those of [`incr`](Client::incr); [`Unsupported`](crate::ErrorKind::Unsupported) by
    /// servers before 1.6.10.
    pub fn incr_from(
        &self,
        key: impl AsRef<[u8]>,
        by: u64,
        first: u64,
        expiry: impl Into<Expiry>,
    ) -> Result<Option<u64>> {
        let initial = Some((first, expiry.into()));
        answers::number(self.call(&calls::count(key.as_ref(), true, by, initial))?)
    }

    /// Keeps a value for so long from now on; says whether there is one.
    ///
    /// # Errors
    /// See above.
    pub fn touch(&self, key: impl AsRef<[u8]>, expiry: impl Into<Expiry>) -> Result<bool> {
        answers::was_there(self.call(&calls::touch(key.as_ref(), expiry.into()))?)
    }

    /// Deletes a value; says whether there was one.
    ///
    /// # Errors
    /// See above.
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        answers::was_there(self.call(&calls::delete(key.as_ref()))?)
    }

    /// Deletes a value if it is still the one with the number `cas`, as [`gets`](Client::gets) had it; says whether it
    /// did.
    ///
    /// # Errors
    /// See above; [`Unsupported`](crate::ErrorKind::Unsupported) by servers before 1.6.10.
    pub fn delete_if(&self, key: impl AsRef<[u8]>, cas: u64) -> Result<bool> {
        answers::was_there(self.call(&calls::delete_if(key.as_ref(), cas))?)
    }

    /// Marks a value as out of date: the next [`fetch`](Client::fetch) makes it anew, while others
    /// still read the old one, for so long at most. Says whether there is one.
    ///
    /// # Errors
    /// See above; [`Unsupported`](crate::ErrorKind::Unsupported) by servers before 1.6.10.
    pub fn invalidate(&self, key: impl AsRef<[u8]>, time: Duration) -> Result<bool> {
        answers::was_there(self.call(&calls::invalidate(key.as_ref(), time))?)
    }

    /// What the server knows of an item, as `exp=… la=… cas=… size=…` (`me`).
    ///
    /// # Errors
    /// See above.
    pub fn debug(&self, key: impl AsRef<[u8]>) -> Result<Option<String>> {
        let call = crate::protocol::Call { key: key.as_ref(), op: crate::protocol::Op::Debug };
        answers::text(self.call(&call)?)
    }
}
