//! What is refused says why, and which record it is; columns by a name that is the key's; orders by a key.

use std::sync::{Arc, Mutex, PoisonError};

use steelyard::{
    copy::{self, Copied, FromStore, Options, Reject, Source, Target, ToStore},
    marc::Trouble,
    record::Value,
    store::{
        self, Filter, Key, Query, Row, Store,
        query::{Order, Path},
    },
};
use tokio::runtime::Handle;

use super::{Desk, Faults, each, found, keys_of, scanned};
use crate::stores::places::{self, Fault, Outcome, ensure};

/// Keeps what is said of rejected records.
#[derive(Default, Clone)]
struct Reasons(Arc<Mutex<Vec<(Key, String)>>>);

impl copy::Follower for Reasons {
    fn counts(&mut self, _: &copy::Counts) {}
    fn trouble(&mut self, _: &Trouble) {}
    fn reject(&mut self, reject: &Reject) -> steelyard::Result<()> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push((reject.key.clone().expect("a store's"), reject.reason.clone()));
        Ok(())
    }
    fn rejected_bytes(&mut self) -> steelyard::Result<u64> {
        Ok(0)
    }
}

/// Copies records into a store, and reads them back.
async fn verified(
    rows: &[Row],
    to: &Arc<dyn Store>,
) -> Result<(Copied, Vec<(Key, String)>), Fault> {
    let from = store::open("memory:").await?.store().clone();
    from.prepare(&store::Layout::plain()).await?;
    from.put(rows).await?;
    let runtime = Handle::current();
    let from = FromStore { store: from, name: "source".into(), part: None, runtime };
    let to = ToStore {
        store: to.clone(),
        name: "target".into(),
        indexes: Vec::new(),
        batch: None,
        verify: true,
        journal: None,
        shared: false,
        runtime: Handle::current(),
    };
    let (source, target) = (Source::Store(from), Target::Store(Box::new(to)));
    let options = Options::new(source.form(), target.form());
    let reasons = Reasons::default();
    let mut follower = reasons.clone();
    let run = move || copy::copy(source, target, &options, &mut follower);
    let copied = tokio::task::spawn_blocking(run).await.expect("no panic")?;
    let reasons = reasons.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok((copied, reasons))
}

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
        let (copied, _) = verified(&rows, &store).await?;
        ensure!(copied.counts.verified == 3, "{key}: {copied:?}");
    }
    Ok(())
}

#[test]
fn a_copy_is_verified_where_the_key_comes_back_as_a_field() {
    each(keys_that_are_fields);
}

/// What a table's rules do not take is told by the rule, with the key and once.
async fn rules(desk: Arc<Desk>) -> Outcome {
    let mut faults = Faults::default();
    let (table, parent) = (places::name("rules"), places::name("parents"));
    let key = if desk.subject.driver() == "sqlite" { "integer" } else { "int" };
    for make in [
        format!("CREATE TABLE {parent} (id {key} PRIMARY KEY)"),
        format!("INSERT INTO {parent} VALUES (1)"),
        format!(
            "CREATE TABLE {table} (id {key} PRIMARY KEY, v int CHECK (v > 0), n varchar(9) NOT NULL, \
             u varchar(9) UNIQUE, p int, FOREIGN KEY (p) REFERENCES {parent} (id))"
        ),
        format!("INSERT INTO {table} VALUES (1, 1, 'a', 'x', 1)"),
    ] {
        desk.program.run(&make).await?;
    }
    let of = |key: &str, v: i64, n: Value, u: &str, p: i64| {
        let fields = [("v", Value::Int(v)), ("n", n), ("u", u.into()), ("p", Value::Int(p))];
        row(key, &fields)
    };
    let rows = [
        of("2", 1, "b".into(), "y", 1),
        of("3", 0, "b".into(), "y3", 1),
        of("4", 1, Value::Null, "y4", 1),
        of("5", 1, "b".into(), "x", 1),
        of("6", 1, "b".into(), "y6", 7),
    ];
    let store = desk.open(&table, "").await?;
    let before = scanned(&*store).await?;
    let is_bad = |row: &Row| row.key.as_str() > "2";
    let says = |said: &str, key: &Key| {
        said.matches(&format!("key \"{key}\"")).count() == 1 && !said.contains("taken by another")
    };
    let (copied, reasons) = verified(&rows, &store).await?;
    for (key, reason) in &reasons {
        if !says(reason, key) {
            faults.push(format!("copy, {key}: {reason}"));
        }
    }
    let bad = rows.iter().filter(|row| is_bad(row)).count() as u64;
    if (copied.counts.rejected, copied.counts.verified) != (bad, 1) {
        faults.push(format!("{copied:?}, {reasons:?}"));
    }
    store.remove(&[rows[0].key.clone()]).await?;
    // Servers tell it in their own words.
    if desk.subject.driver() != "sqlite" {
        return faults.done();
    }
    for bad in rows.iter().filter(|row| is_bad(row)) {
        for batch in [vec![bad.clone()], vec![rows[0].clone(), bad.clone()]] {
            let done = store.put(&batch).await;
            match done {
                Err(e) if says(&e.reason(), &bad.key) => {}
                Err(e) => faults.push(format!("put of {}: {}", batch.len(), e.reason())),
                Ok(()) => faults.push(format!("{} is taken", bad.key)),
            }
            ensure!(scanned(&*store).await? == before, "something was written");
        }
    }
    faults.done()
}

#[test]
fn what_a_rule_of_the_table_does_not_take_is_told_by_key_and_rule() {
    each(rules);
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
