//! What goes over the wire: one key is asked for as one key, `?pool=` is how many connections there
//! are, or requests at once, and a limit that passes is a timeout that reads the same for every driver; with each client that
//! a driver has.

use std::{
    slice,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::{join_all, try_join_all};
use steelyard::{
    Error,
    record::{Document, Value},
    store::{Key, Row, Store},
};

use super::{
    places::{self, Fault, Outcome, Subject, Wrap, ensure, patiently},
    proxy::Proxy,
};

fn rows(count: u32) -> Vec<Row> {
    let row = |n| Row {
        key: Key::new(format!("k{n}")).expect("not empty"),
        record: Document::from_iter([("n", Value::Int(i64::from(n))), ("text", "some".into())]),
    };
    (0..count).map(row).collect()
}

/// The clients that a driver has, as options of its URL.
pub fn clients(driver: &str) -> &'static [&'static str] {
    match driver {
        "postgres" | "mysql" | "redis" => &["client=own", "client=crate"],
        _ => &[""],
    }
}

/// Connections that there may be beyond the pool; none where it limits requests, and not connections.
pub fn beyond(driver: &str) -> Option<usize> {
    match driver {
        // Its client watches the server.
        "mongodb" => Some(2),
        // Their HTTP client opens another connection while one is on its way back to its pool, and has
        // no limit of its own.
        "couchdb" | "s3" => None,
        _ => Some(0),
    }
}

fn has(text: &str, part: &str) -> bool {
    text.contains(part)
}

/// Whether this asks for one key as one key.
fn asks_for_one(driver: &str, said: &str) -> bool {
    match driver {
        "postgres" => has(said, "= $1") && !has(said, "ANY("),
        "mysql" => has(said, "= ?") && !has(said, " IN ("),
        "mongodb" => has(said, "find") && !has(said, "$in"),
        "redis" => (has(said, "\r\nGET\r\n") || has(said, "\r\nHGETALL\r\n")) && !has(said, "MGET"),
        "couchdb" | "s3" => said.starts_with("GET /") && said.matches("HTTP/1.1\r\n").count() == 1,
        "memcached" => {
            ["get ", "mg "].iter().any(|get| said.starts_with(get)) && said.lines().count() == 1
        }
        "tyrant" => said.starts_with("\u{fffd}0"),
        other => panic!("nobody says how {other} is asked for one key"),
    }
}

async fn one_key(subject: Arc<Subject>) -> Outcome {
    let Some(url) = subject.server() else { return Ok(()) };
    for client in clients(subject.driver()) {
        let proxy = Proxy::before(url).await;
        let rows = rows(3);
        let fresh = subject.at(&proxy.url).open(&format!("pool=1&{client}")).await?;
        let fresh = fresh.ready(&rows).await?;
        fresh.store.put(&rows).await?;
        proxy.said();
        let found = fresh.store.get(slice::from_ref(&rows[1].key)).await?;
        let said = proxy.said();
        let said = String::from_utf8_lossy(&said);
        ensure!(found == [Some(rows[1].record.clone())], "{client}: {found:?}");
        ensure!(asks_for_one(subject.driver(), &said), "{client}: {said:?}");
        fresh.done().await?;
    }
    Ok(())
}

async fn connections(subject: Arc<Subject>) -> Outcome {
    let Some(url) = subject.server() else { return Ok(()) };
    for (pool, client) in
        [1usize, 8].iter().flat_map(|n| clients(subject.driver()).iter().map(move |c| (n, c)))
    {
        let proxy = Proxy::before(url).await;
        let rows = rows(200);
        let fresh = subject.at(&proxy.url).open(&format!("pool={pool}&{client}")).await?;
        let fresh = fresh.ready(&rows).await?;
        let store: &dyn Store = &*fresh.store;
        store.load(&rows).await?;
        for _ in 0..3 {
            let each = rows.iter().take(32).enumerate().map(|(i, row)| async move {
                match i % 4 {
                    0 => store.put(slice::from_ref(row)).await,
                    1 => store.put(&rows_of(row, 3)).await,
                    _ => store.get(slice::from_ref(&row.key)).await.map(drop),
                }
            });
            try_join_all(each).await?;
        }
        let most = proxy.most();
        let within = |when: &str| -> Outcome {
            let (most, asking) = (proxy.most(), proxy.most_asking());
            ensure!(asking <= *pool, "pool={pool} {client}: {asking} requests at once {when}");
            let may = beyond(subject.driver()).map_or(most, |beyond| pool + beyond);
            ensure!(most <= may, "pool={pool} {client}: {most} connections {when}");
            Ok(())
        };
        within("at work")?;
        // MongoDB's client makes more only while all that it has are in use.
        let all = subject.driver() == "mongodb" || most >= *pool;
        ensure!(all, "pool={pool} {client}: only {most} connections");
        fresh.done().await?;
        within("at its end")?;
    }
    Ok(())
}

/// Some rows beside this one.
fn rows_of(row: &Row, count: usize) -> Vec<Row> {
    let key = |i| Key::new(format!("{}-{i}", row.key.as_str())).expect("not empty");
    (0..count).map(|i| Row { key: key(i), record: row.record.clone() }).collect()
}

/// Seconds that anything may take by the URL, and by the clock.
const LIMIT: f64 = 0.5;
const PATIENCE: Duration = Duration::from_secs(10);

fn is_timeout(error: &Error) -> bool {
    let starts =
        ["no answer within", "cannot connect: timed out after", "no free connection within"]
            .iter()
            .any(|what| error.context().starts_with(&format!("{what} {LIMIT} s")));
    error.is_timeout() && starts
}

async fn frozen(subject: Arc<Subject>) -> Outcome {
    let Some(url) = subject.server() else { return Ok(()) };
    for client in clients(subject.driver()) {
        let proxy = Proxy::before(url).await;
        let rows = rows(10);
        let options = format!("pool=1&timeout={LIMIT}&connect_timeout={LIMIT}&{client}");
        let fresh = subject.at(&proxy.url).open(&options).await?.ready(&rows).await?;
        let store: &dyn Store = &*fresh.store;
        patiently!(store.put(&rows))?;
        proxy.freeze();
        for round in 0..2 {
            let begin = Instant::now();
            // The others wait for the one connection, or for a new one.
            let asked = rows.iter().take(3).map(|row| store.get(slice::from_ref(&row.key)));
            for done in join_all(asked).await {
                let Err(error) = done else {
                    return Err(Fault::new(format_args!("{client}: an answer out of the ice")));
                };
                ensure!(is_timeout(&error), "{client}, round {round}: {error:?}");
            }
            let error = store.put(&rows).await;
            let error = error.err().ok_or_else(|| Fault::new("a put into the ice"))?;
            ensure!(is_timeout(&error), "{client}, a put: {error:?}");
            ensure!(begin.elapsed() < PATIENCE, "{client}: {:?}", begin.elapsed());
        }
        let opened = subject.at(&proxy.url).try_open(&options).await;
        ensure!(opened.is_err(), "{client}: opened in the ice");
        proxy.thaw();
        let mut tries = 0;
        while let Err(error) = store.put(&rows).await {
            tries += 1;
            ensure!(is_timeout(&error) && tries < 10, "{client}, thawed: {error:?}");
        }
        fresh.done().await?;
    }
    Ok(())
}

#[test]
fn one_key_is_asked_for_as_one_key() {
    places::each(Wrap::Bare, one_key);
}

#[test]
fn a_pool_of_n_is_n_connections() {
    places::each(Wrap::Bare, connections);
}

#[test]
fn every_limit_that_passes_is_a_timeout() {
    places::each(Wrap::Bare, frozen);
}
