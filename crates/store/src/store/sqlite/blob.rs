//! SQLite as a store of bytes.

use async_trait::async_trait;
use futures_util::stream::BoxStream;

use super::{DOCUMENT, Sqlite3, column, table, write};
use crate::{
    Result,
    store::{
        Abilities, Blob, Key, KeyRange, blobs,
        sql::{BlobTable, Guard, Others, row::about},
    },
};

#[async_trait]
impl BlobTable for Sqlite3 {
    fn of_blobs(&self) -> &Abilities {
        &DOCUMENT
    }

    fn sibling(&self, name: &str) -> Result<Sqlite3> {
        let names = self.table.names.beside();
        let table = table::Lazy::new(self.table.shape, name, names, table::named)?;
        Ok(Sqlite3 { pool: self.pool.clone(), table, others: Others::default() })
    }

    fn check_key(&self, key: &Key) -> Result<()> {
        self.table.peek().map_or(Ok(()), |known| known.check_key(key))
    }

    async fn write_blobs(&self, blobs: &[Blob], new: bool) -> Result<()> {
        let known = self.schema().await?;
        for blob in blobs {
            blobs::fits(&DOCUMENT, &blob.key, blob.bytes.len())?;
            known.check_key(&blob.key)?;
        }
        self.pool
            .attempt_with(blobs, move |connection, blobs: &[Blob]| {
                write::rows(connection, &known, new, blobs)
            })
            .await
    }

    async fn write_blob_if(&self, blob: &Blob, guard: Guard<'_>) -> Result<bool> {
        let known = self.schema().await?;
        blobs::fits(&DOCUMENT, &blob.key, blob.bytes.len())?;
        known.check_key(&blob.key)?;
        let condition = known.condition(guard)?;
        self.pool
            .attempt_with(blob, move |connection, blob: &Blob| {
                write::row_if(connection, &known, condition.as_ref(), blob)
            })
            .await
    }

    async fn remove_row_if(&self, key: &Key, guard: Guard<'_>) -> Result<bool> {
        self.removed_if(key, guard).await
    }

    async fn read_blobs(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>> {
        let bytes = |_: &table::Schema, row: &rusqlite::Row, key: &Key| {
            table::bytes(row, 0).map(<[u8]>::to_vec).map_err(|e| about(e, key))
        };
        self.found(keys, bytes).await
    }

    async fn blobs_in(&self, range: &KeyRange) -> Result<BoxStream<'_, Result<Vec<Blob>>>> {
        let blob = |_: &table::Schema, row: &rusqlite::Row| {
            let key = column::key_of(row, 0)?;
            let bytes = table::bytes(row, 1).map_err(|e| about(e, &key))?.to_vec();
            Ok(Blob { key, bytes })
        };
        self.pages(range, blob).await
    }
}
