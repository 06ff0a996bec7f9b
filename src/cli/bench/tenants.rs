//! `steelyard bench tenants`, and the processes that it starts.

use std::{
    io::{self, BufReader},
    path::PathBuf,
    time::Duration,
};

use steelyard::{
    Result,
    bench::{
        self,
        stop::Stop,
        tenants::{Arm, Options},
    },
    serve::{Config, Scope, TenantLimits, TenantName, Tenants},
};

use super::{
    super::{print, serve, stores::Stores},
    Common, Outcome, above_nothing, own_program, parsed,
    stores::Named,
};

/// Compares one table for all tenants with a database for each, and with the gateway before those.
///
/// Every number of tenants is measured by itself: queries and inserts of tenants that are drawn, the first query of one
/// whose database is not open, memory, disk, open files, and restart time. A word (sqlite, postgres) starts private
/// servers; in your own server, named by a URL, databases are made for the run and dropped after it.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Stores: sqlite, postgres, mariadb, ferretdb, mongodb, or URLs of such servers; may be repeated
    /// [default: sqlite].
    #[arg(long, value_name = "STORE,…", value_delimiter = ',', value_parser = parsed::<Named>)]
    on: Vec<Named>,
    /// Numbers of tenants [default: 1,10,100,1000].
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    tenants: Vec<u64>,
    /// Records of each tenant [default: 200].
    #[arg(long, value_name = "N")]
    documents: Option<u64>,
    /// Databases open at once, at most, or eight times as many where they share connections; the least recently used is
    /// closed [default: 128].
    #[arg(long, value_name = "N")]
    open: Option<u64>,
    /// Only these: shared, database, schema (PostgreSQL), gateway.
    #[arg(long, value_name = "ARM,…", value_delimiter = ',', value_parser = parsed::<Arm>)]
    arms: Vec<Arm>,
    /// Give up making the data of an arm after this many seconds [default: 900].
    #[arg(long, value_name = "SECONDS", value_parser = above_nothing, allow_negative_numbers = true)]
    patience: Option<f64>,
    #[command(flatten)]
    common: Common,
}

const EXAMPLES: &str = "\
Examples:
  steelyard bench tenants
  steelyard bench tenants --on postgres --tenants 1,100 --budget 300 --out tenants.json
  steelyard bench tenants --on sqlite,mariadb --documents 2000 --arms shared,database
  steelyard bench tenants --open 1000        all databases stay open

The budget is shared by the numbers of tenants; making the data counts. Each has 6 rounds at least, whatever the budget
says. An insert is as durable as the store is by default: t3, synced before it is acknowledged.";

pub fn run(args: Args, stop: &Stop) -> Result<Outcome> {
    let common = &args.common;
    let mut options = Options::new();
    options.targets = args.on.iter().map(|named| named.0.clone()).collect();
    if !args.tenants.is_empty() {
        options.tenants.clone_from(&args.tenants);
    }
    options.documents = args.documents.unwrap_or(options.documents);
    options.open = args.open.unwrap_or(options.open);
    options.arms.clone_from(&args.arms);
    if let Some(seconds) = args.patience {
        options.patience = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    }
    options.program = Some(own_program()?);
    options.plan = common.plan(options.plan, None);
    options.out.clone_from(&common.out);
    options.stop = Some(stop);
    common.told(!options.targets.is_empty(), |told| bench::tenants::run(&options, told))
}

/// Adds tenants to a gateway's catalog.
#[derive(clap::Args)]
pub struct Add {
    /// The configuration of the gateway.
    #[arg(long)]
    config: PathBuf,
    /// How many.
    #[arg(long)]
    count: u64,
}

/// Adds them, and prints a key and the database of each. An error is a line too: who reads them has no other.
pub fn add(args: &Add) -> Result<Outcome> {
    serve::only_ours();
    let stores = Stores::new()?;
    let config = Config::from_file(&args.config)?;
    let tenants = stores.wait(Tenants::open_or_create(config))?;
    for n in 1..=args.count {
        let name = TenantName::new(&format!("tenant-{n}"))?;
        let added = stores.wait(async {
            let row = tenants.add(&name, None, TenantLimits::default()).await?;
            Ok((tenants.add_key(&name, Scope::Write, "bench").await?, row))
        });
        match added {
            Ok((key, row)) => print(format!("{}\t{}\n", key.reveal(), row.database.as_str()))?,
            Err(e) => {
                print(format!("{e}\n"))?;
                return Err(e);
            }
        }
    }
    Ok(Outcome::Well)
}

/// Holds databases until standard input ends.
pub fn hold() -> Result<Outcome> {
    bench::tenants::hold(&mut BufReader::new(io::stdin()), &mut io::stdout())?;
    Ok(Outcome::Well)
}
