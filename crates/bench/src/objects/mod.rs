//! `bench objects`: what it costs to turn a program's objects into bytes and back, and what a wrap
//! like Base64 adds.
//!
//! The published test this answers (Ruby's Marshal, 1,000 to 100,000 objects) added the percentages
//! that Base64 costs in dumping and in loading, where both together cost about as much as either;
//! and its bytes needed no Base64 at all. Here the seven series run for every format and wrap.

mod contender;
mod plan;

use std::path::PathBuf;

use self::contender::{Contender, Null};
use super::{
    formats::code,
    instruments::Real,
    machine,
    results::{self, Dataset, Plan, Results, SCHEMA},
    run::{self, Entry, Progress, Watch},
    save,
    scratch::Scratch,
    stop::Stop,
};
use crate::{
    Error, Result,
    format::{Format, Wrap},
    record::dataset::objects::{Object, object},
};

/// What to weigh, and how.
#[derive(Debug)]
pub struct Options<'a> {
    /// The points of the curves: how many objects.
    pub counts: Vec<u64>,
    /// Which formats; empty for all.
    pub formats: Vec<Format>,
    /// What is put around their bytes, one at a time.
    pub wraps: Vec<Wrap>,
    /// Compared with this one; json otherwise.
    pub baseline: Option<Format>,
    /// Seed, stop rule and the rest.
    pub plan: Plan,
    /// The results are written here after each round.
    pub out: Option<PathBuf>,
    /// Ends the run within an object.
    pub stop: Option<&'a Stop>,
}

impl Default for Options<'_> {
    /// Seven points, Base64 both ways, two minutes at most.
    fn default() -> Self {
        Options {
            counts: vec![1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000],
            formats: Vec::new(),
            wraps: vec![Wrap::Base64, Wrap::Base64Lines],
            baseline: None,
            plan: Plan { window_ns: 20_000_000, warm_up_ns: 1_000_000, ..Plan::default() },
            out: None,
            stop: None,
        }
    }
}

impl Options<'_> {
    /// What fits in a quarter of a minute: the guided tour.
    pub fn tour() -> Self {
        let mut options = Options {
            counts: vec![1_000, 10_000],
            wraps: vec![Wrap::Base64],
            ..Options::default()
        };
        (options.plan.stop.min_starts, options.plan.stop.budget) = (8, 15.0);
        options
    }

    /// As published: 1,000 to 100,000 objects in steps of 1,000, each case 10 times, Ruby's Base64.
    pub fn as_published() -> Self {
        let mut options = Options {
            counts: (1..=100).map(|n| n * 1_000).collect(),
            wraps: vec![Wrap::Base64Lines],
            ..Options::default()
        };
        // A hundred counts, ten times each: longer windows would take hours.
        options.plan.window_ns = 2_000_000;
        let stop = &mut options.plan.stop;
        (stop.max_rounds, stop.precision, stop.budget) = (10, 0.0, f64::from(u32::MAX));
        options
    }
}

/// Proves, times and compares. Results are also what [`Options::out`] was given.
///
/// # Errors
/// [`Invalid`](crate::ErrorKind::Invalid) where there is nothing to do,
/// [`Mismatch`](crate::ErrorKind::Mismatch) where counts do not agree, and those of files.
pub fn run(options: &Options<'_>, progress: &mut dyn FnMut(Progress<'_>)) -> Result<Results> {
    let mut counts = options.counts.clone();
    counts.sort_unstable();
    counts.dedup();
    let Some(&most) = counts.last().filter(|&&most| most > 0 && counts[0] > 0) else {
        return Err(Error::invalid("no objects to weigh formats with: give counts of 1 or more"));
    };
    let seed = options.plan.seed;
    let stop = Stop::given(options.stop);
    let made = |n| stop.check().map(|()| object(seed, n));
    let objects = (0..most).map(made).collect::<Result<Vec<Object>>>()?;
    let wanted = match options.formats.is_empty() {
        true => Format::ALL.to_vec(),
        false => options.formats.clone(),
    };
    let mut results = blank(options, most);
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for (i, &format) in wanted.iter().enumerate() {
        progress(Progress {
            cell: i,
            cells: wanted.len(),
            competitor: format.name(),
            budget: options.plan.stop.budget,
            ..Progress::default()
        });
        let mut contender = Contender::new(format, &options.wraps, &objects, &stop)?;
        let (proof, sizes) = contender.prove()?;
        let mut row = results::Contender {
            name: format.name().into(),
            code: Some(code::of(format.info().values, &results.software)),
            ..Default::default()
        };
        // Which records a format takes is known beforehand; half an object is none.
        if proof.equal < proof.records {
            row.refused = proof.first.clone();
        } else {
            let names =
                [String::new()].into_iter().chain(options.wraps.iter().map(Wrap::to_string));
            row.sizes = names.zip(sizes).collect();
            entries.push(Entry { name: row.name.clone(), competitor: Box::new(contender) });
        }
        row.proof = Some(proof);
        results.competitors.push(row);
    }
    let taking: Vec<String> = entries.iter().map(|e| e.name.clone()).collect();
    let asked = options.baseline.map_or("json", Format::name);
    results.baseline = match taking.iter().find(|n| *n == asked).or(taking.first()) {
        Some(name) if options.baseline.is_none() || name == asked => name.clone(),
        Some(_) => {
            return Err(Error::invalid(format!(
                "{asked} cannot be the baseline: it does not take objects"
            )));
        }
        None => return Err(Error::invalid("none of these formats takes objects")),
    };
    results.phases = plan::phases(&counts, &options.wraps);
    results.contrasts = plan::contrasts(&taking, &options.wraps, most);
    results.competitors.push(results::Contender {
        name: "null".into(),
        null: true,
        ..Default::default()
    });
    entries.push(Entry { name: "null".into(), competitor: Box::new(Null(&objects, stop.clone())) });

    let scratch = Scratch::new(None)?;
    let mut watch = Watch {
        progress,
        save: &mut |results| match &options.out {
            Some(path) => save::write(results, path),
            None => Ok(()),
        },
        stop: &|| stop.is_set(),
    };
    run::run(&mut results, &mut entries, &mut Real::new(scratch.path()), &mut watch)?;
    Ok(results)
}

fn blank(options: &Options<'_>, most: u64) -> Results {
    let settings = [(
        "Memory",
        "in memory only; objects made or loaded are dropped inside the timed window, bytes go into a buffer used again",
    )];
    Results {
        schema: SCHEMA,
        bench: "objects".into(),
        started: machine::now(),
        plan: options.plan.clone(),
        software: machine::software(),
        machine: machine::describe(),
        settings: settings.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        dataset: Dataset {
            name: format!("objects, seed {}", options.plan.seed),
            records: most,
            of: most,
            kind: "objects".into(),
            ..Dataset::default()
        },
        ..Results::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::StopRule;

    #[test]
    fn seven_series_run_for_every_format_that_takes_objects() {
        let options = Options {
            counts: vec![50, 20],
            formats: ["json", "msgpack", "marc21"].map(|f| Format::named(f).unwrap()).into(),
            wraps: vec![Wrap::Base64],
            plan: Plan {
                window_ns: 50_000,
                warm_up_ns: 10_000,
                resamples: 200,
                stop: StopRule { min_starts: 2, max_rounds: 4, ..StopRule::default() },
                ..Plan::default()
            },
            ..Options::default()
        };
        let results = run(&options, &mut |_| {}).unwrap();
        assert_eq!((results.phases.len(), results.baseline.as_str()), (14, "json"));
        assert!(results.competitor("marc21").unwrap().refused.is_some());
        let msgpack = results.competitor("msgpack").unwrap();
        let grown = msgpack.sizes["base64"] as f64 / msgpack.sizes[""] as f64;
        assert!((1.33..1.36).contains(&grown), "{grown}");
        for cell in results.cells.iter().filter(|c| c.competitor != "null") {
            assert_eq!(cell.rounds.len(), results.probes.len(), "{}", cell.phase);
            // Three tags for each object, in every series.
            assert_eq!(cell.items, 3 * cell.units, "{} {}", cell.competitor, cell.phase);
        }
        assert_eq!(results.contrasts.len(), 6);
        assert!(results.contrasts.iter().all(|c| c.versus.is_some()));
    }

    #[test]
    fn published_points_and_impossible_wishes() {
        let published = Options::as_published();
        assert_eq!((published.counts.len(), published.counts[99]), (100, 100_000));
        assert!(run(&Options { counts: vec![], ..Options::default() }, &mut |_| {}).is_err());
        let only_marc = vec![Format::Marc21];
        let options = Options { counts: vec![1], formats: only_marc, ..Options::default() };
        assert!(run(&options, &mut |_| {}).is_err());
    }
}
