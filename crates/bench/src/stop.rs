//! Ending a run early: a flag that is set once, by Ctrl-C, and that every loop and wait that may take long looks at.
//!
//! A loop calls [`check`](Stop::check), which costs a load. A wait for a store is [`interruptible`](Stop::interruptible).
//! Work that blocks its thread and does not look itself, such as the start of a server, is done
//! [`apart`](Stop::apart). Whatever does not end for all that (a call of a C library, a disk that hangs), the command line
//! ends with the process; `cleanup.rs` is for that.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
};

use tokio::sync::{Notify, oneshot};

use crate::{Error, Result};

/// The error of a run that was ended before its first round was done.
pub(crate) fn interrupted() -> Error {
    Error::unavailable("interrupted before the first round was done: there are no results")
}

/// Whether a run is to end. Clones are the same flag.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<Flag>);

#[derive(Debug, Default)]
struct Flag {
    set: AtomicBool,
    told: Notify,
}

impl Stop {
    /// The one that was given, or one that nobody sets.
    pub fn given(stop: Option<&Stop>) -> Stop {
        stop.cloned().unwrap_or_default()
    }

    /// Ends the run. Statements that run in this process are [interrupted](crate::store::interrupt) by whoever calls this.
    pub fn set(&self) {
        self.0.set.store(true, Relaxed);
        self.0.told.notify_waiters();
    }

    /// Whether the run is to end.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.0.set.load(Relaxed)
    }

    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable) where the run is to end.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.is_set() { Err(interrupted()) } else { Ok(()) }
    }

    /// Waits until the run is to end.
    pub async fn wait(&self) {
        let mut told = pin!(self.0.told.notified());
        told.as_mut().enable();
        if !self.is_set() {
            told.await;
        }
    }

    /// Does the work, and drops it where the run is to end before the work is done.
    ///
    /// # Errors
    /// Those of the work; as [`check`](Stop::check).
    pub async fn interruptible<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            biased;
            done = work => done,
            () = self.wait() => Err(interrupted()),
        }
    }

    /// Does work that blocks on a thread of its own. Where the run is to end before, the thread is no longer waited for,
    /// and drops what the work comes to.
    ///
    /// # Errors
    /// Those of the work; as [`check`](Stop::check); where there are no more threads.
    pub async fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.check()?;
        let (done, result) = oneshot::channel();
        let thread = thread::Builder::new().name("bench apart".into());
        thread.spawn(move || drop(done.send(work())))?;
        let gone = |_| Error::unavailable("a thread of the bench ended before its work was done");
        self.interruptible(async { result.await.map_err(gone)? }).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn is_interrupted<T>(done: Result<T>) -> bool {
        done.is_err_and(|e| e.is_outage() && e.to_string().contains("interrupted"))
    }

    #[tokio::test]
    async fn what_is_done_comes_through_and_what_waits_ends() {
        let stop = Stop::default();
        stop.check().unwrap();
        assert_eq!(stop.interruptible(async { Ok(1) }).await.unwrap(), 1);
        assert_eq!(stop.apart(|| Ok(2)).await.unwrap(), 2);
        let other = stop.clone();
        thread::spawn(move || other.set());
        assert!(is_interrupted(stop.interruptible(std::future::pending::<Result<()>>()).await));
        assert!(stop.is_set() && is_interrupted(stop.check()));
        // Also where it was set before anybody waited.
        stop.wait().await;
        assert_eq!(stop.interruptible(async { Ok(3) }).await.unwrap(), 3);
    }

    #[tokio::test]
    async fn a_thread_that_blocks_is_not_waited_for() {
        let stop = Stop::default();
        let (release, released) = mpsc::channel::<()>();
        let (told, ended) = mpsc::channel();
        let begun = stop.clone();
        let work = move || {
            begun.set();
            let _ = released.recv();
            told.send(()).unwrap();
            Ok(())
        };
        assert!(is_interrupted(stop.apart(work).await));
        drop(release);
        ended.recv().unwrap();
        assert!(is_interrupted(stop.apart(|| Ok(())).await), "nothing is begun any more");
    }
}
