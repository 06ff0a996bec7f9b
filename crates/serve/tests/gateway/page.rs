//! The page, as browsers ask for it.

use std::time::Duration;

use serde_json::{Value, json};
use steelyard_serve::{ApiKey, Gateway};

use super::client::{Answer, Running, name, raw};

/// What a browser says where a page of the gateway sends a form.
const OWN: &str =
    "Sec-Fetch-Site: same-origin\r\nContent-Type: application/x-www-form-urlencoded\r\n";

/// The part of a `Set-Cookie` that comes back.
fn cookie(answer: &Answer) -> String {
    let set = answer.header("set-cookie").unwrap_or_else(|| panic!("no cookie: {answer:?}"));
    format!("Cookie: {}\r\n", set.split(';').next().unwrap())
}

/// Signs in by the form, and gives the header of the session.
pub async fn session(gateway: &Running, key: &ApiKey) -> String {
    let form = format!("key={}", key.reveal());
    let answer = gateway.send("POST", "/login", OWN, form.as_bytes()).await.is(303);
    assert_eq!(answer.header("location"), Some("/"));
    cookie(&answer)
}

pub async fn page(gateway: &Running, session: &str, path: &str) -> Answer {
    gateway.send("GET", path, session, b"").await
}

fn link(gateway: &Running, key: &ApiKey) -> String {
    gateway.gateway.upgrade().unwrap().page_link(key).unwrap()
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// A text as it stands in HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

/// The ids in the table of a page.
fn ids(page: &str) -> Vec<String> {
    let rows = page.split("scope=\"row\">").skip(1);
    let text = |row: &str| {
        let row = &row[..row.find("</th>").unwrap()];
        let from = row.find('>').map_or(0, |at| at + 1);
        unescaped(row[from..].trim_end_matches("</a>"))
    };
    rows.map(text).collect()
}

/// The address of the next page.
fn next(page: &str) -> Option<String> {
    let from = page.find("rel=\"next\" href=\"")? + "rel=\"next\" href=\"".len();
    Some(unescaped(&page[from..from + page[from..].find('"')?]))
}

pub async fn bulk(
    gateway: &Running,
    key: &ApiKey,
    collection: &str,
    documents: &[(String, Value)],
) {
    let line = |(id, doc): &(String, Value)| format!("{}\n", json!({ "id": id, "doc": doc }));
    let lines: String = documents.iter().map(line).collect();
    let path = format!("/v1/docs/{collection}:bulk");
    let answer = gateway.ask(key, "POST", &path, "", &lines).await.is(200);
    let failed: Vec<Value> =
        answer.lines().into_iter().filter(|line| line["status"].as_u64() >= Some(300)).collect();
    assert!(failed.is_empty(), "{failed:?}");
}

#[tokio::test]
async fn a_link_signs_in_once_and_for_ten_minutes() {
    let gateway = Running::start("").await;
    let first = link(&gateway, &gateway.a);
    // A look at it does not use it up.
    gateway.send("HEAD", &first, "", b"").await.is(400);
    let opened = gateway.send("GET", &first, "", b"").await.is(303);
    assert_eq!(opened.header("location"), Some("/"));
    page(&gateway, &cookie(&opened), "/").await.is(200);
    let again = gateway.send("GET", &first, "", b"").await.is(401);
    assert!(again.text().contains("opened before") && again.text().contains("name=\"key\""));

    let second = link(&gateway, &gateway.a);
    gateway.clock.advance(Duration::from_secs(600));
    gateway.send("GET", &second, "", b"").await.is(401);
    for guess in ["", "x", &"A".repeat(43)] {
        gateway.send("GET", &format!("/?token={guess}"), "", b"").await.is(401);
    }
}

#[tokio::test]
async fn a_session_is_a_cookie_that_only_the_page_gets_back() {
    let gateway = Running::start("").await;
    let form = format!("key=+{}%0A", gateway.a.reveal());
    let answer = gateway.send("POST", "/login", OWN, form.as_bytes()).await.is(303);
    let set = answer.header("set-cookie").unwrap();
    let parts: Vec<&str> = set.split(';').map(str::trim).collect();
    assert_eq!(parts[1..], ["Path=/", "HttpOnly", "SameSite=Strict"], "{set}");
    assert!(parts[0].len() > 40 && !set.contains(gateway.a.prefix()), "{set}");
    let first = cookie(&answer);
    page(&gateway, &first, "/").await.is(200);
    // The API takes no cookie, and the page no header.
    gateway.send("GET", "/v1/docs", &first, b"").await.is(401);
    let bearer = format!("Authorization: Bearer {}\r\n", gateway.a.reveal());
    gateway.send("GET", "/c/people", &bearer, b"").await.is(401);
    // Who signs in again has another session, and not the old one.
    let headers = format!("{OWN}{first}");
    let second = gateway.send("POST", "/login", &headers, form.as_bytes()).await.is(303);
    let second = cookie(&second);
    page(&gateway, &first, "/c/x").await.is(401);
    page(&gateway, &second, "/c/x").await.is(200);
    let out = gateway.send("POST", "/logout", &format!("{OWN}{second}"), b"").await.is(303);
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
    page(&gateway, &second, "/c/x").await.is(401);

    let third = session(&gateway, &gateway.a).await;
    gateway.clock.advance(Duration::from_secs(12 * 3600 - 1));
    page(&gateway, &third, "/").await.is(200);
    gateway.clock.advance(Duration::from_secs(12 * 3600));
    page(&gateway, &third, "/").await.is(401);
}

#[tokio::test]
async fn forms_of_other_sites_are_refused() {
    let gateway = Running::start("").await;
    let form = format!("key={}", gateway.a.reveal());
    let session = session(&gateway, &gateway.a).await;
    for foreign in [
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\nOrigin: http://localhost\r\n",
        "Origin: http://evil.example\r\n",
        "Origin: null\r\n",
    ] {
        let answer = gateway.send("POST", "/login", foreign, form.as_bytes()).await.is(403);
        assert!(answer.header("set-cookie").is_none(), "{foreign}");
        gateway.send("POST", "/logout", &format!("{foreign}{session}"), b"").await.is(403);
    }
    page(&gateway, &session, "/").await.is(200);
    gateway.send("POST", "/login", "Origin: http://localhost\r\n", form.as_bytes()).await.is(303);
    // What changes something is no link.
    for path in ["/login", "/logout"] {
        page(&gateway, &session, path).await.is(405);
    }
}

#[tokio::test]
async fn a_wrong_key_is_told() {
    let gateway = Running::start("").await;
    let secret = gateway.b.reveal();
    for key in ["", "x", &secret[..30], &format!("{}.{}", gateway.a.prefix(), &secret[17..])] {
        let answer =
            gateway.send("POST", "/login", OWN, format!("key={key}").as_bytes()).await.is(401);
        assert!(answer.text().contains("not valid") && !answer.text().contains(&secret[..30]));
    }
    gateway.send("POST", "/login", OWN, b"key=a&key=b").await.is(400);
    gateway.send("POST", "/login", OWN, "x".repeat(2000).as_bytes()).await.is(413);
    // What was made up locks nobody out.
    for i in 0..150 {
        let key = format!("key=unknown{i:05}abcd.{}", "x".repeat(43));
        gateway.send("POST", "/login", OWN, key.as_bytes()).await.is(401);
    }
    let good = format!("key={}", gateway.b.reveal());
    gateway.send("POST", "/login", OWN, good.as_bytes()).await.is(303);
}

#[tokio::test]
async fn a_session_shows_a_tenant_only_its_own() {
    let gateway = Running::start("").await;
    gateway.put(&gateway.b, "/v1/docs/secrets/plan", "", r#"{"plan":"dawn"}"#).await.is(201);
    let (a, b) = (session(&gateway, &gateway.a).await, session(&gateway, &gateway.b).await);
    let paths = [
        ("/", 200),
        ("/c/secrets", 200),
        ("/c/secrets?where=plan~dawn&sort=plan", 200),
        ("/c/secrets/plan", 404),
        ("/c/secrets/export?format=jsonl", 200),
        ("/c/secrets/export?format=csv", 200),
    ];
    for (path, status) in paths {
        let own = page(&gateway, &b, path).await.is(200).text();
        assert!(own.contains("dawn") || own.contains("secrets"), "{path}");
        for headers in [a.clone(), format!("{a}X-Tenant: b\r\n")] {
            let other = page(&gateway, &headers, path).await.is(status).text();
            let shown = other.replace("plan~dawn", "").replace(&encoded_once("plan~dawn"), "");
            assert!(!shown.contains("dawn"), "{path}: {other}");
            assert!(path != "/" || !shown.contains("secrets"), "{other}");
        }
        // Without a session, with one that is none, and with two.
        if path != "/" {
            gateway.send("GET", path, "", b"").await.is(401);
        }
        let two = format!("{}; {}\r\n", a.trim_end(), b.trim_end().trim_start_matches("Cookie: "));
        let port = gateway.address.rsplit_once(':').unwrap().1;
        for headers in [&format!("Cookie: steelyard_session_{port}=x\r\n"), &two] {
            let answer = gateway.send("GET", path, headers, b"").await;
            assert!(answer.text().contains("name=\"key\""), "{path}: {answer:?}");
        }
    }
    // A cursor of the other tenant's list is none of this one's.
    let more: Vec<_> = (0..3).map(|i| (format!("k{i}"), json!({ "n": i }))).collect();
    for key in [&gateway.a, &gateway.b] {
        bulk(&gateway, key, "list", &more).await;
    }
    let next = next(&page(&gateway, &b, "/c/list?limit=1").await.is(200).text()).unwrap();
    page(&gateway, &b, &next).await.is(200);
    page(&gateway, &a, &next).await.is(400);
}

fn encoded_once(text: &str) -> String {
    text.replace('~', "%7E")
}

#[tokio::test]
async fn hostile_values_stay_text() {
    let gateway = Running::start("requests_per_second = 1e6").await;
    let session = session(&gateway, &gateway.a).await;
    let evil = "\"'><i data-evil onload=x>&lt;</title></script><script>x</script>";
    let long = "y".repeat(400);
    let values =
        [evil, "$(touch x) `x` 'a'\\", "a\u{202e}b\u{85}c\u{2028}d", "\u{1}\u{1b}[31m", &long];
    let mut documents = Vec::new();
    for (i, value) in values.iter().enumerate() {
        let id = match value.contains(|c: char| c.is_control() || c == '\\') {
            true => format!("id{i}"),
            false => (*value).to_owned(),
        };
        // The name of a field, a value, and both in depth.
        documents.push((id, json!({ "x": value, format!("{value}!"): { *value: [value] } })));
    }
    bulk(&gateway, &gateway.a, "c", &documents).await;
    let q = encoded(evil);
    let mut paths = vec![
        "/".to_owned(),
        "/c/c".into(),
        format!("/c/c?sort={q}"),
        format!("/c/c?fields={q}"),
        format!("/c/c?where={q}"),
        format!("/c/c?where=x~{}", encoded(&serde_json::to_string(evil).unwrap())),
        format!("/c/c?limit={q}"),
        format!("/c/c?cursor={q}"),
        format!("/c/c?{q}=1"),
        format!("/c/{q}"),
        format!("/c/c/{q}x"),
        format!("/c/c/export?format={q}"),
        format!("/c/c/export?format=csv&fields={q}"),
        format!("/c/c/export?format=jsonl&where={q}"),
        format!("/?token={q}"),
        format!("/?{q}"),
        format!("/{q}"),
    ];
    paths.extend(documents.iter().map(|(id, _)| format!("/c/c/{}", encoded(id))));
    for path in &paths {
        let answer = page(&gateway, &format!("{session}Accept: text/html\r\n"), path).await;
        if answer.header("content-disposition").is_some() {
            continue;
        }
        assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"), "{path}");
        let text = answer.text();
        for raw in ["<i data-evil", "<script", "\"'>", "</title></"] {
            assert!(!text.contains(raw), "{path}: {raw} in {text}");
        }
        let orders = |c: char| c.is_control() && c != '\n' || "\u{202e}\u{2028}".contains(c);
        assert!(!text.contains(orders), "{path}: {text:?}");
    }
    // What is shown of it is what it is.
    let record = page(&gateway, &session, &format!("/c/c/{q}")).await.is(200).text();
    assert!(record.contains(&escaped(evil)), "{record}");
    let list = page(&gateway, &session, "/c/c").await.is(200).text();
    let cut = format!(">{}…<", "y".repeat(120));
    assert!(list.contains(&cut) && !list.contains(&format!(">{}", "y".repeat(121))), "{list}");
    // Commands are words of a shell.
    let path = format!("/c/c?where=x~{}", encoded("\"it's $(x)\""));
    let quoted = page(&gateway, &session, &path).await.is(200).text();
    assert!(quoted.contains(&escaped(r#"--data-urlencode 'where=x~"it'\''s $(x)"'"#)), "{quoted}");
    assert!(quoted.contains(&escaped("\"http://localhost/v1/docs/c\"")), "{quoted}");
    let path = format!("/c/c/export?format=jsonl&where=x~{}", encoded("\"a\""));
    let file = page(&gateway, &session, &path).await.is(200);
    assert_eq!(file.header("content-disposition"), Some("attachment; filename=\"c.jsonl\""));
}

#[tokio::test]
async fn a_record_of_any_id_has_its_page() {
    let gateway = Running::start("").await;
    let session = session(&gateway, &gateway.a).await;
    let ids = ["export", "a/b?c#d", "ü 1", "x:each", "100%", "a+b", "...", "%2e%2e%2e"];
    let documents: Vec<_> =
        ids.iter().map(|id| ((*id).to_owned(), json!({ "is": format!("<{id}>") }))).collect();
    bulk(&gateway, &gateway.a, "c", &documents).await;
    let list = page(&gateway, &session, "/c/c").await.is(200).text();
    let links: Vec<&str> = list.split("href=\"/c/c/").skip(1).collect();
    assert_eq!(links.len(), ids.len());
    for link in links {
        let link = format!("/c/c/{}", &link[..link.find('"').unwrap()]);
        let record = page(&gateway, &session, &link).await.is(200).text();
        let is =
            documents.iter().filter(|(id, _)| record.contains(&escaped(&format!("\"<{id}>\""))));
        assert_eq!(is.count(), 1, "{link}: {record}");
        // Its download has it alone.
        let condition = record.split("name=\"where\" value=\"").nth(1).unwrap();
        let condition = unescaped(&condition[..condition.find('"').unwrap()]);
        let path = format!("/c/c/export?format=jsonl&where={}", encoded(&condition));
        assert_eq!(page(&gateway, &session, &path).await.is(200).lines().len(), 1, "{condition}");
    }
    page(&gateway, &session, "/c/c/nobody").await.is(404);
    page(&gateway, &session, "/c/c/%FF").await.is(400);
    page(&gateway, &session, "/c/c/%2e%2e").await.is(400);
    page(&gateway, &session, "/c/_steelyard").await.is(400);
}

#[tokio::test]
async fn lists_are_those_of_the_api() {
    let gateway = Running::start("requests_per_second = 1e6").await;
    let session = session(&gateway, &gateway.a).await;
    let documents: Vec<_> = (0..120)
        .map(|i| (format!("k{i:03}"), json!({ "n": i * 37 % 50, "even": i % 2 == 0, "t": "x" })))
        .collect();
    bulk(&gateway, &gateway.a, "c", &documents).await;
    for query in [
        "limit=7",
        "limit=50&where=even=true",
        "limit=9&sort=-n",
        "limit=9&sort=n,even&where=n%3E%3D40",
        "limit=11&fields=n",
        "limit=3&where=n%3E1000",
    ] {
        let mut of_page = Vec::new();
        let mut path = Some(format!("/c/c?{query}"));
        while let Some(now) = path {
            let text = page(&gateway, &session, &now).await.is(200).text();
            of_page.extend(ids(&text));
            path = next(&text);
        }
        let (mut of_api, mut cursor) = (Vec::new(), String::new());
        loop {
            let path = format!("/v1/docs/c?{query}{cursor}");
            let found = gateway.get(&gateway.a, &path).await.is(200).json();
            let items = found["items"].as_array().unwrap();
            of_api.extend(items.iter().map(|item| item["id"].as_str().unwrap().to_owned()));
            match found["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(of_page, of_api, "{query}");
    }
    // What the API refuses, the page does, beside its form.
    for (query, shown) in [
        ("where=n%3E%3E1", "<pre tabindex=\"0\">  n&gt;&gt;1\n    ^"),
        ("where=t~/x/", "expressions are not served"),
        ("limit=0", "1 to 1000"),
        ("limit=1001", "1 to 1000"),
        ("limit=x", "1 to 1000"),
        ("sort=a,b,c,d,e", "4 paths"),
        ("cursor=x", "not one of this list"),
    ] {
        gateway.get(&gateway.a, &format!("/v1/docs/c?{query}")).await.is(400);
        let text = page(&gateway, &session, &format!("/c/c?{query}")).await.is(400).text();
        assert!(text.contains(shown) && text.contains("id=\"where\""), "{query}: {text}");
    }
    page(&gateway, &session, "/c/c?wehre=1").await.is(400);
    // A form sends what was left empty, too.
    let text = page(&gateway, &session, "/c/c?where=&sort=&fields=&limit=").await.is(200).text();
    assert_eq!(ids(&text).len(), 50);
    // Headings sort.
    let sorted = page(&gateway, &session, "/c/c?sort=n").await.is(200).text();
    assert!(
        sorted.contains("aria-sort=\"ascending\"><a href=\"/c/c?sort=-n&amp;limit=50\">"),
        "{sorted}"
    );
    let home = page(&gateway, &session, "/").await.is(200).text();
    assert!(home.contains("href=\"/c/c\"") && home.contains("120 records"), "{home}");
}

#[tokio::test]
async fn every_answer_has_its_policy() {
    let gateway = Running::start("").await;
    gateway.put(&gateway.a, "/v1/docs/c/x", "", r#"{"n":1}"#).await.is(201);
    let session = session(&gateway, &gateway.a).await;
    let policy = "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; \
                  frame-ancestors 'none'";
    let html = format!("{session}Accept: text/html\r\n");
    for (method, path, status) in [
        ("GET", "/", 200),
        ("GET", "/c/c", 200),
        ("GET", "/c/c/x", 200),
        ("GET", "/c/c/export?format=csv", 200),
        ("GET", "/style.css", 200),
        ("GET", "/icon.svg", 200),
        ("GET", "/c/c/y", 404),
        ("GET", "/nothing", 404),
        ("GET", "/c/c?limit=0", 400),
        ("GET", "/c/c/%FF", 400),
        ("DELETE", "/c/c", 405),
        ("POST", "/login", 401),
        ("GET", "/?token=x", 401),
        ("POST", "/logout", 303),
    ] {
        let answer = gateway.send(method, path, &html, b"").await.is(status);
        assert_eq!(answer.header("content-security-policy"), Some(policy), "{method} {path}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert!(answer.header("x-request-id").is_some(), "{path}");
        // Nothing for other sites.
        let referrer = answer.header("referrer-policy").unwrap();
        assert!(["no-referrer", "same-origin"].contains(&referrer), "{path}: {referrer}");
        let is_file = ["/style.css", "/icon.svg"].contains(&path);
        assert_eq!(answer.header("cache-control") == Some("no-store"), !is_file, "{path}");
        let text = answer.text();
        if answer.header("content-type") == Some("text/html; charset=utf-8") {
            for forbidden in ["<script", " style=", "<style", " onclick", "javascript:"] {
                assert!(!text.contains(forbidden), "{path}: {forbidden}");
            }
            assert!(text.contains("<html lang=\"en\">") && text.contains("<h1"), "{path}: {text}");
        }
    }
    // Who asks for no HTML reads JSON.
    let json = gateway.send("GET", "/nothing", "", b"").await.is(404);
    assert_eq!(json.header("content-type"), Some("application/problem+json"));
    // The description is of the API alone.
    assert!(!Gateway::description().contains("/c/{collection}"));
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let metrics = raw(&gateway.operators, request.as_bytes()).await.is(200).text();
    for line in [
        "steelyard_requests_total{route=\"page-records\",status=\"200\"} 1",
        "steelyard_requests_total{route=\"page-login\",status=\"303\"} 1",
        "steelyard_requests_total{route=\"page-style\",status=\"200\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
}

#[tokio::test]
async fn what_operators_change_reaches_sessions_within_a_lease() {
    let gateway = Running::start("requests_per_second = 3").await;
    let lease = gateway.admin.lease();
    gateway.put(&gateway.a, "/v1/docs/c/x", "", r#"{"n":1}"#).await.is(201);
    let reader = session(&gateway, &gateway.reader).await;
    gateway.clock.advance(Duration::from_secs(2));
    page(&gateway, &reader, "/c/c").await.is(200);
    // Pages count as requests do.
    page(&gateway, &reader, "/c/c").await.is(200);
    page(&gateway, &reader, "/c/c").await.is(200);
    let many = page(&gateway, &reader, "/c/c").await.is(429);
    assert!(many.header("retry-after").is_some() && many.text().contains("Too many requests"));
    gateway.clock.advance(Duration::from_secs(2));
    // A frozen tenant is read.
    gateway.admin.freeze(&name("a")).await.unwrap();
    gateway.clock.advance(lease);
    page(&gateway, &reader, "/c/c").await.is(200);
    gateway.admin.revoke_key(&name("a"), gateway.reader.prefix()).await.unwrap();
    gateway.clock.advance(lease);
    let ended = page(&gateway, &reader, "/c/c").await.is(401);
    assert!(ended.header("set-cookie").unwrap().contains("Max-Age=0"));
    let other = session(&gateway, &gateway.a).await;
    page(&gateway, &other, "/c/c").await.is(200);
    gateway.admin.remove(&name("a"), async { gateway.clock.advance(lease) }).await.unwrap();
    page(&gateway, &other, "/c/c").await.is(401);
}

/// A name of another site that leads to this machine.
#[tokio::test]
async fn a_gateway_of_this_machine_has_only_its_own_names() {
    let gateway = Running::start("[listen]\nnames = [\"gate.example\"]").await;
    let of = async |headers: &str| {
        let request = format!("GET / HTTP/1.1\r\nConnection: close\r\n{headers}\r\n");
        raw(&gateway.address, request.as_bytes()).await.status
    };
    for good in
        ["localhost", "LOCALHOST:80", "127.0.0.1:8080", "[::1]:9", "gate.example", "gate.example:1"]
    {
        assert_eq!(of(&format!("Host: {good}\r\n")).await, 200, "{good}");
    }
    for bad in [
        "evil.example",
        "evil.example:80",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "a@localhost",
        "xgate.example",
        "0.0.0.0",
        "[::2]",
        "",
    ] {
        assert_eq!(of(&format!("Host: {bad}\r\n")).await, 403, "{bad}");
    }
    assert_eq!(of("Host: localhost\r\nHost: evil.example\r\n").await, 400);
    // Programs show a key, which a foreign page does not have.
    let key = format!("Host: any\r\nAuthorization: Bearer {}\r\n", gateway.a.reveal());
    let request = format!("GET /v1/docs HTTP/1.1\r\nConnection: close\r\n{key}\r\n");
    raw(&gateway.address, request.as_bytes()).await.is(200);
}
