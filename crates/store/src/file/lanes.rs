//! Runs work in several threads and returns the results in order.
//!
//! Jobs go to the threads in turn, each over a channel of its own, and results are taken from
//! them in the same turn: order costs nothing, and full channels hold whoever is too fast. The
//! end is a message of its own, so that a thread that died is not mistaken for it.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

use crate::{Error, ErrorKind, Result};

/// How many jobs or results may wait in a lane.
const WAITING: usize = 1;

/// What a thread does with a job. Each thread has a worker of its own.
pub(super) trait Work: Send + 'static {
    type Job: Send;
    fn run(&mut self, job: Self::Job) -> Result<Vec<u8>>;
}

/// What comes out of a lane.
enum Message {
    Block(Vec<u8>),
    Failed(Error),
    End,
}

enum Job<J> {
    Work(J),
    /// A result already: it only keeps its turn.
    Pass(Message),
}

/// Where jobs are given out.
pub(super) struct Feeder<W: Work> {
    /// How many lanes there are.
    lanes: usize,
    /// One for each lane, until there are threads: then they hold them, so that a lane whose
    /// thread has died is closed.
    results: Vec<SyncSender<Message>>,
    /// One for each lane, once there was a job for them.
    jobs: Vec<SyncSender<Job<W::Job>>>,
    make: Box<dyn Fn() -> Result<W> + Send>,
    turn: usize,
}

/// Where results are taken, in order.
pub(super) struct Results {
    lanes: Vec<Receiver<Message>>,
    turn: usize,
    ended: bool,
}

/// The receiving end is gone: nobody wants the rest.
#[derive(Debug)]
pub(super) struct Unwanted;

/// Lanes for up to `threads` threads, which begin with the first job.
pub(super) fn lanes<W: Work>(
    threads: usize,
    make: impl Fn() -> Result<W> + Send + 'static,
) -> (Feeder<W>, Results) {
    let (results, receivers) = (0..threads.max(1)).map(|_| sync_channel(WAITING)).unzip();
    (
        Feeder { lanes: threads.max(1), results, jobs: Vec::new(), make: Box::new(make), turn: 0 },
        Results { lanes: receivers, turn: 0, ended: false },
    )
}

impl<W: Work> Feeder<W> {
    /// Gives out a job.
    pub(super) fn work(&mut self, job: W::Job) -> Result<(), Unwanted> {
        if self.jobs.is_empty()
            && let Err(e) = self.start()
        {
            self.jobs.clear();
            return self.send(Job::Pass(Message::Failed(e)));
        }
        self.send(Job::Work(job))
    }

    /// Passes a result on in its turn.
    pub(super) fn pass(&mut self, block: Vec<u8>) -> Result<(), Unwanted> {
        self.send(Job::Pass(Message::Block(block)))
    }

    /// Ends it all: with this error, or well.
    pub(super) fn end(mut self, end: Result<()>) -> Result<(), Unwanted> {
        self.send(Job::Pass(match end {
            Ok(()) => Message::End,
            Err(e) => Message::Failed(e),
        }))
    }

    fn send(&mut self, job: Job<W::Job>) -> Result<(), Unwanted> {
        let lane = self.turn;
        self.turn = (self.turn + 1) % self.lanes;
        match (self.jobs.get(lane), job) {
            (Some(jobs), job) => jobs.send(job).map_err(|_| Unwanted),
            // No thread was needed yet.
            (None, Job::Pass(message)) => self.results[lane].send(message).map_err(|_| Unwanted),
            (None, Job::Work(_)) => Err(Unwanted),
        }
    }

    fn start(&mut self) -> Result<()> {
        for results in &self.results {
            let (sender, jobs) = sync_channel::<Job<W::Job>>(WAITING);
            let (mut worker, results) = ((self.make)()?, results.clone());
            thread::Builder::new().name("packing".into()).spawn(move || {
                for job in jobs {
                    let result = match job {
                        Job::Pass(message) => message,
                        Job::Work(job) => match worker.run(job) {
                            Ok(block) => Message::Block(block),
                            Err(e) => Message::Failed(e),
                        },
                    };
                    if results.send(result).is_err() {
                        return;
                    }
                }
            })?;
            self.jobs.push(sender);
        }
        self.results.clear();
        Ok(())
    }
}

impl Results {
    /// The next result; `None` after the last.
    pub(super) fn next(&mut self) -> Result<Option<Vec<u8>>> {
        if self.ended {
            return Ok(None);
        }
        let lane = self.turn;
        self.turn = (self.turn + 1) % self.lanes.len();
        match self.lanes[lane].recv() {
            Ok(Message::Block(block)) => return Ok(Some(block)),
            Ok(Message::End) => self.ended = true,
            Ok(Message::Failed(e)) => {
                self.ended = true;
                return Err(e);
            }
            Err(_) => {
                self.ended = true;
                return Err(Error::new(ErrorKind::Io, "a packing thread ended before its work"));
            }
        }
        Ok(None)
    }
}

/// Buffers that were used and can be used again.
#[derive(Clone, Default)]
pub(super) struct Stash(Arc<Mutex<Vec<Vec<u8>>>>);

impl Stash {
    /// An empty buffer.
    pub(super) fn take(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Gives a buffer back.
    pub(super) fn give(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Slow(u8);

    impl Work for Slow {
        type Job = u8;
        fn run(&mut self, job: u8) -> Result<Vec<u8>> {
            // Some jobs take longer than those after them.
            (0..u32::from(job % 7) * 20_000).for_each(|n| {
                std::hint::black_box(n);
            });
            match job {
                200 => Err(Error::invalid("200")),
                201 => panic!("on purpose"),
                _ => Ok(vec![job; usize::from(self.0)]),
            }
        }
    }

    #[test]
    fn results_come_in_the_order_of_jobs() {
        for threads in [0, 1, 2, 5] {
            let (mut feeder, mut results) = lanes(threads, || Ok(Slow(2)));
            let fed = thread::spawn(move || {
                for n in 0..3 {
                    feeder.pass(vec![n, n]).unwrap();
                }
                for n in 3..60 {
                    match n % 5 {
                        0 => feeder.pass(vec![n, n]).unwrap(),
                        _ => feeder.work(n).unwrap(),
                    }
                }
                feeder.end(Ok(())).unwrap();
            });
            for n in 0..60 {
                assert_eq!(results.next().unwrap().unwrap(), [n, n]);
            }
            assert!(results.next().unwrap().is_none());
            assert!(results.next().unwrap().is_none());
            fed.join().unwrap();
        }
    }

    #[test]
    fn errors_keep_their_turn_and_lost_threads_are_errors() {
        for bad in [200, 201] {
            let (mut feeder, mut results) = lanes(3, || Ok(Slow(1)));
            for n in [1, bad, 2] {
                feeder.work(n).unwrap();
            }
            assert_eq!(results.next().unwrap().unwrap(), [1]);
            assert!(results.next().is_err());
            assert!(results.next().unwrap().is_none());
        }
        let (feeder, mut results) = lanes(2, || Ok(Slow(1)));
        drop(feeder);
        assert!(results.next().is_err());
        let (mut feeder, results) = lanes(2, || Ok(Slow(1)));
        drop(results);
        assert!(feeder.pass(vec![]).is_err());
    }
}
