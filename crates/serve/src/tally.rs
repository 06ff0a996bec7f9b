//! What one tenant asked of this process, for its operators.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// Counts since the start of the process.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    requests: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    /// Requests of the minute that is going on, and of the one before.
    now: Minute,
    before: Minute,
}

/// The number of a minute in the upper bits, and what was counted in it.
#[derive(Debug, Default)]
struct Minute(AtomicU64);

const COUNT: u32 = 40;

impl Minute {
    fn of(&self, minute: u64) -> u64 {
        let kept = self.0.load(Relaxed);
        if kept >> COUNT == minute { kept & ((1 << COUNT) - 1) } else { 0 }
    }
}

/// A tally as it was read.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Counts {
    /// Requests that were let in or refused.
    pub requests: u64,
    /// Of them those that were over a limit (429) or a quota (507).
    pub refused: u64,
    /// Of them those with another status of 500 or more.
    pub failed: u64,
    /// Requests a second in the last minute that is over.
    pub per_second: f64,
}

impl Tally {
    /// Counts a request that was answered with this status.
    pub(crate) fn answered(&self, status: u16, now: Duration) {
        self.requests.fetch_add(1, Relaxed);
        match status {
            429 | 507 => drop(self.refused.fetch_add(1, Relaxed)),
            500.. => drop(self.failed.fetch_add(1, Relaxed)),
            _ => {}
        }
        let minute = now.as_secs() / 60;
        let kept = self.now.0.load(Relaxed);
        if kept >> COUNT != minute {
            // Of two that see the new minute, the one that writes it moves the old one.
            let new = self.now.0.compare_exchange(kept, minute << COUNT, Relaxed, Relaxed);
            if new.is_ok() {
                self.before.0.store(kept, Relaxed);
            }
        }
        self.now.0.fetch_add(1, Relaxed);
    }

    pub(crate) fn counts(&self, now: Duration) -> Counts {
        let last = (now.as_secs() / 60).wrapping_sub(1);
        // Where nobody asked since, the minute that was going on is the last one.
        let of_minute = self.before.of(last).max(self.now.of(last));
        Counts {
            requests: self.requests.load(Relaxed),
            refused: self.refused.load(Relaxed),
            failed: self.failed.load(Relaxed),
            per_second: of_minute as f64 / 60.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_counts_once_it_is_over_and_until_the_next_one_is() {
        let tally = Tally::default();
        let at = Duration::from_secs;
        for second in 600..660 {
            tally.answered(200, at(second));
            tally.answered(429, at(second));
        }
        assert_eq!(tally.counts(at(659)).per_second, 0.0);
        let counts = |at| tally.counts(at);
        let all = Counts { requests: 120, refused: 60, failed: 0, per_second: 2.0 };
        assert_eq!(counts(at(660)), all);
        tally.answered(503, at(665));
        assert_eq!(counts(at(719)), Counts { requests: 121, failed: 1, ..all });
        assert_eq!(counts(at(720)).per_second, 1.0 / 60.0);
        assert_eq!(counts(at(780)).per_second, 0.0);
    }
}
