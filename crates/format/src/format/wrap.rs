//! Bytes to bytes, around a format: `marshal+base64`, `json+zstd:19`.
//!
//! A [`Wrap`] is what is put around a record's bytes, a [`Wrapped`] a format with its wraps, the
//! innermost first. A [`Coder`] is a `Wrapped` with the memory it works in: nothing is allocated
//! for a record once the first ones have been through.
//!
//! To add a wrap: a variant of [`Wrap`], its name in `NAMES`, and its arms in [`Tool`].

mod base64;
#[doc(hidden)]
pub mod gzip;
#[doc(hidden)]
pub mod zstd;

use std::{fmt, str::FromStr};

use serde::{Serialize, de::DeserializeOwned};

use super::{Format, Framing, framing::MAX_RECORD};
use crate::{
    Error, Result,
    marc::{Record, RecordRef},
    record::Document,
};

/// What is put around a record's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Wrap {
    /// Base64 on one line, strict.
    Base64,
    /// Base64 in lines of 60 characters, as Ruby's `pack("m")` writes it.
    Base64Lines,
    /// One gzip member of this level, 0 to 9.
    Gzip(u32),
    /// One zstd frame of this level, 1 to 22.
    Zstd(i32),
}

const NAMES: &str =
    "base64, base64lines, gzip (or gzip:LEVEL, 0 to 9), zstd (or zstd:LEVEL, 1 to 22)";
impl Wrap {
    /// Appends `bytes`, wrapped. In a loop a [`Coder`] is faster: it keeps its working memory.
    ///
    /// # Errors
    /// [`TooLarge`](crate::ErrorKind::TooLarge) where there are gigabytes of them.
    pub fn wrap(&self, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        Tool::new(*self)?.wrap(bytes, out)
    }

    /// Appends what was wrapped, if that is no more than `limit` bytes.
    ///
    /// # Errors
    /// [`Malformed`](crate::ErrorKind::Malformed) where `bytes` were not wrapped so,
    /// [`TooLarge`](crate::ErrorKind::TooLarge) beyond the limit.
    pub fn unwrap(&self, bytes: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()> {
        Tool::new(*self)?.unwrap(bytes, limit, out)
    }
}

impl fmt::Display for Wrap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrap::Base64 => f.write_str("base64"),
            Wrap::Base64Lines => f.write_str("base64lines"),
            Wrap::Gzip(gzip::LEVEL) => f.write_str("gzip"),
            Wrap::Gzip(level) => write!(f, "gzip:{level}"),
            Wrap::Zstd(zstd::LEVEL) => f.write_str("zstd"),
            Wrap::Zstd(level) => write!(f, "zstd:{level}"),
        }
    }
}

impl FromStr for Wrap {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self> {
        let (name, level) = match s.split_once(':') {
            Some((name, level)) => (name, Some(level)),
            None => (s, None),
        };
        let level = |low: i32, usual: i32, high: i32| match level.map(str::parse) {
            None => Ok(usual),
            Some(Ok(level)) if (low..=high).contains(&level) => Ok(level),
            Some(_) => {
                Err(Error::invalid(format!("{s:?}: the level of {name} is {low} to {high}")))
            }
        };
        match name {
            "base64" if name == s => Ok(Wrap::Base64),
            "base64lines" if name == s => Ok(Wrap::Base64Lines),
            "gzip" => Ok(Wrap::Gzip(level(0, gzip::LEVEL as i32, 9)? as u32)),
            "zstd" => Ok(Wrap::Zstd(level(1, zstd::LEVEL, 22)?)),
            _ => Err(Error::invalid(format!("unknown wrap {s:?}; known: {NAMES}"))),
        }
    }
}

/// A format with what is put around it, the innermost first.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Wrapped {
    /// The format of the records.
    pub format: Format,
    /// What is put around their bytes, in this order.
    pub wraps: Vec<Wrap>,
}

impl Wrapped {
    /// How records follow one another in a file: the outermost wrap decides.
    pub fn framing(&self) -> Framing {
        match self.wraps.last() {
            None => self.format.info().framing,
            Some(Wrap::Base64) => Framing::Lines,
            Some(Wrap::Base64Lines) => Framing::Paragraphs,
            Some(Wrap::Gzip(_) | Wrap::Zstd(_)) => Framing::Prefixed,
        }
    }
}

impl From<Format> for Wrapped {
    fn from(format: Format) -> Self {
        Wrapped { format, wraps: Vec::new() }
    }
}

impl fmt::Display for Wrapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.format.name())?;
        self.wraps.iter().try_for_each(|wrap| write!(f, "+{wrap}"))
    }
}

impl FromStr for Wrapped {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self> {
        let mut parts = s.split('+');
        let format = Format::named(parts.next().unwrap_or_default())?;
        Ok(Wrapped { format, wraps: parts.map(str::parse).collect::<Result<_>>()? })
    }
}

/// A wrap with the memory it works in.
enum Tool {
    Base64,
    Base64Lines,
    Gzip(Box<(flate2::Compress, flate2::Decompress)>),
    Zstd(Box<(::zstd::bulk::Compressor<'static>, ::zstd::bulk::Decompressor<'static>)>),
}

impl Tool {
    fn new(wrap: Wrap) -> Result<Self> {
        Ok(match wrap {
            Wrap::Base64 => Tool::Base64,
            Wrap::Base64Lines => Tool::Base64Lines,
            Wrap::Gzip(level) => {
                Tool::Gzip(Box::new((gzip::compressor(level), flate2::Decompress::new(false))))
            }
            Wrap::Zstd(level) => {
                Tool::Zstd(Box::new((zstd::compressor(level)?, ::zstd::bulk::Decompressor::new()?)))
            }
        })
    }

    fn wrap(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        match self {
            Tool::Base64 => base64::encode(bytes, out),
            Tool::Base64Lines => base64::encode_lines(bytes, out),
            Tool::Gzip(tools) => gzip::compress(&mut tools.0, false, bytes, out),
            Tool::Zstd(tools) => zstd::compress(&mut tools.0, bytes, out),
        }
    }

    fn unwrap(&mut self, bytes: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Tool::Base64 => base64::decode(bytes, out),
            Tool::Base64Lines => base64::decode_lines(bytes, out),
            Tool::Gzip(tools) => gzip::decompress(&mut tools.1, bytes, limit, out),
            Tool::Zstd(tools) => zstd::decompress(&mut tools.1, bytes, limit, out),
        }
    }
}

/// Encodes and decodes in a [`Wrapped`] format, one record after another, in memory it keeps.
pub struct Coder {
    wrapped: Wrapped,
    tools: Vec<Tool>,
    /// What is on its way between two tools.
    here: Vec<u8>,
    there: Vec<u8>,
    limit: usize,
}

impl Coder {
    /// A coder that refuses records which unwrap to more than [`MAX_RECORD`] bytes.
    ///
    /// # Errors
    /// Where there is no memory for the compressors.
    pub fn new(wrapped: impl Into<Wrapped>) -> Result<Self> {
        let wrapped = wrapped.into();
        let tools = wrapped.wraps.iter().map(|&wrap| Tool::new(wrap)).collect::<Result<_>>()?;
        Ok(Coder { wrapped, tools, here: vec![], there: vec![], limit: MAX_RECORD })
    }

    /// The same coder with another limit, in bytes.
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// The format and its wraps.
    pub fn wrapped(&self) -> &Wrapped {
        &self.wrapped
    }

    /// Appends the record's bytes, wrapped.
    ///
    /// # Errors
    /// As [`Format::encode`]; `out` is then as long as it was.
    pub fn encode<T: Serialize>(&mut self, record: &T, out: &mut Vec<u8>) -> Result<()> {
        self.wrap(out, |format, out| format.encode(record, out))
    }

    /// Reads one record; `bytes` must hold it and nothing else.
    ///
    /// # Errors
    /// As [`Format::decode`] and [`Wrap::unwrap`].
    pub fn decode<T: DeserializeOwned>(&mut self, bytes: &[u8]) -> Result<T> {
        let format = self.wrapped.format;
        format.decode(self.unwrap(bytes)?)
    }

    /// [`encode`](Coder::encode) of a document. It is compiled once, with this crate: callers that need no other type are
    /// smaller and build sooner.
    ///
    /// # Errors
    /// As [`Format::encode`].
    pub fn encode_document(&mut self, record: &Document, out: &mut Vec<u8>) -> Result<()> {
        self.encode(record, out)
    }

    /// [`decode`](Coder::decode) of a document, compiled once.
    ///
    /// # Errors
    /// As [`Format::decode`] and [`Wrap::unwrap`].
    pub fn decode_document(&mut self, bytes: &[u8]) -> Result<Document> {
        self.decode(bytes)
    }

    /// Appends a MARC record's bytes, wrapped.
    ///
    /// # Errors
    /// As [`Format::encode_marc`]; `out` is then as long as it was.
    pub fn encode_marc(&mut self, record: RecordRef<'_>, out: &mut Vec<u8>) -> Result<()> {
        self.wrap(out, |format, out| format.encode_marc(record, out))
    }

    /// Reads one MARC record into `record`, whose memory is used again.
    ///
    /// # Errors
    /// As [`Format::decode_marc`] and [`Wrap::unwrap`].
    pub fn decode_marc(&mut self, bytes: &[u8], record: &mut Record) -> Result<()> {
        let format = self.wrapped.format;
        format.decode_marc(self.unwrap(bytes)?, record)
    }

    fn wrap(
        &mut self,
        out: &mut Vec<u8>,
        encode: impl FnOnce(Format, &mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let Some((last, inner)) = self.tools.split_last_mut() else {
            return encode(self.wrapped.format, out);
        };
        self.here.clear();
        encode(self.wrapped.format, &mut self.here)?;
        for tool in inner {
            self.there.clear();
            tool.wrap(&self.here, &mut self.there)?;
            std::mem::swap(&mut self.here, &mut self.there);
        }
        let before = out.len();
        let done = last.wrap(&self.here, out);
        if done.is_err() {
            out.truncate(before);
        }
        done
    }

    /// The bytes of the format, whatever was around them.
    ///
    /// # Errors
    /// As [`Wrap::unwrap`].
    pub fn unwrap<'a>(&'a mut self, bytes: &'a [u8]) -> Result<&'a [u8]> {
        let Some((last, inner)) = self.tools.split_last_mut() else { return Ok(bytes) };
        self.here.clear();
        last.unwrap(bytes, self.limit, &mut self.here)?;
        for tool in inner.iter_mut().rev() {
            self.there.clear();
            tool.unwrap(&self.here, self.limit, &mut self.there)?;
            std::mem::swap(&mut self.here, &mut self.there);
        }
        Ok(&self.here)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ErrorKind, record::Document};

    #[test]
    fn names_come_back_and_wrong_ones_are_answered() {
        for name in
            ["json", "json+zstd:19", "cbor+gzip+base64", "msgpack+base64lines", "bson+gzip:0"]
        {
            assert_eq!(name.parse::<Wrapped>().unwrap().to_string(), name);
        }
        assert_eq!("json+gzip:6".parse::<Wrapped>().unwrap().to_string(), "json+gzip");
        for (name, want) in [
            ("", "unknown format \"\""),
            ("json+", "unknown wrap \"\""),
            ("json+lzma", "known: base64"),
            ("json+gzip:10", "0 to 9"),
            ("json+zstd:x", "1 to 22"),
            ("json+base64:1", "unknown wrap"),
        ] {
            let error = name.parse::<Wrapped>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.to_string().contains(want), "{error}");
        }
    }

    #[test]
    fn records_come_back_from_inside_every_wrap() {
        let wraps = [Wrap::Base64, Wrap::Base64Lines, Wrap::Gzip(9), Wrap::Zstd(19)];
        let records: Vec<_> = (0..40usize)
            .map(|n| Document::from_iter([("text", "schön ".repeat(n * n)), ("b", n.to_string())]))
            .collect();
        for outer in wraps {
            for inner in wraps {
                let wrapped = Wrapped { format: Format::Msgpack, wraps: vec![inner, outer] };
                let mut coder = Coder::new(wrapped).unwrap();
                for record in &records {
                    let mut bytes = b"x".to_vec();
                    coder.encode(record, &mut bytes).unwrap();
                    assert_eq!(coder.decode::<Document>(&bytes[1..]).unwrap(), *record);
                }
            }
        }
    }

    #[test]
    fn bombs_damage_and_rests_are_errors() {
        let bytes = vec![0; 1 << 20];
        for wrap in [Wrap::Gzip(9), Wrap::Zstd(3)] {
            let mut packed = Vec::new();
            wrap.wrap(&bytes, &mut packed).unwrap();
            assert!(packed.len() < 5000);
            wrap.unwrap(&packed, bytes.len(), &mut Vec::new()).unwrap();
            let error = wrap.unwrap(&packed, bytes.len() - 1, &mut Vec::new()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TooLarge, "{wrap}: {error:?}");
            for end in 0..packed.len() {
                assert!(wrap.unwrap(&packed[..end], 1 << 21, &mut Vec::new()).is_err());
            }
            packed.push(0);
            assert!(wrap.unwrap(&packed, 1 << 21, &mut Vec::new()).is_err(), "{wrap}: a rest");
            packed.pop();
            let last = packed.len() - 1;
            packed[last] ^= 1;
            assert!(wrap.unwrap(&packed, 1 << 21, &mut Vec::new()).is_err(), "{wrap}: a check sum");
        }
    }

    #[test]
    fn zstd_of_unknown_size_is_read_too() {
        let mut encoder = ::zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
        std::io::Write::write_all(&mut encoder, &[7; 5000]).unwrap();
        let packed = encoder.finish().unwrap();
        let mut out = Vec::new();
        Wrap::Zstd(3).unwrap(&packed, 5000, &mut out).unwrap();
        assert_eq!(out, [7; 5000]);
        assert!(Wrap::Zstd(3).unwrap(&packed, 4999, &mut Vec::new()).is_err());
    }
}
