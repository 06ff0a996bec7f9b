//! The quiet gate (rule 10): is anything else using this machine?
//!
//! Before each round a fixed loop of arithmetic and a small synced write are timed, and the load
//! average and the time stolen by the hypervisor are read. What they say is stored; `derive.rs`
//! decides from all of them which rounds were noisy. Nothing is thrown away for it.

use std::{
    fs::{self, File},
    hint::black_box,
    io::{Seek, SeekFrom, Write},
    path::Path,
    time::Instant,
};

use super::results::Probe;

/// Steps of the loop: some 200 microseconds.
const SPINS: u32 = 200_000;
/// How often the loop is run: some 9 milliseconds in all, longer than the slices in which a busy
/// machine shares its processors out.
const LOOPS: u32 = 40;

/// Probes the machine.
#[derive(Debug)]
pub struct Gate {
    file: Option<File>,
    times: Option<(u64, u64)>,
}

impl Gate {
    /// A gate that writes its small file into `folder`; without one where that cannot be written.
    pub fn new(folder: &Path) -> Gate {
        Gate { file: File::create(folder.join("quiet-gate")).ok(), times: processor_times() }
    }

    /// Looks once; takes some 10 milliseconds, and as long as the disk takes for one sync.
    pub fn probe(&mut self, round: u32) -> Probe {
        let now = processor_times();
        let steal = self.times.zip(now).and_then(|(before, now)| {
            let all = now.1.saturating_sub(before.1);
            (all > 0).then(|| now.0.saturating_sub(before.0) as f64 / all as f64)
        });
        self.times = now;
        let begin = Instant::now();
        let least = (0..LOOPS).map(|_| spin()).min().unwrap_or_default();
        Probe {
            round,
            spin_ns: begin.elapsed().as_nanos() as u64 / u64::from(LOOPS),
            spin_least_ns: least,
            sync_ns: self.file.as_mut().and_then(sync),
            load: load(),
            steal,
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

/// Stolen and all processor time of the machine, in ticks since it was started: proc(5).
fn processor_times() -> Option<(u64, u64)> {
    times_in(&fs::read_to_string("/proc/stat").ok()?)
}

fn times_in(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_whitespace().map_while(|t| t.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; guest times after it are inside user.
    Some((*ticks.get(7)?, ticks.iter().take(8).sum()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_stolen_time() {
        assert_eq!(times_in("cpu  10 1 5 80 2 0 1 3 7 0\ncpu0 1 1 1 1"), Some((3, 102)));
        assert_eq!(times_in("cpu  10 1 5"), None);
        assert_eq!(times_in(""), None);
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
        assert_eq!(Gate::new(Path::new("/nonexistent")).probe(0).sync_ns, None);
    }
}
