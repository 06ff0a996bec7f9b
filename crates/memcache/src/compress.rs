//! Compression of large values, and the flags that mark them.
//!
//! A value's flags say how it was packed. Ours are bits that no client named in `foreign.rs` uses:
//! [`ZSTD`], [`ZLIB`]; the upper 16 bits are left to the caller, as are the lower eight.

#[cfg(feature = "compress")]
use std::io::{Read, Write};

#[cfg(feature = "compress")]
use flate2::{read::ZlibDecoder, write::ZlibEncoder};

#[cfg(feature = "compress")]
use crate::ErrorKind;
use crate::{Error, Result};

/// The flag of a value that is a zstd frame.
pub const ZSTD: u32 = 0x100;
/// The flag of a value that is a zlib stream.
pub const ZLIB: u32 = 0x200;
/// The flag of an empty value that somebody stored, as against one that stands for a value being
/// made.
pub const EMPTY: u32 = 0x400;

/// How large values are made small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compression {
    /// Values of so many bytes or more are compressed, if they become smaller by that.
    pub from: usize,
    /// How.
    pub how: Method,
}

/// A way of compressing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// zstd of this level, 1 to 22.
    Zstd(i32),
    /// zlib of this level, 0 to 9.
    Zlib(u32),
}

impl Default for Compression {
    fn default() -> Self {
        Compression { from: 4096, how: Method::Zstd(3) }
    }
}

impl Compression {
    /// The value made small, and its flag; none where that is not worth it.
    ///
    /// # Errors
    /// Where the compressor fails.
    pub fn pack(&self, value: &[u8]) -> Result<Option<(Vec<u8>, u32)>> {
        match value.len() < self.from {
            true => Ok(None),
            false => self.squeeze(value),
        }
    }

    #[cfg(feature = "compress")]
    fn squeeze(&self, value: &[u8]) -> Result<Option<(Vec<u8>, u32)>> {
        let (packed, flag) = match self.how {
            Method::Zstd(level) => (zstd::bulk::compress(value, level)?, ZSTD),
            Method::Zlib(level) => {
                let level = flate2::Compression::new(level.min(9));
                let mut encoder = ZlibEncoder::new(Vec::new(), level);
                encoder.write_all(value)?;
                (encoder.finish()?, ZLIB)
            }
        };
        Ok((packed.len() < value.len()).then_some((packed, flag)))
    }

    #[cfg(not(feature = "compress"))]
    fn squeeze(&self, _value: &[u8]) -> Result<Option<(Vec<u8>, u32)>> {
        Err(not_built_in())
    }
}

/// The value that was packed, as its flags say, and the flags without that; `limit` bytes at most.
///
/// # Errors
/// [`Malformed`](ErrorKind::Malformed) where it was not, [`TooLarge`](ErrorKind::TooLarge) beyond
/// the limit.
pub(crate) fn unpack(bytes: Vec<u8>, flags: u32, limit: usize) -> Result<(Vec<u8>, u32)> {
    if flags & (ZSTD | ZLIB) == 0 {
        return Ok((bytes, flags));
    }
    Ok((unpacked(&bytes, flags, limit)?, flags & !(ZSTD | ZLIB)))
}

#[cfg(not(feature = "compress"))]
fn not_built_in() -> Error {
    Error::unsupported(
        "compression is not built in; enable the feature `compress` of steelyard-memcache",
    )
}

#[cfg(not(feature = "compress"))]
fn unpacked(_bytes: &[u8], _flags: u32, _limit: usize) -> Result<Vec<u8>> {
    Err(not_built_in())
}

#[cfg(feature = "compress")]
fn wrong(e: std::io::Error) -> Error {
    Error::malformed("the value is marked as compressed, but is not").with_source(e)
}

#[cfg(feature = "compress")]
fn unpacked(bytes: &[u8], flags: u32, limit: usize) -> Result<Vec<u8>> {
    let reader: Box<dyn Read + '_> = match flags & (ZSTD | ZLIB) {
        ZSTD => Box::new(zstd::stream::read::Decoder::with_buffer(bytes).map_err(wrong)?),
        ZLIB => Box::new(ZlibDecoder::new(bytes)),
        _ => return Err(Error::malformed("the value is marked as compressed in two ways")),
    };
    read_all(reader, limit)
}

#[cfg(not(feature = "compress"))]
#[cfg(feature = "objects")]
pub(crate) fn inflate(_bytes: &[u8], _limit: usize) -> Result<Vec<u8>> {
    Err(not_built_in())
}

/// A zlib stream of another client.
///
/// # Errors
/// As those of [`unpack`].
#[cfg(all(feature = "compress", feature = "objects"))]
pub(crate) fn inflate(bytes: &[u8], limit: usize) -> Result<Vec<u8>> {
    read_all(ZlibDecoder::new(bytes), limit)
}

#[cfg(feature = "compress")]
fn read_all(reader: impl Read, limit: usize) -> Result<Vec<u8>> {
    let mut whole = Vec::new();
    reader.take(limit as u64 + 1).read_to_end(&mut whole).map_err(wrong)?;
    if whole.len() > limit {
        let what = format!("the value has more than {limit} bytes unpacked; see max_value");
        return Err(Error::new(ErrorKind::TooLarge, what));
    }
    Ok(whole)
}

#[cfg(all(test, feature = "compress"))]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_and_bombs_do_not_go_off() {
        let value = b"the same again ".repeat(1000);
        for how in [Method::Zstd(3), Method::Zlib(6)] {
            let compression = Compression { from: 100, how };
            let (packed, flag) = compression.pack(&value).unwrap().unwrap();
            assert!(packed.len() < 500);
            let (whole, flags) = unpack(packed.clone(), flag | 7, value.len()).unwrap();
            assert!(whole == value && flags == 7);
            let error = unpack(packed.clone(), flag, value.len() - 1).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TooLarge);
            assert!(unpack(packed[..20].to_vec(), flag, 1 << 20).is_err());
            assert!(compression.pack(&value[..99]).unwrap().is_none());
            // What does not become smaller is left as it is.
            let noise: Vec<u8> =
                (0..200u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
            assert!(compression.pack(&noise).unwrap().is_none());
        }
        assert!(unpack(vec![1], ZSTD | ZLIB, 10).is_err());
    }
}
