//! The timed window of operations that are sent one by one: the closed and the open loop.
//!
//! Inside the window a worker touches nothing that another touches: each has its own operations and
//! its own histograms, which are added up when the window is over. (The moments of an open loop are
//! one plan, from which each worker takes the next.) An operation costs one reading of the clock in
//! the closed loop, for the end of one is the beginning of the next.

use std::{
    ops::{Deref, Range},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use futures_util::TryStreamExt;

use super::{
    answers::{Answer, Aside, Found},
    crew::Crew,
    pace::{Pacer, Plan},
    relate::Relate,
};
use crate::{
    Error, ErrorKind, Result,
    bench::{
        clock::Monotonic,
        results::{Latency, Tally},
        schedule::{Moments, interrupted},
    },
    record::Document,
    store::{Key, Query, Row, Store},
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
    /// Answers that were put aside.
    pub answers: Vec<Answer>,
    /// How many operations in a row had no answer in time.
    late: u32,
    /// Why a worker ended before its operations were done.
    gave_up: Option<Error>,
}

/// After so many timeouts in a row a worker sends nothing more: each takes as long as an operation may, so that a server
/// that has stopped would hold up the run for hours.
const TIMEOUTS: u32 = 3;

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
        self.answers.extend(other.answers);
        self.gave_up = self.gave_up.take().or(other.gave_up);
        if self.first.is_none() {
            self.first = other.first;
        }
    }

    /// The window, unless a worker gave up.
    ///
    /// # Errors
    /// [`Timeout`](ErrorKind::Timeout) where one did.
    fn whole(mut self) -> Result<Window> {
        self.gave_up.take().map_or(Ok(self), Err)
    }

    /// Counts an operation, and says whether it was good. Only then is its time a latency: how long
    /// it takes to fail says nothing of how long an answer takes.
    fn count(&mut self, outcome: Result<Outcome>) -> bool {
        match outcome {
            Ok(Outcome::Done(items)) => {
                self.late = 0;
                self.tally.done += 1;
                self.items += items;
                return true;
            }
            Ok(Outcome::Missed(what)) => {
                self.late = 0;
                self.tally.missed += 1;
                if self.first.is_none() {
                    self.first = Some(Error::new(ErrorKind::Mismatch, what));
                }
            }
            Err(e) => {
                self.tally.failed += 1;
                self.tally.timed_out += u64::from(e.is_timeout());
                self.late = if e.is_timeout() { self.late + 1 } else { 0 };
                if self.late == TIMEOUTS {
                    let why = format!("{TIMEOUTS} operations in a row: {}", e.context());
                    self.gave_up = Some(Error::timeout(why));
                }
                if self.first.is_none() {
                    self.first = Some(e);
                }
            }
        }
        false
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

/// Sends operations one after another by a crew, each worker its share of them, until all are done
/// or, where `until` is given, until that moment, again from the first where need be.
///
/// # Errors
/// [`Unavailable`](ErrorKind::Unavailable) where the run is to end; [`Timeout`](ErrorKind::Timeout) where some
/// operations in a row were; none else of the operations': those are counted.
pub(super) async fn closed(
    crew: &Crew,
    clock: Monotonic,
    stores: &Stores,
    ops: &Ops,
    until: Option<u64>,
) -> Result<Window> {
    let workers = crew.workers();
    let work = |worker| {
        let (stores, ops, ended) = (stores.clone(), ops.clone(), Arc::clone(&crew.ended));
        async move {
            let (ops, mut window) = (&*ops, Window::new(false));
            let mut aside = Aside::of(ops.len(), workers);
            let mut at = worker;
            let mut begin = clock.now();
            loop {
                if at >= ops.len() {
                    match until {
                        Some(_) if worker < ops.len() => at = worker,
                        _ => break,
                    }
                }
                aside.next(at);
                let outcome = send(&stores, &ops[at], &mut aside).await;
                let end = clock.now();
                if window.count(outcome) {
                    window.latency.response.record(end - begin);
                }
                begin = end;
                at += workers;
                let over = until.is_some_and(|until| end >= until);
                if over || window.gave_up.is_some() || ended.load(Relaxed) {
                    break;
                }
            }
            window.ended = begin;
            window.answers = aside.into_answers();
            Ok(window)
        }
    };
    let window = crew.work(true, work).await?;
    going_on(&crew.ended)?;
    window.whole()
}

/// Whether a run goes on.
///
/// # Errors
/// [`interrupted`] where it is to end.
pub(super) fn going_on(ended: &AtomicBool) -> Result<()> {
    if ended.load(Relaxed) { Err(interrupted()) } else { Ok(()) }
}

/// Sends operations at planned moments; as many may be on their way at once as the crew has workers.
///
/// # Errors
/// Where the system gives no timer; as [`closed`].
pub(super) async fn open(
    crew: &Crew,
    clock: Monotonic,
    stores: &Stores,
    ops: &Ops,
    (moments, seconds): (Moments, f64),
) -> Result<Window> {
    let workers = crew.workers();
    let plan = Plan::new(clock, moments, seconds);
    let work = |worker| {
        let (stores, ops, plan) = (stores.clone(), ops.clone(), plan.clone());
        let ended = Arc::clone(&crew.ended);
        async move {
            let (ops, mut window) = (&*ops, Window::new(true));
            let mut aside = Aside::of(ops.len(), workers);
            let mut pacer = Pacer::new(plan)?;
            let mut at = worker;
            while let Some(planned) = pacer.next().await {
                let sent = clock.now();
                aside.next(at % ops.len());
                let outcome = send(&stores, &ops[at % ops.len()], &mut aside).await;
                let end = clock.now();
                window.add_planned(outcome, planned, sent, end);
                at += workers;
                if window.gave_up.is_some() || ended.load(Relaxed) {
                    break;
                }
            }
            window.answers = aside.into_answers();
            Ok(window)
        }
    };
    let mut window = crew.work(false, work).await?;
    going_on(&crew.ended)?;
    window.tally.skipped = plan.skipped();
    window.whole()
}

impl Window {
    /// Counts an operation of an open loop, by the moment for which it was planned.
    fn add_planned(&mut self, outcome: Result<Outcome>, planned: u64, sent: u64, end: u64) {
        const LATE: u64 = 1_000_000;
        let lag = sent.saturating_sub(planned);
        let good = self.count(outcome);
        let Latency { response, service, lag: lags } = &mut self.latency;
        // How late the plan is kept is seen on every operation, how long answers take on good ones.
        if let Some(lags) = lags {
            lags.record(lag);
        }
        if good {
            response.record(end.saturating_sub(planned));
            if let Some(service) = service {
                service.record(end - sent);
            }
        }
        self.tally.late += u64::from(lag > LATE);
        self.ended = end;
    }
}

/// Sends an operation and waits for all of its answer.
async fn send(stores: &Stores, op: &Op, aside: &mut Aside) -> Result<Outcome> {
    match op {
        Op::Get(keys) => {
            let found = stores.table.get(keys).await?;
            let read = found.iter().flatten().count();
            if read < keys.len() || found.len() != keys.len() {
                let at = found.iter().position(Option::is_none).unwrap_or(found.len());
                return Ok(missing(keys.get(at)));
            }
            if aside.wants() {
                aside.put(Found::Records(found));
            }
            Ok(Outcome::Done(read as u64))
        }
        Op::Find(query, expected) => {
            let (read, first) = drained(&*stores.table, query, aside.wants()).await?;
            aside.put(Found::Rows(first));
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
        Op::Change(key, fields) => change(stores, key, fields, aside).await,
        Op::Relate(relate) => relate.send(stores, aside).await,
    }
}

/// A record that has to be there and is not.
pub(super) fn missing(key: Option<&Key>) -> Outcome {
    let key = key.map_or_else(String::new, |key| key.shown());
    Outcome::Missed(format!("there is no record {key}, which was written"))
}

async fn change(
    stores: &Stores,
    key: &Key,
    fields: &Document,
    aside: &mut Aside,
) -> Result<Outcome> {
    let found = stores.table.get(std::slice::from_ref(key)).await?;
    let Some(mut record) = found.into_iter().next().flatten() else {
        return Ok(missing(Some(key)));
    };
    if aside.wants() {
        aside.put(Found::Records(vec![Some(record.clone())]));
    }
    for (name, value) in fields.iter() {
        record.insert(name, value.clone());
    }
    stores.table.put(&[Row { key: key.clone(), record }]).await?;
    Ok(Outcome::Done(1))
}

/// Asks a query and reads its whole answer: how many rows there were, and the first batch of them where
/// it is wanted.
pub(super) async fn drained(
    store: &dyn Store,
    query: &Query,
    wanted: bool,
) -> Result<(u64, Vec<Row>)> {
    let mut rows = store.find(query).await?;
    let (mut read, mut first) = (0, Vec::new());
    while let Some(batch) = rows.try_next().await? {
        read += batch.len() as u64;
        if wanted && first.is_empty() {
            first = batch;
        }
    }
    Ok((read, first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{bench::schedule::Pace, store};

    /// Operations of which one in three is good, one finds nothing, and one fails.
    async fn of_three_kinds() -> (Stores, Ops) {
        let place = store::open("memory:").await.unwrap();
        let row = |key: &str| Row { key: Key::new(key).unwrap(), record: Document::new() };
        place.put(&[row("here")]).await.unwrap();
        let get = |key| Op::Get([row(key).key].into());
        let too_long = row(&"k".repeat(place.abilities().max_key + 1));
        let three = [get("here"), get("nowhere"), Op::Put(Box::new(too_long))];
        let ops: Vec<Op> = three.into_iter().cycle().take(60).collect();
        (Stores { table: Arc::clone(place.store()), other: None }, Ops::from(ops))
    }

    #[tokio::test]
    async fn the_time_of_what_fails_is_no_latency() {
        let (stores, ops) = of_three_kinds().await;
        let clock = Monotonic::default();
        for crew in [Crew::of_tasks(1), Crew::of_tasks(4), Crew::of_threads(4).unwrap()] {
            let window = closed(&crew, clock, &stores, &ops, None).await.unwrap();
            let Tally { done, failed, missed, .. } = window.tally;
            assert_eq!((done, failed, missed), (20, 20, 20));
            assert_eq!(window.latency.response.count(), done);

            let moments = Pace::Fixed(6_000.0).moments(1, 0.0).unwrap();
            let window = open(&crew, clock, &stores, &ops, (moments, 0.01)).await.unwrap();
            let Tally { done, failed, missed, skipped, .. } = window.tally;
            let sent = done + failed + missed;
            assert_eq!(sent + skipped, 60);
            let Latency { response, service, lag } = window.latency;
            assert_eq!((response.count(), service.unwrap().count()), (done, done));
            assert_eq!(lag.unwrap().count(), sent);
        }
    }
}
