//! The `floor` adapter, a lower bound that no client can beat: requests are encoded beforehand, buffers are reused, and
//! each call is one send and one receive. Keys are assigned to the servers in turn, so that a read of all keys goes to
//! each server.

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::Arc,
};

use super::{Calls, Found, Goods, Tally};
use crate::{Error, Result, format::Coder};

/// From so many bytes on, what is gathered is sent.
const ENOUGH: usize = 16 << 10;
/// Whole answers are read at once up to this many bytes.
const ROOM: usize = 64 << 10;

pub(super) struct Floor {
    goods: Arc<Goods>,
    coder: Coder,
    servers: Vec<TcpStream>,
    /// Requests of values that are bytes, and others.
    sets: Vec<Vec<u8>>,
    gets: Vec<Vec<u8>>,
    deletes: Vec<Vec<u8>>,
    /// To each server: all its keys.
    multigets: Vec<Vec<u8>>,
    out: Vec<u8>,
    bytes: Vec<u8>,
    input: Vec<u8>,
}

/// Answers of the text protocol that have no value in them.
const MISS: &[u8] = b"END\r\n";

impl Floor {
    fn new(goods: &Arc<Goods>, servers: &[String]) -> Result<Floor> {
        let connect = |address: &String| -> Result<TcpStream> {
            let stream = TcpStream::connect(address)
                .map_err(|e| Error::from(e).in_place(address.as_str()))?;
            stream.set_nodelay(true)?;
            Ok(stream)
        };
        let servers: Vec<TcpStream> = servers.iter().map(connect).collect::<Result<_>>()?;
        let each = |text: &dyn Fn(&str) -> String| -> Vec<Vec<u8>> {
            goods.keys.iter().map(|key| text(key).into_bytes()).collect()
        };
        let multiget = |server: usize| {
            let own = goods.keys.iter().enumerate().filter(|(k, _)| k % servers.len() == server);
            let keys: String = own.map(|(_, key)| format!(" {key}")).collect();
            format!("get{keys}\r\n").into_bytes()
        };
        let set = |(key, value): (&String, &Vec<u8>)| {
            let mut out = Vec::new();
            push_set(&mut out, key, value);
            out
        };
        Ok(Floor {
            coder: goods.coder()?,
            sets: goods.keys.iter().zip(&goods.values).map(set).collect(),
            gets: each(&|key| format!("get {key}\r\n")),
            deletes: each(&|key| format!("delete {key}\r\n")),
            multigets: (0..servers.len()).map(multiget).collect(),
            servers,
            goods: Arc::clone(goods),
            out: Vec::new(),
            bytes: Vec::new(),
            input: vec![0; ROOM],
        })
    }

    /// Reads an answer that ends with `end` and has no value, or `whole` bytes of one that has.
    fn answer(&mut self, server: usize, whole: usize, end: &[u8]) -> Result<usize> {
        if self.input.len() < whole {
            self.input.resize(whole, 0);
        }
        let mut got = 0;
        loop {
            match self.servers[server].read(&mut self.input[got..])? {
                0 => return Err(Error::unavailable("the server hung up")),
                n => got += n,
            }
            let short = got < whole && &self.input[..got] != end;
            // Whatever else the server says ends with its line.
            if !short || self.input[..got].ends_with(b"ERROR\r\n") {
                return Ok(got);
            }
        }
    }
}

fn push_set(out: &mut Vec<u8>, key: &str, value: &[u8]) {
    out.extend_from_slice(b"set ");
    out.extend_from_slice(key.as_bytes());
    // A Vec takes whatever is written.
    let _ = write!(out, " 0 0 {}\r\n", value.len());
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// The values in an answer to `get`, by key: header, bytes, line feed.
fn values<'a>(mut answer: &'a [u8], mut each: impl FnMut(&'a [u8], &'a [u8])) -> Result<()> {
    let wrong = || Error::malformed("an answer that is none to get");
    while answer != MISS {
        let line = answer.windows(2).position(|w| w == b"\r\n").ok_or_else(wrong)?;
        let mut words = answer[..line].split(|b| *b == b' ').skip(1);
        let key = words.next().ok_or_else(wrong)?;
        // Between them are the flags.
        let length = words.nth(1).and_then(|w| std::str::from_utf8(w).ok()?.parse().ok());
        let begin = line + 2;
        let end = length.and_then(|n: usize| begin.checked_add(n)).ok_or_else(wrong)?;
        each(key, answer.get(begin..end).ok_or_else(wrong)?);
        answer = answer.get(end + 2..).ok_or_else(wrong)?;
    }
    Ok(())
}

/// What an answer to a get with one value has around it: `VALUE KEY 0 LENGTH`, line ends, `END`.
fn around(key: &str, length: usize) -> usize {
    "VALUE  0 \r\n\r\n".len() + key.len() + length.to_string().len() + MISS.len()
}

impl Calls for Floor {
    const BLOCKING: bool = true;

    fn open(goods: &Arc<Goods>, servers: &[String], connections: usize) -> Result<Vec<Floor>> {
        (0..connections).map(|_| Floor::new(goods, servers)).collect()
    }

    async fn set(&mut self, k: usize) -> Result<()> {
        let server = k % self.servers.len();
        if self.goods.is_objects() {
            let value = self.goods.bytes(k, &mut self.coder, &mut self.bytes)?;
            self.out.clear();
            push_set(&mut self.out, &self.goods.keys[k], value);
            self.servers[server].write_all(&self.out)?;
        } else {
            self.servers[server].write_all(&self.sets[k])?;
        }
        let got = self.answer(server, b"STORED\r\n".len(), b"")?;
        match &self.input[..got] {
            b"STORED\r\n" => Ok(()),
            other => Err(Error::malformed(String::from_utf8_lossy(other).trim().to_owned())),
        }
    }

    async fn get(&mut self, k: usize) -> Result<Found> {
        let server = k % self.servers.len();
        self.servers[server].write_all(&self.gets[k])?;
        let length = self.goods.values[k].len();
        let head = around(&self.goods.keys[k], length);
        let got = self.answer(server, head + length, MISS)?;
        if &self.input[..got] == MISS {
            return Ok(Found::Miss);
        }
        let value = self.input.get(head - 7..head - 7 + length).unwrap_or_default();
        Ok(self.goods.check(k, value, &mut self.coder))
    }

    async fn get_all(&mut self) -> Result<Tally> {
        for (server, request) in self.servers.iter_mut().zip(&self.multigets) {
            server.write_all(request)?;
        }
        let mut tally = Tally::default();
        let mut hits = 0;
        for server in 0..self.servers.len() {
            let own = (0..self.goods.values.len()).filter(|k| k % self.servers.len() == server);
            let whole = own.map(|k| {
                let length = self.goods.values[k].len();
                around(&self.goods.keys[k], length) - MISS.len() + length
            });
            let whole = whole.sum::<usize>() + MISS.len();
            let got = self.answer(server, whole, MISS)?;
            let Floor { goods, coder, input, .. } = self;
            values(&input[..got], |key, value| {
                let k = goods.keys.iter().position(|known| known.as_bytes() == key);
                tally.add(k.map_or(Found::Wrong, |k| goods.check(k, value, coder)));
                hits += 1;
            })?;
        }
        tally.misses = self.goods.keys.len() as u64 - hits;
        Ok(tally)
    }

    async fn delete(&mut self, k: usize) -> Result<()> {
        let server = k % self.servers.len();
        self.servers[server].write_all(&self.deletes[k])?;
        let got = self.answer(server, b"NOT_FOUND\r\n".len(), b"DELETED\r\n")?;
        match &self.input[..got] {
            b"DELETED\r\n" | b"NOT_FOUND\r\n" => Ok(()),
            other => Err(Error::malformed(String::from_utf8_lossy(other).trim().to_owned())),
        }
    }

    async fn flood(&mut self, keys: &[usize], operations: u64) -> Result<()> {
        let mut outs: Vec<Vec<u8>> = self.servers.iter().map(|_| Vec::new()).collect();
        for (_, &k) in (0..operations).zip(keys.iter().cycle()) {
            let server = k % self.servers.len();
            let value = self.goods.bytes(k, &mut self.coder, &mut self.bytes)?;
            let out = &mut outs[server];
            out.extend_from_slice(b"ms ");
            out.extend_from_slice(self.goods.keys[k].as_bytes());
            let _ = write!(out, " {} q\r\n", value.len());
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
            if out.len() >= ENOUGH {
                self.servers[server].write_all(out)?;
                out.clear();
            }
        }
        for (server, mut out) in outs.into_iter().enumerate() {
            out.extend_from_slice(b"mn\r\n");
            self.servers[server].write_all(&out)?;
            let got = self.answer(server, 4, b"")?;
            if &self.input[..got] != b"MN\r\n" {
                return Err(Error::malformed("a write that was not waited for failed"));
            }
        }
        Ok(())
    }
}
