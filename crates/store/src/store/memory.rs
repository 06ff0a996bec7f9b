//! `memory:` — records in this process, gone when it ends. The meaning of every operation, and
//! what other stores are tested against.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Bound,
    sync::{
        Arc, LazyLock, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream, stream::BoxStream};

use super::{
    Abilities, Blob, Blobs, Client, Common, Description, Driver, Encoded, Expected, Facts, Filter,
    Join, Joined, Key, KeyRange, Layout, Login, Query, Row, Rows, Shape, Store, Url, blobs,
    blobs::CANNOT, join::Groups,
};
use crate::{
    Error, Result,
    durability::Tier,
    record::{Document, Kind},
};

pub(super) const DRIVER: Driver = Driver {
    name: "memory",
    aliases: &[],
    example: "memory:name",
    about: "in the memory of this process; one store for each name",
    shapes: &[Shape::Document, Shape::Blob],
    facts: &[
        Facts::of(Shape::Document, ABILITIES),
        Facts::of(Shape::Blob, Abilities { cannot: CANNOT, joins: false, ..ABILITIES }),
    ],
    limits: "",
    tiers: &[Tier::T0],
    clients: &[Client::Own],
    servers: &[],
    login: Login::None,
    databases: None,
    open,
};

const ABILITIES: Abilities = Abilities {
    driver: "memory",
    keeps: &Kind::ALL,
    loses: "",
    cannot: &[],
    joins: true,
    atomic: true,
    conditional: true,
    ordered: true,
    max_key: 1 << 20,
    max_record: 1 << 31,
};

/// Tables by place and name, for this process.
type Tables<T> = Mutex<HashMap<(String, String), Arc<Table<T>>>>;
static DOCUMENTS: LazyLock<Tables<Document>> = LazyLock::new(Mutex::default);
static BLOBS: LazyLock<Tables<Vec<u8>>> = LazyLock::new(Mutex::default);

fn open(url: Url, common: Common) -> BoxFuture<'static, Result<Arc<dyn Store>>> {
    async move {
        url.done()?;
        if let Some(tier @ (Tier::T1 | Tier::T2 | Tier::T3)) = common.durability {
            return Err(tier.refused("memory", &[Tier::T0]));
        }
        // Without a name it is nobody else's.
        let place = match &*url.path {
            "" => Key::fresh().to_string(),
            name => name.to_owned(),
        };
        Ok(match common.shape("memory", DRIVER.shapes)? {
            Shape::Blob => {
                let blobs = Arc::new(Memory::open(&BLOBS, place, common.table.clone()));
                Arc::new(Encoded::new(blobs, common.blob_format())?) as Arc<dyn Store>
            }
            _ => Arc::new(Memory::open(&DOCUMENTS, place, common.table)),
        })
    }
    .boxed()
}

/// What is kept, by key.
struct Table<T> {
    records: RwLock<BTreeMap<Key, T>>,
    /// It was made, or written to, and not dropped since. Changed by who may write the records.
    is_there: AtomicBool,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table { records: RwLock::default(), is_there: AtomicBool::new(false) }
    }
}

/// A table of a place in memory.
struct Memory<T: 'static> {
    all: &'static Tables<T>,
    place: String,
    table: Arc<Table<T>>,
}

impl<T: Clone + Send + Sync> Memory<T> {
    fn open(all: &'static Tables<T>, place: String, name: String) -> Self {
        let mut tables = all.lock().unwrap_or_else(PoisonError::into_inner);
        let table = tables.entry((place.clone(), name)).or_default().clone();
        Memory { all, place, table }
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<Key, T>> {
        self.table.records.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<Key, T>> {
        self.table.records.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn make(&self) {
        let _records = self.write();
        self.table.is_there.store(true, Ordering::Relaxed);
    }

    /// Adds records to those there are. With the first one the table is there.
    fn extend(&self, records: &mut BTreeMap<Key, T>, more: impl Iterator<Item = (Key, T)>) {
        records.extend(more);
        if !records.is_empty() {
            self.table.is_there.store(true, Ordering::Relaxed);
        }
    }

    fn clear(&self) {
        let mut records = self.write();
        records.clear();
        self.table.is_there.store(false, Ordering::Relaxed);
    }

    /// The names of the tables of this place.
    fn names(&self) -> Vec<String> {
        let tables = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let of_place = tables.iter().filter(|((place, _), table)| {
            *place == self.place && table.is_there.load(Ordering::Relaxed)
        });
        let mut names: Vec<String> = of_place.map(|((_, name), _)| name.clone()).collect();
        names.sort_unstable();
        names
    }

    fn found(&self, keys: &[Key]) -> Vec<Option<T>> {
        let records = self.read();
        keys.iter().map(|key| records.get(key).cloned()).collect()
    }

    /// Puts something in the place of what is under a key, or deletes it, if that fits; says whether it did.
    fn swap_if(&self, key: &Key, fits: impl FnOnce(Option<&T>) -> bool, new: Option<T>) -> bool {
        let mut records = self.write();
        if !fits(records.get(key)) {
            return false;
        }
        match new {
            Some(new) => {
                self.extend(&mut records, std::iter::once((key.clone(), new)));
                true
            }
            None => records.remove(key).is_some(),
        }
    }

    fn removed(&self, keys: &[Key]) -> u64 {
        let mut records = self.write();
        keys.iter().filter(|key| records.remove(key).is_some()).count() as u64
    }

    /// All in a range, some at a time. The lock is not held between: who reads a batch may write.
    fn batches<R: Send + 'static>(
        &self,
        range: &KeyRange,
        make: fn(Key, T) -> R,
    ) -> BoxStream<'_, Result<Vec<R>>> {
        const BATCH: usize = 1000;
        let from = range.from.clone().map_or(Bound::Unbounded, Bound::Included);
        let until = range.until.clone().map_or(Bound::Unbounded, Bound::Excluded);
        if let (Bound::Included(from), Bound::Excluded(until)) = (&from, &until)
            && from >= until
        {
            return stream::empty().boxed();
        }
        stream::iter(std::iter::successors(Some((from, Vec::new())), move |(from, _)| {
            let records = self.read();
            let batch: Vec<_> = records
                .range((from.clone(), until.clone()))
                .take(BATCH)
                .map(|(key, record)| (key.clone(), record.clone()))
                .collect();
            let last = batch.last()?.0.clone();
            Some((Bound::Excluded(last), batch))
        }))
        .skip(1)
        .map(move |(_, batch)| {
            Ok(batch.into_iter().map(|(key, record)| make(key, record)).collect())
        })
        .boxed()
    }

    fn parts(&self, parts: u32) -> Vec<KeyRange> {
        let parts = parts.max(1);
        let records = self.read();
        let each = records.len().div_ceil(parts as usize).max(1);
        let mut borders: Vec<_> = records.keys().step_by(each).skip(1).cloned().collect();
        borders.truncate(parts as usize - 1);
        let mut ranges = KeyRange::between(borders);
        // Fewer records than parts: the rest is empty.
        if let Some(last) = records.keys().next_back() {
            let past = Key::new(format!("{last}\0")).expect("not empty");
            while ranges.len() < parts as usize {
                let all = ranges.pop().expect("one at least");
                ranges.push(KeyRange { from: all.from, until: Some(past.clone()) });
                ranges.push(KeyRange { from: Some(past.clone()), until: None });
            }
        }
        ranges
    }

    fn description(&self, shape: Shape) -> Description {
        Description {
            client: Client::Own,
            product: "memory".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            shape,
            format: None,
            asked: None,
            set: Some(Tier::T0),
            bound: None,
            limit: None,
            settings: Vec::new(),
            disk: None,
        }
    }
}

#[async_trait]
impl Store for Memory<Document> {
    fn abilities(&self) -> &Abilities {
        &ABILITIES
    }

    fn shape(&self) -> Shape {
        Shape::Document
    }

    fn table(&self, name: &str) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(Memory::open(self.all, self.place.clone(), name.into())))
    }

    async fn tables(&self) -> Result<Vec<String>> {
        Ok(self.names())
    }

    fn check(&self, row: &Row) -> Result<()> {
        blobs::fits(&ABILITIES, &row.key, 0)
    }

    async fn prepare(&self, _: &Layout) -> Result<()> {
        self.make();
        Ok(())
    }

    async fn put(&self, rows: &[Row]) -> Result<()> {
        rows.iter().try_for_each(|row| self.check(row))?;
        let mut records = self.write();
        let rows = rows.iter().map(|row| (row.key.clone(), row.record.clone()));
        self.extend(&mut records, rows);
        Ok(())
    }

    async fn load(&self, rows: &[Row]) -> Result<()> {
        rows.iter().try_for_each(|row| self.check(row))?;
        let mut records = self.write();
        let mut new = std::collections::HashSet::with_capacity(rows.len());
        if let Some(row) =
            rows.iter().find(|row| records.contains_key(&row.key) || !new.insert(&row.key))
        {
            let what = format!("key {} already exists", row.key.shown());
            return Err(Error::new(crate::ErrorKind::Conflict, what));
        }
        let rows = rows.iter().map(|row| (row.key.clone(), row.record.clone()));
        self.extend(&mut records, rows);
        Ok(())
    }

    async fn put_if(&self, row: &Row, expected: &Expected) -> Result<bool> {
        self.check(row)?;
        let fits = |there: Option<&Document>| expected.fits(there);
        Ok(self.swap_if(&row.key, fits, Some(row.record.clone())))
    }

    async fn remove_if(&self, key: &Key, expected: &Expected) -> Result<bool> {
        Ok(self.swap_if(key, |there| expected.fits(there), None))
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Document>>> {
        Ok(self.found(keys))
    }

    async fn find(&self, query: &Query) -> Result<Rows<'_>> {
        query.check()?;
        let mut rows: Vec<Row> = {
            let records = self.read();
            let fits = records.iter().filter(|(key, record)| query.matches(key, record));
            fits.map(|(key, record)| Row { key: key.clone(), record: record.clone() }).collect()
        };
        if !query.sort.is_empty() {
            rows.sort_by(|a, b| query.order(a, b));
        }
        rows.truncate(query.limit.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX)));
        for row in &mut rows {
            row.record = query.project(std::mem::take(&mut row.record));
        }
        Ok(super::in_batches(rows.into_iter()).boxed())
    }

    async fn join(&self, join: &Join) -> Result<Vec<Joined>> {
        let query = Query::new(join.filter.clone());
        query.check()?;
        let mut own: HashMap<String, Vec<Row>> = HashMap::new();
        for (key, record) in self.read().iter().filter(|(key, record)| query.matches(key, record)) {
            if let Some(text) = join.on.text_in(key, record) {
                let row = Row { key: key.clone(), record: record.clone() };
                own.entry(text.to_owned()).or_default().push(row);
            }
        }
        // Not before the first lock is gone: it may be the same table.
        let other = Memory::open(self.all, self.place.clone(), join.table.clone());
        let mut groups = Groups::default();
        for (key, record) in other.read().iter() {
            let text = join.field.text_in(key, record);
            for of in text.and_then(|text| own.get(text)).into_iter().flatten() {
                let row = Row { key: key.clone(), record: record.clone() };
                groups.add(of.key.clone(), || Ok(of.record.clone()), row)?;
            }
        }
        Ok(groups.done())
    }

    async fn delete(&self, filter: &Filter) -> Result<u64> {
        let query = Query::new(filter.clone());
        query.check()?;
        let mut records = self.write();
        let before = records.len();
        records.retain(|key, record| !query.matches(key, record));
        Ok((before - records.len()) as u64)
    }

    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        Ok(self.removed(keys))
    }

    async fn scan(&self, range: &KeyRange) -> Result<Rows<'_>> {
        Ok(self.batches(range, |key, record| Row { key, record }))
    }

    async fn count(&self) -> Result<u64> {
        Ok(self.read().len() as u64)
    }

    async fn split(&self, parts: u32) -> Result<Vec<KeyRange>> {
        Ok(self.parts(parts))
    }

    async fn drop_table(&self) -> Result<()> {
        self.clear();
        Ok(())
    }

    async fn describe(&self) -> Result<Description> {
        Ok(self.description(Shape::Document))
    }
}

#[async_trait]
impl Blobs for Memory<Vec<u8>> {
    fn abilities(&self) -> &Abilities {
        &ABILITIES
    }

    fn table(&self, name: &str) -> Result<Arc<dyn Blobs>> {
        Ok(Arc::new(Memory::open(self.all, self.place.clone(), name.into())))
    }

    async fn tables(&self) -> Result<Vec<String>> {
        Ok(self.names())
    }

    async fn prepare(&self) -> Result<()> {
        self.make();
        Ok(())
    }

    async fn put(&self, blobs: &[Blob]) -> Result<()> {
        blobs.iter().try_for_each(|blob| self.check(&blob.key, blob.bytes.len()))?;
        let blobs = blobs.iter().map(|blob| (blob.key.clone(), blob.bytes.clone()));
        self.extend(&mut self.write(), blobs);
        Ok(())
    }

    async fn swap(&self, key: &Key, old: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool> {
        self.check(key, new.map_or(0, <[u8]>::len))?;
        let fits = |there: Option<&Vec<u8>>| there.map(Vec::as_slice) == old;
        Ok(self.swap_if(key, fits, new.map(<[u8]>::to_vec)))
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>> {
        Ok(self.found(keys))
    }

    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        Ok(self.removed(keys))
    }

    async fn each(&self, range: &KeyRange) -> Result<BoxStream<'_, Result<Vec<Blob>>>> {
        Ok(self.batches(range, |key, bytes| Blob { key, bytes }))
    }

    async fn count(&self) -> Result<u64> {
        Ok(self.read().len() as u64)
    }

    async fn split(&self, parts: u32) -> Result<Vec<KeyRange>> {
        Ok(self.parts(parts))
    }

    async fn drop_table(&self) -> Result<()> {
        self.clear();
        Ok(())
    }

    async fn describe(&self) -> Result<Description> {
        Ok(self.description(Shape::Blob))
    }
}
