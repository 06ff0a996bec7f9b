//! MARC-8, the character set of MARC records before Unicode: to UTF-8 and back.
//!
//! One byte is one character of the set designated last, and an escape sequence designates another:
//! Latin, Greek, Cyrillic, Hebrew, Arabic, sub- and superscripts, and EACC, whose characters are three
//! bytes each. Marks (accents) stand *before* their letter; in Unicode they stand after it.
//!
//! [`Decoder`] reads it and [`Encoder`] writes it. Neither ever refuses: what has no counterpart is
//! kept in a visible form and reported with its position. Both take a subfield, a field or a whole
//! record: at a delimiter (0x1D to 0x1F) the sets are the default ones again, which is how yaz and
//! pymarc read as well, since they convert each subfield by itself.
//!
//! ```
//! use steelyard_marc::marc8::{Decoder, Encoder};
//!
//! let mut text = Vec::new();
//! Decoder::default().decode(b"Dvo\xe9r\xe2ak", &mut text, &mut |_, _| {});
//! assert_eq!(text, "Dvor\u{30c}a\u{301}k".as_bytes());
//! let mut bytes = Vec::new();
//! Encoder::default().encode("Dvořák", &mut bytes, &mut |_, _| {});
//! assert_eq!(bytes, b"Dvo\xe9r\xe2ak");
//! ```
//!
//! This folder must not know what a record is. To add a set: a row in `scripts/marc8_table.py`,
//! which writes `sets.rs` and `eacc.bin`, and one in [`Set`].
//!
//! Sources: MARC 21 Specifications for Record Structure, Character Sets, and Exchange Media
//! (Library of Congress, December 2007): Part 2, MARC-8 Encoding Environment; Part 4, Conversion
//! Between Environments; Part 5, Code Tables
//! (<https://www.loc.gov/marc/specifications/specchartables.html>).

mod ascii;
mod decode;
mod eacc;
mod encode;
mod fault;
mod reverse;
mod set;
mod sets;

pub use decode::{Decoder, Unmapped};
pub use encode::{Encoder, Unmappable};
pub use fault::Fault;
pub use set::{Set, Sets};
