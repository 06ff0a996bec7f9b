//! S3: keys that trip, tenants apart, large objects, servers that stand still.

use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use steelyard::{
    ErrorKind,
    record::Value,
    store::{Blob, KeyRange, Place, Row},
};

use super::{Server, contents, hostile_keys, key, open, row, server};
use crate::programs::need;

/// The server's URL with this prefix and these options more.
fn at(server: &Server, prefix: &str, options: &str) -> String {
    let (bucket, own) = server.url().split_once('?').expect("options");
    format!("{bucket}/{prefix}?{own}&{options}")
}

async fn listed(place: &Place, range: KeyRange) -> Vec<Row> {
    place.scan(&range).await.unwrap().try_concat().await.unwrap()
}

#[tokio::test]
async fn keys_that_trip_come_back_in_order() {
    let server = need!(server("s3"));
    let place = open(&at(&server, "", "pool=3&format=json")).await;
    let mut rows: Vec<Row> = hostile_keys()
        .iter()
        .enumerate()
        .map(|(i, k)| row(k, [("n", Value::Int(i as i64))]))
        .collect();
    let keys: Vec<_> = rows.iter().map(|row| row.key.clone()).collect();
    place.load(&rows).await.unwrap();
    let records = place.get(&keys).await.unwrap();
    assert!(rows.iter().zip(records).all(|(row, record)| record.as_ref() == Some(&row.record)));
    rows.sort_by(|a, b| a.key.cmp(&b.key));
    assert_eq!(listed(&place, KeyRange::all()).await, rows);
    assert_eq!(place.count().await.unwrap(), rows.len() as u64);
    for (from, until) in
        [("a", "b"), ("\0", "a/b"), ("\u{d7ff}", "😀"), ("b", "a"), ("none", "none0")]
    {
        let range = KeyRange { from: Some(key(from)), until: Some(key(until)) };
        let want: Vec<Row> = rows.iter().filter(|row| range.contains(&row.key)).cloned().collect();
        assert_eq!(listed(&place, range.clone()).await, want, "{range:?}");
    }
    let mut parts = Vec::new();
    for range in place.split(3).await.unwrap() {
        let part = listed(&place, range).await;
        assert!(part.len().abs_diff(rows.len() / 3) < 3, "{}", part.len());
        parts.extend(part);
    }
    assert_eq!(parts, rows);
    assert_eq!(place.remove(&[key("a/b"), key("a/b"), key("none")]).await.unwrap(), 1);
    assert_eq!(place.get(&[key("a/b"), key("a")]).await.unwrap()[0], None);
    place.drop_table().await.unwrap();
    assert_eq!(place.count().await.unwrap(), 0);
}

#[tokio::test]
async fn pages_are_read_while_they_are_written() {
    let server = need!(server("s3"));
    let place = open(&at(&server, "many", "pool=1")).await;
    // More than a page of a list has.
    let rows: Vec<Row> =
        (0..1100).map(|n| row(&format!("{n:05}"), [("n", Value::Int(n))])).collect();
    place.put(&rows).await.unwrap();
    let mut pages = place.scan(&KeyRange::all()).await.unwrap();
    let mut seen = Vec::new();
    while let Some(page) = pages.try_next().await.unwrap() {
        place.put(&page[..1]).await.unwrap();
        seen.extend(page);
    }
    assert_eq!(seen, rows);
    assert_eq!(place.count().await.unwrap(), 1100);
    assert_eq!(place.delete(&steelyard::store::Filter::All).await.unwrap(), 1100);
    assert_eq!(place.count().await.unwrap(), 0);
}

#[tokio::test]
async fn tenants_do_not_see_each_other() {
    let server = need!(server("s3"));
    let one = row("b/x", [("of", Value::from("a"))]);
    let places = [
        open(&at(&server, "a", "table=b")).await,
        open(&at(&server, "a/b", "table=x")).await,
        open(&at(&server, "a", "table=b/x")).await,
        open(&at(&server, "", "table=a")).await,
        open(&at(&server, "", "table=a/b")).await,
        open(&at(&server, "a", "table=b2")).await,
    ];
    for (i, place) in places.iter().enumerate() {
        place.put(&[one.clone(), row("x", [("i", Value::Int(i as i64))])]).await.unwrap();
    }
    for (i, place) in places.iter().enumerate() {
        let rows = listed(place, KeyRange::all()).await;
        assert_eq!(rows, [one.clone(), row("x", [("i", Value::Int(i as i64))])], "place {i}");
    }
    places[0].drop_table().await.unwrap();
    for (i, place) in places.iter().enumerate() {
        assert_eq!(place.count().await.unwrap(), if i == 0 { 0 } else { 2 }, "place {i}");
    }
    let error = steelyard::open(&at(&server, "a+", "")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
}

#[tokio::test]
async fn large_objects_come_back_and_keys_that_are_too_long_are_refused() {
    let server = need!(server("s3"));
    let place = open(&at(&server, "", "layout=blob")).await;
    let (blobs, _) = place.blobs().unwrap();
    let large = Blob { key: key("large"), bytes: contents(10 << 20) };
    let none = Blob { key: key("none"), bytes: Vec::new() };
    blobs.put(&[large.clone(), none.clone()]).await.unwrap();
    let back = blobs.get(&[key("large"), key("none")]).await.unwrap();
    assert!(back[0].as_ref() == Some(&large.bytes), "other bytes");
    assert_eq!(back[1].as_deref(), Some(&[][..]));
    let all: Vec<Blob> = blobs.each(&KeyRange::all()).await.unwrap().try_concat().await.unwrap();
    assert!(all == [large, none], "other blobs");

    let long = row(&"x".repeat(2000), []);
    let error = place.put(&[row("good", []), long]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(error.to_string().contains("(2000 bytes)"), "{error}");
    assert_eq!(place.count().await.unwrap(), 2);
}

#[tokio::test]
async fn a_server_that_stands_still_is_an_error_in_time_and_comes_back() {
    let mut server = need!(server("s3"));
    let url = at(&server, "", "timeout=3&connect_timeout=3");
    let place = open(&url).await;
    let rows: Vec<Row> = (0..20).map(|n| row(&format!("{n:05}"), [("n", Value::Int(n))])).collect();
    place.put(&rows).await.unwrap();

    server.freeze();
    let begin = Instant::now();
    for _ in 0..2 {
        let error = place.get(&[key("00001")]).await.unwrap_err();
        assert!(error.is_timeout(), "{error}");
    }
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    server.thaw();
    assert_eq!(place.count().await.unwrap(), 20);

    server.kill();
    let error = place.put(&rows).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(steelyard::open(&url).await.unwrap_err().kind(), ErrorKind::Unavailable);
    server.restart().unwrap();
    // What is kept in files is still there.
    if server.url().contains("server_tier=t1") {
        assert_eq!(listed(&place, KeyRange::all()).await, rows);
    }
    place.put(&rows).await.unwrap();
    assert_eq!(place.count().await.unwrap(), 20);
}

#[tokio::test]
async fn what_is_wrong_with_a_place_is_said() {
    let server = need!(server("s3"));
    let url = at(&server, "", "");
    let description = open(&url).await.describe().await.unwrap();
    assert!(!description.product.is_empty() && description.set.is_none(), "{description:?}");

    let other = url.replace("s3://steelyard", "s3://nobodys");
    let error = steelyard::open(&other).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    if description.product.contains("VERSITY") {
        let wrong = url.replace(crate::programs::password(&url).unwrap(), "wrong-secret");
        let error = steelyard::open(&wrong).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
        assert!(!format!("{error:?}").contains("wrong-secret"), "{error:?}");
        // A key that this server cannot have, though S3 can.
        let place = open(&url).await;
        let error = place.put(&[row(&"x".repeat(300), [])]).await.unwrap_err();
        assert!([ErrorKind::TooLarge, ErrorKind::Invalid].contains(&error.kind()), "{error:?}");
        assert!(error.to_string().contains("(300 bytes)"), "{error}");

        steelyard::open(&format!("{url}&durability=t1")).await.unwrap();
    }
    let error = steelyard::open(&format!("{url}&durability=t3")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let error = steelyard::open("s3:///nowhere").await.unwrap_err();
    assert!(error.to_string().contains("one bucket"), "{error}");
}
