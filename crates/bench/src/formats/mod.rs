//! `bench formats`: which format, on these records. Sizes, speed in memory and through files,
//! plain and compressed, and what is lost.
//!
//! The published study this answers (MARC formats, 18,881 records) timed two runs without spread,
//! never timed XML, and recommended compressed newline-delimited JSON, which it had not timed. Here
//! every cell is proved to return its records first, and timed by the rules of measuring.
//!
//! This file and its folder know formats; the rest of the room does not.

pub(super) mod code;
mod contender;
mod files;
pub mod load;
mod plan;
mod records;

use std::{
    borrow::Cow,
    cell::RefCell,
    collections::BTreeSet,
    path::{Path, PathBuf},
    rc::Rc,
};

pub use records::Records;

use self::{
    contender::{Contender, Null, Shared},
    files::Pack,
    records::Item,
};
use super::{
    instruments::Real,
    machine,
    results::{self, Dataset, Plan, Results, SCHEMA},
    run::{self, Competitor, Entry, Progress, Watch},
    save,
    scratch::Scratch,
    stop::Stop,
    trial,
};
use crate::{
    Error, ErrorKind, Result,
    format::{Format, Takes},
};

/// A format that refuses a larger share of the records than this is not timed; for one that
/// refuses fewer, those are left out for all.
const FEW: f64 = 0.05;

/// What to weigh, and how.
#[derive(Debug)]
pub struct Options<'a> {
    /// The records; see [`Dataset`] for what is said about them.
    pub records: &'a Records,
    /// Where they come from. `records` and `kind` are filled in.
    pub dataset: Dataset,
    /// Which formats; empty for all.
    pub formats: Vec<Format>,
    /// Compared with this one; the first of marc21 and json that takes the records otherwise.
    pub baseline: Option<Format>,
    /// Whether to time files compressed with gzip and zstd too.
    pub compressed: bool,
    /// Whether to put the method on trial: the baseline runs again, and slowed by 5 %.
    pub trial: bool,
    /// Threads to pack and unpack files with: 1 to see what it costs, more to see how long it takes.
    pub threads: usize,
    /// Seed, stop rule and the rest.
    pub plan: Plan,
    /// Files are written here, into a folder that is removed after; the system's place for
    /// temporary files otherwise.
    pub folder: Option<PathBuf>,
    /// The results are written here after each round.
    pub out: Option<PathBuf>,
    /// Ends the run within a record.
    pub stop: Option<&'a Stop>,
}

impl<'a> Options<'a> {
    /// All formats on these records, with the usual plan: two minutes at most.
    pub fn new(records: &'a Records) -> Self {
        Options {
            records,
            dataset: Dataset { name: "records".into(), ..Dataset::default() },
            formats: Vec::new(),
            baseline: None,
            compressed: true,
            trial: false,
            threads: 1,
            plan: Plan::default(),
            folder: None,
            out: None,
            stop: None,
        }
    }

    /// What fits in 20 seconds, for some thousand records: the guided tour. Formats for tables of single values have no
    /// place for MARC records, and are left out.
    pub fn tour(records: &'a Records) -> Self {
        let mut options = Options::new(records);
        options.formats = Format::ALL.to_vec();
        options.formats.retain(|format| format.info().takes != Takes::Rows);
        (options.plan.window_ns, options.plan.stop.budget) = (20_000_000, 18.0);
        options
    }

    /// As published: marc21 and the five formats it was compared with, and two rounds.
    pub fn as_published(records: &'a Records) -> Self {
        let mut options = Options::new(records);
        let published = ["marc21", "json", "sonic", "msgpack", "marshal", "marcxml"];
        options.formats = published.iter().filter_map(|name| Format::named(name).ok()).collect();
        let stop = &mut options.plan.stop;
        (stop.max_rounds, stop.precision, stop.budget) = (2, 0.0, f64::from(u32::MAX));
        options
    }
}

/// Proves, times and compares. Results are also what [`Options::out`] was given.
///
/// # Errors
/// [`Invalid`](crate::ErrorKind::Invalid) where there is nothing to do,
/// [`Mismatch`](crate::ErrorKind::Mismatch) where counts do not agree, and those of files.
pub fn run(options: &Options<'_>, progress: &mut dyn FnMut(Progress<'_>)) -> Result<Results> {
    match options.records {
        Records::Marc(records) => weigh(options, records, progress),
        Records::Documents(records) => weigh(options, records, progress),
    }
}

fn weigh<I: Item>(
    options: &Options<'_>,
    records: &[I],
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Results> {
    if records.is_empty() {
        return Err(Error::invalid("no records to weigh formats with"));
    }
    let mut results = blank(options);
    let scratch = Scratch::new(options.folder.as_deref())?;
    let (taking, left_out) = prove_all(options, records, &mut results, progress)?;
    let records = &remaining(records, &left_out, &mut results)[..];
    if records.is_empty() {
        return Err(Error::invalid("there is no record that all of these formats can hold")
            .with_hint("name fewer formats with --formats"));
    }
    let mut entries = enter_all(options, &taking, records, scratch.path(), &mut results, progress)?;
    results.competitors.push(results::Contender {
        name: "null".into(),
        null: true,
        ..Default::default()
    });
    let null = Null::new(records, Stop::given(options.stop));
    entries.push(Entry { name: "null".into(), competitor: Box::new(null) });

    let mut watch = Watch {
        progress,
        save: &mut |results| match &options.out {
            Some(path) => save::write(results, path),
            None => Ok(()),
        },
        stop: &|| options.stop.is_some_and(Stop::is_set),
    };
    run::run(&mut results, &mut entries, &mut Real::new(scratch.path()), &mut watch)?;
    Ok(results)
}

/// A format that takes part.
struct Taking {
    format: Format,
    /// How many of the records that are timed come back equal.
    equal: u64,
}

/// Proves every format. Returns those that take part, and the records that one or another of them
/// cannot hold.
///
/// # Errors
/// Where the run is to end.
fn prove_all<I: Item>(
    options: &Options<'_>,
    records: &[I],
    results: &mut Results,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<(Vec<Taking>, BTreeSet<usize>)> {
    let stop = Stop::given(options.stop);
    let mut wanted: Vec<Format> = Vec::new();
    for &format in if options.formats.is_empty() { Format::ALL } else { &options.formats } {
        if !wanted.contains(&format) {
            wanted.push(format);
        }
    }
    let (mut taking, mut left_out) = (Vec::new(), BTreeSet::new());
    for (i, &format) in wanted.iter().enumerate() {
        proving(options, format, (i, 2 * wanted.len()), progress);
        let proved = contender::prove(format, records, &stop)?;
        let takes = proved.refused.len() as f64 <= FEW * records.len() as f64;
        results.competitors.push(results::Contender {
            name: format.name().into(),
            refused: proved.proof.first.clone().filter(|_| !takes),
            proof: Some(proved.proof),
            code: Some(code::of(I::code(format), &results.software)),
            ..Default::default()
        });
        if takes {
            left_out.extend(proved.refused);
            taking.push((format, proved.changed));
        }
    }
    let kept = (records.len() - left_out.len()) as u64;
    let changed = |of: &[usize]| of.iter().filter(|i| !left_out.contains(i)).count() as u64;
    let taking =
        taking.iter().map(|(format, c)| Taking { format: *format, equal: kept - changed(c) });
    Ok((taking.collect(), left_out))
}

/// Makes a competitor of every format that takes part, with its files, and plans the phases.
fn enter_all<'a, I: Item>(
    options: &Options<'_>,
    all: &[Taking],
    records: &'a [I],
    folder: &Path,
    results: &mut Results,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Vec<Entry<'a>>> {
    let mut formats: Vec<Format> = all.iter().map(|t| t.format).collect();
    baseline(options.baseline, &formats)?;
    let packs = if options.compressed { &Pack::ALL[..] } else { &[Pack::Plain] };
    let record: Shared<I> = Rc::new(RefCell::new(I::empty()));

    let enter = |taking: &Taking, name: &str| -> Result<_> {
        let (format, equal) = (taking.format, taking.equal);
        let (folder, record) = (folder.join(name), record.clone());
        let mut made = Contender::new(format, records, equal, folder, options.threads, record);
        made.stop = Stop::given(options.stop);
        let sizes = made.put_into_files(packs).map_err(|e| e.in_place(name))?;
        Ok((made, sizes))
    };
    let mut entries: Vec<Entry<'a>> = Vec::new();
    for (i, taking) in all.iter().enumerate() {
        let name = taking.format.name();
        let n = all.len();
        proving(options, taking.format, (n + i, 2 * n), progress);
        let row = results.competitors.iter_mut().find(|c| c.name == name);
        match (enter(taking, name), row) {
            (Ok((made, sizes)), Some(row)) => {
                row.sizes = sizes.into_iter().map(|(p, n)| (p.name().to_owned(), n)).collect();
                entries.push(Entry { name: name.into(), competitor: Box::new(made) });
            }
            // It holds the records in memory and not in a file: the others are none the worse for it.
            (Err(e), Some(row)) if is_refused(&e) => {
                row.refused = Some(unfiled(&e));
                formats.retain(|format| *format != taking.format);
            }
            (made, _) => drop(made?),
        }
    }
    let baseline = baseline(options.baseline, &formats)?;
    results.baseline = baseline.name().to_owned();
    results.phases = plan::phases(records.len() as u64, packs);
    results.contrasts = plan::contrasts(&formats, baseline.name(), &results.phases);
    let tried = all.iter().find(|t| options.trial && t.format == baseline);
    if let Some(taking) = tried {
        let row = results.competitor(baseline.name()).cloned().unwrap_or_default();
        for name in [trial::AGAIN, trial::SLOWED] {
            let made = enter(taking, name)?.0;
            let competitor: Box<dyn Competitor + 'a> = match name {
                trial::SLOWED => Box::new(trial::Slowed(made)),
                _ => Box::new(made),
            };
            entries.push(Entry { name: name.into(), competitor });
            results.competitors.push(results::Contender {
                name: name.into(),
                sizes: Default::default(),
                ..row.clone()
            });
        }
    }
    Ok(entries)
}

/// Why records cannot be put into a file, without the name of the file, which nobody knows.
fn unfiled(e: &Error) -> String {
    let which = e.place().record.map_or(String::new(), |number| format!("record {number}: "));
    format!("in a file, {which}{}", e.context())
}

/// Whether it is a format that refuses records, and not a file or counts that are wrong.
fn is_refused(e: &Error) -> bool {
    use ErrorKind::{Invalid, Malformed, TooLarge, Unsupported};
    matches!(e.kind(), Invalid | Malformed | TooLarge | Unsupported)
}

fn proving(
    options: &Options<'_>,
    format: Format,
    (cell, cells): (usize, usize),
    progress: &mut dyn FnMut(Progress<'_>),
) {
    progress(Progress {
        cell,
        cells,
        competitor: format.name(),
        budget: options.plan.stop.budget,
        ..Progress::default()
    });
}

/// The records that every format taking part can hold, so that all are timed on the same ones.
fn remaining<'a, I: Item>(
    records: &'a [I],
    left_out: &BTreeSet<usize>,
    results: &mut Results,
) -> Cow<'a, [I]> {
    let data = &mut results.dataset;
    data.of = data.of.max(records.len() as u64);
    data.records = (records.len() - left_out.len()) as u64;
    if left_out.is_empty() {
        return Cow::Borrowed(records);
    }
    let n = left_out.len();
    let (are, them) = if n == 1 {
        ("1 record is".to_owned(), "it")
    } else {
        (format!("{n} records are"), "them")
    };
    data.remarks.push(format!(
        "{are} left out for all formats, because one or another cannot hold {them}: see Fidelity."
    ));
    let kept = records.iter().enumerate().filter(|(i, _)| !left_out.contains(i));
    Cow::Owned(kept.map(|(_, record)| record.clone()).collect())
}

fn blank(options: &Options<'_>) -> Results {
    let mut dataset = options.dataset.clone();
    dataset.kind = options.records.kind().into();
    let settings = [
        (
            "Files",
            "read from and written to the page cache, not synced (T1); compressed ones as a whole, gzip 6 and zstd 3, on a thread beside that of the format",
        ),
        (
            "Memory",
            "allocations for each record and peak memory come from a separate untimed pass; a record that was read is dropped, or its memory used again, when the next one is read",
        ),
    ];
    Results {
        schema: SCHEMA,
        bench: "formats".into(),
        started: machine::now(),
        plan: options.plan.clone(),
        software: machine::software(),
        machine: machine::describe(),
        settings: settings.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        dataset,
        ..Results::default()
    }
}

fn baseline(asked: Option<Format>, taking: &[Format]) -> Result<Format> {
    let known = |name: &str| taking.iter().copied().find(|f| f.name() == name);
    match asked {
        Some(format) if taking.contains(&format) => Ok(format),
        Some(format) => Err(Error::invalid(format!(
            "{} cannot be the baseline: it does not take these records, or is not among the formats",
            format.name()
        ))),
        None => known("marc21")
            .or_else(|| known("json"))
            .or(taking.first().copied())
            .ok_or_else(|| Error::invalid("none of these formats takes these records")),
    }
}

#[cfg(test)]
mod tests;
