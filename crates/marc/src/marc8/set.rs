//! The character sets by name, and their characters ready to be copied.

use std::fmt;

use super::sets;

macro_rules! sets {
    ($($set:ident $code:literal $name:literal $escape:literal $codes:expr;)*) => {
        /// A character set of MARC-8.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Set { $(#[doc = $name] $set,)* }

        impl Set {
            /// Every set, in the order in which the writer looks for a character.
            pub const ALL: &[Set] = &[$(Set::$set),*];

            /// What the Library of Congress calls it.
            pub fn name(self) -> &'static str {
                match self { $(Set::$set => $name,)* }
            }

            /// The set an escape sequence ends in.
            pub(super) fn from_final(byte: u8) -> Option<Set> {
                match byte { $($code => Some(Set::$set),)* _ => None }
            }

            /// What designates it as G0, after the escape character. It is also what field 066 $c
            /// has to list where [`Set::listed`].
            pub fn escape(self) -> &'static str {
                match self { $(Set::$set => $escape,)* }
            }
        }

        /// The code points of codes 0x21 to 0x7E, a row a set; the last, EACC, has none.
        pub(super) static CODES: [[u16; 94]; 12] = [$($codes),*];
        /// The same, as UTF-8.
        pub(super) static GLYPHS: [[Glyph; 94]; 12] = [$(glyphs($codes)),*];
    };
}

sets! {
    Latin b'B' "Basic Latin" "(B" LATIN;
    Ansel b'E' "Extended Latin" "(!E" sets::ANSEL;
    Subscript b'b' "Subscripts" "b" sets::SUBSCRIPT;
    Superscript b'p' "Superscripts" "p" sets::SUPERSCRIPT;
    Hebrew b'2' "Basic Hebrew" "(2" sets::HEBREW;
    Cyrillic b'N' "Basic Cyrillic" "(N" sets::CYRILLIC;
    CyrillicMore b'Q' "Extended Cyrillic" "(Q" sets::CYRILLIC_MORE;
    Arabic b'3' "Basic Arabic" "(3" sets::ARABIC;
    ArabicMore b'4' "Extended Arabic" "(4" sets::ARABIC_MORE;
    Greek b'S' "Basic Greek" "(S" sets::GREEK;
    GreekSymbols b'g' "Greek Symbols" "g" sets::GREEK_SYMBOLS;
    Eacc b'1' "East Asian Characters" "$1" [0; 94];
}

impl Set {
    /// Is it one of MARC's own three sets, which end with `ESC s`?
    pub(super) fn custom(self) -> bool {
        matches!(self, Set::Subscript | Set::Superscript | Set::GreekSymbols)
    }

    /// Does a record that uses it have to say so in field 066?
    pub fn listed(self) -> bool {
        !self.custom() && !matches!(self, Set::Latin | Set::Ansel)
    }
}

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

const LATIN: [u16; 94] = {
    let mut codes = [0; 94];
    let mut i = 0;
    while i < 94 {
        codes[i] = 0x21 + i as u16;
        i += 1;
    }
    codes
};

/// The sets a text was written with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sets(u16);

impl Sets {
    /// Counts `set` in.
    pub fn add(&mut self, set: Set) {
        self.0 |= 1 << set as u8;
    }

    /// Is `set` among them?
    pub fn contains(self, set: Set) -> bool {
        self.0 & 1 << set as u8 != 0
    }

    /// These and `other`'s.
    pub fn and(self, other: Sets) -> Sets {
        Sets(self.0 | other.0)
    }

    /// What field 066 has to list in $c, one subfield each: `(N`, `$1`. With nothing to list, a
    /// record has no field 066.
    pub fn listed(self) -> impl Iterator<Item = &'static str> {
        let all = Set::ALL.iter().copied();
        all.filter(move |&set| set.listed() && self.contains(set)).map(Set::escape)
    }
}

/// A character of a single-byte set.
#[derive(Clone, Copy)]
pub(super) struct Glyph {
    /// Its UTF-8 bytes, [`len`](Glyph::len) of them.
    pub utf8: [u8; 3],
    /// How many bytes (0: no character), and what kind of mark it is.
    pub info: u8,
}

/// [`Glyph::info`]: goes over or under the letter that follows.
pub(super) const MARK: u8 = 4;
/// [`Glyph::info`]: the first half of a mark over two letters.
pub(super) const FIRST: u8 = 8;
/// [`Glyph::info`]: the second half.
pub(super) const SECOND: u8 = 16;

impl Glyph {
    pub(super) fn len(self) -> usize {
        (self.info & 3) as usize
    }
}

const fn glyphs(codes: [u16; 94]) -> [Glyph; 94] {
    let mut glyphs = [Glyph { utf8: [0; 3], info: 0 }; 94];
    let mut i = 0;
    while i < 94 {
        let half = match codes[i] {
            0xfe20 | 0xfe22 => FIRST,
            0xfe21 | 0xfe23 => SECOND,
            _ => 0,
        };
        // Since 2004 the first half is the mark over both letters, which Unicode puts between them;
        // the second half is then nothing by itself.
        let code = match codes[i] {
            0xfe20 => 0x361,
            0xfe22 => 0x360,
            code => code,
        };
        let mark = if sets::is_mark(code as u32) { MARK } else { 0 };
        let c = code as u32;
        glyphs[i] = match c {
            0 => Glyph { utf8: [0; 3], info: 0 },
            1..0x80 => Glyph { utf8: [c as u8, 0, 0], info: 1 },
            0x80..0x800 => Glyph {
                utf8: [0xc0 | (c >> 6) as u8, 0x80 | (c & 63) as u8, 0],
                info: 2 | mark | half,
            },
            _ => Glyph {
                utf8: [0xe0 | (c >> 12) as u8, 0x80 | (c >> 6 & 63) as u8, 0x80 | (c & 63) as u8],
                info: 3 | mark | half,
            },
        };
        i += 1;
    }
    glyphs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glyphs_are_the_codes_in_utf8() {
        for &set in Set::ALL {
            for (code, glyph) in CODES[set as usize].iter().zip(&GLYPHS[set as usize]) {
                let text = std::str::from_utf8(&glyph.utf8[..glyph.len()]).unwrap();
                let expected = match code {
                    0 => String::new(),
                    0xfe20 => "\u{361}".into(),
                    0xfe22 => "\u{360}".into(),
                    &c => char::from_u32(c.into()).unwrap().to_string(),
                };
                assert_eq!(text, expected);
                assert_eq!(glyph.info & MARK != 0, *code != 0 && sets::is_mark(u32::from(*code)));
            }
        }
    }

    #[test]
    fn as_many_codes_as_the_specification_has() {
        let counts: Vec<_> =
            CODES.iter().map(|set| set.iter().filter(|&&code| code != 0).count()).collect();
        assert_eq!(counts, [94, 65, 14, 14, 78, 94, 42, 83, 90, 73, 3, 0]);
    }

    #[test]
    fn field_066_lists_what_escapes_are_standard() {
        let mut sets = Sets::default();
        for &set in [Set::Latin, Set::Eacc, Set::Superscript, Set::Cyrillic].iter() {
            sets.add(set);
        }
        assert_eq!(sets.listed().collect::<Vec<_>>(), ["(N", "$1"]);
    }
}
