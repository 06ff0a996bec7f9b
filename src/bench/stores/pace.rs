//! Waiting for planned moments, to some microseconds.
//!
//! The runtime's own timers go in steps of a millisecond, which would be counted as response time;
//! so a timer of the kernel is waited for, where there is one.

use std::time::Duration;

use crate::{
    Result,
    bench::{clock::Monotonic, schedule::Moments},
    store::alarm::Timer,
};

/// The planned moments of an open loop, one after another, to whoever asks next.
pub(super) struct Pacer {
    clock: Monotonic,
    /// When the plan began, on the clock.
    begin: u64,
    /// Nothing is planned from here on, in nanoseconds after the beginning …
    end: u64,
    /// … and nothing is sent after this.
    last: u64,
    moments: Moments,
    timer: Timer,
    /// Moments that were planned and came too late to be sent.
    pub skipped: u64,
}

/// How much longer than planned a window may take for what is late to be sent.
const GRACE: f64 = 0.5;

impl Pacer {
    /// A plan of so many seconds that begins now.
    pub fn new(clock: Monotonic, moments: Moments, seconds: f64) -> Result<Pacer> {
        let end = (seconds * 1e9) as u64;
        let last = end + (seconds * GRACE * 1e9) as u64;
        let timer = Timer::new()?;
        Ok(Pacer { clock, begin: clock.now(), end, last, moments, timer, skipped: 0 })
    }

    /// Waits for the next planned moment, and gives it on the clock; none at the end.
    pub async fn next(&mut self) -> Option<u64> {
        loop {
            let planned = self.moments.next().filter(|planned| *planned < self.end)?;
            let now = self.clock.now() - self.begin;
            if now > self.last {
                self.skipped += 1;
                continue;
            }
            if planned > now {
                self.timer.wait(Duration::from_nanos(planned - now)).await;
            }
            return Some(self.begin + planned);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::schedule::Pace;

    #[tokio::test]
    async fn planned_moments_are_met_and_end() {
        let clock = Monotonic::default();
        let moments = Pace::Fixed(1000.0).moments(1, 0.0).unwrap();
        let mut pacer = Pacer::new(clock, moments, 0.02).unwrap();
        let (mut met, mut early) = (0, 0);
        while let Some(planned) = pacer.next().await {
            early += u32::from(clock.now() < planned);
            met += 1;
        }
        assert_eq!((met, early, pacer.skipped), (20, 0, 0));
    }

    #[tokio::test]
    async fn what_is_far_too_late_is_skipped_and_counted() {
        let clock = Monotonic::default();
        let moments = Pace::Fixed(1000.0).moments(1, 0.0).unwrap();
        let mut pacer = Pacer::new(clock, moments, 0.02).unwrap();
        assert!(pacer.next().await.is_some());
        // As if the grace were over.
        pacer.last = 0;
        assert_eq!(pacer.next().await, None);
        assert_eq!(pacer.skipped, 19);
    }
}
