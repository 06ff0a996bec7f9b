//! East Asian Character Code: 15,739 characters of three bytes, Chinese, Japanese and Korean.
//!
//! `eacc.bin` is written by `scripts/marc8_table.py`; numbers are little-endian:
//! - how many code points are beyond 16 bits, one byte, and those, three bytes each;
//! - 94 bytes: for first byte 0x21 to 0x7E, the number of its plane from 1, or 0;
//! - a plane after another, 94 offsets of two bytes each: where in the file the row of this second
//!   byte begins, or 0;
//! - rows: 12 bytes with a bit for each third byte from 0x20 that has a character, then the code
//!   points of those, two bytes each; 0xD800 + n stands for the nth code point beyond 16 bits.

static TABLE: &[u8] = include_bytes!("eacc.bin");

const WIDE: usize = TABLE[0] as usize;
const PLANES: usize = 1 + 3 * WIDE;
const ROWS: usize = PLANES + 94;

/// Characters of one vendor's system at codes that are no EACC codes. pymarc and MARC::Charset
/// read them too; they are never written.
const VENDOR: [([u8; 3], char); 6] = [
    (*b"\x21\x20\x3d", '…'),
    (*b"\x21\x20\x40", '“'),
    (*b"\x7f\x20\x14", '—'),
    (*b"\x7f\x20\x19", '’'),
    (*b"\x7f\x20\x20", '”'),
    (*b"\x7f\x21\x22", '™'),
];

fn u16_at(at: usize) -> u16 {
    u16::from_le_bytes([TABLE[at], TABLE[at + 1]])
}

fn wide(n: u16) -> char {
    let at = 1 + 3 * n as usize;
    let code = u32::from_le_bytes([TABLE[at], TABLE[at + 1], TABLE[at + 2], 0]);
    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Where the row of these two bytes begins.
fn row(a: u8, b: u8) -> Option<usize> {
    let (a, b) = (a.wrapping_sub(0x21) as usize, b.wrapping_sub(0x21) as usize);
    if a >= 94 || b >= 94 || TABLE[PLANES + a] == 0 {
        return None;
    }
    let plane = TABLE[PLANES + a] as usize - 1;
    match u16_at(ROWS + 2 * (94 * plane + b)) {
        0 => None,
        at => Some(at as usize),
    }
}

fn bits(row: usize) -> u128 {
    let mut bytes = [0; 16];
    bytes[..12].copy_from_slice(&TABLE[row..row + 12]);
    u128::from_le_bytes(bytes)
}

fn nth(row: usize, n: u32) -> char {
    let code = u16_at(row + 12 + 2 * n as usize);
    char::from_u32(code.into()).unwrap_or_else(|| wide(code - 0xd800))
}

/// The character of a code.
pub(super) fn get([a, b, c]: [u8; 3]) -> Option<char> {
    if let Some(row) = row(a, b) {
        let (bits, bit) = (bits(row), c.wrapping_sub(0x20));
        if bit < 95 && bits >> bit & 1 == 1 {
            return Some(nth(row, (bits & ((1 << bit) - 1)).count_ones()));
        }
    }
    VENDOR.iter().find(|(code, _)| *code == [a, b, c]).map(|(_, char)| *char)
}

/// Every code and its character, in the order of the codes; without the vendor's.
pub(super) fn all() -> impl Iterator<Item = ([u8; 3], char)> {
    let rows = (0x21..0x7f).flat_map(|a| (0x21..0x7f).map(move |b| (a, b)));
    rows.filter_map(|(a, b)| Some((a, b, row(a, b)?))).flat_map(|(a, b, row)| {
        let bits = bits(row);
        let set = (0x20..0x7f).filter(move |c| bits >> (c - 0x20) & 1 == 1);
        set.enumerate().map(move |(n, c)| ([a, b, c], nth(row, n as u32)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_found() {
        let mut count = 0;
        for (code, char) in all() {
            assert_eq!(get(code), Some(char), "{code:02x?}");
            assert_ne!(char, char::REPLACEMENT_CHARACTER);
            count += 1;
        }
        assert_eq!(count, 15_739);
    }

    #[test]
    fn known_characters() {
        assert_eq!(get(*b"\x21\x30\x21"), Some('一'));
        assert_eq!(get(*b"\x21\x30\x64"), Some('人'));
        assert_eq!(get(*b"\x69\x24\x22"), Some('あ'));
        assert_eq!(get(*b"\x21\x75\x59"), Some('\u{212c4}'));
        assert_eq!(get(*b"\x21\x23\x20"), Some('\u{3000}'));
        assert_eq!(get(*b"\x7f\x20\x14"), Some('—'));
    }

    #[test]
    fn no_code_is_out_of_bounds() {
        let found = (0x1f0000..0x820000).filter(|n: &u32| {
            let [_, a, b, c] = n.to_be_bytes();
            get([a, b, c]).is_some()
        });
        assert_eq!(found.count(), 15_739 + 6);
    }
}
