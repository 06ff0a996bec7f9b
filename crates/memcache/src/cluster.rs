//! The servers of a client, and the server of each key: what both clients share, without any I/O.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::atomic::{AtomicU8, Ordering},
    time::{Duration, Instant},
};

use super::{
    address::Server,
    compress::unpack,
    failure::Failure,
    health::Health,
    key::{Form, Keys},
    options::{Failover, Options},
    protocol::{Answer, Call, Dialect, Found, Op, Sent},
    ring::Ring,
    statistics::{Counters, add},
    value::Value,
};
use crate::{Error, Result};

/// A server and what is known of it.
#[derive(Debug)]
pub(crate) struct Node {
    /// Where it is, and its share.
    pub server: Server,
    /// Its address, for errors and for the ring.
    pub name: String,
    /// Whether it is there.
    pub health: Health,
    /// 0 where it is not known.
    dialect: AtomicU8,
}

impl Node {
    /// Its dialect, if that is known.
    #[inline]
    pub(crate) fn dialect(&self) -> Option<Dialect> {
        match self.dialect.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(Dialect::Meta),
            _ => Some(Dialect::Classic),
        }
    }

    /// Its dialect is known now, or not any more.
    pub(crate) fn set_dialect(&self, dialect: Option<Dialect>) {
        let number = match dialect {
            None => 0,
            Some(Dialect::Meta) => 1,
            Some(Dialect::Classic) => 2,
        };
        self.dialect.store(number, Ordering::Relaxed);
    }

    /// The error of who is dead.
    pub(crate) fn is_dead(&self) -> Error {
        Error::unavailable("it did not answer, and gets no requests until it does")
            .in_place(self.name.clone())
    }
}

/// Where a key goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    /// To this server.
    To(usize),
    /// To this one, for a short time.
    Gutter(usize),
    /// Nowhere: nothing is found, writes are dropped.
    Nowhere,
    /// To this one, which is dead.
    Dead(usize),
}

/// All servers of a client.
#[derive(Debug)]
pub(crate) struct Cluster {
    /// The servers, those of the gutter last.
    pub nodes: Vec<Node>,
    primaries: usize,
    ring: Ring,
    gutter: Ring,
    /// How it behaves.
    pub options: Options,
    /// How keys are sent.
    pub keys: Keys,
    /// What it has done.
    pub counters: Counters,
}

impl Cluster {
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for no servers, one twice, a weight or a pool of zero,
    /// a namespace that is none.
    pub(crate) fn new(servers: Vec<Server>, options: Options) -> Result<Cluster> {
        let keys = Keys::new(&options.namespace, options.hash_long_keys)?;
        let gutters = match &options.failover {
            Failover::Gutter { servers, .. } if servers.is_empty() => {
                return Err(Error::invalid("a gutter needs at least one server"));
            }
            Failover::Gutter { servers, .. } => servers.clone(),
            _ => Vec::new(),
        };
        if servers.is_empty() {
            return Err(Error::invalid("a memcached client needs at least one server"));
        }
        if options.pool == 0 || options.timeout.is_zero() {
            return Err(Error::invalid("pool and timeout must be more than zero"));
        }
        let (ring, gutter) =
            (Ring::new(options.spread, &servers), Ring::new(Default::default(), &gutters));
        let primaries = servers.len();
        let mut nodes: Vec<Node> = Vec::with_capacity(primaries + gutters.len());
        for server in servers.into_iter().chain(gutters) {
            let name = server.address.to_string();
            if server.weight == 0 {
                return Err(Error::invalid(format!("server {name} has weight 0; the least is 1")));
            }
            if nodes.iter().any(|node| node.name == name) {
                return Err(Error::invalid(format!("server {name} is named twice")));
            }
            let health = Health::new(options.patience);
            let node = Node { server, name, health, dialect: AtomicU8::new(0) };
            node.set_dialect(options.dialect);
            nodes.push(node);
        }
        Ok(Cluster { nodes, primaries, ring, gutter, keys, options, counters: Counters::default() })
    }

    /// The servers that have keys of their own.
    pub(crate) fn primaries(&self) -> std::ops::Range<usize> {
        0..self.primaries
    }

    /// The server of a key, dead or alive.
    pub(crate) fn owner(&self, key: &[u8]) -> usize {
        self.ring.owner(key, |_| true).unwrap_or(0)
    }

    /// Where a key goes now.
    #[inline]
    pub(crate) fn route(&self, key: &[u8]) -> Route {
        let owner = self.owner(key);
        if !self.nodes[owner].health.is_dead() {
            return Route::To(owner);
        }
        self.detour(key, owner)
    }

    #[cold]
    fn detour(&self, key: &[u8], owner: usize) -> Route {
        add(&self.counters.avoided, 1);
        let alive = |at: usize| !self.nodes[at].health.is_dead();
        match self.options.failover {
            Failover::Fail => Route::Dead(owner),
            Failover::Miss => Route::Nowhere,
            Failover::Eject => self.ring.owner(key, alive).map_or(Route::Dead(owner), Route::To),
            Failover::Gutter { .. } => {
                let there = self.gutter.owner(key, |at| alive(self.primaries + at));
                there.map_or(Route::Dead(owner), |at| Route::Gutter(self.primaries + at))
            }
        }
    }

    /// The call as it is for a server of the gutter: nothing is kept there for long.
    pub(crate) fn for_gutter<'a>(&self, mut call: Call<'a>) -> Call<'a> {
        let Failover::Gutter { expiry: most, .. } = self.options.failover else { return call };
        let most = super::Expiry::After(most).number();
        let expiry = match &mut call.op {
            Op::Store { expiry, .. } | Op::Touch { expiry } | Op::GetAndTouch { expiry } => expiry,
            Op::Count { initial: Some((_, expiry)), .. } => expiry,
            _ => return call,
        };
        if *expiry == 0 || *expiry > most {
            *expiry = most;
        }
        call
    }

    /// How calls are said to a server of this dialect.
    #[inline]
    pub(crate) fn sent(&self, dialect: Dialect) -> Sent<'_> {
        Sent { dialect, keys: &self.keys, max_value: self.options.max_value }
    }

    /// Notes how an exchange failed. Says whether the server is dead since just now.
    pub(crate) fn note(&self, at: usize, failure: &Failure, limit: Duration) -> bool {
        add(&self.counters.errors, 1);
        if matches!(failure, Failure::Late(_)) {
            add(&self.counters.timeouts, 1);
        }
        // Who gives less time than is usual has not found out that a server is dead.
        let hurried = matches!(failure, Failure::Late(_)) && limit < self.options.timeout;
        let dead =
            failure.is_of_server() && !hurried && self.nodes[at].health.failed(Instant::now());
        if dead {
            add(&self.counters.deaths, 1);
            // Another version may come back.
            self.nodes[at].set_dialect(self.options.dialect);
        }
        dead
    }

    /// Notes that a server has answered.
    #[inline]
    pub(crate) fn note_answer(&self, at: usize) {
        if self.nodes[at].health.answered() {
            add(&self.counters.recoveries, 1);
        }
    }

    /// A value as the caller gets it.
    ///
    /// # Errors
    /// Where it cannot be unpacked.
    #[inline]
    pub(crate) fn value(&self, found: Found) -> Result<Value> {
        let Found { bytes, marks } = found;
        let (bytes, flags) = match self.options.compression {
            None => (bytes, marks.flags),
            Some(_) => unpack(bytes, marks.flags, self.options.max_value)?,
        };
        Ok(Value { bytes, flags, cas: marks.cas })
    }

    /// Counts what was found.
    #[inline]
    pub(crate) fn count(&self, op: &Op<'_>, answer: &Answer) {
        let reads = matches!(op, Op::Get { .. } | Op::GetAndTouch { .. } | Op::Fetch { .. });
        let counter = match (reads, answer) {
            (false, _) => &self.counters.writes,
            (true, Answer::Found(_)) => &self.counters.hits,
            (true, _) => &self.counters.misses,
        };
        add(counter, 1);
    }

    /// Sorts keys by the servers they go to.
    pub(crate) fn sort<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) -> Sorted {
        let mut sorted = Sorted::default();
        // Keys of one server often follow one another, and all do where there is only one.
        let (mut last, mut run) = (0, Vec::with_capacity(keys.size_hint().0));
        for (number, key) in keys.enumerate() {
            let form = match self.keys.form(key) {
                Ok(form) => form,
                Err(error) => {
                    sorted.refused.push((number, error));
                    continue;
                }
            };
            match self.route(key) {
                Route::To(at) | Route::Gutter(at) => {
                    if at != last {
                        sorted.append(last, &mut run);
                        last = at;
                    }
                    run.push((number, form));
                }
                Route::Nowhere => sorted.nowhere.push(number),
                Route::Dead(at) => {
                    sorted.refused.push((number, self.nodes[at].is_dead()));
                }
            }
        }
        sorted.append(last, &mut run);
        sorted
    }
}

/// Keys of a portion, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Sorted {
    /// By server: numbers, and how the keys are sent.
    pub servers: BTreeMap<usize, Vec<(usize, Form)>>,
    /// Those that go nowhere.
    pub nowhere: Vec<usize>,
    /// Those that cannot be sent.
    pub refused: Vec<(usize, Error)>,
}

impl Sorted {
    fn append(&mut self, at: usize, run: &mut Vec<(usize, Form)>) {
        if run.is_empty() {
            return;
        }
        match self.servers.entry(at) {
            Entry::Occupied(mut there) => there.get_mut().append(run),
            Entry::Vacant(empty) => {
                empty.insert(std::mem::take(run));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn cluster(failover: Failover) -> Cluster {
        let servers = ["a", "b", "c"].map(|name| Server::new(name.parse().unwrap()));
        Cluster::new(servers.into(), Options { failover, ..Options::default() }).unwrap()
    }

    #[test]
    fn keys_of_the_dead_go_where_they_should() {
        let gutter = Failover::Gutter {
            servers: vec![Server::new("g".parse().unwrap())],
            expiry: Duration::from_secs(10),
        };
        let refused = || Failure::Connect(io::Error::other("refused"));
        for failover in [Failover::Fail, Failover::Miss, Failover::Eject, gutter] {
            let cluster = cluster(failover.clone());
            assert!(cluster.note(1, &refused(), Duration::from_secs(1)));
            for n in 0..300 {
                let key = format!("key{n}");
                let owner = cluster.owner(key.as_bytes());
                let want = match (owner, &failover) {
                    (0 | 2, _) => Route::To(owner),
                    (_, Failover::Fail) => Route::Dead(1),
                    (_, Failover::Miss) => Route::Nowhere,
                    (_, Failover::Gutter { .. }) => Route::Gutter(3),
                    (_, Failover::Eject) => {
                        assert!(matches!(cluster.route(key.as_bytes()), Route::To(0 | 2)));
                        continue;
                    }
                };
                assert_eq!(cluster.route(key.as_bytes()), want);
            }
            cluster.note_answer(1);
            assert!((0..50).all(|n| {
                let key = format!("key{n}").into_bytes();
                cluster.route(&key) == Route::To(cluster.owner(&key))
            }));
            let seen = cluster.counters.read();
            assert_eq!((seen.deaths, seen.recoveries, seen.errors), (1, 1, 1));
        }
    }

    #[test]
    fn the_gutter_keeps_nothing_for_long() {
        let cluster = cluster(Failover::Gutter {
            servers: vec![Server::new("g".parse().unwrap())],
            expiry: Duration::from_secs(10),
        });
        for (asked, kept) in [(0, 10), (5, 5), (60, 10), (-1, -1)] {
            let call = Call { key: b"k", op: Op::Touch { expiry: asked } };
            let Op::Touch { expiry } = cluster.for_gutter(call).op else { panic!() };
            assert_eq!(expiry, kept);
        }
    }

    #[test]
    fn impossible_clusters_are_refused() {
        let server = || Server::new("a".parse().unwrap());
        let new = |servers, options| Cluster::new(servers, options).unwrap_err().to_string();
        assert!(new(vec![], Options::default()).contains("one server"));
        assert!(new(vec![server(), server()], Options::default()).contains("twice"));
        assert!(new(vec![server().weighing(0)], Options::default()).contains("weight"));
        assert!(new(vec![server()], Options { pool: 0, ..Options::default() }).contains("pool"));
    }

    #[test]
    fn who_is_in_a_hurry_kills_nobody() {
        let cluster = cluster(Failover::Fail);
        let short = Duration::from_millis(1);
        assert!(!cluster.note(0, &Failure::Late(short), short));
        assert!(cluster.note(0, &Failure::Late(short), Duration::from_secs(1)));
    }
}
