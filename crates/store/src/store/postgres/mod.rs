//! `postgres://user:password@host:port/database` — PostgreSQL 12 and later.
//!
//! A table that steelyard makes has the key in `_key` and the record in `record` (document: `jsonb`),
//! in `value` (blob: `bytea`) or in a column for each field. Tables of other programs are read and
//! written as they are: `?table=orders&schema=shop&column=payload`, the key being the table's primary
//! key, or what `?key=` names. Columns of types whose bytes are not known here go as text.
//! Timestamps without a time zone are taken as UTC.
//!
//! `?socket=/run/postgresql` connects by the socket in that folder. `?tls=true` asks for TLS, and
//! trusts the usual authorities or those in the file `?ca=`.
//!
//! Durability: t3 is `synchronous_commit=on`, t2 `off`, both where the server has `fsync=on`; t1 is
//! `synchronous_commit=on` where it has `fsync=off`; t0 is an UNLOGGED table.
//!
//! Everything goes over at most `?pool` connections of steelyard's own client, which speaks the wire
//! protocol itself, with TLS and without; `?client=crate` sends everything through the crate
//! `tokio-postgres` instead. Logging in is that crate's work in both cases.
//!
//! A stream of found or scanned records holds no lock and no connection between its pages; one that
//! is sorted, and not limited, holds all keys it found. What is in a document under a path is compared
//! by expressions that indexes of [`Layout`] are made on; numbers in a document that are beyond 64 bits
//! and no floats (other programs may have written such) compare by value, too.

mod blob;
mod client;
mod crated;
mod databases;
mod dialect;
mod encrypt;
mod error;
mod explain;
mod join;
mod jsonb;
mod numeric;
mod open;
mod pool;
mod read;
mod rows;
mod setting;
mod size;
mod table;
#[cfg(test)]
mod tests;
mod watch;
mod wire;
mod write;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::{StreamExt, TryStreamExt};

use self::{
    pool::Pool,
    table::{Lazy, Schema},
};
use super::{
    Abilities, Client, Description, Driver, Expected, Explained, Facts, Filter, Join, Joined, Key,
    KeyRange, Layout, Login, Need, Part, Query, Request, Row, Rows, Shape, Store,
    blobs::CANNOT,
    json,
    sql::{BlobTable, Others, quote},
};
use crate::{
    ErrorKind, Result,
    durability::{Bound, Limit, Tier},
    record::{Document, Kind},
};

pub(super) const DRIVER: Driver = Driver {
    name: "postgres",
    aliases: &["postgresql"],
    example: "postgres://user@localhost/shop?table=orders&layout=columns",
    about: "PostgreSQL; documents are jsonb",
    shapes: &[Shape::Document, Shape::Columns, Shape::Blob],
    facts: &[
        Facts {
            refuses: &[Kind::Bytes],
            levels: Some(json::LEVELS),
            indexed: &[Kind::Bool, Kind::Int, Kind::BigInt, Kind::Float, Kind::Text],
            nested: true,
            transactions: true,
            ..Facts::of(Shape::Document, DOCUMENT)
        },
        Facts {
            refuses: &[Kind::List, Kind::Map],
            levels: Some(1),
            indexed: &[
                Kind::Bool,
                Kind::Int,
                Kind::BigInt,
                Kind::Float,
                Kind::Decimal,
                Kind::Text,
                Kind::Bytes,
                Kind::Time,
            ],
            transactions: true,
            ..Facts::of(Shape::Columns, COLUMNS)
        },
        Facts::of(Shape::Blob, Abilities { loses: "", cannot: CANNOT, joins: false, ..BLOB }),
    ],
    limits: "",
    tiers: &Tier::ALL,
    clients: &[Client::Own, Client::Crate("tokio-postgres")],
    servers: &["postgres"],
    login: Login::Password,
    databases: Some(databases::DATABASES),
    open: open::open,
};

/// The client of `?client=crate`.
const CRATE: Client = Client::Crate("tokio-postgres");

const DOCUMENT: Abilities = Abilities {
    driver: "postgres",
    keeps: &[Kind::Null, Kind::Bool, Kind::Int, Kind::BigInt, Kind::Text, Kind::List],
    loses: "fields lose their order; -0.0 becomes 0.0; times become text; decimals keep their \
            digits, but no exponent, and become floats or whole numbers of the same value where \
            possible; bytes, NaN, infinities, texts with a NUL and numbers of more than 131,072 \
            digits are refused",
    cannot: &[Need::Times],
    joins: true,
    atomic: true,
    conditional: true,
    ordered: true,
    // Of an entry of a btree index, in which the key has to fit.
    max_key: 2690,
    // Of what is in a list or a map of jsonb.
    max_record: (1 << 28) - 1,
};

const COLUMNS: Abilities = Abilities {
    keeps: &[Kind::Bool, Kind::Float, Kind::Text, Kind::Bytes, Kind::Decimal, Kind::BigInt],
    loses: "a whole number becomes a float, a decimal or a whole number beyond 64 bits in a column that \
            has those; null becomes a field that is not there, and fields stand in the order of the columns; \
            decimals keep their digits, but no exponent and no zeros in front; NaN, texts with a \
            NUL and times finer than microseconds are refused, and so are lists and maps",
    cannot: &[Need::Missing],
    ..DOCUMENT
};

const BLOB: Abilities = Abilities {
    // A row of 1 GB and its key would not fit into a message.
    max_record: 1_000_000_000,
    ..DOCUMENT
};

/// Up to how many records a query is answered at once, rather than streamed.
const AT_ONCE: u64 = 10_000;

/// A table of a database.
struct PostgreSql {
    pool: Arc<Pool>,
    table: Lazy,
    /// Tables that were joined with this one.
    others: Others<PostgreSql>,
}

impl PostgreSql {
    async fn schema(&self) -> Result<Arc<Schema>> {
        self.table.schema(&self.pool).await
    }

    /// Takes note where an error says that the table is not what it was.
    fn noted<T>(&self, done: Result<T>) -> Result<T> {
        if let Err(e) = &done
            && matches!(error::code(e), Some("42P01" | "42703" | "0A000"))
        {
            self.table.forget();
            self.pool.forget();
        }
        done
    }

    async fn description(&self) -> Result<Description> {
        const SETTINGS: [&str; 6] = [
            "fsync",
            "synchronous_commit",
            "full_page_writes",
            "wal_sync_method",
            "shared_buffers",
            "server_encoding",
        ];
        let settings = SETTINGS.map(|name| format!("current_setting('{name}')")).join(", ");
        let table = dialect::literal(&quote(&self.table.name));
        let text = format!(
            "SELECT {settings}, split_part(version(), ' ', 1), current_setting('server_version'), \
             pg_total_relation_size(to_regclass({table})), \
             (SELECT CAST(relpersistence AS text) FROM pg_class WHERE oid = to_regclass({table})), \
             (SELECT CAST(setting AS integer) FROM pg_settings WHERE name = 'wal_writer_delay')"
        );
        let rows = self.pool.get().await?.query(&text, &[]).await?;
        let row = &rows[0];
        let told = |i: usize| row.try_get::<String>(i);
        let mut settings = Vec::new();
        for (i, name) in SETTINGS.iter().enumerate() {
            settings.push(((*name).to_owned(), told(i)?));
        }
        const AFTER: usize = SETTINGS.len();
        let unlogged = match row.try_get::<Option<String>>(AFTER + 3)?.as_deref() {
            None => self.table.tier == Some(Tier::T0),
            Some(persistence) => persistence != "p",
        };
        settings.push(("table".into(), if unlogged { "UNLOGGED" } else { "logged" }.into()));
        let limit = match (unlogged, &*settings[2].1) {
            (true, _) => Some((Tier::T0, "an UNLOGGED table is emptied after a crash")),
            (_, "off") => Some((Tier::T1, "full_page_writes=off, so a crash may tear a page")),
            _ => None,
        };
        let limit = limit.map(|(most, why)| Limit { most, why: why.into() });
        let set = match (&*settings[0].1, &*settings[1].1) {
            ("off", "off") => Tier::T0,
            ("off", _) => Tier::T1,
            (_, "off") => Tier::T2,
            _ => Tier::T3,
        };
        let set = limit.as_ref().map_or(set, |limit| set.min(limit.most));
        // What is not synced at commit is synced by the WAL writer, three of its rounds later at most.
        let delay = row.try_get::<Option<i32>>(AFTER + 4)?.unwrap_or(200);
        let bound = Bound::Time(Duration::from_millis(3 * u64::try_from(delay).unwrap_or(200)));
        let disk = row.try_get::<Option<i64>>(AFTER + 2)?;
        Ok(Description {
            client: self.pool.client(),
            product: told(AFTER)?,
            version: told(AFTER + 1)?,
            shape: self.table.shape,
            format: None,
            asked: self.table.tier,
            set: Some(set),
            bound: (set == Tier::T2).then_some(bound),
            limit,
            settings,
            disk: disk.map(|n| n as u64),
        })
    }
}

#[async_trait]
impl Store for PostgreSql {
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

    fn part(&self, part: Part<'_>) -> Result<Option<Arc<dyn Store>>> {
        Ok(self.elsewhere(part)?.map(|table| Arc::new(table) as Arc<dyn Store>))
    }

    async fn tables(&self) -> Result<Vec<String>> {
        table::names(&self.pool).await
    }

    fn check(&self, row: &Row) -> Result<()> {
        let known = self.table.supposed()?;
        rows::write(&known, row, &mut Vec::new())
    }

    async fn prepare(&self, layout: &Layout) -> Result<()> {
        self.table.prepare(&self.pool, layout).await
    }

    async fn put(&self, rows: &[Row]) -> Result<()> {
        self.put_entries(rows).await
    }

    async fn put_each(&self, rows: &[Row]) -> Result<()> {
        self.put_each_entry(rows).await
    }

    async fn load(&self, rows: &[Row]) -> Result<()> {
        self.load_entries(rows).await
    }

    async fn put_if(&self, row: &Row, expected: &Expected) -> Result<bool> {
        self.write_if(row, expected.into()).await
    }

    async fn remove_if(&self, key: &Key, expected: &Expected) -> Result<bool> {
        self.removed_if(key, expected.into()).await
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Document>>> {
        self.found(keys, rows::record).await
    }

    async fn find(&self, query: &Query) -> Result<Rows<'_>> {
        self.abilities().can(query)?;
        let asked = query.clone();
        let project = move |rows: Vec<Row>| -> Vec<Row> {
            let project = |row: Row| Row { record: asked.project(row.record), ..row };
            rows.into_iter().map(project).collect()
        };
        if query.limit.is_some_and(|limit| limit <= AT_ONCE) {
            let rows = project(self.first(query, AT_ONCE, rows::row).await?);
            return Ok(super::in_batches(rows.into_iter()).boxed());
        }
        Ok(self.streamed(query, rows::row).await?.map_ok(project).boxed())
    }

    async fn join(&self, join: &Join) -> Result<Vec<Joined>> {
        self.abilities().can(&Query::new(join.filter.clone()))?;
        self.joined(join).await
    }

    async fn delete(&self, filter: &Filter) -> Result<u64> {
        self.abilities().can(&Query::new(filter.clone()))?;
        self.deleted(filter).await
    }

    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        self.removed(keys).await
    }

    async fn scan(&self, range: &KeyRange) -> Result<Rows<'_>> {
        self.ranged(range, rows::row).await
    }

    async fn count(&self) -> Result<u64> {
        self.counted().await
    }

    async fn split(&self, parts: u32) -> Result<Vec<KeyRange>> {
        self.parts(parts).await
    }

    async fn drop_table(&self) -> Result<()> {
        let text = format!("DROP TABLE IF EXISTS {}", quote(&self.table.name));
        self.pool.get().await?.batch(&text).await?;
        self.table.forget();
        self.pool.forget();
        Ok(())
    }

    /// Frees what was deleted, gathers statistics, and, where this user may, writes the log to its
    /// place.
    async fn settle(&self) -> Result<bool> {
        let mut connection = self.pool.get().await?;
        connection.batch(&format!("VACUUM (ANALYZE) {}", quote(&self.table.name))).await?;
        match connection.batch("CHECKPOINT").await {
            Err(e) if e.kind() == ErrorKind::Denied => Ok(true),
            done => done.map(|()| true),
        }
    }

    async fn analyze(&self) -> Result<()> {
        let text = format!("ANALYZE {}", quote(&self.table.name));
        self.pool.get().await?.batch(&text).await
    }

    async fn index_bytes(&self) -> Result<Option<u64>> {
        let text = format!(
            "SELECT CAST(sum(pg_relation_size(i.indexrelid)) AS bigint) FROM pg_index i \
             WHERE i.indrelid = to_regclass({}) AND NOT i.indisprimary",
            dialect::literal(&quote(&self.table.name))
        );
        let rows = self.pool.get().await?.query(&text, &[]).await?;
        Ok(Some(rows[0].try_get::<Option<i64>>(0)?.unwrap_or(0) as u64))
    }

    async fn database_bytes(&self) -> Result<Option<u64>> {
        let rows = self.pool.get().await?.query(size::IN_USE, &[]).await?;
        Ok(Some(rows[0].try_get::<Option<i64>>(0)?.unwrap_or(0) as u64))
    }

    async fn explain(&self, request: Request<'_>) -> Result<Option<Explained>> {
        self.explained(request).await
    }

    async fn describe(&self) -> Result<Description> {
        self.description().await
    }
}
