//! Records of one table together with those of another that belong to them.
//!
//! The meaning is [`Memory`](super::memory)'s: every record of this table that fits the filter, with
//! all records of the other table whose text under [`Join::field`] is the one under [`Join::on`].
//! What is no text equals nothing. A record without others is not among the answers.

use std::collections::{HashMap, hash_map::Entry};

use super::{Filter, Key, Row, query::Path};
use crate::{Error, ErrorKind, Result, record::Document};

/// Which records of a table, and which of another belong to them.
#[derive(Debug, Clone, PartialEq)]
pub struct Join {
    /// Which records of this table.
    pub filter: Filter,
    /// Where the text lies in them; `_key` is the key.
    pub on: Path,
    /// The other table, by its name in the same place; it may be the same one.
    pub table: String,
    /// Where the same text lies in its records. An index on it makes the join quick.
    pub field: Path,
}

/// A record, and those that belong to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Joined {
    /// The record.
    pub row: Row,
    /// Those of the other table, one at least, in no promised order.
    pub others: Vec<Row>,
}

/// How many records of the other table a join may answer with: they come all at once.
pub(super) const MOST: usize = 10_000;

/// The error for a join of more.
pub(super) fn too_many() -> Error {
    let what = format!("a join of more than {MOST} records; ask for fewer at a time");
    Error::new(ErrorKind::TooLarge, what)
}

/// Puts pairs together as they come: a record is made once, however many belong to it.
#[derive(Default)]
pub(super) struct Groups {
    all: Vec<Joined>,
    /// Where each key's record is in `all`.
    at: HashMap<Key, usize>,
    pairs: usize,
}

impl Groups {
    /// A record of the other table, and the key of the one it belongs to, whose record `make` makes.
    ///
    /// # Errors
    /// Those of `make`; [`TooLarge`](ErrorKind::TooLarge) beyond [`MOST`] pairs.
    pub(super) fn add(
        &mut self,
        key: Key,
        make: impl FnOnce() -> Result<Document>,
        other: Row,
    ) -> Result<()> {
        self.pairs += 1;
        if self.pairs > MOST {
            return Err(too_many());
        }
        // Mostly they come one group after the other.
        if let Some(last) = self.all.last_mut().filter(|last| last.row.key == key) {
            last.others.push(other);
            return Ok(());
        }
        match self.at.entry(key) {
            Entry::Occupied(at) => self.all[*at.get()].others.push(other),
            Entry::Vacant(free) => {
                let row = Row { key: free.key().clone(), record: make()? };
                free.insert(self.all.len());
                self.all.push(Joined { row, others: vec![other] });
            }
        }
        Ok(())
    }

    /// All that came.
    pub(super) fn done(self) -> Vec<Joined> {
        self.all
    }
}
