//! Shards with replicas: here of databases that nobody copies, so that what comes from one is told from what comes from
//! the primary.

use serde_json::json;
use steelyard_serve::{Scope, TenantLimits};
use steelyard_store::{
    record::Document,
    store::{Key, Layout, Row, open},
};

use super::client::{Running, name};

#[tokio::test]
async fn who_may_only_read_is_answered_from_a_replica_and_who_writes_from_the_primary() {
    let mut gateway = Running::start_in("own", "").await;
    let path = gateway.folder.path().display().to_string();
    gateway
        .configure(&format!(
            "[shard.three]\nurl = \"sqlite:{path}/three.db\"\nreplicas = [\"sqlite:{path}/copy.db\"]\n"
        ))
        .await;
    let tenant = name("c");
    let row = gateway.admin.add(&tenant, Some("three"), TenantLimits::default()).await.unwrap();
    let writer = gateway.admin.add_key(&tenant, Scope::Write, "").await.unwrap();
    let reader = gateway.admin.add_key(&tenant, Scope::Read, "").await.unwrap();
    gateway.put(&writer, "/v1/docs/c/x", "", r#"{"from":"primary"}"#).await.is(201);
    // A replica that is not there (yet) is passed over.
    assert_eq!(
        gateway.get(&reader, "/v1/docs/c/x").await.is(200).json(),
        json!({"from":"primary"})
    );

    let copy = open(&format!("sqlite:{path}/copy.db.{}", row.database)).await.unwrap();
    let table = copy.table("c").unwrap();
    table.prepare(&Layout::plain()).await.unwrap();
    let record = Document::from_iter([("from", "replica")]);
    table.put(&[Row { key: Key::new("x").unwrap(), record }]).await.unwrap();
    // Databases are opened with their replicas.
    gateway.restart().await;
    let from = async |key, path: &str| {
        let answer = gateway.get(key, path).await.is(200).json();
        answer["from"].as_str().map(str::to_owned)
    };
    for _ in 0..3 {
        assert_eq!(from(&reader, "/v1/docs/c/x").await.as_deref(), Some("replica"));
        assert_eq!(from(&writer, "/v1/docs/c/x").await.as_deref(), Some("primary"));
    }
    let list = gateway.get(&reader, "/v1/docs/c").await.is(200);
    assert_eq!(list.json()["items"][0]["doc"], json!({"from":"replica"}));
    // What is written goes to the primary alone, and a collection that no replica has yet is the primary's.
    gateway.put(&writer, "/v1/docs/c/y", "", r#"{"from":"primary"}"#).await.is(201);
    gateway.put(&writer, "/v1/docs/d/y", "", r#"{"from":"primary"}"#).await.is(201);
    assert_eq!(from(&writer, "/v1/docs/c/y").await.as_deref(), Some("primary"));
    gateway.get(&reader, "/v1/docs/c/y").await.is(404);
    assert_eq!(from(&reader, "/v1/docs/d/y").await.as_deref(), Some("primary"));
    assert_eq!(table.count().await.unwrap(), 1);
}
