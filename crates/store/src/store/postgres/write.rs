//! Writing: `INSERT … ON CONFLICT` of arrays for rows that may be there, binary `COPY` for rows that
//! are new.
//!
//! Rows are put in the order of their keys, so that two who put the same keys wait for each other
//! and do not deadlock. All is checked and encoded before the first byte is sent; what a column's type may change
//! comes back with the answer (`RETURNING`), and is undone where it was changed. In a table with triggers any value may
//! be changed, also after the statement: there all is read again at the end of the transaction.

use std::{collections::HashMap, time::Instant};

use futures_util::FutureExt;
use tokio_postgres::types::Type;

use super::{
    PostgreSql, error,
    pool::Connection,
    read::bound,
    rows::{self, Columns, Entry, Held},
    table::{self, Schema},
    wire::Bound,
};
use crate::{
    Error, ErrorKind, Result,
    store::{
        Key, counts,
        sql::{Guard, left_out, row::about, taken},
    },
};

/// What is sent at once, in bytes, about: a statement's values have to fit into 1 GB.
const AT_ONCE: usize = 64 << 20;

/// The SQLSTATE of a value that is in another row, where an index is unique.
const TAKEN: &str = "23505";
/// What takes too long.
const WRITE: &str = "a write";

/// Bytes before the rows of a binary `COPY`: a signature, no flags, no extension.
const BEGIN: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// After them: no more columns.
const END: [u8; 2] = (-1i16).to_be_bytes();

/// What was sent has to be there: a trigger or a rule of a table can leave rows out, and the server calls that well.
fn all_kept(known: &Schema, sent: usize, kept: u64) -> Result<()> {
    // Of a table of nothing but keys, those that are there are not written again.
    if kept == sent as u64 || known.fields.body.is_empty() {
        return Ok(());
    }
    let table = &known.table.name;
    let what = match kept > sent as u64 {
        true => {
            format!("the server reports {kept} of {sent} records stored in table {table:?}")
        }
        false => format!(
            "only {kept} of {sent} records were stored: a trigger or a rule of table {table:?} \
             drops the others"
        ),
    };
    Err(Error::new(ErrorKind::Mismatch, what))
}

/// Whether entries have to be looked at after they were written.
fn looks<E: Entry>(known: &Schema, entries: &[&E]) -> bool {
    // Of most tables none has: that is asked once. Where there are triggers, all is looked at in the end.
    let may_any = known.fields.changing().next().is_some();
    may_any && !known.triggers && entries.iter().any(|entry| entry.may_change(known))
}

/// Ends a transaction in which there was an error. Where this cannot be said either, the connection is closed, which
/// ends it, too.
async fn undo(connection: &mut Connection<'_>, e: &Error) {
    if !e.is_outage() && connection.batch("ROLLBACK").await.is_ok() {
        connection.end();
    }
}

/// The error of a record that the server did not take, naming its key and, where it is about a value, the field.
fn of_entry(known: &Schema, entry: &impl Entry, e: Error) -> Error {
    match error::is_of_record(&e) {
        true if error::is_of_value(&e) => about(entry.not_taken(known, e), entry.key()),
        true => about(e, entry.key()),
        false => e,
    }
}

/// What a conditional write does inside of a transaction; says whether it wrote.
async fn write_looked<E: Entry>(
    known: &Schema,
    connection: &mut Connection<'_>,
    entry: &E,
    text: &str,
    values: &[(Type, Bound)],
    guard: Option<Guard<'_>>,
) -> Result<bool> {
    let key = table::one_key(known, entry.key()).into_iter();
    let get = &known.say.get_one;
    if known.triggers
        && let Some(guard) = guard
    {
        // A trigger can leave the row as it is: so it is known, and locked, that it fits.
        let sql = known.condition(guard, 1)?;
        let sought: Vec<_> = key.chain(bound(&sql, known)?).collect();
        if connection.query(&format!("{get}{} FOR UPDATE", sql.text), &sought).await?.is_empty() {
            return Ok(false);
        }
        return match connection.execute(text, values).await? {
            0 => Err(left_out(&known.table, entry.key())),
            _ => keep(known, connection, &[entry]).await.map(|()| true),
        };
    }
    if known.triggers {
        if connection.execute(text, values).await? > 0 {
            return keep(known, connection, &[entry]).await.map(|()| true);
        }
        let sought: Vec<_> = key.collect();
        return match connection.query(get, &sought).await?.is_empty() {
            true => Err(left_out(&known.table, entry.key())),
            false => Ok(false),
        };
    }
    let text = format!("{text} RETURNING {}", known.say.looked);
    match &connection.query(&text, values).await?[..] {
        [] => Ok(false),
        [row] => entry.kept(known, row).map(|()| true),
        rows => counts::yes("a conditional write", rows.len() as i128),
    }
}

/// How often a conditional write is tried that the server undid because others were in its way.
const TRIES: usize = 8;

/// How many records are read again at once.
const LOOKS: usize = 1000;

/// Ends a transaction of a table with triggers well, if what was written is what is there, after all of them: those
/// that wait for the end of the transaction, too.
async fn keep<E: Entry>(
    known: &Schema,
    connection: &mut Connection<'_>,
    entries: &[&E],
) -> Result<()> {
    if !known.triggers {
        return Ok(());
    }
    connection.batch("SET CONSTRAINTS ALL IMMEDIATE").await?;
    // Of several records of a key the last is there.
    let last: HashMap<&Key, &E> = entries.iter().map(|entry| (entry.key(), *entry)).collect();
    for some in entries.chunks(LOOKS) {
        let keys: Vec<Key> = some.iter().map(|entry| entry.key().clone()).collect();
        let sought = [table::keys(known, &keys)];
        let mut there = HashMap::with_capacity(keys.len());
        for row in connection.query(&known.say.get_many, &sought).await? {
            there.insert(rows::key_of(known, &row)?, row);
        }
        for key in &keys {
            let row = there.get(key).ok_or_else(|| left_out(&known.table, key))?;
            last[key].all_kept(known, row).map_err(|e| about(e, key))?;
        }
    }
    Ok(())
}

impl PostgreSql {
    pub(super) async fn put_entries<E: Entry>(&self, entries: &[E]) -> Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        let known = self.schema().await?;
        if let [one] = entries {
            return match known.triggers || looks(&known, &[one]) {
                false => self.put_one(&known, one).await,
                // Apart, so that what is usual stays small.
                true => self.insert(&known, &[one], true).boxed().await,
            };
        }
        // The last of equal keys stays: the sort is stable.
        let mut sorted: Vec<&E> = entries.iter().collect();
        sorted.sort_by_key(|entry| entry.key());
        let last = |i: &usize| sorted.get(i + 1).is_none_or(|next| next.key() != sorted[*i].key());
        // Those that are replaced at once are checked like the others.
        let replaced = (0..sorted.len()).filter(|i| !last(i));
        for i in replaced {
            rows::write(&known, sorted[i], &mut Vec::new())?;
        }
        let kept: Vec<&E> = (0..sorted.len()).filter(last).map(|i| sorted[i]).collect();
        self.insert(&known, &kept, true).await
    }

    /// Writes a row that is kept as it is sent, in place of the one that may be there.
    async fn put_one<E: Entry>(&self, known: &Schema, one: &E) -> Result<()> {
        let written = async {
            let mut row = Columns::new(known);
            row.push(known, one)?;
            let kept = self.pool.execute(&known.say.put_one, &row.bound(known)).await;
            all_kept(known, 1, self.noted(kept)?)
        };
        written.await.map_err(|e| of_entry(known, one, e))
    }

    /// Each entry by a statement of its own, all in one transaction.
    pub(super) async fn put_each_entry<E: Entry>(&self, entries: &[E]) -> Result<()> {
        let known = self.schema().await?;
        self.insert_each(&known, &entries.iter().collect::<Vec<_>>(), true).await
    }

    async fn insert_each<E: Entry>(
        &self,
        known: &Schema,
        entries: &[&E],
        replace: bool,
    ) -> Result<()> {
        let begun = Instant::now();
        let in_one = async {
            let mut connection = self.pool.get().await?;
            // What is not committed ends with the connection.
            connection.begin();
            connection.batch("BEGIN").await?;
            for entry in entries {
                self.pool.in_time(WRITE, begun)?;
                let mut one = Columns::new(known);
                one.push(known, *entry)?;
                let done = self.send(known, &mut connection, one, &[*entry], replace).await;
                if let Err(e) = done {
                    undo(&mut connection, &e).await;
                    return Err(of_entry(known, *entry, e));
                }
            }
            if let Err(e) = keep(known, &mut connection, entries).await {
                undo(&mut connection, &e).await;
                return Err(e);
            }
            connection.batch("COMMIT").await?;
            connection.end();
            Ok(())
        };
        self.pool.within(WRITE, in_one).await
    }

    pub(super) async fn load_entries<E: Entry>(&self, entries: &[E]) -> Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        let known = self.schema().await?;
        let keys = || entries.iter().map(|entry| entry.key());
        let loaded = match &known.say.copy {
            Some(copy) if entries.len() > 1 => {
                let mut buffer = Vec::with_capacity(entries.len() * 128);
                buffer.extend(BEGIN);
                let columns = known.fields.body.len() as i16 + 1;
                for entry in entries {
                    buffer.extend(columns.to_be_bytes());
                    rows::write(&known, entry, &mut buffer)?;
                }
                buffer.extend(END);
                let mut connection = self.pool.get().await?;
                let kept = self.noted(connection.copy_in(copy, buffer).await);
                kept.and_then(|kept| all_kept(&known, entries.len(), kept))
            }
            _ => self.insert(&known, &entries.iter().collect::<Vec<_>>(), false).await,
        };
        let Err(e) = loaded else { return Ok(()) };
        if error::code(&e) == Some(TAKEN)
            && let Some(taken) = self.taken(keys()).await
        {
            return Err(taken.with_source(e));
        }
        if let Some(entry) = error::row(&e).and_then(|row| entries.get(row - 1)) {
            return Err(match error::is_of_value(&e) {
                true => of_entry(&known, entry, e),
                false => about(e, entry.key()),
            });
        }
        match entries {
            [one] => Err(of_entry(&known, one, e)),
            // Which of them it is, the server does not say.
            _ if error::is_of_record(&e) => {
                let entries: Vec<&E> = entries.iter().collect();
                self.insert_each(&known, &entries, false).boxed().await
            }
            _ => Err(e),
        }
    }

    async fn insert<E: Entry>(&self, known: &Schema, entries: &[&E], replace: bool) -> Result<()> {
        match (self.insert_all(known, entries, replace).await, entries) {
            // Of a new record its key is looked for.
            (Err(e), _) if !replace && error::code(&e) == Some(TAKEN) => Err(e),
            (Err(e), [one]) => Err(of_entry(known, *one, e)),
            // Which of them it is, the server does not say.
            (Err(e), [_, _, ..]) if error::is_of_record(&e) => {
                self.insert_each(known, entries, replace).boxed().await
            }
            (done, _) => done,
        }
    }

    async fn insert_all<E: Entry>(
        &self,
        known: &Schema,
        entries: &[&E],
        replace: bool,
    ) -> Result<()> {
        let mut groups = vec![(Columns::new(known), 0)];
        for (i, entry) in entries.iter().enumerate() {
            if groups.last().is_some_and(|(group, _)| group.size() > AT_ONCE) {
                groups.push((Columns::new(known), i));
            }
            groups.last_mut().expect("never empty").0.push(known, *entry)?;
        }
        if groups.len() == 1
            && !looks(known, entries)
            && !known.triggers
            && let Some((group, _)) = groups.pop()
        {
            let (statement, sent) = (known.say.write(group.rows, replace), group.rows);
            let kept = self.noted(self.pool.execute(statement, &group.bound(known)).await)?;
            return all_kept(known, sent, kept);
        }
        let begun = Instant::now();
        let in_one = async {
            let mut connection = self.pool.get().await?;
            // What is not committed ends with the connection.
            connection.begin();
            connection.batch("BEGIN").await?;
            for (group, first) in groups {
                self.pool.in_time(WRITE, begun)?;
                let entries = &entries[first..first + group.rows];
                let sent = self.send(known, &mut connection, group, entries, replace).await;
                if let Err(e) = sent {
                    undo(&mut connection, &e).await;
                    return Err(e);
                }
            }
            if let Err(e) = keep(known, &mut connection, entries).await {
                undo(&mut connection, &e).await;
                return Err(e);
            }
            connection.batch("COMMIT").await?;
            connection.end();
            Ok(())
        };
        // Apart, so that what is usual stays small.
        self.pool.within(WRITE, in_one).boxed().await
    }

    /// Sends entries inside of a transaction, and looks whether those that may be changed are what was sent.
    async fn send<E: Entry>(
        &self,
        known: &Schema,
        connection: &mut Connection<'_>,
        group: Columns,
        entries: &[&E],
        replace: bool,
    ) -> Result<()> {
        let (statement, sent) = (known.say.write(group.rows, replace), group.rows);
        if !looks(known, entries) {
            let kept = self.noted(connection.execute(statement, &group.bound(known)).await)?;
            return match known.triggers {
                // Which ones are left out, is seen in the end.
                true => Ok(()),
                false => all_kept(known, sent, kept),
            };
        }
        let statement = format!("{statement} RETURNING {}", known.say.looked);
        let rows = self.noted(connection.query(&statement, &group.bound(known)).await)?;
        all_kept(known, sent, rows.len() as u64)?;
        let mut by_key: HashMap<Key, Held> = HashMap::with_capacity(rows.len());
        for row in rows {
            by_key.insert(rows::key_of(known, &row)?, row);
        }
        entries.iter().try_for_each(|entry| {
            let key = entry.key();
            let row = by_key.get(key).ok_or_else(|| taken(&known.table, key, None))?;
            entry.kept(known, row).map_err(|e| about(e, key))
        })
    }

    /// Writes an entry if the row of its key is as the guard says, and says whether it did.
    pub(super) async fn write_if<E: Entry>(&self, entry: &E, guard: Guard<'_>) -> Result<bool> {
        let known = self.schema().await?;
        let mut row = Columns::new(&known);
        row.push(&known, entry)?;
        let mut values = row.bound(&known);
        let (text, condition) = match guard {
            Guard::Absent => (known.say.insert_absent.clone(), None),
            guard => {
                let sql = known.condition(guard, values.len())?;
                let more = bound(&sql, &known)?;
                values.extend(more);
                ([known.say.update_one.as_str(), &sql.text].concat(), Some(guard))
            }
        };
        let looks = known.triggers || looks(&known, &[entry]);
        let mut tries = 0;
        loop {
            tries += 1;
            let written = match looks {
                false => self.one_or_none("a conditional write", &text, &values).await,
                // Apart, so that what is usual stays small.
                true => self.write_looking(&known, entry, &text, &values, condition).boxed().await,
            };
            match written {
                Err(e) if error::is_undone(&e) && tries < TRIES => {}
                written => return written.map_err(|e| of_entry(&known, entry, e)),
            }
        }
    }

    /// Does a statement that touches one row or none, and says which.
    async fn one_or_none(&self, what: &str, text: &str, values: &[(Type, Bound)]) -> Result<bool> {
        let count = self.noted(self.pool.execute(text, values).await)?;
        counts::yes(what, count).map_err(|e| self.pool.placed(e))
    }

    /// A conditional write in a transaction, which is undone where the table would change what is written.
    async fn write_looking<E: Entry>(
        &self,
        known: &Schema,
        entry: &E,
        text: &str,
        values: &[(Type, Bound)],
        guard: Option<Guard<'_>>,
    ) -> Result<bool> {
        let in_one = async {
            let mut connection = self.pool.get().await?;
            // What is not committed ends with the connection.
            connection.begin();
            connection.batch("BEGIN").await?;
            let written = write_looked(known, &mut connection, entry, text, values, guard).await;
            let written = match self.noted(written) {
                Ok(written) => written,
                Err(e) => {
                    undo(&mut connection, &e).await;
                    return Err(e);
                }
            };
            connection.batch(if written { "COMMIT" } else { "ROLLBACK" }).await?;
            connection.end();
            Ok(written)
        };
        self.pool.within(WRITE, in_one).await
    }

    /// Deletes the row of a key if it is as the guard says, and says whether it did.
    pub(super) async fn removed_if(&self, key: &Key, guard: Guard<'_>) -> Result<bool> {
        let known = self.schema().await?;
        let key = match guard {
            Guard::Absent => None,
            _ => table::one_key(&known, key),
        };
        let Some(key) = key else { return Ok(false) };
        let sql = known.condition(guard, 1)?;
        let mut values = vec![key];
        values.extend(bound(&sql, &known)?);
        let text = [known.say.remove_one.as_str(), &sql.text].concat();
        let mut tries = 0;
        loop {
            tries += 1;
            match self.one_or_none("DELETE", &text, &values).await {
                Err(e) if error::is_undone(&e) && tries < TRIES => {}
                removed => return removed,
            }
        }
    }

    pub(super) async fn removed(&self, keys: &[Key]) -> Result<u64> {
        if keys.is_empty() {
            return Ok(0);
        }
        let known = self.schema().await?;
        let removed = [table::keys(&known, keys)];
        let count = self.noted(self.pool.execute(&known.say.remove, &removed).await)?;
        counts::of_keys("DELETE", keys, count).map_err(|e| self.pool.placed(e))
    }

    /// The error for keys that are taken, with the first of them; none where it is the value of another column, or where
    /// it is gone again.
    async fn taken<'k>(&self, keys: impl Iterator<Item = &'k Key> + Clone + Send) -> Option<Error> {
        let mut sorted: Vec<&Key> = keys.clone().collect();
        sorted.sort_unstable();
        let twice = sorted.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
        let what = match twice {
            Some(key) => format!("key {}: it occurs twice in the batch", key.shown()),
            None => {
                let asked: Vec<Key> = keys.cloned().collect();
                let there = match self.found(&asked, rows::key_of).await {
                    Ok(there) => there.into_iter().flatten().next(),
                    Err(_) => None,
                };
                format!("key {}: it already exists", there?.shown())
            }
        };
        Some(Error::new(ErrorKind::Conflict, what))
    }
}
