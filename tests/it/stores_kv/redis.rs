//! Redis alone: durability, layouts that meet, SCAN while keys go, TLS, logins, sockets.

use std::{collections::HashSet, path::Path, process::Stdio};

use futures_util::TryStreamExt;
use steelyard::{
    ErrorKind,
    durability::Tier,
    record::{Document, Value},
    server::{self, Wish},
    store::{KeyRange, Layout, Row},
};

use super::{all, in_a_moment, key, opened, row, started};
use crate::{
    children::{Child, Command},
    programs::{self, Need, need},
};

#[tokio::test]
async fn durability_is_compared_with_what_the_server_promises() {
    for set in Tier::ALL {
        let wish = Wish { tier: Some(set), ..Wish::default() };
        let server = need!(started("redis", wish));
        for asked in Tier::ALL {
            let url = format!("{}?durability={asked}", server.url());
            match steelyard::open(&url).await {
                Ok(place) => {
                    assert!(asked <= set, "{asked} of {set}");
                    let about = place.describe().await.unwrap();
                    assert_eq!((about.asked, about.set), (Some(asked), Some(set)));
                    assert_eq!(about.product, "Redis");
                    assert!(about.version.contains('.'), "{about:?}");
                    let log = if set == Tier::T0 { "no" } else { "yes" };
                    assert!(about.settings.contains(&("appendonly".into(), log.into())));
                }
                Err(e) => {
                    assert!(asked > set, "{asked} of {set}: {e}");
                    assert_eq!(e.kind(), ErrorKind::Unsupported);
                    assert!(e.to_string().contains("appendfsync"), "{e}");
                }
            }
        }
    }
}

#[tokio::test]
async fn layouts_do_not_mix_and_hashes_are_replaced_whole() {
    let server = need!(started("redis", Wish::default()));
    let blobs = opened(&format!("{}?table=t", server.url())).await;
    let hashes = opened(&format!("{}?table=t&layout=document", server.url())).await;
    blobs.put(&[row("a", 1)]).await.unwrap();
    blobs.prepare(&Layout::plain()).await.unwrap();
    let error = hashes.prepare(&Layout::plain()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    let error = hashes.get(&[key("a")]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    blobs.drop_table().await.unwrap();

    hashes.prepare(&Layout::plain()).await.unwrap();
    hashes.put(&[row("a", 1)]).await.unwrap();
    let rows = blobs.scan(&KeyRange::all()).await.unwrap();
    let error = rows.try_collect::<Vec<_>>().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    let other = Document::from_iter([("only", "this")]);
    hashes.put(&[Row { key: key("a"), record: other.clone() }]).await.unwrap();
    assert_eq!(hashes.get(&[key("a")]).await.unwrap(), [Some(other)]);
    // A record without fields is one all the same.
    hashes.put(&[Row { key: key("e"), record: Document::new() }]).await.unwrap();
    assert_eq!(hashes.get(&[key("e"), key("none")]).await.unwrap(), [Some(Document::new()), None]);

    // Fields in order, also of hashes that Redis keeps in none; all kinds.
    let mut wide: Document =
        (0..300).map(|n| (format!("field {n}"), Value::from("x".repeat(n)))).collect();
    wide.push("bytes", Value::Bytes(vec![0, 255]));
    wide.push("list", Value::List(vec![Value::Bytes(vec![1]), Value::Null]));
    hashes.put(&[Row { key: key("w"), record: wide.clone() }]).await.unwrap();
    assert_eq!(hashes.get(&[key("w")]).await.unwrap(), [Some(wide)]);
    let mut bad = Document::from_iter([("_kinds", 1i64)]);
    bad.push("x", 1i64);
    let error = hashes.put(&[row("b", 1), Row { key: key("c"), record: bad }]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("key \"c\"") && error.to_string().contains("_kinds"));
    assert_eq!(hashes.get(&[key("b")]).await.unwrap(), [None]);
    assert!(hashes.find(&steelyard::store::Query::new("n>1".parse().unwrap())).await.is_err());
}

/// The table of keys shrinks while it is walked: some keys come again.
#[tokio::test]
async fn a_scan_gives_no_key_twice_and_loses_none() {
    let server = need!(started("redis", Wish::default()));
    let place = opened(server.url()).await;
    let rows: Vec<_> = (0..40_000).map(|n| row(&format!("k{n}"), n)).collect();
    for rows in rows.chunks(5000) {
        place.load(rows).await.unwrap();
    }
    let mut batches = place.scan(&KeyRange::all()).await.unwrap();
    let (mut seen, mut deleted) = (HashSet::new(), 0);
    while let Some(batch) = batches.try_next().await.unwrap() {
        for found in batch {
            assert!(seen.insert(found.key.clone()), "{} came twice", found.key);
        }
        // All but one of forty, in the middle of the way.
        if seen.len() > 10_000 && deleted == 0 {
            let gone: Vec<_> =
                (0..40_000).filter(|n| n % 40 != 0).map(|n| key(&format!("k{n}"))).collect();
            deleted = place.remove(&gone).await.unwrap();
        }
    }
    assert_eq!(deleted, 39_000);
    assert!((0..40_000).step_by(40).all(|n| seen.contains(&key(&format!("k{n}")))));
    assert_eq!(place.count().await.unwrap(), 1000);
}

/// A server with arguments of its own, ended with its value.
struct Own {
    child: Child,
    folder: tempfile::TempDir,
}

impl Own {
    fn start(args: impl Fn(&Path) -> Vec<String>) -> Need<Own> {
        programs::startable("redis")?;
        let binary = server::named("redis").unwrap().find().expect("it is there");
        let folder = tempfile::tempdir().unwrap();
        let child = Command::new(binary)
            .args(["--save", "", "--set-proc-title", "no", "--dir"])
            .arg(folder.path())
            .args(args(folder.path()))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Ok(Own { child, folder })
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[tokio::test]
async fn sockets_and_logins() {
    let socket = |folder: &Path| folder.join("s").display().to_string();
    let args = |folder: &Path| {
        let all = ["--port", "0", "--requirepass", "open sesame", "--unixsocket", &socket(folder)];
        all.map(String::from).into()
    };
    let own = need!(Own::start(args));
    let socket = socket(own.folder.path());
    let url = |login: &str| format!("redis://{login}/3?socket={socket}&table=t");
    let place = in_a_moment(|| async { steelyard::open(&url(":open%20sesame@")).await }).await;
    place.put(&[row("a", 1)]).await.unwrap();
    assert_eq!(all(&**place.store()).await.len(), 1);
    assert!(!format!("{place:?}").contains("sesame"));
    for login in ["", ":wrong-word@"] {
        let error = steelyard::open(&url(login)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{error:?}");
        assert!(!format!("{error:?}").contains("wrong-word"), "{error:?}");
    }
}

#[tokio::test]
async fn tls_with_an_authority_of_ones_own() {
    let port = free_port();
    let files = tempfile::tempdir().unwrap();
    let (certificate, key_file) = need!(crate::programs::certificate(files.path()));
    let args = |_: &Path| {
        let port = port.to_string();
        let all = ["--port", "0", "--tls-port", &port, "--tls-auth-clients", "no"];
        let files = ["--tls-cert-file", &certificate, "--tls-key-file", &key_file];
        all.into_iter().chain(files).map(String::from).collect()
    };
    let _own = need!(Own::start(args));
    let url = format!("rediss://localhost:{port}?ca={certificate}");
    let place = in_a_moment(|| async { steelyard::open(&url).await }).await;
    place.put(&[row("a", 1)]).await.unwrap();
    assert_eq!(place.get(&[key("a")]).await.unwrap(), [Some(row("a", 1).record)]);
    // Nobody this machine trusts has signed it.
    let url = format!("redis://localhost:{port}?tls=true&connect_timeout=5");
    let error = steelyard::open(&url).await.unwrap_err();
    assert!(format!("{error:?}").contains("certificate"), "{error:?}");
}
