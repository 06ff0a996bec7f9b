//! `steelyard put`.

use futures_util::TryStreamExt;
use steelyard::{
    Error, ErrorKind, Result,
    copy::KeyRule,
    format::Wrapped,
    store::{KeyRange, Layout, Row, Shape},
};

use super::{Outcome, parsed, print, progress::count, rows, say, stores::Stores};

/// Stores records, replacing those with the same keys.
///
/// Records are read from standard input as JSON lines, or from files in any format. The key is the field _key, as
/// `each` and `get` print it, or the field that --key names, or field 001 of a MARC record. A record without one gets
/// a new key, which is printed. For many records, `copy` is faster.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The URL of the store.
    url: String,
    /// Files of records; - for standard input.
    #[arg(default_value = "-")]
    files: Vec<String>,
    /// The field with the key: id, customer.number, 001, 035a.
    #[arg(long, value_name = "FIELD", value_parser = parsed::<KeyRule>)]
    key: Option<KeyRule>,
    /// The records' format [default: of files, from name or content; of standard input, json].
    #[arg(long, value_name = "FORMAT", value_parser = parsed::<Wrapped>)]
    from: Option<Wrapped>,
}

const EXAMPLES: &str = "\
Examples:
  echo '{\"_key\": \"bob17\", \"age\": 42}' | steelyard put sqlite:shop.db
  steelyard put sqlite:shop.db --key id < orders.json
  steelyard each sqlite:shop.db | steelyard put mysql://root@db/shop";

/// How many records are kept at once.
const BATCH: usize = 1000;

pub fn run(args: Args) -> Result<Outcome> {
    let rule = args.key.unwrap_or_default();
    let stores = Stores::new()?;
    let place = stores.open(&args.url)?;
    let in_place = |e: Error| e.in_place(place.url().to_string());
    let (mut waiting, mut given, mut kept, mut ready) = (Vec::new(), String::new(), 0, false);
    let mut send = |rows: &mut Vec<Row>, given: &mut String| -> Result<()> {
        stores.wait(async {
            if !ready {
                prepare(&place, rows).await?;
                ready = true;
            }
            place.put(rows).await
        })?;
        kept += rows.len() as u64;
        rows.clear();
        // Only what is kept.
        print(std::mem::take(given))
    };
    for file in &args.files {
        rows::each(file, args.from.as_ref(), &rule, |row, is_new| {
            if is_new {
                given += row.key.as_str();
                given.push('\n');
            }
            waiting.push(row);
            match waiting.len() == BATCH {
                true => send(&mut waiting, &mut given).map_err(in_place),
                false => Ok(()),
            }
        })?;
    }
    if !waiting.is_empty() {
        send(&mut waiting, &mut given).map_err(in_place)?;
    }
    say(format_args!("{} stored", count(kept, "record")));
    Ok(Outcome::Well)
}

/// Makes the table, if it is not there.
async fn prepare(place: &steelyard::store::Place, rows: &[Row]) -> Result<()> {
    let mut layout = Layout::plain();
    if place.shape() == Shape::Columns {
        // The columns of a table that is there stay as they are.
        match place.scan(&KeyRange::all()).await {
            Ok(mut there) => return there.try_next().await.map(drop),
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
            Err(_) => {}
        }
        let records = rows.iter().map(|row| &row.record);
        layout = layout.with_columns(steelyard::store::Column::infer(records)?);
    }
    place.prepare(&layout).await
}
