//! What a table looks like, and the statements that go with it.

use std::sync::{Arc, PoisonError, RwLock};

use futures_util::FutureExt;
use tokio_postgres::types::Type;

use super::{
    dialect::{Postgres, literal, on, quote},
    pool::Pool,
    rows::{Field, Held},
    wire::{self, Bound, Wire},
};
use crate::{
    Error, ErrorKind, Result,
    durability::Tier,
    record::Kind,
    store::{
        Column, Index, Layout, Shape,
        query::Path,
        sql::{
            Body, By, Described, Dialect, Existing, Sorting, Table, check_name, column,
            no_such_column, no_text_key,
        },
    },
};

/// Columns that the URL names.
#[derive(Debug, Clone, Default)]
pub struct Names {
    pub schema: Option<String>,
    pub key: Option<String>,
    pub column: Option<String>,
}

/// What the key's column is called in tables that are made here.
pub const KEY: &str = Path::KEY;
/// Longer names PostgreSQL cuts, in bytes.
pub const LONGEST_NAME: usize = 63;

/// A table, which is looked at when it is first needed.
pub struct Lazy {
    pub shape: Shape,
    pub name: String,
    pub names: Names,
    pub tier: Option<Tier>,
    known: RwLock<Option<Arc<Known>>>,
    /// What it would look like if it were made here.
    usual: Arc<Known>,
}

/// A table as it is.
pub struct Known {
    pub shape: Shape,
    /// As queries see it; the key is among the columns where it is a field.
    pub table: Table,
    pub dialect: Postgres,
    pub key: Field,
    /// The column of the body, or one for each field but the key.
    pub fields: Vec<Field>,
    /// The key is also a field of the record.
    pub key_is_field: bool,
    /// The index of the key is in the order of its bytes.
    pub in_order: bool,
    pub unlogged: bool,
    pub say: Statements,
}

/// Statements, made once.
pub struct Statements {
    /// The columns that are read: the key as text, then the body.
    pub what: String,
    pub insert_one: String,
    pub insert_many: String,
    /// The same, in place of what is there.
    pub put_one: String,
    pub put_many: String,
    /// None where a column's binary format is not known.
    pub copy: Option<String>,
    pub get_one: String,
    pub get_many: String,
    pub remove: String,
}

impl Lazy {
    pub fn new(shape: Shape, name: &str, names: Names, tier: Option<Tier>) -> Result<Lazy> {
        check_name("postgres", "table", name, LONGEST_NAME)?;
        for (what, name) in
            [("schema", &names.schema), ("key", &names.key), ("column", &names.column)]
        {
            if let Some(name) = name {
                check_name("postgres", what, name, LONGEST_NAME)?;
            }
        }
        let key = Field::new(names.key.as_deref().unwrap_or(KEY), Wire::Text);
        let body = match shape {
            Shape::Document => vec![Field::new(&body_column(shape, &names), Wire::Jsonb)],
            Shape::Blob => vec![Field::new(&body_column(shape, &names), Wire::Bytea)],
            Shape::Columns => Vec::new(),
        };
        let usual = Arc::new(Known::new(shape, name, key, body, true, false, Vec::new()));
        Ok(Lazy { shape, name: name.to_owned(), names, tier, known: RwLock::default(), usual })
    }

    /// What is known of the table may be so no longer.
    pub fn forget(&self) {
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The table as it is, or, where its layout leaves no choice, as it would be.
    pub fn supposed(&self) -> Result<Arc<Known>> {
        match (self.known.read().unwrap_or_else(PoisonError::into_inner).clone(), self.shape) {
            (Some(known), _) => Ok(known),
            (None, Shape::Columns) => {
                Err(Error::invalid("the columns of the table are not known yet; prepare it first"))
            }
            (None, _) => Ok(self.usual.clone()),
        }
    }

    /// The table as it is in the database.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) where there is none, [`Conflict`](ErrorKind::Conflict) where
    /// it is of another layout, or cannot keep what it is asked to keep.
    pub async fn known(&self, pool: &Pool) -> Result<Arc<Known>> {
        if let Some(known) = &*self.known.read().unwrap_or_else(PoisonError::into_inner) {
            return Ok(known.clone());
        }
        // Apart, so that what is usual stays small.
        self.found(pool).boxed().await
    }

    async fn found(&self, pool: &Pool) -> Result<Arc<Known>> {
        let found = look(pool, &self.name).await?;
        if found.is_empty() {
            let what = format!("no table {:?} in the database", self.name);
            return Err(Error::new(ErrorKind::NotFound, what));
        }
        let known = Arc::new(self.understand(found, indexes(pool, &self.name).await?)?);
        self.lasts(&known)?;
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Some(known.clone());
        Ok(known)
    }

    /// Whether it is logged has to agree with the durability that is asked for.
    fn lasts(&self, known: &Known) -> Result<()> {
        let is = match (self.tier, known.unlogged) {
            (Some(Tier::T0), false) => "logged, so not t0 (volatile)",
            (Some(Tier::T1 | Tier::T2 | Tier::T3), true) => "UNLOGGED: only t0 (volatile)",
            _ => return Ok(()),
        };
        Err(self.conflict(&format!("is {is}; use another one")))
    }

    fn conflict(&self, what: &str) -> Error {
        Error::new(ErrorKind::Conflict, format!("table {:?} {what}", self.name))
    }

    fn understand(&self, found: Vec<Found>, indexes: Vec<String>) -> Result<Known> {
        let there = Existing { name: &self.name, columns: &found };
        let key = there.key(self.names.key.as_deref())?;
        let name = &key.field.name;
        let fields: Vec<Field> = match self.shape {
            Shape::Columns => {
                let others = found.iter().filter(|column| column.field.name != *name);
                others.map(|column| column.field.clone()).collect()
            }
            _ => {
                let column = there.body(&body_column(self.shape, &self.names), self.shape)?;
                vec![column.field.clone()]
            }
        };
        let in_order = key.by_bytes && key.primary;
        let unlogged = key.unlogged;
        let key = key.field.clone();
        Ok(Known::new(self.shape, &self.name, key, fields, in_order, unlogged, indexes))
    }

    /// Makes the table and its indexes.
    pub async fn prepare(&self, pool: &Pool, layout: &Layout) -> Result<()> {
        if self.shape == Shape::Blob {
            layout.no_indexes("postgres", Shape::Blob)?;
        }
        // Two that make the same at once get in each other's way otherwise.
        let alone = format!("SELECT pg_advisory_xact_lock({});", i64::from(hash(&self.name)));
        let mut make = alone.clone();
        if let Some(schema) = &self.names.schema {
            make += &format!("CREATE SCHEMA IF NOT EXISTS {};", quote(schema));
        }
        if look(pool, &self.name).await?.is_empty() {
            make += &self.create(layout)?;
            pool.get().await?.batch(&make).await?;
        }
        self.forget();
        pool.forget();
        let known = self.known(pool).await?;
        known.must_have(layout)?;
        let indexes: Vec<_> = layout.indexes.iter().filter(|index| !index.path.is_key()).collect();
        if indexes.is_empty() {
            return Ok(());
        }
        let make =
            indexes.into_iter().map(|index| known.index(index)).collect::<Result<String>>()?;
        pool.get().await?.batch(&(alone + &make)).await?;
        // Queries are said by the indexes there are.
        self.forget();
        pool.forget();
        self.known(pool).await.map(drop)
    }

    fn create(&self, layout: &Layout) -> Result<String> {
        let own = self.names.key.as_deref().unwrap_or(KEY);
        let mut key_type = "text COLLATE \"C\"";
        let columns = match self.shape {
            Shape::Document => format!(", {} jsonb NOT NULL", quote(&self.usual.fields[0].name)),
            Shape::Blob => format!(", {} bytea NOT NULL", quote(&self.usual.fields[0].name)),
            Shape::Columns => {
                if layout.columns.is_empty() {
                    return Err(Error::invalid(
                        "layout columns needs columns to make a table with",
                    ));
                }
                if own == KEY && layout.columns.iter().any(|c| c.name == KEY) {
                    return Err(Error::invalid(format!("a field {KEY:?}, which is the key's own")));
                }
                let mut columns = String::new();
                for column in &layout.columns {
                    check_name("postgres", "column", &column.name, LONGEST_NAME)?;
                    match column.name == own {
                        true if column.kind == Kind::Int => key_type = "bigint",
                        true => {}
                        false => {
                            let name = quote(&column.name);
                            columns += &format!(", {name} {}", declared(column.kind));
                        }
                    }
                }
                columns
            }
        };
        let unlogged = if self.tier == Some(Tier::T0) { "UNLOGGED " } else { "" };
        Ok(format!(
            "CREATE {unlogged}TABLE IF NOT EXISTS {} ({} {key_type} PRIMARY KEY{columns});",
            quote(&self.name),
            quote(own)
        ))
    }
}

fn body_column(shape: Shape, names: &Names) -> String {
    let usual = if shape == Shape::Blob { "value" } else { "record" };
    names.column.clone().unwrap_or_else(|| usual.into())
}

impl Known {
    fn new(
        shape: Shape,
        name: &str,
        key: Field,
        fields: Vec<Field>,
        in_order: bool,
        unlogged: bool,
        indexes: Vec<String>,
    ) -> Known {
        let key_is_field = shape == Shape::Columns && key.name != KEY;
        let column = |field: &Field| Column { name: field.name.clone(), kind: field.kind };
        let body = match shape {
            Shape::Columns => {
                let own = key_is_field.then_some(&key);
                Body::Columns(own.into_iter().chain(&fields).map(column).collect())
            }
            _ => Body::Document(fields[0].name.clone()),
        };
        let all = || std::iter::once(&key).chain(&fields);
        let no_text = |field: &&Field| field.wire != Wire::Text || !field.direct;
        let as_text = all().filter(no_text).map(|field| quote(&field.name)).collect();
        let mut dialect = Postgres {
            as_text,
            as_jsonb: shape == Shape::Document && fields[0].wire != Wire::Jsonb,
            not_null: all()
                .filter(|field| field.not_null)
                .map(|field| field.name.clone())
                .collect(),
            table: name.to_owned(),
            body: fields.first().map(|field| quote(&field.name)).unwrap_or_default(),
            key: String::new(),
            indexes,
        };
        dialect.key = dialect.by_bytes(&quote(&key.name));
        let table = Table { name: name.to_owned(), key: key.name.clone(), body };
        let say = Statements::new(&table.name, &key, &fields);
        Known { shape, table, dialect, key, fields, key_is_field, in_order, unlogged, say }
    }

    /// The key as text, in whose order keys are.
    pub fn key_text(&self) -> String {
        self.dialect.by_bytes(&quote(&self.key.name))
    }

    /// The key alone, as text.
    pub fn key_what(&self) -> String {
        key_read("", &self.key)
    }

    /// The columns that are read, of a table that has another name in the statement.
    pub fn what_of(&self, of: &str) -> String {
        what(of, &self.key, &self.fields)
    }

    /// Where a path is that of the key, the key has to be text.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) where it is not.
    pub fn text_key(&self, path: &Path) -> Result<()> {
        no_text_key(path.is_key() && self.key.wire != Wire::Text, &self.table)
    }

    /// Typed columns, where it has them.
    pub fn columns(&self) -> Option<&[Column]> {
        match &self.table.body {
            Body::Columns(columns) => Some(columns),
            Body::Document(_) => None,
        }
    }

    /// Makes an index whose order is that of queries sorted by its path: the values, then the key.
    fn index(&self, index: &Index) -> Result<String> {
        let mut by = match &self.table.body {
            Body::Document(column) => self.dialect.indexed(&quote(column), &index.path),
            Body::Columns(columns) => match column(columns, &index.path) {
                Some(column) => self.dialect.sort_by_column(column, Sorting::Exact),
                None => return Err(no_such_column(&index.path)),
            },
        };
        by.push(By::never_null(self.key_text()));
        let on = on(&by);
        Ok(format!(
            "CREATE INDEX IF NOT EXISTS {} ON {} ({on});",
            quote(&index_name(&self.table.name, &index.path, &on)),
            quote(&self.table.name)
        ))
    }

    /// The columns asked for have to be there.
    fn must_have(&self, layout: &Layout) -> Result<()> {
        let Some(columns) = self.columns() else { return Ok(()) };
        for wanted in &layout.columns {
            let (name, table) = (&wanted.name, &self.table.name);
            let what = match columns.iter().find(|column| column.name == *name) {
                Some(_) if self.key_is_field && *name == self.key.name => continue,
                Some(column) if holds(column.kind, wanted.kind) => continue,
                Some(column) => format!(
                    "column {name:?} of table {table:?} holds {}, not {}",
                    column.kind.name(),
                    wanted.kind.name()
                ),
                None => format!("table {table:?} is there, without a column {name:?}"),
            };
            return Err(Error::new(ErrorKind::Conflict, what));
        }
        Ok(())
    }
}

impl Statements {
    fn new(name: &str, key: &Field, fields: &[Field]) -> Statements {
        let (table, what) = (quote(name), what("", key, fields));
        let all: Vec<&Field> = std::iter::once(key).chain(fields).collect();
        let key_name = quote(&key.name);
        let key_as_text = key_read("", key);
        let names: Vec<_> = all.iter().map(|field| quote(&field.name)).collect();
        let names = names.join(", ");
        let listed = |each: &dyn Fn(usize) -> String| {
            let each: Vec<_> = (1..=all.len()).map(each).collect();
            each.join(", ")
        };
        // Assigned, what is too long for its column is an error; cast to it, it would be cut.
        let given = |place: String, i: usize| match &all[i - 1] {
            field if field.direct => place,
            field => format!("CAST({place} AS {})", field.type_name),
        };
        let insert = format!("INSERT INTO {table} ({names}) OVERRIDING SYSTEM VALUE ");
        let set: Vec<_> =
            fields.iter().map(|f| format!("{0} = excluded.{0}", quote(&f.name))).collect();
        let then = match set.is_empty() {
            true => "NOTHING".into(),
            false => format!("UPDATE SET {}", set.join(", ")),
        };
        let matched = if key.direct { &key_name } else { &key_as_text };
        let insert_one = format!("{insert}VALUES ({})", listed(&|i| given(format!("${i}"), i)));
        let insert_many = format!(
            "{insert}SELECT {} FROM unnest({}) AS u({})",
            listed(&|i| given(format!("c{i}"), i)),
            listed(&|i| format!("${i}")),
            listed(&|i| format!("c{i}")),
        );
        let replace = format!(" ON CONFLICT ({key_name}) DO {then}");
        Statements {
            put_one: format!("{insert_one}{replace}"),
            put_many: format!("{insert_many}{replace}"),
            insert_one,
            insert_many,
            copy: all
                .iter()
                .all(|field| field.direct)
                .then(|| format!("COPY {table} ({names}) FROM STDIN (FORMAT binary)")),
            get_one: format!("SELECT {what} FROM {table} WHERE {matched} = $1"),
            get_many: format!("SELECT {what} FROM {table} WHERE {matched} = ANY($1)"),
            remove: format!("DELETE FROM {table} WHERE {matched} = ANY($1)"),
            what,
        }
    }
}

/// The columns that are read: the key as text, then the body; `of` stands before each.
fn what(of: &str, key: &Field, fields: &[Field]) -> String {
    let mut what = key_read(of, key);
    for field in fields {
        what += ", ";
        what += &read(of, field);
    }
    what
}

fn read(of: &str, field: &Field) -> String {
    match field.direct {
        true => format!("{of}{}", quote(&field.name)),
        false => format!("CAST({of}{} AS text)", quote(&field.name)),
    }
}

fn key_read(of: &str, key: &Field) -> String {
    match key.wire {
        Wire::Text => read(of, key),
        _ => format!("CAST({of}{} AS text)", quote(&key.name)),
    }
}

/// Whether a column of one kind holds a value of another.
pub fn holds(column: Kind, value: Kind) -> bool {
    column == value
        || value == Kind::Null
        || (matches!(column, Kind::Float | Kind::BigInt | Kind::Decimal) && value == Kind::Int)
        || (column == Kind::Decimal && value == Kind::BigInt)
}

/// The type a column is declared with, from which its kind is told again.
fn declared(kind: Kind) -> &'static str {
    match kind {
        Kind::Bool => "boolean",
        Kind::Int => "bigint",
        Kind::Float => "double precision",
        Kind::Bytes => "bytea",
        Kind::Time => "timestamp with time zone",
        Kind::Decimal => "numeric",
        // No digits after the point, and as many before as can be declared.
        Kind::BigInt => "numeric(1000, 0)",
        _ => "text",
    }
}

/// The name of an index: for people its table and path, and digits that nobody else has, as names
/// are unique in the schema and have 63 bytes.
pub fn index_name(table: &str, path: &Path, on: &str) -> String {
    let cut = |text: &str| {
        let mut end = text.len().min(25);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text[..end].to_owned()
    };
    let path = path.to_string().replace('\0', " ");
    format!("{}_{}_{:08x}", cut(table), cut(&path), hash(&format!("{table}\0{on}")))
}

/// FNV-1a.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// A column as the database describes it.
struct Found {
    field: Field,
    primary: bool,
    by_bytes: bool,
    unlogged: bool,
}

impl Described for Found {
    fn name(&self) -> &str {
        &self.field.name
    }
    fn is_primary(&self) -> bool {
        self.primary
    }
}

/// The columns of a table, none where there is no table; those that are computed are left out.
async fn look(pool: &Pool, table: &str) -> Result<Vec<Found>> {
    /// The collation that compares by bytes.
    const BY_BYTES: u32 = 950;
    let text = format!(
        "SELECT CAST(a.attname AS text), a.atttypid, a.atttypmod, format_type(a.atttypid, -1), \
         a.attcollation, c.relpersistence <> 'p', a.attnotnull, EXISTS (SELECT 1 FROM pg_index i WHERE \
         i.indrelid = c.oid AND i.indisprimary AND a.attnum = ANY (i.indkey)) \
         FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid \
         WHERE c.oid = to_regclass({}) AND c.relkind IN ('r', 'p', 'v', 'm', 'f') \
         AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum",
        literal(&quote(table))
    );
    let found = |row: &Held| {
        let name: String = row.try_get(0)?;
        let (oid, typmod, type_name): (u32, i32, String) =
            (row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
        let mut field = Field::of(name, oid, typmod, type_name);
        field.not_null = row.try_get(6)?;
        Ok(Found {
            by_bytes: field.wire == Wire::Text && row.try_get::<u32>(4)? == BY_BYTES,
            unlogged: row.try_get(5)?,
            primary: row.try_get(7)?,
            field,
        })
    };
    pool.get().await?.query(&text, &[]).await?.iter().map(found).collect()
}

/// The names of the indexes of a table.
async fn indexes(pool: &Pool, table: &str) -> Result<Vec<String>> {
    let text = format!(
        "SELECT CAST(c.relname AS text) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid \
         WHERE i.indrelid = to_regclass({}) AND i.indisvalid",
        literal(&quote(table))
    );
    pool.get().await?.query(&text, &[]).await?.iter().map(|row| row.try_get(0)).collect()
}

/// Keys as a bound array, without those that no such column holds.
pub fn keys(known: &Known, keys: &[crate::store::Key]) -> (Type, Bound) {
    let (mut fields, mut count) = (Vec::new(), 0);
    for key in keys {
        let before = fields.len();
        match wire::field(&mut fields, |out| known.key.write_key(key, out)) {
            Ok(()) => count += 1,
            Err(_) => fields.truncate(before),
        }
    }
    let (one, many) = known.key.wire.types();
    (many, Bound::Many(one, count, fields))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_indexes_are_short_and_differ() {
        let name = |table: &str, path: &str| index_name(table, &path.parse().unwrap(), path);
        let long = "ü".repeat(31);
        for (table, path) in [("people", "age"), (&*long, &*long), ("a", "b\0")] {
            let name = name(table, path);
            assert!(name.len() <= LONGEST_NAME && !name.contains('\0'), "{name}");
        }
        assert!(name("people", "age").starts_with("people_age_"));
        assert_ne!(name("a_b", "c"), name("a", "b_c"));
        assert_ne!(name(&long, &format!("{long}1")), name(&long, &format!("{long}2")));
    }
}
