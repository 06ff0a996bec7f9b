//! Limits on depth, size and counts, whatever the bytes claim.

use crate::{Error, ErrorKind, Result, format::DEPTH};

/// Refuses one level more than [`DEPTH`].
#[inline]
pub(crate) fn deeper(depth: usize) -> Result<usize> {
    if depth < DEPTH { Ok(depth + 1) } else { Err(too_deep()) }
}

#[cold]
fn too_deep() -> Error {
    let what = format!("nested more than {DEPTH} levels deep; flatten the record");
    Error::new(ErrorKind::TooLarge, what)
}

/// How much reading links may cause: a link of two bytes can stand for any value before it, and
/// links to links double with each step. What is read again through links, in bytes or values,
/// is paid from this.
pub(crate) struct Budget {
    left: usize,
}

impl Budget {
    /// The allowance for an input of `len` bytes: 64 KiB and 32 times the input.
    pub(crate) fn new(len: usize) -> Self {
        Budget { left: (64 << 10) + len.saturating_mul(32) }
    }

    /// Pays for reading `cost` bytes or values again.
    #[inline]
    pub(crate) fn spend(&mut self, cost: usize) -> Result<()> {
        match self.left.checked_sub(cost) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(Error::new(
                ErrorKind::TooLarge,
                "links make this more than 32 times as large as its bytes; \
                 write it without shared objects, or in smaller records",
            )),
        }
    }
}
