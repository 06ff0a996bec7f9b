//! Values and keys, and what cannot be held.

use super::*;

#[tokio::test]
async fn names_and_values_are_never_statements() {
    let server = need!(shared());
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
        (format!("table={}", "t".repeat(64)), "64 bytes; the limit is 63"),
        (format!("schema={}", "ü".repeat(32)), "64 bytes"),
        ("table=x%00y".into(), "is not a valid name"),
        ("key=k%00".into(), "it has a NUL"),
        ("socket=/nowhere&tls=true".into(), "?tls=true is not possible on a Unix socket"),
        ("ca=x".into(), "?ca= needs ?tls=true"),
        ("fsync=off".into(), "unknown option \"fsync\""),
    ] {
        let error = store::open(&format!("{url}?{options}")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains(want), "{error}");
    }
}

#[tokio::test]
async fn what_cannot_be_held_is_refused_before_anything_is_written() {
    let server = need!(shared());
    let place = ready(server, "table=refused").await;
    let mut nul_name = Document::new();
    nul_name.push("a\0b", 1i64);
    let long = "k".repeat(2691);
    for (bad, want) in [
        (one("a\0b", 1i64), "key \"a\\0b\": it has a NUL"),
        (one("nul", "x\0y"), "key \"nul\": field \"v\" has a NUL"),
        (row("name", nul_name), "key \"name\": field \"a\\0b\" has a NUL"),
        (one("bytes", vec![1u8]), "field \"v\" is bytes"),
        (one("nan", f64::NAN), "field \"v\" is NaN"),
        (one(&long, 1i64), "longer than 2690 bytes"),
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
    let server = need!(shared());
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
    let server = need!(shared());
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
        assert!(error.to_string().contains("key \"new\": it occurs twice in the batch"), "{error}");
    }
}
