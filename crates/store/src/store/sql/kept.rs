//! Values that the type of their column may change: a text that becomes a date, a member of a list, an address.
//!
//! What such a type makes of a text only the database knows, and it says nothing of it. So what was written is read
//! again in the same transaction, which is undone where another value would come back. Columns that keep every value
//! they take, as those of tables made here do, are not read again. Where the table has triggers, any value may be
//! changed, the key as well, and each record that is written is read again.

use std::cmp::Ordering;

use super::{Described, Fields, Table, row::of_field};
use crate::{
    Error, Result,
    record::{Document, Value, number},
    store::{Key, query},
};

impl<C: Described> Fields<C> {
    /// The columns of the body that may change what is put into them.
    pub(crate) fn changing(&self) -> impl Iterator<Item = &C> {
        self.body.iter().filter(|column| column.changes().is_some())
    }

    /// Whether a record has to be looked at after it was written.
    pub(crate) fn may_change(&self, record: &Document) -> bool {
        let has = |column: &C| record.get(column.name()).is_some_and(|v| *v != Value::Null);
        self.changing().any(has)
    }

    /// Whether what was put is what is there.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid), naming the field, where it is not.
    pub(crate) fn kept(&self, put: &Document, got: &Document) -> Result<()> {
        self.changing().try_for_each(|column| {
            let name = column.name();
            let put = put.get(name).unwrap_or(&Value::Null);
            kept(column, put, got.get(name)).map_err(|e| of_field(e, name))
        })
    }

    /// Whether what was put into a table with triggers is what is there, in all columns.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid), naming the field, where it is not.
    pub(crate) fn all_kept(&self, put: &Document, got: &Document) -> Result<()> {
        self.body.iter().try_for_each(|column| {
            let of = |record: &Document| record.get(column.name()).cloned().unwrap_or(Value::Null);
            let (put, got) = (of(put), of(got));
            match Changer::left(&put, &got) {
                true => Ok(()),
                false => Err(of_field(another(Changer::Trigger, &put, &got), column.name())),
            }
        })
    }

    /// The error of a database that did not take a record and does not say which field it is about: those that it
    /// may be.
    pub(crate) fn not_taken(&self, e: Error, record: &Document) -> Error {
        let has = |column: &&C| record.get(column.name()).is_some_and(|v| *v != Value::Null);
        // As servers do where they say it.
        let is_named = |column: &C| e.context().contains(&format!("column {:?}", column.name()));
        let names: Vec<_> =
            self.body.iter().filter(|c| c.refuses().is_some()).filter(has).collect();
        if names.is_empty() || names.iter().any(|column| is_named(column)) {
            return e;
        }
        let shown =
            |column: &&C| format!("{:?} ({})", column.name(), column.refuses().unwrap_or_default());
        let names: Vec<_> = names.iter().map(shown).collect();
        let what = format!("field {}: {}", names.join(" or "), e.context());
        Error::new(e.kind(), what).with_source(e)
    }
}

/// Whether a value that was put into a column is the one that is there.
///
/// # Errors
/// What is wrong with it, in a phrase that follows the field's name.
pub(crate) fn kept(column: &impl Described, put: &Value, got: Option<&Value>) -> Result<()> {
    let got = got.unwrap_or(&Value::Null);
    match put == got {
        true => Ok(()),
        false => Err(another(Changer::Column(column.changes().unwrap_or_default()), put, got)),
    }
}

/// What has changed a value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Changer<'c> {
    /// A column of this type.
    Column(&'c str),
    /// A trigger of the table, or a rule, as PostgreSQL calls what rewrites statements.
    Trigger,
}

impl Changer<'_> {
    /// Whether the value that was read is the one that was put. Numbers may have become such of another kind, as of
    /// any table.
    pub(crate) fn left(put: &Value, got: &Value) -> bool {
        put == got
            || number::is_number(put)
                && number::is_number(got)
                && query::compare(put, got) == Some(Ordering::Equal)
    }
}

/// The error for a value in whose place another is there, in a phrase that follows the field's name.
pub(crate) fn another(by: Changer, put: &Value, got: &Value) -> Error {
    let by = match by {
        Changer::Column(declared) => format!("its column ({declared})"),
        Changer::Trigger => "a trigger or a rule of the table".into(),
    };
    let shown = |value: &Value| match value {
        Value::Null => "NULL".into(),
        value => query::shown(value),
    };
    let (put, got) = (shown(put), shown(got));
    Error::invalid(format!("is {put}, which {by} would store as {got}; nothing was written"))
}

/// The error for a whole record, in one column, in whose place another is there, in a phrase that follows the column's
/// name.
pub(crate) fn changed_record() -> Error {
    let by = "a trigger or a rule of the table";
    Error::invalid(format!("is a record that {by} would change; nothing was written"))
}

/// The error for a record that is not there by its key after it was written into a table with triggers.
pub(crate) fn left_out(table: &Table, key: &Key) -> Error {
    Error::invalid(format!(
        "key {}: a trigger or a rule of table {:?} drops it or changes its key; nothing was \
         written",
        key.shown(),
        table.name
    ))
}
