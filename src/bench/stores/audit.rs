//! The durability that is observed: syncs for each acknowledged write (rule 4), counted from outside
//! with strace, in a pass that is not timed.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    prove,
    target::{Opened, Target},
};
use crate::{
    Error, ErrorKind, Result,
    bench::{
        results::Durability,
        scratch::Scratch,
        strace::{Watch, call},
    },
    durability::Tier,
    record::dataset::Dataset,
    store::{self, Column, Key, Layout, Row, Shape, Store},
};

/// Writes that are watched, each acknowledged before the next.
const WRITES: u64 = 100;
/// The calls that make data durable: fsync(2), sync_file_range(2), sync(2), msync(2).
const CALLS: &str = "fsync,fdatasync,sync_file_range,sync,syncfs,msync";

/// What was observed of a store.
#[derive(Debug, Clone)]
pub struct Audit {
    /// The store, as it was named.
    pub label: String,
    /// The product and its version.
    pub product: String,
    /// Asked for, set, observed.
    pub durability: Durability,
    /// What decides it, as read back.
    pub settings: BTreeMap<String, String>,
    /// Acknowledged writes that were watched.
    pub writes: u64,
    /// Calls that sync, by name.
    pub calls: BTreeMap<String, u64>,
}

/// Calls that sync, by name, or why they could not be counted.
pub(super) struct Seen(Result<BTreeMap<String, u64>>);

impl Seen {
    /// Puts it beside what was asked for.
    pub(super) fn into_durability(self, durability: &mut Durability) {
        let calls = match self.0 {
            Ok(calls) => calls,
            Err(e) => {
                durability.remark.get_or_insert_with(|| format!("syncs not observed: {e}"));
                return;
            }
        };
        let syncs = calls.values().sum::<u64>() as f64 / WRITES as f64;
        durability.syncs = Some(syncs);
        let tier = durability.set.as_deref().or(durability.asked.as_deref());
        let Some(tier) = tier.and_then(|tier| tier.parse::<Tier>().ok()) else { return };
        let kept = match tier {
            Tier::T3 => syncs >= 0.95,
            Tier::T0 | Tier::T1 | Tier::T2 => syncs <= 0.5,
        };
        if !kept {
            durability.broken = true;
            durability.remark = Some(format!("{syncs:.2} syncs for each write are not {tier}"));
        }
    }
}

/// Observes one store: starts it, writes, counts, stops it.
///
/// # Errors
/// Where it cannot be opened. That syncs cannot be counted is no error, but a remark.
pub fn audit(target: &Target) -> Result<Audit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let scratch = Scratch::new(None)?;
        let server = target.start()?;
        let place = store::open(&target.url(server.as_ref(), scratch.path())).await?;
        let opened = Opened { place, server };
        let kept = prove::kept(target, &opened.place).await?;
        let (mut durability, mut calls) = (kept.durability, BTreeMap::new());
        if target.is_own() {
            durability.remark = Some("syncs not observed: it is no server of ours".into());
        } else {
            let store = opened.place.table("audit")?;
            let seen = observe(&opened, &store).await;
            calls = seen.0.as_ref().cloned().unwrap_or_default();
            seen.into_durability(&mut durability);
        }
        Ok(Audit {
            label: target.label.clone(),
            product: format!("{} {}", kept.product, kept.version).trim().to_owned(),
            durability,
            settings: kept.settings,
            writes: WRITES,
            calls,
        })
    })
}

/// Writes to a table of its own while all processes of the store are watched.
pub(super) async fn observe(opened: &Opened, store: &Arc<dyn Store>) -> Seen {
    Seen(counted(opened, &**store).await)
}

async fn counted(opened: &Opened, store: &dyn Store) -> Result<BTreeMap<String, u64>> {
    let row = |n: u64| -> Result<Row> {
        let record = Dataset::Users.document(1, n).unwrap_or_default();
        Ok(Row { key: Key::new(n.to_string())?, record })
    };
    let mut layout = Layout::plain();
    if store.shape() == Shape::Columns {
        layout = layout.with_columns(Column::infer([&row(0)?.record])?);
    }
    store.prepare(&layout).await?;
    // The first write may make more than itself: a connection, and a process behind it.
    store.put(&[row(0)?]).await?;
    let processes = match &opened.server {
        Some(server) => server.processes(),
        None => vec![std::process::id()],
    };
    let watch = Watch::begin(&processes, CALLS)?;
    let mut written = Ok(());
    for n in 1..=WRITES {
        written = store.put(&[row(n)?]).await;
        if written.is_err() {
            break;
        }
    }
    let calls = watch.end().map(calls);
    let there = store.count().await?;
    store.drop_table().await?;
    written?;
    match there == WRITES + 1 {
        true => calls,
        false => Err(Error::new(
            ErrorKind::Mismatch,
            format!("{there} of {} records are there", WRITES + 1),
        )),
    }
}

/// Counts calls in strace's lines: `[pid 7] fdatasync(3 <unfinished ...>`, `fsync(4) = 0`.
fn calls(lines: impl Iterator<Item = String>) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for line in lines {
        if let Some(name) = call(&line).filter(|name| CALLS.split(',').any(|known| known == *name))
        {
            *found.entry(name.to_owned()).or_default() += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_once() {
        let lines = [
            "strace: Process 7 attached with 5 threads",
            "[pid     9] fdatasync(3 <unfinished ...>",
            "[pid    10] fsync(4)                  = 0",
            "[pid     9] <... fdatasync resumed>)  = 0",
            "fdatasync(3)                          = 0",
            "strace: Process 7 detached",
        ];
        let found = calls(lines.into_iter().map(str::to_owned));
        assert_eq!(found, [("fdatasync".to_owned(), 2), ("fsync".to_owned(), 1)].into());
    }

    #[test]
    fn what_was_observed_is_held_against_what_was_set() {
        let judged = |tier: &str, syncs: u64| {
            let set = Some(tier.to_owned());
            let mut durability = Durability { set, ..Durability::default() };
            let calls = BTreeMap::from([("fsync".to_owned(), syncs)]);
            Seen(Ok(calls)).into_durability(&mut durability);
            (durability.syncs.unwrap(), durability.broken)
        };
        assert_eq!(judged("t3", 100), (1.0, false));
        assert_eq!(judged("t3", 3), (0.03, true));
        assert_eq!(judged("t1", 0), (0.0, false));
        assert_eq!(judged("t2", 100), (1.0, true));
        let mut durability = Durability::default();
        Seen(Err(Error::unavailable("no strace"))).into_durability(&mut durability);
        assert!(durability.syncs.is_none() && durability.remark.unwrap().contains("no strace"));
    }
}
