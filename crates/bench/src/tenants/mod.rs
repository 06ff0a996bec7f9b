//! `bench tenants`: what a database for each customer costs beside one table for all, and what the gateway before
//! those databases costs.
//!
//! The published claim this answers is "5.3 % slower with many databases"; nothing else is known of it. Here each
//! number of tenants is measured by itself, on one store after another: all arms have the same records and are asked
//! the same, in rounds whose order is balanced. The data are made once for each number (a thousand databases take
//! minutes), so that a start is one of the processes and not of the data; the page says so.
//!
//! - `people.rs`: records, questions, and what must come out; `shared.rs`: how the one table is laid out
//! - `site.rs`: the data of so many tenants, made and kept; `gateway.rs`: the gateway before them
//! - `reach.rs`: how a tenant is asked, with so many databases open; `http.rs`: by the gateway's protocol
//! - `turn.rs`: one arm's turn in a round; `look.rs`, `hold.rs`: what processes have meanwhile
//! - `plan.rs`: arms, phases, counts; `block.rs`: one number of tenants on one store
//!
//! To add an arm: a variant of [`Arm`], and how it lies in `site.rs`.

mod block;
mod gateway;
mod hold;
mod http;
mod look;
mod people;
mod plan;
mod reach;
mod shared;
mod site;
mod talk;
mod turn;

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

pub use self::{hold::hold, plan::Arm};
use super::{
    derive::derive,
    instruments::{Instruments, Real},
    results::{Contender, Plan, Results},
    run::{Progress, Stage},
    save,
    schedule::Stopped,
    scratch::Scratch,
    stop::{Stop, interrupted},
    stores::Target,
};
use crate::{Error, Result, server, store::Secrets};

/// The table of the records.
const TABLE: &str = "people";
/// The name of the competitor that keeps nothing.
const NULL: &str = "null";
/// How long work on other threads may take to end where the run was ended early.
const GRACE: Duration = Duration::from_millis(300);

/// What to measure, and how.
pub struct Options<'a> {
    /// On which stores; SQLite where none is named.
    pub targets: Vec<Target>,
    /// Numbers of tenants: each is measured by itself.
    pub tenants: Vec<u64>,
    /// Records of each tenant.
    pub documents: u64,
    /// How many databases are open at once, at most.
    pub open: u64,
    /// Which arms; all that there are where none is named.
    pub arms: Vec<Arm>,
    /// How long it may take to make the data of one arm.
    pub patience: Duration,
    /// This program, for the gateway (`PROGRAM serve`) and for what holds databases of SQLite (`PROGRAM bench
    /// tenants-hold`). Without one there is no gateway, and memory and files of SQLite are not known.
    pub program: Option<PathBuf>,
    /// Where the data of stores in this process are; beside those of servers where none is named.
    pub folder: Option<PathBuf>,
    /// Seed, stop rule and the rest. The budget is shared by the numbers of tenants.
    pub plan: Plan,
    /// The results are written here after each round.
    pub out: Option<PathBuf>,
    /// Ends the run within an operation.
    pub stop: Option<&'a Stop>,
}

impl Options<'_> {
    /// 1 to 1,000 tenants of SQLite, some two minutes.
    pub fn new() -> Self {
        let mut plan = Plan::default();
        plan.stop.max_rounds = 30;
        Options {
            targets: Vec::new(),
            tenants: vec![1, 10, 100, 1000],
            documents: 200,
            open: 128,
            arms: Vec::new(),
            patience: Duration::from_secs(900),
            program: None,
            folder: None,
            plan,
            out: None,
            stop: None,
        }
    }
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options::new()
    }
}

/// Tenants at most: each is a database.
const MOST_TENANTS: u64 = 100_000;
/// Records of a tenant at most: an answer is to fit a page of the gateway.
const MOST_DOCUMENTS: u64 = 50_000;

/// Makes the data, proves, measures and compares.
///
/// # Errors
/// [`Invalid`](crate::ErrorKind::Invalid) for what cannot be; [`Mismatch`](crate::ErrorKind::Mismatch) where an answer
/// is wrong, naming arm, store and round; [`Unavailable`](crate::ErrorKind::Unavailable) where nothing could be
/// measured.
pub fn run(options: &Options<'_>, progress: &mut dyn FnMut(Progress<'_>)) -> Result<Results> {
    let mut sizes = options.tenants.clone();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.is_empty() || sizes.iter().any(|n| !(1..=MOST_TENANTS).contains(n)) {
        return Err(Error::invalid(format!("numbers of tenants are 1 to {MOST_TENANTS}")));
    }
    if !(1..=MOST_DOCUMENTS).contains(&options.documents) {
        return Err(Error::invalid(format!("a tenant has 1 to {MOST_DOCUMENTS} records")));
    }
    if !(1..=MOST_TENANTS).contains(&options.open) {
        return Err(Error::invalid(format!("1 to {MOST_TENANTS} databases can be open")));
    }
    let targets = match options.targets.is_empty() {
        true => vec![Target::parse("sqlite")?],
        false => options.targets.clone(),
    };
    for (n, target) in targets.iter().enumerate() {
        let scheme = site::scheme(target)?;
        if plan::arms(options, scheme).is_empty() {
            let what = format!("{}: none of these arms can be measured", target.label);
            return Err(Error::invalid(what));
        }
        if targets[..n].iter().any(|before| before.label == target.label) {
            return Err(Error::invalid(format!("{} is to be measured twice", target.label)));
        }
    }
    let folder = options.folder.clone().unwrap_or_else(server::data_folder);
    let scratch = Scratch::new(Some(&folder))?;
    let mut results = plan::blank(options);
    if options.folder.is_none() {
        results.dataset.remarks.extend(server::elsewhere());
    }
    let mut run = Run {
        options,
        progress,
        instruments: Real::new(scratch.path()),
        stop: Stop::given(options.stop),
        begin: Instant::now(),
        scratch,
        results,
        rounds: 0,
        made: 0,
        secrets: Secrets::of(targets.iter().filter_map(Target::own_url)),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(run.go(&targets, &sizes));
    if run.stop.is_set() {
        // What still works on its threads works in the run's folder, which is removed next.
        runtime.shutdown_timeout(GRACE);
    }
    run.results.seconds = run.begin.elapsed().as_secs_f64();
    derive(&mut run.results);
    let ended = match ended {
        Ok(Stopped::Interrupted) if run.rounds == 0 => Err(interrupted()),
        Ok(stopped) => {
            run.results.stopped = Some(stopped);
            Ok(())
        }
        Err(e) => Err(e),
    };
    // Without a round there is nothing to put in the place of an earlier file.
    if run.rounds > 0 {
        run.save()?;
    }
    save::hide(&mut run.results, &run.secrets);
    ended.map(|()| run.results)
}

struct Run<'o, 'a, 'p> {
    options: &'o Options<'a>,
    progress: &'p mut dyn FnMut(Progress<'_>),
    instruments: Real,
    stop: Stop,
    begin: Instant,
    scratch: Scratch,
    results: Results,
    /// Rounds so far, of all stores and numbers of tenants.
    rounds: u32,
    /// Sites made so far: each has a folder and names of its own.
    made: u32,
    secrets: Secrets,
}

impl Run<'_, '_, '_> {
    async fn go(&mut self, targets: &[Target], sizes: &[u64]) -> Result<Stopped> {
        self.results.clock = self.instruments.clock();
        self.begin_results(targets)?;
        let budget = self.results.plan.stop.budget;
        let mut ended = Vec::new();
        let mut left = (targets.len() * sizes.len()) as f64;
        for target in targets {
            for &tenants in sizes {
                // What is left of the budget is shared by what is left to do.
                let share = (budget - self.seconds()).max(0.0) / left;
                left -= 1.0;
                match self.block(target, tenants, share).await {
                    Err(_) if self.stop.is_set() => return Ok(Stopped::Interrupted),
                    stopped => ended.push(stopped?),
                }
            }
        }
        if self.rounds == 0 {
            let held = self.results.tenants.iter().flat_map(|tenants| &tenants.held);
            let why = held.filter_map(|held| held.refused.clone()).next();
            let why = why.unwrap_or_else(|| "no arm took part".into());
            return Err(Error::unavailable(format!("nothing was measured: {why}")));
        }
        // The least that was reached of what was planned.
        let least = [Stopped::Budget, Stopped::Rounds];
        let found = least.into_iter().find(|why| ended.iter().flatten().any(|one| one == why));
        Ok(found.unwrap_or(Stopped::Precise))
    }

    /// The competitors, in the order in which they are told.
    fn begin_results(&mut self, targets: &[Target]) -> Result<()> {
        let mut arms = Vec::new();
        for target in targets {
            arms.extend(plan::arms(self.options, site::scheme(target)?));
        }
        arms.sort_unstable();
        arms.dedup();
        self.results.baseline = arms.first().map_or(String::new(), |arm| arm.name().to_owned());
        let row = |name: &str| Contender { name: name.into(), ..Contender::default() };
        self.results.competitors = arms.iter().map(|arm| row(arm.name())).collect();
        self.results.competitors.push(Contender { null: true, ..row(NULL) });
        Ok(())
    }

    fn seconds(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    fn save(&self) -> Result<()> {
        let Some(path) = &self.options.out else { return Ok(()) };
        let mut results = self.results.clone();
        results.seconds = self.seconds();
        derive(&mut results);
        save::hide(&mut results, &self.secrets);
        save::write(&results, path)
    }

    fn tell(&mut self, stage: Stage, competitor: &str, phase: &str, of: (usize, usize)) {
        let (seconds, budget) = (self.seconds(), self.results.plan.stop.budget);
        (self.progress)(Progress {
            stage,
            rounds: self.rounds,
            cell: of.0,
            cells: of.1,
            competitor,
            phase,
            seconds,
            budget,
            ..Progress::default()
        });
    }
}

#[cfg(test)]
mod tests;
