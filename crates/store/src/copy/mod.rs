//! Copying records from one place to another: read, filter, convert, write, count.
//!
//! [`copy`] cuts the source into batches of whole records, converts them side by side and writes
//! them in order, in steady memory however long the source is. What is wrong with a record never
//! ends the run: the record is repaired or written with its faults and reported, or rejected and
//! counted; and the counts must agree in the end.
//!
//! Places are files and stores ([`Source`], [`Target`]); opening them is the work of `file/` and
//! `store/`, reading arguments that of `cli/`. Into a store, records go with keys, batch after
//! batch, each acknowledged before the next; a journal makes a copy that was ended early one that
//! can be resumed.

mod batch;
mod chosen;
mod convert;
mod duplicates;
mod journal;
mod keep;
mod kept_fields;
mod key;

mod output;
mod place;
mod reading;
mod select;
mod sought;

use std::{
    fmt,
    sync::{Arc, Mutex, mpsc},
};

pub use convert::Reject;
pub use duplicates::OnDuplicate;
pub use journal::{Errand, Journal};
pub use kept_fields::KeptFields;
pub use key::KeyRule;
pub use place::{FromStore, Source, Target, ToStore};
pub use select::{Fields, Path};
use serde::{Deserialize, Serialize};

use crate::{
    Error, ErrorKind, Result,
    format::{Takes, Wrapped},
    marc::Trouble,
    record::Kind,
    store::query::Condition,
};
use batch::Spare;
use chosen::{Chosen, LeftOut};
use convert::{Converted, Converter};
use duplicates::Prints;
use output::Made;
use place::{Resumed, Writer};
use reading::Reading;
use sought::Sought;

/// How records are stored in a source or target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// In a file, in this format.
    Bytes(Wrapped),
    /// In a store of bytes, in this format.
    Blobs(Wrapped),
    /// In a store, as documents, in which values of these kinds stay what they are.
    Documents(&'static [Kind]),
    /// In a store, in columns.
    Rows,
}

impl Form {
    /// The format, where there is one.
    pub fn wrapped(&self) -> Option<&Wrapped> {
        match self {
            Form::Bytes(format) | Form::Blobs(format) => Some(format),
            Form::Documents(_) | Form::Rows => None,
        }
    }

    /// Which values stay what they are there; none is told of columns, which have each its own type.
    fn keeps(&self) -> &[Kind] {
        match self {
            Form::Documents(keeps) => keeps,
            Form::Rows => &Kind::ALL,
            form => form.wrapped().map_or(&[], |form| form.format.info().keeps),
        }
    }

    /// Only single values have a place there.
    fn is_rows(&self) -> bool {
        match self {
            Form::Rows => true,
            form => form.wrapped().is_some_and(|w| w.format.info().takes == Takes::Rows),
        }
    }

    fn is_marc(&self) -> bool {
        self.wrapped().is_some_and(|w| w.format.info().takes == Takes::Marc)
    }
}

impl From<Wrapped> for Form {
    fn from(format: Wrapped) -> Form {
        Form::Bytes(format)
    }
}

/// What to do with a record that contradicts itself, or that the target cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Care {
    /// Reject what contradicts itself.
    Strict,
    /// Repair what contradicts itself if nothing is lost by it; reject what the target cannot hold.
    #[default]
    Careful,
    /// Repair, and replace what the target cannot hold (by U+FFFD), so that records are kept.
    Tolerant,
}

/// What to do with the encoding of MARC records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recode {
    /// Nothing.
    #[default]
    Keep,
    /// MARC-8 to UTF-8, and nothing else: a leader that is wrong about UTF-8 stays as it is.
    Needed,
    /// To UTF-8, and say so in the leader of every record.
    Utf8,
    /// To MARC-8, and say so in the leader.
    Marc8,
}

/// How to copy.
#[derive(Debug, Clone)]
pub struct Options {
    /// The source's form.
    pub from: Form,
    /// The target's form.
    pub to: Form,
    /// Where the keys come from, for a target that is a store. For a file made of a store's records:
    /// which field is known to hold the key, so that it is not written beside it.
    pub key: KeyRule,
    /// Write the keys of a store's records into a file: as `_key`, where no field gives them.
    pub keys: bool,
    /// Which record of several with the same key a store keeps.
    pub on_duplicate: OnDuplicate,
    /// Conditions that all have to hold for a record to go along.
    pub conditions: Vec<Condition>,
    /// The fields that are kept; all where none are named.
    pub fields: Option<Fields>,
    /// What to do with bad records.
    pub care: Care,
    /// What to do with the encoding of MARC records.
    pub recode: Recode,
    /// Compose letters and accents when recoding from MARC-8.
    pub nfc: bool,
    /// How many workers convert; 0 means one for each core.
    pub workers: usize,
}

impl Options {
    /// From one format to another, the way people mean it: MARC-8 becomes UTF-8 in every format but
    /// ISO 2709.
    pub fn new(from: impl Into<Form>, to: impl Into<Form>) -> Self {
        let to = to.into();
        let recode = match to.wrapped().map(|to| to.format.name()) {
            Some("marc21") => Recode::Keep,
            _ => Recode::Needed,
        };
        Options {
            from: from.into(),
            to,
            key: KeyRule::default(),
            keys: true,
            on_duplicate: OnDuplicate::default(),
            conditions: Vec::new(),
            fields: None,
            care: Care::default(),
            recode,
            nfc: false,
            workers: 0,
        }
    }

    /// Records are carried as MARC records: one side is made for them.
    pub fn is_marc(&self) -> bool {
        self.from.is_marc() || self.to.is_marc()
    }

    /// Records or fields are chosen.
    fn chooses(&self) -> bool {
        !self.conditions.is_empty() || self.fields.is_some()
    }

    /// Nothing is chosen: any value can go through, not only documents.
    fn as_it_is(&self) -> bool {
        !self.chooses() && matches!(self.to, Form::Bytes(_))
    }

    /// Records of the source may have the same keys: those of a store have not.
    fn may_have_duplicates(&self) -> bool {
        match self.key {
            KeyRule::Usual => matches!(self.from, Form::Bytes(_)),
            KeyRule::Field(_) => true,
            KeyRule::Fresh => false,
        }
    }

    fn check(&self) -> Result<()> {
        Chosen::new(self)?;
        if self.is_marc() {
            self.fields.iter().try_for_each(Fields::check_marc)?;
        }
        if self.from.is_marc() && self.to.is_rows() && self.fields.is_none() {
            let to = self.to.wrapped().map_or("a table with columns", |to| to.format.name());
            let what = format!("a MARC record does not fit {to} unless its columns are named");
            let hint = "name the columns, for example --fields 001,100a,245ab";
            return Err(Error::invalid(what).with_hint(hint));
        }
        Ok(())
    }

    fn workers(&self) -> usize {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        match (self.workers, self.to.wrapped().map(|to| to.format.info().takes)) {
            // The header line of the first row decides about all others.
            (_, Some(Takes::Rows)) => 1,
            (0, _) if matches!(self.to, Form::Bytes(_)) => processors,
            // One is for the store.
            (0, _) => (processors - 1).max(1),
            (n, _) => n,
        }
    }
}

/// The counts of a copy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Records met in the source.
    pub read: u64,
    /// Records written.
    pub written: u64,
    /// Records left out by a condition.
    pub left_out: u64,
    /// Records that could not be written.
    pub rejected: u64,
    /// Records that gave way to others with the same keys.
    #[serde(default)]
    pub duplicates: u64,
    /// Of those written, how many had to be repaired, and have nothing wrong now.
    pub repaired: u64,
    /// Of those written, how many are not right: something wrong was kept as it was, replaced or left out.
    #[serde(default)]
    pub faulty: u64,
    /// Records read back from a store, and found the same.
    pub verified: u64,
    /// Bytes read, uncompressed; of files only.
    pub bytes_in: u64,
    /// Bytes written, uncompressed; to files only.
    pub bytes_out: u64,
}

impl Counts {
    /// Whether nothing was written and at least one record was rejected.
    pub fn all_rejected(&self) -> bool {
        self.written == 0 && self.rejected > 0
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { read, written, left_out, rejected, duplicates, .. } = self;
        write!(
            f,
            "{read} records read, {written} written, {left_out} left out, {rejected} rejected, \
             {duplicates} duplicates"
        )
    }
}

/// The result of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// The counts.
    pub counts: Counts,
    /// Fields that were asked for by name, and that no record has.
    pub missing: Vec<String>,
    /// The target is as it was before: fields are missing, or it is a file, and all records were
    /// rejected.
    pub kept_old: bool,
    /// Where the conditions leave out every record: which of the fields they compare hold values of other kinds, and
    /// what to write instead.
    pub hints: Vec<String>,
}

/// How many batches wait at most for the first record that has a field which is asked for.
const HELD: usize = 24;

fn nothing_found(sought: &Sought) -> Error {
    let names: Vec<_> = sought.names().collect();
    let what = format!(
        "none of the first records has a field of {}; nothing was written; if later records do, \
         also name a field that all have",
        names.join(", ")
    );
    Error::new(ErrorKind::NotFound, what)
}

/// Callbacks that report the progress of a copy, called after each batch, in order.
pub trait Follower {
    /// So far the run has come.
    fn counts(&mut self, counts: &Counts);
    /// Something is wrong with a record.
    fn trouble(&mut self, trouble: &Trouble);
    /// A record was not written.
    ///
    /// # Errors
    /// End the run.
    fn reject(&mut self, reject: &Reject) -> Result<()>;
    /// How many bytes of rejected records are kept, and will stay even if the run is killed.
    ///
    /// # Errors
    /// Where they cannot be written.
    fn rejected_bytes(&mut self) -> Result<u64> {
        Ok(0)
    }
}

/// Copies all records of `source` to `target`, whose forms are those of `options`. Not to be called
/// on a runtime that drives the stores.
///
/// A file is left as it was where all records were rejected, or where a field that is asked for by
/// name is in no record; a store where no such field is in any record. A file becomes empty where
/// the source is, or where the conditions leave out all.
///
/// # Errors
/// From source and target; [`Invalid`](ErrorKind::Invalid) for options that contradict one another;
/// [`Mismatch`](ErrorKind::Mismatch) where the counts do not agree in the end, or a record that was
/// read back differs. Never for a bad record.
pub fn copy(
    source: Source,
    target: Target,
    options: &Options,
    follower: &mut dyn Follower,
) -> Result<Copied> {
    options.check()?;
    let sought = Sought::new(options.fields.as_ref());
    let left_out = LeftOut::new(options)?;
    let workers = options.workers();
    let into_store = matches!(target, Target::Store(_));
    let prints = (into_store && options.may_have_duplicates()).then(Prints::new);
    let converters = (0..workers)
        .map(|_| Converter::new(options, &sought, &left_out, prints.clone()))
        .collect::<Result<Vec<_>>>()?;
    let (done, tried) = match &target {
        Target::Store(to) => to
            .journal
            .as_ref()
            .map_or((None, None), |journal| (journal.done.clone(), journal.tried.clone())),
        Target::File(_) => (None, None),
    };
    let (done, mut counts) = done.unzip();
    let mut counts = counts.take().unwrap_or_default();
    let mut writer = Writer::new(target, options, prints)?;
    let spare = Arc::new(Spare::default());
    // Of what an earlier run has written, only the keys are of use: to find duplicates of them.
    let again = options.may_have_duplicates();
    // It did not tell which fields it found.
    let half_seen = done.is_some() && !again;
    let resumed = Resumed { done, tried, again };
    let (reading, jobs, order) = Reading::start(source, resumed, workers, spare.clone());
    let jobs = Mutex::new(jobs);
    let mut one = |mut done: Converted, waste: &mpsc::SyncSender<Made>| {
        let until = done.until.clone();
        match &mut writer {
            Writer::File(sink) => {
                sink.put_glued(&done.made.bytes, done.written)?;
                spare.give(std::mem::take(&mut done.made.bytes));
                settle(&mut counts, done, follower)
            }
            Writer::Store(keeper) if done.past => keeper.remember(&done),
            Writer::Store(keeper) => {
                keeper.begin(&until)?;
                keeper.write(&mut done)?;
                let made = std::mem::take(&mut done.made);
                settle(&mut counts, done, follower)?;
                keeper.agrees()?;
                keeper.end(&until, &counts, follower.rejected_bytes()?)?;
                let _ = waste.send(made);
                Ok(())
            }
        }
    };
    // Records of which nothing is left must not take the place of a store's.
    let hold = options.fields.is_some() && !half_seen && into_store;
    let mut held = hold.then(Vec::new);
    let mut next = |done: Converted, waste: &mpsc::SyncSender<Made>| match &mut held {
        Some(batches) if !done.past && !sought.any() => {
            batches.push(done);
            match batches.len() > HELD {
                true => Err(nothing_found(&sought)),
                false => Ok(()),
            }
        }
        _ => {
            let before = held.take().into_iter().flatten();
            before.chain([done]).try_for_each(|done| one(done, waste))
        }
    };
    let ended = std::thread::scope(|scope| {
        for mut converter in converters {
            let (jobs, spare) = (&jobs, &*spare);
            scope.spawn(move || {
                loop {
                    let job = jobs.lock().expect("no worker panics with the lock").recv();
                    let Ok((batch, back)) = job else { break };
                    // Nobody waits for it where the run has ended with an error.
                    let _ = back.send(converter.convert(batch, spare));
                }
            });
        }
        // What was written is let go beside the next batch: many small pieces take a while.
        let (waste, waste_out) = mpsc::sync_channel::<Made>(1);
        scope.spawn(move || waste_out.into_iter().for_each(drop));
        let ended = order.into_iter().try_for_each(|awaited| {
            let done = awaited?.recv().map_err(|_| {
                let what = "a worker ended early; this is a bug in steelyard";
                Error::new(ErrorKind::Mismatch, what)
            })?;
            next(done, &waste)
        });
        reading.close();
        ended
    });
    reading.end(ended)?;
    // None of these is written: all were left out or rejected, or fields are missing.
    let nothing_written = held.is_some();
    held.into_iter().flatten().try_for_each(|done| settle(&mut counts, done, follower))?;
    let missing = if half_seen { Vec::new() } else { sought.missing() };
    let wanted = match into_store {
        true => missing.is_empty() || !nothing_written,
        false => missing.is_empty() && !counts.all_rejected(),
    };
    let none_fits = counts.left_out > 0 && counts.left_out == counts.read;
    let hints = if none_fits { left_out.told() } else { Vec::new() };
    let kept_old = writer.finish(&mut counts, wanted)?;
    if kept_old {
        counts.written = 0;
        return Ok(Copied { counts, missing, kept_old, hints });
    }
    let Counts { read, written, left_out, rejected, duplicates, .. } = counts;
    if read != written + left_out + rejected + duplicates {
        let what = format!("the counts do not agree: {counts}; this is a bug in steelyard");
        return Err(Error::new(ErrorKind::Mismatch, what));
    }
    Ok(Copied { counts, missing, kept_old, hints })
}

/// Adds what came of a batch, and tells the follower in the order of the source.
fn settle(counts: &mut Counts, done: Converted, follower: &mut dyn Follower) -> Result<()> {
    let before = counts.read;
    counts.bytes_in = counts.bytes_in.max(done.bytes);
    counts.read += done.read;
    counts.written += done.written;
    counts.duplicates += done.duplicates;
    counts.verified += done.verified;
    counts.left_out += done.left_out;
    counts.rejected += done.rejects.len() as u64;
    counts.repaired += done.repaired;
    counts.faulty += done.faulty;
    for mut trouble in done.troubles {
        trouble.record += before;
        follower.trouble(&trouble);
    }
    for mut reject in done.rejects {
        reject.record += before;
        follower.reject(&reject)?;
    }
    follower.counts(counts);
    Ok(())
}
