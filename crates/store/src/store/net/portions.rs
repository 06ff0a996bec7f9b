//! Answers that are longer than is read: their error, and asking for less at a time.

use crate::{Error, Result};

/// How many bytes of several records are taken together, where none of them is larger.
pub(crate) const SEVERAL: usize = 256 << 20;

/// What tells the error of an answer that is too long from others.
#[derive(Debug)]
struct TooLong;

impl std::fmt::Display for TooLong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("more than is read")
    }
}

impl std::error::Error for TooLong {}

/// The error of an answer that does not end.
pub(crate) fn too_long(what: &str, most: usize) -> Error {
    let context = format!("an answer of more than {most} bytes, the limit ({what})");
    Error::malformed(context).with_source(TooLong)
}

/// Whether an error is that of an answer that does not end: less at a time may do.
pub(crate) fn is_too_long(e: &Error) -> bool {
    std::error::Error::source(e).is_some_and(|source| source.is::<TooLong>())
}

/// Appends a chunk of an answer that may have `most` bytes; false where it has more. Takes no more memory than
/// twice of what has come, nor than `most`.
#[must_use]
pub(crate) fn append(all: &mut Vec<u8>, chunk: &[u8], most: usize) -> bool {
    let length = all.len() + chunk.len();
    if length > most {
        return false;
    }
    if length > all.capacity() {
        all.reserve_exact(length.max((2 * all.len()).min(most)) - all.len());
    }
    all.extend_from_slice(chunk);
    true
}

/// Keys to ask for, as many at a time as an answer has room for.
pub(crate) struct Fewer<'k, K> {
    rest: &'k [K],
    /// What was asked for last.
    last: &'k [K],
    most: usize,
}

impl<'k, K> Fewer<'k, K> {
    /// All of them at first.
    pub(crate) fn new(keys: &'k [K]) -> Self {
        Fewer { rest: keys, last: &[], most: keys.len() }
    }

    /// The next to ask for; none at the end.
    pub(crate) fn next(&mut self) -> Option<&'k [K]> {
        let (some, rest) = self.rest.split_at(self.most.min(self.rest.len()));
        (self.last, self.rest) = (some, rest);
        (!some.is_empty()).then_some(some)
    }

    /// The last asked for had this error: where their answer was too long, the half of them comes next.
    ///
    /// # Errors
    /// Any other; that, too, where one key was asked for.
    pub(crate) fn after(&mut self, keys: &'k [K], e: Error) -> Result<()> {
        if self.last.len() < 2 || !is_too_long(&e) {
            return Err(e);
        }
        self.most = self.last.len() / 2;
        let done = keys.len() - self.rest.len() - self.last.len();
        self.rest = &keys[done..];
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_are_asked_for_until_their_answers_fit() {
        let sizes = [1, 1, 5, 1, 9, 1, 1, 1];
        let mut fewer = Fewer::new(&sizes);
        let (mut got, mut refused): (Vec<i32>, _) = (Vec::new(), 0);
        while let Some(some) = fewer.next() {
            match some.iter().sum::<i32>() > 9 {
                true => {
                    refused += 1;
                    fewer.after(&sizes, too_long("a get", 9)).unwrap();
                }
                false => got.extend(some),
            }
        }
        assert_eq!(got, sizes);
        assert!(refused > 1, "{refused}");
        let mut one = Fewer::new(&sizes[..1]);
        assert_eq!(one.next(), Some(&sizes[..1]));
        assert!(is_too_long(&one.after(&sizes[..1], too_long("a get", 9)).unwrap_err()));
        let mut other = Fewer::new(&sizes);
        other.next();
        assert!(other.after(&sizes, Error::malformed("else")).is_err());
    }

    #[test]
    fn chunks_take_no_more_than_they_may() {
        let mut all = Vec::new();
        let mut count = 0;
        while append(&mut all, &[7; 1000], 1_000_500) {
            count += 1;
            assert!(all.capacity() <= 1_000_500 && all.capacity() <= (2 * all.len()).max(1000));
        }
        assert_eq!((count, all.len()), (1000, 1_000_000));
    }
}
