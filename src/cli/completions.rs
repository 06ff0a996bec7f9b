//! `steelyard completions` and `steelyard man`: both are generated from the command line's own description, with the
//! values that options take from the tables of formats, stores, servers and datasets.

use std::path::{Path, PathBuf};

use clap::{Arg, Command, builder::PossibleValuesParser};
use clap_complete::Shell;
use clap_mangen::Man;
use steelyard::{
    Error, Result,
    durability::Tier,
    file::Staged,
    format::Format,
    link,
    record::dataset::Dataset,
    server::PROGRAMS,
    store::{DRIVERS, Shape},
};

use super::{Outcome, print};

/// Prints a completion script for a shell.
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

pub fn run(args: Args, command: clap::Command) -> Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut with_values(command), "steelyard", &mut script);
    print(script)?;
    Ok(Outcome::Well)
}

/// Writes manual pages into a folder, one for each verb.
#[derive(clap::Args)]
#[command(after_help = MAN_EXAMPLES)]
pub struct ManArgs {
    /// The folder; it is created if it does not exist.
    folder: PathBuf,
}

/// The command with the values that its arguments are known to take, which are more than completion can list
/// (formats have wraps, stores have options) and so are no values that the parser holds them to.
fn with_values(command: Command) -> Command {
    let verb = command.get_name().to_owned();
    let command = command.mut_args(|arg| match values(&verb, &arg) {
        Some(values) => arg.value_parser(PossibleValuesParser::new(values)),
        None => arg,
    });
    command.mut_subcommands(with_values)
}

/// The values to offer for an argument of a verb.
fn values(verb: &str, arg: &Arg) -> Option<Vec<&'static str>> {
    let name = arg.get_value_names().and_then(|names| names.first()).map(|name| name.as_str());
    Some(match (verb, arg.get_id().as_str(), name?) {
        (_, _, "FORMAT") => Format::ALL.iter().map(|format| format.name()).collect(),
        (_, "formats", _) => Format::ALL.iter().map(|format| format.name()).collect(),
        (_, _, "TIER") => Tier::ALL.iter().map(|tier| tier.name()).collect(),
        (_, _, "LAYOUT") => Shape::ALL.iter().map(|shape| shape.name()).collect(),
        (_, "dataset", _) => Dataset::ALL.iter().map(|dataset| dataset.info().name).collect(),
        ("run", "name", _) => PROGRAMS.iter().map(|program| program.name).collect(),
        // A private server or a store of this process, by its name.
        (_, _, "STORE") => {
            let embedded = DRIVERS.iter().filter(|driver| driver.is_embedded());
            let servers = DRIVERS.iter().flat_map(|driver| driver.servers.iter().copied());
            embedded.map(|driver| driver.name).chain(servers).collect()
        }
        _ => return None,
    })
}

const MAN_EXAMPLES: &str = "\
Examples:
  steelyard man ~/.local/share/man/man1      then: man steelyard-copy";

pub fn man(args: ManArgs, command: Command) -> Result<Outcome> {
    let placed = |e: std::io::Error| Error::from(e).in_place(args.folder.display().to_string());
    link::followed(&args.folder).map_err(|e| e.in_place(args.folder.display().to_string()))?;
    std::fs::create_dir_all(&args.folder).map_err(placed)?;
    let mut command = command.disable_help_subcommand(true);
    command.build();
    pages(command, &args.folder)?;
    Ok(Outcome::Well)
}

/// The page of a command, and those of the commands below it.
fn pages(command: Command, folder: &Path) -> Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        pages(below.clone(), folder)?;
    }
    let page = Man::new(command);
    let mut file = Staged::create(&folder.join(page.get_filename()), false)?;
    page.render(&mut file)?;
    file.commit()
}
