//! Tenants that are moved, backed up and restored, while others write.

use std::{
    future::{pending, ready},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use steelyard_serve::{Course, ErrorKind, Scope};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::Notify,
};

use super::client::{Running, name};

/// What the mover waits is what the gateway's clock goes on by.
fn waits(gateway: &Running) -> impl AsyncFn(Duration) {
    async |lease| gateway.clock.advance(lease)
}

fn other(shard: &str) -> &'static str {
    if shard == "one" { "two" } else { "one" }
}

#[tokio::test]
async fn a_tenant_is_moved_with_all_it_has_and_nothing_of_it_stays() {
    let gateway = Running::start("").await;
    let (key, a) = (&gateway.a, name("a"));
    let once = "Idempotency-Key: 1\r\n";
    let put = gateway.put(key, "/v1/docs/c/x", once, r#"{"n":[1,2.5,null,"ü"]}"#).await.is(201);
    gateway.put(key, "/v1/docs/d/y", "", "{}").await.is(201);
    gateway.put(&gateway.b, "/v1/docs/c/x", "", r#"{"of":"b"}"#).await.is(201);
    let before = gateway.admin.show(&a).await.unwrap();
    let to = other(&before.shard);
    let refused = |course| gateway.admin.move_to(&a, Some(to), course, waits(&gateway));
    for course in [Course::Resume, Course::Back] {
        assert_eq!(refused(course).await.unwrap_err().kind(), ErrorKind::Conflict);
    }
    // Neither read nor written while it is on its way.
    let wait = async |lease| {
        gateway.clock.advance(lease);
        let there = gateway.get(key, "/v1/docs/c/x").await.is(503);
        assert!(there.header("retry-after").is_some());
        gateway.put(key, "/v1/docs/c/x", "", "{}").await.is(503);
        gateway.get(&gateway.b, "/v1/docs/c/x").await.is(200);
    };
    let moved = gateway.admin.move_to(&a, Some(to), Course::Begin, wait).await.unwrap();
    assert_eq!((moved.records, moved.left), (3, vec![]));
    gateway.clock.advance(gateway.admin.lease());
    let got = gateway.get(key, "/v1/docs/c/x").await.is(200);
    assert_eq!((got.text().as_str(), got.tag()), (r#"{"n":[1,2.5,null,"ü"]}"#, put.tag()));
    let again = gateway.put(key, "/v1/docs/c/x", once, r#"{"n":[1,2.5,null,"ü"]}"#).await.is(201);
    assert_eq!(again.tag(), put.tag());
    let after = gateway.admin.show(&a).await.unwrap();
    assert!(after.shard == to && after.database != before.database && after.abandoned.is_empty());
    assert_eq!(gateway.databases().await.len(), 2, "of a and b");
    let same =
        gateway.admin.move_to(&a, Some(to), Course::Begin, waits(&gateway)).await.unwrap_err();
    assert_eq!(same.kind(), ErrorKind::Invalid);
}

/// A mover that is killed: the future is dropped at each point where it waits.
#[tokio::test]
async fn a_move_that_was_killed_goes_on_or_goes_back() {
    let gateway = Running::start("").await;
    let (key, a) = (&gateway.a, name("a"));
    for i in 0..50 {
        gateway.put(key, &format!("/v1/docs/c/{i}"), "", "{}").await.is(201);
    }
    let whole = async || {
        gateway.clock.advance(gateway.admin.lease());
        let count = gateway.get(key, "/v1/docs/c:count").await.is(200);
        assert_eq!(count.json(), json!({ "count": 50 }));
        gateway.put(key, "/v1/docs/c/0", "", "{}").await.is(200);
        assert_eq!(gateway.databases().await.len(), 2);
    };
    for polls in [1, 3, 10, 30, 100, 300] {
        for course in [Course::Resume, Course::Back] {
            let from = gateway.admin.show(&a).await.unwrap().shard;
            let to = other(&from);
            let mut moving =
                Box::pin(gateway.admin.move_to(&a, Some(to), Course::Begin, waits(&gateway)));
            let mut left = polls;
            let killed = std::future::poll_fn(|context| {
                if let std::task::Poll::Ready(done) = moving.as_mut().poll(context) {
                    return std::task::Poll::Ready(Some(done));
                }
                left -= 1;
                if left == 0 { std::task::Poll::Ready(None) } else { std::task::Poll::Pending }
            })
            .await;
            drop(moving);
            // What it had sent to the catalog may still arrive, as from a process that was killed.
            loop {
                let now = gateway.admin.show(&a).await.unwrap();
                let is_moving = matches!(now.state, steelyard_serve::State::Moving { .. });
                let done = match (is_moving, &killed) {
                    (true, _) => {
                        gateway.clock.advance(gateway.admin.lease());
                        gateway.admin.move_to(&a, Some(to), course, waits(&gateway)).await
                    }
                    // Killed before it began, or after it was switched: the next one drops what it left.
                    (false, None) => {
                        gateway
                            .admin
                            .move_to(&a, Some(other(&now.shard)), Course::Begin, waits(&gateway))
                            .await
                    }
                    (false, Some(_)) => break,
                };
                match done {
                    Err(e) if e.kind() == ErrorKind::Conflict => {}
                    done => {
                        let now = gateway.admin.show(&a).await.unwrap();
                        if is_moving {
                            assert_eq!(
                                now.shard,
                                if course == Course::Back { from } else { to.to_owned() }
                            );
                        }
                        assert_eq!(done.unwrap().left, Vec::<String>::new());
                        break;
                    }
                }
            }
            whole().await;
        }
    }
}

/// Writers through three gateways, each with what it knows of the catalog, while the tenant goes to and fro.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_acknowledged_write_is_lost_or_doubled_by_moves() {
    let gateway = Arc::new(Running::start("requests_per_second = 1e6\n").await);
    let mut others = Vec::new();
    for _ in 0..2 {
        others.push(gateway.beside().await);
    }
    let addresses: Vec<String> = [gateway.address.clone()]
        .into_iter()
        .chain(others.iter().map(|o| o.address.clone()))
        .collect();
    let (stop, acknowledged, unknown) =
        (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let (stop, acknowledged, unknown) = (Arc::new(stop), Arc::new(acknowledged), Arc::new(unknown));
    let mut writers = Vec::new();
    for (writer, address) in addresses.into_iter().enumerate() {
        let (gateway, stop) = (gateway.clone(), stop.clone());
        let (acknowledged, unknown) = (acknowledged.clone(), unknown.clone());
        writers.push(tokio::spawn(async move {
            for i in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                // Each write is of a document of its own, so that each can be looked for.
                let path = format!("/v1/docs/c/{writer}-{i}");
                let put = gateway
                    .at(&address, &gateway.a, "PUT", &path, "If-None-Match: *\r\n", "{}")
                    .await;
                match put.status {
                    201 => acknowledged.fetch_add(1, Ordering::Relaxed),
                    503 | 504 => unknown.fetch_add(1, Ordering::Relaxed),
                    other => panic!("{other}: {put:?}"),
                };
            }
        }));
    }
    let mut moves = 0;
    while moves < 6 || acknowledged.load(Ordering::Relaxed) < 100 {
        let on = gateway.admin.show(&name("a")).await.unwrap().shard;
        let moved = gateway
            .admin
            .move_to(&name("a"), Some(other(&on)), Course::Begin, waits(&gateway))
            .await
            .unwrap();
        assert!(moved.left.is_empty(), "{moved:?}");
        gateway.clock.advance(gateway.admin.lease());
        let before = acknowledged.load(Ordering::Relaxed);
        // Until there were some writes where it is now.
        while acknowledged.load(Ordering::Relaxed) < before + 10 {
            tokio::task::yield_now().await;
        }
        moves += 1;
    }
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    gateway.clock.advance(gateway.admin.lease());
    let each = gateway.get(&gateway.a, "/v1/docs/c:each").await.is(200).lines();
    let (there, acknowledged) = (each.len() as u64, acknowledged.load(Ordering::Relaxed));
    let unknown = unknown.load(Ordering::Relaxed);
    assert!(
        (acknowledged..=acknowledged + unknown).contains(&there),
        "{there}: {acknowledged} and {unknown}"
    );
}

#[tokio::test]
async fn a_backup_has_all_and_becomes_another_tenant() {
    let gateway = Running::start("").await;
    let (key, folder) = (&gateway.a, gateway.folder.path());
    gateway.put(key, "/v1/docs/other/x", "Idempotency-Key: 1\r\n", "{}").await.is(201);
    for batch in 0..25 {
        let line =
            |i| format!("{}\n", json!({ "id": format!("k{i}"), "doc": { "n": i, "t": "ü" } }));
        let body: String = (100 * batch..100 * (batch + 1)).map(line).collect();
        gateway.ask(key, "POST", "/v1/docs/c:bulk", "", &body).await.is(200);
    }
    let whole = gateway.get(key, "/v1/docs/c:each").await.is(200).text();
    gateway.admin.limit(&name("a"), |limits| limits.collections = Some(7)).await.unwrap();
    gateway.clock.advance(gateway.admin.lease());
    // One that an operator froze stays so.
    gateway.admin.freeze(&name("a")).await.unwrap();
    let file = folder.join("frozen.cbor").display().to_string();
    gateway.admin.backup(&name("a"), &file, true, waits(&gateway)).await.unwrap();
    assert_eq!(gateway.admin.show(&name("a")).await.unwrap().state, steelyard_serve::State::Frozen);
    gateway.admin.thaw(&name("a")).await.unwrap();
    gateway.clock.advance(gateway.admin.lease());
    for format in ["cbor.zst", "json.gz"] {
        let file = folder.join(format!("a.{format}")).display().to_string();
        // Frozen meanwhile.
        let wait = async |lease| {
            gateway.clock.advance(lease);
            gateway.put(key, "/v1/docs/c/new", "", "{}").await.is(403);
            gateway.get(key, "/v1/docs/c/k1").await.is(200);
        };
        let records = gateway.admin.backup(&name("a"), &file, true, wait).await.unwrap();
        gateway.clock.advance(gateway.admin.lease());
        gateway.put(key, "/v1/docs/c/k1", "", r#"{"n":1}"#).await.is(200);
        let new = name(&format!("new-{}", &format[..4]));
        assert_eq!(
            gateway.admin.restore(&new, None, &file, pending()).await.unwrap().unwrap(),
            records
        );
        assert_eq!(gateway.admin.show(&new).await.unwrap().limits.collections, Some(7));
        let new_key = gateway.admin.add_key(&new, Scope::Read, "").await.unwrap();
        let restored = gateway.get(&new_key, "/v1/docs/c:each").await.is(200).text();
        assert_eq!(restored.lines().count(), whole.lines().count());
        let taken = gateway.admin.restore(&new, None, &file, pending()).await.unwrap_err();
        assert_eq!(taken.kind(), ErrorKind::Conflict);
        // Cut short, it is no backup, and there is no tenant of it.
        if format == "json.gz" {
            let text =
                std::process::Command::new("gzip").args(["-dc", &file]).output().unwrap().stdout;
            let cut = folder.join("cut.json").display().to_string();
            let lines: Vec<&[u8]> = text.split_inclusive(|&b| b == b'\n').collect();
            std::fs::write(&cut, lines[..lines.len() - 1].concat()).unwrap();
            // Nor is it where a value was changed, or a line is there twice.
            let whole = String::from_utf8(text.clone()).unwrap();
            let row = lines.iter().find(|l| l.windows(9).any(|w| w == b"\"record\":")).unwrap();
            let changed = whole.replacen("\"n\":", "\"m\":", 1);
            let twice = whole.replacen(
                std::str::from_utf8(row).unwrap(),
                &std::str::from_utf8(row).unwrap().repeat(2),
                1,
            );
            assert!(changed != whole && twice != whole);
            for (text, want) in [
                (changed, "was changed"),
                (twice, "says that it has"),
                (String::from_utf8(lines[..lines.len() - 1].concat()).unwrap(), "cut short"),
            ] {
                std::fs::write(&cut, text).unwrap();
                let error =
                    gateway.admin.restore(&name("cut"), None, &cut, pending()).await.unwrap_err();
                assert!(error.to_string().contains(want), "{error}");
            }
            assert_eq!(
                gateway.admin.show(&name("cut")).await.unwrap_err().kind(),
                ErrorKind::NotFound
            );
        }
    }
}

/// Two that change the limits of a tenant at once both do.
#[tokio::test]
async fn limits_that_are_changed_at_once_are_all_changed() {
    let gateway = Running::start("").await;
    let tenant = name("a");
    for n in 1..20_u64 {
        let one = gateway.admin.limit(&tenant, |limits| limits.collections = Some(n));
        let two =
            gateway.admin.limit(&tenant, |limits| limits.requests_per_second = Some(n as f64));
        let (one, two) = tokio::join!(one, two);
        one.unwrap();
        two.unwrap();
        let limits = gateway.admin.show(&tenant).await.unwrap().limits;
        assert_eq!((limits.collections, limits.requests_per_second), (Some(n), Some(n as f64)));
    }
    let refused = gateway.admin.limit(&tenant, |limits| limits.bytes = Some(u64::MAX)).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
}

/// A tenant is there when it is whole, or not at all: also where its making is ended in the middle.
#[tokio::test]
async fn half_a_tenant_is_nowhere() {
    let gateway = Running::start("").await;
    gateway.put(&gateway.a, "/v1/docs/c/x", "", "{}").await.is(201);
    let file = gateway.folder.path().join("a.cbor").display().to_string();
    gateway.admin.backup(&name("a"), &file, true, waits(&gateway)).await.unwrap();
    let before = gateway.databases().await;
    // What is no backup.
    std::fs::write(gateway.folder.path().join("none.cbor"), "").unwrap();
    let none = gateway.folder.path().join("none.cbor").display().to_string();
    let new = name("new");
    gateway.admin.restore(&new, None, &none, pending()).await.unwrap_err();
    assert_eq!(gateway.databases().await, before);
    // Its first write takes a while.
    let ended = gateway.admin.restore(&new, None, &file, ready(())).await.unwrap();
    assert_eq!(ended, None);
    assert_eq!(gateway.databases().await, before);
    assert_eq!(gateway.admin.show(&new).await.unwrap_err().kind(), ErrorKind::NotFound);
}

/// A gateway that goes by what it read before a move asks a database that is gone. What is not there, or not as it was, is
/// then no answer.
#[tokio::test]
async fn what_is_missing_where_a_tenant_was_is_no_answer() {
    let gateway = Running::start("requests_per_second = 1e6").await;
    let (key, a) = (&gateway.a, name("a"));
    gateway.put(key, "/v1/docs/c/x", "", "{}").await.is(201);
    // Small bodies are read before a request is let in.
    let much = " ".repeat(10_000);
    let (one, lines) = (
        format!("{{{much}}}"),
        format!("{{\"id\":\"x\",\"doc\":{{}}}}{much}\n{{\"id\":\"y\",\"delete\":true}}\n"),
    );
    let requests = [
        ("GET", "/v1/docs/c/x", "", ""),
        ("PUT", "/v1/docs/c/x", "If-Match: \"0\"\r\n", one.as_str()),
        ("PUT", "/v1/docs/c/x", "", one.as_str()),
        ("DELETE", "/v1/docs/c/y", "", ""),
        ("GET", "/v1/docs/c:count", "", ""),
        ("POST", "/v1/docs/c:bulk", "", lines.as_str()),
    ];
    for (method, path, headers, body) in requests {
        let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        // A gateway that is stopped after it has looked at its lease: half of the body is there.
        let stopped = {
            let (begun, go_on) = (begun.clone(), go_on.clone());
            let body = body.to_owned();
            let (address, key) = (gateway.address.clone(), key.reveal());
            tokio::spawn(async move {
                let head = format!(
                    "{method} {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nAuthorization: Bearer {key}\r\n\
                     Content-Length: {}\r\n{headers}\r\n",
                    body.len()
                );
                let mut stream = TcpStream::connect(address).await.unwrap();
                stream.write_all(head.as_bytes()).await.unwrap();
                begun.notify_one();
                go_on.notified().await;
                stream.write_all(body.as_bytes()).await.unwrap();
                let mut answer = String::new();
                stream.read_to_string(&mut answer).await.unwrap();
                answer
            })
        };
        begun.notified().await;
        // Another request behind it was answered, so it has begun.
        gateway.get(&gateway.b, "/v1/docs").await.is(200);
        let on = gateway.admin.show(&a).await.unwrap().shard;
        let to = other(&on);
        gateway.admin.move_to(&a, Some(to), Course::Begin, waits(&gateway)).await.unwrap();
        go_on.notify_one();
        let answer = stopped.await.unwrap();
        // What has no body was answered before the move.
        let fine = match body {
            "" => answer.starts_with("HTTP/1.1 2") || answer.starts_with("HTTP/1.1 404"),
            _ if path.ends_with("bulk") => answer.matches("\"status\":503").count() >= 2,
            _ => answer.starts_with("HTTP/1.1 503"),
        };
        assert!(fine, "{method} {path}: {answer}");
        gateway.clock.advance(gateway.admin.lease());
        gateway.put(key, "/v1/docs/c/x", "", "{}").await;
    }
}

/// A backup is for nobody else to read, whatever was at its path; and what cannot be one freezes nobody.
#[tokio::test]
async fn a_backup_is_a_file_of_its_own_that_others_cannot_read() {
    use std::os::unix::fs::PermissionsExt;
    let gateway = Running::start("").await;
    gateway.put(&gateway.a, "/v1/docs/c/x", "", "{}").await.is(201);
    let at = |name: &str| gateway.folder.path().join(name).display().to_string();
    std::fs::write(at("old.cbor"), "").unwrap();
    std::fs::set_permissions(at("old.cbor"), std::fs::Permissions::from_mode(0o666)).unwrap();
    gateway.admin.backup(&name("a"), &at("old.cbor"), true, waits(&gateway)).await.unwrap();
    let mode = std::fs::metadata(at("old.cbor")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let made = std::process::Command::new("mkfifo").arg(at("pipe.cbor")).status().unwrap();
    assert!(made.success());
    let pipe = gateway.admin.backup(&name("a"), &at("pipe.cbor"), true, waits(&gateway)).await;
    assert!(pipe.unwrap_err().to_string().contains("not a regular file"));
    gateway.put(&gateway.a, "/v1/docs/c/y", "", "{}").await.is(201);
}
