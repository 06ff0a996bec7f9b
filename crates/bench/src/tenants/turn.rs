//! One arm's turn in a round: everything is started anew, cold tenants are asked for the first time, then queries and
//! inserts are timed, and what they came to is checked between the windows.

use std::{path::Path, time::Instant};

use super::{
    gateway::Running,
    hold, look,
    people::{self, Ask, Insert, People, same_record},
    plan::Arm,
    reach::{Handles, Reach},
    site::Site,
};
use crate::{
    Error, ErrorKind, Result,
    accounting::Usage,
    clock::Monotonic,
    histogram::Histogram,
    processors::{Seen as Processors, Shares},
    results::{ServerUse, tenants::Seen},
    stats::{Steady, WINDOWS},
    stop::Stop,
    store::{Key, Row, blocking},
    stores::watch::between,
};

/// How many answers of a window are compared whole, and how many inserts are read back.
const KEPT: usize = 16;
/// The longest that queries are warmed up, in nanoseconds, before they count as not settled.
const WARM_UP: u64 = 1_000_000_000;
/// How many records the proof reads, of each arm with so many tenants.
const PROOF: u64 = 200;

/// What all arms of a round are asked.
pub(super) struct Draws {
    pub touches: Vec<Ask>,
    pub asks: Vec<Ask>,
    pub inserts: Vec<Insert>,
    /// What is inserted before, into the last of the tenants: a database's first write since it was opened syncs more than
    /// those behind it.
    pub firsts: Vec<Insert>,
}

impl Draws {
    /// What is inserted before, where so many databases stay open: once into each.
    fn firsts(&self, open: usize) -> &[Insert] {
        &self.firsts[self.firsts.len().saturating_sub(open)..]
    }

    /// All that is inserted.
    fn inserted(&self, open: usize) -> impl Iterator<Item = &Insert> {
        self.firsts(open).iter().chain(&self.inserts)
    }
}

/// What a turn needs.
pub(super) struct Turn<'a> {
    pub arm: Arm,
    pub people: &'a People,
    pub draws: &'a Draws,
    pub clock: Monotonic,
    pub stop: &'a Stop,
    pub program: Option<&'a Path>,
    /// Whether every tenant is asked, and processes are looked at.
    pub looks: bool,
    /// Whether records are read back first: before anything is timed.
    pub proves: bool,
}

/// A window that was timed.
pub(super) struct Window {
    pub units: u64,
    /// Processor time is that of all processes.
    pub used: Usage,
    pub latency: Histogram,
    pub shares: Option<Shares>,
}

/// What a turn came to.
#[derive(Default)]
pub(super) struct Done {
    pub touch: Option<Window>,
    pub query: Option<Window>,
    pub insert: Option<Window>,
    /// Whether the queries' warm-up settled.
    pub settled: bool,
    pub seen: Seen,
    /// How many records were read back and compared, before anything was timed.
    pub proved: u64,
}

/// What runs beside this process in a turn.
struct Around<'a> {
    site: &'a Site,
    gateway: Option<Running>,
}

impl Around<'_> {
    fn used(&self) -> ServerUse {
        look::used(self.site.server.as_ref(), self.gateway.as_ref().map(Running::id))
    }
}

impl Turn<'_> {
    /// Takes the turn; the site lies still again after it.
    ///
    /// # Errors
    /// [`Mismatch`](ErrorKind::Mismatch) where an answer is wrong; of the store, the server and the gateway.
    pub(super) async fn take(&self, site: &mut Site) -> Result<Done> {
        let taken = blocking(self.all(site)).await;
        site.rest();
        if taken.is_err() && !self.stop.is_set() {
            // The other arms find the records as they were, or nothing is measured any more.
            self.mend(site).await.map_err(|e| {
                let what =
                    format!("what a turn may have inserted could not be removed: {}", e.context());
                Error::new(ErrorKind::Mismatch, what).with_source(e)
            })?;
        }
        taken
    }

    /// Removes what a turn that broke may have inserted.
    async fn mend(&self, site: &mut Site) -> Result<()> {
        site.start()?;
        let handles = Handles::new(site.spec.clone()).await;
        let cleared = async { blocking(self.clear(handles?, site.spec.open)).await }.await;
        site.rest();
        cleared.map(drop)
    }

    async fn all(&self, site: &mut Site) -> Result<Done> {
        let mut done = Done::default();
        let begin = Instant::now();
        site.start()?;
        let mut around = Around { site, gateway: None };
        let mut reach = self.begin(&mut around, begin, &mut done).await?;
        let (site, stop) = (around.site, self.stop);
        if self.proves {
            done.proved = self.prove(&mut reach).await?;
        }
        if !self.draws.touches.is_empty() {
            reach.wake()?;
            done.touch = Some(self.queries(&mut reach, &around, &self.draws.touches).await?);
        }
        self.sweep(&mut reach, site.spec.open).await?;
        // Of a server that is not ours the gateway is a part, which says nothing.
        let watched = site.server.is_some() || (around.gateway.is_some() && site.is_embedded());
        if self.looks && watched {
            let gateway = around.gateway.as_ref().map(Running::id);
            (done.seen.memory, done.seen.files) = look::all(site.server.as_ref(), gateway);
        }
        reach.wake()?;
        done.settled = self.warm_up(&mut reach).await?;
        done.query = Some(self.queries(&mut reach, &around, &self.draws.asks).await?);
        stop.check()?;
        reach.wake()?;
        let inserted = async {
            self.first_writes(&mut reach, site.spec.open).await?;
            self.inserts(&mut reach, &around).await
        };
        let inserted = inserted.await;
        // Whatever became of it: the next turn finds the records as they were.
        let handles = match reach {
            Reach::Stores(handles) => handles,
            // Its connections are taken by others.
            Reach::Gateway(_) => {
                around.gateway = None;
                Handles::new(site.spec.clone()).await?
            }
        };
        let cleared = self.clear(handles, site.spec.open).await;
        done.insert = Some(inserted?);
        match (cleared?, self.draws.inserted(site.spec.open).count() as u64) {
            (removed, inserted) if removed == inserted => Ok(done),
            (removed, inserted) => {
                let what = format!("{removed} of {inserted} inserted records could be removed");
                Err(Error::new(ErrorKind::Mismatch, what))
            }
        }
    }

    /// Starts the gateway, where there is one, and asks the first tenant.
    async fn begin(
        &self,
        around: &mut Around<'_>,
        begin: Instant,
        done: &mut Done,
    ) -> Result<Reach> {
        let site = around.site;
        let mut begin = begin;
        let mut reach = match (&site.gateway, self.arm) {
            (Some(gateway), Arm::Gateway) => {
                begin = Instant::now();
                let running = gateway.start(self.stop)?;
                let served = running.client();
                around.gateway = Some(running);
                Reach::Gateway(served)
            }
            (None, Arm::Gateway) => return Err(Error::invalid("there is no gateway to be asked")),
            _ => Reach::Stores(Handles::new(site.spec.clone()).await?),
        };
        let first = self.people.ask(0, 0);
        let rows = reach.find(&first).await?;
        let taken = begin.elapsed().as_nanos() as u64;
        self.people.check(&first, &rows)?;
        if site.server.is_some() || around.gateway.is_some() {
            done.seen.restart_ns = Some(taken);
        } else if let (true, Some(program)) = (site.is_embedded(), self.program) {
            let documents = self.people.documents;
            let held = hold::held(program, &site.spec, documents, self.looks, self.stop)?;
            done.seen.restart_ns = Some(held.restart_ns);
            (done.seen.memory, done.seen.files) = held.all.unwrap_or_default();
        }
        Ok(reach)
    }

    /// Reads some records of all, each alone, and compares them (rule 1).
    async fn prove(&self, reach: &mut Reach) -> Result<u64> {
        let (tenants, documents) = (self.people.tenants, self.people.documents);
        let all = tenants * documents;
        let count = all.min(PROOF);
        for n in 0..count {
            self.stop.check()?;
            let number = n * (all / count) + n % (all / count).max(1);
            let tenant = (number / documents) as usize;
            let row = self.people.of(tenant, number % documents)?;
            let found = reach.get(tenant, &row.key).await?;
            self.as_written(tenant, &row, found.as_ref())?;
        }
        Ok(count)
    }

    fn as_written(
        &self,
        tenant: usize,
        row: &Row,
        found: Option<&crate::record::Document>,
    ) -> Result<()> {
        match found {
            Some(record) if same_record(record, &row.record) => Ok(()),
            found => {
                let how = if found.is_some() { "is not as it was written" } else { "is not there" };
                let what = format!("tenant {}: the record {} {how}", tenant + 1, row.key.shown());
                Err(Error::new(ErrorKind::Mismatch, what))
            }
        }
    }

    /// Asks every tenant once, or as many as are open at once.
    async fn sweep(&self, reach: &mut Reach, open: usize) -> Result<()> {
        let tenants = self.people.tenants as usize;
        // The gateway has to know every key before anything is timed.
        let all = self.looks || self.arm == Arm::Gateway;
        let from = if all { 0 } else { tenants.saturating_sub(open) };
        for tenant in from..tenants {
            self.stop.check()?;
            let ask = self.people.ask(tenant, 0);
            let rows = reach.find(&ask).await?;
            people::counted(&ask, rows.len())?;
        }
        Ok(())
    }

    /// Sends the queries in parts until they are steady by test (rule 7); says whether they are.
    async fn warm_up(&self, reach: &mut Reach) -> Result<bool> {
        let asks = &self.draws.asks;
        let part = asks.len().div_ceil(WINDOWS).max(1);
        let (begin, mut windows) = (self.clock.now(), Vec::with_capacity(WINDOWS));
        for asks in asks.chunks(part).cycle() {
            let at = self.clock.now();
            for ask in asks {
                self.stop.check()?;
                let rows = reach.find(ask).await?;
                if rows.len() as u64 != ask.wanted {
                    self.people.check(ask, &rows)?;
                }
            }
            windows.push((self.clock.now() - at) as f64 / asks.len() as f64);
            let late = self.clock.now() - begin > WARM_UP;
            if Steady::of(&windows) != Steady::NotYet || late {
                break;
            }
        }
        Ok(Steady::of(&windows) == Steady::Settled)
    }

    /// Times queries. Some answers, and all with another number of records than is wanted, are compared after the window.
    async fn queries(
        &self,
        reach: &mut Reach,
        around: &Around<'_>,
        asks: &[Ask],
    ) -> Result<Window> {
        let (window, kept) = self.timed_queries(reach, around, asks).await?;
        for (at, rows) in kept {
            self.people.check(&asks[at], &rows)?;
        }
        Ok(window)
    }

    async fn timed_queries(
        &self,
        reach: &mut Reach,
        around: &Around<'_>,
        asks: &[Ask],
    ) -> Result<(Window, Vec<(usize, Vec<Row>)>)> {
        let every = asks.len().div_ceil(KEPT).max(1);
        let mut kept = Vec::with_capacity(KEPT + 1);
        let mut latency = Histogram::growing();
        reach.patient(false);
        let before = Before::now(around, self.clock);
        let mut begin = before.at;
        for (at, ask) in asks.iter().enumerate() {
            self.stop.check()?;
            let rows = reach.find(ask).await?;
            let end = self.clock.now();
            latency.record(end - begin);
            begin = end;
            if at % every == 0 || rows.len() as u64 != ask.wanted {
                kept.push((at, rows));
            }
        }
        let window = before.window(around, self.clock, asks.len(), latency);
        reach.patient(true);
        Ok((window, kept))
    }

    /// Writes to as many databases as stay open, once to each.
    async fn first_writes(&self, reach: &mut Reach, open: usize) -> Result<()> {
        for insert in self.draws.firsts(open) {
            self.stop.check()?;
            reach.insert(insert).await?;
        }
        Ok(())
    }

    /// Times inserts, and reads some of them back.
    async fn inserts(&self, reach: &mut Reach, around: &Around<'_>) -> Result<Window> {
        let inserts = &self.draws.inserts;
        let mut latency = Histogram::growing();
        reach.patient(false);
        let before = Before::now(around, self.clock);
        let mut begin = before.at;
        for insert in inserts {
            self.stop.check()?;
            reach.insert(insert).await?;
            let end = self.clock.now();
            latency.record(end - begin);
            begin = end;
        }
        let window = before.window(around, self.clock, inserts.len(), latency);
        reach.patient(true);
        for insert in inserts.iter().step_by(inserts.len().div_ceil(KEPT).max(1)) {
            let found = reach.get(insert.tenant, &insert.row.key).await?;
            self.as_written(insert.tenant, &insert.row, found.as_ref())?;
        }
        Ok(window)
    }

    /// Removes what was inserted, directly from the databases. How many there were.
    async fn clear(&self, mut handles: Handles, open: usize) -> Result<u64> {
        let mut keys: Vec<(usize, Key)> =
            self.draws.inserted(open).map(|i| (i.tenant, i.row.key.clone())).collect();
        keys.sort_by_key(|(tenant, _)| *tenant);
        let mut removed = 0;
        for own in keys.chunk_by(|a, b| a.0 == b.0) {
            let keys: Vec<Key> = own.iter().map(|(_, key)| key.clone()).collect();
            removed += handles.of_tenant(own[0].0).await?.remove(&keys).await?;
        }
        Ok(removed)
    }

    /// The turn of the competitor that keeps nothing: the same loops.
    ///
    /// # Errors
    /// Where the run is to end.
    pub(super) async fn null(&self, site: &Site, mut handles: Handles) -> Result<Done> {
        for tenant in 0..self.people.tenants as usize {
            handles.of_tenant(tenant).await?;
        }
        let mut reach = Reach::Stores(handles);
        let around = Around { site, gateway: None };
        let query = self.timed_queries(&mut reach, &around, &self.draws.asks);
        let (query, kept) = blocking(query).await?;
        for (at, rows) in kept {
            // Which records they are, it does not know.
            people::counted(&self.draws.asks[at], rows.len())?;
        }
        let mut latency = Histogram::growing();
        let before = Before::now(&around, self.clock);
        let mut begin = before.at;
        for insert in &self.draws.inserts {
            self.stop.check()?;
            blocking(reach.insert(insert)).await?;
            let end = self.clock.now();
            latency.record(end - begin);
            begin = end;
        }
        let insert = before.window(&around, self.clock, self.draws.inserts.len(), latency);
        Ok(Done { query: Some(query), insert: Some(insert), settled: true, ..Done::default() })
    }
}

/// The beginning of a window, read last of all before it.
struct Before {
    beside: ServerUse,
    seen: Option<Processors>,
    used: Usage,
    at: u64,
}

impl Before {
    fn now(around: &Around<'_>, clock: Monotonic) -> Before {
        let beside = around.used();
        let (seen, used) = (Processors::now(), Usage::now());
        Before { beside, seen, used, at: clock.now() }
    }

    /// The end of the window, before anything else is done.
    fn window(
        self,
        around: &Around<'_>,
        clock: Monotonic,
        units: usize,
        latency: Histogram,
    ) -> Window {
        let ns = clock.now() - self.at;
        let used = Usage { ns, ..Usage::now().since(&self.used) };
        let seen = Processors::now();
        let beside = around.used();
        let ServerUse { user_ns: user, system_ns: system, .. } = between(&self.beside, &beside);
        let shares =
            self.seen.zip(seen).map(|(before, now)| now.with_servers(user + system).since(&before));
        let used =
            Usage { user_ns: used.user_ns + user, system_ns: used.system_ns + system, ..used };
        Window { units: units as u64, used, latency, shares }
    }
}
