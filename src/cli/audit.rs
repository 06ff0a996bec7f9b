//! `steelyard audit`.

use steelyard::{
    Result,
    bench::stores::{Audit, audit},
    durability::Tier,
};

use super::{Outcome, bench::stores::Named, parsed, print};

/// Counts the syncs of each acknowledged write: whether a store keeps its promise of durability.
///
/// Each store is started as for a bench (a private server, or a file of this process), and 100
/// records are written, one acknowledged after another, while strace counts fsync, fdatasync and
/// their like of all its processes. t3 is one sync or more for each write, t2 and t1 far fewer.
/// Exit status 1 where what is observed, or set, is not what was asked for.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Stores: sqlite, postgres, mariadb?engine=myisam, redis?durability=t2 ...
    #[arg(required = true, value_name = "STORE", value_parser = parsed::<Named>)]
    stores: Vec<Named>,
    /// The durability of those that name none, t0 to t3 [default: each store's own].
    #[arg(long, value_name = "TIER", value_parser = parsed::<Tier>)]
    durability: Option<Tier>,
}

const EXAMPLES: &str = "\
Examples:
  steelyard audit sqlite postgres mariadb redis
  steelyard audit --durability t3 sqlite 'redis?durability=t2'";

pub fn run(args: Args) -> Result<Outcome> {
    let mut outcome = Outcome::Well;
    print(line(["store", "asked", "set", "syncs a write", "calls and settings"]))?;
    for Named(target) in args.stores {
        let target = match args.durability {
            Some(tier) => target.with("durability", tier.name()),
            None => target,
        };
        let audit = audit(&target).map_err(|e| e.in_place(target.label.as_str()))?;
        print(told(&audit))?;
        if audit.durability.broken {
            outcome = Outcome::Found;
        }
    }
    Ok(outcome)
}

fn told(audit: &Audit) -> String {
    let durability = &audit.durability;
    let syncs = durability.syncs.map_or("-".to_owned(), |syncs| format!("{syncs:.2}"));
    let calls = audit.calls.iter().map(|(name, n)| format!("{n} {name}"));
    let settings = audit.settings.iter().map(|(name, value)| format!("{name}={value}"));
    let all: Vec<String> = calls.chain(settings).collect();
    let word = |word: &Option<String>| word.clone().unwrap_or_else(|| "-".into());
    let (asked, set) = (word(&durability.asked), word(&durability.set));
    let mut text = line([&audit.label, &asked, &set, &syncs, &all.join(", ")]);
    text += &line(["", "", "", "", &format!("{}; {} writes", audit.product, audit.writes)]);
    if let Some(remark) = &durability.remark {
        text += &line(["", "", "", "", remark]);
    }
    text
}

fn line([label, asked, set, syncs, rest]: [&str; 5]) -> String {
    let line = format!("{label:28} {asked:6} {set:5} {syncs:>13}  {rest}");
    format!("{}\n", line.trim_end())
}
