//! Finds the end of a record in one pass over its bytes, without tables or recursion.

use crate::{Error, Result};

/// Why there is no length.
enum Stop {
    /// The bytes end too early to tell.
    Short,
    /// They are no Marshal, for the reason given, at this offset.
    Bad(usize, &'static str),
}

/// Where the first record in `bytes` ends; none where more bytes are needed to tell.
pub(super) fn length(bytes: &[u8]) -> Result<Option<usize>> {
    match measure(bytes) {
        Ok(length) => Ok(Some(length)),
        Err(Stop::Short) => Ok(None),
        Err(Stop::Bad(at, what)) => Err(Error::malformed(what).at(at as u64)),
    }
}

fn measure(bytes: &[u8]) -> Result<usize, Stop> {
    for (at, known) in [(0, 4..=4), (1, 0..=8)] {
        if bytes.get(at).is_some_and(|byte| !known.contains(byte)) {
            return Err(Stop::Bad(at, "not Marshal 4.8"));
        }
    }
    let mut at = Cursor { bytes, pos: 2 };
    // Values still to come. Names of variables count as values: they are symbols, which are.
    let mut pending = 1usize;
    // For each value whose variables come after all that is in it: what is pending after them.
    let mut outer = Vec::new();
    loop {
        while pending > 0 {
            pending -= 1;
            let more = at.value(&mut pending, &mut outer)?;
            pending = pending.saturating_add(more);
        }
        match outer.pop() {
            Some(rest) => pending = at.count(2)?.saturating_mul(2).saturating_add(rest),
            None => return Ok(at.pos),
        }
    }
}

struct Cursor<'a> {
    bytes: &'a [u8],
    pos: usize,
}

impl Cursor<'_> {
    /// Passes over the beginning of a value; returns how many values it begins with.
    #[inline]
    fn value(&mut self, pending: &mut usize, outer: &mut Vec<usize>) -> Result<usize, Stop> {
        let start = self.pos;
        match self.byte()? {
            b'I' => match self.bytes.get(self.pos) {
                Some(b'"' | b':') => {
                    self.pos += 1;
                    self.text()?;
                    // But for the first string: the symbol E by its number, true or false.
                    let next = self.bytes.get(self.pos..).and_then(|rest| rest.first_chunk());
                    if let Some([6, b';', 0 | 5..128, b'T' | b'F']) = next {
                        self.pos += 4;
                        return Ok(0);
                    }
                    return Ok(self.count(2)? * 2);
                }
                _ => {
                    outer.push(std::mem::replace(pending, 0));
                    return Ok(1);
                }
            },
            b'{' => return Ok(self.count(2)? * 2),
            b'[' => return self.count(1),
            b'@' | b'i' | b';' => drop(self.long()?),
            b'"' | b':' | b'f' | b'c' | b'm' | b'M' => self.text()?,
            b'0' | b'T' | b'F' => {}
            b'}' => return Ok(self.count(2)? * 2 + 1),
            b'l' => {
                self.byte()?;
                let words = self.count(2)?;
                self.pos += words * 2;
            }
            b'/' => {
                self.text()?;
                self.byte()?;
            }
            // A name, and the value named.
            b'e' | b'C' | b'U' | b'd' => return Ok(2),
            b'o' | b'S' => {
                self.symbol()?;
                return Ok(self.count(2)? * 2);
            }
            b'u' => {
                self.symbol()?;
                self.text()?;
            }
            _ => return Err(Stop::Bad(start, "not a byte that a value can begin with")),
        }
        Ok(0)
    }

    #[inline]
    fn byte(&mut self) -> Result<u8, Stop> {
        let byte = *self.bytes.get(self.pos).ok_or(Stop::Short)?;
        self.pos += 1;
        Ok(byte)
    }

    #[inline]
    fn long(&mut self) -> Result<i64, Stop> {
        match self.byte()? as i8 {
            0 => Ok(0),
            first @ 5.. => Ok(i64::from(first) - 5),
            first @ ..-4 => Ok(i64::from(first) + 5),
            first => {
                let n = usize::from(first.unsigned_abs());
                let bytes = self.bytes.get(self.pos..self.pos + n).ok_or(Stop::Short)?;
                self.pos += n;
                let mut wide = [if first < 0 { 0xff } else { 0 }; 8];
                wide[..n].copy_from_slice(bytes);
                Ok(i64::from_le_bytes(wide))
            }
        }
    }

    /// How many parts follow, each of at least `size` bytes.
    #[inline]
    fn count(&mut self, size: usize) -> Result<usize, Stop> {
        let start = self.pos;
        let n = usize::try_from(self.long()?).map_err(|_| Stop::Bad(start, "a negative length"))?;
        if n.saturating_mul(size) > self.bytes.len() - self.pos {
            return Err(Stop::Short);
        }
        Ok(n)
    }

    #[inline]
    fn text(&mut self) -> Result<(), Stop> {
        self.pos += self.count(1)?;
        Ok(())
    }

    /// A symbol that more of the same value follows.
    fn symbol(&mut self) -> Result<(), Stop> {
        let start = self.pos;
        match self.byte()? {
            b':' => self.text(),
            b';' => self.long().map(drop),
            b'I' => {
                if self.byte()? != b':' {
                    return Err(Stop::Bad(start, "not a symbol where one has to be"));
                }
                self.text()?;
                // Its encoding, and nothing that could have variables again.
                for _ in 0..self.count(2)? {
                    for _ in 0..2 {
                        match self.byte()? {
                            b'T' | b'F' | b'0' => {}
                            b'@' | b';' => drop(self.long()?),
                            b'"' | b':' => self.text()?,
                            _ => return Err(Stop::Bad(start, "a symbol with odd variables")),
                        }
                    }
                }
                Ok(())
            }
            _ => Err(Stop::Bad(start, "not a symbol where one has to be")),
        }
    }
}
