//! The relay itself: what comes in at one side goes out at the other, half a round trip later.
//!
//! Each chunk has the moment at which it may go on, and waits for it in a queue; the next one is read
//! meanwhile. So time passes as on a wire, and no chunk makes another wait longer. The queue is bounded,
//! which holds a sender back as a full socket does.

use std::{
    io::Read,
    thread,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc,
};

use crate::{Result, timer::Timer};

/// Bytes of a chunk at most, and how many of them may be on their way, each way of a connection.
const CHUNK: usize = 16 << 10;
const ON_THE_WAY: usize = 512;

/// Relays to `host:port` until standard input ends, from a port of the loopback address that `told`
/// is called with. (Not generic over it, so that it is compiled with this crate.)
///
/// # Errors
/// Those of `told`, and of the system.
pub fn serve(
    to: (String, u16),
    round_trip: Duration,
    told: &mut dyn FnMut(u16) -> Result<()>,
) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (ended, end) = tokio::sync::oneshot::channel();
    // Whoever started us holds the other side of it, and closes it however it ends.
    thread::spawn(move || {
        let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
        let _ = ended.send(());
    });
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        told(listener.local_addr()?.port())?;
        tokio::select! {
            accepted = accept(listener, to, round_trip / 2) => accepted,
            _ = end => Ok(()),
        }
    })
}

async fn accept(listener: TcpListener, to: (String, u16), delay: Duration) -> Result<()> {
    loop {
        let (client, _) = listener.accept().await?;
        let to = to.clone();
        tokio::spawn(async move {
            // Where there is no server, the client's connection ends.
            if let Ok(server) = TcpStream::connect((to.0.as_str(), to.1)).await {
                let _ = relayed(client, server, delay).await;
            }
        });
    }
}

/// Both ways of a connection, until both have ended or one is broken.
async fn relayed(client: TcpStream, server: TcpStream, delay: Duration) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let there = way(from_client, to_server, delay);
    let back = way(from_server, to_client, delay);
    tokio::try_join!(there, back).map(|_| ())
}

/// One way: its end is passed on as well.
async fn way(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    delay: Duration,
) -> std::io::Result<()> {
    let (queue, mut waiting) = mpsc::channel::<(Instant, Vec<u8>)>(ON_THE_WAY);
    let read = async move {
        let mut bytes = vec![0; CHUNK];
        loop {
            let n = from.read(&mut bytes).await?;
            let chunk = (Instant::now() + delay, bytes[..n].to_vec());
            // The other half has failed, and says so itself.
            if queue.send(chunk).await.is_err() || n == 0 {
                return Ok(());
            }
        }
    };
    let write = async move {
        let mut timer = Timer::new()?;
        while let Some((due, chunk)) = waiting.recv().await {
            loop {
                match due.checked_duration_since(Instant::now()) {
                    Some(left) if !left.is_zero() => timer.wait(left).await,
                    _ => break,
                }
            }
            match chunk.is_empty() {
                true => return to.shutdown().await,
                false => to.write_all(&chunk).await?,
            }
        }
        Ok(())
    };
    tokio::try_join!(read, write).map(|_| ())
}
