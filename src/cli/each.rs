//! `steelyard each`.

use futures_util::TryStreamExt;
use steelyard::{
    Error, Result,
    copy::{Fields, KeptFields},
    format::{Takes, Wrapped},
    store::{
        Filter, Query,
        query::{self, Answer, Condition, Order, Path},
    },
};

use super::{
    Outcome, grammar, missing_fields, parsed, say,
    stores::{Printer, Stores},
};

/// Prints records of a store as JSON lines: all, or those that fit a condition.
///
/// What the store cannot test or sort itself, steelyard does on the records, and says so.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = grammar::with(&[grammar::CONDITIONS, grammar::FIELDS], EXAMPLES))]
pub struct Args {
    /// The URL of the store.
    url: String,
    /// Only records that fit this condition (--help explains it); of several, all of them.
    #[arg(long = "where", value_name = "CONDITION", value_parser = parsed::<Condition>)]
    conditions: Vec<Condition>,
    /// Sort by these fields; a minus means descending: --sort=-age,name.
    #[arg(long, value_name = "PATHS", value_delimiter = ',', allow_hyphen_values = true)]
    sort: Vec<String>,
    /// Print N records at most.
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Only these fields (--help explains them): name,address.city or 001,245a,6XX. A field that no record
    /// has is an error.
    #[arg(long, value_name = "FIELDS", value_parser = parsed::<Fields>)]
    fields: Option<Fields>,
    /// The format to print [default: json].
    #[arg(long, value_name = "FORMAT", value_parser = parsed::<Wrapped>)]
    to: Option<Wrapped>,
}

const EXAMPLES: &str = "\
Examples:
  steelyard each sqlite:shop.db
  steelyard each sqlite:people.db --where 'age>=90 and not email' --sort birthdate --limit 10
  steelyard each sqlite:catalog.db --where '650a~Scales and 008/35-37=eng'
  steelyard each mongodb://db/shop --where '{\"$or\": [{\"age\": 7}, {\"name\": null}]}' --fields name
  steelyard each 'sqlite:app.db?table=pending_objects&column=object&format=marshal'";

pub fn run(args: Args) -> Result<Outcome> {
    let rows = args.to.as_ref().is_some_and(|to| to.format.info().takes == Takes::Rows);
    let mut kept = args.fields.map(|fields| KeptFields::new(fields, rows));
    let fields = kept.as_ref().and_then(KeptFields::names);
    let mut query = Query { limit: args.limit, fields, ..Query::default() };
    for path in &args.sort {
        let (path, order) = match path.strip_prefix('-') {
            Some(path) => (path, Order::Descending),
            None => (path.as_str(), Order::Ascending),
        };
        query = query.sorted(path.parse::<Path>()?, order);
    }
    let stores = Stores::new()?;
    let place = stores.open(&args.url)?;
    let in_place = |e: Error| e.in_place(place.url().to_string());
    let mut printer = Printer::new(args.to)?;
    let store = &**place.store();
    query.filter = stores.wait(Condition::for_store(&args.conditions, store)).map_err(in_place)?;
    let Answer { mut rows, read } = stores.wait(query::find(store, &query)).map_err(in_place)?;
    if let Some(why) = read {
        say(format_args!("note: {why}; all records are read and tested here"));
    }
    let (mut none, mut sorted) = (true, vec![false; query.sort.len()]);
    while let Some(batch) = stores.wait(rows.try_next()).map_err(in_place)? {
        none &= batch.is_empty();
        for mut row in batch {
            for (seen, (path, _)) in sorted.iter_mut().zip(&query.sort) {
                *seen |= path.kind_in(&row.key, &row.record).is_some();
            }
            if let Some(kept) = &mut kept {
                row.record = kept.keep(row.record).map_err(in_place)?;
            }
            printer.add(row)?;
        }
    }
    drop(rows);
    printer.finish()?;
    if none && query.filter != Filter::All {
        // The answer stands, whatever becomes of this.
        for hint in stores.wait(query::hints(store, &query.filter)).unwrap_or_default() {
            say(format_args!("hint: {hint}"));
        }
    }
    let missing = kept.map_or_else(Vec::new, |kept| kept.missing());
    let unseen = query.sort.iter().zip(sorted).filter(|(_, seen)| !seen && !none);
    let unseen: Vec<Path> = unseen.map(|((path, _), _)| path.clone()).collect();
    let unheld = stores.wait(query::unheld(store, &unseen)).map_err(in_place)?;
    let unheld: Vec<String> = unheld.iter().map(Path::to_string).collect();
    for (names, option) in [(&missing, "--fields"), (&unheld, "--sort")] {
        if !names.is_empty() {
            say(format_args!("warning: {}", missing_fields(names, option)));
        }
    }
    match missing.is_empty() && unheld.is_empty() {
        true => Ok(Outcome::Well),
        false => Ok(Outcome::Found),
    }
}
