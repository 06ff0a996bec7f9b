//! Conditional writes: a record is written or deleted if what is under its key is as expected, and of several who expect the
//! same one succeeds.

use std::{
    slice,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::try_join_all;
use steelyard::{
    Error, ErrorKind,
    record::{Document, Value},
    store::{Expected, Key, Row, Store, blocking},
};

use super::{
    Fault, Outcome, Subject, Wrap, ensure, expect_error, get_one, has, key, limits, of_kind,
};

/// A record with a revision.
pub fn row(text: &str, n: i64, rev: &str) -> Row {
    let fields = [("n", Value::Int(n)), ("rev", Value::from(rev)), ("text", Value::from("some"))];
    Row { key: key(text), record: Document::from_iter(fields) }
}

fn rev(text: &str) -> Expected {
    Expected::field("rev", text)
}

/// What a store without conditional writes answers.
async fn undeclared(store: &dyn Store) -> Outcome {
    let some = row("a", 1, "r1");
    store.put(slice::from_ref(&some)).await?;
    for expected in [Expected::Absent, rev("r1")] {
        let put = store.put_if(&row("b", 2, "r2"), &expected).await;
        of_kind(&expect_error(put, "put_if")?, &[ErrorKind::Unsupported])?;
        let removed = store.remove_if(&some.key, &expected).await;
        let error = expect_error(removed, "remove_if")?;
        of_kind(&error, &[ErrorKind::Unsupported])?;
        ensure!(error.to_string().contains("conditional writes"), "{error}");
    }
    has(store, &[some]).await
}

/// A fresh store, if it has conditional writes; else it was seen that it says so.
async fn ready(subject: &Subject) -> Result<Option<super::super::places::Fresh>, Fault> {
    let fresh = subject.ready(&[row("a", 1, "r1")]).await?;
    if fresh.store.abilities().conditional {
        return Ok(Some(fresh));
    }
    undeclared(&*fresh.store).await?;
    fresh.done().await?;
    Ok(None)
}

pub async fn writes(subject: &Subject) -> Outcome {
    let Some(fresh) = ready(subject).await? else { return Ok(()) };
    let store = &*fresh.store;
    let first = row("a", 1, "r1");
    ensure!(!store.put_if(&first, &rev("r1")).await?, "written over what is not there");
    has(store, &[]).await?;
    ensure!(store.put_if(&first, &Expected::Absent).await?, "not written where there was none");
    has(store, slice::from_ref(&first)).await?;
    let other = row("a", 2, "r2");
    ensure!(!store.put_if(&other, &Expected::Absent).await?, "written over what is there");
    let beside = row("b", 7, "r1");
    ensure!(store.put_if(&beside, &Expected::Absent).await?, "another key is free");
    for wrong in [rev("r2"), rev(""), rev("r1\u{1}"), Expected::field("text", "r1")] {
        ensure!(!store.put_if(&other, &wrong).await?, "written where {wrong:?}");
    }
    for (name, text) in [("other", "x"), ("other", ""), ("REV", "r1"), ("_key", "a")] {
        let wrong = Expected::field(name, text);
        ensure!(!store.put_if(&other, &wrong).await?, "a field {name:?} that is not there");
    }
    has(store, &[first.clone(), beside.clone()]).await?;
    // The same again is written, too.
    ensure!(store.put_if(&first, &rev("r1")).await?, "the same record again");
    ensure!(store.put_if(&other, &Expected::field("text", "some")).await?, "by another field");
    has(store, &[other.clone(), beside.clone()]).await?;
    // In place of what was there, and none of its fields stays.
    let less = Row { key: key("a"), record: Document::from_iter([("n", Value::Int(3))]) };
    ensure!(blocking(store.put_if(&less, &rev("r2"))).await?, "the right revision, in the thread");
    has(store, &[less.clone(), beside.clone()]).await?;
    for missing in [rev("r2"), rev(""), rev("null")] {
        ensure!(!store.put_if(&other, &missing).await?, "a record without the field: {missing:?}");
    }
    // What cannot be held is refused, whatever is there.
    for bad in limits::refused(store) {
        for expected in [Expected::Absent, rev("r1")] {
            let error = expect_error(store.put_if(&bad, &expected).await, "a record too large")?;
            of_kind(&error, &limits::REFUSED)?;
        }
    }
    has(store, &[less, beside]).await?;
    fresh.done().await
}

pub async fn removes(subject: &Subject) -> Outcome {
    let Some(fresh) = ready(subject).await? else { return Ok(()) };
    let store = &*fresh.store;
    let (some, beside) = (row("a", 1, "r1"), row("b", 2, "r1"));
    for expected in [Expected::Absent, rev("r1")] {
        ensure!(!store.remove_if(&some.key, &expected).await?, "removed what is not there");
    }
    store.put(&[some.clone(), beside.clone()]).await?;
    let wrong = [
        Expected::Absent,
        rev("r2"),
        rev("R1"),
        rev("r1 "),
        Expected::field("n", "1"),
        Expected::field("other", "r1"),
    ];
    for expected in wrong {
        ensure!(!store.remove_if(&some.key, &expected).await?, "removed where {expected:?}");
    }
    has(store, &[some.clone(), beside.clone()]).await?;
    // What was deleted is as absent as what never was; in some stores it leaves a trace.
    for round in 0..3 {
        let removed = blocking(store.remove_if(&some.key, &rev("r1"))).await?;
        ensure!(removed, "round {round}: the right revision");
        has(store, slice::from_ref(&beside)).await?;
        ensure!(!store.remove_if(&some.key, &rev("r1")).await?, "round {round}: it is gone");
        ensure!(!store.put_if(&some, &rev("r1")).await?, "round {round}: it is gone");
        ensure!(store.put_if(&some, &Expected::Absent).await?, "round {round}: it is absent");
        has(store, &[some.clone(), beside.clone()]).await?;
    }
    let long = Key::new("k".repeat(store.abilities().max_key.min(1 << 16) + 1))?;
    match store.remove_if(&long, &rev("r1")).await {
        Ok(removed) => ensure!(!removed, "removed by a key that cannot be"),
        Err(e) => of_kind(&e, &limits::REFUSED)?,
    }
    fresh.done().await
}

/// Texts that some stores take for one another.
const ALIKE: [&[&str]; 9] = [
    &["a", "A", "a ", " a", "a  ", "a\t", "a\n", "á", "a\u{301}", "à", "\u{200b}a", "ａ", ""],
    &["ß", "ss", "ẞ", "SS"],
    &["ı", "i", "İ", "I", "i\u{307}"],
    &["1", "01", "1.0", "1e0", "+1", "true"],
    &["null", "NULL", "\"null\"", "{}", "[]"],
    &["\u{ff5e}", "~", "😀", "😁", "\u{fffd}"],
    &["a%", "a_", "a*", "a?", "ab", "a\\", "a\\\\"],
    &["it's", "it''s", "it\"s", "$1", "?", "-- ", "');"],
    &["2026-11-25T07:00:00Z", "2026-11-25T07:00:00.000Z", "2026-11-25 07:00:00"],
];

pub async fn texts(subject: &Subject) -> Outcome {
    let Some(fresh) = ready(subject).await? else { return Ok(()) };
    let store = &*fresh.store;
    let long = |end: &str| ["x".repeat(5000), end.into()].concat();
    let long = [long("a"), long("b"), long("")];
    let long: Vec<&str> = long.iter().map(String::as_str).collect();
    // Wrappers change nothing of it.
    let groups = ALIKE.iter().copied().chain([&long[..]]);
    for group in groups.take(if subject.wrap == Wrap::Bare { usize::MAX } else { 1 }) {
        for text in group {
            let (is, next) = (row("a", 1, text), row("a", 2, text));
            store.put(slice::from_ref(&is)).await?;
            for other in group.iter().filter(|other| *other != text) {
                ensure!(!store.put_if(&next, &rev(other)).await?, "{other:?} is not {text:?}");
                let removed = store.remove_if(&is.key, &rev(other)).await?;
                ensure!(!removed, "{other:?} is not {text:?}, and it was removed");
            }
            ensure!(store.put_if(&next, &rev(text)).await?, "{text:?} is {text:?}");
            has(store, slice::from_ref(&next)).await?;
            ensure!(store.remove_if(&is.key, &rev(text)).await?, "{text:?} is {text:?}");
        }
    }
    fresh.done().await
}

/// A field of another kind is no text, whatever its text would be.
pub async fn kinds(subject: &Subject) -> Outcome {
    // Wrappers change nothing of it.
    if subject.wrap != Wrap::Bare {
        return Ok(());
    }
    let map = Document::from_iter([("a", 1)]);
    let (mut tried, mut declared) = (0, true);
    for (value, text) in [
        (Value::Int(7), "7"),
        (Value::Bool(true), "true"),
        (Value::Bool(true), "1"),
        (Value::Float(1.5), "1.5"),
        (Value::Null, ""),
        (Value::Null, "null"),
        (Value::Bytes(b"7".to_vec()), "7"),
        (Value::List(vec!["7".into()]), "7"),
        (Value::List(vec!["7".into()]), "[\"7\"]"),
        (Value::Map(map), "{\"a\":1}"),
        (Value::Decimal("1.50".into()), "1.50"),
        (Value::BigInt("18446744073709551616".into()), "18446744073709551616"),
        (Value::Time("2026-11-25T07:00:00Z".parse()?), "2026-11-25T07:00:00Z"),
    ] {
        let record = Document::from_iter([("n", Value::Int(1)), ("rev", value.clone())]);
        let is = Row { key: key("a"), record };
        let Ok(fresh) = subject.ready(slice::from_ref(&is)).await else { continue };
        let store = &*fresh.store;
        declared = store.abilities().conditional;
        if declared && store.put(slice::from_ref(&is)).await.is_ok() {
            tried += 1;
            let found = get_one(store, &is.key).await?;
            // Some stores keep it as a text.
            let fits = rev(text).fits(found.as_ref());
            let next = Row { key: key("a"), record: Document::from_iter([("n", Value::Int(2))]) };
            let written = store.put_if(&next, &rev(text)).await?;
            ensure!(written == fits, "{value:?} is {text:?}: {written}, and is read as {found:?}");
            if !fits {
                let removed = store.remove_if(&is.key, &rev(text)).await?;
                ensure!(!removed, "{value:?} is {text:?}, and it was removed");
                ensure!(get_one(store, &is.key).await? == found, "{value:?} was changed");
            }
        }
        fresh.done().await?;
    }
    ensure!(tried > 4 || !declared, "{tried} values of other kinds could be kept");
    Ok(())
}

/// How many write at once.
const WRITERS: usize = 8;

/// Several who expect the same: one of them succeeds.
pub async fn writers(subject: &Subject) -> Outcome {
    let Some(fresh) = ready(subject).await? else { return Ok(()) };
    for round in 0..3 {
        let key = format!("wanted{round}");
        let one = |n: usize| {
            let (store, row) = (fresh.store.clone(), row(&key, n as i64, &format!("r{n}")));
            tokio::spawn(async move {
                let written = store.put_if(&row, &Expected::Absent).await?;
                Ok::<_, Error>(written.then_some(row))
            })
        };
        let done = try_join_all((0..WRITERS).map(one)).await.map_err(Fault::new)?;
        let won: Vec<Row> =
            done.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
        ensure!(won.len() == 1, "{} of {WRITERS} have written the first", won.len());
        let found = get_one(&*fresh.store, &won[0].key).await?;
        ensure!(found.as_ref() == Some(&won[0].record), "{found:?} instead of {:?}", won[0]);
        let expected = rev(won[0].record.get("rev").and_then(Value::as_str).unwrap_or_default());
        let one = |_| {
            let (store, key, expected) =
                (fresh.store.clone(), won[0].key.clone(), expected.clone());
            tokio::spawn(async move { store.remove_if(&key, &expected).await })
        };
        let done = try_join_all((0..WRITERS).map(one)).await.map_err(Fault::new)?;
        let removed = done.into_iter().collect::<Result<Vec<_>, _>>()?;
        let removed = removed.into_iter().filter(|removed| *removed).count();
        ensure!(removed == 1, "{removed} of {WRITERS} have removed one record");
    }
    let total = match (subject.wrap, subject.driver()) {
        // Each of their writes takes milliseconds, and all but one of eight are in vain.
        (Wrap::Bare, "couchdb" | "mongodb") => 160,
        (Wrap::Bare, _) => 800,
        _ => 40,
    };
    let stores = vec![fresh.store.clone(); WRITERS];
    increments(&stores, total).await?;
    fresh.done().await
}

/// Each of these increments one number, by turns as it comes, until all together have done so this often: each time it
/// reads the record, and writes the next if the revision is the same still. How long that took.
pub async fn increments(stores: &[Arc<dyn Store>], total: usize) -> Result<Duration, Fault> {
    let begin = Instant::now();
    let first = row("counter", 0, "first");
    ensure!(stores[0].put_if(&first, &Expected::Absent).await?, "the first is not written");
    let one = |(n, store): (usize, &Arc<dyn Store>)| {
        let share = total / stores.len() + usize::from(n < total % stores.len());
        let store = store.clone();
        tokio::spawn(async move {
            for _ in 0..share {
                increment(&*store, &key("counter")).await?;
            }
            Ok::<(), Fault>(())
        })
    };
    for done in try_join_all(stores.iter().enumerate().map(one)).await.map_err(Fault::new)? {
        done?;
    }
    let found = get_one(&*stores[0], &first.key).await?;
    let n = found.as_ref().and_then(|found| found.get("n").cloned());
    ensure!(n == Some(Value::Int(total as i64)), "{n:?} after {total} increments");
    Ok(begin.elapsed())
}

/// One increment.
pub async fn increment(store: &dyn Store, of: &Key) -> Outcome {
    loop {
        let Some(found) = get_one(store, of).await? else {
            return Err(Fault::new("the record is gone"));
        };
        let (Some(Value::Int(n)), Some(Value::Text(revision))) = (found.get("n"), found.get("rev"))
        else {
            return Err(Fault::new(format_args!("{found:?} is not a counter")));
        };
        let next = row(of, n + 1, &Key::fresh());
        if store.put_if(&next, &rev(revision)).await? {
            return Ok(());
        }
    }
}
