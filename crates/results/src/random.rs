//! Seeded randomness for schedules, resampling and simulated noise.

use rand_pcg::{
    Pcg64Mcg,
    rand_core::{Rng, SeedableRng},
};

/// A seeded source: the same seed gives the same numbers on every machine.
#[derive(Debug, Clone)]
pub struct Random(Pcg64Mcg);

impl Random {
    /// A source that follows from `seed` alone.
    pub fn new(seed: u64) -> Self {
        Random(Pcg64Mcg::seed_from_u64(seed))
    }

    /// A whole number in `0..n`; 0 where n is 0.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        // Multiply and shift: biased by less than n / 2^64.
        ((u128::from(self.0.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// A number in `0.0..1.0`.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A standard normal number (Box and Muller 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// An exponential number with mean 1: the gap between two arrivals that know nothing of each other.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }

    /// Shuffles in place (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_seeded_and_has_the_moments() {
        let mut a = Random::new(1);
        let mut b = Random::new(1);
        assert_eq!(a.below(1000), b.below(1000));
        assert_ne!(Random::new(2).below(u64::MAX), Random::new(3).below(u64::MAX));
        let (mut sum, mut square, mut gaps) = (0.0, 0.0, 0.0);
        for _ in 0..20_000 {
            let z = a.normal();
            sum += z;
            square += z * z;
            gaps += a.exponential();
        }
        assert!((sum / 2e4).abs() < 0.03 && (square / 2e4 - 1.0).abs() < 0.05);
        assert!((gaps / 2e4 - 1.0).abs() < 0.03);
        let mut order: Vec<u32> = (0..50).collect();
        a.shuffle(&mut order);
        assert_ne!(order, (0..50).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..50).collect::<Vec<_>>());
    }
}
