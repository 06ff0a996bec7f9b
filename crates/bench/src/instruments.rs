//! The instruments of the runner: clock, resource accounting, quiet gate. [`Real`] measures this machine; tests use a
//! mock clock, so that the code that times a run can itself be tested with known noise.

use std::path::Path;

use super::{
    accounting::{Usage, reset_peak, resident},
    allocations,
    clock::{self, Monotonic},
    quiet::Gate,
    results::{Clock, Memory, Probe},
    run::Counts,
};
use crate::Result;

/// A piece of work to be measured.
pub type Work<'a> = &'a mut dyn FnMut() -> Result<Counts>;

/// Clock, accounting and quiet gate.
pub trait Instruments {
    /// Nanoseconds since some moment.
    fn now(&mut self) -> u64;

    /// What the clock costs.
    fn clock(&mut self) -> Clock;

    /// Runs the work inside a timed window.
    ///
    /// # Errors
    /// Those of the work.
    fn time(&mut self, work: Work<'_>) -> Result<(Counts, Usage)>;

    /// Runs the work untimed and says what memory it took: allocations and bytes of the whole pass.
    ///
    /// # Errors
    /// Those of the work.
    fn weigh(&mut self, work: Work<'_>) -> Result<(Counts, Memory)>;

    /// Looks how quiet it is before a round, or a turn in it.
    fn probe(&mut self, round: u32) -> Probe;

    /// Fills in what others used of the machine since the probe, where that can be known.
    fn close(&mut self, _probe: &mut Probe) {}
}

/// This machine.
#[derive(Debug)]
pub struct Real {
    clock: Monotonic,
    gate: Gate,
}

impl Real {
    /// Instruments whose quiet gate writes into `folder`: the one the run writes into, so that it
    /// feels the same disk.
    pub fn new(folder: &Path) -> Real {
        Real { clock: Monotonic::default(), gate: Gate::new(folder) }
    }
}

impl Instruments for Real {
    fn now(&mut self) -> u64 {
        self.clock.now()
    }

    fn clock(&mut self) -> Clock {
        clock::measure()
    }

    fn time(&mut self, work: Work<'_>) -> Result<(Counts, Usage)> {
        // The counters are read outside of the clock: they cost a system call, it does not.
        let before = Usage::now();
        let begin = self.clock.now();
        let counts = work();
        let end = self.clock.now();
        let used = Usage::now().since(&before);
        Ok((counts?, Usage { ns: end - begin, ..used }))
    }

    fn weigh(&mut self, work: Work<'_>) -> Result<(Counts, Memory)> {
        let before = reset_peak().ok().and_then(|()| resident());
        let (counts, allocated) = allocations::count(work);
        let counts = counts?;
        let resident =
            before.zip(resident()).map(|((before, _), (_, high))| high.saturating_sub(before));
        let memory = Memory {
            allocations: allocated.map(|a| a.calls as f64),
            allocated: allocated.map(|a| a.bytes as f64),
            // Pages that were already resident hide from the one, C libraries from the other.
            peak: resident.max(allocated.map(|a| a.peak)),
        };
        Ok((counts, memory))
    }

    fn probe(&mut self, round: u32) -> Probe {
        self.gate.probe(round)
    }

    fn close(&mut self, probe: &mut Probe) {
        self.gate.close(probe);
    }
}
