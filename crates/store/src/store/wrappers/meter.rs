//! Metrics of a store: [`Meter`] counts operations, rows and errors, and adds up the time they take.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use async_stream::try_stream;
use async_trait::async_trait;
use futures_util::TryStreamExt;

use crate::{
    Result,
    format::Wrapped,
    record::Document,
    store::{
        Abilities, Blobs, Description, Expected, Explained, Filter, Join, Joined, Key, KeyRange,
        Layout, Query, Request, Row, Rows, Shape, Store,
    },
};

/// A monotonic clock: the time since some fixed moment.
pub type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// The operations of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Operation {
    Prepare,
    Put,
    Load,
    Get,
    Find,
    Join,
    Delete,
    Remove,
    Scan,
    Count,
    Split,
    Drop,
    Describe,
}

impl Operation {
    /// Every operation, in the order of the variants.
    pub const ALL: [Operation; 13] = [
        Operation::Prepare,
        Operation::Put,
        Operation::Load,
        Operation::Get,
        Operation::Find,
        Operation::Join,
        Operation::Delete,
        Operation::Remove,
        Operation::Scan,
        Operation::Count,
        Operation::Split,
        Operation::Drop,
        Operation::Describe,
    ];
}

/// What was counted of one operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of calls; a stream counts once.
    pub operations: u64,
    /// Rows written, read or deleted by calls that succeeded; rows of a stream count as they arrive.
    pub rows: u64,
    /// How often it failed.
    pub errors: u64,
    /// Total time of the calls; of streams, without the time between batches.
    pub time: Duration,
}

/// What was counted of every operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals([Counts; Operation::ALL.len()]);

impl Totals {
    /// The counts of one operation.
    pub fn of(&self, operation: Operation) -> Counts {
        self.0[operation as usize]
    }

    /// The counts of all operations together.
    pub fn all(&self) -> Counts {
        self.0.iter().fold(Counts::default(), |sum, one| Counts {
            operations: sum.operations + one.operations,
            rows: sum.rows + one.rows,
            errors: sum.errors + one.errors,
            time: sum.time + one.time,
        })
    }
}

/// Counts that several tasks add to.
#[derive(Default)]
struct Cell {
    operations: AtomicU64,
    rows: AtomicU64,
    errors: AtomicU64,
    nanos: AtomicU64,
}

/// A store that counts its operations and their time. All its tables count together.
pub struct Meter {
    inner: Arc<dyn Store>,
    cells: Arc<[Cell; Operation::ALL.len()]>,
    clock: Clock,
}

impl Meter {
    /// Counts the operations of a store, timed by this clock.
    pub fn new(inner: Arc<dyn Store>, clock: Clock) -> Meter {
        Meter { inner, cells: Arc::default(), clock }
    }

    /// Like [`new`](Meter::new), with the system's monotonic clock.
    pub fn timed(inner: Arc<dyn Store>) -> Meter {
        let begin = Instant::now();
        Meter::new(inner, Arc::new(move || begin.elapsed()))
    }

    /// What was counted so far.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for (counts, cell) in totals.0.iter_mut().zip(&*self.cells) {
            let value = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
            *counts = Counts {
                operations: value(&cell.operations),
                rows: value(&cell.rows),
                errors: value(&cell.errors),
                time: Duration::from_nanos(value(&cell.nanos)),
            };
        }
        totals
    }

    /// Adds what some part of an operation did.
    fn add<T>(&self, what: Operation, begin: Duration, done: &Result<T>, rows: impl Fn(&T) -> u64) {
        let cell = &self.cells[what as usize];
        let time = (self.clock)().saturating_sub(begin);
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        cell.nanos.fetch_add(nanos, Ordering::Relaxed);
        match done {
            Ok(done) => cell.rows.fetch_add(rows(done), Ordering::Relaxed),
            Err(_) => cell.errors.fetch_add(1, Ordering::Relaxed),
        };
    }

    async fn measured<T>(
        &self,
        what: Operation,
        done: impl Future<Output = Result<T>>,
        rows: impl Fn(&T) -> u64,
    ) -> Result<T> {
        self.cells[what as usize].operations.fetch_add(1, Ordering::Relaxed);
        let begin = (self.clock)();
        let done = done.await;
        self.add(what, begin, &done, rows);
        done
    }

    /// A stream whose batches are counted and timed as they are fetched.
    fn counted<'a>(&'a self, what: Operation, mut rows: Rows<'a>) -> Rows<'a> {
        Box::pin(try_stream! {
            loop {
                let begin = (self.clock)();
                let batch = rows.try_next().await;
                self.add(what, begin, &batch, |b| b.as_ref().map_or(0, |b| b.len() as u64));
                match batch? {
                    Some(batch) => yield batch,
                    None => break,
                }
            }
        })
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Store for Meter {
    fn abilities(&self) -> &Abilities {
        self.inner.abilities()
    }

    fn shape(&self) -> Shape {
        self.inner.shape()
    }

    fn table(&self, name: &str) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(Meter {
            inner: self.inner.table(name)?,
            cells: self.cells.clone(),
            clock: self.clock.clone(),
        }))
    }

    /// Counts as what it is nearest to: a question about the place, not about records.
    async fn tables(&self) -> Result<Vec<String>> {
        self.measured(Operation::Describe, self.inner.tables(), |_| 0).await
    }

    fn blobs(&self) -> Option<(&dyn Blobs, &Wrapped)> {
        None
    }

    fn check(&self, row: &Row) -> Result<()> {
        self.inner.check(row)
    }

    async fn prepare(&self, layout: &Layout) -> Result<()> {
        self.measured(Operation::Prepare, self.inner.prepare(layout), |()| 0).await
    }

    async fn put(&self, rows: &[Row]) -> Result<()> {
        self.measured(Operation::Put, self.inner.put(rows), |()| rows.len() as u64).await
    }

    async fn load(&self, rows: &[Row]) -> Result<()> {
        self.measured(Operation::Load, self.inner.load(rows), |()| rows.len() as u64).await
    }

    async fn put_each(&self, rows: &[Row]) -> Result<()> {
        self.measured(Operation::Put, self.inner.put_each(rows), |()| rows.len() as u64).await
    }

    async fn put_if(&self, row: &Row, expected: &Expected) -> Result<bool> {
        let done = self.inner.put_if(row, expected);
        self.measured(Operation::Put, done, |done| u64::from(*done)).await
    }

    async fn remove_if(&self, key: &Key, expected: &Expected) -> Result<bool> {
        let done = self.inner.remove_if(key, expected);
        self.measured(Operation::Remove, done, |done| u64::from(*done)).await
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Document>>> {
        let found = |found: &Vec<Option<Document>>| found.iter().flatten().count() as u64;
        self.measured(Operation::Get, self.inner.get(keys), found).await
    }

    async fn find(&self, query: &Query) -> Result<Rows<'_>> {
        let rows = self.measured(Operation::Find, self.inner.find(query), |_| 0).await?;
        Ok(self.counted(Operation::Find, rows))
    }

    async fn join(&self, join: &Join) -> Result<Vec<Joined>> {
        let rows = |all: &Vec<Joined>| all.iter().map(|one| 1 + one.others.len() as u64).sum();
        self.measured(Operation::Join, self.inner.join(join), rows).await
    }

    async fn delete(&self, filter: &Filter) -> Result<u64> {
        self.measured(Operation::Delete, self.inner.delete(filter), |n| *n).await
    }

    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        self.measured(Operation::Remove, self.inner.remove(keys), |n| *n).await
    }

    async fn scan(&self, range: &KeyRange) -> Result<Rows<'_>> {
        let rows = self.measured(Operation::Scan, self.inner.scan(range), |_| 0).await?;
        Ok(self.counted(Operation::Scan, rows))
    }

    async fn count(&self) -> Result<u64> {
        self.measured(Operation::Count, self.inner.count(), |_| 0).await
    }

    async fn split(&self, parts: u32) -> Result<Vec<KeyRange>> {
        self.measured(Operation::Split, self.inner.split(parts), |_| 0).await
    }

    async fn drop_table(&self) -> Result<()> {
        self.measured(Operation::Drop, self.inner.drop_table(), |()| 0).await
    }

    async fn settle(&self) -> Result<bool> {
        self.inner.settle().await
    }

    async fn analyze(&self) -> Result<()> {
        self.inner.analyze().await
    }

    async fn index_bytes(&self) -> Result<Option<u64>> {
        self.inner.index_bytes().await
    }

    async fn explain(&self, request: Request<'_>) -> Result<Option<Explained>> {
        self.inner.explain(request).await
    }

    async fn describe(&self) -> Result<Description> {
        self.measured(Operation::Describe, self.inner.describe(), |_| 0).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::open;

    #[tokio::test]
    async fn every_operation_is_counted_and_timed_by_the_clock_it_was_given() {
        let place = open("memory:").await.unwrap();
        // Each look at it takes a second.
        let ticks = AtomicU64::new(0);
        let clock = move || Duration::from_secs(ticks.fetch_add(1, Ordering::Relaxed));
        let meter = Meter::new(place.store().clone(), Arc::new(clock));
        let key = |i: usize| Key::new(format!("k{i:05}")).unwrap();
        let rows: Vec<_> =
            (0..1500).map(|i| Row { key: key(i), record: Document::new() }).collect();
        meter.load(&rows).await.unwrap();
        meter.load(&rows).await.unwrap_err();
        meter.get(&[key(1), key(9999), key(2)]).await.unwrap();
        let scanned: Vec<_> =
            meter.scan(&KeyRange::all()).await.unwrap().try_collect().await.unwrap();
        assert_eq!(scanned.len(), 2);
        meter.table("other").unwrap().put(&rows[..3]).await.unwrap();
        assert_eq!(meter.delete(&Filter::All).await.unwrap(), 1500);

        let totals = meter.totals();
        let counts = |operations, rows, errors, seconds| Counts {
            operations,
            rows,
            errors,
            time: Duration::from_secs(seconds),
        };
        assert_eq!(totals.of(Operation::Load), counts(2, 1500, 1, 2));
        assert_eq!(totals.of(Operation::Get), counts(1, 2, 0, 1));
        // Opened, two batches, the end.
        assert_eq!(totals.of(Operation::Scan), counts(1, 1500, 0, 4));
        assert_eq!(totals.of(Operation::Put), counts(1, 3, 0, 1));
        assert_eq!(totals.of(Operation::Delete), counts(1, 1500, 0, 1));
        assert_eq!(totals.of(Operation::Find), Counts::default());
        assert_eq!(totals.all(), counts(6, 4505, 1, 9));
    }
}
