//! Rows on their way to the server: statements of many rows, with bound values. Keys and values that the table may
//! change are looked at afterwards, in the same transaction.

use std::{
    cmp::Ordering,
    collections::{HashMap, HashSet},
    time::Instant,
};

use futures_util::FutureExt;
use mysql_async::Value as Cell;

use super::{
    MySql,
    pool::{is_deadlock, is_duplicate},
    schema::{Schema, Writes, size},
    session::{Session, is_of_server},
};
use crate::{
    Error, ErrorKind, Result,
    record::Value,
    store::{
        Key, Shape, counts, json,
        query::shown,
        same,
        sql::{
            Changer, Guard, another, changed_record, kept, left_out, only_read,
            row::{about, of_field},
            taken,
        },
    },
};

/// How many rows a statement has at most. More are hardly quicker, and the server keeps each
/// statement that it prepared.
const ROWS: usize = 256;
/// How many values a prepared statement may have.
const VALUES: usize = 65_535;
/// Bytes of a packet that are kept free for what is not values.
pub(super) const FREE: usize = 8192;
/// How often something is tried that others were in the way of.
const TRIES: usize = 8;

/// What becomes of a row whose key is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    Replace,
    Refuse,
}

impl MySql {
    /// Writes rows, all of them or (where the engine can) none. `cells` makes them: what is written
    /// is bound and gone, and may have to be made again.
    pub(super) async fn write(
        &self,
        known: &Schema,
        taken: Taken,
        cells: impl Fn() -> Result<Vec<Vec<Cell>>>,
    ) -> Result<()> {
        if let Writes::Never(why) = known.writes {
            return Err(only_read(&known.table, why));
        }
        let mut tries = 0;
        loop {
            let mut rows = cells()?;
            let written = match (&rows[..], taken) {
                ([], _) => return Ok(()),
                ([one], Taken::Replace)
                    if known.writes == Writes::AsTheyAre && known.may_change(one).is_none() =>
                {
                    let touched = self.pool.run(&known.put_one, rows.swap_remove(0)).await;
                    touched.and_then(|touched| self.all_written(known, taken, 1, touched))
                }
                // Apart, so that what is usual stays small.
                _ => self.write_many(known, taken, rows).boxed().await,
            };
            tries += 1;
            match written {
                // It was undone as a whole.
                Err(e) if is_deadlock(&e) && tries < TRIES => {}
                Err(e) if is_of_row(&e) => {
                    return self.not_taken(known, taken, cells()?, e).boxed().await;
                }
                Err(e) => return Err(self.half_done(e)),
                Ok(()) => return Ok(()),
            }
        }
    }

    /// Of many rows the server does not say which it does not take: then they are written one by one.
    async fn not_taken(
        &self,
        known: &Schema,
        taken: Taken,
        rows: Vec<Vec<Cell>>,
        e: Error,
    ) -> Result<()> {
        match &rows[..] {
            [one] => Err(of_row(known, one.first(), e)),
            _ if self.table.facts.engine.atomic => self.write_each(known, taken, rows).await,
            _ => Err(self.half_done(e)),
        }
    }

    async fn write_many(
        &self,
        known: &Schema,
        taken: Taken,
        mut rows: Vec<Vec<Cell>>,
    ) -> Result<()> {
        // In the order of keys, so that two who write the same rows wait for one another in a line,
        // not in a circle. Of rows with the same key the last stays the last.
        rows.sort_by(|a, b| order(&a[0], &b[0]));
        if known.writes == Writes::Looking && taken == Taken::Replace {
            rows = last_of_each(known, rows)?;
        }
        let most = self.pool.server.packet.saturating_sub(FREE);
        let looks = self.looks(known, &rows)?;
        let mut statements = Vec::new();
        let mut rows = rows.into_iter();
        while !rows.as_slice().is_empty() {
            let chunk = chunk(rows.as_slice(), known.width(), most);
            let values: Vec<Cell> = rows.by_ref().take(chunk).flatten().collect();
            statements.push((insert(known, chunk, taken), values, chunk));
        }
        if looks.is_empty()
            && statements.len() == 1
            && let Some((statement, values, sent)) = statements.pop()
        {
            let touched = self.pool.run(&statement, values).await?;
            return self.all_written(known, taken, sent, touched);
        }
        let begun = Instant::now();
        let in_one = self.pool.within("a write", async {
            let mut session = self.pool.session().await?;
            begin(&mut session).await?;
            for (statement, values, sent) in statements {
                self.pool.in_time("a write", begun)?;
                let touched = session.exec(&statement, values).await;
                let written = touched.and_then(|n| self.all_written(known, taken, sent, n));
                if let Err(e) = written {
                    return Err(undo(session, e).await);
                }
            }
            keep(known, session, &looks).await
        });
        in_one.await
    }

    /// Writes rows by a statement each, all in one transaction.
    pub(super) async fn write_each(
        &self,
        known: &Schema,
        taken: Taken,
        mut rows: Vec<Vec<Cell>>,
    ) -> Result<()> {
        if let Writes::Never(why) = known.writes {
            return Err(only_read(&known.table, why));
        }
        if known.writes == Writes::Looking && taken == Taken::Replace {
            rows = last_of_each(known, rows)?;
        }
        let looks = self.looks(known, &rows)?;
        let statement = match taken {
            Taken::Replace => &known.put_one,
            Taken::Refuse => &insert(known, 1, taken),
        };
        let begun = Instant::now();
        let in_one = self.pool.within("a write", async {
            let mut session = self.pool.session().await?;
            begin(&mut session).await?;
            for row in rows {
                self.pool.in_time("a write", begun)?;
                let key = row.first().cloned();
                let touched = session.exec(statement, row).await;
                let written = touched.and_then(|n| self.all_written(known, taken, 1, n));
                if let Err(e) = written {
                    return Err(of_row(known, key.as_ref(), undo(session, e).await));
                }
            }
            keep(known, session, &looks).await
        });
        in_one.await
    }

    /// Writes a row if the row of its key is as the guard says, and says whether it did.
    pub(super) async fn write_if(
        &self,
        known: &Schema,
        key: &Key,
        cells: Vec<Cell>,
        guard: Guard<'_>,
    ) -> Result<bool> {
        if let Writes::Never(why) = known.writes {
            return Err(only_read(&known.table, why));
        }
        let looks = self.looks(known, std::slice::from_ref(&cells))?;
        let statement = match guard {
            Guard::Absent => Some((insert(known, 1, Taken::Refuse), cells)),
            guard => known.of_key_if(&known.update_body(), &cells[1..], key, guard)?,
        };
        let Some((text, values)) = statement else { return Ok(false) };
        let mut tries = 0;
        loop {
            tries += 1;
            let touched = match looks.is_empty() {
                true => self.pool.run(&text, values.clone()).await,
                // Apart, so that what is usual stays small.
                false => self.write_looking(known, &text, values.clone(), &looks).boxed().await,
            };
            match touched {
                // It was undone as a whole.
                Err(e) if is_deadlock(&e) && tries < TRIES => {}
                // Another index may be unique, too, or the record may be gone again.
                Err(e) if matches!(guard, Guard::Absent) && is_duplicate(&e) => {
                    if self.has(known, key).await? {
                        return Ok(false);
                    }
                    if tries == TRIES {
                        return Err(about(e, key));
                    }
                }
                Err(e) if is_of_row(&e) => return Err(about(e, key)),
                touched => {
                    return counts::yes("a conditional write", touched?)
                        .map_err(|e| self.pool.placed(e));
                }
            }
        }
    }

    /// Does the statement of a conditional write in a transaction, and looks whether what it wrote is kept.
    async fn write_looking(
        &self,
        known: &Schema,
        text: &str,
        values: Vec<Cell>,
        looks: &[Look],
    ) -> Result<u64> {
        let in_one = self.pool.within("a write", async {
            let mut session = self.pool.session().await?;
            begin(&mut session).await?;
            match session.exec(text, values).await {
                Ok(0) => {
                    let undone = session.query("ROLLBACK").await;
                    session.settle(undone).map(|_| 0)
                }
                Ok(touched) => keep(known, session, looks).await.map(|()| touched),
                Err(e) => Err(undo(session, e).await),
            }
        });
        in_one.await
    }

    /// Whether there is a row of this key.
    async fn has(&self, known: &Schema, key: &Key) -> Result<bool> {
        let Some((is, sought)) = known.is_key(key) else { return Ok(false) };
        let statement = format!("SELECT 1 FROM {} WHERE {is}", known.name());
        Ok(!self.pool.rows(&statement, sought).await?.is_empty())
    }

    /// Deletes the row of a key if it is as the guard says, and says whether it did.
    pub(super) async fn removed_if(&self, key: &Key, guard: Guard<'_>) -> Result<bool> {
        let known = self.schema().await?;
        if matches!(guard, Guard::Absent) {
            return Ok(false);
        }
        let delete = format!("DELETE FROM {}", known.name());
        let Some((text, values)) = known.of_key_if(&delete, &[], key, guard)? else {
            return Ok(false);
        };
        let mut tries = 0;
        loop {
            tries += 1;
            match self.pool.run(&text, values.clone()).await {
                Err(e) if is_deadlock(&e) && tries < TRIES => {}
                touched => {
                    return counts::yes("DELETE", touched?).map_err(|e| self.pool.placed(e));
                }
            }
        }
    }

    /// Whether a statement for so many rows did what it should, as far as its count tells: a row that is new counts
    /// as one, one that takes the place of another as two, or as one (or none) where it is the same. Where the table keeps its
    /// history, the row of the past is one more.
    fn all_written(&self, known: &Schema, taken: Taken, sent: usize, touched: u64) -> Result<()> {
        let sent = sent as u64;
        let most = match taken {
            Taken::Replace if known.versioned => 3 * sent,
            Taken::Replace => 2 * sent,
            Taken::Refuse => sent,
        };
        counts::at_most("INSERT", most, "rows at most", touched)
            .map_err(|e| self.pool.placed(e))?;
        if taken == Taken::Refuse && touched < sent {
            let what = format!(
                "only {touched} of {sent} records were stored, and the server gives no reason"
            );
            return Err(Error::new(ErrorKind::Mismatch, what));
        }
        Ok(())
    }

    /// The error of a write, saying so where it may have been half done.
    pub(super) fn half_done(&self, e: Error) -> Error {
        let engine = &self.table.facts.engine;
        if engine.atomic || !matches!(e.kind(), ErrorKind::Conflict | ErrorKind::Mismatch) {
            return e;
        }
        let what = format!(
            "{}; engine {} has no transactions, so part of the batch is written",
            e.context(),
            engine.name
        );
        Error::new(e.kind(), what)
    }
}

/// What is looked at of a row after it was written: its key as it is and as it is sent, and its cells of the columns
/// that are looked at.
struct Look {
    key: Key,
    sent: Cell,
    cells: Vec<Cell>,
}

impl MySql {
    /// What is looked at after rows were written; nothing where that is not needed.
    fn looks(&self, known: &Schema, rows: &[Vec<Cell>]) -> Result<Vec<Look>> {
        if known.writes != Writes::Looking && known.changing.is_empty() {
            return Ok(Vec::new());
        }
        let mut looks = Vec::new();
        for row in rows {
            let may_change = known.may_change(row);
            if known.writes != Writes::Looking && may_change.is_none() {
                continue;
            }
            let key = known.key_of(row.first().cloned())?;
            let engine = &self.table.facts.engine;
            if let (Some(column), false) = (may_change, engine.atomic) {
                let column = &known.fields.body[column];
                let what = format!(
                    "is in a column ({}) that may change it, which engine {} has no transactions to undo",
                    column.changes.as_deref().unwrap_or_default(),
                    engine.name
                );
                return Err(about(of_field(Error::unsupported(what), &column.name), &key));
            }
            let cells = known.looked.iter().map(|i| row[i + 1].clone()).collect();
            looks.push(Look { key, sent: row[0].clone(), cells });
        }
        Ok(looks)
    }
}

/// Ends a transaction well, if all that is looked at is there as it was given; else it is undone.
async fn keep(known: &Schema, mut session: Session<'_>, looks: &[Look]) -> Result<()> {
    const AT_ONCE: usize = 256;
    // Of several rows of a key the last is there.
    let last: HashMap<&Key, &Look> = looks.iter().map(|look| (&look.key, look)).collect();
    let looks: Vec<&Look> = last.into_values().collect();
    let columns = known.looked.iter().map(|i| known.fields.body[*i].read(""));
    let what: Vec<_> = std::iter::once(known.key_what()).chain(columns).collect();
    let select = format!("SELECT {} FROM {} WHERE", what.join(", "), known.name());
    for looks in looks.chunks(AT_ONCE) {
        // A key asked for twice is found once; the statements are few.
        let sought = looks.iter().chain(std::iter::repeat_n(&looks[0], looks.len()));
        let sought = sought.take(looks.len().next_power_of_two());
        let sought: Vec<Cell> = sought.map(|look| look.sent.clone()).collect();
        let statement = format!("{select} {}", known.key_is_one_of(sought.len()));
        let rows = match session.rows(&statement, sought).await {
            Ok(rows) => rows,
            Err(e) => return Err(undo(session, e).await),
        };
        let found = |row: mysql_async::Row| {
            let mut cells = row.unwrap().into_iter();
            Ok((known.key_of(cells.next())?, cells.collect()))
        };
        let found: Result<HashMap<Key, Vec<Cell>>> = rows.into_iter().map(found).collect();
        if let Err(e) = found.and_then(|found| are_kept(known, looks, &found)) {
            let undone = session.query("ROLLBACK").await;
            session.settle(undone)?;
            return Err(e);
        }
    }
    commit(session).await
}

/// Whether what is there is what was sent.
fn are_kept(known: &Schema, looks: &[&Look], found: &HashMap<Key, Vec<Cell>>) -> Result<()> {
    looks.iter().try_for_each(|look| {
        let Some(cells) = found.get(&look.key) else {
            if known.triggers {
                return Err(left_out(&known.table, &look.key));
            }
            let is_other = |key: &&Key| looks.iter().all(|look| look.key != **key);
            let other = found.keys().find(is_other).map(|key| key.as_str());
            return Err(taken(&known.table, &look.key, other));
        };
        known.looked.iter().zip(look.cells.iter().zip(cells)).try_for_each(|(i, (put, got))| {
            let column = &known.fields.body[*i];
            let value = |cell: &Cell| Ok(column.value(cell.clone())?.unwrap_or(Value::Null));
            let same = match (known.triggers, known.fields.shape) {
                (true, Shape::Document | Shape::Blob) => {
                    whole_is_kept(known.fields.shape, put, got)
                }
                (triggers, _) => value(put).and_then(|put| {
                    let got = value(got)?;
                    match Changer::left(&put, &got) {
                        true => Ok(()),
                        false if triggers => Err(another(Changer::Trigger, &put, &got)),
                        false if column.changes.is_none() => Err(another_has(&put)),
                        false => kept(column, &put, Some(&got)),
                    }
                }),
            };
            same.map_err(|e| about(of_field(e, &column.name), &look.key))
        })
    })
}

/// The error of a value that is not there after it was written: then the row of another key was taken for this key's.
fn another_has(put: &Value) -> Error {
    let what = format!(
        "is not kept as {}: a value of this record that must be unique is in another record; nothing was written",
        shown(put)
    );
    Error::new(ErrorKind::Conflict, what)
}

/// Whether a whole record in one column is the one that was put into a table with triggers.
fn whole_is_kept(shape: Shape, put: &Cell, got: &Cell) -> Result<()> {
    let is_kept = put == got
        || match (put, got) {
            (Cell::Bytes(put), Cell::Bytes(got)) if shape == Shape::Document => {
                // MySQL's JSON is a format of its own.
                same(&json::read(put)?, &json::read(got)?, &[])
            }
            _ => false,
        };
    if is_kept { Ok(()) } else { Err(changed_record()) }
}

/// Of rows with the same key the last: a row that is replaced at once would have been looked at, too.
fn last_of_each(known: &Schema, mut rows: Vec<Vec<Cell>>) -> Result<Vec<Vec<Cell>>> {
    let mut seen = HashSet::with_capacity(rows.len());
    let mut kept = Vec::with_capacity(rows.len());
    while let Some(row) = rows.pop() {
        if seen.insert(known.key_of(row.first().cloned())?) {
            kept.push(row);
        }
    }
    kept.reverse();
    Ok(kept)
}

/// Whether an error of the server's is about a row, by its values or its key.
fn is_of_row(e: &Error) -> bool {
    is_of_server(e)
        && matches!(e.kind(), ErrorKind::Invalid | ErrorKind::TooLarge | ErrorKind::Conflict)
}

/// The error of a row that the server did not take, naming its key.
fn of_row(known: &Schema, key: Option<&Cell>, e: Error) -> Error {
    match known.key_of(key.cloned()) {
        Ok(key) if is_of_row(&e) => about(e, &key),
        _ => e,
    }
}

/// The order of keys, as far as it matters here.
fn order(a: &Cell, b: &Cell) -> Ordering {
    match (a, b) {
        (Cell::Bytes(a), Cell::Bytes(b)) => a.cmp(b),
        (Cell::Int(a), Cell::Int(b)) => a.cmp(b),
        (Cell::UInt(a), Cell::UInt(b)) => a.cmp(b),
        (Cell::Int(_), _) => Ordering::Less,
        (_, Cell::Int(_)) => Ordering::Greater,
        _ => Ordering::Equal,
    }
}

/// How many of these rows one statement takes: a power of two, so that there are few statements.
fn chunk(rows: &[Vec<Cell>], width: usize, most: usize) -> usize {
    let limit = rows.len().min(ROWS).min(VALUES / width).max(1);
    let mut bytes = 0;
    let fit = rows.iter().take(limit).take_while(|row| {
        bytes += row.iter().map(size).sum::<usize>();
        bytes <= most
    });
    1 << fit.count().max(1).ilog2()
}

/// The statement for so many rows.
pub(super) fn insert(known: &Schema, rows: usize, taken: Taken) -> String {
    let one = format!("({})", vec!["?"; known.width()].join(","));
    let update = match taken {
        Taken::Replace => known.update(),
        Taken::Refuse => String::new(),
    };
    let (name, columns) = (known.name(), known.written());
    format!("INSERT INTO {name} ({columns}) VALUES {}{update}", vec![one; rows].join(","))
}

/// Begins a transaction.
pub(super) async fn begin(session: &mut Session<'_>) -> Result<()> {
    session.query("START TRANSACTION").await.map(drop)
}

/// Ends a transaction well.
pub(super) async fn commit(mut session: Session<'_>) -> Result<()> {
    let done = session.query("COMMIT").await;
    session.settle(done).map(drop)
}

/// Ends a transaction in which there was an error.
pub(super) async fn undo(mut session: Session<'_>, e: Error) -> Error {
    // Where this cannot be said either, the connection is closed, which undoes it, too.
    if is_of_server(&e) && session.query("ROLLBACK").await.is_ok() {
        session.done();
    }
    e
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_have_few_sizes_and_fit_into_a_packet() {
        let row = |len: usize| vec![Cell::Bytes(vec![0; len]); 2];
        let rows: Vec<_> = (0..1000).map(|_| row(10)).collect();
        assert_eq!(chunk(&rows, 2, 1 << 20), 256);
        assert_eq!(chunk(&rows[..255], 2, 1 << 20), 128);
        assert_eq!(chunk(&rows[..1], 2, 1 << 20), 1);
        assert_eq!(chunk(&rows, 1000, 1 << 20), 64, "65,535 values");
        assert_eq!(chunk(&rows, 2, 400), 8, "38 bytes each");
        assert_eq!(chunk(&[row(500), row(500)], 2, 400), 1);
    }

    #[test]
    fn keys_are_ordered() {
        let text = |text: &str| Cell::Bytes(text.into());
        let mut keys = [text("b"), Cell::Int(2), text("a"), Cell::Int(-1)];
        keys.sort_by(order);
        assert_eq!(keys, [Cell::Int(-1), Cell::Int(2), text("a"), text("b")]);
    }
}
