//! The 24 bytes a record begins with.

use std::fmt;

/// The leader: 24 bytes, kept exactly as read.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Leader(pub [u8; 24]);

impl Leader {
    /// The leader of a new book record in UTF-8. Lengths are zero until the record is written.
    pub const NEW: Leader = Leader(*b"00000nam a2200000 i 4500");

    /// Position 9: `a` says the record is in UTF-8, blank says MARC-8 (in MARC 21).
    pub fn says_utf8(&self) -> bool {
        self.0[9] == b'a'
    }

    /// Position 5: the record's status, `n` new, `c` corrected, `d` deleted ...
    pub fn status(&self) -> u8 {
        self.0[5]
    }

    /// Positions 6 and 7: type of record and bibliographic level.
    pub fn kind(&self) -> [u8; 2] {
        [self.0[6], self.0[7]]
    }

    /// The same leader saying UTF-8 (position 9 = `a`) or MARC-8 (blank).
    pub fn with_utf8(mut self, utf8: bool) -> Leader {
        self.0[9] = if utf8 { b'a' } else { b' ' };
        self
    }

    /// The leader that text of any length was meant to be, and what was done where it is not 24
    /// bytes: blanks around it left out, or else it is padded with blanks or cut.
    pub(crate) fn mended(text: &[u8]) -> (Leader, Option<String>) {
        if let Ok(leader) = text.try_into() {
            return (Leader(leader), None);
        }
        // Printers that indent put blanks around it; then it is whole inside.
        let inside = text.trim_ascii();
        let (whole, done) = match (inside.len(), text.len()) {
            (24, _) => (inside, "blanks around it left out"),
            (_, ..24) => (text, "padded with blanks"),
            _ => (text, "cut"),
        };
        let mut end = whole.len().min(24);
        // Not in the middle of a character.
        while end > 0 && whole.get(end).is_some_and(|b| b & 0xc0 == 0x80) {
            end -= 1;
        }
        let mut leader = [b' '; 24];
        leader[..end].copy_from_slice(&whole[..end]);
        (Leader(leader), Some(format!("{} bytes instead of 24; {done}", text.len())))
    }
}

impl fmt::Display for Leader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for Leader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}
