//! Writing: batches of every size, what is there already, what the store says of itself.

use std::slice;

use futures_util::future::try_join_all;
use steelyard::{
    ErrorKind,
    record::{Document, Value},
    store::Shape,
};

use super::{
    Outcome, Row, Subject, Wrap, ensure, expect_error, get_one, has, key, keys_of, of_kind, row,
    rows,
};
use crate::stores::places::{self, Fault, layout};

pub async fn describe(subject: &Subject) -> Outcome {
    let fresh = subject.ready(&rows(1)).await?;
    let about = fresh.store.describe().await?;
    ensure!(!about.product.is_empty(), "{about:?}");
    let says = about.version.chars().any(|c| c.is_ascii_digit());
    // The protocol of S3 has no way to ask.
    ensure!(says || subject.driver() == "s3", "no version: {about:?}");
    ensure!(about.shape == fresh.store.shape(), "{} is described as {}", subject.name, about.shape);
    ensure!(about.shape == subject.shape(), "{} was asked for: {about:?}", subject.shape());
    let is_blob = about.shape == Shape::Blob;
    ensure!(about.format.is_some() == is_blob, "a format says how blobs are: {about:?}");
    ensure!(about.asked.is_none(), "no durability was asked for: {about:?}");
    fresh.done().await
}

pub async fn prepare_again(subject: &Subject) -> Outcome {
    let some = rows(3);
    let fresh = subject.ready(&some).await?;
    fresh.store.put(&some).await?;
    fresh.store.prepare(&layout(fresh.store.shape(), &some)?).await?;
    has(&*fresh.store, &some).await?;
    fresh.done().await
}

/// Tables that are made, and filled, at the same time, in a place where there is nothing yet.
pub async fn prepare_side_by_side(subject: &Subject) -> Outcome {
    let fresh = subject.open("").await?;
    let tables = (0..8).map(|_| fresh.store.table(&places::name("beside")));
    let tables = tables.collect::<steelyard::Result<Vec<_>>>()?;
    let made = tables.iter().cloned().map(|table| {
        tokio::spawn(async move {
            let some = rows(3);
            table.prepare(&layout(table.shape(), &some)?).await?;
            table.put(&some).await?;
            has(&*table, &some).await
        })
    });
    for made in try_join_all(made).await.map_err(Fault::new)? {
        made?;
    }
    for table in &tables {
        match table.drop_table().await {
            Err(e) if e.kind() != ErrorKind::Unsupported => return Err(e.into()),
            _ => {}
        }
    }
    fresh.done().await
}

pub async fn empty_batches(subject: &Subject) -> Outcome {
    let fresh = subject.ready(&rows(1)).await?;
    fresh.store.put(&[]).await?;
    fresh.store.load(&[]).await?;
    ensure!(fresh.store.get(&[]).await?.is_empty(), "answers to no question");
    ensure!(fresh.store.remove(&[]).await? == 0, "none was removed");
    has(&*fresh.store, &[]).await?;
    fresh.done().await
}

pub async fn batches(subject: &Subject) -> Outcome {
    let sizes: &[usize] = match subject.wrap {
        Wrap::Bare if !subject.one_by_one() => &[1, 1000, 5000],
        _ => &[1, 1000],
    };
    for size in sizes {
        let some = rows(*size);
        for load in [false, true] {
            let fresh = subject.ready(&some).await?;
            match load {
                true => fresh.store.load(&some).await?,
                false => fresh.store.put(&some).await?,
            }
            has(&*fresh.store, &some).await?;
            fresh.done().await?;
        }
    }
    Ok(())
}

pub async fn put_replaces(subject: &Subject) -> Outcome {
    let whole = row("a", 1);
    let less = Row { key: key("a"), record: Document::from_iter([("n", Value::Int(2))]) };
    let other = row("b", 3);
    let fresh = subject.ready(slice::from_ref(&whole)).await?;
    let store = &*fresh.store;
    store.put(slice::from_ref(&whole)).await?;
    // In place of what was there, and none of its fields stays.
    store.put(&[other.clone(), less.clone()]).await?;
    has(store, &[less.clone(), other.clone()]).await?;
    // The same again changes nothing.
    store.put(slice::from_ref(&less)).await?;
    has(store, &[less.clone(), other.clone()]).await?;
    // Of one key twice in a batch, the last is what was put last.
    store.put(&[less.clone(), row("c", 4), whole.clone(), row("c", 5)]).await?;
    has(store, &[whole, other, row("c", 5)]).await?;
    fresh.done().await
}

pub async fn load(subject: &Subject) -> Outcome {
    let fresh = subject.ready(&rows(1)).await?;
    let store = &*fresh.store;
    let first = rows(10);
    store.load(&first).await?;
    has(store, &first).await?;
    // The middle one is taken.
    let batch = [row("new1", 1), row("k000004", 99), row("new2", 2)];
    match store.load(&batch).await {
        Err(e) => {
            of_kind(&e, &[ErrorKind::Conflict])?;
            let kept = get_one(store, &first[4].key).await?;
            ensure!(kept.as_ref() == Some(&first[4].record), "a conflict changed it to {kept:?}");
            if store.abilities().atomic {
                has(store, &first).await?;
            }
        }
        // A store that does not tell has to have written it.
        Ok(()) => {
            let mut all = first.clone();
            all[4] = batch[1].clone();
            all.extend([batch[0].clone(), batch[2].clone()]);
            has(store, &all).await?;
        }
    }
    // What was refused is no hindrance.
    store.put(&batch).await?;
    let found = store.get(&keys_of(&batch)).await?;
    ensure!(found.iter().all(Option::is_some), "{found:?}");
    fresh.done().await?;

    // Twice in one batch: a conflict, or the last one.
    let fresh = subject.ready(&rows(1)).await?;
    let twice = [row("a", 1), row("b", 2), row("a", 3)];
    match fresh.store.load(&twice).await {
        Err(e) => of_kind(&e, &[ErrorKind::Conflict])?,
        Ok(()) => has(&*fresh.store, &twice[1..]).await?,
    }
    fresh.done().await?;

    // A table of another layout is no place for it, where layouts have columns.
    if super::is_columns(&*subject.open("").await?.store) {
        let fresh = subject.ready(&rows(1)).await?;
        let other = Row { key: key("a"), record: Document::from_iter([("other", true)]) };
        let again = fresh.store.prepare(&layout(Shape::Columns, &[other])?).await;
        of_kind(&expect_error(again, "prepare with other columns")?, &[ErrorKind::Conflict])?;
        fresh.done().await?;
    }
    Ok(())
}
