//! The records of a workload, made where they are needed and not all at once.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    path::{Path as FilePath, PathBuf},
    sync::Arc,
};

use super::value_kinds::Kinds;
use crate::{
    Error, ErrorKind, Result,
    random::Random,
    record::{Document, Value, dataset::Dataset},
    results::Dataset as Described,
    stop::Stop,
    store::{Column, Index, Key, Layout, Row, Shape, query::Path},
    workload::{Draw, Spread, Table, Trace},
};

/// Records of the user's own.
pub struct OwnRecords {
    pub(super) rows: Arc<Vec<Row>>,
    /// What is said of them.
    pub(super) described: Described,
}

impl OwnRecords {
    /// These records. Whatever they call their key need not be there in all of them: their keys are
    /// their places, from 0.
    pub fn new(documents: Vec<Document>, described: Described) -> OwnRecords {
        let row = |(n, record)| Row { key: place(n as u64), record };
        let rows = documents.into_iter().enumerate().map(row).collect();
        OwnRecords { rows: Arc::new(rows), described }
    }

    /// These records, whose keys are what they have in a field.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid), naming the record, where one has no key there or that of
    /// another.
    pub fn keyed(
        documents: Vec<Document>,
        field: &str,
        described: Described,
    ) -> Result<OwnRecords> {
        let mut known: HashMap<Key, usize> = HashMap::with_capacity(documents.len());
        let mut rows = Vec::with_capacity(documents.len());
        for (n, record) in documents.into_iter().enumerate() {
            let key = Key::of(&record, field)
                .map_err(|e| Error::invalid(format!("{}: {}", readable(n + 1), e.context())))?;
            if let Some(other) = known.insert(key.clone(), n + 1) {
                return Err(Error::invalid(format!(
                    "{} and {} have the same key {} in {field:?}",
                    readable(other),
                    readable(n + 1),
                    key.shown()
                )));
            }
            rows.push(Row { key, record });
        }
        Ok(OwnRecords { rows: Arc::new(rows), described })
    }
}

/// A record by its place among those that could be read: what could not was left out before.
fn readable(n: usize) -> String {
    let ending = match (n % 100, n % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("the {n}{ending} readable record")
}

/// The key of a record whose place in the file is its name.
fn place(n: u64) -> Key {
    Key::new(n.to_string()).expect("digits are a key")
}

/// The records of a table.
#[derive(Clone)]
pub(crate) struct Records {
    source: Source,
    /// How many.
    pub count: u64,
    key: Option<String>,
    seed: u64,
    /// The records that traces ask for, by the files of the traces.
    traces: HashMap<PathBuf, Arc<[u64]>>,
    /// Where it is set, no record is made any more: whatever goes through many of them ends.
    pub stop: Stop,
}

#[derive(Clone)]
enum Source {
    Made(Dataset),
    Held(Arc<Vec<Row>>),
}

impl Records {
    /// Those of a table, or `held` in their place.
    pub(crate) fn new(table: &Table, held: Option<Arc<Vec<Row>>>, seed: u64) -> Result<Records> {
        match held {
            Some(held) => Ok(Records {
                count: held.len() as u64,
                source: Source::Held(held),
                key: table.key.clone(),
                seed,
                traces: HashMap::new(),
                stop: Stop::default(),
            }),
            None if table.dataset.document(seed, 0).is_none() => {
                let what = format!(
                    "table {}: dataset {} is one of MARC records, which have to be given as a file",
                    table.name,
                    table.dataset.name()
                );
                Err(Error::unsupported(what)
                    .with_hint("generate a file, and give it with --records"))
            }
            None => Ok(Records {
                source: Source::Made(table.dataset),
                count: table.count,
                key: table.key.clone().or_else(|| Some(table.dataset.info().key?.to_owned())),
                seed,
                traces: HashMap::new(),
                stop: Stop::default(),
            }),
        }
    }

    /// Reads a trace, finds which record each of its operations is for, and says what was found.
    ///
    /// A key that is the key of a record stands for that record. The others are taken by how often they
    /// are asked for, and each stands for one of the other records, drawn at random: what is asked for
    /// how often, and when again, is as in the trace, and every operation finds its record.
    ///
    /// # Errors
    /// As [`Trace::read`].
    pub(crate) fn follow(&mut self, file: &FilePath) -> Result<String> {
        let trace = Trace::read(file)?;
        let mut records: HashMap<String, u64> = HashMap::with_capacity(self.count as usize);
        for n in 0..self.count {
            records.insert(self.key(n)?.to_string(), n);
        }
        let mut numbers: Vec<Option<u64>> =
            trace.keys.iter().map(|key| records.get(key).copied()).collect();
        let known = numbers.iter().flatten().count();
        let used: HashSet<u64> = numbers.iter().flatten().copied().collect();
        let mut free: Vec<u64> = (0..self.count).filter(|n| !used.contains(n)).collect();
        if free.is_empty() {
            free = (0..self.count).collect();
        }
        Random::new(self.seed).shuffle(&mut free);
        let mut often = vec![0u64; trace.keys.len()];
        trace.operations.iter().for_each(|at| often[*at as usize] += 1);
        let mut others: Vec<usize> = (0..numbers.len()).filter(|i| numbers[*i].is_none()).collect();
        others.sort_by_key(|i| std::cmp::Reverse(often[*i]));
        for (rank, i) in others.iter().enumerate() {
            numbers[*i] = free.get(rank % free.len().max(1)).copied();
        }
        let asked: Vec<u64> =
            trace.operations.iter().filter_map(|at| numbers[*at as usize]).collect();
        let several = match others.len() > free.len() {
            true => " (several for one: there are more keys than records)",
            false => "",
        };
        let told = format!(
            "keys are those of {} ({}): {} operations on {} keys, of which {known} are keys of these              records and {} stand for others of them by how often they are asked for{several}",
            file.display(),
            trace.kind.about(),
            trace.operations.len(),
            trace.keys.len(),
            others.len(),
        );
        self.traces.insert(file.to_owned(), asked.into());
        Ok(told)
    }

    /// The operations of a trace that was read, as numbers of records; none where there is none.
    pub(crate) fn trace(&self, spread: &Spread) -> Option<&Arc<[u64]>> {
        match spread {
            Spread::Trace(file) => self.traces.get(file),
            _ => None,
        }
    }

    /// What draws numbers of records.
    pub(crate) fn draw(&self, spread: &Spread, seed: u64) -> Draw {
        match self.trace(spread) {
            Some(trace) => Draw::of_trace(Arc::clone(trace), self.count, seed),
            None => Draw::new(spread.clone(), self.count, seed),
        }
    }

    /// Record `n` with what the record `by` places further has, under its own key: over all records
    /// as many bytes as before. The same record where `by` is 0.
    pub(crate) fn shifted(&self, n: u64, by: u64) -> Result<Row> {
        let key = self.key(n)?;
        let mut record = self.document((n + by) % self.count.max(1));
        if let Some(field) = &self.key {
            let own = self.document(n);
            if let Some(value) = own.get(field) {
                record.insert(field, value.clone());
            }
        }
        Ok(Row { key, record })
    }

    /// Record `n`; those beyond the last are made likewise, where they are made.
    pub(crate) fn document(&self, n: u64) -> Document {
        match &self.source {
            Source::Made(dataset) => dataset.document(self.seed, n).unwrap_or_default(),
            Source::Held(held) => held[(n % held.len().max(1) as u64) as usize].record.clone(),
        }
    }

    /// The key of record `n`.
    ///
    /// # Errors
    /// Where the run is to end.
    pub(crate) fn key(&self, n: u64) -> Result<Key> {
        self.stop.check()?;
        match (&self.source, &self.key) {
            (Source::Held(held), _) if n < self.count => Ok(held[n as usize].key.clone()),
            (Source::Made(_), Some(field)) => Key::of(&self.document(n), field),
            // A new one, beside keys that could be anything.
            (Source::Held(_), Some(_)) => Key::new(format!("steelyard-{n}")),
            _ => Ok(place(n)),
        }
    }

    /// Record `n` with its key.
    ///
    /// # Errors
    /// Where the run is to end.
    pub(crate) fn row(&self, n: u64) -> Result<Row> {
        self.stop.check()?;
        let record = self.document(n);
        let key = match (&self.source, &self.key) {
            (Source::Made(_), Some(field)) => Key::of(&record, field)?,
            _ => self.key(n)?,
        };
        Ok(Row { key, record })
    }

    /// The records of these keys, of those that were there at first.
    pub(crate) fn of(&self, keys: &HashSet<Key>) -> Result<HashMap<Key, Document>> {
        let mut found = HashMap::with_capacity(keys.len());
        if let (Source::Made(_), None) = (&self.source, &self.key) {
            let number = |key: &Key| key.parse::<u64>().ok();
            let found = keys.iter().filter_map(|k| Some((k.clone(), self.document(number(k)?))));
            return Ok(found.collect());
        }
        for n in 0..self.count {
            if found.len() == keys.len() {
                break;
            }
            let row = match &self.source {
                Source::Held(held) if !keys.contains(&held[n as usize].key) => continue,
                _ => self.row(n)?,
            };
            if keys.contains(&row.key) {
                found.insert(row.key, row.record);
            }
        }
        Ok(found)
    }

    /// Records from `from` up to, but without, `until`, which are there.
    pub(crate) fn rows(&self, from: u64, until: u64) -> Result<Cow<'_, [Row]>> {
        match &self.source {
            Source::Made(_) => (from..until).map(|n| self.row(n)).collect(),
            Source::Held(held) => Ok(Cow::Borrowed(&held[from as usize..until as usize])),
        }
    }

    /// How they are to lie: columns are found from a sample, kinds of indexes from a larger one.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) where columns cannot hold them.
    pub(crate) fn layout(&self, table: &Table, shape: Shape) -> Result<Layout> {
        const SAMPLE: u64 = 1_000;
        let step = (self.count / SAMPLE).max(1);
        let sample: Vec<Document> =
            (0..self.count).step_by(step as usize).map(|n| self.document(n)).collect();
        let mut layout = Layout::plain();
        if shape == Shape::Columns {
            let columns = Column::infer(&sample).map_err(|e| match e.kind() {
                ErrorKind::Invalid => Error::unsupported(e.context().to_owned()),
                _ => e,
            });
            layout = layout.with_columns(columns?);
        }
        for path in &table.index {
            layout.indexes.push(self.index(path)?);
        }
        Ok(layout)
    }

    /// An index on a path, of the kind that most of the values there are.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) where no record has any.
    pub(crate) fn index(&self, path: &Path) -> Result<Index> {
        let kinds = Kinds::of(self, path, self.seed);
        // What was interrupted has not seen all there is.
        self.stop.check()?;
        let kind = kinds.usual().ok_or_else(|| {
            Error::invalid(format!("no record has a field {path} to make an index of"))
        })?;
        Ok(Index { path: path.clone(), kind })
    }
}

/// What lies under these names.
pub(super) fn value<'a>(document: &'a Document, names: &[String]) -> Option<&'a Value> {
    let (first, rest) = names.split_first()?;
    let value = document.get(first)?;
    match rest {
        [] => Some(value),
        rest => self::value(value.as_map()?, rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_named_by_their_place_among_the_readable() {
        for (n, said) in
            [(1, "1st"), (2, "2nd"), (3, "3rd"), (11, "11th"), (22, "22nd"), (113, "113th")]
        {
            assert_eq!(readable(n), format!("the {said} readable record"));
        }
    }
}
