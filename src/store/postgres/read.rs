//! Reading: by keys, by pages of keys, by queries.
//!
//! A query without a limit is read through a portal, in a read-only transaction on a connection that
//! is there for streams: whoever reads it may write meanwhile, even with a pool of one.

use std::{collections::HashMap, sync::Arc};

use futures_util::{Stream, StreamExt, stream, stream::BoxStream};
use tokio_postgres::{Row as PgRow, types::Type};

use super::{
    PostgreSql,
    error::error,
    exact::exact,
    pool::separate,
    rows::{self, Cells},
    table::{self, Known},
    wire::{self, Bound, Wire},
};
use crate::{
    Error, Result,
    record::Value,
    store::{
        Filter, Key, KeyRange, Query,
        query::{Order, Path},
        sql::Sql,
        within,
    },
};

/// What `read` makes of rows.
pub type Read<R> = fn(&Known, &dyn Cells) -> Result<R>;

/// How many rows a stream reads at once: fewer where they are large.
struct Pace(usize);

impl Pace {
    const MOST: usize = 1000;

    fn new() -> Pace {
        Pace(Self::MOST / 8)
    }

    /// Learns from what came.
    fn learn(&mut self, rows: &[PgRow]) {
        let bytes: usize = rows.iter().map(PgRow::raw_size_bytes).sum();
        match bytes {
            n if n > 8 << 20 => self.0 = (self.0 / 2).max(1),
            n if n < 2 << 20 => self.0 = (self.0 * 2).min(Self::MOST),
            _ => {}
        }
    }
}

impl PostgreSql {
    /// What `read` makes of the rows of these keys.
    pub(super) async fn found<R: Clone>(
        &self,
        keys: &[Key],
        read: Read<R>,
    ) -> Result<Vec<Option<R>>> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let known = self.known().await?;
        let (array, bound) = table::keys(&known, keys);
        let asked = match bound {
            Bound::Many(_, 0, _) => return Ok(vec![None; keys.len()]),
            Bound::Many(one, 1, field) => (one, Bound::One(field)),
            many => (array, many),
        };
        let statement = match asked.1 {
            Bound::One(_) => &known.say.get_one,
            _ => &known.say.get_many,
        };
        if let [_] = keys {
            let mut found = None;
            let row = |row: &dyn Cells| {
                found = Some(read(&known, row)?);
                Ok(())
            };
            self.noted(self.pool.rows(statement, &[asked], row).await)?;
            return Ok(vec![found]);
        }
        let mut found = HashMap::with_capacity(keys.len());
        let row = |row: &dyn Cells| {
            found.insert(rows::key_of(row)?, read(&known, row)?);
            Ok(())
        };
        self.noted(self.pool.rows(statement, &[asked], row).await)?;
        Ok(keys.iter().map(|key| found.get(key).cloned()).collect())
    }

    /// All rows of a query that are not too many, as `read` makes them.
    pub(super) async fn at_once<R>(&self, query: &Query, read: Read<R>) -> Result<Vec<R>> {
        let known = self.known().await?;
        let sql = self.select(&known, query)?;
        let values = bound(&sql, &known)?;
        let connection = self.pool.get().await?;
        let rows = self.noted(connection.query(&sql.text, &values).await)?;
        drop(connection);
        rows.iter().map(|row| read(&known, row)).collect()
    }

    fn select(&self, known: &Known, query: &Query) -> Result<Sql> {
        query.check()?;
        let columns = known.columns();
        let mut query = Query { filter: exact(&query.filter, columns), ..query.clone() };
        if let Some(columns) = columns {
            // Not there in any record: as good as not asked for.
            let there = |path: &Path| {
                path.is_key() || matches!(path.names(), [n] if columns.iter().any(|c| c.name == *n))
            };
            let sorted = !query.sort.is_empty();
            query.sort.retain(|(path, _)| there(path));
            if sorted && query.sort.is_empty() {
                query.sort.push((Path::new([Path::KEY]), Order::Ascending));
            }
        }
        known.table.select(&known.dialect, &known.say.what, &query)
    }

    /// The rows of a query, some at a time, as `read` makes them.
    pub(super) async fn streamed<'s, R: Send + 's>(
        &'s self,
        query: &Query,
        read: Read<R>,
    ) -> Result<BoxStream<'s, Result<Vec<R>>>> {
        let known = self.known().await?;
        let sql = self.select(&known, query)?;
        let values = bound(&sql, &known)?;
        self.through_portal(known, sql.text, values, read).await
    }

    async fn through_portal<'s, R: Send + 's>(
        &'s self,
        known: Arc<Known>,
        text: String,
        values: Vec<(Type, Bound)>,
        read: Read<R>,
    ) -> Result<BoxStream<'s, Result<Vec<R>>>> {
        let batches = async_stream::try_stream! {
            let mut connection = self.pool.stream().await?;
            let (types, values) = separate(&values);
            let statement = self.noted(connection.prepare(&text, &types).await)?;
            connection.begin();
            let (client, limit) = connection.parts();
            let start = async { client.build_transaction().read_only(true).start().await.map_err(error) };
            let transaction = within(limit, "a transaction", start).await?;
            let portal = async { transaction.bind(&statement, &values).await.map_err(error) };
            let portal = within(limit, "a query", portal).await?;
            let mut pace = Pace::new();
            loop {
                let wanted = pace.0;
                let rows = async {
                    transaction.query_portal(&portal, wanted as i32).await.map_err(error)
                };
                let rows = within(limit, "a query", rows).await?;
                pace.learn(&rows);
                let batch = rows.iter().map(|row| read(&known, row)).collect::<Result<Vec<R>>>()?;
                if rows.len() < wanted {
                    // The connection is free before the last rows are looked at.
                    let commit = async { transaction.commit().await.map_err(error) };
                    within(limit, "the end of a query", commit).await?;
                    connection.end();
                    drop(connection);
                    if !batch.is_empty() {
                        yield batch;
                    }
                    break;
                }
                yield batch;
            }
        };
        // What is wrong with the query is said at once.
        let mut batches = Box::pin(batches);
        match batches.next().await {
            None => Ok(stream::empty().boxed()),
            Some(first) => Ok(stream::iter([Ok(first?)]).chain(batches).boxed()),
        }
    }

    /// All rows whose keys lie in a range, in their order.
    pub(super) async fn ranged<'s, R: Send + 's>(
        &'s self,
        range: &KeyRange,
        read: Read<R>,
    ) -> Result<BoxStream<'s, Result<Vec<R>>>> {
        let known = self.known().await?;
        let range = Bounds::new(range);
        if known.in_order {
            return Ok(self.pages(known, range, read).boxed());
        }
        // Without an index in that order, each page would cost as much as all.
        let key = known.key_text();
        let mut values = Vec::new();
        let text = format!(
            "SELECT {} FROM {}{} ORDER BY {key}",
            known.say.what,
            super::dialect::quote(&known.table.name),
            range.condition(&key, &mut values)
        );
        self.through_portal(known, text, values, read).await
    }

    /// Page by page, each a query of its own.
    fn pages<R: Send>(
        &self,
        known: Arc<Known>,
        range: Bounds,
        read: Read<R>,
    ) -> impl Stream<Item = Result<Vec<R>>> + Send {
        let state = Some((range, Pace::new()));
        stream::try_unfold(state, move |state| {
            let known = known.clone();
            async move {
                let Some((range, mut pace)) = state else { return Ok::<_, Error>(None) };
                let key = known.key_text();
                let mut values = Vec::new();
                let text = format!(
                    "SELECT {} FROM {}{} ORDER BY {key} LIMIT {}",
                    known.say.what,
                    super::dialect::quote(&known.table.name),
                    range.condition(&key, &mut values),
                    pace.0
                );
                let connection = self.pool.get().await?;
                let rows = self.noted(connection.query(&text, &values).await)?;
                drop(connection);
                let next = match rows.last() {
                    Some(last) if rows.len() == pace.0 => {
                        pace.learn(&rows);
                        let from = Some((rows::key_of(last)?.to_string(), " > "));
                        Some((Bounds { from, until: range.until }, pace))
                    }
                    _ => None,
                };
                let batch = rows.iter().map(|row| read(&known, row)).collect::<Result<Vec<_>>>()?;
                Ok((!batch.is_empty()).then_some((batch, next)))
            }
        })
    }

    pub(super) async fn parts(&self, parts: u32) -> Result<Vec<KeyRange>> {
        let count = self.counted().await?;
        let known = self.known().await?;
        let mut places = Vec::new();
        for i in 1..u128::from(parts) {
            let place = (u128::from(count) * i / u128::from(parts)) as i64;
            wire::field(&mut places, |out| Wire::Int8.write(&Value::Int(place), out))?;
        }
        let key = known.key_text();
        let text = format!(
            "SELECT CAST(k AS text) FROM (SELECT {key} AS k, row_number() OVER (ORDER BY {key}) - 1 \
             AS n FROM {}) AS s JOIN unnest($1) AS p(place) ON n = place ORDER BY place",
            super::dialect::quote(&known.table.name)
        );
        let (one, many) = Wire::Int8.types();
        let places = Bound::Many(one, parts.saturating_sub(1) as usize, places);
        let connection = self.pool.get().await?;
        let rows = self.noted(connection.query(&text, &[(many, places)]).await)?;
        let borders = rows.iter().map(|row| rows::key_of(row)).collect::<Result<Vec<_>>>()?;
        let mut ranges = KeyRange::between(borders);
        ranges.resize_with(parts as usize, || {
            // No key lies in it.
            let none = Key::new("\0").expect("not empty");
            KeyRange { from: Some(none.clone()), until: Some(none) }
        });
        Ok(ranges)
    }

    pub(super) async fn counted(&self) -> Result<u64> {
        let known = self.known().await?;
        let text = format!("SELECT count(*) FROM {}", super::dialect::quote(&known.table.name));
        let connection = self.pool.get().await?;
        let rows = self.noted(connection.query(&text, &[]).await)?;
        let count: i64 = rows[0].try_get(0).map_err(error)?;
        Ok(count as u64)
    }

    pub(super) async fn deleted(&self, filter: &Filter) -> Result<u64> {
        Query::new(filter.clone()).check()?;
        let known = self.known().await?;
        let sql = known.table.delete(&known.dialect, &exact(filter, known.columns()))?;
        let values = bound(&sql, &known)?;
        let connection = self.pool.get().await?;
        self.noted(connection.execute(&sql.text, &values).await)
    }
}

/// What is bound to a statement about a table.
pub(super) fn bound(sql: &Sql, known: &Known) -> Result<Vec<(Type, Bound)>> {
    sql.values.iter().map(|value| rows::compared(value, known.columns().is_none())).collect()
}

/// A range of keys, in words for texts without NUL: where a border has one, the border is just
/// after what stands before it.
struct Bounds {
    from: Option<(String, &'static str)>,
    until: Option<(String, &'static str)>,
}

impl Bounds {
    fn new(range: &KeyRange) -> Bounds {
        let border = |key: &Key, operator, after_nul| match key.split_once('\0') {
            None => (key.to_string(), operator),
            Some((before, _)) => (before.to_owned(), after_nul),
        };
        Bounds {
            from: range.from.as_ref().map(|key| border(key, " >= ", " > ")),
            until: range.until.as_ref().map(|key| border(key, " < ", " <= ")),
        }
    }

    fn condition(&self, key: &str, values: &mut Vec<(Type, Bound)>) -> String {
        let mut text = String::new();
        for (border, operator) in [&self.from, &self.until].into_iter().flatten() {
            let mut field = (border.len() as i32).to_be_bytes().to_vec();
            field.extend(border.as_bytes());
            values.push((Wire::Text.types().0, Bound::One(field)));
            let word = if text.is_empty() { "WHERE" } else { "AND" };
            text += &format!(" {word} {key}{operator}${}", values.len());
        }
        text
    }
}
