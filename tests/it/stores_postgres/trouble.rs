//! Many at a time, servers that die, and what is refused.

use super::*;

#[tokio::test]
async fn two_who_put_the_same_keys_do_not_deadlock() {
    let server = need!(shared());
    let place = ready(server, "table=deadlock").await;
    let rows = people(0, 500);
    let mut tasks = Vec::new();
    for i in 0..8 {
        let (place, mut rows) = (place.clone(), rows.clone());
        if i % 2 == 0 {
            rows.reverse();
        }
        rows.rotate_left(i * 31);
        tasks.push(tokio::spawn(async move {
            for _ in 0..5 {
                place.put(&rows).await?;
            }
            Ok::<_, steelyard::Error>(())
        }));
    }
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(place.count().await.unwrap(), 500);
}

#[tokio::test]
async fn a_taken_key_is_named_and_nothing_is_loaded() {
    let server = need!(shared());
    for layout in ["document", "columns", "blob"] {
        let url = format!("{}?table=taken_{layout}&layout={layout}", server.url());
        let place = store::open(&url).await.unwrap();
        let rows = people(0, 2000);
        let columns = Column::infer(rows.iter().map(|row| &row.record)).unwrap();
        let layout = match layout {
            "columns" => Layout::plain().with_columns(columns),
            _ => Layout::plain(),
        };
        place.prepare(&layout).await.unwrap();
        place.load(&rows[1234..1235]).await.unwrap();
        for batch in [&rows[..], &rows[1234..1235]] {
            let error = place.load(batch).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Conflict);
            assert!(error.to_string().contains("key \"bob1234\": it already exists"), "{error}");
            assert_eq!(place.count().await.unwrap(), 1);
        }
    }
}

#[tokio::test]
async fn whoever_reads_a_stream_may_write() {
    let server = need!(shared());
    let place = ready(server, "table=streams&pool=1&timeout=10").await;
    let rows = people(0, 5000);
    place.load(&rows).await.unwrap();
    let everything = Query::default().sorted("age".parse().unwrap(), Order::Descending);
    for find in [false, true] {
        let mut seen = 0;
        let mut batches = match find {
            true => place.find(&everything).await.unwrap(),
            false => place.scan(&KeyRange::all()).await.unwrap(),
        };
        while let Some(batch) = batches.try_next().await.unwrap() {
            seen += batch.len();
            place.put(&batch[..1]).await.unwrap();
            assert_eq!(place.count().await.unwrap(), 5000);
        }
        assert_eq!(seen, 5000, "find: {find}");
    }
    // One that is left early does not stand in the way of others.
    for _ in 0..5 {
        let mut batches = place.find(&everything).await.unwrap();
        assert!(batches.next().await.unwrap().is_ok());
    }
    place.drop_table().await.unwrap();
}

#[tokio::test]
async fn durability_is_what_was_asked_for_or_an_error() {
    let server = need!(shared());
    for (tier, word) in [(Tier::T3, "on"), (Tier::T2, "off"), (Tier::T0, "off")] {
        let place = ready(server, &format!("table=tier_{tier}&durability={tier}")).await;
        let said = place.describe().await.unwrap();
        assert_eq!((said.asked, said.set), (Some(tier), Some(tier)), "{said:?}");
        assert!(said.settings.contains(&("synchronous_commit".into(), word.into())), "{said:?}");
        assert_eq!(said.product, "PostgreSQL");
        assert!(said.disk.unwrap() > 0, "{said:?}");
    }
    let url = server.url();
    let unlogged = store::open(&format!("{url}?table=tier_t0&durability=t3")).await.unwrap();
    let error = unlogged.prepare(&Layout::plain()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("UNLOGGED"), "{error}");
    let error = store::open(&format!("{url}?durability=t1")).await.unwrap_err();
    assert!(error.to_string().contains("it can: t3 (durable"), "{error}");

    let wish = Wish { tier: Some(Tier::T0), ..Wish::default() };
    let volatile = start(&wish).unwrap();
    let error = store::open(&format!("{}?durability=t3", volatile.url())).await.unwrap_err();
    assert!(error.to_string().contains("fsync=off cannot promise"), "{error}");
    let place = ready(&volatile, "table=x").await;
    assert_eq!(place.describe().await.unwrap().set, Some(Tier::T0));
}

#[tokio::test]
async fn a_server_that_was_killed_is_found_again() {
    let mut server = need!(start(&Wish::default()));
    let place = ready(&server, "pool=2&timeout=10&connect_timeout=5").await;
    let rows = people(0, 100);
    place.load(&rows).await.unwrap();
    let mut stream = place.find(&Query::default()).await.unwrap();
    assert!(stream.next().await.unwrap().is_ok());
    drop(stream);
    assert!(server.processes().len() > 3, "{:?}", server.processes());
    server.kill();
    let error = place.get(&[rows[0].key.clone()]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    server.restart().unwrap();
    // What was acknowledged is there, and the next operations work, on every connection.
    for _ in 0..4 {
        assert_eq!(place.count().await.unwrap(), 100);
        let everything = Query::default().sorted("age".parse().unwrap(), Order::Ascending);
        assert_eq!(all(&place, &everything).await.len(), 100);
    }
}

#[tokio::test]
async fn a_server_that_stands_still_is_an_error_in_time() {
    let server = need!(start(&Wish::default()));
    let place = ready(&server, "pool=1&timeout=3&connect_timeout=3").await;
    let rows = people(0, 2000);
    place.load(&rows).await.unwrap();
    server.freeze();
    let query = Query::new("age>=50".parse().unwrap());
    for i in 0..5 {
        let begin = Instant::now();
        let error = match i {
            0 => place.get(&[rows[0].key.clone()]).await.unwrap_err(),
            1 => place.put(&rows[..5]).await.unwrap_err(),
            2 => place.load(&people(2000, 4000)).await.unwrap_err(),
            3 => place.find(&query).await.err().unwrap(),
            _ => place.describe().await.unwrap_err(),
        };
        assert!(error.is_timeout(), "{error:?}");
        assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    }
    server.thaw();
    assert_eq!(place.count().await.unwrap(), 2000);
    place.put(&rows[..5]).await.unwrap();
}

#[tokio::test]
async fn what_the_server_refuses_has_its_kind() {
    let server = need!(shared());
    let base = server.url().trim_end_matches("/postgres");
    let error = store::open(&format!("{base}/nowhere")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error:?}");
    let url = crate::programs::with_login(server.url(), "nobody:secret");
    let error = store::open(&url).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error:?}");
    assert!(!format!("{error:?}").contains("secret"), "{error:?}");
    let error = store::open(&format!("{}?tls=true", server.url())).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error:?}");
    assert!(error.to_string().contains("the server does not support TLS"), "{error}");
    let place = store::open(&format!("{}?table=not_there", server.url())).await.unwrap();
    assert_eq!(place.count().await.unwrap_err().kind(), ErrorKind::NotFound);
    let folder = server.data().parent().unwrap().display();
    let url = format!("{}?socket={folder}&table=by_socket", server.url());
    store::open(&url).await.unwrap().prepare(&Layout::plain()).await.unwrap();
    let error = store::open("postgres://test@127.0.0.1:1/x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    // A value too long for an index is refused by the server, and nothing of the batch is written.
    let place = ready(server, "table=long").await;
    let layout = Layout::plain().with_index("v".parse().unwrap(), Kind::Text);
    place.prepare(&layout).await.unwrap();
    let mut state = 1u64;
    let noise: String = (0..9000)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b'!' + (state >> 33) as u8 % 94)
        })
        .collect();
    let batch = [one("a", "short"), one("b", noise)];
    assert_eq!(place.put(&batch).await.unwrap_err().kind(), ErrorKind::TooLarge);
    let error = place.load(&batch).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error:?}");
    assert_eq!(place.count().await.unwrap(), 0);
}

#[tokio::test]
async fn tls_is_spoken_with_whom_is_trusted_only() {
    use std::os::unix::fs::{MetadataExt, chown};
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = need!(crate::programs::certificate(folder.path()));
    let server = need!(start(&Wish::default()));
    // PostgreSQL wants its key for itself, and each private server runs as a user of its own.
    let data = std::fs::metadata(server.data()).unwrap();
    for path in [folder.path().to_str().unwrap(), &key, &certificate] {
        chown(path, Some(data.uid()), Some(data.gid())).unwrap();
    }
    let admin = client(&server).await;
    for (name, value) in [("ssl_cert_file", &*certificate), ("ssl_key_file", &key), ("ssl", "on")] {
        admin.execute(&format!("ALTER SYSTEM SET {name} = '{value}'"), &[]).await.unwrap();
    }
    admin.execute("SELECT pg_reload_conf()", &[]).await.unwrap();
    // The postmaster reads its files when its signal arrives: a new connection says whether it has.
    let reloaded = async {
        while client(&server).await.query_one("SHOW ssl", &[]).await.unwrap().get::<_, &str>(0)
            != "on"
        {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), reloaded).await.unwrap();
    for host in ["localhost", "127.0.0.1"] {
        let url = server.url().replace("127.0.0.1", host);
        let place = store::open(&format!("{url}?tls=true&ca={certificate}")).await.unwrap();
        place.prepare(&Layout::plain()).await.unwrap();
        place.load(&people(0, 3000)).await.unwrap();
        assert_eq!(
            place.scan(&KeyRange::all()).await.unwrap().try_concat().await.unwrap().len(),
            3000
        );
        place.drop_table().await.unwrap();
        let error = store::open(&format!("{url}?tls=true")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("certificate"), "{error}");
    }
    let error = store::open(&format!("{}?tls=true&ca={key}", server.url())).await.unwrap_err();
    assert!(error.to_string().contains("no certificate in it"), "{error}");
}

/// A trigger can leave rows out, and the server calls that well: what was not kept is told.
#[tokio::test]
async fn rows_that_a_trigger_leaves_out_are_told() {
    let server = need!(shared());
    let place = ready(server, "table=trigger_left").await;
    let left = "CREATE FUNCTION leave() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                IF NEW._key LIKE 'x%' THEN RETURN NULL; END IF; RETURN NEW; END $$; \
                CREATE TRIGGER leave BEFORE INSERT ON trigger_left FOR EACH ROW EXECUTE FUNCTION leave()";
    client(server).await.batch_execute(left).await.unwrap();
    let row = |key: &str| one(key, 1);
    for batch in [vec![row("x")], vec![row("a"), row("x1"), row("b")]] {
        for how in ["put", "put_each", "load"] {
            let done = match how {
                "put" => place.put(&batch).await,
                "put_each" => place.put_each(&batch).await,
                _ => place.load(&batch).await,
            };
            let error = done.unwrap_err().to_string();
            assert!(
                error.contains("a trigger or a rule of table \"trigger_left\""),
                "{how}: {error}"
            );
            let keys: Vec<Key> = batch.iter().map(|row| row.key.clone()).collect();
            place.remove(&keys).await.unwrap();
        }
    }
    place.put(&[row("a"), row("b")]).await.unwrap();
}
