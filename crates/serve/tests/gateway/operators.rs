//! What operators ask.

use serde_json::Value;
use steelyard_serve::Gateway;

use super::client::{Answer, Running, raw};

async fn ask(gateway: &Running, path: &str) -> Answer {
    ask_as("localhost:9090", gateway, path).await
}

async fn ask_as(host: &str, gateway: &Running, path: &str) -> Answer {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    raw(&gateway.operators, request.as_bytes()).await
}

#[tokio::test]
async fn metrics_count_what_was_answered_and_name_nobody() {
    let gateway = Running::start("").await;
    gateway.put(&gateway.a, "/v1/docs/secret-name/x", "", "{}").await.is(201);
    gateway.get(&gateway.a, "/v1/docs/secret-name/y").await.is(404);
    gateway.send("GET", "/v1/docs/secret-name/y", "", b"").await.is(401);
    let text = ask(&gateway, "/metrics").await.is(200).text();
    for line in [
        "steelyard_requests_total{route=\"put\",status=\"201\"} 1",
        "steelyard_requests_total{route=\"get\",status=\"404\"} 1",
        "steelyard_requests_total{route=\"get\",status=\"401\"} 1",
        "steelyard_request_duration_seconds_count{route=\"get\"} 2",
        "steelyard_open_databases ",
        "# EOF",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(!text.contains("secret-name"), "{text}");
    assert_eq!(ask(&gateway, "/healthz").await.is(200).text(), "ok\n");
    assert_eq!(ask(&gateway, "/readyz").await.is(200).text(), "ready\n");
    // Not on the listener of tenants, and theirs not here.
    gateway.get(&gateway.a, "/metrics").await.is(404);
    ask(&gateway, "/v1/docs").await.is(404);
    // Not to another site that has its own name lead here.
    for path in ["/metrics", "/healthz", "/readyz"] {
        ask_as("127.0.0.1", &gateway, path).await.is(200);
        ask_as("evil.example", &gateway, path).await.is(403);
    }
}

#[test]
fn the_description_names_every_status_and_schema_it_uses() {
    let description: Value = serde_json::from_str(&Gateway::description()).unwrap();
    let text = description.to_string();
    for (at, _) in text.match_indices("#/components/") {
        let name = text[at + 2..].split('"').next().unwrap();
        let found = name.split('/').fold(&description, |value, part| &value[part]);
        assert!(!found.is_null(), "{name}");
    }
}
