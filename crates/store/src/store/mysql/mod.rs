//! `mysql://user:password@host:port/database` — MySQL (8.0.17 or later) and MariaDB (10.3 or
//! later).
//!
//! A table that steelyard makes has the key in `_key` and the record in `record` (document: JSON),
//! in `value` (blob) or in a column for each field. Tables of other programs are read and written as
//! they are: `?table=orders&column=payload&format=marshal`, the key being the table's primary key,
//! or what `?key=` names. In a table of columns that is made, the column `?key=` is a field of the record:
//! BIGINT where it holds whole numbers, else VARCHAR.
//!
//! `?engine=innodb|myisam|aria` is what tables are made with; `?socket=` a socket of this machine;
//! `?tls=true` encrypts, and trusts the authorities of the web or, with `?ca=file.pem`, that one.
//!
//! - Keys are text of up to 512 bytes (MyISAM, Aria: 250), compared by their bytes.
//! - A record is smaller than the server's `max_allowed_packet`. MariaDB's JSON nests 31 levels.
//! - Nothing is cut, rounded or padded: what a column cannot hold as it is, is refused beforehand,
//!   and the server is set to be strict.
//! - An index on a path of documents is one on a generated column (`_number:age`, `_text:name`) that
//!   `SELECT *` does not show.
//! - New rows are sent as a file that is nowhere but in memory (`LOAD DATA LOCAL`), and counted; where
//!   the server forbids that, in statements of many rows.
//!
//! Durability is the server's own setting for InnoDB, so it is read and compared with what is asked:
//! t3 is `innodb_flush_log_at_trx_commit=1` (and `sync_binlog=1`, where there is a binary log), t2
//! is 2 or 0, t1 is 2. With `innodb_flush_method=nosync` or without `innodb_doublewrite` it is t1 at
//! most. MyISAM and Aria have t1: `FLUSH TABLES` hands their files to the system, and syncs nothing.
//!
//! Everything goes over at most `?pool` connections of steelyard's own client, which speaks the wire
//! protocol itself, with TLS and without; `?client=crate` sends everything through the crate
//! `mysql_async` instead, as does a server that wants a login our own client does not know
//! (`?client=own` is then an error).
//!
//! A connection whose operation was given up in the middle is closed, not used again. A stream of
//! found or scanned records holds no lock and no connection between its pages; one that is sorted,
//! and not limited, holds all keys it found.

mod blob;
mod client;
mod databases;
mod dialect;
mod engine;
mod explain;
mod join;
mod load;
mod login;
mod pool;
mod read;
mod schema;
mod session;
mod sorting;
mod table;
mod values;
mod write;

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{FutureExt, StreamExt, TryStreamExt, future::BoxFuture};

use self::{
    engine::{Engine, Facts, Safety},
    pool::{Connect, Pool},
    schema::Schema,
    sorting::Reach,
    table::Lazy,
    write::Taken,
};
use super::{
    Abilities, Client, Common, Description, Driver, Encoded, Expected, Explained, Filter, Join,
    Joined, Key, KeyRange, Layout, Login, Need, Part, Query, Request, Row, Rows, Shape, Store, Url,
    blobs::CANNOT,
    counts, facts,
    sql::{BlobTable, Names, Others, ranges},
};
use crate::{
    Error, Result,
    durability::Tier,
    record::{Document, Kind},
};

pub(super) const DRIVER: Driver = Driver {
    name: "mysql",
    aliases: &["mariadb"],
    example: "mysql://user:password@localhost/shop?table=orders&engine=innodb",
    about: "MySQL and MariaDB; engines InnoDB, MyISAM and Aria",
    shapes: &[Shape::Document, Shape::Columns, Shape::Blob],
    facts: &[
        facts::Facts {
            refuses: &[Kind::BigInt, Kind::Bytes],
            levels: Some(engine::LEVELS),
            indexed: &[Kind::Int, Kind::Float, Kind::Text],
            nested: true,
            transactions: true,
            ..facts::Facts::of(Shape::Document, engine::DOCUMENT)
        },
        facts::Facts {
            refuses: &[Kind::BigInt, Kind::Decimal, Kind::List, Kind::Map],
            levels: Some(1),
            indexed: &[Kind::Bool, Kind::Int, Kind::Float, Kind::Text, Kind::Bytes, Kind::Time],
            transactions: true,
            ..facts::Facts::of(
                Shape::Columns,
                Abilities {
                    keeps: engine::COLUMNS,
                    loses: engine::LOST_IN_COLUMNS,
                    cannot: &[Need::Missing],
                    ..engine::DOCUMENT
                },
            )
        },
        facts::Facts::of(
            Shape::Blob,
            Abilities { loses: "", cannot: CANNOT, joins: false, ..engine::DOCUMENT },
        ),
    ],
    limits: "a record is smaller than the server's max_allowed_packet; MyISAM and Aria have keys of 250 bytes and no \
             transactions; MySQL's own JSON has 100 levels",
    tiers: &[Tier::T1, Tier::T2, Tier::T3],
    clients: &[Client::Own, Client::Crate("mysql_async")],
    servers: &["mariadb"],
    login: Login::Password,
    databases: Some(databases::DATABASES),
    open,
};

/// The client of `?client=crate`.
const CRATE: Client = Client::Crate("mysql_async");

/// What the options of a URL say, all of which are taken out.
fn options(mut url: Url, common: &Common) -> Result<(Names, Option<Engine>, Connect)> {
    let names = Names::take(&mut url);
    let engine = url.take_word("engine", &["innodb", "myisam", "aria"])?.map(Engine::named);
    let connect = pool::connect(&mut url, common)?;
    url.done()?;
    Ok((names, engine, connect))
}

fn open(url: Url, common: Common) -> BoxFuture<'static, Result<Arc<dyn Store>>> {
    async move {
        let (names, engine, connect) = options(url, &common)?;
        let shape = common.shape("mysql", DRIVER.shapes)?;
        let pool = Arc::new(Pool::open(connect, &common).await?);
        let safety = Safety::ask(&pool).await?;
        let there = table::engine_of(&pool, &common.table).await?;
        let mut facts = Facts::new(shape, engine, &pool, safety, None)?;
        facts.asked = common.durability;
        let facts = match there {
            Some(engine) => facts.of(&common.table, &engine)?,
            None => facts.sibling(&pool)?,
        };
        let table = Lazy::new(&common.table, names, Arc::new(facts))?;
        let (others, reach) = (Others::default(), Reach::default());
        let store = MySql { pool, table, others, reach };
        Ok(match shape {
            Shape::Blob => {
                Arc::new(Encoded::new(Arc::new(store), common.blob_format())?) as Arc<dyn Store>
            }
            _ => Arc::new(store),
        })
    }
    .boxed()
}

/// A table of a database.
struct MySql {
    pool: Arc<Pool>,
    table: Lazy,
    /// Tables that were joined with this one.
    others: Others<MySql>,
    /// How far texts are sorted.
    reach: Reach,
}

/// What is read of a row of a table with documents or columns.
const READ: fn(&Schema, mysql_async::Row) -> Result<(Key, Document)> = |known, cells| {
    let Row { key, record } = known.row(cells)?;
    Ok((key, record))
};

impl MySql {
    async fn schema(&self) -> Result<Arc<Schema>> {
        self.table.schema(&self.pool).await
    }

    async fn removed(&self, keys: &[Key]) -> Result<u64> {
        // One deadline for all portions.
        let removed = self.pool.within("a remove", self.removed_in_portions(keys)).await;
        removed.map_err(|e| self.pool.placed(e))
    }

    async fn removed_in_portions(&self, keys: &[Key]) -> Result<u64> {
        const KEYS: usize = 512;
        let known = self.schema().await?;
        let mut count = 0;
        for keys in keys.chunks(KEYS) {
            let mut sought: Vec<_> = keys.iter().filter_map(|key| known.key_sought(key)).collect();
            let Some(last) = sought.last().cloned() else { continue };
            sought.resize(sought.len().next_power_of_two(), last);
            let (name, is_one_of) = (known.name(), known.key_is_one_of(sought.len()));
            let mut statement = format!("DELETE FROM {name} WHERE {is_one_of}");
            if !known.key_is_exact() {
                let places = vec!["?"; sought.len()].join(",");
                // Text that is only nearly the same is not meant.
                statement += &format!(" AND {} IN ({places})", known.key_by_bytes());
                let texts = keys.iter().filter(|key| known.key_sought(key).is_some());
                let mut texts: Vec<mysql_async::Value> =
                    texts.map(|key| key.as_str().into()).collect();
                let last = texts.last().cloned().unwrap_or(mysql_async::Value::NULL);
                texts.resize(sought.len(), last);
                sought.extend(texts);
            }
            let removed = self.pool.run(&statement, sought).await?;
            count += counts::of_keys("DELETE", keys, removed)?;
        }
        counts::of_keys("DELETE", keys, count)
    }

    async fn counted(&self) -> Result<u64> {
        let known = self.schema().await?;
        let statement = format!("SELECT COUNT(*) FROM {}", known.name());
        let rows = self.pool.rows(&statement, Vec::new()).await?;
        rows.into_iter()
            .next()
            .and_then(|row| mysql_async::from_row_opt::<u64>(row).ok())
            .ok_or_else(|| Error::malformed("a count that is not a number"))
            .and_then(|count| counts::records("COUNT(*)", count))
            .map_err(|e| self.pool.placed(e))
    }

    async fn parts(&self, parts: u32) -> Result<Vec<KeyRange>> {
        let known = self.schema().await?;
        let count = self.counted().await?;
        let (key, name, by) = (known.key_what(), known.name(), known.key_by_bytes());
        let statement = format!("SELECT {key} FROM {name} ORDER BY {by} LIMIT 1 OFFSET ?");
        let mut borders = Vec::new();
        for offset in ranges::places(count, parts)? {
            let rows = self.pool.rows(&statement, vec![offset.into()]).await?;
            // Nothing is there any more.
            let Some(row) = rows.into_iter().next() else { break };
            borders.push(known.key_of(row.unwrap().into_iter().next())?);
        }
        // Long keys that begin alike are in any order.
        borders.sort();
        Ok(ranges::parts(borders, parts))
    }
}

#[async_trait]
impl Store for MySql {
    fn abilities(&self) -> &Abilities {
        &self.table.facts.abilities
    }

    fn shape(&self) -> Shape {
        self.table.facts.shape
    }

    fn table(&self, name: &str) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(self.sibling(name)?))
    }

    fn part(&self, part: Part<'_>) -> Result<Option<Arc<dyn Store>>> {
        Ok(self.elsewhere(part)?.map(|table| Arc::new(table) as Arc<dyn Store>))
    }

    async fn tables(&self) -> Result<Vec<String>> {
        table::names(&self.pool).await
    }

    fn check(&self, row: &Row) -> Result<()> {
        self.table.cells(row).map(drop)
    }

    async fn prepare(&self, layout: &Layout) -> Result<()> {
        self.table.prepare(&self.pool, layout).await
    }

    async fn put(&self, rows: &[Row]) -> Result<()> {
        let known = self.schema().await?;
        let cells = |row: &Row| self.table.cells(row);
        self.write(&known, Taken::Replace, || rows.iter().map(cells).collect()).await
    }

    async fn put_each(&self, rows: &[Row]) -> Result<()> {
        let engine = &self.table.facts.engine;
        if !engine.atomic {
            return Err(Error::unsupported(format!("engine {} has no transactions", engine.name)));
        }
        let known = self.schema().await?;
        let cells = rows.iter().map(|row| self.table.cells(row)).collect::<Result<_>>()?;
        self.write_each(&known, Taken::Replace, cells).await
    }

    async fn load(&self, rows: &[Row]) -> Result<()> {
        let known = self.schema().await?;
        self.load_cells(&known, rows.len(), |i| self.table.cells(&rows[i])).await
    }

    async fn put_if(&self, row: &Row, expected: &Expected) -> Result<bool> {
        self.abilities().can_conditional()?;
        let known = self.schema().await?;
        let cells = self.table.cells(row)?;
        self.write_if(&known, &row.key, cells, expected.into()).await
    }

    async fn remove_if(&self, key: &Key, expected: &Expected) -> Result<bool> {
        self.abilities().can_conditional()?;
        self.removed_if(key, expected.into()).await
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Document>>> {
        self.found(keys, READ).await
    }

    async fn find(&self, query: &Query) -> Result<Rows<'_>> {
        self.abilities().can(query)?;
        query.check()?;
        let known = self.schema().await?;
        if query.limit.is_some_and(|limit| limit <= read::AT_ONCE) {
            let rows = self.at_once(&known, query).await?;
            return Ok(super::in_batches(rows.into_iter()).boxed());
        }
        let pages = match (&query.filter, &*query.sort, query.limit) {
            (Filter::All, [], None) => self.pages(&KeyRange::all(), READ).await?,
            _ => self.by_keys(known, query, READ)?,
        };
        let query = query.clone();
        let rows = pages.map_ok(move |page| {
            let row = |(key, record)| Row { key, record: query.project(record) };
            page.into_iter().map(row).collect()
        });
        Ok(rows.boxed())
    }

    async fn join(&self, join: &Join) -> Result<Vec<Joined>> {
        self.abilities().can(&Query::new(join.filter.clone()))?;
        self.joined(join).await
    }

    async fn delete(&self, filter: &Filter) -> Result<u64> {
        let query = Query::new(filter.clone());
        self.abilities().can(&query)?;
        let known = self.schema().await?;
        let query = self.fitted(&known, &query)?;
        let sql = known.table.delete(&known.dialect, &query.filter)?;
        let count = self.pool.run(&sql.text, read::values(&sql)).await?;
        counts::records("DELETE", count).map_err(|e| self.pool.placed(e))
    }

    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        self.removed(keys).await
    }

    async fn scan(&self, range: &KeyRange) -> Result<Rows<'_>> {
        let row = |(key, record)| Row { key, record };
        let pages = self.pages(range, READ).await?;
        Ok(pages.map_ok(move |page| page.into_iter().map(row).collect()).boxed())
    }

    async fn count(&self) -> Result<u64> {
        self.counted().await
    }

    async fn split(&self, parts: u32) -> Result<Vec<KeyRange>> {
        self.parts(parts).await
    }

    async fn drop_table(&self) -> Result<()> {
        let name = dialect::quote(&self.table.name);
        self.pool.define(&format!("DROP TABLE IF EXISTS {name}")).await?;
        self.table.forget();
        Ok(())
    }

    /// Writes the table anew, without what was deleted, and gathers statistics.
    async fn settle(&self) -> Result<bool> {
        let name = dialect::quote(&self.table.name);
        self.pool.define(&format!("OPTIMIZE LOCAL TABLE {name}")).await.map(|()| true)
    }

    async fn analyze(&self) -> Result<()> {
        let name = dialect::quote(&self.table.name);
        self.pool.define(&format!("ANALYZE LOCAL TABLE {name}")).await
    }

    async fn index_bytes(&self) -> Result<Option<u64>> {
        self.table.index_bytes(&self.pool).await
    }

    async fn database_bytes(&self) -> Result<Option<u64>> {
        table::database_bytes(&self.pool).await
    }

    async fn explain(&self, request: Request<'_>) -> Result<Option<Explained>> {
        self.explained(request).await
    }

    async fn describe(&self) -> Result<Description> {
        self.description().await
    }
}
