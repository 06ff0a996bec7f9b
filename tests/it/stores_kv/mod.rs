//! What is special about the stores that know keys and values: Redis, memcached, Tokyo Tyrant, on
//! real servers.

mod memcached;
mod redis;
mod tyrant;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use futures_util::TryStreamExt;
use steelyard::{
    ErrorKind,
    record::{Document, Value},
    server::{Server, Wish},
    store::{Filter, Key, KeyRange, Layout, Place, Query, Row, Store, one_by_one},
};

use crate::programs::{self, Need, need};

pub fn started(name: &str, wish: Wish) -> Need<Server> {
    programs::server(name, &wish)
}

pub fn setting(name: &str, value: &str) -> Wish {
    Wish { settings: vec![(name.into(), value.into())], ..Wish::default() }
}

/// The stores of this file, each with its options.
fn every() -> Vec<(&'static str, Wish, &'static str)> {
    vec![
        ("redis", Wish::default(), "layout=blob"),
        ("redis", Wish::default(), "layout=document"),
        ("memcached", Wish::default(), "layout=blob"),
        ("tyrant", setting("type", "table"), "layout=document"),
        ("tyrant", setting("type", "hash"), "format=json"),
    ]
}

pub fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

pub fn row(k: &str, n: i64) -> Row {
    let record = Document::from_iter([("n", Value::Int(n)), ("k", Value::from(k))]);
    Row { key: key(k), record }
}

pub async fn all(store: &dyn Store) -> BTreeMap<Key, Document> {
    let rows = store.scan(&KeyRange::all()).await.unwrap();
    let rows: Vec<Row> = one_by_one(rows).try_collect().await.unwrap();
    let count = rows.len();
    let map: BTreeMap<_, _> = rows.into_iter().map(|row| (row.key, row.record)).collect();
    assert_eq!(map.len(), count, "a key came twice");
    map
}

pub async fn opened(url: &str) -> Place {
    steelyard::open(url).await.unwrap_or_else(|e| panic!("{url}: {e:?}"))
}

/// Tries until it works, for things that take a moment.
pub async fn in_a_moment<T, F: Future<Output = steelyard::Result<T>>>(act: impl Fn() -> F) -> T {
    let begin = Instant::now();
    loop {
        match act().await {
            Ok(done) => return done,
            Err(e) => assert!(begin.elapsed() < Duration::from_secs(20), "{e:?}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn records_are_kept_by_table_and_tables_do_not_overlap() {
    for (name, wish, options) in every() {
        let server = need!(started(name, wish), continue);
        let place = opened(&format!("{}?{options}", server.url())).await;
        let names = [
            "a",
            "a:b",
            "a%3Ab",
            "a*",
            "a?",
            "[a-z]",
            "\\a",
            "^",
            "größe 😀",
            "a\r\nflush_all\r\n",
        ];
        let mut tables = Vec::new();
        for name in names {
            let table = place.table(name).unwrap();
            table.prepare(&Layout::plain()).await.unwrap();
            tables.push(table);
        }
        // Every key in every table, with the table's number.
        let keys = ["x", "b:x", ":", "%3Ab:x", "*", "b"];
        for (n, table) in tables.iter().enumerate() {
            let rows: Vec<_> = keys.iter().map(|k| row(k, n as i64)).collect();
            table.load(&rows).await.unwrap();
        }
        for (n, table) in tables.iter().enumerate() {
            let want: BTreeMap<_, _> =
                keys.iter().map(|k| (key(k), row(k, n as i64).record)).collect();
            assert_eq!(all(&**table).await, want, "{name} {}", names[n]);
            assert_eq!(table.count().await.unwrap(), keys.len() as u64);
            let found = table.get(&keys.map(key)).await.unwrap();
            assert!(found.iter().flatten().all(|r| r.get("n") == Some(&Value::Int(n as i64))));
            assert_eq!(found.iter().flatten().count(), keys.len());
        }
        // One goes, the others stay.
        tables[0].drop_table().await.unwrap();
        assert_eq!(tables[1].delete(&Filter::All).await.unwrap(), keys.len() as u64);
        for (n, table) in tables.iter().enumerate() {
            let want = if n < 2 { 0 } else { keys.len() as u64 };
            assert_eq!(table.count().await.unwrap(), want, "{name} {}", names[n]);
        }
        for odd in ["", "a\0b"] {
            assert_eq!(place.table(odd).err().unwrap().kind(), ErrorKind::Invalid);
        }
    }
}

#[tokio::test]
async fn hostile_keys_are_held_or_refused_and_never_obeyed() {
    for (name, wish, options) in every() {
        let server = need!(started(name, wish), continue);
        let place = opened(&format!("{}?{options}", server.url())).await;
        let row =
            |k: &str, n| Row { record: Document::from_iter([("n", Value::Int(n))]), ..row(k, n) };
        place.put(&[row("witness", 1)]).await.unwrap();
        let long = "x".repeat(10 << 10);
        let keys = [
            "a\r\nflush_all\r\n",
            "a b",
            " ",
            "\0",
            "a\0b",
            "\n",
            "😀",
            "=YQ",
            "=",
            "%00",
            "\u{7f}\u{80}",
            "DEL witness",
            "'; DROP TABLE records; --",
            "{}",
            "$where",
            long.as_str(),
            "\"",
        ];
        let mut held = 1;
        for text in keys {
            let one = row(text, 5);
            match place.check(&one) {
                Ok(()) => {
                    place.put(std::slice::from_ref(&one)).await.unwrap();
                    let found = place.get(&[key(text)]).await.unwrap();
                    assert_eq!(found[0].as_ref(), Some(&one.record), "{name} {text:?}");
                    held += 1;
                }
                Err(e) => {
                    assert_eq!(e.kind(), ErrorKind::Invalid, "{name}: {e}");
                    let refused = place.put(&[row("new", 1), one]).await.unwrap_err();
                    assert_eq!(refused.kind(), ErrorKind::Invalid);
                    let found = place.get(&[key("new"), key(text)]).await.unwrap();
                    assert_eq!(found, [None, None], "{name}: half a batch");
                    assert_eq!(place.remove(&[key(text)]).await.unwrap(), 0);
                }
            }
        }
        // Only memcached has short keys, and what is long in Base64 is one of them.
        let want = keys.len() + 1 - usize::from(name == "memcached");
        assert_eq!(held, want, "{name}");
        let found = all(&**place.store()).await;
        assert_eq!(found.len(), held, "{name}");
        assert!(found.contains_key(&key("witness")));
        for text in keys.iter().filter(|text| found.contains_key(&key(text))) {
            let query = Query::new(
                Filter::field("_key", steelyard::store::query::Test::Eq(Value::from(*text)))
                    .unwrap(),
            );
            let rows = one_by_one(place.find(&query).await.unwrap());
            assert_eq!(rows.try_collect::<Vec<_>>().await.unwrap().len(), 1, "{name} {text:?}");
            assert_eq!(place.remove(&[key(text)]).await.unwrap(), 1, "{name} {text:?}");
        }
        assert_eq!(place.count().await.unwrap(), 1);
    }
}

#[tokio::test]
async fn load_tells_a_key_that_is_taken() {
    for (name, wish, options) in every() {
        let server = need!(started(name, wish), continue);
        let place = opened(&format!("{}?{options}", server.url())).await;
        let rows: Vec<_> = (0..2500).map(|n| row(&format!("k{n}"), n)).collect();
        place.load(&rows).await.unwrap();
        let error = place.load(&[row("new", 1), row("k7", 0)]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{name}: {error}");
        assert!(error.to_string().contains("\"k7\""), "{name}: {error}");
        let error = place.load(&[row("twice", 1), row("twice", 2)]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{name}: {error}");
        let found = place.get(&[key("k7"), key("k2499")]).await.unwrap();
        assert_eq!(found, [Some(row("k7", 7).record), Some(row("k2499", 2499).record)]);
        // Asked twice, there twice; more than one command holds.
        let keys: Vec<_> = (0..3000).map(|n| key(&format!("k{}", n % 2600))).collect();
        let found = place.get(&keys).await.unwrap();
        assert_eq!(found.iter().flatten().count(), 2500 + 400, "{name}");
        assert_eq!(place.remove(&keys).await.unwrap(), 2500, "{name}");
    }
}

#[tokio::test]
async fn one_connection_is_enough_to_write_while_reading() {
    for (name, wish, options) in every() {
        let server = need!(started(name, wish), continue);
        let url = format!("{}?{options}&pool=1&timeout=5", server.url());
        let place = opened(&url).await;
        let rows: Vec<_> = (0..3000).map(|n| row(&format!("k{n}"), n)).collect();
        place.load(&rows).await.unwrap();
        let mut batches = place.scan(&KeyRange::all()).await.unwrap();
        let mut seen = std::collections::BTreeSet::new();
        while let Some(batch) = batches.try_next().await.unwrap() {
            let changed: Vec<_> = batch.iter().map(|found| row(&found.key, -1)).collect();
            place.put(&changed).await.unwrap();
            for found in batch {
                assert!(seen.insert(found.key.clone()), "{name}: {} came twice", found.key);
            }
        }
        assert_eq!(seen.len(), 3000, "{name}");
        assert!(all(&**place.store()).await.values().all(|r| r.get("n") == Some(&Value::Int(-1))));
        // A stream that nobody reads to its end keeps nothing.
        for _ in 0..5 {
            let mut batches = place.scan(&KeyRange::all()).await.unwrap();
            batches.try_next().await.unwrap();
        }
        place.put(&[row("last", 1)]).await.unwrap();
    }
}

#[tokio::test]
async fn a_server_that_stands_still_is_an_error_in_time_and_comes_back() {
    for (name, wish, options) in every() {
        let server = need!(started(name, wish), continue);
        let place =
            opened(&format!("{}?{options}&timeout=3&connect_timeout=3&pool=2", server.url())).await;
        place.put(&[row("a", 1)]).await.unwrap();
        server.freeze();
        let begin = Instant::now();
        let error = place.get(&[key("a")]).await.unwrap_err();
        assert!(error.is_timeout(), "{name}: {error}");
        let error = place.put(&[row("b", 1)]).await.unwrap_err();
        assert!(error.is_timeout(), "{name}: {error}");
        assert!(begin.elapsed() < Duration::from_secs(20), "{name}: {:?}", begin.elapsed());
        server.thaw();
        place.put(&[row("b", 2)]).await.unwrap();
        // The put that was given up may still come about, also after the later one.
        let found = place.get(&[key("a"), key("b")]).await.unwrap();
        assert_eq!(found[0], Some(row("a", 1).record), "{name}");
        assert!(found[1].is_some(), "{name}");
        assert_eq!(place.count().await.unwrap(), 2);
    }
}

#[tokio::test]
async fn the_pool_recovers_when_the_server_was_killed() {
    for (name, wish, options) in every() {
        let mut server = need!(started(name, wish), continue);
        let place = opened(&format!("{}?{options}&timeout=5", server.url())).await;
        // Several connections that will all be dead.
        let puts = (0..8).map(|n| {
            let place = place.clone();
            async move { place.put(&[row(&format!("k{n}"), n)]).await }
        });
        futures_util::future::try_join_all(puts).await.unwrap();
        server.kill();
        let error = place.get(&[key("k1")]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{name}: {error}");
        let error = place.put(&[row("k1", 0)]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{name}: {error}");
        server.restart().unwrap();
        let found = place.get(&[key("k1")]).await.unwrap();
        if name != "memcached" {
            assert_eq!(found, [Some(row("k1", 1).record)], "{name}: t1 survives the process");
            assert_eq!(all(&**place.store()).await.len(), 8, "{name}");
        }
        place.put(&[row("k1", 5)]).await.unwrap();
        // Killed while nothing is under way: one operation may fail, the next one may not.
        server.kill();
        server.restart().unwrap();
        let _ = place.get(&[key("k1")]).await;
        place.put(&[row("k2", 6)]).await.unwrap();
    }
}

#[tokio::test]
async fn urls_that_lead_nowhere_say_so() {
    for (url, kind, want) in [
        ("redis://127.0.0.1:1", ErrorKind::Unavailable, "refused"),
        ("memcached://127.0.0.1:1", ErrorKind::Unavailable, "127.0.0.1:1"),
        ("tyrant://127.0.0.1:1", ErrorKind::Unavailable, "127.0.0.1:1"),
        ("redis://h/x", ErrorKind::Invalid, "\"x\""),
        ("redis://h?socket=s&tls=true", ErrorKind::Invalid, "exclude each other"),
        ("redis://h?socke=s", ErrorKind::Invalid, "unknown option \"socke\""),
        ("memcached://u:secret@h", ErrorKind::Unsupported, "no user or password"),
        ("memcached://h/db", ErrorKind::Invalid, "\"db\""),
        ("memcached://h,h", ErrorKind::Invalid, "twice"),
        ("memcached://h?durability=t1", ErrorKind::Unsupported, "cannot promise durability t1"),
        ("memcached://h?layout=document", ErrorKind::Unsupported, "no layout document"),
        ("tyrant://h/db", ErrorKind::Invalid, "one database"),
        ("tyrant://h?layout=columns", ErrorKind::Unsupported, "no layout columns"),
    ] {
        let error = steelyard::open(url).await.unwrap_err();
        let text = format!("{error:?}");
        assert_eq!(error.kind(), kind, "{url}: {text}");
        assert!(text.contains(want) && !text.contains("secret"), "{url}: {text}");
    }
}
