//! A wire between a client and a server that can be cut in the middle of an answer.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

pub struct Proxy {
    /// The server's URL, through the wire.
    pub url: String,
    left: Arc<AtomicUsize>,
}

const WHOLE: usize = usize::MAX;

impl Proxy {
    pub async fn before(url: &str) -> Proxy {
        // Wherever it stands: S3 has it in an option.
        let start = url.find("127.0.0.1:").expect("a server on this machine");
        let port = url[start + 10..].find(|c: char| !c.is_ascii_digit());
        let end = port.map_or(url.len(), |length| start + 10 + length);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let left = Arc::new(AtomicUsize::new(WHOLE));
        let through = listener.local_addr().unwrap();
        let proxy =
            Proxy { url: format!("{}{through}{}", &url[..start], &url[end..]), left: left.clone() };
        let address = url[start..end].to_owned();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&address).await.unwrap();
                tokio::spawn(pass(client, server, left.clone()));
            }
        });
        proxy
    }

    /// After so many bytes more from the server, its connections are closed.
    pub fn cut_after(&self, bytes: usize) {
        self.left.store(bytes, Ordering::SeqCst);
    }

    /// From now on all goes through.
    pub fn mend(&self) {
        self.left.store(WHOLE, Ordering::SeqCst);
    }
}

async fn pass(mut client: TcpStream, mut server: TcpStream, left: Arc<AtomicUsize>) {
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let asks = tokio::io::copy(&mut from_client, &mut to_server);
    let answers = async {
        let mut bytes = vec![0; 16 << 10];
        while let Ok(n @ 1..) = from_server.read(&mut bytes).await {
            let may = match left.load(Ordering::SeqCst) {
                WHOLE => n,
                left_now => {
                    let may = n.min(left_now);
                    left.fetch_sub(may, Ordering::SeqCst);
                    may
                }
            };
            if to_client.write_all(&bytes[..may]).await.is_err() || may < n {
                break;
            }
        }
    };
    tokio::select! { _ = asks => {}, () = answers => {} }
}
