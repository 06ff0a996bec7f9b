//! What a column must be like to be the key's, in a table that another program made.

use super::{Dialect, Table};
use crate::{Error, ErrorKind};

/// What the database sees to in the key's column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Promise {
    /// No two rows have the same in it: it alone is the primary key, or has a unique index of its own.
    pub unique: bool,
    pub not_null: bool,
}

impl Promise {
    /// The statement that finds a key which is in several rows, or is NULL: one row of the key as text and how
    /// many rows have it, or none. No statement where the database sees to it itself.
    pub(crate) fn broken(self, dialect: &dyn Dialect, table: &Table) -> Option<String> {
        let (column, name) = (dialect.quote(&table.key), dialect.quote(&table.name));
        let key = dialect.by_bytes(&column);
        match self {
            Promise { unique: true, not_null: true } => None,
            Promise { unique: true, not_null: false } => Some(format!(
                "SELECT {key}, count(*) FROM {name} WHERE {column} IS NULL GROUP BY {key}"
            )),
            Promise { unique: false, .. } => Some(format!(
                "SELECT {key}, count(*) FROM {name} GROUP BY {key} HAVING count(*) > 1 OR \
                 count({column}) = 0 LIMIT 1"
            )),
        }
    }
}

/// The error for what [`broken`](Promise::broken) found.
pub(crate) fn no_key(table: &Table, key: Option<&str>, rows: u64) -> Error {
    let is = match key {
        Some(key) => format!("{key:?}"),
        None => "NULL".into(),
    };
    let Table { name, key: column, .. } = table;
    let what = format!(
        "column {column:?} of table {name:?} cannot be the key: it is {is} in {rows} row{}; name another: \
         ?key=COLUMN",
        if rows == 1 { "" } else { "s" }
    );
    Error::new(ErrorKind::Conflict, what)
}

/// The error of writing into a table whose records can only be read.
pub(crate) fn only_read(table: &Table, why: &str) -> Error {
    let Table { name, key, .. } = table;
    Error::unsupported(format!(
        "table {name:?} can be read, not written: the column of its keys, {key:?}, {why}"
    ))
}

/// Why nothing is written by a key that several rows could have.
pub(crate) const NO_INDEX: &str = "has no unique index of its own";

/// The error for a key that the table does not take for itself alone: by its collation or type, or by another
/// column that has to be unique.
pub(crate) fn taken(table: &Table, key: &str, other: Option<&str>) -> Error {
    let Table { name, key: column, .. } = table;
    let why = match other {
        Some(other) => format!(
            "table {name:?} has {other:?}, which is equal to it by the collation or type of \
             column {column:?}"
        ),
        None => format!(
            "table {name:?} does not keep it as it is, by the collation or type of column {column:?} or by another column whose values are unique"
        ),
    };
    Error::new(ErrorKind::Conflict, format!("key {key:?}: {why}; nothing was written"))
}

/// The error for what stands in the key's column and is no key.
pub(crate) fn not_a_key(column: &str, is: &str) -> Error {
    Error::malformed(format!(
        "column {column:?} holds {is}, and keys are text or whole numbers; name another column: ?key=COLUMN"
    ))
}
