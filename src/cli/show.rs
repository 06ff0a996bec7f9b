//! `steelyard show`: prints records for people to read.

use std::{
    fmt::Write as _,
    io::{BufWriter, IsTerminal, Write},
};

use futures_util::TryStreamExt;
use steelyard::{
    Error, Result,
    error::gives_orders,
    file::Reading,
    format::{self, As, Found, Framed, MarcContent, Reader, Wrapped, has_marc_shape},
    marc::{Content, Record, RecordRef, Severity, Trouble, encoding::Look},
    record::{self, Value},
    report::visible_json,
    store::{KeyRange, Row, is_url},
};

use super::{Outcome, files, parsed, progress::grouped, say, stores::Stores};

/// Prints records for reading.
///
/// MARC records are printed one field a line, MARC-8 as UTF-8; other records as indented JSON. What is wrong with a
/// record stands below it. Records of a store come in its order, with their keys.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A file, - for standard input, or the URL of a store.
    file: String,
    /// A record or a range: 7, 7-12, 7- [default: all].
    which: Option<Range>,
    /// The file's format [default: from name or content].
    #[arg(long, value_name = "FORMAT", value_parser = parsed::<Wrapped>)]
    from: Option<Wrapped>,
    /// When to use colours.
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    color: When,
}

const EXAMPLES: &str = "\
Examples:
  steelyard show catalog.mrc | head -40
  steelyard show catalog.xml.gz 17
  steelyard show users.msgpack 1-3
  steelyard show sqlite:people.db 1-3";

#[derive(Clone, Copy, clap::ValueEnum)]
enum When {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Record numbers, from 1, both included.
#[derive(Clone, Copy)]
struct Range(u64, u64);

impl std::str::FromStr for Range {
    type Err = String;
    fn from_str(text: &str) -> Result<Range, String> {
        let wrong = || format!("{text:?} is not a record number (from 1) or a range such as 7-12");
        let number = |s: &str| s.parse::<u64>().ok().filter(|n| *n > 0).ok_or_else(wrong);
        match text.split_once('-') {
            None => number(text).map(|n| Range(n, n)),
            Some((from, "")) => number(from).map(|n| Range(n, u64::MAX)),
            Some((from, to)) => Ok(Range(number(from)?, number(to)?))
                .and_then(|r| if r.0 <= r.1 { Ok(r) } else { Err(wrong()) }),
        }
    }
}

pub fn run(args: Args) -> Result<Outcome> {
    let stdout = std::io::stdout();
    let colours = match args.color {
        When::Always => true,
        When::Never => false,
        When::Auto => stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none(),
    };
    let style = if colours { Style::COLOURS } else { Style::PLAIN };
    let range = args.which.unwrap_or(Range(1, u64::MAX));
    let out = BufWriter::new(stdout.lock());
    let mut show = Show { out, style, range, number: 0, outcome: Outcome::Well };
    match is_url(&args.file) {
        true => show.store(&args)?,
        false => show.file(&args)?,
    }
    show.out.flush()?;
    if args.which.is_some() && show.number < range.0 {
        let name = super::hidden::without_passwords(&args.file);
        say(format_args!("error: {name}: no record {}; it has {}", range.0, grouped(show.number)));
        return Ok(Outcome::Found);
    }
    Ok(show.outcome)
}

/// What is shown, and how far it is.
struct Show<W> {
    out: W,
    style: Style,
    range: Range,
    /// The number of the last record met.
    number: u64,
    outcome: Outcome,
}

impl<W: Write> Show<W> {
    fn file(&mut self, args: &Args) -> Result<()> {
        let reading = Reading { format: args.from.clone(), ..Reading::default() };
        let mut frames = files::open(&args.file, &reading)?;
        let mut reader = Reader::new(frames.format().clone(), As::Content, true)?;
        while self.number < self.range.1
            && let Some(frame) = frames.next()?
        {
            if !reader.may_split() && frame.number < self.range.0 {
                self.number = frame.number;
                continue;
            }
            let framed =
                Framed { range: 0..frame.bytes.len(), offset: frame.offset, bad: frame.bad };
            let mut shown = Ok(());
            reader.read(frame.bytes, &[framed], &mut |found| {
                if shown.is_ok() {
                    shown = self.found(found);
                }
            });
            shown?;
        }
        Ok(())
    }

    fn store(&mut self, args: &Args) -> Result<()> {
        let url = match &args.from {
            Some(format) => super::copy::with_option(&args.file, "format", format),
            None => args.file.clone(),
        };
        let stores = Stores::new()?;
        let place = stores.open(&url)?;
        let in_place = |e: Error| e.in_place(place.url().to_string());
        let mut rows = stores.wait(place.scan(&KeyRange::all())).map_err(in_place)?;
        while self.number < self.range.1
            && let Some(batch) = stores.wait(rows.try_next()).map_err(in_place)?
        {
            batch.into_iter().try_for_each(|row| self.row(row))?;
        }
        Ok(())
    }

    /// Counts a record in; tells whether it is to be shown.
    fn is_next(&mut self) -> bool {
        self.number += 1;
        (self.range.0..=self.range.1).contains(&self.number)
    }

    fn found(&mut self, found: Found<'_>) -> Result<()> {
        if !self.is_next() {
            return Ok(());
        }
        let Style { dim, bad, off, .. } = self.style;
        writeln!(self.out, "{dim}record {}, byte {}{off}", self.number, found.offset)?;
        match found.content {
            Ok(format::Content::Marc(MarcContent { record, decoded })) => {
                match decoded.transpose() {
                    Ok(decoded) => self.marc(decoded.unwrap_or(record), record)?,
                    // As it stands; some of it may not be text.
                    Err(e) => {
                        self.marc(record, record)?;
                        writeln!(self.out, "{bad}! {}{off}", visible(e.context().as_bytes()))?;
                        self.outcome = Outcome::Found;
                    }
                }
            }
            Ok(format::Content::Value(value)) => self.value(&value)?,
            // The troubles say it.
            Err(_) => self.outcome = Outcome::Found,
        }
        self.troubles(found.troubles)
    }

    fn row(&mut self, row: Row) -> Result<()> {
        if !self.is_next() {
            return Ok(());
        }
        let Style { dim, off, .. } = self.style;
        writeln!(self.out, "{dim}record {}, key {}{off}", self.number, row.key.shown())?;
        let value = Value::Map(row.record);
        if value.as_map().is_some_and(has_marc_shape)
            && let Ok(record) = record::from_value::<Record>(value.clone())
        {
            let (mut look, mut troubles) = (Look::new(true), Vec::new());
            let decoded = look.read(record.as_ref(), &mut troubles).and_then(Result::ok);
            self.marc(decoded.unwrap_or(record.as_ref()), record.as_ref())?;
        } else {
            self.value(&value)?;
        }
        Ok(writeln!(self.out)?)
    }

    fn value(&mut self, value: &Value) -> Result<()> {
        let json = serde_json::to_string_pretty(value).map_err(std::io::Error::from)?;
        Ok(writeln!(self.out, "{}", visible_json(&json))?)
    }

    fn marc(&mut self, record: RecordRef<'_>, stands: RecordRef<'_>) -> Result<()> {
        let mut text = String::new();
        let leader = stands.leader();
        marc(&mut text, self.style, leader.0.as_slice(), record);
        Ok(self.out.write_all(text.as_bytes())?)
    }

    fn troubles(&mut self, troubles: &[Trouble]) -> Result<()> {
        let Style { bad, off, .. } = self.style;
        for t in troubles.iter().filter(|t| t.kind.severity() > Severity::Note) {
            writeln!(self.out, "{bad}! byte {}: {}{off}", t.offset, visible(t.told().as_bytes()))?;
            self.outcome = Outcome::Found;
        }
        Ok(writeln!(self.out)?)
    }
}

/// What is written around the parts of a record.
#[derive(Clone, Copy)]
struct Style {
    tag: &'static str,
    code: &'static str,
    dim: &'static str,
    bad: &'static str,
    off: &'static str,
}

impl Style {
    const PLAIN: Style = Style { tag: "", code: "", dim: "", bad: "", off: "" };
    const COLOURS: Style = Style {
        tag: "\x1b[1;36m",
        code: "\x1b[33m",
        dim: "\x1b[2m",
        bad: "\x1b[31m",
        off: "\x1b[0m",
    };
}

fn marc(text: &mut String, style: Style, leader: &[u8], record: RecordRef<'_>) {
    let Style { tag, code, off, .. } = style;
    let _ = writeln!(text, "{tag}LDR{off}    {}", visible(leader));
    for field in record.fields() {
        let name = visible(&field.tag());
        match field.content() {
            Content::Plain(plain) => {
                let _ = writeln!(text, "{tag}{name}{off}    {}", visible(plain));
            }
            Content::Data(indicators, subfields) => {
                let _ = write!(text, "{tag}{name}{off} {}", visible(&indicators));
                for subfield in subfields {
                    let (c, value) = (visible(subfield.code), visible(subfield.value));
                    let _ = write!(text, " {code}${c}{off} {value}");
                }
                text.push('\n');
            }
        }
    }
}

/// Text as it can be printed: nothing that gives orders reaches the terminal.
fn visible(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    if !text.contains(gives_orders) {
        return text.into_owned();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\0'..' ' => out.push(char::from_u32(0x2400 + c as u32).expect("a control picture")),
            c if c.is_control() => out.push('\u{fffd}'),
            c if gives_orders(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}
