//! `steelyard servers`, `steelyard servers run`.

use steelyard::{
    Result,
    durability::{Medium, Tier},
    server::{PROGRAMS, Wish, named},
};

use super::{Outcome, grammar, print, say};

/// Lists the servers that steelyard can start: where each was found, its version, or how to install it.
///
/// A private server has a folder and a password of its own, and both are removed with it. `run` starts one to try
/// things on.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    act: Option<Act>,
}

#[derive(clap::Subcommand)]
enum Act {
    /// Starts a private server, prints its URL, and keeps it running until Ctrl-C.
    Run(Run),
}

#[derive(clap::Args)]
#[command(after_help = RUN_EXAMPLES, after_long_help = grammar::with(&[&grammar::tiers()], RUN_EXAMPLES))]
struct Run {
    /// A name from the list of `steelyard servers`.
    name: String,
    /// The durability that it is configured for, t0 to t3 [default: the server's own].
    #[arg(long, value_name = "TIER")]
    durability: Option<Tier>,
    /// A setting of the server, NAME=VALUE; may be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,
}

const EXAMPLES: &str = "\
Examples:
  steelyard servers
  steelyard servers run postgres     a PostgreSQL to try things on";

const RUN_EXAMPLES: &str = "\
Examples:
  steelyard servers run postgres
  steelyard servers run mariadb --durability t3
  steelyard servers run tyrant --set type=hash";

fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("NAME=VALUE is expected")?;
    Ok((name.to_owned(), value.to_owned()))
}

pub fn run(args: Args) -> Result<Outcome> {
    match args.act {
        None => list(),
        Some(Act::Run(run)) => keep(run),
    }
}

fn list() -> Result<Outcome> {
    let mut text = String::new();
    for program in PROGRAMS {
        let tiers: Vec<_> = program.tiers.iter().map(|tier| tier.name()).collect();
        text +=
            &format!("{:11} {} (durability {})\n", program.name, program.about, tiers.join(" "));
        let found = match program.find() {
            None => format!("not found; to install it: {}", program.install),
            Some(binary) => {
                let version = program.version_of(&binary);
                format!("{}: {}", binary.display(), version.as_deref().unwrap_or("version unknown"))
            }
        };
        text += &format!("{:11} {found}\n", "");
    }
    print(text)?;
    Ok(Outcome::Well)
}

fn keep(run: Run) -> Result<Outcome> {
    let wish = Wish { tier: run.durability, settings: run.settings, ..Wish::default() };
    let server = named(&run.name)?.start(&wish)?;
    print(format!("{}\n", server.url()))?;
    let memory = Medium::of(server.data()).and_then(|medium| {
        Some(format!(" ({}, {}: durability t1 at most)", medium.filesystem, medium.volatile?))
    });
    let (place, memory) = (server.data().display(), memory.unwrap_or_default());
    say(format_args!("{} keeps its data in {place}{memory}; Ctrl-C ends it", run.name));
    // The end of this process is the end of the server.
    loop {
        std::thread::park();
    }
}
