//! Records as documents.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{StreamExt, TryStreamExt};

use super::{
    Couch, WHOLE,
    answers::Found,
    database::Database,
    mango::{self, Plan},
    sorted::Sorted,
    write::Draft,
};
use crate::{
    Error, Result,
    record::{Document, Value},
    store::{
        Abilities, Description, Expected, Filter, Key, KeyRange, Layout, Query, Row, Rows, Shape,
        Store,
        blobs::{fits, named},
        in_batches, json,
    },
};

/// A table of documents.
pub(super) struct Documents {
    couch: Arc<Couch>,
    database: Database,
    abilities: Abilities,
}

impl Documents {
    pub(super) fn new(couch: Arc<Couch>, table: &str) -> Result<Documents> {
        Ok(Documents { database: couch.database(table)?, abilities: couch.abilities(), couch })
    }

    /// A record as it is sent, if the server can hold it.
    fn draft<'a>(&self, row: &'a Row) -> Result<Draft<'a>> {
        self.couch.check_key(&row.key)?;
        let mut fields = Vec::new();
        json::check(&row.record)
            .and_then(|()| check(&row.record))
            .and_then(|()| json::write(&row.record, &mut fields))
            .map_err(|e| named(e, &row.key))?;
        fits(&self.abilities, &row.key, fields.len())?;
        Ok(Draft { key: &row.key, fields })
    }

    fn drafts<'a>(&self, rows: &'a [Row]) -> Result<Vec<Draft<'a>>> {
        rows.iter().map(|row| self.draft(row)).collect()
    }

    fn plan(&self, filter: &Filter) -> Plan {
        mango::plan(filter, self.couch.server.script)
    }

    /// Deletes records that were found; of those that somebody changed meanwhile, the ones that fit still.
    async fn delete_found(&self, filter: &Filter, found: Vec<&Found>) -> Result<u64> {
        let all = found.len();
        let left = self.database.remove_found(&found).await?;
        let mut deleted = (all - left.len()) as u64;
        let mut changed: Vec<Key> = left.iter().map(|found| found.key.clone()).collect();
        for attempt in 0..super::TRIES {
            if changed.is_empty() {
                return Ok(deleted);
            }
            super::write::pause(attempt).await;
            let now: Vec<_> = self.database.get(&changed).await?.into_iter().flatten().collect();
            let fits: Vec<_> = now
                .iter()
                .filter(|now| filter.fits_document(Some(&now.key), &now.record))
                .collect();
            let left = self.database.remove_found(&fits).await?;
            deleted += (fits.len() - left.len()) as u64;
            changed = left.iter().map(|found| found.key.clone()).collect();
        }
        match changed.is_empty() {
            true => Ok(deleted),
            false => {
                let keys: Vec<_> = changed.iter().collect();
                Err(super::write::conflict(&keys, all, "keep being changed by other clients"))
            }
        }
    }

    /// The rows that fit, some at a time.
    fn fitting(&self, filter: Filter) -> Rows<'_> {
        let found = self.database.find(self.plan(&filter));
        let fitting = found.map_ok(move |batch| {
            let rows = batch.into_iter().map(|found| Row { key: found.key, record: found.record });
            rows.filter(|row| filter.fits_document(Some(&row.key), &row.record)).collect()
        });
        fitting.boxed()
    }
}

/// What CouchDB refuses beyond what JSON does, and what JavaScript would change.
fn check(record: &Document) -> Result<()> {
    match record.iter().find(|(name, _)| name.starts_with('_')) {
        Some((name, _)) => Err(Error::invalid(format!(
            "field {name:?}: CouchDB reserves names that begin with _; rename the field"
        ))),
        None => record.iter().try_for_each(|(name, value)| check_value(name, value)),
    }
}

/// `field` is the one at the top that it is in.
fn check_value(field: &str, value: &Value) -> Result<()> {
    match value {
        Value::Int(v) if v.unsigned_abs() > WHOLE => Err(Error::unsupported(format!(
            "field {field:?} has the number {v}, and JavaScript rounds whole numbers beyond 2^53; \
             keep it as text, or use ?layout=blob"
        ))),
        Value::List(list) => list.iter().try_for_each(|value| check_value(field, value)),
        Value::Map(map) => map.iter().try_for_each(|(name, value)| match name {
            "__proto__" => Err(Error::unsupported(format!(
                "field {field:?} has a name \"__proto__\" in it, which JavaScript loses"
            ))),
            _ => check_value(field, value),
        }),
        _ => Ok(()),
    }
}

#[async_trait]
impl Store for Documents {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn shape(&self) -> Shape {
        Shape::Document
    }

    fn table(&self, name: &str) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(Documents::new(self.couch.clone(), name)?))
    }

    async fn tables(&self) -> Result<Vec<String>> {
        self.couch.within("a list of databases", self.couch.tables()).await
    }

    fn check(&self, row: &Row) -> Result<()> {
        self.draft(row).map(drop)
    }

    async fn prepare(&self, layout: &Layout) -> Result<()> {
        let fields: Vec<String> = layout
            .indexes
            .iter()
            .filter(|index| !index.path.is_key())
            .map(|index| {
                mango::field(&index.path).ok_or_else(|| {
                    let path = index.path.to_string();
                    Error::unsupported(format!("couchdb has no index on a field named {path:?}"))
                })
            })
            .collect::<Result<_>>()?;
        let work = async {
            self.database.prepare("document").await?;
            for field in &fields {
                self.database.index(field).await?;
            }
            Ok(())
        };
        self.couch.within("making a database", work).await
    }

    async fn put(&self, rows: &[Row]) -> Result<()> {
        let drafts = self.drafts(rows)?;
        self.couch.within("a put", self.database.put(&drafts)).await
    }

    async fn load(&self, rows: &[Row]) -> Result<()> {
        let drafts = self.drafts(rows)?;
        self.couch.within("a load", self.database.load(&drafts)).await
    }

    async fn put_if(&self, row: &Row, expected: &Expected) -> Result<bool> {
        let draft = self.draft(row)?;
        let written = async {
            match expected {
                Expected::Absent => self.database.put_absent(&draft).await,
                expected => {
                    let fits = |found: &Found| Ok(expected.fits(Some(&found.record)));
                    self.database.swap(draft.key, fits, Some(&draft.fields)).await
                }
            }
        };
        self.couch.within("a conditional write", written).await
    }

    async fn remove_if(&self, key: &Key, expected: &Expected) -> Result<bool> {
        let fits = |found: &Found| Ok(expected.fits(Some(&found.record)));
        self.couch.within("a conditional write", self.database.swap(key, fits, None)).await
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Document>>> {
        let found = self.couch.within("a get", self.database.get(keys)).await?;
        Ok(found.into_iter().map(|found| found.map(|found| found.record)).collect())
    }

    async fn find(&self, query: &Query) -> Result<Rows<'_>> {
        query.check()?;
        self.abilities.can(query)?;
        let query = query.clone();
        let mut rows = self.fitting(query.filter.clone());
        if !query.sort.is_empty() {
            let mut sorted = Sorted::new(query);
            while let Some(batch) = rows.try_next().await? {
                sorted.extend(batch);
            }
            return Ok(in_batches(sorted.rows().into_iter()).boxed());
        }
        let mut left = query.limit.unwrap_or(u64::MAX);
        if left == 0 {
            return Ok(futures_util::stream::empty().boxed());
        }
        Ok(Box::pin(async_stream::try_stream! {
            while let Some(mut batch) = rows.try_next().await? {
                batch.truncate(usize::try_from(left).unwrap_or(usize::MAX));
                left -= batch.len() as u64;
                for row in &mut batch {
                    row.record = query.project(std::mem::take(&mut row.record));
                }
                if !batch.is_empty() {
                    yield batch;
                }
                if left == 0 {
                    break;
                }
            }
        }))
    }

    async fn delete(&self, filter: &Filter) -> Result<u64> {
        let query = Query::new(filter.clone());
        query.check()?;
        self.abilities.can(&query)?;
        let mut found = match filter {
            // What is in them does not matter.
            Filter::All => self.database.list(KeyRange::all(), false),
            filter => self.database.find(self.plan(filter)),
        };
        let mut deleted = 0;
        while let Some(batch) = found.try_next().await? {
            let fitting = batch
                .iter()
                .filter(|found| {
                    *filter == Filter::All || filter.fits_document(Some(&found.key), &found.record)
                })
                .collect();
            deleted += self.couch.within("a delete", self.delete_found(filter, fitting)).await?;
        }
        Ok(deleted)
    }

    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        self.couch.within("a remove", self.database.remove(keys)).await
    }

    async fn scan(&self, range: &KeyRange) -> Result<Rows<'_>> {
        let found = self.database.find(Plan::Range(range.clone()));
        let rows = found.map_ok(|batch| {
            batch.into_iter().map(|found| Row { key: found.key, record: found.record }).collect()
        });
        Ok(rows.boxed())
    }

    async fn count(&self) -> Result<u64> {
        self.couch.within("a count", self.database.count()).await
    }

    async fn split(&self, parts: u32) -> Result<Vec<KeyRange>> {
        self.couch.within("a split", self.couch.split(&self.database, parts)).await
    }

    async fn drop_table(&self) -> Result<()> {
        self.couch.within("a drop", self.database.drop()).await
    }

    async fn describe(&self) -> Result<Description> {
        let done = self.couch.describe(&self.database, Shape::Document);
        self.couch.within("a description", done).await
    }
}
