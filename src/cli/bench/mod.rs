//! `steelyard bench`: one file for each thing that can be weighed.

mod cache;
mod formats;
mod objects;
mod progress;
pub mod stores;

use std::{io::IsTerminal, path::PathBuf, sync::atomic::AtomicBool};

use clap::Subcommand;
use steelyard::{
    Result,
    bench::{
        self,
        formats::load,
        results::{Basis, Cell, Contender, Plan, Results},
        run::Progress,
        workload::Workload,
    },
};

use self::progress::Lines;
use super::{Outcome, interrupt, parsed, print, say};

/// Weighs formats and stores on your own records, with figures that hold up.
///
/// Alone, it is a guided tour: a seeded sample catalogue through every format, and people through the
/// stores that need no server, in about a minute. Competitors take turns in balanced order; records
/// are proved to come back before anything is timed; a difference is called only where its 95 %
/// interval excludes none and it is 3 % at least. Ctrl-C ends the run and reports what was measured.
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
    Formats(formats::Args),
    Objects(objects::Args),
    Cache(cache::Args),
    /// Speaks the adapters' protocol with one of this program's clients of memcached.
    #[command(hide = true)]
    CacheAdapter(cache::Adapter),
    /// Stores: people, by key and by query: init, create, query, delete.
    #[command(after_help = stores::DOCUMENTS)]
    Documents(stores::Args),
    /// Stores: users, written row by row, in transactions, batches, bulk; ranges.
    #[command(after_help = stores::INSERTS)]
    Inserts(stores::Args),
    /// Stores: users and their pets, embedded, by reference, by index.
    #[command(after_help = stores::RELATIONS)]
    Relations(stores::Args),
    /// Stores: the YCSB mixes A to F, and reads at shares of the capacity.
    #[command(after_help = stores::MIXED)]
    Mixed(stores::Args),
    /// Stores: your own records, written, read by key, gone through.
    #[command(after_help = stores::KEEP)]
    Keep(stores::Args),
    /// Stores: a workload of your own, a file that ends in .toml.
    #[command(external_subcommand)]
    File(Vec<String>),
}

#[derive(clap::Args)]
struct Common {
    /// Stop after this many rounds at most.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Stop after this many seconds at most.
    #[arg(long, value_name = "SECONDS", value_parser = above_nothing, allow_negative_numbers = true)]
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

const EXAMPLES: &str = "\
Examples:
  steelyard bench                                   the guided tour
  steelyard bench formats catalog.mrc               which format, on your own records
  steelyard bench keep --records catalog.mrc --on sqlite --on postgres --on redis
  steelyard bench documents --on mariadb --on 'mariadb?engine=myisam' --durability t1
  steelyard bench mine.toml --on sqlite --out results.json
  steelyard bench cache --as-published              clients of memcached
  steelyard bench objects --formats marshal,json --wraps base64lines --format svg > curves.svg";

pub fn run(args: Args) -> Result<Outcome> {
    if let Some(What::CacheAdapter(args)) = args.what {
        return cache::adapter(args);
    }
    // Ctrl-C ends it after the round; a second one at once.
    let stop = interrupt::at_first();
    match args.what {
        None => tour(&args.common, stop),
        Some(What::Formats(formats)) => formats::run(formats, stop),
        Some(What::Objects(objects)) => objects::run(objects, stop),
        Some(What::Cache(args)) => cache::run(args, stop),
        Some(What::CacheAdapter(args)) => cache::adapter(args),
        Some(What::Documents(args)) => stores::run("documents", args, stop),
        Some(What::Inserts(args)) => stores::run("inserts", args, stop),
        Some(What::Relations(args)) => stores::run("relations", args, stop),
        Some(What::Mixed(args)) => stores::run("mixed", args, stop),
        Some(What::Keep(args)) => stores::run("keep", args, stop),
        Some(What::File(words)) => stores::run_file(words, stop),
    }
}

/// How many records the tour weighs formats with, and how many seconds; how many people the stores
/// keep, and how many seconds.
const TOUR: (u64, f64, f64, f64) = (2_000, 28.0, 0.25, 18.0);

fn tour(common: &Common, stop: &AtomicBool) -> Result<Outcome> {
    let (count, formats, scale, stores) = TOUR;
    let (records, dataset) = load::catalogue(count, common.seed.unwrap_or(1))?;
    let mut options = bench::formats::Options::new(&records);
    options.dataset = dataset;
    options.plan = common.plan(Plan::default(), Some(formats));
    options.out = common.out.clone();
    options.stop = Some(stop);
    common.told(false, |told| bench::formats::run(&options, told))?;

    let workload = Workload::named("documents")?.scaled(scale);
    let mut options = bench::stores::Options::new(workload);
    options.plan = common.plan(options.plan, Some(stores));
    options.stop = Some(stop);
    print("\n")?;
    let outcome = common.told(false, |told| bench::stores::run(&options, told))?;
    if std::io::stderr().is_terminal() {
        say(
            "\nOn your own records: steelyard bench formats FILE, steelyard bench keep --records FILE",
        );
    }
    Ok(outcome)
}

/// A number that there can be so many of: more than none, and finite.
fn above_nothing(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "a number is expected")?;
    match number.is_finite() && number > 0.0 {
        true => Ok(number),
        false => Err("a number above 0 is expected".into()),
    }
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

    /// Runs a bench with lines of progress, and prints its report.
    ///
    /// What was named and could not take part is found.
    fn told(
        &self,
        named: bool,
        run: impl FnOnce(&mut dyn FnMut(Progress<'_>)) -> Result<Results>,
    ) -> Result<Outcome> {
        let mut lines = Lines::new();
        let results = run(&mut |p: Progress<'_>| lines.tell(&p));
        drop(lines);
        let results = results?;
        let text = self.format.of(&results);
        print(text)?;
        let all_well = |c: &Contender| {
            c.refused.is_none() && !c.store.as_ref().is_some_and(|kept| kept.durability.broken)
        };
        let broke = |c: &Cell| c.refused.as_ref().is_some_and(|why| why.starts_with("failed: "));
        let clean = results.competitors.iter().all(|c| all_well(c) || c.null)
            && !results.cells.iter().any(broke);
        Ok(if clean || !named { Outcome::Well } else { Outcome::Found })
    }
}
