//! What operators ask.

use serde_json::Value;
use steelyard_serve::Gateway;

use super::client::{Answer, Running, name, raw};

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
        "steelyard_in_use{of=\"open_databases\"} ",
        "steelyard_in_use{of=\"requests_at_once\"} 0",
        "steelyard_in_use_bytes{of=\"bodies\"} 0",
        "steelyard_limit{of=\"connections\"} 1024",
        "steelyard_build_info{version=",
        "process_cpu_seconds_total ",
        "process_resident_memory_bytes ",
        "process_open_fds ",
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

#[tokio::test]
async fn the_page_of_operators_has_the_tenants_and_what_they_asked() {
    let gateway = Running::start("requests_per_second = 7.5").await;
    gateway.put(&gateway.a, "/v1/docs/c/x", "", "{}").await.is(201);
    gateway.get(&gateway.a, "/v1/docs/c/y").await.is(404);
    gateway.admin.freeze(&name("b")).await.unwrap();
    let page = ask(&gateway, "/").await.is(200);
    assert!(page.header("content-security-policy").is_some_and(|text| text.contains("'none'")));
    let text = page.text();
    let line = |tenant: &str| {
        let from = text.find(&format!("scope=\"row\">{tenant}<")).expect("its line");
        let line = &text[from..from + text[from..].find("</tr>").unwrap()];
        let cells = line.split("<td").skip(1).map(|cell| {
            cell[cell.find("<span>").unwrap() + 6..].split('<').next().unwrap().to_owned()
        });
        cells.collect::<Vec<_>>()
    };
    let (a, b) = (line("a"), line("b"));
    assert_eq!(a[1..], ["active", "0.0", "7.5", "2", "0", "0", "100", "no limit"]);
    assert_eq!(b[1..], ["frozen", "0.0", "7.5", "0", "0", "0", "100", "no limit"]);
    let behind = ask(&gateway, "/?after=a").await.is(200).text();
    assert!(!behind.contains("row\">a<") && behind.contains("row\">b<"), "{behind}");
    ask(&gateway, "/?befor=a").await.is(400);
    ask(&gateway, "/style.css").await.is(200);
    ask(&gateway, "/icon.svg").await.is(200);
    ask_as("evil.example", &gateway, "/").await.is(403);
    ask_as("evil.example", &gateway, "/style.css").await.is(403);
}

#[tokio::test]
async fn the_description_is_served_and_its_page_names_all_of_it() {
    let gateway = Running::start("").await;
    let served = gateway.send("GET", "/openapi.json", "", b"").await.is(200);
    assert_eq!(served.header("content-type"), Some("application/json"));
    assert_eq!(served.text(), Gateway::description());
    let page = gateway.send("GET", "/api", "", b"").await.is(200).text();
    let description: Value = serde_json::from_str(&served.text()).unwrap();
    for (path, operations) in description["paths"].as_object().unwrap() {
        assert!(page.contains(path.as_str()), "{path}");
        for operation in operations.as_object().unwrap().values() {
            let id = operation["operationId"].as_str().unwrap_or("login");
            assert!(page.contains(&format!("<h2 id=\"{id}\">")), "{id}");
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let name = parameter["name"].as_str().unwrap();
                assert!(page.contains(name), "{name}");
            }
        }
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
