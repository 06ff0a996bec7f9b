//! What strangers send: nothing leaks, nothing fails within, nothing is found that was not named.

use super::client::{Running, raw};

#[tokio::test]
async fn names_that_lead_elsewhere_are_refused() {
    let gateway = Running::start("requests_per_second = 1e6").await;
    gateway.put(&gateway.a, "/v1/docs/c/x", "", "{}").await.is(201);
    for path in [
        "/v1/docs/../c/x",
        "/v1/docs/%2e%2e/x",
        "/v1/docs/%252e%252e/x",
        "/v1/docs/_steelyard/database",
        "/v1/docs/_idempotency/x",
        "/v1/docs/sqlite_master/x%00",
        "/v1/docs/c%2Fx",
        "/v1/docs/c/..",
        "/v1/docs/c/%2e%2e",
        "/v1/docs/c/%252e%252e",
        "/v1/docs/c/a%00b",
        "/v1/docs/c/a%5Cb",
        "/v1/docs/c/%FF",
        "/v1/docs/c;drop/x",
        "/v1/docs/c'--/x",
        "/v1/docs/c:each/x",
        "/v1/docs/:each",
        "/v1/docs/c:nothing",
        "/v1/docs//x",
        "/v1/docs/c/",
        "//v1/docs/c/x",
        "/v1/docs/%63/%78/y",
    ] {
        for method in ["GET", "PUT", "DELETE", "POST"] {
            let answer = gateway.ask(&gateway.a, method, path, "", "{}").await;
            assert!((400..500).contains(&answer.status), "{method} {path}: {answer:?}");
            let shown = answer.text();
            assert!(
                !shown.contains(gateway.folder.path().to_str().unwrap()),
                "{method} {path}: {shown}"
            );
        }
    }
}

/// Which methods there are is said, for each path and verb.
#[tokio::test]
async fn a_method_that_a_path_has_not_is_answered_with_those_it_has() {
    let gateway = Running::start("requests_per_second = 1e6").await;
    for (path, has) in [
        ("/v1/docs", "GET, HEAD"),
        ("/v1/docs/c", "GET, HEAD"),
        ("/v1/docs/c/x", "DELETE, GET, HEAD, PUT"),
        ("/v1/docs/c/x:bulk", "DELETE, GET, HEAD, PUT"),
        ("/v1/docs/c:bulk", "POST"),
        ("/v1/docs/c:query", "POST"),
        ("/v1/docs/c:count", "GET, HEAD"),
        ("/v1/docs/c:each", "GET, HEAD"),
        ("/login", "POST"),
        ("/c/c", "GET, HEAD"),
    ] {
        let methods = ["GET", "HEAD", "PUT", "DELETE", "POST", "PATCH", "OPTIONS", "TRACE"];
        for method in methods.into_iter().filter(|method| !has.split(", ").any(|h| h == *method)) {
            let answer = gateway.ask(&gateway.a, method, path, "", "").await.is(405);
            assert_eq!(answer.header("allow"), Some(has), "{method} {path}");
            // Also to those who have no key.
            gateway.send(method, path, "", b"").await.is(405);
        }
        for method in has.split(", ") {
            let answer = gateway.ask(&gateway.a, method, path, "", "{}").await;
            assert!(
                ![405, 404].contains(&answer.status)
                    || path == "/v1/docs/c/x"
                    || path.ends_with("x:bulk"),
                "{method} {path}: {answer:?}"
            );
        }
    }
}

#[tokio::test]
async fn conditions_are_those_of_the_grammar_alone() {
    let gateway = Running::start("requests_per_second = 1e6").await;
    gateway.put(&gateway.a, "/v1/docs/c/x", "", r#"{"name":"bob","age":7}"#).await.is(201);
    let deep = format!("{}age=1{}", "(not ".repeat(20), ")".repeat(20));
    let many = vec!["age=1"; 100].join(" or ");
    let list = format!("age in ({})", vec!["1"; 2000].join(","));
    let long = format!("name=\"{}\"", "x".repeat(9000));
    for condition in [
        r#"{"$where":"sleep(1000)"}"#,
        r#"{"age":{"$function":{"body":"x"}}}"#,
        r#"{"name":{"$regex":"(a+)+$"}}"#,
        r#"{"$and":[{"name":{"$regex":"^b"}}]}"#,
        r#"{"age":{"$ne":{"$gt":0}}}"#,
        r#"{"name":{"a":1}}"#,
        "name~/(a+)+$/",
        "not name~/b/",
        "age=1; drop table c",
        "age=",
        &deep,
        &many,
        &list,
        &long,
    ] {
        let body = serde_json::json!({ "where": condition }).to_string();
        let answer = gateway.ask(&gateway.a, "POST", "/v1/docs/c:query", "", &body).await.is(400);
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{condition}");
    }
    // What looks like SQL is a value.
    let body = serde_json::json!({ "where": "name=\"x' or '1'='1\"" }).to_string();
    let none = gateway.ask(&gateway.a, "POST", "/v1/docs/c:query", "", &body).await.is(200);
    assert_eq!(none.json()["items"], serde_json::json!([]));
    for body in [
        r#"{"where":{"$where":"1"}}"#,
        r#"{"where":7}"#,
        r#"{"limit":0}"#,
        r#"{"limit":1e9}"#,
        r#"{"sort":{"a":1}}"#,
        r#"{"sort":"a,b,c,d,e"}"#,
        r#"{"cursor":"x"}"#,
        r#"{"wehre":"age=7"}"#,
        r#"{"where":"age=7","where":"age=8"}"#,
        "[]",
        "",
    ] {
        gateway.ask(&gateway.a, "POST", "/v1/docs/c:query", "", body).await.is(400);
    }
    for query in [
        "limit=0",
        "limit=1001",
        "limit=x",
        "wehre=age=7",
        "where=age=7&where=age=8",
        "where=%FF",
        "cursor=%00",
    ] {
        gateway.get(&gateway.a, &format!("/v1/docs/c?{query}")).await.is(400);
    }
}

#[tokio::test]
async fn fields_of_the_server_and_names_twice_are_refused() {
    let gateway = Running::start("").await;
    let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
    for body in [
        r#"{"_rev":"1"}"#,
        r#"{"_key":"1"}"#,
        r#"{"admin":false,"admin":true}"#,
        r#"{"a":{"b":1,"\u0062":2}}"#,
        r#"{"a":1}{"b":2}"#,
        r#"{"a":1"#,
        "[1]",
        "7",
        "",
        &format!("{{\"a\":{deep}}}"),
        "{\"a\":\"\u{0}\"}",
    ] {
        gateway.put(&gateway.a, "/v1/docs/c/x", "", body).await.is(400);
    }
    gateway.get(&gateway.a, "/v1/docs/c/x").await.is(404);
}

/// Requests that two programs could understand in two ways.
#[tokio::test]
async fn requests_of_two_lengths_are_refused() {
    let gateway = Running::start("").await;
    let key = format!("Authorization: Bearer {}\r\n", gateway.a.reveal());
    for lengths in [
        "Content-Length: 2\r\nContent-Length: 30\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: x\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 1e3\r\n",
    ] {
        let request = format!(
            "PUT /v1/docs/c/x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{key}{lengths}\r\n{{}}"
        );
        let answer = raw(&gateway.address, request.as_bytes()).await;
        assert_eq!(answer.status, 400, "{lengths}: {answer:?}");
    }
    let long =
        format!("GET /v1/docs/c/x HTTP/1.1\r\nHost: h\r\n{key}X: {}\r\n\r\n", "y".repeat(100_000));
    assert_eq!(raw(&gateway.address, long.as_bytes()).await.status, 431);
    gateway.get(&gateway.a, "/v1/docs/c/x").await.is(404);
}

/// Whether tenants share tables or not, what one has is nobody else's to find out, also in a store whose names know no case.
#[tokio::test]
async fn names_of_collections_are_each_tenants_own_whatever_their_case() {
    for layout in ["own", "shared"] {
        let gateway = Running::start_in(layout, "").await;
        gateway.put(&gateway.b, "/v1/docs/secretsb/x", "", r#"{"of":"b"}"#).await.is(201);
        let got = gateway.get(&gateway.a, "/v1/docs/SECRETSB").await.is(200);
        assert_eq!(got.json()["items"], serde_json::json!([]), "{layout}");
        gateway.put(&gateway.a, "/v1/docs/SECRETSB/x", "", r#"{"of":"a"}"#).await.is(201);
        let own = gateway.get(&gateway.b, "/v1/docs/secretsb/x").await.is(200);
        assert_eq!(own.text(), r#"{"of":"b"}"#);
        let names = gateway.get(&gateway.a, "/v1/docs").await.is(200).text();
        assert!(names.contains("SECRETSB") && !names.contains("secretsb"), "{names}");
        // Nor does an error name what holds them apart.
        for body in [r#"{"a":18446744073709551615}"#, r#"{"a":0.1e-400}"#] {
            let said = gateway.put(&gateway.a, "/v1/docs/p/d1", "", body).await.text();
            assert!(!said.contains("steelyard_"), "{layout}: {said}");
        }
    }
}

/// An answer that was decided before the body came leaves the connection as it was.
#[tokio::test]
async fn who_is_refused_early_can_ask_again_on_the_same_connection() {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
    };
    let gateway = Running::start("").await;
    let key = gateway.a.reveal().to_owned();
    let mut stream = TcpStream::connect(&gateway.address).await.unwrap();
    for (key, want) in [("no key", "401"), (&*key, "201"), ("no key", "401"), (&*key, "200")] {
        let head = format!(
            "PUT /v1/docs/c/x HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\nContent-Length: 7\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        // A request behind it was answered, so it has been decided, if that is done before its body comes.
        gateway.get(&gateway.b, "/v1/docs").await.is(200);
        stream.write_all(br#"{"a":1}"#).await.unwrap();
        let mut answer = Vec::new();
        while !answer.windows(4).any(|end| end == b"\r\n\r\n") || !whole(&answer) {
            let n = stream.read_buf(&mut answer).await.unwrap();
            assert!(n > 0, "closed: {}", String::from_utf8_lossy(&answer));
        }
        let text = String::from_utf8_lossy(&answer).into_owned();
        assert!(text.starts_with(&format!("HTTP/1.1 {want}")), "{text}");
        assert!(!text.to_lowercase().contains("connection: close"), "{text}");
    }
}

/// Whether an answer has as many bytes as it says.
fn whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    length.is_none_or(|length| body.len() >= length.parse().unwrap_or(0))
}

/// What is refused makes nothing.
#[tokio::test]
async fn a_write_that_is_refused_makes_no_collection() {
    let gateway = Running::start("").await;
    for (headers, body) in [
        ("", r#"{"c":12345678901234567890123}"#),
        ("If-Match: \"x\"\r\n", "{}"),
        ("", "{"),
        ("", "[]"),
    ] {
        let status = gateway.put(&gateway.a, "/v1/docs/refused/1", headers, body).await.status;
        assert!((400..500).contains(&status), "{status} {body}");
    }
    let names = gateway.get(&gateway.a, "/v1/docs").await.is(200).text();
    assert!(!names.contains("refused"), "{names}");
}
