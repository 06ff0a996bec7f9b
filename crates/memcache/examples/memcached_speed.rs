//! The memcached client against a raw loop, for `scripts/memcached_speed.py`:
//! `memcached_speed CLIENT WORK ADDRESS OPERATIONS` prints microseconds and microseconds of CPU an
//! operation.
//!
//! CLIENT: `floor` (reused buffers, one send and one receive, the answer's length known), `ours`.
//! WORK: `get`, `set`, `multiget` (of 100 keys), `noblock` (sets nobody waits for), `pipe-get` and
//! `pipe-mg` (reads, 100 in flight), values of 100 bytes.

use std::{
    hint::black_box,
    io::{Read, Write},
    os::unix::net::UnixStream,
    time::{Duration, Instant},
};

use nix::sys::resource::{UsageWho, getrusage};
use steelyard_base::{Error, Result};
use steelyard_memcache::{Client, Expiry, Options};

const KEYS: usize = 100;

fn key(n: usize) -> String {
    format!("key{:05}", n % KEYS)
}

fn cpu() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("what this process has used");
    let of = |time: nix::sys::time::TimeVal| {
        Duration::new(time.tv_sec() as u64, time.tv_usec() as u32 * 1000)
    };
    of(usage.user_time()) + of(usage.system_time())
}

/// Sends one request and reads until the answer has come.
fn ask(stream: &mut UnixStream, out: &[u8], input: &mut [u8], length: usize) -> Result<()> {
    stream.write_all(out)?;
    let mut got = 0;
    while got < length {
        match stream.read(&mut input[got..])? {
            0 => return Err(Error::unavailable("closed")),
            n => got += n,
        }
    }
    black_box(&input[..got]);
    Ok(())
}

fn floor(work: &str, address: &str, operations: usize) -> Result<()> {
    let mut stream = UnixStream::connect(address)?;
    let (mut out, mut input) = (Vec::with_capacity(1 << 16), vec![0; 1 << 16]);
    let value = [b'v'; 100];
    let keys: Vec<_> = (0..KEYS).map(key).collect();
    for n in 0..operations {
        out.clear();
        let length = match work {
            "get" => {
                out.extend_from_slice(b"get ");
                out.extend_from_slice(keys[n % KEYS].as_bytes());
                out.extend_from_slice(b"\r\n");
                "VALUE key00000 0 100\r\n".len() + 102 + 5
            }
            "set" => {
                write!(out, "set {} 0 0 100\r\n", keys[n % KEYS])?;
                out.extend_from_slice(&value);
                out.extend_from_slice(b"\r\n");
                8
            }
            "multiget" => {
                out.extend_from_slice(b"get");
                for key in &keys {
                    out.push(b' ');
                    out.extend_from_slice(key.as_bytes());
                }
                out.extend_from_slice(b"\r\n");
                KEYS * ("VALUE key00000 0 100\r\n".len() + 102) + 5
            }
            "pipe-get" => {
                for key in &keys {
                    write!(out, "get {key}\r\n")?;
                }
                KEYS * ("VALUE key00000 0 100\r\n".len() + 102 + 5)
            }
            "pipe-mg" => {
                for key in &keys {
                    out.extend_from_slice(b"mg ");
                    out.extend_from_slice(key.as_bytes());
                    out.extend_from_slice(b" v\r\n");
                }
                KEYS * ("VA 100\r\n".len() + 102)
            }
            "noblock" => {
                for key in &keys {
                    write!(out, "ms {key} 100 q\r\n")?;
                    out.extend_from_slice(&value);
                    out.extend_from_slice(b"\r\n");
                }
                out.extend_from_slice(b"mn\r\n");
                4
            }
            other => return Err(Error::invalid(format!("no work {other:?}"))),
        };
        ask(&mut stream, &out, &mut input, length)?;
    }
    Ok(())
}

fn ours(client: &Client, work: &str, operations: usize) -> Result<()> {
    let keys: Vec<_> = (0..KEYS).map(key).collect();
    let value = [b'v'; 100];
    match work {
        "get" => {
            for n in 0..operations {
                let found = client.get(&keys[n % KEYS])?;
                assert!(black_box(found).is_some_and(|value| value.bytes.len() == 100));
            }
        }
        "set" => {
            for n in 0..operations {
                client.set(&keys[n % KEYS], value, Expiry::Never)?;
            }
        }
        "multiget" => {
            for _ in 0..operations {
                let mut found = 0;
                client.get_each(&keys, |_, _, value| {
                    found += usize::from(black_box(value).is_ok_and(|v| v.is_some()));
                });
                assert_eq!(found, KEYS);
            }
        }
        "noblock" => {
            let mut writes = client.noblock();
            for n in 0..operations * KEYS {
                writes.set(&keys[n % KEYS], value, Expiry::Never)?;
            }
            assert!(writes.barrier().is_empty());
        }
        other => return Err(Error::invalid(format!("no work {other:?}"))),
    }
    Ok(())
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [who, work, address, operations] = &args[..] else {
        return Err(Error::invalid("CLIENT WORK ADDRESS OPERATIONS"));
    };
    let operations: usize = operations.parse().map_err(|_| Error::invalid("a number"))?;
    let batch = if matches!(&**work, "get" | "set") { 1 } else { KEYS };
    let client = Client::new([address], Options::default())?;
    for n in 0..KEYS {
        client.set(key(n), [b'v'; 100], Expiry::Never)?;
    }
    let run = |operations| match &**who {
        "floor" => floor(work, address, operations),
        _ => ours(&client, work, operations),
    };
    run(operations / 20 + 1)?;
    let (begin, before) = (Instant::now(), cpu());
    run(operations)?;
    let (wall, used) = (begin.elapsed(), cpu() - before);
    let each = |time: Duration| time.as_secs_f64() * 1e6 / (operations * batch) as f64;
    println!("{:.4} {:.4}", each(wall), each(used));
    Ok(())
}
