//! Indexes: which are made, what they are on, and how they are called.
//!
//! There are two rules for names. PostgreSQL and SQLite make an index on expressions, which has a name in
//! the schema: it has to tell table, path and expression apart ([`index_name`]). MySQL makes a column that
//! holds the expression and an index on that; both belong to their table, and a query names the column. So
//! its name must follow from path and kind alone ([`column_name`]). Tables that are there have these names.

use super::{Body, Column, Table, column};
use crate::{
    Error, Result,
    store::{Index, Layout, TENANT, query::Path},
};

/// What an index is on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum On<'t> {
    /// A path in the documents of this column.
    Document(&'t str),
    /// A column.
    Column(&'t Column),
}

/// The indexes to make for a layout. The key has its own.
///
/// # Errors
/// [`Invalid`](crate::ErrorKind::Invalid) for a path that is no column of a table of columns.
pub(crate) fn indexes<'l, 't>(
    table: &'t Table,
    layout: &'l Layout,
) -> Result<Vec<(&'l Index, On<'t>)>> {
    let mut found = Vec::new();
    for index in layout.indexes.iter().filter(|index| !index.path.is_key()) {
        let on = match &table.body {
            Body::Document(column) => On::Document(column),
            Body::Columns(columns) => match column(columns, &index.path) {
                // Some databases take a name that is no column for a text.
                None => return Err(table.no_column(columns, &index.path)),
                Some(column) if column.name == table.key => continue,
                Some(column) => On::Column(column),
            },
        };
        found.push((index, on));
    }
    Ok(found)
}

/// Where the tenant is.
///
/// # Errors
/// As [`indexes`].
pub(crate) fn tenant_on(table: &Table) -> Result<On<'_>> {
    match &table.body {
        Body::Document(column) => Ok(On::Document(column)),
        Body::Columns(columns) => match column(columns, &tenant()) {
            Some(column) => Ok(On::Column(column)),
            None => Err(table.no_column(columns, &tenant())),
        },
    }
}

impl Table {
    fn no_column(&self, columns: &[Column], path: &Path) -> Error {
        let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
        Error::invalid(format!(
            "table {:?} has no column {:?} to make an index on; it has {}",
            self.name,
            path.to_string(),
            names.join(", ")
        ))
    }
}

/// The name of an index on expressions: for people its table and path, and digits that nobody else has, as
/// names are unique in the schema and have 63 bytes.
pub(crate) fn index_name(table: &str, path: &Path, on: &str) -> String {
    let path = path.to_string().replace('\0', " ");
    format!("{}_{}_{:08x}", cut(table, 25), cut(&path, 25), hash(&format!("{table}\0{on}")))
}

/// FNV-1a.
pub(crate) fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// The same for an index that begins with the tenant.
pub(crate) fn shared_index_name(table: &str, path: &Path, on: &str) -> String {
    // Nothing of the other name is lost that tells it from others: its digits are of all.
    let name = index_name(table, path, &format!("{TENANT}\0{on}"));
    let (start, digits) = name.rsplit_once('_').unwrap_or_default();
    format!("{SHARED}{}_{digits}", cut(start, 63 - SHARED.len() - 1 - digits.len()))
}

/// What the names of indexes that begin with the tenant begin with.
pub(crate) const SHARED: &str = "tenant:";

/// As much of a text as so many bytes hold.
fn cut(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The path of the tenant.
pub(crate) fn tenant() -> Path {
    Path::new([TENANT])
}

/// The name of a column for an index on a path: readable where the path is simple, and never the same for
/// two paths, though names of columns know no case and 64 characters at most.
pub(crate) fn column_name(start: &str, path: &Path) -> String {
    const LONGEST: usize = 50;
    let text = path.to_string();
    let simple = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.".contains(c);
    if text.len() <= LONGEST && text.chars().all(simple) {
        return format!("{start}{text}");
    }
    // FNV-1a of 64 bits.
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    let short: String = text.chars().filter(|c| simple(*c)).take(20).collect();
    format!("{start}{short}:{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Kind;

    #[test]
    fn names_of_indexes_are_short_and_differ() {
        let name = |table: &str, path: &str| index_name(table, &path.parse().unwrap(), path);
        let long = "ü".repeat(31);
        for (table, path) in [("people", "age"), (&*long, &*long), ("a", "b\0")] {
            let name = name(table, path);
            assert!(name.len() <= 63 && !name.contains('\0'), "{name}");
            let shared = shared_index_name(table, &path.parse().unwrap(), path);
            assert!(shared.len() <= 63 && !shared.contains('\0') && shared != name, "{shared}");
        }
        assert!(name("people", "age").starts_with("people_age_"));
        assert_ne!(name("a_b", "c"), name("a", "b_c"));
        assert_ne!(name(&long, &format!("{long}1")), name(&long, &format!("{long}2")));
    }

    #[test]
    fn names_of_columns_are_short_and_differ_whatever_the_case() {
        let name = |path: &str| column_name("_number:", &path.parse().unwrap());
        assert_eq!((&*name("age"), &*name("a.b_c")), ("_number:age", "_number:a.b_c"));
        let long = "a".repeat(60);
        let paths = ["age", "Age", "AGE", "a.b", "a\\.b", "ä", "Ä", &long, &format!("{long}b")];
        let mut names: Vec<String> = paths.iter().map(|path| name(path).to_lowercase()).collect();
        assert!(names.iter().all(|name| name.chars().count() <= 64), "{names:?}");
        names.sort();
        names.dedup();
        assert_eq!(names.len(), paths.len(), "{names:?}");
    }

    #[test]
    fn indexes_are_on_columns_that_are_there() {
        let column = |name: &str| Column { name: name.into(), kind: Kind::Int };
        let body = Body::Columns(vec![column("id"), column("a")]);
        let columns = Table { name: "t".into(), key: "id".into(), body };
        let documents = Table { body: Body::Document("record".into()), ..columns.clone() };
        let on = |table: &Table, path: &str| {
            let layout = Layout::plain().with_index(path.parse().unwrap(), Kind::Int);
            indexes(table, &layout).map(|found| found.len()).map_err(|e| e.to_string())
        };
        for (path, of_columns) in [("a", 1), ("id", 0), ("_key", 0)] {
            assert_eq!(on(&columns, path), Ok(of_columns), "{path}");
        }
        for path in ["b", "a.b", "A"] {
            assert!(on(&columns, path).unwrap_err().contains("it has id, a"), "{path}");
        }
        for path in ["a", "id", "a.b"] {
            assert_eq!(on(&documents, path), Ok(1), "{path}");
        }
        assert_eq!(on(&documents, "_key"), Ok(0));
    }
}
