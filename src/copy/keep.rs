//! Writing to a store: in batches, each acknowledged before the next, what the store refuses set
//! aside, all counted, and read back where that is asked.

use std::collections::HashMap;

use futures_util::TryStreamExt;

use super::{
    Counts, Form, Options, Reject,
    convert::Converted,
    journal::{Journal, Mark},
    output::Made,
    place::{ToStore, disagree, layout_for},
};
use crate::{
    Error, ErrorKind, Result,
    store::{Blob, Key, KeyRange, Row, Shape, Store, same},
};

/// Writes batches to a store.
pub(super) struct Keeper {
    to: ToStore,
    form: Form,
    /// The table is made.
    ready: bool,
    /// The table was empty, and nobody else writes to it: keys are new, and can be counted.
    alone: bool,
    /// How many records are in it that an earlier run wrote.
    before: u64,
}

/// What is written at once.
enum Items<'m> {
    Rows(&'m [Row]),
    Blobs(&'m [Blob]),
}

impl Items<'_> {
    fn len(&self) -> usize {
        match self {
            Items::Rows(rows) => rows.len(),
            Items::Blobs(blobs) => blobs.len(),
        }
    }

    fn key(&self, i: usize) -> &Key {
        match self {
            Items::Rows(rows) => &rows[i].key,
            Items::Blobs(blobs) => &blobs[i].key,
        }
    }

    fn part(&self, range: std::ops::Range<usize>) -> Items<'_> {
        match self {
            Items::Rows(rows) => Items::Rows(&rows[range]),
            Items::Blobs(blobs) => Items::Blobs(&blobs[range]),
        }
    }
}

/// Errors that are about a record rather than about the store.
fn is_of_record(e: &Error) -> bool {
    matches!(e.kind(), ErrorKind::Invalid | ErrorKind::TooLarge | ErrorKind::Unsupported)
}

impl Keeper {
    pub fn new(to: ToStore, options: &Options) -> Result<Keeper> {
        let before =
            to.journal.as_ref().and_then(|j| j.done.as_ref()).map_or(0, |(_, c)| c.written);
        Ok(Keeper { to, form: options.to.clone(), ready: false, alone: false, before })
    }

    /// What errors call the store.
    pub fn name(&self) -> &str {
        &self.to.name
    }

    fn store(&self) -> &dyn Store {
        &*self.to.store
    }

    /// Makes the table, now that the first records tell what is in it.
    fn prepare(&mut self, rows: &[Row]) -> Result<()> {
        if self.ready {
            return Ok(());
        }
        let layout = layout_for(self.store().shape(), &self.to.indexes, rows)?;
        let resumed = self.before > 0 || self.tried().is_some();
        let alone = self.to.runtime.block_on(async {
            self.store().prepare(&layout).await?;
            if self.to.shared {
                return Ok(false);
            }
            if resumed {
                return Ok::<_, Error>(true);
            }
            Ok(self.is_empty().await.unwrap_or(false))
        })?;
        (self.ready, self.alone) = (true, alone);
        Ok(())
    }

    async fn is_empty(&self) -> Result<bool> {
        let all = KeyRange::all();
        Ok(match self.store().blobs() {
            Some((blobs, _)) => blobs.each(&all).await?.try_next().await?.is_none(),
            None => self.store().scan(&all).await?.try_next().await?.is_none(),
        })
    }

    fn tried(&self) -> Option<&Mark> {
        self.to.journal.as_ref().and_then(|journal| journal.tried.as_ref())
    }

    /// Before a batch is written.
    pub fn begin(&mut self, until: &Mark) -> Result<()> {
        match &mut self.to.journal {
            Some(journal) => journal.trying(until),
            None => Ok(()),
        }
    }

    /// After a batch was written and all about it told.
    pub fn end(&mut self, until: &Mark, counts: &Counts, rejected: u64) -> Result<()> {
        match &mut self.to.journal {
            Some(journal) => journal.done(until, counts, rejected),
            None => Ok(()),
        }
    }

    /// Writes a batch. What the store refuses is rejected, and counted no longer as written.
    pub fn write(&mut self, done: &mut Converted) -> Result<()> {
        let name = self.to.name.clone();
        self.written(done).map_err(|e| e.in_place(name))
    }

    fn written(&mut self, done: &mut Converted) -> Result<()> {
        let made = std::mem::take(&mut done.made);
        self.prepare(&made.rows)?;
        let Made { rows, blobs, origins, .. } = &made;
        let items = match self.form {
            Form::Blobs(_) => Items::Blobs(blobs),
            _ => Items::Rows(rows),
        };
        let step = self.to.batch.unwrap_or(usize::MAX).max(1);
        let new = self.alone && !done.tried;
        let mut refused = Vec::new();
        let mut at = 0;
        while at < items.len() {
            let end = items.len().min(at.saturating_add(step));
            let part = items.part(at..end);
            let runtime = self.to.runtime.clone();
            let found = runtime.block_on(self.keep(&part, new))?;
            refused.extend(found.into_iter().map(|(i, e)| (at + i, e)));
            at = end;
        }
        done.verified += match self.to.verify {
            false => 0,
            true => {
                let skip: Vec<usize> = refused.iter().map(|(i, _)| *i).collect();
                self.to.runtime.block_on(self.verify(&items, &skip))?
            }
        };
        for (i, error) in refused {
            done.written -= 1;
            let origin = &origins[i];
            done.rejects.push(Reject {
                record: origin.number,
                offset: origin.offset,
                key: Some(items.key(i).clone()),
                reason: error.context().to_owned(),
                bytes: origin.bytes(&made).to_vec(),
            });
        }
        done.rejects.sort_by_key(|reject| reject.record);
        done.made = made;
        Ok(())
    }

    async fn send(&self, items: &Items<'_>, new: bool) -> Result<()> {
        match (items, self.store().blobs()) {
            (Items::Blobs(blobs), Some((to, _))) if new => to.load(blobs).await,
            (Items::Blobs(blobs), Some((to, _))) => to.put(blobs).await,
            (Items::Rows(rows), _) if new => self.store().load(rows).await,
            (Items::Rows(rows), _) => self.store().put(rows).await,
            (Items::Blobs(_), None) => unreachable!("blobs are made for stores of blobs"),
        }
    }

    fn check(&self, items: &Items<'_>, i: usize) -> Result<()> {
        match (items, self.store().blobs()) {
            (Items::Blobs(blobs), Some((to, _))) => to.check(&blobs[i].key, blobs[i].bytes.len()),
            (Items::Rows(rows), _) => self.store().check(&rows[i]),
            (Items::Blobs(_), None) => Ok(()),
        }
    }

    /// Writes some records; those that the store refuses, and why, come back.
    async fn keep(&self, items: &Items<'_>, new: bool) -> Result<Vec<(usize, Error)>> {
        let first = match self.send(items, new).await {
            Ok(()) => return Ok(Vec::new()),
            Err(e) if is_of_record(&e) || e.kind() == ErrorKind::Conflict => e,
            Err(e) => return Err(e),
        };
        // One by one, to find out which it was.
        let mut refused = Vec::new();
        for i in 0..items.len() {
            if let Err(e) = self.check(items, i) {
                refused.push((i, e));
                continue;
            }
            let one = items.part(i..i + 1);
            match self.send(&one, new).await {
                Ok(()) => {}
                Err(e) if is_of_record(&e) => refused.push((i, e)),
                Err(e) if e.kind() == ErrorKind::Conflict => {
                    // The first try may have written it.
                    let twice = (0..i).any(|j| items.key(j) == items.key(i));
                    if twice || !self.is_there(&one).await? {
                        let key = items.key(i).shown();
                        let what = format!("key {key} is taken by another record");
                        refused.push((i, Error::new(ErrorKind::Conflict, what)));
                    }
                }
                Err(e) => return Err(e),
            }
        }
        // What is wrong with the batch as a whole is no record's fault.
        match refused.is_empty() && items.len() == 0 {
            true => Err(first),
            false => Ok(refused),
        }
    }

    /// Whether a record is in the store as it is here.
    async fn is_there(&self, one: &Items<'_>) -> Result<bool> {
        Ok(self.differs(one, &[]).await?.is_none())
    }

    /// The first record that the store has otherwise, or not at all.
    async fn differs(&self, items: &Items<'_>, skip: &[usize]) -> Result<Option<Key>> {
        // Of records with the same key the last one stays.
        let last: HashMap<&Key, usize> =
            (0..items.len()).filter(|i| !skip.contains(i)).map(|i| (items.key(i), i)).collect();
        let keys: Vec<Key> = last.keys().map(|key| (*key).clone()).collect();
        match (items, self.store().blobs()) {
            (Items::Blobs(blobs), Some((to, _))) => {
                let found = to.get(&keys).await?;
                let bad = keys
                    .iter()
                    .zip(found)
                    .find(|(key, found)| found.as_deref() != Some(&blobs[last[*key]].bytes[..]));
                Ok(bad.map(|(key, _)| key.clone()))
            }
            (Items::Rows(rows), _) => {
                let found = self.store().get(&keys).await?;
                let keeps = self.store().abilities().keeps;
                let bad = keys.iter().zip(found).find(|(key, found)| {
                    let wanted = &rows[last[*key]].record;
                    found.as_ref().is_none_or(|found| !same(wanted, found, keeps))
                });
                Ok(bad.map(|(key, _)| key.clone()))
            }
            (Items::Blobs(_), None) => Ok(None),
        }
    }

    async fn verify(&self, items: &Items<'_>, skip: &[usize]) -> Result<u64> {
        match self.differs(items, skip).await? {
            None => Ok((items.len() - skip.len()) as u64),
            Some(key) => {
                let what = format!("key {}: what the store gives back differs", key.shown());
                Err(Error::new(ErrorKind::Mismatch, what))
            }
        }
    }

    /// Counts what is there, where nobody else writes.
    pub fn finish(mut self, counts: &Counts) -> Result<()> {
        if !self.ready && self.store().shape() != Shape::Columns {
            self.prepare(&[])?;
        }
        if self.alone {
            let there = match self.to.runtime.block_on(self.to.store.count()) {
                Ok(there) => there,
                // A cache that cannot be listed cannot be counted.
                Err(e) if e.kind() == ErrorKind::Unsupported => counts.written,
                Err(e) => return Err(e),
            };
            if there != counts.written {
                return Err(disagree(counts, there));
            }
        }
        self.to.journal.map_or(Ok(()), Journal::finish)
    }
}
