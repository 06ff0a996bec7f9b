//! The quiet gate on this machine: others are seen, whatever a bench waits for; its own servers are not
//! taken for others.

use std::{process::Stdio, thread, time::Duration};

use steelyard::{
    bench::{
        processors::Seen,
        results::{Probe, Results},
        schedule::StopRule,
        stores::{self, Options, Target},
        workload::Workload,
    },
    server::Wish,
};

use crate::{
    children::{Child, Command},
    programs::{self, need},
};

/// Reads for a second.
const READS: &str = r#"
name = "reads"
about = "Reads for a second."
[table.records]
dataset = "people"
count = 500
[[phase]]
name = "load"
do = "load"
[[phase]]
name = "get"
do = "get"
seconds = 1
concurrency = 4
"#;

fn run(on: &str) -> Results {
    let mut options = Options::new(Workload::parse(READS).unwrap());
    options.targets = vec![Target::parse(on).unwrap()];
    options.audit = false;
    options.plan.resamples = 200;
    options.plan.stop = StopRule { max_rounds: 2, budget: 600.0, ..StopRule::default() };
    stores::run(&options, &mut |_| {}).unwrap()
}

fn turns<'a>(results: &'a Results, name: &str) -> Vec<&'a Probe> {
    results.probes.iter().filter(|p| p.competitor.as_deref() == Some(name)).collect()
}

/// Processes that do nothing but compute, one on each processor; they end with the value.
struct Busy(Vec<Child>);

impl Busy {
    fn new() -> Busy {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let spin = || {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
            shell.spawn().unwrap()
        };
        Busy((0..processors).map(|_| spin()).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn who_else_uses_the_processors_marks_the_rounds_of_stores() {
    let busy = Busy::new();
    let results = run("memory");
    drop(busy);
    for name in ["memory", "null"] {
        let turns = turns(&results, name);
        assert_eq!(turns.len(), 2, "{:?}", results.probes);
        for probe in turns {
            // One of two, at the least, where every processor has one of each.
            assert!(probe.others.unwrap() > 0.2 && probe.noisy, "{probe:?}");
        }
    }
    assert_eq!(results.noise(), (1.0, true));
}

/// The share of all processors' time that others than this process use just now.
fn others_now() -> f64 {
    let before = Seen::now().unwrap();
    thread::sleep(Duration::from_millis(400));
    Seen::now().unwrap().since(&before).others().unwrap()
}

#[test]
fn a_private_server_at_work_is_not_taken_for_somebody_else() {
    need!(programs::startable("redis"));
    let quiet = others_now() < 0.03;
    let results = run("redis");
    let quiet = quiet && others_now() < 0.03;
    let processors = thread::available_parallelism().map_or(1, usize::from) as f64;
    for (n, probe) in turns(&results, "redis").into_iter().enumerate() {
        let cells = results.cells.iter().filter(|c| c.competitor == "redis");
        let rounds: Vec<_> = cells.filter_map(|c| c.rounds.get(n)).collect();
        let all = processors * rounds.iter().map(|r| r.ns as f64).sum::<f64>();
        let share =
            |of: &dyn Fn(usize) -> u64| (0..rounds.len()).map(|i| of(i) as f64).sum::<f64>() / all;
        let own = share(&|i| rounds[i].user_ns + rounds[i].system_ns);
        let served = share(&|i| rounds[i].server.map_or(0, |s| s.user_ns + s.system_ns));
        let others = probe.others.unwrap();
        println!("own {own:.2}, its server {served:.2}, others {others:.2}");
        assert!(served > 0.0, "it did nothing");
        // Counted as others', what the server used would be there twice. (On a machine that is not
        // busy there would be room for it, but then others must use nothing.)
        assert!(own + served + others <= 1.1, "{own} {served} {others}");
        assert!(!quiet || others < 0.1, "{others}");
    }
}

#[test]
fn for_a_server_that_somebody_else_started_it_is_not_known() {
    let server = need!(programs::server("redis", &Wish::default()));
    let results = run(server.url());
    let name = results.baseline.clone();
    assert!(turns(&results, &name).iter().all(|p| p.others.is_none()), "{:?}", results.probes);
    assert!(turns(&results, "null").iter().all(|p| p.others.is_some()), "{:?}", results.probes);
    let told = results.settings.get(&format!("Others during {name}")).unwrap();
    assert!(told.contains("not started by this program"), "{told}");
}
