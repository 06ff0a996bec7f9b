//! CouchDB: conflicts, bulk writes, pages, keys and names that trip.

use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use steelyard::{
    ErrorKind,
    record::{Document, Kind, Time, Value},
    store::{
        Filter, KeyRange, Layout, Query, Row,
        query::{self, Order},
    },
};

use super::{hostile_keys, key, open, row, server};
use crate::programs::need;

fn numbered(n: i64) -> Row {
    let group = if n % 3 == 0 { Value::Null } else { Value::Int(n % 3) };
    row(
        &format!("{n:06}"),
        [("n", Value::Int(n)), ("name", Value::from(format!("Nö {n}"))), ("group", group)],
    )
}

async fn found(place: &steelyard::store::Place, query: Query) -> Vec<Row> {
    place.find(&query).await.unwrap().try_concat().await.unwrap()
}

#[tokio::test]
async fn thousands_of_documents_are_written_paged_found_and_deleted() {
    let server = need!(server("couchdb"));
    let place = open(&format!("{}/shop?table=Orders&pool=1", server.url())).await;
    let rows: Vec<Row> = (0..3000).map(numbered).collect();
    place.load(&rows[..1000]).await.unwrap();
    place.put(&rows[500..]).await.unwrap();
    assert_eq!(place.count().await.unwrap(), 3000);

    let all: Vec<Row> = place.scan(&KeyRange::all()).await.unwrap().try_concat().await.unwrap();
    assert_eq!(all, rows);
    let range = KeyRange { from: Some(key("000700")), until: Some(key("001900")) };
    // Written to while it is read, over the same one connection.
    let mut pages = place.scan(&range).await.unwrap();
    let mut seen = Vec::new();
    while let Some(page) = pages.try_next().await.unwrap() {
        assert!(page.len() <= 1000);
        place.put(&page).await.unwrap();
        seen.extend(page);
    }
    assert_eq!(seen, rows[700..1900]);

    // By selectors: before there is an index, and after.
    let layout = Layout::plain().with_index("n".parse().unwrap(), Kind::Int);
    for indexed in [false, true] {
        if indexed {
            place.prepare(&layout).await.unwrap();
            place.prepare(&layout).await.unwrap();
            assert_eq!(place.count().await.unwrap(), 3000, "indexes are no records");
        }
        let query = Query::new("n>=1000".parse().unwrap());
        let mut many = found(&place, query.clone()).await;
        many.sort_by(|a, b| a.key.cmp(&b.key));
        assert_eq!(many, rows[1000..]);
        let some = found(&place, query.limited(7)).await;
        assert_eq!(some.len(), 7);
        let query =
            Query::new(
                r#"{"$or": [{"n": 7}, {"name": "Nö 9"}, {"name": {"$prefix": "Nö 123"}}]}"#
                    .parse()
                    .unwrap(),
            );
        let mut few = found(&place, query.sorted("n".parse().unwrap(), Order::Descending)).await;
        assert_eq!(few.len(), 13);
        assert_eq!(few.pop(), Some(rows[7].clone()));
        let query =
            Query::new("n<10".parse().unwrap()).sorted("group".parse().unwrap(), Order::Ascending);
        let names = |rows: &[Row]| rows.iter().map(|row| row.key.to_string()).collect::<Vec<_>>();
        let sorted = found(&place, query.limited(5)).await;
        assert_eq!(names(&sorted), ["000000", "000003", "000006", "000009", "000001"]);
    }
    assert_eq!(place.delete(&"group=null".parse().unwrap()).await.unwrap(), 1000);
    assert_eq!(place.count().await.unwrap(), 2000);
    assert_eq!(place.delete(&"group!=1".parse().unwrap()).await.unwrap(), 1000);
    assert_eq!(place.remove(&[key("000001"), key("000001"), key("none")]).await.unwrap(), 1);
    assert_eq!(place.delete(&Filter::All).await.unwrap(), 999);
    assert_eq!(place.count().await.unwrap(), 0);
    assert!(found(&place, Query::new("n>=0".parse().unwrap())).await.is_empty());
    place.load(&rows[..2]).await.unwrap();
    place.drop_table().await.unwrap();
    place.drop_table().await.unwrap();
}

#[tokio::test]
async fn conflicts_are_named_document_by_document() {
    let server = need!(server("couchdb"));
    let place = open(server.url()).await;
    let rows: Vec<Row> = (0..100).map(numbered).collect();
    place.load(&rows[10..12]).await.unwrap();
    let error = place.load(&rows).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(
        error.to_string().contains(
            "2 of 100 keys already exist; the others were written: \"000010\", \"000011\""
        ),
        "{error}"
    );
    assert_eq!(place.count().await.unwrap(), 100);
    let twice = [rows[0].clone(), rows[1].clone(), rows[0].clone()];
    let error = place.load(&twice).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("1 of 3 keys occur twice"), "{error}");

    // Of several with one key the last is kept; writers that fight all come through.
    let last = row("000000", [("n", Value::Int(-1))]);
    place.put(&[rows[0].clone(), last.clone()]).await.unwrap();
    assert_eq!(place.get(&[key("000000")]).await.unwrap(), [Some(last.record)]);
    let writers = (0..4).map(|_| place.put(&rows));
    futures_util::future::try_join_all(writers).await.unwrap();
    assert_eq!(place.count().await.unwrap(), 100);

    // Deleted ones can be written again.
    assert_eq!(place.remove(&[key("000005")]).await.unwrap(), 1);
    assert_eq!(place.get(&[key("000005")]).await.unwrap(), [None]);
    assert_eq!(place.remove(&[key("000005")]).await.unwrap(), 0);
    place.put(&rows[5..6]).await.unwrap();
    assert_eq!(place.remove(&[key("000005")]).await.unwrap(), 1);
    place.load(&rows[5..6]).await.unwrap();
}

#[tokio::test]
async fn keys_and_names_that_trip_come_back() {
    let server = need!(server("couchdb"));
    let blobs = format!("{}/a?table=blobs&format=msgpack", server.url());
    for url in [format!("{}/a", server.url()), blobs] {
        let place = open(&url).await;
        let keys = hostile_keys();
        let mut rows: Vec<Row> =
            keys.iter().enumerate().map(|(i, k)| row(k, [("n", Value::Int(i as i64))])).collect();
        rows.push(row(&"😀".repeat(2500), [("n", Value::Int(-1))]));
        place.load(&rows).await.unwrap();
        let all: Vec<_> = rows.iter().map(|row| row.key.clone()).collect();
        let records = place.get(&all).await.unwrap();
        assert!(rows.iter().zip(records).all(|(row, record)| record.as_ref() == Some(&row.record)));
        assert_eq!(place.count().await.unwrap(), rows.len() as u64);
        let sort = |mut rows: Vec<Row>| {
            rows.sort_by(|a, b| a.key.cmp(&b.key));
            rows
        };
        let mut want = sort(rows.clone());
        let listed: Vec<Row> =
            place.scan(&KeyRange::all()).await.unwrap().try_concat().await.unwrap();
        assert_eq!(sort(listed), want);
        for (from, until) in [("a", "b"), ("\u{e000}", "\u{10ffff}"), ("é", "😀"), ("\0", "\u{1}")]
        {
            let range = KeyRange { from: Some(key(from)), until: Some(key(until)) };
            let listed: Vec<Row> = place.scan(&range).await.unwrap().try_concat().await.unwrap();
            let want: Vec<Row> =
                want.iter().filter(|row| range.contains(&row.key)).cloned().collect();
            assert_eq!(sort(listed), want, "{range:?}");
        }
        assert_eq!(place.remove(&all).await.unwrap(), rows.len() as u64);
        want.clear();
    }

    let place = open(&format!("{}/a?table=../x%2FY'%00", server.url()).replace("%00", "")).await;
    let nested = Document::from_iter([
        ("_id", Value::Int(1)),
        ("hasOwnProperty", Value::Int(2)),
        ("$gt", Value::Int(3)),
    ]);
    let record = Document::from_iter([
        ("toString", Value::Int(1)),
        ("hasOwnProperty", Value::from("x")),
        ("constructor", Value::Map(nested)),
        ("$ne", Value::from("'; --")),
        ("a.b", Value::from("\0\u{2028}\u{feff}")),
        ("", Value::List(vec![Value::Null, Value::Bool(false), Value::Float(0.5)])),
        ("most", Value::Int(1 << 53)),
        ("least", Value::Int(-(1 << 53))),
    ]);
    let rows = [Row { key: key("k"), record }];
    place.put(&rows).await.unwrap();
    assert_eq!(place.get(&[key("k")]).await.unwrap(), [Some(rows[0].record.clone())]);
    let of = |filter: &str| Query::new(filter.parse().unwrap());
    for filter in [
        r"a\.b^=x",
        r#""$ne"=1"#,
        "toString=1",
        "constructor.hasOwnProperty=2",
        "!constructor.x",
        "!valueOf",
    ] {
        let want = of(filter).matches(&rows[0].key, &rows[0].record);
        assert_eq!(found(&place, of(filter)).await.len(), usize::from(want), "{filter}");
    }
}

#[tokio::test]
async fn what_couchdb_cannot_hold_is_refused_before_anything_is_written() {
    let server = need!(server("couchdb"));
    let place = open(server.url()).await;
    let good = row("good", [("n", Value::Int(1))]);
    for (bad, kind, want) in [
        (row("x", [("_id", Value::from("y"))]), ErrorKind::Invalid, "key \"x\": field \"_id\""),
        (
            row("x", [("a", Value::Bytes(vec![1]))]),
            ErrorKind::Unsupported,
            "key \"x\": field \"a\" is bytes",
        ),
        (row("x", [("a", Value::Float(f64::NAN))]), ErrorKind::Unsupported, "field \"a\" is NaN"),
        (
            row("x", [("a", Value::List(vec![Value::Int((1 << 53) + 1)]))]),
            ErrorKind::Unsupported,
            "2^53",
        ),
        (row("x", [("a", Value::Int(i64::MIN))]), ErrorKind::Unsupported, "2^53"),
        (
            row("x", [("a", Value::Map([("__proto__", 1i64)].into_iter().collect()))]),
            ErrorKind::Unsupported,
            "__proto__",
        ),
        (
            row("x", [("a", Value::from("x".repeat(8_000_000)))]),
            ErrorKind::TooLarge,
            "8000008 bytes",
        ),
        (row(&"x".repeat(70_000), []), ErrorKind::Invalid, "(70000 bytes)"),
    ] {
        let error = place.put(&[good.clone(), bad]).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(want), "{error}");
    }
    assert_eq!(place.count().await.unwrap(), 0);
    // As large as it may be, and what becomes text.
    let large = row("large", [("a", Value::from("é".repeat(3_900_000)))]);
    place.put(std::slice::from_ref(&large)).await.unwrap();
    assert_eq!(place.get(&[key("large")]).await.unwrap(), [Some(large.record)]);
    let time = Time::from_unix(1_234_567_890, 0).unwrap();
    place
        .put(&[row(
            "t",
            [("at", Value::Time(time)), ("f", Value::Float(1.0)), ("h", Value::Float(1e18))],
        )])
        .await
        .unwrap();
    let back = place.get(&[key("t")]).await.unwrap().remove(0).unwrap();
    assert_eq!(back.get("at"), Some(&Value::from("2009-02-13T23:31:30Z")));
    assert_eq!(back.get("h"), Some(&Value::Float(1e18)));
    let query =
        Query::new(r#"{"at": {"$lte": {"$date": "2009-02-13T23:31:30Z"}}}"#.parse().unwrap());
    // Times lie there as texts, which are compared here.
    let error = place.find(&query).await.err().expect("texts are not compared as times");
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let answer = query::find(&**place.store(), &query).await.unwrap();
    assert_eq!(answer.rows.try_concat().await.unwrap().len(), 1);

    // Somebody else's layout.
    let blobs = steelyard::open(&format!("{}?layout=blob", server.url())).await.unwrap();
    let error = blobs.prepare(&Layout::plain()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    // A table that was never made.
    let error = place.table("none").unwrap().put(&[good]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
}

#[tokio::test]
async fn a_server_that_stands_still_is_an_error_in_time_and_comes_back() {
    let mut server = need!(server("couchdb"));
    let url = format!("{}?timeout=3&connect_timeout=3", server.url());
    let place = open(&url).await;
    let rows: Vec<Row> = (0..10).map(numbered).collect();
    place.put(&rows).await.unwrap();

    server.freeze();
    let begin = Instant::now();
    for _ in 0..2 {
        let error = place.get(&[key("000001")]).await.unwrap_err();
        assert!(error.is_timeout(), "{error}");
    }
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    server.thaw();
    assert_eq!(place.count().await.unwrap(), 10);

    server.kill();
    let error = place.put(&rows).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(steelyard::open(&url).await.unwrap_err().kind(), ErrorKind::Unavailable);
    server.restart().unwrap();
    // What is in memory is gone; the same place works again.
    place.prepare(&Layout::plain()).await.unwrap();
    place.put(&rows).await.unwrap();
    assert_eq!(place.count().await.unwrap(), 10);
}

#[tokio::test]
async fn it_says_what_it_is() {
    let server = need!(server("couchdb"));
    let place = open(server.url()).await;
    let description = place.describe().await.unwrap();
    assert!(["CouchDB", "express-pouchdb"].contains(&&*description.product), "{description:?}");
    assert!(description.version.starts_with(|c: char| c.is_ascii_digit()), "{description:?}");
    let set = description.set.expect("a tier");
    let (same, other) = match set {
        steelyard::durability::Tier::T0 => ("t0", "t3"),
        _ => ("t3", "t0"),
    };
    let with = |tier: &str| format!("{}?durability={tier}", server.url());
    steelyard::open(&with(same)).await.unwrap();
    let error = steelyard::open(&with(other)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("it can: "), "{error}");

    // TLS to a server that has none is an error, and no panic.
    let secure = server.url().replace("couchdb:", "couchdbs:");
    let error = steelyard::open(&format!("{secure}?connect_timeout=2")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let error = steelyard::open("couchdb://user:secret@127.0.0.1:1").await.unwrap_err();
    assert!(!format!("{error:?}").contains("secret"), "{error:?}");
}
