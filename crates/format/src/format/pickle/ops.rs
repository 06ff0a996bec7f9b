//! The opcodes, what stands after each, and where a pickle ends.

use crate::{Error, Result};

macro_rules! opcodes {
    ($($code:literal $name:ident $after:ident $does:ident;)*) => {
        $(#[allow(dead_code)] pub(super) const $name: u8 = $code;)*

        /// What stands after the opcode with this byte, if it is one.
        const AFTER: [Option<After>; 256] = {
            let mut table = [None; 256];
            $(table[$code as usize] = Some(After::$after);)*
            table
        };

        /// The opcode with this byte.
        pub(super) fn find(code: u8) -> Option<Op> {
            match code {
                $($code => Some(Op { name: stringify!($name), does: Does::$does }),)*
                _ => None,
            }
        }
    };
}

/// An opcode.
pub(super) struct Op {
    pub name: &'static str,
    pub does: Does,
}

/// What stands after an opcode.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum After {
    /// So many bytes.
    B0,
    B1,
    B2,
    B4,
    B8,
    /// A length in so many bytes, and so many bytes more.
    L1,
    L4,
    L8,
    /// So many lines.
    Line,
    Lines,
}

/// What an opcode is for.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Does {
    /// Makes data.
    Data,
    /// Imports, calls or looks something up outside the pickle.
    Reach,
}

opcodes! {
    b'.' STOP B0 Data;
    b'(' MARK B0 Data;
    b'0' POP B0 Data;
    b'1' POP_MARK B0 Data;
    b'2' DUP B0 Data;
    b'N' NONE B0 Data;
    0x88 NEWTRUE B0 Data;
    0x89 NEWFALSE B0 Data;
    b'I' INT Line Data;
    b'L' LONG Line Data;
    b'F' FLOAT Line Data;
    b'S' STRING Line Data;
    b'V' UNICODE Line Data;
    b'J' BININT B4 Data;
    b'K' BININT1 B1 Data;
    b'M' BININT2 B2 Data;
    0x8a LONG1 L1 Data;
    0x8b LONG4 L4 Data;
    b'G' BINFLOAT B8 Data;
    b'T' BINSTRING L4 Data;
    b'U' SHORT_BINSTRING L1 Data;
    0x8c SHORT_BINUNICODE L1 Data;
    b'X' BINUNICODE L4 Data;
    0x8d BINUNICODE8 L8 Data;
    b'C' SHORT_BINBYTES L1 Data;
    b'B' BINBYTES L4 Data;
    0x8e BINBYTES8 L8 Data;
    0x96 BYTEARRAY8 L8 Data;
    b']' EMPTY_LIST B0 Data;
    b'a' APPEND B0 Data;
    b'e' APPENDS B0 Data;
    b'l' LIST B0 Data;
    b'}' EMPTY_DICT B0 Data;
    b'd' DICT B0 Data;
    b's' SETITEM B0 Data;
    b'u' SETITEMS B0 Data;
    b')' EMPTY_TUPLE B0 Data;
    b't' TUPLE B0 Data;
    0x85 TUPLE1 B0 Data;
    0x86 TUPLE2 B0 Data;
    0x87 TUPLE3 B0 Data;
    0x8f EMPTY_SET B0 Data;
    0x90 ADDITEMS B0 Data;
    0x91 FROZENSET B0 Data;
    b'g' GET Line Data;
    b'h' BINGET B1 Data;
    b'j' LONG_BINGET B4 Data;
    b'p' PUT Line Data;
    b'q' BINPUT B1 Data;
    b'r' LONG_BINPUT B4 Data;
    0x94 MEMOIZE B0 Data;
    0x80 PROTO B1 Data;
    0x95 FRAME B8 Data;
    b'c' GLOBAL Lines Reach;
    0x93 STACK_GLOBAL B0 Reach;
    b'R' REDUCE B0 Reach;
    b'b' BUILD B0 Reach;
    b'i' INST Lines Reach;
    b'o' OBJ B0 Reach;
    0x81 NEWOBJ B0 Reach;
    0x92 NEWOBJ_EX B0 Reach;
    0x82 EXT1 B1 Reach;
    0x83 EXT2 B2 Reach;
    0x84 EXT4 B4 Reach;
    b'P' PERSID Line Reach;
    b'Q' BINPERSID B0 Reach;
    0x97 NEXT_BUFFER B0 Reach;
    0x98 READONLY_BUFFER B0 Reach;
}

/// Why what the opcode at `at` names is not called.
#[cold]
pub(super) fn refused_name(code: u8, at: usize, module: &[u8], name: &[u8]) -> Error {
    let [module, name] = [module, name].map(|n| String::from_utf8_lossy(n).into_owned());
    Error::unsupported(format!(
        "the opcode {} would import {}.{}; of classes, only datetime, date, timezone, timedelta and \
         Decimal are read: turn other objects into dicts, lists and text in Python first",
        find(code).map_or("?", |op| op.name),
        module.escape_debug(),
        name.escape_debug(),
    ))
    .at(at as u64)
}

/// Why the byte at `at` cannot be run.
#[cold]
pub(super) fn refused(code: u8, at: usize) -> Error {
    let error = match find(code) {
        Some(Op { name, does: Does::Reach, .. }) => Error::unsupported(format!(
            "the opcode {name} would reach outside the pickle (import, call or look something up); \
             only data is read: turn objects into dicts, lists and text in Python first"
        )),
        Some(Op { name, .. }) => Error::malformed(format!("the opcode {name} is not expected")),
        None => Error::malformed(format!("{code:#04x} is not a pickle opcode")),
    };
    error.at(at as u64)
}

/// Where the first pickle in `bytes` ends; none where more bytes are needed to tell.
pub(super) fn length(bytes: &[u8]) -> Result<Option<usize>> {
    let mut pos = 0;
    while let Some(&code) = bytes.get(pos) {
        let rest = &bytes[pos + 1..];
        let size = match (code, rest.first()) {
            // Most are these.
            (SHORT_BINUNICODE, Some(&len)) => Some(1 + usize::from(len)),
            (STOP, _) => return Ok(Some(pos + 1)),
            _ => match AFTER[usize::from(code)] {
                Some(After::B0) => Some(0),
                Some(After::B1) => Some(1),
                Some(after) => size_of(after, rest),
                None => return Err(refused(code, pos)),
            },
        };
        match size {
            Some(size) if size <= rest.len() => pos += 1 + size,
            _ => return Ok(None),
        }
    }
    Ok(None)
}

/// How many bytes belong to an opcode, of those after it; none where they end too early to tell.
fn size_of(after: After, rest: &[u8]) -> Option<usize> {
    let sized = |n: usize| {
        let mut wide = [0; 8];
        wide[..n].copy_from_slice(rest.get(..n)?);
        usize::try_from(u64::from_le_bytes(wide)).ok()?.checked_add(n)
    };
    let line = |from: usize| Some(memchr::memchr(b'\n', rest.get(from..)?)? + from + 1);
    match after {
        After::B0 => Some(0),
        After::B1 => Some(1),
        After::B2 => Some(2),
        After::B4 => Some(4),
        After::B8 => Some(8),
        After::L1 => sized(1),
        After::L4 => sized(4),
        After::L8 => sized(8),
        After::Line => line(0),
        After::Lines => line(0).and_then(line),
    }
}
