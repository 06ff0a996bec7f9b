//! `bench WORKLOAD`: which store, for these records and this work.
//!
//! A round is one whole run of the workload by every store, each on fresh data and, where it has a
//! private server, on a freshly started one; only one store runs at a time. The order of the stores
//! is balanced from round to round, ratios are taken within rounds (rules 5 and 6).
//!
//! - `target.rs`: what is measured, and how it is started
//! - `data.rs`, `draws.rs`: records, and what operations are drawn from, outside of the windows
//! - `phase/`: the kinds of phases, each in a file
//! - `expected.rs`: the expected result of each phase, counted beforehand
//! - `value_kinds.rs`: the kinds of the values that are indexed
//! - `round.rs`, `turn.rs`: one store's turn in a round, on one start; `one_by_one.rs`, `cache_limit.rs`:
//!   phases whose operations are sent one by one, and with a limited cache
//! - `operation.rs`: one operation; `load_loop.rs`, `schedule_timer.rs`: the timed loops, run by the
//!   workers of `workers.rs`, which are tasks or threads
//! - `answers.rs`: answers that are put aside in a window; `check.rs` looks at them after it
//! - `note.rs`: the result of a phase, in the results
//! - `own.rs`: temporary databases and tables in stores of the user's own
//! - `statement.rs`: the statements that a store was sent
//! - `plan.rs`: the initial results: what is planned
//! - `prove.rs`: which records a store returns unchanged; `watch.rs`: the resources that it uses
//! - `audit.rs`, `watched.rs`, `sight.rs`, `syncs.rs`, `seen_files.rs`: the syncs of a store, traced
//! - `null.rs`: what the harness itself costs
//!
//! To add a kind of phase: see `phase/mod.rs`.

mod answers;
mod audit;
mod cache_limit;
mod check;
mod data;
mod delay;
mod draws;
mod expected;
#[cfg(test)]
mod liar;
mod load_loop;
mod note;
pub(crate) mod null;
mod one_by_one;
mod operation;
mod own;
pub(crate) mod phase;
mod plan;
mod prove;
mod round;
mod schedule_timer;
mod seen_files;
mod sight;
mod statement;
mod syncs;
mod target;
mod turn;
mod value_kinds;
pub(crate) mod watch;
mod watched;
mod workers;
mod writer;

use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

pub use audit::{Audit, audit, audit_until};
pub use data::OwnRecords;
pub use target::{Opened, Target};
pub use writer::serve as serve_writer;

use self::{data::Records, expected::Expected, own::Made};
use super::{
    derive::{derive, first_wide},
    instruments::{Instruments, Real},
    network::Network,
    processors::Shares,
    results::{self, Cell, Plan, Results},
    run::{Measured, Progress, Stage},
    save,
    schedule::{Orders, Stopped},
    scratch::Scratch,
    stop::{Stop, interrupted},
    workload::{Spread, Table, Workload},
};
use crate::{
    Error, ErrorKind, Result,
    durability::Tier,
    server,
    store::{self, Place, Secrets, Store},
};

/// Puts something around a store.
pub type Around = fn(Arc<dyn Store>) -> Arc<dyn Store>;

/// What to measure, and how.
pub struct Options<'a> {
    /// What is done.
    pub workload: Workload,
    /// Whether its counts are the published ones.
    pub as_published: bool,
    /// By whom; the stores in this process where none is named.
    pub targets: Vec<Target>,
    /// Records in place of those of the workload's first table.
    pub records: Option<OwnRecords>,
    /// The durability of stores that name none themselves.
    pub durability: Option<Tier>,
    /// Whether syncs are counted before anything is timed.
    pub audit: bool,
    /// Seed, stop rule and the rest.
    pub plan: Plan,
    /// Data of stores in this process lie here, in a folder that is removed after; else where
    /// [`data_folder`](server::data_folder) says.
    pub folder: Option<PathBuf>,
    /// The results are written here after each round.
    pub out: Option<PathBuf>,
    /// Ends the run, within an operation or a batch.
    pub stop: Option<&'a Stop>,
    /// This program, for the process that a `recover` phase kills where a store has no server: it is
    /// run as `PROGRAM bench store-writer`, which calls [`serve_writer`]. Without one, such stores have
    /// no part in the phase.
    pub program: Option<PathBuf>,
    /// What is put between clients and servers; stores in this process are as they are.
    pub network: Option<Network>,
    /// Put around each store that is opened: for trying the bench itself.
    pub around: Option<Around>,
    /// Keeps the plan of each statement, as the store's `EXPLAIN` has it.
    pub explain: bool,
}

impl Options<'_> {
    /// A workload on the stores in this process, two minutes at most.
    pub fn new(workload: Workload) -> Self {
        let mut plan = Plan::default();
        (plan.stop.min_starts, plan.stop.max_rounds) = (6, 30);
        Options {
            workload,
            as_published: false,
            targets: Vec::new(),
            records: None,
            durability: None,
            audit: true,
            plan,
            folder: None,
            out: None,
            stop: None,
            program: None,
            network: None,
            around: None,
            explain: false,
        }
    }
}

/// The name of the competitor that keeps nothing.
const NULL: &str = "null";
/// The folder of a store in this process.
const STORE: &str = "store";
/// The table of the proof.
const PROOF: &str = "proof";
/// How long work on other threads may take to end where the run was ended early.
const GRACE: Duration = Duration::from_millis(300);

/// Proves, audits, measures and compares.
///
/// # Errors
/// [`Mismatch`](crate::ErrorKind::Mismatch) where a count does not agree, naming store, phase and round;
/// those of stores and servers. What was measured before stands in [`Options::out`].
pub fn run(options: &Options<'_>, progress: &mut dyn FnMut(Progress<'_>)) -> Result<Results> {
    options.workload.bounded()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut run = Run::new(options, progress)?;
    let ended = runtime.block_on(run.go());
    // However it ended: what is the user's is left as it was.
    let dropped = runtime.block_on(run.made.drop_all());
    let ended = match (ended, dropped) {
        (ended, Ok(())) => ended,
        // What was measured holds; what was left behind is said with it.
        (Ok(stopped), Err(left)) if run.rounds > 0 => {
            run.results
                .dataset
                .remarks
                .push(format!("a database of this run could not be dropped: {left}"));
            Ok(stopped)
        }
        (Ok(_), Err(left)) => Err(left),
        (Err(e), Err(left)) => {
            let what = format!("{}; {}", e.context(), left.context());
            Err(Error::new(e.kind(), what).in_place(e.place().name.clone()))
        }
    };
    if run.stop.is_set() {
        // What still works writes into the run's folder, which is removed next.
        runtime.shutdown_timeout(GRACE);
    }
    let (mut results, rounds) = (run.results, run.rounds);
    derive(&mut results);
    save::hide(&mut results, &secrets(options));
    let ended = match ended {
        Ok(Stopped::Interrupted) if rounds == 0 => Err(interrupted()),
        ended => ended.map(|stopped| results.stopped = Some(stopped)),
    };
    // Without a round there is nothing to put in the place of an earlier file.
    if let Some(path) = options.out.as_ref().filter(|_| rounds > 0) {
        save::write(&results, path)?;
    }
    ended.map(|()| results)
}

fn secrets(options: &Options<'_>) -> Secrets {
    Secrets::of(options.targets.iter().filter_map(Target::own_url))
}

struct Run<'o, 'a, 'p> {
    options: &'o Options<'a>,
    progress: &'p mut dyn FnMut(Progress<'_>),
    targets: Vec<Target>,
    records: Vec<(String, Records)>,
    expected: Vec<Expected>,
    results: Results,
    instruments: Real,
    scratch: Scratch,
    /// In stores of the user's own.
    made: Made,
    begin: u64,
    rounds: u32,
    /// Planned rates of phases whose pace is a share, of each cell.
    offered: HashMap<usize, Vec<f64>>,
    /// Stores that broke.
    broken: HashSet<String>,
    /// Stores that change more of records than they say.
    lossy: HashSet<String>,
    /// What became of the machine's processors inside the windows of this turn.
    shares: Shares,
    stop: Stop,
}

impl<'o, 'a, 'p> Run<'o, 'a, 'p> {
    fn new(options: &'o Options<'a>, progress: &'p mut dyn FnMut(Progress<'_>)) -> Result<Self> {
        let workload = &options.workload;
        plan::bounded(workload)?;
        let stop = Stop::given(options.stop);
        let held = options.records.as_ref().map(|own| Arc::clone(&own.rows));
        let mut records = Vec::new();
        for table in &workload.tables {
            let held = held.clone().filter(|_| table.name == workload.tables[0].name);
            let mut made = Records::new(table, held, options.plan.seed)?;
            made.stop = stop.clone();
            records.push((table.name.clone(), made));
        }
        let mut followed = Vec::new();
        for phase in &workload.phases {
            if let Some(Spread::Trace(file)) = phase.kind.spread()
                && let Some((_, records)) = records.iter_mut().find(|r| r.0 == phase.table)
            {
                followed.push(format!("{}: {}.", phase.name, records.follow(file)?));
            }
        }
        let is_set = || stop.is_set();
        let expected = expected::expected(workload, &records, &is_set);
        followed.extend(expected::check(workload, &records, &expected, &is_set)?);
        stop.check()?;
        let mut targets = match options.targets.is_empty() {
            true => Target::usual(),
            false => options.targets.clone(),
        };
        let at_once = workload.phases.iter().map(|phase| phase.concurrency).max().unwrap_or(1);
        for target in &mut targets {
            *target = target.clone().connected(at_once);
            let layout = workload.tables.iter().find_map(|table| table.layout);
            if let Some(layout) = layout.filter(|_| !target.has_layout()) {
                *target = target.clone().with("layout", layout.name());
            }
            if let Some(tier) = options.durability {
                *target = target.clone().with("durability", tier.name());
            }
        }
        let mut labels: Vec<&str> = targets.iter().map(|t| t.label.as_str()).collect();
        labels.sort_unstable();
        if let Some(twice) = labels.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::invalid(format!("{} is to be measured twice", twice[0])));
        }
        let folder = options.folder.clone().unwrap_or_else(server::data_folder);
        let scratch = Scratch::new(Some(&folder))?;
        let mut instruments = Real::new(scratch.path());
        let mut results = plan::blank(options, &records, &expected);
        results.dataset.remarks.extend(followed);
        if options.folder.is_none() && targets.iter().any(|target| target.own_url().is_none()) {
            results.dataset.remarks.extend(server::elsewhere());
        }
        results.dataset.remarks.extend(value_kinds::remarks(workload, &records, options.plan.seed));
        Ok(Run {
            results,
            begin: instruments.now(),
            options,
            progress,
            targets,
            records,
            expected,
            instruments,
            scratch,
            made: Made::default(),
            rounds: 0,
            offered: HashMap::new(),
            broken: HashSet::new(),
            lossy: HashSet::new(),
            shares: Shares::default(),
            stop,
        })
    }

    async fn go(&mut self) -> Result<Stopped> {
        self.results.clock = self.instruments.clock();
        if let Some(network) = &self.options.network {
            let network = network.clone();
            self.results.network = Some(self.stop.apart(move || network.measure()).await?);
        }
        match self.prove().await {
            Err(_) if self.stopped() => return Ok(Stopped::Interrupted),
            proved => proved?,
        }
        let rule = self.results.plan.stop;
        let mut stopping = rule.watch();
        let mut orders = Orders::new(self.targets.len() + 1, self.results.plan.seed);
        let mut widest = 0;
        loop {
            for (place, who) in orders.next_order().into_iter().enumerate() {
                if self.stopped() {
                    return Ok(Stopped::Interrupted);
                }
                match self.turn(who, place as u32).await {
                    Err(e) if self.stopped() && e.is_outage() => {
                        return Ok(Stopped::Interrupted);
                    }
                    done => done?,
                }
            }
            self.rounds += 1;
            self.results.seconds = self.seconds();
            if let Some(path) = &self.options.out {
                let mut results = self.results.clone();
                derive(&mut results);
                save::hide(&mut results, &secrets(self.options));
                save::write(&results, path)?;
            }
            if self.stopped() {
                return Ok(Stopped::Interrupted);
            }
            let results = &self.results;
            let narrow = || match first_wide(results, rule.precision, widest) {
                Some(wide) => {
                    widest = wide;
                    false
                }
                None => true,
            };
            if let Some(why) =
                stopping.ends(self.rounds, Some(self.rounds), results.seconds, narrow)
            {
                return Ok(why);
            }
        }
    }

    fn stopped(&self) -> bool {
        self.stop.is_set()
    }

    fn seconds(&mut self) -> f64 {
        self.instruments.now().saturating_sub(self.begin) as f64 / 1e9
    }

    fn tell(&mut self, stage: Stage, competitor: &str, phase: &str, of: (usize, usize)) {
        self.tell_of(stage, competitor, phase, of, None);
    }

    fn tell_of(
        &mut self,
        stage: Stage,
        competitor: &str,
        phase: &str,
        of: (usize, usize),
        measured: Option<Measured<'_>>,
    ) {
        let seconds = self.seconds();
        (self.progress)(Progress {
            stage,
            rounds: self.rounds,
            cell: of.0,
            cells: of.1,
            competitor,
            phase,
            seconds,
            budget: self.results.plan.stop.budget,
            long: true,
            measured,
        });
    }

    /// Sees what each store keeps and promises. One that cannot be opened is left out, with its
    /// reason, unless it is the only one.
    async fn prove(&mut self) -> Result<()> {
        let mut left = Vec::new();
        for (i, target) in std::mem::take(&mut self.targets).into_iter().enumerate() {
            self.stop.check()?;
            let count = left.len() + i;
            self.tell(Stage::Proving, &target.label, "", (i, count.max(1)));
            let mut row = results::Contender { name: target.label.clone(), ..Default::default() };
            match self.begin_at(&target).await {
                Ok((proof, kept)) => {
                    (row.proof, row.store) = (Some(proof), Some(kept));
                    left.push(target);
                }
                // What answers wrongly is no store to leave out quietly.
                Err(e) if e.kind() == ErrorKind::Mismatch => {
                    return Err(e.in_place(format!("{}, before anything is timed", target.label)));
                }
                Err(e) => row.refused = Some(e.to_string()),
            }
            self.results.competitors.push(row);
        }
        self.targets = left;
        let Some(first) = self.targets.first() else {
            let first = self.results.competitors.first().and_then(|c| c.refused.clone());
            let why = first.unwrap_or_else(|| "no store is named".into());
            return Err(Error::unavailable(format!("no store can take part: {why}")));
        };
        self.results.baseline = first.label.clone();
        let null = results::Contender { name: NULL.into(), null: true, ..Default::default() };
        self.results.competitors.push(null);
        let names = self.targets.iter().map(|t| t.label.as_str()).chain([NULL]);
        for name in names {
            for phase in &self.results.phases {
                self.results.cells.push(Cell {
                    competitor: name.into(),
                    phase: phase.id.clone(),
                    ..Cell::default()
                });
            }
        }
        Ok(())
    }

    /// Makes what a store of the user's own needs, says so, and looks at the store.
    async fn begin_at(&mut self, target: &Target) -> Result<(results::Proof, results::Kept)> {
        if target.is_remote() {
            let (name, told) = (
                format!("Others during {}", target.label),
                "its server was not started by this program, so that the processor time of others                  on this machine is not known during its turns"
                    .to_owned(),
            );
            self.results.settings.insert(name, told);
        }
        if let Some(told) = self.made.make(target, self.results.plan.seed).await? {
            self.tell(Stage::Making, &target.label, &told, (0, 1));
            self.results.settings.insert(format!("In {}", target.label), told);
        }
        self.look(target).await
    }

    async fn look(&mut self, target: &Target) -> Result<(results::Proof, results::Kept)> {
        let opened = self.open(target).await?;
        let store = self.store(target, &opened.place, PROOF)?;
        // Those whose records the layout has room for; phases of others are left out.
        let filled = plan::filled(&self.options.workload, &self.records);
        let tables: Vec<_> = (self.options.workload.tables.iter().zip(&self.records))
            .filter(|(_, of)| filled.iter().any(|filled| filled.0 == of.0))
            .collect();
        let fits = |of: &&(&Table, &(String, Records))| of.1.1.layout(of.0, store.shape()).is_ok();
        let some: Vec<_> = tables.iter().filter(fits).copied().collect();
        let tables = if some.is_empty() { tables[..1].to_vec() } else { some };
        for table in self.options.workload.tables.iter().map(|t| t.name.as_str()).chain([PROOF]) {
            let named = opened.place.table(&self.made.name(target, table))?;
            self.made.absent(target, table, &*named).await?;
        }
        let proof = self.stop.interruptible(prove::proofs(&store, &tables)).await;
        if proof.is_err() && target.is_own() {
            let _ = store.drop_table().await;
        }
        let prove::Proved { proof, lossy, .. } = proof?;
        if lossy {
            self.lossy.insert(target.label.clone());
        }
        let kept = self.stop.interruptible(prove::kept(target, &opened.place)).await;
        let (mut kept, bound) = kept?;
        if let (Some(network), false) = (&self.options.network, opened.relays.is_empty()) {
            kept.connection += &format!(", round trips of {}", network.round_trip);
        }
        self.results.dataset.remarks.extend(prove::stand_in(&kept));
        let folder = &self.scratch.path().join(STORE);
        let look = audit::Look { target, opened: &opened, folder, bound, stop: &self.stop };
        match self.options.audit {
            true => drop(look.at(&store, &mut kept.durability).await),
            false => look.unseen("turned off", &mut kept.durability),
        }
        Ok((proof, kept))
    }

    /// Starts a target's server and opens its store, with nothing in it.
    async fn open(&mut self, target: &Target) -> Result<Opened> {
        let folder = self.folder()?;
        let wanted = target.clone();
        let server = self.stop.apart(move || wanted.start()).await?;
        let url = self.made.at(target).url(server.as_ref(), &folder);
        let (url, relays) = match &self.options.network {
            Some(network) if !target.is_embedded() => network.between(&url)?,
            _ => (url, Vec::new()),
        };
        let place = self.stop.interruptible(store::open(&url)).await?;
        Ok(Opened { place, url, relays, server })
    }

    /// A new, empty folder for a store in this process.
    fn folder(&self) -> Result<PathBuf> {
        let folder = self.scratch.path().join(STORE);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// The records of a table.
    fn records_of(&self, table: &str) -> Result<&Records> {
        let found = self.records.iter().find(|records| records.0 == table);
        found.map(|of| &of.1).ok_or_else(|| Error::invalid(format!("no records of table {table}")))
    }

    /// A table of a store.
    fn store(&self, target: &Target, place: &Place, table: &str) -> Result<Arc<dyn Store>> {
        Ok(self.wrapping(target).around(place.table(&self.made.name(target, table))?))
    }

    /// What stands around the tables of a store.
    fn wrapping(&self, target: &Target) -> Wrapping {
        Wrapping { delay: target.delay(), around: self.options.around }
    }
}

/// What stands around each table of a store, also after the store was opened again.
#[derive(Clone, Copy, Default)]
struct Wrapping {
    /// A share by which each operation is slowed down.
    delay: Option<f64>,
    around: Option<Around>,
}

impl Wrapping {
    fn around(self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        let store = match self.delay {
            Some(share) => delay::Delayed::around(store, share),
            None => store,
        };
        self.around.map_or(Arc::clone(&store), |around| around(store))
    }
}
