//! Rows on their way into a table.

use rusqlite::{Connection, Statement, TransactionBehavior};

use super::{
    column::{Writes, key_of},
    error::error,
    table::Known,
};
use crate::{
    Result,
    store::{Key, sql::taken},
};

/// Executes a statement for each of `all`, in one transaction, and adds up the rows that changed. One
/// alone needs no transaction: a statement is one.
pub fn each<T>(
    connection: &mut Connection,
    statement: &str,
    all: &[T],
    execute: impl Fn(&mut Statement, &T) -> rusqlite::Result<usize>,
) -> rusqlite::Result<u64> {
    match all {
        [] => Ok(0),
        [one] => execute(&mut *connection.prepare_cached(statement)?, one).map(|n| n as u64),
        all => {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let mut count = 0;
            {
                let mut statement = transaction.prepare_cached(statement)?;
                for one in all {
                    count += execute(&mut statement, one)? as u64;
                }
            }
            transaction.commit()?;
            Ok(count)
        }
    }
}

/// Writes rows, each of a key and what `execute` binds: all of them or none. `new` ones must not be there.
///
/// # Errors
/// [`Conflict`](crate::ErrorKind::Conflict) for a new one that is there, and for a key that the table takes for
/// another; [`Unsupported`](crate::ErrorKind::Unsupported) where the table can only be read.
pub fn rows<T>(
    connection: &mut Connection,
    known: &Known,
    new: bool,
    all: &[(&Key, T)],
    execute: impl Fn(&mut Statement, &(&Key, T)) -> rusqlite::Result<usize>,
) -> Result<()> {
    match known.writes()? {
        Writes::AsItIs => {
            each(connection, known.writing(new), all, execute).map(drop).map_err(error)
        }
        Writes::Looking => looking(connection, known, new, all, execute),
    }
}

/// Writes rows, looking before each that the table takes its key for no other, and after it that the key is
/// kept as it is.
fn looking<T>(
    connection: &mut Connection,
    known: &Known,
    new: bool,
    all: &[(&Key, T)],
    execute: impl Fn(&mut Statement, &(&Key, T)) -> rusqlite::Result<usize>,
) -> Result<()> {
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(error)?;
    {
        let mut statement = transaction.prepare_cached(known.writing(new)).map_err(error)?;
        let mut like = transaction.prepare_cached(&known.texts.like).map_err(error)?;
        let mut others = |key: &Key| -> Result<Option<Key>> {
            let mut rows = like.query([key.as_str()]).map_err(error)?;
            rows.next().map_err(error)?.map(|row| key_of(row, 0)).transpose()
        };
        for one in all {
            let key = one.0;
            if let Some(other) = others(key)?.filter(|other| other != key) {
                return Err(taken(&known.table, key, Some(&other)));
            }
            execute(&mut statement, one).map_err(error)?;
            if others(key)?.as_ref() != Some(key) {
                return Err(taken(&known.table, key, None));
            }
        }
    }
    transaction.commit().map_err(error)
}
