//! `steelyard check`: everything that is wrong with a file.

use std::{
    collections::BTreeMap,
    io::{BufWriter, Write},
};

use serde::Serialize;
use steelyard::{
    Result,
    file::{Reading, Shown},
    format::{As, Content, Found, Framed, Reader, Wrapped},
    marc::{Severity, Trouble, TroubleKind, iso2709, worst},
};

use super::{
    Outcome, files, parsed,
    progress::{Progress, count, grouped},
    visible,
};

/// Validates files and lists everything that is wrong, with record number and byte offset.
///
/// There are four grades. A note is odd but loses nothing. Repaired: the record contradicts itself, and can be read
/// in one way. Kept: something is wrong that cannot be repaired, such as wrong bytes in text, and a copy has it, too.
/// Lost: the record or a part of it cannot be read. The exit status is 1 for all but notes; with --pedantic also for
/// notes.
///
/// Records are counted as `copy` counts them: it would write repaired records as valid ones, records with errors as
/// they are (something is kept, or a part is lost), and reject damaged ones. MARC-8 is decoded to check it.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The files, or - for standard input.
    #[arg(required = true)]
    files: Vec<String>,
    /// The files' format [default: from name or content].
    #[arg(long, value_name = "FORMAT", value_parser = parsed::<Wrapped>)]
    from: Option<Wrapped>,
    /// Print JSON lines instead of text.
    #[arg(long)]
    json: bool,
    /// Print only the summary.
    #[arg(long, short)]
    quiet: bool,
    /// List notes too: oddities that lose nothing.
    #[arg(long)]
    pedantic: bool,
}

const EXAMPLES: &str = "\
Examples:
  steelyard check catalog.mrc
  steelyard check --json *.mrc | jq -r .kind | sort | uniq -c
  steelyard check --quiet catalog.xml.gz && echo valid";

/// A trouble, as a line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    file: &'a str,
    severity: Severity,
    #[serde(flatten)]
    trouble: &'a Trouble,
}

/// What is told of a file in the end.
#[derive(Serialize, Default)]
struct Summary<'a> {
    file: &'a str,
    format: String,
    records: u64,
    sound: u64,
    /// Read after a repair.
    repaired: u64,
    /// Read, though something is wrong.
    faulty: u64,
    /// How many of those have lost a part.
    incomplete: u64,
    /// Not read.
    rejected: u64,
    /// How often each kind of trouble was met, notes included.
    kinds: BTreeMap<&'static str, u64>,
}

pub fn run(args: Args) -> Result<Outcome> {
    let mut out = BufWriter::new(Shown::new(args.json));
    let mut found = None;
    for file in &args.files {
        found = found.max(check(&args, file, &mut out)?);
        out.flush()?;
    }
    let bar = if args.pedantic { Severity::Note } else { Severity::Repaired };
    Ok(if found >= Some(bar) { Outcome::Found } else { Outcome::Well })
}

/// The check of one file.
struct Check<'a, W> {
    args: &'a Args,
    summary: Summary<'a>,
    worst: Option<Severity>,
    out: &'a mut W,
}

fn check(args: &Args, file: &str, out: &mut impl Write) -> Result<Option<Severity>> {
    let reading = Reading { format: args.from.clone(), ..Reading::default() };
    let mut frames = files::open(file, &reading)?;
    let format = frames.format().clone();
    let mut reader = Reader::new(format.clone(), As::Content, false)?;
    let progress = Progress::bytes(frames.size(), args.quiet);
    let summary = Summary { file, format: format.to_string(), ..Summary::default() };
    let mut check = Check { args, summary, worst: None, out };
    while let Some(frame) = frames.next()? {
        let (bytes, offset) = (frame.bytes, frame.offset);
        let framed = Framed { range: 0..bytes.len(), offset, bad: frame.bad };
        let mut told = Ok(());
        reader.read(bytes, &[framed], &mut |found| {
            if told.is_ok() {
                told = check.settle(found);
            }
        });
        told?;
        if check.summary.records.is_multiple_of(4096) {
            progress.at(offset, || count(check.summary.records, "record"));
        }
    }
    drop(progress);
    check.tell(frames.notes())?;
    check.end()
}

impl<W: Write> Check<'_, W> {
    /// Counts a record in, and tells what is wrong with it.
    fn settle(&mut self, found: Found<'_>) -> Result<()> {
        let summary = &mut self.summary;
        summary.records += 1;
        let troubles = found.troubles;
        let severity = worst(troubles).map(|t| t.kind.severity());
        match (&found.content, severity) {
            (Err(_), _) => summary.rejected += 1,
            (Ok(_), Some(Severity::Repaired)) => summary.repaired += 1,
            (Ok(_), Some(Severity::Kept | Severity::Lost)) => {
                summary.faulty += 1;
                summary.incomplete += u64::from(severity == Some(Severity::Lost));
            }
            (Ok(_), _) => summary.sound += 1,
        }
        if let Ok(Content::Marc(marc)) = &found.content {
            let before = troubles.len();
            iso2709::lint(marc.record, troubles);
            for trouble in &mut troubles[before..] {
                trouble.offset = found.offset + if found.exact { trouble.offset } else { 0 };
            }
        }
        let number = summary.records;
        troubles.iter_mut().for_each(|trouble| trouble.record = number);
        self.tell(troubles)
    }

    /// Tells what is wrong with a record, or odd about the file as a whole (with record 0), and counts it.
    fn tell(&mut self, troubles: &[Trouble]) -> Result<()> {
        let summary = &mut self.summary;
        self.worst = self.worst.max(worst(troubles).map(|t| t.kind.severity()));
        for trouble in troubles {
            *summary.kinds.entry(trouble.kind.name()).or_default() += 1;
            let severity = trouble.kind.severity();
            if self.args.quiet || severity == Severity::Note && !self.args.pedantic {
                continue;
            }
            let file = summary.file;
            if self.args.json {
                let line = Line { file, severity, trouble };
                serde_json::to_writer(&mut *self.out, &line).map_err(std::io::Error::from)?;
                writeln!(self.out)?;
            } else {
                writeln!(self.out, "{}: {trouble}", visible(file))?;
            }
        }
        Ok(())
    }

    /// Tells the counts.
    fn end(self) -> Result<Option<Severity>> {
        let Check { args, summary, worst, out } = self;
        if args.json {
            serde_json::to_writer(&mut *out, &summary).map_err(std::io::Error::from)?;
            writeln!(out)?;
            return Ok(worst);
        }
        let Summary { file, format, records, sound, repaired, faulty, incomplete, .. } = summary;
        let Summary { rejected, kinds, .. } = summary;
        let (file, records) = (visible(file), count(records, "record"));
        write!(out, "{file}: {records} in {format}: {} valid", grouped(sound))?;
        write!(out, ", {} repaired", grouped(repaired))?;
        if faulty > 0 {
            write!(out, ", {} with errors", grouped(faulty))?;
        }
        if incomplete > 0 {
            write!(out, " ({} incomplete)", grouped(incomplete))?;
        }
        writeln!(out, ", {} damaged", grouped(rejected))?;
        for (name, n) in kinds {
            let kind = TroubleKind::ALL.iter().find(|kind| kind.name() == name);
            let meaning = kind.map_or("", |kind| kind.meaning());
            writeln!(out, "  {:>9}  {name}: {meaning}", grouped(n))?;
        }
        Ok(worst)
    }
}
