//! A table by its names: what a URL says of it, and what is known of it once it was looked at.

use std::sync::{Arc, PoisonError, RwLock};

use super::{Described, Existing, Fields};
use crate::{
    Error, ErrorKind, Result,
    store::{Shape, Url, query::Path},
};

/// What a URL names beside the table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    pub schema: Option<String>,
    pub key: Option<String>,
    pub column: Option<String>,
}

impl Names {
    /// Takes the key and the column out of a URL; schemas are for those databases that have them.
    pub(crate) fn take(url: &mut Url) -> Names {
        Names { schema: None, key: url.take("key"), column: url.take("column") }
    }

    /// The names for another table in the same schema.
    pub(crate) fn beside(&self) -> Names {
        Names { schema: self.schema.clone(), ..Names::default() }
    }

    /// What the key's column is called in a table that is made.
    pub(crate) fn key(&self) -> &str {
        self.key.as_deref().unwrap_or(Path::KEY)
    }

    /// The column of whole records.
    pub(crate) fn body(&self, shape: Shape) -> &str {
        let usual = if shape == Shape::Blob { "value" } else { "record" };
        self.column.as_deref().unwrap_or(usual)
    }
}

/// A table, which is looked at when it is first needed. `K` is what a driver knows of it then.
pub(crate) struct Lazy<K> {
    pub shape: Shape,
    pub name: String,
    pub names: Names,
    known: RwLock<Option<Arc<K>>>,
}

impl<K> Lazy<K> {
    /// A table that was not looked at yet. `check` says whether the database can have a name for a table,
    /// or whatever else it is given the word for.
    ///
    /// # Errors
    /// Those of `check`.
    pub(crate) fn new(
        shape: Shape,
        name: &str,
        names: Names,
        check: impl Fn(&str, &str) -> Result<()>,
    ) -> Result<Lazy<K>> {
        check("table", name)?;
        for (what, name) in
            [("schema", &names.schema), ("key", &names.key), ("column", &names.column)]
        {
            name.as_ref().map_or(Ok(()), |name| check(what, name))?;
        }
        Ok(Lazy { shape, name: name.to_owned(), names, known: RwLock::default() })
    }

    /// What is known of it, if anything.
    pub(crate) fn peek(&self) -> Option<Arc<K>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// This is known of it from now on.
    pub(crate) fn keep(&self, known: impl Into<Arc<K>>) -> Arc<K> {
        let known = known.into();
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Some(known.clone());
        known
    }

    /// What is known of it may be so no longer.
    pub(crate) fn forget(&self) {
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Its columns, of all that the database describes.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) where there are none, [`Conflict`](ErrorKind::Conflict) where it
    /// is of another layout.
    pub(crate) fn understood<C: Described + Clone>(&self, found: &[C]) -> Result<Fields<C>> {
        if found.is_empty() {
            let what = format!("no table {:?} in the database", self.name);
            return Err(Error::new(ErrorKind::NotFound, what));
        }
        let there = Existing { name: &self.name, columns: found };
        there.fields(self.shape, self.names.key.as_deref(), self.names.body(self.shape))
    }
}

/// The error of what needs to know the columns.
pub(crate) fn not_prepared() -> Error {
    Error::invalid("the columns of the table are not known yet; prepare it first")
}
