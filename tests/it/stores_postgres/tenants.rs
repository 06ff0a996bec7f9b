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
    // What the security costs: the tenant's rows are found by an index that begins with the tenant, but which of them fit is
    // looked at one by one, as most comparisons may leak what they compare.
    let indexed = layout.clone().with_index("name".parse().unwrap(), Kind::Text);
    let many: Vec<Row> = (0..500)
        .map(|n| {
            let fields = [("age", Value::Int(n)), ("name", Value::from(format!("name {n:04}")))];
            row(&format!("m{n}"), Document::from_iter(fields))
        })
        .collect();
    let mut stores = Vec::new();
    for tenant in 0..20 {
        let tenant = format!("t{tenant}");
        let place = open(&format!("{base}?tenant={tenant}&table=many")).await.unwrap();
        let store = Prefix::tenant(place.store().clone(), &tenant).unwrap();
        store::Store::prepare(&store, &indexed).await.unwrap();
        store::Store::load(&store, &many).await.unwrap();
        stores.push(store);
    }
    store::Store::analyze(&stores[0]).await.unwrap();
    let plan = async |query: Query| {
        let request = store::Request::Find(&query);
        let explained = store::Store::explain(&stores[7], request).await.unwrap().unwrap();
        explained.plan.unwrap()
    };
    let of = |condition: &str| Query::new(condition.parse().unwrap());
    for query in [
        of("age=33"),
        of("age>=490"),
        of("name='name 0033'"),
        of("name>='name 0490'"),
        Query::default().sorted("age".parse().unwrap(), Order::Ascending).limited(20),
    ] {
        let plan = plan(query.clone()).await;
        assert!(plan.contains("\"tenant:many_") && !plan.contains("Seq Scan"), "{query:?}\n{plan}");
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
