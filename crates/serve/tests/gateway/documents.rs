//! Documents: revisions, conditions, repetition, lists, and many at once.

use serde_json::{Value, json};

use super::client::Running;

#[tokio::test]
async fn a_document_is_kept_as_it_was_sent() {
    let gateway = Running::start("").await;
    let document =
        r#"{"name":"Ångström","n":1234567890123456789,"list":[1,2.5,null],"in":{"x":true}}"#;
    let put = gateway.put(&gateway.a, "/v1/docs/units/%C3%85%2F1", "", document).await.is(201);
    let got = gateway.get(&gateway.a, "/v1/docs/units/%C3%85%2F1").await.is(200);
    assert_eq!((got.text(), got.tag()), (document.to_owned(), put.tag()));
    assert_eq!(got.header("content-type"), Some("application/json"));
    assert_eq!(got.header("cache-control"), Some("private, no-cache"));
    gateway.put(&gateway.a, "/v1/docs/units/%C3%85%2F1", "", "{}").await.is(200);
    // What the store would round, it does not take.
    let digits = r#"{"n":12345678901234567890123}"#;
    gateway.put(&gateway.a, "/v1/docs/units/digits", "", digits).await.is(422);
    gateway.ask(&gateway.a, "DELETE", "/v1/docs/units/%C3%85%2F1", "", "").await.is(204);
    gateway.ask(&gateway.a, "DELETE", "/v1/docs/units/%C3%85%2F1", "", "").await.is(404);
    gateway.get(&gateway.a, "/v1/docs/units/%C3%85%2F1").await.is(404);
    gateway.get(&gateway.a, "/v1/docs/nothing/x").await.is(404);
}

#[tokio::test]
async fn a_write_on_a_condition_happens_only_there() {
    let gateway = Running::start("").await;
    let (key, path) = (&gateway.a, "/v1/docs/c/x");
    let first = gateway.put(key, path, "If-None-Match: *\r\n", r#"{"n":1}"#).await.is(201);
    gateway.put(key, path, "If-None-Match: *\r\n", r#"{"n":2}"#).await.is(412);
    let with = |tag: &str| format!("If-Match: {tag}\r\n");
    let second = gateway.put(key, path, &with(first.tag()), r#"{"n":2}"#).await.is(200);
    gateway.put(key, path, &with(first.tag()), r#"{"n":3}"#).await.is(412);
    gateway.put(key, path, &with("*"), r#"{"n":4}"#).await.is(200);
    gateway.put(key, "/v1/docs/c/y", &with("*"), r#"{"n":4}"#).await.is(412);
    gateway.ask(key, "DELETE", path, &with(second.tag()), "").await.is(412);
    let now = gateway.get(key, path).await.is(200);
    assert_eq!(now.text(), r#"{"n":4}"#);
    let known = format!("If-None-Match: {}\r\n", now.tag());
    gateway.ask(key, "GET", path, &known, "").await.is(304);
    gateway.ask(key, "DELETE", path, &with(now.tag()), "").await.is(204);
}

/// Ten writers that add one each, a hundred times: the sum is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_write_of_several_writers_is_lost() {
    let gateway = std::sync::Arc::new(Running::start("requests_per_second = 1e6").await);
    gateway.put(&gateway.a, "/v1/docs/c/sum", "", r#"{"n":0}"#).await.is(201);
    let mut writers = Vec::new();
    for _ in 0..5 {
        let gateway = gateway.clone();
        writers.push(tokio::spawn(async move {
            for _ in 0..20 {
                loop {
                    let got = gateway.get(&gateway.a, "/v1/docs/c/sum").await.is(200);
                    let n = got.json()["n"].as_u64().unwrap() + 1;
                    let tag = format!("If-Match: {}\r\n", got.tag());
                    let put = gateway
                        .put(&gateway.a, "/v1/docs/c/sum", &tag, &format!("{{\"n\":{n}}}"))
                        .await;
                    if put.status == 200 {
                        break;
                    }
                    put.is(412);
                }
            }
        }));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(gateway.get(&gateway.a, "/v1/docs/c/sum").await.json(), json!({ "n": 100 }));
}

#[tokio::test]
async fn what_is_repeated_with_its_key_is_done_once() {
    let mut gateway = Running::start("").await;
    let key = gateway.a.clone();
    let once = "Idempotency-Key: order 17\r\n";
    let first = gateway.put(&key, "/v1/docs/c/x", once, r#"{"n":1}"#).await.is(201);
    // Somebody else writes, the gateway is started anew, and then the repetition comes.
    let other = gateway.put(&key, "/v1/docs/c/x", "", r#"{"n":2}"#).await.is(200);
    gateway.restart().await;
    let again = gateway.put(&key, "/v1/docs/c/x", once, r#"{"n":1}"#).await.is(201);
    assert_eq!((again.tag(), again.header("idempotent-replayed")), (first.tag(), Some("true")));
    assert_eq!(gateway.get(&key, "/v1/docs/c/x").await.is(200).tag(), other.tag());
    gateway.put(&key, "/v1/docs/c/x", once, r#"{"n":3}"#).await.is(422);
    gateway.put(&key, "/v1/docs/c/y", once, r#"{"n":1}"#).await.is(422);
    // Of another tenant it is another key.
    gateway.put(&gateway.b, "/v1/docs/c/x", once, r#"{"n":1}"#).await.is(201);
    let delete = "Idempotency-Key: d\r\n";
    gateway.ask(&key, "DELETE", "/v1/docs/c/x", delete, "").await.is(204);
    gateway.put(&key, "/v1/docs/c/x", "", r#"{"n":5}"#).await.is(201);
    gateway.ask(&key, "DELETE", "/v1/docs/c/x", delete, "").await.is(204);
    gateway.get(&key, "/v1/docs/c/x").await.is(200);
    for bad in ["Idempotency-Key: \r\n", &format!("Idempotency-Key: {}\r\n", "x".repeat(129))] {
        gateway.put(&key, "/v1/docs/c/x", bad, "{}").await.is(400);
    }
}

/// A key that was not used before is no reason to refuse what would be done without one.
#[tokio::test]
async fn writers_with_keys_come_one_after_the_other() {
    let gateway = Running::start("requests_per_second = 1e6").await;
    let writers = (0..8).map(async |writer| {
        for n in 0..20 {
            let once = format!("Idempotency-Key: {writer}-{n}\r\n");
            let put = gateway.put(&gateway.a, "/v1/docs/c/x", &once, "{\"n\":1}").await;
            assert!(put.status < 300, "{put:?}");
        }
    });
    futures_util::future::join_all(writers).await;
    // One with a condition is refused by it, and can be sent again.
    let once = "Idempotency-Key: c\r\nIf-Match: \"none\"\r\n";
    gateway.put(&gateway.a, "/v1/docs/c/x", once, "{}").await.is(412);
    gateway.put(&gateway.a, "/v1/docs/c/x", once, "{}").await.is(412);
}

/// Pages are read in portions, which begin and end anywhere in them.
#[tokio::test]
async fn pages_of_any_length_have_every_document_once() {
    let gateway = Running::start("requests_per_second = 1e6").await;
    let key = &gateway.a;
    let text = "x".repeat(2000);
    let lines: String = (0..450)
        .map(|i| format!("{{\"id\":\"k{i:03}\",\"doc\":{{\"n\":{i},\"text\":\"{text}\"}}}}\n"))
        .collect();
    gateway.ask(key, "POST", "/v1/docs/c:bulk", "", &lines).await.is(200);
    for limit in [25, 26, 27, 100, 233, 449, 450, 451, 1000] {
        for condition in ["", "&where=n%3E=7", "&fields=n"] {
            let (mut seen, mut cursor) = (Vec::new(), String::new());
            loop {
                let path = format!("/v1/docs/c?limit={limit}{condition}{cursor}");
                let page = gateway.get(key, &path).await.is(200).json();
                let items = page["items"].as_array().unwrap();
                assert!(items.len() <= limit);
                seen.extend(items.iter().map(|item| item["id"].as_str().unwrap().to_owned()));
                if condition == "&fields=n" {
                    assert_eq!(items[0]["doc"].as_object().unwrap().len(), 1);
                }
                match page["next"].as_str() {
                    Some(next) => cursor = format!("&cursor={next}"),
                    None => break,
                }
            }
            let first = if condition.contains("where") { 7 } else { 0 };
            let want: Vec<String> = (first..450).map(|i| format!("k{i:03}")).collect();
            assert_eq!(seen, want, "limit={limit}{condition}");
        }
    }
    let many = vec!["f"; 257].join(",");
    gateway.get(key, &format!("/v1/docs/c?fields={many}")).await.is(400);
    // Names that databases have for themselves.
    for name in ["pg_class", "PG_x", "sqlite_master", "pragma_x"] {
        gateway.get(key, &format!("/v1/docs/{name}/1")).await.is(400);
    }
}

#[tokio::test]
async fn pages_have_every_document_once() {
    let gateway = Running::start("requests_per_second = 1e6\nbulk_documents = 1000").await;
    let key = &gateway.a;
    let lines: String = (0..250)
        .map(|i| {
            format!("{{\"id\":\"k{i:03}\",\"doc\":{{\"n\":{},\"even\":{}}}}}\n", i % 50, i % 2 == 0)
        })
        .collect();
    let bulk = gateway.ask(key, "POST", "/v1/docs/c:bulk", "", &lines).await.is(200);
    assert!(bulk.lines().iter().all(|line| line["status"] == 200), "{}", bulk.text());
    assert_eq!(gateway.get(key, "/v1/docs/c:count").await.is(200).json(), json!({ "count": 250 }));
    for (query, want) in [
        ("limit=7", 250),
        ("limit=100", 250),
        ("limit=7&where=even=true", 125),
        ("limit=10&sort=-n", 250),
        ("limit=10&sort=n&where=n%3E%3D40", 50),
        ("limit=3&where=_key%5E%3Dk01", 10),
    ] {
        let (mut ids, mut cursor) = (Vec::new(), String::new());
        loop {
            let page =
                gateway.get(key, &format!("/v1/docs/c?{query}{cursor}")).await.is(200).json();
            let items = page["items"].as_array().unwrap().clone();
            ids.extend(items.iter().map(|item| item["id"].as_str().unwrap().to_owned()));
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        let all = ids.len();
        if !query.contains("sort") {
            assert!(ids.is_sorted(), "{query}");
        }
        ids.sort();
        ids.dedup();
        assert_eq!((all, ids.len()), (want, want), "{query}");
    }
    let each = gateway.get(key, "/v1/docs/c:each?where=even%3Dfalse&fields=n").await.is(200);
    assert_eq!(each.lines().len(), 125);
    assert!(each.lines().iter().all(|line| line["doc"].as_object().unwrap().len() == 1));
    let query = r#"{"where":{"n":{"$gte":49}},"sort":"-_key","limit":2}"#;
    let page = gateway.ask(key, "POST", "/v1/docs/c:query", "", query).await.is(200).json();
    assert_eq!(page["items"][0]["id"], "k249");
    // A cursor is good for its own list.
    let next =
        gateway.get(key, "/v1/docs/c?limit=2").await.json()["next"].as_str().unwrap().to_owned();
    gateway.get(key, &format!("/v1/docs/c?limit=5&cursor={next}")).await.is(200);
    gateway.get(key, &format!("/v1/docs/d?limit=2&cursor={next}")).await.is(400);
    gateway.get(&gateway.b, &format!("/v1/docs/c?limit=2&cursor={next}")).await.is(400);
    assert_eq!(
        gateway.get(key, "/v1/docs/none").await.is(200).json(),
        json!({ "items": [], "next": null })
    );
    assert_eq!(gateway.get(key, "/v1/docs").await.is(200).json(), json!({ "collections": ["c"] }));
}

#[tokio::test]
async fn each_line_of_a_bulk_request_has_its_own_status() {
    let gateway = Running::start("document_bytes = 1000").await;
    let put = gateway.put(&gateway.a, "/v1/docs/c/there", "", r#"{"n":1}"#).await.is(201);
    let tag = put.tag().trim_matches('"');
    let long = "x".repeat(1001);
    let lines = [
        json!({ "id": "new", "doc": { "n": 1 } }),
        json!({ "id": "new", "doc": { "n": 2 } }),
        json!({ "id": "new", "rev": null, "doc": { "n": 3 } }),
        json!({ "id": "there", "rev": tag, "doc": { "n": 2 } }),
        json!({ "id": "there", "rev": tag, "delete": true }),
        json!({ "id": "there", "delete": true }),
        json!({ "id": "there", "delete": true }),
        json!({ "id": "..", "doc": {} }),
        json!({ "id": 7, "doc": {} }),
        json!({ "id": "x", "doc": [] }),
        json!({ "id": "x", "doc": {}, "delete": true }),
        json!({ "id": "x", "doc": { "_rev": "1" } }),
        json!({ "id": "x", "doc": {}, "more": 1 }),
        json!({ "id": "long", "doc": { "x": long } }),
        json!({ "id": "last", "doc": { "n": 1 } }),
    ];
    let mut body: String = lines.iter().map(|line| format!("{line}\n")).collect();
    body += "{\"id\":\"x\",\"id\":\"y\",\"doc\":{}}\nno json\n\n";
    let answer = gateway.ask(&gateway.a, "POST", "/v1/docs/c:bulk", "", &body).await.is(200);
    let status: Vec<u64> =
        answer.lines().iter().map(|line| line["status"].as_u64().unwrap()).collect();
    let want =
        [200, 200, 412, 200, 412, 204, 404, 400, 400, 400, 400, 400, 400, 413, 200, 400, 400];
    assert_eq!(status, want, "{}", answer.text());
    // Whose it is, as far as that can be told; what is too long is not read.
    let ids: Vec<Value> = answer.lines().iter().map(|line| line["id"].clone()).collect();
    let want = json!([
        "new", "new", "new", "there", "there", "there", "there", null, null, "x", "x", "x", "x",
        null, "last", null, null
    ]);
    assert_eq!(Value::from(ids), want, "{}", answer.text());
    assert_eq!(gateway.get(&gateway.a, "/v1/docs/c/new").await.json(), json!({ "n": 2 }));
    gateway.get(&gateway.a, "/v1/docs/c/x").await.is(404);
    let last = answer.lines().last().unwrap()["problem"]["detail"].clone();
    assert_eq!(last, "not valid JSON: expected ident at line 17 column 2");
}

#[tokio::test]
async fn bulk_makes_a_collection_for_what_it_keeps() {
    let gateway = Running::start("").await;
    let refused =
        "no json\n{\"id\":\"x\",\"delete\":true}\n{\"id\":\"x\",\"rev\":\"r\",\"doc\":{}}\n";
    let answer = gateway.ask(&gateway.a, "POST", "/v1/docs/c:bulk", "", refused).await.is(200);
    let status: Vec<Value> = answer.lines().iter().map(|line| line["status"].clone()).collect();
    assert_eq!(status, [400, 404, 412]);
    let names = async || gateway.get(&gateway.a, "/v1/docs").await.is(200).json();
    assert_eq!(names().await, json!({ "collections": [] }));
    for kept in [r#"{"id":"x","rev":null,"doc":{}}"#, r#"{"id":"y","doc":{}}"#] {
        let bulk = gateway.ask(&gateway.a, "POST", "/v1/docs/d:bulk", "", kept).await.is(200);
        assert!(bulk.lines()[0]["status"].as_u64().unwrap() < 300, "{}", bulk.text());
    }
    assert_eq!(names().await, json!({ "collections": ["d"] }));
}

#[tokio::test]
async fn a_document_comes_in_the_format_that_is_accepted() {
    let gateway = Running::start("").await;
    gateway.put(&gateway.a, "/v1/docs/c/x", "", r#"{"n":[1,2]}"#).await.is(201);
    for (media, start) in [
        ("application/json", &b"{\"n\":[1,2]}"[..]),
        ("application/vnd.msgpack", b"\x81\xa1n\x92\x01\x02"),
        ("application/cbor", b"\xa1\x61n\x82\x01\x02"),
        ("text/html, application/cbor;q=0.5", b"\xa1\x61n\x82\x01\x02"),
    ] {
        let got = gateway
            .ask(&gateway.a, "GET", "/v1/docs/c/x", &format!("Accept: {media}\r\n"), "")
            .await
            .is(200);
        assert_eq!(got.body, start, "{media}");
    }
    gateway.ask(&gateway.a, "GET", "/v1/docs/c/x", "Accept: text/html\r\n", "").await.is(406);
    let sent = "Content-Type: application/cbor\r\n";
    let head = format!("Authorization: Bearer {}\r\n{sent}", gateway.a.reveal());
    gateway.send("PUT", "/v1/docs/c/y", &head, b"\xa1\x61n\x82\x01\x02").await.is(201);
    assert_eq!(gateway.get(&gateway.a, "/v1/docs/c/y").await.text(), r#"{"n":[1,2]}"#);
    gateway.put(&gateway.a, "/v1/docs/c/y", "Content-Type: text/csv\r\n", "n").await.is(415);
}
