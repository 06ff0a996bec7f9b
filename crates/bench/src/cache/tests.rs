//! The bench with adapters that are made up, right ones and wrong ones.

use std::time::{Duration, Instant};

use super::{
    protocol::{Done, Task},
    *,
};
use crate::{
    ErrorKind,
    derive::derive,
    histogram::Histogram,
    results::{Verdict, Versus},
    schedule::StopRule,
};

/// What an answer has wrong.
type Wrong = fn(&Task, &mut Done);

/// An adapter that does nothing but take its time, and counts as its row must come out.
struct Fake {
    each: Duration,
    wrong: Wrong,
}

impl Peer for Fake {
    fn ask(&mut self, task: &Task) -> Result<Done> {
        let row = Row::ALL.into_iter().find(|row| row.name() == task.row).unwrap();
        assert_eq!(task.script, row.script());
        let begin = Instant::now();
        let long = self.each * task.operations as u32;
        while begin.elapsed() < long {
            std::hint::spin_loop();
        }
        let expected = row.expected(task.operations, task.connections);
        let mut times = Histogram::growing();
        times.record(self.each.as_nanos() as u64);
        let mut done = Done {
            // What a machine that is busy elsewhere adds is not told.
            elapsed_ns: long.as_nanos().max(1) as u64,
            user_ns: 100 * task.operations,
            operations: task.operations,
            hits: expected.hits,
            misses: expected.misses,
            latency: task.latency.then_some(times),
            ..Done::default()
        };
        (self.wrong)(task, &mut done);
        Ok(done)
    }
}

fn right(_: &Task, _: &mut Done) {}

fn options(rows: &[&str]) -> Options<'static> {
    let mut options = Options::new("no program".into());
    options.on = vec!["127.0.0.1:1".into()];
    options.values = vec![Wish::Size(4)];
    options.rows = rows.iter().map(|row| row.parse().unwrap()).collect();
    options.plan = Plan {
        window_ns: 1_000_000,
        warm_up_ns: 20_000,
        resamples: 200,
        stop: StopRule { precision: 0.0, min_starts: 2, max_rounds: 6, ..StopRule::default() },
        ..Plan::default()
    };
    options
}

/// Runs the bench with clients of these names, that take so many microseconds for a call.
fn ran(options: &Options<'_>, clients: &[(&str, u64)], wrong: Wrong) -> Result<Results> {
    let scratch = Scratch::new(None).unwrap();
    let Setup { mut results, shared } = Setup::new(options, scratch.path(), None)?;
    let shared = Rc::new(shared);
    let mut made = Vec::new();
    for &(name, micros) in clients {
        let each = Duration::from_micros(micros);
        let fake = move || Ok(Box::new(Fake { each, wrong }) as Box<dyn Peer>);
        let mut client = Client {
            name: name.into(),
            peer: fake()?,
            start: Box::new(fake),
            shared: Rc::clone(&shared),
            refused: HashMap::new(),
            stop: Stop::default(),
        };
        let hello = Hello { noblock: name != "slow", ..Hello::default() };
        let proof = proof::rows(&mut client, &hello, &results.phases)?;
        let null = name == adapter::NULL;
        let row = Contender { name: name.into(), null, proof: Some(proof), ..Contender::default() };
        results.competitors.push(row);
        made.push(client);
    }
    measure(options, results, made, &shared, scratch.path(), &mut |_| {})
}

#[test]
fn every_row_is_planned_once() {
    let all = options(&[]);
    let values = [Wish::Size(4).make(&all.format, 1).unwrap()];
    let (phases, asks) = plan::phases(&all, &values).unwrap();
    assert_eq!((phases.len(), asks.len()), (12, 12));
    let set = &phases[0];
    assert_eq!((set.id.as_str(), set.table.as_str()), ("set plain 4b@1", "4b, 1 connection"));
    let published = Options { as_published: true, ..options(&[]) };
    let (phases, _) = plan::phases(&published, &values).unwrap();
    let units: Vec<u64> = phases.iter().step_by(2).map(|p| p.units).collect();
    assert_eq!(units, [15_000, 15_000, 15_000, 2_500, 15_000, 30_000]);
    assert!(phases.iter().all(|p| p.units == p.cache.as_ref().unwrap().calls));

    let some = Options { connections: vec![1, 8], ..options(&["get-plain", "noblock"]) };
    let ids: Vec<String> =
        plan::phases(&some, &values).unwrap().0.into_iter().map(|p| p.id).collect();
    let first =
        ["noblock plain 4b@1", "noblock object 4b@1", "get plain 4b@1", "noblock plain 4b@8"];
    assert_eq!(ids[..4], first);
    // Nobody waits for these, so that they have no moment to be late for.
    let planned = Options { rate: Some(100.0), ..options(&["noblock"]) };
    assert!(plan::phases(&planned, &values).is_err());
    let twice = Options { connections: vec![8, 8], ..options(&[]) };
    assert!(plan::phases(&twice, &values).is_err());
}

#[test]
fn clients_are_timed_by_what_they_say_and_compared() {
    let options = options(&["get-plain", "noblock-plain"]);
    let clients = [("floor", 2), ("steelyard", 4), ("slow", 12), ("null", 0)];
    let mut results = ran(&options, &clients, right).unwrap();
    // However busy the machine is: on a noisy one answers are of processor time, which is the same here.
    results.probes.clear();
    derive(&mut results);
    assert_eq!((results.bench.as_str(), results.baseline.as_str()), ("cache", "floor"));
    let get = |name: &str| results.cell(name, "get plain 4b@1").unwrap();
    for (name, least) in [("floor", 2_000.0), ("steelyard", 4_000.0), ("slow", 12_000.0)] {
        let cell = get(name);
        let summary = cell.summary.as_ref().unwrap();
        assert_eq!((summary.n, summary.starts), (6, 6));
        assert!(summary.ns.middle >= least, "{name}: {summary:?}");
        assert_eq!(summary.user_ns, 100.0);
        // As many as were found, in each window; latencies of timed windows only.
        assert_eq!((cell.items, cell.latency.as_ref().unwrap().response.count()), (cell.units, 6));
        let done: u64 = cell.rounds.iter().map(|round| cell.units_of(round)).sum();
        assert_eq!(cell.tally.unwrap().done, done);
    }
    let cannot = results.cell("slow", "noblock plain 4b@1").unwrap();
    assert!(cannot.refused.as_ref().unwrap().contains("not waited for"), "{cannot:?}");
    assert_eq!(results.cell("floor", "noblock plain 4b@1").unwrap().latency, None);
    let contrast = results.contrasts.iter().find(|c| c.to.0 == "slow" && c.to.1.starts_with("get"));
    let Some(Versus { ratio, verdict, .. }) = contrast.unwrap().versus else { panic!() };
    assert!(ratio.middle < 0.8 && verdict == Verdict::Faster, "{ratio:?} {verdict:?}");
}

#[test]
fn passes_of_several_connections_add_up() {
    let rows = ["mixed-plain", "missing-plain", "multiget-plain"];
    let several = Options { connections: vec![1, 7, 64], ..options(&rows) };
    let results = ran(&several, &[("floor", 1)], right).unwrap();
    let cells = results.cells.iter().map(|c| (&c.phase, c.rounds.len(), &c.refused));
    assert_eq!(cells.clone().count(), 9);
    for (phase, rounds, refused) in cells {
        assert!(rounds > 1 && refused.is_none(), "{phase}: {rounds} {refused:?}");
    }
    let planned = Options { rate: Some(2_000.0), ..options(&rows) };
    let results = ran(&planned, &[("floor", 1)], right);
    let refused = |c: &crate::results::Cell| c.refused.as_ref().unwrap().contains("planned");
    assert!(results.unwrap().cells.iter().all(refused));
}

/// What goes wrong once the proof is done: windows are longer than that.
fn later(task: &Task) -> bool {
    task.operations > 12
}

#[test]
fn a_wrong_count_ends_the_run_and_is_named() {
    let wrong: [(Wrong, &str); 6] = [
        (|t, d| d.hits -= u64::from(later(t)), "keys were found"),
        (|t, d| d.misses += u64::from(later(t)), "keys were found"),
        (|t, d| d.operations -= u64::from(later(t)), "calls were made"),
        (|t, d| d.wrong = u64::from(later(t)), "not those that were stored"),
        (|t, d| d.elapsed_ns *= if later(t) { 1_000_000 } else { 1 }, "was away for"),
        (|t, d| d.errors = u64::from(later(t)), "calls failed"),
    ];
    for (wrong, what) in wrong {
        let error = ran(&options(&["get-plain"]), &[("floor", 3)], wrong).err().unwrap();
        let kind =
            if what == "calls failed" { ErrorKind::Unavailable } else { ErrorKind::Mismatch };
        let text = error.to_string();
        assert_eq!(error.kind(), kind, "{text}");
        assert!(text.contains(what) && text.contains("floor, get plain 4b@1, round 1"), "{text}");
    }
}

#[test]
fn what_fails_beforehand_is_left_out_and_what_is_wrong_is_not() {
    let refuses = |task: &Task, done: &mut Done| {
        if task.row == "multiget" {
            done.error = Some("no such call".into());
        }
    };
    let results =
        ran(&options(&["get-plain", "multiget-plain"]), &[("floor", 2)], refuses).unwrap();
    let refused = results.cell("floor", "multiget plain 4b@1").unwrap().refused.as_ref();
    assert!(refused.unwrap().contains("no such call"));
    assert!(results.cell("floor", "get plain 4b@1").unwrap().summary.is_some());

    let lies = |_: &Task, done: &mut Done| done.hits += 1;
    let error = ran(&options(&["get-plain"]), &[("floor", 2)], lies).err().unwrap().to_string();
    assert!(error.contains("floor, get plain 4b@1, proof"), "{error}");
}

#[test]
fn impossible_wishes_are_refused() {
    let run = |options: Options<'_>| run(&options, &mut |_| {}).err().unwrap().to_string();
    assert!(run(Options { connections: vec![0], ..options(&[]) }).contains("1 to 1024"));
    assert!(run(Options { rate: Some(0.0), ..options(&[]) }).contains("rate"));
    assert!(run(Options { values: Vec::new(), ..options(&[]) }).contains("nothing to do"));
    let bson = Options { format: "bson".parse().unwrap(), ..options(&[]) };
    assert!(run(bson).contains("bson"));
}
