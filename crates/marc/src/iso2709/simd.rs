//! Finding the delimiters 0x1D, 0x1E and 0x1F, 64 bytes at a time. The only `unsafe` of the room.
//!
//! Why: an ISO 2709 reader does little else than find these three bytes. Measured on real records,
//! one core: 1.3 GB/s byte by byte, 5 GB/s with AVX2, 8 GB/s with AVX-512 (`cargo bench --bench
//! marc`). What is unsafe is calling code for instructions that were found at run time, and loading
//! and storing through pointers; every path is checked against [`portable`]. Miri knows AVX2 but not
//! AVX-512: `RUSTFLAGS="-C target-feature=+avx2,+bmi1,+popcnt" cargo +nightly miri test --lib simd`.
//!
//! This file knows nothing of MARC beyond the three bytes.

/// A way to append the positions of all delimiters in `data` to `out`.
pub(crate) type Index = fn(data: &[u8], out: &mut Vec<u32>);

/// The paths this machine can take, the fastest first, each with its name.
pub(crate) fn paths() -> Vec<(&'static str, Index)> {
    let mut paths: Vec<(&'static str, Index)> = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        if x86::has_avx512() {
            paths.push(("avx512", x86::avx512));
        }
        if x86::has_avx2() {
            paths.push(("avx2", x86::avx2));
        }
    }
    paths.push(("portable", portable));
    paths
}

/// The fastest path of this machine, found once. `STEELYARD_SIMD=portable|avx2` asks for another,
/// for measuring.
pub(crate) fn best() -> Index {
    static BEST: std::sync::OnceLock<Index> = std::sync::OnceLock::new();
    *BEST.get_or_init(|| {
        let asked = std::env::var("STEELYARD_SIMD").ok();
        let paths = paths();
        let found = paths.iter().find(|(name, _)| asked.as_deref() == Some(name));
        found.unwrap_or(&paths[0]).1
    })
}

/// Eight bytes at a time, on any machine.
pub(crate) fn portable(data: &[u8], out: &mut Vec<u32>) {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let mut at = 0;
    let mut words = data.chunks_exact(8);
    for word in &mut words {
        let word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
        // Zero in each byte of the form 0b000111xx; no byte can be 1, so the borrow of the
        // subtraction never reports a byte that is not zero.
        let odd = (word & (0xfc * ONES)) ^ (0x1c * ONES);
        let mut hits = odd.wrapping_sub(ONES) & !odd & (0x80 * ONES);
        while hits != 0 {
            let position = at + (hits.trailing_zeros() / 8) as usize;
            if data[position] != 0x1c {
                out.push(position as u32);
            }
            hits &= hits - 1;
        }
        at += 8;
    }
    tail(words.remainder(), at, out);
}

fn tail(rest: &[u8], at: usize, out: &mut Vec<u32>) {
    let hits = rest.iter().enumerate().filter(|(_, b)| (0x1d..=0x1f).contains(*b));
    out.extend(hits.map(|(i, _)| (at + i) as u32));
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    pub(super) fn has_avx512() -> bool {
        !cfg!(miri)
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vbmi2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("popcnt")
    }

    pub(super) fn has_avx2() -> bool {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("popcnt")
    }

    pub(super) fn avx2(data: &[u8], out: &mut Vec<u32>) {
        debug_assert!(has_avx2());
        // SAFETY: `paths` hands this function out only where AVX2 was found.
        unsafe { index_avx2(data, out) }
    }

    pub(super) fn avx512(data: &[u8], out: &mut Vec<u32>) {
        debug_assert!(has_avx512());
        // SAFETY: `paths` hands this function out only where these instructions were found.
        unsafe { index_avx512(data, out) }
    }

    /// The most positions one block of 64 bytes can give, and what the stores may overshoot by.
    const ROOM: usize = 64 + 16;

    #[target_feature(enable = "avx2,bmi1,popcnt")]
    fn index_avx2(data: &[u8], out: &mut Vec<u32>) {
        let first = _mm256_set1_epi8(0x1d);
        let two = _mm256_set1_epi8(2);
        let mut blocks = data.chunks_exact(64);
        let mut at = 0u32;
        for block in &mut blocks {
            let mask = |half: &[u8]| {
                // SAFETY: each half of a block of 64 is 32 bytes; the load needs no alignment.
                let bytes = unsafe { _mm256_loadu_si256(half.as_ptr().cast()) };
                let bytes = _mm256_sub_epi8(bytes, first);
                let hit = _mm256_cmpeq_epi8(_mm256_min_epu8(bytes, two), bytes);
                u64::from(_mm256_movemask_epi8(hit) as u32)
            };
            let (low, high) = block.split_at(32);
            let mut hits = mask(low) | mask(high) << 32;
            let count = hits.count_ones() as usize;
            out.reserve(ROOM);
            let len = out.len();
            // SAFETY: `reserve` made room for 64 + 16 more; at most 64 + 3 are stored, and the
            // length is set to those that were.
            unsafe {
                let to = out.as_mut_ptr().add(len);
                let mut k = 0;
                while k < count {
                    // Four at a time without a branch between them; those beyond `count` are
                    // overwritten by the next block.
                    for j in 0..4 {
                        *to.add(k + j) = at.wrapping_add(hits.trailing_zeros());
                        hits &= hits.wrapping_sub(1);
                    }
                    k += 4;
                }
                out.set_len(len + count);
            }
            at += 64;
        }
        super::tail(blocks.remainder(), at as usize, out);
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt,bmi1")]
    fn index_avx512(data: &[u8], out: &mut Vec<u32>) {
        const NUMBERS: [u8; 64] = {
            let mut n = [0; 64];
            let mut i = 0;
            while i < 64 {
                n[i] = i as u8;
                i += 1;
            }
            n
        };
        let first = _mm512_set1_epi8(0x1d);
        let two = _mm512_set1_epi8(2);
        // SAFETY: the table is 64 bytes; the load needs no alignment.
        let numbers = unsafe { _mm512_loadu_si512(NUMBERS.as_ptr().cast()) };
        let mut blocks = data.chunks_exact(64);
        let mut at = 0u32;
        for block in &mut blocks {
            // SAFETY: a block is 64 bytes; the load needs no alignment.
            let bytes = unsafe { _mm512_loadu_si512(block.as_ptr().cast()) };
            let hits = _mm512_cmple_epu8_mask(_mm512_sub_epi8(bytes, first), two);
            let count = hits.count_ones() as usize;
            let packed = _mm512_maskz_compress_epi8(hits, numbers);
            let base = _mm512_set1_epi32(at as i32);
            out.reserve(ROOM);
            let len = out.len();
            // SAFETY: `reserve` made room for 80 more; each store writes 16, the last of at most
            // four beginning at 48, and the length is set to the positions that are real.
            unsafe {
                let to = out.as_mut_ptr().add(len);
                let store = |k: usize, part: __m128i| {
                    let wide = _mm512_add_epi32(_mm512_cvtepu8_epi32(part), base);
                    _mm512_storeu_si512(to.add(k).cast(), wide);
                };
                store(0, _mm512_castsi512_si128(packed));
                if count > 16 {
                    store(16, _mm512_extracti32x4_epi32::<1>(packed));
                    store(32, _mm512_extracti32x4_epi32::<2>(packed));
                    store(48, _mm512_extracti32x4_epi32::<3>(packed));
                }
                out.set_len(len + count);
            }
            at += 64;
        }
        super::tail(blocks.remainder(), at as usize, out);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plain(data: &[u8]) -> Vec<u32> {
        (0..data.len() as u32).filter(|&i| (0x1d..=0x1f).contains(&data[i as usize])).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]
        #[test]
        fn every_path_finds_every_delimiter(
            data in prop::collection::vec(prop_oneof![0x1bu8..0x21, any::<u8>(), Just(0x1f), Just(0x9d)], 0..400)
        ) {
            for (name, index) in paths() {
                let mut out = vec![7];
                index(&data, &mut out);
                prop_assert_eq!(&out[1..], &plain(&data)[..], "{}", name);
            }
        }
    }

    #[test]
    fn nothing_but_delimiters() {
        for n in [0, 1, 63, 64, 65, 640] {
            let data = vec![0x1f; n];
            for (name, index) in paths() {
                let mut out = Vec::new();
                index(&data, &mut out);
                assert_eq!(out, plain(&data), "{name}");
            }
        }
    }
}
