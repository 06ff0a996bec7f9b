//! Databases of tenants that are open: so many at most, the least recently used closed, each opened once; those of one server
//! over one pool of connections, where that is possible.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use moka::future::Cache;
use steelyard_base::{Error, Result};
use steelyard_store::store::{Layout, Pools, Store};

use super::{database::Database, gather::Gather, quota::Size};
use crate::{
    catalog::{DatabaseId, TenantRow},
    config::{Layouts, Shard},
    names::CollectionName,
    problem::Problem,
};

/// An open database.
pub(crate) struct OpenDb {
    database: Database,
    layouts: Layouts,
    tables: Mutex<HashMap<CollectionName, Arc<Table>>>,
    size: Size,
}

/// A table of it.
pub(crate) struct Table {
    pub store: Arc<dyn Store>,
    /// The same for those who may only read: replicas, where there are any.
    pub to_read: Arc<dyn Store>,
    /// How single documents of either are read, where several are read together.
    pub gathers: Option<[Arc<Gather>; 2]>,
    database: Database,
    layout: Layout,
    ready: tokio::sync::OnceCell<()>,
}

/// Tables that are remembered; beyond it, those that are asked for are opened again.
const TABLES: usize = 256;

impl OpenDb {
    /// Whether it works in this process, and not in a server.
    pub(crate) fn is_local(&self) -> bool {
        self.database.is_local()
    }

    pub(crate) fn database(&self) -> &Database {
        &self.database
    }

    /// A table, which may not be there.
    pub(crate) fn table(&self, name: &CollectionName) -> Result<Arc<Table>> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = tables.get(name) {
            return Ok(table.clone());
        }
        let store = self.database.table(name.as_str())?;
        let to_read = self.database.table_to_read(name.as_str())?;
        if tables.len() >= TABLES {
            tables.clear();
        }
        let gathers =
            self.database.gathers().then(|| [&store, &to_read].map(|s| Gather::new(s.clone())));
        let layout = self.layouts.of(name.as_str());
        let (database, ready) = (self.database.clone(), tokio::sync::OnceCell::new());
        let table = Arc::new(Table { store, to_read, gathers, database, layout, ready });
        tables.insert(name.clone(), table.clone());
        Ok(table)
    }

    /// Whether so many bytes more are within so many; what its store cannot tell is.
    pub(super) async fn room(&self, bytes: u64, most: u64, now: Duration) -> Result<(), Problem> {
        self.size.add(bytes, most, now, self.database.bytes()).await
    }

    /// A table of the gateway's own in it.
    pub(crate) async fn own_table(&self, name: &str) -> Result<Arc<dyn Store>> {
        self.database.prepared(name, &Layout::plain()).await
    }
}

impl Table {
    /// Makes the table where it is not there, which is asked once. One that is there is left as it is: its indexes are made
    /// by `tenant apply`, and not before somebody's write. Of tables that tenants share, a tenant's is there once it is whole, with
    /// the policy that keeps tenants apart ([`Database::prepared`] lists it last).
    pub(crate) async fn ready<E: From<Error>>(
        &self,
        name: &CollectionName,
        is_there: impl Future<Output = Result<bool, E>>,
    ) -> Result<(), E> {
        let made = self.ready.get_or_try_init(async || match is_there.await? {
            true => Ok(()),
            false => {
                let made = self.database.prepared(name.as_str(), &self.layout).await;
                made.map(drop).map_err(E::from)
            }
        });
        made.await.copied()
    }
}

/// The open databases.
pub(crate) struct Opened {
    pools: Pools,
    layouts: Layouts,
    open: Cache<DatabaseId, Arc<OpenDb>>,
}

impl Opened {
    /// So many with connections or files of their own, or [`Pools::PARTS`] times as many without.
    pub(crate) fn new(most: u64, layouts: Layouts) -> Opened {
        let weight = |_: &DatabaseId, open: &Arc<OpenDb>| match open.database.is_part() {
            true => 1,
            false => Pools::PARTS,
        };
        let most = most.saturating_mul(Pools::PARTS.into());
        let open = Cache::builder().max_capacity(most).weigher(weight).build();
        Opened { open, pools: Pools::default(), layouts }
    }

    /// How many are open, as their limit counts them: those without connections of their own for a part of one.
    pub(crate) fn used(&self) -> u64 {
        self.open.weighted_size().div_ceil(Pools::PARTS.into())
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
            .try_get_with(tenant.database.clone(), async {
                let database =
                    Database::open_with_replicas(&self.pools, shard, &tenant.database).await?;
                let (layouts, tables) = (self.layouts.clone(), Mutex::default());
                Ok::<_, Error>(Arc::new(OpenDb {
                    database,
                    layouts,
                    tables,
                    size: Size::default(),
                }))
            })
            .await;
        opened.map_err(|e| Error::new(e.kind(), e.chain()))
    }
}
