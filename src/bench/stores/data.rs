//! The records of a workload, made where they are needed and not all at once, and what must come out
//! of each phase: the counts are known before a store is asked.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    path::{Path as FilePath, PathBuf},
    sync::Arc,
};

use super::{
    kinds::Kinds,
    relate::{Belong, naming, naming_in_pairs},
};
use crate::{
    Error, ErrorKind, Result,
    bench::{
        random::Random,
        results::Dataset as Described,
        workload::{Act, Draw, Phase, Range, Relation, Spread, Table, Trace, Workload},
    },
    record::{Document, Value, dataset::Dataset},
    store::{Column, Filter, Index, Key, Layout, Query, Row, Shape, query::Path},
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
pub(super) struct Records {
    source: Source,
    /// How many.
    pub count: u64,
    key: Option<String>,
    seed: u64,
    /// The records that traces ask for, by the files of the traces.
    traces: HashMap<PathBuf, Arc<[u64]>>,
}

#[derive(Clone)]
enum Source {
    Made(Dataset),
    Held(Arc<Vec<Row>>),
}

impl Records {
    /// Those of a table, or `held` in their place.
    pub fn new(table: &Table, held: Option<Arc<Vec<Row>>>, seed: u64) -> Result<Records> {
        match held {
            Some(held) => Ok(Records {
                count: held.len() as u64,
                source: Source::Held(held),
                key: table.key.clone(),
                seed,
                traces: HashMap::new(),
            }),
            None if table.dataset.document(seed, 0).is_none() => Err(Error::unsupported(format!(
                "table {}: dataset {} is one of MARC records; generate a file and give it with --records",
                table.name,
                table.dataset.name()
            ))),
            None => Ok(Records {
                source: Source::Made(table.dataset),
                count: table.count,
                key: table.key.clone(),
                seed,
                traces: HashMap::new(),
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
    pub fn follow(&mut self, file: &FilePath) -> Result<String> {
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
    pub fn trace(&self, spread: &Spread) -> Option<&Arc<[u64]>> {
        match spread {
            Spread::Trace(file) => self.traces.get(file),
            _ => None,
        }
    }

    /// What draws numbers of records.
    pub fn draw(&self, spread: &Spread, seed: u64) -> Draw {
        match self.trace(spread) {
            Some(trace) => Draw::of_trace(Arc::clone(trace), self.count, seed),
            None => Draw::new(spread.clone(), self.count, seed),
        }
    }

    /// Record `n` with what the record `by` places further has, under its own key: over all records
    /// as many bytes as before. The same record where `by` is 0.
    pub fn shifted(&self, n: u64, by: u64) -> Result<Row> {
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
    pub fn document(&self, n: u64) -> Document {
        match &self.source {
            Source::Made(dataset) => dataset.document(self.seed, n).unwrap_or_default(),
            Source::Held(held) => held[(n % held.len().max(1) as u64) as usize].record.clone(),
        }
    }

    /// The key of record `n`.
    pub fn key(&self, n: u64) -> Result<Key> {
        match (&self.source, &self.key) {
            (Source::Held(held), _) if n < self.count => Ok(held[n as usize].key.clone()),
            (Source::Made(_), Some(field)) => Key::of(&self.document(n), field),
            // A new one, beside keys that could be anything.
            (Source::Held(_), Some(_)) => Key::new(format!("steelyard-{n}")),
            _ => Ok(place(n)),
        }
    }

    /// Record `n` with its key.
    pub fn row(&self, n: u64) -> Result<Row> {
        let record = self.document(n);
        let key = match (&self.source, &self.key) {
            (Source::Made(_), Some(field)) => Key::of(&record, field)?,
            _ => self.key(n)?,
        };
        Ok(Row { key, record })
    }

    /// The records of these keys, of those that were there at first.
    pub fn of(&self, keys: &HashSet<Key>) -> Result<HashMap<Key, Document>> {
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
    pub fn rows(&self, from: u64, until: u64) -> Result<Cow<'_, [Row]>> {
        match &self.source {
            Source::Made(_) => (from..until).map(|n| self.row(n)).collect(),
            Source::Held(held) => Ok(Cow::Borrowed(&held[from as usize..until as usize])),
        }
    }

    /// How they are to lie: columns are found from a sample, kinds of indexes from a larger one.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) where columns cannot hold them.
    pub fn layout(&self, table: &Table, shape: Shape) -> Result<Layout> {
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
    pub fn index(&self, path: &Path) -> Result<Index> {
        let kind = Kinds::of(self, path, self.seed).usual().ok_or_else(|| {
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

/// What must come out of a phase.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expected {
    /// So many records.
    Records(u64),
    /// As many as there are numbers in the range that is drawn; these are all of them, sorted.
    Numbers(Vec<i64>),
    /// To each key so many; nothing to those that are not among them.
    Belonging(Arc<HashMap<String, Belong>>),
    /// It cannot be known beforehand: an earlier phase has changed records.
    Unknown,
}

/// What must come out of each phase, from the records themselves.
///
/// Where `stop` says so it ends at once; what it gives then is of no use.
pub(super) fn expected(
    workload: &Workload,
    records: &[(String, Records)],
    stop: &dyn Fn() -> bool,
) -> Vec<Expected> {
    let mut gone: Vec<(&str, &Filter)> = Vec::new();
    let mut changed: Vec<&str> = Vec::new();
    let mut all = Vec::with_capacity(workload.phases.len());
    let records_of = |name: &str| records.iter().find(|r| r.0 == name).map(|r| &r.1);
    for phase in &workload.phases {
        let table = phase.table.as_str();
        let known = !changed.contains(&table);
        let gone_here: Vec<&Filter> = gone.iter().filter(|g| g.0 == table).map(|g| g.1).collect();
        all.push(match records_of(table) {
            Some(records) if known => match &phase.act {
                Act::Relate { by, to, field } => {
                    let untouched =
                        !changed.contains(&to.as_str()) && !gone.iter().any(|g| g.0 == to);
                    let to = records_of(to).filter(|_| untouched);
                    to.map_or(Expected::Unknown, |to| belonging(*by, to, field, stop))
                }
                _ => count(phase, records, &gone_here, stop),
            },
            _ => Expected::Unknown,
        });
        match &phase.act {
            Act::Delete(filter) => gone.push((table, filter)),
            act if act.changes() => changed.push(table),
            _ => {}
        }
    }
    all
}

/// A range is drawn among whole numbers, so nothing else may be in its field.
fn only_whole_numbers(phase: &str, field: &Path, records: &Records) -> Result<()> {
    for n in 0..records.count {
        let document = records.document(n);
        let kind = match value(&document, field.names()) {
            None | Some(Value::Null | Value::Int(_)) => continue,
            Some(other) => other.kind().name(),
        };
        return Err(Error::invalid(format!(
            "phase {phase}: a range is of whole numbers, and {field} of record {} holds a {kind}; ask \
             for such values with `where`",
            n + 1
        )));
    }
    Ok(())
}

/// The numbers of so many records, until somebody says to stop.
fn numbers(count: u64, stop: &dyn Fn() -> bool) -> impl Iterator<Item = u64> {
    const OFTEN: u64 = 1 << 10;
    (0..count).take_while(move |n| !n.is_multiple_of(OFTEN) || !stop())
}

/// What belongs to whom, where it is found by what it names.
fn belonging(by: Relation, to: &Records, field: &Path, stop: &dyn Fn() -> bool) -> Expected {
    let documents = || numbers(to.count, stop).map(|n| to.document(n));
    Expected::Belonging(Arc::new(match by {
        Relation::Index | Relation::Join => naming(documents(), field),
        Relation::Pairs => naming_in_pairs(documents, field),
        Relation::Embedded | Relation::References => return Expected::Unknown,
    }))
}

/// Whether the queries of a workload can be asked of these records, before any store is started.
///
/// # Errors
/// [`Invalid`](ErrorKind::Invalid), naming the phase, for a field that is in no record, and for a query
/// that nothing answers where the workload does not say that it is meant so.
pub(super) fn sound(
    workload: &Workload,
    records: &[(String, Records)],
    expected: &[Expected],
    stop: &dyn Fn() -> bool,
) -> Result<()> {
    let mut set: Vec<(&str, &str)> = Vec::new();
    for (phase, expected) in workload.phases.iter().zip(expected) {
        let Some((_, of)) = records.iter().find(|r| r.0 == phase.table) else { continue };
        let mut paths: Vec<Path> = Vec::new();
        match &phase.act {
            Act::Find { filter, range, sort, .. } => {
                filter.tests(&mut |path, _| paths.push(path.clone()));
                paths.extend(sort.iter().map(|(path, _)| path.clone()));
                paths.extend(range.iter().map(|range| range.field.clone()));
            }
            Act::Delete(filter) => filter.tests(&mut |path, _| paths.push(path.clone())),
            Act::Index { paths: all, .. } => paths.extend_from_slice(all),
            Act::Update { set: fields, .. } => {
                set.extend(fields.iter().map(|(name, _)| (phase.table.as_str(), name)));
            }
            _ => {}
        }
        for path in paths.iter().filter(|path| !path.is_key()) {
            let is_set = set.contains(&(phase.table.as_str(), path.names()[0].as_str()));
            let there = |n: u64| value(&of.document(n), path.names()).is_some();
            if !is_set && !numbers(of.count, stop).any(there) && !stop() {
                let what = format!("phase {}: no record has a field {path}", phase.name);
                return Err(Error::invalid(what));
            }
        }
        let Act::Find { filter, range, expect, .. } = &phase.act else { continue };
        if let Some(range) = range {
            only_whole_numbers(&phase.name, &range.field, of)?;
        }
        let found = match (expected, range) {
            (Expected::Records(n), _) => Some(*n),
            (Expected::Numbers(numbers), Some(_)) if numbers.is_empty() => Some(0),
            _ => None,
        };
        match (found, expect) {
            (Some(0), None) => {
                return Err(Error::invalid(format!(
                    "phase {}: no record fits {filter}: nothing would be measured but how fast a \
                     store finds nothing; where that is meant, say expect = 0 in the workload",
                    phase.name
                )));
            }
            (Some(found), Some(expect)) if found != *expect => {
                return Err(Error::invalid(format!(
                    "phase {}: an answer has {found} records, not {expect} as expect says",
                    phase.name
                )));
            }
            _ => {}
        }
    }
    Ok(())
}

fn count(phase: &Phase, records: &Records, gone: &[&Filter], stop: &dyn Fn() -> bool) -> Expected {
    let gone: Vec<Query> = gone.iter().map(|filter| Query::new((*filter).clone())).collect();
    // What is there and fits.
    let fitting = |filter: &Filter| {
        let (query, gone) = (Query::new(filter.clone()), &gone);
        numbers(records.count, stop).filter_map(move |n| records.row(n).ok()).filter(move |row| {
            query.matches(&row.key, &row.record)
                && !gone.iter().any(|gone| gone.matches(&row.key, &row.record))
        })
    };
    match &phase.act {
        Act::Find { filter, range: Some(Range { field, .. }), .. } => {
            let number = |row: Row| match value(&row.record, field.names()) {
                Some(Value::Int(n)) => Some(*n),
                _ => None,
            };
            let mut numbers: Vec<i64> = fitting(filter).filter_map(number).collect();
            numbers.sort_unstable();
            Expected::Numbers(numbers)
        }
        Act::Find { filter, range: None, most, .. } => {
            let found = fitting(filter).count() as u64;
            Expected::Records(found.min(most.unwrap_or(u64::MAX)))
        }
        Act::Delete(filter) => Expected::Records(fitting(filter).count() as u64),
        Act::Scan if !gone.is_empty() => Expected::Records(fitting(&Filter::All).count() as u64),
        _ => Expected::Records(records.count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected_of(name: &str) -> (Workload, Vec<Expected>) {
        let workload = Workload::named(name).unwrap().scaled(0.1);
        let records: Vec<_> = (workload.tables.iter())
            .map(|table| (table.name.clone(), Records::new(table, None, 1).unwrap()))
            .collect();
        let expected = expected(&workload, &records, &|| false);
        (workload, expected)
    }

    #[test]
    fn counts_follow_from_the_records() {
        let (workload, expected) = expected_of("documents");
        let of = |name: &str| {
            let at = workload.phases.iter().position(|phase| phase.name == name).unwrap();
            match &expected[at] {
                Expected::Records(n) => *n,
                other => panic!("{name}: {other:?}"),
            }
        };
        assert_eq!(of("create"), 2_000);
        assert!((150..250).contains(&of("query")) && (340..460).contains(&of("delete")));
    }

    #[test]
    fn ranges_know_all_numbers_and_changed_tables_nothing() {
        let (workload, expected) = expected_of("inserts");
        let at = workload.phases.iter().position(|p| p.name.starts_with("range")).unwrap();
        let Expected::Numbers(numbers) = &expected[at] else { panic!("{:?}", expected[at]) };
        assert_eq!((numbers.len(), numbers[4], numbers[5]), (2_000, 0, 1));
        let (_, expected) = expected_of("mixed");
        assert_eq!(expected.last(), Some(&Expected::Unknown));
    }

    #[test]
    fn records_are_named_by_their_place_among_the_readable() {
        for (n, said) in
            [(1, "1st"), (2, "2nd"), (3, "3rd"), (11, "11th"), (22, "22nd"), (113, "113th")]
        {
            assert_eq!(readable(n), format!("the {said} readable record"));
        }
    }

    #[test]
    fn what_is_to_stop_stops_within_some_records() {
        let asked = std::cell::Cell::new(0);
        let stop = || {
            asked.set(asked.get() + 1);
            asked.get() > 3
        };
        assert!(numbers(u64::MAX, &stop).count() < 10_000);
    }
}
