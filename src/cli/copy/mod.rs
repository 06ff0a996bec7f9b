//! `steelyard copy`.

mod follow;
mod places;

use steelyard::{
    Error, Result,
    copy::{self, Care, Condition, Fields, KeyRule, Options, Recode},
    file::Part,
    format::Wrapped,
    store::query,
};

use super::{Outcome, parsed, say};
use follow::{Report, Summary};

/// Copies records from one place to another: files in any format, and stores.
///
/// A place is a file, - for standard input or output, or the URL of a store (`steelyard stores` lists
/// them). The formats of files are told by their extensions, or by what the source begins with. One
/// bad record never ends the run: it is repaired or rejected, counted and reported with its place;
/// the exit status is then 1.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The source: a file, - for standard input, or the URL of a store.
    source: String,
    /// The target: a file, - for standard output, or the URL of a store.
    target: String,
    /// The source's format, where its name and content do not tell.
    #[arg(long, value_name = "FORMAT", value_parser = parsed::<Wrapped>)]
    from: Option<Wrapped>,
    /// The target's format, where its name does not tell; with wraps: msgpack+base64.
    #[arg(long, value_name = "FORMAT", value_parser = parsed::<Wrapped>)]
    to: Option<Wrapped>,
    /// Only records for which this holds: 650a~Scales, 008/35-37=eng, age>=90, !880 (not there).
    /// Given several times, all have to hold.
    #[arg(long = "where", value_name = "CONDITION", value_parser = parsed::<Condition>)]
    conditions: Vec<Condition>,
    /// Only these fields: 245a,100,6XX or name,email; the columns, where the target has rows.
    #[arg(long, value_name = "FIELDS", value_parser = parsed::<Fields>)]
    fields: Option<Fields>,
    /// Only part I of N of the source, cut at record borders: 1/4 to 4/4 make the whole.
    #[arg(long, value_name = "I/N", value_parser = parsed::<Part>)]
    part: Option<Part>,
    /// Put rejected records here as they stood, and their places and reasons in FILE.reasons.
    #[arg(long, value_name = "FILE")]
    rejects: Option<String>,
    /// Reject every record that contradicts itself.
    #[arg(long, conflicts_with = "tolerant")]
    strict: bool,
    /// Keep records that the target cannot hold by replacing what it cannot (U+FFFD), and report it.
    #[arg(long)]
    tolerant: bool,
    /// The encoding of MARC records in the target [default: keep in
    /// marc21; elsewhere MARC-8 becomes UTF-8].
    #[arg(long, value_name = "ENCODING")]
    encoding: Option<Encoding>,
    /// Compose letters and accents (Unicode form C) when MARC-8 becomes UTF-8.
    #[arg(long)]
    nfc: bool,
    /// Into a store: where the key of a record is, 035a or id [default: 001 of MARC records, _key of
    /// documents, else the record's place in its file].
    #[arg(long, value_name = "FIELD", value_parser = parsed::<KeyRule>)]
    key: Option<KeyRule>,
    /// Into a store: how records lie in it: document, columns or blob.
    #[arg(long, value_name = "LAYOUT")]
    layout: Option<steelyard::store::Shape>,
    /// Into a store: make an index on each of these paths: age,address.city.
    #[arg(long, value_name = "PATHS", value_delimiter = ',', value_parser = parsed::<query::Path>)]
    index: Vec<query::Path>,
    /// Into a store: send so many records at once [default: about a megabyte of them].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    batch: Option<u32>,
    /// Into a store: read every record back and compare.
    #[arg(long)]
    verify: bool,
    /// Into a store: keep a journal beside the source, and go on where an earlier copy was ended.
    #[arg(long)]
    resume: bool,
    /// Where to keep that journal [default: SOURCE.copying].
    #[arg(long, value_name = "FILE", requires = "resume")]
    journal: Option<String>,
    /// Print no summary and no troubles.
    #[arg(long, short)]
    quiet: bool,
    /// Print the counts as JSON on standard error.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Encoding {
    /// As it is.
    Keep,
    /// UTF-8, and every leader says so.
    Utf8,
    /// MARC-8, which only marc21 can hold.
    Marc8,
}

const EXAMPLES: &str = "\
Examples:
  steelyard copy catalog.mrc catalog.json.gz       MARC 21 to compressed JSON lines
  steelyard copy catalog.xml catalog.mrc           MARCXML to MARC 21
  steelyard copy old.mrc new.mrc --encoding utf8   MARC-8 to UTF-8
  steelyard copy catalog.mrc titles.csv --fields 001,100a,245ab
  steelyard copy - - --from json --to msgpack < a.json > a.msgpack
  steelyard copy big.mrc english.mrc --where 008/35-37=eng --rejects bad.mrc
  steelyard copy catalog.mrc sqlite:catalog.db --verify
  steelyard copy people.json postgres://me@db/shop --key id --index age --resume
  steelyard copy mysql://root@db/shop?table=orders orders.json.gz --part 1/4";

pub fn run(args: Args) -> Result<Outcome> {
    let places = places::Places::new(&args)?;
    let source = places.source(&args)?;
    let target = places.target(&args)?;
    let mut options = Options::new(source.form(), target.form());
    options.conditions = args.conditions.clone();
    options.fields = args.fields.clone();
    options.nfc = args.nfc;
    options.key = args.key.clone().unwrap_or_default();
    options.care = match (args.strict, args.tolerant) {
        (true, _) => Care::Strict,
        (_, true) => Care::Tolerant,
        _ => Care::Careful,
    };
    let marc21 = options.to.wrapped().is_some_and(|to| to.format.name() == "marc21");
    match args.encoding {
        None => (),
        Some(Encoding::Keep) => options.recode = Recode::Keep,
        Some(Encoding::Utf8) => options.recode = Recode::Utf8,
        Some(Encoding::Marc8) if marc21 => options.recode = Recode::Marc8,
        Some(Encoding::Marc8) => {
            let name = options.to.wrapped().map_or("a document", |to| to.format.name());
            return Err(Error::invalid(format!("{name} cannot hold MARC-8; only marc21 can")));
        }
    }
    let mut report = Report::new(&args, &source);
    let target = places.with_journal(&args, target, &mut report)?;
    let counts = copy::copy(source, target, &options, &mut report).inspect_err(|_| {
        if args.resume {
            report.note(
                "what is acknowledged is noted: the same command with --resume goes on there",
            );
        }
    })?;
    if let Some(rejects) = report.rejects.take() {
        rejects.finish()?;
    }
    report.summary(&counts);
    if args.json {
        let json = serde_json::to_string(&Summary::from(counts)).expect("plain numbers");
        say(json);
    }
    let well = counts.rejected == 0 && counts.repaired == 0;
    Ok(if well { Outcome::Well } else { Outcome::Found })
}
