//! Conditional writes: what a statement asks of a row beside its key. The rows that it touched say whether the write took
//! place.

use super::{Dialect, Sql, Table};
use crate::{
    Result,
    record::Value,
    store::{
        Expected,
        query::{Path, Test},
    },
};

/// What must be under a key for a row to be written or deleted.
#[derive(Debug, Clone, Copy)]
pub enum Guard<'g> {
    /// No row has the key.
    Absent,
    /// This field of the record is this text.
    Field(&'g str, &'g str),
    /// These are the bytes of the row's only column.
    Bytes(&'g [u8]),
}

impl<'g> From<&'g Expected> for Guard<'g> {
    fn from(expected: &'g Expected) -> Guard<'g> {
        match expected {
            Expected::Absent => Guard::Absent,
            Expected::Field { name, text } => Guard::Field(name, text),
        }
    }
}

impl Table {
    /// Appends the condition that a field of the record is a text, byte for byte. The field `_key` is one like all others
    /// here.
    ///
    /// # Errors
    /// Where a query of the database cannot have the name.
    pub(crate) fn has_text(
        &self,
        dialect: &dyn Dialect,
        name: &str,
        text: &str,
        sql: &mut Sql,
    ) -> Result<()> {
        self.value(dialect, &Path::new([name]), &Test::Eq(Value::from(text)), sql)
    }
}
