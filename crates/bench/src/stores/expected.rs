//! The expected result of each phase, counted from the records before a store is asked; and the check whether the
//! phases can run on these records at all.

use std::{any::Any, sync::Arc};

use super::data::{Records, value};
use crate::{
    Error, Result,
    store::{Filter, Query, Row, query::Path},
    workload::{Phase, Workload},
};

/// What must come out of a phase.
#[derive(Debug, Clone)]
pub(crate) enum Expected {
    /// So many records.
    Records(u64),
    /// What the phase's kind has counted, for itself ([`Expected::counted`]).
    Counted(Arc<dyn Any + Send + Sync>),
    /// It cannot be known beforehand: an earlier phase has changed records.
    Unknown,
}

impl Expected {
    /// How many records, where that is all that is known.
    pub(crate) fn records(&self) -> Option<u64> {
        match self {
            Expected::Records(n) => Some(*n),
            Expected::Counted(_) | Expected::Unknown => None,
        }
    }

    /// What a kind has counted, of a type of its own.
    pub(crate) fn of<T: Any + Send + Sync>(counted: T) -> Expected {
        Expected::Counted(Arc::new(counted))
    }

    /// What a kind has counted, where it is of this type.
    pub(crate) fn counted<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        match self {
            Expected::Counted(counted) => Arc::clone(counted).downcast().ok(),
            Expected::Records(_) | Expected::Unknown => None,
        }
    }
}

/// What is counted from: the records of the tables as a phase finds them.
pub(crate) struct Counts<'a> {
    /// The records of the phase's table, as they are loaded.
    pub records: &'a Records,
    /// What earlier phases have deleted of them.
    gone: Vec<Query>,
    /// All tables, and those whose records earlier phases have changed or deleted.
    tables: &'a [(String, Records)],
    touched: Vec<&'a str>,
    /// Whether to end at once; what was counted is then of no use.
    pub stop: &'a dyn Fn() -> bool,
}

impl<'a> Counts<'a> {
    /// Of a table as it is loaded; none where there is none of this name.
    pub(crate) fn new(
        tables: &'a [(String, Records)],
        table: &str,
        stop: &'a dyn Fn() -> bool,
    ) -> Option<Counts<'a>> {
        let records = &tables.iter().find(|(name, _)| name == table)?.1;
        Some(Counts { records, gone: Vec::new(), tables, touched: Vec::new(), stop })
    }

    /// The numbers of so many records, until it is to stop.
    pub(crate) fn numbers(&self, count: u64) -> impl Iterator<Item = u64> {
        const OFTEN: u64 = 1 << 10;
        (0..count).take_while(|n| !n.is_multiple_of(OFTEN) || !(self.stop)())
    }

    /// The records that are there and fit.
    pub(crate) fn fitting(&self, filter: &Filter) -> impl Iterator<Item = Row> {
        let query = Query::new(filter.clone());
        let rows = self.numbers(self.records.count).filter_map(|n| self.records.row(n).ok());
        rows.filter(move |row| {
            let fits = |query: &Query| query.matches(&row.key, &row.record);
            fits(&query) && !self.gone.iter().any(fits)
        })
    }

    /// How many records are there.
    pub(crate) fn there(&self) -> u64 {
        match self.gone.is_empty() {
            true => self.records.count,
            false => self.fitting(&Filter::All).count() as u64,
        }
    }

    /// The records of another table, where they are as they were loaded.
    pub(crate) fn untouched(&self, table: &str) -> Option<&'a Records> {
        let found = self.tables.iter().find(|(name, _)| name == table)?;
        (!self.touched.contains(&table)).then_some(&found.1)
    }
}

/// What must come out of each phase, from the records themselves.
///
/// Where `stop` says so it ends at once; the result is then of no use.
pub(super) fn expected(
    workload: &Workload,
    records: &[(String, Records)],
    stop: &dyn Fn() -> bool,
) -> Vec<Expected> {
    let mut gone: Vec<(&str, &Filter)> = Vec::new();
    let mut changed: Vec<&str> = Vec::new();
    let mut all = Vec::with_capacity(workload.phases.len());
    for phase in &workload.phases {
        let table = phase.table.as_str();
        all.push(match Counts::new(records, table, stop) {
            Some(counts) if !changed.contains(&table) => {
                let here = gone.iter().filter(|(name, _)| *name == table);
                let touched = changed.iter().copied().chain(gone.iter().map(|(name, _)| *name));
                phase.kind.expected(&Counts {
                    gone: here.map(|(_, filter)| Query::new((*filter).clone())).collect(),
                    touched: touched.collect(),
                    ..counts
                })
            }
            _ => Expected::Unknown,
        });
        if let Some(filter) = phase.kind.deletes() {
            gone.push((table, filter));
        } else if phase.kind.changes() {
            changed.push(table);
        }
    }
    all
}

/// Whether the phases of a workload can be done with these records, before any store is started; and what
/// the report has to say of them.
///
/// # Errors
/// [`Invalid`](crate::ErrorKind::Invalid), naming the phase, for a field that is in no record, and for what
/// its kind finds.
pub(super) fn check(
    workload: &Workload,
    records: &[(String, Records)],
    expected: &[Expected],
    stop: &dyn Fn() -> bool,
) -> Result<Vec<String>> {
    let mut set: Vec<(&str, &str)> = Vec::new();
    let mut remarks = Vec::new();
    for (phase, expected) in workload.phases.iter().zip(expected) {
        let Some(counts) = Counts::new(records, &phase.table, stop) else { continue };
        // What was counted until then is not all there is.
        if stop() {
            break;
        }
        for path in phase.kind.reads().iter().filter(|path| !path.is_key()) {
            let is_set = set.contains(&(phase.table.as_str(), path.names()[0].as_str()));
            if !is_set {
                has_field(phase, path, &counts)?;
            }
        }
        remarks.extend(phase.kind.check(phase, &counts, expected)?);
        let sets = phase.kind.sets().into_iter().flat_map(|fields| fields.iter());
        set.extend(sets.map(|(name, _)| (phase.table.as_str(), name)));
    }
    Ok(remarks)
}

/// # Errors
/// [`Invalid`](crate::ErrorKind::Invalid) where no record has this field.
fn has_field(phase: &Phase, path: &Path, counts: &Counts<'_>) -> Result<()> {
    let of = counts.records;
    let there = |n: u64| value(&of.document(n), path.names()).is_some();
    match counts.numbers(of.count).any(there) || (counts.stop)() {
        true => Ok(()),
        false => Err(Error::invalid(format!("phase {}: no record has a field {path}", phase.name))),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::draws::tests::small, *};

    #[test]
    fn counts_follow_from_the_records() {
        let (workload, _, expected) = small("documents", 0.1);
        let of = |name: &str| {
            let at = workload.phases.iter().position(|phase| phase.name == name).unwrap();
            match &expected[at] {
                Expected::Records(n) => *n,
                other => panic!("{name}: {other:?}"),
            }
        };
        assert_eq!(of("create"), 2_000);
        assert!((150..250).contains(&of("query")) && (340..460).contains(&of("delete")));
    }

    #[test]
    fn of_tables_that_were_changed_nothing_is_known() {
        let (_, _, expected) = small("mixed", 0.1);
        assert!(matches!(expected.last(), Some(Expected::Unknown)), "{expected:?}");
    }

    #[test]
    fn what_is_to_stop_stops_within_some_records() {
        let asked = std::cell::Cell::new(0);
        let stop = || {
            asked.set(asked.get() + 1);
            asked.get() > 3
        };
        let (_, records, _) = small("documents", 0.1);
        let counts = Counts::new(&records, &records[0].0, &stop).unwrap();
        assert!(counts.numbers(u64::MAX).count() < 10_000);
    }
}
