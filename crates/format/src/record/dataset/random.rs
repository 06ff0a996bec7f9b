//! Random numbers that are the same on every machine and in every version.
//!
//! The generator is PCG; everything drawn from it here is whole-number arithmetic or a single exact
//! multiplication, because a logarithm may differ in its last bit from one machine to the next. A
//! [`Random`] is made from what it is for, so record 1,000,000 needs none of those before it.

use rand_pcg::{Pcg64Mcg, rand_core::Rng};

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub struct Random(Pcg64Mcg);

impl Random {
    /// The stream of thing `number` of the dataset (or list, or purpose) `stream` under `seed`.
    pub fn new(seed: u64, stream: u64, number: u64) -> Self {
        let a = mix(seed ^ mix(stream));
        let b = mix(a ^ mix(number));
        Random(Pcg64Mcg::new(u128::from(a) << 64 | u128::from(b)))
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in `0..n`; 0 where `n` is 0. The bias is below `n / 2^32`.
    #[inline]
    pub fn below(&mut self, n: u32) -> u32 {
        ((u64::from(n) * (self.bits() >> 32)) >> 32) as u32
    }

    /// A number from `low` to `high`, both included.
    #[inline]
    pub fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// True in this share (0.0 to 1.0) of cases.
    #[inline]
    pub fn chance(&mut self, share: f64) -> bool {
        // Exact: a power of two times a float, compared with a whole number below 2^32.
        ((self.bits() >> 32) as f64) < share * 4_294_967_296.0
    }

    /// One of `choices`, each equally likely.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u32) as usize]
    }

    /// One of the texts between `|`, each equally likely.
    pub fn choose<'a>(&mut self, texts: &'a str) -> &'a str {
        let count = 1 + texts.bytes().filter(|b| *b == b'|').count();
        let at = self.below(count as u32) as usize;
        texts.split('|').nth(at).unwrap_or_default()
    }

    /// An index into `weights`, in proportion to them.
    pub fn weighted(&mut self, weights: impl Iterator<Item = u32> + Clone) -> usize {
        let total = weights.clone().sum();
        let mut left = self.below(total);
        for (i, weight) in weights.enumerate() {
            if left < weight {
                return i;
            }
            left -= weight;
        }
        0
    }

    /// A whole number at random with this mean: the one below or the one above.
    pub fn round(&mut self, mean: f64) -> u32 {
        let whole = mean as u32;
        whole + u32::from(self.chance(mean - f64::from(whole)))
    }

    /// A rank from 0, low ones more often: see [`Ranks`].
    #[inline]
    pub fn rank(&mut self, ranks: &Ranks) -> u32 {
        let bits = self.bits();
        let (high, low) = ((bits >> 32) as u32, bits & 0xffff_ffff);
        let octave = ranks.upto[..ranks.octaves - 1].iter().take_while(|&&u| high >= u).count();
        ((1 << octave) - 1) + ((low << octave) >> 32) as u32
    }
}

/// Scrambles a number so that neighbours have nothing in common (the finalizer of SplitMix64).
pub fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

/// A law by which few things are common and many are rare, in steps.
///
/// Octave *k* holds the 2^k ranks from 2^k - 1 on. Each octave is drawn `tilt` times as often as
/// the one before it, and the ranks in it equally. Tilt 1.0 is Zipf's law (as often as 1 / rank);
/// less makes the common things commoner. Words, names, headings and the number of copies of a
/// periodical all follow such a law.
#[derive(Debug, Clone, Copy)]
pub struct Ranks {
    upto: [u32; 24],
    octaves: usize,
}

impl Ranks {
    /// `octaves` (1 to 24) octaves, so 2^octaves - 1 ranks; `tilt` in thousandths.
    pub const fn new(octaves: usize, tilt: u64) -> Ranks {
        assert!(octaves >= 1 && octaves <= 24 && tilt >= 10 && tilt <= 2000);
        let mut weights = [0u64; 24];
        let (mut total, mut weight, mut k) = (0, 1u64 << 40, 0);
        while k < octaves {
            weights[k] = weight;
            total += weight;
            weight = weight / 1000 * tilt;
            k += 1;
        }
        let mut upto = [u32::MAX; 24];
        let (mut sum, mut k) = (0u128, 0);
        while k < octaves {
            sum += weights[k] as u128;
            upto[k] = (sum * u32::MAX as u128 / total as u128) as u32;
            k += 1;
        }
        Ranks { upto, octaves }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_to_its_ranges() {
        let mut random = Random::new(1, 2, 3);
        let few = Ranks::new(4, 1000);
        for _ in 0..10_000 {
            assert!(random.below(7) < 7);
            assert!((3..=5).contains(&random.between(3, 5)));
            assert!(random.rank(&few) < 15);
        }
        assert_eq!((random.below(0), random.between(4, 4)), (0, 4));
    }

    #[test]
    fn shares_and_ranks_are_as_asked() {
        let mut random = Random::new(7, 0, 0);
        let n = 100_000;
        let count = (0..n).filter(|_| random.chance(0.3)).count();
        assert!((29_000..31_000).contains(&count), "{count}");
        // Four octaves of a tilt of one: a quarter each; the first is rank 0 alone.
        let zipf = Ranks::new(4, 1000);
        let first = (0..n).filter(|_| random.rank(&zipf) == 0).count();
        assert!((24_000..26_000).contains(&first), "{first}");
        let steep = Ranks::new(2, 500);
        let first = (0..n).filter(|_| random.rank(&steep) == 0).count();
        assert!((65_000..68_000).contains(&first), "{first}");
        let sum: u32 = (0..n).map(|_| random.round(1.25)).sum();
        assert!((124_000..126_000).contains(&sum), "{sum}");
        let one = (0..n).filter(|_| random.weighted([1, 3].into_iter()) == 1).count();
        assert!((74_000..76_000).contains(&one), "{one}");
    }

    /// These numbers must never change: every generated dataset hangs on them.
    #[test]
    fn the_stream_is_pinned() {
        let mut random = Random::new(42, 1, 1_000_000);
        let got: Vec<_> = (0..4).map(|_| random.bits()).collect();
        assert_eq!(
            got,
            [
                2_702_304_120_096_686_428,
                3_383_467_024_852_317_994,
                8_537_701_035_252_134_260,
                16_747_063_740_249_212_352
            ]
        );
        assert_ne!(Random::new(42, 1, 0).bits(), Random::new(42, 2, 0).bits());
        assert_ne!(Random::new(42, 1, 0).bits(), Random::new(43, 1, 0).bits());
    }
}
