//! Reading what there is, in ranges and parts, while others write.

use std::{collections::BTreeSet, slice, sync::Arc, time::Duration};

use futures_util::{StreamExt, TryStreamExt, future::try_join_all};
use steelyard::{
    ErrorKind,
    store::{Key, KeyRange, Query, Row, Rows, Store, blocking},
};

use super::{
    Fault, Outcome, Subject, Wrap, ensure, expect_error, get_one, has, key, of_kind, row, rows,
    scanned,
};

pub async fn scan(subject: &Subject) -> Outcome {
    // Keys of which order by bytes, by UTF-16 and by any language differ.
    let odd = ["Z", "a", "é", "z", "\u{ff5e}", "😀", "a b", "B", "10", "9", "aa", "ä"];
    let fresh = subject.ready(&rows(1)).await?;
    let store = &*fresh.store;
    let mut all: Vec<Row> = rows(2500);
    all.extend(odd.iter().map(|text| row(*text, 1)).filter(|row| store.check(row).is_ok()));
    store.put(&all).await?;
    all.sort_by(|a, b| a.key.cmp(&b.key));
    if scanned(store, &KeyRange::all()).await?.is_none() {
        return fresh.done().await;
    }
    let border = |text: &str| Some(key(text));
    let mut ranges = vec![KeyRange::all()];
    for (from, until) in [
        (None, border("k000010")),
        (border("k002490"), None),
        (border("k000010"), border("k000012")),
        (border("k000010"), border("k002010")),
        (border("k000010"), border("k000010")),
        (border("k000012"), border("k000010")),
        (border("k0000101"), border("k0000119")),
        (border("a"), border("b")),
        (border("b"), border("\u{ffff}")),
        (border("\u{ffff}"), None),
        (border("0"), border("A")),
        (None, border("!")),
    ] {
        ranges.push(KeyRange { from, until });
    }
    for range in &ranges {
        let want: Vec<_> = all.iter().filter(|row| range.contains(&row.key)).cloned().collect();
        let mut found = scanned(store, range).await?.unwrap_or_default();
        if !store.abilities().ordered {
            found.sort_by(|a, b| a.key.cmp(&b.key));
        }
        let keys = |rows: &[Row]| {
            let keys: Vec<_> = rows.iter().map(|row| row.key.clone()).collect();
            let few = keys.len() <= 20;
            if few { format!("{keys:?}") } else { format!("{} keys", keys.len()) }
        };
        ensure!(found == want, "{range:?}: {} instead of {}", keys(&found), keys(&want));
    }
    fresh.done().await
}

pub async fn split(subject: &Subject) -> Outcome {
    let fresh = subject.ready(&rows(1)).await?;
    let store = &*fresh.store;
    if scanned(store, &KeyRange::all()).await?.is_none() || !store.abilities().ordered {
        let whole = store.split(1).await?;
        ensure!(whole == [KeyRange::all()], "one part is all: {whole:?}");
        of_kind(&expect_error(store.split(2).await, "split")?, &[ErrorKind::Unsupported])?;
        return fresh.done().await;
    }
    for count in [0, 1, 5, 1000] {
        let all = rows(count);
        store.put(&all).await?;
        for parts in [1, 2, 3, 7, 16] {
            let ranges = store.split(parts).await?;
            ensure!(ranges == store.split(parts).await?, "calls differ with nothing written");
            // A few records may be too few to cut.
            let all =
                ranges.len() == parts as usize || count < 100 && ranges.len() < parts as usize;
            ensure!(all && !ranges.is_empty(), "{} of {parts} parts", ranges.len());
            let mut seen = BTreeSet::new();
            let mut most = 0;
            for range in &ranges {
                let rows = scanned(store, range).await?.unwrap_or_default();
                most = most.max(rows.len());
                for row in rows {
                    ensure!(seen.insert(row.key.clone()), "{:?} is in two parts", row.key);
                }
            }
            ensure!(seen.len() == count, "{} of {count} keys in {parts} parts", seen.len());
            // Also keys that are not there yet belong to one part, and to one only.
            for text in ["!", "k000500x", "\u{10ffff}"] {
                let at = ranges.iter().filter(|range| range.contains(&key(text))).count();
                ensure!(at == 1, "{text:?} is in {at} parts of {ranges:?}");
            }
            let fair = count.div_ceil(parts as usize) * 2;
            ensure!(count < 100 || most <= fair, "{most} of {count} in one of {parts} parts");
        }
    }
    fresh.done().await
}

/// Reads a stream to its end, and does all kinds of things between batches.
async fn work_inside(store: &dyn Store, mut stream: Rows<'_>, expect: usize) -> Outcome {
    let (mut seen, mut batches) = (BTreeSet::<Key>::new(), 0);
    while let Some(batch) = stream.try_next().await? {
        for row in &batch {
            ensure!(seen.insert(row.key.clone()), "{:?} comes twice", row.key);
        }
        // Some batches are enough, where there are many.
        if batches < 20 {
            let last = batch.last().map(|row| row.key.clone());
            store.put(&batch).await?;
            store.put(&[row("zz inside", batches)]).await?;
            if let Some(last) = last {
                let found = get_one(store, &last).await?;
                ensure!(found.is_some(), "{last:?} is not there inside a scan");
            }
        }
        batches += 1;
    }
    seen.remove(&key("zz inside"));
    ensure!(seen.len() == expect, "{} of {expect} rows came", seen.len());
    Ok(())
}

/// With one connection only, a scan must not keep what a put needs.
pub async fn put_inside_a_scan(subject: &Subject) -> Outcome {
    let few = subject.wrap != Wrap::Bare || subject.one_by_one();
    let count = if few { 1500 } else { 3000 };
    let all = rows(count);
    let fresh = subject.open("pool=1").await?.ready(&all).await?;
    let store = &*fresh.store;
    store.load(&all).await?;
    if scanned(store, &KeyRange::all()).await?.is_none() {
        return fresh.done().await;
    }
    // Longer than any operation may take by itself: only what hangs is still there.
    let limit = Duration::from_secs(60);
    let hangs = |_| Fault::new("a put inside a stream does not end with one connection");
    let scan = async { work_inside(store, store.scan(&KeyRange::all()).await?, count).await };
    tokio::time::timeout(limit, scan).await.map_err(hangs)??;
    let query = Query::new(r#"{"n": {"$gte": 0}}"#.parse()?);
    if store.abilities().can(&query).is_ok() {
        store.remove(&[key("zz inside")]).await?;
        let find = async { work_inside(store, store.find(&query).await?, count).await };
        tokio::time::timeout(limit, find).await.map_err(hangs)??;
    }
    fresh.done().await
}

/// A stream that is dropped before its end leaves nothing behind that is in the way.
pub async fn left_early(subject: &Subject) -> Outcome {
    // More than a store lists at once.
    let all = rows(if subject.one_by_one() { 1100 } else { 2500 });
    let fresh = subject.open("pool=1").await?.ready(&all).await?;
    let store = &*fresh.store;
    store.load(&all).await?;
    if scanned(store, &KeyRange::all()).await?.is_none() {
        return fresh.done().await;
    }
    for _ in 0..5 {
        drop(store.scan(&KeyRange::all()).await?);
        let mut stream = store.scan(&KeyRange::all()).await?;
        let first = stream.next().await;
        ensure!(matches!(&first, Some(Ok(batch)) if !batch.is_empty()), "{first:?}");
        drop(stream);
        let found = get_one(store, &all[7].key).await?;
        ensure!(found.as_ref() == Some(&all[7].record), "{found:?} after a stream was left");
    }
    // A stream may be dropped in the middle of fetching, too.
    for _ in 0..5 {
        let mut stream = store.scan(&KeyRange::all()).await?;
        let _ = futures_util::poll!(stream.next());
        drop(stream);
    }
    has(store, &all).await?;
    fresh.done().await
}

/// Several tasks at once, and nothing is lost or mixed up.
pub async fn tasks(subject: &Subject) -> Outcome {
    const TASKS: i64 = 8;
    const PUTS: i64 = 50;
    let fresh = subject.ready(&rows(1)).await?;
    let store = fresh.store.clone();
    let one = |task: i64| {
        let store: Arc<dyn Store> = store.clone();
        tokio::spawn(async move {
            for i in 0..PUTS {
                let n = task * 1000 + i;
                let own = row(format!("t{n:05}"), n);
                store.put(slice::from_ref(&own)).await?;
                // One that all want.
                store.put(&[row("wanted", n)]).await?;
                let found = get_one(&*store, &own.key).await?;
                ensure!(found.as_ref() == Some(&own.record), "{found:?} instead of {own:?}");
            }
            Ok::<(), Fault>(())
        })
    };
    for done in try_join_all((0..TASKS).map(one)).await.map_err(Fault::new)? {
        done?;
    }
    let wanted = get_one(&*store, &key("wanted")).await?.unwrap_or_default();
    let n = match wanted.get("n") {
        Some(steelyard::record::Value::Int(n)) => *n,
        other => return Err(Fault::new(format_args!("wanted by all: {other:?}"))),
    };
    ensure!(n % 1000 == PUTS - 1, "the last put of a task is not {n}");
    ensure!(wanted == row("wanted", n).record, "mixed up: {wanted:?}");
    let mut all: Vec<_> = (0..TASKS)
        .flat_map(|t| (0..PUTS).map(move |i| t * 1000 + i))
        .map(|n| row(format!("t{n:05}"), n))
        .collect();
    all.push(row("wanted", n));
    has(&*store, &all).await?;
    fresh.done().await
}

/// One who waits in the thread is answered like all others, also by turns with them.
pub async fn in_the_thread(subject: &Subject) -> Outcome {
    let all = rows(40);
    let fresh = subject.ready(&all[..1]).await?;
    let store = &*fresh.store;
    for (i, one) in all.iter().enumerate() {
        let put = store.put(slice::from_ref(one));
        match i % 3 {
            0 => put.await?,
            _ => blocking(put).await?,
        }
        let get = get_one(store, &one.key);
        let found = match i % 2 {
            0 => get.await?,
            _ => blocking(get).await?,
        };
        ensure!(found.as_ref() == Some(&one.record), "{found:?} instead of {one:?}");
    }
    blocking(has(store, &all)).await?;
    // The drivers with lines of their own are made for this. A future beyond what the system's
    // allocator keeps ready (1,032 bytes, glibc's tcache) costs a seventh of a point read to make.
    if ["postgres", "mysql", "redis"].contains(&store.abilities().driver) {
        let keys = [all[0].key.clone()];
        let sizes = [size_of_val(&*store.get(&keys)), size_of_val(&*store.put(&all[..1]))];
        ensure!(
            sizes.iter().all(|&size| size <= 1032),
            "futures of {sizes:?} bytes to get and put"
        );
    }
    fresh.done().await
}
