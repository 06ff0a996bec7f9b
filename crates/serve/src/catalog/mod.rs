//! The catalog: which tenants there are, in which database each of them is, and which keys open it.
//!
//! It is two tables of any store with conditional writes, so several gateways and commands may share one: each change of a
//! row names the revision it was made from, and of two that name the same one fails.

mod key;
mod table;
mod tenant;

use std::time::SystemTime;

use steelyard_base::{Error, ErrorKind, Result};
use steelyard_store::{
    record::Time,
    store::{self, Filter, Key, Place, query::Test},
};

pub use key::{ApiKey, KeyRow, Pepper, Scope};
pub use tenant::{Abandoned, DatabaseId, State, TenantLimits, TenantRow};

use crate::{login::UserName, names::TenantName};
pub(crate) use table::Kept;
use table::Table;

/// The table of tenants.
const TENANTS: &str = "steelyard_tenants";

/// The catalog.
pub struct Catalog {
    place: Place,
    tenants: Table<TenantRow>,
    keys: Table<KeyRow>,
}

impl Catalog {
    /// Opens the catalog at the URL of a store, and makes its tables where they are not there.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) where the store has no conditional writes; of the store.
    pub async fn open(url: &str) -> Result<Catalog> {
        let place = store::open(url).await?;
        place.abilities().can_conditional()?;
        Catalog::prepared(place).await
    }

    /// Opens the catalog that is there.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) where there is none; as [`open`](Catalog::open).
    pub async fn existing(url: &str) -> Result<Catalog> {
        let place = store::open(url).await?;
        place.abilities().can_conditional()?;
        let none = |e: Error| match e.kind() {
            ErrorKind::NotFound => Error::new(ErrorKind::NotFound, "there is no catalog here yet")
                .in_place(place.url().to_string())
                .with_hint("`steelyard tenant add NAME` makes it with its first tenant"),
            _ => e,
        };
        place.table(TENANTS)?.get(&[Key::new("-")?]).await.map_err(none)?;
        Catalog::prepared(place).await
    }

    async fn prepared(place: Place) -> Result<Catalog> {
        let tenants = Table::open(&place, TENANTS).await?;
        let keys = Table::open(&place, "steelyard_keys").await?;
        Ok(Catalog { place, tenants, keys })
    }

    /// Its URL, without a password.
    pub fn url(&self) -> String {
        self.place.url().to_string()
    }

    /// The row of a tenant.
    ///
    /// # Errors
    /// Of the store.
    pub(crate) async fn tenant(&self, name: &str) -> Result<Option<Kept<TenantRow>>> {
        self.tenants.get(&Key::new(name)?).await
    }

    /// The row of a tenant that has to be there.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound); of the store.
    pub(crate) async fn known(&self, name: &TenantName) -> Result<Kept<TenantRow>> {
        let row = self.tenant(name.as_str()).await?;
        row.ok_or_else(|| {
            let what = format!("no tenant {:?} in the catalog", name.as_str());
            Error::new(ErrorKind::NotFound, what).in_place(self.url())
        })
    }

    /// All tenants, in the order of their names where the store has one.
    ///
    /// # Errors
    /// Of the store.
    pub async fn tenants(&self) -> Result<Vec<TenantRow>> {
        Ok(self.tenants.all().await?.into_iter().map(|(_, row)| row).collect())
    }

    /// Shows all tenants, one after the other: they need not be in memory at once. With `but`, those that are on none of these
    /// shards, where the store can find them.
    ///
    /// # Errors
    /// Of the store.
    pub(crate) async fn each_tenant(
        &self,
        but: Option<&[&str]>,
        mut look: impl FnMut(&TenantRow),
    ) -> Result<()> {
        let filter = match but {
            None => Filter::All,
            Some(shards) => {
                let shards = shards.iter().map(|&shard| shard.into()).collect();
                Filter::Not(Box::new(Filter::field("shard", Test::In(shards))?))
            }
        };
        let look = |_: &Key, row: &TenantRow| {
            look(row);
            false
        };
        self.tenants.any_of(filter, look).await.map(drop)
    }

    /// Whether there is no tenant, not even one that was removed.
    ///
    /// # Errors
    /// Of the store.
    pub(crate) async fn is_empty(&self) -> Result<bool> {
        Ok(!self.tenants.any(|_, _| true).await?)
    }

    /// Adds a tenant.
    ///
    /// # Errors
    /// [`Conflict`](ErrorKind::Conflict) where there is one of this name, also one that was removed.
    pub(crate) async fn add(&self, row: &TenantRow) -> Result<()> {
        match self.tenants.add(&Key::new(&*row.name)?, row).await? {
            true => Ok(()),
            false => {
                let what = format!("there is a tenant {:?} in the catalog already", row.name);
                Err(Error::new(ErrorKind::Conflict, what).in_place(self.url()))
            }
        }
    }

    /// Puts another row in the place of one that was read.
    ///
    /// # Errors
    /// [`Conflict`](ErrorKind::Conflict) where somebody else changed it meanwhile; of the store.
    pub(crate) async fn change(&self, old: &Kept<TenantRow>, new: &TenantRow) -> Result<()> {
        match self.tenants.replace(old, new).await? {
            true => Ok(()),
            false => {
                let what = format!("somebody else changed tenant {:?} meanwhile", new.name);
                Err(Error::new(ErrorKind::Conflict, what).with_hint("look at it, and try again"))
            }
        }
    }

    /// Forgets a tenant and its keys.
    pub(crate) async fn forget(&self, old: &Kept<TenantRow>) -> Result<()> {
        for (prefix, _) in self.keys_of(&old.row.name).await? {
            self.keys.remove(&Key::new(prefix)?).await?;
        }
        self.tenants.remove(&old.key).await
    }

    /// Makes a key of a tenant. Only the answer has its secret.
    ///
    /// # Errors
    /// Of the store.
    pub async fn add_key(
        &self,
        tenant: &TenantName,
        scope: Scope,
        label: &str,
        pepper: &Pepper,
    ) -> Result<ApiKey> {
        let key = ApiKey::fresh(pepper)?;
        self.keep_key(&key, tenant, scope, label, pepper).await?;
        Ok(key)
    }

    /// Keeps a key that was made elsewhere.
    pub(crate) async fn keep_key(
        &self,
        key: &ApiKey,
        tenant: &TenantName,
        scope: Scope,
        label: &str,
        pepper: &Pepper,
    ) -> Result<()> {
        let row = KeyRow {
            tenant: tenant.as_str().to_owned(),
            mac: key.mac(pepper),
            scope,
            label: label.to_owned(),
            created: now()?,
            revoked: false,
        };
        match self.keys.add(&Key::new(key.prefix())?, &row).await? {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Conflict, "a key of this prefix is there already")),
        }
    }

    /// Keeps a user, with another password where there is one of this name already.
    ///
    /// # Errors
    /// [`Conflict`](ErrorKind::Conflict) where the user is one of another tenant; of the store.
    pub(crate) async fn keep_user(
        &self,
        user: &UserName,
        tenant: &TenantName,
        scope: Scope,
        hash: String,
    ) -> Result<()> {
        let key = Key::new(user.prefix())?;
        let (tenant, label, created) = (tenant.as_str().to_owned(), "user".to_owned(), now()?);
        let row = KeyRow { tenant, mac: hash, scope, label, created, revoked: false };
        loop {
            let Some(old) = self.keys.get(&key).await? else {
                match self.keys.add(&key, &row).await? {
                    true => return Ok(()),
                    false => continue,
                }
            };
            if old.row.tenant != row.tenant {
                let what = "there is a user of this name already, of another tenant";
                return Err(Error::new(ErrorKind::Conflict, what));
            }
            if self.keys.replace(&old, &row).await? {
                return Ok(());
            }
        }
    }

    /// The row of a key, by its prefix.
    pub(crate) async fn key(&self, prefix: &str) -> Result<Option<KeyRow>> {
        Ok(self.keys.get(&Key::new(prefix)?).await?.map(|kept| kept.row))
    }

    /// The keys of a tenant, with their prefixes.
    ///
    /// # Errors
    /// Of the store.
    pub async fn keys_of(&self, tenant: &str) -> Result<Vec<(String, KeyRow)>> {
        let all = self.keys.all().await?;
        Ok(all.into_iter().filter(|(_, row)| row.tenant == tenant).collect())
    }

    /// Revokes a key. Gateways that have it stop accepting it when their lease runs out.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) where the tenant has no such key; of the store.
    pub async fn revoke_key(&self, tenant: &TenantName, prefix: &str) -> Result<()> {
        let absent = || {
            let what = format!("tenant {:?} has no key {prefix:?}", tenant.as_str());
            Error::new(ErrorKind::NotFound, what)
        };
        let key = Key::new(prefix)?;
        loop {
            let Some(kept) = self.keys.get(&key).await? else { return Err(absent()) };
            if kept.row.tenant != tenant.as_str() {
                return Err(absent());
            }
            let row = KeyRow { revoked: true, ..kept.row.clone() };
            if self.keys.replace(&kept, &row).await? {
                return Ok(());
            }
        }
    }

    /// Whether its keys were made under this secret. Where there are keys in use and none was, it is another one, under which
    /// no request would be let in.
    ///
    /// # Errors
    /// [`Mismatch`](ErrorKind::Mismatch) where it is another; of the store.
    pub(crate) async fn is_of(&self, pepper: &Pepper) -> Result<()> {
        let mut others = false;
        let own = self.keys.any(|prefix, row| {
            // What is kept of a user's password tells nothing of the secret.
            if UserName::is_of(prefix.as_str()) {
                return false;
            }
            let own = key::is_made_by(prefix.as_str(), pepper);
            others |= !own && !row.revoked;
            own && !row.revoked
        });
        match own.await? || !others {
            true => Ok(()),
            false => {
                let what = "the keys in this catalog were made under another secret than that of secret_file";
                let hint = "put the old secret back; if it is lost, no key is good any more: revoke them all \
                            (`steelyard tenant key revoke`), and make new ones";
                Err(Error::new(ErrorKind::Mismatch, what).in_place(self.url()).with_hint(hint))
            }
        }
    }

    /// Whether the catalog answers.
    pub(crate) async fn is_there(&self) -> Result<()> {
        self.tenants.get(&Key::new("-")?).await.map(drop)
    }
}

/// The time, as rows have it.
pub(crate) fn now() -> Result<String> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    Ok(Time::from_unix(seconds, 0)?.to_string())
}
