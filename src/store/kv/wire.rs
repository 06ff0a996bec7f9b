//! Connections to servers whose protocol is spoken here: pooled, with deadlines, and closed as soon
//! as one is out of step.

use std::{
    collections::VecDeque,
    io::ErrorKind as IoKind,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use futures_util::FutureExt;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    net::{TcpStream, UnixStream},
    sync::{Semaphore, SemaphorePermit},
};

pub use crate::store::line::{Address, Limits};
use crate::{
    Error, Result,
    store::{
        limits::{connected, permit},
        line::broken,
        within,
    },
};

/// A connection that was in use just now is not doubted.
const JUST_NOW: Duration = Duration::from_millis(50);

trait Duplex: AsyncRead + AsyncWrite + Send + Sync + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Duplex for T {}

/// A connection.
pub struct Socket(BufReader<Box<dyn Duplex>>);

impl Socket {
    async fn connect(address: &Address, limit: Duration) -> Result<Socket> {
        let connect = async {
            let stream: Box<dyn Duplex> = match address {
                Address::Tcp(host, port) => {
                    let stream = TcpStream::connect((host.as_str(), *port)).await?;
                    stream.set_nodelay(true)?;
                    Box::new(stream)
                }
                Address::Unix(path) => Box::new(UnixStream::connect(path).await?),
            };
            Ok(Socket(BufReader::with_capacity(64 << 10, stream)))
        };
        let connect = connect.map(|done: std::io::Result<_>| done.map_err(broken));
        connected(limit, connect).await.map_err(|e| e.in_place(address.to_string()))
    }

    /// Nothing has come that was not asked for, nor the end.
    fn is_quiet(&mut self) -> bool {
        self.0.fill_buf().now_or_never().is_none()
    }

    /// Sends bytes.
    pub async fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.get_mut().write_all(bytes).await.map_err(broken)
    }

    /// Reads a byte.
    pub async fn byte(&mut self) -> Result<u8> {
        self.0.read_u8().await.map_err(broken)
    }

    /// Reads a number of 32 bits, the highest byte first.
    pub async fn u32(&mut self) -> Result<u32> {
        self.0.read_u32().await.map_err(broken)
    }

    /// Reads so many bytes. What the other side says of lengths costs no memory before the bytes
    /// are there.
    pub async fn bytes(&mut self, len: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(len.min(64 << 10));
        (&mut self.0).take(len as u64).read_to_end(&mut bytes).await.map_err(broken)?;
        match bytes.len() == len {
            true => Ok(bytes),
            false => Err(broken(IoKind::UnexpectedEof.into())),
        }
    }
}

/// The error of an answer that is none to what was asked.
pub fn out_of_step(asked: &str, answer: &[u8]) -> Error {
    let shown = String::from_utf8_lossy(&answer[..answer.len().min(80)]);
    Error::malformed(format!("the server's answer to {asked} is none: {shown:?}"))
}

/// As many values as were asked for, no fewer and no more.
///
/// # Errors
/// [`Malformed`](crate::ErrorKind::Malformed) otherwise.
#[cfg_attr(not(feature = "redis"), allow(dead_code))]
pub fn as_many<T>(asked: &str, keys: usize, values: Vec<T>) -> Result<Vec<T>> {
    match values.len() == keys {
        true => Ok(values),
        false => Err(Error::malformed(format!(
            "the answer to {asked} has {} values for {keys} keys",
            values.len()
        ))),
    }
}

/// The connections to one server.
pub struct Pool {
    address: Address,
    limits: Limits,
    /// Each with the moment at which it was given back.
    idle: Mutex<VecDeque<(Instant, Socket)>>,
    permits: Semaphore,
}

impl Pool {
    /// A pool without connections; they are made when they are needed.
    pub fn new(address: Address, limits: Limits) -> Pool {
        let permits = Semaphore::new(limits.pool.min(Semaphore::MAX_PERMITS));
        Pool { address, limits, idle: Mutex::default(), permits }
    }

    /// The server's address.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// A connection that nobody else uses.
    ///
    /// # Errors
    /// [`Timeout`](crate::ErrorKind::Timeout) where none comes free in time, or none can be made in
    /// time; [`Unavailable`](crate::ErrorKind::Unavailable) where the server is not there.
    pub async fn lease(&self) -> Result<Lease<'_>> {
        let permit = permit(&self.permits, self.limits.operation, self.limits.pool)
            .await
            .map_err(|e| e.in_place(self.address.to_string()))?;
        let rested = |(since, _): &(Instant, Socket)| since.elapsed() > JUST_NOW;
        if self.idle().back().is_some_and(rested) {
            // Lets the runtime see what has become of it meanwhile.
            tokio::task::yield_now().await;
        }
        let quiet = || {
            let mut idle = self.idle();
            while let Some((_, mut socket)) = idle.pop_back() {
                // One that the server closed meanwhile is none.
                if socket.is_quiet() {
                    return Some(socket);
                }
            }
            None
        };
        let socket = match quiet() {
            Some(socket) => socket,
            None => Socket::connect(&self.address, self.limits.connect).await?,
        };
        Ok(Lease { pool: self, socket: Some(socket), _permit: permit })
    }

    /// Waits for an answer, but not for ever, and says whose it is.
    ///
    /// # Errors
    /// As [`within`].
    pub async fn within<T>(&self, what: &str, done: impl Future<Output = Result<T>>) -> Result<T> {
        let done = within(self.limits.operation, what, done).await;
        done.map_err(|e| e.in_place(self.address.to_string()))
    }

    fn idle(&self) -> MutexGuard<'_, VecDeque<(Instant, Socket)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection on loan.
pub struct Lease<'a> {
    pool: &'a Pool,
    socket: Option<Socket>,
    _permit: SemaphorePermit<'a>,
}

impl Lease<'_> {
    /// The connection.
    pub fn socket(&mut self) -> &mut Socket {
        self.socket.as_mut().expect("there until it is given back")
    }

    /// Gives it back: every answer was read to its end.
    pub fn give_back(mut self) {
        let now = Instant::now();
        self.pool.idle().extend(self.socket.take().map(|socket| (now, socket)));
    }
}

impl Drop for Lease<'_> {
    /// One that was not given back is closed, wherever it stopped. The others may be as broken.
    fn drop(&mut self) {
        if self.socket.take().is_some() {
            self.pool.idle().clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;
    use crate::ErrorKind;

    async fn listener(pool: usize) -> (TcpListener, Pool) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = Address::Tcp("127.0.0.1".into(), listener.local_addr().unwrap().port());
        let limit = Duration::from_millis(300);
        (listener, Pool::new(address, Limits { connect: limit, operation: limit, pool }))
    }

    #[tokio::test]
    async fn a_connection_is_used_again_while_it_is_in_step() {
        let (listener, pool) = listener(1).await;
        pool.lease().await.unwrap().give_back();
        let (mut server, _) = listener.accept().await.unwrap();
        let mut lease = pool.lease().await.unwrap();
        lease.socket().send(b"x").await.unwrap();
        assert_eq!(server.read_u8().await.unwrap(), b'x');
        // Given back with an answer unread: nobody gets that.
        server.write_all(b"late").await.unwrap();
        lease.socket().0.fill_buf().await.unwrap();
        lease.give_back();
        let again = pool.lease();
        let (again, accepted) = tokio::join!(again, listener.accept());
        assert!(again.is_ok() && accepted.is_ok());
    }

    #[tokio::test]
    async fn the_pool_is_bounded_and_waiting_ends() {
        let (_listener, pool) = listener(1).await;
        let lease = pool.lease().await.unwrap();
        let error = pool.lease().await.err().unwrap();
        assert!(error.is_timeout());
        assert!(error.context().starts_with("no free connection within 0.3 s"), "{error}");
        drop(lease);
        pool.lease().await.unwrap();
    }

    #[tokio::test]
    async fn half_an_answer_is_an_error_and_lengths_cost_nothing() {
        let (listener, pool) = listener(2).await;
        let mut lease = pool.lease().await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        server.write_all(b"half").await.unwrap();
        drop(server);
        let error = lease.socket().bytes(usize::MAX / 2).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("hung up"), "{error}");
    }
}
