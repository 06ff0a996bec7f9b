//! `steelyard slabs`: how memcached's memory holds records, and under which settings better.

mod source;
mod table;
mod verify;

use steelyard::{
    Error, Result,
    format::Wrapped,
    memcache::slabs::{
        Classes, Load, Settings,
        advice::{warnings, what_if},
    },
    report::slabs::Slabs,
};

use self::source::Source;
use super::{Outcome, parsed, print, report::Form};

/// Shows how records fill memcached's memory, and which settings would hold more of them.
///
/// The records come from a file, or from a running memcached (memcached://host:port; its keys are listed). The model
/// is exact for memcached 1.6; --verify checks it on a private server.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
#[command(arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    act: Option<Act>,
    /// A file of records, - for standard input, or memcached://host:port.
    #[arg(value_name = "RECORDS")]
    records: Option<String>,
    #[command(flatten)]
    wish: Wish,
    /// The field with the key [default: keys of 36 bytes, also for records without the field].
    #[arg(long, value_name = "FIELD")]
    key: Option<String>,
    /// The format of the stored values.
    #[arg(long, value_name = "FORMAT", default_value = "json", value_parser = parsed::<Wrapped>)]
    format: Wrapped,
    /// The file's format [default: from name or content].
    #[arg(long, value_name = "FORMAT", value_parser = parsed::<Wrapped>)]
    from: Option<Wrapped>,
    /// How to print it.
    #[arg(long, value_name = "FORM", default_value = "text")]
    form: Form,
    /// Store the records in a private memcached with these settings, and compare it with the model.
    #[arg(long)]
    verify: bool,
}

#[derive(clap::Subcommand)]
enum Act {
    /// Prints the slab classes of the settings: number, chunk size, chunks in a page.
    Classes(ClassesArgs),
}

#[derive(clap::Args)]
#[command(after_help = CLASSES_EXAMPLES)]
struct ClassesArgs {
    #[command(flatten)]
    wish: Wish,
}

/// The settings of the server.
#[derive(clap::Args)]
struct Wish {
    /// The growth factor of the classes (memcached -f).
    #[arg(long, value_name = "F")]
    factor: Option<f64>,
    /// Bytes for key and value in the smallest class (-n).
    #[arg(long, value_name = "BYTES")]
    chunk: Option<u64>,
    /// The chunk sizes of all classes but the last, as 100-200-400 (-o slab_sizes).
    #[arg(long, value_name = "SIZES", value_parser = sizes)]
    slab_sizes: Option<Sizes>,
    /// The largest item, as 1m (-I).
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_item: Option<u64>,
    /// The largest chunk, as 512k (-o slab_chunk_max, whatever unit the server takes).
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_chunk: Option<u64>,
    /// The memory for items, in megabytes (-m).
    #[arg(long, value_name = "MB")]
    memory: Option<u64>,
    /// Without compare-and-swap (-C).
    #[arg(long)]
    no_cas: bool,
}

#[derive(Clone)]
struct Sizes(Vec<u64>);

const EXAMPLES: &str = "\
Examples:
  steelyard slabs orders.json --key id
  steelyard slabs orders.json --format msgpack+zstd --factor 1.1 --memory 1024
  steelyard slabs memcached://cache1:11211
  steelyard slabs catalog.mrc --format marc21 --verify
  steelyard slabs orders.json --form html > slabs.html
  steelyard slabs classes --factor 1.1";

const CLASSES_EXAMPLES: &str = "\
Examples:
  steelyard slabs classes
  steelyard slabs classes --factor 1.5 --chunk 80
  steelyard slabs classes --slab-sizes 128-512-2048";

/// A number of bytes, with k, m or g behind it.
fn size(text: &str) -> Result<u64, String> {
    let lower = text.to_ascii_lowercase();
    let (digits, shift) = match lower.strip_suffix(['k', 'm', 'g']) {
        Some(digits) => (
            digits,
            if lower.ends_with('k') {
                10
            } else if lower.ends_with('m') {
                20
            } else {
                30
            },
        ),
        None => (lower.as_str(), 0),
    };
    let number: u64 =
        digits.parse().map_err(|_| "a number of bytes is expected, like 512k or 1m")?;
    number.checked_mul(1 << shift).ok_or_else(|| "that is too much".into())
}

fn sizes(text: &str) -> Result<Sizes, String> {
    let sizes = text.split('-').map(|size| size.parse().map_err(|_| ()));
    let sizes: Result<Vec<u64>, ()> = sizes.collect();
    sizes.map(Sizes).map_err(|()| "numbers of bytes are expected, like 100-200-400".into())
}

impl Wish {
    /// Puts what is asked in place of what is usual, or what a server says of itself.
    fn over(&self, usual: Settings) -> Settings {
        Settings {
            factor: self.factor.unwrap_or(usual.factor),
            chunk: self.chunk.unwrap_or(usual.chunk),
            slab_sizes: self.slab_sizes.as_ref().map(|sizes| sizes.0.clone()).or(usual.slab_sizes),
            item_max: self.max_item.unwrap_or(usual.item_max),
            chunk_max: self.max_chunk.or(usual.chunk_max),
            memory: self.memory.unwrap_or(usual.memory),
            cas: usual.cas && !self.no_cas,
        }
    }

    /// Whether nothing is asked of the classes.
    fn is_empty(&self) -> bool {
        self.factor.is_none() && self.chunk.is_none() && self.slab_sizes.is_none()
    }
}

pub fn run(args: Args) -> Result<Outcome> {
    if let Some(Act::Classes(act)) = args.act {
        let classes = Classes::new(&act.wish.over(Settings::default()))?;
        print(table::classes(&classes))?;
        return Ok(Outcome::Well);
    }
    let Some(records) = &args.records else {
        return Err(Error::invalid("name a file of records, or memcached://host:port"));
    };
    let source = match records.starts_with("memcached://") {
        true if args.verify => {
            return Err(Error::invalid("--verify stores the records of a file, not of a server"));
        }
        true => source::live(records, &args.wish)?,
        false => {
            let settings = args.wish.over(Settings::default());
            let reading = (args.from.clone(), args.format.clone(), args.key.as_deref());
            Source { settings, ..source::file(records, reading)? }
        }
    };
    let classes = Classes::new(&source.settings)?;
    let load = Load::new(&classes, &source.census);
    if source.census.is_empty() {
        print(format!("{}\nno items\n", source.about))?;
        return Ok(Outcome::Well);
    }
    let outcomes = what_if(&source.settings, &source.census)?;
    let notes: Vec<String> = warnings(&classes, &load)
        .iter()
        .map(ToString::to_string)
        .chain(source.notes.clone())
        .collect();
    let slabs = Slabs {
        about: &source.about,
        settings: &source.settings,
        version: source.version.as_deref().unwrap_or("1.6.18"),
        load: &load,
        outcomes: &outcomes,
        there: source.pages,
        notes: &notes,
    };
    print(args.form.of_slabs(&slabs))?;
    if args.verify {
        return verify::run(&source, &load, &args);
    }
    Ok(Outcome::Well)
}
