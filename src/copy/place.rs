//! Where records come from and go to: files and stores, seen as batches.

use std::sync::Arc;

use futures_util::{StreamExt, stream::BoxStream};
use tokio::runtime::Handle;

use super::{
    Counts, Form, Options,
    batch::{self, Batch, Frame, Records, Spare},
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
        (None, _) => Form::Documents,
    }
}

/// Reads a source in batches, from where it is told.
pub(super) struct Reader<'s> {
    from: From<'s>,
    /// Bytes in the next batch of a file.
    size: usize,
    tried: Option<Mark>,
}

enum From<'s> {
    File(&'s mut Frames, u64),
    Rows(BoxStream<'s, Result<Vec<Row>>>, &'s FromStore),
    Blobs(BoxStream<'s, Result<Vec<Blob>>>, &'s FromStore),
}

impl<'s> Reader<'s> {
    pub fn new(
        source: &'s mut Source,
        done: Option<&Mark>,
        tried: Option<Mark>,
    ) -> Result<Reader<'s>> {
        let from = match (source, done) {
            (Source::File(frames), None) => From::File(frames, 0),
            (Source::File(frames), Some(Mark::Offset(done))) => From::File(frames, *done),
            (Source::Store(from), None | Some(Mark::Key(_))) => {
                let after = match done {
                    Some(Mark::Key(last)) if from.store.abilities().ordered => {
                        Some(Key::new(format!("{last}\0"))?)
                    }
                    Some(_) => return Err(not_ordered(&*from.store)),
                    None => None,
                };
                from.open(after)?
            }
            _ => return Err(Error::invalid("the journal is of another kind of source")),
        };
        Ok(Reader { from, size: batch::FIRST, tried })
    }

    /// The next batch; none after the last record.
    pub fn next(&mut self, spare: &Spare) -> Result<Option<Batch>> {
        let (records, read, until) = match &mut self.from {
            From::File(frames, from) => {
                let Some(framed) = Frame::next(frames, *from, &mut self.size, spare)? else {
                    return Ok(None);
                };
                let offset = frames.offset();
                let tried = match (&self.tried, framed.frames.first()) {
                    (Some(Mark::Offset(tried)), Some(first)) => first.offset < *tried,
                    _ => false,
                };
                let records = Records::Framed(framed);
                return Ok(Some(Batch {
                    records,
                    read: offset,
                    until: Mark::Offset(offset),
                    tried,
                }));
            }
            From::Rows(rows, from) => {
                let Some(rows) = from.wait_for(rows.next())? else { return Ok(None) };
                let last = rows.last().map(|row| row.key.to_string());
                let first = rows.first().map(|row| row.key.to_string());
                (Records::Rows(rows), first, last)
            }
            From::Blobs(blobs, from) => {
                let Some(blobs) = from.wait_for(blobs.next())? else { return Ok(None) };
                let last = blobs.last().map(|blob| blob.key.to_string());
                let first = blobs.first().map(|blob| blob.key.to_string());
                (Records::Blobs(blobs), first, last)
            }
        };
        let tried = match (&self.tried, read) {
            (Some(Mark::Key(tried)), Some(first)) => first <= *tried,
            _ => false,
        };
        let until = Mark::Key(until.unwrap_or_default());
        Ok(Some(Batch { records, read: 0, until, tried }))
    }
}

fn not_ordered(store: &dyn Store) -> Error {
    let driver = store.abilities().driver;
    Error::unsupported(format!(
        "{driver} gives records in no order, so a copy from it cannot be resumed"
    ))
}

impl FromStore {
    fn wait_for<T>(&self, next: impl Future<Output = Option<Result<T>>>) -> Result<Option<T>> {
        self.runtime.block_on(next).transpose().map_err(|e| e.in_place(&*self.name))
    }

    fn open(&self, after: Option<Key>) -> Result<From<'_>> {
        self.opened(after).map_err(|e| e.in_place(&*self.name))
    }

    fn opened(&self, after: Option<Key>) -> Result<From<'_>> {
        let mut range = match self.part {
            None => KeyRange::all(),
            Some(part) => {
                let (index, of) = part.numbers();
                let of = u32::try_from(of).map_err(|_| Error::invalid("that many parts"))?;
                let mut ranges = self.runtime.block_on(self.store.split(of))?;
                if ranges.len() != of as usize {
                    let what = format!("a store cut into {} parts instead of {of}", ranges.len());
                    return Err(Error::new(crate::ErrorKind::Mismatch, what));
                }
                ranges.swap_remove(index as usize - 1)
            }
        };
        if let Some(after) = after {
            range.from = Some(after);
        }
        Ok(match self.store.blobs() {
            Some((blobs, _)) => From::Blobs(self.runtime.block_on(blobs.each(&range))?, self),
            None => From::Rows(self.runtime.block_on(self.store.scan(&range))?, self),
        })
    }
}

/// Writes batches to a target.
pub(super) enum Writer {
    File(Box<Sink>),
    Store(Box<Keeper>),
}

impl Writer {
    pub fn new(target: Target, options: &Options) -> Result<Writer> {
        Ok(match target {
            Target::File(sink) => Writer::File(sink),
            Target::Store(to) => Writer::Store(Box::new(Keeper::new(*to, options)?)),
        })
    }

    /// Ends the target; what was written has to agree with the counts.
    pub fn finish(self, counts: &mut Counts) -> Result<()> {
        match self {
            Writer::File(sink) => {
                let written = sink.finish()?;
                counts.bytes_out = written.bytes;
                match written.records == counts.written {
                    true => Ok(()),
                    false => Err(disagree(counts, written.records)),
                }
            }
            Writer::Store(keeper) => {
                let name = keeper.name().to_owned();
                keeper.finish(counts).map_err(|e| e.in_place(name))
            }
        }
    }
}

/// The error of counts that do not agree.
pub(super) fn disagree(counts: &Counts, there: u64) -> Error {
    let what = format!("the counts do not agree: {there} records are there; {counts:?}");
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
