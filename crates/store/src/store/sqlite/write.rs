//! Writes rows to a table.

use std::{collections::HashMap, iter};

use rusqlite::{
    Connection, Statement, TransactionBehavior, params_from_iter,
    types::{ToSqlOutput, Value as Cell, ValueRef},
};

use super::{
    column::{Writes, cell, key_of, value},
    error::{error, of_row},
    table::Schema,
};
use crate::{
    Result,
    record::Value,
    store::{
        Blob, Key, Shape, blocking, counts,
        sql::{
            Changer, Sql, another, changed_record, left_out,
            row::{about, of_field},
            taken,
        },
    },
};

/// A row on its way into the table.
pub(super) trait Entry {
    fn key(&self) -> &Key;
    /// Executes a statement of the key and the body.
    fn execute(&self, statement: &mut Statement) -> rusqlite::Result<usize>;
    /// What is in a column of the body, by its number.
    fn body(&self, i: usize) -> ValueRef<'_>;
}

/// The row of a record.
pub(super) struct Cells {
    pub key: Key,
    pub body: Vec<Cell>,
}

impl Entry for Cells {
    fn key(&self) -> &Key {
        &self.key
    }

    fn execute(&self, statement: &mut Statement) -> rusqlite::Result<usize> {
        let key = ValueRef::Text(self.key.as_bytes());
        let cells = iter::once(key).chain(self.body.iter().map(ValueRef::from));
        statement.execute(params_from_iter(cells.map(ToSqlOutput::Borrowed)))
    }

    fn body(&self, i: usize) -> ValueRef<'_> {
        self.body.get(i).map_or(ValueRef::Null, ValueRef::from)
    }
}

impl Entry for Blob {
    fn key(&self) -> &Key {
        &self.key
    }

    fn execute(&self, statement: &mut Statement) -> rusqlite::Result<usize> {
        statement.execute((self.key.as_str(), &self.bytes[..]))
    }

    fn body(&self, _: usize) -> ValueRef<'_> {
        ValueRef::Blob(&self.bytes)
    }
}

/// Executes a statement for each of `all`, in one transaction, and adds up the rows that changed. One
/// alone needs no transaction: a statement is one.
pub(super) fn each<T>(
    connection: &mut Connection,
    statement: &str,
    all: &[T],
    execute: impl Fn(&mut Statement, &T) -> Result<usize>,
) -> Result<u64> {
    match all {
        [] => Ok(0),
        [one] => {
            let mut statement = connection.prepare_cached(statement).map_err(error)?;
            execute(&mut statement, one).map(|n| n as u64)
        }
        all => {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate);
            let transaction = transaction.map_err(error)?;
            let mut count = 0;
            {
                let mut statement = transaction.prepare_cached(statement).map_err(error)?;
                for (n, one) in all.iter().enumerate() {
                    blocking::give_way(n);
                    count += execute(&mut statement, one)? as u64;
                }
            }
            transaction.commit().map_err(error)?;
            Ok(count)
        }
    }
}

/// Writes rows, each with its key: all of them or none. `new` ones must not be there.
///
/// # Errors
/// [`Conflict`](crate::ErrorKind::Conflict) for a new one that is there, and for a key that the table takes for
/// another; [`Invalid`](crate::ErrorKind::Invalid) for what a rule of the table does not take, or a trigger
/// changes; [`Unsupported`](crate::ErrorKind::Unsupported) where the table can only be read.
pub(super) fn rows(
    connection: &mut Connection,
    known: &Schema,
    new: bool,
    all: &[impl Entry],
) -> Result<()> {
    match known.writes()? {
        Writes::AsItIs if !known.triggers => {
            let done = each(connection, known.writing(new), all, |statement, entry| {
                entry.execute(statement).map_err(|e| of_row(e, entry.key()))
            });
            done.map(drop)
        }
        writes => looking(connection, known, writes, new, all),
    }
}

/// What a statement of a conditional write binds: the key, the body, and the values of its condition.
fn bound<'e>(
    known: &Schema,
    entry: &'e impl Entry,
    more: &'e [Cell],
) -> impl Iterator<Item = ToSqlOutput<'e>> {
    let key = ValueRef::Text(entry.key().as_bytes());
    let body = (0..known.fields.body.len()).map(|i| entry.body(i));
    let all = iter::once(key).chain(body).chain(more.iter().map(ValueRef::from));
    all.map(ToSqlOutput::Borrowed)
}

/// Writes a row if the row of its key fits the condition, or, without one, if there is none; says whether it did.
///
/// # Errors
/// As [`rows`].
pub(super) fn row_if(
    connection: &mut Connection,
    known: &Schema,
    condition: Option<&Sql>,
    entry: &impl Entry,
) -> Result<bool> {
    let (texts, key) = (&known.texts, entry.key());
    let more: Vec<Cell> = condition.map_or_else(Vec::new, |sql| cells(&sql.values));
    match known.writes()? {
        Writes::AsItIs if !known.triggers => {
            let statement = match condition {
                None => connection.prepare_cached(&texts.insert_absent),
                Some(sql) => {
                    connection.prepare_cached(&[texts.update.as_str(), &sql.text].concat())
                }
            };
            let values = params_from_iter(bound(known, entry, &more));
            let count = statement.and_then(|mut statement| statement.execute(values));
            counts::yes("the statement", count.map_err(|e| of_row(e, key))? as i128)
        }
        writes => {
            let transaction = connection
                .transaction_with_behavior(TransactionBehavior::Immediate)
                .map_err(error)?;
            let there = {
                let select = [texts.look.as_str(), condition.map_or("", |sql| &sql.text)].concat();
                let mut look = transaction.prepare_cached(&select).map_err(error)?;
                let key = iter::once(ValueRef::Text(key.as_bytes()));
                let values = key.chain(more.iter().map(ValueRef::from));
                look.exists(params_from_iter(values.map(ToSqlOutput::Borrowed))).map_err(error)?
            };
            if there != condition.is_some() {
                return Ok(false);
            }
            let new = condition.is_none();
            looked_at(&transaction, known, writes, new, std::slice::from_ref(entry))?;
            transaction.commit().map_err(error)?;
            Ok(true)
        }
    }
}

/// Deletes the row of a key if it fits the condition, and says whether it did.
///
/// # Errors
/// Those of SQLite.
pub(super) fn remove_if(
    connection: &mut Connection,
    known: &Schema,
    condition: &Sql,
    key: &Key,
) -> Result<bool> {
    if known.check_key(key).is_err() {
        return Ok(false);
    }
    let text = [known.texts.remove.as_str(), &condition.text].concat();
    let mut statement = connection.prepare_cached(&text).map_err(error)?;
    let key = iter::once(Cell::Text(key.as_str().to_owned()));
    let values = params_from_iter(key.chain(cells(&condition.values)));
    counts::yes("the statement", statement.execute(values).map_err(error)? as i128)
}

fn cells(values: &[Value]) -> Vec<Cell> {
    values.iter().map(cell).collect()
}

/// Writes rows, looking before each that the table takes its key for no other, and after it that the key is
/// kept as it is. Where the table has triggers, all that was written is looked at in the end.
fn looking(
    connection: &mut Connection,
    known: &Schema,
    writes: Writes,
    new: bool,
    all: &[impl Entry],
) -> Result<()> {
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(error)?;
    looked_at(&transaction, known, writes, new, all)?;
    transaction.commit().map_err(error)
}

/// The same inside of a transaction, which is undone where there is an error.
fn looked_at(
    transaction: &Connection,
    known: &Schema,
    writes: Writes,
    new: bool,
    all: &[impl Entry],
) -> Result<()> {
    {
        let mut statement = transaction.prepare_cached(known.writing(new)).map_err(error)?;
        let mut like = transaction.prepare_cached(&known.texts.like).map_err(error)?;
        let mut others = |key: &Key| -> Result<Option<Key>> {
            let mut rows = like.query([key.as_str()]).map_err(error)?;
            rows.next().map_err(error)?.map(|row| key_of(row, 0)).transpose()
        };
        for (n, entry) in all.iter().enumerate() {
            blocking::give_way(n);
            let key = entry.key();
            if writes == Writes::Looking
                && let Some(other) = others(key)?.filter(|other| other != key)
            {
                return Err(taken(&known.table, key, Some(&other)));
            }
            entry.execute(&mut statement).map_err(|e| of_row(e, key))?;
            if others(key)?.as_ref() != Some(key) {
                return Err(match known.triggers {
                    true => left_out(&known.table, key),
                    false => taken(&known.table, key, None),
                });
            }
        }
    }
    match known.triggers {
        true => all_kept(transaction, known, all),
        false => Ok(()),
    }
}

/// Whether what was written is what is there. A trigger may have changed what an earlier one left as it was.
fn all_kept(connection: &Connection, known: &Schema, all: &[impl Entry]) -> Result<()> {
    // Of several rows of a key the last is there.
    let last: HashMap<&Key, usize> =
        all.iter().enumerate().map(|(i, entry)| (entry.key(), i)).collect();
    let mut look = connection.prepare_cached(&known.texts.look).map_err(error)?;
    for (i, entry) in all.iter().enumerate() {
        let key = entry.key();
        if last.get(key) != Some(&i) {
            continue;
        }
        let mut rows = look.query([key.as_str()]).map_err(error)?;
        let Some(row) = rows.next().map_err(error)? else {
            return Err(left_out(&known.table, key));
        };
        for (i, column) in known.fields.body.iter().enumerate() {
            let (put, got) = (entry.body(i), row.get_ref(i + 1).map_err(error)?);
            if is_kept(put, got) {
                continue;
            }
            let e = match known.fields.shape {
                Shape::Columns => {
                    let [put, got] = [put, got].map(|cell| value(column.kind, &cell));
                    of_field(another(Changer::Trigger, &put?, &got?), &column.name)
                }
                _ => of_field(changed_record(), &column.name),
            };
            return Err(about(e, key));
        }
    }
    Ok(())
}

/// Whether a cell is what was bound for it, as a column without triggers keeps it: in one of numbers, numbers are
/// whole or floats as its type has them.
fn is_kept(put: ValueRef, got: ValueRef) -> bool {
    match (put, got) {
        (ValueRef::Integer(n), ValueRef::Real(v)) | (ValueRef::Real(v), ValueRef::Integer(n)) => {
            n as f64 == v && v as i128 == i128::from(n)
        }
        (put, got) => put == got,
    }
}
