//! Limits: of size, of requests a second, of time; and how a gateway ends.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use steelyard_serve::TenantLimits;

use super::client::{Running, name};

#[tokio::test]
async fn what_is_too_large_is_refused_and_nothing_of_it_kept() {
    let gateway = Running::start(
        "document_bytes = 100\nbulk_bytes = 1000\nbulk_documents = 3\ncollections = 2",
    )
    .await;
    let long = format!("{{\"x\":\"{}\"}}", "y".repeat(100));
    gateway.put(&gateway.a, "/v1/docs/c/x", "", &long).await.is(413);
    gateway.get(&gateway.a, "/v1/docs/c/x").await.is(404);
    let line = "{\"id\":\"x\",\"doc\":{}}\n";
    gateway.ask(&gateway.a, "POST", "/v1/docs/c:bulk", "", &line.repeat(4)).await.is(413);
    gateway.ask(&gateway.a, "POST", "/v1/docs/c:bulk", "", &line.repeat(60)).await.is(413);
    gateway.get(&gateway.a, "/v1/docs/c/x").await.is(404);
    for (collection, status) in [("one", 201), ("two", 201), ("three", 507), ("one", 200)] {
        gateway.put(&gateway.a, &format!("/v1/docs/{collection}/x"), "", "{}").await.is(status);
    }
}

#[tokio::test]
async fn a_tenant_has_its_bytes_and_room_again_for_what_it_deletes() {
    let gateway =
        Running::start_in("own", "tenant_bytes = 1000000\nrequests_per_second = 1e6").await;
    let (a, large) = (&gateway.a, format!("{{\"x\":\"{}\"}}", "y".repeat(100_000)));
    let once = "Idempotency-Key: 1\r\n";
    gateway.put(a, "/v1/docs/c/once", once, &large).await.is(201);
    let mut kept = Vec::new();
    for n in 0..20 {
        let path = format!("/v1/docs/c/{n}");
        match gateway.put(a, &path, "", &large).await.status {
            201 => kept.push(path),
            status => assert_eq!(status, 507, "{path}"),
        }
    }
    assert!((5..10).contains(&kept.len()), "{kept:?}");
    let refused = gateway.put(a, "/v1/docs/new/x", "", &large).await.is(507);
    assert!(refused.text().contains("1000000 bytes"), "{}", refused.text());
    let lines = format!("{{\"id\":\"l\",\"doc\":{large}}}\n{{\"id\":\"s\",\"doc\":{{}}}}\n");
    let bulk = gateway.ask(a, "POST", "/v1/docs/c:bulk", "", &lines).await.is(200);
    let status: Vec<_> = bulk.lines().iter().map(|line| line["status"].clone()).collect();
    assert_eq!(status, [507, 200]);
    let names = gateway.get(a, "/v1/docs").await.is(200).text();
    assert!(!names.contains("new"), "{names}");
    // What was done is not refused when it is repeated; another tenant has bytes of its own.
    gateway.put(a, "/v1/docs/c/once", once, &large).await.is(201);
    gateway.put(&gateway.b, "/v1/docs/c/x", "", &large).await.is(201);
    // What is deleted makes room, once the store is asked again.
    for path in &kept[..3] {
        gateway.ask(a, "DELETE", path, "", "").await.is(204);
    }
    gateway.clock.advance(Duration::from_secs(1));
    gateway.put(a, &kept[0], "", &large).await.is(201);
    // A limit of its own holds within a lease.
    let limit = async |bytes| {
        let mut limits = TenantLimits::default();
        limits.bytes = bytes;
        gateway.admin.limit(&name("a"), |to| *to = limits.clone()).await.unwrap();
        gateway.clock.advance(Duration::from_secs(3));
    };
    limit(Some(0)).await;
    for n in 0..10 {
        gateway.put(a, &format!("/v1/docs/c/more{n}"), "", &large).await.is(201);
    }
    limit(None).await;
    gateway.put(a, "/v1/docs/c/last", "", &large).await.is(507);
    let bytes = gateway.admin.bytes(&name("a")).await.unwrap().unwrap();
    assert!((1_000_000..3_000_000).contains(&bytes), "{bytes}");
}

/// What is written again in place of itself does not grow, however often.
#[tokio::test]
async fn within_its_bytes_a_tenant_replaces_what_it_has_as_often_as_it_likes() {
    let gateway =
        Running::start_in("own", "tenant_bytes = 1000000\nrequests_per_second = 1e6").await;
    let large = format!("{{\"x\":\"{}\"}}", "y".repeat(300_000));
    let lines: String = (0..500)
        .map(|n| format!("{{\"id\":\"{n}\",\"doc\":{{\"x\":\"{}\"}}}}\n", "z".repeat(800)))
        .collect();
    for _ in 0..10 {
        let put = gateway.put(&gateway.a, "/v1/docs/c/x", "", &large).await;
        assert!(put.status < 300, "{put:?}");
    }
    for round in 0..5 {
        let bulk = gateway.ask(&gateway.b, "POST", "/v1/docs/c:bulk", "", &lines).await.is(200);
        let refused = bulk.lines().iter().filter(|line| line["status"] != 200).count();
        assert_eq!(refused, 0, "round {round}");
    }
}

/// One byte of CBOR can be six of JSON, which is what is kept.
#[tokio::test]
async fn what_is_kept_counts_and_not_what_was_sent() {
    let gateway =
        Running::start_in("own", "tenant_bytes = 1000000\nrequests_per_second = 1e6").await;
    let text = [&[0xa1, 0x61, b'x', 0x7a, 0, 1, 0, 0][..], &[1; 1 << 16]].concat();
    let headers = format!(
        "Authorization: Bearer {}\r\nContent-Type: application/cbor\r\n",
        gateway.a.reveal()
    );
    let mut kept = 0;
    for n in 0..20 {
        let put = gateway.send("PUT", &format!("/v1/docs/c/{n}"), &headers, &text).await;
        assert!([201, 507].contains(&put.status), "{put:?}");
        kept += u64::from(put.status == 201);
    }
    assert!((1..=2).contains(&kept), "{kept}");
    // A page of them is more in JSON than bodies may be in memory: it is refused, before it is made.
    let small = "tenant_bytes = 100000000\ndocument_bytes = 70000\nbulk_bytes = 70000\nbodies_bytes = 500000";
    let gateway = Running::start(&small.replace("tenant_bytes = 100000000\n", "")).await;
    let headers = format!(
        "Authorization: Bearer {}\r\nContent-Type: application/cbor\r\n",
        gateway.a.reveal()
    );
    for n in 0..5 {
        let put = gateway.send("PUT", &format!("/v1/docs/c/{n}"), &headers, &text).await;
        assert_eq!(put.status, 201, "{put:?}");
    }
    gateway.get(&gateway.a, "/v1/docs/c?limit=5").await.is(503);
    gateway.get(&gateway.a, "/v1/docs/c?limit=1").await.is(503);
    gateway.get(&gateway.a, "/v1/docs/c/1").await;
    gateway.get(&gateway.b, "/v1/docs").await.is(200);
}

#[tokio::test]
async fn collections_that_are_made_at_once_are_no_more_than_there_may_be() {
    let gateway = Running::start("collections = 3\nrequests_per_second = 1e6").await;
    let path = |n| format!("/v1/docs/c{n}/x");
    let puts = (0..20).map(async |n| gateway.put(&gateway.a, &path(n), "", "{}").await.status);
    let made = futures_util::future::join_all(puts).await;
    assert_eq!(made.iter().filter(|&&status| status == 201).count(), 3, "{made:?}");
    let names = gateway.get(&gateway.a, "/v1/docs").await.is(200).text();
    assert_eq!(names.matches("\"c").count() - 1, 3, "{names}");
}

#[tokio::test]
async fn a_tenant_has_its_requests_a_second_and_not_those_of_another() {
    let gateway = Running::start("requests_per_second = 5").await;
    for _ in 0..5 {
        gateway.get(&gateway.a, "/v1/docs/c/x").await.is(404);
    }
    let more = gateway.get(&gateway.a, "/v1/docs/c/x").await.is(429);
    assert_eq!(more.header("retry-after"), Some("1"));
    // The tenant's other key shares its rate; another tenant has its own.
    gateway.get(&gateway.reader, "/v1/docs/c/x").await.is(429);
    gateway.get(&gateway.b, "/v1/docs/c/x").await.is(404);
    gateway.clock.advance(Duration::from_millis(200));
    gateway.get(&gateway.a, "/v1/docs/c/x").await.is(404);
    gateway.get(&gateway.a, "/v1/docs/c/x").await.is(429);
}

#[tokio::test]
async fn keys_that_were_made_up_lock_nobody_out() {
    let gateway = Running::start("").await;
    for i in 0..300 {
        let key = format!("Authorization: Bearer unknown{i:05}abcd.{}\r\n", "x".repeat(43));
        gateway.send("GET", "/v1/docs", &key, b"").await.is(401);
    }
    // Also one that was not seen before.
    gateway.get(&gateway.b, "/v1/docs").await.is(200);
}

#[tokio::test]
async fn a_head_or_a_body_that_does_not_arrive_ends() {
    let gateway = Running::start("arrival_seconds = 0.2").await;
    let read = async |sent: &str| {
        let mut stream = TcpStream::connect(&gateway.address).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let head = read("GET /v1/docs HTTP/1.1\r\nHost: h\r\nX-Slow: ").await;
    assert!(head.is_empty() || head.starts_with("HTTP/1.1 408"), "{head}");
    let key = gateway.a.reveal();
    let body = format!(
        "PUT /v1/docs/c/x HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {key}\r\nContent-Length: 9\r\n\r\n{{"
    );
    let body = read(&body).await;
    assert!(body.starts_with("HTTP/1.1 400") && body.contains("in time"), "{body}");
    gateway.get(&gateway.a, "/v1/docs/c/x").await.is(404);
}

#[tokio::test]
async fn a_stop_lets_what_is_in_flight_end() {
    let mut gateway = Running::start("").await;
    let key = gateway.a.clone();
    let mut stream = TcpStream::connect(&gateway.address).await.unwrap();
    let head = format!(
        "PUT /v1/docs/c/x HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {}\r\nContent-Length: 7\r\n\r\n",
        key.reveal()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // Until the gateway has it: another request behind it on the same machine was answered.
    gateway.get(&key, "/v1/docs/c/x").await.is(404);
    let stopped = gateway.stop();
    tokio::task::yield_now().await;
    stream.write_all(b"{\"n\":1}").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    stopped.await.unwrap().unwrap();
    assert!(TcpStream::connect(&gateway.address).await.is_err());
    gateway.restart_after_stop().await;
    assert_eq!(gateway.get(&key, "/v1/docs/c/x").await.is(200).text(), r#"{"n":1}"#);
}

/// A page has a bound in bytes, and a document one in values, as each takes more memory than the bytes that stand for it.
#[tokio::test]
async fn pages_and_documents_are_bounded_in_memory() {
    let gateway = Running::start("requests_per_second = 1e6").await;
    let dense = format!("{{\"a\":[{}]}}", vec!["[]"; 60_000].join(","));
    gateway.put(&gateway.a, "/v1/docs/c/x", "", &dense).await.is(413);
    let line = format!("{{\"id\":\"x\",\"doc\":{dense}}}\n");
    let bulk = gateway.ask(&gateway.a, "POST", "/v1/docs/c:bulk", "", &line).await.is(200);
    assert_eq!(bulk.lines()[0]["status"], 413);
    let large = format!("{{\"text\":\"{}\"}}", "x".repeat(900_000));
    for n in 0..30 {
        gateway.put(&gateway.a, &format!("/v1/docs/large/{n:02}"), "", &large).await.is(201);
    }
    for query in ["limit=1000", "limit=1000&sort=text", "limit=1000&where=text%5E%3Dx"] {
        let (mut ids, mut pages, mut cursor) = (Vec::new(), 0, String::new());
        loop {
            let page =
                gateway.get(&gateway.a, &format!("/v1/docs/large?{query}{cursor}")).await.is(200);
            assert!(page.body.len() < 20 << 20, "{query}: {}", page.body.len());
            let page = page.json();
            let items = page["items"].as_array().unwrap();
            ids.extend(items.iter().map(|item| item["id"].as_str().unwrap().to_owned()));
            pages += 1;
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        ids.sort();
        ids.dedup();
        assert!(ids.len() == 30 && pages > 1, "{query}: {} in {pages} pages", ids.len());
    }
}
