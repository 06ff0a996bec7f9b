//! What MessagePack and CBOR share: every value begins with a head, a few bytes that give the kind of the value and its
//! length, or how many values it holds.
//!
//! A format defines how its heads are written and read ([`Heads`]); the rest is written once, for both: `ser` and `de`
//! connect them to serde, `marc` reads and writes MARC records without serde between. A value is skipped by its length,
//! without descending into it.
//!
//! No length in the bytes is trusted: no memory is reserved for bytes that are not there, and values nest at most
//! [`DEPTH`] levels deep.

mod de;
mod marc;
mod ser;
#[cfg(test)]
mod tests;

use std::marker::PhantomData;

use serde::{Serialize, de::DeserializeSeed};

use super::{DEPTH, objects::whole::Whole};
use crate::{Error, Result, record::Time};

pub(super) use marc::{read as read_marc, write as write_marc};

/// How a format writes and reads heads.
pub trait Heads {
    /// The format's name in messages.
    const NAME: &'static str;
    /// The heads of texts, by their bytes.
    const TEXT: Sizes;
    /// The heads of bytes.
    const BYTES: Sizes;
    /// The heads of lists, by their values.
    const LIST: Sizes;
    /// The heads of maps, by their pairs.
    const MAP: Sizes;
    /// No value.
    const NULL: u8;
    /// False; true is one more.
    const FALSE: u8;
    /// A float of four bytes; one of eight is one more.
    const FLOAT32: u8;
    /// What ends a list or map that does not say how many values it holds, where there are such.
    const BREAK: Option<u8>;

    /// Appends a whole number.
    fn put_int(v: i64, out: &mut Vec<u8>);
    /// Appends a whole number that is not negative.
    fn put_uint(v: u64, out: &mut Vec<u8>);
    /// Appends a value that travels under `name` with this text (see `record::native`), if the
    /// format has a kind of its own for it; false, and nothing is appended, where it has not.
    fn put_native(name: &'static str, text: &str, out: &mut Vec<u8>) -> Result<bool>;

    /// Reads a head, and what belongs to it but for the values in a list or map.
    fn head<'de>(reader: &mut Reader<'de, Self>) -> Result<Head<'de>>
    where
        Self: Sized;
    /// How many bytes the value at the start of `bytes` has; none where it goes on beyond them.
    fn length(bytes: &[u8]) -> Result<Option<usize>>;
}

/// The heads of one kind of value, by its length or count: one byte for the few, else a byte and
/// the number in one, two or four more, big end first.
pub struct Sizes {
    /// The head of length 0.
    pub least: u8,
    /// How many lengths have a head of one byte: `least`, `least + 1`, and so on.
    pub below: u8,
    /// Before a length of one byte, where there is such a head.
    pub before8: Option<u8>,
    /// Before a length of two bytes; before one of four it is one more.
    pub before16: u8,
}

impl Sizes {
    /// The shortest head of a length, in the first so many of five bytes.
    #[inline(always)]
    pub fn head(&self, len: u32) -> ([u8; 5], usize) {
        let [a, b, c, d] = len.to_be_bytes();
        match (len, self.before8) {
            _ if len < u32::from(self.below) => ([self.least + d, 0, 0, 0, 0], 1),
            (..=0xff, Some(before)) => ([before, d, 0, 0, 0], 2),
            (..=0xffff, _) => ([self.before16, c, d, 0, 0], 3),
            _ => ([self.before16 + 1, a, b, c, d], 5),
        }
    }

    /// Appends the head of a length.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) beyond four bytes.
    #[inline]
    pub fn put(&self, len: usize, out: &mut Vec<u8>) -> Result<()> {
        let Ok(len) = u32::try_from(len) else {
            return Err(Error::unsupported(format!("{len} bytes or values in one: over 4 GiB")));
        };
        let (bytes, n) = self.head(len);
        out.extend_from_slice(&bytes[..n]);
        Ok(())
    }

    /// The length of a head of one byte, if this is one.
    #[inline(always)]
    pub fn few(&self, head: u8) -> Option<usize> {
        let len = head.wrapping_sub(self.least);
        (len < self.below).then_some(usize::from(len))
    }
}

/// A head that was read. Counts are none where a break ends the list or map.
#[derive(Debug)]
pub enum Head<'de> {
    Null,
    Bool(bool),
    Whole(Whole),
    Float(f64),
    /// Text, not checked to be UTF-8.
    Text(&'de [u8]),
    Bytes(&'de [u8]),
    /// Text or bytes that came in pieces.
    Joined {
        text: bool,
        bytes: Vec<u8>,
    },
    List(Option<u64>),
    Map(Option<u64>),
    /// A time of the format's own kind.
    Time(Time),
    /// Another value that travels under a name, and its text.
    Native(&'static str, String),
    /// A kind that only programs know, which is refused: its number and its bytes.
    Extension(i8, &'de [u8]),
}

impl Head<'_> {
    /// What it is, for messages.
    fn what(&self) -> &'static str {
        match self {
            Head::Null => "no value",
            Head::Bool(_) => "true or false",
            Head::Whole(_) | Head::Float(_) => "a number",
            Head::Text(_) | Head::Joined { text: true, .. } => "text",
            Head::Bytes(_) | Head::Joined { text: false, .. } => "bytes",
            Head::List(_) => "a list",
            Head::Map(_) => "a map",
            Head::Time(_) => "a time",
            Head::Native(..) => "a number",
            Head::Extension(..) => "an extension",
        }
    }
}

/// Stands in the bytes of one record.
pub struct Reader<'de, H> {
    input: &'de [u8],
    pos: usize,
    depth: usize,
    /// Digits spelled out that the bytes do not say one by one, and up to where: a head may be read again.
    spent: (usize, usize),
    heads: PhantomData<H>,
}

impl<'de, H: Heads> Reader<'de, H> {
    fn new(input: &'de [u8]) -> Self {
        Reader { input, pos: 0, depth: 0, spent: (0, 0), heads: PhantomData }
    }

    /// Where the next byte is.
    pub fn pos(&self) -> usize {
        self.pos
    }

    /// How many bytes the record has.
    pub fn size(&self) -> usize {
        self.input.len()
    }

    /// Counts digits of a number at `at` against what all of a record may have; false where they are more.
    pub fn spend(&mut self, at: usize, digits: usize, budget: usize) -> bool {
        let (spent, until) = &mut self.spent;
        if at >= *until {
            *spent = spent.saturating_add(digits);
            *until = at + 1;
        }
        *spent <= budget
    }

    /// Goes back to where it was before.
    pub fn back_to(&mut self, pos: usize) {
        self.pos = pos.min(self.pos);
    }

    /// What has not been read.
    #[inline(always)]
    pub fn rest(&self) -> &'de [u8] {
        // `pos` is never beyond the end.
        self.input.get(self.pos..).unwrap_or_default()
    }

    /// The next byte, which stays.
    #[inline(always)]
    pub fn peek(&self) -> Option<u8> {
        self.input.get(self.pos).copied()
    }

    #[cold]
    fn short(&self) -> Error {
        Error::malformed(format!("the bytes end inside the {} record", H::NAME))
            .at(self.input.len() as u64)
    }

    /// An error here.
    #[cold]
    pub fn wrong(&self, what: impl Into<String>) -> Error {
        Error::malformed(what).at(self.pos as u64)
    }

    #[inline(always)]
    pub fn byte(&mut self) -> Result<u8> {
        match self.input.get(self.pos) {
            Some(&byte) => {
                self.pos += 1;
                Ok(byte)
            }
            None => Err(self.short()),
        }
    }

    #[inline(always)]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        match self.rest().first_chunk() {
            Some(bytes) => {
                self.pos += N;
                Ok(*bytes)
            }
            None => Err(self.short()),
        }
    }

    /// So many bytes.
    #[inline(always)]
    pub fn take(&mut self, len: u64) -> Result<&'de [u8]> {
        match usize::try_from(len).ok().and_then(|len| self.rest().get(..len)) {
            Some(bytes) => {
                self.pos += bytes.len();
                Ok(bytes)
            }
            None => Err(self.short()),
        }
    }

    /// Passes over a value, whatever is in it.
    fn skip(&mut self) -> Result<()> {
        match H::length(self.rest()).map_err(|e| e.at(self.pos as u64))? {
            Some(len) => {
                self.pos += len;
                Ok(())
            }
            None => Err(self.short()),
        }
    }

    /// Takes the break that ends a list or map of unknown count, if it comes next.
    #[inline]
    fn at_break(&mut self) -> Result<bool> {
        match self.peek() {
            None => Err(self.short()),
            byte if byte == H::BREAK => {
                self.pos += 1;
                Ok(true)
            }
            Some(_) => Ok(false),
        }
    }

    /// Whether another value of a list or map comes, of which `left` are to come.
    #[inline(always)]
    fn more(&mut self, left: &mut Option<u64>) -> Result<bool> {
        match left {
            Some(0) => Ok(false),
            Some(n) => {
                *n -= 1;
                Ok(true)
            }
            None if self.at_break()? => {
                *left = Some(0);
                Ok(false)
            }
            None => Ok(true),
        }
    }

    /// One level more.
    #[inline]
    fn deeper(&mut self) -> Result<()> {
        if self.depth >= DEPTH {
            return Err(self.wrong(format!("nested deeper than {DEPTH} levels")));
        }
        self.depth += 1;
        Ok(())
    }

    /// Nothing may be left.
    fn end(&self) -> Result<()> {
        match self.rest().len() {
            0 => Ok(()),
            n => Err(self.wrong(format!("{n} more bytes after the {} record", H::NAME))),
        }
    }
}

/// Appends one record.
pub(super) fn encode<H: Heads, T: Serialize>(record: &T, out: &mut Vec<u8>) -> Result<()> {
    record.serialize(&mut ser::Writer::<H>::new(out))
}

/// Reads one record by `seed`; `bytes` must hold it and nothing else.
pub(super) fn decode<'de, H: Heads, S: DeserializeSeed<'de>>(
    bytes: &'de [u8],
    seed: S,
) -> Result<S::Value> {
    let mut reader = Reader::<H>::new(bytes);
    let read = seed.deserialize(&mut reader).map_err(|e| match e.place().offset {
        Some(_) => e,
        // What a type did not expect: here, or just before.
        None => e.at(reader.pos as u64),
    })?;
    reader.end()?;
    Ok(read)
}
