//! Reading: by keys, by pages of keys, by queries.
//!
//! Streams ask for one page after the other, and hold no connection between them: whoever reads one
//! may write meanwhile, even with a pool of one.

use std::{collections::HashMap, sync::Arc};

use futures_util::{FutureExt, Stream, StreamExt, stream, stream::BoxStream};
use tokio_postgres::types::Type;

use super::{
    PostgreSql,
    dialect::LIMITS,
    rows::{self, Cells},
    table::{self, Schema},
    wire::{self, Bound, Wire},
};
use crate::{
    Error, Result,
    record::Value,
    store::{
        Filter, Key, KeyRange, Query, counts, in_batches,
        net::{Fewer, is_too_long},
        sql::{
            Sql, quote,
            ranges::{self, Bounds},
        },
    },
};

/// So many rows of a query come by one statement; of more, these are dropped and all come in pages, so
/// that no connection is held in between.
pub(super) const FEW: u64 = Pace::MOST as u64;

/// What `read` makes of rows.
pub(super) type Read<R> = fn(&Schema, &dyn Cells) -> Result<R>;

/// How many rows a stream reads at once: fewer where they are large.
pub(super) struct Pace(usize);

impl Pace {
    const MOST: usize = 1000;

    /// Few at first: nothing is known of how large they are.
    pub(super) fn new() -> Pace {
        Pace(Self::MOST / 64)
    }

    /// How many rows come next.
    pub(super) fn rows(&self) -> usize {
        self.0
    }

    /// Whether fewer may do, after this error.
    fn fewer(&mut self, e: &Error) -> bool {
        let fewer = self.0 > 1 && is_too_long(e);
        if fewer {
            self.0 /= 2;
        }
        fewer
    }

    /// Learns from how many bytes came.
    fn learn(&mut self, bytes: usize) {
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
        let known = self.schema().await?;
        if let [_] = keys {
            let Some((statement, asked)) = by_keys(&known, keys) else { return Ok(vec![None]) };
            let mut found = None;
            let row = |row: &dyn Cells| {
                found = Some(read(&known, row)?);
                Ok(())
            };
            self.noted(self.pool.rows(statement, &[asked], row).await)?;
            return Ok(vec![found]);
        }
        let mut found = HashMap::with_capacity(keys.len());
        let mut row = |row: &dyn Cells| {
            found.insert(rows::key_of(&known, row)?, read(&known, row)?);
            Ok(())
        };
        let mut asked = Fewer::new(keys);
        while let Some(some) = asked.next() {
            let Some((statement, sought)) = by_keys(&known, some) else { continue };
            if let Err(e) = self.noted(self.pool.rows(statement, &[sought], &mut row).await) {
                asked.after(keys, e)?;
            }
        }
        Ok(keys.iter().map(|key| found.get(key).cloned()).collect())
    }

    /// The first rows of a query, at most so many, as `read` makes them.
    pub(super) async fn first<R>(&self, query: &Query, most: u64, read: Read<R>) -> Result<Vec<R>> {
        let known = self.schema().await?;
        let sql = self.select(&known, query)?;
        let values = bound(&sql, &known)?;
        let mut rows = Vec::new();
        let row = |row: &dyn Cells| {
            rows.push(read(&known, row)?);
            Ok(())
        };
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        self.noted(self.pool.first_rows(most, &sql.text, &values, row).await)?;
        Ok(rows)
    }

    /// The statement of a query.
    pub(super) fn select(&self, known: &Schema, query: &Query) -> Result<Sql> {
        self.selecting(known, &known.say.what, query)
    }

    fn selecting(&self, known: &Schema, what: &str, query: &Query) -> Result<Sql> {
        query.check()?;
        let filter = LIMITS.exact(&query.filter, known.table.columns());
        let query = Query { filter, ..query.clone() };
        known.table.select(&known.dialect, what, &query)
    }

    /// The rows of a query, some at a time, as `read` makes them. Where they are few, it is one
    /// statement.
    pub(super) async fn streamed<'s, R: Send + Clone + 's>(
        &'s self,
        query: &Query,
        read: Read<R>,
    ) -> Result<BoxStream<'s, Result<Vec<R>>>> {
        let limit = query.limit.unwrap_or(u64::MAX);
        if limit == 0 {
            return Ok(in_batches(Vec::new().into_iter()).boxed());
        }
        match self.first(query, limit.min(FEW + 1), read).await {
            Ok(rows) if rows.len() as u64 <= FEW.min(limit) => {
                return Ok(in_batches(rows.into_iter()).boxed());
            }
            // They are too large to come at once.
            Err(e) if !is_too_long(&e) => return Err(e),
            _ => {}
        }
        let known = self.schema().await?;
        match known.in_order && query.sort.is_empty() {
            true => Ok(self.after_keys(known, query.filter.clone(), limit, read).boxed()),
            false => {
                let sql = self.selecting(&known, &known.key_what(), query)?;
                let keys = self.keys(&known, &sql.text, &bound(&sql, &known)?).await?;
                Ok(self.of_keys(known, keys, read).boxed())
            }
        }
    }

    /// The keys that a statement gives in its first column.
    async fn keys(&self, known: &Schema, text: &str, values: &[(Type, Bound)]) -> Result<Vec<Key>> {
        let mut keys = Vec::new();
        let row = |row: &dyn Cells| {
            keys.push(rows::key_of(known, row)?);
            Ok(())
        };
        self.noted(self.pool.rows(text, values, row).await)?;
        Ok(keys)
    }

    /// The rows that fit, in the order of their keys: each page begins after the key that was last.
    fn after_keys<R: Send>(
        &self,
        known: Arc<Schema>,
        filter: Filter,
        limit: u64,
        read: Read<R>,
    ) -> impl Stream<Item = Result<Vec<R>>> + Send {
        let state = Some((None::<Key>, limit, Pace::new()));
        stream::try_unfold(state, move |state| {
            let (known, filter) = (known.clone(), filter.clone());
            async move {
                let Some((after, left, mut pace)) = state else { return Ok::<_, Error>(None) };
                let filter = match after {
                    None => filter,
                    Some(after) => ranges::after(filter, &after),
                };
                let (page, wanted) = loop {
                    let mut sql = self.select(&known, &Query::new(filter.clone()))?;
                    let wanted = left.min(pace.0 as u64);
                    sql.push(&format!(" ORDER BY {} LIMIT {wanted}", known.key_text()));
                    let values = bound(&sql, &known)?;
                    match self.page(&known, &sql.text, &values, read).await {
                        Err(e) if pace.fewer(&e) => {}
                        page => break (page?, wanted),
                    }
                };
                let left = left - page.rows.len() as u64;
                let more = page.rows.len() as u64 == wanted && left > 0;
                pace.learn(page.bytes);
                let next = more.then_some((page.last, left, pace));
                Ok((!page.rows.is_empty()).then_some((page.rows, next)))
            }
        })
    }

    /// The rows of these keys, in their order.
    fn of_keys<R: Send + Clone>(
        &self,
        known: Arc<Schema>,
        keys: Vec<Key>,
        read: Read<R>,
    ) -> impl Stream<Item = Result<Vec<R>>> + Send {
        stream::try_unfold((keys.into_iter(), Pace::new()), move |(mut keys, mut pace)| {
            let known = known.clone();
            async move {
                // All of a page may have been deleted meanwhile.
                while !keys.as_slice().is_empty() {
                    let asked: Vec<Key> = keys.by_ref().take(pace.0).collect();
                    let (mut found, mut bytes) = (HashMap::with_capacity(asked.len()), 0);
                    let row = |row: &dyn Cells| {
                        bytes += row.size();
                        found.insert(rows::key_of(&known, row)?, read(&known, row)?);
                        Ok(())
                    };
                    let (mut row, mut some) = (row, Fewer::new(&asked));
                    while let Some(keys) = some.next() {
                        let sought = [table::keys(&known, keys)];
                        let read = self.pool.rows(&known.say.get_many, &sought, &mut row).await;
                        if let Err(e) = self.noted(read) {
                            some.after(&asked, e)?;
                        }
                    }
                    pace.learn(bytes);
                    let rows: Vec<R> =
                        asked.iter().filter_map(|key| found.get(key).cloned()).collect();
                    if !rows.is_empty() {
                        return Ok::<_, Error>(Some((rows, (keys, pace))));
                    }
                }
                Ok(None)
            }
        })
    }

    /// The rows that a statement gives.
    async fn page<R>(
        &self,
        known: &Schema,
        text: &str,
        values: &[(Type, Bound)],
        read: Read<R>,
    ) -> Result<Page<R>> {
        let mut page = Page { rows: Vec::new(), bytes: 0, last: None };
        let row = |row: &dyn Cells| {
            page.bytes += row.size();
            page.last = Some(rows::key_of(known, row)?);
            page.rows.push(read(known, row)?);
            Ok(())
        };
        self.noted(self.pool.rows(text, values, row).await)?;
        Ok(page)
    }

    /// All rows whose keys lie in a range, in their order.
    pub(super) async fn ranged<'s, R: Send + Clone + 's>(
        &'s self,
        range: &KeyRange,
        read: Read<R>,
    ) -> Result<BoxStream<'s, Result<Vec<R>>>> {
        let known = self.schema().await?;
        let bounds = Bounds::new(range, false);
        if known.in_order {
            return Ok(self.pages(known, bounds, read).boxed());
        }
        // Without an index in that order, each page would cost as much as all.
        let select = format!("SELECT {} FROM {}", known.key_what(), quote(&known.table.name));
        let sql = ranges::page(&known.dialect, &select, &known.key_text(), &bounds);
        let keys = self.keys(&known, &sql.text, &bound(&sql, &known)?).await?;
        Ok(self.of_keys(known, keys, read).boxed())
    }

    /// Page by page, each a query of its own.
    fn pages<R: Send>(
        &self,
        known: Arc<Schema>,
        bounds: Bounds,
        read: Read<R>,
    ) -> impl Stream<Item = Result<Vec<R>>> + Send {
        let state = Some((bounds, Pace::new()));
        stream::try_unfold(state, move |state| {
            let known = known.clone();
            async move {
                let Some((bounds, mut pace)) = state else { return Ok::<_, Error>(None) };
                let page = loop {
                    let sql = page(&known, &bounds, pace.0);
                    let values = bound(&sql, &known)?;
                    match self.page(&known, &sql.text, &values, read).await {
                        Err(e) if pace.fewer(&e) => {}
                        page => break page?,
                    }
                };
                let next = match page.last {
                    Some(last) if page.rows.len() == pace.0 => {
                        pace.learn(page.bytes);
                        Some((bounds.after(&last), pace))
                    }
                    _ => None,
                };
                Ok((!page.rows.is_empty()).then_some((page.rows, next)))
            }
        })
    }

    pub(super) async fn parts(&self, parts: u32) -> Result<Vec<KeyRange>> {
        let count = self.counted().await?;
        let known = self.schema().await?;
        let mut places = Vec::new();
        for place in ranges::places(count, parts)? {
            let place = Value::Int(place as i64);
            wire::field(&mut places, |out| Wire::Int8.write(&place, out))?;
        }
        let key = known.key_text();
        let text = format!(
            "SELECT CAST(k AS text) FROM (SELECT {key} AS k, row_number() OVER (ORDER BY {key}) - 1 \
             AS n FROM {}) AS s JOIN unnest($1) AS p(place) ON n = place ORDER BY place",
            quote(&known.table.name)
        );
        let (one, many) = Wire::Int8.types();
        let places = Bound::Many(one, parts.saturating_sub(1) as usize, places);
        let borders = self.keys(&known, &text, &[(many, places)]).await?;
        Ok(ranges::parts(borders, parts))
    }

    pub(super) async fn counted(&self) -> Result<u64> {
        let known = self.schema().await?;
        let text = format!("SELECT count(*) FROM {}", quote(&known.table.name));
        let mut connection = self.pool.get().await?;
        let rows = self.noted(connection.query(&text, &[]).await)?;
        let count = rows.first().ok_or_else(|| Error::malformed("a count without a row"))?;
        counts::records("count(*)", count.try_get::<i64>(0)?).map_err(|e| self.pool.placed(e))
    }

    pub(super) async fn deleted(&self, filter: &Filter) -> Result<u64> {
        Query::new(filter.clone()).check()?;
        let known = self.schema().await?;
        let sql =
            known.table.delete(&known.dialect, &LIMITS.exact(filter, known.table.columns()))?;
        let values = bound(&sql, &known)?;
        let count = self.noted(self.pool.execute(&sql.text, &values).boxed().await)?;
        counts::records("DELETE", count).map_err(|e| self.pool.placed(e))
    }
}

/// The statement that reads the rows of these keys, and what is bound to it; none where the table can
/// have none of them.
pub(super) fn by_keys<'k>(known: &'k Schema, keys: &[Key]) -> Option<(&'k str, (Type, Bound))> {
    let (array, bound) = table::keys(known, keys);
    match bound {
        Bound::Many(_, 0, _) => None,
        Bound::Many(one, 1, field) => Some((&known.say.get_one, (one, Bound::One(field)))),
        many => Some((&known.say.get_many, (array, many))),
    }
}

/// The statement of a page of so many rows.
pub(super) fn page(known: &Schema, bounds: &Bounds, rows: usize) -> Sql {
    let select = format!("SELECT {} FROM {}", known.say.what, quote(&known.table.name));
    let mut sql = ranges::page(&known.dialect, &select, &known.key_text(), bounds);
    sql.push(&format!(" LIMIT {rows}"));
    sql
}

/// Some rows, their bytes, and the key of the last.
struct Page<R> {
    rows: Vec<R>,
    bytes: usize,
    last: Option<Key>,
}

/// What is bound to a statement about a table.
pub(super) fn bound(sql: &Sql, known: &Schema) -> Result<Vec<(Type, Bound)>> {
    sql.values.iter().map(|value| rows::compared(value, known.table.columns().is_none())).collect()
}
