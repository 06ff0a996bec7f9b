//! Where it is listened: a port, a port with TLS, a Unix socket.

use std::io;
#[cfg(feature = "tls")]
use std::sync::Arc;

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, UnixListener},
};

#[cfg(feature = "tls")]
use super::tls::Certificates;

/// A socket that is listened on. Its owner made it, and so chose its address and who may reach it.
#[non_exhaustive]
pub enum Socket {
    /// HTTP over TCP.
    Tcp(TcpListener),
    /// HTTP over TLS.
    #[cfg(feature = "tls")]
    Tls(TcpListener, Arc<Certificates>),
    /// HTTP over a Unix socket.
    Unix(UnixListener),
}

impl From<TcpListener> for Socket {
    fn from(listener: TcpListener) -> Socket {
        Socket::Tcp(listener)
    }
}

/// How clients reach a socket, as far as answers depend on it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reached {
    /// From this machine alone, by an address that browsers can be led to.
    pub local: bool,
    pub tls: bool,
}

/// A connection, whatever it goes over.
pub(super) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// A connection that was accepted.
pub(super) enum Incoming {
    Ready(Box<dyn Io>),
    /// What is left is the handshake.
    #[cfg(feature = "tls")]
    Tls(tokio::net::TcpStream, Arc<Certificates>),
}

impl Socket {
    /// The port that it listens on; 0 where it has none.
    pub(crate) fn port(&self) -> u16 {
        match self {
            Socket::Tcp(listener) => listener.local_addr().map_or(0, |address| address.port()),
            #[cfg(feature = "tls")]
            Socket::Tls(listener, _) => listener.local_addr().map_or(0, |address| address.port()),
            Socket::Unix(_) => 0,
        }
    }

    pub(crate) fn reached(&self) -> Reached {
        let local = |listener: &TcpListener| {
            listener.local_addr().is_ok_and(|address| address.ip().is_loopback())
        };
        match self {
            Socket::Tcp(listener) => Reached { local: local(listener), tls: false },
            #[cfg(feature = "tls")]
            Socket::Tls(listener, _) => Reached { local: local(listener), tls: true },
            // No browser gets there but by a proxy, which has names of its own.
            Socket::Unix(_) => Reached::default(),
        }
    }

    pub(super) async fn accept(&self) -> io::Result<Incoming> {
        let direct = |stream: tokio::net::TcpStream| {
            // Answers are written whole: waiting for more only delays them.
            let _ = stream.set_nodelay(true);
            stream
        };
        Ok(match self {
            Socket::Tcp(listener) => Incoming::Ready(Box::new(direct(listener.accept().await?.0))),
            #[cfg(feature = "tls")]
            Socket::Tls(listener, certificates) => {
                Incoming::Tls(direct(listener.accept().await?.0), certificates.clone())
            }
            Socket::Unix(listener) => Incoming::Ready(Box::new(listener.accept().await?.0)),
        })
    }
}

impl Incoming {
    /// The connection, once it can be spoken over.
    pub(super) async fn ready(self) -> io::Result<Box<dyn Io>> {
        match self {
            Incoming::Ready(stream) => Ok(stream),
            #[cfg(feature = "tls")]
            Incoming::Tls(stream, certificates) => certificates.accept(stream).await,
        }
    }
}
