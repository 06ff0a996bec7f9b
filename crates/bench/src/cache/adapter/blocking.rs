//! Our client that waits for its answers, one shared by all threads.

use std::sync::Arc;

use super::{Calls, Found, Goods, Tally};
use crate::{
    Error, Result,
    format::Coder,
    memcache::{Client, Expiry, Loss, Options},
    record::Value,
};

pub(super) struct Ours {
    client: Client,
    goods: Arc<Goods>,
    coder: Coder,
    bytes: Vec<u8>,
}

/// Of writes that were lost, the first.
pub(super) fn first_lost(losses: Vec<Loss>) -> Result<()> {
    losses.into_iter().next().map_or(Ok(()), |loss| Err(loss.error))
}

/// How a client of so many connections behaves.
pub(super) fn options(connections: usize) -> Options {
    Options { pool: connections.max(1), ..Options::default() }
}

/// Counts what a read of all keys has found.
pub(super) struct Counting<'a> {
    pub goods: &'a Goods,
    pub coder: &'a mut Coder,
    pub tally: Tally,
    pub failed: Option<Error>,
}

impl Counting<'_> {
    pub(super) fn add(&mut self, n: usize, found: Result<Option<crate::memcache::View<'_>>>) {
        match found {
            Ok(Some(view)) => {
                self.tally.add(self.goods.check(n, &view.bytes, self.coder));
            }
            Ok(None) => self.tally.add(Found::Miss),
            Err(e) => self.failed = Some(e),
        }
    }

    pub(super) fn done(self) -> Result<Tally> {
        self.failed.map_or(Ok(self.tally), Err)
    }
}

/// What was read as an object, against the one that must be there.
pub(super) fn compared(read: Option<Value>, right: &Value) -> Found {
    match read {
        None => Found::Miss,
        Some(read) if read == *right => Found::Hit,
        Some(_) => Found::Wrong,
    }
}

impl Calls for Ours {
    const BLOCKING: bool = true;

    fn open(goods: &Arc<Goods>, servers: &[String], connections: usize) -> Result<Vec<Ours>> {
        let client = Client::new(servers, options(connections))?;
        let one = |_| {
            let (client, goods, coder) = (client.clone(), Arc::clone(goods), goods.coder()?);
            Ok(Ours { client, goods, coder, bytes: Vec::new() })
        };
        (0..connections).map(one).collect()
    }

    async fn set(&mut self, k: usize) -> Result<()> {
        let key = &self.goods.keys[k];
        match self.goods.objects.get(k) {
            Some(object) => {
                self.client.objects(self.goods.format.clone()).set(key, object, Expiry::Never)
            }
            None => self.client.set(key, &self.goods.values[k], Expiry::Never),
        }
    }

    async fn get(&mut self, k: usize) -> Result<Found> {
        let key = &self.goods.keys[k];
        if let Some(object) = self.goods.objects.get(k) {
            let read = self.client.objects(self.goods.format.clone()).get::<Value>(key)?;
            return Ok(compared(read, object));
        }
        let found = self.client.get(key)?;
        Ok(found.map_or(Found::Miss, |v| self.goods.check(k, &v.bytes, &mut self.coder)))
    }

    async fn get_all(&mut self) -> Result<Tally> {
        let Ours { client, goods, coder, .. } = self;
        let mut counting = Counting { goods, coder, tally: Tally::default(), failed: None };
        client.get_each(&goods.keys, |n, _, found| counting.add(n, found));
        counting.done()
    }

    async fn delete(&mut self, k: usize) -> Result<()> {
        self.client.delete(&self.goods.keys[k]).map(drop)
    }

    async fn flood(&mut self, keys: &[usize], operations: u64) -> Result<()> {
        let Ours { client, goods, coder, bytes } = self;
        let mut writes = client.noblock();
        for (_, &k) in (0..operations).zip(keys.iter().cycle()) {
            let value = goods.bytes(k, coder, bytes)?;
            writes.set(&goods.keys[k], value, Expiry::Never)?;
        }
        first_lost(writes.barrier())
    }
}
