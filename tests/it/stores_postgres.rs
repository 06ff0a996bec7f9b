//! What is special about PostgreSQL, on a private server; what every store does, the contract suite
//! tests.

use std::{
    sync::LazyLock,
    time::{Duration, Instant},
};

use futures_util::{StreamExt, TryStreamExt};
use steelyard::{
    ErrorKind,
    durability::Tier,
    record::{Document, Kind, Time, Value, dataset::Dataset},
    server::{self, Server, Wish},
    store::{self, Column, Filter, Key, KeyRange, Layout, Place, Query, Row, query::Order},
};

/// A private server; none where there is no PostgreSQL on this machine.
fn start(wish: &Wish) -> Option<Server> {
    match server::named("postgres").unwrap().start(wish) {
        Ok(server) => Some(server),
        Err(e) if e.kind() == ErrorKind::NotFound => {
            if std::env::var_os("STEELYARD_REQUIRE_SERVERS").is_some_and(|v| v == "1") {
                panic!("{e}");
            }
            println!("skipped: {e}");
            None
        }
        Err(e) => panic!("{e:?}"),
    }
}

/// One for all tests that leave it as it is; a watchman ends it with this process.
static SHARED: LazyLock<Option<Server>> = LazyLock::new(|| start(&Wish::default()));

macro_rules! shared {
    () => {
        match &*SHARED {
            Some(server) => server,
            None => return,
        }
    };
}

fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

fn row(text: &str, record: Document) -> Row {
    Row { key: key(text), record }
}

fn one(text: &str, value: impl Into<Value>) -> Row {
    row(text, Document::from_iter([("v", value)]))
}

fn people(from: u64, until: u64) -> Vec<Row> {
    (from..until)
        .map(|n| {
            let record = Dataset::People.document(1, n).unwrap();
            Row { key: Key::of(&record, "key").unwrap(), record }
        })
        .collect()
}

async fn ready(server: &Server, options: &str) -> Place {
    let place = store::open(&format!("{}?{options}", server.url())).await.unwrap();
    place.prepare(&Layout::plain()).await.unwrap();
    place
}

async fn all(place: &Place, query: &Query) -> Vec<Row> {
    place.find(query).await.unwrap().try_concat().await.unwrap()
}

/// A connection that is not the driver's.
async fn client(server: &Server) -> tokio_postgres::Client {
    let (client, connection) =
        tokio_postgres::connect(server.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[tokio::test]
async fn names_and_values_are_never_statements() {
    let server = shared!();
    let names = ["x\"; DROP TABLE x; --", "ta'ble", "Größe 😀", "a.b", "select", "$1", "%s\\"];
    for (i, name) in names.iter().enumerate() {
        let place = store::open(&format!("{}?table=hostile{i}", server.url())).await.unwrap();
        let table = place.store().table(name).unwrap();
        let path = steelyard::store::query::Path::new([*name]);
        table
            .prepare(&Layout::plain().with_index(path.clone(), Kind::Text))
            .await
            .unwrap_or_else(|e| panic!("{name}: {e:?}"));
        let rows: Vec<Row> =
            names.iter().map(|value| row(value, Document::from_iter([(*name, *value)]))).collect();
        table.put(&rows).await.unwrap();
        for row in &rows {
            let test = store::query::Test::Eq(row.key.as_str().into());
            let query = Query::new(Filter::Field(path.clone(), test));
            let found: Vec<Row> = table.find(&query).await.unwrap().try_concat().await.unwrap();
            assert!(found.len() == 1 && found[0] == *row, "{name}");
        }
        assert_eq!(table.remove(&[rows[0].key.clone()]).await.unwrap(), 1);
        assert_eq!(table.count().await.unwrap(), rows.len() as u64 - 1);
        table.drop_table().await.unwrap();
    }
    let url = server.url();
    for (options, want) in [
        (format!("table={}", "t".repeat(64)), "64 bytes, and 63 are the most"),
        (format!("schema={}", "ü".repeat(32)), "64 bytes"),
        ("table=x%00y".into(), "is no name"),
        ("key=k%00".into(), "it has a NUL"),
        ("socket=/nowhere&tls=true".into(), "?tls=true with ?socket="),
        ("ca=x".into(), "?ca= is for ?tls=true"),
        ("fsync=off".into(), "no option \"fsync\""),
    ] {
        let error = store::open(&format!("{url}?{options}")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains(want), "{error}");
    }
}

#[tokio::test]
async fn what_cannot_be_held_is_refused_before_anything_is_written() {
    let server = shared!();
    let place = ready(server, "table=refused").await;
    let mut nul_name = Document::new();
    nul_name.push("a\0b", 1i64);
    let long = "k".repeat(2691);
    for (bad, want) in [
        (one("a\0b", 1i64), "key \"a\\0b\": it has a NUL"),
        (one("nul", "x\0y"), "key \"nul\": field \"v\" has a NUL"),
        (row("name", nul_name), "key \"name\": field \"a\\0b\" has a NUL"),
        (one("bytes", vec![1u8]), "field \"v\" holds bytes"),
        (one("nan", f64::NAN), "field \"v\" is NaN"),
        (one(&long, 1i64), "keys of 2690 bytes at most"),
    ] {
        assert!(place.check(&bad).unwrap_err().to_string().contains(want), "{want}");
        let batch = [one("good", 1i64), bad, one("other", 2i64)];
        for load in [false, true] {
            let done = if load { place.load(&batch).await } else { place.put(&batch).await };
            let error = done.unwrap_err();
            assert!(error.to_string().contains(want), "{error}");
        }
        assert_eq!(place.count().await.unwrap(), 0, "{want}");
    }
    // The longest key that the index holds, of digits that do not compress.
    let digits = |seed: u64| -> String {
        let mut state = seed;
        (0..2690)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                char::from(b'!' + (state >> 33) as u8 % 94)
            })
            .collect()
    };
    let rows = [one(&digits(1), 1i64), one(&digits(2), 2i64)];
    place.load(&rows).await.unwrap();
    assert_eq!(place.count().await.unwrap(), 2);
    let nul = [key("a\0b"), rows[1].key.clone(), key("none")];
    let record = Some(rows[1].record.clone());
    assert_eq!(place.get(&nul).await.unwrap(), [None, record, None]);
    assert_eq!(place.remove(&nul).await.unwrap(), 1);
    // Ranges may begin and end where no key can be.
    place.put(&[one("a", 1i64), one("ab", 2i64), one("b", 3i64)]).await.unwrap();
    for (from, until, want) in
        [("a\0", "b", 1), ("a", "a\0", 1), ("\0", "b\0x", 3), ("\0", "\0", 0)]
    {
        let range = KeyRange { from: Some(key(from)), until: Some(key(until)) };
        let found: Vec<Row> = place.scan(&range).await.unwrap().try_concat().await.unwrap();
        let small = found.iter().filter(|row| row.key.len() < 3).count();
        assert_eq!(small, want, "{from:?} {until:?}");
    }
}

#[tokio::test]
async fn numbers_keep_their_kind_and_digits() {
    let server = shared!();
    let place = ready(server, "table=numbers").await;
    let floats = [
        0.0,
        1.0,
        -1.0,
        0.1,
        1.5e15,
        1e16,
        1e22,
        1e300,
        f64::MAX,
        f64::MIN_POSITIVE,
        5e-324,
        9_007_199_254_740_993.0,
        1.0 / 3.0,
        18_446_744_073_709_551_616.0,
    ];
    let ints = [0, 1, -1, (1 << 53) + 1, i64::MAX, i64::MIN];
    let values = floats.map(Value::Float).into_iter().chain(ints.map(Value::Int));
    let rows: Vec<Row> = values.enumerate().map(|(i, v)| one(&format!("{i:02}"), v)).collect();
    place.load(&rows).await.unwrap();
    let found: Vec<Row> =
        all(&place, &Query::default().sorted("_key".parse().unwrap(), Order::Ascending)).await;
    assert_eq!(found, rows);
    for row in &rows {
        let test = store::query::Test::Eq(row.record.get("v").unwrap().clone());
        let query = Query::new(Filter::field("v", test).unwrap());
        let want: Vec<_> = rows.iter().filter(|r| query.matches(&r.key, &r.record)).collect();
        let found = all(&place, &query.sorted("_key".parse().unwrap(), Order::Ascending)).await;
        assert_eq!(found.iter().collect::<Vec<_>>(), want, "{row:?}");
    }
    // The one number that changes; the driver says so.
    place.put(&[one("zero", -0.0)]).await.unwrap();
    let zero = place.get(&[key("zero")]).await.unwrap();
    assert_eq!(zero, [Some(Document::from_iter([("v", 0.0)]))]);
    assert!(place.abilities().loses.contains("-0.0 becomes 0.0"));
}

#[tokio::test]
async fn of_equal_keys_in_a_batch_the_last_stays() {
    let server = shared!();
    for layout in ["document", "blob"] {
        let place = ready(server, &format!("table=twice_{layout}&layout={layout}")).await;
        let batch: Vec<Row> = (0..3000i64).map(|n| one(&format!("k{}", n % 1000), n)).collect();
        place.put(&batch).await.unwrap();
        place.put(&batch[..2500]).await.unwrap();
        assert_eq!(place.count().await.unwrap(), 1000);
        let found = place.get(&[key("k0"), key("k999"), key("k0")]).await.unwrap();
        let want = [2000i64, 1999, 2000].map(|n| Some(Document::from_iter([("v", n)])));
        assert_eq!(found, want);
        let error = place.load(&[one("new", 1i64), one("new", 2i64)]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(error.to_string().contains("key \"new\": it is twice in the batch"), "{error}");
    }
}

#[tokio::test]
async fn two_who_put_the_same_keys_do_not_deadlock() {
    let server = shared!();
    let place = ready(server, "table=deadlock").await;
    let rows = people(0, 500);
    let mut tasks = Vec::new();
    for i in 0..8 {
        let (place, mut rows) = (place.clone(), rows.clone());
        if i % 2 == 0 {
            rows.reverse();
        }
        rows.rotate_left(i * 31);
        tasks.push(tokio::spawn(async move {
            for _ in 0..5 {
                place.put(&rows).await?;
            }
            Ok::<_, steelyard::Error>(())
        }));
    }
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(place.count().await.unwrap(), 500);
}

#[tokio::test]
async fn a_taken_key_is_named_and_nothing_is_loaded() {
    let server = shared!();
    for layout in ["document", "columns", "blob"] {
        let url = format!("{}?table=taken_{layout}&layout={layout}", server.url());
        let place = store::open(&url).await.unwrap();
        let rows = people(0, 2000);
        let columns = Column::infer(rows.iter().map(|row| &row.record)).unwrap();
        let layout = match layout {
            "columns" => Layout::plain().with_columns(columns),
            _ => Layout::plain(),
        };
        place.prepare(&layout).await.unwrap();
        place.load(&rows[1234..1235]).await.unwrap();
        for batch in [&rows[..], &rows[1234..1235]] {
            let error = place.load(batch).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Conflict);
            assert!(error.to_string().contains("key \"bob1234\": it is taken"), "{error}");
            assert_eq!(place.count().await.unwrap(), 1);
        }
    }
}

#[tokio::test]
async fn two_hundred_thousand_people_are_loaded_and_counted() {
    let server = shared!();
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

#[tokio::test]
async fn whoever_reads_a_stream_may_write() {
    let server = shared!();
    let place = ready(server, "table=streams&pool=1&timeout=10").await;
    let rows = people(0, 5000);
    place.load(&rows).await.unwrap();
    let everything = Query::default().sorted("age".parse().unwrap(), Order::Descending);
    for find in [false, true] {
        let mut seen = 0;
        let mut batches = match find {
            true => place.find(&everything).await.unwrap(),
            false => place.scan(&KeyRange::all()).await.unwrap(),
        };
        while let Some(batch) = batches.try_next().await.unwrap() {
            seen += batch.len();
            place.put(&batch[..1]).await.unwrap();
            assert_eq!(place.count().await.unwrap(), 5000);
        }
        assert_eq!(seen, 5000, "find: {find}");
    }
    // One that is left early does not stand in the way of others.
    for _ in 0..5 {
        let mut batches = place.find(&everything).await.unwrap();
        assert!(batches.next().await.unwrap().is_ok());
    }
    place.drop_table().await.unwrap();
}

#[tokio::test]
async fn columns_hold_what_they_are_declared_for() {
    let server = shared!();
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
        (
            "int",
            Value::from("old"),
            "key \"x\": field \"int\" holds a text, where its column holds int",
        ),
        ("time", time(1), "to the microsecond"),
        ("text", "\0".into(), "has a NUL"),
        ("float", f64::NAN.into(), "NaN"),
        ("float", i64::MAX.into(), "no float is exactly"),
        ("big", Value::BigInt("9".repeat(1001).into()), "more than 1000 digits"),
        ("shoe size", Value::Int(43), "no column for the field \"shoe size\""),
        ("int", Value::List(vec![]), "holds a list"),
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
    let server = shared!();
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
        ("one", "abcd".into(), "too long"),
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
async fn durability_is_what_was_asked_for_or_an_error() {
    let server = shared!();
    for (tier, word) in [(Tier::T3, "on"), (Tier::T2, "off"), (Tier::T0, "off")] {
        let place = ready(server, &format!("table=tier_{tier}&durability={tier}")).await;
        let said = place.describe().await.unwrap();
        assert_eq!((said.asked, said.set), (Some(tier), Some(tier)), "{said:?}");
        assert!(said.settings.contains(&("synchronous_commit".into(), word.into())), "{said:?}");
        assert_eq!(said.product, "PostgreSQL");
        assert!(said.disk.unwrap() > 0, "{said:?}");
    }
    let url = server.url();
    let unlogged = store::open(&format!("{url}?table=tier_t0&durability=t3")).await.unwrap();
    let error = unlogged.prepare(&Layout::plain()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("UNLOGGED"), "{error}");
    let error = store::open(&format!("{url}?durability=t1")).await.unwrap_err();
    assert!(error.to_string().contains("it can: t3 (durable"), "{error}");

    let wish = Wish { tier: Some(Tier::T0), ..Wish::default() };
    let volatile = start(&wish).unwrap();
    let error = store::open(&format!("{}?durability=t3", volatile.url())).await.unwrap_err();
    assert!(error.to_string().contains("fsync=off cannot promise"), "{error}");
    let place = ready(&volatile, "table=x").await;
    assert_eq!(place.describe().await.unwrap().set, Some(Tier::T0));
}

#[tokio::test]
async fn a_server_that_was_killed_is_found_again() {
    let Some(mut server) = start(&Wish::default()) else { return };
    let place = ready(&server, "pool=2&timeout=10&connect_timeout=5").await;
    let rows = people(0, 100);
    place.load(&rows).await.unwrap();
    let mut stream = place.find(&Query::default()).await.unwrap();
    assert!(stream.next().await.unwrap().is_ok());
    drop(stream);
    assert!(server.processes().len() > 3, "{:?}", server.processes());
    server.kill();
    let error = place.get(&[rows[0].key.clone()]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    server.restart().unwrap();
    // What was acknowledged is there, and the next operations work, on every connection.
    for _ in 0..4 {
        assert_eq!(place.count().await.unwrap(), 100);
        let everything = Query::default().sorted("age".parse().unwrap(), Order::Ascending);
        assert_eq!(all(&place, &everything).await.len(), 100);
    }
}

#[tokio::test]
async fn a_server_that_stands_still_is_an_error_in_time() {
    let Some(server) = start(&Wish::default()) else { return };
    let place = ready(&server, "pool=1&timeout=0.5&connect_timeout=0.5").await;
    let rows = people(0, 2000);
    place.load(&rows).await.unwrap();
    server.freeze();
    let query = Query::new("age>=50".parse().unwrap());
    for i in 0..5 {
        let begin = Instant::now();
        let error = match i {
            0 => place.get(&[rows[0].key.clone()]).await.unwrap_err(),
            1 => place.put(&rows[..5]).await.unwrap_err(),
            2 => place.load(&people(2000, 4000)).await.unwrap_err(),
            3 => place.find(&query).await.err().unwrap(),
            _ => place.describe().await.unwrap_err(),
        };
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
        assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
    }
    server.thaw();
    assert_eq!(place.count().await.unwrap(), 2000);
    place.put(&rows[..5]).await.unwrap();
}

#[tokio::test]
async fn what_the_server_refuses_has_its_kind() {
    let server = shared!();
    let base = server.url().trim_end_matches("/postgres");
    let error = store::open(&format!("{base}/nowhere")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error:?}");
    let url = server.url().replace("test@", "nobody:secret@");
    let error = store::open(&url).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error:?}");
    assert!(!format!("{error:?}").contains("secret"), "{error:?}");
    let error = store::open(&format!("{}?tls=true", server.url())).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error:?}");
    assert!(error.to_string().contains("the server has no TLS"), "{error}");
    let place = store::open(&format!("{}?table=not_there", server.url())).await.unwrap();
    assert_eq!(place.count().await.unwrap_err().kind(), ErrorKind::NotFound);
    let folder = server.data().parent().unwrap().display();
    let url = format!("{}?socket={folder}&table=by_socket", server.url());
    store::open(&url).await.unwrap().prepare(&Layout::plain()).await.unwrap();
    let error = store::open("postgres://test@127.0.0.1:1/x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    // A value too long for an index is refused by the server, and nothing of the batch is written.
    let place = ready(server, "table=long").await;
    let layout = Layout::plain().with_index("v".parse().unwrap(), Kind::Text);
    place.prepare(&layout).await.unwrap();
    let mut state = 1u64;
    let noise: String = (0..9000)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b'!' + (state >> 33) as u8 % 94)
        })
        .collect();
    let batch = [one("a", "short"), one("b", noise)];
    assert_eq!(place.put(&batch).await.unwrap_err().kind(), ErrorKind::TooLarge);
    let error = place.load(&batch).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error:?}");
    assert_eq!(place.count().await.unwrap(), 0);
}

#[tokio::test]
async fn tls_is_spoken_with_whom_is_trusted_only() {
    use std::{os::unix::fs::chown, process::Command};
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (key, certificate) = (file("key"), file("certificate"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout", &key])
        .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-out", &certificate])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .output();
    if !made.is_ok_and(|made| made.status.success()) {
        println!("skipped: openssl makes no certificate here");
        return;
    }
    // PostgreSQL wants its key for itself.
    if let (true, Ok(Some(user))) =
        (nix::unistd::geteuid().is_root(), nix::unistd::User::from_name("postgres"))
    {
        let (uid, gid) = (Some(user.uid.as_raw()), Some(user.gid.as_raw()));
        for path in [folder.path().display().to_string(), key.clone(), certificate.clone()] {
            chown(path, uid, gid).unwrap();
        }
    }
    let settings = [("ssl", "on"), ("ssl_cert_file", &*certificate), ("ssl_key_file", &*key)];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let Some(server) = start(&Wish { settings, ..Wish::default() }) else { return };
    for host in ["localhost", "127.0.0.1"] {
        let url = server.url().replace("127.0.0.1", host);
        let place = store::open(&format!("{url}?tls=true&ca={certificate}")).await.unwrap();
        place.prepare(&Layout::plain()).await.unwrap();
        place.load(&people(0, 3000)).await.unwrap();
        assert_eq!(
            place.scan(&KeyRange::all()).await.unwrap().try_concat().await.unwrap().len(),
            3000
        );
        place.drop_table().await.unwrap();
        let error = store::open(&format!("{url}?tls=true")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("certificate"), "{error}");
    }
    let error = store::open(&format!("{}?tls=true&ca={key}", server.url())).await.unwrap_err();
    assert!(error.to_string().contains("no certificate in it"), "{error}");
}
