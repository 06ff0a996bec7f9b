//! A gzip member (RFC 1952): header, deflated bytes, check sum and length.
//!
//! Some writers say in the header how long the member is, so that readers find the next one
//! without inflating: BGZF (subfield `BC`, as bgzip and samtools write) and MiGz (subfield `MZ`).

use flate2::{Compress, Compression, Crc, Decompress, FlushCompress, FlushDecompress, Status};

use crate::{Error, ErrorKind, Result};

/// The first two bytes of every member.
pub const MAGIC: [u8; 2] = [0x1f, 0x8b];
/// The level where none is said, as the gzip tool has it.
pub const LEVEL: u32 = 6;
/// Check sum and length, after the deflated bytes.
pub(crate) const TRAILER: usize = 8;
/// Deflate cannot do better than 258 bytes for two bits.
const BEST_RATIO: usize = 1032;

/// What a member's header says.
#[derive(Debug, PartialEq)]
pub struct Header {
    /// How many bytes the header has.
    pub len: usize,
    /// How many bytes the whole member has, where its writer said so.
    pub member: Option<usize>,
}

/// Reads a member's header; `None` where it goes on beyond `bytes`.
pub fn header(bytes: &[u8]) -> Result<Option<Header>> {
    let Some(fixed) = bytes.first_chunk::<10>() else {
        let seen = bytes.len().min(2);
        return match bytes[..seen] == MAGIC[..seen] {
            true => Ok(None),
            false => Err(Error::malformed("not gzip")),
        };
    };
    if fixed[..2] != MAGIC || fixed[2] != 8 || fixed[3] & 0xe0 != 0 {
        return Err(Error::malformed("not gzip"));
    }
    let (mut len, mut member) = (10, None);
    if fixed[3] & 4 != 0 {
        let Some(size) = bytes[len..].first_chunk() else { return Ok(None) };
        let size = usize::from(u16::from_le_bytes(*size));
        let Some(extra) = bytes.get(len + 2..len + 2 + size) else { return Ok(None) };
        len += 2 + size;
        member = Some(extra);
    }
    // A name, then a comment, each ended by a zero.
    for flag in [8, 16] {
        if fixed[3] & flag != 0 {
            // Names are short; what goes on for long is no header.
            let text = &bytes[len..bytes.len().min(len + (1 << 16))];
            match memchr::memchr(0, text) {
                Some(end) => len += end + 1,
                None if text.len() == 1 << 16 => {
                    return Err(Error::malformed("a gzip header that does not end"));
                }
                None => return Ok(None),
            }
        }
    }
    if fixed[3] & 2 != 0 {
        len += 2;
    }
    if bytes.len() < len {
        return Ok(None);
    }
    Ok(Some(Header { len, member: member.and_then(|extra| said_length(extra, len)) }))
}

/// The member's length, from the subfields of its header.
fn said_length(mut extra: &[u8], header: usize) -> Option<usize> {
    while let Some((&[a, b, low, high], rest)) = extra.split_first_chunk() {
        let (value, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes([low, high])))?;
        let member = match (&[a, b], value) {
            (b"BC", &[low, high]) => Some(usize::from(u16::from_le_bytes([low, high])) + 1),
            (b"MZ", &[a, b, c, d]) => {
                Some(header + u32::from_le_bytes([a, b, c, d]) as usize + TRAILER)
            }
            _ => None,
        };
        if member.is_some() {
            return member.filter(|&member| member >= header + TRAILER);
        }
        extra = rest;
    }
    None
}

/// Appends a member that holds `bytes`. With `findable`, its header says its length (MiGz).
pub fn compress(
    deflate: &mut Compress,
    findable: bool,
    bytes: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    deflate.reset();
    let (start, extra) = (out.len(), if findable { 4 } else { 0 });
    // No time, no system: the same bytes from the same record, whenever and wherever.
    out.extend_from_slice(&[MAGIC[0], MAGIC[1], 8, extra, 0, 0, 0, 0, 0, 255]);
    if findable {
        out.extend_from_slice(&[8, 0, b'M', b'Z', 4, 0, 0, 0, 0, 0]);
    }
    let body = out.len();
    // Deflate adds five bytes to 16 KiB at worst; one round then, as a rule.
    out.reserve(bytes.len() + bytes.len() / 1024 + 64 + TRAILER);
    loop {
        let rest = &bytes[deflate.total_in() as usize..];
        let status = deflate
            .compress_vec(rest, out, FlushCompress::Finish)
            .map_err(|e| Error::unsupported("cannot be deflated").with_source(e))?;
        match status {
            Status::StreamEnd => break,
            _ => out.reserve(bytes.len() / 8 + 1024),
        }
    }
    if findable {
        let length = u32::try_from(out.len() - body)
            .map_err(|_| Error::new(ErrorKind::TooLarge, "a gzip member over 4 GiB"))?;
        out[start + 16..start + 20].copy_from_slice(&length.to_le_bytes());
    }
    let mut crc = Crc::new();
    crc.update(bytes);
    out.extend_from_slice(&crc.sum().to_le_bytes());
    out.extend_from_slice(&crc.amount().to_le_bytes());
    Ok(())
}

/// Appends what the one member in `bytes` holds, if it is no more than `limit` bytes.
pub fn decompress(
    inflate: &mut Decompress,
    bytes: &[u8],
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<()> {
    let header = header(bytes)?.ok_or_else(|| Error::malformed("truncated gzip header"))?;
    let body = bytes.len().checked_sub(TRAILER).and_then(|end| bytes.get(header.len..end));
    let body = body.ok_or_else(|| Error::malformed("truncated gzip"))?;
    let (sum, length) = bytes[bytes.len() - TRAILER..].split_at(4);
    let length = u32::from_le_bytes(length.try_into().unwrap_or_default());

    inflate.reset(false);
    let start = out.len();
    // The length is what the writer says; believe it no further than it can be true.
    let likely = (length as usize).min(limit).min(body.len().saturating_mul(BEST_RATIO));
    out.reserve(likely + 1);
    loop {
        let rest = &body[inflate.total_in() as usize..];
        let status = inflate
            .decompress_vec(rest, out, FlushDecompress::None)
            .map_err(|e| Error::malformed("damaged gzip").with_source(e))?;
        if out.len() - start > limit {
            return Err(too_large(limit));
        }
        match status {
            Status::StreamEnd => break,
            _ if out.len() < out.capacity() => return Err(Error::malformed("truncated gzip")),
            _ => out.reserve((out.len() - start).clamp(64, limit + 1)),
        }
    }
    if inflate.total_in() as usize != body.len() {
        return Err(Error::malformed("more bytes after the gzip member"));
    }
    let mut crc = Crc::new();
    crc.update(&out[start..]);
    match crc.sum().to_le_bytes() == sum && crc.amount() == length {
        true => Ok(()),
        false => Err(Error::malformed("damaged gzip: its check sum differs")),
    }
}

pub fn too_large(limit: usize) -> Error {
    Error::new(ErrorKind::TooLarge, format!("unpacks to more than {limit} bytes"))
}

/// A compressor of this level (0 to 9) for [`compress`].
pub fn compressor(level: u32) -> Compress {
    Compress::new(Compression::new(level), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_all_sorts() {
        let plain = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
        assert_eq!(header(&plain).unwrap(), Some(Header { len: 10, member: None }));
        let mut named = plain.to_vec();
        named[3] = 8 | 16 | 2;
        named.extend_from_slice(b"name\0comment\0cc");
        assert_eq!(header(&named).unwrap(), Some(Header { len: 25, member: None }));
        let mut bgzf = plain.to_vec();
        bgzf[3] = 4;
        bgzf.extend_from_slice(b"\x0b\0XY\x01\0zBC\x02\0\x1b\0");
        assert_eq!(header(&bgzf).unwrap().unwrap().len, 23);
        assert_eq!(
            header(&bgzf).unwrap().unwrap().member,
            None,
            "28 bytes cannot hold this header"
        );
        let at = bgzf.len() - 2;
        bgzf[at] = 0x2b;
        assert_eq!(header(&bgzf).unwrap().unwrap().member, Some(44));
        for whole in [&plain[..], &named, &bgzf] {
            for end in 0..whole.len() {
                assert_eq!(header(&whole[..end]).unwrap(), None);
            }
        }
        assert!(header(b"{").is_err());
        assert!(header(b"\x1f\x8b\x07\0\0\0\0\0\0\0").is_err());
    }

    #[test]
    fn members_say_their_length_when_asked() {
        let (mut deflate, mut inflate) = (compressor(6), Decompress::new(false));
        for size in [0, 1, 1000, 100_000] {
            let bytes: Vec<u8> = (0..size).map(|i| ((i * i) >> 7) as u8).collect();
            for findable in [false, true] {
                let mut packed = b"before".to_vec();
                compress(&mut deflate, findable, &bytes, &mut packed).unwrap();
                let packed = &packed[6..];
                let said = header(packed).unwrap().unwrap().member;
                assert_eq!(said, findable.then_some(packed.len()));
                let mut back = b"there".to_vec();
                decompress(&mut inflate, packed, size, &mut back).unwrap();
                assert_eq!(&back[5..], bytes);
                let mut theirs = Vec::new();
                let mut decoder = flate2::bufread::GzDecoder::new(packed);
                std::io::Read::read_to_end(&mut decoder, &mut theirs).unwrap();
                assert_eq!(theirs, bytes);
            }
        }
    }
}
