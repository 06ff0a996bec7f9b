//! Our client that does not block, one shared by all tasks.

use std::sync::Arc;

use super::{
    Calls, Found, Goods, Tally,
    blocking::{Counting, compared, first_lost, options},
};
use crate::{
    Result,
    format::Coder,
    memcache::{AsyncClient, Expiry},
    record::Value,
};

pub(super) struct Ours {
    client: AsyncClient,
    goods: Arc<Goods>,
    coder: Coder,
    bytes: Vec<u8>,
}

impl Calls for Ours {
    const BLOCKING: bool = false;

    fn open(goods: &Arc<Goods>, servers: &[String], connections: usize) -> Result<Vec<Ours>> {
        let client = AsyncClient::new(servers, options(connections))?;
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
                let objects = self.client.objects(self.goods.format.clone());
                objects.set(key, object, Expiry::Never).await
            }
            None => self.client.set(key, &self.goods.values[k], Expiry::Never).await,
        }
    }

    async fn get(&mut self, k: usize) -> Result<Found> {
        let key = &self.goods.keys[k];
        if let Some(object) = self.goods.objects.get(k) {
            let objects = self.client.objects(self.goods.format.clone());
            return Ok(compared(objects.get::<Value>(key).await?, object));
        }
        let found = self.client.get(key).await?;
        Ok(found.map_or(Found::Miss, |v| self.goods.check(k, &v.bytes, &mut self.coder)))
    }

    async fn get_all(&mut self) -> Result<Tally> {
        let Ours { client, goods, coder, .. } = self;
        let mut counting = Counting { goods, coder, tally: Tally::default(), failed: None };
        client.get_each(&goods.keys, |n, _, found| counting.add(n, found)).await;
        counting.done()
    }

    async fn delete(&mut self, k: usize) -> Result<()> {
        self.client.delete(&self.goods.keys[k]).await.map(drop)
    }

    async fn flood(&mut self, keys: &[usize], operations: u64) -> Result<()> {
        let Ours { client, goods, coder, bytes } = self;
        let mut writes = client.noblock();
        for (_, &k) in (0..operations).zip(keys.iter().cycle()) {
            let value = goods.bytes(k, coder, bytes)?;
            writes.set(&goods.keys[k], value, Expiry::Never).await?;
        }
        first_lost(writes.barrier().await)
    }
}
