//! `steelyard bench WORKLOAD`: workloads on stores.

use std::time::Duration;

use clap::Parser;
use steelyard::{
    Error, Result,
    bench::{
        self,
        formats::{Records, load},
        network::{self, Network, RoundTrip},
        results::Dataset,
        schedule::Pace,
        stop::Stop,
        stores::{Options, OwnRecords, Target, serve_writer},
        workload::{KINDS, Workload, bounds},
    },
    durability::Tier,
    file::Reading,
    format::Wrapped,
    record::{Document, Value, to_value},
};

use super::{
    super::{files, fold::folded, wrong},
    Common, Outcome, above_nothing, own_program, parsed, print,
    queries::Queries,
};

/// Runs a workload on stores: each on fresh data in every round, one at a time.
///
/// A store is named by a word (sqlite, postgres), for which a private server is started where one is
/// needed, or by the URL of your own server. There, the bench creates a database, prints its name, uses
/// nothing else, and drops it at the end (for a SQLite file, it uses another file beside it). Where it
/// cannot create a database, it uses tables with unused names.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    on: On,
    /// Use your own records instead of the generated ones of the workload's first table.
    #[arg(long, value_name = "FILE")]
    records: Option<String>,
    /// Format of the records [default: by name and content].
    #[arg(long, value_name = "FORMAT", value_parser = parsed::<Wrapped>)]
    from: Option<Wrapped>,
    /// Use at most N of them, a random sample [default: 20000].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000_000))]
    sample: Option<u64>,
    #[command(flatten)]
    queries: Queries,
    /// Send reads, queries and mixes at this many a second, at random moments (open loop).
    #[arg(long, value_name = "OPS", value_parser = rate, allow_negative_numbers = true)]
    rate: Option<f64>,
    /// Number of operations in flight at once.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    concurrency: Option<u32>,
    /// Print the plan of each statement, from the store's own EXPLAIN.
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    common: Common,
}

/// Which stores, how much of everything.
#[derive(clap::Args)]
pub struct On {
    /// A store: sqlite, mariadb?engine=myisam, postgres …, or a URL; may be repeated [default: those
    /// that need no server]. NAME=STORE names it in the report, so that one store can run twice
    /// (a=sqlite, b=sqlite). ?delay=10% slows it down, to see whether the bench detects it.
    #[arg(long, value_name = "STORE", value_parser = parsed::<Named>)]
    on: Vec<Named>,
    /// What an acknowledged write must have survived, t0 to t3 [default: each store's own].
    #[arg(long, value_name = "TIER", value_parser = parsed::<Tier>)]
    durability: Option<Tier>,
    /// Use the counts of the published test.
    #[arg(long)]
    as_published: bool,
    /// Multiply the numbers of records and operations.
    #[arg(long, value_name = "FACTOR", conflicts_with = "as_published",
          value_parser = above_nothing, allow_negative_numbers = true)]
    scale: Option<f64>,
    /// Do not count syncs beforehand.
    #[arg(long)]
    no_audit: bool,
    /// Simulate a network between client and server with this round-trip time: 0.5ms, 500us
    /// (not possible on Unix sockets and with TLS; no effect on stores in this process).
    #[arg(long, value_name = "TIME", value_parser = parsed::<RoundTrip>)]
    network: Option<RoundTrip>,
}

/// A relay of `--network`.
#[derive(clap::Args)]
pub struct NetworkRelay {
    /// The server's host.
    #[arg(long)]
    host: String,
    /// Its port.
    #[arg(long)]
    port: u16,
    /// How long a round trip is to take.
    #[arg(long)]
    round_trip_ns: u64,
}

/// Relays until standard input ends.
pub fn relay(args: NetworkRelay) -> Result<Outcome> {
    let round_trip = Duration::from_nanos(args.round_trip_ns);
    network::serve((args.host, args.port), round_trip, &mut |port| print(format!("{port}\n")))?;
    Ok(Outcome::Well)
}

/// The process that a `recover` phase kills.
#[derive(clap::Args)]
pub struct StoreWriter {
    /// The store.
    url: String,
    /// The table.
    #[arg(long)]
    table: String,
}

/// Writes what comes on standard input.
pub fn writer(args: &StoreWriter) -> Result<Outcome> {
    serve_writer(&args.url, &args.table)?;
    Ok(Outcome::Well)
}

/// A store by what was typed.
#[derive(Clone)]
pub struct Named(pub Target);

impl std::str::FromStr for Named {
    type Err = Error;
    fn from_str(text: &str) -> Result<Named> {
        Target::parse(text).map(Named)
    }
}

/// Operations a second.
fn rate(text: &str) -> Result<f64, String> {
    let (least, most) = (bounds::RATE.start(), bounds::RATE.end());
    match above_nothing(text)? {
        rate if bounds::RATE.contains(&rate) => Ok(rate),
        _ => Err(format!("a number from {least} to {most} is expected")),
    }
}

/// Examples of each built-in workload.
pub const DOCUMENTS: &str = "\
Examples:
  steelyard bench documents
  steelyard bench documents --on sqlite --on postgres --on ferretdb --durability t3
  steelyard bench documents --as-published --on mariadb --rounds 1 --out results.json";

pub const INSERTS: &str = "\
Examples:
  steelyard bench inserts
  steelyard bench inserts --on mariadb --on 'mariadb?engine=myisam' --on 'mariadb?binlog=on'
  steelyard bench inserts --scale 10 --on sqlite --durability t1";

pub const RELATIONS: &str = "\
Examples:
  steelyard bench relations
  steelyard bench relations --on mariadb --on postgres --on ferretdb
  steelyard bench relations --on 'mariadb?layout=columns' --on 'postgres?layout=columns'

From a user to the five pets: embedded, by references, by an indexed field (two questions), by a join
(one), and by a key/value table joined with itself. Joins are for sqlite, MySQL, PostgreSQL, MongoDB
and memory; other stores leave them out and say so.";

pub const MIXED: &str = "\
Examples:
  steelyard bench mixed
  steelyard bench mixed --on postgres --rate 2000 --concurrency 64
  steelyard bench mixed --on redis --on 'redis?socket=unix'
  steelyard bench mixed --on redis --on memcached --format html > mixed.html";

pub const UPKEEP: &str = "\
Examples:
  steelyard bench upkeep
  steelyard bench upkeep --on sqlite --on postgres --on mariadb --durability t3
  steelyard bench upkeep --records orders.jsonl --on postgres";

pub const LARGER: &str = "\
Examples:
  steelyard bench larger --on mariadb --on postgres
  steelyard bench larger --on mariadb --scale 5

Only private servers have a cache that can be limited; what the system's page cache holds of their
files is not limited, and the report says so.";

pub const KEEP: &str = "\
Examples:
  steelyard bench keep --records catalog.mrc --on sqlite --on 'redis?format=msgpack'
  steelyard bench keep --records orders.jsonl --key id --index created_at \
    --where 'status=open' --sort -created_at --limit 20 --on sqlite --on postgres
  steelyard bench keep --on mysql://me:secret@db.example.com/scratch --out results.json
  steelyard bench keep --on postgres --on 'postgres?client=crate' --network 0.5ms";

/// A workload from a file.
#[derive(Parser)]
#[command(name = "steelyard bench", no_binary_name = true, after_help = phases())]
struct OfFile {
    /// The workload.
    file: String,
    #[command(flatten)]
    args: Args,
}

/// What a phase of a workload may do, for `--help`.
fn phases() -> String {
    let mut text = "What a phase of the file may do (docs/workloads.md says more):\n".to_owned();
    for kind in KINDS {
        text += &folded(&format!("do = {:?}: {}", kind.name, kind.about), 80, 2);
        for (name, what) in kind.options {
            text += &folded(&format!("{name}: {what}"), 80, 6);
        }
    }
    // Without the marks of Markdown.
    text.replace('`', "")
}

pub fn run(name: &str, args: Args, stop: &Stop) -> Result<Outcome> {
    measure(Workload::named(name)?, None, args, stop)
}

/// A workload from the file that the first word names; the others are as usual.
pub fn run_file(words: Vec<String>, stop: &Stop) -> Result<Outcome> {
    let file = words.first().cloned().unwrap_or_default();
    if !file.ends_with(".toml") {
        // Says which there are.
        Workload::named(&file)?;
    }
    let OfFile { file, args } = OfFile::try_parse_from(words).unwrap_or_else(|e| wrong(&e));
    let named = |e: Error| e.in_place(file.as_str());
    let text = std::fs::read_to_string(&file).map_err(|e| named(e.into()))?;
    let workload = Workload::parse(&text).map_err(|e| {
        let line = e.place().name.clone();
        let what = if line.is_empty() {
            e.context().to_owned()
        } else {
            format!("{line}: {}", e.context())
        };
        Error::new(e.kind(), what).in_place(file.as_str())
    })?;
    // The key of a file of your own names a field of your own records.
    let key = workload.tables.first().and_then(|table| table.key.clone());
    measure(workload, key, args, stop)
}

fn measure(workload: Workload, key: Option<String>, args: Args, stop: &Stop) -> Result<Outcome> {
    let mut workload = args.queries.added(workload)?;
    for phase in &mut workload.phases {
        let single = phase.one_by_one();
        // A curve has its own.
        if let Some(n) = args.concurrency.filter(|_| single && phase.of.is_none()) {
            phase.concurrency = n;
        }
        let reads = !phase.loads();
        if let Some(rate) = args.rate.filter(|_| single && reads && phase.of.is_none()) {
            phase.pace = Pace::Poisson(rate);
        }
    }
    let mut options = args.on.options(workload)?;
    args.common.written_apart(args.records.iter().map(String::as_str))?;
    if let Some(file) = &args.records {
        let (sample, seed) = (args.sample.unwrap_or(load::USUAL), args.common.seed.unwrap_or(1));
        let (documents, described) = own(file, args.from.as_ref(), sample, seed, stop)?;
        options.records = Some(match args.queries.key().or(key.as_deref()) {
            Some(field) => OwnRecords::keyed(documents, field, described)
                .map_err(|e| e.in_place(file.as_str()))?,
            None => OwnRecords::new(documents, described),
        });
    }
    options.plan = args.common.plan(options.plan, None);
    options.out = args.common.out.clone();
    options.stop = Some(stop);
    options.explain = args.explain;
    args.common.told(!options.targets.is_empty(), |told| bench::stores::run(&options, told))
}

impl On {
    /// Whether any store is named.
    pub fn is_named(&self) -> bool {
        !self.on.is_empty()
    }

    /// Whether the published counts are wanted.
    pub fn as_published(&self) -> bool {
        self.as_published
    }

    /// The stores.
    pub fn targets(&self) -> Vec<Target> {
        self.on.iter().map(|named| named.0.clone()).collect()
    }

    /// A workload on these stores.
    ///
    /// # Errors
    /// Where this program does not find itself.
    pub fn options<'a>(&self, workload: Workload) -> Result<Options<'a>> {
        let workload = match (self.as_published, self.scale) {
            (true, _) => workload.as_published(),
            (false, Some(by)) => workload.scaled(by),
            (false, None) => workload,
        };
        workload.bounded()?;
        let mut options = Options::new(workload);
        options.targets = self.targets();
        options.as_published = self.as_published;
        options.durability = self.durability;
        options.audit = !self.no_audit;
        options.program = own_program().ok();
        options.network = match self.network {
            Some(round_trip) => Some(Network { round_trip, program: own_program()? }),
            None => None,
        };
        Ok(options)
    }
}

/// The user's records, as documents.
pub fn own(
    file: &str,
    from: Option<&Wrapped>,
    limit: u64,
    seed: u64,
    stop: &Stop,
) -> Result<(Vec<Document>, Dataset)> {
    let reading = Reading { format: from.cloned(), ..Reading::default() };
    files::no_store(file)?;
    let (records, mut dataset) = load::read(&[file.to_owned()], &reading, limit, seed, stop)?;
    dataset.kind = records.kind().to_owned();
    let documents = match records {
        Records::Documents(documents) => documents,
        Records::Marc(records) => (records.into_iter())
            .map(|record| match stop.check().and_then(|()| to_value(&record))? {
                Value::Map(document) => Ok(document),
                _ => Err(Error::unsupported("a MARC record that is no map")),
            })
            .collect::<Result<_>>()?,
    };
    Ok((documents, dataset))
}
