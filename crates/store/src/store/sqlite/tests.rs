//! What is special about SQLite; what every store does, the contract suite tests.

use std::{sync::Arc, time::Duration};

use futures_util::TryStreamExt;
use rusqlite::Connection;

use super::pool::{Pool, Settings};
use crate::{
    ErrorKind, Result,
    durability::Tier,
    record::{Document, Kind, Value},
    store::{
        Column, Filter, Key, KeyRange, Layout, Place, Query, Row, blocking, open, query::Order,
    },
};

fn row(key: &str, record: Document) -> Row {
    Row { key: Key::new(key).unwrap(), record }
}

fn people(n: u64) -> Vec<Row> {
    let person = |n| crate::record::dataset::Dataset::People.document(1, n).unwrap();
    (0..n)
        .map(|n| {
            let record = person(n);
            Row { key: Key::of(&record, "key").unwrap(), record }
        })
        .collect()
}

async fn all(place: &Place, query: &Query) -> Vec<Row> {
    place.find(query).await.unwrap().try_concat().await.unwrap()
}

#[tokio::test]
async fn queries_use_the_index_and_keep_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("p.db").display());
    let place = open(&url).await.unwrap();
    let layout = Layout::plain().with_index("age".parse().unwrap(), Kind::Int);
    place.prepare(&layout).await.unwrap();
    let rows = people(30_000);
    place.load(&rows).await.unwrap();
    assert_eq!(place.load(&rows[..1]).await.unwrap_err().kind(), ErrorKind::Conflict);
    let old = Query::new("age>=50".parse().unwrap());
    let sorted = old.clone().sorted("birthdate".parse().unwrap(), Order::Descending);
    let mut want: Vec<Row> =
        rows.iter().filter(|r| old.matches(&r.key, &r.record)).cloned().collect();
    want.sort_by(|a, b| sorted.order(a, b));
    let keys = |rows: Vec<Row>| rows.into_iter().map(|row| row.key).collect::<Vec<_>>();
    let want = keys(want);
    assert!(want.len() as u64 > super::AT_ONCE, "both ways are taken");
    assert_eq!(keys(all(&place, &sorted).await), want);
    assert_eq!(keys(all(&place, &sorted.clone().limited(1000)).await), want[..1000]);

    let connection = Connection::open(folder.path().join("p.db")).unwrap();
    let plan: String = connection
        .query_row(
            "EXPLAIN QUERY PLAN SELECT record FROM records WHERE json_extract(\"record\", '$.\"age\"') >= 90",
            [],
            |row| row.get(3),
        )
        .unwrap();
    assert!(plan.contains("records_age"), "{plan}");
}

#[tokio::test]
async fn a_put_in_the_middle_of_a_stream_waits_for_nobody() {
    let read_and_write = async || {
        let place = open("sqlite::memory:?pool=1").await.unwrap();
        place.prepare(&Layout::plain()).await.unwrap();
        place.load(&people(5_000)).await.unwrap();
        let mut seen = 0;
        let mut rows = place.scan(&KeyRange::all()).await.unwrap();
        while let Some(batch) = rows.try_next().await.unwrap() {
            seen += batch.len();
            place.put(&batch[..1]).await.unwrap();
        }
        assert_eq!(seen, 5_000);
    };
    read_and_write().await;
    blocking(read_and_write()).await;
}

#[tokio::test]
async fn text_that_is_not_utf8_is_told_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let made = "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT); \
                INSERT INTO t VALUES (1, 'well'), (2, CAST(x'ff41' AS TEXT))";
    Connection::open(&path).unwrap().execute_batch(made).unwrap();
    let url = format!("sqlite:{}?layout=columns&table=t", path.display());
    let place = open(&url).await.unwrap();
    let rows: Result<Vec<Row>> = place.scan(&KeyRange::all()).await.unwrap().try_concat().await;
    let error = rows.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed);
    assert!(
        error.to_string().contains("key \"2\": field \"name\" holds text that is not UTF-8"),
        "{error}"
    );
}

/// A statement without end, as a connection of the pool.
async fn endless(pool: &Arc<Pool>) -> Result<i64> {
    let numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) \
                   SELECT count(*) FROM n";
    pool.run(|connection| connection.query_row(numbers, [], |row| row.get(0))).await
}

#[tokio::test]
async fn what_takes_too_long_is_interrupted_in_either_thread_and_what_follows_is_not() {
    let (path, timeout) = (String::new(), Duration::from_millis(200));
    let pool = Arc::new(Pool::new(Settings { path, tier: None, timeout, cache: None }, 1));
    for _ in 0..2 {
        for late in [endless(&pool).await, blocking(endless(&pool)).await] {
            let error = late.unwrap_err();
            assert!(error.is_timeout(), "{error}");
            assert!(error.to_string().contains("within 0.2 s"), "{error}");
        }
        let one = |c: &mut Connection| c.query_row("SELECT 1", [], |row| row.get::<_, i64>(0));
        assert_eq!(pool.run(one).await.unwrap(), 1);
        assert_eq!(blocking(pool.run(one)).await.unwrap(), 1);
    }
}

#[tokio::test]
async fn all_connections_share_the_cache_they_are_given() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db").to_str().unwrap().to_owned();
    for (cache, size, kib) in [(None, 4, 16_384), (Some(4 << 20), 4, 1024), (Some(10), 2, 1)] {
        let timeout = Duration::from_secs(1);
        let settings = Settings { path: path.clone(), tier: None, timeout, cache };
        let pool = Arc::new(Pool::new(settings, size));
        let told =
            |c: &mut Connection| c.query_row("PRAGMA cache_size", [], |row| row.get::<_, i64>(0));
        pool.make().await.unwrap();
        assert_eq!(pool.run(told).await.unwrap(), -kib);
    }
    let url = format!("sqlite:{path}?cache=much");
    assert!(open(&url).await.map(drop).unwrap_err().to_string().contains("?cache=much"));
}

#[tokio::test]
async fn a_lock_is_waited_for_no_longer_than_an_operation_may_take() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    let place = open(&format!("sqlite:{}?timeout=0.2", file.display())).await.unwrap();
    place.prepare(&Layout::plain()).await.unwrap();
    let other = Connection::open(&file).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let one = people(1);
    for put in [place.put(&one).await, blocking(place.put(&one)).await] {
        assert!(put.unwrap_err().is_timeout());
    }
    other.execute_batch("ROLLBACK").unwrap();
    blocking(place.put(&one)).await.unwrap();
}

#[tokio::test]
async fn work_that_nobody_waits_for_keeps_its_connection_until_it_ends() {
    let (path, timeout) = (String::new(), Duration::from_secs(10));
    let pool = Arc::new(Pool::new(Settings { path, tier: None, timeout, cache: None }, 1));
    pool.run(|c| c.execute_batch("CREATE TABLE t (a)")).await.unwrap();
    let (begun, begins) = std::sync::mpsc::channel();
    let (ends, end) = std::sync::mpsc::channel::<()>();
    let mut work = Box::pin(pool.run(move |_| {
        begun.send(()).unwrap();
        let _ = end.recv();
        Ok(())
    }));
    assert!(futures_util::poll!(&mut work).is_pending());
    begins.recv().unwrap();
    drop(work);
    // A database in memory is its connection: another one would have no table.
    let count = async || {
        pool.run(|c| c.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0))).await
    };
    let mut next = Box::pin(count());
    assert!(futures_util::poll!(&mut next).is_pending());
    drop(ends);
    assert_eq!(next.await.unwrap(), 0);
    assert_eq!(blocking(count()).await.unwrap(), 0);
}

#[tokio::test]
async fn columns_hold_what_they_are_declared_for() {
    let place = open("sqlite:?layout=columns").await.unwrap();
    let rows = people(10);
    let columns = Column::infer(rows.iter().map(|row| &row.record)).unwrap();
    place.prepare(&Layout::plain().with_columns(columns)).await.unwrap();
    place.put(&rows).await.unwrap();
    let keys: Vec<Key> = rows.iter().map(|row| row.key.clone()).collect();
    let back: Vec<_> = place.get(&keys).await.unwrap().into_iter().flatten().collect();
    assert_eq!(back, rows.iter().map(|row| row.record.clone()).collect::<Vec<_>>());
    for (field, value, want) in [
        ("age", Value::from("old"), "field \"age\" is text, but its column holds int"),
        ("shoe size", Value::Int(43), "no column for the field \"shoe size\""),
    ] {
        let error =
            place.put(&[row("x", Document::from_iter([(field, value)]))]).await.unwrap_err();
        assert!(error.to_string().contains(want), "{error}");
    }
}

#[tokio::test]
async fn tables_of_other_programs_are_read_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("app.db");
    let connection = Connection::open(&file).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE users (id INTEGER PRIMARY KEY, name VARCHAR(20), admin BOOLEAN);
             INSERT INTO users VALUES (7, 'Ann', 1), (12, 'Bob', NULL);",
        )
        .unwrap();
    let place =
        open(&format!("sqlite:{}?table=users&layout=columns", file.display())).await.unwrap();
    let found = place.get(&[Key::new("12").unwrap(), Key::new("8").unwrap()]).await.unwrap();
    let bob = Document::from_iter([("id", Value::Int(12)), ("name", Value::from("Bob"))]);
    assert_eq!(found, [Some(bob), None]);
    let admins = all(&place, &Query::new(r#"{"admin": true}"#.parse::<Filter>().unwrap())).await;
    assert_eq!(admins.len(), 1);
    assert_eq!(admins[0].key.as_str(), "7");
    let error = open(&format!("sqlite:{}?table=users", file.display()))
        .await
        .unwrap()
        .count()
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("no column \"record\""), "{error}");
}

#[tokio::test]
async fn durability_is_what_was_asked_for_or_an_error() {
    let folder = tempfile::tempdir().unwrap();
    for (tier, word) in [("t1", "OFF"), ("t2", "NORMAL"), ("t3", "FULL")] {
        let file = folder.path().join(tier);
        let place = open(&format!("sqlite:{}?durability={tier}", file.display())).await.unwrap();
        let said = place.describe().await.unwrap();
        assert_eq!(said.set, Some(tier.parse::<Tier>().unwrap()));
        assert!(said.settings.contains(&("synchronous".into(), word.into())), "{said:?}");
    }
    let error = open("sqlite:?durability=t3").await.unwrap_err();
    assert!(error.to_string().contains("it can: t0"), "{error}");
}

/// Records of any size: what a stream has in memory at once is bounded by bytes, and none is left out.
#[tokio::test]
async fn streams_are_bounded_by_bytes_too() {
    let folder = tempfile::tempdir().unwrap();
    let place = open(&format!("sqlite:{}", folder.path().join("p.db").display())).await.unwrap();
    place.prepare(&Layout::plain()).await.unwrap();
    let large = |n: usize| {
        Document::from_iter([
            ("text", Value::Text("x".repeat(900_000))),
            ("n", Value::Int(n as i64)),
        ])
    };
    for n in 0..40 {
        place.put(&[row(&format!("k{n:02}"), large(n))]).await.unwrap();
    }
    let sorted = Query::default().sorted("n".parse().unwrap(), Order::Descending);
    let streams = [
        place.scan(&KeyRange::all()).await.unwrap(),
        place.find(&Query::new("n>=0".parse().unwrap())).await.unwrap(),
        place.find(&sorted).await.unwrap(),
    ];
    for mut rows in streams {
        let mut all = Vec::new();
        while let Some(batch) = rows.try_next().await.unwrap() {
            assert!(batch.len() <= 11, "{} records of 900 kB at once", batch.len());
            all.extend(batch.into_iter().map(|row| row.key));
        }
        assert_eq!(all.len(), 40);
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 40);
    }
}

/// A table of somebody's own that is called as one of SQLite's functions does not stand before it.
#[tokio::test]
async fn tables_are_listed_whatever_they_are_called() {
    let folder = tempfile::tempdir().unwrap();
    let place = open(&format!("sqlite:{}", folder.path().join("p.db").display())).await.unwrap();
    place.table("a").unwrap().prepare(&Layout::plain()).await.unwrap();
    let other = Connection::open(folder.path().join("p.db")).unwrap();
    other.execute_batch("CREATE TABLE pragma_table_list (x); CREATE VIEW v AS SELECT 1").unwrap();
    assert_eq!(place.tables().await.unwrap(), ["a", "pragma_table_list"]);
}

/// A new file's first connections, all at once: each may turn the write-ahead log on.
#[test]
fn connections_that_make_a_file_together_wait_for_one_another() {
    let folder = tempfile::tempdir().unwrap();
    for n in 0..40 {
        let url = format!("sqlite:{}", folder.path().join(format!("{n}.db")).display());
        let barrier = std::sync::Barrier::new(8);
        std::thread::scope(|scope| {
            for i in 0..8 {
                let (url, barrier) = (&url, &barrier);
                scope.spawn(move || {
                    let runtime =
                        tokio::runtime::Builder::new_current_thread().enable_all().build();
                    runtime.unwrap().block_on(async {
                        let place = open(url).await.unwrap();
                        let table = place.table(&format!("t{i}")).unwrap();
                        barrier.wait();
                        table.prepare(&Layout::plain()).await.unwrap();
                        assert_eq!(table.count().await.unwrap(), 0);
                    });
                });
            }
        });
    }
}
