//! Where records come from and go to: files and stores, seen as batches.

use std::sync::Arc;

use futures_util::{StreamExt, stream::BoxStream};
use tokio::runtime::Handle;

use super::{
    Counts, Form, Options,
    batch::{self, Batch, Frame, Records, Spare},
    duplicates::Prints,
    journal::Mark,
    keep::Keeper,
};
use crate::{
    Error, Result,
    file::{Frames, Part, Sink},
    store::{Blob, Key, KeyRange, Layout, Row, Shape, Store},
};

/// Where records come from.
pub enum Source {
    /// A file.
    File(Box<Frames>),
    /// A store.
    Store(FromStore),
}

/// A store that records are read from.
pub struct FromStore {
    /// The store.
    pub store: Arc<dyn Store>,
    /// What errors call it: its URL, without a password.
    pub name: String,
    /// Only a part of it: a range of its keys.
    pub part: Option<Part>,
    /// Where its work is done. Not to be the runtime that the copy is called on.
    pub runtime: Handle,
}

/// Where records go to.
pub enum Target {
    /// A file.
    File(Box<Sink>),
    /// A store.
    Store(Box<ToStore>),
}

/// A store that records are written to.
pub struct ToStore {
    /// The store.
    pub store: Arc<dyn Store>,
    /// What errors call it: its URL, without a password.
    pub name: String,
    /// Paths to be indexed; of what kind the values are, the first records tell.
    pub indexes: Vec<crate::store::query::Path>,
    /// How many records are sent at once; none leaves it to the bytes.
    pub batch: Option<usize>,
    /// Read all back, and compare.
    pub verify: bool,
    /// Where to write how far it came.
    pub journal: Option<super::Journal>,
    /// Others write to the store too: parts of the same source.
    pub shared: bool,
    /// Where its work is done. Not to be the runtime that the copy is called on.
    pub runtime: Handle,
}

impl Source {
    /// In which form its records come.
    pub fn form(&self) -> Form {
        match self {
            Source::File(frames) => Form::Bytes(frames.format().clone()),
            Source::Store(from) => form(&*from.store),
        }
    }
}

impl Target {
    /// In which form it takes records.
    pub fn form(&self) -> Form {
        match self {
            Target::File(sink) => Form::Bytes(sink.format().clone()),
            Target::Store(to) => form(&*to.store),
        }
    }
}

fn form(store: &dyn Store) -> Form {
    match (store.blobs(), store.shape()) {
        (Some((_, format)), _) => Form::Blobs(format.clone()),
        (None, Shape::Columns) => Form::Rows,
        (None, _) => Form::Documents(store.abilities().compared()),
    }
}

/// Reads a source in batches, from where it is told.
pub(super) struct Reader<'s> {
    from: Begun<'s>,
    /// Bytes in the next batch of a file.
    size: usize,
    tried: Option<Mark>,
}

/// Where a run goes on that was ended early.
#[derive(Debug, Clone, Default)]
pub(super) struct Resumed {
    /// All up to here is written.
    pub done: Option<Mark>,
    /// Some up to here may be.
    pub tried: Option<Mark>,
    /// What is written is to be read again, for its keys.
    pub again: bool,
}

enum Begun<'s> {
    /// From this offset on; with what is before it.
    File(&'s mut Frames, u64, bool),
    Rows(Keyed<'s, Row>),
    Blobs(Keyed<'s, Blob>),
}

/// Records of a store in batches.
struct Keyed<'s, T> {
    batches: BoxStream<'s, Result<Vec<T>>>,
    from: &'s FromStore,
    key: fn(&T) -> &Key,
    /// Up to this key they are read only for their keys.
    past: Option<Key>,
    /// What is left of a batch that was cut there.
    rest: Option<Vec<T>>,
}

/// A batch, whether it is past, and its first and last key.
type Ended<T> = (Vec<T>, bool, [String; 2]);

impl<T> Keyed<'_, T> {
    /// The next batch; none after the last.
    fn next(&mut self) -> Result<Option<Ended<T>>> {
        let batch = match self.rest.take() {
            Some(rest) => Some(rest),
            None => self.from.wait_for(self.batches.next())?,
        };
        let Some(mut batch) = batch else { return Ok(None) };
        let done = match &self.past {
            Some(past) => batch.partition_point(|record| (self.key)(record) <= past),
            None => 0,
        };
        if (1..batch.len()).contains(&done) {
            self.rest = Some(batch.split_off(done));
        }
        let shown =
            |record: Option<&T>| record.map_or(String::new(), |r| (self.key)(r).to_string());
        let ends = [shown(batch.first()), shown(batch.last())];
        Ok(Some((batch, done > 0, ends)))
    }
}

impl<'s> Reader<'s> {
    pub(super) fn new(source: &'s mut Source, resumed: Resumed) -> Result<Reader<'s>> {
        let Resumed { done, tried, again } = resumed;
        let from = match (source, done) {
            (Source::File(frames), None) => Begun::File(frames, 0, false),
            (Source::File(frames), Some(Mark::Offset(done))) => Begun::File(frames, done, again),
            (Source::Store(from), None) => from.open(None, None)?,
            (Source::Store(from), Some(Mark::Key(last))) => {
                if !from.store.abilities().ordered {
                    return Err(not_ordered(&*from.store));
                }
                match again {
                    true => from.open(None, Some(Key::new(last)?))?,
                    false => from.open(Some(Key::new(format!("{last}\0"))?), None)?,
                }
            }
            _ => return Err(Error::invalid("the journal belongs to another kind of source")),
        };
        Ok(Reader { from, size: batch::FIRST, tried })
    }

    /// The next batch; none after the last record.
    pub(super) fn next(&mut self, spare: &Spare) -> Result<Option<Batch>> {
        let (records, past, [first, last]) = match &mut self.from {
            Begun::File(frames, from, again) => {
                let framed = Frame::next(frames, *from, *again, &mut self.size, spare)?;
                let Some(framed) = framed else { return Ok(None) };
                let read = frames.offset();
                let first = framed.frames.first().map_or(read, |first| first.offset);
                let tried = matches!(self.tried, Some(Mark::Offset(tried)) if first < tried);
                let past = first < *from;
                let (records, until) = (Records::Framed(framed), Mark::Offset(read));
                return Ok(Some(Batch { records, read, until, tried, past }));
            }
            Begun::Rows(rows) => {
                let Some((rows, past, ends)) = rows.next()? else { return Ok(None) };
                (Records::Rows(rows), past, ends)
            }
            Begun::Blobs(blobs) => {
                let Some((blobs, past, ends)) = blobs.next()? else { return Ok(None) };
                (Records::Blobs(blobs), past, ends)
            }
        };
        let tried = matches!(&self.tried, Some(Mark::Key(tried)) if first <= *tried);
        Ok(Some(Batch { records, read: 0, until: Mark::Key(last), tried, past }))
    }
}

fn not_ordered(store: &dyn Store) -> Error {
    let driver = store.abilities().driver;
    Error::unsupported(format!("{driver} has no key order, so a copy from it cannot be resumed"))
}

impl FromStore {
    fn wait_for<T>(&self, next: impl Future<Output = Option<Result<T>>>) -> Result<Option<T>> {
        self.runtime.block_on(next).transpose().map_err(|e| e.in_place(&*self.name))
    }

    fn open(&self, after: Option<Key>, past: Option<Key>) -> Result<Begun<'_>> {
        self.opened(after, past).map_err(|e| e.in_place(&*self.name))
    }

    fn opened(&self, after: Option<Key>, past: Option<Key>) -> Result<Begun<'_>> {
        let mut range = match self.part {
            None => KeyRange::all(),
            Some(part) => {
                let (index, of) = part.numbers();
                let of = u32::try_from(of).map_err(|_| Error::invalid("that many parts"))?;
                let mut ranges = self.runtime.block_on(self.store.split(of))?;
                if ranges.len() != of as usize {
                    let what = format!("a store split into {} parts instead of {of}", ranges.len());
                    return Err(Error::new(crate::ErrorKind::Mismatch, what));
                }
                ranges.swap_remove(index as usize - 1)
            }
        };
        if let Some(after) = after {
            range.from = Some(after);
        }
        let (from, rest) = (self, None);
        Ok(match self.store.blobs() {
            Some((blobs, _)) => {
                let batches = self.runtime.block_on(blobs.each(&range))?;
                Begun::Blobs(Keyed { batches, from, key: |blob| &blob.key, past, rest })
            }
            None => {
                let batches = self.runtime.block_on(self.store.scan(&range))?;
                Begun::Rows(Keyed { batches, from, key: |row| &row.key, past, rest: None })
            }
        })
    }
}

/// Writes batches to a target.
pub(super) enum Writer {
    File(Box<Sink>),
    Store(Box<Keeper>),
}

impl Writer {
    pub(super) fn new(target: Target, options: &Options, prints: Option<Prints>) -> Result<Writer> {
        Ok(match target {
            Target::File(sink) => Writer::File(sink),
            Target::Store(to) => Writer::Store(Box::new(Keeper::new(*to, options, prints)?)),
        })
    }

    /// Ends the target; what was written has to agree with the counts. What is not `wanted` is left
    /// as it was before, where that is possible; whether it was, is the answer.
    pub(super) fn finish(self, counts: &mut Counts, wanted: bool) -> Result<bool> {
        match self {
            Writer::File(sink) if !wanted && sink.is_staged() => sink.leave().map(|()| true),
            Writer::File(sink) => {
                let written = sink.finish()?;
                counts.bytes_out = written.bytes;
                match written.records == counts.written {
                    true => Ok(false),
                    false => Err(disagree(counts, written.records)),
                }
            }
            Writer::Store(keeper) if !wanted => keeper.leave().map(|()| true),
            Writer::Store(keeper) => {
                let name = keeper.name().to_owned();
                keeper.finish(counts).map_err(|e| e.in_place(name))?;
                Ok(false)
            }
        }
    }
}

/// The error of counts that do not agree.
pub(super) fn disagree(counts: &Counts, there: u64) -> Error {
    let what = format!(
        "the counts do not agree: {there} are there after {counts}; did another program write there \
         at the same time?"
    );
    Error::new(crate::ErrorKind::Mismatch, what)
}

/// A layout of nothing special, or with the indexes asked for and the columns that records need.
pub(super) fn layout_for(
    shape: Shape,
    indexes: &[crate::store::query::Path],
    rows: &[Row],
) -> Result<Layout> {
    use crate::record::Kind;
    let mut layout = Layout::plain();
    if shape == Shape::Columns {
        let columns = crate::store::Column::infer(rows.iter().map(|row| &row.record))?;
        layout = layout.with_columns(columns);
    }
    for path in indexes {
        let kind = rows.iter().find_map(|row| path.kind_in(&row.key, &row.record));
        layout = layout.with_index(path.clone(), kind.unwrap_or(Kind::Text));
    }
    Ok(layout)
}
