//! `steelyard report`.

use std::{path::PathBuf, str::FromStr};

use steelyard::{
    Error, Result,
    bench::{
        results::{Comparison, Json, Pair, Results},
        runs, save,
    },
    report::{
        self, compared, several,
        slabs::{self, Slabs},
    },
};

use super::{Outcome, last, parsed, print, say};

/// Prints the full report of a bench, or compares its results with earlier ones.
///
/// Without a file it reports the last bench, whose results are kept in the user's cache folder
/// ($STEELYARD_CACHE, else $XDG_CACHE_HOME/steelyard or ~/.cache/steelyard).
///
/// With more than one file, the first is compared with each of the others: for every competitor and
/// phase that both have, the ratio of their times with its 95 % interval, and whether that is faster or
/// slower. What else differs between the runs is said first; runs on other machines or of other records
/// are not compared.
///
/// Runs at different times are compared only where the machine was quiet in both and their controls
/// agree: the null competitor in each phase, a loop of arithmetic, a synced write. On a shared machine
/// that is rarely so; there, have both programs take turns in one run: steelyard bench ... --against
/// OLD_BINARY.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The results [default: those of the last bench].
    results: Option<PathBuf>,
    /// Results of earlier runs to compare them with.
    old: Vec<PathBuf>,
    /// How to print them.
    #[arg(long, value_name = "FORM", default_value = "text")]
    format: Form,
    /// Exit with status 1 where something became slower by more than this: 5%.
    ///
    /// By its whole interval, not only by its middle: a build that fails by chance is soon ignored, so
    /// what is not certain to be beyond the limit passes. The smallest slowdown that could have been
    /// seen is printed; to see less, measure longer. Status 4: nothing became slower, but some or all
    /// of it could not be compared.
    #[arg(long, value_name = "PERCENT", requires = "old", value_parser = parsed::<Percent>)]
    fail_on_regression: Option<Percent>,
}

const EXAMPLES: &str = "\
Examples:
  steelyard report                                              all tables of the last bench
  steelyard report --format html > report.html                  the same as a page, in one file that works offline
  steelyard report results.json
  steelyard report results.json --format markdown >> NOTES.md
  steelyard report results.json --format html > report.html     one file, works offline
  steelyard report results.json --format svg > picture.svg
  steelyard report new.json old.json                            what became faster, what slower
  steelyard report new.json old.json older.json --format html > compared.html
  steelyard report new.json old.json --fail-on-regression 5%    for continuous integration";

/// So many of a hundred.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Percent(f64);

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
    pub fn of(self, runs: &[Results]) -> String {
        match self {
            Form::Text => several::text(runs),
            Form::Markdown => several::markdown(runs),
            Form::Csv => several::csv(runs),
            Form::Svg => several::svg(runs),
            Form::Html => several::html(runs),
            Form::Json => match runs {
                [one] => json(&one.to_pretty_json()),
                runs => json(&Json::list_to_pretty_json(runs)),
            },
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
    pub fn of_runs(self, comparisons: &[Comparison]) -> String {
        match self {
            Form::Text => compared::text(comparisons),
            Form::Markdown => compared::markdown(comparisons),
            Form::Csv => compared::csv(comparisons),
            Form::Svg => compared::svg(comparisons),
            Form::Html => compared::html(comparisons),
            Form::Json => json(&Json::list_to_pretty_json(comparisons)),
        }
    }
}

fn json(text: &str) -> String {
    report::visible_json(text) + "\n"
}

pub fn run(args: Args) -> Result<Outcome> {
    let path = match args.results {
        Some(path) => path,
        None => last::found()?,
    };
    if args.old.is_empty() {
        let runs = save::read_runs(&path)?;
        // Two builds that took turns are reported as what they are: a comparison.
        let turns = match &runs[..] {
            [new, old] => new.interleaved.is_some() && new.interleaved == old.interleaved,
            _ => false,
        };
        print(match turns {
            true => args.format.of_runs(&[runs::compare(&runs[0], &runs[1])]),
            false => args.format.of(&runs),
        })?;
        return Ok(Outcome::Well);
    }
    let new = save::read(&path)?;
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
    Ok(args.fail_on_regression.map_or(Outcome::Well, |limit| gate(&comparisons, limit)))
}

/// How many pairs are named one by one.
const MANY: usize = 6;

/// A comparison that could only have seen a slowdown of so many times the limit has compared nothing.
const BLIND: f64 = 10.0;
/// A limit below this is taken for it there: few runs can see less.
const SMALL: f64 = 0.05;

/// Whether anything became slower by more than the limit, or could not be compared; says what, and
/// what could have been seen.
pub fn gate(comparisons: &[Comparison], Percent(limit): Percent) -> Outcome {
    let mut outcome = Outcome::Well;
    for c in comparisons {
        let with = compared::with(c);
        let barred = c.pairs.iter().filter(|p| !c.holds(p)).count();
        if barred == c.pairs.len() {
            let why = compared::bars(c).join("; ");
            let why = if why.is_empty() { "they have nothing in common".into() } else { why };
            say(format_args!("not comparable with {with}: {why}"));
            outcome = worse(outcome, Outcome::NotComparable);
            continue;
        }
        if barred > 0 {
            let why = compared::bars(c).join("; ");
            say(format_args!("{barred} of {} not comparable with {with}: {why}", c.pairs.len()));
            outcome = worse(outcome, Outcome::NotComparable);
        }
        for pair in c.regressions(limit / 100.0) {
            let ratio = pair.versus.ratio;
            say(format_args!(
                "{} {} became slower by more than {} %: {:.3} times as long as in {with} ({:.3} at least)",
                pair.competitor,
                pair.phase,
                limit,
                ratio.middle,
                ratio.low.unwrap_or(ratio.middle)
            ));
            outcome = worse(outcome, Outcome::Found);
        }
        let by = limit / 100.0;
        let blind = |p: &Pair| p.visible(by).is_none_or(|least| least > BLIND * by.max(SMALL));
        if c.pairs.iter().any(|p| c.holds(p) && blind(p)) {
            outcome = worse(outcome, Outcome::NotComparable);
        }
        seen(c, limit);
    }
    outcome
}

/// A regression is the worst; then what nobody knows.
fn worse(a: Outcome, b: Outcome) -> Outcome {
    let rank = |outcome: Outcome| match outcome {
        Outcome::Well => 0,
        Outcome::NotComparable => 1,
        Outcome::Found => 2,
    };
    if rank(b) > rank(a) { b } else { a }
}

/// Says which slowdowns this comparison could have seen, and where it could see little.
fn seen(c: &Comparison, limit: f64) {
    let by = limit / 100.0;
    let mut all: Vec<(f64, String)> = (c.pairs.iter())
        .filter(|pair| c.holds(pair))
        .map(|pair| {
            let least = pair.visible(by).unwrap_or(f64::INFINITY);
            (100.0 * least, format!("{} {}", pair.competitor, pair.phase))
        })
        .collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let blind: Vec<&(f64, String)> = all.iter().filter(|a| a.0 > 2.0 * limit.max(5.0)).collect();
    for (least, at) in blind.iter().take(MANY) {
        match least.is_finite() {
            true => say(format_args!(
                "could not have seen less than {least:.0} % at {at}: measure longer"
            )),
            false => say(format_args!("could not have seen anything at {at}: too few rounds")),
        }
    }
    if blind.len() > MANY {
        say(format_args!("and little at {} more", blind.len() - MANY));
    }
    if let Some((least, at)) = all.get(blind.len()) {
        say(format_args!("everywhere else it would have seen {least:.0} % ({at}) or less"));
    }
}
