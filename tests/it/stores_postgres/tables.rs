//! Tables: typed columns, those of other programs, large ones.

use super::*;

#[tokio::test]
async fn columns_hold_what_they_are_declared_for() {
    let server = need!(shared());
    let url = format!("{}?table=columns&layout=columns", server.url());
    let place = store::open(&url).await.unwrap();
    let time = |nanos| Value::Time(Time::from_unix(1_234_567_890, nanos).unwrap());
    let record = Document::from_iter([
        ("yes", Value::Bool(true)),
        ("int", Value::Int(i64::MIN)),
        ("float", Value::Float(-0.0)),
        ("text", "ü\n'\\".into()),
        ("bytes", Value::Bytes(vec![0, 255])),
        ("time", time(123_456_000)),
        ("decimal", Value::Decimal("-1234567890123456789012345678901234567890.1200".into())),
        ("big", Value::BigInt(format!("-{}", "9".repeat(1000)).into())),
        ("q\"uo'te", "x".into()),
    ]);
    let layout = Layout::plain()
        .with_columns(Column::infer([&record]).unwrap())
        .with_index("text".parse().unwrap(), Kind::Text)
        .with_index("int".parse().unwrap(), Kind::Int);
    place.prepare(&layout).await.unwrap();
    place.prepare(&layout).await.unwrap();
    let empty = row("empty", Document::new());
    let rows = [row("full", record.clone()), empty.clone()];
    place.load(&rows).await.unwrap();
    place.put(&rows).await.unwrap();
    place.put(&rows[..1]).await.unwrap();
    let found = place.get(&[key("full"), key("empty")]).await.unwrap();
    assert_eq!(found, [Some(record.clone()), Some(empty.record)]);
    for (name, value, want) in [
        ("int", Value::from("old"), "key \"x\": field \"int\" is text, but its column holds int"),
        ("time", time(1), "to the microsecond"),
        ("text", "\0".into(), "has a NUL"),
        ("float", f64::NAN.into(), "NaN"),
        ("float", i64::MAX.into(), "no float equals exactly"),
        ("big", Value::BigInt("9".repeat(1001).into()), "more than 1000 digits"),
        ("shoe size", Value::Int(43), "no column for the field \"shoe size\""),
        ("int", Value::List(vec![]), "is a list"),
    ] {
        let error = place.put(&[row("x", Document::from_iter([(name, value)]))]).await.unwrap_err();
        assert!(error.to_string().contains(want), "{error}");
    }
    let other = Layout::plain().with_columns(vec![Column { name: "int".into(), kind: Kind::Text }]);
    assert_eq!(place.prepare(&other).await.unwrap_err().kind(), ErrorKind::Conflict);
    let document = store::open(&format!("{}?table=columns", server.url())).await.unwrap();
    let error = document.prepare(&Layout::plain()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("no column \"record\" for layout document"), "{error}");
}

#[tokio::test]
async fn tables_of_other_programs_are_read_and_written_as_they_are() {
    let server = need!(shared());
    let own = client(server).await;
    own.batch_execute(
        "CREATE SCHEMA shop; CREATE TYPE shop.mood AS ENUM ('sad', 'happy');
         CREATE TABLE shop.users (
            id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name varchar(5), admin boolean,
            price numeric(6, 2), mood shop.mood, seen timestamp(0), born date, small smallint,
            twice integer GENERATED ALWAYS AS (id * 2) STORED, one char(3));
         INSERT INTO shop.users (name, admin, price, mood, seen, born) VALUES
            ('Ann', true, 1.5, 'happy', '2009-02-13 23:31:30', '1999-12-31'), ('Bob', NULL, 0, 'sad', NULL, NULL);
         CREATE TABLE shop.orders (id uuid PRIMARY KEY, payload json, object text);
         INSERT INTO shop.orders VALUES ('01234567-89ab-cdef-0123-456789abcdef', '{\"b\": 1, \"a\": [1.0]}', 'x');
         CREATE VIEW shop.admins AS SELECT id, name FROM shop.users WHERE admin;",
    )
    .await
    .unwrap();
    let base = format!("{}?schema=shop", server.url());
    let users = store::open(&format!("{base}&table=users&layout=columns")).await.unwrap();
    let found = users.get(&[key("2"), key("x"), key("02"), key("1")]).await.unwrap();
    let bob = Document::from_iter([
        ("id", Value::Int(2)),
        ("name", "Bob".into()),
        ("price", Value::Decimal("0.00".into())),
        ("mood", "sad".into()),
    ]);
    assert_eq!((&found[0], &found[1], &found[2]), (&Some(bob.clone()), &None, &None));
    let ann = found[3].clone().unwrap();
    let seen = Time::from_unix(1_234_567_890, 0).unwrap();
    assert_eq!(ann.get("seen"), Some(&Value::Time(seen)));
    assert_eq!(ann.get("born"), Some(&"1999-12-31".into()));
    for (filter, want) in [
        (r#"{"id": {"$gte": 2}}"#, "2"),
        (r#"{"_key": "2"}"#, "2"),
        (r#"{"mood": "happy"}"#, "1"),
        (r#"{"mood": {"$gt": "s"}}"#, "2"),
        (r#"{"born": {"$gte": "1999"}}"#, "1"),
        (r#"{"name": {"$prefix": "An"}}"#, "1"),
    ] {
        let Ok(filter) = filter.parse::<Filter>() else { panic!("{filter}") };
        let query = Query::new(filter).sorted("mood".parse().unwrap(), Order::Ascending);
        let found = all(&users, &query).await;
        assert_eq!(
            found.iter().map(|row| row.key.as_str()).collect::<Vec<_>>(),
            [want],
            "{query:?}"
        );
    }
    // Written by another type's rules, and nothing rounded or cut on the way.
    let mut carl = bob.clone();
    carl.insert("id", 10i64);
    carl.insert("born", "2000-01-01");
    carl.insert("one", "abc");
    users.put(&[row("10", carl.clone()), row("2", bob)]).await.unwrap();
    assert_eq!(users.get(&[key("10")]).await.unwrap(), [Some(carl.clone())]);
    assert_eq!(
        users.load(&[row("10", carl.clone())]).await.unwrap_err().kind(),
        ErrorKind::Conflict
    );
    for (name, value, want) in [
        ("name", Value::from("longer"), "longer than its column"),
        ("name", "four    ".into(), "longer than its column"),
        ("one", "abcd".into(), "longer than its column"),
        ("price", Value::Decimal("1.005".into()), "would round to 2"),
        ("price", Value::Decimal("10000".into()), "more than 4 digits"),
        ("small", Value::Int(40_000), "16 bits"),
        ("seen", Value::Time(Time::from_unix(0, 500_000_000).unwrap()), "would round"),
        ("born", "soon".into(), "invalid input syntax"),
        ("mood", "so so".into(), "invalid input value"),
        ("twice", Value::Int(1), "no column for the field"),
    ] {
        let mut record = carl.clone();
        record.insert(name, value);
        for load in [false, true] {
            let batch = [row("10", record.clone())];
            let done = if load { users.load(&batch).await } else { users.put(&batch).await };
            let error = done.unwrap_err();
            assert!(error.to_string().contains(want), "{name}: {error}");
        }
    }
    assert_eq!(users.get(&[key("10")]).await.unwrap(), [Some(carl)]);
    let keys: Vec<Row> = users.scan(&KeyRange::all()).await.unwrap().try_concat().await.unwrap();
    assert_eq!(keys.iter().map(|row| row.key.as_str()).collect::<Vec<_>>(), ["1", "10", "2"]);

    let orders = store::open(&format!("{base}&table=orders&column=payload")).await.unwrap();
    let id = key("01234567-89ab-cdef-0123-456789abcdef");
    let upper = key("01234567-89AB-cdef-0123-456789abcdef");
    let kept =
        Document::from_iter([("b", Value::Int(1)), ("a", Value::List(vec![Value::Float(1.0)]))]);
    assert_eq!(orders.get(&[upper, id.clone()]).await.unwrap(), [None, Some(kept.clone())]);
    assert_eq!(all(&orders, &Query::new(r#"{"b": 1}"#.parse().unwrap())).await.len(), 1);
    orders.put(&[Row { key: id.clone(), record: kept.clone() }]).await.unwrap();
    assert_eq!(orders.get(std::slice::from_ref(&id)).await.unwrap(), [Some(kept)]);
    let texts = format!("{base}&table=orders&column=object&format=json+base64");
    let texts = store::open(&texts).await.unwrap();
    texts
        .put(&[Row { key: id.clone(), record: Document::from_iter([("a", 1i64)]) }])
        .await
        .unwrap();
    assert_eq!(texts.get(&[id]).await.unwrap(), [Some(Document::from_iter([("a", 1i64)]))]);
    let view = store::open(&format!("{base}&table=admins&key=id&layout=columns")).await.unwrap();
    assert_eq!(view.count().await.unwrap(), 1);
}

#[tokio::test]
async fn two_hundred_thousand_people_are_loaded_and_counted() {
    let server = need!(shared());
    let place = ready(server, "table=people").await;
    let rows = people(0, 200_000);
    let begin = Instant::now();
    for batch in rows.chunks(10_000) {
        place.load(batch).await.unwrap();
    }
    println!("200000 people loaded in {:.2} s", begin.elapsed().as_secs_f64());
    assert_eq!(place.count().await.unwrap(), 200_000);
    let begin = Instant::now();
    let mut seen = 0;
    let mut last = String::new();
    let mut batches = place.scan(&KeyRange::all()).await.unwrap();
    while let Some(batch) = batches.try_next().await.unwrap() {
        for row in &batch {
            assert!(*last < *row.key.as_str());
            last = row.key.to_string();
        }
        seen += batch.len();
    }
    println!("and scanned in {:.2} s", begin.elapsed().as_secs_f64());
    assert_eq!(seen, 200_000);
    let parts = place.split(7).await.unwrap();
    let mut sum = 0;
    for part in &parts {
        let mut batches = place.scan(part).await.unwrap();
        while let Some(batch) = batches.try_next().await.unwrap() {
            sum += batch.len();
        }
    }
    assert_eq!((parts.len(), sum), (7, 200_000));
}

/// A domain is a name for a type, and perhaps a rule.
#[tokio::test]
async fn a_domain_is_what_it_is_made_of() {
    let server = need!(shared());
    let own = client(server).await;
    own.batch_execute(
        "CREATE DOMAIN d_int AS int; CREATE DOMAIN d_small AS d_int CHECK (VALUE < 100);
         CREATE DOMAIN d_price AS numeric(6, 2); CREATE DOMAIN d_time AS timestamptz;
         CREATE TABLE domains (id d_int PRIMARY KEY, v d_small, p d_price, t d_time);
         INSERT INTO domains VALUES (3, 3, 1.5, '2020-01-01Z'), (11, 11, 11, NULL)",
    )
    .await
    .unwrap();
    let url = format!("{}?table=domains&layout=columns", server.url());
    let place = store::open(&url).await.unwrap();
    let rows = place.get(&[key("3"), key("11")]).await.unwrap();
    let first = rows[0].as_ref().unwrap();
    assert_eq!(first.get("id"), Some(&Value::Int(3)));
    assert_eq!(first.get("v"), Some(&Value::Int(3)));
    assert_eq!(first.get("p"), Some(&Value::Decimal("1.50".into())));
    assert!(matches!(first.get("t"), Some(Value::Time(_))));
    let sorted = Query::new(Filter::field("v", Test::Gt(Value::Int(2))).unwrap())
        .sorted("v".parse().unwrap(), Order::Ascending);
    let rows: Vec<Row> =
        store::one_by_one(place.find(&sorted).await.unwrap()).try_collect().await.unwrap();
    assert_eq!(rows.iter().map(|row| &*row.key).collect::<Vec<_>>(), ["3", "11"]);
    let new = |v| row("4", Document::from_iter([("v", Value::Int(v))]));
    place.put(&[new(4)]).await.unwrap();
    place.load(&[row("5", Document::new()), row("6", Document::new())]).await.unwrap();
    let e = place.put(&[new(100)]).await.unwrap_err().to_string();
    assert!(e.contains("key \"4\"") && e.contains("d_small"), "{e}");
    let long = Document::from_iter([("p", Value::Decimal("1.234".into()))]);
    let e = place.put(&[row("4", long)]).await.unwrap_err().to_string();
    assert!(e.contains("\"p\"") && e.contains("round"), "{e}");
}

/// Those that are made here and found by their name: no views, nothing of another schema.
#[tokio::test]
async fn tables_are_listed_by_schema() {
    let server = need!(shared());
    let own = client(server).await;
    own.batch_execute(
        "CREATE SCHEMA listing; CREATE SCHEMA other;
         CREATE TABLE listing.b (id int PRIMARY KEY); CREATE TABLE listing.\"C \"\"ü\" (id serial PRIMARY KEY);
         CREATE TABLE listing.pg_class (id int); CREATE TABLE other.elsewhere (id int);
         CREATE TABLE listing.parted (id int) PARTITION BY RANGE (id);
         CREATE TABLE listing.part PARTITION OF listing.parted FOR VALUES FROM (1) TO (9);
         CREATE VIEW listing.seen AS SELECT * FROM listing.b;
         CREATE MATERIALIZED VIEW listing.kept AS SELECT * FROM listing.b;",
    )
    .await
    .unwrap();
    for client in ["own", "crate"] {
        let url = format!("{}?schema=listing&client={client}&table=b", server.url());
        let place = store::open(&url).await.unwrap();
        // A table of that name is the system's.
        assert_eq!(place.tables().await.unwrap(), ["C \"ü", "b", "part", "parted"], "{client}");
        let made = place.table("made").unwrap();
        made.prepare(&Layout::plain()).await.unwrap();
        assert!(place.tables().await.unwrap().contains(&"made".to_owned()));
        made.drop_table().await.unwrap();
        assert!(!made.tables().await.unwrap().contains(&"made".to_owned()));
    }
    let nowhere = format!("{}?schema=nowhere", server.url());
    let nowhere = store::open(&nowhere).await.unwrap();
    assert!(nowhere.tables().await.unwrap().is_empty());
}
