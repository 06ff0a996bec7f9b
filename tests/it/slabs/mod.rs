//! The model of memcached's memory against memcached itself: classes, items, pages; and the verb.

mod classes;
mod items;
mod pages;
mod verb;

use steelyard::{
    memcache::{Client, Options, slabs::Settings},
    server::{Server, Wish, named},
};

use crate::programs::{self, Need};

/// Random numbers that are the same on every run (SplitMix64).
pub struct Random(pub u64);

impl Random {
    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }

    /// A number between 0 and 1.
    pub fn share(&mut self) -> f64 {
        self.below(1 << 53) as f64 / (1u64 << 53) as f64
    }
}

/// The version of memcached here.
pub fn version() -> String {
    let program = named("memcached").unwrap();
    let says = program.find().and_then(|binary| program.version_of(&binary)).unwrap_or_default();
    says.split(' ').next_back().unwrap_or_default().to_owned()
}

/// A private memcached with these settings, and a client of it.
#[track_caller]
pub fn started(settings: &Settings) -> Need<(Server, Client)> {
    let named = settings.named(&version());
    let wish = Wish {
        memory: Some(settings.memory),
        settings: named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        ..Wish::default()
    };
    let server = programs::server("memcached", &wish)?;
    let host = server.url().trim_start_matches("memcached://").to_owned();
    let client = Client::new([host], Options::default()).unwrap();
    Ok((server, client))
}

/// A number of `stats slabs`, for each class.
pub fn shown(client: &Client, what: &str) -> Vec<(usize, u64)> {
    let stats = client.stats("slabs").remove(0).1.unwrap();
    let mut found: Vec<(usize, u64)> = stats
        .iter()
        .filter_map(|(name, value)| {
            let (id, name) = name.split_once(':')?;
            (name == what).then_some((id.parse().ok()?, value.parse().ok()?))
        })
        .filter(|(_, value)| *value > 0)
        .collect();
    found.sort_unstable();
    found
}
