//! Connections: some for work, and some for streams, which may be read slowly.
//!
//! A connection on which something was begun and not ended (it took too long, or whoever waited
//! went away) is closed, not used again.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use deadpool_postgres::{
    Client, ClientWrapper, Hook, HookError, Manager, ManagerConfig, Object, PoolError,
    RecyclingMethod, Runtime, Timeouts,
};
use futures_util::FutureExt;
use tokio_postgres::{
    Config, NoTls, Row, Statement,
    types::{ToSql, Type},
};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{
    direct::Direct,
    error::{code, error},
    rows::Cells,
    wire::Bound,
};
use crate::{
    Error, ErrorKind, Result,
    store::{
        Common,
        line::{Address, Limits},
        within,
    },
};

/// How many statements a connection keeps prepared before it forgets them all.
const PREPARED: usize = 256;

/// Connections to one database.
pub struct Pool {
    work: deadpool_postgres::Pool,
    streams: deadpool_postgres::Pool,
    /// None where the wire is encrypted.
    direct: Option<Direct>,
    limit: Duration,
    size: usize,
}

impl Pool {
    /// Connections that begin with the statements of `set_up`. None is made yet.
    ///
    /// # Errors
    /// None that are known.
    pub fn new(
        config: &Config,
        address: Address,
        tls: Option<&MakeRustlsConnect>,
        common: &Common,
        set_up: &str,
    ) -> Result<Pool> {
        let make = || {
            let how = ManagerConfig { recycling_method: RecyclingMethod::Fast };
            let manager = match tls {
                Some(tls) => Manager::from_config(config.clone(), tls.clone(), how),
                None => Manager::from_config(config.clone(), NoTls, how),
            };
            let set_up = set_up.to_owned();
            let hook = Hook::async_fn(move |client: &mut ClientWrapper, _| {
                let set_up = set_up.clone();
                Box::pin(
                    async move { client.batch_execute(&set_up).await.map_err(HookError::Backend) },
                )
            });
            deadpool_postgres::Pool::builder(manager)
                .max_size(common.pool)
                .runtime(Runtime::Tokio1)
                .timeouts(Timeouts {
                    wait: Some(common.timeout),
                    create: Some(common.connect_timeout),
                    recycle: Some(common.connect_timeout),
                })
                .post_create(hook)
                .build()
                .map_err(|e| Error::invalid(e.to_string()))
        };
        let limits = Limits {
            connect: common.connect_timeout,
            operation: common.timeout,
            pool: common.pool,
        };
        let direct = tls.is_none().then(|| Direct::new(address, config, limits, set_up));
        let (limit, size) = (common.timeout, common.pool);
        Ok(Pool { work: make()?, streams: make()?, direct, limit, size })
    }

    /// A connection for work.
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable) where none is free in time, or none can be made.
    pub async fn get(&self) -> Result<Connection> {
        self.of(&self.work, "connections are busy").await
    }

    /// A connection for a stream.
    ///
    /// # Errors
    /// As [`get`](Pool::get).
    pub async fn stream(&self) -> Result<Connection> {
        self.of(&self.streams, "streams are being read; read one to its end, or raise ?pool").await
    }

    async fn of(&self, pool: &deadpool_postgres::Pool, busy: &str) -> Result<Connection> {
        let client = pool.get().await.map_err(|e| match e {
            PoolError::Backend(e) | PoolError::PostCreateHook(HookError::Backend(e)) => error(e),
            PoolError::Timeout(deadpool_postgres::TimeoutType::Wait) => {
                let seconds = self.limit.as_secs_f64();
                Error::unavailable(format!("after {seconds} s still all {} {busy}", self.size))
            }
            PoolError::Timeout(_) => {
                Error::unavailable("the server does not let us connect in time")
            }
            e => Error::unavailable(e.to_string()),
        })?;
        Ok(Connection { client: Some(client), limit: self.limit, busy: AtomicBool::new(false) })
    }

    /// Does a statement by the shortest way, and shows `row` each row it gives.
    ///
    /// # Errors
    /// Of the connection and the server, and those of `row`.
    pub async fn rows(
        &self,
        text: &str,
        values: &[(Type, Bound)],
        mut row: impl FnMut(&dyn Cells) -> Result<()>,
    ) -> Result<()> {
        if let Some(direct) = &self.direct {
            let done = direct.run("a query", text, values, row).await;
            return self.settle(done).map(drop);
        }
        let rows = async { self.get().await?.query(text, values).await };
        rows.boxed().await?.iter().try_for_each(|found| row(found))
    }

    /// After trouble with one connection, none that is idle is trusted.
    fn settle<T>(&self, done: Result<T>) -> Result<T> {
        if let Err(e) = &done
            && e.kind() == ErrorKind::Unavailable
            && code(e).is_none()
        {
            for pool in [&self.work, &self.streams] {
                pool.retain(|_, _| false);
            }
        }
        done
    }

    /// Does a statement by the shortest way, and answers how many rows it touched.
    ///
    /// # Errors
    /// Of the connection and the server.
    pub async fn execute(&self, text: &str, values: &[(Type, Bound)]) -> Result<u64> {
        if let Some(direct) = &self.direct {
            let done = direct.run("a statement", text, values, |_| Ok(())).await;
            return self.settle(done);
        }
        async { self.get().await?.execute(text, values).await }.boxed().await
    }

    /// Tables are no longer what they were: statements are prepared anew.
    pub fn forget(&self) {
        if let Some(direct) = &self.direct {
            direct.forget();
        }
        for pool in [&self.work, &self.streams] {
            pool.manager().statement_caches.clear();
        }
    }
}

/// A connection, which goes back to its pool unless something on it was not ended.
pub struct Connection {
    client: Option<Client>,
    limit: Duration,
    busy: AtomicBool,
}

impl Connection {
    /// The client, for futures that [`run`](Connection::run) waits for.
    pub fn client(&self) -> &Client {
        self.client.as_ref().expect("there until it is dropped")
    }

    /// The client and how long an operation may take, for work in several steps: between
    /// [`begin`](Connection::begin) and [`end`](Connection::end).
    pub fn parts(&mut self) -> (&mut Client, Duration) {
        (self.client.as_mut().expect("there until it is dropped"), self.limit)
    }

    /// From here on it is not to be used again.
    pub fn begin(&self) {
        self.busy.store(true, Ordering::Relaxed);
    }

    /// It is in good order again.
    pub fn end(&self) {
        self.busy.store(false, Ordering::Relaxed);
    }

    /// Waits for something the server does, but not longer than an operation may take.
    ///
    /// # Errors
    /// Its own, and [`Unavailable`](crate::ErrorKind::Unavailable) where it takes longer.
    pub async fn run<T>(
        &self,
        what: &str,
        done: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T> {
        let before = self.busy.swap(true, Ordering::Relaxed);
        let done = within(self.limit, what, async { Ok(done.await) }).await?;
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
        done.map_err(error)
    }

    /// A prepared statement.
    ///
    /// # Errors
    /// Of the connection and the server.
    pub async fn prepare(&self, text: &str, types: &[Type]) -> Result<Statement> {
        let client = self.client();
        if client.statement_cache.size() > PREPARED {
            client.statement_cache.clear();
        }
        self.run("a statement", client.prepare_typed_cached(text, types)).await
    }

    /// The rows a statement gives.
    ///
    /// # Errors
    /// Of the connection and the server.
    pub async fn query(&self, text: &str, values: &[(Type, Bound)]) -> Result<Vec<Row>> {
        let (types, values) = separate(values);
        let statement = self.prepare(text, &types).await?;
        self.run("a query", self.client().query(&statement, &values)).await
    }

    /// Does what a statement says, and answers how many rows it touched.
    ///
    /// # Errors
    /// Of the connection and the server.
    pub async fn execute(&self, text: &str, values: &[(Type, Bound)]) -> Result<u64> {
        let (types, values) = separate(values);
        let statement = self.prepare(text, &types).await?;
        self.run("a statement", self.client().execute(&statement, &values)).await
    }

    /// Does statements without values, together or not at all.
    ///
    /// # Errors
    /// Of the connection and the server.
    pub async fn batch(&self, text: &str) -> Result<()> {
        self.run("a statement", self.client().batch_execute(text)).await
    }
}

/// Types and values apart, as the client wants them.
pub fn separate(values: &[(Type, Bound)]) -> (Vec<Type>, Vec<&(dyn ToSql + Sync)>) {
    values.iter().map(|(kind, value)| (kind.clone(), value as &(dyn ToSql + Sync))).unzip()
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let (Some(client), true) = (self.client.take(), self.busy.load(Ordering::Relaxed)) {
            // Out of the pool, and closed.
            drop(Object::take(client));
        }
    }
}
