//! `steelyard bench cache`, and the adapters of our own clients that it runs.

use std::io;

use steelyard::{
    Result,
    bench::{
        self,
        cache::{Options, Wanted, Wish, adapter},
        formats::load,
        stop::Stop,
    },
    format::Wrapped,
};

use super::{super::say, Common, Outcome, parsed, stores};

/// Compares clients of memcached: the rows of the published test, each client in its own process, all on
/// one processor with the servers.
///
/// Clients: ours, a raw floor, and those installed of libmemcached, pymemcache and pylibmc; or any program
/// that speaks the adapters' protocol (docs/cache.md). Every value read is compared, every count is
/// checked, and unconfirmed writes are timed until the last is sent.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A client: floor, steelyard, steelyard-async, libmemcached, pymemcache, pylibmc, or a program
    /// with its arguments; may be repeated [default: those installed].
    #[arg(long, value_name = "CLIENT")]
    client: Vec<String>,
    /// Your own servers; the bench writes its keys there and deletes them at the end
    /// [default: two private ones].
    #[arg(long, value_name = "memcached://HOST,…", value_parser = servers)]
    on: Option<Servers>,
    /// Sizes of values: 4b, 1kb [default: both].
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',', value_parser = parsed::<Wish>)]
    value: Vec<Wish>,
    /// Use records of this file as values: those at the quartiles of size.
    #[arg(long, value_name = "FILE", conflicts_with = "as_published")]
    records: Option<String>,
    /// Format of the records [default: by name and content].
    #[arg(long, value_name = "FORMAT", value_parser = parsed::<Wrapped>)]
    from: Option<Wrapped>,
    /// The format of values, and of objects in our clients [default: marshal].
    #[arg(long = "as", value_name = "FORMAT", value_parser = parsed::<Wrapped>)]
    coded: Option<Wrapped>,
    /// Numbers of connections, a table for each [default: 1].
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    connections: Vec<u32>,
    /// Send calls at this many a second, at random moments (open loop).
    #[arg(long, value_name = "CALLS")]
    rate: Option<f64>,
    /// Only these rows: set, noblock, get, multiget, missing, mixed; each also with -plain, -object.
    #[arg(long, value_name = "ROW,…", value_delimiter = ',', value_parser = parsed::<Wanted>)]
    rows: Vec<Wanted>,
    /// Use the counts and the value of the published test.
    #[arg(long, conflicts_with_all = ["value", "rate"])]
    as_published: bool,
    /// Do not count system calls beforehand.
    #[arg(long)]
    no_trace: bool,
    #[command(flatten)]
    common: Common,
}

const EXAMPLES: &str = "\
Examples:
  steelyard bench cache
  steelyard bench cache --as-published --out results.json
  steelyard bench cache --rows get,multiget --value 100b,4kb --connections 1,8,64
  steelyard bench cache --records orders.json --as msgpack+zstd --client steelyard --client floor
  steelyard bench cache --client steelyard --client './my-client --fast' --rate 5000";

/// An adapter of one of this program's clients.
#[derive(clap::Args)]
pub struct Adapter {
    /// Which.
    name: String,
}

/// Addresses of servers.
#[derive(Clone)]
struct Servers(Vec<String>);

fn servers(text: &str) -> Result<Servers, String> {
    let list = text.strip_prefix("memcached://").unwrap_or(text);
    let address = |one: &str| match one.parse::<steelyard::memcache::Address>() {
        Ok(steelyard::memcache::Address::Tcp(host, port)) if !host.contains(':') => {
            Ok(format!("{host}:{port}"))
        }
        Ok(_) => Err(format!("{one:?}: not every client takes such an address; HOST or HOST:PORT")),
        Err(e) => Err(e.to_string()),
    };
    list.trim_end_matches('/').split(',').map(address).collect::<Result<_, _>>().map(Servers)
}

/// Is an adapter until its input ends.
pub fn adapter(args: Adapter) -> Result<Outcome> {
    adapter::serve_own(&args.name, &mut io::stdin().lock(), &mut io::stdout().lock())?;
    Ok(Outcome::Well)
}

pub fn run(args: Args, stop: &Stop) -> Result<Outcome> {
    let common = &args.common;
    let program = super::own_program()?;
    let mut options = match args.as_published {
        true => Options::as_published(program),
        false => Options::new(program),
    };
    options.clients = args.client.clone();
    options.on = args.on.clone().map_or(Vec::new(), |on| on.0);
    if !args.value.is_empty() {
        options.values = args.value.clone();
    }
    let mut unreadable = 0;
    if let Some(file) = &args.records {
        let limit = load::USUAL;
        let (records, described) =
            stores::own(file, args.from.as_ref(), limit, common.seed.unwrap_or(1), stop)?;
        unreadable = described.unreadable;
        described.remarks.iter().filter(|_| unreadable > 0).for_each(say);
        let wish = Wish::Records(records);
        options.values = match args.value.is_empty() {
            true => vec![wish],
            false => [args.value.clone(), vec![wish]].concat(),
        };
    }
    if let Some(format) = &args.coded {
        options.format = format.clone();
    }
    if !args.connections.is_empty() {
        options.connections = args.connections.clone();
    }
    options.rate = args.rate;
    options.rows = args.rows.clone();
    options.trace = !args.no_trace;
    options.plan = common.plan(options.plan, None);
    common.written_apart(args.records.iter().map(String::as_str))?;
    options.out = common.out.clone();
    options.stop = Some(stop);
    let told =
        common.told(!options.clients.is_empty(), |told| bench::cache::run(&options, told))?;
    Ok(if unreadable > 0 && told == Outcome::Well { Outcome::Found } else { told })
}
