//! Many at a time, servers that die, and what is refused.

use super::*;

#[tokio::test]
async fn a_put_in_the_middle_of_a_stream_waits_for_nobody() {
    let url = need!(shared("streams"));
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
    let url = need!(shared("crowd"));
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
    let mut server = need!(start(None, &[]));
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
        assert!(error.is_timeout(), "{error}");
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
    let url = need!(shared("tiers"));
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

    let server = need!(start(Some(Tier::T1), &[("engine", "myisam"), ("binlog", "on")]));
    let place = open(&format!("{}&durability=t1", server.url())).await.unwrap();
    assert!(!place.abilities().atomic);
    let layout = Layout::plain().with_index("age".parse().unwrap(), Kind::Int);
    place.prepare(&layout).await.unwrap();
    let rows = people(0..1000);
    place.load(&rows).await.unwrap();
    place.put(&rows[..10]).await.unwrap();
    assert_eq!(place.count().await.unwrap(), 1000);
    let said = place.describe().await.unwrap();
    assert_eq!(said.set, Some(Tier::T1));
    assert!(said.settings.contains(&("engine".into(), "MyISAM".into())), "{said:?}");
    assert!(said.settings.contains(&("log_bin".into(), "ON".into())), "{said:?}");
    let mut more = people(900..1100);
    more.reverse();
    let error = place.load(&more).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("part of the batch is written"), "{error}");
    let error = place.put(&[row(&"k".repeat(251), Document::new())]).await.unwrap_err();
    assert!(error.to_string().contains("longer than 250 bytes"), "{error}");
    for tier in ["t2", "t3"] {
        let error = open(&format!("{}&durability={tier}", server.url())).await.unwrap_err();
        assert!(error.to_string().contains("engine MyISAM cannot promise"), "{error}");
    }
    if !is_maria(&**place.store()).await {
        return crate::programs::skip("Aria is an engine of MariaDB, and this is MySQL");
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
    let server = need!(start(Some(Tier::T1), &[("general_log", "on")]));
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
    let url = need!(shared("doors"));
    let mut other = other(&url).await;
    other.query_drop("CREATE USER 'guest'@'127.0.0.1' IDENTIFIED BY 'p@ss word'").await.unwrap();
    let guest = crate::programs::with_login(&url, "guest:p%40ss%20word");
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
    // Of a table with columns that are not shown to the user, a record would be without them.
    for statement in [
        "CREATE TABLE half_shown (k INT PRIMARY KEY, v INT, secret INT)",
        "CREATE USER 'clerk'@'127.0.0.1' IDENTIFIED BY 'clerks word'",
        "GRANT SELECT (k, v) ON steelyard.half_shown TO 'clerk'@'127.0.0.1'",
    ] {
        other.query_drop(statement).await.unwrap();
    }
    let clerk = crate::programs::with_login(&url, "clerk:clerks%20word");
    let clerk = clerk.split('?').next().unwrap().to_owned() + "?layout=columns&table=half_shown";
    let read = async {
        let place = open(&clerk).await?;
        place.scan(&KeyRange::all()).await?.try_collect::<Vec<_>>().await
    };
    let error = read.await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    assert!(error.to_string().contains("may not read: grant SELECT"), "{error}");
    other.query_drop("GRANT SELECT ON steelyard.half_shown TO 'clerk'@'127.0.0.1'").await.unwrap();
    assert_eq!(open(&clerk).await.unwrap().count().await.unwrap(), 0);
    let error = open(&crate::programs::with_login(&url, "guest:wrong")).await.unwrap_err();
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
