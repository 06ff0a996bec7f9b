//! `steelyard formats`: what formats there are.

use std::io::Write;

use steelyard::{Result, format::Format};

use super::Outcome;

/// Lists the formats: their names, file extensions, and what is lost in them.
#[derive(clap::Args)]
pub struct Args {}

pub fn run(_: Args) -> Result<Outcome> {
    let mut out = std::io::stdout().lock();
    for format in Format::ALL {
        let info = format.info();
        let extensions: Vec<_> = info.extensions.iter().map(|e| format!(".{e}")).collect();
        let loses = if info.loses.is_empty() { "loses nothing" } else { info.loses };
        writeln!(out, "{:10}{:26}{loses}", info.name, extensions.join(" "))?;
    }
    writeln!(
        out,
        "\nAround each record: +base64 +base64lines +gzip[:0-9] +zstd[:1-22], as in marshal+base64."
    )?;
    writeln!(out, "Around a whole file: the extension .gz or .zst, as in catalog.mrc.gz.")?;
    Ok(Outcome::Well)
}
