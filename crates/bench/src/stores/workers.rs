//! The workers that send the operations of a window: tasks of the runtime, or threads.
//!
//! Requests to a server are sent by tasks, which wait for its answers side by side in one thread. A store
//! in this process does its work on the thread of its caller, and programs call it from as many threads
//! as they want work done at once; so its workers are threads. Each has a runtime of its own, and the
//! store may block it ([`blocking`]). Threads are started before a window begins, and stay for the next
//! one.

use std::{
    pin::Pin,
    sync::{Arc, Barrier, mpsc},
    thread,
};

use tokio::{runtime, sync::mpsc as results, task::JoinSet};

use super::load_loop::Window;
use crate::{Result, stop::Stop, store::blocking};

/// The workers of a phase.
pub(super) struct Workers {
    count: usize,
    /// Where each takes its work from; none where they are tasks.
    threads: Vec<mpsc::Sender<Job>>,
    /// Set where the run is to end.
    pub ended: Stop,
}

/// What one worker does in a window, and where what it came to is awaited.
struct Job {
    work: Pin<Box<dyn Future<Output = Result<Window>> + Send>>,
    done: results::UnboundedSender<Result<Window>>,
}

impl Workers {
    /// So many workers, as tasks of the runtime.
    pub(super) fn tasks(count: usize) -> Workers {
        Workers { count, threads: Vec::new(), ended: Stop::default() }
    }

    /// So many workers, each a thread.
    ///
    /// # Errors
    /// Where the system gives no more threads or files.
    pub(super) fn threads(count: usize) -> Result<Workers> {
        let ready = Arc::new(Barrier::new(count + 1));
        let threads = Vec::with_capacity(count);
        let mut workers = Workers { count, threads, ended: Stop::default() };
        for _ in 0..count {
            let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
            let (jobs, mine) = mpsc::channel();
            let ready = Arc::clone(&ready);
            let worker = thread::Builder::new().name("bench worker".into());
            worker.spawn(move || {
                ready.wait();
                for Job { work, done } in mine {
                    // The receiver is gone where the run was ended.
                    let _ = done.send(runtime.block_on(blocking(work)));
                }
            })?;
            workers.threads.push(jobs);
        }
        ready.wait();
        Ok(workers)
    }

    /// How many workers there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Has every worker do its part of a window, and adds up the results. One task that is `alone` waits
    /// for each answer in the thread: nothing else needs the thread, and the load generators of the
    /// databases wait in the same way.
    ///
    /// # Errors
    /// Those of the work.
    pub(super) async fn run<F>(&self, alone: bool, work: impl Fn(usize) -> F) -> Result<Window>
    where
        F: Future<Output = Result<Window>> + Send + 'static,
    {
        let mut all: Option<Window> = None;
        let mut add = |window: Window| match &mut all {
            None => all = Some(window),
            Some(all) => all.add(window),
        };
        if self.threads.is_empty() {
            let mut tasks = JoinSet::new();
            for work in (0..self.count).map(work) {
                match alone && self.count == 1 {
                    true => tasks.spawn(blocking(work)),
                    false => tasks.spawn(work),
                };
            }
            while let Some(done) = tasks.join_next().await {
                // A worker that panics is a bug, and to be seen.
                add(done.expect("a worker ends in good order")?);
            }
            return Ok(all.unwrap_or_default());
        }
        let (done, mut windows) = results::unbounded_channel();
        for (worker, jobs) in self.threads.iter().enumerate() {
            let job = Job { work: Box::pin(work(worker)), done: done.clone() };
            assert!(jobs.send(job).is_ok(), "a worker ends in good order");
        }
        for _ in 0..self.count {
            add(windows.recv().await.expect("a worker ends in good order")?);
        }
        Ok(all.unwrap_or_default())
    }
}
