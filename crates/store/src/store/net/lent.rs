//! A stream that a client's crate has while it logs in. What is said after the login goes over the
//! same stream without the crate.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Stream;

/// A stream on loan. There is none in it while it is being encrypted.
pub(crate) struct Lent(Arc<Mutex<Inside>>);

struct Inside {
    stream: Option<Stream>,
    watch: Box<Watch>,
}

/// Is shown what is read, piece by piece, before whoever reads it; its error is theirs.
type Watch = dyn FnMut(&[u8]) -> io::Result<()> + Send;

impl Lent {
    /// Lends a stream that is watched; the other one takes it back.
    pub(crate) fn new(
        stream: Stream,
        watch: impl FnMut(&[u8]) -> io::Result<()> + Send + 'static,
    ) -> (Lent, Lent) {
        let inside = Inside { stream: Some(stream), watch: Box::new(watch) };
        let inside = Arc::new(Mutex::new(inside));
        (Lent(inside.clone()), Lent(inside))
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stream itself.
    ///
    /// # Errors
    /// Where somebody else has taken it.
    pub(crate) fn take(&self) -> io::Result<Stream> {
        self.inside().stream.take().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Puts a stream in its place.
    pub(crate) fn put(&self, stream: Stream) {
        self.inside().stream = Some(stream);
    }

    fn with<T>(
        &self,
        act: impl FnOnce(Pin<&mut Stream>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        match &mut self.inside().stream {
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
        let before = into.filled().len();
        let mut inside = self.inside();
        let Inside { stream: Some(stream), watch } = &mut *inside else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        ready!(Pin::new(stream).poll_read(cx, into))?;
        Poll::Ready(watch(&into.filled()[before..]))
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
