//! Other clients of memcached in Rust, for `steelyard bench cache`, and an example of an adapter:
//!
//! ```console
//! $ cargo build --release -p steelyard-bench --example cache_peers
//! $ steelyard bench cache --client floor --client steelyard \
//!     --client 'target/release/examples/cache_peers memcache' \
//!     --client 'target/release/examples/cache_peers async-memcached'
//! ```

use std::{io, sync::Arc};

use async_memcached::AsciiProtocol;
use steelyard_base::{Error, Result};
use steelyard_bench::cache::{
    adapter::{Calls, Found, Goods, Tally, serve},
    protocol::Hello,
};
use steelyard_format::format::Coder;

fn main() -> Result<()> {
    let name = std::env::args().nth(1).unwrap_or_default();
    let hello = |version: &str, about: &str| Hello {
        client: name.clone(),
        version: version.into(),
        about: about.into(),
        serializer: "the format, by steelyard".into(),
        open: true,
        ..Hello::default()
    };
    let (input, output) = (io::stdin().lock(), io::stdout().lock());
    match name.as_str() {
        "memcache" => {
            let hello = hello("0.21", "Rust, memcache::Client, one a thread");
            serve::<Blocking>(hello, input, output)
        }
        "async-memcached" => {
            let about = "Rust, async_memcached::Client, one a task and server, keys in turn";
            serve::<Nonblocking>(hello("0.9", about), input, output)
        }
        _ => Err(Error::invalid("cache_peers memcache | async-memcached")),
    }
}

fn failed(e: impl std::fmt::Display) -> Error {
    Error::unavailable(e.to_string())
}

/// The crate `memcache`: it has no writes that are not waited for.
struct Blocking {
    client: memcache::Client,
    goods: Arc<Goods>,
    coder: Coder,
    bytes: Vec<u8>,
}

impl Calls for Blocking {
    const BLOCKING: bool = true;

    fn open(goods: &Arc<Goods>, servers: &[String], connections: usize) -> Result<Vec<Self>> {
        let urls: Vec<String> = servers.iter().map(|s| format!("memcache://{s}")).collect();
        let one = |_| {
            let client = memcache::Client::with_pool_size(urls.clone(), 1).map_err(failed)?;
            let (goods, coder) = (Arc::clone(goods), goods.coder()?);
            Ok(Blocking { client, goods, coder, bytes: Vec::new() })
        };
        (0..connections).map(one).collect()
    }

    async fn set(&mut self, k: usize) -> Result<()> {
        let bytes = self.goods.bytes(k, &mut self.coder, &mut self.bytes)?;
        self.client.set(&self.goods.keys[k], bytes, 0).map_err(failed)
    }

    async fn get(&mut self, k: usize) -> Result<Found> {
        let found = self.client.get::<Vec<u8>>(&self.goods.keys[k]).map_err(failed)?;
        Ok(found.map_or(Found::Miss, |bytes| self.goods.check(k, &bytes, &mut self.coder)))
    }

    async fn get_all(&mut self) -> Result<Tally> {
        let keys: Vec<&str> = self.goods.keys.iter().map(String::as_str).collect();
        let found = self.client.gets::<Vec<u8>>(&keys).map_err(failed)?;
        let mut tally = Tally::default();
        for (k, key) in keys.iter().enumerate() {
            tally.add(match found.get(*key) {
                Some(bytes) => self.goods.check(k, bytes, &mut self.coder),
                None => Found::Miss,
            });
        }
        Ok(tally)
    }

    async fn delete(&mut self, k: usize) -> Result<()> {
        self.client.delete(&self.goods.keys[k]).map(drop).map_err(failed)
    }

    async fn flood(&mut self, _: &[usize], _: u64) -> Result<()> {
        Err(Error::unsupported("memcache waits for every answer"))
    }
}

/// The crate `async-memcached`: a client of one server; keys go to the servers in turn, as those of
/// the floor.
struct Nonblocking {
    servers: Vec<String>,
    /// Connected with the first call, which comes before any time begins.
    clients: Vec<async_memcached::Client>,
    goods: Arc<Goods>,
    coder: Coder,
    bytes: Vec<u8>,
}

impl Nonblocking {
    async fn connect(&mut self) -> Result<()> {
        for server in &self.servers[self.clients.len()..] {
            self.clients.push(
                async_memcached::Client::new(format!("tcp://{server}")).await.map_err(failed)?,
            );
        }
        Ok(())
    }
}

impl Calls for Nonblocking {
    const BLOCKING: bool = false;

    fn open(goods: &Arc<Goods>, servers: &[String], connections: usize) -> Result<Vec<Self>> {
        let one = |_| {
            let (goods, coder) = (Arc::clone(goods), goods.coder()?);
            let (servers, clients) = (servers.to_vec(), Vec::new());
            Ok(Nonblocking { servers, clients, goods, coder, bytes: Vec::new() })
        };
        (0..connections).map(one).collect()
    }

    async fn set(&mut self, k: usize) -> Result<()> {
        self.connect().await?;
        let bytes = self.goods.bytes(k, &mut self.coder, &mut self.bytes)?;
        let server = k % self.clients.len();
        let client = &mut self.clients[server];
        client.set(&self.goods.keys[k], bytes, None, None).await.map_err(failed)
    }

    async fn get(&mut self, k: usize) -> Result<Found> {
        self.connect().await?;
        let server = k % self.clients.len();
        let found = self.clients[server].get(&self.goods.keys[k]).await.map_err(failed)?;
        let bytes = found.and_then(|value| value.data);
        Ok(bytes.map_or(Found::Miss, |bytes| self.goods.check(k, &bytes, &mut self.coder)))
    }

    async fn get_all(&mut self) -> Result<Tally> {
        self.connect().await?;
        let (mut tally, servers) = (Tally::default(), self.clients.len());
        let Nonblocking { clients, goods, coder, .. } = self;
        for (server, client) in clients.iter_mut().enumerate() {
            let own = goods.keys.iter().enumerate().filter(|(k, _)| k % servers == server);
            let found = client.get_multi(own.map(|(_, key)| key)).await.map_err(failed)?;
            for value in found {
                let k = goods.keys.iter().position(|key| key.as_bytes() == value.key);
                let right = |k| goods.check(k, &value.data.unwrap_or_default(), coder);
                tally.add(k.map_or(Found::Wrong, right));
            }
        }
        tally.misses = goods.keys.len() as u64 - tally.hits - tally.wrong;
        Ok(tally)
    }

    async fn delete(&mut self, k: usize) -> Result<()> {
        use async_memcached::{Error::Protocol, Status};
        self.connect().await?;
        let server = k % self.clients.len();
        match self.clients[server].delete(&self.goods.keys[k]).await {
            Ok(()) | Err(Protocol(Status::NotFound)) => Ok(()),
            Err(e) => Err(failed(e)),
        }
    }

    async fn flood(&mut self, _: &[usize], _: u64) -> Result<()> {
        Err(Error::unsupported("async-memcached waits for the answer to every set"))
    }
}
