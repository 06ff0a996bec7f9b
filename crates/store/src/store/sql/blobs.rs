//! A table of an SQL database as a store of bytes. What it has in common with the store of records is implemented once,
//! there.

use std::{pin::Pin, sync::Arc};

use async_trait::async_trait;
use futures_util::stream::BoxStream;

use super::Guard;
use crate::{
    Result,
    store::{
        Abilities, Blob, Blobs, Description, Explained, Key, KeyRange, Layout, Part, Request,
        Store, blobs,
    },
};

/// What a table does with bytes; for all else it is asked as a [`Store`].
#[async_trait]
pub trait BlobTable: Store + Sized + 'static {
    /// What it can do with bytes.
    fn of_blobs(&self) -> &Abilities;

    /// Another table of the same place.
    ///
    /// # Errors
    /// For a name the database cannot have.
    fn sibling(&self, name: &str) -> Result<Self>;

    /// The same table of another part of the same server; as [`Store::part`].
    ///
    /// # Errors
    /// As [`Store::part`].
    fn elsewhere(&self, _part: Part<'_>) -> Result<Option<Self>> {
        Ok(None)
    }

    /// Whether it can hold this key; how long it may be was looked at.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid), naming the key.
    fn check_key(&self, _key: &Key) -> Result<()> {
        Ok(())
    }

    /// Writes blobs, whose keys are new or may be there.
    ///
    /// # Errors
    /// As [`Blobs::put`].
    async fn write_blobs(&self, blobs: &[Blob], new: bool) -> Result<()>;

    /// Writes a blob if the row of its key is as the guard says, and says whether it did.
    ///
    /// # Errors
    /// As [`Blobs::swap`].
    async fn write_blob_if(&self, blob: &Blob, guard: Guard<'_>) -> Result<bool>;

    /// Deletes the row of a key if it is as the guard says, and says whether it did.
    ///
    /// # Errors
    /// As [`Blobs::swap`].
    async fn remove_row_if(&self, key: &Key, guard: Guard<'_>) -> Result<bool>;

    /// The bytes of these keys.
    ///
    /// # Errors
    /// As [`Blobs::get`].
    async fn read_blobs(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>>;

    /// The blobs of a range of keys.
    ///
    /// # Errors
    /// As [`Blobs::each`].
    async fn blobs_in(&self, range: &KeyRange) -> Result<BoxStream<'_, Result<Vec<Blob>>>>;
}

/// What an operation is while it is under way.
type Doing<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

#[async_trait]
impl<T: BlobTable> Blobs for T {
    fn abilities(&self) -> &Abilities {
        self.of_blobs()
    }

    fn table(&self, name: &str) -> Result<Arc<dyn Blobs>> {
        Ok(Arc::new(self.sibling(name)?))
    }

    fn part(&self, part: Part<'_>) -> Result<Option<Arc<dyn Blobs>>> {
        Ok(self.elsewhere(part)?.map(|table| Arc::new(table) as Arc<dyn Blobs>))
    }

    async fn tables(&self) -> Result<Vec<String>> {
        Store::tables(self).await
    }

    fn check(&self, key: &Key, bytes: usize) -> Result<()> {
        blobs::fits(self.of_blobs(), key, bytes)?;
        self.check_key(key)
    }

    async fn prepare(&self) -> Result<()> {
        Store::prepare(self, &Layout::plain()).await
    }

    // These four are asked often: the future is handed on as it is, not put into another one.
    fn put<'a, 'b, 'c>(&'a self, blobs: &'b [Blob]) -> Doing<'c, ()>
    where
        'a: 'c,
        'b: 'c,
        Self: 'c,
    {
        self.write_blobs(blobs, false)
    }

    fn load<'a, 'b, 'c>(&'a self, blobs: &'b [Blob]) -> Doing<'c, ()>
    where
        'a: 'c,
        'b: 'c,
        Self: 'c,
    {
        self.write_blobs(blobs, true)
    }

    fn get<'a, 'b, 'c>(&'a self, keys: &'b [Key]) -> Doing<'c, Vec<Option<Vec<u8>>>>
    where
        'a: 'c,
        'b: 'c,
        Self: 'c,
    {
        self.read_blobs(keys)
    }

    fn remove<'a, 'b, 'c>(&'a self, keys: &'b [Key]) -> Doing<'c, u64>
    where
        'a: 'c,
        'b: 'c,
        Self: 'c,
    {
        Store::remove(self, keys)
    }

    async fn swap(&self, key: &Key, old: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool> {
        let guard = old.map_or(Guard::Absent, Guard::Bytes);
        match new {
            Some(new) => {
                let blob = Blob { key: key.clone(), bytes: new.to_vec() };
                self.write_blob_if(&blob, guard).await
            }
            None => self.remove_row_if(key, guard).await,
        }
    }

    async fn each(&self, range: &KeyRange) -> Result<BoxStream<'_, Result<Vec<Blob>>>> {
        self.blobs_in(range).await
    }

    async fn count(&self) -> Result<u64> {
        Store::count(self).await
    }

    async fn split(&self, parts: u32) -> Result<Vec<KeyRange>> {
        Store::split(self, parts).await
    }

    async fn drop_table(&self) -> Result<()> {
        Store::drop_table(self).await
    }

    async fn settle(&self) -> Result<bool> {
        Store::settle(self).await
    }

    async fn explain(&self, request: Request<'_>) -> Result<Option<Explained>> {
        Store::explain(self, request).await
    }

    async fn describe(&self) -> Result<Description> {
        Store::describe(self).await
    }
}
