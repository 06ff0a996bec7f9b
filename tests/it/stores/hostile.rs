//! What somebody may hand in who means ill or knows no better: each comes back as it was, or is
//! refused, and the store works as before.

use std::sync::Arc;

use futures_util::TryStreamExt;
use steelyard::{
    Error, ErrorKind,
    record::{Document, Value},
    store::{
        Filter, Key, KeyRange, Query, Row, Shape, Store, difference, one_by_one,
        query::{Path, Test},
    },
};

use super::{
    naive::Flaw,
    places::{self, Fault, Outcome, Subject, Wrap, ensure, layout},
};

const INJECTIONS: [&str; 12] = [
    "'; DROP TABLE records; --",
    "\" OR \"1\"=\"1",
    "x' OR '1'='1",
    "`; DELETE FROM t1; `",
    "\\'; DROP TABLE records; --",
    "$(touch /tmp/x)",
    "a\r\nset x 0 0 1\r\nb\r\n",
    "*2\r\n$8\r\nFLUSHALL\r\n",
    "%s%n%d",
    "{\"$gt\": \"\"}",
    "?1, ?2) --",
    "\u{202e}txt.exe",
];

const NAMES: [&str; 20] = [
    "",
    " ",
    "$gt",
    "$where",
    "a.b",
    ".",
    "a\0b",
    "_id",
    "_key",
    "_rev",
    "_value",
    "__proto__",
    "id",
    "key",
    "select",
    "a\nb",
    "%",
    "ключ",
    "-",
    "1",
];

const KEYS: [&str; 24] = [
    "k\0k",
    "\0",
    "a\r\nb",
    "\r\n",
    "\n",
    "\t",
    " ",
    "  k",
    "..",
    ".",
    "/",
    "a/../b",
    "../../x",
    "\\",
    "*",
    "?",
    "%00",
    "%2F",
    "CON",
    "_design/x",
    "_all_docs",
    "-h",
    "\u{feff}",
    "\u{10ffff}",
];

const TABLES: [&str; 16] = [
    "", " ", "a'b", "a\"b", "a`b", "a\\b", "a.b", "a/b", "../x", "..", "a\0b", "größe", "😀",
    "select", "a b", "-x",
];

/// The row, unless it is refused; what is neither is a fault.
async fn either(store: &dyn Store, row: &Row) -> Result<bool, Fault> {
    match store.put(std::slice::from_ref(row)).await {
        Err(e) => refused(&e, &row.key.shown()).map(|()| false),
        Ok(()) => {
            let found = store.get(std::slice::from_ref(&row.key)).await?;
            let [Some(found)] = &*found else {
                return Err(Fault::new(format_args!("put, but not there: {}", row.key.shown())));
            };
            let difference = difference(&row.record, found, store.abilities().keeps);
            ensure!(difference.is_none(), "{}: {difference:?}", row.key.shown());
            Ok(true)
        }
    }
}

#[track_caller]
fn refused(error: &Error, what: &str) -> Outcome {
    use ErrorKind::{Invalid, TooLarge, Unsupported};
    match [Invalid, TooLarge, Unsupported].contains(&error.kind()) {
        true => Ok(()),
        false => Err(Fault::new(format_args!("{what}: {error:?}"))),
    }
}

fn key(text: impl Into<String>) -> Key {
    Key::new(text.into()).expect("not empty")
}

fn row(text: impl Into<String>, name: &str, value: impl Into<Value>) -> Row {
    Row { key: key(text), record: Document::from_iter([(name, value)]) }
}

fn usual() -> Row {
    row("usual", "text", "as ever")
}

/// A store for rows like this one, with the usual row in it; none where it has no such layout.
async fn fresh(subject: &Subject, like: &Row) -> Result<Option<places::Fresh>, Fault> {
    let fresh = subject.open("").await?;
    let mut both = usual().record;
    for (name, value) in like.record.iter().filter(|(name, _)| *name != "text") {
        both.push(name, value.clone());
    }
    let like = Row { key: key("like"), record: both };
    let layout = match layout(fresh.store.shape(), &[like]) {
        Ok(layout) => layout,
        Err(_) => return Ok(None),
    };
    match fresh.store.prepare(&layout).await {
        Ok(()) => {}
        Err(e) if fresh.store.shape() == Shape::Columns => {
            refused(&e, "columns").map(|()| None::<()>)?;
            return Ok(None);
        }
        Err(e) => return Err(e.into()),
    }
    fresh.store.put(&[usual()]).await?;
    Ok(Some(fresh))
}

/// The usual row is there, alone or with this many others.
async fn works(store: &dyn Store, others: usize) -> Outcome {
    ensure!(either(store, &usual()).await?, "the usual row is refused");
    match store.scan(&KeyRange::all()).await {
        Err(e) => ensure!(e.kind() == ErrorKind::Unsupported, "{e:?}"),
        Ok(rows) => {
            let rows: Vec<Row> = one_by_one(rows).try_collect().await?;
            ensure!(rows.len() == 1 + others, "{} rows, not {}", rows.len(), 1 + others);
            ensure!(rows.contains(&usual()), "the usual row is not as it was");
        }
    }
    Ok(())
}

/// Puts each row, looks for it in every way, and deletes it. Rows that are alike lie in the same
/// columns.
async fn there_and_back(subject: &Subject, rows: Vec<Row>, alike: bool) -> Outcome {
    let mut shared = None;
    for row in &rows {
        if shared.is_none() {
            shared = fresh(subject, row).await?;
        }
        let Some(fresh) = &shared else { continue };
        through(&*fresh.store, row)
            .await
            .map_err(|fault| Fault(format!("{}: {fault:?}", row.key.shown())))?;
        if subject.shape() == Shape::Columns && !alike {
            shared.take().expect("it is there").done().await?;
        }
    }
    match shared {
        Some(fresh) => fresh.done().await,
        None => Ok(()),
    }
}

async fn through(store: &dyn Store, row: &Row) -> Outcome {
    let range = KeyRange { from: Some(row.key.clone()), until: None };
    if either(store, row).await? {
        works(store, 1).await?;
        for (name, value) in row.record.iter().filter(|(name, value)| {
            // Of a field that is there twice, the first counts.
            let first = row.record.get(name) == Some(*value);
            !name.is_empty() && first && matches!(value, Value::Text(_) | Value::Int(_))
        }) {
            let filter = Filter::Field(Path::new([name]), Test::Eq(value.clone()));
            let query = Query::new(filter);
            // A field that is named as the key is not to be asked for.
            if name == Path::KEY || store.abilities().can(&query).is_err() {
                continue;
            }
            let found = match store.find(&query).await {
                Ok(found) => one_by_one(found).try_collect::<Vec<Row>>().await,
                Err(e) => Err(e),
            };
            match found {
                // It may be held, but not looked for.
                Err(e) => of_kind(&e, ErrorKind::Unsupported)?,
                Ok(found) => {
                    let keys: Vec<_> = found.iter().map(|row| &row.key).collect();
                    ensure!(keys == [&row.key], "{query:?} found {keys:?}");
                }
            }
        }
        let removed = store.remove(std::slice::from_ref(&row.key)).await?;
        ensure!(removed == 1, "{removed} removed for {}", row.key.shown());
    } else {
        match store.remove(std::slice::from_ref(&row.key)).await {
            Ok(n) => ensure!(n == 0, "refused, and there: {}", row.key.shown()),
            Err(e) => refused(&e, "remove")?,
        }
    }
    // Looking for one that is not there, and maybe cannot be, is no harm.
    match store.get(std::slice::from_ref(&row.key)).await {
        Ok(found) => ensure!(found == [None], "{}: {found:?}", row.key.shown()),
        Err(e) => refused(&e, "get")?,
    }
    let from = match store.scan(&range).await {
        Ok(rows) => one_by_one(rows).try_collect::<Vec<Row>>().await,
        Err(e) => Err(e),
    };
    match from {
        Err(e) => refused(&e, "scan")?,
        Ok(rows) => {
            let want = usize::from(range.contains(&usual().key));
            ensure!(rows.len() == want, "{} rows from there on, not {want}", rows.len());
        }
    }
    works(store, 0).await
}

fn of_kind(error: &Error, kind: ErrorKind) -> Outcome {
    ensure!(error.kind() == kind, "{error:?}");
    Ok(())
}

async fn names_and_values(subject: Arc<Subject>) -> Outcome {
    let rows = INJECTIONS.iter().map(|text| row(*text, "v", *text)).collect();
    there_and_back(&subject, rows, true).await?;
    let long = ["n".repeat(300), "ñ".repeat(2000)];
    let names = NAMES.iter().copied().chain(INJECTIONS).chain(long.iter().map(|n| &**n));
    let rows = names.enumerate().map(|(i, name)| row(format!("name {i}"), name, "value")).collect();
    there_and_back(&subject, rows, false).await?;
    // Names that some take for one.
    let pairs = [("a", "A"), ("é", "e\u{301}"), ("a", "a "), ("twice", "twice")];
    let of = |(one, other)| {
        let mut record = Document::from_iter([(one, 1i64)]);
        record.push(other, 2i64);
        Row { key: key(format!("{one} and {other}")), record }
    };
    there_and_back(&subject, pairs.map(of).into(), false).await
}

async fn keys(subject: Arc<Subject>) -> Outcome {
    let long = ["k".repeat(10 << 10), "😀".repeat(50), "ü".repeat(600)];
    let texts = KEYS.iter().copied().chain(INJECTIONS).chain(long.iter().map(|k| &**k));
    let rows = texts.map(|text| row(text, "v", 1i64)).collect();
    there_and_back(&subject, rows, true).await
}

async fn values(subject: Arc<Subject>) -> Outcome {
    let odd: [(&str, Value); 8] = [
        ("", "a\0b".into()),
        ("", "\0".into()),
        ("", Value::Text("x\n".repeat(500_000))),
        ("", Value::Int(i64::MIN)),
        ("NaN", Value::Float(f64::NAN)),
        ("infinities", Value::Float(f64::INFINITY)),
        ("infinities", Value::Float(f64::NEG_INFINITY)),
        ("minus zero", Value::Float(-0.0)),
    ];
    for (word, value) in odd {
        let one = row("k", "v", value);
        let Some(fresh) = fresh(&subject, &one).await? else { continue };
        let store = &*fresh.store;
        // What is declared to be lost may be.
        let lost = !word.is_empty() && store.abilities().loses.contains(word);
        match either(store, &one).await {
            Err(_) if lost => works(store, 1).await?,
            kept => works(store, usize::from(kept?)).await?,
        }
        fresh.done().await?;
    }
    Ok(())
}

fn nested(levels: usize, list: bool) -> Value {
    (0..levels).fold(Value::Int(1), |inner, _| match list {
        true => Value::List(vec![inner]),
        false => Document::from_iter([("a", inner)]).into(),
    })
}

async fn shapes_and_sizes(subject: Arc<Subject>) -> Outcome {
    let wide: Document = (0..3000).map(|i| (format!("f{i}"), Value::Int(i))).collect();
    let large = "wörter ".repeat((17 << 20) / 8);
    for one in [
        row("k", "v", nested(100, false)),
        row("k", "v", nested(100, true)),
        Row { key: key("k"), record: wide },
        Row { key: key("k"), record: Document::new() },
        row("k", "v", Value::Text(large)),
        row("k", "v", Value::Bytes(vec![0xff; 17 << 20])),
    ] {
        let Some(fresh) = fresh(&subject, &one).await? else { continue };
        let kept = either(&*fresh.store, &one).await?;
        if kept {
            fresh.store.remove(&[one.key]).await?;
        }
        works(&*fresh.store, 0).await?;
        fresh.done().await?;
    }
    Ok(())
}

async fn tables(subject: Arc<Subject>) -> Outcome {
    let fresh = subject.ready(&[usual()]).await?;
    fresh.store.put(&[usual()]).await?;
    let long = ["t".repeat(64), "t".repeat(300), "t".repeat(70_000)];
    let mut made: Vec<(&str, Arc<dyn Store>)> = Vec::new();
    for name in TABLES.iter().copied().chain(INJECTIONS).chain(long.iter().map(|n| &**n)) {
        let in_table = |fault: Fault| Fault(format!("table {name:?}: {fault:?}"));
        let table = match fresh.store.table(name) {
            Ok(table) => table,
            Err(e) => {
                refused(&e, name)?;
                continue;
            }
        };
        match table.prepare(&layout(table.shape(), &[usual()])?).await {
            Err(e) => refused(&e, name)?,
            Ok(()) => {
                // Each has a row of its own under the same key.
                table.put(&[usual(), row("own", "text", name)]).await?;
                works(&*table, 1).await.map_err(in_table)?;
                made.push((name, table));
            }
        }
        works(&*fresh.store, 0).await.map_err(in_table)?;
    }
    for (name, table) in &made {
        let own = table.get(&[key("own")]).await?;
        let want = [Some(row("own", "text", *name).record)];
        ensure!(own == want, "table {name:?} has what is another's: {own:?}");
    }
    for (name, table) in &made {
        match table.drop_table().await {
            Err(e) => refused(&e, name)?,
            Ok(()) => works(&*fresh.store, 0).await?,
        }
    }
    fresh.done().await
}

async fn questions(subject: Arc<Subject>) -> Outcome {
    let fresh = subject.ready(&[usual()]).await?;
    let store = &*fresh.store;
    store.put(&[usual()]).await?;
    let many: Vec<Key> =
        (0..10_000).map(|i| key(format!("many{i}"))).chain([key("usual")]).collect();
    let found = store.get(&many).await?;
    ensure!(found.len() == many.len() && found[10_000].is_some(), "{} answers", found.len());
    ensure!(found.iter().flatten().count() == 1, "more than one of 10,000 is there");
    ensure!(store.remove(&many[..10_000]).await? == 0, "none of these was there");
    let any = |values: Vec<Value>| Filter::field("_key", Test::In(values)).map(Query::new);
    let text = |text: &str| Filter::field("text", Test::Eq(text.into()));
    let deep = (0..60).try_fold(text("as ever")?, |f, _| Ok::<_, Fault>(Filter::Or(vec![f])))?;
    let mut asked = vec![
        (any(many.iter().map(|key| Value::from(&**key)).collect())?, 1),
        (any(Vec::new())?, 0),
        (Query::new(deep), 1),
        (Query::new(Filter::field("text", Test::Prefix("x".repeat(100_000)))?), 0),
        (Query::new(Filter::Or(Vec::new())), 0),
        (Query::new(text(&"x".repeat(1 << 20))?), 0),
    ];
    for injection in INJECTIONS {
        asked.push((Query::new(text(injection)?), 0));
        asked.push((Query::new(Filter::field("text", Test::Prefix(injection.into()))?), 0));
        asked.push((any(vec![injection.into()])?, 0));
        let path = Path::new([injection]);
        asked.push((Query::new(Filter::Field(path, Test::Eq("as ever".into()))), 0));
    }
    for (query, want) in asked {
        let found = match store.find(&query).await {
            Ok(rows) => one_by_one(rows).try_collect::<Vec<Row>>().await,
            Err(e) => Err(e),
        };
        match found {
            Ok(rows) => ensure!(rows.len() == want, "{} rows, not {want}: {query:?}", rows.len()),
            Err(e) => refused(&e, "find")?,
        }
        works(store, 0).await?;
    }
    fresh.done().await
}

#[test]
fn names_and_values_of_fields() {
    places::each(Wrap::Bare, names_and_values);
}

#[test]
fn keys_of_all_kinds() {
    places::each(Wrap::Bare, keys);
}

#[test]
fn keys_of_all_kinds_in_all_wrappers() {
    places::each(Wrap::All, keys);
}

#[test]
fn values_that_are_hard_to_hold() {
    places::each(Wrap::Bare, values);
}

#[test]
fn deep_wide_empty_and_large_records() {
    places::each(Wrap::Bare, shapes_and_sizes);
}

#[test]
fn names_of_tables() {
    places::each(Wrap::Bare, tables);
}

#[test]
fn large_and_crooked_questions() {
    places::each(Wrap::Bare, questions);
}

#[test]
fn a_store_of_another_make_stands_it() {
    places::run(async {
        let naive = || Arc::new(Subject::naive(Flaw::None));
        names_and_values(naive()).await?;
        keys(naive()).await?;
        values(naive()).await?;
        shapes_and_sizes(naive()).await?;
        tables(naive()).await?;
        questions(naive()).await
    })
    .unwrap();
}

#[test]
fn flaws_are_found() {
    let flawed = |flaw| Arc::new(Subject::naive(flaw));
    assert!(places::run(tables(flawed(Flaw::OneTable))).is_err());
    assert!(places::run(questions(flawed(Flaw::CountsKeys))).is_err());
    assert!(places::run(keys(flawed(Flaw::SkipsMissing))).is_err());
    assert!(places::run(names_and_values(flawed(Flaw::Trims))).is_err());
}
