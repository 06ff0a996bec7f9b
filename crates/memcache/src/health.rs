//! Whether a server is alive, judged by its connections.
//!
//! A server is dead after some failures in a row; from then on nobody waits for it. It is probed in
//! the background, first soon, then more and more seldom, and is alive again when a probe is
//! answered. Time is given to every function: nothing here reads a clock.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// When a server is dead, and how often it is probed then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Failures in a row after which it is dead: connections refused, answers that do not come in
    /// time. None: it is never taken for dead.
    pub failures: Option<u32>,
    /// The time to the first probe.
    pub first: Duration,
    /// The time between probes at most; it doubles from the first.
    pub most: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            failures: Some(1),
            first: Duration::from_millis(100),
            most: Duration::from_secs(2),
        }
    }
}

/// What is known of a server.
#[derive(Debug)]
pub(crate) struct Health {
    patience: Patience,
    /// Beside the state, as it is read at every call.
    dead: AtomicBool,
    /// Something failed since the last answer.
    suspect: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    /// When it is probed next, and how long the pause before that was.
    probe: Option<(Instant, Duration)>,
}

impl Health {
    /// A server that is alive.
    pub(crate) fn new(patience: Patience) -> Health {
        let (dead, suspect) = (AtomicBool::new(false), AtomicBool::new(false));
        Health { patience, dead, suspect, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is taken for dead.
    #[inline]
    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    /// A call failed, or a probe did. Says whether it is dead since just now.
    pub(crate) fn failed(&self, now: Instant) -> bool {
        let Some(most) = self.patience.failures else { return false };
        let mut state = self.state();
        self.suspect.store(true, Ordering::Relaxed);
        state.failures = state.failures.saturating_add(1);
        if self.is_dead() {
            if let Some((at, pause)) = state.probe
                && at <= now
            {
                let pause = (pause * 2).min(self.patience.most);
                state.probe = Some((now + pause, pause));
            }
            return false;
        }
        if state.failures < most {
            return false;
        }
        state.probe = Some((now + self.patience.first, self.patience.first));
        self.dead.store(true, Ordering::Relaxed);
        true
    }

    /// A call or a probe was answered. Says whether it is alive since just now.
    #[inline]
    pub(crate) fn answered(&self) -> bool {
        self.suspect.load(Ordering::Relaxed) && self.recovered()
    }

    #[cold]
    fn recovered(&self) -> bool {
        let mut state = self.state();
        *state = State::default();
        self.suspect.store(false, Ordering::Relaxed);
        self.dead.swap(false, Ordering::Relaxed)
    }

    /// When it is to be probed; none where it is alive.
    pub(crate) fn probe_at(&self) -> Option<Instant> {
        self.state().probe.map(|(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_dies_after_failures_in_a_row_and_is_probed_ever_more_seldom() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let patience = Patience {
            failures: Some(2),
            first: Duration::from_millis(100),
            most: Duration::from_millis(300),
        };
        let health = Health::new(patience);
        assert!(!health.failed(at(0)));
        assert!(!health.answered());
        assert!(!health.failed(at(0)) && !health.is_dead());
        assert!(health.failed(at(10)) && health.is_dead());
        assert_eq!(health.probe_at(), Some(at(110)));
        // A call that was under way fails too: the next probe is not put off by that.
        assert!(!health.failed(at(50)));
        assert_eq!(health.probe_at(), Some(at(110)));
        for (now, next) in [(110, 310), (310, 610), (610, 910)] {
            assert!(!health.failed(at(now)));
            assert_eq!(health.probe_at(), Some(at(next)));
        }
        assert!(health.answered() && !health.is_dead());
        assert_eq!(health.probe_at(), None);
        assert!(!health.answered());
    }

    #[test]
    fn it_never_dies_where_that_is_wished() {
        let health = Health::new(Patience { failures: None, ..Patience::default() });
        (0..100).for_each(|_| assert!(!health.failed(Instant::now())));
        assert!(!health.is_dead());
    }
}
