//! Reads the source on a thread of its own, so that a store need not wait for it.
//!
//! If a run fails while it reads a file, the reader is not joined: it may block for hours on a pipe that delivers
//! nothing. A reader of a store is joined, because a store answers or times out.

use std::{
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread::JoinHandle,
};

use super::{
    batch::{Batch, Spare},
    convert::Converted,
    place::{Reader, Resumed, Source},
};
use crate::{Error, ErrorKind, Result};

/// A batch, and the way back for what comes of it.
pub(super) type Job = (Batch, mpsc::SyncSender<Converted>);
/// What will come of a batch, or why there is none.
pub(super) type Awaited = Result<mpsc::Receiver<Converted>>;

/// A reader at work.
pub(super) struct Reading {
    /// Where batches go to the workers; none when it is closed.
    door: Arc<Mutex<Option<mpsc::SyncSender<Job>>>>,
    thread: JoinHandle<()>,
    from_store: bool,
}

impl Reading {
    /// Reads `source` from where the marks tell, or again from its beginning, so many batches
    /// ahead. What comes of the batches is to be awaited in the order of the second channel.
    pub(super) fn start(
        source: Source,
        resumed: Resumed,
        ahead: usize,
        spare: Arc<Spare>,
    ) -> (Reading, mpsc::Receiver<Job>, mpsc::Receiver<Awaited>) {
        let (jobs_in, jobs) = mpsc::sync_channel(ahead);
        let (order_in, order) = mpsc::sync_channel(ahead);
        let door = Arc::new(Mutex::new(Some(jobs_in)));
        let from_store = matches!(source, Source::Store(_));
        let way = door.clone();
        let thread = std::thread::spawn(move || {
            let mut source = source;
            let read = read(&mut source, resumed, &spare, &order_in, &way);
            // Nobody hears it where the run has ended.
            let _ = read.map_err(|e| order_in.send(Err(e)));
            close(&way);
        });
        (Reading { door, thread, from_store }, jobs, order)
    }

    /// No more batches: the workers come to their end.
    pub(super) fn close(&self) {
        close(&self.door);
    }

    /// Waits for the reader's end, where that is sure to come, and gives back how the run ended.
    pub(super) fn end(self, ended: Result<()>) -> Result<()> {
        if ended.is_err() && !self.from_store {
            return ended;
        }
        let joined = self.thread.join();
        ended?;
        joined.map_err(|_| {
            let what = "the reader ended early; this is a bug in steelyard";
            Error::new(ErrorKind::Mismatch, what)
        })
    }
}

fn close(door: &Mutex<Option<mpsc::SyncSender<Job>>>) {
    *door.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// Until the source is at its end, or nobody takes any more.
fn read(
    source: &mut Source,
    resumed: Resumed,
    spare: &Spare,
    order: &mpsc::SyncSender<Awaited>,
    door: &Mutex<Option<mpsc::SyncSender<Job>>>,
) -> Result<()> {
    let mut reader = Reader::new(source, resumed)?;
    while let Some(batch) = reader.next(spare)? {
        let (back, result) = mpsc::sync_channel(1);
        let jobs = door.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(jobs) = jobs else { break };
        if order.send(Ok(result)).is_err() || jobs.send((batch, back)).is_err() {
            break;
        }
    }
    Ok(())
}
