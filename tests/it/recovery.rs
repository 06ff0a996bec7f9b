//! `recover`: what a store comes back with after a crash is compared with what was written, not only
//! counted.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use async_trait::async_trait;
use steelyard::{
    ErrorKind, Result,
    bench::{
        stores::{Around, Target},
        workload::Workload,
    },
    record::Document,
    store::{
        Abilities, Description, Filter, Key, KeyRange, Layout, Query, Row, Rows, Shape, Store,
    },
};

use crate::{
    programs::{self, need},
    workloads::{options, run},
};

/// Which contents are exchanged after the crash.
#[derive(Clone, Copy, PartialEq)]
enum Exchanged {
    None,
    /// Those of the first two keys of a batch: records that were written while the crash came.
    First,
    /// Those of the last two keys of a batch: records that were there before.
    Last,
}

/// A store that, once it was opened again, answers with the record of another key.
struct ComesBack {
    inner: Arc<dyn Store>,
    exchanged: Exchanged,
    /// It was written to, so that this is not the store as it came back.
    written: AtomicBool,
}

impl ComesBack {
    fn around(inner: Arc<dyn Store>, exchanged: Exchanged) -> Arc<dyn Store> {
        Arc::new(ComesBack { inner, exchanged, written: AtomicBool::new(false) })
    }
}

#[async_trait]
impl Store for ComesBack {
    fn abilities(&self) -> &Abilities {
        self.inner.abilities()
    }
    fn shape(&self) -> Shape {
        self.inner.shape()
    }
    fn table(&self, name: &str) -> Result<Arc<dyn Store>> {
        Ok(ComesBack::around(self.inner.table(name)?, self.exchanged))
    }
    fn check(&self, row: &Row) -> Result<()> {
        self.inner.check(row)
    }
    async fn prepare(&self, layout: &Layout) -> Result<()> {
        self.written.store(true, Relaxed);
        self.inner.prepare(layout).await
    }
    async fn put(&self, rows: &[Row]) -> Result<()> {
        self.written.store(true, Relaxed);
        self.inner.put(rows).await
    }
    async fn load(&self, rows: &[Row]) -> Result<()> {
        self.written.store(true, Relaxed);
        self.inner.load(rows).await
    }
    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Document>>> {
        let mut found = self.inner.get(keys).await?;
        let last = found.len().saturating_sub(1);
        if last > 0 && !self.written.load(Relaxed) {
            match self.exchanged {
                Exchanged::None => {}
                Exchanged::First => found.swap(0, 1),
                Exchanged::Last => found.swap(last - 1, last),
            }
        }
        Ok(found)
    }
    async fn find(&self, query: &Query) -> Result<Rows<'_>> {
        self.inner.find(query).await
    }
    async fn delete(&self, filter: &Filter) -> Result<u64> {
        self.inner.delete(filter).await
    }
    async fn remove(&self, keys: &[Key]) -> Result<u64> {
        self.inner.remove(keys).await
    }
    async fn scan(&self, range: &KeyRange) -> Result<Rows<'_>> {
        self.inner.scan(range).await
    }
    async fn count(&self) -> Result<u64> {
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

const WORKLOAD: &str = "name = \"own\"\nabout = \"Own.\"\n[table.records]\ndataset = \"people\"\n\
    count = 200\nkey = \"key\"\n[[phase]]\nname = \"load\"\ndo = \"load\"\n\
    [[phase]]\nname = \"crash\"\ndo = \"recover\"\ncount = 50\n";

fn other_contents_are_caught(on: &str) {
    let outcome = |around: Around| {
        let mut options = options(Workload::parse(WORKLOAD).unwrap(), &[on]);
        options.around = Some(around);
        run(&options)
    };
    let results = outcome(|store| ComesBack::around(store, Exchanged::None));
    let results = results.unwrap_or_else(|e| panic!("{on}: {e}"));
    let cell = results.cell(on, "crash").unwrap();
    let recovery = cell.rounds[0].recovery.unwrap();
    assert_eq!((recovery.lost, recovery.earlier_lost), (0, 0), "{on}");
    let lies: [(&str, Around); 2] = [
        ("written", |store| ComesBack::around(store, Exchanged::First)),
        ("earlier", |store| ComesBack::around(store, Exchanged::Last)),
    ];
    for (which, around) in lies {
        let error = outcome(around).map(drop).expect_err(&format!("{on}, {which}"));
        assert_eq!(error.kind(), ErrorKind::Mismatch, "{on}, {which}: {error}");
        let said = error.to_string();
        let begin = format!("{on}, crash, round 1: read after the crash: key ");
        assert!(said.starts_with(&begin), "{which}: {said}");
        assert!(said.contains("another record came"), "{which}: {said}");
    }
}

#[test]
fn a_store_that_comes_back_with_other_contents_is_caught() {
    for on in ["sqlite", "sqlite?layout=columns", "dir"] {
        other_contents_are_caught(on);
    }
}

#[test]
fn a_server_that_comes_back_with_other_contents_is_caught() {
    let target = Target::parse("redis?durability=t3").unwrap();
    need!(programs::of(&target));
    other_contents_are_caught("redis?durability=t3");
}
