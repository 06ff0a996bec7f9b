//! What is wrong with a record, and what was done about it.

use std::fmt;

use serde::Serialize;

/// How bad a [`Trouble`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Odd, but met in good files; nothing was changed.
    Note,
    /// The record contradicts itself; it was read in the only way that makes sense.
    Repaired,
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
    Junk "junk-between-records" Note "bytes between records, skipped";
    EntryMap "entry-map" Note "leader 20-23 is not 4500; the directory was read as it is";
    IndicatorCount "indicator-count" Note "leader 10 or 11 is not 2";
    OddTag "odd-tag" Note "a tag that is not three letters or digits";
    OddCode "odd-subfield-code" Note "a subfield code that is not a letter, digit or punctuation mark";
    Control "control-character" Note "a control character in text";
    Sequence "directory-order" Note "the directory does not follow the order of the data";
    NoText "empty-field" Note "a field with nothing in it";
    Encoding "encoding-mark" Note "leader 9 and the bytes disagree about the encoding; the bytes were believed";
    Shape "field-shape" Note "a field that is not what its tag says; kept as it is";
    Oversized "oversized" Note "over 99,999 bytes or a field over 9,999: read by its terminators";
    RecordLength "record-length" Repaired "the length in the leader is wrong; the record was cut at its terminator";
    BaseAddress "base-address" Repaired "the base address in the leader is wrong; the end of the directory was searched";
    DirectoryEntry "directory-entry" Repaired "a directory entry is not what its field says; the field was cut at its terminators";
    DirectoryLength "directory-length" Repaired "the directory is not a whole number of entries";
    FieldEnd "field-end" Repaired "a field does not end with its terminator, or has one inside";
    Indicators "indicators" Repaired "a field has not exactly two indicators; kept as plain text";
    ControlSubfields "subfields-in-control-field" Repaired "a control field has subfields; kept as plain text";
    Leader "leader" Repaired "the leader is damaged";
    BadText "bad-encoding" Repaired "bytes that are not text in the record's encoding; kept as they are";
    Tag "tag" Repaired "a tag that is not three bytes; padded with blanks or cut";
    Code "subfield-code" Repaired "a subfield whose code is not one character";
    Markup "markup" Repaired "a reference or sign that means nothing here; kept as written";
    Replaced "replaced" Lost "a character that cannot stand here; U+FFFD was put in its place";
    Skipped "skipped" Lost "an element, a line or text that has no place in a record; left out";
    Truncated "truncated" Lost "the file ends inside the record";
    NoDirectory "no-directory" Lost "no directory to tell the fields by";
    FieldLost "field-lost" Lost "a directory entry points outside the record; that field was left out";
    Unreadable "unreadable" Lost "not a record";
    Syntax "syntax" Lost "not well-formed";
}

impl Serialize for TroubleKind {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.name())
    }
}

/// One thing wrong with one record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Trouble {
    /// What kind of trouble.
    pub kind: TroubleKind,
    /// The record's number in the file, from 1.
    pub record: u64,
    /// Byte offset in the (uncompressed) file.
    pub offset: u64,
    /// The facts of this case: what was said, what was found.
    pub detail: String,
}

impl Trouble {
    /// A trouble at `offset`, relative to whatever the caller counts from.
    pub fn new(kind: TroubleKind, offset: usize, detail: impl Into<String>) -> Self {
        Trouble { kind, record: 0, offset: offset as u64, detail: detail.into() }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {}, byte {}: {}", self.record, self.offset, self.kind.name())?;
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        Ok(())
    }
}
