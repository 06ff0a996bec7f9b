//! Values written by other clients, decoded by their flags.
//!
//! - pymemcache 4 (`pymemcache/serde.py`) and pylibmc 1.6 (`_pylibmcmodule.h`), which follow
//!   python-memcached: 1 pickle, 2 and 4 whole numbers, 8 zlib, 16 text, 0 bytes. pylibmc has truth
//!   under 2, as 1 and 0; numbers under 4.
//! - Dalli (`value_serializer.rb`, `value_compressor.rb`): 1 Marshal, 2 zlib, 0 text or bytes. Later
//!   versions mark text in UTF-8 with 2 as well, uncompressed: what is no zlib stream is text.

use serde::de::{DeserializeOwned, IntoDeserializer, value::BytesDeserializer};

use super::{compress::inflate, value::Value};
use crate::{Error, Result, format::Format};

/// A client whose values can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Foreign {
    /// pymemcache, with its `python_memcache_serializer` or `compressed_serde`.
    Pymemcache,
    /// pylibmc.
    Pylibmc,
    /// Dalli, with Marshal.
    Dalli,
}

const PICKLE: u32 = 1;
const INTEGER: u32 = 2;
const LONG: u32 = 4;
const PYTHON_ZLIB: u32 = 8;
const TEXT: u32 = 16;
const MARSHAL: u32 = 1;
const DALLI_ZLIB: u32 = 2;

impl Foreign {
    /// Reads a value of that client; `limit` bytes at most once it is unpacked.
    ///
    /// # Errors
    /// [`Malformed`](crate::ErrorKind::Malformed) where it is not what its flags say,
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for flags that are not known.
    pub fn read<T: DeserializeOwned>(self, value: &Value, limit: usize) -> Result<T> {
        match self {
            Foreign::Pymemcache | Foreign::Pylibmc => self.python(value, limit),
            Foreign::Dalli => {
                let bytes = &value.bytes;
                let unpacked;
                // The first two bytes of a zlib stream: deflate, and a check.
                let zlib = bytes.len() > 2
                    && bytes[0] & 15 == 8
                    && (usize::from(bytes[0]) << 8 | usize::from(bytes[1])).is_multiple_of(31);
                let bytes = match value.flags & DALLI_ZLIB != 0 && zlib {
                    true => {
                        unpacked = inflate(bytes, limit)?;
                        &unpacked
                    }
                    false => bytes,
                };
                match value.flags {
                    flags if flags & !(MARSHAL | DALLI_ZLIB) != 0 => Err(unknown(flags)),
                    flags if flags & MARSHAL != 0 => Format::Marshal.decode(bytes),
                    _ => plain(bytes),
                }
            }
        }
    }

    fn python<T: DeserializeOwned>(self, value: &Value, limit: usize) -> Result<T> {
        let unpacked;
        let bytes = match value.flags & PYTHON_ZLIB {
            0 => &value.bytes,
            _ => {
                unpacked = inflate(&value.bytes, limit)?;
                &unpacked
            }
        };
        let text = || {
            std::str::from_utf8(bytes)
                .map_err(|_| Error::malformed("the value is marked as text, but is not UTF-8"))
        };
        match value.flags & !PYTHON_ZLIB {
            0 => T::deserialize(BytesDeserializer::<Error>::new(bytes)),
            PICKLE => Format::Pickle.decode(bytes),
            TEXT => T::deserialize(text()?.into_deserializer()),
            INTEGER if self == Foreign::Pylibmc && (bytes == b"1" || bytes == b"0") => {
                T::deserialize((bytes == b"1").into_deserializer())
            }
            INTEGER | LONG => {
                let text = text()?;
                match text.parse::<i64>() {
                    Ok(number) => T::deserialize(number.into_deserializer()),
                    // More than 64 bits: its digits.
                    Err(_) => T::deserialize(text.into_deserializer()),
                }
            }
            flags => Err(unknown(flags)),
        }
    }
}

/// Text where it is, bytes where not.
fn plain<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    match std::str::from_utf8(bytes) {
        Ok(text) => T::deserialize(text.into_deserializer()),
        Err(_) => T::deserialize(BytesDeserializer::<Error>::new(bytes)),
    }
}

fn unknown(flags: u32) -> Error {
    Error::unsupported(format!("the value has flags {flags}, which that client does not have"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use steelyard_format::record::Value as Any;

    /// What the clients themselves have stored.
    #[test]
    fn values_of_other_clients_are_read() {
        let pickle: &[u8] = b"\x80\x05\x95\n\0\0\0\0\0\0\0}\x94\x8c\x01a\x94K\x01s.";
        let zlib = b"x\x9c\xed\xc11\x01\0\0\0\xc2\xa0\xda\x8bo\r\x0f\xa0\0\0\x80w\x03l\xe4~\x8c";
        let map = Any::Map([("a", Any::Int(1))].into_iter().collect());
        use Foreign::{Dalli, Pylibmc, Pymemcache};
        for (foreign, flags, bytes, want) in [
            (Pymemcache, 16, "é".as_bytes(), Any::from("é")),
            (Pymemcache, 0, b"\xff", Any::Bytes(vec![255])),
            (Pymemcache, 2, b"-5", Any::Int(-5)),
            (Pymemcache, 2, b"1180591620717411303424", Any::from("1180591620717411303424")),
            (Pymemcache, 1, b"\x80\x05\x88.", Any::Bool(true)),
            (Pymemcache, 1, pickle, map.clone()),
            (Pymemcache, 24, zlib, Any::from("x".repeat(3000))),
            (Pylibmc, 2, b"1", Any::Bool(true)),
            (Pylibmc, 4, b"5", Any::Int(5)),
            (Pylibmc, 24, zlib, Any::from("x".repeat(3000))),
            (Dalli, 1, b"\x04\x08{\x06I\"\x06a\x06:\x06ETi\x06", map),
            (Dalli, 0, b"raw", Any::from("raw")),
            (Dalli, 2, "é".as_bytes(), Any::from("é")),
            (Dalli, 2, zlib, Any::from("x".repeat(3000))),
        ] {
            let value = Value { bytes: bytes.to_vec(), flags, cas: 0 };
            let read: Any = foreign.read(&value, 1 << 20).unwrap();
            assert_eq!(read, want, "{foreign:?} {flags}");
        }
        let value = Value { bytes: b"x".to_vec(), flags: 512, cas: 0 };
        assert!(Pymemcache.read::<Any>(&value, 9).is_err());
        assert!(Dalli.read::<Any>(&Value { flags: 8, ..value }, 9).is_err());
        let bomb = Value { bytes: zlib.to_vec(), flags: 24, cas: 0 };
        assert!(Pymemcache.read::<Any>(&bomb, 2999).is_err());
    }
}
