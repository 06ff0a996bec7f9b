//! The page of `bench stores`: which store, for these records and this workload.
//!
//! Stores are told apart by durability before anything else: a store that syncs each write is never
//! ranked against one that does not (rule 4). The rank groups are made that way, every row names its
//! tier, and the verdict speaks of one tier at a time.

mod bloat;
mod charts;
mod cost;
mod curve;
mod index;
mod kept;
mod latency;
mod memory;
mod phases;
mod queries;
mod recovery;
mod verdict;

use super::{
    lead::{be_faster, has_ranks},
    marks,
    number::{bytes, short},
    page::Page,
    tables,
    words::{records, these},
};
use steelyard_results::{Contender, Phase, Results};

pub(super) use self::{
    charts::{distribution, rate_bars},
    latency::{CLOSED, planned},
    phases::server as server_ns,
};

pub(super) fn page(results: &Results) -> Page {
    let mut lead = verdict::verdict(results);
    lead.extend(network(results));
    lead.extend(curve::told(results));
    lead.extend(marks::cautions(results));
    lead.extend(results.dataset.remarks.iter().cloned());
    let mut sections = Vec::new();
    sections.extend(phases::overview(results));
    sections.extend(queries::section(results));
    sections.extend(tables::fidelity(results));
    for phase in results.phases.iter().filter(|p| stands_alone(results, p)) {
        sections.push(phases::phase(results, phase));
        sections.extend(latency::closed(results, phase));
    }
    sections.extend(curve::sections(results));
    sections.extend(latency::open(results));
    sections.extend(memory::sections(results));
    sections.extend(bloat::section(results));
    sections.extend(index::section(results));
    sections.extend(recovery::section(results));
    sections.extend(kept::space(results));
    sections.extend(cost::section(results));
    sections.extend(kept::stores(results));
    let mut notes = vec![columns(results)];
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
fn columns(results: &Results) -> String {
    let rank = match has_ranks(results) {
        true => format!(
            "rank: 1 more than there are stores of the same durability that were shown to {}. ",
            be_faster(results)
        ),
        false => String::new(),
    };
    rank + COLUMNS
}

const COLUMNS: &str = "user, system, total: processor time of this program, the client, in \
    seconds. real: elapsed time. server CPU: processor time of the private server, all its \
    processes. durability: t0 volatile, t1 survives the end of the process, t2 bounded loss when the \
    machine crashes, t3 durable when acknowledged; by settings: its syncs were not counted, and it is not \
    ranked with those that were observed.";

/// The network between client and server, if there was one.
fn network(results: &Results) -> Option<String> {
    let network = results.network?;
    let ms = |ns: u64| short(ns as f64 / 1e6);
    Some(format!(
        "Measured with {} ms of network round trip between client and server (as measured, {} ms; the \
         relay itself adds {} µs). Stores in this process have no network.",
        ms(network.round_trip_ns),
        ms(network.measured_ns),
        short(network.relay_ns as f64 / 1e3)
    ))
}

/// What was kept, with its size: `these 18,881 MARC records (56.1 MB as JSON lines)`.
fn weighed(results: &Results) -> String {
    let data = &results.dataset;
    let named = format!("{} {}", these(data), records(data));
    match data.sizes.get("") {
        Some(size) => format!("{named} ({} as JSON lines)", bytes(*size)),
        None => named,
    }
}

/// Bytes on disk, data and log files together; `None` of what keeps its records in memory, or was not
/// looked at.
pub(super) fn disk(results: &Results, contender: &Contender) -> Option<u64> {
    let kept = contender.store.as_ref()?;
    (!kept.durability.class().is_volatile()).then(|| kept::Space::of(results, contender).total)?
}

/// What an operation of a phase is, in the plural.
pub(super) fn unit(phase: &Phase) -> &str {
    if phase.unit.is_empty() { "records" } else { &phase.unit }
}

/// True where operations were sent at moments planned beforehand, so that time says nothing of
/// capacity.
fn is_open(phase: &Phase) -> bool {
    phase.is_open()
}

/// True where time says what a store can do, which is what it is chosen for: not of moments that were
/// planned, nor of what it had put off, nor of a crash; and not of the points of a curve.
pub(super) fn is_asked_for(phase: &Phase) -> bool {
    !is_open(phase) && !is_part(phase) && !matches!(phase.kind.as_str(), "settle" | "recover")
}

/// True where a phase is a point of a curve, or was measured with a limited cache: those have a section
/// together.
fn is_part(phase: &Phase) -> bool {
    is_point(phase) || phase.room.is_some()
}

/// True where a phase is one number of operations at once of a curve.
fn is_point(phase: &Phase) -> bool {
    phase.of.is_some() && phase.size.is_some()
}

/// True where a phase has sections of its own; one for which no store had anything to do has none.
fn stands_alone(results: &Results, phase: &Phase) -> bool {
    let idle = || {
        let mut cells = results.cells.iter().filter(|cell| cell.phase == phase.id);
        phase.kind == "settle" && cells.all(|cell| cell.rounds.is_empty())
    };
    !is_open(phase) && !is_part(phase) && !idle()
}

/// The phase that this one belongs to, by its name: `get` of the share `get at 25 %`.
fn family(phase: &Phase) -> &str {
    phase.of.as_deref().unwrap_or(&phase.name)
}

/// The families of phases of which this is true, in their order.
fn families(results: &Results, which: fn(&Phase) -> bool) -> Vec<&str> {
    let mut families = Vec::new();
    for phase in results.phases.iter().filter(|p| which(p)) {
        if !families.contains(&family(phase)) {
            families.push(family(phase));
        }
    }
    families
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
        let counts = if workload.as_published { "with its counts" } else { "corrected" };
        said.push_str(&format!(" After {source}, {counts}."));
    }
    vec![said]
}
