//! What queries mean to PostgreSQL, and whether they use the indexes that are made for them.

use futures_util::TryStreamExt;

use super::{
    Client, Lazy, Others, Pool, PostgreSql, dialect::LIMITS, pool::Connect, setting::Setting,
};
use crate::{
    record::{Document, Kind, Time, Value},
    server::{self, Server, Wish},
    skips::{Missing, Need, need},
    store::{
        Abilities, Column, Common, Filter, Key, Layout, Query, Row, Shape, Store, Url,
        limits::Limits,
        net::Address,
        query::{Order, Path, Test},
        sql::{Dialect, Names},
    },
};

fn start() -> Need<Server> {
    match server::named("postgres").unwrap().start(&Wish::default()) {
        Ok(server) => Ok(server),
        Err(e) if e.kind() == crate::ErrorKind::NotFound => Err(Missing::new(e)),
        Err(e) => panic!("{e:?}"),
    }
}

/// The driver itself, not as the trait.
fn opened(server: &Server, shape: Shape, table: &str) -> PostgreSql {
    let mut url = Url::parse(server.url()).unwrap();
    let common = Common::take(&mut url).unwrap();
    let config: tokio_postgres::Config = server.url().parse().unwrap();
    let set_up = "SET TimeZone = 'UTC'; SET standard_conforming_strings = on";
    let (host, port) = url.one_host(5432).unwrap();
    let connect = Connect {
        config,
        address: Address::Tcp(host, port),
        tls: None,
        set_up: set_up.into(),
        limits: Limits::of(&common),
    };
    let pool = Pool::new(Client::Own, connect, Setting::default());
    let table = Lazy::new(shape, table, Names::default(), None).unwrap();
    PostgreSql { pool: pool.into(), table, others: Others::default() }
}

async fn keys(store: &PostgreSql, query: &Query) -> Vec<Key> {
    let rows = store.find(query).await.unwrap_or_else(|e| panic!("{query:?}: {e:?}"));
    let rows: Vec<Row> = rows.try_concat().await.unwrap_or_else(|e| panic!("{query:?}: {e:?}"));
    rows.into_iter().map(|row| row.key).collect()
}

fn values() -> Vec<Value> {
    let time = |s, n| Value::Time(Time::from_unix(s, n).unwrap());
    let floats = [0.0, 1.0, 1.5, -0.5, 1e300, -1e300, 9.3e18, 0.1, 9_007_199_254_740_992.0];
    let ints = [0, 1, 2, -1, 90, (1 << 53) + 1, i64::MAX, i64::MIN];
    let texts =
        ["", "a", "B", "b", "ab", "a b", "ä", "é", "\u{ffff}", "😀", "1", "null", "z", "a\u{1}"];
    let mut all = vec![Value::Null, true.into(), false.into(), time(0, 0), time(1, 5_000)];
    all.extend(floats.map(Value::Float));
    all.extend(ints.map(Value::Int));
    all.extend(texts.map(Value::from));
    all
}

fn tests_of(value: &Value) -> Vec<Test> {
    let mut all = vec![
        Test::Eq(value.clone()),
        Test::Ne(value.clone()),
        Test::In(vec![value.clone(), 1.into()]),
    ];
    if matches!(value.kind(), Kind::Int | Kind::Float | Kind::Text | Kind::Time) {
        let make: [fn(Value) -> Test; 4] = [Test::Lt, Test::Le, Test::Gt, Test::Ge];
        all.extend(make.map(|make| make(value.clone())));
    }
    all.extend(value.as_str().map(|text| Test::Prefix(text.to_owned())));
    all
}

/// Every test on a path finds what it means to find.
async fn agrees(store: &PostgreSql, rows: &[Row], paths: &[&str], values: &[Value]) {
    let mut asked = 0;
    for path in paths {
        let path: Path = path.parse().unwrap();
        let mut tests: Vec<Test> = values.iter().flat_map(tests_of).collect();
        tests.extend([Test::Exists(true), Test::Exists(false)]);
        for test in tests {
            let field = Filter::Field(path.clone(), test);
            for filter in [field.clone(), Filter::Not(Box::new(field))] {
                let query = Query::new(filter).limited(9999);
                if Abilities::can(store.abilities(), &query).is_err() || query.check().is_err() {
                    continue;
                }
                let mut found = keys(store, &query).await;
                found.sort();
                let fit = rows.iter().filter(|row| query.matches(&row.key, &row.record));
                let mut want: Vec<Key> = fit.map(|row| row.key.clone()).collect();
                want.sort();
                assert_eq!(found, want, "{query:?}");
                asked += 1;
            }
        }
    }
    assert!(asked > 100, "{asked}");
}

#[tokio::test]
async fn documents_are_found_as_queries_mean_it() {
    let server = need!(start());
    let store = opened(&server, Shape::Document, "meaning");
    let layout = Layout::plain()
        .with_index("a".parse().unwrap(), Kind::Int)
        .with_index("a".parse().unwrap(), Kind::Text)
        .with_index("m.it's".parse().unwrap(), Kind::Bool);
    store.prepare(&layout).await.unwrap();
    let mut bodies: Vec<Document> = vec![
        Document::new(),
        Document::from_iter([("m", 1i64)]),
        Document::from_iter([("m", Value::List(vec![1.into()]))]),
        Document::from_iter([("a", Value::List(vec![]))]),
        Document::from_iter([("a", Value::Map(Document::new()))]),
    ];
    for value in values() {
        bodies.push(Document::from_iter([("a", value.clone())]));
        let inner = Document::from_iter([("it's", value)]);
        bodies.push(Document::from_iter([("m", inner)]));
    }
    let row = |(i, record)| Row { key: Key::new(format!("k{i:03}")).unwrap(), record };
    let rows: Vec<Row> = bodies.into_iter().enumerate().map(row).collect();
    store.load(&rows).await.unwrap();
    // Times are text there, and are found by texts and times: the meaning is that of what is kept.
    let kept: Vec<Key> = rows.iter().map(|row| row.key.clone()).collect();
    let kept = store.get(&kept).await.unwrap().into_iter().zip(&rows);
    let kept: Vec<Row> =
        kept.map(|(record, row)| Row { key: row.key.clone(), record: record.unwrap() }).collect();
    let mut values: Vec<Value> = values().into_iter().filter(|v| v.kind() != Kind::Time).collect();
    values.extend([f64::INFINITY, f64::NEG_INFINITY].map(Value::Float));
    values.extend(["a\0", "\0"].map(Value::from));
    agrees(&store, &kept, &["a", "m.it's", "_key", "m.0", "n\0"], &values).await;

    for path in ["a", "m.it's", "_key"] {
        for order in [Order::Ascending, Order::Descending] {
            // Among values of one kind the order is everybody's.
            for kind in [Some(Test::Ge("".into())), Some(Test::Ge(f64::MIN.into())), None] {
                let path: Path = path.parse().unwrap();
                let filter = kind.map(|test| Filter::Field(path.clone(), test));
                let all = filter.is_none();
                let query = Query::new(filter.unwrap_or_default()).sorted(path.clone(), order);
                let found = keys(&store, &query).await;
                let mut want: Vec<&Row> =
                    kept.iter().filter(|row| query.matches(&row.key, &row.record)).collect();
                assert_eq!(found.len(), want.len());
                want.sort_by(|a, b| query.order(a, b));
                let want: Vec<Key> = want.into_iter().map(|row| row.key.clone()).collect();
                if !all {
                    assert_eq!(found, want, "{query:?}");
                    continue;
                }
                // What is null or not there is first or last, by its key in the same direction.
                let mut nulls = Query::new(Filter::Field(path.clone(), Test::Eq(Value::Null)));
                nulls = nulls.sorted("_key".parse().unwrap(), order);
                let nulls = keys(&store, &nulls).await;
                match order {
                    Order::Ascending => assert_eq!(found[..nulls.len()], nulls),
                    Order::Descending => assert_eq!(found[found.len() - nulls.len()..], nulls),
                }
            }
        }
    }
}

#[tokio::test]
async fn columns_are_found_as_queries_mean_it() {
    let server = need!(start());
    let store = opened(&server, Shape::Columns, "meaning");
    let kinds =
        [Kind::Null, Kind::Bool, Kind::Int, Kind::Float, Kind::Text, Kind::Time, Kind::Bytes];
    let mut rows = vec![Row { key: Key::new("empty").unwrap(), record: Document::new() }];
    let bytes = [Value::Bytes(vec![]), Value::Bytes(vec![0, 255])];
    let infinite = [f64::INFINITY, f64::NEG_INFINITY, -0.0].map(Value::Float);
    for (i, value) in values().into_iter().chain(bytes).chain(infinite).enumerate() {
        if value.kind() != Kind::Null {
            let record = Document::from_iter([(value.kind().name(), value)]);
            rows.push(Row { key: Key::new(format!("k{i:03}")).unwrap(), record });
        }
    }
    let mut columns: Vec<Column> =
        kinds[1..].iter().map(|kind| Column { name: kind.name().into(), kind: *kind }).collect();
    columns.push(Column { name: "big".into(), kind: Kind::BigInt });
    store.prepare(&Layout::plain().with_columns(columns)).await.unwrap();
    store.load(&rows).await.unwrap();
    let mut values = values();
    values.extend([Value::Bytes(vec![0, 255]), Value::Float(f64::INFINITY), "a\0".into()]);
    values.extend([Value::Float(0.5), Value::Time(Time::from_unix(0, 999).unwrap())]);
    let paths = ["bool", "int", "float", "text", "time", "bytes", "big", "_key", "none", "int.x"];
    agrees(&store, &rows, &paths, &values).await;
    for path in ["int", "float", "text", "time", "bool", "none"] {
        for order in [Order::Ascending, Order::Descending] {
            let query = Query::default().sorted(path.parse().unwrap(), order);
            let mut want: Vec<&Row> = rows.iter().collect();
            want.sort_by(|a, b| query.order(a, b));
            let want: Vec<Key> = want.into_iter().map(|row| row.key.clone()).collect();
            assert_eq!(keys(&store, &query).await, want, "{query:?}");
        }
    }
    let deleted = store.delete(&Filter::field("float", Test::Gt(0.5.into())).unwrap()).await;
    let greater = |row: &&Row| {
        Query::new(Filter::field("float", Test::Gt(0.5.into())).unwrap())
            .matches(&row.key, &row.record)
    };
    assert_eq!(deleted.unwrap(), rows.iter().filter(greater).count() as u64);
}

/// How PostgreSQL would answer a query, as it is sent.
async fn plan(store: &PostgreSql, query: &Query) -> String {
    let known = store.schema().await.unwrap();
    let query =
        Query { filter: LIMITS.exact(&query.filter, known.table.columns()), ..query.clone() };
    let sql = known.table.select(&known.dialect, &known.say.what, &query).unwrap();
    let in_document = known.table.columns().is_none();
    let values: Vec<_> =
        sql.values.iter().map(|v| super::rows::compared(v, in_document).unwrap()).collect();
    let mut connection = store.pool.get().await.unwrap();
    let rows = connection.query(&format!("EXPLAIN {}", sql.text), &values).await.unwrap();
    let lines: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    lines.join("\n")
}

#[tokio::test]
async fn queries_use_the_indexes_made_for_them() {
    let server = need!(start());
    let people: Vec<Row> = (0..20_000)
        .map(|n| {
            let record = crate::record::dataset::Dataset::People.document(1, n).unwrap();
            Row { key: Key::of(&record, "key").unwrap(), record }
        })
        .collect();
    for shape in [Shape::Document, Shape::Columns] {
        let store = opened(&server, shape, &format!("people_{shape}"));
        let columns = Column::infer(people.iter().map(|row| &row.record)).unwrap();
        let mut layout = Layout::plain()
            .with_index("age".parse().unwrap(), Kind::Int)
            .with_index("email".parse().unwrap(), Kind::Text);
        if shape == Shape::Columns {
            layout = layout.with_columns(columns);
        }
        store.prepare(&layout).await.unwrap();
        store.load(&people).await.unwrap();
        store.pool.get().await.unwrap().batch("ANALYZE").await.unwrap();
        let table = format!("people_{shape}");
        for (query, index) in [
            (r#"{"age": {"$gte": 97}}"#, format!("{table}_age_")),
            (r#"{"age": 97}"#, format!("{table}_age_")),
            (r#"{"age": {"$gt": 97.5}}"#, format!("{table}_age_")),
            (r#"{"email": "bob7@example.com"}"#, format!("{table}_email_")),
            (r#"{"email": {"$prefix": "bob77"}}"#, format!("{table}_email_")),
            (r#"{"$and": [{"age": {"$lt": 3}}, {"name": "Bob Jones"}]}"#, format!("{table}_age_")),
            (r#"{"_key": "bob77"}"#, format!("{table}_pkey")),
            (r#"{"_key": {"$prefix": "bob77"}}"#, format!("{table}_pkey")),
        ] {
            let query = Query::new(query.parse().unwrap());
            let plan = plan(&store, &query).await;
            assert!(plan.contains(&index), "{shape}: {query:?}\n{plan}");
        }
        // A page of a scan begins where the last one ended.
        let known = store.schema().await.unwrap();
        let text = format!(
            "EXPLAIN SELECT {} FROM {} WHERE {key} > 'bob5' ORDER BY {key} LIMIT 1000",
            known.say.what,
            known.dialect.quote(&table),
            key = known.key_text()
        );
        let rows = store.pool.get().await.unwrap().query(&text, &[]).await.unwrap();
        let lines: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        assert!(
            known.in_order && lines[1].contains(&format!("Index Scan using {table}_pkey")),
            "{lines:?}"
        );
    }
}
