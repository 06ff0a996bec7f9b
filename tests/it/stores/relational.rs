//! What a table is, said alike by all relational databases: the same mistake is the same kind of error in
//! the same words, and what one of them takes the others take, too.

use std::{fmt::Debug, slice, sync::Arc};

use futures_util::TryStreamExt;
use steelyard::{
    Error,
    record::{Kind, Time, Value},
    store::{
        Column, Filter, Key, KeyRange, Layout, Query, Row, Shape, Store, one_by_one,
        query::{Order, Path, Test},
    },
};

use super::places::{self, Fault, Fresh, Outcome, Subject, Wrap, ensure};

/// The drivers whose tables are those of a relational database.
const RELATIONAL: [&str; 3] = ["sqlite", "postgres", "mysql"];

/// Tries something on every relational database, in a layout.
#[track_caller]
fn each<F: Future<Output = Outcome>>(shape: Shape, attempt: impl Fn(Arc<Subject>) -> F) {
    let mut faults = Vec::new();
    let all = places::subjects(Wrap::Bare);
    for subject in all.into_iter().filter(|s| RELATIONAL.contains(&s.driver())) {
        if subject.shape() != shape {
            continue;
        }
        let subject = Arc::new(subject);
        if let Err(fault) = places::run(attempt(subject.clone())) {
            faults.push(format!("{}: {fault:?}", subject.name));
        }
    }
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

/// What came of something, without the names of driver and table.
fn said<T: Debug>(subject: &Subject, done: Result<T, Error>) -> String {
    let text = match done {
        Ok(done) => return format!("{done:?}"),
        Err(e) => format!("{:?}: {}", e.kind(), e.context()),
    };
    let mut out = String::new();
    for (i, part) in text.replace(subject.driver(), "DRIVER").split('"').enumerate() {
        let numbered = |name: &str| name.len() > 1 && name.bytes().all(|b| b.is_ascii_digit());
        let is_table = part.strip_prefix('t').is_some_and(|n| numbered(&format!("0{n}")));
        out += if i == 0 { "" } else { "\"" };
        out += if is_table { "TABLE" } else { part };
    }
    out
}

/// All that was not said as it should have been.
#[derive(Default)]
struct Faults(Vec<String>);

impl Faults {
    fn expect(&mut self, what: &str, found: String, want: &str) {
        if found != want {
            self.0.push(format!("\n  {what}:\n    said {found}\n    want {want}"));
        }
    }

    fn done(self) -> Outcome {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(Fault::new(self.0.concat())),
        }
    }
}

fn key(text: &str) -> Key {
    Key::new(text).expect("not empty")
}

fn row<const N: usize>(text: &str, fields: [(&str, Value); N]) -> Row {
    Row { key: key(text), record: fields.into_iter().collect() }
}

fn columns(all: &[(&str, Kind)]) -> Layout {
    let column = |(name, kind): &(&str, Kind)| Column { name: (*name).into(), kind: *kind };
    Layout::plain().with_columns(all.iter().map(column).collect())
}

fn path(text: &str) -> Path {
    text.parse().expect("a path")
}

async fn all(store: &dyn Store, query: &Query) -> steelyard::Result<Vec<Row>> {
    one_by_one(store.find(query).await?).try_collect().await
}

const USUAL: [(&str, Kind); 2] = [("n", Kind::Int), ("text", Kind::Text)];

/// What happens to a fresh table that is asked for so.
async fn asked(subject: &Subject, options: &str, layout: &Layout) -> Result<String, Fault> {
    let fresh = match subject.open(options).await {
        Ok(fresh) => fresh,
        Err(Fault(fault)) => return Ok(fault),
    };
    let text = said(subject, fresh.store.prepare(layout).await);
    if text != "()" {
        let count = said(subject, fresh.store.count().await);
        ensure!(count.starts_with("NotFound: "), "refused, and yet made: {text}, then {count}");
        return Ok(text);
    }
    fresh.done().await?;
    Ok(text)
}

async fn layouts(subject: &Subject) -> Outcome {
    let usual = columns(&USUAL);
    let on = |name: &str| usual.clone().with_index(path(name), Kind::Int);
    let mut faults = Faults::default();
    let no = |name: &str| {
        format!(
            "Invalid: table \"TABLE\" has no column \"{name}\" to make an index on; it has n, text"
        )
    };
    let with = |name: &str| columns(&[&USUAL[..], &[(name, Kind::Int)]].concat());
    let keyed = |kind| columns(&[("id", kind), ("n", Kind::Int)]);
    for (what, options, layout, want) in [
        ("an index on nothing", "", on("nope"), &*no("nope")),
        ("an index on a nested path", "", on("n.x"), &no("n.x")),
        ("an index on the key", "", on("_key"), "()"),
        ("an index twice", "", on("n").with_index(path("n"), Kind::Int), "()"),
        ("an index as of two kinds", "", on("n").with_index(path("n"), Kind::Text), "()"),
        (
            "an index on the key's column",
            "key=id",
            keyed(Kind::Int).with_index(path("id"), Kind::Int),
            "()",
        ),
        (
            "an index on another key's column",
            "key=id",
            keyed(Kind::Text).with_index(path("id"), Kind::Text),
            "()",
        ),
        (
            "no columns",
            "",
            Layout::plain(),
            "Invalid: layout columns needs the columns of the table",
        ),
        (
            "the key's column",
            "",
            with("_key"),
            "Invalid: field \"_key\" has the name of the key's column",
        ),
        ("a column twice", "", with("n"), "Invalid: column \"n\" is named twice"),
        (
            "an empty name",
            "",
            with(""),
            "Invalid: \"\" is not a valid column in DRIVER: it is empty",
        ),
        (
            "a NUL in a name",
            "",
            with("a\0"),
            "Invalid: \"a\\0\" is not a valid column in DRIVER: it has a NUL",
        ),
        (
            "a key that is no key",
            "key=id",
            keyed(Kind::Float),
            "Unsupported: field \"id\" holds a float, and is the key's column; a key is text or a \
             whole number",
        ),
    ] {
        faults.expect(what, asked(subject, options, &layout).await?, want);
    }
    for what in ["key", "column"] {
        let refused = subject.open(&format!("{what}=a%00")).await.map(drop);
        let text = refused.map_or_else(|Fault(fault)| fault, |()| "it was opened".into());
        let driver = subject.driver();
        let want = format!("\\\"a\\\\0\\\" is not a valid {what} in {driver}: it has a NUL");
        let plain = want.replace('\\', "");
        let said = text.replace('\\', "").contains(&plain);
        faults.expect(what, if said { String::new() } else { text }, "");
    }
    // A table that is there.
    let fresh = subject.open("").await?;
    let store = &*fresh.store;
    store.prepare(&on("n")).await?;
    for (what, layout, want) in [
        ("prepared again", on("n"), "()"),
        ("without columns", Layout::plain(), "()"),
        ("an index on nothing", on("nope"), &*no("nope")),
        ("an index on a nested path", on("n.x"), &no("n.x")),
        (
            "the key's column",
            with("_key"),
            "Invalid: field \"_key\" has the name of the key's column",
        ),
        ("one more column", with("more"), "Conflict: table \"TABLE\" has no column \"more\""),
        (
            "another kind",
            columns(&[("n", Kind::Text)]),
            "Conflict: column \"n\" of table \"TABLE\" holds int, not text",
        ),
        (
            "a kind of more digits",
            columns(&[("n", Kind::Decimal)]),
            "Conflict: column \"n\" of table \"TABLE\" holds int, not decimal",
        ),
    ] {
        faults.expect(what, said(subject, store.prepare(&layout).await), want);
    }
    faults.expect(
        "no parts",
        said(subject, store.split(0).await),
        "Invalid: no parts at all; one at least",
    );
    fresh.done().await?;
    faults.done()
}

/// What comes of rows that the table cannot hold: of `check`, `put` and `load` the same.
async fn refused(
    subject: &Subject,
    fresh: &Fresh,
    rows: &[(&str, Row, &str)],
    faults: &mut Faults,
) -> Outcome {
    let store = &*fresh.store;
    for (what, row, want) in rows {
        for (how, done) in [
            ("check", store.check(row)),
            ("put", store.put(slice::from_ref(row)).await),
            ("load", store.load(slice::from_ref(row)).await),
        ] {
            let found = said(subject, done);
            if found == "()" {
                store.remove(slice::from_ref(&row.key)).await?;
            }
            faults.expect(&format!("{what}, {how}"), found, want);
        }
    }
    Ok(())
}

async fn fields(subject: &Subject) -> Outcome {
    let fresh = subject.open("").await?;
    fresh.store.prepare(&columns(&USUAL)).await?;
    let mut faults = Faults::default();
    let one = || Value::Int(1);
    let rows = [
        (
            "unknown",
            row("k", [("n", one()), ("more", one())]),
            "Invalid: key \"k\": the table has no column for the field \"more\"",
        ),
        (
            "the key's column",
            row("k", [("_key", Value::from("k"))]),
            "Invalid: key \"k\": the table has no column for the field \"_key\"",
        ),
        (
            "twice",
            row("k", [("n", one()), ("text", Value::Null), ("n", Value::Int(2))]),
            "Invalid: key \"k\": field \"n\" occurs twice; keep one",
        ),
        (
            "another kind",
            row("k", [("n", Value::from("1"))]),
            "Invalid: key \"k\": field \"n\" is text, but its column holds int",
        ),
        (
            "a list",
            row("k", [("text", Value::List(vec![]))]),
            "Invalid: key \"k\": field \"text\" is a list, but its column holds text",
        ),
    ];
    refused(subject, &fresh, &rows, &mut faults).await?;
    fresh.done().await?;
    faults.done()
}

/// A key that is a field: of whole numbers, and of texts.
async fn keys_that_are_fields(subject: &Subject) -> Outcome {
    let mut faults = Faults::default();
    let (one, id) = (|| ("n", Value::Int(1)), |n| ("id", Value::Int(n)));
    let fresh = subject.open("key=id").await?;
    let store = &*fresh.store;
    store.prepare(&columns(&[("id", Kind::Int), ("n", Kind::Int)])).await?;
    let no_number = |key: &str| {
        format!("Invalid: key \"{key}\": it is not a whole number, but the key's column is")
    };
    let rows = [
        (
            "another number",
            row("7", [id(8), one()]),
            "Invalid: key \"7\": field \"id\" is the key's column, and holds another int",
        ),
        (
            "a text",
            row("7", [("id", Value::from("7"))]),
            "Invalid: key \"7\": field \"id\" is text, but its column holds int",
        ),
        (
            "twice",
            row("7", [id(7), one(), id(7)]),
            "Invalid: key \"7\": field \"id\" occurs twice; keep one",
        ),
        ("no number", row("x", [one()]), &*no_number("x")),
        ("not as it is written", row("07", [one()]), &no_number("07")),
        ("with a sign", row("+7", [one()]), &no_number("+7")),
        ("less than nothing", row("-0", [one()]), &no_number("-0")),
    ];
    refused(subject, &fresh, &rows, &mut faults).await?;
    let mut kept: Vec<Row> =
        (-5..=40).map(|n| row(&n.to_string(), [id(n), ("n", Value::Int(n * n))])).collect();
    store.put(&kept).await?;
    kept.sort_by(|a, b| a.key.cmp(&b.key));
    // The field is the key's, be it named or not.
    store.put(&[row("7", [("n", Value::Int(49))])]).await?;
    let found: Vec<Row> = store.scan(&KeyRange::all()).await?.try_concat().await?;
    ensure!(found == kept, "scanned {found:?} instead of {kept:?}");
    let odd = ["07", "7 ", "7.0", "x", "7"].map(key);
    let found = store.get(&odd).await?;
    let there: Vec<bool> = found.iter().map(Option::is_some).collect();
    ensure!(there == [false, false, false, false, true], "{there:?} of {odd:?}");
    let removed = store.remove(&odd[..4]).await?;
    ensure!(removed == 0, "{removed} removed by {odd:?}");
    let query = Query::new(Filter::Field(path("id"), Test::Ge(Value::Int(39))))
        .sorted(path("id"), Order::Descending);
    let found = said(subject, all(store, &query).await.map(|rows| rows.len()));
    faults.expect("found by the field", found, "2");
    // Keys are compared and sorted as texts, whatever the column is.
    for order in [Order::Ascending, Order::Descending] {
        let filter = Filter::Field(path("_key"), Test::Gt(Value::from("3")));
        let query = Query::new(filter).sorted(path("_key"), order);
        let mut want: Vec<Row> = kept.clone();
        want.retain(|row| query.matches(&row.key, &row.record));
        want.sort_by(|a, b| query.order(a, b));
        let found = all(store, &query).await?;
        ensure!(found == want, "{query:?} found {found:?} instead of {want:?}");
    }
    let parts = store.split(3).await?;
    let mut counts = Vec::new();
    for part in &parts {
        let rows: Vec<Row> = store.scan(part).await?.try_concat().await?;
        counts.push(rows.len());
    }
    ensure!(counts.iter().sum::<usize>() == 46, "{counts:?} in {parts:?}");
    fresh.done().await?;

    let fresh = subject.open("key=id").await?;
    fresh.store.prepare(&columns(&[("id", Kind::Text), ("n", Kind::Int)])).await?;
    let rows = [(
        "a number",
        row("7", [id(7)]),
        "Invalid: key \"7\": field \"id\" is an int, but its column holds text",
    )];
    refused(subject, &fresh, &rows, &mut faults).await?;
    let kept = row("07", [("id", Value::from("07")), one()]);
    fresh.store.put(slice::from_ref(&kept)).await?;
    let found = fresh.store.get(slice::from_ref(&kept.key)).await?;
    ensure!(found == [Some(kept.record)], "{found:?}");
    fresh.done().await?;
    faults.done()
}

async fn doubled_fields_of_documents(subject: &Subject) -> Outcome {
    let fresh = subject.open("").await?;
    fresh.store.prepare(&Layout::plain()).await?;
    let mut faults = Faults::default();
    let rows = [(
        "twice",
        row("k", [("n", Value::Int(1)), ("n", Value::Int(2))]),
        "Unsupported: key \"k\": field \"n\" occurs twice, and JSON stores keep only one",
    )];
    refused(subject, &fresh, &rows, &mut faults).await?;
    fresh.done().await?;
    faults.done()
}

/// Times with a fraction of a second and without are in their order.
async fn times(subject: &Subject) -> Outcome {
    let fresh = subject.open("").await?;
    let store = &*fresh.store;
    let layout = columns(&[("at", Kind::Time)]);
    store.prepare(&layout.with_index(path("at"), Kind::Time)).await?;
    let time = |s, n| Value::Time(Time::from_unix(s, n).expect("a time"));
    let moments = [(-1, 0), (-1, 999_999_000), (0, 0), (0, 1000), (0, 500_000_000), (1, 0)];
    let rows: Vec<Row> = moments
        .iter()
        .enumerate()
        .map(|(i, &(s, n))| row(&format!("k{i}"), [("at", time(s, n))]))
        .collect();
    store.put(&rows).await?;
    for &(s, n) in moments.iter().chain(&[(0, 1), (-1, 1)]) {
        for test in [Test::Eq, Test::Lt, Test::Le, Test::Gt, Test::Ge] {
            let filter = Filter::Field(path("at"), test(time(s, n)));
            let query = Query::new(filter).sorted(path("at"), Order::Descending);
            let want: Vec<&Key> = rows
                .iter()
                .rev()
                .filter(|row| query.matches(&row.key, &row.record))
                .map(|row| &row.key)
                .collect();
            let found = all(store, &query).await?;
            let found: Vec<&Key> = found.iter().map(|row| &row.key).collect();
            ensure!(found == want, "{found:?} instead of {want:?}: {:?}", query.filter);
        }
    }
    fresh.done().await
}

#[test]
fn layouts_are_taken_or_refused_in_the_same_words() {
    each(Shape::Columns, |subject| async move { layouts(&subject).await });
}

#[test]
fn fields_are_taken_or_refused_in_the_same_words() {
    each(Shape::Columns, |subject| async move { fields(&subject).await });
}

#[test]
fn a_key_that_is_a_field_is_the_same_everywhere() {
    each(Shape::Columns, |subject| async move { keys_that_are_fields(&subject).await });
}

#[test]
fn doubled_fields_of_documents_are_refused_in_the_same_words() {
    each(Shape::Document, |subject| async move { doubled_fields_of_documents(&subject).await });
}

#[test]
fn times_are_compared_as_times() {
    each(Shape::Columns, |subject| async move { times(&subject).await });
}
