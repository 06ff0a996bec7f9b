//! Checks of each client before anything is timed: every row runs once and its counts are verified; which servers its
//! keys go to; how many system calls each row costs.

use super::{
    peer::Peer,
    protocol::Task,
    rows::{Row, STORED, keys},
    session::{Ask, Client, Shared, checked},
};
use crate::{
    Error, ErrorKind, Result,
    cache::protocol::Hello,
    results::{CacheClient, Phase, Proof},
    strace::{Watch, call},
};

/// Calls whose system calls are counted, twice as many the second time; where nothing is waited for
/// more, as many are sent at once.
const COUNTED: (u64, u64) = (120, 2400);

/// Does every row once. A row that the client cannot do is left out for it, with its reason; wrong
/// counts or values end the run.
pub(super) fn rows(client: &mut Client<'_>, hello: &Hello, phases: &[Phase]) -> Result<Proof> {
    let mut proof = Proof::default();
    for phase in phases {
        let ask = client.shared.asks[&phase.id].clone();
        let place = |e: Error| e.in_place(format!("{}, {}, proof", client.name, phase.id));
        let refused = match cannot(hello, &ask) {
            Some(why) => Some(why),
            None => {
                // At once, whatever the rate is.
                let ask = Ask { rate: None, ..ask.clone() };
                let operations = ask.row.steps() * u64::from(ask.connections.max(1));
                let task = client.shared.task_of(&ask, operations);
                match checked(&mut *client.peer, &task, ask.row) {
                    Ok(_) => None,
                    Err(e) if e.kind() == ErrorKind::Mismatch => return Err(place(e)),
                    Err(e) => Some(format!("failed: {e}")),
                }
            }
        };
        match refused {
            Some(why) => {
                client.refused.insert(phase.id.clone(), why);
            }
            None => {
                proof.records += STORED as u64;
                proof.of += STORED as u64;
                proof.equal += STORED as u64;
            }
        }
    }
    Ok(proof)
}

/// Why a row is not for a client, by what it says of itself.
fn cannot(hello: &Hello, ask: &Ask) -> Option<String> {
    let most = hello.connections;
    if ask.object && hello.serializer.is_empty() {
        Some("it has nothing that turns objects into bytes".into())
    } else if ask.row == Row::Noblock && !hello.noblock {
        Some("it has no writes that are not waited for".into())
    } else if ask.rate.is_some() && !hello.open {
        Some("its adapter sends nothing at planned moments".into())
    } else if most > 0 && ask.connections > most {
        Some(format!("it has {most} connections at most"))
    } else {
        None
    }
}

/// Which servers have its keys, and of which it asks them.
pub(super) fn spread(peer: &mut dyn Peer, shared: &Shared, told: &mut CacheClient) -> Result<()> {
    let servers = shared.servers.borrow();
    if servers.own {
        // Others may be using them.
        return Ok(());
    }
    let ask = |row| {
        let ask = Ask { row, object: false, value: 0, connections: 1, rate: None };
        shared.task_of(&ask, row.steps())
    };
    servers.empty()?;
    checked(peer, &ask(Row::Set), Row::Set)?;
    told.stored = servers.holding(&keys()[..STORED])?;
    // What comes before and after a window is the same in both.
    let mut reads = |times: u64| -> Result<Vec<u64>> {
        let before = asked(&servers)?;
        checked(peer, &Task { operations: times, ..ask(Row::Multiget) }, Row::Multiget)?;
        Ok(differences(&asked(&servers)?, &before))
    };
    // The first one may make connections.
    reads(1)?;
    let (once, twice) = (reads(1)?, reads(2)?);
    told.asked = differences(&twice, &once);
    Ok(())
}

fn differences(more: &[u64], less: &[u64]) -> Vec<u64> {
    more.iter().zip(less).map(|(more, less)| more.saturating_sub(*less)).collect()
}

fn asked(servers: &super::servers::Servers) -> Result<Vec<u64>> {
    let (hits, misses) = (servers.statistic("get_hits")?, servers.statistic("get_misses")?);
    Ok(hits.iter().zip(&misses).map(|(hits, misses)| hits + misses).collect())
}

/// Counts the system calls of each row: the difference of two tasks, so that what comes before and
/// after a window is not in it.
pub(super) fn system_calls(client: &mut Client<'_>, phases: &[Phase]) -> Result<()> {
    let Some(process) = client.peer.process() else {
        return Err(Error::unsupported("it is no process of its own"));
    };
    let mut watch = Watch::begin(&[process], "all")?;
    let least = phases.iter().map(|p| p.concurrency).min().unwrap_or(1);
    for phase in phases.iter().filter(|p| p.concurrency == least) {
        if client.refused.contains_key(&phase.id) {
            continue;
        }
        let ask = Ask { rate: None, ..client.shared.asks[&phase.id].clone() };
        let once = if ask.row == Row::Noblock { COUNTED.1 } else { COUNTED.0 };
        let mut count = |operations: u64| -> Result<u64> {
            let task = client.shared.task_of(&ask, operations);
            // Its answer is one write: nothing but counts in it.
            let task = Task { latency: false, ..task };
            checked(&mut *client.peer, &task, ask.row)?;
            let mut calls = 0;
            loop {
                client.stop.check()?;
                let line = watch.next();
                let line = line.ok_or_else(|| Error::unavailable("strace shows no answer"))?;
                calls += u64::from(call(&line).is_some());
                if line.contains("write(1, \"{") {
                    return Ok(calls);
                }
            }
        };
        // The first one may make connections.
        count(ask.row.steps())?;
        let (one, two) = (count(once)?, count(2 * once)?);
        let each = two.saturating_sub(one) as f64 / once as f64;
        let key = (client.name.clone(), phase.id.clone());
        client.shared.system_calls.borrow_mut().insert(key, each);
    }
    drop(watch.end()?);
    Ok(())
}
