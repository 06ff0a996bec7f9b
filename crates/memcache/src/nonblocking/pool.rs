//! The connections to one server.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::{Semaphore, SemaphorePermit};

use super::connection::{Connection, Deadline};
use crate::failure::Failure;

/// Connections to a server, and how many there are.
pub(super) struct Pool {
    idle: Mutex<Idle>,
    room: Semaphore,
    most: usize,
}

#[derive(Default)]
struct Idle {
    /// In boxes, as they are passed on for every call.
    #[allow(clippy::vec_box)]
    connections: Vec<Box<Connection>>,
    /// Counts up when all that are idle are thrown away: those in use are then, too.
    age: u64,
}

/// A connection on loan, which is thrown away unless it is given back.
pub(super) struct Lease<'p> {
    pool: &'p Pool,
    _room: SemaphorePermit<'p>,
    age: u64,
    /// How long it took to get it.
    waited: Duration,
    /// None: there is room for a new one.
    pub connection: Option<Box<Connection>>,
}

impl Pool {
    /// No connections yet, and at most so many.
    pub(super) fn new(most: usize) -> Pool {
        Pool { idle: Mutex::default(), room: Semaphore::new(most), most }
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection, or room for one.
    ///
    /// # Errors
    /// [`Failure::Busy`] where there is none in time.
    pub(super) async fn take(&self, deadline: &Deadline) -> Result<Lease<'_>, Failure> {
        let (room, waited) = match self.room.try_acquire() {
            Ok(room) => (room, Duration::ZERO),
            Err(_) => {
                let begin = Instant::now();
                let wait = async { Ok(self.room.acquire().await.expect("it is never closed")) };
                let busy = |_| Failure::Busy(deadline.limit, self.most);
                (deadline.hold(wait).await.map_err(busy)?, begin.elapsed())
            }
        };
        let mut idle = self.idle();
        let (connection, age) = (idle.connections.pop(), idle.age);
        drop(idle);
        Ok(Lease { pool: self, _room: room, age, waited, connection })
    }

    /// Throws away what is idle: the server was away.
    pub(super) fn clear(&self) {
        let mut idle = self.idle();
        idle.age += 1;
        let closed = std::mem::take(&mut idle.connections);
        drop(idle);
        drop(closed);
    }

    /// How many connections are idle, and how many are in use.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.idle().connections.len(), self.most - self.room.available_permits())
    }
}

impl Lease<'_> {
    /// What a failure means: where nearly all of the time went by waiting for a connection, the
    /// server was not the one who was late.
    pub(super) fn blame(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Late(limit) if self.waited >= limit / 10 * 9 => {
                Failure::Busy(limit, self.pool.most)
            }
            failure => failure,
        }
    }

    /// Gives the connection back, for others to use; one that is not clean is thrown away.
    pub(super) fn give_back(mut self) {
        let Some(connection) = self.connection.take() else { return };
        let mut idle = self.pool.idle();
        if connection.is_clean() && idle.age == self.age {
            idle.connections.push(connection);
        }
    }
}
