//! `steelyard bench formats`.

use steelyard::{
    Error, Result,
    bench::{self, formats::load, results::Plan, stop::Stop},
    file::Reading,
    format::{Format, Wrapped},
};

use super::{super::files, Common, Outcome, parsed};

/// Reads and writes a catalogue, or any records, in each format.
///
/// Reports sizes (plain, gzip, zstd) and times from and to files and in memory, also compressed. Without
/// a file: 18,881 generated MARC records of 1,650 bytes, as in the published comparison.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Files of records in any format; - for standard input.
    files: Vec<String>,
    /// Format of the files [default: by name and content].
    #[arg(long, value_name = "FORMAT", value_parser = parsed::<Wrapped>)]
    from: Option<Wrapped>,
    /// Use at most N records, a random sample [default: 20000].
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Test the method: the baseline runs twice more, once slowed by 5 %.
    #[arg(long)]
    trial: bool,
    /// Leave out compressed files.
    #[arg(long)]
    no_compressed: bool,
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    common: Common,
}

const EXAMPLES: &str = "\
Examples:
  steelyard bench formats catalog.mrc
  steelyard bench formats catalog.mrc.gz --limit 5000 --formats marc21,marcxml,json
  steelyard bench formats users.json --formats json,msgpack,cbor --baseline json --budget 30
  steelyard bench formats --cpu --out results.json   on a machine that others use too";

/// Which formats take part.
#[derive(clap::Args)]
pub struct Which {
    /// Only these formats [default: all].
    #[arg(long, value_name = "FORMAT,…", value_delimiter = ',', value_parser = parsed::<Named>)]
    formats: Vec<Named>,
    /// The format that others are compared with.
    #[arg(long, value_name = "FORMAT", value_parser = parsed::<Named>)]
    baseline: Option<Named>,
}

impl Which {
    /// The formats that were named.
    pub fn formats(&self) -> Vec<Format> {
        self.formats.iter().map(|f| f.0).collect()
    }

    /// The one to compare with.
    pub fn baseline(&self) -> Option<Format> {
        self.baseline.map(|f| f.0)
    }
}

/// A format by its name.
#[derive(Clone, Copy)]
struct Named(Format);

impl std::str::FromStr for Named {
    type Err = Error;
    fn from_str(name: &str) -> Result<Named> {
        Format::named(name).map(Named)
    }
}

pub fn run(args: Args, stop: &Stop) -> Result<Outcome> {
    let common = &args.common;
    let seed = common.seed.unwrap_or(1);
    let (records, dataset) = match args.files.is_empty() {
        true => load::catalogue(args.limit.unwrap_or(18_881), seed, stop)?,
        false => {
            let reading = Reading { format: args.from.clone(), ..Reading::default() };
            args.files.iter().try_for_each(|file| files::no_store(file))?;
            common.written_apart(args.files.iter().map(String::as_str))?;
            load::read(&args.files, &reading, args.limit.unwrap_or(load::USUAL), seed, stop)?
        }
    };
    let mut options = bench::formats::Options::new(&records);
    options.dataset = dataset;
    options.compressed = !args.no_compressed;
    options.trial = args.trial;
    options.plan = common.plan(Plan::default(), None);
    options.formats = args.which.formats();
    options.baseline = args.which.baseline();
    options.out = common.out.clone();
    options.stop = Some(stop);
    common.told(!options.formats.is_empty(), |told| bench::formats::run(&options, told))
}
