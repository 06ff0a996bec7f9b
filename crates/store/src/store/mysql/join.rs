//! Joins: one statement over two tables of the database.

use std::sync::Arc;

use futures_util::FutureExt;

use super::{MySql, dialect::LIMITS, read::values, schema::Schema};
use crate::{
    Result,
    store::{
        join::{Groups, Join, Joined},
        sql::{self, BlobTable, OTHER, OWN, Sql},
    },
};

impl MySql {
    /// What is known of a table of this name, which may be this one.
    async fn beside(&self, name: &str) -> Result<Arc<Schema>> {
        match name == self.table.name {
            true => self.schema().await,
            false => self.others.get(name, || self.sibling(name))?.schema().boxed().await,
        }
    }

    /// The statement of a join, with what is known of its two tables.
    pub(super) async fn join_statement(
        &self,
        join: &Join,
    ) -> Result<(Arc<Schema>, Arc<Schema>, Sql)> {
        let (own, other) = (self.schema().await?, self.beside(&join.table).await?);
        let filter = LIMITS.exact(&join.filter, own.table.columns());
        let sql = sql::join(&Join { filter, ..join.clone() }, &own.side(OWN), &other.side(OTHER))?;
        Ok((own, other, sql))
    }

    pub(super) async fn joined(&self, join: &Join) -> Result<Vec<Joined>> {
        let (own, other, sql) = self.join_statement(join).await?;
        let rows = self.pool.rows(&sql.text, values(&sql)).await;
        let mut groups = Groups::default();
        for cells in rows.inspect_err(|_| self.others.forget())? {
            let mut others = cells.unwrap();
            let mut cells = others.split_off(other.width().min(others.len())).into_iter();
            let key = own.key_of(cells.next())?;
            let of = key.clone();
            groups.add(key, || own.record(&of, cells), other.row_of(others.into_iter())?)?;
        }
        Ok(groups.done())
    }
}
