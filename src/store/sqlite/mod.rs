//! `sqlite:path` — SQLite, inside this process, in a file or (without a path) in memory.
//!
//! A table that steelyard makes has the key in `_key` and the record in `record` (document: JSON
//! text), in `value` (blob) or in a column for each field. Tables of other programs are read and
//! written as they are: `?table=orders&column=payload&format=marshal`, the key being the table's
//! primary key, or what `?key=` names.
//!
//! Durability: t3 is `synchronous=FULL` (the default), t2 WAL with `NORMAL`, t1 `OFF`; t0 is a
//! database in memory. A new file gets a write-ahead log; one that is there keeps its journal,
//! unless a durability is asked for.
//!
//! `?cache=` is how many bytes of pages all its connections together hold; each holds 16 MiB otherwise.
//!
//! Tables have a rowid, and a key its index. `WITHOUT ROWID` the key's tree would hold the records:
//! measured with SQLite 3.40 (processor time in Python, 2026), records of 200 bytes are then read 10 to 20 %
//! faster and take 9 % less of a vacuumed file, and records of 5 KB, which then overflow the pages of
//! the key's tree, take twice as long to read and one and a half times as long to write. How long records will
//! be is not known when a table is made, so it is the one that is never twice as slow.
//!
//! A stream of found or scanned records holds no lock and no connection between its batches.
//! SQLite's calls block, so they run on threads kept for that; inside of
//! [`blocking`](super::blocking) they run in the caller's, which is several times faster.

mod blob;
mod databases;
mod dialect;
mod explain;
mod join;
mod pool;
mod table;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream};
use rusqlite::{
    Connection, Statement, TransactionBehavior, params_from_iter, types::Value as Cell,
};

use self::{
    dialect::Sqlite,
    pool::{Pool, Settings},
    table::{Known, Names},
};
use super::{
    Abilities, Client, Common, Description, Driver, Encoded, Explained, Filter, Join, Joined, Key,
    KeyRange, Layout, Need, Query, Request, Row, Rows, Shape, Store, Url, json,
    sql::{Others, check_name},
};
use crate::{
    Error, Result,
    durability::{Bound, Tier},
    record::{Document, Kind},
};

pub const DRIVER: Driver = Driver {
    name: "sqlite",
    aliases: &[],
    example: "sqlite:shop.db?table=orders&layout=columns",
    about: "SQLite, inside this process; without a path, in memory",
    shapes: &[Shape::Document, Shape::Columns, Shape::Blob],
    servers: &[],
    databases: Some(databases::DATABASES),
    open,
};

const DOCUMENT: Abilities = Abilities {
    driver: "sqlite",
    keeps: json::KEEPS,
    loses: json::LOSES,
    cannot: &[],
    joins: true,
    atomic: true,
    ordered: true,
    max_key: 1 << 20,
    // SQLITE_MAX_LENGTH, the usual limit of a value.
    max_record: 1_000_000_000,
};

const COLUMNS: Abilities = Abilities {
    keeps: &[Kind::Bool, Kind::Int, Kind::Text, Kind::Bytes, Kind::Time],
    loses: "-0.0 becomes 0.0; null becomes a field that is not there; decimals and whole numbers \
            beyond 64 bits become text; lists, maps and NaN are refused",
    cannot: &[Need::Missing],
    ..DOCUMENT
};

fn open(mut url: Url, common: Common) -> BoxFuture<'static, Result<Arc<dyn Store>>> {
    async move {
        let names = Names { key: url.take("key"), column: url.take("column") };
        let cache = url.take_parsed("cache")?;
        url.done()?;
        let path = match &*url.path {
            ":memory:" => String::new(),
            _ => url.file_path(),
        };
        match (common.durability, path.is_empty()) {
            (Some(tier @ (Tier::T1 | Tier::T2 | Tier::T3)), true) => {
                return Err(tier.refused("SQLite in memory", &[Tier::T0]));
            }
            (Some(Tier::T0), false) => {
                let can = [Tier::T1, Tier::T2, Tier::T3];
                return Err(Tier::T0.refused("SQLite in a file", &can));
            }
            _ => {}
        }
        let shape = common.shape("sqlite", DRIVER.shapes)?;
        check_name("sqlite", "table", &common.table, LONGEST_NAME)?;
        let settings = Settings { path, tier: common.durability, timeout: common.timeout, cache };
        let store = Sqlite3 {
            pool: Arc::new(Pool::new(settings, common.pool)),
            table: table::Lazy::new(shape, common.table.clone(), names),
            others: Others::default(),
        };
        // A file that is no database is found now, not later.
        store.pool.run(|c| c.query_row("PRAGMA schema_version", [], |_| Ok(()))).await?;
        Ok(match shape {
            Shape::Blob => {
                Arc::new(Encoded::new(Arc::new(store), common.blob_format())?) as Arc<dyn Store>
            }
            _ => Arc::new(store),
        })
    }
    .boxed()
}

const LONGEST_NAME: usize = 1000;
/// How many records a stream reads at once.
const BATCH: usize = 1000;
/// Up to how many records a query is answered at once, rather than by looking up rows it found.
const AT_ONCE: u64 = 10_000;

/// A table of a database.
struct Sqlite3 {
    pool: Arc<Pool>,
    table: table::Lazy,
    /// Tables that were joined with this one.
    others: Others<Sqlite3>,
}

impl Sqlite3 {
    fn sibling(&self, name: &str) -> Result<Sqlite3> {
        check_name("sqlite", "table", name, LONGEST_NAME)?;
        let table = table::Lazy::new(self.table.shape, name.into(), Names::default());
        Ok(Sqlite3 { pool: self.pool.clone(), table, others: Others::default() })
    }

    async fn known(&self) -> Result<Arc<Known>> {
        self.table.known(&self.pool).await
    }

    /// Writes the rows of records; `new` ones must not be there.
    async fn put_rows(&self, rows: &[Row], new: bool) -> Result<()> {
        let known = self.known().await?;
        let cells = |row| self.table.cells(&known, self.abilities(), row);
        let cells: Vec<Vec<Cell>> = rows.iter().map(cells).collect::<Result<_>>()?;
        self.pool
            .run(move |connection| {
                let statement = known.writing(new);
                each(connection, statement, &cells, |statement, cells| {
                    statement.execute(params_from_iter(cells))
                })
                .map(drop)
            })
            .await
    }

    async fn removed(&self, keys: &[Key]) -> Result<u64> {
        let known = self.known().await?;
        self.pool
            .attempt_with(keys, move |connection, keys: &[Key]| {
                each(connection, &known.texts.remove, keys, |statement, key| {
                    statement.execute([key.as_str()])
                })
                .map_err(pool::error)
            })
            .await
    }

    /// What `read` makes of the rows of these keys.
    async fn found<R: Send + 'static>(
        &self,
        keys: &[Key],
        read: fn(&Known, &rusqlite::Row, &Key) -> Result<R>,
    ) -> Result<Vec<Option<R>>> {
        let known = self.known().await?;
        self.pool
            .attempt_with(keys, move |connection, keys: &[Key]| {
                let get = connection.prepare_cached(&known.texts.get);
                let mut get = get.map_err(pool::error)?;
                let mut one = |key: &Key| {
                    let mut rows = get.query([key.as_str()]).map_err(pool::error)?;
                    let row = rows.next().map_err(pool::error)?;
                    row.map(|row| read(&known, row, key)).transpose()
                };
                keys.iter().map(&mut one).collect()
            })
            .await
    }

    /// What `read` makes of all rows whose keys lie in a range, in their order, page by page.
    async fn pages<R: Send + 'static>(
        &self,
        range: &KeyRange,
        read: fn(&Known, &rusqlite::Row) -> Result<R>,
    ) -> Result<impl futures_util::Stream<Item = Result<Vec<R>>> + Send + '_> {
        let known = self.known().await?;
        let from = range.from.clone().map(|key| (key.to_string(), " >= ?1"));
        let until = range.until.as_ref().map(Key::to_string);
        let state = Some((from, until));
        Ok(stream::try_unfold(state, move |state| {
            let known = known.clone();
            async move {
                let Some((from, until)) = state else { return Ok::<_, Error>(None) };
                let page = {
                    let (known, until) = (known.clone(), until.clone());
                    self.pool.attempt(move |connection| page(connection, &known, from, until, read))
                };
                let (rows, last) = page.await?;
                let next = last.map(|last| (Some((last, " > ?1")), until));
                Ok((!rows.is_empty()).then_some((rows, next)))
            }
        }))
    }

    async fn counted(&self) -> Result<u64> {
        let known = self.known().await?;
        self.pool
            .run(move |c| c.query_row(&known.texts.count, [], |row| row.get::<_, i64>(0)))
            .await
            .map(|n| n as u64)
    }

    async fn parts(&self, parts: u32) -> Result<Vec<KeyRange>> {
        let known = self.known().await?;
        let count = self.counted().await?;
        let statement = format!(
            "SELECT CAST({0} AS TEXT) FROM {1} ORDER BY CAST({0} AS TEXT) LIMIT 1 OFFSET ?",
            known.key(),
            known.name()
        );
        let borders: Vec<String> = self
            .pool
            .run(move |connection| {
                let mut statement = connection.prepare_cached(&statement)?;
                let offset =
                    |i: u32| (u128::from(count) * u128::from(i) / u128::from(parts)) as i64;
                (1..parts).map(|i| statement.query_row([offset(i)], |row| row.get(0))).collect()
            })
            .await
            .or_else(|e| if count == 0 { Ok(Vec::new()) } else { Err(e) })?;
        let borders = borders.into_iter().map(Key::new).collect::<Result<Vec<_>>>()?;
        let mut ranges = KeyRange::between(borders);
        ranges.resize_with(parts as usize, empty_range);
        Ok(ranges)
    }

    async fn dropped(&self) -> Result<()> {
        let statement = format!("DROP TABLE IF EXISTS {}", self.table.quoted());
        self.pool.run(move |c| c.execute_batch(&statement)).await?;
        self.table.forget();
        Ok(())
    }

    /// Frees what was deleted, gathers statistics, and writes the log to its place.
    async fn settled(&self) -> Result<()> {
        let statements = "VACUUM; PRAGMA optimize; PRAGMA wal_checkpoint(TRUNCATE)";
        self.pool.run(move |connection| connection.execute_batch(statements)).await
    }

    async fn description(&self) -> Result<Description> {
        let settings = self.pool.settings().clone();
        let asked = settings.tier;
        let (journal, synchronous, checkpoint) = self
            .pool
            .run(|connection| {
                let journal: String =
                    connection.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
                let synchronous: i64 =
                    connection.query_row("PRAGMA synchronous", [], |row| row.get(0))?;
                let checkpoint: i64 =
                    connection.query_row("PRAGMA wal_autocheckpoint", [], |row| row.get(0))?;
                Ok((journal, synchronous, checkpoint))
            })
            .await?;
        let in_memory = settings.path.is_empty();
        let wal = journal.eq_ignore_ascii_case("wal");
        // With NORMAL the log is synced before it is written to its place: after so many pages, however
        // long they take.
        let pages = u64::try_from(checkpoint).ok().filter(|pages| *pages > 0);
        let (word, tier) = match synchronous {
            0 => ("OFF", Tier::T1),
            1 if wal && pages.is_none() => ("NORMAL", Tier::T1),
            1 => ("NORMAL", Tier::T2),
            2 => ("FULL", Tier::T3),
            _ => ("EXTRA", Tier::T3),
        };
        let size =
            |end: &str| std::fs::metadata(format!("{}{end}", settings.path)).map(|m| m.len());
        let mut shown =
            vec![("journal_mode".to_owned(), journal), ("synchronous".to_owned(), word.to_owned())];
        let bound = pages.filter(|_| tier == Tier::T2 && wal).map(Bound::Pages);
        if let Some(Bound::Pages(pages)) = bound {
            let told = format!("the write-ahead log's size: {pages} pages (wal_autocheckpoint)");
            shown.push(("loss is bounded by".to_owned(), told));
        }
        Ok(Description {
            client: Client::Crate("rusqlite"),
            product: "SQLite".into(),
            version: rusqlite::version().into(),
            shape: self.table.shape,
            format: None,
            asked,
            set: Some(if in_memory { Tier::T0 } else { tier }),
            bound,
            limit: None,
            settings: shown,
            disk: size("").ok().map(|n| n + size("-wal").unwrap_or(0)),
        })
    }
}

/// Executes a statement for each of `all`, in one transaction, and adds up the rows that changed. One
/// alone needs no transaction: a statement is one.
fn each<T>(
    connection: &mut Connection,
    statement: &str,
    all: &[T],
    execute: impl Fn(&mut Statement, &T) -> rusqlite::Result<usize>,
) -> rusqlite::Result<u64> {
    match all {
        [] => Ok(0),
        [one] => execute(&mut *connection.prepare_cached(statement)?, one).map(|n| n as u64),
        all => {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let mut count = 0;
            {
                let mut statement = transaction.prepare_cached(statement)?;
                for one in all {
                    count += execute(&mut statement, one)? as u64;
                }
            }
            transaction.commit()?;
            Ok(count)
        }
    }
}

/// A range that no key lies in.
fn empty_range() -> KeyRange {
    let none = Key::new("\0").expect("not empty");
    KeyRange { from: Some(none.clone()), until: Some(none) }
}

/// The statement of a page: from a key on, by this operator (` >= ?1`, ` > ?1`), and until another.
fn page_statement(known: &Known, from: Option<&str>, until: bool) -> String {
    let key = known.key_as_text();
    let from = from.map(|operator| format!("{key}{operator}"));
    let until = until.then(|| format!("{key} < ?{}", 1 + usize::from(from.is_some())));
    let conditions: Vec<_> = from.into_iter().chain(until).collect();
    let word = if conditions.is_empty() { "" } else { " WHERE " };
    let conditions = conditions.join(" AND ");
    format!("{}{word}{conditions} ORDER BY {key} LIMIT {BATCH}", known.select())
}

/// One page of a scan, and the last key in it if there may be more.
#[allow(clippy::type_complexity)]
fn page<R>(
    connection: &Connection,
    known: &Known,
    from: Option<(String, &str)>,
    until: Option<String>,
    read: fn(&Known, &rusqlite::Row) -> Result<R>,
) -> Result<(Vec<R>, Option<String>)> {
    let operator = from.as_ref().map(|(_, operator)| *operator);
    let statement = page_statement(known, operator, until.is_some());
    let values = from.map(|(key, _)| key).into_iter().chain(until);
    let mut statement = connection.prepare_cached(&statement).map_err(pool::error)?;
    let mut cursor = statement.query(params_from_iter(values)).map_err(pool::error)?;
    let mut rows = Vec::new();
    let mut last = None;
    while let Some(row) = cursor.next().map_err(pool::error)? {
        rows.push(read(known, row)?);
        if rows.len() == BATCH {
            last = Some(table::key_of(row, 0)?.to_string());
        }
    }
    Ok((rows, last))
}

#[async_trait]
impl Store for Sqlite3 {
    fn abilities(&self) -> &Abilities {
        match self.table.shape {
            Shape::Columns => &COLUMNS,
            _ => &DOCUMENT,
        }
    }

    fn shape(&self) -> Shape {
        self.table.shape
    }

    fn table(&self, name: &str) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(self.sibling(name)?))
    }

    fn check(&self, row: &Row) -> Result<()> {
        self.table.check(self.abilities(), row)
    }

    async fn prepare(&self, layout: &Layout) -> Result<()> {
        self.table.prepare(&self.pool, layout).await
    }

    async fn put(&self, rows: &[Row]) -> Result<()> {
        self.put_rows(rows, false).await
    }

    async fn load(&self, rows: &[Row]) -> Result<()> {
        self.put_rows(rows, true).await
    }

    /// A batch is written so anyway: by one prepared statement a row.
    async fn put_each(&self, rows: &[Row]) -> Result<()> {
        self.put(rows).await
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Document>>> {
        self.found(keys, Known::found).await
    }

    async fn find(&self, query: &Query) -> Result<Rows<'_>> {
        self.abilities().can(query)?;
        let known = self.known().await?;
        let query = query.clone();
        let sql = known.table.select(&Sqlite, &known.what(), &query)?;
        let (of, asked) = (known.clone(), query.clone());
        let rows = self
            .pool
            .attempt(move |connection| {
                let mut statement = connection.prepare_cached(&sql.text).map_err(pool::error)?;
                let values = sql.values.iter().map(table::cell);
                let mut cursor = statement.query(params_from_iter(values)).map_err(pool::error)?;
                let mut rows = Vec::new();
                while let Some(row) = cursor.next().map_err(pool::error)? {
                    if rows.len() as u64 == AT_ONCE {
                        return Ok(None);
                    }
                    let Row { key, record } = of.row(row)?;
                    rows.push(Row { key, record: asked.project(record) });
                }
                Ok(Some(rows))
            })
            .await?;
        if let Some(rows) = rows {
            return Ok(super::in_batches(rows.into_iter()).boxed());
        }
        // They are many: row numbers first, in the order asked for: eight bytes each, and no lock is held while
        // whoever reads the stream writes.
        let sql = known.table.select(&Sqlite, "rowid", &query)?;
        let numbers: Vec<i64> = self
            .pool
            .run(move |connection| {
                let mut statement = connection.prepare_cached(&sql.text)?;
                let values = sql.values.iter().map(table::cell);
                statement.query_map(params_from_iter(values), |row| row.get(0))?.collect()
            })
            .await?;
        let statement: Arc<str> = format!("{} WHERE rowid = ?", known.select()).into();
        let query = Arc::new(query);
        let batches = super::in_batches(numbers.into_iter()).then(move |numbers| {
            let (known, query, statement) = (known.clone(), query.clone(), statement.clone());
            self.pool.attempt(move |connection| {
                let mut statement = connection.prepare_cached(&statement).map_err(pool::error)?;
                let mut rows = Vec::with_capacity(BATCH);
                for number in numbers? {
                    let mut cursor = statement.query([number]).map_err(pool::error)?;
                    // One that was deleted meanwhile is not there any more.
                    if let Some(row) = cursor.next().map_err(pool::error)? {
                        let Row { key, record } = known.row(row)?;
                        rows.push(Row { key, record: query.project(record) });
                    }
                }
                Ok(rows)
            })
        });
        Ok(batches.boxed())
    }

    async fn join(&self, join: &Join) -> Result<Vec<Joined>> {
        self.abilities().can(&Query::new(join.filter.clone()))?;
        self.joined(join).await
    }

    async fn delete(&self, filter: &Filter) -> Result<u64> {
        self.abilities().can(&Query::new(filter.clone()))?;
        let known = self.known().await?;
        let sql = known.table.delete(&Sqlite, filter)?;
        self.pool
            .run(move |connection| {
                let mut statement = connection.prepare_cached(&sql.text)?;
                statement.execute(params_from_iter(sql.values.iter().map(table::cell)))
            })
            .await
            .map(|n| n as u64)
    }

    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        self.removed(keys).await
    }

    async fn scan(&self, range: &KeyRange) -> Result<Rows<'_>> {
        Ok(self.pages(range, |known, row| known.row(row)).await?.boxed())
    }

    async fn count(&self) -> Result<u64> {
        self.counted().await
    }

    async fn split(&self, parts: u32) -> Result<Vec<KeyRange>> {
        self.parts(parts).await
    }

    async fn drop_table(&self) -> Result<()> {
        self.dropped().await
    }

    async fn settle(&self) -> Result<bool> {
        self.settled().await.map(|()| true)
    }

    async fn analyze(&self) -> Result<()> {
        // All of it, as a user would: with a limit, estimates of values that are rare or frequent are off.
        let statements = format!("ANALYZE {}", self.table.quoted());
        self.pool.run(move |connection| connection.execute_batch(&statements)).await
    }

    async fn index_bytes(&self) -> Result<Option<u64>> {
        let name = self.table.name().to_owned();
        let text = "SELECT sum(pgsize) FROM dbstat WHERE name IN (SELECT name FROM sqlite_schema \
                    WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL)";
        let sum = move |connection: &mut Connection| {
            connection.query_row(text, [name], |row| row.get::<_, Option<i64>>(0))
        };
        // Not every SQLite is built with it.
        Ok(self.pool.run(sum).await.ok().map(|bytes| bytes.unwrap_or(0) as u64))
    }

    async fn explain(&self, request: Request<'_>) -> Result<Option<Explained>> {
        self.explained(request).await
    }

    async fn describe(&self) -> Result<Description> {
        self.description().await
    }
}
