//! All records of one tenant's database, to another database or through somebody's hands.

use std::sync::Arc;

use futures_util::TryStreamExt;
use sha2::{Digest, Sha256};
use steelyard_base::{Error, ErrorKind, Result};
use steelyard_store::{
    format::Format,
    record::{Document, Kind, Value},
    store::{self, Key, KeyRange, Row, Store},
};

use super::database::Database;
use crate::config::Layouts;

/// How many records there are, and a sum of their hashes, which is the same in any order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub records: u64,
    sum: [u64; 4],
}

impl Tally {
    /// The sum, for a file.
    pub(super) fn sum(&self) -> String {
        self.sum.iter().map(|word| format!("{word:016x}")).collect()
    }

    pub(super) fn add(&mut self, table: &str, key: &Key, record: &Document) -> Result<()> {
        let (mut bytes, mut hash) = (Vec::new(), Sha256::new());
        // Which has every kind of value. Stores may keep names in another order.
        Format::Cbor.encode_document(&in_order(record), &mut bytes)?;
        for part in [table.as_bytes(), key.as_bytes(), &bytes] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        self.records += 1;
        for (sum, word) in self.sum.iter_mut().zip(hash.finalize().chunks_exact(8)) {
            // Two records that are there twice do not cancel out, as they would by exclusive or.
            *sum = sum.wrapping_add(word.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)));
        }
        Ok(())
    }
}

/// The record with the names of all maps in order.
fn in_order(record: &Document) -> Document {
    fn value(of: &Value) -> Value {
        match of {
            Value::Map(map) => Value::Map(in_order(map)),
            Value::List(list) => Value::List(list.iter().map(value).collect()),
            other => other.clone(),
        }
    }
    let mut names: Vec<(&str, &Value)> = record.iter().collect();
    names.sort_by_key(|(name, _)| *name);
    Document::from_iter(names.into_iter().map(|(name, of)| (name, value(of))))
}

/// The tables of a tenant's database.
async fn tables(database: &Database) -> Result<Vec<String>> {
    database.tables().await.map_err(|e| match e.kind() {
        ErrorKind::Unsupported => {
            Error::unsupported("this kind of store cannot list its tables, so a tenant in it cannot be moved or backed up")
        }
        _ => e,
    })
}

/// Hands over all records of a database, some at a time, each batch with its table.
pub(super) async fn each(
    database: &Database,
    mut take: impl AsyncFnMut(&str, Vec<Row>) -> Result<()>,
) -> Result<()> {
    for name in tables(database).await? {
        let at = |e: Error| e.in_place(format!("collection {name}"));
        let table = database.table(&name)?;
        // An empty table is one too.
        take(&name, Vec::new()).await.map_err(at)?;
        let mut rows = table.scan(&KeyRange::all()).await?;
        while let Some(batch) = rows.try_next().await? {
            take(&name, batch).await.map_err(at)?;
        }
    }
    Ok(())
}

/// What is in a database.
pub(super) async fn tally(database: &Database) -> Result<Tally> {
    let mut tally = Tally::default();
    each(database, async |name, rows| {
        rows.iter().try_for_each(|row| tally.add(name, &row.key, &row.record))
    })
    .await?;
    Ok(tally)
}

/// The first record of a database that another one has not, or not like this.
async fn first_difference(source: &Database, target: &Database) -> Result<Option<String>> {
    for name in tables(source).await? {
        let (from, to) = (source.table(&name)?, target.table(&name)?);
        let mut rows = from.scan(&KeyRange::all()).await?;
        while let Some(batch) = rows.try_next().await? {
            let keys: Vec<Key> = batch.iter().map(|row| row.key.clone()).collect();
            for (row, there) in batch.iter().zip(to.get(&keys).await?) {
                let kept =
                    there.as_ref().is_some_and(|there| in_order(there) == in_order(&row.record));
                if !kept {
                    let how =
                        there.and_then(|there| store::difference(&row.record, &there, &Kind::ALL));
                    let how = how.map_or(String::new(), |how| format!(": {how}"));
                    return Ok(Some(format!(
                        "key {} of {name} is not kept as it is{how}",
                        row.key.shown()
                    )));
                }
            }
        }
    }
    Ok(None)
}

/// Writes tables of a database, in the order in which their records come.
pub(super) struct Filling<'p> {
    database: &'p Database,
    layouts: &'p Layouts,
    table: Option<(String, Arc<dyn Store>)>,
    pub tally: Tally,
}

impl<'p> Filling<'p> {
    pub(super) fn new(database: &'p Database, layouts: &'p Layouts) -> Filling<'p> {
        Filling { database, layouts, table: None, tally: Tally::default() }
    }

    pub(super) async fn put(&mut self, name: &str, rows: &[Row]) -> Result<()> {
        if self.table.as_ref().is_none_or(|(open, _)| open != name) {
            let table = self.database.prepared(name, &self.layouts.of(name)).await?;
            self.table = Some((name.to_owned(), table));
        }
        rows.iter().try_for_each(|row| self.tally.add(name, &row.key, &row.record))?;
        match &self.table {
            Some((_, table)) if !rows.is_empty() => table.put(rows).await,
            _ => Ok(()),
        }
    }
}

/// Copies all records of a database into one that has none but the marker, and says what it has then: read again there,
/// and the same as what is in the source after the copy.
///
/// # Errors
/// [`Mismatch`](ErrorKind::Mismatch) where they differ in the end.
pub(super) async fn copy(source: &Database, target: &Database, layouts: &Layouts) -> Result<Tally> {
    /// A write that was on its way when the tenant was frozen, and that nobody acknowledged, may still arrive.
    const TRIES: usize = 3;
    let mut found = (Tally::default(), Tally::default());
    for _ in 0..TRIES {
        for name in tables(target).await? {
            target.drop_table(&name).await?;
        }
        let mut filling = Filling::new(target, layouts);
        each(source, async |name, rows| filling.put(name, &rows).await).await?;
        found = (tally(source).await?, tally(target).await?);
        if found.0 == found.1 {
            return Ok(found.1);
        }
    }
    let what = match first_difference(source, target).await? {
        Some(what) => what,
        None => {
            format!("the copy has {} records and the source {}", found.1.records, found.0.records)
        }
    };
    Err(Error::new(ErrorKind::Mismatch, what))
}
