//! What every target of a store's client does: a server on this machine whose answers are any bytes. What the
//! client makes of them is an error or a record, in the time that its URL gives, and never a panic.

use std::{cell::OnceCell, time::Duration};

use futures_util::TryStreamExt;
use steelyard::{
    record::Document,
    store::{self, Key, KeyRange, Row},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    runtime::{Builder, Runtime},
};

/// What parts the answers in what is drawn.
const BETWEEN: &[u8] = b"\xa5\x5a";
/// Beyond this a client hangs: it does a handful of operations, and each may take a tenth of a second.
const PATIENCE: Duration = Duration::from_secs(10);

/// How a server begins that is well: what it says unasked, and its first answers.
pub struct Begin {
    pub greeting: Vec<u8>,
    pub answers: Vec<Vec<u8>>,
}

thread_local! {
    static RUNTIME: OnceCell<(Runtime, TcpListener)> = const { OnceCell::new() };
}

/// The answers that were drawn. Where the first byte is odd, the server is not well from the beginning.
fn drawn(begin: Begin, data: &[u8], wrap: fn(&[u8]) -> Vec<u8>) -> Begin {
    let Some((first, rest)) = data.split_first() else { return begin };
    let mut parts = Vec::new();
    let mut left = rest;
    while let Some(at) = left.windows(BETWEEN.len()).position(|window| window == BETWEEN) {
        parts.push(wrap(&left[..at]));
        left = &left[at + BETWEEN.len()..];
    }
    parts.push(wrap(left));
    match first & 1 {
        0 => Begin { answers: begin.answers.into_iter().chain(parts).collect(), ..begin },
        _ => Begin { greeting: begin.greeting, answers: parts },
    }
}

/// Gives the next answer whenever the client has said something, and hangs up after the last.
async fn serve(mut client: TcpStream, begin: &Begin) -> std::io::Result<()> {
    client.write_all(&begin.greeting).await?;
    let mut said = vec![0; 64 << 10];
    for answer in &begin.answers {
        if client.read(&mut said).await? == 0 {
            return Ok(());
        }
        client.write_all(answer).await?;
    }
    client.shutdown().await
}

/// Whatever a store of this URL does, with these answers.
async fn work(url: &str) -> steelyard::Result<()> {
    let place = store::open(url).await?;
    let keys = ["a", "b"].map(|key| Key::new(key).expect("not empty"));
    let _ = place.get(&keys).await;
    let _ = place.get(&keys[..1]).await;
    if let Ok(rows) = place.scan(&KeyRange::all()).await {
        let _ = rows.try_for_each(|_| std::future::ready(Ok(()))).await;
    }
    let record = Document::from_iter([("n", 1i64)]);
    let _ = place.put(&[Row { key: keys[0].clone(), record }]).await;
    let _ = place.count().await;
    let _ = place.remove(&keys).await;
    let _ = place.describe().await;
    Ok(())
}

/// Tries the client of these URLs, which are given a port, on what was drawn.
pub fn try_client(
    url: impl Fn(u16) -> String,
    begin: Begin,
    data: &[u8],
    wrap: fn(&[u8]) -> Vec<u8>,
) {
    let begin = drawn(begin, data, wrap);
    RUNTIME.with(|runtime| {
        let (runtime, listener) = runtime.get_or_init(|| {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
            (runtime, listener)
        });
        let port = listener.local_addr().expect("it is bound").port();
        let options = "pool=1&timeout=0.1&connect_timeout=0.1";
        let base = url(port);
        let join = if base.contains('?') { '&' } else { '?' };
        let url = format!("{base}{join}{options}");
        runtime.block_on(async {
            let server = async {
                let mut open = futures_util::stream::FuturesUnordered::new();
                loop {
                    tokio::select! {
                        arrived = listener.accept() => {
                            if let Ok((client, _)) = arrived {
                                open.push(serve(client, &begin));
                            }
                        }
                        Ok(Some(())) = open.try_next(), if !open.is_empty() => {}
                        else => {}
                    }
                }
            };
            let client = tokio::time::timeout(PATIENCE, work(&url));
            tokio::select! {
                () = server => {}
                done = client => drop(done.expect("it ends in time")),
            }
        });
    });
}

/// Bytes as they are.
#[allow(dead_code)]
pub fn plain(bytes: &[u8]) -> Vec<u8> {
    bytes.to_vec()
}

/// Bytes as the body of an answer of HTTP; where they begin as one, they are one.
#[allow(dead_code)]
pub fn page(bytes: &[u8]) -> Vec<u8> {
    if bytes.starts_with(b"HTTP/") {
        return bytes.to_vec();
    }
    let head = format!("HTTP/1.1 200 OK\r\nServer: x\r\nContent-Length: {}\r\n\r\n", bytes.len());
    [head.as_bytes(), bytes].concat()
}
