//! Very many operations over a wire that delays and cuts at random, with calls that are given up
//! half-way: no key ever has another's value.

use std::{
    io::ErrorKind as Kind,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use steelyard::memcache::{AsyncClient, Expiry, Options, Patience};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::{address, amount, started};
use crate::programs::need;

/// Random numbers that are the same on every run (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

/// Passes on what comes, in pieces; delays one piece in 200, cuts one in 300.
async fn wire(mut from: impl AsyncReadExt + Unpin, mut to: impl AsyncWriteExt + Unpin, seed: u64) {
    let mut random = Random(seed);
    let mut bytes = vec![0; 4096];
    while let Ok(n @ 1..) = from.read(&mut bytes).await {
        let mut rest = &bytes[..n];
        while !rest.is_empty() {
            let (piece, after) =
                rest.split_at((1 + random.below(2 * rest.len() as u64) as usize).min(rest.len()));
            match random.below(1200) {
                // Not a skip: the wire is cut.
                0..4 => return,
                4..10 => tokio::time::sleep(Duration::from_millis(random.below(5))).await,
                _ => {}
            }
            if to.write_all(piece).await.is_err() {
                // Not a skip: the wire is cut.
                return;
            }
            rest = after;
        }
    }
}

async fn chaos(server: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut seed = 0;
        loop {
            let client = match listener.accept().await {
                Ok((client, _)) => client,
                Err(e) if e.kind() == Kind::ConnectionAborted => continue,
                // Not a skip: nobody listens any more.
                Err(_) => return,
            };
            seed += 2;
            let server = TcpStream::connect(&server).await.unwrap();
            tokio::spawn(async move {
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                tokio::select! {
                    () = wire(from_client, to_server, seed) => {}
                    () = wire(from_server, to_client, seed + 1) => {}
                }
            });
        }
    });
    address.to_string()
}

/// STEELYARD_MEMCACHE_OPERATIONS says how many: 100,000 for the full run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_key_ever_has_the_value_of_another() {
    let server = need!(started(64));
    let operations = amount("STEELYARD_MEMCACHE_OPERATIONS", 10_000) as u64;
    let options = Options {
        timeout: Duration::from_millis(200),
        pool: 32,
        patience: Patience { failures: None, ..Patience::default() },
        ..Options::default()
    };
    let c = AsyncClient::new([chaos(address(&server)).await], options).unwrap();
    let next = Arc::new(AtomicU64::new(0));
    let (right, failed, dropped) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let counts = Arc::new((right, failed, dropped));
    let tasks: Vec<_> = (0..32)
        .map(|task| {
            let (c, next, counts) = (c.clone(), next.clone(), counts.clone());
            tokio::spawn(async move {
                let mut random = Random(task);
                while next.fetch_add(1, Ordering::Relaxed) < operations {
                    let key = format!("key{}", random.below(2000));
                    let keys: Vec<_> = (0..5).map(|n| format!("{key}{n}")).collect();
                    let kind = random.below(10);
                    let work = async {
                        match kind {
                            0..3 => c.set(&key, value_of(&key), Expiry::Never).await.is_ok(),
                            3 => {
                                let values = keys.iter().map(|key| value_of(key));
                                let items: Vec<_> = keys.iter().cloned().zip(values).collect();
                                c.set_multi(items, Expiry::Never).await.is_empty()
                            }
                            4 => {
                                let found = c.get_multi(&keys).await;
                                for (key, found) in keys.iter().zip(&found) {
                                    if let Ok(Some(value)) = found {
                                        assert_eq!(value.bytes, value_of(key), "{key}");
                                    }
                                }
                                found.iter().all(Result::is_ok)
                            }
                            5 => c.delete(&key).await.is_ok(),
                            _ => match c.get(&key).await {
                                Ok(Some(value)) => {
                                    assert_eq!(value.bytes, value_of(&key), "{key}");
                                    true
                                }
                                other => other.is_ok(),
                            },
                        }
                    };
                    // One in ten is given up while it is under way.
                    let patience = match random.below(10) {
                        0 => Duration::from_micros(random.below(3000)),
                        _ => Duration::from_secs(60),
                    };
                    let count = match tokio::time::timeout(patience, work).await {
                        Ok(true) => &counts.0,
                        Ok(false) => &counts.1,
                        Err(_) => &counts.2,
                    };
                    count.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no key has the value of another");
    }
    let [right, failed, dropped] =
        [&counts.0, &counts.1, &counts.2].map(|count| count.load(Ordering::Relaxed));
    println!("{right} right, {failed} failed, {dropped} given up; {:?}", c.statistics());
    assert!(right > operations / 2 && failed > 0 && dropped > 0);
}

/// What only this key has, of a length of its own.
fn value_of(key: &str) -> Vec<u8> {
    key.repeat(1 + key.len() % 7 * 30).into_bytes()
}
