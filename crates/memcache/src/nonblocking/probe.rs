//! Looks after servers that are dead, in a task that lives as long as there are any.

use std::sync::{
    Arc, Weak,
    atomic::{AtomicBool, Ordering},
};

use tokio::time::{Instant, sleep_until};

use super::{
    Shared, admin,
    connection::{Deadline, Until},
};
use crate::failure::Failure;

/// Whether the task runs.
#[derive(Default)]
pub(super) struct Prober(AtomicBool);

/// The task has ended, however it ended: also with its runtime.
struct Running(Weak<Shared>);

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(shared) = self.0.upgrade() {
            shared.prober.0.store(false, Ordering::SeqCst);
        }
    }
}

/// Sees to it that the dead are probed.
#[cold]
pub(super) fn look_after(shared: &Arc<Shared>) {
    if shared.prober.0.swap(true, Ordering::SeqCst) {
        return;
    }
    let running = Running(Arc::downgrade(shared));
    tokio::spawn(async move {
        while let Some(next) = round(&running.0).await {
            sleep_until(next).await;
        }
    });
}

/// Probes who is due, side by side, and says when the next one is; none where all are alive.
async fn round(shared: &Weak<Shared>) -> Option<Instant> {
    let shared = shared.upgrade()?;
    let nodes = &shared.cluster.nodes;
    let now = std::time::Instant::now();
    let due = |at: &usize| nodes[*at].health.probe_at().is_some_and(|due| due <= now);
    let probes = (0..nodes.len()).filter(due).map(|at| {
        let shared = &shared;
        async move {
            match probe(shared, at).await {
                Ok(()) => shared.cluster.note_answer(at),
                Err(_) => {
                    nodes[at].health.failed(std::time::Instant::now());
                }
            }
        }
    });
    futures_util::future::join_all(probes).await;
    let next = || nodes.iter().filter_map(|node| node.health.probe_at()).min();
    if let Some(next) = next() {
        return Some(next.into());
    }
    shared.prober.0.store(false, Ordering::SeqCst);
    // One may have died since it was looked at, and have found the task running.
    let next = next()?;
    (!shared.prober.0.swap(true, Ordering::SeqCst)).then(|| next.into())
}

/// Asks a server for its version, on a new connection.
async fn probe(shared: &Shared, at: usize) -> Result<(), Failure> {
    let cluster = &shared.cluster;
    let deadline = Deadline::new(cluster.options.timeout);
    let mut connection = shared.open(at, &deadline).await?;
    let mut version = String::new();
    let mut ask = admin::version(&mut version);
    connection.run(&mut ask, deadline, Until::Answered).await?;
    drop(ask);
    if cluster.options.dialect.is_none() {
        cluster.nodes[at].set_dialect(Some(admin::dialect(&version)));
    }
    Ok(())
}
