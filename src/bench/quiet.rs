//! The quiet gate (rule 10): is anything else using this machine?
//!
//! Before each round a fixed loop of arithmetic and a small synced write are timed, and it is read
//! what other processes and the hypervisor have used of the processors. What they say is stored;
//! [`judge`], which is pure, decides from all of them which rounds were noisy. Nothing is thrown
//! away for it.
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
    accounting::Usage,
    results::{Cell, Probe},
    stats::median,
};

/// How many times longer than the shortest of the run a probe's spin may take on average before
/// its round counts as noisy.
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

/// Fills in what follows from the probes and the timed windows: preemptions, the time in which
/// windows stood still, and which rounds were noisy.
pub fn judge(probes: &mut [Probe], cells: &[Cell]) {
    let least = probes.iter().map(|p| p.spin_least_ns).min().unwrap_or(0) as f64;
    let syncs: Vec<f64> = probes.iter().filter_map(|p| p.sync_ns).map(|ns| ns as f64).collect();
    let sync = median(&syncs).unwrap_or(f64::INFINITY);
    for probe in probes {
        let windows = || cells.iter().flat_map(|c| &c.rounds).filter(|r| r.round == probe.round);
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

/// Probes the machine.
#[derive(Debug)]
pub struct Gate {
    file: Option<File>,
    seen: Option<Seen>,
}

/// How the processors' time stood at some moment.
#[derive(Debug, Clone, Copy)]
struct Seen {
    at: Instant,
    ticks: Ticks,
    /// Nanoseconds of processor time that this process had used.
    own: u64,
}

/// Processor time of the whole machine, in ticks since it was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ticks {
    processors: u64,
    busy: u64,
    stolen: u64,
    all: u64,
}

impl Gate {
    /// A gate that writes its small file into `folder`; without one where that cannot be written.
    pub fn new(folder: &Path) -> Gate {
        Gate { file: File::create(folder.join("quiet-gate")).ok(), seen: Seen::now() }
    }

    /// Looks once; takes some 10 milliseconds, and as long as the disk takes for one sync.
    pub fn probe(&mut self, round: u32) -> Probe {
        let now = Seen::now();
        let since = self.seen.zip(now).filter(|(before, now)| now.ticks.all > before.ticks.all);
        self.seen = now;
        let begin = Instant::now();
        let least = (0..LOOPS).map(|_| spin()).min().unwrap_or_default();
        Probe {
            round,
            spin_ns: begin.elapsed().as_nanos() as u64 / u64::from(LOOPS),
            spin_least_ns: least,
            sync_ns: self.file.as_mut().and_then(sync),
            load: load(),
            steal: since.map(|(before, now)| now.stolen_since(&before)),
            others: since.map(|(before, now)| now.others_since(&before)),
            ..Probe::default()
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

/// Times a synced write of 4 KiB in place.
fn sync(file: &mut File) -> Option<u64> {
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

impl Seen {
    /// `None` without a `/proc/stat`: proc(5).
    fn now() -> Option<Seen> {
        let ticks = ticks_in(&fs::read_to_string("/proc/stat").ok()?)?;
        let used = Usage::now();
        Some(Seen { at: Instant::now(), ticks, own: used.user_ns + used.system_ns })
    }

    fn stolen_since(&self, before: &Seen) -> f64 {
        let all = self.ticks.all.saturating_sub(before.ticks.all).max(1);
        self.ticks.stolen.saturating_sub(before.ticks.stolen) as f64 / all as f64
    }

    /// The share of all processors' time that other processes used.
    fn others_since(&self, before: &Seen) -> f64 {
        let all = self.ticks.all.saturating_sub(before.ticks.all).max(1) as f64;
        let busy = self.ticks.busy.saturating_sub(before.ticks.busy) as f64 / all;
        let elapsed = self.at.saturating_duration_since(before.at).as_nanos() as f64;
        let processors = self.ticks.processors.max(1) as f64;
        let own = self.own.saturating_sub(before.own) as f64 / (elapsed * processors).max(1.0);
        // Ticks are counted whole: of one on each processor nobody knows whose it was.
        (busy - own - processors / all).clamp(0.0, 1.0)
    }
}

fn ticks_in(stat: &str) -> Option<Ticks> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    // user nice system idle iowait irq softirq steal; guest times after it are inside user.
    let ticks: Vec<u64> = line.split_whitespace().map_while(|t| t.parse().ok()).take(8).collect();
    let &[user, nice, system, _, _, irq, softirq, stolen] = ticks.as_slice() else { return None };
    Some(Ticks {
        processors: stat.lines().skip(1).take_while(|l| l.starts_with("cpu")).count() as u64,
        busy: user + nice + system + irq + softirq,
        stolen,
        all: ticks.iter().sum(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{random::Random, results::Round};

    #[test]
    fn reads_ticks() {
        let ticks = Ticks { processors: 2, busy: 17, stolen: 3, all: 102 };
        let stat = "cpu  10 1 5 80 2 0 1 3 7 0\ncpu0 1 1 1 1\ncpu1 1 1\nintr 5 5\ncpu 1";
        assert_eq!(ticks_in(stat), Some(ticks));
        assert_eq!(ticks_in("cpu  10 1 5"), None);
        assert_eq!(ticks_in(""), None);
    }

    #[test]
    fn what_it_uses_itself_is_not_others() {
        let before = Seen {
            at: Instant::now(),
            ticks: Ticks { processors: 2, busy: 5_000, stolen: 0, all: 10_000 },
            own: 7_000_000_000,
        };
        // Ten seconds later: this process used `own` of the 20 that two processors have.
        let after = |busy: u64, own: u64| {
            Seen {
                at: before.at + std::time::Duration::from_secs(10),
                ticks: Ticks { busy: 5_000 + busy, all: 12_000, ..before.ticks },
                own: before.own + own,
            }
            .others_since(&before)
        };
        let s = 1_000_000_000;
        assert_eq!(after(1_000, 10 * s), 0.0, "one thread, alone");
        assert_eq!(after(1_800, 18 * s), 0.0, "two threads, alone");
        assert_eq!(after(2, 0), 0.0, "a tick on each");
        let close = |share: f64, wanted: f64| (share - wanted).abs() < 0.002;
        assert!(close(after(2_000, 10 * s), 0.5), "another on the second processor");
        assert!(close(after(2_000, 5 * s), 0.75), "two others, and it shares a processor");
    }

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
    fn what_is_not_known_is_not_held_against_it() {
        let unknown = Probe { spin_ns: 1, spin_least_ns: 1, ..Probe::default() };
        let mut probes = vec![unknown; 3];
        judge(&mut probes, &[]);
        assert!(probes.iter().all(|p| !p.noisy && p.held.is_none()), "{probes:?}");
    }

    #[test]
    fn probes_this_machine() {
        let folder = tempfile::tempdir().unwrap();
        let probe = Gate::new(folder.path()).probe(3);
        assert_eq!(probe.round, 3);
        assert!(
            probe.spin_ns >= probe.spin_least_ns
                && probe.spin_least_ns > 1000
                && probe.sync_ns.is_some(),
            "{probe:?}"
        );
        assert!(probe.others.is_none_or(|share| (0.0..=1.0).contains(&share)), "{probe:?}");
        assert_eq!(Gate::new(Path::new("/nonexistent")).probe(0).sync_ns, None);
    }
}
