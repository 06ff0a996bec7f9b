//! `steelyard delete`.

use steelyard::{
    Error, Result,
    store::{
        Key,
        query::{self, Condition},
    },
};

use super::{
    Outcome, grammar, parsed,
    progress::{count, grouped},
    say,
    stores::Stores,
};

/// Deletes records of a store, by key or by condition, and prints how many.
///
/// The exit status is 1 if there is no record with one of the keys.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = grammar::with(&[grammar::CONDITIONS], EXAMPLES))]
pub struct Args {
    /// The URL of the store.
    url: String,
    /// The keys.
    #[arg(value_parser = parsed::<Key>, conflicts_with_all = ["conditions", "all"])]
    keys: Vec<Key>,
    /// Only records that fit this condition (--help explains it); of several, all of them.
    #[arg(long = "where", value_name = "CONDITION", value_parser = parsed::<Condition>)]
    conditions: Vec<Condition>,
    /// All records.
    #[arg(long, conflicts_with = "conditions")]
    all: bool,
}

const EXAMPLES: &str = "\
Examples:
  steelyard delete sqlite:shop.db bob17 bob18
  steelyard delete sqlite:people.db --where 'age>=80'
  steelyard delete redis://127.0.0.1 --all";

pub fn run(args: Args) -> Result<Outcome> {
    if args.keys.is_empty() && args.conditions.is_empty() && !args.all {
        return Err(Error::invalid("name the records: keys, --where CONDITION, or --all"));
    }
    let stores = Stores::new()?;
    let place = stores.open(&args.url)?;
    let wanted = args.keys.len() as u64;
    let deleted = match args.keys.is_empty() {
        false => stores.wait(place.remove(&args.keys)),
        true => {
            let store = &**place.store();
            let work = async {
                let filter = Condition::for_store(&args.conditions, store).await?;
                let unheld = query::unheld(store, &filter.denied()).await?;
                if let Some(path) = unheld.first() {
                    return Err(Error::invalid(format!(
                        "no record has the field {path}, so every record fits that test; nothing \
                         was deleted (--where '!{path}' finds records without it)"
                    )));
                }
                let (deleted, why) = query::delete(store, &filter).await?;
                // It is done, whatever becomes of these.
                let hints = match deleted {
                    0 => query::hints(store, &filter).await.unwrap_or_default(),
                    _ => Vec::new(),
                };
                steelyard::Result::Ok((deleted, why, hints))
            };
            stores.wait(work).map(|(deleted, why, hints)| {
                for hint in hints {
                    say(format_args!("hint: {hint}"));
                }
                if let Some(why) = why {
                    say(format_args!("note: {why}; all records are read and tested here"));
                }
                deleted
            })
        }
    };
    let deleted = deleted.map_err(|e| e.in_place(place.url().to_string()))?;
    say(format_args!("{} deleted", count(deleted, "record")));
    if deleted < wanted {
        say(format_args!("{} of the keys not found", grouped(wanted - deleted)));
        return Ok(Outcome::Found);
    }
    Ok(Outcome::Well)
}
