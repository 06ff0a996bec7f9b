//! Finding and deleting by key, and whose keys they are.

use steelyard::{
    Error, ErrorKind,
    store::{Filter, KeyRange, Query, Store},
};

use super::{
    Outcome, Row, Subject, ensure, expect_error, get_one, has, key, keys_of, of_kind, row, rows,
    scanned,
};
use crate::stores::places::{self, layout};

pub async fn answers_in_order(subject: &Subject) -> Outcome {
    let some = rows(5);
    let fresh = subject.ready(&some).await?;
    fresh.store.put(&some).await?;
    let at = [Some(3), None, Some(0), Some(3), Some(4), None, Some(0)];
    let asked: Vec<_> = at
        .iter()
        .map(|at| at.map_or_else(|| key("none"), |i: usize| some[i].key.clone()))
        .collect();
    let want: Vec<_> = at.iter().map(|at| at.map(|i| some[i].record.clone())).collect();
    let found = fresh.store.get(&asked).await?;
    ensure!(found == want, "{found:?}");
    fresh.done().await
}

/// Keys that some stores take for one another, or cannot tell the order of.
const ALIKE: [&str; 34] = [
    "a",
    "A",
    "a ",
    " a",
    "a  ",
    "a\t",
    "á",
    "a\u{301}",
    "à",
    "ä",
    "ae",
    "æ",
    "ß",
    "ss",
    "ı",
    "i",
    "I",
    "İ",
    "1",
    "01",
    "1.0",
    "1e0",
    "true",
    "null",
    "a%",
    "a_",
    "a*",
    "a?",
    "ab",
    "a/b",
    "\u{ff5e}",
    "😀",
    "\u{200b}a",
    "a'",
];

pub async fn keys_differ(subject: &Subject) -> Outcome {
    let fresh = subject.ready(&rows(1)).await?;
    let store = &*fresh.store;
    let mut kept: Vec<Row> = Vec::new();
    for (i, text) in ALIKE.iter().enumerate() {
        let row = row(*text, i as i64);
        match store.check(&row) {
            Ok(()) => kept.push(row),
            Err(e) => of_kind(&e, &[ErrorKind::Invalid])?,
        }
    }
    ensure!(kept.len() > ALIKE.len() / 2, "only {} of these keys can be kept", kept.len());
    store.put(&kept).await?;
    has(store, &kept).await?;
    for row in &kept {
        let query = Filter::field("_key", steelyard::store::query::Test::Eq((&*row.key).into()))?;
        let found = store.find(&Query::new(query)).await?;
        let found: Vec<Row> =
            futures_util::TryStreamExt::try_collect(steelyard::store::one_by_one(found)).await?;
        ensure!(found == [row.clone()], "found {found:?} by the key {:?}", row.key);
    }
    // One is gone, and none of those that are like it.
    for _ in 0..3 {
        let gone = kept.remove(kept.len() / 2);
        let removed = store.remove(std::slice::from_ref(&gone.key)).await?;
        ensure!(removed == 1, "{removed} removed for the key {:?}", gone.key);
        has(store, &kept).await?;
    }
    fresh.done().await
}

pub async fn remove(subject: &Subject) -> Outcome {
    let some = rows(10);
    let fresh = subject.ready(&some).await?;
    let store = &*fresh.store;
    store.put(&some).await?;
    let removed = store.remove(&[key("none")]).await?;
    ensure!(removed == 0, "{removed} removed of one that is not there");
    let gone = [&some[2], &some[5], &some[2]].map(|row| row.key.clone());
    let removed = store.remove(&[gone.as_slice(), &[key("none")]].concat()).await?;
    ensure!(removed == 2, "{removed} removed, with one named twice and one not there");
    let removed = store.remove(&gone).await?;
    ensure!(removed == 0, "{removed} removed again");
    let left: Vec<_> = some.iter().filter(|row| !gone.contains(&row.key)).cloned().collect();
    has(store, &left).await?;
    fresh.done().await
}

pub async fn delete(subject: &Subject) -> Outcome {
    let some = rows(10);
    let fresh = subject.ready(&some).await?;
    let store = &*fresh.store;
    store.put(&some).await?;
    let deleted = store.delete(&r#"{"_key": "k000003"}"#.parse()?).await?;
    ensure!(deleted == 1, "{deleted} deleted by one key");
    let filter = r#"{"_key": {"$in": ["k000004", "k000003", "k000004", "none", "k000005"]}}"#;
    let deleted = store.delete(&filter.parse()?).await?;
    ensure!(deleted == 2, "{deleted} deleted by keys, two of which were there");
    let mut left = [&some[..3], &some[6..]].concat();
    has(store, &left).await?;
    for (filter, fits) in [
        (r#"{"n": {"$gte": 8}}"#, &["k000008", "k000009"][..]),
        (r#"{"_key": {"$gt": "k000006", "$lt": "k000008"}}"#, &["k000007"]),
        (r#"{"text": "number 1", "_key": "k000002"}"#, &[]),
    ] {
        let filter: Filter = filter.parse()?;
        let done = store.delete(&filter).await;
        match store.abilities().can(&Query::new(filter.clone())) {
            Ok(()) => {
                let deleted = done?;
                ensure!(deleted == fits.len() as u64, "{deleted} deleted by {filter:?}");
                left.retain(|row| !fits.contains(&&*row.key));
            }
            Err(_) => of_kind(&expect_error(done, "delete")?, &[ErrorKind::Unsupported])?,
        }
        has(store, &left).await?;
    }
    match store.delete(&Filter::All).await {
        Ok(deleted) => {
            ensure!(deleted == left.len() as u64, "{deleted} deleted of {}", left.len());
            has(store, &[]).await?;
            // The table is still there.
            store.put(&some).await?;
            has(store, &some).await?;
        }
        Err(e) => {
            of_kind(&e, &[ErrorKind::Unsupported])?;
            let listed = scanned(store, &KeyRange::all()).await?;
            ensure!(listed.is_none(), "it can list records, but not delete all");
        }
    }
    fresh.done().await
}

pub async fn tables(subject: &Subject) -> Outcome {
    let fresh = subject.ready(&rows(1)).await?;
    // Names that some stores would mix up, with keys to match; and nobody else's.
    let name = places::name("x");
    let own = ["", "_1", "1", "x", "-1"].map(|end| format!("{name}{end}"));
    let mut tables: Vec<(&str, std::sync::Arc<dyn Store>)> = Vec::new();
    for name in &own {
        match fresh.store.table(name) {
            Ok(store) => tables.push((name, store)),
            Err(e) => of_kind(&e, &[ErrorKind::Invalid])?,
        }
    }
    ensure!(tables.len() >= 3, "only {} of the tables {own:?} can be", tables.len());
    let held =
        |i: usize| [row("k", i as i64), row("1", 10 + i as i64), row("_1k", 20), row("x", 30)];
    for (i, (_, store)) in tables.iter().enumerate() {
        store.prepare(&layout(store.shape(), &rows(1))?).await?;
        store.put(&held(i)).await?;
    }
    fresh.store.put(&rows(2)).await?;
    for (i, (_, store)) in tables.iter().enumerate() {
        has(&**store, &held(i)).await?;
    }
    has(&*fresh.store, &rows(2)).await?;
    // By another handle, it is the same table.
    let again = fresh.store.table(tables[1].0)?;
    has(&*again, &held(1)).await?;
    again.remove(&[key("k")]).await?;
    ensure!(get_one(&*tables[1].1, &key("k")).await?.is_none(), "a table that is two");
    // What happens to one does not happen to the others.
    if scanned(&*tables[0].1, &KeyRange::all()).await?.is_some() {
        tables[0].1.delete(&Filter::All).await?;
        tables[2].1.drop_table().await?;
        has(&*tables[0].1, &[]).await?;
        has(&*again, &held(1)[1..]).await?;
        for (i, (_, store)) in tables.iter().enumerate().skip(3) {
            has(&**store, &held(i)).await?;
        }
        has(&*fresh.store, &rows(2)).await?;
    }
    for (_, store) in &tables {
        match store.drop_table().await {
            Err(e) if e.kind() != ErrorKind::Unsupported => return Err(e.into()),
            _ => {}
        }
    }
    fresh.done().await
}

/// Tables whose names differ in capital and small letters only are two, or the second one is refused.
pub async fn tables_by_case(subject: &Subject) -> Outcome {
    let fresh = subject.ready(&rows(1)).await?;
    let name = places::name("case");
    let (small, capital) = (fresh.store.table(&name)?, fresh.store.table(&name.to_uppercase()));
    let plain = layout(fresh.store.shape(), &rows(1))?;
    let made = async |store: &dyn Store, row: &Row| {
        store.prepare(&plain).await?;
        store.put(std::slice::from_ref(row)).await
    };
    let (first, second) = (row("k", 1), row("k", 2));
    made(&*small, &first).await?;
    let refused = match &capital {
        Ok(capital) => made(&**capital, &second).await.err(),
        Err(e) => Some(Error::new(e.kind(), e.context())),
    };
    match &refused {
        Some(e) => of_kind(e, &[ErrorKind::Invalid, ErrorKind::Conflict])?,
        None => has(&*capital?, std::slice::from_ref(&second)).await?,
    }
    has(&*small, std::slice::from_ref(&first)).await?;
    fresh.done().await
}

pub async fn drop_table(subject: &Subject) -> Outcome {
    let some = rows(5);
    let fresh = subject.ready(&some).await?;
    let store = &*fresh.store;
    store.put(&some).await?;
    if let Err(e) = store.drop_table().await {
        let listed = scanned(store, &KeyRange::all()).await?;
        ensure!(listed.is_none(), "it can list records, but not drop them");
        of_kind(&e, &[ErrorKind::Unsupported])?;
        store.remove(&keys_of(&some)).await?;
        return Ok(());
    }
    // What is not there is as good as dropped.
    store.drop_table().await?;
    store.prepare(&layout(store.shape(), &some)?).await?;
    has(store, &[]).await?;
    store.put(&some[..2]).await?;
    has(store, &some[..2]).await?;
    fresh.done().await
}
