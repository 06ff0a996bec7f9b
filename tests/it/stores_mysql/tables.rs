//! What tables hold, also those of other programs.

use super::*;

#[tokio::test]
async fn what_is_too_large_is_refused_before_anything_is_written() {
    for layout in ["document", "blob"] {
        let url = need!(shared(&format!("large_{layout}")));
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
    let url = need!(shared("deep"));
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
async fn columns_are_exact() {
    let url = need!(shared("columns"));
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
        ("int", Value::from("5"), "field \"int\" is text, but its column holds int"),
        ("float", f64::NAN.into(), "field \"float\" is NaN"),
        ("float", (-0.0).into(), "MySQL stores as 0"),
        ("float", i64::MAX.into(), "no float equals exactly"),
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
    let url = need!(shared("users"));
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
    // A column of decimals is compared as decimals, whatever it is compared with.
    for (test, want) in [
        (Test::Eq(1.5.into()), true),
        (Test::Eq(Value::Decimal("1.500".into())), true),
        (Test::Ge(2i64.into()), false),
        (Test::Lt(Value::Decimal("1.5000000000000000000000000000000000000001".into())), true),
        (Test::Gt(Value::Decimal("1.4999999999999999999999999999999999999999".into())), true),
        (Test::Ge(Value::Decimal("1.5000000000000000000000000000000000000001".into())), false),
        (Test::Eq(Value::Decimal("1.5000000000000000000000000000000000000001".into())), false),
        (Test::Lt(Value::Decimal("1e400".into())), true),
        (Test::Gt(Value::BigInt("-99999999999999999999999999".into())), true),
    ] {
        let paid = Query::new(Filter::field("paid", test).unwrap());
        assert_eq!(keys(&*place, &paid).await, &["7"][..usize::from(want)], "{paid:?}");
    }
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

/// No views, nothing of a database whose name is the same but for its case.
#[tokio::test]
async fn tables_are_listed_by_database() {
    use mysql_async::prelude::Queryable;

    let url = need!(shared("b"));
    let mut program = other(&url).await;
    let maria = is_maria(&**open(&url).await.unwrap().store()).await;
    for statement in [
        "CREATE DATABASE listing",
        "CREATE DATABASE Listing",
        "CREATE TABLE Listing.elsewhere (id INT)",
        "CREATE TABLE listing.b (id INT PRIMARY KEY)",
        "CREATE TABLE listing.`C ``ü` (id INT) ENGINE = MyISAM",
        "CREATE VIEW listing.seen AS SELECT * FROM listing.b",
    ] {
        program.query_drop(statement).await.unwrap();
    }
    let mut want = vec!["C `ü", "b"];
    if maria {
        program
            .query_drop("CREATE TABLE listing.kept (id INT) WITH SYSTEM VERSIONING")
            .await
            .unwrap();
        program.query_drop("CREATE SEQUENCE listing.numbers").await.unwrap();
        want.push("kept");
    }
    let (server, _) = url.rsplit_once('/').unwrap();
    for client in ["own", "crate"] {
        let place = open(&format!("{server}/listing?table=b&client={client}")).await.unwrap();
        assert_eq!(place.tables().await.unwrap(), want, "{client}");
    }
}
