//! Every store there is to try: each driver of the table in each of its layouts, bare or wrapped.

use std::{
    collections::{HashMap, HashSet},
    fmt::{self, Display},
    future::Future,
    panic::Location,
    sync::{
        Arc, LazyLock, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use steelyard::{
    Error, ErrorKind,
    server::{self, Server, Wish},
    store::{
        self, Column, DRIVERS, Driver, Layout, Row, Shape, Store,
        wrappers::{Prefix, Replicas, Shards},
    },
};
use tempfile::TempDir;

use super::naive::{Flaw, Naive};
use crate::programs;

/// The formats that layout blob is tried in: a binary one, and on the [`QUICK`] stores also text
/// around another. What stores do with bytes is the same for all.
const FORMATS: [&str; 2] = ["msgpack", "marshal+base64"];

/// Options of drivers that make another store of them.
const EXTRAS: &[(&str, &str)] = &[("mysql", "engine=myisam")];

/// Settings that a private server needs to have a layout.
const SETTINGS: &[(&str, Shape, (&str, &str))] = &[("tyrant", Shape::Blob, ("type", "hash"))];

/// One store of each make. Where none are named, only these are tried in each wrapper by itself and
/// in every format, so that the tests end in time; all others bare, and in all wrappers together.
/// `STEELYARD_STORES` names others.
const QUICK: [&str; 3] = ["memory", "sqlite", "redis"];

/// What is wrong with a store, and where in the tests that was found.
pub struct Fault(pub String);

pub type Outcome = Result<(), Fault>;

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Fault {
    #[track_caller]
    pub fn new(what: impl Display) -> Fault {
        let place = Location::caller();
        Fault(format!("{what} ({}:{})", place.file(), place.line()))
    }
}

/// An operation that should have succeeded.
impl From<Error> for Fault {
    #[track_caller]
    fn from(error: Error) -> Fault {
        Fault::new(format_args!("{error:?}"))
    }
}

/// Something that has to hold of a store.
macro_rules! ensure {
    ($holds:expr, $($what:tt)+) => {
        if !$holds {
            return Err($crate::stores::places::Fault::new(format_args!($($what)+)));
        }
    };
}
pub(super) use ensure;

/// What is put around a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrap {
    Bare,
    Prefix,
    /// A prefix that is a field, too.
    Tenant,
    /// A primary that is its own replica: it copies at once.
    Replicas,
    Shards,
    /// All of them, one in another.
    All,
}

impl Wrap {
    /// How many places this is put around.
    fn places(self) -> usize {
        match self {
            Wrap::Shards | Wrap::All => 3,
            _ => 1,
        }
    }

    fn around(self, mut places: Vec<Arc<dyn Store>>) -> steelyard::Result<Arc<dyn Store>> {
        let store = match places.len() {
            1 => places.remove(0),
            _ => Arc::new(Shards::new(places)?),
        };
        let prefix = |store| Prefix::new(store, "ten/ant %").map(Arc::new);
        let replicas = |store: Arc<dyn Store>| {
            Replicas::new(store.clone(), vec![store], Duration::ZERO).map(Arc::new)
        };
        Ok(match self {
            Wrap::Bare | Wrap::Shards => store,
            Wrap::Prefix => prefix(store)?,
            Wrap::Tenant => Arc::new(Prefix::tenant(store, "ten/ant %")?),
            Wrap::Replicas => Arc::new(Replicas::new(store.clone(), vec![store], Duration::ZERO)?),
            Wrap::All => prefix(replicas(store)?)?,
        })
    }
}

/// A name for a table that nobody else has.
pub fn name(start: &str) -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    format!("{start}{}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// A store to try.
pub struct Subject {
    pub name: String,
    pub wrap: Wrap,
    from: Origin,
}

enum Origin {
    Driver { driver: &'static Driver, shape: Shape, server: Option<String>, options: String },
    Naive(Flaw),
}

/// What prepares a trial, with limits that are tight for the sake of the trial: a busy machine lets them pass now and then.
macro_rules! patiently {
    ($what:expr) => {{
        let mut tries = 0;
        loop {
            match $what.await {
                Err(e) if e.is_timeout() && tries < 20 => tries += 1,
                done => break done,
            }
        }
    }};
}
pub(super) use patiently;

/// A store in a table of its own that is not made yet, and what has to stay while it is used.
pub struct Fresh {
    pub store: Arc<dyn Store>,
    _folders: Vec<TempDir>,
}

impl Fresh {
    /// With its table made for records like these.
    pub async fn ready(self, like: &[Row]) -> Result<Fresh, Fault> {
        let layout = layout(self.store.shape(), like)?;
        patiently!(self.store.prepare(&layout))?;
        Ok(self)
    }

    /// Servers are shared: what is no longer needed goes.
    pub async fn done(self) -> Outcome {
        match patiently!(self.store.drop_table()) {
            Err(e) if e.kind() != ErrorKind::Unsupported => Err(e.into()),
            _ => Ok(()),
        }
    }
}

/// The layout for records like these.
pub fn layout(shape: Shape, like: &[Row]) -> Result<Layout, Fault> {
    Ok(match shape {
        Shape::Columns => {
            Layout::plain().with_columns(Column::infer(like.iter().map(|row| &row.record))?)
        }
        _ => Layout::plain(),
    })
}

impl Subject {
    /// The store in memory of the tests, with a flaw.
    pub fn naive(flaw: Flaw) -> Subject {
        Subject { name: format!("naive {flaw:?}"), wrap: Wrap::Bare, from: Origin::Naive(flaw) }
    }

    pub fn shape(&self) -> Shape {
        match self.from {
            Origin::Driver { shape, .. } => shape,
            Origin::Naive(_) => Shape::Document,
        }
    }

    pub fn driver(&self) -> &'static str {
        match &self.from {
            Origin::Driver { driver, .. } => driver.name,
            Origin::Naive(_) => "naive",
        }
    }

    /// Where its server is, if it has one.
    pub fn server(&self) -> Option<&str> {
        match &self.from {
            Origin::Driver { server, .. } => server.as_deref(),
            Origin::Naive(_) => None,
        }
    }

    /// The same with its server elsewhere.
    pub fn at(&self, url: &str) -> Subject {
        let Origin::Driver { driver, shape, options, .. } = &self.from else {
            panic!("{} has no server", self.name);
        };
        let (server, options) = (Some(url.to_owned()), options.clone());
        let from = Origin::Driver { driver, shape: *shape, server, options };
        Subject { name: self.name.clone(), wrap: self.wrap, from }
    }

    /// Whether each row costs a request of its own, and thousands take long.
    pub fn one_by_one(&self) -> bool {
        self.driver() == "s3"
    }

    /// Opens it, with more options to its URL: `pool=1`.
    pub async fn open(&self, more: &str) -> Result<Fresh, Fault> {
        Ok(patiently!(self.try_open(more))?)
    }

    /// The same, with the error of the store itself.
    pub async fn try_open(&self, more: &str) -> steelyard::Result<Fresh> {
        let (mut places, mut folders) = (Vec::new(), Vec::new());
        let shared = matches!(&self.from, Origin::Driver { server: Some(_), .. });
        if shared && self.wrap.places() > 1 {
            // One server has to do: each prefix of it is a place.
            let place = self.place(more, &mut folders).await?;
            for i in 0..self.wrap.places() {
                places.push(Arc::new(Prefix::new(place.clone(), &format!("shard {i}"))?) as Arc<_>);
            }
        } else {
            for _ in 0..self.wrap.places() {
                places.push(self.place(more, &mut folders).await?);
            }
        }
        Ok(Fresh { store: self.wrap.around(places)?, _folders: folders })
    }

    /// The same table opened several times, with connections of its own each time, and the folder it is in, if it is in
    /// one. No wrappers are put around it.
    pub async fn several(
        &self,
        handles: usize,
        more: &str,
    ) -> Result<(Vec<Arc<dyn Store>>, Option<TempDir>), Fault> {
        let Origin::Driver { driver, server, options, .. } = &self.from else {
            panic!("{} has no URL", self.name);
        };
        let (base, folder) = match server {
            Some(url) => (url.clone(), None),
            None => {
                let folder = tempfile::tempdir().map_err(Fault::new)?;
                let place = folder.path().join("place");
                (format!("{}:{}", driver.name, place.display()), Some(folder))
            }
        };
        let url = with_options(base, &[options, more, &format!("table={}", name("t"))]);
        let mut opened = Vec::with_capacity(handles);
        for _ in 0..handles {
            opened.push(store::open(&url).await?.store().clone());
        }
        Ok((opened, folder))
    }

    /// Its URL with more options; none where it has no server.
    pub fn url(&self, more: &str) -> Option<String> {
        let Origin::Driver { server: Some(url), options, .. } = &self.from else { return None };
        Some(with_options(url.clone(), &[options, more]))
    }

    /// A table of its own in a bare store.
    async fn place(
        &self,
        more: &str,
        folders: &mut Vec<TempDir>,
    ) -> steelyard::Result<Arc<dyn Store>> {
        let (driver, server, options) = match &self.from {
            Origin::Naive(flaw) => return Ok(Arc::new(Naive::new(*flaw))),
            Origin::Driver { driver, server, options, .. } => (driver, server, options),
        };
        let base = match server {
            Some(url) => url.clone(),
            None => {
                let folder = tempfile::tempdir()?;
                let path = folder.path().join("place");
                folders.push(folder);
                format!("{}:{}", driver.name, path.display())
            }
        };
        let table = format!("table={}", name("t"));
        let table = if more.contains("table=") { "" } else { &table };
        let url = with_options(base, &[options, more, table]);
        Ok(store::open(&url).await?.store().clone())
    }

    /// Opens it, with its table made for records like these.
    pub async fn ready(&self, like: &[Row]) -> Result<Fresh, Fault> {
        self.open("").await?.ready(like).await
    }
}

fn with_options(mut url: String, options: &[&str]) -> String {
    for option in options.iter().filter(|option| !option.is_empty()) {
        url.push(if url.contains('?') { '&' } else { '?' });
        url.push_str(option);
    }
    url
}

/// A kind of private server, with its settings.
type ServerKind = (&'static str, Vec<(String, String)>);

/// Private servers, one of each kind for all tests. They end with this process, as a watchman of
/// each sees to.
static SERVERS: LazyLock<Mutex<HashMap<ServerKind, Option<Server>>>> =
    LazyLock::new(Mutex::default);

/// The URL of the private server of this name; none where it is not on this machine.
fn server(name: &'static str, shape: Shape) -> Option<String> {
    let settings = SETTINGS.iter().filter(|(n, s, _)| *n == name && *s == shape);
    let settings: Vec<(String, String)> =
        settings.map(|(_, _, (name, value))| (name.to_string(), value.to_string())).collect();
    let wish = Wish { settings: settings.clone(), ..Wish::default() };
    let mut servers = SERVERS.lock().unwrap_or_else(PoisonError::into_inner);
    let server = servers.entry((name, settings)).or_insert_with(|| {
        match server::named(name).expect("drivers name servers there are").start(&wish) {
            Ok(server) => Some(server),
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            Err(e) => panic!("{e:?}"),
        }
    });
    server.as_ref().map(|server| server.url().to_owned())
}

/// Every store to try, inside this.
pub fn subjects(wrap: Wrap) -> Vec<Subject> {
    let wanted = |driver: &&Driver| match named() {
        None => matches!(wrap, Wrap::Bare | Wrap::All) || QUICK.contains(&driver.name),
        Some(names) => names.contains(driver.name),
    };
    let mut found = Vec::new();
    for driver in DRIVERS.iter().filter(wanted) {
        let before = found.len();
        for (shape, options) in options(driver) {
            let mut add = |on: String, server| {
                let name = format!("{}{on} {options} {wrap:?}", driver.name);
                let from = Origin::Driver { driver, shape, server, options: options.clone() };
                found.push(Subject { name, wrap, from });
            };
            if driver.servers.is_empty() {
                add(String::new(), None);
            }
            for name in driver.servers {
                if let Some(url) = server(name, shape) {
                    add(format!(" on {name}"), Some(url));
                }
            }
        }
        if found.len() == before {
            let names = driver.servers.join(" or ");
            programs::skip(format_args!("{}: there is no {names} on this machine", driver.name));
        }
    }
    found
}

/// The stores that `STEELYARD_STORES` names, parted by commas; none where all are wanted.
fn named() -> Option<HashSet<String>> {
    let names = std::env::var("STEELYARD_STORES").unwrap_or_default();
    let names: HashSet<_> =
        names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    (!names.is_empty()).then_some(names)
}

/// Whether a driver is to be tried in everything there is.
fn whole(driver: &Driver) -> bool {
    QUICK.contains(&driver.name) || named().is_some()
}

/// The layouts of a driver, each with what its URL has to say.
fn options(driver: &Driver) -> Vec<(Shape, String)> {
    let shapes = driver.shapes.iter().flat_map(|&shape| match shape {
        Shape::Blob => {
            let formats = &FORMATS[..if whole(driver) { 2 } else { 1 }];
            formats.iter().map(|format| (shape, format!("layout=blob&format={format}"))).collect()
        }
        shape => vec![(shape, format!("layout={shape}"))],
    });
    let usual: Vec<_> = shapes.collect();
    let extras = EXTRAS.iter().filter(|(name, _)| *name == driver.name);
    let more = extras.flat_map(|(_, extra)| {
        usual.iter().map(move |(shape, options)| (*shape, format!("{options}&{extra}")))
    });
    usual.iter().cloned().chain(more).collect()
}

/// Tries something on every store, and says of each that fails what is wrong.
#[track_caller]
pub fn each<F: Future<Output = Outcome>>(wrap: Wrap, attempt: impl Fn(Arc<Subject>) -> F) {
    let mut faults = Vec::new();
    for subject in subjects(wrap) {
        // Connections live and die with the runtime they were made in.
        let subject = Arc::new(subject);
        if let Err(fault) = run(attempt(subject.clone())) {
            faults.push(format!("{}: {fault:?}", subject.name));
        }
    }
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

/// Runs to its end what uses stores.
pub fn run<T>(what: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(what)
}

/// The seed of all that is drawn, printed with what it is for.
pub fn seed(purpose: &str) -> u64 {
    let seed = std::env::var("STEELYARD_SEED")
        .map_or(20_091_115, |seed| seed.parse().expect("STEELYARD_SEED is a whole number"));
    println!("{purpose}: STEELYARD_SEED={seed}");
    seed
}
