//! Waiting in the thread itself, for those who have nothing else to do on it.
//!
//! A runtime waits for all its sockets together and reads the one that is ready. A thread that waits
//! for one answer only may as well read at once, and sleep in that: a call of the system less, and
//! none of the runtime's own work.

use std::{
    borrow::Borrow,
    cell::Cell,
    io::{self, ErrorKind, Read, Write},
    net::TcpStream,
    os::{fd::AsFd, unix::net::UnixStream},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{limits::in_turn, socket::Stream};
use crate::{Error, ErrorKind as Kind, Result};

thread_local! {
    static ALLOWED: Cell<bool> = const { Cell::new(false) };
}

/// Lets the stores that `future` uses wait, and work, in its thread.
///
/// Use it for a loop that has a thread to itself, such as an import: the thread does nothing else
/// while a store answers. SQLite and folders (`dir:`) then do their work in the caller's thread
/// instead of handing it to another, which makes a point read several times faster. Steelyard's
/// own clients of PostgreSQL, MySQL and Redis wait for short answers in the thread, except over TLS, which
/// saves about a tenth of their processor time. For other stores nothing changes. The store's `?timeout` holds as elsewhere,
/// except that a call to the file system cannot be broken off.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> steelyard::Result<()> {
/// use steelyard::store::{Key, blocking};
///
/// let place = steelyard::open("memory:").await?;
/// let found = blocking(place.get(&[Key::new("bob1")?])).await?;
/// assert_eq!(found, [None]);
/// # Ok(()) }
/// ```
pub fn blocking<F: Future>(future: F) -> Blocking<F> {
    Blocking { future: Box::pin(future), allowed: true }
}

/// What is asked side by side in `future` must not wait for one another, whatever is allowed around it.
pub(super) fn side_by_side<F: Future>(future: F) -> Blocking<F> {
    Blocking { future: Box::pin(future), allowed: false }
}

/// A future, and whether what it asks may [wait in the thread](blocking).
#[derive(Debug)]
#[must_use = "futures do nothing unless they are awaited"]
pub struct Blocking<F> {
    future: Pin<Box<F>>,
    allowed: bool,
}

impl<F: Future> Future for Blocking<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        /// Also when the future panics.
        struct Restore(bool);
        impl Drop for Restore {
            fn drop(&mut self) {
                ALLOWED.set(self.0);
            }
        }
        let _before = Restore(ALLOWED.replace(self.allowed));
        self.future.as_mut().poll(cx)
    }
}

/// Whether who asks now may wait in the thread.
pub(super) fn is_allowed() -> bool {
    ALLOWED.get()
}

/// Does work that blocks: here, where the caller allows it; else on a thread of the runtime that is
/// kept for such work, with a copy of `input`.
///
/// # Errors
/// Those of the work.
pub(super) async fn work<I, T>(
    input: &I,
    act: impl FnOnce(&I) -> Result<T> + Send + 'static,
) -> Result<T>
where
    I: ToOwned<Owned: Send + 'static> + ?Sized,
    T: Send + 'static,
{
    if is_allowed() {
        return act(input);
    }
    let input = input.to_owned();
    let done = tokio::task::spawn_blocking(move || act(input.borrow())).await;
    done.map_err(|e| Error::new(Kind::Io, "a thread that works ended early").with_source(e))?
}

/// A permit, which is kept as long as the work is done, whoever still waits for it. Where one is free
/// the runtime is not asked.
///
/// # Errors
/// [`Timeout`](Kind::Timeout) where none of so many is free in time.
pub(super) async fn permit(
    of: &Arc<Semaphore>,
    limit: Duration,
    pool: usize,
) -> Result<OwnedSemaphorePermit> {
    if let Ok(permit) = Arc::clone(of).try_acquire_owned() {
        return Ok(permit);
    }
    let permit = in_turn(limit, pool, Arc::clone(of).acquire_owned()).await?;
    permit.map_err(|e| Error::unavailable("the store is closing").with_source(e))
}

/// The socket of a stream as one that waits. The runtime must not touch the stream meanwhile; when
/// this is dropped, it is as it was.
pub(super) struct Waiting {
    socket: Socket,
    /// How long a read or a write waits, as the socket knows it.
    limit: Duration,
    /// When it was last asked something.
    asked: Instant,
}

enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// The same of either.
macro_rules! either {
    ($of:expr, $socket:ident => $then:expr) => {
        match $of {
            Socket::Tcp($socket) => $then,
            Socket::Unix($socket) => $then,
        }
    };
}

impl Waiting {
    /// The socket of a stream on which nothing is under way.
    ///
    /// # Errors
    /// Of the system: where there are no more files to be had.
    pub fn new(stream: &Stream) -> io::Result<Waiting> {
        let socket = match stream {
            Stream::Tcp(stream) => Socket::Tcp(stream.as_fd().try_clone_to_owned()?.into()),
            Stream::Unix(stream) => Socket::Unix(stream.as_fd().try_clone_to_owned()?.into()),
            // It may have to write before it can read.
            Stream::Tls(_) => return Err(ErrorKind::Unsupported.into()),
        };
        // From here on it is dropped in good order.
        let waiting = Waiting { socket, limit: Duration::ZERO, asked: Instant::now() };
        either!(&waiting.socket, socket => socket.set_nonblocking(false))?;
        Ok(waiting)
    }

    /// Sends a question, for which and for each reading after it there is so much time.
    ///
    /// # Errors
    /// Of the connection, or [`TimedOut`](ErrorKind::TimedOut).
    pub fn send(&mut self, question: &[u8], limit: Duration, now: Instant) -> io::Result<()> {
        self.asked = now;
        self.waits(limit)?;
        either!(&mut self.socket, socket => socket.write_all(question)).map_err(late)
    }

    /// Reads what comes next: 0 is the end.
    ///
    /// # Errors
    /// Of the connection, or [`TimedOut`](ErrorKind::TimedOut).
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match either!(&mut self.socket, socket => socket.read(into)) {
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                read => return read.map_err(late),
            }
        }
    }

    /// The answer is half there; what is left of `limit` must do for the rest.
    ///
    /// # Errors
    /// [`TimedOut`](ErrorKind::TimedOut) where nothing is left; of the system.
    pub fn go_on(&mut self, limit: Duration) -> io::Result<()> {
        match limit.checked_sub(self.asked.elapsed()) {
            None | Some(Duration::ZERO) => Err(ErrorKind::TimedOut.into()),
            // A little more than is left is well, and spares a call for each part.
            Some(left) if left > limit / 8 * 7 => Ok(()),
            Some(left) => self.waits(left),
        }
    }

    fn waits(&mut self, limit: Duration) -> io::Result<()> {
        if self.limit != limit {
            either!(&self.socket, socket => {
                socket.set_read_timeout(Some(limit))?;
                socket.set_write_timeout(Some(limit))?;
            });
            self.limit = limit;
        }
        Ok(())
    }

    /// Nothing has come that was not asked for, nor the end, as far as is known: one that was in use
    /// just now is not looked at.
    pub fn is_quiet(&mut self) -> bool {
        const JUST_NOW: Duration = Duration::from_millis(50);
        if self.asked.elapsed() < JUST_NOW {
            return true;
        }
        let mut look = || {
            either!(&mut self.socket, socket => {
                socket.set_nonblocking(true)?;
                let read = socket.read(&mut [0]);
                socket.set_nonblocking(false)?;
                read
            })
        };
        look().is_err_and(|e| e.kind() == ErrorKind::WouldBlock)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // It fails for what is no socket.
        let _ = either!(&self.socket, socket => socket.set_nonblocking(true));
    }
}

/// What the system says of a socket on which nothing came in time.
fn late(e: io::Error) -> io::Error {
    match e.kind() {
        ErrorKind::WouldBlock => ErrorKind::TimedOut.into(),
        _ => e,
    }
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, thread};

    use super::*;
    use crate::store::line::{Address, Limits, Line, Lines, broken};

    #[tokio::test]
    async fn it_is_allowed_inside_and_nowhere_else() {
        let inside = blocking(async {
            let before = is_allowed();
            let apart = side_by_side(async { is_allowed() }).await;
            tokio::task::yield_now().await;
            (before, apart, is_allowed())
        });
        let outside = async {
            tokio::task::yield_now().await;
            is_allowed()
        };
        assert_eq!(tokio::join!(inside, outside), ((true, false, true), false));
        assert!(!is_allowed());
    }

    #[tokio::test]
    async fn work_is_done_in_the_thread_where_that_is_allowed_and_in_another_elsewhere() {
        let here = thread::current().id();
        let at = |more: &'static str| async move {
            work("one", move |text| Ok((thread::current().id(), format!("{text}{more}")))).await
        };
        assert_eq!(blocking(at("!")).await.unwrap(), (here, "one!".to_owned()));
        let (other, text) = at("?").await.unwrap();
        assert_ne!(other, here);
        assert_eq!(text, "one?");
    }

    const LIMIT: Duration = Duration::from_millis(300);

    /// A server that answers each connection's lines by what `answer` says of them, after a wait; it
    /// hangs up where that is none. And lines to it, of which there may be one.
    fn server(answer: fn(&str) -> Option<(Duration, String)>) -> (Address, Lines<()>) {
        use std::io::BufRead;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp("127.0.0.1".into(), listener.local_addr().unwrap().port());
        thread::spawn(move || {
            for socket in listener.incoming() {
                let mut socket = socket.unwrap();
                for line in io::BufReader::new(socket.try_clone().unwrap()).lines() {
                    let Some((wait, answer)) = answer(&line.unwrap()) else { break };
                    // In two parts, as a network may bring it.
                    let (a, b) = answer.split_at(answer.len() / 2);
                    socket.write_all(a.as_bytes()).unwrap();
                    thread::sleep(wait);
                    if socket.write_all(b.as_bytes()).is_err() {
                        break;
                    }
                }
            }
        });
        (address, Lines::new(Limits { connect: LIMIT, operation: LIMIT, pool: 1 }))
    }

    async fn ask((address, lines): &(Address, Lines<()>), question: &str) -> Result<String> {
        let connect =
            async || Ok((Line::new(Stream::connect(address).await.map_err(broken)?)?, ()));
        let mut lease = lines.lease(connect).await?;
        let (line, ()) = lease.line();
        line.out().extend(format!("{question}\n").bytes());
        let end = |bytes: &[u8]| Ok::<_, Error>(memchr::memchr(b'\n', bytes).map(|at| at + 1));
        let answer = line.ask("a question", LIMIT, end).await?;
        let answer = String::from_utf8_lossy(answer).trim_end().to_owned();
        lease.give_back();
        Ok(answer)
    }

    #[tokio::test]
    async fn the_same_line_is_asked_in_the_thread_and_by_the_runtime() {
        let server = server(|line| Some((Duration::ZERO, format!("{line}, yes\n"))));
        let long = "x".repeat(3 << 20);
        for round in 0..3 {
            for question in ["one", "two", &long] {
                let answer = blocking(ask(&server, question)).await.unwrap();
                assert_eq!(answer, format!("{question}, yes"), "{round}");
            }
            assert_eq!(ask(&server, "three").await.unwrap(), "three, yes");
        }
    }

    #[tokio::test]
    async fn an_answer_that_is_late_or_slow_is_an_error_and_reaches_nobody() {
        let server = server(|line| Some((LIMIT * line.parse().unwrap() / 10, format!("{line}\n"))));
        for _ in 0..2 {
            assert_eq!(blocking(ask(&server, "4")).await.unwrap(), "4");
            let begin = Instant::now();
            let error = blocking(ask(&server, "20")).await.unwrap_err();
            let took = begin.elapsed();
            assert!(error.is_timeout());
            assert_eq!(error.to_string(), "no answer within 0.3 s (a question)");
            assert!(took >= LIMIT && took < LIMIT * 2, "{took:?}");
            // The server sleeps, and then has this one's connection.
            thread::sleep(LIMIT * 2);
        }
    }

    #[tokio::test]
    async fn a_server_that_hung_up_is_called_again_or_named() {
        let server = server(|line| match line {
            "go" => None,
            line => Some((Duration::ZERO, format!("{line}\n"))),
        });
        for _ in 0..2 {
            assert_eq!(blocking(ask(&server, "one")).await.unwrap(), "one");
            let error = blocking(ask(&server, "go")).await.unwrap_err();
            assert!(error.to_string().contains("hung up"), "{error}");
        }
    }

    #[tokio::test]
    async fn what_was_not_asked_for_closes_a_line_that_has_rested() {
        let server = server(|line| match line {
            "two" => Some((Duration::ZERO, "more than asked\nfor\n".into())),
            line => Some((Duration::ZERO, format!("{line}\n"))),
        });
        blocking(ask(&server, "two")).await.unwrap();
        thread::sleep(LIMIT / 3);
        assert_eq!(blocking(ask(&server, "one")).await.unwrap(), "one");
    }
}
