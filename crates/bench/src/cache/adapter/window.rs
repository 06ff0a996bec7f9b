//! The timed loop of an adapter: the same for every client in Rust.
//!
//! Connections are there and values stored before the time begins; inside of it there are the
//! client's calls, the comparison of what was read, and one reading of the clock for each step.

use std::{
    sync::{Barrier, Mutex, PoisonError},
    time::Duration,
};

use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};

use super::{Calls, Found};
use crate::{
    Error, Result,
    accounting::Usage,
    cache::{
        protocol::{Done, Task},
        rows::{STORED, shares},
    },
    clock::Monotonic,
    histogram::Histogram,
    schedule::{Moments, Pace},
    timer::Timer,
};

/// What is sent later than this after its moment is late, in nanoseconds.
const LATE: u64 = 1_000_000;

/// A step of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Set(usize),
    Get(usize),
    Delete(usize),
    All,
}

/// A task, taken apart.
pub(super) struct Window {
    task: Task,
    steps: Vec<Step>,
    /// The keys that are stored by what is not waited for.
    flood: Vec<usize>,
    clock: Monotonic,
}

/// What a worker has seen.
#[derive(Default)]
struct Seen {
    done: Done,
    error: Option<Error>,
}

/// The moments of an open loop, to whoever asks next.
struct Plan {
    begin: u64,
    moments: Mutex<(Moments, u64, u64)>,
}

impl Plan {
    /// The number of the next step and its moment on the clock.
    fn next(&self) -> Option<(u64, u64)> {
        let mut plan = self.moments.lock().unwrap_or_else(PoisonError::into_inner);
        let (moments, next, end) = &mut *plan;
        if *next >= *end {
            return None;
        }
        *next += 1;
        Some((*next - 1, self.begin + moments.next()?))
    }
}

impl Window {
    pub(super) fn new(task: &Task) -> Result<Window> {
        let step = |text: &str| {
            let key = || {
                let n = text.get(1..)?.parse::<usize>().ok()?.checked_sub(1)?;
                (n < task.values.len() && n < task.keys.len()).then_some(n)
            };
            let step = match text.as_bytes().first() {
                Some(b's') => key().map(Step::Set),
                Some(b'g') => key().map(Step::Get),
                Some(b'd') => key().map(Step::Delete),
                Some(b'm') if text.len() == 1 => Some(Step::All),
                _ => None,
            };
            step.ok_or_else(|| Error::invalid(format!("{text:?} is no step of a script")))
        };
        let steps: Vec<Step> = task.script.split_whitespace().map(step).collect::<Result<_>>()?;
        if steps.is_empty() {
            return Err(Error::invalid("a script without steps"));
        }
        let set = |step: &Step| match step {
            Step::Set(k) => Some(*k),
            _ => None,
        };
        let flood = steps.iter().filter_map(set).collect();
        Ok(Window { task: task.clone(), steps, flood, clock: Monotonic::default() })
    }

    /// Puts the values where the script wants them to be, by the first client.
    async fn prepare<C: Calls>(&self, client: &mut C) -> Result<()> {
        let deletes = self.steps.iter().any(|step| matches!(step, Step::Delete(_)));
        for k in 0..self.task.values.len().min(STORED) {
            match deletes {
                true => client.delete(k).await?,
                false => client.set(k).await?,
            }
        }
        Ok(())
    }

    /// Reads what a window has written.
    async fn prove<C: Calls>(&self, client: &mut C, done: &mut Done) -> Result<()> {
        for &k in &self.flood {
            if client.get(k).await? != Found::Hit {
                done.wrong += 1;
                done.first.get_or_insert(format!("k{} is not what was stored", k + 1));
            }
        }
        Ok(())
    }

    /// Every client on a thread of its own; a single one on this one.
    pub(super) fn on_threads<C: Calls + Send>(&self, clients: &mut [C]) -> Result<Done> {
        at_once(self.prepare(&mut clients[0]))?;
        let shares: Vec<u64> = shares(self.task.operations, clients.len() as u32).collect();
        if clients.len() > 1 {
            // All connections are made now.
            std::thread::scope(|scope| {
                let run =
                    |client| scope.spawn(move || at_once(self.work(client, self.warm(), None)));
                clients
                    .iter_mut()
                    .map(run)
                    .collect::<Vec<_>>()
                    .into_iter()
                    .for_each(|t| drop(t.join()));
            });
        }
        let (mut seen, usage) = match &mut *clients {
            [client] => {
                let plan = self.plan();
                let begin = Begun::now(&self.clock);
                let seen = at_once(self.work(client, shares[0], plan.as_ref()));
                (vec![seen], begin.end(&self.clock))
            }
            clients => {
                let (ready, plan) = (Barrier::new(clients.len() + 1), Mutex::new(None));
                std::thread::scope(|scope| {
                    let (ready, plan, mut running) = (&ready, &plan, Vec::new());
                    for (client, share) in clients.iter_mut().zip(&shares) {
                        running.push(scope.spawn(move || {
                            ready.wait();
                            // Made before anybody passes the second barrier.
                            ready.wait();
                            let plan: Option<std::sync::Arc<Plan>> =
                                plan.lock().unwrap_or_else(PoisonError::into_inner).clone();
                            at_once(self.work(client, *share, plan.as_deref()))
                        }));
                    }
                    ready.wait();
                    *plan.lock().unwrap_or_else(PoisonError::into_inner) =
                        self.plan().map(std::sync::Arc::new);
                    let begin = Begun::now(&self.clock);
                    ready.wait();
                    let joined = running.into_iter().map(|t| t.join().unwrap_or_default());
                    let seen: Vec<Seen> = joined.collect();
                    (seen, begin.end(&self.clock))
                })
            }
        };
        let mut done = together(&mut seen, usage);
        if done.errors == 0 {
            at_once(self.prove(&mut clients[0], &mut done))?;
        }
        Ok(done)
    }

    /// Every client in a task of its own, all on this thread.
    pub(super) async fn in_tasks<C: Calls>(&self, clients: &mut [C]) -> Result<Done> {
        self.prepare(&mut clients[0]).await?;
        let shares: Vec<u64> = shares(self.task.operations, clients.len() as u32).collect();
        if clients.len() > 1 {
            let all = clients.iter_mut().map(|client| self.work(client, self.warm(), None));
            all.collect::<FuturesUnordered<_>>().collect::<Vec<_>>().await;
        }
        let plan = self.plan();
        let all: FuturesUnordered<_> = (clients.iter_mut().zip(&shares))
            .map(|(client, share)| self.work(client, *share, plan.as_ref()))
            .collect();
        let begin = Begun::now(&self.clock);
        let mut seen: Vec<Seen> = all.collect().await;
        let usage = begin.end(&self.clock);
        let mut done = together(&mut seen, usage);
        if done.errors == 0 {
            self.prove(&mut clients[0], &mut done).await?;
        }
        Ok(done)
    }

    /// Steps of each connection before the time begins.
    fn warm(&self) -> u64 {
        4 * self.steps.len() as u64
    }

    fn plan(&self) -> Option<Plan> {
        let (rate, seed) = (self.task.rate, self.task.seed);
        let moments = (rate > 0.0).then(|| Pace::Poisson(rate).moments(seed, 0.0)).flatten()?;
        let moments = Mutex::new((moments, 0, self.task.operations));
        Some(Plan { begin: self.clock.now(), moments })
    }

    /// The work of one connection.
    async fn work<C: Calls>(&self, client: &mut C, share: u64, plan: Option<&Plan>) -> Seen {
        let mut seen = Seen::default();
        let worked = match plan {
            Some(plan) => self.planned(client, plan, &mut seen.done).await,
            None if self.task.noblock => {
                let flooded = client.flood(&self.flood, share).await;
                flooded.map(|()| seen.done.operations = share)
            }
            None => self.one_by_one(client, share, &mut seen.done).await,
        };
        seen.error = worked.err();
        seen
    }

    /// Each step as soon as the one before is done.
    async fn one_by_one<C: Calls>(
        &self,
        client: &mut C,
        share: u64,
        done: &mut Done,
    ) -> Result<()> {
        let mut times = self.task.latency.then(Histogram::growing);
        let mut before = self.clock.now();
        for (_, step) in (0..share).zip(self.steps.iter().cycle()) {
            do_step(client, *step, done).await?;
            if let Some(times) = &mut times {
                let now = self.clock.now();
                times.record(now - before);
                before = now;
            }
        }
        done.latency = times;
        Ok(())
    }

    /// Each step at its moment, or as soon after it as a connection is free.
    async fn planned<C: Calls>(&self, client: &mut C, plan: &Plan, done: &mut Done) -> Result<()> {
        let mut timer = if C::BLOCKING { None } else { Some(Timer::new()?) };
        let (mut response, mut service, mut lag) =
            (Histogram::growing(), Histogram::growing(), Histogram::growing());
        while let Some((number, moment)) = plan.next() {
            let early = moment.saturating_sub(self.clock.now());
            match &mut timer {
                _ if early == 0 => {}
                Some(timer) => timer.wait(Duration::from_nanos(early)).await,
                None => std::thread::sleep(Duration::from_nanos(early)),
            }
            let sent = self.clock.now();
            do_step(client, self.steps[number as usize % self.steps.len()], done).await?;
            let end = self.clock.now();
            let behind = sent.saturating_sub(moment);
            done.late += u64::from(behind > LATE);
            response.record(end.saturating_sub(moment));
            service.record(end - sent);
            lag.record(behind);
        }
        (done.latency, done.service, done.lag) = (Some(response), Some(service), Some(lag));
        Ok(())
    }
}

#[inline]
async fn do_step<C: Calls>(client: &mut C, step: Step, done: &mut Done) -> Result<()> {
    match step {
        Step::Set(k) => client.set(k).await?,
        Step::Delete(k) => client.delete(k).await?,
        Step::Get(k) => match client.get(k).await? {
            Found::Hit => done.hits += 1,
            Found::Miss => done.misses += 1,
            Found::Wrong => {
                done.wrong += 1;
                done.first.get_or_insert_with(|| format!("k{} has another value", k + 1));
            }
        },
        Step::All => {
            let tally = client.get_all().await?;
            done.hits += tally.hits;
            done.misses += tally.misses;
            done.wrong += tally.wrong;
        }
    }
    done.operations += 1;
    Ok(())
}

/// Runs what never waits for a runtime.
fn at_once<T: Unready>(work: impl Future<Output = T>) -> T {
    work.now_or_never().unwrap_or_else(T::unready)
}

/// What a blocking client's call would be that was not done at once.
trait Unready {
    fn unready() -> Self;
}

fn unready() -> Error {
    Error::unsupported("a blocking client's call was not done when it returned")
}

impl<T> Unready for Result<T> {
    fn unready() -> Self {
        Err(unready())
    }
}

impl Unready for Seen {
    fn unready() -> Self {
        Seen { error: Some(unready()), ..Seen::default() }
    }
}

/// The beginning of the time.
struct Begun {
    usage: Usage,
    at: u64,
}

impl Begun {
    fn now(clock: &Monotonic) -> Begun {
        Begun { usage: Usage::now(), at: clock.now() }
    }

    fn end(self, clock: &Monotonic) -> Usage {
        let end = clock.now();
        Usage { ns: end - self.at, ..Usage::now().since(&self.usage) }
    }
}

/// What all workers have seen, and what it took.
fn together(seen: &mut [Seen], usage: Usage) -> Done {
    let mut all = Done {
        elapsed_ns: usage.ns,
        user_ns: usage.user_ns,
        system_ns: usage.system_ns,
        waits: Some(usage.waits),
        preemptions: usage.preemptions,
        ..Done::default()
    };
    let add = |to: &mut Option<Histogram>, from: &Option<Histogram>| match (to, from) {
        (Some(to), Some(from)) => to.merge(from),
        (to @ None, from) => to.clone_from(from),
        (Some(_), None) => {}
    };
    for Seen { done, error } in seen {
        all.operations += done.operations;
        all.hits += done.hits;
        all.misses += done.misses;
        all.wrong += done.wrong;
        all.late += done.late;
        all.first = all.first.take().or(done.first.take());
        if let Some(error) = error.take() {
            all.errors += 1;
            all.first.get_or_insert(error.to_string());
        }
        add(&mut all.latency, &done.latency);
        add(&mut all.service, &done.service);
        add(&mut all.lag, &done.lag);
    }
    all
}
