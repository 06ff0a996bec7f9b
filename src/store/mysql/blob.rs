//! MySQL as a store of bytes.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{StreamExt, TryStreamExt, stream::BoxStream};

use super::{MySql, known::Known, write::Taken};
use crate::{
    Result,
    store::{Abilities, Blob, Blobs, Description, Explained, Key, KeyRange, Layout, Request},
};

#[allow(clippy::type_complexity)]
const READ: fn(&Known, mysql_async::Row) -> Result<(Key, Vec<u8>)> = Known::blob;

#[async_trait]
impl Blobs for MySql {
    fn abilities(&self) -> &Abilities {
        &self.table.facts.abilities
    }

    fn table(&self, name: &str) -> Result<Arc<dyn Blobs>> {
        Ok(Arc::new(self.sibling(name)?))
    }

    async fn prepare(&self) -> Result<()> {
        self.table.prepare(&self.pool, &Layout::plain()).await
    }

    async fn put(&self, blobs: &[Blob]) -> Result<()> {
        let known = self.known().await?;
        let cells = |blob: &Blob| self.table.blob_cells(&blob.key, &blob.bytes);
        self.write(&known, Taken::Replace, || blobs.iter().map(cells).collect()).await
    }

    async fn load(&self, blobs: &[Blob]) -> Result<()> {
        let known = self.known().await?;
        let cells = |i: usize| self.table.blob_cells(&blobs[i].key, &blobs[i].bytes);
        self.load_cells(&known, blobs.len(), cells).await
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>> {
        self.found(keys, READ).await
    }

    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        self.removed(keys).await
    }

    async fn each(&self, range: &KeyRange) -> Result<BoxStream<'_, Result<Vec<Blob>>>> {
        let pages = self.pages(range, READ).await?;
        let blob = |(key, bytes)| Blob { key, bytes };
        Ok(pages.map_ok(move |page| page.into_iter().map(blob).collect()).boxed())
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
        self.tidied().await.map(|()| true)
    }

    async fn explain(&self, request: Request<'_>) -> Result<Option<Explained>> {
        self.explained(request).await
    }

    async fn describe(&self) -> Result<Description> {
        self.description().await
    }
}
