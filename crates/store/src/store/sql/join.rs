//! A join as one statement. The table that is filtered is `a`, the other one is `b`.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use super::{Body, Column, Dialect, Path, Query, Sql, Table};
use crate::{
    Error, Result,
    record::Kind,
    store::join::{Join, MOST},
};

/// What the table that is filtered is called in a join, as names of its columns begin.
pub(crate) const OWN: &str = "a.";
/// The other one.
pub(crate) const OTHER: &str = "b.";

/// A table of a join.
pub(crate) struct Side<'s> {
    pub table: &'s Table,
    pub dialect: &'s dyn Dialect,
    /// What is read of it, by the name it has in a join.
    pub what: String,
    /// Its keys are texts, and can be compared as such.
    pub key_is_text: bool,
}

/// The statement of a join: it gives `other.1`, then `own.1`, which name columns of [`OTHER`] and of
/// [`OWN`].
///
/// # Errors
/// For filters that make no sense, or paths that cannot be said; [`Unsupported`](crate::ErrorKind::Unsupported)
/// for keys that are no texts, as those of some tables of other programs.
pub(crate) fn join(join: &Join, own: &Side<'_>, other: &Side<'_>) -> Result<Sql> {
    for (path, side) in [(&join.on, own), (&join.field, other)] {
        if path.is_key() && !side.key_is_text {
            let name = &side.table.name;
            let what = format!("a join by the keys of table {name:?}, which are not text");
            return Err(Error::unsupported(what));
        }
    }
    let (Side { table, dialect, what, .. }, Side { table: with, what: and, .. }) = (own, other);
    let (dialect, others) = (*dialect, other.dialect);
    Query::new(join.filter.clone()).check()?;
    let name = dialect.quote(&table.name);
    let mut sql = Sql::new(dialect, format!("SELECT {and}, {what} FROM (SELECT * FROM {name}"));
    // Inside, so that names of columns mean those of this table; servers pull it out again.
    table.filter(dialect, &join.filter, &mut sql)?;
    let text = table.text(dialect, &join.on)?;
    let equal = with.equals(others, &join.field, &text)?;
    let name = others.quote(&with.name);
    sql.push(&format!(") AS a JOIN {name} AS b ON {equal} LIMIT {}", MOST + 1));
    Ok(sql)
}

impl Table {
    /// The text under a path of a record of `a`; `NULL` where there is none.
    fn text(&self, dialect: &dyn Dialect, path: &Path) -> Result<String> {
        match self.column(dialect, OWN, path) {
            Some(column) => Ok(column),
            None => match &self.body {
                Body::Document(column) => {
                    dialect.text(&format!("{OWN}{}", dialect.quote(column)), path)
                }
                Body::Columns(_) => Ok("NULL".into()),
            },
        }
    }

    /// The condition that the text under a path of a record of `b` is this one.
    fn equals(&self, dialect: &dyn Dialect, path: &Path, text: &str) -> Result<String> {
        if let Some(column) = self.text_column(path)
            && let Some(condition) = dialect.equals_column(OTHER, column, text)
        {
            return Ok(condition);
        }
        match self.column(dialect, OTHER, path) {
            Some(column) => Ok(format!("{column} = {}", dialect.plain(text))),
            None => match &self.body {
                Body::Document(column) => dialect.equals(OTHER, &dialect.quote(column), path, text),
                Body::Columns(_) => Ok("1=0".into()),
            },
        }
    }

    /// The column of text, quoted, that holds what lies under a path, if one does.
    fn column(&self, dialect: &dyn Dialect, of: &str, path: &Path) -> Option<String> {
        if path.is_key() {
            return Some(dialect.by_bytes_of(of, &dialect.quote(&self.key)));
        }
        let column = self.text_column(path)?;
        Some(dialect.by_bytes_of(of, &dialect.quote(&column.name)))
    }

    fn text_column(&self, path: &Path) -> Option<&Column> {
        super::column(self.columns()?, path).filter(|column| column.kind == Kind::Text)
    }
}

/// Other tables of the same place, which are looked at once.
pub(crate) struct Others<T>(Mutex<HashMap<String, Arc<T>>>);

impl<T> Default for Others<T> {
    fn default() -> Self {
        Others(Mutex::default())
    }
}

impl<T> Others<T> {
    /// The one of this name.
    ///
    /// # Errors
    /// Those of `make`.
    pub(crate) fn get(&self, name: &str, make: impl FnOnce() -> Result<T>) -> Result<Arc<T>> {
        const KEPT: usize = 64;
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(there) = all.get(name) {
            return Ok(there.clone());
        }
        let made = Arc::new(make()?);
        if all.len() >= KEPT {
            all.clear();
        }
        all.insert(name.to_owned(), made.clone());
        Ok(made)
    }

    /// What is known of them may be so no longer.
    pub(crate) fn forget(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
