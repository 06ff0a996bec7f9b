//! Which of several places a key belongs to: rendezvous hashing (Thaler and Ravishankar, "A Name-Based Mapping Scheme for
//! Rendezvous", 1996), with weights (Schindelhauer and Schomaker, "Weighted Distributed Hash Tables", 2005).
//!
//! Every place gives the key a score, and the highest has it. With a place more, only the keys that go to it move. The
//! scores are the same on every machine and in every version, as what is kept hangs on them.

use crate::record::dataset::random::mix;

/// A place, as keys see it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Seat {
    seed: u64,
    weight: f64,
}

impl Seat {
    /// The one of this number, of several that are alike.
    pub(crate) fn numbered(number: usize) -> Seat {
        Seat { seed: mix(number as u64 + 1), weight: 1.0 }
    }

    /// The one of this name, which gets as many keys as its weight says, beside the others; of 0 none.
    pub(crate) fn named(name: &str, weight: f64) -> Seat {
        Seat { seed: hash(name), weight }
    }

    /// What it gives a key of this hash: weight over the negative logarithm of a number in (0, 1).
    fn score(&self, key: u64) -> f64 {
        // 53 bits, and never 0 or 1.
        let uniform = ((mix(key ^ self.seed) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        self.weight / -uniform.ln()
    }
}

/// Which of them has a key, from 0; the first, where none has a weight.
pub(crate) fn seat_of(seats: &[Seat], key: &str) -> usize {
    let key = hash(key);
    let by_score = |a: &usize, b: &usize| seats[*a].score(key).total_cmp(&seats[*b].score(key));
    (0..seats.len()).max_by(by_score).unwrap_or(0)
}

/// Which of these names has a key, each with its weight; none where all weights are 0.
pub fn rendezvous<'n>(
    names: impl IntoIterator<Item = (&'n str, f64)>,
    key: &str,
) -> Option<&'n str> {
    let key = hash(key);
    let open = names.into_iter().filter(|(_, weight)| *weight > 0.0);
    let scored = open.map(|(name, weight)| (Seat::named(name, weight).score(key), name));
    scored.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, name)| name)
}

/// FNV-1a of 64 bits (Fowler, Noll, Vo), scrambled, as its high bits differ little in short keys.
fn hash(key: &str) -> u64 {
    mix(key
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, b| (hash ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_gets_what_its_weight_says_and_another_one_takes_only_its_own() {
        let two = [("a", 1.0), ("b", 3.0)];
        let three = [("a", 1.0), ("b", 3.0), ("c", 1.0)];
        let (mut of_b, mut moved) = (0, 0);
        for i in 0..10_000 {
            let key = format!("tenant-{i}");
            let (before, after) =
                (rendezvous(two, &key).unwrap(), rendezvous(three, &key).unwrap());
            of_b += u32::from(before == "b");
            assert!(after == before || after == "c", "{key} goes from {before} to {after}");
            moved += u32::from(after == "c");
        }
        let expected = (7_300..=7_700).contains(&of_b) && (1_850..=2_150).contains(&moved);
        assert!(expected, "{of_b}, {moved}");
    }

    #[test]
    fn one_of_no_weight_gets_none() {
        assert_eq!(rendezvous([("a", 0.0), ("b", 0.001)], "x"), Some("b"));
        assert_eq!(rendezvous([("a", 0.0)], "x"), None);
    }
}
