//! Joins: one statement over two tables of the database.

use std::sync::Arc;

use rusqlite::params_from_iter;

use super::{Sqlite, Sqlite3, pool, table, table::Known};
use crate::{
    Result,
    store::{
        join::{Groups, Join, Joined},
        sql::{self, OTHER, OWN},
    },
};

impl Sqlite3 {
    /// What is known of a table of this name, which may be this one.
    async fn beside(&self, name: &str) -> Result<Arc<Known>> {
        match name == self.table.name() {
            true => self.known().await,
            false => self.others.get(name, || self.sibling(name))?.known().await,
        }
    }

    pub(super) async fn joined(&self, join: &Join) -> Result<Vec<Joined>> {
        let (own, other) = (self.known().await?, self.beside(&join.table).await?);
        own.text_key(&join.on)?;
        other.text_key(&join.field)?;
        let sql = sql::join(
            join,
            (&own.table, &Sqlite, &own.what_of(OWN)),
            (&other.table, &Sqlite, &other.what_of(OTHER)),
        )?;
        let done = self.pool.attempt(move |connection| {
            let mut statement = connection.prepare_cached(&sql.text).map_err(pool::error)?;
            let values = sql.values.iter().map(table::cell);
            let mut cursor = statement.query(params_from_iter(values)).map_err(pool::error)?;
            let mut groups = Groups::default();
            let own_from = other.width();
            while let Some(row) = cursor.next().map_err(pool::error)? {
                let key = table::key_of(row, own_from)?;
                groups.add(key, || own.record(row, own_from), other.row(row)?)?;
            }
            Ok(groups.done())
        });
        done.await.inspect_err(|_| self.others.forget())
    }
}
