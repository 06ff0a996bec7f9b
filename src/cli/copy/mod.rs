//! `steelyard copy`.

mod follow;
mod places;

use steelyard::{
    Error, Result,
    copy::{self, Care, Copied, Fields, KeyRule, OnDuplicate, Options, Recode, Target},
    file::Part,
    format::Wrapped,
    store::{
        is_url,
        query::{self, Condition},
    },
};

use super::{
    Outcome,
    apart::{Named, apart},
    file_to_write, grammar, missing_fields, parsed, say,
};
use follow::{Left, Report, Summary};
pub use places::with_option;

/// Copies records from one place to another: files in any format, and stores.
///
/// A place is a file, - for standard input or output, or the URL of a store (see `steelyard stores`). The
/// format of a file follows from its extension, or from the first bytes of the source. A bad record does not
/// end the copy: it is repaired, written with its errors, or rejected; it is counted and reported with its place, and
/// the exit status is 1.
///
/// A file gets its name when it is complete; until then, and if the copy fails, the old file stays. It also
/// stays, with exit status 1, if all records are rejected or if no record has a field that --fields names.
/// If the source has no records, or --where leaves out all of them, an empty file is written and the exit
/// status is 0.
///
/// From a store into a file, a record keeps its key: as the first field, _key, or as field 001 of a MARC
/// record if it is the same. From a file into a store, that becomes its key again.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = grammar::with(&[grammar::CONDITIONS, grammar::FIELDS], EXAMPLES))]
pub struct Args {
    /// The source: a file, - for standard input, or the URL of a store.
    source: String,
    /// The target: a file, - for standard output, or the URL of a store.
    target: String,
    /// The source's format [default: from its name, else from its content].
    #[arg(long, value_name = "FORMAT", value_parser = parsed::<Wrapped>)]
    from: Option<Wrapped>,
    /// The target's format [default: from its name]; may have wraps: msgpack+base64.
    #[arg(long, value_name = "FORMAT", value_parser = parsed::<Wrapped>)]
    to: Option<Wrapped>,
    /// Only records that fit this condition (--help explains it); of several, all of them.
    #[arg(long = "where", value_name = "CONDITION", value_parser = parsed::<Condition>)]
    conditions: Vec<Condition>,
    /// Only these fields (--help explains them): 245a,100,6XX or name,email. For csv, the columns. A field
    /// that no record has is an error.
    #[arg(long, value_name = "FIELDS", value_parser = parsed::<Fields>)]
    fields: Option<Fields>,
    /// Only part I of N of the source; parts 1/4 to 4/4 together have each record once. Files of lines, marc21
    /// and marcxml are split between records, stores between keys; of other files, part I has every Nth record.
    #[arg(long, value_name = "I/N", value_parser = parsed::<Part>)]
    part: Option<Part>,
    /// Write rejected records to FILE, unchanged, and where and why to FILE.reasons.
    #[arg(long, value_name = "FILE", value_parser = file_to_write::<String>)]
    rejects: Option<String>,
    /// Reject records that would have to be repaired, or written with errors.
    #[arg(long, conflicts_with = "tolerant")]
    strict: bool,
    /// Replace what the target cannot hold by U+FFFD, and report it, instead of rejecting the record.
    #[arg(long)]
    tolerant: bool,
    /// The encoding of MARC records in the target [default: keep for marc21; for other formats MARC-8
    /// becomes UTF-8].
    #[arg(long, value_name = "ENCODING")]
    encoding: Option<Encoding>,
    /// Compose letters and accents (Unicode NFC) when MARC-8 becomes UTF-8.
    #[arg(long)]
    nfc: bool,
    /// Into a store: the field with the key, such as 035a or id [default: from a store, its key; from a file,
    /// _key, else 001 of MARC records, else the record's place in the file]. From a store into a file: the
    /// field that has the key already, so that no _key is added.
    #[arg(long, value_name = "FIELD", value_parser = parsed::<KeyRule>)]
    key: Option<KeyRule>,
    /// From a store into a file: without the keys.
    #[arg(long)]
    no_keys: bool,
    /// Into a store: which of several records with the same key is kept: first, last, or the first with the
    /// others counted as rejected (reject) [default: reject]. Records that were in the store before are
    /// replaced. This takes 20 to 40 MB of memory for a million keys; --resume reads what was copied before
    /// again; parts (--part) do not see each other's keys.
    #[arg(long, value_name = "RULE", value_parser = parsed::<OnDuplicate>)]
    on_duplicate: Option<OnDuplicate>,
    /// Into a store: how records lie in it: document, columns or blob (see `steelyard stores`).
    #[arg(long, value_name = "LAYOUT")]
    layout: Option<steelyard::store::Shape>,
    /// Into a store: make an index on each of these fields: age,address.city.
    #[arg(long, value_name = "PATHS", value_delimiter = ',', value_parser = parsed::<query::Path>)]
    index: Vec<query::Path>,
    /// Into a store: records in a batch [default: about a megabyte].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    batch: Option<u32>,
    /// Into a store: read every record back and compare.
    #[arg(long)]
    verify: bool,
    /// Into a store: keep a journal, and continue where an earlier copy was interrupted.
    #[arg(long)]
    resume: bool,
    /// The journal of --resume [default: SOURCE.copying].
    #[arg(long, value_name = "FILE", requires = "resume", value_parser = file_to_write::<String>)]
    journal: Option<String>,
    /// Print neither the summary nor what is wrong with records; only why nothing was written.
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
    /// UTF-8; leader position 9 is set.
    Utf8,
    /// MARC-8; only for marc21.
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
  steelyard copy mysql://root@db/shop?table=orders orders.json.gz --part 1/4
  steelyard copy sqlite:people.db people.csv --key id --fields id,name,age
  steelyard copy orders.json redis://cache1 --key id --on-duplicate last";

/// A target that is a file is not the source, which a typo would destroy; and what is written beside them is neither.
/// (A store may be both: the tables differ.)
fn written_apart(args: &Args) -> Result<()> {
    let mut written = Vec::new();
    if let Some(rejects) = &args.rejects {
        written.push(Named::new("the file of --rejects", rejects));
        written.push(Named::new("the reasons of --rejects", format!("{rejects}.reasons")));
    }
    if let Some(journal) = &args.journal {
        written.push(Named::new("the journal", journal));
    }
    let mut others = vec![Named::of("the source", &args.source, "/dev/stdin")];
    let target = Named::of("the target", &args.target, "/dev/stdout");
    match is_url(&args.target) {
        true => others.push(target),
        false => written.extend(target),
    }
    apart(&written, &others.into_iter().flatten().collect::<Vec<_>>())
}

pub fn run(args: Args) -> Result<Outcome> {
    written_apart(&args)?;
    let places = places::Places::new(&args)?;
    let source = places.source(&args)?;
    let target = places.target(&args)?;
    let mut options = Options::new(source.form(), target.form());
    options.conditions = args.conditions.clone();
    options.fields = args.fields.clone();
    options.nfc = args.nfc;
    options.key = args.key.clone().unwrap_or_default();
    options.keys = !args.no_keys;
    options.on_duplicate = args.on_duplicate.unwrap_or_default();
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
    let name = match &target {
        Target::File(_) => args.target.clone(),
        Target::Store(to) => to.name.clone(),
    };
    let target = places.with_journal(&args, target, &mut report)?;
    let left = Left::of(&args, &target);
    let copied = copy::copy(source, target, &options, &mut report)
        .inspect_err(|error| report.broken(error, &left))?;
    if let Some(rejects) = report.rejects.take() {
        rejects.finish()?;
    }
    let counts = copied.counts;
    report.summary(&counts);
    if !copied.hints.is_empty() {
        say(format_args!("warning: {name}: nothing was written"));
    }
    for hint in &copied.hints {
        say(format_args!("hint: {hint}"));
    }
    if args.json {
        let json = serde_json::to_string(&Summary::from(counts)).expect("plain numbers");
        say(json);
    }
    let failure = failure(&copied);
    if let Some(failure) = &failure {
        say(format_args!("error: {name}: {failure}"));
    }
    let well = failure.is_none() && counts.rejected + counts.repaired + counts.faulty == 0;
    Ok(if well { Outcome::Well } else { Outcome::Found })
}

/// Why the target is not what was asked for, and what it is instead.
fn failure(copied: &Copied) -> Option<String> {
    let Copied { counts, missing, kept_old, .. } = copied;
    let (why, now) = match missing.as_slice() {
        [] if !counts.all_rejected() => return None,
        [] if *kept_old => ("all records were rejected".into(), "nothing was written"),
        [] => ("all records were rejected".into(), "none was written"),
        missing => {
            let why = missing_fields(missing, "--fields");
            (
                why,
                if *kept_old { "nothing was written" } else { "the records were written without" },
            )
        }
    };
    let old = if *kept_old { ", and what was there is as it was" } else { "" };
    Some(format!("{why}; {now}{old}"))
}
