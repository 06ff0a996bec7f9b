//! Keys of all kinds: none is ever a command, and a bad one fails alone.

use steelyard::{
    ErrorKind,
    memcache::{Client, Expiry, Options},
};

use super::{address, client, dialects, nonblocking, started};
use crate::programs::need;

/// Every byte alone, in front, in the middle, at the end; what looks like commands; long ones.
fn odd() -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    for byte in 0..=255u8 {
        keys.push(vec![byte]);
        keys.push(vec![b'k', byte, b'k']);
        keys.push([&[byte], &b"flush_all"[..], &[byte]].concat());
    }
    for text in [
        "a\r\nflush_all\r\n",
        "a b",
        "x 0 0 1\r\ny\r\n",
        "größe",
        "日本語",
        "-",
        "YQ==",
        "a\tb",
        "\0",
    ] {
        keys.push(text.into());
    }
    keys.extend([vec![b'x'; 250], vec![b' '; 186], "ü".repeat(125).into_bytes()]);
    keys
}

fn bad() -> Vec<(Vec<u8>, ErrorKind)> {
    vec![
        (vec![], ErrorKind::Invalid),
        (vec![b'x'; 251], ErrorKind::TooLarge),
        (vec![b' '; 187], ErrorKind::TooLarge),
        ("ü".repeat(150).into_bytes(), ErrorKind::TooLarge),
        (vec![b'\n'; 10_000], ErrorKind::TooLarge),
    ]
}

#[tokio::test]
async fn every_key_is_held_and_none_is_obeyed() {
    let server = need!(started(64));
    let (c, a) = (client(&server, Options::default()), nonblocking(&server, Options::default()));
    c.set("witness", "here", Expiry::Never).unwrap();
    let mut keys = odd();
    keys.sort();
    keys.dedup();
    for (n, key) in keys.iter().enumerate() {
        c.set(key, n.to_string(), Expiry::Never).unwrap();
    }
    let found = c.get_multi(&keys);
    let without_blocking = a.get_multi(&keys).await;
    for (n, key) in keys.iter().enumerate() {
        let want = n.to_string().into_bytes();
        assert_eq!(c.get(key).unwrap().unwrap().bytes, want, "{key:?}");
        assert_eq!(found[n].as_ref().unwrap().as_ref().unwrap().bytes, want, "{key:?}");
        let other = without_blocking[n].as_ref().unwrap().as_ref().unwrap();
        assert_eq!(other.bytes, want, "{key:?}");
    }
    let mut writes = c.noblock();
    for key in &keys {
        writes.set(key, "quiet", Expiry::Never).unwrap();
    }
    assert!(writes.barrier().is_empty());
    drop(writes);
    assert_eq!(c.get(&keys[7]).unwrap().unwrap().bytes, b"quiet");
    assert!(c.set_multi(keys.iter().map(|key| (key, "multi")), Expiry::Never).is_empty());
    let (deleted, failed) = c.delete_multi(&keys);
    assert_eq!((deleted, failed.len()), (keys.len() as u64, 0));
    assert_eq!(c.get("witness").unwrap().unwrap().bytes, b"here");
}

#[tokio::test]
async fn a_bad_key_fails_alone() {
    let server = need!(started(64));
    for options in [Options::default(), dialects()[1].clone()] {
        let c = client(&server, options.clone());
        let a = nonblocking(&server, options);
        for (key, kind) in bad() {
            assert_eq!(c.get(&key).unwrap_err().kind(), kind);
            assert_eq!(c.set(&key, "x", Expiry::Never).unwrap_err().kind(), kind);
            assert_eq!(c.delete(&key).unwrap_err().kind(), kind);
            assert_eq!(a.get(&key).await.unwrap_err().kind(), kind);
            assert_eq!(c.noblock().set(&key, "x", Expiry::Never).unwrap_err().kind(), kind);
            let keys = [b"one".to_vec(), key.clone(), b"two".to_vec()];
            let failed = c.set_multi(keys.iter().map(|key| (key, "v")), Expiry::Never);
            assert_eq!(failed.len(), 1);
            assert_eq!((failed[0].number, &failed[0].key), (1, &key));
            for found in [c.get_multi(&keys), a.get_multi(&keys).await] {
                assert!(
                    found[0].as_ref().unwrap().is_some() && found[2].as_ref().unwrap().is_some()
                );
                assert_eq!(found[1].as_ref().unwrap_err().kind(), kind);
            }
            let (deleted, failed) = c.delete_multi(&keys);
            assert_eq!((deleted, failed.len()), (2, 1));
        }
    }
    // A value that is too large fails alone too.
    let c = client(&server, Options::default());
    let items = [("a", vec![0; 10]), ("b", vec![0; 2 << 20]), ("c", vec![0; 10])];
    let failed = c.set_multi(items, Expiry::Never);
    assert_eq!(failed.len(), 1);
    assert_eq!((failed[0].number, failed[0].error.kind()), (1, ErrorKind::TooLarge));
    assert!(c.get("c").unwrap().is_some());
}

#[test]
fn old_servers_refuse_what_they_cannot_hold() {
    let server = need!(started(64));
    let c = client(&server, dialects()[1].clone());
    assert_eq!(c.set("a b", "x", Expiry::Never).unwrap_err().kind(), ErrorKind::Unsupported);
    let found = c.get_multi(&["a b", "ab"]);
    assert_eq!(found[0].as_ref().unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(found[1].as_ref().unwrap(), &None);
    let failed = c.set_multi([("a b", "1"), ("ab", "1")], Expiry::Never);
    assert!(failed.len() == 1 && failed[0].number == 0);
}

#[test]
fn namespaces_and_digests_keep_keys_apart() {
    let server = need!(started(64));
    let in_space = |namespace: &str| {
        let options =
            Options { namespace: namespace.into(), hash_long_keys: true, ..Options::default() };
        client(&server, options)
    };
    let (one, two) = (in_space("one:"), in_space("two:"));
    let long = [vec![b'x'; 300], vec![b' '; 300], vec![b'y'; 10_000]];
    for key in [b"k".to_vec(), b"a b".to_vec()].iter().chain(&long) {
        one.set(key, "1", Expiry::Never).unwrap();
        assert_eq!(two.get(key).unwrap(), None);
        two.set(key, "2", Expiry::Never).unwrap();
        assert_eq!(one.get(key).unwrap().unwrap().bytes, b"1");
        assert_eq!(one.get_multi(&[key])[0].as_ref().unwrap().as_ref().unwrap().bytes, b"1");
    }
    let bare = Client::new([address(&server)], Options::default()).unwrap();
    assert_eq!(bare.get("one:k").unwrap().unwrap().bytes, b"1");
}
