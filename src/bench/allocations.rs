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
//! static ALLOCATOR: steelyard::bench::allocations::Counting = steelyard::bench::allocations::Counting;
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
static CALLS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
static LIVE: AtomicI64 = AtomicI64::new(0);
static PEAK: AtomicI64 = AtomicI64::new(0);

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

#[cold]
fn note(asked: usize, given_back: usize) {
    if asked > 0 {
        CALLS.fetch_add(1, Relaxed);
        BYTES.fetch_add(asked.saturating_sub(given_back) as u64, Relaxed);
    }
    let change = asked as i64 - given_back as i64;
    let live = LIVE.fetch_add(change, Relaxed) + change;
    PEAK.fetch_max(live, Relaxed);
}

// SAFETY: every method passes its arguments unchanged to `System`, which keeps the contract, and
// returns what that returns. The counters are atomics: they allocate nothing and cannot panic.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if ON.load(Relaxed) {
            note(layout.size(), 0);
        }
        // SAFETY: the caller keeps `alloc`'s contract, which is `System`'s.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if ON.load(Relaxed) {
            note(0, layout.size());
        }
        // SAFETY: as above; `block` came from `System` with this layout.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if ON.load(Relaxed) {
            note(layout.size(), 0);
        }
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if ON.load(Relaxed) {
            note(new_size, layout.size());
        }
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, new_size) }
    }
}

fn reset() {
    CALLS.store(0, Relaxed);
    BYTES.store(0, Relaxed);
    LIVE.store(0, Relaxed);
    PEAK.store(0, Relaxed);
}

/// Runs `work` and counts what it allocates (and what other threads do meanwhile). `None` for the
/// counts where [`Counting`] is not the program's allocator. Not to be called inside itself.
pub fn count<R>(work: impl FnOnce() -> R) -> (R, Option<Allocations>) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    reset();
    ON.store(true, Relaxed);
    drop(black_box(Box::new(0u8)));
    let installed = CALLS.load(Relaxed) > 0;
    reset();
    let result = work();
    ON.store(false, Relaxed);
    let counts = Allocations {
        calls: CALLS.load(Relaxed),
        bytes: BYTES.load(Relaxed),
        peak: PEAK.load(Relaxed).max(0) as u64,
    };
    (result, installed.then_some(counts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: Counting = Counting;

    // Other tests allocate and free meanwhile: calls and bytes can only be more than ours, the peak
    // some less.
    #[test]
    fn counts_calls_bytes_and_the_peak() {
        let (kept, counted) = count(|| {
            let blocks: Vec<Vec<u8>> = (0..10).map(|_| black_box(vec![1u8; 1 << 20])).collect();
            drop(blocks);
            black_box(vec![0u8; 1 << 20])
        });
        let counted = counted.expect("installed above");
        assert_eq!(kept.len(), 1 << 20);
        assert!(counted.calls >= 12 && counted.bytes >= 11 << 20, "{counted:?}");
        assert!(counted.peak >= 8 << 20, "{counted:?}");
    }
}
