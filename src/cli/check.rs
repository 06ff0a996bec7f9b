//! `steelyard check`: everything that is wrong with a file.

use std::{
    collections::BTreeMap,
    io::{BufWriter, Write},
};

use serde::Serialize;
use steelyard::{
    Result,
    file::{Frames, Reading},
    format::{Coder, Format, Takes, Wrapped},
    marc::{Record, Severity, Trouble, TroubleKind, iso2709},
    record::Value,
};

use super::{
    Outcome, parsed,
    progress::{Progress, count, grouped},
};

/// Validates files and lists every trouble with its record number and byte offset.
///
/// Three grades: a note is odd but loses nothing; repaired means the record contradicts itself and
/// was read in the one way that makes sense; lost means it, or a part of it, could not be read.
/// The exit status is 1 if anything was repaired or lost (with --pedantic: at any note).
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The files, or - for standard input.
    #[arg(required = true)]
    files: Vec<String>,
    /// The files' format, where name and content do not tell.
    #[arg(long, value_name = "FORMAT", value_parser = parsed::<Wrapped>)]
    from: Option<Wrapped>,
    /// Print a JSON object a line instead of text.
    #[arg(long)]
    json: bool,
    /// Print only the summary.
    #[arg(long, short)]
    quiet: bool,
    /// Notes too: oddities that lose nothing.
    #[arg(long)]
    pedantic: bool,
}

const EXAMPLES: &str = "\
Examples:
  steelyard check catalog.mrc
  steelyard check --json *.mrc | jq -r .kind | sort | uniq -c
  steelyard check --quiet catalog.xml.gz && echo sound";

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
    repaired: u64,
    lost: u64,
    /// How often each kind of trouble was met, notes included.
    kinds: BTreeMap<&'static str, u64>,
}

pub fn run(args: Args) -> Result<Outcome> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut worst = None;
    for file in &args.files {
        worst = worst.max(check(&args, file, &mut out)?);
        out.flush()?;
    }
    let bar = if args.pedantic { Severity::Note } else { Severity::Repaired };
    Ok(if worst >= Some(bar) { Outcome::Found } else { Outcome::Well })
}

fn check(args: &Args, file: &str, out: &mut impl Write) -> Result<Option<Severity>> {
    let reading = Reading { format: args.from.clone(), ..Reading::default() };
    let mut frames = Frames::open(file, &reading)?;
    let format = frames.format().clone();
    let marc21 = format == Wrapped::from(Format::Marc21);
    let progress = Progress::bytes(frames.size(), args.quiet);
    let mut summary = Summary { file, format: format.to_string(), ..Summary::default() };
    let mut worst = None;
    let mut settle =
        |number: u64, troubles: &mut Vec<Trouble>, out: &mut dyn Write| -> Result<()> {
            summary.records += 1;
            let severity = troubles.iter().map(|t| t.kind.severity()).max();
            match severity {
                Some(Severity::Lost) => summary.lost += 1,
                Some(Severity::Repaired) => summary.repaired += 1,
                _ => summary.sound += 1,
            }
            worst = worst.max(severity);
            for trouble in troubles.drain(..) {
                *summary.kinds.entry(trouble.kind.name()).or_default() += 1;
                let severity = trouble.kind.severity();
                if args.quiet || severity == Severity::Note && !args.pedantic {
                    continue;
                }
                let trouble = &Trouble { record: number, ..trouble };
                if args.json {
                    serde_json::to_writer(&mut *out, &Line { file, severity, trouble })
                        .map_err(std::io::Error::from)?;
                    writeln!(out)?;
                } else {
                    writeln!(out, "{file}: {trouble}")?;
                }
            }
            Ok(())
        };
    let (mut record, mut coder) = (Record::new(), Coder::new(format.clone())?);
    let (mut number, mut troubles) = (0, Vec::new());
    while let Some(frame) = frames.next()? {
        if marc21 && frame.bad.is_none() {
            // A damaged length may have made one frame of two records.
            let mut records = iso2709::Records::new(frame.bytes);
            while let Some(item) = records.next() {
                troubles.extend_from_slice(item.troubles);
                let own = troubles.len();
                if let Some(record) = item.record {
                    iso2709::lint(record, &mut troubles);
                }
                troubles[own..].iter_mut().for_each(|t| t.offset += item.offset);
                troubles.iter_mut().for_each(|t| t.offset += frame.offset);
                number += 1;
                settle(number, &mut troubles, out)?;
            }
        } else {
            // The offset of a bad stretch counts from the file's beginning, any other from the frame's.
            let from = if frame.bad.is_some() { frame.offset } else { 0 };
            let read = frame.bad.map_or(Ok(frame.bytes), Err).and_then(|bytes| {
                let bytes = coder.unwrap(bytes)?;
                if format.format.info().takes == Takes::Marc {
                    format.format.read_marc(bytes, &mut record, &mut troubles)?;
                    iso2709::lint(record.as_ref(), &mut troubles);
                    return Ok(());
                }
                format.format.decode::<Value>(bytes).map(drop)
            });
            if let Err(e) = read
                && !troubles.iter().any(|t| t.kind.severity() == Severity::Lost)
            {
                let at = e.place().offset.unwrap_or(from).saturating_sub(from) as usize;
                let detail = super::chain_without_place(&e);
                troubles.push(Trouble::new(TroubleKind::Syntax, at, detail));
            }
            troubles.iter_mut().for_each(|t| t.offset += frame.offset);
            number += 1;
            settle(number, &mut troubles, out)?;
        }
        if number % 4096 == 0 {
            progress.at(frame.offset, || count(number, "record"));
        }
    }
    drop(progress);
    if args.json {
        serde_json::to_writer(&mut *out, &summary).map_err(std::io::Error::from)?;
        writeln!(out)?;
        return Ok(worst);
    }
    let Summary { records, sound, repaired, lost, kinds, format, .. } = &summary;
    write!(out, "{file}: {} in {format}: {} sound", count(*records, "record"), grouped(*sound))?;
    writeln!(out, ", {} repaired, {} lost or cut", grouped(*repaired), grouped(*lost))?;
    for (kind, n) in kinds {
        writeln!(out, "  {:>9}  {kind}", grouped(*n))?;
    }
    Ok(worst)
}
