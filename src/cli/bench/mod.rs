//! `steelyard bench`: one file for each thing that can be weighed.

mod against;
mod cache;
mod formats;
mod objects;
mod progress;
mod queries;
pub mod stores;
#[cfg(feature = "serve")]
mod tenants;

use std::path::PathBuf;

use clap::Subcommand;
use steelyard::{
    Error, Result,
    bench::{
        self,
        formats::load,
        results::{Basis, Cell, Contender, Plan, Results},
        run::Progress,
        save,
        stop::Stop,
        workload::Workload,
    },
    record::dataset::Dataset,
    report::screen,
};

use self::progress::Lines;
use super::{
    Outcome,
    apart::{Named, apart},
    file_to_write, interrupt, last, parsed, print, print_styled,
    report::{Form, Percent},
    say,
};

/// Measures formats and stores on your own records, with figures that hold up.
///
/// Without arguments, it is a guided tour of about a minute: a generated catalogue in every format, and
/// people in the stores that need no server. Competitors take turns in balanced order. Before anything
/// is timed, records must come back intact. A difference is reported only if it is at least 3 % and its
/// 95 % interval excludes zero. Ctrl-C ends the run within two seconds, with a report of the rounds that
/// were complete, if any; a second Ctrl-C ends it at once.
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
    #[cfg(feature = "serve")]
    Tenants(tenants::Args),
    /// Adds tenants to the gateway of a bench.
    #[cfg(feature = "serve")]
    #[command(hide = true)]
    TenantsAdd(tenants::Add),
    /// Holds databases, to be looked at.
    #[cfg(feature = "serve")]
    #[command(hide = true)]
    TenantsHold,
    /// Speaks the adapters' protocol with one of this program's clients of memcached.
    #[command(hide = true)]
    CacheAdapter(cache::Adapter),
    /// Delays what goes between a client and a server.
    #[command(hide = true)]
    NetworkRelay(stores::NetworkRelay),
    /// Writes to a store until it is killed.
    #[command(hide = true)]
    StoreWriter(stores::StoreWriter),
    /// Stores: people, by key and by query: init, create, query, delete.
    #[command(after_help = stores::DOCUMENTS)]
    Documents(stores::Args),
    /// Stores: users, written row by row, in transactions, batches, bulk; ranges.
    #[command(after_help = stores::INSERTS)]
    Inserts(stores::Args),
    /// Stores: users and their pets: embedded, by reference, by index.
    #[command(after_help = stores::RELATIONS)]
    Relations(stores::Args),
    /// Stores: the YCSB mixes A to F, and reads at fixed shares of capacity.
    #[command(after_help = stores::MIXED)]
    Mixed(stores::Args),
    /// Stores: the cost of upkeep: rewriting, indexes, recovery from a crash.
    #[command(after_help = stores::UPKEEP)]
    Upkeep(stores::Args),
    /// Stores: data larger than the server's cache, cold and warm.
    #[command(after_help = stores::LARGER)]
    Larger(stores::Args),
    /// Stores: your own records: written, read by key, scanned; your own query.
    #[command(after_help = stores::KEEP)]
    Keep(stores::Args),
    /// Stores: your own workload, from a .toml file.
    #[command(external_subcommand)]
    File(Vec<String>),
}

#[derive(clap::Args)]
struct Common {
    /// Stop after at most this many rounds [default: 60; for stores 30].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Begin no new round after this many seconds [default: 120].
    #[arg(long, value_name = "SECONDS", value_parser = above_nothing, allow_negative_numbers = true)]
    budget: Option<f64>,
    /// Compare processor time instead of elapsed time, for machines with other users.
    #[arg(long)]
    cpu: bool,
    /// Seed of orders, data and resamples [default: 1].
    #[arg(long)]
    seed: Option<u64>,
    /// Write the results to this file, as JSON, after each round.
    #[arg(long, value_name = "FILE", value_parser = file_to_write::<PathBuf>)]
    out: Option<PathBuf>,
    /// Print all tables, intervals and notes instead of one screen.
    ///
    /// `steelyard report` prints them later: the results of the last bench are kept.
    #[arg(long, conflicts_with = "format")]
    full: bool,
    /// Print the full report in this form [default: one screen of text].
    #[arg(long, value_name = "FORM")]
    format: Option<Form>,
    /// Compare this build with another build of steelyard; both take turns.
    ///
    /// Both run each round with the same seed, in random order, and ratios are taken within rounds. This
    /// works on shared machines too, such as those of continuous integration, where runs at different
    /// times cannot be compared. `steelyard report` shows the comparison again; with --out FILE.json the
    /// results of the other build are in FILE.old.json.
    #[arg(long, value_name = "OLD_BINARY")]
    against: Option<PathBuf>,
    /// With --against: exit with status 1 if anything became slower by more than this (5%), and with
    /// status 4 if nothing did but some of it could not be compared, or only a slowdown of more than
    /// ten times this could have been detected.
    #[arg(long, value_name = "PERCENT", value_parser = parsed::<Percent>)]
    fail_on_regression: Option<Percent>,
}

const EXAMPLES: &str = "\
Examples:
  steelyard bench                                   the guided tour
  steelyard bench formats catalog.mrc               which format, on your own records
  steelyard bench keep --records catalog.mrc --on sqlite --on postgres --on redis
  steelyard bench documents --on mariadb --on 'mariadb?engine=myisam' --durability t1
  steelyard bench mine.toml --on sqlite --out results.json
  steelyard bench cache --as-published              clients of memcached
  steelyard bench tenants --on postgres             a database for each customer, or one table
  steelyard bench formats --against ./steelyard-1.0 --fail-on-regression 5%      for shared machines
  steelyard bench objects --formats marshal,json --wraps base64lines --format svg > curves.svg";

pub fn run(args: Args) -> Result<Outcome> {
    match args.what {
        Some(What::CacheAdapter(args)) => return cache::adapter(args),
        Some(What::NetworkRelay(args)) => return stores::relay(args),
        Some(What::StoreWriter(args)) => return stores::writer(&args),
        #[cfg(feature = "serve")]
        Some(What::TenantsAdd(args)) => return tenants::add(&args),
        #[cfg(feature = "serve")]
        Some(What::TenantsHold) => return tenants::hold(),
        _ => {}
    }
    // Ctrl-C ends it within two seconds; a second one at once.
    let stop = &interrupt::at_first();
    match args.what {
        None => tour(&args.common, stop),
        Some(What::Formats(formats)) => formats::run(formats, stop),
        Some(What::Objects(objects)) => objects::run(objects, stop),
        Some(What::Cache(args)) => cache::run(args, stop),
        #[cfg(feature = "serve")]
        Some(What::Tenants(args)) => tenants::run(args, stop),
        #[cfg(feature = "serve")]
        Some(What::TenantsAdd(args)) => tenants::add(&args),
        #[cfg(feature = "serve")]
        Some(What::TenantsHold) => tenants::hold(),
        Some(What::CacheAdapter(args)) => cache::adapter(args),
        Some(What::NetworkRelay(args)) => stores::relay(args),
        Some(What::StoreWriter(args)) => stores::writer(&args),
        Some(What::Documents(args)) => stores::run("documents", args, stop),
        Some(What::Inserts(args)) => stores::run("inserts", args, stop),
        Some(What::Relations(args)) => stores::run("relations", args, stop),
        Some(What::Mixed(args)) => stores::run("mixed", args, stop),
        Some(What::Upkeep(args)) => stores::run("upkeep", args, stop),
        Some(What::Larger(args)) => stores::run("larger", args, stop),
        Some(What::Keep(args)) => stores::run("keep", args, stop),
        Some(What::File(words)) => stores::run_file(words, stop),
    }
}

/// This program's file.
fn own_program() -> Result<PathBuf> {
    std::env::current_exe()
        .map_err(|e| Error::unavailable("this program does not find itself").with_source(e))
}

/// How many records the formats of the tour have.
const CATALOGUE: u64 = 2_000;
/// The size of the stores' workload in the tour, and its seconds.
const STORES: (f64, f64) = (0.2, 14.0);

fn tour(common: &Common, stop: &Stop) -> Result<Outcome> {
    if common.against.is_some() {
        return Err(Error::invalid("--against needs a bench: steelyard bench formats --against …"));
    }
    let (records, dataset) = load::catalogue(CATALOGUE, common.seed.unwrap_or(1), stop)?;
    let mut options = bench::formats::Options::tour(&records);
    options.dataset = dataset;
    options.plan = common.plan(options.plan, None);
    options.out = common.out.clone();
    options.stop = Some(stop);
    let mut runs = vec![common.measured(|told| bench::formats::run(&options, told))?];

    // What all formats and stores of the tour keep, so that they do the same work.
    let (scale, seconds) = STORES;
    let mut workload = Workload::named("documents")?.scaled(scale);
    workload.tables.iter_mut().for_each(|table| table.dataset = Dataset::PeopleJson);
    let mut options = bench::stores::Options::new(workload);
    options.plan = common.plan(options.plan, Some(seconds));
    options.stop = Some(stop);
    let ran = |told: &mut dyn FnMut(Progress<'_>)| bench::stores::run(&options, told);
    match stop.check().and_then(|()| common.measured(ran)) {
        // The half that was measured is told.
        Err(_) if stop.is_set() => {}
        done => runs.push(done?),
    }
    if let Some(out) = &common.out {
        save::write_runs(&runs, out)?;
    }
    common.show(&runs)?;
    let read = runs.iter().all(|run| run.dataset.unreadable == 0);
    Ok(if read { Outcome::Well } else { Outcome::Found })
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

    /// Runs a bench with lines of progress.
    fn measured(
        &self,
        run: impl FnOnce(&mut dyn FnMut(Progress<'_>)) -> Result<Results>,
    ) -> Result<Results> {
        if let Some(out) = &self.out {
            save::check(out)?;
            interrupt::keeps(out.clone());
        }
        let mut lines = Lines::new();
        run(&mut |p: Progress<'_>| lines.tell(&p))
    }

    /// Keeps the results and prints them: on one screen, or in the form that was asked for.
    fn show(&self, runs: &[Results]) -> Result<()> {
        let kept = last::keep(runs);
        let full = self.full.then_some(Form::Text);
        let Some(form) = self.format.or(full) else {
            let terminal = console::Term::stdout();
            let (styled, size) = (console::colors_enabled(), terminal.size_checked());
            let width = size.map_or(screen::USUAL, |(_, width)| usize::from(width));
            return print_styled(&screen::screen(runs, screen::Look { width, styled, kept }));
        };
        print(form.of(runs))?;
        if form == Form::Text {
            runs.iter().filter_map(steelyard::report::over_budget).for_each(say);
        }
        Ok(())
    }

    /// The results may not take the place of what is read.
    fn written_apart<'a>(&self, read: impl Iterator<Item = &'a str>) -> Result<()> {
        let Some(out) = &self.out else { return Ok(()) };
        let read: Vec<_> =
            read.filter_map(|name| Named::of("what is measured", name, "/dev/stdin")).collect();
        apart(&[Named::new("the file of --out", out)], &read)
    }

    /// Runs a bench with lines of progress, and prints its report.
    ///
    /// What was named and could not take part is found, and so are records that could not be read.
    fn told(
        &self,
        named: bool,
        run: impl FnOnce(&mut dyn FnMut(Progress<'_>)) -> Result<Results>,
    ) -> Result<Outcome> {
        if let Some(old) = &self.against {
            return against::run(self, old);
        }
        if self.fail_on_regression.is_some() {
            return Err(Error::invalid(
                "--fail-on-regression needs something to compare with: another build of this program, \
                 with --against OLD_BINARY; or an earlier run: steelyard report NEW.json OLD.json \
                 --fail-on-regression 5%",
            ));
        }
        let results = self.measured(run)?;
        self.show(std::slice::from_ref(&results))?;
        let all_well = |c: &Contender| {
            c.refused.is_none() && !c.store.as_ref().is_some_and(|kept| kept.durability.broken)
        };
        let broke = |c: &Cell| c.refused.as_ref().is_some_and(|why| why.starts_with("failed: "));
        let clean = results.competitors.iter().all(|c| all_well(c) || c.null)
            && !results.cells.iter().any(broke);
        let unkept = |c: &Contender| {
            c.store.as_ref().is_some_and(|k| k.durability.broken && k.durability.asked.is_some())
        };
        let kept = !results.competitors.iter().any(unkept);
        let read = results.dataset.unreadable == 0;
        Ok(if read && kept && (clean || !named) { Outcome::Well } else { Outcome::Found })
    }
}
