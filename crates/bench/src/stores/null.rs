//! The null competitor, a store that keeps nothing: it measures the overhead of our own code around a store (rule 11).
//!
//! It is a driver like the others, used through the same `dyn Store`: a write is encoded as JSON and dropped; a read
//! decodes the JSON of a few sample records, one for each record that a store would return. Only a store's own work is
//! left out: statements, sockets, files.

use std::{hint::black_box, sync::Arc};

use async_trait::async_trait;
use futures_util::{StreamExt, stream};

use super::data::Records;
use crate::{
    Result,
    format::Format,
    record::{Document, Kind},
    store::{
        Abilities, Client, Description, Filter, Key, KeyRange, Layout, Query, Row, Rows, Shape,
        Store,
    },
};

/// A store that says yes to everything.
#[derive(Debug, Clone)]
pub(crate) struct Null {
    /// How many records it claims to hold.
    count: u64,
    /// Some of them, as JSON.
    samples: Arc<[Vec<u8>]>,
}

/// How many records are kept: their sizes differ.
const SAMPLES: u64 = 16;
/// How many records a stream gives at once.
const BATCH: u64 = 1000;

const ABILITIES: Abilities = Abilities {
    driver: "null",
    keeps: &Kind::ALL,
    loses: "",
    cannot: &[],
    joins: true,
    atomic: true,
    conditional: false,
    ordered: true,
    max_key: usize::MAX,
    max_record: usize::MAX,
};

impl Null {
    /// One that claims to hold these records.
    ///
    /// # Errors
    /// None: JSON holds every record, if not every value of it.
    pub(super) fn of(records: &Records) -> Result<Null> {
        let step = (records.count / SAMPLES).max(1);
        let kept = (0..SAMPLES.min(records.count)).map(|n| records.document(n * step));
        Null::with(records.count, kept)
    }

    /// One that claims to hold so many records, of which these are some.
    ///
    /// # Errors
    /// As [`of`](Null::of).
    pub(crate) fn with(count: u64, some: impl Iterator<Item = Document>) -> Result<Null> {
        let samples = some.map(|d| encoded(&d)).collect::<Result<_>>()?;
        Ok(Null { count, samples })
    }

    fn decoded(&self, at: usize) -> Result<Document> {
        match self.samples.get(at % self.samples.len().max(1)) {
            Some(bytes) => Format::Json.decode(bytes),
            None => Ok(Document::new()),
        }
    }

    /// So many rows, decoded while they are read.
    fn rows(&self, count: u64) -> Rows<'_> {
        let row =
            |n: u64| Ok(Row { key: Key::new(n.to_string())?, record: self.decoded(n as usize)? });
        let batches = (0..count).step_by(BATCH as usize);
        stream::iter(batches.map(move |from| (from..count.min(from + BATCH)).map(row).collect()))
            .boxed()
    }
}

fn encoded(record: &Document) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    Format::Json.encode(record, &mut bytes)?;
    Ok(bytes)
}

#[async_trait]
impl Store for Null {
    fn abilities(&self) -> &Abilities {
        &ABILITIES
    }

    fn shape(&self) -> Shape {
        Shape::Document
    }

    fn table(&self, _: &str) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(self.clone()))
    }

    fn check(&self, _: &Row) -> Result<()> {
        Ok(())
    }

    async fn prepare(&self, _: &Layout) -> Result<()> {
        Ok(())
    }

    async fn put(&self, rows: &[Row]) -> Result<()> {
        rows.iter().try_for_each(|row| encoded(&row.record).map(|bytes| drop(black_box(bytes))))
    }

    async fn put_each(&self, rows: &[Row]) -> Result<()> {
        self.put(rows).await
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Document>>> {
        let at = |key: &Key| usize::from(key.as_bytes()[key.len() - 1]);
        keys.iter().map(|key| self.decoded(at(key)).map(Some)).collect()
    }

    /// As many rows as the query asks for at most, or one: nobody else knows how many there would be.
    async fn find(&self, query: &Query) -> Result<Rows<'_>> {
        Ok(self.rows(query.limit.unwrap_or(1)))
    }

    async fn delete(&self, _: &Filter) -> Result<u64> {
        Ok(0)
    }

    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        Ok(keys.len() as u64)
    }

    async fn scan(&self, _: &KeyRange) -> Result<Rows<'_>> {
        Ok(self.rows(self.count))
    }

    async fn count(&self) -> Result<u64> {
        Ok(self.count)
    }

    async fn split(&self, _: u32) -> Result<Vec<KeyRange>> {
        Ok(vec![KeyRange::all()])
    }

    async fn drop_table(&self) -> Result<()> {
        Ok(())
    }

    async fn describe(&self) -> Result<Description> {
        Ok(Description {
            client: Client::Own,
            product: "null".into(),
            version: String::new(),
            shape: Shape::Document,
            format: None,
            asked: None,
            set: None,
            bound: None,
            limit: None,
            settings: Vec::new(),
            disk: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::TryStreamExt;

    use super::*;
    use crate::{record::Value, workload::Workload};

    #[tokio::test]
    async fn as_many_records_are_encoded_and_decoded_as_of_a_store() {
        let workload = Workload::named("keep").unwrap().scaled(0.1);
        let records = Records::new(&workload.tables[0], None, 7).unwrap();
        let null = Null::of(&records).unwrap();
        let keys: Vec<Key> = (0..50).map(|n| records.key(n).unwrap()).collect();
        let found = null.get(&keys).await.unwrap();
        // Each is one of the table's own records, as JSON has it.
        let all: Vec<Vec<u8>> =
            (0..records.count).map(|n| encoded(&records.document(n)).unwrap()).collect();
        let known = |record: &Document| all.contains(&encoded(record).unwrap());
        assert!(found.len() == 50 && found.iter().flatten().all(known));
        let different = found.iter().flatten().filter(|record| Some(*record) != found[0].as_ref());
        assert!(different.count() > 10);

        let read = async |rows: Rows<'_>| rows.try_concat().await.unwrap().len() as u64;
        assert_eq!(read(null.scan(&KeyRange::all()).await.unwrap()).await, records.count);
        assert_eq!(null.count().await.unwrap(), records.count);
        let query = Query::new(Filter::All).limited(2_345);
        assert_eq!(read(null.find(&query).await.unwrap()).await, 2_345);
    }

    #[tokio::test]
    async fn records_with_what_json_lacks_are_weighed_too() {
        let record = Document::from_iter([
            ("bytes", Value::Bytes(vec![1, 2])),
            ("nan", Value::Float(f64::NAN)),
        ]);
        let described = crate::results::Dataset::default();
        let own = super::super::OwnRecords::new(vec![record.clone()], described);
        let workload = Workload::named("keep").unwrap();
        let records = Records::new(&workload.tables[0], Some(own.rows), 7).unwrap();
        let null = Null::of(&records).unwrap();
        null.put(&[Row { key: Key::new("a").unwrap(), record }]).await.unwrap();
        assert_eq!(
            null.get(&[Key::new("a").unwrap()]).await.unwrap()[0].as_ref().unwrap().len(),
            2
        );
    }
}
