//! Answers that end in the middle: an error in time, never half a record, and all is well afterwards.

use std::{
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};

use futures_util::{FutureExt, TryStreamExt};
use steelyard::{
    ErrorKind,
    record::Document,
    store::{Key, KeyRange, Row, Store, one_by_one},
};

use super::{
    places::{self, Fault, Outcome, Subject, Wrap, ensure},
    proxy::Proxy,
};

/// Seconds that an operation may take by the URL, and by the clock: some ask twice.
const TIMEOUT: u64 = 3;
const PATIENCE: Duration = Duration::from_secs(3 * TIMEOUT);

fn failed<T>(done: steelyard::Result<T>, begin: Instant, what: &str) -> Outcome {
    let Err(error) = done else { return Err(Fault::new(format_args!("{what}: no error"))) };
    ensure!(error.is_outage(), "{what}: {error:?}");
    ensure!(begin.elapsed() < PATIENCE, "{what}: {:?}", begin.elapsed());
    Ok(())
}

async fn all(store: &dyn Store) -> steelyard::Result<Vec<Row>> {
    one_by_one(store.scan(&KeyRange::all()).await?).try_collect().await
}

async fn cut(subject: Arc<Subject>) -> Outcome {
    let Some(url) = subject.server() else { return Ok(()) };
    let proxy = Proxy::before(url).await;
    let big = Document::from_iter([("text", "x".repeat(200_000))]);
    let row = |n| Row { key: Key::new(format!("k{n}")).expect("not empty"), record: big.clone() };
    let rows: Vec<Row> = (0..20).map(row).collect();
    let keys: Vec<Key> = rows.iter().map(|row| row.key.clone()).collect();
    let options = format!("timeout={TIMEOUT}&pool=2");
    let fresh = subject.at(&proxy.url).open(&options).await?.ready(&rows[..1]).await?;
    let store = &*fresh.store;
    store.put(&rows).await?;
    for after in [0, 1, 3, 100, 150_000, 1_000_000] {
        proxy.cut_after(after);
        let begin = Instant::now();
        failed(store.get(&keys).await, begin, &format!("get, cut after {after} bytes"))?;
        proxy.mend();
        // The pool has found out about all its connections: the first one works.
        let found = store.get(&keys).await?;
        ensure!(found.iter().all(|record| record.as_ref() == Some(&big)), "after {after}");
    }
    match all(store).await {
        Err(e) => ensure!(e.kind() == ErrorKind::Unsupported, "scan: {e:?}"),
        Ok(found) => {
            ensure!(found.len() == rows.len(), "{} of {} rows", found.len(), rows.len());
            proxy.cut_after(2000);
            let begin = Instant::now();
            failed(all(store).await, begin, "scan")?;
        }
    }
    proxy.cut_after(2);
    let begin = Instant::now();
    failed(store.put(&rows).await, begin, "put")?;
    proxy.mend();
    store.put(&rows).await?;
    let found = store.get(&keys).await?;
    ensure!(found.iter().all(|record| record.as_ref() == Some(&big)), "after a put");
    fresh.done().await
}

/// Questions whose answers nobody waits for, left at every point; those who ask afterwards get what
/// they asked for.
async fn given_up(subject: Arc<Subject>) -> Outcome {
    if subject.server().is_none() {
        return Ok(());
    }
    let row = |n: u64| {
        let record = Document::from_iter([("text", format!("{n} ").repeat(n as usize * 40))]);
        Row { key: Key::new(format!("k{n}")).expect("not empty"), record }
    };
    let rows: Vec<Row> = (1..=10).map(row).collect();
    let fresh = subject.open("pool=2&timeout=10").await?.ready(&rows).await?;
    let store = &*fresh.store;
    store.put(&rows).await?;
    for n in 0..60 {
        let (left, asked) = (&rows[n % 10], &rows[(n * 7 + 3) % 10]);
        let keys = [left.key.clone()];
        let mut get = store.get(&keys);
        for _ in 0..n % 7 {
            let polled = std::future::poll_fn(|cx| Poll::Ready(get.poll_unpin(cx))).await;
            if polled.is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(get);
        let found = store.get(std::slice::from_ref(&asked.key)).await?;
        let right = found == [Some(asked.record.clone())];
        ensure!(right, "{} asked for after {} was given up: {found:?}", asked.key, left.key);
        if n % 3 == 0 {
            store.put(std::slice::from_ref(left)).await?;
        }
    }
    fresh.done().await
}

#[test]
fn what_nobody_waits_for_reaches_nobody() {
    places::each(Wrap::Bare, given_up);
}

#[test]
fn half_an_answer_is_an_error_in_time_and_forgotten() {
    places::each(Wrap::Bare, cut);
}
