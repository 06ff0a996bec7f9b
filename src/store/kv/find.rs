//! Queries of stores that find records by key only.

use futures_util::{StreamExt, TryStreamExt};

use crate::{
    Error, Result,
    store::{Filter, Key, KeyRange, Query, Row, Rows, Store, in_batches, query::Test},
};

/// The keys that a filter names, where it names some and asks for nothing else.
pub fn keys_of(filter: &Filter) -> Option<Vec<Key>> {
    let values = match filter {
        Filter::Field(path, Test::Eq(value)) if path.is_key() => std::slice::from_ref(value),
        Filter::Field(path, Test::In(values)) if path.is_key() => values,
        _ => return None,
    };
    let mut keys: Vec<Key> =
        values.iter().filter_map(|v| v.as_str().and_then(|k| Key::new(k).ok())).collect();
    // A record is found once, however often it is named.
    keys.sort_unstable();
    keys.dedup();
    Some(keys)
}

/// The records a query asks for by their keys, or all.
///
/// # Errors
/// [`Unsupported`](crate::ErrorKind::Unsupported) for any other query; those of the store.
pub async fn find<'a>(store: &'a dyn Store, query: &Query) -> Result<Rows<'a>> {
    query.check()?;
    if query.filter == Filter::All && query.sort.is_empty() {
        let mut left = query.limit.unwrap_or(u64::MAX);
        if left == 0 {
            return Ok(futures_util::stream::empty().boxed());
        }
        let mut rows = store.scan(&KeyRange::all()).await?;
        let query = query.clone();
        // The scan ends with the batch that fills the limit: none is asked for in vain.
        let rows = async_stream::try_stream! {
            while let Some(mut batch) = rows.try_next().await? {
                batch.truncate(usize::try_from(left).unwrap_or(usize::MAX));
                left -= batch.len() as u64;
                let project = |row: Row| Row { record: query.project(row.record), key: row.key };
                yield batch.into_iter().map(project).collect();
                if left == 0 {
                    break;
                }
            }
        };
        return Ok(rows.boxed());
    }
    store.abilities().can(query)?;
    let Some(keys) = keys_of(&query.filter) else {
        return Err(Error::unsupported(format!(
            "{} finds records by single keys only",
            store.abilities().driver
        )));
    };
    let found = store.get(&keys).await?;
    let rows: Vec<_> = keys
        .into_iter()
        .zip(found)
        .filter_map(|(key, record)| Some(Row { key, record: query.project(record?) }))
        .take(usize::try_from(query.limit.unwrap_or(u64::MAX)).unwrap_or(usize::MAX))
        .collect();
    Ok(in_batches(rows.into_iter()).boxed())
}
