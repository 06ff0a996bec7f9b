//! `sqlite:path` — SQLite, inside this process, in a file or (without a path) in memory.
//!
//! A table that steelyard makes has the key in `_key` and the record in `record` (document: JSON
//! text), in `value` (blob) or in a column for each field. Tables of other programs are read and
//! written as they are: `?table=orders&column=payload&format=marshal`, the key being the table's
//! primary key, or what `?key=` names. In a table of columns that is made, the column `?key=` is a field of
//! the record: INTEGER where it holds whole numbers, else TEXT.
//!
//! Times are text in columns of TIMESTAMP, and compared without their `Z`, as are indexes on them.
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
mod column;
mod databases;
mod dialect;
mod error;
mod explain;
mod join;
mod pool;
mod read;
mod table;
#[cfg(test)]
mod tests;
mod times;
mod write;

use std::{path::Path, sync::Arc};

use async_trait::async_trait;
use futures_util::{FutureExt, StreamExt, TryStreamExt, future::BoxFuture};
use rusqlite::{Connection, params_from_iter, types::Value as Cell};

use self::{
    error::error,
    pool::{Pool, Settings},
    table::Schema,
    write::Cells,
};
use super::{
    Abilities, Client, Common, Description, Driver, Encoded, Expected, Explained, Facts, Filter,
    Join, Joined, Key, KeyRange, Layout, Login, Need, Query, Request, Row, Rows, Shape, Store, Url,
    blobs::CANNOT,
    json,
    sql::{BlobTable, Guard, Names, Others},
};
use crate::{
    Result,
    durability::{Bound, Tier},
    link,
    record::{Document, Kind},
};

pub(super) const DRIVER: Driver = Driver {
    name: "sqlite",
    aliases: &[],
    example: "sqlite:shop.db?table=orders&layout=columns",
    about: "SQLite, inside this process; without a path, in memory",
    shapes: &[Shape::Document, Shape::Columns, Shape::Blob],
    facts: &[
        Facts {
            refuses: &[Kind::BigInt, Kind::Bytes],
            levels: Some(json::LEVELS),
            indexed: &[Kind::Bool, Kind::Int, Kind::Float, Kind::Text],
            nested: true,
            transactions: true,
            ..Facts::of(Shape::Document, DOCUMENT)
        },
        Facts {
            refuses: &[Kind::BigInt, Kind::Decimal, Kind::List, Kind::Map],
            levels: Some(1),
            indexed: &[Kind::Bool, Kind::Int, Kind::Float, Kind::Text, Kind::Bytes, Kind::Time],
            transactions: true,
            ..Facts::of(Shape::Columns, COLUMNS)
        },
        Facts::of(Shape::Blob, Abilities { loses: "", cannot: CANNOT, joins: false, ..DOCUMENT }),
    ],
    limits: "",
    tiers: &Tier::ALL,
    clients: &[Client::Crate("rusqlite")],
    servers: &[],
    login: Login::None,
    databases: Some(databases::DATABASES),
    open,
};

const DOCUMENT: Abilities = Abilities {
    driver: "sqlite",
    keeps: json::KEEPS,
    loses: json::LOSES,
    cannot: &[Need::Times],
    joins: true,
    atomic: true,
    conditional: true,
    ordered: true,
    max_key: 1 << 20,
    // SQLITE_MAX_LENGTH, the usual limit of a value.
    max_record: 1_000_000_000,
};

const COLUMNS: Abilities = Abilities {
    keeps: &[Kind::Bool, Kind::Text, Kind::Bytes, Kind::Time],
    loses: "a whole number becomes a float in a column that has floats (REAL), and a float that is whole \
            becomes a whole number in one of any numbers (NUMERIC); -0.0 becomes 0.0; null becomes a field \
            that is not there; lists, maps, NaN, decimals and whole numbers beyond 64 bits are refused",
    cannot: &[Need::Missing],
    ..DOCUMENT
};

fn open(mut url: Url, common: Common) -> BoxFuture<'static, Result<Arc<dyn Store>>> {
    async move {
        let names = Names::take(&mut url);
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
        let settings = Settings { path, tier: common.durability, timeout: common.timeout, cache };
        let store = Sqlite3 {
            pool: Arc::new(Pool::new(settings, common.pool)),
            table: table::Lazy::new(shape, &common.table, names, table::named)?,
            others: Others::default(),
        };
        if !store.pool.settings().path.is_empty() {
            link::followed(Path::new(&store.pool.settings().path))?;
        }
        // A file that is no database is found now, not later. One that is not there is made by `prepare`.
        if store.pool.is_there()? {
            store.pool.run(|c| c.query_row("PRAGMA schema_version", [], |_| Ok(()))).await?;
        }
        Ok(match shape {
            Shape::Blob => {
                Arc::new(Encoded::new(Arc::new(store), common.blob_format())?) as Arc<dyn Store>
            }
            _ => Arc::new(store),
        })
    }
    .boxed()
}

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
    async fn schema(&self) -> Result<Arc<Schema>> {
        self.table.schema(&self.pool).await
    }

    /// Writes the rows of records; `new` ones must not be there.
    async fn put_rows(&self, rows: &[Row], new: bool) -> Result<()> {
        let known = self.schema().await?;
        let cells = |row: &Row| {
            let body = known.cells(self.abilities(), row)?;
            Ok(Cells { key: row.key.clone(), body })
        };
        let rows: Vec<Cells> = rows.iter().map(cells).collect::<Result<_>>()?;
        self.pool.attempt(move |connection| write::rows(connection, &known, new, &rows)).await
    }

    /// Deletes the row of a key, if it is as the guard says.
    async fn removed_if(&self, key: &Key, guard: Guard<'_>) -> Result<bool> {
        let known = self.schema().await?;
        let Some(condition) = known.condition(guard)? else { return Ok(false) };
        self.pool
            .attempt_with(key, move |connection, key: &Key| {
                write::remove_if(connection, &known, &condition, key)
            })
            .await
    }

    async fn removed(&self, keys: &[Key]) -> Result<u64> {
        let known = self.schema().await?;
        self.pool
            .attempt_with(keys, move |connection, keys: &[Key]| {
                write::each(connection, &known.texts.remove, keys, |statement, key| {
                    match known.check_key(key) {
                        Ok(()) => statement.execute([key.as_str()]).map_err(error),
                        Err(_) => Ok(0),
                    }
                })
            })
            .await
    }

    async fn description(&self) -> Result<Description> {
        let settings = self.pool.settings().clone();
        let asked = settings.tier;
        let (journal, synchronous, checkpoint) = match self.pool.is_there()? {
            true => self.pool.run(pool::kept_by).await?,
            // What `prepare` will make it.
            false => self.pool.planned()?,
        };
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

    async fn tables(&self) -> Result<Vec<String>> {
        self.table_names().await
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

    async fn put_if(&self, row: &Row, expected: &Expected) -> Result<bool> {
        let known = self.schema().await?;
        let cells = Cells { key: row.key.clone(), body: known.cells(self.abilities(), row)? };
        let condition = known.condition(expected.into())?;
        self.pool
            .attempt(move |connection| {
                write::row_if(connection, &known, condition.as_ref(), &cells)
            })
            .await
    }

    async fn remove_if(&self, key: &Key, expected: &Expected) -> Result<bool> {
        self.removed_if(key, expected.into()).await
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Document>>> {
        self.found(keys, Schema::found).await
    }

    async fn find(&self, query: &Query) -> Result<Rows<'_>> {
        self.abilities().can(query)?;
        let known = self.schema().await?;
        let query = query.clone();
        let sql = known.table.select(&known.dialect, &known.what(), &query)?;
        let (of, asked) = (known.clone(), query.clone());
        let found = self
            .pool
            .attempt(move |connection| {
                let mut statement = connection.prepare_cached(&sql.text).map_err(error)?;
                let values = sql.values.iter().map(column::cell);
                let mut cursor = statement.query(params_from_iter(values)).map_err(error)?;
                let (mut rows, mut bytes) = (Vec::new(), 0);
                while let Some(row) = cursor.next().map_err(error)? {
                    bytes += read::bytes_of(row);
                    if rows.len() as u64 == AT_ONCE || read::is_much(bytes) {
                        return Ok(None);
                    }
                    let Row { key, record } = of.row_of(row, asked.fields.as_deref())?;
                    rows.push(Row { key, record: asked.project(record) });
                }
                Ok(Some(rows))
            })
            .await;
        if let Some(rows) = self.named(&known, found).await? {
            return Ok(super::in_batches(rows.into_iter()).boxed());
        }
        // They are many: row numbers first, in the order asked for: eight bytes each, and no lock is held while
        // whoever reads the stream writes. Keys, where rows have no numbers.
        let (what, by) = match known.has_row_ids {
            true => ("rowid".to_owned(), "rowid = ?1".to_owned()),
            false => (known.key(), read::by_key(&known)),
        };
        let sql = known.table.select(&known.dialect, &what, &query)?;
        let values: Vec<Cell> = self.column(sql).await?;
        let fields = query.fields.clone();
        let read = move |known: &Schema, row: &rusqlite::Row| known.row_of(row, fields.as_deref());
        let rows = self.rows_by(known, &by, values, read);
        let project = move |row: Row| Row { record: query.project(row.record), ..row };
        Ok(rows.map_ok(move |rows| rows.into_iter().map(&project).collect()).boxed())
    }

    async fn join(&self, join: &Join) -> Result<Vec<Joined>> {
        self.abilities().can(&Query::new(join.filter.clone()))?;
        self.joined(join).await
    }

    async fn delete(&self, filter: &Filter) -> Result<u64> {
        self.abilities().can(&Query::new(filter.clone()))?;
        let known = self.schema().await?;
        let sql = known.table.delete(&known.dialect, filter)?;
        let deleted = self
            .pool
            .run(move |connection| {
                let mut statement = connection.prepare_cached(&sql.text)?;
                statement.execute(params_from_iter(sql.values.iter().map(column::cell)))
            })
            .await;
        self.named(&known, deleted).await.map(|n| n as u64)
    }

    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        self.removed(keys).await
    }

    async fn scan(&self, range: &KeyRange) -> Result<Rows<'_>> {
        self.pages(range, |known, row| known.row(row)).await
    }

    async fn count(&self) -> Result<u64> {
        self.counted().await
    }

    async fn split(&self, parts: u32) -> Result<Vec<KeyRange>> {
        self.parts(parts).await
    }

    async fn drop_table(&self) -> Result<()> {
        let statement = format!("DROP TABLE IF EXISTS {}", self.table.quoted());
        self.pool.run(move |c| c.execute_batch(&statement)).await?;
        self.table.forget();
        Ok(())
    }

    /// Frees what was deleted, gathers statistics, and writes the log to its place.
    async fn settle(&self) -> Result<bool> {
        let statements = "VACUUM; PRAGMA optimize; PRAGMA wal_checkpoint(TRUNCATE)";
        self.pool.run(move |connection| connection.execute_batch(statements)).await?;
        Ok(true)
    }

    async fn analyze(&self) -> Result<()> {
        // All of it, as a user would: with a limit, estimates of values that are rare or frequent are off.
        let statements = format!("ANALYZE {}", self.table.quoted());
        self.pool.run(move |connection| connection.execute_batch(&statements)).await
    }

    async fn index_bytes(&self) -> Result<Option<u64>> {
        let name = self.table.name.clone();
        let text = "SELECT sum(pgsize) FROM dbstat WHERE name IN (SELECT name FROM sqlite_schema \
                    WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL)";
        let sum = move |connection: &mut Connection| {
            connection.query_row(text, [name], |row| row.get::<_, Option<i64>>(0))
        };
        // Not every SQLite is built with it.
        Ok(self.pool.run(sum).await.ok().map(|bytes| bytes.unwrap_or(0) as u64))
    }

    async fn database_bytes(&self) -> Result<Option<u64>> {
        let text = "SELECT (page_count - freelist_count) * page_size \
                    FROM pragma_page_count, pragma_freelist_count, pragma_page_size";
        let bytes = move |connection: &mut Connection| {
            connection.query_row(text, [], |row| row.get::<_, i64>(0))
        };
        Ok(Some(self.pool.run(bytes).await? as u64))
    }

    async fn explain(&self, request: Request<'_>) -> Result<Option<Explained>> {
        self.explained(request).await
    }

    async fn describe(&self) -> Result<Description> {
        self.description().await
    }
}
