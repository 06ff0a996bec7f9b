//! A wire between a client and a server: it can be cut in the middle of an answer or stand still, it
//! counts connections and requests that wait for an answer, and it keeps what the client says.

use std::{
    collections::HashSet,
    net::{SocketAddr, TcpStream as Socket},
    ops::Range,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::JoinHandle,
};

pub struct Proxy {
    /// The server's URL, through the wire.
    pub url: String,
    wire: Arc<Wire>,
    listens: JoinHandle<()>,
}

#[derive(Default)]
struct Wire {
    /// How many bytes more come from the server, before its connections are closed.
    left: AtomicUsize,
    frozen: AtomicBool,
    /// Milliseconds that each answer comes late.
    late: AtomicU64,
    thawed: Notify,
    clients: Mutex<Clients>,
    /// What clients have said since it was last asked for.
    said: Mutex<Vec<u8>>,
}

#[derive(Default)]
struct Clients {
    open: Vec<Socket>,
    most: usize,
    /// Connections on which something was asked and nothing answered yet, by their numbers.
    asking: HashSet<usize>,
    most_asking: usize,
}

const WHOLE: usize = usize::MAX;

/// Where a URL has the server's address. Wherever it stands: S3 has it in an option.
fn place(url: &str) -> Range<usize> {
    let start = url.find("127.0.0.1:").expect("a server on this machine");
    let port = url[start + 10..].find(|c: char| !c.is_ascii_digit());
    start..port.map_or(url.len(), |length| start + 10 + length)
}

/// The server's address in a URL, as errors name it.
pub fn address(url: &str) -> &str {
    &url[place(url)]
}

/// The same URL with its server at another address.
pub fn moved(url: &str, to: SocketAddr) -> String {
    let Range { start, end } = place(url);
    format!("{}{to}{}", &url[..start], &url[end..])
}

impl Proxy {
    pub async fn before(url: &str) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let wire = Arc::new(Wire { left: AtomicUsize::new(WHOLE), ..Wire::default() });
        let through = moved(url, listener.local_addr().unwrap());
        let (address, passes) = (address(url).to_owned(), wire.clone());
        let listens = tokio::spawn(async move {
            let wire = passes;
            for number in 0.. {
                let Ok((client, _)) = listener.accept().await else { break };
                let client = wire.clients.lock().unwrap().arrive(client);
                let server = TcpStream::connect(&address).await.unwrap();
                tokio::spawn(pass(number, client, server, wire.clone()));
            }
        });
        Proxy { url: through, wire, listens }
    }

    /// From now on nobody listens, and all connections are closed.
    pub async fn end(&self) {
        self.listens.abort();
        while !self.listens.is_finished() {
            tokio::task::yield_now().await;
        }
        for client in &self.wire.clients.lock().unwrap().open {
            let _ = client.shutdown(std::net::Shutdown::Both);
        }
    }

    /// After so many bytes more from the server, its connections are closed.
    pub fn cut_after(&self, bytes: usize) {
        self.wire.left.store(bytes, Ordering::SeqCst);
    }

    /// From now on all goes through.
    pub fn mend(&self) {
        self.wire.left.store(WHOLE, Ordering::SeqCst);
    }

    /// From now on each answer to a request comes so much later.
    pub fn delay(&self, by: Duration) {
        self.wire.late.store(by.as_millis() as u64, Ordering::SeqCst);
    }

    /// From now on nothing goes through; connections are still accepted.
    pub fn freeze(&self) {
        self.wire.frozen.store(true, Ordering::SeqCst);
    }

    /// From now on all goes through again, what has waited first.
    pub fn thaw(&self) {
        self.wire.frozen.store(false, Ordering::SeqCst);
        self.wire.thawed.notify_waiters();
    }

    /// The most connections that there were at once.
    pub fn most(&self) -> usize {
        self.wire.clients.lock().unwrap().most
    }

    /// The most requests that waited for an answer at once; each connection has one at a time.
    pub fn most_asking(&self) -> usize {
        self.wire.clients.lock().unwrap().most_asking
    }

    /// What clients have said since this was last asked for.
    pub fn said(&self) -> Vec<u8> {
        std::mem::take(&mut *self.wire.said.lock().unwrap())
    }
}

impl Clients {
    /// Counts a connection, without those that are closed by now: what a client closed before it made
    /// another one is seen here to be closed.
    fn arrive(&mut self, client: TcpStream) -> TcpStream {
        self.open.retain(|socket| !matches!(socket.peek(&mut [0]), Ok(0)));
        let client = client.into_std().unwrap();
        self.open.push(client.try_clone().unwrap());
        self.most = self.most.max(self.open.len());
        TcpStream::from_std(client).unwrap()
    }

    fn asks(&mut self, number: usize) {
        self.asking.insert(number);
        self.most_asking = self.most_asking.max(self.asking.len());
    }
}

impl Wire {
    async fn flows(&self) {
        loop {
            let thawed = self.thawed.notified();
            if !self.frozen.load(Ordering::SeqCst) {
                // Not a skip: it flows.
                return;
            }
            thawed.await;
        }
    }
}

async fn pass(number: usize, mut client: TcpStream, mut server: TcpStream, wire: Arc<Wire>) {
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let asks = async {
        let mut bytes = vec![0; 16 << 10];
        while let Ok(n @ 1..) = from_client.read(&mut bytes).await {
            wire.said.lock().unwrap().extend(&bytes[..n]);
            wire.clients.lock().unwrap().asks(number);
            wire.flows().await;
            if to_server.write_all(&bytes[..n]).await.is_err() {
                break;
            }
        }
    };
    let answers = async {
        let mut bytes = vec![0; 16 << 10];
        while let Ok(n @ 1..) = from_server.read(&mut bytes).await {
            let begins = wire.clients.lock().unwrap().asking.remove(&number);
            let late = wire.late.load(Ordering::SeqCst);
            if begins && late > 0 {
                tokio::time::sleep(Duration::from_millis(late)).await;
            }
            wire.flows().await;
            let may = match wire.left.load(Ordering::SeqCst) {
                WHOLE => n,
                left_now => {
                    let may = n.min(left_now);
                    wire.left.fetch_sub(may, Ordering::SeqCst);
                    may
                }
            };
            if to_client.write_all(&bytes[..may]).await.is_err() || may < n {
                break;
            }
        }
    };
    tokio::select! { () = asks => {}, () = answers => {} }
    wire.clients.lock().unwrap().asking.remove(&number);
    // The clone that counts it must not keep it open.
    let _ = socket2::SockRef::from(&client).shutdown(std::net::Shutdown::Both);
}
