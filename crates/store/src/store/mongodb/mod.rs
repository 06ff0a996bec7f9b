//! `mongodb://host:port/DATABASE?table=COLLECTION` — MongoDB, and what speaks its protocol.
//!
//! In layout document a record's fields lie at the top of a document whose `_id` is the key, as
//! other programs expect them; a field `_id` of the record's own must be equal to the key, and is
//! not given back, as it is beside the record. In queries `_id` is the key. Layout blob is
//! `{_id, v: Binary}`. A collection has no layout but what is in it: which one that is, a
//! document of it tells.
//!
//! Bulk path: the `insert` command with many documents, not in order (`?ordered=true` for in
//! order: the first key that is taken is the last that is tried). `put` is the `update` command
//! with a replacement for each. Durability: t3 is `w: 1, j: true`, t2 `w: 1, j: false`. Nothing is
//! ever sent a second time by the client itself.
//!
//! A conditional write is an `update` or `delete` whose query names the field, or an `insert`; a collection with a collation
//! of its own compares by it.
//!
//! Refused before anything is written: documents of more than 16 MiB, names that begin with `$` or
//! have a NUL in them, times finer than a millisecond, decimals and whole numbers that BSON cannot
//! hold exactly. Names with dots are kept; queries on them look through what the rest of the query
//! finds, and no index or order can be on them.

mod blob;
mod connect;
mod convert;
mod databases;
mod error;
mod explain;
mod filter;
mod join;
mod table;
mod write;

use std::sync::Arc;

use async_trait::async_trait;
use bson::{RawDocument, RawDocumentBuf, doc};
use futures_util::{FutureExt, StreamExt, TryStreamExt, future::BoxFuture};

use self::{
    blob::{Bytes, is_blob},
    filter::{Find, translated},
    table::Table,
};
use super::{
    Abilities, Client, Common, Description, Driver, Encoded, Expected, Explained, Facts, Filter,
    Join, Joined, Key, KeyRange, Layout, Login, Need, Part, Query, Request, Row, Rows, Shape,
    Store, Url, blobs::CANNOT,
};
use crate::{
    Error, ErrorKind, Result,
    durability::Tier,
    record::{Document, Kind},
};

pub(super) const DRIVER: Driver = Driver {
    name: "mongodb",
    aliases: &["mongodb+srv"],
    example: "mongodb://user:password@host:27017/database?table=name&durability=t3&ordered=false",
    about: "MongoDB and FerretDB: native BSON documents",
    shapes: &[Shape::Document, Shape::Blob],
    facts: &[
        Facts {
            refuses: &[Kind::BigInt],
            levels: Some(convert::LEVELS),
            indexed: &[
                Kind::Bool,
                Kind::Int,
                Kind::Float,
                Kind::Decimal,
                Kind::Text,
                Kind::Bytes,
                Kind::Time,
            ],
            nested: true,
            ..Facts::of(Shape::Document, ABILITIES)
        },
        Facts::of(Shape::Blob, Abilities { loses: "", cannot: CANNOT, joins: false, ..ABILITIES }),
    ],
    limits: "",
    tiers: &[Tier::T2, Tier::T3],
    clients: &[Client::Crate("mongodb")],
    servers: &["mongodb", "ferretdb"],
    login: Login::Password,
    databases: Some(databases::DATABASES),
    open,
};

/// MongoDB's limit of a document, in bytes.
const MAX_DOCUMENT: usize = 16 << 20;
/// The longest key, in bytes: MongoDB's limit of what an index holds, until 4.2 took it away.
const MAX_KEY: usize = 1024;

const ABILITIES: Abilities = Abilities {
    driver: "mongodb",
    keeps: &[
        Kind::Null,
        Kind::Bool,
        Kind::Int,
        Kind::Float,
        Kind::Text,
        Kind::Bytes,
        Kind::List,
        Kind::Map,
    ],
    loses: "decimals may come back spelled differently; times finer than a millisecond, decimals \
            of more than 34 digits and whole numbers beyond 64 bits are refused; a field _id, which \
            is the key, is not given back",
    cannot: &[Need::Digits],
    joins: true,
    atomic: false,
    conditional: true,
    ordered: true,
    max_key: MAX_KEY,
    max_record: MAX_DOCUMENT,
};

fn open(mut url: Url, common: Common) -> BoxFuture<'static, Result<Arc<dyn Store>>> {
    async move {
        let ordered = url.take_flag("ordered")?.unwrap_or(false);
        let shape = common.shape("mongodb", DRIVER.shapes)?;
        connect::concern(common.durability)?;
        let place = connect::place(&url);
        let (client, database) = connect::client(&mut url, &common).await?;
        let format = common.blob_format();
        let table = Table::open(client, database, ordered, place, common).await?;
        Ok(match shape {
            Shape::Blob => Arc::new(Encoded::new(Arc::new(Bytes(table)), format)?),
            _ => Arc::new(Documents(table)) as Arc<dyn Store>,
        })
    }
    .boxed()
}

/// Records as documents.
struct Documents(Table);

fn row(document: &RawDocument) -> Result<Row> {
    convert::row(document)
}

fn pair(document: &RawDocument) -> Result<(Key, Document)> {
    convert::row(document).map(|Row { key, record }| (key, record))
}

fn documents(rows: &[Row]) -> Result<Vec<(&Key, RawDocumentBuf)>> {
    rows.iter().map(|row| Ok((&row.key, convert::document(row)?))).collect()
}

/// Only the fields that a query asks for, where MongoDB can be told so.
fn projection(query: &Query) -> Option<bson::Document> {
    let fields = query.fields.as_ref()?;
    if fields.iter().any(|name| name.is_empty() || name.contains(['.', '\0', '$'])) {
        return None;
    }
    let mut only = doc! {convert::ID: 1};
    only.extend(fields.iter().map(|name| (name.clone(), bson::Bson::Int32(1))));
    Some(only)
}

#[async_trait]
impl Store for Documents {
    fn abilities(&self) -> &Abilities {
        &ABILITIES
    }

    fn shape(&self) -> Shape {
        Shape::Document
    }

    fn table(&self, name: &str) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(Documents(self.0.sibling(name)?)))
    }

    fn part(&self, part: Part<'_>) -> Result<Option<Arc<dyn Store>>> {
        let table = self.0.part(part)?;
        Ok(table.map(|table| Arc::new(Documents(table)) as Arc<dyn Store>))
    }

    async fn tables(&self) -> Result<Vec<String>> {
        self.0.names().await
    }

    fn check(&self, row: &Row) -> Result<()> {
        convert::document(row).map(drop)
    }

    async fn prepare(&self, layout: &Layout) -> Result<()> {
        let mut indexes = Vec::with_capacity(layout.indexes.len());
        for index in &layout.indexes {
            let name = filter::name(&index.path);
            indexes.push(name.ok_or_else(|| filter::unaddressable(&index.path, "index"))?);
        }
        self.0.create().await?;
        if self.0.any().await?.is_some_and(|document| is_blob(&document)) {
            return Err(Error::new(
                ErrorKind::Conflict,
                "the collection holds blobs; open it with ?layout=blob, or name another",
            ));
        }
        // Every collection has an index of its keys.
        for path in indexes.iter().filter(|path| *path != convert::ID) {
            self.0.index(path, layout.shared).await?;
        }
        Ok(())
    }

    async fn put(&self, rows: &[Row]) -> Result<()> {
        self.0.write(true, &documents(rows)?).await
    }

    async fn load(&self, rows: &[Row]) -> Result<()> {
        self.0.write(false, &documents(rows)?).await
    }

    async fn put_if(&self, row: &Row, expected: &Expected) -> Result<bool> {
        let document = convert::document(row)?;
        match expected {
            Expected::Absent => self.0.insert_absent(&row.key, document).await,
            Expected::Field { name, text } => match filter::is_text(name, text)? {
                Some(condition) => self.0.swap(&row.key, condition, Some(&document)).await,
                None => Ok(false),
            },
        }
    }

    async fn remove_if(&self, key: &Key, expected: &Expected) -> Result<bool> {
        match expected {
            Expected::Absent => Ok(false),
            Expected::Field { name, text } => match filter::is_text(name, text)? {
                Some(condition) => self.0.swap(key, condition, None).await,
                None => Ok(false),
            },
        }
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Document>>> {
        self.0.get(keys, pair).await
    }

    async fn find(&self, query: &Query) -> Result<Rows<'_>> {
        query.check()?;
        ABILITIES.can(query)?;
        let asked = translated(&query.filter)?;
        let find = Find {
            filter: asked.filter,
            order: filter::order(query)?,
            limit: query.limit.filter(|_| asked.exact),
            fields: projection(query).filter(|_| asked.exact),
        };
        let query = query.clone();
        let mut left = match asked.exact {
            true => u64::MAX,
            false => query.limit.unwrap_or(u64::MAX),
        };
        let rows = self.0.find(find, row).map_ok(move |mut rows| {
            if !asked.exact {
                rows.retain(|row| query.matches(&row.key, &row.record));
                rows.truncate(usize::try_from(left).unwrap_or(usize::MAX));
                left -= rows.len() as u64;
            }
            for row in &mut rows {
                row.record = query.project(std::mem::take(&mut row.record));
            }
            // Nothing comes after the last.
            (rows, left == 0)
        });
        let rows = rows.scan(false, |over, batch| {
            let done = std::mem::replace(over, matches!(batch, Ok((_, true))));
            std::future::ready((!done).then(|| batch.map(|(rows, _)| rows)))
        });
        let some = |rows: &Result<Vec<Row>>| {
            std::future::ready(!matches!(rows, Ok(rows) if rows.is_empty()))
        };
        Ok(rows.filter(some).boxed())
    }

    async fn join(&self, join: &Join) -> Result<Vec<Joined>> {
        self.joined(join).await
    }

    async fn delete(&self, filter: &Filter) -> Result<u64> {
        let query = Query::new(filter.clone());
        query.check()?;
        ABILITIES.can(&query)?;
        let asked = translated(filter)?;
        if asked.exact {
            return self.0.delete(asked.filter).await;
        }
        let mut count = 0;
        let mut rows = self.find(&query).await?;
        while let Some(rows) = rows.try_next().await? {
            let keys: Vec<Key> = rows.into_iter().map(|row| row.key).collect();
            count += self.0.remove(&keys).await?;
        }
        Ok(count)
    }

    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        self.0.remove(keys).await
    }

    async fn scan(&self, range: &KeyRange) -> Result<Rows<'_>> {
        let rows = |batch: Vec<(Key, Document)>| {
            batch.into_iter().map(|(key, record)| Row { key, record }).collect()
        };
        Ok(self.0.scan(range, pair).map_ok(rows).boxed())
    }

    async fn count(&self) -> Result<u64> {
        self.0.count().await
    }

    async fn split(&self, parts: u32) -> Result<Vec<KeyRange>> {
        self.0.split(parts).await
    }

    async fn drop_table(&self) -> Result<()> {
        self.0.drop().await
    }

    async fn database_bytes(&self) -> Result<Option<u64>> {
        self.0.database_bytes().await
    }

    async fn explain(&self, request: Request<'_>) -> Result<Option<Explained>> {
        self.explained(request).await
    }

    async fn describe(&self) -> Result<Description> {
        self.0.describe(Shape::Document).await
    }
}
