//! The statements of operations, and the server's `EXPLAIN FORMAT=JSON` of them.

use mysql_async::Value as Cell;

use super::{
    MySql, load,
    read::{self, values},
    schema::Schema,
    sorting::Step,
    write::{Taken, insert},
};
use crate::{
    Error, Result,
    store::{
        Explained, Filter, Query, Request,
        sql::{Sorting, Sql, ranges::Bounds},
    },
};

impl MySql {
    pub(super) async fn explained(&self, request: Request<'_>) -> Result<Option<Explained>> {
        let known = self.schema().await?;
        let (explained, cells) = match request {
            Request::Put([_]) => return Ok(Some(Explained::new(&*known.put_one))),
            // Of as many rows as fit; one shows what is done.
            Request::Put(_) => return Ok(Some(Explained::new(insert(&known, 1, Taken::Replace)))),
            Request::Load(rows) => {
                let statement = match self.loads_by_file(&known, rows.len()) {
                    true => load::statement(&known),
                    false => insert(&known, 1, Taken::Refuse),
                };
                return Ok(Some(Explained::new(statement)));
            }
            Request::Get([key]) => {
                let Some(sought) = known.key_sought(key) else { return Ok(None) };
                (Explained::new(&*known.get_one).with_keys([key]), vec![sought])
            }
            Request::Get(keys) => {
                let Some((statement, sought)) = read::by_keys(&known, keys) else {
                    return Ok(None);
                };
                (Explained::new(statement).with_keys(keys), sought)
            }
            Request::Scan(range) if known.key_is_exact() => {
                let sql = read::page(&known, &Bounds::new(range, true), read::FIRST_PAGE);
                let borders = range.from.iter().chain(&range.until);
                (Explained::new(&*sql.text).with_keys(borders), values(&sql))
            }
            Request::Scan(_) => return Ok(None),
            Request::Find(query) => {
                let (first, cells) = of_sql(&self.find_statement(&known, query)?);
                match Self::finds_keys(query) {
                    true => (
                        first.followed_by(format!("then, many keys at a time: {}", known.get_one)),
                        cells,
                    ),
                    false => (first, cells),
                }
            }
            Request::Delete(filter) => {
                let query = self.fitted(&known, &Query::new(filter.clone()))?;
                of_sql(&known.table.delete(&known.dialect, &query.filter)?)
            }
            Request::Join(join) => of_sql(&self.join_statement(join).await?.2),
        };
        let statement = format!("EXPLAIN FORMAT=JSON {}", explained.statement);
        let row = self.pool.rows(&statement, cells).await?.into_iter().next();
        let plan = row.and_then(|row| mysql_async::from_row_opt::<String>(row).ok());
        let plan = plan.ok_or_else(|| Error::malformed("an EXPLAIN that is not text"))?;
        Ok(Some(Explained { plan: Some(plan), ..explained }))
    }

    /// The statement that a query begins with.
    fn find_statement(&self, known: &Schema, query: &Query) -> Result<Sql> {
        let fitted = self.fitted(known, query)?;
        if query.limit.is_some_and(|limit| limit <= read::AT_ONCE) {
            let how = match known.dialect.sorted_by_index(query) {
                Some(_) => Sorting::ByIndex,
                None => Sorting::Exact,
            };
            return known.table.select_sorted(&known.dialect, &known.what(), &fitted, how);
        }
        match Self::finds_keys(query) {
            false => known.table.select(&known.dialect, &known.what(), &fitted),
            true => {
                let limit = query.limit.unwrap_or(u64::MAX);
                Ok(read::keys_statement(known, &fitted, None, limit, Step::FIRST)?.0)
            }
        }
    }

    /// Whether the keys of a query are found first, and then the records by these.
    fn finds_keys(query: &Query) -> bool {
        let few = query.limit.is_some_and(|limit| limit <= read::AT_ONCE);
        !few && !matches!((&query.filter, &*query.sort, query.limit), (Filter::All, [], None))
    }
}

fn of_sql(sql: &Sql) -> (Explained, Vec<Cell>) {
    (Explained::new(&*sql.text).with_values(&sql.values), values(sql))
}
