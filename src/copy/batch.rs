//! A stream cut into batches of whole records, for workers to convert side by side.

use std::{io::Read, ops::Range};

use crate::{
    Error, Result,
    format::framing::{Framer, Next},
};

/// How many bytes make a batch: enough that handing it over costs nothing, few enough that all
/// batches in flight fit in some megabytes.
const BATCH: usize = 1 << 20;

/// Some records that follow one another in a stream.
#[derive(Default)]
pub(super) struct Batch {
    /// Where `bytes` begin in the stream.
    pub offset: u64,
    pub bytes: Vec<u8>,
    /// Where in `bytes` each record lies, or why there is none.
    pub frames: Vec<(Range<usize>, Option<Error>)>,
    /// What stands before each record to make it whole: the header line of CSV.
    pub head: Vec<u8>,
}

/// Cuts a stream into batches.
pub(super) struct Batches<R> {
    source: R,
    framer: Framer,
    /// What of the stream was read and is not in a batch yet.
    rest: Vec<u8>,
    offset: u64,
    eof: bool,
}

impl<R: Read> Batches<R> {
    pub fn new(source: R, framer: Framer) -> Self {
        Batches { source, framer, rest: Vec::new(), offset: 0, eof: false }
    }

    /// The next batch; none at the end.
    ///
    /// # Errors
    /// From the source, with the offset in the stream.
    pub fn next(&mut self) -> Result<Option<Batch>> {
        let mut batch = Batch { offset: self.offset, ..Batch::default() };
        std::mem::swap(&mut batch.bytes, &mut self.rest);
        let mut at = 0;
        loop {
            match self.framer.next(&batch.bytes[at..], self.eof) {
                Next::Record { range, next } => {
                    batch.frames.push((at + range.start..at + range.end, None));
                    at += next;
                }
                Next::Skip(n) => at += n,
                Next::Bad { len, error } => {
                    batch.frames.push((at..at + len, Some(error)));
                    at += len;
                }
                Next::More if at >= BATCH => break,
                Next::More => self.fill(&mut batch.bytes)?,
                Next::End => break,
            }
            if at >= 2 * BATCH {
                break;
            }
        }
        self.rest.extend_from_slice(&batch.bytes[at..]);
        batch.bytes.truncate(at);
        batch.head = self.framer.head().to_vec();
        self.offset += at as u64;
        Ok((at > 0).then_some(batch))
    }

    /// Reads up to a batch more behind `bytes`.
    fn fill(&mut self, bytes: &mut Vec<u8>) -> Result<()> {
        let offset = self.offset + bytes.len() as u64;
        let read = self.source.by_ref().take(BATCH as u64).read_to_end(bytes);
        let n = read.map_err(|e| Error::from(e).at(offset))?;
        self.eof = n == 0;
        Ok(())
    }
}
