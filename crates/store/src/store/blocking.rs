//! Blocking I/O in the caller's thread, for callers that have nothing else to do on it.
//!
//! A runtime polls all its sockets together and reads the one that is ready. A thread that waits for one answer only
//! can call read at once and sleep in it: this saves a system call, and the runtime's own work.

use std::{
    borrow::Borrow,
    cell::Cell,
    pin::Pin,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    task::{Context, Poll},
};

use crate::{Error, ErrorKind, Result};

thread_local! {
    static ALLOWED: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread works for a runtime whose other threads have something to do too.
    static APART: Cell<bool> = const { Cell::new(false) };
}

/// Allows the stores that `future` uses to block its thread, while they wait or work.
///
/// Use it for a loop that has a thread to itself, such as an import: the thread does nothing else
/// while a store answers. SQLite and folders (`dir:`) then do their work in the caller's thread
/// instead of handing it to another, which makes a point read several times faster. Steelyard's
/// own clients of PostgreSQL, MySQL and Redis wait for short answers in the thread, except over TLS, which
/// saves about a tenth of their processor time. For other stores nothing changes. The store's `?timeout` holds as elsewhere,
/// except that a call to the file system cannot be broken off.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> steelyard_store::Result<()> {
/// use steelyard_store::store::{Key, blocking};
///
/// let place = steelyard_store::open("memory:").await?;
/// let found = blocking(place.get(&[Key::new("bob1")?])).await?;
/// assert_eq!(found, [None]);
/// # Ok(()) }
/// ```
pub fn blocking<F: Future>(future: F) -> Blocking<F> {
    Blocking { future: Box::pin(future), allowed: true }
}

/// What is asked side by side in `future` must not wait for one another, whatever is allowed around it.
pub(super) fn side_by_side<F: Future>(future: F) -> Blocking<F> {
    Blocking { future: Box::pin(future), allowed: false }
}

/// A future, and whether what it asks may [wait in the thread](blocking).
#[derive(Debug)]
#[must_use = "futures do nothing unless they are awaited"]
pub struct Blocking<F> {
    future: Pin<Box<F>>,
    allowed: bool,
}

impl<F: Future> Future for Blocking<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        /// Also when the future panics.
        struct Restore(bool);
        impl Drop for Restore {
            fn drop(&mut self) {
                ALLOWED.set(self.0);
            }
        }
        let _before = Restore(ALLOWED.replace(self.allowed));
        self.future.as_mut().poll(cx)
    }
}

/// How often [`interrupt`] was called.
static INTERRUPTIONS: AtomicU64 = AtomicU64::new(0);

/// Ends what stores in this process are doing on their callers' threads: the statements that SQLite is running. They
/// fail, and what they have changed is undone. What begins after this call is not affected.
pub fn interrupt() {
    INTERRUPTIONS.fetch_add(1, Relaxed);
}

/// Another number after each [`interrupt`].
#[cfg_attr(not(feature = "sqlite"), allow(dead_code))]
pub(super) fn interruptions() -> u64 {
    INTERRUPTIONS.load(Relaxed)
}

/// Whether who asks now may wait in the thread.
pub(super) fn is_allowed() -> bool {
    ALLOWED.get()
}

/// Does work that blocks: here, where the caller allows it; else on a thread of the runtime that is
/// kept for such work, with a copy of `input`.
///
/// # Errors
/// Those of the work.
pub(super) async fn work<I, T>(
    input: &I,
    act: impl FnOnce(&I) -> Result<T> + Send + 'static,
) -> Result<T>
where
    I: ToOwned<Owned: Send + 'static> + ?Sized,
    T: Send + 'static,
{
    if is_allowed() {
        return act(input);
    }
    let input = input.to_owned();
    let work = move || {
        APART.set(true);
        act(input.borrow())
    };
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|e| Error::new(ErrorKind::Io, "a thread that works ended early").with_source(e))?
}

/// Lets other threads have the processor, in the midst of long work on a thread apart: a runtime that answers short
/// requests has one of them, and where there are few processors it would wait for the end of the work, or of the time
/// slice. To be called for each row with its number; it is done for every sixteenth.
#[cfg_attr(not(feature = "sqlite"), allow(dead_code))]
pub(super) fn give_way(row: usize) {
    if row.is_multiple_of(16) && APART.get() {
        std::thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[tokio::test]
    async fn it_is_allowed_inside_and_nowhere_else() {
        let inside = blocking(async {
            let before = is_allowed();
            let apart = side_by_side(async { is_allowed() }).await;
            tokio::task::yield_now().await;
            (before, apart, is_allowed())
        });
        let outside = async {
            tokio::task::yield_now().await;
            is_allowed()
        };
        assert_eq!(tokio::join!(inside, outside), ((true, false, true), false));
        assert!(!is_allowed());
    }

    #[tokio::test]
    async fn work_is_done_in_the_thread_where_that_is_allowed_and_in_another_elsewhere() {
        let here = thread::current().id();
        let at = |more: &'static str| async move {
            work("one", move |text| Ok((thread::current().id(), format!("{text}{more}")))).await
        };
        assert_eq!(blocking(at("!")).await.unwrap(), (here, "one!".to_owned()));
        let (other, text) = at("?").await.unwrap();
        assert_ne!(other, here);
        assert_eq!(text, "one?");
    }
}
