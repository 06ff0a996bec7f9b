//! One table for several users: each has a prefix, and sees only keys that begin with it, without
//! it. Where they are tenants, the records have their prefix in a field, too, and each index begins with it.
//!
//! Prefixes never overlap, whatever they are: `/` ends a prefix, and one inside it is escaped. The
//! key `b/x` of user `a` is `a/b/x`, the key `x` of user `a/b` is `a%2Fb/x`.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{StreamExt, TryStreamExt};

use super::{count_by_scan, cut, split_by_scan};
use crate::{
    Error, ErrorKind, Result,
    format::Wrapped,
    record::{Document, Kind, Value},
    store::{
        Abilities, Blobs, Column, Description, Expected, Explained, Filter, Join, Joined, Key,
        KeyRange, Layout, Need, Part, Query, Request, Row, Rows, Shape, Store, TENANT, blobs, no,
        query::{Path, Test},
    },
};

/// The records of a store whose keys begin with a prefix, without it.
///
/// Counting and cutting into parts go through all records of the prefix, as stores have no count of
/// a part. [`drop_table`](Store::drop_table) deletes the records of the prefix, not those of others.
pub struct Prefix {
    inner: Arc<dyn Store>,
    /// The escaped prefix and the `/` that ends it.
    head: String,
    /// What is in the field [`TENANT`] of the records.
    tenant: Option<String>,
    abilities: Abilities,
}

/// What cannot be asked where the keys of a prefix cannot be told from others by a query.
const NO_QUERIES: &[Need] =
    &[Need::Find, Need::Sort, Need::TextOrder, Need::Missing, Need::Nested, Need::Not];

impl Prefix {
    /// The same prefix over another store.
    fn over(&self, inner: Arc<dyn Store>) -> Prefix {
        let (head, tenant) = (self.head.clone(), self.tenant.clone());
        Prefix { inner, head, tenant, abilities: self.abilities.clone() }
    }

    /// The part of a store that has this prefix, which may be any text but none.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) where it is empty, or leaves no room for a key.
    pub fn new(inner: Arc<dyn Store>, prefix: &str) -> Result<Prefix> {
        if prefix.is_empty() {
            return Err(Error::invalid("an empty prefix"));
        }
        let head = prefix.replace('%', "%25").replace('/', "%2F") + "/";
        let of = inner.abilities();
        if head.len() >= of.max_key {
            return Err(Error::invalid(format!(
                "the prefix {prefix:?} leaves no room for a key: {} has keys of {} bytes at most",
                of.driver, of.max_key
            )));
        }
        let cannot = match of.cannot.contains(&Need::TextOrder) && !of.cannot.contains(&Need::Find)
        {
            true => NO_QUERIES,
            false => of.cannot,
        };
        let max_key = of.max_key - head.len();
        let abilities = Abilities { max_key, cannot, joins: false, ..of.clone() };
        Ok(Prefix { inner, head, tenant: None, abilities })
    }

    /// The records of one of the tenants that share a store: they have its name in the field [`TENANT`], which is not
    /// seen from outside, and each index of a table begins with it ([`Layout::shared`]).
    ///
    /// # Errors
    /// As [`new`](Prefix::new).
    pub fn tenant(inner: Arc<dyn Store>, tenant: &str) -> Result<Prefix> {
        Ok(Prefix { tenant: Some(tenant.to_owned()), ..Prefix::new(inner, tenant)? })
    }

    /// What was done, and an error of it in words that have no prefix in them.
    fn told<T>(&self, done: Result<T>) -> Result<T> {
        done.map_err(|e| e.without(&self.head))
    }

    fn with(&self, text: &str) -> String {
        [&self.head, text].concat()
    }

    fn key(&self, key: &Key) -> Key {
        Key::new(self.with(key)).expect("not empty: it has a head")
    }

    fn keys(&self, keys: &[Key]) -> Vec<Key> {
        keys.iter().map(|key| self.key(key)).collect()
    }

    fn row(&self, row: &Row) -> Row {
        let mut record = row.record.clone();
        if let Some(tenant) = &self.tenant {
            record.insert(TENANT, tenant.as_str());
        }
        Row { key: self.key(&row.key), record }
    }

    fn rows(&self, rows: &[Row]) -> Vec<Row> {
        rows.iter().map(|row| self.row(row)).collect()
    }

    /// Whether these can be rows of ours; in words that have no prefix in them.
    fn fit(&self, rows: &[Row]) -> Result<()> {
        for row in rows {
            blobs::fits(&self.abilities, &row.key, 0)?;
            if self.tenant.is_some() && row.record.get(TENANT).is_some() {
                return Err(Error::invalid(format!(
                    "key {}: the field {TENANT:?} is the store's own; rename it",
                    row.key.shown()
                )));
            }
        }
        Ok(())
    }

    /// The first text that is after every key of the prefix: `0` comes after `/`.
    fn end(&self) -> String {
        format!("{}0", &self.head[..self.head.len() - 1])
    }

    /// A range of our keys among all.
    fn range(&self, range: &KeyRange) -> KeyRange {
        let border = |key: &Option<Key>, none: String| {
            let text = key.as_ref().map_or(none, |key| self.with(key));
            Some(Key::new(text).expect("not empty: it has a head"))
        };
        KeyRange {
            from: border(&range.from, self.head.clone()),
            until: border(&range.until, self.end()),
        }
    }

    /// A filter of ours, for the store inside.
    fn translated(&self, filter: &Filter) -> Filter {
        let all = |of: &[Filter]| of.iter().map(|one| self.translated(one)).collect();
        let value = |value: &Value| match value {
            Value::Text(text) => Value::Text(self.with(text)),
            // A key is text: what is none equals it no more than before.
            other => other.clone(),
        };
        match filter {
            Filter::All => Filter::All,
            Filter::And(of) => Filter::And(all(of)),
            Filter::Or(of) => Filter::Or(all(of)),
            Filter::Not(one) => Filter::Not(Box::new(self.translated(one))),
            Filter::Field(path, test) if path.is_key() => {
                let test = match test {
                    Test::Eq(v) => Test::Eq(value(v)),
                    Test::Ne(v) => Test::Ne(value(v)),
                    Test::Lt(v) => Test::Lt(value(v)),
                    Test::Le(v) => Test::Le(value(v)),
                    Test::Gt(v) => Test::Gt(value(v)),
                    Test::Ge(v) => Test::Ge(value(v)),
                    Test::In(values) => Test::In(values.iter().map(value).collect()),
                    Test::Exists(there) => Test::Exists(*there),
                    Test::Prefix(start) => Test::Prefix(self.with(start)),
                };
                Filter::Field(path.clone(), test)
            }
            // It is not in the records, as they are seen from outside.
            Filter::Field(path, _) if self.tenant.is_some() && path.names()[0] == TENANT => {
                match filter.fits_document(None, &Document::new()) {
                    true => Filter::All,
                    false => Filter::Or(Vec::new()),
                }
            }
            Filter::Field(..) | Filter::Look(_) => filter.clone(),
        }
    }

    /// The same, of our keys only.
    fn ours(&self, filter: &Filter) -> Filter {
        self.ours_in(filter, false)
    }

    /// A query of ours, for the store inside.
    fn asked(&self, query: &Query) -> Query {
        let sorted = query.sort.iter().any(|(path, _)| !path.is_key());
        Query { filter: self.ours_in(&query.filter, sorted), ..query.clone() }
    }

    /// Of our keys only; `sorted` by something else than keys.
    fn ours_in(&self, filter: &Filter, sorted: bool) -> Filter {
        let translated = self.translated(filter);
        if names_keys(filter) {
            return translated;
        }
        // Each index begins with the tenant.
        if let Some(tenant) = self.tenant.as_ref().filter(|_| sorted || names_fields(filter)) {
            let tenant = Test::Eq(Value::from(tenant.as_str()));
            return Filter::And(vec![Filter::Field(Path::new([TENANT]), tenant)]).and(translated);
        }
        let key = |test| Filter::Field(Path::new([Path::KEY]), test);
        let from = key(Test::Ge(Value::from(self.head.as_str())));
        let until = key(Test::Lt(Value::Text(self.end())));
        Filter::And(vec![from, until]).and(translated)
    }

    /// Whether records are found by going through those of the prefix, as a query cannot ask for
    /// these.
    fn must_scan(&self, filter: &Filter) -> bool {
        let ours = Query::new(self.ours(filter));
        *filter == Filter::All && self.inner.abilities().can(&ours).is_err()
    }

    /// A record of the store inside, as ours.
    fn own(&self, mut record: Document) -> Document {
        if self.tenant.is_some() {
            record.remove(TENANT);
        }
        record
    }

    /// Rows of the store inside, as ours.
    fn stripped<'a>(&'a self, rows: Rows<'a>) -> Rows<'a> {
        let strip = |row: Row| match row.key.strip_prefix(&self.head) {
            Some(key) => Ok(Row { key: Key::new(key)?, record: self.own(row.record) }),
            None => {
                let what = format!("key {} does not have the requested prefix", row.key.shown());
                Err(Error::new(ErrorKind::Mismatch, what))
            }
        };
        rows.map(move |rows| self.told(rows)?.into_iter().map(strip).collect()).boxed()
    }
}

/// Whether it looks at anything but keys.
fn names_fields(filter: &Filter) -> bool {
    match filter {
        Filter::All => false,
        Filter::And(of) | Filter::Or(of) => of.iter().any(names_fields),
        Filter::Not(one) => names_fields(one),
        Filter::Field(path, _) => !path.is_key(),
        Filter::Look(_) => true,
    }
}

/// Whether a filter fits only keys that it names, so that no range has to be added.
fn names_keys(filter: &Filter) -> bool {
    match filter {
        Filter::Field(path, Test::Eq(_) | Test::In(_)) => path.is_key(),
        Filter::And(all) => all.iter().any(names_keys),
        Filter::Or(any) => any.iter().all(names_keys),
        _ => false,
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Store for Prefix {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn shape(&self) -> Shape {
        self.inner.shape()
    }

    fn table(&self, name: &str) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(self.over(self.inner.table(name)?)))
    }

    fn part(&self, part: Part<'_>) -> Result<Option<Arc<dyn Store>>> {
        let inner = self.inner.part(part)?;
        Ok(inner.map(|inner| Arc::new(self.over(inner)) as Arc<dyn Store>))
    }

    /// The place knows its tables, but not which of them have records of this prefix.
    async fn tables(&self) -> Result<Vec<String>> {
        Err(no(&self.abilities, "list tables that are shared by prefixes"))
    }

    fn blobs(&self) -> Option<(&dyn Blobs, &Wrapped)> {
        None
    }

    fn check(&self, row: &Row) -> Result<()> {
        self.fit(std::slice::from_ref(row))?;
        self.told(self.inner.check(&self.row(row)))
    }

    async fn prepare(&self, layout: &Layout) -> Result<()> {
        if self.tenant.is_none() {
            return self.inner.prepare(layout).await;
        }
        let mut layout = layout.clone().shared();
        if self.shape() == Shape::Columns {
            layout.columns.push(Column { name: TENANT.into(), kind: Kind::Text });
        }
        self.inner.prepare(&layout).await
    }

    async fn put(&self, rows: &[Row]) -> Result<()> {
        self.fit(rows)?;
        self.told(self.inner.put(&self.rows(rows)).await)
    }

    async fn load(&self, rows: &[Row]) -> Result<()> {
        self.fit(rows)?;
        self.told(self.inner.load(&self.rows(rows)).await)
    }

    async fn put_each(&self, rows: &[Row]) -> Result<()> {
        self.fit(rows)?;
        self.told(self.inner.put_each(&self.rows(rows)).await)
    }

    async fn put_if(&self, row: &Row, expected: &Expected) -> Result<bool> {
        self.abilities.can_conditional()?;
        self.fit(std::slice::from_ref(row))?;
        self.told(self.inner.put_if(&self.row(row), expected).await)
    }

    async fn remove_if(&self, key: &Key, expected: &Expected) -> Result<bool> {
        self.told(self.inner.remove_if(&self.key(key), expected).await)
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Document>>> {
        let found = self.told(self.inner.get(&self.keys(keys)).await)?;
        Ok(found.into_iter().map(|record| record.map(|record| self.own(record))).collect())
    }

    async fn find(&self, query: &Query) -> Result<Rows<'_>> {
        query.check()?;
        if query.sort.is_empty() && self.must_scan(&query.filter) {
            return Ok(cut(self.scan(&KeyRange::all()).await?, query));
        }
        self.abilities.can(query)?;
        Ok(self.stripped(self.told(self.inner.find(&self.asked(query)).await)?))
    }

    /// A join would find records of other prefixes, and keys that are longer than what names them.
    async fn join(&self, _: &Join) -> Result<Vec<Joined>> {
        Err(no(&self.abilities, "join tables that are shared by prefixes"))
    }

    async fn delete(&self, filter: &Filter) -> Result<u64> {
        let query = Query::new(filter.clone());
        query.check()?;
        if self.must_scan(filter) {
            let mut rows = self.inner.scan(&self.range(&KeyRange::all())).await?;
            let mut deleted = 0;
            while let Some(batch) = rows.try_next().await? {
                let keys: Vec<_> = batch.into_iter().map(|row| row.key).collect();
                deleted += self.inner.remove(&keys).await?;
            }
            return Ok(deleted);
        }
        self.abilities.can(&query)?;
        self.told(self.inner.delete(&self.ours(filter)).await)
    }

    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        self.told(self.inner.remove(&self.keys(keys)).await)
    }

    async fn scan(&self, range: &KeyRange) -> Result<Rows<'_>> {
        Ok(self.stripped(self.told(self.inner.scan(&self.range(range)).await)?))
    }

    async fn count(&self) -> Result<u64> {
        count_by_scan(self).await
    }

    async fn split(&self, parts: u32) -> Result<Vec<KeyRange>> {
        split_by_scan(self, parts).await
    }

    async fn drop_table(&self) -> Result<()> {
        match self.delete(&Filter::All).await {
            // As of a table: there is nothing to drop.
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
            done => done.map(drop),
        }
    }

    async fn settle(&self) -> Result<bool> {
        self.inner.settle().await
    }

    async fn analyze(&self) -> Result<()> {
        self.inner.analyze().await
    }

    async fn index_bytes(&self) -> Result<Option<u64>> {
        // That of the whole table says nothing of a part.
        Ok(None)
    }

    async fn database_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    async fn explain(&self, request: Request<'_>) -> Result<Option<Explained>> {
        match request {
            Request::Get(keys) => self.inner.explain(Request::Get(&self.keys(keys))).await,
            Request::Find(query) => self.inner.explain(Request::Find(&self.asked(query))).await,
            Request::Join(_) => Ok(None),
            Request::Put(rows) => self.inner.explain(Request::Put(&self.rows(rows))).await,
            Request::Load(rows) => self.inner.explain(Request::Load(&self.rows(rows))).await,
            Request::Delete(filter) => {
                self.inner.explain(Request::Delete(&self.ours(filter))).await
            }
            Request::Scan(range) => self.inner.explain(Request::Scan(&self.range(range))).await,
        }
    }

    async fn describe(&self) -> Result<Description> {
        // What is on disk is not this prefix's alone.
        Ok(Description { disk: None, ..self.inner.describe().await? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{one_by_one, open};

    fn key(text: &str) -> Key {
        Key::new(text).unwrap()
    }

    #[tokio::test]
    async fn prefixes_do_not_overlap() {
        for url in ["memory:", "memory:?format=msgpack"] {
            let place = open(url).await.unwrap();
            // Pairs that a mere concatenation would mix up.
            let whose = ["a", "a/b", "a%2Fb", "a%", "a/", "/", "a0", "ab", "%"];
            let keys = ["x", "b/x", "/b/x", "2Fb/x", "%2Fb/x", "~"];
            let mut count = 0;
            for prefix in whose {
                let part = Prefix::new(place.store().clone(), prefix).unwrap();
                for (i, text) in keys.iter().enumerate() {
                    let record = Document::from_iter([(prefix, i as i64)]);
                    part.load(&[Row { key: key(text), record }]).await.unwrap();
                    count += 1;
                }
            }
            assert_eq!(place.count().await.unwrap(), count);
            let first = Prefix::new(place.store().clone(), whose[0]).unwrap();
            for prefix in whose {
                let part = Prefix::new(place.store().clone(), prefix).unwrap();
                assert_eq!(part.count().await.unwrap(), keys.len() as u64, "{prefix}");
                let rows = one_by_one(part.scan(&KeyRange::all()).await.unwrap());
                let rows: Vec<Row> = rows.try_collect().await.unwrap();
                for row in rows {
                    assert!(row.record.get(prefix).is_some() && keys.contains(&&*row.key));
                }
            }
            first.drop_table().await.unwrap();
            assert_eq!(place.count().await.unwrap(), count - keys.len() as u64);
        }
    }

    #[tokio::test]
    async fn errors_speak_of_the_key_and_not_of_the_prefix() {
        let place = open("memory:").await.unwrap();
        let part = Prefix::new(place.store().clone(), "tenant").unwrap();
        let long = Row { key: key(&"k".repeat(1 << 20)), record: Document::new() };
        let error = part.put(&[long]).await.unwrap_err();
        assert!(error.to_string().contains("\"kkk") && !error.to_string().contains("tenant"));
        for prefix in ["".to_string(), "p".repeat(1 << 20)] {
            let error = Prefix::new(place.store().clone(), &prefix).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Invalid);
        }
    }
}
