//! The clock by which leases and limits are counted: it never goes back, goes on while the machine sleeps, and stands
//! still in tests.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// Time since some moment that stays the same while the process lives.
#[derive(Clone, Debug, Default)]
pub struct Clock(Option<Arc<AtomicU64>>);

impl Clock {
    /// That of the system. It counts the time in which the machine was suspended, as a lease runs out in it all the same.
    pub fn system() -> Clock {
        Clock(None)
    }

    /// One that is moved by [`advance`](Clock::advance) alone; clones share it.
    pub fn by_hand() -> Clock {
        Clock(Some(Arc::new(AtomicU64::new(1_000_000_000))))
    }

    /// How much time there has been.
    pub fn now(&self) -> Duration {
        match &self.0 {
            Some(nanos) => Duration::from_nanos(nanos.load(Ordering::SeqCst)),
            None => boot_time(),
        }
    }

    /// Moves a clock [by hand](Clock::by_hand); the system's is not moved.
    pub fn advance(&self, by: Duration) {
        if let Some(nanos) = &self.0 {
            nanos.fetch_add(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX), Ordering::SeqCst);
        }
    }
}

#[cfg(target_os = "linux")]
fn boot_time() -> Duration {
    use nix::time::{ClockId, clock_gettime};
    clock_gettime(ClockId::CLOCK_BOOTTIME).map_or_else(|_| monotonic(), Duration::from)
}

#[cfg(not(target_os = "linux"))]
fn boot_time() -> Duration {
    monotonic()
}

/// What there is elsewhere: it may stand still while the machine sleeps.
fn monotonic() -> Duration {
    use std::{sync::LazyLock, time::Instant};
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    // So that a time before the first question is not below zero.
    Duration::from_secs(1 << 20) + START.elapsed()
}
