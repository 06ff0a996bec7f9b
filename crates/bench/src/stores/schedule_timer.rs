//! The schedule of an open loop, and a timer that waits for its moments to within some microseconds.
//!
//! The runtime's own timers have a resolution of a millisecond, which would be counted as response time;
//! so a timer of the kernel is used, where there is one. Each worker has its own timer; they share the
//! schedule, from which each takes the next moment when it is free.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{Result, clock::Monotonic, schedule::Moments, timer::Timer};

/// The planned moments of an open loop, one after another; each goes to the worker that asks next.
#[derive(Clone)]
pub(super) struct Schedule(Arc<Mutex<Planned>>);

struct Planned {
    clock: Monotonic,
    /// When the schedule began, on the clock.
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

impl Schedule {
    /// A schedule of so many seconds that begins now.
    pub(super) fn new(clock: Monotonic, moments: Moments, seconds: f64) -> Schedule {
        let end = (seconds * 1e9) as u64;
        let last = end.saturating_add((seconds * GRACE * 1e9) as u64);
        let planned = Planned { clock, begin: clock.now(), end, last, moments, skipped: 0 };
        Schedule(Arc::new(Mutex::new(planned)))
    }

    /// Moments that were planned and came too late to be sent.
    pub(super) fn skipped(&self) -> u64 {
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

/// A worker's timer, which waits for the moments that it takes from a schedule.
pub(super) struct ScheduleTimer {
    schedule: Schedule,
    timer: Timer,
}

impl ScheduleTimer {
    /// For a worker in this runtime.
    ///
    /// # Errors
    /// Where the system gives no timer.
    pub(super) fn new(schedule: Schedule) -> Result<ScheduleTimer> {
        Ok(ScheduleTimer { schedule, timer: Timer::new()? })
    }

    /// Waits for the next planned moment, and gives it on the clock; none at the end.
    pub(super) async fn next(&mut self) -> Option<u64> {
        let (planned, wait) = self.schedule.get().next()?;
        if !wait.is_zero() {
            self.timer.wait(wait).await;
        }
        Some(planned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Pace;

    /// 20 moments, of which none is too late, however busy the machine is.
    fn schedule(clock: Monotonic) -> Schedule {
        let schedule = Schedule::new(clock, Pace::Fixed(1000.0).moments(1, 0.0).unwrap(), 0.02);
        schedule.get().last = u64::MAX;
        schedule
    }

    #[tokio::test]
    async fn planned_moments_are_met_and_end() {
        let clock = Monotonic::default();
        let schedule = schedule(clock);
        let mut timer = ScheduleTimer::new(schedule.clone()).unwrap();
        let (mut met, mut early) = (0, 0);
        while let Some(planned) = timer.next().await {
            early += u32::from(clock.now() < planned);
            met += 1;
        }
        assert_eq!((met, early, schedule.skipped()), (20, 0, 0));
    }

    #[tokio::test]
    async fn each_moment_is_met_once_by_any_of_several() {
        let clock = Monotonic::default();
        let schedule = schedule(clock);
        let one = || {
            let mut timer = ScheduleTimer::new(schedule.clone()).unwrap();
            async move {
                let mut met = Vec::new();
                while let Some(planned) = timer.next().await {
                    assert!(clock.now() >= planned);
                    met.push(planned);
                }
                met
            }
        };
        let (a, b, c) = tokio::join!(one(), one(), one());
        let mut met = [a, b, c].concat();
        met.sort_unstable();
        let begin = schedule.get().begin;
        let planned: Vec<u64> = (0..20).map(|n| begin + n * 1_000_000).collect();
        assert_eq!(met, planned);
    }

    #[tokio::test]
    async fn what_is_far_too_late_is_skipped_and_counted() {
        let schedule = schedule(Monotonic::default());
        let mut timer = ScheduleTimer::new(schedule.clone()).unwrap();
        assert!(timer.next().await.is_some());
        // As if the grace were over.
        schedule.get().last = 0;
        assert_eq!(timer.next().await, None);
        assert_eq!(schedule.skipped(), 19);
    }
}
