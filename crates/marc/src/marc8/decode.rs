//! MARC-8 to UTF-8.

use unicode_normalization::{IsNormalized, UnicodeNormalization, char::compose, is_nfc_quick};

use super::{
    Fault, Set, ascii, eacc,
    set::{FIRST, GLYPHS, MARK, SECOND},
};
use crate::{Error, Result};

/// Reads MARC-8. The default reads what the Library of Congress says and composes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decoder {
    /// Put the text in Unicode normalization form C (é as one character). Otherwise letters and
    /// marks stay apart, as they are in MARC-8. Off by default.
    pub nfc: bool,
    /// Read `&#x4E00;` as the character it stands for: the Library of Congress's way to carry what
    /// MARC-8 does not have. On by default.
    pub references: bool,
    /// What to do with bytes that no set has a character for.
    pub unmapped: Unmapped,
}

/// What becomes of bytes that no set has a character for. They are reported in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unmapped {
    /// Kept to be seen: `&#xBB;` for a byte (two digits, which no reference to a character has),
    /// `&#x212A7E;` for three bytes of EACC (which is beyond any character).
    #[default]
    Reference,
    /// U+FFFD, one for each character.
    Replacement,
}

impl Default for Decoder {
    fn default() -> Self {
        Decoder { nfc: false, references: true, unmapped: Unmapped::Reference }
    }
}

impl Decoder {
    /// Appends `bytes` to `out` as UTF-8, and calls `on_fault` for each thing wrong with its byte
    /// offset. What is known of a fault only later is reported later, so offsets may go back.
    ///
    /// `bytes` may be a subfield, a field or a record's fields: every 0x1D, 0x1E and 0x1F ends what
    /// came before. At most six bytes come out for each that goes in.
    pub fn decode(&self, bytes: &[u8], out: &mut Vec<u8>, on_fault: &mut dyn FnMut(usize, Fault)) {
        let start = out.len();
        let plain = ascii::plain(bytes);
        out.extend_from_slice(&bytes[..plain]);
        if plain == bytes.len() {
            return;
        }
        Reading {
            rules: *self,
            bytes,
            at: plain,
            out,
            on_fault,
            g0: Set::Latin,
            g1: Set::Ansel,
            waiting: None,
            opening: None,
            open: None,
        }
        .run();
        if self.nfc {
            compose_from(out, start);
        }
    }

    /// The same, but the first fault is the end of it.
    ///
    /// # Errors
    /// [`Malformed`](crate::ErrorKind::Malformed) at the offset of the fault; `out` is then as long as
    /// it was.
    pub fn decode_strict(&self, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        let mut first: Option<(usize, Fault)> = None;
        self.decode(bytes, out, &mut |at, fault| {
            if first.is_none_or(|(before, _)| at < before) {
                first = Some((at, fault));
            }
        });
        let Some((at, fault)) = first else { return Ok(()) };
        out.truncate(start);
        Err(Error::malformed(format!("not MARC-8: {fault}")).at(at as u64))
    }
}

/// Marks that wait for their letter; they are in `out` already, from `start`.
struct Waiting {
    start: usize,
    at: usize,
}

/// The first half of a mark over two letters: where it is in `out` and in `bytes`, and whether it
/// is the tilde.
struct Half {
    start: usize,
    at: usize,
    tilde: bool,
}

struct Reading<'a> {
    rules: Decoder,
    bytes: &'a [u8],
    at: usize,
    out: &'a mut Vec<u8>,
    on_fault: &'a mut dyn FnMut(usize, Fault),
    g0: Set,
    g1: Set,
    waiting: Option<Waiting>,
    /// Among the marks that wait.
    opening: Option<Half>,
    /// Over the letter before, waiting for the second half over the next.
    open: Option<Half>,
}

impl Reading<'_> {
    fn run(&mut self) {
        while self.at < self.bytes.len() {
            if self.default_sets() && self.waiting.is_none() && self.open.is_none() {
                let rest = &self.bytes[self.at..];
                let run = ascii::plain(rest);
                self.out.extend_from_slice(&rest[..run]);
                self.at += run;
                match rest[run..] {
                    [] => break,
                    // An accent and its letter: most of what is not ASCII.
                    [mark @ 0xe0..=0xfe, letter @ (b' '..=b'%' | b'\''..=b'~'), ..] => {
                        let glyph = GLYPHS[Set::Ansel as usize][mark as usize - 0xa1];
                        if glyph.info == MARK | 2 {
                            let [a, b, _] = glyph.utf8;
                            self.out.extend_from_slice(&[letter, a, b]);
                            self.at += 2;
                            continue;
                        }
                    }
                    _ => {}
                }
            }
            self.step();
        }
        self.settle();
    }

    fn default_sets(&self) -> bool {
        self.g0 == Set::Latin && self.g1 == Set::Ansel
    }

    /// One byte, one EACC character, one reference or one escape sequence.
    fn step(&mut self) {
        let byte = self.bytes[self.at];
        match byte {
            0x1b => self.escape(),
            0x1d..=0x1f => {
                self.settle();
                (self.g0, self.g1) = (Set::Latin, Set::Ansel);
                self.out.push(byte);
                self.at += 1;
            }
            // The space and the controls are in every set, EACC too.
            0..=0x20 | 0x7f if !self.vendor(byte) => self.letter(&[byte], 1),
            b'&' if self.g0 == Set::Latin && self.rules.references => {
                match ascii::reference(&self.bytes[self.at..]) {
                    Some((char, len)) => self.char(char, len),
                    None => self.letter(b"&", 1),
                }
            }
            0..=0x7f => self.graphic(self.g0, byte),
            0x88 => self.char('\u{98}', 1),
            0x89 => self.char('\u{9c}', 1),
            0x8d => self.char('\u{200d}', 1),
            0x8e => self.char('\u{200c}', 1),
            0x80..=0xa0 | 0xff => {
                self.unmapped(1, Fault::Byte { set: self.g1, byte });
            }
            _ => self.graphic(self.g1, byte),
        }
    }

    /// Is this the first byte of a vendor's EACC code that is a control otherwise?
    fn vendor(&self, byte: u8) -> bool {
        byte == 0x7f
            && self.g0 == Set::Eacc
            && self.triple().is_some_and(|t| eacc::get(t).is_some())
    }

    fn triple(&self) -> Option<[u8; 3]> {
        self.bytes[self.at..].first_chunk().copied()
    }

    /// A byte 0x21 to 0x7E, or with the high bit, in `set`.
    fn graphic(&mut self, set: Set, byte: u8) {
        if set == Set::Eacc {
            return self.eacc(byte & 0x80);
        }
        let glyph = GLYPHS[set as usize][(byte & 0x7f) as usize - 0x21];
        let utf8 = &glyph.utf8[..glyph.len()];
        match glyph.info {
            0 => self.unmapped(1, Fault::Byte { set, byte }),
            info if info & MARK == 0 => self.letter(utf8, 1),
            info if info & (FIRST | SECOND) == 0 => self.mark(utf8),
            info if info & FIRST != 0 => self.first_half(byte & 0x7f == 0x7a),
            _ => self.second_half(byte & 0x7f == 0x7b),
        }
    }

    fn eacc(&mut self, high: u8) {
        if let Some(triple) = self.triple() {
            let low = triple.map(|b| b ^ high);
            if let Some(char) = eacc::get(low) {
                return self.char(char, 3);
            }
            if low.iter().all(|b| (0x21..0x7f).contains(b)) {
                return self.unmapped(3, Fault::Triple(low));
            }
        }
        let rest = self.bytes[self.at..].iter().take(3);
        let len = rest.take_while(|b| (0x21..0x7f).contains(&(**b ^ high))).count();
        self.unmapped(len, Fault::CutTriple);
    }

    /// A letter, or whatever else marks can go with: the marks that wait come after it.
    fn letter(&mut self, utf8: &[u8], read: usize) {
        if let Some(half) = self.open.take() {
            self.lone_half(half);
        }
        self.out.extend_from_slice(utf8);
        if let Some(waiting) = self.waiting.take() {
            self.out[waiting.start..].rotate_right(utf8.len());
            self.open = self.opening.take();
            if let Some(half) = &mut self.open {
                half.start += utf8.len();
            }
        }
        self.at += read;
    }

    fn char(&mut self, char: char, read: usize) {
        self.letter(char.encode_utf8(&mut [0; 4]).as_bytes(), read);
    }

    fn mark(&mut self, utf8: &[u8]) {
        let waiting = Waiting { start: self.out.len(), at: self.at };
        self.waiting.get_or_insert(waiting);
        self.out.extend_from_slice(utf8);
        self.at += 1;
    }

    fn first_half(&mut self, tilde: bool) {
        let half = Half { start: self.out.len(), at: self.at, tilde };
        self.mark(if tilde { "\u{360}" } else { "\u{361}" }.as_bytes());
        // Two on one letter: the second half can be for one of them only.
        match self.opening {
            None => self.opening = Some(half),
            Some(_) => self.lone_half(half),
        }
    }

    fn second_half(&mut self, tilde: bool) {
        if self.open.take_if(|half| half.tilde == tilde).is_some() {
            self.at += 1;
            return;
        }
        (self.on_fault)(self.at, Fault::LoneHalf);
        self.mark(if tilde { "\u{fe23}" } else { "\u{fe21}" }.as_bytes());
    }

    /// Makes a mark over two letters the half mark that it was.
    fn lone_half(&mut self, half: Half) {
        (self.on_fault)(half.at, Fault::LoneHalf);
        let mark = if half.tilde { "\u{fe22}" } else { "\u{fe20}" };
        self.out.splice(half.start..half.start + 2, mark.bytes());
        for start in [
            self.waiting.as_mut().map(|w| &mut w.start),
            self.opening.as_mut().map(|h| &mut h.start),
        ]
        .into_iter()
        .flatten()
        .filter(|start| **start > half.start)
        {
            *start += 1;
        }
    }

    /// The end of a subfield: what waits, waits in vain.
    fn settle(&mut self) {
        if let Some(half) = self.open.take() {
            self.lone_half(half);
        }
        if let Some(half) = self.opening.take() {
            self.lone_half(half);
        }
        if let Some(waiting) = self.waiting.take() {
            (self.on_fault)(waiting.at, Fault::LoneMark);
        }
    }

    fn unmapped(&mut self, len: usize, fault: Fault) {
        (self.on_fault)(self.at, fault);
        match (self.rules.unmapped, fault) {
            (Unmapped::Replacement, _) => self.char(char::REPLACEMENT_CHARACTER, len),
            (Unmapped::Reference, Fault::Triple(triple)) => self.raw(&triple, len),
            (Unmapped::Reference, _) => {
                for _ in 0..len {
                    self.raw(&[self.bytes[self.at]], 1);
                }
            }
        }
    }

    /// Up to three bytes as one reference.
    fn raw(&mut self, bytes: &[u8], read: usize) {
        let mut text = *b"&#x......;";
        let digits = bytes.iter().flat_map(|b| [b >> 4, b & 15]);
        for (slot, digit) in text[3..].iter_mut().zip(digits) {
            *slot = b"0123456789ABCDEF"[digit as usize];
        }
        let end = 3 + 2 * bytes.len();
        text[end] = b';';
        self.letter(&text[..=end], read);
    }

    fn escape(&mut self) {
        match designated(&self.bytes[self.at + 1..]) {
            Some((false, set, len)) => (self.g0, self.at) = (set, self.at + 1 + len),
            Some((true, set, len)) => (self.g1, self.at) = (set, self.at + 1 + len),
            None => self.unmapped(1, Fault::Escape),
        }
    }
}

/// What an escape sequence designates (as G1?), and its length without the escape character.
///
/// Intermediate bytes are read as leniently as they are written: `$` says three bytes, which the
/// final byte says too, and `!` says that a final byte is ANSEL's, which only ANSEL's is.
fn designated(rest: &[u8]) -> Option<(bool, Set, usize)> {
    if let [last @ (b's' | b'g' | b'b' | b'p'), ..] = rest {
        let set = if *last == b's' { Set::Latin } else { Set::from_final(*last)? };
        return Some((false, set, 1));
    }
    let dollar = usize::from(rest.first()? == &b'$');
    let (g1, side) = match rest.get(dollar)? {
        b'(' | b',' => (false, 1),
        b')' | b'-' => (true, 1),
        _ if dollar == 1 => (false, 0),
        _ => return None,
    };
    let bang = usize::from(rest.get(dollar + side)? == &b'!');
    let set = Set::from_final(*rest.get(dollar + side + bang)?).filter(|set| !set.custom())?;
    Some((g1, set, dollar + side + bang + 1))
}

/// Puts what is in `out` from `start` in normalization form C.
fn compose_from(out: &mut Vec<u8>, start: usize) {
    if out[start..].is_ascii() {
        return;
    }
    // What was written is UTF-8; were it not, it would stay as it is.
    let Ok(text) = simdutf8::basic::from_utf8(&out[start..]) else { return };
    let mut composed = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let odd = ascii::run(rest.as_bytes());
        if odd == rest.len() {
            break;
        }
        // Only the ASCII character before a run of others can take part in it.
        let (plain, from) = rest.split_at(odd.saturating_sub(1));
        composed.push_str(plain);
        let first = usize::from(odd > 0);
        let len = from.bytes().skip(first).position(|b| b < 0x80).map_or(from.len(), |n| n + first);
        let (run, after) = from.split_at(len);
        rest = after;
        let mut chars = run.chars();
        match (chars.next(), chars.next(), chars.next()) {
            // A letter and its accent: most of what there is.
            (Some(letter @ '\0'..='\x7f'), Some(mark @ '\u{300}'..='\u{33f}'), None) => {
                match compose(letter, mark) {
                    Some(whole) => composed.push(whole),
                    None => composed.extend([letter, mark]),
                }
            }
            _ if is_nfc_quick(run.chars()) == IsNormalized::Yes => composed.push_str(run),
            _ => composed.extend(run.nfc()),
        }
    }
    composed.push_str(rest);
    out.truncate(start);
    out.extend_from_slice(composed.as_bytes());
}

#[cfg(test)]
mod tests;
