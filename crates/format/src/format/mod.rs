//! Records to bytes and back. Pure: no I/O, no clock, nothing kept between calls.
//!
//! A [`Format`] is one file here with an `INFO` and two generic functions, `encode` and `decode`,
//! and one row in the table below. Nothing is boxed, so that a measured loop measures the format.
//! MARC records have a way of their own through each format ([`Format::encode_marc`],
//! [`Format::decode_marc`]), which the formats made for them answer fast and every other one
//! answers through serde, in the MARC-in-JSON shape.
//!
//! To add a format: one file with `INFO`, `encode`, `decode`, its `mod` line (outside the macro, where
//! rustfmt finds it), and a row in `formats!`.

mod bson;
mod cbor;
mod csv;
pub mod framing;
mod heads;
mod json;
mod line;
mod marc21;
mod marcxml;
mod marshal;
mod msgpack;
mod objects;
mod pickle;
mod reader;
mod sonic;
mod wrap;

use std::{fmt::Display, marker::PhantomData};

use serde::{
    Deserialize, Serialize,
    de::{DeserializeOwned, DeserializeSeed},
};

use crate::{
    Error, ErrorKind, Result,
    marc::{self, Record, RecordRef, Severity, Trouble, json::RecordSeed},
    record::{self, Document, Kind},
};

// Not used by every choice of features.
#[allow(unused_imports)]
#[doc(hidden)]
pub use json::quote;
pub use reader::{As, Content, Found, Framed, MarcContent, Reader, has_marc_shape, noted};
pub use wrap::{Coder, Wrap, Wrapped};
#[doc(hidden)]
pub use wrap::{gzip, zstd};

/// What there is to know about a format without running it.
#[derive(Debug)]
pub struct Info {
    /// The one word it goes by: on the command line, in URLs, in reports.
    pub name: &'static str,
    /// File extensions, the usual one first.
    pub extensions: &'static [&'static str],
    /// How records follow one another in a file.
    pub framing: Framing,
    /// Which records it takes.
    pub takes: Takes,
    /// The kinds of value that come back equal. What is missing here changes or is refused;
    /// `loses` says how. The contract test holds every format to this.
    pub keeps: &'static [Kind],
    /// What is lost, in a phrase a report can print; empty where nothing is.
    pub loses: &'static str,
    /// Whose code reads and writes MARC records.
    pub marc: Code,
    /// Whose code reads and writes everything else.
    pub values: Code,
}

/// Whose code reads and writes a format: what a figure about it is a figure of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// The reader.
    pub reads: By,
    /// The writer.
    pub writes: By,
}

impl Code {
    /// Reader and writer by the same.
    pub const fn of(by: By) -> Code {
        Code { reads: by, writes: by }
    }
}

/// Who wrote a reader or writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// This crate, for this kind of record, with nothing between bytes and record.
    Own,
    /// This crate, for any type; records go through serde.
    OwnSerde,
    /// A crate of this name; records go through serde.
    Crate(&'static str),
}

/// Which records a format takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Anything serde can describe.
    Anything,
    /// Records with the shape of MARC-in-JSON.
    Marc,
    /// Maps of any values.
    Maps,
    /// Maps of single values, one row each.
    Rows,
}

/// How records follow one another in a file of a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Framing {
    /// One record a line.
    Lines,
    /// Each record says where it ends.
    Delimited,
    /// ISO 2709: a length before, a terminator behind.
    Marc,
    /// Elements inside an enclosing one.
    Elements,
    /// A header line, then rows.
    Header,
    /// One record on some lines, then an empty one.
    Paragraphs,
    /// The length of each record in four bytes, big end first, before it.
    Prefixed,
}

macro_rules! formats {
    ($($variant:ident $module:ident;)*) => {
        /// A format: how one record becomes bytes, and comes back.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs)]
        pub enum Format { $($variant,)* }

        impl Format {
            /// Every format.
            pub const ALL: &[Format] = &[$(Format::$variant),*];

            /// What there is to know about it.
            pub fn info(self) -> &'static Info {
                match self { $(Format::$variant => &$module::INFO,)* }
            }

            /// Appends the record's bytes to `out`.
            ///
            /// # Errors
            /// [`Unsupported`](crate::ErrorKind::Unsupported) where the format has no way to say
            /// what is in the record; `out` is then as long as it was.
            pub fn encode<T: Serialize>(self, record: &T, out: &mut Vec<u8>) -> Result<()> {
                let before = out.len();
                let done = match self { $(Format::$variant => $module::encode(record, out),)* };
                if done.is_err() { out.truncate(before) }
                done
            }

            /// Reads one record; `bytes` must hold it and nothing else.
            ///
            /// # Errors
            /// [`Malformed`](crate::ErrorKind::Malformed), with the byte offset where it is known.
            pub fn decode<T: DeserializeOwned>(self, bytes: &[u8]) -> Result<T> {
                self.decode_seed(bytes, PhantomData)
            }

            fn decode_seed<'de, S: Again<'de>>(
                self,
                bytes: &'de [u8],
                seed: S,
            ) -> Result<S::Value> {
                match self { $(Format::$variant => $module::decode(bytes, seed),)* }
            }
        }
    };
}

formats! {
    Json json;
    Sonic sonic;
    Msgpack msgpack;
    Cbor cbor;
    Bson bson;
    Marshal marshal;
    Pickle pickle;
    Marc21 marc21;
    Marcxml marcxml;
    Line line;
    Csv csv;
}

/// How deep records may nest, whatever their format: bytes that claim more are refused, so that
/// no input can exhaust the stack.
#[doc(hidden)]
pub const DEPTH: usize = 128;

impl Format {
    /// The one word it goes by.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// The format of this name.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid), naming those there are.
    pub fn named(name: &str) -> Result<Format> {
        Self::ALL.iter().copied().find(|f| f.name() == name).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|f| f.name()).collect();
            Error::invalid(format!("unknown format {name:?}; known: {}", known.join(", ")))
        })
    }

    /// [`encode`](Format::encode) of a document, compiled once, with this crate.
    ///
    /// # Errors
    /// As [`encode`](Format::encode).
    pub fn encode_document(self, record: &Document, out: &mut Vec<u8>) -> Result<()> {
        self.encode(record, out)
    }

    /// [`decode`](Format::decode) of a document, compiled once.
    ///
    /// # Errors
    /// As [`decode`](Format::decode).
    pub fn decode_document(self, bytes: &[u8]) -> Result<Document> {
        self.decode(bytes)
    }

    /// Appends a MARC record's bytes to `out`, by the shortest way the format has.
    ///
    /// # Errors
    /// As [`encode`](Format::encode).
    pub fn encode_marc(self, record: RecordRef<'_>, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Format::Marc21 => {
                marc::iso2709::write(record, out);
                Ok(())
            }
            Format::Marcxml => marc::xml::write(record, out),
            Format::Line => {
                marc::line::write(record, out);
                Ok(())
            }
            Format::Json => marc::json::write(record, out),
            Format::Msgpack => msgpack::encode_marc(record, out),
            Format::Cbor => cbor::encode_marc(record, out),
            _ => self.encode(&record, out),
        }
    }

    /// Reads one MARC record into `record`, whose memory is used again.
    ///
    /// # Errors
    /// As [`decode`](Format::decode); a record that contradicts itself is an error too, see
    /// [`read_marc`](Format::read_marc).
    pub fn decode_marc(self, bytes: &[u8], record: &mut Record) -> Result<()> {
        without_trouble(|troubles| self.read_marc(bytes, record, troubles))
    }

    /// Reads one MARC record as well as can be; what was wrong with it is added to `troubles`,
    /// with offsets from its first byte.
    ///
    /// # Errors
    /// [`Malformed`](crate::ErrorKind::Malformed) where it cannot be read at all.
    pub fn read_marc(
        self,
        bytes: &[u8],
        record: &mut Record,
        troubles: &mut Vec<Trouble>,
    ) -> Result<()> {
        match self {
            Format::Marc21 => marc::iso2709::read(bytes, record, troubles),
            Format::Marcxml => marc::xml::read(bytes, record, troubles),
            Format::Line => marc::line::read(bytes, record, troubles),
            Format::Json => marc::json::read(bytes, record, troubles),
            Format::Msgpack => msgpack::read_marc(bytes, record, troubles),
            Format::Cbor => cbor::read_marc(bytes, record, troubles),
            Format::Marshal => marshal::decode_marc(bytes, record),
            Format::Pickle => pickle::decode_marc(bytes, record),
            _ => self.decode_seed(bytes, RecordSeed(record)),
        }
    }
}

/// A seed that can be used again, for a format with a fast way of reading and a sure one.
trait Again<'de>: DeserializeSeed<'de> {
    /// The same seed once more.
    fn again(&mut self) -> impl DeserializeSeed<'de, Value = Self::Value>;
}

impl<'de, T: Deserialize<'de>> Again<'de> for PhantomData<T> {
    fn again(&mut self) -> impl DeserializeSeed<'de, Value = T> {
        *self
    }
}

impl<'de> Again<'de> for RecordSeed<'_> {
    fn again(&mut self) -> impl DeserializeSeed<'de, Value = ()> {
        RecordSeed(&mut *self.0)
    }
}

/// The error of a library, with what it says of the reason: it is often told without its source.
fn caused<E>(kind: ErrorKind, what: &str, error: E) -> Error
where
    E: Display + Into<Box<dyn std::error::Error + Send + Sync>>,
{
    Error::new(kind, format!("{what}: {error}")).with_source(error)
}

/// The MARC record that `record` describes.
fn marc_of<T: Serialize>(record: &T) -> Result<Record> {
    let value = record::to_value(record)?;
    record::from_value(value).map_err(|e| Error::unsupported(e.context()))
}

/// Reads a MARC record strictly, and hands it to whoever wants it in the MARC-in-JSON shape.
fn decode_through_marc<'de, S: DeserializeSeed<'de>>(
    seed: S,
    read: impl FnOnce(&mut Record, &mut Vec<Trouble>) -> Result<()>,
) -> Result<S::Value> {
    let mut record = Record::new();
    without_trouble(|troubles| read(&mut record, troubles))?;
    seed.deserialize(record::to_value(&record)?)
}

/// Runs a tolerant reading strictly: the first trouble that had to be repaired is the error.
fn without_trouble(read: impl FnOnce(&mut Vec<Trouble>) -> Result<()>) -> Result<()> {
    let mut troubles = Vec::new();
    read(&mut troubles)?;
    match troubles.iter().find(|t| t.kind.severity() > Severity::Note) {
        None => Ok(()),
        Some(t) => {
            let context = format!("{}: {}", t.kind.name(), t.detail);
            Err(Error::malformed(context).at(t.offset))
        }
    }
}
