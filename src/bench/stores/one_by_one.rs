//! Phases whose operations are sent one by one: warmed up, then in a closed or an open loop.

use super::{
    super::{
        crew::Crew,
        drive::{self, Op, Ops, Stores},
        expected::Expected,
        ops, statement,
    },
    Bout, Done,
};
use crate::{
    Error, ErrorKind, Result,
    bench::{
        results::Tally,
        schedule::{Limit, Pace},
        stats::{Steady, WINDOWS},
        workload::{Act, Phase},
    },
};

/// The longest that a phase is warmed up, in nanoseconds, before it counts as not settled.
const WARM_UP: u64 = 2_000_000_000;

/// How a phase is warmed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WarmUp {
    /// Until its operations are steady by test (rule 7).
    Steady,
    /// By all of its operations, once.
    Once,
    /// Not at all.
    No,
}

impl Bout<'_> {
    pub(super) async fn one_by_one(
        &mut self,
        phase: &Phase,
        expected: &Expected,
        warm_up: WarmUp,
    ) -> Result<Done> {
        let (stores, records) = (self.stores(phase)?, self.records(&phase.table)?);
        let grown = self.grown.get(&phase.table).copied().unwrap_or(0);
        let to = match &phase.act {
            Act::Relate { to, .. } => self.names.get(to).map_or(to.as_str(), String::as_str),
            _ => "",
        };
        let (mut drawn, inserted) = ops::ops(phase, records, expected, grown, to, self.seed)?;
        if self.null {
            // Who looks for nothing has to be told how many records would come.
            for op in &mut drawn {
                match op {
                    Op::Find(query, expected) => query.limit = expected.or(query.limit),
                    Op::Relate(relate) => *op = Op::Get(relate.as_keys()),
                    _ => {}
                }
            }
        }
        let ops = Ops::from(drawn);
        for op in ops.iter().take(100) {
            match op {
                Op::Find(query, _) => stores.table.abilities().can(query)?,
                Op::Relate(relate) => relate.possible(&stores)?,
                _ => {}
            }
        }
        if inserted > 0 && matches!(phase.limit, Some(Limit::Seconds(_))) {
            let what = "a mix with inserts needs a count: new records are new only once";
            return Err(Error::invalid(what));
        }
        let crew = self.crew(phase)?;
        let statements = match self.explains {
            true => statement::of_ops(&stores, &ops).await,
            false => Vec::new(),
        };
        let (warm_up, settled) = match warm_up {
            WarmUp::Steady => self.warm_up(&crew, &stores, &ops).await?,
            WarmUp::Once => {
                let once = drive::closed(&crew, self.clock, &stores, &ops, None).await?;
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
                drive::closed(&crew, self.clock, &stores, &ops, until).await?
            }
            (None, _) if phase.pace != Pace::Free => {
                return Err(Error::invalid(
                    "a share of the capacity, which no phase before it has measured",
                ));
            }
            (None, _) => drive::closed(&crew, self.clock, &stores, &ops, None).await?,
            (Some(moments), limit) => {
                let rate = offered.unwrap_or(1.0);
                let seconds = match limit {
                    Some(Limit::Seconds(seconds)) => seconds,
                    _ => ops.len() as f64 / rate,
                };
                drive::open(&crew, self.clock, &stores, &ops, (moments, seconds)).await?
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
        if phase.act.changes() {
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
    async fn warm_up(&self, crew: &Crew, stores: &Stores, ops: &Ops) -> Result<(Vec<f64>, bool)> {
        let part = ops.len().div_ceil(WINDOWS).max(crew.workers());
        let begin = self.clock.now();
        let mut windows = Vec::with_capacity(WINDOWS);
        for ops in ops.parts(part).cycle() {
            let at = self.clock.now();
            let window = drive::closed(crew, self.clock, stores, &ops, None).await?;
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
