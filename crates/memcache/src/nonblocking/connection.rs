//! A connection of the client that does not block.
//!
//! Whatever can be sent is sent and whatever has come is read, in one and the same poll: so nothing
//! can block both sides, however large a batch is. A future that is dropped drops its connection.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, UnixStream, lookup_host},
    time::timeout_at,
};

use steelyard_base::timer::Alarm;

use crate::{
    address::Address,
    failure::Failure,
    options::Options,
    protocol::{Exchange, Input},
};

/// When a call must be over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    at: Instant,
    /// How long it may take.
    pub limit: Duration,
}

impl Deadline {
    /// So long from now.
    pub(super) fn new(limit: Duration) -> Deadline {
        Deadline { at: Instant::now() + limit, limit }
    }

    /// Does something in time.
    pub(super) async fn hold<T>(
        &self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        timeout_at(self.at.into(), work).await.unwrap_or(Err(Failure::Late(self.limit)))
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

trait Duplex: AsyncRead + AsyncWrite + Send + Sync + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Duplex for T {}

/// A connection. It is for one exchange at a time; after a failure it is to be dropped.
pub(super) struct Connection {
    stream: Box<dyn Duplex>,
    out: Vec<u8>,
    sent: usize,
    /// All that was written has gone through the layers below.
    flushed: bool,
    /// All of the exchange at hand is answered.
    answered: bool,
    input: Input,
    /// What ends an exchange that takes too long. It costs less than a timer of the runtime for each.
    alarm: Alarm,
}

/// What has come about in one poll.
enum Step {
    Some,
    Done,
}

impl Connection {
    /// Connects.
    pub(super) async fn open(address: &Address, options: &Options) -> Result<Connection, Failure> {
        let limit = options.connect_timeout;
        let connect = async {
            Ok::<Box<dyn Duplex>, io::Error>(match address {
                Address::Unix(path) => Box::new(UnixStream::connect(path).await?),
                Address::Tcp(host, port) => Box::new(tcp(host, *port).await?),
                Address::Tls(host, port) => tls(host, tcp(host, *port).await?, options).await?,
            })
        };
        let stream = tokio::time::timeout(limit, connect).await.unwrap_or_else(|_| {
            let what = format!("timed out after {} s", limit.as_secs_f64());
            Err(io::Error::new(io::ErrorKind::TimedOut, what))
        });
        Ok(Connection {
            alarm: Alarm::new().map_err(Failure::Connect)?,
            stream: stream.map_err(Failure::Connect)?,
            out: Vec::with_capacity(16 << 10),
            sent: 0,
            flushed: true,
            answered: false,
            input: Input::default(),
        })
    }

    /// Whether it has nothing left from what went before.
    pub(super) fn is_clean(&self) -> bool {
        self.input.is_empty() && self.sent == self.out.len() && self.flushed
    }

    /// Runs an exchange.
    pub(super) async fn run<E: Exchange>(
        &mut self,
        exchange: &mut E,
        deadline: Deadline,
        until: Until,
    ) -> Result<(), Failure> {
        self.out.clear();
        (self.sent, self.answered) = (0, false);
        exchange.write(&mut self.out);
        let mut deadline = deadline;
        loop {
            let step = std::future::poll_fn(|cx| {
                let step = self.step(exchange, until, cx);
                if step.is_pending() && self.alarm.is_over(cx, deadline.at, Instant::now()) {
                    return Poll::Ready(Err(Failure::Late(deadline.limit)));
                }
                step
            });
            match step.await? {
                Step::Done => break,
                Step::Some if exchange.patient() => deadline = Deadline::new(deadline.limit),
                Step::Some => {}
            }
        }
        if self.out.capacity() > 1 << 20 && self.sent == self.out.len() {
            (self.out, self.sent) = (Vec::new(), 0);
        }
        Ok(())
    }

    /// Sends what can be sent.
    fn push<E: Exchange>(
        &mut self,
        exchange: &mut E,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Failure>> {
        loop {
            while self.sent < self.out.len() {
                self.flushed = false;
                let rest = &self.out[self.sent..];
                let n = ready!(Pin::new(&mut self.stream).poll_write(cx, rest));
                match n.map_err(Failure::of_open)? {
                    0 => return Poll::Ready(Err(Failure::closed())),
                    n => self.sent += n,
                }
            }
            if exchange.written() {
                break;
            }
            self.out.clear();
            self.sent = 0;
            exchange.write(&mut self.out);
        }
        if !self.flushed {
            ready!(Pin::new(&mut self.stream).poll_flush(cx)).map_err(Failure::of_open)?;
            self.flushed = true;
        }
        Poll::Ready(Ok(()))
    }

    /// Goes as far as it can; pending where nothing came of it.
    fn step<E: Exchange>(
        &mut self,
        exchange: &mut E,
        until: Until,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Step, Failure>> {
        let sent = self.push(exchange, cx)?.is_ready();
        // A value that is refused is answered before it is sent whole; what is left of it must be
        // sent all the same.
        if sent && (self.answered || until == Until::Sent) {
            return Poll::Ready(Ok(Step::Done));
        }
        let mut some = false;
        loop {
            let mut room = ReadBuf::new(self.input.room());
            match Pin::new(&mut self.stream).poll_read(cx, &mut room) {
                Poll::Ready(Err(e)) => return Poll::Ready(Err(Failure::of_open(e))),
                Poll::Ready(Ok(())) => {
                    let n = room.filled().len();
                    if n == 0 {
                        return Poll::Ready(Err(Failure::closed()));
                    }
                    self.input.filled(n);
                    self.answered = exchange.read(&mut self.input).map_err(Failure::Stream)?
                        && until == Until::Answered;
                    if self.answered && sent {
                        return Poll::Ready(Ok(Step::Done));
                    }
                    some = true;
                }
                // Woken by either side, it comes back for both.
                Poll::Pending if some => return Poll::Ready(Ok(Step::Some)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "no address for this host");
    for address in lookup_host((host, port)).await? {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                // A write that is held back for the answer to the one before costs 40 ms.
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(e) => last = e,
        }
    }
    Err(last)
}

#[cfg(feature = "tls")]
async fn tls(host: &str, stream: TcpStream, options: &Options) -> io::Result<Box<dyn Duplex>> {
    use std::sync::Arc;

    use rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::ServerName};

    let config = match &options.tls {
        Some(config) => config.clone(),
        None => {
            let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
            let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
                .with_safe_default_protocol_versions()
                .map_err(io::Error::other)?;
            Arc::new(config.with_root_certificates(roots).with_no_client_auth())
        }
    };
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let connector = tokio_rustls::TlsConnector::from(config);
    Ok(Box::new(connector.connect(name, stream).await?))
}

#[cfg(not(feature = "tls"))]
async fn tls(_: &str, _: TcpStream, _: &Options) -> io::Result<Box<dyn Duplex>> {
    let what = "built without TLS; the feature is memcache-tls";
    Err(io::Error::new(io::ErrorKind::Unsupported, what))
}
