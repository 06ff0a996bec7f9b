//! What is asked, and what comes back.

use super::*;

#[tokio::test]
async fn names_and_values_that_look_like_sql() {
    let url = need!(shared("plain"));
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
        let url = need!(shared(&format!("keys_{layout}")));
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
        let longest = "ü".repeat(256);
        place.put(&[row(&longest, one("k", 1i64))]).await.unwrap();
        for long in ["x".repeat(10_240), "ü".repeat(257)] {
            let rows = [row("fine", one("k", 1i64)), row(&long, one("k", 1i64))];
            for error in [place.put(&rows).await.unwrap_err(), place.load(&rows).await.unwrap_err()]
            {
                assert_eq!(error.kind(), ErrorKind::Invalid);
                assert!(error.to_string().contains("longer than 512 bytes"), "{error}");
            }
        }
        assert_eq!(place.count().await.unwrap(), texts.len() as u64 + 1, "nothing half done");
    }
}

#[tokio::test]
async fn many_people_are_loaded_and_found_by_an_index() {
    let url = need!(shared("people"));
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
    let url = need!(shared("kinds"));
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

/// Long texts that begin alike, whole numbers that are the same float, values of other kinds: none of
/// these does an index hold whole.
#[tokio::test]
async fn what_an_index_holds_in_part_is_sorted_exactly() {
    let url = need!(shared("partly"));
    let place = open(&url).await.unwrap();
    let layout = Layout::plain()
        .with_index("text".parse().unwrap(), Kind::Text)
        .with_index("number".parse().unwrap(), Kind::Int)
        .with_index("mixed".parse().unwrap(), Kind::Text);
    place.prepare(&layout).await.unwrap();
    let long = |n: usize, end: usize| Value::Text("x".repeat(n) + &format!("{:02}", end % 37));
    let rows: Vec<Row> = (0..200usize)
        .map(|i| {
            let mut record = Document::new();
            if i % 10 != 0 {
                record.insert("text", if i % 3 == 0 { long(5, i) } else { long(189 + i % 4, i) });
                let big = (1i64 << 53) + (i as i64 * 7) % 23;
                record.insert("number", if i % 3 == 0 { i as i64 } else { big });
            }
            let mixed = match i % 4 {
                0 => Value::Int(i as i64),
                1 => Value::Bool(i % 8 == 1),
                2 => long(1, i),
                _ => Value::Null,
            };
            record.insert("mixed", mixed);
            row(&format!("k{:03}", i * 77 % 200), record)
        })
        .collect();
    place.load(&rows).await.unwrap();
    let text = |path: &str| Filter::field(path, Test::Ge("".into())).unwrap();
    let null = |path: &str| Filter::field(path, Test::Eq(Value::Null)).unwrap();
    for (path, filter) in [
        ("text", Filter::All),
        ("number", Filter::All),
        ("mixed", text("mixed")),
        ("mixed", null("mixed")),
    ] {
        for order in [Order::Ascending, Order::Descending] {
            for limit in [1, 7, 25, 199, 20_000] {
                let query =
                    Query::new(filter.clone()).sorted(path.parse().unwrap(), order).limited(limit);
                let mut want: Vec<&Row> =
                    rows.iter().filter(|row| query.matches(&row.key, &row.record)).collect();
                want.sort_by(|a, b| query.order(a, b));
                let want: Vec<&str> =
                    want.iter().take(limit as usize).map(|row| row.key.as_str()).collect();
                assert_eq!(keys(&*place, &query).await, want, "{query:?}");
            }
        }
    }
    // Of whatever kind the others are: what is missing comes first, and last the other way.
    for (order, limit) in [(Order::Ascending, 50), (Order::Descending, 200)] {
        let query = Query::default().sorted("mixed".parse().unwrap(), order).limited(limit);
        let mut found = keys(&*place, &query).await;
        let mut nulls = keys(&*place, &Query::new(null("mixed"))).await;
        nulls.sort();
        if order == Order::Descending {
            found.reverse();
        }
        assert_eq!(found[..50], nulls);
    }
}
