//! A store that is slower by a known share: for trying whether a bench finds what is there.
//!
//! `sqlite?delay=10%` busy-waits a tenth of the time of each call after it. It is exact for operations
//! that are sent one after another; where several are on their way at once, each waits in the others'
//! time too.

use std::{
    cell::Cell,
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use async_stream::try_stream;
use async_trait::async_trait;
use futures_util::TryStreamExt;

use crate::{
    Error, Result,
    format::Wrapped,
    record::Document,
    store::{
        Abilities, Blobs, Description, Expected, Explained, Filter, Join, Joined, Key, KeyRange,
        Layout, Part, Query, Request, Row, Rows, Shape, Store,
    },
};

/// A store and the share of its time by which it is slowed.
pub(super) struct Delayed {
    inner: Arc<dyn Store>,
    share: f64,
}

/// A share as it is typed: `10%`.
///
/// # Errors
/// [`Invalid`](crate::ErrorKind::Invalid) where it is none.
pub(super) fn share(text: &str) -> Result<f64> {
    let number = text.trim_end_matches('%').parse::<f64>().ok();
    let share = number.filter(|percent| (0.0..=1000.0).contains(percent)).map(|n| n / 100.0);
    share.ok_or_else(|| Error::invalid(format!("delay={text}: a percentage such as 10%")))
}

thread_local! {
    /// How long this thread has waited so far.
    static WAITED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// When a call began. Several calls may share a thread: what others waited meanwhile is not the
/// store's time, or each wait would lengthen the next.
struct Begin {
    at: Instant,
    waited: Duration,
}

impl Begin {
    fn now() -> Begin {
        Begin { at: Instant::now(), waited: WAITED.get() }
    }

    fn took(&self) -> Duration {
        self.at.elapsed().saturating_sub(WAITED.get().saturating_sub(self.waited))
    }
}

impl Delayed {
    pub(super) fn around(inner: Arc<dyn Store>, share: f64) -> Arc<dyn Store> {
        Arc::new(Delayed { inner, share })
    }

    async fn slowed<T>(&self, call: impl Future<Output = T> + Send) -> T {
        let begin = Begin::now();
        let done = call.await;
        self.wait(&begin);
        done
    }

    /// Keeps the processor busy for a share of the time since `begin`.
    fn wait(&self, begin: &Begin) {
        let extra = self.extra(begin.took());
        let until = Instant::now() + extra;
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        WAITED.set(WAITED.get() + extra);
    }

    fn extra(&self, took: Duration) -> Duration {
        took.mul_f64(self.share)
    }

    /// Rows whose batches come later by their share.
    fn rows<'a>(&'a self, mut rows: Rows<'a>) -> Rows<'a> {
        Box::pin(try_stream! {
            loop {
                let begin = Begin::now();
                let batch = rows.try_next().await?;
                self.wait(&begin);
                match batch {
                    Some(batch) => yield batch,
                    None => break,
                }
            }
        })
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Store for Delayed {
    fn abilities(&self) -> &Abilities {
        self.inner.abilities()
    }

    fn shape(&self) -> Shape {
        self.inner.shape()
    }

    fn table(&self, name: &str) -> Result<Arc<dyn Store>> {
        Ok(Delayed::around(self.inner.table(name)?, self.share))
    }

    fn part(&self, part: Part<'_>) -> Result<Option<Arc<dyn Store>>> {
        Ok(self.inner.part(part)?.map(|inner| Delayed::around(inner, self.share)))
    }

    async fn tables(&self) -> Result<Vec<String>> {
        self.inner.tables().await
    }

    fn blobs(&self) -> Option<(&dyn Blobs, &Wrapped)> {
        None
    }

    fn check(&self, row: &Row) -> Result<()> {
        self.inner.check(row)
    }

    async fn prepare(&self, layout: &Layout) -> Result<()> {
        self.slowed(self.inner.prepare(layout)).await
    }

    async fn put(&self, rows: &[Row]) -> Result<()> {
        self.slowed(self.inner.put(rows)).await
    }

    async fn load(&self, rows: &[Row]) -> Result<()> {
        self.slowed(self.inner.load(rows)).await
    }

    async fn put_each(&self, rows: &[Row]) -> Result<()> {
        self.slowed(self.inner.put_each(rows)).await
    }

    async fn put_if(&self, row: &Row, expected: &Expected) -> Result<bool> {
        self.slowed(self.inner.put_if(row, expected)).await
    }

    async fn remove_if(&self, key: &Key, expected: &Expected) -> Result<bool> {
        self.slowed(self.inner.remove_if(key, expected)).await
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Document>>> {
        self.slowed(self.inner.get(keys)).await
    }

    async fn find(&self, query: &Query) -> Result<Rows<'_>> {
        let rows = self.slowed(self.inner.find(query)).await?;
        Ok(self.rows(rows))
    }

    async fn join(&self, join: &Join) -> Result<Vec<Joined>> {
        self.slowed(self.inner.join(join)).await
    }

    async fn delete(&self, filter: &Filter) -> Result<u64> {
        self.slowed(self.inner.delete(filter)).await
    }

    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        self.slowed(self.inner.remove(keys)).await
    }

    async fn scan(&self, range: &KeyRange) -> Result<Rows<'_>> {
        let rows = self.slowed(self.inner.scan(range)).await?;
        Ok(self.rows(rows))
    }

    async fn count(&self) -> Result<u64> {
        self.slowed(self.inner.count()).await
    }

    async fn split(&self, parts: u32) -> Result<Vec<KeyRange>> {
        self.inner.split(parts).await
    }

    async fn drop_table(&self) -> Result<()> {
        self.inner.drop_table().await
    }

    async fn settle(&self) -> Result<bool> {
        self.slowed(self.inner.settle()).await
    }

    async fn analyze(&self) -> Result<()> {
        self.inner.analyze().await
    }

    async fn index_bytes(&self) -> Result<Option<u64>> {
        self.inner.index_bytes().await
    }

    async fn database_bytes(&self) -> Result<Option<u64>> {
        self.inner.database_bytes().await
    }

    async fn explain(&self, request: Request<'_>) -> Result<Option<Explained>> {
        self.inner.explain(request).await
    }

    async fn describe(&self) -> Result<Description> {
        self.inner.describe().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_a_percentage() {
        assert_eq!(share("10%").unwrap(), 0.1);
        assert_eq!(share("2.5").unwrap(), 0.025);
        for bad in ["", "%", "-1%", "1e9%", "ten"] {
            assert!(share(bad).unwrap_err().to_string().contains("10%"), "{bad}");
        }
    }

    #[tokio::test]
    async fn it_does_the_same_and_waits_its_share() {
        let place = crate::store::open("memory:").await.unwrap();
        let store = Delayed::around(place.store().clone(), 0.5);
        let row = Row { key: Key::new("a").unwrap(), record: Document::new() };
        store.load(std::slice::from_ref(&row)).await.unwrap();
        assert_eq!(store.get(std::slice::from_ref(&row.key)).await.unwrap().len(), 1);
        let rows: Vec<Vec<Row>> =
            store.scan(&KeyRange::all()).await.unwrap().try_collect().await.unwrap();
        assert_eq!((rows.len(), store.count().await.unwrap()), (1, 1));
        let delayed = Delayed { inner: place.store().clone(), share: 0.5 };
        assert_eq!(delayed.extra(Duration::from_secs(3)), Duration::from_millis(1500));
    }
}
