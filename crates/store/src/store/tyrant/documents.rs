//! Layout document: a table database.

use std::{collections::BTreeSet, sync::Arc};

use async_trait::async_trait;
use futures_util::{StreamExt, TryStreamExt, stream::BoxStream};

use super::{
    DOCUMENT, Pair, Table,
    conditions::{at_least, at_most, conditions, limited, narrow, numbers_first, ordered},
};
use crate::{
    Error, Result,
    record::{Document, Kind, Value},
    store::{
        Abilities, Description, Filter, Index, Key, KeyRange, Layout, Query, Row, Rows, Shape,
        Store,
        blobs::{fits, named, one_part},
        in_batches,
        kv::{Field, Flat, Spool},
        query::{Order, Test},
        wrappers::cut,
    },
};

const FLAT: Flat = Flat { binary: false, nested: false };

/// A table of records.
pub(super) struct Documents(pub Table);

/// Columns as they lie in the database: names and values, NUL between all.
fn joined(fields: &[Field]) -> Vec<u8> {
    let parts: Vec<&[u8]> = fields.iter().flat_map(|(n, v)| [&**n, &**v]).collect();
    parts.join(&0)
}

fn record(key: &Key, columns: &[u8]) -> Result<Document> {
    let mut parts = columns.split(|b| *b == 0);
    let mut fields = Vec::new();
    while let (Some(name), Some(value)) = (parts.next(), parts.next()) {
        fields.push((name.to_vec(), value.to_vec()));
    }
    FLAT.read(fields).map_err(|e| named(e, key))
}

impl Documents {
    fn pair(&self, row: &Row) -> Result<Pair> {
        let fields = FLAT.write(&row.record).map_err(|e| named(e, &row.key))?;
        let columns = joined(&fields);
        fits(&self.0.abilities, &row.key, columns.len())?;
        Ok((self.0.full(&row.key), columns))
    }

    /// The keys of records that may fit: all that do are among them.
    async fn candidates(&self, filter: &Filter) -> Result<Spool> {
        if let Some(keys) = keys_of(filter) {
            return spooled(&keys);
        }
        let conditions = conditions(&self.0.space, filter);
        match narrow(&conditions) {
            true => self.0.server.search(&conditions, &self.0.space).await,
            false => self.0.server.keys(&self.0.space).await,
        }
    }

    /// The records of keys that were put by, those that fit.
    fn fitting(&self, keys: Spool, filter: &Filter) -> BoxStream<'_, Result<Vec<Row>>> {
        let query = Query::new(filter.clone());
        let batches = self.0.each(keys, KeyRange::all());
        let rows = batches.map(move |pairs| {
            let rows = pairs?.into_iter().map(|(key, columns)| {
                let record = record(&key, &columns)?;
                Ok(Row { key, record })
            });
            let fit = |row: &Result<Row>| match row {
                Ok(row) => query.matches(&row.key, &row.record),
                Err(_) => true,
            };
            rows.filter(fit).collect::<Result<Vec<_>>>()
        });
        rows.boxed()
    }

    /// The first so many that fit, in any order, without listing all that do.
    async fn some(&self, filter: &Filter, limit: usize) -> Result<Option<Vec<Row>>> {
        let mut asked = conditions(&self.0.space, filter);
        let most = limit.saturating_mul(2).max(100);
        asked.push(limited(most));
        let keys = self.0.server.search(&asked, &self.0.space).await?;
        let all = keys.count() < most as u64;
        let mut rows: Vec<Row> = self.fitting(keys, filter).try_concat().await?;
        let enough = rows.len() >= limit;
        rows.truncate(limit);
        Ok((all || enough).then_some(rows))
    }

    /// The keys of a sorted query's records, in their order.
    async fn sorted(&self, query: &Query) -> Result<Vec<Key>> {
        let limit = query.limit.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        let keys = match (limit, numbers_first(&query.filter, &query.sort)) {
            (Some(limit @ 1..=FEW), Some((name, order))) => {
                self.border(query, limit, name, order).await?
            }
            _ => self.candidates(&query.filter).await?,
        };
        // Of each only what it is sorted by; and where there is a limit, of the first only.
        let mut rows = Vec::new();
        let sort = |rows: &mut Vec<Row>| {
            rows.sort_by(|a, b| query.order(a, b));
            rows.truncate(limit.unwrap_or(usize::MAX));
        };
        let mut batches = self.fitting(keys, &query.filter);
        while let Some(batch) = batches.try_next().await? {
            rows.extend(batch.into_iter().map(|row| sort_fields(query, row)));
            if limit.is_some_and(|limit| rows.len() > limit.saturating_mul(2).max(FEW)) {
                sort(&mut rows);
            }
        }
        sort(&mut rows);
        Ok(rows.into_iter().map(|row| row.key).collect())
    }

    /// The keys of records among which are the first ones of a query that sorts by a column of
    /// numbers: the server finds as many as are asked for, and then all that are not behind the
    /// last of those, so that neither its rounding nor records that are equal matter.
    async fn border(&self, query: &Query, limit: usize, name: &str, order: Order) -> Result<Spool> {
        let mut most = limit.saturating_mul(2).max(100);
        loop {
            let mut asked = conditions(&self.0.space, &query.filter);
            asked.extend(ordered(name, order, most));
            let keys = self.0.server.search(&asked, &self.0.space).await?;
            if keys.count() < most as u64 {
                return self.candidates(&query.filter).await;
            }
            let mut rows: Vec<Row> = self.fitting(keys, &query.filter).try_concat().await?;
            if rows.len() < limit {
                most = most.saturating_mul(4);
                continue;
            }
            rows.sort_by(|a, b| query.order(a, b));
            let last = match rows[limit - 1].record.get(name) {
                Some(Value::Int(n)) => *n as f64,
                Some(Value::Float(v)) => *v,
                _ => return self.candidates(&query.filter).await,
            };
            let mut asked = conditions(&self.0.space, &query.filter);
            match order {
                Order::Ascending => at_most(&mut asked, name, last),
                Order::Descending => at_least(&mut asked, name, last),
            }
            return self.0.server.search(&asked, &self.0.space).await;
        }
    }
}

/// The keys a filter names, where it names some and asks for nothing else. Each once.
fn keys_of(filter: &Filter) -> Option<Vec<Key>> {
    let values = match filter {
        Filter::Field(path, Test::Eq(value)) if path.is_key() => std::slice::from_ref(value),
        Filter::Field(path, Test::In(values)) if path.is_key() => values,
        _ => return None,
    };
    let keys = values.iter().filter_map(|v| v.as_str().and_then(|k| Key::new(k).ok()));
    Some(keys.collect::<BTreeSet<_>>().into_iter().collect())
}

fn spooled(keys: &[Key]) -> Result<Spool> {
    let mut spool = Spool::default();
    keys.iter().try_for_each(|key| spool.push(key))?;
    Ok(spool)
}

/// The column of an index and what Tokyo Cabinet calls its kind; none for that of the key, which is
/// there anyway.
fn index(index: &Index) -> Result<Option<(&str, &'static str)>> {
    let name = match index.path.names() {
        _ if index.path.is_key() => return Ok(None),
        [name] if !name.is_empty() && !name.contains('\0') => name,
        _ => {
            let what = format!(
                "{} has no index on {:?}, only on columns",
                DOCUMENT.driver,
                index.path.to_string()
            );
            return Err(Error::unsupported(what));
        }
    };
    let kind = match index.kind {
        Kind::Int | Kind::Float | Kind::Time | Kind::Decimal | Kind::BigInt => "1",
        _ => "0",
    };
    Ok(Some((name, kind)))
}

/// Up to how many records a sorted query leaves to the server's order.
const FEW: usize = 10_000;

/// A row with the fields that a query sorts by, and no others.
fn sort_fields(query: &Query, row: Row) -> Row {
    let by = |name: &str| query.sort.iter().any(|(path, _)| path.names()[0] == name);
    let record = row.record.into_iter().filter(|(name, _)| by(name)).collect();
    Row { key: row.key, record }
}

#[async_trait]
impl Store for Documents {
    fn abilities(&self) -> &Abilities {
        &self.0.abilities
    }

    fn shape(&self) -> Shape {
        Shape::Document
    }

    fn table(&self, name: &str) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(Documents(self.0.sibling(name)?)))
    }

    fn check(&self, row: &Row) -> Result<()> {
        self.pair(row).map(drop)
    }

    async fn prepare(&self, layout: &Layout) -> Result<()> {
        // All are looked at before the first is made: indexes are the whole server's.
        let indexes: Vec<_> = layout.indexes.iter().map(index).collect::<Result<_>>()?;
        for (name, kind) in indexes.into_iter().flatten() {
            // One that is there is made anew.
            self.0.server.misc("setindex", &[name, kind]).await?;
        }
        Ok(())
    }

    async fn put(&self, rows: &[Row]) -> Result<()> {
        let pairs: Vec<_> = rows.iter().map(|row| self.pair(row)).collect::<Result<_>>()?;
        self.0.put(&pairs, false).await
    }

    async fn load(&self, rows: &[Row]) -> Result<()> {
        let pairs: Vec<_> = rows.iter().map(|row| self.pair(row)).collect::<Result<_>>()?;
        self.0.put(&pairs, true).await
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Document>>> {
        let values = self.0.get(keys).await?;
        let read = |(key, value): (&Key, Option<Vec<u8>>)| {
            value.map(|columns| record(key, &columns)).transpose()
        };
        keys.iter().zip(values).map(read).collect()
    }

    async fn find(&self, query: &Query) -> Result<Rows<'_>> {
        query.check()?;
        let limit = query.limit.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        if limit == Some(0) {
            return Ok(futures_util::stream::empty().boxed());
        }
        if !query.sort.is_empty() {
            let keys = self.sorted(query).await?;
            // One that was changed meanwhile has to fit still.
            return Ok(cut(self.fitting(spooled(&keys)?, &query.filter), query));
        }
        if let Some(limit @ 1..=FEW) = limit
            && keys_of(&query.filter).is_none()
            && let Some(rows) = self.some(&query.filter, limit).await?
        {
            return Ok(cut(in_batches(rows.into_iter()).boxed(), query));
        }
        let keys = self.candidates(&query.filter).await?;
        Ok(cut(self.fitting(keys, &query.filter), query))
    }

    async fn delete(&self, filter: &Filter) -> Result<u64> {
        Query::new(filter.clone()).check()?;
        if *filter == Filter::All {
            return self.0.clear().await;
        }
        let mut rows = self.fitting(self.candidates(filter).await?, filter);
        let mut count = 0;
        while let Some(batch) = rows.try_next().await? {
            let keys: Vec<_> = batch.into_iter().map(|row| row.key).collect();
            count += self.0.remove(&keys).await?;
        }
        Ok(count)
    }

    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        self.0.remove(keys).await
    }

    async fn scan(&self, range: &KeyRange) -> Result<Rows<'_>> {
        let keys = self.0.server.keys(&self.0.space).await?;
        let batches = self.0.each(keys, range.clone());
        let rows = batches.map(|pairs| {
            let rows = pairs?.into_iter().map(|(key, columns)| {
                let record = record(&key, &columns)?;
                Ok(Row { key, record })
            });
            rows.collect::<Result<Vec<_>>>()
        });
        Ok(rows.boxed())
    }

    async fn count(&self) -> Result<u64> {
        self.0.server.search_count(conditions(&self.0.space, &Filter::All)).await
    }

    async fn split(&self, parts: u32) -> Result<Vec<KeyRange>> {
        one_part(&self.0.abilities, parts)
    }

    async fn drop_table(&self) -> Result<()> {
        self.0.clear().await.map(drop)
    }

    async fn describe(&self) -> Result<Description> {
        self.0.describe(Shape::Document).await
    }
}
