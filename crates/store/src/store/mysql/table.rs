//! What a table looks like, and records as its rows.

use std::{ops::Deref, sync::Arc};

use futures_util::FutureExt;
use mysql_async::{Row as Cells, Value as Cell};

use super::{
    dialect::{Dialect, GENERATED, INDEXED_CHARS, On, quote},
    engine::{Engine, Facts},
    pool::Pool,
    schema::{Schema, Writes, deeper, size},
    values::{Column, Type, declared},
    write::{Taken, insert},
};
use crate::{
    Error, ErrorKind, Result, record,
    store::{
        self, Index, Key, Layout, Row, Shape, blobs, json,
        sql::{
            self, Fields, NO_INDEX, Names, Promise, Rules, check_name,
            index::{self, indexes, tenant_on},
            no_key, not_prepared, numbers_of_64_bits,
            row::{about, of_key},
        },
    },
};

/// What MySQL takes for a column: names know no case.
const RULES: Rules = Rules {
    driver: "mysql",
    name: named,
    fold: str::to_lowercase,
    kind: |name, kind| numbers_of_64_bits("mysql", name, kind),
};

/// A name of a table or column: 64 characters of the Unicode that names know.
fn named(what: &str, name: &str) -> Result<()> {
    const LONGEST: usize = 64;
    check_name("mysql", what, name, 4 * LONGEST)?;
    let wrong = if name.chars().count() > LONGEST {
        "it has more than 64 characters"
    } else if name.ends_with(' ') {
        "it ends in a space"
    } else if name.chars().any(|c| c > '\u{ffff}') {
        "it has a character beyond U+FFFF"
    } else {
        return Ok(());
    };
    Err(Error::invalid(format!("{name:?} is not a valid {what} in mysql: {wrong}")))
}

/// What an index is on.
struct Indexed {
    /// Its name; that of the column, where one is made for it.
    name: String,
    /// The column, as a definition of an index says it.
    on: String,
    /// The definition of the column, where it is not there.
    column: Option<String>,
}

/// A table, which is looked at when it is first needed.
pub(super) struct Lazy {
    table: sql::Lazy<Schema>,
    pub facts: Arc<Facts>,
}

impl Deref for Lazy {
    type Target = sql::Lazy<Schema>;
    fn deref(&self) -> &sql::Lazy<Schema> {
        &self.table
    }
}

impl Lazy {
    /// What the indexes take; of InnoDB without the one of the key, in which the records are. Not the
    /// growth of the table's file, which has room to spare.
    pub(super) async fn index_bytes(&self, pool: &Pool) -> Result<Option<u64>> {
        let statement = "SELECT CAST(index_length AS UNSIGNED) FROM information_schema.tables \
                         WHERE table_schema = DATABASE() AND table_name = ?";
        let rows = pool.rows(statement, vec![self.name.as_str().into()]).await?;
        Ok(rows.into_iter().next().and_then(|row| row.get_opt::<Option<u64>, _>(0)?.ok()?))
    }

    pub(super) fn new(name: &str, names: Names, facts: Arc<Facts>) -> Result<Lazy> {
        Ok(Lazy { table: sql::Lazy::new(facts.shape, name, names, named)?, facts })
    }

    /// The table as it is in the database.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) where there is none, [`Conflict`](ErrorKind::Conflict) where
    /// it is of another layout or engine.
    pub(super) async fn schema(&self, pool: &Pool) -> Result<Arc<Schema>> {
        match self.peek() {
            Some(known) => Ok(known),
            // Apart, so that what is usual stays small.
            None => self.found(pool).boxed().await,
        }
    }

    async fn found(&self, pool: &Pool) -> Result<Arc<Schema>> {
        let found = look(pool, &self.name).await?;
        let mut fields = self.understood(&found)?;
        let Kind { engine, versioned, triggers } = kind_of(pool, &self.name).await?;
        if let Some(engine) = engine {
            self.facts.expects(&self.name, &engine)?;
        }
        if self.shape == Shape::Columns {
            all_are_shown(pool, &self.name).await?;
        }
        let unique = unique_of(pool, &self.name).await?;
        let key = fields.key.name.clone();
        fields.key.promise.unique = unique.iter().any(|index| index.is_of(&key));
        // What all of it is unique in cannot take a key for another.
        let others: Vec<Unique> =
            unique.into_iter().filter(|index| !index.is_of(&key) || index.of_a_part).collect();
        let mut known = self.known_as(fields, &found, &others, pool);
        known.versioned = versioned;
        if triggers {
            self.looks_at_all(&mut known);
        }
        if let Some(broken) = known.fields.key.promise.broken(&known.dialect, &known.table)
            && let Some(row) = pool.rows(&broken, Vec::new()).await?.into_iter().next()
        {
            let (key, rows): (Option<String>, u64) = mysql_async::from_row_opt(row)
                .map_err(|e| Error::malformed("a key that is not UTF-8").with_source(e))?;
            return Err(no_key(&known.table, key.as_deref(), rows));
        }
        Ok(self.keep(known))
    }

    /// How rows are written into a table, some of whose unique indexes may not be the key's alone (`others`).
    fn writes(&self, key: &Column, others: bool) -> Writes {
        let is_exact = match key.holds {
            Type::Int(..) => !key.summed,
            Type::Chars(..) | Type::Text(_) => key.exact,
            Type::Bytes(..) => true,
            _ => false,
        };
        match () {
            () if !key.promise.unique => Writes::Never(NO_INDEX),
            () if key.holds == Type::ReadOnly => Writes::Never("holds geometry or vectors"),
            () if is_exact && !others => Writes::AsTheyAre,
            () if self.facts.engine.atomic => Writes::Looking,
            () => Writes::Never(
                "or another unique index may take a key for another, and the engine has no transactions to undo \
                 that",
            ),
        }
    }

    /// Of a table with triggers, each row that is written is looked at afterwards, in all columns.
    fn looks_at_all(&self, known: &mut Schema) {
        (known.triggers, known.by_file) = (true, false);
        known.looked = (0..known.fields.body.len()).collect();
        known.writes = match known.writes {
            Writes::Never(why) => Writes::Never(why),
            _ if self.facts.engine.atomic => Writes::Looking,
            _ => Writes::Never(
                "is in a table whose triggers may change what is written, and the engine has no transactions to undo that",
            ),
        };
    }

    fn known_as(
        &self,
        mut fields: Fields<Column>,
        found: &[Column],
        others: &[Unique],
        pool: &Pool,
    ) -> Schema {
        let writes = self.writes(&fields.key, !others.is_empty());
        fields.key = fields.key.into_key();
        if fields.shape == Shape::Document {
            // JSON is compared by its meaning.
            fields.body.iter_mut().for_each(|column| column.changes = None);
        }
        let changing = (0..).zip(&fields.body).filter(|(_, c)| c.changes.is_some());
        let changing: Vec<usize> = changing.map(|(i, _)| i).collect();
        let looked = looked(&fields, &changing, others);
        let inexact = |c: &&Column| !c.exact || !matches!(c.holds, Type::Chars(..) | Type::Text(_));
        let generated = found.iter().filter(|c| c.generated).map(|c| c.name.clone());
        let dialect = Dialect {
            maria: pool.server.maria,
            collation: pool.server.collation,
            inexact: fields.all().filter(inexact).map(|c| quote(&c.name)).collect(),
            summed: fields.all().filter(|c| c.summed).map(|c| quote(&c.name)).collect(),
            indexed: generated
                .filter(|name| GENERATED.iter().any(|g| name.starts_with(g)))
                .collect(),
        };
        let is_text = |c: &Column| matches!(c.holds, Type::Chars(..) | Type::Text(_));
        let is_sent = |c: &Column| {
            c.holds != Type::Other && c.changes.is_none() && !c.summed && (c.unicode || !is_text(c))
        };
        let by_file = fields.all().all(is_sent);
        let mut known = Schema {
            table: fields.table(&self.name),
            dialect,
            select: String::new(),
            get_one: String::new(),
            put_one: String::new(),
            by_file,
            fields,
            writes,
            triggers: false,
            changing,
            looked,
            versioned: false,
        };
        known.select = format!("SELECT {} FROM {}", known.what(), known.name());
        known.get_one = format!("{} WHERE {}", known.select, known.key_is_one_of(1));
        known.put_one = insert(&known, 1, Taken::Replace);
        known
    }

    /// Makes the table and its indexes.
    pub(super) async fn prepare(&self, pool: &Pool, layout: &Layout) -> Result<()> {
        if self.shape == Shape::Blob {
            layout.no_indexes("mysql", Shape::Blob)?;
        }
        RULES.check(self.shape, &self.names, layout)?;
        if look(pool, &self.name).await?.is_empty() {
            pool.define(&self.create(pool, layout)?).await?;
        }
        self.forget();
        let known = self.schema(pool).await?;
        known.fields.must_have(&self.name, layout)?;
        let indexes = indexes(&known.table, layout)?;
        let tenant = match layout.shared && !indexes.is_empty() {
            true => Some(self.tenant(pool, &known).await?),
            false => None,
        };
        for (index, on) in indexes {
            let on = self.indexed(pool, &known, index, on);
            self.index(pool, &known, on, tenant.as_deref()).await?;
        }
        // The columns of indexes are part of what is known.
        self.forget();
        self.schema(pool).await.map(drop)
    }

    fn create(&self, pool: &Pool, layout: &Layout) -> Result<String> {
        let made = RULES.made(&self.name, self.shape, &self.names, layout)?;
        let collation = pool.server.collation;
        let body = quote(self.names.body(self.shape));
        let columns = match self.shape {
            Shape::Document => format!(", {body} JSON NOT NULL"),
            Shape::Blob => format!(", {body} LONGBLOB NOT NULL"),
            Shape::Columns => {
                let column = |c: &&store::Column| {
                    format!(", {} {}", quote(&c.name), declared(c.kind, collation))
                };
                made.columns.iter().map(column).collect()
            }
        };
        let Engine { name: engine, max_key, .. } = self.facts.engine;
        let key_type = match made.key_is_int {
            true => "BIGINT".to_owned(),
            false => format!("VARCHAR({max_key})"),
        };
        Ok(format!(
            "CREATE TABLE IF NOT EXISTS {} ({} {key_type} NOT NULL PRIMARY KEY{columns}) \
             ENGINE = {engine} DEFAULT CHARACTER SET utf8mb4 COLLATE {collation}",
            quote(&self.name),
            quote(self.names.key())
        ))
    }

    /// What an index is on: its name, its part of a definition, and the column that has to be added for it.
    fn indexed(&self, pool: &Pool, known: &Schema, index: &Index, on: index::On<'_>) -> Indexed {
        let generated = |name: String, is: String| {
            let stored = !pool.server.maria && self.facts.engine.name != "InnoDB";
            let kept = if stored { "STORED" } else { "VIRTUAL" };
            // Other programs' `SELECT *` need not see it.
            let hidden = "/*M!100303 INVISIBLE */ /*!80023 INVISIBLE */";
            let on = quote(&name);
            let column = (!known.dialect.indexed.contains(&name))
                .then(|| format!("ADD COLUMN {on} {is} {kept} {hidden}"));
            Indexed { name, on, column }
        };
        match on {
            index::On::Document(column) => generated(
                On::kind(index.kind).column(&index.path),
                known.dialect.generated(&quote(column), index),
            ),
            index::On::Column(column) => {
                // Names of indexes know no case either.
                let name = On::Text.column(&index.path);
                let own = quote(&column.name);
                let holds = known.fields.body.iter().find(|c| c.name == column.name);
                match holds.map(|column| &column.holds) {
                    Some(Type::Text(_)) => generated(name, known.dialect.generated_of(&own)),
                    Some(Type::Bytes(..)) => {
                        Indexed { name, on: format!("{own}({INDEXED_CHARS})"), column: None }
                    }
                    _ => Indexed { name, on: own, column: None },
                }
            }
        }
    }

    /// What has the tenant of a record, for indexes to begin with; it is made where it is not there.
    async fn tenant(&self, pool: &Pool, known: &Schema) -> Result<String> {
        let index = Index { path: index::tenant(), kind: record::Kind::Text };
        let Indexed { name, on, column } =
            self.indexed(pool, known, &index, tenant_on(&known.table)?);
        if let Some(column) = column {
            let made = pool.define(&format!("ALTER TABLE {} {column}", known.name())).await;
            // Somebody else may have made it at the same time.
            if made.is_err() && !look(pool, &self.name).await?.iter().any(|c| c.name == name) {
                made?;
            }
        }
        Ok(on)
    }

    /// Makes an index, which begins with the tenant where this is one of a table that tenants share.
    async fn index(
        &self,
        pool: &Pool,
        known: &Schema,
        indexed: Indexed,
        tenant: Option<&str>,
    ) -> Result<()> {
        let Indexed { name, on, column } = indexed;
        let (name, on) = match tenant {
            None => (name, on),
            // A name of 64 characters at most.
            Some(tenant) => (format!("+{name}"), format!("{tenant}, {on}")),
        };
        if has_index(pool, &self.name, &name).await? {
            return Ok(());
        }
        let column = column.map(|column| column + ", ").unwrap_or_default();
        let (table, index) = (known.name(), quote(&name));
        let statement = format!("ALTER TABLE {table} {column}ADD INDEX {index} ({on})");
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
    pub(super) fn cells(&self, row: &Row) -> Result<Vec<Cell>> {
        self.cells_of(row).map_err(|e| about(e, &row.key))
    }

    fn cells_of(&self, row: &Row) -> Result<Vec<Cell>> {
        let known = self.peek();
        let mut cells = Vec::with_capacity(known.as_ref().map_or(2, |known| known.width()));
        blobs::fits(&self.facts.abilities, &row.key, 0)?;
        match &known {
            Some(known) => {
                cells.push(known.key_cell(&row.key).map_err(|e| of_key(e, &row.key))?);
            }
            None => cells.push(Cell::Bytes(row.key.as_bytes().to_vec())),
        }
        if self.shape == Shape::Columns {
            let known = known.ok_or_else(not_prepared)?;
            known.fields.write(&row.key, &row.record, |_, column, value| {
                cells.push(column.cell(value)?);
                Ok(())
            })?;
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
                known.body_holds(&text)?;
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
    pub(super) fn blob_cells(&self, key: &Key, bytes: &[u8]) -> Result<Vec<Cell>> {
        let cells = || {
            blobs::fits(&self.facts.abilities, key, bytes.len())?;
            let key_cell = match self.peek() {
                Some(known) => {
                    known.body_holds(bytes)?;
                    known.key_cell(key).map_err(|e| of_key(e, key))?
                }
                None => Cell::Bytes(key.as_bytes().to_vec()),
            };
            Ok(vec![key_cell, Cell::Bytes(bytes.to_vec())])
        };
        cells().map_err(|e| about(e, key))
    }
}

/// The columns of a table, none where there is no table.
async fn look(pool: &Pool, table: &str) -> Result<Vec<Column>> {
    let statement = format!("SHOW FULL COLUMNS FROM {}", quote(table));
    let rows = pool.query(&statement).await;
    let rows = match rows {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        rows => rows?,
    };
    let text = |row: &mut Cells, name: &str| row.take::<Option<String>, _>(name).flatten();
    let column = |mut row: Cells| {
        let collation = text(&mut row, "Collation").unwrap_or_default();
        let extra = text(&mut row, "Extra").unwrap_or_default();
        let declared = text(&mut row, "Type").unwrap_or_default();
        let holds = Type::found(&declared);
        let not_null = text(&mut row, "Null").as_deref() == Some("NO");
        Column {
            name: text(&mut row, "Field").unwrap_or_default(),
            summed: holds == Type::Year
                || declared.starts_with("bit")
                || declared.contains("zerofill"),
            fills: match not_null {
                _ if extra.contains("auto_increment") => Some("AUTO_INCREMENT"),
                true if declared.starts_with("timestamp") => Some("TIMESTAMP NOT NULL"),
                _ => None,
            },
            // A float with a number of digits after the point is rounded to them.
            changes: match holds {
                Type::Other => Some(declared),
                Type::Float | Type::Double if declared.contains('(') => Some(declared),
                _ => None,
            },
            promise: Promise { unique: false, not_null },
            holds,
            exact: collation == pool.server.collation,
            unicode: collation.starts_with("utf8mb4_"),
            collation,
            primary: text(&mut row, "Key").as_deref() == Some("PRI"),
            generated: extra.contains("GENERATED") && !extra.contains("DEFAULT_GENERATED"),
        }
    };
    Ok(rows.into_iter().map(column).collect())
}

/// Columns that the user has no right to are not among those that the server shows, and would be missing in each record
/// without a word.
async fn all_are_shown(pool: &Pool, table: &str) -> Result<()> {
    let statement = format!("SELECT * FROM {} LIMIT 0", quote(table));
    match pool.query(&statement).await {
        Err(e) if e.kind() == ErrorKind::Denied => {
            let what = format!(
                "table {table:?} has columns that this user may not read: grant SELECT on the table, or name a view of \
                 those that are wanted"
            );
            Err(Error::new(ErrorKind::Denied, what).with_source(e))
        }
        done => done.map(drop),
    }
}

/// The names of the tables of the database, in the order of their bytes. `information_schema` would compare the name of the
/// database without regard to case.
pub(super) async fn names(pool: &Pool) -> Result<Vec<String>> {
    let statement = "SHOW FULL TABLES WHERE Table_type IN ('BASE TABLE', 'SYSTEM VERSIONED')";
    let name = |row: Cells| match row.get_opt::<String, _>(0) {
        Some(Ok(name)) => Ok(name),
        _ => Err(pool.placed(Error::malformed("a table whose name is no text"))),
    };
    let mut names: Vec<String> =
        pool.query(statement).await?.into_iter().map(name).collect::<Result<_>>()?;
    names.sort_unstable();
    Ok(names)
}

/// What the tables of the database take with their indexes, as their statistics have it. Those of InnoDB are gathered some time
/// after a tenth of the rows has changed, every ten seconds at most; in a file of MyISAM there is room of deleted rows.
pub(super) async fn database_bytes(pool: &Pool) -> Result<Option<u64>> {
    // The first comparison is one by which the server finds the tables, and takes case for none.
    let statement = "SELECT CAST(COALESCE(SUM(data_length + index_length - IF(engine IN ('MyISAM', 'Aria'), data_free, 0)), 0) AS UNSIGNED) \
                     FROM information_schema.tables \
                     WHERE table_schema = DATABASE() AND BINARY table_schema = DATABASE()";
    let rows = pool.rows(statement, Vec::new()).await?;
    Ok(rows.into_iter().next().and_then(|row| row.get_opt::<Option<u64>, _>(0)?.ok()?))
}

/// The name of a table's engine; none of a view, and where there is no table.
pub(super) async fn engine_of(pool: &Pool, table: &str) -> Result<Option<String>> {
    Ok(kind_of(pool, table).await?.engine)
}

/// What the server says of a table as a whole.
#[derive(Default)]
struct Kind {
    /// None of a view, and where there is no table.
    engine: Option<String>,
    /// It keeps the rows that it had.
    versioned: bool,
    /// It has triggers that may change what is written. (What comes after a write cannot touch its table.)
    triggers: bool,
}

async fn kind_of(pool: &Pool, table: &str) -> Result<Kind> {
    let statement = "SELECT table_name, engine, table_type = 'SYSTEM VERSIONED', EXISTS (SELECT 1 FROM \
                     information_schema.triggers WHERE event_object_schema = DATABASE() AND event_object_table = ? \
                     AND action_timing = 'BEFORE' AND event_manipulation <> 'DELETE') FROM \
                     information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?";
    let rows = pool.rows(statement, vec![table.into(), table.into()]).await?;
    let mut rows: Vec<(String, Option<String>, bool, bool)> =
        rows.into_iter().filter_map(|row| mysql_async::from_row_opt(row).ok()).collect();
    // Names differ in case only on some servers.
    let at = rows.iter().position(|(name, ..)| name == table).unwrap_or(0);
    if rows.is_empty() {
        return Ok(Kind::default());
    }
    let (_, engine, versioned, triggers) = rows.swap_remove(at);
    Ok(Kind { engine, versioned, triggers })
}

/// The columns that show after a write whether it was this key's row that was written: what other unique indexes are
/// on is in no other row, so where it is in the key's it is in the right one. An index on what is not among the columns
/// that are written (a computed column) is one on all of them.
fn looked(fields: &Fields<Column>, changing: &[usize], others: &[Unique]) -> Vec<usize> {
    let mut looked = changing.to_vec();
    if fields.shape == Shape::Columns {
        let place = |name: &String| fields.body.iter().position(|c| c.name == *name);
        for name in others.iter().flat_map(|index| &index.columns) {
            match place(name) {
                Some(place) => looked.push(place),
                None if *name == fields.key.name => {}
                None => looked.extend(0..fields.body.len()),
            }
        }
    }
    looked.sort_unstable();
    looked.dedup();
    looked
}

/// An index of which no two rows have the same.
struct Unique {
    columns: Vec<String>,
    /// Of a column it has only the beginning.
    of_a_part: bool,
}

impl Unique {
    /// It is of this column alone.
    fn is_of(&self, column: &str) -> bool {
        self.columns == [column]
    }
}

/// The unique indexes of a table.
async fn unique_of(pool: &Pool, table: &str) -> Result<Vec<Unique>> {
    let statement = "SELECT table_name, index_name, column_name, sub_part IS NOT NULL FROM \
                     information_schema.statistics WHERE table_schema = DATABASE() AND table_name = ? AND \
                     non_unique = 0 ORDER BY table_name, index_name, seq_in_index";
    let rows = pool.rows(statement, vec![table.into()]).await?;
    let rows: Vec<(String, String, Option<String>, bool)> =
        rows.into_iter().filter_map(|row| mysql_async::from_row_opt(row).ok()).collect();
    // Names differ in case only on some servers.
    let is_exact = rows.iter().any(|row| row.0 == table);
    let rows = rows.into_iter().filter(|row| !is_exact || row.0 == table);
    let mut indexes: Vec<(String, Unique)> = Vec::new();
    for (_, name, column, of_a_part) in rows {
        let column = column.unwrap_or_default();
        match indexes.last_mut() {
            Some((last, index)) if *last == name => {
                index.columns.push(column);
                index.of_a_part |= of_a_part;
            }
            _ => indexes.push((name, Unique { columns: vec![column], of_a_part })),
        }
    }
    Ok(indexes.into_iter().map(|(_, index)| index).collect())
}

async fn has_index(pool: &Pool, table: &str, index: &str) -> Result<bool> {
    let statement = "SELECT table_name FROM information_schema.statistics WHERE table_schema = \
                     DATABASE() AND table_name = ? AND index_name = ?";
    let rows = pool.rows(statement, vec![table.into(), index.into()]).await?;
    Ok(!rows.is_empty())
}
