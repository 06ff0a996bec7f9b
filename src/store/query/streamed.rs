//! Queries that the store does not answer, or not wholly: the records are gone through here.

use futures_util::TryStreamExt;

use super::{Condition, Filter, Matcher, Query};
use crate::{
    ErrorKind, Result,
    format::has_marc_shape,
    marc::Record,
    record::{self, Document, Kind, Value},
    store::{Key, KeyRange, Rows, Store},
};

/// The answer to a query.
pub struct Answer<'s> {
    /// The records.
    pub rows: Rows<'s>,
    /// Why records were read that the answer does not have; none where the store itself answered.
    pub read: Option<String>,
}

/// The records a query asks for. What the store cannot test is tested here, on the records that fit the rest;
/// order is always the store's work.
///
/// # Errors
/// As [`Store::find`]; [`Unsupported`](ErrorKind::Unsupported) only where the store cannot sort.
pub async fn find<'s>(store: &'s dyn Store, query: &Query) -> Result<Answer<'s>> {
    query.check()?;
    if *query == Query::default() {
        return Ok(Answer { rows: store.scan(&KeyRange::all()).await?, read: None });
    }
    let (asked, looked) = query.filter.clone().split();
    let why = match looked {
        Filter::All => None,
        _ => store.abilities().can(query).err().map(|e| e.context().to_owned()),
    };
    let asked = match why {
        None => query.clone(),
        Some(_) => Query { filter: asked, sort: query.sort.clone(), ..Query::default() },
    };
    let (rows, why) = match asked == Query::default() {
        true => (store.scan(&KeyRange::all()).await?, why),
        false => match store.find(&asked).await {
            Err(e) if e.kind() == ErrorKind::Unsupported && query.sort.is_empty() => {
                let rows = store.scan(&KeyRange::all()).await?;
                (rows, why.or(Some(e.context().to_owned())))
            }
            rows => (rows?, why),
        },
    };
    Ok(match why {
        None => Answer { rows, read: None },
        read => {
            let keeps = store.abilities().keeps;
            Answer { rows: fitting(rows, query.clone(), keeps), read }
        }
    })
}

/// Those of the rows that fit, up to the query's limit, with its fields.
fn fitting<'s>(rows: Rows<'s>, query: Query, keeps: &'static [Kind]) -> Rows<'s> {
    let matcher = Matcher::new(query.filter.clone(), keeps);
    let mut left = query.limit.unwrap_or(u64::MAX);
    let mut rows = rows;
    Box::pin(async_stream::try_stream! {
        while left > 0 {
            let Some(batch) = rows.try_next().await? else { break };
            let mut batch: Vec<_> =
                batch.into_iter().filter(|row| matcher.fits(Some(&row.key), &row.record)).collect();
            batch.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            left -= batch.len() as u64;
            for row in &mut batch {
                row.record = query.project(std::mem::take(&mut row.record));
            }
            if !batch.is_empty() {
                yield batch;
            }
        }
    })
}

/// Deletes the records that fit; gives how many those were, and why records were read for it, where the store
/// itself could not do it. Records that are changed meanwhile, after they were read, are deleted all the same.
///
/// # Errors
/// As [`Store::delete`] and [`find`].
pub async fn delete(store: &dyn Store, filter: &Filter) -> Result<(u64, Option<String>)> {
    if !filter.looks() {
        match store.delete(filter).await {
            Err(e) if e.kind() == ErrorKind::Unsupported => {}
            deleted => return deleted.map(|count| (count, None)),
        }
    }
    let Answer { mut rows, read } = find(store, &Query::new(filter.clone())).await?;
    let mut deleted = 0;
    while let Some(batch) = rows.try_next().await? {
        let keys: Vec<Key> = batch.into_iter().map(|row| row.key).collect();
        deleted += store.remove(&keys).await?;
    }
    Ok((deleted, read))
}

impl Condition {
    /// What conditions that all have to hold mean for the records of a store: where the first of them is a MARC
    /// record and every condition can be asked of those, they are about MARC records; else about documents.
    ///
    /// # Errors
    /// As [`filter`](Condition::filter) and [`marc_filter`](Condition::marc_filter); those of the store.
    pub async fn for_store(conditions: &[Condition], store: &dyn Store) -> Result<Filter> {
        let all = |meaning: fn(&Condition) -> Result<Filter>| {
            conditions.iter().try_fold(Filter::All, |all, one| Ok(all.and(meaning(one)?)))
        };
        let (documents, marc) = (all(Condition::filter), all(Condition::marc_filter));
        if !matches!(&marc, Ok(filter) if filter.looks()) {
            return documents;
        }
        let mut rows = store.scan(&KeyRange::all()).await?;
        let first = loop {
            match rows.try_next().await? {
                Some(batch) if batch.is_empty() => {}
                batch => break batch.and_then(|batch| batch.into_iter().next()),
            }
        };
        match first {
            Some(row) if is_marc(&row.record) => marc,
            _ => documents,
        }
    }
}

/// Whether a document is a MARC record.
fn is_marc(record: &Document) -> bool {
    has_marc_shape(record) && record::from_value::<Record>(Value::Map(record.clone())).is_ok()
}

impl Filter {
    /// What a store may answer, and what only a look at the records does; both have to hold.
    fn split(self) -> (Filter, Filter) {
        match self {
            Filter::And(all) => {
                let (looked, asked): (Vec<_>, Vec<_>) = all.into_iter().partition(Filter::looks);
                let joined = |all: Vec<Filter>| all.into_iter().fold(Filter::All, Filter::and);
                (joined(asked), joined(looked))
            }
            filter if filter.looks() => (Filter::All, filter),
            filter => (filter, Filter::All),
        }
    }
}
