//! What is special about MySQL and MariaDB; what every store does, the contract suite tests.

use std::{
    sync::{LazyLock, Mutex},
    time::{Duration, Instant},
};

use futures_util::TryStreamExt;
use steelyard::{
    ErrorKind,
    durability::Tier,
    record::{Document, Kind, Value, dataset::Dataset},
    server::{self, Server, Wish},
    store::{
        Column, Filter, Key, KeyRange, Layout, Query, Row, Store, open,
        query::{Order, Path, Test},
    },
};

/// A server with these settings; none where there is none on this machine.
fn start(tier: Option<Tier>, settings: &[(&str, &str)]) -> Option<Server> {
    let settings = settings.iter().map(|&(name, value)| (name.into(), value.into())).collect();
    let program = server::named("mariadb").unwrap();
    if program.find().is_none() {
        assert!(
            std::env::var_os("STEELYARD_REQUIRE_SERVERS").is_none(),
            "mariadb is not on this machine: {}",
            program.install
        );
        println!("skipped: mariadb is not on this machine");
        return None;
    }
    Some(program.start(&Wish { tier, settings, ..Wish::default() }).unwrap())
}

/// The URL of a server that most tests share, with a table of the test's own; it ends with this
/// process.
fn shared(table: &str) -> Option<String> {
    static SHARED: LazyLock<Mutex<Option<Server>>> =
        LazyLock::new(|| Mutex::new(start(Some(Tier::T1), &[])));
    let server = SHARED.lock().unwrap();
    server.as_ref().map(|server| format!("{}?table={table}", server.url()))
}

fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

fn row(key_text: &str, record: Document) -> Row {
    Row { key: key(key_text), record }
}

fn one(name: &str, value: impl Into<Value>) -> Document {
    Document::from_iter([(name, value.into())])
}

/// People whose times are text, as documents keep them.
fn people(range: std::ops::Range<u64>) -> Vec<Row> {
    let person = |n| {
        let record: Document = Dataset::People
            .document(1, n)
            .unwrap()
            .into_iter()
            .map(|(name, value)| match value {
                Value::Time(time) => (name, Value::from(time.to_string())),
                value => (name, value),
            })
            .collect();
        Row { key: Key::of(&record, "key").unwrap(), record }
    };
    range.map(person).collect()
}

async fn all(store: &dyn Store, query: &Query) -> Vec<Row> {
    store.find(query).await.unwrap().try_concat().await.unwrap()
}

async fn keys(store: &dyn Store, query: &Query) -> Vec<String> {
    let mut keys: Vec<_> =
        all(store, query).await.into_iter().map(|row| row.key.to_string()).collect();
    if query.sort.is_empty() {
        keys.sort();
    }
    keys
}

/// Fields by name: MySQL's JSON has an order of its own.
fn sorted(found: Vec<Option<Document>>) -> Vec<Option<Document>> {
    let sorted = |record: Document| {
        let mut fields: Vec<_> = record.into_iter().collect();
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        fields.into_iter().collect()
    };
    found.into_iter().map(|record| record.map(sorted)).collect()
}

/// Whether the server is MariaDB, not MySQL.
async fn is_maria(store: &dyn Store) -> bool {
    store.describe().await.unwrap().product == "MariaDB"
}

/// A client without steelyard between, for what other programs see.
async fn other(url: &str) -> mysql_async::Conn {
    let url = url.split('?').next().unwrap();
    let options = mysql_async::Opts::from_url(url).unwrap();
    let options = mysql_async::OptsBuilder::from_opts(options).prefer_socket(false);
    mysql_async::Conn::new(options).await.unwrap()
}

#[tokio::test]
async fn names_and_values_that_look_like_sql() {
    let Some(url) = shared("plain") else { return };
    let place = open(&url).await.unwrap();
    let texts = [
        "' OR '1'='1",
        "\"; DROP TABLE plain; --",
        "`",
        "back\\slash",
        "\0nul",
        "tab\tline\r\n",
        "trailing ",
        " ",
        "\\N",
        "$.\"a\"[*]",
        "emoji \u{1f600}",
        "\u{ffff}",
        "%_",
    ];
    for table in ["tick`s", "a'b\"c", "semi;colon -- x", "ünïcode", "with space", "$[0].*"] {
        for layout in ["document", "blob"] {
            let table = format!("{table} {layout}");
            let place =
                open(&url.replace("table=plain", &format!("layout={layout}"))).await.unwrap();
            let store = place.table(&table).unwrap();
            let path = |name: &str| Path::new([name]);
            let mut layouts = Layout::plain();
            if layout == "document" {
                layouts = layouts
                    .with_index(path("' OR \"`\\\0\u{1f600}"), Kind::Text)
                    .with_index(path("n"), Kind::Int);
            }
            store.prepare(&layouts).await.unwrap();
            store.prepare(&layouts).await.unwrap();
            let name = "' OR \"`\\\0\u{1f600}";
            let rows: Vec<Row> = texts
                .iter()
                .map(|text| {
                    row(text, Document::from_iter([(name, Value::from(*text)), ("n", 1.into())]))
                })
                .collect();
            store.load(&rows).await.unwrap();
            store.put(&rows).await.unwrap();
            assert_eq!(store.count().await.unwrap(), texts.len() as u64, "{table}");
            let found = store.get(&texts.map(key)).await.unwrap();
            let want: Vec<_> = rows.iter().map(|row| Some(row.record.clone())).collect();
            assert_eq!(sorted(found), sorted(want), "{table}");
            if layout == "document" {
                for text in texts {
                    let test = Filter::Field(path(name), Test::Eq(text.into()));
                    assert_eq!(keys(&*store, &Query::new(test)).await, [text], "{table}");
                    let test = Filter::Field(path("_key"), Test::Eq(text.into()));
                    assert_eq!(keys(&*store, &Query::new(test)).await, [text], "{table}");
                    // Not in the index.
                    let twice = Filter::Field(path("n"), Test::Eq(1i64.into()))
                        .and(Filter::Field(path(name), Test::Ge(text.into())))
                        .and(Filter::Field(path(name), Test::Le(text.into())));
                    assert_eq!(keys(&*store, &Query::new(twice)).await, [text], "{table}");
                }
            }
            let gone = store.remove(&[key("trailing "), key("trailing"), key(" ")]).await.unwrap();
            assert_eq!(gone, 2);
            store.drop_table().await.unwrap();
        }
    }
    for (table, want) in [
        ("x".repeat(65), "64 characters"),
        ("space ".into(), "ends in a space"),
        ("\u{1f600}".into(), "beyond U+FFFF"),
        ("nul\0".into(), "NUL"),
    ] {
        let Err(error) = place.table(&table) else { panic!("{table:?} was taken") };
        assert!(error.to_string().contains(want), "{error}");
    }
}

#[tokio::test]
async fn keys_differ_by_case_and_by_spaces_and_are_in_the_order_of_their_bytes() {
    for layout in ["document", "blob"] {
        let Some(url) = shared(&format!("keys_{layout}")) else { return };
        let place = open(&format!("{url}&layout={layout}")).await.unwrap();
        place.prepare(&Layout::plain()).await.unwrap();
        let mut texts =
            vec!["a", "a ", "A", "ä", "a\0", "\u{ffff}", "\u{1f600}", "\u{fb01}", "fi", "0", "00"];
        let rows: Vec<Row> = texts.iter().map(|text| row(text, one("k", *text))).collect();
        place.put(&rows).await.unwrap();
        let found: Vec<Row> =
            place.scan(&KeyRange::all()).await.unwrap().try_concat().await.unwrap();
        texts.sort_unstable();
        assert_eq!(found.iter().map(|row| row.key.as_str()).collect::<Vec<_>>(), texts);
        let range = KeyRange { from: Some(key("a")), until: Some(key("a ")) };
        let found: Vec<Row> = place.scan(&range).await.unwrap().try_concat().await.unwrap();
        assert_eq!(found.len(), 2, "a and a\\0: {found:?}");
        let parts = place.split(3).await.unwrap();
        let mut seen = 0;
        for part in &parts {
            let rows: Vec<Row> = place.scan(part).await.unwrap().try_concat().await.unwrap();
            assert!((3..=4).contains(&rows.len()), "{parts:?}");
            seen += rows.len();
        }
        assert_eq!(seen, texts.len());
        let longest = "ü".repeat(384);
        place.put(&[row(&longest, one("k", 1i64))]).await.unwrap();
        for long in ["x".repeat(10_240), "ü".repeat(385)] {
            let rows = [row("fine", one("k", 1i64)), row(&long, one("k", 1i64))];
            for error in [place.put(&rows).await.unwrap_err(), place.load(&rows).await.unwrap_err()]
            {
                assert_eq!(error.kind(), ErrorKind::Invalid);
                assert!(error.to_string().contains("keys of 768 bytes at most"), "{error}");
            }
        }
        assert_eq!(place.count().await.unwrap(), texts.len() as u64 + 1, "nothing half done");
    }
}

#[tokio::test]
async fn what_is_too_large_is_refused_before_anything_is_written() {
    for layout in ["document", "blob"] {
        let Some(url) = shared(&format!("large_{layout}")) else { return };
        let place = open(&format!("{url}&layout={layout}")).await.unwrap();
        place.prepare(&Layout::plain()).await.unwrap();
        let most = place.abilities().max_record;
        let sized = |len: usize| one("text", "x".repeat(len));
        for many in [0, 200] {
            let mut rows: Vec<Row> = (0..many).map(|i| row(&format!("k{i}"), sized(3))).collect();
            rows.push(row("large", sized(most + 1)));
            for error in [place.put(&rows).await.unwrap_err(), place.load(&rows).await.unwrap_err()]
            {
                assert_eq!(error.kind(), ErrorKind::TooLarge);
                assert!(error.to_string().contains("key \"large\""), "{error}");
            }
        }
        assert_eq!(place.count().await.unwrap(), 0);
        // The largest there can be goes all ways.
        let largest = row("large", sized(most - 200));
        place.put(std::slice::from_ref(&largest)).await.unwrap();
        assert_eq!(place.get(&[key("large")]).await.unwrap(), [Some(largest.record.clone())]);
        place.remove(&[key("large")]).await.unwrap();
        let mut rows: Vec<Row> = (0..200).map(|i| row(&format!("k{i}"), sized(3))).collect();
        rows.push(largest.clone());
        place.load(&rows).await.unwrap();
        assert_eq!(place.get(&[key("large")]).await.unwrap(), [Some(largest.record)]);
    }
    let Some(url) = shared("deep") else { return };
    let place = open(&url).await.unwrap();
    place.prepare(&Layout::plain()).await.unwrap();
    let most = if is_maria(&**place.store()).await { 31 } else { 100 };
    let nested =
        |levels: usize| (1..levels).fold(Document::new(), |inner, _| one("a", Value::Map(inner)));
    place.put(&[row("fits", nested(most))]).await.unwrap();
    let error = place.put(&[row("deep", nested(most + 1))]).await.unwrap_err();
    assert!(error.to_string().contains(&format!("deeper than {most} levels")), "{error}");
}

#[tokio::test]
async fn many_people_are_loaded_and_found_by_an_index() {
    let Some(url) = shared("people") else { return };
    let place = open(&url).await.unwrap();
    let layout = Layout::plain().with_index("age".parse().unwrap(), Kind::Int);
    place.prepare(&layout).await.unwrap();
    const MANY: u64 = 200_000;
    let mut spent = Duration::ZERO;
    let mut first = Vec::new();
    for start in (0..MANY).step_by(20_000) {
        let rows = people(start..start + 20_000);
        let begin = Instant::now();
        place.load(&rows).await.unwrap();
        spent += begin.elapsed();
        if first.is_empty() {
            first = rows;
        }
    }
    println!("{MANY} people loaded in {:.2} s", spent.as_secs_f64());
    assert_eq!(place.count().await.unwrap(), MANY);
    let wanted: Vec<Key> = first.iter().step_by(100).map(|row| row.key.clone()).collect();
    let found = place.get(&wanted).await.unwrap();
    assert_eq!(sorted(found[1..2].to_vec()), sorted(vec![Some(first[100].record.clone())]));
    assert!(found.iter().all(Option::is_some));

    // A unique conflict is named, and nothing is half done: by file and by statement.
    for many in [500, 3] {
        let mut rows: Vec<Row> =
            (0..many).map(|i| row(&format!("new{i}"), one("age", 5i64))).collect();
        rows.push(first[7].clone());
        let error = place.load(&rows).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(error.to_string().contains(first[7].key.as_str()), "{error}");
        assert_eq!(place.count().await.unwrap(), MANY);
    }

    use mysql_async::prelude::Queryable;
    let mut other = other(&url).await;
    other.query_drop("ANALYZE TABLE people").await.unwrap();
    let oldest = Query::new(r#"{"age": {"$gte": 99}}"#.parse().unwrap());
    let found = all(&*place, &oldest).await;
    println!("{} people of 99 and more", found.len());
    assert!(!found.is_empty() && found.len() < 5_000);
    assert!(found.iter().all(|row| oldest.matches(&row.key, &row.record)));
    let limited = oldest.clone().limited(250);
    other.query_drop("SET GLOBAL general_log = 1, GLOBAL log_output = 'TABLE'").await.unwrap();
    assert_eq!(all(&*place, &limited).await.len(), 250);
    other.query_drop("SET GLOBAL general_log = 0").await.unwrap();
    // What was asked, as the server wrote it down.
    let statement: Option<String> = other
        .query_first(
            "SELECT CONVERT(argument USING utf8mb4) FROM mysql.general_log WHERE command_type = \
             'Execute' AND argument LIKE '%`people`%`_number:age`%' LIMIT 1",
        )
        .await
        .unwrap();
    let plan: mysql_async::Row =
        other.query_first(format!("EXPLAIN {}", statement.unwrap())).await.unwrap().unwrap();
    let key: Option<String> = plan.get("key").unwrap();
    let kind: Option<String> = plan.get("type").unwrap();
    assert_eq!((kind.as_deref(), key.as_deref()), (Some("range"), Some("_number:age")));
}

#[tokio::test]
async fn numbers_texts_and_other_kinds_compare_as_they_should() {
    let Some(url) = shared("kinds") else { return };
    let big = (1i64 << 53) + 1;
    let values: Vec<Value> = vec![
        Value::Null,
        true.into(),
        false.into(),
        0i64.into(),
        1i64.into(),
        1.0.into(),
        (-0.0).into(),
        1.5.into(),
        100.0.into(),
        1e300.into(),
        1e18.into(),
        (1i64 << 60).into(),
        1_000_000_000_000_000_001i64.into(),
        big.into(),
        ((1i64 << 53) as f64).into(),
        i64::MAX.into(),
        i64::MIN.into(),
        9_223_372_036_854_775_808.0.into(),
        "".into(),
        "1".into(),
        "true".into(),
        "null".into(),
        "a".into(),
        "a ".into(),
        "A".into(),
        "ä".into(),
        "\u{1f600}".into(),
        "\u{ffff}".into(),
        "x".repeat(190).into(),
        "x".repeat(191).into(),
        ("x".repeat(191) + "y").into(),
        "x".repeat(192).into(),
        Value::List(vec![]),
        Value::List(vec![Value::Int(1)]),
        Value::Map(Document::new()),
    ];
    let mut rows: Vec<Row> = values
        .iter()
        .enumerate()
        .map(|(i, v)| row(&format!("{i:02}"), one("v", v.clone())))
        .collect();
    rows.push(row("none", Document::new()));
    rows.push(row("nested", one("v", Value::Map(one("v", 5i64)))));
    let mut tests = vec![Test::Exists(true), Test::Exists(false), Test::Prefix("x".into())];
    tests.extend([Test::Prefix("".into()), Test::Prefix("x".repeat(191)), Test::In(vec![])]);
    let ordered = |v: &Value| matches!(v, Value::Int(_) | Value::Float(_) | Value::Text(_));
    let infinite = [f64::INFINITY, f64::NEG_INFINITY].map(Value::Float);
    let comparable = values.iter().filter(|v| !matches!(v, Value::List(_) | Value::Map(_)));
    for with in comparable.chain(&infinite) {
        tests.extend([Test::Eq(with.clone()), Test::Ne(with.clone())]);
        tests.push(Test::In(vec![with.clone(), "1".into()]));
        if ordered(with) {
            let with = || with.clone();
            tests.extend([Test::Lt(with()), Test::Le(with()), Test::Gt(with()), Test::Ge(with())]);
        }
    }
    let memory = open("memory:").await.unwrap();
    memory.put(&rows).await.unwrap();
    let plain = open(&url).await.unwrap();
    plain.prepare(&Layout::plain()).await.unwrap();
    plain.put(&rows).await.unwrap();
    let indexed = plain.table("kinds_indexed").unwrap();
    let v = || Path::new(["v"]);
    let layout = Layout::plain().with_index(v(), Kind::Int).with_index(v(), Kind::Text);
    indexed.prepare(&layout).await.unwrap();
    indexed.load(&rows).await.unwrap();
    for store in [&**plain.store(), &*indexed] {
        for test in &tests {
            for path in [v(), Path::new(["v", "v"])] {
                let one = Filter::Field(path, test.clone());
                for filter in [one.clone(), Filter::Not(Box::new(one))] {
                    let query = Query::new(filter);
                    let want = keys(&*memory, &query).await;
                    assert_eq!(keys(store, &query).await, want, "{:?}", query.filter);
                }
            }
        }
        for order in [Order::Ascending, Order::Descending] {
            for limit in [None, Some(10)] {
                let mut query = Query::default().sorted(v(), order);
                query.limit = limit;
                let found = all(store, &query).await;
                let numbers = |row: &&Row| {
                    matches!(row.record.get("v"), Some(Value::Int(_) | Value::Float(_)))
                };
                let texts = |row: &&Row| matches!(row.record.get("v"), Some(Value::Text(_)));
                for kind in [&numbers as &dyn Fn(&&Row) -> bool, &texts] {
                    let mut want: Vec<_> = found.iter().filter(kind).collect();
                    want.sort_by(|a, b| query.order(a, b));
                    assert_eq!(found.iter().filter(kind).collect::<Vec<_>>(), want);
                }
                let nulls = found
                    .iter()
                    .position(|row| matches!(row.record.get("v"), None | Some(Value::Null)));
                match (order, limit) {
                    (Order::Ascending, _) => assert_eq!(nulls, Some(0)),
                    (Order::Descending, None) => assert_eq!(nulls, Some(found.len() - 2)),
                    (Order::Descending, Some(_)) => assert_eq!(nulls, None),
                }
            }
        }
        // What deletes is as strict as what finds.
        let query: Filter = r#"{"v": {"$gte": 1}}"#.parse().unwrap();
        let want = keys(&*memory, &Query::new(query.clone())).await.len() as u64;
        assert_eq!(store.delete(&query).await.unwrap(), want);
    }
}

#[tokio::test]
async fn columns_are_exact() {
    let Some(url) = shared("columns") else { return };
    let place = open(&format!("{url}&layout=columns")).await.unwrap();
    let time = |text: &str| Value::Time(text.parse().unwrap());
    let columns = [
        ("int", Kind::Int),
        ("float", Kind::Float),
        ("bool", Kind::Bool),
        ("text", Kind::Text),
        ("bytes", Kind::Bytes),
        ("time", Kind::Time),
        ("back`tick", Kind::Text),
    ];
    let columns = columns.map(|(name, kind)| Column { name: name.into(), kind });
    let layout = Layout::plain()
        .with_columns(columns.to_vec())
        .with_index(Path::new(["int"]), Kind::Int)
        .with_index(Path::new(["text"]), Kind::Text)
        .with_index(Path::new(["back`tick"]), Kind::Text);
    place.prepare(&layout).await.unwrap();
    place.prepare(&layout).await.unwrap();
    let fields: Vec<(&str, Value)> = vec![
        ("int", i64::MIN.into()),
        ("int", ((1i64 << 53) + 1).into()),
        ("int", 5i64.into()),
        ("float", 0.0.into()),
        ("float", 0.1.into()),
        ("float", f64::MAX.into()),
        ("float", f64::from_bits(1).into()),
        ("float", ((1i64 << 53) as f64).into()),
        ("bool", true.into()),
        ("bool", false.into()),
        ("text", "tab\t\\N\r\n\0\u{1f600} ".into()),
        ("text", "a".into()),
        ("text", "a ".into()),
        ("text", "A".into()),
        ("bytes", Value::Bytes((0..=255).collect())),
        ("bytes", Value::Bytes(vec![])),
        ("time", time("1000-01-01T00:00:00Z")),
        ("time", time("2009-02-13T23:31:30.000001Z")),
        ("time", time("9999-12-30T21:59:59.999999Z")),
        ("back`tick", "x".into()),
    ];
    let rows: Vec<Row> = fields
        .iter()
        .enumerate()
        .map(|(i, (name, value))| row(&format!("{i:02}"), one(name, value.clone())))
        .collect();
    let all_keys: Vec<Key> = rows.iter().map(|row| row.key.clone()).collect();
    let want: Vec<_> = rows.iter().map(|row| Some(row.record.clone())).collect();
    // By statement, and (many at once) by file.
    place.put(&rows).await.unwrap();
    assert_eq!(place.get(&all_keys).await.unwrap(), want);
    place.remove(&all_keys).await.unwrap();
    let mut more = rows.clone();
    more.extend((0..100).map(|i| row(&format!("more{i}"), Document::new())));
    place.load(&more).await.unwrap();
    assert_eq!(place.get(&all_keys).await.unwrap(), want);
    place.delete(&r#"_key^=more"#.parse().unwrap()).await.unwrap();
    assert_eq!(place.count().await.unwrap(), rows.len() as u64);

    let memory = open("memory:").await.unwrap();
    memory.put(&rows).await.unwrap();
    for (field, value) in &fields {
        let near = match value {
            Value::Int(n) => vec![Value::Float(*n as f64), Value::Float(*n as f64 + 0.5)],
            Value::Float(v) if v.abs() > 1.0 && *v < 1e18 => vec![Value::Int(*v as i64 + 1)],
            Value::Float(_) => vec![Value::Float(f64::INFINITY), Value::Float(f64::NEG_INFINITY)],
            Value::Time(t) => {
                let (seconds, nanos) = t.to_unix();
                let later = nanos + 1;
                vec![Value::Time(steelyard::record::Time::from_unix(seconds, later).unwrap())]
            }
            _ => Vec::new(),
        };
        for with in near.iter().chain([value]) {
            let with = || with.clone();
            let mut tests = vec![Test::Eq(with()), Test::Ne(with()), Test::In(vec![with()])];
            if !matches!(value, Value::Bool(_) | Value::Bytes(_)) {
                tests.extend([Test::Lt(with()), Test::Le(with())]);
                tests.extend([Test::Gt(with()), Test::Ge(with())]);
            }
            for test in tests {
                let query = Query::new(Filter::Field(Path::new([*field]), test));
                let want = keys(&*memory, &query).await;
                assert_eq!(keys(&*place, &query).await, want, "{:?}", query.filter);
            }
        }
    }
    for (field, value, want) in [
        ("int", Value::from("5"), "field \"int\" holds a text, where its column holds int"),
        ("float", f64::NAN.into(), "field \"float\" is NaN"),
        ("float", (-0.0).into(), "MySQL makes 0"),
        ("float", i64::MAX.into(), "no float is exactly that"),
        ("time", time("0999-12-31T23:59:59Z"), "the year 1000"),
        ("time", time("2009-02-13T23:31:30.0000001Z"), "6 digits of a second"),
        ("shoe size", 43i64.into(), "no column for the field \"shoe size\""),
    ] {
        let error = place.put(&[rows[0].clone(), row("x", one(field, value))]).await.unwrap_err();
        assert!(error.to_string().contains(want), "{error}");
        assert!(error.to_string().contains("key \"x\""), "{error}");
    }
}

#[tokio::test]
async fn tables_of_other_programs_are_used_as_they_are() {
    use mysql_async::prelude::Queryable;
    let Some(url) = shared("users") else { return };
    let mut other = other(&url).await;
    other
        .query_drop(
            "CREATE TABLE users (id INT UNSIGNED PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20) \
             CHARACTER SET latin1, admin BOOLEAN, born DATE, paid DECIMAL(9,2), small FLOAT, twice \
             INT AS (admin * 2)) ENGINE=MyISAM",
        )
        .await
        .unwrap();
    other
        .query_drop(
            "INSERT INTO users (id, name, admin, born, paid) VALUES (7, 'Änn', 1, '1990-02-03', \
             1.5), (12, 'Bob', NULL, NULL, NULL)",
        )
        .await
        .unwrap();
    let place = open(&format!("{url}&layout=columns")).await.unwrap();
    assert!(!place.abilities().atomic, "its engine is MyISAM");
    let found = place.get(&[key("12"), key("8"), key("012"), key("7")]).await.unwrap();
    let bob = Document::from_iter([("id", Value::Int(12)), ("name", "Bob".into())]);
    let ann = Document::from_iter([
        ("id", Value::Int(7)),
        ("name", "Änn".into()),
        ("admin", true.into()),
        ("born", "1990-02-03".into()),
        ("paid", Value::Decimal("1.50".into())),
    ]);
    assert_eq!(found, [Some(bob.clone()), None, None, Some(ann.clone())]);
    let by_name = Query::new(Filter::field("name", Test::Eq("Änn".into())).unwrap());
    assert_eq!(keys(&*place, &by_name).await, ["7"]);
    let by_name = Query::new(Filter::field("name", Test::Eq("änn".into())).unwrap());
    assert!(keys(&*place, &by_name).await.is_empty(), "the column's own order knows no case");
    let everyone: Vec<Row> =
        place.scan(&KeyRange::all()).await.unwrap().try_concat().await.unwrap();
    let order: Vec<_> = everyone.iter().map(|row| row.key.as_str()).collect();
    assert_eq!(order, ["12", "7"], "keys are text");
    // Written back, and more of them.
    place.put(&everyone).await.unwrap();
    let zero = Document::from_iter([("id", Value::Int(0)), ("name", "Zoë".into())]);
    let mut rows = vec![row("0", zero)];
    rows.extend((100..300).map(|n: i64| row(&n.to_string(), one("id", n))));
    place.load(&rows).await.unwrap();
    assert_eq!(place.count().await.unwrap(), 203);
    let found = place.get(&[key("7"), key("0")]).await.unwrap();
    assert_eq!((found[0].as_ref(), found[1].as_ref()), (Some(&ann), Some(&rows[0].record)));
    for (name, value, want) in [
        ("name", Value::from("x".repeat(21)), "20 characters"),
        ("small", 0.1.into(), "FLOAT would round"),
        ("paid", Value::Decimal("1.005".into()), "2 decimal places"),
        ("twice", 4i64.into(), "no column for the field \"twice\""),
    ] {
        let error = place.put(&[row("9", one(name, value))]).await.unwrap_err();
        assert!(error.to_string().contains(want), "{error}");
    }
    // What only the server knows: this set of characters has no such one.
    let error = place.put(&[row("9", one("name", "\u{1f600}"))]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error:?}");
    assert_eq!(place.remove(&[key("7"), key("07"), key("x")]).await.unwrap(), 1);
    let error = open(&url).await.unwrap().count().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("no column \"record\""), "{error}");

    // Keys that know no case.
    other
        .query_drop(
            "CREATE TABLE words (word VARCHAR(50) COLLATE utf8mb4_general_ci PRIMARY KEY, value \
             BLOB) CHARACTER SET utf8mb4",
        )
        .await
        .unwrap();
    let words = open(&url.replace("users", "words&format=json")).await.unwrap();
    words.put(&[row("Word", one("n", 1i64)), row("b", one("n", 2i64))]).await.unwrap();
    let found = words.get(&[key("word"), key("Word")]).await.unwrap();
    assert_eq!(found, [None, Some(one("n", 1i64))]);
    assert_eq!(words.remove(&[key("word"), key("b")]).await.unwrap(), 1);
    let left: Vec<Row> = words.scan(&KeyRange::all()).await.unwrap().try_concat().await.unwrap();
    assert_eq!(left, [row("Word", one("n", 1i64))]);
}

#[tokio::test]
async fn a_put_in_the_middle_of_a_stream_waits_for_nobody() {
    let Some(url) = shared("streams") else { return };
    let place = open(&format!("{url}&pool=1&timeout=20")).await.unwrap();
    place.prepare(&Layout::plain()).await.unwrap();
    let rows = people(0..12_000);
    place.load(&rows).await.unwrap();
    let filter: Filter = r#"{"age": {"$gte": 0}}"#.parse().unwrap();
    let found = Query::new(filter);
    let sorted = found.clone().sorted("age".parse().unwrap(), Order::Descending);
    for query in [Query::default(), found, sorted.clone(), sorted.limited(11_000)] {
        let mut seen = 0;
        let mut batches = place.find(&query).await.unwrap();
        while let Some(batch) = batches.try_next().await.unwrap() {
            seen += batch.len();
            place.put(&batch[..1]).await.unwrap();
        }
        assert_eq!(seen as u64, query.limit.unwrap_or(12_000), "{query:?}");
    }
}

#[tokio::test]
async fn writers_of_the_same_rows_do_not_fail() {
    let Some(url) = shared("crowd") else { return };
    let place = open(&url).await.unwrap();
    let layout = Layout::plain().with_index("age".parse().unwrap(), Kind::Int);
    place.prepare(&layout).await.unwrap();
    let rows = people(0..300);
    let writer = |seed: usize| {
        let (place, mut rows) = (place.clone(), rows.clone());
        tokio::spawn(async move {
            for round in 0..10 {
                rows.rotate_left(seed * 37 + round);
                place.put(&rows).await.unwrap();
            }
        })
    };
    for writer in (0..4).map(writer).collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    assert_eq!(place.count().await.unwrap(), 300);
}

#[tokio::test]
async fn a_server_that_dies_or_stands_still_is_answered_and_found_again() {
    let Some(mut server) = start(None, &[]) else { return };
    let place =
        open(&format!("{}?timeout=2&connect_timeout=1&pool=2", server.url())).await.unwrap();
    place.prepare(&Layout::plain()).await.unwrap();
    let rows = people(0..500);
    place.load(&rows).await.unwrap();
    let said = place.describe().await.unwrap();
    assert!(["MariaDB", "MySQL"].contains(&said.product.as_str()), "{said:?}");
    assert_eq!(said.set, Some(Tier::T3), "{said:?}");
    assert!(said.disk.unwrap() > 0);

    server.freeze();
    for _ in 0..3 {
        let begin = Instant::now();
        let error = place.put(&rows).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(begin.elapsed() < Duration::from_secs(4), "{:?}", begin.elapsed());
    }
    server.thaw();
    assert_eq!(place.count().await.unwrap(), 500);

    server.kill();
    let error = place.count().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    server.restart().unwrap();
    assert_eq!(place.count().await.unwrap(), 500, "durable when acknowledged");

    // Killed while it works.
    let work = {
        let place = place.clone();
        tokio::spawn(async move {
            let rows = people(0..200);
            loop {
                place.put(&rows).await?;
            }
            #[allow(unreachable_code)]
            Ok::<(), steelyard::Error>(())
        })
    };
    while place.count().await.unwrap() < 500 {}
    server.kill();
    let error = work.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    server.restart().unwrap();
    assert_eq!(place.count().await.unwrap(), 500);
    server.stop();
}

#[tokio::test]
async fn durability_is_what_the_server_gives_or_an_error() {
    let Some(url) = shared("tiers") else { return };
    for tier in ["t1", "t2"] {
        let place = open(&format!("{url}&durability={tier}")).await.unwrap();
        let said = place.describe().await.unwrap();
        assert_eq!(said.set, Some(tier.parse().unwrap()));
        let flush = ("innodb_flush_log_at_trx_commit".to_owned(), "2".to_owned());
        assert!(said.settings.contains(&flush), "{said:?}");
    }
    let error = open(&format!("{url}&durability=t3")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("commit=2) cannot promise durability t3"), "{error}");

    let Some(server) = start(Some(Tier::T2), &[("engine", "myisam"), ("binlog", "on")]) else {
        return;
    };
    let place = open(&format!("{}&durability=t2", server.url())).await.unwrap();
    assert!(!place.abilities().atomic);
    let layout = Layout::plain().with_index("age".parse().unwrap(), Kind::Int);
    place.prepare(&layout).await.unwrap();
    let rows = people(0..1000);
    place.load(&rows).await.unwrap();
    place.put(&rows[..10]).await.unwrap();
    assert_eq!(place.count().await.unwrap(), 1000);
    let said = place.describe().await.unwrap();
    assert_eq!(said.set, Some(Tier::T2));
    assert!(said.settings.contains(&("engine".into(), "MyISAM".into())), "{said:?}");
    assert!(said.settings.contains(&("log_bin".into(), "ON".into())), "{said:?}");
    let mut more = people(900..1100);
    more.reverse();
    let error = place.load(&more).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("part of the batch is written"), "{error}");
    let error = place.put(&[row(&"k".repeat(251), Document::new())]).await.unwrap_err();
    assert!(error.to_string().contains("250 bytes at most"), "{error}");
    let error = open(&format!("{}&durability=t3", server.url())).await.unwrap_err();
    assert!(error.to_string().contains("engine MyISAM cannot promise"), "{error}");
    if !is_maria(&**place.store()).await {
        return;
    }
    let error = open(&server.url().replace("myisam", "aria")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "the table is there: {error}");
    // A different table of the same place may have another engine.
    let aria = open(&server.url().replace("myisam", "aria&table=other&layout=blob")).await.unwrap();
    aria.prepare(&Layout::plain()).await.unwrap();
    aria.load(&rows).await.unwrap();
    assert_eq!(aria.describe().await.unwrap().set, Some(Tier::T1));
    assert_eq!(aria.count().await.unwrap(), 1000);
}

#[tokio::test]
async fn rows_go_by_statement_where_files_are_forbidden() {
    use mysql_async::prelude::Queryable;
    let Some(server) = start(Some(Tier::T1), &[("general_log", "on")]) else { return };
    let place = open(server.url()).await.unwrap();
    place.prepare(&Layout::plain()).await.unwrap();
    // Forbidden after it was asked.
    other(server.url()).await.query_drop("SET GLOBAL local_infile = 0").await.unwrap();
    place.load(&people(0..1000)).await.unwrap();
    assert_eq!(place.count().await.unwrap(), 1000);
    let place = open(server.url()).await.unwrap();
    assert!(
        place.describe().await.unwrap().settings.contains(&("local_infile".into(), "OFF".into()))
    );
    let error = place.load(&people(0..1001)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(place.count().await.unwrap(), 1000);
}

#[tokio::test]
async fn who_may_not_and_what_is_not_there() {
    use mysql_async::prelude::Queryable;
    let Some(url) = shared("doors") else { return };
    let mut other = other(&url).await;
    other.query_drop("CREATE USER 'guest'@'127.0.0.1' IDENTIFIED BY 'p@ss word'").await.unwrap();
    let guest = url.replace("root@", "guest:p%40ss%20word@");
    let error = open(&guest).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    other
        .query_drop("GRANT SELECT, INSERT, CREATE ON steelyard.* TO 'guest'@'127.0.0.1'")
        .await
        .unwrap();
    let place = open(&guest).await.unwrap();
    place.prepare(&Layout::plain()).await.unwrap();
    place.load(&people(0..100)).await.unwrap();
    let error = place.drop_table().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    let error = open(&url.replace("root@", "guest:wrong@")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(!format!("{error:?}").contains("wrong"), "{error:?}");
    for (url, kind) in [
        (url.replace("/steelyard", "/no_such"), ErrorKind::NotFound),
        (url.replace("/steelyard", "/"), ErrorKind::Invalid),
        (format!("{url}&engine=rocksdb"), ErrorKind::Invalid),
        ("mysql://root@127.0.0.1:1/x".into(), ErrorKind::Unavailable),
        (format!("{url}&socket=/no/such/socket"), ErrorKind::Unavailable),
    ] {
        let error = open(&url).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{url}: {error:?}");
    }
    // MariaDB has no certificate here; that of MySQL is its own, which nobody knows.
    let error = open(&format!("{url}&tls=true")).await.unwrap_err();
    let maria = is_maria(&**open(&url).await.unwrap().store()).await;
    let want = if maria { ErrorKind::Unsupported } else { ErrorKind::Unavailable };
    assert_eq!(error.kind(), want, "{error:?}");
}
