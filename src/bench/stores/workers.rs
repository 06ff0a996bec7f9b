//! Who sends the operations of a window: tasks of the runtime, or threads.
//!
//! A server is asked by tasks, which wait for its answers side by side in one thread. A store in this
//! process does its work on the thread of its caller, and its users call it from as many threads as
//! they want work done at once; so its workers are threads. Each has a runtime of its own, and may be
//! kept waiting by the store ([`blocking`]). They are there before a window begins, and stay for the
//! next one.

use std::{
    pin::Pin,
    sync::{Arc, Barrier, atomic::AtomicBool, mpsc},
    thread,
};

use tokio::{runtime, sync::mpsc as results, task::JoinSet};

use super::drive::Window;
use crate::{Result, store::blocking};

/// The workers of a phase.
pub(super) struct Crew {
    workers: usize,
    /// Where each takes its work from; none where they are tasks.
    threads: Vec<mpsc::Sender<Job>>,
    /// Set where the run is to end.
    pub ended: Arc<AtomicBool>,
}

/// What one worker does in a window, and where what it came to is awaited.
struct Job {
    work: Pin<Box<dyn Future<Output = Result<Window>> + Send>>,
    done: results::UnboundedSender<Result<Window>>,
}

impl Crew {
    /// So many workers, as tasks of the runtime.
    pub fn of_tasks(workers: usize) -> Crew {
        Crew { workers, threads: Vec::new(), ended: Arc::default() }
    }

    /// So many workers, each a thread.
    ///
    /// # Errors
    /// Where the system gives no more threads or files.
    pub fn of_threads(workers: usize) -> Result<Crew> {
        let ready = Arc::new(Barrier::new(workers + 1));
        let threads = Vec::with_capacity(workers);
        let mut crew = Crew { workers, threads, ended: Arc::default() };
        for _ in 0..workers {
            let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
            let (jobs, mine) = mpsc::channel();
            let ready = Arc::clone(&ready);
            let worker = thread::Builder::new().name("bench worker".into());
            worker.spawn(move || {
                ready.wait();
                for Job { work, done } in mine {
                    // Nobody waits for it any more where the run was ended.
                    let _ = done.send(runtime.block_on(blocking(work)));
                }
            })?;
            crew.threads.push(jobs);
        }
        ready.wait();
        Ok(crew)
    }

    /// How many workers there are.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Lets every worker do its part of a window, and adds up what they came to. One task that is
    /// `alone` waits for each answer in the thread: nobody else wants it, and the load generators of
    /// the databases wait so, too.
    ///
    /// # Errors
    /// Those of the work.
    pub async fn work<F>(&self, alone: bool, work: impl Fn(usize) -> F) -> Result<Window>
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
            for work in (0..self.workers).map(work) {
                match alone && self.workers == 1 {
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
        for _ in 0..self.workers {
            add(windows.recv().await.expect("a worker ends in good order")?);
        }
        Ok(all.unwrap_or_default())
    }
}
