//! A concurrency limit: [`Limit`] runs a bounded number of operations at once; the others wait, up to a timeout.

use std::{sync::Arc, time::Duration};

use async_stream::try_stream;
use async_trait::async_trait;
use futures_util::TryStreamExt;

use crate::{
    Error, Result,
    format::Wrapped,
    record::Document,
    store::{
        Abilities, Blobs, Description, Expected, Explained, Filter, Join, Joined, Key, KeyRange,
        Layout, Query, Request, Row, Rows, Shape, Store,
        limits::Limits,
        pool::{Pool, Turn, Turns},
    },
};

/// A store with a limit on concurrent operations.
///
/// A stream counts while a batch of it is being fetched, not while the batch is being worked on: a
/// put for each batch of a scan does not wait for the scan, even where the limit is one. All tables
/// of the store share the limit.
pub struct Limit {
    inner: Arc<dyn Store>,
    turns: Arc<Turns>,
}

impl Limit {
    /// `at_once` operations at once; one that has waited for `patience` fails.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for a limit of none.
    pub fn new(inner: Arc<dyn Store>, at_once: usize, patience: Duration) -> Result<Limit> {
        if at_once == 0 {
            return Err(Error::invalid("a limit of 0 operations at once"));
        }
        let limits = Limits { connect: patience, operation: patience, pool: at_once };
        Ok(Limit { inner, turns: Arc::new(Turns::new(limits, "")) })
    }

    /// Waits for its turn.
    async fn turn(&self) -> Result<Turn<'_>> {
        // It is no connection that is not free, and so no `?pool` that could be larger.
        Pool::turn(&*self.turns).await.map_err(|_| {
            let Limits { operation, pool, .. } = self.turns.limits();
            Error::timeout(format!(
                "none of {pool} operations ended within {} s; run fewer at once, or raise the limit",
                operation.as_secs_f64()
            ))
        })
    }

    /// A stream that takes its turn for each batch.
    fn in_turns<'a>(&'a self, mut rows: Rows<'a>) -> Rows<'a> {
        Box::pin(try_stream! {
            loop {
                let turn = self.turn().await?;
                let batch = rows.try_next().await;
                drop(turn);
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
impl Store for Limit {
    fn abilities(&self) -> &Abilities {
        self.inner.abilities()
    }

    fn shape(&self) -> Shape {
        self.inner.shape()
    }

    fn table(&self, name: &str) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(Limit { inner: self.inner.table(name)?, turns: self.turns.clone() }))
    }

    async fn tables(&self) -> Result<Vec<String>> {
        let _turn = self.turn().await?;
        self.inner.tables().await
    }

    fn blobs(&self) -> Option<(&dyn Blobs, &Wrapped)> {
        None
    }

    fn check(&self, row: &Row) -> Result<()> {
        self.inner.check(row)
    }

    async fn prepare(&self, layout: &Layout) -> Result<()> {
        let _turn = self.turn().await?;
        self.inner.prepare(layout).await
    }

    async fn put(&self, rows: &[Row]) -> Result<()> {
        let _turn = self.turn().await?;
        self.inner.put(rows).await
    }

    async fn load(&self, rows: &[Row]) -> Result<()> {
        let _turn = self.turn().await?;
        self.inner.load(rows).await
    }

    async fn put_each(&self, rows: &[Row]) -> Result<()> {
        let _turn = self.turn().await?;
        self.inner.put_each(rows).await
    }

    async fn put_if(&self, row: &Row, expected: &Expected) -> Result<bool> {
        let _turn = self.turn().await?;
        self.inner.put_if(row, expected).await
    }

    async fn remove_if(&self, key: &Key, expected: &Expected) -> Result<bool> {
        let _turn = self.turn().await?;
        self.inner.remove_if(key, expected).await
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Document>>> {
        let _turn = self.turn().await?;
        self.inner.get(keys).await
    }

    async fn find(&self, query: &Query) -> Result<Rows<'_>> {
        let _turn = self.turn().await?;
        Ok(self.in_turns(self.inner.find(query).await?))
    }

    async fn join(&self, join: &Join) -> Result<Vec<Joined>> {
        let _turn = self.turn().await?;
        self.inner.join(join).await
    }

    async fn delete(&self, filter: &Filter) -> Result<u64> {
        let _turn = self.turn().await?;
        self.inner.delete(filter).await
    }

    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        let _turn = self.turn().await?;
        self.inner.remove(keys).await
    }

    async fn scan(&self, range: &KeyRange) -> Result<Rows<'_>> {
        let _turn = self.turn().await?;
        Ok(self.in_turns(self.inner.scan(range).await?))
    }

    async fn count(&self) -> Result<u64> {
        let _turn = self.turn().await?;
        self.inner.count().await
    }

    async fn split(&self, parts: u32) -> Result<Vec<KeyRange>> {
        let _turn = self.turn().await?;
        self.inner.split(parts).await
    }

    async fn drop_table(&self) -> Result<()> {
        let _turn = self.turn().await?;
        self.inner.drop_table().await
    }

    async fn settle(&self) -> Result<bool> {
        let _turn = self.turn().await?;
        self.inner.settle().await
    }

    async fn analyze(&self) -> Result<()> {
        let _turn = self.turn().await?;
        self.inner.analyze().await
    }

    async fn index_bytes(&self) -> Result<Option<u64>> {
        let _turn = self.turn().await?;
        self.inner.index_bytes().await
    }

    async fn explain(&self, request: Request<'_>) -> Result<Option<Explained>> {
        let _turn = self.turn().await?;
        self.inner.explain(request).await
    }

    async fn describe(&self) -> Result<Description> {
        let _turn = self.turn().await?;
        self.inner.describe().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::open;

    fn rows(n: usize) -> Vec<Row> {
        let row = |i| Row { key: Key::new(format!("k{i:05}")).unwrap(), record: Document::new() };
        (0..n).map(row).collect()
    }

    #[tokio::test]
    async fn a_put_inside_a_scan_does_not_wait_for_it() {
        let place = open("memory:").await.unwrap();
        let one = Limit::new(place.store().clone(), 1, Duration::from_secs(20)).unwrap();
        one.put(&rows(2500)).await.unwrap();
        let mut scanned = one.scan(&KeyRange::all()).await.unwrap();
        let mut seen = 0;
        while let Some(batch) = scanned.try_next().await.unwrap() {
            seen += batch.len();
            one.put(&batch).await.unwrap();
        }
        assert_eq!((seen, one.count().await.unwrap()), (2500, 2500));
    }

    #[tokio::test]
    async fn waiting_ends() {
        let place = open("memory:").await.unwrap();
        let two = Limit::new(place.store().clone(), 2, Duration::from_millis(5)).unwrap();
        let (_a, b) = (two.turn().await.unwrap(), two.turn().await.unwrap());
        // Another table is the same place.
        let table = two.table("other").unwrap();
        let error = table.count().await.unwrap_err();
        assert!(error.is_timeout());
        assert!(error.to_string().contains("one of 2 operations"), "{error}");
        drop(b);
        assert_eq!(table.count().await.unwrap(), 0);
        assert!(Limit::new(place.store().clone(), 0, Duration::ZERO).is_err());
    }
}
