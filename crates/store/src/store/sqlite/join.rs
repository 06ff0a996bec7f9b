//! Joins: one statement over two tables of the database.

use std::sync::Arc;

use rusqlite::params_from_iter;

use super::{Sqlite3, column, error::error, table::Schema};
use crate::{
    Result,
    store::{
        join::{Groups, Join, Joined},
        sql::{self, BlobTable, OTHER, OWN, Sql},
    },
};

impl Sqlite3 {
    /// What is known of a table of this name, which may be this one.
    async fn beside(&self, name: &str) -> Result<Arc<Schema>> {
        match name == self.table.name {
            true => self.schema().await,
            false => self.others.get(name, || self.sibling(name))?.schema().await,
        }
    }

    /// The statement of a join, with what is known of its two tables.
    pub(super) async fn join_statement(
        &self,
        join: &Join,
    ) -> Result<(Arc<Schema>, Arc<Schema>, Sql)> {
        let (own, other) = (self.schema().await?, self.beside(&join.table).await?);
        let sql = sql::join(join, &own.side(OWN), &other.side(OTHER))?;
        Ok((own, other, sql))
    }

    pub(super) async fn joined(&self, join: &Join) -> Result<Vec<Joined>> {
        let (own, other, sql) = self.join_statement(join).await?;
        let done = self.pool.attempt(move |connection| {
            let mut statement = connection.prepare_cached(&sql.text).map_err(error)?;
            let values = sql.values.iter().map(column::cell);
            let mut cursor = statement.query(params_from_iter(values)).map_err(error)?;
            let mut groups = Groups::default();
            let own_from = other.width();
            while let Some(row) = cursor.next().map_err(error)? {
                let key = column::key_of(row, own_from)?;
                groups.add(key, || own.record(row, own_from), other.row(row)?)?;
            }
            Ok(groups.done())
        });
        done.await.inspect_err(|_| self.others.forget())
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;
    use crate::{
        record::{Kind, Value},
        store::{
            Column, Filter,
            query::{Path, Test},
            sql::{Body, Side, Table},
            sqlite::dialect::{Sqlite, extract},
        },
    };

    fn plan(connection: &Connection, body: &dyn Fn() -> Body) -> String {
        let table = |name: &str| Table { name: name.into(), key: "_key".into(), body: body() };
        let (own, other) = (table("owners"), table("pets"));
        let path = |name: &str| Path::new([name]);
        let join = Join {
            filter: Filter::Field(path("_key"), Test::Eq(Value::from("3"))),
            on: path("_key"),
            table: "pets".into(),
            field: path("owner"),
        };
        let dialect = Sqlite::default();
        let key_is_text = true;
        let own = Side { table: &own, dialect: &dialect, what: "a._key".into(), key_is_text };
        let other = Side { table: &other, dialect: &dialect, what: "b._key".into(), key_is_text };
        let sql = sql::join(&join, &own, &other).unwrap();
        let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {}", sql.text)).unwrap();
        let lines = plan.query_map(params_from_iter(["3"]), |row| row.get::<_, String>(3)).unwrap();
        lines.map(|line| line.unwrap() + "\n").collect()
    }

    #[test]
    fn both_sides_are_found_by_their_indexes() {
        let connection = Connection::open_in_memory().unwrap();
        let make = |columns: &str, on: &str| {
            let tables = ["owners", "pets"].map(|name| {
                format!("DROP TABLE IF EXISTS {name}; CREATE TABLE {name} (_key TEXT PRIMARY KEY NOT NULL, {columns});")
            });
            let index = format!("CREATE INDEX of_owner ON pets ({on})");
            connection.execute_batch(&(tables.concat() + &index)).unwrap();
        };
        let by_owner = extract("\"record\"", &Path::new(["owner"]));
        make("\"record\" TEXT NOT NULL", &by_owner);
        let documents = plan(&connection, &|| Body::Document("record".into()));
        make("\"owner\" TEXT", "\"owner\"");
        let column = || Column { name: "owner".into(), kind: Kind::Text };
        let columns = plan(&connection, &|| Body::Columns(vec![column()]));
        for plan in [documents, columns] {
            assert!(plan.contains("INDEX of_owner ("), "{plan}");
            assert!(plan.contains("sqlite_autoindex_owners") && !plan.contains("SCAN"), "{plan}");
        }
    }
}
