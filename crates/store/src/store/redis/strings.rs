//! Layout blob: strings.

use std::{collections::HashSet, sync::Arc};

use async_trait::async_trait;
use futures_util::{StreamExt, stream::BoxStream};
use redis::{Cmd, cmd, pipe};

use super::{
    Table,
    scripts::{DELETE, REPLACE},
};
use crate::{
    Error, ErrorKind, Result,
    store::{
        Abilities, Blob, Blobs, Description, Explained, Key, KeyRange, Request, Shape, counts,
        kv::{Portion, as_many, chunks},
        net::Fewer,
    },
};

/// A table of strings.
pub(super) struct Strings(pub Table);

impl Strings {
    /// One key is asked for as one key.
    async fn one(&self, key: &Key) -> Result<Option<Vec<u8>>> {
        let mut get = Cmd::with_capacity(2, 3 + self.0.space.prefix().len() + key.len());
        get.arg("GET").arg(self.0.space.full(key));
        match self.0.pool.ask("GET", &get).await {
            // No string is no record of this layout, as to MGET.
            Err(e) if e.kind() == ErrorKind::Conflict => Ok(None),
            found => found,
        }
    }

    async fn fetch(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>> {
        let (mut found, mut asked) = (Vec::with_capacity(keys.len()), Fewer::new(keys));
        while let Some(some) = asked.next() {
            match self.fetch_at_once(some).await {
                Ok(some) => found.extend(some),
                Err(e) => asked.after(keys, e)?,
            }
        }
        Ok(found)
    }

    async fn fetch_at_once(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>> {
        let full = |key: &Key| self.0.space.prefix().len() + key.len();
        let mut get = Cmd::with_capacity(keys.len() + 1, 4 + keys.iter().map(full).sum::<usize>());
        get.arg("MGET");
        for key in keys {
            get.arg(self.0.space.full(key));
        }
        as_many("MGET", keys.len(), self.0.pool.ask("MGET", &get).await?)
    }

    async fn load_portions(&self, blobs: &[Blob]) -> Result<()> {
        blobs.iter().try_for_each(|blob| self.check(&blob.key, blob.bytes.len()))?;
        for blobs in chunks(blobs, |blob| blob.key.len() + blob.bytes.len()) {
            let mut new = HashSet::with_capacity(blobs.len());
            let twice = blobs.iter().find(|blob| !new.insert(&blob.key));
            let mut set = cmd("MSETNX");
            for blob in blobs {
                set.arg(self.0.space.full(&blob.key)).arg(&blob.bytes);
            }
            if twice.is_none() {
                let set: i64 = self.0.pool.ask("MSETNX", &set).await?;
                if counts::yes("MSETNX", set)? {
                    continue;
                }
            }
            let taken = match twice {
                Some(blob) => Some(blob),
                None => {
                    let keys: Vec<_> = blobs.iter().map(|blob| blob.key.clone()).collect();
                    let found = self.0.taken(&keys).await?;
                    found.and_then(|key| blobs.iter().find(|blob| blob.key == key))
                }
            };
            let which = taken.map_or("one of them".into(), |blob| blob.key.shown());
            return Err(Error::new(ErrorKind::Conflict, format!("key {which} already exists")));
        }
        Ok(())
    }
}

#[async_trait]
impl Blobs for Strings {
    fn abilities(&self) -> &Abilities {
        &self.0.abilities
    }

    fn table(&self, name: &str) -> Result<Arc<dyn Blobs>> {
        Ok(Arc::new(Strings(self.0.sibling(name)?)))
    }

    async fn prepare(&self) -> Result<()> {
        self.0.prepare(Shape::Blob, "string").await
    }

    async fn put(&self, blobs: &[Blob]) -> Result<()> {
        blobs.iter().try_for_each(|blob| self.check(&blob.key, blob.bytes.len()))?;
        if let [blob] = blobs {
            let key = self.0.space.prefix().len() + blob.key.len();
            let mut set = Cmd::with_capacity(3, 3 + key + blob.bytes.len());
            set.arg("SET").arg(self.0.space.full(&blob.key)).arg(&blob.bytes);
            return self.0.pool.ask("SET", &set).await;
        }
        let portions = async {
            for blobs in chunks(blobs, |blob| blob.key.len() + blob.bytes.len()) {
                let mut set = pipe();
                for blob in blobs {
                    set.cmd("SET").arg(self.0.space.full(&blob.key)).arg(&blob.bytes).ignore();
                }
                let () = self.0.pool.run("SET", &set).await?;
            }
            Ok(())
        };
        self.0.pool.in_time("SET", portions).await
    }

    async fn load(&self, blobs: &[Blob]) -> Result<()> {
        self.0.pool.in_time("MSETNX", self.load_portions(blobs)).await
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>> {
        if let [key] = keys {
            return Ok(vec![self.one(key).await?]);
        }
        let portions = async {
            let mut found = Vec::with_capacity(keys.len());
            let mut portion = Portion::new();
            while found.len() < keys.len() {
                let rest = &keys[found.len()..];
                let some = self.fetch(&rest[..rest.len().min(portion.next())]).await?;
                portion.learn(some.len(), some.iter().flatten().map(Vec::len).sum());
                found.extend(some);
            }
            Ok(found)
        };
        self.0.pool.in_time("MGET", portions).await
    }

    async fn swap(&self, key: &Key, old: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool> {
        self.check(key, new.map_or(0, <[u8]>::len))?;
        match (old, new) {
            (None, None) => Ok(false),
            (None, Some(new)) => {
                let mut set = cmd("SETNX");
                set.arg(self.0.space.full(key)).arg(new);
                self.0.decide("SETNX", &set).await
            }
            (Some(old), Some(new)) => {
                let mut replace = self.0.script(REPLACE, key);
                self.0.decide("EVAL", replace.arg(old).arg(new)).await
            }
            (Some(old), None) => {
                let mut delete = self.0.script(DELETE, key);
                self.0.decide("EVAL", delete.arg(old)).await
            }
        }
    }

    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        self.0.remove(keys).await
    }

    async fn each(&self, range: &KeyRange) -> Result<BoxStream<'_, Result<Vec<Blob>>>> {
        let range = range.clone();
        let blobs = async_stream::try_stream! {
            let (mut keys, mut portion) = (self.0.keys(), Portion::new());
            while let Some(mut found) = keys.next().await? {
                found.retain(|key| range.contains(key));
                while !found.is_empty() {
                    let some = found.split_off(found.len().saturating_sub(portion.next()));
                    let values = self.fetch(&some).await?;
                    portion.learn(some.len(), values.iter().flatten().map(Vec::len).sum());
                    let (mut batch, mut gone) = (Vec::with_capacity(some.len()), Vec::new());
                    for (key, value) in some.into_iter().zip(values) {
                        match value {
                            Some(bytes) => batch.push(Blob { key, bytes }),
                            None => gone.push(key),
                        }
                    }
                    // MGET says nothing of keys that hold no string; they are not passed over.
                    if !gone.is_empty() {
                        self.0.are(&gone, Shape::Blob, "string").await?;
                    }
                    if !batch.is_empty() {
                        yield batch;
                    }
                }
            }
        };
        Ok(blobs.boxed())
    }

    async fn count(&self) -> Result<u64> {
        self.0.count().await
    }

    async fn drop_table(&self) -> Result<()> {
        self.0.clear().await.map(drop)
    }

    async fn explain(&self, request: Request<'_>) -> Result<Option<Explained>> {
        Ok(self.0.explained(request, Shape::Blob))
    }

    async fn describe(&self) -> Result<Description> {
        self.0.describe(Shape::Blob).await
    }
}
