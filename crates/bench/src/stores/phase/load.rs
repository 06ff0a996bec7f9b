//! `do = "load"`: writes all records of a table, in each of the ways there are.

use std::{fmt, sync::Arc};

use async_trait::async_trait;

use super::{
    super::{
        expected::Expected,
        load_loop::{self, Ops, going_on},
        operation::Op,
        statement,
        turn::{Done, Turn},
    },
    Info, Kind,
};
use crate::{
    Result,
    results::Statement,
    store::{Request, Row, Store},
    workload::{Phase, Word},
};

pub(super) const INFO: Info = Info {
    name: "load",
    about: "writes all records of the table",
    options: &[
        (
            "way",
            "`rows` (one record at a time, each acknowledged), `batches`, `bulk` (the store's fastest way) \
             or `transaction` (one record at a time, one commit) (default `bulk`)",
        ),
        ("batch", "how many records at a time, of `batches` and `bulk` (default 1,000)"),
    ],
    example: "",
    read: |options| {
        Ok(Arc::new(Load {
            way: options.word("way")?.unwrap_or(Way::Bulk),
            batch: options.batch(BATCH)?,
        }))
    },
};

/// Records in a batch where nobody says how many.
pub(super) const BATCH: usize = 1_000;
/// Records that are made at a time, outside of the window.
const CHUNK: u64 = 10_000;

#[derive(Debug)]
struct Load {
    way: Way,
    /// How many records at a time, where that is the way.
    batch: usize,
}

/// In which way records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Each one by itself, acknowledged before the next is sent.
    Rows,
    /// Some at a time, by the statement for several.
    Batches,
    /// Some at a time, by the fastest way the store has for new records.
    Bulk,
    /// Each one by itself, all in one transaction.
    Transaction,
}

impl Word for Way {
    const WORDS: &[(&str, Way)] = &[
        ("rows", Way::Rows),
        ("batches", Way::Batches),
        ("bulk", Way::Bulk),
        ("transaction", Way::Transaction),
    ];
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Way::Rows => "one record at a time, each acknowledged",
            Way::Batches => "in batches",
            Way::Bulk => "by the store's bulk path",
            Way::Transaction => "one record at a time in one transaction",
        })
    }
}

#[async_trait(?Send)]
impl Kind for Load {
    fn about(&self) -> String {
        let Load { way, batch } = self;
        match way {
            Way::Rows | Way::Transaction => format!("Written {way}"),
            Way::Batches | Way::Bulk => format!("Written {way}, {batch} records at a time"),
        }
    }

    fn unit(&self) -> &'static str {
        "records"
    }

    fn one_by_one(&self) -> bool {
        self.way == Way::Rows
    }

    fn loads(&self) -> bool {
        true
    }

    fn is_upkeep(&self) -> bool {
        true
    }

    fn needs<'a>(&'a self, _: &'a str) -> Vec<&'a str> {
        Vec::new()
    }

    fn units(&self, records: u64, _: &Expected) -> Option<u64> {
        Some(records)
    }

    async fn run(&self, turn: &mut Turn<'_>, phase: &Phase, _: &Expected) -> Result<Done> {
        turn.load(phase, self.way, self.batch).await
    }
}

impl Turn<'_> {
    /// Writes all records of the table of a phase, which is made where it is not there.
    pub(super) async fn load(&mut self, phase: &Phase, way: Way, batch: usize) -> Result<Done> {
        let (store, records) = (Arc::clone(self.table(&phase.table)?), self.records(&phase.table)?);
        if !self.prepared.contains(&phase.table) {
            match self.make(phase).await {
                // Without its indexes; what needs them says so itself.
                Err(_) if self.unindexed.contains_key(&phase.table) => {}
                made => drop(made?),
            }
        }
        let count = records.count;
        let mut done = Done { settled: true, ..Done::default() };
        // One transaction is one call.
        let chunk = if way == Way::Transaction { count.max(1) } else { CHUNK.max(batch as u64) };
        let mut from = 0;
        while from < count {
            going_on(&self.ended)?;
            let rows = records.rows(from, (from + chunk).min(count))?;
            if from == 0 && self.explains {
                done.statements = statements(&*store, way, batch, &rows).await;
            }
            from += rows.len() as u64;
            let part = match way {
                Way::Rows => self.rows(phase, rows.into_owned()).await?,
                Way::Batches | Way::Bulk => self.batches(&*store, way, batch, &rows).await?,
                Way::Transaction => {
                    let before = self.before();
                    store.put_each(&rows).await?;
                    self.after(before, rows.len() as u64)
                }
            };
            done.add(part);
        }
        self.same("records are there", store.count().await?, count)?;
        // Without statistics a database plans the first queries for an empty table.
        store.analyze().await?;
        self.there.insert(phase.table.clone(), count);
        self.as_loaded(&phase.table, 0).await?;
        Ok(done)
    }

    async fn batches(
        &self,
        store: &dyn Store,
        way: Way,
        batch: usize,
        rows: &[Row],
    ) -> Result<Done> {
        let before = self.before();
        for rows in rows.chunks(batch) {
            going_on(&self.ended)?;
            match way {
                Way::Bulk => store.load(rows).await?,
                _ => store.put(rows).await?,
            }
        }
        Ok(self.after(before, rows.len() as u64))
    }

    /// Writes rows one by one.
    async fn rows(&self, phase: &Phase, rows: Vec<Row>) -> Result<Done> {
        let ops: Vec<Op> = rows.into_iter().map(|row| Op::Put(Box::new(row))).collect();
        let ops = Ops::from(ops);
        let (stores, workers) = (self.stores(phase)?, self.workers(phase)?);
        let before = self.before();
        let window = load_loop::closed(&workers, self.clock, &stores, &ops, None).await?;
        let done = self.after(before, window.tally.done);
        match window.first {
            // A table that lacks records is no table to go on with.
            Some(e) => Err(e),
            None => Ok(Done { window: Some(window), ..done }),
        }
    }
}

/// The statements that write records in this way, so many at a time.
async fn statements(store: &dyn Store, way: Way, batch: usize, rows: &[Row]) -> Vec<Statement> {
    let first = |n: usize| &rows[..n.min(rows.len())];
    match way {
        Way::Bulk => statement::of(store, Request::Load(first(batch))).await,
        Way::Batches => statement::of(store, Request::Put(first(batch))).await,
        Way::Rows | Way::Transaction => statement::of(store, Request::Put(first(1))).await,
    }
}
