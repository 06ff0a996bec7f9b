//! Over which shards the records of a table are spread: noted beside them, so that they are not read or
//! written with other names or weights, which assign keys to other shards.

use std::sync::Arc;

use tokio::sync::OnceCell;

use crate::{
    Error, ErrorKind, Result,
    record::Document,
    store::{Column, Key, Layout, Row, Shape, Store},
};

/// The table of the notes, in each shard.
pub(super) const NOTES: &str = "_steelyard_shards";
/// The field of a note.
const OVER: &str = "over";

/// What is noted of a table.
pub(super) struct Spread {
    /// Names and weights of the shards.
    over: Arc<str>,
    /// The name of the table in each shard.
    tables: Vec<String>,
    looked: OnceCell<()>,
}

impl Spread {
    /// Of tables, one in each of these shards.
    pub(super) fn new<'n>(
        shards: impl Iterator<Item = (&'n str, f64)>,
        tables: Vec<String>,
    ) -> Spread {
        let over: Vec<String> = shards
            .map(
                |(name, weight)| {
                    if weight == 1.0 { name.into() } else { format!("{name} ({weight})") }
                },
            )
            .collect();
        Spread { over: over.join(", ").into(), tables, looked: OnceCell::new() }
    }

    /// Of another table, of the same name in all.
    pub(super) fn of_table(&self, name: &str) -> Spread {
        let tables = vec![name.to_owned(); self.tables.len()];
        Spread { over: self.over.clone(), tables, looked: OnceCell::new() }
    }

    /// Looks whether the table is spread over other shards than these, once.
    ///
    /// # Errors
    /// [`Mismatch`](ErrorKind::Mismatch) where it is; of the stores.
    pub(super) async fn look(&self, stores: &[Arc<dyn Store>]) -> Result<()> {
        let look = || async {
            for (store, table) in stores.iter().zip(&self.tables) {
                if let Some(other) =
                    noted(&**store, table).await?.filter(|other| **other != *self.over)
                {
                    return Err(self.other(table, &other));
                }
            }
            Ok(())
        };
        self.looked.get_or_try_init(look).await.copied()
    }

    fn other(&self, table: &str, other: &str) -> Error {
        let what = format!(
            "table {table:?} is spread over shards {other}; the configuration has {}, which assigns keys to other shards",
            self.over
        );
        let hint = "copy it: steelyard copy 'shard:?config=OLD.toml&table=T' 'shard:?config=NEW.toml&table=OTHER'";
        Error::new(ErrorKind::Mismatch, what).with_hint(hint)
    }

    /// Notes it in each shard.
    ///
    /// # Errors
    /// Of the stores.
    pub(super) async fn note(&self, stores: &[Arc<dyn Store>]) -> Result<()> {
        for (store, table) in stores.iter().zip(&self.tables) {
            if noted(&**store, table).await?.is_some() {
                continue;
            }
            let record = Document::from_iter([(OVER, &*self.over)]);
            let layout = match store.shape() {
                Shape::Columns => Layout::plain().with_columns(Column::infer([&record])?),
                _ => Layout::plain(),
            };
            let notes = store.table(NOTES)?;
            notes.prepare(&layout).await?;
            notes.put(&[Row { key: Key::new(table.as_str())?, record }]).await?;
        }
        Ok(())
    }

    /// Forgets it: the table is gone.
    ///
    /// # Errors
    /// Of the stores.
    pub(super) async fn forget(&self, stores: &[Arc<dyn Store>]) -> Result<()> {
        for (store, table) in stores.iter().zip(&self.tables) {
            match store.table(NOTES)?.remove(&[Key::new(table.as_str())?]).await {
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                done => done.map(drop)?,
            }
        }
        Ok(())
    }
}

/// What is noted of a table in one of its shards.
async fn noted(store: &dyn Store, table: &str) -> Result<Option<String>> {
    let found = match store.table(NOTES)?.get(&[Key::new(table)?]).await {
        Ok(mut found) => found.pop().flatten(),
        Err(e) if e.kind() == ErrorKind::NotFound => None,
        Err(e) => return Err(e),
    };
    Ok(found.and_then(|record| record.get(OVER)?.as_str().map(str::to_owned)))
}
