//! What a store says that a database, or a schema, takes on disk.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use steelyard::{
    record::{Document, Value, dataset::random::Random},
    store::{self, Key, Place, Row},
};

use super::{
    parts::{has_parts, made, removed},
    places::{self, Outcome, Subject, Wrap, ensure},
};

/// Of a record, in characters that nothing compresses much.
const BYTES: usize = 8 << 10;
const RECORDS: u32 = 300;
/// How long a store may take to clean up.
const PATIENCE: Duration = Duration::from_secs(20);

fn rows(random: &mut Random) -> Vec<Row> {
    let mut text = || -> String {
        (0..BYTES).map(|_| char::from(b'!' + u8::try_from(random.below(90)).unwrap())).collect()
    };
    let record = |text: String| Document::from_iter([("v", Value::Text(text))]);
    let key = |n| Key::new(format!("k{n}")).expect("not empty");
    (0..RECORDS).map(|n| Row { key: key(n), record: record(text()) }).collect()
}

/// What it takes, once that is what the store has seen of late: its statistics come after the records.
async fn taken(store: &Place) -> Result<u64, places::Fault> {
    store.analyze().await?;
    Ok(store.database_bytes().await?.expect("it said so before"))
}

async fn sizes(subject: Arc<Subject>) -> Outcome {
    let Some(url) = subject.url(&format!("table={}", places::name("t"))) else { return Ok(()) };
    if !has_parts(&url)? {
        let said = store::open(&url).await?.database_bytes().await?;
        ensure!(said.is_none(), "{}: {said:?}, in a place that is shared", subject.name);
        return Ok(());
    }
    let names = [places::name("size"), places::name("size")];
    let stores = made(&url, &url, &names).await?;
    let (store, beside) = (&stores[0], &stores[1]);
    let rows = rows(&mut Random::new(places::seed(&subject.name), 62, 0));
    let layout = places::layout(store.shape(), &rows)?;
    for store in [store, beside] {
        store.prepare(&layout).await?;
    }
    if store.database_bytes().await?.is_some() {
        let all = u64::from(RECORDS) * BYTES as u64;
        let (before, apart) = (taken(store).await?, taken(beside).await?);
        store.put(&rows).await?;
        let after = taken(store).await?;
        let grown = after.saturating_sub(before);
        ensure!((all / 2..all * 4).contains(&grown), "{grown} bytes more for {all}");
        // What is deleted makes room for others, whether or not a file gets shorter. (In pages that keep something, not
        // every store counts it. Behind FerretDB nothing tells what of the files is in use.)
        let mut keys: Vec<Key> = rows.iter().map(|row| row.key.clone()).collect();
        keys.sort();
        let most = keys.len() * 3 / 4;
        store.remove(&keys[..most]).await?;
        let begin = Instant::now();
        // Some clean up some time after.
        while !subject.name.contains("ferretdb") {
            let less = taken(store).await?;
            if less < after - grown / 4 {
                break;
            }
            let late = begin.elapsed() > PATIENCE;
            ensure!(!late, "{less} bytes of {after} when most was deleted");
            tokio::task::yield_now().await;
        }
        // Statistics of another table may be gathered meanwhile.
        let moved = taken(beside).await?.abs_diff(apart);
        ensure!(moved < all / 10, "{moved} bytes more in another database");
        store.drop_table().await?;
        store.prepare(&layout).await?;
        let left = taken(store).await?;
        ensure!(left < before + all / 10, "{left} bytes after all was dropped, {before} before");
    }
    removed(&url, &names).await
}

#[test]
fn databases_say_what_they_take() {
    places::each(Wrap::Bare, sizes);
}
