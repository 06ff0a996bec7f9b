//! `steelyard show`: records for the eye.

use std::{
    fmt::Write as _,
    io::{BufWriter, IsTerminal, Write},
};

use steelyard::{
    Result,
    file::{Frames, Reading},
    format::{Coder, Wrapped},
    marc::{Content, Record, RecordRef, Severity, Trouble, encoding},
    record::Value,
};

use super::{Outcome, parsed};

/// Prints records so that people can read them.
///
/// MARC records are shown a field a line, in UTF-8 whatever they are encoded in; other records as
/// indented JSON. What is wrong with a record stands below it.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A file, or - for standard input.
    file: String,
    /// Which record, or which range of them: 7, 7-12, 7- [default: all].
    which: Option<Range>,
    /// The file's format, where its name and content do not tell.
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
  steelyard show users.msgpack 1-3";

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
        let wrong = || format!("{text:?} is no record number (from 1) and no range such as 7-12");
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
    let mut out = BufWriter::new(stdout.lock());
    let range = args.which.unwrap_or(Range(1, u64::MAX));
    let reading = Reading { format: args.from, ..Reading::default() };
    let mut frames = Frames::open(&args.file, &reading)?;
    let format = frames.format().clone();
    let mut coder = Coder::new(format.clone())?;
    let mut outcome = Outcome::Well;
    let mut record = Record::new();
    let mut text = String::new();
    while let Some(frame) = frames.next()? {
        if frame.number > range.1 {
            break;
        }
        if frame.number < range.0 {
            continue;
        }
        text.clear();
        let mut troubles = Vec::new();
        let shown = frame.bad.map_or(Ok(frame.bytes), Err).and_then(|bytes| {
            let bytes = coder.unwrap(bytes)?;
            match format.format.read_marc(bytes, &mut record, &mut troubles) {
                Ok(()) => marc(&mut text, style, record.as_ref(), &mut troubles),
                // Not MARC: anything is shown as it is.
                Err(_) if troubles.is_empty() => {
                    let value: Value = format.format.decode(bytes)?;
                    text += &serde_json::to_string_pretty(&value).unwrap_or_default();
                    text.push('\n');
                    Ok(())
                }
                Err(e) => Err(e),
            }
        });
        let Style { dim, bad, off, .. } = style;
        writeln!(out, "{dim}record {}, byte {}{off}", frame.number, frame.offset)?;
        if let Err(e) = shown {
            writeln!(out, "{bad}! {}{off}", e.context())?;
            outcome = Outcome::Found;
        }
        out.write_all(text.as_bytes())?;
        for t in troubles.iter().filter(|t| t.kind.severity() > Severity::Note) {
            writeln!(
                out,
                "{bad}! byte {}: {}: {}{off}",
                frame.offset + t.offset,
                t.kind.name(),
                t.detail
            )?;
            outcome = Outcome::Found;
        }
        writeln!(out)?;
    }
    out.flush()?;
    Ok(outcome)
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

fn marc(
    text: &mut String,
    style: Style,
    record: RecordRef<'_>,
    troubles: &mut Vec<Trouble>,
) -> Result<()> {
    let Style { tag, code, off, .. } = style;
    let mut utf8 = Record::new();
    encoding::to_utf8(record, true, &mut utf8, troubles)?;
    let _ = writeln!(text, "{tag}LDR{off}    {}", visible(&record.leader().0));
    for field in utf8.as_ref().fields() {
        let name = field.tag_text().into_owned();
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
    Ok(())
}

/// Text as it can be printed: no control character reaches the terminal.
fn visible(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    if !text.contains(char::is_control) {
        return text.into_owned();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\0'..' ' => out.push(char::from_u32(0x2400 + c as u32).expect("a control picture")),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
