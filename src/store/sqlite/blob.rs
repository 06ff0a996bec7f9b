//! SQLite as a store of bytes.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{StreamExt, stream::BoxStream};

use super::{Sqlite3, pool, table};
use crate::{
    Result,
    store::{Abilities, Blob, Blobs, Description, Explained, Key, KeyRange, Layout, Request},
};

impl Sqlite3 {
    async fn put_blobs(&self, blobs: &[Blob], new: bool) -> Result<()> {
        blobs.iter().try_for_each(|blob| Blobs::check(self, &blob.key, blob.bytes.len()))?;
        let known = self.known().await?;
        self.pool
            .attempt_with(blobs, move |connection, blobs: &[Blob]| {
                super::each(connection, known.writing(new), blobs, |statement, blob| {
                    statement.execute((blob.key.as_str(), &blob.bytes))
                })
                .map(drop)
                .map_err(pool::error)
            })
            .await
    }
}

#[async_trait]
impl Blobs for Sqlite3 {
    fn abilities(&self) -> &Abilities {
        &super::DOCUMENT
    }

    fn table(&self, name: &str) -> Result<Arc<dyn Blobs>> {
        Ok(Arc::new(self.sibling(name)?))
    }

    async fn prepare(&self) -> Result<()> {
        self.table.prepare(&self.pool, &Layout::plain()).await
    }

    async fn put(&self, blobs: &[Blob]) -> Result<()> {
        self.put_blobs(blobs, false).await
    }

    async fn load(&self, blobs: &[Blob]) -> Result<()> {
        self.put_blobs(blobs, true).await
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>> {
        self.found(keys, |_, row, _| table::bytes(row, 0).map(<[u8]>::to_vec)).await
    }

    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        self.removed(keys).await
    }

    async fn each(&self, range: &KeyRange) -> Result<BoxStream<'_, Result<Vec<Blob>>>> {
        let blob = |_: &table::Known, row: &rusqlite::Row| {
            Ok(Blob { key: table::key_of(row, 0)?, bytes: table::bytes(row, 1)?.to_vec() })
        };
        Ok(self.pages(range, blob).await?.boxed())
    }

    async fn count(&self) -> Result<u64> {
        self.counted().await
    }

    async fn split(&self, parts: u32) -> Result<Vec<KeyRange>> {
        self.parts(parts).await
    }

    async fn drop_table(&self) -> Result<()> {
        self.dropped().await
    }

    async fn settle(&self) -> Result<bool> {
        self.settled().await.map(|()| true)
    }

    async fn explain(&self, request: Request<'_>) -> Result<Option<Explained>> {
        self.explained(request).await
    }

    async fn describe(&self) -> Result<Description> {
        self.description().await
    }
}
