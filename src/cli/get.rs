//! `steelyard get`.

use steelyard::{
    Result,
    format::Wrapped,
    store::{Key, Row},
};

use super::{
    Outcome, parsed, say,
    stores::{Printer, Stores},
};

/// Prints the records with these keys, in this order, as JSON lines.
///
/// The exit status is 1 if there is no record with one of the keys.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The URL of the store.
    url: String,
    /// The keys.
    #[arg(required = true, value_parser = parsed::<Key>)]
    keys: Vec<Key>,
    /// The format to print [default: json].
    #[arg(long, value_name = "FORMAT", value_parser = parsed::<Wrapped>)]
    to: Option<Wrapped>,
}

const EXAMPLES: &str = "\
Examples:
  steelyard get sqlite:shop.db bob17 bob18
  steelyard get 'sqlite:catalog.db?format=marc21' 12883376 --to line";

pub fn run(args: Args) -> Result<Outcome> {
    let stores = Stores::new()?;
    let place = stores.open(&args.url)?;
    let found =
        stores.wait(place.get(&args.keys)).map_err(|e| e.in_place(place.url().to_string()))?;
    let mut printer = Printer::new(args.to)?;
    let mut outcome = Outcome::Well;
    for (key, record) in args.keys.into_iter().zip(found) {
        match record {
            Some(record) => printer.add(Row { key, record })?,
            None => {
                say(format_args!("error: {}: no record with key {}", place.url(), key.shown()));
                outcome = Outcome::Found;
            }
        }
    }
    printer.finish()?;
    Ok(outcome)
}
