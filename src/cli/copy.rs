//! `steelyard copy`.

use std::{
    io::{BufWriter, Write},
    path::Path,
};

use serde::Serialize;
use steelyard::{
    Error, Result,
    copy::{self, Care, Condition, Counts, Fields, Follower, Options, Recode, Reject},
    file::{Frames, Part, Reading, Sink, Staged, Writing},
    format::Wrapped,
    marc::{Severity, Trouble},
};

use super::{
    Outcome, parsed,
    progress::{Progress, count, grouped},
    say,
};

/// Copies records from one file to another, in any format.
///
/// The formats are told by the files' extensions, or by what the source begins with. `-` is standard
/// input or output. One bad record never ends the run: it is repaired or rejected, counted and
/// reported with its place; the exit status is then 1.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The source: a file, or - for standard input.
    source: String,
    /// The target: a file, or - for standard output.
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
  steelyard copy big.mrc english.mrc --where 008/35-37=eng --rejects bad.mrc";

pub fn run(args: Args) -> Result<Outcome> {
    let reading = Reading { format: args.from.clone(), part: args.part, ..Reading::default() };
    let source = Frames::open(&args.source, &reading)?;
    let writing = Writing { format: args.to.clone(), ..Writing::default() };
    let target = Sink::create(&args.target, &writing)?;
    let mut options = Options::new(source.format().clone(), target.format().clone());
    options.conditions = args.conditions;
    options.fields = args.fields;
    options.nfc = args.nfc;
    options.care = match (args.strict, args.tolerant) {
        (true, _) => Care::Strict,
        (_, true) => Care::Tolerant,
        _ => Care::Careful,
    };
    match args.encoding {
        None => (),
        Some(Encoding::Keep) => options.recode = Recode::Keep,
        Some(Encoding::Utf8) => options.recode = Recode::Utf8,
        Some(Encoding::Marc8) if options.to.format.name() == "marc21" => {
            options.recode = Recode::Marc8
        }
        Some(Encoding::Marc8) => {
            let name = options.to.format.name();
            return Err(Error::invalid(format!("{name} cannot hold MARC-8; only marc21 can")));
        }
    }
    let quiet = args.quiet || args.json;
    let mut report = Report {
        name: args.source.clone(),
        progress: Progress::bytes(source.size(), quiet),
        quiet,
        told: 0,
        untold: 0,
        rejects: args.rejects.as_deref().map(Rejects::create).transpose()?,
    };
    let counts = copy::copy(source, target, &options, &mut report)?;
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

/// How many troubles are printed before the rest is only counted.
const SHOWN: u64 = 20;

struct Report {
    name: String,
    progress: Progress,
    quiet: bool,
    told: u64,
    untold: u64,
    rejects: Option<Rejects>,
}

impl Report {
    fn tell(&mut self, line: impl FnOnce() -> String) {
        if self.quiet {
            return;
        }
        if self.told < SHOWN {
            self.told += 1;
            self.progress.say(&line());
        } else {
            self.untold += 1;
        }
    }

    fn summary(&self, counts: &Counts) {
        if self.quiet {
            return;
        }
        if self.untold > 0 {
            let line = format!(
                "and {} more; `steelyard check {}` lists all",
                grouped(self.untold),
                self.name
            );
            self.progress.say(&line);
        }
        let mut line =
            format!("{} read, {} written", count(counts.read, "record"), grouped(counts.written));
        for (n, what) in [
            (counts.left_out, "left out"),
            (counts.repaired, "repaired"),
            (counts.rejected, "rejected"),
        ] {
            if n > 0 {
                line += &format!(", {} {what}", grouped(n));
            }
        }
        self.progress.say(&line);
    }
}

impl Follower for Report {
    fn counts(&mut self, counts: &Counts) {
        self.progress.at(counts.bytes_in, || count(counts.read, "record"));
    }

    fn trouble(&mut self, trouble: &Trouble) {
        if trouble.kind.severity() > Severity::Note {
            let name = self.name.clone();
            self.tell(|| format!("{name}: {trouble}"));
        }
    }

    fn reject(&mut self, reject: &Reject) -> Result<()> {
        let name = self.name.clone();
        self.tell(|| {
            let Reject { record, offset, reason, .. } = reject;
            format!("{name}: record {record}, byte {offset}: rejected: {reason}")
        });
        match &mut self.rejects {
            Some(rejects) => rejects.add(reject),
            None => Ok(()),
        }
    }
}

/// Rejected records as they stood, and beside them a line for each with its place and the reason.
struct Rejects {
    records: BufWriter<Staged>,
    reasons: BufWriter<Staged>,
}

impl Rejects {
    fn create(path: &str) -> Result<Rejects> {
        let create = |path: &str| Staged::create(Path::new(path), false).map(BufWriter::new);
        let reasons = create(&format!("{path}.reasons"))?;
        Ok(Rejects { records: create(path)?, reasons })
    }

    fn add(&mut self, reject: &Reject) -> Result<()> {
        self.records.write_all(&reject.bytes)?;
        // Lines stay lines.
        if !reject.bytes.ends_with(b"\x1d") && !reject.bytes.ends_with(b"\n") {
            self.records.write_all(b"\n")?;
        }
        let Reject { record, offset, reason, .. } = reject;
        writeln!(self.reasons, "record {record}, byte {offset}: {reason}")?;
        Ok(())
    }

    fn finish(self) -> Result<()> {
        for file in [self.records, self.reasons] {
            file.into_inner().map_err(|e| Error::from(e.into_error()))?.commit()?;
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct Summary {
    read: u64,
    written: u64,
    left_out: u64,
    repaired: u64,
    rejected: u64,
    bytes_in: u64,
    bytes_out: u64,
}

impl From<Counts> for Summary {
    fn from(c: Counts) -> Self {
        let Counts { read, written, left_out, rejected, repaired, bytes_in, bytes_out } = c;
        Summary { read, written, left_out, repaired, rejected, bytes_in, bytes_out }
    }
}
