//! What is wrong with a record, and what was done about it.

use std::{borrow::Cow, fmt, fmt::Write};

use serde::{Serialize, Serializer, ser::SerializeStruct};

use crate::error::{cut, gives_orders};

/// How bad a [`Trouble`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Odd, but met in good files; nothing was changed.
    Note,
    /// The record contradicts itself; it was read in the only way that makes sense, so that a copy is right.
    Repaired,
    /// Something is wrong that nobody can mend: it is kept as it is, so that a copy is wrong, too.
    Kept,
    /// Something was left out, or the record could not be read at all.
    Lost,
}

macro_rules! kinds {
    ($($kind:ident $name:literal $severity:ident $meaning:literal;)*) => {
        /// The kinds of trouble, each with a short name, a severity and a meaning.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum TroubleKind { $(#[doc = $meaning] $kind,)* }

        impl TroubleKind {
            /// Every kind.
            pub const ALL: &[TroubleKind] = &[$(TroubleKind::$kind),*];
            /// The short name, as `check` prints it.
            pub fn name(self) -> &'static str { match self { $(TroubleKind::$kind => $name,)* } }
            /// How bad it is.
            pub fn severity(self) -> Severity { match self { $(TroubleKind::$kind => Severity::$severity,)* } }
            /// What it means and what was done.
            pub fn meaning(self) -> &'static str { match self { $(TroubleKind::$kind => $meaning,)* } }
        }
    };
}

kinds! {
    EntryMap "entry-map" Note "leader 20-23 is not 4500; the directory was read as it is";
    IndicatorCount "indicator-count" Note "leader 10 or 11 is not 2";
    OddTag "odd-tag" Note "a tag that is not three letters or digits";
    OddCode "odd-subfield-code" Note "a subfield code that is not a letter, digit or punctuation mark";
    Control "control-character" Note "a control character in text";
    Sequence "directory-order" Note "the directory does not follow the order of the data";
    NoText "empty-field" Note "an empty field";
    Encoding "encoding-mark" Note "leader 9 and the text disagree about the encoding; the leader \
                                   was ignored";
    Shape "field-shape" Note "a control field with the tag of a data field, or the reverse; kept \
                              as it is";
    Oversized "oversized" Note "over 99,999 bytes or a field over 9,999: read by its terminators";
    Padding "padding" Note "up to 64 KiB of zeros after the last record; skipped";
    Junk "junk-between-records" Repaired "bytes between records; skipped";
    RecordLength "record-length" Repaired "the length in the leader is wrong; the record was cut at its terminator";
    BaseAddress "base-address" Repaired "the base address in the leader is wrong; the end of the \
                                         directory was used";
    DirectoryEntry "directory-entry" Repaired "a directory entry is not what its field says; the field was cut at its terminators";
    DirectoryLength "directory-length" Repaired "the directory is not a whole number of entries";
    Indicator "indicator" Repaired "an indicator is missing or is not one character; a blank was used, or it was cut";
    Reference "reference" Repaired "a character that MARC-8 does not have; written as &#x4E00;, as the Library of \
                                    Congress does";
    Leader "leader" Repaired "the leader is damaged";
    Tag "tag" Repaired "a tag that is not three bytes; padded with blanks or cut";
    Code "subfield-code" Repaired "a subfield whose code is not one character";
    FieldEnd "field-end" Kept "a field does not end with its terminator, or has one inside; kept as it is";
    Indicators "indicators" Kept "a field has not exactly two indicators; kept as plain text";
    ControlSubfields "subfields-in-control-field" Kept "a control field has subfields; kept as plain text";
    TooLong "too-long" Kept "too long for ISO 2709: written with zeros for the length, which few programs read";
    BadText "bad-encoding" Kept "bytes that are not text in the record's encoding; kept as they are";
    Markup "markup" Kept "an unknown reference or escape; kept as written";
    Replaced "replaced" Lost "a byte or character that is not allowed here; replaced by U+FFFD, in leader and tags by ?";
    Skipped "skipped" Lost "an element, a line or text that does not belong in a record; dropped";
    Truncated "truncated" Lost "the file ends, or another record begins, inside the record";
    NoDirectory "no-directory" Lost "no directory, so the fields cannot be found";
    FieldLost "field-lost" Lost "a directory entry points outside the record; that field was \
                                 dropped";
    Overlap "overlapping-fields" Lost "overlapping directory entries claim more bytes than the \
                                       record has; the rest were dropped";
    NoFields "no-fields" Lost "a record without any field";
    Unreadable "unreadable" Lost "not a record";
    Syntax "syntax" Lost "not well-formed";
}

impl TroubleKind {
    /// True for what is odd, or wrong in the text of a field or in its shape: it is kept as it is, so that a
    /// copy of the record has it too. What is wrong in a record's layout is mended by writing it anew.
    pub fn stays(self) -> bool {
        matches!(self.severity(), Severity::Note | Severity::Kept)
    }
}

impl Serialize for Severity {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(match self {
            Severity::Note => "note",
            Severity::Repaired => "repaired",
            Severity::Kept => "kept",
            Severity::Lost => "lost",
        })
    }
}

impl Serialize for TroubleKind {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.name())
    }
}

/// One thing wrong with one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// What kind of trouble.
    pub kind: TroubleKind,
    /// The record's number in the file, from 1; 0 where it is about the file.
    pub record: u64,
    /// Byte offset in the (uncompressed) file.
    pub offset: u64,
    /// The facts of this case: what was said, what was found. Of a [`new`](Trouble::new) one they can be shown:
    /// bytes of the record that a terminal would take for an order are escaped in them.
    pub detail: String,
}

// By hand, as deriving would cost every user of this crate a compiler of macros.
impl Serialize for Trouble {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut fields = s.serialize_struct("Trouble", 4)?;
        fields.serialize_field("kind", &self.kind)?;
        fields.serialize_field("record", &self.record)?;
        fields.serialize_field("offset", &self.offset)?;
        fields.serialize_field("detail", &self.detail)?;
        fields.end()
    }
}

impl Trouble {
    /// A trouble at `offset`, relative to whatever the caller counts from.
    pub fn new(kind: TroubleKind, offset: usize, detail: impl Into<String>) -> Self {
        let mut detail = detail.into();
        if let Cow::Owned(short) = cut(&detail) {
            detail = short;
        }
        if let Cow::Owned(escaped) = escaped(&detail) {
            detail = escaped;
        }
        Trouble { kind, record: 0, offset: offset as u64, detail }
    }

    /// The kind and the facts, without the place, in one line that can be shown.
    pub fn told(&self) -> String {
        match self.detail.as_str() {
            "" => self.kind.name().into(),
            // Again, as anybody can put together a trouble of another detail.
            detail => format!("{}: {}", self.kind.name(), escaped(detail)),
        }
    }
}

/// A text with `\u{1b}` for what gives orders to a terminal or turns text around: control characters, and those
/// that set the direction of writing or cannot be seen. What is escaped stays as it is.
fn escaped(text: &str) -> Cow<'_, str> {
    let odd = |c: char| {
        gives_orders(c)
            || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}')
            || matches!(c, '\u{206a}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
            || matches!(c, '\u{e0000}'..='\u{e007f}')
    };
    if !text.contains(odd) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match odd(c) {
            true => {
                let _ = write!(out, "{}", c.escape_unicode());
            }
            false => out.push(c),
        }
    }
    out.into()
}

/// The worst of some troubles, the first of them: others often follow from it.
pub fn worst(troubles: &[Trouble]) -> Option<&Trouble> {
    troubles.iter().rev().max_by_key(|t| t.kind.severity())
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.record > 0 {
            write!(f, "record {}, ", self.record)?;
        }
        write!(f, "byte {}: {}", self.offset, self.told())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_shown_gives_orders_to_a_terminal() {
        let hostile = ["\u{1b}[2", "a\rb", "\u{9b}2J", "\u{202e}x", "\0\n\u{7f}", "\u{feff}"];
        for &kind in TroubleKind::ALL {
            for tag in hostile {
                let detail = format!("field {tag} of é");
                let made = Trouble::new(kind, 7, &*detail);
                let literal = Trouble { kind, record: 0, offset: 7, detail };
                assert_eq!(made.told(), literal.told());
                for shown in [&made.detail, &made.told(), &made.to_string(), &literal.to_string()] {
                    let odd = shown
                        .chars()
                        .find(|c| c.is_control() || hostile.concat().contains(*c) && !c.is_ascii());
                    assert_eq!(odd, None, "{shown:?}");
                    assert!(shown.contains('é'), "{shown:?}");
                }
                assert_eq!(escaped(&made.detail), made.detail, "once is enough");
            }
        }
    }
}
