//! `tyrant://host:port?table=pets` — Tokyo Tyrant, the server of Tokyo Cabinet.
//!
//! A server has one database, which is a table (layout document) or a hash (layout blob); where no
//! layout is named, the server says which. A record of table `pets` under the key `1` is there
//! under `pets:1` ([`kv::Namespace`](super::kv::Namespace)).
//!
//! The columns of a table database are text; how values are spelled and how their kinds come back,
//! [`kv::Flat`](super::kv::Flat) says. Numbers and times are decimal digits, so the database orders
//! and compares them as numbers. NUL separates columns: text with NUL is refused, as are lists and
//! maps.
//!
//! Queries are answered by `search` as far as it can, and by the client for the rest
//! (`conditions.rs`). Sorting is done by the client, in memory for the keys and what is sorted by;
//! but where a query has a limit and sorts first by a field that it compares with a number, the
//! server finds the first ones. An index is made by [`prepare`](super::Store::prepare): `decimal`
//! for numbers and times, `lexical` for others.
//!
//! There are no conditional writes: the protocol keeps a value where there is none (`putkeep`), but replaces and deletes
//! without a condition.
//!
//! Durability: what is written has left the server's process when it is acknowledged (t1), but for
//! indexes, which it keeps in memory for a while: after it was killed, `prepare` makes them anew.
//! With t2 or t3 every batch is followed by a sync, which is t3. A database in memory (`*`) is t0.
//! A batch is not atomic. `load` looks for keys that are taken just before it writes.

mod blobs;
mod conditions;
mod documents;
mod protocol;
mod wire;

use std::{collections::HashMap, sync::Arc};

use async_stream::try_stream;
use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream::BoxStream};

use self::protocol::{Pair, Server};
use super::{
    Abilities, Client, Common, Description, Driver, Encoded, Facts, Key, KeyRange, Login, Shape,
    Store, Url,
    blobs::CANNOT,
    counts,
    kv::{Namespace, Portion, SCALARS, Spool, chunks},
    limits::Limits,
    net::{Address, Fewer},
};
use crate::{Error, ErrorKind, Result, durability::Tier, record::Kind};

pub(super) const DRIVER: Driver = Driver {
    name: "tyrant",
    aliases: &[],
    example: "tyrant://localhost:1978?table=pets",
    about: "Tokyo Tyrant: a table database (document) or a hash database (blob), as the server \
            runs",
    shapes: &[Shape::Document, Shape::Blob],
    facts: &[
        Facts {
            refuses: &[Kind::BigInt, Kind::List, Kind::Map],
            levels: Some(1),
            indexed: &[Kind::Int, Kind::Float, Kind::Text],
            ..Facts::of(Shape::Document, DOCUMENT)
        },
        Facts::of(Shape::Blob, BLOB),
    ],
    limits: "",
    tiers: &[Tier::T0, Tier::T1, Tier::T3],
    clients: &[Client::Own],
    servers: &["tyrant"],
    login: Login::None,
    databases: None,
    open,
};

// ttserver takes arguments of 256 MB, key and value together.
const MAX_RECORD: usize = 254 << 20;

const DOCUMENT: Abilities = Abilities {
    driver: "tyrant",
    keeps: SCALARS,
    loses: "lists, maps, text with NUL, infinities, numbers beyond 64 bits and decimals of more than 17 \
            digits or with an exponent are refused",
    cannot: &[],
    joins: false,
    atomic: false,
    conditional: false,
    ordered: false,
    max_key: 1 << 20,
    max_record: MAX_RECORD,
};

const BLOB: Abilities = Abilities { keeps: &Kind::ALL, loses: "", cannot: CANNOT, ..DOCUMENT };

fn open(mut url: Url, common: Common) -> BoxFuture<'static, Result<Arc<dyn Store>>> {
    async move {
        let socket = url.take("socket");
        url.done()?;
        if url.user.is_some() || url.password.is_some() {
            return Err(Error::unsupported("Tokyo Tyrant has no logins"));
        }
        if !url.path.is_empty() {
            let what = format!("Tokyo Tyrant has one database and no {:?} in it", url.path);
            return Err(Error::invalid(what));
        }
        let address = match socket {
            Some(path) => Address::Unix(path.into()),
            None => {
                let (host, port) = url.one_host(1978)?;
                Address::Tcp(host, port)
            }
        };
        let server = Server::new(address, Limits::of(&common));
        let stat = Stat(server.stat().await?);
        if let Some(tier) = common.durability
            && stat.in_memory()
            && tier > Tier::T0
        {
            return Err(tier.refused("a database of Tokyo Tyrant in memory", &[Tier::T0]));
        }
        let has = stat.shape();
        let shape = match common.layout {
            None => has,
            Some(_) => common.shape("tyrant", DRIVER.shapes)?,
        };
        if shape != has {
            let kind = stat.get("type");
            return Err(Error::new(
                ErrorKind::Conflict,
                format!("the server's database is a {kind}, for layout {has}, and not {shape}"),
            ));
        }
        let abilities = if shape == Shape::Document { DOCUMENT } else { BLOB };
        let table = Table {
            server: Arc::new(server),
            space: Namespace::new(&abilities, &common.table)?,
            abilities,
            asked: common.durability,
        };
        Ok(match shape {
            Shape::Blob => {
                Arc::new(Encoded::new(Arc::new(blobs::Blobs(table)), common.blob_format())?)
                    as Arc<dyn Store>
            }
            _ => Arc::new(documents::Documents(table)),
        })
    }
    .boxed()
}

/// What the server says of itself.
struct Stat(Vec<(String, String)>);

impl Stat {
    fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(n, _)| n == name).map_or("", |(_, value)| value)
    }

    fn shape(&self) -> Shape {
        match self.get("type") {
            "table" => Shape::Document,
            _ => Shape::Blob,
        }
    }

    /// Databases in memory are called `*`, or `+` where they have an order.
    fn in_memory(&self) -> bool {
        self.get("path").starts_with(['*', '+']) || self.get("type").starts_with("on-memory")
    }
}

/// A table's keys, whatever lies under them.
struct Table {
    server: Arc<Server>,
    space: Namespace,
    abilities: Abilities,
    asked: Option<Tier>,
}

impl Table {
    fn sibling(&self, name: &str) -> Result<Table> {
        Ok(Table {
            server: self.server.clone(),
            space: Namespace::new(&self.abilities, name)?,
            abilities: self.abilities.clone(),
            asked: self.asked,
        })
    }

    fn full(&self, key: &Key) -> Vec<u8> {
        self.space.full(key).into()
    }

    fn all_full(&self, keys: &[Key]) -> Vec<Vec<u8>> {
        keys.iter().map(|key| self.full(key)).collect()
    }

    /// Writes pairs, and does what the durability asks for.
    async fn put(&self, pairs: &[Pair], new: bool) -> Result<()> {
        let portions = async {
            if new && let Some(key) = self.taken(pairs).await? {
                let what = format!("key {} already exists", key.shown());
                return Err(Error::new(ErrorKind::Conflict, what));
            }
            for pairs in chunks(pairs, |(key, value)| key.len() + value.len()) {
                self.server.put(pairs).await?;
            }
            self.settle().await
        };
        self.server.in_time("a put", portions).await
    }

    async fn settle(&self) -> Result<()> {
        match self.asked {
            Some(Tier::T2 | Tier::T3) => self.server.sync().await,
            _ => Ok(()),
        }
    }

    /// A key that is there already, or there twice.
    async fn taken(&self, pairs: &[Pair]) -> Result<Option<Key>> {
        let mut new = std::collections::HashSet::with_capacity(pairs.len());
        if let Some((key, _)) = pairs.iter().find(|(key, _)| !new.insert(key)) {
            return self.space.own(key);
        }
        let keys: Vec<_> = pairs.iter().map(|(key, _)| key.clone()).collect();
        for keys in chunks(&keys, Vec::len) {
            let there = self.server.are_there(keys).await?;
            if let Some((key, _)) = keys.iter().zip(there).find(|(_, there)| *there) {
                return self.space.own(key);
            }
        }
        Ok(None)
    }

    /// What is under these keys, in their order.
    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>> {
        if let [key] = keys {
            return Ok(vec![self.server.get_one(&self.full(key)).await?]);
        }
        let portions = async {
            let mut values = Vec::with_capacity(keys.len());
            let mut portion = Portion::new();
            while values.len() < keys.len() {
                let rest = &keys[values.len()..];
                let some = &rest[..rest.len().min(portion.next())];
                values.extend(self.fetch(some, &mut portion).await?);
            }
            Ok(values)
        };
        self.server.in_time("a get", portions).await
    }

    async fn fetch(&self, keys: &[Key], portion: &mut Portion) -> Result<Vec<Option<Vec<u8>>>> {
        let full = self.all_full(keys);
        let (mut found, mut asked) = (Vec::with_capacity(full.len()), Fewer::new(&full));
        while let Some(some) = asked.next() {
            match self.server.get(some).await {
                Ok(some) => found.extend(some),
                Err(e) => asked.after(&full, e)?,
            }
        }
        portion.learn(keys.len(), found.iter().map(|(_, value)| value.len()).sum());
        let found: HashMap<Vec<u8>, Vec<u8>> = found.into_iter().collect();
        // A key that was asked for twice is there twice.
        Ok(full.iter().map(|key| found.get(key).cloned()).collect())
    }

    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        let portions = async {
            let mut count = 0;
            for keys in chunks(keys, |key| key.len()) {
                count += self.server.out(&self.all_full(keys)).await?;
            }
            let count = counts::of_keys("out", keys, count)?;
            if count > 0 {
                self.settle().await?;
            }
            Ok(count)
        };
        self.server.in_time("a remove", portions).await
    }

    /// Deletes what is there, and says how many that were.
    async fn clear(&self) -> Result<u64> {
        let mut keys = self.server.keys(&self.space).await?.read()?;
        let mut count = 0;
        loop {
            let some = keys.take(1000)?;
            if some.is_empty() {
                break;
            }
            count += self.server.out(&self.all_full(&some)).await?;
        }
        self.settle().await?;
        Ok(count)
    }

    /// What is under keys that were put by, some at a time.
    #[allow(clippy::type_complexity)]
    fn each(&self, keys: Spool, range: KeyRange) -> BoxStream<'_, Result<Vec<(Key, Vec<u8>)>>> {
        let pairs = try_stream! {
            let (mut keys, mut portion) = (keys.read()?, Portion::new());
            loop {
                let mut some = keys.take(portion.next())?;
                if some.is_empty() {
                    break;
                }
                some.retain(|key| range.contains(key));
                let values = self.fetch(&some, &mut portion).await?;
                let there = some.into_iter().zip(values);
                let batch: Vec<_> =
                    there.filter_map(|(key, value)| Some((key, value?))).collect();
                if !batch.is_empty() {
                    yield batch;
                }
            }
        };
        pairs.boxed()
    }

    async fn describe(&self, shape: Shape) -> Result<Description> {
        let stat = Stat(self.server.stat().await?);
        let syncs = matches!(self.asked, Some(Tier::T2 | Tier::T3));
        let set = match (stat.in_memory(), syncs) {
            (true, _) => Tier::T0,
            (false, true) => Tier::T3,
            (false, false) => Tier::T1,
        };
        let shown = ["type", "path", "rnum"].iter().map(|name| (*name, stat.get(name)));
        let mut settings: Vec<_> = shown.map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
        settings.push(("sync after each batch".into(), syncs.to_string()));
        // The one that is started where there is no ttserver names the library behind it.
        let (product, version) = match stat.get("version").strip_prefix("tokyocabinet ") {
            Some(version) => ("stand-in for ttserver over Tokyo Cabinet", version),
            None => ("Tokyo Tyrant", stat.get("version")),
        };
        let (product, version) = (product.to_owned(), version.to_owned());
        Ok(Description {
            client: Client::Own,
            product,
            version,
            shape,
            format: None,
            asked: self.asked,
            set: Some(set),
            bound: None,
            limit: None,
            settings,
            disk: stat.get("size").parse().ok().filter(|_| !stat.in_memory()),
        })
    }
}
