//! A socket that waits in the thread (see [`blocking`](crate::store::blocking)).

use std::{
    io::{self, ErrorKind, Read, Write},
    net::TcpStream,
    os::{fd::AsFd, unix::net::UnixStream},
    time::{Duration, Instant},
};

use super::{connection::JUST_NOW, socket::Stream};

/// The socket of a stream as one that waits. The runtime must not touch the stream meanwhile; when
/// this is dropped, it is as it was.
pub(crate) struct Waiting {
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
    pub(crate) fn new(stream: &Stream) -> io::Result<Waiting> {
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
    pub(crate) fn send(
        &mut self,
        question: &[u8],
        limit: Duration,
        now: Instant,
    ) -> io::Result<()> {
        self.asked = now;
        self.waits(limit)?;
        either!(&mut self.socket, socket => socket.write_all(question)).map_err(late)
    }

    /// Reads what comes next: 0 is the end.
    ///
    /// # Errors
    /// Of the connection, or [`TimedOut`](ErrorKind::TimedOut).
    pub(crate) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
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
    pub(crate) fn go_on(&mut self, limit: Duration) -> io::Result<()> {
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
    pub(crate) fn is_quiet(&mut self) -> bool {
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
    use crate::{
        Error, Result,
        store::{
            blocking,
            limits::Limits,
            net::{Address, Connection, Connections},
        },
    };

    const LIMIT: Duration = Duration::from_millis(300);

    /// A server that answers each connection's lines by what `answer` says of them, after a wait; it
    /// hangs up where that is none. And connections to it, of which there may be one.
    fn server(answer: fn(&str) -> Option<(Duration, String)>) -> (Address, Connections<()>) {
        use std::io::BufRead;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp("127.0.0.1".into(), listener.local_addr().unwrap().port());
        thread::spawn(move || {
            for socket in listener.incoming() {
                let mut socket = socket.unwrap();
                for connection in io::BufReader::new(socket.try_clone().unwrap()).lines() {
                    let Some((wait, answer)) = answer(&connection.unwrap()) else { break };
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
        let limits = Limits { connect: LIMIT, operation: LIMIT, pool: 1 };
        (address, Connections::new(limits, "the server"))
    }

    async fn ask(
        (address, connections): &(Address, Connections<()>),
        question: &str,
    ) -> Result<String> {
        let connect =
            async || Ok(Box::new((Connection::new(Stream::connect(address).await?)?, ())));
        let mut lease = connections.lease(connect).await?;
        let (connection, ()) = &mut **lease;
        connection.out().extend(format!("{question}\n").bytes());
        let end = |bytes: &[u8]| Ok::<_, Error>(memchr::memchr(b'\n', bytes).map(|at| at + 1));
        let answer = connection.ask("a question", LIMIT, 8 << 20, end).await?;
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
            assert!(error.to_string().contains("closed the connection"), "{error}");
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
