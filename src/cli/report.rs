//! `steelyard report`.

use std::{path::PathBuf, str::FromStr};

use steelyard::{
    Error, Result,
    bench::{
        results::{Comparison, Results},
        runs, save,
    },
    report::{
        self, compared,
        slabs::{self, Slabs},
    },
};

use super::{Outcome, parsed, print, say};

/// Prints the report of a run that was kept with --out, or compares it with earlier runs.
///
/// With more than one file, the first is compared with each of the others: for every competitor and
/// phase that both have, the ratio of their times with its 95 % interval, and whether that is
/// faster, slower, or no difference shown. What else differs between the runs is said first; runs on
/// other machines or of other records are not comparable.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The results.
    results: PathBuf,
    /// Results of earlier runs to compare them with.
    old: Vec<PathBuf>,
    /// How to print them.
    #[arg(long, value_name = "FORM", default_value = "text")]
    format: Form,
    /// Exit with status 1 where something became slower by more than this: 5%.
    ///
    /// By its whole interval, not only by its middle: a build that fails for chance is soon
    /// ignored, so what is not certain to be beyond the limit passes. To see less than that,
    /// measure longer, or set a lower limit. Runs that cannot be compared exit with 1 as well.
    #[arg(long, value_name = "PERCENT", requires = "old", value_parser = parsed::<Percent>)]
    fail_on_regression: Option<Percent>,
}

const EXAMPLES: &str = "\
Examples:
  steelyard report results.json
  steelyard report results.json --format markdown >> NOTES.md
  steelyard report results.json --format html > report.html     one file, works offline
  steelyard report results.json --format svg > picture.svg
  steelyard report new.json old.json                            what became faster, what slower
  steelyard report new.json old.json older.json --format html > compared.html
  steelyard report new.json old.json --fail-on-regression 5%    for continuous integration";

/// So many of a hundred.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Percent(f64);

impl FromStr for Percent {
    type Err = Error;
    fn from_str(text: &str) -> Result<Percent> {
        let number = text.trim().trim_end_matches('%').trim_end();
        match number.parse::<f64>() {
            Ok(percent) if (0.0..=1e6).contains(&percent) => Ok(Percent(percent)),
            _ => Err(Error::invalid(format!("{text:?} is no percentage; say 5%, or 2.5%"))),
        }
    }
}

/// How a report is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// For a terminal.
    Text,
    /// Markdown.
    Markdown,
    /// A row for each cell, in basic units, for other tools.
    Csv,
    /// A picture.
    Svg,
    /// A page for a browser, in one file that works offline.
    Html,
    /// The results themselves.
    Json,
}

impl Form {
    /// The report in this form.
    pub fn of(self, results: &Results) -> String {
        match self {
            Form::Text => report::text(results),
            Form::Markdown => report::markdown(results),
            Form::Csv => report::csv(results),
            Form::Svg => report::svg(results),
            Form::Html => report::html(results),
            Form::Json => json(results),
        }
    }

    /// Slabs in this form.
    pub fn of_slabs(self, slabs: &Slabs<'_>) -> String {
        match self {
            Form::Text => slabs::text(slabs),
            Form::Markdown => slabs::markdown(slabs),
            Form::Csv => slabs::csv(slabs),
            Form::Svg => slabs::svg(slabs),
            Form::Html => slabs::html(slabs),
            Form::Json => slabs::json(slabs) + "\n",
        }
    }

    /// Comparisons in this form.
    fn of_runs(self, comparisons: &[Comparison]) -> String {
        match self {
            Form::Text => compared::text(comparisons),
            Form::Markdown => compared::markdown(comparisons),
            Form::Csv => compared::csv(comparisons),
            Form::Svg => compared::svg(comparisons),
            Form::Html => compared::html(comparisons),
            Form::Json => json(&comparisons),
        }
    }
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).expect("results are plain data") + "\n"
}

pub fn run(args: Args) -> Result<Outcome> {
    let new = save::read(&args.results)?;
    if args.old.is_empty() {
        print(args.format.of(&new))?;
        return Ok(Outcome::Well);
    }
    let mut comparisons = Vec::new();
    for path in &args.old {
        let old = save::read(path)?;
        if old.bench != new.bench {
            let place = path.display().to_string();
            let what = format!("results of bench {}, not of {}", old.bench, new.bench);
            return Err(Error::invalid(what).in_place(place));
        }
        comparisons.push(runs::compare(&new, &old));
    }
    print(args.format.of_runs(&comparisons))?;
    let Some(limit) = args.fail_on_regression else { return Ok(Outcome::Well) };
    Ok(if failed(&comparisons, limit) { Outcome::Found } else { Outcome::Well })
}

/// Whether anything became slower by more than the limit, or nothing can be said; and what.
fn failed(comparisons: &[Comparison], Percent(limit): Percent) -> bool {
    let mut failed = false;
    for c in comparisons {
        if !c.pairs.iter().any(|p| c.holds(p)) {
            say(format_args!("nothing can be compared with the run of {}", c.old.started));
            failed = true;
        }
        for pair in c.regressions(limit / 100.0) {
            let ratio = pair.versus.ratio;
            say(format_args!(
                "{} {} became slower by more than {} %: {:.3} times as long as on {} ({:.3} at least)",
                pair.competitor,
                pair.phase,
                limit,
                ratio.middle,
                c.old.started,
                ratio.low.unwrap_or(ratio.middle)
            ));
            failed = true;
        }
    }
    failed
}
