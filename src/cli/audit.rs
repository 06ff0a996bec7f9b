//! `steelyard audit`.

use steelyard::{
    Result,
    bench::stores::{Audit, audit_until},
    durability::Tier,
    server::elsewhere,
};

use super::{
    Outcome, bench::stores::Named, grammar, hidden::without_passwords, interrupt, parsed, print,
    say, visible,
};

/// Checks whether stores are as durable as they promise, by counting the syncs of acknowledged writes.
///
/// Each store is started as for a bench (a private server, or a file of this process). 100 records are written,
/// each acknowledged before the next, while strace watches all processes of the store. t3 is one sync or more for
/// each write; t2 is fewer, with one within the server's own interval (SQLite: once its log has grown by 1,000
/// pages). Data on tmpfs, ramfs or an overlay on them are t1 at most.
///
/// A store of your own, named by its URL, is observed if it runs on this machine and you may trace it. The records
/// are written into a database that is created for this and dropped afterwards. Of other stores the settings are
/// read, and reported as not observed.
///
/// The exit status is 1 if a store is less durable than its settings promise or than was asked for, or could not be
/// observed; its line says why.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = grammar::with(&[&grammar::tiers()], EXAMPLES))]
pub struct Args {
    /// Stores: sqlite, postgres, mariadb?engine=myisam, redis?durability=t2 ...
    #[arg(required = true, value_name = "STORE", value_parser = parsed::<Named>)]
    stores: Vec<Named>,
    /// The durability of stores that name none, t0 to t3 [default: each store's own].
    #[arg(long, value_name = "TIER", value_parser = parsed::<Tier>)]
    durability: Option<Tier>,
}

const EXAMPLES: &str = "\
Examples:
  steelyard audit sqlite postgres mariadb redis
  steelyard audit mysql://root@127.0.0.1/shop
  steelyard audit --durability t3 sqlite 'redis?durability=t2'";

pub fn run(args: Args) -> Result<Outcome> {
    let mut outcome = Outcome::Well;
    if args.stores.iter().any(|Named(target)| target.own_url().is_none()) {
        elsewhere().into_iter().for_each(say);
    }
    let stop = &interrupt::at_first();
    print(line(["store", "asked", "set", "syncs a write", "observed", "what was seen"]))?;
    for Named(target) in args.stores {
        let target = match args.durability {
            Some(tier) => target.with("durability", tier.name()),
            None => target,
        };
        let audit = match audit_until(&target, stop) {
            Ok(Some(audit)) => audit,
            // The process ends by the signal.
            Ok(None) => return Ok(outcome),
            // The others are still to be seen.
            Err(e) => {
                print(line([&target.label, "-", "-", "-", "not observed", &e.chain()]))?;
                outcome = Outcome::Found;
                continue;
            }
        };
        print(told(&audit))?;
        let unseen = audit.durability.syncs.is_none();
        if unseen || audit.durability.broken || audit.durability.is_less_than_set() {
            outcome = Outcome::Found;
        }
    }
    Ok(outcome)
}

fn told(audit: &Audit) -> String {
    let durability = &audit.durability;
    let syncs = durability.syncs.map_or("-".to_owned(), |syncs| format!("{syncs:.2}"));
    let calls: Vec<String> = audit.calls.iter().map(|(name, n)| format!("{n} {name}")).collect();
    let settings: Vec<String> =
        audit.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let word = |word: &Option<String>| word.clone().unwrap_or_else(|| "-".into());
    let (asked, set) = (word(&durability.asked), word(&durability.set));
    let seen = match (durability.syncs, &*calls) {
        (None, _) => "nothing".to_owned(),
        (Some(_), []) => format!("no sync in {} writes", audit.writes),
        (Some(_), calls) => format!("{} in {} writes", calls.join(", "), audit.writes),
    };
    let found = durability.class().name();
    let mut text = line([&audit.label, &asked, &set, &syncs, &found, &seen]);
    let mut more = |what: &str| text += &format!("    {}\n", visible(&without_passwords(what)));
    durability.remark.iter().for_each(|remark| more(remark));
    if !audit.idle.is_empty() {
        let idle: Vec<_> = audit.idle.iter().map(|(what, n)| format!("{n} {what}")).collect();
        more(&format!("syncs that make no write durable, and do not count: {}", idle.join(", ")));
    }
    if let Some(later) = durability.later.as_ref().filter(|later| later.seen) {
        more(&format!("a sync followed within {}", later.within));
    }
    if let Some(lies) = &durability.medium {
        let why = lies.volatile.as_ref().map(|why| format!(", {why}")).unwrap_or_default();
        let sync = lies.sync().map(|took| format!("; a synced write of 4 KiB takes {took}"));
        more(&format!("data on {}{why}{}", lies.filesystem, sync.unwrap_or_default()));
    }
    audit.made.iter().for_each(|made| more(made));
    more(&format!("{}: {}", audit.product, settings.join(", ")));
    text
}

fn line([label, asked, set, syncs, found, rest]: [&str; 6]) -> String {
    let line = format!("{label:28} {asked:6} {set:5} {syncs:>13}  {found:14} {rest}");
    format!("{}\n", visible(&without_passwords(line.trim_end())))
}
