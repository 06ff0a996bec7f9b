//! Being told to stop: by Ctrl-C, by whoever runs us, by a terminal that closes.
//!
//! Unless a verb ends in a way of its own ([`at_first`]), half-written files are removed, and the
//! process ends by the signal, so that a shell script that runs it ends too.

use std::{
    fs,
    sync::atomic::{AtomicBool, AtomicI32, Ordering},
    thread,
};

use nix::sys::signal::{SigSet, Signal, raise};
use steelyard::file::Staged;

/// Set by the first signal, where a verb looks at it.
static STOP: AtomicBool = AtomicBool::new(false);
/// Which signal that was; 0 before.
static FIRST: AtomicI32 = AtomicI32::new(0);
/// Whether a verb does.
static GENTLY: AtomicBool = AtomicBool::new(false);

/// Looks out for signals from now on. To be called before there are other threads.
pub fn watch() {
    let mut wanted = SigSet::empty();
    let ignored = ignored();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // `nohup` and `&` in scripts have them ignored: that is to stay so.
        if ignored & 1 << (signal as u32 - 1) == 0 {
            wanted.add(signal);
        }
    }
    // A file that may not grow any more is then an error of writing it, as a full disk is.
    let mut blocked = wanted;
    blocked.add(Signal::SIGXFSZ);
    if blocked.thread_block().is_err() {
        return;
    }
    let wait = move || {
        while let Ok(signal) = wanted.wait() {
            if GENTLY.load(Ordering::Relaxed) && FIRST.load(Ordering::Relaxed) == 0 {
                FIRST.store(signal as i32, Ordering::Relaxed);
                STOP.store(true, Ordering::Relaxed);
                continue;
            }
            Staged::abandon_all();
            let _ = SigSet::from(signal).thread_unblock();
            let _ = raise(signal);
        }
    };
    if thread::Builder::new().name("signals".into()).spawn(wait).is_err() {
        let _ = blocked.thread_unblock();
    }
}

/// From now on the first signal only sets what is returned, and the second ends the process.
pub fn at_first() -> &'static AtomicBool {
    GENTLY.store(true, Ordering::Relaxed);
    &STOP
}

/// Ends the process by the signal that a verb was ended by, so that whoever runs us knows; does nothing
/// where none came.
pub fn pass_on() {
    if let Ok(signal) = Signal::try_from(FIRST.load(Ordering::Relaxed)) {
        let _ = SigSet::from(signal).thread_unblock();
        let _ = raise(signal);
    }
}

/// The signals that are ignored, a bit each from the lowest: proc(5). None where it cannot be told.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    mask.and_then(|m| u64::from_str_radix(m.trim(), 16).ok()).unwrap_or(0)
}
