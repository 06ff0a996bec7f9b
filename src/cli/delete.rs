//! `steelyard delete`.

use steelyard::{
    Error, Result,
    store::{Filter, Key},
};

use super::{
    Outcome, parsed,
    progress::{count, grouped},
    say,
    stores::Stores,
};

/// Deletes records of a store, by their keys or by a query, and says how many those were.
///
/// The exit status is 1 if a key was not there.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The URL of the store.
    url: String,
    /// The keys.
    #[arg(value_parser = parsed::<Key>, conflicts_with_all = ["filters", "all"])]
    keys: Vec<Key>,
    /// Which records: age>=80, or {"age": {"$gte": 80}}. Given several times, all have to hold.
    #[arg(long = "where", value_name = "QUERY", value_parser = parsed::<Filter>)]
    filters: Vec<Filter>,
    /// Every record.
    #[arg(long, conflicts_with = "filters")]
    all: bool,
}

const EXAMPLES: &str = "\
Examples:
  steelyard delete sqlite:shop.db bob17 bob18
  steelyard delete sqlite:people.db --where 'age>=80'
  steelyard delete redis://127.0.0.1 --all";

pub fn run(args: Args) -> Result<Outcome> {
    if args.keys.is_empty() && args.filters.is_empty() && !args.all {
        return Err(Error::invalid("say which records: keys, --where QUERY, or --all"));
    }
    let stores = Stores::new()?;
    let place = stores.open(&args.url)?;
    let wanted = args.keys.len() as u64;
    let deleted = match args.keys.is_empty() {
        false => stores.wait(place.remove(&args.keys)),
        true => {
            let filter = args.filters.into_iter().fold(Filter::All, Filter::and);
            stores.wait(place.delete(&filter))
        }
    };
    let deleted = deleted.map_err(|e| e.in_place(place.url().to_string()))?;
    say(format_args!("{} deleted", count(deleted, "record")));
    if deleted < wanted {
        say(format_args!("{} of the keys were not there", grouped(wanted - deleted)));
        return Ok(Outcome::Found);
    }
    Ok(Outcome::Well)
}
