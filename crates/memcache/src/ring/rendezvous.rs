//! Rendezvous hashing (Thaler and Ravishankar 1998): a key's server is the one whose name and the key
//! have the highest hash together. With weights by the logarithm (Schindelhauer and Schomaker
//! 2005): then the highest -weight / ln(hash) decides.

use crate::address::Server;

/// Servers, as hashes of their names.
#[derive(Debug, Clone)]
pub struct Rendezvous {
    /// The hash after the name, and the weight.
    servers: Vec<(u64, u32)>,
    weighted: bool,
}

/// FNV-1a of 64 bits, from `hash` on.
#[inline]
fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The last step of MurmurHash3, as FNV mixes its upper bits badly.
#[inline]
fn mixed(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

impl Rendezvous {
    /// Servers by the names of their addresses. The same everywhere and for ever: who hashes
    /// otherwise does not find what others kept.
    pub fn new(servers: &[Server]) -> Rendezvous {
        let begin = |server: &Server| {
            fnv(fnv(0xcbf2_9ce4_8422_2325, server.address.to_string().as_bytes()), &[0])
        };
        Rendezvous {
            servers: servers.iter().map(|server| (begin(server), server.weight)).collect(),
            weighted: servers.iter().any(|server| server.weight != servers[0].weight),
        }
    }

    /// Which of the servers that are there has the key. Of equals the last.
    #[inline]
    pub fn owner(&self, key: &[u8], there: impl Fn(usize) -> bool) -> Option<usize> {
        let hashes = self.servers.iter().enumerate().filter(|(at, _)| there(*at));
        let hashes = hashes.map(|(at, (begin, weight))| (at, mixed(fnv(*begin, key)), *weight));
        if !self.weighted {
            return hashes.max_by_key(|(_, hash, _)| *hash).map(|(at, ..)| at);
        }
        let score = |hash: u64, weight: u32| {
            // Between 0 and 1, neither of them.
            let share = ((hash >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
            -f64::from(weight) / share.ln()
        };
        let scores = hashes.map(|(at, hash, weight)| (at, score(hash, weight)));
        scores.max_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_found_by_later_versions() {
        let servers = ["a", "b", "c", "d"].map(|name| Server::new(name.parse().unwrap()));
        let ring = Rendezvous::new(&servers);
        let owner = |n: u32| ring.owner(n.to_string().as_bytes(), |_| true).unwrap();
        assert_eq!((0..8).map(owner).collect::<Vec<_>>(), [3, 3, 2, 3, 3, 0, 1, 3]);
    }
}
