//! How the client's crate encrypts a stream, so that it can be had back when it has logged in.

use std::{
    io,
    pin::Pin,
    sync::{Mutex, PoisonError},
    task::{Context, Poll},
};

use futures_util::{FutureExt, future::BoxFuture};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::store::net::{Stream, lent::Lent};

/// Encrypts the stream that was lent, and leaves it in its place.
pub(super) struct Encrypt {
    pub tls: MakeRustlsConnect,
    /// Whose certificate is expected.
    pub host: String,
}

/// The same stream, encrypted.
pub(super) struct Encrypted {
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
            lent.put(Stream::Tls(Box::new(stream)));
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
