//! `steelyard formats`: what formats there are.

use std::fmt::Write;

use steelyard::{Result, format::Format};

use super::{Outcome, print};

/// Lists the formats: names, file extensions, and what of a record each changes or refuses.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {}

const EXAMPLES: &str = "\
Examples:
  steelyard formats
  steelyard formats | grep -v 'loses nothing'";

pub fn run(_: Args) -> Result<Outcome> {
    let mut out = String::new();
    for format in Format::ALL {
        let info = format.info();
        let extensions: Vec<_> = info.extensions.iter().map(|e| format!(".{e}")).collect();
        let loses = if info.loses.is_empty() { "loses nothing" } else { info.loses };
        let _ = writeln!(out, "{:10}{:26}{loses}", info.name, extensions.join(" "));
    }
    out += "\nAround each record: +base64 +base64lines +gzip[:0-9] +zstd[:1-22], as in marshal+base64.\n";
    out += "Around a whole file: the extension .gz or .zst, as in catalog.mrc.gz.\n";
    print(out)?;
    Ok(Outcome::Well)
}
