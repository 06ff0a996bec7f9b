//! Counting allocations, in passes that are not timed.
//!
//! How often a format asks for memory explains its speed better than anything else, and there is no
//! other way to count it than to stand between the program and its allocator. That takes the only
//! `unsafe` of this room: [`GlobalAlloc`] is an unsafe trait. Every call is handed to [`System`] as
//! it came; nothing else happens here but counting.
//!
//! Counting is off but for the untimed pass: a call then costs one relaxed load of a flag that
//! nobody writes. The binary installs it in `main.rs`:
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: steelyard_bench::allocations::Counting = steelyard_bench::allocations::Counting;
//! # fn main() {}
//! ```
//!
//! Where nobody installed it, [`count`] finds that out and answers `None`. What C libraries allocate
//! (zstd's tables) passes it by; the resident memory of `accounting.rs` has that.

#![allow(unsafe_code)]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    hint::black_box,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed},
    },
};

/// One count at a time: there is one set of counters.
static TURN: Mutex<()> = Mutex::new(());
static ON: AtomicBool = AtomicBool::new(false);
static COUNTERS: Counters = Counters::new();

/// The counters. Atomics, because an allocator is asked by all threads and may not allocate itself.
#[derive(Debug)]
struct Counters {
    calls: AtomicU64,
    bytes: AtomicU64,
    live: AtomicI64,
    peak: AtomicI64,
}

impl Counters {
    const fn new() -> Self {
        Counters {
            calls: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            live: AtomicI64::new(0),
            peak: AtomicI64::new(0),
        }
    }

    #[cold]
    fn note(&self, asked: usize, given_back: usize) {
        if asked > 0 {
            self.calls.fetch_add(1, Relaxed);
            self.bytes.fetch_add(asked.saturating_sub(given_back) as u64, Relaxed);
        }
        let change = asked as i64 - given_back as i64;
        let live = self.live.fetch_add(change, Relaxed) + change;
        self.peak.fetch_max(live, Relaxed);
    }

    fn reset(&self) {
        self.calls.store(0, Relaxed);
        self.bytes.store(0, Relaxed);
        self.live.store(0, Relaxed);
        self.peak.store(0, Relaxed);
    }

    fn read(&self) -> Allocations {
        Allocations {
            calls: self.calls.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            peak: self.peak.load(Relaxed).max(0) as u64,
        }
    }
}

/// The system's allocator, with counters that run while [`count`] does.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counting;

/// What a piece of work allocated, on all threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Allocations {
    /// Calls that asked for memory; one that grew a block counts.
    pub calls: u64,
    /// Bytes asked for; for a block that grew, what it grew by.
    pub bytes: u64,
    /// The most bytes held at one time above what was held before.
    pub peak: u64,
}

// SAFETY: every method passes its arguments unchanged to `System`, which keeps the contract, and
// returns what that returns. The counters are atomics: they allocate nothing and cannot panic.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if ON.load(Relaxed) {
            COUNTERS.note(layout.size(), 0);
        }
        // SAFETY: the caller keeps `alloc`'s contract, which is `System`'s.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if ON.load(Relaxed) {
            COUNTERS.note(0, layout.size());
        }
        // SAFETY: as above; `block` came from `System` with this layout.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if ON.load(Relaxed) {
            COUNTERS.note(layout.size(), 0);
        }
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if ON.load(Relaxed) {
            COUNTERS.note(new_size, layout.size());
        }
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, new_size) }
    }
}

/// Runs `work` and counts what it allocates (and what other threads do meanwhile). `None` for the
/// counts where [`Counting`] is not the program's allocator. Not to be called inside itself.
pub fn count<R>(work: impl FnOnce() -> R) -> (R, Option<Allocations>) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    ON.store(true, Relaxed);
    COUNTERS.reset();
    drop(black_box(Box::new(0u8)));
    let installed = COUNTERS.read().calls > 0;
    COUNTERS.reset();
    let result = work();
    ON.store(false, Relaxed);
    (result, installed.then(|| COUNTERS.read()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: Counting = Counting;

    #[test]
    fn the_peak_is_the_most_held_at_one_time() {
        let counters = Counters::new();
        counters.note(100, 0);
        counters.note(50, 0);
        counters.note(0, 100);
        counters.note(80, 50);
        assert_eq!(counters.read(), Allocations { calls: 3, bytes: 180, peak: 150 });
        // Freeing what was there before is no peak.
        counters.reset();
        counters.note(0, 500);
        assert_eq!(counters.read(), Allocations::default());
    }

    // Other tests allocate meanwhile, so there may be more than we asked for, never less.
    #[test]
    fn counts_what_the_program_allocates() {
        let (kept, counted) = count(|| {
            let blocks: Vec<Vec<u8>> = (0..10).map(|_| black_box(vec![1u8; 1 << 20])).collect();
            black_box(blocks)
        });
        let counted = counted.expect("installed above");
        assert_eq!(kept.len(), 10);
        assert!(counted.calls >= 11 && counted.bytes >= 10 << 20, "{counted:?}");
    }
}
