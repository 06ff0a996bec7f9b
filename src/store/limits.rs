//! How long things may take, how many connections there may be, and the errors of each limit. Every
//! driver takes its errors from here, so that a timeout reads the same whatever store it is.

use std::{cell::Cell, time::Duration};

use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

use super::Common;
use crate::{Error, Result};

/// The limits of one store.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connecting.
    pub connect: Duration,
    /// An operation, and also the wait for a free connection.
    pub operation: Duration,
    /// Connections at most.
    pub pool: usize,
}

impl Limits {
    /// Those of a URL.
    pub fn of(common: &Common) -> Limits {
        Limits { connect: common.connect_timeout, operation: common.timeout, pool: common.pool }
    }
}

tokio::task_local! {
    /// The size of the pool, while the operation waits for one of its connections.
    static WAITS_FOR: Cell<Option<usize>>;
}

/// Waits for something a server does, but not for ever.
///
/// # Errors
/// Its own; [`Timeout`](crate::ErrorKind::Timeout) when the limit passes first.
pub(crate) async fn within<T>(
    limit: Duration,
    what: &str,
    done: impl Future<Output = Result<T>>,
) -> Result<T> {
    let in_time = async {
        match timeout(limit, done).await {
            Ok(done) => done,
            Err(_) => Err(match WAITS_FOR.with(Cell::get) {
                Some(pool) => busy(limit, pool),
                None => late(what, limit),
            }),
        }
    };
    WAITS_FOR.scope(Cell::new(None), in_time).await
}

/// Waits for a connection to be made.
///
/// # Errors
/// Its own; [`Timeout`](crate::ErrorKind::Timeout) when the limit passes first.
pub(crate) async fn connected<T>(
    limit: Duration,
    connect: impl Future<Output = Result<T>>,
) -> Result<T> {
    timeout(limit, connect).await.unwrap_or_else(|_| Err(unconnected(limit)))
}

/// Waits for one of the pool's connections to be free.
///
/// # Errors
/// [`Timeout`](crate::ErrorKind::Timeout) when the limit passes first.
pub(crate) async fn permit(
    free: &Semaphore,
    limit: Duration,
    pool: usize,
) -> Result<SemaphorePermit<'_>> {
    if let Ok(permit) = free.try_acquire() {
        return Ok(permit);
    }
    let permit = in_turn(limit, pool, free.acquire()).await?;
    Ok(permit.expect("the semaphore is never closed"))
}

/// Waits for a turn, of which there are as many as connections in the pool.
///
/// # Errors
/// [`Timeout`](crate::ErrorKind::Timeout) when the limit passes first.
pub(crate) async fn in_turn<T>(
    limit: Duration,
    pool: usize,
    turn: impl Future<Output = T>,
) -> Result<T> {
    // Outside of `within` nobody asks.
    let waits_for = |pool| WAITS_FOR.try_with(|waits| waits.set(pool)).unwrap_or_default();
    waits_for(Some(pool));
    let turn = timeout(limit, turn).await.map_err(|_| busy(limit, pool))?;
    waits_for(None);
    Ok(turn)
}

/// The error of an answer that did not come in time.
pub(crate) fn late(what: &str, limit: Duration) -> Error {
    Error::timeout(format!("no answer within {} s ({what})", limit.as_secs_f64()))
}

/// The error of a connection that was not made in time.
pub(crate) fn unconnected(limit: Duration) -> Error {
    Error::timeout(format!("no connection within {} s", limit.as_secs_f64()))
}

/// The error of a pool of which no connection was free in time.
pub(crate) fn busy(limit: Duration, pool: usize) -> Error {
    let seconds = limit.as_secs_f64();
    Error::timeout(format!("no free connection within {seconds} s (pool={pool})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn each_limit_has_its_own_text_and_all_are_timeouts() {
        let never = std::future::pending::<Result<()>>;
        let pool = Semaphore::new(1);
        let taken = permit(&pool, LIMIT, 1).await.unwrap();
        let waits = async || permit(&pool, LIMIT * 100, 1).await.map(drop);
        for (done, text) in [
            (within(LIMIT, "a get", never()).await, "no answer within 0.02 s (a get)"),
            (connected(LIMIT, never()).await, "no connection within 0.02 s"),
            (permit(&pool, LIMIT, 1).await.map(drop), "no free connection within 0.02 s (pool=1)"),
            // Which of the two limits passes first must not make a difference.
            (within(LIMIT, "a get", waits()).await, "no free connection within 0.02 s (pool=1)"),
        ] {
            let error = done.unwrap_err();
            assert!(error.is_timeout());
            assert_eq!(error.to_string(), text);
        }
        drop(taken);
        drop(permit(&pool, LIMIT, 1).await.unwrap());
    }
}
