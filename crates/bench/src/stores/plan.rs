//! The results of a workload before anything is done: what is planned, on which records.

use std::collections::BTreeMap;

use super::{Options, data::Records, expected::Expected};
use crate::{
    Error, Result,
    format::{Format, Wrap},
    machine,
    results::{self, Dataset, Results, SCHEMA},
    schedule::Limit,
    workload::{Phase, Workload},
};

/// The results before anything is done.
pub(super) fn blank(
    options: &Options<'_>,
    all: &[(String, Records)],
    expected: &[Expected],
) -> Results {
    let workload = &options.workload;
    let (first, records) = (&workload.tables[0], &all[0].1);
    let filled = filled(workload, all);
    let mut dataset = match &options.records {
        Some(own) => own.described.clone(),
        None => Dataset {
            name: format!("{}, seed {}", first.dataset.name(), options.plan.seed),
            of: records.count,
            ..Dataset::default()
        },
    };
    // What is kept and weighed is what all tables hold.
    let others: u64 = filled.iter().map(|(_, other)| other.count).sum::<u64>() - records.count;
    (dataset.records, dataset.of) = (records.count + others, dataset.of + others);
    for table in workload.tables[1..].iter().filter(|t| filled.iter().any(|f| f.0 == t.name)) {
        dataset.name += &format!("; {}: {}", table.name, table.dataset.name());
    }
    if options.records.is_some() && filled.len() > 1 {
        dataset.remarks.push(format!(
            "The records that were given are those of table {}; the other tables hold generated ones.",
            first.name
        ));
    }
    if dataset.kind.is_empty() {
        dataset.kind = "records".into();
    }
    for (_, records) in &filled {
        for (wrap, size) in sizes(records) {
            *dataset.sizes.entry(wrap).or_default() += size;
        }
    }
    let phases = workload.phases.iter().zip(expected).zip(workload.families());
    let phases = phases.map(|((phase, expected), of)| results::Phase {
        id: phase.name.clone(),
        name: phase.name.clone(),
        table: workload.name.clone(),
        about: phase.about(),
        kind: phase.word().into(),
        of,
        query: phase.kind.asked(expected),
        room: phase.room.map(|room| results::Room { share: room.share, warm: room.warm }),
        // A point of a curve stands at its concurrency.
        size: (phase.of.is_some() && phase.room.is_none()).then_some(phase.concurrency.into()),
        units: units(phase, all, expected),
        unit: phase.unit().into(),
        pace: phase.one_by_one().then_some(phase.pace),
        concurrency: if phase.one_by_one() { phase.concurrency } else { 0 },
        ..results::Phase::default()
    });
    Results {
        schema: SCHEMA,
        bench: "stores".into(),
        workload: Some(results::Workload {
            name: workload.name.clone(),
            about: workload.about.clone(),
            source: workload.source.clone(),
            as_published: options.as_published,
            text: workload.text.clone(),
        }),
        started: machine::now(),
        plan: options.plan.clone(),
        software: machine::software(),
        machine: machine::describe(),
        settings: BTreeMap::from([(
            "Stores".to_owned(),
            "one at a time, each on fresh data in every round; private servers are started anew for it; \
             records are made and operations drawn outside of the timed windows; after each load and each \
             new index the store gathers its planner's statistics (ANALYZE), untimed; a connection to a \
             server for each operation that may be on its way, unless ?pool= says otherwise"
                .to_owned(),
        )]),
        dataset,
        phases: phases.collect(),
        ..Results::default()
    }
}

/// How many operations a phase has; 0 where that is known only when it has been done once.
fn units(phase: &Phase, all: &[(String, Records)], expected: &Expected) -> u64 {
    let records = all.iter().find(|r| r.0 == phase.table).map_or(0, |r| r.1.count);
    phase.kind.units(records, expected).unwrap_or(match phase.limit {
        Some(Limit::Count(n)) => n,
        Some(Limit::Seconds(_)) | None => 0,
    })
}

/// The tables that are filled: the first, and those that a phase loads.
pub(super) fn filled<'r>(
    workload: &Workload,
    all: &'r [(String, Records)],
) -> Vec<&'r (String, Records)> {
    let loaded = |name: &str| {
        let loads = |phase: &Phase| phase.loads() && phase.table == name;
        workload.phases.iter().any(loads)
    };
    let those = all.iter().enumerate().filter(|(i, (name, _))| *i == 0 || loaded(name));
    those.map(|(_, table)| table).collect()
}

/// Bytes of the records as JSON lines: of some from all over, multiplied; and compressed, as far as the
/// first ones can be.
fn sizes(records: &Records) -> BTreeMap<String, u64> {
    const MEASURED: u64 = 20_000;
    const PACKED: usize = 4 << 20;
    let line = |n: u64| {
        let mut line = Vec::new();
        match Format::Json.encode(&records.document(n), &mut line) {
            Ok(()) => line.push(b'\n'),
            // What JSON refuses takes no room there.
            Err(_) => line.clear(),
        }
        line
    };
    let step = records.count.div_ceil(MEASURED).max(1) as usize;
    let going_on = |_: &u64| !records.stop.is_set();
    let numbers = (0..records.count).step_by(step).take_while(going_on);
    let lengths: Vec<usize> = numbers.map(|n| line(n).len()).collect();
    let each = lengths.iter().sum::<usize>() as f64 / lengths.len().max(1) as f64;
    let plain = each * records.count as f64;
    let mut sizes = BTreeMap::from([(String::new(), plain as u64)]);
    let mut lines = Vec::new();
    for n in 0..records.count {
        if lines.len() >= PACKED || records.stop.is_set() {
            break;
        }
        lines.extend(line(n));
    }
    for name in ["gzip", "zstd"] {
        let mut packed = Vec::new();
        let wrapped = name.parse::<Wrap>().and_then(|wrap| wrap.wrap(&lines, &mut packed));
        if wrapped.is_ok() {
            let share = packed.len() as f64 / lines.len().max(1) as f64;
            sizes.insert(name.into(), (share * plain) as u64);
        }
    }
    sizes
}

/// Sees that what is drawn beforehand fits in memory.
///
/// # Errors
/// [`Invalid`](crate::ErrorKind::Invalid), naming the phase or table.
pub(super) fn bounded(workload: &Workload) -> Result<()> {
    const OPERATIONS: u64 = 10_000_000;
    const RECORDS: u64 = 1_000_000_000;
    for phase in &workload.phases {
        if let Some(Limit::Count(count)) = phase.limit
            && count > OPERATIONS
        {
            return Err(Error::invalid(format!(
                "phase {:?}: count = {count}, and {OPERATIONS} operations are the most, as they are drawn before the \
                 clock starts; for a longer phase use seconds",
                phase.name
            )));
        }
    }
    match workload.tables.iter().find(|table| table.count > RECORDS) {
        Some(table) => Err(Error::invalid(format!(
            "table {:?}: count = {}, and {RECORDS} records are the most",
            table.name, table.count
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::expected::expected;

    #[test]
    fn what_is_weighed_is_what_all_tables_hold() {
        for name in ["documents", "relations"] {
            let workload = Workload::named(name).unwrap().scaled(0.01);
            let records = |table| Records::new(table, None, 1).unwrap();
            let all: Vec<(String, Records)> =
                workload.tables.iter().map(|t| (t.name.clone(), records(t))).collect();
            let expected = expected(&workload, &all, &|| false);
            let blank = blank(&Options::new(workload.clone()), &all, &expected);
            let filled = filled(&workload, &all);
            assert_eq!(filled.len() > 1, name == "relations");
            let (mut count, mut bytes) = (0, 0);
            for (_, records) in filled {
                count += records.count;
                for n in 0..records.count {
                    let mut line = Vec::new();
                    Format::Json.encode(&records.document(n), &mut line).unwrap();
                    bytes += line.len() as u64 + 1;
                }
            }
            assert_eq!((blank.dataset.records, blank.dataset.of), (count, count), "{name}");
            // Each table's average is multiplied, and rounded down.
            let weighed = blank.dataset.sizes[""];
            assert!(bytes.abs_diff(weighed) <= workload.tables.len() as u64, "{weighed} {bytes}");
        }
    }
}
