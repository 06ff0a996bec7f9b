//! `steelyard generate`.

use steelyard::{
    Error, ErrorKind, Result,
    file::Writing,
    format::{Format, Wrapped},
    marc::Record,
    record::dataset::{Dataset, catalogue::Catalogue},
};

use super::{Outcome, file_to_write, files, parsed, progress::count, say};

/// Writes records of a built-in dataset. The same seed gives the same records everywhere.
#[derive(clap::Args)]
#[command(after_help = examples())]
pub struct Args {
    /// The dataset.
    #[arg(value_parser = parsed::<Named>)]
    dataset: Named,
    /// The target: a file, or - for standard output.
    #[arg(default_value = "-", value_parser = file_to_write::<String>)]
    target: String,
    /// How many records [default: the dataset's].
    #[arg(long, short = 'n')]
    count: Option<u64>,
    /// The seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The target's format [default: from its name; on standard output, marc21 or json].
    #[arg(long, value_name = "FORMAT", value_parser = parsed::<Wrapped>)]
    to: Option<Wrapped>,
    /// Mean size of a catalogue's records, as ISO 2709.
    #[arg(long, value_name = "BYTES")]
    mean_bytes: Option<u32>,
    /// Without the oddities that real catalogues have.
    #[arg(long)]
    no_oddities: bool,
    /// Print no summary.
    #[arg(long, short)]
    quiet: bool,
}

/// A dataset by its name.
#[derive(Clone, Copy)]
struct Named(Dataset);

impl std::str::FromStr for Named {
    type Err = Error;
    fn from_str(name: &str) -> Result<Named> {
        Dataset::named(name).map(Named)
    }
}

fn examples() -> String {
    let mut text = String::from("Datasets:\n");
    for dataset in Dataset::ALL {
        let info = dataset.info();
        text += &format!("  {:10} {}\n", info.name, info.about);
    }
    text += "\nExamples:\n  steelyard generate catalogue --count 18881 catalog.mrc\n";
    text + "  steelyard generate users --count 3 --to json"
}

pub fn run(args: Args) -> Result<Outcome> {
    let dataset = args.dataset.0;
    let info = dataset.info();
    let number = args.count.unwrap_or(info.count);
    let usual = if dataset == Dataset::Catalogue { Format::Marc21 } else { Format::Json };
    let format = args.to.or_else(|| (args.target == "-").then(|| usual.into()));
    let mut target = files::create(&args.target, &Writing { format, ..Writing::default() })?;
    let mut catalogue = Catalogue::new(args.seed).oddities(!args.no_oddities);
    if let Some(bytes) = args.mean_bytes {
        catalogue = catalogue.mean_bytes(bytes)?;
    }
    let to = target.format().clone();
    let mut record = Record::new();
    for n in 0..number {
        let put = match dataset.document(args.seed, n) {
            Some(document) => target.put(&document),
            None => {
                catalogue.make(n, &mut record);
                target.put_marc(record.as_ref())
            }
        };
        put.map_err(|e| match e.kind() {
            // That is the file's fault, not the record's.
            ErrorKind::Io | ErrorKind::Full => e,
            _ => e.at_record(n + 1),
        })?;
    }
    target.finish()?;
    if !args.quiet && args.target != "-" {
        say(format_args!("{} of {} in {to}", count(number, "record"), info.name));
    }
    Ok(Outcome::Well)
}
