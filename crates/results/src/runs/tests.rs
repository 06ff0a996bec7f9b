//! Comparisons of two runs whose truth is known.

use super::*;
use crate::{
    Bar, Contender, Controlled, Durability, Kept, Phase, Plan, Probe, Round, Verdict,
    random::Random,
};

/// How a machine is on the day of a run.
#[derive(Clone, Copy, Default)]
struct Day {
    /// Everything takes so much longer: a logarithm.
    drift: f64,
    /// How far each cell is off for the whole run, by luck with memory and caches.
    luck: f64,
    /// A sync takes so much longer.
    sync: f64,
}

/// A run of competitors whose operations take `ns` times the factor of a phase, on a machine
/// whose starts have their luck and whose windows have theirs.
fn run_of(seed: u64, starts: u32, factors: &[f64]) -> Results {
    run_on(Day::default(), seed, starts, factors)
}

fn run_on(day: Day, seed: u64, starts: u32, factors: &[f64]) -> Results {
    let mut random = Random::new(seed);
    let mut results = Results {
        bench: "formats".into(),
        plan: Plan { resamples: 500, seed, ..Plan::default() },
        baseline: "a".into(),
        stopped: Some(Stopped::Rounds),
        ..Results::default()
    };
    for round in 0..starts {
        let near = |log: f64, ns: f64| (ns * (day.drift + log).exp()) as u64;
        let spin_ns = near(0.002 * random.normal(), 220_000.0);
        let sync_ns = Some(near(day.sync + 0.2 * random.normal(), 2e6));
        results.probes.push(Probe {
            round,
            spin_ns,
            spin_least_ns: near(0.0, 219_000.0),
            sync_ns,
            ..Probe::default()
        });
    }
    for name in ["a", "b", "null"] {
        let null = name == "null";
        results.competitors.push(Contender { name: name.into(), null, ..Contender::default() });
    }
    for (p, factor) in factors.iter().enumerate() {
        let phase = Phase::new(&format!("p{p}"), "table", 1000, "simulated");
        for (name, factor) in [("a", *factor), ("b", *factor), ("null", 0.001)] {
            let off = day.drift + day.luck * random.normal();
            let rounds = (0..starts).map(|start| {
                let mut log = off + 0.01 * random.normal() + 0.02 * random.normal();
                if random.unit() < 0.05 {
                    log += 0.1 + 0.4 * random.unit();
                }
                let ns = (1e7 * factor * log.exp()) as u64;
                Round { start, round: start, ns, waits: 1, ..Round::default() }
            });
            results.cells.push(Cell {
                competitor: name.into(),
                phase: phase.id.clone(),
                units: 1000,
                rounds: rounds.collect(),
                ..Cell::default()
            });
        }
        results.phases.push(phase);
    }
    derive(&mut results);
    results
}

/// How many of `runs` comparisons of a program with itself show a difference, and how many cannot be
/// made, each run on a day of its own.
fn called(day: impl Fn(&mut Random) -> Day, starts: u32, runs: u64) -> (usize, usize) {
    let mut random = Random::new(77);
    let (mut called, mut barred) = (0, 0);
    for seed in 0..runs {
        let mut run = |seed| run_on(day(&mut random), seed, starts, &[1.0; 6]);
        let (new, old) = (run(2 * seed), run(2 * seed + 1));
        let compared = compare(&new, &old);
        assert_eq!(compared.pairs.len(), 12);
        let shown = |p: &&Pair| compared.holds(p) && is_difference(p.versus.verdict);
        called += usize::from(compared.pairs.iter().any(|p| shown(&p)));
        barred += usize::from(!compared.pairs.iter().any(|p| compared.holds(p)));
    }
    (called, barred)
}

fn is_difference(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Faster | Verdict::Slower)
}

#[test]
fn the_same_program_twice_is_called_different_in_at_most_5_percent_of_comparisons() {
    for starts in [4, 12] {
        let (called, _) = called(|_| Day::default(), starts, 100);
        println!("A/A of {starts} starts: {called} of 100 comparisons called a difference");
        assert!(called <= 5, "{starts} starts: {called} of 100");
    }
}

#[test]
fn another_day_is_no_difference_of_the_program() {
    // The whole machine is a little slower or faster.
    let drifts = |random: &mut Random| Day { drift: 0.02 * random.normal(), ..Day::default() };
    let (drifting, _) = called(drifts, 12, 100);
    // Much slower, which the controls show: no verdict at all.
    let slow = |random: &mut Random| Day { drift: 0.3 * random.normal(), ..Day::default() };
    let (slowed, barred) = called(slow, 12, 100);
    // Each cell, the null competitor's too, has its luck for the whole run.
    let lucky = |_: &mut Random| Day { luck: 0.03, ..Day::default() };
    let (by_luck, _) = called(lucky, 12, 100);
    println!(
        "of 100 called: drift {drifting}, much drift {slowed} ({barred} barred), luck {by_luck}"
    );
    assert!(drifting <= 5 && slowed <= 5 && by_luck <= 8, "{drifting} {slowed} {by_luck}");
    assert!(barred >= 75, "{barred}");
}

#[test]
fn a_control_that_differs_bars_what_depends_on_it() {
    let normal = run_of(2, 12, &[1.0, 1.0]);
    let slow = run_on(Day { drift: 0.13, ..Day::default() }, 1, 12, &[1.0, 1.0]);
    let compared = compare(&slow, &normal);
    assert!(matches!(compared.barred(), Some(Bar::Control(c)) if c.what == Controlled::Spin));
    assert!((compared.drift.unwrap() - 0.13f64.exp()).abs() < 0.02, "{:?}", compared.drift);

    // Of the null competitor in one phase: that phase, and no other.
    let mut one = run_of(1, 12, &[1.0, 1.0]);
    let cell = one.cells.iter_mut().find(|c| c.competitor == "null" && c.phase == "p1").unwrap();
    cell.rounds.iter_mut().for_each(|r| r.ns = r.ns * 3 / 2);
    derive(&mut one);
    let compared = compare(&one, &normal);
    let held =
        |phase: &str| compared.pairs.iter().filter(|p| p.phase == phase).all(|p| compared.holds(p));
    assert!(held("p0") && !held("p1") && compared.barred().is_none());

    // Syncs: stores that sync, and no other.
    let mut slow = run_on(Day { sync: 1.0, ..Day::default() }, 1, 12, &[1.0, 1.0]);
    let durability = |tier: &str| Durability { set: Some(tier.into()), ..Durability::default() };
    for (name, tier) in [("a", "t3"), ("b", "t1")] {
        let row = slow.competitors.iter_mut().find(|c| c.name == name).unwrap();
        row.store = Some(Kept { durability: durability(tier), ..Kept::default() });
    }
    let compared = compare(&slow, &normal);
    for pair in &compared.pairs {
        assert_eq!(compared.holds(pair), pair.competitor == "b", "{pair:?}");
    }

    // Noise, and no controls.
    let mut noisy = normal.clone();
    noisy.probes.iter_mut().take(4).for_each(|p| p.steal = Some(0.5));
    derive(&mut noisy);
    assert_eq!(compare(&noisy, &normal).barred(), Some(Bar::Noise));
    let mut blind = normal.clone();
    blind.probes.clear();
    blind.cells.retain(|c| c.competitor != "null");
    assert_eq!(compare(&blind, &normal).barred(), Some(Bar::Uncontrolled));
}

#[test]
fn interleaved_runs_are_pairs_and_need_no_controls() {
    let (mut new, mut old) = (run_of(1, 12, &[1.0]), run_of(2, 12, &[1.0]));
    // Half of the rounds are three times as long for both, and the newer program takes 1.06.
    for (results, factor) in [(&mut new, 1.06), (&mut old, 1.0)] {
        results.interleaved = Some("the same".into());
        for cell in results.cells.iter_mut().filter(|c| c.competitor != "null") {
            for round in &mut cell.rounds {
                let held_up = if round.round % 2 == 0 { 3.0 } else { 1.0 };
                let jitter = 1.0 + 0.001 * f64::from(round.round % 3);
                round.ns = (1e7 * factor * held_up * jitter) as u64;
                round.user_ns = (1e7 * factor * jitter) as u64;
            }
        }
        derive(results);
    }
    let compared = compare(&new, &old);
    assert!(compared.interleaved && compared.barred().is_none() && compared.controls.is_empty());
    for pair in &compared.pairs {
        assert_eq!(pair.versus.verdict, Verdict::Slower, "{pair:?}");
        assert!((pair.versus.ratio.middle - 1.06).abs() < 1e-6, "{pair:?}");
    }
    assert_eq!(compared.regressions(0.05).len(), 2);
    assert!((compared.pairs[0].visible(0.05).unwrap() - 0.05).abs() < 1e-3);
    // On a noisy machine by processor time.
    assert_eq!(compared.plan.basis, Basis::Elapsed);
    new.probes.iter_mut().for_each(|p| p.others = Some(0.5));
    derive(&mut new);
    let compared = compare(&new, &old);
    assert_eq!(compared.plan.basis, Basis::Processor);
    assert_eq!(compared.pairs[0].versus.verdict, Verdict::Slower);
}

#[test]
fn the_interval_of_two_runs_encloses_the_truth_as_often_as_it_says() {
    let hits = (0..300)
        .filter(|seed| {
            let new = run_of(5000 + 2 * seed, 12, &[1.1]);
            let old = run_of(5001 + 2 * seed, 12, &[1.0]);
            let ratio = compare(&new, &old).pairs[0].versus.ratio;
            ratio.low.unwrap() <= 1.1 && 1.1 <= ratio.high.unwrap()
        })
        .count();
    assert!(hits >= 279, "{hits} of 300");
}

#[test]
fn a_slowdown_is_found_and_is_a_regression() {
    // One start in twenty is held up, in each of 12 comparisons: of 10 %, most are found.
    for (by, found_least, failed_least) in [(1.1, 130, 60), (1.2, 185, 90)] {
        let (mut found, mut failed) = (0, 0);
        for seed in 0..100 {
            let new = run_of(2 * seed, 12, &[1.0, by, 1.0, 1.0, 1.0, 1.0]);
            let old = run_of(2 * seed + 1, 12, &[1.0; 6]);
            let compared = compare(&new, &old);
            let slow = compared.pairs.iter().filter(|p| p.phase == "p1");
            found += slow.filter(|p| p.versus.verdict == Verdict::Slower).count();
            failed += usize::from(!compared.regressions(0.05).is_empty());
        }
        println!("{by} times: found {found} of 200 times; beyond 5 % in {failed} of 100 runs");
        assert!(found >= found_least, "{by}: {found} of 200");
        assert!(failed >= failed_least, "{by}: {failed} of 100");
    }
}

#[test]
fn what_differs_is_named_and_bars_what_it_must() {
    let (new, mut old) = (run_of(1, 12, &[1.2]), run_of(2, 12, &[1.0]));
    assert_eq!(compare(&new, &old).regressions(0.05).len(), 2);
    old.software.insert("serde".into(), "1.0".into());
    let compared = compare(&new, &old);
    assert_eq!(compared.differences.iter().filter(|d| d.what == "serde").count(), 1);
    assert_eq!(compared.regressions(0.05).len(), 2, "a version is what is compared");
    old.machine.cpu = "another".into();
    let compared = compare(&new, &old);
    assert!(compared.differences.iter().any(|d| d.bars && d.what == "processor"));
    assert!(compared.regressions(0.05).is_empty() && !compared.holds(&compared.pairs[0]));
}

#[test]
fn what_only_one_has_is_named() {
    let (new, old) = (run_of(1, 3, &[1.0, 1.0]), run_of(2, 3, &[1.0]));
    let compared = compare(&new, &old);
    assert_eq!((compared.pairs.len(), compared.only_new), (2, vec!["a p1".into(), "b p1".into()]));
    assert_eq!(compare(&old, &new).only_old, ["a p1", "b p1"]);
    assert!(compare(&Results::default(), &new).pairs.is_empty());
}

#[test]
fn below_5_starts_there_is_a_ratio_and_nothing_more() {
    for starts in 1..5 {
        let (new, old) = (run_of(1, starts, &[1.3, 1.0]), run_of(2, 12, &[1.0, 1.0]));
        for mut pair in [(new.clone(), old.clone()), (old, new)] {
            for interleaved in [None, Some("the same".to_owned())] {
                (pair.0.interleaved, pair.1.interleaved) = (interleaved.clone(), interleaved);
                let compared = compare(&pair.0, &pair.1);
                assert_eq!(compared.pairs.len(), 4);
                for pair in &compared.pairs {
                    let versus = pair.versus;
                    assert_eq!(
                        (versus.ratio.low, versus.joint),
                        (None, None),
                        "{starts}: {pair:?}"
                    );
                    assert_eq!((versus.verdict, versus.p), (Verdict::Untested, 1.0), "{starts}");
                    assert!(pair.visible(0.05).is_none() && pair.few() == Some(starts), "{pair:?}");
                }
                assert!(compared.regressions(0.05).is_empty());
            }
        }
    }
}

/// A run whose rounds are not independent: what slowed one down is partly there in the next.
fn correlated(random: &mut Random, starts: u32, serial: f64) -> Results {
    let mut results = run_of(7, starts, &[1.0; 4]);
    // Of the machine, so that all cells share it; and of each cell by itself.
    let mut walk = || {
        let mut last = random.normal();
        let next = |_| {
            let now = last;
            last = serial * last + (1.0 - serial * serial).sqrt() * random.normal();
            now
        };
        (0..starts).map(next).collect::<Vec<f64>>()
    };
    let machine = walk();
    let own: Vec<Vec<f64>> = results.cells.iter().map(|_| walk()).collect();
    for (cell, own) in results.cells.iter_mut().zip(own) {
        let factor = if cell.competitor == "null" { 0.001 } else { 1.0 };
        for ((round, own), machine) in cell.rounds.iter_mut().zip(own).zip(&machine) {
            round.ns = (1e7 * factor * (0.03 * own + 0.02 * machine).exp()) as u64;
        }
    }
    for (probe, machine) in results.probes.iter_mut().zip(&machine) {
        probe.spin_ns = (220_000.0 * (0.02 * machine).exp()) as u64;
    }
    derive(&mut results);
    results
}

#[test]
fn the_same_program_is_called_different_in_at_most_5_percent_though_rounds_correlate() {
    for (starts, serial, interleaved) in
        [(6, 0.3, false), (12, 0.5, false), (24, 0.6, false), (12, 0.5, true), (24, 0.6, true)]
    {
        let mut random = Random::new(u64::from(starts));
        let runs = 100;
        let called = (0..runs)
            .filter(|_| {
                let mut new = correlated(&mut random, starts, serial);
                let mut old = correlated(&mut random, starts, serial);
                if interleaved {
                    (new.interleaved, old.interleaved) = (Some("x".into()), Some("x".into()));
                }
                let compared = compare(&new, &old);
                assert!(compared.pairs.iter().all(|p| p.versus.joint.is_some()));
                let shown = |p: &&Pair| compared.holds(p) && is_difference(p.versus.verdict);
                compared.pairs.iter().any(|p| shown(&p))
            })
            .count();
        println!("{starts} starts, {serial}, in turns {interleaved}: {called} of {runs}");
        assert!(called <= 5, "{starts} starts, {serial}, in turns {interleaved}: {called}");
    }
}

#[test]
fn what_is_said_of_a_pair_follows_from_one_interval() {
    let new = run_of(3, 12, &[1.0, 1.2, 0.8, 1.01]);
    let old = run_of(4, 12, &[1.0; 4]);
    let compared = compare(&new, &old);
    let mut verdicts = std::collections::BTreeSet::new();
    for pair in &compared.pairs {
        let versus = &pair.versus;
        let (low, high) = versus.joint.unwrap();
        let apart = low > 1.0 || high < 1.0;
        assert_eq!(apart, versus.adjusted < 0.05, "{pair:?}");
        assert!(apart || !is_difference(versus.verdict), "{pair:?}");
        verdicts.insert(format!("{:?}", versus.verdict));
    }
    assert!(verdicts.contains("Slower") && verdicts.contains("Faster"), "{verdicts:?}");
    // The figures of both runs over each other, but for the controls' drift, which is told.
    let pair = compared.pairs.iter().find(|p| p.phase == "p1").unwrap();
    let quotient = pair.new.middle / pair.old.middle / compared.drift.unwrap();
    assert!((pair.versus.ratio.middle / quotient - 1.0).abs() < 0.02, "{quotient} {pair:?}");
}
