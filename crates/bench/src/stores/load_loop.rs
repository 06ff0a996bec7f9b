//! The load loops: the timed window of operations that are sent one by one, closed or open.
//!
//! Inside the window workers share nothing: each has its own operations and its own histograms, which
//! are added up when the window is over. (The moments of an open loop are one schedule, from which each
//! worker takes the next.) An operation costs one reading of the clock in the closed loop, for the end
//! of one is the beginning of the next. The loops are generic over the operation, so that nothing of it
//! is looked up within the window.

use std::{
    ops::{Deref, Range},
    sync::Arc,
};

use super::{
    answers::{Answer, Aside},
    operation::{Operation, Outcome, Stores},
    schedule_timer::{Schedule, ScheduleTimer},
    workers::Workers,
};
use crate::{
    Error, ErrorKind, Result,
    clock::Monotonic,
    results::{Latency, Tally},
    schedule::Moments,
    stop::Stop,
};

/// Operations, or a part of them.
pub(super) struct Ops<O> {
    all: Arc<[O]>,
    part: Range<usize>,
}

impl<O> Clone for Ops<O> {
    fn clone(&self) -> Self {
        Ops { all: Arc::clone(&self.all), part: self.part.clone() }
    }
}

impl<O> From<Vec<O>> for Ops<O> {
    fn from(all: Vec<O>) -> Self {
        Ops { part: 0..all.len(), all: all.into() }
    }
}

impl<O> Deref for Ops<O> {
    type Target = [O];

    fn deref(&self) -> &[O] {
        &self.all[self.part.clone()]
    }
}

impl<O> Ops<O> {
    /// So many at a time.
    pub(super) fn parts(&self, size: usize) -> impl Iterator<Item = Ops<O>> + Clone {
        let Range { start, end } = self.part;
        (start..end)
            .step_by(size.max(1))
            .map(move |from| Ops { all: Arc::clone(&self.all), part: from..(from + size).min(end) })
    }
}

/// The results of a window.
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
    /// Answers that were put aside, to be looked at.
    pub answers: Vec<Answer>,
    /// How many operations in a row had no answer in time.
    late: u32,
    /// Why a worker ended before its operations were done.
    gave_up: Option<Error>,
}

/// After so many timeouts in a row a worker sends nothing more: each takes as long as the time limit of an
/// operation, so that a server that has stopped would hold up the run for hours.
const TIMEOUTS: u32 = 3;

impl Window {
    fn new(open: bool) -> Window {
        Window { latency: Latency::of_window(open), ..Window::default() }
    }

    /// Adds the results of another.
    pub(super) fn add(&mut self, other: Window) {
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

/// Sends operations one after another, each worker its share of them, until all are done or, where
/// `until` is given, until that moment, beginning again with the first where need be.
///
/// # Errors
/// [`Unavailable`](ErrorKind::Unavailable) where the run is to end; [`Timeout`](ErrorKind::Timeout) where some
/// operations in a row timed out; other errors of operations are counted.
pub(super) async fn closed<O: Operation>(
    workers: &Workers,
    clock: Monotonic,
    stores: &Stores,
    ops: &Ops<O>,
    until: Option<u64>,
) -> Result<Window> {
    let count = workers.count();
    let work = |worker: usize| {
        let (stores, ops, ended) = (stores.clone(), ops.clone(), workers.ended.clone());
        async move {
            let (ops, mut window) = (&ops[..], Window::new(false));
            let mut aside = Aside::of(ops.len(), count);
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
                let outcome = ops[at].send(&stores, &mut aside).await;
                let end = clock.now();
                if window.count(outcome) {
                    window.latency.response.record(end - begin);
                }
                begin = end;
                at += count;
                let over = until.is_some_and(|until| end >= until);
                if over || window.gave_up.is_some() || ended.is_set() {
                    break;
                }
            }
            window.ended = begin;
            window.answers = aside.into_answers();
            Ok(window)
        }
    };
    let window = workers.run(true, work).await?;
    going_on(&workers.ended)?;
    window.whole()
}

/// Whether a run goes on.
///
/// # Errors
/// Where it is to end.
pub(super) fn going_on(ended: &Stop) -> Result<()> {
    ended.check()
}

/// Sends operations at planned moments; as many may be on their way at once as there are workers.
///
/// # Errors
/// Where the system gives no timer; as [`closed`].
pub(super) async fn open<O: Operation>(
    workers: &Workers,
    clock: Monotonic,
    stores: &Stores,
    ops: &Ops<O>,
    (moments, seconds): (Moments, f64),
) -> Result<Window> {
    let count = workers.count();
    let schedule = Schedule::new(clock, moments, seconds);
    let work = |worker: usize| {
        let (stores, ops, schedule) = (stores.clone(), ops.clone(), schedule.clone());
        let ended = workers.ended.clone();
        async move {
            let (ops, mut window) = (&ops[..], Window::new(true));
            let mut aside = Aside::of(ops.len(), count);
            let mut timer = ScheduleTimer::new(schedule)?;
            let mut at = worker;
            while let Some(planned) = timer.next().await {
                let sent = clock.now();
                aside.next(at % ops.len());
                let outcome = ops[at % ops.len()].send(&stores, &mut aside).await;
                let end = clock.now();
                window.add_planned(outcome, planned, sent, end);
                at += count;
                if window.gave_up.is_some() || ended.is_set() {
                    break;
                }
            }
            window.answers = aside.into_answers();
            Ok(window)
        }
    };
    let mut window = workers.run(false, work).await?;
    going_on(&workers.ended)?;
    window.tally.skipped = schedule.skipped();
    window.whole()
}

impl Window {
    /// Counts an operation of an open loop, by the moment for which it was planned.
    fn add_planned(&mut self, outcome: Result<Outcome>, planned: u64, sent: u64, end: u64) {
        const LATE: u64 = 1_000_000;
        let lag = sent.saturating_sub(planned);
        let good = self.count(outcome);
        let Latency { response, service, lag: lags } = &mut self.latency;
        // How late the schedule is kept is counted for every operation, latency for good ones.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        record::Document,
        schedule::Pace,
        store::{self, Key, Row},
        stores::operation::Op,
    };

    /// Operations of which one in three is good, one finds nothing, and one fails.
    async fn of_three_kinds() -> (Stores, Ops<Op>) {
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
        for workers in [Workers::tasks(1), Workers::tasks(4), Workers::threads(4).unwrap()] {
            let window = closed(&workers, clock, &stores, &ops, None).await.unwrap();
            let Tally { done, failed, missed, .. } = window.tally;
            assert_eq!((done, failed, missed), (20, 20, 20));
            assert_eq!(window.latency.response.count(), done);

            let moments = Pace::Fixed(6_000.0).moments(1, 0.0).unwrap();
            let window = open(&workers, clock, &stores, &ops, (moments, 0.01)).await.unwrap();
            let Tally { done, failed, missed, skipped, .. } = window.tally;
            let sent = done + failed + missed;
            assert_eq!(sent + skipped, 60);
            let Latency { response, service, lag } = window.latency;
            assert_eq!((response.count(), service.unwrap().count()), (done, done));
            assert_eq!(lag.unwrap().count(), sent);
        }
    }
}
