//! A file's records in batches, for workers to convert side by side.

use std::ops::Range;

use crate::{Error, Result, file::Frames};

/// How many bytes make a batch: enough that handing it over costs nothing, few enough that all
/// batches in flight fit in some megabytes.
const BATCH: usize = 1 << 20;

/// Some records that follow one another in a file.
#[derive(Default)]
pub(super) struct Batch {
    /// The records' bytes, nothing between them.
    pub bytes: Vec<u8>,
    pub frames: Vec<Framed>,
    /// How far the file was read.
    pub until: u64,
}

/// A record in a batch.
pub(super) struct Framed {
    /// Where it lies in the batch.
    pub range: Range<usize>,
    /// Where it lies in the file.
    pub offset: u64,
    /// Why it is none.
    pub bad: Option<Error>,
}

impl Batch {
    /// The next batch of `frames`; none after the last record.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn next(frames: &mut Frames) -> Result<Option<Batch>> {
        let mut batch = Batch::default();
        while batch.bytes.len() < BATCH {
            let Some(frame) = frames.next()? else { break };
            let start = batch.bytes.len();
            batch.bytes.extend_from_slice(frame.bytes);
            let range = start..batch.bytes.len();
            batch.frames.push(Framed { range, offset: frame.offset, bad: frame.bad });
        }
        batch.until = frames.offset();
        Ok((!batch.frames.is_empty()).then_some(batch))
    }
}
