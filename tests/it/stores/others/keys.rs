//! Keys in columns of any type, and columns whose values are no keys.

use std::slice;

use steelyard::{
    record::{Document, Value},
    store::{
        Expected, Filter, Key, Query, Row, Store,
        query::{Path, Test},
    },
};

use super::{Desk, Faults, each, found, keys_of, scanned, types};
use crate::stores::places::{self, Outcome, ensure};

/// Other texts that a column may take for this key.
fn variants(key: &Key) -> Vec<Key> {
    let text = key.as_str();
    let all = [
        // Many sets of characters have no such one.
        "漢".into(),
        text.to_uppercase(),
        text.to_lowercase(),
        format!("{text} "),
        format!("0{text}"),
        format!("{text}.0"),
        text.trim_end().to_owned(),
        format!("{text}x"),
        "1".into(),
        "new".into(),
    ];
    all.into_iter()
        .filter(|text| !text.is_empty())
        .map(|text| Key::new(text).expect("not empty"))
        .collect()
}

fn record(key: &Key, like: &Document, n: i64) -> Document {
    // The key's column is a field as well.
    let own = match like.get("k") {
        Some(Value::Int(_) | Value::BigInt(_)) => {
            key.parse().map_or(Value::from(key.as_str()), Value::from_integer)
        }
        _ => Value::from(key.as_str()),
    };
    Document::from_iter([("k", own), ("n", Value::Int(n))])
}

/// What is said of the rows as they should be: by scans, by keys, by conditions on the key.
async fn agree(store: &dyn Store, rows: &[Row]) -> Result<(), String> {
    let text = |e: steelyard::Error| e.to_string();
    let keys: Vec<Key> = rows.iter().map(|row| row.key.clone()).collect();
    if !keys.windows(2).all(|pair| pair[0] < pair[1]) {
        return Err(format!("keys not in order, or twice: {keys:?}"));
    }
    let count = store.count().await.map_err(text)?;
    if count != rows.len() as u64 {
        return Err(format!("{count} counted of {}", rows.len()));
    }
    let many = store.get(&keys).await.map_err(text)?;
    for (row, many) in rows.iter().zip(many) {
        let one = store.get(slice::from_ref(&row.key)).await.map_err(text)?;
        if one != [Some(row.record.clone())] || many.as_ref() != Some(&row.record) {
            return Err(format!("get {:?} gave {one:?} and, among others, {many:?}", row.key));
        }
        for other in variants(&row.key) {
            let want = rows.iter().find(|row| row.key == other).map(|row| row.record.clone());
            let got = store.get(slice::from_ref(&other)).await.map_err(text)?;
            if got != [want] {
                return Err(format!("get {other:?} gave {got:?}"));
            }
        }
        let with = Value::from(row.key.as_str());
        let start = row.key.chars().take(1).collect();
        for test in [Test::Eq(with.clone()), Test::Ge(with), Test::Prefix(start)] {
            let query = Query::new(Filter::Field(Path::new([Path::KEY]), test));
            let mut got = found(store, &query).await.map_err(text)?;
            got.sort_by(|a, b| a.key.cmp(&b.key));
            let fits = |row: &&Row| query.matches(&row.key, &row.record);
            let want: Vec<&Row> = rows.iter().filter(fits).collect();
            if got.iter().ne(want.iter().copied()) {
                return Err(format!("{:?} found {:?}", query.filter, keys_of(&got)));
            }
        }
    }
    Ok(())
}

/// Each key and its number.
fn shown(rows: &[Row]) -> Vec<(&str, Option<&Value>)> {
    rows.iter().map(|row| (row.key.as_str(), row.record.get("n"))).collect()
}

/// A record under another key leaves those that are there as they are, or is refused. How many were taken.
async fn written(store: &dyn Store, rows: &[Row]) -> Result<u32, String> {
    let text = |e: steelyard::Error| e.to_string();
    let (mut taken, mut turn) = (0, 0);
    for row in rows {
        for key in variants(&row.key) {
            if rows.iter().any(|row| row.key == key) {
                continue;
            }
            let new = Row { record: record(&key, &row.record, 99), key: key.clone() };
            let mut with: Vec<Row> = rows.to_vec();
            with.push(new.clone());
            with.sort_by(|a, b| a.key.cmp(&b.key));
            // Each way of writing in its turn: a write is a sync.
            turn += 1;
            let ways = ["load", "put_each", "put with its like", "put_if"];
            for how in ["put", ways[turn % ways.len()]] {
                let batch = [new.clone(), row.clone()];
                let done = match how {
                    "put" => store.put(slice::from_ref(&new)).await,
                    "load" => store.load(slice::from_ref(&new)).await,
                    "put_each" => store.put_each(slice::from_ref(&new)).await,
                    "put_if" => match store.put_if(&new, &Expected::Absent).await {
                        Ok(false) => return Err(format!("put_if finds a record of {key:?}")),
                        done => done.map(drop),
                    },
                    _ => store.put(&batch).await,
                };
                let now = scanned(store).await.map_err(text)?;
                let want = if done.is_ok() { &with[..] } else { rows };
                if now != want {
                    return Err(format!(
                        "{how} {key:?} ({done:?}) left {:?} of {:?}",
                        shown(&now),
                        shown(rows)
                    ));
                }
                if done.is_ok() {
                    taken += 1;
                    let removed = store.remove(slice::from_ref(&key)).await.map_err(text)?;
                    let now = scanned(store).await.map_err(text)?;
                    if removed != 1 || now != rows {
                        return Err(format!("removed {removed} by {key:?}, which left {now:?}"));
                    }
                }
            }
            let removed = store.remove(slice::from_ref(&key)).await.map_err(text)?;
            if removed != 0 || scanned(store).await.map_err(text)? != rows {
                return Err(format!("{key:?} is not there, and {removed} removed by it"));
            }
        }
        // One that is there is replaced.
        let changed = Row { record: record(&row.key, &row.record, 7), ..row.clone() };
        if store.put(slice::from_ref(&changed)).await.is_ok() {
            let got = store.get(slice::from_ref(&row.key)).await.map_err(text)?;
            if got != [Some(changed.record)] {
                return Err(format!("put {:?}, and got {got:?}", row.key));
            }
            store.put(slice::from_ref(row)).await.map_err(text)?;
        }
    }
    Ok(taken)
}

/// Values that are no keys in any column: with them a table is refused, or its keys are what they are.
const ODD: [&str; 10] = [
    "''",
    "x''",
    "x'616263'",
    "1.5",
    "'1.5'",
    "9e18",
    "1e300",
    "9e999",
    "'5x'",
    "9007199254740993",
];

/// A table whose keys are of this type, and how many rows it took; none where no key can be of it.
async fn filled(desk: &Desk, declared: &str, literals: &[&str]) -> Option<(String, usize)> {
    let table = places::name("others");
    let make = format!("CREATE TABLE {table} (k {declared} PRIMARY KEY, n int)");
    desk.program.run(&make).await.ok()?;
    let mut count = 0;
    for (n, literal) in literals.iter().enumerate() {
        // What the column takes for one that it has is not there twice.
        let insert = format!("INSERT INTO {table} VALUES ({literal}, {n})");
        count += usize::from(desk.program.run(&insert).await.is_ok());
    }
    Some((table, count))
}

async fn types_of_keys(desk: &Desk) -> Outcome {
    let (types, first) = types::of(desk.subject.driver());
    desk.program.once(first).await?;
    let mut faults = Faults::default();
    let (mut read, mut wrote) = (0, 0);
    for (declared, literals) in types {
        let usual: Vec<&str> = literals.iter().copied().filter(|l| !ODD.contains(l)).collect();
        for literals in [literals, &usual[..]] {
            let Some((table, count)) = filled(desk, declared, literals).await else { continue };
            let store = desk.open(&table, "").await?;
            match scanned(&*store).await {
                Err(e) if e.to_string().contains("\"k\"") => {}
                Err(e) => faults.push(format!("{declared}: not by name: {e}")),
                Ok(rows) if rows.len() != count => {
                    faults.push(format!("{declared}: {} rows of {count}", rows.len()));
                }
                Ok(rows) => {
                    read += 1;
                    if let Err(fault) = agree(&*store, &rows).await {
                        faults.push(format!("{declared}: {fault}"));
                    }
                    match written(&*store, &rows).await {
                        Err(fault) => faults.push(format!("{declared}: {fault}")),
                        Ok(n) => wrote += usize::from(n > 0),
                    }
                }
            }
            desk.program.run(&format!("DROP TABLE {table}")).await?;
        }
    }
    println!("{}: {read} tables are read, {wrote} of them written", desk.subject.name);
    if read < 10 || wrote < 5 {
        faults.push(format!("of {} types {read} are read, {wrote} written", types.len()));
    }
    faults.done()
}

#[test]
fn a_key_of_any_type_is_refused_or_is_itself_alone() {
    each(|desk| async move { types_of_keys(&desk).await });
}

/// A table that is no table of keys in one way or another, made by these statements. With `None` it is refused,
/// naming the column; else it has so many records, which can be written where that is true.
struct Made {
    what: &'static str,
    table: &'static str,
    statements: &'static str,
    records: Option<(usize, bool)>,
}

const fn made(
    what: &'static str,
    table: &'static str,
    statements: &'static str,
    records: Option<(usize, bool)>,
) -> Made {
    Made { what, table, statements, records }
}

/// `k` is what the URL names as the key of each.
const MADE: &[Made] = &[
    made(
        "twice the same",
        "u_twice",
        "CREATE TABLE u_twice (k varchar(9), n int); \
         INSERT INTO u_twice VALUES ('a', 1), ('b', 2), ('a', 3)",
        None,
    ),
    made(
        "NULL",
        "u_null",
        "CREATE TABLE u_null (k varchar(9), n int); INSERT INTO u_null VALUES ('a', 1), (NULL, 2)",
        None,
    ),
    made(
        "NULL in a unique index",
        "u_null_index",
        "CREATE TABLE u_null_index (k varchar(9) UNIQUE, n int); \
         INSERT INTO u_null_index VALUES ('a', 1), (NULL, 2)",
        None,
    ),
    made(
        "each once, as it happens",
        "u_once",
        "CREATE TABLE u_once (k varchar(9), n int); INSERT INTO u_once VALUES ('a', 1), ('b', 2)",
        Some((2, false)),
    ),
    made(
        "a unique index",
        "u_index",
        "CREATE TABLE u_index (id int PRIMARY KEY DEFAULT 7, k varchar(9) NOT NULL, n int); \
         CREATE UNIQUE INDEX u_index_k ON u_index (k); INSERT INTO u_index VALUES (1, 'a', 1), (2, 'b', 2)",
        Some((2, true)),
    ),
    made(
        "half of a primary key, twice the same",
        "u_half",
        "CREATE TABLE u_half (k varchar(9), m int, n int, PRIMARY KEY (k, m)); \
         INSERT INTO u_half VALUES ('a', 1, 1), ('a', 2, 2)",
        None,
    ),
    made(
        "half of a primary key, each once",
        "u_half_once",
        "CREATE TABLE u_half_once (k varchar(9), m int, n int, PRIMARY KEY (k, m)); \
         INSERT INTO u_half_once VALUES ('a', 1, 1), ('b', 1, 2)",
        Some((2, false)),
    ),
    made(
        "a view",
        "u_view",
        "CREATE TABLE u_of (k varchar(9) PRIMARY KEY, n int); INSERT INTO u_of VALUES ('a', 1), ('b', 2); \
         CREATE VIEW u_view AS SELECT k, n FROM u_of",
        Some((2, false)),
    ),
    made(
        "a view with each twice",
        "u_view_twice",
        "CREATE VIEW u_view_twice AS SELECT k, n FROM u_of UNION ALL SELECT k, n FROM u_of",
        None,
    ),
];

const MADE_POSTGRES: &[Made] = &[
    made(
        "a table and one that inherits it, with the same key",
        "u_parent",
        "CREATE TABLE u_parent (k varchar(9) PRIMARY KEY, n int); CREATE TABLE u_child () INHERITS (u_parent); \
         INSERT INTO u_parent VALUES ('a', 1); INSERT INTO u_child VALUES ('a', 2)",
        None,
    ),
    made(
        "a unique index of some rows",
        "u_some",
        "CREATE TABLE u_some (k varchar(9), n int); CREATE UNIQUE INDEX ON u_some (k) WHERE n > 5; \
         INSERT INTO u_some VALUES ('a', 1), ('a', 2)",
        None,
    ),
    made(
        "a partitioned table",
        "u_parts",
        "CREATE TABLE u_parts (k varchar(9) PRIMARY KEY, n int) PARTITION BY HASH (k); \
         CREATE TABLE u_parts_0 PARTITION OF u_parts FOR VALUES WITH (MODULUS 1, REMAINDER 0); \
         INSERT INTO u_parts VALUES ('a', 1), ('b', 2)",
        Some((2, true)),
    ),
];

const MADE_SQLITE: &[Made] = &[made(
    "5 and '5', which are two values and one key",
    "u_five",
    "CREATE TABLE u_five (k PRIMARY KEY NOT NULL, n int); INSERT INTO u_five VALUES (5, 1), ('5', 2)",
    None,
)];

async fn uniqueness(desk: &Desk) -> Outcome {
    let own = match desk.subject.driver() {
        "postgres" => MADE_POSTGRES,
        "sqlite" => MADE_SQLITE,
        _ => &[],
    };
    let mut faults = Faults::default();
    for Made { what, table, statements, records } in MADE.iter().chain(own) {
        desk.program.run(statements).await?;
        let store = desk.open(table, "&key=k").await?;
        match (scanned(&*store).await, records) {
            (Err(e), None) if e.to_string().contains("\"k\"") => continue,
            (Ok(rows), Some((count, _))) if rows.len() == *count => {
                if let Err(fault) = agree(&*store, &rows).await {
                    faults.push(format!("{what}: {fault}"));
                }
            }
            (found, _) => {
                faults.push(format!("{what}: {:?}", found.map(|rows| rows.len())));
                continue;
            }
        }
        let new = Key::new("new").expect("not empty");
        let record = Document::from_iter([("id", Value::Int(7)), ("n", Value::Int(9))]);
        let mut row = Row { record, key: new.clone() };
        if *table != "u_index" {
            row.record = Document::from_iter([("n", Value::Int(9))]);
        }
        let is_written = store.put(slice::from_ref(&row)).await;
        match (&is_written, records.is_some_and(|(_, writes)| writes)) {
            (Ok(()), true) => {}
            (Err(e), false) if e.to_string().contains("\"k\"") => {}
            _ => faults.push(format!("{what}: put: {is_written:?}")),
        }
    }
    faults.done()
}

#[test]
fn a_column_is_the_key_only_where_no_two_rows_have_the_same_in_it() {
    each(|desk| async move { uniqueness(&desk).await });
}

/// Another unique column must not make a new record overwrite an old one.
async fn other_unique_columns(desk: &Desk) -> Outcome {
    desk.program
        .run(
            "CREATE TABLE mails (k varchar(9) PRIMARY KEY, mail varchar(9) UNIQUE, n int); \
             INSERT INTO mails VALUES ('a', 'a@x', 1), ('b', 'b@x', 2)",
        )
        .await?;
    let store = desk.open("mails", "").await?;
    unique_columns_in(&*store).await?;
    if desk.subject.driver() == "sqlite" {
        for does in ["REPLACE", "IGNORE"] {
            let table = format!("mails_{does}");
            let make = format!(
                "CREATE TABLE {table} (k TEXT PRIMARY KEY, mail TEXT UNIQUE ON CONFLICT {does}, n int); \
                 INSERT INTO {table} VALUES ('a', 'a@x', 1), ('b', 'b@x', 2)"
            );
            desk.program.run(&make).await?;
            unique_columns_in(&*desk.open(&table, "").await?).await?;
        }
    }
    Ok(())
}

async fn unique_columns_in(store: &dyn Store) -> Outcome {
    let before = scanned(store).await?;
    let row = |key: &str, mail: &str| Row {
        key: Key::new(key).expect("not empty"),
        record: Document::from_iter([
            ("k", Value::from(key)),
            ("mail", Value::from(mail)),
            ("n", Value::Int(9)),
        ]),
    };
    for batch in
        [vec![row("c", "a@x")], vec![row("d", "d@x"), row("c", "b@x")], vec![row("b", "a@x")]]
    {
        let done = store.put(&batch).await;
        let after = scanned(store).await?;
        ensure!(done.is_err() && after == before, "{batch:?}: {done:?} left {after:?}");
    }
    store.put(&[row("c", "c@x"), row("b", "b@x")]).await?;
    let after = scanned(store).await?;
    ensure!(after.len() == 3 && after[0] == before[0], "{after:?}");
    Ok(())
}

#[test]
fn another_unique_column_never_makes_one_record_overwrite_another() {
    each(|desk| async move { other_unique_columns(&desk).await });
}

/// The primary key is such a column, too, where the key is another.
async fn primary_key_beside(desk: &Desk) -> Outcome {
    let number =
        if desk.subject.driver() == "postgres" { "numeric(9, 2)" } else { "decimal(9, 2)" };
    let mut faults = Faults::default();
    for declared in ["int", number, "varchar(9)"] {
        let table = places::name("beside");
        let make = format!(
            "CREATE TABLE {table} (id {declared} PRIMARY KEY, code varchar(9) UNIQUE, other int UNIQUE, v int); \
             INSERT INTO {table} VALUES (1, 'a', 11, 1), (2, 'b', 12, 2), (3, 'z', 13, 3)"
        );
        desk.program.run(&make).await?;
        let store = desk.open(&table, "&key=code").await?;
        let rows = scanned(&*store).await?;
        let id = |n: usize| rows[n].record.get("id").cloned().unwrap_or(Value::Null);
        store.remove(&[Key::new("z").expect("not empty")]).await?;
        let before = scanned(&*store).await?;
        let row = |code: &str, id: Value, other: Option<i64>| Row {
            key: Key::new(code).expect("not empty"),
            record: Document::from_iter([
                ("code", Value::from(code)),
                ("id", id),
                ("other", other.map_or(Value::Null, Value::Int)),
                ("v", Value::Int(9)),
            ]),
        };
        for batch in [
            vec![row("a", id(1), None)],
            vec![row("a", id(1), Some(11))],
            vec![row("a", id(0), Some(12))],
            vec![row("new", id(0), None)],
            // The last of them alone would be well.
            vec![row("a", id(1), None), row("a", id(0), Some(11))],
            vec![row("a", id(1), None), row("c", id(2), None)],
        ] {
            for each in [false, true] {
                let done = match each {
                    false => store.put(&batch).await,
                    true => store.put_each(&batch).await,
                };
                let after = scanned(&*store).await?;
                let last = batch.last().expect("not empty");
                // Of records of one key the last alone is there, in stores that look at that first.
                let is_last = done.is_ok()
                    && batch.iter().all(|row| row.key == last.key)
                    && after.len() == before.len()
                    && after[1] == before[1]
                    && after[0].record.get("v") == last.record.get("v");
                if !(done.is_err() && after == before || is_last && batch.len() > 1) {
                    faults.push(format!("{declared}: {batch:?}: {done:?} left {after:?}"));
                }
                store.remove(&[Key::new("c").expect("not empty")]).await?;
                if after != before {
                    store.put(&before).await?;
                }
            }
        }
        // What is no other's is taken.
        store.put(&[row("a", id(2), Some(12 + 9)), row("b", id(1), Some(12))]).await?;
        let after = scanned(&*store).await?;
        if after.len() != 2 || after[0].record.get("id") != Some(&id(2)) {
            faults.push(format!("{declared}: left {after:?}"));
        }
    }
    faults.done()
}

#[test]
fn a_primary_key_beside_the_key_never_makes_one_record_overwrite_another() {
    each(|desk| async move { primary_key_beside(&desk).await });
}
