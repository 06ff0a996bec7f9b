//! Row-level security of tables that tenants share.

use steelyard::store::{TENANT, open, wrappers::Prefix};

use super::*;

#[tokio::test]
async fn a_connection_sees_the_rows_of_its_tenant_only() {
    let server = need!(shared());
    let admin = client(server).await;
    for statement in
        ["CREATE ROLE gateway LOGIN PASSWORD 'gateway'", "CREATE DATABASE tenants OWNER gateway"]
    {
        admin.batch_execute(statement).await.unwrap();
    }
    let (scheme, rest) = server.url().split_once("://").unwrap();
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    let host = host.split(['/', '?']).next().unwrap();
    let base = format!("{scheme}://gateway:gateway@{host}/tenants");
    let layout = Layout::plain().with_index("age".parse().unwrap(), Kind::Int);
    for tenant in ["a", "b"] {
        let place = open(&format!("{base}?tenant={tenant}")).await.unwrap();
        let store = Prefix::tenant(place.store().clone(), tenant).unwrap();
        store::Store::prepare(&store, &layout).await.unwrap();
        store::Store::put(&store, &[one("k", 1), one("l", 2)]).await.unwrap();
    }
    let bare = async |options: &str| open(&format!("{base}{options}")).await.unwrap();
    // The condition was forgotten: it finds what is its own, and changes nothing else.
    let a = bare("?tenant=a").await;
    assert_eq!(a.count().await.unwrap(), 2);
    let other = Document::from_iter([(TENANT, "b")]);
    let refused = a.put(&[row("b/x", other.clone())]).await.unwrap_err();
    assert!(refused.to_string().contains("row-level security"), "{refused}");
    assert!(a.put(&[row("b/k", other)]).await.is_err(), "over the row of another tenant");
    assert_eq!(a.delete(&Filter::All).await.unwrap(), 2);
    // Nobody's connection sees nothing.
    assert_eq!(bare("").await.count().await.unwrap(), 0);
    let b = bare("?tenant=b").await;
    assert_eq!(b.count().await.unwrap(), 2);
    // A name is a text, whatever is in it.
    let quoted = bare("?tenant=%27%3B%20SET%20steelyard.tenant%20%3D%20%27b").await;
    assert_eq!(quoted.count().await.unwrap(), 0);
}
