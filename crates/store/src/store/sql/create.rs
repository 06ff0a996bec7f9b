//! The definition of a table that is to be created.

use super::{Body, Table, index::indexes, table::Names};
use crate::{
    Error, Result,
    record::Kind,
    store::{Column, Layout, Shape, query::Path},
};

/// What a database takes for a column.
pub(crate) struct Rules {
    pub driver: &'static str,
    /// Whether it can have this name for something of this kind: `column`.
    pub name: fn(&str, &str) -> Result<()>,
    /// The same for names that it takes for one.
    pub fold: fn(&str) -> String,
    /// Whether it has columns of this kind for a field of this name.
    pub kind: fn(&str, Kind) -> Result<()>,
}

/// A table that is to be made.
#[derive(Debug)]
pub(crate) struct Made<'l> {
    /// The key's column holds whole numbers, not text.
    pub key_is_int: bool,
    /// All columns but the key's.
    pub columns: Vec<&'l Column>,
}

impl Rules {
    /// What is wrong with a layout whether the table is there or not.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid), naming the field.
    pub(crate) fn check(&self, shape: Shape, names: &Names, layout: &Layout) -> Result<()> {
        if shape != Shape::Columns {
            return Ok(());
        }
        let own = names.key();
        if own == Path::KEY && layout.columns.iter().any(|column| column.name == own) {
            return Err(Error::invalid(format!("field {own:?} has the name of the key's column")));
        }
        let mut seen: Vec<(String, &str)> = Vec::with_capacity(layout.columns.len() + 1);
        if !layout.columns.iter().any(|column| column.name == own) {
            seen.push(((self.fold)(own), own));
        }
        for Column { name, .. } in &layout.columns {
            (self.name)("column", name)?;
            let folded = (self.fold)(name);
            if let Some((_, other)) = seen.iter().find(|(seen, _)| *seen == folded) {
                let driver = self.driver;
                return Err(Error::invalid(match *other == name {
                    true => format!("column {name:?} is named twice"),
                    false => format!(
                        "columns {other:?} and {name:?} are the same in {driver}; layout document \
                         keeps both"
                    ),
                }));
            }
            seen.push((folded, name));
        }
        Ok(())
    }

    /// The columns to make for a layout that was [checked](Rules::check), and that its indexes are on
    /// columns that will be there.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) where there are no columns, or no such;
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for kinds that no column holds.
    pub(crate) fn made<'l>(
        &self,
        table: &str,
        shape: Shape,
        names: &Names,
        layout: &'l Layout,
    ) -> Result<Made<'l>> {
        if shape != Shape::Columns {
            return Ok(Made { key_is_int: false, columns: Vec::new() });
        }
        if layout.columns.is_empty() {
            return Err(Error::invalid("layout columns needs the columns of the table"));
        }
        let own = names.key();
        let mut made = Made { key_is_int: false, columns: Vec::new() };
        for column in &layout.columns {
            match (column.name == own, column.kind) {
                (false, kind) => {
                    (self.kind)(&column.name, kind)?;
                    made.columns.push(column);
                }
                (true, Kind::Int) => made.key_is_int = true,
                (true, Kind::Text) => {}
                (true, kind) => {
                    return Err(Error::unsupported(format!(
                        "field {own:?} is {}, but it is the key's column; a key is text or a whole \
                         number",
                        kind.one()
                    )));
                }
            }
        }
        let body = Body::Columns(layout.columns.clone());
        let like = Table { name: table.to_owned(), key: own.to_owned(), body };
        indexes(&like, layout)?;
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sql::check_name;

    #[test]
    fn columns_that_the_database_takes_for_one_are_refused() {
        let rules = Rules {
            driver: "this",
            name: |what, name| check_name("this", what, name, 9),
            fold: str::to_lowercase,
            kind: |_, _| Ok(()),
        };
        let said = |names: &[&str], key: Option<&str>| {
            let column = |name: &&str| Column { name: (*name).into(), kind: Kind::Text };
            let layout = Layout::plain().with_columns(names.iter().map(column).collect());
            let names = Names { key: key.map(str::to_owned), ..Names::default() };
            let checked = rules.check(Shape::Columns, &names, &layout);
            checked.map_or_else(|e| e.context().to_owned(), |()| String::new())
        };
        assert_eq!(said(&["a", "b"], None), "");
        assert_eq!(said(&["a", "b"], Some("a")), "");
        assert_eq!(said(&["a", "b", "a"], None), "column \"a\" is named twice");
        for (names, key) in [(&["a", "A"][..], None), (&["A"], Some("a")), (&["_KEY"], None)] {
            let said = said(names, key);
            assert!(said.contains("are the same in"), "{names:?}: {said}");
        }
        assert!(said(&["a", "0123456789"], None).contains("10 bytes; the limit is 9"));
    }
}
