//! A zstd frame (RFC 8878).

use std::io::{Cursor, Read};

use zstd::{
    bulk::{Compressor, Decompressor},
    zstd_safe,
};

use super::gzip::too_large;
use crate::{Error, Result};

/// The first bytes of every frame.
pub const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The level where none is said, as the zstd tool has it.
pub const LEVEL: i32 = 3;
/// A block of four bytes stands for 128 KiB at most.
const BEST_RATIO: usize = 1 << 15;

pub fn compress(compressor: &mut Compressor<'_>, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    out.reserve(zstd_safe::compress_bound(bytes.len()));
    let mut end = Cursor::new(out);
    end.set_position(end.get_ref().len() as u64);
    compressor
        .compress_to_buffer(bytes, &mut end)
        .map(drop)
        .map_err(|e| Error::unsupported("cannot be packed with zstd").with_source(e))
}

/// Appends what the frames in `bytes` hold, if it is no more than `limit` bytes.
pub fn decompress(
    decompressor: &mut Decompressor<'_>,
    bytes: &[u8],
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<()> {
    let damaged = |e: std::io::Error| Error::malformed("damaged zstd").with_source(e);
    match zstd_safe::get_frame_content_size(bytes) {
        Ok(Some(size)) => {
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            if size > limit {
                return Err(too_large(limit));
            }
            if size > bytes.len().saturating_mul(BEST_RATIO) {
                return Err(Error::malformed("damaged zstd: impossible size"));
            }
            out.reserve(size);
            let start = out.len();
            let mut end = Cursor::new(&mut *out);
            end.set_position(start as u64);
            decompressor.decompress_to_buffer(bytes, &mut end).map_err(damaged)?;
            // Reserving may have given more room than asked for, and further frames may fill it.
            match out.len() - start > limit {
                true => Err(too_large(limit)),
                false => Ok(()),
            }
        }
        // Written by one who did not know the size beforehand.
        Ok(None) => {
            let decoder = zstd::stream::read::Decoder::with_buffer(bytes).map_err(damaged)?;
            let read = decoder.take(limit as u64 + 1).read_to_end(out).map_err(damaged)?;
            match read > limit {
                true => Err(too_large(limit)),
                false => Ok(()),
            }
        }
        Err(_) => Err(Error::malformed("not zstd")),
    }
}

pub fn compressor(level: i32) -> Result<Compressor<'static>> {
    let mut compressor = Compressor::new(level)?;
    // A check sum, as the zstd tool writes: damage should not pass.
    compressor.set_parameter(zstd_safe::CParameter::ChecksumFlag(true))?;
    Ok(compressor)
}
