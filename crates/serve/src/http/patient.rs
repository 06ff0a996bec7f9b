//! A connection whose client has a time to take what it is sent: one that takes nothing holds a place, and what waits for
//! it, no longer than that.

use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep},
};

/// A stream on which each write is taken within a time.
pub(super) struct Patient<S> {
    stream: S,
    patience: Duration,
    /// When the write that waits is given up; only while one waits.
    until: Pin<Box<Sleep>>,
    waits: bool,
}

impl<S> Patient<S> {
    pub(super) fn new(stream: S, patience: Duration) -> Patient<S> {
        Patient { stream, patience, until: Box::pin(sleep(patience)), waits: false }
    }

    /// What became of a write, with the time that it has.
    fn timed<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waits = false;
            return written;
        }
        if !self.waits {
            self.waits = true;
            self.until.as_mut().reset(Instant::now() + self.patience);
        }
        ready!(self.until.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.timed(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.timed(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.timed(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.stream).poll_shutdown(context);
        self.timed(context, ended)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_takes_nothing_is_given_up_and_who_is_slow_is_not() {
        let (ours, mut theirs) = duplex(8);
        let mut stream = Patient::new(ours, Duration::from_secs(15));
        let reader = tokio::spawn(async move {
            let mut taken = 0;
            // A byte every ten seconds, a minute long; then nothing.
            for _ in 0..6 {
                sleep(Duration::from_secs(10)).await;
                taken += theirs.read(&mut [0]).await.unwrap();
            }
            std::future::pending::<()>().await;
            taken
        });
        let begun = Instant::now();
        let error = stream.write_all(&[7; 100]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let lasted = begun.elapsed();
        assert!((70..=80).contains(&lasted.as_secs()), "{lasted:?}");
        reader.abort();
    }
}
