//! `steelyard report`.

use std::path::PathBuf;

use steelyard::{
    Result,
    bench::{results::Results, save},
    report,
};

use super::{Outcome, print};

/// Prints the report of a run that was kept with --out.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The results.
    results: PathBuf,
    /// How to print them.
    #[arg(long, value_name = "FORM", default_value = "text")]
    format: Form,
}

const EXAMPLES: &str = "\
Examples:
  steelyard report results.json
  steelyard report results.json --format markdown >> NOTES.md
  steelyard report results.json --format svg > picture.svg";

/// How a report is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// For a terminal.
    Text,
    /// Markdown.
    Markdown,
    /// A row for each cell, in basic units, for other tools.
    Csv,
    /// A picture.
    Svg,
    /// A page for a browser, in one file.
    Html,
    /// The results themselves.
    Json,
}

impl Form {
    /// The report in this form.
    pub fn of(self, results: &Results) -> String {
        match self {
            Form::Text => report::text(results),
            Form::Markdown => report::markdown(results),
            Form::Csv => report::csv(results),
            Form::Svg => report::svg(results),
            Form::Html => report::html(results),
            Form::Json => {
                serde_json::to_string_pretty(results).expect("results are plain data") + "\n"
            }
        }
    }
}

pub fn run(args: Args) -> Result<Outcome> {
    let results = save::read(&args.results)?;
    print(args.format.of(&results))?;
    Ok(Outcome::Well)
}
