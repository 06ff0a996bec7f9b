//! ISO 2709, the exchange format of MARC 21 and UNIMARC.
//!
//! A record is a leader of 24 bytes (its length, and where its data begins), a directory (tag,
//! length and start of each field) and the fields, each ended by a terminator. That is said twice,
//! by counts and by terminators, so damage can be seen and mostly be mended:
//!
//! - `simd`: the terminators of a block, found at memory speed;
//! - [`block`](self): walks them against leader and directory. A record in which both agree costs
//!   a few comparisons a field;
//! - `start`: whether a record begins somewhere, to find the way behind junk; `stretch`: what there is
//!   where no sound record is;
//! - [`repair`](self): any other record, slowly: every contradiction is a [`Trouble`], and what
//!   can be read is read;
//! - `shape`: what is wrong inside of fields that were found, in records of every format;
//! - `zeros`: blocks of a file that were never written;
//! - [`frame`]: where the next record ends, for splitting files;
//! - [`Reader`] and [`Records`]: the above over a stream and over a slice;
//! - [`read()`]: one record by itself;
//! - [`write()`]: and back.
//!
//! [`Trouble`]: super::Trouble

mod block;
mod frame;
mod lint;
mod one;
mod reader;
mod repair;
mod shape;
pub(crate) mod simd;
mod start;
mod stretch;
mod write;
mod zeros;

pub use block::Item;
#[doc(hidden)]
pub use frame::BETWEEN;
pub use frame::frame;
pub use lint::lint;
pub use one::read;
pub use reader::{Reader, Records};
#[doc(hidden)]
pub use shape::look;
#[doc(hidden)]
pub use start::{LONGEST as START, begins};
pub use write::{fits, leader, write};
#[doc(hidden)]
pub use zeros::{Run, Zeros, told as told_zeros};

/// Leader and the shortest possible rest: directory end and record end.
pub(crate) const SHORTEST: usize = 26;

/// The number that `bytes` spell, all of them digits; none otherwise.
fn number(bytes: &[u8]) -> Option<usize> {
    if bytes.is_empty() || bytes.len() > 9 {
        return None;
    }
    bytes.iter().try_fold(0, |n, b| b.is_ascii_digit().then(|| n * 10 + (b - b'0') as usize))
}
