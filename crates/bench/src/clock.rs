//! The clock that takes all times: CLOCK_MONOTONIC (rule 17), its cost and its step.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use super::results::Clock;

/// Windows shorter than this many readings of the clock are made longer by repeating the work.
pub const READINGS: u64 = 50;

/// Nanoseconds since the clock was made. On Linux `Instant` reads CLOCK_MONOTONIC without a system
/// call.
#[derive(Debug, Clone, Copy)]
pub struct Monotonic(Instant);

impl Default for Monotonic {
    fn default() -> Self {
        Monotonic(Instant::now())
    }
}

impl Monotonic {
    /// Nanoseconds since the clock was made.
    #[inline]
    pub fn now(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }
}

/// Measures what a reading costs and the smallest step between two. Takes about 10 ms.
pub fn measure() -> Clock {
    let clock = Monotonic::default();
    let per_batch = 1000;
    // The least of many batches: whatever comes between makes a batch longer, never shorter.
    let batch = || {
        let begin = clock.now();
        for _ in 0..per_batch {
            black_box(clock.now());
        }
        (clock.now() - begin) as f64 / f64::from(per_batch)
    };
    let read_ns = (0..100).map(|_| batch()).fold(f64::INFINITY, f64::min);
    let mut step = u64::MAX;
    let end = Instant::now() + Duration::from_millis(2);
    while Instant::now() < end {
        let first = clock.now();
        let mut next = clock.now();
        while next == first {
            next = clock.now();
        }
        step = step.min(next - first);
    }
    Clock { read_ns, step_ns: step as f64 }
}

/// The shortest window that may be timed with this clock, in nanoseconds.
pub fn shortest_window(clock: &Clock) -> u64 {
    (clock.read_ns.max(clock.step_ns) * READINGS as f64).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_a_cost_and_a_step() {
        let clock = measure();
        assert!(clock.read_ns > 0.0 && clock.read_ns < 100_000.0, "{clock:?}");
        assert!(clock.step_ns >= 1.0, "{clock:?}");
        assert!(shortest_window(&clock) as f64 >= 50.0 * clock.read_ns);
    }
}
