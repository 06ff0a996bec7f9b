//! Rows on their way from the server: by key, by ranges of keys, by query.
//!
//! Streams ask for one page after the other, and hold no connection and no lock between them.

use std::{collections::HashMap, sync::Arc};

use futures_util::{FutureExt, StreamExt, TryStreamExt, stream, stream::BoxStream};
use mysql_async::{Row as Cells, Value as Cell};

use super::{MySql, exact::for_columns, known::Known, values::compared};
use crate::{
    Error, Result,
    store::{
        Filter, Key, KeyRange, Query, Row,
        query::{Path, Test},
        sql::{Body, Sorting, Sql},
    },
};

/// How many records a page has at most.
const PAGE: usize = 1000;
/// How many bytes a page should have, about.
const PAGE_BYTES: usize = 4 << 20;
/// How many records the first page has, when nothing is known of their size.
pub const FIRST_PAGE: usize = 100;
/// How many keys are asked for at once.
const KEYS: usize = 512;
/// How many keys a query without an order finds at a time.
const FOUND: usize = 50_000;
/// Up to how many records a query is answered at once, rather than by looking up keys it found.
pub const AT_ONCE: u64 = 10_000;

/// What is made of a row.
pub trait Read: Clone + Send + Sync + 'static {
    type Made: Clone + Send + 'static;
    /// The row's key and what else is made of it.
    fn read(&self, known: &Known, cells: Cells) -> Result<(Key, Self::Made)>;
}

impl<T: Clone + Send + 'static> Read for fn(&Known, Cells) -> Result<(Key, T)> {
    type Made = T;
    fn read(&self, known: &Known, cells: Cells) -> Result<(Key, T)> {
        self(known, cells)
    }
}

pub type Pages<'a, T> = BoxStream<'a, Result<Vec<(Key, T)>>>;

/// Where a scan goes on.
#[derive(Debug, Clone)]
struct Next {
    from: Option<(Key, &'static str)>,
    size: usize,
}

impl MySql {
    /// What is made of the rows of these keys, in their order.
    pub async fn found<R: Read>(&self, keys: &[Key], read: R) -> Result<Vec<Option<R::Made>>> {
        let known = self.known().await?;
        if let [key] = keys {
            let Some(sought) = known.key_sought(key) else { return Ok(vec![None]) };
            let mut found = None;
            for row in self.pool.rows(&known.get_one, vec![sought]).await? {
                let (of, made) = read.read(&known, row)?;
                // Text that is only nearly the same is not meant.
                found = (of == *key).then_some(made).or(found);
            }
            return Ok(vec![found]);
        }
        // Apart, so that what is usual stays small.
        self.found_many(&known, keys, read).boxed().await
    }

    async fn found_many<R: Read>(
        &self,
        known: &Known,
        keys: &[Key],
        read: R,
    ) -> Result<Vec<Option<R::Made>>> {
        let mut found: HashMap<Key, R::Made> = HashMap::with_capacity(keys.len());
        for keys in keys.chunks(KEYS) {
            let Some((statement, sought)) = by_keys(known, keys) else { continue };
            for row in self.pool.rows(&statement, sought).await? {
                let (key, made) = read.read(known, row)?;
                found.insert(key, made);
            }
        }
        Ok(keys.iter().map(|key| found.get(key).cloned()).collect())
    }

    /// What is made of all rows whose keys lie in a range, in their order, page by page.
    pub async fn pages<R: Read>(&self, range: &KeyRange, read: R) -> Result<Pages<'_, R::Made>> {
        let known = self.known().await?;
        if !known.key_is_exact() {
            // No index has the order of the keys: they are found first.
            let mut filter = Filter::All;
            let key = || Path::new([Path::KEY]);
            if let Some(from) = &range.from {
                filter = filter.and(Filter::Field(key(), Test::Ge(from.as_str().into())));
            }
            if let Some(until) = &range.until {
                filter = filter.and(Filter::Field(key(), Test::Lt(until.as_str().into())));
            }
            return self.by_keys(known, &Query::new(filter), read);
        }
        let until = range.until.clone();
        let first = Next { from: range.from.clone().map(|key| (key, " >= ?")), size: FIRST_PAGE };
        let pages = stream::try_unfold(Some(first), move |next| {
            let (known, until, read) = (known.clone(), until.clone(), read.clone());
            async move {
                let Some(Next { from, size }) = next else { return Ok::<_, Error>(None) };
                let (page, bytes) = self.page(&known, from, until, size, &read).await?;
                let next = (page.len() == size).then(|| Next {
                    from: page.last().map(|(key, _)| (key.clone(), " > ?")),
                    size: (PAGE_BYTES / (bytes / size).max(1)).clamp(1, PAGE),
                });
                Ok((!page.is_empty()).then_some((page, next)))
            }
        });
        Ok(pages.boxed())
    }

    /// A page, and how many bytes its rows had.
    async fn page<R: Read>(
        &self,
        known: &Known,
        from: Option<(Key, &str)>,
        until: Option<Key>,
        size: usize,
        read: &R,
    ) -> Result<(Vec<(Key, R::Made)>, usize)> {
        let (statement, values) = page(known, from, until, size);
        let rows = self.pool.rows(&statement, values).await?;
        let bytes = rows.iter().map(weight).sum();
        let page = rows.into_iter().map(|row| read.read(known, row)).collect::<Result<_>>()?;
        Ok((page, bytes))
    }

    /// The query in the words of the columns there are.
    ///
    /// # Errors
    /// Where it makes no sense, which cannot be told of it any more afterwards.
    pub fn fitted(&self, known: &Known, query: &Query) -> Result<Query> {
        query.check()?;
        let filter = match &known.table.body {
            Body::Columns(columns) => for_columns(&query.filter, columns),
            Body::Document(_) => query.filter.clone(),
        };
        Ok(Query { filter, ..query.clone() })
    }

    /// What is made of the rows of a query, all at once.
    ///
    /// Where an index has the order of nearly all values there can be, the query is sorted by that
    /// index alone, and asked again where the answer has a value for which that is not enough. An
    /// answer without such values is the right one: a record that comes before one of its own could
    /// have been left out only for such a value of either.
    pub async fn at_once(&self, known: &Known, query: &Query) -> Result<Vec<Row>> {
        let fitted = self.fitted(known, query)?;
        let mut rows = None;
        if let Some((path, on)) = known.dialect.sorted_by_index(query) {
            let by_index = self.sorted(known, &fitted, Sorting::ByIndex).await?;
            let enough = by_index.iter().all(|row| on.holds(path.value_in(&row.record)));
            rows = enough.then_some(by_index);
        }
        let rows = match rows {
            Some(rows) => rows,
            None => self.sorted(known, &fitted, Sorting::Exact).await?,
        };
        let project = |row: Row| Row { record: query.project(row.record), ..row };
        Ok(rows.into_iter().map(project).collect())
    }

    async fn sorted(&self, known: &Known, query: &Query, how: Sorting) -> Result<Vec<Row>> {
        let sql = known.table.select_sorted(&known.dialect, &known.what(), query, how)?;
        let rows = self.pool.rows(&sql.text, values(&sql)).await?;
        rows.into_iter().map(|cells| known.row(cells)).collect()
    }

    /// What is made of the rows of a query: keys first, in the order asked for, then their rows page
    /// by page. Without an order some thousand keys are found at a time.
    ///
    /// # Errors
    /// Where the query makes no sense.
    pub fn by_keys<R: Read>(
        &self,
        known: Arc<Known>,
        query: &Query,
        read: R,
    ) -> Result<Pages<'_, R::Made>> {
        let query = Arc::new(self.fitted(&known, query)?);
        let left = query.limit.unwrap_or(u64::MAX);
        let parts = stream::try_unfold(Some((None, left)), move |next| {
            let (known, query) = (known.clone(), query.clone());
            async move {
                let Some((after, left)) = next else { return Ok::<_, Error>(None) };
                let (keys, whole) = self.keys(&known, &query, after, left).await?;
                let left = left - keys.len() as u64;
                let next = (!whole && left > 0).then(|| (keys.last().cloned(), left));
                Ok((!keys.is_empty()).then_some((keys, next)))
            }
        });
        let pages = parts
            .map_ok(|keys| crate::store::in_batches(keys.into_iter()))
            .try_flatten()
            .and_then(move |keys| {
                let read = read.clone();
                async move {
                    let found = self.found(&keys, read).await?;
                    // One that was deleted meanwhile is not there any more.
                    let found = keys.into_iter().zip(found);
                    Ok(found.filter_map(|(key, made)| Some((key, made?))).collect())
                }
            });
        Ok(pages.boxed())
    }

    /// The keys of a query, and whether these are all; after the one that was the last, if any.
    async fn keys(
        &self,
        known: &Known,
        query: &Query,
        after: Option<Key>,
        left: u64,
    ) -> Result<(Vec<Key>, bool)> {
        let (sql, most) = keys_statement(known, query, after, left)?;
        let rows = self.pool.rows(&sql.text, values(&sql)).await?;
        let key = |row: Cells| known.key_of(row.unwrap().into_iter().next());
        let keys: Vec<Key> = rows.into_iter().map(key).collect::<Result<_>>()?;
        let whole = (keys.len() as u64) < most;
        Ok((keys, whole))
    }
}

/// The statement that reads the rows of these keys, and what is bound to it; none where the table can
/// have none of them.
pub fn by_keys(known: &Known, keys: &[Key]) -> Option<(String, Vec<Cell>)> {
    let mut sought: Vec<Cell> = keys.iter().filter_map(|key| known.key_sought(key)).collect();
    let last = sought.last().cloned()?;
    // A key asked for twice is found once; the statements are few.
    sought.resize(sought.len().next_power_of_two(), last);
    let (select, key) = (&known.select, known.key_name());
    let statement = match sought.len() {
        1 => format!("{select} WHERE {key} = ?"),
        n => format!("{select} WHERE {key} IN ({})", vec!["?"; n].join(",")),
    };
    Some((statement, sought))
}

/// The statement of a page of so many rows, and what is bound to it.
pub fn page(
    known: &Known,
    from: Option<(Key, &str)>,
    until: Option<Key>,
    size: usize,
) -> (String, Vec<Cell>) {
    let key = known.key_name();
    let mut statement = known.select.clone();
    let mut values: Vec<Cell> = Vec::with_capacity(3);
    if let Some((from, operator)) = from {
        statement += &format!(" WHERE {key}{operator}");
        values.push(from.as_str().into());
    }
    if let Some(until) = until {
        let word = if values.is_empty() { "WHERE" } else { "AND" };
        statement += &format!(" {word} {key} < ?");
        values.push(until.as_str().into());
    }
    statement += &format!(" ORDER BY {key} LIMIT ?");
    values.push((size as u64).into());
    (statement, values)
}

/// The statement that finds the keys of a query, or, where it has no order, the next of them after
/// one; and how many it finds at most.
pub fn keys_statement(
    known: &Known,
    query: &Query,
    after: Option<Key>,
    left: u64,
) -> Result<(Sql, u64)> {
    let key = known.key_what();
    if !query.sort.is_empty() {
        return Ok((known.table.select(&known.dialect, &key, query)?, u64::MAX));
    }
    let mut filter = query.filter.clone();
    if let Some(after) = after {
        let later = Test::Gt(after.as_str().into());
        filter = filter.and(Filter::Field(Path::new([Path::KEY]), later));
    }
    let mut sql = known.table.select(&known.dialect, &key, &Query::new(filter))?;
    let most = left.min(FOUND as u64);
    sql.push(&format!(" ORDER BY {} LIMIT {most}", known.key_by_bytes()));
    Ok((sql, most))
}

/// What is bound to a statement.
pub fn values(sql: &Sql) -> Vec<Cell> {
    sql.values.iter().map(compared).collect()
}

/// About how many bytes a row has.
fn weight(row: &Cells) -> usize {
    (0..row.len())
        .map(|i| match row.as_ref(i) {
            Some(Cell::Bytes(bytes)) => bytes.len(),
            _ => 8,
        })
        .sum()
}
