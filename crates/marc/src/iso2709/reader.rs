//! Readers of the records of a stream and of a slice.

use std::io::Read;

use super::{
    Item,
    block::{Block, Step},
    frame::frame,
    zeros::{Run, Zeros, told},
};
use crate::{Error, ErrorKind, Frame, Result, Trouble, TroubleKind};

/// How much is looked at at once: small enough that block and marks stay in the cache.
const BLOCK: usize = 256 << 10;

/// A record longer than this is not believed; what claims to be one is an error.
const LONGEST: usize = 64 << 20;

/// Reads the records of a stream, one after the other, in steady memory.
///
/// A bad record never ends the stream: it is an [`Item`] with troubles, and the next call goes on
/// at the next record.
///
/// ```
/// use steelyard_marc::iso2709::Reader;
/// let file: &[u8] = b"00043nam a2200037 i 4500001000500000\x1e0042\x1e\x1d";
/// let mut reader = Reader::new(file);
/// while let Some(item) = reader.next()? {
///     let record = item.record.expect("a sound record");
///     assert_eq!(record.field(*b"001").unwrap().bytes(), b"0042");
/// }
/// # Ok::<(), steelyard_marc::Error>(())
/// ```
pub struct Reader<R> {
    source: R,
    buffer: Vec<u8>,
    /// The window begun with: `buffer[start..end]`.
    start: usize,
    end: usize,
    eof: bool,
    walk: Walk,
}

/// A block, and where in the file it stands.
#[derive(Default)]
struct Walk {
    block: Block,
    begun: bool,
    offset: u64,
    number: u64,
    zeros: Zeros,
    /// How many bytes of the item stepped to stood before this window: zeros.
    before: u64,
}

/// What stands at `at`; `eof` says that nothing comes after the window.
fn stretch(zeros: &mut Zeros, window: &[u8], at: usize, eof: bool) -> Frame {
    let rest = &window[at..];
    match zeros.look(rest, eof) {
        Run::None => frame(rest, eof),
        Run::On(n) => Frame::More(n),
        Run::Padding(..) => Frame::End,
        Run::Bad { start, end, before } => {
            let detail = told(before + (end - start) as u64);
            Frame::Bad(start..end, Trouble::new(TroubleKind::Syntax, start, detail))
        }
    }
}

impl Walk {
    /// Steps to the next record of the window.
    #[inline]
    fn step(
        &mut self,
        window: &[u8],
        mut stretch: impl FnMut(&mut Zeros, &[u8], usize) -> Frame,
    ) -> Step {
        if !self.begun {
            self.block.begin(window);
            self.begun = true;
        }
        let zeros = &mut self.zeros;
        let step = self.block.step(window, |window, at| stretch(zeros, window, at));
        self.before = 0;
        if matches!(step, Step::Record) {
            self.number += 1;
            if !self.block.troubles().is_empty() {
                self.before = self.zeros.take_before();
            }
            for trouble in self.block.troubles_mut() {
                trouble.record = self.number;
                trouble.offset = self.offset + trouble.offset - self.before;
            }
        }
        step
    }

    /// The record stepped to.
    #[inline]
    fn item<'a>(&'a self, window: &'a [u8]) -> Item<'a> {
        let (at, raw, record) = self.block.current(window);
        let offset = self.offset + at as u64 - self.before;
        Item { number: self.number, offset, raw, record, troubles: self.block.troubles() }
    }

    /// Leaves the window; gives how much of it is done.
    fn leave(&mut self) -> usize {
        let done = self.block.done();
        self.offset += done as u64;
        self.begun = false;
        done
    }
}

impl<R: Read> Reader<R> {
    /// Reads from `source`, which needs no buffer of its own.
    pub fn new(source: R) -> Self {
        Reader { source, buffer: Vec::new(), start: 0, end: 0, eof: false, walk: Walk::default() }
    }

    /// The next record; none at the end.
    ///
    /// # Errors
    /// [`Io`](ErrorKind::Io) from the source; [`TooLarge`](ErrorKind::TooLarge) where no record
    /// ends within 64 MiB.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Item<'_>>> {
        loop {
            let eof = self.eof;
            let stretch =
                |zeros: &mut Zeros, window: &[u8], at: usize| stretch(zeros, window, at, eof);
            match self.walk.step(&self.buffer[self.start..self.end], stretch) {
                Step::Record => {
                    return Ok(Some(self.walk.item(&self.buffer[self.start..self.end])));
                }
                Step::End => return Ok(None),
                Step::More => self.refill()?,
            }
        }
    }

    /// Brings what is left to the front and fills up behind it.
    fn refill(&mut self) -> Result<()> {
        self.start += self.walk.leave();
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.end > LONGEST {
            let e = Error::new(ErrorKind::TooLarge, "no MARC record ends within 64 MiB");
            return Err(e.at(self.walk.offset));
        }
        // Room for a block more; doubled for a record that outgrows it.
        let wanted = (2 * self.end).max(BLOCK);
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        while self.end < wanted && !self.eof {
            match self.source.read(&mut self.buffer[self.end..wanted]) {
                Ok(0) => self.eof = true,
                Ok(n) => self.end += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => (),
                Err(e) => return Err(Error::from(e).at(self.walk.offset + self.end as u64)),
            }
        }
        Ok(())
    }
}

/// The records of a slice, without copying it.
pub struct Records<'d> {
    data: &'d [u8],
    start: usize,
    end: usize,
    /// Where the stretches end, where that is known.
    ends: Option<&'d [usize]>,
    walk: Walk,
}

impl<'d> Records<'d> {
    /// The records in `data`, which holds whole records.
    pub fn new(data: &'d [u8]) -> Self {
        let end = data.len().min(BLOCK);
        Records { data, start: 0, end, ends: None, walk: Walk::default() }
    }

    /// The records in stretches that [`frame`](super::frame()) found, put together in `data`, each from
    /// the end of the one before to its own. What is read of a stretch does not depend on its
    /// neighbours.
    pub fn framed(data: &'d [u8], ends: &'d [usize]) -> Self {
        Records { ends: Some(ends), ..Records::new(data) }
    }

    /// The next record; none at the end.
    #[allow(clippy::should_implement_trait)]
    #[inline]
    pub fn next(&mut self) -> Option<Item<'_>> {
        loop {
            let window = &self.data[self.start..self.end];
            let (eof, start, ends) = (self.end == self.data.len(), self.start, &mut self.ends);
            let stretch = |zeros: &mut Zeros, window: &[u8], at: usize| match ends {
                None => stretch(zeros, window, at, eof),
                Some(ends) => known(ends, start + at, start + window.len()),
            };
            match self.walk.step(window, stretch) {
                Step::Record => return Some(self.walk.item(window)),
                Step::End => return None,
                Step::More => {
                    let left = window.len() - self.walk.block.done();
                    self.start += self.walk.leave();
                    self.end = self.data.len().min(self.start + (2 * left).max(BLOCK));
                }
            }
        }
    }
}

/// The stretch at `at` of some that end at `ends`, of which those that are done are left out; no more
/// than up to `seen` is there.
fn known(ends: &mut &[usize], at: usize, seen: usize) -> Frame {
    *ends = &ends[ends.partition_point(|end| *end <= at)..];
    match ends.first() {
        None => Frame::End,
        Some(end) if *end > seen => Frame::More(0),
        Some(end) => Frame::Record(0..end - at),
    }
}
