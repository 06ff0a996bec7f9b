//! Queries mean what `Query` says, whatever MongoDB's own operators would find.

use steelyard::store::{Filter, query::Order};

use super::*;

/// Values that MongoDB's operators take for one another, or look into.
fn values() -> Vec<Value> {
    let map = |name: &str, value: Value| Value::Map(Document::from_iter([(name, value)]));
    let list = Value::List;
    let time = |millis: u32| Value::Time(Time::from_unix(5, millis * 1_000_000).unwrap());
    let mut values = vec![
        Value::Null,
        Value::Bool(true),
        Value::Bool(false),
        Value::Float(1.0),
        Value::Float(2.5),
        Value::Float(-0.0),
        Value::Float(f64::NAN),
        Value::Float((1u64 << 53) as f64),
        Value::Int((1 << 53) + 1),
        Value::Int(i64::MAX),
        Value::Float(9_223_372_036_854_775_808.0),
        Value::Decimal("1".into()),
        Value::Decimal("1.5".into()),
        Value::Bytes(b"a".to_vec()),
        Value::Bytes(vec![]),
        time(0),
        time(1),
        list(vec![]),
        list(vec![Value::Int(1)]),
        list(vec![Value::Null, Value::from("a"), time(1), Value::Bool(true)]),
        list(vec![list(vec![Value::Int(1)])]),
        list(vec![map("b", Value::Int(1))]),
        list(vec![map("b", Value::Null), map("c", Value::Int(1))]),
        map("b", Value::Int(1)),
        map("b", Value::Null),
        map("b", list(vec![Value::Int(1), Value::Null])),
        map("c", Value::Int(1)),
        map("b", map("c", Value::from("a"))),
        map("b", list(vec![map("c", Value::from("a"))])),
        list(vec![map("b", map("c", Value::from("a")))]),
        map("0", Value::Int(1)),
        Value::Map(Document::new()),
    ];
    values.extend([0, 1, -1, 2].map(Value::Int));
    values.extend(["", "a", "ab", "b", "A", "é", "😀", "\u{ffff}", "a\0", "1"].map(Value::from));
    values
}

fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> = values()
        .into_iter()
        .enumerate()
        .map(|(i, value)| row(&format!("k{i:02}"), [("a", value), ("n", Value::Int(i as i64 % 3))]))
        .collect();
    rows.push(row("none", [("n", 1i64)]));
    rows.push(row("dots", [("a.b", 1i64), ("n", 2)]));
    let inner = Document::from_iter([("b.c", "a")]);
    rows.push(row("inner dots", [("a", Value::Map(inner)), ("n", Value::Int(2))]));
    rows
}

fn filters() -> Vec<Filter> {
    let mut texts: Vec<String> = Vec::new();
    let paths = ["a", "a.b", "a.b.c", "a.0", "n", r"a\\.b", r"a.b\\.c", "_key"];
    let literals = [
        "null",
        "true",
        "1",
        "1.5",
        "0",
        "\"\"",
        "\"a\"",
        "\"ab\"",
        "9007199254740993",
        "9007199254740992.0",
        r#"{"$date": "1970-01-01T00:00:05.001Z"}"#,
        r#"{"$date": "1970-01-01T00:00:05.0005Z"}"#,
        "\"none\"",
    ];
    for path in paths {
        for literal in literals {
            for operator in ["$eq", "$ne", "$lt", "$lte", "$gt", "$gte"] {
                texts.push(format!(r#"{{"{path}": {{"{operator}": {literal}}}}}"#));
                texts.push(format!(r#"{{"$not": {{"{path}": {{"{operator}": {literal}}}}}}}"#));
            }
        }
        for rest in [
            r#"{"$exists": true}"#,
            r#"{"$exists": false}"#,
            r#"{"$prefix": "a"}"#,
            r#"{"$prefix": ""}"#,
            r#"{"$in": []}"#,
            r#"{"$in": [1, "a", null, true]}"#,
            r#"{"$nin": [1, "a"]}"#,
            r#"{"$gte": 1, "$lt": 3}"#,
        ] {
            texts.push(format!(r#"{{"{path}": {rest}}}"#));
        }
    }
    texts.extend(
        [
            r#"{"$or": [{"a": 1}, {"a.b": 1}]}"#,
            r#"{"$and": [{"n": 1}, {"$or": [{"a": {"$gt": 0}}, {"a": null}]}]}"#,
            r#"{"$nor": [{"a": {"$exists": true}}, {"n": 1}]}"#,
            r#"{"n": 2, "a\\.b": 1}"#,
            r#"{"$or": [{"n": 0}, {"a\\.b": 1}]}"#,
            r#"{"$or": []}"#,
            r#"{"$and": []}"#,
        ]
        .map(String::from),
    );
    // What has no order is refused where an order is asked for, and nothing else is.
    let has_no_order = |text: &str| {
        ["$lt", "$lte", "$gt", "$gte"].iter().any(|operator| {
            ["null", "true"]
                .iter()
                .any(|literal| text.contains(&format!(r#""{operator}": {literal}}}"#)))
        })
    };
    let mut filters = Vec::new();
    for text in &texts {
        match text.parse::<Filter>() {
            Ok(filter) => {
                assert!(!has_no_order(text), "{text}");
                filters.push(filter);
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
                assert!(has_no_order(text), "{text}: {error}");
            }
        }
    }
    filters
}

#[tokio::test]
async fn queries_find_what_they_mean() {
    let place = need!(open("table=queries").await);
    // With and without an index that could take another meaning.
    for path in [None, Some("a"), Some("a.b")] {
        let mut layout = Layout::plain();
        if let Some(path) = path {
            layout = layout.with_index(path.parse().unwrap(), steelyard::record::Kind::Int);
        }
        place.prepare(&layout).await.unwrap();
        let rows = rows();
        place.put(&rows).await.unwrap();
        let filters = filters();
        println!("{} queries on {} records", filters.len(), rows.len());
        for filter in filters {
            let query = Query::new(filter);
            let mut found: Vec<Row> =
                one_by_one(place.find(&query).await.unwrap()).try_collect().await.unwrap();
            found.sort_by(|a, b| a.key.cmp(&b.key));
            let mut want: Vec<_> =
                rows.iter().filter(|row| query.matches(&row.key, &row.record)).cloned().collect();
            want.sort_by(|a, b| a.key.cmp(&b.key));
            let keys = |rows: &[Row]| rows.iter().map(|r| r.key.to_string()).collect::<Vec<_>>();
            assert_eq!(keys(&found), keys(&want), "{:?}, index {path:?}", query.filter);
            assert_eq!(found, want);
        }
    }
}

#[tokio::test]
async fn sorted_limited_and_with_few_fields() {
    let place = need!(open("table=sorted").await);
    let mut rows: Vec<Row> = (0..50)
        .map(|i| {
            row(&format!("k{:02}", i * 7 % 50), [("n", Value::Int(i % 5)), ("m.x", Value::Int(i))])
        })
        .collect();
    rows[3].record.remove("n");
    rows[4].record.insert("n", Value::Null);
    place.load(&rows).await.unwrap();
    for order in [Order::Ascending, Order::Descending] {
        for limit in [None, Some(0), Some(1), Some(20), Some(u64::MAX)] {
            for fields in [None, Some(vec!["n"]), Some(vec![]), Some(vec!["m.x", "none"])] {
                let mut query = Query::default().sorted("n".parse().unwrap(), order);
                query.limit = limit;
                query.fields = fields.map(|names| names.into_iter().map(String::from).collect());
                let found: Vec<Row> =
                    one_by_one(place.find(&query).await.unwrap()).try_collect().await.unwrap();
                let mut want = rows.clone();
                want.sort_by(|a, b| query.order(a, b));
                want.truncate(limit.map_or(usize::MAX, |n| n.try_into().unwrap_or(usize::MAX)));
                for row in &mut want {
                    row.record = query.project(std::mem::take(&mut row.record));
                }
                assert_eq!(found, want, "{query:?}");
            }
        }
    }
    // Names with dots: found by looking, limited after that, not sorted by, deleted all the same.
    let query = Query::new(r"m\.x>=10".parse().unwrap()).limited(7);
    let found: Vec<Row> =
        one_by_one(place.find(&query).await.unwrap()).try_collect().await.unwrap();
    assert_eq!(found.len(), 7);
    assert!(found.iter().all(|row| query.matches(&row.key, &row.record)));
    let sorted = query.clone().sorted(r"m\.x".parse().unwrap(), Order::Ascending);
    let error = place.find(&sorted).await.err().expect("a name with a dot");
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert_eq!(place.delete(&r"m\.x>=10".parse().unwrap()).await.unwrap(), 40);
    assert_eq!(place.count().await.unwrap(), 10);
    place.drop_table().await.unwrap();
}
