//! What a table looks like, and records as its rows.

use std::sync::{Arc, PoisonError, RwLock};

use futures_util::FutureExt;
use mysql_async::{Row as Cells, Value as Cell};

use super::{
    dialect::{Dialect, GENERATED, INDEXED_CHARS, On, quote},
    engine::{Engine, Facts},
    known::{Known, about, deeper, size},
    pool::Pool,
    values::{Column, Type, declared},
    write::{Taken, insert},
};
use crate::{
    Error, ErrorKind, Result,
    store::{
        self, Index, Key, Layout, Row, Shape, blobs, json,
        query::Path,
        sql::{Body, Described, Existing, Table, no_such_column},
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
    pub name: String,
    pub facts: Arc<Facts>,
    names: Names,
    known: RwLock<Option<Arc<Known>>>,
}

/// What the key's column is called in tables that are made here.
const KEY: &str = Path::KEY;

impl Described for Column {
    fn name(&self) -> &str {
        &self.name
    }
    fn is_primary(&self) -> bool {
        self.primary
    }
}

impl Lazy {
    /// What the indexes take; of InnoDB without the one of the key, in which the records are. Not the
    /// growth of the table's file, which has room to spare.
    pub async fn index_bytes(&self, pool: &Pool) -> Result<Option<u64>> {
        let statement = "SELECT CAST(index_length AS UNSIGNED) FROM information_schema.tables \
                         WHERE table_schema = DATABASE() AND table_name = ?";
        let rows = pool.rows(statement, vec![self.name.as_str().into()]).await?;
        Ok(rows.into_iter().next().and_then(|row| row.get_opt::<Option<u64>, _>(0)?.ok()?))
    }

    pub fn new(name: String, names: Names, facts: Arc<Facts>) -> Lazy {
        Lazy { name, facts, names, known: RwLock::default() }
    }

    /// What is known of the table may be so no longer.
    pub fn forget(&self) {
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn peek(&self) -> Option<Arc<Known>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn body_column(&self) -> String {
        let usual = if self.facts.shape == Shape::Blob { "value" } else { "record" };
        self.names.column.clone().unwrap_or_else(|| usual.into())
    }

    /// The table as it is in the database.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) where there is none, [`Conflict`](ErrorKind::Conflict) where
    /// it is of another layout or engine.
    pub async fn known(&self, pool: &Pool) -> Result<Arc<Known>> {
        match self.peek() {
            Some(known) => Ok(known),
            // Apart, so that what is usual stays small.
            None => self.found(pool).boxed().await,
        }
    }

    async fn found(&self, pool: &Pool) -> Result<Arc<Known>> {
        let columns = look(pool, &self.name).await?.ok_or_else(|| {
            let what = format!("no table {:?} in the database", self.name);
            Error::new(ErrorKind::NotFound, what)
        })?;
        if let Some(engine) = engine_of(pool, &self.name).await? {
            self.facts.expects(&self.name, &engine)?;
        }
        let known = Arc::new(self.understand(columns, pool)?);
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Some(known.clone());
        Ok(known)
    }

    fn understand(&self, found: Vec<Column>, pool: &Pool) -> Result<Known> {
        let there = Existing { name: &self.name, columns: &found };
        let key = there.key(self.names.key.as_deref())?;
        let shape = self.facts.shape;
        let (body, columns): (Body, Vec<Column>) = match shape {
            Shape::Columns => {
                let others = found.iter().filter(|c| c.name != key.name && !c.generated);
                let others: Vec<_> = others.cloned().collect();
                let column =
                    |c: &Column| store::Column { name: c.name.clone(), kind: c.holds.kind() };
                (Body::Columns(others.iter().map(column).collect()), others)
            }
            _ => {
                let name = self.body_column();
                let column = there.body(&name, shape)?;
                (Body::Document(name), vec![column.clone()])
            }
        };
        let inexact = |c: &&Column| !c.exact || !matches!(c.holds, Type::Chars(..) | Type::Text(_));
        let own = std::iter::once(key).chain(&columns);
        let generated = found.iter().filter(|c| c.generated).map(|c| c.name.clone());
        let dialect = Dialect {
            maria: pool.server.maria,
            collation: pool.server.collation,
            inexact: own.clone().filter(inexact).map(|c| quote(&c.name)).collect(),
            indexed: generated
                .filter(|name| GENERATED.iter().any(|g| name.starts_with(g)))
                .collect(),
        };
        let is_text = |c: &Column| matches!(c.holds, Type::Chars(..) | Type::Text(_));
        let mut known = Known {
            table: Table { name: self.name.clone(), key: key.name.clone(), body },
            dialect,
            select: String::new(),
            get_one: String::new(),
            put_one: String::new(),
            by_file: own.clone().all(|c| c.holds != Type::Other && (c.unicode || !is_text(c))),
            shape,
            key_is_field: shape == Shape::Columns && key.name != KEY,
            key: key.clone(),
            body: columns,
        };
        known.select = format!("SELECT {} FROM {}", known.what(), known.name());
        known.get_one = format!("{} WHERE {} = ?", known.select, known.key_name());
        known.put_one = insert(&known, 1, Taken::Replace);
        Ok(known)
    }

    /// Makes the table and its indexes.
    pub async fn prepare(&self, pool: &Pool, layout: &Layout) -> Result<()> {
        if look(pool, &self.name).await?.is_none() {
            pool.define(&self.create(pool, layout)?).await?;
        }
        self.forget();
        let known = self.known(pool).await?;
        known.must_have(layout)?;
        if self.facts.shape == Shape::Blob {
            layout.no_indexes("mysql", Shape::Blob)?;
        }
        for index in &layout.indexes {
            if !index.path.is_key() {
                self.index(pool, &known, index).await?;
            }
        }
        // The columns of indexes are part of what is known.
        self.forget();
        self.known(pool).await.map(drop)
    }

    fn create(&self, pool: &Pool, layout: &Layout) -> Result<String> {
        let own = self.names.key.as_deref().unwrap_or(KEY);
        let collation = pool.server.collation;
        let body = match self.facts.shape {
            Shape::Document => format!(", {} JSON NOT NULL", quote(&self.body_column())),
            Shape::Blob => format!(", {} LONGBLOB NOT NULL", quote(&self.body_column())),
            Shape::Columns if layout.columns.is_empty() => {
                return Err(Error::invalid("layout columns needs columns to make a table with"));
            }
            Shape::Columns => {
                let mut body = String::new();
                for column in layout.columns.iter() {
                    super::check_name("column", &column.name)?;
                    if column.name == own && own == KEY {
                        let what = format!("a field {KEY:?}, which is the key's own");
                        return Err(Error::invalid(what));
                    }
                    if column.name != own {
                        let (name, kind) = (quote(&column.name), declared(column.kind, collation));
                        body += &format!(", {name} {kind}");
                    }
                }
                body
            }
        };
        let Engine { name: engine, max_key, .. } = self.facts.engine;
        Ok(format!(
            "CREATE TABLE IF NOT EXISTS {} ({} VARCHAR({max_key}) NOT NULL PRIMARY KEY{body}) \
             ENGINE = {engine} DEFAULT CHARACTER SET utf8mb4 COLLATE {collation}",
            quote(&self.name),
            quote(own)
        ))
    }

    async fn index(&self, pool: &Pool, known: &Known, index: &Index) -> Result<()> {
        let table = known.name();
        let generated = |name: String, is: String| {
            let stored = !pool.server.maria && self.facts.engine.name != "InnoDB";
            let kept = if stored { "STORED" } else { "VIRTUAL" };
            // Other programs' `SELECT *` need not see it.
            let hidden = "/*M!100303 INVISIBLE */ /*!80023 INVISIBLE */";
            let quoted = quote(&name);
            let add =
                format!("ADD COLUMN {quoted} {is} {kept} {hidden}, ADD INDEX {quoted} ({quoted})");
            (name, add)
        };
        let (name, add) = match &known.table.body {
            Body::Document(column) => generated(
                On::kind(index.kind).column(&index.path),
                known.dialect.generated(&quote(column), index),
            ),
            Body::Columns(_) => {
                let column = match index.path.names() {
                    [name] => known.body.iter().find(|column| column.name == *name),
                    _ => None,
                };
                let column = column.ok_or_else(|| no_such_column(&index.path))?;
                // Names of indexes know no case either.
                let name = On::Text.column(&index.path);
                let (quoted, own) = (quote(&name), quote(&column.name));
                match column.holds {
                    Type::Text(_) => generated(name, known.dialect.generated_of(&own)),
                    Type::Bytes(..) => {
                        (name, format!("ADD INDEX {quoted} ({own}({INDEXED_CHARS}))"))
                    }
                    _ => (name, format!("ADD INDEX {quoted} ({own})")),
                }
            }
        };
        if has_index(pool, &self.name, &name).await? {
            return Ok(());
        }
        let statement = format!("ALTER TABLE {table} {add}");
        let done = pool.define(&statement).await;
        match done {
            // Somebody else made it at the same time.
            Err(_) if has_index(pool, &self.name, &name).await? => Ok(()),
            done => done,
        }
    }

    /// A row as what is bound: the key, then the body.
    ///
    /// # Errors
    /// Where the table cannot hold it.
    pub fn cells(&self, row: &Row) -> Result<Vec<Cell>> {
        self.cells_of(row).map_err(|e| about(e, &row.key))
    }

    fn cells_of(&self, row: &Row) -> Result<Vec<Cell>> {
        let known = self.peek();
        let mut cells = Vec::with_capacity(2);
        blobs::fits(&self.facts.abilities, &row.key, 0)?;
        match &known {
            Some(known) => cells.push(known.key_cell(&row.key)?),
            None => cells.push(Cell::Bytes(row.key.as_bytes().to_vec())),
        }
        if self.facts.shape == Shape::Columns {
            let known = known.ok_or_else(|| {
                Error::invalid("the columns of the table are not known yet; prepare it first")
            })?;
            known.columns(row, &mut cells)?;
        } else {
            json::check(&row.record)?;
            let levels = self.facts.levels;
            if deeper(&row.record, levels) {
                let what = format!(
                    "it nests deeper than {levels} levels, which MariaDB's JSON cannot; use \
                     ?layout=blob"
                );
                return Err(Error::new(ErrorKind::TooLarge, what));
            }
            let mut text = Vec::with_capacity(256);
            json::write(&row.record, &mut text)?;
            if let Some(known) = &known {
                known.body[0].bytes(text.len())?;
            }
            cells.push(Cell::Bytes(text));
        }
        let bytes = cells[1..].iter().map(size).sum();
        blobs::fits(&self.facts.abilities, &row.key, bytes)?;
        Ok(cells)
    }

    /// A blob as what is bound.
    ///
    /// # Errors
    /// Where the table cannot hold it.
    pub fn blob_cells(&self, key: &Key, bytes: &[u8]) -> Result<Vec<Cell>> {
        let cells = || {
            blobs::fits(&self.facts.abilities, key, bytes.len())?;
            let key_cell = match self.peek() {
                Some(known) => {
                    known.body[0].bytes(bytes.len())?;
                    known.key_cell(key)?
                }
                None => Cell::Bytes(key.as_bytes().to_vec()),
            };
            Ok(vec![key_cell, Cell::Bytes(bytes.to_vec())])
        };
        cells().map_err(|e| about(e, key))
    }
}

/// The columns of a table, if there is one.
async fn look(pool: &Pool, table: &str) -> Result<Option<Vec<Column>>> {
    let statement = format!("SHOW FULL COLUMNS FROM {}", quote(table));
    let rows = pool.query(&statement).await;
    let rows = match rows {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        rows => rows?,
    };
    let text = |row: &mut Cells, name: &str| row.take::<Option<String>, _>(name).flatten();
    let column = |mut row: Cells| {
        let collation = text(&mut row, "Collation").unwrap_or_default();
        let extra = text(&mut row, "Extra").unwrap_or_default();
        Column {
            name: text(&mut row, "Field").unwrap_or_default(),
            holds: Type::found(&text(&mut row, "Type").unwrap_or_default()),
            exact: collation == pool.server.collation,
            unicode: collation.starts_with("utf8mb4_"),
            primary: text(&mut row, "Key").as_deref() == Some("PRI"),
            generated: extra.contains("GENERATED") && !extra.contains("DEFAULT_GENERATED"),
        }
    };
    Ok(Some(rows.into_iter().map(column).collect()))
}

/// The name of a table's engine; none of a view, and where there is no table.
pub async fn engine_of(pool: &Pool, table: &str) -> Result<Option<String>> {
    let statement = "SELECT table_name, engine FROM information_schema.tables WHERE table_schema = \
                     DATABASE() AND table_name = ?";
    let rows = pool.rows(statement, vec![table.into()]).await?;
    let mut rows: Vec<(String, Option<String>)> =
        rows.into_iter().filter_map(|row| mysql_async::from_row_opt(row).ok()).collect();
    // Names differ in case only on some servers.
    let at = rows.iter().position(|(name, _)| name == table).unwrap_or(0);
    Ok(if rows.is_empty() { None } else { rows.swap_remove(at).1 })
}

async fn has_index(pool: &Pool, table: &str, index: &str) -> Result<bool> {
    let statement = "SELECT table_name FROM information_schema.statistics WHERE table_schema = \
                     DATABASE() AND table_name = ? AND index_name = ?";
    let rows = pool.rows(statement, vec![table.into(), index.into()]).await?;
    Ok(!rows.is_empty())
}
