//! `redis://user:password@host:port/DATABASE?table=pets` — Redis, or Valkey, which speaks the same;
//! `rediss://` with TLS (`?ca=FILE` names a certificate authority of one's own), `?socket=PATH`
//! through a Unix socket. Everything goes over at most `?pool` connections of steelyard's own client;
//! `?client=crate` sends everything through those of the crate `redis` instead.
//!
//! A record of table `pets` under the key `1` is there under `pets:1`: in layout blob (the usual
//! one) as a string, in layout document as a hash with a field for each of the record's
//! ([`kv::Flat`](super::kv::Flat) says how, and what a colon in a table's name becomes). A hash is
//! replaced as a whole: DEL and HSET in one transaction, so nobody sees half of it.
//!
//! Commands are sent a thousand records or a mebibyte at a time. A batch is not atomic: where the
//! connection breaks, some of it may be there. `load` tells a key that is taken before it writes
//! (blob: MSETNX, within a thousand records; document: EXISTS just before).
//!
//! Conditional writes are scripts (`EVAL`, `scripts.rs`), but for a string that must be new (SETNX).
//!
//! Records are found by key; `each` goes through SCAN (`keys.rs` says what that promises), `count`
//! counts the same way, and deleting a table unlinks its keys, and no others.
//!
//! Durability is a setting of the server: t1 is `appendonly yes` with `appendfsync no`, t2
//! `everysec`, t3 `always`, anything else t0. What is asked for is compared with that, and refused
//! where the server promises less.

mod client;
mod explain;
mod hashes;
mod keys;
#[cfg(test)]
mod lies;
mod pool;
mod scripts;
mod strings;

use std::{collections::HashMap, sync::Arc};

use futures_util::{FutureExt, future::BoxFuture};
use redis::{cmd, pipe};

use self::{keys::Keys, pool::Pool};
use super::{
    Abilities, Client, Common, Description, Driver, Encoded, Facts, Key, Login, Shape, Store, Url,
    blobs::CANNOT,
    counts,
    kv::{LEVELS, Namespace, as_many, chunks},
};
use crate::{
    Error, ErrorKind, Result,
    durability::{Bound, Limit, Tier},
    record::Kind,
};

pub(super) const DRIVER: Driver = Driver {
    name: "redis",
    aliases: &["rediss"],
    example: "redis://localhost:6379/0?table=pets&layout=document",
    about: "Redis or Valkey: values in memory, logged to disk as configured; found by key only",
    shapes: &[Shape::Blob, Shape::Document],
    facts: &[
        Facts::of(Shape::Blob, ABILITIES),
        Facts { levels: Some(LEVELS), ..Facts::of(Shape::Document, ABILITIES) },
    ],
    limits: "records have no more bytes than the server's proto-max-bulk-len",
    tiers: &Tier::ALL,
    clients: &[Client::Own, Client::Crate("redis")],
    servers: &["redis"],
    login: Login::Password,
    databases: None,
    open,
};

const ABILITIES: Abilities = Abilities {
    driver: "redis",
    keeps: &Kind::ALL,
    loses: "",
    cannot: CANNOT,
    joins: false,
    atomic: false,
    conditional: true,
    ordered: false,
    // Redis itself would hold half a gigabyte.
    max_key: 1 << 20,
    max_record: MAX_RECORD as usize,
};

/// `proto-max-bulk-len`, where nobody set it otherwise.
/// The longest value that there is.
const MAX_RECORD: u64 = 512 << 20;

/// How far to look for a key of a table, to see which layout it has: a million places.
const LOOKS: u64 = 1000;

fn open(mut url: Url, common: Common) -> BoxFuture<'static, Result<Arc<dyn Store>>> {
    async move {
        let shape = common.shape("redis", DRIVER.shapes)?;
        let pool = Pool::new(&mut url, &common)?;
        let settings = Settings::read(&pool).await?;
        if let Some(tier) = common.durability {
            settings.promises(tier)?;
        }
        let max_record = settings.max_record.min(MAX_RECORD) as usize;
        let table = Table {
            space: Namespace::new(&ABILITIES, &common.table)?,
            pool: Arc::new(pool),
            abilities: Abilities { max_record, ..ABILITIES },
            asked: common.durability,
        };
        Ok(match shape {
            Shape::Blob => {
                Arc::new(Encoded::new(Arc::new(strings::Strings(table)), common.blob_format())?)
                    as Arc<dyn Store>
            }
            _ => Arc::new(hashes::Hashes(table)),
        })
    }
    .boxed()
}

/// A table's keys, whatever lies under them.
struct Table {
    pool: Arc<Pool>,
    space: Namespace,
    abilities: Abilities,
    asked: Option<Tier>,
}

impl Table {
    fn sibling(&self, name: &str) -> Result<Table> {
        Ok(Table {
            pool: self.pool.clone(),
            space: Namespace::new(&self.abilities, name)?,
            abilities: self.abilities.clone(),
            asked: self.asked,
        })
    }

    fn keys(&self) -> Keys<'_> {
        Keys::new(&self.pool, &self.space)
    }

    /// Looks whether what is there is of the type of value that this layout has.
    async fn prepare(&self, layout: Shape, kind: &str) -> Result<()> {
        let mut keys = self.keys();
        while let Some(found) = keys.next().await? {
            if let Some(key) = found.first() {
                return self.are(std::slice::from_ref(key), layout, kind).await;
            }
            if keys.rounds > LOOKS {
                break;
            }
        }
        Ok(())
    }

    /// Whether these keys, as far as they are there, hold values of this type.
    async fn are(&self, keys: &[Key], layout: Shape, kind: &str) -> Result<()> {
        let mut types = pipe();
        for key in keys {
            types.cmd("TYPE").arg(self.space.full(key));
        }
        let types: Vec<String> = self.pool.run("TYPE", &types).await?;
        let types = as_many("TYPE", keys.len(), types)?;
        match keys.iter().zip(types).find(|(_, found)| found != kind && found != "none") {
            None => Ok(()),
            Some((key, found)) => Err(Error::new(
                ErrorKind::Conflict,
                format!(
                    "{} is a {found}, but layout {layout} uses a {kind}; use the other layout or \
                     another table",
                    Key::new(self.space.full(key))?.shown()
                ),
            )),
        }
    }

    /// The first of these keys that is there.
    async fn taken(&self, keys: &[Key]) -> Result<Option<Key>> {
        let mut exist = pipe();
        for key in keys {
            exist.cmd("EXISTS").arg(self.space.full(key));
        }
        let found: Vec<i64> = self.pool.run("EXISTS", &exist).await?;
        let found = as_many("EXISTS", keys.len(), found)?;
        let found: Result<Vec<bool>> =
            found.into_iter().map(|found| counts::yes("EXISTS", found)).collect();
        let found = found.map_err(|e| self.pool.placed(e))?;
        Ok(keys.iter().zip(found).find(|(_, found)| *found).map(|(key, _)| key.clone()))
    }

    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        let portions = async {
            let mut count = 0;
            for keys in chunks(keys, |key| key.len()) {
                let mut unlink = cmd("UNLINK");
                for key in keys {
                    unlink.arg(self.space.full(key));
                }
                let unlinked: i64 = self.pool.ask("UNLINK", &unlink).await?;
                count += counts::of_keys("UNLINK", keys, unlinked)?;
            }
            counts::of_keys("UNLINK", keys, count)
        };
        self.pool.in_time("UNLINK", portions).await
    }

    async fn count(&self) -> Result<u64> {
        let (mut keys, mut count) = (self.keys(), 0);
        while let Some(found) = keys.next().await? {
            count += found.len() as u64;
        }
        Ok(count)
    }

    /// Deletes what is there, and says how many keys those were.
    async fn clear(&self) -> Result<u64> {
        let (mut keys, mut count) = (self.keys(), 0);
        while let Some(found) = keys.next().await? {
            count += self.remove(&found).await?;
        }
        Ok(count)
    }

    async fn describe(&self, shape: Shape) -> Result<Description> {
        let info: String = self.pool.ask("INFO", cmd("INFO").arg("server")).await?;
        let line = |name: &str| {
            let found = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            found.map(|value| value.trim().to_owned())
        };
        let valkey = line("valkey_version");
        let settings = Settings::read(&self.pool).await?;
        Ok(Description {
            client: self.pool.client(),
            product: if valkey.is_some() { "Valkey" } else { "Redis" }.into(),
            version: valkey.or_else(|| line("redis_version")).unwrap_or_default(),
            shape,
            format: None,
            asked: self.asked,
            set: settings.tier(),
            bound: (settings.tier() == Some(Tier::T2)).then_some(Bound::Time(EVERY)),
            limit: settings.limit(),
            settings: settings.shown,
            disk: None,
        })
    }
}

/// How often `appendfsync everysec` syncs.
const EVERY: std::time::Duration = std::time::Duration::from_secs(1);

/// The settings of the server that matter here.
struct Settings {
    shown: Vec<(String, String)>,
    max_record: u64,
}

impl Settings {
    async fn read(pool: &Pool) -> Result<Settings> {
        const NAMES: [&str; 6] = [
            "appendonly",
            "appendfsync",
            "no-appendfsync-on-rewrite",
            "save",
            "maxmemory",
            "proto-max-bulk-len",
        ];
        let mut get = pipe();
        for name in NAMES {
            get.cmd("CONFIG").arg("GET").arg(name);
        }
        let found: Vec<HashMap<String, String>> = match pool.run("CONFIG GET", &get).await {
            Ok(found) => found,
            // Many that are for hire do not let one ask.
            Err(e) if matches!(e.kind(), ErrorKind::Denied | ErrorKind::Unsupported) => {
                // A login that was refused would be so here again.
                let () = pool.ask("PING", &cmd("PING")).await?;
                Vec::new()
            }
            Err(e) => return Err(e),
        };
        let mut shown = Vec::new();
        for name in NAMES {
            if let Some(value) = found.iter().find_map(|settings| settings.get(name)) {
                shown.push((name.to_owned(), value.clone()));
            }
        }
        let mut settings = Settings { shown, max_record: MAX_RECORD };
        if let Some(limit) = settings.get("proto-max-bulk-len").and_then(|v| v.parse().ok()) {
            settings.max_record = limit;
        }
        Ok(settings)
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.shown.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The durability they give.
    fn tier(&self) -> Option<Tier> {
        let tier = match (self.get("appendonly")?, self.get("appendfsync")?) {
            ("yes", "always") => Tier::T3,
            ("yes", "everysec") => Tier::T2,
            ("yes", _) => Tier::T1,
            // Snapshots (`save`) are minutes apart: what was acknowledged since is lost with the process.
            _ => Tier::T0,
        };
        Some(self.limit().map_or(tier, |limit| tier.min(limit.most)))
    }

    /// What its syncs do not make up for.
    fn limit(&self) -> Option<Limit> {
        let why = "no-appendfsync-on-rewrite=yes, so nothing is synced while the log is rewritten";
        let skips = self.get("no-appendfsync-on-rewrite") == Some("yes");
        let logs = self.get("appendonly") == Some("yes");
        (skips && logs).then(|| Limit { most: Tier::T1, why: why.into() })
    }

    /// Whether the server promises this, or more.
    fn promises(&self, tier: Tier) -> Result<()> {
        match self.tier() {
            _ if tier == Tier::T0 => Ok(()),
            Some(set) if set >= tier => Ok(()),
            Some(set) => {
                let (log, sync) = (self.get("appendonly"), self.get("appendfsync"));
                let limit = self.limit().map(|limit| format!(" and {}", limit.why));
                let store = format!(
                    "Redis with appendonly {} and appendfsync {}{},",
                    log.unwrap_or_default(),
                    sync.unwrap_or_default(),
                    limit.unwrap_or_default()
                );
                let can: Vec<_> = Tier::ALL.into_iter().filter(|tier| *tier <= set).collect();
                Err(tier.refused(&store, &can))
            }
            None => Err(tier.refused("the server does not report its settings", &[Tier::T0])),
        }
    }
}
