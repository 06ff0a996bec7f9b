//! `steelyard completions` and `steelyard man`: made from the command line's own description.

use std::{io::Write, path::PathBuf};

use clap_complete::Shell;
use steelyard::{Error, Result};

use super::Outcome;

/// Prints shell completions.
///
/// For example: `steelyard completions bash > ~/.local/share/bash-completion/completions/steelyard`.
#[derive(clap::Args)]
pub struct Args {
    /// The shell.
    shell: Shell,
}

pub fn run(args: Args, mut command: clap::Command) -> Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "steelyard", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(Outcome::Well)
}

/// Writes the manual pages, one a verb, into a folder.
#[derive(clap::Args)]
pub struct ManArgs {
    /// The folder, made where it is not there.
    folder: PathBuf,
}

pub fn man(args: ManArgs, command: clap::Command) -> Result<Outcome> {
    let placed = |e: std::io::Error| Error::from(e).in_place(args.folder.display().to_string());
    std::fs::create_dir_all(&args.folder).map_err(placed)?;
    clap_mangen::generate_to(command, &args.folder).map_err(placed)?;
    Ok(Outcome::Well)
}
