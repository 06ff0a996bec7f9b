//! `bench formats`: which format, on these records. Sizes, speed in memory and through files,
//! plain and compressed, and what is lost.
//!
//! The published study this answers (MARC formats, 18,881 records) timed two runs without spread,
//! never timed XML, and recommended compressed newline-delimited JSON, which it had not timed. Here
//! every cell is proved to return its records first, and timed by the rules of measuring.
//!
//! This file and its folder know formats; the rest of the room does not.

mod contender;
mod files;
pub mod load;
mod plan;
mod records;

use std::{
    borrow::Cow,
    collections::BTreeSet,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

pub use records::Records;

use self::{
    contender::{Contender, Null},
    files::Pack,
    records::Item,
};
use super::{
    instruments::Real,
    machine,
    results::{self, Dataset, Plan, Results, SCHEMA},
    run::{self, Entry, Progress, Stage, Watch},
    save,
    scratch::Scratch,
    trial,
};
use crate::{Error, Result, format::Format};

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
    /// Ends the run after the round in which it is set.
    pub stop: Option<&'a AtomicBool>,
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

    /// What fits in half a minute, for some thousand records: the guided tour.
    pub fn tour(records: &'a Records) -> Self {
        let mut options = Options::new(records);
        (options.plan.stop.min_starts, options.plan.stop.budget) = (8, 30.0);
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
    let scratch = Scratch::new(options.folder.as_deref())?;
    let wanted = match options.formats.is_empty() {
        true => Format::ALL.to_vec(),
        false => options.formats.clone(),
    };
    let packs = if options.compressed { Pack::ALL.to_vec() } else { vec![Pack::Plain] };
    let mut results = blank(options);
    let mut proving = |format: Format, cell: usize| {
        progress(Progress {
            stage: Stage::Proving,
            rounds: 0,
            cell,
            cells: 2 * wanted.len(),
            competitor: format.name(),
            phase: "",
            seconds: 0.0,
            budget: options.plan.stop.budget,
        });
    };
    let mut taking = Vec::new();
    let mut left_out = BTreeSet::new();
    for (i, &format) in wanted.iter().enumerate() {
        proving(format, i);
        let (proof, refused) = contender::prove(format, records);
        let mut row = results::Contender { name: format.name().into(), ..Default::default() };
        if refused.len() as f64 <= FEW * records.len() as f64 {
            left_out.extend(refused);
            taking.push((format, proof.equal));
        } else {
            row.refused = proof.first.clone();
        }
        row.proof = Some(proof);
        results.competitors.push(row);
    }
    let records = &remaining(records, &left_out, &mut results)[..];
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for (i, &(format, mut equal)) in taking.iter().enumerate() {
        proving(format, wanted.len() + i);
        if !left_out.is_empty() {
            equal = contender::prove(format, records).0.equal;
        }
        let folder = scratch.path().join(format.name());
        let mut contender = Contender::new(format, records, equal, folder, options.threads);
        let sizes = contender.put_into_files(&packs).map_err(|e| e.in_place(format.name()))?;
        let row = results.competitors.iter_mut().find(|c| c.name == format.name());
        if let Some(row) = row {
            row.sizes = sizes.into_iter().map(|(p, n)| (p.name().to_owned(), n)).collect();
        }
        entries.push(Entry { name: format.name().into(), competitor: Box::new(contender) });
    }
    let taking: Vec<Format> = taking.into_iter().map(|t| t.0).collect();
    let baseline = baseline(options.baseline, &taking)?;
    results.baseline = baseline.name().to_owned();
    results.phases = plan::phases(records.len() as u64, &packs);
    results.contrasts = plan::contrasts(&taking, baseline.name(), &results.phases);
    if options.trial {
        let equal = |c: &results::Contender| c.proof.as_ref().map_or(0, |p| p.equal);
        let row = results.competitor(baseline.name()).cloned().unwrap_or_default();
        let contender = |name: &str| {
            let folder = scratch.path().join(name);
            Contender::new(baseline, records, equal(&row), folder, options.threads)
        };
        let (mut again, mut slowed) = (contender(trial::AGAIN), contender(trial::SLOWED));
        again.put_into_files(&packs)?;
        slowed.put_into_files(&packs)?;
        for name in [trial::AGAIN, trial::SLOWED] {
            results.competitors.push(results::Contender { name: name.into(), ..row.clone() });
        }
        entries.push(Entry { name: trial::AGAIN.into(), competitor: Box::new(again) });
        let slowed = Box::new(trial::Slowed(slowed));
        entries.push(Entry { name: trial::SLOWED.into(), competitor: slowed });
    }
    results.competitors.push(results::Contender {
        name: "null".into(),
        null: true,
        ..Default::default()
    });
    entries.push(Entry { name: "null".into(), competitor: Box::new(Null::new(records)) });

    let mut watch = Watch {
        progress,
        save: &mut |results| match &options.out {
            Some(path) => save::write(results, path),
            None => Ok(()),
        },
        stop: &|| options.stop.is_some_and(|stop| stop.load(Relaxed)),
    };
    run::run(&mut results, &mut entries, &mut Real::new(scratch.path()), &mut watch)?;
    Ok(results)
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
            "read from and written to the page cache, not synced (T1); compressed ones as a whole, gzip 6 and zstd 3, on one thread",
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
