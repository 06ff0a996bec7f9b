//! Resource usage of a timed window besides elapsed time (rule 18): user and system processor time, context switches,
//! bytes written; and the peak memory of the process.

use std::{fs, io};

use nix::sys::resource::{UsageWho, getrusage};

use super::results::Round;

/// What this process has used so far, all threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Elapsed nanoseconds, by the clock that the caller reads.
    pub ns: u64,
    /// Nanoseconds in user mode. The kernel splits its exact sum of both by sampling.
    pub user_ns: u64,
    /// Nanoseconds in the kernel.
    pub system_ns: u64,
    /// Context switches because it waited.
    pub waits: u64,
    /// Context switches because something else was let in.
    pub preemptions: u64,
    /// Bytes written to disks.
    pub written: u64,
}

impl Usage {
    /// Reads the counters; zeros where the system has none. `ns` stays 0.
    pub fn now() -> Usage {
        let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return Usage::default() };
        let ns = |t: nix::sys::time::TimeVal| {
            t.tv_sec().max(0) as u64 * 1_000_000_000 + t.tv_usec().max(0) as u64 * 1000
        };
        Usage {
            ns: 0,
            user_ns: ns(usage.user_time()),
            system_ns: ns(usage.system_time()),
            waits: usage.voluntary_context_switches().max(0) as u64,
            preemptions: usage.involuntary_context_switches().max(0) as u64,
            // In blocks of 512 bytes, whatever those of the disk are (getrusage(2)).
            written: usage.block_writes().max(0) as u64 * 512,
        }
    }

    /// What was used since `before`.
    pub fn since(&self, before: &Usage) -> Usage {
        Usage {
            ns: self.ns.saturating_sub(before.ns),
            user_ns: self.user_ns.saturating_sub(before.user_ns),
            system_ns: self.system_ns.saturating_sub(before.system_ns),
            waits: self.waits.saturating_sub(before.waits),
            preemptions: self.preemptions.saturating_sub(before.preemptions),
            written: self.written.saturating_sub(before.written),
        }
    }

    /// Both together.
    pub fn plus(&self, other: &Usage) -> Usage {
        Usage {
            ns: self.ns + other.ns,
            user_ns: self.user_ns + other.user_ns,
            system_ns: self.system_ns + other.system_ns,
            waits: self.waits + other.waits,
            preemptions: self.preemptions + other.preemptions,
            written: self.written + other.written,
        }
    }

    /// As a round of the results.
    pub fn round(&self, start: u32, round: u32, place: u32) -> Round {
        Round {
            start,
            round,
            place,
            ns: self.ns,
            user_ns: self.user_ns,
            system_ns: self.system_ns,
            waits: self.waits,
            preemptions: self.preemptions,
            written: self.written,
            ..Round::default()
        }
    }
}

/// Sets the kernel's mark of the highest resident memory back to what is resident now.
///
/// # Errors
/// Where there is no `/proc`, or it may not be written.
pub fn reset_peak() -> io::Result<()> {
    // "5" clears the mark and nothing else: proc(5).
    fs::write("/proc/self/clear_refs", "5")
}

/// Resident bytes now, and at their highest since the mark was reset. `None` without `/proc`.
pub fn resident() -> Option<(u64, u64)> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    Some((kilobytes(&status, "VmRSS:")?, kilobytes(&status, "VmHWM:")?))
}

fn kilobytes(status: &str, field: &str) -> Option<u64> {
    let line = status.lines().find_map(|l| l.strip_prefix(field))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_processor_time_of_this_process() {
        let before = Usage::now();
        let begin = std::time::Instant::now();
        let mut x = 1u64;
        while begin.elapsed().as_millis() < 60 {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        let used = Usage::now().since(&before);
        assert!(used.user_ns + used.system_ns > 1_000_000, "{used:?}");
    }

    #[test]
    fn reads_the_fields_of_proc() {
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(kilobytes(status, "VmHWM:"), Some(2 << 20));
        assert_eq!(kilobytes(status, "VmSwap:"), None);
        assert_eq!(kilobytes("VmHWM: many kB", "VmHWM:"), None);
    }

    #[test]
    fn the_peak_is_seen_and_can_be_reset() {
        let Some((_, before)) = resident() else { return };
        let block = std::hint::black_box(vec![1u8; 64 << 20]);
        let (_, high) = resident().unwrap();
        assert!(high >= before && high >= 64 << 20, "{before} {high}");
        drop(block);
        if reset_peak().is_ok() {
            let (now, mark) = resident().unwrap();
            assert!(mark < high && mark >= now, "{now} {mark} {high}");
        }
    }
}
