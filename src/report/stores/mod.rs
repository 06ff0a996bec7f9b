//! The page of `bench stores`: which store, for these records and this workload.
//!
//! Stores are told apart by durability before anything else: a store that syncs each write is never
//! ranked against one that does not (rule 4). The rank groups are made that way, every row names its
//! tier, and the verdict speaks of one tier at a time.

mod charts;
mod kept;
mod latency;
mod phases;
mod verdict;

use super::{
    marks,
    number::bytes,
    page::Page,
    tables,
    words::{records, these},
};
use crate::bench::results::{Contender, Pace, Phase, Results};

pub(super) use self::{charts::distribution, latency::planned, phases::server as server_ns};

pub(super) fn page(results: &Results) -> Page {
    let mut lead = verdict::verdict(results);
    lead.extend(marks::cautions(results));
    lead.extend(results.dataset.remarks.iter().cloned());
    let mut sections = Vec::new();
    sections.extend(phases::overview(results));
    sections.extend(tables::fidelity(results));
    for phase in results.phases.iter().filter(|p| !is_open(p)) {
        sections.push(phases::phase(results, phase));
        sections.extend(latency::closed(results, phase));
    }
    sections.extend(latency::open(results));
    sections.extend(kept::space(results));
    sections.extend(kept::stores(results));
    let mut notes = vec![COLUMNS.to_owned()];
    notes.extend(about(results));
    notes.extend(kept::settings(results));
    notes.extend(marks::notes(results));
    let name = results.workload.as_ref().map_or("a workload", |w| w.name.as_str());
    Page {
        title: format!("Stores: {name} on {}", records(&results.dataset)),
        lead,
        sections,
        notes,
    }
}

/// What the columns of the tables hold.
const COLUMNS: &str = "rank: among stores of the same durability; those of one rank were not shown \
    to be slower than its first. user, system, total: processor time of this program, the client, in \
    seconds. real: what one waits for. server CPU: processor time of the private server, all its \
    processes. durability: t0 volatile, t1 survives the end of the process, t2 bounded loss when the \
    machine crashes, t3 durable when acknowledged.";

/// What was kept, with its size: `these 18,881 MARC records (56.1 MB as JSON lines)`.
fn weighed(results: &Results) -> String {
    let data = &results.dataset;
    let named = format!("{} {}", these(data), records(data));
    match data.sizes.get("") {
        Some(size) => format!("{named} ({} as JSON lines)", bytes(*size)),
        None => named,
    }
}

/// What an operation of a phase is, in the plural.
fn unit(phase: &Phase) -> &str {
    if phase.unit.is_empty() { "records" } else { &phase.unit }
}

/// True where operations were sent at moments planned beforehand, so that time says nothing of
/// capacity.
fn is_open(phase: &Phase) -> bool {
    phase.pace.is_some_and(|p| p != Pace::Free)
}

/// True where time says what a store can do, which is what it is chosen for: not of moments that were
/// planned, nor of what it had put off.
fn is_asked_for(phase: &Phase) -> bool {
    !is_open(phase) && phase.name != "settle"
}

/// What a phase at a share of the capacity is a share of: `get` of `get at 25 %`.
fn family(phase: &Phase) -> &str {
    match (phase.pace, phase.name.rsplit_once(" at ")) {
        (Some(Pace::Share(_)), Some((family, _))) => family,
        _ => &phase.name,
    }
}

/// The competitors that are stores.
fn contenders(results: &Results) -> impl Iterator<Item = &Contender> {
    results.competitors.iter().filter(|c| !c.null)
}

/// What ran, in sentences.
fn about(results: &Results) -> Vec<String> {
    let Some(workload) = &results.workload else { return Vec::new() };
    let mut said = format!("The workload {}: {}", workload.name, workload.about.trim());
    if !said.ends_with('.') {
        said.push('.');
    }
    if let Some(source) = &workload.source {
        let counts = if workload.as_published { "with its counts" } else { "put right" };
        said.push_str(&format!(" After {source}, {counts}."));
    }
    vec![said]
}
