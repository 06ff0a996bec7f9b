//! A table as the database has it: which column is the key's, and which hold the record.

use super::{Body, Table};
use crate::{
    Error, ErrorKind, Result,
    record::Kind,
    store::{Column, Layout, Shape, query::Path},
};

/// A column as the database describes it.
pub(in crate::store) trait Described {
    fn name(&self) -> &str;
    /// It is of the primary key.
    fn is_primary(&self) -> bool;
    /// What is in it.
    fn kind(&self) -> Kind;
    /// The database computes it, so it is no field.
    fn is_computed(&self) -> bool {
        false
    }
    /// What it is declared as, where its type may change a value that it takes.
    fn changes(&self) -> Option<&str> {
        None
    }
    /// What it is declared as, where the database may refuse a value without naming the column.
    fn refuses(&self) -> Option<&str> {
        self.changes()
    }
    /// Whether it is for values of this kind; what else they must be, the value itself tells.
    fn holds(&self, kind: Kind) -> bool {
        holds(self.kind(), kind)
    }
}

/// Whether a column of one kind holds values of another.
pub(in crate::store) fn holds(column: Kind, value: Kind) -> bool {
    column == value
        || value == Kind::Null
        || (matches!(column, Kind::Float | Kind::BigInt | Kind::Decimal) && value == Kind::Int)
        || (column == Kind::Decimal && value == Kind::BigInt)
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
    pub(crate) fn key(&self, asked: Option<&str>) -> Result<&'c C> {
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
    pub(crate) fn body(&self, name: &str, shape: Shape) -> Result<&'c C> {
        self.column(name).ok_or_else(|| {
            let names: Vec<_> = self.columns.iter().map(Described::name).collect();
            self.conflict(format!(
                "has no column {name:?} for layout {shape}; it has {}",
                names.join(", ")
            ))
        })
    }

    /// The columns of a layout: `key` is the key's that is asked for, `body` the one of whole records.
    ///
    /// # Errors
    /// As [`key`](Existing::key) and [`body`](Existing::body).
    pub(crate) fn fields(&self, shape: Shape, key: Option<&str>, body: &str) -> Result<Fields<C>>
    where
        C: Clone,
    {
        let key = self.key(key)?.clone();
        let body = match shape {
            Shape::Columns => {
                let is_field = |c: &&C| c.name() != key.name() && !c.is_computed();
                // Records have their key by this name: it would be there twice.
                if self.columns.iter().filter(is_field).any(|c| c.name() == Path::KEY) {
                    let name = Path::KEY;
                    return Err(self.conflict(format!(
                        "has a column {name:?}, which is the name of a record's key: make it the key (?key={name}), or \
                         name a view without it"
                    )));
                }
                self.columns.iter().filter(is_field).cloned().collect()
            }
            _ => vec![self.body(body, shape)?.clone()],
        };
        let key_is_field = shape == Shape::Columns && key.name() != Path::KEY;
        Ok(Fields { shape, key, key_is_field, body })
    }
}

/// The columns of a table that records are in.
#[derive(Debug, Clone)]
pub(in crate::store) struct Fields<C> {
    pub shape: Shape,
    pub key: C,
    /// The key is also a field of the record.
    pub key_is_field: bool,
    /// The column of whole records, or one for each field but the key.
    pub body: Vec<C>,
}

impl<C: Described> Fields<C> {
    /// All columns: the key, then the body.
    pub(crate) fn all(&self) -> impl Iterator<Item = &C> + Clone {
        std::iter::once(&self.key).chain(&self.body)
    }

    /// The table as queries see it: the key is among its columns where it is a field.
    pub(crate) fn table(&self, name: &str) -> Table {
        let column = |c: &C| Column { name: c.name().to_owned(), kind: c.kind() };
        let body = match self.shape {
            Shape::Columns => {
                let own = self.key_is_field.then_some(&self.key);
                Body::Columns(own.into_iter().chain(&self.body).map(column).collect())
            }
            _ => Body::Document(self.body[0].name().to_owned()),
        };
        Table { name: name.to_owned(), key: self.key.name().to_owned(), body }
    }

    /// The columns that a layout asks for have to be there.
    ///
    /// # Errors
    /// [`Conflict`](ErrorKind::Conflict), naming the column.
    pub(crate) fn must_have(&self, table: &str, layout: &Layout) -> Result<()> {
        if self.shape != Shape::Columns {
            return Ok(());
        }
        for Column { name, kind } in &layout.columns {
            if self.key_is_field && name == self.key.name() {
                continue;
            }
            let what = match self.body.iter().find(|column| column.name() == name) {
                Some(column) if column.holds(*kind) => continue,
                Some(column) => format!(
                    "column {name:?} of table {table:?} holds {}, not {}",
                    column.kind().name(),
                    kind.name()
                ),
                None => format!("table {table:?} has no column {name:?}"),
            };
            return Err(Error::new(ErrorKind::Conflict, what));
        }
        Ok(())
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
        fn kind(&self) -> Kind {
            Kind::Text
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

    #[test]
    fn a_key_that_is_a_field_is_a_column_for_queries() {
        let there = Existing { name: "t", columns: &[("id", true), ("a", false)] };
        let fields = there.fields(Shape::Columns, None, "record").unwrap();
        assert!(fields.key_is_field && fields.body == [("a", false)]);
        let Body::Columns(columns) = fields.table("t").body else { panic!("columns") };
        assert_eq!(columns.iter().map(|c| &*c.name).collect::<Vec<_>>(), ["id", "a"]);
    }
}
