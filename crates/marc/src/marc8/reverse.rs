//! From a character to its place in MARC-8.

use std::sync::OnceLock;

use super::{Set, eacc, set::CODES};

/// Where a character is: its set, and its code there (as in G0, but for ANSEL, which is always in
/// G1; EACC has three bytes, the highest first).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spot {
    pub set: Set,
    pub code: u32,
}

/// Pages of 64 characters; 0 is nothing, else the set from bit 24, plus 1, and the code.
struct Reverse {
    pages: Vec<u16>,
    spots: Vec<[u32; 64]>,
}

/// ANSEL's controls, which are in no set properly, and the marks over two letters, which the tables
/// have as halves.
const EXTRA: [(char, u32); 6] = [
    ('\u{98}', 0x88),
    ('\u{9c}', 0x89),
    ('\u{200d}', 0x8d),
    ('\u{200c}', 0x8e),
    ('\u{361}', 0xeb),
    ('\u{360}', 0xfa),
];

/// Characters beyond these planes are not in MARC-8.
const PAGES: usize = 0x30000 >> 6;

impl Reverse {
    fn new() -> Reverse {
        let mut reverse = Reverse { pages: vec![0; PAGES], spots: vec![[0; 64]] };
        for (char, code) in EXTRA {
            reverse.add(char, Set::Ansel, code);
        }
        for &set in Set::ALL {
            for (code, i) in CODES[set as usize].iter().zip(0x21..) {
                if let Some(char) = char::from_u32((*code).into()).filter(|c| *c != '\0') {
                    reverse.add(char, set, if set == Set::Ansel { i | 0x80 } else { i });
                }
            }
        }
        // The one character whose proper code is not the first of several.
        reverse.add('\u{3000}', Set::Eacc, 0x212321);
        for ([a, b, c], char) in eacc::all() {
            reverse.add(char, Set::Eacc, u32::from_be_bytes([0, a, b, c]));
        }
        reverse
    }

    /// The first place of several is the one to write: peers do the same, as the sets are in the
    /// order of the specification and EACC's first codes are the traditional forms.
    fn add(&mut self, char: char, set: Set, code: u32) {
        let (page, at) = (char as usize >> 6, char as usize & 63);
        if self.pages[page] == 0 {
            self.pages[page] = self.spots.len() as u16;
            self.spots.push([0; 64]);
        }
        let spot = &mut self.spots[self.pages[page] as usize][at];
        if *spot == 0 {
            *spot = (set as u32 + 1) << 24 | code;
        }
    }
}

/// Where `char` is to be written, if anywhere.
pub(super) fn spot(char: char) -> Option<Spot> {
    static REVERSE: OnceLock<Reverse> = OnceLock::new();
    let reverse = REVERSE.get_or_init(Reverse::new);
    let page = *reverse.pages.get(char as usize >> 6)?;
    let spot = reverse.spots[page as usize][char as usize & 63];
    let set = *Set::ALL.get((spot >> 24).checked_sub(1)? as usize)?;
    Some(Spot { set, code: spot & 0xff_ffff })
}

/// The code of `char` in `set`, which may not be where it is written by preference.
pub(super) fn code_in(set: Set, char: char) -> Option<u8> {
    let code = u16::try_from(char as u32).ok().filter(|code| *code != 0)?;
    CODES[set as usize].iter().position(|c| *c == code).map(|i| i as u8 + 0x21)
}
