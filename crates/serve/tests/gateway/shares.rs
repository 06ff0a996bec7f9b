//! What one client takes does not lock out another: connections, places, bytes.

use std::time::Duration;

use steelyard_serve::ApiKey;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::client::Running;

/// Long enough for any machine, and shorter than what the gateway waits for.
const SOON: Duration = Duration::from_secs(10);

/// The head of an answer to a request on a connection that is kept.
async fn asked(stream: &mut TcpStream, key: &ApiKey, request: &str, body: &str) -> String {
    let head = format!(
        "{request} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n\r\n{body}",
        key.reveal(),
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.windows(4).any(|w| w == b"\r\n\r\n") {
        assert!(stream.read_buf(&mut answer).await.unwrap() > 0, "it hung up");
    }
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn clients_that_keep_their_connections_lock_nobody_out() {
    let gateway = Running::start("connections = 8\narrival_seconds = 3600").await;
    let mut kept = Vec::new();
    for n in 0..40 {
        let answered = async {
            let mut stream = TcpStream::connect(&gateway.address).await.unwrap();
            let answer = asked(&mut stream, &gateway.a, "GET /v1/docs", "").await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            stream
        };
        kept.push(timeout(SOON, answered).await.unwrap_or_else(|_| panic!("client {n} waits")));
    }
    // The first ones were kept.
    for stream in &mut kept[..4] {
        assert!(asked(stream, &gateway.a, "GET /v1/docs", "").await.starts_with("HTTP/1.1 200"));
    }
}

#[tokio::test]
async fn a_connection_that_is_not_used_ends() {
    let gateway = Running::start("arrival_seconds = 0.2").await;
    let mut stream = TcpStream::connect(&gateway.address).await.unwrap();
    asked(&mut stream, &gateway.a, "GET /v1/docs", "").await;
    let mut rest = Vec::new();
    timeout(SOON, stream.read_to_end(&mut rest)).await.expect("it is still open").unwrap();
}

#[tokio::test]
async fn large_bodies_of_one_tenant_leave_room_for_those_of_another() {
    let gateway =
        Running::start("document_bytes = 20000\nbulk_bytes = 20000\nbodies_bytes = 40000").await;
    let document = |bytes: usize| format!("{{\"t\":\"{}\"}}", "x".repeat(bytes - 8));
    let mut slow = TcpStream::connect(&gateway.address).await.unwrap();
    let head = format!(
        "PUT /v1/docs/c/slow HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {}\r\nContent-Length: 20000\r\n\r\n",
        gateway.a.reveal()
    );
    let body = document(20_000);
    slow.write_all(head.as_bytes()).await.unwrap();
    slow.write_all(&body.as_bytes()[..19_999]).await.unwrap();
    // Requests behind it were answered, so it has arrived: beside another large one it would be refused itself.
    for _ in 0..10 {
        gateway.get(&gateway.b, "/v1/docs").await.is(200);
    }
    let refused = async {
        loop {
            let answer = gateway.put(&gateway.a, "/v1/docs/c/x", "", &document(12_000)).await;
            if answer.status == 503 {
                return answer;
            }
            assert!([200, 201].contains(&answer.status), "{answer:?}");
        }
    };
    let refused = timeout(SOON, refused).await.expect("nobody was refused");
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    gateway.put(&gateway.b, "/v1/docs/c/x", "", &document(10_000)).await.is(201);
    slow.write_all(&body.as_bytes()[19_999..]).await.unwrap();
    let mut answer = [0; 12];
    slow.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 201");
    // Given back.
    gateway.put(&gateway.a, "/v1/docs/c/x", "", &document(18_000)).await;
    gateway.put(&gateway.a, "/v1/docs/c/x", "", &document(18_000)).await.is(200);
}

#[tokio::test]
async fn whoever_floods_is_answered_late_and_nobody_else_is() {
    let gateway = Running::start("requests_per_second = 10").await;
    // On its own connection each, as fast as they are answered.
    let flood = async {
        loop {
            let mut all = Vec::new();
            for _ in 0..32 {
                all.push(gateway.get(&gateway.a, "/v1/docs"));
            }
            for answer in futures_util::future::join_all(all).await {
                assert!(answer.status == 429 || answer.status == 200, "{answer:?}");
            }
        }
    };
    let quiet = async {
        for _ in 0..9 {
            gateway.get(&gateway.b, "/v1/docs").await.is(200);
        }
    };
    tokio::select! {
        _ = flood => unreachable!("it has no end"),
        quiet = timeout(SOON, quiet) => quiet.unwrap(),
    }
}
