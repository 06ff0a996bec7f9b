//! Which shard a new tenant gets: weighted rendezvous hashing. It is asked once for each tenant; from then on the catalog
//! says where it is, so that a shard more, or another weight, moves nobody.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};
use steelyard_base::{Error, Result};

use crate::config::Shard;

/// The shard of a tenant of this name.
pub(crate) fn shard_of<'s>(shards: &'s BTreeMap<String, Shard>, tenant: &str) -> Result<&'s str> {
    let open = shards.iter().filter(|(_, shard)| shard.weight > 0.0);
    let scored = open.map(|(name, shard)| (score(name, tenant, shard.weight), name.as_str()));
    let best = scored.max_by(|(a, _), (b, _)| a.total_cmp(b));
    best.map(|(_, name)| name).ok_or_else(|| Error::invalid("every shard has weight 0; name one"))
}

/// Weight over the negative logarithm of a hash in (0, 1): the greatest wins, each as often as its weight says (Schindelhauer
/// and Schomaker, "Weighted Distributed Hash Tables", 2005).
fn score(shard: &str, tenant: &str, weight: f64) -> f64 {
    let mut hash = Sha256::new();
    for part in [shard, tenant] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let first =
        hash.finalize().first_chunk().map_or(0, |bytes: &[u8; 8]| u64::from_be_bytes(*bytes));
    // 53 bits, and never 0 or 1.
    let uniform = ((first >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    weight / -uniform.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shards(weights: &[(&str, f64)]) -> BTreeMap<String, Shard> {
        let shard = |weight| Shard { url: String::new(), layout: Default::default(), weight };
        weights.iter().map(|(name, weight)| ((*name).to_owned(), shard(*weight))).collect()
    }

    #[test]
    fn each_shard_gets_what_its_weight_says_and_another_one_takes_only_its_own() {
        let (two, three) =
            (shards(&[("a", 1.0), ("b", 3.0)]), shards(&[("a", 1.0), ("b", 3.0), ("c", 1.0)]));
        let (mut of_b, mut moved) = (0, 0);
        for i in 0..10_000 {
            let tenant = format!("tenant-{i}");
            let (before, after) =
                (shard_of(&two, &tenant).unwrap(), shard_of(&three, &tenant).unwrap());
            of_b += u32::from(before == "b");
            assert!(after == before || after == "c", "{tenant} goes from {before} to {after}");
            moved += u32::from(after == "c");
        }
        assert!(
            (7_300..=7_700).contains(&of_b) && (1_850..=2_150).contains(&moved),
            "{of_b}, {moved}"
        );
    }

    #[test]
    fn a_shard_of_no_weight_gets_nobody() {
        let of = |weights: &[(&str, f64)]| shard_of(&shards(weights), "x").map(str::to_owned);
        assert_eq!(of(&[("a", 0.0), ("b", 0.001)]).unwrap(), "b");
        assert!(of(&[("a", 0.0)]).is_err());
    }
}
