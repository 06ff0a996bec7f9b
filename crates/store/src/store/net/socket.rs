//! A socket to a server, plain or encrypted.

use std::{
    fmt, io,
    path::PathBuf,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, UnixStream},
};

use crate::{Result, store::limits::unreached};

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// A host and its port.
    Tcp(String, u16),
    /// A socket of this machine.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Address::Tcp(host, port) => write!(f, "{host}:{port}"),
            Address::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// What bytes go through, both ways.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send + Sync + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Duplex for T {}

/// A socket of either kind, or what encrypts the bytes of one.
pub(crate) enum Stream {
    /// Plain TCP.
    Tcp(TcpStream),
    /// A socket of this machine.
    Unix(UnixStream),
    /// TLS over one of the others.
    Tls(Box<dyn Duplex>),
}

impl Stream {
    /// Connects. There is no time limit here; the caller sets one.
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable), naming the address.
    pub(crate) async fn connect(address: &Address) -> Result<Stream> {
        let connect = async {
            Ok(match address {
                Address::Tcp(host, port) => {
                    let stream = TcpStream::connect((host.as_str(), *port)).await?;
                    stream.set_nodelay(true)?;
                    Stream::Tcp(stream)
                }
                Address::Unix(path) => Stream::Unix(UnixStream::connect(path).await?),
            })
        };
        connect.await.map_err(|e: io::Error| {
            unreached(e.to_string()).with_source(e).in_place(address.to_string())
        })
    }
}

/// The same of each kind.
macro_rules! each {
    ($of:expr, $stream:ident => $then:expr) => {
        match $of {
            Stream::Tcp($stream) => $then,
            Stream::Unix($stream) => $then,
            Stream::Tls($stream) => $then,
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        each!(self.get_mut(), stream => Pin::new(stream).poll_read(cx, into))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        each!(self.get_mut(), stream => Pin::new(stream).poll_write(cx, bytes))
    }

    /// Only TLS holds anything back.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self.get_mut(), stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self.get_mut(), stream => Pin::new(stream).poll_shutdown(cx))
    }
}
