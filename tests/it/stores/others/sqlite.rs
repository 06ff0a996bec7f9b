//! What only files of SQLite have: other encodings, tables that are STRICT, text that is none.

use std::sync::Arc;

use steelyard::{
    record::{Document, Kind, Value},
    store::{
        self, Column, Filter, Key, Layout, Query, Row, Store,
        query::{Path, Test},
    },
};

use super::{Desk, each, found, scanned};
use crate::stores::places::{self, Outcome, ensure};

fn row(key: &str, value: Value) -> Row {
    Row { key: Key::new(key).expect("not empty"), record: Document::from_iter([("v", value)]) }
}

/// Texts of a file in UTF-16 have another order.
async fn encodings(desk: Arc<Desk>) -> Outcome {
    if desk.subject.driver() != "sqlite" {
        return Ok(());
    }
    for encoding in ["UTF-16le", "UTF-16be", "UTF-8"] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("db");
        let made = rusqlite::Connection::open(&path).and_then(|c| {
            c.execute_batch(&format!(
                "PRAGMA encoding = '{encoding}'; CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT); \
                 INSERT INTO t VALUES (1, '😀x'), (2, 'B'), (3, '€')"
            ))
        });
        ensure!(made.is_ok(), "{made:?}");
        let open = async |more: &str| -> Result<Arc<dyn Store>, places::Fault> {
            let url = format!("sqlite:{}?durability=t1{more}", path.display());
            Ok(store::open(&url).await?.store().clone())
        };
        let columns = open("&layout=columns&table=t").await?;
        let greater = Filter::Field(Path::new(["v"]), Test::Gt("a".into()));
        let own = open("&table=own").await?;
        let doc = [row("a", "x".into())];
        let layout =
            Layout::plain().with_columns(vec![Column { name: "v".into(), kind: Kind::Text }]);
        let done = [
            found(&*columns, &Query::new(greater.clone())).await.map(drop),
            scanned(&*columns).await.map(drop),
            columns.delete(&greater).await.map(drop),
            open("&table=t").await?.count().await.map(drop),
            own.prepare(&Layout::plain()).await,
            own.put(&doc).await,
            own.drop_table().await,
            open("&layout=columns&table=made").await?.prepare(&layout).await,
        ];
        for (i, done) in done.into_iter().enumerate() {
            match (encoding, done) {
                // It has no column of records.
                ("UTF-8", Err(_)) if i == 3 => {}
                ("UTF-8", Ok(())) => {}
                (_, Ok(())) if i == 6 => {}
                (_, Err(e)) if e.to_string().contains(encoding) && encoding != "UTF-8" => {}
                (_, done) => {
                    return Err(places::Fault::new(format_args!("{encoding} {i}: {done:?}")));
                }
            }
        }
    }
    Ok(())
}

#[test]
fn a_file_in_another_encoding_is_refused_by_name() {
    each(encodings);
}

/// A column of type ANY keeps what it is given where the table is STRICT.
async fn strict(desk: Arc<Desk>) -> Outcome {
    if desk.subject.driver() != "sqlite" {
        return Ok(());
    }
    let table = places::name("strict");
    let make = format!("CREATE TABLE {table} (k INTEGER PRIMARY KEY, v ANY) STRICT");
    desk.program.run(&make).await?;
    let store = desk.open(&table, "").await?;
    let values = [
        Value::from("5"),
        Value::Int(5),
        Value::Float(5.0),
        Value::from("5.0"),
        Value::from(" 5"),
        Value::Bytes(b"5".to_vec()),
        Value::from("x"),
    ];
    let rows: Vec<Row> = (1..).zip(values).map(|(n, v)| row(&n.to_string(), v)).collect();
    store.put(&rows).await?;
    for (row, got) in rows.iter().zip(scanned(&*store).await?) {
        ensure!(row.record.get("v") == got.record.get("v"), "{row:?} became {got:?}");
        let value = row.record.get("v").cloned().unwrap_or(Value::Null);
        let number = matches!(value, Value::Int(_) | Value::Float(_));
        let query = Query::new(Filter::Field(Path::new(["v"]), Test::Eq(value)));
        let found = found(&*store, &query).await?.len();
        ensure!(found == if number { 2 } else { 1 }, "{row:?}: {found} are found");
    }
    Ok(())
}

#[test]
fn what_a_strict_table_keeps_as_it_is_is_taken() {
    each(strict);
}

/// The number of a row is kept or given: SQLite would make one up, also for a row that has one.
async fn numbers_of_rows(desk: Arc<Desk>) -> Outcome {
    if desk.subject.driver() != "sqlite" {
        return Ok(());
    }
    let table = places::name("numbers");
    let make = format!(
        "CREATE TABLE {table} (id INTEGER PRIMARY KEY, code TEXT UNIQUE NOT NULL, v int); \
         INSERT INTO {table} VALUES (1, 'a', 1), (2, 'b', 2)"
    );
    desk.program.run(&make).await?;
    let store = desk.open(&table, "&key=code").await?;
    let before = scanned(&*store).await?;
    for key in ["a", "new"] {
        let done = store.put(&[row(key, Value::Int(9))]).await;
        let told = done.as_ref().err().map(ToString::to_string).unwrap_or_default();
        ensure!(told.contains("\"id\"") && told.contains(&format!("key \"{key}\"")), "{done:?}");
        ensure!(scanned(&*store).await? == before, "something was written");
    }
    let mut given = row("new", Value::Int(9));
    given.record.push("id", 7i64);
    store.put(&[given]).await?;
    ensure!(store.count().await? == 3, "it is not there");
    Ok(())
}

#[test]
fn a_row_gets_no_number_that_nobody_gave_it() {
    each(numbers_of_rows);
}

/// What is wrong in a column that is not asked for, or in a record of which nobody says which it is.
async fn broken(desk: Arc<Desk>) -> Outcome {
    if desk.subject.driver() != "sqlite" {
        return Ok(());
    }
    let table = places::name("broken");
    let insert = "(1, CAST(x'61ff' AS TEXT), 5), (2, 'b', 6)";
    let make = format!(
        "CREATE TABLE {table} (k INTEGER PRIMARY KEY, p TEXT, v int); INSERT INTO {table} VALUES {insert}"
    );
    desk.program.run(&make).await?;
    let store = desk.open(&table, "").await?;
    for filter in [Filter::All, Filter::Field(Path::new(["v"]), Test::Gt(Value::Int(1)))] {
        let only = |name: &str| Query {
            fields: Some(vec![name.to_owned()]),
            ..Query::new(filter.clone())
        };
        let rows = found(&*store, &only("v")).await?;
        ensure!(rows.len() == 2 && rows[0].record.len() == 1, "{rows:?}");
        let e = found(&*store, &only("p")).await.map(|rows| rows.len());
        let e = e.map_err(|e| e.to_string());
        ensure!(e.as_ref().is_err_and(|e| e.contains("key \"1\"") && e.contains("\"p\"")), "{e:?}");
    }
    for (body, what) in [("NULL", "NULL"), ("'{'", "JSON"), ("7", "number")] {
        // A number in a column of no type stays one.
        let table = places::name("broken");
        let make = format!(
            "CREATE TABLE {table} (k TEXT PRIMARY KEY, body); \
             INSERT INTO {table} VALUES ('a', '{{}}'), ('b', '{{\"v\": 1}}'), ('c', {body})"
        );
        desk.program.run(&make).await?;
        let url = format!("{}&layout=document&column=body&table={table}", desk.program.url());
        let store = store::open(&url).await?.store().clone();
        let fits = Filter::Field(Path::new(["v"]), Test::Gt(Value::Int(0)));
        let mut done =
            vec![scanned(&*store).await.map(drop), store.get(&[Key::new("c")?]).await.map(drop)];
        if what == "JSON" {
            done.push(found(&*store, &Query::new(fits.clone())).await.map(drop));
            done.push(store.delete(&fits).await.map(drop));
        }
        for done in done {
            let named = done.as_ref().err().is_some_and(|e| e.to_string().contains("key \"c\""));
            ensure!(named, "{what}: {done:?}");
        }
    }
    Ok(())
}

#[test]
fn what_is_broken_is_an_error_only_where_it_is_asked_for() {
    each(broken);
}

/// Virtual tables are tables; what they are made of, and what is SQLite's own, is none.
#[test]
fn tables_are_listed_without_views_and_what_is_internal() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("db");
    let program = rusqlite::Connection::open(&path).expect("a file");
    let made = program.execute_batch(
        "CREATE TABLE b (id INTEGER PRIMARY KEY AUTOINCREMENT, v TEXT UNIQUE); INSERT INTO b VALUES (1, 'x'); \
         CREATE TABLE \"C \"\"ü\" (v); CREATE TABLE sqliteX (v); CREATE TABLE \"\" (v); \
         CREATE TABLE gone (v); CREATE VIEW broken AS SELECT * FROM gone; DROP TABLE gone; \
         CREATE VIEW seen AS SELECT * FROM b; ANALYZE; CREATE VIRTUAL TABLE words USING fts5(v); \
         CREATE TABLE words_of_ours (v); CREATE TEMP TABLE passing (v)",
    );
    made.expect("tables");
    places::run(async {
        for layout in ["document", "columns", "blob"] {
            let url = format!("sqlite:{}?layout={layout}&table=own", path.display());
            let place = store::open(&url).await.expect("a place");
            let names = place.tables().await.expect("names");
            assert_eq!(names, ["C \"ü", "b", "sqliteX", "words", "words_of_ours"], "{layout}");
        }
    });
}
