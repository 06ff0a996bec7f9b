//! What a table of SQLite looks like, and records as its rows.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use rusqlite::{
    Connection,
    types::{Value as Cell, ValueRef},
};

use super::{
    dialect::{Sqlite, extract},
    pool::{Pool, error},
};
use crate::{
    Error, ErrorKind, Result,
    record::{Document, Kind, Value},
    store::{
        Abilities, Column, Key, Layout, Row, Shape, blobs, json,
        query::Path,
        sql::{
            Body, Described, Dialect, Existing, Table, check_name, column, no_such_column,
            no_text_key,
        },
    },
};

/// Columns that the URL names.
#[derive(Debug, Clone, Default)]
pub struct Names {
    pub key: Option<String>,
    pub column: Option<String>,
}

/// A table, which is looked at when it is first needed.
pub struct Lazy {
    pub shape: Shape,
    name: String,
    names: Names,
    known: RwLock<Option<Arc<Known>>>,
}

/// A table as it is.
pub struct Known {
    pub table: Table,
    /// The key is also a field of the record.
    key_is_field: bool,
    /// Keys are compared as what they are; numbers are made text.
    key_is_text: bool,
    /// The statements that are sent again and again.
    pub texts: Texts,
}

/// Statements of a table, put together once.
#[derive(Default)]
pub struct Texts {
    /// The body of the row of a key, after the key where that is a field.
    pub get: String,
    pub insert: String,
    /// Inserts, or replaces what is there.
    pub upsert: String,
    pub remove: String,
    pub count: String,
}

/// What the key's column is called in tables that are made here.
const KEY: &str = Path::KEY;

impl Lazy {
    pub fn new(shape: Shape, name: String, names: Names) -> Lazy {
        Lazy { shape, name, names, known: RwLock::default() }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn quoted(&self) -> String {
        Sqlite.quote(&self.name)
    }

    /// What is known of the table may be so no longer.
    pub fn forget(&self) {
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn peek(&self) -> Option<Arc<Known>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn body_column(&self) -> String {
        let usual = if self.shape == Shape::Blob { "value" } else { "record" };
        self.names.column.clone().unwrap_or_else(|| usual.into())
    }

    /// The table as it is in the database.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) where there is none, [`Conflict`](ErrorKind::Conflict) where
    /// it is of another layout.
    pub async fn known(&self, pool: &Arc<Pool>) -> Result<Arc<Known>> {
        if let Some(known) = self.peek() {
            return Ok(known);
        }
        let name = self.name.clone();
        let found = pool.run(move |connection| look(connection, &name)).await?;
        if found.is_empty() {
            let what = format!("no table {:?} in the database", self.name);
            return Err(Error::new(ErrorKind::NotFound, what));
        }
        let known = Arc::new(self.understand(found)?);
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Some(known.clone());
        Ok(known)
    }

    fn understand(&self, found: Vec<Found>) -> Result<Known> {
        let there = Existing { name: &self.name, columns: &found };
        let key = there.key(self.names.key.as_deref())?;
        let body = match self.shape {
            Shape::Columns => {
                let others = found.iter().filter(|c| c.name != key.name);
                let column = |c: &Found| Column { name: c.name.clone(), kind: c.kind() };
                Body::Columns(others.map(column).collect())
            }
            _ => {
                let column = self.body_column();
                there.body(&column, self.shape)?;
                Body::Document(column)
            }
        };
        let mut known = Known {
            key_is_field: self.shape == Shape::Columns && key.name != KEY,
            key_is_text: key.kind() == Kind::Text,
            table: Table { name: self.name.clone(), key: key.name.clone(), body },
            texts: Texts::default(),
        };
        known.texts = known.put_together();
        Ok(known)
    }

    /// Makes the table and its indexes.
    pub async fn prepare(&self, pool: &Arc<Pool>, layout: &Layout) -> Result<()> {
        let key = Sqlite.quote(self.names.key.as_deref().unwrap_or(KEY));
        let name = self.quoted();
        let columns = match self.shape {
            Shape::Document => format!(", {} TEXT NOT NULL", Sqlite.quote(&self.body_column())),
            Shape::Blob => format!(", {} BLOB NOT NULL", Sqlite.quote(&self.body_column())),
            Shape::Columns => {
                let own = self.names.key.as_deref().unwrap_or(KEY);
                if own == KEY && layout.columns.iter().any(|c| c.name == KEY) {
                    return Err(Error::invalid(format!("a field {KEY:?}, which is the key's own")));
                }
                check_columns(&layout.columns)?;
                let others = layout.columns.iter().filter(|c| c.name != own);
                others
                    .map(|c| format!(", {} {}", Sqlite.quote(&c.name), declared(c.kind)))
                    .collect()
            }
        };
        let there = {
            let name = self.name.clone();
            pool.run(move |connection| look(connection, &name)).await?
        };
        if there.is_empty() {
            if self.shape == Shape::Columns && layout.columns.is_empty() {
                return Err(Error::invalid("layout columns needs columns to make a table with"));
            }
            let make = format!(
                "CREATE TABLE IF NOT EXISTS {name} ({key} TEXT PRIMARY KEY NOT NULL{columns})"
            );
            pool.run(move |connection| connection.execute_batch(&make)).await?;
        }
        self.forget();
        let known = self.known(pool).await?;
        known.must_have(layout)?;
        let mut statements = String::new();
        for index in layout.indexes.iter().filter(|index| !index.path.is_key()) {
            let on = match &known.table.body {
                _ if self.shape == Shape::Blob => {
                    return layout.no_indexes("sqlite", Shape::Blob);
                }
                Body::Document(column) => extract(&Sqlite.quote(column), &index.path),
                Body::Columns(columns) => match column(columns, &index.path) {
                    Some(column) => Sqlite.quote(&column.name),
                    // SQLite would take the name for a text.
                    None => return Err(no_such_column(&index.path)),
                },
            };
            // With the key, which decides between records that are otherwise equal: so the index has
            // the order of a sorted query.
            let index = Sqlite.quote(&format!("{}_{}_key", self.name, index.path));
            statements += &format!("CREATE INDEX IF NOT EXISTS {index} ON {name} ({on}, {key});");
        }
        pool.run(move |connection| connection.execute_batch(&statements)).await
    }

    /// Whether the table can hold a row.
    ///
    /// # Errors
    /// Where it cannot, or where its columns are not known yet.
    pub fn check(&self, abilities: &Abilities, row: &Row) -> Result<()> {
        if self.shape != Shape::Columns {
            return body(abilities, row).map(drop);
        }
        let known = self.peek().ok_or_else(|| {
            Error::invalid("the columns of the table are not known yet; prepare it first")
        })?;
        self.cells(&known, abilities, row).map(drop)
    }

    /// A row as what is bound: the key, then the body.
    ///
    /// # Errors
    /// Where the table cannot hold it.
    pub fn cells(&self, known: &Known, abilities: &Abilities, row: &Row) -> Result<Vec<Cell>> {
        let key = Cell::Text(row.key.to_string());
        if self.shape != Shape::Columns {
            return Ok(vec![key, Cell::Text(body(abilities, row)?)]);
        }
        blobs::fits(abilities, &row.key, 0)?;
        let mut cells = vec![key];
        known.cells(row, &mut cells).map_err(|e| about(e, &row.key))?;
        Ok(cells)
    }
}

/// A record as the text of a document.
fn body(abilities: &Abilities, row: &Row) -> Result<String> {
    const USUAL: usize = 256;
    let mut text = Vec::with_capacity(USUAL);
    json::check(&row.record)
        .and_then(|()| json::write(&row.record, &mut text))
        .map_err(|e| about(e, &row.key))?;
    blobs::fits(abilities, &row.key, text.len())?;
    Ok(String::from_utf8(text).expect("JSON is UTF-8"))
}

/// The error, saying which record it is about.
fn about(error: Error, key: &Key) -> Error {
    Error::new(error.kind(), format!("key {}: {}", key.shown(), error.context()))
}

impl Known {
    pub fn name(&self) -> String {
        Sqlite.quote(&self.table.name)
    }

    pub fn key(&self) -> String {
        Sqlite.quote(&self.table.key)
    }

    /// The key as text, in whose order keys are.
    pub fn key_as_text(&self) -> String {
        match self.key_is_text {
            true => self.key(),
            false => format!("CAST({} AS TEXT)", self.key()),
        }
    }

    /// The columns that are read: the key, then the body.
    pub fn what(&self) -> String {
        self.what_of("")
    }

    /// The same of a table that has another name in the statement.
    pub fn what_of(&self, of: &str) -> String {
        let mut what = format!("CAST({of}{} AS TEXT)", self.key());
        for column in self.names() {
            what += ", ";
            what += of;
            what += &Sqlite.quote(column);
        }
        what
    }

    /// How many of them there are.
    pub fn width(&self) -> usize {
        1 + self.names().count()
    }

    /// Where a path is that of the key, the key has to be text.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) where it is not.
    pub fn text_key(&self, path: &Path) -> Result<()> {
        no_text_key(path.is_key() && !self.key_is_text, &self.table)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let (one, many) = match &self.table.body {
            Body::Document(column) => (Some(column.as_str()), &[][..]),
            Body::Columns(columns) => (None, columns.as_slice()),
        };
        one.into_iter().chain(many.iter().map(|column| column.name.as_str()))
    }

    pub fn select(&self) -> String {
        format!("SELECT {} FROM {}", self.what(), self.name())
    }

    /// What writes a row that is `new`, or may be there.
    pub fn writing(&self, new: bool) -> &str {
        if new { &self.texts.insert } else { &self.texts.upsert }
    }

    fn put_together(&self) -> Texts {
        let (table, key) = (self.name(), self.key());
        let names: Vec<String> = self.names().map(|name| Sqlite.quote(name)).collect();
        let mut read = names.clone();
        if self.key_is_field || read.is_empty() {
            read.insert(0, format!("CAST({key} AS TEXT)"));
        }
        let written = [std::slice::from_ref(&key), &names].concat().join(", ");
        let places = ", ?".repeat(names.len());
        let insert = format!("INSERT INTO {table} ({written}) VALUES (?{places})");
        let set: Vec<_> = names.iter().map(|name| format!("{name} = excluded.{name}")).collect();
        let then = match set.is_empty() {
            true => "NOTHING".into(),
            false => format!("UPDATE SET {}", set.join(", ")),
        };
        Texts {
            get: format!("SELECT {} FROM {table} WHERE {key} = ?", read.join(", ")),
            upsert: format!("{insert} ON CONFLICT ({key}) DO {then}"),
            insert,
            remove: format!("DELETE FROM {table} WHERE {key} = ?"),
            count: format!("SELECT count(*) FROM {table}"),
        }
    }

    /// The columns asked for have to be there.
    fn must_have(&self, layout: &Layout) -> Result<()> {
        let Body::Columns(columns) = &self.table.body else { return Ok(()) };
        for wanted in &layout.columns {
            if self.key_is_field && wanted.name == self.table.key {
                continue;
            }
            match columns.iter().find(|column| column.name == wanted.name) {
                Some(column) if holds(column.kind, wanted.kind) => {}
                Some(column) => {
                    return Err(Error::new(
                        ErrorKind::Conflict,
                        format!(
                            "column {:?} of table {:?} holds {}, not {}",
                            column.name,
                            self.table.name,
                            column.kind.name(),
                            wanted.kind.name()
                        ),
                    ));
                }
                None => {
                    let (column, table) = (&wanted.name, &self.table.name);
                    let what = format!("table {table:?} is there, without a column {column:?}");
                    return Err(Error::new(ErrorKind::Conflict, what));
                }
            }
        }
        Ok(())
    }

    fn cells(&self, row: &Row, cells: &mut Vec<Cell>) -> Result<()> {
        let Body::Columns(columns) = &self.table.body else { return Ok(()) };
        let mut used = 0;
        if self.key_is_field
            && let Some(value) = row.record.get(&self.table.key)
        {
            used += 1;
            if Key::of(&row.record, &self.table.key).ok().as_ref() != Some(&row.key) {
                let (name, kind) = (&self.table.key, value.kind().name());
                let what = format!("field {name:?} is the key's column, and holds another {kind}");
                return Err(Error::invalid(what));
            }
        }
        for column in columns {
            let value = row.record.get(&column.name);
            used += usize::from(value.is_some());
            let value = value.unwrap_or(&Value::Null);
            if !holds(column.kind, value.kind()) {
                return Err(Error::invalid(format!(
                    "field {:?} holds a {}, where its column holds {}",
                    column.name,
                    value.kind().name(),
                    column.kind.name()
                )));
            }
            cells.push(match (column.kind, value) {
                (_, Value::Float(v)) if v.is_nan() => {
                    let name = &column.name;
                    return Err(Error::invalid(format!("field {name:?}: SQLite has no NaN")));
                }
                (Kind::Float, Value::Int(n)) if *n as f64 as i128 != i128::from(*n) => {
                    let name = &column.name;
                    return Err(Error::invalid(format!("field {name:?}: no float is exactly {n}")));
                }
                (_, value) => cell(value),
            });
        }
        if used < row.record.len() {
            let unknown = row.record.iter().map(|(name, _)| name).find(|name| {
                let is_key = self.key_is_field && *name == self.table.key;
                !is_key && !columns.iter().any(|c| c.name == *name)
            });
            return Err(Error::invalid(match unknown {
                Some(name) => format!("the table has no column for the field {name:?}"),
                None => "a field stands in it twice".into(),
            }));
        }
        Ok(())
    }

    /// The row as it was read by [`what`](Known::what).
    pub fn row(&self, row: &rusqlite::Row) -> Result<Row> {
        Ok(Row { key: key_of(row, 0)?, record: self.record(row, 0)? })
    }

    /// The record of a row that was read by [`Texts::get`] under this key.
    pub fn found(&self, row: &rusqlite::Row, key: &Key) -> Result<Document> {
        match self.key_is_field {
            true => self.record(row, 0),
            false => self.body(row, 0, |_| Ok(key.clone())),
        }
    }

    /// The record of a row, whose key is in column `first`.
    pub fn record(&self, row: &rusqlite::Row, first: usize) -> Result<Document> {
        self.body(row, first + 1, |row| key_of(row, first))
    }

    /// The record of a row whose body begins in column `at`.
    fn body(
        &self,
        row: &rusqlite::Row,
        at: usize,
        key: impl Fn(&rusqlite::Row) -> Result<Key>,
    ) -> Result<Document> {
        let Body::Columns(columns) = &self.table.body else {
            return json::read(bytes(row, at)?).map_err(|e| match key(row) {
                Ok(key) => about(e, &key),
                Err(_) => e,
            });
        };
        let mut record = Document::with_capacity(columns.len() + 1);
        if self.key_is_field {
            let key = key(row)?;
            let number = (!self.key_is_text).then(|| key.parse().ok()).flatten();
            let key = number.map_or_else(|| Value::from(key.as_str()), Value::Int);
            record.push(self.table.key.clone(), key);
        }
        for (i, column) in columns.iter().enumerate() {
            let value = match row.get_ref(at + i).map_err(error)? {
                ValueRef::Null => continue,
                ValueRef::Integer(n) if column.kind == Kind::Bool => Value::Bool(n != 0),
                ValueRef::Integer(n) if column.kind == Kind::Float => Value::Float(n as f64),
                ValueRef::Integer(n) => Value::Int(n),
                ValueRef::Real(v) => Value::Float(v),
                ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
                ValueRef::Text(bytes) => {
                    let text = str::from_utf8(bytes).map_or_else(
                        |_| String::from_utf8_lossy(bytes).into_owned(),
                        str::to_owned,
                    );
                    // Only then: what is no time is an error, and errors take long to make.
                    match column.kind == Kind::Time {
                        true => text.parse().map_or(Value::Text(text), Value::Time),
                        false => Value::Text(text),
                    }
                }
            };
            record.push(column.name.clone(), value);
        }
        Ok(record)
    }
}

/// The key of a row as it was read by [`what`](Known::what), in column `first`.
pub fn key_of(row: &rusqlite::Row, first: usize) -> Result<Key> {
    Key::new(row.get::<_, String>(first).map_err(error)?)
}

/// The bytes in column `at`, be they kept as text or as a blob.
pub fn bytes<'r>(row: &'r rusqlite::Row, at: usize) -> Result<&'r [u8]> {
    match row.get_ref(at).map_err(error)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Ok(bytes),
        ValueRef::Null => Err(Error::malformed("NULL, where bytes should be")),
        _ => Err(Error::malformed("a number, where bytes should be")),
    }
}

/// A value as SQLite keeps it in a column.
pub fn cell(value: &Value) -> Cell {
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

/// Whether a column of one kind holds a value of another.
fn holds(column: Kind, value: Kind) -> bool {
    column == value
        || value == Kind::Null
        || (column == Kind::Float && value == Kind::Int)
        || (column == Kind::Text && matches!(value, Kind::Decimal | Kind::BigInt))
}

/// The names of columns to make: SQLite takes `a` and `A` for one.
fn check_columns(columns: &[Column]) -> Result<()> {
    let mut seen = HashMap::new();
    for Column { name, .. } in columns {
        check_name("sqlite", "column", name, super::LONGEST_NAME)?;
        if let Some(other) = seen.insert(name.to_ascii_lowercase(), name) {
            return Err(Error::invalid(format!(
                "sqlite cannot have columns {other:?} and {name:?} side by side, which it takes for \
                 one; layout document keeps both"
            )));
        }
    }
    Ok(())
}

/// The type a column is declared with, from which its kind is told again.
fn declared(kind: Kind) -> &'static str {
    match kind {
        Kind::Int => "INTEGER",
        Kind::Float => "REAL",
        Kind::Bool => "BOOLEAN",
        Kind::Bytes => "BLOB",
        Kind::Time => "TIMESTAMP",
        _ => "TEXT",
    }
}

/// A column as the database describes it.
struct Found {
    name: String,
    declared: String,
    primary: bool,
}

impl Described for Found {
    fn name(&self) -> &str {
        &self.name
    }
    fn is_primary(&self) -> bool {
        self.primary
    }
}

impl Found {
    fn kind(&self) -> Kind {
        let declared = self.declared.to_ascii_uppercase();
        let has = |words: &[&str]| words.iter().any(|word| declared.contains(word));
        match () {
            () if has(&["BOOL"]) => Kind::Bool,
            () if has(&["INT"]) => Kind::Int,
            () if has(&["CHAR", "CLOB", "TEXT"]) => Kind::Text,
            () if has(&["TIMESTAMP", "DATETIME"]) => Kind::Time,
            () if declared.is_empty() || has(&["BLOB"]) => Kind::Bytes,
            () => Kind::Float,
        }
    }
}

fn look(connection: &Connection, table: &str) -> rusqlite::Result<Vec<Found>> {
    let mut statement =
        connection.prepare_cached("SELECT name, type, pk FROM pragma_table_info(?)")?;
    let found = |row: &rusqlite::Row| {
        Ok(Found { name: row.get(0)?, declared: row.get(1)?, primary: row.get::<_, i64>(2)? > 0 })
    };
    statement.query_map([table], found)?.collect()
}
