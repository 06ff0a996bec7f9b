//! Conditional writes into tables whose columns compare otherwise than by bytes, or that change what is written.

use std::slice;

use steelyard::{
    ErrorKind,
    record::{Document, Value},
    store::{Expected, Key, Row},
};

use super::{Desk, each, scanned};
use crate::stores::places::{self, Outcome, ensure};

fn row(key: &str, rev: &str) -> Row {
    let record = Document::from_iter([("rev", Value::from(rev))]);
    Row { key: Key::new(key).expect("not empty"), record }
}

/// Collations take texts and keys for one another; a revision is its bytes.
async fn collations(desk: &Desk) -> Outcome {
    let (before, text) = match desk.subject.driver() {
        "sqlite" => ("", "text COLLATE NOCASE"),
        "postgres" => (
            "CREATE COLLATION IF NOT EXISTS anycase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
            "text COLLATE anycase",
        ),
        _ => ("", "varchar(99) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"),
    };
    desk.program.once(before).await?;
    let exact = match desk.subject.driver() {
        "sqlite" => "text",
        "postgres" => "text COLLATE \"C\"",
        _ => "varchar(99) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    };
    for key in [exact, text] {
        let table = places::name("conditional");
        let make = format!("CREATE TABLE {table} (k {key} PRIMARY KEY, rev {text})");
        desk.program.run(&make).await?;
        desk.program.run(&format!("INSERT INTO {table} VALUES ('a', 'r')")).await?;
        let store = desk.open(&table, "").await?;
        let first = store.get(slice::from_ref(&row("a", "").key)).await?;
        let rev = |text: &str| Expected::field("rev", text);
        for other in ["R", "r ", "ŕ"] {
            match store.put_if(&row("a", "new"), &rev(other)).await {
                Ok(written) => ensure!(!written, "{key}: {other:?} is not the revision"),
                // Keys that it cannot tell it does not write.
                Err(e) => ensure!(e.kind() == ErrorKind::Unsupported, "{key}: {e}"),
            }
            let removed = store.remove_if(&row("a", "").key, &rev(other)).await?;
            ensure!(!removed, "{key}: {other:?} is not the revision, and it was removed");
        }
        // A key that the table takes for another is neither there nor absent.
        if key == text {
            for expected in [Expected::Absent, rev("r")] {
                let done = store.put_if(&row("A", "new"), &expected).await;
                let fits = match &done {
                    Ok(written) => !written && expected != Expected::Absent,
                    Err(e) => [ErrorKind::Conflict, ErrorKind::Unsupported].contains(&e.kind()),
                };
                ensure!(fits, "{key}: {expected:?}: {done:?}");
            }
            ensure!(!store.remove_if(&row("A", "").key, &rev("r")).await?, "{key}: A is not a");
        }
        let rows = scanned(&*store).await?;
        ensure!(rows.len() == 1 && Some(&rows[0].record) == first[0].as_ref(), "{key}: {rows:?}");
        match store.put_if(&row("a", "R"), &rev("r")).await {
            Ok(written) => {
                ensure!(written, "{key}: the right revision");
                ensure!(
                    store.remove_if(&row("a", "").key, &rev("R")).await?,
                    "{key}: the right one"
                );
            }
            Err(e) => ensure!(e.kind() == ErrorKind::Unsupported, "{key}: {e}"),
        }
        desk.program.run(&format!("DROP TABLE {table}")).await?;
    }
    Ok(())
}

#[test]
fn a_revision_is_its_bytes_whatever_the_collation() {
    each(|desk| async move { collations(&desk).await });
}

/// A key that is a field can be expected; another column that must be unique is an error, not an answer.
async fn uniques(desk: &Desk) -> Outcome {
    let text = match desk.subject.driver() {
        "mysql" => "varchar(99) COLLATE utf8mb4_bin",
        _ => "text",
    };
    let table = places::name("conditional");
    let make = format!("CREATE TABLE {table} (k {text} PRIMARY KEY, rev {text} UNIQUE)");
    desk.program.run(&make).await?;
    let store = desk.open(&table, "").await?;
    ensure!(store.put_if(&row("a", "1"), &Expected::Absent).await?, "the first");
    ensure!(store.put_if(&row("b", "2"), &Expected::Absent).await?, "the second");
    for (row, expected) in [
        (row("c", "1"), Expected::Absent),
        (row("b", "1"), Expected::field("rev", "2")),
        (row("b", "1"), Expected::field("k", "b")),
    ] {
        let done = store.put_if(&row, &expected).await;
        let is_conflict = done.as_ref().is_err_and(|e| e.kind() == ErrorKind::Conflict);
        ensure!(is_conflict, "{row:?} where {expected:?}: {done:?}");
    }
    ensure!(scanned(&*store).await?.len() == 2, "nothing was written");
    ensure!(!store.put_if(&row("a", "3"), &Expected::field("k", "b")).await?, "another key");
    ensure!(store.put_if(&row("a", "3"), &Expected::field("k", "a")).await?, "its own key");
    ensure!(store.remove_if(&row("a", "").key, &Expected::field("k", "a")).await?, "its own key");
    desk.program.run(&format!("DROP TABLE {table}")).await
}

#[test]
fn only_the_key_decides_whether_a_record_is_absent() {
    each(|desk| async move { uniques(&desk).await });
}
