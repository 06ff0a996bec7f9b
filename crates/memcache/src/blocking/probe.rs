//! Looks after servers that are dead, on a thread that lives as long as there are any.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Instant,
};

use super::{
    Shared, admin,
    connection::{Connection, Deadline, Until},
    pool::wait_until,
};
use crate::{failure::Failure, statistics::add};

/// Whether the thread runs.
#[derive(Default)]
pub(super) struct Prober(AtomicBool);

/// Sees to it that the dead are probed.
#[cold]
pub(super) fn look_after(shared: &Arc<Shared>) {
    if shared.prober.0.swap(true, Ordering::SeqCst) {
        return;
    }
    let (weak, stop) = (Arc::downgrade(shared), shared.stop.clone());
    let started = thread::Builder::new().name("memcache-probe".into()).spawn(move || {
        while let Some(next) = round(&weak) {
            if wait_until(&stop, next) {
                return;
            }
        }
    });
    if started.is_err() {
        // No thread to be had now; the next failure tries again.
        shared.prober.0.store(false, Ordering::SeqCst);
    }
}

/// Probes who is due, and says when the next one is; none where all are alive.
fn round(shared: &Weak<Shared>) -> Option<Instant> {
    let shared = shared.upgrade()?;
    let cluster = &shared.cluster;
    for (at, node) in cluster.nodes.iter().enumerate() {
        if node.health.probe_at().is_none_or(|due| due > Instant::now()) {
            continue;
        }
        match probe(&shared, at) {
            Ok(()) => cluster.note_answer(at),
            Err(_) => {
                node.health.failed(Instant::now());
            }
        }
    }
    let next = || cluster.nodes.iter().filter_map(|node| node.health.probe_at()).min();
    if let Some(next) = next() {
        return Some(next);
    }
    shared.prober.0.store(false, Ordering::SeqCst);
    // One may have died since it was looked at, and have found the thread running.
    let next = next()?;
    (!shared.prober.0.swap(true, Ordering::SeqCst)).then_some(next)
}

/// Asks a server for its version, on a new connection.
fn probe(shared: &Shared, at: usize) -> Result<(), Failure> {
    let (cluster, pool) = (&shared.cluster, &shared.pools[at]);
    let node = &cluster.nodes[at];
    // It may have moved.
    let _ = pool.look_up(&node.server.address);
    let limit = cluster.options.timeout;
    let deadline = Deadline::new(limit);
    let connect = cluster.options.connect_timeout;
    let mut connection = Connection::open(&pool.addresses(), connect, limit, &deadline)?;
    add(&cluster.counters.connections, 1);
    let mut version = String::new();
    connection.run(&mut admin::version(&mut version), deadline, Until::Answered)?;
    if cluster.options.dialect.is_none() {
        node.set_dialect(Some(admin::dialect(&version)));
    }
    Ok(())
}
