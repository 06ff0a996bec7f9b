//! Which server has a key.
//!
//! Pure: a ring is made of names, ports and weights, and asked for a key which of the servers that
//! are there has it. When a server goes, only its own keys move; when it comes back, they do.
//!
//! To add a way of spreading keys: a file here, a variant of [`Spread`] and of [`Ring`].

mod ketama;
mod rendezvous;

use super::address::{Address, Server};

/// How keys are spread over servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Spread {
    /// By the highest hash of server and key together: even to a percent, and no table of points.
    #[default]
    Rendezvous,
    /// As libmemcached's `BEHAVIOR_KETAMA`: 100 points a server, one-at-a-time hashes, no weights.
    Ketama,
    /// As libmemcached's `BEHAVIOR_KETAMA_WEIGHTED`: MD5. What ketama is to PHP, Ruby and pylibmc.
    KetamaWeighted,
}

/// Servers, and what decides which keys are whose.
#[derive(Debug, Clone)]
pub enum Ring {
    /// One server has all keys.
    Single,
    /// See [`Spread::Rendezvous`].
    Rendezvous(rendezvous::Rendezvous),
    /// See [`Spread::Ketama`] and [`Spread::KetamaWeighted`].
    Ketama(ketama::Ketama),
}

impl Ring {
    /// A ring of these servers.
    pub fn new(spread: Spread, servers: &[Server]) -> Ring {
        match spread {
            _ if servers.len() < 2 => Ring::Single,
            Spread::Rendezvous => Ring::Rendezvous(rendezvous::Rendezvous::new(servers)),
            Spread::Ketama => Ring::Ketama(ketama::Ketama::plain(servers)),
            Spread::KetamaWeighted => Ring::Ketama(ketama::Ketama::weighted(servers)),
        }
    }

    /// Which server has the key, of those that are `there`; none where none is.
    #[inline]
    pub fn owner(&self, key: &[u8], there: impl Fn(usize) -> bool) -> Option<usize> {
        match self {
            Ring::Single => there(0).then_some(0),
            Ring::Rendezvous(ring) => ring.owner(key, there),
            Ring::Ketama(ring) => ring.owner(key, there),
        }
    }
}

/// Host and port as libmemcached has them: a socket is a host with the port 0.
fn host_and_port(server: &Server) -> (String, u16) {
    match &server.address {
        Address::Tcp(host, port) | Address::Tls(host, port) => (host.clone(), *port),
        Address::Unix(path) => (path.display().to_string(), 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(weights: [u32; 4]) -> Vec<Server> {
        ["10.0.1.1:11211", "10.0.1.2:11211", "10.0.1.3:11212", "10.0.1.4:11211"]
            .into_iter()
            .zip(weights)
            .map(|(address, weight)| Server::new(address.parse().unwrap()).weighing(weight))
            .collect()
    }

    /// What libmemcached 1.1.4 says of key0 to key11, from 1, and of key0 to key99999 in all.
    #[test]
    fn ketama_is_that_of_libmemcached() {
        type Vector = (Spread, [u32; 4], [usize; 12], [usize; 4]);
        let vectors: [Vector; 3] = [
            (
                Spread::Ketama,
                [1; 4],
                [1, 1, 2, 4, 3, 2, 3, 2, 1, 1, 4, 4],
                [26469, 26993, 22963, 23575],
            ),
            (
                Spread::KetamaWeighted,
                [1; 4],
                [3, 1, 2, 1, 2, 2, 4, 2, 2, 2, 2, 3],
                [22818, 26400, 25345, 25437],
            ),
            (
                Spread::KetamaWeighted,
                [1, 1, 1, 4],
                [3, 4, 2, 3, 4, 2, 4, 4, 4, 4, 2, 3],
                [11240, 14245, 14820, 59695],
            ),
        ];
        for (spread, weights, first, shares) in vectors {
            let ring = Ring::new(spread, &servers(weights));
            let owner = |n: usize| ring.owner(format!("key{n}").as_bytes(), |_| true).unwrap();
            let found: Vec<_> = (0..12).map(|n| owner(n) + 1).collect();
            assert_eq!(found, first, "{spread:?} {weights:?}");
            let mut counts = [0; 4];
            (0..100_000).for_each(|n| counts[owner(n)] += 1);
            assert_eq!(counts, shares, "{spread:?} {weights:?}");
        }
    }

    #[test]
    fn only_the_keys_of_a_server_that_goes_or_comes_move() {
        for spread in [Spread::Rendezvous, Spread::Ketama, Spread::KetamaWeighted] {
            let all = servers([1; 4]);
            let (four, three) = (Ring::new(spread, &all), Ring::new(spread, &all[..3]));
            let mut kept = 0;
            for n in 0..20_000 {
                let key = format!("key{n}");
                let with = four.owner(key.as_bytes(), |_| true).unwrap();
                let without = four.owner(key.as_bytes(), |at| at != 3).unwrap();
                assert!(with == 3 || with == without, "{spread:?}: {key} moved");
                kept += usize::from(with == three.owner(key.as_bytes(), |_| true).unwrap());
            }
            assert!(kept > 14_000, "{spread:?}: {kept} of 20000 stay with a fourth server");
            assert_eq!(four.owner(b"x", |_| false), None);
        }
    }

    #[test]
    fn weights_are_shares() {
        let ring = Ring::new(Spread::Rendezvous, &servers([1, 1, 1, 4]));
        let mut counts = [0; 4];
        for n in 0..70_000 {
            counts[ring.owner(format!("key{n}").as_bytes(), |_| true).unwrap()] += 1;
        }
        assert!(counts[..3].iter().all(|n| (9_500..10_500).contains(n)), "{counts:?}");
        assert!((39_000..41_000).contains(&counts[3]), "{counts:?}");
    }
}
