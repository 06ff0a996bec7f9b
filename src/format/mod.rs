//! Records to bytes and back. Pure: no I/O, no clock, nothing kept between calls.
//!
//! A [`Format`] is one file here with an `INFO` and two generic functions, `encode` and `decode`,
//! and one row in the table below. Nothing is boxed, so that a measured loop measures the format.
//! MARC records have a way of their own through each format ([`Format::encode_marc`],
//! [`Format::decode_marc`]), which the formats made for them answer fast and every other one
//! answers through serde, in the MARC-in-JSON shape.
//!
//! To add a format: one file with `INFO`, `encode`, `decode`, and a row in `formats!`.

mod objects;

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Error, Result,
    marc::{Record, RecordRef},
    record::Kind,
};

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
}

/// Which records a format takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Anything serde can describe.
    Anything,
    /// Records with the shape of MARC-in-JSON.
    Marc,
    /// Maps of single values, one row each.
    Rows,
}

/// How records follow one another in a file of a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// One record a line.
    Lines,
    /// Each record says where it ends.
    Delimited,
    /// Elements inside an enclosing one.
    Elements,
    /// A header line, then rows.
    Header,
}

macro_rules! formats {
    ($($variant:ident $module:ident;)*) => {
        $(mod $module;)*

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
                match self { $(Format::$variant => $module::decode(bytes),)* }
            }
        }
    };
}

formats! {
    Json json;
    Sonic sonic;
    Msgpack msgpack;
    Cbor cbor;
    Marshal marshal;
    Pickle pickle;
}

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
            Error::invalid(format!("no format {name:?}; known: {}", known.join(", ")))
        })
    }

    /// Appends a MARC record's bytes to `out`, by the shortest way the format has.
    ///
    /// # Errors
    /// As [`encode`](Format::encode).
    pub fn encode_marc(self, record: RecordRef<'_>, out: &mut Vec<u8>) -> Result<()> {
        match self {
            _ => self.encode(&record, out),
        }
    }

    /// Reads one MARC record into `record`, whose memory is used again.
    ///
    /// # Errors
    /// As [`decode`](Format::decode).
    pub fn decode_marc(self, bytes: &[u8], record: &mut Record) -> Result<()> {
        match self {
            Format::Marshal => marshal::decode_marc(bytes, record),
            Format::Pickle => pickle::decode_marc(bytes, record),
            _ => self.decode(bytes).map(|r| *record = r),
        }
    }
}
