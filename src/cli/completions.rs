//! `steelyard completions` and `steelyard man`: made from the command line's own description.

use std::path::PathBuf;

use clap_complete::Shell;
use steelyard::{Error, Result};

use super::{Outcome, print};

/// Prints shell completions.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The shell.
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  steelyard completions bash > ~/.local/share/bash-completion/completions/steelyard
  steelyard completions zsh > ~/.zfunc/_steelyard
  steelyard completions fish > ~/.config/fish/completions/steelyard.fish";

pub fn run(args: Args, mut command: clap::Command) -> Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "steelyard", &mut script);
    print(script)?;
    Ok(Outcome::Well)
}

/// Writes the manual pages, one a verb, into a folder.
#[derive(clap::Args)]
#[command(after_help = MAN_EXAMPLES)]
pub struct ManArgs {
    /// The folder, made where it is not there.
    folder: PathBuf,
}

const MAN_EXAMPLES: &str = "\
Examples:
  steelyard man ~/.local/share/man/man1";

pub fn man(args: ManArgs, command: clap::Command) -> Result<Outcome> {
    let placed = |e: std::io::Error| Error::from(e).in_place(args.folder.display().to_string());
    std::fs::create_dir_all(&args.folder).map_err(placed)?;
    clap_mangen::generate_to(command, &args.folder).map_err(placed)?;
    Ok(Outcome::Well)
}
