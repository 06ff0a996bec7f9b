//! One server: its protocol of lines (doc/protocol.txt of memcached).
//!
//! Every answer is read to its end, or its connection is closed.

use std::time::Duration;

use crate::{
    Error, ErrorKind, Result,
    store::{
        kv::{Address, Limits, Pool, Socket, Spool, out_of_step},
        within,
    },
};

use super::names::{Names, listed};

/// How many keys one line asks for.
const KEYS: usize = 100;

/// Whether a key on the wire counts.
pub type Mine<'a> = dyn Fn(&str) -> bool + Sync + 'a;

/// A server and the connections to it.
pub struct Server {
    pool: Pool,
    limits: Limits,
    /// What decides which keys are its own.
    pub name: String,
}

impl Server {
    pub fn new(address: Address, limits: Limits) -> Server {
        let name = address.to_string();
        Server { pool: Pool::new(address, limits), limits, name }
    }

    /// Keeps values under keys as they are on the wire: `set` or `add`. Of an `add`, the places of
    /// those whose keys were taken.
    pub async fn store(&self, command: &str, items: &[(String, &[u8])]) -> Result<Vec<usize>> {
        let mut sent = Vec::new();
        for (key, value) in items {
            sent.extend_from_slice(format!("{command} {key} 0 0 {}\r\n", value.len()).as_bytes());
            sent.extend_from_slice(value);
            sent.extend_from_slice(b"\r\n");
        }
        let mut lease = self.pool.lease().await?;
        let socket = lease.socket();
        let done = self.pool.within(command, async {
            socket.send(&sent).await?;
            let (mut taken, mut wrong) = (Vec::new(), None);
            for (at, (key, value)) in items.iter().enumerate() {
                match &*socket.line().await? {
                    b"STORED" => {}
                    b"NOT_STORED" => taken.push(at),
                    // The others' answers come all the same.
                    line if line.starts_with(b"SERVER_ERROR") => {
                        wrong.get_or_insert_with(|| refused(line, key, value.len()));
                    }
                    line => return Err(out_of_step(command, line)),
                }
            }
            Ok(match wrong {
                Some(e) => Err(e),
                None => Ok(taken),
            })
        });
        let answer = done.await?;
        lease.give_back();
        answer.map_err(|e| e.in_place(self.name.clone()))
    }

    /// The values under these keys; places and values of those that are there.
    pub async fn get(&self, keys: &[String]) -> Result<Vec<(usize, Vec<u8>)>> {
        let mut found = Vec::new();
        let mut lease = self.pool.lease().await?;
        for (round, keys) in keys.chunks(KEYS).enumerate() {
            let socket = lease.socket();
            let some = self.pool.within("get", async {
                socket.send(format!("get {}\r\n", keys.join(" ")).as_bytes()).await?;
                let mut some = Vec::new();
                loop {
                    let line = socket.line().await?;
                    if line == b"END" {
                        return Ok(some);
                    }
                    let (key, len) = value_line(&line).ok_or_else(|| out_of_step("get", &line))?;
                    // It answers in the order it is asked in, a key asked twice also twice.
                    let after = some.last().map_or(0, |(at, _)| at + 1);
                    let at = keys[after..].iter().position(|k| k.as_bytes() == key);
                    let at = after + at.ok_or_else(|| out_of_step("get", &line))?;
                    let value = socket.bytes(len).await?;
                    match &*socket.bytes(2).await? {
                        b"\r\n" => some.push((at, value)),
                        other => return Err(out_of_step("get", other)),
                    }
                }
            });
            found.extend(some.await?.into_iter().map(|(at, value)| (round * KEYS + at, value)));
        }
        lease.give_back();
        Ok(found)
    }

    /// Deletes what is under these keys, and says how many there were.
    pub async fn delete(&self, keys: &[String]) -> Result<u64> {
        let mut sent = String::new();
        for key in keys {
            sent += &format!("delete {key}\r\n");
        }
        let mut lease = self.pool.lease().await?;
        let socket = lease.socket();
        let done = self.pool.within("delete", async {
            socket.send(sent.as_bytes()).await?;
            let mut count = 0;
            for _ in keys {
                match &*socket.line().await? {
                    b"DELETED" => count += 1,
                    b"NOT_FOUND" => {}
                    line => return Err(out_of_step("delete", line)),
                }
            }
            Ok(count)
        });
        let count = done.await?;
        lease.give_back();
        Ok(count)
    }

    /// The keys of a table, those of which `mine` is true of what is on the wire. They are read at once, on a connection of their own: a listing that is
    /// read slowly, memcached ends early.
    pub async fn keys(&self, names: &Names, mine: &Mine<'_>) -> Result<Spool> {
        // By the table of keys, each is listed once; by the lists of use, which older servers have
        // only, one that is used meanwhile may be missed.
        for how in ["hash", "all"] {
            let begin = std::time::Instant::now();
            let mut pause = Duration::from_millis(2);
            loop {
                let mut socket = self.pool.connect().await?;
                match self.listing(&mut socket, how, names, mine).await {
                    // One listing at a time: somebody else has it.
                    Err(e) if e.kind() == ErrorKind::Conflict => {
                        if begin.elapsed() + pause > self.limits.operation {
                            return Err(Error::unavailable(e.context()).in_place(self.name.clone()));
                        }
                        tokio::time::sleep(pause).await;
                        pause = (pause * 2).min(Duration::from_millis(50));
                    }
                    Err(e) if e.kind() == ErrorKind::Unsupported && how == "hash" => break,
                    done => return done.map_err(|e| e.in_place(self.name.clone())),
                }
            }
        }
        unreachable!("the last way returns")
    }

    async fn listing(
        &self,
        socket: &mut Socket,
        how: &str,
        names: &Names,
        mine: &Mine<'_>,
    ) -> Result<Spool> {
        let limit = self.limits.operation;
        let asked = format!("lru_crawler metadump {how}\r\n");
        within(limit, "lru_crawler", socket.send(asked.as_bytes())).await?;
        let mut spool = Spool::default();
        loop {
            // The limit is for each line: a long list takes its time.
            let line = within(limit, "lru_crawler", socket.line()).await?;
            if line == b"END" {
                return Ok(spool);
            }
            if let Some(rest) = line.strip_prefix(b"key=") {
                let end = rest.iter().position(|b| *b == b' ').unwrap_or(rest.len());
                let full = listed(&rest[..end]);
                if let Some(key) = names.own(&full)?
                    && std::str::from_utf8(&full).is_ok_and(mine)
                {
                    spool.push(&key)?;
                }
                continue;
            }
            let text = String::from_utf8_lossy(&line);
            return Err(match &*text {
                text if text.starts_with("BUSY") => {
                    Error::new(ErrorKind::Conflict, "its listing of keys is in use by somebody")
                }
                text if text.contains("disabled") || text.contains("not enabled") => {
                    Error::unsupported("it does not list keys: its LRU crawler is turned off")
                }
                text if text.starts_with("BADCLASS")
                    || text.starts_with("CLIENT_ERROR")
                    || text == "ERROR" =>
                {
                    Error::unsupported(format!("it does not list keys: {text}"))
                }
                _ => out_of_step("lru_crawler", &line),
            });
        }
    }

    /// Its version.
    pub async fn version(&self) -> Result<String> {
        let mut lease = self.pool.lease().await?;
        let socket = lease.socket();
        let line = self.pool.within("version", async {
            socket.send(b"version\r\n").await?;
            socket.line().await
        });
        let line = line.await?;
        let version =
            line.strip_prefix(b"VERSION ").ok_or_else(|| out_of_step("version", &line))?;
        let version = String::from_utf8_lossy(version).into_owned();
        lease.give_back();
        Ok(version)
    }

    /// Its settings.
    pub async fn settings(&self) -> Result<Vec<(String, String)>> {
        let mut lease = self.pool.lease().await?;
        let socket = lease.socket();
        let settings = self.pool.within("stats settings", async {
            socket.send(b"stats settings\r\n").await?;
            let mut settings = Vec::new();
            loop {
                let line = socket.line().await?;
                if line == b"END" {
                    return Ok(settings);
                }
                let text = String::from_utf8_lossy(&line);
                let stat = text.strip_prefix("STAT ").and_then(|stat| stat.split_once(' '));
                let (name, value) = stat.ok_or_else(|| out_of_step("stats settings", &line))?;
                settings.push((name.to_owned(), value.to_owned()));
            }
        });
        let settings = settings.await?;
        lease.give_back();
        Ok(settings)
    }
}

/// `VALUE key flags bytes`.
fn value_line(line: &[u8]) -> Option<(&[u8], usize)> {
    let mut words = line.strip_prefix(b"VALUE ")?.split(|b| *b == b' ');
    let (key, _flags, len) = (words.next()?, words.next()?, words.next()?);
    Some((key, std::str::from_utf8(len).ok()?.parse().ok()?))
}

/// The error of a server that does not keep a value.
fn refused(line: &[u8], key: &str, bytes: usize) -> Error {
    let says = String::from_utf8_lossy(line);
    let kind = if says.contains("too large") { ErrorKind::TooLarge } else { ErrorKind::Io };
    Error::new(kind, format!("key {key:?}, {bytes} bytes: {says}"))
}
