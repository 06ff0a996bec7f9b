//! Signals that end the program: Ctrl-C, SIGTERM, a terminal that closes.
//!
//! Unless a verb ends in a way of its own ([`at_first`]), half-written files are removed, and the
//! process ends by the signal, so that a shell script that runs it ends too.

use std::{
    fs,
    path::PathBuf,
    process,
    sync::{
        Condvar, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicI32, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, SystemTime},
};

use indicatif::MultiProgress;
use nix::sys::signal::{SigSet, Signal, raise};
use steelyard::{
    bench::{cleanup, stop::Stop},
    file::Staged,
    server, store,
};

use super::say;

/// What is said at the first signal.
const SAID: &str = "ending after this pass; Ctrl-C again quits";
/// How long a verb may take to end by itself after the first signal. With what is then cleared away, and with the
/// start of threads on a busy machine, it stays below the two seconds that are promised.
const GRACE: Duration = Duration::from_millis(1_400);
/// How long it may take to clear away what a process leaves that is ended at once.
const CLEARING: Duration = Duration::from_millis(400);

/// Set by the first signal, where a verb looks at it.
static STOP: OnceLock<Stop> = OnceLock::new();
/// The thread that ends the process where the verb does not.
static DEADLINE: OnceLock<thread::Thread> = OnceLock::new();
/// Whether what is said at the first signal was said.
static TOLD: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());
/// How long that may take. Nobody may be reading.
const TELLING: Duration = Duration::from_millis(200);
/// Which signal was the first; 0 before.
static FIRST: AtomicI32 = AtomicI32::new(0);
/// The lines of progress that are drawn.
static DRAWN: Mutex<Option<MultiProgress>> = Mutex::new(None);
/// The file of results that is kept up to date, and when the program was started.
static RESULTS: OnceLock<(PathBuf, SystemTime)> = OnceLock::new();

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
            let first =
                FIRST.compare_exchange(0, signal as i32, Ordering::Relaxed, Ordering::Relaxed);
            match STOP.get() {
                Some(stop) if first.is_ok() => {
                    stop.set();
                    store::interrupt();
                    DEADLINE.get().inspect(|thread| thread.unpark());
                }
                // Nothing but files is to be cleared away.
                None => {
                    Staged::abandon_all();
                    end_by(signal);
                    process::exit(status(signal));
                }
                Some(_) => at_once(signal),
            }
        }
    };
    if thread::Builder::new().name("signals".into()).spawn(wait).is_err() {
        let _ = blocked.thread_unblock();
    }
}

/// From now on the first signal only sets what is returned, and says so. A second one, or a verb that has not ended some
/// time after the first, ends the process.
pub fn at_first() -> Stop {
    let stop = STOP.get_or_init(Stop::default);
    DEADLINE.get_or_init(|| {
        let deadline = thread::Builder::new().name("bench stop".into()).spawn(|| {
            while !stop.is_set() {
                thread::park();
            }
            // On a thread of its own: a terminal that was stopped (Ctrl-S) takes no line.
            let told = thread::Builder::new().spawn(|| {
                tell(SAID);
                *TOLD.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
                TOLD.1.notify_all();
            });
            if told.is_err() {
                *TOLD.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
            }
            thread::sleep(GRACE);
            if let Ok(signal) = Signal::try_from(FIRST.load(Ordering::Relaxed)) {
                at_once(signal);
            }
        });
        match deadline {
            Ok(deadline) => deadline.thread().clone(),
            // Whoever has no thread left is told nothing, and ends by the second signal.
            Err(_) => thread::current(),
        }
    });
    stop.clone()
}

/// From now on the first signal only sets what is returned, however long the verb then takes. A second one ends the
/// process.
#[cfg(feature = "serve")]
pub fn gracefully() -> Stop {
    STOP.get_or_init(Stop::default).clone()
}

/// The file of results that a bench keeps up to date: named where the process ends without a report.
pub fn keeps(results: PathBuf) {
    let _ = RESULTS.set((results, SystemTime::now()));
}

/// What is said is said above these lines, until [`undrawn`].
pub fn drawn(lines: &MultiProgress) {
    *DRAWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(lines.clone());
}

/// No lines are drawn any more.
pub fn undrawn() {
    *DRAWN.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// Ends the process by the signal that a verb was ended by, so that whoever runs us knows; does nothing
/// where none came.
pub fn pass_on() {
    if let Ok(signal) = Signal::try_from(FIRST.load(Ordering::Relaxed)) {
        if DEADLINE.get().is_some() {
            // A verb may have ended before the thread that tells had its turn.
            let told = TOLD.0.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = TOLD.1.wait_timeout_while(told, TELLING, |told| !*told);
        }
        server::no_more();
        end_by(signal);
    }
}

fn tell(line: &str) {
    let lines = DRAWN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match lines {
        Some(lines) => lines.suspend(|| say(line)),
        None => say(line),
    }
}

/// Clears away what the process leaves, and ends it by this signal, whatever its threads are doing.
fn at_once(signal: Signal) {
    static ENDS: AtomicBool = AtomicBool::new(false);
    while ENDS.swap(true, Ordering::Relaxed) {
        // Another thread does so.
        thread::park();
    }
    let (done, cleared) = mpsc::channel();
    let clear = move || {
        Staged::abandon_all();
        let left = cleanup::all();
        let _ = done.send(());
        left.iter().for_each(|line| tell(line));
        tell(&kept());
        let _ = done.send(());
    };
    if thread::Builder::new().spawn(clear).is_ok() {
        server::no_more();
        let _ = cleared.recv_timeout(CLEARING);
        // What it says is worth a moment more, and nobody may be reading it.
        let _ = cleared.recv_timeout(CLEARING / 4);
    }
    end_by(signal);
    process::exit(status(signal))
}

/// Where the rounds that were complete are, or that there are none.
fn kept() -> String {
    let Some((path, begun)) = RESULTS.get() else {
        return "ended at once, without a report".into();
    };
    let written = fs::metadata(path).and_then(|data| data.modified());
    match written.is_ok_and(|written| written >= *begun) {
        true => format!("what was measured: steelyard report {}", path.display()),
        false => "no round was finished: there are no results".into(),
    }
}

/// Returns where the signal ends nothing: it does not end the first process of a container.
fn end_by(signal: Signal) {
    let _ = SigSet::from(signal).thread_unblock();
    let _ = raise(signal);
}

/// What a shell says of a process that was ended by a signal.
fn status(signal: Signal) -> i32 {
    128 + signal as i32
}

/// The signals that are ignored, a bit each from the lowest: proc(5). None where it cannot be told.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    mask.and_then(|m| u64::from_str_radix(m.trim(), 16).ok()).unwrap_or(0)
}
