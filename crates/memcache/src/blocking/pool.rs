//! The connections to one server.

use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use socket2::SockAddr;

use super::connection::{Connection, Deadline, resolve};
use crate::{address::Address, failure::Failure};

/// Connections to a server, and how many there are.
pub(super) struct Pool {
    state: Mutex<State>,
    freed: Condvar,
    most: usize,
    /// Where it is, asked of the system once, and again when it was dead.
    addresses: Mutex<Vec<SockAddr>>,
}

struct State {
    /// In boxes, as they are passed on for every call.
    #[allow(clippy::vec_box)]
    idle: Vec<Box<Connection>>,
    /// Those in use and those idle.
    open: usize,
    /// Those who wait for one.
    waiting: usize,
    /// Counts up when all that are idle are thrown away: those in use are then, too.
    age: u64,
}

/// A connection on loan, which is thrown away unless it is given back.
pub(super) struct Lease<'p> {
    pool: &'p Pool,
    age: u64,
    /// None: there is room for a new one.
    pub connection: Option<Box<Connection>>,
}

impl Pool {
    /// No connections yet, and at most so many.
    pub(super) fn new(address: &Address, most: usize) -> Pool {
        let state = State { idle: Vec::new(), open: 0, waiting: 0, age: 0 };
        let pool = Pool {
            state: Mutex::new(state),
            freed: Condvar::new(),
            most,
            addresses: Mutex::default(),
        };
        // A name that leads nowhere may do so later: see `look_up`.
        let _ = pool.look_up(address);
        pool
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the system anew where the server is.
    ///
    /// # Errors
    /// Where it does not know.
    pub(super) fn look_up(&self, address: &Address) -> std::io::Result<()> {
        let found = resolve(address)?;
        *self.addresses.lock().unwrap_or_else(PoisonError::into_inner) = found;
        Ok(())
    }

    /// Where the server is.
    pub(super) fn addresses(&self) -> Vec<SockAddr> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A connection, or room for one.
    ///
    /// # Errors
    /// [`Failure::Busy`] where there is none in time.
    #[inline]
    pub(super) fn take(&self, deadline: &Deadline) -> Result<Lease<'_>, Failure> {
        let mut state = self.state();
        loop {
            if let Some(connection) = state.idle.pop() {
                return Ok(Lease { pool: self, age: state.age, connection: Some(connection) });
            }
            if state.open < self.most {
                state.open += 1;
                return Ok(Lease { pool: self, age: state.age, connection: None });
            }
            let busy = |_| Failure::Busy(deadline.limit, self.most);
            let left = deadline.left().map_err(busy)?;
            state.waiting += 1;
            state = self.freed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            state.waiting -= 1;
        }
    }

    /// Throws away what is idle: the server was away.
    pub(super) fn clear(&self) {
        let mut state = self.state();
        state.age += 1;
        state.open -= state.idle.len();
        let closed = std::mem::take(&mut state.idle);
        drop(state);
        self.freed.notify_all();
        drop(closed);
    }

    /// How many connections are idle, and how many there are.
    pub(super) fn size(&self) -> (usize, usize) {
        let state = self.state();
        (state.idle.len(), state.open)
    }
}

impl Lease<'_> {
    /// Gives the connection back, for others to use; one that is not clean is thrown away.
    #[inline]
    pub(super) fn give_back(mut self) {
        let Some(connection) = self.connection.take() else { return };
        let mut state = self.pool.state();
        let keep = connection.is_clean() && state.age == self.age;
        if keep {
            state.idle.push(connection);
        } else {
            state.open -= 1;
        }
        let waiting = state.waiting > 0;
        drop(state);
        if waiting {
            self.pool.freed.notify_one();
        }
        std::mem::forget(self);
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        self.connection = None;
        let mut state = self.pool.state();
        state.open -= 1;
        drop(state);
        self.pool.freed.notify_one();
    }
}

/// Waits until a moment, or until `stop` is true.
pub(super) fn wait_until(stop: &(Mutex<bool>, Condvar), moment: Instant) -> bool {
    let mut stopped = stop.0.lock().unwrap_or_else(PoisonError::into_inner);
    while !*stopped {
        let left = moment.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        stopped = stop.1.wait_timeout(stopped, left).unwrap_or_else(PoisonError::into_inner).0;
    }
    true
}
