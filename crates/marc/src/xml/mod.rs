//! MARCXML: records as XML elements.
//!
//! `<record><leader>…</leader><controlfield tag="001">…</controlfield><datafield tag="245"
//! ind1="1" ind2="0"><subfield code="a">…</subfield></datafield></record>`, one after another in
//! a `<collection>`, alone, or inside the elements of another protocol (OAI-PMH, SRU). Elements are
//! told by their local names: any prefix, any namespace and none at all are taken, so MarcXchange
//! (ISO 25577) is read too.
//!
//! - [`Framer`] finds the record elements in a stream of bytes.
//! - [`read()`] reads one of them, [`write()`] writes one; [`PROLOGUE`] and [`EPILOGUE`] go around.
//! - [`encoding()`] says what to do with files that are not in UTF-8.
//!
//! Reading runs on two paths. `fast` takes whole fields in the spelling that nearly all tools write
//! and stops before the first byte that is not so; `general` knows the rest of XML and hands back.
//! Nothing is ever expanded but the five named entities and character references, so a document
//! cannot grow in memory.
//!
//! What XML says and how it is bent: line ends and blanks in attributes are normalised. Characters
//! that XML 1.0 forbids, references to nothing, a bare `&` or `<` are kept as written and reported;
//! tags that do not match make the record unreadable, and the file goes on at the next one.
//!
//! Fields that are not as their tag says keep every byte, if not by the schema: without delimiters
//! they are written as `<controlfield>`, with delimiters as `<datafield>`, with whatever stands
//! before the first one as indicators.
//!
//! Sources: XML 1.0 (Fifth Edition), W3C; MARCXML schema 1.2, Library of Congress.

mod encoding;
mod fast;
mod frame;
mod general;
mod read;
mod scan;
#[cfg(test)]
mod tests;
mod token;
mod write;

pub use encoding::{Encoding, encoding, latin1_to_utf8};
pub use frame::{Framer, MAX_RECORD};
pub use read::read;
pub use write::{write, write_tolerant};

/// The namespace of MARCXML.
pub const NAMESPACE: &str = "http://www.loc.gov/MARC21/slim";

/// What a file of records begins with.
pub const PROLOGUE: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
     <collection xmlns=\"http://www.loc.gov/MARC21/slim\">\n";

/// What a file of records ends with.
pub const EPILOGUE: &str = "</collection>\n";

/// The longest tag, indicator or subfield code that is kept, in bytes. They should be three and one.
const MAX_ATTRIBUTE: usize = 16;

/// A name without its prefix.
fn local(name: &[u8]) -> &[u8] {
    match memchr::memchr(b':', name) {
        Some(colon) => &name[colon + 1..],
        None => name,
    }
}

/// Bytes as text for a message, cut short.
fn show(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]).into_owned();
    if bytes.len() > 40 { text + "…" } else { text }
}
