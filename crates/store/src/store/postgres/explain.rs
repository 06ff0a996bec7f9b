//! The statements of operations, and PostgreSQL's `EXPLAIN` of them.

use super::{
    PostgreSql,
    dialect::LIMITS,
    read::{FEW, Pace, bound, by_keys, page},
};
use crate::{
    Result,
    store::{Explained, Request, sql::ranges::Bounds},
};

impl PostgreSql {
    pub(super) async fn explained(&self, request: Request<'_>) -> Result<Option<Explained>> {
        let known = self.schema().await?;
        let say = &known.say;
        let (sql, values) = match request {
            Request::Put(rows) => {
                let statement = if rows.len() == 1 { &say.put_one } else { &say.put_many };
                return Ok(Some(Explained::new(statement.as_str())));
            }
            Request::Load(rows) => {
                return Ok(Some(Explained::new(match &say.copy {
                    Some(copy) if rows.len() > 1 => copy.as_str(),
                    _ if rows.len() == 1 => &say.insert_one,
                    _ => &say.insert_many,
                })));
            }
            Request::Get(keys) => {
                let Some((statement, asked)) = by_keys(&known, keys) else { return Ok(None) };
                (Explained::new(statement).with_keys(keys), vec![asked])
            }
            Request::Scan(range) => {
                let sql = page(&known, &Bounds::new(range, false), Pace::new().rows());
                let borders = range.from.iter().chain(&range.until);
                (Explained::new(&*sql.text).with_keys(borders), bound(&sql, &known)?)
            }
            Request::Find(query) => {
                let sql = self.select(&known, query)?;
                let explained = Explained::new(&*sql.text).with_values(&sql.values);
                let few = query.limit.is_some_and(|limit| limit <= FEW);
                let pages = format!(
                    "where more than {FEW} rows come, then all again in pages of up to {FEW}, by key"
                );
                (if few { explained } else { explained.followed_by(pages) }, bound(&sql, &known)?)
            }
            Request::Delete(filter) => {
                let filter = LIMITS.exact(filter, known.table.columns());
                let sql = known.table.delete(&known.dialect, &filter)?;
                (Explained::new(&*sql.text).with_values(&sql.values), bound(&sql, &known)?)
            }
            Request::Join(join) => {
                let (own, _, sql) = self.join_statement(join).await?;
                (Explained::new(&*sql.text).with_values(&sql.values), bound(&sql, &own)?)
            }
        };
        let mut connection = self.pool.get().await?;
        let lines = connection.query(&format!("EXPLAIN {}", sql.statement), &values).await?;
        let lines: Vec<String> = lines.iter().map(|row| row.try_get(0)).collect::<Result<_>>()?;
        Ok(Some(Explained { plan: Some(lines.join("\n")), ..sql }))
    }
}
