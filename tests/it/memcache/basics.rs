//! Every operation, in both dialects and through both shells.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use steelyard::{
    Error, ErrorKind,
    format::Format,
    memcache::{Compression, Dialect, Expiry, Fetch, Item, Method, Options, Swap, protocol::How},
};

use super::{address, client, dialects, nonblocking, started, until};
use crate::programs::need;

#[test]
fn every_operation_in_both_dialects() {
    let server = need!(started(64));
    for options in dialects() {
        let meta = options.dialect == Some(Dialect::Meta);
        let c = client(&server, options);
        c.flush_all(Duration::ZERO).unwrap();
        assert_eq!(c.get("a").unwrap(), None);
        c.set("a", "1", Expiry::Never).unwrap();
        assert_eq!(c.get("a").unwrap().unwrap().bytes, b"1");
        assert!(!c.add("a", "2", Expiry::Never).unwrap());
        assert!(c.add("b", "", Expiry::Never).unwrap());
        assert_eq!(c.get("b").unwrap().unwrap().bytes, b"");
        assert!(!c.replace("c", "2", Expiry::Never).unwrap());
        assert!(c.replace("a", "\r\n", Expiry::Never).unwrap());
        assert!(c.append("a", ">").unwrap() && c.prepend("a", "<").unwrap());
        assert!(!c.append("c", ">").unwrap());
        assert_eq!(c.get("a").unwrap().unwrap().bytes, b"<\r\n>");
        let old = c.gets("a").unwrap().unwrap().cas;
        assert_ne!(old, 0);
        assert_eq!(c.cas("a", "x", Expiry::Never, old).unwrap(), Swap::Stored);
        assert_eq!(c.cas("a", "y", Expiry::Never, old).unwrap(), Swap::Changed);
        assert_eq!(c.cas("c", "y", Expiry::Never, old).unwrap(), Swap::Gone);
        assert_eq!(c.incr("n", 1).unwrap(), None);
        c.set("n", "10", Expiry::Never).unwrap();
        assert_eq!(c.incr("n", 5).unwrap(), Some(15));
        assert_eq!(c.decr("n", 7).unwrap(), Some(8));
        assert_eq!(c.decr("n", 70).unwrap(), Some(0));
        assert_eq!(c.incr("n", u64::MAX).unwrap(), Some(u64::MAX));
        let error = c.incr("a", 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains(&address(&server)), "{error}");
        match c.incr_from("m", 1, 100, Expiry::Never) {
            Ok(n) => assert!(meta && n == Some(100)),
            Err(e) => assert!(!meta && e.kind() == ErrorKind::Unsupported, "{e}"),
        }
        assert!(c.touch("a", Duration::from_secs(100)).unwrap());
        assert!(!c.touch("none", Duration::from_secs(100)).unwrap());
        let touched = c.get_and_touch("a", Duration::from_secs(1000)).unwrap().unwrap();
        assert_eq!(touched.bytes, b"x");
        let about = c.debug("a").unwrap().unwrap();
        assert!(about.contains("size=") && about.contains("cls="), "{about}");
        assert!(c.delete("a").unwrap() && !c.delete("a").unwrap());
        let item = Item { bytes: b"f", flags: u32::MAX, expiry: Expiry::Never };
        c.store(How::Set, "f", item).unwrap();
        assert_eq!(c.get("f").unwrap().unwrap().flags, u32::MAX);
        c.set("gone", "x", Duration::ZERO).unwrap();
        assert_eq!(c.get("gone").unwrap(), None);
        let error = c.set("big", vec![0; 2 << 20], Expiry::Never).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
        assert_eq!(c.get("f").unwrap().unwrap().bytes, b"f");
        let (_, version) = c.version().remove(0);
        assert!(version.unwrap().starts_with("1."));
        let (_, stats) = c.stats("").remove(0);
        assert!(stats.unwrap().iter().any(|(name, _)| name == "curr_items"));
        let (_, settings) = c.stats("settings").remove(0);
        assert!(settings.unwrap().iter().any(|(name, _)| name == "item_size_max"));
        let mut seen = 0;
        c.list_keys(0, "hash", |_| {
            seen += 1;
            Ok(())
        })
        .unwrap();
        assert!(seen >= 3, "{seen}");
        assert!(c.stats("x\r\nflush_all").remove(0).1.is_err());
        c.flush_all(Duration::ZERO).unwrap();
        assert_eq!(c.get("f").unwrap(), None);
        let seen = c.statistics();
        assert!(seen.hits > 5 && seen.misses > 2 && seen.writes > 10, "{seen:?}");
        assert_eq!((seen.connections, seen.discarded), (2, 0), "{seen:?}");
    }
}

#[tokio::test]
async fn every_operation_without_blocking() {
    let server = need!(started(64));
    for options in dialects() {
        let c = nonblocking(&server, options);
        c.flush_all(Duration::ZERO).await.unwrap();
        c.set("a", "1", Expiry::Never).await.unwrap();
        assert_eq!(c.get("a").await.unwrap().unwrap().bytes, b"1");
        assert!(!c.add("a", "2", Expiry::Never).await.unwrap());
        assert!(c.replace("a", "2", Expiry::Never).await.unwrap());
        assert!(c.append("a", "3").await.unwrap() && c.prepend("a", "1").await.unwrap());
        let value = c.gets("a").await.unwrap().unwrap();
        assert_eq!(value.bytes, b"123");
        assert_eq!(c.cas("a", "7", Expiry::Never, value.cas).await.unwrap(), Swap::Stored);
        assert_eq!(c.incr("a", 5).await.unwrap(), Some(12));
        assert_eq!(c.decr("a", 2).await.unwrap(), Some(10));
        assert!(c.touch("a", Duration::from_secs(9)).await.unwrap());
        assert!(c.get_and_touch("a", Duration::from_secs(9)).await.unwrap().is_some());
        assert!(c.version().await.remove(0).1.is_ok());
        assert!(c.stats("items").await.remove(0).1.is_ok());
        let mut keys = Vec::new();
        let list = c.list_keys(0, "hash", |line| {
            keys.push(String::from_utf8_lossy(line).into_owned());
            Ok(())
        });
        list.await.unwrap();
        assert!(keys.iter().any(|line| line.starts_with("key=a ")), "{keys:?}");
        let items: Vec<_> = (0..3000).map(|n| (format!("k{n}"), format!("v{n}"))).collect();
        assert!(c.set_multi(items.iter().cloned(), Expiry::Never).await.is_empty());
        assert_eq!(c.add_multi(items.iter().cloned(), Expiry::Never).await.len(), 3000);
        let keys: Vec<_> = (0..4000).map(|n| format!("k{n}")).collect();
        let found = c.get_multi(&keys).await;
        for (n, found) in found.into_iter().enumerate() {
            let found = found.unwrap().map(|value| value.bytes);
            assert_eq!(found, (n < 3000).then(|| format!("v{n}").into_bytes()));
        }
        let (deleted, failed) = c.delete_multi(&keys).await;
        assert!(deleted == 3000 && failed.is_empty());
        let mut writes = c.noblock();
        for n in 0..5000 {
            writes.set(format!("k{n}"), vec![b'x'; 100], Expiry::Never).await.unwrap();
        }
        writes.set("big", vec![0; 2 << 20], Expiry::Never).await.unwrap();
        writes.delete("k7").await.unwrap();
        let lost = writes.barrier().await;
        assert_eq!(lost.len(), 1, "{lost:?}");
        assert_eq!(lost[0].key.as_deref(), Some(&b"big"[..]));
        drop(writes);
        assert_eq!(c.get("k7").await.unwrap(), None);
        assert!(c.get("k4999").await.unwrap().is_some());
        assert!(c.delete("a").await.unwrap());
    }
}

#[test]
fn one_of_many_makes_what_is_missing() {
    let server = need!(started(64));
    let c = client(&server, Options::default());
    let made = AtomicUsize::new(0);
    let fetch = Fetch::new(Duration::from_secs(100));
    thread::scope(|scope| {
        let asks: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    c.fetch_with("page", fetch, || {
                        made.fetch_add(1, Ordering::SeqCst);
                        // Until the others have missed it.
                        until("others ask", || c.statistics().hits >= 8);
                        Ok::<_, Error>(b"page".to_vec())
                    })
                })
            })
            .collect();
        for ask in asks {
            assert_eq!(ask.join().unwrap().unwrap(), b"page");
        }
    });
    assert_eq!(made.load(Ordering::SeqCst), 1);
    // Marked as out of date, one makes it anew, and the others read the old one meanwhile.
    assert!(c.invalidate("page", Duration::from_secs(60)).unwrap());
    let new = c.fetch_with("page", fetch, || {
        let other = c.fetch_with("page", fetch, || -> Result<Vec<u8>, Error> { unreachable!() });
        assert_eq!(other?, b"page");
        Ok::<_, Error>(b"new".to_vec())
    });
    assert_eq!(new.unwrap(), b"new");
    assert_eq!(c.get("page").unwrap().unwrap().bytes, b"new");
    // Near its end it is made anew by one.
    c.set("near", "old", Duration::from_secs(5)).unwrap();
    let early = Fetch { recache: Duration::from_secs(30), ..fetch };
    let near = c.fetch_with("near", early, || {
        let other = c.fetch_with("near", early, || -> Result<Vec<u8>, Error> { unreachable!() });
        assert_eq!(other?, b"old");
        Ok::<_, Error>(b"anew".to_vec())
    });
    assert_eq!(near.unwrap(), b"anew");
    // Who fails leaves it to the next; an empty value is one.
    let failed = c.fetch("bad", Expiry::Never, || Err(Error::invalid("no")));
    assert_eq!(failed.unwrap_err().context(), "no");
    assert_eq!(c.fetch("bad", Expiry::Never, || Ok::<_, Error>(vec![])).unwrap(), b"");
    let empty = c.fetch("bad", Expiry::Never, || -> Result<Vec<u8>, Error> { unreachable!() });
    assert_eq!(empty.unwrap(), b"");
    // Old servers, and no server at all.
    let [_, classic] = dialects();
    let old = client(&server, classic);
    assert_eq!(old.fetch("o", Expiry::Never, || Ok::<_, Error>(b"v".to_vec())).unwrap(), b"v");
    assert_eq!(c.get("o").unwrap().unwrap().bytes, b"v");
    drop(server);
    assert_eq!(c.fetch("o", Expiry::Never, || Ok::<_, Error>(b"w".to_vec())).unwrap(), b"w");
}

#[tokio::test]
async fn one_of_many_makes_what_is_missing_without_blocking() {
    let server = need!(started(64));
    let c = nonblocking(&server, Options::default());
    let made = AtomicUsize::new(0);
    let asks = (0..8).map(|_| {
        c.fetch("page", Duration::from_secs(100), async || {
            made.fetch_add(1, Ordering::SeqCst);
            while c.statistics().hits < 8 {
                tokio::task::yield_now().await;
            }
            Ok::<_, Error>(b"page".to_vec())
        })
    });
    let pages = futures_util::future::try_join_all(asks).await.unwrap();
    assert!(pages.iter().all(|page| page == b"page"));
    assert_eq!(made.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn values_are_packed_and_objects_come_back() {
    let server = need!(started(64));
    let long = b"again and again ".repeat(10_000);
    for how in [Method::Zstd(3), Method::Zlib(6)] {
        let compression = Some(Compression { from: 1000, how });
        let options = Options { compression, ..Options::default() };
        let c = client(&server, options.clone());
        c.set("long", &long, Expiry::Never).unwrap();
        assert_eq!(c.get("long").unwrap().unwrap().bytes, long);
        assert_eq!(c.get_multi(&["long"])[0].as_ref().unwrap().as_ref().unwrap().bytes, long);
        let raw = client(&server, Options::default()).get("long").unwrap().unwrap();
        assert!(raw.bytes.len() < 1000 && raw.flags != 0);
        assert!(c.append("long", "x").is_err());
        let a = nonblocking(&server, options);
        assert_eq!(a.get("long").await.unwrap().unwrap().bytes, long);
    }
    let c = client(&server, Options::default());
    let object = ("Ann".to_owned(), vec![1u32, 2, 3]);
    for format in ["json", "msgpack+zstd", "marshal+base64", "pickle"] {
        let wrapped: steelyard::format::Wrapped = format.parse().unwrap();
        let objects = c.objects(wrapped.clone());
        objects.set("ann", &object, Expiry::Never).unwrap();
        assert_eq!(objects.get("ann").unwrap(), Some(object.clone()));
        let a = nonblocking(&server, Options::default());
        let found: Option<(String, Vec<u32>)> = a.objects(wrapped).get("ann").await.unwrap();
        assert_eq!(found, Some(object.clone()));
    }
    c.set("text", "{", Expiry::Never).unwrap();
    let error = c.objects(Format::Json).get::<u32>("text").unwrap_err();
    assert!(error.to_string().contains("\"text\""), "{error}");
    let foreign = c.objects(Format::Json).reading(steelyard::memcache::Foreign::Pymemcache);
    let item = Item { bytes: b"5", flags: 2, expiry: Expiry::Never };
    c.store(How::Set, "five", item).unwrap();
    assert_eq!(foreign.get::<u32>("five").unwrap(), Some(5));
}
