//! Waiting for planned moments, to some microseconds.
//!
//! The runtime's own timers go in steps of a millisecond, which would be counted as response time;
//! so on Linux a timer of the kernel is waited for (timerfd_create(2)).

use std::time::Duration;

use crate::{
    Result,
    bench::{clock::Monotonic, schedule::Moments},
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
                self.timer.wait(planned - now).await;
            }
            return Some(self.begin + planned);
        }
    }
}

/// A timer of the kernel, and the same file as something the runtime can wait for: it reads eight
/// bytes once the moment has come, as from a pipe.
#[cfg(target_os = "linux")]
pub(in crate::bench) struct Timer {
    timer: nix::sys::timerfd::TimerFd,
    fires: tokio::net::unix::pipe::Receiver,
}

#[cfg(target_os = "linux")]
impl Timer {
    pub fn new() -> Result<Timer> {
        use std::{io, os::fd::AsFd};

        use nix::sys::timerfd::{ClockId, TimerFd, TimerFlags};
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags).map_err(io::Error::from)?;
        let file = timer.as_fd().try_clone_to_owned()?;
        let fires = tokio::net::unix::pipe::Receiver::from_owned_fd_unchecked(file)?;
        Ok(Timer { timer, fires })
    }

    pub async fn wait(&mut self, ns: u64) {
        use nix::sys::timerfd::{Expiration, TimerSetTimeFlags};
        let after = Expiration::OneShot(Duration::from_nanos(ns.max(1)).into());
        if self.timer.set(after, TimerSetTimeFlags::empty()).is_err() {
            // Never seen; a coarse wait is still a wait.
            return tokio::time::sleep(Duration::from_nanos(ns)).await;
        }
        while self.fires.readable().await.is_ok() {
            match self.fires.try_read(&mut [0; 8]) {
                // It had fired before, and nobody had looked again.
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
                _ => return,
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(in crate::bench) struct Timer;

#[cfg(not(target_os = "linux"))]
impl Timer {
    pub fn new() -> Result<Timer> {
        Ok(Timer)
    }

    pub async fn wait(&mut self, ns: u64) {
        tokio::time::sleep(Duration::from_nanos(ns)).await;
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
