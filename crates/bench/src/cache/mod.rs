//! `bench cache`: which client of memcached, for which calls.
//!
//! The published test this answers (Ruby's memcached client, seven rows) stored a constant of 4
//! bytes, ran once on one thread, and did not send what it had buffered last within its time. Its
//! rows, keys and counts are kept (`rows.rs`); its values are one of several (`values.rs`).
//!
//! Every client is a process of its own, ours too, bound to one processor with the servers
//! (`pin.rs`, `servers.rs`), and does what it is told on its standard input (`protocol.rs`,
//! `peer.rs`; `clients.rs` says which there are). `adapter/` is the client's side of that.
//! `proof.rs` is what comes before any time is taken; `session.rs` is a client in the run, which is
//! the usual one (`bench::run`). `docs/cache.md` is for people.
//!
//! To add a client: a program that speaks the protocol, and `--client`; see `clients.rs`.

pub mod adapter;
mod clients;
mod peer;
mod pin;
mod plan;
mod proof;
pub mod protocol;
mod rows;
mod servers;
mod session;
#[cfg(test)]
mod tests;
mod values;

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    path::{Path, PathBuf},
    rc::Rc,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

pub use self::{
    clients::KNOWN,
    rows::{Row, Wanted},
    values::Wish,
};
use self::{
    peer::{Peer, Process},
    protocol::Hello,
    servers::Servers,
    session::{Client, Shared, Told},
};
use super::{
    accounting::Usage,
    results::{CacheClient, Contender, Plan, Results},
    run::{self, Entry, Progress, Stage, Watch},
    save,
    scratch::Scratch,
    stop::Stop,
};
use crate::{Error, ErrorKind, Result, format::Wrapped};

/// What to measure, and how.
pub struct Options<'a> {
    /// Which clients, by their word or their program; all that are known and there where none is
    /// named.
    pub clients: Vec<String>,
    /// `host:port` of the user's own servers; two private ones where none is named.
    pub on: Vec<String>,
    /// The values.
    pub values: Vec<Wish>,
    /// How many connections: each is a table of its own.
    pub connections: Vec<u32>,
    /// Calls a second at planned moments, in place of as many as go.
    pub rate: Option<f64>,
    /// Which rows; all where none is named.
    pub rows: Vec<Wanted>,
    /// A pass is as long as the published one.
    pub as_published: bool,
    /// The format of objects, and of values as bytes.
    pub format: Wrapped,
    /// Whether system calls are counted beforehand.
    pub trace: bool,
    /// This program, which our own clients are run by: `PROGRAM bench cache-adapter NAME`.
    pub program: PathBuf,
    /// Seed, stop rule and the rest.
    pub plan: Plan,
    /// The results are written here after each round.
    pub out: Option<PathBuf>,
    /// Ends the run within a call.
    pub stop: Option<&'a Stop>,
}

impl Options<'_> {
    /// Values of 4 bytes and of 1 KB on one connection, in about two minutes. `program` is this
    /// program's file.
    pub fn new(program: PathBuf) -> Self {
        Options {
            clients: Vec::new(),
            on: Vec::new(),
            values: vec![Wish::Size(4), Wish::Size(1024)],
            connections: vec![1],
            rate: None,
            rows: Vec::new(),
            as_published: false,
            format: Wrapped { format: crate::format::Format::Marshal, wraps: Vec::new() },
            trace: true,
            program,
            plan: Plan::default(),
            out: None,
            stop: None,
        }
    }

    /// As published: 2,500 iterations of each row, a value of 4 bytes, one connection.
    pub fn as_published(program: PathBuf) -> Self {
        let values = vec![Wish::Size(4)];
        let mut options = Options { values, as_published: true, ..Options::new(program) };
        let stop = &mut options.plan.stop;
        (stop.max_rounds, stop.precision, stop.budget) =
            (stop.min_starts, 0.0, f64::from(u32::MAX));
        options
    }
}

/// Proves, counts, times and compares.
///
/// # Errors
/// [`Invalid`](ErrorKind::Invalid) for what cannot be,
/// [`Mismatch`](ErrorKind::Mismatch) where a client's counts or values are not what they must
/// be, naming client, row and round; [`Unavailable`](ErrorKind::Unavailable) where no client
/// can take part; those of servers and files.
pub fn run(options: &Options<'_>, progress: &mut dyn FnMut(Progress<'_>)) -> Result<Results> {
    if options.connections.iter().any(|n| !(1..=1024).contains(n)) {
        return Err(Error::invalid("connections are 1 to 1024"));
    }
    if options.rate.is_some_and(|rate| !(rate > 0.0 && rate <= 1e7)) {
        return Err(Error::invalid("a rate is above 0, and ten million a second at most"));
    }
    let scratch = Scratch::new(None)?;
    let cpu = pin::last();
    let setup = Setup::new(options, scratch.path(), cpu)?;
    let named = match options.clients.is_empty() {
        true => KNOWN.map(str::to_owned).to_vec(),
        false => options.clients.clone(),
    };
    let mut results = setup.results;
    let shared = Rc::new(setup.shared);
    let stop = Stop::given(options.stop);
    shared.servers.borrow_mut().begin(0, &stop)?;
    results.settings.insert("Servers".into(), shared.servers.borrow().told()?);
    let pinned = Cell::new(true);
    let roster = Roster { options, folder: scratch.path(), cpu, pinned, stop: stop.clone() };
    let (mut clients, cells) = (Vec::new(), named.len() + 1);
    for (cell, name) in named.iter().map(String::as_str).chain([adapter::NULL]).enumerate() {
        let budget = options.plan.stop.budget;
        stop.check()?;
        progress(Progress { cell, cells, competitor: name, budget, ..Progress::default() });
        let introduced = roster
            .client(name, &shared)
            .and_then(|(client, hello)| introduce(client, &hello, &mut results, options.trace));
        match introduced {
            Ok(client) => clients.push(client),
            Err(e) if matches!(e.kind(), ErrorKind::Invalid | ErrorKind::Mismatch) => {
                return Err(e);
            }
            // At planned moments there is no time of the harness to tell.
            Err(_) if name == adapter::NULL => {}
            Err(e) => results.competitors.push(Contender {
                name: name.into(),
                refused: Some(e.to_string()),
                ..Contender::default()
            }),
        }
    }
    stop.check()?;
    results.settings.insert("Processor".into(), roster.told());
    let measured = measure(options, results, clients, &shared, scratch.path(), progress);
    let cleared = shared.servers.borrow().clear_own(&rows::keys()[..rows::STORED]);
    measured.and_then(|results| cleared.map(|()| results))
}

/// The plan of a run.
struct Setup {
    results: Results,
    shared: Shared,
}

impl Setup {
    fn new(options: &Options<'_>, folder: &Path, cpu: Option<usize>) -> Result<Setup> {
        let seed = options.plan.seed;
        let make = |wish: &Wish| wish.make(&options.format, seed);
        let values = options.values.iter().map(make).collect::<Result<Vec<_>>>()?;
        let (phases, asks) = plan::phases(options, &values)?;
        let files = values.iter().enumerate().map(|(n, v)| v.write(folder, n));
        let shared = Shared {
            asks,
            files: files.collect::<Result<_>>()?,
            format: options.format.to_string(),
            seed,
            servers: RefCell::new(Servers::new(&options.on, cpu)),
            stage: Cell::new(Stage::Proving),
            told: Cell::new(Usage::default()),
            seen: RefCell::default(),
            system_calls: RefCell::default(),
        };
        let mut results = plan::blank(options, &values);
        results.phases = phases;
        Ok(Setup { results, shared })
    }
}

/// How clients are started.
struct Roster<'o, 'a> {
    options: &'o Options<'a>,
    folder: &'o Path,
    cpu: Option<usize>,
    /// Whether all could be bound to the processor.
    pinned: Cell<bool>,
    stop: Stop,
}

impl<'o> Roster<'o, '_> {
    fn client(&self, name: &str, shared: &Rc<Shared>) -> Result<(Client<'o>, Hello)> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let stop = self.stop.clone();
        let program = clients::program(name, &self.options.program, self.folder, &stop)?;
        let log = self.folder.join(format!("client-{}.log", NEXT.fetch_add(1, Relaxed)));
        let (process, hello, pinned) = Process::start(&program, self.cpu, &log, &stop)?;
        self.pinned.set(self.pinned.get() && pinned);
        let cpu = self.cpu;
        let start = move || {
            let (process, ..) = Process::start(&program, cpu, &log, &stop)?;
            Ok(Box::new(process) as Box<dyn Peer>)
        };
        let client = Client {
            stop: self.stop.clone(),
            name: if hello.client.is_empty() { name.to_owned() } else { hello.client.clone() },
            peer: Box::new(process),
            start: Box::new(start),
            shared: Rc::clone(shared),
            refused: HashMap::new(),
        };
        Ok((client, hello))
    }

    fn told(&self) -> String {
        let servers = match self.options.on.is_empty() {
            true => "every client and the servers",
            false => "every client; your servers are where they are",
        };
        match (self.cpu, self.pinned.get()) {
            (Some(cpu), true) => {
                format!("bound to processor {cpu}, one after another: {servers}")
            }
            _ => format!(
                "not bound to one, as this system does not let us: {servers}; waking each other \
                 across processors is in the times"
            ),
        }
    }
}

/// Sees what a client can do, that it does it right, and what it asks of the system.
fn introduce<'a>(
    mut client: Client<'a>,
    hello: &Hello,
    results: &mut Results,
    trace: bool,
) -> Result<Client<'a>> {
    if results.competitor(&client.name).is_some() {
        return Err(Error::invalid(format!("{} is to be measured twice", client.name)));
    }
    let null = client.name == adapter::NULL;
    let mut told = CacheClient {
        about: hello.about.clone(),
        version: hello.version.clone(),
        serializer: hello.serializer.clone(),
        ..CacheClient::default()
    };
    let mut row = Contender { name: client.name.clone(), null, ..Contender::default() };
    let proof = proof::rows(&mut client, hello, &results.phases)?;
    if proof.records == 0 {
        let why = results.phases.iter().find_map(|p| client.refused.get(&p.id).cloned());
        return Err(Error::unavailable(why.unwrap_or_default()));
    }
    if !null {
        let shared = Rc::clone(&client.shared);
        let place = |e: Error| e.in_place(client.name.as_str());
        proof::spread(&mut *client.peer, &shared, &mut told).map_err(place)?;
        if trace && let Err(e) = proof::system_calls(&mut client, &results.phases) {
            told.uncounted = Some(e.to_string());
        }
        row.proof = Some(proof);
        row.client = Some(told);
    }
    results.competitors.push(row);
    Ok(client)
}

/// Runs what is planned with these clients.
fn measure(
    options: &Options<'_>,
    mut results: Results,
    clients: Vec<Client<'_>>,
    shared: &Rc<Shared>,
    folder: &Path,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Results> {
    let taking: Vec<&str> =
        clients.iter().map(|c| c.name.as_str()).filter(|n| *n != adapter::NULL).collect();
    let Some(first) = taking.first() else {
        let why = results.competitors.iter().find_map(|c| c.refused.clone());
        let why = why.unwrap_or_else(|| "none is named".into());
        return Err(Error::unavailable(format!("no client can take part: {why}")));
    };
    let floor = taking.iter().find(|name| **name == adapter::FLOOR);
    results.baseline = (*floor.unwrap_or(first)).to_owned();
    results.contrasts = plan::contrasts(&results, &taking);
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for client in clients {
        entries.push(Entry { name: client.name.clone(), competitor: Box::new(client) });
    }
    let mut watch = Watch {
        progress: &mut |p: Progress<'_>| {
            shared.stage.set(p.stage);
            progress(p);
        },
        save: &mut |results: &Results| match &options.out {
            Some(path) => {
                let mut results = results.clone();
                shared.fill(&mut results);
                save::write(&results, path)
            }
            None => Ok(()),
        },
        stop: &|| options.stop.is_some_and(Stop::is_set),
    };
    let mut instruments = Told::new(folder, shared);
    run::run(&mut results, &mut entries, &mut instruments, &mut watch)?;
    shared.fill(&mut results);
    Ok(results)
}
