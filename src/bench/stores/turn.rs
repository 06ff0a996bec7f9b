//! One competitor on one start: its phases in order, each in a timed window.
//!
//! Records are made, operations drawn, counts and answers checked (`check.rs`) outside of the windows. A file for each kind
//! of phase that takes more than a few lines: `load.rs`, `singles.rs`, `index.rs`, `rewrite.rs`,
//! `recover.rs`; `room.rs` limits the server's cache for a phase.

mod check;
mod index;
mod load;
mod recover;
mod rewrite;
mod room;
mod singles;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
};

use futures_util::TryStreamExt;

use self::singles::WarmUp;
use super::{
    Opened, Wrapping,
    crew::Crew,
    data::Records,
    drive::{Stores, Window, going_on},
    expected::Expected,
    statement, watch,
};
use crate::{
    Error, ErrorKind, Result,
    bench::{
        accounting::Usage,
        clock::Monotonic,
        processors::{Seen, Shares},
        results::{Bloat, Bytes, IndexCost, Recovery, ServerUse, Statement},
        schedule::Pace,
        workload::{Act, Phase, Table, Workload},
    },
    server::Server,
    store::{self, KeyRange, Query, Request, Store, blocking},
};

/// A competitor at work.
pub(super) struct Bout<'a> {
    pub clock: Monotonic,
    pub workload: &'a Workload,
    /// The records of each table.
    pub records: &'a [(String, Records)],
    /// The tables, by the name they have in the workload.
    pub tables: HashMap<String, Arc<dyn Store>>,
    /// What they are called in the store.
    pub names: HashMap<String, String>,
    /// The store, and the private server behind it.
    pub opened: Option<&'a mut Opened>,
    /// Its URL.
    pub url: String,
    /// The same while its cache is as usual, once it was not.
    usual_url: Option<String>,
    /// Where its data lie, where that is known, and what lay there before anything was written.
    pub folder: Option<(PathBuf, Bytes)>,
    /// Draws follow from it.
    pub seed: u64,
    /// It keeps nothing, so nothing is checked.
    pub null: bool,
    /// It is the user's own.
    pub own: bool,
    /// This program, where it is known.
    pub program: Option<PathBuf>,
    /// What stands around each table of the store.
    pub around: Wrapping,
    /// It works on the threads of its callers ([`Target::is_embedded`](super::Target::is_embedded)).
    pub embedded: bool,
    /// Each phase says by which statements it was done.
    pub explains: bool,
    /// Set where the run is to end.
    pub ended: Arc<AtomicBool>,
    /// Tables that are there.
    prepared: HashSet<String>,
    /// Tables whose indexes the store cannot have, and why.
    unindexed: HashMap<String, String>,
    /// Tables that the store cannot have at all, and why.
    unmade: HashMap<String, String>,
    /// What shares are shares of, by table: the phase that measured it, and operations a second.
    capacity: HashMap<String, (String, f64)>,
    /// Records that phases have added to tables.
    grown: HashMap<String, u64>,
    /// Records that are in tables.
    there: HashMap<String, u64>,
    /// The share of the data that the store's cache holds, where it is limited.
    limited: Option<f64>,
    /// What has to be said of how phases were done, by a word for it.
    pub told: BTreeMap<String, String>,
    /// The proof has seen it change more of records than it says.
    pub lossy: bool,
    /// Phases that have left records other than they were loaded.
    changes: Vec<check::Change>,
    /// What was deleted from tables.
    gone: Vec<(String, Query)>,
}

/// What a phase came to.
#[derive(Debug, Default)]
pub(super) struct Done {
    /// Operations done and found good.
    pub units: u64,
    /// Records read.
    pub items: u64,
    pub used: Usage,
    pub server: Option<ServerUse>,
    /// What became of the machine's processors meanwhile.
    pub shares: Option<Shares>,
    pub window: Option<Window>,
    /// Nanoseconds an operation took in each warm-up window.
    pub warm_up: Vec<f64>,
    pub settled: bool,
    /// Operations a second that were planned.
    pub offered: Option<f64>,
    /// What the store was sent.
    pub statements: Vec<Statement>,
    /// Of a phase that is about disk, an index, a crash.
    pub bloat: Option<Bloat>,
    pub index: Option<IndexCost>,
    pub recovery: Option<Recovery>,
}

/// The counters before a window.
struct Before {
    server: Option<ServerUse>,
    /// Processor time of the relays to the server, which are ours as well.
    relays: u64,
    seen: Option<Seen>,
    used: Usage,
    at: u64,
}

impl<'a> Bout<'a> {
    pub fn new(
        workload: &'a Workload,
        records: &'a [(String, Records)],
        tables: HashMap<String, Arc<dyn Store>>,
        opened: Option<&'a mut Opened>,
        seed: u64,
    ) -> Self {
        Bout {
            clock: Monotonic::default(),
            workload,
            records,
            tables,
            names: HashMap::new(),
            null: opened.is_none(),
            opened,
            url: String::new(),
            usual_url: None,
            folder: None,
            seed,
            own: false,
            program: None,
            around: Wrapping::default(),
            embedded: false,
            explains: false,
            ended: Arc::default(),
            prepared: HashSet::new(),
            unindexed: HashMap::new(),
            unmade: HashMap::new(),
            capacity: HashMap::new(),
            grown: HashMap::new(),
            there: HashMap::new(),
            limited: None,
            told: BTreeMap::new(),
            lossy: false,
            changes: Vec::new(),
            gone: Vec::new(),
        }
    }

    /// Does a phase.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) where the store cannot do it: it is then left out;
    /// [`Mismatch`](ErrorKind::Mismatch) where counts do not agree; those of the store.
    pub async fn act(&mut self, phase: &Phase, expected: &Expected) -> Result<Done> {
        match self.embedded {
            true => blocking(self.perform(phase, expected)).await,
            false => self.perform(phase, expected).await,
        }
    }

    async fn perform(&mut self, phase: &Phase, expected: &Expected) -> Result<Done> {
        self.possible(phase)?;
        self.make_room(phase).await?;
        let store = Arc::clone(self.table(&phase.table)?);
        match &phase.act {
            Act::Prepare => self.make(phase).await,
            Act::Load { way, batch } => self.load(phase, *way, *batch).await,
            Act::Index { paths, writes } => self.index(phase, paths, *writes).await,
            Act::Delete(filter) => {
                let count = store.count().await?;
                let statements = self.explained(&*store, Request::Delete(filter)).await;
                let before = self.before();
                let deleted = store.delete(filter).await?;
                let mut done = self.after(before, self.or_null(deleted, expected));
                done.statements = statements;
                self.agree("records were deleted", deleted, expected)?;
                let left = store.count().await?;
                self.same("records are left", left, count.saturating_sub(deleted))?;
                self.there.insert(phase.table.clone(), left);
                let query = Query::new(filter.clone());
                self.deleted(&phase.table, &query).await?;
                self.gone.push((phase.table.clone(), query));
                Ok(done)
            }
            Act::Scan => {
                let statements = self.explained(&*store, Request::Scan(&KeyRange::all())).await;
                let before = self.before();
                let mut rows = store.scan(&KeyRange::all()).await?;
                let (mut read, mut first, mut last) = (0, Vec::new(), Vec::new());
                while let Some(batch) = rows.try_next().await? {
                    read += batch.len() as u64;
                    going_on(&self.ended)?;
                    match first.is_empty() {
                        true => first = batch,
                        false => last = batch,
                    }
                }
                drop(rows);
                let mut done = self.after(before, read);
                first.append(&mut last);
                self.scanned(&phase.table, first)?;
                (done.items, done.statements) = (read, statements);
                match self.there.get(&phase.table) {
                    Some(there) => self.same("records were read", read, *there)?,
                    None => self.agree("records were read", read, expected)?,
                }
                Ok(done)
            }
            Act::Settle => {
                let before = self.before();
                match store.settle().await? {
                    true => Ok(self.after(before, 1)),
                    false => Err(Error::unsupported("nothing to do")),
                }
            }
            Act::Rewrite { times, batch } => self.rewrite(phase, *times, *batch).await,
            Act::Recover => self.recover(phase).await,
            Act::Get { .. }
            | Act::Find { .. }
            | Act::Relate { .. }
            | Act::Update { .. }
            | Act::Mix { .. } => {
                let warm_up = match phase.room {
                    None if phase.repeats() => WarmUp::Steady,
                    Some(room) if room.warm => WarmUp::Once,
                    None | Some(_) => WarmUp::No,
                };
                self.one_by_one(phase, expected, warm_up).await
            }
        }
    }

    /// Whether the store has the tables of a phase, and could do something with them.
    fn possible(&self, phase: &Phase) -> Result<()> {
        let to = match &phase.act {
            Act::Relate { to, .. } => Some(to),
            _ => None,
        };
        if let Some(why) = self.unmade.get(&phase.table).or(to.and_then(|to| self.unmade.get(to))) {
            return Err(Error::unsupported(why.clone()));
        }
        if self.workload.only_joined(&phase.table) {
            self.table(&phase.table)?.abilities().can_join()?;
        }
        let needed = phase.act.needs(&phase.table);
        match needed.iter().find(|table| !self.there.contains_key(**table)) {
            Some(table) => Err(Error::unsupported(format!(
                "table {table} is empty: its records cannot be loaded as asked"
            ))),
            None => Ok(()),
        }
    }

    fn table(&self, name: &str) -> Result<&Arc<dyn Store>> {
        self.tables.get(name).ok_or_else(|| Error::invalid(format!("no table {name}")))
    }

    fn declared(&self, name: &str) -> Result<&'a Table> {
        self.workload.table(name).ok_or_else(|| Error::invalid(format!("no table {name}")))
    }

    fn records(&self, name: &str) -> Result<&'a Records> {
        let found = self.records.iter().find(|records| records.0 == name);
        found.map(|r| &r.1).ok_or_else(|| Error::invalid(format!("no records of table {name}")))
    }

    /// The statement of an operation, where that is wanted.
    async fn explained(&self, store: &dyn Store, request: Request<'_>) -> Vec<Statement> {
        match self.explains {
            true => statement::of(store, request).await,
            false => Vec::new(),
        }
    }

    fn server(&self) -> Option<&Server> {
        self.opened.as_deref().and_then(|opened| opened.server.as_ref())
    }

    /// Nanoseconds of processor time that the relays to the server have used.
    fn relays(&self) -> u64 {
        let relays = self.opened.as_deref().map_or(&[][..], |opened| &opened.relays);
        relays.iter().map(|relay| watch::processor_time(relay.id())).sum()
    }

    /// Opens the store again, after its server was started again.
    async fn reopen(&mut self) -> Result<()> {
        let Some(opened) = &mut self.opened else { return Ok(()) };
        opened.place = store::open(&self.url).await?;
        for (table, name) in &self.names {
            self.tables.insert(table.clone(), self.around.around(opened.place.table(name)?));
        }
        Ok(())
    }

    /// How many records are in all tables.
    pub fn kept(&self) -> u64 {
        self.there.values().sum()
    }

    /// Bytes on disk now, less what an empty store has; none where nobody can look.
    pub fn disk(&self) -> Option<Bytes> {
        let (folder, empty) = self.folder.as_ref()?;
        Some(watch::allocated(folder).less(empty))
    }

    fn before(&self) -> Before {
        let server = self.server().map(watch::used);
        let relays = self.relays();
        Before { server, relays, seen: Seen::now(), used: Usage::now(), at: self.clock.now() }
    }

    /// The end of a window, before anything else is done.
    fn after(&self, before: Before, units: u64) -> Done {
        let ns = self.clock.now() - before.at;
        let used = Usage { ns, ..Usage::now().since(&before.used) };
        let seen = Seen::now();
        let server = before.server.zip(self.server());
        let server = server.map(|(before, server)| watch::between(&before, &watch::used(server)));
        let served = server.map_or(0, |server| server.user_ns + server.system_ns)
            + self.relays().saturating_sub(before.relays);
        let shares = before.seen.zip(seen).map(|(b, now)| now.with_servers(served).since(&b));
        Done { units, used, server, shares, settled: true, ..Done::default() }
    }

    /// So many, or of who keeps nothing as many as of the others.
    fn or_null(&self, counted: u64, expected: &Expected) -> u64 {
        match expected {
            Expected::Records(n) if self.null => *n,
            _ => counted,
        }
    }

    fn agree(&self, what: &str, got: u64, expected: &Expected) -> Result<()> {
        match expected {
            Expected::Records(wanted) => self.same(what, got, *wanted),
            Expected::Numbers(_) | Expected::Belonging(_) | Expected::Unknown => Ok(()),
        }
    }

    fn same(&self, what: &str, got: u64, wanted: u64) -> Result<()> {
        match got == wanted || self.null {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Mismatch, format!("{got} {what}, not {wanted}"))),
        }
    }

    fn stores(&self, phase: &Phase) -> Result<Stores> {
        let other = match &phase.act {
            Act::Relate { to, .. } => Some(Arc::clone(self.table(to)?)),
            _ => None,
        };
        Ok(Stores { table: Arc::clone(self.table(&phase.table)?), other })
    }

    /// Who sends the operations of a phase. In an open loop also one alone is a thread: nothing else
    /// of ours may keep it from its next moment.
    fn crew(&self, phase: &Phase) -> Result<Crew> {
        let workers = phase.concurrency as usize;
        let mut crew = match self.embedded && (workers > 1 || phase.pace != Pace::Free) {
            true => Crew::of_threads(workers)?,
            false => Crew::of_tasks(workers),
        };
        crew.ended = Arc::clone(&self.ended);
        Ok(crew)
    }
}

impl Done {
    /// Adds the next part of the same window.
    fn add(&mut self, part: Done) {
        self.units += part.units;
        self.items += part.items;
        self.used = self.used.plus(&part.used);
        self.shares = self.shares.zip(part.shares).map_or(part.shares, |(a, b)| Some(a.plus(&b)));
        self.server = match (self.server, part.server) {
            (Some(a), Some(b)) => Some(ServerUse {
                user_ns: a.user_ns + b.user_ns,
                system_ns: a.system_ns + b.system_ns,
                memory: b.memory,
                written: a.written + b.written,
            }),
            (a, b) => b.or(a),
        };
        match (&mut self.window, part.window) {
            (Some(all), Some(part)) => all.add(part),
            (all @ None, part) => *all = part,
            (Some(_), None) => {}
        }
    }
}
