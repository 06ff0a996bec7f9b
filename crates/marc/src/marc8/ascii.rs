//! Runs of bytes that are the same in MARC-8 and UTF-8.

const fn splat(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// The highest bit of every byte of `word` that is zero, and of none before the first such byte.
fn zeros(word: u64) -> u64 {
    word.wrapping_sub(splat(1)) & !word & splat(0x80)
}

/// The bytes of `word` that are not ASCII, by their highest bits.
fn high(word: u64) -> u64 {
    word & splat(0x80)
}

/// How many bytes from the start are ASCII, but neither the escape character nor `&`.
pub(super) fn plain(bytes: &[u8]) -> usize {
    let odd = |word| high(word) | zeros(word ^ splat(0x1b)) | zeros(word ^ splat(b'&'));
    until(bytes, odd, |b| b >= 0x80 || b == 0x1b || b == b'&')
}

/// How many bytes from the start are ASCII.
pub(super) fn run(bytes: &[u8]) -> usize {
    until(bytes, high, |b| b >= 0x80)
}

/// How many bytes from the start are not odd: eight at a time, told by the lowest bit that `odd_word`
/// sets, or one at a time.
fn until(bytes: &[u8], odd_word: impl Fn(u64) -> u64, odd: impl Fn(u8) -> bool) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    for (i, word) in words.iter().enumerate() {
        let bits = odd_word(u64::from_le_bytes(*word));
        if bits != 0 {
            return i * 8 + bits.trailing_zeros() as usize / 8;
        }
    }
    match bytes.last_chunk::<8>() {
        _ if rest.is_empty() => bytes.len(),
        // Some of these are known not to be odd, which does no harm.
        Some(last) => match odd_word(u64::from_le_bytes(*last)) {
            0 => bytes.len(),
            bits => bytes.len() - 8 + bits.trailing_zeros() as usize / 8,
        },
        None => rest.iter().position(|&b| odd(b)).unwrap_or(rest.len()),
    }
}

/// The character that a numeric reference (`&#x4E00;`, four to six digits) at the start of `bytes`
/// stands for, and the length of the reference. A delimiter is never written as one, so a reference
/// to one is text.
pub(super) fn reference(bytes: &[u8]) -> Option<(char, usize)> {
    let digits = bytes.strip_prefix(b"&#x")?;
    let len = digits.iter().take(7).take_while(|b| b.is_ascii_hexdigit()).count();
    if !(4..=6).contains(&len) || digits.get(len) != Some(&b';') {
        return None;
    }
    let code = digits[..len].iter().fold(0, |n, &b| n << 4 | (b as char).to_digit(16).unwrap_or(0));
    let char = char::from_u32(code).filter(|c| !('\x1d'..='\x1f').contains(c))?;
    Some((char, len + 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_runs_end_at_the_first_odd_byte() {
        for odd in (0u8..=255).filter(|b| *b >= 0x80 || [0x1b, b'&'].contains(b)) {
            for at in 0..40 {
                let mut bytes = vec![b'a'; 40];
                bytes[at] = odd;
                // What follows must not matter, nor a borrow from the byte before.
                bytes[(at + 1).min(39)] |= 0x80;
                assert_eq!(plain(&bytes), at);
                assert_eq!(run(&bytes), bytes.iter().position(|b| *b >= 0x80).unwrap_or(40));
            }
        }
        let all: Vec<u8> = (0..0x80).filter(|b| ![0x1b, b'&'].contains(b)).collect();
        assert_eq!(plain(&all), all.len());
        let pairs: Vec<u8> =
            all.iter().flat_map(|&a| all.iter().flat_map(move |&b| [a, b])).collect();
        assert_eq!(plain(&pairs), pairs.len());
    }

    #[test]
    fn references_are_four_to_six_digits_of_a_character() {
        assert_eq!(reference(b"&#x4E00;x"), Some(('一', 8)));
        assert_eq!(reference(b"&#x4e00;"), Some(('一', 8)));
        assert_eq!(reference(b"&#x0212C4;"), Some(('\u{212c4}', 10)));
        for text in [
            "&#x4E00",
            "&#xE9;",
            "&#x;",
            "&#x00004E00;",
            "&#xD800;",
            "&#x212A7E;",
            "&#x001F;",
            "&#4E00;",
            "&#x4E0G;",
        ] {
            assert_eq!(reference(text.as_bytes()), None, "{text}");
        }
    }
}
