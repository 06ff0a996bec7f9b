//! No tenant reaches what another has, whatever it asks: every route that there is, by the description of the API.

use serde_json::Value;
use steelyard_serve::{Config, ErrorKind, Gateway, Scope, TenantLimits, Tenants};

use steelyard_store::store::{self, wrappers::Prefix};

use super::client::{Running, name};

/// Every operation: its method, its path with a collection and an id of the other tenant, and a body that it takes.
fn operations() -> Vec<(String, String, &'static str)> {
    let description: Value = serde_json::from_str(&Gateway::description()).unwrap();
    let mut all = Vec::new();
    for (path, methods) in description["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            // Needs no key, and names none.
            if path == "/v1/auth/login" {
                assert_eq!(operation["security"].as_array().map(Vec::len), Some(0));
                continue;
            }
            let path = path.replace("{collection}", "secrets").replace("{id}", "plan");
            assert!(!path.contains('{'), "a parameter that is not filled in: {path}");
            let schema = &operation["requestBody"]["content"];
            let body = match () {
                () if schema["application/x-ndjson"].is_object() => {
                    "{\"id\":\"plan\",\"delete\":true}\n"
                }
                () if schema["application/json"].is_object() => "{}",
                () => "",
            };
            all.push((method.to_uppercase(), path, body));
        }
    }
    all
}

#[tokio::test]
async fn every_route_shows_a_tenant_only_its_own() {
    for layout in ["own", "shared"] {
        every_route(&Running::start_in(layout, "requests_per_second = 1e6").await).await;
    }
}

async fn every_route(gateway: &Running) {
    let secret = r#"{"plan":"attack at dawn"}"#;
    let put = gateway.put(&gateway.b, "/v1/docs/secrets/plan", "", secret).await.is(201);
    let operations = operations();
    assert!(operations.len() >= 9, "{operations:?}");
    for (method, path, body) in &operations {
        let answer = gateway.ask(&gateway.a, method, path, "", body).await;
        assert!(!answer.text().contains("dawn"), "{method} {path}: {answer:?}");
        match &**method {
            // What names a document of the other tenant is not found.
            "GET" | "DELETE" if path.ends_with("/plan") => drop(answer.is(404)),
            // What writes, writes to the tenant's own.
            _ => assert!(answer.status < 300, "{method} {path}: {answer:?}"),
        }
        // Without a key, with half a key, and with one that may only read.
        gateway.send(method, path, "", body.as_bytes()).await.is(401);
        let half = &gateway.b.reveal()[..30];
        for bad in [
            format!("Bearer {half}"),
            format!("Bearer {}.{}", gateway.a.prefix(), &gateway.b.reveal()[17..]),
        ] {
            gateway
                .send(method, path, &format!("Authorization: {bad}\r\n"), body.as_bytes())
                .await
                .is(401);
        }
        let read = gateway.ask(&gateway.reader, method, path, "", body).await;
        let writes = matches!(&**method, "PUT" | "DELETE") || path.ends_with(":bulk");
        assert_eq!(read.status == 403, writes, "{method} {path}: {read:?}");
    }
    let there = gateway.get(&gateway.b, "/v1/docs/secrets/plan").await.is(200);
    assert_eq!((there.tag(), there.text().as_str()), (put.tag(), secret));
}

#[tokio::test]
async fn nothing_but_the_key_chooses_the_tenant() {
    let gateway = Running::start("").await;
    gateway.put(&gateway.b, "/v1/docs/c/x", "", r#"{"of":"b"}"#).await.is(201);
    for headers in [
        "X-Tenant: b\r\n",
        "Host: b\r\n",
        "X-Forwarded-Host: b.example.com\r\n",
        "Cookie: tenant=b\r\n",
    ] {
        gateway.ask(&gateway.a, "GET", "/v1/docs/c/x", headers, "").await.is(404);
    }
    gateway.get(&gateway.a, "/v1/docs/c/x?tenant=b").await.is(400);
    // Two keys are none.
    let two = format!("Authorization: Bearer {}\r\n", gateway.b.reveal());
    gateway.ask(&gateway.a, "GET", "/v1/docs/c/x", &two, "").await.is(401);
}

#[tokio::test]
async fn what_operators_change_takes_effect_within_a_lease() {
    let gateway = Running::start("").await;
    let lease = gateway.admin.lease();
    let (key, path) = (&gateway.a, "/v1/docs/c/x");
    gateway.put(key, path, "", r#"{"n":1}"#).await.is(201);
    gateway.admin.freeze(&name("a")).await.unwrap();
    // Within the lease it may go by what it knew, and what it then acknowledges is there.
    gateway.put(key, path, "", r#"{"n":2}"#).await.is(200);
    gateway.clock.advance(lease);
    gateway.put(key, path, "", r#"{"n":3}"#).await.is(403);
    assert_eq!(gateway.get(key, path).await.is(200).text(), r#"{"n":2}"#);
    gateway.admin.thaw(&name("a")).await.unwrap();
    gateway.clock.advance(lease);
    gateway.put(key, path, "", r#"{"n":3}"#).await.is(200);

    gateway.admin.revoke_key(&name("a"), gateway.reader.prefix()).await.unwrap();
    gateway.clock.advance(lease);
    gateway.get(&gateway.reader, path).await.is(401);
    gateway.get(key, path).await.is(200);
    assert!(gateway.admin.revoke_key(&name("b"), key.prefix()).await.is_err());

    gateway.admin.remove(&name("a"), async { gateway.clock.advance(lease) }).await.unwrap();
    gateway.get(key, path).await.is(401);
    gateway.get(&gateway.b, path).await.is(404);
    let databases = gateway.databases().await;
    assert!(databases.len() == 1, "of b alone: {databases:?}");
    // Its name is free again, and what the new one has is its own.
    gateway.admin.add(&name("a"), None, TenantLimits::default()).await.unwrap();
    let new = gateway.admin.add_key(&name("a"), Scope::Read, "").await.unwrap();
    gateway.get(&new, path).await.is(404);
    gateway.get(key, path).await.is(401);
}

/// A catalog that names the database of another tenant shows nothing of it.
#[tokio::test]
async fn a_database_that_is_not_that_of_the_catalog_is_not_opened() {
    let gateway = Running::start_in("own", "").await;
    for (key, text) in [(&gateway.a, r#"{"of":"a"}"#), (&gateway.b, r#"{"of":"b"}"#)] {
        gateway.put(key, "/v1/docs/c/x", "", text).await.is(201);
    }
    let file = |row: &steelyard_serve::TenantRow| {
        gateway.folder.path().join(format!("{}.db.{}", row.shard, row.database))
    };
    let (a, b) = (
        gateway.admin.show(&name("a")).await.unwrap(),
        gateway.admin.show(&name("b")).await.unwrap(),
    );
    let (from, to) = (file(&b), file(&a));
    let mut gateway = gateway;
    gateway.stop().await.unwrap().unwrap();
    std::fs::copy(from, to).unwrap();
    gateway.restart_after_stop().await;
    let answer = gateway.get(&gateway.a, "/v1/docs/c/x").await.is(500);
    assert!(
        !answer.text().contains("\"b\"") && !answer.text().contains("steelyard_"),
        "{}",
        answer.text()
    );
    gateway.get(&gateway.b, "/v1/docs/c/x").await.is(200);
}

/// Indexes of the configuration, in tenants that had the collection before, and in those that get it afterwards.
#[tokio::test]
async fn indexes_are_made_in_all_databases_and_move_along() {
    let mut gateway = Running::start("").await;
    // So many that the index is worth its while.
    let lines: String =
        (0..500).map(|n| format!("{{\"id\":\"{n}\",\"doc\":{{\"age\":{}}}}}\n", n % 100)).collect();
    for key in [&gateway.a, &gateway.b] {
        gateway.ask(key, "POST", "/v1/docs/people:bulk", "", &lines).await.is(200);
    }
    gateway.configure("[collection.people]\nindex = { age = \"int\" }").await;
    let indexes = |name_of: &str| {
        let row = name_of.to_owned();
        let gateway = &gateway;
        async move {
            let row = gateway.admin.show(&name(&row)).await.unwrap();
            let file = match &*gateway.layout {
                "own" => format!("{}.db.{}", row.shard, row.database),
                _ => format!("{}.db", row.shard),
            };
            let url = format!("sqlite:{}", gateway.folder.path().join(file).display());
            let table = store::open(&url).await.unwrap().table("people").unwrap();
            let table: std::sync::Arc<dyn store::Store> = match &*gateway.layout {
                "own" => table,
                _ => std::sync::Arc::new(Prefix::tenant(table, row.database.as_str()).unwrap()),
            };
            let query = store::Query::new("age=7".parse().unwrap());
            let plan = table.explain(store::Request::Find(&query)).await.unwrap().unwrap();
            format!("{plan:?}").contains("USING INDEX")
        }
    };
    // A write makes no indexes where the collection is there.
    gateway.put(&gateway.a, "/v1/docs/people/new", "", "{}").await.is(201);
    assert!(!indexes("a").await && !indexes("b").await);
    let applied = gateway.admin.apply(2).await.unwrap();
    assert_eq!((applied.done, applied.failed.len()), (2, 0));
    assert!(indexes("a").await && indexes("b").await);
    let on = gateway.admin.show(&name("a")).await.unwrap().shard;
    let to = if on == "one" { "two" } else { "one" };
    let wait = async |lease| gateway.clock.advance(lease);
    gateway
        .admin
        .move_to(&name("a"), Some(to), steelyard_serve::Course::Begin, wait)
        .await
        .unwrap();
    assert!(indexes("a").await);
    gateway.clock.advance(gateway.admin.lease());
    gateway.get(&gateway.a, "/v1/docs/people?where=age%3D7").await.is(200);
}

/// Under another secret no key is good: that is said at the start, and not by 401 to everybody.
#[tokio::test]
async fn a_secret_that_was_replaced_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let secret = |text: &str| {
        let file = path.join("secret");
        std::fs::write(&file, text.repeat(32)).unwrap();
        let owner = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&file, owner).unwrap();
    };
    let config = format!(
        "catalog = \"sqlite:{0}/catalog.db\"\nsecret_file = \"{0}/secret\"\n[shard.one]\nurl = \"sqlite:{0}/one.db\"\n",
        path.display()
    );
    let config = || Config::from_toml(&config).unwrap();
    secret("a");
    // Without keys any secret will do.
    Gateway::new(config()).await.unwrap();
    let tenants = Tenants::open_or_create(config()).await.unwrap();
    tenants.add(&name("a"), None, TenantLimits::default()).await.unwrap();
    let key = tenants.add_key(&name("a"), Scope::Read, "").await.unwrap();
    secret("b");
    for error in [
        Gateway::new(config()).await.err().unwrap(),
        Tenants::open_or_create(config()).await.err().unwrap(),
        Tenants::open(config()).await.unwrap().check_secret().await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Mismatch);
        assert!(error.to_string().contains("another secret") && error.hint().is_some(), "{error}");
    }
    // Where it is lost: what there is is revoked, and made anew.
    let tenants = Tenants::open(config()).await.unwrap();
    tenants.revoke_key(&name("a"), key.prefix()).await.unwrap();
    tenants.add_key(&name("a"), Scope::Read, "").await.unwrap();
    Gateway::new(config()).await.unwrap();
    // The old one is of no use by then.
    secret("a");
    assert_eq!(Gateway::new(config()).await.err().unwrap().kind(), ErrorKind::Mismatch);
}
