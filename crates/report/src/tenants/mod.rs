//! The page of `bench tenants`: one table for all tenants, a database for each, and the gateway before those.
//!
//! A table is one store with all numbers of tenants; each number was measured by itself, and ratios are within its
//! rounds.

mod answer;
mod tables;

use super::{marks, number::whole, page::Page, words::list};
use steelyard_results::{
    Results,
    tenants::{DATABASE, GATEWAY, SCHEMA, SHARED, Tenants},
};

pub(super) use answer::answer;

pub(super) fn page(results: &Results) -> Page {
    let mut lead = answer::sentences(results);
    lead.extend(marks::cautions(results));
    lead.extend(results.dataset.remarks.iter().cloned());
    let mut sections = Vec::new();
    if let Some(tenants) = &results.tenants {
        for store in tenants.stores() {
            sections.push(tables::overview(results, tenants, store));
        }
        sections.extend(tables::gateway(results));
        sections.extend(tables::each(tenants));
    }
    sections.extend(results.phases.iter().filter_map(|phase| tables::operation(results, phase)));
    Page { title: title(results), lead, sections, notes: marks::notes(results) }
}

/// What was measured: `Tenants: 1 to 1,000 with 1,000 people each, on sqlite`.
pub(super) fn title(results: &Results) -> String {
    let Some(tenants) = &results.tenants else { return "Tenants".into() };
    let stores = tenants.stores();
    let mut sizes: Vec<u64> = stores.iter().flat_map(|store| tenants.sizes(store)).collect();
    sizes.sort_unstable();
    let many = match (sizes.first(), sizes.last()) {
        (Some(a), Some(b)) if a < b => format!("{} to {}", whole(*a), whole(*b)),
        (Some(a), _) => whole(*a),
        _ => "none".into(),
    };
    let documents = whole(tenants.documents);
    let on: Vec<String> = stores
        .iter()
        .map(|store| match tenants.tier(store) {
            Some(tier) => format!("{store} ({tier})"),
            None => (*store).to_owned(),
        })
        .collect();
    format!("Tenants: {many} with {documents} {} each, on {}", results.dataset.kind, list(&on))
}

/// What an arm is, behind `queries take … in`.
fn phrase(arm: &str) -> &str {
    match arm {
        SHARED => "one table",
        DATABASE => "a database each",
        SCHEMA => "a schema each",
        GATEWAY => "a database each behind the gateway",
        other => other,
    }
}

/// The arms of a store in the order in which they are told.
fn arms<'t>(tenants: &'t Tenants, store: &str) -> Vec<&'t str> {
    let known = [SHARED, DATABASE, SCHEMA, GATEWAY];
    let mut arms = tenants.arms(store);
    arms.sort_by_key(|arm| known.iter().position(|k| k == arm).unwrap_or(known.len()));
    arms
}

/// `1 tenant`, `1,000 tenants`.
fn counted(n: u64, one: &str) -> String {
    match n {
        1 => format!("1 {one}"),
        n => format!("{} {one}s", whole(n)),
    }
}
