//! Values that the type of their column may change: a text that becomes a date, a member of a list, an address.
//!
//! What such a type makes of a text only the database knows, and it says nothing of it. So what was written is read
//! again in the same transaction, which is undone where another value would come back. Columns that keep every value
//! they take, as those of tables made here do, are not read again.

use super::{Described, Fields, row::of_field};
use crate::{
    Error, Result,
    record::{Document, Value},
    store::query,
};

impl<C: Described> Fields<C> {
    /// The columns of the body that may change what is put into them.
    pub fn changing(&self) -> impl Iterator<Item = &C> {
        self.body.iter().filter(|column| column.changes().is_some())
    }

    /// Whether a record has to be looked at after it was written.
    pub fn may_change(&self, record: &Document) -> bool {
        let has = |column: &C| record.get(column.name()).is_some_and(|v| *v != Value::Null);
        self.changing().any(has)
    }

    /// Whether what was put is what is there.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid), naming the field, where it is not.
    pub fn kept(&self, put: &Document, got: &Document) -> Result<()> {
        self.changing().try_for_each(|column| {
            let name = column.name();
            let put = put.get(name).unwrap_or(&Value::Null);
            kept(column, put, got.get(name)).map_err(|e| of_field(e, name))
        })
    }

    /// The error of a database that did not take a record and does not say which field it is about: those that it
    /// may be.
    pub fn not_taken(&self, e: Error, record: &Document) -> Error {
        let has = |column: &&C| record.get(column.name()).is_some_and(|v| *v != Value::Null);
        // As servers do where they say it.
        let is_named = |column: &C| e.context().contains(&format!("column {:?}", column.name()));
        let names: Vec<_> = self.changing().filter(has).collect();
        if names.is_empty() || names.iter().any(|column| is_named(column)) {
            return e;
        }
        let shown =
            |column: &&C| format!("{:?} ({})", column.name(), column.changes().unwrap_or_default());
        let names: Vec<_> = names.iter().map(shown).collect();
        let what = format!("field {}: {}", names.join(" or "), e.context());
        Error::new(e.kind(), what).with_source(e)
    }
}

/// Whether a value that was put into a column is the one that is there.
///
/// # Errors
/// What is wrong with it, in a phrase that follows the field's name.
pub fn kept(column: &impl Described, put: &Value, got: Option<&Value>) -> Result<()> {
    if *put == *got.unwrap_or(&Value::Null) {
        return Ok(());
    }
    let got = got.map_or("NULL".into(), query::shown);
    let declared = column.changes().unwrap_or_default();
    Err(Error::invalid(format!(
        "is {}, which its column ({declared}) would keep as {got}; nothing was written",
        query::shown(put)
    )))
}
