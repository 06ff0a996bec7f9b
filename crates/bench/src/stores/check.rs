//! Checks that the records a store answers with are those that were written: between the timed windows,
//! on answers that were put aside in them and on records that are read back.
//!
//! A record may be any that was written under its key and not surely replaced since, because several
//! workers write at once. What a store declares not to keep ([`Abilities::keeps`]) is no error here; the
//! proof shows it. Contents are not compared for a store that the proof has seen change more than it
//! declares.
//!
//! [`Abilities::keeps`]: crate::store::Abilities

use std::{
    cmp::Ordering,
    collections::{HashMap, HashSet},
};

use super::{
    answers::Answer,
    draws::Draws,
    expected::Expected,
    load_loop::Window,
    operation::{Operation, Written, of_keys},
    turn::Turn,
};
use crate::{
    Error, ErrorKind, Result,
    record::{Document, Kind, Value},
    store::{Column, Key, Need, Query, Row, Shape, Store, difference, in_columns},
    workload::Phase,
};

/// Records of a table that are read back, spread over all, and of them those that are read one by one.
const SAMPLE: (u64, u64) = (200, 20);

/// A phase that has left a table with other records than it began with.
pub(super) struct Change {
    phase: Phase,
    /// How many records the table had grown by before it.
    grown: u64,
}

/// A record that a store has answered with: under this key, in this table, to this operation.
struct Read<'t> {
    table: &'t str,
    key: Key,
    record: Document,
    how: String,
}

/// The answers of a window, sorted by what they are held to.
pub(super) struct Answers<'t> {
    /// The table of the phase.
    pub table: &'t str,
    /// The other table of a kind that uses two; else the same.
    pub other: &'t str,
    records: Vec<Read<'t>>,
    queries: Vec<(&'t str, Query, Vec<Row>)>,
}

impl<'t> Answers<'t> {
    /// This record came under this key of a table; `how` names the operation in an error.
    pub(super) fn record(&mut self, table: &'t str, key: &Key, record: Document, how: &str) {
        self.records.push(Read { table, key: key.clone(), record, how: how.into() });
    }

    /// These records came, of a table.
    pub(super) fn rows(&mut self, table: &'t str, rows: &[Row], how: &str) {
        rows.iter().for_each(|row| self.record(table, &row.key, row.record.clone(), how));
    }

    /// These are the first rows of the answer to a query of a table.
    pub(super) fn query(&mut self, table: &'t str, query: Query, rows: Vec<Row>) {
        self.queries.push((table, query, rows));
    }
}

/// What may lie under the keys of a table.
struct Known {
    /// As they were loaded, and as earlier phases have written them.
    before: ByKey,
    /// Fields that earlier phases have put in.
    before_in: ByKey,
    /// Written in this phase.
    written: ByKey,
    /// Fields that this phase has put in.
    written_in: ByKey,
    keeps: Vec<Kind>,
    columns: Option<Vec<Column>>,
}

/// Records by the keys under which they were written.
type ByKey = HashMap<Key, Vec<Document>>;

/// Adds what operations write under these keys.
fn add<'o>(
    writes: impl IntoIterator<Item = (&'o Key, Written<'o>)>,
    keys: &HashSet<Key>,
    (records, fields): (&mut ByKey, &mut ByKey),
) {
    for (key, written) in writes.into_iter().filter(|(key, _)| keys.contains(*key)) {
        let (all, document) = match written {
            Written::Record(document) => (&mut *records, document),
            Written::Fields(document) => (&mut *fields, document),
        };
        all.entry(key.clone()).or_default().push(document.clone());
    }
}

/// Rows as what an operation writes.
fn as_written(rows: &[Row]) -> Vec<(&Key, Written<'_>)> {
    rows.iter().map(|row| (&row.key, Written::Record(&row.record))).collect()
}

impl Known {
    /// What is wrong with a record that was read; `new` says that this phase has written it.
    fn wrong(&self, key: &Key, read: &Document, new: bool) -> Option<String> {
        let of = |all: &HashMap<Key, Vec<Document>>| all.get(key).cloned().unwrap_or_default();
        let mut before = of(&self.before);
        let earlier = self.put_in(&before, &of(&self.before_in), read);
        before.extend(earlier);
        let written = of(&self.written);
        let all: Vec<Document> = before.iter().chain(&written).cloned().collect();
        let mut right = self.put_in(&all, &of(&self.written_in), read);
        right.extend(written);
        if !new {
            right.extend_from_slice(&before);
        }
        let found = right.iter().map(|record| self.differs(record, read));
        let differences: Option<Vec<String>> = found.collect();
        let first = differences?.into_iter().next();
        let old = before.iter().any(|record| self.differs(record, read).is_none());
        Some(match first {
            _ if old => "what was written last is not there".into(),
            Some(how) => format!("another record came: {how}"),
            None => "it was never written".into(),
        })
    }

    /// Records with those of these fields that were read.
    fn put_in(&self, to: &[Document], fields: &[Document], read: &Document) -> Vec<Document> {
        let one = |name: &str, value: &Value| Document::from_iter([(name, value.clone())]);
        let is_read = |(name, value): &(&str, &Value)| {
            read.get(name).is_some_and(|v| self.differs(&one(name, value), &one(name, v)).is_none())
        };
        let there: Vec<_> = fields.iter().flat_map(Document::iter).filter(is_read).collect();
        let with = |record: &Document| {
            let mut record = record.clone();
            for (name, value) in &there {
                record.insert(*name, (*value).clone());
            }
            record
        };
        if there.is_empty() { Vec::new() } else { to.iter().map(with).collect() }
    }

    fn differs(&self, kept: &Document, read: &Document) -> Option<String> {
        match &self.columns {
            Some(columns) => difference(&in_columns(kept, columns), read, &self.keeps),
            None => difference(kept, read, &self.keeps),
        }
    }
}

impl Turn<'_> {
    /// Notes that a phase leaves records other than it found them.
    pub(super) fn changed(&mut self, phase: &Phase) {
        let grown = self.grown.get(&phase.table).copied().unwrap_or(0);
        self.changes.push(Change { phase: phase.clone(), grown });
    }

    /// Looks at the answers of a window.
    ///
    /// # Errors
    /// [`Mismatch`](ErrorKind::Mismatch), naming the operation and the key, where one is not right.
    pub(super) fn answered<O: Operation>(
        &self,
        phase: &Phase,
        ops: &[O],
        window: &mut Window,
    ) -> Result<()> {
        let aside = std::mem::take(&mut window.answers);
        if self.null {
            return Ok(());
        }
        let table = phase.table.as_str();
        let other = phase.kind.other_table().unwrap_or(table);
        let (records, queries) = (Vec::new(), Vec::new());
        let mut answers = Answers { table, other, records, queries };
        for Answer { at, found } in aside {
            if let Some(op) = ops.get(at) {
                op.answered(found, &mut answers);
            }
        }
        let written: Vec<_> = ops.iter().filter_map(Operation::written).collect();
        self.right(answers.records, &written, false)?;
        for (n, (table, query, rows)) in answers.queries.into_iter().enumerate() {
            // Whether those are the first of all is looked at once.
            self.fits(table, &query, &rows, n == 0 && self.explains)?;
        }
        Ok(())
    }

    /// Reads back what the operations of a phase have written.
    ///
    /// # Errors
    /// As [`answered`](Turn::answered); those of the store.
    pub(super) async fn read_back<O: Operation>(
        &self,
        phase: &Phase,
        ops: &[O],
        all: bool,
    ) -> Result<()> {
        let written: Vec<_> = ops.iter().filter_map(Operation::written).collect();
        let mut known = HashSet::new();
        let keys: Vec<&Key> =
            written.iter().map(|(key, _)| *key).filter(|key| known.insert(*key)).collect();
        let step = (keys.len() / SAMPLE.0 as usize).max(1);
        let keys: Vec<Key> = keys.into_iter().step_by(step).cloned().collect();
        let store = self.table(&phase.table)?;
        let read = self.read(&**store, &phase.table, &keys).await?;
        self.right(read, &written, all)
    }

    /// Reads some records of a table, which are to be as they were loaded, with what the record `shift`
    /// places further has.
    ///
    /// # Errors
    /// As [`answered`](Turn::answered); those of the store.
    pub(super) async fn as_loaded(&self, table: &str, shift: u64) -> Result<()> {
        let records = self.records(table)?;
        let step = (records.count / SAMPLE.0).max(1);
        let numbers = (0..records.count).step_by(step as usize);
        let rows: Vec<Row> = numbers.map(|n| records.shifted(n, shift)).collect::<Result<_>>()?;
        let keys: Vec<Key> = rows.iter().map(|row| row.key.clone()).collect();
        let store = self.table(table)?;
        let read = self.read(&**store, table, &keys).await?;
        self.right(read, &as_written(&rows), true)
    }

    /// Reads all that was written before a crash, and some records that were there before: those that
    /// are there must have the contents they were given. Those that are not are counted elsewhere.
    ///
    /// # Errors
    /// As [`answered`](Turn::answered); those of the store.
    pub(super) async fn survived(&self, table: &str, sent: &[Row], batch: usize) -> Result<()> {
        let (records, store) = (self.records(table)?, self.table(table)?);
        let mut keys: Vec<Key> = sent.iter().map(|row| row.key.clone()).collect();
        let step = (records.count / batch as u64).max(1);
        let earlier = (0..records.count).step_by(step as usize).map(|n| records.key(n));
        keys.extend(earlier.collect::<Result<Vec<_>>>()?);
        let mut read = Vec::new();
        for keys in keys.chunks(batch) {
            let found = store.get(keys).await?;
            let there = keys.iter().zip(found).filter_map(|(key, record)| {
                let how = "read after the crash".into();
                Some(Read { table, key: key.clone(), record: record?, how })
            });
            read.extend(there);
        }
        self.right(read, &as_written(sent), false)
    }

    /// Looks whether the records that fit are gone, and the others are not.
    ///
    /// # Errors
    /// As [`answered`](Turn::answered); those of the store.
    pub(super) async fn deleted(&self, table: &str, query: &Query) -> Result<()> {
        let records = self.records(table)?;
        if self.null || self.changes.iter().any(|change| change.phase.table == table) {
            return Ok(());
        }
        let step = (records.count / SAMPLE.0).max(1);
        let rows: Vec<Row> = (0..records.count)
            .step_by(step as usize)
            .map(|n| records.row(n))
            .collect::<Result<_>>()?;
        let keys: Vec<Key> = rows.iter().map(|row| row.key.clone()).collect();
        let found = self.table(table)?.get(&keys).await?;
        for (row, found) in rows.iter().zip(found) {
            let gone = self.is_gone(table, row);
            let key = row.key.shown();
            match (query.matches(&row.key, &row.record), found) {
                (true, Some(_)) => {
                    return Err(mismatch("delete", format!("record {key} is still there")));
                }
                (false, None) if !gone => {
                    let what = format!("record {key} is gone, which does not fit");
                    return Err(mismatch("delete", what));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether an earlier phase has deleted it.
    fn is_gone(&self, table: &str, row: &Row) -> bool {
        let here = self.gone.iter().filter(|gone| gone.0 == table);
        here.clone().any(|(_, query)| query.matches(&row.key, &row.record))
    }

    /// Reads these keys at once, and some of them one by one.
    async fn read<'t>(
        &self,
        store: &dyn Store,
        table: &'t str,
        keys: &[Key],
    ) -> Result<Vec<Read<'t>>> {
        let mut read = Vec::new();
        if self.null || keys.is_empty() {
            return Ok(read);
        }
        let single = keys.iter().step_by((keys.len() / SAMPLE.1 as usize).max(1));
        let asked = std::iter::once(keys).chain(single.map(std::slice::from_ref));
        for keys in asked {
            let how = of_keys(keys);
            let mut found = store.get(keys).await?.into_iter();
            for key in keys {
                let Some(record) = found.next().flatten() else {
                    let what = format!("there is no record {}, which was written", key.shown());
                    return Err(mismatch(&how, what));
                };
                read.push(Read { table, key: key.clone(), record, how: how.clone() });
            }
        }
        Ok(read)
    }

    /// Whether each is a record that may lie under its key; `new` says that what this phase has written
    /// has surely replaced what was there.
    fn right(&self, read: Vec<Read<'_>>, written: &[(&Key, Written<'_>)], new: bool) -> Result<()> {
        if self.null || self.lossy {
            return Ok(());
        }
        let mut left = read;
        // Earlier phases are drawn anew only where a record is not yet known.
        for earlier in [false, true] {
            let mut tables: Vec<&str> = left.iter().map(|read| read.table).collect();
            tables.sort_unstable();
            tables.dedup();
            let mut unknown = Vec::new();
            for table in tables {
                let of = |read: &&Read<'_>| read.table == table;
                let keys = left.iter().filter(of).map(|read| read.key.clone()).collect();
                let known = self.known(table, &keys, written, earlier)?;
                for (i, read) in left.iter().enumerate().filter(|(_, read)| of(read)) {
                    if let Some(what) = known.wrong(&read.key, &read.record, new) {
                        unknown.push((i, what));
                    }
                }
            }
            let Some((i, what)) = unknown.first() else { return Ok(()) };
            if earlier || self.changes.is_empty() {
                let Read { key, how, .. } = &left[*i];
                return Err(mismatch(how, format!("key {}: {what}", key.shown())));
            }
            let at: HashSet<usize> = unknown.iter().map(|found| found.0).collect();
            let all = std::mem::take(&mut left).into_iter().enumerate();
            left = all.filter(|(i, _)| at.contains(i)).map(|(_, read)| read).collect();
        }
        Ok(())
    }

    /// What may lie under these keys.
    fn known(
        &self,
        table: &str,
        keys: &HashSet<Key>,
        written: &[(&Key, Written<'_>)],
        earlier: bool,
    ) -> Result<Known> {
        let (records, store) = (self.records(table)?, self.table(table)?);
        let columns = match store.shape() {
            Shape::Columns => Some(records.layout(self.declared(table)?, Shape::Columns)?.columns),
            Shape::Document | Shape::Blob => None,
        };
        // That maps come in another order is for the proof to show.
        let keeps = store.abilities().keeps.iter().copied().filter(|kind| *kind != Kind::Map);
        let mut known = Known {
            before: HashMap::new(),
            before_in: HashMap::new(),
            written: HashMap::new(),
            written_in: HashMap::new(),
            keeps: keeps.collect(),
            columns,
        };
        for (key, record) in records.of(keys)? {
            known.before.entry(key).or_default().push(record);
        }
        let changes = self.changes.iter().filter(|change| earlier && change.phase.table == table);
        for Change { phase, grown } in changes {
            let expected = &Expected::Unknown;
            let draws =
                Draws { phase, records, expected, grown: *grown, seed: self.seed, null: false };
            let drawn = phase.kind.drawn(&draws)?;
            let writes = drawn.iter().filter_map(Operation::written);
            add(writes, keys, (&mut known.before, &mut known.before_in));
        }
        add(written.iter().copied(), keys, (&mut known.written, &mut known.written_in));
        Ok(known)
    }

    /// Whether rows are an answer to a query: each fits and comes once, in their order, and, where that
    /// is asked, none is left out before the last.
    fn fits(&self, table: &str, query: &Query, rows: &[Row], first: bool) -> Result<()> {
        let keys: HashSet<Key> = rows.iter().map(|row| row.key.clone()).collect();
        if keys.len() != rows.len() {
            return Err(mismatch("find", "a record came twice".into()));
        }
        let records = self.records(table)?;
        let of_keys = !query.needs().contains(&Need::Find)
            && query.sort.iter().all(|(path, _)| path.is_key());
        let changed = self.changes.iter().any(|change| change.phase.table == table);
        if !of_keys && (changed || self.lossy) {
            return Ok(());
        }
        let loaded = if changed { HashMap::new() } else { records.of(&keys)? };
        let row = |row: &Row| Row {
            key: row.key.clone(),
            record: loaded.get(&row.key).unwrap_or(&row.record).clone(),
        };
        let rows: Vec<Row> = rows.iter().map(row).collect();
        if let Some(row) = rows.iter().find(|row| !query.matches(&row.key, &row.record)) {
            let what = format!("record {} came, which does not fit", row.key.shown());
            return Err(mismatch("find", what));
        }
        if query.sort.is_empty() {
            return Ok(());
        }
        for pair in rows.windows(2) {
            if comparable(query, &pair[0], &pair[1]) && query.order(&pair[0], &pair[1]).is_gt() {
                let what = format!("record {} came too early", pair[0].key.shown());
                return Err(mismatch("find", what));
            }
        }
        let Some(last) = rows.last().filter(|_| first && !changed) else { return Ok(()) };
        for n in 0..records.count {
            let row = records.row(n)?;
            let before = query.matches(&row.key, &row.record)
                && comparable(query, &row, last)
                && query.order(&row, last) == Ordering::Less;
            if before && !keys.contains(&row.key) && !self.is_gone(table, &row) {
                let what = format!("record {} was left out", row.key.shown());
                return Err(mismatch("find", what));
            }
        }
        Ok(())
    }

    /// Looks at rows of a whole table, as a scan gives them.
    ///
    /// # Errors
    /// As [`answered`](Turn::answered).
    pub(super) fn scanned(&self, table: &str, rows: Vec<Row>) -> Result<()> {
        let keys: HashSet<&Key> = rows.iter().map(|row| &row.key).collect();
        if keys.len() != rows.len() && !self.null {
            return Err(mismatch("scan", "a record came twice".into()));
        }
        let read = rows.into_iter().map(|Row { key, record }| Read {
            table,
            key,
            record,
            how: "scan".into(),
        });
        self.right(read.collect(), &[], false)
    }
}

/// Whether the order of two records is one: of values of different kinds it is each store's own.
fn comparable(query: &Query, a: &Row, b: &Row) -> bool {
    query.sort.iter().all(|(path, _)| {
        let kind = |row: &Row| match path.kind_in(&row.key, &row.record) {
            Some(Kind::Float) => Some(Kind::Int),
            kind => kind,
        };
        let (a, b) = (kind(a), kind(b));
        a.is_none() || b.is_none() || a == b
    })
}

fn mismatch(how: &str, what: String) -> Error {
    Error::new(ErrorKind::Mismatch, format!("{how}: {what}"))
}
