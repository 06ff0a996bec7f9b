//! `steelyard bench`.

use std::{io::IsTerminal, path::PathBuf, sync::atomic::AtomicBool};

use clap::Subcommand;
use indicatif::{ProgressBar, ProgressStyle};
use steelyard::{
    Error, Result,
    bench::{
        self,
        formats::load,
        results::{Basis, Plan, Results},
        run::{Progress, Stage},
    },
    file::Reading,
    format::{Format, Wrap, Wrapped},
};

use super::{Outcome, interrupt, parsed, print, say};

/// Weighs formats on your own records, with figures that hold up.
///
/// Alone, it is a guided tour: a seeded sample catalogue through every format, in about a minute.
/// Competitors take turns in balanced order; records are proved to come back before anything is
/// timed; a difference is called only where its 95 % interval excludes none and it is 3 % at least.
/// Ctrl-C ends the run after the round and reports what was measured.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    common: Common,
}

#[derive(Subcommand)]
enum What {
    Formats(FormatsArgs),
    Objects(ObjectsArgs),
}

/// Deserializes and serializes a catalogue (or any records) in each format.
///
/// Sizes plain, gzipped and with zstd; times from and to files, and in memory, also compressed.
/// Without a file: 18,881 generated MARC records of 1,650 bytes, as in the published comparison.
#[derive(clap::Args)]
#[command(after_help = FORMATS_EXAMPLES)]
struct FormatsArgs {
    /// Files of records in any format; - for standard input.
    files: Vec<String>,
    /// The files' format, where name and content do not tell.
    #[arg(long, value_name = "FORMAT", value_parser = parsed::<Wrapped>)]
    from: Option<Wrapped>,
    /// Use N records, a random sample where there are more [default: 20000].
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Try the method too: the baseline runs a second time, and slowed by 5 %.
    #[arg(long)]
    trial: bool,
    /// Leave the compressed files out.
    #[arg(long)]
    no_compressed: bool,
    #[command(flatten)]
    common: Common,
}

/// Serializes and restores program objects: seven series, as curves over their number.
#[derive(clap::Args)]
#[command(after_help = OBJECTS_EXAMPLES)]
struct ObjectsArgs {
    /// How many objects: the points of the curves.
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    counts: Vec<u64>,
    /// What is put around the bytes, one at a time: base64, base64lines (Ruby's), gzip, zstd.
    #[arg(long, value_name = "WRAP,…", value_delimiter = ',', value_parser = parsed::<Wrap>)]
    wraps: Vec<Wrap>,
    /// As in the published comparison: 1,000 to 100,000 in steps of 1,000, each case 10 times.
    #[arg(long)]
    as_published: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(clap::Args)]
struct Common {
    /// Only these formats [default: all].
    #[arg(long, value_name = "FORMAT,…", value_delimiter = ',', value_parser = parsed::<Named>)]
    formats: Vec<Named>,
    /// The format that others are compared with.
    #[arg(long, value_name = "FORMAT", value_parser = parsed::<Named>)]
    baseline: Option<Named>,
    /// Stop after this many rounds at most.
    #[arg(long, value_name = "N")]
    rounds: Option<u32>,
    /// Stop after this many seconds at most.
    #[arg(long, value_name = "SECONDS")]
    budget: Option<f64>,
    /// Compare processor time, not elapsed time: for machines that others use too.
    #[arg(long)]
    cpu: bool,
    /// Orders, data and resamples follow from it.
    #[arg(long)]
    seed: Option<u64>,
    /// Write all that was measured here, as JSON; kept up to date after each round.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// How to print the report.
    #[arg(long, value_name = "FORM", default_value = "text")]
    format: super::report::Form,
}

/// A format by its name.
#[derive(Clone, Copy)]
struct Named(Format);

impl std::str::FromStr for Named {
    type Err = Error;
    fn from_str(name: &str) -> Result<Named> {
        Format::named(name).map(Named)
    }
}

const EXAMPLES: &str = "\
Examples:
  steelyard bench                                   the guided tour
  steelyard bench formats catalog.mrc               on your own records
  steelyard bench formats users.json --formats json,msgpack,cbor --budget 30
  steelyard bench formats catalog.mrc --out results.json
  steelyard bench objects --formats marshal,json --wraps base64lines --format svg > curves.svg";

const FORMATS_EXAMPLES: &str = "\
Examples:
  steelyard bench formats catalog.mrc
  steelyard bench formats catalog.mrc.gz --limit 5000 --formats marc21,marcxml,json
  steelyard bench formats users.json --formats json,msgpack,cbor --baseline json --budget 30
  steelyard bench formats --cpu --out results.json   on a machine that others use too";

const OBJECTS_EXAMPLES: &str = "\
Examples:
  steelyard bench objects
  steelyard bench objects --formats marshal,json --wraps base64lines --format svg > curves.svg
  steelyard bench objects --as-published --out results.json";

pub fn run(args: Args) -> Result<Outcome> {
    // Ctrl-C ends it after the round; a second one at once.
    let stop = interrupt::at_first();
    match args.what {
        None => tour(&args.common, stop),
        Some(What::Formats(formats)) => weigh_formats(formats, stop),
        Some(What::Objects(objects)) => weigh_objects(objects, stop),
    }
}

/// How many records the tour has, and how many seconds.
const TOUR: (u64, f64) = (2_000, 45.0);

fn tour(common: &Common, stop: &AtomicBool) -> Result<Outcome> {
    let (records, dataset) = load::catalogue(TOUR.0, common.seed.unwrap_or(1))?;
    let mut options = bench::formats::Options::new(&records);
    options.dataset = dataset;
    options.plan = common.plan(Plan::default(), Some(TOUR.1));
    options.formats = common.formats.iter().map(|f| f.0).collect();
    options.baseline = common.baseline.map(|f| f.0);
    options.out = common.out.clone();
    options.stop = Some(stop);
    let outcome = common.told(|told| bench::formats::run(&options, told))?;
    if std::io::stderr().is_terminal() {
        say("\nOn your own records: steelyard bench formats FILE");
    }
    Ok(outcome)
}

fn weigh_formats(args: FormatsArgs, stop: &AtomicBool) -> Result<Outcome> {
    let common = &args.common;
    let seed = common.seed.unwrap_or(1);
    let (records, dataset) = match args.files.is_empty() {
        true => load::catalogue(args.limit.unwrap_or(18_881), seed)?,
        false => {
            let reading = Reading { format: args.from.clone(), ..Reading::default() };
            load::read(&args.files, &reading, args.limit.unwrap_or(load::USUAL), seed)?
        }
    };
    let mut options = bench::formats::Options::new(&records);
    options.dataset = dataset;
    options.compressed = !args.no_compressed;
    options.trial = args.trial;
    options.plan = common.plan(Plan::default(), None);
    options.formats = common.formats.iter().map(|f| f.0).collect();
    options.baseline = common.baseline.map(|f| f.0);
    options.out = common.out.clone();
    options.stop = Some(stop);
    common.told(|told| bench::formats::run(&options, told))
}

fn weigh_objects(args: ObjectsArgs, stop: &AtomicBool) -> Result<Outcome> {
    let common = &args.common;
    let mut options = match args.as_published {
        true => bench::objects::Options::as_published(),
        false => bench::objects::Options::default(),
    };
    if !args.counts.is_empty() {
        options.counts = args.counts.clone();
    }
    if !args.wraps.is_empty() {
        options.wraps = args.wraps.clone();
    }
    options.plan = common.plan(options.plan, None);
    options.formats = common.formats.iter().map(|f| f.0).collect();
    options.baseline = common.baseline.map(|f| f.0);
    options.out = common.out.clone();
    options.stop = Some(stop);
    common.told(|told| bench::objects::run(&options, told))
}

impl Common {
    fn plan(&self, mut plan: Plan, budget: Option<f64>) -> Plan {
        plan.seed = self.seed.unwrap_or(plan.seed);
        if self.cpu {
            plan.basis = Basis::Processor;
        }
        if let Some(rounds) = self.rounds {
            plan.stop.max_rounds = rounds;
        }
        if let Some(seconds) = self.budget.or(budget) {
            plan.stop.budget = seconds;
        }
        plan
    }

    /// Runs a bench with a line of progress, and prints its report.
    fn told(
        &self,
        run: impl FnOnce(&mut dyn FnMut(Progress<'_>)) -> Result<Results>,
    ) -> Result<Outcome> {
        let bar = if std::io::stderr().is_terminal() {
            ProgressBar::new(0)
        } else {
            ProgressBar::hidden()
        };
        let style = ProgressStyle::with_template("{bar:20} {msg}").expect("a template of our own");
        bar.set_style(style);
        let results = run(&mut |p: Progress<'_>| tell(&bar, &p));
        bar.finish_and_clear();
        let results = results?;
        let text = self.format.of(&results);
        print(text)?;
        let clean = results.competitors.iter().all(|c| c.refused.is_none() || c.null);
        Ok(if clean || self.formats.is_empty() { Outcome::Well } else { Outcome::Found })
    }
}

/// Shows where a run is. Called between timed windows only.
fn tell(bar: &ProgressBar, p: &Progress<'_>) {
    let stage = match p.stage {
        Stage::Proving => "proving",
        Stage::Preparing => "preparing",
        Stage::WarmingUp => "warming up",
        Stage::Timing => "timing",
    };
    bar.set_length(p.budget.ceil() as u64);
    bar.set_position(p.seconds as u64);
    let (seconds, budget) = (p.seconds, p.budget);
    bar.set_message(format!(
        "{seconds:.0} of at most {budget:.0} s, round {}: {stage} {} {}",
        p.rounds + 1,
        p.competitor,
        p.phase
    ));
}
