//! The connections of one store: `?pool` of them at most, each for one operation at a time.
//!
//! An operation takes its turn first, of which there are as many as connections, and then has an idle
//! connection or makes a new one. It gives the connection back when that is in good order. Any other
//! way (its answer was late or half, whoever waited went away) the connection is closed, so that
//! nobody reads what was meant for another.
//!
//! Where a client's crate has connections of its own, and where there are none, there are only
//! [`Turns`].
//!
//! Several may share a pool, each with a database of the same server. A [`Share`] is what one of them may have of it at
//! once: half of the connections, so that no single one can keep all of them from the others.

use std::{
    ops::{Deref, DerefMut},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{AcquireError, OwnedSemaphorePermit, Semaphore, SemaphorePermit},
    time::Instant,
};

use super::limits::{Limits, connected, in_turn};
use crate::Result;

/// After this time one of those who share a pool has no connection of its own any more, where another needs one.
const OWN: Duration = Duration::from_secs(10);

/// What a pool keeps between two operations.
pub(super) trait Connection {
    /// Whether the next operation can use it: it was not closed, and nothing came that was not asked
    /// for.
    fn is_sound(&mut self) -> bool {
        true
    }

    /// Whether it was idle for so long that the runtime has to look at it, before
    /// [`is_sound`](Connection::is_sound) knows what became of it.
    fn has_rested(&self) -> bool {
        false
    }

    /// Whether whoever asks now should have this one rather than another.
    fn suits(&self) -> bool {
        true
    }

    /// It becomes idle.
    fn rest(&mut self) {}
}

/// Connections of one kind.
pub(super) struct Pool<C> {
    limits: Limits,
    /// The server or file, for errors.
    place: String,
    turns: Semaphore,
    idle: Mutex<Idle<C>>,
}

struct Idle<C> {
    /// The one that was used last is the last; with the time of that, where several share the pool.
    connections: Vec<(C, Option<Instant>)>,
    /// Counts how often all were closed: those in use are then not taken back.
    age: u64,
}

/// Turns without connections.
pub(super) type Turns = Pool<()>;
/// A turn, which ends when it is dropped.
pub(super) type Turn<'p> = Lease<(), &'p Turns>;

impl Connection for () {}

/// So often one of those who share a pool is served by connections that are there, before one is made for it: who comes
/// once need not wait for a login.
const BEFORE: u32 = 4;

/// What one of those who share a pool may have of it at once.
#[derive(Clone)]
pub(super) struct Share {
    turns: Arc<Semaphore>,
    /// How often it has asked.
    asked: Arc<AtomicU32>,
}

impl Share {
    /// Half of the connections of a pool.
    pub(super) fn of<C>(pool: &Pool<C>) -> Share {
        let turns = pool.limits.pool.div_ceil(2).min(Semaphore::MAX_PERMITS);
        Share { turns: Arc::new(Semaphore::new(turns)), asked: Arc::default() }
    }

    /// Takes one, if one is free. It ends when it is dropped.
    fn take(&self) -> Option<OwnedSemaphorePermit> {
        self.turns.clone().try_acquire_owned().ok()
    }

    /// Whether it has asked so often that a connection is made for it. It asks once more.
    fn is_known(&self) -> bool {
        let count = |asked| (asked < BEFORE).then_some(asked + 1);
        self.asked.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count).is_err()
    }
}

impl<C> Pool<C> {
    /// No connections yet; they are made when they are needed. Errors name `place`.
    pub(super) fn new(limits: Limits, place: impl Into<String>) -> Pool<C> {
        let turns = Semaphore::new(limits.pool.min(Semaphore::MAX_PERMITS));
        let idle = Mutex::new(Idle { connections: Vec::new(), age: 0 });
        Pool { limits, place: place.into(), turns, idle }
    }

    /// The limits of its operations.
    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The server or file, for errors.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Waits for a turn. The lease has no connection yet.
    ///
    /// # Errors
    /// [`Timeout`](crate::ErrorKind::Timeout) where none is free in time.
    pub(super) async fn turn<P: Deref<Target = Pool<C>>>(of: P) -> Result<Lease<C, P>> {
        Pool::turn_of(of, None).await
    }

    /// Waits for a turn of one who shares the pool.
    ///
    /// # Errors
    /// As [`Pool::turn`].
    pub(super) async fn turn_of<P: Deref<Target = Pool<C>>>(
        of: P,
        share: Option<&Share>,
    ) -> Result<Lease<C, P>> {
        let share = of.take_turn(share).await?;
        Ok(Lease { pool: of, age: 0, connection: None, share, own: false })
    }

    async fn take_turn(&self, share: Option<&Share>) -> Result<Option<OwnedSemaphorePermit>> {
        let held = share.map(Share::take);
        if !matches!(held, Some(None))
            && self.turns.try_acquire().map(SemaphorePermit::forget).is_ok()
        {
            return Ok(held.flatten());
        }
        // Boxed, so that the usual future stays small.
        Box::pin(self.wait(share, held.flatten())).await
    }

    /// Waits for one's share first, so that nobody has a place among those who wait for a turn who could not take it.
    async fn wait(
        &self,
        share: Option<&Share>,
        held: Option<OwnedSemaphorePermit>,
    ) -> Result<Option<OwnedSemaphorePermit>> {
        let Limits { operation, pool, .. } = self.limits;
        let turn = async {
            let held = match (held, share) {
                (None, Some(share)) => Some(share.turns.clone().acquire_owned().await?),
                (held, _) => held,
            };
            self.turns.acquire().await?.forget();
            Ok::<_, AcquireError>(held)
        };
        let turn = in_turn(operation, pool, turn).await;
        Ok(turn.map_err(|e| e.in_place(&self.place))?.expect("neither is ever closed"))
    }

    /// Whether there may be one more connection for whoever has just taken a turn, while so many are idle.
    fn has_room(&self, idle: usize) -> bool {
        let in_turn = self.limits.pool.saturating_sub(self.turns.available_permits());
        idle + in_turn <= self.limits.pool
    }

    /// Closes all connections: those that are idle now, those in use when they are given back.
    pub(super) fn forget(&self) {
        let mut idle = self.idle();
        idle.age += 1;
        let closed = std::mem::take(&mut idle.connections);
        // Closing may take a while.
        drop(idle);
        drop(closed);
    }

    fn idle(&self) -> MutexGuard<'_, Idle<C>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C: Connection> Pool<C> {
    /// A connection that nobody else uses.
    ///
    /// # Errors
    /// Those of `connect`; [`Timeout`](crate::ErrorKind::Timeout) where no turn is free or no
    /// connection is made in time.
    pub(super) async fn lease(
        &self,
        connect: impl AsyncFnOnce() -> Result<C>,
    ) -> Result<Lease<C, &Self>> {
        self.lease_of(None, C::suits, connect).await
    }

    /// A connection: an idle one that `suits`, or for one who shares the pool and has asked before a new one while there may
    /// be more, or another idle one, or a new one.
    ///
    /// # Errors
    /// As [`Pool::lease`].
    pub(super) async fn lease_of(
        &self,
        share: Option<&Share>,
        suits: impl Fn(&C) -> bool,
        connect: impl AsyncFnOnce() -> Result<C>,
    ) -> Result<Lease<C, &Self>> {
        let own = share.is_some_and(Share::is_known);
        let share = self.take_turn(share).await?;
        let mut lease = Lease { pool: self, age: 0, connection: None, share, own };
        lease.take_idle(&suits);
        if lease.connection.as_ref().is_some_and(C::has_rested) {
            tokio::task::yield_now().await;
        }
        if !lease.is_sound(suits) {
            // Boxed, so that the usual future stays small.
            let new = Box::pin(connected(self.limits.connect, connect())).await;
            let is_servers =
                |e: &crate::Error| e.is_outage() || e.kind() == crate::ErrorKind::Malformed;
            lease.connection = Some(new.map_err(|e| match is_servers(&e) {
                true => e.in_place(&self.place),
                false => e,
            })?);
        }
        Ok(lease)
    }
}

/// A turn, and the connection that goes with it; closed unless it is given back.
pub(super) struct Lease<C, P: Deref<Target = Pool<C>>> {
    pool: P,
    age: u64,
    connection: Option<C>,
    share: Option<OwnedSemaphorePermit>,
    /// Whether a connection is made for who shares the pool, where none suits.
    own: bool,
}

impl<C: Connection, P: Deref<Target = Pool<C>>> Lease<C, P> {
    fn take_idle(&mut self, suits: impl Fn(&C) -> bool) {
        self.connection = None;
        let mut idle = self.pool.idle();
        let suits = idle.connections.iter().rposition(|(connection, _)| suits(connection));
        let count = idle.connections.len();
        let other = match idle.connections.first() {
            // So that as many as there are connections have their own.
            _ if self.own && self.pool.has_room(count) => None,
            // One whose owner does not need it.
            Some((_, Some(since))) if self.share.is_some() && since.elapsed() >= OWN => Some(0),
            // Else the one that was used last, so that few serve all others: PostgreSQL caches the catalog of a schema in each
            // connection that uses it.
            _ => count.checked_sub(1),
        };
        let at = suits.or(other);
        (self.age, self.connection) = (idle.age, at.map(|at| idle.connections.remove(at).0));
    }

    /// Whether it has a connection that can be used; those that cannot are closed.
    fn is_sound(&mut self, suits: impl Fn(&C) -> bool) -> bool {
        while let Some(connection) = &mut self.connection {
            if connection.is_sound() {
                return true;
            }
            self.take_idle(&suits);
        }
        false
    }

    /// Takes an idle connection, or the one that `connect` makes without waiting for anybody.
    ///
    /// # Errors
    /// Those of `connect`.
    pub(super) fn fill(&mut self, connect: impl FnOnce() -> Result<C>) -> Result<()> {
        self.take_idle(C::suits);
        if !self.is_sound(C::suits) {
            self.connection = Some(connect()?);
        }
        Ok(())
    }

    /// Gives the connection back: it is in good order.
    pub(super) fn give_back(mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        connection.rest();
        let since = self.share.as_ref().map(|_| Instant::now());
        let mut idle = self.pool.idle();
        if idle.age == self.age {
            idle.connections.push((connection, since));
        }
    }
}

impl<C, P: Deref<Target = Pool<C>>> Deref for Lease<C, P> {
    type Target = C;

    fn deref(&self) -> &C {
        self.connection.as_ref().expect("a lease that has a connection")
    }
}

impl<C, P: Deref<Target = Pool<C>>> DerefMut for Lease<C, P> {
    fn deref_mut(&mut self) -> &mut C {
        self.connection.as_mut().expect("a lease that has a connection")
    }
}

impl<C, P: Deref<Target = Pool<C>>> Drop for Lease<C, P> {
    fn drop(&mut self) {
        // Closed before the next one connects: there are never more than there may be.
        self.connection = None;
        self.pool.turns.add_permits(1);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        cell::Cell,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering::Relaxed},
        },
        time::Duration,
    };

    use futures_util::FutureExt;

    use super::*;
    use crate::Error;

    const LIMIT: Duration = Duration::from_millis(20);

    /// A connection with a number, which counts those that are open.
    struct Numbered(usize, bool, Arc<AtomicUsize>);

    impl Connection for Numbered {
        fn is_sound(&mut self) -> bool {
            self.1
        }
    }

    impl Drop for Numbered {
        fn drop(&mut self) {
            self.2.fetch_sub(1, Relaxed);
        }
    }

    struct Server(Pool<Numbered>, Cell<usize>, Arc<AtomicUsize>);

    impl Server {
        fn new(pool: usize) -> Server {
            let limits = Limits { connect: LIMIT, operation: LIMIT, pool };
            Server(Pool::new(limits, "host:1"), Cell::new(0), Arc::default())
        }

        async fn lease(&self) -> Result<Lease<Numbered, &Pool<Numbered>>> {
            let connect = async || {
                self.1.set(self.1.get() + 1);
                self.2.fetch_add(1, Relaxed);
                Ok(Numbered(self.1.get(), true, self.2.clone()))
            };
            self.0.lease(connect).await
        }
    }

    #[tokio::test]
    async fn what_is_given_back_is_used_again_and_the_rest_is_closed() {
        let server = Server::new(2);
        server.lease().await.unwrap().give_back();
        let one = server.lease().await.unwrap();
        let two = server.lease().await.unwrap();
        assert_eq!((one.0, two.0), (1, 2));
        drop(two);
        one.give_back();
        assert_eq!(server.2.load(Relaxed), 1);
        let mut one = server.lease().await.unwrap();
        assert_eq!(one.0, 1);
        // It breaks while it is idle.
        one.1 = false;
        one.give_back();
        assert_eq!(server.lease().await.unwrap().0, 3);
        assert_eq!(server.2.load(Relaxed), 0);
    }

    #[tokio::test]
    async fn all_are_forgotten_whether_in_use_or_not() {
        let server = Server::new(2);
        let (one, two) = (server.lease().await.unwrap(), server.lease().await.unwrap());
        one.give_back();
        server.0.forget();
        two.give_back();
        assert_eq!(server.2.load(Relaxed), 0);
        server.lease().await.unwrap().give_back();
        assert_eq!(server.lease().await.unwrap().0, 3);
    }

    #[tokio::test]
    async fn turns_are_bounded_and_waiting_ends_and_says_where() {
        let server = Server::new(1);
        let lease = server.lease().await.unwrap();
        let error = server.lease().await.err().unwrap();
        assert!(error.is_timeout());
        assert_eq!(error.to_string(), "host:1: no free connection within 0.02 s (pool=1)");
        // Who waits has it as soon as it is free.
        let free = async {
            tokio::task::yield_now().await;
            lease.give_back();
        };
        let (next, ()) = tokio::join!(server.lease(), free);
        assert_eq!(next.unwrap().0, 1);
        server.lease().await.unwrap();
        // As many as can be counted.
        drop(Turns::new(Limits { connect: LIMIT, operation: LIMIT, pool: usize::MAX }, ""));
    }

    #[tokio::test(start_paused = true)]
    async fn who_shares_a_pool_has_half_of_it_and_its_own_connections_first() {
        let server = Server::new(4);
        let pool = &server.0;
        let (one, two) = (Share::of(pool), Share::of(pool));
        let known = |share: &Share| share.asked.store(BEFORE, Ordering::Relaxed);
        known(&one);
        known(&two);
        let lease = async |share, own: usize| {
            let connect = async || {
                server.1.set(server.1.get() + 1);
                server.2.fetch_add(1, Relaxed);
                Ok(Numbered(server.1.get(), true, server.2.clone()))
            };
            pool.lease_of(Some(share), |c: &Numbered| c.0 == own, connect).await
        };
        let (first, second) = (lease(&one, 0).await.unwrap(), lease(&one, 0).await.unwrap());
        // It waits for its own, not for those of the others.
        assert!(lease(&one, 0).await.err().unwrap().is_timeout());
        let (third, fourth) = (lease(&two, 0).await.unwrap(), lease(&two, 0).await.unwrap());
        assert!(server.lease().await.err().unwrap().is_timeout());
        for idle in [third, first, second, fourth] {
            idle.give_back();
        }
        // The own one; the one that was used last; and a new one, where there may be one more.
        let own = lease(&two, 2).await.unwrap();
        assert_eq!((own.0, lease(&two, 9).await.unwrap().0), (2, 4));
        let new = lease(&two, 9).await.unwrap();
        assert_eq!((new.0, server.2.load(Relaxed)), (5, 4));
        // One whose owner has not asked for long.
        for idle in [new, own] {
            idle.give_back();
        }
        tokio::time::advance(OWN).await;
        let last = lease(&one, 5).await.unwrap();
        last.give_back();
        let (other, last) = (lease(&two, 9).await.unwrap(), lease(&two, 9).await.unwrap());
        assert_eq!((other.0, last.0), (3, 1));
        drop((other, last));
        let own = lease(&two, 2).await.unwrap();
        // Who has just come has what is there.
        own.give_back();
        let new = Share::of(pool);
        for has_asked in [false, true] {
            let other = lease(&new, 9).await.unwrap();
            assert_eq!(other.0 == 2, !has_asked, "{}", other.0);
            other.give_back();
            known(&new);
        }
        let own = lease(&two, 2).await.unwrap();
        // Who gives up has nothing.
        for _ in 0..3 {
            assert!(lease(&one, 0).now_or_never().is_some());
        }
        drop((one, two, own));
        assert_eq!(Pool::turn(pool).await.map(drop).ok(), Some(()));
    }

    #[tokio::test]
    async fn connecting_that_is_late_is_one_error_whoever_counts() {
        let server = Server::new(1);
        let never = async || std::future::pending().await;
        let late = async || Err(Error::timeout("no answer within 3 s (a login)"));
        for error in [server.0.lease(never).await.err(), server.0.lease(late).await.err()] {
            let error = error.unwrap();
            assert!(error.is_timeout());
            assert_eq!(error.to_string(), "cannot connect to host:1: timed out after 0.02 s");
        }
        // What is no fault of the connection is left as it is.
        let denied = async || Err(Error::new(crate::ErrorKind::Denied, "no"));
        assert_eq!(server.0.lease(denied).await.err().unwrap().to_string(), "no");
        server.lease().await.unwrap();
    }

    #[tokio::test]
    async fn a_lease_may_go_where_its_work_is_done() {
        let limits = Limits { connect: LIMIT, operation: LIMIT, pool: 1 };
        let turns = Arc::new(Turns::new(limits, "a folder"));
        let turn = Pool::turn(turns.clone()).await.unwrap();
        let (begin, may_begin) = std::sync::mpsc::channel::<()>();
        let work = std::thread::spawn(move || {
            may_begin.recv().unwrap();
            drop(turn);
        });
        assert!(Pool::turn(&*turns).await.is_err());
        begin.send(()).unwrap();
        work.join().unwrap();
        Pool::turn(&*turns).await.unwrap();
    }
}
