//! Joins: one statement over two tables of the schema.

use std::sync::Arc;

use futures_util::FutureExt;

use super::{
    PostgreSql,
    dialect::LIMITS,
    read::bound,
    rows::{self, Cells},
    table::Schema,
};
use crate::{
    Result,
    store::{
        join::{Groups, Join, Joined},
        sql::{self, BlobTable, OTHER, OWN, Sql},
    },
};

/// The cells of a row from some column on.
struct Tail<'a>(usize, &'a dyn Cells);

impl Cells for Tail<'_> {
    fn cell(&self, i: usize) -> Result<Option<&[u8]>> {
        self.1.cell(self.0 + i)
    }

    fn width(&self) -> usize {
        self.1.width().saturating_sub(self.0)
    }
}

impl PostgreSql {
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
        let values = bound(&sql, &own)?;
        let mut groups = Groups::default();
        let own_from = 1 + other.fields.body.len();
        let row = |row: &dyn Cells| {
            let cells = Tail(own_from, row);
            let key = rows::key_of(&own, &cells)?;
            groups.add(key, || rows::record(&own, &cells), rows::row(&other, row)?)
        };
        let done = self.noted(self.pool.rows(&sql.text, &values, row).await);
        done.inspect_err(|_| self.others.forget())?;
        Ok(groups.done())
    }
}
