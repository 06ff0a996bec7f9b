//! Servers that do not answer, are gone, or come back.

use super::*;

#[tokio::test]
async fn a_frozen_server_is_an_error_in_time_and_then_forgiven() {
    let server = need!(start());
    let url = format!("{}?timeout=1&connect_timeout=1&pool=1", server.url());
    let place = store::open(&url).await.unwrap();
    place.put(&[row("a", [("v", 1i64)])]).await.unwrap();
    server.freeze();
    for _ in 0..3 {
        let error = unavailable(&place, Duration::from_secs(3)).await;
        println!("{error}");
    }
    let begin = Instant::now();
    assert!(place.get(&[key("a")]).await.is_err());
    assert!(begin.elapsed() < Duration::from_secs(3));
    server.thaw();
    recovered(&place).await;
    assert_eq!(place.get(&[key("a")]).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_killed_server_that_comes_back_is_used_again() {
    let mut server = need!(start());
    let url = format!("{}?timeout=5&connect_timeout=2&pool=2&durability=t3", server.url());
    let place = store::open(&url).await.unwrap();
    let rows: Vec<Row> = (0..100).map(|n| row(&format!("k{n:03}"), [("v", n as i64)])).collect();
    place.load(&rows).await.unwrap();
    server.kill();
    let error = unavailable(&place, Duration::from_secs(8)).await;
    println!("{error}");
    server.restart().unwrap();
    recovered(&place).await;
    // What was acknowledged is there.
    let keys: Vec<Key> = rows.iter().map(|row| row.key.clone()).collect();
    let found = place.get(&keys).await.unwrap();
    assert!(found.iter().zip(&rows).all(|(found, row)| found.as_ref() == Some(&row.record)));
}

/// The store works again: one operation may still find a connection that is gone.
async fn recovered(place: &Place) {
    let begin = Instant::now();
    let mut tries = 0;
    while let Err(e) = place.put(&[row("back", [("v", 1i64)])]).await {
        tries += 1;
        println!("not yet: {e}");
        assert!(e.is_outage(), "{e:?}");
        assert!(begin.elapsed() < Duration::from_secs(20), "it does not recover");
    }
    println!("recovered after {tries} errors, {:?}", begin.elapsed());
    place.put(&[row("back", [("v", 2i64)])]).await.unwrap();
}

#[tokio::test]
async fn nobody_there_is_an_error_in_time_without_the_password() {
    // A port that somebody had a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("mongodb://me:hidden@127.0.0.1:{port}/shop?connect_timeout=0.5&timeout=0.5");
    let begin = Instant::now();
    let error = store::open(&url).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(begin.elapsed() < Duration::from_secs(5));
    assert!(!format!("{error:?}").contains("hidden"), "{error:?}");
    for (options, want) in [
        ("tabel=x", "unknown option \"tabel\""),
        ("ordered=maybe", "true or false"),
        ("layout=columns", "it has: document, blob"),
        ("readPreference=sometimes", "readPreference"),
    ] {
        let error = store::open(&format!("mongodb://127.0.0.1:{port}/shop?{options}")).await;
        let error = error.unwrap_err();
        assert!(format!("{error:?}").to_lowercase().contains(&want.to_lowercase()), "{error:?}");
    }
    let error = store::open("mongodb://127.0.0.1/a b").await.unwrap_err();
    assert!(error.to_string().contains("not a valid database name"), "{error}");
}

#[tokio::test]
async fn a_put_inside_a_stream_with_one_connection() {
    let place = need!(open("table=inside&pool=1&timeout=5").await);
    let rows: Vec<Row> = (0..3500).map(|n| row(&format!("k{n:04}"), [("v", n as i64)])).collect();
    place.load(&rows).await.unwrap();
    for query in [None, Some(Query::new("v>=0".parse().unwrap()))] {
        let mut batches = match &query {
            None => place.scan(&KeyRange::all()).await.unwrap(),
            Some(query) => place.find(query).await.unwrap(),
        };
        let mut count = 0;
        while let Some(batch) = batches.try_next().await.unwrap() {
            count += batch.len();
            place.put(&batch[..1]).await.unwrap();
        }
        assert_eq!(count, rows.len());
    }
}
