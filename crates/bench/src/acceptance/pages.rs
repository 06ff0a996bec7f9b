//! Acceptance tests of whole pages: five simulated competitors in four phases, with the noise of real machines, judged
//! by [`derive`] as real ones are. A page counts as wrong if any verdict or any rank on it is wrong.
//!
//! `cargo test --release acceptance -- --nocapture` prints the findings.

use crate::{
    derive::derive,
    random::Random,
    results::{Cell, Contender, Contrast, Phase, Plan, Probe, Results, Round, Verdict},
};

const COMPETITORS: usize = 5;
const PHASES: usize = 4;
/// The one that is slowed where one is.
const SLOWED: usize = 2;

/// The noise of a machine, in logarithms of times.
#[derive(Clone, Copy)]
struct Noise {
    about: &'static str,
    /// Of each start.
    start: f64,
    /// Of each window, beside it …
    window: f64,
    /// … of which so much is left in the next round.
    serial: f64,
    /// The share of windows in which something else ran for a while.
    spikes: f64,
    /// By how much everything becomes slower from the first round to the last.
    drift: f64,
}

const QUIET: Noise =
    Noise { about: "quiet", start: 0.01, window: 0.02, serial: 0.0, spikes: 0.05, drift: 0.0 };
const BUSY: Noise =
    Noise { about: "busy", start: 0.02, window: 0.06, serial: 0.3, spikes: 0.05, drift: 0.2 };
const DRIFTING: Noise =
    Noise { about: "serial 0.6", start: 0.01, window: 0.02, serial: 0.6, spikes: 0.05, drift: 0.3 };
const WILD: Noise =
    Noise { about: "wild", start: 0.05, window: 0.2, serial: 0.3, spikes: 0.1, drift: 0.5 };

/// A page of competitors whose operations take these times, in microseconds.
fn page(seed: u64, starts: u32, noise: Noise, costs: [f64; COMPETITORS]) -> Results {
    let mut random = Random::new(seed);
    let mut results = Results {
        bench: "formats".into(),
        plan: Plan { resamples: 100, seed, ..Plan::default() },
        baseline: "0".into(),
        probes: (0..starts).map(|round| Probe { round, ..Probe::default() }).collect(),
        ..Results::default()
    };
    // What the machine does to all of them alike, from round to round.
    let mut common = random.normal();
    let machine: Vec<f64> = (0..starts)
        .map(|round| {
            common = 0.7 * common + 0.7 * random.normal();
            noise.drift * f64::from(round) / f64::from(starts) + 2.0 * noise.window * common
        })
        .collect();
    for c in 0..COMPETITORS {
        results.competitors.push(Contender { name: c.to_string(), ..Contender::default() });
    }
    for p in 0..PHASES {
        let phase = Phase::new(&format!("p{p}"), "table", 1000, "simulated");
        for (c, cost) in costs.iter().enumerate() {
            let mut last = random.normal();
            let rounds = (0..starts).map(|start| {
                let mut log = machine[start as usize] + noise.start * random.normal();
                log += noise.window * last;
                last = noise.serial * last
                    + (1.0 - noise.serial * noise.serial).sqrt() * random.normal();
                if random.unit() < noise.spikes {
                    log += 0.1 + 0.4 * random.unit();
                }
                let ns = (1e6 * cost * log.exp()) as u64;
                Round { start, round: start, ns, user_ns: ns, waits: 1, ..Round::default() }
            });
            results.cells.push(Cell {
                competitor: c.to_string(),
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

fn pairs(results: &Results) -> &[Contrast] {
    results.family.as_ref().map_or(&[], |family| &family.pairs)
}

/// Whether anything was called different.
fn calls_a_difference(results: &Results) -> bool {
    let different = |pair: &Contrast| {
        pair.versus.is_some_and(|v| matches!(v.verdict, Verdict::Faster | Verdict::Slower))
    };
    let ranked = |cell: &Cell| cell.summary.as_ref().is_some_and(|s| s.group > 1);
    pairs(results).iter().any(different) || results.cells.iter().any(ranked)
}

#[test]
fn equals_are_told_apart_on_at_most_5_percent_of_pages() {
    let pages = 200;
    for noise in [QUIET, BUSY, DRIFTING, WILD] {
        for starts in [3, 5, 6, 12] {
            let wrong = (0..pages)
                .filter(|seed| {
                    let seed = seed * 100 + u64::from(starts);
                    calls_a_difference(&page(seed, starts, noise, [1.0; COMPETITORS]))
                })
                .count();
            println!("A/A, {}, {starts} starts: {wrong} of {pages} pages wrong", noise.about);
            assert!(wrong <= 10, "{}, {starts} starts: {wrong} of {pages}", noise.about);
            assert!(starts >= 5 || wrong == 0, "no ranks below 5 starts");
        }
    }
}

/// How often a competitor slowed by `by` was found slower than each of the others, how often it was
/// called alike or faster, over so many pages.
fn found(starts: u32, noise: Noise, by: f64, usual: bool) -> (f64, usize, usize) {
    let pages = 40;
    let (mut slower, mut asked, mut wrong) = (0, 0, 0);
    for seed in 0..pages {
        // Usual stores differ by much; the one that is slowed has a twin.
        let mut costs = if usual { [1.0, 2.0, 1.0, 4.0, 8.0] } else { [1.0; COMPETITORS] };
        costs[SLOWED] *= by;
        let results = page(7000 + seed, starts, noise, costs);
        for phase in &results.phases {
            let twins = (0..COMPETITORS).filter(|c| *c != SLOWED && costs[*c] == 1.0);
            for twin in twins {
                let answer = results.answer(&SLOWED.to_string(), &twin.to_string(), &phase.id);
                let verdict = answer.unwrap().verdict;
                asked += 1;
                slower += usize::from(verdict == Verdict::Slower);
                wrong += usize::from(matches!(verdict, Verdict::Faster | Verdict::Alike));
            }
        }
    }
    (100.0 * slower as f64 / f64::from(asked), wrong, pages as usize)
}

#[test]
fn what_is_slower_is_found_where_the_rounds_can_show_it() {
    for noise in [QUIET, BUSY] {
        for starts in [6, 12, 24] {
            for by in [1.05, 1.10, 1.20, 2.0] {
                let (all_equal, wrong, pages) = found(starts, noise, by, false);
                let (usual, wrong_too, _) = found(starts, noise, by, true);
                println!(
                    "{:.0} % slower, {}, {starts} starts: found {all_equal:.0} % among equals, \
                     {usual:.0} % on a usual page",
                    100.0 * (by - 1.0),
                    noise.about
                );
                assert!(wrong + wrong_too <= pages / 10, "{wrong} and {wrong_too} called alike");
                let quiet = noise.about == QUIET.about;
                assert!(!quiet || by < 2.0 || usual > 85.0, "twice the time: {usual} %");
                assert!(!quiet || starts < 24 || by < 1.1 || usual > 90.0, "{by}: {usual} %");
            }
        }
    }
}

/// Six starts are few; what takes twice the time is found all the same.
#[test]
fn twice_the_time_is_found_on_six_starts() {
    let noise = Noise { about: "3 %", window: 0.03, spikes: 0.0, ..QUIET };
    for usual in [false, true] {
        let (slower, ..) = found(6, noise, 2.0, usual);
        println!("100 % slower, 3 % noise, 6 starts: found {slower:.0} %");
        assert!(slower > 98.0, "{slower} %");
    }
}

/// Equals that hardly vary are called alike, not left open.
#[test]
fn equals_are_called_alike_where_the_rounds_are_good_enough() {
    let still = Noise { start: 0.002, window: 0.004, spikes: 0.0, ..QUIET };
    let (mut alike, mut all) = (0, 0);
    for seed in 0..20 {
        let results = page(seed, 12, still, [1.0; COMPETITORS]);
        all += pairs(&results).len();
        let of = |c: &&Contrast| c.versus.unwrap().verdict == Verdict::Alike;
        alike += pairs(&results).iter().filter(of).count();
    }
    println!("equals at 0.4 % noise: {alike} of {all} pairs called alike");
    assert!(10 * alike > 9 * all, "{alike} of {all}");
}

/// Rank, mark and verdict are read from one answer.
#[test]
fn ranks_and_verdicts_never_contradict_each_other() {
    for seed in 0..30 {
        let costs = [1.0, 1.02, 1.05, 1.1, 1.3];
        let results = page(seed, 6, BUSY, costs);
        for cell in &results.cells {
            let faster = results.competitors.iter().filter(|other| {
                let answer = results.answer(&cell.competitor, &other.name, &cell.phase);
                answer.is_some_and(|v| v.verdict == Verdict::Slower)
            });
            let summary = cell.summary.as_ref().unwrap();
            assert_eq!(summary.group as usize, 1 + faster.count());
            if let Some(versus) = summary.versus {
                let same = results.answer(&cell.competitor, "0", &cell.phase).unwrap();
                assert_eq!(versus, same);
                let (low, high) = versus.joint.unwrap();
                let apart = low > 1.0 || high < 1.0;
                let called = matches!(versus.verdict, Verdict::Faster | Verdict::Slower);
                assert!(!called || apart, "{versus:?}");
                assert_eq!(apart, versus.adjusted <= 0.05, "{versus:?}");
            }
        }
    }
}

/// On a noisy machine answers are of processor time.
#[test]
fn a_noisy_machine_has_answers_of_processor_time_only() {
    let mut results = page(1, 8, QUIET, [1.0; COMPETITORS]);
    // Something else held up one of them; it used no more of the processor for it.
    for cell in results.cells.iter_mut().filter(|c| c.competitor == "3") {
        cell.rounds.iter_mut().for_each(|round| round.ns *= 3);
    }
    derive(&mut results);
    assert!(calls_a_difference(&results), "elapsed times differ");
    results.probes.iter_mut().for_each(|probe| probe.steal = Some(0.3));
    derive(&mut results);
    assert!(results.noise().1);
    assert_eq!(results.family.as_ref().unwrap().basis, crate::results::Basis::Processor);
    assert!(!calls_a_difference(&results), "processor times do not");
}
