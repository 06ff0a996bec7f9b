//! Phases whose operations are sent one by one: warmed up, then in a closed or an open loop.

use super::{
    load_loop::{self, Ops},
    operation::{Operation, Stores},
    statement,
    turn::{Done, Turn},
    workers::Workers,
};
use crate::{
    Error, ErrorKind, Result,
    results::Tally,
    schedule::{Limit, Pace},
    stats::{Steady, WINDOWS},
    workload::Phase,
};

/// The longest that a phase is warmed up, in nanoseconds, before it counts as not settled.
const WARM_UP: u64 = 2_000_000_000;

/// How a phase is warmed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WarmUp {
    /// Until its operations are steady by test (rule 7).
    Steady,
    /// By all of its operations, once.
    Once,
    /// Not at all.
    No,
}

impl WarmUp {
    fn of(phase: &Phase) -> WarmUp {
        match phase.room {
            None if phase.repeats() => WarmUp::Steady,
            Some(room) if room.warm => WarmUp::Once,
            None | Some(_) => WarmUp::No,
        }
    }
}

impl Turn<'_> {
    /// Sends operations, which were drawn beforehand, as a phase says.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) where the store cannot do them;
    /// [`Mismatch`](ErrorKind::Mismatch) where an answer is wrong; those of the store.
    pub(super) async fn one_by_one<O: Operation>(
        &mut self,
        phase: &Phase,
        ops: Vec<O>,
    ) -> Result<Done> {
        if ops.is_empty() {
            return Err(Error::invalid("a phase of no operations"));
        }
        let (stores, ops) = (self.stores(phase)?, Ops::from(ops));
        ops.iter().take(100).try_for_each(|op| op.possible(&stores))?;
        let inserted = ops.iter().filter(|op| op.adds()).count() as u64;
        if inserted > 0 && matches!(phase.limit, Some(Limit::Seconds(_))) {
            let what = "a mix with inserts needs a count: new records are new only once";
            return Err(Error::invalid(what));
        }
        let workers = self.workers(phase)?;
        let statements = match self.explains {
            true => statement::of_ops(&stores, &ops).await,
            false => Vec::new(),
        };
        let (warm_up, settled) = match WarmUp::of(phase) {
            WarmUp::Steady => self.warm_up(&workers, &stores, &ops).await?,
            WarmUp::Once => {
                let once = load_loop::closed(&workers, self.clock, &stores, &ops, None).await?;
                once.first.map_or(Ok((Vec::new(), true)), Err)?
            }
            WarmUp::No => (Vec::new(), true),
        };
        let capacity = self.capacity.get(&phase.table).map_or(0.0, |measured| measured.1);
        let moments = phase.pace.moments(self.seed, capacity);
        let offered = match phase.pace {
            Pace::Free => None,
            Pace::Fixed(rate) | Pace::Poisson(rate) => Some(rate),
            Pace::Share(share) => Some(share * capacity),
        };
        let before = self.before();
        let mut window = match (moments, phase.limit) {
            (None, Some(Limit::Seconds(seconds))) => {
                let until = Some(before.at.saturating_add((seconds * 1e9) as u64));
                load_loop::closed(&workers, self.clock, &stores, &ops, until).await?
            }
            (None, _) if phase.pace != Pace::Free => {
                return Err(Error::invalid(
                    "a share of the capacity, which no phase before it has measured",
                ));
            }
            (None, _) => load_loop::closed(&workers, self.clock, &stores, &ops, None).await?,
            (Some(moments), limit) => {
                let rate = offered.unwrap_or(1.0);
                let seconds = match limit {
                    Some(Limit::Seconds(seconds)) => seconds,
                    _ => ops.len() as f64 / rate,
                };
                load_loop::open(&workers, self.clock, &stores, &ops, (moments, seconds)).await?
            }
        };
        let mut done = self.after(before, window.tally.done);
        done.items = window.items;
        if window.tally.missed > 0 || done.units == 0 {
            return Err(window.first.unwrap_or_else(|| {
                Error::new(ErrorKind::Mismatch, "not one operation came out right")
            }));
        }
        self.answered(phase, &ops, &mut window)?;
        let Tally { failed, skipped, .. } = window.tally;
        let all = failed + skipped == 0 && !matches!(phase.limit, Some(Limit::Seconds(_)));
        self.read_back(phase, &ops, all).await?;
        if phase.changes() {
            self.changed(phase);
        }
        if phase.pace == Pace::Free {
            let rate = done.units as f64 * 1e9 / done.used.ns.max(1) as f64;
            let family = phase.family();
            // The capacity of a curve is its best point.
            let best = match self.capacity.get(&phase.table) {
                Some((of, best)) if of == family => rate.max(*best),
                _ => rate,
            };
            self.capacity.insert(phase.table.clone(), (family.to_owned(), best));
        }
        if inserted > 0 {
            *self.grown.entry(phase.table.clone()).or_default() += inserted;
            let there = self.there.get(&phase.table).copied().unwrap_or(0) + inserted;
            self.same("records are there", stores.table.count().await?, there)?;
            self.there.insert(phase.table.clone(), there);
        }
        Ok(Done { window: Some(window), warm_up, settled, offered, statements, ..done })
    }

    /// Repeats parts of the operations until they are steady by test (rule 7).
    async fn warm_up<O: Operation>(
        &self,
        workers: &Workers,
        stores: &Stores,
        ops: &Ops<O>,
    ) -> Result<(Vec<f64>, bool)> {
        let part = ops.len().div_ceil(WINDOWS).max(workers.count());
        let begin = self.clock.now();
        let mut windows = Vec::with_capacity(WINDOWS);
        for ops in ops.parts(part).cycle() {
            let at = self.clock.now();
            let window = load_loop::closed(workers, self.clock, stores, &ops, None).await?;
            if let Some(e) = window.first {
                return Err(e);
            }
            windows.push((self.clock.now() - at) as f64 / ops.len() as f64);
            if Steady::of(&windows) != Steady::NotYet || self.clock.now() - begin > WARM_UP {
                break;
            }
        }
        let settled = Steady::of(&windows) == Steady::Settled;
        Ok((windows, settled))
    }
}
