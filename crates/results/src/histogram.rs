//! Latencies in nanoseconds, to 3 significant digits, merged by addition (rule 12).
//!
//! A thin layer over `hdrhistogram`: percentiles come with the interval of their order statistics
//! and only where 10 samples lie beyond them (rule 16); what is stored is (value, count) pairs,
//! which any tool can read and add up.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use super::stats::{Quantile, quantile_ranks};

/// The longest latency told apart: an hour. Longer ones count as an hour.
const LONGEST: u64 = 3_600_000_000_000;

/// A histogram of latencies.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram(hdrhistogram::Histogram<u64>);

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty one. All memory is taken now, none while recording.
    pub fn new() -> Self {
        // The bounds are constants within the library's limits.
        Histogram(hdrhistogram::Histogram::new_with_bounds(1, LONGEST, 3).expect("constant bounds"))
    }

    /// An empty one that takes memory as longer latencies come, a few times at the beginning: for
    /// many side by side.
    pub fn growing() -> Self {
        // Three digits are within the library's limits.
        Histogram(hdrhistogram::Histogram::new(3).expect("three digits"))
    }

    /// Counts one latency in nanoseconds.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        // Within its bounds, or it grows: it always fits.
        let _ = self.0.record(ns.min(LONGEST));
    }

    /// Adds all of another's counts.
    pub fn merge(&mut self, other: &Histogram) {
        // Both have the same bounds, so nothing can fail to fit.
        let _ = self.0.add(&other.0);
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The largest, to 3 digits; 0 of none.
    pub fn max(&self) -> u64 {
        self.0.max()
    }

    /// The latency that a share `q` (0.99 for p99) stays at or below, with its 95 % interval;
    /// `None` where fewer than 10 samples lie beyond it.
    pub fn quantile(&self, q: f64) -> Option<Quantile> {
        let n = self.count();
        let (low, at, high) = quantile_ranks(n, q)?;
        let of = |rank: u64| self.0.value_at_quantile((rank as f64 - 0.5) / n as f64) as f64;
        Some(Quantile { value: of(at), low: of(low), high: of(high) })
    }

    /// The values that were met and how often, ascending.
    pub fn pairs(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value()))
    }
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.pairs())
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut histogram = Histogram::new();
        for (value, count) in Vec::<(u64, u64)>::deserialize(deserializer)? {
            histogram.0.record_n(value.min(LONGEST), count).map_err(D::Error::custom)?;
        }
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_adds_and_keeps_three_digits() {
        let (mut a, mut b, mut both) = (Histogram::new(), Histogram::new(), Histogram::new());
        for i in 1..=10_000u64 {
            let side = if i % 3 == 0 { &mut a } else { &mut b };
            side.record(i * 1000);
            both.record(i * 1000);
        }
        a.merge(&b);
        assert_eq!(a, both);
        let p99 = a.quantile(0.99).unwrap();
        assert!((p99.value / 9_900_000.0 - 1.0).abs() < 0.001, "{p99:?}");
        assert!(p99.low < p99.value && p99.value < p99.high);
        // What two p99s averaged would say is another figure: that is why they are added.
        assert_eq!(a.quantile(0.9999), None);
    }

    #[test]
    fn a_growing_one_counts_the_same() {
        let (mut fixed, mut growing) = (Histogram::new(), Histogram::growing());
        for ns in (1..50_000_000).step_by(9_973).chain([u64::MAX]) {
            fixed.record(ns);
            growing.record(ns);
        }
        assert!(fixed.pairs().eq(growing.pairs()));
        growing.merge(&fixed);
        assert_eq!(growing.count(), 2 * fixed.count());
    }

    #[test]
    fn survives_json_and_the_absurd() {
        let mut h = Histogram::new();
        for ns in [0, 1, 999, 1_234_567, u64::MAX] {
            h.record(ns);
        }
        let json = serde_json::to_string(&h).unwrap();
        let back: Histogram = serde_json::from_str(&json).unwrap();
        assert_eq!(back.pairs().collect::<Vec<_>>(), h.pairs().collect::<Vec<_>>());
        assert_eq!(back.count(), 5);
        assert!(back.max() >= LONGEST);
        assert!(serde_json::from_str::<Histogram>("[[1]]").is_err());
    }
}
