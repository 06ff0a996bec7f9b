//! A store that is a list of rows and nothing more: made in another way than any driver, to compare
//! with, and with flaws to choose from, each of which the contract has to find.

use std::{
    collections::{HashMap, HashSet},
    slice,
    sync::{Arc, Mutex, MutexGuard},
};

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use steelyard::{
    Error, ErrorKind, Result,
    format::Wrapped,
    record::{Document, Kind, Value},
    store::{
        Abilities, Blobs, Client, Description, Expected, Filter, Key, KeyRange, Layout, Need,
        Query, Row, Rows, Shape, Store,
    },
};

/// What is wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    None,
    /// `prepare` empties a table that is there.
    PrepareEmpties,
    /// A batch of more than 999 loses its last row.
    DropsLast,
    /// `put` keeps fields of the record that was there.
    Merges,
    /// `put` does not replace.
    KeepsOld,
    /// Of one key twice in a batch, the first stays.
    FirstWins,
    /// `count` is one too many.
    Miscounts,
    /// `get` answers in the order of keys, not of the question.
    SortsAnswers,
    /// `get` leaves out what is missing.
    SkipsMissing,
    /// `remove` counts keys and not records.
    CountsKeys,
    /// `delete` deletes all.
    DeletesAll,
    /// `scan` gives keys in reverse.
    Reverses,
    /// `scan` takes the end of a range as part of it.
    IncludesEnd,
    /// `scan` gives a row at the border of two batches twice.
    RepeatsAtBorder,
    /// Keys that differ only in case, or by a space at the end, are one.
    FoldsKeys,
    /// `split` leaves out the last key.
    SplitsShort,
    /// Tables are one and the same.
    OneTable,
    /// Whole numbers go through floats.
    Rounds,
    /// Spaces at the end of texts go.
    Trims,
    /// A batch is written up to the row that is refused.
    HalfWrites,
    /// A refused row is left out, and the rest written.
    SkipsRefused,
    /// What is refused is not named.
    NamesNothing,
    /// `load` replaces nothing and says nothing.
    LoadsOver,
    /// A put waits for a scan to end.
    Locks,
    /// Writes of several tasks get lost.
    Races,
    /// Nulls are equal to nothing.
    NullsDiffer,
    /// Numbers are equal only if of one kind.
    NumbersDiffer,
    /// A limit is taken before the order.
    LimitsFirst,
    /// Ties are in any order.
    LooseTies,
    /// The query's fields are not looked at.
    NoProjection,
    /// It does not say what version it is.
    NoVersion,
    /// A conditional write takes place whatever is there.
    WritesAnyway,
    /// A conditional write compares without regard to case and spaces at the end.
    ExpectsLoosely,
    /// A conditional write takes a number for the text of its digits.
    ExpectsDigits,
    /// A conditional write takes place, and the answer is no.
    DeniesIt,
    /// Between the look at what is there and the write, another writer may come.
    LooksFirst,
    /// Where none is expected, the record is written over.
    ReplacesOne,
    /// `remove_if` deletes without a look.
    RemovesAnyway,
    /// A table that was dropped stays in the list.
    ListsDropped,
    /// A table is in the list as soon as somebody has named it.
    ListsNamed,
    /// Tables are listed in the order of their letters, not of their bytes.
    ListsByLetters,
}

impl Flaw {
    /// All there are, with the check of the contract that must find it.
    pub const ALL: [(Flaw, &'static str); 35] = [
        (Flaw::PrepareEmpties, "prepare again"),
        (Flaw::DropsLast, "batches"),
        (Flaw::Merges, "put replaces"),
        (Flaw::KeepsOld, "put replaces"),
        (Flaw::FirstWins, "put replaces"),
        (Flaw::Miscounts, "batches"),
        (Flaw::SortsAnswers, "answers in order"),
        (Flaw::SkipsMissing, "answers in order"),
        (Flaw::CountsKeys, "remove"),
        (Flaw::DeletesAll, "delete"),
        (Flaw::Reverses, "scan"),
        (Flaw::IncludesEnd, "scan"),
        (Flaw::RepeatsAtBorder, "scan"),
        (Flaw::FoldsKeys, "keys differ"),
        (Flaw::SplitsShort, "split"),
        (Flaw::OneTable, "tables"),
        (Flaw::Rounds, "kinds of value"),
        (Flaw::Trims, "kinds of value"),
        (Flaw::HalfWrites, "refused batches"),
        (Flaw::SkipsRefused, "refused batches"),
        (Flaw::NamesNothing, "limits"),
        (Flaw::LoadsOver, "load"),
        (Flaw::Locks, "put inside a scan"),
        (Flaw::Races, "tasks"),
        (Flaw::NoVersion, "describe"),
        (Flaw::WritesAnyway, "conditional writes"),
        (Flaw::ExpectsLoosely, "conditional texts"),
        (Flaw::ExpectsDigits, "conditional kinds"),
        (Flaw::DeniesIt, "conditional writes"),
        (Flaw::LooksFirst, "conditional writers"),
        (Flaw::ReplacesOne, "conditional writes"),
        (Flaw::RemovesAnyway, "conditional removes"),
        (Flaw::ListsDropped, "list of tables"),
        (Flaw::ListsNamed, "list of tables"),
        (Flaw::ListsByLetters, "list of tables"),
    ];

    /// Those that only queries find.
    pub const OF_QUERIES: [Flaw; 5] = [
        Flaw::NullsDiffer,
        Flaw::NumbersDiffer,
        Flaw::LimitsFirst,
        Flaw::LooseTies,
        Flaw::NoProjection,
    ];
}

type Tables = Arc<Mutex<HashMap<String, Vec<Row>>>>;

pub struct Naive {
    flaw: Flaw,
    tables: Tables,
    table: String,
    /// Held by a scan that is under way, where that is the flaw.
    lock: Arc<tokio::sync::RwLock<()>>,
    abilities: Abilities,
}

impl Naive {
    pub fn new(flaw: Flaw) -> Naive {
        let abilities = Abilities {
            driver: "naive",
            keeps: &Kind::ALL,
            loses: "",
            cannot: &[Need::Nested],
            joins: false,
            atomic: true,
            conditional: true,
            ordered: true,
            max_key: 200,
            max_record: 1 << 20,
        };
        let lock = Arc::default();
        Naive { flaw, tables: Tables::default(), table: "first".into(), lock, abilities }
    }

    fn is(&self, flaw: Flaw) -> bool {
        self.flaw == flaw
    }

    fn held(&self) -> MutexGuard<'_, HashMap<String, Vec<Row>>> {
        self.tables.lock().expect("no panic")
    }

    fn rows(&self) -> Vec<Row> {
        self.held().get(&self.table).cloned().unwrap_or_default()
    }

    fn keep(&self, rows: Vec<Row>) {
        self.held().insert(self.table.clone(), rows);
    }

    fn same_key(&self, a: &Key, b: &Key) -> bool {
        match self.is(Flaw::FoldsKeys) {
            true => a.trim_end().to_lowercase() == b.trim_end().to_lowercase(),
            false => a == b,
        }
    }

    fn write(&self, rows: &[Row]) -> Result<()> {
        let mut all = self.rows();
        let mut before: Vec<Row> = Vec::new();
        for (i, row) in rows.iter().enumerate() {
            match self.check(row) {
                Err(_) if self.is(Flaw::SkipsRefused) => continue,
                Err(e) => {
                    if self.is(Flaw::HalfWrites) {
                        self.keep(all);
                    }
                    return Err(e);
                }
                Ok(()) => {}
            }
            if self.is(Flaw::DropsLast) && rows.len() > 999 && i == rows.len() - 1
                || self.is(Flaw::FirstWins) && before.iter().any(|b| b.key == row.key)
            {
                continue;
            }
            let row = Row { key: row.key.clone(), record: self.bent(&row.record) };
            match all.iter_mut().find(|old| self.same_key(&old.key, &row.key)) {
                Some(_) if self.is(Flaw::KeepsOld) => {}
                Some(old) if self.is(Flaw::Merges) => {
                    for (name, value) in row.record.iter() {
                        old.record.insert(name, value.clone());
                    }
                }
                Some(old) => old.record = row.record.clone(),
                None => all.push(row.clone()),
            }
            if self.is(Flaw::FirstWins) {
                before.push(row);
            }
        }
        self.keep(all);
        Ok(())
    }

    fn bent(&self, record: &Document) -> Document {
        let bend = |value: &Value| match value {
            Value::Int(n) if self.is(Flaw::Rounds) => Value::Int(*n as f64 as i64),
            Value::Text(text) if self.is(Flaw::Trims) => text.trim_end().into(),
            value => value.clone(),
        };
        record.iter().map(|(name, value)| (name, bend(value))).collect()
    }

    /// Whether a conditional write takes place.
    fn is_as(&self, key: &Key, expected: &Expected) -> bool {
        let there = self.rows().into_iter().find(|row| row.key == *key).map(|row| row.record);
        let loose = |text: &str| match self.flaw {
            Flaw::ExpectsLoosely => text.trim_end().to_lowercase(),
            _ => text.to_owned(),
        };
        match (expected, &there) {
            _ if self.is(Flaw::WritesAnyway) => true,
            (Expected::Field { name, text }, Some(record)) => match record.get(name) {
                Some(Value::Text(is)) => loose(is) == loose(text),
                Some(Value::Int(n)) if self.is(Flaw::ExpectsDigits) => n.to_string() == *text,
                _ => false,
            },
            (Expected::Absent, there) => there.is_none() || self.is(Flaw::ReplacesOne),
            _ => false,
        }
    }

    fn fits(&self, query: &Query, row: &Row) -> bool {
        let strict = |value: &Value, with: &Value| match self.flaw {
            Flaw::NullsDiffer => *with != Value::Null,
            Flaw::NumbersDiffer => value.kind() == with.kind() || value.kind() == Kind::Null,
            _ => true,
        };
        use steelyard::store::query::Test;
        if let Filter::Field(path, Test::Eq(with)) = &query.filter {
            let value = row.record.get(&path.names()[0]).unwrap_or(&Value::Null);
            if !path.is_key() && !strict(value, with) {
                return false;
            }
        }
        query.matches(&row.key, &row.record)
    }
}

/// Batches of three, so that even a few rows are several.
const BATCH: usize = 3;

#[async_trait]
impl Store for Naive {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn shape(&self) -> Shape {
        Shape::Document
    }

    fn table(&self, name: &str) -> Result<Arc<dyn Store>> {
        let table = if self.is(Flaw::OneTable) { &self.table } else { name };
        if self.is(Flaw::ListsNamed) {
            self.held().entry(table.to_owned()).or_default();
        }
        Ok(Arc::new(Naive {
            flaw: self.flaw,
            tables: self.tables.clone(),
            table: table.to_owned(),
            lock: self.lock.clone(),
            abilities: self.abilities.clone(),
        }))
    }

    async fn tables(&self) -> Result<Vec<String>> {
        let mut names: Vec<String> = self.held().keys().cloned().collect();
        names.sort();
        if self.is(Flaw::ListsByLetters) {
            names.sort_by_key(|name| name.to_lowercase());
        }
        Ok(names)
    }

    fn blobs(&self) -> Option<(&dyn Blobs, &Wrapped)> {
        None
    }

    fn check(&self, row: &Row) -> Result<()> {
        let shown = if self.is(Flaw::NamesNothing) { String::new() } else { row.key.shown() };
        if row.key.len() > self.abilities.max_key {
            return Err(Error::invalid(format!("key {shown} is too long")));
        }
        let size = format!("{:?}", row.record).len();
        if size > self.abilities.max_record {
            let what = format!("key {shown}: a record of {size} bytes");
            return Err(Error::new(ErrorKind::TooLarge, what));
        }
        Ok(())
    }

    async fn prepare(&self, _: &Layout) -> Result<()> {
        if self.is(Flaw::PrepareEmpties) {
            self.keep(Vec::new());
        }
        self.held().entry(self.table.clone()).or_default();
        Ok(())
    }

    async fn put(&self, rows: &[Row]) -> Result<()> {
        if self.is(Flaw::Races) {
            let mut seen = self.rows();
            tokio::task::yield_now().await;
            seen.retain(|old| rows.iter().all(|row| row.key != old.key));
            seen.extend_from_slice(rows);
            self.keep(seen);
            return Ok(());
        }
        let _lock = self.lock.write().await;
        self.write(rows)
    }

    async fn load(&self, rows: &[Row]) -> Result<()> {
        let mut keys: HashSet<Key> = self.rows().into_iter().map(|row| row.key).collect();
        if self.is(Flaw::LoadsOver) {
            let new: Vec<_> = rows.iter().filter(|row| !keys.contains(&row.key)).cloned().collect();
            return self.put(&new).await;
        }
        match rows.iter().find(|row| !keys.insert(row.key.clone())) {
            Some(row) => Err(Error::new(ErrorKind::Conflict, format!("key {}", row.key.shown()))),
            None => self.put(rows).await,
        }
    }

    async fn put_if(&self, row: &Row, expected: &Expected) -> Result<bool> {
        self.check(row)?;
        let mut lock = Some(self.lock.write().await);
        if !self.is_as(&row.key, expected) {
            return Ok(false);
        }
        if self.is(Flaw::LooksFirst) {
            lock.take();
            tokio::task::yield_now().await;
        }
        self.write(slice::from_ref(row))?;
        Ok(!self.is(Flaw::DeniesIt))
    }

    async fn remove_if(&self, key: &Key, expected: &Expected) -> Result<bool> {
        let _lock = self.lock.write().await;
        match self.is_as(key, expected) || self.is(Flaw::RemovesAnyway) {
            true => Ok(self.remove(slice::from_ref(key)).await? > 0),
            false => Ok(false),
        }
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Document>>> {
        let all = self.rows();
        let mut keys = keys.to_vec();
        if self.is(Flaw::SortsAnswers) {
            keys.sort();
        }
        let one = |key| all.iter().find(|row| self.same_key(&row.key, key));
        let found = keys.iter().map(|key| one(key).map(|row| row.record.clone()));
        Ok(found.filter(|found| found.is_some() || !self.is(Flaw::SkipsMissing)).collect())
    }

    async fn find(&self, query: &Query) -> Result<Rows<'_>> {
        query.check()?;
        self.abilities.can(query)?;
        let mut rows: Vec<Row> =
            self.rows().into_iter().filter(|row| self.fits(query, row)).collect();
        let limit = usize::try_from(query.limit.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        if self.is(Flaw::LimitsFirst) {
            rows.truncate(limit);
        }
        if !query.sort.is_empty() {
            rows.sort_by(|a, b| query.order(a, b));
            if self.is(Flaw::LooseTies) {
                // Keys are told apart by their last letter, then: descending.
                let loose = |row: &Row| Row { key: Key::new("k").unwrap(), ..row.clone() };
                rows.sort_by(|a, b| b.key.cmp(&a.key));
                rows.sort_by(|a, b| query.order(&loose(a), &loose(b)));
            }
        }
        rows.truncate(limit);
        if !self.is(Flaw::NoProjection) {
            for row in &mut rows {
                row.record = query.project(std::mem::take(&mut row.record));
            }
        }
        Ok(batches(rows))
    }

    async fn delete(&self, filter: &Filter) -> Result<u64> {
        let query = Query::new(filter.clone());
        query.check()?;
        self.abilities.can(&query)?;
        let fits = |row: &Row| self.is(Flaw::DeletesAll) || self.fits(&query, row);
        let (gone, left): (Vec<_>, Vec<_>) = self.rows().into_iter().partition(fits);
        self.keep(left);
        Ok(gone.len() as u64)
    }

    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        let all = self.rows();
        let gone = |row: &Row| keys.iter().any(|key| self.same_key(key, &row.key));
        let left: Vec<_> = all.iter().filter(|row| !gone(row)).cloned().collect();
        let removed = all.len() - left.len();
        self.keep(left);
        Ok(if self.is(Flaw::CountsKeys) { keys.len() } else { removed } as u64)
    }

    async fn scan(&self, range: &KeyRange) -> Result<Rows<'_>> {
        let past = |key: &Key| range.until.as_ref() == Some(key) && self.is(Flaw::IncludesEnd);
        let mut rows = self.rows();
        rows.retain(|row| range.contains(&row.key) || past(&row.key));
        rows.sort_by(|a, b| a.key.cmp(&b.key));
        if self.is(Flaw::Reverses) {
            rows.reverse();
        }
        if self.is(Flaw::RepeatsAtBorder) && rows.len() > 1000 {
            rows.insert(1000, rows[999].clone());
        }
        if self.is(Flaw::Locks) {
            let lock = self.lock.clone().read_owned().await;
            return Ok(batches(rows).inspect(move |_| _ = &lock).boxed());
        }
        Ok(batches(rows))
    }

    async fn count(&self) -> Result<u64> {
        Ok(self.rows().len() as u64 + u64::from(self.is(Flaw::Miscounts)))
    }

    async fn split(&self, parts: u32) -> Result<Vec<KeyRange>> {
        let mut keys: Vec<Key> = self.rows().into_iter().map(|row| row.key).collect();
        keys.sort();
        let border = |i: usize| keys.get(i * keys.len() / parts.max(1) as usize).cloned();
        let mut ranges = KeyRange::between((1..parts as usize).filter_map(border).collect());
        if self.is(Flaw::SplitsShort) {
            ranges.last_mut().expect("one at least").until = keys.pop();
        }
        Ok(ranges)
    }

    async fn drop_table(&self) -> Result<()> {
        match self.flaw {
            Flaw::ListsDropped => self.keep(Vec::new()),
            _ => drop(self.held().remove(&self.table)),
        }
        Ok(())
    }

    async fn describe(&self) -> Result<Description> {
        let version = if self.is(Flaw::NoVersion) { "" } else { "1" };
        Ok(Description {
            client: Client::Own,
            product: "naive".into(),
            version: version.into(),
            shape: Shape::Document,
            format: None,
            asked: None,
            set: None,
            bound: None,
            limit: None,
            settings: Vec::new(),
            disk: None,
        })
    }
}

fn batches<'a>(rows: Vec<Row>) -> Rows<'a> {
    let batches: Vec<_> = rows.chunks(BATCH).map(|batch| Ok(batch.to_vec())).collect();
    stream::iter(batches).boxed()
}
