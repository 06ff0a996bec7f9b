//! Settings that a server gives to every session: what is done and what is found does not depend on them.

use mysql_async::prelude::Queryable;

use super::*;

/// What an administrator may have set, each with what it is set back to.
const SETTINGS: &[(&str, &str, &str)] = &[
    ("autocommit", "0", "1"),
    ("completion_type", "'CHAIN'", "'NO_CHAIN'"),
    ("completion_type", "'RELEASE'", "'NO_CHAIN'"),
    ("sql_select_limit", "5", "18446744073709551615"),
    ("sql_safe_updates", "1", "0"),
    ("sql_auto_is_null", "1", "0"),
    ("foreign_key_checks", "0", "1"),
    ("unique_checks", "0", "1"),
    ("check_constraint_checks", "0", "1"),
    ("max_error_count", "0", "64"),
    ("sql_notes", "0", "1"),
    ("max_sort_length", "64", "1024"),
    ("max_statement_time", "0.5", "0"),
    ("tx_isolation", "'READ-UNCOMMITTED'", "'REPEATABLE-READ'"),
    ("sql_mode", "'ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES'", "DEFAULT"),
    ("time_zone", "'+07:00'", "'SYSTEM'"),
    ("div_precision_increment", "0", "4"),
    ("group_concat_max_len", "4", "1048576"),
];

/// Tables of another program, made anew.
async fn made(other: &mut mysql_async::Conn) {
    let statements = "DROP TABLE IF EXISTS child; DROP TABLE IF EXISTS parent; DROP TABLE IF EXISTS numbered; \
        CREATE TABLE parent (id INT PRIMARY KEY, v INT CHECK (v > 0)); INSERT INTO parent VALUES (1, 1); \
        CREATE TABLE child (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES parent (id)); \
        CREATE TABLE numbered (id INT PRIMARY KEY AUTO_INCREMENT, v INT)";
    other.query_drop(statements).await.unwrap();
}

fn numbers(range: std::ops::Range<u64>) -> Vec<Row> {
    let text = |n| format!("{}{n:04}", "x".repeat(100));
    let record = |n| Document::from_iter([("n", Value::Int(n as i64)), ("text", text(n).into())]);
    range.map(|n| row(&format!("k{n:04}"), record(n))).collect()
}

/// What is wrong with what a store does in a server that is set so.
async fn trouble(url: &str, client: &str, turn: usize) -> Result<(), String> {
    let text = |e: steelyard::Error| e.to_string();
    let same = |what: &str, got: String, want: String| match got == want {
        true => Ok(()),
        false => Err(format!("{what}: {got}, not {want}")),
    };
    let mut other = other(url).await;
    let usual = "SET autocommit = 1, completion_type = 0, sql_select_limit = 18446744073709551615, \
                 foreign_key_checks = 1, sql_safe_updates = 0, sql_mode = ''";
    other.query_drop(usual).await.unwrap();
    // MariaDB's own.
    let _ = other.query_drop("SET max_statement_time = 0").await;
    made(&mut other).await;
    let table = format!("t{turn}");
    let open_at =
        async |more: &str| open(&format!("{url}?{client}&pool=1&{more}")).await.map_err(text);
    let place = open_at(&format!("table={table}")).await?;
    let layout = Layout::plain().with_index("n".parse().unwrap(), Kind::Int);
    place.prepare(&layout).await.map_err(text)?;
    let rows = numbers(0..30);
    place.put(&rows[..1]).await.map_err(text)?;
    place.put(&rows[1..20]).await.map_err(text)?;
    place.put_each(&rows[20..25]).await.map_err(text)?;
    place.load(&rows[25..]).await.map_err(text)?;
    place.load(&numbers(100..300)).await.map_err(text)?;
    place.put(&numbers(300..301)).await.map_err(text)?;
    let count = format!("SELECT COUNT(*) FROM {table}");
    let there: Option<u64> = other.query_first(&count).await.unwrap();
    same("others see", format!("{there:?}"), "Some(231)".into())?;

    let keys: Vec<Key> = rows.iter().map(|row| row.key.clone()).collect();
    let got = place.get(&keys).await.map_err(text)?;
    same("got", got.iter().flatten().count().to_string(), "30".into())?;
    let scanned = place.scan(&KeyRange::all()).await.map_err(text)?;
    let scanned: Vec<Row> = scanned.try_concat().await.map_err(text)?;
    same("scanned", scanned.len().to_string(), "231".into())?;
    for field in ["n", "text"] {
        for limit in [None, Some(12)] {
            let mut query = Query::new("n<20".parse().unwrap());
            query = query.sorted(field.parse().unwrap(), Order::Descending);
            query.limit = limit;
            let found: Vec<Row> =
                place.find(&query).await.map_err(text)?.try_concat().await.map_err(text)?;
            let found: Vec<_> = found.iter().map(|row| row.key.as_str()).collect();
            let want = limit.unwrap_or(20) as usize;
            let want: Vec<_> = keys[..20].iter().rev().take(want).map(Key::as_str).collect();
            same("sorted", format!("{found:?}"), format!("{want:?}"))?;
        }
    }
    // What others have not committed is not there.
    other
        .query_drop(format!("START TRANSACTION; UPDATE {table} SET record = '{{\"n\":-1}}'"))
        .await
        .unwrap();
    let got = place.get(&keys[..1]).await.map_err(text)?;
    other.query_drop("ROLLBACK").await.unwrap();
    same("read", format!("{got:?}"), format!("{:?}", [Some(&rows[0].record)]))?;

    let removed = place.remove(&keys[..12]).await.map_err(text)?;
    let deleted = place.delete(&"n>=100".parse().unwrap()).await.map_err(text)?;
    same("removed", format!("{removed} and {deleted}"), "12 and 201".into())?;
    let there: Option<u64> = other.query_first(&count).await.unwrap();
    same("others see", format!("{there:?}"), "Some(18)".into())?;

    let columns = async |table: &str| open_at(&format!("layout=columns&table={table}")).await;
    let orphan = columns("child").await?.put(&[row("1", one("parent", 7i64))]).await;
    same("an orphan is taken", orphan.is_ok().to_string(), "false".into())?;
    let unchecked = columns("parent").await?.put(&[row("2", one("v", -1i64))]).await;
    same("a rule is broken", unchecked.is_ok().to_string(), "false".into())?;
    let numbered = columns("numbered").await?;
    numbered.put(&[row("1", one("v", 1i64))]).await.map_err(text)?;
    let none = numbered.find(&Query::new("id=null".parse().unwrap())).await.map_err(text)?;
    let none: Vec<Row> = none.try_concat().await.map_err(text)?;
    same("keys that are null", none.len().to_string(), "0".into())?;
    place.drop_table().await.map_err(text)
}

#[tokio::test]
async fn settings_of_the_server_change_nothing() {
    let server = need!(start(Some(Tier::T1), &[]));
    let url = server.url().split('?').next().unwrap();
    let mut admin = other(url).await;
    let mut faults = Vec::new();
    let mut turn = 0;
    for (name, value, usual) in SETTINGS {
        if admin.query_drop(format!("SET GLOBAL {name} = {value}")).await.is_err() {
            continue;
        }
        for client in ["client=own", "client=crate"] {
            turn += 1;
            if let Err(fault) = trouble(url, client, turn).await {
                faults.push(format!("{name} = {value}, {client}: {fault}"));
            }
        }
        admin.query_drop(format!("SET GLOBAL {name} = {usual}")).await.unwrap();
    }
    assert!(turn > 20, "{turn} settings");
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));

    // What ends in an error is left as it is, and what no session can set back is refused.
    let parent = format!("{url}?table=parent&layout=columns");
    admin.query_drop("SET GLOBAL TRANSACTION READ ONLY").await.unwrap();
    let place = open(&parent).await.unwrap();
    let error = place.put(&[row("5", one("v", 1i64))]).await.unwrap_err();
    assert!(error.to_string().contains("READ ONLY"), "{error}");
    admin.query_drop("SET GLOBAL TRANSACTION READ WRITE").await.unwrap();
    if is_maria(&**place.store()).await {
        admin.query_drop("SET GLOBAL system_versioning_asof = '2020-01-01'").await.unwrap();
        let error = open(&parent).await.err().unwrap();
        assert!(error.to_string().contains("system_versioning_asof"), "{error}");
    }
}
