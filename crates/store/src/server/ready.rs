//! Free ports, and waiting until a server answers on its port, or on a socket.
//!
//! A port that is free may be taken by another program before the server has it. So nothing is sent to a port, and
//! nothing believed that comes from it, unless the socket that listens there is the server's.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    ops::Range,
    os::unix::net::UnixStream,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use super::listener::Whose;
use crate::{Error, ErrorKind, Result};

/// The ports that no system gives to outgoing connections by default: another program's connection cannot
/// take one while its server is down between a kill and a restart.
const PORTS: Range<u16> = 10_000..30_000;
/// How many of them are tried.
const TRIES: usize = 100;

/// A port of the loopback address that nobody listens on.
///
/// # Errors
/// Where the system has none.
pub(super) fn free_port() -> Result<u16> {
    let free = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    let random = || uuid::Uuid::new_v4().as_u128() as u16 % (PORTS.end - PORTS.start) + PORTS.start;
    let found = (0..TRIES).find_map(|_| free(random()).ok());
    Ok(found.map_or_else(|| free(0), Ok)?.local_addr()?.port())
}

/// Where a server is asked.
#[derive(Debug, Clone, Copy)]
pub(super) enum Door<'a> {
    /// A port of the loopback address.
    Port(u16),
    /// A socket of this machine.
    Socket(&'a Path),
}

/// Waits until a server answers as it should, or `over` says that this will not happen. `whose` says whose the socket
/// is that listens at a port.
///
/// # Errors
/// What `over` and `whose` say; [`Unavailable`](ErrorKind::Unavailable) when `patience` is at an end;
/// [`Conflict`](ErrorKind::Conflict) where another program listens at the port.
pub(super) fn wait_for(
    door: Door<'_>,
    ask: &[u8],
    answer: &[u8],
    patience: Duration,
    whose: impl Fn(u16) -> Result<Whose>,
    mut over: impl FnMut() -> Result<()>,
) -> Result<()> {
    let begin = Instant::now();
    // Asked often at first, as many servers take some milliseconds only.
    let mut pause = Duration::from_millis(1);
    loop {
        if answers(door, ask, answer, &whose)? {
            return Ok(());
        }
        over()?;
        if begin.elapsed() > patience {
            let seconds = patience.as_secs();
            let place = match door {
                Door::Port(port) => format!("port {port}"),
                Door::Socket(path) => path.display().to_string(),
            };
            return Err(Error::unavailable(format!("no answer on {place} within {seconds} s")));
        }
        thread::sleep(pause);
        pause = (pause * 3 / 2).min(Duration::from_millis(50));
    }
}

/// Whether the server answers as it should; not yet, where it does not.
fn answers(
    door: Door<'_>,
    ask: &[u8],
    answer: &[u8],
    whose: impl Fn(u16) -> Result<Whose>,
) -> Result<bool> {
    const PATIENCE: Option<Duration> = Some(Duration::from_secs(2));
    match door {
        Door::Port(port) => {
            let is_ours = || match whose(port)? {
                Whose::Nobodys => Ok(false),
                Whose::Ours => Ok(true),
                Whose::Others => {
                    let what = format!("port {port} of 127.0.0.1 was taken by another program");
                    Err(Error::new(ErrorKind::Conflict, what))
                }
            };
            if !is_ours()? {
                return Ok(false);
            }
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_secs(1)) else {
                return Ok(false);
            };
            // Before and after: so it was the server's when the connection was made.
            let asked = is_ours()?
                && stream.set_read_timeout(PATIENCE).is_ok()
                && asked(stream, ask, answer).is_ok();
            Ok(asked)
        }
        Door::Socket(path) => {
            let Ok(stream) = UnixStream::connect(path) else { return Ok(false) };
            let patient = stream.set_read_timeout(PATIENCE).is_ok();
            Ok(patient && asked(stream, ask, answer).is_ok())
        }
    }
}

fn asked(mut stream: impl Read + Write, ask: &[u8], answer: &[u8]) -> std::io::Result<()> {
    stream.write_all(ask)?;
    let mut head = vec![0; answer.len().max(1)];
    stream.read_exact(&mut head)?;
    match head.starts_with(answer) {
        true => Ok(()),
        false => Err(std::io::ErrorKind::InvalidData.into()),
    }
}
