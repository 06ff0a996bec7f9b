//! Bytes nobody can guess, from the operating system.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use steelyard_base::{Error, ErrorKind, Result};

pub(crate) fn bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|e| Error::new(ErrorKind::Io, format!("no random bytes from the system: {e}")))?;
    Ok(bytes)
}

/// So many bytes, as lower-case hexadecimal digits.
pub(crate) fn hex<const N: usize>() -> Result<String> {
    Ok(as_hex(&bytes::<N>()?))
}

/// So many bytes, in the letters of URLs.
pub(crate) fn letters<const N: usize>() -> Result<String> {
    Ok(URL_SAFE_NO_PAD.encode(bytes::<N>()?))
}

pub(crate) fn as_hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
