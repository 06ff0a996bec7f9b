//! Stores: places that find records by key and, where they can, by query: databases, caches,
//! folders of blobs.
//!
//! A [`Store`] is small and batch-first; [`DRIVERS`] is the table of what there is, and [`open`]
//! opens one by its URL. A store that keeps bytes implements [`Blobs`], and [`Encoded`] makes a
//! store of it through any format, so that formats times stores is a sum, not a product. What a
//! store cannot do is known beforehand ([`Abilities`]) and answered with
//! [`Unsupported`](crate::ErrorKind::Unsupported).
//!
//! This room knows records and formats, and nothing of files, copying or measuring. Drivers do
//! not depend on one another: what they share is in `mod.rs`, `json.rs`, `pool.rs`, `limits.rs`,
//! `counts.rs`, `onward.rs`, `net/` and `sql/`.
//!
//! To add a driver: one file with a [`Driver`], a line in [`DRIVERS`], and, where its client is a
//! crate of some weight, a feature. The contract suite of `tests/it` then holds it to its word.

mod abilities;
mod blobs;
mod blocking;
mod common;
#[cfg(feature = "couchdb")]
mod couchdb;
mod counts;
mod databases;
pub(crate) mod digits;
mod dir;
mod expected;
mod explain;
mod facts;
mod fidelity;
mod hidden;
mod join;
mod json;
mod key;
mod kv;
mod layout;
mod left_out;
mod limits;
mod memcached;
mod memory;
#[cfg(feature = "mongodb")]
mod mongodb;
#[cfg(feature = "mysql")]
mod mysql;
mod names;
mod net;
#[cfg(test)]
mod nonsense;
mod objects;
mod onward;
mod password;
mod pool;
mod pools;
#[cfg(feature = "postgres")]
mod postgres;
pub mod query;
#[cfg(feature = "redis")]
mod redis;
mod rendezvous;
#[cfg(feature = "s3")]
mod s3;
#[cfg(feature = "shards")]
mod shards;
#[cfg(any(feature = "sqlite", feature = "mysql", feature = "postgres"))]
mod sql;
#[cfg(feature = "sqlite")]
mod sqlite;
mod tyrant;
mod url;
pub mod wrappers;

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use futures_util::{
    Stream, StreamExt, TryStreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};

pub use abilities::{Abilities, Client, Description, Need, Shape};
pub use blobs::{Blob, Blobs, Encoded};
pub use blocking::{Blocking, blocking, interrupt};
pub use common::Common;
#[doc(hidden)]
pub use common::POOL;
pub use databases::{Databases, Scratch};
pub use expected::Expected;
pub use explain::{Explained, Request};
pub use facts::Facts;
pub use fidelity::{difference, in_columns, same};
pub use hidden::{Secrets, hide, shown};
pub use join::{Join, Joined};
pub use key::{Key, KeyRange};
pub use layout::{Column, Index, Layout, TENANT};
pub use left_out::{OPTIONAL, Optional, left_out};
#[allow(unused_imports)]
pub(crate) use limits::within;
pub use objects::Objects;
pub use password::Login;
pub use pools::{Part, Pools};
pub use query::{Filter, Query};
pub use rendezvous::rendezvous;
#[cfg(feature = "shards")]
pub use shards::{NamedShards, ShardPlace};
pub use url::{Secret, Url, beside, is_url, misnamed};

use crate::{Error, Result, durability::Tier, format::Wrapped, record::Document};

/// A record with its key.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What it is found by.
    pub key: Key,
    /// What is kept.
    pub record: Document,
}

/// Some rows at a time, as they come from a store.
pub type Rows<'a> = BoxStream<'a, Result<Vec<Row>>>;

/// A place that finds records by key and, where it can, by query.
///
/// An operation ends within the timeouts of the store's URL. Every one can be called from several
/// tasks at once.
#[async_trait]
pub trait Store: Send + Sync {
    /// What it can do.
    fn abilities(&self) -> &Abilities;

    /// How records lie in it.
    fn shape(&self) -> Shape;

    /// The same place, but another table of it, which shares the connections.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for a name the store cannot have.
    fn table(&self, name: &str) -> Result<Arc<dyn Store>>;

    /// The same table of another part of the same server, over the same connections; none where that takes connections of
    /// its own. [`Pools`] opens either.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for a name the server cannot have.
    fn part(&self, _part: Part<'_>) -> Result<Option<Arc<dyn Store>>> {
        Ok(None)
    }

    /// The names of the tables of this place, in the order of their bytes: those that [`table`](Store::table)
    /// opens and that are there, whatever their layout, tables of other programs too. Views are not among them. What is
    /// made or dropped meanwhile may or may not be among them.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) where a table is nothing but its records, so that the
    /// store does not know of one that has none; [`NotFound`](crate::ErrorKind::NotFound) where the place is a
    /// file or a folder that is not there; of connections and of the store.
    async fn tables(&self) -> Result<Vec<String>> {
        Err(no(self.abilities(), "list its tables"))
    }

    /// The blobs behind it and their format, where its layout is that.
    fn blobs(&self) -> Option<(&dyn Blobs, &Wrapped)> {
        None
    }

    /// Whether the store can hold this row. [`put`](Store::put) and [`load`](Store::load) ask this
    /// of every row before they write any.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid), [`TooLarge`](crate::ErrorKind::TooLarge) or
    /// [`Unsupported`](crate::ErrorKind::Unsupported), naming the key, the field and what to do.
    fn check(&self, row: &Row) -> Result<()>;

    /// Makes what the layout needs: the table, its indexes; what is there already stays.
    ///
    /// # Errors
    /// [`Conflict`](crate::ErrorKind::Conflict) where what is there is of another layout.
    async fn prepare(&self, layout: &Layout) -> Result<()>;

    /// Keeps rows, in place of those with the same keys. All are acknowledged when it returns.
    ///
    /// # Errors
    /// Those of [`check`](Store::check), of connections, and of the store.
    async fn put(&self, rows: &[Row]) -> Result<()>;

    /// Keeps rows whose keys are new, by the fastest way the store has.
    ///
    /// # Errors
    /// As [`put`](Store::put); [`Conflict`](crate::ErrorKind::Conflict) where a key is taken, if the
    /// store tells.
    async fn load(&self, rows: &[Row]) -> Result<()> {
        self.put(rows).await
    }

    /// Keeps rows as [`put`](Store::put) does, each by a statement of its own, all in one transaction.
    ///
    /// # Errors
    /// As [`put`](Store::put); [`Unsupported`](crate::ErrorKind::Unsupported) where there are no
    /// transactions of several statements.
    async fn put_each(&self, _rows: &[Row]) -> Result<()> {
        Err(no(self.abilities(), "write records one by one in a transaction"))
    }

    /// Writes a row if what is under its key is as expected, and says whether it did. It is one step: of several writers
    /// that expect the same, one succeeds.
    ///
    /// # Errors
    /// Those of [`check`](Store::check), also where the row would not be written;
    /// [`Unsupported`](crate::ErrorKind::Unsupported) as [`Abilities::conditional`] tells; of connections and of the
    /// store. After an error of a connection the row may be written or not.
    async fn put_if(&self, _row: &Row, _expected: &Expected) -> Result<bool> {
        self.abilities().can_conditional()?;
        Err(no(self.abilities(), "write on a condition"))
    }

    /// Deletes the record of a key if it is as expected, and says whether it did, in one step as
    /// [`put_if`](Store::put_if). Where none is expected ([`Expected::Absent`]), none is deleted.
    ///
    /// # Errors
    /// As [`put_if`](Store::put_if).
    async fn remove_if(&self, _key: &Key, _expected: &Expected) -> Result<bool> {
        self.abilities().can_conditional()?;
        Err(no(self.abilities(), "delete on a condition"))
    }

    /// The records of these keys, in their order; none where there is none.
    ///
    /// # Errors
    /// Of connections and of the store.
    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Document>>>;

    /// The records a query asks for.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) as [`Abilities::can`] tells.
    async fn find(&self, query: &Query) -> Result<Rows<'_>>;

    /// The records that fit, each with those of another table of the same place that belong to it:
    /// one question, one answer, all at once.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) as [`Abilities::can_join`] and
    /// [`Abilities::can`] tell; [`TooLarge`](crate::ErrorKind::TooLarge) beyond 10,000 records of the
    /// other table.
    async fn join(&self, _join: &Join) -> Result<Vec<Joined>> {
        self.abilities().can_join()?;
        Err(no(self.abilities(), "join tables"))
    }

    /// Deletes the records that fit, and says how many those were. A store that has to look for them first
    /// does it in portions: an error on the way leaves those deleted that were before it.
    ///
    /// # Errors
    /// As [`find`](Store::find).
    async fn delete(&self, filter: &Filter) -> Result<u64>;

    /// Deletes the records of these keys, and says how many there were.
    ///
    /// # Errors
    /// Of connections and of the store.
    async fn remove(&self, keys: &[Key]) -> Result<u64>;

    /// The records whose keys lie in a range, in steady memory; in the order of keys where
    /// [`Abilities::ordered`]. What is written meanwhile may or may not be among them.
    ///
    /// # Errors
    /// Of connections and of the store.
    async fn scan(&self, range: &KeyRange) -> Result<Rows<'_>>;

    /// How many records there are, counted, not estimated.
    ///
    /// # Errors
    /// Of connections and of the store.
    async fn count(&self) -> Result<u64>;

    /// Cuts the keys there are into so many ranges of about as many records each, for work in parts.
    /// Calls agree as long as nothing is written.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) where the store has no order of keys.
    async fn split(&self, parts: u32) -> Result<Vec<KeyRange>>;

    /// Deletes the table and all in it.
    ///
    /// # Errors
    /// Of connections and of the store.
    async fn drop_table(&self) -> Result<()>;

    /// Lets the store do what it has put off (write its logs to their places, free what was deleted,
    /// gather statistics), so that its size and speed are those it has in the long run. Says whether
    /// there was anything of that kind to do: `false` where the store puts nothing off.
    ///
    /// # Errors
    /// Of connections and of the store.
    async fn settle(&self) -> Result<bool> {
        Ok(false)
    }

    /// Gathers the statistics from which the store plans queries, where it has such and they are not
    /// gathered as records are written.
    ///
    /// # Errors
    /// Of connections and of the store.
    async fn analyze(&self) -> Result<()> {
        Ok(())
    }

    /// What the indexes of the table take, without that of the key, as the store itself says after
    /// [`analyze`](Store::analyze); none where it does not say.
    ///
    /// # Errors
    /// Of connections and of the store.
    async fn index_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// What the tables of the database, or of the part of it that this is ([`part`](Store::part)), take on disk with their
    /// indexes, in bytes, as the store itself says; none where it does not say. What was deleted may count until the store
    /// frees it, and MySQL counts what its statistics last saw.
    ///
    /// # Errors
    /// Of connections and of the store.
    async fn database_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// The statement that the store is sent for an operation, and the database's explanation of how it
    /// will answer. Nothing is read or written by it but what the database looks up to explain.
    ///
    /// None where there is nothing to show: the store has no language, or the operation takes more
    /// than one statement to describe.
    ///
    /// # Errors
    /// As the operation itself.
    async fn explain(&self, _request: Request<'_>) -> Result<Option<Explained>> {
        Ok(None)
    }

    /// What the store says of itself.
    ///
    /// # Errors
    /// Of connections and of the store.
    async fn describe(&self) -> Result<Description>;
}

/// The error of what a store does not do.
pub(crate) fn no(abilities: &Abilities, what: &str) -> Error {
    Error::unsupported(format!("{} cannot {what}", abilities.driver))
}

/// Rows one by one instead of some at a time.
pub fn one_by_one(rows: Rows<'_>) -> BoxStream<'_, Result<Row>> {
    rows.map_ok(|rows| stream::iter(rows.into_iter().map(Ok))).try_flatten().boxed()
}

/// A store that was opened by its URL: cheap to clone, and shared.
#[derive(Clone)]
pub struct Place {
    store: Arc<dyn Store>,
    url: Url,
    warnings: Vec<String>,
    is_part: bool,
}

impl Place {
    /// The objects of type `T` that are kept here under a name, which is a table of the store.
    pub fn objects<T>(&self, name: &str) -> Objects<T> {
        Objects::new(&*self.store, name)
    }

    /// The store itself.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Its URL, without its password.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Whether it is a [`Part`] of a server over connections that it shares with the others, so that it has none of its own.
    pub fn is_part(&self) -> bool {
        self.is_part
    }

    /// What was passed over when it was opened, and why: a file with passwords that others can read.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

impl std::ops::Deref for Place {
    type Target = dyn Store;
    fn deref(&self) -> &(dyn Store + 'static) {
        &*self.store
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Place({})", self.url)
    }
}

/// A store being opened.
pub type Opening = BoxFuture<'static, Result<Arc<dyn Store>>>;

/// A kind of store.
pub struct Driver {
    /// The one word it goes by, and the first scheme of its URLs.
    pub name: &'static str,
    /// Other schemes.
    pub aliases: &'static [&'static str],
    /// A URL with its own options.
    pub example: &'static str,
    /// What it is, in a line, and what is special about it.
    pub about: &'static str,
    /// The layouts it has, the usual one first.
    pub shapes: &'static [Shape],
    /// What each layout can do, in the order of `shapes`.
    pub facts: &'static [Facts],
    /// What limits keys and records beyond that, in a phrase: a setting of the server, the length of other names.
    pub limits: &'static str,
    /// The tiers of durability that can be asked of it, given the right settings of its server.
    pub tiers: &'static [Tier],
    /// Whose code speaks to it, the usual one first.
    pub clients: &'static [Client],
    /// The private servers it can talk to ([`server`](mod@crate::server)), by name; none where it needs none.
    pub servers: &'static [&'static str],
    /// What its URLs have of a login.
    pub login: Login,
    /// How a database of its own is made and dropped; none where a place has no databases.
    pub databases: Option<Databases>,
    /// Opens one: options of its own are taken out of the URL, then [`Url::done`] is asked.
    pub open: fn(Url, Common) -> Opening,
}

impl Driver {
    /// What a layout loses, for those that lose anything; of blobs the format says it.
    pub fn loses(&self) -> impl Iterator<Item = (Shape, &'static str)> {
        let all = self.facts.iter().map(|facts| (facts.shape, facts.abilities.loses));
        all.filter(|(shape, loses)| *shape != Shape::Blob && !loses.is_empty())
    }

    /// Whether the store works in this process, on the threads of its callers, and needs no server.
    pub fn is_embedded(&self) -> bool {
        self.servers.is_empty()
    }
}

/// Every kind of store there is in this build.
pub static DRIVERS: &[Driver] = &[
    memory::DRIVER,
    dir::DRIVER,
    #[cfg(feature = "postgres")]
    postgres::DRIVER,
    #[cfg(feature = "sqlite")]
    sqlite::DRIVER,
    #[cfg(feature = "mysql")]
    mysql::DRIVER,
    #[cfg(feature = "mongodb")]
    mongodb::DRIVER,
    #[cfg(feature = "couchdb")]
    couchdb::DRIVER,
    #[cfg(feature = "redis")]
    redis::DRIVER,
    memcached::DRIVER,
    tyrant::DRIVER,
    #[cfg(feature = "s3")]
    s3::DRIVER,
];

/// The kind of store of this scheme.
#[doc(hidden)]
pub fn driver(scheme: &str) -> Option<&'static Driver> {
    DRIVERS.iter().find(|driver| driver.name == scheme || driver.aliases.contains(&scheme))
}

/// Whether URLs of stores have this scheme, in this build or another.
pub(crate) fn is_known(scheme: &str) -> bool {
    driver(scheme).is_some()
        || left_out(scheme).is_some()
        || cfg!(feature = "shards") && scheme == "shard"
}

/// Whether the store of this scheme, in this build or another, works in the process of its user.
pub(crate) fn is_embedded(scheme: &str) -> bool {
    driver(scheme).map_or(scheme == "sqlite", Driver::is_embedded)
}

/// Opens the store of this URL. Servers are asked to answer; tables are made when they are needed
/// ([`Store::prepare`]).
///
/// ```no_run
/// # async fn example() -> steelyard_store::Result<()> {
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Order { item: String, price: f64 }
///
/// let orders = steelyard_store::open("sqlite:pending.db?format=msgpack").await?.objects::<Order>("pending");
/// let id = orders.store(&Order { item: "herring".into(), price: 12.5 }).await?;
/// let order = orders.restore(&id).await?;
/// orders.delete(&id).await?;
/// # Ok(()) }
/// ```
///
/// # Errors
/// [`Invalid`](crate::ErrorKind::Invalid) for a URL that is none, naming the schemes there are, or
/// with options nobody knows; else of the connection.
pub async fn open(url: &str) -> Result<Place> {
    let text = url;
    let mut url = Url::parse(text)?;
    #[cfg(feature = "shards")]
    if url.scheme == shards::SCHEME {
        let shown = url.clone();
        let opened = shards::open_url(url, text).await;
        let (store, warnings) = opened.map_err(|e| e.in_place(shown.to_string()))?;
        return Ok(Place { store, url: shown, warnings, is_part: false });
    }
    let Some(driver) = driver(&url.scheme) else { return Err(url::unknown(&url.scheme)) };
    let (shown, mut warnings) = (url.clone(), Vec::new());
    let open = async {
        let common = Common::take(&mut url)?;
        warnings.clone_from(&common.warnings);
        common.shape(driver.name, driver.shapes)?;
        (driver.open)(url, common).await
    };
    let store = open.await.map_err(|e| passed_over(e, &warnings).in_place(shown.to_string()))?;
    Ok(Place { store, url: shown, warnings, is_part: false })
}

/// An error, with what may be its cause: passwords that were not looked at.
fn passed_over(error: Error, warnings: &[String]) -> Error {
    match warnings {
        [] => error,
        warnings => {
            let what = format!("{}; {}", error.context(), warnings.join("; "));
            Error::new(error.kind(), what).with_source(error)
        }
    }
}

/// Rows that are all there, some at a time.
pub(crate) fn in_batches<'a, T: Send + 'a>(
    mut rows: impl Iterator<Item = T> + Send + 'a,
) -> impl Stream<Item = Result<Vec<T>>> + Send + 'a {
    const BATCH: usize = 1000;
    stream::iter(std::iter::from_fn(move || {
        let batch: Vec<_> = rows.by_ref().take(BATCH).collect();
        (!batch.is_empty()).then_some(Ok(batch))
    }))
}
