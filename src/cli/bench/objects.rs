//! `steelyard bench objects`.

use steelyard::{
    Result,
    bench::{self, stop::Stop, stores::Target, workload::Workload},
    format::Wrap,
};

use super::{Common, Outcome, formats::Which, parsed, stores};

/// Serializes and restores objects of a program: seven series, as curves over the number of objects.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// How many objects: the points of the curves.
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    counts: Vec<u64>,
    /// Encodings around the bytes, one at a time: base64, base64lines (Ruby's), gzip, zstd.
    #[arg(long, value_name = "WRAP,…", value_delimiter = ',', value_parser = parsed::<Wrap>)]
    wraps: Vec<Wrap>,
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    stores: stores::On,
    #[command(flatten)]
    common: Common,
}

const EXAMPLES: &str = "\
Examples:
  steelyard bench objects
  steelyard bench objects --formats marshal,json --wraps base64lines --format svg > curves.svg
  steelyard bench objects --as-published --out results.json";

pub fn run(args: Args, stop: &Stop) -> Result<Outcome> {
    let common = &args.common;
    if args.stores.is_named() {
        let mut options = args.stores.options(Workload::named("objects")?)?;
        options.targets = with_and_without_base64(args.stores.targets());
        options.plan = common.plan(options.plan, None);
        options.out = common.out.clone();
        options.stop = Some(stop);
        return common.told(true, |told| bench::stores::run(&options, told));
    }
    let mut options = match args.stores.as_published() {
        true => bench::objects::Options::as_published(),
        false => bench::objects::Options::default(),
    };
    if !args.counts.is_empty() {
        options.counts = args.counts.clone();
    }
    if !args.wraps.is_empty() {
        options.wraps = args.wraps.clone();
    }
    options.plan = common.plan(options.plan, None);
    options.formats = args.which.formats();
    options.baseline = args.which.baseline();
    options.out = common.out.clone();
    options.stop = Some(stop);
    common.told(!options.formats.is_empty(), |told| bench::objects::run(&options, told))
}

/// Each store as the published test had it, and without what was not needed; one that names a format
/// as it is.
fn with_and_without_base64(targets: Vec<Target>) -> Vec<Target> {
    let both = |target: Target| match target.has_layout() {
        true => vec![target],
        false => ["marshal", "marshal+base64"].map(|f| target.clone().named("format", f)).into(),
    };
    targets.into_iter().flat_map(both).collect()
}
