//! Objects of a program, kept and restored by a few calls.

use std::{marker::PhantomData, sync::Arc};

use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::OnceCell;

use super::{Blob, Key, KeyRange, Layout, Query, Row, Store, blobs::Coders};
use crate::{
    Error, ErrorKind, Result,
    record::{self, Document, Value},
};

/// The objects of one type under one name in a store.
///
/// In layout blob they are kept in the store's format as serde gives them, in the others as
/// documents. Restoring is data only: nothing that is kept can run code, and nothing allocates
/// beyond what the bytes hold.
pub struct Objects<T> {
    store: Result<Arc<dyn Store>, Arc<Error>>,
    ready: OnceCell<()>,
    coders: Option<Coders>,
    kind: PhantomData<fn(T) -> T>,
}

/// Under which name an object that is no map lies in a document.
const ALONE: &str = "_value";

impl<T> Objects<T> {
    pub(super) fn new(store: &dyn Store, name: &str) -> Self {
        let store = store.table(name).map_err(Arc::new);
        let coders = match &store {
            Ok(store) => store.blobs().map(|(_, format)| Coders::new(format.clone())),
            Err(_) => None,
        };
        Objects { store, ready: OnceCell::new(), coders, kind: PhantomData }
    }

    /// The store, with its table made.
    async fn ready(&self) -> Result<&dyn Store> {
        let store = match &self.store {
            Ok(store) => &**store,
            Err(e) => return Err(Error::new(e.kind(), e.context())),
        };
        self.ready.get_or_try_init(async || store.prepare(&Layout::plain()).await).await?;
        Ok(store)
    }

    /// Deletes the object of this id, and says whether there was one.
    ///
    /// # Errors
    /// Of connections and of the store.
    pub async fn delete(&self, id: &Key) -> Result<bool> {
        Ok(self.ready().await?.remove(std::slice::from_ref(id)).await? > 0)
    }

    /// How many there are.
    ///
    /// # Errors
    /// Of connections and of the store.
    pub async fn count(&self) -> Result<u64> {
        self.ready().await?.count().await
    }
}

impl<T: Serialize> Objects<T> {
    /// Keeps an object, and gives it an id nobody else has.
    ///
    /// # Errors
    /// Where the format or the store cannot hold it; of connections and of the store.
    pub async fn store(&self, object: &T) -> Result<Key> {
        let id = Key::fresh();
        self.store_as(&id, object).await?;
        Ok(id)
    }

    /// Keeps an object under an id, in place of one that is there.
    ///
    /// # Errors
    /// As [`store`](Objects::store).
    pub async fn store_as(&self, id: &Key, object: &T) -> Result<()> {
        let store = self.ready().await?;
        if let (Some(coders), Some((blobs, _))) = (&self.coders, store.blobs()) {
            let mut bytes = Vec::new();
            coders.with(|coder| coder.encode(object, &mut bytes))?;
            return blobs.put(&[Blob { key: id.clone(), bytes }]).await;
        }
        let record = match record::to_value(object)? {
            Value::Map(record) => record,
            value => Document::from_iter([(ALONE, value)]),
        };
        store.put(&[Row { key: id.clone(), record }]).await
    }
}

impl<T: DeserializeOwned + Send> Objects<T> {
    /// The object of this id.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) where there is none; as [`get`](Objects::get).
    pub async fn restore(&self, id: &Key) -> Result<T> {
        self.get(id).await?.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("no object with the id {}", id.shown()))
        })
    }

    /// The object of this id, if there is one.
    ///
    /// # Errors
    /// [`Malformed`](ErrorKind::Malformed) where what is there is no such object; of connections and
    /// of the store.
    pub async fn get(&self, id: &Key) -> Result<Option<T>> {
        let store = self.ready().await?;
        let keys = std::slice::from_ref(id);
        let restored = if let (Some(coders), Some((blobs, _))) = (&self.coders, store.blobs()) {
            let bytes = blobs.get(keys).await?.pop().flatten();
            bytes.map(|bytes| coders.with(|coder| coder.decode(&bytes))).transpose()
        } else {
            store.get(keys).await?.pop().flatten().map(object).transpose()
        };
        restored.map_err(|e| of_object(e, id))
    }

    /// Every object with its id, in steady memory.
    pub fn each(&self) -> impl Stream<Item = Result<(Key, T)>> + Send + '_ {
        stream::once(self.batches()).try_flatten().boxed()
    }

    async fn batches(&self) -> Result<impl Stream<Item = Result<(Key, T)>> + Send + '_> {
        let store = self.ready().await?;
        let all = KeyRange::all();
        let batches = match (&self.coders, store.blobs()) {
            (Some(coders), Some((blobs, _))) => {
                let batches = blobs.each(&all).await?.map(move |batch| {
                    coders.with(|coder| {
                        let one = |Blob { key, bytes }: Blob| match coder.decode(&bytes) {
                            Ok(object) => Ok((key, object)),
                            Err(e) => Err(of_object(e, &key)),
                        };
                        Ok(batch?.into_iter().map(one).collect::<Vec<_>>())
                    })
                });
                batches.boxed()
            }
            _ => {
                let rows = store.scan(&all).await?;
                rows.map_ok(|rows| rows.into_iter().map(of_row).collect::<Vec<_>>()).boxed()
            }
        };
        Ok(batches.map_ok(stream::iter).try_flatten())
    }

    /// The objects that fit a query, with their ids, in its order, in steady memory. The fields of an object are
    /// those that serde gives it; an object that is no map lies in a field `_value`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> steelyard_store::Result<()> {
    /// use futures_util::TryStreamExt;
    /// use steelyard_store::store::{Query, query::Order};
    ///
    /// #[derive(serde::Serialize, serde::Deserialize)]
    /// struct Herring { name: String, price: f64 }
    ///
    /// let fish = steelyard_store::open("memory:").await?.objects::<Herring>("fish");
    /// for (name, price) in [("Matjes", 3.5), ("Bismarck", 2.5), ("Rollmops", 1.5)] {
    ///     fish.store(&Herring { name: name.into(), price }).await?;
    /// }
    /// let dear = Query::new(r#"{"price": {"$gt": 2}}"#.parse()?)
    ///     .sorted("price".parse()?, Order::Ascending);
    /// let found: Vec<_> = fish.find(&dear).try_collect().await?;
    /// let names: Vec<_> = found.iter().map(|(_, herring)| &*herring.name).collect();
    /// assert_eq!(names, ["Bismarck", "Matjes"]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The stream begins with the error where there is one: [`Unsupported`](ErrorKind::Unsupported) where the store
    /// cannot do what the query [needs](Query::needs), as in layout blob, which finds by ids only;
    /// [`Invalid`](ErrorKind::Invalid) where the query asks for some fields only, or makes no sense. Otherwise as
    /// [`get`](Objects::get).
    pub fn find(&self, query: &Query) -> impl Stream<Item = Result<(Key, T)>> + Send + '_ {
        stream::once(self.found(query.clone())).try_flatten().boxed()
    }

    async fn found(
        &self,
        query: Query,
    ) -> Result<impl Stream<Item = Result<(Key, T)>> + Send + '_> {
        query.check()?;
        if query.fields.is_some() {
            return Err(Error::invalid("a query for objects cannot ask for some of their fields"));
        }
        let rows = self.ready().await?.find(&query).await?;
        let objects = rows.map_ok(|rows| stream::iter(rows.into_iter().map(of_row)));
        Ok(objects.try_flatten())
    }
}

fn of_row<T: DeserializeOwned>(row: Row) -> Result<(Key, T)> {
    match object(row.record) {
        Ok(object) => Ok((row.key, object)),
        Err(e) => Err(of_object(e, &row.key)),
    }
}

/// The object in a document.
fn object<T: DeserializeOwned>(mut record: Document) -> Result<T> {
    let value = match record.remove(ALONE) {
        Some(value) if record.is_empty() => value,
        Some(value) => {
            record.insert(ALONE, value);
            Value::Map(record)
        }
        None => Value::Map(record),
    };
    record::from_value(value)
}

fn of_object(error: Error, id: &Key) -> Error {
    let what = format!("the object with the id {}: {}", id.shown(), error.context());
    Error::new(error.kind(), what).with_source(error)
}

#[cfg(test)]
mod tests {
    use futures_util::TryStreamExt;
    use serde::Deserialize;

    use super::*;
    use crate::store::open;

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Order {
        item: String,
        price: f64,
        tags: Vec<String>,
    }

    #[tokio::test]
    async fn objects_come_back_in_every_layout() {
        for url in ["memory:", "memory:?format=marshal+base64", "memory:?format=pickle"] {
            let place = open(url).await.unwrap();
            let orders = place.objects::<Order>("pending");
            let order = Order { item: "herring".into(), price: 12.5, tags: vec!["salt".into()] };
            let id = orders.store(&order).await.unwrap();
            assert_eq!(orders.restore(&id).await.unwrap(), order);
            let other = Order { price: 1.0, ..order.clone() };
            let other_id = Key::new("own").unwrap();
            orders.store_as(&other_id, &other).await.unwrap();
            let mut all: Vec<_> = orders.each().try_collect().await.unwrap();
            all.sort_by(|a, b| a.0.cmp(&b.0));
            assert_eq!(all, [(id.clone(), order), (other_id, other)], "{url}");
            assert!(orders.delete(&id).await.unwrap() && !orders.delete(&id).await.unwrap());
            let error = orders.restore(&id).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound);
            // What is no map can be kept too.
            let numbers = place.objects::<Vec<i64>>("numbers");
            let id = numbers.store(&vec![1, 2]).await.unwrap();
            assert_eq!(numbers.restore(&id).await.unwrap(), [1, 2]);
            let wrong = place.objects::<Order>("numbers").restore(&id).await.unwrap_err();
            assert!(wrong.to_string().contains(id.as_str()), "{wrong}");
        }
    }

    #[tokio::test]
    async fn objects_are_found_or_it_is_said_that_they_cannot_be() {
        let order = |item: &str, price| Order { item: item.into(), price, tags: Vec::new() };
        let query = |text: &str| Query::new(text.parse().unwrap());
        let dear = query(r#"{"price": {"$gt": 2}}"#)
            .sorted("price".parse().unwrap(), crate::store::query::Order::Descending);
        for (url, finds) in [("memory:", true), ("memory:?format=msgpack", false)] {
            let place = open(url).await.unwrap();
            let orders = place.objects::<Order>("pending");
            for (key, price) in [("a", 1.0), ("b", 2.5), ("c", 12.5)] {
                orders.store_as(&Key::new(key).unwrap(), &order(key, price)).await.unwrap();
            }
            let found: Result<Vec<_>> = orders.find(&dear).try_collect().await;
            match found {
                Ok(found) => {
                    let items: Vec<_> =
                        found.iter().map(|(key, order)| (key.as_str(), &*order.item)).collect();
                    assert_eq!(items, [("c", "c"), ("b", "b")]);
                    let first: Vec<_> =
                        orders.find(&dear.clone().limited(1)).try_collect().await.unwrap();
                    assert_eq!(first, found[..1]);
                }
                Err(e) => assert_eq!(e.kind(), ErrorKind::Unsupported, "{url}: {e}"),
            }
            assert_eq!(orders.find(&dear).try_next().await.is_ok(), finds, "{url}");
            let some = Query { fields: Some(vec!["item".into()]), ..dear.clone() };
            let error = orders.find(&some).try_next().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            // All of them, in every layout.
            assert_eq!(
                orders.find(&Query::default()).try_collect::<Vec<_>>().await.unwrap().len(),
                3
            );
            let by_id = orders.find(&query(r#"{"_key": "b"}"#));
            assert_eq!(by_id.try_collect::<Vec<_>>().await.unwrap()[0].1.price, 2.5);
            // What is there is no such object.
            let numbers = place.objects::<i64>("numbers");
            numbers.store(&7).await.unwrap();
            if finds {
                let seven: Vec<_> =
                    numbers.find(&query(r#"{"_value": {"$gte": 7}}"#)).try_collect().await.unwrap();
                assert_eq!(seven[0].1, 7);
            }
            let wrong = place.objects::<Order>("numbers");
            assert!(wrong.find(&Query::default()).try_next().await.is_err());
        }
    }
}
