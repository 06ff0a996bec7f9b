//! Columns as they are. What a column of SQLite is declared for is a preference: values of any kind can be in
//! it, and what is compared with it may be converted first. So it is each value's own type that counts.

use rusqlite::{
    Connection,
    types::{Value as Cell, ValueRef},
};

use super::{error::error, times::time};
use crate::{
    Error, ErrorKind, Result,
    record::{Kind, Value},
    store::{
        Key,
        sql::{Described, NO_INDEX, Promise, holds, not_a_key, quote},
    },
};

/// What SQLite makes of values on their way into a column, and of what the column is compared with: see "Type
/// Affinity" in <https://www.sqlite.org/datatype3.html>.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Affinity {
    Integer,
    Text,
    /// Nothing is converted.
    Blob,
    Real,
    Numeric,
}

impl Affinity {
    fn of(declared: &str) -> Affinity {
        let has = |words: &[&str]| words.iter().any(|word| declared.contains(word));
        match () {
            () if has(&["INT"]) => Affinity::Integer,
            () if has(&["CHAR", "CLOB", "TEXT"]) => Affinity::Text,
            () if declared.is_empty() || has(&["BLOB"]) => Affinity::Blob,
            () if has(&["REAL", "FLOA", "DOUB"]) => Affinity::Real,
            () => Affinity::Numeric,
        }
    }

    /// Text that looks like a number becomes one.
    pub(crate) fn makes_numbers(self) -> bool {
        matches!(self, Affinity::Integer | Affinity::Real | Affinity::Numeric)
    }
}

/// A column as the database describes it.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub name: String,
    /// What it is declared for.
    pub kind: Kind,
    pub affinity: Affinity,
    /// Texts are compared by their bytes.
    pub binary: bool,
    pub primary: bool,
    /// It is another name of the row's number: all that is in it are whole numbers.
    pub row_id: bool,
    pub promise: Promise,
}

impl Described for Found {
    fn name(&self) -> &str {
        &self.name
    }
    fn is_primary(&self) -> bool {
        self.primary
    }
    fn kind(&self) -> Kind {
        self.kind
    }
    /// Whatever comes back as it was: [`cell_of`](Found::cell_of) looks at the value itself.
    fn holds(&self, kind: Kind) -> bool {
        holds(self.kind, kind)
            || match (self.kind, self.affinity) {
                (Kind::Bool, _) => kind == Kind::Int,
                (Kind::Time, _) => matches!(kind, Kind::Int | Kind::Float | Kind::Text),
                (Kind::Float, Affinity::Numeric) => kind == Kind::Text,
                (Kind::Bytes, Affinity::Blob) => {
                    matches!(kind, Kind::Int | Kind::Float | Kind::Text)
                }
                _ => false,
            }
    }
}

impl Found {
    /// A value as what is bound.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) where another one would come back.
    pub(crate) fn cell_of(&self, value: &Value) -> Result<Cell> {
        let no = |what: String| Err(Error::invalid(what));
        match (self.kind, value) {
            (_, Value::Null) if self.row_id => {
                no("is missing, and its column would number the row anew; give it a number".into())
            }
            (_, Value::Float(v)) if v.is_nan() => no("is NaN, which SQLite cannot hold".into()),
            (Kind::Float, Value::Int(n))
                if self.affinity == Affinity::Real && *n as f64 as i128 != i128::from(*n) =>
            {
                no(format!("is {n}, which no float equals exactly"))
            }
            (Kind::Bool, Value::Int(n @ (0 | 1))) => {
                no(format!("is {n}, which its column of booleans would turn into one"))
            }
            (Kind::Time, Value::Text(text)) if time(text).is_some() => {
                no(format!("is the text {text:?}, which its column would turn into a time"))
            }
            (_, Value::Text(text)) if self.affinity.makes_numbers() && looks_like_number(text) => {
                no(format!("is the text {text:?}, which its column would turn into a number"))
            }
            (_, value) => Ok(cell(value)),
        }
    }
}

/// Whether SQLite might make a number of a text. It reads none further than a NUL.
fn looks_like_number(text: &str) -> bool {
    const SPACES: [char; 6] = [' ', '\t', '\n', '\u{b}', '\u{c}', '\r'];
    let text = text.split('\0').next().unwrap_or_default().trim_matches(SPACES);
    let is_plain = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E');
    text.chars().all(is_plain) && text.parse::<f64>().is_ok()
}

/// What a cell holds that is not null.
///
/// # Errors
/// [`Malformed`](ErrorKind::Malformed) for text that is not UTF-8.
pub(super) fn value(kind: Kind, cell: &ValueRef) -> Result<Value> {
    Ok(match cell {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(n @ (0 | 1)) if kind == Kind::Bool => Value::Bool(*n == 1),
        ValueRef::Integer(n) => Value::Int(*n),
        ValueRef::Real(v) => Value::Float(*v),
        ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
        ValueRef::Text(bytes) => {
            let text = str::from_utf8(bytes)
                .map_err(|_| Error::malformed("holds text that is not UTF-8"))?
                .to_owned();
            match kind == Kind::Time {
                true => time(&text).map_or(Value::Text(text), Value::Time),
                false => Value::Text(text),
            }
        }
    })
}

/// A value as SQLite keeps it in a column.
pub(super) fn cell(value: &Value) -> Cell {
    match value {
        Value::Null | Value::List(_) | Value::Map(_) => Cell::Null,
        Value::Bool(v) => Cell::Integer(i64::from(*v)),
        Value::Int(v) => Cell::Integer(*v),
        Value::Float(v) => Cell::Real(*v),
        Value::BigInt(text) | Value::Decimal(text) => Cell::Text(text.to_string()),
        Value::Text(text) => Cell::Text(text.clone()),
        Value::Bytes(bytes) => Cell::Blob(bytes.clone()),
        Value::Time(time) => Cell::Text(time.to_string()),
    }
}

/// The key in column `at` of a row, as it stands in the table.
///
/// # Errors
/// [`Malformed`](ErrorKind::Malformed) for what no key is, naming the column.
pub(super) fn key_of(row: &rusqlite::Row, at: usize) -> Result<Key> {
    let column = || row.as_ref().column_name(at).unwrap_or_default().to_owned();
    match row.get_ref(at).map_err(error)? {
        ValueRef::Text(text) => match str::from_utf8(text) {
            Ok("") => Err(not_a_key(&column(), "an empty text")),
            Ok(text) => Key::new(text),
            Err(_) => Err(not_a_key(&column(), "text that is not UTF-8")),
        },
        ValueRef::Integer(n) => Key::new(n.to_string()),
        ValueRef::Real(v) => Err(not_a_key(&column(), &format!("the float {v}"))),
        ValueRef::Blob(_) => Err(not_a_key(&column(), "a blob")),
        ValueRef::Null => Err(not_a_key(&column(), "NULL")),
    }
}

/// The type a column is declared with, from which its kind is told again.
pub(super) fn declared(kind: Kind) -> &'static str {
    match kind {
        Kind::Int => "INTEGER",
        Kind::Float => "REAL",
        Kind::Bool => "BOOLEAN",
        Kind::Bytes => "BLOB",
        Kind::Time => "TIMESTAMP",
        _ => "TEXT",
    }
}

/// The kind of value that a column of a declared type is for.
fn kind(declared: &str) -> Kind {
    let has = |words: &[&str]| words.iter().any(|word| declared.contains(word));
    match Affinity::of(declared) {
        _ if has(&["BOOL"]) => Kind::Bool,
        Affinity::Integer => Kind::Int,
        Affinity::Text => Kind::Text,
        Affinity::Numeric if has(&["TIMESTAMP", "DATETIME"]) => Kind::Time,
        Affinity::Blob => Kind::Bytes,
        Affinity::Real | Affinity::Numeric => Kind::Float,
    }
}

/// A table as the database describes it.
#[derive(Default)]
pub(super) struct Looked {
    pub columns: Vec<Found>,
    /// Its rows have numbers, by the name of `rowid`.
    pub has_row_ids: bool,
    /// It has triggers, which may change what is written.
    pub triggers: bool,
}

/// Texts are compared by the bytes that they have in the file. In UTF-16 these have another order than in UTF-8, and
/// what is found, sorted or deleted by it would not be what was asked for.
fn must_be_utf_8(encoding: &str) -> Result<()> {
    match encoding {
        "UTF-8" => Ok(()),
        other => Err(Error::unsupported(format!(
            "the database is encoded in {other}, in which SQLite sorts text differently; convert \
             it to UTF-8: sqlite3 OLD .dump | sqlite3 NEW"
        ))),
    }
}

/// What SQLite says of a table; no columns where there is none.
///
/// # Errors
/// [`Unsupported`](ErrorKind::Unsupported) where the file's texts are not in UTF-8.
pub(super) fn look(connection: &Connection, table: &str) -> Result<Looked> {
    // To SQLite, names that differ in capital and small letters only are one.
    let named = "SELECT s.name, s.type, e.encoding FROM pragma_encoding e LEFT JOIN sqlite_schema s \
                 ON s.type IN ('table', 'view') AND s.name = ? COLLATE NOCASE";
    let named = connection.prepare_cached(named).and_then(|mut named| {
        let text = |row: &rusqlite::Row, at| row.get::<_, Option<String>>(at);
        named.query_row([table], |row| Ok((text(row, 0)?.zip(text(row, 1)?), text(row, 2)?)))
    });
    let (named, encoding) = named.map_err(error)?;
    must_be_utf_8(&encoding.unwrap_or_default())?;
    let is_view = match named {
        None => return Ok(Looked::default()),
        Some((other, _)) if other != table => {
            return Err(Error::new(
                ErrorKind::Conflict,
                format!(
                    "table {table:?} would be the same as {other:?}, which exists: SQLite ignores \
                     case in names"
                ),
            ));
        }
        Some((_, is)) => is == "view",
    };
    let is = "SELECT coalesce(max(wr), 0), coalesce(max(strict), 0), EXISTS (SELECT 1 FROM sqlite_schema \
              WHERE type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE) FROM pragma_table_list(?1) WHERE schema = 'main'";
    let is = connection.prepare_cached(is).and_then(|mut is| {
        is.query_row([table], |row| Ok((row.get::<_, bool>(0)?, row.get(1)?, row.get(2)?)))
    });
    let (without, strict, triggers) = is.map_err(error)?;
    let columns = columns(connection, table, strict).map_err(error)?;
    let is_hidden = |c: &Found| c.name.eq_ignore_ascii_case("rowid") && !c.row_id;
    let has_row_ids = !is_view && !without && !columns.iter().any(is_hidden);
    Ok(Looked { columns, has_row_ids, triggers })
}

fn columns(connection: &Connection, table: &str, strict: bool) -> rusqlite::Result<Vec<Found>> {
    // A column's own index: of no other column, of all rows.
    let text = "SELECT t.name, t.type, t.pk, t.\"notnull\", \
                (SELECT count(*) FROM pragma_table_info(?1) WHERE pk > 0), \
                EXISTS (SELECT 1 FROM pragma_index_list(?1) WHERE origin = 'pk'), \
                EXISTS (SELECT 1 FROM pragma_index_list(?1) i WHERE i.\"unique\" AND NOT i.partial AND \
                (SELECT group_concat(coalesce(name, ''), '/') FROM pragma_index_info(i.name)) = t.name) \
                FROM pragma_table_info(?1) t";
    let mut statement = connection.prepare_cached(text)?;
    let found = |row: &rusqlite::Row| {
        let mut declared = row.get::<_, String>(1)?.to_ascii_uppercase();
        // There it is a type of its own, of which nothing is converted.
        if strict && declared == "ANY" {
            declared.clear();
        }
        let (primary, alone) = (row.get::<_, i64>(2)? > 0, row.get::<_, i64>(4)? == 1);
        let row_id = primary && alone && declared == "INTEGER" && !row.get::<_, bool>(5)?;
        let promise = Promise { unique: row_id || row.get(6)?, not_null: row_id || row.get(3)? };
        let name: String = row.get(0)?;
        let (kind, affinity) = (kind(&declared), Affinity::of(&declared));
        // Of the columns of views it is not told.
        let about = connection.column_metadata(None, table, &*name);
        let binary = about.is_ok_and(|(_, collation, ..)| collation == Some(c"BINARY"));
        Ok(Found { name, kind, affinity, binary, primary, row_id, promise })
    };
    statement.query_map([table], found)?.collect()
}

/// The column of keys.
#[derive(Debug, Clone)]
pub(crate) struct KeyColumn {
    /// Its name, quoted.
    pub name: String,
    is: Is,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Is {
    /// Whole numbers and nothing else.
    RowId,
    /// Text, by its bytes; so is its index.
    Text,
    /// Text, by a collation that takes several for one.
    Collated,
    /// Anything. What looks like a number was made one on its way in.
    Numeric,
    /// Anything, compared as text.
    Any,
}

impl KeyColumn {
    pub(crate) fn new(column: &Found) -> KeyColumn {
        let is = match column.affinity {
            _ if column.row_id => Is::RowId,
            Affinity::Text if column.binary => Is::Text,
            Affinity::Text => Is::Collated,
            Affinity::Integer | Affinity::Numeric => Is::Numeric,
            Affinity::Real | Affinity::Blob => Is::Any,
        };
        KeyColumn { name: quote(&column.name), is }
    }

    /// The kind of value that the key is as a field of the record.
    pub(crate) fn kind(&self) -> Kind {
        match self.is {
            Is::RowId | Is::Numeric => Kind::Int,
            Is::Text | Is::Collated | Is::Any => Kind::Text,
        }
    }

    /// All keys are whole numbers.
    pub(crate) fn is_row_id(&self) -> bool {
        self.is == Is::RowId
    }

    /// The column is text and has the order of the keys.
    pub(crate) fn is_text(&self) -> bool {
        self.is == Is::Text
    }

    /// Whatever the column is compared with is made text, and so is what is in it.
    pub(crate) fn is_any(&self) -> bool {
        self.is == Is::Any
    }

    /// The key as text, in whose order keys are; `of` stands before the column.
    pub(crate) fn as_text(&self, of: &str) -> String {
        let name = &self.name;
        match self.is {
            Is::RowId => format!("CAST({of}{name} AS TEXT)"),
            Is::Text => format!("{of}{name}"),
            Is::Collated => format!("{of}{name} COLLATE BINARY"),
            Is::Numeric | Is::Any => format!("CAST({of}{name} AS TEXT) COLLATE BINARY"),
        }
    }

    /// The condition that the key is `?1`.
    pub(crate) fn is_given(&self) -> String {
        let (name, text) = (&self.name, self.as_text(""));
        match self.is {
            Is::RowId | Is::Text => format!("{name} = ?1"),
            // The first finds it by the index, the second looks whether it is the same.
            Is::Collated | Is::Numeric => format!("{name} = ?1 AND {text} = ?1"),
            Is::Any => format!("{text} = ?1"),
        }
    }

    /// How rows are written by it; the error says why they are not.
    pub(crate) fn writes(&self, promise: Promise) -> std::result::Result<Writes, &'static str> {
        match self.is {
            _ if !promise.unique => Err(NO_INDEX),
            Is::RowId | Is::Text => Ok(Writes::AsItIs),
            Is::Collated | Is::Numeric => Ok(Writes::Looking),
            Is::Any => Err("has a type for which 5 and '5' are different values"),
        }
    }
}

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writes {
    AsItIs,
    /// Looking that the key is no other row's, and is kept as it is.
    Looking,
}
