//! Selects the records to copy: what the conditions mean for the records of this source.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use super::Options;
use crate::{
    Error, Result,
    marc::RecordRef,
    record::{Document, Kind},
    store::{
        Key,
        query::{Condition, Filter, Hints, Matcher},
    },
};

/// The conditions of a copy, for MARC records and for documents; at least one of both.
pub(super) struct Chosen {
    marc: Option<Filter>,
    documents: Option<Matcher>,
}

impl Chosen {
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) where a condition cannot be asked of the source's records.
    pub(super) fn new(options: &Options) -> Result<Chosen> {
        let all = |meaning: fn(&Condition) -> Result<Filter>| {
            let conditions = &options.conditions;
            conditions.iter().try_fold(Filter::All, |all, one| Ok(all.and(meaning(one)?)))
        };
        let marc = all(Condition::marc_filter);
        if options.is_marc() {
            return Ok(Chosen { marc: Some(marc?), documents: None });
        }
        let from = options.from.wrapped();
        let documents = match from.is_some_and(|from| from.format.info().keeps == [Kind::Text]) {
            true => all(Condition::text_filter),
            false => all(Condition::filter),
        };
        match (marc, documents) {
            (Err(_), Err(e)) => Err(e),
            (marc, documents) => {
                let documents = documents.ok().map(|one| Matcher::new(one, options.from.keeps()));
                Ok(Chosen { marc: marc.ok(), documents })
            }
        }
    }

    /// Whether a MARC record goes along; with its key, where it is a store's.
    pub(super) fn marc(&self, key: Option<&Key>, record: RecordRef<'_>) -> bool {
        match &self.marc {
            None | Some(Filter::All) => true,
            Some(filter) => filter.fits_marc(key, record),
        }
    }

    /// Whether a document goes along, which may be a MARC record.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) where it is none, and the conditions are for those only.
    pub(super) fn document(
        &self,
        key: Option<&Key>,
        document: &Document,
        marc: Option<RecordRef<'_>>,
    ) -> Result<bool> {
        match (marc, &self.marc, &self.documents) {
            (Some(record), Some(filter), _) => Ok(filter.fits_marc(key, record)),
            (_, _, Some(filter)) => Ok(filter.fits(key, document)),
            (None, Some(_), None) => {
                Err(Error::invalid("the condition is for MARC records, and this is not one"))
            }
            (_, None, None) => unreachable!("conditions mean something for one or the other"),
        }
    }
}

/// What the first records hold that were left out, for the case that all are. All workers share it.
#[derive(Default)]
pub(super) struct LeftOut {
    hints: Mutex<Hints>,
    /// Reads them as they were compared; none where only MARC records were.
    matcher: Option<Matcher>,
    seen: AtomicUsize,
}

impl LeftOut {
    /// How many records are looked at.
    const ENOUGH: usize = 1000;

    pub(super) fn new(options: &Options) -> Result<LeftOut> {
        let matcher = Chosen::new(options)?.documents;
        let hints = matcher.as_ref().map(|one| Hints::new(one.filter())).unwrap_or_default();
        let seen = if hints.is_empty() { LeftOut::ENOUGH } else { 0 };
        Ok(LeftOut { hints: Mutex::new(hints), matcher, seen: AtomicUsize::new(seen) })
    }

    /// A document that was left out.
    pub(super) fn see(&self, key: Option<&Key>, document: &Document) {
        if let Some(matcher) = &self.matcher
            && self.seen.load(Relaxed) < LeftOut::ENOUGH
        {
            self.seen.fetch_add(1, Relaxed);
            let document = matcher.read(document);
            self.hints.lock().unwrap_or_else(PoisonError::into_inner).see(key, &document);
        }
    }

    /// Why none of them fitted, as far as their kinds of values tell.
    pub(super) fn told(&self) -> Vec<String> {
        self.hints.lock().unwrap_or_else(PoisonError::into_inner).told()
    }
}
