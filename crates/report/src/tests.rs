//! Snapshot tests of reports on fixed results.

use super::*;
use steelyard_results::{
    CacheClient, CacheRow, Cell, Clock, Code, Comparison, Contender, Contrast, Dataset, Histogram,
    Latency, Machine, Memory, Pace, Phase, Plan, Probe, Proof, Published, Round, SCHEMA, ServerUse,
    Tally, derive::derive, random::Random, runs::compare, schedule::Stopped,
};

/// What `tests/samples` calls the bench.
use steelyard_results as measured;

#[path = "../samples/stores.rs"]
pub(super) mod samples;

pub(super) mod fixtures;
mod hostile;
mod marks;
pub(super) mod tenants;
mod unknown;

use self::{
    fixtures::{cache, objects},
    tenants::tenants,
};

/// Results of a bench that never ran: `costs` are nanoseconds an operation for each competitor, the
/// factor of a phase multiplies them.
fn results(bench: &str, costs: &[(&str, f64)], phases: &[(Phase, f64)]) -> Results {
    let mut random = Random::new(1);
    let mut results = Results {
        schema: SCHEMA,
        bench: bench.into(),
        started: "2026-01-02T03:04:05Z".into(),
        seconds: 61.5,
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
            name: "catalog.mrc".into(),
            records: 18_881,
            of: 18_881,
            kind: "MARC records".into(),
            remarks: Vec::new(),
            ..Dataset::default()
        },
        baseline: costs[0].0.into(),
        phases: phases.iter().map(|p| p.0.clone()).collect(),
        probes: (0..24).map(|round| Probe { round, ..Probe::default() }).collect(),
        ..Results::default()
    };
    for &(name, ns) in costs {
        let null = name == "null";
        results.competitors.push(Contender {
            name: name.into(),
            null,
            proof: (!null).then(|| Proof { records: 18_881, equal: 18_881, ..Proof::default() }),
            ..Contender::default()
        });
        for (phase, factor) in phases.iter().filter(|p| p.0.sum_of.is_empty()) {
            let factor = if null { 1.0 } else { *factor };
            let units = phase.units;
            let rounds = (0..24).map(|round| {
                let window = ns * factor * units as f64 * (0.01 * random.normal()).exp();
                Round {
                    start: round / 2,
                    round,
                    ns: window as u64,
                    user_ns: (0.9 * window) as u64,
                    system_ns: (0.1 * window) as u64,
                    ..Round::default()
                }
            });
            results.cells.push(Cell {
                competitor: name.into(),
                phase: phase.id.clone(),
                units,
                bytes: units * 1650,
                settled: true,
                memory: Some(Memory {
                    allocations: Some(ns / 500.0),
                    allocated: Some(ns),
                    peak: Some(4096),
                }),
                rounds: rounds.collect(),
                ..Cell::default()
            });
        }
    }
    results
}

pub(super) fn formats() -> Results {
    let phase = |name: &str, table: &str| Phase::new(name, table, 18_881, "What is timed.");
    let sum =
        Phase { sum_of: vec!["decode".into(), "encode".into()], ..phase("roundtrip", "in memory") };
    let mut results = results(
        "formats",
        &[
            ("marc21", 1000.0),
            ("json", 3300.0),
            ("sonic", 3250.0),
            ("marcxml", 5000.0),
            ("null", 2.0),
        ],
        &[
            (phase("decode", "in memory"), 1.0),
            (phase("encode", "in memory"), 0.7),
            (sum, 1.0),
            (phase("read", "files"), 1.3),
            (phase("write", "files"), 1.1),
            (phase("read-gzip", "gzip files"), 4.0),
            (phase("write-gzip", "gzip files"), 20.0),
        ],
    );
    for (name, plain, gzip) in [
        ("marc21", 31_153_650, 9_012_345),
        ("json", 56_100_000, 8_100_000),
        ("sonic", 56_100_000, 8_100_000),
        ("marcxml", 93_000_000, 9_200_000),
    ] {
        let contender = results.competitors.iter_mut().find(|c| c.name == name).unwrap();
        contender.sizes = [("".to_owned(), plain), ("gzip".to_owned(), gzip)].into();
    }
    for way in ["read", "write"] {
        results.contrasts.push(Contrast {
            about: String::new(),
            of: ("json".into(), format!("{way}-gzip")),
            to: ("marc21".into(), way.into()),
            versus: None,
        });
    }
    results
}

#[test]
fn a_page_of_formats() {
    let mut results = formats();
    derive(&mut results);
    insta::assert_snapshot!("formats", text(&results));
}

/// Everything that can be wrong with a run, and how the page says so.
#[test]
fn a_page_that_warns() {
    let mut results = formats();
    results.software.insert("opt-level".into(), "0".into());
    results.stopped = None;
    results.dataset.of = 1_000_000;
    results.dataset.remarks = vec!["2 records are left out for all formats.".into()];
    results.probes.iter_mut().take(12).for_each(|p| p.steal = Some(0.2));
    results.phases.truncate(1);
    results.cells.retain(|c| c.phase == "decode");
    results.contrasts.clear();
    let cell = |results: &mut Results, name: &str| {
        results.cells.iter().position(|c| c.competitor == name).unwrap()
    };
    let json = cell(&mut results, "json");
    results.cells[json].settled = false;
    let null = cell(&mut results, "null");
    for round in &mut results.cells[null].rounds {
        (round.ns, round.user_ns) = (round.ns * 200, round.user_ns + round.ns * 199);
    }
    let marcxml = cell(&mut results, "marcxml");
    results.cells[marcxml].rounds.clear();
    results.cells[marcxml].refused = Some("cannot be put into files".into());
    let lossy = Proof {
        records: 18_881,
        of: 18_881,
        equal: 18_000,
        refused: 1,
        first: Some("record 7: field 245 became 246".into()),
        declared: "a thing or two".into(),
        ..Proof::default()
    };
    results.competitors[2].proof = Some(lossy);
    derive(&mut results);
    insta::assert_snapshot!("formats-warned", text(&results));
}

/// What is compressed is compared with what is compressed, and with what is not.
#[test]
fn compressed_files_are_compared_with_like_and_with_plain() {
    let mut results = formats();
    derive(&mut results);
    let text = text(&results).split_whitespace().collect::<Vec<_>>().join(" ");
    for sentence in [
        "JSON files in gzip: compared with marc21 in gzip too it takes 3.3 times as long to read and 3.3 times as long to write; compared with plain marc21 10.2 times as long to read and 59.6 times as long to write.",
        "which takes 10.0 times as long to read from a file as plain marc21 and 3.3 times as long as marc21 in gzip.",
        "% of marc21 % of plain marc21",
    ] {
        assert!(text.contains(sentence), "{sentence}: {text}");
    }
}

/// Whose reader and writer a figure is about stands on the page, in every form.
#[test]
fn readers_and_writers_are_named() {
    let mut results = formats();
    let code =
        |reads: &str, writes: &str| Some(Code { reads: reads.into(), writes: writes.into() });
    results.competitors[1].code = code("own", "own, by serde");
    results.competitors[2].code = code("sonic-rs 0.5.10", "sonic-rs 0.5.11");
    derive(&mut results);
    let page = text(&results);
    assert!(page.contains("Readers and writers"), "{page}");
    for page in [page, markdown(&results), html(&results)] {
        for name in ["read by", "written by", "own, by serde", "sonic-rs 0.5.10", "sonic-rs 0.5.11"]
        {
            assert!(page.contains(name), "{name}: {page}");
        }
    }
    results.bench = "objects".into();
    assert!(text(&results).contains("sonic-rs 0.5.11"));
}

/// Names in another order are one thing, another value is another.
#[test]
fn lossy_has_two_grades() {
    let proof = |reordered, changed| Proof {
        records: 100,
        equal: 100 - reordered - changed,
        reordered,
        first: Some("record 7: the order of names".into()),
        ..Proof::default()
    };
    let mut results = formats();
    results.competitors[1].proof = Some(proof(40, 0));
    results.competitors[2].proof = Some(proof(10, 5));
    derive(&mut results);
    let page = text(&results);
    assert!(page.contains("json~") && page.contains("sonic†"), "{page}");
    let flat = page.split_whitespace().collect::<Vec<_>>().join(" ");
    for line in [
        "~ reordered: equal values, their names in another order, see Fidelity",
        "† lossy: some values come back changed or not at all, see Fidelity",
        "json: 60 of 100 came back equal, 40 reordered (equal values, names in another order); record 7",
        "sonic: 85 of 100 came back equal, 10 reordered (equal values, names in another order), 5 changed;",
    ] {
        assert!(flat.contains(line), "{line}: {page}");
    }
}

/// One round is no ground for a rank or a verdict.
#[test]
fn a_page_of_one_round_ranks_nobody() {
    let mut results = formats();
    results.cells.iter_mut().for_each(|c| c.rounds.truncate(1));
    derive(&mut results);
    let text = text(&results);
    assert!(text.contains("19.1 ±?") && !text.contains("±? ="), "{text}");
    assert!(text.contains("1 round on 1 start with fresh data: too few to rank"), "{text}");
    assert!(!text.contains("as long"), "{text}");
}

#[test]
fn a_page_of_objects() {
    insta::assert_snapshot!("objects", text(&objects()));
}

#[test]
fn other_looks_say_the_same() {
    let mut results = formats();
    results.phases.truncate(2);
    results.cells.retain(|c| c.phase == "decode" || c.phase == "encode");
    results.contrasts.clear();
    derive(&mut results);
    insta::assert_snapshot!("formats-markdown", markdown(&results));
    insta::assert_snapshot!("formats-csv", csv(&results));
    insta::assert_snapshot!("formats-svg", svg(&results));
    insta::assert_snapshot!("objects-svg", svg(&objects()));
}

#[test]
fn a_page_of_clients_of_memcached() {
    let results = cache();
    insta::assert_snapshot!("cache", text(&results));
    insta::assert_snapshot!("cache-csv", csv(&results));
    let read: Results = serde_json::from_str(&serde_json::to_string(&results).unwrap()).unwrap();
    assert_eq!(text(&read), text(&results));
    assert!(html(&results).contains("steelyard against libmemcached"));
}

#[test]
fn a_page_of_stores() {
    let results = samples::stores();
    insta::assert_snapshot!("stores", text(&results));
    insta::assert_snapshot!("stores-markdown", markdown(&results));
    insta::assert_snapshot!("stores-csv", csv(&results));
    insta::assert_snapshot!("stores-svg", svg(&results));
}

/// Where all are of one durability the verdict is one sentence; where operations failed it says so.
#[test]
fn a_page_of_stores_that_are_alike() {
    let mut results = samples::stores();
    results.competitors.retain(|c| !["mariadb?engine=myisam", "memcached"].contains(&&*c.name));
    results.phases.truncate(4);
    let kept: Vec<String> = results.competitors.iter().map(|c| c.name.clone()).collect();
    let timed: Vec<String> = results.phases.iter().map(|p| p.id.clone()).collect();
    results.cells.retain(|c| kept.contains(&c.competitor) && timed.contains(&c.phase));
    let tally = results.cells.iter_mut().find(|c| c.phase == "get").unwrap();
    tally.tally = Some(Tally { done: 11_000, failed: 900, timed_out: 100, ..Tally::default() });
    derive(&mut results);
    let text = text(&results);
    let lead = text.split("At a glance").next().unwrap();
    insta::assert_snapshot!("stores-alike", lead);
    assert!(text.contains("timed out"), "{text}");
}

/// An open loop that did not keep to its plan, and a stall in a closed one.
#[test]
fn a_page_says_what_its_latencies_leave_out() {
    let mut results = samples::stores();
    for cell in &mut results.cells {
        let latency = cell.latency.as_mut();
        match (cell.competitor.as_str(), cell.phase.as_str()) {
            ("postgres", "get at 75 %") => {
                cell.tally = Some(Tally { done: 18_000, skipped: 82_000, ..Tally::default() });
            }
            ("mariadb", "get at 90 %") => {
                cell.tally = Some(Tally { done: 970, failed: 30, ..Tally::default() });
            }
            ("sqlite", "get") => latency.unwrap().response.record(2_000_000_000),
            _ => {}
        }
    }
    // What the null competitor takes in an open loop is waiting, as with everybody.
    let mut idle = results.cell("sqlite", "get at 25 %").unwrap().clone();
    idle.competitor = "null".into();
    results.cells.push(idle);
    derive(&mut results);
    let text = text(&results);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in [
        "by postgres (t3; did not keep up: 18.0 % of the planned operations were sent)",
        "Did not keep up with the planned rate, so that latencies are of what was sent only: \
         postgres at get at 75 % (18.0 % of the planned operations were sent); mariadb at get at \
         90 % (3.00 % failed).",
        "postgres§ t3 75 %",
        "2,000^",
        "^ a stall: the slowest took over 100 times p99.9",
        "A closed loop waits for each answer",
    ] {
        assert!(flat.contains(said), "{said}: {text}");
    }
    assert!(!text.contains('‡'), "no share of the harness where all wait: {text}");
    assert!(
        results.cell("sqlite", "get at 25 %").unwrap().summary.as_ref().unwrap().harness.is_none()
    );
}

/// What these rounds cannot tell has the rates of each, and the range that it may be.
#[test]
fn a_page_tells_each_rate_of_what_it_cannot_tell_apart() {
    let mut results = samples::stores();
    let mut random = Random::new(8);
    for cell in results.cells.iter_mut().filter(|c| c.phase == "query") {
        cell.rounds.iter_mut().for_each(|r| r.ns = (r.ns as f64 * random.normal().exp()) as u64);
    }
    for cell in results.cells.iter_mut().filter(|c| c.phase == "delete") {
        // Equals, and quiet ones.
        for (n, round) in cell.rounds.iter_mut().enumerate() {
            round.ns = 4_000_000_000 + 1_000_000 * ((n as u64 * 7) % 5);
        }
    }
    derive(&mut results);
    let page = text(&results);
    let flat = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, unclear) = flat.split_once("cannot tell: query (").expect("an answer");
    let (unclear, _) = unclear.split_once(')').unwrap();
    assert_eq!(unclear.matches("times as long").count(), 2, "{unclear}");
    assert!(flat.contains("alike within 3 %: delete ("), "{page}");
    assert!(flat.contains("? cannot tell: these rounds") && flat.contains("= alike:"), "{page}");
}

/// Results whose every text means something to a browser.
#[test]
fn a_budget_that_was_not_kept_is_told() {
    let mut results = samples::stores();
    assert_eq!(over_budget(&results), None);
    results.plan.stop.budget = 5.0;
    let said = over_budget(&results).unwrap();
    assert!(said.contains("412 s instead of 5 s") && said.contains("whole run"), "{said}");
    assert!(said.contains("--scale") && said.contains("the last of "), "{said}");
    assert!(text(&results).contains("Over the budget: it took 412 s"));
    for cell in &mut results.cells {
        cell.rounds.truncate(1);
    }
    derive(&mut results);
    assert!(over_budget(&results).unwrap().contains("one round alone took longer"));
    results.plan.stop.budget = 400.0;
    assert_eq!(over_budget(&results), None, "a round that had begun was finished");
}

#[test]
fn nothing_that_comes_from_results_is_markup() {
    let bad = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&";
    let mut results = samples::stores();
    let old = results.competitors[1].name.clone();
    results.competitors[1].name = bad.into();
    results
        .cells
        .iter_mut()
        .filter(|c| c.competitor == old)
        .for_each(|c| c.competitor = bad.into());
    results.dataset.name = bad.into();
    results.dataset.kind = bad.into();
    results.dataset.remarks = vec![bad.into()];
    results.bench = "stores".into();
    results.machine.cpu = bad.into();
    results.software.insert(bad.into(), bad.into());
    results.settings.insert(bad.into(), bad.into());
    results.workload.as_mut().unwrap().text = bad.into();
    results.workload.as_mut().unwrap().name = bad.into();
    results.phases[0].about = bad.into();
    let kept = results.competitors[0].store.as_mut().unwrap();
    (kept.product, kept.version, kept.layout) = (bad.into(), bad.into(), bad.into());
    kept.durability.remark = Some(bad.into());
    derive(&mut results);
    let page = html(&results);
    assert_eq!(page.matches("<script").count(), 2, "its data and its own script");
    assert_eq!(page.matches("</script").count(), 2);
    assert!(!page.contains("<img") && !page.contains("onerror=alert(1)>\"'&"));
    let (_, data) = page.split_once("id=\"data\">").unwrap();
    let data: Results = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    assert_eq!(data.dataset.name, bad);
    assert!(!svg(&results).contains("<img") && !svg(&results).contains("var("));
}

#[test]
fn pages_fetch_nothing() {
    for results in [formats(), objects(), samples::stores(), cache(), tenants(&["sqlite"])] {
        let page = html(&results);
        let outside: Vec<_> =
            page.match_indices("://").map(|(at, _)| &page[at - 5..at + 20]).collect();
        assert!(outside.is_empty(), "{outside:?}");
        assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
        let (_, link) = page.split_once("href=\"data:text/csv;charset=utf-8,").unwrap();
        let link = link.split('"').next().unwrap();
        let file = percent_encoding::percent_decode_str(link).decode_utf8().unwrap();
        assert_eq!(file, csv(&results), "what can be kept is the report in CSV");
    }
}

/// A small run, and what it was before: everything took so many times as long as now.
fn run_and(before: f64) -> (Results, Results) {
    let mut new = formats();
    new.phases.truncate(2);
    new.cells.retain(|c| c.phase == "decode" || c.phase == "encode");
    new.contrasts.clear();
    let mut old = new.clone();
    old.started = "2025-12-01T03:04:05Z".into();
    let mut random = Random::new(77);
    for cell in &mut old.cells {
        let slower = if cell.competitor == "json" { before } else { 1.0 };
        for round in &mut cell.rounds {
            let times = slower * (0.01 * random.normal()).exp();
            round.ns = (round.ns as f64 * times) as u64;
        }
    }
    derive(&mut new);
    derive(&mut old);
    (new, old)
}

#[test]
fn a_page_of_two_runs() {
    let (new, mut old) = run_and(0.9);
    old.software.insert("serde_json".into(), "1.0.0".into());
    old.competitors.retain(|c| c.name != "marcxml");
    old.cells.retain(|c| c.competitor != "marcxml");
    let compared = [compare(&new, &old)];
    insta::assert_snapshot!("compared", compared::text(&compared));
    insta::assert_snapshot!("compared-csv", compared::csv(&compared));
    insta::assert_snapshot!("compared-svg", compared::svg(&compared));
    assert!(compared::markdown(&compared).starts_with("# formats: the run of 2026-01-02"));
    assert!(compared::html(&compared).matches("role=\"img\"").count() == 2);
}

/// What cannot be compared is said before anything else, and called nothing.
#[test]
fn runs_of_different_things_are_not_comparable() {
    let (new, mut old) = run_and(0.9);
    old.machine.cpu = "Another".into();
    old.dataset.records = 18_880;
    let text = compared::text(&[compare(&new, &old)]);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.starts_with(
            "Compared with the run of 2025-12-01 03:04 UTC: not comparable: the runs differ in \
             processor (A Processor, then Another) and records (18881, then 18880)."
        ),
        "{text}"
    );
    assert!(!text.contains("slower  "), "{text}");
    // A store that promised less is left out, the others are not.
    let (new, mut old) = (samples::stores(), samples::stores());
    let durability = &mut old.competitors[0].store.as_mut().unwrap().durability;
    (durability.set, durability.syncs) = (Some("t1".into()), Some(0.0));
    let compared = compare(&new, &old);
    assert!(
        !compared.holds(&compared.pairs[0]) && compared.pairs.iter().any(|p| compared.holds(p))
    );
    let text = compared::text(&[compared]);
    assert!(
        text.starts_with(
            "Left out as not comparable: of another durability than then: sqlite (t3, then t1)."
        ),
        "{text}"
    );
    assert!(!text.contains("get at"), "planned rates say nothing of speed");
}

#[test]
fn two_runs_of_few_starts_tell_nothing() {
    for starts in 1..5 {
        let (mut new, old) = run_and(0.9);
        new.cells.iter_mut().for_each(|cell| cell.rounds.retain(|round| round.start < starts));
        derive(&mut new);
        let text = compared::text(&[compare(&new, &old)]);
        let said = format!("{starts} round{}: too few", if starts == 1 { "" } else { "s" });
        assert!(text.contains(&said) && !text.contains("±?"), "{text}");
        assert!(text.contains("too few to tell anything"), "{text}");
    }
}

#[test]
fn two_runs_that_are_alike_and_none_at_all() {
    let (new, old) = run_and(1.0);
    let text = compared::text(&[compare(&new, &old)]);
    assert!(text.contains("no difference was shown in any of 8."), "{text}");
    for none in [vec![], vec![Comparison::default()], vec![compare(&Results::default(), &new)]] {
        assert!(!compared::text(&none).is_empty());
        assert!(compared::html(&none).ends_with("</html>\n"));
        assert!(compared::csv(&none).lines().count() == 1);
        compared::svg(&none);
    }
}

#[test]
fn results_of_nothing_are_no_panic() {
    for bench in ["formats", "objects", "stores", "something else"] {
        let nothing = Results { bench: bench.into(), ..Results::default() };
        assert!(!text(&nothing).is_empty());
        assert!(markdown(&nothing).starts_with("# "));
        assert!(csv(&nothing).starts_with("bench,"));
        assert!(svg(&nothing).ends_with("</svg>\n"));
        assert!(html(&nothing).ends_with("</html>\n"));
    }
}

/// The description of the file names every field there is.
#[test]
fn every_field_of_the_results_is_described() {
    fn names(value: &serde_json::Value, found: &mut std::collections::BTreeSet<String>) {
        match value {
            serde_json::Value::Object(map) => map.iter().for_each(|(name, value)| {
                found.insert(name.clone());
                // What is keyed by names of formats or libraries has no fields.
                if !["software", "settings", "sizes"].contains(&name.as_str()) {
                    names(value, found);
                }
            }),
            serde_json::Value::Array(list) => list.iter().for_each(|v| names(v, found)),
            _ => {}
        }
    }
    let mut results = formats();
    derive(&mut results);
    let mut found = std::collections::BTreeSet::new();
    names(&serde_json::to_value(&results).unwrap(), &mut found);
    names(&serde_json::to_value(samples::stores()).unwrap(), &mut found);
    names(&serde_json::to_value(tenants(&["sqlite"])).unwrap(), &mut found);
    let described = include_str!("tests/results-schema.md");
    let missing: Vec<_> = found.iter().filter(|n| !described.contains(&format!("`{n}`"))).collect();
    assert!(
        found.len() > 80 && missing.is_empty(),
        "{} fields, not described: {missing:?}",
        found.len()
    );
}
