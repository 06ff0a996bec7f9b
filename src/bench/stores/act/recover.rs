//! A crash of the server: it is killed in the middle of writes and started again on its data.
//!
//! What is tried is a crash of the process, not of the machine: what the process had handed to the
//! system is still there, synced or not. So all tiers but t0 and some of t2 have to keep all of it.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{sync::Notify, task::JoinSet};

use super::{Bout, Done};
use crate::{
    Error, ErrorKind, Result,
    bench::{
        results::Recovery,
        schedule::Limit,
        workload::{Phase, Way},
    },
    store::{Key, Row, Store},
};

/// Writes that are acknowledged before the server is killed, where the phase does not say.
const USUAL: u64 = 1_000;
/// Writes that are on their way at once.
const WRITERS: u64 = 4;
/// How long a client tries to be answered again.
const PATIENCE: u64 = 120_000_000_000;
/// Keys that are asked for at once.
const BATCH: usize = 1_000;

/// The keys that were sent, and those whose writes were acknowledged.
#[derive(Default)]
struct Sent {
    sent: Mutex<Vec<Key>>,
    acknowledged: Mutex<Vec<Key>>,
    enough: Notify,
    left: AtomicU64,
}

impl Sent {
    /// Writes rows one after another until one fails.
    async fn write(&self, store: &dyn Store, mut row: impl FnMut() -> Result<Row>) -> Result<()> {
        loop {
            let row = row()?;
            lock(&self.sent).push(row.key.clone());
            store.put(std::slice::from_ref(&row)).await?;
            lock(&self.acknowledged).push(row.key);
            if self.left.fetch_sub(1, Relaxed) == 1 {
                self.enough.notify_one();
            }
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Bout<'_> {
    pub(super) async fn recover(&mut self, phase: &Phase) -> Result<Done> {
        if self.server().is_none() {
            let why = match self.opened.is_some() && self.folder.is_none() {
                true => "a server of your own is not killed",
                false => "it runs in this process, and ends with it: there is no server to kill",
            };
            return Err(Error::unsupported(why));
        }
        if !self.there.contains_key(&phase.table) {
            self.make(phase).await?;
        }
        let there = self.there.get(&phase.table).copied().unwrap_or(0);
        let sent = self.interrupted(phase).await?;
        let before = self.before();
        if let Some(server) = self.opened.as_mut().and_then(|opened| opened.server.as_mut()) {
            server.restart()?;
        }
        self.answers(phase).await?;
        let done = self.after(before, 1);
        let store = Arc::clone(self.table(&phase.table)?);
        let (all, acknowledged) = (lock(&sent.sent).clone(), lock(&sent.acknowledged).clone());
        let found = found(&*store, &acknowledged).await?;
        let earlier = there - self.left(phase, &*store, there, &all).await?;
        // What came after the load is taken out again, for the phases that follow.
        store.remove(&all).await?;
        if earlier > 0 {
            store.drop_table().await?;
            self.prepared.remove(&phase.table);
            self.load(phase, Way::Bulk, BATCH).await?;
        }
        let recovery = Recovery {
            acknowledged: acknowledged.len() as u64,
            lost: acknowledged.len() as u64 - found,
            earlier: there,
            earlier_lost: earlier,
        };
        // The processor time of a server is counted from its start, as that of its group is not.
        Ok(Done { recovery: Some(recovery), server: None, ..done })
    }

    /// Writes until enough is acknowledged, and kills the server while more is on its way.
    async fn interrupted(&mut self, phase: &Phase) -> Result<Arc<Sent>> {
        let (store, records) = (Arc::clone(self.table(&phase.table)?), self.records(&phase.table)?);
        let wanted = match phase.limit {
            Some(Limit::Count(n)) => n,
            Some(Limit::Seconds(_)) | None => USUAL,
        };
        let sent = Arc::new(Sent { left: AtomicU64::new(wanted), ..Sent::default() });
        let first = records.count + self.grown.get(&phase.table).copied().unwrap_or(0);
        let mut writers = JoinSet::new();
        for writer in 0..WRITERS {
            let (store, sent, records) = (Arc::clone(&store), Arc::clone(&sent), records.clone());
            let mut n = first + writer;
            writers.spawn(async move {
                let row = || {
                    let row = records.row(n);
                    n += WRITERS;
                    row
                };
                sent.write(&*store, row).await
            });
        }
        tokio::select! {
            () = sent.enough.notified() => {}
            Some(ended) = writers.join_next() => {
                // Nobody has killed it yet.
                ended.map_err(|e| Error::unavailable(e.to_string()))??;
            }
        }
        if let Some(server) = self.opened.as_mut().and_then(|opened| opened.server.as_mut()) {
            server.kill();
        }
        writers.shutdown().await;
        Ok(sent)
    }

    /// Waits until a client that connects anew is answered.
    async fn answers(&mut self, phase: &Phase) -> Result<()> {
        let key = self.records(&phase.table)?.key(0)?;
        let begin = self.clock.now();
        loop {
            let answered = match self.reopen().await {
                Ok(()) => self.table(&phase.table)?.get(std::slice::from_ref(&key)).await.map(drop),
                Err(e) => Err(e),
            };
            match answered {
                Ok(()) => return Ok(()),
                // That a table is gone is an answer, too.
                Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
                Err(e) if self.clock.now() - begin > PATIENCE => return Err(e),
                Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        }
    }

    /// How many records of before the writes are left: counted, or read where the store cannot count.
    async fn left(
        &self,
        phase: &Phase,
        store: &dyn Store,
        there: u64,
        sent: &[Key],
    ) -> Result<u64> {
        match store.count().await {
            Ok(count) => Ok(count.saturating_sub(found(store, sent).await?).min(there)),
            Err(_) => {
                let records = self.records(&phase.table)?;
                let keys: Vec<Key> =
                    (0..records.count).map(|n| records.key(n)).collect::<Result<_>>()?;
                Ok(found(store, &keys).await?.min(there))
            }
        }
    }
}

/// How many of these keys are there.
async fn found(store: &dyn Store, keys: &[Key]) -> Result<u64> {
    let mut found = 0;
    for keys in keys.chunks(BATCH) {
        found += store.get(keys).await?.iter().flatten().count() as u64;
    }
    Ok(found)
}
