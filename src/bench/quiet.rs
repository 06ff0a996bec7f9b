//! The quiet gate (rule 10): is anything else using this machine?
//!
//! Before each round, and where stores take turns before the turn of each, a fixed loop of arithmetic
//! and a small synced write are timed. After it, `processors.rs` says what other processes and the
//! hypervisor have used of the processors meanwhile. All of it is stored; [`judge`], which is pure,
//! decides which probes were noisy. Nothing is thrown away for it.
//!
//! What the bench does itself must not count. Its load is about 1, and where it hands data from
//! thread to thread (compressed files) its own threads preempt one another some hundred times a
//! second; so both are stored, and neither decides.

use std::{
    fs::{self, File},
    hint::black_box,
    io::{Seek, SeekFrom, Write},
    path::Path,
    time::Instant,
};

use super::{
    processors::Seen,
    results::{Cell, Probe},
    stats::median,
};

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

/// Steps of the loop: some 200 microseconds.
const SPINS: u32 = 200_000;
/// How often the loop is run: some 9 milliseconds in all, longer than the slices in which a busy
/// machine shares its processors out.
const LOOPS: u32 = 40;

/// Steps of the other loop: some 60 microseconds, and how often it is run.
const WIDE_SPINS: u64 = 50_000;
const WIDE_LOOPS: u32 = 20;

/// Probes the machine.
#[derive(Debug)]
pub struct Gate {
    file: Option<File>,
    /// When the last probe was taken.
    seen: Option<Seen>,
}

impl Gate {
    /// A gate that writes its small file into `folder`; without one where that cannot be written.
    pub fn new(folder: &Path) -> Gate {
        Gate { file: File::create(folder.join("quiet-gate")).ok(), seen: None }
    }

    /// Looks once, before what is to be measured; takes some 10 milliseconds, and as long as the disk
    /// takes for one sync.
    pub fn probe(&mut self, round: u32) -> Probe {
        let begin = Instant::now();
        let least = (0..LOOPS).map(|_| spin()).min().unwrap_or_default();
        let spin_ns = begin.elapsed().as_nanos() as u64 / u64::from(LOOPS);
        let mut wide: Vec<u64> = (0..WIDE_LOOPS).map(|_| spin_wide()).collect();
        wide.sort_unstable();
        let probe = Probe {
            round,
            spin_ns,
            spin_least_ns: least,
            wide_ns: wide.get(wide.len() / 2).copied(),
            sync_ns: self.file.as_mut().and_then(sync),
            load: load(),
            ..Probe::default()
        };
        self.seen = Seen::now();
        probe
    }

    /// Fills in what others, and the hypervisor, have used of the processors since the probe, where
    /// nothing but this process was at work for the bench.
    pub fn close(&mut self, probe: &mut Probe) {
        if let Some((before, now)) = self.seen.take().zip(Seen::now()) {
            let shares = now.since(&before);
            (probe.others, probe.steal) = (shares.others(), shares.steal());
        }
    }
}

/// Times a loop in which each step waits for the one before, so that only the processor's clock and
/// its other users count.
fn spin() -> u64 {
    let begin = Instant::now();
    let mut x = 1u64;
    for _ in 0..SPINS {
        x = black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
    black_box(x);
    begin.elapsed().as_nanos() as u64
}

/// Times a loop that keeps all units of a core at work. Another machine on the other thread of the same core
/// takes a part of them: this loop then takes up to twice as long, while the one above, which waits for its own
/// last step most of the time, hardly changes.
fn spin_wide() -> u64 {
    let begin = Instant::now();
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = [1u64, 2, 3, 4, 5, 6, 7, 8];
    for i in 0..WIDE_SPINS {
        let i = black_box(i);
        a = a.wrapping_add(i);
        b ^= i;
        c = c.wrapping_add(a);
        d ^= b;
        e = e.rotate_left(5).wrapping_add(i);
        f = f.rotate_left(7) ^ i;
        g = g.wrapping_add(e);
        h ^= f;
    }
    black_box([a, b, c, d, e, f, g, h]);
    begin.elapsed().as_nanos() as u64
}

/// Times a synced write of 4 KiB in place.
pub(super) fn sync(file: &mut File) -> Option<u64> {
    let begin = Instant::now();
    file.seek(SeekFrom::Start(0)).ok()?;
    file.write_all(&[0x5a; 4096]).ok()?;
    file.sync_data().ok()?;
    Some(begin.elapsed().as_nanos() as u64)
}

/// The load average of the last minute.
pub fn load() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{
        random::Random,
        results::{Results, Round},
    };

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

    #[test]
    fn probes_this_machine() {
        let folder = tempfile::tempdir().unwrap();
        let mut gate = Gate::new(folder.path());
        let mut probe = gate.probe(3);
        assert_eq!(probe.round, 3);
        assert!(
            probe.spin_ns >= probe.spin_least_ns
                && probe.spin_least_ns > 1000
                && probe.wide_ns.is_some_and(|ns| ns > 1000)
                && probe.sync_ns.is_some(),
            "{probe:?}"
        );
        assert_eq!(probe.others, None, "nothing has been measured yet");
        let begin = Instant::now();
        while begin.elapsed().as_millis() < 300 {
            black_box(spin());
        }
        gate.close(&mut probe);
        let known = Path::new("/proc/stat").exists();
        assert_eq!(probe.others.is_some(), known, "{probe:?}");
        assert!(probe.others.is_none_or(|share| (0.0..=1.0).contains(&share)), "{probe:?}");
        assert_eq!(Gate::new(Path::new("/nonexistent")).probe(0).sync_ns, None);
    }
}
