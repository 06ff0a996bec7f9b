//! A connection of the crates `tokio-postgres` and `deadpool-postgres` (`?client=crate`).
//!
//! One on which something was begun and not ended (it took too long, or the caller gave up) is
//! closed, not used again.

use std::{
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use bytes::Bytes;
use deadpool_postgres::{Client, Object};
use futures_util::SinkExt;
use tokio_postgres::{
    Row, Statement,
    types::{ToSql, Type},
};

use super::{error::error, wire::Bound};
use crate::{Result, store::within};

/// How many statements a connection keeps prepared before it forgets them all.
const PREPARED: usize = 256;
/// How much of a `COPY` is in one message.
const MESSAGE: usize = 1 << 20;

/// A connection on loan.
pub struct Crated {
    client: Option<Client>,
    limit: Duration,
    busy: AtomicBool,
}

impl Crated {
    /// A connection whose operations may take so long.
    pub fn new(client: Client, limit: Duration) -> Crated {
        Crated { client: Some(client), limit, busy: AtomicBool::new(false) }
    }

    fn client(&self) -> &Client {
        self.client.as_ref().expect("there until it is dropped")
    }

    pub fn begin(&self) {
        self.busy.store(true, Ordering::Relaxed);
    }

    pub fn end(&self) {
        self.busy.store(false, Ordering::Relaxed);
    }

    /// Waits for something the server does, but not longer than an operation may take.
    async fn run<T>(
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

    async fn prepare(&self, text: &str, types: &[Type]) -> Result<Statement> {
        let client = self.client();
        if client.statement_cache.size() > PREPARED {
            client.statement_cache.clear();
        }
        self.run("a statement", client.prepare_typed_cached(text, types)).await
    }

    pub async fn query(&self, text: &str, values: &[(Type, Bound)]) -> Result<Vec<Row>> {
        let (types, values) = separate(values);
        let statement = self.prepare(text, &types).await?;
        self.run("a query", self.client().query(&statement, &values)).await
    }

    pub async fn execute(&self, text: &str, values: &[(Type, Bound)]) -> Result<u64> {
        let (types, values) = separate(values);
        let statement = self.prepare(text, &types).await?;
        self.run("a statement", self.client().execute(&statement, &values)).await
    }

    pub async fn batch(&self, text: &str) -> Result<()> {
        self.run("a statement", self.client().batch_execute(text)).await
    }

    pub async fn copy_in(&self, copy: &str, bytes: Vec<u8>) -> Result<u64> {
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

impl Drop for Crated {
    fn drop(&mut self) {
        if let (Some(client), true) = (self.client.take(), self.busy.load(Ordering::Relaxed)) {
            // Out of the pool, and closed.
            drop(Object::take(client));
        }
    }
}
