//! What is said of a record that a rule of the table keeps out: the reason that the database gives, and the key.

use steelyard::{
    record::{Document, Value},
    store::{self, Key, Row},
};

use super::{Desk, Faults, each, scanned};
use crate::stores::{
    copies::copied_rows,
    places::{self, Outcome},
};

fn row(id: i64, fields: [(&str, Value); 4]) -> Row {
    let key = Key::new(id.to_string()).expect("not empty");
    Row { key, record: Document::from_iter(fields) }
}

/// What is wrong with a reason: it names the key and what the database names, each once.
fn wrong(reason: &str, key: &str, names: &str) -> Option<String> {
    let named = format!("key \"{key}\"");
    let times = |what: &str| reason.matches(what).count();
    let is_right = times(&named) == 1
        && times(names) >= 1
        && !reason.contains("taken by another")
        // Nothing is said twice.
        && reason.split(": ").all(|part| part.len() < 9 || times(part) == 1)
        && ["uplicate entry", "uplicate key", "violates", "foreign key constraint fails"]
            .into_iter()
            .all(|words| times(words) <= 1);
    (!is_right).then(|| format!("key {key}, {names}: {reason}"))
}

async fn refusals(desk: &Desk) -> Outcome {
    // SQLite does not name the foreign key.
    let parent = if desk.subject.driver() == "sqlite" { "FOREIGN KEY" } else { "_parent" };
    let (rules, parents) = (places::name("rules"), places::name("parents"));
    let make = format!(
        "CREATE TABLE {parents} (id int PRIMARY KEY); INSERT INTO {parents} VALUES (1); \
         CREATE TABLE {rules} (id int PRIMARY KEY, v int CHECK (v > 0), n varchar(9) NOT NULL, \
         u varchar(9) UNIQUE, p int, CONSTRAINT {rules}_parent FOREIGN KEY (p) REFERENCES {parents} (id))"
    );
    desk.program.run(&make).await?;
    let store = desk.open(&rules, "").await?;
    let good = |id: i64| -> [(&str, Value); 4] {
        [
            ("v", Value::Int(1)),
            ("n", "x".into()),
            ("u", format!("u{id}").into()),
            ("p", Value::Int(1)),
        ]
    };
    let with = |id: i64, name: &str, value: Value| {
        let mut fields = good(id);
        fields.iter_mut().filter(|field| field.0 == name).for_each(|field| field.1 = value.clone());
        row(id, fields)
    };
    let bad = [
        (with(3, "v", Value::Int(-1)), "v"),
        (with(5, "n", Value::Null), "n"),
        (with(7, "u", "u1".into()), "u"),
        (with(9, "p", Value::Int(8)), parent),
    ];
    let mut faults = Faults::default();
    for (n, (bad, names)) in bad.iter().enumerate() {
        // One by one, several, and many at once.
        for more in [0, 4, 100] {
            let mut rows = vec![row(1, good(1))];
            rows.extend((100..100 + more).map(|id| row(id, good(id))));
            rows.insert(rows.len() / 2 + 1, bad.clone());
            let key = bad.key.as_str();
            for how in ["put", "load", "put_each"] {
                store.delete(&store::Filter::All).await?;
                if more == 0 {
                    store.put(&[rows.remove(0)]).await?;
                }
                let before = scanned(&*store).await?;
                let done = match how {
                    "put" => store.put(&rows).await,
                    "load" => store.load(&rows).await,
                    _ => store.put_each(&rows).await,
                };
                match done {
                    Ok(()) => faults.push(format!("{n}: {how} took it")),
                    Err(e) => wrong(&e.chain(), key, names)
                        .into_iter()
                        .for_each(|fault| faults.push(format!("{how} of {more}: {fault}"))),
                }
                let is_whole = how == "put" && store.abilities().atomic;
                if is_whole && scanned(&*store).await? != before {
                    faults.push(format!("put of {more}: something was written"));
                }
                if more == 0 {
                    rows.insert(0, row(1, good(1)));
                }
            }
            for filled in [false, true] {
                store.delete(&store::Filter::All).await?;
                if filled {
                    store.put(&[row(1, good(1))]).await?;
                }
                let (copied, reasons) = copied_rows(&rows, &store, true).await?;
                if copied.counts.verified != copied.counts.written {
                    faults.push(format!("copy of {more}: {copied:?}"));
                }
                match &reasons[..] {
                    [reason] => wrong(reason, key, names)
                        .into_iter()
                        .for_each(|fault| faults.push(format!("copy of {more}: {fault}"))),
                    reasons => faults.push(format!("copy of {more}: {names}: {reasons:?}")),
                }
                let there = scanned(&*store).await?.len();
                if there != rows.len() - 1 {
                    faults.push(format!("copy of {more}: {there} are there of {}", rows.len()));
                }
            }
        }
    }
    faults.done()
}

#[test]
fn a_record_that_a_rule_keeps_out_is_named_with_the_reason_once() {
    each(|desk| async move { refusals(&desk).await });
}
