//! Zeros where a record should begin: a block that was never written, or the padding of a file's end.
//! A long run is passed over as it is seen, so it takes no memory.

use super::frame::{BETWEEN, between};

/// So many bytes of zeros (and line ends) behind the last record are padding; more are lost records.
pub(super) const PADDING: u64 = 64 << 10;
/// A run of so many bytes is not held until it ends.
const LONG: usize = 4 << 10;

/// What was seen of a run that has not ended yet.
#[derive(Debug, Default)]
pub struct Zeros {
    /// Bytes of the run that were passed over.
    seen: u64,
    /// The bytes of the run that [`Run::Bad`] told last which were passed over before.
    before: u64,
    /// There was something else before: zeros alone are no padding of anything.
    begun: bool,
}

/// What a buffer begins with, behind what may stand between records.
#[derive(Debug, PartialEq)]
pub enum Run {
    /// Something else than zeros.
    None,
    /// These bytes can go; ask again with more behind what is there.
    On(usize),
    /// The file ends behind these bytes, the end of a run of so many: padding.
    Padding(usize, u64),
    /// A run ends behind so many bytes of the buffer; some of it may have been passed over before.
    Bad {
        /// Where it begins in the buffer.
        start: usize,
        /// Where it ends.
        end: usize,
        /// How many of its bytes were passed over before.
        before: u64,
    },
}

impl Zeros {
    /// For a part of a file that need not begin where the file does.
    pub fn within() -> Zeros {
        Zeros { begun: true, ..Zeros::default() }
    }

    /// What `buf` begins with, which follows what the last answer passed over.
    #[inline]
    pub fn look(&mut self, buf: &[u8], eof: bool) -> Run {
        // A record begins with a digit.
        match self.seen == 0 && buf.first().is_none_or(u8::is_ascii_digit) {
            true => {
                self.begun |= !buf.is_empty();
                Run::None
            }
            false => self.run(buf, eof),
        }
    }

    #[cold]
    fn run(&mut self, buf: &[u8], eof: bool) -> Run {
        let start = if self.seen == 0 { between(buf) } else { 0 };
        if self.seen == 0 && buf.get(start) != Some(&0) {
            self.begun |= start < buf.len();
            return Run::None;
        }
        // Line ends among zeros are part of the run.
        let is_run = |b: &&u8| **b == 0 || BETWEEN.contains(b);
        let end = start + buf[start..].iter().take_while(is_run).count();
        let before = self.seen;
        let run = before + (end - start) as u64;
        match (end == buf.len(), eof) {
            (true, false) if before == 0 && end - start < LONG => return Run::On(start),
            (true, false) => {
                self.seen = run;
                return Run::On(end);
            }
            (true, true) if run <= PADDING && self.begun => {
                self.seen = 0;
                return Run::Padding(end, run);
            }
            _ => (self.seen, self.before) = (0, before),
        }
        Run::Bad { start, end, before }
    }

    /// How many bytes of the run that was told last were passed over before it ended; asked once.
    pub fn take_before(&mut self) -> u64 {
        std::mem::take(&mut self.before)
    }
}

/// What is wrong with a run of so many bytes.
pub fn told(run: u64) -> String {
    let s = if run == 1 { "" } else { "s" };
    format!(
        "{run} byte{s} of zeros where a record should begin; that part of the file was probably never written"
    )
}
