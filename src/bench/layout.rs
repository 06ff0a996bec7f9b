//! Where a competitor's memory lies, another place on every start.
//!
//! Caches and predictors tell addresses apart by some of their bits only. Where a table on the stack
//! and a buffer happen to share those, the same code is slower throughout a process: here by 39 % in
//! one run of two, for one format. T. Mytkowicz et al., "Producing Wrong Data Without Doing Anything
//! Obviously Wrong!", ASPLOS 2009. So stack and buffers move from start to start, and what luck there
//! is becomes part of the spread. The code itself stays where the process has it.

use std::hint::black_box;

use crate::record::dataset::random::mix;

/// Bytes that move through all places of a page, in steps of a word of the processor's widest.
const PAGE: u64 = 4096;
const STEP: u64 = 16;

/// How many bytes a buffer is moved on this start: less than a page.
pub(super) fn shift(start: u32) -> usize {
    match start {
        0 => 0,
        n => (mix(u64::from(n)) % (PAGE / STEP) * STEP) as usize,
    }
}

/// Runs `work` further down the stack, where this start has it.
pub(super) fn deeper<T>(start: u32, work: impl FnOnce() -> T) -> T {
    let (mut work, mut done) = (Some(work), None);
    descend(shift(start ^ u32::MAX) / 64, &mut || done = work.take().map(|work| work()));
    done.expect("it ran")
}

/// Each level takes some 64 bytes of the stack.
#[inline(never)]
fn descend(levels: usize, work: &mut dyn FnMut()) {
    let frame = black_box([0u8; 16]);
    match levels {
        0 => work(),
        n => descend(n - 1, work),
    }
    // Not the last thing it does: the frame has to stay.
    black_box(frame);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_start_has_its_place() {
        let buffers: BTreeSet<_> = (0..100).map(shift).collect();
        assert!(buffers.len() > 60, "{buffers:?}");
        assert!(buffers.iter().all(|at| *at < 4096 && at % 16 == 0));
        let stacks: BTreeSet<_> = (0..100)
            .map(|start| {
                deeper(start, || {
                    let here = 0u8;
                    black_box(&here) as *const u8 as usize
                })
            })
            .collect();
        assert!(stacks.len() > 30, "{stacks:?}");
        assert_eq!(deeper(7, || "what it returned"), "what it returned");
    }
}
