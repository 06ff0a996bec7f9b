//! Waiting for planned moments, to some microseconds.
//!
//! The runtime's own timers go in steps of a millisecond, which would be counted as response time;
//! so a timer of the kernel is waited for, where there is one. Each worker has its own; what they
//! share is the plan, from which each takes the next moment when it has nothing else to do.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{
    Result,
    bench::{clock::Monotonic, schedule::Moments},
    timer::Timer,
};

/// The planned moments of an open loop, one after another, to whoever asks next.
#[derive(Clone)]
pub(super) struct Plan(Arc<Mutex<Planned>>);

struct Planned {
    clock: Monotonic,
    /// When the plan began, on the clock.
    begin: u64,
    /// Nothing is planned from here on, in nanoseconds after the beginning …
    end: u64,
    /// … and nothing is sent after this.
    last: u64,
    moments: Moments,
    /// Moments that were planned and came too late to be sent.
    skipped: u64,
}

/// How much longer than planned a window may take for what is late to be sent.
const GRACE: f64 = 0.5;

impl Plan {
    /// A plan of so many seconds that begins now.
    pub fn new(clock: Monotonic, moments: Moments, seconds: f64) -> Plan {
        let end = (seconds * 1e9) as u64;
        let last = end.saturating_add((seconds * GRACE * 1e9) as u64);
        let planned = Planned { clock, begin: clock.now(), end, last, moments, skipped: 0 };
        Plan(Arc::new(Mutex::new(planned)))
    }

    /// Moments that were planned and came too late to be sent.
    pub fn skipped(&self) -> u64 {
        self.get().skipped
    }

    fn get(&self) -> MutexGuard<'_, Planned> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Planned {
    /// The next moment on the clock that can still be met, and how far off it is; none at the end.
    fn next(&mut self) -> Option<(u64, Duration)> {
        loop {
            let planned = self.moments.next().filter(|planned| *planned < self.end)?;
            let now = self.clock.now() - self.begin;
            if now <= self.last {
                let wait = Duration::from_nanos(planned.saturating_sub(now));
                return Some((self.begin + planned, wait));
            }
            self.skipped += 1;
        }
    }
}

/// A worker's way to wait for the moments that it takes from a plan.
pub(super) struct Pacer {
    plan: Plan,
    timer: Timer,
}

impl Pacer {
    /// For a worker in this runtime.
    ///
    /// # Errors
    /// Where the system gives no timer.
    pub fn new(plan: Plan) -> Result<Pacer> {
        Ok(Pacer { plan, timer: Timer::new()? })
    }

    /// Waits for the next planned moment, and gives it on the clock; none at the end.
    pub async fn next(&mut self) -> Option<u64> {
        let (planned, wait) = self.plan.get().next()?;
        if !wait.is_zero() {
            self.timer.wait(wait).await;
        }
        Some(planned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::schedule::Pace;

    /// 20 moments, of which none is too late, however busy the machine is.
    fn plan(clock: Monotonic) -> Plan {
        let plan = Plan::new(clock, Pace::Fixed(1000.0).moments(1, 0.0).unwrap(), 0.02);
        plan.get().last = u64::MAX;
        plan
    }

    #[tokio::test]
    async fn planned_moments_are_met_and_end() {
        let clock = Monotonic::default();
        let plan = plan(clock);
        let mut pacer = Pacer::new(plan.clone()).unwrap();
        let (mut met, mut early) = (0, 0);
        while let Some(planned) = pacer.next().await {
            early += u32::from(clock.now() < planned);
            met += 1;
        }
        assert_eq!((met, early, plan.skipped()), (20, 0, 0));
    }

    #[tokio::test]
    async fn each_moment_is_met_once_by_any_of_several() {
        let clock = Monotonic::default();
        let plan = plan(clock);
        let one = || {
            let mut pacer = Pacer::new(plan.clone()).unwrap();
            async move {
                let mut met = Vec::new();
                while let Some(planned) = pacer.next().await {
                    assert!(clock.now() >= planned);
                    met.push(planned);
                }
                met
            }
        };
        let (a, b, c) = tokio::join!(one(), one(), one());
        let mut met = [a, b, c].concat();
        met.sort_unstable();
        let begin = plan.get().begin;
        let planned: Vec<u64> = (0..20).map(|n| begin + n * 1_000_000).collect();
        assert_eq!(met, planned);
    }

    #[tokio::test]
    async fn what_is_far_too_late_is_skipped_and_counted() {
        let plan = plan(Monotonic::default());
        let mut pacer = Pacer::new(plan.clone()).unwrap();
        assert!(pacer.next().await.is_some());
        // As if the grace were over.
        plan.get().last = 0;
        assert_eq!(pacer.next().await, None);
        assert_eq!(plan.skipped(), 19);
    }
}
