//! A client in the run: the runner's units become tasks, an adapter's answers become counts and
//! times. Every answer is held against what must come of its row.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    path::Path,
    rc::Rc,
    time::Instant,
};

use super::{
    adapter::NULL,
    peer::Peer,
    protocol::{Done, Task},
    rows::{Row, keys},
    servers::Servers,
    values::Files,
};
use crate::{
    Error, ErrorKind, Result,
    accounting::Usage,
    instruments::{Instruments, Real, Work},
    results::{self, Latency, Memory, Phase, Probe, Results, Tally},
    run::{Competitor, Counts, Stage},
    stop::Stop,
};

/// What a phase asks of a client.
#[derive(Debug, Clone)]
pub(super) struct Ask {
    pub row: Row,
    pub object: bool,
    /// Which of the values.
    pub value: usize,
    pub connections: u32,
    /// Calls a second, where they are planned.
    pub rate: Option<f64>,
}

/// A cell of the results: the competitor's name and the phase's id.
type Key = (String, String);

/// What all clients of a run have in common.
pub(super) struct Shared {
    /// Of each phase, by its id.
    pub asks: HashMap<String, Ask>,
    pub files: Vec<Files>,
    pub format: String,
    pub seed: u64,
    pub servers: RefCell<Servers>,
    /// Where the run is: only what is timed is kept.
    pub stage: Cell<Stage>,
    /// What the last window took, by the adapter that did it.
    pub told: Cell<Usage>,
    /// What timed windows came to, by competitor and phase.
    pub seen: RefCell<HashMap<Key, (Option<Latency>, Tally)>>,
    /// System calls for each operation, likewise.
    pub system_calls: RefCell<HashMap<Key, f64>>,
}

impl Shared {
    /// The task of a phase.
    pub(super) fn task(&self, phase: &str, operations: u64) -> Result<Task> {
        let ask = self.asks.get(phase);
        let ask = ask.ok_or_else(|| Error::invalid(format!("no phase {phase:?} was planned")))?;
        Ok(self.task_of(ask, operations))
    }

    pub(super) fn task_of(&self, ask: &Ask, operations: u64) -> Task {
        let Files { values, objects } = self.files[ask.value].clone();
        let noblock = ask.row == Row::Noblock;
        Task {
            row: ask.row.name().into(),
            script: ask.row.script().into(),
            operations,
            connections: ask.connections,
            object: ask.object,
            noblock,
            // What is not waited for has no time of its own.
            latency: !noblock,
            rate: ask.rate.unwrap_or(0.0),
            seed: self.seed,
            format: self.format.clone(),
            servers: self.servers.borrow().addresses.clone(),
            keys: keys().to_vec(),
            values,
            objects,
        }
    }

    /// Puts into the results what the runner does not know of.
    pub(super) fn fill(&self, results: &mut Results) {
        let (seen, calls) = (self.seen.borrow(), self.system_calls.borrow());
        for cell in &mut results.cells {
            let key = (cell.competitor.clone(), cell.phase.clone());
            if let Some((latency, tally)) = seen.get(&key) {
                (cell.latency, cell.tally) = (latency.clone(), Some(*tally));
            }
            cell.system_calls = calls.get(&key).copied();
        }
    }
}

/// Asks, and holds the answer against what must come of it (rule 2).
///
/// # Errors
/// [`Unavailable`](ErrorKind::Unavailable) where it could not be done,
/// [`Mismatch`](ErrorKind::Mismatch) where counts or values are wrong.
pub(super) fn checked(peer: &mut dyn Peer, task: &Task, row: Row) -> Result<Done> {
    let begin = Instant::now();
    let done = peer.ask(task)?;
    let outside = begin.elapsed().as_nanos() as u64;
    if let Some(error) = &done.error {
        return Err(Error::unavailable(error.clone()));
    }
    let first = done.first.as_deref().unwrap_or("it does not say which");
    if done.errors > 0 {
        return Err(Error::unavailable(format!("{} calls failed: {first}", done.errors)));
    }
    let mismatch = |what: String| Err(Error::new(ErrorKind::Mismatch, what));
    if done.wrong > 0 {
        return mismatch(format!("{} values are not those that were stored: {first}", done.wrong));
    }
    if done.operations != task.operations {
        return mismatch(format!("{} of {} calls were made", done.operations, task.operations));
    }
    let expected = row.expected(task.operations, task.connections);
    // Whoever is free takes the next planned call, so that shares are not known beforehand.
    let expected = if task.rate > 0.0 { row.expected(task.operations, 1) } else { expected };
    if (done.hits, done.misses) != (expected.hits, expected.misses) {
        return mismatch(format!(
            "{} keys were found and {} not, instead of {} and {}",
            done.hits, done.misses, expected.hits, expected.misses
        ));
    }
    if done.elapsed_ns == 0 || done.elapsed_ns > outside {
        return mismatch(format!(
            "the adapter says it took {} ns, and was away for {outside}",
            done.elapsed_ns
        ));
    }
    Ok(done)
}

/// Starts a client's adapter.
pub(super) type Start<'a> = Box<dyn FnMut() -> Result<Box<dyn Peer>> + 'a>;

/// A client that takes part.
pub(super) struct Client<'a> {
    pub name: String,
    pub peer: Box<dyn Peer>,
    pub start: Start<'a>,
    pub shared: Rc<Shared>,
    /// Phases that are not for it, and why.
    pub refused: HashMap<String, String>,
    pub stop: Stop,
}

impl Competitor for Client<'_> {
    fn refuses(&self, phase: &Phase) -> Option<String> {
        self.refused.get(&phase.id).cloned()
    }

    fn prepare(&mut self, start: u32) -> Result<()> {
        self.shared.servers.borrow_mut().begin(start, &self.stop)?;
        if start > 0 {
            // A process has its luck with where things lie, too: another one for each start.
            self.peer = (self.start)()?;
        }
        Ok(())
    }

    fn run(&mut self, phase: &Phase, units: u64) -> Result<Counts> {
        let task = self.shared.task(&phase.id, units)?;
        let row = self.shared.asks[&phase.id].row;
        let done = checked(&mut *self.peer, &task, row)?;
        self.shared.told.set(Usage {
            ns: done.elapsed_ns,
            user_ns: done.user_ns,
            system_ns: done.system_ns,
            // A server on the same processor runs as soon as it is sent something, so that the
            // answer may be there before it is waited for: what the client's process did not get of
            // its processor then is no noise. The one that does nothing has no server.
            waits: done.waits.unwrap_or(0).max(u64::from(self.name != NULL)),
            preemptions: done.preemptions,
            written: 0,
        });
        let counts = Counts { done: done.operations, items: done.hits, bytes: 0 };
        if self.shared.stage.get() == Stage::Timing {
            self.note(phase, done);
        }
        Ok(counts)
    }
}

impl Client<'_> {
    /// Keeps what a timed window has shown beside its time.
    fn note(&self, phase: &Phase, done: Done) {
        let mut seen = self.shared.seen.borrow_mut();
        let entry = seen.entry((self.name.clone(), phase.id.clone())).or_default();
        let tally = Tally { done: done.operations, late: done.late, ..Tally::default() };
        entry.1 = entry.1.plus(tally);
        if let Some(response) = done.latency {
            let latency = Latency { response, service: done.service, lag: done.lag };
            match &mut entry.0 {
                Some(there) => there.add(&latency),
                empty => *empty = Some(latency),
            }
        }
    }
}

/// The machine, but for times: those are what adapters say.
pub(super) struct Told {
    pub real: Real,
    pub shared: Rc<Shared>,
}

impl Told {
    pub(super) fn new(folder: &Path, shared: &Rc<Shared>) -> Told {
        Told { real: Real::new(folder), shared: Rc::clone(shared) }
    }
}

impl Instruments for Told {
    fn now(&mut self) -> u64 {
        self.real.now()
    }

    fn clock(&mut self) -> results::Clock {
        self.real.clock()
    }

    fn time(&mut self, work: Work<'_>) -> Result<(Counts, Usage)> {
        let counts = work()?;
        Ok((counts, self.shared.told.get()))
    }

    fn weigh(&mut self, work: Work<'_>) -> Result<(Counts, Memory)> {
        // What allocates is another process.
        Ok((work()?, Memory::default()))
    }

    fn probe(&mut self, round: u32) -> Probe {
        self.real.probe(round)
    }

    fn close(&mut self, probe: &mut Probe) {
        self.real.close(probe);
        // Which of it was the servers' and the adapters' is not known.
        probe.others = None;
    }
}
