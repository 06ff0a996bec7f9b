//! Databases of tenants that are open: so many at most, the least recently used closed, each opened once; those of one server
//! over one pool of connections, where that is possible.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use moka::future::Cache;
use steelyard_base::{Error, ErrorKind, Result};
use steelyard_store::store::{Layout, Pools, Store};
use tokio::sync::OnceCell;

use super::{
    database::Database,
    gather::Gather,
    quota::{Room, Size},
};
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
    tables: Mutex<HashMap<CollectionName, Remembered>>,
    /// The gateway's own table of what was done for a key of a request.
    done: OnceCell<Arc<dyn Store>>,
    /// Held while it is looked whether there may be one collection more, and that is made.
    making: Arc<tokio::sync::Mutex<()>>,
    size: Size,
}

/// A table that is remembered.
struct Remembered {
    table: Arc<Table>,
    /// When it was opened.
    at: Duration,
    /// When it was asked for last.
    used: Duration,
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
    making: Arc<tokio::sync::Mutex<()>>,
    ready: Arc<OnceCell<()>>,
}

/// Tables that are remembered; beyond it, the one that was not asked for longest is opened again when it is.
const TABLES: usize = 256;
/// How long one is: an open table knows the indexes that there were, and `tenant apply` and other gateways make more.
const KNOWN: Duration = Duration::from_secs(30);

impl OpenDb {
    /// Whether it works in this process, and not in a server.
    pub(crate) fn is_local(&self) -> bool {
        self.database.is_local()
    }

    pub(crate) fn database(&self) -> &Database {
        &self.database
    }

    /// A table, which may not be there.
    pub(crate) fn table(&self, name: &CollectionName, now: Duration) -> Result<Arc<Table>> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let known = tables.get_mut(name);
        let ready = known.as_ref().map(|known| known.table.ready.clone());
        if let Some(known) = known.filter(|known| now.saturating_sub(known.at) < KNOWN) {
            known.used = now;
            return Ok(known.table.clone());
        }
        if ready.is_none() && tables.len() >= TABLES {
            let longest = tables.iter().min_by_key(|(_, known)| known.used);
            if let Some(name) = longest.map(|(name, _)| name.clone()) {
                tables.remove(&name);
            }
        }
        self.opened(&mut tables, name, ready.unwrap_or_default(), now)
    }

    fn opened(
        &self,
        tables: &mut HashMap<CollectionName, Remembered>,
        name: &CollectionName,
        ready: Arc<OnceCell<()>>,
        now: Duration,
    ) -> Result<Arc<Table>> {
        let store = self.database.table(name.as_str())?;
        let to_read = self.database.table_to_read(name.as_str())?;
        let gathers =
            self.database.gathers().then(|| [&store, &to_read].map(|s| Gather::new(s.clone())));
        let layout = self.layouts.of(name.as_str());
        let (database, making) = (self.database.clone(), self.making.clone());
        let table = Arc::new(Table { store, to_read, gathers, database, layout, making, ready });
        tables.insert(name.clone(), Remembered { table: table.clone(), at: now, used: now });
        Ok(table)
    }

    /// A table to write, which is made where it is not there: one that was is opened again, as the open one knows of no index.
    pub(crate) async fn ready<E: From<Error>>(
        &self,
        name: &CollectionName,
        now: Duration,
        is_there: impl Future<Output = Result<bool, E>>,
    ) -> Result<Arc<Table>, E> {
        let table = self.table(name, now)?;
        if !table.ready(name, is_there).await? {
            return Ok(table);
        }
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(self.opened(&mut tables, name, table.ready.clone(), now)?)
    }

    /// Room for so many bytes more within so many; there is always where its store cannot tell.
    pub(super) async fn room(&self, bytes: u64, most: u64, now: Duration) -> Result<Room, Problem> {
        self.size.room(bytes, most, now, self.database.bytes()).await
    }

    /// The table of the gateway's own in it, which is made where it is not there.
    pub(crate) async fn own_table(&self, name: &str, layout: &Layout) -> Result<Arc<dyn Store>> {
        let made = self.done.get_or_try_init(async || {
            let made = match self.database.prepared(name, layout).await {
                // Not every store has indexes.
                Err(e) if e.kind() == ErrorKind::Unsupported => {
                    self.database.prepared(name, &Layout::plain()).await?
                }
                made => made?,
            };
            drop(made);
            // Opened again, as above.
            self.database.table(name)
        });
        made.await.cloned()
    }
}

impl Table {
    /// Whether it may be asked. Of tables that tenants share, only those that are its own: how long it takes to say that nothing
    /// is there would tell which tables others have.
    pub(crate) async fn is_known(&self, name: &CollectionName) -> Result<bool> {
        if self.ready.initialized() {
            return Ok(true);
        }
        let known = self.database.has_listed(name.as_str()).await?;
        if known == Some(true) {
            // It will not go.
            let _ = self.ready.set(());
        }
        Ok(known != Some(false))
    }

    /// Makes the table where it is not there, which is asked once, and says whether it did. One that is there is left as it is: its indexes are made
    /// by `tenant apply`, and not before somebody's write. Of tables that tenants share, a tenant's is there once it is whole, with
    /// the policy that keeps tenants apart ([`Database::prepared`] lists it last).
    async fn ready<E: From<Error>>(
        &self,
        name: &CollectionName,
        is_there: impl Future<Output = Result<bool, E>>,
    ) -> Result<bool, E> {
        let mut made = false;
        let ready = self.ready.get_or_try_init(async || {
            let _making = self.making.lock().await;
            if !is_there.await? {
                self.database.prepared(name.as_str(), &self.layout).await?;
                made = true;
            }
            Ok::<_, E>(())
        });
        ready.await?;
        Ok(made)
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
                Ok::<_, Error>(Arc::new(OpenDb {
                    size: Size::new(database.tells_size_late()),
                    database,
                    layouts: self.layouts.clone(),
                    tables: Mutex::default(),
                    done: OnceCell::new(),
                    making: Arc::default(),
                }))
            })
            .await;
        opened.map_err(|e| Error::new(e.kind(), e.chain()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    /// An open table knows the indexes that there were when it was asked first: it is opened again when they may be others.
    #[tokio::test]
    async fn tables_are_opened_again_once_they_are_made_and_after_a_while() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}/x.db", folder.path().display());
        let config =
            format!("catalog = \"{url}.c\"\nsecret_file = \"-\"\n[shard.s]\nurl = \"{url}\"");
        let layouts = Config::from_toml(&config).unwrap().layouts().unwrap();
        let shard = Shard::whole(&url);
        let pools = Pools::default();
        let id = DatabaseId::fresh().unwrap();
        let db = OpenDb {
            database: Database::open_with_replicas(&pools, &shard, &id).await.unwrap(),
            layouts,
            tables: Mutex::default(),
            done: OnceCell::new(),
            making: Arc::default(),
            size: Size::default(),
        };
        let (name, start) = (CollectionName::new("c").unwrap(), Duration::from_secs(100));
        let before = db.table(&name, start).unwrap();
        let made = db.ready(&name, start, async { Ok::<_, Error>(false) }).await.unwrap();
        assert!(!Arc::ptr_eq(&before, &made));
        let ready = db.ready(&name, start, async { panic!("it is ready") });
        assert!(Arc::ptr_eq(&made, &ready.await.map_err(|e: Error| e).unwrap()));
        let later = db.table(&name, start + KNOWN).unwrap();
        assert!(!Arc::ptr_eq(&made, &later) && later.ready.initialized());
        // Beyond so many, the one that was not asked for longest goes.
        for n in 0..TABLES {
            let name = CollectionName::new(&format!("t{n}")).unwrap();
            db.table(&name, start + KNOWN + Duration::from_millis(n as u64 + 1)).unwrap();
        }
        let known = db.tables.lock().unwrap();
        assert_eq!(known.len(), TABLES);
        assert!(!known.contains_key(&name));
    }
}
