//! MySQL as a store of bytes.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{StreamExt, TryStreamExt, stream::BoxStream};

use super::{MySql, schema::Schema, sorting::Reach, table::Lazy, write::Taken};
use crate::{
    Result,
    store::{
        Abilities, Blob, Key, KeyRange, Part,
        sql::{BlobTable, Guard, Others, row::of_key},
    },
};

#[allow(clippy::type_complexity)]
const READ: fn(&Schema, mysql_async::Row) -> Result<(Key, Vec<u8>)> = Schema::blob;

#[async_trait]
impl BlobTable for MySql {
    fn of_blobs(&self) -> &Abilities {
        &self.table.facts.abilities
    }

    fn sibling(&self, name: &str) -> Result<MySql> {
        let facts = Arc::new(self.table.facts.sibling(&self.pool)?);
        let table = Lazy::new(name, self.table.names.beside(), facts)?;
        let (pool, others, reach) = (self.pool.clone(), Others::default(), Reach::default());
        Ok(MySql { pool, table, others, reach })
    }

    fn elsewhere(&self, part: Part<'_>) -> Result<Option<MySql>> {
        let database = match part {
            Part::Database(name) => Some(name),
            // There are no rows that a connection does not see.
            Part::Tenant(_) => None,
            Part::Schema(_) => return Ok(None),
        };
        let Some(pool) = self.pool.within_database(database) else { return Ok(None) };
        let facts = Arc::new(self.table.facts.sibling(&pool)?);
        let table = Lazy::new(&self.table.name, self.table.names.clone(), facts)?;
        let (others, reach) = (Others::default(), Reach::default());
        Ok(Some(MySql { pool: Arc::new(pool), table, others, reach }))
    }

    fn check_key(&self, key: &Key) -> Result<()> {
        match self.table.peek() {
            Some(known) => known.key_cell(key).map(drop).map_err(|e| of_key(e, key)),
            None => Ok(()),
        }
    }

    async fn write_blobs(&self, blobs: &[Blob], new: bool) -> Result<()> {
        let known = self.schema().await?;
        let cells = |blob: &Blob| self.table.blob_cells(&blob.key, &blob.bytes);
        match new {
            true => self.load_cells(&known, blobs.len(), |i| cells(&blobs[i])).await,
            false => self.write(&known, Taken::Replace, || blobs.iter().map(cells).collect()).await,
        }
    }

    async fn write_blob_if(&self, blob: &Blob, guard: Guard<'_>) -> Result<bool> {
        self.table.facts.abilities.can_conditional()?;
        let known = self.schema().await?;
        let cells = self.table.blob_cells(&blob.key, &blob.bytes)?;
        self.write_if(&known, &blob.key, cells, guard).await
    }

    async fn remove_row_if(&self, key: &Key, guard: Guard<'_>) -> Result<bool> {
        self.removed_if(key, guard).await
    }

    async fn read_blobs(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>> {
        self.found(keys, READ).await
    }

    async fn blobs_in(&self, range: &KeyRange) -> Result<BoxStream<'_, Result<Vec<Blob>>>> {
        let pages = self.pages(range, READ).await?;
        let blob = |(key, bytes)| Blob { key, bytes };
        Ok(pages.map_ok(move |page| page.into_iter().map(blob).collect()).boxed())
    }
}
