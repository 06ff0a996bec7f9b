//! MARC-in-JSON: `{"leader": "...", "fields": [{"001": "value"}, {"245": {"ind1": "1", "ind2": "0",
//! "subfields": [{"a": "..."}]}}]}`, one record a line.
//!
//! The order of fields and subfields and their repeats are kept. A field that has not the shape of
//! a data field is its bytes as text, delimiters included, so nothing is lost.
//!
//! - [`shape`](self): the same shape for every serde format;
//! - [`write()`] and [`read()`]: JSON itself, without serde between, several times as fast. Tests
//!   hold them to what serde_json makes of the shape.
//!
//! Source: Ross Singer, "A Proposal to serialize MARC in JSON" (2010), as in use since.

mod parts;
mod read;
mod shape;
mod write;

#[doc(hidden)]
pub use parts::Parts;
pub use read::read;
#[doc(hidden)]
pub use shape::RecordSeed;
pub use write::write;
