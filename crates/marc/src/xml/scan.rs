//! Copying text up to the first byte that needs a look, sixteen bytes at a time.
//!
//! The tests on a word are the well-known ones ("determine if a word has a byte equal to / less
//! than n", S. E. Anderson, Bit Twiddling Hacks): a borrow can only run upwards, so the lowest byte
//! found is always a true one.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// High bits where a byte of `word` is `n`; exact up to the first.
#[inline(always)]
fn equal(word: u64, n: u8) -> u64 {
    let x = word ^ (ONES * n as u64);
    x.wrapping_sub(ONES) & !x & HIGH
}

/// High bits where a byte of `word` is a control character; exact up to the first.
#[inline(always)]
fn control(word: u64) -> u64 {
    word.wrapping_sub(ONES * 0x20) & !word & HIGH
}

#[inline(always)]
fn first(block: &[u8; 16], hits: impl Fn(u64) -> u64) -> usize {
    let (words, _) = block.as_chunks::<8>();
    let (low, high) = (hits(u64::from_le_bytes(words[0])), hits(u64::from_le_bytes(words[1])));
    let at = if low != 0 { low.trailing_zeros() } else { 64 + high.trailing_zeros() };
    (at / 8) as usize
}

/// The first byte that is more than text when read: `<`, `&` or a control character; 16 if none.
#[inline(always)]
pub(super) fn first_to_read(block: &[u8; 16]) -> usize {
    first(block, |w| equal(w, b'<') | equal(w, b'&') | control(w))
}

/// The first byte that is not written as it is: `<`, `>`, `&` or a control character; 16 if none.
#[inline(always)]
pub(super) fn first_to_write(block: &[u8; 16]) -> usize {
    // `<` and `>` differ in one bit.
    first(block, |w| equal(w | (ONES * 2), b'>') | equal(w, b'&') | control(w))
}

/// Sixteen bytes from `at` on, where there are as many.
#[inline(always)]
pub(super) fn block(bytes: &[u8], at: usize) -> Option<&[u8; 16]> {
    bytes.get(at..)?.first_chunk()
}

/// Copies from `from` to `to` up to the first byte that is more than text, or to where less than a
/// block is left on either side. Bytes behind the new end in `dst` may have been written over.
#[inline(always)]
pub(super) fn copy_text(
    src: &[u8],
    mut from: usize,
    dst: &mut [u8],
    mut to: usize,
) -> (usize, usize) {
    while let (Some(s), Some(d)) =
        (block(src, from), dst.get_mut(to..).and_then(|d| d.first_chunk_mut::<16>()))
    {
        *d = *s;
        let n = first_to_read(s);
        from += n;
        to += n;
        if n < 16 {
            break;
        }
    }
    (from, to)
}

/// True if `word` stands at `at`.
#[inline(always)]
pub(super) fn stands<const N: usize>(bytes: &[u8], at: usize, word: &[u8; N]) -> bool {
    bytes.get(at..).and_then(|b| b.first_chunk::<N>()) == Some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_first_of_any_byte_anywhere() {
        for byte in 0..=255u8 {
            for at in 0..16 {
                for behind in [b'<', 0, 0xff, b'x'] {
                    for before in [b'x', 0x80, 0xff, b'=', b'\'', b'?', 0x7f, 0x20] {
                        let mut block = [before; 16];
                        block[at] = byte;
                        block[at + 1..].fill(behind);
                        let want = |set: &[u8]| {
                            let hit = |b: &u8| *b < 0x20 || set.contains(b);
                            block.iter().position(hit).unwrap_or(16)
                        };
                        assert_eq!(first_to_read(&block), want(b"<&"), "{block:?}");
                        assert_eq!(first_to_write(&block), want(b"<>&"), "{block:?}");
                    }
                }
            }
        }
    }
}
