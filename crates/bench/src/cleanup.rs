//! Cleanup for a process that ends before its own code can clean up: on a second Ctrl-C, or because a call that blocks
//! does not return.
//!
//! Code that creates something which outlives the process (a folder, another process) registers how to remove it and
//! holds the [`Due`] for as long as it exists. [`all`] runs what is registered, in reverse order. Private servers need
//! nothing here: each has a watchman of its own (`server/watchman.rs`).

use std::{
    collections::BTreeMap,
    mem,
    process::Child,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

/// What is put down, in the order in which it was.
static ALL: Mutex<BTreeMap<u64, Entry>> = Mutex::new(BTreeMap::new());

enum Entry {
    /// How it is removed.
    Work(Box<dyn FnOnce() + Send>),
    /// It stays, and this is to be said of it.
    Stays(String),
}

/// A registered cleanup, until this is dropped.
#[derive(Debug)]
#[must_use]
pub struct Due(u64);

/// Registers how something is removed. The work should end soon, and must not fail where half of it is done already.
pub fn due(work: impl FnOnce() + Send + 'static) -> Due {
    put(Entry::Work(Box::new(work)))
}

/// Registers a message about something that is not removed when the process ends.
pub fn stays(what: impl Into<String>) -> Due {
    put(Entry::Stays(what.into()))
}

/// Registers that a process is killed. It must not be waited for before this is dropped: its process id could then be
/// that of another.
pub fn kills(child: &Child) -> Due {
    let pid = Pid::from_raw(child.id() as i32);
    due(move || {
        let _ = kill(pid, Signal::SIGKILL);
    })
}

/// Runs every registered cleanup, for a process that is about to end, and returns the registered messages. From then on
/// a thread that registers something, or drops a [`Due`], blocks until the process ends.
pub fn all() -> Vec<String> {
    let mut entries = entries();
    let said = done(mem::take(&mut *entries));
    mem::forget(entries);
    said
}

fn done(entries: BTreeMap<u64, Entry>) -> Vec<String> {
    let mut said = Vec::new();
    for entry in entries.into_values().rev() {
        match entry {
            Entry::Work(work) => work(),
            Entry::Stays(what) => said.push(what),
        }
    }
    said
}

fn put(entry: Entry) -> Due {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Relaxed);
    entries().insert(number, entry);
    Due(number)
}

fn entries() -> MutexGuard<'static, BTreeMap<u64, Entry>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Due {
    fn drop(&mut self) {
        let entry = entries().remove(&self.0);
        // Outside of the lock: what it holds may have a `Due` of its own.
        drop(entry);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn the_last_is_removed_first_and_what_stays_is_said() {
        let (told, order) = mpsc::channel();
        let work = |n: u32| {
            let told = told.clone();
            Entry::Work(Box::new(move || told.send(n).unwrap()))
        };
        let entries = [(1, work(1)), (2, Entry::Stays("x stays".into())), (3, work(3))];
        assert_eq!(done(entries.into()), ["x stays"]);
        drop(told);
        assert_eq!(order.iter().collect::<Vec<_>>(), [3, 1]);
    }

    #[test]
    fn what_is_dropped_is_no_longer_put_down() {
        let due = stays("a folder");
        let number = due.0;
        assert!(entries().contains_key(&number));
        drop(due);
        assert!(!entries().contains_key(&number));
    }
}
