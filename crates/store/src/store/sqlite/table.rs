//! What a table of SQLite looks like, and records as its rows.

use std::sync::Arc;

use rusqlite::{
    Connection, OptionalExtension,
    types::{Value as Cell, ValueRef},
};

use super::{
    column::{Found, KeyColumn, Looked, Writes, declared, key_of, look, value},
    dialect::{Sqlite, extract},
    error::error,
    pool::Pool,
};
use crate::{
    Error, Result,
    record::Document,
    store::{
        Abilities, Column, Key, Layout, Row, Shape, blobs, json,
        query::Path,
        sql::{
            self, BlobColumn, Dialect, Fields, Guard, Promise, Rules, Side, Sorting, Sql, Table,
            check_name,
            index::{On, index_name, indexes, shared_index_name, tenant, tenant_on},
            no_key, not_prepared, numbers_of_64_bits, only_read, quote,
            row::{about, of_field, of_key, whole},
        },
    },
};

/// A table, which is looked at when it is first needed.
pub(super) type Lazy = sql::Lazy<Schema>;

/// A table as it is.
pub(crate) struct Schema {
    pub table: Table,
    pub dialect: Sqlite,
    pub fields: Fields<Found>,
    pub key_column: KeyColumn,
    /// Its rows have numbers, by the name of `rowid`.
    pub has_row_ids: bool,
    /// It has triggers, which may change what is written.
    pub triggers: bool,
    /// The statements that are sent again and again.
    pub texts: Texts,
}

/// Statements of a table, put together once.
#[derive(Default)]
pub(crate) struct Texts {
    /// The body of the row of a key, after the key where that is a field.
    pub get: String,
    /// The same after the key, whether it is a field or not.
    pub look: String,
    /// The key of the row that the table would take for a key's, be it the same or not.
    pub like: String,
    pub insert: String,
    /// Inserts, or replaces what is there.
    pub upsert: String,
    /// Inserts where no row has the key.
    pub insert_absent: String,
    /// Replaces what is there; a condition can follow.
    pub update: String,
    pub remove: String,
    pub count: String,
}

/// What SQLite takes for a column: `a` and `A` are one.
const RULES: Rules = Rules {
    driver: "sqlite",
    name: named,
    fold: str::to_ascii_lowercase,
    kind: |name, kind| numbers_of_64_bits("sqlite", name, kind),
};

/// Whether a table or a column can have this name.
pub(super) fn named(what: &str, name: &str) -> Result<()> {
    const LONGEST: usize = 1000;
    check_name("sqlite", what, name, LONGEST)
}

impl Lazy {
    pub(crate) fn quoted(&self) -> String {
        quote(&self.name)
    }

    /// The table as it is in the database.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) where there is none, [`Conflict`](ErrorKind::Conflict) where
    /// it is of another layout.
    pub(crate) async fn schema(&self, pool: &Arc<Pool>) -> Result<Arc<Schema>> {
        match self.peek() {
            Some(known) => Ok(known),
            None => {
                let name = self.name.clone();
                let found = pool.attempt(move |connection| look(connection, &name)).await?;
                let known =
                    Arc::new(Schema::new(&self.name, self.understood(&found.columns)?, &found));
                let of = known.clone();
                pool.attempt(move |connection| of.can_be_keys(connection)).await?;
                Ok(self.keep(known))
            }
        }
    }

    /// Makes the table and its indexes.
    pub(crate) async fn prepare(&self, pool: &Arc<Pool>, layout: &Layout) -> Result<()> {
        if self.shape == Shape::Blob {
            layout.no_indexes("sqlite", Shape::Blob)?;
        }
        RULES.check(self.shape, &self.names, layout)?;
        pool.make().await?;
        let there = {
            let name = self.name.clone();
            pool.attempt(move |connection| look(connection, &name)).await?
        };
        if there.columns.is_empty() {
            let make = self.create(layout)?;
            pool.run(move |connection| connection.execute_batch(&make)).await?;
        }
        self.forget();
        let known = self.schema(pool).await?;
        known.fields.must_have(&self.name, layout)?;
        let (name, key) = (self.quoted(), known.key());
        let mut statements = String::new();
        let of = |path: &Path, on: On<'_>| match on {
            On::Document(column) => extract(&quote(column), path),
            On::Column(column) => {
                let by = known.dialect.sort_by_column(column, Sorting::Exact);
                by.into_iter().map(|by| by.text).collect::<Vec<_>>().join(", ")
            }
        };
        for (index, on) in indexes(&known.table, layout)? {
            let mut on = of(&index.path, on);
            // With the key, which decides between records that are otherwise equal: so the index has
            // the order of a sorted query.
            on += &format!(", {}", known.dialect.by_bytes(&key));
            let index = match layout.shared {
                true => {
                    let name = shared_index_name(&self.name, &index.path, &on);
                    on = format!("{}, {on}", of(&tenant(), tenant_on(&known.table)?));
                    quote(&name)
                }
                false => quote(&index_name(&self.name, &index.path, &on)),
            };
            statements += &format!("CREATE INDEX IF NOT EXISTS {index} ON {name} ({on});");
        }
        pool.run(move |connection| connection.execute_batch(&statements)).await
    }

    fn create(&self, layout: &Layout) -> Result<String> {
        let made = RULES.made(&self.name, self.shape, &self.names, layout)?;
        let body = quote(self.names.body(self.shape));
        let columns = match self.shape {
            Shape::Document => format!(", {body} TEXT NOT NULL"),
            Shape::Blob => format!(", {body} BLOB NOT NULL"),
            Shape::Columns => {
                let column = |c: &&Column| format!(", {} {}", quote(&c.name), declared(c.kind));
                made.columns.iter().map(column).collect()
            }
        };
        let key_type = if made.key_is_int { "INTEGER" } else { "TEXT" };
        Ok(format!(
            "CREATE TABLE IF NOT EXISTS {} ({} {key_type} PRIMARY KEY NOT NULL{columns})",
            self.quoted(),
            quote(self.names.key())
        ))
    }

    /// Whether the table can hold a row.
    ///
    /// # Errors
    /// Where it cannot, or where its columns are not known yet.
    pub(crate) fn check(&self, abilities: &Abilities, row: &Row) -> Result<()> {
        match (self.peek(), self.shape) {
            (Some(known), _) => known.cells(abilities, row).map(drop),
            (None, Shape::Columns) => Err(not_prepared()),
            (None, _) => body(abilities, row).map(drop),
        }
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

impl Schema {
    fn new(name: &str, mut fields: Fields<Found>, looked: &Looked) -> Schema {
        let key_column = KeyColumn::new(&fields.key);
        fields.key.kind = key_column.kind();
        let columns = match fields.shape {
            Shape::Columns => fields.all().cloned().collect(),
            _ => Vec::new(),
        };
        let mut known = Schema {
            table: fields.table(name),
            dialect: Sqlite { key: Some(key_column.clone()), columns },
            fields,
            key_column,
            has_row_ids: looked.has_row_ids,
            triggers: looked.triggers,
            texts: Texts::default(),
        };
        known.texts = known.put_together();
        known
    }

    /// Whether what is in the key's column can be keys.
    ///
    /// # Errors
    /// [`Conflict`](crate::ErrorKind::Conflict) where several rows have the same, or NULL.
    fn can_be_keys(&self, connection: &Connection) -> Result<()> {
        let Promise { unique, not_null } = self.fields.key.promise;
        // 5 and '5' are two values, and one key.
        let promise = Promise { unique: unique && !self.key_column.is_any(), not_null };
        let Some(broken) = promise.broken(&self.dialect, &self.table) else { return Ok(()) };
        let found = connection.prepare(&broken).and_then(|mut broken| {
            let of =
                |row: &rusqlite::Row| Ok((row.get::<_, Option<String>>(0)?, row.get::<_, i64>(1)?));
            broken.query_row([], of).optional()
        });
        match found.map_err(error)? {
            Some((key, rows)) => Err(no_key(&self.table, key.as_deref(), rows as u64)),
            None => Ok(()),
        }
    }

    /// How rows are written.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) where they can only be read.
    pub(crate) fn writes(&self) -> Result<Writes> {
        let writes = self.key_column.writes(self.fields.key.promise);
        writes.map_err(|why| only_read(&self.table, why))
    }

    pub(crate) fn name(&self) -> String {
        quote(&self.table.name)
    }

    pub(crate) fn key(&self) -> String {
        quote(&self.table.key)
    }

    /// The key as text, in whose order keys are.
    pub(crate) fn key_as_text(&self) -> String {
        self.key_column.as_text("")
    }

    /// The key's column has the order of the keys, and so has its index.
    pub(crate) fn is_in_order(&self) -> bool {
        self.key_column.is_text() && self.fields.key.promise.unique
    }

    /// Whether the key's column holds a key as it is: SQLite would make a number of `07`.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) where it does not.
    pub(crate) fn check_key(&self, key: &Key) -> Result<()> {
        if !self.key_column.is_row_id() {
            return Ok(());
        }
        match whole(key).map(i64::try_from) {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => {
                let e = Error::invalid("has more digits than the key's column holds");
                Err(of_key(e, key))
            }
            Err(e) => Err(of_key(e, key)),
        }
    }

    /// The columns that are read: the key, then the body.
    pub(crate) fn what(&self) -> String {
        self.what_of("")
    }

    /// The same of a table that has another name in the statement.
    pub(crate) fn what_of(&self, of: &str) -> String {
        let mut what = format!("{of}{}", self.key());
        for column in &self.fields.body {
            what += ", ";
            what += of;
            what += &quote(&column.name);
        }
        what
    }

    /// How many of them there are.
    pub(crate) fn width(&self) -> usize {
        1 + self.fields.body.len()
    }

    /// The table in a join, by the name it has there.
    pub(crate) fn side(&self, of: &str) -> Side<'_> {
        let (table, dialect, what) = (&self.table, &self.dialect, self.what_of(of));
        Side { table, dialect, what, key_is_text: self.key_column.is_text() }
    }

    pub(crate) fn select(&self) -> String {
        format!("SELECT {} FROM {}", self.what(), self.name())
    }

    /// The condition of a conditional write, which follows that on the key; none where no row must be there.
    ///
    /// # Errors
    /// As [`Table::is_as`].
    pub(crate) fn condition(&self, guard: Guard<'_>) -> Result<Option<Sql>> {
        if matches!(guard, Guard::Absent) {
            return Ok(None);
        }
        let mut sql = Sql::new(&self.dialect, " AND (");
        let body = || {
            let name = quote(&self.fields.body[0].name);
            // In tables of other programs they may be kept as text.
            let text = format!("{name} COLLATE BINARY");
            BlobColumn { bytes: Some(name), text: Some(text) }
        };
        self.table.is_as(&self.dialect, guard, body, &mut sql)?;
        sql.push(")");
        Ok(Some(sql))
    }

    /// What writes a row that is `new`, or may be there.
    pub(crate) fn writing(&self, new: bool) -> &str {
        if new { &self.texts.insert } else { &self.texts.upsert }
    }

    fn put_together(&self) -> Texts {
        let (table, key) = (self.name(), self.key());
        let names: Vec<String> = self.fields.body.iter().map(|c| quote(&c.name)).collect();
        let mut read = names.clone();
        if self.fields.key_is_field || read.is_empty() {
            read.insert(0, key.clone());
        }
        let written = [std::slice::from_ref(&key), &names].concat().join(", ");
        let places = ", ?".repeat(names.len());
        // Whatever the table does itself where another column has to be unique (`ON CONFLICT REPLACE` would
        // delete another record, `IGNORE` write none), here it is an error.
        let insert = format!("INSERT OR ABORT INTO {table} ({written}) VALUES (?{places})");
        let set: Vec<_> = names.iter().map(|name| format!("{name} = excluded.{name}")).collect();
        let then = match set.is_empty() {
            true => "NOTHING".into(),
            false => format!("UPDATE SET {}", set.join(", ")),
        };
        let given = self.key_column.is_given();
        let mut assigned: Vec<_> =
            names.iter().enumerate().map(|(i, name)| format!("{name} = ?{}", i + 2)).collect();
        if assigned.is_empty() {
            assigned.push(format!("{key} = {key}"));
        }
        Texts {
            get: format!("SELECT {} FROM {table} WHERE {given}", read.join(", ")),
            look: format!("{} WHERE {given}", self.select()),
            like: format!("SELECT {key} FROM {table} WHERE {key} = ?"),
            upsert: format!("{insert} ON CONFLICT ({key}) DO {then}"),
            insert_absent: format!("{insert} ON CONFLICT ({key}) DO NOTHING"),
            update: format!("UPDATE OR ABORT {table} SET {} WHERE {given}", assigned.join(", ")),
            insert,
            remove: format!("DELETE FROM {table} WHERE {given}"),
            count: format!("SELECT count(*) FROM {table}"),
        }
    }

    /// The body of a row as what is bound.
    ///
    /// # Errors
    /// Where the table cannot hold the row.
    pub(crate) fn cells(&self, abilities: &Abilities, row: &Row) -> Result<Vec<Cell>> {
        if self.fields.shape != Shape::Columns {
            self.check_key(&row.key)?;
            return Ok(vec![Cell::Text(body(abilities, row)?)]);
        }
        blobs::fits(abilities, &row.key, 0)?;
        self.check_key(&row.key)?;
        let mut cells = Vec::with_capacity(self.fields.body.len());
        let written = self.fields.write(&row.key, &row.record, |_, column, value| {
            cells.push(column.cell_of(value)?);
            Ok(())
        });
        written.map_err(|e| about(e, &row.key))?;
        Ok(cells)
    }

    /// The row as it was read by [`what`](Schema::what).
    pub(crate) fn row(&self, row: &rusqlite::Row) -> Result<Row> {
        self.row_of(row, None)
    }

    /// The same of these fields only: what is in others need not be what they can hold.
    pub(crate) fn row_of(&self, row: &rusqlite::Row, fields: Option<&[String]>) -> Result<Row> {
        let record = self.body(row, 1, fields, |row| key_of(row, 0))?;
        Ok(Row { key: key_of(row, 0)?, record })
    }

    /// The record of a row that was read by [`Texts::get`] under this key.
    pub(crate) fn found(&self, row: &rusqlite::Row, key: &Key) -> Result<Document> {
        match self.fields.key_is_field {
            true => self.record(row, 0),
            false => self.body(row, 0, None, |_| Ok(key.clone())),
        }
    }

    /// The record of a row, whose key is in column `first`.
    pub(crate) fn record(&self, row: &rusqlite::Row, first: usize) -> Result<Document> {
        self.body(row, first + 1, None, |row| key_of(row, first))
    }

    /// The record of a row whose body begins in column `at`.
    fn body(
        &self,
        row: &rusqlite::Row,
        at: usize,
        fields: Option<&[String]>,
        key: impl Fn(&rusqlite::Row) -> Result<Key>,
    ) -> Result<Document> {
        let is_asked = |name: &String| fields.is_none_or(|fields| fields.contains(name));
        let read = match self.fields.shape {
            Shape::Columns => self.fields.read(
                || key(row),
                |i, column| match row.get_ref(at + i).map_err(error)? {
                    ValueRef::Null => Ok(None),
                    _ if !is_asked(&column.name) => Ok(None),
                    ref cell => {
                        let value = value(column.kind, cell);
                        value.map(Some).map_err(|e| of_field(e, &column.name))
                    }
                },
            ),
            _ => bytes(row, at).and_then(json::read),
        };
        read.map_err(|e| match key(row) {
            Ok(key) => about(e, &key),
            Err(_) => e,
        })
    }
}

/// The bytes in column `at`, be they kept as text or as a blob.
pub(super) fn bytes<'r>(row: &'r rusqlite::Row, at: usize) -> Result<&'r [u8]> {
    match row.get_ref(at).map_err(error)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Ok(bytes),
        ValueRef::Null => Err(Error::malformed("NULL instead of bytes")),
        _ => Err(Error::malformed("a number instead of bytes")),
    }
}
