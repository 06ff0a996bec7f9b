//! What a table looks like, and the statements that go with it.

use std::{ops::Deref, sync::Arc};

use futures_util::FutureExt;
use tokio_postgres::types::Type;

use super::{
    dialect::{Postgres, literal, on},
    pool::Pool,
    rows::{Field, Held, Texts},
    wire::{self, Bound, Wire},
};
use crate::{
    Error, ErrorKind, Result,
    durability::Tier,
    record::Kind,
    store::{
        Column, Index, Key, Layout, Shape,
        sql::{
            self, BlobColumn, By, Described, Dialect, Fields, Guard, NO_INDEX, Names, Promise,
            Rules, Side, Sorting, Sql, Table, check_name,
            index::{On, hash, index_name, indexes, shared_index_name, tenant_on},
            no_key, not_prepared, quote,
        },
    },
};

/// The setting of a connection with the tenant whose rows it may see, in tables that tenants share.
pub(super) const TENANT_SETTING: &str = "steelyard.tenant";

/// Longer names PostgreSQL cuts, in bytes.
pub(super) const LONGEST_NAME: usize = 63;

/// What PostgreSQL takes for a column.
const RULES: Rules =
    Rules { driver: "postgres", name: named, fold: str::to_owned, kind: |_, _| Ok(()) };

fn named(what: &str, name: &str) -> Result<()> {
    check_name("postgres", what, name, LONGEST_NAME)
}

/// A table, which is looked at when it is first needed.
pub(super) struct Lazy {
    table: sql::Lazy<Schema>,
    pub tier: Option<Tier>,
    /// What it would look like if it were made here.
    usual: Arc<Schema>,
}

impl Deref for Lazy {
    type Target = sql::Lazy<Schema>;
    fn deref(&self) -> &sql::Lazy<Schema> {
        &self.table
    }
}

/// A table as it is.
pub(super) struct Schema {
    /// As queries see it; the key is among the columns where it is a field.
    pub table: Table,
    pub dialect: Postgres,
    pub fields: Fields<Field>,
    /// The index of the key is in the order of its bytes.
    pub in_order: bool,
    /// Why nothing can be written, if nothing can.
    pub only_read: Option<String>,
    pub unlogged: bool,
    /// It has triggers or rules, which may change what is written.
    pub triggers: bool,
    pub say: Statements,
}

/// Statements, made once.
pub(super) struct Statements {
    /// The columns that are read: the key as text, then the body.
    pub what: String,
    /// The same where what was written is looked at: NULL for columns that keep all that they take.
    pub looked: String,
    pub insert_one: String,
    pub insert_many: String,
    /// The same, in place of what is there.
    pub put_one: String,
    pub put_many: String,
    /// None where a column's binary format is not known, or what was written has to be looked at.
    pub copy: Option<String>,
    pub get_one: String,
    pub get_many: String,
    pub remove: String,
    /// `INSERT` of one row where none has its key.
    pub insert_absent: String,
    /// `UPDATE` of the body of one row; a condition can follow.
    pub update_one: String,
    /// `DELETE` of one row; a condition can follow.
    pub remove_one: String,
}

impl Lazy {
    pub(super) fn new(shape: Shape, name: &str, names: Names, tier: Option<Tier>) -> Result<Lazy> {
        let key = Field::new(names.key(), Wire::Text);
        let body = match shape {
            Shape::Document => vec![Field::new(names.body(shape), Wire::Jsonb)],
            Shape::Blob => vec![Field::new(names.body(shape), Wire::Bytea)],
            Shape::Columns => Vec::new(),
        };
        let fields = Fields { shape, key, key_is_field: false, body };
        let usual = Arc::new(Schema::new(name, fields, true, false, Vec::new()));
        Ok(Lazy { table: sql::Lazy::new(shape, name, names, named)?, tier, usual })
    }

    /// The table as it is, or, where its layout leaves no choice, as it would be.
    pub(super) fn supposed(&self) -> Result<Arc<Schema>> {
        match (self.peek(), self.shape) {
            (Some(known), _) => Ok(known),
            (None, Shape::Columns) => Err(not_prepared()),
            (None, _) => Ok(self.usual.clone()),
        }
    }

    /// The table as it is in the database.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) where there is none, [`Conflict`](ErrorKind::Conflict) where
    /// it is of another layout, or cannot keep what it is asked to keep.
    pub(super) async fn schema(&self, pool: &Pool) -> Result<Arc<Schema>> {
        match self.peek() {
            Some(known) => Ok(known),
            // Apart, so that what is usual stays small.
            None => self.found(pool).boxed().await,
        }
    }

    async fn found(&self, pool: &Pool) -> Result<Arc<Schema>> {
        let found = look(pool, &self.name).await?;
        let fields = self.understood(&found)?;
        let Fields { shape, key, key_is_field, body } = fields;
        let body = body.into_iter().map(|column| match shape {
            Shape::Columns => column.field.into_column(),
            _ => column.field,
        });
        let body = body.collect();
        let Found { promise, by_bytes, unlogged, triggers, secured, .. } = key;
        let fields = Fields { shape, key: key.field.into_key(), key_is_field, body };
        let in_order = by_bytes && promise.unique;
        let indexes = index_names(pool, &self.name).await?;
        let mut known = Schema::new(&self.name, fields, in_order, unlogged, indexes);
        known.triggers = triggers;
        if triggers || secured {
            known.say.copy = None;
        }
        known.only_read = match promise.unique {
            true => known.fields.key.only_read(),
            false => Some(NO_INDEX.to_owned()),
        };
        self.lasts(&known)?;
        if let Some(broken) = promise.broken(&known.dialect, &known.table)
            && let [row, ..] = &pool.get().await?.query(&broken, &[]).await?[..]
        {
            let (key, rows): (Option<String>, i64) = (row.try_get(0)?, row.try_get(1)?);
            return Err(no_key(&known.table, key.as_deref(), rows as u64));
        }
        Ok(self.keep(known))
    }

    /// Whether it is logged has to agree with the durability that is asked for.
    fn lasts(&self, known: &Schema) -> Result<()> {
        let is = match (self.tier, known.unlogged) {
            (Some(Tier::T0), false) => "logged, so not t0 (volatile)",
            (Some(Tier::T1 | Tier::T2 | Tier::T3), true) => "UNLOGGED: only t0 (volatile)",
            _ => return Ok(()),
        };
        let what = format!("table {:?} is {is}; use another one", self.name);
        Err(Error::new(ErrorKind::Conflict, what))
    }

    /// Makes the table and its indexes.
    pub(super) async fn prepare(&self, pool: &Pool, layout: &Layout) -> Result<()> {
        if self.shape == Shape::Blob {
            layout.no_indexes("postgres", Shape::Blob)?;
        }
        RULES.check(self.shape, &self.names, layout)?;
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
        let known = self.schema(pool).await?;
        known.fields.must_have(&self.name, layout)?;
        let indexes = indexes(&known.table, layout)?;
        if indexes.is_empty() && !layout.shared {
            return Ok(());
        }
        let tenant = match layout.shared && self.shape != Shape::Blob {
            true => Some(known.tenant(tenant_on(&known.table)?)),
            false => None,
        };
        let mut make = String::new();
        for (index, on) in indexes {
            make += &known.index(index, on, tenant.as_deref());
        }
        make += &tenant.map(|tenant| known.policy(&tenant)).unwrap_or_default();
        pool.get().await?.batch(&(alone + &make)).await?;
        // Queries are said by the indexes there are.
        self.forget();
        pool.forget();
        self.schema(pool).await.map(drop)
    }

    fn create(&self, layout: &Layout) -> Result<String> {
        let made = RULES.made(&self.name, self.shape, &self.names, layout)?;
        let body = quote(self.names.body(self.shape));
        let columns = match self.shape {
            Shape::Document => format!(", {body} jsonb NOT NULL"),
            Shape::Blob => format!(", {body} bytea NOT NULL"),
            Shape::Columns => {
                let column = |c: &&Column| format!(", {} {}", quote(&c.name), declared(c.kind));
                made.columns.iter().map(column).collect()
            }
        };
        let key_type = if made.key_is_int { "bigint" } else { "text COLLATE \"C\"" };
        let unlogged = if self.tier == Some(Tier::T0) { "UNLOGGED " } else { "" };
        Ok(format!(
            "CREATE {unlogged}TABLE IF NOT EXISTS {} ({} {key_type} PRIMARY KEY{columns});",
            quote(&self.name),
            quote(self.names.key())
        ))
    }
}

impl Schema {
    fn new(
        name: &str,
        fields: Fields<Field>,
        in_order: bool,
        unlogged: bool,
        indexes: Vec<String>,
    ) -> Schema {
        let no_text = |field: &&Field| field.wire != Wire::Text || !field.direct;
        let body = fields.body.first();
        let mut dialect = Postgres {
            as_text: fields.all().filter(no_text).map(|field| quote(&field.name)).collect(),
            as_jsonb: fields.shape == Shape::Document
                && body.is_some_and(|body| body.wire != Wire::Jsonb),
            not_null: fields.all().filter(|f| f.not_null).map(|f| f.name.clone()).collect(),
            table: name.to_owned(),
            body: body.map(|field| quote(&field.name)).unwrap_or_default(),
            key: String::new(),
            indexes,
        };
        dialect.key = dialect.by_bytes(&quote(&fields.key.name));
        let table = fields.table(name);
        let say = Statements::new(name, &fields.key, &fields.body);
        let (only_read, triggers) = (None, false);
        Schema { table, dialect, fields, in_order, only_read, unlogged, triggers, say }
    }

    /// The condition of a conditional write, which follows that on the key in a statement that binds `before` values
    /// already.
    ///
    /// # Errors
    /// As [`Table::is_as`].
    pub(super) fn condition(&self, guard: Guard<'_>, before: usize) -> Result<Sql> {
        let mut sql = Sql::after(&self.dialect, " AND (", before);
        let guard = match guard {
            // No text there has a NUL: no row is right.
            Guard::Field(_, text) if text.contains('\0') => Guard::Absent,
            guard => guard,
        };
        let body = || {
            let column = &self.fields.body[0];
            let name = quote(&column.name);
            match column.wire {
                Wire::Bytea => BlobColumn { bytes: Some(name), text: None },
                _ => BlobColumn { bytes: None, text: Some(self.dialect.by_bytes(&name)) },
            }
        };
        self.table.is_as(&self.dialect, guard, body, &mut sql)?;
        sql.push(")");
        Ok(sql)
    }

    /// The key as text, in whose order keys are.
    pub(super) fn key_text(&self) -> String {
        self.dialect.by_bytes(&quote(&self.fields.key.name))
    }

    /// The key alone, as text.
    pub(super) fn key_what(&self) -> String {
        key_read("", &self.fields.key)
    }

    /// The columns that are read, of a table that has another name in the statement.
    pub(super) fn what_of(&self, of: &str) -> String {
        what(of, &self.fields.key, &self.fields.body)
    }

    /// The table in a join, by the name it has there.
    pub(super) fn side(&self, of: &str) -> Side<'_> {
        let (table, dialect, what) = (&self.table, &self.dialect, self.what_of(of));
        Side { table, dialect, what, key_is_text: self.fields.key.wire == Wire::Text }
    }

    /// The tenant of a record, as an index on it has it.
    fn tenant(&self, is: On) -> String {
        match is {
            On::Document(column) => self.dialect.tenant(&quote(column)),
            On::Column(column) => self.dialect.compared(column),
        }
    }

    /// Shows each connection the rows of its own tenant only, the table's owner's too: so that a condition that was
    /// forgotten finds none of another. Superusers see all.
    fn policy(&self, tenant: &str) -> String {
        let (table, regclass) = (quote(&self.table.name), literal(&quote(&self.table.name)));
        let made = format!(
            "BEGIN IF NOT EXISTS (SELECT FROM pg_policy WHERE polrelid = CAST({regclass} AS regclass) AND \
             polname = 'steelyard_tenant') THEN \
             CREATE POLICY steelyard_tenant ON {table} USING ({tenant} = current_setting('{TENANT_SETTING}', true)); \
             ALTER TABLE {table} ENABLE ROW LEVEL SECURITY; ALTER TABLE {table} FORCE ROW LEVEL SECURITY; \
             END IF; END"
        );
        format!("DO {};", literal(&made))
    }

    /// Makes an index whose order is that of queries sorted by its path: the values, then the key.
    fn index(&self, index: &Index, is: On, tenant: Option<&str>) -> String {
        let mut by = match is {
            On::Document(column) => self.dialect.indexed(&quote(column), &index.path),
            On::Column(column) => self.dialect.sort_by_column(column, Sorting::Exact),
        };
        by.push(By::never_null(self.key_text()));
        let mut on = on(&by);
        let name = match tenant {
            Some(tenant) => {
                let name = shared_index_name(&self.table.name, &index.path, &on);
                on = format!("({tenant}), {on}");
                name
            }
            None => index_name(&self.table.name, &index.path, &on),
        };
        let table = quote(&self.table.name);
        format!("CREATE INDEX IF NOT EXISTS {} ON {table} ({on});", quote(&name))
    }
}

impl Statements {
    /// What writes so many rows, in place of what is there or not.
    pub(super) fn write(&self, rows: usize, replace: bool) -> &str {
        match (rows, replace) {
            (1, true) => &self.put_one,
            (_, true) => &self.put_many,
            (1, false) => &self.insert_one,
            (_, false) => &self.insert_many,
        }
    }

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
        let matched = match key.direct {
            true => key_name.clone(),
            false => format!("{key_as_text} COLLATE \"C\""),
        };
        let insert_one = format!("{insert}VALUES ({})", listed(&|i| given(format!("${i}"), i)));
        let insert_many = format!(
            "{insert}SELECT {} FROM unnest({}) AS u({})",
            listed(&|i| given(format!("c{i}"), i)),
            listed(&|i| format!("${i}")),
            listed(&|i| format!("c{i}")),
        );
        let look = |field: &Field| field.changes().map_or("NULL".into(), |_| read("", field));
        let looked = std::iter::once(key_as_text.clone()).chain(fields.iter().map(look));
        let replace = format!(" ON CONFLICT ({key_name}) DO {then}");
        let mut assigned: Vec<_> = (2..=all.len())
            .map(|i| format!("{} = {}", quote(&all[i - 1].name), given(format!("${i}"), i)))
            .collect();
        if assigned.is_empty() {
            assigned.push(format!("{key_name} = {key_name}"));
        }
        Statements {
            put_one: format!("{insert_one}{replace}"),
            put_many: format!("{insert_many}{replace}"),
            insert_absent: format!("{insert_one} ON CONFLICT ({key_name}) DO NOTHING"),
            insert_one,
            insert_many,
            copy: all
                .iter()
                .all(|field| field.direct)
                .then(|| format!("COPY {table} ({names}) FROM STDIN (FORMAT binary)")),
            get_one: format!("SELECT {what} FROM {table} WHERE {matched} = $1"),
            get_many: format!("SELECT {what} FROM {table} WHERE {matched} = ANY($1)"),
            remove: format!("DELETE FROM {table} WHERE {matched} = ANY($1)"),
            update_one: format!("UPDATE {table} SET {} WHERE {matched} = $1", assigned.join(", ")),
            remove_one: format!("DELETE FROM {table} WHERE {matched} = $1"),
            looked: looked.collect::<Vec<_>>().join(", "),
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

/// A column as the database describes it.
#[derive(Clone)]
struct Found {
    field: Field,
    primary: bool,
    by_bytes: bool,
    unlogged: bool,
    triggers: bool,
    /// Row-level security decides which rows this user sees; then there is no `COPY`.
    secured: bool,
    promise: Promise,
}

impl Described for Found {
    fn name(&self) -> &str {
        &self.field.name
    }
    fn is_primary(&self) -> bool {
        self.primary
    }
    fn kind(&self) -> Kind {
        self.field.kind
    }
}

/// The columns of a table, none where there is no table; those that are computed are left out.
async fn look(pool: &Pool, table: &str) -> Result<Vec<Found>> {
    /// The collation that compares by bytes.
    const BY_BYTES: u32 = 950;
    let text = format!(
        "SELECT CAST(a.attname AS text), b.oid, b.typmod, format_type(a.atttypid, -1), \
         a.attcollation, c.relpersistence <> 'p', a.attnotnull, EXISTS (SELECT 1 FROM pg_index i WHERE \
         i.indrelid = c.oid AND i.indisprimary AND a.attnum = ANY (i.indkey)), \
         EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid \
         AND i.indpred IS NULL AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum) \
         AND NOT (c.relkind = 'r' AND EXISTS (SELECT 1 FROM pg_inherits h WHERE h.inhparent = c.oid)), \
         b.typtype = 'e', \
         coalesce((SELECT l.collisdeterministic FROM pg_collation l WHERE l.oid = a.attcollation), true), \
         c.relhasrules AND c.relkind IN ('r', 'p') OR EXISTS (SELECT 1 FROM pg_trigger g WHERE NOT g.tgisinternal \
         AND g.tgenabled <> 'D' AND (g.tgrelid = c.oid OR c.relkind = 'p' AND g.tgrelid IN (SELECT r.relid FROM \
         pg_partition_tree(c.oid) r))), a.atttypid <> b.oid, row_security_active(c.oid) \
         FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid \
         CROSS JOIN LATERAL (WITH RECURSIVE b AS (SELECT t.oid, t.typtype, t.typbasetype, a.atttypmod AS typmod, \
         t.typtypmod FROM pg_type t WHERE t.oid = a.atttypid UNION ALL SELECT t.oid, t.typtype, t.typbasetype, \
         b.typtypmod, t.typtypmod FROM b JOIN pg_type t ON b.typtype = 'd' AND t.oid = b.typbasetype) \
         SELECT b.oid, b.typtype, b.typmod FROM b WHERE b.typtype <> 'd') AS b \
         WHERE c.oid = to_regclass({}) AND c.relkind IN ('r', 'p', 'v', 'm', 'f') \
         AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum",
        literal(&quote(table))
    );
    let found = |row: &Held| {
        let name: String = row.try_get(0)?;
        let (oid, typmod, type_name): (u32, i32, String) =
            (row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
        let mut field = Field::of(name, oid, typmod, type_name);
        (field.not_null, field.domain) = (row.try_get(6)?, row.try_get(12)?);
        let (is_enum, deterministic): (bool, bool) = (row.try_get(9)?, row.try_get(10)?);
        // Of a domain it is the type that it is made of.
        let base = Type::from_oid(oid);
        // Two of its texts can be equal: then it is compared as another type, by bytes.
        field.direct &= deterministic;
        field.texts = match base {
            Some(Type::BPCHAR) => Texts::Padded,
            _ if !deterministic => Texts::Alike,
            _ if field.wire != Wire::Text || field.direct || is_enum => Texts::Apart,
            Some(Type::TEXT | Type::VARCHAR) => Texts::Apart,
            _ => Texts::Alike,
        };
        Ok(Found {
            by_bytes: field.wire == Wire::Text && row.try_get::<u32>(4)? == BY_BYTES,
            unlogged: row.try_get(5)?,
            triggers: row.try_get(11)?,
            secured: row.try_get(13)?,
            primary: row.try_get(7)?,
            promise: Promise { unique: row.try_get(8)?, not_null: field.not_null },
            field,
        })
    };
    pool.get().await?.query(&text, &[]).await?.iter().map(found).collect()
}

/// The names of the tables in the schema in which tables are made, in the order of their bytes; not of those that their
/// name does not find, as a table before it in the search path has the same.
pub(super) async fn names(pool: &Pool) -> Result<Vec<String>> {
    // OFFSET 0: whether a table is visible is asked of those of the schema alone, and not of all of the database.
    let text = "SELECT CAST(t.relname AS text) FROM (SELECT c.oid, c.relname FROM pg_class c \
                JOIN pg_namespace n ON n.oid = c.relnamespace \
                WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p') OFFSET 0) t \
                WHERE pg_table_is_visible(t.oid)";
    let rows = pool.get().await?.query(text, &[]).await?;
    let mut names = rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<String>>>()?;
    // Here, as a database sorts by its own collation.
    names.sort_unstable();
    Ok(names)
}

/// The names of the indexes of a table.
async fn index_names(pool: &Pool, table: &str) -> Result<Vec<String>> {
    let text = format!(
        "SELECT CAST(c.relname AS text) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid \
         WHERE i.indrelid = to_regclass({}) AND i.indisvalid",
        literal(&quote(table))
    );
    pool.get().await?.query(&text, &[]).await?.iter().map(|row| row.try_get(0)).collect()
}

/// Keys as a bound array, without those that no such column holds.
pub(super) fn keys(known: &Schema, keys: &[Key]) -> (Type, Bound) {
    // As text; as numbers they take eight bytes at most. Each has its length before it, in four.
    let room = keys.iter().map(|key| key.len() + 12).sum();
    let (mut fields, mut count) = (Vec::with_capacity(room), 0);
    for key in keys {
        let before = fields.len();
        match wire::field(&mut fields, |out| known.fields.key.write_key(key, out)) {
            Ok(()) => count += 1,
            Err(_) => fields.truncate(before),
        }
    }
    let (one, many) = known.fields.key.wire.types();
    (many, Bound::Many(one, count, fields))
}

/// One key as a bound value; none where no such column holds it.
pub(super) fn one_key(known: &Schema, key: &Key) -> Option<(Type, Bound)> {
    match keys(known, std::slice::from_ref(key)).1 {
        Bound::Many(one, 1, field) => Some((one, Bound::One(field))),
        _ => None,
    }
}
