//! The timed window of operations that are sent one by one: the closed and the open loop.
//!
//! Inside the window a worker touches nothing that another touches: each has its own operations and
//! its own histograms, which are added up when the window is over. An operation costs one reading of
//! the clock in the closed loop, for the end of one is the beginning of the next.

use std::{
    ops::{Deref, Range},
    sync::Arc,
};

use futures_util::TryStreamExt;
use tokio::{sync::Mutex, task::JoinSet};

use super::{pace::Pacer, relate::Relate};
use crate::{
    Error, ErrorKind, Result,
    bench::{
        clock::Monotonic,
        results::{Latency, Tally},
        schedule::Moments,
    },
    record::Document,
    store::{Key, Query, Row, Store, blocking},
};

/// One operation, ready to be sent.
#[derive(Debug, Clone)]
pub(super) enum Op {
    /// Reads these keys; every one has to be there.
    Get(Box<[Key]>),
    /// Asks this; so many records have to come.
    Find(Box<Query>, Option<u64>),
    /// Writes this.
    Put(Box<Row>),
    /// Reads this, puts these fields in, writes it.
    Change(Key, Box<Document>),
    /// Goes from a record to what belongs to it.
    Relate(Box<Relate>),
}

/// Operations, or a part of them.
#[derive(Clone)]
pub(super) struct Ops {
    all: Arc<[Op]>,
    part: Range<usize>,
}

impl From<Vec<Op>> for Ops {
    fn from(all: Vec<Op>) -> Ops {
        Ops { part: 0..all.len(), all: all.into() }
    }
}

impl Deref for Ops {
    type Target = [Op];

    fn deref(&self) -> &[Op] {
        &self.all[self.part.clone()]
    }
}

impl Ops {
    /// So many at a time.
    pub fn parts(&self, size: usize) -> impl Iterator<Item = Ops> + Clone {
        let Range { start, end } = self.part;
        (start..end)
            .step_by(size.max(1))
            .map(move |from| Ops { all: Arc::clone(&self.all), part: from..(from + size).min(end) })
    }
}

/// What a window came to.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// When it ended, on the clock.
    pub ended: u64,
    pub tally: Tally,
    pub latency: Latency,
    /// Records that were read.
    pub items: u64,
    /// The first failure.
    pub first: Option<Error>,
}

impl Window {
    fn new(open: bool) -> Window {
        Window { latency: Latency::of_window(open), ..Window::default() }
    }

    /// Adds what another came to.
    pub fn add(&mut self, other: Window) {
        self.ended = self.ended.max(other.ended);
        self.tally = self.tally.plus(other.tally);
        self.items += other.items;
        self.latency.add(&other.latency);
        if self.first.is_none() {
            self.first = other.first;
        }
    }

    fn count(&mut self, outcome: Result<Outcome>) {
        match outcome {
            Ok(Outcome::Done(items)) => {
                self.tally.done += 1;
                self.items += items;
            }
            Ok(Outcome::Missed(what)) => {
                self.tally.missed += 1;
                if self.first.is_none() {
                    self.first = Some(Error::new(ErrorKind::Mismatch, what));
                }
            }
            Err(e) => {
                self.tally.failed += 1;
                self.tally.timed_out += u64::from(e.is_timeout());
                if self.first.is_none() {
                    self.first = Some(e);
                }
            }
        }
    }
}

/// How an operation ended that did not fail.
pub(super) enum Outcome {
    /// Good, with so many records read.
    Done(u64),
    /// Something that had to be there was not.
    Missed(String),
}

/// The stores that operations go to.
#[derive(Clone)]
pub(super) struct Stores {
    /// The table of the phase.
    pub table: Arc<dyn Store>,
    /// The table of what belongs to its records.
    pub other: Option<Arc<dyn Store>>,
}

/// Sends operations one after another by so many workers, each its share of them, until all are
/// done or, where `until` is given, until that moment, again from the first where need be.
pub(super) async fn closed(
    clock: Monotonic,
    stores: &Stores,
    ops: &Ops,
    workers: usize,
    until: Option<u64>,
) -> Window {
    let mut set = JoinSet::new();
    for worker in 0..workers {
        let (stores, ops) = (stores.clone(), ops.clone());
        let work = async move {
            let (ops, mut window) = (&*ops, Window::new(false));
            let mut at = worker;
            let mut begin = clock.now();
            loop {
                if at >= ops.len() {
                    match until {
                        Some(_) if worker < ops.len() => at = worker,
                        _ => break,
                    }
                }
                let outcome = send(&stores, &ops[at]).await;
                let end = clock.now();
                window.latency.response.record(end - begin);
                window.count(outcome);
                begin = end;
                at += workers;
                if until.is_some_and(|until| end >= until) {
                    break;
                }
            }
            window.ended = begin;
            window
        };
        match workers {
            // Nobody else wants the thread; the load generators of the databases wait so, too.
            1 => set.spawn(blocking(work)),
            _ => set.spawn(work),
        };
    }
    gather(set).await
}

/// Sends operations at planned moments; so many may be on their way at once.
///
/// # Errors
/// Where the system gives no timer.
pub(super) async fn open(
    clock: Monotonic,
    stores: &Stores,
    ops: &Ops,
    workers: usize,
    (moments, seconds): (Moments, f64),
) -> Result<Window> {
    let pacer = Arc::new(Mutex::new(Pacer::new(clock, moments, seconds)?));
    let mut set = JoinSet::new();
    for worker in 0..workers {
        let (stores, ops, pacer) = (stores.clone(), ops.clone(), Arc::clone(&pacer));
        set.spawn(async move {
            let (ops, mut window) = (&*ops, Window::new(true));
            let mut at = worker;
            loop {
                let Some(planned) = pacer.lock().await.next().await else { break };
                let sent = clock.now();
                let outcome = send(&stores, &ops[at % ops.len()]).await;
                let end = clock.now();
                window.late(planned, sent, end);
                window.count(outcome);
                window.ended = end;
                at += workers;
            }
            window
        });
    }
    let mut window = gather(set).await;
    window.tally.skipped = pacer.lock().await.skipped;
    Ok(window)
}

impl Window {
    fn late(&mut self, planned: u64, sent: u64, end: u64) {
        const LATE: u64 = 1_000_000;
        let lag = sent.saturating_sub(planned);
        self.latency.response.record(end.saturating_sub(planned));
        let Latency { service, lag: lags, .. } = &mut self.latency;
        if let (Some(service), Some(lags)) = (service, lags) {
            service.record(end - sent);
            lags.record(lag);
        }
        self.tally.late += u64::from(lag > LATE);
    }
}

async fn gather(mut set: JoinSet<Window>) -> Window {
    let mut all: Option<Window> = None;
    while let Some(done) = set.join_next().await {
        // A worker that panics is a bug, and to be seen.
        let window = done.expect("a worker ends in good order");
        match &mut all {
            None => all = Some(window),
            Some(all) => all.add(window),
        }
    }
    all.unwrap_or_default()
}

/// Sends an operation and waits for all of its answer.
async fn send(stores: &Stores, op: &Op) -> Result<Outcome> {
    match op {
        Op::Get(keys) => {
            let found = stores.table.get(keys).await?;
            let read = found.iter().flatten().count();
            if read < keys.len() {
                let at = found.iter().position(Option::is_none).unwrap_or(0);
                return Ok(missing(keys.get(at)));
            }
            Ok(Outcome::Done(read as u64))
        }
        Op::Find(query, expected) => {
            let read = drained(&*stores.table, query).await?;
            match expected {
                Some(expected) if read != *expected => {
                    Ok(Outcome::Missed(format!("{read} records came instead of {expected}")))
                }
                _ => Ok(Outcome::Done(read)),
            }
        }
        Op::Put(row) => {
            stores.table.put(std::slice::from_ref(row)).await?;
            Ok(Outcome::Done(1))
        }
        Op::Change(key, fields) => change(stores, key, fields).await,
        Op::Relate(relate) => relate.send(stores).await,
    }
}

/// A record that has to be there and is not.
pub(super) fn missing(key: Option<&Key>) -> Outcome {
    let key = key.map_or_else(String::new, |key| key.shown());
    Outcome::Missed(format!("there is no record {key}, which was written"))
}

async fn change(stores: &Stores, key: &Key, fields: &Document) -> Result<Outcome> {
    let found = stores.table.get(std::slice::from_ref(key)).await?;
    let Some(mut record) = found.into_iter().next().flatten() else {
        return Ok(missing(Some(key)));
    };
    for (name, value) in fields.iter() {
        record.insert(name, value.clone());
    }
    stores.table.put(&[Row { key: key.clone(), record }]).await?;
    Ok(Outcome::Done(1))
}

/// Asks a query and reads its whole answer.
pub(super) async fn drained(store: &dyn Store, query: &Query) -> Result<u64> {
    let mut rows = store.find(query).await?;
    let mut read = 0;
    while let Some(batch) = rows.try_next().await? {
        read += batch.len() as u64;
    }
    Ok(read)
}
