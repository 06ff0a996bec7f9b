//! Any bytes as what a request to a gateway has in it: the end of the path, the query, headers, the body. Each is answered, or the
//! connection is closed; none with a failure of the gateway's own.
#![no_main]

use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    sync::{Arc, LazyLock, mpsc},
    thread,
    time::Duration,
};

use steelyard::serve::{Quick, Scope, run};
use tokio::{net::TcpListener, runtime::Builder};

/// What requests begin with; the first byte chooses.
const BEGINNINGS: [&str; 10] = [
    "GET /v1/docs/people/",
    "PUT /v1/docs/people/",
    "DELETE /v1/docs/people/",
    "GET /v1/docs/people?where=",
    "GET /v1/docs/people?limit=3&",
    "POST /v1/docs/people:query",
    "POST /v1/docs/people:bulk",
    "GET /v1/docs/people:each?",
    "POST /v1/auth/login",
    "",
];

/// Its address, and the key of its tenant.
static GATEWAY: LazyLock<(SocketAddr, String)> = LazyLock::new(|| {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let Quick { gateway, keys } = Quick::place("memory:fuzz", Scope::Write).await.unwrap();
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            send.send((listener.local_addr().unwrap(), keys[0].1.reveal())).unwrap();
            run(listener, None, Arc::new(gateway), std::future::pending()).await.unwrap();
        });
    });
    receive.recv().unwrap()
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else { return };
    let mut parts = rest.splitn(3, |&byte| byte == b'\n');
    let [path, header, body] = [(); 3].map(|()| parts.next().unwrap_or_default());
    let (address, key) = &*GATEWAY;
    let beginning = BEGINNINGS[usize::from(*first) % BEGINNINGS.len()].as_bytes();
    let media = if body.contains(&b'\n') { "application/x-ndjson" } else { "application/json" };
    let more = format!(
        "\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\nContent-Type: {media}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let request = [beginning, path, b" HTTP/1.1\r\n", header, more.as_bytes(), body].concat();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    // It may hang up before all of it is sent.
    let _ = stream.write_all(&request);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Ok(_) => {}
        Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => {}
        Err(e) => panic!("no end of the answer: {e}"),
    }
    let failed = answer.starts_with(b"HTTP/1.1 500") || answer.starts_with(b"HTTP/1.1 504");
    assert!(!failed, "{}", String::from_utf8_lossy(&answer));
});
