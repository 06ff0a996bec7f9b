//! Operations at random, on a store and on a map: both answer the same.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::TryStreamExt;
use steelyard::{
    ErrorKind,
    record::{Document, Value, dataset::random::Random},
    store::{Filter, Key, KeyRange, Query, Row, Store, one_by_one},
};

use super::{
    naive::Flaw,
    places::{self, Fault, Outcome, Subject, Wrap, ensure},
};

/// How many operations a store is put through.
const OPERATIONS: u64 = 200;
/// How many keys there are: few, so that they meet again.
const KEYS: u32 = 60;

fn some_key(random: &mut Random) -> Key {
    // Each is the beginning of others.
    let n = random.below(KEYS);
    Key::new(format!("{}{}", ["k", "k/", "ö", "K"][n as usize % 4], n / 4)).expect("not empty")
}

fn some_keys(random: &mut Random) -> Vec<Key> {
    (0..random.between(1, 8)).map(|_| some_key(random)).collect()
}

fn some_row(random: &mut Random) -> Row {
    let mut record = Document::new();
    record.insert("n", i64::from(random.below(1000)));
    if random.chance(0.7) {
        record.insert("text", ["", "x", "trailing ", "ü'\"\\", "😀"][random.below(5) as usize]);
    }
    Row { key: some_key(random), record }
}

fn some_range(random: &mut Random) -> KeyRange {
    let mut border = || random.chance(0.7).then(|| some_key(random));
    KeyRange { from: border(), until: border() }
}

/// A filter of keys; also such as not every store can do.
fn some_filter(random: &mut Random) -> Filter {
    let text = |random: &mut Random| some_key(random).to_string();
    let tests = match random.below(6) {
        0 | 1 => return one_key(text(random)),
        2 | 3 => {
            let keys = some_keys(random).into_iter().map(|key| Value::from(&*key)).collect();
            [("$in", Value::List(keys))]
        }
        4 => [("$prefix", Value::Text(text(random).chars().take(1).collect()))],
        _ => [("$gt", Value::Text(text(random)))],
    };
    let field = Document::from_iter([("_key", Value::Map(Document::from_iter(tests)))]);
    Filter::from_document(&field).expect("a filter")
}

fn one_key(text: String) -> Filter {
    Filter::from_document(&Document::from_iter([("_key", text)])).expect("a filter")
}

/// The same operation on both; what differs is a fault.
async fn step(
    store: &dyn Store,
    model: &mut BTreeMap<Key, Document>,
    random: &mut Random,
) -> Outcome {
    match random.below(10) {
        0..=2 => {
            let rows: Vec<Row> = (0..random.between(1, 12)).map(|_| some_row(random)).collect();
            store.put(&rows).await?;
            model.extend(rows.into_iter().map(|row| (row.key, row.record)));
        }
        3 => {
            let rows: Vec<Row> = (0..random.between(1, 3)).map(|_| some_row(random)).collect();
            let mut keys: Vec<_> = rows.iter().map(|row| &row.key).collect();
            keys.sort();
            keys.dedup();
            let taken = keys.len() < rows.len() || keys.iter().any(|k| model.contains_key(*k));
            match store.load(&rows).await {
                Err(e) if taken => {
                    ensure!(e.kind() == ErrorKind::Conflict, "{e:?}");
                    // Where it is not written as a whole, nobody knows what is there now.
                    store.remove(&rows.iter().map(|r| r.key.clone()).collect::<Vec<_>>()).await?;
                    rows.iter().for_each(|row| _ = model.remove(&row.key));
                }
                done => {
                    done?;
                    model.extend(rows.into_iter().map(|row| (row.key, row.record)));
                }
            }
        }
        4 | 5 => {
            let keys = some_keys(random);
            let (found, want) =
                (store.get(&keys).await?, keys.iter().map(|k| model.get(k).cloned()));
            ensure!(want.eq(found.iter().cloned()), "get {keys:?}: {found:?}");
        }
        6 => {
            let keys = some_keys(random);
            let removed = store.remove(&keys).await?;
            let want = keys.iter().filter(|key| model.remove(*key).is_some()).count() as u64;
            ensure!(removed == want, "remove {keys:?}: {removed}, not {want}");
        }
        7 => {
            let filter = some_filter(random);
            let query = Query::new(filter.clone());
            match store.abilities().can(&query) {
                Ok(()) => {
                    let deleted = store.delete(&filter).await?;
                    let before = model.len();
                    model.retain(|key, record| !query.matches(key, record));
                    let want = (before - model.len()) as u64;
                    ensure!(deleted == want, "delete {filter:?}: {deleted}, not {want}");
                }
                Err(_) => match store.delete(&filter).await {
                    Err(e) if e.kind() == ErrorKind::Unsupported => {}
                    other => return Err(Fault::new(format_args!("delete {filter:?}: {other:?}"))),
                },
            }
        }
        8 => match store.count().await {
            Err(e) if e.kind() == ErrorKind::Unsupported => {}
            count => {
                let count = count?;
                ensure!(count == model.len() as u64, "count: {count}, not {}", model.len());
            }
        },
        _ => {
            let range = some_range(random);
            let rows = match store.scan(&range).await {
                Err(e) if e.kind() == ErrorKind::Unsupported => return Ok(()),
                rows => rows?,
            };
            let mut rows: Vec<Row> = one_by_one(rows).try_collect().await?;
            if !store.abilities().ordered {
                rows.sort_by(|a, b| a.key.cmp(&b.key));
            }
            let in_model = model.iter().filter(|(key, _)| range.contains(key));
            let want: Vec<Row> =
                in_model.map(|(k, r)| Row { key: k.clone(), record: r.clone() }).collect();
            ensure!(rows == want, "scan {range:?}: {rows:?}, not {want:?}");
        }
    }
    Ok(())
}

async fn try_model(subject: Arc<Subject>, seed: u64) -> Outcome {
    let mut random = Random::new(seed, 3, 0);
    let like = Row {
        key: some_key(&mut random),
        record: Document::from_iter([("n", Value::Int(1)), ("text", "x".into())]),
    };
    let fresh = subject.ready(&[like]).await?;
    let mut model = BTreeMap::new();
    for at in 0..OPERATIONS {
        let done = step(&*fresh.store, &mut model, &mut random).await;
        done.map_err(|fault| Fault(format!("operation {at} of seed {seed}: {fault:?}")))?;
    }
    let keys: Vec<_> = model.keys().cloned().collect();
    let want: Vec<_> = model.into_values().map(Some).collect();
    ensure!(fresh.store.get(&keys).await? == want, "at the end: {keys:?}");
    fresh.done().await
}

#[test]
fn stores_and_a_map_answer_the_same() {
    let seed = places::seed("operations");
    places::each(Wrap::Bare, |subject| try_model(subject, seed));
}

#[test]
fn wrapped_stores_and_a_map_answer_the_same() {
    let seed = places::seed("operations on wrapped stores");
    places::each(Wrap::All, |subject| try_model(subject, seed));
}

#[test]
fn a_store_of_another_make_answers_the_same() {
    for seed in 0..20 {
        places::run(try_model(Arc::new(Subject::naive(Flaw::None)), seed)).unwrap();
    }
}

#[test]
fn flaws_are_found_by_chance() {
    for flaw in [
        Flaw::Merges,
        Flaw::KeepsOld,
        Flaw::FirstWins,
        Flaw::Miscounts,
        Flaw::SortsAnswers,
        Flaw::SkipsMissing,
        Flaw::CountsKeys,
        Flaw::DeletesAll,
        Flaw::Reverses,
        Flaw::IncludesEnd,
        Flaw::FoldsKeys,
        Flaw::LoadsOver,
        Flaw::Trims,
    ] {
        let found = places::run(try_model(Arc::new(Subject::naive(flaw)), 1));
        assert!(found.is_err(), "{flaw:?} is not found");
    }
}
