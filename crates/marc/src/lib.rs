//! MARC records: what library catalogues are made of.
//!
//! A record is a leader of 24 bytes and fields in order; a field has a tag of three characters and
//! either plain text (tags `00X`) or two indicators and subfields. One buffer and spans into it
//! hold all of that: [`RecordRef`] borrows it (from a block of a file, reused), [`Record`] owns it.
//!
//! The ways in and out, one file or folder each: [`iso2709`] (MARC 21 and UNIMARC exchange files),
//! [`xml`] (MARCXML), [`json`] (MARC-in-JSON, which is also the shape in which records travel
//! through serde), [`line`](mod@line) (for people); [`marc8`] is the character set that
//! came before Unicode, [`encoding`] turns whole records. What is wrong with a record is a [`Trouble`]; it never ends a file.
//!
//! This crate knows only the error type of [`steelyard_base`]. It opens no files. To add a way in or out: one
//! file here that reads into a [`Record`] or writes a [`RecordRef`], and its row in the crate `steelyard-format`.
//!
//! Sources: ISO 2709:2008; MARC 21 Specifications for Record Structure (Library of Congress).

mod builder;
pub mod encoding;
mod field;
mod frame;
pub mod iso2709;
pub mod json;
mod leader;
pub mod line;
pub mod marc8;
mod path;
mod record;
mod tally;
mod trouble;
pub mod xml;

#[doc(hidden)]
pub use builder::FieldBuilder;
pub use field::{Content, FieldRef, Subfield, Subfields};
pub use frame::Frame;
pub use leader::Leader;
pub use path::Path;
pub(crate) use record::Span;
pub use record::{Record, RecordRef};
pub use steelyard_base::{Error, ErrorKind, Result, error};
pub use trouble::{Severity, Trouble, TroubleKind, worst};

/// Ends a record (ASCII group separator).
pub const RECORD_END: u8 = 0x1d;
/// Ends a field and the directory (ASCII record separator).
pub const FIELD_END: u8 = 0x1e;
/// Begins a subfield (ASCII unit separator).
pub const SUBFIELD: u8 = 0x1f;

// The example of the README is compiled and run.
#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;
