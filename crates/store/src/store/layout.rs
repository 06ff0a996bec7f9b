//! How records are to lie in a store: indexes, and columns with their types.

use super::{abilities::Shape, query::Path};
use crate::{
    Error, Result,
    record::{Document, Kind},
};

/// How records are to lie in a store. The [`Shape`] is part of the store's URL; what it takes beyond
/// that, is here.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Layout {
    /// Indexes to make, beyond that of the key.
    pub indexes: Vec<Index>,
    /// The columns, in order; only for [`Shape::Columns`].
    pub columns: Vec<Column>,
    /// Whether several tenants share the table: each index then begins with [`TENANT`], so that it answers what one of
    /// them asks.
    pub shared: bool,
}

/// The field that says whose record it is, in tables that tenants share.
pub const TENANT: &str = "_tenant";

impl Layout {
    /// A layout of nothing special.
    pub fn plain() -> Layout {
        Layout::default()
    }

    /// The same with an index on a path that holds values of one kind.
    pub fn with_index(mut self, path: Path, kind: Kind) -> Layout {
        self.indexes.push(Index { path, kind });
        self
    }

    /// The same with these columns.
    pub fn with_columns(mut self, columns: Vec<Column>) -> Layout {
        self.columns = columns;
        self
    }

    /// The same for a table that several tenants share.
    pub fn shared(mut self) -> Layout {
        self.shared = true;
        self
    }

    /// The error of a store that has no such indexes.
    pub(crate) fn no_indexes(&self, driver: &str, shape: Shape) -> Result<()> {
        match self.indexes.first() {
            None => Ok(()),
            Some(index) => Err(Error::unsupported(format!(
                "{driver} has no index on {:?} in layout {shape}",
                index.path.to_string()
            ))),
        }
    }
}

/// An index: values under a path find their records quickly, ascending.
#[derive(Debug, Clone, PartialEq)]
pub struct Index {
    /// The path.
    pub path: Path,
    /// The kind of value that is there, for stores whose indexes have a type.
    pub kind: Kind,
}

/// A typed column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name, which is the field's.
    pub name: String,
    /// The kind of value it holds; empty cells are no values.
    pub kind: Kind,
}

impl Column {
    /// The columns that these records need, in the order in which the fields first appear: whole and
    /// floating numbers together make a floating column, anything else of several kinds is an error.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for a field that holds different kinds, or lists or maps.
    pub fn infer<'a>(records: impl IntoIterator<Item = &'a Document>) -> Result<Vec<Column>> {
        let mut columns: Vec<Column> = Vec::new();
        // Fields that were null so far have no kind yet.
        for record in records {
            for (name, value) in record.iter() {
                let kind = value.kind();
                let at = columns.iter().position(|column| column.name == name);
                let column = match at {
                    Some(at) => &mut columns[at],
                    None => {
                        columns.push(Column { name: name.to_owned(), kind: Kind::Null });
                        columns.last_mut().expect("just pushed")
                    }
                };
                column.kind = match (column.kind, kind) {
                    (_, Kind::List | Kind::Map) => {
                        return Err(Error::invalid(format!(
                            "field {name:?} is {}, which no column can hold; use layout document",
                            kind.one()
                        )));
                    }
                    (old, new) if old == new => old,
                    (Kind::Null, kind) | (kind, Kind::Null) => kind,
                    (Kind::Int, Kind::Float) | (Kind::Float, Kind::Int) => Kind::Float,
                    (Kind::Int, Kind::BigInt) | (Kind::BigInt, Kind::Int) => Kind::BigInt,
                    (one, other) => {
                        return Err(Error::invalid(format!(
                            "field {name:?} is {} in one record and {} in another; use layout \
                             document",
                            one.name(),
                            other.name()
                        )));
                    }
                };
            }
        }
        // What was null everywhere: text holds anything that may still come.
        for column in &mut columns {
            if column.kind == Kind::Null {
                column.kind = Kind::Text;
            }
        }
        Ok(columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Value;

    #[test]
    fn columns_are_inferred_in_order() {
        let a = Document::from_iter([("n", Value::Int(1)), ("x", Value::Null)]);
        let b = Document::from_iter([("y", Value::from("t")), ("n", Value::Float(0.5))]);
        let columns = Column::infer([&a, &b]).unwrap();
        let found: Vec<_> = columns.iter().map(|c| (c.name.as_str(), c.kind)).collect();
        assert_eq!(found, [("n", Kind::Float), ("x", Kind::Text), ("y", Kind::Text)]);
        let c = Document::from_iter([("n", "text")]);
        let error = Column::infer([&a, &c]).unwrap_err();
        assert!(error.to_string().contains("int in one record and text in another"), "{error}");
    }
}
