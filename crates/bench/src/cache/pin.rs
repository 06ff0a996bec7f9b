//! Pinning of processes to one processor. A client and a server on different virtual processors pay for waking each
//! other, many times the cost of what either does; so all of them are pinned to the same one.
//!
//! A child process inherits the affinity of the thread that starts it. It is therefore pinned before it runs its first
//! instruction, and so is every thread that it creates.

/// The processor that adapters and servers share: the last one that this process may use; none
/// where that cannot be said.
#[cfg(target_os = "linux")]
pub(super) fn last() -> Option<usize> {
    use nix::{
        sched::{CpuSet, sched_getaffinity},
        unistd::Pid,
    };
    let allowed = sched_getaffinity(Pid::from_raw(0)).ok()?;
    (0..CpuSet::count()).rev().find(|cpu| allowed.is_set(*cpu).unwrap_or(false))
}

/// Runs `start` while this thread, and what it starts, is bound to the processor. Where it cannot be
/// bound, says so.
#[cfg(target_os = "linux")]
pub(super) fn on<T>(cpu: Option<usize>, start: impl FnOnce() -> T) -> (T, bool) {
    use nix::{
        sched::{CpuSet, sched_getaffinity, sched_setaffinity},
        unistd::Pid,
    };
    let this = Pid::from_raw(0);
    let bind = || {
        let before = sched_getaffinity(this).ok()?;
        let mut only = CpuSet::new();
        only.set(cpu?).ok()?;
        sched_setaffinity(this, &only).ok()?;
        Some(before)
    };
    match bind() {
        Some(before) => {
            let started = start();
            (started, sched_setaffinity(this, &before).is_ok())
        }
        None => (start(), false),
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn last() -> Option<usize> {
    None
}

#[cfg(not(target_os = "linux"))]
pub(super) fn on<T>(_: Option<usize>, start: impl FnOnce() -> T) -> (T, bool) {
    (start(), false)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_started_stays_on_its_processor_and_we_do_not() {
        let allowed = || nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0)).unwrap();
        let (before, cpu) = (allowed(), last().unwrap());
        let (child, pinned) = on(Some(cpu), || {
            std::process::Command::new("cat").arg("/proc/self/status").output().unwrap()
        });
        let status = String::from_utf8(child.stdout).unwrap();
        let list = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:")).unwrap();
        assert_eq!((list.trim(), pinned), (&*cpu.to_string(), true));
        assert_eq!(allowed(), before);
        assert!(!on(None, || ()).1);
    }
}
