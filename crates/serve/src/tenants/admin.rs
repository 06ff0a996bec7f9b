//! What operators do with tenants.

use std::{collections::BTreeMap, sync::Arc};

use steelyard_base::{Error, ErrorKind, Result};
use steelyard_store::store::{Pools, rendezvous};

use super::database::Database;
use crate::{
    catalog::{
        ApiKey, Catalog, DatabaseId, Kept, KeyRow, Pepper, Scope, State, TenantLimits, TenantRow,
        now,
    },
    config::{Config, TenantLayout},
    gateway::shard,
    login::{UserName, password_hash},
    names::TenantName,
};

/// The tenants of a configuration, for their operators.
pub struct Tenants {
    pub(super) config: Config,
    pub(super) catalog: Arc<Catalog>,
    pub(super) pools: Pools,
    pepper: Pepper,
}

impl Tenants {
    /// Those of this configuration.
    ///
    /// # Errors
    /// Of the secret's file and of the catalog.
    pub async fn open(config: Config) -> Result<Tenants> {
        let pepper = Pepper::from_file(&config.secret_file)?;
        let catalog = Arc::new(Catalog::existing(&config.catalog).await?);
        Ok(Tenants::with(config, catalog, pepper))
    }

    /// The same, and a new catalog where there is none.
    ///
    /// # Errors
    /// As [`open`](Tenants::open).
    pub async fn open_or_create(config: Config) -> Result<Tenants> {
        let pepper = Pepper::from_file(&config.secret_file)?;
        let catalog = Arc::new(Catalog::open(&config.catalog).await?);
        let tenants = Tenants::with(config, catalog, pepper);
        tenants.check_secret().await?;
        Ok(tenants)
    }

    /// Whether the secret is the one that the keys were made under: a key that is made under another is of no use.
    ///
    /// # Errors
    /// [`Mismatch`](ErrorKind::Mismatch) where there are keys and all were made under another one; of the catalog.
    pub async fn check_secret(&self) -> Result<()> {
        self.catalog.is_of(&self.pepper).await
    }

    /// Those of these parts.
    pub fn with(config: Config, catalog: Arc<Catalog>, pepper: Pepper) -> Tenants {
        Tenants { config, catalog, pools: Pools::default(), pepper }
    }

    /// Adds a tenant: makes its database on the shard named, or on the one that placement gives.
    ///
    /// # Errors
    /// [`Conflict`](ErrorKind::Conflict) where the name is taken; of the shard and the catalog.
    pub async fn add(
        &self,
        name: &TenantName,
        on: Option<&str>,
        limits: TenantLimits,
    ) -> Result<TenantRow> {
        let row = self.placed(name, on, limits).await?;
        self.enter(row).await
    }

    /// The row of a tenant that is to be added, and its database. Nobody knows of either yet.
    pub(super) async fn placed(
        &self,
        name: &TenantName,
        on: Option<&str>,
        limits: TenantLimits,
    ) -> Result<TenantRow> {
        limits.check()?;
        if self.catalog.tenant(name.as_str()).await?.is_some() {
            return Err(taken(name));
        }
        let on = match on {
            Some(on) => on.to_owned(),
            None => {
                let seats = self.config.shards().map(|(name, shard)| (name, shard.weight));
                let on = rendezvous(seats, name.as_str());
                on.ok_or_else(|| Error::invalid("every shard has weight 0; name one"))?.to_owned()
            }
        };
        let shard = shard(&self.config, &on)?;
        if shard.layout == TenantLayout::Whole {
            let others = self.catalog.tenants().await?;
            if let Some(other) =
                others.iter().find(|row| row.shard == on && row.state != State::Removed)
            {
                let what =
                    format!("shard {on:?} is one place for one tenant, and has {:?}", other.name);
                return Err(Error::new(ErrorKind::Conflict, what));
            }
        }
        let database = DatabaseId::fresh()?;
        Database::create(&self.pools, shard, &database).await?;
        Ok(TenantRow {
            name: name.as_str().to_owned(),
            shard: on,
            database,
            epoch: 1,
            state: State::Active,
            limits,
            created: now()?,
            abandoned: Vec::new(),
        })
    }

    /// Enters it into the catalog; where that fails, its database is dropped.
    pub(super) async fn enter(&self, row: TenantRow) -> Result<TenantRow> {
        let entered = async {
            self.can_limit_bytes(&row).await?;
            self.catalog.add(&row).await
        };
        match entered.await {
            Ok(()) => Ok(row),
            Err(e) => {
                self.drop_placed(&row).await?;
                Err(e)
            }
        }
    }

    /// Drops the database of a row that is not in the catalog. Nobody has its name but who made it.
    pub(super) async fn drop_placed(&self, row: &TenantRow) -> Result<()> {
        Database::remove(&self.pools, shard(&self.config, &row.shard)?, &row.database).await
    }

    /// What the configuration does not fit of what the catalog has, a sentence each: tenants on shards that are not there, and
    /// if `open`, shards of which a tenant's database cannot be opened.
    ///
    /// # Errors
    /// Of the catalog.
    pub async fn misplaced(&self, open: bool) -> Result<Vec<String>> {
        // Of each shard how many there are, and one of them.
        let mut of_shard: BTreeMap<String, (u64, TenantRow)> = BTreeMap::new();
        let look = |row: &TenantRow| {
            if !matches!(row.state, State::Active | State::Frozen) {
                return;
            }
            match of_shard.get_mut(&row.shard) {
                Some((count, _)) => *count += 1,
                None => drop(of_shard.insert(row.shard.clone(), (1, row.clone()))),
            }
        };
        let known: Vec<&str> = self.config.shards().map(|(name, _)| name).collect();
        self.catalog.each_tenant((!open).then_some(&*known), look).await?;
        let mut said = Vec::new();
        for (name, (count, row)) in of_shard {
            if shard(&self.config, &name).is_err() {
                let count = match count {
                    1 => "1 tenant is".to_owned(),
                    n => format!("{n} tenants are"),
                };
                said.push(format!("{count} on shard {name:?}, which is not in the configuration"));
            } else if open && let Err(e) = self.database(&row).await {
                said.push(format!("shard {name:?}, tenant {:?}: {}", row.name, e.chain()));
            }
        }
        Ok(said)
    }

    /// The database of a tenant.
    pub(super) async fn database(&self, row: &TenantRow) -> Result<Database> {
        Database::open(&self.pools, shard(&self.config, &row.shard)?, &row.database).await
    }

    /// All tenants.
    ///
    /// # Errors
    /// Of the catalog.
    pub async fn list(&self) -> Result<Vec<TenantRow>> {
        self.catalog.tenants().await
    }

    /// A tenant.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound); of the catalog.
    pub async fn show(&self, name: &TenantName) -> Result<TenantRow> {
        Ok(self.catalog.known(name).await?.row)
    }

    /// Whether there is no tenant.
    ///
    /// # Errors
    /// Of the catalog.
    pub async fn is_empty(&self) -> Result<bool> {
        self.catalog.is_empty().await
    }

    /// What a tenant's database takes, as its store says; none where that does not.
    ///
    /// # Errors
    /// As [`show`](Tenants::show); of the shard.
    pub async fn bytes(&self, name: &TenantName) -> Result<Option<u64>> {
        self.database(&self.catalog.known(name).await?.row).await?.bytes().await
    }

    /// Changes the limits of a tenant: `change` is given those it has, once more where somebody else changed them meanwhile.
    /// Gateways keep to them within a lease.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) for a rate that is none; [`Unsupported`](ErrorKind::Unsupported) for bytes where the store
    /// does not tell them; as [`freeze`](Tenants::freeze).
    pub async fn limit(
        &self,
        name: &TenantName,
        change: impl Fn(&mut TenantLimits),
    ) -> Result<TenantRow> {
        loop {
            let old = self.catalog.known(name).await?;
            if let State::Moving { .. } = old.row.state {
                return Err(moving(name));
            }
            // Not another epoch: what is in flight is where it was.
            let mut new = old.row.clone();
            change(&mut new.limits);
            new.limits.check()?;
            if new.limits.bytes != old.row.limits.bytes {
                self.can_limit_bytes(&new).await?;
            }
            match self.catalog.change(&old, &new).await {
                Ok(()) => return Ok(new),
                Err(e) if e.kind() == ErrorKind::Conflict => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Whether a tenant's limit of bytes, where it has one, can be kept to.
    async fn can_limit_bytes(&self, row: &TenantRow) -> Result<()> {
        match row.limits.bytes.is_some_and(|most| most > 0)
            && self.database(row).await?.bytes().await?.is_none()
        {
            true => Err(Error::unsupported("this store does not tell how many bytes a tenant has")),
            false => Ok(()),
        }
    }

    /// Makes a tenant one that can only be read. Gateways keep to it within a lease.
    ///
    /// # Errors
    /// As [`show`](Tenants::show); [`Conflict`](ErrorKind::Conflict) where it is being moved.
    pub async fn freeze(&self, name: &TenantName) -> Result<()> {
        self.turn(name, State::Active, State::Frozen).await
    }

    /// Makes a frozen tenant one that can be written again.
    ///
    /// # Errors
    /// As [`freeze`](Tenants::freeze).
    pub async fn thaw(&self, name: &TenantName) -> Result<()> {
        self.turn(name, State::Frozen, State::Active).await
    }

    async fn turn(&self, name: &TenantName, from: State, to: State) -> Result<()> {
        let old = self.catalog.known(name).await?;
        match &old.row.state {
            state if *state == to => Ok(()),
            state if *state == from => self.change(&old, to).await.map(drop),
            State::Moving { .. } => Err(moving(name)),
            _ => Err(Error::new(
                ErrorKind::NotFound,
                format!("tenant {:?} was removed", name.as_str()),
            )),
        }
    }

    async fn change(&self, old: &Kept<TenantRow>, state: State) -> Result<TenantRow> {
        let new = TenantRow { state, epoch: old.row.epoch + 1, ..old.row.clone() };
        self.catalog.change(old, &new).await?;
        Ok(new)
    }

    /// Removes a tenant: no key opens it any more within a lease, and then its database is dropped with all in it. `wait`
    /// is called for that lease.
    ///
    /// # Errors
    /// As [`show`](Tenants::show); [`Conflict`](ErrorKind::Conflict) where it is being moved.
    pub async fn remove(&self, name: &TenantName, wait: impl Future<Output = ()>) -> Result<()> {
        let old = self.catalog.known(name).await?;
        if let State::Moving { .. } = old.row.state {
            return Err(moving(name));
        }
        // Before anything is changed: where its shard is not known, nothing could be dropped.
        let shard = shard(&self.config, &old.row.shard)?;
        if old.row.state != State::Removed {
            self.change(&old, State::Removed).await?;
        }
        wait.await;
        match Database::remove(&self.pools, shard, &old.row.database).await {
            // A run before this one was ended here.
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            done => done?,
        }
        let old = self.catalog.known(name).await?;
        self.catalog.forget(&old).await
    }

    /// How long [`remove`](Tenants::remove) has to wait.
    pub fn lease(&self) -> std::time::Duration {
        self.config.lease()
    }

    /// Makes a key. Only the answer has its secret.
    ///
    /// # Errors
    /// As [`show`](Tenants::show).
    pub async fn add_key(&self, name: &TenantName, scope: Scope, label: &str) -> Result<ApiKey> {
        if label.len() > 256 || label.chars().any(char::is_control) {
            return Err(Error::invalid("a label has at most 256 bytes, and no control characters"));
        }
        self.catalog.known(name).await?;
        self.catalog.add_key(name, scope, label, &self.pepper).await
    }

    /// Adds somebody who signs in with a name and a password, or gives them another password and scope. The name is one of
    /// all tenants; [`revoke_key`](Tenants::revoke_key) of `user:NAME` takes it away.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) for a password that is too short; [`Conflict`](ErrorKind::Conflict) where another
    /// tenant has a user of this name; as [`show`](Tenants::show).
    pub async fn set_user(
        &self,
        name: &TenantName,
        user: &UserName,
        password: &str,
        scope: Scope,
    ) -> Result<()> {
        self.catalog.known(name).await?;
        let hash = password_hash(&self.pepper, password)?;
        self.catalog.keep_user(user, name, scope, hash).await
    }

    /// The keys of a tenant, by their prefixes.
    ///
    /// # Errors
    /// As [`show`](Tenants::show).
    pub async fn keys(&self, name: &TenantName) -> Result<Vec<(String, KeyRow)>> {
        self.catalog.known(name).await?;
        self.catalog.keys_of(name.as_str()).await
    }

    /// Revokes a key. Gateways keep to it within a lease.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) where the tenant has no such key; of the catalog.
    pub async fn revoke_key(&self, name: &TenantName, prefix: &str) -> Result<()> {
        self.catalog.revoke_key(name, prefix).await
    }
}

fn moving(name: &TenantName) -> Error {
    Error::new(ErrorKind::Conflict, format!("tenant {:?} is being moved", name.as_str()))
}

fn taken(name: &TenantName) -> Error {
    Error::new(ErrorKind::Conflict, format!("there is a tenant {:?} already", name.as_str()))
}
