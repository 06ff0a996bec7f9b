//! SQLite as a store of bytes.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{StreamExt, stream::BoxStream};
use rusqlite::types::Value as Cell;

use super::{Sqlite3, table};
use crate::{
    Result,
    store::{Abilities, Blob, Blobs, Description, Key, KeyRange, Layout},
};

fn cells(blobs: &[Blob]) -> Vec<Vec<Cell>> {
    let cells =
        |blob: &Blob| vec![Cell::Text(blob.key.to_string()), Cell::Blob(blob.bytes.clone())];
    blobs.iter().map(cells).collect()
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
        blobs.iter().try_for_each(|blob| Blobs::check(self, &blob.key, blob.bytes.len()))?;
        self.put_cells(cells(blobs), false).await
    }

    async fn load(&self, blobs: &[Blob]) -> Result<()> {
        blobs.iter().try_for_each(|blob| Blobs::check(self, &blob.key, blob.bytes.len()))?;
        self.put_cells(cells(blobs), true).await
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>> {
        self.found(keys, |_, row| table::bytes(row, 0)).await
    }

    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        self.removed(keys).await
    }

    async fn each(&self, range: &KeyRange) -> Result<BoxStream<'_, Result<Vec<Blob>>>> {
        let blob = |_: &table::Known, row: &rusqlite::Row| {
            Ok(Blob { key: table::key_of(row, 0)?, bytes: table::bytes(row, 0)? })
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

    async fn settle(&self) -> Result<()> {
        self.settled().await
    }

    async fn describe(&self) -> Result<Description> {
        self.description().await
    }
}
