//! What a run will do, before anything is done: phases, and the results that carry the plan.

use std::collections::HashMap;

use super::{
    Options,
    adapter::STEELYARD,
    rows::{ITERATIONS, Row, STORED, Wanted},
    session::Ask,
    values::Values,
};
use crate::{
    Error, Result, machine,
    results::{Contrast, Dataset, Phase, Results, SCHEMA},
    schedule::Pace,
};

/// A pass of an open loop lasts about so many seconds.
const OPEN: f64 = 1.0;

/// Iterations in a pass of writes that are not waited for, at least.
const FLOOD: u64 = 1_000;

/// The phases, and what each asks.
pub(super) fn phases(
    options: &Options<'_>,
    values: &[Values],
) -> Result<(Vec<Phase>, HashMap<String, Ask>)> {
    let (mut phases, mut asks) = (Vec::new(), HashMap::new());
    for (value, made) in values.iter().enumerate() {
        for &connections in &options.connections {
            for row in Row::ALL {
                for object in [false, true] {
                    let ask = Ask { row, object, value, connections, rate: options.rate };
                    let open = ask.rate.is_some();
                    if !is_wanted(options, row, object) || (open && row == Row::Noblock) {
                        continue;
                    }
                    let phase = phase(options, &ask, made);
                    asks.insert(phase.id.clone(), ask);
                    phases.push(phase);
                }
            }
        }
    }
    if phases.is_empty() {
        return Err(Error::invalid(
            "nothing to do: no rows, no values or no connections are left (writes that are not \
             waited for have no rate)",
        ));
    }
    if phases.len() > asks.len() {
        return Err(Error::invalid("the same value, or number of connections, is there twice"));
    }
    Ok((phases, asks))
}

fn is_wanted(options: &Options<'_>, row: Row, object: bool) -> bool {
    let is = |w: &Wanted| w.row == row && w.object.is_none_or(|kind| kind == object);
    options.rows.is_empty() || options.rows.iter().any(is)
}

fn phase(options: &Options<'_>, ask: &Ask, values: &Values) -> Phase {
    let Ask { row, object, connections, .. } = *ask;
    let kind = if object { "object" } else { "plain" };
    let label = &values.label;
    let table = match connections {
        1 => format!("{label}, 1 connection"),
        n => format!("{label}, {n} connections"),
    };
    let units = match (ask.rate, options.as_published) {
        (Some(rate), _) => (rate * OPEN).max(1.0) as u64,
        (None, true) => row.steps() * ITERATIONS,
        // What is sent last is a small part of it, whoever sends it.
        (None, false) if row == Row::Noblock => row.steps() * FLOOD,
        // Small: as many passes as a window takes are made of it.
        (None, false) => row.steps(),
    };
    // Whole iterations of every connection: of two passes there are twice the counts of one.
    let units = units.next_multiple_of(row.steps() * u64::from(connections.max(1)));
    let mut about = row.about().to_owned();
    if object {
        about.push_str(" Values are objects, serialized and read at each call.");
    }
    let phase = Phase {
        unit: "calls".into(),
        pace: ask.rate.map(Pace::Poisson),
        concurrency: connections,
        cache: Some(row.told(object, label, connections)),
        ..Phase::new(&format!("{} {kind} {label}", row.name()), &table, units, &about)
    };
    phase.at(u64::from(connections))
}

/// Our client against each other one; against the baseline there is a comparison anyway.
pub(super) fn contrasts(results: &Results, taking: &[&str]) -> Vec<Contrast> {
    if !taking.contains(&STEELYARD) {
        return Vec::new();
    }
    let mut contrasts = Vec::new();
    for other in taking.iter().filter(|name| **name != STEELYARD && **name != results.baseline) {
        for phase in results.phases.iter().filter(|p| p.pace.is_none()) {
            contrasts.push(Contrast {
                about: phase.id.clone(),
                of: (STEELYARD.into(), phase.id.clone()),
                to: ((*other).to_owned(), phase.id.clone()),
                versus: None,
            });
        }
    }
    contrasts
}

/// Results in which nothing is measured yet.
pub(super) fn blank(options: &Options<'_>, values: &[Values]) -> Results {
    let sizes = |v: &Values| {
        let all: Vec<String> = v.bytes.iter().map(|b| b.len().to_string()).collect();
        match all.iter().all(|size| *size == all[0]) {
            true => format!("{}: {} bytes", v.label, all[0]),
            false => format!("{}: {} bytes", v.label, all.join(", ")),
        }
    };
    let sizes: Vec<String> = values.iter().map(sizes).collect();
    let records = (values.len() * STORED) as u64;
    let format = &options.format;
    let settings = [
        ("Values", format!("of the three keys that are stored, in {format}: {}", sizes.join("; "))),
        (
            "Keys",
            "those of the published test: of 5, 96 and 160 bytes, and of 48, 56 and 200 that are \
             never stored"
                .into(),
        ),
        (
            "Times",
            "each client says what its own process took, from the first call of a window to the \
             last; connections are there and values stored before; every value that is read is \
             compared, every count is checked"
                .into(),
        ),
    ];
    Results {
        schema: SCHEMA,
        bench: "cache".into(),
        started: machine::now(),
        plan: options.plan.clone(),
        software: machine::software(),
        machine: machine::describe(),
        settings: settings.map(|(k, v)| (k.to_owned(), v)).into(),
        dataset: Dataset {
            name: "the published test's keys".into(),
            records,
            of: records,
            kind: "values".into(),
            ..Dataset::default()
        },
        ..Results::default()
    }
}
