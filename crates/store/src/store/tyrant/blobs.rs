//! Layout blob: a hash database.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{StreamExt, TryStreamExt, stream::BoxStream};

use super::{Pair, Table};
use crate::{
    Result,
    store::{self, Abilities, Blob, Description, Key, KeyRange, Shape},
};

/// A table of bytes.
pub(super) struct Blobs(pub Table);

impl Blobs {
    fn pairs(&self, blobs: &[Blob]) -> Result<Vec<Pair>> {
        use store::Blobs;
        let pair = |blob: &Blob| {
            self.check(&blob.key, blob.bytes.len())?;
            Ok((self.0.full(&blob.key), blob.bytes.clone()))
        };
        blobs.iter().map(pair).collect()
    }
}

#[async_trait]
impl store::Blobs for Blobs {
    fn abilities(&self) -> &Abilities {
        &self.0.abilities
    }

    fn table(&self, name: &str) -> Result<Arc<dyn store::Blobs>> {
        Ok(Arc::new(Blobs(self.0.sibling(name)?)))
    }

    async fn prepare(&self) -> Result<()> {
        Ok(())
    }

    async fn put(&self, blobs: &[Blob]) -> Result<()> {
        self.0.put(&self.pairs(blobs)?, false).await
    }

    async fn load(&self, blobs: &[Blob]) -> Result<()> {
        self.0.put(&self.pairs(blobs)?, true).await
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>> {
        self.0.get(keys).await
    }

    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        self.0.remove(keys).await
    }

    async fn each(&self, range: &KeyRange) -> Result<BoxStream<'_, Result<Vec<Blob>>>> {
        let keys = self.0.server.keys(&self.0.space).await?;
        let blob = |(key, bytes)| Blob { key, bytes };
        let batches = self.0.each(keys, range.clone());
        Ok(batches.map_ok(move |pairs| pairs.into_iter().map(blob).collect()).boxed())
    }

    async fn count(&self) -> Result<u64> {
        Ok(self.0.server.keys(&self.0.space).await?.count())
    }

    async fn drop_table(&self) -> Result<()> {
        self.0.clear().await.map(drop)
    }

    async fn describe(&self) -> Result<Description> {
        self.0.describe(Shape::Blob).await
    }
}
