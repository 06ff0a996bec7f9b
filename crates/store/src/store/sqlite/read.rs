//! Rows by keys, by ranges of keys and by what a query found; parts.

use std::sync::Arc;

use futures_util::{Stream, StreamExt, stream, stream::BoxStream};
use rusqlite::{
    Connection, OptionalExtension, ToSql, params_from_iter,
    types::{FromSql, Value as Cell},
};

use super::{
    Sqlite3,
    column::{self, key_of},
    error::error,
    table::{Schema, named},
};
use crate::{
    Error, Result,
    store::{
        Key, KeyRange, Shape, blocking,
        sql::{
            Sql, quote,
            ranges::{self, Bounds},
            row::about,
        },
    },
};

/// How many records a stream reads at once.
const BATCH: usize = 1000;
/// How many bytes of the file it reads at once, about: a record takes more memory than that.
const BYTES: usize = 8 << 20;

/// How many bytes a row has.
pub(super) fn bytes_of(row: &rusqlite::Row) -> usize {
    let of = |i| {
        row.get_ref(i)
            .map_or(0, |value| value.as_bytes_or_null().ok().flatten().map_or(8, <[u8]>::len))
    };
    (0..row.as_ref().column_count()).map(of).sum()
}

/// Whether so much is read that the rest is for later.
pub(super) fn is_much(bytes: usize) -> bool {
    bytes > BYTES
}

/// What is made of a row that was read by [`Schema::what`].
type Read<R> = fn(&Schema, &rusqlite::Row) -> Result<R>;

impl Sqlite3 {
    /// What `read` makes of the rows of these keys.
    pub(super) async fn found<R: Send + 'static>(
        &self,
        keys: &[Key],
        read: fn(&Schema, &rusqlite::Row, &Key) -> Result<R>,
    ) -> Result<Vec<Option<R>>> {
        let known = self.schema().await?;
        self.pool
            .attempt_with(keys, move |connection, keys: &[Key]| {
                let get = connection.prepare_cached(&known.texts.get);
                let mut get = get.map_err(error)?;
                let mut one = |key: &Key| {
                    if known.check_key(key).is_err() {
                        return Ok(None);
                    }
                    let mut rows = get.query([key.as_str()]).map_err(error)?;
                    let row = rows.next().map_err(error)?;
                    row.map(|row| read(&known, row, key)).transpose()
                };
                keys.iter().map(&mut one).collect()
            })
            .await
    }

    /// What `read` makes of all rows whose keys lie in a range, in their order, page by page.
    pub(super) async fn pages<R: Send + 'static>(
        &self,
        range: &KeyRange,
        read: Read<R>,
    ) -> Result<BoxStream<'_, Result<Vec<R>>>> {
        let known = self.schema().await?;
        let bounds = Bounds::new(range, true);
        if !known.is_in_order() {
            let keys: Vec<Cell> = self.column(page(&known, &bounds)).await?;
            let by = by_key(&known);
            return Ok(self.rows_by(known, &by, keys, read).boxed());
        }
        let pages = stream::try_unfold(Some(bounds), move |state| {
            let known = known.clone();
            async move {
                let Some(bounds) = state else { return Ok::<_, Error>(None) };
                let sql = page(&known, &bounds);
                let page =
                    self.pool.attempt(move |connection| rows(connection, &known, &sql, read));
                let (rows, last) = page.await?;
                let next = last.map(|last| bounds.after(&last));
                Ok((!rows.is_empty()).then_some((rows, next)))
            }
        });
        Ok(pages.boxed())
    }

    /// The names of the tables of the file: virtual ones too, but not those in which they keep what they have
    /// (`shadow`), nor SQLite's own.
    pub(super) async fn table_names(&self) -> Result<Vec<String>> {
        // The statement, not the table of the same: somebody can have a table called pragma_table_list.
        let names = self.pool.run(move |connection| {
            let mut statement = connection.prepare_cached("PRAGMA main.table_list")?;
            let mut rows = statement.query([])?;
            let mut names = Vec::new();
            while let Some(row) = rows.next()? {
                let [schema, name, kind] =
                    [0, 1, 2].map(|i| row.get_ref(i).map(|value| value.as_str().ok()));
                let (Some("main"), Some(name), Some("table" | "virtual")) = (schema?, name?, kind?)
                else {
                    continue;
                };
                // What is no text that a table of ours can be called is opened by no name.
                if !name.to_ascii_lowercase().starts_with("sqlite_") && named("table", name).is_ok()
                {
                    names.push(name.to_owned());
                }
            }
            Ok(names)
        });
        let mut names = names.await?;
        names.sort_unstable();
        Ok(names)
    }

    /// What a statement gives in its only column.
    pub(super) async fn column<T: FromSql + Send + 'static>(&self, sql: Sql) -> Result<Vec<T>> {
        self.pool
            .run(move |connection| {
                let mut statement = connection.prepare_cached(&sql.text)?;
                let values = sql.values.iter().map(column::cell);
                statement.query_map(params_from_iter(values), |row| row.get(0))?.collect()
            })
            .await
    }

    /// What `read` makes of the rows for which a condition on one of these values is true: of one row each.
    pub(super) fn rows_by<T: ToSql + Send + 'static, R: Send + 'static, F>(
        &self,
        known: Arc<Schema>,
        by: &str,
        values: Vec<T>,
        read: F,
    ) -> impl Stream<Item = Result<Vec<R>>> + Send + use<'_, T, R, F>
    where
        F: Fn(&Schema, &rusqlite::Row) -> Result<R> + Clone + Send + 'static,
    {
        let statement: Arc<str> = format!("{} WHERE {by}", known.select()).into();
        stream::try_unfold(values.into_iter(), move |mut values| {
            let (known, statement, read) = (known.clone(), statement.clone(), read.clone());
            async move {
                if values.as_slice().is_empty() {
                    return Ok(None);
                }
                let batch = self.pool.attempt(move |connection| {
                    let mut statement = connection.prepare_cached(&statement).map_err(error)?;
                    let (mut rows, mut bytes) = (Vec::new(), 0);
                    for value in values.by_ref().take(BATCH) {
                        let mut cursor = statement.query([value]).map_err(error)?;
                        // One that was deleted meanwhile is not there any more.
                        if let Some(row) = cursor.next().map_err(error)? {
                            bytes += bytes_of(row);
                            rows.push(read(&known, row)?);
                        }
                        if is_much(bytes) {
                            break;
                        }
                    }
                    Ok((rows, values))
                });
                batch.await.map(Some)
            }
        })
    }

    /// What was done with documents. Of one that is no JSON SQLite does not say which it is: it is looked for.
    pub(super) async fn named<T>(&self, known: &Arc<Schema>, done: Result<T>) -> Result<T> {
        let Err(e) = &done else { return done };
        if known.fields.shape != Shape::Document || !e.context().contains("malformed JSON") {
            return done;
        }
        let (key, body) = (known.key(), quote(&known.fields.body[0].name));
        let text = format!(
            "SELECT {key} FROM {} WHERE json_error_position({body}) > 0 LIMIT 1",
            known.name()
        );
        let key = self.pool.attempt(move |connection| {
            let mut statement = connection.prepare(&text).map_err(error)?;
            let mut rows = statement.query([]).map_err(error)?;
            rows.next().map_err(error)?.map(|row| key_of(row, 0)).transpose()
        });
        match key.await {
            Ok(Some(key)) => {
                let what = Error::malformed("malformed JSON");
                done.map_err(|_| about(what, &key))
            }
            _ => done,
        }
    }

    pub(super) async fn counted(&self) -> Result<u64> {
        let known = self.schema().await?;
        self.pool
            .run(move |c| c.query_row(&known.texts.count, [], |row| row.get::<_, i64>(0)))
            .await
            .map(|n| n as u64)
    }

    pub(super) async fn parts(&self, parts: u32) -> Result<Vec<KeyRange>> {
        let known = self.schema().await?;
        let places = ranges::places(self.counted().await?, parts)?;
        let (key, name) = (known.key_as_text(), known.name());
        let text =
            format!("SELECT CAST({key} AS TEXT) FROM {name} ORDER BY {key} LIMIT 1 OFFSET ?");
        let borders = self.pool.attempt(move |connection| {
            let mut statement = connection.prepare_cached(&text).map_err(error)?;
            let mut borders = Vec::new();
            for place in places {
                let border = statement.query_row([place as i64], |row| row.get::<_, String>(0));
                match border.optional().map_err(error)? {
                    Some(border) => borders.push(Key::new(border)?),
                    // Nothing is there any more.
                    None => break,
                }
            }
            Ok(borders)
        });
        Ok(ranges::parts(borders.await?, parts))
    }
}

/// The condition that a row has the key `?1`, a value as it stands in the table.
pub(super) fn by_key(known: &Schema) -> String {
    let key = known.key();
    match known.fields.key.binary {
        true => format!("{key} = ?1"),
        // The first finds it by the index, the second looks whether it is the same.
        false => format!("{key} = ?1 AND {key} = ?1 COLLATE BINARY"),
    }
}

/// The statement of a page, or, where the column has not the order of the keys so that each page would cost
/// as much as all, that of all keys.
pub(super) fn page(known: &Schema, bounds: &Bounds) -> Sql {
    if !known.is_in_order() {
        let select = format!("SELECT {} FROM {}", known.key(), known.name());
        return ranges::page(&known.dialect, &select, &known.key_as_text(), bounds);
    }
    let mut sql = ranges::page(&known.dialect, &known.select(), &known.key_as_text(), bounds);
    sql.push(&format!(" LIMIT {BATCH}"));
    sql
}

/// The rows of a page, and the last key among them if there may be more.
fn rows<R>(
    connection: &Connection,
    known: &Schema,
    sql: &Sql,
    read: Read<R>,
) -> Result<(Vec<R>, Option<Key>)> {
    let mut statement = connection.prepare_cached(&sql.text).map_err(error)?;
    let values = sql.values.iter().map(column::cell);
    let mut cursor = statement.query(params_from_iter(values)).map_err(error)?;
    let (mut rows, mut bytes) = (Vec::new(), 0);
    while let Some(row) = cursor.next().map_err(error)? {
        blocking::give_way(rows.len());
        bytes += bytes_of(row);
        rows.push(read(known, row)?);
        if rows.len() == BATCH || is_much(bytes) {
            return Ok((rows, Some(key_of(row, 0)?)));
        }
    }
    Ok((rows, None))
}
