//! The page of `bench cache`: which client of memcached, for which calls.
//!
//! Rows are those of the published test; a table is one kind of value on one number of connections.
//! The floor is no client: it is what a client is held against, and takes no rank from any.

mod rows;
mod tables;
mod verdict;

use super::{marks, page::Page};
use steelyard_results::{CacheRow, Contender, Phase, Results};

/// What no client can be faster than.
pub(super) const FLOOR: &str = "floor";

pub(super) fn page(results: &Results) -> Page {
    let mut lead = verdict::verdict(results);
    lead.extend(marks::cautions(results));
    lead.extend(results.dataset.remarks.iter().cloned());
    let mut sections = Vec::new();
    sections.extend(tables::published(results));
    for table in tables(results) {
        sections.extend(tables::overview(results, table));
    }
    sections.extend(tables::against(results));
    sections
        .extend(results.phases.iter().filter(|p| !is_open(p)).map(|p| rows::closed(results, p)));
    sections.extend(results.phases.iter().filter(|p| is_open(p)).map(|p| rows::open(results, p)));
    sections.extend(tables::clients(results));
    let mut notes = vec![COLUMNS.to_owned()];
    notes.extend(marks::notes(results));
    Page { title: title(results), lead, sections, notes }
}

/// What the columns of the tables hold.
const COLUMNS: &str = "µs: elapsed microseconds for one call, as the client's process has them. user, \
    system: of them, processor time of the client; the rest is the servers' and the kernel's between \
    them, on the same processor. system calls: of the client for each call, counted with strace in a \
    pass of its own. p50 to max: single calls, all rounds together.";

/// What was measured: `Clients of memcached, values of 4 B and 1 kB`.
pub(super) fn title(results: &Results) -> String {
    let mut values: Vec<&str> = Vec::new();
    for row in results.phases.iter().filter_map(|p| p.cache.as_ref()) {
        if !values.contains(&row.value.as_str()) {
            values.push(&row.value);
        }
    }
    format!("Clients of memcached, values of {}", super::words::list(&values))
}

/// True where calls were sent at moments planned beforehand.
fn is_open(phase: &Phase) -> bool {
    phase.is_open()
}

/// The competitors that are clients, or the floor.
fn contenders(results: &Results) -> impl Iterator<Item = &Contender> {
    results.competitors.iter().filter(|c| !c.null && c.refused.is_none())
}

/// The tables of phases in a closed loop, in the order of the plan.
fn tables(results: &Results) -> Vec<&str> {
    let mut tables: Vec<&str> = Vec::new();
    for phase in results.phases.iter().filter(|p| !is_open(p)) {
        if !tables.contains(&phase.table.as_str()) {
            tables.push(&phase.table);
        }
    }
    tables
}

/// The phases of a table.
fn phases<'a>(
    results: &'a Results,
    table: &'a str,
) -> impl Iterator<Item = (&'a Phase, &'a CacheRow)> {
    let own = results.phases.iter().filter(move |p| p.table == table && !is_open(p));
    own.filter_map(|p| Some((p, p.cache.as_ref()?)))
}

/// `set plain`.
fn row_name(row: &CacheRow) -> String {
    format!("{} {}", row.row, if row.object { "object" } else { "plain" })
}

/// The rank group of the fastest client, the floor not being one.
fn best(results: &Results, phase: &Phase) -> Option<u32> {
    let clients = contenders(results).filter(|c| c.name != FLOOR);
    let groups = clients.filter_map(|c| {
        let summary = results.cell(&c.name, &phase.id)?.summary.as_ref()?;
        Some(summary.group).filter(|rank| *rank > 0)
    });
    groups.min()
}

/// Whether no other client was shown to be faster than this one.
fn is_first(results: &Results, name: &str, phase: &Phase) -> bool {
    let summary = results.cell(name, &phase.id).and_then(|cell| cell.summary.as_ref());
    name != FLOOR && summary.is_some_and(|s| s.group > 0 && Some(s.group) == best(results, phase))
}
