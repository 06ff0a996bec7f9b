//! Orders of long texts, and the time that long keys take.

use std::time::{Duration, Instant};

use steelyard::{
    record::{Document, Value},
    store::{
        self, Filter, Key, Layout, Query, Row, Store,
        query::{Order, Path},
    },
};

use super::{Desk, Faults, each, found, keys_of, scanned};
use crate::stores::places::{self, Outcome, ensure};

/// Records whose texts are alike up to a length, in no order.
fn alike(length: usize, letter: &str) -> Vec<Row> {
    let start = letter.repeat(length);
    let row = |n: u64| {
        let turned = (n * 7919) % 97;
        let text = format!("{start}{turned:03}");
        Row {
            key: Key::new(format!("k{n}")).expect("not empty"),
            record: Document::from_iter([
                ("same", Value::from("x")),
                ("text", Value::from(text)),
                ("short", Value::from(format!("{turned}"))),
            ]),
        }
    };
    (0..97).map(row).collect()
}

async fn sorted_in(store: &dyn Store, what: &str, rows: &[Row], faults: &mut Faults) -> Outcome {
    let text = Path::new(["text"]);
    for order in [Order::Ascending, Order::Descending] {
        let by_text = Query::new(Filter::All).sorted(text.clone(), order);
        let second = Query::new(Filter::All)
            .sorted(Path::new(["same"]), Order::Ascending)
            .sorted(text.clone(), order);
        let short = Query::new(Filter::All).sorted(Path::new(["short"]), order);
        for mut query in [by_text, second, short] {
            for limit in [None, Some(5), Some(50)] {
                query.limit = limit;
                let mut want = rows.to_vec();
                want.sort_by(|a, b| query.order(a, b));
                want.truncate(limit.unwrap_or(1000) as usize);
                match found(store, &query).await {
                    Ok(got) if keys_of(&got) == keys_of(&want) => {}
                    Ok(_) => faults.push(format!("{what}: {order:?} {limit:?} is in no order")),
                    Err(e) => faults.push(format!("{what}: {order:?} {limit:?}: {e}")),
                }
            }
        }
    }
    Ok(())
}

async fn sorts(desk: &Desk) -> Outcome {
    let mut faults = Faults::default();
    let types: &[&str] = match desk.subject.driver() {
        "mysql" => &[
            "longtext CHARACTER SET utf8mb4",
            "varchar(9000) CHARACTER SET utf8mb4",
            "text CHARACTER SET latin1",
        ],
        _ => &["text"],
    };
    for (length, letter) in [(400, "x"), (1100, "x"), (8000, "x"), (300, "\u{e4}"), (60_000, "x")] {
        let rows = alike(length, letter);
        for declared in types {
            if length > 9000 && declared.starts_with("varchar") {
                continue;
            }
            let table = places::name("sorts");
            let make = format!(
                "CREATE TABLE {table} (k varchar(9) PRIMARY KEY, same text, text {declared}, short text)"
            );
            desk.program.run(&make).await?;
            let store = desk.open(&table, "&key=k").await?;
            store.put(&rows).await?;
            let rows = scanned(&*store).await?;
            let what = format!("{declared}, {length} of {letter}");
            sorted_in(&*store, &what, &rows, &mut faults).await?;
            desk.program.run(&format!("DROP TABLE {table}")).await?;
        }
        let url = desk.program.url();
        let and = if url.contains('?') { '&' } else { '?' };
        for indexed in [false, true] {
            let url = format!("{url}{and}table={}", places::name("documents"));
            let store = store::open(&url).await?.store().clone();
            let layout = match indexed {
                true => {
                    Layout::plain().with_index(Path::new(["text"]), steelyard::record::Kind::Text)
                }
                false => Layout::plain(),
            };
            if store.prepare(&layout).await.is_err() {
                continue;
            }
            if store.put(&rows).await.is_ok() {
                let what = format!("documents (index: {indexed}), {length} of {letter}");
                sorted_in(&*store, &what, &rows, &mut faults).await?;
            }
            store.drop_table().await?;
        }
    }
    faults.done()
}

#[test]
fn long_texts_are_sorted_to_their_end() {
    each(|desk| async move { sorts(&desk).await });
}

/// Keys that are long, and compared otherwise than by their bytes.
async fn long_keys(desk: &Desk) -> Outcome {
    let declared = match desk.subject.driver() {
        "mysql" => "varchar(700) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
        "sqlite" => "varchar(700) COLLATE NOCASE",
        _ => "varchar(700)",
    };
    let table = places::name("long");
    desk.program.run(&format!("CREATE TABLE {table} (k {declared} PRIMARY KEY, v int)")).await?;
    let store = desk.open(&table, "").await?;
    let row = |n: i64| Row {
        key: Key::new(format!("{}{:04}", "\u{fc}".repeat(600), n * 7919 % 2000))
            .expect("not empty"),
        record: Document::from_iter([("v", Value::Int(n))]),
    };
    let mut rows: Vec<Row> = (0..2000).map(row).collect();
    // MySQL takes no keys of this length from steelyard.
    for rows in rows.chunks(200) {
        let values: Vec<_> = rows.iter().map(|r| format!("('{}', 1)", r.key)).collect();
        desk.program.run(&format!("INSERT INTO {table} VALUES {}", values.join(", "))).await?;
    }
    rows.sort_by(|a, b| a.key.cmp(&b.key));
    let begun = Instant::now();
    let got = scanned(&*store).await?;
    let took = begun.elapsed();
    println!("{}: {took:?}", desk.subject.name);
    ensure!(keys_of(&got) == keys_of(&rows), "{} in another order", got.len());
    // On a machine that does other things as well.
    ensure!(took < Duration::from_secs(10), "{took:?}");
    let some: Vec<Key> = rows.iter().map(|row| row.key.clone()).step_by(7).collect();
    let got = store.get(&some).await?;
    ensure!(got.iter().all(Option::is_some), "some are not found");
    Ok(())
}

#[test]
fn long_keys_are_in_order() {
    each(|desk| async move { long_keys(&desk).await });
}
