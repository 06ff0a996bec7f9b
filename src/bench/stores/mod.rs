//! `bench WORKLOAD`: which store, for these records and this work.
//!
//! A round is one whole run of the workload by every store, each on fresh data and, where it has a
//! private server, on a freshly started one; only one store runs at a time. The order of the stores
//! is balanced from round to round, ratios are taken within rounds (rules 5 and 6).
//!
//! - `target.rs`: what is measured, and how it is started
//! - `data.rs`, `ops.rs`: records and operations, made outside of the windows; counts known beforehand
//! - `act.rs`: the phases of one store on one start; `drive.rs`, `pace.rs`: the timed loops
//! - `own.rs`: what is made for a run in stores of the user's own
//! - `relate.rs`: from records to those that belong to them
//! - `plan.rs`: the results before anything is done
//! - `prove.rs`, `watch.rs`, `audit.rs`: what is kept, used, synced
//! - `null.rs`: what the harness itself costs
//!
//! To add a kind of phase: see `bench/workload`.

mod act;
mod audit;
mod data;
mod drive;
mod null;
mod ops;
mod own;
mod pace;
mod plan;
mod prove;
mod relate;
mod target;
mod watch;

use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

pub use audit::{Audit, audit};
pub use data::OwnRecords;
pub use target::{Opened, Target};

use self::{
    act::{Bout, Done},
    data::{Expected, Records},
    null::Null,
    own::Made,
};
use super::{
    derive::{derive, first_wide},
    instruments::{Instruments, Real},
    results::{self, Cell, Latency, Plan, Results, Tally},
    run::{Measured, Progress, Stage},
    save,
    schedule::{Orders, Stopped},
    scratch::Scratch,
    workload::{Table, Workload},
};
use crate::{
    Error, ErrorKind, Result,
    durability::Tier,
    server::Server,
    store::{self, Place, Store},
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
    /// Data of stores in this process lie here, in a folder that is removed after; else in the
    /// system's place for temporary files.
    pub folder: Option<PathBuf>,
    /// The results are written here after each round.
    pub out: Option<PathBuf>,
    /// Ends the run, at the next border of a phase.
    pub stop: Option<&'a AtomicBool>,
    /// Put around each store that is opened: for trying the bench itself.
    pub around: Option<Around>,
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
            around: None,
        }
    }
}

/// The name of the competitor that keeps nothing.
const NULL: &str = "null";
/// The table of the proof.
const PROOF: &str = "proof";

/// Proves, audits, measures and compares.
///
/// # Errors
/// [`Mismatch`](ErrorKind::Mismatch) where a count does not agree, naming store, phase and round;
/// those of stores and servers. What was measured before stands in [`Options::out`].
pub fn run(options: &Options<'_>, progress: &mut dyn FnMut(Progress<'_>)) -> Result<Results> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut run = Run::new(options, progress)?;
    let ended = runtime.block_on(run.go());
    // However it ended: what is the user's is left as it was.
    let dropped = runtime.block_on(run.made.drop_all());
    let ended = match (ended, dropped) {
        (Ok(stopped), Ok(())) => Ok(stopped),
        (Ok(_), Err(e)) | (Err(e), Ok(())) => Err(e),
        (Err(e), Err(left)) => {
            let what = format!("{}; {}", e.context(), left.context());
            Err(Error::new(e.kind(), what).in_place(e.place().name.clone()))
        }
    };
    let mut results = run.results;
    derive(&mut results);
    match ended {
        Ok(stopped) => results.stopped = Some(stopped),
        Err(e) => {
            if let Some(path) = &options.out {
                save::write(&results, path)?;
            }
            return Err(e);
        }
    }
    if let Some(path) = &options.out {
        save::write(&results, path)?;
    }
    Ok(results)
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
}

impl<'o, 'a, 'p> Run<'o, 'a, 'p> {
    fn new(options: &'o Options<'a>, progress: &'p mut dyn FnMut(Progress<'_>)) -> Result<Self> {
        let workload = &options.workload;
        let held = options.records.as_ref().map(|own| Arc::clone(&own.rows));
        let mut records = Vec::new();
        for table in &workload.tables {
            let held = held.clone().filter(|_| table.name == workload.tables[0].name);
            records.push((table.name.clone(), Records::new(table, held, options.plan.seed)?));
        }
        let expected = data::expected(workload, &records);
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
        let scratch = Scratch::new(options.folder.as_deref())?;
        let mut instruments = Real::new(scratch.path());
        Ok(Run {
            results: plan::blank(options, &records, &expected),
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
        })
    }

    async fn go(&mut self) -> Result<Stopped> {
        self.results.clock = self.instruments.clock();
        self.prove().await?;
        let rule = self.results.plan.stop;
        let mut stopping = rule.watch();
        let mut orders = Orders::new(self.targets.len() + 1, self.results.plan.seed);
        let mut widest = 0;
        loop {
            let probe = self.instruments.probe(self.rounds);
            // What others used since the last round was mostly the stores' own servers.
            self.results.probes.push(results::Probe { others: None, ..probe });
            for (place, who) in orders.next_order().into_iter().enumerate() {
                if self.stopped() {
                    return Ok(Stopped::Interrupted);
                }
                match self.bout(who, place as u32).await {
                    Err(e) if self.stopped() && e.kind() == ErrorKind::Unavailable => {
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
        self.options.stop.is_some_and(|stop| stop.load(Relaxed))
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
            let count = left.len() + i;
            self.tell(Stage::Proving, &target.label, "", (i, count.max(1)));
            let mut row = results::Contender { name: target.label.clone(), ..Default::default() };
            match self.begin_at(&target).await {
                Ok((proof, kept)) => {
                    (row.proof, row.store) = (Some(proof), Some(kept));
                    left.push(target);
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
        if let Some(told) = self.made.make(target, self.results.plan.seed).await? {
            self.tell(Stage::Making, &target.label, &told, (0, 1));
            self.results.settings.insert(format!("In {}", target.label), told);
        }
        self.look(target).await
    }

    async fn look(&mut self, target: &Target) -> Result<(results::Proof, results::Kept)> {
        let opened = self.open(target).await?;
        let store = self.store(target, &opened.place, PROOF)?;
        // The first whose records the layout has room for; phases of others are left out.
        let tables = self.options.workload.tables.iter().zip(&self.records);
        let fits = |of: &(&Table, &(String, Records))| of.1.1.layout(of.0, store.shape()).is_ok();
        let first = tables.clone().find(fits).or(tables.clone().next());
        let (table, (_, records)) = first.ok_or_else(|| Error::invalid("no table"))?;
        for table in self.options.workload.tables.iter().map(|t| t.name.as_str()).chain([PROOF]) {
            let named = opened.place.table(&self.made.name(target, table))?;
            self.made.absent(target, table, &*named).await?;
        }
        let proof = prove::proof(&store, table, records).await;
        if proof.is_err() && target.is_own() {
            let _ = store.drop_table().await;
        }
        let proof = proof?;
        let mut kept = prove::kept(target, &opened.place).await?;
        if self.options.audit && !target.is_own() {
            let seen = audit::observe(&opened, &store).await;
            seen.into_durability(&mut kept.durability);
        }
        Ok((proof, kept))
    }

    /// Starts a target's server and opens its store, with nothing in it.
    async fn open(&mut self, target: &Target) -> Result<Opened> {
        let folder = self.folder()?;
        // Off the runtime's thread nothing else runs: it may stand still for a server to start.
        let server = target.start()?;
        let place = store::open(&self.made.at(target).url(server.as_ref(), &folder)).await?;
        Ok(Opened { place, server })
    }

    /// A new, empty folder for a store in this process.
    fn folder(&self) -> Result<PathBuf> {
        let folder = self.scratch.path().join("store");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// A table of a store.
    fn store(&self, target: &Target, place: &Place, table: &str) -> Result<Arc<dyn Store>> {
        let store = place.table(&self.made.name(target, table))?;
        Ok(self.options.around.map_or(Arc::clone(&store), |around| around(store)))
    }

    /// One competitor's run of the workload: `who` is a target, or the null competitor after them.
    async fn bout(&mut self, who: usize, place: u32) -> Result<()> {
        let target = self.targets.get(who).cloned();
        let label = target.as_ref().map_or(NULL.to_owned(), |t| t.label.clone());
        if self.broken.contains(&label) {
            return Ok(());
        }
        self.tell(Stage::Preparing, &label, "", (0, self.results.phases.len()));
        let opened = match &target {
            Some(target) => Some(self.open(target).await.map_err(|e| e.in_place(label.as_str()))?),
            None => None,
        };
        let empty = opened.as_ref().and_then(|o| self.allocated(o));
        let (mut tables, mut names) = (HashMap::new(), HashMap::new());
        for table in &self.options.workload.tables {
            let store = match (&target, &opened) {
                (Some(target), Some(opened)) => {
                    names.insert(table.name.clone(), self.made.name(target, &table.name));
                    self.store(target, &opened.place, &table.name)?
                }
                _ => Arc::new(Null) as Arc<dyn Store>,
            };
            tables.insert(table.name.clone(), store);
        }
        let stores: Vec<Arc<dyn Store>> = tables.values().cloned().collect();
        let done = self.phases(&label, place, opened.as_ref(), (tables, names)).await;
        if target.as_ref().is_some_and(Target::is_own) {
            for store in &stores {
                // Also where it failed: what is the user's is left as it was.
                let dropped = store.drop_table().await;
                dropped.or_else(|e| if done.is_err() { Ok(()) } else { Err(e) })?;
            }
        }
        done?;
        if let Some((opened, empty)) = opened.as_ref().zip(empty)
            && let Some(full) = self.allocated(opened)
        {
            let disk = results::Disk {
                start: self.rounds,
                data: full.data.saturating_sub(empty.data),
                logs: full.logs.saturating_sub(empty.logs),
            };
            let row = self.results.competitors.iter_mut().find(|c| c.name == label);
            if let Some(kept) = row.and_then(|row| row.store.as_mut()) {
                kept.disk.push(disk);
            }
        }
        drop(stores);
        Ok(())
    }

    fn allocated(&self, opened: &Opened) -> Option<results::Disk> {
        match &opened.server {
            Some(server) => Some(watch::allocated(server.data())),
            None => {
                let folder = self.scratch.path().join("store");
                folder.is_dir().then(|| watch::allocated(&folder))
            }
        }
    }

    async fn phases(
        &mut self,
        label: &str,
        place: u32,
        opened: Option<&Opened>,
        (tables, names): (HashMap<String, Arc<dyn Store>>, HashMap<String, String>),
    ) -> Result<()> {
        let options = self.options;
        let workload = &options.workload;
        let server: Option<&Server> = opened.and_then(|opened| opened.server.as_ref());
        let records = std::mem::take(&mut self.records);
        let seed = self.results.plan.seed.wrapping_add(u64::from(self.rounds));
        let mut bout = Bout::new(workload, &records, tables, server, seed);
        (bout.null, bout.names) = (opened.is_none(), names);
        let mut ended = Ok(());
        for (p, phase) in workload.phases.iter().enumerate() {
            if self.stopped() {
                break;
            }
            self.tell(Stage::Timing, label, &phase.name, (p, workload.phases.len()));
            let at = self.results.cells.iter();
            let at = at.clone().position(|c| c.competitor == label && c.phase == phase.name);
            let Some(cell) = at else { continue };
            if self.results.cells[cell].refused.is_some() {
                // Its table may be needed all the same.
                let _ = bout.act(phase, &self.expected[p]).await;
                continue;
            }
            match bout.act(phase, &self.expected[p]).await {
                Ok(done) => {
                    let seconds = done.used.ns as f64 / 1e9;
                    let of = (p + 1, workload.phases.len());
                    let measured = Measured { units: done.units, unit: phase.unit(), seconds };
                    self.note(cell, done, place);
                    self.tell_of(Stage::Timing, label, &phase.name, of, Some(measured));
                }
                Err(e) if e.kind() == ErrorKind::Unsupported => {
                    self.results.cells[cell].refused = Some(e.context().to_owned());
                }
                // A store that breaks is no reason to know nothing of the others.
                Err(e) if e.kind() == ErrorKind::Unavailable && !self.stopped() => {
                    self.broke(label, &phase.name, &e);
                    break;
                }
                Err(e) => {
                    let at = format!("{label}, {}, round {}", phase.name, self.rounds + 1);
                    ended = Err(e.in_place(at));
                    break;
                }
            }
        }
        drop(bout);
        self.records = records;
        ended
    }

    /// Leaves a store out from here on, because it broke in a phase.
    fn broke(&mut self, label: &str, phase: &str, error: &Error) {
        let why = format!("failed: {}", error.context());
        let mut reached = false;
        for cell in self.results.cells.iter_mut().filter(|c| c.competitor == label) {
            let here = cell.phase == phase;
            reached |= here;
            if reached && cell.rounds.is_empty() && cell.refused.is_none() {
                cell.refused = Some(if here { why.clone() } else { format!("{phase} {why}") });
            }
        }
        let round = self.rounds + 1;
        let remark = format!(
            "{label} broke in phase {phase} of round {round}, and was left out after it: {error}"
        );
        self.results.dataset.remarks.push(remark);
        self.broken.insert(label.to_owned());
    }

    /// Puts down what a phase came to.
    fn note(&mut self, at: usize, done: Done, place: u32) {
        let start = self.rounds;
        let cell = &mut self.results.cells[at];
        if let Some(phase) = self.results.phases.iter_mut().find(|p| p.id == cell.phase) {
            phase.units = if phase.units == 0 { done.units } else { phase.units };
        }
        let mut round = done.used.round(start, self.rounds, place);
        (round.units, round.server) = (done.units, done.server);
        if cell.rounds.is_empty() {
            (cell.units, cell.items) = (done.units, done.items);
            (cell.warm_up, cell.settled) = (done.warm_up, done.settled);
        }
        cell.rounds.push(round);
        if let Some(window) = done.window {
            let open = window.latency.service.is_some();
            let latency = cell.latency.get_or_insert_with(|| Latency::of_window(open));
            latency.add(&window.latency);
            cell.tally = Some(cell.tally.unwrap_or_default().plus(window.tally));
        } else {
            let done = Tally { done: done.units, ..Tally::default() };
            cell.tally = Some(cell.tally.unwrap_or_default().plus(done));
        }
        if let Some(offered) = done.offered {
            let all = self.offered.entry(at).or_default();
            all.push(offered);
            cell.offered = super::stats::median(all);
        }
    }
}
