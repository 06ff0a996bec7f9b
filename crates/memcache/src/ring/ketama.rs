//! The rings of libmemcached: points on a circle, many for each server; a key has the server of the
//! first point at or after its own hash.
//!
//! Exact to libmemcached 1.1.4 (hosts.cc, `update_continuum`; its vectors are tests of ours), but for
//! one thing: where it throws out a server, it makes all points anew, and with weights the number
//! of everybody's points changes; here the points of who is away are passed over, so that no key
//! of the others moves.

use md5::{Digest, Md5};

use super::host_and_port;
use crate::address::{PORT, Server};

/// Points and their servers, in order.
#[derive(Debug, Clone)]
pub struct Ketama {
    points: Vec<(u32, usize)>,
    hash: fn(&[u8]) -> u32,
}

/// Bob Jenkins' hash of one byte at a time.
fn one_at_a_time(bytes: &[u8]) -> u32 {
    let mut hash = 0u32;
    for byte in bytes {
        hash = hash.wrapping_add(u32::from(*byte));
        hash = hash.wrapping_add(hash << 10);
        hash ^= hash >> 6;
    }
    hash = hash.wrapping_add(hash << 3);
    hash ^= hash >> 11;
    hash.wrapping_add(hash << 15)
}

/// The first four bytes of the MD5, the low one first.
fn md5_start(bytes: &[u8]) -> u32 {
    let digest = Md5::digest(bytes);
    u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]])
}

/// A point's name: `host-0`, with the port where it is not the usual one.
fn name(server: &Server, number: usize) -> String {
    match host_and_port(server) {
        (host, PORT) => format!("{host}-{number}"),
        (host, port) => format!("{host}:{port}-{number}"),
    }
}

impl Ketama {
    /// 100 points a server, whatever its weight.
    pub fn plain(servers: &[Server]) -> Ketama {
        let points = servers.iter().enumerate().flat_map(|(at, server)| {
            (0..100).map(move |number| (one_at_a_time(name(server, number).as_bytes()), at))
        });
        Ketama::new(points.collect(), one_at_a_time)
    }

    /// 160 points a server on average, by weight.
    pub fn weighted(servers: &[Server]) -> Ketama {
        let total: u64 = servers.iter().map(|server| u64::from(server.weight)).sum();
        let mut points = Vec::with_capacity(160 * servers.len());
        for (at, server) in servers.iter().enumerate() {
            // In single precision, as libmemcached has it: the last point may hang on that.
            let share = server.weight as f32 / total as f32;
            let quarter = f64::from(share * 160.0 / 4.0 * servers.len() as f32) + 1e-10;
            let names = (quarter as f32).floor() as usize;
            for number in 0..names {
                let digest = Md5::digest(name(server, number).as_bytes());
                for four in digest.as_slice().chunks_exact(4) {
                    let point = u32::from_le_bytes([four[0], four[1], four[2], four[3]]);
                    points.push((point, at));
                }
            }
        }
        Ketama::new(points, md5_start)
    }

    fn new(mut points: Vec<(u32, usize)>, hash: fn(&[u8]) -> u32) -> Ketama {
        points.sort_unstable();
        Ketama { points, hash }
    }

    /// Which of the servers that are there has the key.
    pub fn owner(&self, key: &[u8], there: impl Fn(usize) -> bool) -> Option<usize> {
        let hash = (self.hash)(key);
        let first = self.points.partition_point(|(point, _)| *point < hash);
        let (before, after) = self.points.split_at(first);
        after.iter().chain(before).map(|(_, at)| *at).find(|at| there(*at))
    }
}
