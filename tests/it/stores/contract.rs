//! What every store does, bare and inside every wrapper. A check is a function of a store, which
//! says what is wrong with it; `CHECKS` is the list.
//!
//! What a store cannot do it must have declared, or answer with `Unsupported`; what it cannot hold
//! it must refuse before anything is written. `memory.rs` of the stores is the meaning.

mod batches;
pub mod conditional;
mod facts;
mod keys;
mod limits;
mod listing;
mod numbers;
mod streams;
mod values;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{FutureExt, TryStreamExt, future::BoxFuture};
use steelyard::{
    Error, ErrorKind,
    record::{Document, Value},
    store::{Key, KeyRange, Row, Shape, Store, one_by_one},
};

use super::{
    naive::Flaw,
    places::{self, Fault, Outcome, Subject, Wrap, ensure},
};

type Check = fn(Arc<Subject>) -> BoxFuture<'static, Outcome>;

macro_rules! checks {
    ($($name:literal $module:ident::$check:ident;)*) => {
        /// Every check with its name.
        const CHECKS: &[(&str, Check)] =
            &[$(($name, |subject| async move { $module::$check(&subject).await }.boxed()),)*];
    };
}

checks! {
    "describe" batches::describe;
    "prepare again" batches::prepare_again;
    "prepare side by side" batches::prepare_side_by_side;
    "empty batches" batches::empty_batches;
    "batches" batches::batches;
    "put replaces" batches::put_replaces;
    "load" batches::load;
    "answers in order" keys::answers_in_order;
    "keys differ" keys::keys_differ;
    "remove" keys::remove;
    "delete" keys::delete;
    "tables" keys::tables;
    "tables by case" keys::tables_by_case;
    "list of tables" listing::tables;
    "drop" keys::drop_table;
    "scan" streams::scan;
    "split" streams::split;
    "put inside a scan" streams::put_inside_a_scan;
    "streams left early" streams::left_early;
    "tasks" streams::tasks;
    "in the thread" streams::in_the_thread;
    "conditional writes" conditional::writes;
    "conditional removes" conditional::removes;
    "conditional texts" conditional::texts;
    "conditional kinds" conditional::kinds;
    "conditional writers" conditional::writers;
    "refused batches" limits::refused_batches;
    "limits" limits::limits;
    "kinds of value" values::kinds;
    "other kinds" values::other_kinds;
    "numbers" numbers::numbers;
    "any values" numbers::any_values;
    "abilities" facts::abilities;
    "refused kinds" facts::refused_kinds;
    "levels" facts::levels;
    "indexes" facts::indexes;
}

/// How long a check may take before it counts as hanging.
const PATIENCE: Duration = Duration::from_secs(300);

async fn checked(subject: Arc<Subject>, check: Check) -> Outcome {
    match tokio::time::timeout(PATIENCE, check(subject)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Fault::new(format_args!("no end within {} s", PATIENCE.as_secs()))),
    }
}

/// All checks on a store, all faults together.
async fn whole(subject: Arc<Subject>) -> Outcome {
    let mut faults = Vec::new();
    for (name, check) in CHECKS {
        let begin = Instant::now();
        if let Err(fault) = checked(subject.clone(), *check).await {
            faults.push(format!("{name}: {fault:?}"));
        }
        // For those who wonder what takes so long.
        if begin.elapsed() > Duration::from_secs(5) {
            println!("{}: {name}: {:.0} s", subject.name, begin.elapsed().as_secs_f64());
        }
    }
    match faults.is_empty() {
        true => Ok(()),
        false => Err(Fault(faults.join("\n    "))),
    }
}

#[test]
fn bare_stores() {
    places::each(Wrap::Bare, whole);
}

#[test]
fn stores_with_a_prefix() {
    places::each(Wrap::Prefix, whole);
}

#[test]
fn stores_that_tenants_share() {
    places::each(Wrap::Tenant, whole);
}

#[test]
fn stores_with_a_replica() {
    places::each(Wrap::Replicas, whole);
}

#[test]
fn stores_in_shards() {
    places::each(Wrap::Shards, whole);
}

#[test]
fn stores_in_all_wrappers() {
    places::each(Wrap::All, whole);
}

#[test]
fn tiers_are_those_of_the_table() {
    places::run(facts::tiers()).unwrap();
}

#[test]
fn a_store_of_another_make_passes() {
    places::run(whole(Arc::new(Subject::naive(Flaw::None)))).unwrap();
}

#[test]
fn every_flaw_is_found() {
    for (flaw, name) in Flaw::ALL {
        let (_, check) = CHECKS.iter().find(|(n, _)| *n == name).expect("a check of that name");
        let found = places::run(checked(Arc::new(Subject::naive(flaw)), *check));
        match found {
            Ok(()) => panic!("{flaw:?} passes {name:?}"),
            Err(fault) => println!("{flaw:?}: {fault:?}"),
        }
    }
}

/// What every check is made of.
fn key(text: impl Into<String>) -> Key {
    Key::new(text.into()).expect("not empty")
}

/// A record that lies in every layout.
fn row(text: impl Into<String>, n: i64) -> Row {
    let fields = [("n", Value::Int(n)), ("text", Value::from(format!("number {n}").as_str()))];
    Row { key: key(text), record: Document::from_iter(fields) }
}

/// So many rows, in the order of their keys.
fn rows(count: usize) -> Vec<Row> {
    (0..count).map(|i| row(format!("k{i:06}"), i as i64)).collect()
}

fn keys_of(rows: &[Row]) -> Vec<Key> {
    rows.iter().map(|row| row.key.clone()).collect()
}

async fn get_one(store: &dyn Store, key: &Key) -> Result<Option<Document>, Fault> {
    let mut found = store.get(std::slice::from_ref(key)).await?;
    ensure!(found.len() == 1, "{} answers to one question", found.len());
    Ok(found.remove(0))
}

/// All rows in a range; none where the store cannot list what it has, and says so.
async fn scanned(store: &dyn Store, range: &KeyRange) -> Result<Option<Vec<Row>>, Fault> {
    match store.scan(range).await {
        Ok(rows) => Ok(Some(one_by_one(rows).try_collect().await?)),
        Err(e) if e.kind() == ErrorKind::Unsupported => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Whether the store has exactly these rows, as far as it can tell: looked up, counted, listed.
async fn has(store: &dyn Store, rows: &[Row]) -> Outcome {
    let found = store.get(&keys_of(rows)).await?;
    ensure!(found.len() == rows.len(), "{} answers to {} keys", found.len(), rows.len());
    for (row, found) in rows.iter().zip(found) {
        let Some(found) = found else {
            return Err(Fault::new(format_args!("key {} is not there", row.key.shown())));
        };
        let is_same = found == row.record;
        ensure!(is_same, "key {}: {:?} became {found:?}", row.key.shown(), row.record);
    }
    let Some(mut all) = scanned(store, &KeyRange::all()).await? else {
        let error = expect_error(store.count().await, "count where nothing can be listed")?;
        return of_kind(&error, &[ErrorKind::Unsupported]);
    };
    let count = store.count().await?;
    ensure!(count == rows.len() as u64, "{count} counted, {} are there", rows.len());
    ensure!(all.len() == rows.len(), "{} scanned, {} are there", all.len(), rows.len());
    let mut want = rows.to_vec();
    if !store.abilities().ordered {
        all.sort_by(|a, b| a.key.cmp(&b.key));
    }
    want.sort_by(|a, b| a.key.cmp(&b.key));
    match all.iter().zip(&want).find(|(a, b)| a != b) {
        None => Ok(()),
        Some((a, b)) => Err(Fault::new(format_args!("scanned {a:?} instead of {b:?}"))),
    }
}

/// The error of what must not succeed.
#[track_caller]
fn expect_error<T>(result: Result<T, Error>, what: &str) -> Result<Error, Fault> {
    match result {
        Err(e) => Ok(e),
        Ok(_) => Err(Fault::new(format_args!("{what}: it succeeded"))),
    }
}

/// Whether an error is of one of these kinds.
#[track_caller]
fn of_kind(error: &Error, kinds: &[ErrorKind]) -> Outcome {
    match kinds.contains(&error.kind()) {
        true => Ok(()),
        false => Err(Fault::new(format_args!("{error:?} instead of {kinds:?}"))),
    }
}

fn is_columns(store: &dyn Store) -> bool {
    store.shape() == Shape::Columns
}
