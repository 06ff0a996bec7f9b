//! Which rounds something else disturbed (rule 10), by the probes of the machine that were taken between them.
//!
//! Nothing is thrown away for it. What the bench does itself must not count: its load is about 1, and where it hands data
//! from thread to thread its own threads preempt one another some hundred times a second; so load and preemptions are
//! kept, and neither decides.

use crate::{Cell, Probe, stats::median};

/// How many times longer than the shortest of the run a probe's spin may take on average before
/// it counts as noisy.
const NOISY_SPIN: f64 = 1.10;
/// The share of the machine's processors that others may use: more than the kernel's own work
/// (writing files back, looking after memory) takes, and a fraction of a busy process.
const NOISY_OTHERS: f64 = 0.10;
/// The share of the time of windows that wait for nothing in which they may stand still.
const NOISY_HELD: f64 = 0.02;
/// The share of stolen time that makes a round noisy.
const NOISY_STEAL: f64 = 0.01;
/// A synced write this many times the median makes a round noisy: disks vary more than processors.
const NOISY_SYNC: f64 = 5.0;

/// Fills in what follows from the probes and the timed windows they belong to: preemptions, the time
/// in which windows stood still, and which probes were noisy.
pub fn judge(probes: &mut [Probe], cells: &[Cell]) {
    let least = probes.iter().map(|p| p.spin_least_ns).min().unwrap_or(0) as f64;
    let syncs: Vec<f64> = probes.iter().filter_map(|p| p.sync_ns).map(|ns| ns as f64).collect();
    let sync = median(&syncs).unwrap_or(f64::INFINITY);
    for probe in probes {
        let turn = probe.competitor.clone();
        let of = |cell: &&Cell| turn.as_ref().is_none_or(|name| *name == cell.competitor);
        let windows = || {
            let cells = cells.iter().filter(of);
            cells.flat_map(|c| &c.rounds).filter(|r| r.round == probe.round)
        };
        let (times, ns) = windows().fold((0, 0), |sum, r| (sum.0 + r.preemptions, sum.1 + r.ns));
        // A window that waited for nothing needed a processor all the time: what it did not get
        // of it, another had. (One that waited also stood still for its own sake.)
        let (held, whole) = windows().filter(|r| r.waits == 0).fold((0, 0), |sum, r| {
            (sum.0 + r.ns.saturating_sub(r.user_ns + r.system_ns), sum.1 + r.ns)
        });
        probe.preemptions = if ns > 0 { times as f64 * 1e9 / ns as f64 } else { 0.0 };
        probe.held = (whole > 0).then(|| held as f64 / whole as f64);
        probe.noisy = probe.spin_ns as f64 > NOISY_SPIN * least
            || probe.others.is_some_and(|share| share > NOISY_OTHERS)
            || probe.held.is_some_and(|share| share > NOISY_HELD)
            || probe.steal.is_some_and(|share| share > NOISY_STEAL)
            || probe.sync_ns.is_some_and(|ns| ns as f64 > NOISY_SYNC * sync);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Results, Round, random::Random};

    /// A run of `rounds` rounds of two cells, one that waits for its own threads and one that
    /// waits for nothing, with noise of a seed and `change` in its probes and windows.
    fn run(seed: u64, change: impl Fn(&mut Probe, &mut [Round; 2])) -> Vec<Probe> {
        let mut random = Random::new(seed);
        let mut near =
            |middle: f64, share: f64| (middle * (1.0 + share * (2.0 * random.unit() - 1.0))) as u64;
        let mut cells = [Cell::default(), Cell::default()];
        let mut probes = Vec::new();
        for round in 0..24 {
            let mut probe = Probe {
                round,
                spin_ns: near(220_000.0, 0.02),
                spin_least_ns: 215_000,
                sync_ns: Some(near(2e6, 0.6)),
                load: Some(1.1),
                steal: Some(0.0),
                others: Some(near(10_000.0, 1.0) as f64 / 1e6),
                ..Probe::default()
            };
            let ns = near(1e8, 0.1);
            let threads =
                Round { round, ns, user_ns: ns, waits: 90, preemptions: 60, ..Round::default() };
            let alone = Round {
                round,
                ns,
                user_ns: ns - near(3e5, 1.0),
                preemptions: 8,
                ..Round::default()
            };
            let mut windows = [threads, alone];
            change(&mut probe, &mut windows);
            probes.push(probe);
            cells.iter_mut().zip(windows).for_each(|(cell, round)| cell.rounds.push(round));
        }
        judge(&mut probes, &cells);
        probes
    }

    fn noisy(probes: &[Probe]) -> usize {
        probes.iter().filter(|p| p.noisy).count()
    }

    #[test]
    fn an_idle_machine_is_quiet_however_busy_the_bench_is() {
        for seed in 0..50 {
            let probes = run(seed, |_, _| ());
            assert_eq!(noisy(&probes), 0, "{probes:?}");
            assert!(probes[0].preemptions > 300.0 && probes[0].held.unwrap() < 0.01);
            // Its threads keep each other from running: that is no noise.
            let probes = run(seed, |_, [threads, _]| threads.user_ns /= 2);
            assert_eq!(noisy(&probes), 0, "{probes:?}");
        }
    }

    #[test]
    fn a_busy_machine_is_noisy_by_each_of_its_signs() {
        for seed in 0..50 {
            // A busy process on each processor: half of everything is theirs.
            let busy = run(seed, |probe, windows| {
                probe.others = Some(0.75);
                probe.spin_ns *= 2;
                windows.iter_mut().for_each(|w| w.ns *= 2);
            });
            assert_eq!(noisy(&busy), 24);
            let each: [fn(&mut Probe, &mut [Round; 2]); 5] = [
                |probe, _| probe.others = Some(0.5),
                |_, [_, alone]| alone.ns += alone.ns / 20,
                |probe, _| probe.steal = Some(0.02),
                |probe, _| probe.spin_ns += probe.spin_ns / 5,
                |probe, _| {
                    probe.sync_ns =
                        probe.sync_ns.map(|ns| ns * (1 + 30 * u64::from(probe.round < 8)))
                },
            ];
            let found = each.map(|change| noisy(&run(seed, change)));
            assert_eq!(found, [24, 24, 24, 24, 8]);
        }
    }

    #[test]
    fn a_turn_is_judged_by_its_own_windows_and_marks_its_round() {
        let probe = |round, name: &str, others| Probe {
            round,
            competitor: Some(name.into()),
            spin_ns: 1,
            spin_least_ns: 1,
            others: Some(others),
            ..Probe::default()
        };
        // Both run without waiting; the second one's windows stand still in round 1.
        let cell = |name: &str, held: u64| Cell {
            competitor: name.into(),
            rounds: (0..10)
                .map(|round| {
                    let user_ns = if round == 1 { 1000 - held } else { 1000 };
                    Round { round, ns: 1000, user_ns, ..Round::default() }
                })
                .collect(),
            ..Cell::default()
        };
        let cells = vec![cell("a", 0), cell("b", 500)];
        let turns = |round| [probe(round, "a", 0.0), probe(round, "b", 0.0)];
        let mut probes: Vec<Probe> = (0..10).flat_map(turns).collect();
        // And somebody else works during one turn of the first.
        probes[2 * 7].others = Some(0.4);
        judge(&mut probes, &cells);
        let noisy: Vec<(u32, &str)> = (probes.iter().filter(|p| p.noisy))
            .map(|p| (p.round, p.competitor.as_deref().unwrap()))
            .collect();
        assert_eq!(noisy, [(1, "b"), (7, "a")]);
        // Two of ten rounds, in one of the turns of each: a fifth marks no run, more does.
        let mut results = Results { probes, cells, ..Results::default() };
        assert_eq!(results.noise(), (0.2, false));
        results.probes[2 * 8 + 1].noisy = true;
        assert_eq!(results.noise(), (0.3, true));
        results.probes[2 * 7 + 1].noisy = true;
        assert_eq!(results.noise(), (0.3, true), "a round is noisy once");
        // Of many that take turns, one that is disturbed leaves the others' comparisons as they are.
        let turn = |round, name: usize| probe(round, &format!("{name}"), 0.0);
        results.probes = (0..10).flat_map(|round| (0..10).map(move |n| turn(round, n))).collect();
        for round in 0..10 {
            results.probes[11 * round].noisy = true;
        }
        let (share, marked) = results.noise();
        assert!((share - 0.2).abs() < 1e-9 && !marked, "{share}");
    }

    #[test]
    fn what_is_not_known_is_not_held_against_it() {
        let unknown = Probe { spin_ns: 1, spin_least_ns: 1, ..Probe::default() };
        let mut probes = vec![unknown; 3];
        judge(&mut probes, &[]);
        assert!(probes.iter().all(|p| !p.noisy && p.held.is_none()), "{probes:?}");
    }
}
