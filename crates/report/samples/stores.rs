//! Results of a bench of stores that never ran: seeded, with everything in them that a report has to
//! speak of. What includes this file names the crate of results `measured`.

use std::collections::BTreeMap;

use super::measured::{
    Asked, Cell, Clock, Contender, Dataset, Disk, Durability, Histogram, Kept, Latency, Lies,
    Machine, Pace, Phase, Plan, Probe, Proof, Results, Round, SCHEMA, ServerUse, Stopped, Tally,
    Workload, derive::derive, random::Random,
};

/// How often the whole workload ran.
const ROUNDS: u32 = 12;
/// Single operations in each cell whose operations are timed.
const SAMPLES: u64 = 12_000;

/// A store: its label, product, tier, whether it has a server, and microseconds for a write, a query
/// and a read.
struct Made {
    name: &'static str,
    product: (&'static str, &'static str),
    tier: &'static str,
    server: bool,
    costs: [f64; 3],
    disk: u64,
}

const MADE: [Made; 5] = [
    Made {
        name: "sqlite",
        product: ("SQLite", "3.50.2"),
        tier: "t3",
        server: false,
        costs: [9.0, 42_000.0, 11.0],
        disk: 41_200_000,
    },
    Made {
        name: "postgres",
        product: ("PostgreSQL", "15.14"),
        tier: "t3",
        server: true,
        costs: [14.0, 30_500.0, 92.0],
        disk: 68_400_000,
    },
    Made {
        name: "mariadb",
        product: ("MariaDB", "10.11.14"),
        tier: "t3",
        server: true,
        costs: [14.1, 38_000.0, 61.0],
        disk: 73_900_000,
    },
    Made {
        name: "mariadb?engine=myisam",
        product: ("MariaDB", "10.11.14"),
        tier: "t1",
        server: true,
        costs: [7.0, 33_000.0, 58.0],
        disk: 35_100_000,
    },
    Made {
        name: "memcached",
        product: ("memcached", "1.6.18"),
        tier: "t0",
        server: true,
        costs: [3.1, 0.0, 33.0],
        disk: 0,
    },
];

/// Capacity, and response at four shares of it.
const SHARES: [f64; 4] = [0.25, 0.5, 0.75, 0.9];

fn phases() -> Vec<Phase> {
    let timed = |name: &str, units: u64, unit: &str, about: &str| Phase {
        unit: unit.into(),
        concurrency: 1,
        ..Phase::new(name, "capacity", units, about)
    };
    let mut phases = vec![
        timed("create", 200_000, "records", "In batches of 1,000."),
        Phase {
            query: Some(Asked {
                condition: "age >= 90".into(),
                sort: vec!["birthdate".into()],
                limit: Some(1000),
                records: Some(1000.0),
            }),
            ..timed("query", 1, "queries", "Age at least 90, by date of birth, the first 1,000.")
        },
        Phase {
            pace: Some(Pace::Free),
            ..timed("get", SAMPLES, "records", "By key, one after another.")
        },
        timed("delete", 40_000, "records", "Age at least 80."),
    ];
    phases.extend(SHARES.iter().map(|share| Phase {
        pace: Some(Pace::Share(*share)),
        of: Some("get".into()),
        table: "load".into(),
        ..timed(&format!("get at {:.0} %", 100.0 * share), SAMPLES, "records", "By key.")
    }));
    phases
}

/// The results, with all that follows from them.
pub(crate) fn stores() -> Results {
    let mut random = Random::new(5);
    let mut results = Results {
        schema: SCHEMA,
        bench: "stores".into(),
        workload: Some(Workload {
            name: "documents".into(),
            about: "Keeps people, asks for the old ones, deletes some.".into(),
            source: Some("a comparison of three document stores (2009)".into()),
            as_published: false,
            text: "name = \"documents\"\n\n[[phase]]\nname = \"create\" # <all of them>\n".into(),
        }),
        started: "2026-01-02T03:04:05Z".into(),
        seconds: 412.0,
        stopped: Some(Stopped::Precise),
        plan: Plan { resamples: 1000, ..Plan::default() },
        software: [("steelyard", "0.1.0"), ("rustc", "rustc 1.95.0"), ("opt-level", "3")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into(),
        machine: Machine {
            cpu: "A Processor".into(),
            cores: 2,
            memory: 8_000_000_000,
            kernel: "linux 6.1".into(),
            load: Some(0.1),
            ..Machine::default()
        },
        clock: Clock { read_ns: 25.0, step_ns: 1.0 },
        dataset: Dataset {
            name: "people".into(),
            records: 200_000,
            of: 200_000,
            kind: "documents".into(),
            sizes: sizes(&[("", 28_100_000), ("gzip", 5_900_000), ("zstd", 5_100_000)]),
            ..Dataset::default()
        },
        baseline: "sqlite".into(),
        phases: phases(),
        probes: (0..ROUNDS).map(|round| Probe { round, ..Probe::default() }).collect(),
        ..Results::default()
    };
    for made in &MADE {
        results.competitors.push(contender(made));
        for phase in results.phases.clone() {
            results.cells.push(cell(made, &phase, &mut random));
        }
    }
    results.competitors.push(Contender { name: "null".into(), null: true, ..Contender::default() });
    let null = Made { name: "null", server: false, costs: [0.02; 3], ..MADE[0] };
    for phase in results.phases.clone().into_iter().filter(|p| p.pace.is_none()) {
        results.cells.push(cell(&null, &phase, &mut random));
    }
    results.plan.stop.budget = 600.0;
    derive(&mut results);
    results
}

fn sizes(sizes: &[(&str, u64)]) -> BTreeMap<String, u64> {
    sizes.iter().map(|(wrap, size)| ((*wrap).to_owned(), *size)).collect()
}

fn contender(made: &Made) -> Contender {
    let broken = made.name.contains("myisam");
    let volatile = made.tier == "t0";
    let durability = Durability {
        asked: (!volatile).then(|| "t3".into()),
        set: Some(made.tier.into()),
        syncs: Some(if broken || volatile { 0.0 } else { 1.0 }),
        medium: (!volatile).then(|| Lies {
            filesystem: "ext4".into(),
            sync_ns: Some(1_240_000),
            ..Lies::default()
        }),
        remark: broken.then(|| "MyISAM syncs nothing when a write is acknowledged".into()),
        broken,
        ..Durability::default()
    };
    let disk = |start: u32| Disk {
        start,
        data: made.disk + u64::from(start),
        logs: made.disk / 5,
        records: 160_000,
        memory_empty: 60_000_000,
        memory: 90_000_000 + made.disk / 2,
    };
    let equal = if made.name == "memcached" { 19_990 } else { 20_000 };
    Contender {
        name: made.name.into(),
        proof: Some(Proof {
            records: 20_000,
            of: 200_000,
            equal,
            refused: 20_000 - equal,
            first: (equal < 20_000).then(|| "record 17: its key is longer than 250 bytes".into()),
            ..Proof::default()
        }),
        store: Some(Kept {
            url: made.name.into(),
            product: made.product.0.into(),
            version: made.product.1.into(),
            server: made.server.then(|| "server".into()),
            connection: if made.server { "unix socket" } else { "in this process" }.into(),
            client: String::new(),
            layout: if volatile { "blob" } else { "document" }.into(),
            format: volatile.then(|| "json".into()),
            durability,
            settings: [("page size".to_owned(), "4096".to_owned())].into(),
            disk: if volatile { Vec::new() } else { (0..ROUNDS).map(disk).collect() },
        }),
        ..Contender::default()
    }
}

fn cell(made: &Made, phase: &Phase, random: &mut Random) -> Cell {
    let mut cell = Cell {
        competitor: made.name.into(),
        phase: phase.id.clone(),
        units: phase.units,
        settled: true,
        ..Cell::default()
    };
    let micros = match phase.name.as_str() {
        "create" => made.costs[0],
        "query" => made.costs[1],
        "delete" => made.costs[0] * 0.6,
        _ => made.costs[2],
    };
    if made.costs[1] == 0.0 && matches!(phase.name.as_str(), "query" | "delete") {
        cell.refused = Some("it finds records by key only".into());
        return cell;
    }
    let share = match phase.pace {
        Some(Pace::Share(share)) => share,
        _ => 1.0,
    };
    for round in 0..ROUNDS {
        let window = micros * 1e3 / share * phase.units as f64 * (0.01 * random.normal()).exp();
        let client = if made.server { 0.3 } else { 0.9 };
        cell.rounds.push(Round {
            start: round,
            round,
            ns: window as u64,
            waits: 100,
            user_ns: (client * 0.8 * window * share) as u64,
            system_ns: (client * 0.2 * window * share) as u64,
            server: made.server.then(|| ServerUse {
                user_ns: (0.5 * window * share) as u64,
                system_ns: (0.1 * window * share) as u64,
                memory: 90_000_000 + made.disk / 2,
                written: if phase.name == "create" { made.disk * 2 } else { 0 },
            }),
            ..Round::default()
        });
    }
    if phase.pace.is_some() {
        cell.latency = Some(latency(micros * 1e3, share, random));
        let missed = if made.name == "memcached" { 3 } else { 0 };
        cell.tally = Some(Tally {
            done: phase.units * u64::from(ROUNDS) - missed,
            missed,
            ..Tally::default()
        });
    }
    if share < 1.0 {
        cell.offered = Some(share * 1e6 / micros);
        let late = if share > 0.8 { 41 } else { 0 };
        cell.tally = cell.tally.map(|t| Tally { late, skipped: late / 10, ..t });
    }
    cell
}

/// Latencies as a queue with one server makes them, and now and then a stall.
fn latency(ns: f64, share: f64, random: &mut Random) -> Latency {
    let mut response = Histogram::new();
    let mut service = Histogram::new();
    let mut lag = Histogram::new();
    for _ in 0..SAMPLES {
        let stalled = if random.below(400) == 0 { 30.0 } else { 1.0 };
        let one = 0.9 * ns * stalled * (0.25 * random.normal()).exp();
        let waited = if share < 1.0 && random.unit() < share {
            ns * share / (1.0 - share) * random.exponential()
        } else {
            0.0
        };
        service.record(one as u64);
        lag.record(waited as u64);
        response.record((one + waited) as u64);
    }
    match share < 1.0 {
        true => Latency { response, service: Some(service), lag: Some(lag) },
        false => Latency { response, service: None, lag: None },
    }
}
