//! Processor time that others used while the bench was at work (rule 10).
//!
//! The kernel reports how long all processors were busy (`/proc/stat`); this process and the private servers know their
//! own usage. The difference was used by others, whether the bench was waiting at the time or not. Interrupts are left
//! out: which process they were for is not known, and on the loopback interface nearly all of them are the bench's own.

use std::{fs, time::Instant};

use super::accounting::Usage;

/// How the processors' time stood at some moment.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    at: Instant,
    ticks: Ticks,
    /// Nanoseconds of processor time that the bench itself had used.
    ours: u64,
}

/// Processor time of the whole machine, in ticks since it was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ticks {
    processors: u64,
    busy: u64,
    stolen: u64,
    all: u64,
}

/// What happened to the processors inside of windows, one or several added up.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Shares {
    windows: u32,
    processors: u64,
    /// Ticks of all processors, and what became of them.
    all: u64,
    busy: u64,
    stolen: u64,
    elapsed_ns: u64,
    /// Processor time of this process and of its private servers.
    ours_ns: u64,
}

impl Seen {
    /// Now. `None` without a `/proc/stat`: proc(5).
    pub fn now() -> Option<Seen> {
        let ticks = ticks_in(&fs::read_to_string("/proc/stat").ok()?)?;
        let used = Usage::now();
        Some(Seen { at: Instant::now(), ticks, ours: used.user_ns + used.system_ns })
    }

    /// The same moment, where private servers had used so many nanoseconds of processor time.
    pub fn with_servers(self, servers: u64) -> Seen {
        Seen { ours: self.ours + servers, ..self }
    }

    /// What happened since `before`: one window.
    pub fn since(&self, before: &Seen) -> Shares {
        Shares {
            windows: 1,
            processors: self.ticks.processors,
            all: self.ticks.all.saturating_sub(before.ticks.all),
            busy: self.ticks.busy.saturating_sub(before.ticks.busy),
            stolen: self.ticks.stolen.saturating_sub(before.ticks.stolen),
            elapsed_ns: self.at.saturating_duration_since(before.at).as_nanos() as u64,
            ours_ns: self.ours.saturating_sub(before.ours),
        }
    }
}

impl Shares {
    /// Both together.
    pub fn plus(&self, more: &Shares) -> Shares {
        Shares {
            windows: self.windows + more.windows,
            processors: self.processors.max(more.processors),
            all: self.all + more.all,
            busy: self.busy + more.busy,
            stolen: self.stolen + more.stolen,
            elapsed_ns: self.elapsed_ns + more.elapsed_ns,
            ours_ns: self.ours_ns + more.ours_ns,
        }
    }

    /// The share of all processors' time that others used, from 0 to 1; `None` where the windows
    /// were too short for the kernel's ticks.
    pub fn others(&self) -> Option<f64> {
        let all = self.enough()?;
        let processors = self.processors.max(1) as f64;
        let ours = self.ours_ns as f64 / (self.elapsed_ns as f64 * processors).max(1.0);
        // Of the tick in which a window begins, or ends, nobody knows whose it was. Over many
        // windows these errors even out, but for their square root.
        let unsure = (f64::from(self.windows) * processors).sqrt();
        Some(((self.busy as f64 - unsure) / all - ours).clamp(0.0, 1.0))
    }

    /// The share of all processors' time that the hypervisor gave to others.
    pub fn steal(&self) -> Option<f64> {
        Some(self.stolen as f64 / self.enough()?)
    }

    /// The ticks of all processors, if they are enough to tell a tenth of them from chance.
    fn enough(&self) -> Option<f64> {
        let unsure = (f64::from(self.windows) * self.processors.max(1) as f64).sqrt();
        let all = self.all as f64;
        (self.all > 0 && all >= 10.0 * unsure).then_some(all)
    }
}

fn ticks_in(stat: &str) -> Option<Ticks> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    // user nice system idle iowait irq softirq steal; guest times after it are inside user.
    let ticks: Vec<u64> = line.split_whitespace().map_while(|t| t.parse().ok()).take(8).collect();
    let &[user, nice, system, _, _, _, _, stolen] = ticks.as_slice() else { return None };
    Some(Ticks {
        processors: stat.lines().skip(1).take_while(|l| l.starts_with("cpu")).count() as u64,
        busy: user + nice + system,
        stolen,
        all: ticks.iter().sum(),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn reads_ticks() {
        let ticks = Ticks { processors: 2, busy: 16, stolen: 3, all: 102 };
        let stat = "cpu  10 1 5 80 2 0 1 3 7 0\ncpu0 1 1 1 1\ncpu1 1 1\nintr 5 5\ncpu 1";
        assert_eq!(ticks_in(stat), Some(ticks), "interrupts are nobody's");
        assert_eq!(ticks_in("cpu  10 1 5"), None);
        assert_eq!(ticks_in(""), None);
    }

    const S: u64 = 1_000_000_000;

    /// Ten seconds of two processors, of which they were `busy` ticks at work, and the bench `ours`
    /// nanoseconds.
    fn ten_seconds(busy: u64, ours: u64) -> Shares {
        let before = Seen {
            at: Instant::now(),
            ticks: Ticks { processors: 2, busy: 5_000, stolen: 0, all: 10_000 },
            ours: 7 * S,
        };
        Seen {
            at: before.at + Duration::from_secs(10),
            ticks: Ticks { busy: 5_000 + busy, all: 12_000, ..before.ticks },
            ours: before.ours + ours,
        }
        .since(&before)
    }

    #[test]
    fn what_the_bench_and_its_servers_use_is_not_others() {
        let others = |busy: u64, ours: u64| ten_seconds(busy, ours).others().unwrap();
        assert_eq!(others(1_000, 10 * S), 0.0, "one thread, alone");
        assert_eq!(others(1_800, 18 * S), 0.0, "two threads, or one and a server, alone");
        assert_eq!(others(1, 0), 0.0, "a tick");
        let close = |share: f64, wanted: f64| (share - wanted).abs() < 0.002;
        assert!(close(others(2_000, 10 * S), 0.5), "another on the second processor");
        assert!(close(others(2_000, 5 * S), 0.75), "two others, and it shares a processor");
        // What a server used is ours only if it is said.
        let served = Seen::now().unwrap();
        assert_eq!(served.with_servers(5 * S).ours, served.ours + 5 * S);
    }

    #[test]
    fn many_short_windows_add_up_and_one_says_nothing() {
        // 20 ms of two processors: four ticks, of which one or two more or less are chance.
        let short = |busy| Shares { all: 4, busy, elapsed_ns: S / 50, ..ten_seconds(0, 0) };
        assert_eq!((short(4).others(), short(0).steal()), (None, None));
        let many = |busy| (0..400).fold(Shares::default(), |sum, _| sum.plus(&short(busy)));
        assert!((many(2).others().unwrap() - 0.5).abs() < 0.02, "{:?}", many(2).others());
        assert_eq!(many(0).others(), Some(0.0));
    }
}
