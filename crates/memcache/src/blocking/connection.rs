//! A blocking connection to a server.
//!
//! A small exchange takes one send and one receive: the send never blocks (`MSG_DONTWAIT`), and the timeout for the
//! answer is set once for each connection (`SO_RCVTIMEO`). The clock and `poll` are used only where that was not
//! enough: then data is sent and received as each becomes possible, so that nothing can block both sides.

use std::{
    io::{self, ErrorKind as Kind, Read},
    net::{SocketAddr, ToSocketAddrs},
    os::fd::AsFd,
    time::{Duration, Instant},
};

use nix::{
    libc::{MSG_DONTWAIT, MSG_NOSIGNAL},
    poll::{PollFd, PollFlags, PollTimeout, poll},
};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::{
    address::Address,
    failure::Failure,
    protocol::{Exchange, Input},
};

/// When a call must be over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    begun: Instant,
    /// How long it may take.
    pub limit: Duration,
}

impl Deadline {
    /// So long from now.
    pub(super) fn new(limit: Duration) -> Deadline {
        Deadline { begun: Instant::now(), limit }
    }

    /// What is left of it.
    pub(super) fn left(&self) -> Result<Duration, Failure> {
        let left = self.limit.saturating_sub(self.begun.elapsed());
        if left.is_zero() { Err(Failure::Late(self.limit)) } else { Ok(left) }
    }
}

/// Up to where an exchange is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// All is sent.
    Sent,
    /// All is answered.
    Answered,
}

/// Where an address leads to. Asks the system for names, which takes its time.
pub(super) fn resolve(address: &Address) -> io::Result<Vec<SockAddr>> {
    match address {
        Address::Unix(path) => SockAddr::unix(path).map(|address| vec![address]),
        Address::Tcp(host, port) => {
            let found = (host.as_str(), *port).to_socket_addrs()?;
            Ok(found.map(|address: SocketAddr| address.into()).collect())
        }
        // Refused when the client was made.
        Address::Tls(..) => Err(Kind::Unsupported.into()),
    }
}

/// A connection. It is for one exchange at a time; after a failure it is to be dropped.
pub(super) struct Connection {
    socket: Socket,
    out: Vec<u8>,
    sent: usize,
    input: Input,
    /// How long the system waits for an answer.
    waits: Duration,
    /// It has not answered yet: part of the time went into connecting.
    fresh: bool,
}

impl Connection {
    /// Connects to the first of the addresses that takes it. `waits` is the usual time for a call.
    pub(super) fn open(
        addresses: &[SockAddr],
        limit: Duration,
        waits: Duration,
        deadline: &Deadline,
    ) -> Result<Connection, Failure> {
        let mut last = io::Error::new(Kind::NotFound, "no address for this host");
        let begun = Instant::now();
        for address in addresses {
            let left = limit.saturating_sub(begun.elapsed()).min(deadline.left()?);
            match Self::connect(address, left, waits) {
                Ok(socket) => {
                    return Ok(Connection {
                        socket,
                        out: Vec::with_capacity(16 << 10),
                        sent: 0,
                        input: Input::default(),
                        waits,
                        fresh: true,
                    });
                }
                Err(e) => last = e,
            }
        }
        if last.kind() == Kind::TimedOut {
            let what = format!("timed out after {} s", limit.as_secs_f64());
            last = io::Error::new(Kind::TimedOut, what);
        }
        Err(Failure::Connect(last))
    }

    fn connect(address: &SockAddr, limit: Duration, waits: Duration) -> io::Result<Socket> {
        if limit.is_zero() {
            return Err(Kind::TimedOut.into());
        }
        let socket = Socket::new(address.domain(), Type::STREAM, None)?;
        if address.domain() != Domain::UNIX {
            // A write that is held back for the answer to the one before costs 40 ms.
            socket.set_tcp_nodelay(true)?;
            socket.set_keepalive(true)?;
        }
        socket.connect_timeout(address, limit)?;
        socket.set_read_timeout(Some(waits))?;
        Ok(socket)
    }

    /// Whether it has nothing left from what went before.
    pub(super) fn is_clean(&self) -> bool {
        self.input.is_empty() && self.sent == self.out.len()
    }

    /// Begins an exchange.
    pub(super) fn begin(&mut self, exchange: &mut impl Exchange) {
        debug_assert!(self.sent == self.out.len());
        self.out.clear();
        self.sent = 0;
        exchange.write(&mut self.out);
    }

    /// Sends what can be sent now, and says whether all is sent.
    #[inline]
    pub(super) fn push(&mut self, exchange: &mut impl Exchange) -> Result<bool, Failure> {
        // What is sent without waiting raises no signal where nobody reads it.
        let flags = MSG_DONTWAIT | MSG_NOSIGNAL;
        loop {
            while self.sent < self.out.len() {
                match self.socket.send_with_flags(&self.out[self.sent..], flags) {
                    Ok(n) => self.sent += n,
                    Err(e) if e.kind() == Kind::WouldBlock => return Ok(false),
                    Err(e) if e.kind() == Kind::Interrupted => {}
                    Err(e) => return Err(Failure::of_open(e)),
                }
            }
            if exchange.written() {
                // A large value is not kept in memory for the next small one.
                if self.out.capacity() > 1 << 20 {
                    (self.out, self.sent) = (Vec::new(), 0);
                }
                return Ok(true);
            }
            self.out.clear();
            self.sent = 0;
            exchange.write(&mut self.out);
        }
    }

    /// Receives once and reads that; says whether it was the end. None where nothing came in time.
    #[inline]
    pub(super) fn pull(&mut self, exchange: &mut impl Exchange) -> Result<Option<bool>, Failure> {
        let room = self.input.room();
        match (&self.socket).read(room) {
            Ok(0) => Err(Failure::closed()),
            Ok(n) => {
                self.input.filled(n);
                self.fresh = false;
                exchange.read(&mut self.input).map(Some).map_err(Failure::Stream)
            }
            Err(e) if e.kind() == Kind::WouldBlock || e.kind() == Kind::Interrupted => Ok(None),
            Err(e) => Err(Failure::of_open(e)),
        }
    }

    /// What to wait for: answers, and room to send where something is left.
    pub(super) fn wish(&self, sent: bool) -> PollFd<'_> {
        let flags = if sent { PollFlags::POLLIN } else { PollFlags::POLLIN | PollFlags::POLLOUT };
        PollFd::new(self.socket.as_fd(), flags)
    }

    /// Runs an exchange.
    #[inline]
    pub(super) fn run(
        &mut self,
        exchange: &mut impl Exchange,
        mut deadline: Deadline,
        until: Until,
    ) -> Result<(), Failure> {
        self.begin(exchange);
        let (mut sent, mut answered) = (self.push(exchange)?, false);
        if sent && until == Until::Sent {
            return Ok(());
        }
        // The usual case: all is sent, and the answer is all that is waited for.
        if sent && !self.fresh && deadline.limit >= self.waits && self.pull(exchange)? == Some(true)
        {
            return Ok(());
        }
        loop {
            let left = deadline.left()?;
            let ready = wait(&mut [self.wish(sent)], left)?[0];
            if ready.intersects(!PollFlags::POLLOUT) {
                match self.pull(exchange)? {
                    // A value that is refused is answered before it is sent whole; what is left of
                    // it must be sent all the same.
                    Some(true) => answered = until == Until::Answered,
                    Some(false) if exchange.patient() => deadline = Deadline::new(deadline.limit),
                    _ => {}
                }
            }
            if !sent && ready.contains(PollFlags::POLLOUT) {
                sent = self.push(exchange)?;
            }
            if sent && (answered || until == Until::Sent) {
                return Ok(());
            }
        }
    }
}

/// Waits until something can be done, and says what.
pub(super) fn wait(wishes: &mut [PollFd<'_>], left: Duration) -> Result<Vec<PollFlags>, Failure> {
    // Rounded up, or it would come back a little early, over and over.
    let ms = u16::try_from(left.as_millis() + 1).unwrap_or(u16::MAX);
    match poll(wishes, PollTimeout::from(ms)) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => {}
        Err(e) => return Err(Failure::of_open(e.into())),
    }
    Ok(wishes.iter().map(|wish| wish.revents().unwrap_or(PollFlags::empty())).collect())
}
