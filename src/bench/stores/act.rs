//! One competitor on one start: its phases in order, each in a timed window.
//!
//! Records are made, operations drawn and counts checked outside of the windows.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use futures_util::TryStreamExt;

use super::{
    data::{Expected, Records},
    drive::{self, Op, Ops, Stores, Window},
    ops, watch,
};
use crate::{
    Error, ErrorKind, Result,
    bench::{
        accounting::Usage,
        clock::Monotonic,
        results::ServerUse,
        schedule::{Limit, Pace},
        stats::{Steady, WINDOWS},
        workload::{Act, Phase, Table, Way, Workload},
    },
    server::Server,
    store::{KeyRange, Row, Store},
};

/// Records that are made at a time, outside of the window.
const CHUNK: u64 = 10_000;
/// The longest that a phase is warmed up, in nanoseconds, before it counts as not settled.
const WARM_UP: u64 = 2_000_000_000;

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
    pub server: Option<&'a Server>,
    /// Draws follow from it.
    pub seed: u64,
    /// It keeps nothing, so nothing is checked.
    pub null: bool,
    /// Tables that are there.
    prepared: HashSet<String>,
    /// Tables whose indexes the store cannot have, and why.
    unindexed: HashMap<String, String>,
    /// Tables that the store cannot have at all, and why.
    unmade: HashMap<String, String>,
    /// Operations a second without a pace, by table: what shares are shares of.
    capacity: HashMap<String, f64>,
    /// Records that phases have added to tables.
    grown: HashMap<String, u64>,
    /// Records that are in tables.
    there: HashMap<String, u64>,
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
    pub window: Option<Window>,
    /// Nanoseconds an operation took in each warm-up window.
    pub warm_up: Vec<f64>,
    pub settled: bool,
    /// Operations a second that were planned.
    pub offered: Option<f64>,
}

/// The counters before a window.
struct Before {
    server: Option<ServerUse>,
    used: Usage,
    at: u64,
}

impl<'a> Bout<'a> {
    pub fn new(
        workload: &'a Workload,
        records: &'a [(String, Records)],
        tables: HashMap<String, Arc<dyn Store>>,
        server: Option<&'a Server>,
        seed: u64,
    ) -> Self {
        Bout {
            clock: Monotonic::default(),
            workload,
            records,
            tables,
            names: HashMap::new(),
            server,
            seed,
            null: false,
            prepared: HashSet::new(),
            unindexed: HashMap::new(),
            unmade: HashMap::new(),
            capacity: HashMap::new(),
            grown: HashMap::new(),
            there: HashMap::new(),
        }
    }

    /// Does a phase.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) where the store cannot do it: it is then left out;
    /// [`Mismatch`](ErrorKind::Mismatch) where counts do not agree; those of the store.
    pub async fn act(&mut self, phase: &Phase, expected: &Expected) -> Result<Done> {
        self.possible(phase)?;
        let store = Arc::clone(self.table(&phase.table)?);
        match &phase.act {
            Act::Prepare => self.make(phase).await,
            Act::Load { way, batch } => self.load(phase, *way, *batch).await,
            Act::Index(paths) => {
                let (table, records) = (self.declared(&phase.table)?, self.records(&phase.table)?);
                let mut layout = records.layout(table, store.shape())?;
                for path in paths {
                    layout.indexes.push(records.index(path, &[])?);
                }
                let before = self.before();
                store.prepare(&layout).await?;
                Ok(self.after(before, paths.len() as u64))
            }
            Act::Delete(filter) => {
                let count = store.count().await?;
                let before = self.before();
                let deleted = store.delete(filter).await?;
                let done = self.after(before, self.or_null(deleted, expected));
                self.agree("records were deleted", deleted, expected)?;
                let left = store.count().await?;
                self.same("records are left", left, count.saturating_sub(deleted))?;
                self.there.insert(phase.table.clone(), left);
                Ok(done)
            }
            Act::Scan => {
                let before = self.before();
                let mut rows = store.scan(&KeyRange::all()).await?;
                let mut read = 0;
                while let Some(batch) = rows.try_next().await? {
                    read += batch.len() as u64;
                }
                drop(rows);
                let mut done = self.after(before, self.or_null(read, expected));
                done.items = read;
                match self.there.get(&phase.table) {
                    Some(there) => self.same("records were read", read, *there)?,
                    None => self.agree("records were read", read, expected)?,
                }
                Ok(done)
            }
            Act::Settle => {
                let before = self.before();
                store.settle().await?;
                Ok(self.after(before, 1))
            }
            Act::Get { .. }
            | Act::Find { .. }
            | Act::Relate { .. }
            | Act::Update { .. }
            | Act::Mix { .. } => self.one_by_one(phase, expected).await,
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
        match self.workload.only_joined(&phase.table) {
            true => self.table(&phase.table)?.abilities().can_join(),
            false => Ok(()),
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

    fn before(&self) -> Before {
        let server = self.server.map(watch::used);
        Before { server, used: Usage::now(), at: self.clock.now() }
    }

    /// The end of a window, before anything else is done.
    fn after(&self, before: Before, units: u64) -> Done {
        let ns = self.clock.now() - before.at;
        let used = Usage { ns, ..Usage::now().since(&before.used) };
        let server = before.server.zip(self.server);
        let server = server.map(|(before, server)| watch::between(&before, &watch::used(server)));
        Done { units, used, server, settled: true, ..Done::default() }
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

    /// Makes the table of a phase, without the indexes that its store cannot have.
    async fn make(&mut self, phase: &Phase) -> Result<Done> {
        let (table, records) = (self.declared(&phase.table)?, self.records(&phase.table)?);
        let store = Arc::clone(self.table(&phase.table)?);
        let layout = records.layout(table, store.shape()).inspect_err(|e| {
            if e.kind() == ErrorKind::Unsupported {
                self.unmade.insert(phase.table.clone(), e.context().to_owned());
            }
        })?;
        let before = self.before();
        let made = store.prepare(&layout).await;
        let done = self.after(before, 1);
        self.prepared.insert(phase.table.clone());
        match made {
            Err(e) if e.kind() == ErrorKind::Unsupported && !layout.indexes.is_empty() => {
                let plain = crate::store::Layout { indexes: Vec::new(), ..layout };
                store.prepare(&plain).await?;
                self.unindexed.insert(phase.table.clone(), e.context().to_owned());
                Err(e)
            }
            made => made.map(|()| done),
        }
    }

    async fn load(&mut self, phase: &Phase, way: Way, batch: usize) -> Result<Done> {
        let (store, records) = (Arc::clone(self.table(&phase.table)?), self.records(&phase.table)?);
        if !self.prepared.contains(&phase.table) {
            match self.make(phase).await {
                // Without its indexes; what needs them says so itself.
                Err(_) if self.unindexed.contains_key(&phase.table) => {}
                made => drop(made?),
            }
        }
        let count = records.count;
        let mut done = Done { settled: true, ..Done::default() };
        // One transaction is one call.
        let chunk = if way == Way::Transaction { count.max(1) } else { CHUNK.max(batch as u64) };
        let mut from = 0;
        while from < count {
            let rows = records.rows(from, (from + chunk).min(count))?;
            from += rows.len() as u64;
            let part = match way {
                Way::Rows => self.rows(phase, rows.into_owned()).await?,
                Way::Batches | Way::Bulk => self.batches(&*store, way, batch, &rows).await?,
                Way::Transaction => {
                    let before = self.before();
                    store.put_each(&rows).await?;
                    self.after(before, rows.len() as u64)
                }
            };
            done.add(part);
        }
        self.same("records are there", store.count().await?, count)?;
        self.there.insert(phase.table.clone(), count);
        Ok(done)
    }

    async fn batches(
        &self,
        store: &dyn Store,
        way: Way,
        batch: usize,
        rows: &[Row],
    ) -> Result<Done> {
        let before = self.before();
        for rows in rows.chunks(batch) {
            match way {
                Way::Bulk => store.load(rows).await?,
                _ => store.put(rows).await?,
            }
        }
        Ok(self.after(before, rows.len() as u64))
    }

    /// Writes rows one by one.
    async fn rows(&self, phase: &Phase, rows: Vec<Row>) -> Result<Done> {
        let ops: Vec<Op> = rows.into_iter().map(|row| Op::Put(Box::new(row))).collect();
        let ops = Ops::from(ops);
        let stores = self.stores(phase)?;
        let before = self.before();
        let window =
            drive::closed(self.clock, &stores, &ops, phase.concurrency as usize, None).await;
        let done = self.after(before, window.tally.done);
        match window.first {
            // A table that lacks records is no table to go on with.
            Some(e) => Err(e),
            None => Ok(Done { window: Some(window), ..done }),
        }
    }

    fn stores(&self, phase: &Phase) -> Result<Stores> {
        let other = match &phase.act {
            Act::Relate { to, .. } => Some(Arc::clone(self.table(to)?)),
            _ => None,
        };
        Ok(Stores { table: Arc::clone(self.table(&phase.table)?), other })
    }

    async fn one_by_one(&mut self, phase: &Phase, expected: &Expected) -> Result<Done> {
        let (stores, records) = (self.stores(phase)?, self.records(&phase.table)?);
        let grown = self.grown.get(&phase.table).copied().unwrap_or(0);
        let to = match &phase.act {
            Act::Relate { to, .. } => self.names.get(to).map_or(to.as_str(), String::as_str),
            _ => "",
        };
        let (mut drawn, inserted) = ops::ops(phase, records, expected, grown, to, self.seed)?;
        if self.null {
            // Nothing is all that can come.
            for op in &mut drawn {
                match op {
                    Op::Find(_, expected) => *expected = None,
                    Op::Relate(relate) => *op = Op::Get([relate.key.clone()].into()),
                    _ => {}
                }
            }
        }
        let ops = Ops::from(drawn);
        for op in ops.iter().take(100) {
            match op {
                Op::Find(query, _) => stores.table.abilities().can(query)?,
                Op::Relate(relate) => relate.possible(&stores)?,
                _ => {}
            }
        }
        if inserted > 0 && matches!(phase.limit, Some(Limit::Seconds(_))) {
            let what = "a mix with inserts needs a count: new records are new only once";
            return Err(Error::invalid(what));
        }
        let workers = phase.concurrency as usize;
        let (warm_up, settled) = match phase.repeats() {
            true => self.warm_up(&stores, &ops, workers).await?,
            false => (Vec::new(), true),
        };
        let capacity = self.capacity.get(&phase.table).copied().unwrap_or(0.0);
        let moments = phase.pace.moments(self.seed, capacity);
        let offered = match phase.pace {
            Pace::Free => None,
            Pace::Fixed(rate) | Pace::Poisson(rate) => Some(rate),
            Pace::Share(share) => Some(share * capacity),
        };
        let before = self.before();
        let window = match (moments, phase.limit) {
            (None, Some(Limit::Seconds(seconds))) => {
                let until = Some(before.at + (seconds * 1e9) as u64);
                drive::closed(self.clock, &stores, &ops, workers, until).await
            }
            (None, _) if phase.pace != Pace::Free => {
                return Err(Error::invalid(
                    "a share of the capacity, which no phase before it has measured",
                ));
            }
            (None, _) => drive::closed(self.clock, &stores, &ops, workers, None).await,
            (Some(moments), limit) => {
                let rate = offered.unwrap_or(1.0);
                let seconds = match limit {
                    Some(Limit::Seconds(seconds)) => seconds,
                    _ => ops.len() as f64 / rate,
                };
                drive::open(self.clock, &stores, &ops, workers, (moments, seconds)).await?
            }
        };
        let mut done = self.after(before, window.tally.done);
        done.items = window.items;
        if window.tally.missed > 0 || done.units == 0 {
            return Err(window.first.unwrap_or_else(|| {
                Error::new(ErrorKind::Mismatch, "not one operation came out right")
            }));
        }
        if phase.pace == Pace::Free {
            let rate = done.units as f64 * 1e9 / done.used.ns.max(1) as f64;
            self.capacity.insert(phase.table.clone(), rate);
        }
        if inserted > 0 {
            *self.grown.entry(phase.table.clone()).or_default() += inserted;
            let there = self.there.get(&phase.table).copied().unwrap_or(0) + inserted;
            self.same("records are there", stores.table.count().await?, there)?;
            self.there.insert(phase.table.clone(), there);
        }
        Ok(Done { window: Some(window), warm_up, settled, offered, ..done })
    }

    /// Repeats parts of the operations until they are steady by test (rule 7).
    async fn warm_up(
        &self,
        stores: &Stores,
        ops: &Ops,
        workers: usize,
    ) -> Result<(Vec<f64>, bool)> {
        let part = ops.len().div_ceil(WINDOWS).max(workers);
        let begin = self.clock.now();
        let mut windows = Vec::with_capacity(WINDOWS);
        for ops in ops.parts(part).cycle() {
            let at = self.clock.now();
            let window = drive::closed(self.clock, stores, &ops, workers, None).await;
            if let Some(e) = window.first {
                return Err(e);
            }
            windows.push((self.clock.now() - at) as f64 / ops.len() as f64);
            if Steady::of(&windows) != Steady::NotYet || self.clock.now() - begin > WARM_UP {
                break;
            }
        }
        let settled = Steady::of(&windows) == Steady::Settled;
        Ok((windows, settled))
    }
}

impl Done {
    /// Adds the next part of the same window.
    fn add(&mut self, part: Done) {
        self.units += part.units;
        self.items += part.items;
        self.used = self.used.plus(&part.used);
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
