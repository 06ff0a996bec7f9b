//! Reads rows by key, by range of keys, and by query.
//!
//! Streams ask for one page after the other, and hold no connection and no lock between them.

use std::{collections::HashMap, sync::Arc};

use futures_util::{FutureExt, StreamExt, TryStreamExt, stream, stream::BoxStream};
use mysql_async::{Row as Cells, Value as Cell};

use super::{MySql, dialect::LIMITS, schema::Schema, sorting::Step, values::compared};
use crate::{
    Error, Result,
    record::Value,
    store::{
        Key, KeyRange, Query, Row,
        net::{Fewer, is_too_long},
        sql::{
            Sorting, Sql,
            ranges::{self, Bounds},
        },
    },
};

/// How many records a page has at most.
const PAGE: usize = 1000;
/// How many bytes a page should have, about.
const PAGE_BYTES: usize = 4 << 20;
/// How many records the first page has, when nothing is known of their size.
pub(super) const FIRST_PAGE: usize = 16;
/// How many keys are asked for at once.
const KEYS: usize = 512;
/// How many keys a query without an order finds at a time.
const FOUND: usize = 50_000;
/// Up to how many records a query is answered at once, rather than by looking up keys it found.
pub(super) const AT_ONCE: u64 = 10_000;

/// What is made of a row.
pub(super) trait Read: Clone + Send + Sync + 'static {
    type Made: Clone + Send + 'static;
    /// The row's key and what else is made of it.
    fn read(&self, known: &Schema, cells: Cells) -> Result<(Key, Self::Made)>;
}

impl<T: Clone + Send + 'static> Read for fn(&Schema, Cells) -> Result<(Key, T)> {
    type Made = T;
    fn read(&self, known: &Schema, cells: Cells) -> Result<(Key, T)> {
        self(known, cells)
    }
}

pub(super) type Pages<'a, T> = BoxStream<'a, Result<Vec<(Key, T)>>>;

impl MySql {
    /// What is made of the rows of these keys, in their order.
    pub(super) async fn found<R: Read>(
        &self,
        keys: &[Key],
        read: R,
    ) -> Result<Vec<Option<R::Made>>> {
        let known = self.schema().await?;
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
        // Apart, so that what is usual stays small. One deadline for all portions.
        self.pool.within("a get", self.found_many(&known, keys, read)).boxed().await
    }

    async fn found_many<R: Read>(
        &self,
        known: &Schema,
        keys: &[Key],
        read: R,
    ) -> Result<Vec<Option<R::Made>>> {
        let mut found: HashMap<Key, R::Made> = HashMap::with_capacity(keys.len());
        for keys in keys.chunks(at_once(known, keys)) {
            let mut asked = Fewer::new(keys);
            while let Some(some) = asked.next() {
                let Some((statement, sought)) = by_keys(known, some) else { continue };
                match self.pool.rows(&statement, sought).await {
                    Err(e) => asked.after(keys, e)?,
                    Ok(rows) => {
                        for row in rows {
                            let (key, made) = read.read(known, row)?;
                            found.insert(key, made);
                        }
                    }
                }
            }
        }
        Ok(keys.iter().map(|key| found.get(key).cloned()).collect())
    }

    /// What is made of all rows whose keys lie in a range, in their order, page by page.
    pub(super) async fn pages<R: Read>(
        &self,
        range: &KeyRange,
        read: R,
    ) -> Result<Pages<'_, R::Made>> {
        let known = self.schema().await?;
        if !known.key_is_exact() {
            // No index has the order of the keys: they are found first.
            return self.by_keys(known, &Query::new(ranges::filter(range)), read);
        }
        let first = (Bounds::new(range, true), FIRST_PAGE);
        let pages = stream::try_unfold(Some(first), move |next| {
            let (known, read) = (known.clone(), read.clone());
            async move {
                let Some((bounds, mut size)) = next else { return Ok::<_, Error>(None) };
                let (page, bytes) = loop {
                    match self.page(&known, &bounds, size, &read).await {
                        // Large rows: fewer at a time.
                        Err(e) if size > 1 && is_too_long(&e) => size /= 2,
                        page => break page?,
                    }
                };
                let next = page.last().filter(|_| page.len() == size).map(|(last, _)| {
                    let size = (PAGE_BYTES / (bytes / size).max(1)).clamp(1, PAGE);
                    (bounds.after(last), size)
                });
                Ok((!page.is_empty()).then_some((page, next)))
            }
        });
        Ok(pages.boxed())
    }

    /// A page, and how many bytes its rows had.
    async fn page<R: Read>(
        &self,
        known: &Schema,
        bounds: &Bounds,
        size: usize,
        read: &R,
    ) -> Result<(Vec<(Key, R::Made)>, usize)> {
        loop {
            let step = self.reach.step();
            let sql = page(known, bounds, size);
            let text = step.statement(known, sql.text.clone(), 0);
            let rows = self.pool.rows(&text, values(&sql)).await?;
            let bytes = rows.iter().map(weight).sum();
            let page = rows.into_iter().map(|row| read.read(known, row));
            let page: Vec<(Key, R::Made)> = page.collect::<Result<_>>()?;
            match page.iter().find(|(key, _)| !step.holds(key)) {
                Some((key, _)) => self.reach.further(step, key)?,
                None => return Ok((page, bytes)),
            }
        }
    }

    /// The query in the words of the columns there are.
    ///
    /// # Errors
    /// Where it makes no sense, which cannot be told of it any more afterwards.
    pub(super) fn fitted(&self, known: &Schema, query: &Query) -> Result<Query> {
        query.check()?;
        let filter = LIMITS.exact(&query.filter, known.table.columns());
        Ok(Query { filter, ..query.clone() })
    }

    /// What is made of the rows of a query, all at once.
    ///
    /// Where an index has the order of nearly all values there can be, the query is sorted by that
    /// index alone, and asked again where the answer has a value for which that is not enough. An
    /// answer without such values is the right one: a record that comes before one of its own could
    /// have been left out only for such a value of either.
    pub(super) async fn at_once(&self, known: &Schema, query: &Query) -> Result<Vec<Row>> {
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

    async fn sorted(&self, known: &Schema, query: &Query, how: Sorting) -> Result<Vec<Row>> {
        let sql = known.table.select_sorted(&known.dialect, &known.what(), query, how)?;
        if query.sort.is_empty() {
            let rows = self.pool.rows(&sql.text, values(&sql)).await?;
            return rows.into_iter().map(|cells| known.row(cells)).collect();
        }
        loop {
            let step = self.reach.step();
            let text = step.statement(known, sql.text.clone(), query.sort.len());
            let rows = self.pool.rows(&text, values(&sql)).await?;
            let rows: Vec<Row> =
                rows.into_iter().map(|cells| known.row(cells)).collect::<Result<_>>()?;
            match rows.iter().find(|row| !step.holds_all(query, &row.key, &row.record)) {
                Some(row) => self.reach.further(step, &row.key)?,
                None => return Ok(rows),
            }
        }
    }

    /// What is made of the rows of a query: keys first, in the order asked for, then their rows page
    /// by page. Without an order some thousand keys are found at a time.
    ///
    /// # Errors
    /// Where the query makes no sense.
    pub(super) fn by_keys<R: Read>(
        &self,
        known: Arc<Schema>,
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
        known: &Schema,
        query: &Query,
        after: Option<Key>,
        left: u64,
    ) -> Result<(Vec<Key>, bool)> {
        loop {
            let step = self.reach.step();
            let (sql, most) = keys_statement(known, query, after.clone(), left, step)?;
            let text = step.statement(known, sql.text.clone(), query.sort.len());
            let rows = self.pool.rows(&text, values(&sql)).await?;
            let mut longer = None;
            let key = |row: Cells| {
                let mut cells = row.unwrap().into_iter();
                let key = known.key_of(cells.next())?;
                let is_longer = matches!(cells.next(), Some(Cell::Int(1)));
                if longer.is_none() && (is_longer || !step.holds(&key)) {
                    longer = Some(key.clone());
                }
                Ok(key)
            };
            let keys: Vec<Key> = rows.into_iter().map(key).collect::<Result<_>>()?;
            match longer {
                Some(key) => self.reach.further(step, &key)?,
                None => {
                    let whole = (keys.len() as u64) < most;
                    return Ok((keys, whole));
                }
            }
        }
    }
}

/// How many of these keys are asked for at once. By a collation each is compared with some of the others, which takes
/// longer than asking once more where they are long.
fn at_once(known: &Schema, keys: &[Key]) -> usize {
    /// How many bytes of keys are compared with one another.
    const COMPARED: usize = 16 << 10;
    match known.key_is_exact() {
        true => KEYS,
        false => {
            let longest = keys.iter().map(|key| key.len()).max().unwrap_or(0);
            let most = (COMPARED / longest.max(1)).clamp(1, KEYS);
            // Statements are few.
            1 << most.ilog2()
        }
    }
}

/// The statement that reads the rows of these keys, and what is bound to it; none where the table can
/// have none of them.
pub(super) fn by_keys(known: &Schema, keys: &[Key]) -> Option<(String, Vec<Cell>)> {
    let mut sought: Vec<Cell> = keys.iter().filter_map(|key| known.key_sought(key)).collect();
    let last = sought.last().cloned()?;
    // A key asked for twice is found once; the statements are few.
    sought.resize(sought.len().next_power_of_two(), last);
    let statement = format!("{} WHERE {}", known.select, known.key_is_one_of(sought.len()));
    Some((statement, sought))
}

/// The statement of a page of so many rows.
pub(super) fn page(known: &Schema, bounds: &Bounds, size: usize) -> Sql {
    let mut sql = ranges::page(&known.dialect, &known.select, &known.key_name(), bounds);
    // Bound, as sizes differ and each statement is prepared.
    sql.push(" LIMIT ").bind(Value::Int(size as i64));
    sql
}

/// The statement that finds the keys of a query, or, where it has no order, the next of them after
/// one; and how many it finds at most. Each key is followed by whether its row is sorted by more than this step holds.
pub(super) fn keys_statement(
    known: &Schema,
    query: &Query,
    after: Option<Key>,
    left: u64,
    step: Step,
) -> Result<(Sql, u64)> {
    let mut key = known.key_what();
    if !query.sort.is_empty() {
        if let Some(longer) = step.is_longer(known, query)? {
            key += ", ";
            key += &longer;
        }
        return Ok((known.table.select(&known.dialect, &key, query)?, u64::MAX));
    }
    let mut filter = query.filter.clone();
    if let Some(after) = after {
        filter = ranges::after(filter, &after);
    }
    let mut sql = known.table.select(&known.dialect, &key, &Query::new(filter))?;
    let most = left.min(FOUND as u64);
    sql.push(&format!(" ORDER BY {} LIMIT {most}", known.key_by_bytes()));
    Ok((sql, most))
}

/// What is bound to a statement.
pub(super) fn values(sql: &Sql) -> Vec<Cell> {
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
