//! PostgreSQL as a store of bytes.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream::BoxStream;

use super::{
    BLOB, PostgreSql, rows,
    setting::Setting,
    table::{Lazy, Schema},
};
use crate::{
    Result,
    store::{
        Abilities, Blob, Key, KeyRange, Part,
        sql::{BlobTable, Guard, Others, row::of_key},
    },
};

fn blob(known: &Schema, row: &dyn rows::Cells) -> Result<Blob> {
    Ok(Blob { key: rows::key_of(known, row)?, bytes: rows::bytes(known, row)? })
}

#[async_trait]
impl BlobTable for PostgreSql {
    fn of_blobs(&self) -> &Abilities {
        &BLOB
    }

    fn sibling(&self, name: &str) -> Result<PostgreSql> {
        let names = self.table.names.beside();
        let table = Lazy::new(self.table.shape, name, names, self.table.tier)?;
        Ok(PostgreSql { pool: self.pool.clone(), table, others: Others::default() })
    }

    fn elsewhere(&self, part: Part<'_>) -> Result<Option<PostgreSql>> {
        let mut names = self.table.names.clone();
        let tenant = match part {
            // A connection is to one database.
            Part::Database(_) => return Ok(None),
            Part::Schema(name) => {
                names.schema = Some(name.to_owned());
                None
            }
            Part::Tenant(name) => Some(name),
        };
        let table = Lazy::new(self.table.shape, &self.table.name, names, self.table.tier)?;
        let pool = self.pool.set_to(Setting::new(&table, tenant)?);
        Ok(pool.map(|pool| PostgreSql { pool: Arc::new(pool), table, others: Others::default() }))
    }

    fn check_key(&self, key: &Key) -> Result<()> {
        let known = self.table.supposed()?;
        known.fields.key.write_key(key, &mut Vec::new()).map_err(|e| of_key(e, key))
    }

    async fn write_blobs(&self, blobs: &[Blob], new: bool) -> Result<()> {
        match new {
            true => self.load_entries(blobs).await,
            false => self.put_entries(blobs).await,
        }
    }

    async fn write_blob_if(&self, blob: &Blob, guard: Guard<'_>) -> Result<bool> {
        self.write_if(blob, guard).await
    }

    async fn remove_row_if(&self, key: &Key, guard: Guard<'_>) -> Result<bool> {
        self.removed_if(key, guard).await
    }

    async fn read_blobs(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>> {
        self.found(keys, rows::bytes).await
    }

    async fn blobs_in(&self, range: &KeyRange) -> Result<BoxStream<'_, Result<Vec<Blob>>>> {
        self.ranged(range, blob).await
    }
}
