//! A table of the catalog: rows of one type, each with a revision that a change has to name.

use std::{marker::PhantomData, sync::Arc};

use futures_util::TryStreamExt;
use serde::{Serialize, de::DeserializeOwned};
use steelyard_base::{Error, Result};
use steelyard_store::{
    record::{self, Document, Value},
    store::{Expected, Filter, Key, KeyRange, Layout, Place, Query, Row, Store},
};

use crate::random;

/// The field with the revision.
const REVISION: &str = "revision";

/// A row as it was read.
#[derive(Debug, Clone)]
pub(crate) struct Kept<T> {
    pub key: Key,
    pub row: T,
    revision: String,
}

/// A table of rows of one type.
pub(super) struct Table<T> {
    store: Arc<dyn Store>,
    /// Of the catalog, for errors.
    url: String,
    rows: PhantomData<fn(T) -> T>,
}

impl<T: Serialize + DeserializeOwned> Table<T> {
    pub(super) async fn open(place: &Place, name: &str) -> Result<Table<T>> {
        let store = place.table(name)?;
        store.prepare(&Layout::plain()).await?;
        Ok(Table { store, url: place.url().to_string(), rows: PhantomData })
    }

    fn placed(&self, e: Error) -> Error {
        e.in_place(&*self.url)
    }

    pub(super) async fn get(&self, key: &Key) -> Result<Option<Kept<T>>> {
        let found = self.store.get(std::slice::from_ref(key)).await;
        let found = found.map_err(|e| self.placed(e))?.pop().flatten();
        found.map(|document| read(key, document)).transpose()
    }

    /// Adds a row; `false` where there is one.
    pub(super) async fn add(&self, key: &Key, row: &T) -> Result<bool> {
        let added = self.store.put_if(&written(key, row)?, &Expected::Absent).await;
        added.map_err(|e| self.placed(e))
    }

    /// Puts a row in the place of the one that was read; `false` where it is another by now.
    pub(super) async fn replace(&self, old: &Kept<T>, row: &T) -> Result<bool> {
        let expected = Expected::field(REVISION, &*old.revision);
        let replaced = self.store.put_if(&written(&old.key, row)?, &expected).await;
        replaced.map_err(|e| self.placed(e))
    }

    pub(super) async fn remove(&self, key: &Key) -> Result<()> {
        let removed = self.store.remove(std::slice::from_ref(key)).await;
        removed.map(drop).map_err(|e| self.placed(e))
    }

    /// Looks at rows until one is as wanted; says whether one was.
    pub(super) async fn any(&self, wanted: impl FnMut(&Key, &T) -> bool) -> Result<bool> {
        self.any_of(Filter::All, wanted).await
    }

    /// The same of those that fit a filter, or of all where the store cannot find by it.
    pub(super) async fn any_of(
        &self,
        filter: Filter,
        mut wanted: impl FnMut(&Key, &T) -> bool,
    ) -> Result<bool> {
        let query = Query::new(filter);
        let mut rows =
            match query.filter != Filter::All && self.store.abilities().can(&query).is_ok() {
                true => self.store.find(&query).await?,
                false => self.store.scan(&KeyRange::all()).await?,
            };
        while let Some(batch) = rows.try_next().await? {
            for row in batch {
                let kept = read::<T>(&row.key, row.record)?;
                if wanted(&kept.key, &kept.row) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// All rows, with their keys.
    pub(super) async fn all(&self) -> Result<Vec<(String, T)>> {
        let rows = self.store.scan(&KeyRange::all()).await?.try_concat().await?;
        rows.into_iter()
            .map(|row| Ok((row.key.to_string(), read::<T>(&row.key, row.record)?.row)))
            .collect()
    }
}

fn written<T: Serialize>(key: &Key, row: &T) -> Result<Row> {
    let Value::Map(mut record) = record::to_value(row)? else {
        return Err(Error::invalid("a row of the catalog is a map"));
    };
    record.insert(REVISION, random::hex::<16>()?);
    Ok(Row { key: key.clone(), record })
}

fn read<T: DeserializeOwned>(key: &Key, mut record: Document) -> Result<Kept<T>> {
    let revision = match record.remove(REVISION) {
        Some(Value::Text(revision)) => revision,
        _ => {
            return Err(Error::malformed(format!(
                "row {} of the catalog has no revision",
                key.shown()
            )));
        }
    };
    let row = record::from_value(Value::Map(record)).map_err(|e| {
        Error::malformed(format!("row {} of the catalog: {}", key.shown(), e.context()))
            .with_source(e)
    })?;
    Ok(Kept { key: key.clone(), row, revision })
}
