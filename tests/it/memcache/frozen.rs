//! Real servers that are frozen, killed and started anew, and what becomes of their keys.

use std::time::{Duration, Instant};

use steelyard::{
    ErrorKind,
    memcache::{AsyncClient, Client, Expiry, Failover, Options, Patience, Server},
};

use super::{address, client, nonblocking, started, until};
use crate::programs::{Need, need};

fn options(failover: Failover) -> Options {
    Options {
        timeout: Duration::from_millis(250),
        patience: Patience {
            first: Duration::from_millis(20),
            most: Duration::from_millis(100),
            ..Patience::default()
        },
        failover,
        ..Options::default()
    }
}

const LATEST: Duration = Duration::from_millis(300);

/// Begins to wait as long as an operation may take, on a thread; the answer says how much later than
/// that this machine woke it, which other tests run on too.
fn waiter() -> impl FnOnce() -> Duration {
    const LIMIT: Duration = Duration::from_millis(250);
    let waits = std::thread::spawn(|| {
        let begin = Instant::now();
        while begin.elapsed() < LIMIT {
            std::thread::park_timeout(LIMIT.saturating_sub(begin.elapsed()));
        }
        begin.elapsed() - LIMIT
    });
    move || waits.join().unwrap()
}

#[test]
fn a_frozen_server_costs_one_call_its_time() {
    let server = need!(started(64));
    let c = client(&server, options(Failover::Fail));
    c.set("key", "value", Expiry::Never).unwrap();
    server.freeze();
    let (begin, late) = (Instant::now(), waiter());
    let error = c.get("key").unwrap_err();
    let took = begin.elapsed();
    assert!(error.is_timeout(), "{error}");
    assert!(took < LATEST + late(), "{took:?}");
    let begin = Instant::now();
    for _ in 0..1000 {
        assert!(c.get("key").is_err() && c.set("key", "x", Expiry::Never).is_err());
    }
    assert!(begin.elapsed() < LATEST, "{:?}", begin.elapsed());
    // A value that no buffer holds, to a new client.
    let other = client(&server, options(Failover::Fail));
    let large = vec![b'x'; 100 << 20];
    let (begin, late) = (Instant::now(), waiter());
    assert!(other.set("large", &large, Expiry::Never).is_err());
    let took = begin.elapsed();
    // A copy of it is made.
    assert!(took < LATEST + Duration::from_millis(100) + late(), "{took:?}");
    server.thaw();
    until("it is noticed", || c.get("key").is_ok());
    // What was on its way when it froze is not the answer to anything later.
    assert_eq!(c.get("key").unwrap().unwrap().bytes, b"value");
    let seen = c.statistics();
    assert_eq!((seen.deaths, seen.recoveries, seen.timeouts), (1, 1, 1), "{seen:?}");
}

#[tokio::test]
async fn a_frozen_server_costs_one_call_its_time_without_blocking() {
    let server = need!(started(64));
    let c = nonblocking(&server, options(Failover::Fail));
    c.set("key", "value", Expiry::Never).await.unwrap();
    server.freeze();
    let (begin, late) = (Instant::now(), waiter());
    let asked = futures_util::future::join_all((0..10).map(|_| c.get("key"))).await;
    let took = begin.elapsed();
    assert!(asked.iter().all(Result::is_err));
    assert!(took < LATEST + late(), "{took:?}");
    let begin = Instant::now();
    for _ in 0..1000 {
        assert!(c.get("key").await.is_err());
    }
    assert!(begin.elapsed() < LATEST, "{:?}", begin.elapsed());
    server.thaw();
    let begin = Instant::now();
    while c.get("key").await.is_err() {
        assert!(begin.elapsed() < Duration::from_secs(10), "it is not noticed");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(c.get("key").await.unwrap().unwrap().bytes, b"value");
}

/// However many portions the keys of a call come in, it waits once.
#[tokio::test]
async fn a_call_on_many_keys_waits_once_for_a_frozen_server() {
    let server = need!(started(64));
    let stubborn = Options {
        patience: Patience { failures: None, ..Patience::default() },
        ..options(Failover::Fail)
    };
    let keys: Vec<String> = (0..5_000).map(|n| format!("key-{n:05}")).collect();
    let items = || keys.iter().map(|key| (key, [b'x'; 1000]));
    let c = client(&server, stubborn.clone());
    let a = nonblocking(&server, stubborn);
    c.set("key", "value", Expiry::Never).unwrap();
    a.set("key", "value", Expiry::Never).await.unwrap();
    server.freeze();
    let mut waited = 0;
    let mut once = |done: usize, timeouts: u64| {
        assert_eq!(done, keys.len(), "all fail");
        waited += 1;
        assert_eq!(timeouts, waited, "one wait a call");
    };
    once(c.set_multi(items(), Expiry::Never).len(), c.statistics().timeouts);
    let failed = c.get_multi(&keys).into_iter().filter(Result::is_err).count();
    once(failed, c.statistics().timeouts);
    once(c.delete_multi(&keys).1.len(), c.statistics().timeouts);
    waited = 0;
    let mut once = |done: usize, timeouts: u64| {
        assert_eq!(done, keys.len(), "all fail");
        waited += 1;
        assert_eq!(timeouts, waited, "one wait a call");
    };
    once(a.set_multi(items(), Expiry::Never).await.len(), a.statistics().timeouts);
    let failed = a.get_multi(&keys).await.into_iter().filter(Result::is_err).count();
    once(failed, a.statistics().timeouts);
    once(a.delete_multi(&keys).await.1.len(), a.statistics().timeouts);
    server.thaw();
}

#[tokio::test]
async fn a_server_that_was_started_anew_is_found_by_the_next_call() {
    let mut server = need!(started(64));
    let (c, a) = (client(&server, Options::default()), nonblocking(&server, Options::default()));
    c.set("key", "value", Expiry::Never).unwrap();
    a.set("key", "value", Expiry::Never).await.unwrap();
    server.kill();
    server.restart().unwrap();
    assert_eq!(c.get("key").unwrap(), None);
    assert_eq!(a.get("key").await.unwrap(), None);
    assert_eq!((c.statistics().retries, a.statistics().retries), (1, 1));
    server.kill();
    server.restart().unwrap();
    assert!(c.get_multi(&["a", "b"]).iter().all(Result::is_ok));
    assert!(a.get_multi(&["a", "b"]).await.iter().all(Result::is_ok));
    // What would count twice is not said twice.
    c.set("n", "1", Expiry::Never).unwrap();
    server.kill();
    server.restart().unwrap();
    assert_eq!(c.incr("n", 1).unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(c.incr("n", 1).unwrap(), None);
}

#[test]
fn keys_of_the_dead_are_misses_or_elsewhere() {
    let [one, two, extra] = [need!(started(64)), need!(started(64)), need!(started(64))];
    let gutter = Failover::Gutter {
        servers: vec![Server::new(address(&extra).parse().unwrap())],
        expiry: Duration::from_secs(60),
    };
    for failover in [Failover::Miss, Failover::Eject, gutter] {
        let c = Client::new([address(&one), address(&two)], options(failover.clone())).unwrap();
        c.flush_all(Duration::ZERO).unwrap();
        let keys: Vec<_> = (0..200).map(|n| format!("key{n}")).collect();
        assert!(c.set_multi(keys.iter().map(|k| (k, "old")), Expiry::Never).is_empty());
        two.freeze();
        // One call finds out; from then on all goes on.
        until("it is dead", || {
            keys.iter().any(|key| c.get(key).is_err()) || c.statistics().deaths > 0
        });
        assert!(c.set_multi(keys.iter().map(|k| (k, "new")), Expiry::Never).is_empty());
        let found = c.get_multi(&keys);
        for (key, found) in keys.iter().zip(found) {
            let here = c.server_of(key) == address(&one);
            match (found.unwrap(), &failover) {
                (None, Failover::Miss) => assert!(!here),
                (Some(value), _) => {
                    assert!(value.bytes == b"new" && (here || failover != Failover::Miss))
                }
                other => panic!("{key}: {other:?}"),
            }
        }
        let begin = Instant::now();
        for key in &keys {
            c.get(key).unwrap();
            c.set(key, "new", Expiry::Never).unwrap();
            c.delete(key).unwrap();
        }
        assert!(begin.elapsed() < LATEST, "{:?}", begin.elapsed());
        two.thaw();
        until("it is alive", || c.servers()[1].1);
        // Its keys are its own again. What was dropped was never put there.
        let key = keys.iter().find(|key| c.server_of(key) == address(&two)).unwrap();
        assert_eq!(c.get(key).unwrap().unwrap().bytes, b"old", "{failover:?}");
    }
}

#[tokio::test]
async fn a_fourth_server_leaves_most_keys_where_they_are() {
    let servers = need!((0..4).map(|_| started(64)).collect::<Need<Vec<_>>>());
    let names: Vec<_> = servers.iter().map(address).collect();
    let three = AsyncClient::new(&names[..3], Options::default()).unwrap();
    let four = AsyncClient::new(&names, Options::default()).unwrap();
    let keys: Vec<_> = (0..4000).map(|n| format!("key{n}")).collect();
    let items = keys.iter().map(|key| (key, key));
    assert!(three.set_multi(items, Expiry::Never).await.is_empty());
    let found = four.get_multi(&keys).await;
    let kept = found.iter().filter(|value| matches!(value, Ok(Some(_)))).count();
    assert!(kept > 2800, "{kept} of 4000");
}
