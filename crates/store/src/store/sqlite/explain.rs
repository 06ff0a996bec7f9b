//! The statements of operations, and SQLite's `EXPLAIN QUERY PLAN` of them.

use rusqlite::{Connection, params_from_iter, types::Value as Cell};

use super::{AT_ONCE, Sqlite3, column, read::page};
use crate::{
    Result,
    store::{
        Explained, Query, Request,
        sql::{Sql, ranges::Bounds},
    },
};

impl Sqlite3 {
    pub(super) async fn explained(&self, request: Request<'_>) -> Result<Option<Explained>> {
        let known = self.schema().await?;
        let text = |text: &str| Cell::Text(text.to_owned());
        let (explained, cells) = match request {
            Request::Put(_) => return Ok(Some(Explained::new(known.writing(false)))),
            Request::Load(_) => return Ok(Some(Explained::new(known.writing(true)))),
            Request::Get(keys) => {
                // One statement for each key.
                let first = keys.iter().take(1);
                let cells = first.clone().map(|key| text(key)).collect();
                (Explained::new(&*known.texts.get).with_keys(first), cells)
            }
            Request::Scan(range) => {
                let borders = range.from.iter().chain(&range.until);
                let (explained, cells) = of_sql(page(&known, &Bounds::new(range, true)));
                (explained.with_keys(borders), cells)
            }
            Request::Find(query) => {
                let (explained, cells) =
                    of_sql(known.table.select(&known.dialect, &known.what(), query)?);
                let then = format!(
                    "where more than {AT_ONCE} rows come, then all their rowids, and each row by its"
                );
                match query.limit.is_some_and(|limit| limit <= AT_ONCE) {
                    true => (explained, cells),
                    false => (explained.followed_by(then), cells),
                }
            }
            Request::Delete(filter) => {
                Query::new(filter.clone()).check()?;
                of_sql(known.table.delete(&known.dialect, filter)?)
            }
            Request::Join(join) => of_sql(self.join_statement(join).await?.2),
        };
        let statement = explained.statement.clone();
        let plan = self.pool.run(move |connection| plan(connection, &statement, cells)).await?;
        Ok(Some(Explained { plan: Some(plan), ..explained }))
    }
}

fn of_sql(sql: Sql) -> (Explained, Vec<Cell>) {
    let cells = sql.values.iter().map(column::cell).collect();
    (Explained::new(&*sql.text).with_values(&sql.values), cells)
}

/// The plan as a tree of lines, each step indented below the one it is part of.
fn plan(connection: &Connection, statement: &str, cells: Vec<Cell>) -> rusqlite::Result<String> {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {statement}"))?;
    let mut rows = statement.query(params_from_iter(cells))?;
    let (mut depths, mut lines) = (vec![(0i64, 0usize)], Vec::new());
    while let Some(row) = rows.next()? {
        let (id, parent, detail): (i64, i64, String) = (row.get(0)?, row.get(1)?, row.get(3)?);
        let above = depths.iter().find(|(of, _)| *of == parent).map_or(0, |(_, depth)| *depth);
        depths.push((id, above + 1));
        lines.push(format!("{}{detail}", "  ".repeat(above)));
    }
    Ok(lines.join("\n"))
}
