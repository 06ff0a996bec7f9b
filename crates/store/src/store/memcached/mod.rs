//! `memcached://a,b:11212,c?table=sessions` — memcached, one server or several; `?socket=PATH`
//! through a Unix socket. `memcacheds://` with TLS, which trusts the authorities of the web or, with
//! `?ca=file.pem`, those in that file and no others.
//!
//! A record of table `pets` under the key `1` is there under `pets:1` (`names.rs` says what becomes
//! of keys that memcached does not take; what is too long then is refused). Each key has one of the
//! servers, by rendezvous hashing: when a server is added or taken away, only its own keys move.
//! There is no failing over: what a server keeps cannot be reached while it is away.
//!
//! memcached throws out what is least used when it is full, so a record that was put may be gone.
//! Values have 1 MB at most, or what the servers are set to, less half a kilobyte for its own.
//! `each` and `count` list keys through the LRU crawler, which a server does for one at a time.
//! Deleting a table deletes its keys, one by one, and no others.
//!
//! Conditional writes compare the number that a server gives each value (`cas`); such a delete needs memcached 1.6.10.
//!
//! Durability is t0, always. A batch is not atomic: where a connection breaks, some of it may be
//! there; `load` adds, tells a key that is taken, and keeps the others.
//!
//! Through the client of [`crate::memcache`], with no login. No server is ever taken for
//! dead: a store waits for its own records.

mod listing;
mod names;

use std::{collections::HashSet, sync::Arc};

use async_trait::async_trait;
use futures_util::{
    FutureExt, StreamExt,
    future::{BoxFuture, try_join_all},
    stream::BoxStream,
};

use self::{listing::keys, names::Names};
#[cfg(feature = "memcache-tls")]
use super::net::tls;
use super::{
    Abilities, Blob, Blobs, Client, Common, Description, Driver, Encoded, Facts, Key, KeyRange,
    Login, Shape, Store, Url,
    blobs::{CANNOT, fits},
    counts,
    kv::{Portion, Spool},
    within,
};
use crate::{
    Error, ErrorKind, Result,
    durability::Tier,
    memcache::{
        Address, AsyncClient, Expiry, Failed, Options, PORT, Patience, Ring, Server, Spread, Stats,
        Swap,
    },
    record::Kind,
};

pub(super) const DRIVER: Driver = Driver {
    name: "memcached",
    aliases: &["memcacheds"],
    example: "memcached://one,two:11212?table=sessions",
    about: "memcached, one or several servers: values in memory, the least recently used evicted; \
            found by key only; memcacheds:// for TLS",
    shapes: &[Shape::Blob],
    facts: &[Facts::of(Shape::Blob, ABILITIES)],
    limits: "keys are shorter by the name of the table; records fit into the server's item size (-I)",
    tiers: &[Tier::T0],
    clients: &[Client::Own],
    servers: &["memcached"],
    login: Login::None,
    databases: None,
    open,
};

const ABILITIES: Abilities = Abilities {
    driver: "memcached",
    keeps: &Kind::ALL,
    loses: "",
    cannot: CANNOT,
    joins: false,
    atomic: false,
    conditional: true,
    ordered: false,
    max_key: names::LONGEST,
    max_record: (1 << 20) - OVERHEAD,
};

/// What an item takes beside its value, at most: its header, its key, its length in digits.
const OVERHEAD: usize = 512;

fn open(mut url: Url, common: Common) -> BoxFuture<'static, Result<Arc<dyn Store>>> {
    async move {
        let (socket, ca) = (url.take("socket"), url.take("ca"));
        url.done()?;
        let secure = url.scheme == "memcacheds";
        if secure && socket.is_some() {
            return Err(Error::invalid("?socket= and TLS exclude each other"));
        }
        if ca.is_some() && !secure {
            return Err(Error::invalid("?ca= needs TLS; write memcacheds://"));
        }
        let address: fn(String, u16) -> Address = if secure { Address::Tls } else { Address::Tcp };
        if !url.path.is_empty() {
            return Err(Error::invalid(format!("memcached has no {:?} inside it", url.path)));
        }
        if let Some(tier @ (Tier::T1 | Tier::T2 | Tier::T3)) = common.durability {
            return Err(tier.refused("memcached", &[Tier::T0]));
        }
        common.shape("memcached", DRIVER.shapes)?;
        let mut addresses: Vec<_> = match socket {
            Some(path) => vec![Address::Unix(path.into())],
            None if url.hosts.is_empty() => vec![address("127.0.0.1".into(), PORT)],
            None => Vec::new(),
        };
        for (host, port) in &url.hosts {
            addresses.push(address(host.clone(), port.unwrap_or(PORT)));
        }
        let options = Options {
            #[cfg(feature = "memcache-tls")]
            tls: match secure {
                true => {
                    let roots = ca.as_deref().map_or(tls::Roots::Web, tls::Roots::File);
                    Some(Arc::new(tls::config(roots)?))
                }
                false => None,
            },
            timeout: common.timeout,
            connect_timeout: common.connect_timeout,
            pool: common.pool,
            patience: Patience { failures: None, ..Patience::default() },
            // What a server can be set to hold.
            max_value: 1 << 30,
            ..Options::default()
        };
        let servers = Servers::new(addresses, options)?;
        let settings = servers.settings().await?;
        let limit = settings.iter().flatten().filter(|(name, _)| name == "item_size_max");
        let limit = limit.filter_map(|(_, value)| value.parse::<usize>().ok()).min();
        let max_record = limit.map_or(ABILITIES.max_record, |max| max.saturating_sub(OVERHEAD));
        let table = Table::new(Arc::new(servers), max_record, common.durability, &common.table)?;
        Ok(Arc::new(Encoded::new(Arc::new(table), common.blob_format())?) as Arc<dyn Store>)
    }
    .boxed()
}

/// The servers, together and each alone.
struct Servers {
    /// What finds the server of a key.
    all: AsyncClient,
    /// For keys to be deleted on a server that does not have them. Where there are several servers,
    /// each of these has a connection of its own.
    each: Vec<AsyncClient>,
    ring: Ring,
    limit: std::time::Duration,
    /// Of all of them, for errors.
    names: String,
}

impl Servers {
    fn new(addresses: Vec<Address>, options: Options) -> Result<Servers> {
        let servers: Vec<_> = addresses.into_iter().map(Server::new).collect();
        let limit = options.timeout;
        let alone = Options { pool: 1, ..options.clone() };
        let alone = |server: &Server| AsyncClient::of(vec![server.clone()], alone.clone());
        let all = AsyncClient::of(servers.clone(), options)?;
        let each = match servers.len() {
            1 => vec![all.clone()],
            _ => servers.iter().map(alone).collect::<Result<_>>()?,
        };
        let names: Vec<_> = servers.iter().map(|server| server.address.to_string()).collect();
        let names = names.join(", ");
        Ok(Servers { names, ring: Ring::new(Spread::Rendezvous, &servers), each, limit, all })
    }

    /// Waits for all the portions of an operation, no longer than one operation may take.
    async fn in_time<T>(&self, what: &str, portions: impl Future<Output = T>) -> Result<T> {
        within(self.limit, what, async { Ok(portions.await) }).await
    }

    /// The settings of each server.
    async fn settings(&self) -> Result<Vec<Stats>> {
        self.all.stats("settings").await.into_iter().map(|(_, settings)| settings).collect()
    }

    /// The number of the server that has a key.
    fn owner(&self, full: &str) -> usize {
        self.ring.owner(full.as_bytes(), |_| true).unwrap_or(0)
    }
}

/// A table over all the servers.
struct Table {
    servers: Arc<Servers>,
    names: Names,
    abilities: Abilities,
    asked: Option<Tier>,
}

impl Table {
    fn new(
        servers: Arc<Servers>,
        max_record: usize,
        asked: Option<Tier>,
        name: &str,
    ) -> Result<Table> {
        let names = Names::new(&ABILITIES, name)?;
        let abilities = Abilities { max_key: names.room(), max_record, ..ABILITIES };
        Ok(Table { servers, names, abilities, asked })
    }

    /// Keeps blobs, in place of what is there or only where nothing is.
    async fn store(&self, blobs: &[Blob], add: bool) -> Result<()> {
        let full = |blob| self.checked(blob).map(|key| (key, blob));
        let items = blobs.iter().map(full).collect::<Result<Vec<_>>>()?;
        let bytes: Vec<(&str, &[u8])> =
            items.iter().map(|(key, blob)| (key.as_str(), &*blob.bytes)).collect();
        let failed = async {
            match add {
                true => self.servers.all.add_multi(bytes, Expiry::Never).await,
                false => self.servers.all.set_multi(bytes, Expiry::Never).await,
            }
        };
        let failed = self.servers.in_time("a put", failed).await?;
        let Some(Failed { number, error, .. }) = failed.into_iter().next() else { return Ok(()) };
        if error.kind() == ErrorKind::Conflict {
            let what = format!("key {} already exists", items[number].1.key.shown());
            return Err(Error::new(ErrorKind::Conflict, what));
        }
        Err(error)
    }

    /// The key on the wire, of a blob that can be kept.
    fn checked(&self, blob: &Blob) -> Result<String> {
        self.check(&blob.key, blob.bytes.len())?;
        self.names.full(&blob.key)
    }

    /// The table's keys on one server. Some that are another server's may be there, from times when
    /// there were fewer servers; they are of no account, but to be deleted with the table.
    async fn keys_on(&self, at: usize, also_foreign: bool) -> Result<Spool> {
        let mine = |full: &str| also_foreign || self.servers.owner(full) == at;
        keys((&self.servers.all, at), self.servers.limit, &self.names, &mine).await
    }

    /// The keys on the wire, with their places. Those that cannot be there are left out.
    fn full(&self, keys: &[Key]) -> (Vec<usize>, Vec<String>) {
        let full = |(at, key)| Some((at, self.names.full(key).ok()?));
        keys.iter().enumerate().filter_map(full).unzip()
    }
}

/// How many of these keys were deleted.
async fn delete(client: &AsyncClient, keys: &[String]) -> Result<u64> {
    let (count, failed) = client.delete_multi(keys.iter().map(String::as_str)).await;
    failed.into_iter().next().map_or(Ok(count), |failed| Err(failed.error))
}

#[async_trait]
impl Blobs for Table {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn table(&self, name: &str) -> Result<Arc<dyn Blobs>> {
        let max_record = self.abilities.max_record;
        Ok(Arc::new(Table::new(self.servers.clone(), max_record, self.asked, name)?))
    }

    async fn prepare(&self) -> Result<()> {
        Ok(())
    }

    fn check(&self, key: &Key, bytes: usize) -> Result<()> {
        fits(&self.abilities, key, bytes)?;
        self.names.full(key).map(drop)
    }

    async fn put(&self, blobs: &[Blob]) -> Result<()> {
        self.store(blobs, false).await
    }

    async fn load(&self, blobs: &[Blob]) -> Result<()> {
        let mut new = HashSet::with_capacity(blobs.len());
        if let Some(blob) = blobs.iter().find(|blob| !new.insert(&blob.key)) {
            let what = format!("key {} occurs twice", blob.key.shown());
            return Err(Error::new(ErrorKind::Conflict, what));
        }
        self.store(blobs, true).await
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>> {
        let mut found = vec![None; keys.len()];
        let (places, full) = self.full(keys);
        if let [key] = &*full
            && keys.len() == 1
        {
            let value = self.servers.all.get(key).await?;
            return Ok(vec![value.map(|value| value.bytes)]);
        }
        let values = self.servers.in_time("a get", self.servers.all.get_multi(&full)).await?;
        for (at, value) in places.into_iter().zip(values) {
            found[at] = value?.map(|value| value.bytes);
        }
        Ok(found)
    }

    async fn swap(&self, key: &Key, old: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool> {
        self.check(key, new.map_or(0, <[u8]>::len))?;
        let (full, all) = (self.names.full(key)?, &self.servers.all);
        let swapped = async {
            let Some(old) = old else {
                return match new {
                    Some(new) => all.add(&full, new, Expiry::Never).await,
                    None => Ok(false),
                };
            };
            // The number says whether these are the bytes still.
            let there = all.gets(&full).await?.filter(|value| value.bytes == old);
            match (there, new) {
                (None, _) => Ok(false),
                (Some(value), Some(new)) => {
                    let swap = all.cas(&full, new, Expiry::Never, value.cas).await?;
                    Ok(swap == Swap::Stored)
                }
                (Some(value), None) => all.delete_if(&full, value.cas).await,
            }
        };
        self.servers.in_time("a conditional write", swapped).await?
    }

    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        let full = self.full(keys).1;
        let count = self.servers.in_time("a remove", delete(&self.servers.all, &full)).await??;
        counts::of_keys("md", keys, count).map_err(|e| e.in_place(self.servers.names.clone()))
    }

    async fn each(&self, range: &KeyRange) -> Result<BoxStream<'_, Result<Vec<Blob>>>> {
        let range = range.clone();
        let blobs = async_stream::try_stream! {
            for at in 0..self.servers.each.len() {
                let mut keys = self.keys_on(at, false).await?.read()?;
                let mut portion = Portion::new();
                loop {
                    let mut some = keys.take(portion.next())?;
                    if some.is_empty() {
                        break;
                    }
                    some.retain(|key| range.contains(key));
                    let values = self.get(&some).await?;
                    portion.learn(some.len(), values.iter().flatten().map(Vec::len).sum());
                    let blobs = some.into_iter().zip(values);
                    let batch: Vec<_> =
                        blobs.filter_map(|(key, value)| Some(Blob { key, bytes: value? })).collect();
                    if !batch.is_empty() {
                        yield batch;
                    }
                }
            }
        };
        Ok(blobs.boxed())
    }

    async fn count(&self) -> Result<u64> {
        let lists = (0..self.servers.each.len()).map(|at| self.keys_on(at, false));
        Ok(try_join_all(lists).await?.iter().map(|keys| keys.count()).sum())
    }

    async fn drop_table(&self) -> Result<()> {
        for at in 0..self.servers.each.len() {
            let mut keys = self.keys_on(at, true).await?.read()?;
            loop {
                let some = keys.take(1000)?;
                if some.is_empty() {
                    break;
                }
                let full: Vec<_> =
                    some.iter().map(|key| self.names.full(key)).collect::<Result<_>>()?;
                delete(&self.servers.each[at], &full).await?;
            }
        }
        Ok(())
    }

    async fn describe(&self) -> Result<Description> {
        let versions = self.servers.all.version().await.into_iter().map(|(_, version)| version);
        let mut versions = versions.collect::<Result<Vec<_>>>()?;
        versions.sort();
        versions.dedup();
        const SHOWN: [&str; 3] = ["item_size_max", "maxbytes", "evictions"];
        let mut settings = vec![("servers".to_owned(), self.servers.each.len().to_string())];
        if let Some(all) = self.servers.settings().await?.into_iter().next() {
            settings.extend(all.into_iter().filter(|(name, _)| SHOWN.contains(&name.as_str())));
        }
        Ok(Description {
            client: Client::Own,
            product: "memcached".into(),
            version: versions.join(", "),
            shape: Shape::Blob,
            format: None,
            asked: self.asked,
            set: Some(Tier::T0),
            bound: None,
            limit: None,
            settings,
            disk: None,
        })
    }
}
