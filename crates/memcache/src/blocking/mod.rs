//! The blocking client.
//!
//! [`Client`] is what callers hold; it is cheap to clone, and threads share one. `calls.rs` has its operations on one
//! key, `many.rs` those on many, `noblock.rs` writes that do not wait for answers, `fetch.rs` values that are computed
//! where they are missing.

mod calls;
mod connection;
mod fetch;
mod many;
mod noblock;
mod pool;
mod probe;

use std::{
    sync::{Arc, Condvar, Mutex},
    time::Duration,
};

use self::{
    connection::{Connection, Deadline, Until},
    pool::{Lease, Pool},
};
use super::{
    address::{Address, Server},
    admin::{self, Listed, Stats},
    cluster::{Cluster, Route},
    failure::Failure,
    options::Options,
    protocol::{Answer, Call, Dialect, Exchange, One},
    statistics::{Statistics, add},
};
use crate::{Error, Result};

pub use noblock::NoBlock;

/// A client of one memcached server or several, whose calls wait for their answers.
///
/// ```no_run
/// use std::time::Duration;
/// use steelyard_memcache::{Client, Options};
///
/// let client = Client::new(["cache1:11211", "cache2:11211"], Options::default())?;
/// client.set(b"greeting", b"hello", Duration::from_secs(60))?;
/// let value = client.get(b"greeting")?;
/// assert_eq!(value.unwrap().bytes, b"hello");
/// # Ok::<(), steelyard_memcache::Error>(())
/// ```
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    timeout: Duration,
}

/// What all clones of a client have in common.
struct Shared {
    cluster: Cluster,
    pools: Vec<Pool>,
    prober: probe::Prober,
    stop: Arc<(Mutex<bool>, Condvar)>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        *self.stop.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = true;
        self.stop.1.notify_all();
    }
}

impl Client {
    /// A client of the servers at these addresses (see [`Server`] for how they are written). It
    /// connects when it is used.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for no addresses, one that is none or is there twice,
    /// and for impossible options; [`Unsupported`](crate::ErrorKind::Unsupported) for TLS.
    pub fn new<S: AsRef<str>>(
        servers: impl IntoIterator<Item = S>,
        options: Options,
    ) -> Result<Client> {
        let servers = servers.into_iter().map(|server| server.as_ref().parse());
        Client::of(servers.collect::<Result<Vec<Server>>>()?, options)
    }

    /// The same of servers with weights.
    ///
    /// # Errors
    /// As those of [`Client::new`].
    pub fn of(servers: Vec<Server>, options: Options) -> Result<Client> {
        let is_tls = |s: &&Server| matches!(s.address, Address::Tls(..));
        if let Some(tls) = servers.iter().find(is_tls) {
            let what = "only the nonblocking client supports TLS (memcache::AsyncClient)";
            return Err(Error::unsupported(what).in_place(tls.address.to_string()));
        }
        let timeout = options.timeout;
        let cluster = Cluster::new(servers, options)?;
        let pool =
            |node: &super::cluster::Node| Pool::new(&node.server.address, cluster.options.pool);
        let pools = cluster.nodes.iter().map(pool).collect();
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let prober = probe::Prober::default();
        let shared = Arc::new(Shared { cluster, pools, prober, stop });
        Ok(Client { shared, timeout })
    }

    /// The same client, whose calls may take so long. It shares connections and all else.
    pub fn within(&self, timeout: Duration) -> Client {
        Client { shared: self.shared.clone(), timeout }
    }

    /// What it has done, with all its clones.
    pub fn statistics(&self) -> Statistics {
        self.shared.cluster.counters.read()
    }

    /// For each server: its address, whether it is alive, its connections in use and idle.
    pub fn servers(&self) -> Vec<(String, bool, usize, usize)> {
        let nodes = self.shared.cluster.nodes.iter().zip(&self.shared.pools);
        let told = |(node, pool): (&super::cluster::Node, &Pool)| {
            let (idle, open) = pool.size();
            (node.name.clone(), !node.health.is_dead(), open - idle, idle)
        };
        nodes.map(told).collect()
    }

    /// The address of the server that has a key.
    pub fn server_of(&self, key: impl AsRef<[u8]>) -> &str {
        let cluster = &self.shared.cluster;
        &cluster.nodes[cluster.owner(key.as_ref())].name
    }

    /// Where a key goes: the answer, or none where it goes nowhere.
    #[inline]
    fn call(&self, call: &Call<'_>) -> Result<Option<Answer>> {
        let cluster = &self.shared.cluster;
        let form = cluster.keys.form(call.key)?;
        let (at, call) = match cluster.route(call.key) {
            Route::To(at) => (at, *call),
            Route::Gutter(at) => (at, cluster.for_gutter(*call)),
            Route::Nowhere => return Ok(None),
            Route::Dead(at) => return Err(cluster.nodes[at].is_dead()),
        };
        let deadline = Deadline::new(self.timeout);
        let (mut lease, dialect) = self.shared.lease(at, &deadline)?;
        if let Err(e) = call.possible(form, dialect) {
            lease.give_back();
            return Err(e.in_place(cluster.nodes[at].name.clone()));
        }
        let mut one = One::new(&call, form, cluster.sent(dialect));
        self.shared.run(at, &mut lease, &mut one, deadline)?;
        lease.give_back();
        match one.answer {
            Some(Ok(answer)) => {
                cluster.count(&call.op, &answer);
                Ok(Some(answer))
            }
            Some(Err(e)) => Err(e.in_place(cluster.nodes[at].name.clone())),
            None => unreachable!("an exchange ends with its answer"),
        }
    }

    /// Runs a command that is about no key on one server.
    fn admin(&self, at: usize, exchange: &mut impl Exchange) -> Result<()> {
        let deadline = Deadline::new(self.timeout);
        if self.shared.cluster.nodes[at].health.is_dead() {
            return Err(self.shared.cluster.nodes[at].is_dead());
        }
        let (mut lease, _) = self.shared.lease(at, &deadline)?;
        self.shared.run(at, &mut lease, exchange, deadline)?;
        lease.give_back();
        Ok(())
    }

    /// Runs a command on each server, and gives what each has said, with its address.
    fn on_each<T>(&self, ask: impl Fn(usize) -> Result<T>) -> Vec<(String, Result<T>)> {
        let cluster = &self.shared.cluster;
        cluster.primaries().map(|at| (cluster.nodes[at].name.clone(), ask(at))).collect()
    }

    /// The versions of the servers, by address.
    pub fn version(&self) -> Vec<(String, Result<String>)> {
        self.on_each(|at| {
            let mut version = String::new();
            self.admin(at, &mut admin::version(&mut version))?;
            Ok(version)
        })
    }

    /// Statistics of each server, by address: the usual ones for "", or a kind of them: `items`,
    /// `slabs`, `settings`.
    pub fn stats(&self, kind: &str) -> Vec<(String, Result<Stats>)> {
        self.on_each(|at| {
            let mut stats = Ok(Vec::new());
            self.admin(at, &mut admin::stats(kind, &mut stats)?)?;
            stats
        })
    }

    /// Makes all values of all servers go: at once, or after so many seconds.
    ///
    /// # Errors
    /// That of the first server that fails; the others have done it.
    pub fn flush_all(&self, delay: Duration) -> Result<()> {
        let each = self.on_each(|at| {
            let mut done = Ok(());
            self.admin(at, &mut admin::flush_all(delay.as_secs(), &mut done))?;
            done
        });
        each.into_iter().try_for_each(|(_, done)| done)
    }

    /// Lists all keys of a server, by its number: `each` is given the text of each, as `key=…
    /// exp=… size=…`; the key in it has %-codes. On a connection of its own. `how` is `hash`, by the
    /// table of keys, each once; or `all`, by the lists of use, which older servers have only.
    ///
    /// # Errors
    /// [`Conflict`](crate::ErrorKind::Conflict) where somebody else lists just now,
    /// [`Unsupported`](crate::ErrorKind::Unsupported) where the server does not list keys.
    pub fn list_keys(
        &self,
        server: usize,
        how: &str,
        each: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut ended = Listed::Whole;
        let deadline = Deadline::new(self.timeout);
        let cluster = &self.shared.cluster;
        let mut connection =
            self.shared.open(server, &deadline).map_err(|e| e.error(&cluster.nodes[server]))?;
        let mut listing = admin::listing(how, &mut ended, each);
        let run = connection.run(&mut listing, deadline, Until::Answered);
        drop(listing);
        run.map_err(|e| e.error(&cluster.nodes[server]))?;
        ended.done().map_err(|e| e.in_place(cluster.nodes[server].name.clone()))
    }
}

impl Shared {
    /// A connection to a server and what it understands.
    #[inline]
    fn lease(self: &Arc<Self>, at: usize, deadline: &Deadline) -> Result<(Lease<'_>, Dialect)> {
        match self.try_lease(at, deadline) {
            Ok(lease) => Ok(lease),
            Err(failure) => Err(self.failed(at, &failure, deadline.limit)),
        }
    }

    #[inline]
    fn try_lease(&self, at: usize, deadline: &Deadline) -> Result<(Lease<'_>, Dialect), Failure> {
        let mut lease = self.pools[at].take(deadline)?;
        if lease.connection.is_none() {
            lease.connection = Some(self.open(at, deadline)?);
        }
        let node = &self.cluster.nodes[at];
        let dialect = match node.dialect() {
            Some(dialect) => dialect,
            None => {
                let mut version = String::new();
                let connection = lease.connection.as_mut().expect("opened above");
                connection.run(&mut admin::version(&mut version), *deadline, Until::Answered)?;
                let dialect = admin::dialect(&version);
                node.set_dialect(Some(dialect));
                dialect
            }
        };
        Ok((lease, dialect))
    }

    /// A new connection.
    #[cold]
    fn open(&self, at: usize, deadline: &Deadline) -> Result<Box<Connection>, Failure> {
        let Options { connect_timeout, timeout, .. } = self.cluster.options;
        let addresses = self.pools[at].addresses();
        let connection = Connection::open(&addresses, connect_timeout, timeout, deadline)?;
        add(&self.cluster.counters.connections, 1);
        Ok(Box::new(connection))
    }

    /// Runs an exchange; once more where the connection had been closed meanwhile, as all are
    /// when a server was started anew.
    #[inline]
    fn run(
        self: &Arc<Self>,
        at: usize,
        lease: &mut Lease<'_>,
        exchange: &mut impl Exchange,
        deadline: Deadline,
    ) -> Result<()> {
        let connection = lease.connection.as_mut().expect("a lease that was opened");
        match connection.run(exchange, deadline, Until::Answered) {
            Ok(()) => {
                self.cluster.note_answer(at);
                Ok(())
            }
            Err(failure) => self.run_again(at, lease, exchange, deadline, failure),
        }
    }

    #[cold]
    fn run_again(
        self: &Arc<Self>,
        at: usize,
        lease: &mut Lease<'_>,
        exchange: &mut impl Exchange,
        deadline: Deadline,
        failure: Failure,
    ) -> Result<()> {
        let closed = matches!(failure, Failure::Closed(_));
        lease.connection = None;
        add(&self.cluster.counters.discarded, 1);
        if closed {
            self.pools[at].clear();
        }
        if !(closed && exchange.again()) {
            return Err(self.failed(at, &failure, deadline.limit));
        }
        add(&self.cluster.counters.retries, 1);
        let mut again = || {
            let mut connection = self.open(at, &deadline)?;
            connection.run(exchange, deadline, Until::Answered)?;
            Ok(connection)
        };
        match again() {
            Ok(connection) => {
                lease.connection = Some(connection);
                self.cluster.note_answer(at);
                Ok(())
            }
            Err(failure) => Err(self.failed(at, &failure, deadline.limit)),
        }
    }

    /// Notes a failure, and gives the error to tell.
    #[cold]
    fn failed(self: &Arc<Self>, at: usize, failure: &Failure, limit: Duration) -> Error {
        self.note(at, failure, limit);
        failure.error(&self.cluster.nodes[at])
    }

    #[cold]
    fn note(self: &Arc<Self>, at: usize, failure: &Failure, limit: Duration) {
        if self.cluster.note(at, failure, limit) {
            self.pools[at].clear();
            probe::look_after(self);
        }
    }
}
