//! Batches that no buffer holds, and what is told of writes nobody waited for.

use std::time::Duration;

use steelyard::{
    ErrorKind,
    memcache::{Client, Expiry, Options},
};

use super::{address, amount, dialects, nonblocking, started};
use crate::{
    children::{Child, Command},
    programs::{Need, need},
};

/// How much memory this process has taken at most, in kilobytes.
fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

/// A memcached on a Unix socket, which is stopped with its value.
struct OnSocket {
    child: Child,
    folder: tempfile::TempDir,
}

impl OnSocket {
    fn start(megabytes: usize) -> Need<OnSocket> {
        crate::programs::found("memcached")?;
        let folder = tempfile::tempdir().unwrap();
        let child = Command::new("memcached")
            .args(["-a", "0777", "-t", "1", "-m", &megabytes.to_string(), "-u", "root", "-s"])
            .arg(folder.path().join("m"))
            .spawn()
            .unwrap();
        let server = OnSocket { child, folder };
        super::until("it listens", || std::path::Path::new(&server.address()).exists());
        Ok(server)
    }

    fn address(&self) -> String {
        self.folder.path().join("m").display().to_string()
    }
}

impl Drop for OnSocket {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn key(n: usize) -> String {
    format!("key{n:07}")
}

/// A kilobyte that is this key's.
fn value(n: usize) -> Vec<u8> {
    format!("{n:010}").repeat(103).into_bytes()
}

/// All keys set, read and deleted, in one call each. STEELYARD_MEMCACHE_KEYS says how many:
/// 1,000,000 for the full run, which takes a server of 2 GB.
/// The peak of memory is the process's, and so this has a process of its own.
#[tokio::test]
async fn batches_of_any_size_come_through_in_bounded_memory() {
    if !crate::programs::alone(
        "memcache::batches::batches_of_any_size_come_through_in_bounded_memory",
    ) {
        // Not a skip: it was run by itself.
        return;
    }
    let keys = amount("STEELYARD_MEMCACHE_KEYS", 50_000);
    let megabytes = ((keys * 1300) >> 20) + 64;
    let tcp = need!(started(megabytes as u64));
    let unix = need!(OnSocket::start(megabytes));
    for address in [address(&tcp), unix.address()] {
        let before = most_memory();
        let c = Client::new([&address], Options::default()).unwrap();
        let failed = c.set_multi((0..keys).map(|n| (key(n), value(n))), Expiry::Never);
        assert!(failed.is_empty(), "{address}: {:?}", failed.first());
        let mut found = 0;
        c.get_each((0..keys).map(key), |n, _, value_found| {
            let view = value_found.unwrap().expect("it was put there");
            assert!(*view.bytes == value(n), "{n} has the value of another");
            found += 1;
        });
        assert_eq!(found, keys, "{address}");
        let a = steelyard::memcache::AsyncClient::new([&address], Options::default()).unwrap();
        let mut found = 0;
        a.get_each((0..keys).map(key), |n, _, value_found| {
            assert!(*value_found.unwrap().expect("there").bytes == value(n));
            found += 1;
        })
        .await;
        assert_eq!(found, keys, "{address}");
        let mut writes = c.noblock();
        for n in 0..keys {
            writes.set(key(n), value(n), Expiry::Never).unwrap();
        }
        assert!(writes.barrier().is_empty());
        drop(writes);
        let (deleted, failed) = a.delete_multi((0..keys).map(key)).await;
        assert!(deleted == keys as u64 && failed.is_empty());
        let taken = most_memory() - before;
        println!("{address}: {keys} keys of 1 KB, {taken} KB more memory than before");
        assert!(taken < 100 << 10, "{taken} KB for {keys} keys");
        assert_eq!((c.statistics().discarded, a.statistics().discarded), (0, 0));
    }
}

#[test]
fn large_values_in_one_batch_block_nobody() {
    let server = need!(started(256));
    let c = Client::new([address(&server)], Options::default()).unwrap();
    let large = |n: usize| vec![n as u8; 900_000];
    let failed = c.set_multi((0..100).map(|n| (key(n), large(n))), Expiry::Never);
    assert!(failed.is_empty());
    let keys: Vec<_> = (0..100).map(key).collect();
    for (n, found) in c.get_multi(&keys).into_iter().enumerate() {
        assert!(found.unwrap().unwrap().bytes == large(n));
    }
}

#[tokio::test]
async fn several_servers_are_read_side_by_side() {
    let servers = need!((0..3).map(|_| started(64)).collect::<Need<Vec<_>>>());
    let c = Client::new(servers.iter().map(address), Options::default()).unwrap();
    let items: Vec<_> = (0..20_000).map(|n| (key(n), value(n))).collect();
    assert!(c.set_multi(items.iter().map(|(k, v)| (k, v)), Expiry::Never).is_empty());
    let keys: Vec<_> = (0..20_000).map(key).collect();
    for (n, found) in c.get_multi(&keys).into_iter().enumerate() {
        assert!(found.unwrap().unwrap().bytes == value(n));
    }
    let mut writes = c.noblock();
    for (key, _) in &items {
        writes.delete(key).unwrap();
    }
    assert!(writes.barrier().is_empty());
    drop(writes);
    assert!(c.get_multi(&keys).into_iter().all(|found| found.unwrap().is_none()));
    assert_eq!(c.statistics().connections, 3);
}

#[test]
fn errors_of_writes_nobody_waited_for_come_at_the_barrier() {
    let server = need!(started(64));
    for options in dialects() {
        let c = super::client(&server, options);
        c.flush_all(Duration::ZERO).unwrap();
        let mut writes = c.noblock();
        writes.set("before", "x", Expiry::Never).unwrap();
        writes.set("big", vec![0; 2 << 20], Expiry::Never).unwrap();
        writes.set("after", "x", Expiry::Never).unwrap();
        writes.set("bigger", vec![0; 3 << 20], Expiry::Never).unwrap();
        let lost = writes.barrier();
        let keys: Vec<_> = lost.iter().map(|loss| loss.key.as_deref().unwrap()).collect();
        assert_eq!(keys, [&b"big"[..], b"bigger"], "{lost:?}");
        assert!(lost.iter().all(|loss| loss.error.kind() == ErrorKind::TooLarge), "{lost:?}");
        assert!(lost[0].error.to_string().contains(&address(&server)), "{lost:?}");
        // They are told once, and all goes on.
        writes.set("later", "x", Expiry::Never).unwrap();
        assert!(writes.barrier().is_empty());
        drop(writes);
        for key in ["before", "after", "later"] {
            assert!(c.get(key).unwrap().is_some());
        }
        assert_eq!(c.statistics().connections, 1);
        // Without a barrier the connection is not used again.
        let mut writes = c.noblock();
        writes.set("unsent", "x", Expiry::Never).unwrap();
        drop(writes);
        assert!(c.get("before").unwrap().is_some());
        assert_eq!(c.statistics().connections, 2);
    }
}

#[tokio::test]
async fn a_server_that_dies_loses_what_was_not_confirmed() {
    let mut server = need!(started(64));
    let c = super::client(&server, Options::default());
    let a = nonblocking(&server, Options::default());
    let (mut writes, mut others) = (c.noblock(), a.noblock());
    for n in 0..100 {
        writes.set(key(n), "x", Expiry::Never).unwrap();
        others.set(key(n), "x", Expiry::Never).await.unwrap();
    }
    server.kill();
    for lost in [writes.barrier(), others.barrier().await] {
        assert!(!lost.is_empty());
        assert_eq!(lost[0].error.kind(), ErrorKind::Unavailable, "{lost:?}");
    }
}
