//! The client's side of the bench: a process that does [`Task`]s with one client and says what came
//! of it. Whoever writes a client in Rust implements [`Calls`] and calls [`serve`]; then
//! `steelyard bench cache --client 'their program'` measures it beside the others.
//!
//! `window.rs` is the timed loop, the same for all; `blocking.rs`, `nonblocking.rs` are our clients,
//! `floor.rs` is what no client can be faster than, `null.rs` does nothing.

mod blocking;
mod floor;
mod nonblocking;
mod null;
mod window;

use std::{
    future::Future,
    io::{BufRead, Write},
    sync::Arc,
};

use self::window::Window;
use super::protocol::{self, Done, Hello, PROTOCOL, Task};
use crate::{
    Error, ErrorKind, Result,
    format::{Coder, Wrapped},
    record::Value,
};

/// What a read has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// The right value, whole.
    Hit,
    /// None.
    Miss,
    /// Another value.
    Wrong,
}

/// Keys and values of a task. Keys go by their number here, from 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Goods {
    /// All keys; those behind the last value have none.
    pub keys: Vec<String>,
    /// The bytes of values.
    pub values: Vec<Vec<u8>>,
    /// The same as objects; empty where values are bytes.
    pub objects: Vec<Value>,
    /// The format of objects.
    pub format: Wrapped,
}

impl Goods {
    fn of(task: &Task) -> Result<Goods> {
        let read =
            |path: &String| std::fs::read(path).map_err(|e| Error::from(e).in_place(path.as_str()));
        let values: Vec<Vec<u8>> = task.values.iter().map(read).collect::<Result<_>>()?;
        let format: Wrapped = task.format.parse()?;
        let mut coder = Coder::new(format.clone())?;
        let objects = match task.object {
            true => values.iter().map(|bytes| coder.decode(bytes)).collect::<Result<_>>()?,
            false => Vec::new(),
        };
        Ok(Goods { keys: task.keys.clone(), values, objects, format })
    }

    /// Whether values are objects.
    pub fn is_objects(&self) -> bool {
        !self.objects.is_empty()
    }

    /// What turns objects into bytes and back, with the memory it works in.
    ///
    /// # Errors
    /// As those of [`Coder::new`].
    pub fn coder(&self) -> Result<Coder> {
        Coder::new(self.format.clone())
    }

    /// The bytes to store for a key: as they are, or of its object, serialized into `out`.
    ///
    /// # Errors
    /// Those of the format.
    #[inline]
    pub fn bytes<'a>(
        &'a self,
        k: usize,
        coder: &mut Coder,
        out: &'a mut Vec<u8>,
    ) -> Result<&'a [u8]> {
        match self.objects.get(k) {
            None => Ok(&self.values[k]),
            Some(object) => {
                out.clear();
                coder.encode(object, out)?;
                Ok(out)
            }
        }
    }

    /// Holds what was read against what must be there.
    #[inline]
    pub fn check(&self, k: usize, bytes: &[u8], coder: &mut Coder) -> Found {
        let right = match (self.objects.get(k), self.values.get(k)) {
            (Some(object), _) => coder.decode::<Value>(bytes).is_ok_and(|read| read == *object),
            (None, Some(value)) => bytes == &value[..],
            (None, None) => false,
        };
        if right { Found::Hit } else { Found::Wrong }
    }
}

/// What came of a read of all keys at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// So many had their value.
    pub hits: u64,
    /// So many had none.
    pub misses: u64,
    /// So many had another.
    pub wrong: u64,
}

impl Tally {
    /// Counts one more.
    pub fn add(&mut self, found: Found) {
        match found {
            Found::Hit => self.hits += 1,
            Found::Miss => self.misses += 1,
            Found::Wrong => self.wrong += 1,
        }
    }
}

/// One connection's worth of a client: what a thread, or a task, uses. Keys go by their number in
/// [`Goods`].
pub trait Calls: Sized {
    /// Whether its calls stand still until they are answered: then each has a thread; otherwise all
    /// are tasks of one.
    const BLOCKING: bool;

    /// So many of them.
    ///
    /// # Errors
    /// Where it cannot be.
    fn open(goods: &Arc<Goods>, servers: &[String], connections: usize) -> Result<Vec<Self>>;

    /// Stores a key's value.
    fn set(&mut self, k: usize) -> impl Future<Output = Result<()>>;

    /// Reads a key, and compares.
    fn get(&mut self, k: usize) -> impl Future<Output = Result<Found>>;

    /// Reads all keys by one call.
    fn get_all(&mut self) -> impl Future<Output = Result<Tally>>;

    /// Deletes a key, if it is there.
    fn delete(&mut self, k: usize) -> impl Future<Output = Result<()>>;

    /// Stores so many values, of these keys over and over, without waiting for each; at the end all
    /// of it is done.
    fn flood(&mut self, keys: &[usize], operations: u64) -> impl Future<Output = Result<()>>;
}

/// Does tasks with a client until there are no more.
///
/// # Errors
/// Where a line cannot be read or written. What goes wrong in a task is told in its [`Done`].
pub fn serve<C: Calls + Send>(
    hello: Hello,
    input: impl BufRead,
    mut output: impl Write,
) -> Result<()> {
    let mut tell = |text: String| -> Result<()> {
        output.write_all(text.as_bytes())?;
        output.flush().map_err(Error::from)
    };
    tell(protocol::line(&Hello { cache_client: PROTOCOL, ..hello })?)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut open: Option<Open<C>> = None;
    for line in input.lines() {
        let done = protocol::read::<Task>(&line?).and_then(|task| {
            let ready = Open::again(open.take(), &task)?;
            let Open { clients, .. } = open.insert(ready);
            let window = Window::new(&task)?;
            match C::BLOCKING {
                true => window.on_threads(clients),
                false => runtime.block_on(window.in_tasks(clients)),
            }
        });
        let done = done.unwrap_or_else(|e| {
            open = None;
            Done { error: Some(format!("{e:?}").replace('\n', "; ")), ..Done::default() }
        });
        tell(protocol::line(&done)?)?;
    }
    Ok(())
}

/// Clients that are open, and what for.
struct Open<C> {
    like: Task,
    clients: Vec<C>,
}

impl<C: Calls> Open<C> {
    /// Those that are there, where they fit the task, or others.
    fn again(there: Option<Open<C>>, task: &Task) -> Result<Open<C>> {
        // What clients are made of; the rest is told to a window.
        let like = Task {
            object: task.object,
            connections: task.connections,
            format: task.format.clone(),
            servers: task.servers.clone(),
            keys: task.keys.clone(),
            values: task.values.clone(),
            ..Task::default()
        };
        if let Some(there) = there.filter(|there| there.like == like) {
            return Ok(there);
        }
        let goods = Arc::new(Goods::of(task)?);
        let connections = task.connections.max(1) as usize;
        let clients = C::open(&goods, &task.servers, connections)?;
        Ok(Open { like, clients })
    }
}

/// The clients that are part of this program.
pub const OWN: [&str; 4] = [FLOOR, STEELYARD, "steelyard-async", NULL];
/// The lower bound that no client can beat.
pub const FLOOR: &str = "floor";
/// Our blocking client.
pub const STEELYARD: &str = "steelyard";
/// The adapter that does nothing.
pub const NULL: &str = "null";

/// Is one of [`OWN`].
///
/// Not generic over its input: what is measured is then compiled with this crate, as it is optimized, and not with the
/// program that calls it.
///
/// # Errors
/// [`Invalid`](ErrorKind::Invalid) for a name that is none of them; those of [`serve`].
pub fn serve_own(name: &str, input: &mut dyn BufRead, output: &mut dyn Write) -> Result<()> {
    let hello = |about: &str, open: bool| Hello {
        client: name.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        about: about.into(),
        serializer: "the format".into(),
        noblock: true,
        open,
        ..Hello::default()
    };
    match name {
        FLOOR => {
            let about = "a raw loop: requests made beforehand, one send and one receive each";
            serve::<floor::Floor>(hello(about, false), input, output)
        }
        STEELYARD => {
            let about = "steelyard::memcache::Client, shared by threads";
            serve::<blocking::Ours>(hello(about, true), input, output)
        }
        "steelyard-async" => {
            let about = "steelyard::memcache::AsyncClient, shared by tasks of one thread";
            serve::<nonblocking::Ours>(hello(about, true), input, output)
        }
        NULL => serve::<null::Null>(hello("nothing", false), input, output),
        _ => {
            let what = format!("no client {name:?} in this program; known: {}", OWN.join(", "));
            Err(Error::new(ErrorKind::Invalid, what))
        }
    }
}
