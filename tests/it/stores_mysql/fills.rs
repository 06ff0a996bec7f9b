//! Columns that make values of their own, and tables that keep their history.

use mysql_async::prelude::Queryable;

use super::*;

#[tokio::test]
async fn a_column_that_makes_a_value_of_its_own_changes_no_record() {
    let url = need!(shared("fills"));
    let mut other = other(&url).await;
    let make = "CREATE TABLE fills (id INT PRIMARY KEY AUTO_INCREMENT, code VARCHAR(9) COLLATE utf8mb4_bin \
                UNIQUE NOT NULL, v INT); INSERT INTO fills VALUES (1, 'a', 1), (2, 'b', 2); \
                CREATE TABLE stamps (id INT PRIMARY KEY, t TIMESTAMP NOT NULL DEFAULT '2000-01-01', v INT); \
                INSERT INTO stamps (id, v) VALUES (1, 1)";
    other.query_drop(make).await.unwrap();
    for (table, taken, new, field) in
        [("fills&key=code", "a", "c", "id"), ("stamps", "1", "3", "t")]
    {
        let place = open(&url.replace("fills", &format!("{table}&layout=columns"))).await.unwrap();
        let all = || async {
            place.scan(&KeyRange::all()).await.unwrap().try_concat().await.unwrap() as Vec<Row>
        };
        let before = all().await;
        for name in [taken, new] {
            for many in [0, 5, 100] {
                let more = (0..many).map(|n| before[0].key.clone().to_string() + &n.to_string());
                let mut rows: Vec<Row> = more.map(|name| row(&name, one("v", 9i64))).collect();
                rows.push(row(name, one("v", 9i64)));
                for how in ["put", "load"] {
                    let done = match how {
                        "put" => place.put(&rows).await,
                        _ => place.load(&rows).await,
                    };
                    let error = done.expect_err("it would be given a value").to_string();
                    assert!(error.contains(&format!("field {field:?}")), "{error}");
                    assert_eq!(all().await, before, "{table}: {how} {name}");
                }
            }
        }
        // With a value of its own it is what it is.
        let mut changed = before.clone();
        changed.iter_mut().for_each(|row| {
            let fields = std::mem::take(&mut row.record).into_iter();
            row.record =
                fields.map(|(n, v)| if n == "v" { (n, Value::Int(7)) } else { (n, v) }).collect();
        });
        place.put(&changed).await.unwrap();
        assert_eq!(all().await, changed);
    }
    // Documents beside such a column leave it alone.
    let make = "CREATE TABLE beside (id INT PRIMARY KEY AUTO_INCREMENT, k VARCHAR(9) COLLATE utf8mb4_bin UNIQUE \
                NOT NULL, record JSON, t TIMESTAMP NOT NULL DEFAULT '2000-01-01'); \
                INSERT INTO beside (k, record) VALUES ('a', '{}'), ('b', '{}')";
    other.query_drop(make).await.unwrap();
    let place = open(&url.replace("fills", "beside&key=k")).await.unwrap();
    place.put(&[row("a", one("v", 1i64)), row("c", one("v", 1i64))]).await.unwrap();
    let ids: Vec<u32> = other.query("SELECT id FROM beside ORDER BY k LIMIT 2").await.unwrap();
    assert_eq!(ids, [1, 2]);
}

#[tokio::test]
async fn tables_that_keep_their_history_are_written() {
    let url = need!(shared("history"));
    let mut other = other(&url).await;
    let make = "CREATE TABLE history (id INT PRIMARY KEY, v INT) WITH SYSTEM VERSIONING";
    if other.query_drop(make).await.is_err() {
        return crate::programs::skip("tables with a history are MariaDB's");
    }
    for client in ["own", "crate"] {
        let place = open(&format!("{url}&layout=columns&client={client}")).await.unwrap();
        let rows = |v: i64, count: i64| -> Vec<Row> {
            (0..count).map(|n| row(&n.to_string(), one("v", v))).collect()
        };
        place.load(&rows(0, 100)).await.unwrap();
        place.put(&rows(1, 1)).await.unwrap();
        place.put(&rows(2, 70)).await.unwrap();
        place.put_each(&rows(3, 3)).await.unwrap();
        place.put(&rows(3, 3)).await.unwrap();
        let got = place.get(&[key("0"), key("60"), key("80")]).await.unwrap();
        let values: Vec<_> = got.iter().map(|r| r.as_ref().and_then(|r| r.get("v"))).collect();
        assert_eq!(values, [3i64, 2, 0].map(Value::Int).each_ref().map(Some));
        assert_eq!(place.count().await.unwrap(), 100);
        assert_eq!(place.remove(&[key("0"), key("1"), key("x")]).await.unwrap(), 2);
        assert_eq!(place.delete(&Filter::All).await.unwrap(), 98);
        assert_eq!(place.count().await.unwrap(), 0);
    }
}
