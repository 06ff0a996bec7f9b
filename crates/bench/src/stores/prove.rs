//! The proof before anything is timed: which records a store returns unchanged (rule 1), and what it reports of itself.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{data::Records, draws, target::Target};
use crate::{
    Error, ErrorKind, Result,
    durability::Bound,
    machine,
    record::{Document, Kind},
    results::{Durability, Kept, Limited, Proof},
    store::{Client, Column, Key, Place, Row, Shape, Store, difference, in_columns},
    workload::Table,
};

/// All records are tried up to so many, and so many bytes of them as JSON; of more, a sample spread
/// evenly over all.
const ALL: (u64, u64) = (20_000, 32_000_000);
/// How many are written and read back at once.
const BATCH: u64 = 200;
/// One in so many of a batch is read by itself, too, but for the first batch: all of that are.
const SINGLE: usize = 10;
/// No batch is begun after this. A store that syncs a file for each record would take longer than the run.
const PATIENCE: Duration = Duration::from_secs(10);

/// What was seen of a store before anything was timed.
#[derive(Debug, Default)]
pub(super) struct Proved {
    pub proof: Proof,
    /// It has changed more of a record than it says of itself.
    pub lossy: bool,
    /// The first record whose fields came in another order; told only where no value changed.
    reordered: Option<String>,
}

/// The proofs of all tables, as one.
///
/// # Errors
/// As [`proof`].
pub(super) async fn proofs(
    store: &Arc<dyn Store>,
    tables: &[(&Table, &(String, Records))],
) -> Result<Proved> {
    let mut all: Option<Proved> = None;
    for (table, (name, records)) in tables {
        let mut one = proof(store, table, records).await?;
        if tables.len() > 1 {
            one.proof.first = one.proof.first.map(|first| format!("table {name}, {first}"));
        }
        all = Some(match all {
            None => one,
            Some(all) => all.and(one),
        });
    }
    all.ok_or_else(|| crate::Error::invalid("no table"))
}

impl Proved {
    /// Of two tables, together.
    fn and(self, other: Proved) -> Proved {
        let (a, b) = (self.proof, other.proof);
        let proof = Proof {
            records: a.records + b.records,
            of: a.of + b.of,
            equal: a.equal + b.equal,
            reordered: a.reordered + b.reordered,
            refused: a.refused + b.refused,
            first: a.first.or(b.first),
            ..a
        };
        let reordered = self.reordered.or(other.reordered);
        Proved { proof, lossy: self.lossy || other.lossy, reordered }
    }
}

/// Writes records into a table of its own, reads them back in the ways in which phases read them, many
/// at once and one alone, compares, and drops the table. The proof says how many of how many.
///
/// # Errors
/// [`Mismatch`](ErrorKind::Mismatch) where a record does not come back or another one comes; those of the
/// store, but for records it refuses.
async fn proof(store: &Arc<dyn Store>, table: &Table, records: &Records) -> Result<Proved> {
    let layout = records.layout(&Table { index: Vec::new(), ..table.clone() }, store.shape())?;
    store.prepare(&layout).await?;
    let declared = store.abilities().loses.to_owned();
    let proof = Proof { of: records.count, declared, ..Proof::default() };
    let mut proved = Proved { proof, ..Proved::default() };
    let begin = Instant::now();
    for numbers in batches(records.count, sample(records)?) {
        if proved.proof.records > 0 && begin.elapsed() > PATIENCE {
            break;
        }
        tried(&**store, &layout.columns, records, numbers, &mut proved).await?;
    }
    proved.proof.first = proved.proof.first.or(proved.reordered.take());
    store.drop_table().await?;
    Ok(proved)
}

/// How many records are tried.
fn sample(records: &Records) -> Result<u64> {
    let step = (records.count / BATCH).max(1);
    let (mut bytes, mut weighed) = (0, 0);
    for n in (0..records.count).step_by(step as usize).take(BATCH as usize) {
        bytes += serde_json::to_vec(&records.row(n)?.record).map_or(0, |text| text.len() as u64);
        weighed += 1;
    }
    let each = bytes / weighed.max(1);
    Ok(records.count.min(ALL.0).min(ALL.1 / each.max(1)).max(weighed))
}

/// So many of the numbers below `count`, spread evenly over all; in batches each of which is spread as
/// well, so that the first ones are a sample too.
fn batches(count: u64, sample: u64) -> impl Iterator<Item = Vec<u64>> {
    let batches = sample.div_ceil(BATCH);
    let number =
        move |i: u64| (u128::from(i) * u128::from(count) / u128::from(sample.max(1))) as u64;
    (0..batches).map(move |b| (b..sample).step_by(batches as usize).map(number).collect())
}

/// Tries the records of these numbers.
async fn tried(
    store: &dyn Store,
    columns: &[Column],
    records: &Records,
    numbers: Vec<u64>,
    proved: &mut Proved,
) -> Result<()> {
    let proof = &mut proved.proof;
    let first_batch = proof.records == 0;
    let mut rows = Vec::new();
    for n in numbers {
        let row = records.row(n)?;
        proof.records += 1;
        match store.check(&row) {
            Ok(()) => rows.push(row),
            Err(e) => {
                proof.refused += 1;
                proof.first.get_or_insert_with(|| format!("record {}: {}", n + 1, e.context()));
            }
        }
    }
    store.put(&rows).await?;
    let keys = draws::keys(&rows);
    let read = came(&keys, store.get(&keys).await?)?;
    let as_kept = |record: &Document| match store.shape() {
        Shape::Columns => in_columns(record, columns),
        Shape::Document | Shape::Blob => record.clone(),
    };
    let keeps: Vec<Kind> =
        store.abilities().keeps.iter().copied().filter(|kind| *kind != Kind::Map).collect();
    for (i, (row, read)) in rows.iter().zip(&read).enumerate() {
        let kept = as_kept(&row.record);
        let what = difference(&kept, read, &Kind::ALL);
        if what.is_some() && difference(&kept, read, &keeps).is_some() {
            proved.lossy = true;
            let same = |other: &&Row| difference(&as_kept(&other.record), read, &keeps).is_none();
            if let Some(other) = rows.iter().find(same) {
                let (key, other) = (row.key.shown(), other.key.shown());
                let what = format!("get of {} keys: record {other} came for {key}", keys.len());
                return Err(Error::new(ErrorKind::Mismatch, what));
            }
        }
        let key = std::slice::from_ref(&row.key);
        if first_batch || i % SINGLE == 0 {
            let single = came(key, store.get(key).await?)?;
            if let Some(what) = difference(read, &single[0], &Kind::ALL) {
                let key = row.key.shown();
                let what = format!(
                    "get of one key: record {key} is another one than among {}: {what}",
                    keys.len()
                );
                return Err(Error::new(ErrorKind::Mismatch, what));
            }
        }
        let Some(what) = what else {
            proof.equal += 1;
            continue;
        };
        let reordered = kept.same_in_any_order(read);
        proof.reordered += u64::from(reordered);
        let first = if reordered { &mut proved.reordered } else { &mut proof.first };
        first.get_or_insert_with(|| format!("record {}: {what}", row.key.shown()));
    }
    Ok(())
}

/// The records of these keys, all of which were written.
fn came(keys: &[Key], found: Vec<Option<Document>>) -> Result<Vec<Document>> {
    let missing = found.iter().position(Option::is_none).or_else(|| {
        (found.len() != keys.len()).then_some(found.len().min(keys.len().saturating_sub(1)))
    });
    match missing.and_then(|at| keys.get(at)) {
        Some(key) => {
            let of =
                if keys.len() == 1 { "one key".into() } else { format!("{} keys", keys.len()) };
            let key = key.shown();
            let what = format!("get of {of}: there is no record {key}, which was written");
            Err(Error::new(ErrorKind::Mismatch, what))
        }
        None => Ok(found.into_iter().flatten().collect()),
    }
}

/// Whose code speaks to a store, with its version; nobody's where it is steelyard's own and in this
/// process.
fn client(client: Client, target: &Target) -> String {
    match client {
        Client::Own if !target.is_embedded() => "own wire client".into(),
        Client::Own => String::new(),
        Client::Crate(name) => {
            let version = machine::software().remove(name).unwrap_or_default();
            format!("{name} {version}").trim().to_owned()
        }
    }
}

/// The remark on a server that stands in for another product, whose figures these are not.
pub(super) fn stand_in(kept: &Kept) -> Option<String> {
    /// The products that private servers are named after, and how each says its name.
    const NAMED: [(&str, &str); 4] = [
        ("couchdb", "CouchDB"),
        ("tyrant", "Tokyo Tyrant"),
        ("mongodb", "MongoDB"),
        ("s3", "Amazon S3"),
    ];
    let server = kept.server.as_deref()?;
    let (_, product) = NAMED.iter().find(|(name, _)| *name == server)?;
    (!kept.product.eq_ignore_ascii_case(product)).then(|| {
        format!(
            "{} is measured on {}, which is not {product}: its figures are not {product}'s.",
            kept.url,
            format!("{} {}", kept.product, kept.version).trim()
        )
    })
}

/// What a store says of itself, and what limits its loss.
///
/// # Errors
/// Those of the store.
pub(super) async fn kept(target: &Target, place: &Place) -> Result<(Kept, Option<Bound>)> {
    let said = place.describe().await?;
    let asked = target.tier().or(said.asked);
    let mut durability = Durability {
        asked: asked.map(|tier| tier.to_string()),
        set: said.set.map(|tier| tier.to_string()),
        limit: said.limit.map(|limit| Limited { most: limit.most.to_string(), why: limit.why }),
        ..Durability::default()
    };
    durability.judge();
    let kept = Kept {
        // Where a run's own folder, server or database was says nothing to anybody after it.
        url: target.label.clone(),
        product: said.product,
        version: said.version,
        server: target.program().map(|program| program.name.to_owned()),
        connection: target.connection().to_owned(),
        client: client(said.client, target),
        layout: said.shape.to_string(),
        format: said.format,
        durability,
        settings: said.settings.into_iter().collect(),
        disk: Vec::new(),
    };
    Ok((kept, said.bound))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_batch_is_a_sample_and_all_together_are_all() {
        for (count, sample) in [(1, 1), (199, 199), (200, 200), (20_000, 20_000), (20_001, 20_000)]
        {
            let all: Vec<Vec<u64>> = batches(count, sample).collect();
            let mut numbers = all.concat();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len() as u64, sample, "none is tried twice");
            assert!(numbers.iter().all(|n| *n < count));
            assert!(all.iter().all(|batch| batch.len() as u64 <= BATCH));
            let first = &all[0];
            assert!(count < 400 || *first.last().unwrap() > count * 9 / 10, "{count}: {first:?}");
        }
        assert_eq!(batches(0, 0).count(), 0);
    }
}
