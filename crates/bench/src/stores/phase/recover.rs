//! `do = "recover"`: a crash. The server is killed in the middle of writes and started again on its data.
//! For a store in this process, a process of its own that writes to it is killed (`writer.rs`), and the
//! store opened again.
//!
//! This is a crash of the process, not of the machine: what the process had handed to the system is still
//! there, synced or not. So all tiers but t0 and some of t2 have to keep all of it. Lost records are
//! counted. A record that is there with other contents fails the run, whatever the tier.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio::{sync::Notify, task::JoinSet};

use super::{
    super::{
        data::Records,
        draws::keys,
        expected::Expected,
        turn::{Done, Turn},
        writer,
    },
    Info, Kind,
    load::{BATCH, Way},
};
use crate::{
    Error, ErrorKind, Result,
    results::Recovery,
    schedule::Limit,
    store::{self, Key, Row, Store},
    workload::Phase,
};

pub(super) const INFO: Info = Info {
    name: "recover",
    about: "kills the private server (SIGKILL) in the middle of writes, after `count` acknowledged ones \
            (default 1,000), and starts it again: seconds until it answers, and what it lost. For SQLite and \
            folders, a process that writes to them is killed",
    options: &[],
    example: "",
    read: |_| Ok(Arc::new(Recover)),
};

#[derive(Debug)]
struct Recover;

#[async_trait(?Send)]
impl Kind for Recover {
    fn about(&self) -> String {
        "The server killed (SIGKILL) in the middle of writes and started again, until it answers a client"
            .into()
    }

    fn unit(&self) -> &'static str {
        "restarts"
    }

    /// It writes records of its own.
    fn needs<'a>(&'a self, _: &'a str) -> Vec<&'a str> {
        Vec::new()
    }

    fn units(&self, _: u64, _: &Expected) -> Option<u64> {
        Some(1)
    }

    async fn run(&self, turn: &mut Turn<'_>, phase: &Phase, _: &Expected) -> Result<Done> {
        turn.recover(phase).await
    }
}

/// Writes that are acknowledged before the kill, where the phase does not say.
const USUAL: u64 = 1_000;
/// Writes that are on their way at once.
const WRITERS: u64 = 4;
/// How long a client tries to get an answer again.
const PATIENCE: u64 = 120_000_000_000;

/// What is killed.
enum Killed {
    /// The private server.
    Server,
    /// A process of this program that writes to a store without a server.
    Writer(PathBuf),
}

/// The rows that were sent, and the keys of those whose writes were acknowledged.
type Sent = (Vec<Row>, Vec<Key>);

/// The same while it goes on.
#[derive(Default)]
struct Sending {
    sent: Mutex<Vec<Row>>,
    acknowledged: Mutex<Vec<Key>>,
    enough: Notify,
    left: AtomicU64,
}

impl Sending {
    /// Writes rows one after another until one fails.
    async fn write(&self, store: &dyn Store, mut row: impl FnMut() -> Result<Row>) -> Result<()> {
        loop {
            let row = row()?;
            lock(&self.sent).push(row.clone());
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

impl Turn<'_> {
    async fn recover(&mut self, phase: &Phase) -> Result<Done> {
        let killed = self.killed()?;
        if !self.there.contains_key(&phase.table) {
            self.make(phase).await?;
        }
        let there = self.there.get(&phase.table).copied().unwrap_or(0);
        let (sent, acknowledged) = match &killed {
            Killed::Server => self.interrupted(phase).await?,
            Killed::Writer(program) => self.writer_killed(phase, program).await?,
        };
        let before = self.before();
        if let Some(server) = self.opened.as_mut().and_then(|opened| opened.server.as_mut()) {
            server.restart()?;
        }
        self.answers(phase).await?;
        let done = self.after(before, 1);
        let store = Arc::clone(self.table(&phase.table)?);
        let all = keys(&sent);
        let found = found(&*store, &acknowledged).await?;
        let earlier = there - self.left(phase, &*store, there, &all).await?;
        self.survived(&phase.table, &sent, BATCH).await?;
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

    /// What can be killed.
    fn killed(&self) -> Result<Killed> {
        let why = match (self.server(), &self.program) {
            (Some(_), _) => return Ok(Killed::Server),
            _ if self.own => "a store of your own is not made to crash",
            _ if self.url.starts_with("memory:") => "it is in the memory of this process only",
            (None, Some(program)) => return Ok(Killed::Writer(program.clone())),
            (None, None) => "there is no program that could write to it and be killed",
        };
        Err(Error::unsupported(why))
    }

    /// Has another process write until enough is acknowledged, and kills it while more is on its way.
    /// This one has closed the store meanwhile.
    async fn writer_killed(&mut self, phase: &Phase, program: &Path) -> Result<Sent> {
        self.tables.clear();
        if let Some(opened) = &mut self.opened {
            opened.place = store::open("memory:").await?;
        }
        let (records, first) = self.further(phase)?;
        let rows = (first..).map(|n| records.row(n));
        let name = self.names.get(&phase.table).map_or(&*phase.table, String::as_str);
        writer::killed(program, (&self.url, name), rows, (wanted(phase), &self.ended))
    }

    /// The records of a table, and the number of the first that is not in it.
    fn further(&self, phase: &Phase) -> Result<(&Records, u64)> {
        let records = self.records(&phase.table)?;
        Ok((records, records.count + self.grown.get(&phase.table).copied().unwrap_or(0)))
    }

    /// Writes until enough is acknowledged, and kills the server while more is on its way.
    async fn interrupted(&mut self, phase: &Phase) -> Result<Sent> {
        let store = Arc::clone(self.table(&phase.table)?);
        let (records, first) = self.further(phase)?;
        let sent = Arc::new(Sending { left: AtomicU64::new(wanted(phase)), ..Sending::default() });
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
        Ok((lock(&sent.sent).clone(), lock(&sent.acknowledged).clone()))
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

/// How many writes are to be acknowledged before.
fn wanted(phase: &Phase) -> u64 {
    match phase.limit {
        Some(Limit::Count(n)) => n,
        Some(Limit::Seconds(_)) | None => USUAL,
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
