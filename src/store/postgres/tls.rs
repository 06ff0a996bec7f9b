//! A stream that the client's crate has while it logs in, and encrypts where TLS is asked for. What
//! is said after the login goes over the same stream without the crate.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use futures_util::{FutureExt, future::BoxFuture};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::store::socket::Stream;

/// A stream on loan. There is none in it while it is being encrypted.
pub struct Lent(Arc<Mutex<Option<Stream>>>);

impl Lent {
    /// Lends a stream; the other one takes it back.
    pub fn new(stream: Stream) -> (Lent, Lent) {
        let stream = Arc::new(Mutex::new(Some(stream)));
        (Lent(stream.clone()), Lent(stream))
    }

    fn stream(&self) -> MutexGuard<'_, Option<Stream>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stream itself.
    ///
    /// # Errors
    /// Where somebody else has taken it.
    pub fn take(&self) -> io::Result<Stream> {
        self.stream().take().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    fn with<T>(
        &self,
        act: impl FnOnce(Pin<&mut Stream>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        match &mut *self.stream() {
            Some(stream) => act(Pin::new(stream)),
            None => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }
}

impl AsyncRead for Lent {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.with(|stream| stream.poll_read(cx, into))
    }
}

impl AsyncWrite for Lent {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.with(|stream| stream.poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(|stream| stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(|stream| stream.poll_shutdown(cx))
    }
}

/// Encrypts the stream that was lent, and leaves it in its place.
pub struct Encrypt {
    pub tls: MakeRustlsConnect,
    /// Whose certificate is expected.
    pub host: String,
}

/// The same stream, encrypted.
pub struct Encrypted {
    lent: Lent,
    /// Given to the client once, when it logs in.
    binding: Mutex<Option<ChannelBinding>>,
}

impl TlsConnect<Lent> for Encrypt {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Encrypted>>;

    fn connect(mut self, lent: Lent) -> Self::Future {
        async move {
            let stream = lent.take()?;
            let connect = MakeTlsConnect::<Stream>::make_tls_connect(&mut self.tls, &self.host);
            let stream = connect.map_err(io::Error::other)?.connect(stream).await?;
            let binding = Mutex::new(Some(stream.channel_binding()));
            *lent.stream() = Some(Stream::Tls(Box::new(stream)));
            Ok(Encrypted { lent, binding })
        }
        .boxed()
    }
}

impl TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        let mut binding = self.binding.lock().unwrap_or_else(PoisonError::into_inner);
        binding.take().unwrap_or_else(ChannelBinding::none)
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.lent).poll_read(cx, into)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.lent).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.lent).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.lent).poll_shutdown(cx)
    }
}
