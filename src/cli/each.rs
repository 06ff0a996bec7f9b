//! `steelyard each`.

use futures_util::TryStreamExt;
use steelyard::{
    Error, ErrorKind, Result,
    format::Wrapped,
    store::{
        Filter, KeyRange, Place, Query, Rows,
        query::{Order, Path},
    },
};

use super::{
    Outcome, parsed, say,
    stores::{Printer, Stores},
};

/// Prints the records of a store as JSON lines: all, or those a query asks for.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The URL of the store.
    url: String,
    /// Which records: age>=90, name^=Bo, email (is there), !email, or {"age": {"$gte": 90}}. Given
    /// several times, all have to hold.
    #[arg(long = "where", value_name = "QUERY", value_parser = parsed::<Filter>)]
    filters: Vec<Filter>,
    /// In which order; a minus means descending: --sort=-age,name.
    #[arg(long, value_name = "PATHS", value_delimiter = ',', allow_hyphen_values = true)]
    sort: Vec<String>,
    /// How many at most.
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Only these fields.
    #[arg(long, value_name = "FIELDS", value_delimiter = ',')]
    fields: Option<Vec<String>>,
    /// The format to print in, instead of JSON.
    #[arg(long, value_name = "FORMAT", value_parser = parsed::<Wrapped>)]
    to: Option<Wrapped>,
}

const EXAMPLES: &str = "\
Examples:
  steelyard each sqlite:shop.db
  steelyard each sqlite:people.db --where 'age>=90' --sort birthdate --limit 10
  steelyard each mongodb://db/shop --where '{\"$or\": [{\"age\": 7}, {\"name\": null}]}' --fields name
  steelyard each 'sqlite:app.db?table=pending_objects&column=object&format=marshal'";

pub fn run(args: Args) -> Result<Outcome> {
    let mut query = Query {
        filter: args.filters.into_iter().fold(Filter::All, Filter::and),
        limit: args.limit,
        fields: args.fields,
        ..Query::default()
    };
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
    let mut rows = stores.wait(asked(&place, &query)).map_err(in_place)?;
    while let Some(batch) = stores.wait(rows.try_next()).map_err(in_place)? {
        batch.into_iter().try_for_each(|row| printer.add(row))?;
    }
    drop(rows);
    printer.finish()?;
    Ok(Outcome::Well)
}

/// What the query asks for: the store answers, or, where it cannot and nothing has to be sorted,
/// all its records are looked at here.
async fn asked<'p>(place: &'p Place, query: &Query) -> Result<Rows<'p>> {
    query.check()?;
    let only = Query { limit: query.limit, fields: query.fields.clone(), ..Query::default() };
    if *query == only && query.limit.is_none() && query.fields.is_none() {
        return place.scan(&KeyRange::all()).await;
    }
    match place.find(query).await {
        Err(e) if e.kind() == ErrorKind::Unsupported && query.sort.is_empty() => {
            say(format_args!("steelyard: {}; so all are looked at", e.context()));
        }
        answered => return answered,
    }
    let mut left = query.limit.unwrap_or(u64::MAX);
    let query = query.clone();
    let rows = place.scan(&KeyRange::all()).await?;
    let fitting = rows.map_ok(move |rows| {
        let mut rows: Vec<_> =
            rows.into_iter().filter(|row| query.matches(&row.key, &row.record)).collect();
        rows.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        left -= rows.len() as u64;
        for row in &mut rows {
            row.record = query.project(std::mem::take(&mut row.record));
        }
        rows
    });
    Ok(Box::pin(fitting))
}
