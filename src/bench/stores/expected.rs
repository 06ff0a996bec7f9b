//! What must come out of each phase, which is known before a store is asked, and whether its queries can
//! be asked of these records at all.

use std::{collections::HashMap, sync::Arc};

use super::{
    data::{Records, value},
    relate::{Belong, naming, naming_in_pairs},
};
use crate::{
    Error, Result,
    bench::workload::{Act, Phase, Range, Relation, Workload},
    record::Value,
    store::{Filter, Query, Row, query::Path},
};

/// What must come out of a phase.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expected {
    /// So many records.
    Records(u64),
    /// As many as there are numbers in the range that is drawn; these are all of them, sorted.
    Numbers(Vec<i64>),
    /// To each key so many; nothing to those that are not among them.
    Belonging(Arc<HashMap<String, Belong>>),
    /// It cannot be known beforehand: an earlier phase has changed records.
    Unknown,
}

/// What must come out of each phase, from the records themselves.
///
/// Where `stop` says so it ends at once; what it gives then is of no use.
pub(super) fn expected(
    workload: &Workload,
    records: &[(String, Records)],
    stop: &dyn Fn() -> bool,
) -> Vec<Expected> {
    let mut gone: Vec<(&str, &Filter)> = Vec::new();
    let mut changed: Vec<&str> = Vec::new();
    let mut all = Vec::with_capacity(workload.phases.len());
    let records_of = |name: &str| records.iter().find(|r| r.0 == name).map(|r| &r.1);
    for phase in &workload.phases {
        let table = phase.table.as_str();
        let known = !changed.contains(&table);
        let gone_here: Vec<&Filter> = gone.iter().filter(|g| g.0 == table).map(|g| g.1).collect();
        all.push(match records_of(table) {
            Some(records) if known => match &phase.act {
                Act::Relate { by, to, field } => {
                    let untouched =
                        !changed.contains(&to.as_str()) && !gone.iter().any(|g| g.0 == to);
                    let to = records_of(to).filter(|_| untouched);
                    to.map_or(Expected::Unknown, |to| belonging(*by, to, field, stop))
                }
                _ => count(phase, records, &gone_here, stop),
            },
            _ => Expected::Unknown,
        });
        match &phase.act {
            Act::Delete(filter) => gone.push((table, filter)),
            act if act.changes() => changed.push(table),
            _ => {}
        }
    }
    all
}

/// A range is drawn among whole numbers, so nothing else may be in its field.
fn only_whole_numbers(phase: &str, field: &Path, records: &Records) -> Result<()> {
    for n in 0..records.count {
        records.stop.check()?;
        let document = records.document(n);
        let kind = match value(&document, field.names()) {
            None | Some(Value::Null | Value::Int(_)) => continue,
            Some(other) => other.kind().name(),
        };
        return Err(Error::invalid(format!(
            "phase {phase}: a range is of whole numbers, and {field} of record {} holds a {kind}; ask \
             for such values with `where`",
            n + 1
        )));
    }
    Ok(())
}

/// The numbers of so many records, until somebody says to stop.
fn numbers(count: u64, stop: &dyn Fn() -> bool) -> impl Iterator<Item = u64> {
    const OFTEN: u64 = 1 << 10;
    (0..count).take_while(move |n| !n.is_multiple_of(OFTEN) || !stop())
}

/// What belongs to whom, where it is found by what it names.
fn belonging(by: Relation, to: &Records, field: &Path, stop: &dyn Fn() -> bool) -> Expected {
    let documents = || numbers(to.count, stop).map(|n| to.document(n));
    Expected::Belonging(Arc::new(match by {
        Relation::Index | Relation::Join => naming(documents(), field),
        Relation::Pairs => naming_in_pairs(documents, field),
        Relation::Embedded | Relation::References => return Expected::Unknown,
    }))
}

/// Whether the queries of a workload can be asked of these records, before any store is started.
///
/// # Errors
/// [`Invalid`](crate::ErrorKind::Invalid), naming the phase, for a field that is in no record, and for a query
/// that nothing answers where the workload does not say that it is meant so.
pub(super) fn sound(
    workload: &Workload,
    records: &[(String, Records)],
    expected: &[Expected],
    stop: &dyn Fn() -> bool,
) -> Result<()> {
    let mut set: Vec<(&str, &str)> = Vec::new();
    if stop() {
        // What was counted is not all there is.
        return Ok(());
    }
    for (phase, expected) in workload.phases.iter().zip(expected) {
        let Some((_, of)) = records.iter().find(|r| r.0 == phase.table) else { continue };
        let mut paths: Vec<Path> = Vec::new();
        match &phase.act {
            Act::Find { filter, range, sort, .. } => {
                filter.tests(&mut |path, _| paths.push(path.clone()));
                paths.extend(sort.iter().map(|(path, _)| path.clone()));
                paths.extend(range.iter().map(|range| range.field.clone()));
            }
            Act::Delete(filter) => filter.tests(&mut |path, _| paths.push(path.clone())),
            Act::Index { paths: all, .. } => paths.extend_from_slice(all),
            Act::Relate { by: Relation::Embedded | Relation::References, field, .. } => {
                paths.push(field.clone());
            }
            Act::Relate { to, field, .. } => nothing_belongs(phase, to, field, of, expected, stop)?,
            Act::Update { set: fields, .. } => {
                set.extend(fields.iter().map(|(name, _)| (phase.table.as_str(), name)));
            }
            _ => {}
        }
        for path in paths.iter().filter(|path| !path.is_key()) {
            let is_set = set.contains(&(phase.table.as_str(), path.names()[0].as_str()));
            let there = |n: u64| value(&of.document(n), path.names()).is_some();
            if !is_set && !numbers(of.count, stop).any(there) && !stop() {
                let what = format!("phase {}: no record has a field {path}", phase.name);
                return Err(Error::invalid(what));
            }
        }
        let Act::Find { filter, range, expect, .. } = &phase.act else { continue };
        if let Some(range) = range {
            only_whole_numbers(&phase.name, &range.field, of)?;
        }
        let found = match (expected, range) {
            (Expected::Records(n), _) => Some(*n),
            (Expected::Numbers(numbers), Some(_)) if numbers.is_empty() => Some(0),
            _ => None,
        };
        match (found, expect) {
            (Some(0), None) => {
                return Err(Error::invalid(format!(
                    "phase {}: no record fits {filter}: nothing would be measured but how fast a \
                     store finds nothing; where that is meant, say expect = 0 in the workload",
                    phase.name
                )));
            }
            (Some(found), Some(expect)) if found != *expect => {
                return Err(Error::invalid(format!(
                    "phase {}: an answer has {found} records, not {expect} as expect says",
                    phase.name
                )));
            }
            _ => {}
        }
    }
    Ok(())
}

/// # Errors
/// [`Invalid`](crate::ErrorKind::Invalid) where no record of `to` names a record of the phase's table.
fn nothing_belongs(
    phase: &Phase,
    to: &str,
    field: &Path,
    records: &Records,
    expected: &Expected,
    stop: &dyn Fn() -> bool,
) -> Result<()> {
    let Expected::Belonging(all) = expected else { return Ok(()) };
    let named = |n| records.key(n).is_ok_and(|key| all.contains_key(&*key));
    if numbers(records.count, stop).any(named) || stop() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "phase {}: no record of {to} has the key of one of {} in its field {field}",
        phase.name, phase.table
    )))
}

fn count(phase: &Phase, records: &Records, gone: &[&Filter], stop: &dyn Fn() -> bool) -> Expected {
    let gone: Vec<Query> = gone.iter().map(|filter| Query::new((*filter).clone())).collect();
    // What is there and fits.
    let fitting = |filter: &Filter| {
        let (query, gone) = (Query::new(filter.clone()), &gone);
        numbers(records.count, stop).filter_map(move |n| records.row(n).ok()).filter(move |row| {
            query.matches(&row.key, &row.record)
                && !gone.iter().any(|gone| gone.matches(&row.key, &row.record))
        })
    };
    match &phase.act {
        Act::Find { filter, range: Some(Range { field, .. }), .. } => {
            let number = |row: Row| match value(&row.record, field.names()) {
                Some(Value::Int(n)) => Some(*n),
                _ => None,
            };
            let mut numbers: Vec<i64> = fitting(filter).filter_map(number).collect();
            numbers.sort_unstable();
            Expected::Numbers(numbers)
        }
        Act::Find { filter, range: None, most, .. } => {
            let found = fitting(filter).count() as u64;
            Expected::Records(found.min(most.unwrap_or(u64::MAX)))
        }
        Act::Delete(filter) => Expected::Records(fitting(filter).count() as u64),
        Act::Scan if !gone.is_empty() => Expected::Records(fitting(&Filter::All).count() as u64),
        _ => Expected::Records(records.count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected_of(name: &str) -> (Workload, Vec<Expected>) {
        let workload = Workload::named(name).unwrap().scaled(0.1);
        let records: Vec<_> = (workload.tables.iter())
            .map(|table| (table.name.clone(), Records::new(table, None, 1).unwrap()))
            .collect();
        let expected = expected(&workload, &records, &|| false);
        (workload, expected)
    }

    #[test]
    fn counts_follow_from_the_records() {
        let (workload, expected) = expected_of("documents");
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
    fn ranges_know_all_numbers_and_changed_tables_nothing() {
        let (workload, expected) = expected_of("inserts");
        let at = workload.phases.iter().position(|p| p.name.starts_with("range")).unwrap();
        let Expected::Numbers(numbers) = &expected[at] else { panic!("{:?}", expected[at]) };
        assert_eq!((numbers.len(), numbers[4], numbers[5]), (2_000, 0, 1));
        let (_, expected) = expected_of("mixed");
        assert_eq!(expected.last(), Some(&Expected::Unknown));
    }

    #[test]
    fn what_is_to_stop_stops_within_some_records() {
        let asked = std::cell::Cell::new(0);
        let stop = || {
            asked.set(asked.get() + 1);
            asked.get() > 3
        };
        assert!(numbers(u64::MAX, &stop).count() < 10_000);
    }
}
