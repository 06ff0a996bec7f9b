//! The database of the tenant that is asking.

use std::{sync::Arc, time::Duration};

use steelyard_base::{ErrorKind, Result};
use steelyard_store::{
    record::Document,
    store::{Key, Store},
};
use tokio::sync::OwnedSemaphorePermit;

use super::{
    Grant, Principal,
    gather::Gather,
    open::{OpenDb, Table},
    quota::Room,
};
use crate::{
    catalog::State, clock::Clock, config::Limits, gateway::Gateway, names::CollectionName,
    problem::Problem,
};

/// What a request is to do with a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// The database of one tenant, for one request of its principal.
#[derive(Clone)]
pub(crate) struct TenantDb {
    principal: Principal,
    db: Arc<OpenDb>,
    clock: Clock,
    collections: u64,
    bytes: u64,
}

/// A collection of it.
pub(crate) struct Collection {
    pub name: CollectionName,
    pub store: Arc<dyn Store>,
    gather: Option<Arc<Gather>>,
}

impl Collection {
    /// A document.
    pub(crate) async fn get(&self, id: &Key) -> Result<Option<Document>> {
        match &self.gather {
            Some(gather) => gather.get(id).await,
            None => Ok(self.store.get(std::slice::from_ref(id)).await?.pop().flatten()),
        }
    }
}

impl TenantDb {
    /// Whether the tenant may be read, or written.
    pub(crate) fn may(principal: &Principal, access: Access) -> Result<(), Problem> {
        if access == Access::Write && !principal.may_write() {
            return Err(Problem::forbidden("this key may only read"));
        }
        match (&principal.grant().tenant.state, access) {
            (State::Active, _) | (State::Frozen, Access::Read) => Ok(()),
            (State::Frozen, Access::Write) => {
                Err(Problem::forbidden("this tenant is frozen: it can only be read"))
            }
            (State::Moving { .. }, _) => {
                Err(Problem::unavailable("this tenant is being moved")
                    .retry(Duration::from_secs(1)))
            }
            (State::Removed, _) => Err(Problem::unauthorized("the key is not valid")),
        }
    }

    pub(crate) fn new(
        principal: Principal,
        db: Arc<OpenDb>,
        clock: Clock,
        limits: &Limits,
    ) -> TenantDb {
        let own = &principal.grant().tenant.limits;
        let (collections, bytes) = (own.collections(limits), own.bytes(limits));
        TenantDb { principal, db, clock, collections, bytes }
    }

    pub(crate) fn principal(&self) -> &Principal {
        &self.principal
    }

    pub(crate) fn open(&self) -> &OpenDb {
        &self.db
    }

    /// Waits until this tenant's work may begin, where it is done in this process; none where it is a server's.
    pub(crate) async fn turn(&self, gateway: &Gateway) -> Option<OwnedSemaphorePermit> {
        match self.db.is_local() {
            true => gateway.gate.turn(&self.principal.grant().shares).await,
            false => None,
        }
    }

    /// Whether what the store answered may be told: whether the tenant is where it was, by a lease that holds, or by
    /// another look at the catalog. A tenant is moved only after every lease on its old place has run out, so what was done
    /// by then is moved with it (docs/moving.md).
    pub(crate) async fn confirm(&self, gateway: &Gateway) -> Result<(), Problem> {
        let own = self.principal.grant();
        if own.holds(&self.clock) {
            return Ok(());
        }
        let now = gateway.grants.grant(self.principal.key(), &gateway.gate).await?;
        let is_same =
            |grant: &Grant| grant.tenant.epoch == own.tenant.epoch && grant.holds(&self.clock);
        match now.is_some_and(|grant| is_same(&grant)) {
            true => Ok(()),
            false => {
                let what = "this tenant was moved or frozen meanwhile; a write may or may not have been done";
                Err(Problem::unavailable(what).retry(Duration::from_secs(1)))
            }
        }
    }

    /// What a store answered, good or bad, if it may be told: what is not there, or not as it was, may be so because the tenant
    /// is elsewhere.
    pub(crate) async fn settled<T>(
        &self,
        gateway: &Gateway,
        done: Result<T, Problem>,
    ) -> Result<T, Problem> {
        self.confirm(gateway).await?;
        done
    }

    /// A collection to read, which may not be there. A key that may write reads what it wrote; one that may only read,
    /// from replicas.
    pub(crate) async fn existing(&self, name: CollectionName) -> Result<Collection> {
        let table = self.db.table(&name, self.clock.now())?;
        if !table.is_known(&name).await? {
            let store = self.db.database().absent()?;
            return Ok(Collection { name, store, gather: None });
        }
        let [own, other] = table.gathers.clone().map_or([None, None], |both| both.map(Some));
        let (store, gather) = match self.principal.may_write() {
            true => (table.store.clone(), own),
            false => (table.to_read.clone(), other),
        };
        Ok(Collection { name, store, gather })
    }

    /// A collection to write, which is made if it is not there, unless `refused` says why it should not be.
    pub(crate) async fn made(
        &self,
        name: CollectionName,
        refused: impl FnOnce(&dyn Store) -> Result<(), Problem> + Send,
    ) -> Result<Collection, Problem> {
        let table: Arc<Table> = self.db.table(&name, self.clock.now())?;
        let is_there = async {
            let there = self.is_there(&name).await?;
            if !there {
                refused(&*table.store)?;
            }
            Ok::<_, Problem>(there)
        };
        let table = self.db.ready(&name, self.clock.now(), is_there).await?;
        Ok(Collection { name, store: table.store.clone(), gather: None })
    }

    /// Whether a collection is there; a problem where one more may not be made.
    async fn is_there(&self, name: &CollectionName) -> Result<bool, Problem> {
        let names = match self.collections().await {
            Ok(names) => names,
            // A store that cannot list them has no limit.
            Err(e) if e.kind() == ErrorKind::Unsupported => return Ok(false),
            Err(e) => return Err(e.into()),
        };
        match (names.contains(name), names.len() as u64) {
            (true, _) => Ok(true),
            (false, count) if count < self.collections => Ok(false),
            (false, _) => Err(Problem::quota(format!(
                "this tenant may have {} collections",
                self.collections
            ))),
        }
    }

    /// Room within the tenant's quota for a write of so many bytes, which is to be held until that has ended.
    pub(crate) async fn room(&self, bytes: usize) -> Result<Room, Problem> {
        match self.bytes {
            0 => Ok(Room::default()),
            most => self.db.room(bytes as u64, most, self.clock.now()).await,
        }
    }

    /// The names of the collections there are.
    pub(crate) async fn collections(&self) -> Result<Vec<CollectionName>> {
        let tables = self.db.database().tables().await?;
        Ok(tables.iter().filter_map(|name| CollectionName::new(name).ok()).collect())
    }
}
