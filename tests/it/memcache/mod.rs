//! The memcached client on real servers, and on wires that break.

mod alike;
mod basics;
mod batches;
mod broken;
mod chaos;
mod frozen;
mod keys;
mod proxy;
#[cfg(feature = "memcache-tls")]
mod tls;

use std::time::{Duration, Instant};

use steelyard::{
    memcache::{AsyncClient, Client, Dialect, Options},
    server::{Server, Wish},
};

use crate::programs::{self, Need};

/// A private memcached.
#[track_caller]
pub fn started(megabytes: u64) -> Need<Server> {
    programs::server("memcached", &Wish { memory: Some(megabytes), ..Wish::default() })
}

/// `host:port` of a server.
pub fn address(server: &Server) -> String {
    server.url().strip_prefix("memcached://").expect("its own scheme").to_owned()
}

/// A client of a server.
pub fn client(server: &Server, options: Options) -> Client {
    Client::new([address(server)], options).expect("options that can be")
}

/// The same that does not block.
pub fn nonblocking(server: &Server, options: Options) -> AsyncClient {
    AsyncClient::new([address(server)], options).expect("options that can be")
}

/// Options with either dialect.
pub fn dialects() -> [Options; 2] {
    [Dialect::Meta, Dialect::Classic]
        .map(|dialect| Options { dialect: Some(dialect), ..Options::default() })
}

/// Waits until something is so, which it must be within ten seconds.
#[track_caller]
pub fn until(what: &str, so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !so() {
        assert!(begin.elapsed() < Duration::from_secs(10), "not in ten seconds: {what}");
        std::thread::yield_now();
    }
}

/// A number of the environment: how much of a long test is done.
pub fn amount(variable: &str, usual: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}
