//! A query means the same in every store: some hundreds of them, drawn from a seed, on records
//! that were drawn to be told apart, against what `Query::matches` and `Query::order` say.
//!
//! What a store says it cannot do, it must refuse; how many queries those are, is printed.

mod corpus;

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use futures_util::TryStreamExt;
use steelyard::{
    ErrorKind,
    record::{Document, Kind, Value, dataset::random::Random},
    store::{
        Column, Filter, Key, Layout, Query, Row, Shape, Store, difference, in_columns, one_by_one,
        query::Test,
    },
};

use self::corpus::Corpus;
use super::{
    naive::Flaw,
    places::{self, Fault, Fresh, Outcome, Subject, Wrap, ensure},
};

/// A store with the records of the corpus in it.
struct Filled {
    fresh: Fresh,
    corpus: Corpus,
    /// As they were handed in, and as columns would hold them.
    records: BTreeMap<Key, (Document, Document)>,
}

/// Those of these values, all of one kind, that the store holds.
async fn held(subject: &Subject, values: Vec<Value>) -> Result<Vec<Value>, Fault> {
    let row = |value: &Value| Row {
        key: Key::new("a key").expect("not empty"),
        record: Document::from_iter([("n", value.clone())]),
    };
    let fresh = subject.ready(&values.iter().map(row).collect::<Vec<_>>()).await?;
    let held = values.into_iter().filter(|v| fresh.store.check(&row(v)).is_ok()).collect();
    fresh.done().await?;
    Ok(held)
}

impl Filled {
    async fn new(subject: &Subject, seed: u64) -> Result<Filled, Fault> {
        Ok(Filled::with(subject, seed, &[]).await?.expect("any store can do without an index"))
    }

    /// With indexes on these paths; none where the store can have none of them.
    async fn with(
        subject: &Subject,
        seed: u64,
        indexes: &[(&str, Kind)],
    ) -> Result<Option<Filled>, Fault> {
        let probe = subject.open("").await?;
        let keeps = probe.store.abilities().keeps;
        let large = held(subject, [i64::MIN, i64::MAX].map(Value::Int).into()).await?.len() == 2;
        let floats = held(subject, corpus::FLOATS.map(Value::Float).into()).await?;
        let mut corpus = Corpus::new(subject.shape(), keeps, large, floats);
        // A column of numbers of 64 bits holds no others.
        if subject.shape() != Shape::Columns {
            corpus.long = held(subject, corpus::long()).await?;
        }
        // What a store may refuse is tried first, and left out where it does.
        let nested = corpus::NESTED.iter().filter(|_| subject.shape() != Shape::Columns);
        for name in nested.chain(&corpus::ODD_NAMES) {
            let mut trial = corpus.clone();
            trial.names.push(name);
            let rows = trial.rows(seed, 40);
            let layout = layout(subject.shape(), &rows)?;
            let fresh = subject.open("").await?;
            let prepared = fresh.store.prepare(&layout).await;
            let put = match prepared {
                Ok(()) => fresh.store.put(&rows).await,
                refused => refused,
            };
            match put {
                Ok(()) => corpus = trial,
                Err(e) => {
                    let fine = [ErrorKind::Invalid, ErrorKind::Unsupported].contains(&e.kind());
                    ensure!(fine, "a field named {name:?}: {e:?}");
                }
            }
            fresh.done().await?;
        }
        let rows = corpus.rows(seed, 300);
        let mut layout = layout(subject.shape(), &rows)?;
        for (path, kind) in indexes {
            let more = layout.clone().with_index(path.parse()?, *kind);
            let trial = subject.open("").await?;
            match trial.store.prepare(&more).await {
                Ok(()) => layout = more,
                Err(e) => ensure!(e.kind() == ErrorKind::Unsupported, "index on {path}: {e:?}"),
            }
            trial.done().await?;
        }
        if !indexes.is_empty() && layout.indexes.is_empty() {
            return Ok(None);
        }
        let fresh = subject.open("").await?;
        fresh.store.prepare(&layout).await?;
        fresh.store.load(&rows).await?;
        let held = |record: &Document| match subject.shape() {
            Shape::Columns => in_columns(record, &layout.columns),
            _ => record.clone(),
        };
        let records =
            rows.into_iter().map(|Row { key, record }| (key, (record.clone(), held(&record))));
        Ok(Some(Filled { fresh, corpus, records: records.collect() }))
    }

    fn store(&self) -> &dyn Store {
        &*self.fresh.store
    }

    /// The keys that a query asks for, in its order.
    fn expected(&self, query: &Query) -> Vec<Key> {
        let fits = self.records.iter().filter(|(key, (record, _))| query.matches(key, record));
        let mut rows: Vec<Row> =
            fits.map(|(k, (r, _))| Row { key: k.clone(), record: r.clone() }).collect();
        if !query.sort.is_empty() {
            rows.sort_by(|a, b| query.order(a, b));
            rows.truncate(query.limit.map_or(usize::MAX, |n| n as usize));
        }
        rows.into_iter().map(|row| row.key).collect()
    }

    /// Whether a store's answer is right.
    fn judged(&self, query: &Query, found: &[Row]) -> Outcome {
        let want = self.expected(query);
        let keys: Vec<Key> = found.iter().map(|row| row.key.clone()).collect();
        if query.sort.is_empty() {
            let limit = query.limit.map_or(usize::MAX, |n| n as usize);
            let (set, all): (HashSet<_>, HashSet<_>) =
                (keys.iter().collect(), want.iter().collect());
            let wrong: Vec<_> = set.difference(&all).take(5).collect();
            let missed: Vec<_> = all.difference(&set).take(5).collect();
            ensure!(set.len() == keys.len(), "some come twice: {keys:?}");
            ensure!(wrong.is_empty(), "not asked for: {}", self.shown(&wrong));
            let enough = keys.len() == want.len().min(limit);
            ensure!(enough, "{} of {}, without {}", keys.len(), want.len(), self.shown(&missed));
        } else if let Some(at) =
            (0..keys.len().max(want.len())).find(|&i| keys.get(i) != want.get(i))
        {
            let shown = |keys: &[Key]| match keys.get(at) {
                Some(key) => self.shown(&[&key]),
                None => "the end".into(),
            };
            let what = format!("at {at}: {} instead of {}", shown(&keys), shown(&want));
            return Err(Fault::new(what));
        }
        for row in found {
            let (_, held) = &self.records[&row.key];
            let want = query.project(held.clone());
            let difference = difference(&want, &row.record, self.store().abilities().keeps);
            ensure!(difference.is_none(), "key {:?}: {}", row.key, difference.unwrap_or_default());
        }
        Ok(())
    }

    fn shown(&self, keys: &[&&Key]) -> String {
        let one = |key: &&&Key| format!("{key:?} {:?}", self.records.get(**key).map(|(r, _)| r));
        keys.iter().map(one).collect::<Vec<_>>().join("; ")
    }

    async fn find(&self, query: &Query) -> steelyard::Result<Vec<Row>> {
        one_by_one(self.store().find(query).await?).try_collect().await
    }

    /// Whether a query asks for a field with an odd name.
    fn is_odd(&self, query: &Query) -> bool {
        let shown = format!("{query:?}");
        corpus::ODD_NAMES.iter().any(|name| shown.contains(&format!("{name:?}")))
    }

    /// Asks, and judges the answer; false where the store cannot.
    async fn ask(&self, query: &Query) -> Result<bool, Fault> {
        let found = self.find(query).await;
        let can = self.store().abilities().can(query).is_ok()
            // Without any condition, records are gone through.
            || query.filter == Filter::All && query.sort.is_empty() && found.is_ok();
        match (can, found) {
            // A store may hold a name that it cannot look under.
            (true, Err(e)) if e.kind() == ErrorKind::Unsupported && self.is_odd(query) => Ok(false),
            (true, found) => self.judged(query, &found?).map(|()| true),
            (false, Err(e)) if e.kind() == ErrorKind::Unsupported => Ok(false),
            (false, other) => {
                let other = other.map(|rows| rows.len());
                Err(Fault::new(format_args!("declared that it cannot, and did: {other:?}")))
            }
        }
    }
}

fn layout(shape: Shape, rows: &[Row]) -> Result<Layout, Fault> {
    let columns = match shape {
        Shape::Columns => Column::infer(rows.iter().map(|row| &row.record))?,
        _ => Vec::new(),
    };
    Ok(Layout::plain().with_columns(columns))
}

async fn try_queries(subject: Arc<Subject>, seed: u64, count: u64) -> Outcome {
    let filled = Filled::new(&subject, seed).await?;
    try_on(filled, &subject, seed, count).await
}

/// The same where the fields that queries are about have indexes.
async fn try_with_indexes(subject: Arc<Subject>, seed: u64, count: u64) -> Outcome {
    let indexes: &[(&str, Kind)] = match subject.shape() {
        Shape::Blob => return Ok(()),
        Shape::Columns => &[
            ("n", Kind::Int),
            ("f", Kind::Float),
            ("t", Kind::Text),
            ("d", Kind::Time),
            ("b", Kind::Bool),
        ],
        Shape::Document => &[
            ("n", Kind::Int),
            ("t", Kind::Text),
            ("d", Kind::Text),
            ("b", Kind::Bool),
            ("m.x", Kind::Int),
            ("m.y.z", Kind::Text),
        ],
    };
    match Filled::with(&subject, seed, indexes).await? {
        None => Ok(()),
        Some(filled) => try_on(filled, &subject, seed, count).await,
    }
}

async fn try_on(mut filled: Filled, subject: &Subject, seed: u64, count: u64) -> Outcome {
    let (mut answered, mut hits, mut faults) = (0, 0, Vec::new());
    let mut refused: BTreeMap<String, u64> = BTreeMap::new();
    for number in 0..count {
        let mut random = Random::new(seed, 5, number);
        let query = filled.corpus.query(&mut random);
        query.check()?;
        match filled.ask(&query).await {
            Ok(true) => {
                answered += 1;
                hits += u64::from(!filled.expected(&query).is_empty());
            }
            Ok(false) => {
                let why = match filled.store().abilities().can(&query) {
                    Err(error) => error.to_string(),
                    Ok(()) => "odd names".into(),
                };
                *refused.entry(why).or_default() += 1;
            }
            Err(fault) => {
                faults.push(format!("query {number} of seed {seed}: {query:?}: {fault:?}"))
            }
        }
    }
    println!("{}: {answered} answered, {hits} with something; {refused:?}", subject.name);
    ensure!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults[..faults.len().min(8)].join("\n")
    );
    let find = filled.store().abilities().can(&Query::new(r#"{"n": 1}"#.parse()?)).is_ok();
    ensure!(answered >= if find { count / 10 } else { count / 20 }, "only {answered} answered");
    senseless(&filled).await?;

    // What a filter finds, it deletes, and no more.
    for number in 0..40 {
        let mut random = Random::new(seed, 6, number);
        let query = Query::new(filled.corpus.query(&mut random).filter);
        if filled.store().abilities().can(&query).is_err() {
            continue;
        }
        let gone = filled.expected(&query);
        if gone.len() > filled.records.len() / 3 {
            continue;
        }
        let deleted = match filled.store().delete(&query.filter).await {
            Err(e) if e.kind() == ErrorKind::Unsupported && filled.is_odd(&query) => continue,
            deleted => deleted?,
        };
        ensure!(deleted == gone.len() as u64, "{deleted} of {} deleted: {query:?}", gone.len());
        gone.iter().for_each(|key| _ = filled.records.remove(key));
        let keys: Vec<_> = filled.records.keys().cloned().collect();
        let left = filled.store().get(&[keys.as_slice(), &gone].concat()).await?;
        let there = left.iter().take_while(|found| found.is_some()).count();
        ensure!(there == keys.len(), "{query:?} deleted what it does not fit");
        let still = left[keys.len()..].iter().flatten().count();
        ensure!(still == 0, "{query:?} left {still}");
    }
    filled.fresh.done().await
}

/// What makes no sense is not asked of the store.
async fn senseless(filled: &Filled) -> Outcome {
    let big = || Value::Decimal("NaN".into());
    for (path, test) in [
        ("b", Test::Lt(true.into())),
        ("n", Test::Gt(Value::Null)),
        ("n", Test::In(vec![Value::Int(1), Value::List(Vec::new())])),
        ("n", Test::Eq(Document::new().into())),
        ("n", Test::Ne(big())),
        ("n", Test::Le(Value::Float(f64::NAN))),
        ("_key", Test::In(vec![big()])),
    ] {
        let filter = Filter::field(path, test)?;
        let query = Query::new(Filter::Or(vec![Filter::Not(Box::new(filter))]));
        for outcome in [
            filled.find(&query).await.map(|rows| rows.len() as u64),
            filled.store().delete(&query.filter).await,
        ] {
            let kind = outcome.as_ref().err().map(|e| e.kind());
            let fine = matches!(kind, Some(ErrorKind::Invalid | ErrorKind::Unsupported));
            ensure!(fine, "{query:?}: {outcome:?}");
        }
    }
    Ok(())
}

#[test]
fn queries_mean_the_same_in_every_store() {
    let seed = places::seed("queries");
    places::each(Wrap::Bare, |subject| try_queries(subject, seed, 700));
}

#[test]
fn queries_mean_the_same_with_indexes() {
    let seed = places::seed("queries with indexes");
    places::each(Wrap::Bare, |subject| try_with_indexes(subject, seed, 300));
}

#[test]
fn queries_of_tenants_mean_the_same() {
    let seed = places::seed("queries of tenants");
    places::each(Wrap::Tenant, |subject| try_with_indexes(subject, seed, 200));
}

#[test]
fn queries_mean_the_same_in_shards() {
    let seed = places::seed("queries in shards");
    places::each(Wrap::Shards, |subject| try_queries(subject, seed, 200));
}

#[test]
fn queries_mean_the_same_in_all_wrappers() {
    let seed = places::seed("queries in wrappers");
    places::each(Wrap::All, |subject| try_queries(subject, seed, 200));
}

#[test]
fn a_store_of_another_make_answers_the_same() {
    let seed = places::seed("queries of the naive store");
    places::run(try_queries(Arc::new(Subject::naive(Flaw::None)), seed, 700)).unwrap();
}

#[test]
fn flaws_of_queries_are_found() {
    let seed = places::seed("queries of flawed stores");
    for flaw in Flaw::OF_QUERIES {
        let found = places::run(try_queries(Arc::new(Subject::naive(flaw)), seed, 700));
        match found {
            Ok(()) => panic!("{flaw:?} is not found"),
            Err(fault) => println!("{flaw:?}: {}", fault.0.lines().nth(1).unwrap_or_default()),
        }
    }
}

/// The records tell things apart only if there are enough of each.
#[test]
fn the_corpus_is_varied() {
    let mut corpus =
        Corpus::new(Shape::Document, &Kind::ALL, true, corpus::FLOATS.map(Value::Float).into());
    corpus.long = corpus::long();
    corpus.names.extend(corpus::NESTED);
    let rows = corpus.rows(places::seed("corpus"), 300);
    for (path, least) in [("n", 100), ("t", 150), ("d", 100), ("b", 100), ("m", 80), ("list", 60)] {
        let there = rows.iter().filter(|row| row.record.get(path).is_some()).count();
        let missing = rows.len() - there;
        assert!(there >= least && missing >= 20, "{path}: {there} there, {missing} not");
    }
}
