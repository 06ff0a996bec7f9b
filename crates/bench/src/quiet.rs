//! The quiet gate (rule 10): is anything else using this machine?
//!
//! Before each round, and where stores take turns before the turn of each, a fixed loop of arithmetic
//! and a small synced write are timed. After it, `processors.rs` says what other processes and the
//! hypervisor have used of the processors meanwhile. All of it is stored; [`noise`](steelyard_results::noise),
//! which is pure, decides which probes were noisy. Nothing is thrown away for it.
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

use crate::{processors::Seen, results::Probe};

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
