//! The runner: competitors, phases, starts, rounds. It knows neither formats nor stores.
//!
//! One run goes like this (the rules are those of `docs/measuring.md`):
//!
//! 1. On each *start* every competitor prepares fresh data (5).
//! 2. On the first start each cell, that is a competitor in a phase, is warmed up until it is steady
//!    by test (7), and rehearsed once untimed: its counts are taken and its memory is weighed. On
//!    later starts it is run once for its speed.
//! 3. On each start the number of passes in a window is chosen for each phase, the same for all its
//!    competitors (`windows.rs`), long enough for the clock (17).
//! 4. In each *round* the quiet gate is probed (10) and every cell is timed once, in balanced random
//!    order (6), the null competitor among them (11). The counts of every window must agree (2).
//! 5. After each round the results are handed out to be saved (21), and the stop rule is asked (8).
//!
//! Inside a timed window nothing happens but the competitor's own work: progress, saving and counts
//! come between windows.

use super::{
    clock::shortest_window,
    derive::{derive, first_wide},
    instruments::Instruments,
    layout::deeper,
    results::{Basis, Cell, Memory, Phase, Results},
    schedule::{Orders, Stopped},
    stats::{LAST, Steady, WINDOWS},
    stop::interrupted,
    windows::{self, Row, STARTS, Told},
};
use crate::{Error, ErrorKind, Result};

/// The share of the budget that warming up may take; what has not settled by then is timed as it is,
/// and marked.
const WARM_UP: f64 = 0.25;

/// The counts of a window of work. A competitor counts what it has verified, not what it was asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Operations done and found good.
    pub done: u64,
    /// Parts met in them (fields of records): proof that they were read in full.
    pub items: u64,
    /// Bytes read or written.
    pub bytes: u64,
}

/// A participant of a run, which is timed in each phase.
pub trait Competitor {
    /// Why this phase is not for it; it is then shown as "-" with that reason.
    fn refuses(&self, _phase: &Phase) -> Option<String> {
        None
    }

    /// Makes its data afresh, untimed.
    ///
    /// # Errors
    /// Whatever keeps it from taking part; ends the run.
    fn prepare(&mut self, start: u32) -> Result<()>;

    /// Does `units` operations of the phase: the first ones of a pass, or a whole number of passes.
    /// This is what is timed.
    ///
    /// # Errors
    /// A failed operation; ends the run, because a time without its work is no result.
    fn run(&mut self, phase: &Phase, units: u64) -> Result<Counts>;

    /// Clears away what `run` has left, untimed.
    ///
    /// # Errors
    /// Whatever keeps the next window from being like this one.
    fn tidy(&mut self, _phase: &Phase) -> Result<()> {
        Ok(())
    }
}

/// A competitor under the name it has in the results.
pub struct Entry<'a> {
    /// The name of a contender in the results.
    pub name: String,
    /// Who runs.
    pub competitor: Box<dyn Competitor + 'a>,
}

/// Where a run is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress<'a> {
    /// What is being done.
    pub stage: Stage,
    /// Rounds done so far.
    pub rounds: u32,
    /// Cells of this stage done so far …
    pub cell: usize,
    /// … of how many.
    pub cells: usize,
    /// The competitor that runs next; empty between rounds.
    pub competitor: &'a str,
    /// The phase that it runs.
    pub phase: &'a str,
    /// Seconds since the run began.
    pub seconds: f64,
    /// Seconds it may take.
    pub budget: f64,
    /// Phases last long enough to be read of one by one.
    pub long: bool,
    /// What the phase came to, where it has just ended.
    pub measured: Option<Measured<'a>>,
}

/// What a phase came to in a round.
#[derive(Debug, Clone, Copy)]
pub struct Measured<'a> {
    /// Operations done …
    pub units: u64,
    /// … of what, in the plural …
    pub unit: &'a str,
    /// … in so many seconds.
    pub seconds: f64,
}

/// What a run is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stage {
    /// Checking that records come back, and other work before the run.
    #[default]
    Proving,
    /// Something was made in a store of the user's own, as the phase tells: to be told for good.
    Making,
    /// Making fresh data.
    Preparing,
    /// Running until steady.
    WarmingUp,
    /// Measuring.
    Timing,
}

/// Callbacks of a run. All are called between timed windows only.
pub struct Watch<'a> {
    /// Called before each cell.
    pub progress: &'a mut dyn FnMut(Progress<'_>),
    /// Called with the results after each round.
    pub save: &'a mut dyn FnMut(&Results) -> Result<()>,
    /// Returns whether to end the run before the next window.
    pub stop: &'a dyn Fn() -> bool,
}

/// Runs what `results` plans: its plan, contenders and phases must be filled in; cells, probes and
/// all that is derived are filled in here. On an error the rounds taken so far stay in `results`.
///
/// # Errors
/// A competitor's error, [`Mismatch`](ErrorKind::Mismatch) where counts do not agree, and those of
/// saving.
pub fn run(
    results: &mut Results,
    entries: &mut [Entry<'_>],
    instruments: &mut dyn Instruments,
    watch: &mut Watch<'_>,
) -> Result<()> {
    let mut run = Run::new(results, entries, instruments, watch);
    let ended = match run.go() {
        Err(e) if (run.watch.stop)() && e.is_outage() && run.rounds > 0 => Ok(Stopped::Interrupted),
        ended => ended,
    };
    run.results.seconds = run.seconds();
    derive(run.results);
    run.results.stopped = Some(ended?);
    (watch.save)(results)
}

/// A cell on its way: where its parts are.
struct Seat {
    cell: usize,
    entry: usize,
    phase: usize,
    /// Operations in a warm-up window.
    sip: u64,
    /// Nanoseconds that an operation took lately.
    ns: f64,
    /// The counts of a pass, from the rehearsal.
    pass: Counts,
}

/// Rows of phases, each with the order of its seats.
type Order = Vec<(usize, Vec<usize>)>;

struct Run<'r, 'e, 'w> {
    results: &'r mut Results,
    entries: &'r mut [Entry<'e>],
    instruments: &'r mut dyn Instruments,
    watch: &'r mut Watch<'w>,
    begin: u64,
    start: u32,
    rounds: u32,
    /// The cells of each timed phase.
    seats: Vec<Vec<Seat>>,
    /// The order of phases, and of the seats in each phase.
    phase_orders: Orders,
    seat_orders: Vec<Orders>,
    /// Passes in a window, of each row.
    passes: Vec<u64>,
    told: Told,
    /// How many times longer than foreseen a round took, at most.
    stretch: f64,
}

impl<'r, 'e, 'w> Run<'r, 'e, 'w> {
    fn new(
        results: &'r mut Results,
        entries: &'r mut [Entry<'e>],
        instruments: &'r mut dyn Instruments,
        watch: &'r mut Watch<'w>,
    ) -> Self {
        let seed = results.plan.seed;
        let mut seats = Vec::new();
        for (p, phase) in results.phases.iter().enumerate() {
            if !phase.sum_of.is_empty() {
                continue;
            }
            let mut row = Vec::new();
            for (e, entry) in entries.iter().enumerate() {
                let refused = entry.competitor.refuses(phase);
                if refused.is_none() {
                    let cell = results.cells.len();
                    let (ns, pass) = (f64::INFINITY, Counts::default());
                    row.push(Seat { cell, entry: e, phase: p, sip: 1, ns, pass });
                }
                results.cells.push(Cell {
                    competitor: entry.name.clone(),
                    phase: phase.id.clone(),
                    refused,
                    ..Cell::default()
                });
            }
            seats.push(row);
        }
        let seat_orders = (seats.iter().enumerate())
            .map(|(i, row)| Orders::new(row.len(), seed.wrapping_add(1 + i as u64)))
            .collect();
        Run {
            begin: instruments.now(),
            start: 0,
            rounds: 0,
            phase_orders: Orders::new(seats.len(), seed),
            seat_orders,
            passes: vec![1; seats.len()],
            told: Told::default(),
            stretch: 1.0,
            seats,
            results,
            entries,
            instruments,
            watch,
        }
    }

    fn seconds(&mut self) -> f64 {
        self.instruments.now().saturating_sub(self.begin) as f64 / 1e9
    }

    fn go(&mut self) -> Result<Stopped> {
        self.results.clock = self.instruments.clock();
        let rule = self.results.plan.stop;
        let mut stopping = rule.watch();
        let mut widest = 0;
        for start in 0.. {
            self.start = start;
            let begin = self.seconds();
            self.prepare(start)?;
            let prepared = self.seconds() - begin;
            // In plain order: the balanced orders are for the rounds.
            let order = self.plain_order();
            self.each_cell(Stage::WarmingUp, order, |run, p, s, _| match start {
                0 => run.warm_up(p, s).and_then(|()| run.rehearse(p, s)),
                // The code is warm; the data are new.
                _ => run.taste(p, s),
            })?;
            self.choose_windows(prepared);
            for left in (0..rule.rounds_per_start.max(1)).rev() {
                self.round(start)?;
                self.results.seconds = self.seconds();
                (self.watch.save)(self.results)?;
                if (self.watch.stop)() {
                    return Ok(Stopped::Interrupted);
                }
                let results = &*self.results;
                let narrow = || match first_wide(results, rule.precision, widest) {
                    Some(wide) => {
                        widest = wide;
                        false
                    }
                    None => true,
                };
                let starts = (left == 0).then_some(start + 1);
                if let Some(why) = stopping.ends(self.rounds, starts, results.seconds, narrow) {
                    return Ok(why);
                }
            }
        }
        Ok(Stopped::Rounds)
    }

    fn prepare(&mut self, start: u32) -> Result<()> {
        for e in 0..self.entries.len() {
            self.tell(Stage::Preparing, (e, self.entries.len()), Some((e, None)));
            if (self.watch.stop)() {
                return Err(interrupted());
            }
            let entry = &mut self.entries[e];
            entry.competitor.prepare(start).map_err(|error| error.in_place(entry.name.as_str()))?;
        }
        Ok(())
    }

    fn tell(&mut self, stage: Stage, of: (usize, usize), who: Option<(usize, Option<usize>)>) {
        let seconds = self.seconds();
        let phase = who.and_then(|w| w.1).map_or("", |p| self.results.phases[p].id.as_str());
        (self.watch.progress)(Progress {
            stage,
            rounds: self.rounds,
            cell: of.0,
            cells: of.1,
            competitor: who.map_or("", |w| self.entries[w.0].name.as_str()),
            phase,
            seconds,
            budget: self.results.plan.stop.budget,
            ..Progress::default()
        });
    }

    fn plain_order(&self) -> Order {
        self.seats.iter().map(|row| (0..row.len()).collect()).enumerate().collect()
    }

    fn next_order(&mut self) -> Order {
        let phases = self.phase_orders.next_order();
        phases.into_iter().map(|p| (p, self.seat_orders[p].next_order())).collect()
    }

    /// Visits every cell once: (row of the phase, seat in it, place).
    fn each_cell(
        &mut self,
        stage: Stage,
        order: Order,
        mut visit: impl FnMut(&mut Self, usize, usize, u32) -> Result<()>,
    ) -> Result<()> {
        let cells = self.seats.iter().map(Vec::len).sum();
        let mut done = 0;
        for (p, seats) in order {
            for (place, s) in seats.into_iter().enumerate() {
                let seat = &self.seats[p][s];
                let who = (seat.entry, Some(seat.phase));
                if (self.watch.stop)() {
                    return Err(interrupted());
                }
                self.tell(stage, (done, cells), Some(who));
                visit(self, p, s, place as u32)?;
                done += 1;
            }
        }
        Ok(())
    }

    /// Chooses the passes of each phase, the same for all its competitors, for the rounds of this
    /// start; `prepared` is how many seconds fresh data take.
    fn choose_windows(&mut self, prepared: f64) {
        let plan = &self.results.plan;
        let (wanted, stop) = (plan.window_ns.max(shortest_window(&self.results.clock)), plan.stop);
        let each = stop.rounds_per_start.max(1);
        let planned = STARTS.min(stop.max_rounds.div_ceil(each));
        let starts = f64::from(planned.saturating_sub(self.start).max(1));
        let left = stop.budget - self.seconds();
        let allowed = (left / starts - prepared) / f64::from(each) / self.stretch;
        let rows: Vec<Row> = (0..self.seats.len()).map(|p| self.row(p)).collect();
        self.passes = windows::passes(&rows, wanted as f64, allowed * 1e9);
        let told = self.told.chosen(&rows, &self.passes, wanted as f64);
        self.results.settings.insert("Windows".into(), told);
        for (seats, passes) in self.seats.iter().zip(&self.passes) {
            for seat in seats {
                let units = self.results.phases[seat.phase].units.max(1);
                let cell = &mut self.results.cells[seat.cell];
                if cell.rounds.is_empty() {
                    cell.units = units * passes;
                    cell.items = seat.pass.items * passes;
                    cell.bytes = seat.pass.bytes * passes;
                }
            }
        }
    }

    /// What a pass of a phase takes.
    fn row(&self, p: usize) -> Row {
        let null = |seat: &Seat| {
            let name = &self.entries[seat.entry].name;
            self.results.competitor(name).is_some_and(|c| c.null)
        };
        let (mut quickest, mut all, mut nothing) = (f64::INFINITY, 0.0, f64::INFINITY);
        for seat in &self.seats[p] {
            let pass = seat.ns * self.results.phases[seat.phase].units.max(1) as f64;
            all += pass;
            match null(seat) {
                true => nothing = pass,
                false => quickest = quickest.min(pass),
            }
        }
        // Where nobody but the null competitor is in it, that decides.
        Row { quickest: if quickest.is_finite() { quickest } else { nothing }, all }
    }

    fn round(&mut self, start: u32) -> Result<()> {
        let round = self.rounds;
        let mut probe = self.instruments.probe(round);
        let begin = self.seconds();
        let order = self.next_order();
        let foreseen: f64 = (self.passes.iter().enumerate())
            .map(|(p, passes)| self.row(p).all * *passes as f64 / 1e9)
            .sum();
        let timed = self.each_cell(Stage::Timing, order, |run, p, s, place| {
            let seat = &run.seats[p][s];
            let (cell, pass, passes) = (seat.cell, seat.pass, run.passes[p]);
            let units = run.results.phases[seat.phase].units.max(1) * passes;
            let (counts, used) = run.time(p, s, units)?;
            run.agree(cell, counts, pass, passes)?;
            run.seats[p][s].ns = used.ns as f64 / units as f64;
            let mut timed = used.round(start, round, place);
            let cell = &mut run.results.cells[cell];
            timed.units = if units == cell.units { 0 } else { units };
            cell.rounds.push(timed);
            Ok(())
        });
        self.instruments.close(&mut probe);
        self.results.probes.push(probe);
        timed?;
        self.stretch = self.stretch.max((self.seconds() - begin) / foreseen.max(1e-9));
        self.rounds += 1;
        Ok(())
    }

    /// Runs a cell once for its speed on fresh data. What it took in the last round counts too:
    /// either may have been held up by something else.
    fn taste(&mut self, p: usize, s: usize) -> Result<()> {
        let sip = self.seats[p][s].sip;
        let used = self.time(p, s, sip)?.1;
        let seat = &mut self.seats[p][s];
        seat.ns = seat.ns.min(used.ns as f64 / sip as f64);
        Ok(())
    }

    /// Times `units` operations of a cell, and sees that all of them were done.
    fn time(
        &mut self,
        p: usize,
        s: usize,
        units: u64,
    ) -> Result<(Counts, super::accounting::Usage)> {
        if (self.watch.stop)() {
            return Err(interrupted());
        }
        let seat = &self.seats[p][s];
        let phase = &self.results.phases[seat.phase];
        let entry = &mut self.entries[seat.entry];
        let competitor = &mut entry.competitor;
        let time = || self.instruments.time(&mut || competitor.run(phase, units));
        let done = deeper(self.start, time);
        done.and_then(|(counts, used)| {
            competitor.tidy(phase)?;
            match counts.done == units {
                true => Ok((counts, used)),
                false => Err(Error::new(
                    ErrorKind::Mismatch,
                    format!("{} of {units} operations came out right", counts.done),
                )),
            }
        })
        .map_err(|e| e.in_place(format!("{}, {}, round {}", entry.name, phase.id, self.rounds + 1)))
    }

    /// Sees that a window touched what the rehearsal did (rule 2).
    fn agree(&self, cell: usize, counts: Counts, pass: Counts, passes: u64) -> Result<()> {
        let (items, bytes) = (pass.items * passes, pass.bytes * passes);
        if (counts.items, counts.bytes) == (items, bytes) {
            return Ok(());
        }
        let text = format!(
            "{} parts and {} bytes instead of {items} and {bytes} as in the rehearsal",
            counts.items, counts.bytes
        );
        let cell = &self.results.cells[cell];
        let place = format!("{}, {}, round {}", cell.competitor, cell.phase, self.rounds + 1);
        Err(Error::new(ErrorKind::Mismatch, text).in_place(place))
    }

    /// Runs windows until they are steady. The size of a window is found first.
    fn warm_up(&mut self, p: usize, s: usize) -> Result<()> {
        let wanted = self.results.plan.warm_up_ns.max(shortest_window(&self.results.clock));
        let pass = self.results.phases[self.seats[p][s].phase].units.max(1);
        let mut units = 1;
        // Doubling, to at most a thousand passes: an operation may be as short as it likes.
        while self.time(p, s, units)?.1.ns < wanted / 2 && units < pass.saturating_mul(1024) {
            units = whole_passes(units * 2, pass);
        }
        let mut windows = Vec::with_capacity(WINDOWS);
        let mut elapsed = f64::INFINITY;
        let late = WARM_UP * self.results.plan.stop.budget;
        while Steady::of(&windows) == Steady::NotYet
            && (windows.len() < LAST || self.seconds() < late)
        {
            let used = self.time(p, s, units)?.1;
            let ns = match self.results.plan.basis {
                Basis::Elapsed => used.ns,
                Basis::Processor => used.user_ns + used.system_ns,
            };
            windows.push(ns as f64 / units as f64);
            elapsed = elapsed.min(used.ns as f64 / units as f64);
        }
        let cell = &mut self.results.cells[self.seats[p][s].cell];
        cell.settled = Steady::of(&windows) == Steady::Settled;
        cell.warm_up = windows;
        (self.seats[p][s].sip, self.seats[p][s].ns) = (units, elapsed);
        Ok(())
    }

    /// One untimed pass: weighs its memory, and takes the counts that each pass will have to show.
    fn rehearse(&mut self, p: usize, s: usize) -> Result<()> {
        let seat = &self.seats[p][s];
        let phase = &self.results.phases[seat.phase];
        let units = phase.units.max(1);
        let entry = &mut self.entries[seat.entry];
        let competitor = &mut entry.competitor;
        let place = |e: Error| e.in_place(format!("{}, {}, rehearsal", entry.name, phase.id));
        let weighed = self.instruments.weigh(&mut || competitor.run(phase, units));
        let (counts, memory) = weighed.map_err(place)?;
        competitor.tidy(phase).map_err(place)?;

        let each = |total: Option<f64>| total.map(|t| t / units as f64);
        let cell = &mut self.results.cells[seat.cell];
        cell.memory = Some(Memory {
            allocations: each(memory.allocations),
            allocated: each(memory.allocated),
            peak: memory.peak,
        });
        self.seats[p][s].pass = counts;
        self.same_items(p, s)
    }

    /// Sees that competitors that return every record equal also met equally many parts (rule 2).
    fn same_items(&self, p: usize, s: usize) -> Result<()> {
        let name = |seat: &Seat| self.entries[seat.entry].name.as_str();
        let proven = |seat: &&Seat| {
            let proof = self.results.competitor(name(seat)).and_then(|c| c.proof.as_ref());
            proof.is_some_and(|proof| proof.equal == proof.records)
        };
        let (before, this) = self.seats[p].split_at(s);
        let Some(this) = this.first().filter(proven) else { return Ok(()) };
        let parts = this.pass.items;
        match before.iter().filter(proven).find(|seat| seat.pass.items != parts) {
            None => Ok(()),
            Some(other) => {
                let text = format!("{parts} parts where {} met {}", name(other), other.pass.items);
                let phase = &self.results.phases[this.phase].id;
                Err(Error::new(ErrorKind::Mismatch, text)
                    .in_place(format!("{}, {phase}, rehearsal", name(this))))
            }
        }
    }
}

/// `units` as it is below a pass, else as a whole number of passes.
fn whole_passes(units: u64, pass: u64) -> u64 {
    match units < pass {
        true => units,
        false => units / pass * pass,
    }
}

#[cfg(test)]
mod tests;
