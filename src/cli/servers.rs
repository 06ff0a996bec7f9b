//! `steelyard servers`, `steelyard servers run`.

use steelyard::{
    Result,
    durability::{Medium, Tier},
    server::{PROGRAMS, Wish, named},
};

use super::{Outcome, print, say};

/// Lists the private servers that can be started here: found or not, which version, how to install.
///
/// `run` starts one, prints its URL, and keeps it until it is ended (Ctrl-C). Then its processes and
/// its data are gone.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    act: Option<Act>,
}

#[derive(clap::Subcommand)]
enum Act {
    /// Starts one, prints its URL, and keeps it until Ctrl-C.
    Run(Run),
}

#[derive(clap::Args)]
#[command(after_help = RUN_EXAMPLES)]
struct Run {
    /// Its name in the list.
    name: String,
    /// The durability it is set to: t0, t1, t2 or t3; else its own.
    #[arg(long, value_name = "TIER")]
    durability: Option<Tier>,
    /// A setting of the server's own, as NAME=VALUE.
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
