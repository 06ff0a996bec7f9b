//! The database of one tenant, as everything here sees it: one of its own, or its part of one that tenants share.
//!
//! A database of its own has a marker with its name; one without it, or with another, is not opened. In a shared one the
//! name is the tenant's prefix ([`Prefix::tenant`]), and its part of the marker's table has the marker and the names of its
//! collections, which are tables of all tenants.

use std::{borrow::Cow, sync::Arc, time::Duration};

use futures_util::TryStreamExt;
use steelyard_base::{Error, ErrorKind, Result};
use steelyard_store::{
    record::Document,
    store::{
        self, Databases, Driver, Expected, Filter, Key, KeyRange, Layout, Part, Place, Pools, Row,
        Store,
        wrappers::{Prefix, Replicas},
    },
};

use crate::{
    catalog::DatabaseId,
    config::{Shard, TenantLayout},
};

/// The table that says whose a database is.
const MARKER: &str = "_steelyard";

/// The database of one tenant.
#[derive(Clone)]
pub(crate) struct Database {
    place: Place,
    /// Its replicas, as far as they could be opened.
    replicas: Vec<Place>,
    /// The name of its part, where tenants share the place.
    part: Option<DatabaseId>,
    /// Whether it is the whole place, which need not be there before the first write.
    is_whole: bool,
}

impl Database {
    /// Opens the database of this name, and looks that it is the one.
    ///
    /// # Errors
    /// [`Mismatch`](ErrorKind::Mismatch) where it is not; of the store.
    pub(super) async fn open(pools: &Pools, shard: &Shard, id: &DatabaseId) -> Result<Database> {
        let database = Database::at(pools, shard, id).await?;
        database.look(shard, id).await?;
        Ok(database)
    }

    /// Looks whether it has the marker of this name.
    async fn look(&self, shard: &Shard, id: &DatabaseId) -> Result<()> {
        if shard.layout == TenantLayout::Whole {
            return Ok(());
        }
        let marker = marker(id)?;
        let table = self.table(MARKER)?;
        let found = match table.get(std::slice::from_ref(&marker.key)).await {
            Ok(mut found) => found.pop().flatten(),
            Err(e) if e.kind() == ErrorKind::NotFound && self.part.is_some() => None,
            Err(e) => return Err(e),
        };
        match found {
            Some(found) if found == marker.record => Ok(()),
            _ => {
                let what = "the database at this place is not that of the catalog";
                Err(Error::new(ErrorKind::Mismatch, what).in_place(self.place.url().to_string()))
            }
        }
    }

    /// The same with its replicas. One that cannot be opened now is not asked until the database is opened again.
    pub(super) async fn open_with_replicas(
        pools: &Pools,
        shard: &Shard,
        id: &DatabaseId,
    ) -> Result<Database> {
        let mut database = Database::open(pools, shard, id).await?;
        for replica in &shard.replicas {
            match place(pools, shard.layout, replica, id).await {
                Ok(replica) => database.replicas.push(replica),
                Err(e) => tracing::warn!(error = e.chain(), "a replica cannot be opened"),
            }
        }
        Ok(database)
    }

    async fn at(pools: &Pools, shard: &Shard, id: &DatabaseId) -> Result<Database> {
        let place = place(pools, shard.layout, &shard.url, id).await?;
        let part = (shard.layout == TenantLayout::Shared).then(|| id.clone());
        let is_whole = shard.layout == TenantLayout::Whole;
        Ok(Database { place, replicas: Vec::new(), part, is_whole })
    }

    /// Makes the database of this name, with its marker.
    pub(super) async fn create(pools: &Pools, shard: &Shard, id: &DatabaseId) -> Result<()> {
        let made = Database::make(pools, shard, id).await;
        if made.is_err() {
            // Half of it, if anything. Its own error says more than one of this.
            let _ = Database::remove(pools, shard, id).await;
        }
        made
    }

    async fn make(pools: &Pools, shard: &Shard, id: &DatabaseId) -> Result<()> {
        match shard.layout {
            TenantLayout::Whole => return Ok(()),
            TenantLayout::Own => Databases::create(&shard.url, id.as_str()).await?,
            // Made with the first of its tables.
            TenantLayout::Schema | TenantLayout::Shared => {}
        }
        let database = Database::at(pools, shard, id).await?;
        let (table, marker) = (database.table(MARKER)?, marker(id)?);
        table.prepare(&Layout::plain()).await?;
        match table.abilities().conditional {
            true => table.put_if(&marker, &Expected::Absent).await.map(drop),
            false => table.put(&[marker]).await,
        }
    }

    /// Drops the database of this name, with all in it.
    pub(super) async fn remove(pools: &Pools, shard: &Shard, id: &DatabaseId) -> Result<()> {
        match shard.layout {
            TenantLayout::Whole => Ok(()),
            TenantLayout::Own => Databases::remove(&shard.url, id.as_str()).await,
            TenantLayout::Schema => Databases::remove_schema(&shard.url, id.as_str()).await,
            TenantLayout::Shared => {
                let database = Database::at(pools, shard, id).await?;
                for name in database.tables().await? {
                    database.table(&name)?.delete(&Filter::All).await?;
                }
                // Last, as it says what there is to remove.
                database.table(MARKER)?.delete(&Filter::All).await.map(drop)
            }
        }
    }

    /// Whether it has no connections of its own.
    pub(super) fn is_part(&self) -> bool {
        self.place.is_part() && self.replicas.iter().all(Place::is_part)
    }

    /// Whether it works in this process, and not in a server.
    pub(crate) fn is_local(&self) -> bool {
        store::driver(&self.place.url().scheme).is_some_and(Driver::is_embedded)
    }

    /// Whether it says what it takes some time after it does: MySQL by its statistics, which are gathered every ten seconds at most.
    pub(super) fn tells_size_late(&self) -> bool {
        matches!(&*self.place.url().scheme, "mysql" | "mariadb")
    }

    /// Whether single documents that are wanted at the same time are read together.
    pub(super) fn gathers(&self) -> bool {
        self.place.url().scheme == "mongodb"
    }

    /// A table, which may not be there.
    pub(crate) fn table(&self, name: &str) -> Result<Arc<dyn Store>> {
        self.tenants(self.place.table(&self.stored(name))?)
    }

    /// What a table is called in the store. Where tenants share a store that takes two names for the same, whatever their
    /// case, each spelling has a table of its own: else a tenant would find out what another has.
    fn stored<'a>(&self, name: &'a str) -> Cow<'a, str> {
        let folds = || matches!(&*self.place.url().scheme, "sqlite" | "mysql" | "mariadb");
        match self.part.is_some() && name.bytes().any(|b| b.is_ascii_uppercase()) && folds() {
            true => folded(name).into(),
            false => name.into(),
        }
    }

    /// The table for those who may only read, and may be told what was there a moment ago.
    pub(crate) fn table_to_read(&self, name: &str) -> Result<Arc<dyn Store>> {
        if self.replicas.is_empty() {
            return self.table(name);
        }
        let name = self.stored(name);
        let replicas = self.replicas.iter().map(|replica| replica.table(&name));
        let replicas = replicas.collect::<Result<_>>()?;
        self.tenants(Arc::new(Replicas::new(self.place.table(&name)?, replicas, Duration::ZERO)?))
    }

    /// What of a table is the tenant's.
    fn tenants(&self, table: Arc<dyn Store>) -> Result<Arc<dyn Store>> {
        Ok(match &self.part {
            Some(part) => Arc::new(Prefix::tenant(table, part.as_str())?),
            None => table,
        })
    }

    /// A table with what this layout says, which is made where it is not there.
    pub(crate) async fn prepared(&self, name: &str, layout: &Layout) -> Result<Arc<dyn Store>> {
        let table = self.table(name)?;
        table.prepare(layout).await?;
        if self.part.is_some() && name != MARKER {
            let row = Row { key: listed(name)?, record: Document::new() };
            self.table(MARKER)?.put(&[row]).await?;
        }
        Ok(table)
    }

    /// Its tables, without the marker.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) where the store cannot list them.
    pub(crate) async fn tables(&self) -> Result<Vec<String>> {
        if self.part.is_none() {
            let mut names = match self.place.tables().await {
                Err(e) if e.kind() == ErrorKind::NotFound && self.is_whole => Vec::new(),
                names => names?,
            };
            names.retain(|name| name != MARKER);
            return Ok(names);
        }
        let table = self.table(MARKER)?;
        let mut rows = table.scan(&KeyRange::all()).await?;
        let mut names = Vec::new();
        while let Some(batch) = rows.try_next().await? {
            names.extend(
                batch.iter().filter_map(|row| row.key.strip_prefix(LISTED)).map(str::to_owned),
            );
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Whether a table is one of the tenant's, where tenants share tables.
    pub(super) async fn has_listed(&self, name: &str) -> Result<Option<bool>> {
        if self.part.is_none() {
            return Ok(None);
        }
        let found = self.table(MARKER)?.get(&[listed(name)?]).await?;
        Ok(Some(found.into_iter().next().flatten().is_some()))
    }

    /// A table that is not there.
    pub(super) fn absent(&self) -> Result<Arc<dyn Store>> {
        self.table("_absent")
    }

    /// What it takes on disk, as its store says; none where that does not, or where tenants share the tables.
    pub(super) async fn bytes(&self) -> Result<Option<u64>> {
        match self.part.is_some() {
            true => Ok(None),
            false => match self.place.database_bytes().await {
                Err(e) if e.kind() == ErrorKind::NotFound && self.is_whole => Ok(Some(0)),
                bytes => bytes,
            },
        }
    }

    /// Drops a table, or the tenant's records of it.
    pub(super) async fn drop_table(&self, name: &str) -> Result<()> {
        self.table(name)?.drop_table().await?;
        if self.part.is_some() {
            self.table(MARKER)?.remove(&[listed(name)?]).await?;
        }
        Ok(())
    }
}

/// What keys of names of tables begin with, in the table of the marker.
const LISTED: &str = "table ";

/// A name in lower case, and behind a sign that no collection has in its name, which of its letters were not: as bits, the
/// first letter the lowest.
fn folded(name: &str) -> String {
    let upper = |(n, b): (usize, u8)| u128::from(b.is_ascii_uppercase()) << n.min(127);
    let bits = name.bytes().enumerate().map(upper).fold(0, |all, one| all | one);
    format!("{}${bits:x}", name.to_ascii_lowercase())
}

fn listed(name: &str) -> Result<Key> {
    Key::new(format!("{LISTED}{name}"))
}

fn marker(id: &DatabaseId) -> Result<Row> {
    let record = Document::from_iter([("database", id.as_str())]);
    Ok(Row { key: Key::new("database")?, record })
}

/// What of a shard is a tenant's; none where all of it is.
fn part(layout: TenantLayout, id: &DatabaseId) -> Option<Part<'_>> {
    match layout {
        TenantLayout::Whole => None,
        TenantLayout::Own => Some(Part::Database(id.as_str())),
        TenantLayout::Schema => Some(Part::Schema(id.as_str())),
        TenantLayout::Shared => Some(Part::Tenant(id.as_str())),
    }
}

/// Opens it there.
async fn place(pools: &Pools, layout: TenantLayout, shard: &str, id: &DatabaseId) -> Result<Place> {
    match part(layout, id) {
        Some(part) => pools.open(shard, part).await,
        None => store::open(shard).await,
    }
}

/// The URL of a tenant's database, or of the one that it shares.
pub(crate) fn url(shard: &Shard, id: &DatabaseId) -> Result<String> {
    match part(shard.layout, id) {
        Some(part) => part.url(&shard.url),
        None => Ok(shard.url.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_spelling_of_a_name_is_one_of_its_own_whatever_the_case() {
        let names = ["payroll", "Payroll", "PAYROLL", "payrolL", "pAYROLL", "a-B_c", "A-b_c"];
        let mut stored: Vec<String> = names.map(folded).into();
        assert_eq!(stored[1], "payroll$1");
        stored.extend(["payroll".into(), "a-b_c".into()]);
        let count = stored.len();
        stored.iter_mut().for_each(|name| name.make_ascii_lowercase());
        stored.sort();
        stored.dedup();
        assert_eq!(stored.len(), count);
    }
}
