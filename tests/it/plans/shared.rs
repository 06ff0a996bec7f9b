//! Tables that tenants share: what one of them asks is answered by an index that begins with the tenant, and never has
//! a record of another. On PostgreSQL a connection sees only its tenant's rows, whatever it asks.

use steelyard::store::wrappers::Prefix;

use super::*;

/// Tenants, of whom none is a prefix of another's keys by chance.
const TENANTS: [&str; 12] =
    ["a", "a/b", "a%2Fb", "ab", "b", "c", "d", "e", "f", "g", "h", "'; DROP TABLE people; --"];

fn asked() -> Vec<(Query, May)> {
    let field = |name: &str, test: Test| Filter::Field(path(name), test);
    // Few enough that to look them up in any order and to sort them costs no more.
    let sort = || May { sort: true, scan: false };
    let none = May::default;
    vec![
        (Query::new(field("age", Test::Eq(Value::Int(33)))), sort()),
        (
            Query::new(field("age", Test::Ge(Value::Int(90))))
                .sorted(path("age"), Order::Ascending),
            sort(),
        ),
        (Query::default().sorted(path("age"), Order::Descending).limited(20), none()),
        (Query::default().sorted(path("email"), Order::Ascending).limited(20), none()),
        (
            Query::new(field("email", Test::Prefix("bob1".into())))
                .sorted(path("email"), Order::Ascending)
                .limited(5),
            none(),
        ),
    ]
}

async fn tenants_use_their_index(database: &Database) {
    let folder = tempfile::tempdir().unwrap();
    let (_server, base) = need!(started(database, folder.path()));
    let people = people();
    let each = people.len() / TENANTS.len();
    let mut faults = Vec::new();
    for shape in database.shapes {
        let url = format!("{}&table=shared_{shape}", laid_out(&base, *shape));
        let place = open(&url).await.unwrap();
        let mut layout = Layout::plain()
            .with_index(path("age"), Kind::Int)
            .with_index(path("email"), Kind::Text);
        if *shape == Shape::Columns {
            layout =
                layout.with_columns(Column::infer(people.iter().map(|row| &row.record)).unwrap());
        }
        let of = |tenant: &str| Prefix::tenant(place.store().clone(), tenant).unwrap();
        for (tenant, rows) in TENANTS.iter().zip(people.chunks(each)) {
            let store = of(tenant);
            store.prepare(&layout).await.unwrap();
            store.load(rows).await.unwrap();
        }
        place.store().analyze().await.unwrap();
        for (tenant, rows) in TENANTS.iter().zip(people.chunks(each)) {
            let store = of(tenant);
            assert_eq!(store.count().await.unwrap(), rows.len() as u64);
            for (query, may) in asked() {
                let mut want: Vec<&Row> =
                    rows.iter().filter(|row| query.matches(&row.key, &row.record)).collect();
                want.sort_by(|a, b| query.order(a, b));
                want.truncate(query.limit.map_or(usize::MAX, |n| n as usize));
                let found = one_by_one(store.find(&query).await.unwrap());
                let mut found: Vec<Row> = found.try_collect().await.unwrap();
                if query.sort.is_empty() {
                    found.sort_by(|a, b| a.key.cmp(&b.key));
                    want.sort_by(|a, b| a.key.cmp(&b.key));
                }
                let keys = |rows: &mut dyn Iterator<Item = &Row>| -> Vec<Key> {
                    rows.map(|row| row.key.clone()).collect()
                };
                assert_eq!(
                    keys(&mut found.iter()),
                    keys(&mut want.into_iter()),
                    "{} {shape} {tenant}: {query:?}",
                    database.driver
                );
                assert!(found.iter().all(|row| row.record.get(steelyard::store::TENANT).is_none()));
                let explained = store.explain(Request::Find(&query)).await.unwrap().unwrap();
                let text = explained.plan.clone().unwrap();
                let plan = Plan::read(database.driver, &text);
                // The index that begins with the tenant, and not that of the key or one of all tenants.
                let its = ["tenant:", "+_", "_tenant_1_"].iter().any(|name| text.contains(name));
                // MariaDB takes any of the indexes to a tenant's 500 records, and sorts those.
                let sorted = must_sort(database) || database.driver == "mysql";
                let sorts = plan.sorts && !may.sort && !sorted;
                if !plan.indexed || plan.whole || !its || sorts {
                    faults.push(format!(
                        "{shape} {tenant}: {query:?}: {plan:?}\n{explained}\n{text}"
                    ));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}: {}", database.driver, faults.join("\n\n"));
}

#[test]
fn tenants_use_their_index_on_sqlite() {
    places::run(tenants_use_their_index(&DATABASES[0]));
}

#[test]
fn tenants_use_their_index_on_postgres() {
    places::run(tenants_use_their_index(&DATABASES[1]));
}

#[test]
fn tenants_use_their_index_on_mariadb() {
    places::run(tenants_use_their_index(&DATABASES[2]));
}

#[test]
fn tenants_use_their_index_on_ferretdb() {
    places::run(tenants_use_their_index(&DATABASES[3]));
}
