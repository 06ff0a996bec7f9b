//! Queries that the store does not answer, or not wholly: the records are gone through here.

use futures_util::TryStreamExt;

use super::{Condition, Filter, Matcher, Path, Query, Test};
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
    /// Why more records were read than the answer has; none where the store itself answered the query.
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
    let cannot = |filter: &Filter| store.abilities().can(&Query::new(filter.clone())).err();
    let (asked, looked) = query.filter.clone().split(|filter| cannot(filter).is_none());
    let why = cannot(&looked).map(|e| e.context().to_owned());
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
            let keeps = store.abilities().compared();
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

/// Which of these paths no record has; none where there are no records.
///
/// # Errors
/// Of the store.
pub async fn unheld(store: &dyn Store, paths: &[Path]) -> Result<Vec<Path>> {
    let mut unheld = Vec::new();
    if paths.is_empty() || !any(find(store, &Query::default().limited(1)).await?.rows).await? {
        return Ok(unheld);
    }
    for path in paths {
        let there = Query::new(Filter::Field(path.clone(), Test::Ne(Value::Null)));
        if !any(find(store, &there.limited(1)).await?.rows).await? {
            unheld.push(path.clone());
        }
    }
    Ok(unheld)
}

async fn any(rows: Rows<'_>) -> Result<bool> {
    first(rows, |_| true).await
}

impl Condition {
    /// What conditions that all have to hold mean for the records of a store. One that can be asked of MARC records is
    /// about those of them that are, and about the others as documents, where it can be asked of those.
    ///
    /// # Errors
    /// As [`filter`](Condition::filter) and [`marc_filter`](Condition::marc_filter); those of the store.
    pub async fn for_store(conditions: &[Condition], store: &dyn Store) -> Result<Filter> {
        let all = |meaning: fn(&Condition) -> Result<Filter>| {
            conditions.iter().try_fold(Filter::All, |all, one| Ok(all.and(meaning(one)?)))
        };
        let (documents, marc) = (all(Condition::filter), all(Condition::marc_filter));
        let Ok(marc) = marc else { return documents };
        if !marc.looks() || !may_hold_marc(store).await? {
            return documents;
        }
        // Every MARC record has a leader.
        let is_marc = "LDR".parse::<Condition>()?.marc_filter()?;
        match documents {
            Ok(documents) => Ok(Filter::Or(vec![
                is_marc.clone().and(marc),
                Filter::Not(Box::new(is_marc)).and(documents),
            ])),
            Err(_) if holds_marc(store).await? => Ok(is_marc.and(marc)),
            Err(e) => Err(e),
        }
    }
}

/// Whether there may be MARC records, as far as the store itself can tell.
async fn may_hold_marc(store: &dyn Store) -> Result<bool> {
    let there = |name| Filter::field(name, Test::Ne(Value::Null));
    let query = Query::new(there("leader")?.and(there("fields")?)).limited(1);
    match store.find(&query).await {
        Ok(rows) => any(rows).await,
        Err(e) if e.kind() == ErrorKind::Unsupported => Ok(true),
        Err(e) => Err(e),
    }
}

/// Whether there is a MARC record; every record may have to be read for it.
async fn holds_marc(store: &dyn Store) -> Result<bool> {
    first(store.scan(&KeyRange::all()).await?, is_marc).await
}

/// Whether there is such a record.
async fn first(mut rows: Rows<'_>, wanted: fn(&Document) -> bool) -> Result<bool> {
    while let Some(batch) = rows.try_next().await? {
        if batch.iter().any(|row| wanted(&row.record)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a document is a MARC record.
fn is_marc(record: &Document) -> bool {
    has_marc_shape(record) && record::from_value::<Record>(Value::Map(record.clone())).is_ok()
}

impl Filter {
    /// What the store `can` answer, and what only a look at the records does; both have to hold.
    fn split(self, can: impl Fn(&Filter) -> bool) -> (Filter, Filter) {
        match self {
            Filter::And(all) => {
                let (asked, looked): (Vec<_>, Vec<_>) = all.into_iter().partition(can);
                let joined = |all: Vec<Filter>| all.into_iter().fold(Filter::All, Filter::and);
                (joined(asked), joined(looked))
            }
            filter if can(&filter) => (filter, Filter::All),
            filter => (Filter::All, filter),
        }
    }
}
