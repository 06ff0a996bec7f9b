//! One run against an earlier one: pure, from their results alone.
//!
//! Rounds of two runs are no pairs, so each run's median is resampled by itself, by start, and the
//! logarithms are subtracted ([`Bootstrap::difference`]). Holm's adjustment is over the whole
//! comparison. What differs between the runs is looked for first: figures of other records, another
//! machine, another workload or another durability cannot be compared, whatever they are.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    derive::{derive, means_of, versus},
    results::{
        Cell, Comparison, Contender, Difference, Durability, Kept, Pace, Pair, Phase, Results, Run,
        Stopped,
    },
    stats::{Bootstrap, Ratio, Rule, Sample, holm},
};

/// Compares a run with an earlier one.
pub fn compare(new: &Results, old: &Results) -> Comparison {
    let mut comparison = Comparison {
        bench: new.bench.clone(),
        new: run(new),
        old: run(old),
        plan: new.plan.clone(),
        differences: differences(new, old),
        ..Comparison::default()
    };
    let plan = &new.plan;
    let bootstrap = Bootstrap { resamples: plan.resamples, seed: plan.seed, level: plan.level };
    let rule = Rule { effect: plan.effect, level: 1.0 - plan.level };
    // Both on the same basis: rounds have either time.
    let mut again;
    let old = match old.plan.basis == plan.basis {
        true => old,
        false => {
            again = old.clone();
            again.plan.basis = plan.basis;
            derive(&mut again);
            &again
        }
    };
    let mut found: Vec<(Pair, Ratio)> = Vec::new();
    for (i, cell) in timed(new) {
        let Some((j, before)) = timed(old).find(|(_, c)| same(c, cell)) else {
            comparison.only_new.push(format!("{} {}", cell.competitor, cell.phase));
            continue;
        };
        let Some(phase) = new.phase(&cell.phase) else { continue };
        let ratio = Ratio::between(&logs(new, i), &logs(old, j), &bootstrap);
        if let (Some(ratio), Some(a), Some(b)) = (ratio, &cell.summary, &before.summary) {
            found.push((
                Pair {
                    competitor: cell.competitor.clone(),
                    phase: cell.phase.clone(),
                    unit: phase.unit.clone(),
                    new: a.ns,
                    old: b.ns,
                    versus: versus(&ratio, 1.0, &rule),
                    starts: (a.starts, b.starts),
                },
                ratio,
            ));
        }
    }
    let gone = timed(old).filter(|(_, c)| !timed(new).any(|(_, n)| same(n, c)));
    comparison.only_old = gone.map(|(_, c)| format!("{} {}", c.competitor, c.phase)).collect();
    let adjusted = holm(&found.iter().map(|f| f.1.p).collect::<Vec<_>>());
    comparison.pairs = found
        .into_iter()
        .zip(adjusted)
        .map(|((pair, ratio), p)| Pair { versus: versus(&ratio, p, &rule), ..pair })
        .collect();
    comparison
}

fn same(a: &Cell, b: &Cell) -> bool {
    a.competitor == b.competitor && a.phase == b.phase
}

/// Cells with figures that say something of speed: not the null competitor's, and not those of
/// phases whose duration was planned.
fn timed(results: &Results) -> impl Iterator<Item = (usize, &Cell)> {
    results.cells.iter().enumerate().filter(|(_, c)| {
        let null = results.competitor(&c.competitor).is_none_or(|k| k.null);
        let planned =
            results.phase(&c.phase).is_none_or(|p| p.pace.is_some_and(|p| p != Pace::Free));
        c.summary.is_some() && !null && !planned
    })
}

fn logs(results: &Results, cell: usize) -> Vec<Sample> {
    means_of(results, cell)
        .into_iter()
        .filter(|m| m.2 > 0.0)
        .map(|(start, _, ns)| Sample { start, value: ns.ln() })
        .collect()
}

fn run(results: &Results) -> Run {
    let data = &results.dataset;
    let machine = &results.machine;
    Run {
        started: results.started.clone(),
        version: results.software.get("steelyard").cloned().unwrap_or_default(),
        records: data.records,
        kind: data.kind.clone(),
        dataset: data.name.clone(),
        machine: format!("{}, {} cores, {}", machine.cpu, machine.cores, machine.kernel),
        noisy: results.noise().1,
        incomplete: matches!(results.stopped, None | Some(Stopped::Interrupted)),
    }
}

/// Collects what differs.
#[derive(Default)]
struct Differences(Vec<Difference>);

impl Differences {
    fn look(&mut self, what: &str, new: impl ToString, old: impl ToString, bars: bool) {
        self.of(None, what, new, old, bars);
    }

    fn of(
        &mut self,
        competitor: Option<&str>,
        what: &str,
        new: impl ToString,
        old: impl ToString,
        bars: bool,
    ) {
        let (new, old) = (new.to_string(), old.to_string());
        if new != old {
            let competitor = competitor.map(str::to_owned);
            self.0.push(Difference { what: what.into(), new, old, bars, competitor });
        }
    }

    fn maps(&mut self, new: &BTreeMap<String, String>, old: &BTreeMap<String, String>) {
        let names: BTreeSet<&String> = new.keys().chain(old.keys()).collect();
        let of =
            |map: &BTreeMap<String, String>, name: &str| map.get(name).cloned().unwrap_or_default();
        for name in names {
            // A program that was not optimised is another one.
            self.look(name, of(new, name), of(old, name), name == "opt-level");
        }
    }
}

fn differences(new: &Results, old: &Results) -> Vec<Difference> {
    let mut all = Differences::default();
    all.look("bench", &new.bench, &old.bench, true);
    let text = |r: &Results| r.workload.as_ref().map(|w| w.text.clone()).unwrap_or_default();
    if text(new) != text(old) {
        let name = |r: &Results| r.workload.as_ref().map(|w| w.name.clone()).unwrap_or_default();
        let then = format!("{} as it was", name(old));
        all.look("workload", name(new), then, true);
    }
    let (a, b) = (&new.machine, &old.machine);
    all.look("processor", &a.cpu, &b.cpu, true);
    all.look("logical processors", a.cores, b.cores, true);
    // What a virtual machine calls its memory varies by a little from start to start.
    if a.memory.abs_diff(b.memory) > a.memory.max(b.memory) / 50 {
        all.look("bytes of memory", a.memory, b.memory, false);
    }
    all.look("kernel", &a.kernel, &b.kernel, false);
    all.look("system", &a.os, &b.os, false);
    let governor = |g: &Option<String>| g.clone().unwrap_or_default();
    all.look("frequency governor", governor(&a.governor), governor(&b.governor), false);
    all.look("records", new.dataset.records, old.dataset.records, true);
    all.look("kind of records", &new.dataset.kind, &old.dataset.kind, true);
    all.look("name of the records", &new.dataset.name, &old.dataset.name, false);
    let bytes = |r: &Results| r.dataset.sizes.get("").map_or(String::new(), u64::to_string);
    all.look("bytes of the records as JSON lines", bytes(new), bytes(old), true);
    let basis = |r: &Results| format!("{:?}", r.plan.basis).to_lowercase();
    all.look("time that figures are of", basis(new), basis(old), false);
    all.look("seed", new.plan.seed, old.plan.seed, false);
    all.look("nanoseconds of a window", new.plan.window_ns, old.plan.window_ns, false);
    all.maps(&new.software, &old.software);
    all.maps(&new.settings, &old.settings);
    for contender in new.competitors.iter().filter(|c| !c.null) {
        if let Some(before) = old.competitor(&contender.name) {
            contenders(&mut all, contender, before);
        }
    }
    for phase in &new.phases {
        if let Some(before) = old.phase(&phase.id) {
            phases(&mut all, phase, before);
        }
    }
    all.0
}

fn contenders(all: &mut Differences, new: &Contender, old: &Contender) {
    let name = new.name.as_str();
    let plain = |c: &Contender| c.sizes.get("").map_or(String::new(), u64::to_string);
    // The same records in the same format are as long; a format may change, and is then compared.
    all.of(Some(name), &format!("bytes of all records as {name}"), plain(new), plain(old), false);
    let equal = |c: &Contender| c.proof.as_ref().map_or(String::new(), |p| p.equal.to_string());
    all.of(Some(name), &format!("records equal from {name}"), equal(new), equal(old), false);
    let (Some(a), Some(b)) = (&new.store, &old.store) else { return };
    let class = |d: &Durability| {
        format!("{}{}", d.set.as_deref().unwrap_or("unknown"), if d.broken { "!" } else { "" })
    };
    let (now, then) = (class(&a.durability), class(&b.durability));
    all.of(Some(name), &format!("durability of {name}"), now, then, true);
    let product = |k: &Kept| format!("{} {}", k.product, k.version);
    all.of(Some(name), &format!("version of {name}"), product(a), product(b), false);
    all.of(Some(name), &format!("connection of {name}"), &a.connection, &b.connection, false);
    let settings: BTreeSet<&String> = a.settings.keys().chain(b.settings.keys()).collect();
    for setting in settings {
        let of = |k: &Kept| k.settings.get(setting).cloned().unwrap_or_default();
        all.of(Some(name), &format!("{setting} of {name}"), of(a), of(b), false);
    }
}

fn phases(all: &mut Differences, new: &Phase, old: &Phase) {
    let id = &new.id;
    all.look(&format!("operations in {id}"), new.units, old.units, false);
    all.look(&format!("what {id} does"), &new.about, &old.about, false);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{
        random::Random,
        results::{Plan, Probe, Round, Verdict},
    };

    /// A run of competitors whose operations take `ns` times the factor of a phase, on a machine
    /// whose starts have their luck and whose windows have theirs.
    fn run_of(seed: u64, starts: u32, factors: &[f64]) -> Results {
        let mut random = Random::new(seed);
        let mut results = Results {
            bench: "formats".into(),
            plan: Plan { resamples: 500, seed, ..Plan::default() },
            baseline: "a".into(),
            probes: (0..starts).map(|round| Probe { round, ..Probe::default() }).collect(),
            stopped: Some(Stopped::Rounds),
            ..Results::default()
        };
        for name in ["a", "b"] {
            results.competitors.push(Contender { name: name.into(), ..Contender::default() });
        }
        for (p, factor) in factors.iter().enumerate() {
            let phase = Phase::new(&format!("p{p}"), "table", 1000, "simulated");
            for name in ["a", "b"] {
                let rounds = (0..starts).map(|start| {
                    let mut log = 0.01 * random.normal() + 0.02 * random.normal();
                    if random.unit() < 0.05 {
                        log += 0.1 + 0.4 * random.unit();
                    }
                    let ns = (1e6 * factor * log.exp()) as u64;
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

    #[test]
    fn the_same_program_twice_is_called_different_in_at_most_5_percent_of_comparisons() {
        for starts in [4, 12] {
            let called = (0..200)
                .filter(|seed| {
                    let new = run_of(2 * seed, starts, &[1.0, 1.0, 1.0]);
                    let old = run_of(2 * seed + 1, starts, &[1.0, 1.0, 1.0]);
                    let compared = compare(&new, &old);
                    assert_eq!(compared.pairs.len(), 6);
                    compared.pairs.iter().any(|p| p.versus.verdict != Verdict::NoDifference)
                })
                .count();
            println!("A/A of {starts} starts: {called} of 200 comparisons called a difference");
            assert!(called <= 10, "{starts} starts: {called} of 200");
        }
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
    fn a_slowdown_of_10_percent_is_found_and_is_a_regression_of_5() {
        let (mut found, mut failed) = (0, 0);
        for seed in 0..100 {
            let new = run_of(2 * seed, 12, &[1.0, 1.1, 1.0]);
            let old = run_of(2 * seed + 1, 12, &[1.0, 1.0, 1.0]);
            let compared = compare(&new, &old);
            let slow = compared.pairs.iter().filter(|p| p.phase == "p1");
            found += slow.filter(|p| p.versus.verdict == Verdict::Slower).count();
            failed += usize::from(!compared.regressions(0.05).is_empty());
        }
        println!("10 % slower: found {found} of 200 times; beyond 5 % in {failed} of 100 runs");
        assert!(found >= 190, "{found} of 200");
        assert!(failed >= 80, "{failed} of 100");
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
        assert_eq!(
            (compared.pairs.len(), compared.only_new),
            (2, vec!["a p1".into(), "b p1".into()])
        );
        assert_eq!(compare(&old, &new).only_old, ["a p1", "b p1"]);
        assert!(compare(&Results::default(), &new).pairs.is_empty());
    }
}
