//! `memcached://a,b:11212,c?table=sessions` — memcached, one server or several; `?socket=PATH`
//! through a Unix socket.
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
//! Durability is t0, always. A batch is not atomic: where a connection breaks, some of it may be
//! there; `load` adds, tells a key that is taken, and keeps the others.
//!
//! This is a thin client, with no TLS and no login.

mod names;
mod server;

use std::{collections::HashSet, sync::Arc};

use async_trait::async_trait;
use futures_util::{
    FutureExt, StreamExt,
    future::{BoxFuture, try_join_all},
    stream::BoxStream,
};

use self::{names::Names, server::Server};
use super::{
    Abilities, Blob, Blobs, Common, Description, Driver, Encoded, Key, KeyRange, Shape, Store, Url,
    blobs::{CANNOT, fits},
    kv::{Address, Limits, Portion, Spool, chunks},
};
use crate::{Error, ErrorKind, Result, durability::Tier, record::Kind};

pub const DRIVER: Driver = Driver {
    name: "memcached",
    aliases: &[],
    example: "memcached://one,two:11212?table=sessions",
    about: "memcached, one or several: values in memory, the least used thrown out; found by key",
    shapes: &[Shape::Blob],
    servers: &["memcached"],
    open,
};

const ABILITIES: Abilities = Abilities {
    driver: "memcached",
    keeps: &Kind::ALL,
    loses: "",
    cannot: CANNOT,
    atomic: false,
    ordered: false,
    max_key: names::LONGEST,
    max_record: (1 << 20) - OVERHEAD,
};

/// What an item takes beside its value, at most: its header, its key, its length in digits.
const OVERHEAD: usize = 512;

fn open(mut url: Url, common: Common) -> BoxFuture<'static, Result<Arc<dyn Store>>> {
    async move {
        let socket = url.take("socket");
        url.done()?;
        if url.user.is_some() || url.password.is_some() {
            return Err(Error::unsupported("memcached without a login only"));
        }
        if !url.path.is_empty() {
            return Err(Error::invalid(format!("memcached has no {:?} inside it", url.path)));
        }
        if let Some(tier @ (Tier::T1 | Tier::T2 | Tier::T3)) = common.durability {
            return Err(tier.refused("memcached", &[Tier::T0]));
        }
        common.shape("memcached", DRIVER.shapes)?;
        let mut addresses: Vec<_> = match socket {
            Some(path) => vec![Address::Unix(path.into())],
            None if url.hosts.is_empty() => vec![Address::Tcp("127.0.0.1".into(), 11211)],
            None => Vec::new(),
        };
        for (host, port) in &url.hosts {
            addresses.push(Address::Tcp(host.clone(), port.unwrap_or(11211)));
        }
        if let Some(twice) = (1..addresses.len()).find(|&i| addresses[..i].contains(&addresses[i]))
        {
            return Err(Error::invalid(format!("server {} is named twice", addresses[twice])));
        }
        let limits = Limits {
            connect: common.connect_timeout,
            operation: common.timeout,
            pool: common.pool,
        };
        let servers: Vec<_> =
            addresses.into_iter().map(|address| Server::new(address, limits)).collect();
        let settings = try_join_all(servers.iter().map(Server::settings)).await?;
        let limit = settings.iter().flatten().filter(|(name, _)| name == "item_size_max");
        let limit = limit.filter_map(|(_, value)| value.parse::<usize>().ok()).min();
        let max_record = limit.map_or(ABILITIES.max_record, |max| max.saturating_sub(OVERHEAD));
        let table = Table::new(Arc::new(servers), max_record, common.durability, &common.table)?;
        Ok(Arc::new(Encoded::new(Arc::new(table), common.blob_format())?) as Arc<dyn Store>)
    }
    .boxed()
}

/// A table over all the servers.
struct Table {
    servers: Arc<Vec<Server>>,
    names: Names,
    abilities: Abilities,
    asked: Option<Tier>,
}

impl Table {
    fn new(
        servers: Arc<Vec<Server>>,
        max_record: usize,
        asked: Option<Tier>,
        name: &str,
    ) -> Result<Table> {
        let names = Names::new(&ABILITIES, name)?;
        let abilities = Abilities { max_key: names.room(), max_record, ..ABILITIES };
        Ok(Table { servers, names, abilities, asked })
    }

    /// Sorts items by the servers of their keys.
    fn by_server<T>(&self, items: impl Iterator<Item = (String, T)>) -> Vec<Vec<(String, T)>> {
        let mut sorted: Vec<Vec<_>> = self.servers.iter().map(|_| Vec::new()).collect();
        for (key, item) in items {
            let at = owner(self.servers.iter().map(|server| server.name.as_str()), &key);
            sorted[at].push((key, item));
        }
        sorted
    }

    async fn store(&self, command: &str, blobs: &[Blob]) -> Result<()> {
        let full = |blob| self.checked(blob).map(|key| (key, blob));
        let items = blobs.iter().map(full).collect::<Result<Vec<_>>>()?;
        let sorted = self.by_server(items.into_iter());
        try_join_all(self.servers.iter().zip(sorted).map(|(server, items)| async move {
            for items in chunks(&items, |(key, blob)| key.len() + blob.bytes.len()) {
                let sent: Vec<_> =
                    items.iter().map(|(key, blob)| (key.clone(), &*blob.bytes)).collect();
                if let Some(&at) = server.store(command, &sent).await?.first() {
                    let what = format!("key {} is taken", items[at].1.key.shown());
                    return Err(Error::new(ErrorKind::Conflict, what));
                }
            }
            Ok(())
        }))
        .await
        .map(drop)
    }

    /// The key on the wire, of a blob that can be kept.
    fn checked(&self, blob: &Blob) -> Result<String> {
        self.check(&blob.key, blob.bytes.len())?;
        self.names.full(&blob.key)
    }

    /// The table's keys on one server. Some that are another server's may be there, from times when
    /// there were fewer servers; they are of no account, but to be deleted with the table.
    async fn keys_on(&self, at: usize, also_foreign: bool) -> Result<Spool> {
        let names = || self.servers.iter().map(|server| server.name.as_str());
        let mine = |full: &str| also_foreign || owner(names(), full) == at;
        self.servers[at].keys(&self.names, &mine).await
    }

    /// The keys on the wire, by server, with their places. Those that cannot be there are left out.
    fn sorted(&self, keys: &[Key]) -> Vec<Vec<(String, usize)>> {
        let full = |(at, key)| Some((self.names.full(key).ok()?, at));
        self.by_server(keys.iter().enumerate().filter_map(full))
    }
}

/// Which of some servers has a key: the one whose name and the key have the highest hash together
/// (Thaler and Ravishankar 1998).
fn owner<'a>(servers: impl Iterator<Item = &'a str>, key: &str) -> usize {
    // FNV-1a of 64 bits, and the last step of MurmurHash3, as FNV mixes its upper bits badly.
    // The same everywhere and for ever: who hashes otherwise does not find what others kept.
    let hash = |server: &str| {
        let bytes = server.bytes().chain([0]).chain(key.bytes());
        let fnv = bytes.fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mixed = (fnv ^ (fnv >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        let mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        mixed ^ (mixed >> 33)
    };
    servers.enumerate().max_by_key(|(_, server)| hash(server)).map_or(0, |(at, _)| at)
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
        self.store("set", blobs).await
    }

    async fn load(&self, blobs: &[Blob]) -> Result<()> {
        let mut new = HashSet::with_capacity(blobs.len());
        if let Some(blob) = blobs.iter().find(|blob| !new.insert(&blob.key)) {
            let what = format!("key {} is there twice", blob.key.shown());
            return Err(Error::new(ErrorKind::Conflict, what));
        }
        self.store("add", blobs).await
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>> {
        let mut found = vec![None; keys.len()];
        let sorted = self.sorted(keys);
        let parts = self.servers.iter().zip(&sorted).map(|(server, items)| async move {
            if items.is_empty() {
                return Ok(Vec::new());
            }
            let keys: Vec<_> = items.iter().map(|(key, _)| key.clone()).collect();
            let some = server.get(&keys).await?;
            let places = some.into_iter().map(|(at, value)| (items[at].1, value));
            Ok::<Vec<_>, Error>(places.collect())
        });
        for (at, value) in try_join_all(parts).await?.into_iter().flatten() {
            found[at] = Some(value);
        }
        Ok(found)
    }

    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        let sorted = self.sorted(keys);
        let parts = self.servers.iter().zip(&sorted).map(|(server, items)| async move {
            let mut count = 0;
            for items in chunks(items, |(key, _)| key.len()) {
                let keys: Vec<_> = items.iter().map(|(key, _)| key.clone()).collect();
                count += server.delete(&keys).await?;
            }
            Ok::<_, Error>(count)
        });
        Ok(try_join_all(parts).await?.into_iter().sum())
    }

    async fn each(&self, range: &KeyRange) -> Result<BoxStream<'_, Result<Vec<Blob>>>> {
        let range = range.clone();
        let blobs = async_stream::try_stream! {
            for at in 0..self.servers.len() {
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
        let lists = (0..self.servers.len()).map(|at| self.keys_on(at, false));
        Ok(try_join_all(lists).await?.iter().map(|keys| keys.count()).sum())
    }

    async fn drop_table(&self) -> Result<()> {
        for at in 0..self.servers.len() {
            let mut keys = self.keys_on(at, true).await?.read()?;
            loop {
                let some = keys.take(1000)?;
                if some.is_empty() {
                    break;
                }
                let full: Vec<_> =
                    some.iter().map(|key| self.names.full(key)).collect::<Result<_>>()?;
                self.servers[at].delete(&full).await?;
            }
        }
        Ok(())
    }

    async fn describe(&self) -> Result<Description> {
        let mut versions = try_join_all(self.servers.iter().map(Server::version)).await?;
        versions.sort();
        versions.dedup();
        const SHOWN: [&str; 3] = ["item_size_max", "maxbytes", "evictions"];
        let mut settings = vec![("servers".to_owned(), self.servers.len().to_string())];
        if let Some(first) = self.servers.first() {
            let all = first.settings().await?;
            settings.extend(all.into_iter().filter(|(name, _)| SHOWN.contains(&name.as_str())));
        }
        Ok(Description {
            product: "memcached".into(),
            version: versions.join(", "),
            shape: Shape::Blob,
            format: None,
            asked: self.asked,
            set: Some(Tier::T0),
            settings,
            disk: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_spread_evenly_and_stay_when_a_server_goes() {
        let servers = ["a:11211", "b:11211", "c:11211", "d:11211"];
        let mut counts = [0; 4];
        for i in 0..40_000 {
            let key = format!("pets:{i}");
            let at = owner(servers.into_iter(), &key);
            counts[at] += 1;
            let less = owner(servers[..3].iter().copied(), &key);
            assert!(at == 3 || less == at, "{key} moved from {at} to {less}");
        }
        assert!(counts.iter().all(|n| (9_500..10_500).contains(n)), "{counts:?}");
        // What is kept somewhere has to be found there by later versions.
        let found: Vec<_> = (0..8).map(|i| owner(servers.into_iter(), &format!("{i}"))).collect();
        assert_eq!(found, [3, 3, 2, 3, 3, 0, 1, 3]);
    }
}
