//! Memory layout varied between starts: each start places stack and buffers at different addresses.
//!
//! Caches and branch predictors tell addresses apart by some of their bits only, so the same code can be slower for the
//! whole life of a process, depending on where its stack and buffers happen to lie (T. Mytkowicz et al., "Producing
//! Wrong Data Without Doing Anything Obviously Wrong!", ASPLOS 2009). In one of two runs, one format was 39 % slower in
//! all of its 12 starts, with no more spread than in the other run; in a trial of 40 stack depths, one in 16 made that
//! format up to 25 % slower. Moving stack and buffers between starts turns this bias into spread. The code itself is
//! not moved.

use std::hint::black_box;

use crate::{Result, record::dataset::random::mix};

/// What is moved goes through a page, in steps to which every allocation is aligned anyway.
const PAGE: u64 = 4096;
const STEP: u64 = 16;

/// How many bytes a buffer is moved on this start: less than a page.
pub(super) fn shift(start: u32) -> usize {
    match start {
        0 => 0,
        n => (mix(u64::from(n)) % (PAGE / STEP) * STEP) as usize,
    }
}

/// Records as bytes in memory, one behind another, where this start has them.
#[derive(Default)]
pub(super) struct Laid {
    bytes: Vec<u8>,
    /// Where the first begins, and the end of each.
    borders: Vec<usize>,
}

impl Laid {
    /// # Errors
    /// Those of `encode`, which appends a record.
    pub(crate) fn out<T>(
        start: u32,
        records: impl IntoIterator<Item = T>,
        mut encode: impl FnMut(T, &mut Vec<u8>) -> Result<()>,
    ) -> Result<Laid> {
        let shift = shift(start);
        let mut laid = Laid { bytes: vec![0; shift], borders: vec![shift] };
        for record in records {
            encode(record, &mut laid.bytes)?;
            laid.borders.push(laid.bytes.len());
        }
        Ok(laid)
    }

    /// How many bytes all records take.
    pub(crate) fn len(&self) -> usize {
        self.spans().map(<[u8]>::len).sum()
    }

    /// The bytes of each record.
    pub(crate) fn spans(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.borders.windows(2).map(|border| &self.bytes[border[0]..border[1]])
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

    #[test]
    fn records_lie_one_behind_another_wherever_they_begin() {
        for start in [0, 1, 2] {
            let laid = Laid::out(start, ["a", "", "bcd"], |text, out| {
                out.extend_from_slice(text.as_bytes());
                Ok(())
            });
            let laid = laid.unwrap();
            let spans: Vec<&[u8]> = laid.spans().collect();
            assert_eq!(spans, [&b"a"[..], b"", b"bcd"]);
            assert_eq!(laid.len(), 4);
        }
    }
}
