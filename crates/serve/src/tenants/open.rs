//! Databases of tenants that are open: so many at most, the least recently used closed, each opened once.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use moka::future::Cache;
use steelyard_base::{Error, ErrorKind, Result};
use steelyard_store::{
    record::Document,
    store::{self, Databases, Expected, Key, Layout, Place, Row, Store},
};

use crate::{
    catalog::{DatabaseId, TenantRow},
    config::{Layouts, Shard, TenantLayout},
    names::CollectionName,
};

/// The table that says whose a database is.
pub(super) const MARKER: &str = "_steelyard";

/// An open database.
pub(crate) struct OpenDb {
    place: Place,
    /// It works in this process, and not in a server.
    is_local: bool,
    layouts: Layouts,
    tables: Mutex<HashMap<CollectionName, Arc<Table>>>,
}

/// A table of it.
pub(crate) struct Table {
    pub store: Arc<dyn Store>,
    layout: Layout,
    ready: tokio::sync::OnceCell<()>,
}

/// Tables that are remembered; beyond it, those that are asked for are opened again.
const TABLES: usize = 256;

impl OpenDb {
    pub(crate) fn is_local(&self) -> bool {
        self.is_local
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        self.place.store()
    }

    /// A table, which may not be there.
    pub(crate) fn table(&self, name: &CollectionName) -> Result<Arc<Table>> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = tables.get(name) {
            return Ok(table.clone());
        }
        let store = self.place.table(name.as_str())?;
        if tables.len() >= TABLES {
            tables.clear();
        }
        let layout = self.layouts.of(name.as_str());
        let table = Arc::new(Table { store, layout, ready: tokio::sync::OnceCell::new() });
        tables.insert(name.clone(), table.clone());
        Ok(table)
    }

    /// A table of the gateway's own in it.
    pub(crate) async fn own_table(&self, name: &str) -> Result<Arc<dyn Store>> {
        let store = self.place.table(name)?;
        store.prepare(&Layout::plain()).await?;
        Ok(store)
    }
}

impl Table {
    /// Makes the table, where this was not done yet; `allowed` is asked before.
    pub(crate) async fn ready<E: From<Error>>(
        &self,
        allowed: impl Future<Output = Result<(), E>>,
    ) -> Result<(), E> {
        let made = self.ready.get_or_try_init(async || {
            allowed.await?;
            self.store.prepare(&self.layout).await.map_err(E::from)
        });
        made.await.map(drop)
    }
}

/// The open databases.
pub(crate) struct Opened {
    layouts: Layouts,
    open: Cache<DatabaseId, Arc<OpenDb>>,
}

impl Opened {
    pub(crate) fn new(most: u64, layouts: Layouts) -> Opened {
        Opened { open: Cache::new(most), layouts }
    }

    /// How many are open.
    pub(crate) fn count(&self) -> u64 {
        self.open.entry_count()
    }

    /// The database of a tenant. Its name is in the key of the cache, and in the marker that is read when it is opened.
    pub(crate) async fn get(&self, shard: &Shard, tenant: &TenantRow) -> Result<Arc<OpenDb>> {
        if let Some(open) = self.open.get(&tenant.database).await {
            return Ok(open);
        }
        // Once, however many requests wait for it.
        let opened = self
            .open
            .try_get_with(
                tenant.database.clone(),
                open(shard, &tenant.database, self.layouts.clone()),
            )
            .await;
        opened.map_err(|e| Error::new(e.kind(), e.chain()))
    }
}

/// The URL of a tenant's database.
pub(crate) fn database_url(shard: &Shard, database: &DatabaseId) -> Result<String> {
    match shard.layout {
        TenantLayout::Whole => Ok(shard.url.clone()),
        TenantLayout::Own => Databases::own_url(&shard.url, database.as_str())?.ok_or_else(|| {
            Error::unsupported("this kind of store has no databases to give each tenant one")
        }),
    }
}

async fn open(shard: &Shard, database: &DatabaseId, layouts: Layouts) -> Result<Arc<OpenDb>> {
    let place = store::open(&database_url(shard, database)?).await?;
    if shard.layout != TenantLayout::Whole {
        let marker = marker(database)?;
        let found =
            place.table(MARKER)?.get(std::slice::from_ref(&marker.key)).await?.pop().flatten();
        if found != Some(marker.record) {
            let what = "the database at this place is not that of the catalog";
            return Err(Error::new(ErrorKind::Mismatch, what).in_place(place.url().to_string()));
        }
    }
    let is_local = matches!(&*place.url().scheme, "sqlite" | "dir" | "memory");
    Ok(Arc::new(OpenDb { place, is_local, layouts, tables: Mutex::default() }))
}

fn marker(database: &DatabaseId) -> Result<Row> {
    let record = Document::from_iter([("database", database.as_str())]);
    Ok(Row { key: Key::new("database")?, record })
}

/// Makes the database of a tenant, with its marker.
pub(crate) async fn create(shard: &Shard, database: &DatabaseId) -> Result<()> {
    if shard.layout == TenantLayout::Whole {
        return Ok(());
    }
    Databases::create(&shard.url, database.as_str()).await?;
    let place = store::open(&database_url(shard, database)?).await?;
    let table = place.table(MARKER)?;
    table.prepare(&Layout::plain()).await?;
    let marker = marker(database)?;
    match place.abilities().conditional {
        true => table.put_if(&marker, &Expected::Absent).await.map(drop),
        false => table.put(&[marker]).await,
    }
}

/// Drops the database of a tenant, with all in it.
pub(crate) async fn remove(shard: &Shard, database: &DatabaseId) -> Result<()> {
    match shard.layout {
        TenantLayout::Whole => Ok(()),
        TenantLayout::Own => Databases::remove(&shard.url, database.as_str()).await,
    }
}
