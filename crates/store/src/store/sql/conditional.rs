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

/// The column with the bytes of a blob: as bytes, as text, or, where columns hold values of any kind, as either.
pub(crate) struct BlobColumn {
    /// The column where it holds bytes.
    pub bytes: Option<String>,
    /// The column where it holds text, compared byte for byte.
    pub text: Option<String>,
}

/// A condition that no row fits.
const NEVER: &str = "1=0";

impl Table {
    /// Appends the condition that a row is as the guard says, its key aside. A field that is a text is compared byte for
    /// byte; the field `_key` is one like all others here. `body` is asked for where bytes are to be compared.
    ///
    /// # Errors
    /// Where a query of the database cannot have the name of the field.
    pub(crate) fn is_as(
        &self,
        dialect: &dyn Dialect,
        guard: Guard<'_>,
        body: impl FnOnce() -> BlobColumn,
        sql: &mut Sql,
    ) -> Result<()> {
        let bytes = match guard {
            // Where there must be no row, none is the right one.
            Guard::Absent => {
                sql.push(NEVER);
                return Ok(());
            }
            Guard::Field(name, text) => {
                return self.value(dialect, &Path::new([name]), &Test::Eq(Value::from(text)), sql);
            }
            Guard::Bytes(bytes) => bytes,
        };
        let body = body();
        let as_bytes = body.bytes.map(|column| (column, Value::Bytes(bytes.to_vec())));
        let as_text = body.text.zip(str::from_utf8(bytes).ok().map(Value::from));
        let mut or = "";
        for (column, value) in [as_bytes, as_text].into_iter().flatten() {
            sql.push(or).push(&column).push(" = ").bind(value);
            or = " OR ";
        }
        if or.is_empty() {
            sql.push(NEVER);
        }
        Ok(())
    }
}
