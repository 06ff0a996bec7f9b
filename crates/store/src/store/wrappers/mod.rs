//! Stores around stores, each for one purpose: [`Prefix`] gives several users one table, [`Replicas`] reads from copies,
//! [`Shards`] makes one store of several.
//!
//! A wrapper knows no driver, and answers every operation itself: the lint on each makes a method
//! that was forgotten an error. The blobs behind a store are not seen through a wrapper
//! ([`Store::blobs`] gives none), only the records.
//!
//! To add one: a file here, a line below, and a line in the contract tests.

mod prefix;
mod replicas;
mod shards;
mod spread;

use async_stream::try_stream;
use futures_util::TryStreamExt;

pub use prefix::Prefix;
pub use replicas::{Clock, Replicas};
pub use shards::Shards;

use super::{Key, KeyRange, Query, Rows, Store, blobs};
use crate::Result;

/// As many rows as the query wants at most, with the fields it wants. More are not asked for.
pub(super) fn cut<'a>(mut rows: Rows<'a>, query: &Query) -> Rows<'a> {
    let query = query.clone();
    Box::pin(try_stream! {
        let mut left = query.limit.unwrap_or(u64::MAX);
        while left > 0 {
            let Some(mut batch) = rows.try_next().await? else { break };
            batch.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            left -= batch.len() as u64;
            for row in &mut batch {
                row.record = query.project(std::mem::take(&mut row.record));
            }
            yield batch;
        }
    })
}

/// Counts records by going through them.
async fn count_by_scan(store: &dyn Store) -> Result<u64> {
    let mut rows = store.scan(&KeyRange::all()).await?;
    let mut count = 0;
    while let Some(batch) = rows.try_next().await? {
        count += batch.len() as u64;
    }
    Ok(count)
}

/// Cuts keys into ranges by going through them twice.
async fn split_by_scan(store: &dyn Store, parts: u32) -> Result<Vec<KeyRange>> {
    if parts <= 1 || !store.abilities().ordered {
        return blobs::one_part(store.abilities(), parts.max(1));
    }
    let each = store.count().await?.div_ceil(u64::from(parts)).max(1);
    let (mut borders, mut last) = (Vec::new(), None);
    let (mut rows, mut at) = (store.scan(&KeyRange::all()).await?, 0);
    while let Some(batch) = rows.try_next().await? {
        for row in batch {
            if at > 0 && at % each == 0 && borders.len() + 1 < parts as usize {
                borders.push(row.key.clone());
            }
            at += 1;
            last = Some(row.key);
        }
    }
    // Fewer records than parts: the rest is empty.
    if let Some(last) = last {
        let past = Key::new(format!("{last}~"))?;
        borders.resize(parts as usize - 1, past);
    }
    Ok(KeyRange::between(borders))
}
