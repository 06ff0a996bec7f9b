//! Connections to a server, whose answers are read piece by piece.

use std::{io::ErrorKind as IoKind, time::Instant};

use futures_util::FutureExt;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

use crate::{
    Result,
    store::{
        limits::{Limits, within},
        net::{Address, Stream, broken, connection::JUST_NOW},
        pool::{self, Connection},
    },
};

/// A connection, and when it became idle.
pub(super) struct Socket(BufReader<Stream>, Instant);

/// A connection on loan.
pub(super) type Lease<'p> = pool::Lease<Socket, &'p pool::Pool<Socket>>;

impl Socket {
    async fn connect(address: &Address) -> Result<Socket> {
        let stream = Stream::connect(address).await?;
        Ok(Socket(BufReader::with_capacity(64 << 10, stream), Instant::now()))
    }

    /// Sends bytes.
    pub(super) async fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.get_mut().write_all(bytes).await.map_err(broken)
    }

    /// Reads a byte.
    pub(super) async fn byte(&mut self) -> Result<u8> {
        self.0.read_u8().await.map_err(broken)
    }

    /// Reads a number of 32 bits, the highest byte first.
    pub(super) async fn u32(&mut self) -> Result<u32> {
        self.0.read_u32().await.map_err(broken)
    }

    /// Reads so many bytes. What the other side says of lengths costs no memory before the bytes
    /// are there.
    pub(super) async fn bytes(&mut self, len: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(len.min(64 << 10));
        (&mut self.0).take(len as u64).read_to_end(&mut bytes).await.map_err(broken)?;
        match bytes.len() == len {
            true => Ok(bytes),
            false => Err(broken(IoKind::UnexpectedEof.into())),
        }
    }
}

impl Connection for Socket {
    fn is_sound(&mut self) -> bool {
        self.0.fill_buf().now_or_never().is_none()
    }

    fn has_rested(&self) -> bool {
        self.1.elapsed() > JUST_NOW
    }

    fn rest(&mut self) {
        self.1 = Instant::now();
    }
}

/// The connections to one server.
pub(super) struct Pool {
    address: Address,
    connections: pool::Pool<Socket>,
}

impl Pool {
    /// A pool without connections; they are made when they are needed.
    pub(super) fn new(address: Address, limits: Limits) -> Pool {
        let connections = pool::Pool::new(limits, address.to_string());
        Pool { address, connections }
    }

    /// The server's address.
    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    /// A connection that nobody else uses.
    ///
    /// # Errors
    /// As [`pool::Pool::lease`].
    pub(super) async fn lease(&self) -> Result<Lease<'_>> {
        self.connections.lease(async || Socket::connect(&self.address).await).await
    }

    /// Waits for an answer, but not for ever, and says whose it is.
    ///
    /// # Errors
    /// As [`within`].
    pub(super) async fn within<T>(
        &self,
        what: &str,
        done: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let done = within(self.connections.limits().operation, what, done).await;
        done.map_err(|e| {
            // The other connections may be as broken.
            self.connections.forget();
            e.in_place(self.connections.place())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
        lease.send(b"x").await.unwrap();
        assert_eq!(server.read_u8().await.unwrap(), b'x');
        // Given back with an answer unread: nobody gets that.
        server.write_all(b"late").await.unwrap();
        lease.0.fill_buf().await.unwrap();
        lease.give_back();
        let again = pool.lease();
        let (again, accepted) = tokio::join!(again, listener.accept());
        assert!(again.is_ok() && accepted.is_ok());
    }

    #[tokio::test]
    async fn half_an_answer_is_an_error_and_lengths_cost_nothing() {
        let (listener, pool) = listener(2).await;
        let mut lease = pool.lease().await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        server.write_all(b"half").await.unwrap();
        drop(server);
        let error = lease.bytes(usize::MAX / 2).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("closed the connection"), "{error}");
    }
}
