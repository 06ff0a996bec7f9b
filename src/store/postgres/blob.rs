//! PostgreSQL as a store of bytes.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream::BoxStream;

use super::{BLOB, PostgreSql, rows, table::Known};
use crate::{
    Result,
    store::{
        Abilities, Blob, Blobs, Description, Explained, Key, KeyRange, Layout, Request, blobs,
    },
};

fn blob(_: &Known, row: &dyn rows::Cells) -> Result<Blob> {
    Ok(Blob { key: rows::key_of(row)?, bytes: rows::bytes(row)? })
}

#[async_trait]
impl Blobs for PostgreSql {
    fn abilities(&self) -> &Abilities {
        &BLOB
    }

    fn table(&self, name: &str) -> Result<Arc<dyn Blobs>> {
        Ok(Arc::new(self.sibling(name)?))
    }

    async fn prepare(&self) -> Result<()> {
        self.table.prepare(&self.pool, &Layout::plain()).await
    }

    fn check(&self, key: &Key, bytes: usize) -> Result<()> {
        blobs::fits(&BLOB, key, bytes)?;
        let known = self.table.supposed()?;
        known.key.write_key(key, &mut Vec::new()).map_err(|e| rows::of_key(e, key))
    }

    async fn put(&self, blobs: &[Blob]) -> Result<()> {
        self.put_entries(blobs).await
    }

    async fn load(&self, blobs: &[Blob]) -> Result<()> {
        self.load_entries(blobs).await
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>> {
        self.found(keys, |_, row| rows::bytes(row)).await
    }

    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        self.removed(keys).await
    }

    async fn each(&self, range: &KeyRange) -> Result<BoxStream<'_, Result<Vec<Blob>>>> {
        self.ranged(range, blob).await
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
