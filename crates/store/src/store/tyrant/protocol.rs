//! The binary protocol of Tokyo Tyrant, after its description ("Tokyo Tyrant: Network Interface of
//! DBM", by Mikio Hirabayashi): a command begins with C8 and its number, numbers have 32 bits with
//! the highest byte first, an answer begins with a byte that is zero where all is well.
//!
//! What is not here, on purpose: `iterinit` and `iternext`, as all clients of a server share one
//! iterator; `putnr`, which nobody acknowledges; `vanish`, which knows no tables.

use crate::{
    Error, ErrorKind, Result,
    store::{
        counts,
        kv::{Namespace, Spool, out_of_step},
        limits::Limits,
        net::{Address, too_long},
    },
};

use super::wire::{Pool, Socket};

const OUT: u8 = 0x20;
const GET: u8 = 0x30;
const MGET: u8 = 0x31;
const VSIZ: u8 = 0x38;
const FWMKEYS: u8 = 0x58;
const SYNC: u8 = 0x70;
const STAT: u8 = 0x88;
const MISC: u8 = 0x90;

/// The longest value of an answer: somewhat more than what can be put there.
const LONGEST: usize = super::MAX_RECORD + (4 << 20);

/// What a value takes, about, beside its bytes.
const VALUE: usize = 128;

/// A key with what is under it.
pub(super) type Pair = (Vec<u8>, Vec<u8>);

/// A server and the connections to it.
pub(super) struct Server {
    pool: Pool,
}

/// A command on its way.
struct Command(Vec<u8>);

impl Command {
    fn new(number: u8) -> Command {
        Command(vec![0xc8, number])
    }

    fn number(mut self, n: usize) -> Result<Command> {
        let n = u32::try_from(n).map_err(|_| {
            Error::new(ErrorKind::TooLarge, format!("{n} bytes in one command of Tokyo Tyrant"))
        })?;
        self.0.extend_from_slice(&n.to_be_bytes());
        Ok(self)
    }

    /// Bytes with their length before them.
    fn sized(self, bytes: &[u8]) -> Result<Command> {
        let mut command = self.number(bytes.len())?;
        command.0.extend_from_slice(bytes);
        Ok(command)
    }

    fn misc(name: &str, arguments: &[impl AsRef<[u8]>]) -> Result<Command> {
        let options = 0;
        let head = Command::new(MISC).number(name.len())?.number(options)?;
        let mut command = head.number(arguments.len())?;
        command.0.extend_from_slice(name.as_bytes());
        for argument in arguments {
            command = command.sized(argument.as_ref())?;
        }
        Ok(command)
    }
}

impl Server {
    pub(super) fn new(address: Address, limits: Limits) -> Server {
        Server { pool: Pool::new(address, limits) }
    }

    /// Waits for all the portions of an operation, no longer than one operation may take.
    ///
    /// # Errors
    /// As [`Pool::within`].
    pub(super) async fn in_time<T>(
        &self,
        what: &str,
        portions: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        self.pool.within(what, portions).await
    }

    /// Keeps pairs, in place of those with the same keys. What is under a key of a table are names
    /// and values of columns, with NUL between all.
    pub(super) async fn put(&self, pairs: &[Pair]) -> Result<()> {
        let arguments: Vec<&[u8]> = pairs.iter().flat_map(|(k, v)| [&**k, &**v]).collect();
        match self.misc("putlist", &arguments).await?.is_empty() {
            true => Ok(()),
            false => Err(out_of_step("putlist", b"a list")),
        }
    }

    /// What is under one key.
    pub(super) async fn get_one(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let command = Command::new(GET).sized(key)?;
        let mut lease = self.pool.lease().await?;
        let socket = &mut *lease;
        let found = self.pool.within("get", async {
            socket.send(&command.0).await?;
            // It does not tell why there is nothing.
            if !done(socket, "get").await? {
                return Ok(None);
            }
            let length = socket.u32().await?;
            bytes(socket, "get", length).await.map(Some)
        });
        let found = found.await?;
        lease.give_back();
        Ok(found)
    }

    /// The pairs of these keys, as far as they are there.
    pub(super) async fn get(&self, keys: &[Vec<u8>]) -> Result<Vec<Pair>> {
        let mut command = Command::new(MGET).number(keys.len())?;
        for key in keys {
            command = command.sized(key)?;
        }
        let mut lease = self.pool.lease().await?;
        let socket = &mut *lease;
        let found = self.pool.within("mget", async {
            socket.send(&command.0).await?;
            okay(socket, "mget").await?;
            let count = socket.u32().await? as usize;
            if count > keys.len() {
                return Err(out_of_step("mget", b"more than requested"));
            }
            let (mut found, mut sum) = (Vec::with_capacity(count), 0);
            for _ in 0..count {
                let (key, value) = (socket.u32().await?, socket.u32().await?);
                sum += key as usize + value as usize;
                if sum > LONGEST {
                    return Err(too_long("mget", LONGEST));
                }
                let key = bytes(socket, "mget", key).await?;
                found.push((key, bytes(socket, "mget", value).await?));
            }
            Ok(found)
        });
        let found = found.await?;
        lease.give_back();
        Ok(found)
    }

    /// Deletes what is under these keys, and says how many there were.
    pub(super) async fn out(&self, keys: &[Vec<u8>]) -> Result<u64> {
        let answers = self.each_key(OUT, "out", keys).await?;
        Ok(answers.into_iter().filter(|there| *there).count() as u64)
    }

    /// Which of these keys are there.
    pub(super) async fn are_there(&self, keys: &[Vec<u8>]) -> Result<Vec<bool>> {
        self.each_key(VSIZ, "vsiz", keys).await
    }

    /// A command for each key, all sent at once.
    async fn each_key(&self, number: u8, what: &str, keys: &[Vec<u8>]) -> Result<Vec<bool>> {
        let mut sent = Vec::new();
        for key in keys {
            sent.extend_from_slice(&Command::new(number).sized(key)?.0);
        }
        let mut lease = self.pool.lease().await?;
        let socket = &mut *lease;
        let answers = self.pool.within(what, async {
            socket.send(&sent).await?;
            let mut answers = Vec::with_capacity(keys.len());
            for _ in keys {
                let there = done(socket, what).await?;
                if there && number == VSIZ {
                    socket.u32().await?;
                }
                answers.push(there);
            }
            Ok(answers)
        });
        let answers = answers.await?;
        lease.give_back();
        Ok(answers)
    }

    /// The keys of a table.
    pub(super) async fn keys(&self, space: &Namespace) -> Result<Spool> {
        let prefix = space.prefix().as_bytes();
        let all = -1i32;
        let mut command = Command::new(FWMKEYS).number(prefix.len())?;
        command.0.extend_from_slice(&all.to_be_bytes());
        command.0.extend_from_slice(prefix);
        self.spool("fwmkeys", &command, space).await
    }

    /// The keys of the records of a table database that fit these conditions.
    pub(super) async fn search(&self, conditions: &[Vec<u8>], space: &Namespace) -> Result<Spool> {
        self.spool("search", &Command::misc("search", conditions)?, space).await
    }

    /// How many records of a table database fit these conditions.
    pub(super) async fn search_count(&self, mut conditions: Vec<Vec<u8>>) -> Result<u64> {
        conditions.push(b"count".into());
        let found = self.misc("search", &conditions).await?;
        let text = found.first().and_then(|found| std::str::from_utf8(found).ok());
        let count = text.and_then(|text| text.parse::<i64>().ok());
        let count = count.ok_or_else(|| out_of_step("search", b"no count"));
        count.and_then(|count| counts::records("search", count)).map_err(|e| self.place(e))
    }

    /// Reads a list of keys as fast as it comes.
    async fn spool(&self, what: &str, command: &Command, space: &Namespace) -> Result<Spool> {
        let mut lease = self.pool.lease().await?;
        let socket = &mut *lease;
        let head = async {
            socket.send(&command.0).await?;
            let done = done(socket, what).await?;
            // A search that fails says so, and lists nothing all the same.
            match done || command.0[1] == MISC {
                true => Ok((done, socket.u32().await?)),
                false => Ok((done, 0)),
            }
        };
        let (done, count) = self.pool.within(what, head).await?;
        if !done {
            return Err(self.failed(what));
        }
        let mut spool = Spool::default();
        for _ in 0..count {
            let key = async {
                let len = socket.u32().await?;
                bytes(socket, what, len).await
            };
            // The limit is for each: a long list takes its time.
            let key = self.pool.within(what, key).await?;
            // It was asked for keys of this table: others may come without end.
            match space.own(&key)? {
                Some(key) => spool.push(&key)?,
                None => return Err(self.place(out_of_step(what, &key))),
            }
        }
        lease.give_back();
        Ok(spool)
    }

    /// Makes the server's writes lasting.
    pub(super) async fn sync(&self) -> Result<()> {
        let mut lease = self.pool.lease().await?;
        let socket = &mut *lease;
        let synced = self.pool.within("sync", async {
            socket.send(&Command::new(SYNC).0).await?;
            done(socket, "sync").await
        });
        let synced = synced.await?;
        lease.give_back();
        if synced { Ok(()) } else { Err(self.failed("sync")) }
    }

    /// What the server says of itself, by name.
    pub(super) async fn stat(&self) -> Result<Vec<(String, String)>> {
        let mut lease = self.pool.lease().await?;
        let socket = &mut *lease;
        let text = self.pool.within("stat", async {
            socket.send(&Command::new(STAT).0).await?;
            okay(socket, "stat").await?;
            let len = socket.u32().await?;
            bytes(socket, "stat", len).await
        });
        let text = text.await?;
        lease.give_back();
        let text = String::from_utf8_lossy(&text);
        let pairs = text.lines().filter_map(|line| line.split_once('\t'));
        Ok(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// Calls a function by its name.
    pub(super) async fn misc(
        &self,
        name: &str,
        arguments: &[impl AsRef<[u8]>],
    ) -> Result<Vec<Vec<u8>>> {
        let command = Command::misc(name, arguments)?;
        let mut lease = self.pool.lease().await?;
        let socket = &mut *lease;
        let called = self.pool.within(name, async {
            socket.send(&command.0).await?;
            let done = done(socket, name).await?;
            let count = socket.u32().await?;
            let (mut found, mut sum) = (Vec::new(), 0);
            for _ in 0..count {
                let len = socket.u32().await?;
                sum += len as usize + VALUE;
                if sum > LONGEST {
                    return Err(too_long(name, LONGEST));
                }
                found.push(bytes(socket, name, len).await?);
            }
            Ok((done, found))
        });
        let (done, found) = called.await?;
        lease.give_back();
        if done { Ok(found) } else { Err(self.failed(name)) }
    }

    fn place(&self, e: Error) -> Error {
        e.in_place(self.pool.address().to_string())
    }

    fn failed(&self, what: &str) -> Error {
        let text = format!("the server failed to {what}, without a reason; see its log");
        Error::new(ErrorKind::Io, text).in_place(self.pool.address().to_string())
    }
}

/// Reads so many bytes, no more than a server has under one key.
async fn bytes(socket: &mut Socket, what: &str, len: u32) -> Result<Vec<u8>> {
    let len = len as usize;
    match len > LONGEST {
        false => socket.bytes(len).await,
        true => Err(Error::malformed(format!(
            "the answer to {what} announces {len} bytes; the limit of the server is {LONGEST}"
        ))),
    }
}

/// Reads a code: 0 for done, 1 for not done. Anything else is the answer to something else, or harmed.
async fn done(socket: &mut Socket, what: &str) -> Result<bool> {
    match socket.byte().await? {
        0 => Ok(true),
        1 => Ok(false),
        code => Err(out_of_step(what, &[code])),
    }
}

/// Reads a code that has to be zero.
async fn okay(socket: &mut Socket, what: &str) -> Result<()> {
    match done(socket, what).await? {
        true => Ok(()),
        false => Err(out_of_step(what, &[1])),
    }
}
