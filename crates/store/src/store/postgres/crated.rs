//! Connections of the crate `tokio-postgres` (`?client=crate`).
//!
//! One on which something was begun and not ended (it took too long, or the caller gave up) is
//! closed, not used again.

use std::{
    collections::HashMap,
    pin::pin,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use bytes::Bytes;
use futures_util::SinkExt;
use tokio::task::JoinHandle;
use tokio_postgres::{
    Client, NoTls, Row, Statement,
    types::{ToSql, Type},
};

use super::{encrypt::Encrypt, error::error, pool::Connect, watch::Watch, wire::Bound};
use crate::{
    Result,
    store::{
        net::{Address, Stream, connection::JUST_NOW, lent::Lent},
        pool::{Connection, Lease, Pool},
        within,
    },
};

/// How many statements a connection keeps prepared before it forgets them all.
const PREPARED: usize = 256;
/// How much of a `COPY` is in one message.
const MESSAGE: usize = 1 << 20;

/// Connections to one database.
pub(super) struct Crates {
    connections: Pool<Box<One>>,
    pub(super) connect: Connect,
}

/// Statements, by text and types.
type Prepared = HashMap<String, Vec<(Vec<Type>, Statement)>>;

/// A connection, and the statements it has prepared.
pub(crate) struct One {
    client: Client,
    prepared: Mutex<Prepared>,
    stream: Lent,
    /// What reads and writes the stream.
    task: JoinHandle<()>,
    idle: Instant,
}

impl Connection for Box<One> {
    fn is_sound(&mut self) -> bool {
        !self.client.is_closed()
    }

    fn has_rested(&self) -> bool {
        self.idle.elapsed() > JUST_NOW
    }

    fn rest(&mut self) {
        self.idle = Instant::now();
    }
}

impl Drop for One {
    fn drop(&mut self) {
        // Closed at once, before the next one is made. The task would wait for a server that answers
        // no more.
        drop(self.stream.take());
        self.task.abort();
    }
}

impl Crates {
    /// Connections that begin with the statements of `set_up`. None is made yet.
    pub(super) fn new(connect: Connect) -> Crates {
        Crates { connections: Pool::new(connect.limits, connect.address.to_string()), connect }
    }

    /// A connection that nobody else uses.
    ///
    /// # Errors
    /// As [`Pool::lease`].
    pub(super) async fn get(&self) -> Result<Crated<'_>> {
        let lease = self.connections.lease(async || self.connect().await).await?;
        Ok(Crated { pool: &self.connections, lease: Some(lease), busy: AtomicBool::new(false) })
    }

    async fn connect(&self) -> Result<Box<One>> {
        let Connect { config, address, tls, .. } = &self.connect;
        let watch = Watch::new(tls.is_some(), None);
        let (lent, stream) = Lent::new(Stream::connect(address).await?, watch.sees());
        let (client, task) = match (tls, address) {
            (Some(tls), Address::Tcp(host, _)) => {
                let encrypt = Encrypt { tls: tls.clone(), host: host.clone() };
                let (client, connection) =
                    config.connect_raw(lent, encrypt).await.map_err(error)?;
                (client, tokio::spawn(async move { drop(connection.await) }))
            }
            _ => {
                let (client, connection) = config.connect_raw(lent, NoTls).await.map_err(error)?;
                (client, tokio::spawn(async move { drop(connection.await) }))
            }
        };
        let one = Box::new(One {
            client,
            prepared: Mutex::default(),
            stream,
            task,
            idle: Instant::now(),
        });
        one.client.batch_execute(&self.connect.set_up).await.map_err(error)?;
        Ok(one)
    }

    /// What is prepared is prepared anew, on new connections.
    pub(super) fn forget(&self) {
        self.connections.forget();
    }
}

/// A connection on loan.
pub(super) struct Crated<'p> {
    pool: &'p Pool<Box<One>>,
    lease: Option<Lease<Box<One>, &'p Pool<Box<One>>>>,
    busy: AtomicBool,
}

impl Crated<'_> {
    fn one(&self) -> &One {
        self.lease.as_ref().expect("there until it is dropped")
    }

    fn client(&self) -> &Client {
        &self.one().client
    }

    fn prepared(&self) -> MutexGuard<'_, Prepared> {
        self.one().prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begin(&self) {
        self.busy.store(true, Ordering::Relaxed);
    }

    pub(super) fn end(&self) {
        self.busy.store(false, Ordering::Relaxed);
    }

    /// Waits for something the server does, but not longer than an operation may take.
    async fn run<T>(
        &self,
        what: &str,
        done: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T> {
        let before = self.busy.swap(true, Ordering::Relaxed);
        let limit = self.pool.limits().operation;
        let done = within(limit, what, async { Ok(done.await) }).await;
        let done = done.map_err(|e| e.in_place(self.pool.place()))?;
        let sound = match &done {
            Ok(_) => true,
            // What it has prepared may fit its tables no more.
            Err(e) => {
                e.as_db_error().is_some_and(|e| !["0A000", "26000"].contains(&e.code().code()))
            }
        };
        if sound {
            self.busy.store(before, Ordering::Relaxed);
        }
        done.map_err(|e| match error(e) {
            e if e.is_outage() => e.in_place(self.pool.place()),
            e => e,
        })
    }

    async fn prepare(&self, text: &str, types: &[Type]) -> Result<Statement> {
        let known =
            |(of, statement): &(Vec<Type>, Statement)| (of == types).then(|| statement.clone());
        if let Some(known) = self.prepared().get(text).and_then(|all| all.iter().find_map(known)) {
            return Ok(known);
        }
        let new = self.run("a statement", self.client().prepare_typed(text, types)).await?;
        let mut prepared = self.prepared();
        if prepared.len() >= PREPARED {
            prepared.clear();
        }
        prepared.entry(text.to_owned()).or_default().push((types.to_vec(), new.clone()));
        Ok(new)
    }

    pub(super) async fn query(&self, text: &str, values: &[(Type, Bound)]) -> Result<Vec<Row>> {
        let (types, values) = separate(values);
        let statement = self.prepare(text, &types).await?;
        self.run("a query", self.client().query(&statement, &values)).await
    }

    pub(super) async fn execute(&self, text: &str, values: &[(Type, Bound)]) -> Result<u64> {
        let (types, values) = separate(values);
        let statement = self.prepare(text, &types).await?;
        self.run("a statement", self.client().execute(&statement, &values)).await
    }

    pub(super) async fn batch(&self, text: &str) -> Result<()> {
        self.run("a statement", self.client().batch_execute(text)).await
    }

    pub(super) async fn copy_in(&self, copy: &str, bytes: Vec<u8>) -> Result<u64> {
        let statement = self.prepare(copy, &[]).await?;
        let send = async {
            let mut sink = pin!(self.client().copy_in(&statement).await?);
            let mut bytes = Bytes::from(bytes);
            while !bytes.is_empty() {
                let message = bytes.split_to(bytes.len().min(MESSAGE));
                sink.send(message).await?;
            }
            sink.finish().await
        };
        self.run("a COPY", send).await
    }
}

/// Types and values apart, as the client wants them.
fn separate(values: &[(Type, Bound)]) -> (Vec<Type>, Vec<&(dyn ToSql + Sync)>) {
    values.iter().map(|(kind, value)| (kind.clone(), value as &(dyn ToSql + Sync))).unzip()
}

impl Drop for Crated<'_> {
    fn drop(&mut self) {
        if let (Some(lease), false) = (self.lease.take(), self.busy.load(Ordering::Relaxed)) {
            lease.give_back();
        }
    }
}
