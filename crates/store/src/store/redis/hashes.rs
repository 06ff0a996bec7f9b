//! Layout document: hashes, a field for each of the record's.

use std::{collections::HashSet, sync::Arc};

use async_trait::async_trait;
use futures_util::StreamExt;
use redis::{Cmd, pipe};

use super::{
    Table,
    scripts::{ADD_HASH, SWAP_HASH},
};
use crate::{
    Error, ErrorKind, Result,
    record::Document,
    store::{
        Abilities, Description, Expected, Explained, Filter, Key, KeyRange, Layout, Query, Request,
        Row, Rows, Shape, Store,
        blobs::{fits, keys_of, named, one_part},
        in_batches,
        kv::{Field, Flat, KINDS, Portion, as_many, chunks, kinds_of_text},
        net::Fewer,
        wrappers::cut,
    },
};

/// A table of hashes.
pub(super) struct Hashes(pub Table);

const FLAT: Flat = Flat { binary: true, nested: true };

/// A record as it is sent.
struct Hash {
    key: Key,
    fields: Vec<Field>,
}

fn size(fields: &[Field]) -> usize {
    fields.iter().map(|(name, bytes)| name.len() + bytes.len()).sum()
}

impl Hashes {
    fn hash(&self, row: &Row) -> Result<Hash> {
        let fields = FLAT.write(&row.record).map_err(|e| named(e, &row.key))?;
        fits(&self.0.abilities, &row.key, size(&fields))?;
        Ok(Hash { key: row.key.clone(), fields })
    }

    /// The script that replaces a record in which a field is a text, without the fields of the new one.
    fn swap(&self, key: &Key, name: &str, text: &str) -> Cmd {
        let kinds = kinds_of_text(text).fold(",".to_owned(), |all, kind| all + kind + ",");
        let mut script = self.0.script(SWAP_HASH, key);
        script.arg(name).arg(text).arg(kinds);
        script
    }

    async fn write(&self, hashes: &[Hash], new: bool) -> Result<()> {
        match hashes {
            [_] => self.write_portions(hashes, new).await,
            _ => self.0.pool.in_time("HSET", self.write_portions(hashes, new)).await,
        }
    }

    async fn write_portions(&self, hashes: &[Hash], new: bool) -> Result<()> {
        for hashes in chunks(hashes, |hash| hash.key.len() + size(&hash.fields)) {
            if new {
                let keys: Vec<_> = hashes.iter().map(|hash| hash.key.clone()).collect();
                if let Some(key) = self.0.taken(&keys).await? {
                    let what = format!("key {} already exists", key.shown());
                    return Err(Error::new(ErrorKind::Conflict, what));
                }
            }
            let mut set = pipe();
            set.atomic();
            for Hash { key, fields } in hashes {
                let key = self.0.space.full(key);
                set.cmd("DEL").arg(&key).ignore();
                set.cmd("HSET").arg(&key);
                for (name, bytes) in fields {
                    set.arg(name).arg(bytes);
                }
                set.ignore();
            }
            let () = self.0.pool.run("HSET", &set).await?;
        }
        Ok(())
    }

    async fn fetch(&self, keys: &[Key]) -> Result<(usize, Vec<Option<Document>>)> {
        let (mut found, mut bytes) = (Vec::with_capacity(keys.len()), 0);
        let mut asked = Fewer::new(keys);
        while let Some(some) = asked.next() {
            match self.fetch_at_once(some).await {
                Ok((size, some)) => {
                    bytes += size;
                    found.extend(some);
                }
                Err(e) => asked.after(keys, e)?,
            }
        }
        Ok((bytes, found))
    }

    async fn fetch_at_once(&self, keys: &[Key]) -> Result<(usize, Vec<Option<Document>>)> {
        let mut get = pipe();
        for key in keys {
            get.cmd("HGETALL").arg(self.0.space.full(key));
        }
        let found: Vec<Vec<Field>> = self.0.pool.run("HGETALL", &get).await?;
        let found = as_many("HGETALL", keys.len(), found)?;
        let bytes = found.iter().map(|fields| size(fields)).sum();
        let read = |(key, fields): (&Key, Vec<Field>)| match fields.is_empty() {
            true => Ok(None),
            false => FLAT.read(fields).map(Some).map_err(|e| named(e, key)),
        };
        Ok((bytes, keys.iter().zip(found).map(read).collect::<Result<_>>()?))
    }
}

#[async_trait]
impl Store for Hashes {
    fn abilities(&self) -> &Abilities {
        &self.0.abilities
    }

    fn shape(&self) -> Shape {
        Shape::Document
    }

    fn table(&self, name: &str) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(Hashes(self.0.sibling(name)?)))
    }

    fn check(&self, row: &Row) -> Result<()> {
        self.hash(row).map(drop)
    }

    async fn prepare(&self, layout: &Layout) -> Result<()> {
        layout.no_indexes("redis", Shape::Document)?;
        self.0.prepare(Shape::Document, "hash").await
    }

    async fn put(&self, rows: &[Row]) -> Result<()> {
        let hashes: Vec<_> = rows.iter().map(|row| self.hash(row)).collect::<Result<_>>()?;
        self.write(&hashes, false).await
    }

    async fn load(&self, rows: &[Row]) -> Result<()> {
        let hashes: Vec<_> = rows.iter().map(|row| self.hash(row)).collect::<Result<_>>()?;
        let mut new = HashSet::with_capacity(rows.len());
        if let Some(row) = rows.iter().find(|row| !new.insert(&row.key)) {
            let what = format!("key {} occurs twice", row.key.shown());
            return Err(Error::new(ErrorKind::Conflict, what));
        }
        self.write(&hashes, true).await
    }

    async fn put_if(&self, row: &Row, expected: &Expected) -> Result<bool> {
        let hash = self.hash(row)?;
        let mut script = match expected {
            Expected::Absent => self.0.script(ADD_HASH, &row.key),
            // Which no record has.
            Expected::Field { name, .. } if name == KINDS => return Ok(false),
            Expected::Field { name, text } => self.swap(&row.key, name, text),
        };
        for (name, bytes) in &hash.fields {
            script.arg(name).arg(bytes);
        }
        self.0.decide("EVAL", &script).await
    }

    async fn remove_if(&self, key: &Key, expected: &Expected) -> Result<bool> {
        match expected {
            Expected::Absent => Ok(false),
            Expected::Field { name, .. } if name == KINDS => Ok(false),
            Expected::Field { name, text } => {
                self.0.decide("EVAL", &self.swap(key, name, text)).await
            }
        }
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Document>>> {
        if !keys.is_empty() && keys.len() <= Portion::new().next() {
            return Ok(self.fetch(keys).await?.1);
        }
        let portions = async {
            let mut found = Vec::with_capacity(keys.len());
            let mut portion = Portion::new();
            while found.len() < keys.len() {
                let rest = &keys[found.len()..];
                let (bytes, some) = self.fetch(&rest[..rest.len().min(portion.next())]).await?;
                portion.learn(some.len(), bytes);
                found.extend(some);
            }
            Ok(found)
        };
        self.0.pool.in_time("HGETALL", portions).await
    }

    async fn find(&self, query: &Query) -> Result<Rows<'_>> {
        query.check()?;
        if query.filter == Filter::All && query.sort.is_empty() {
            return Ok(cut(self.scan(&KeyRange::all()).await?, query));
        }
        let abilities = &self.0.abilities;
        abilities.can(query)?;
        let keys = keys_of(abilities, &query.filter)?;
        let found = self.get(&keys).await?;
        let rows = keys.into_iter().zip(found);
        let rows: Vec<_> =
            rows.filter_map(|(key, record)| Some(Row { key, record: record? })).collect();
        Ok(cut(in_batches(rows.into_iter()).boxed(), query))
    }

    async fn delete(&self, filter: &Filter) -> Result<u64> {
        Query::new(filter.clone()).check()?;
        if *filter == Filter::All {
            return self.0.clear().await;
        }
        self.0.remove(&keys_of(&self.0.abilities, filter)?).await
    }

    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        self.0.remove(keys).await
    }

    async fn scan(&self, range: &KeyRange) -> Result<Rows<'_>> {
        let range = range.clone();
        let rows = async_stream::try_stream! {
            let (mut keys, mut portion) = (self.0.keys(), Portion::new());
            while let Some(mut found) = keys.next().await? {
                found.retain(|key| range.contains(key));
                while !found.is_empty() {
                    let some = found.split_off(found.len().saturating_sub(portion.next()));
                    let (bytes, records) = self.fetch(&some).await?;
                    portion.learn(some.len(), bytes);
                    let rows = some.into_iter().zip(records);
                    let batch: Vec<Row> =
                        rows.filter_map(|(key, record)| Some(Row { key, record: record? })).collect();
                    if !batch.is_empty() {
                        yield batch;
                    }
                }
            }
        };
        Ok(rows.boxed())
    }

    async fn count(&self) -> Result<u64> {
        self.0.count().await
    }

    async fn split(&self, parts: u32) -> Result<Vec<KeyRange>> {
        one_part(&self.0.abilities, parts)
    }

    async fn drop_table(&self) -> Result<()> {
        self.0.clear().await.map(drop)
    }

    async fn explain(&self, request: Request<'_>) -> Result<Option<Explained>> {
        Ok(self.0.explained(request, Shape::Document))
    }

    async fn describe(&self) -> Result<Description> {
        self.0.describe(Shape::Document).await
    }
}
