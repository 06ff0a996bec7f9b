//! Connections over which a task asks and reads the answer itself: no task of the connection's own
//! stands between, no channel, and no timer is set for an operation.
//!
//! One that was not given back in good order (its answer was late or half, whoever waited went
//! away) is closed, so that nobody reads what was meant for another.

use std::{
    io::ErrorKind as IoKind,
    pin::Pin,
    task::{Context, Poll, Waker, ready},
    time::{Duration, Instant},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{portions::too_long, socket::Stream, waiting::Waiting};
use crate::{
    Error, Result,
    store::{
        blocking,
        limits::late,
        pool::{self, Pool},
    },
    timer::Alarm,
};

/// How many bytes are read at once, before much has come.
const BUFFER: usize = 16 << 10;
/// Buffers larger than this are not kept.
const KEPT: usize = 1 << 20;
/// Questions up to this length fit into what the system holds back of a socket, so that sending them
/// never waits for a server that waits for us to read.
const SHORT: usize = 16 << 10;
/// How many bytes an answer may have before the login is over, or where it says only that something was done.
pub(crate) const SAID: usize = 256 << 10;
/// One that was in use just now is not doubted.
pub(crate) const JUST_NOW: Duration = Duration::from_millis(50);

/// A connection.
pub(crate) struct Connection {
    stream: Stream,
    out: Vec<u8>,
    /// What has come; beyond `filled` there are zeros or what came earlier.
    input: Vec<u8>,
    filled: usize,
    /// How much of it the last answer was.
    taken: usize,
    alarm: Alarm,
    /// When it was last asked something.
    asked: Instant,
    /// The socket, while questions wait in the thread.
    waiting: Option<Waiting>,
}

impl Connection {
    /// A connection over a socket on which nothing is under way.
    ///
    /// # Errors
    /// Where there are no more files to be had.
    pub(crate) fn new(stream: Stream) -> Result<Connection> {
        Ok(Connection {
            stream,
            out: Vec::new(),
            input: vec![0; BUFFER],
            filled: 0,
            taken: 0,
            alarm: Alarm::new()?,
            asked: Instant::now(),
            waiting: None,
        })
    }

    /// Where the next question is written.
    pub(crate) fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Makes another stream of the one below: TLS, which begins in the middle of a login.
    ///
    /// # Errors
    /// Those of `make`; the connection is of no use afterwards.
    pub(crate) async fn upgrade(
        &mut self,
        make: impl AsyncFnOnce(Stream) -> Result<Stream>,
    ) -> Result<()> {
        self.waiting = None;
        let below = std::mem::replace(&mut self.stream, Stream::Tls(Box::new(tokio::io::empty())));
        self.stream = make(below).await?;
        Ok(())
    }

    /// Nothing has come that was not asked for, nor the end.
    fn is_quiet(&mut self) -> bool {
        if let Some(waiting) = &mut self.waiting {
            return self.filled == self.taken && waiting.is_quiet();
        }
        let (mut byte, mut nobody) = ([0], Context::from_waker(Waker::noop()));
        let mut byte = ReadBuf::new(&mut byte);
        self.filled == self.taken
            && Pin::new(&mut self.stream).poll_read(&mut nobody, &mut byte).is_pending()
    }

    /// Sends what was written to [`out`](Connection::out), and reads the answer, which may have `most`
    /// bytes. `end` is shown all that has come of it, again when there is more, and says where it
    /// ends, if it does.
    ///
    /// # Errors
    /// Those of `end`; [`Unavailable`](crate::ErrorKind::Unavailable) where the connection breaks,
    /// [`Timeout`](crate::ErrorKind::Timeout) where the answer is not there within the limit,
    /// [`Malformed`](crate::ErrorKind::Malformed) where it does not end within `most` bytes.
    pub(crate) async fn ask(
        &mut self,
        what: &str,
        limit: Duration,
        most: usize,
        mut end: impl FnMut(&[u8]) -> Result<Option<usize>>,
    ) -> Result<&[u8]> {
        (self.filled, self.taken) = (0, 0);
        // What TLS needs to read and to write, and when, only the runtime knows.
        let plain = !matches!(self.stream, Stream::Tls(_));
        let done = match plain && blocking::is_allowed() && self.out.len() <= SHORT {
            true => self.ask_here(what, limit, most, &mut end),
            false => self.ask_in_task(what, limit, most, &mut end).await,
        };
        self.out.clear();
        if self.out.capacity() > KEPT {
            self.out.shrink_to(KEPT);
        }
        self.taken = done?;
        Ok(&self.input[..self.taken])
    }

    /// Asks, and waits as the runtime does.
    async fn ask_in_task(
        &mut self,
        what: &str,
        limit: Duration,
        most: usize,
        end: &mut impl FnMut(&[u8]) -> Result<Option<usize>>,
    ) -> Result<usize> {
        self.waiting = None;
        self.asked = Instant::now();
        let (deadline, mut now) = (self.asked + limit, Some(self.asked));
        let mut sent = 0;
        std::future::poll_fn(|cx| {
            let step = self.step(cx, &mut sent, (what, most), end);
            if step.is_pending() {
                // It has hardly begun when it waits for the first time.
                let now = now.take().unwrap_or_else(Instant::now);
                if self.alarm.is_over(cx, deadline, now) {
                    return Poll::Ready(Err(late(what, limit)));
                }
            }
            step
        })
        .await
    }

    /// Asks, and waits in the thread.
    fn ask_here(
        &mut self,
        what: &str,
        limit: Duration,
        most: usize,
        end: &mut impl FnMut(&[u8]) -> Result<Option<usize>>,
    ) -> Result<usize> {
        let failed = |e: std::io::Error| match e.kind() {
            IoKind::TimedOut => late(what, limit),
            _ => broken(e),
        };
        let waiting = match &mut self.waiting {
            Some(waiting) => waiting,
            none => none.insert(Waiting::new(&self.stream)?),
        };
        waiting.send(&self.out, limit, Instant::now()).map_err(failed)?;
        loop {
            match waiting.read(room(&mut self.input, self.filled, most)).map_err(failed)? {
                0 => return Err(broken(IoKind::UnexpectedEof.into())),
                n => self.filled += n,
            }
            if let Some(end) = end(&self.input[..self.filled])? {
                return Ok(end);
            }
            if self.filled > most {
                return Err(too_long(what, most));
            }
            waiting.go_on(limit).map_err(failed)?;
        }
    }

    /// Sends and reads as much as there is, until the answer ends.
    fn step(
        &mut self,
        cx: &mut Context<'_>,
        sent: &mut usize,
        (what, most): (&str, usize),
        end: &mut impl FnMut(&[u8]) -> Result<Option<usize>>,
    ) -> Poll<Result<usize>> {
        while *sent < self.out.len() {
            match Pin::new(&mut self.stream).poll_write(cx, &self.out[*sent..]) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(broken(IoKind::WriteZero.into()))),
                Poll::Ready(n) => *sent += n.map_err(broken)?,
                // A server may answer before it has read all, and wait until that is read.
                Poll::Pending => break,
            }
        }
        if *sent == self.out.len()
            && let Poll::Ready(Err(e)) = Pin::new(&mut self.stream).poll_flush(cx)
        {
            return Poll::Ready(Err(broken(e)));
        }
        loop {
            let mut space = ReadBuf::new(room(&mut self.input, self.filled, most));
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut space)).map_err(broken)?;
            match space.filled().len() {
                0 => return Poll::Ready(Err(broken(IoKind::UnexpectedEof.into()))),
                n => self.filled += n,
            }
            if let Some(end) = end(&self.input[..self.filled])? {
                return Poll::Ready(Ok(end));
            }
            if self.filled > most {
                return Poll::Ready(Err(too_long(what, most)));
            }
        }
    }
}

/// Where more is read to: one byte at least, and not much beyond `most` altogether.
fn room(input: &mut Vec<u8>, filled: usize, most: usize) -> &mut [u8] {
    if filled == input.len() {
        let more = (filled * 2).min(most.saturating_add(1)).max(filled + 1);
        // Not what it would grow to by itself.
        input.reserve_exact(more - filled);
        input.resize(more, 0);
    }
    &mut input[filled..]
}

/// What became of a connection, as an error.
pub(crate) fn broken(e: std::io::Error) -> Error {
    let what = match e.kind() {
        IoKind::UnexpectedEof => {
            "the server closed the connection before its answer was complete".into()
        }
        _ => format!("the connection broke: {e}"),
    };
    Error::unavailable(what).with_source(e)
}

/// A connection and what a driver knows of it, at one place in memory: it is handed about twice for each
/// question, and what holds it while it waits is smaller. (For futures beyond 1 KiB the system's
/// allocator keeps nothing ready: that was a seventh of a point read's instructions.)
pub(crate) type Opened<T> = Box<(Connection, T)>;

/// Connections to one server.
pub(crate) type Connections<T> = Pool<Opened<T>>;

/// A connection on loan.
pub(crate) type Lease<'p, T> = pool::Lease<Opened<T>, &'p Connections<T>>;

impl<T> pool::Connection for Opened<T> {
    fn is_sound(&mut self) -> bool {
        self.0.is_quiet()
    }

    fn has_rested(&self) -> bool {
        let connection = &self.0;
        // In the thread the socket itself is looked at.
        connection.waiting.is_none() && connection.asked.elapsed() > JUST_NOW
    }

    fn rest(&mut self) {
        let connection = &mut self.0;
        if connection.input.len() > KEPT {
            connection.input = vec![0; BUFFER];
            (connection.filled, connection.taken) = (connection.filled - connection.taken, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::{TcpListener, TcpStream},
    };

    use super::*;
    use crate::store::{limits::Limits, net::Address};

    const LIMIT: Duration = Duration::from_millis(300);
    const MOST: usize = 8 << 20;

    struct Server(TcpListener, Address, Connections<()>);

    impl Server {
        async fn new() -> Server {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = Address::Tcp("127.0.0.1".into(), listener.local_addr().unwrap().port());
            let limits = Limits { connect: LIMIT, operation: LIMIT, pool: 1 };
            let connections = Connections::new(limits, address.to_string());
            Server(listener, address, connections)
        }

        async fn lease(&self) -> Result<Lease<'_, ()>> {
            let connect =
                async || Ok(Box::new((Connection::new(Stream::connect(&self.1).await?)?, ())));
            self.2.lease(connect).await
        }

        async fn accept(&self) -> TcpStream {
            self.0.accept().await.unwrap().0
        }
    }

    /// An answer is a line.
    fn to_newline(bytes: &[u8]) -> Result<Option<usize>> {
        Ok(memchr::memchr(b'\n', bytes).map(|at| at + 1))
    }

    async fn ask(lease: &mut Lease<'_, ()>, question: &str) -> Result<Vec<u8>> {
        let (connection, ()) = &mut ***lease;
        connection.out().extend(question.as_bytes());
        connection.ask("a question", LIMIT, MOST, to_newline).await.map(<[u8]>::to_vec)
    }

    #[tokio::test]
    async fn questions_are_answered_on_one_connection() {
        let server = Server::new().await;
        let large = "x".repeat(3 * KEPT) + "\n";
        let client = async {
            for question in ["one\n", "two\n", &large, "three\n"] {
                let mut lease = server.lease().await.unwrap();
                assert_eq!(ask(&mut lease, question).await.unwrap(), question.as_bytes());
                lease.give_back();
            }
            server.2.forget();
        };
        let echo = async {
            let mut socket = server.accept().await;
            let (mut read, mut write) = socket.split();
            tokio::io::copy(&mut read, &mut write).await.unwrap();
        };
        tokio::join!(client, echo);
    }

    #[tokio::test]
    async fn an_answer_that_is_late_reaches_nobody() {
        let server = Server::new().await;
        for gave_up in [false, true] {
            let mut lease = server.lease().await.unwrap();
            let mut socket = server.accept().await;
            let asked = ask(&mut lease, "one\n");
            match gave_up {
                true => assert!(tokio::time::timeout(LIMIT / 10, asked).await.is_err()),
                false => {
                    let error = asked.await.unwrap_err();
                    assert_eq!(error.to_string(), "no answer within 0.3 s (a question)");
                    assert!(error.is_timeout());
                }
            }
            drop(lease);
            let _ = socket.write_all(b"late\n").await;
            let mut lease = server.lease().await.unwrap();
            let answer = async {
                let mut socket = server.accept().await;
                assert_eq!(socket.read_u8().await.unwrap(), b't');
                socket.write_all(b"right\n").await.unwrap();
                socket
            };
            let (answer, _socket) = tokio::join!(ask(&mut lease, "two\n"), answer);
            assert_eq!(answer.unwrap(), b"right\n");
            drop(lease);
        }
    }

    #[tokio::test]
    async fn each_operation_has_its_whole_time() {
        let server = Server::new().await;
        let mut lease = server.lease().await.unwrap();
        let mut socket = server.accept().await;
        // The alarm was set when the connection was made, and goes off in the middle of the third.
        for _ in 0..4 {
            let answer = async {
                tokio::time::sleep(LIMIT * 2 / 5).await;
                socket.write_all(b"right\n").await.unwrap();
            };
            let (answer, ()) = tokio::join!(ask(&mut lease, "x"), answer);
            assert_eq!(answer.unwrap(), b"right\n");
        }
        let begin = Instant::now();
        ask(&mut lease, "x").await.unwrap_err();
        let took = begin.elapsed();
        assert!(took >= LIMIT && took < LIMIT * 3, "{took:?}");
    }

    #[tokio::test]
    async fn what_was_not_asked_for_closes_a_line() {
        let server = Server::new().await;
        for (answer, wait) in [(&b"right\nmore"[..], false), (b"right\n", true)] {
            let mut lease = server.lease().await.unwrap();
            let mut socket = server.accept().await;
            socket.write_all(answer).await.unwrap();
            assert_eq!(ask(&mut lease, "x").await.unwrap(), b"right\n");
            lease.give_back();
            if wait {
                socket.write_all(b"more").await.unwrap();
                tokio::time::sleep(LIMIT / 3).await;
            }
            let (lease, _socket) = tokio::join!(server.lease(), server.accept());
            drop(lease.unwrap());
        }
    }

    #[tokio::test]
    async fn an_answer_without_end_is_an_error_and_takes_no_more_than_it_may() {
        let server = Server::new().await;
        for in_thread in [false, true] {
            let mut lease = server.lease().await.unwrap();
            let mut socket = server.accept().await.into_std().unwrap();
            socket.set_nonblocking(false).unwrap();
            // In a thread of its own: the connection may wait in this one.
            let flood = std::thread::spawn(move || {
                while std::io::Write::write_all(&mut socket, &[b'x'; 64 << 10]).is_ok() {}
            });
            let (connection, ()) = &mut **lease;
            connection.out().extend(b"one\n");
            let asked = connection.ask("a question", Duration::from_secs(60), MOST, |_| Ok(None));
            let done = match in_thread {
                true => blocking::blocking(asked).await.map(<[u8]>::len),
                false => asked.await.map(<[u8]>::len),
            };
            let error = done.unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Malformed, "{error}");
            assert!(error.to_string().contains("8388608 bytes"), "{error}");
            assert!(connection.input.capacity() <= MOST + 1, "{}", connection.input.capacity());
            drop(lease);
            flood.join().unwrap();
        }
    }

    #[tokio::test]
    async fn half_an_answer_is_an_error() {
        let server = Server::new().await;
        let mut lease = server.lease().await.unwrap();
        let mut socket = server.accept().await;
        socket.write_all(b"half").await.unwrap();
        drop(socket);
        let error = ask(&mut lease, "").await.unwrap_err();
        assert!(error.to_string().contains("closed the connection"), "{error}");
        drop(lease);
        server.lease().await.unwrap();
    }
}
