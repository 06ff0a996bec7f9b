//! UTF-8 to MARC-8.

use unicode_normalization::{
    IsNormalized, UnicodeNormalization,
    char::{canonical_combining_class, compose, decompose_canonical},
    is_nfc_quick,
};

use super::{
    Set, Sets, ascii,
    reverse::{Spot, code_in, spot},
    sets,
};
use crate::{Error, Result};

/// Writes MARC-8, from text in any normalization form.
///
/// What it writes, [`Decoder`](super::Decoder) reads as canonically equivalent text, with
/// [`Unmappable::Reference`] for all of Unicode, but for one thing: half marks (U+FE20 to U+FE23) on
/// two letters in a row come back as the one mark over both (U+0360, U+0361), which is how the
/// Library of Congress has mapped them since 2004.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoder {
    /// What to do with characters that MARC-8 does not have.
    pub unmappable: Unmappable,
    /// Will the reader take `&#x4E00;` for a character? Then text that only looks so has its `&`
    /// written as a reference. On by default, as in [`Decoder`](super::Decoder).
    pub references: bool,
}

/// What becomes of characters that MARC-8 does not have. They are reported in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unmappable {
    /// `&#x1E9E;`: the Library of Congress's lossless conversion.
    #[default]
    Reference,
    /// `|`: its lossy conversion.
    Bar,
}

impl Default for Encoder {
    fn default() -> Self {
        Encoder { unmappable: Unmappable::Reference, references: true }
    }
}

impl Encoder {
    /// Appends `text` to `out` as MARC-8, and calls `on_unmappable` for each character it does not
    /// have, with the byte offset of that character, or of the letter it stands with where the text
    /// was not in normalization form C. Returns the sets used, of which field 066 has to tell.
    ///
    /// At the end, and before every 0x1D, 0x1E and 0x1F, the sets are the default ones. A mark with
    /// no letter before it is unmappable: in MARC-8 it would go to the letter that follows.
    pub fn encode(
        &self,
        text: &str,
        out: &mut Vec<u8>,
        on_unmappable: &mut dyn FnMut(usize, char),
    ) -> Sets {
        out.reserve(text.len());
        let mut writing = Writing {
            rules: *self,
            text,
            out,
            on_unmappable,
            g0: Set::Latin,
            used: Sets::default(),
            base: None,
            marks: Vec::new(),
            open: None,
        };
        writing.used.add(Set::Latin);
        writing.run();
        writing.used
    }

    /// The same, but the first unmappable character is the end of it.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) at the offset of the character; `out` is then as
    /// long as it was.
    pub fn encode_strict(&self, text: &str, out: &mut Vec<u8>) -> Result<Sets> {
        let start = out.len();
        let mut first = None;
        let used = self.encode(text, out, &mut |at, char| {
            first.get_or_insert((at, char));
        });
        let Some((at, char)) = first else { return Ok(used) };
        out.truncate(start);
        Err(Error::unsupported(format!(
            "MARC-8 has no {char:?} (U+{:04X}) here; write UTF-8, or allow references",
            char as u32
        ))
        .at(at as u64))
    }
}

/// What marks go with.
#[derive(Clone, Copy)]
enum Base {
    Spot(Spot, char),
    /// An ASCII character.
    Plain(u8),
    /// A character that MARC-8 does not have.
    Missing(char),
    /// An `&` that would begin a reference.
    Ampersand,
}

struct Writing<'a> {
    rules: Encoder,
    text: &'a str,
    out: &'a mut Vec<u8>,
    on_unmappable: &'a mut dyn FnMut(usize, char),
    g0: Set,
    used: Sets,
    /// Read but not written, since its marks go before it.
    base: Option<Base>,
    /// Its marks, with their offsets.
    marks: Vec<(Spot, char, usize)>,
    /// The second half of a mark over two letters, for the next letter.
    open: Option<u8>,
}

impl Writing<'_> {
    fn run(&mut self) {
        let text = self.text;
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            let Some(ascii) = rest.bytes().position(|b| b >= 0x80) else {
                self.ascii(at, rest.as_bytes());
                break;
            };
            // The last ASCII character may have marks.
            let alone = ascii.saturating_sub(1);
            self.ascii(at, &rest.as_bytes()[..alone]);
            let others = rest[ascii..].bytes().position(|b| b < 0x80);
            let end = others.map_or(rest.len(), |n| ascii + n);
            self.others(at + alone, &rest[alone..end]);
            at += end;
        }
        self.flush(false);
        self.designate(Set::Latin);
    }

    /// ASCII, at offset `at`, with no marks after it.
    fn ascii(&mut self, at: usize, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() {
            if !is_delimiter(bytes[done].into()) {
                self.flush(true);
            }
            if self.base.is_none() && self.open.is_none() && self.g0 == Set::Latin {
                let run = ascii::plain(&bytes[done..]);
                self.out.extend_from_slice(&bytes[done..done + run]);
                done += run;
                if done == bytes.len() {
                    break;
                }
            }
            self.token(bytes[done].into(), at + done);
            done += 1;
        }
    }

    /// Text other than ASCII with the ASCII character before it.
    fn others(&mut self, at: usize, text: &str) {
        if is_nfc_quick(text.chars()) == IsNormalized::Yes {
            text.char_indices().for_each(|(i, c)| self.token(c, at + i));
            return;
        }
        let mut start = 0;
        while start < text.len() {
            let next = text[start..].char_indices().skip(1).find(|(_, c)| begins(*c));
            let end = next.map_or(text.len(), |(i, _)| start + i);
            text[start..end].nfc().for_each(|c| self.token(c, at + start));
            start = end;
        }
    }

    fn token(&mut self, char: char, at: usize) {
        match char {
            c if is_delimiter(c) => {
                self.flush(false);
                self.designate(Set::Latin);
                self.out.push(c as u8);
            }
            '&' if self.rules.references
                && ascii::reference(&self.text.as_bytes()[at..]).is_some() =>
            {
                self.begin(Base::Ampersand);
            }
            '\0'..='\x7f' if char != '\x1b' => self.begin(Base::Plain(char as u8)),
            _ => match spot(char) {
                Some(spot) => self.place(spot, char, at),
                None if self.taken_apart(char, at) => {}
                None => self.missing(char, at),
            },
        }
    }

    fn place(&mut self, spot: Spot, char: char, at: usize) {
        if !sets::is_mark(char as u32) {
            self.begin(Base::Spot(spot, char));
        } else if self.base.is_some() {
            self.marks.push((spot, char, at));
        } else {
            self.missing(char, at);
        }
    }

    /// A character as its letter and marks, if MARC-8 has all of those. The letter is the one with
    /// the most marks in it: ứ is ư and one mark.
    fn taken_apart(&mut self, char: char, at: usize) -> bool {
        let (mut parts, mut count) = (['\0'; 8], 0);
        decompose_canonical(char, |part| {
            if let Some(slot) = parts.get_mut(count) {
                *slot = part;
            }
            count += 1;
        });
        let Some([letter, marks @ ..]) = parts.get(..count) else { return false };
        let (mut letter, mut marks) = (*letter, marks);
        while let [mark, rest @ ..] = marks
            && let Some(whole) = compose(letter, *mark).filter(|c| spot(*c).is_some())
        {
            (letter, marks) = (whole, rest);
        }
        let known = |c: &char| spot(*c).is_some();
        if marks.is_empty() || !known(&letter) || !marks.iter().all(known) {
            return false;
        }
        self.token(letter, at);
        marks.iter().for_each(|c| self.token(*c, at));
        true
    }

    fn missing(&mut self, char: char, at: usize) {
        (self.on_unmappable)(at, char);
        self.begin(Base::Missing(char));
    }

    fn begin(&mut self, base: Base) {
        self.flush(true);
        self.base = Some(base);
    }

    /// Writes the letter read last with its marks. Is another to follow in the same subfield?
    fn flush(&mut self, followed: bool) {
        let Some(mut base) = self.base.take() else { return };
        if self.marks.is_empty() {
            self.out.extend(self.open.take());
            return self.letter(base, false);
        }
        let mut marks = std::mem::take(&mut self.marks);
        if marks.len() > 1 {
            // From top to bottom, says the specification; Unicode has those below first.
            marks.sort_by_key(|(_, c, _)| !(230..=234).contains(&canonical_combining_class(*c)));
        }
        let mut rest = &marks[..];
        loop {
            self.out.extend(self.open.take());
            // A mark over two letters needs the second, and only one can be over the same two.
            // What cannot be is a reference, which is a letter to what comes after it.
            let mut fit = 0;
            for (spot, char, _) in rest {
                if let Some(second) = second_half(*char) {
                    if !followed || self.open.is_some() {
                        break;
                    }
                    self.open = Some(second);
                }
                self.mark(*spot);
                fit += 1;
            }
            self.letter(base, fit > 0);
            let Some((_, char, at)) = rest.get(fit) else { break };
            (self.on_unmappable)(*at, *char);
            (base, rest) = (Base::Missing(*char), &rest[fit + 1..]);
        }
        // Its memory is used again.
        self.marks = marks;
        self.marks.clear();
    }

    fn mark(&mut self, spot: Spot) {
        self.used.add(spot.set);
        if spot.set != Set::Ansel {
            self.designate(spot.set);
        }
        self.out.push(spot.code as u8);
    }

    fn letter(&mut self, base: Base, marked: bool) {
        match base {
            Base::Spot(Spot { set: Set::Ansel, code }, _) => {
                self.used.add(Set::Ansel);
                self.out.push(code as u8);
            }
            Base::Spot(spot, char) => {
                if spot.set != self.g0
                    && let Some(code) = code_in(self.g0, char)
                {
                    return self.out.push(code);
                }
                self.designate(spot.set);
                let bytes = spot.code.to_be_bytes();
                self.out.extend_from_slice(if spot.set == Set::Eacc {
                    &bytes[1..]
                } else {
                    &bytes[3..]
                });
            }
            Base::Plain(b'&') if marked && self.rules.references => self.reference('&'),
            Base::Plain(byte @ (0..=0x20 | 0x7f)) => {
                // In every set by the specification, but not for every reader.
                if self.g0 == Set::Eacc || self.g0.custom() {
                    self.designate(Set::Latin);
                }
                self.out.push(byte);
            }
            Base::Plain(byte) => {
                let code = code_in(self.g0, byte.into()).unwrap_or_else(|| {
                    self.designate(Set::Latin);
                    byte
                });
                self.out.push(code);
            }
            Base::Ampersand => self.reference('&'),
            Base::Missing(char) => match self.rules.unmappable {
                Unmappable::Reference => self.reference(char),
                Unmappable::Bar => {
                    self.designate(Set::Latin);
                    self.out.push(b'|');
                }
            },
        }
    }

    fn reference(&mut self, char: char) {
        self.designate(Set::Latin);
        self.out.extend_from_slice(format!("&#x{:04X};", char as u32).as_bytes());
    }

    fn designate(&mut self, set: Set) {
        if set == self.g0 {
            return;
        }
        // MARC's own sets are left by their own sequence, but only for Basic Latin: one program
        // (pymarc) misses an escape sequence right after it.
        let escape = if self.g0.custom() && set == Set::Latin { "s" } else { set.escape() };
        self.out.push(0x1b);
        self.out.extend_from_slice(escape.as_bytes());
        self.g0 = set;
        self.used.add(set);
    }
}

fn is_delimiter(char: char) -> bool {
    ('\x1d'..='\x1f').contains(&char)
}

/// Does nothing before `char` take part in its normalization?
fn begins(char: char) -> bool {
    canonical_combining_class(char) == 0 && is_nfc_quick(std::iter::once(char)) == IsNormalized::Yes
}

/// The second half of a mark over two letters.
fn second_half(mark: char) -> Option<u8> {
    match mark {
        '\u{361}' => Some(0xec),
        '\u{360}' => Some(0xfb),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
