//! A table as the database has it: which column is the key's, and which holds the record.

use crate::{
    Error, ErrorKind, Result,
    store::{Shape, query::Path},
};

/// A column as the database describes it.
pub(in crate::store) trait Described {
    fn name(&self) -> &str;
    /// It is of the primary key.
    fn is_primary(&self) -> bool;
}

/// A table that is there.
pub(in crate::store) struct Existing<'c, C> {
    pub name: &'c str,
    pub columns: &'c [C],
}

impl<'c, C: Described> Existing<'c, C> {
    fn column(&self, name: &str) -> Option<&'c C> {
        self.columns.iter().find(|column| column.name() == name)
    }

    fn conflict(&self, what: String) -> Error {
        Error::new(ErrorKind::Conflict, format!("table {:?} {what}", self.name))
    }

    /// The column of the key: the one that is asked for, else that of tables made here, else the
    /// primary key.
    ///
    /// # Errors
    /// [`Conflict`](ErrorKind::Conflict) where there is no such column.
    pub fn key(&self, asked: Option<&str>) -> Result<&'c C> {
        let mut primary = self.columns.iter().filter(|column| column.is_primary());
        match (asked, self.column(Path::KEY), primary.next(), primary.next()) {
            (Some(name), ..) => self
                .column(name)
                .ok_or_else(|| self.conflict(format!("has no column {name:?} for the key"))),
            (None, Some(own), ..) => Ok(own),
            (None, None, Some(one), None) => Ok(one),
            _ => Err(self.conflict("has no single primary key; name it: ?key=COLUMN".into())),
        }
    }

    /// The column that holds whole records.
    ///
    /// # Errors
    /// [`Conflict`](ErrorKind::Conflict) where there is none of this name.
    pub fn body(&self, name: &str, shape: Shape) -> Result<&'c C> {
        self.column(name).ok_or_else(|| {
            let names: Vec<_> = self.columns.iter().map(Described::name).collect();
            self.conflict(format!(
                "has no column {name:?} for layout {shape}; it has {}",
                names.join(", ")
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Described for (&str, bool) {
        fn name(&self) -> &str {
            self.0
        }
        fn is_primary(&self) -> bool {
            self.1
        }
    }

    #[test]
    fn the_key_is_what_is_asked_for_or_ours_or_the_primary_one() {
        let key = |columns: &[(&'static str, bool)], asked| {
            Existing { name: "t", columns }.key(asked).map(|c| c.0).map_err(|e| e.to_string())
        };
        assert_eq!(key(&[("id", true), ("a", false)], Some("a")), Ok("a"));
        assert_eq!(key(&[("id", true), ("_key", false)], None), Ok("_key"));
        assert_eq!(key(&[("a", false), ("id", true)], None), Ok("id"));
        for (columns, asked, says) in [
            (&[("id", true)][..], Some("no"), "no column \"no\" for the key"),
            (&[("a", true), ("b", true)], None, "no single primary key"),
            (&[("a", false)], None, "no single primary key"),
        ] {
            assert!(key(columns, asked).unwrap_err().contains(says), "{columns:?}");
        }
    }
}
