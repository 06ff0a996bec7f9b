//! The servers of a run: private ones, fresh on each start, or the user's own.

use super::{pin, rows};
use crate::{
    Result,
    memcache::{Client, Expiry, Options},
    server::{self, Server, Wish},
    stop::Stop,
};

/// How many private servers there are, as in the published test.
const PRIVATE: usize = 2;
/// How often they are started until [each has some](Servers::all_have_some): a quarter of all ports
/// will not do.
const TRIES: usize = 20;

/// `host:port`.
fn address(server: &Server) -> String {
    server.url().trim_start_matches("memcached://").to_owned()
}

pub(super) struct Servers {
    /// `host:port` of each.
    pub addresses: Vec<String>,
    /// Whether they are the user's.
    pub own: bool,
    running: Vec<Server>,
    start: Option<u32>,
    cpu: Option<usize>,
}

impl Servers {
    /// The user's, where any are named; else private ones, from the first start on.
    pub(super) fn new(own: &[String], cpu: Option<usize>) -> Servers {
        let (addresses, own) = (own.to_vec(), !own.is_empty());
        Servers { addresses, own, running: Vec::new(), start: None, cpu }
    }

    /// Starts them anew, once for each start of the run.
    ///
    /// # Errors
    /// As those of [`Program::start`](server::Program::start); where the run is to end.
    pub(super) fn begin(&mut self, start: u32, stop: &Stop) -> Result<()> {
        if self.own || self.start == Some(start) {
            return Ok(());
        }
        if self.running.is_empty() {
            let program = server::named("memcached")?;
            let settings = vec![("threads".to_owned(), "1".to_owned())];
            let wish = Wish { settings, ..Wish::default() };
            let started = || (0..PRIVATE).map(|_| program.start(&wish)).collect::<Result<_>>();
            for _ in 0..TRIES {
                stop.check()?;
                self.running = pin::on(self.cpu, started).0?;
                self.addresses = self.running.iter().map(address).collect();
                if self.all_have_some()? {
                    break;
                }
            }
        } else {
            // Where they were: many clients choose the server of a key by its address.
            let again = || self.running.iter_mut().try_for_each(Server::restart);
            pin::on(self.cpu, again).0?;
        }
        self.addresses = self.running.iter().map(address).collect();
        self.start = Some(start);
        Ok(())
    }

    /// Whether our own clients put some of the keys on each of them. They choose by address, and
    /// ports are chance; with all keys on one server one round trip would do, where others, who
    /// choose by number, have two.
    fn all_have_some(&self) -> Result<bool> {
        let keys = &rows::keys()[..rows::STORED];
        let client = self.client()?;
        for key in keys {
            client.set(key, "", Expiry::Never)?;
        }
        let held = self.holding(keys)?;
        self.empty()?;
        Ok(held.iter().all(|held| *held > 0))
    }

    /// For looking at the servers from the side.
    fn client(&self) -> Result<Client> {
        Client::new(&self.addresses, Options::default())
    }

    /// A statistic of each server.
    pub(super) fn statistic(&self, name: &str) -> Result<Vec<u64>> {
        let read = |(_, stats): (String, Result<crate::memcache::Stats>)| -> Result<u64> {
            let stats = stats?;
            let found = stats.iter().find(|(known, _)| known == name);
            Ok(found.and_then(|(_, value)| value.parse().ok()).unwrap_or(0))
        };
        self.client()?.stats("").into_iter().map(read).collect()
    }

    /// How many of these keys each server has.
    pub(super) fn holding(&self, keys: &[String]) -> Result<Vec<u64>> {
        let of = |address: &String| -> Result<u64> {
            let client = Client::new([address], Options::default())?;
            let found = client.get_multi(keys).into_iter();
            found.map(|value| Ok(u64::from(value?.is_some()))).sum()
        };
        self.addresses.iter().map(of).collect()
    }

    /// Makes private servers empty.
    pub(super) fn empty(&self) -> Result<()> {
        self.client()?.flush_all(std::time::Duration::ZERO)
    }

    /// Takes the keys of the test from the user's servers again, wherever clients have put them.
    pub(super) fn clear_own(&self, keys: &[String]) -> Result<()> {
        for address in self.addresses.iter().filter(|_| self.own) {
            let client = Client::new([address], Options::default())?;
            for key in keys {
                client.delete(key)?;
            }
        }
        Ok(())
    }

    /// What they are, for a reader.
    pub(super) fn told(&self) -> Result<String> {
        let versions = self.client()?.version();
        let version = versions.into_iter().find_map(|(_, v)| v.ok()).unwrap_or_default();
        let n = self.addresses.len();
        Ok(match self.own {
            true => format!("{n} of your own, memcached {version}: {}", self.addresses.join(", ")),
            false => format!(
                "{n} private ones, memcached {version} with 1 thread each, fresh on each start, \
                 TCP on the loopback interface"
            ),
        })
    }
}
