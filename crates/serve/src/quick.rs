//! A gateway without a configuration: before one place, or a demonstration with two tenants.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use steelyard_base::{Error, ErrorKind, Result};
use steelyard_store::{
    record::dataset::Dataset,
    store::{self, Key, Layout, Row},
};

use crate::{
    ApiKey, Catalog, Clock, Config, Gateway, Limits, Listen, Pepper, Scope, Shard, TenantLimits,
    TenantName, Tenants,
};

/// A gateway, and the keys that were made for it.
pub struct Quick {
    /// The gateway.
    pub gateway: Gateway,
    /// A key for each of its tenants.
    pub keys: Vec<(TenantName, ApiKey)>,
}

impl Quick {
    /// Before one store, of one tenant that is made for it. The catalog is in memory: the key is good as long as the
    /// gateway runs.
    ///
    /// # Errors
    /// Of the store.
    pub async fn place(url: &str, scope: Scope) -> Result<Quick> {
        let shard = Shard::whole(url);
        // Where it cannot be opened, or is not there, that is said now.
        let place = store::open(url).await?;
        match place.tables().await {
            Err(e) if e.kind() == ErrorKind::NotFound && scope == Scope::Read => {
                return Err(
                    Error::new(ErrorKind::NotFound, e.reason()).in_place(place.url().to_string())
                );
            }
            // Nothing to list, or nothing there yet.
            _ => {}
        }
        Quick::of(shard, "memory:", &[("local", scope)], async |_, _| Ok(())).await
    }

    /// Two tenants with people in them, in SQLite databases in a folder.
    ///
    /// # Errors
    /// Of the folder.
    pub async fn demo(folder: &Path) -> Result<Quick> {
        let path = |name: &str| {
            let path = folder.join(name);
            let path = path
                .to_str()
                .ok_or_else(|| Error::invalid("the name of the folder is not UTF-8"))?;
            Ok::<_, Error>(format!("sqlite:{path}"))
        };
        let shard = Shard::own(&path("tenants.db")?);
        let tenants = [("austin", Scope::Write), ("dallas", Scope::Write)];
        Quick::of(shard, &path("catalog.db")?, &tenants, async |seed, url| {
            let people = store::open(&url).await?.table("people")?;
            people.prepare(&Layout::plain()).await?;
            let dataset = Dataset::named("people-json")?;
            let records = (0..PEOPLE).filter_map(|number| dataset.document(seed, number));
            let rows = records.map(|record| Ok(Row { key: Key::of(&record, "key")?, record }));
            people.load(&rows.collect::<Result<Vec<Row>>>()?).await
        })
        .await
    }

    async fn of(
        shard: Shard,
        catalog: &str,
        tenants: &[(&str, Scope)],
        fill: impl AsyncFn(u64, String) -> Result<()>,
    ) -> Result<Quick> {
        const NAME: &str = "local";
        let config = Config {
            listen: Listen::default(),
            catalog: catalog.to_owned(),
            secret_file: Default::default(),
            lease_seconds: 2.0,
            shards: BTreeMap::from([(NAME.to_owned(), shard.clone())]),
            // Whoever has the key is on this machine.
            limits: Limits { requests_per_second: 1e6, ..Limits::default() },
            collections: BTreeMap::new(),
        };
        let (catalog, pepper) = (Arc::new(Catalog::open(catalog).await?), Pepper::fresh()?);
        let admin = Tenants::with(config.clone(), catalog.clone(), pepper.clone());
        let mut keys = Vec::new();
        for (seed, (name, scope)) in (1..).zip(tenants) {
            let name = TenantName::new(name)?;
            let row = admin.add(&name, Some(NAME), TenantLimits::default()).await?;
            fill(seed, crate::tenants::database_url(&shard, &row.database)?).await?;
            keys.push((name.clone(), admin.add_key(&name, *scope, "quick").await?));
        }
        Ok(Quick { gateway: Gateway::with(config, catalog, pepper, Clock::system())?, keys })
    }
}

/// People of each tenant of the demonstration.
const PEOPLE: u64 = 500;
