//! Writing packed files, in several threads.
//!
//! The bytes are cut into blocks, and each becomes a gzip member or zstd frame of its own. Any
//! tool reads such a file as one; whoever knows how reads its parts in several threads too, for
//! each says its length (gzip: in the header, as MiGz does; zstd: of itself).

use std::{
    io::{self, Write},
    thread::{self, JoinHandle},
};

use flate2::Compress;
use zstd::bulk::Compressor;

use super::{
    Packing,
    lanes::{Feeder, Stash, Work, lanes},
    unpack::into_error,
};
use crate::{
    Error, ErrorKind, Result,
    format::{gzip, zstd as frame},
};

/// How many bytes make a gzip member: 32 windows, so that little is lost by beginning anew.
const MEMBER: usize = 1 << 20;
/// How many bytes make a zstd frame: its windows are larger.
const FRAME: usize = 2 << 20;

/// Packs what is written to it. Nothing is complete before [`finish`](Packer::finish).
pub struct Packer<W>(Way<W>);

enum Way<W> {
    Plain(W),
    Packed(Packed<W>),
}

struct Packed<W> {
    block: Vec<u8>,
    size: usize,
    feeder: Option<Feeder<Pack>>,
    stash: Stash,
    /// Writes the results; gives the output back, or says what went wrong.
    writer: Option<JoinHandle<Result<W>>>,
    /// Nothing was packed yet.
    fresh: bool,
}

impl<W: Write + Send + 'static> Packer<W> {
    /// Packs into `output`, in up to `threads` threads besides the one that writes.
    ///
    /// # Errors
    /// Where no thread can be started.
    pub fn new(packing: Packing, output: W, threads: usize) -> Result<Packer<W>> {
        let size = match packing {
            Packing::Plain => return Ok(Packer(Way::Plain(output))),
            Packing::Gzip(_) => MEMBER,
            Packing::Zstd(_) => FRAME,
        };
        let stash = Stash::default();
        let work = stash.clone();
        let (feeder, mut results) = lanes(threads, move || {
            let tool = match packing {
                Packing::Zstd(level) => Tool::Zstd(frame::compressor(level)?),
                Packing::Gzip(level) => Tool::Gzip(gzip::compressor(level)),
                Packing::Plain => Tool::Gzip(gzip::compressor(0)),
            };
            Ok(Pack { tool, stash: work.clone() })
        });
        let (spare, mut output) = (stash.clone(), output);
        let writer = thread::Builder::new().name("writing".into()).spawn(move || {
            while let Some(block) = results.next()? {
                output.write_all(&block)?;
                spare.give(block);
            }
            output.flush()?;
            Ok(output)
        })?;
        Ok(Packer(Way::Packed(Packed {
            block: Vec::with_capacity(size),
            size,
            feeder: Some(feeder),
            stash,
            writer: Some(writer),
            fresh: true,
        })))
    }

    /// Packs what is left, and gives the output back once all is written to it.
    ///
    /// # Errors
    /// Those of writing, now or before.
    pub fn finish(self) -> Result<W> {
        match self.0 {
            Way::Plain(mut output) => {
                output.flush()?;
                Ok(output)
            }
            Way::Packed(mut packed) => {
                // A packed file of nothing is still a packed file.
                if packed.fresh || !packed.block.is_empty() {
                    packed.pack()?;
                }
                if let Some(feeder) = packed.feeder.take() {
                    // Should nobody listen, the writer says why.
                    let _ = feeder.end(Ok(()));
                }
                packed.written()
            }
        }
    }
}

impl<W> Packed<W> {
    fn pack(&mut self) -> Result<()> {
        self.fresh = false;
        let mut next = self.stash.take();
        next.reserve(self.size);
        let block = std::mem::replace(&mut self.block, next);
        match self.feeder.as_mut().map(|feeder| feeder.work(block)) {
            Some(Ok(())) => Ok(()),
            // The writer has given up.
            _ => self.written().and_then(|_| Err(ended())),
        }
    }

    fn written(&mut self) -> Result<W> {
        self.feeder = None;
        match self.writer.take().map(JoinHandle::join) {
            Some(Ok(written)) => written,
            _ => Err(ended()),
        }
    }
}

fn ended() -> Error {
    Error::new(ErrorKind::Io, "writing has failed before")
}

impl<W: Write> Write for Packer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Way::Plain(output) => output.write(bytes),
            Way::Packed(packed) => {
                let n = bytes.len().min(packed.size - packed.block.len());
                packed.block.extend_from_slice(&bytes[..n]);
                if packed.block.len() == packed.size {
                    packed.pack().map_err(io::Error::other)?;
                }
                Ok(n)
            }
        }
    }

    /// Hands plain bytes on; packed ones are complete only at the end.
    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Way::Plain(output) => output.flush(),
            Way::Packed(_) => Ok(()),
        }
    }
}

enum Tool {
    Gzip(Compress),
    Zstd(Compressor<'static>),
}

/// Packs blocks.
struct Pack {
    tool: Tool,
    stash: Stash,
}

impl Work for Pack {
    type Job = Vec<u8>;

    fn run(&mut self, block: Vec<u8>) -> Result<Vec<u8>> {
        let mut out = self.stash.take();
        match &mut self.tool {
            Tool::Gzip(deflate) => gzip::compress(deflate, true, &block, &mut out)?,
            Tool::Zstd(compressor) => frame::compress(compressor, &block, &mut out)?,
        }
        self.stash.give(block);
        Ok(out)
    }
}

/// Writes all bytes, with the error it was, not the one that `io` made of it.
pub(super) fn write_all(output: &mut impl Write, bytes: &[u8]) -> Result<()> {
    output.write_all(bytes).map_err(into_error)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::file::Unpacker;

    fn sample(size: usize) -> Vec<u8> {
        (0..size).map(|i| ((i * 31) ^ (i >> 7)) as u8 & 0x3f).collect()
    }

    fn packed(packing: Packing, bytes: &[u8], threads: usize) -> Vec<u8> {
        let mut packer = Packer::new(packing, Vec::new(), threads).unwrap();
        for piece in bytes.chunks(100_003) {
            packer.write_all(piece).unwrap();
        }
        packer.finish().unwrap()
    }

    fn unpacked(packing: Packing, bytes: Vec<u8>, threads: usize) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        let input = Cursor(bytes, 0);
        Unpacker::new(packing, input, threads).unwrap().read_to_end(&mut out).map(|_| out)
    }

    /// Hands out bytes as a pipe does, in pieces of odd sizes.
    struct Cursor(Vec<u8>, usize);

    impl Read for Cursor {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let n = out.len().min(self.0.len() - self.1).min(70_001);
            out[..n].copy_from_slice(&self.0[self.1..self.1 + n]);
            self.1 += n;
            Ok(n)
        }
    }

    #[test]
    fn comes_back_whatever_the_size_and_the_threads() {
        for packing in [Packing::Gzip(1), Packing::Zstd(1)] {
            for size in [0, 1, MEMBER - 1, MEMBER, 2 * FRAME + 5] {
                let bytes = sample(size);
                for threads in [1, 3] {
                    let file = packed(packing, &bytes, threads);
                    assert!(Packing::by_content(&file) != Packing::Plain, "{packing} {size}");
                    assert!(unpacked(packing, file, threads).unwrap() == bytes, "{packing} {size}");
                }
            }
        }
    }

    #[test]
    fn other_readers_read_it_and_we_read_other_writers() {
        let bytes = sample(3 * MEMBER);
        let mut theirs = Vec::new();
        flate2::read::MultiGzDecoder::new(&packed(Packing::Gzip(6), &bytes, 2)[..])
            .read_to_end(&mut theirs)
            .unwrap();
        assert!(theirs == bytes);
        let file = packed(Packing::Zstd(3), &bytes, 2);
        assert!(zstd::decode_all(&file[..]).unwrap() == bytes);

        // One stream; then our members; then one again.
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&bytes).unwrap();
        let one = encoder.finish().unwrap();
        let ours = packed(Packing::Gzip(1), &bytes, 2);
        let file = [&one[..], &ours, &one].concat();
        assert!(unpacked(Packing::Gzip(6), file, 2).unwrap() == bytes.repeat(3));
        let file = [&ours[..], &one, &ours].concat();
        assert!(unpacked(Packing::Gzip(6), file, 2).unwrap() == bytes.repeat(3));

        // Frames that say nothing of their size, and frames to be skipped.
        let one = zstd::encode_all(&bytes[..], 1).unwrap();
        let skip = [0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
        let ours = packed(Packing::Zstd(1), &bytes, 2);
        let file = [&skip[..], &ours, &skip, &one, &skip, &ours].concat();
        assert!(unpacked(Packing::Zstd(3), file, 2).unwrap() == bytes.repeat(3));
    }

    #[test]
    fn blocks_of_bgzf_are_read() {
        // The empty block with which bgzip ends its files, and one made like its others.
        const END: &[u8] =
            b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x06\0BC\x02\0\x1b\0\x03\0\0\0\0\0\0\0\0\0";
        let bytes = sample(100_000);
        let mut file = Vec::new();
        for piece in bytes.chunks(60_000) {
            let mut member = Vec::new();
            gzip::compress(&mut gzip::compressor(6), false, piece, &mut member).unwrap();
            let size = ((member.len() + 8 - 1) as u16).to_le_bytes();
            file.extend_from_slice(&member[..3]);
            file.extend_from_slice(&[
                4, 0, 0, 0, 0, 0, 255, 6, 0, b'B', b'C', 2, 0, size[0], size[1],
            ]);
            file.extend_from_slice(&member[10..]);
        }
        file.extend_from_slice(END);
        assert!(unpacked(Packing::Gzip(6), file, 2).unwrap() == bytes);
    }

    #[test]
    fn damage_is_an_error_with_the_good_part_before_it() {
        let bytes = sample(3 * MEMBER);
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&bytes).unwrap();
        let files = [
            (Packing::Gzip(1), encoder.finish().unwrap()),
            (Packing::Gzip(1), packed(Packing::Gzip(1), &bytes, 2)),
            (Packing::Zstd(1), packed(Packing::Zstd(1), &bytes, 2)),
            (Packing::Zstd(1), zstd::encode_all(&bytes[..], 1).unwrap()),
        ];
        for (packing, file) in files {
            for cut in [file.len() - 1, file.len() / 2, 3] {
                let error = into_error(unpacked(packing, file[..cut].to_vec(), 2).unwrap_err());
                assert_eq!(error.kind(), ErrorKind::Malformed, "{packing} {cut}: {error:?}");
            }
            let mut damaged = file.clone();
            let at = file.len() * 9 / 10;
            damaged[at..at + 20].fill(0xaa);
            let mut reader = Unpacker::new(packing, Cursor(damaged, 0), 2).unwrap();
            let mut out = Vec::new();
            let error = into_error(reader.read_to_end(&mut out).unwrap_err());
            assert_eq!(error.kind(), ErrorKind::Malformed, "{error:?}");
            assert!(bytes.starts_with(&out) || packing == Packing::Zstd(1));
            assert_eq!(reader.read(&mut [0; 10]).unwrap(), 0, "nothing after an error");
        }
    }

    #[test]
    fn a_failed_write_is_told() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::Error::new(io::ErrorKind::StorageFull, "no space"))
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        for packing in [Packing::Plain, Packing::Gzip(1), Packing::Zstd(1)] {
            let mut packer = Packer::new(packing, Full, 2).unwrap();
            let written = write_all(&mut packer, &sample(40 << 20));
            let error = written.and_then(|()| packer.finish().map(drop)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Full);
            assert!(error.to_string().contains("no space"), "{error:?}");
        }
    }
}
