//! Tokyo Tyrant alone: queries against their meaning, numbers in order, columns, durability.

use futures_util::TryStreamExt;
use steelyard::{
    ErrorKind,
    durability::Tier,
    record::{Document, Kind, Time, Value, dataset::random::Random},
    server::Wish,
    store::{Filter, Layout, Place, Query, Row, Store, one_by_one, query::Order},
};

use super::{all, key, opened, row, setting, started};
use crate::programs::need;

async fn found(store: &dyn Store, query: &Query) -> Vec<Row> {
    one_by_one(store.find(query).await.unwrap()).try_collect().await.unwrap()
}

fn names(rows: &[Row]) -> Vec<&str> {
    rows.iter().map(|row| row.key.as_str()).collect()
}

#[tokio::test]
async fn numbers_are_ordered_as_numbers() {
    let server = need!(started("tyrant", setting("type", "table")));
    let place = opened(server.url()).await;
    let rows: Vec<_> = [9, 10, 100, -1, 2].map(|n| row(&format!("n{n}"), n)).into();
    place.put(&rows).await.unwrap();
    let by = |order| Query::default().sorted("n".parse().unwrap(), order);
    for indexed in [false, true] {
        if indexed {
            let layout = Layout::plain().with_index("n".parse().unwrap(), Kind::Int);
            place.prepare(&layout).await.unwrap();
            place.prepare(&layout).await.unwrap();
        }
        let up = found(&**place.store(), &by(Order::Ascending)).await;
        assert_eq!(names(&up), ["n-1", "n2", "n9", "n10", "n100"]);
        let down = found(&**place.store(), &by(Order::Descending).limited(2)).await;
        assert_eq!(names(&down), ["n100", "n10"]);
        let query = Query { filter: "n>=9".parse().unwrap(), ..by(Order::Ascending) };
        assert_eq!(names(&found(&**place.store(), &query).await), ["n9", "n10", "n100"]);
        let query = query.limited(2);
        assert_eq!(names(&found(&**place.store(), &query).await), ["n9", "n10"]);
    }
}

/// Values that are near each other, spelled alike, or of other kinds.
fn value(random: &mut Random) -> Option<Value> {
    let time = |s, n| Value::Time(Time::from_unix(s, n).unwrap());
    Some(match random.below(24) {
        0 => return None,
        1 => Value::Null,
        2 => Value::Bool(random.below(2) == 0),
        3..=8 => Value::Int(random.below(12) as i64 - 3),
        9 => Value::Int((1 << 53) + random.below(3) as i64),
        10..=13 => Value::Float(random.below(20) as f64 / 4.0 - 1.0),
        14 => Value::Float([0.1, 0.3, 0.1 + 0.2, -0.0, 1e16, 9e18][random.below(6) as usize]),
        15 => Value::Float([-9e18, 5e-324, 1e-7, (1u64 << 53) as f64][random.below(4) as usize]),
        16 => Value::from(random.below(12).to_string()),
        17 => Value::from(["", "true", "a", "ab", "b", "ä", "😀"][random.below(7) as usize]),
        18 => time(random.below(12) as i64 - 3, 0),
        19 => time(0, random.below(3)),
        20 => Value::Bytes(vec![random.below(3) as u8]),
        21 => Value::Decimal("5".into()),
        22 => Value::Decimal("-2.50".into()),
        _ => Value::Float(f64::NAN),
    })
}

fn filter(random: &mut Random, depth: u32) -> Filter {
    use steelyard::store::query::Test;
    let choice = if depth == 0 { 2 } else { random.below(6) };
    let some = |random: &mut Random| {
        let n = 1 + random.below(3);
        (0..n).map(|_| filter(random, depth - 1)).collect()
    };
    match choice {
        0 => Filter::And(some(random)),
        1 if random.below(2) == 0 => Filter::Or(some(random)),
        1 => Filter::Not(Box::new(filter(random, depth - 1))),
        _ => {
            let path = ["a", "b", "c", "_key", "a.b", "none"][random.below(6) as usize];
            let value = loop {
                let value = match path {
                    "_key" => Value::from(format!("k{}", random.below(400))),
                    _ => value(random).unwrap_or(Value::Null),
                };
                let check = Filter::field(path, Test::Eq(value.clone())).unwrap();
                if Query::new(check).check().is_ok() {
                    break value;
                }
            };
            let test = match random.below(9) {
                0 => Test::Eq(value),
                1 => Test::Ne(value),
                2 => Test::Lt(value),
                3 => Test::Le(value),
                4 => Test::Gt(value),
                5 => Test::Ge(value),
                6 => Test::In(vec![value, Value::Int(random.below(9) as i64)]),
                7 => Test::Exists(random.below(2) == 0),
                _ => Test::Prefix(["", "a", "1", "k1", "x\0"][random.below(5) as usize].into()),
            };
            Filter::field(path, test).unwrap()
        }
    }
}

#[tokio::test]
async fn queries_mean_what_they_mean_in_memory() {
    let server = need!(started("tyrant", setting("type", "table")));
    let place = opened(&format!("{}?table=q", server.url())).await;
    let memory = opened("memory:").await;
    // Those of another table are never found.
    let other = place.table("q:").unwrap();
    let mut random = Random::new(7, 0, 0);
    let mut rows = Vec::new();
    for n in 0..400 {
        let mut record = Document::new();
        for name in ["a", "b", "c"] {
            if let Some(value) = value(&mut random) {
                record.push(name, value);
            }
        }
        rows.push(Row { key: key(&format!("k{n}")), record });
    }
    for store in [&**place.store(), &*other, &**memory.store()] {
        store.load(&rows).await.unwrap();
    }
    let stored = all(&**place.store()).await;
    assert!(rows.iter().all(|row| stored[&row.key] == row.record));
    let mut some_found = 0;
    for round in 0..600 {
        if round == 300 {
            let layout = Layout::plain()
                .with_index("a".parse().unwrap(), Kind::Int)
                .with_index("b".parse().unwrap(), Kind::Text);
            place.prepare(&layout).await.unwrap();
        }
        let mut query = Query::new(filter(&mut random, 3));
        for path in ["a", "b", "_key", "a.b"] {
            if random.below(4) == 0 {
                let order = [Order::Ascending, Order::Descending][random.below(2) as usize];
                query = query.sorted(path.parse().unwrap(), order);
            }
        }
        if random.below(2) == 0 {
            query = query.limited(random.below(30).into());
        }
        if query.check().is_err() {
            continue;
        }
        let mut want = found(&**memory.store(), &query).await;
        let mut got = found(&**place.store(), &query).await;
        if query.sort.is_empty() {
            assert_eq!(got.len(), want.len(), "{query:?}");
            assert!(got.iter().all(|row| query.matches(&row.key, &row.record)), "{query:?}");
            if query.limit.is_none() {
                want.sort_by(|a, b| a.key.cmp(&b.key));
                got.sort_by(|a, b| a.key.cmp(&b.key));
            }
        }
        if !query.sort.is_empty() || query.limit.is_none() {
            assert_eq!(names(&got), names(&want), "{query:?}");
        }
        some_found += usize::from(!want.is_empty() && want.len() < 400);
    }
    assert!(some_found > 200, "{some_found} queries that tell anything");
    // Deleting means the same.
    let filter: Filter = r#"{"$or": [{"a": {"$gt": 2}}, {"b": null}]}"#.parse().unwrap();
    let deleted = place.delete(&filter).await.unwrap();
    assert_eq!(deleted, memory.delete(&filter).await.unwrap());
    assert!(deleted > 20 && deleted < 390, "{deleted}");
    assert_eq!(all(&**place.store()).await, all(&**memory.store()).await);
    assert_eq!(other.count().await.unwrap(), 400);
}

/// A query with a limit does not fetch all, and is exact where records are equal.
#[tokio::test]
async fn the_first_few_by_number_are_the_first_few() {
    let server = need!(started("tyrant", setting("type", "table")));
    let place = opened(server.url()).await;
    let rows: Vec<_> = (0..5000).map(|n| row(&format!("k{n:04}"), (n * 7919) % 50)).collect();
    place.load(&rows).await.unwrap();
    for (order, limit, want) in [
        (Order::Ascending, 3, ["k0000", "k0050", "k0100"]),
        (Order::Descending, 3, ["k4971", "k4921", "k4871"]),
    ] {
        let query =
            Query::new("n>=0".parse().unwrap()).sorted("n".parse().unwrap(), order).limited(limit);
        let rows = found(&**place.store(), &query).await;
        let n = if order == Order::Ascending { 0 } else { 49 };
        assert!(rows.iter().all(|row| row.record.get("n") == Some(&Value::Int(n))), "{rows:?}");
        assert_eq!(names(&rows), want);
    }
}

#[tokio::test]
async fn what_columns_cannot_hold_is_refused_before_anything_is_written() {
    let server = need!(started("tyrant", setting("type", "table")));
    let place = opened(server.url()).await;
    let of = |name: &str, value: Value| Document::from_iter([(name, value)]);
    for (record, want) in [
        (of("t", Value::from("a\0b")), "\"t\" is text with a NUL"),
        (of("a\0b", Value::Null), "NUL in it"),
        (of("", Value::Null), "empty"),
        (of("l", Value::List(vec![])), "\"l\" is a list"),
        (of("m", Value::Map(Document::new())), "\"m\" is a map"),
        (of("_kinds", Value::Null), "_kinds"),
    ] {
        let bad = Row { key: key("bad"), record };
        for error in [
            place.check(&bad).unwrap_err(),
            place.put(&[row("a", 1), bad.clone()]).await.unwrap_err(),
            place.load(&[row("a", 1), bad.clone()]).await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            let text = error.to_string();
            assert!(text.contains(want) && text.contains("key \"bad\""), "{text}");
        }
    }
    assert_eq!(place.count().await.unwrap(), 0);
    // Bytes are no text, and may have NUL.
    let bytes = Row { key: key("b\0c"), record: of("b", Value::Bytes(vec![0, 1, 255])) };
    place.put(std::slice::from_ref(&bytes)).await.unwrap();
    assert_eq!(place.get(&[bytes.key]).await.unwrap(), [Some(bytes.record)]);
    let index = Layout::plain().with_index("a.b".parse().unwrap(), Kind::Int);
    assert_eq!(place.prepare(&index).await.unwrap_err().kind(), ErrorKind::Unsupported);
}

async fn refused(url: String) -> String {
    let error = steelyard::open(&url).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    error.to_string()
}

#[tokio::test]
async fn the_database_says_which_layout_it_has() {
    let table = need!(started("tyrant", setting("type", "table")));
    let hash = need!(started("tyrant", setting("type", "hash")));
    let shape = async |url: &str| opened(url).await.shape().name();
    assert_eq!((shape(table.url()).await, shape(hash.url()).await), ("document", "blob"));
    let error = refused(format!("{}?layout=blob", table.url())).await;
    assert!(error.contains("is a table, for layout document, and not blob"), "{error}");
    let error = refused(format!("{}?format=json", table.url())).await;
    assert!(error.contains("is a table"), "{error}");
    let error = refused(format!("{}?layout=document", hash.url())).await;
    assert!(error.contains("is a hash, for layout blob"), "{error}");
}

async fn described(place: &Place) -> (Option<Tier>, Option<Tier>) {
    let about = place.describe().await.unwrap();
    // Where there is no ttserver, the figures are not its own, and it says so.
    let products = ["Tokyo Tyrant", "stand-in for ttserver over Tokyo Cabinet"];
    assert!(products.contains(&about.product.as_str()), "{about:?}");
    assert!(about.version.starts_with(|c: char| c.is_ascii_digit()), "{about:?}");
    assert!(!about.version.is_empty() && about.disk.is_some_and(|n| n > 0), "{about:?}");
    (about.asked, about.set)
}

#[tokio::test]
async fn a_sync_follows_each_batch_where_it_is_asked_for() {
    let wish = Wish { tier: Some(Tier::T3), ..setting("type", "table") };
    let mut server = need!(started("tyrant", wish));
    let plain = opened(server.url()).await;
    assert_eq!(described(&plain).await, (None, Some(Tier::T1)));
    let synced = opened(&format!("{}?durability=t3", server.url())).await;
    assert_eq!(described(&synced).await, (Some(Tier::T3), Some(Tier::T3)));
    // With a sync, indexes survive the process, too.
    let index = Layout::plain().with_index("n".parse().unwrap(), Kind::Int);
    synced.prepare(&index).await.unwrap();
    let rows: Vec<_> = (0..2000).map(|n| row(&format!("k{n}"), n)).collect();
    synced.load(&rows).await.unwrap();
    server.kill();
    server.restart().unwrap();
    let query = Query::new("n>=1990".parse().unwrap());
    assert_eq!(found(&**synced.store(), &query).await.len(), 10);
    // Without one, making it anew mends it.
    let more: Vec<_> = (2000..4000).map(|n| row(&format!("k{n}"), n)).collect();
    plain.load(&more).await.unwrap();
    server.kill();
    server.restart().unwrap();
    assert_eq!(all(&**plain.store()).await.len(), 4000);
    plain.prepare(&index).await.unwrap();
    assert_eq!(found(&**plain.store(), &query).await.len(), 2010);
}
