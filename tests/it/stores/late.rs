//! A batch has one deadline: on a server that has stopped, and on one that answers late each time, an
//! operation on many thousands of keys ends when its time is over, not after that time for each key, portion
//! or statement of it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{FutureExt, future::BoxFuture};
use steelyard::{
    record::{Document, Value},
    store::{Filter, Key, Row, Store},
};

use super::{
    places::{self, Fault, Outcome, Subject, Wrap, ensure},
    proxy::Proxy,
};

/// Seconds that an operation may take by the URL, and by the clock: some look for another connection
/// first, and a delete by a condition may look, then delete. An operation that waits for each portion of a
/// thousand keys takes 24 seconds from a slow server, and a minute from one that has stopped.
const TIMEOUT: u64 = 3;
const PATIENCE: Duration = Duration::from_secs(5 * TIMEOUT);
const KEYS: usize = 20_000;

/// How late each answer of a slow server is: no answer is too late by itself.
const LATE: Duration = Duration::from_millis(400 * TIMEOUT);

/// What the server does.
#[derive(Clone, Copy, PartialEq)]
enum Server {
    Stopped,
    Slow,
}

/// Whether an operation ends in time: from a server that has stopped with an error that says so, from a slow
/// one also well.
async fn in_time<T>(
    what: &str,
    (server, patience): (Server, Duration),
    done: impl Future<Output = steelyard::Result<T>>,
) -> Outcome {
    let Ok(done) = tokio::time::timeout(patience, done).await else {
        return Err(Fault::new(format_args!("{what}: no end within {} s", patience.as_secs())));
    };
    match done {
        Err(error) => ensure!(error.is_outage(), "{what}: {error:?}"),
        Ok(_) => ensure!(server == Server::Slow, "{what}: no error"),
    }
    Ok(())
}

async fn stopped(subject: Arc<Subject>) -> Outcome {
    ends(subject, Server::Stopped).await
}

async fn slow(subject: Arc<Subject>) -> Outcome {
    ends(subject, Server::Slow).await
}

async fn ends(subject: Arc<Subject>, server: Server) -> Outcome {
    let Some(url) = subject.server() else { return Ok(()) };
    let proxy = Proxy::before(url).await;
    let rows = |name: &str| -> Vec<Row> {
        let row = |n: usize| {
            let fields = [("n", Value::Int(n as i64)), ("text", Value::from("a text"))];
            let key = Key::new(format!("{name}{n:06}")).expect("not empty");
            Row { key, record: Document::from_iter(fields) }
        };
        (0..KEYS).map(row).collect()
    };
    let (rows, new) = (rows("k"), rows("new"));
    let keys: Vec<Key> = rows.iter().map(|row| row.key.clone()).collect();
    // Enough connections for all that is asked side by side.
    let options = format!("timeout={TIMEOUT}&connect_timeout={TIMEOUT}&pool=16");
    let fresh = subject.at(&proxy.url).open(&options).await?.ready(&rows[..1]).await?;
    let store: &dyn Store = &*fresh.store;
    store.put(&rows[..10]).await?;
    let each = store.put_each(&rows[..2]).await.is_ok();
    match server {
        Server::Stopped => proxy.freeze(),
        Server::Slow => proxy.delay(LATE),
    }
    let begin = Instant::now();
    // Few fit, whatever of the rows is there by then: a store that looks through its table has the time for
    // each portion of what it finds.
    let filter: Filter = "n=7".parse()?;
    let mut asked: Vec<(&str, BoxFuture<'_, steelyard::Result<()>>)> = vec![
        ("get", store.get(&keys).map(|done| done.map(drop)).boxed()),
        ("put", store.put(&rows).boxed()),
        ("load", store.load(&new).boxed()),
        ("remove", store.remove(&keys).map(|done| done.map(drop)).boxed()),
    ];
    if each {
        asked.push(("put_each", store.put_each(&rows).boxed()));
    }
    if store.abilities().can(&steelyard::store::Query::new(filter.clone())).is_ok() {
        asked.push(("delete", store.delete(&filter).map(|done| done.map(drop)).boxed()));
    }
    let ended = asked.into_iter().map(|(what, done)| in_time(what, (server, PATIENCE), done));
    let ended = futures_util::future::join_all(ended).await;
    println!("{}: {:.1} s", subject.name, begin.elapsed().as_secs_f64());
    proxy.thaw();
    let faults: Vec<String> = ended
        .into_iter()
        .filter_map(|ended| ended.err().map(|fault| format!("{fault:?}")))
        .collect();
    ensure!(faults.is_empty(), "{}", faults.join("; "));
    Ok(())
}

#[test]
fn a_batch_waits_once_for_a_server_that_has_stopped() {
    places::each(Wrap::Bare, stopped);
}

#[test]
fn a_batch_over_shards_waits_once_for_servers_that_have_stopped() {
    places::each(Wrap::Shards, stopped);
}

#[test]
fn a_batch_ends_in_time_on_a_server_that_answers_late() {
    places::each(Wrap::Bare, slow);
}

#[test]
fn who_does_not_end_is_caught() {
    let never = std::future::pending::<steelyard::Result<()>>();
    let fault = places::run(in_time("get", (Server::Slow, Duration::ZERO), never)).unwrap_err();
    assert!(fault.0.contains("get: no end within 0 s"), "{fault:?}");
    let fault =
        places::run(in_time("put", (Server::Stopped, PATIENCE), async { Ok(()) })).unwrap_err();
    assert!(fault.0.contains("put: no error"), "{fault:?}");
}
