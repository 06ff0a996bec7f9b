//! Workloads on stores: what is counted, what is refused, and the method put to the test on real
//! servers: a server that stands still must be seen, a promise that is not kept must be seen.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use steelyard::{
    ErrorKind, Result,
    bench::{
        results::Results,
        schedule::StopRule,
        stores::{self, Options, Target},
        workload::{BUILT_IN, Workload},
    },
    server::{PROGRAMS, Wish},
    store::{DRIVERS, Store},
};

use crate::{
    programs,
    stores::naive::{Flaw, Naive},
};

/// A run of one round on these stores.
fn options<'a>(workload: Workload, on: &[&str]) -> Options<'a> {
    let mut options = Options::new(workload);
    options.targets = on.iter().map(|on| Target::parse(on).unwrap()).collect();
    options.audit = false;
    options.plan.resamples = 200;
    options.plan.stop = StopRule { max_rounds: 1, ..StopRule::default() };
    options
}

fn run(options: &Options<'_>) -> Result<Results> {
    stores::run(options, &mut |_| {})
}

#[test]
fn built_in_workloads_run_on_the_stores_in_this_process() {
    for (name, _) in BUILT_IN {
        let workload = Workload::named(name).unwrap().scaled(0.02);
        let results = run(&options(workload.clone(), &["sqlite", "memory"])).unwrap();
        for cell in results.cells.iter().filter(|c| c.competitor == "sqlite") {
            assert_eq!(cell.refused, None, "{name}, {}", cell.phase);
            assert!(cell.rounds.len() == 1 && cell.rounds[0].units > 0, "{name}, {}", cell.phase);
            let tally = cell.tally.unwrap();
            assert_eq!((tally.failed, tally.missed), (0, 0), "{name}, {}", cell.phase);
        }
        let phases: Vec<&str> = results.phases.iter().map(|p| p.id.as_str()).collect();
        let planned: Vec<&str> = workload.phases.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(phases, planned);
    }
}

#[test]
fn what_a_store_cannot_do_is_left_out_with_its_reason() {
    let workload = Workload::named("documents").unwrap().scaled(0.02);
    let results = run(&options(workload, &["sqlite", "dir"])).unwrap();
    let refused = |phase: &str| results.cell("dir", phase).unwrap().refused.clone();
    assert!(refused("init").unwrap().contains("no index"), "{:?}", refused("init"));
    assert!(refused("query").is_some() && refused("create").is_none());
}

#[test]
fn joins_are_for_those_that_can_and_for_layouts_that_hold_their_tables() {
    let workload = Workload::named("relations").unwrap().scaled(0.02);
    let on = ["sqlite", "sqlite?layout=columns", "memory?format=json"];
    let results = run(&options(workload, &on)).unwrap();
    let refused = |on: &str, phase: &str| {
        let cell = results.cell(on, phase).unwrap();
        assert!(cell.refused.is_some() || cell.rounds[0].units > 0, "{on}, {phase}");
        cell.refused.clone().unwrap_or_default()
    };
    for phase in ["load keepers", "load pairs", "join", "key/value join"] {
        assert_eq!(refused("sqlite", phase) + &refused("sqlite?layout=columns", phase), "");
        let why = refused("memory?format=json", phase);
        assert!(why.contains("cannot join two tables"), "{phase}: {why}");
    }
    // Lists are in no column, and what goes from them is left out with the same reason.
    for phase in ["load owners", "load families", "embedded", "references", "indexed field"] {
        assert_eq!(refused("sqlite", phase), "");
        let why = refused("sqlite?layout=columns", phase);
        assert!(why.contains("\"pets\" holds a list"), "{phase}: {why}");
    }
    // A table without its indexes is there all the same.
    assert_eq!(refused("memory?format=json", "load pets"), "");
    assert_eq!(refused("memory?format=json", "references"), "");
    let read = |phase: &str| results.cell("sqlite", phase).unwrap();
    assert_eq!(read("join").items, 6 * read("join").units);
    assert_eq!(read("key/value join").items, 15 * read("key/value join").units);
}

/// By a socket or by a port: the report says which, and it is that one.
fn by_a_socket(program: &str) {
    let Some(server) = programs::server(program, &Wish { socket: true, ..Wish::default() }) else {
        return;
    };
    let connection = |on: &str| {
        let workload = Workload::named("keep").unwrap().scaled(0.02);
        let results = run(&options(workload, &[on])).unwrap();
        assert_eq!(results.cell(&results.baseline, "get").unwrap().refused, None, "{on}");
        let row = results.competitors.iter().find(|c| c.name == results.baseline).unwrap();
        row.store.as_ref().unwrap().connection.clone()
    };
    // Nobody answers at that address, which is kept for examples (RFC 5737): only the socket can.
    let on = server.url().replace("127.0.0.1", "192.0.2.1");
    assert!(on.contains("socket="), "{on}");
    assert_eq!(connection(&on), "unix socket");
    assert_eq!(connection(&format!("{program}?socket=unix")), "unix socket");
    assert_eq!(connection(program), "TCP, loopback");
}

#[test]
fn stores_are_reached_by_a_socket_where_they_have_one() {
    for program in PROGRAMS.iter().filter(|program| program.sockets) {
        by_a_socket(program.name);
    }
    let workload = Workload::named("keep").unwrap().scaled(0.02);
    let error = run(&options(workload, &["ferretdb?socket=unix"])).unwrap_err().to_string();
    assert!(error.contains("those that can: mariadb, postgres, redis, memcached"), "{error}");
}

/// A store that loses the last record of a large batch and says nothing of it.
fn losing(_: Arc<dyn Store>) -> Arc<dyn Store> {
    Arc::new(Naive::new(Flaw::DropsLast))
}

#[test]
fn a_record_that_is_dropped_silently_fails_the_run_and_is_named() {
    let workload = Workload::named("keep").unwrap().scaled(0.05);
    let mut options = options(workload, &["memory"]);
    options.around = Some(losing);
    let error = run(&options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Mismatch, "{error:?}");
    let said = error.to_string();
    assert!(said.starts_with("memory, load, round 1:"), "{said}");
    assert!(said.contains("records are there, not"), "{said}");
}

#[test]
fn an_interrupted_run_keeps_what_it_has() {
    let stop = AtomicBool::new(false);
    let workload = Workload::named("keep").unwrap().scaled(0.02);
    let mut options = options(workload, &["memory", "sqlite"]);
    options.plan.stop.max_rounds = 1000;
    options.stop = Some(&stop);
    let results = stores::run(&options, &mut |p| {
        stop.store(p.rounds >= 2, Ordering::Relaxed);
    });
    let results = results.unwrap();
    assert_eq!(results.stopped, Some(steelyard::bench::schedule::Stopped::Interrupted));
    assert!(results.cell("sqlite", "get").unwrap().rounds.len() >= 2);
}

/// Reads at 200 a second for 10 seconds.
const STALL: &str = r#"
name = "stall"
about = "Reads at an even pace while the server stands still for a second."
[table.records]
dataset = "people"
count = 500
[[phase]]
name = "load"
do = "load"
[[phase]]
name = "get"
do = "get"
pace = { fixed = 200 }
seconds = 10
concurrency = 16
"#;

/// The stall test of MEASURING's rule 9: the server stands still for 1.0 s, so a tenth of all callers
/// waits, from 1.0 s down to nothing; p99 is 0.9 s. A closed loop would have sent one operation in
/// that second and called it an outlier.
fn stall(program: &str) {
    let Some(server) = programs::server(program, &Wish::default()) else { return };
    let mut options = options(Workload::parse(STALL).unwrap(), &[]);
    options.targets = vec![Target::parse(server.url()).unwrap()];
    let began = AtomicBool::new(false);
    let (results, stood) = thread::scope(|scope| {
        let stands = scope.spawn(|| {
            while !began.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(5));
            }
            // Into the middle of the ten seconds, which follow at most 2 s of warming up.
            thread::sleep(Duration::from_secs(5));
            server.freeze();
            let begin = Instant::now();
            thread::sleep(Duration::from_secs(1));
            server.thaw();
            begin.elapsed().as_secs_f64()
        });
        let results = stores::run(&options, &mut |p| {
            if p.phase == "get" && p.competitor != "null" {
                began.store(true, Ordering::Relaxed);
            }
        });
        (results.unwrap(), stands.join().unwrap())
    });
    let cell = results.cells.iter().find(|c| c.phase == "get" && c.competitor != "null").unwrap();
    let latency = cell.latency.as_ref().unwrap();
    let p99 = latency.response.quantile(0.99).unwrap().value / 1e9;
    println!("{program}: p99 {p99:.3} s, it stood {stood:.3} s, {:?}", cell.tally);
    // 0.85 to 1.1 s of one second; a busy machine lets this thread sleep longer.
    let p99 = p99 - (stood - 1.0);
    assert!((0.85..=1.1).contains(&p99), "{program}: {p99} s");
    assert_eq!(cell.tally.unwrap().skipped, 0, "{program}");
}

/// One test for each server that a store can talk to.
macro_rules! stalls {
    ($($name:ident)*) => {
        mod stalled {
            $(#[test] fn $name() { super::stall(stringify!($name)); })*

            #[test]
            fn every_server_is_tried() {
                let tried = [$(stringify!($name)),*];
                for driver in super::DRIVERS {
                    let any = driver.servers.iter().any(|server| tried.contains(server));
                    assert!(any || driver.servers.is_empty(), "{}", driver.name);
                }
            }
        }
    };
}
stalls!(mariadb postgres redis memcached ferretdb couchdb s3 tyrant);

/// The durability asked for is the one that is observed (rule 4).
fn audited(on: &str, syncs: std::ops::RangeInclusive<f64>) {
    if !programs::found("strace") {
        return;
    }
    let target = Target::parse(on).unwrap();
    if target.program().is_some_and(|program| program.find().is_none()) {
        return programs::skip(format_args!("there is no {on} on this machine"));
    }
    let audit = stores::audit(&target).unwrap_or_else(|e| panic!("{on}: {e:?}"));
    let durability = &audit.durability;
    println!("{on}: {:?} {:?}", durability.syncs, audit.calls);
    let seen = durability.syncs.unwrap_or_else(|| panic!("{on}: {:?}", durability.remark));
    assert!(syncs.contains(&seen), "{on}: {seen} {:?}", audit.calls);
    assert!(!durability.broken, "{on}: {:?}", durability.remark);
}

#[test]
fn sqlite_syncs_as_asked() {
    audited("sqlite?durability=t3", 1.0..=4.0);
    audited("sqlite?durability=t1", 0.0..=0.05);
}

#[test]
fn mariadb_syncs_as_asked() {
    audited("mariadb?durability=t3", 0.95..=1.3);
    audited("mariadb?durability=t1", 0.0..=0.1);
}

#[test]
fn postgres_syncs_as_asked() {
    audited("postgres?durability=t3", 0.95..=1.3);
    audited("postgres?durability=t2", 0.0..=0.3);
}

#[test]
fn redis_syncs_as_asked() {
    audited("redis?durability=t3", 0.95..=1.3);
    audited("redis?durability=t2", 0.0..=0.1);
    audited("redis?durability=t1", 0.0..=0.0);
}
