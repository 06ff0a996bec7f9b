//! A source's records in batches, for workers to convert side by side.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::journal::Mark;
use crate::{
    Error, ErrorKind, Result,
    file::Frames,
    format::Framed,
    store::{Blob, Row},
};

/// How many bytes make a batch: enough that handing it over and a store's commit cost nothing, few
/// enough that all batches in flight fit in some tens of megabytes. The first are small, so that
/// nobody waits for them, and each is twice the one before.
const BATCH: usize = 4 << 20;
pub(super) const FIRST: usize = 128 << 10;

/// Some records that follow one another in a source.
pub(super) struct Batch {
    pub records: Records,
    /// How many bytes of the source were read.
    pub read: u64,
    /// Where it ends.
    pub until: Mark,
    /// A run that was ended early may have written some of them already.
    pub tried: bool,
    /// A run that was ended early has written all of them.
    pub past: bool,
}

/// Records as their source has them.
pub(super) enum Records {
    Framed(Frame),
    Rows(Vec<Row>),
    Blobs(Vec<Blob>),
}

/// Records of a file.
#[derive(Default)]
pub(super) struct Frame {
    /// The records' bytes, nothing between them.
    pub bytes: Vec<u8>,
    pub frames: Vec<Framed>,
}

impl Frame {
    /// The next records of a file, of about `size` bytes, which grows, in `spare` memory; none after
    /// the last record. Those before `from` are left out, or, where they are to be read `again`,
    /// come in batches of their own.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub(super) fn next(
        frames: &mut Frames,
        from: u64,
        again: bool,
        size: &mut usize,
        spare: &Spare,
    ) -> Result<Option<Frame>> {
        let mut batch = Frame { bytes: spare.take(), ..Frame::default() };
        let full = *size;
        *size = BATCH.min(full * 2);
        while batch.bytes.len() < full {
            let past = batch.frames.first().is_some_and(|first| first.offset < from);
            if past && frames.offset() >= from {
                break;
            }
            let Some(frame) = frames.next()? else { break };
            if frame.offset < from && !again {
                continue;
            }
            if past && frame.offset >= from {
                let what =
                    "the journal does not match the source; remove it to copy from the beginning";
                return Err(Error::new(ErrorKind::Conflict, what).at(frame.offset));
            }
            let start = batch.bytes.len();
            batch.bytes.extend_from_slice(frame.bytes);
            let range = start..batch.bytes.len();
            batch.frames.push(Framed { range, offset: frame.offset, bad: frame.bad });
        }
        Ok((!batch.frames.is_empty()).then_some(batch))
    }
}

/// Buffers that are used again. A new one costs more than filling it does: the system clears its
/// pages first.
#[derive(Default)]
pub(super) struct Spare(Mutex<Vec<Vec<u8>>>);

impl Spare {
    /// An empty buffer.
    pub(super) fn take(&self) -> Vec<u8> {
        self.buffers().pop().unwrap_or_default()
    }

    /// Gives a buffer back.
    pub(super) fn give(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.buffers().push(buffer);
    }

    fn buffers(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
