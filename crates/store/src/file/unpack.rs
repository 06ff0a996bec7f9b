//! Reading packed files: unpacking in threads of its own, ahead of whoever reads.
//!
//! A file may be one stream, which one thread unpacks while another reads records. Or it may
//! have parts that can be found without unpacking them, which several threads then unpack: gzip
//! members that say their length (as bgzip and MiGz write, and [`Packer`](super::Packer)), and
//! zstd frames that say what they hold.

use std::{
    io::{self, BufReader, Cursor, Read},
    thread,
};

use flate2::{Decompress, bufread::MultiGzDecoder};
use zstd::{bulk::Decompressor, zstd_safe};

use super::{
    Packing,
    lanes::{Feeder, Results, Stash, Unwanted, Work, lanes},
};
use crate::{
    Error, ErrorKind, Result,
    format::{gzip, zstd as frame},
};

/// How much of a stream is unpacked at once.
const BLOCK: usize = 512 << 10;
/// How many packed bytes make a job.
const JOB: usize = 256 << 10;
/// The largest part that is unpacked as a whole, packed and unpacked.
const LARGEST: usize = 8 << 20;

/// The unpacked bytes of a file, unpacked ahead in other threads.
pub struct Unpacker {
    results: Results,
    stash: Stash,
    block: Vec<u8>,
    at: usize,
}

impl Unpacker {
    /// Unpacks what `input` has, in up to `threads` threads besides the one that reads it.
    ///
    /// # Errors
    /// Where no thread can be started.
    pub fn new(
        packing: Packing,
        input: impl Read + Send + 'static,
        threads: usize,
    ) -> Result<Unpacker> {
        let stash = Stash::default();
        let work = stash.clone();
        let (feeder, results) = lanes(threads, move || {
            let tool = match packing {
                Packing::Zstd(_) => Tool::Zstd(Decompressor::new()?),
                _ => Tool::Gzip(Decompress::new(false)),
            };
            Ok(Unpack { tool, stash: work.clone() })
        });
        let mut window = Window { input, bytes: vec![0; 1 << 20], start: 0, end: 0, eof: false };
        let spare = stash.clone();
        thread::Builder::new().name("unpacking".into()).spawn(move || {
            let mut feeder = feeder;
            let end = match feed(packing, &mut window, &mut feeder, &spare) {
                Ok(Part::Units) => Ok(()),
                Ok(Part::Stream) => stream(packing, window, &mut feeder, &spare),
                Err(e) => Err(e),
            };
            match end {
                Ok(()) => feeder.end(Ok(())),
                Err(Stop::Failed(e)) => feeder.end(Err(e)),
                Err(Stop::Unwanted) => Ok(()),
            }
        })?;
        Ok(Unpacker { results, stash, block: Vec::new(), at: 0 })
    }
}

impl Read for Unpacker {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.at == self.block.len() {
            match self.results.next() {
                Ok(Some(block)) => {
                    self.stash.give(std::mem::replace(&mut self.block, block));
                    self.at = 0;
                }
                Ok(None) => return Ok(0),
                // Its kind is found again by `into_error`.
                Err(e) => return Err(io::Error::other(e)),
            }
        }
        let n = out.len().min(self.block.len() - self.at);
        out[..n].copy_from_slice(&self.block[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

/// The error that a reader brought, with the kind it had before it passed through `io::Error`.
pub(super) fn into_error(error: io::Error) -> Error {
    match error.get_ref().is_some_and(|e| e.is::<Error>()) {
        true => match error.into_inner().map(|e| e.downcast::<Error>()) {
            Some(Ok(inner)) => *inner,
            _ => Error::new(ErrorKind::Io, "reading failed"),
        },
        false => error.into(),
    }
}

/// Why unpacking stops.
enum Stop {
    Failed(Error),
    Unwanted,
}

impl From<io::Error> for Stop {
    fn from(e: io::Error) -> Self {
        Stop::Failed(e.into())
    }
}

impl From<Unwanted> for Stop {
    fn from(_: Unwanted) -> Self {
        Stop::Unwanted
    }
}

/// Packed bytes as they come.
struct Window<R> {
    input: R,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    eof: bool,
}

impl<R: Read> Window<R> {
    fn have(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Reads on; what is there keeps its distance from the start.
    fn more(&mut self) -> io::Result<()> {
        self.bytes.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.end == self.bytes.len() {
            self.bytes.resize(self.bytes.len() * 2, 0);
        }
        loop {
            match self.input.read(&mut self.bytes[self.end..]) {
                Ok(n) => {
                    self.end += n;
                    self.eof = n == 0;
                    return Ok(());
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

/// How a file goes on.
enum Part {
    /// In parts that could all be found; it has ended.
    Units,
    /// As a stream from here on.
    Stream,
}

/// What stands at the start of some packed bytes.
enum Unit {
    /// A part of this many bytes that holds that many.
    Whole(usize, usize),
    /// Perhaps a part, of which more must be seen.
    Open,
    Stream,
}

/// Gives out parts as long as they can be found.
fn feed<R: Read>(
    packing: Packing,
    window: &mut Window<R>,
    feeder: &mut Feeder<Unpack>,
    stash: &Stash,
) -> Result<Part, Stop> {
    // Parts at the start of the window that make up the next job, and what they hold.
    let (mut packed, mut unpacked) = (0, 0);
    loop {
        let rest = &window.have()[packed..];
        let unit = match rest.is_empty() {
            true => Unit::Open,
            false => match packing {
                Packing::Zstd(_) => zstd_unit(rest),
                _ => gzip_unit(rest),
            },
        };
        let rest = rest.len();
        if let Unit::Whole(len, holds) = unit {
            packed += len;
            unpacked += holds;
            if packed < JOB && unpacked < LARGEST {
                continue;
            }
        }
        if packed > 0 {
            let mut job = stash.take();
            job.extend_from_slice(&window.have()[..packed]);
            window.start += packed;
            feeder.work(job)?;
            (packed, unpacked) = (0, 0);
        }
        match unit {
            Unit::Whole(..) => {}
            Unit::Open if window.eof && rest == 0 => return Ok(Part::Units),
            Unit::Open if !window.eof && rest < LARGEST => window.more()?,
            Unit::Open | Unit::Stream => return Ok(Part::Stream),
        }
    }
}

fn gzip_unit(bytes: &[u8]) -> Unit {
    match gzip::header(bytes) {
        Ok(Some(gzip::Header { member: Some(member), .. })) if member <= LARGEST => {
            match bytes.get(..member).and_then(|member| member.last_chunk()) {
                None => Unit::Open,
                Some(length) => match u32::from_le_bytes(*length) as usize {
                    length if length <= LARGEST => Unit::Whole(member, length),
                    _ => Unit::Stream,
                },
            }
        }
        Ok(Some(_)) => Unit::Stream,
        Ok(None) => Unit::Open,
        // What is wrong with it, the one who reads the stream says.
        Err(_) => Unit::Stream,
    }
}

fn zstd_unit(bytes: &[u8]) -> Unit {
    if let [0x50..=0x5f, 0x2a, 0x4d, 0x18, rest @ ..] = bytes {
        let Some(length) = rest.first_chunk() else { return Unit::Open };
        return match 8 + u32::from_le_bytes(*length) as usize {
            len if len <= bytes.len() => Unit::Whole(len, 0),
            len if len <= LARGEST => Unit::Open,
            _ => Unit::Stream,
        };
    }
    if bytes.len() < 18 {
        return Unit::Open;
    }
    match zstd_safe::get_frame_content_size(bytes) {
        Ok(Some(size)) if size <= LARGEST as u64 => {
            match zstd_safe::find_frame_compressed_size(bytes) {
                Ok(len) => Unit::Whole(len, size as usize),
                Err(_) => Unit::Open,
            }
        }
        _ => Unit::Stream,
    }
}

/// Unpacks the rest as one stream, here.
fn stream<R: Read + Send>(
    packing: Packing,
    window: Window<R>,
    feeder: &mut Feeder<Unpack>,
    stash: &Stash,
) -> Result<(), Stop> {
    let head = Cursor::new(window.bytes[window.start..window.end].to_vec());
    let rest = BufReader::with_capacity(256 << 10, head.chain(window.input));
    match packing {
        Packing::Zstd(_) => {
            blocks(zstd::stream::read::Decoder::with_buffer(rest)?, "zstd", feeder, stash)
        }
        _ => blocks(MultiGzDecoder::new(rest), "gzip", feeder, stash),
    }
}

fn blocks(
    mut decoder: impl Read,
    what: &str,
    feeder: &mut Feeder<Unpack>,
    stash: &Stash,
) -> Result<(), Stop> {
    loop {
        let mut block = stash.take();
        block.resize(BLOCK, 0);
        let mut full = 0;
        let end = loop {
            match decoder.read(&mut block[full..]) {
                Ok(0) => break Some(Ok(())),
                Ok(n) => full += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => break Some(Err(damaged(e, what))),
            }
            if full == BLOCK {
                break None;
            }
        };
        // What came before the damage is good.
        block.truncate(full);
        feeder.pass(block)?;
        match end {
            None => {}
            Some(end) => return end.map_err(Stop::Failed),
        }
    }
}

/// What a decoder says, told apart from what the system says.
fn damaged(e: io::Error, what: &str) -> Error {
    match e.kind() {
        io::ErrorKind::UnexpectedEof => {
            Error::malformed(format!("the file ends inside its {what}")).with_source(e)
        }
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::Other => {
            Error::malformed(format!("damaged {what}")).with_source(e)
        }
        _ => e.into(),
    }
}

enum Tool {
    Gzip(Decompress),
    Zstd(Decompressor<'static>),
}

/// Unpacks parts.
struct Unpack {
    tool: Tool,
    stash: Stash,
}

impl Work for Unpack {
    /// Whole parts, one after another.
    type Job = Vec<u8>;

    fn run(&mut self, job: Vec<u8>) -> Result<Vec<u8>> {
        let mut out = self.stash.take();
        let mut rest = &job[..];
        while !rest.is_empty() {
            let unit = match &self.tool {
                Tool::Gzip(_) => gzip_unit(rest),
                Tool::Zstd(_) => zstd_unit(rest),
            };
            let Unit::Whole(len, holds) = unit else {
                return Err(Error::malformed("a damaged packed part"));
            };
            let part = &rest[..len];
            rest = &rest[len..];
            match &mut self.tool {
                Tool::Gzip(inflate) => gzip::decompress(inflate, part, holds, &mut out)?,
                // Frames to be skipped hold nothing.
                Tool::Zstd(_) if !part.starts_with(&frame::MAGIC) => {}
                Tool::Zstd(decompressor) => {
                    frame::decompress(decompressor, part, holds, &mut out)?;
                }
            }
        }
        self.stash.give(job);
        Ok(out)
    }
}
