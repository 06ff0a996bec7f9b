//! The faults of MARC-8 bytes.

use std::fmt;

use super::Set;

/// One thing wrong with MARC-8 bytes. What was read is in the output all the same, in the form that
/// [`Unmapped`](super::Unmapped) says, or as each kind says here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// The set has no character at this code.
    Byte {
        /// The set designated where the byte stood.
        set: Set,
        /// The byte.
        byte: u8,
    },
    /// EACC has no character at this code.
    Triple([u8; 3]),
    /// An EACC character of fewer than three bytes; reading goes on after the bytes it has.
    CutTriple,
    /// An escape sequence to no known set, or one cut short. The escape character is taken as a byte
    /// without a character, what follows it as text.
    Escape,
    /// A mark with no letter after it; kept where it stood, at the end of the subfield.
    LoneMark,
    /// Half of a mark over two letters without its other half on the next letter; kept as the Unicode
    /// half mark, U+FE20 to U+FE23.
    LoneHalf,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Byte { set, byte } => write!(f, "no character at 0x{byte:02X} in {set}"),
            Fault::Triple([a, b, c]) => write!(f, "no EACC character at {a:02X}{b:02X}{c:02X}"),
            Fault::CutTriple => f.write_str("an EACC character of fewer than three bytes"),
            Fault::Escape => f.write_str("an escape sequence to no known character set"),
            Fault::LoneMark => f.write_str("a combining mark with no letter after it"),
            Fault::LoneHalf => f.write_str("half of a mark over two letters without the other"),
        }
    }
}
