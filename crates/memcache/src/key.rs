//! Keys on the wire: nothing that a caller passes can become a command.
//!
//! A line of the protocol ends a key at a blank and a command at a line feed, and has room for 250
//! bytes of key. So a key is sent in one of three [`Form`]s: as it is, where it has no blank and no
//! control character; in Base64, which the server turns back (flag `b` of the meta commands), up to
//! 186 bytes; as a digest, where it is longer and the caller wants that. Any other is refused.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use sha2::{Digest, Sha256};

use crate::{Error, ErrorKind, Result};

/// The longest key on the wire, in bytes.
pub const LONGEST: usize = 250;
/// The longest key that fits there in Base64 (248 bytes then; 187 would be 252).
pub const LONGEST_CODED: usize = 186;
/// What a digest takes: `#` and 64 hexadecimal digits.
const DIGEST: usize = 65;

/// How a key is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As it is.
    Plain,
    /// In Base64.
    Coded,
    /// Its namespace, `#`, and its SHA-256.
    Hashed,
}

/// How keys are sent: with what before them, and whether long ones are digested.
#[derive(Debug, Clone, Default)]
pub struct Keys {
    namespace: Vec<u8>,
    hash_long: bool,
}

fn unsafe_byte(byte: &u8) -> bool {
    *byte <= b' ' || *byte == 0x7f
}

/// A key for people: as text, shortened.
pub(crate) fn shown(key: &[u8]) -> String {
    let text = String::from_utf8_lossy(key);
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{:?}…", &text[..at]),
        None => format!("{text:?}"),
    }
}

impl Keys {
    /// Keys with `namespace` before each.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) for a namespace of more than 150 bytes, or with a blank or a
    /// control character.
    pub fn new(namespace: &[u8], hash_long: bool) -> Result<Keys> {
        if namespace.len() > 150 || namespace.iter().any(unsafe_byte) {
            let shown = shown(namespace);
            return Err(Error::invalid(format!(
                "{shown} is not a valid namespace: at most 150 bytes, no spaces or control \
                 characters"
            )));
        }
        Ok(Keys { namespace: namespace.into(), hash_long })
    }

    /// How this key is sent.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) for an empty key, [`TooLarge`](ErrorKind::TooLarge) for one
    /// that is too long.
    #[inline]
    pub fn form(&self, key: &[u8]) -> Result<Form> {
        let length = self.namespace.len() + key.len();
        if !key.is_empty() && length <= LONGEST && !key.iter().any(unsafe_byte) {
            return Ok(Form::Plain);
        }
        self.odd(key, length)
    }

    #[cold]
    fn odd(&self, key: &[u8], length: usize) -> Result<Form> {
        if key.is_empty() {
            return Err(Error::invalid("the key is empty, which memcached does not allow"));
        }
        let coded = key.iter().any(unsafe_byte);
        if coded && length <= LONGEST_CODED {
            return Ok(Form::Coded);
        }
        if self.hash_long {
            return Ok(Form::Hashed);
        }
        let (most, why) = match coded {
            true => (LONGEST_CODED, ", as Base64 because of its spaces or control characters"),
            false => (LONGEST, ""),
        };
        Err(Error::new(
            ErrorKind::TooLarge,
            format!(
                "key {} has {length} bytes with its namespace; the limit is {most}{why}; \
                 hash_long_keys sends a digest instead",
                shown(key)
            ),
        ))
    }

    /// Appends the key as it is sent.
    #[inline]
    pub fn append(&self, form: Form, key: &[u8], out: &mut Vec<u8>) {
        match form {
            Form::Plain => {
                out.extend_from_slice(&self.namespace);
                out.extend_from_slice(key);
            }
            Form::Coded => {
                let whole = [&self.namespace, key].concat();
                let mut coded = [0; LONGEST];
                let length = BASE64.encode_slice(&whole, &mut coded).expect("186 bytes at most");
                out.extend_from_slice(&coded[..length]);
            }
            Form::Hashed => {
                const { assert!(150 + DIGEST <= LONGEST) };
                out.extend_from_slice(&self.namespace);
                out.push(b'#');
                for byte in Sha256::digest(key) {
                    let hex = b"0123456789abcdef";
                    out.extend([hex[usize::from(byte >> 4)], hex[usize::from(byte & 15)]]);
                }
            }
        }
    }

    /// What `key` has before it.
    pub fn namespace(&self) -> &[u8] {
        &self.namespace
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(keys: &Keys, key: &[u8]) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        let form = keys.form(key)?;
        keys.append(form, key, &mut out);
        Ok(out)
    }

    #[test]
    fn no_byte_can_end_a_key_or_a_line() {
        let keys = Keys::new(b"ns:", false).unwrap();
        for byte in 0..=255u8 {
            for key in [vec![byte], vec![b'a', byte, b'b'], [b"get x".as_slice(), &[byte]].concat()]
            {
                let wire = wire(&keys, &key).unwrap();
                assert!(!wire.is_empty() && wire.len() <= LONGEST);
                assert!(!wire.iter().any(unsafe_byte), "{key:?} is sent as {wire:?}");
            }
        }
    }

    #[test]
    fn lengths_count_with_the_namespace() {
        let plain = Keys::default();
        assert_eq!(wire(&plain, &[b'x'; 250]).unwrap().len(), 250);
        assert_eq!(wire(&plain, &[b' '; 186]).unwrap().len(), 248);
        for (keys, key) in [
            (&plain, vec![b'x'; 251]),
            (&plain, vec![b' '; 187]),
            (&Keys::new(b"ns:", false).unwrap(), vec![b'x'; 248]),
            (&plain, "ü".repeat(126).into_bytes()),
        ] {
            let error = wire(keys, &key).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
            assert!(error.to_string().contains("hash_long_keys"), "{error}");
        }
        assert_eq!(wire(&plain, b"").unwrap_err().kind(), ErrorKind::Invalid);
        let hashing = Keys::new(b"ns:", true).unwrap();
        assert_eq!(wire(&hashing, &[b'x'; 300]).unwrap().len(), 3 + DIGEST);
        assert_ne!(wire(&hashing, &[b'x'; 300]).unwrap(), wire(&hashing, &[b'x'; 301]).unwrap());
        assert!(Keys::new(b"a b", false).is_err());
    }
}
