//! One store's turn in a round: one start of it, on which its phases are done in order, each in a timed
//! window.
//!
//! Records are made, operations drawn, counts and answers checked (`check.rs`) outside of the windows.
//! What a phase does is its kind's (`phase/`); here is what the kinds share: the tables and what is in
//! them, the counters around a window, the workers.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    path::PathBuf,
    sync::Arc,
};

use super::{
    Opened, Wrapping, check::Change, data::Records, draws::Draws, expected::Expected,
    load_loop::Window, operation::Stores, statement, watch, workers::Workers,
};
use crate::{
    Error, ErrorKind, Result,
    accounting::Usage,
    clock::Monotonic,
    processors::{Seen, Shares},
    results::{Bloat, Bytes, IndexCost, Recovery, ServerUse, Statement},
    schedule::Pace,
    server::Server,
    stop::Stop,
    store::{self, Query, Request, Store, blocking},
    workload::{Phase, Table, Workload},
};

/// A store's turn.
pub(crate) struct Turn<'a> {
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
    /// The same with its usual cache, once that was limited.
    pub(super) usual_url: Option<String>,
    /// Where its data lie, where that is known, and what lay there before anything was written.
    pub folder: Option<(PathBuf, Bytes)>,
    /// Draws follow from it.
    pub seed: u64,
    /// The competitor that keeps nothing, so that nothing is checked.
    pub null: bool,
    /// It is the user's own.
    pub own: bool,
    /// This program, where it is known.
    pub program: Option<PathBuf>,
    /// What each table of the store is wrapped in.
    pub(super) around: Wrapping,
    /// It works on the threads of its callers ([`Target::is_embedded`](super::Target::is_embedded)).
    pub embedded: bool,
    /// Each phase keeps the statements that it took.
    pub explains: bool,
    /// Set where the run is to end.
    pub ended: Stop,
    /// Tables that are there.
    pub(super) prepared: HashSet<String>,
    /// Tables whose indexes the store cannot have, and why.
    pub(super) unindexed: HashMap<String, String>,
    /// Tables that the store cannot have at all, and why.
    pub(super) unmade: HashMap<String, String>,
    /// What shares are shares of, by table: the phase that measured it, and operations a second.
    pub(super) capacity: HashMap<String, (String, f64)>,
    /// Records that phases have added to tables.
    pub(super) grown: HashMap<String, u64>,
    /// Records that are in tables.
    pub(super) there: HashMap<String, u64>,
    /// The share of the data that the store's cache holds, where it is limited.
    pub(super) limited: Option<f64>,
    /// What the report says of how phases were done, by a word for it.
    pub told: BTreeMap<String, String>,
    /// The proof has seen it change more of records than it declares.
    pub lossy: bool,
    /// Phases that have left records other than they were loaded.
    pub(super) changes: Vec<Change>,
    /// What was deleted from tables.
    pub(super) gone: Vec<(String, Query)>,
}

/// The result of a phase.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// Operations done and found correct.
    pub units: u64,
    /// Records read.
    pub items: u64,
    pub used: Usage,
    pub server: Option<ServerUse>,
    /// What the machine's processors were used for meanwhile.
    pub shares: Option<Shares>,
    pub(super) window: Option<Window>,
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
pub(super) struct Before {
    server: Option<ServerUse>,
    /// Processor time of the relays to the server, which are ours as well.
    relays: u64,
    seen: Option<Seen>,
    used: Usage,
    /// When it began, on the clock.
    pub at: u64,
}

impl<'a> Turn<'a> {
    pub(crate) fn new(
        workload: &'a Workload,
        records: &'a [(String, Records)],
        tables: HashMap<String, Arc<dyn Store>>,
        opened: Option<&'a mut Opened>,
        seed: u64,
    ) -> Self {
        Turn {
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
            ended: Stop::default(),
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
    pub(crate) async fn run(&mut self, phase: &Phase, expected: &Expected) -> Result<Done> {
        match self.embedded {
            true => blocking(self.run_here(phase, expected)).await,
            false => self.run_here(phase, expected).await,
        }
    }

    async fn run_here(&mut self, phase: &Phase, expected: &Expected) -> Result<Done> {
        self.possible(phase)?;
        self.limit_cache(phase).await?;
        phase.kind.run(self, phase, expected).await
    }

    /// Whether the store has the tables of a phase, and could do something with them.
    fn possible(&self, phase: &Phase) -> Result<()> {
        let other = phase.kind.other_table();
        let unmade = |table| self.unmade.get(table);
        if let Some(why) = unmade(&*phase.table).or(other.and_then(unmade)) {
            return Err(Error::unsupported(why.clone()));
        }
        if self.workload.only_joined(&phase.table) {
            self.table(&phase.table)?.abilities().can_join()?;
        }
        let needed = phase.kind.needs(&phase.table);
        match needed.iter().find(|table| !self.there.contains_key(**table)) {
            Some(table) => Err(Error::unsupported(format!(
                "table {table} is empty: its records cannot be loaded as asked"
            ))),
            None => Ok(()),
        }
    }

    pub(super) fn table(&self, name: &str) -> Result<&Arc<dyn Store>> {
        self.tables.get(name).ok_or_else(|| Error::invalid(format!("no table {name}")))
    }

    pub(super) fn declared(&self, name: &str) -> Result<&'a Table> {
        self.workload.table(name).ok_or_else(|| Error::invalid(format!("no table {name}")))
    }

    pub(super) fn records(&self, name: &str) -> Result<&'a Records> {
        let found = self.records.iter().find(|records| records.0 == name);
        found.map(|r| &r.1).ok_or_else(|| Error::invalid(format!("no records of table {name}")))
    }

    /// The statement of an operation, where that is wanted.
    pub(super) async fn explained(
        &self,
        store: &dyn Store,
        request: Request<'_>,
    ) -> Vec<Statement> {
        match self.explains {
            true => statement::of(store, request).await,
            false => Vec::new(),
        }
    }

    pub(super) fn server(&self) -> Option<&Server> {
        self.opened.as_deref().and_then(|opened| opened.server.as_ref())
    }

    /// Nanoseconds of processor time that the relays to the server have used.
    fn relays(&self) -> u64 {
        let relays = self.opened.as_deref().map_or(&[][..], |opened| &opened.relays);
        relays.iter().map(|relay| watch::processor_time(relay.id())).sum()
    }

    /// Opens the store again, after its server was started again.
    pub(super) async fn reopen(&mut self) -> Result<()> {
        let Some(opened) = &mut self.opened else { return Ok(()) };
        opened.place = store::open(&self.url).await?;
        for (table, name) in &self.names {
            self.tables.insert(table.clone(), self.around.around(opened.place.table(name)?));
        }
        Ok(())
    }

    /// How many records are in all tables.
    pub(crate) fn kept(&self) -> u64 {
        self.there.values().sum()
    }

    /// Bytes on disk now, less what an empty store has; none where nobody can look.
    pub(crate) fn disk(&self) -> Option<Bytes> {
        let (folder, empty) = self.folder.as_ref()?;
        Some(watch::allocated(folder).less(empty))
    }

    pub(super) fn before(&self) -> Before {
        let server = self.server().map(watch::used);
        let relays = self.relays();
        Before { server, relays, seen: Seen::now(), used: Usage::now(), at: self.clock.now() }
    }

    /// The end of a window, before anything else is done.
    pub(super) fn after(&self, before: Before, units: u64) -> Done {
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

    /// So many; of the competitor that keeps nothing, as many as of the others.
    pub(super) fn or_null(&self, counted: u64, expected: &Expected) -> u64 {
        match expected {
            Expected::Records(n) if self.null => *n,
            _ => counted,
        }
    }

    pub(super) fn agree(&self, what: &str, got: u64, expected: &Expected) -> Result<()> {
        match expected {
            Expected::Records(wanted) => self.same(what, got, *wanted),
            Expected::Counted(_) | Expected::Unknown => Ok(()),
        }
    }

    pub(super) fn same(&self, what: &str, got: u64, wanted: u64) -> Result<()> {
        match got == wanted || self.null {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Mismatch, format!("{got} {what}, not {wanted}"))),
        }
    }

    pub(super) fn stores(&self, phase: &Phase) -> Result<Stores> {
        let other = phase.kind.other_table().map(|other| self.table(other).map(Arc::clone));
        Ok(Stores { table: Arc::clone(self.table(&phase.table)?), other: other.transpose()? })
    }

    /// What the operations of a phase are drawn from.
    pub(super) fn draws<'d>(
        &'d self,
        phase: &'d Phase,
        expected: &'d Expected,
    ) -> Result<Draws<'d>> {
        let grown = self.grown.get(&phase.table).copied().unwrap_or(0);
        let (records, seed, null) = (self.records(&phase.table)?, self.seed, self.null);
        Ok(Draws { phase, records, expected, grown, seed, null })
    }

    /// The workers that send the operations of a phase. In an open loop a single one is a thread as well:
    /// nothing else of this program may keep it from its next moment.
    pub(super) fn workers(&self, phase: &Phase) -> Result<Workers> {
        let count = phase.concurrency as usize;
        let mut workers = match self.embedded && (count > 1 || phase.pace != Pace::Free) {
            true => Workers::threads(count)?,
            false => Workers::tasks(count),
        };
        workers.ended = self.ended.clone();
        Ok(workers)
    }
}

impl Done {
    /// Adds the next part of the same window.
    pub(super) fn add(&mut self, part: Done) {
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
