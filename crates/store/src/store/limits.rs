//! How long things may take, how many connections there may be, and the errors of each limit. Every
//! driver takes its errors from here, so that a timeout reads the same whatever store it is.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use tokio::time::timeout;

use super::Common;
use crate::{Error, ErrorKind, Result};

/// The limits of one store.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Connecting.
    pub connect: Duration,
    /// An operation, and also the wait for a free connection.
    pub operation: Duration,
    /// Connections at most.
    pub pool: usize,
}

impl Limits {
    /// Those of a URL.
    pub(super) fn of(common: &Common) -> Limits {
        Limits { connect: common.connect_timeout, operation: common.timeout, pool: common.pool }
    }
}

tokio::task_local! {
    /// How the operation has waited for a free connection.
    static WAITED: Cell<Waited>;
}

#[derive(Debug, Clone, Copy, Default)]
struct Waited {
    /// The size of the pool.
    pool: usize,
    /// Since when it waits now.
    since: Option<Instant>,
    /// How long it waited before, at the longest.
    before: Duration,
}

impl Waited {
    /// Whether nearly all of the operation's time went by so: a connection that comes free at its end
    /// is of no use any more.
    fn is_most_of(&self, limit: Duration) -> bool {
        let now = self.since.map_or(Duration::ZERO, |since| since.elapsed());
        now.max(self.before) >= limit / 10 * 9
    }
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
            Err(_) => Err(match WAITED.with(Cell::get) {
                waited if waited.is_most_of(limit) => busy(limit, waited.pool),
                _ => late(what, limit),
            }),
        }
    };
    WAITED.scope(Cell::default(), in_time).await
}

/// Waits for a connection to be made.
///
/// # Errors
/// Its own; [`Timeout`](crate::ErrorKind::Timeout) when the limit passes first, or any that the login
/// has.
pub(super) async fn connected<T>(
    limit: Duration,
    connect: impl Future<Output = Result<T>>,
) -> Result<T> {
    match timeout(limit, connect).await {
        Ok(Err(e)) if e.is_timeout() => Err(unconnected(limit).with_source(e)),
        Ok(connected) => connected,
        Err(_) => Err(unconnected(limit)),
    }
}

/// Waits for a turn, of which there are as many as connections in the pool.
///
/// # Errors
/// [`Timeout`](crate::ErrorKind::Timeout) when the limit passes first.
pub(super) async fn in_turn<T>(
    limit: Duration,
    pool: usize,
    turn: impl Future<Output = T>,
) -> Result<T> {
    // Outside of `within` nobody asks.
    let before = WAITED.try_with(|waited| waited.get().before).unwrap_or_default();
    let set = |waited| WAITED.try_with(|of| of.set(waited)).unwrap_or_default();
    let begin = Instant::now();
    set(Waited { pool, since: Some(begin), before });
    let turn = timeout(limit, turn).await.map_err(|_| busy(limit, pool))?;
    set(Waited { pool, since: None, before: before.max(begin.elapsed()) });
    Ok(turn)
}

/// The error of an answer that did not come in time.
pub(super) fn late(what: &str, limit: Duration) -> Error {
    Error::timeout(format!("no answer within {} s ({what})", limit.as_secs_f64()))
}

/// The error of a connection that was not made in time.
pub(super) fn unconnected(limit: Duration) -> Error {
    let cause = format!("timed out after {} s", limit.as_secs_f64());
    Error::cannot_connect(ErrorKind::Timeout, cause)
}

/// The error of a connection that could not be made, for this cause.
pub(super) fn unreached(cause: impl std::fmt::Display) -> Error {
    Error::cannot_connect(ErrorKind::Unavailable, cause)
}

/// The error of a pool of which no connection was free in time.
pub(super) fn busy(limit: Duration, pool: usize) -> Error {
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
        let waits = async |limit| in_turn(limit, 1, std::future::pending::<()>()).await;
        let nearly = async {
            in_turn(LIMIT * 100, 1, tokio::time::sleep(LIMIT / 20 * 19)).await?;
            never().await
        };
        for (done, text) in [
            (within(LIMIT, "a get", never()).await, "no answer within 0.02 s (a get)"),
            (connected(LIMIT, never()).await, "cannot connect: timed out after 0.02 s"),
            (waits(LIMIT).await, "no free connection within 0.02 s (pool=1)"),
            // Which of the two limits passes first must not make a difference.
            (
                within(LIMIT, "a get", waits(LIMIT * 100)).await,
                "no free connection within 0.02 s (pool=1)",
            ),
            (within(LIMIT, "a get", nearly).await, "no free connection within 0.02 s (pool=1)"),
        ] {
            let error = done.unwrap_err();
            assert!(error.is_timeout());
            assert_eq!(error.to_string(), text);
        }
    }
}
