//! Tests with a faulty store, which returns or writes wrong records in each of the ways that counts do not reveal: the
//! run has to fail and name the store, the phase and the operation.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
};

use async_trait::async_trait;
use futures_util::{StreamExt, TryStreamExt, stream};

use super::{Around, Options, Target, run};
use crate::{
    ErrorKind, Result,
    record::Document,
    results::Results,
    schedule::{Limit, StopRule},
    store::{
        Abilities, Description, Expected, Filter, Join, Joined, Key, KeyRange, Layout, Query, Row,
        Rows, Shape, Store,
    },
    workload::Workload,
};

/// What it lies about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lie {
    /// Nothing.
    None,
    /// One key is answered with the record of another.
    Single,
    /// Several keys are answered with each other's records.
    Several,
    /// There is no record under one key.
    Nothing,
    /// What is written is dropped.
    Drops,
    /// Another record is written under the key.
    WritesAnother,
    /// The same, but only by those who load: never where a proof writes its batches.
    LoadsAnother,
    /// As many records come, of which one does not fit.
    Misfit,
    /// As many records come, the last of them once more in place of the first.
    Twice,
    /// As many records come, but not the first ones.
    NotTheFirst,
    /// Records come in another order.
    Unsorted,
    /// Records come under each other's keys.
    Rotated,
    /// As many records are deleted, but others.
    DeletesOthers,
}

struct Liar {
    inner: Arc<dyn Store>,
    lie: Lie,
    /// Only once all was loaded, so that no proof sees it.
    late: bool,
    begun: AtomicBool,
    /// Reads by key since then.
    gets: AtomicU32,
    rows: Mutex<Vec<Row>>,
}

impl Liar {
    fn lies(&self, lie: Lie) -> bool {
        self.lie == lie && (!self.late || self.begun.load(Relaxed))
    }

    /// As [`lies`](Liar::lies), but not to those who read back what was loaded.
    fn lies_to_readers(&self, lie: Lie) -> bool {
        /// Reads after a load, at most.
        const READ_BACK: u32 = 45;
        self.lies(lie) && (!self.late || self.gets.load(Relaxed) > READ_BACK)
    }

    fn wrote(&self, rows: &[Row]) {
        self.rows.lock().unwrap().extend_from_slice(rows);
    }

    /// A record of another key.
    fn another(&self, key: &Key, not: &Document) -> Option<Document> {
        let rows = self.rows.lock().unwrap();
        rows.iter().find(|r| r.key != *key && r.record != *not).map(|r| r.record.clone())
    }

    fn loaded(&self, rows: &[Row]) -> Vec<Row> {
        let mut rows = rows.to_vec();
        if self.lies(Lie::LoadsAnother) {
            rotate(&mut rows);
        }
        rows
    }

    fn bent(&self, rows: &[Row]) -> Vec<Row> {
        let mut rows = rows.to_vec();
        let loads = self.lies(Lie::LoadsAnother) && rows.len() <= 50;
        if self.lies(Lie::WritesAnother) || loads {
            let last = rows.len() - 1;
            let before = rows[last].record.clone();
            rows[last].record = match rows.len() {
                1 => self.another(&rows[0].key, &before).unwrap_or(before),
                _ => rows[0].record.clone(),
            };
        }
        rows
    }
}

fn rotate(rows: &mut [Row]) {
    for i in 1..rows.len() {
        let (a, b) = rows.split_at_mut(i);
        std::mem::swap(&mut a[i - 1].record, &mut b[0].record);
    }
}

#[async_trait]
impl Store for Liar {
    fn abilities(&self) -> &Abilities {
        self.inner.abilities()
    }

    fn shape(&self) -> Shape {
        self.inner.shape()
    }

    fn table(&self, _: &str) -> Result<Arc<dyn Store>> {
        unreachable!("each table is wrapped by itself")
    }

    fn check(&self, row: &Row) -> Result<()> {
        self.inner.check(row)
    }

    async fn prepare(&self, layout: &Layout) -> Result<()> {
        self.inner.prepare(layout).await
    }

    async fn put(&self, rows: &[Row]) -> Result<()> {
        self.wrote(rows);
        if self.lies(Lie::Drops) {
            return Ok(());
        }
        self.inner.put(&self.bent(rows)).await
    }

    async fn load(&self, rows: &[Row]) -> Result<()> {
        self.wrote(rows);
        self.inner.load(&self.loaded(rows)).await
    }

    async fn put_each(&self, rows: &[Row]) -> Result<()> {
        self.wrote(rows);
        self.inner.put_each(&self.loaded(rows)).await
    }

    async fn put_if(&self, row: &Row, expected: &Expected) -> Result<bool> {
        self.inner.put_if(row, expected).await
    }

    async fn remove_if(&self, key: &Key, expected: &Expected) -> Result<bool> {
        self.inner.remove_if(key, expected).await
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Document>>> {
        let mut found = self.inner.get(keys).await?;
        self.gets.fetch_add(u32::from(self.begun.load(Relaxed)), Relaxed);
        if keys.len() == 1 && self.lies_to_readers(Lie::Single) {
            let record = found[0].take().unwrap_or_default();
            found[0] = self.another(&keys[0], &record);
        }
        if keys.len() == 1 && self.lies_to_readers(Lie::Nothing) {
            found[0] = None;
        }
        if keys.len() > 1 && self.lies_to_readers(Lie::Several) {
            found.reverse();
        }
        Ok(found)
    }

    async fn find(&self, query: &Query) -> Result<Rows<'_>> {
        let all = |query: Query| async move { self.inner.find(&query).await?.try_concat().await };
        let mut rows = all(query.clone()).await?;
        if rows.is_empty() {
            return Ok(stream::iter([]).boxed());
        }
        let keys: Vec<Key> = rows.iter().map(|row| row.key.clone()).collect();
        let last = rows.len() - 1;
        if self.lies(Lie::Misfit) {
            let others = all(Query {
                filter: Filter::Not(Box::new(query.filter.clone())),
                ..Query::default()
            });
            rows[last] = others.await?.swap_remove(0);
        }
        if self.lies(Lie::Twice) {
            rows[last] = rows[0].clone();
        }
        if self.lies(Lie::NotTheFirst) {
            let more = all(Query { limit: None, ..query.clone() }).await?;
            rows =
                more.into_iter().filter(|row| !keys.contains(&row.key)).take(keys.len()).collect();
        }
        if self.lies(Lie::Unsorted) {
            rows.reverse();
        }
        if self.lies(Lie::Rotated) {
            rotate(&mut rows);
        }
        Ok(stream::iter([Ok(rows)]).boxed())
    }

    async fn join(&self, join: &Join) -> Result<Vec<Joined>> {
        let mut all = self.inner.join(join).await?;
        if self.lies(Lie::Rotated) {
            all.iter_mut().for_each(|one| rotate(&mut one.others));
        }
        Ok(all)
    }

    async fn delete(&self, filter: &Filter) -> Result<u64> {
        if !self.lies(Lie::DeletesOthers) {
            return self.inner.delete(filter).await;
        }
        let fit: Vec<Row> =
            self.inner.find(&Query::new(filter.clone())).await?.try_concat().await?;
        let others = Query::new(Filter::Not(Box::new(filter.clone())));
        let others: Vec<Row> = self.inner.find(&others).await?.try_concat().await?;
        let keys: Vec<Key> = others.into_iter().map(|row| row.key).take(fit.len()).collect();
        assert_eq!(keys.len(), fit.len(), "there are enough others");
        self.inner.remove(&keys).await
    }

    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        self.inner.remove(keys).await
    }

    async fn scan(&self, range: &KeyRange) -> Result<Rows<'_>> {
        let mut rows: Vec<Row> = self.inner.scan(range).await?.try_concat().await?;
        if self.lies(Lie::Twice) {
            let last = rows.len() - 1;
            rows[last] = rows[0].clone();
        }
        if self.lies(Lie::Rotated) {
            rotate(&mut rows);
        }
        Ok(stream::iter([Ok(rows)]).boxed())
    }

    async fn count(&self) -> Result<u64> {
        self.begun.store(true, Relaxed);
        self.inner.count().await
    }

    async fn split(&self, parts: u32) -> Result<Vec<KeyRange>> {
        self.inner.split(parts).await
    }

    async fn drop_table(&self) -> Result<()> {
        self.inner.drop_table().await
    }

    async fn describe(&self) -> Result<Description> {
        self.inner.describe().await
    }
}

/// Puts a liar around a store.
macro_rules! liar {
    ($lie:ident, $late:expr) => {
        |inner| {
            let (begun, gets, rows) = (AtomicBool::new(false), AtomicU32::new(0), Mutex::default());
            Arc::new(Liar { inner, lie: Lie::$lie, late: $late, begun, gets, rows })
        }
    };
}

fn outcome(workload: &Workload, around: Around) -> Result<Results> {
    outcome_of("memory", workload, around)
}

fn outcome_of(on: &str, workload: &Workload, around: Around) -> Result<Results> {
    let mut options = Options::new(workload.clone());
    options.targets = vec![Target::parse(on).unwrap()];
    options.audit = false;
    options.around = Some(around);
    options.plan.resamples = 200;
    options.plan.stop = StopRule { max_rounds: 1, ..StopRule::default() };
    run(&options, &mut |_| {})
}

/// A workload of one table of people and one phase after the load.
fn people(load: &str, phase: &str) -> Workload {
    let text = format!(
        "name = \"own\"\nabout = \"Own.\"\n[table.records]\ndataset = \"people\"\ncount = 300\n\
         key = \"key\"\n[[phase]]\nname = \"load\"\ndo = \"load\"\n{load}\n\
         [[phase]]\nname = \"timed\"\n{phase}\n"
    );
    Workload::parse(&text).unwrap_or_else(|e| panic!("{e:?}"))
}

/// A phase of a kind, a lie that begins after the load, and what the error has to say.
const TIMED: &[(&str, Lie, Around, &str)] = &[
    ("do = \"get\"\ncount = 500", Lie::Single, liar!(Single, true), "get of one key"),
    ("do = \"get\"\ncount = 500", Lie::Nothing, liar!(Nothing, true), "there is no record"),
    ("do = \"get\"\ncount = 90\nconcurrency = 3", Lie::Single, liar!(Single, true), "get of one"),
    (
        "do = \"get\"\nseconds = 0.2\npace = { fixed = 500 }",
        Lie::Single,
        liar!(Single, true),
        "get of one",
    ),
    ("do = \"get\"\nbatch = 10\ncount = 50", Lie::Several, liar!(Several, true), "get of 10 keys"),
    ("do = \"find\"\ncount = 3\nwhere = \"age>=50\"", Lie::Misfit, liar!(Misfit, true), "find: "),
    ("do = \"find\"\ncount = 3\nwhere = \"age>=50\"", Lie::Twice, liar!(Twice, true), "find: "),
    ("do = \"find\"\ncount = 3\nwhere = \"age>=50\"", Lie::Rotated, liar!(Rotated, true), "find: "),
    (
        "do = \"find\"\ncount = 3\nsort = [\"-age\"]\nlimit = 20",
        Lie::NotTheFirst,
        liar!(NotTheFirst, true),
        "find: ",
    ),
    (
        "do = \"find\"\ncount = 3\nsort = [\"-age\"]\nlimit = 20",
        Lie::Unsorted,
        liar!(Unsorted, true),
        "find: ",
    ),
    (
        "do = \"find\"\ncount = 3\nrange = { field = \"age\", width = 10 }",
        Lie::Rotated,
        liar!(Rotated, true),
        "find: ",
    ),
    ("do = \"update\"\ncount = 50\nset = { age = 7 }", Lie::Drops, liar!(Drops, true), "get of "),
    (
        "do = \"update\"\ncount = 50\nset = { age = 7 }",
        Lie::WritesAnother,
        liar!(WritesAnother, true),
        "get of ",
    ),
    (
        "do = \"mix\"\ncount = 90\nshares = { read = 1 }",
        Lie::Single,
        liar!(Single, true),
        "get of one",
    ),
    (
        "do = \"mix\"\ncount = 90\nshares = { read = 1, update = 1 }",
        Lie::Drops,
        liar!(Drops, true),
        "get of ",
    ),
    (
        "do = \"mix\"\ncount = 90\nshares = { scan = 1 }",
        Lie::Rotated,
        liar!(Rotated, true),
        "find: ",
    ),
    (
        "do = \"mix\"\ncount = 90\nshares = { read-modify-write = 1 }",
        Lie::Single,
        liar!(Single, true),
        "read of a change",
    ),
    (
        "do = \"mix\"\ncount = 90\nshares = { read-modify-write = 1 }",
        Lie::Drops,
        liar!(Drops, true),
        "get of ",
    ),
    (
        "do = \"delete\"\nwhere = \"age>=80\"",
        Lie::DeletesOthers,
        liar!(DeletesOthers, true),
        "delete: ",
    ),
    ("do = \"scan\"", Lie::Twice, liar!(Twice, true), "scan: "),
    ("do = \"scan\"", Lie::Rotated, liar!(Rotated, true), "scan: "),
    ("do = \"rewrite\"", Lie::Drops, liar!(Drops, true), "get of "),
    ("do = \"rewrite\"", Lie::WritesAnother, liar!(WritesAnother, true), "get of "),
];

/// Lies to those who go from a record to what belongs to it, by the phase that must find them.
const RELATED: &[(&str, Lie, Around)] = &[
    ("embedded", Lie::Single, liar!(Single, true)),
    ("references", Lie::Several, liar!(Several, true)),
    ("indexed field", Lie::Rotated, liar!(Rotated, true)),
    ("join", Lie::Rotated, liar!(Rotated, true)),
    ("key/value join", Lie::Rotated, liar!(Rotated, true)),
];

fn fails(workload: &Workload, around: Around, at: &str, says: &str) {
    fails_of("memory", workload, around, at, says);
}

fn fails_of(on: &str, workload: &Workload, around: Around, at: &str, says: &str) {
    let error = outcome_of(on, workload, around).map(drop).expect_err(&format!("{at}, {says}"));
    let said = error.to_string();
    assert_eq!(error.kind(), ErrorKind::Mismatch, "{said}");
    assert!(said.starts_with(&format!("{on}, {at}")) && said.contains(says), "{at}: {said}");
}

#[test]
fn who_says_the_truth_passes() {
    for (phase, ..) in TIMED {
        let results = outcome(&people("", phase), liar!(None, false));
        let results = results.unwrap_or_else(|e| panic!("{phase}: {e}"));
        let cell = results.cell("memory", "timed").unwrap();
        assert!(cell.refused.is_none() && cell.rounds[0].units > 0, "{phase}: {:?}", cell.refused);
    }
}

#[test]
fn a_lie_in_the_timed_part_fails_the_run_and_is_named() {
    for (phase, lie, around, says) in TIMED {
        println!("{phase}: {lie:?}");
        fails(&people("", phase), *around, "timed, round 1", says);
    }
}

#[test]
fn a_lie_to_who_follows_relations_fails_the_run() {
    let workload = Workload::named("relations").unwrap().scaled(0.01);
    for (phase, lie, around) in RELATED {
        println!("{phase}: {lie:?}");
        let mut only = workload.clone();
        only.phases.retain(|p| p.word() != "relate" || p.name == *phase);
        for relate in only.phases.iter_mut().filter(|p| p.word() == "relate") {
            relate.limit = Some(Limit::Count(200));
        }
        outcome(&only, liar!(None, false)).unwrap();
        fails(&only, *around, &format!("{phase}, round 1"), "");
    }
}

#[test]
fn every_way_of_loading_is_read_back() {
    for way in ["rows", "batches", "bulk", "transaction"] {
        let workload = people(&format!("way = {way:?}\nbatch = 50"), "do = \"scan\"");
        let workload = match way {
            "rows" | "transaction" => people(&format!("way = {way:?}"), "do = \"scan\""),
            _ => workload,
        };
        println!("{way}");
        fails_of("sqlite", &workload, liar!(LoadsAnother, false), "load, round 1", "get of ");
        outcome_of("sqlite", &workload, liar!(None, false)).unwrap();
    }
}

#[test]
fn a_lie_to_one_key_is_seen_before_anything_is_timed() {
    let get = people("", "do = \"get\"");
    let before = "before anything is timed";
    fails(&get, liar!(Single, false), before, "get of one key: ");
    fails(&get, liar!(Nothing, false), before, "get of one key: there is no record");
    fails(&get, liar!(Several, false), before, "get of 150 keys: ");
    fails(&get, liar!(Drops, false), before, "there is no record");
    fails(&get, liar!(WritesAnother, false), before, "came for");
}
