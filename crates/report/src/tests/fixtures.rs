//! Results of benches that never ran, for the pages of objects and of clients of memcached.

use super::*;

pub(crate) fn objects() -> Results {
    let mut phases = Vec::new();
    for size in [1_000u64, 10_000] {
        for (name, factor) in [
            ("create", 0.1),
            ("create+dump", 0.6),
            ("create+dump+base64", 0.7),
            ("load", 1.0),
            ("load+base64", 1.1),
            ("dump+load", 1.5),
            ("dump+load+base64", 1.7),
        ] {
            phases.push((Phase::new(name, "objects", size, "what is timed").at(size), factor));
        }
    }
    let mut results =
        results("objects", &[("json", 1000.0), ("msgpack", 700.0), ("null", 1.0)], &phases);
    results.dataset.records = 10_000;
    results.dataset.of = 10_000;
    results.dataset.kind = "objects".into();
    for c in results.competitors.iter_mut().filter(|c| !c.null) {
        c.sizes = [("".to_owned(), 1_400_000), ("base64".to_owned(), 1_880_000)].into();
    }
    for name in ["json", "msgpack"] {
        for series in ["create+dump", "load", "dump+load"] {
            results.contrasts.push(Contrast {
                about: format!("{series} + base64"),
                of: (name.into(), format!("{series}+base64@10000")),
                to: (name.into(), format!("{series}@10000")),
                versus: None,
            });
        }
    }
    derive(&mut results);
    results
}

/// Clients of memcached: three rows, on one connection and on eight, one with calls at planned moments.
pub(crate) fn cache() -> Results {
    let phase = |row: &str, object: bool, connections: u32, calls: u64, published: (f64, f64)| {
        let kind = if object { "object" } else { "plain" };
        let table = if connections == 1 { "4b, 1 connection" } else { "4b, 8 connections" };
        let binding = (published.0, published.0);
        let cache = CacheRow {
            row: row.into(),
            object,
            value: "4b".into(),
            connections,
            calls,
            published: Published { binding, pure: Some(published.1) },
        };
        let named = Phase::new(&format!("{row} {kind} 4b"), table, calls, "What is timed.");
        let phase = Phase { concurrency: connections, cache: Some(cache), ..named };
        phase.at(u64::from(connections))
    };
    let mut results = results(
        "cache",
        &[
            ("floor", 5000.0),
            ("steelyard", 5300.0),
            ("libmemcached", 6200.0),
            ("python", 20_000.0),
            ("null", 30.0),
        ],
        &[
            (phase("get", false, 1, 15_000, (1.17, 1.89)), 1.0),
            (phase("get", true, 1, 15_000, (1.23, 1.86)), 1.1),
            (phase("multiget", false, 1, 2_500, (0.40, 0.90)), 2.0),
            (phase("get", false, 8, 15_000, (1.17, 1.89)), 0.9),
        ],
    );
    results.dataset = Dataset { kind: "values".into(), records: 3, of: 3, ..Dataset::default() };
    let mut open = results.phases[0].clone();
    (open.id, open.pace) = ("get plain at 300".into(), Some(Pace::Poisson(300.0)));
    results.phases.push(open);
    for contender in results.competitors.iter_mut().filter(|c| !c.null) {
        contender.client = Some(CacheClient {
            about: "a client".into(),
            version: "1.2".into(),
            serializer: if contender.name == "libmemcached" { "" } else { "the format" }.into(),
            stored: vec![2, 1],
            asked: vec![5, 1],
            uncounted: (contender.name == "python").then(|| "strace may not look on".into()),
        });
    }
    let mut times = Histogram::new();
    (0..2000).for_each(|n| times.record(4000 + n));
    for cell in &mut results.cells {
        if cell.competitor == "libmemcached" && cell.phase.contains("object") {
            (cell.rounds, cell.units) = (Vec::new(), 0);
            cell.refused = Some("it has nothing that turns objects into bytes".into());
            continue;
        }
        cell.system_calls = Some(if cell.phase.contains("multiget") { 4.0 } else { 2.004 });
        cell.latency = Some(Latency { response: times.clone(), ..Latency::default() });
    }
    let planned = Round { ns: 3_300_000_000, user_ns: 90_000_000, waits: 1000, ..Round::default() };
    let some = || Some(times.clone());
    results.cells.push(Cell {
        competitor: "steelyard".into(),
        phase: "get plain at 300".into(),
        units: 1000,
        settled: true,
        rounds: (0..24).map(|n| Round { start: n, round: n, ..planned }).collect(),
        tally: Some(Tally { done: 24_000, late: 3, ..Tally::default() }),
        latency: Some(Latency { response: times.clone(), service: some(), lag: some() }),
        ..Cell::default()
    });
    results.cells.push(Cell {
        competitor: "libmemcached".into(),
        phase: "get plain at 300".into(),
        refused: Some("its adapter sends nothing at planned moments".into()),
        ..Cell::default()
    });
    for (other, phase) in [("libmemcached", 0), ("libmemcached", 2), ("python", 0)] {
        let phase = results.phases[phase].id.clone();
        results.contrasts.push(Contrast {
            about: phase.clone(),
            of: ("steelyard".into(), phase.clone()),
            to: (other.into(), phase),
            versus: None,
        });
    }
    results.competitors.push(Contender {
        name: "pylibmc".into(),
        refused: Some("No module named 'pylibmc'; to install it: pip install pylibmc".into()),
        ..Contender::default()
    });
    derive(&mut results);
    results
}
