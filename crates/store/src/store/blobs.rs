//! Stores that keep bytes, and how a format makes stores of records of them.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use futures_util::{StreamExt, TryStreamExt, stream::BoxStream};

use super::{
    Abilities, Description, Expected, Explained, Filter, Key, KeyRange, Layout, Need, Part, Query,
    Request, Row, Rows, Shape, Store, digits::Digits, wrappers::cut,
};
use crate::{
    Error, Result,
    format::{Coder, Takes, Wrapped},
    record::{Document, Value},
};

/// Bytes with their key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// What they are found by.
    pub key: Key,
    /// What is kept.
    pub bytes: Vec<u8>,
}

/// A place that keeps bytes by key.
#[async_trait]
pub trait Blobs: Send + Sync {
    /// What it can do. What it says of queries and of kinds of value does not count.
    fn abilities(&self) -> &Abilities;

    /// The same place, but another table of it; as [`Store::table`].
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for a name the store cannot have.
    fn table(&self, name: &str) -> Result<Arc<dyn Blobs>>;

    /// The same table of another part of the same server; as [`Store::part`].
    ///
    /// # Errors
    /// As [`Store::part`].
    fn part(&self, _part: Part<'_>) -> Result<Option<Arc<dyn Blobs>>> {
        Ok(None)
    }

    /// The names of the tables of this place; as [`Store::tables`].
    ///
    /// # Errors
    /// As [`Store::tables`].
    async fn tables(&self) -> Result<Vec<String>> {
        Err(super::no(self.abilities(), "list its tables"))
    }

    /// Makes what is needed to keep blobs; what is there already stays.
    ///
    /// # Errors
    /// Of connections and of the store.
    async fn prepare(&self) -> Result<()>;

    /// Whether the store can hold so many bytes under this key.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) or [`TooLarge`](crate::ErrorKind::TooLarge).
    fn check(&self, key: &Key, bytes: usize) -> Result<()> {
        fits(self.abilities(), key, bytes)
    }

    /// Keeps blobs, in place of those with the same keys.
    ///
    /// # Errors
    /// Of [`check`](Blobs::check), before any is written; of connections and of the store.
    async fn put(&self, blobs: &[Blob]) -> Result<()>;

    /// Keeps blobs whose keys are new, by the fastest way the store has.
    ///
    /// # Errors
    /// As [`put`](Blobs::put).
    async fn load(&self, blobs: &[Blob]) -> Result<()> {
        self.put(blobs).await
    }

    /// Lets the store do what it has put off, as [`Store::settle`].
    ///
    /// # Errors
    /// Of connections and of the store.
    async fn settle(&self) -> Result<bool> {
        Ok(false)
    }

    /// The blobs of these keys, in their order.
    ///
    /// # Errors
    /// Of connections and of the store.
    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>>;

    /// Puts the bytes `new` in the place of the bytes `old` under a key, and says whether it did: where none are given as
    /// `old`, there must be no blob; where none are given as `new`, the blob is deleted. It is one step: of several that
    /// ask for the same, one succeeds. Nothing in the place of nothing does nothing, and the answer is `false`.
    ///
    /// # Errors
    /// Of [`check`](Blobs::check); [`Unsupported`](crate::ErrorKind::Unsupported) as [`Abilities::conditional`] tells;
    /// of connections and of the store. After an error of a connection it may be done or not.
    async fn swap(&self, _key: &Key, _old: Option<&[u8]>, _new: Option<&[u8]>) -> Result<bool> {
        self.abilities().can_conditional()?;
        Err(super::no(self.abilities(), "replace bytes on a condition"))
    }

    /// Deletes the blobs of these keys, and says how many there were.
    ///
    /// # Errors
    /// Of connections and of the store.
    async fn remove(&self, keys: &[Key]) -> Result<u64>;

    /// The blobs whose keys lie in a range, some at a time; as [`Store::scan`].
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) where a store cannot list what it has.
    async fn each(&self, range: &KeyRange) -> Result<BoxStream<'_, Result<Vec<Blob>>>>;

    /// How many there are; by default they are counted one by one.
    ///
    /// # Errors
    /// As [`each`](Blobs::each).
    async fn count(&self) -> Result<u64> {
        let mut batches = self.each(&KeyRange::all()).await?;
        let mut count = 0;
        while let Some(batch) = batches.try_next().await? {
            count += batch.len() as u64;
        }
        Ok(count)
    }

    /// As [`Store::split`].
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) where the store has no order of keys.
    async fn split(&self, parts: u32) -> Result<Vec<KeyRange>> {
        one_part(self.abilities(), parts)
    }

    /// Deletes the table and all in it.
    ///
    /// # Errors
    /// Of connections and of the store.
    async fn drop_table(&self) -> Result<()>;

    /// The statement that the store is sent for an operation, as [`Store::explain`]; here only
    /// [`Request::Get`], [`Request::Put`], [`Request::Load`] and [`Request::Scan`] are asked for.
    ///
    /// # Errors
    /// As the operation itself.
    async fn explain(&self, _request: Request<'_>) -> Result<Option<Explained>> {
        Ok(None)
    }

    /// What the store says of itself.
    ///
    /// # Errors
    /// Of connections and of the store.
    async fn describe(&self) -> Result<Description>;
}

/// Whether a key and so many bytes are within what a store can hold.
pub(super) fn fits(abilities: &Abilities, key: &Key, bytes: usize) -> Result<()> {
    let Abilities { driver, max_key, max_record, .. } = abilities;
    if key.len() > *max_key {
        return Err(Error::invalid(format!(
            "key {}: longer than {max_key} bytes, the limit of {driver}",
            key.shown()
        )));
    }
    if bytes > *max_record {
        return Err(Error::new(
            crate::ErrorKind::TooLarge,
            format!("key {}: {bytes} bytes; the limit of {driver} is {max_record}", key.shown()),
        ));
    }
    Ok(())
}

/// The only part of a store without an order of keys.
pub(super) fn one_part(abilities: &Abilities, parts: u32) -> Result<Vec<KeyRange>> {
    match parts {
        1 => Ok(vec![KeyRange::all()]),
        _ => Err(Error::unsupported(format!(
            "{} has no key order to split into parts",
            abilities.driver
        ))),
    }
}

/// What of queries needs more than single keys.
pub(super) const CANNOT: &[Need] =
    &[Need::Find, Need::Sort, Need::TextOrder, Need::Missing, Need::Not];

/// A store of records in a format, over a store of bytes.
pub struct Encoded {
    blobs: Arc<dyn Blobs>,
    coders: Arc<Coders>,
    digits: Digits,
    abilities: Abilities,
}

impl Encoded {
    /// The records that these blobs are, or shall be.
    ///
    /// # Errors
    /// Where there is no memory for the compressors of the wraps.
    pub fn new(blobs: Arc<dyn Blobs>, format: Wrapped) -> Result<Encoded> {
        let info = format.format.info();
        let abilities = Abilities {
            keeps: if info.takes == Takes::Marc { &[] } else { info.keeps },
            loses: info.loses,
            cannot: CANNOT,
            joins: false,
            ..blobs.abilities().clone()
        };
        let digits = Digits::of(&format);
        let coders = Coders { format, idle: Mutex::default() };
        coders.with(|_| Ok(()))?;
        Ok(Encoded { blobs, coders: Arc::new(coders), digits, abilities })
    }

    /// The same over other blobs.
    fn over(&self, blobs: Arc<dyn Blobs>) -> Encoded {
        let (coders, abilities) = (self.coders.clone(), self.abilities.clone());
        Encoded { blobs, coders, digits: self.digits, abilities }
    }

    /// Puts `new` in the place of what is under a key, or deletes it, if that is a record with this text in this field.
    /// The bytes that were read must be there still.
    async fn swap_record(
        &self,
        key: &Key,
        expected: &Expected,
        new: Option<&[u8]>,
    ) -> Result<bool> {
        /// How often it is tried: each time, somebody else has written a record that is as expected, too.
        const TRIES: usize = 30;
        for _ in 0..TRIES {
            let found = self.blobs.get(std::slice::from_ref(key)).await?.pop().flatten();
            let Some(old) = found else { return Ok(false) };
            let record = self.coders.with(|coder| coder.decode_document(&old));
            if !expected.fits(Some(&record.map_err(|e| named(e, key))?)) {
                return Ok(false);
            }
            if self.blobs.swap(key, Some(&old), new).await? {
                return Ok(true);
            }
        }
        Err(changing(key, TRIES))
    }

    fn encode(&self, rows: &[Row]) -> Result<Vec<Blob>> {
        /// Room for a small record, so that most are written without growing.
        const USUAL: usize = 256;
        let encode = |coder: &mut Coder, row: &Row| {
            let mut bytes = Vec::with_capacity(USUAL);
            let encoded = self.digits.check(&row.record);
            let encoded = encoded.and_then(|()| coder.encode_document(&row.record, &mut bytes));
            encoded.map_err(|e| named(e, &row.key))?;
            let blob = Blob { key: row.key.clone(), bytes };
            self.blobs.check(&blob.key, blob.bytes.len())?;
            Ok(blob)
        };
        self.coders.with(|coder| rows.iter().map(|row| encode(coder, row)).collect())
    }
}

/// The keys that a filter names, for a store that finds by single keys only. Each once.
pub(super) fn keys_of(abilities: &Abilities, filter: &Filter) -> Result<Vec<Key>> {
    abilities.can(&Query::new(filter.clone()))?;
    match named_keys(filter) {
        Some(keys) => Ok(keys.into_iter().collect()),
        None => Err(Error::unsupported(format!(
            "{} finds records in this layout by key only",
            abilities.driver
        ))),
    }
}

/// The keys that fit a filter, which needs nothing of [`CANNOT`]; none where every key does.
fn named_keys(filter: &Filter) -> Option<BTreeSet<Key>> {
    use super::query::Test;
    let keys = |values: &[Value]| {
        values.iter().filter_map(|v| v.as_str().and_then(|k| Key::new(k).ok())).collect()
    };
    match filter {
        Filter::All | Filter::Look(_) => None,
        Filter::And(all) => {
            let sets = all.iter().filter_map(named_keys);
            sets.reduce(|a, b| a.intersection(&b).cloned().collect())
        }
        Filter::Or(any) => any.iter().map(named_keys).try_fold(BTreeSet::new(), |mut all, one| {
            all.extend(one?);
            Some(all)
        }),
        Filter::Field(_, Test::Eq(value)) => Some(keys(std::slice::from_ref(value))),
        Filter::Field(_, Test::In(values)) => Some(keys(values)),
        // Less or greater than what is no text, which no key is.
        Filter::Not(_) | Filter::Field(..) => Some(BTreeSet::new()),
    }
}

/// The error of a record that others wrote each time between its being read and written, and that was as expected all the
/// while.
pub(super) fn changing(key: &Key, tries: usize) -> Error {
    let what = format!(
        "key {}: other clients changed the record {tries} times between reading and writing; nothing was written",
        key.shown()
    );
    Error::new(crate::ErrorKind::Conflict, what)
}

/// The error, saying which record it is about.
pub(super) fn named(error: Error, key: &Key) -> Error {
    Error::new(error.kind(), format!("key {}: {}", key.shown(), error.context())).with_source(error)
}

/// Coders of one format, which are used again: compressors take a while to make.
pub(super) struct Coders {
    format: Wrapped,
    idle: Mutex<Vec<Coder>>,
}

impl Coders {
    pub(super) fn new(format: Wrapped) -> Coders {
        Coders { format, idle: Mutex::default() }
    }

    pub(super) fn with<R>(&self, act: impl FnOnce(&mut Coder) -> Result<R>) -> Result<R> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        // The lock is gone before anything is encoded.
        let spare = idle().pop();
        let mut coder = match spare {
            Some(coder) => coder,
            None => Coder::new(self.format.clone())?,
        };
        let done = act(&mut coder);
        idle().push(coder);
        done
    }
}

#[async_trait]
impl Store for Encoded {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn shape(&self) -> Shape {
        Shape::Blob
    }

    fn table(&self, name: &str) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(self.over(self.blobs.table(name)?)))
    }

    fn part(&self, part: Part<'_>) -> Result<Option<Arc<dyn Store>>> {
        let blobs = self.blobs.part(part)?;
        Ok(blobs.map(|blobs| Arc::new(self.over(blobs)) as Arc<dyn Store>))
    }

    async fn tables(&self) -> Result<Vec<String>> {
        self.blobs.tables().await
    }

    fn blobs(&self) -> Option<(&dyn Blobs, &Wrapped)> {
        Some((&*self.blobs, &self.coders.format))
    }

    fn check(&self, row: &Row) -> Result<()> {
        self.encode(std::slice::from_ref(row)).map(drop)
    }

    async fn prepare(&self, layout: &Layout) -> Result<()> {
        layout.no_indexes(self.abilities.driver, Shape::Blob)?;
        self.blobs.prepare().await
    }

    async fn put(&self, rows: &[Row]) -> Result<()> {
        self.blobs.put(&self.encode(rows)?).await
    }

    async fn load(&self, rows: &[Row]) -> Result<()> {
        self.blobs.load(&self.encode(rows)?).await
    }

    async fn put_if(&self, row: &Row, expected: &Expected) -> Result<bool> {
        self.abilities.can_conditional()?;
        let blob = self.encode(std::slice::from_ref(row))?.remove(0);
        match expected {
            Expected::Absent => self.blobs.swap(&row.key, None, Some(&blob.bytes)).await,
            expected => self.swap_record(&row.key, expected, Some(&blob.bytes)).await,
        }
    }

    async fn remove_if(&self, key: &Key, expected: &Expected) -> Result<bool> {
        self.abilities.can_conditional()?;
        match expected {
            Expected::Absent => Ok(false),
            expected => self.swap_record(key, expected, None).await,
        }
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Document>>> {
        let found = self.blobs.get(keys).await?;
        self.coders.with(|coder| {
            let decode = |(key, bytes): (&Key, Option<Vec<u8>>)| {
                bytes
                    .map(|bytes| coder.decode_document(&bytes).map_err(|e| named(e, key)))
                    .transpose()
            };
            keys.iter().zip(found).map(decode).collect()
        })
    }

    async fn find(&self, query: &Query) -> Result<Rows<'_>> {
        query.check()?;
        if query.filter == Filter::All && query.sort.is_empty() {
            return Ok(cut(self.scan(&KeyRange::all()).await?, query));
        }
        self.abilities.can(query)?;
        let keys = keys_of(&self.abilities, &query.filter)?;
        let found = self.get(&keys).await?;
        let rows = keys.into_iter().zip(found).filter_map(|(key, record)| {
            record.map(|record| Row { key, record: query.project(record) })
        });
        let rows: Vec<_> = rows.take(query.limit.unwrap_or(u64::MAX) as usize).collect();
        Ok(super::in_batches(rows.into_iter()).boxed())
    }

    async fn delete(&self, filter: &Filter) -> Result<u64> {
        if *filter == Filter::All {
            let count = self.blobs.count().await?;
            self.blobs.drop_table().await?;
            self.blobs.prepare().await?;
            return Ok(count);
        }
        Query::new(filter.clone()).check()?;
        self.blobs.remove(&keys_of(&self.abilities, filter)?).await
    }

    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        self.blobs.remove(keys).await
    }

    async fn scan(&self, range: &KeyRange) -> Result<Rows<'_>> {
        let batches = self.blobs.each(range).await?;
        let decode = |batch: Vec<Blob>| {
            self.coders.with(|coder| {
                let decode = |Blob { key, bytes }| match coder.decode_document(&bytes) {
                    Ok(record) => Ok(Row { key, record }),
                    Err(e) => Err(named(e, &key)),
                };
                batch.into_iter().map(decode).collect()
            })
        };
        Ok(batches.map(move |batch| batch.and_then(decode)).boxed())
    }

    async fn count(&self) -> Result<u64> {
        self.blobs.count().await
    }

    async fn split(&self, parts: u32) -> Result<Vec<KeyRange>> {
        self.blobs.split(parts).await
    }

    async fn drop_table(&self) -> Result<()> {
        self.blobs.drop_table().await
    }

    async fn settle(&self) -> Result<bool> {
        self.blobs.settle().await
    }

    async fn explain(&self, request: Request<'_>) -> Result<Option<Explained>> {
        match request {
            Request::Get(_) | Request::Put(_) | Request::Load(_) | Request::Scan(_) => {
                self.blobs.explain(request).await
            }
            // Answered by the others, or not at all.
            Request::Find(_) | Request::Join(_) | Request::Delete(_) => Ok(None),
        }
    }

    async fn describe(&self) -> Result<Description> {
        let format = Some(self.coders.format.to_string());
        Ok(Description { shape: Shape::Blob, format, ..self.blobs.describe().await? })
    }
}
