//! One operation of a phase: how it is sent, what it writes, and what its answer has to be held to.
//!
//! [`Op`] is what most kinds of phases send. A kind with another operation has a type of its own with
//! these functions (`phase/relate.rs`); the timed loops are compiled for each, so nothing is looked up
//! or allocated for it within a window.

use std::{fmt::Debug, mem, slice, sync::Arc};

use futures_util::TryStreamExt;

use super::{
    answers::{Aside, Found},
    check::Answers,
    statement,
};
use crate::{
    Error, Result,
    record::Document,
    results::Statement,
    store::{Key, Query, Request, Row, Store},
};

/// One operation, ready to be sent.
pub(super) trait Operation: Debug + Send + Sync + 'static {
    /// Sends it and waits for all of its answer. Answers that `aside` wants are kept there, and looked
    /// at after the window.
    fn send(
        &self,
        stores: &Stores,
        aside: &mut Aside,
    ) -> impl Future<Output = Result<Outcome>> + Send;

    /// Whether the store can do it.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported), saying why not.
    fn possible(&self, _stores: &Stores) -> Result<()> {
        Ok(())
    }

    /// Whether it adds a record to the table.
    fn adds(&self) -> bool {
        false
    }

    /// What it writes, and under which key.
    fn written(&self) -> Option<(&Key, Written<'_>)> {
        None
    }

    /// Says which records an answer that was put aside has, so that they are compared with those that
    /// were written.
    fn answered<'t>(&self, _found: Found, _answers: &mut Answers<'t>) {}

    /// The statements that the store is sent for it, for the page.
    fn statements(&self, _stores: &Stores) -> impl Future<Output = Vec<Statement>> + Send {
        async { Vec::new() }
    }

    /// Whether another operation of the phase takes the same statements, but for values.
    fn is_like(&self, _other: &Self) -> bool {
        true
    }
}

/// What an operation writes under its key.
#[derive(Debug, Clone, Copy)]
pub(super) enum Written<'o> {
    /// A whole record.
    Record(&'o Document),
    /// Fields of the record that is there.
    Fields(&'o Document),
}

/// How an operation ended that did not fail.
pub(super) enum Outcome {
    /// Good, with so many records read.
    Done(u64),
    /// The answer is wrong: what.
    Missed(String),
}

/// The stores that operations go to.
#[derive(Clone)]
pub(super) struct Stores {
    /// The table of the phase.
    pub table: Arc<dyn Store>,
    /// The other table of a kind that uses two.
    pub other: Option<Arc<dyn Store>>,
}

impl Stores {
    /// The other table.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) where the phase has none.
    pub(super) fn other(&self) -> Result<&Arc<dyn Store>> {
        self.other.as_ref().ok_or_else(|| Error::invalid("a relation to no table"))
    }
}

/// The operations that most kinds of phases send.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    /// Reads these keys; every one has to be there.
    Get(Box<[Key]>),
    /// Asks this; so many records have to come.
    Find(Box<Query>, Option<u64>),
    /// Writes this in place of the record of its key.
    Put(Box<Row>),
    /// Writes this, whose key is new.
    Insert(Box<Row>),
    /// Reads this, puts these fields in, writes it.
    Change(Key, Box<Document>),
}

impl Operation for Op {
    async fn send(&self, stores: &Stores, aside: &mut Aside) -> Result<Outcome> {
        match self {
            Op::Get(keys) => {
                let found = stores.table.get(keys).await?;
                let read = found.iter().flatten().count();
                if read < keys.len() || found.len() != keys.len() {
                    let at = found.iter().position(Option::is_none).unwrap_or(found.len());
                    return Ok(missing(keys.get(at)));
                }
                if aside.wants() {
                    aside.put(Found::Records(found));
                }
                Ok(Outcome::Done(read as u64))
            }
            Op::Find(query, expected) => {
                let (read, first) = drained(&*stores.table, query, aside.wants()).await?;
                aside.put(Found::Rows(first));
                match expected {
                    Some(expected) if read != *expected => {
                        Ok(Outcome::Missed(format!("{read} records came instead of {expected}")))
                    }
                    _ => Ok(Outcome::Done(read)),
                }
            }
            Op::Put(row) | Op::Insert(row) => {
                stores.table.put(slice::from_ref(row)).await?;
                Ok(Outcome::Done(1))
            }
            Op::Change(key, fields) => change(stores, key, fields, aside).await,
        }
    }

    fn possible(&self, stores: &Stores) -> Result<()> {
        match self {
            Op::Find(query, _) => stores.table.abilities().can(query),
            Op::Get(_) | Op::Put(_) | Op::Insert(_) | Op::Change(..) => Ok(()),
        }
    }

    fn adds(&self) -> bool {
        matches!(self, Op::Insert(_))
    }

    fn written(&self) -> Option<(&Key, Written<'_>)> {
        match self {
            Op::Put(row) | Op::Insert(row) => Some((&row.key, Written::Record(&row.record))),
            Op::Change(key, fields) => Some((key, Written::Fields(fields))),
            Op::Get(_) | Op::Find(..) => None,
        }
    }

    fn answered<'t>(&self, found: Found, answers: &mut Answers<'t>) {
        let table = answers.table;
        match (self, found) {
            (Op::Get(keys), Found::Records(found)) => {
                let how = of_keys(keys);
                for (key, record) in keys.iter().zip(found) {
                    answers.record(table, key, record.unwrap_or_default(), &how);
                }
            }
            (Op::Change(key, _), Found::Records(found)) => {
                for record in found.into_iter().flatten() {
                    answers.record(table, key, record, "read of a change");
                }
            }
            (Op::Find(query, _), Found::Rows(rows)) => {
                answers.rows(table, &rows, "find");
                answers.query(table, (**query).clone(), rows);
            }
            _ => {}
        }
    }

    async fn statements(&self, stores: &Stores) -> Vec<Statement> {
        let table = &*stores.table;
        match self {
            Op::Get(keys) => statement::of(table, Request::Get(keys)).await,
            Op::Find(query, _) => statement::of(table, Request::Find(query)).await,
            Op::Put(row) | Op::Insert(row) => {
                statement::of(table, Request::Put(slice::from_ref(row))).await
            }
            Op::Change(key, fields) => {
                let row = Row { key: key.clone(), record: (**fields).clone() };
                let mut both = statement::of(table, Request::Get(slice::from_ref(key))).await;
                both.extend(statement::of(table, Request::Put(&[row])).await);
                both
            }
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        let writes = |op: &Op| matches!(op, Op::Put(_) | Op::Insert(_));
        writes(self) && writes(other) || mem::discriminant(self) == mem::discriminant(other)
    }
}

async fn change(
    stores: &Stores,
    key: &Key,
    fields: &Document,
    aside: &mut Aside,
) -> Result<Outcome> {
    let found = stores.table.get(slice::from_ref(key)).await?;
    let Some(mut record) = found.into_iter().next().flatten() else {
        return Ok(missing(Some(key)));
    };
    if aside.wants() {
        aside.put(Found::Records(vec![Some(record.clone())]));
    }
    for (name, value) in fields.iter() {
        record.insert(name, value.clone());
    }
    stores.table.put(&[Row { key: key.clone(), record }]).await?;
    Ok(Outcome::Done(1))
}

/// The outcome where a record that has to be there is not.
pub(super) fn missing(key: Option<&Key>) -> Outcome {
    let key = key.map_or_else(String::new, |key| key.shown());
    Outcome::Missed(format!("there is no record {key}, which was written"))
}

/// Asks a query and reads its whole answer: how many rows there were, and the first batch of them where
/// it is wanted.
pub(super) async fn drained(
    store: &dyn Store,
    query: &Query,
    wanted: bool,
) -> Result<(u64, Vec<Row>)> {
    let mut rows = store.find(query).await?;
    let (mut read, mut first) = (0, Vec::new());
    while let Some(batch) = rows.try_next().await? {
        read += batch.len() as u64;
        if wanted && first.is_empty() {
            first = batch;
        }
    }
    Ok((read, first))
}

/// What a read of these keys is called in an error.
pub(super) fn of_keys(keys: &[Key]) -> String {
    match keys.len() {
        1 => "get of one key".into(),
        n => format!("get of {n} keys at once"),
    }
}
