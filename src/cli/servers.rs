//! `steelyard servers`.

use steelyard::{Result, server::PROGRAMS};

use super::{Outcome, print};

/// Lists the private servers that can be started here: found or not, which version, how to install.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {}

const EXAMPLES: &str = "\
Examples:
  steelyard servers";

pub fn run(_: Args) -> Result<Outcome> {
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
