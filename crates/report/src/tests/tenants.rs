//! Tenants that were never there: two stores with few and with many, in every way.

use super::*;
use steelyard_results::tenants::{
    DATABASE, GATEWAY, Held, SCHEMA as SCHEMAS, SHARED, Seen, Tenancy, Tenants,
};

/// What a way takes in times the one table: a query with few tenants and with many, an insert.
const COSTS: [(&str, f64, f64, f64); 4] = [
    (SHARED, 1.0, 1.0, 1.0),
    (DATABASE, 1.0, 90.0, 40.0),
    (SCHEMAS, 1.04, 3.0, 1.2),
    (GATEWAY, 2.2, 100.0, 42.0),
];

/// 1, 10 and 1,000 tenants of these stores.
pub(crate) fn tenants(stores: &[&str]) -> Results {
    let mut phases = Vec::new();
    for store in stores {
        for size in [1, 10, 1000] {
            for (kind, unit, factor) in [
                ("query", "queries", 1.0),
                ("insert", "inserts", 4.0),
                ("touch", "first queries", 9.0),
            ] {
                let table = format!("{store}, {size} tenants");
                let named = Phase::new(&format!("{kind} {store}"), &table, 400, "What is timed.");
                let phase = Phase {
                    kind: kind.into(),
                    unit: unit.into(),
                    concurrency: 1,
                    tenants: Some(Tenancy { store: (*store).into(), tenants: size }),
                    ..named
                };
                phases.push((phase.at(size), factor));
            }
        }
    }
    let costs: Vec<(&str, f64)> =
        COSTS.iter().map(|cost| (cost.0, 50_000.0)).chain([("null", 500.0)]).collect();
    let mut results = results("tenants", &costs, &phases);
    results.dataset =
        Dataset { kind: "people".into(), records: 1_000_000, of: 1_000_000, ..Dataset::default() };
    let alone = |cell: &Cell, kind: &str| cell.phase.starts_with(kind);
    let mut times = Histogram::new();
    (0..2000).for_each(|n| times.record(40_000 + 10 * n));
    for cell in &mut results.cells {
        let Some((_, few, many, insert)) = COSTS.iter().find(|cost| cost.0 == cell.competitor)
        else {
            continue;
        };
        let factor = match (cell.phase.ends_with("@1000"), alone(cell, "insert")) {
            (true, false) => *many,
            (true, true) => *insert,
            (false, _) => *few,
        };
        for round in &mut cell.rounds {
            for ns in [&mut round.ns, &mut round.user_ns, &mut round.system_ns] {
                *ns = (*ns as f64 * factor) as u64;
            }
        }
        cell.latency = Some(Latency { response: times.clone(), ..Latency::default() });
        cell.tally = Some(Tally { done: 9600, ..Tally::default() });
    }
    // Of one tenant nobody else can be touched; the null competitor touches nobody; only one store has schemas.
    results
        .phases
        .retain(|phase| phase.id != "touch" && !(phase.kind == "touch" && phase.size == Some(1)));
    let known: Vec<String> = results.phases.iter().map(|phase| phase.id.clone()).collect();
    results.cells.retain(|cell| {
        let touched = cell.competitor == "null" && alone(cell, "touch");
        let schema = cell.competitor == SCHEMAS && !cell.phase.contains("postgres");
        known.contains(&cell.phase) && !touched && !schema
    });
    let mut held = Vec::new();
    for store in stores {
        for (size, grown) in [(1u64, 1.0), (10, 1.1), (1000, 40.0)] {
            for (n, (arm, ..)) in COSTS.iter().enumerate() {
                if *arm == SCHEMAS && !store.starts_with("postgres") {
                    continue;
                }
                let seen = |round| Seen {
                    round,
                    memory: Some((10e6 * grown) as u64 + 1000 * n as u64),
                    files: Some((20.0 * grown) as u64),
                    restart_ns: Some(30_000_000),
                };
                held.push(Held {
                    store: (*store).into(),
                    arm: (*arm).into(),
                    tenants: size,
                    tier: Some("t3".into()),
                    refused: None,
                    making_ns: if *arm == GATEWAY { 0 } else { 1_500_000_000 },
                    disk: Some(size * 200_000 * (n as u64 + 1)),
                    seen: (0..3).map(seen).collect(),
                });
            }
        }
    }
    for store in stores {
        for kind in ["query", "insert"] {
            let id = format!("{kind} {store}@1000");
            results.contrasts.push(Contrast {
                about: format!("{kind} through the gateway, {store}, 1000 tenants"),
                of: (GATEWAY.into(), id.clone()),
                to: (DATABASE.into(), id),
                versus: None,
            });
        }
    }
    results.tenants = Some(Tenants { documents: 1000, open: 128, answer: 10.0, held });
    derive(&mut results);
    results
}

#[test]
fn a_page_of_tenants() {
    insta::assert_snapshot!("tenants", text(&tenants(&["sqlite"])));
}

#[test]
fn what_was_not_made_is_told_and_nothing_is_said_of_it() {
    let mut results = tenants(&["sqlite"]);
    let why = "failed: after 412 of 1000 databases: no space";
    for cell in &mut results.cells {
        if cell.competitor == DATABASE && cell.phase.ends_with("@1000") {
            (cell.rounds, cell.refused) = (Vec::new(), Some(why.into()));
        }
    }
    let held = &mut results.tenants.as_mut().unwrap().held;
    held.iter_mut().filter(|held| held.arm == DATABASE && held.tenants == 1000).for_each(|held| {
        (held.refused, held.seen, held.disk) = (Some(why.into()), Vec::new(), None)
    });
    derive(&mut results);
    let said = text(&results);
    assert!(said.contains(why), "{said}");
    assert!(said.contains("sqlite, 10 databases against one table"), "{said}");
    assert!(!said.contains("1,000 databases against"), "{said}");
}

#[test]
fn few_rounds_have_no_interval_and_so_no_answer_to_the_question() {
    let mut results = tenants(&["sqlite"]);
    results.cells.iter_mut().for_each(|cell| cell.rounds.truncate(3));
    derive(&mut results);
    let said = text(&results);
    assert!(said.contains("too few rounds") && !said.contains("is within"), "{said}");
    assert!(!said.contains("is not within") && said.contains("starts of the processes"), "{said}");
}
