//! Keys that are fields: records that are verified, columns by the name of the key, orders by a key.

use std::sync::Arc;

use steelyard::{
    record::Value,
    store::{
        Filter, Key, Query, Row,
        query::{Order, Path},
    },
};

use super::{Desk, Faults, each, found, keys_of, scanned};
use crate::stores::{
    copies::copied_rows,
    places::{self, Outcome, ensure},
};

fn row(key: &str, fields: &[(&str, Value)]) -> Row {
    let record = fields.iter().map(|(name, value)| (*name, value.clone())).collect();
    Row { key: Key::new(key).expect("not empty"), record }
}

/// A record that does not repeat its key as a field comes back with it.
async fn keys_that_are_fields(desk: Arc<Desk>) -> Outcome {
    for key in ["int", "bigint", "numeric(10, 0)", "varchar(9)"] {
        let table = places::name("verified");
        desk.program.run(&format!("CREATE TABLE {table} (id {key} PRIMARY KEY, v int)")).await?;
        let store = desk.open(&table, "").await?;
        let v = |n| ("v", Value::Int(n));
        let rows = [row("50", &[v(5)]), row("51", &[]), row("52", &[v(52)])];
        let (copied, _) = copied_rows(&rows, &store, true).await?;
        ensure!(copied.counts.verified == 3, "{key}: {copied:?}");
    }
    Ok(())
}

#[test]
fn a_copy_is_verified_where_the_key_comes_back_as_a_field() {
    each(keys_that_are_fields);
}

/// A column by the name that records have their key under: two fields would have it.
async fn named_as_keys_are(desk: Arc<Desk>) -> Outcome {
    let table = places::name("twice");
    desk.program
        .run(&format!(
            "CREATE TABLE {table} (id int PRIMARY KEY, _key varchar(9) UNIQUE NOT NULL, v int)"
        ))
        .await?;
    desk.program.run(&format!("INSERT INTO {table} VALUES (1, 'a', 5)")).await?;
    let store = desk.open(&table, "&key=id").await?;
    let one = row("1", &[("v", Value::Int(5))]);
    let said = [
        scanned(&*store).await.map(drop),
        store.get(std::slice::from_ref(&one.key)).await.map(drop),
        store.put(&[one]).await,
        store.count().await.map(drop),
    ];
    for done in said {
        let told = done.as_ref().err().is_some_and(|e| e.to_string().contains("\"_key\""));
        ensure!(told, "{done:?}");
    }
    // As the key it is one.
    let rows = scanned(&*desk.open(&table, "").await?).await?;
    ensure!(rows.len() == 1 && rows[0].key.as_str() == "a", "{rows:?}");
    Ok(())
}

#[test]
fn a_column_by_the_name_of_the_key_is_the_key_or_refused() {
    each(named_as_keys_are);
}

/// Keys that are numbers, as the fields that they are, too.
async fn orders(desk: Arc<Desk>) -> Outcome {
    let mut faults = Faults::default();
    for key in ["int", "bigint", "numeric(10, 0)"] {
        let table = places::name("orders");
        desk.program.run(&format!("CREATE TABLE {table} (id {key} PRIMARY KEY, v int)")).await?;
        let all: Vec<_> = (8..=112).map(|n| format!("({n}, {})", n % 2)).collect();
        desk.program.run(&format!("INSERT INTO {table} VALUES {}", all.join(", "))).await?;
        let store = desk.open(&table, "").await?;
        let rows = scanned(&*store).await?;
        let (id, v) = (Path::new(["id"]), Path::new(["v"]));
        for order in [Order::Ascending, Order::Descending] {
            let by = || Query::new(Filter::All);
            for query in [
                by().sorted(id.clone(), order),
                by().sorted(v.clone(), Order::Ascending).sorted(id.clone(), order),
                by().sorted(id.clone(), order).sorted(v.clone(), order),
            ] {
                for limit in [None, Some(5)] {
                    let query = Query { limit, ..query.clone() };
                    let mut want = rows.clone();
                    want.sort_by(|a, b| query.order(a, b));
                    want.truncate(limit.unwrap_or(1000) as usize);
                    let got = found(&*store, &query).await?;
                    if got != want {
                        let keys = keys_of(&got);
                        faults.push(format!("{key}: {:?} {limit:?}: {keys:?}", query.sort));
                    }
                }
            }
        }
    }
    faults.done()
}

#[test]
fn keys_that_are_numbers_sort_as_numbers_where_the_field_is_asked_for() {
    each(orders);
}
