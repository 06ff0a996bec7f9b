//! Base64 (RFC 4648): strict on one line, and in lines as Ruby's `[bytes].pack("m")` has it.

use base64::{Engine, engine::general_purpose::STANDARD};

use crate::{Error, ErrorKind, Result};

/// Bytes on a line of 60 characters.
const LINE: usize = 45;

pub(super) fn encode(bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    let length = base64::encoded_len(bytes.len(), true)
        .ok_or_else(|| Error::new(ErrorKind::TooLarge, "too large for base64"))?;
    out.resize(start + length, 0);
    STANDARD
        .encode_slice(bytes, &mut out[start..])
        .map(drop)
        .map_err(|e| Error::unsupported("cannot be base64").with_source(e))
}

pub(super) fn encode_lines(bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    out.reserve(bytes.len() / LINE * 61 + 61);
    for line in bytes.chunks(LINE) {
        encode(line, out)?;
        out.push(b'\n');
    }
    Ok(())
}

pub(super) fn decode(text: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    out.resize(start + base64::decoded_len_estimate(text.len()), 0);
    let length = STANDARD
        .decode_slice(text, &mut out[start..])
        .map_err(|e| Error::malformed("not base64").with_source(e))?;
    out.truncate(start + length);
    Ok(())
}

/// Takes lines of any length: only white space is passed over.
pub(super) fn decode_lines(text: &[u8], out: &mut Vec<u8>) -> Result<()> {
    // Whole groups of four, gathered on the stack; padding may only end the last.
    let mut gathered = [0; 1024];
    let mut count = 0;
    for &c in text {
        if c.is_ascii_whitespace() {
            continue;
        }
        if count == gathered.len() {
            decode_inner(&gathered, out)?;
            count = 0;
        }
        gathered[count] = c;
        count += 1;
    }
    decode(&gathered[..count], out)
}

fn decode_inner(text: &[u8], out: &mut Vec<u8>) -> Result<()> {
    match text.last() {
        Some(b'=') => Err(Error::malformed("not base64: padding before the end")),
        _ => decode(text, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_ruby() {
        // ruby -e 'print [(0..99).to_a.pack("C*")].pack("m")'
        let want = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKiss\n\
                    LS4vMDEyMzQ1Njc4OTo7PD0+P0BBQkNERUZHSElKS0xNTk9QUVJTVFVWV1hZ\n\
                    WltcXV5fYGFiYw==\n";
        let bytes: Vec<u8> = (0..100).collect();
        let mut text = Vec::new();
        encode_lines(&bytes, &mut text).unwrap();
        assert_eq!(std::str::from_utf8(&text).unwrap(), want);
    }

    #[test]
    fn both_come_back_and_refuse_what_they_are_not() {
        for size in [0, 1, 2, 3, 44, 45, 46, 767, 768, 769, 5000] {
            let bytes: Vec<u8> = (0..size).map(|i| (i * 7) as u8).collect();
            let (mut strict, mut lines) = (Vec::new(), Vec::new());
            encode(&bytes, &mut strict).unwrap();
            encode_lines(&bytes, &mut lines).unwrap();
            let mut back = b"x".to_vec();
            decode(&strict, &mut back).unwrap();
            decode_lines(&lines, &mut back).unwrap();
            decode_lines(&strict, &mut back).unwrap();
            assert_eq!(&back[1..], bytes.repeat(3));
        }
        for bad in [&b"A"[..], b"AAA", b"AA=A", b"A_==", b"AAAA\n", b"AB=="] {
            assert!(decode(bad, &mut Vec::new()).is_err(), "{}", bad.escape_ascii());
        }
        assert!(decode_lines(b"AA\n==\nAAAA", &mut Vec::new()).is_err());
    }
}
