//! Writing to a store: in batches, each acknowledged before the next, what the store refuses set
//! aside, all counted, and read back where that is asked.

use futures_util::TryStreamExt;

use super::{
    Counts, Form, OnDuplicate, Options, Reject,
    convert::Converted,
    duplicates::{self, Prints, Seen},
    journal::{Journal, Mark},
    output::Made,
    place::{ToStore, disagree, layout_for},
};
use crate::{
    Error, ErrorKind, Result,
    record::{Document, Kind, Value},
    store::{Blob, Key, KeyRange, Layout, Row, Shape, Store, same},
};

/// Writes batches to a store.
pub(super) struct Keeper {
    to: ToStore,
    form: Form,
    /// The table is made.
    ready: bool,
    /// The table was empty, and nobody else writes to it: keys are new, and can be counted.
    alone: bool,
    /// Which of several records with the same key is kept.
    rule: OnDuplicate,
    /// The keys that were written; none where no key can come twice.
    seen: Option<Seen>,
    /// What was written and came back otherwise.
    differs: Option<Key>,
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

    /// Those at these places.
    fn picked(&self, places: &[usize]) -> Picked {
        match self {
            Items::Rows(rows) => Picked::Rows(places.iter().map(|&i| rows[i].clone()).collect()),
            Items::Blobs(blobs) => {
                Picked::Blobs(places.iter().map(|&i| blobs[i].clone()).collect())
            }
        }
    }
}

/// Some of a batch.
enum Picked {
    Rows(Vec<Row>),
    Blobs(Vec<Blob>),
}

impl Picked {
    fn items(&self) -> Items<'_> {
        match self {
            Picked::Rows(rows) => Items::Rows(rows),
            Picked::Blobs(blobs) => Items::Blobs(blobs),
        }
    }
}

/// What came of writing some items.
#[derive(Default)]
struct Sent {
    /// What the store refused, and why.
    refused: Vec<(usize, Error)>,
    /// Read back and the same.
    verified: u64,
    /// The first that was not.
    differs: Option<Key>,
}

/// What a store has by a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum There {
    Same,
    Another,
    Nothing,
}

/// Whether what was read back is the record. Where the key is a column of a table, it comes back as a field also
/// where the record did not repeat it.
fn is_same(key: &Key, record: &Document, read: &Document, keeps: &[Kind]) -> bool {
    if read.len() <= record.len() && same(record, read, keeps) {
        return true;
    }
    let is_key = |(name, value): &(&str, &Value)| {
        record.get(name).is_none()
            && match value {
                Value::Text(text) => *text == **key,
                Value::Int(number) => number.to_string() == **key,
                Value::BigInt(digits) => **digits == **key,
                _ => false,
            }
    };
    let Some((own, _)) = read.iter().find(is_key) else { return same(record, read, keeps) };
    let others = read.iter().filter(|(name, _)| *name != own);
    let others = others.map(|(name, value)| (name.to_owned(), value.clone())).collect();
    same(record, &others, keeps)
}

/// Errors that are about a record rather than about the store.
fn is_of_record(e: &Error) -> bool {
    matches!(e.kind(), ErrorKind::Invalid | ErrorKind::TooLarge | ErrorKind::Unsupported)
}

impl Keeper {
    pub(super) fn new(to: ToStore, options: &Options, prints: Option<Prints>) -> Result<Keeper> {
        Ok(Keeper {
            to,
            form: options.to.clone(),
            ready: false,
            alone: false,
            rule: options.on_duplicate,
            seen: prints.map(Seen::new),
            differs: None,
        })
    }

    /// What errors call the store.
    pub(super) fn name(&self) -> &str {
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
        let layout = layout_for(self.store().shape(), &self.to.indexes, rows);
        let known = self.to.journal.as_ref().and_then(|journal| journal.empty);
        let empty = self.to.runtime.block_on(async {
            self.prepared(layout).await?;
            match known {
                Some(empty) => Ok::<_, Error>(empty),
                None => Ok(self.is_empty().await.unwrap_or(false)),
            }
        })?;
        if let (None, Some(journal)) = (known, &mut self.to.journal) {
            journal.was_empty(empty)?;
        }
        (self.ready, self.alone) = (true, empty && !self.to.shared);
        Ok(())
    }

    /// Makes the table for a layout. One that is there is taken as it is: of the records, those that do not fit it
    /// are refused, each for what is wrong with it, and not all for what is wrong with one.
    async fn prepared(&self, layout: Result<Layout>) -> Result<()> {
        let prepared = match &layout {
            Ok(layout) => self.store().prepare(layout).await,
            Err(_) => Ok(()),
        };
        let e = match (layout.map(drop), prepared) {
            (Ok(()), Ok(())) => return Ok(()),
            (Err(e), _) | (_, Err(e)) => e,
        };
        let columns = self.store().shape() == Shape::Columns;
        if !columns || !(is_of_record(&e) || e.kind() == ErrorKind::Conflict) {
            return Err(e);
        }
        // Without columns no table can be made.
        let there = layout_for(Shape::Document, &self.to.indexes, &[])?;
        self.store().prepare(&there).await.map_err(|_| e)
    }

    async fn is_empty(&self) -> Result<bool> {
        let all = KeyRange::all();
        Ok(match self.store().blobs() {
            Some((blobs, _)) => blobs.each(&all).await?.try_next().await?.is_none(),
            None => self.store().scan(&all).await?.try_next().await?.is_none(),
        })
    }

    /// Before a batch is written.
    pub(super) fn begin(&mut self, until: &Mark) -> Result<()> {
        match &mut self.to.journal {
            Some(journal) => journal.trying(until),
            None => Ok(()),
        }
    }

    /// After a batch was written and all about it told.
    pub(super) fn end(&mut self, until: &Mark, counts: &Counts, rejected: u64) -> Result<()> {
        match &mut self.to.journal {
            Some(journal) => journal.done(until, counts, rejected),
            None => Ok(()),
        }
    }

    /// Writes a batch. What the store refuses is rejected, and counted no longer as written.
    pub(super) fn write(&mut self, done: &mut Converted) -> Result<()> {
        let name = self.to.name.clone();
        self.written(done).map_err(|e| e.in_place(name))
    }

    /// What was made of a batch, as this store takes it.
    fn items<'m>(&self, made: &'m Made) -> Items<'m> {
        match self.form {
            Form::Blobs(_) => Items::Blobs(&made.blobs),
            _ => Items::Rows(&made.rows),
        }
    }

    fn written(&mut self, done: &mut Converted) -> Result<()> {
        if self.items(&done.made).len() == 0 {
            // Nothing tells yet which columns there are.
            return Ok(());
        }
        let made = std::mem::take(&mut done.made);
        self.prepare(&made.rows)?;
        let items = self.items(&made);
        let new = self.alone && !done.tried;
        let mut seen = self.seen.take();
        let plan = seen.as_mut().and_then(|seen| {
            duplicates::plan(self.rule, &made.prints, seen, |i| self.check(&items, i))
        });
        let fresh = match &plan {
            None => self.sent(&items, new)?,
            Some(plan) => {
                let mut sent = self.sent(&items.picked(&plan.fresh).items(), new)?;
                sent.refused.iter_mut().for_each(|(i, _)| *i = plan.fresh[*i]);
                sent
            }
        };
        let plan = plan.unwrap_or_default();
        let mut refused = plan.refused;
        for (i, error) in fresh.refused {
            seen.iter_mut().for_each(|seen| seen.forget(made.prints.at(i)));
            refused.push((i, error));
        }
        done.written -= refused.len() as u64;
        let again = match plan.again.is_empty() {
            true => Sent::default(),
            false => self.sent(&items.picked(&plan.again).items(), false)?,
        };
        done.verified += fresh.verified + again.verified;
        self.differs = fresh.differs.or(again.differs);
        // Of two with the same key one is written, and counted so already.
        let beaten = (plan.beaten.len() + plan.again.len()) as u64;
        done.written -= beaten;
        // What could not take the place of another has not beaten it.
        done.duplicates += beaten - again.refused.len() as u64;
        refused.extend(again.refused.into_iter().map(|(i, e)| (plan.again[i], e)));
        if self.rule == OnDuplicate::Reject {
            done.duplicates -= beaten;
            refused.extend(plan.beaten.iter().map(|&i| (i, duplicates::taken(items.key(i)))));
        }
        for (i, error) in refused {
            let origin = &made.origins[i];
            done.rejects.push(Reject {
                record: origin.number,
                offset: origin.offset,
                key: Some(items.key(i).clone()),
                reason: error.context().to_owned(),
                hint: error.hint().map(str::to_owned),
                bytes: origin.bytes(&made).to_vec(),
            });
        }
        done.rejects.sort_by_key(|reject| reject.record);
        self.seen = seen;
        done.made = made;
        Ok(())
    }

    /// Remembers the keys of a batch that an earlier run has written.
    pub(super) fn remember(&mut self, done: &Converted) -> Result<()> {
        if self.items(&done.made).len() == 0 {
            return Ok(());
        }
        self.prepare(&done.made.rows).map_err(|e| e.in_place(&*self.to.name))?;
        let items = self.items(&done.made);
        let Some(mut seen) = self.seen.take() else { return Ok(()) };
        for i in (0..items.len()).filter(|&i| self.check(&items, i).is_ok()) {
            seen.add(done.made.prints.at(i));
        }
        self.seen = Some(seen);
        Ok(())
    }

    /// Sends items, each with a key of its own, as many at once as is asked for; reads them back
    /// where that is asked.
    fn sent(&self, items: &Items<'_>, new: bool) -> Result<Sent> {
        let step = self.to.batch.unwrap_or(usize::MAX).max(1);
        let (mut sent, mut at) = (Sent::default(), 0);
        while at < items.len() {
            let end = items.len().min(at.saturating_add(step));
            let found = self.to.runtime.block_on(self.keep(&items.part(at..end), new))?;
            sent.refused.extend(found.into_iter().map(|(i, e)| (at + i, e)));
            at = end;
        }
        if self.to.verify {
            let skip: Vec<usize> = sent.refused.iter().map(|(i, _)| *i).collect();
            sent.differs = self.to.runtime.block_on(self.differs(items, &skip))?;
            if sent.differs.is_none() {
                sent.verified = (items.len() - skip.len()) as u64;
            }
        }
        Ok(sent)
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
                Err(e) if e.kind() == ErrorKind::Conflict => match self.there(&one).await? {
                    // The first try may have written it.
                    There::Same => {}
                    There::Another if new => {
                        let key = items.key(i).shown();
                        let what = format!("duplicate key {key}");
                        refused.push((i, Error::new(ErrorKind::Conflict, what)));
                    }
                    // Something else has to be unique.
                    _ => refused.push((i, e)),
                },
                Err(e) => return Err(e),
            }
        }
        for (i, e) in &mut refused {
            let key = items.key(*i).shown();
            if !e.context().contains(&format!("key {key}")) {
                *e = Error::new(e.kind(), format!("key {key}: {}", e.context()));
            }
        }
        // What is wrong with the batch as a whole is no record's fault.
        match refused.is_empty() && items.len() == 0 {
            true => Err(first),
            false => Ok(refused),
        }
    }

    /// What is in the store by the key of a record.
    async fn there(&self, one: &Items<'_>) -> Result<There> {
        if self.differs(one, &[]).await?.is_none() {
            return Ok(There::Same);
        }
        let keys = [one.key(0).clone()];
        let is_there = match self.store().blobs() {
            Some((blobs, _)) => blobs.get(&keys).await?.iter().any(Option::is_some),
            None => self.store().get(&keys).await?.iter().any(Option::is_some),
        };
        Ok(if is_there { There::Another } else { There::Nothing })
    }

    /// The first record that the store has otherwise, or not at all.
    async fn differs(&self, items: &Items<'_>, skip: &[usize]) -> Result<Option<Key>> {
        let mut written = vec![true; items.len()];
        skip.iter().for_each(|&i| written[i] = false);
        let places: Vec<usize> = (0..items.len()).filter(|&i| written[i]).collect();
        let keys: Vec<Key> = places.iter().map(|&i| items.key(i).clone()).collect();
        match (items, self.store().blobs()) {
            (Items::Blobs(blobs), Some((to, _))) => {
                let found = to.get(&keys).await?;
                let bad = places
                    .iter()
                    .zip(found)
                    .find(|(i, found)| found.as_deref() != Some(&blobs[**i].bytes[..]));
                Ok(bad.map(|(i, _)| items.key(*i).clone()))
            }
            (Items::Rows(rows), _) => {
                let found = self.store().get(&keys).await?;
                let keeps = self.store().abilities().keeps;
                let bad = places.iter().zip(found).find(|(i, found)| {
                    let Row { key, record } = &rows[**i];
                    found.as_ref().is_none_or(|found| !is_same(key, record, found, keeps))
                });
                Ok(bad.map(|(i, _)| items.key(*i).clone()))
            }
            (Items::Blobs(_), None) => Ok(None),
        }
    }

    /// Whether all that was written came back as it was. Asked after it was counted.
    ///
    /// # Errors
    /// [`Mismatch`](ErrorKind::Mismatch) where it did not.
    pub(super) fn agrees(&self) -> Result<()> {
        match &self.differs {
            None => Ok(()),
            Some(key) => {
                let what = format!("key {}: the store returned a different record", key.shown());
                Err(Error::new(ErrorKind::Mismatch, what).in_place(&*self.to.name))
            }
        }
    }

    /// How many records are there by keys that were written; none where those are not known.
    async fn ours(&mut self) -> Result<Option<u64>> {
        let Some(seen) = &mut self.seen else { return Ok(None) };
        let mut rows = self.to.store.scan(&KeyRange::all()).await?;
        let mut ours = 0;
        while let Some(batch) = rows.try_next().await? {
            ours += batch.iter().filter(|row| seen.has(&row.key)).count() as u64;
        }
        Ok(Some(ours))
    }

    /// Ends without having written anything.
    pub(super) fn leave(self) -> Result<()> {
        self.to.journal.map_or(Ok(()), Journal::finish)
    }

    /// Counts what is there: what was written, and nothing else but what others have added meanwhile.
    pub(super) fn finish(mut self, counts: &Counts) -> Result<()> {
        // A copy of nothing makes the table; one whose records were all rejected makes nothing.
        let makes = !counts.all_rejected() && self.store().shape() != Shape::Columns;
        if !self.ready && makes {
            self.prepare(&[])?;
        }
        if self.alone {
            let there = match self.to.runtime.block_on(self.to.store.count()) {
                Ok(there) => there,
                // A cache that cannot be listed cannot be counted.
                Err(e) if e.kind() == ErrorKind::Unsupported => counts.written,
                Err(e) => return Err(e),
            };
            let runtime = self.to.runtime.clone();
            let mut ours = || runtime.block_on(self.ours());
            if there != counts.written
                && (there < counts.written || ours()? != Some(counts.written))
            {
                return Err(disagree(counts, there));
            }
        }
        self.to.journal.map_or(Ok(()), Journal::finish)
    }
}
