//! Free ports, and waiting until somebody answers on one, or on a socket.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    os::unix::net::UnixStream,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use crate::{Error, Result};

/// A port of the loopback address that nobody listens on.
///
/// # Errors
/// Where the system has none.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Where a server is asked.
#[derive(Debug, Clone, Copy)]
pub enum Door<'a> {
    /// A port of the loopback address.
    Port(u16),
    /// A socket of this machine.
    Socket(&'a Path),
}

/// Waits until a server answers as it should, or `over` says that this will not happen.
///
/// # Errors
/// What `over` says; [`Unavailable`](crate::ErrorKind::Unavailable) when `patience` is at an end.
pub fn wait_for(
    door: Door<'_>,
    ask: &[u8],
    answer: &[u8],
    patience: Duration,
    mut over: impl FnMut() -> Result<()>,
) -> Result<()> {
    let begin = Instant::now();
    // Asked often at first, as many servers take some milliseconds only.
    let mut pause = Duration::from_millis(1);
    loop {
        if answers(door, ask, answer).is_ok() {
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

fn answers(door: Door<'_>, ask: &[u8], answer: &[u8]) -> std::io::Result<()> {
    const PATIENCE: Option<Duration> = Some(Duration::from_secs(2));
    match door {
        Door::Port(port) => {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            let stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
            stream.set_read_timeout(PATIENCE)?;
            asked(stream, ask, answer)
        }
        Door::Socket(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(PATIENCE)?;
            asked(stream, ask, answer)
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
